-- LeNet-5 (LeCun et al. 1998) for pictures of 32 x 32, or of 28 x 28 with pad = 2.
local ms = require "lunaria"
local nn = ms.nn

local M = {}

function M.lenet5(classes, options)
  options = options or {}
  local function conv(from, to, padding)
    return nn.Conv2d(from, to, 5, { pad_mode = "pad", padding = padding, has_bias = true })
  end
  return nn.SequentialCell(
    conv(options.channels or 1, 6, options.pad or 0), nn.ReLU(), nn.MaxPool2d(2, 2),
    conv(6, 16, 0), nn.ReLU(), nn.MaxPool2d(2, 2),
    nn.Flatten(), nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, classes or 10))
end

return M
