-- Run by training_memory.py, one network per process: the highest tensor memory, beyond what lives before it, of one value
-- and gradient; prints it in bytes.
local ms = require "lunaria"
local networks = require "bench.networks"
local ops = ms.ops

local inputs = {
  gpt = function() return ops.randint(0, 256, { 8, 128 }), ops.randint(0, 256, { 8, 128 }) end,
  resnet18 = function() return ops.randn({ 8, 3, 32, 32 }), ops.randint(0, 10, { 8 }) end,
}

local name = arg[1]
local net = networks[name]()
net:set_train(true)
local gradient = ms.value_and_grad(networks.loss(net), nil, net:trainable_params())
local x, y = inputs[name]()
local function step()
  local value, grads = gradient(x, y)
  return value:item() + #grads
end
step()
-- The first step may keep what it prepares; the second is what every further one costs.
collectgarbage()
collectgarbage()
local before = ms.memory_stats().live_bytes
ms.reset_peak_memory_stats()
step()
print(ms.memory_stats().peak_bytes - before)
