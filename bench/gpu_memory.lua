-- Run by gpu_memory.py on the mock of the GPU's driver, one network and mode per process: the highest device memory of a
-- training step (value, gradient, update), in bytes. Its kernels do nothing.
package.path = "./?.lua;" .. package.path
local ms = require "lunaria"
local mock = require "mock_control"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

ms.set_context { device_target = "GPU" }
ms.set_seed(1)

local function momentum(params) return nn.Momentum(params, 1e-5, 0.9) end
local function classes(n) return ops.randint(0, 10, { n }) end
local function tokens() return ops.randint(0, 256, { 8, 128 }) end
-- The batches are those of gpu_memory.py.
local models = {
  mlp = { function(params) return nn.Adam(params, 1e-6) end, function() return ops.randn { 64, 784 }, classes(64) end },
  lenet = { momentum, function() return ops.randn { 64, 1, 32, 32 }, classes(64) end },
  resnet18 = { momentum, function() return ops.randn { 8, 3, 32, 32 }, classes(8) end },
  gpt = { function(params) return ms.mint.optim.AdamW(params, { lr = 1e-6, weight_decay = 0.01 }) end,
    function() return tokens(), tokens() end },
  lstm = { momentum, function() return ops.randn { 28, 64, 128 }, classes(64) end },
}

local function step_of(name)
  if name == "rnn" then
    local hidden = 128
    local function matrix() return ops.randn { hidden, hidden } * 0.1 end
    local x, start = ops.randn { 50, 64, hidden }, ops.zeros { 64, hidden }
    local w1, u1, b1, w2, u2, b2 = matrix(), matrix(), ops.zeros { 1, hidden }, matrix(), matrix(), ops.zeros { 1, hidden }
    local gradient = ms.value_and_grad(networks.rnn, { 2, 3, 4, 5, 6, 7 })
    return function()
      local value = gradient(x, start, w1, u1, b1, w2, u2, b2)
      return value
    end
  end
  local net = networks[name]()
  net:set_train(true)
  local params = net:trainable_params()
  local optimizer = models[name][1](params)
  local gradient = ms.value_and_grad(networks.loss(net), nil, params)
  local x, y = models[name][2]()
  return function()
    local value, grads = gradient(x, y)
    optimizer(grads)
    return value
  end
end

local name, mode = arg[1], arg[2]
local step = step_of(name)
mock.skip_kernels(true)
if mode == "graph" then step = ms.jit(step) end
-- Compiled functions compile in their first calls.
for _ = 1, 4 do step() end
collectgarbage()
collectgarbage()
ms.runtime.reset_peak_memory_stats "GPU"
step()
ms.synchronize "GPU"
print(ms.runtime.max_memory_allocated "GPU")
