-- VGG with 16 layers (Simonyan, Zisserman 2015), for pictures of 224 x 224.
local ms = require "lunaria"
local nn = ms.nn

local M = {}

local widths = { 64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0 }

function M.vgg16(classes)
  local cells, from = {}, 3
  for _, width in ipairs(widths) do
    if width == 0 then
      cells[#cells + 1] = nn.MaxPool2d(2, 2)
    else
      cells[#cells + 1] = nn.Conv2d(from, width, 3, { pad_mode = "pad", padding = 1, has_bias = true })
      cells[#cells + 1] = nn.ReLU()
      from = width
    end
  end
  for _, cell in ipairs { nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Dense(512 * 49, 4096), nn.ReLU(), nn.Dropout { p = 0.5 },
    nn.Dense(4096, 4096), nn.ReLU(), nn.Dropout { p = 0.5 }, nn.Dense(4096, classes or 1000) } do
    cells[#cells + 1] = cell
  end
  return nn.SequentialCell(cells)
end

return M
