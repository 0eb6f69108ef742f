-- MobileNetV2 (Sandler et al. 2018): residual blocks that are wide within, of convolutions channel by channel.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function block(from, to, size, stride, group)
  return { nn.Conv2d(from, to, size, { stride = stride, pad_mode = "pad", padding = size // 2, group = group }), nn.BatchNorm2d(to) }
end

local function joined(...)
  local cells = {}
  for _, part in ipairs { ... } do
    for _, cell in ipairs(part) do cells[#cells + 1] = cell end
  end
  return cells
end

local Inverted = nn.Cell:extend("InvertedResidual")

function Inverted:init(from, to, stride, expansion)
  local width = from * expansion
  self.adds = stride == 1 and from == to
  self.conv = nn.SequentialCell(joined(
    expansion > 1 and joined(block(from, width, 1, 1, 1), { nn.ReLU6() }) or {},
    block(width, width, 3, stride, width), { nn.ReLU6() }, block(width, to, 1, 1, 1)))
end

function Inverted:construct(x)
  local y = self.conv(x)
  return self.adds and x + y or y
end

-- Expansion, channels, number of blocks, stride of the first.
local stages = { { 1, 16, 1, 1 }, { 6, 24, 2, 2 }, { 6, 32, 3, 2 }, { 6, 64, 4, 2 }, { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } }

local MobileNetV2 = nn.Cell:extend("MobileNetV2")

function MobileNetV2:init(classes)
  local cells, from = joined(block(3, 32, 3, 2, 1), { nn.ReLU6() }), 32
  for _, stage in ipairs(stages) do
    local expansion, to, count, stride = table.unpack(stage)
    for i = 1, count do
      cells[#cells + 1] = Inverted(from, to, i == 1 and stride or 1, expansion)
      from = to
    end
  end
  self.features = nn.SequentialCell(joined(cells, block(from, 1280, 1, 1, 1), { nn.ReLU6() }))
  self.dropout = nn.Dropout { p = 0.2 }
  self.classifier = nn.Dense(1280, classes)
end

function MobileNetV2:construct(x)
  return self.classifier(self.dropout(ops.mean(self.features(x), { 2, 3 })))
end

local M = {}

function M.mobilenet_v2(classes) return MobileNetV2(classes or 1000) end

return M
