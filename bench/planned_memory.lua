-- Run by planned_memory.py, one network and mode per process: the highest tensor memory of a training step (value,
-- gradient, update), beyond parameters, the optimizer's state and inputs; prints it in bytes.
local ms = require "lunaria"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

local inputs = {
  gpt = function() return ops.randint(0, 256, { 8, 128 }), ops.randint(0, 256, { 8, 128 }) end,
  resnet18 = function() return ops.randn({ 8, 3, 32, 32 }), ops.randint(0, 10, { 8 }) end,
}

local name, mode = arg[1], arg[2]
ms.set_seed(1)
local net = networks[name]()
net:set_train(true)
local params = net:trainable_params()
local optimizer = name == "gpt" and nn.Adam(params, 1e-4) or nn.Momentum(params, 1e-3, 0.9)
local gradient = ms.value_and_grad(networks.loss(net), nil, params)
local x, y = inputs[name]()
local function plain(a, b)
  local value, grads = gradient(a, b)
  optimizer(grads)
  return value
end
collectgarbage()
collectgarbage()
local before = ms.memory_stats().live_bytes
local step = mode == "graph" and ms.jit(plain) or plain
-- Compiled functions compile in their first calls.
for _ = 1, 4 do step(x, y) end
collectgarbage()
collectgarbage()
ms.reset_peak_memory_stats()
step(x, y)
print(ms.memory_stats().peak_bytes - before)
