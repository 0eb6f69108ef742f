-- MindSpore's types beside the dtypes: kinds of dtypes and of values, for ms.issubclass_, and what dtypes are called elsewhere.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local M = {}

-- What a kind is called and what it covers; a kind itself is a table without fields.
local names, covers = {}, {}
local Kind = { __name = "kind", __tostring = function(of) return names[of] end }

local function kind(name, is_of)
  local made = setmetatable({}, Kind)
  names[made], covers[made] = name, is_of
  return made
end

local function is_dtype(value) return debug.getmetatable(value) == debug.getmetatable(ms.float32) end
local function dtype_named(pattern)
  return function(value) return is_dtype(value) and tostring(value):find(pattern) ~= nil end
end

M.number = kind("Number", is_dtype)
M.Int = kind("Int", dtype_named "^Int")
M.tensor_type = kind("Tensor", ms.is_tensor)
M.string = kind("String", function(value) return type(value) == "string" end)
M.list_ = kind("List", function(value) return type(value) == "table" and getmetatable(value) ~= Kind end)
M.tuple_ = kind("Tuple", covers[M.list_])
M.type_none = kind("None", function(value) return value == nil end)
M.Type = kind("Type", function(value) return is_dtype(value) or getmetatable(value) == Kind end)
-- Widths of quantised numbers, as MindSpore counts them: INT1 to INT16, then UINT1 to UINT16.
local Width = { __name = "quantised type", __tostring = function(of) return "QuantDtype." .. of.name end }
local widths = {}
for place, prefix in ipairs { "INT", "UINT" } do
  for bits = 1, 16 do
    local name = prefix .. bits
    widths[name] = setmetatable({ name = name, num_bits = bits, value = (place - 1) * 16 + bits - 1 }, Width)
  end
end
M.QuantDtype = setmetatable({}, { __name = "quantised types", __index = widths })

M.TensorType, M._null = M.tensor_type, M.type_none

--- Whether a dtype, a kind or another value is of a kind: ms.number (dtypes), ms.Int (those of signed integers), ms.tensor_type,
--- ms.string, ms.list_ and ms.tuple_ (tables), ms.type_none (nil), ms.Type (dtypes and kinds). A dtype is of itself.
---     > ms.issubclass_(ms.int16, ms.Int) and not ms.issubclass_(ms.float16, ms.Int) --> true
function M.issubclass_(value, of)
  if is_dtype(of) then return value == of end
  if getmetatable(of) ~= Kind then
    arguments.fail("issubclass_", "the second argument must be a dtype or a kind such as ms.number, got " .. arguments.describe(of))
  end
  return value == of or covers[of](value)
end

local function dtype_of(where, value)
  if type(value) == "string" then
    local ok, x = pcall(ms.zeros, { 0 }, { dtype = value })
    if ok then return x.dtype end
  elseif is_dtype(value) then
    return value
  end
  return arguments.fail(where, "a dtype such as ms.float32 or its name is expected, got " .. arguments.describe(value))
end

--- What numpy calls a dtype.
---     > ms.dtype_to_nptype(ms.bool_) --> bool_
function M.dtype_to_nptype(dtype)
  local name = tostring(dtype_of("dtype_to_nptype", dtype)):lower()
  return name == "bool" and "bool_" or name
end

--- What the elements of a tensor of this dtype are in Lua: "integer", "float" or "boolean"; "table" for complex numbers.
---     > ms.dtype_to_pytype(ms.uint8) --> integer
function M.dtype_to_pytype(dtype)
  local name = tostring(dtype_of("dtype_to_pytype", dtype))
  return name == "Bool" and "boolean" or name:find "Int" and "integer" or name:find "Complex" and "table" or "float"
end

local dtypes = { integer = ms.int64, float = ms.float32, number = ms.float32, boolean = ms.bool_ }

--- The dtype of tensors that are made of values of a type of Lua: "integer", "float", "number" or "boolean".
---     > ms.pytype_to_dtype "integer" --> Int64
function M.pytype_to_dtype(name)
  local dtype = dtypes[name]
  if not dtype then
    arguments.fail("pytype_to_dtype", ("'integer', 'float', 'number' or 'boolean' is expected, got %s"):format(arguments.describe(name)))
  end
  return dtype
end

--- The dtype of a tensor, of a number or a boolean in a tensor, or the kind of another value.
---     > ms.get_py_obj_dtype "x" --> String
function M.get_py_obj_dtype(value)
  if ms.is_tensor(value) then return value.dtype end
  local dtype = dtypes[math.type(value) or type(value)]
  if dtype then return dtype end
  for _, known in ipairs { M.Type, M.string, M.list_, M.type_none } do
    if covers[known](value) then return known end
  end
  return arguments.fail("get_py_obj_dtype", "there is no dtype for " .. arguments.describe(value))
end

return M
