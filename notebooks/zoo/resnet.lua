-- Residual networks (He et al. 2016): ResNet-18 of plain blocks, ResNet-50 of bottlenecks, whose stride is in the 3 x 3
-- convolution.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function conv(from, to, size, stride)
  return nn.Conv2d(from, to, size, { stride = stride, pad_mode = "pad", padding = size // 2 })
end

local Block = nn.Cell:extend("Block")

-- sizes: the windows of the convolutions, of which the `strided`-th has the stride; expansion: how much wider the last is.
function Block:init(from, width, stride, sizes, strided, expansion)
  local to = width * expansion
  self.count = #sizes
  for i, size in ipairs(sizes) do
    local inputs, outputs = i == 1 and from or width, i == #sizes and to or width
    self["conv" .. i] = conv(inputs, outputs, size, i == strided and stride or 1)
    self["bn" .. i] = nn.BatchNorm2d(outputs)
  end
  if stride ~= 1 or from ~= to then
    self.downsample = nn.SequentialCell(conv(from, to, 1, stride), nn.BatchNorm2d(to))
  end
end

function Block:construct(x)
  local y = x
  for i = 1, self.count do
    y = self["bn" .. i](self["conv" .. i](y))
    if i < self.count then y = ops.relu(y) end
  end
  return ops.relu(y + (self.downsample and self.downsample(x) or x))
end

local ResNet = nn.Cell:extend("ResNet")

function ResNet:init(classes, first, counts, sizes, strided, expansion)
  self.conv1, self.bn1 = conv(3, first, 7, 2), nn.BatchNorm2d(first)
  self.maxpool = nn.MaxPool2d(3, 2, { pad_mode = "pad", padding = 1 })
  local from = first
  for stage, count in ipairs(counts) do
    local width, blocks = first << stage - 1, {}
    for i = 1, count do
      blocks[i] = Block(from, width, i == 1 and stage > 1 and 2 or 1, sizes, strided, expansion)
      from = width * expansion
    end
    self["layer" .. stage] = nn.SequentialCell(blocks)
  end
  self.fc = nn.Dense(from, classes)
end

function ResNet:construct(x)
  x = self.maxpool(ops.relu(self.bn1(self.conv1(x))))
  x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
  return self.fc(ops.mean(x, { 2, 3 }))
end

local M = {}

--- For so many classes. width: the channels of the first layer; counts: of the blocks of the four stages.
function M.resnet18(classes, width, counts) return ResNet(classes or 1000, width or 64, counts or { 2, 2, 2, 2 }, { 3, 3 }, 1, 1) end
function M.resnet50(classes, width, counts) return ResNet(classes or 1000, width or 64, counts or { 3, 4, 6, 3 }, { 1, 3, 1 }, 2, 4) end

return M
