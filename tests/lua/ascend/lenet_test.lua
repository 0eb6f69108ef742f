-- LeNet on Fashion-MNIST with O2: the simulated device against the CPU, from the same weights and batches; one mode a day.
-- Eager mode only: the tests set their mode.
package.path = "tests/lua/?.lua;notebooks/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local today = require "support.today"
local lenet = require "lunaria.zoo.lenet"
local nn, ops = ms.nn, ms.ops

local folder = "/usr/share/datasets/fashion-mnist"
local file = io.open(folder .. "/train-images-idx3-ubyte.gz", "rb")
if not file then
  print "skipped: Fashion-MNIST (dataset-fashion-mnist) is not installed"
  t.finish()
end
file:close()

local function pictures(name, count)
  local rows = ms.slice(0, count)
  local x = ms.load_idx(("%s/%s-images-idx3-ubyte.gz"):format(folder, name))[{ rows }]
  local y = ms.load_idx(("%s/%s-labels-idx1-ubyte.gz"):format(folder, name))[{ rows }]
  return ops.pad(x:reshape { -1, 1, 28, 28 }:astype(ms.float32) / 255, { 2, 2, 2, 2 }), y:astype(ms.int32)
end

local images, labels = pictures("train", 25600)
local test_images, test_labels = pictures("t10k", 10000)
local batch = 128

local function accuracy(device)
  ms.set_seed(3)
  local start = lenet.lenet5()
  ms.set_device(device)
  local net = lenet.lenet5()
  for i, p in ipairs(net:trainable_params()) do p:assign(start:trainable_params()[i]:to(device)) end
  net = ms.amp.auto_mixed_precision(net, "O2")
  local scaler = ms.amp.DynamicLossScaler(1024, 2, 1000)
  local loss = nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" }
  -- Ends with small steps, so that the last batches do not decide.
  local rates = nn.polynomial_decay_lr(0.1, 1e-4, 400, 200, 2, 1.0)
  local optimizer = nn.Momentum(net:trainable_params(), rates, 0.9)
  local gradient = ms.value_and_grad(function(x, y)
    return scaler:scale(loss(net(x):astype(ms.float32), y))
  end, nil, net:trainable_params())
  local x, y = images:to(device), labels:to(device)
  for _ = 1, 2 do
    for k = 0, x.shape[1] - batch, batch do
      local rows = ms.slice(k, k + batch)
      local _, grads = gradient(x[{ rows }], y[{ rows }])
      grads = scaler:unscale(grads)
      local finite = ms.amp.all_finite(grads)
      if finite:item() then optimizer(grads) end
      scaler:adjust(finite)
    end
  end
  local hits = ops.argmax(net(test_images:to(device)), 1):equal(test_labels:to(device))
  local result = ops.mean(hits:astype(ms.float32)):item()
  ms.set_device "CPU"
  return result
end

for number, mode in ipairs { "PYNATIVE_MODE", "GRAPH_MODE" } do
  if today.has(number, 2) then
    t.test("LeNet with O2 learns on the simulated Ascend what it learns on the CPU: " .. mode, function()
      ms.set_context { mode = ms[mode], jit_level = "O1" }
      local here, there = accuracy "CPU", accuracy "Ascend"
      if arg[1] then print(here, there) end
      t.equal(here > 0.7, true)
      t.near(there, here, 0.01)
    end)
  end
end

t.finish()
