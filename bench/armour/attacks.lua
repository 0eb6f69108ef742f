-- Projected gradient descent of 40 steps on 256 pictures of 28 x 28, beside torchattacks and the Adversarial Robustness Toolbox: a
-- perceptron, the network of Madry's paper on digits, and LeNet-5. The step with its projection is one compiled graph.
local harness = require "bench.harness"
local ms = require "lunaria"
local lenet5 = require "lunaria.zoo.lenet".lenet5

local nn = ms.nn
ms.set_context { mode = ms.GRAPH_MODE }

local networks = {
  mlp = function()
    return nn.SequentialCell(nn.Flatten(), nn.Dense(784, 256), nn.ReLU(), nn.Dense(256, 128), nn.ReLU(), nn.Dense(128, 10))
  end,
  cnn = function()
    local function conv(from, to) return nn.Conv2d(from, to, 5, { pad_mode = "pad", padding = 2, has_bias = true }) end
    return nn.SequentialCell(conv(1, 16), nn.ReLU(), nn.MaxPool2d(2, 2), conv(16, 32), nn.ReLU(), nn.MaxPool2d(2, 2),
      nn.Flatten(), nn.Dense(1568, 100), nn.ReLU(), nn.Dense(100, 10))
  end,
  lenet = function() return lenet5(10, { pad = 2 }) end,
}

for _, name in ipairs { "mlp", "cnn", "lenet" } do
  harness.workload("pgd40_" .. name, { peers = 1.5 }, function()
    local attack = ms.armour.attacks.ProjectedGradientDescent(networks[name](), { eps = 0.1, eps_iter = 0.01, nb_iter = 40, seed = 1 })
    local x, y = ms.ops.rand { 256, 1, 28, 28 }, ms.ops.randint(0, 10, { 256 }):astype(ms.int32)
    return function(n) for _ = 1, n do attack:generate(x, y) end end
  end)
end

harness.serve()
