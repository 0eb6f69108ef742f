-- SSD (Liu et al. 2016) for pictures of 300 x 300: VGG16 and further layers give maps of six sizes; at each place of each map a
-- head gives the scores and the offsets of a few default boxes.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function conv(from, to, size, options)
  local o = options or {}
  return nn.Conv2d(from, to, size, { stride = o.stride, padding = o.padding, dilation = o.dilation, pad_mode = "pad", has_bias = true })
end

-- Convolutions of 3 x 3 with relu; 0 halves the picture.
local function stage(from, widths)
  local cells = {}
  for _, width in ipairs(widths) do
    if width == 0 then
      cells[#cells + 1] = nn.MaxPool2d(2, 2, { ceil_mode = true })
    else
      cells[#cells + 1], cells[#cells + 2] = conv(from, width, 3, { padding = 1 }), nn.ReLU()
      from = width
    end
  end
  return nn.SequentialCell(cells)
end

local ratios = { { 2 }, { 2, 3 }, { 2, 3 }, { 2, 3 }, { 2 }, { 2 } }

local SSD = nn.Cell:extend("SSD300")

function SSD:init(classes, w)
  self.classes = classes
  self.features = stage(3, { w, w, 0, 2 * w, 2 * w, 0, 4 * w, 4 * w, 4 * w, 0, 8 * w, 8 * w, 8 * w })
  self.scale_weight = ms.Parameter(ops.full({ 1, 8 * w, 1, 1 }, 20.0))
  local halved = { stride = 2, padding = 1 }
  local function extra(from, to, options)
    return nn.SequentialCell(conv(from, to // 2, 1), nn.ReLU(), conv(to // 2, to, 3, options), nn.ReLU())
  end
  self.extra = nn.CellList { nn.SequentialCell(nn.MaxPool2d(2, 2), stage(8 * w, { 8 * w, 8 * w, 8 * w }),
      nn.MaxPool2d(3, 1, { pad_mode = "pad", padding = 1 }), conv(8 * w, 16 * w, 3, { padding = 6, dilation = 6 }), nn.ReLU(),
      conv(16 * w, 16 * w, 1), nn.ReLU()),
    extra(16 * w, 8 * w, halved), extra(8 * w, 4 * w, halved), extra(4 * w, 4 * w), extra(4 * w, 4 * w) }
  local scores, offsets = {}, {}
  for i, width in ipairs { 8 * w, 16 * w, 8 * w, 4 * w, 4 * w, 4 * w } do
    local boxes = 2 + 2 * #ratios[i]
    scores[i], offsets[i] = conv(width, boxes * classes, 3, { padding = 1 }), conv(width, boxes * 4, 3, { padding = 1 })
  end
  self.scores, self.offsets = nn.CellList(scores), nn.CellList(offsets)
end

-- pictures (batch, 3, 300, 300) -> scores (batch, 8732, classes), class 0 being nothing, and offsets (batch, 8732, 4)
function SSD:construct(x)
  local y = self.features(x)
  local maps = { self.scale_weight * y / ops.norm(y, 2, 1, true) }
  for i = 1, 5 do
    y = self.extra[i](y)
    maps[i + 1] = y
  end
  local function rows(cells, size)
    local list = {}
    for i, map in ipairs(maps) do
      list[i] = ops.reshape(ops.transpose(cells[i](map), { 0, 2, 3, 1 }), { x:sizes(0), -1, size })
    end
    return ops.concat(list, 1)
  end
  return rows(self.scores, self.classes), rows(self.offsets, 4)
end

local M = {}

--- SSD300 with VGG16; width: the channels of the first layer.
function M.ssd300(classes, width) return SSD(classes or 91, width or 64) end

--- The default boxes (8732, 4) as middle and size, in parts of the picture, in the order of the network's results.
function M.default_boxes()
  local scales, steps, list = { 0.07, 0.15, 0.33, 0.51, 0.69, 0.87, 1.05 }, { 8, 16, 32, 64, 100, 300 }, {}
  for map, size in ipairs { 38, 19, 10, 5, 3, 1 } do
    local sizes = { { scales[map], scales[map] }, { math.sqrt(scales[map] * scales[map + 1]), math.sqrt(scales[map] * scales[map + 1]) } }
    for _, ratio in ipairs(ratios[map]) do
      local wide, high = scales[map] * math.sqrt(ratio), scales[map] / math.sqrt(ratio)
      sizes[#sizes + 1], sizes[#sizes + 2] = { wide, high }, { high, wide }
    end
    for place = 0, size * size - 1 do
      local x, y = (place % size + 0.5) * steps[map] / 300, (place // size + 0.5) * steps[map] / 300
      for _, box in ipairs(sizes) do list[#list + 1] = { x, y, math.min(box[1], 1.0), math.min(box[2], 1.0) } end
    end
  end
  return ms.tensor(list)
end

--- What the network should say for the boxes (count, 4) of one picture, middle and size, with labels (count) from 1: labels (8732)
--- and offsets (8732, 4). A default box belongs to the box that it overlaps most, if by half or more than all others.
function M.targets(boxes, labels, defaults)
  local function corners(b) return b["..., 0:2"] - b["..., 2:4"] / 2, b["..., 0:2"] + b["..., 2:4"] / 2 end
  local from_a, to_a = corners(ops.expand_dims(defaults, 1))
  local from_b, to_b = corners(boxes)
  local common = ops.prod(ops.relu(ops.minimum(to_a, to_b) - ops.maximum(from_a, from_b)), -1)
  local overlap = common / (ops.expand_dims(ops.prod(defaults["..., 2:4"], -1), 1) + ops.prod(boxes["..., 2:4"], -1) - common)
  local best = ops.argmax(overlap, 0)
  overlap = overlap + 2.0 * ops.swapaxes(ops.one_hot(best, defaults:sizes(0), 1.0, 0.0), 0, 1)
  local owner = ops.argmax(overlap, 1)
  local box = ops.gather(boxes, owner, 0)
  local middle = (box["..., 0:2"] - defaults["..., 0:2"]) / defaults["..., 2:4"] * 10.0
  local offsets = ops.concat({ middle, ops.log(box["..., 2:4"] / defaults["..., 2:4"]) * 5.0 }, 1)
  return ops.where(ops.greater_equal(ops.max(overlap, 1), 0.5), ops.gather(labels, owner, 0), 0), offsets
end

--- The loss of M.targets in batches: the offsets of boxes with something in them, their classes, and those of the three times as
--- many empty boxes that are judged worst.
function M.loss(scores, offsets, labels, wanted)
  local full = ops.greater(labels, 0):astype(scores.dtype)
  local count = ops.sum(full, 1, true)
  local place = ops.sum(ops.smooth_l1_loss(offsets, wanted, 1.0, "none") * ops.expand_dims(full, 2))
  local each = -ops.squeeze(ops.gather_elements(ops.log_softmax(scores, -1), 2, ops.expand_dims(labels, 2)), 2)
  local empty = ops.stop_gradient(each * (1.0 - full))
  local order = ops.argsort(ops.argsort(empty, 1, true), 1):astype(scores.dtype)
  local hard = ops.less(order, 3.0 * count):astype(scores.dtype) * (1.0 - full)
  return (place + ops.sum(each * (full + hard))) / ops.maximum(ops.sum(count), 1.0)
end

return M
