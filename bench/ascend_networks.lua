-- Networks of published results that the zoo does not have: SE-ResNet-50 (Hu et al. 2018) and Inception-v3 (Szegedy et al.
-- 2016).
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function conv(from, to, size, stride, pad)
  return nn.Conv2d(from, to, size, { stride = stride or 1, pad_mode = "pad", padding = pad or 0 })
end

local SEBlock = nn.Cell:extend("SEBlock")

function SEBlock:init(from, width, stride)
  local to = width * 4
  self.conv1, self.bn1 = conv(from, width, 1), nn.BatchNorm2d(width)
  self.conv2, self.bn2 = conv(width, width, 3, stride, 1), nn.BatchNorm2d(width)
  self.conv3, self.bn3 = conv(width, to, 1), nn.BatchNorm2d(to)
  self.down, self.up = nn.Dense(to, to // 16), nn.Dense(to // 16, to)
  if stride ~= 1 or from ~= to then self.shortcut = nn.SequentialCell(conv(from, to, 1, stride), nn.BatchNorm2d(to)) end
end

function SEBlock:construct(x)
  local y = ops.relu(self.bn1(self.conv1(x)))
  y = ops.relu(self.bn2(self.conv2(y)))
  y = self.bn3(self.conv3(y))
  local weight = ops.sigmoid(self.up(ops.relu(self.down(ops.mean(y, { 2, 3 })))))
  y = y * ops.reshape(weight, { y.shape[1], y.shape[2], 1, 1 })
  return ops.relu(y + (self.shortcut and self.shortcut(x) or x))
end

local SEResNet = nn.Cell:extend("SEResNet")

function SEResNet:init(classes)
  self.conv1, self.bn1 = conv(3, 64, 7, 2, 3), nn.BatchNorm2d(64)
  self.maxpool = nn.MaxPool2d(3, 2, { pad_mode = "pad", padding = 1 })
  local from, blocks = 64, {}
  for stage, count in ipairs { 3, 4, 6, 3 } do
    local width = 32 << stage
    for i = 1, count do
      blocks[#blocks + 1] = SEBlock(from, width, i == 1 and stage > 1 and 2 or 1)
      from = width * 4
    end
  end
  self.blocks = nn.SequentialCell(blocks)
  self.fc = nn.Dense(from, classes)
end

function SEResNet:construct(x)
  return self.fc(ops.mean(self.blocks(self.maxpool(ops.relu(self.bn1(self.conv1(x))))), { 2, 3 }))
end

-- A convolution with normalisation and relu; sizes and paddings may differ by axis.
local Unit = nn.Cell:extend("InceptionUnit")

function Unit:init(from, to, size, stride, pad)
  pad = pad or { 0, 0 }
  self.conv = nn.Conv2d(from, to, size, { stride = stride or 1, pad_mode = "pad", padding = { pad[1], pad[1], pad[2], pad[2] } })
  self.bn = nn.BatchNorm2d(to)
end

function Unit:construct(x) return ops.relu(self.bn(self.conv(x))) end

-- Branches whose channels are put together; each is a list of units after a pool ("average" or "max") or none. split: units beside
-- each other behind the list, whose channels are put together first.
local Mixed = nn.Cell:extend("InceptionMixed")

function Mixed:init(branches)
  self.kinds = {}
  for i, branch in ipairs(branches) do
    self.kinds[i] = branch.pool
    self["branch" .. i] = nn.CellList(table.unpack(branch))
    self["split" .. i] = branch.split and nn.CellList(branch.split) or nil
  end
end

function Mixed:construct(x)
  local parts = {}
  for i = 1, 4 do
    local cells = self["branch" .. i]
    if cells then
      local y = x
      if self.kinds[i] == "average" then y = ops.avg_pool2d(y, 3, 1, 1) end
      if self.kinds[i] == "max" then y = ops.max_pool2d(y, 3, 2) end
      for k = 1, #cells do y = cells[k](y) end
      local split = self["split" .. i]
      if split then
        local beside = {}
        for k = 1, #split do beside[k] = split[k](y) end
        y = ops.concat(beside, 1)
      end
      parts[#parts + 1] = y
    end
  end
  return ops.concat(parts, 1)
end

local Inception = nn.Cell:extend("InceptionV3")

function Inception:init(classes)
  local list = { Unit(3, 32, 3, 2), Unit(32, 32, 3), Unit(32, 64, 3, 1, { 1, 1 }), "max", Unit(64, 80, 1), Unit(80, 192, 3), "max" }
  local from = 192
  for _, pool in ipairs { 32, 64, 64 } do
    list[#list + 1] = Mixed { { Unit(from, 64, 1) }, { Unit(from, 48, 1), Unit(48, 64, 5, 1, { 2, 2 }) },
      { Unit(from, 64, 1), Unit(64, 96, 3, 1, { 1, 1 }), Unit(96, 96, 3, 1, { 1, 1 }) }, { Unit(from, pool, 1), pool = "average" } }
    from = 224 + pool
  end
  list[#list + 1] = Mixed { { Unit(from, 384, 3, 2) }, { Unit(from, 64, 1), Unit(64, 96, 3, 1, { 1, 1 }), Unit(96, 96, 3, 2) },
    { pool = "max" } }
  from = 768
  for _, c in ipairs { 128, 160, 160, 192 } do
    list[#list + 1] = Mixed { { Unit(from, 192, 1) },
      { Unit(from, c, 1), Unit(c, c, { 1, 7 }, 1, { 0, 3 }), Unit(c, 192, { 7, 1 }, 1, { 3, 0 }) },
      { Unit(from, c, 1), Unit(c, c, { 7, 1 }, 1, { 3, 0 }), Unit(c, c, { 1, 7 }, 1, { 0, 3 }), Unit(c, c, { 7, 1 }, 1, { 3, 0 }),
        Unit(c, 192, { 1, 7 }, 1, { 0, 3 }) }, { Unit(from, 192, 1), pool = "average" } }
  end
  list[#list + 1] = Mixed { { Unit(from, 192, 1), Unit(192, 320, 3, 2) },
    { Unit(from, 192, 1), Unit(192, 192, { 1, 7 }, 1, { 0, 3 }), Unit(192, 192, { 7, 1 }, 1, { 3, 0 }), Unit(192, 192, 3, 2) },
      { pool = "max" } }
  from = 1280
  for _ = 1, 2 do
    local function both() return { Unit(384, 384, { 1, 3 }, 1, { 0, 1 }), Unit(384, 384, { 3, 1 }, 1, { 1, 0 }) } end
    list[#list + 1] = Mixed { { Unit(from, 320, 1) }, { Unit(from, 384, 1), split = both() },
      { Unit(from, 448, 1), Unit(448, 384, 3, 1, { 1, 1 }), split = both() }, { Unit(from, 192, 1), pool = "average" } }
    from = 2048
  end
  self.kinds, self.count, self.auxiliary = {}, #list, 15
  for i, part in ipairs(list) do
    if part == "max" then self.kinds[i] = "max" else self["part" .. i] = part end
  end
  self.dropout, self.fc = nn.Dropout { p = 0.2 }, nn.Dense(2048, classes)
  self.aux1, self.aux2, self.aux_fc = conv(768, 128, 1), conv(128, 768, 5), nn.Dense(768, classes)
end

-- Beside the classes there is an auxiliary classifier of the last features of 17 x 17, whose loss counts a fifth; labels are smoothed.
function Inception:construct(x)
  local auxiliary
  for i = 1, self.count do
    if self.kinds[i] then x = ops.max_pool2d(x, 3, 2) else x = self["part" .. i](x) end
    if i == self.auxiliary then
      auxiliary = self.aux2(self.aux1(ops.avg_pool2d(x, 5, 3)))
      auxiliary = self.aux_fc(ops.reshape(auxiliary, { x.shape[1], -1 }))
    end
  end
  return self.fc(self.dropout(ops.mean(x, { 2, 3 }))), auxiliary
end

local M = {}

local function classifier(make, size)
  return { make = make, optimizer = "momentum", dtype = "float16", inputs = function(batch)
    return ops.zeros { batch, 3, size, size }, ops.zeros({ batch }, ms.int32)
  end, forward = function(net)
    local loss = nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" }
    return function(x, y) return loss(net(x), y) end
  end }
end

M.se_resnet50 = classifier(function() return SEResNet(1001) end, 224)
M.se_resnet50.name = "se_resnet50"
-- As mindspore-ai/models trains it: amp level O3, RMSProp, labels smoothed by 0.1.
M.inception_v3 = { name = "inception_v3", make = function() return Inception(1000) end, optimizer = "rmsprop", dtype = "float16",
  inputs = function(batch) return ops.zeros { batch, 3, 299, 299 }, ops.zeros({ batch, 1000 }) end, forward = function(net)
    local loss = nn.SoftmaxCrossEntropyWithLogits { reduction = "mean" }
    return function(x, y)
      local scores, auxiliary = net(x)
      return loss(scores, y) + loss(auxiliary, y) * 0.2
    end
  end }

-- The large Transformer of mindspore-ai/models, all sentences 128 tokens long. Labels are smoothed, which takes them as a row of numbers
-- for each token.
M.transformer_large = { name = "transformer_large", make = function()
  return require("lunaria.zoo.transformer").transformer { vocabulary = 36560, length = 128, width = 1024, heads = 16, inner = 4096,
    layers = 6, dropout = 0.2 }
end, inputs = require("lunaria.ascend.networks").transformer.inputs, forward = function(net)
  return function(source, target, y)
    local scores = net(source, target)
    local width = scores.shape[3]
    local wanted = ops.one_hot(y, width, 0.9, 0.1 / (width - 1))
    return -ops.mean(ops.sum(ops.log_softmax(ops.reshape(scores, { -1, width }), -1) * wanted, -1))
  end
end, optimizer = "adam", dtype = "mixed" }

-- Wide & Deep of mindspore-ai/models: 184,065 features, tables and layers by Adam (the table of single weights by FTRL there).
M.wide_and_deep = { name = "wide_and_deep", make = function()
  return require("lunaria.zoo.clicks").wide_and_deep { vocabulary = 184065, fields = 39, width = 80, layers = { 1024, 512, 256, 128 } }
end, inputs = require("lunaria.ascend.networks").wide_and_deep.inputs, forward = require("lunaria.ascend.networks").wide_and_deep.forward,
  optimizer = "adam", dtype = "mixed" }

return M
