-- ONNX forms of Lunaria's operators: handlers by operator. A handler is given the graph, the arguments by the names of
-- the operator's parameters, and the node (with the dtype and shape of its result), and gives the names of the results.
local ms = require "lunaria"

local handlers = {}

local function rank_of(v) return #v.shape end
local function axis_of(axis, rank) return axis < 0 and axis + rank or axis end
local function list_of(v)
  if type(v) == "table" then return v end
  return { v }
end

-- One input, one node.
for op, name in pairs {
  abs = "Abs", acos = "Acos", acosh = "Acosh", asin = "Asin", asinh = "Asinh", atan = "Atan", atanh = "Atanh", ceil = "Ceil",
  cos = "Cos", cosh = "Cosh", erf = "Erf", exp = "Exp", floor = "Floor", log = "Log", neg = "Neg", reciprocal = "Reciprocal",
  relu = "Relu", sigmoid = "Sigmoid", sign = "Sign", sin = "Sin", sinh = "Sinh", softsign = "Softsign", sqrt = "Sqrt",
  tan = "Tan", tanh = "Tanh", isnan = "IsNaN", isinf = "IsInf", logical_not = "Not", mish = "Mish", hardswish = "HardSwish",
  identity = "Identity", stop_gradient = "Identity", bitwise_not = "BitwiseNot",
} do
  handlers[op] = function(g, a) return g:add(name, { g:value(a.input or a.x or a.value) }) end
end

local function input(a) return a.input or a.x or a.input_x or a.logits end

handlers.round = function(g, a)
  if a.decimals and a.decimals ~= 0 then g:fail "decimals are not supported" end
  return g:add("Round", { g:value(a.input) })
end
handlers.leaky_relu = function(g, a) return g:add("LeakyRelu", { g:value(a.input) }, { alpha = a.alpha + 0.0 }) end
handlers.elu = function(g, a) return g:add("Elu", { g:value(a.input_x) }, { alpha = a.alpha + 0.0 }) end
handlers.selu = function(g, a) return g:add("Selu", { g:value(a.input_x) }) end
-- The standard has Celu for float32 alone, and Elu for all floats.
handlers.celu = function(g, a)
  local dtype, alpha = a.x.dtype, a.alpha + 0.0
  if dtype == ms.float32 then return g:add("Celu", { g:value(a.x) }, { alpha = alpha }) end
  local y = g:add("Elu", { g:add("Div", { g:value(a.x), g:number(alpha, dtype) }) }, { alpha = 1.0 })
  return g:add("Mul", { y, g:number(alpha, dtype) })
end
handlers.hardsigmoid = function(g, a) return g:add("HardSigmoid", { g:value(a.input) }, { alpha = 1 / 6, beta = 0.5 }) end
handlers.relu6 = function(g, a)
  return g:add("Clip", { g:value(a.x), g:number(0.0, a.x.dtype), g:number(6.0, a.x.dtype) })
end
handlers.silu = function(g, a)
  local x = g:value(a.input)
  return g:add("Mul", { x, g:add("Sigmoid", { x }) })
end
handlers.softplus = function(g, a)
  if a.beta ~= 1 then g:fail "beta is not supported" end
  return g:add("Softplus", { g:value(a.input) })
end
handlers.logsigmoid = function(g, a)
  return g:add("Neg", { g:add("Softplus", { g:add("Neg", { g:value(a.x) }) }) })
end
handlers.square = function(g, a)
  local x = g:value(a.input)
  return g:add("Mul", { x, x })
end
handlers.rsqrt = function(g, a) return g:add("Reciprocal", { g:add("Sqrt", { g:value(a.input) }) }) end
handlers.expm1 = function(g, a)
  return g:add("Sub", { g:add("Exp", { g:value(a.input) }), g:number(1.0, a.input.dtype) })
end
handlers.log1p = function(g, a)
  return g:add("Log", { g:add("Add", { g:value(a.input), g:number(1.0, a.input.dtype) }) })
end
local function logarithm(base)
  return function(g, a) return g:add("Div", { g:add("Log", { g:value(a.input) }), g:number(math.log(base), a.input.dtype) }) end
end
handlers.log2, handlers.log10 = logarithm(2), logarithm(10)
handlers.exp2 = function(g, a) return g:add("Pow", { g:number(2.0, a.input.dtype), g:value(a.input) }) end
handlers.tanhshrink = function(g, a)
  local x = g:value(a.input)
  return g:add("Sub", { x, g:add("Tanh", { x }) })
end
local function shrink(bias)
  return function(g, a) return g:add("Shrink", { g:value(a.input) }, { lambd = a.lambd + 0.0, bias = bias and a.lambd + 0.0 or 0.0 }) end
end
handlers.softshrink, handlers.hardshrink = shrink(true), shrink(false)
handlers.gelu_erf = function(g, a)
  local x, dtype = g:value(a.x), a.x.dtype
  local e = g:add("Erf", { g:add("Div", { x, g:number(math.sqrt(2), dtype) }) })
  local half = g:add("Mul", { x, g:number(0.5, dtype) })
  return g:add("Mul", { half, g:add("Add", { e, g:number(1.0, dtype) }) })
end
handlers.gelu_tanh = function(g, a)
  local x, dtype = g:value(a.x), a.x.dtype
  local cube = g:add("Mul", { g:add("Mul", { x, x }), x })
  local inner = g:add("Add", { x, g:add("Mul", { cube, g:number(0.044715, dtype) }) })
  local t = g:add("Tanh", { g:add("Mul", { inner, g:number(math.sqrt(2 / math.pi), dtype) }) })
  return g:add("Mul", { g:add("Mul", { x, g:number(0.5, dtype) }), g:add("Add", { t, g:number(1.0, dtype) }) })
end

-- Two inputs; a plain number has the dtype of the other one.
local function dtype_of(p, q, node)
  if type(p) == "table" and p.dtype then return p.dtype end
  if type(q) == "table" and q.dtype then return q.dtype end
  return node.dtype
end
local function pair(p, q) return function(a) return a[p], a[q] end end
local operands = {
  default = pair("input", "other"), pow = pair("input", "exponent"),
}
for op, name in pairs {
  add = "Add", sub = "Sub", mul = "Mul", pow = "Pow", maximum = "Max", minimum = "Min", equal = "Equal", greater = "Greater",
  greater_equal = "GreaterOrEqual", less = "Less", less_equal = "LessOrEqual", logical_and = "And", logical_or = "Or",
  logical_xor = "Xor", bitwise_and = "BitwiseAnd", bitwise_or = "BitwiseOr", bitwise_xor = "BitwiseXor",
} do
  handlers[op] = function(g, a, node)
    local p, q = (operands[op] or operands.default)(a)
    if p == nil then p = a.x end
    if q == nil then q = a.y end
    local dtype = dtype_of(p, q, node)
    return g:add(name, { g:value(p, dtype), g:value(q, dtype) })
  end
end
handlers.not_equal = function(g, a, node) return g:add("Not", { (handlers.equal(g, a, node)) }) end
handlers.div = function(g, a, node)
  if a.rounding_mode ~= nil then g:fail "rounding_mode is not supported" end
  return g:add("Div", { g:value(a.input, node.dtype), g:value(a.other, node.dtype) })
end
handlers.remainder = function(g, a, node)
  local x, y = g:value(a.input, node.dtype), g:value(a.other, node.dtype)
  if node.dtype == ms.float32 or node.dtype == ms.float64 or node.dtype == ms.float16 then
    return g:add("Sub", { x, g:add("Mul", { g:add("Floor", { g:add("Div", { x, y }) }), y }) })
  end
  return g:add("Mod", { x, y })
end
handlers.floor_divide = function(g, a, node)
  local x, y = g:value(a.input, node.dtype), g:value(a.other, node.dtype)
  if node.dtype == ms.float32 or node.dtype == ms.float64 or node.dtype == ms.float16 then
    return g:add("Floor", { g:add("Div", { x, y }) })
  end
  -- ONNX divides towards zero: without the remainder there is nothing to round.
  return g:add("Div", { g:add("Sub", { x, g:add("Mod", { x, y }) }), y })
end
handlers.where = function(g, a, node)
  return g:add("Where", { g:value(a.condition), g:value(a.input, node.dtype), g:value(a.other, node.dtype) })
end
handlers.masked_fill = function(g, a, node)
  return g:add("Where", { g:value(a.mask), g:value(a.value, node.dtype), g:value(a.input_x) })
end
handlers.clamp = function(g, a, node)
  local y = g:value(a.input)
  if a.min ~= nil then y = g:add("Max", { y, g:value(a.min, node.dtype) }) end
  if a.max ~= nil then y = g:add("Min", { y, g:value(a.max, node.dtype) }) end
  return y
end
handlers.cast = function(g, a, node) return g:cast(g:value(input(a)), node.dtype) end

-- Shapes.
local function reshaped(g, a, node) return g:reshape(g:value(input(a)), node.shape) end
for _, op in ipairs { "reshape", "squeeze", "expand_dims", "ravel", "flatten", "view", "unsqueeze" } do handlers[op] = reshaped end
handlers.broadcast_to = function(g, a, node) return g:add("Expand", { g:value(input(a)), g:integers(node.shape) }) end
handlers.expand_as = handlers.broadcast_to

local function permuted(g, name, perm) return g:add("Transpose", { name }, { perm = perm }) end
local function backwards(rank)
  local list = {}
  for i = 1, rank do list[i] = rank - i end
  return list
end
local function swapped(rank, p, q)
  local perm = {}
  for i = 0, rank - 1 do perm[i + 1] = i end
  p, q = axis_of(p, rank) + 1, axis_of(q, rank) + 1
  perm[p], perm[q] = perm[q], perm[p]
  return perm
end
handlers.transpose = function(g, a)
  local x = input(a)
  if a.dim1 then return permuted(g, g:value(x), swapped(rank_of(x), list_of(a.dims)[1], a.dim1)) end
  local rank, perm = rank_of(x), {}
  for i, axis in ipairs(a.dims or backwards(rank)) do perm[i] = axis_of(axis, rank) end
  return permuted(g, g:value(x), perm)
end
handlers.permute = function(g, a)
  local perm = {}
  for i, axis in ipairs(list_of(a.axis)) do perm[i] = axis_of(axis, rank_of(a.input)) end
  return permuted(g, g:value(a.input), perm)
end
handlers.t = function(g, a) return permuted(g, g:value(a.input), backwards(rank_of(a.input))) end
handlers.swapaxes = function(g, a)
  return permuted(g, g:value(a.input), swapped(rank_of(a.input), a.axis0, a.axis1))
end
handlers.movedim = function(g, a)
  local rank, from, to, perm, used = rank_of(a.x), list_of(a.source), list_of(a.destination), {}, {}
  for i, axis in ipairs(to) do
    perm[axis_of(axis, rank) + 1] = axis_of(from[i], rank)
    used[axis_of(from[i], rank)] = true
  end
  local next_axis = 0
  for i = 1, rank do
    if not perm[i] then
      while used[next_axis] do next_axis = next_axis + 1 end
      perm[i] = next_axis
      next_axis = next_axis + 1
    end
  end
  return permuted(g, g:value(a.x), perm)
end

handlers.concat = function(g, a)
  local names = {}
  for i, t in ipairs(a.tensors) do names[i] = g:value(t) end
  return g:add("Concat", names, { axis = a.axis })
end
handlers.flip = function(g, a)
  local axes, from, to, step = {}, {}, {}, {}
  for i, axis in ipairs(list_of(a.dims)) do
    axes[i], from[i], to[i], step[i] = axis_of(axis, rank_of(a.input)), -1, math.mininteger, -1
  end
  return g:slice(g:value(a.input), from, to, axes, step)
end
handlers.narrow = function(g, a)
  local start = a.start < 0 and a.start + a.input.shape[axis_of(a.axis, rank_of(a.input)) + 1] or a.start
  return g:slice(g:value(a.input), { start }, { start + a.length }, { a.axis })
end
handlers.slice = function(g, a, node)
  local to, axes, begin = {}, {}, list_of(a.begin)
  for i, from in ipairs(begin) do to[i], axes[i] = from + node.shape[i], i - 1 end
  return g:slice(g:value(input(a)), begin, to, axes)
end
-- The entries as what ONNX has: an ellipsis is left out, a new axis comes by reshaping, as does one that goes.
handlers.strided_slice = function(g, a, node)
  local x = input(a)
  local function bit(mask, i) return a[mask] >> (i - 1) & 1 == 1 end
  local begin, stop, strides = list_of(a.begin), list_of(a.stop), a.strides and list_of(a.strides) or {}
  local from, to, by, axes, axis, left = {}, {}, {}, {}, 0, 0
  for i = 1, #begin do
    if not bit("new_axis_mask", i) and not bit("ellipsis_mask", i) then left = left + 1 end
  end
  for i = 1, #begin do
    if bit("ellipsis_mask", i) then
      axis = #x.shape - left
    elseif not bit("new_axis_mask", i) then
      local step = strides[i] or 1
      local shrinks = bit("shrink_axis_mask", i)
      local k = #axes + 1
      axes[k], by[k] = axis, shrinks and 1 or step
      from[k] = bit("begin_mask", i) and (step > 0 and 0 or -1) or begin[i]
      to[k] = bit("end_mask", i) and (step > 0 and math.maxinteger or math.mininteger) or stop[i]
      if shrinks then to[k] = begin[i] == -1 and math.maxinteger or begin[i] + 1 end
      axis, left = axis + 1, left - 1
    end
  end
  local y = #axes > 0 and g:slice(g:value(x), from, to, axes, by) or g:value(x)
  return g:reshape(y, node.shape)
end

-- The places of the part among all elements are known: they are taken out of a tensor of places.
handlers.slice_assign = function(g, a, node)
  local size = 1
  for _, n in ipairs(node.shape) do size = size * n end
  local places = ms.ops.strided_slice(ms.ops.reshape(ms.ops.arange(size, nil, 1, ms.int64), node.shape), list_of(a.begin),
    list_of(a.stop), a.strides and list_of(a.strides) or nil, a.begin_mask, a.end_mask, a.ellipsis_mask, a.new_axis_mask,
    a.shrink_axis_mask)
  local shape = {}
  for i = 1, places.ndim do shape[i] = places.shape[i] end
  local value = g:reshape(g:add("Expand", { g:value(a.value, node.dtype), g:integers(shape) }), { -1 })
  local flat = g:reshape(g:value(a.input_x), { -1 })
  return g:reshape(g:add("ScatterElements", { flat, g:tensor(places:reshape { -1 }), value }, { axis = 0 }), node.shape)
end
local pad_modes = { constant = "constant", reflect = "reflect", replicate = "edge", edge = "edge" }
handlers.pad = function(g, a, node)
  local mode = pad_modes[a.mode]
  if not mode then g:fail(("the mode '%s' is not supported"):format(a.mode)) end
  local rank, list, pads = #node.shape, list_of(a.padding), {}
  for i = 1, 2 * rank do pads[i] = 0 end
  for i = 1, #list // 2 do
    pads[rank + 1 - i], pads[2 * rank + 1 - i] = list[2 * i - 1], list[2 * i]
  end
  return g:add("Pad", { g:value(a.input_x), g:integers(pads), g:value(a.value or 0, node.dtype) }, { mode = mode })
end
local function parts(g, x, lengths, axis) return g:add("Split", { g:value(x), g:integers(lengths) }, { axis = axis }, #lengths) end
handlers.split = function(g, a)
  local axis = axis_of(a.axis, rank_of(a.tensor))
  local lengths, all = a.split_size_or_sections, a.tensor.shape[axis + 1]
  if type(lengths) ~= "table" then
    local each = lengths
    lengths = {}
    for from = 0, all - 1, each do lengths[#lengths + 1] = math.min(each, all - from) end
  end
  return parts(g, a.tensor, lengths, axis)
end
handlers.chunk = function(g, a, node)
  local axis, lengths = axis_of(a.axis, rank_of(a.input)), {}
  local all = a.input.shape[axis + 1]
  local each = (all + a.chunks - 1) // a.chunks
  for from = 0, all - 1, each do lengths[#lengths + 1] = math.min(each, all - from) end
  if #lengths ~= node.count then g:fail "the number of parts is not understood" end
  return parts(g, a.input, lengths, axis)
end
handlers.unbind = function(g, a)
  local axis, names, shape = axis_of(a.dim, rank_of(a.input)), {}, {}
  for i, n in ipairs(a.input.shape) do
    if i ~= axis + 1 then shape[#shape + 1] = n end
  end
  for i = 1, a.input.shape[axis + 1] do names[i] = g:reshape(g:slice(g:value(a.input), { i - 1 }, { i }, { axis }), shape) end
  return table.unpack(names)
end
local function triangle(upper)
  return function(g, a) return g:add("Trilu", { g:value(a.input), g:number(a.diagonal, ms.int64) }, { upper = upper }) end
end
handlers.tril, handlers.triu = triangle(0), triangle(1)

-- Indices.
handlers.gather = function(g, a)
  return g:add("Gather", { g:value(a.input_params), g:value(a.input_indices, ms.int64) }, { axis = a.axis })
end
handlers.gather_elements = function(g, a)
  return g:add("GatherElements", { g:value(a.input), g:value(a.index, ms.int64) }, { axis = a.dim })
end
handlers.gather_nd = function(g, a) return g:add("GatherND", { g:value(a.input_x), g:value(a.indices, ms.int64) }) end
handlers.tensor_scatter_update = function(g, a)
  return g:add("ScatterND", { g:value(a.input_x), g:value(a.indices, ms.int64), g:value(a.updates) })
end
handlers.tensor_scatter_add = function(g, a)
  return g:add("ScatterND", { g:value(a.input_x), g:value(a.indices, ms.int64), g:value(a.updates) }, { reduction = "add" })
end
handlers.one_hot = function(g, a, node)
  local axis = a.axis or -1
  local off, on = g:value(a.off_value, node.dtype), g:value(a.on_value, node.dtype)
  local both = g:add("Concat", { g:reshape(off, { 1 }), g:reshape(on, { 1 }) }, { axis = 0 })
  return g:add("OneHot", { g:value(a.indices), g:number(a.depth, ms.int64), both }, { axis = axis })
end

-- Constants that depend on nothing but sizes.
local function constant(make)
  return function(g, a, node) return g:tensor(make(a, node)) end
end
handlers.zeros = constant(function(_, node) return ms.ops.zeros(node.shape, node.dtype) end)
handlers.ones = constant(function(_, node) return ms.ops.ones(node.shape, node.dtype) end)
handlers.zeros_like, handlers.ones_like = handlers.zeros, handlers.ones
handlers.full = constant(function(a, node) return ms.ops.full(node.shape, a.fill_value, node.dtype) end)
handlers.full_like = handlers.full
handlers.arange = constant(function(a, node) return ms.ops.arange(a.start, a.stop, a.step, node.dtype) end)

require "lunaria.onnx.export_layers"(handlers)
require "lunaria.onnx.export_quantised"(handlers)
return handlers
