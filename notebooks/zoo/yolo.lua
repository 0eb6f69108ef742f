-- YOLOv3-tiny (Redmon, Farhadi 2018): two maps, of 1/32 and 1/16 of the picture; each place has three boxes, with offsets, the
-- probability that something is there, and those of the classes.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function conv(from, to, size)
  return nn.SequentialCell(nn.Conv2d(from, to, size, { pad_mode = "pad", padding = size // 2 }), nn.BatchNorm2d(to, { momentum = 0.97 }),
    nn.LeakyReLU(0.1))
end

local Yolo = nn.Cell:extend("YOLOv3Tiny")

-- Widths and heights of the boxes, in points of the picture: of the fine map and of the coarse one.
Yolo.anchors = { { { 10, 14 }, { 23, 27 }, { 37, 58 } }, { { 81, 82 }, { 135, 169 }, { 344, 319 } } }
Yolo.strides = { 16, 32 }

function Yolo:init(classes, w)
  self.classes = classes
  local cells, from = {}, 3
  for i = 0, 4 do
    cells[#cells + 1], from = conv(from, w << i, 3), w << i
    if i < 4 then cells[#cells + 1] = nn.MaxPool2d(2, 2) end
  end
  self.fine = nn.SequentialCell(cells)
  self.pool = nn.MaxPool2d(2, 2)
  self.deep = nn.SequentialCell(conv(16 * w, 32 * w, 3), nn.MaxPool2d(2, 1, { pad_mode = "same" }), conv(32 * w, 64 * w, 3),
    conv(64 * w, 16 * w, 1))
  self.coarse = conv(16 * w, 32 * w, 3)
  self.narrow = conv(16 * w, 8 * w, 1)
  self.joined = conv(24 * w, 16 * w, 3)
  local results = 3 * (5 + classes)
  self.heads = nn.CellList { nn.Conv2d(16 * w, results, 1, { has_bias = true }), nn.Conv2d(32 * w, results, 1, { has_bias = true }) }
end

-- pictures (batch, 3, height, width), both multiples of 32 -> two maps (batch, 3, rows, columns, 5 + classes), the fine one first
function Yolo:construct(x)
  local fine = self.fine(x)
  local deep = self.deep(self.pool(fine))
  local narrow = self.narrow(deep)
  local large = ops.repeat_interleave(ops.repeat_interleave(narrow, 2, 2), 2, 3)
  local maps = {}
  for i, y in ipairs { self.joined(ops.concat({ large, fine }, 1)), self.coarse(deep) } do
    y = self.heads[i](y)
    local batch, _, rows, columns = y:sizes()
    y = ops.reshape(y, { batch, 3, 5 + self.classes, rows, columns })
    maps[i] = ops.transpose(y, { 0, 1, 3, 4, 2 })
  end
  return maps[1], maps[2]
end

--- Boxes (batch, 3 rows columns, 4) as middle and size in points, and the probabilities of something being there and of the classes,
--- of the map number i.
function Yolo:boxes(map, i)
  local batch, _, rows, columns = map:sizes()
  local places = ops.stack({ ops.broadcast_to(ops.arange(columns), { rows, columns }),
    ops.broadcast_to(ops.expand_dims(ops.arange(rows), 1), { rows, columns }) }, 2):astype(map.dtype)
  local middle = (ops.sigmoid(map["..., 0:2"]) + places) * self.strides[i]
  local size = ops.exp(map["..., 2:4"]) * ms.tensor(self.anchors[i], map.dtype):reshape { 3, 1, 1, 2 }
  local function flat(x) return ops.reshape(x, { batch, 3 * rows * columns, -1 }) end
  return flat(ops.concat({ middle, size }, -1)), flat(ops.sigmoid(map["..., 4:"]))
end

local M = {}

--- The network; width: the channels of the first layer.
function M.yolov3_tiny(classes, width) return Yolo(classes or 80, width or 16) end

--- The loss of a map: squares of places and sizes where there is something, cross entropies for what is there. wanted: of the map's
--- shape, with places between 0 and 1 within their square, and sizes as logarithms of how many times the box's own they are.
function M.loss(map, wanted)
  local there = wanted["..., 4:5"]
  local function entropy(part) return ops.binary_cross_entropy_with_logits(map[part], wanted[part], nil, nil, "none") end
  local place = ops.sum(there * (ops.sigmoid(map["..., 0:2"]) - wanted["..., 0:2"]) ^ 2)
  local size = ops.sum(there * (map["..., 2:4"] - wanted["..., 2:4"]) ^ 2)
  return 5.0 * (place + size) + ops.sum(entropy "..., 4:5") + ops.sum(there * entropy "..., 5:")
end

return M
