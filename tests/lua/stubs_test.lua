-- lunaria stubs: annotations for editors. They are read by a parser of their grammar: every type that is named is there, every name of
-- the library has one, and what it takes is what help says. 2 s.
-- Eager mode only: nothing is computed.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local registry = require "lunaria.registry"
local entries = require "lunaria.help.entries"

local program = arg[-1]
local folder = os.tmpname()
os.remove(folder)
assert(os.execute(("'%s' stubs '%s' > /dev/null"):format(program, folder)))

local files = {}
for path in io.popen(("find '%s' -name '*.lua'"):format(folder)):lines() do
  local file <close> = assert(io.open(path))
  files[path:sub(#folder + 2)] = file:read "a"
end
os.execute(("rm -r '%s'"):format(folder))

local builtin = {}
for name in ("any nil boolean number integer string table function thread userdata self"):gmatch "%a+" do builtin[name] = true end

local classes, used = {}, {}

-- Reads a type at a place; gives the place behind it.
local read_type

local function fail(text, at) error(("no type at %d: %s"):format(at, text), 0) end

local function read_list(text, at, closing)
  at = text:match("^%s*()", at)
  while text:sub(at, at) ~= closing do
    local name, after = text:match("^([%a_][%w_]*%??):%s*()", at)
    if not name then name, after = text:match("^(%.%.%.):%s*()", at) end
    if not name then fail(text, at) end
    at = read_type(text, after)
    at = text:match("^%s*,%s*()", at) or text:match("^%s*()", at)
    if at > #text then fail(text, at) end
  end
  return at + 1
end

local function read_primary(text, at)
  local after = text:match('^"[^"]*"()', at)
  if after then return after end
  after = text:match("^fun%(()", at)
  if after then
    at = read_list(text, after, ")")
    local result = text:match("^:%s*()", at)
    return result and read_type(text, result) or at
  end
  if text:sub(at, at) == "{" then return read_list(text, at + 1, "}") end
  if text:sub(at, at) == "(" then
    at = read_type(text, at + 1)
    if text:sub(at, at) ~= ")" then fail(text, at) end
    return at + 1
  end
  local name
  name, after = text:match("^([%a_][%w_%.]*[%w_])()", at)
  if not name then fail(text, at) end
  if not builtin[name] then used[name] = true end
  return after
end

function read_type(text, at)
  at = read_primary(text, at)
  while text:find("^%[%]", at) do at = at + 2 end
  if text:sub(at, at) == "?" then at = at + 1 end
  local after = text:match("^%s*|%s*()", at)
  return after and read_type(text, after) or at
end

local function ends_or_text(text, at) assert(at > #text or text:find("^%s", at) or text:find("^,", at), text) end

-- One annotation; gives what it is about.
local readers = {
  meta = function() end,
  class = function(text)
    local name, parent = text:match "^([%w_%.]+)%s*:%s*([%w_%.]+)$"
    name = name or text:match "^([%w_%.]+)$" or fail(text, 1)
    assert(not classes[name], name .. " is there twice")
    classes[name] = true
    if parent then used[parent] = true end
  end,
  field = function(text)
    local at = text:match "^%[[%w_]+%]%s+()" or text:match "^[%a_][%w_]*%??%s+()" or fail(text, 1)
    ends_or_text(text, read_type(text, at))
  end,
  param = function(text)
    local name, at = text:match "^([%a_][%w_]*)%??%s+()"
    if not name then name, at = text:match "^(%.%.%.)%s+()" end
    ends_or_text(text, read_type(text, at or fail(text, 1)))
    return name
  end,
  ["return"] = function(text) ends_or_text(text, read_type(text, 1)) end,
  type = function(text) assert(read_type(text, 1) > #text, text) end,
  overload = function(text) assert(text:find "^fun%(" and read_type(text, 1) > #text, text) end,
  operator = function(text)
    assert(text:find "^%a+%(any%): lunaria%.Tensor$" or text:find "^unm: lunaria%.Tensor$" or text:find "^len: integer$", text)
  end,
}

local functions = {}  -- { parameters, number of overloads } by name

t.test("every line is Lua or an annotation, and every parameter has one", function()
  for path, text in pairs(files) do
    assert(load(text, "@" .. path))
    local parameters, overloads = {}, 0
    for line in text:gmatch "[^\n]*" do
      local tag, rest = line:match "^%-%-%-@(%a+)%s*(.*)$"
      if tag then
        local reader = readers[tag] or error(path .. ": " .. line)
        local ok, name = pcall(reader, rest)
        if not ok then error(("%s: %s\n%s"):format(path, line, name)) end
        if tag == "param" then parameters[#parameters + 1] = name end
        if tag == "overload" then overloads = overloads + 1 end
      elseif line:find "^function " then
        local name, list = line:match "^function ([%w_%.:]+)%((.-)%) end$"
        t.equal(table.concat(parameters, ", "), list, line)
        functions[name] = { parameters = parameters, overloads = overloads }
        parameters, overloads = {}, 0
      elseif line == "" or line:find "^local " then
        parameters, overloads = {}, 0
      end
    end
  end
end)

t.test("every type that is named is there", function()
  for name in pairs(used) do assert(classes[name], name) end
  for _, name in ipairs { "lunaria", "lunaria.nn", "lunaria.ops", "lunaria.Tensor", "lunaria.nn.Cell", "lunaria.nn.Dense.class" } do
    assert(classes[name], name)
  end
end)

t.test("every name of the library has an annotation", function()
  local missing, count = {}, 0
  for name, entry in pairs(entries.names()) do
    local module, last = name:match "^(ms[%w_%.]*)%.([%a_][%w_]*)$"
    if module and last ~= "repeat" then
      local type = "lunaria" .. module:sub(3)
      local text, full = files[type:gsub("%.", "/") .. ".lua"], type:gsub("%.", "_") .. "." .. last
      count = count + 1
      if not text or not functions[full] and not text:find("\n---@field " .. last .. " ", 1, true) then missing[#missing + 1] = name end
    end
  end
  for _, name in ipairs(registry.parts()) do
    local text = files["lunaria.lua"]
    if not functions["lunaria." .. name] and not text:find("\n---@field " .. name .. " ", 1, true) then missing[#missing + 1] = name end
  end
  table.sort(missing)
  t.equal(table.concat(missing, " "), "")
  assert(count > 2000, count)
end)

t.test("operators take what their entries say, by names too, and are methods of tensors", function()
  for _, op in ipairs(registry.entries()) do
    local known = functions["lunaria_ops." .. op.name] or error(op.name)
    local names, optional = {}, false
    for i, p in ipairs(op.parameters) do
      names[i] = p.name == "end" and "stop" or p.name
      optional = optional or p.optional or p.has_default
    end
    t.equal(known.parameters, names, op.name)
    assert(not optional or known.overloads > 0, op.name)
    if op.method then
      table.remove(names, 1)
      t.equal((functions["lunaria_Tensor:" .. op.name] or error(op.name)).parameters, names, op.name)
    end
  end
end)

t.test("a layer is made by position and by names, and is a cell", function()
  local text = files["lunaria/nn.lua"]
  local about = text:match "%-%-%-@class lunaria%.nn%.Dense%.class.-\nlocal "
  for _, part in ipairs { "fun(in_channels: ", "options: { weight_init?: ", "has_bias?: boolean", "): lunaria.nn.Dense", "extend fun(" } do
    assert(about:find(part, 1, true), part .. " is not in\n" .. about)
  end
  assert(text:find("---@class lunaria.nn.Dense : lunaria.nn.Cell", 1, true))
  assert(text:find("function lunaria_nn_Cell:set_train(", 1, true))
  assert(ms)
end)

t.finish()
