-- Reasons why a value is nil: the line above that gave it, or a field that the value of the line lacks.
-- luacheck: no max line length
local foreign = require "lunaria.help.foreign"

local origins = {}

-- { pattern of the expression that gave a variable its value, what is to be said }; the first that fits counts. A function gets the captures.
local sources = {
  { "^io%.p?open%f[%W]", "io.open gives nil and the reason where it cannot open a file: local file = assert(io.open(path))" },
  { "^assert", "assert hands on what it is given" },
  { ":read%s*[%(\"']", "read gives nil at the end of a file" },
  { "[%.:]g?match%s*[%(\"']", "match gives nil where the pattern is not found: if value then ... end; . and - have a meaning in patterns, %. is a dot" },
  { "[%.:]find%s*[%(\"']", "find gives nil where nothing is found: if from then ... end" },
  { "^tonumber", "tonumber gives nil for what is no number" },
  { "^os%.getenv", "os.getenv gives nil for a variable that is not set: os.getenv \"NAME\" or \"default\"" },
  { "^table%.remove", "table.remove gives nil where the list is empty" },
  { "^arg%[", "arg[1] is the first argument of the program: lunaria file.lua FIRST; arg[1] or \"default\"" },
  { "^[%w_%.]+%[0%]", "tables count from 1 in Lua: t[1] is the first element; tensors count from 0" },
  { "^([%a_][%w_%.]*)%.([%a_][%w_]*)$", function(object, field)
    return ("%s has no field %s: for name in pairs(%s) do print(name) end shows which there are"):format(object, field, object)
  end },
  { "^([%a_][%w_%.]*)%[.-%]$", function(object) return ("%s has nothing under that key: for key in pairs(%s) do print(key) end shows which there are"):format(object, object) end },
  { "^([%a_][%w_%.:]*)%s*[%(%{\"']", function(called) return ("%s gave nothing: does it end with return?"):format(called) end },
}

--- Why a variable is nil, by the last line above that gave it a value; nil where none does, or nothing can be said of it.
function origins.of(name, above)
  local given, place
  for names, expression in ("\n" .. above):gmatch "\n%s*l?o?c?a?l?%s*([%a_][%w_, ]-)%s*=%s*([^=\n][^\n]*)" do
    local count = 0
    for each in names:gmatch "[%a_][%w_]*" do
      count = count + 1
      if each == name then given, place = expression, count end
    end
  end
  if not given then
    local declared = ("\n" .. above):find("\n%s*local [%w_, ]*%f[%w_]" .. name .. "%f[^%w_][%w_, ]*\n")
    return declared and ("%s is declared without a value: local %s = 0, or {}"):format(name, name) or nil
  end
  given = given:gsub("%s*%-%-.*$", ""):gsub("%s+$", "")
  if place > 1 and given:find "^[%a_][%w_%.:]*%s*%(.*%)$" then
    return ("%s gives no value number %d"):format(given:match "^[%w_%.:]+", place)
  end
  if place > 1 then return nil end
  for _, row in ipairs(sources) do
    local found = table.pack(given:find(row[1]))
    if found[1] then return type(row[2]) == "function" and row[2](table.unpack(found, 3, found.n)) or row[2] end
  end
end

-- What other languages have as fields of lists.
local lengths = { length = true, len = true, size = true, count = true, n = true }

--- Whether a field is what other languages have as the length of a list.
function origins.is_length(name) return lengths[name] ~= nil end

--- The field that a line asks of a value which lacks it, for messages that name none: what to write instead, or nil.
function origins.of_field(line, variables, habit)
  local code = line:gsub("\"[^\"]*\"", '""'):gsub("'[^']*'", "''")
  for text, name in code:gmatch "([%a_][%w_%.]*)%.([%a_][%w_]*)" do
    local value = foreign.value(text, variables)
    local found, field = pcall(function() return value[name] end)
    if value ~= nil and value ~= false and found and field == nil then
      local is_own = foreign.kind(value) == "table" and not lengths[name]
      return not is_own and (foreign.of_object(name, value, foreign.kind(value), text, line) or habit(name, line))
        or foreign.fields(value, text, name) or ("%s has no field %s: is it misspelt, or set further down?"):format(text, name)
    end
  end
  local name = code:match "%.(%a+)%f[^%w_]%s*[^%s%(]*"
  return lengths[name] and habit(name, line) or nil
end

return origins
