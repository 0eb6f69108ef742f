-- Run by lenet_accuracy.py: LeNet-5 is trained on Fashion-MNIST by Model.train, on one core while the pipeline's thread has another.
-- Prints which share of the test pictures it gets right, in per cent, and how many seconds the training took.
-- Arguments: folder of the data, "float32", "float16" or "bfloat16" (the latter two at the level O2), seed.
local ms = require "lunaria"
local nn, ds = ms.nn, ms.dataset

local EPOCHS, BATCH, RATE = 7, 128, 0.004
local folder, precision, seed = arg[1], arg[2], math.tointeger(tonumber(arg[3]))
ms.set_num_threads(1)
ms.set_seed(seed)

-- Pictures are turned now and then; bytes become numbers around 0.
local numbers = { ds.vision.Rescale(1 / 90, -0.81), ds.vision.HWC2CHW() }
local train_data = ds.FashionMnistDataset(folder, "train")
  :map({ ds.vision.RandomHorizontalFlip(), table.unpack(numbers) }, "image"):batch(BATCH, true)
local test_data = ds.FashionMnistDataset(folder, "test", { shuffle = false }):map(numbers, "image"):batch(500)

local function conv(from, to, padding)
  return nn.Conv2d(from, to, 5, { pad_mode = "pad", padding = padding, has_bias = true, weight_init = "he_uniform" })
end
local net = nn.SequentialCell(conv(1, 6, 2), nn.ReLU(), nn.MaxPool2d(2, 2), conv(6, 16, 0), nn.ReLU(), nn.MaxPool2d(2, 2),
  nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10))

-- A rate that grows for a fifth of the steps and then falls along a cosine.
local rates, steps = {}, EPOCHS * train_data:get_dataset_size()
for i = 1, steps do
  local done = (i - 1) / steps
  rates[i] = RATE * (done < 0.2 and 0.1 + 0.9 * done / 0.2 or 0.002 + 0.499 * (1 + math.cos(math.pi * (done - 0.2) / 0.8)))
end
local options = { metrics = { "accuracy" } }
if precision ~= "float32" then options.amp_level, options.amp_dtype = "O2", ms[precision] end
local model = ms.Model(net, nn.CrossEntropyLoss(), nn.AdamWeightDecay(net:trainable_params(), rates, { weight_decay = 0.02 }), options)

local start = ms.clock()
model:train(EPOCHS, train_data, { progress = false })
local seconds = (ms.clock() - start) / 1e9
print(("%.2f %.1f"):format(100 * model:eval(test_data).accuracy, seconds))
