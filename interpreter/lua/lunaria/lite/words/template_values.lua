-- The values of chat templates, as Python has them, in Lua's: undefined is nil, None json.null, a list a table of items, a dictionary a
-- table of names. Dictionaries that a template or an ordered JSON text makes know the order of their names: the field `keys` of their
-- metatable; others are shown in alphabetical order.
local ms = require "lunaria"
local native = require "lunaria.words"

local values = {}
local null = ms.json.null
local array_meta = getmetatable(ms.json.array {})

local function fail(message, ...) error({ template = message:format(...) }, 0) end
values.fail = fail

function values.dictionary() return setmetatable({}, { keys = {}, __name = "dictionary" }) end
local function keys_of(t)
  local meta = getmetatable(t)
  if meta and meta.keys then return meta.keys end
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end
values.keys_of = keys_of
function values.put(t, key, value)
  local meta = getmetatable(t)
  if t[key] == nil and meta and meta.keys then meta.keys[#meta.keys + 1] = key end
  t[key] = value
end

local function is_list(x)
  if type(x) ~= "table" then return false end
  local meta = getmetatable(x)
  if meta == array_meta then return true end
  if meta and meta.keys then return false end
  return #x > 0 or next(x) == nil
end
values.is_list = is_list
local function is_dictionary(x) return type(x) == "table" and not is_list(x) end
values.is_dictionary = is_dictionary

-- The name that Python has for the type of a value.
local function kind_of(x)
  if x == nil then return "undefined" end
  if x == null then return "None" end
  if type(x) == "number" then return math.type(x) == "integer" and "int" or "float" end
  return ({ string = "str", boolean = "bool", ["function"] = "function" })[type(x)] or is_list(x) and "list" or "dict"
end
values.kind_of = kind_of

function values.truth(x)
  if x == nil or x == null or x == false or x == 0 or x == "" then return false end
  return type(x) ~= "table" or next(x) ~= nil
end

local function equal(a, b)
  if type(a) ~= type(b) or type(a) ~= "table" then return a == b end
  if a == b then return true end
  if is_list(a) ~= is_list(b) then return false end
  for key, value in pairs(a) do
    if not equal(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end
values.equal = equal

local function float_text(x)
  if x ~= x then return "nan" end
  if x == math.huge or x == -math.huge then return x > 0 and "inf" or "-inf" end
  return ms.json.encode(x)
end

local escapes = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\" }
local function quoted(text)
  local quote = text:find("'", 1, true) and not text:find('"', 1, true) and '"' or "'"
  local inside = text:gsub("[%c\\]", function(c) return escapes[c] or ("\\x%02x"):format(c:byte()) end)
  return quote .. (quote == "'" and inside:gsub("'", "\\'") or inside) .. quote
end

local text_of
-- As Python's repr.
local function shown(x)
  if type(x) == "string" then return quoted(x) end
  if type(x) ~= "table" then return text_of(x) end
  local parts = {}
  if is_list(x) then
    for i, item in ipairs(x) do parts[i] = shown(item) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  for i, key in ipairs(keys_of(x)) do parts[i] = shown(key) .. ": " .. shown(x[key]) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- As Python's str.
function text_of(x)
  if type(x) == "string" then return x end
  if x == nil then return "" end
  if x == null then return "None" end
  if type(x) == "boolean" then return x and "True" or "False" end
  if math.type(x) == "integer" then return ("%d"):format(x) end
  if type(x) == "number" then return float_text(x) end
  if type(x) == "table" then return shown(x) end
  return "<function>"
end
values.text_of = text_of

-- The characters of a text. Bytes that are no UTF-8 are characters, too.
local function letters_of(text)
  local list = {}
  for letter in text:gmatch "[\0-\x7F\xC2-\xFD][\x80-\xBF]*" do list[#list + 1] = letter end
  return list
end

function values.length(x)
  if type(x) == "string" then return utf8.len(x) or #letters_of(x) end
  if type(x) ~= "table" then fail("a value of type %s has no length", kind_of(x)) end
  return is_list(x) and #x or #keys_of(x)
end

-- The items that a loop goes through.
function values.items(x)
  if x == nil then return {} end
  if type(x) == "string" then return letters_of(x) end
  if type(x) ~= "table" then fail("a value of type %s is no list", kind_of(x)) end
  return is_list(x) and x or keys_of(x)
end

function values.contains(list, x)
  if type(list) == "string" then
    if type(x) ~= "string" then fail("'in <text>' needs a text on its left, got %s", kind_of(x)) end
    return list:find(x, 1, true) ~= nil
  end
  if list == nil then return false end
  if type(list) ~= "table" then fail("a value of type %s is no list", kind_of(list)) end
  if not is_list(list) then return x ~= nil and list[x] ~= nil end
  for _, item in ipairs(list) do
    if equal(item, x) then return true end
  end
  return false
end

-- Bounds of a slice as Python has them, from 1.
local function bounds(size, from, to, step)
  local function place(at, missing)
    if at == nil or at == null then return missing end
    if at < 0 then at = at + size end
    return math.max(step > 0 and 0 or -1, math.min(at, step > 0 and size or size - 1))
  end
  if step > 0 then return place(from, 0) + 1, place(to, size) end
  return place(from, size - 1) + 1, place(to, -1) + 2
end

function values.slice(x, from, to, step)
  step = (step == nil or step == null) and 1 or step
  if step == 0 then fail "the step of a slice must not be 0" end
  if type(x) ~= "string" and not is_list(x) then fail("a value of type %s cannot be sliced", kind_of(x)) end
  local list, made = type(x) == "string" and letters_of(x) or x, {}
  local first, last = bounds(#list, from, to, step)
  for i = first, last, step do made[#made + 1] = list[i] end
  return type(x) == "string" and table.concat(made) or made
end

-- x[key]; nil where there is none.
function values.item(x, key)
  if type(x) == "string" or is_list(x) then
    if math.type(key) ~= "integer" then return nil end
    local list = type(x) == "string" and letters_of(x) or x
    return list[key < 0 and #list + key + 1 or key + 1]
  end
  if type(x) == "table" and key ~= nil then return x[key] end
  return nil
end

function values.compare(a, b)
  if type(a) == "boolean" then a = a and 1 or 0 end
  if type(b) == "boolean" then b = b and 1 or 0 end
  if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then return a < b and -1 or a > b and 1 or 0 end
  if is_list(a) and is_list(b) then
    for i = 1, math.min(#a, #b) do
      local order = values.compare(a[i], b[i])
      if order ~= 0 then return order end
    end
    return #a < #b and -1 or #a > #b and 1 or 0
  end
  fail("values of types %s and %s have no order", kind_of(a), kind_of(b))
end

local json_escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\b"] = "\\b", ["\f"] = "\\f" }
-- A character beyond ASCII as JSON's escapes: two for those beyond the first 65,536.
local function escaped(letter)
  local code = utf8.codepoint(letter)
  if code < 0x10000 then return ("\\u%04x"):format(code) end
  code = code - 0x10000
  return ("\\u%04x\\u%04x"):format(0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF))
end
local function json_quoted(text, ascii)
  text = text:gsub('[%c"\\]', function(c)
    if c == "\127" then return c end
    return json_escapes[c] or ("\\u%04x"):format(c:byte())
  end)
  if ascii then text = text:gsub("[\xC2-\xF4][\x80-\xBF]+", escaped) end
  return '"' .. text .. '"'
end

-- As Python's json.dumps without escapes of characters beyond ASCII. options: indent (a number), ascii, sorted, and the texts between
-- items and behind names.
function values.json(x, options, level)
  level = (level or 0) + 1
  if level > 200 then fail "a value is nested too deeply for JSON" end
  if x == nil then fail "an undefined value cannot be written as JSON" end
  if x == null then return "null" end
  if type(x) == "string" then return json_quoted(x, options.ascii) end
  if type(x) == "boolean" then return tostring(x) end
  if type(x) == "number" then return text_of(x) end
  if type(x) ~= "table" then fail("a value of type %s cannot be written as JSON", kind_of(x)) end
  local parts, list = {}, is_list(x)
  if list then
    for i, item in ipairs(x) do parts[i] = values.json(item, options, level) end
  else
    local keys = keys_of(x)
    if options.sorted then
      keys = { table.unpack(keys) }
      table.sort(keys)
    end
    for i, key in ipairs(keys) do
      parts[i] = json_quoted(text_of(key), options.ascii) .. (options.colon or ": ") .. values.json(x[key], options, level)
    end
  end
  local open, close, indent = list and "[" or "{", list and "]" or "}", options.indent
  if #parts == 0 then return open .. close end
  if not indent then return open .. table.concat(parts, options.comma or ", ") .. close end
  local line = "\n" .. (" "):rep(indent * level)
  return open .. line .. table.concat(parts, (options.comma or ",") .. line) .. "\n" .. (" "):rep(indent * (level - 1)) .. close
end

-- Python's methods of texts and dictionaries: f(value, arguments...).
local function set_of(chars)
  local set = {}
  for _, c in ipairs(letters_of(chars)) do set[c] = true end
  return set
end
local spaces = set_of(" \t\n\r\f\v\x1c\x1d\x1e\x1f\u{85}\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}" ..
  "\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}")
local function stripped(text, chars, left, right)
  local list, set = letters_of(text), (chars == nil or chars == null) and spaces or set_of(chars)
  local from, to = 1, #list
  while left and from <= to and set[list[from]] do from = from + 1 end
  while right and to >= from and set[list[to]] do to = to - 1 end
  return table.concat(list, "", from, to)
end

local function split(text, separator, most)
  local parts = {}
  most = (most == nil or most < 0) and math.huge or most
  if separator == nil or separator == null then
    local list, at = letters_of(text), 1
    while true do
      while spaces[list[at]] do at = at + 1 end
      if at > #list then return parts end
      local to = #parts < most and at or #list
      while to < #list and not spaces[list[to + 1]] do to = to + 1 end
      parts[#parts + 1], at = table.concat(list, "", at, to), to + 1
    end
  end
  if separator == "" then fail "an empty text separates nothing" end
  local at = 1
  while #parts < most do
    local from, to = text:find(separator, at, true)
    if not from then break end
    parts[#parts + 1] = text:sub(at, from - 1)
    at = to + 1
  end
  parts[#parts + 1] = text:sub(at)
  return parts
end

local function replaced(text, what, with, most)
  most = (most == nil or most == null or most < 0) and math.huge or most
  local parts, at, count = {}, 1, 0
  if what == "" then fail "an empty text cannot be replaced" end
  while count < most do
    local from, to = text:find(what, at, true)
    if not from then break end
    parts[#parts + 1] = text:sub(at, from - 1) .. with
    at, count = to + 1, count + 1
  end
  return table.concat(parts) .. text:sub(at)
end
values.replaced = replaced

local function any_of(what, test)
  for _, one in ipairs(type(what) == "table" and what or { what }) do
    if test(one) then return true end
  end
  return false
end

local function upper(text) return native.upper(text) end
local function lower(text) return native.lower(text) end
values.upper, values.lower = upper, lower
local function capitalized(text)
  local first, rest = text:match "^([\0-\x7F\xC2-\xFD][\x80-\xBF]*)(.*)$"
  return first and upper(first) .. lower(rest) or text
end
local function titled(text) return (text:gsub("[%a\x80-\xFF]+", capitalized)) end
values.capitalized, values.titled = capitalized, titled
values.strip = function(text, chars) return stripped(text, chars, true, true) end

local texts = {
  strip = values.strip,
  lstrip = function(s, chars) return stripped(s, chars, true, false) end,
  rstrip = function(s, chars) return stripped(s, chars, false, true) end,
  split = split,
  rsplit = function(s, separator, most)
    if most == nil or most < 0 then return split(s, separator) end
    local parts = split(s, separator)
    if separator == nil or separator == null then separator = " " end
    while #parts > most + 1 do parts[1] = parts[1] .. separator .. table.remove(parts, 2) end
    return parts
  end,
  splitlines = function(s)
    local parts = {}
    for line in (s:gsub("\r\n?", "\n") .. (s:find "[\r\n]$" and "" or "\n")):gmatch "(.-)\n" do parts[#parts + 1] = line end
    return s == "" and {} or parts
  end,
  startswith = function(s, what) return any_of(what, function(one) return s:sub(1, #one) == one end) end,
  endswith = function(s, what) return any_of(what, function(one) return one == "" or s:sub(-#one) == one end) end,
  upper = upper, lower = lower, capitalize = capitalized, title = titled,
  replace = replaced,
  find = function(s, what) return (s:find(what, 1, true) or 0) - 1 end,
  rfind = function(s, what)
    local last, at = -1, 0
    while true do
      at = s:find(what, at + 1, true)
      if not at then return last end
      last = at - 1
    end
  end,
  count = function(s, what) return #split(s, what) - 1 end,
  join = function(s, list)
    local parts = {}
    for i, one in ipairs(values.items(list)) do parts[i] = one end
    return table.concat(parts, s)
  end,
  removeprefix = function(s, what) return s:sub(1, #what) == what and s:sub(#what + 1) or s end,
  removesuffix = function(s, what) return what ~= "" and s:sub(-#what) == what and s:sub(1, -#what - 1) or s end,
  isdigit = function(s) return s:find "^%d+$" ~= nil end,
  isalpha = function(s) return s:find "^%a+$" ~= nil end,
  isspace = function(s) return s ~= "" and stripped(s, nil, true, false) == "" end,
}
local dictionaries = {
  get = function(d, key, missing)
    local value = d[key]
    if value == nil then return missing == nil and null or missing end
    return value
  end,
  keys = keys_of,
  values = function(d)
    local list = {}
    for i, key in ipairs(keys_of(d)) do list[i] = d[key] end
    return list
  end,
  items = function(d)
    local list = {}
    for i, key in ipairs(keys_of(d)) do list[i] = { key, d[key] } end
    return list
  end,
}
values.pairs_of = dictionaries.items
local lists = {
  count = function(list, x)
    local count = 0
    for _, item in ipairs(list) do count = count + (equal(item, x) and 1 or 0) end
    return count
  end,
  index = function(list, x)
    for i, item in ipairs(list) do
      if equal(item, x) then return i - 1 end
    end
    fail "the list does not have the value"
  end,
}

-- The method of a value, as f(arguments...); nil where there is none.
function values.method(x, name)
  local f
  if type(x) == "string" then f = texts[name]
  elseif is_list(x) then f = lists[name] or (next(x) == nil and dictionaries[name])
  elseif type(x) == "table" then f = dictionaries[name] end
  return f and function(...) return f(x, ...) end
end

return values
