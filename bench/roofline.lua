-- Run by roofline.py, one program per process: the time of a compiled step or inference on one thread beside its floor, for
-- each operator of the compiled graph the longer of its arithmetic at the speed of a large matrix product and its memory at
-- the speed of a copy. The optimizer's update is time without a floor. Prints both in seconds, and how much of the floor is
-- arithmetic.
local ms = require "lunaria"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

local function images(...)
  local shape = { ... }
  return function() return ops.randn(shape), ops.randint(0, 10, { shape[1] }) end
end
local function tokens(batch) return function() return ops.randint(0, 256, { batch, 128 }), ops.randint(0, 256, { batch, 128 }) end end
local function sequences(length, batch, inputs)
  return function() return ops.randn({ length, batch, inputs }), ops.randint(0, 10, { batch }) end
end
local function large() return networks.resnet18(1000, true) end

-- name = { network, inputs for a training step, inputs for inference, the network for inference if it is another one }
local programs = {
  mlp = { networks.mlp, images(64, 784), images(1, 784) },
  lenet = { networks.lenet, images(32, 1, 32, 32), images(1, 1, 32, 32) },
  gpt = { networks.gpt, tokens(8), tokens(1) },
  resnet18 = { networks.resnet18, images(8, 3, 32, 32), images(1, 3, 224, 224), large },
  lstm = { networks.lstm, sequences(64, 16, 128), sequences(64, 1, 128) },
}

local function network_step(program, trains)
  local net = (trains and program[1] or program[4] or program[1])()
  net:set_train(trains)
  local x, y = program[trains and 2 or 3]()
  if not trains then return ms.jit(function(a) return net(a) end), { x } end
  local params = net:trainable_params()
  local gradient, optimizer = ms.value_and_grad(networks.loss(net), nil, params), nn.Momentum(params, 1e-6, 0.9)
  return ms.jit(function(a, b)
    local value, grads = gradient(a, b)
    optimizer(grads)
    return value
  end), { x, y }
end

-- The loop of 100 steps that bench/compiled.lua trains.
local function rnn_step(trains)
  local hidden = 32
  local function weight() return ops.randn({ hidden, hidden }) / math.sqrt(hidden) end
  local function bias() return ops.zeros({ hidden }) end
  local f = trains and ms.value_and_grad(networks.rnn, { 2, 3, 4, 5, 6, 7 }) or networks.rnn
  local x, start = ops.randn({ 100, 1, hidden }), ops.zeros({ 1, hidden })
  return ms.jit(f), { x, start, weight(), weight(), bias(), weight(), weight(), bias() }
end

local name, trains = arg[1], arg[2] == "train"
ms.set_num_threads(1)
ms.set_seed(1)
local step, inputs
if name == "rnn" then
  step, inputs = rnn_step(trains)
else
  step, inputs = network_step(programs[name], trains)
end
local cost = step:lower(table.unpack(inputs)):cost()
for _ = 1, 5 do step(table.unpack(inputs)) end
local times = {}
for i = 1, 25 do
  local start, calls = ms.clock(), 0
  repeat
    step(table.unpack(inputs))
    calls = calls + 1
  until ms.clock() - start > 10e6
  times[i] = (ms.clock() - start) / calls / 1e9
end
table.sort(times)
local arithmetic = 0
for _, node in ipairs(cost.nodes) do
  -- What takes longer by its arithmetic than by its memory.
  if node.flops / cost.flops_per_second >= node.bytes / cost.bytes_per_second then arithmetic = arithmetic + node.seconds end
end
-- The fastest: whatever else runs on the machine only adds to the others.
print(cost.seconds, times[1], arithmetic / cost.seconds, cost.flops_per_second, cost.bytes_per_second)
