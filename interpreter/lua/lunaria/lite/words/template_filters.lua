-- Filters (x | f) and tests (x is f) of chat templates: f(value, arguments by position, arguments by name).
local ms = require "lunaria"
local values = require "lunaria.lite.words.template_values"

local null = ms.json.null
local fail, text_of, truth, items = values.fail, values.text_of, values.truth, values.items
local filters, tests = {}, {}

-- The argument at a place or of a name.
local function argument(args, named, i, name, missing)
  local value = args[i]
  if value == nil then value = named[name] end
  if value == nil then return missing end
  return value
end

local function attribute_of(x, path)
  for part in text_of(path):gmatch "[^.]+" do
    x = values.item(x, math.tointeger(tonumber(part)) or part)
  end
  return x
end

local function each(x, f)
  local list = {}
  for _, item in ipairs(items(x)) do list[#list + 1] = f(item) end
  return list
end

filters.trim = function(x, args, named) return values.strip(text_of(x), argument(args, named, 1, "chars")) end
filters.length = values.length
filters.upper = function(x) return values.upper(text_of(x)) end
filters.lower = function(x) return values.lower(text_of(x)) end
filters.capitalize = function(x) return values.capitalized(text_of(x)) end
filters.title = function(x) return values.titled(text_of(x)) end
filters.string = text_of
filters.safe = text_of
filters.tojson = function(x, args, named)
  local indent, separators = argument(args, named, 2, "indent"), argument(args, named, 3, "separators")
  local pair = separators ~= null and separators or {}
  return values.json(x, { ascii = truth(argument(args, named, 1, "ensure_ascii")), indent = indent ~= null and indent or nil,
    comma = pair[1], colon = pair[2], sorted = truth(argument(args, named, 4, "sort_keys")) })
end
filters.default = function(x, args, named)
  local other = argument(args, named, 1, "default_value", "")
  if x == nil or truth(argument(args, named, 2, "boolean", false)) and not truth(x) then return other end
  return x
end
filters.first = function(x) return items(x)[1] end
filters.last = function(x)
  local list = items(x)
  return list[#list]
end
filters.list = function(x) return { table.unpack(items(x)) } end
filters.items = function(x) return x == nil and {} or values.pairs_of(x) end
filters.join = function(x, args, named)
  local attribute = argument(args, named, 2, "attribute")
  local parts = each(x, function(item) return text_of(attribute and attribute_of(item, attribute) or item) end)
  return table.concat(parts, text_of(argument(args, named, 1, "d", "")))
end
filters.replace = function(x, args, named)
  return values.replaced(text_of(x), text_of(argument(args, named, 1, "old")), text_of(argument(args, named, 2, "new")),
    argument(args, named, 3, "count"))
end
filters.reverse = function(x)
  if type(x) == "string" then return values.slice(x, nil, nil, -1) end
  return values.slice(items(x), nil, nil, -1)
end
filters.int = function(x, args, named)
  local number = type(x) == "boolean" and (x and 1 or 0) or tonumber(x)
  if type(number) ~= "number" or number ~= number then return argument(args, named, 1, "default", 0) end
  return math.tointeger(number < 0 and math.ceil(number) or math.floor(number)) or 0
end
filters.float = function(x, args, named)
  local number = tonumber(x)
  return number and number + 0.0 or argument(args, named, 1, "default", 0.0)
end
filters.abs = function(x) return math.abs(x) end
filters.round = function(x, args, named)
  local scale, method = 10.0 ^ argument(args, named, 1, "precision", 0), argument(args, named, 2, "method", "common")
  if method == "floor" then return math.floor(x * scale) / scale end
  if method == "ceil" then return math.ceil(x * scale) / scale end
  -- Halves go to the even number.
  local low = math.floor(x * scale)
  local rest = x * scale - low
  if rest > 0.5 or rest == 0.5 and low % 2 == 1 then low = low + 1 end
  return low / scale
end
filters.sum = function(x, args, named)
  local attribute, sum = argument(args, named, 1, "attribute"), argument(args, named, 2, "start", 0)
  for _, item in ipairs(items(x)) do sum = sum + (attribute and attribute_of(item, attribute) or item) end
  return sum
end
local function extreme(sign)
  return function(x)
    local found
    for _, item in ipairs(items(x)) do
      if found == nil or values.compare(item, found) == sign then found = item end
    end
    return found
  end
end
filters.min, filters.max = extreme(-1), extreme(1)

local function folded(x) return type(x) == "string" and values.lower(x) or x end
-- Keeps the order of what is equal, as Python does.
local function sorted(list, key, reverse)
  local rows = {}
  for i, item in ipairs(list) do rows[i] = { key(item), i, item } end
  table.sort(rows, function(a, b)
    local order = values.compare(a[1], b[1])
    if order ~= 0 then return (order < 0) ~= reverse end
    return a[2] < b[2]
  end)
  for i, row in ipairs(rows) do rows[i] = row[3] end
  return rows
end
filters.sort = function(x, args, named)
  local reverse, exact = truth(argument(args, named, 1, "reverse", false)), truth(argument(args, named, 2, "case_sensitive", false))
  local attribute = argument(args, named, 3, "attribute")
  return sorted(items(x), function(item)
    local key = item
    if attribute then key = attribute_of(item, attribute) end
    return exact and key or folded(key)
  end, reverse)
end
filters.dictsort = function(x) return sorted(values.pairs_of(x), function(pair) return folded(pair[1]) end, false) end
filters.unique = function(x)
  local list = {}
  for _, item in ipairs(items(x)) do
    local known = false
    for _, other in ipairs(list) do known = known or values.equal(folded(item), folded(other)) end
    if not known then list[#list + 1] = item end
  end
  return list
end
filters.indent = function(x, args, named)
  local width, first = argument(args, named, 1, "width", 4), truth(argument(args, named, 2, "first", false))
  local blank = truth(argument(args, named, 3, "blank", false))
  local space = type(width) == "number" and (" "):rep(width) or text_of(width)
  local lines = {}
  for line in (text_of(x) .. "\n"):gmatch "(.-)\n" do
    local indented = #lines == 0 and first or #lines > 0 and (blank or line ~= "")
    lines[#lines + 1] = (indented and space or "") .. line
  end
  return table.concat(lines, "\n")
end
local html = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&#34;", ["'"] = "&#39;" }
filters.escape = function(x) return (text_of(x):gsub("[&<>\"']", html)) end

filters.map = function(x, args, named)
  if named.attribute ~= nil then
    return each(x, function(item)
      local value = attribute_of(item, named.attribute)
      if value == nil then return named.default == nil and null or named.default end
      return value
    end)
  end
  local filter = filters[args[1]] or fail("there is no filter '%s'", text_of(args[1]))
  local rest = { table.unpack(args, 2) }
  return each(x, function(item) return filter(item, rest, named) end)
end

-- select, reject: items for which a test holds or does not; selectattr, rejectattr: by an attribute.
local function choosing(wanted, by_attribute)
  return function(x, args, named)
    local skip = by_attribute and 1 or 0
    local name = args[1 + skip]
    local test = name ~= nil and (tests[name] or fail("there is no test '%s'", text_of(name))) or truth
    local rest = { table.unpack(args, 2 + skip) }
    return each(x, function(item)
      local value = item
      if by_attribute then value = attribute_of(item, args[1]) end
      if truth(test(value, rest, named)) == wanted then return item end
      return nil
    end)
  end
end
filters.select, filters.reject = choosing(true, false), choosing(false, false)
filters.selectattr, filters.rejectattr = choosing(true, true), choosing(false, true)

filters.count, filters.d, filters.e = filters.length, filters.default, filters.escape

tests.defined = function(x) return x ~= nil end
tests.undefined = function(x) return x == nil end
tests.none = function(x) return x == null end
tests.string = function(x) return type(x) == "string" end
tests.number = function(x) return type(x) == "number" or type(x) == "boolean" end
tests.integer = function(x) return math.type(x) == "integer" end
tests.float = function(x) return math.type(x) == "float" end
tests.boolean = function(x) return type(x) == "boolean" end
tests["true"] = function(x) return x == true end
tests["false"] = function(x) return x == false end
tests.mapping = values.is_dictionary
tests.sequence = function(x) return type(x) == "string" or type(x) == "table" end
tests.iterable = function(x) return x == nil or type(x) == "string" or type(x) == "table" end
tests.callable = function(x) return type(x) == "function" end
tests.even = function(x) return x % 2 == 0 end
tests.odd = function(x) return x % 2 == 1 end
tests.divisibleby = function(x, args) return x % args[1] == 0 end
tests.lower = function(x) return values.lower(text_of(x)) == text_of(x) end
tests.upper = function(x) return values.upper(text_of(x)) == text_of(x) end
tests["in"] = function(x, args) return values.contains(args[1], x) end
tests.sameas = function(x, args) return rawequal(x, args[1]) end
tests.filter = function(x) return filters[x] ~= nil end
tests.test = function(x) return tests[x] ~= nil end
tests.eq = function(x, args) return values.equal(x, args[1]) end
tests.ne = function(x, args) return not values.equal(x, args[1]) end
tests.lt = function(x, args) return values.compare(x, args[1]) < 0 end
tests.le = function(x, args) return values.compare(x, args[1]) <= 0 end
tests.gt = function(x, args) return values.compare(x, args[1]) > 0 end
tests.ge = function(x, args) return values.compare(x, args[1]) >= 0 end
for name, other in pairs { equalto = "eq", ["=="] = "eq", ["!="] = "ne", lessthan = "lt", ["<"] = "lt", ["<="] = "le",
  greaterthan = "gt", [">"] = "gt", [">="] = "ge" } do
  tests[name] = tests[other]
end

return { filters = filters, tests = tests }
