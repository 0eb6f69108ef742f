-- Whole training steps: forward, gradients, update. PyTorch uses its fused optimizers.
local harness = require "bench.harness"
local ms = require "lunaria"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

local function workload(name, bar, make, make_optimizer, x, y)
  harness.workload(name, { torch = bar }, function()
    ms.set_seed(1)
    local net = make()
    net:set_train(true)
    local params = net:trainable_params()
    local gradient, optimizer = ms.value_and_grad(networks.loss(net), nil, params), make_optimizer(params)
    local images, labels = x(), y()
    return function(n)
      for _ = 1, n do
        local _, grads = gradient(images, labels)
        optimizer(grads)
      end
    end
  end)
end

local function classes(count) return function() return ops.randint(0, 10, { count }) end end
local function tokens() return ops.randint(0, 256, { 8, 128 }) end

workload("train_mlp", 1.0, networks.mlp, function(params) return nn.Adam(params, 1e-6) end,
  function() return ops.randn({ 64, 784 }) end, classes(64))
workload("train_lenet", 1.3, networks.lenet, function(params) return nn.Momentum(params, 1e-5, 0.9) end,
  function() return ops.randn({ 32, 1, 32, 32 }) end, classes(32))
workload("train_gpt", 1.0, networks.gpt,
  function(params) return ms.mint.optim.AdamW(params, { lr = 1e-6, weight_decay = 0.01 }) end, tokens, tokens)

harness.serve()
