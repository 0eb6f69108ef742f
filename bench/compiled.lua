-- Compiled programs: whole training steps, inference for one sample, chains of elementwise operators.
local harness = require "bench.harness"
local ms = require "lunaria"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

local function training(name, bar, make, make_optimizer, x, y)
  harness.workload("train_" .. name, { peers = bar }, function()
    ms.set_seed(1)
    local net = make()
    net:set_train(true)
    local params = net:trainable_params()
    local gradient, optimizer = ms.value_and_grad(networks.loss(net), nil, params), make_optimizer(params)
    local step = ms.jit(function(images, labels)
      local loss, grads = gradient(images, labels)
      optimizer(grads)
      return loss
    end)
    return harness.calls(step, x(), y())
  end)
end

local function normal(...)
  local shape = { ... }
  return function() return ops.randn(shape) end
end
local function classes(count) return function() return ops.randint(0, 10, { count }) end end
local function tokens(...)
  local shape = { ... }
  return function() return ops.randint(0, 256, shape) end
end

local function adam(params) return nn.Adam(params, 1e-6) end
local function momentum(params) return nn.Momentum(params, 1e-5, 0.9) end
local function adamw(params) return ms.mint.optim.AdamW(params, { lr = 1e-6, weight_decay = 0.01 }) end

training("mlp", 1.15, networks.mlp, adam, normal(64, 784), classes(64))
training("lenet", 2, networks.lenet, momentum, normal(32, 1, 32, 32), classes(32))
training("gpt", 1.2, networks.gpt, adamw, tokens(8, 128), tokens(8, 128))
training("lstm", 1.3, networks.lstm, adam, normal(64, 16, 128), classes(16))
training("resnet18", 1, networks.resnet18, momentum, normal(8, 3, 32, 32), classes(8))

local HIDDEN, STEPS = 32, 100

harness.workload("train_rnn", { jax_scan = 1.5, jax = 4, torch = 4, torch_compile = 4 }, function()
  local function weight() return ops.randn({ HIDDEN, HIDDEN }) / math.sqrt(HIDDEN) end
  local function bias() return ops.zeros({ HIDDEN }) end
  local step = ms.jit(ms.value_and_grad(networks.rnn, { 2, 3, 4, 5, 6, 7 }))
  return harness.calls(step, ops.randn({ STEPS, 1, HIDDEN }), ops.zeros({ 1, HIDDEN }), weight(), weight(), bias(), weight(),
    weight(), bias())
end)

local function inference(name, bar, make, x)
  harness.workload("infer_" .. name, { peers = bar }, function()
    ms.set_seed(1)
    local net = make()
    net:set_train(false)
    return harness.calls(ms.jit(function(input) return net(input) end), x())
  end)
end

inference("mlp", 1.1, networks.mlp, normal(1, 784))
inference("lenet", 1.3, networks.lenet, normal(1, 1, 32, 32))
inference("gpt", 1.1, networks.gpt, tokens(1, 128))
inference("resnet18", 0.95, function() return networks.resnet18(1000, true) end, normal(1, 3, 224, 224))

local function chain(x) return ops.tanh(x * 1.5 + 0.25) * ops.sigmoid(x) + x end

for name, count in pairs { chain_4M = 4 << 20, chain_16K = 16 << 10 } do
  harness.workload(name, { fused = 0.95, peers = 1 }, function() return harness.calls(ms.jit(chain), ops.randn({ count })) end)
end

-- Statements that all differ, one after the other.
harness.workload("statements", { jax = 1 }, function()
  local forms = { "ops.tanh(y * %.4f) + x", "ops.exp(y * -%.4f) * x", "ops.sin(y + %.4f) - y", "y / (%.4f + x * x)",
    "ops.sqrt(ops.abs(y) + %.4f) * x" }
  local lines = { "local ops = ... return function(x) local y = x" }
  for i = 1, 1000 do lines[#lines + 1] = ("y = " .. forms[i % 5 + 1]):format(1 + 1 / (i + 2)) end
  lines[#lines + 1] = "return y end"
  return harness.calls(ms.jit(load(table.concat(lines, "\n"))(ops)), ops.arange(64):float() / 64)
end)

harness.workload("tiny_call", { limit = 1000, peers = 7 }, function()
  return harness.calls(ms.jit(function(a, b) return a + b end), ops.randn({ 4 }), ops.randn({ 4 }))
end)

harness.serve()
