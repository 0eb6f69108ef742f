-- Tables of tensors and plain values as bytes, and back: what a strategy remembers between iterations.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local core = require "lunaria.federated_server_core"

local M = {}

-- A table that JSON has no form for is a list of its pairs; a tensor is its place in the list of tensors.
local function outline(where, value, tensors)
  if ms.is_tensor(value) then
    tensors[#tensors + 1] = { name = ("t%d"):format(#tensors + 1), tensor = value }
    return { tensor = #tensors }
  end
  local kind = type(value)
  if kind == "number" and math.type(value) == "float" then return { float = ("%a"):format(value) } end
  if kind == "number" or kind == "string" or kind == "boolean" then return value end
  if kind ~= "table" or getmetatable(value) ~= nil then
    arguments.fail(where, "a state is made of tables, tensors, numbers, texts and booleans, got " .. arguments.describe(value))
  end
  local keys = {}
  for key in pairs(value) do
    if type(key) ~= "string" and math.type(key) ~= "integer" then
      arguments.fail(where, "keys of a state are texts and integers, got " .. arguments.describe(key))
    end
    keys[#keys + 1] = key
  end
  -- An order of their own, so that equal states are equal bytes.
  table.sort(keys, function(a, b)
    if type(a) == type(b) then return a < b end
    return type(a) == "number"
  end)
  local pairs_of = ms.json.array {}
  for i, key in ipairs(keys) do pairs_of[i] = ms.json.array { key, outline(where, value[key], tensors) } end
  return { pairs = pairs_of }
end

local function filled(value, tensors)
  if type(value) ~= "table" then return value end
  if value.tensor then return tensors[value.tensor].tensor end
  if value.float then return tonumber(value.float) end
  local t = {}
  for _, pair in ipairs(value.pairs) do t[pair[1]] = filled(pair[2], tensors) end
  return t
end

--- The bytes of a table. where: for messages.
function M.pack(where, value)
  local tensors = {}
  local text = ms.json.encode(outline(where, value, tensors))
  return core.pack(tensors, text)
end

--- The table that pack was given.
function M.unpack(bytes)
  local tensors, text = core.unpack(bytes)
  return filled(ms.json.decode(text), tensors)
end

return M
