-- Calls of operators that MindSpore has, one for each rule of core/ir/mindspore_rules.cpp, as { text, primitives of MindSpore that
-- the file must name, inputs }. x, y: images; a, b: matrices of batches; p: positive; i: integers; c, d: booleans; w ...: weights.
local ms = require "lunaria"
local ops = ms.ops

ms.set_seed(11)
local values = {
  x = ops.randn { 2, 4, 8, 8 }, y = ops.randn { 2, 4, 8, 8 }, p = ops.rand { 2, 4, 8, 8 } + 0.1,
  m = ops.randn { 5, 6 }, n = ops.randn { 6, 3 },
  a = ops.randn { 2, 5, 6 }, b = ops.randn { 2, 6, 5 }, i = ms.randint(0, 4, { 3, 2 }), j = ms.randint(1, 9, { 3, 2 }),
  c = ops.greater(ops.randn { 2, 4, 8, 8 }, 0), d = ops.greater(ops.randn { 2, 4, 8, 8 }, 0), g = ms.randint(0, 8, { 2, 4, 8, 3 }),
  q = ops.randn { 2, 2, 5, 4 }, k = ops.randn { 2, 2, 5, 4 }, v = ops.randn { 2, 2, 5, 4 }
}
local function parameter(name, ...) return ms.Parameter(ops.randn { ... }, name) end
local weights = {
  w = parameter("w", 6, 4, 3, 3), w1 = parameter("w1", 6, 2, 3, 3), w2 = parameter("w2", 4, 6, 3, 3), b6 = parameter("b6", 6),
  wd = parameter("wd", 3, 6), b3 = parameter("b3", 3), g4 = parameter("g4", 4), s4 = parameter("s4", 4),
  v4 = ms.Parameter(ops.rand { 4 } + 0.5, "v4"),
  g8 = parameter("g8", 8), s8 = parameter("s8", 8), e = parameter("e", 9, 4)
}

local list = {}
local function add(text, primitives, ...)
  local names, inputs = { ... }, {}
  for at, name in ipairs(names) do inputs[at] = assert(values[name], name) end
  local outside = { "ms", "ops" }
  for name in pairs(weights) do outside[#outside + 1] = name end
  local program = ("local %s = ... return function(%s) return %s end"):format(table.concat(outside, ", "), table.concat(names, ", "), text)
  local made = assert(load(program))
  local given = { ms, ops }
  for at = 3, #outside do given[at] = weights[outside[at]] end
  local f = made(table.unpack(given))
  list[#list + 1] = { text = text, primitives = primitives, f = f, inputs = inputs }
end

add("ops.dense(m, wd, b3)", "Dense", "m")
add("ops.dense(m, wd)", "Dense", "m")
add("ops.matmul(m, n)", "MatMul", "m", "n")
add("ops.matmul(a, b)", "BatchMatMul", "a", "b")
add("ops.matmul(a, n)", "MatMulExt", "a", "n")
add("ops.bmm(a, b)", "BatchMatMul", "a", "b")
add("ops.attention(q, k, v, 0.5)", "Softmax BatchMatMul", "q", "k", "v")
add("ops.attention(q, k, v, 0.5, true)", "Softmax BatchMatMul", "q", "k", "v")
add("ops.conv2d(x, w)", "Conv2D", "x")
add("ops.conv2d(x, w, b6, 2, 'pad', {1, 2, 0, 1})", "Conv2D BiasAdd", "x")
add("ops.conv2d(x, w1, nil, {1, 2}, 'same', 0, 1, 2)", "Conv2D", "x")
add("ops.conv2d(x, w, b6, 1, 'pad', 2, 2)", "Conv2D BiasAdd", "x")
add("ops.conv_transpose2d(x, w2)", "Conv2DBackpropInput", "x")
add("ops.conv_transpose2d(x, w2, b6, 2, 1, 1)", "Conv2DBackpropInput BiasAdd", "x")
add("ops.max_pool2d(x, 2, 2)", "MaxPool", "x")
add("ops.max_pool2d(x, 3)", "MaxPool", "x")
add("ops.max_pool2d(x, 3, 2, 1)", "MaxPoolWithArgmaxV2", "x")
add("ops.max_pool2d(x, 3, nil, 1)", "MaxPoolWithArgmaxV2", "x")
add("ops.avg_pool2d(x, 3, 2)", "AvgPool", "x")
add("ops.adaptive_avg_pool2d(x, {3, 2})", "AdaptiveAvgPool2D", "x")
add("ops.batch_norm(x, s4, v4, g4, s4, false, 0.1, 1e-3)", "BatchNorm", "x")
add("ops.layer_norm(x, {8}, g8, s8)", "LayerNorm", "x")
add("ops.group_norm(x, 2, g4, s4)", "GroupNorm", "x")
add("ops.softmax(x, 1)", "Softmax", "x")
add("ops.log_softmax(x, -1)", "LogSoftmax", "x")
for name, theirs in pairs {
  relu = "ReLU", relu6 = "ReLU6", sigmoid = "Sigmoid", tanh = "Tanh", silu = "SiLU", mish = "Mish", selu = "SeLU", hardswish = "HSwish",
  hardsigmoid = "HSigmoid", softplus = "Softplus", gelu_tanh = "GeLU", gelu_erf = "Erf", exp = "Exp", expm1 = "Expm1", square = "Square",
  abs = "Abs", neg = "Neg", sign = "Sign", floor = "Floor", ceil = "Ceil", sin = "Sin",
  cos = "Cos", tan = "Tan", atan = "Atan", sinh = "Sinh",
  cosh = "Cosh", asinh = "Asinh", erf = "Erf", erfc = "Erfc", isnan = "IsNan", isfinite = "IsFinite"
} do add(("ops.%s(x)"):format(name), theirs, "x") end
for name, theirs in pairs { log = "Log", log1p = "Log1p", sqrt = "Sqrt", rsqrt = "Rsqrt", reciprocal = "Reciprocal" } do
  add(("ops.%s(p)"):format(name), theirs, "p")
end
add("ops.leaky_relu(x, 0.1)", "Maximum", "x")
add("ops.elu(x)", "Elu", "x")
for name, theirs in pairs {
  add = "Add", sub = "Sub", mul = "Mul", maximum = "Maximum", minimum = "Minimum", atan2 = "Atan2", equal = "Equal", not_equal = "NotEqual",
  greater = "Greater", greater_equal = "GreaterEqual", less = "Less", less_equal = "LessEqual"
} do
  add(("ops.%s(x, y)"):format(name), theirs, "x", "y")
  add(("ops.%s(x, 0.3)"):format(name), theirs, "x")
end
add("(1 - x) * 0.1 + x / 3", "Sub Mul Add Div", "x")
add("p ^ y", "Pow", "p", "y")
add("p ^ 1.7", "Pow", "p")
add("i // j", "FloorDiv", "i", "j")
add("i % j + i * j - 3", "FloorMod Mul Add Sub", "i", "j")
add("ops.logical_and(c, d)", "LogicalAnd", "c", "d")
add("ops.logical_or(c, ops.logical_not(d))", "LogicalOr LogicalNot", "c", "d")
add("ops.where(c, x, y)", "Select", "c", "x", "y")
add("ops.where(c, x, -1e9)", "Select", "c", "x")
add("ops.masked_fill(x, c, 0.7)", "MaskedFill", "x", "c")
add("ops.clamp(x, -0.5, 0.25)", "Minimum Maximum", "x")
for name, theirs in pairs { sum = "ReduceSum", mean = "ReduceMean", amax = "ReduceMax", amin = "ReduceMin", prod = "ReduceProd" } do
  add(("ops.%s(x, {1, -1}, true)"):format(name), theirs, "x")
  add(("ops.%s(x)"):format(name), theirs, "x")
end
add("ops.all(c, 1)", "ReduceAll", "c")
add("ops.any(c, 1)", "ReduceAny", "c")
add("ops.all(c)", "ReduceAll", "c")
add("ops.max(x)", "ReduceMax", "x")
add("ops.min(x)", "ReduceMin", "x")
add("ops.any(c)", "ReduceAny", "c")
add("ops.argmax(x, 1)", "Argmax", "x")
add("ops.vector_norm(x, 2, 1, true)", "Square ReduceSum Sqrt", "x")
add("ops.cumsum(x, 1)", "CumSum", "x")
add("c:astype(ms.float32) + i:astype(ms.float32):sum()", "Cast", "c", "i")
add("ops.reshape(x, {8, -1})", "Reshape", "x")
add("ops.transpose(x, {0, 2, 3, 1})", "Transpose", "x")
add("ops.swapaxes(x, 1, -1)", "Transpose", "x")
add("m.T", "Transpose", "m")
add("ops.squeeze(ops.expand_dims(x, 1), 1)", "ExpandDims Squeeze", "x")
add("ops.broadcast_to(ops.expand_dims(m, 0), {3, 5, 6})", "BroadcastTo", "m")
add("ops.tile(m, {2, 3})", "Tile", "m")
add("ops.concat({x, y, x}, 1)", "Concat MakeTuple", "x", "y")
add("ops.stack({x, y}, 1)", "Stack", "x", "y")
add("ops.split(x, 2, 1)", "SplitWithSize TupleGetItem", "x")
add("ops.split(x, {1, 3}, 1)", "SplitWithSize", "x")
add("ops.chunk(x, 3, -1)", "SplitWithSize", "x")
add("ops.unbind(m, 0)", "Unstack", "m")
add("ops.gather(e, i)", "Gather", "i")
add("ops.embedding(i, e)", "Gather", "i")
add("ops.gather_elements(x, 3, g)", "GatherD", "x", "g")
add("x[':, 1:3, ::2']", "", "x")
add("x[1]", "", "x")
add("ops.narrow(x, 1, 1, 2)", "Slice", "x")
add("ops.flip(x, {1})", "ReverseV2", "x")
add("ops.triu(m, 1)", "Triu", "m")
add("ops.tril(m)", "Tril", "m")
add("ops.pad(x, {3, 0, 1, 2}, 'constant', 1.5)", "ConstantPadND", "x")
add("ops.stop_gradient(x) * ops.arange(8)", "Mul", "x")

return list
