-- A step of private training beside the same network's plain step, and beside opacus with each of its ways to per-sample gradients.
local ms = require "lunaria"
local harness = require "bench.harness"

local nn, dp = ms.nn, ms.armour.privacy.diff_privacy
ms.set_context { mode = ms.GRAPH_MODE }

local function mlp() return nn.SequentialCell(nn.Dense(784, 256), nn.ReLU(), nn.Dense(256, 10)) end

local function cnn()
  return nn.SequentialCell(
    nn.Conv2d(1, 16, 8, { stride = 2, pad_mode = "pad", padding = 3, has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 1),
    nn.Conv2d(16, 32, 4, { stride = 2, pad_mode = "valid", has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 1),
    nn.Flatten(), nn.Dense(512, 32), nn.ReLU(), nn.Dense(32, 10))
end

local function lenet()
  return nn.SequentialCell(
    nn.Conv2d(1, 6, 5, { pad_mode = "pad", padding = 2, has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 2),
    nn.Conv2d(6, 16, 5, { pad_mode = "valid", has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 2),
    nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10))
end

local function inputs(n, ...) return ms.rand { n, ... }, ms.random.randint(0, 10, { n }) end

local function plain(make, ...)
  local net, x, y = make(), inputs(...)
  return harness.calls(nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.SGD(net:trainable_params(), 1e-3)), x, y)
end

local function private(make, n, ...)
  local net, x, y = make(), inputs(n, ...)
  local model = dp.DPModel(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 1e-3),
    { noise_mech = dp.NoiseGaussianRandom(1.0, 1.1), expected_batch_size = n })
  return harness.calls(model.private, x, y)
end

-- least: the plain step's time over the private one's.
local function pair(name, make, least, ...)
  local given = { ... }
  harness.workload("plain_" .. name, {}, function() return plain(make, table.unpack(given)) end)
  local bars = { ["plain_" .. name] = least, opacus_hooks = 1.0, opacus_functorch = 1.0, opacus_ghost = 1.0 }
  harness.workload("private_" .. name, bars, function()
    return private(make, table.unpack(given))
  end)
end

pair("mlp", mlp, 1 / 2.0, 128, 784)
pair("cnn", cnn, 1 / 1.8, 64, 1, 28, 28)
pair("lenet", lenet, 1 / 2.1, 64, 1, 28, 28)

harness.serve()
