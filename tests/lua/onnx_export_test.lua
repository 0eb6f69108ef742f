-- Networks written as ONNX files are read back with the same results; what the format cannot hold is refused by name.
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local function path(name) return folder .. "/" .. name end

local function fails(part, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error that mentions " .. part)
  assert(tostring(message):find(part, 1, true), ("'%s' is not in: %s"):format(part, tostring(message)))
end

local function close(a, b, tolerance, what)
  assert(a.dtype == b.dtype and tostring(a.shape) == tostring(b.shape), what)
  if a.size == 0 then return end
  local x, y = ops.cast(a, ms.float64), ops.cast(b, ms.float64)
  local difference = (x - y):abs():max():item()
  assert(difference <= (tolerance or 1e-5), ("%s: the results differ by %s"):format(what, difference))
end

-- The function's file, with other inputs than those that it was written for.
local function round_trip(what, f, ...)
  local inputs = { ... }
  local arguments = { ... }
  arguments[#arguments + 1] = { file_name = path "net", file_format = "ONNX" }
  ms.export(f, table.unpack(arguments))
  local loaded, _, about = ms.load(path "net.onnx")
  assert(#about.inputs == #inputs)
  local others = {}
  for i, x in ipairs(inputs) do others[i] = ops.is_floating_point(x) and x * 0.5 + 0.1 or x end
  local expected, found = { f(table.unpack(others)) }, { loaded(table.unpack(others)) }
  assert(#expected == #found)
  for i = 1, #expected do close(found[i], expected[i], 1e-5, what) end
  return loaded
end

ms.set_seed(3)
local x, y, z = ops.randn { 2, 3, 8, 8 }, ops.randn { 4, 6 }, ops.rand { 4, 6 } + 0.5
local i = ms.tensor { 2, 0, 3 }

-- Operators by operator, as names of functions of one tensor.
for _, name in ipairs {
  "abs", "acos", "asin", "asinh", "atan", "ceil", "cos", "cosh", "erf", "exp", "floor", "neg", "reciprocal", "relu", "relu6",
  "sigmoid", "sign", "sin", "sinh", "softsign", "tan", "tanh", "mish", "hardswish", "hardsigmoid", "silu", "softplus",
  "logsigmoid", "square", "expm1", "gelu", "selu", "elu", "celu", "leaky_relu", "round", "softmax", "log_softmax", "sum",
  "mean", "prod", "amax", "amin", "logsumexp", "argmax", "argmin", "t", "tril", "triu", "logical_not", "isnan", "isinf",
  "flatten", "ravel", "std", "var", "hardtanh", "tanhshrink", "softshrink", "sort", "identity", "stop_gradient",
} do
  local input = (name == "acos" or name == "asin") and y * 0.1 or y
  if name == "logical_not" then
    round_trip(name, function(v) return ops.logical_not(ops.greater(v, 0)) end, input)
  else
    round_trip(name, ops[name], input)
  end
end
for _, name in ipairs { "all", "any" } do
  local f = ops[name]
  round_trip(name, function(v, w)
    local b = ops.greater(v, 0)
    return f(b), f(b, 1), f(b, { 0, 1 }, true), f(v), f(w, 0), f(ops.floor(v), -1, true)
  end, y, i)
end
for _, name in ipairs { "log", "sqrt", "rsqrt", "log1p", "log2" } do round_trip(name, ops[name], z) end
for _, name in ipairs {
  "add", "sub", "mul", "div", "maximum", "minimum", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal",
  "remainder", "floor_divide", "pow",
} do
  round_trip(name, function(a, b) return ops[name](a, b), ops[name](a, 2), ops[name](a[0], b) end, z, z * 2)
  round_trip(name .. " of integers", function(a) return ops[name](a, 2) end, name == "pow" and ops.abs(i) or i)
end

-- Along axes, whatever the parameter is called.
for _, name in ipairs {
  "sum", "mean", "prod", "amax", "amin", "logsumexp", "argmax", "argmin", "std", "var", "softmax", "log_softmax", "cumsum", "sort", "max",
  "min"
} do
  round_trip(name .. " along axes", function(v) return (ops[name](v, 1)), (ops[name](v, -2)) end, x)
end
round_trip("sum along two axes", function(v) return ops.sum(v, { 0, 2 }, true), v:sum { dim = -1 } end, x)

-- Attributes, several inputs and results, indexing.
round_trip("shapes", function(a)
  local parts = { ops.split(a, 2, 1) }
  return ops.concat({ parts[3], parts[1] }, 1), a["1:, ::2"], a[1], a["..., -1"], ops.transpose(a, { 1, 0 }), a:reshape { 2, -1 },
    ops.expand_dims(a, 1), ops.broadcast_to(a[0], { 3, 6 }), ops.flip(a, { 0 }), ops.narrow(a, 1, 2, 3), ops.pad(a, { 1, 2 }),
    ops.swapaxes(a, 0, 1), ops.stack({ a, a }, 0), ops.tile(a, { 2, 1 }), ops.roll(a, 1, 0), ops.squeeze(a["0:1"], 0)
end, y["0:4"])
round_trip("indices", function(a, at)
  return ops.gather(a, at, 0), ops.embedding(at, a), ops.one_hot(at, 5), ops.where(ops.greater(a, 0), a, -a), ops.clamp(a, -1, 1),
    ops.masked_fill(a, ops.less(a, 0), 0.0), ops.cast(a, ms.int32), ops.cumsum(a, 1), (ops.topk(a, 2)), (ops.max(a, 1))
end, y, i)
round_trip("places", function(a)
  return ops.strided_slice(a, { -1, 0 }, { 0, 6 }, { -1, 2 }), ops.slice(a, { 1, 2 }, { 2, 3 }), ops.var(a, 1, 1), ops.std(a, 0)
end, y)
round_trip("products", function(a, b)
  return ops.matmul(a, b.T), ops.dense(a, b), ops.einsum("ij,kj->ik", { a, b }), ops.bmm(a:reshape { 1, 4, 6 }, b:reshape { 1, 6, 4 })
end, y, z)
round_trip("pools", function(a)
  return ops.max_pool2d(a, 2), ops.max_pool2d(a, 3, 2, 1), ops.avg_pool2d(a, 2), ops.avg_pool2d(a, 3, 2, 1),
    ops.adaptive_avg_pool2d(a, 2), ops.mean(a, { 2, 3 }), ops.interpolate(a, { 16, 16 }), ops.group_norm(a, 3),
    ops.instance_norm(a), ops.rms_norm(a, ops.ones { 8 })
end, x)

-- Layers and networks.
local function layer(what, net, ...)
  net:set_train(false)
  round_trip(what, net, ...)
end
layer("Conv2d", nn.Conv2d(3, 4, 3), x)
layer("Conv2d same", nn.Conv2d(3, 4, 3, { stride = 2, pad_mode = "same" }), x)
layer("Conv2d pad", nn.Conv2d(3, 6, 3, { pad_mode = "pad", padding = 1, group = 3, has_bias = true }), x)
layer("Conv2dTranspose", nn.Conv2dTranspose(3, 4, 3, { stride = 2, pad_mode = "pad", padding = 1 }), x)
for _, c in ipairs { { 1, 3, 0, 2 }, { 2, 3, 0, 2 }, { 1, 3, 1, 2 }, { 2, 3, 3, 2 }, { 2, 1, 1, 1 } } do
  local kernel, bias = ops.randn { 3, 2, 3, 3 }, ops.randn { 2 }
  round_trip(("transposed convolution, stride %d, dilation %d, padding %d, %d more"):format(table.unpack(c)), function(v)
    return ops.conv_transpose2d(v, kernel, bias, c[1], c[3], c[4], 1, c[2]), ops.conv_transpose2d(v, kernel, nil, c[1], c[3], c[4], 1, c[2])
  end, x)
end
round_trip("Celu of all floats", function(v)
  return ops.celu(v, 0.7), ops.celu(v:astype(ms.float64), 0.7), ops.celu(v:astype(ms.float16), 2.0)
end, y)
layer("BatchNorm2d", nn.BatchNorm2d(3), x)
layer("LayerNorm", nn.LayerNorm { 6 }, y)
local lstm = nn.LSTM(6, 5)
round_trip("LSTM", function(v)
  local all, state = lstm(v)
  return all, state[1], state[2]
end, y:reshape { 2, 2, 6 })
-- Sizes that are open: the file is right for others, and an operator that fixes one is named.
do
  local function open_sizes(f, axes, ...)
    local given = { ... }
    given[#given + 1] = { file_name = folder .. "/open", file_format = "ONNX", dynamic_axes = axes }
    ms.export(f, table.unpack(given))
    return ms.load(folder .. "/open.onnx")
  end
  local function shapes(v)
    local n, m = v.shape[1], v.shape[2]
    return ops.reshape(v, { n * m, -1 }), ops.reshape(v, { -1, 2 * n }), v["1:"], ops.broadcast_to(v[0], { n + 1, m, 2 }),
      v + ops.zeros { n, m, 2 }, v:sum(2) + ops.arange(m)
  end
  local f, _, about = open_sizes(shapes, { x = { [0] = "batch", [1] = "time" } }, ops.randn { 4, 3, 2 })
  assert(table.concat(about.inputs[1].shape, " ") == "batch time 2")
  for _, size in ipairs { { 4, 3, 2 }, { 1, 6, 2 }, { 7, 2, 2 }, { 2, 9, 2 } } do
    local v = ops.randn(size)
    local expected, found = { shapes(v) }, { f(v) }
    for k = 1, #expected do close(found[k], expected[k], 1e-5, "open sizes") end
  end
  local net = nn.SequentialCell { nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 64, 5) }
  net:set_train(false)
  f, _, about = open_sizes(net, { x = { 0 } }, x)
  assert(about.inputs[1].shape[1] == "x_dim_0" and about.outputs[1].shape[1] == "x_dim_0")
  local many = ops.randn { 5, 3, 8, 8 }
  close(f(many), net(many), 1e-5, "an open batch")
  fails("what ops.", open_sizes, function(v) return v + ops.eye(v.shape[1]) end, { x = { [0] = "n", [1] = "n" } }, ops.randn { 3, 3 })
  fails("depends on a size", open_sizes, function(v) return ops.max_pool2d(v, v.shape[3] // 2) end, { x = { 2 } }, x)
  fails("there is no input 'y'", open_sizes, net, { y = { 0 } }, x)
  fails("4 is no axis", open_sizes, net, { x = { 4 } }, x)
  fails("must be a table", open_sizes, net, "batch", x)
  fails("dynamic_axes is for", ms.export, net, x, { file_name = folder .. "/open", dynamic_axes = { x = { 0 } } })
end
layer("Dropout", nn.SequentialCell(nn.Dense(6, 5), nn.Dropout { p = 0.5 }), y)
local function zoo(name) return dofile("notebooks/zoo/" .. name .. ".lua") end
local tokens, tiny = ms.randint(0, 50, { 2, 7 }), { vocabulary = 50, length = 16, width = 8, layers = 2, heads = 2 }
layer("LeNet-5", zoo("lenet").lenet5(10, { pad = 2 }), ops.randn { 2, 1, 28, 28 })
layer("GPT-2", zoo("gpt2").gpt2(tiny), tokens)
layer("BERT", zoo("bert").bert(tiny), tokens)

-- Weights keep their names, are parameters again, and the file is written again from the loaded function.
fails("reads or writes elements", ms.export, function(v)
  local w = v * 2
  w[0] = v[1]
  return w
end, y, { file_name = path "x", file_format = "ONNX" })
local net = nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 2))
ms.export(net, y, { file_name = path "mlp.onnx", file_format = "ONNX" })
local loaded, weights = ms.load(path "mlp.onnx")
for _, p in ipairs(net:trainable_params()) do assert(ms.is_parameter(weights[p.name]), p.name) end
close(loaded(y), net(y), 1e-6, "mlp")
ms.export(loaded, y, { file_name = path "again", file_format = "ONNX" })
close((ms.load(path "again.onnx"))(y), net(y), 1e-6, "mlp again")
ms.export(ms.load(path "mlp.onnx"), y, { file_name = path "other" })
close((ms.load(path "other.mindir"))(y), net(y), 1e-6, "mlp as MindIR")

-- What is refused, and that no file is left behind.
fails("ONNX has no form of: svd_factors", ms.export, function(v) return (ops.svd(v)) end, y, { file_name = path "x", file_format = "ONNX" })
fails("draws random numbers", ms.export, function(v) return v + ops.rand { 4, 6 } end, y, { file_name = path "x", file_format = "ONNX" })
fails("decides by them", ms.export, function(v)
  if v:sum() > 0 then return v end
  return -v
end, y, { file_name = path "x", file_format = "ONNX" })
fails("input 0 is", ms.export, net, 3, { file_name = path "x", file_format = "ONNX" })
fails("file_name is missing", ms.export, net, y, { file_format = "ONNX" })
fails("there are: MINDIR, ONNX", ms.export, net, y, { file_name = path "x", file_format = "AIR" })
fails("not made of operators alone", ms.export, nn.BatchNorm2d(3):set_train(true), x, { file_name = path "x", file_format = "ONNX" })
for _, name in ipairs { "x", "x.onnx", "x.part.onnx" } do assert(not io.open(path(name)), "a file was left behind") end

os.execute("rm -r " .. folder)
assert(dofile "tests/lua/support/compiled.lua".check())
