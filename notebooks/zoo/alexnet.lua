-- AlexNet in the form of "One weird trick" (Krizhevsky 2014), for pictures of 224 x 224.
local ms = require "lunaria"
local nn = ms.nn

local M = {}

function M.alexnet(classes)
  local function conv(from, to, size, stride, padding)
    return nn.Conv2d(from, to, size, { stride = stride, pad_mode = "pad", padding = padding, has_bias = true })
  end
  return nn.SequentialCell(
    conv(3, 64, 11, 4, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
    conv(64, 192, 5, 1, 2), nn.ReLU(), nn.MaxPool2d(3, 2),
    conv(192, 384, 3, 1, 1), nn.ReLU(), conv(384, 256, 3, 1, 1), nn.ReLU(), conv(256, 256, 3, 1, 1), nn.ReLU(),
    nn.MaxPool2d(3, 2), nn.AdaptiveAvgPool2d(6), nn.Flatten(),
    nn.Dropout { p = 0.5 }, nn.Dense(256 * 36, 4096), nn.ReLU(),
    nn.Dropout { p = 0.5 }, nn.Dense(4096, 4096), nn.ReLU(), nn.Dense(4096, classes or 1000))
end

return M
