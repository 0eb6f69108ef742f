-- U-Net (Ronneberger et al. 2015) with batch normalisation: a way down, where pictures become small and deep, a way up, and
-- what was seen on the way down beside what comes from below.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function double(from, to)
  local cells = {}
  for i, inputs in ipairs { from, to } do
    cells[3 * i - 2] = nn.Conv2d(inputs, to, 3, { pad_mode = "pad", padding = 1 })
    cells[3 * i - 1], cells[3 * i] = nn.BatchNorm2d(to), nn.ReLU()
  end
  return nn.SequentialCell(cells)
end

local UNet = nn.Cell:extend("UNet")

function UNet:init(channels, classes, width)
  self.inc = double(channels, width)
  self.pool = nn.MaxPool2d(2, 2)
  for i = 1, 4 do
    local small, large = width << i - 1, width << i
    self["down" .. i] = double(small, large)
    self["up" .. i] = nn.Conv2dTranspose(large, small, 2, { stride = 2, pad_mode = "pad", has_bias = true })
    self["conv" .. i] = double(large, small)
  end
  self.outc = nn.Conv2d(width, classes, 1, { has_bias = true })
end

-- pictures (batch, channels, height, width), both a multiple of 16 -> scores (batch, classes, height, width)
function UNet:construct(x)
  local seen = { self.inc(x) }
  for i = 1, 4 do seen[i + 1] = self["down" .. i](self.pool(seen[i])) end
  local y = seen[5]
  for i = 4, 1, -1 do y = self["conv" .. i](ops.concat({ seen[i], self["up" .. i](y) }, 1)) end
  return self.outc(y)
end

local M = {}

--- U-Net for pictures of so many channels; width: the channels of the first layer.
function M.unet(channels, classes, width) return UNet(channels or 3, classes or 1, width or 64) end

return M
