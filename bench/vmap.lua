-- vmap against its peers: the gradients of the samples of a batch, also against a loop over them and against the one
-- gradient of their mean, gradients through vmap, and batched Jacobians; plain (_grad, ...) and compiled (_graph).
local harness = require "bench.harness"
local ms = require "lunaria"
local nn = require "lunaria.nn"
local ops = ms.ops

local BATCH, INPUTS, HIDDEN, CLASSES = 64, 32, 64, 10

harness.workload("vmap_matmul", { torch = 1 }, function()
  return harness.calls(ms.vmap(ops.matmul), ops.randn { BATCH, 32, 32 }, ops.randn { BATCH, 32, 32 })
end)

local function weights()
  return ops.randn { INPUTS, HIDDEN } / 6, ops.zeros { HIDDEN }, ops.randn { HIDDEN, HIDDEN } / 8, ops.zeros { HIDDEN },
    ops.randn { HIDDEN, CLASSES } / 8, ops.zeros { CLASSES }
end

local function loss(w1, b1, w2, b2, w3, b3, x, target)
  local h = ops.tanh(ops.matmul(x, w1) + b1)
  h = ops.tanh(ops.matmul(h, w2) + b2)
  return -ops.sum(ops.log_softmax(ops.matmul(h, w3) + b3, -1) * target)
end

local function data()
  return ops.randn { BATCH, INPUTS }, ops.one_hot(ops.randint(0, CLASSES, { BATCH }), CLASSES, 1.0, 0.0)
end

local per_sample_axes = { false, false, false, false, false, false, 0, 0 }
harness.workload("per_sample_grad", { torch = 1 }, function()
  local w1, b1, w2, b2, w3, b3 = weights()
  local f = ms.vmap(ms.grad(loss, { 0, 1, 2, 3, 4, 5 }), per_sample_axes)
  local x, target = data()
  return harness.calls(f, w1, b1, w2, b2, w3, b3, x, target)
end)

harness.workload("per_sample_loop", { torch = 1 }, function()
  local w1, b1, w2, b2, w3, b3 = weights()
  local f = ms.grad(loss, { 0, 1, 2, 3, 4, 5 })
  local x, target = data()
  return harness.calls(function()
    local columns = { {}, {}, {}, {}, {}, {} }
    for i = 0, BATCH - 1 do
      local g = f(w1, b1, w2, b2, w3, b3, x[i], target[i])
      for k = 1, 6 do columns[k][i + 1] = g[k] end
    end
    for k = 1, 6 do columns[k] = ops.stack(columns[k]) end
    return columns
  end, 0)
end)

harness.workload("per_sample_graph", { jax = 1 }, function()
  local w1, b1, w2, b2, w3, b3 = weights()
  local f = ms.jit(ms.vmap(ms.grad(loss, { 0, 1, 2, 3, 4, 5 }), per_sample_axes))
  local x, target = data()
  return harness.calls(f, w1, b1, w2, b2, w3, b3, x, target)
end)

-- The gradient of the mean over a batch of a loss for one sample.
local function batch_gradient()
  local mapped = ms.vmap(loss, per_sample_axes)
  return ms.grad(function(...) return ops.mean(mapped(...)) end, { 0, 1, 2, 3, 4, 5 })
end

-- Plain against torch.func, compiled against jax.jit.
local function plain(f) return f end
local modes = { { suffix = "", bars = { torch = 1 }, wrap = plain }, { suffix = "_graph", bars = { jax = 1 }, wrap = ms.jit } }

for _, mode in ipairs(modes) do
  harness.workload("grad_of_vmap" .. mode.suffix, mode.bars, function()
    local w1, b1, w2, b2, w3, b3 = weights()
    local x, target = data()
    return harness.calls(mode.wrap(batch_gradient()), w1, b1, w2, b2, w3, b3, x, target)
  end)
end

-- The gradients of a network's samples by its parameters take at most three times what the gradient of their mean takes.
local networks = {
  mlp = {
    layers = function()
      return { nn.Dense(INPUTS, HIDDEN), nn.ReLU(), nn.Dense(HIDDEN, HIDDEN), nn.ReLU(), nn.Dense(HIDDEN, CLASSES) }
    end,
    shape = { BATCH, INPUTS },
    sample = function(x, label) return x, label end,
  },
  cnn = {
    layers = function()
      return { nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(32 * 7 * 7, CLASSES) }
    end,
    shape = { BATCH, 1, 28, 28 },
    -- A batch of one picture, as convolutions take it.
    sample = function(x, label) return ops.expand_dims(x, 0), ops.expand_dims(label, 0) end,
  },
}
for _, name in ipairs { "mlp", "cnn" } do
  local network = networks[name]
  for _, mode in ipairs(modes) do
    local function gradient(transform)
      local net = nn.SequentialCell(network.layers())
      local function of(x, label) return ops.cross_entropy(net(x), label) end
      local f = mode.wrap(transform(of, net:trainable_params()))
      return harness.calls(f, ops.randn(network.shape), ops.randint(0, CLASSES, { BATCH }))
    end
    local mean = name .. "_gradient" .. mode.suffix
    harness.workload(mean, {}, function()
      return gradient(function(of, parameters) return ms.grad(of, nil, parameters) end)
    end)
    harness.workload(name .. "_per_sample" .. mode.suffix, { [mean] = 1 / 3 }, function()
      return gradient(function(of, parameters)
        return ms.vmap(ms.grad(function(...) return of(network.sample(...)) end, nil, parameters))
      end)
    end)
  end
end

local JACOBIAN = 64
local function layers()
  local a, b = ops.randn { JACOBIAN, JACOBIAN } / 8, ops.randn { JACOBIAN, JACOBIAN } / 8
  local function f(x) return ops.tanh(ops.matmul(ops.tanh(ops.matmul(x, a)), b)) end
  return f, function(x) return ops.sum(f(x) ^ 2) end
end
for _, name in ipairs { "jacrev", "jacfwd", "hessian" } do
  for _, mode in ipairs(modes) do
    harness.workload(name .. mode.suffix, mode.bars, function()
      local map, scalar = layers()
      return harness.calls(mode.wrap(ms[name](name == "hessian" and scalar or map)), ops.randn { JACOBIAN })
    end)
  end
end

harness.serve()
