-- Parts of the site's pages as HTML: prose with links, code, tables; and where the page of a name lies.
local entries = require "lunaria.help.entries"

local html = {}

function html.escaped(text)
  return (text:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

local escaped = html.escaped

--- A file name that is the same on systems that do not tell cases apart.
function html.file_name(name)
  return (name:gsub("^ms%.", ""):gsub("[^%w_%.%-]", function(c) return ("-%02x"):format(c:byte()) end):gsub("%u", "%0_"))
end

-- Kinds with short entries, which stand on one page.
local together = { dtype = true, constant = true, ["environment variable"] = true, ["debugger command"] = true, command = true,
  option = true, lua = true, global = true }

--- The entry on whose page another one stands: of a method or field its class, or the object that the variable is; of a function of a
--- module within a module that one. nil where it has a page of its own, or shares one with its kind.
function html.owner_of(entry)
  local class, variable = entry.name:match "^(ms%..*):[%w_]+$", entry.name:match "^(%l+)[:%.][%w_]+$"
  local owner
  if entry.kind == "method" or entry.kind == "property" then
    owner = class and entries.names()[class] or variable and entries.objects()[variable]
  elseif entry.kind == "function" then
    owner = entries.names()[entry.name:match "^(ms%.[%w_]+%..*)%.[%w_]+$" or ""]
  end
  return owner and (owner.kind == "class" or owner.kind == "object" or owner.kind == "module") and owner or nil
end

--- Whether an entry stands on the page of its kind.
function html.is_together(entry) return together[entry.kind] or false end

--- What an entry is called on a page where others stand too.
function html.anchor_of(entry) return (entry.name:gsub("^ms%.", ""):gsub("[^%w_%.%-]", "-")) end

--- The page of a kind, from the root of the site.
function html.page_of_kind(kind) return "p/" .. kind:gsub("%s", "_") .. ".html" end

--- The address of an entry from the root of the site.
function html.address_of(entry)
  local owner = html.owner_of(entry)
  if owner then return html.address_of(owner):match "^[^#]*" .. "#" .. html.anchor_of(entry) end
  if together[entry.kind] then return html.page_of_kind(entry.kind) .. "#" .. html.anchor_of(entry) end
  return "p/" .. html.file_name(entry.name) .. ".html"
end

--- Names of the index in a text of prose become links; `code` becomes code. root: the way from the page to the root.
function html.linked(text, root)
  local names = entries.names()
  text = escaped(text)
  text = text:gsub("`(.-)`", "<code>%1</code>")
  return (text:gsub("%f[%w_%.]ms%.[%w_%.:]*%w", function(name)
    local entry = names[name]
    return entry and ('<a href="%s%s"><code>%s</code></a>'):format(root or "../", html.address_of(entry), name)
      or ("<code>%s</code>"):format(name)
  end))
end

function html.code(lines, class)
  local text = escaped(table.concat(lines, "\n"))
  -- What is typed, as opposed to what is shown.
  text = ("\n" .. text):gsub("\n(&gt; [^\n]*)", "\n<b>%1</b>"):gsub("\n(%.%. [^\n]*)", "\n<b>%1</b>"):sub(2)
  return ("<pre%s>%s</pre>\n"):format(class and (' class="%s"'):format(class) or "", text)
end

--- Comments are paragraphs; lines that are further in are code.
function html.prose(text)
  local parts, paragraph, block = {}, {}, {}
  local function close()
    if #paragraph > 0 then parts[#parts + 1] = "<p>" .. html.linked(table.concat(paragraph, " ")) .. "</p>\n" end
    if #block > 0 then parts[#parts + 1] = html.code(block) end
    paragraph, block = {}, {}
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do
    if line:find "^%s%s+%S" and #paragraph == 0 then
      block[#block + 1] = line:gsub("^  ", "")
    elseif line:find "^%s*$" then
      if #block > 0 then block[#block + 1] = "" end
      if #paragraph > 0 then close() end
    else
      if #block > 0 then close() end
      paragraph[#paragraph + 1] = line
    end
  end
  close()
  return table.concat(parts)
end

function html.table_of(heads, rows)
  local parts = { "<table><tr>" }
  for _, head in ipairs(heads) do parts[#parts + 1] = "<th>" .. head end
  for _, row in ipairs(rows) do parts[#parts + 1] = "\n<tr><td>" .. table.concat(row, "<td>") end
  parts[#parts + 1] = "</table>\n"
  return table.concat(parts)
end

return html
