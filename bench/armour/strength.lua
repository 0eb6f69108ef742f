-- Run by strength.py: a convolutional network learns Fashion-MNIST; then attacks look for adversarial ones of 500 test pictures. Writes the
-- weights, the pictures and what each attack found to FOLDER/strength.npz. Arguments: folder of the data, FOLDER, eps.
local ms = require "lunaria"

local nn, ds, A = ms.nn, ms.dataset, ms.armour.attacks
local data, folder, eps = arg[1], arg[2], tonumber(arg[3])
ms.set_context { mode = ms.GRAPH_MODE }
ms.set_num_threads(1)
ms.set_seed(1)

local numbers = { ds.vision.Rescale(1 / 255, 0.0), ds.vision.HWC2CHW() }
local train_data = ds.FashionMnistDataset(data, "train"):map(numbers, "image"):batch(128, true)
local test_data = ds.FashionMnistDataset(data, "test", { shuffle = false }):map(numbers, "image"):batch(500)

local function conv(from, to) return nn.Conv2d(from, to, 5, { pad_mode = "pad", padding = 2, has_bias = true }) end
local net = nn.SequentialCell(conv(1, 8), nn.ReLU(), nn.MaxPool2d(2, 2), conv(8, 16), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
  nn.Dense(784, 100), nn.ReLU(), nn.Dense(100, 10))
ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.002)):train(2, train_data, { progress = false })

local x, y = test_data:create_tuple_iterator()()
y = y:astype(ms.int32)
local found = { x = x, y = y }
for _, p in ipairs(net:trainable_params()) do found["p:" .. p.name] = p:astype(ms.float32) end
local common = { eps = eps, seed = 1 }
local function with(more)
  for name, value in pairs(common) do more[name] = value end
  return more
end
found.pgd = A.ProjectedGradientDescent(net, with { eps_iter = eps / 4, nb_iter = 40 }):generate(x, y)
found.apgd_ce = A.AutoProjectedGradientDescent(net, with { nb_iter = 50 }):generate(x, y)
found.apgd_dlr = A.AutoProjectedGradientDescent(net, with { nb_iter = 50, loss_fn = "dlr" }):generate(x, y)
found.cw = A.CarliniWagnerL2Attack(net, 10, { bin_search_steps = 5, max_iterations = 200, learning_rate = 0.01, initial_const = 0.1,
  abort_early = false }):generate(x, y)
ms.save(folder .. "/strength.npz", found)
