-- Lessons as pages of the site: notebooks with what their cells show.
local ms = require "lunaria"
local registry = require "lunaria.registry"
local html = require "lunaria.help.html"

local lessons = {}

-- Marks within a line of Markdown.
local function inline(text)
  local codes = {}
  text = text:gsub("`([^`]+)`", function(code)
    codes[#codes + 1] = "<code>" .. html.escaped(code) .. "</code>"
    return ("\0%d\0"):format(#codes)
  end)
  text = html.escaped(text)
  text = text:gsub("%[([^%]]+)%]%(([^%)%s]+)%)", function(label, address)
    local notebook = address:match "^([%w_%-]+)%.ipynb$"
    if notebook then return ('<a href="%s.html">%s</a>'):format(notebook, label) end
    return address:find "^https?:" and ('<a href="%s">%s</a>'):format(address, label) or label
  end)
  text = text:gsub("%*%*(.-)%*%*", "<strong>%1</strong>"):gsub("%f[%*]%*([^%*]+)%*%f[^%*]", "<em>%1</em>")
  return (text:gsub("%z(%d+)%z", function(number) return codes[tonumber(number)] end))
end

local function cells_of(row)
  local cells = {}
  for cell in row:gsub("^%s*|", ""):gsub("|%s*$", ""):gmatch "[^|]+" do cells[#cells + 1] = inline(cell:match "^%s*(.-)%s*$") end
  return cells
end

-- Markdown as the lessons have it: headings, paragraphs, lists, tables, code between fences.
local function markdown(text)
  local parts, lines, i = {}, {}, 1
  for line in (text .. "\n"):gmatch "(.-)\n" do lines[#lines + 1] = line end
  local function gather(pattern)
    local list = {}
    while lines[i] and lines[i]:find(pattern) do
      list[#list + 1] = lines[i]
      i = i + 1
    end
    return list
  end
  while lines[i] do
    local line = lines[i]
    local level, title = line:match "^(#+)%s+(.*)$"
    if level then
      parts[#parts + 1] = ("<h%d>%s</h%d>\n"):format(#level, inline(title), #level)
      i = i + 1
    elseif line:find "^```" then
      local first = i + 1
      i = first
      while lines[i] and not lines[i]:find "^```" do i = i + 1 end
      parts[#parts + 1] = html.code(table.move(lines, first, i - 1, 1, {}))
      i = i + 1
    elseif line:find "^%s*|" then
      local rows = gather "^%s*|"
      local heads = cells_of(rows[1])
      local body = {}
      for k = 3, #rows do body[#body + 1] = cells_of(rows[k]) end
      parts[#parts + 1] = html.table_of(heads, body)
    elseif line:find "^%s*[%-%*]%s" or line:find "^%s*%d+%.%s" then
      local tag = line:find "^%s*%d" and "ol" or "ul"
      local items = {}
      while lines[i] and lines[i]:find "%S" do
        local item = lines[i]:match "^%s*[%-%*]%s+(.*)$" or lines[i]:match "^%s*%d+%.%s+(.*)$"
        if item then items[#items + 1] = item else items[#items] = items[#items] .. " " .. lines[i] end
        i = i + 1
      end
      for k, item in ipairs(items) do items[k] = "<li>" .. inline(item) end
      parts[#parts + 1] = ("<%s>%s</%s>\n"):format(tag, table.concat(items, "\n"), tag)
    elseif line:find "%S" then
      parts[#parts + 1] = "<p>" .. inline(table.concat(gather "^%s*[^%s|#]", " ")) .. "</p>\n"
      if lines[i] == line then i = i + 1 end
    else
      i = i + 1
    end
  end
  return table.concat(parts)
end

local function text_of(value) return type(value) == "table" and table.concat(value) or value end

-- What a cell has shown, in the form that a page shows best.
local function output(row)
  local data = row.data or {}
  if row.output_type == "stream" then return html.code { (text_of(row.text):gsub("\n$", "")) } end
  if row.output_type == "error" then return html.code { (table.concat(row.traceback or {}, "\n"):gsub("\27%[[%d;]*m", "")) } end
  if data["image/svg+xml"] then return text_of(data["image/svg+xml"]) end
  if data["image/png"] then return ('<img alt="" src="data:image/png;base64,%s">'):format((text_of(data["image/png"]):gsub("%s", ""))) end
  if data["text/html"] then return text_of(data["text/html"]) end
  if data["text/markdown"] then return markdown(text_of(data["text/markdown"])) end
  local plain = data["text/latex"] or data["text/plain"]
  return plain and html.code { (text_of(plain):gsub("\27%[[%d;]*m", "")) } or ""
end

--- The page of a lesson below its frame.
function lessons.body(lesson)
  local parts = {}
  for _, cell in ipairs(lesson.cells) do
    local source = text_of(cell.source)
    if cell.cell_type == "markdown" then
      parts[#parts + 1] = markdown(source)
    elseif cell.cell_type == "code" then
      parts[#parts + 1] = html.code({ source }, "cell")
      for _, row in ipairs(cell.outputs or {}) do parts[#parts + 1] = '<div class="shown">' .. output(row) .. "</div>\n" end
    end
  end
  return table.concat(parts)
end

--- The lessons that there are: { file =, title =, cells = }.
function lessons.all()
  local list = {}
  for _, path in ipairs(registry.files "lessons/") do
    local name = path:match "^lessons/([^/]+)%.ipynb$"
    if name then
      local cells, title = ms.json.decode(registry.text(path)).cells, nil
      for _, cell in ipairs(cells) do title = title or text_of(cell.source):match "^#%s+([^\n]+)" end
      list[#list + 1] = { file = name, title = title or name, cells = cells }
    end
  end
  return list
end

return lessons
