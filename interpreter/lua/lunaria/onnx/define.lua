-- The table of ONNX operators, which the files beside fill, and what they have in common.
--
-- An operator is a function that is called once for each node, when a model is loaded, with the node's attributes and the
-- node; it gives the function that the model calls with the node's inputs. What an attribute may not be is said then.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local ops = ms.ops

local M = { operators = {} }

local kinds = {
  i = "integer", f = "number", s = "string", t = "tensor", g = "graph",
  y = "other", ints = "integers", floats = "numbers", strings = "strings",
}

-- "axis:i=1 pads:ints mode:s=constant body:g!" as { axis = { kind = "integer", default = 1 } ... }; "!": must be there.
local function parse(spec)
  local attributes = {}
  for word in spec:gmatch "%S+" do
    local name, kind, required, default = word:match "^([%w_]+):(%a+)(!?)=?(.*)$"
    kind = kinds[kind]
    if kind == "integer" then
      default = math.tointeger(tonumber(default))
    elseif kind == "number" then
      default = tonumber(default)
      default = default and default + 0.0
    elseif default == "" then
      default = nil
    end
    attributes[name] = { kind = kind, required = required == "!", default = default }
  end
  return attributes
end

--- Adds operators: their names, the attributes, the least and the greatest number of inputs, and the function for a node.
function M.define(names, spec, least, most, make)
  local attributes = parse(spec)
  for name in names:gmatch "%S+" do
    local row = { attributes = attributes, least = least, most = most, make = make }
    local domain, op = name:match "^(.*):(.*)$"
    M.operators[(domain or "") .. ":" .. (op or name)] = row
  end
end

--- Operators of a fixed number of inputs that are a function of them and nothing else.
function M.plain(names, count, f)
  M.define(names, "", count, count, function() return f end)
end

--- The elements of a tensor of integers as a list.
function M.integers(t)
  if t.ndim == 0 then return { t:item() } end
  if t.ndim > 1 then t = ops.reshape(t, { -1 }) end
  return t:tolist()
end

--- The list of an input that is known when the model is loaded, else nil.
function M.known_integers(node, index)
  local t = node.known[index]
  return t and M.integers(t)
end

--- A function that gives the list in the tensor: the known one where there is one.
function M.list_reader(node, index)
  local known = M.known_integers(node, index)
  if known then return function() return known end end
  return function(t) return t and M.integers(t) end
end

--- The number in a tensor of one element.
function M.number(t)
  if t.ndim > 0 then t = ops.reshape(t, {}) end
  return t:item()
end

-- What a model of a few bytes may ask for: so many numbers in lists that are made for a node outside of tensors. Tensors are asked for
-- as a whole, and what is larger than the memory is an error at once.
M.most_listed = 1 << 25

--- The number of a list's elements, given as a product of sizes, which is an error past what a node may ask for.
function M.listed(first, ...)
  local n = first + 0.0
  for i = 1, select("#", ...) do n = n * (select(i, ...)) end
  if n >= 0 and n <= M.most_listed then return first end
  return arguments.fail("onnx", ("lists of %.4g numbers are asked for; at most %d are made for a node"):format(n, M.most_listed))
end

--- The axes from one on.
function M.axes_from(x, axis)
  local from = M.axis(x, axis)
  if from < 0 or from > x.ndim then
    arguments.fail("onnx", ("the axis %d is none of a tensor of %d axes"):format(axis, x.ndim))
  end
  local list = {}
  for i = from, x.ndim - 1 do list[#list + 1] = i end
  return list
end

--- An axis from the front.
function M.axis(x, axis)
  return axis < 0 and axis + x.ndim or axis
end

--- A dtype from TensorProto.DataType, or the node's error.
function M.dtype(node, number)
  local dtype, name = require "lunaria.onnx_files".dtype(number)
  if not dtype then node.fail(("the type %s is none that tensors have"):format(name)) end
  return dtype
end

--- { 0, 1, ... n - 1 } with one of them left out.
function M.axes_without(n, axis)
  local list = {}
  for i = 0, n - 1 do
    if i ~= axis then list[#list + 1] = i end
  end
  return list
end

--- The sizes of a tensor as a plain list.
function M.sizes(x)
  local list = {}
  for i = 1, x.ndim do list[i] = x.shape[i] end
  return list
end

--- The tensor with its axis moved to another place.
function M.move(x, from, to)
  if from == to then return x end
  return ops.movedim(x, from, to)
end

--- Whether the dtype has a fraction.
local floats = { [ms.float16] = true, [ms.bfloat16] = true, [ms.float32] = true, [ms.float64] = true }
function M.is_float(dtype) return floats[dtype] == true end

-- What larger numbers become when they are stored in 8 bits and saturate.
M.largest_float8 = { [ms.float8_e4m3fn] = 448.0, [ms.float8_e5m2] = 57344.0 }

--- Applies f in float32 where x is a float of 16 bits, and gives back what it came as.
function M.widened(x, f)
  local dtype = x.dtype
  if dtype == ms.float16 or dtype == ms.bfloat16 then return ops.cast(f(ops.cast(x, ms.float32)), dtype) end
  return f(x)
end

return M
