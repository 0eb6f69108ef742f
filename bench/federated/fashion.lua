-- Fashion-MNIST and the networks of the simulations in this folder.
local ms = require "lunaria"
local nn = ms.nn
local fashion = {}

local folder = "/usr/share/datasets/fashion-mnist"

--- Pictures as floats from 0 to 1 and labels. part: "train" or "t10k"; count: nil for all; shape: of a picture.
function fashion.pictures(part, count, ...)
  local images = ms.load_idx(("%s/%s-images-idx3-ubyte.gz"):format(folder, part))
  local labels = ms.load_idx(("%s/%s-labels-idx1-ubyte.gz"):format(folder, part))
  local some = { ms.slice(0, count or images.shape[1]) }
  return images[some]:reshape { -1, ... }:cast(ms.float32) / 255, labels[some]:cast(ms.int32)
end

--- The perceptron of McMahan and others (2017), "2NN".
function fashion.perceptron(seed)
  ms.set_seed(seed)
  return nn.SequentialCell(nn.Dense(784, 200), nn.ReLU(), nn.Dense(200, 200), nn.ReLU(), nn.Dense(200, 10))
end

--- The network of NIID-Bench (Li and others 2021): two convolutions and three dense layers.
function fashion.convolutions(seed)
  ms.set_seed(seed)
  return nn.SequentialCell(
    nn.Conv2d(1, 6, 5, { pad_mode = "valid", has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 2),
    nn.Conv2d(6, 16, 5, { pad_mode = "valid", has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 2),
    nn.Flatten(), nn.Dense(256, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10))
end

return fashion
