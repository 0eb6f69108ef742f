-- A tracker after SiamFC (Bertinetto et al. 2016): one small network looks at a pattern of 64 x 64 points and at a window of
-- 128 x 128; where the features of the pattern match those of the window best, the thing is now.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local Tracker = nn.Cell:extend("Tracker")

Tracker.pattern, Tracker.window, Tracker.stride = 64, 128, 8

local function conv(from, to, size, stride)
  return nn.Conv2d(from, to, size, { stride = stride, pad_mode = "pad", padding = size // 2, bias = true })
end

function Tracker:init(channels, w)
  self.features = nn.SequentialCell(conv(channels, w, 5, 2), nn.ReLU(), conv(w, 2 * w, 3, 2), nn.ReLU(), conv(2 * w, 4 * w, 3, 2),
    nn.ReLU(), nn.Conv2d(4 * w, 4 * w, 1, { bias = true }))
  self.scale, self.bias = ms.Parameter(ms.tensor(0.01), "scale"), ms.Parameter(ms.tensor(0.0), "bias")
end

-- pattern (1, channels, 64, 64), window (1, channels, 128, 128) -> how well it matches (1, 1, 9, 9): at place (i, j) the pattern's
-- first point is 8 i, 8 j
function Tracker:construct(pattern, window)
  return ops.conv2d(self.features(window), self.features(pattern)) * self.scale + self.bias
end

local M = {}

--- The network; width: the channels of the first layer.
function M.siamese(channels, width) return Tracker(channels or 1, width or 8) end

--- What the network should say when the pattern's first point is (y, x) of the window: 1 near it, 0 elsewhere.
function M.target(y, x)
  local places = ops.arange(9):astype(ms.float32) * 8
  local near = ops.expand_dims((places - y) ^ 2, 1) + ops.expand_dims((places - x) ^ 2, 0)
  return ops.reshape(ops.less(near, 80.0):astype(ms.float32), { 1, 1, 9, 9 })
end

--- The loss of a map: both answers count the same, however few places match.
function M.loss(map, wanted)
  local each = ops.binary_cross_entropy_with_logits(map, wanted, nil, nil, "none")
  return ops.sum(each * wanted) / ops.maximum(ops.sum(wanted), 1.0) + ops.sum(each * (1.0 - wanted)) / ops.sum(1.0 - wanted)
end

--- A picture of a bright rectangle among dimmer ones: size x size points, its first point at (y, x).
function M.scene(size, y, x, high, wide, others)
  local picture = ops.randn { 1, 1, size, size } * 0.05
  local function add(top, left, h, w, light)
    local function rows(from, count)
      local at = ops.arange(size)
      return ops.logical_and(ops.greater_equal(at, from), ops.less(at, from + count)):astype(ms.float32)
    end
    picture = picture + ops.expand_dims(rows(top, h), 1) * ops.expand_dims(rows(left, w), 0) * light
  end
  for _, other in ipairs(others or {}) do add(table.unpack(other)) end
  add(y, x, high, wide, 1.0)
  return picture
end

--- Follows a pattern through pictures: step(picture, y, x) cuts a window around the last middle, and gives the new one. match: the
--- network, or a light model of it, as a function of pattern and window.
function M.follow(match, pattern)
  return function(picture, y, x)
    local size = picture:sizes(-1)
    local function first(middle) return math.max(0, math.min(size - 128, math.floor(middle + 0.5) - 64)) end
    local top, left = first(y), first(x)
    local window = picture[("..., %d:%d, %d:%d"):format(top, top + 128, left, left + 128)]
    local map = ops.softmax(ops.reshape(match(pattern, window), { -1 }) * 4.0)
    -- The middle of the places that match, by their shares: finer than the places lie.
    local shares = map:tolist()
    local sum_y, sum_x = 0, 0
    for place, share in ipairs(shares) do
      sum_y, sum_x = sum_y + share * ((place - 1) // 9), sum_x + share * ((place - 1) % 9)
    end
    return top + 8 * sum_y + 32, left + 8 * sum_x + 32
  end
end

return M
