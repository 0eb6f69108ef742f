-- The reference as Markdown: one file for each family of operators and each kind of other names, and README.md as their
-- index.
local registry = require "lunaria.registry"
local entries = require "lunaria.help.entries"
local show = require "lunaria.help.show"

local kinds = {
  { "guide", "Guides" }, { "operator" }, { "class", "Classes" }, { "function", "Functions" }, { "method", "Methods" },
  { "property", "Fields" }, { "object", "Objects" }, { "constant", "Constants" }, { "dtype", "Dtypes" }, { "module", "Modules" },
  { "global", "Globals" }, { "command", "Commands of a session" }, { "option", "Command line" },
  { "environment variable", "Environment" }, { "debugger command", "Debugger" }, { "lua", "Lua's own library" },
}

local function first_sentence(text)
  text = text:gsub("%s+", " ")
  return text:match "^(.-%.) " or text
end

local function title_of(entry)
  return entry.kind == "guide" and entry.head or entry.kind == "operator" and entry.name:gsub("^ms%.ops%.", "") or entry.name
end

-- As GitHub and its kin make them of headings.
local function anchor(name) return (name:lower():gsub("[^%w%s_%-]", ""):gsub("%s", "-")) end

--- The pages of the reference in order: { file =, title =, entries = { ... } }.
local function pages()
  local lists, result = {}, {}
  for _, entry in ipairs(entries.all()) do
    local key = entry.kind == "operator" and entry.family or entry.kind
    lists[key] = lists[key] or {}
    table.insert(lists[key], entry)
  end
  -- Guides are read in the order in which they were written.
  local order = {}
  for i, guide in ipairs(require "lunaria.help.guides") do order[guide.name] = i end
  table.sort(lists.guide or {}, function(a, b)
    local first, second = order[a.name] or math.huge, order[b.name] or math.huge
    if first ~= second then return first < second end
    return a.name < b.name
  end)
  local function add(key, title, file)
    if lists[key] then result[#result + 1] = { file = file, title = title, entries = lists[key] } end
  end
  for _, kind in ipairs(kinds) do
    if kind[1] == "operator" then
      for _, family in ipairs(registry.families()) do add(family.title, family.title, family.file) end
    else
      add(kind[1], kind[2], kind[2]:lower():gsub("[^%w]+", "_"))
    end
  end
  return result
end

local function write(path, text)
  local file = assert(io.open(path, "w"))
  assert(file:write(text))
  assert(file:close())
end

return setmetatable({ pages = pages, title_of = title_of, first_sentence = first_sentence, write = write }, {
  __call = function(_, folder)
    local index = { "# Reference\n\nWritten by `lunaria --docs`. `lunaria --docs DIR --html` writes a site with search.\n" }
    for _, page in ipairs(pages()) do
      local text = { "# " .. page.title .. "\n" }
      index[#index + 1] = ("\n## [%s](%s.md)\n"):format(page.title, page.file)
      for _, entry in ipairs(page.entries) do
        local title = title_of(entry)
        text[#text + 1] = "## " .. title .. "\n\n" .. show.body(entry)
        index[#index + 1] = ("- [%s](%s.md#%s): %s"):format(title, page.file, anchor(title), first_sentence(entry.doc))
      end
      write(folder .. "/" .. page.file .. ".md", table.concat(text, "\n"))
    end
    write(folder .. "/README.md", table.concat(index, "\n") .. "\n")
  end,
})
