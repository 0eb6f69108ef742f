-- The reference as a site of static files: index.html, one page for each name, style.css, and search.js with the index and
-- the ranking of search.lua. It opens from a folder, without a server.
local ms = require "lunaria"
local entries = require "lunaria.help.entries"
local show = require "lunaria.help.show"
local files = require "lunaria.help.site_files"
local markdown = require "lunaria.help.markdown"
local search = require "lunaria.help.search"

local function escaped(text)
  return (text:gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

-- A file name that is the same on systems that do not tell cases apart.
local function address_of(entry)
  local name = entry.name:gsub("^ms%.", ""):gsub("[^%w_%.%-]", function(c) return ("-%02x"):format(c:byte()) end)
  return "p/" .. name:gsub("%u", "%0_") .. ".html"
end

-- Names of the index in a text of prose become links; `code` becomes code.
local function linked(text)
  local names = entries.names()
  text = escaped(text)
  text = text:gsub("`(.-)`", "<code>%1</code>")
  return (text:gsub("%f[%w_%.]ms%.[%w_%.]+%w", function(name)
    local entry = names[name]
    return entry and ('<a href="../%s"><code>%s</code></a>'):format(address_of(entry), name) or ("<code>%s</code>"):format(name)
  end))
end

local function code(lines)
  local html = escaped(table.concat(lines, "\n"))
  -- What is typed, as opposed to what is shown.
  html = ("\n" .. html):gsub("\n(&gt; [^\n]*)", "\n<b>%1</b>"):gsub("\n(%.%. [^\n]*)", "\n<b>%1</b>"):sub(2)
  return "<pre>" .. html .. "</pre>\n"
end

-- Comments are paragraphs; lines that are further in are code.
local function prose(text)
  local html, paragraph, block = {}, {}, {}
  local function close()
    if #paragraph > 0 then html[#html + 1] = "<p>" .. linked(table.concat(paragraph, " ")) .. "</p>\n" end
    if #block > 0 then html[#html + 1] = code(block) end
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
  return table.concat(html)
end

local function table_of(heads, rows)
  local html = { "<table><tr>" }
  for _, head in ipairs(heads) do html[#html + 1] = "<th>" .. head .. "</th>" end
  html[#html + 1] = "</tr>\n"
  for _, row in ipairs(rows) do
    html[#html + 1] = "<tr>"
    for _, cell in ipairs(row) do html[#html + 1] = "<td>" .. cell .. "</td>" end
    html[#html + 1] = "</tr>\n"
  end
  html[#html + 1] = "</table>\n"
  return table.concat(html)
end

local function parameters(list)
  local rows = {}
  for i, p in ipairs(list) do
    local names = p.name
    for _, other in ipairs(p.other_names or {}) do names = names .. ", " .. other end
    rows[i] = { "<code>" .. escaped(names) .. "</code>", escaped(p.type or ""),
      p.default and "<code>" .. escaped(p.default) .. "</code>" or "",
      linked((p.text or "") .. (p.by_name_only and " (by name only)" or "")) }
  end
  return "<h2>Parameters</h2>\n" .. table_of({ "name", "type", "default", "meaning" }, rows)
end

local function transcript(rows)
  local lines = {}
  for _, row in ipairs(rows) do
    lines[#lines + 1] = show.typed(row)
    lines[#lines + 1] = row[2]
  end
  return code(lines)
end

local function link(entry, text)
  return ('<a href="../%s">%s</a>'):format(address_of(entry), escaped(text or markdown.title_of(entry)))
end

local function guide_body(entry)
  local html = {}
  for _, part in ipairs(entry.parts or { entry.doc }) do
    html[#html + 1] = type(part) == "string" and "<p>" .. linked(part) .. "</p>\n" or transcript(part)
  end
  local rows = {}
  for i, row in ipairs(entry.rows or {}) do
    local target = entries.names()[row[2]]
    local here = row[2] ~= "" and "<code>" .. escaped(row[2]) .. "</code>" or ""
    local way = target and ('<a href="../%s">%s</a>'):format(address_of(target), here) or here
    rows[i] = { "<code>" .. escaped(row[1]) .. "</code>", way, linked(row[3]) }
  end
  if #rows > 0 then html[#html + 1] = table_of({ "there", "here", "difference" }, rows) end
  return table.concat(html)
end

local function body(entry)
  if entry.kind == "guide" then return guide_body(entry) end
  local html = { (code { entry.head }:gsub("^<pre>", '<pre class="head">')), prose(entry.doc) }
  local function add(text) html[#html + 1] = text end
  if #entry.parameters > 0 then add(parameters(entry.parameters)) end
  if #(entry.results or {}) > 0 then add("<h2>Results</h2>\n<p>" .. escaped(table.concat(entry.results, ", ")) .. "</p>\n") end
  if #(entry.examples or {}) > 0 then add("<h2>Example</h2>\n" .. transcript(entry.examples)) end
  local also = {}
  for _, name in ipairs(entry.also or {}) do
    if name ~= entry.name then also[#also + 1] = "<code>" .. escaped(name) .. "</code>" end
  end
  if #also > 0 then add("<p>Also called " .. table.concat(also, ", ") .. ".</p>\n") end
  for _, note in ipairs(entry.notes or {}) do add("<p>" .. linked(note) .. "</p>\n") end
  if entry.source then add('<p class="source">Source: <code>' .. escaped(entry.source) .. "</code></p>\n") end
  return table.concat(html)
end

-- root: the way from the page to index.html's folder.
local function page(title, root, content)
  return files.page:gsub("{{(%w+)}}", { title = escaped(title), root = root, content = content, version = ms.version })
end

-- The other names on the same page of the Markdown reference, at the side.
local function side(group, current)
  local html = { "<h3>" .. escaped(group.title) .. "</h3>\n<ul>" }
  for _, entry in ipairs(group.entries) do
    html[#html + 1] = ("<li%s>%s</li>\n"):format(entry == current and ' class="here"' or "", link(entry))
  end
  html[#html + 1] = "</ul>\n"
  return table.concat(html)
end

local function index_page(groups)
  local html = { files.welcome }
  for _, group in ipairs(groups) do
    local list, is_guides = {}, group.file == "guides"
    for i, entry in ipairs(group.entries) do
      list[i] = (is_guides and '<li><a href="%s">%s</a></li>' or '<a href="%s"><code>%s</code></a>'):format(
        address_of(entry), escaped(markdown.title_of(entry)))
    end
    html[#html + 1] = (is_guides and '<section id="%s"><h2>%s</h2>\n<ul class="guides">%s</ul></section>\n'
      or '<section id="%s"><h2>%s</h2>\n<p class="names">%s</p></section>\n'):format(
      group.file, escaped(group.title), table.concat(list, "\n"))
  end
  return table.concat(html)
end

local function sorted(set)
  local list = ms.json.array {}
  for text in pairs(set) do list[#list + 1] = text end
  table.sort(list)
  return list
end

local function script()
  local documents, by_word, words = search.index()
  local rows = {}
  for i, document in ipairs(documents) do
    local entry = document.entry
    rows[i] = { markdown.title_of(entry), address_of(entry), entry.kind, markdown.first_sentence(entry.doc):sub(1, 160), document.factor,
      sorted(document.exact), entry.name, sorted(document.phrases) }
  end
  local index = {}
  for i, word in ipairs(words) do
    local list = {}
    for k, pair in ipairs(by_word[word]) do list[k] = { pair[1] - 1, pair[2] } end
    index[i] = { word, list }
  end
  return ("const DOCUMENTS = %s;\nconst WORDS = %s;\nconst STOP = %s;\n%s"):format(ms.json.encode(rows), ms.json.encode(index),
    ms.json.encode(search.stop_words()), files.script)
end

return function(folder)
  local function write(name, text) markdown.write(folder .. "/" .. name, text) end
  os.execute("mkdir -p '" .. (folder .. "/p"):gsub("'", "'\\''") .. "'")
  local groups = markdown.pages()
  write("style.css", files.style)
  write("search.js", script())
  write("index.html", (page("Lunaria", "", index_page(groups))))
  for _, group in ipairs(groups) do
    for _, entry in ipairs(group.entries) do
      local title = markdown.title_of(entry)
      local kind = ('<p class="kind"><a href="../index.html#%s">%s</a></p>'):format(group.file, escaped(entry.kind))
      write(address_of(entry), (page(title, "../", ('<nav class="side">%s</nav>\n<article>%s<h1>%s</h1>\n%s</article>'):format(
        side(group, entry), kind, escaped(title), body(entry)))))
    end
  end
end
