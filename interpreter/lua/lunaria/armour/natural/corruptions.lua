-- Corruptions of pictures by which robustness is measured: the fifteen of ImageNet-C and its four further ones (Hendrycks and Dietterich,
-- 2019), at five severities. Strengths are those of ImageNet-C for pictures of 224 pixels; what is a number of pixels there is a share of
-- the shorter side here. Frost and the noise under fog and snow are made, not photographed, and glass moves pixels all at once instead of
-- one after the other.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.armour.common"
local filters = require "lunaria.armour.filters"
local jpeg = require "lunaria.armour.natural.jpeg"
local line_kernel = require "lunaria.armour.natural.quality".line_kernel
local picture = require "lunaria.armour.natural.picture"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

-- The pictures of ImageNet-C have so many pixels a side.
local own_side = 224

local function shape_of(x) return { table.unpack(x.shape) } end
local function normal(x, draws) return draws:normal(shape_of(x), x.dtype) end

-- A Gaussian filter of a standard deviation in pixels, cut off after three of them.
local function smoothed(x, deviation)
  if deviation < 0.1 then return x end
  return filters.gaussian_blur(x, 2 * math.max(1, math.ceil(3 * deviation)) + 1, deviation)
end

-- Numbers of Poisson's distribution by their cumulative distribution: as many as a uniform draw lies above.
local function poisson(rate, draws)
  rate = rate:astype(ms.float64)
  local most = ops.max(rate):item()
  local u, chance = draws:uniform(shape_of(rate), 0.0, 1.0, ms.float64), ops.exp(-rate)
  local below, count = chance, ops.zeros_like(rate)
  for k = 1, math.ceil(most + 8 * math.sqrt(most) + 8) do
    count = count + ops.greater(u, below):astype(ms.float64)
    chance = chance * rate / k
    below = below + chance
  end
  return count
end

-- A disc with a soft edge as a kernel.
local function disc(radius)
  local reach = math.ceil(radius + 1)
  local place = ops.arange(-reach, reach + 1):astype(ms.float64)
  local distance = ops.sqrt(ops.square(place):reshape { -1, 1 } + ops.square(place):reshape { 1, -1 })
  local kernel = ops.clamp(radius + 1 - distance, 0.0, 1.0)
  return kernel / ops.sum(kernel)
end

local function zoomed(x, factor)
  local height, width = x.shape[3], x.shape[4]
  local cx, cy = (width - 1) / 2, (height - 1) / 2
  return picture.warped(x, height, width, function(u, v) return (u - cx) / factor + cx, (v - cy) / factor + cy end)
end

-- Clouds (N, 1, H, W) from 0 to 1: random values on grids that are twice as fine each time and count `decay` times less.
local function clouds(x, draws, decay)
  local count, height, width = x.shape[1], x.shape[3], x.shape[4]
  local sum, side, weight = nil, 2, 1.0
  while side <= math.max(2, math.max(height, width)) do
    local coarse = draws:uniform({ count, 1, side, side }, 0.0, 1.0, x.dtype)
    local layer = picture.warped(coarse, height, width, function(u, v)
      return u * ((side - 1) / math.max(1, width - 1)), v * ((side - 1) / math.max(1, height - 1))
    end)
    sum = sum and sum + layer * weight or layer * weight
    side, weight = 2 * side, weight / decay
  end
  local flat = sum:reshape { count, -1 }
  local least, most = common.beside(sum, ops.amin(flat, 1)), common.beside(sum, ops.amax(flat, 1))
  return (sum - least) / (most - least + 1e-6)
end

-- Pictures with the largest of the channels, the value of HSV, changed by f; a black pixel becomes grey.
local function with_value(x, f)
  local value = ops.amax(x, 1, true)
  local changed = ops.clamp(f(value), 0.0, 1.0)
  local is_black = ops.less(value, 1e-6)
  return ops.where(is_black, changed, x * (changed / ops.where(is_black, ops.ones_like(value), value)))
end

local function grey(x) return ops.mean(x, 1, true) end

local rows = {}
local order = {}

-- strengths: of the five severities. change(x, c, draws, scale): c: a strength; scale: the shorter side as a share of ImageNet-C's.
local function corruption(group, name, strengths, change)
  rows[name] = { group = group, strengths = strengths, change = change }
  order[#order + 1] = name
end

corruption("noise", "gaussian_noise", { 0.08, 0.12, 0.18, 0.26, 0.38 }, function(x, c, draws) return x + c * normal(x, draws) end)

corruption("noise", "shot_noise", { 60, 25, 12, 5, 3 }, function(x, c, draws) return (poisson(x * c, draws) / c):astype(x.dtype) end)

corruption("noise", "impulse_noise", { 0.03, 0.06, 0.09, 0.17, 0.27 }, function(x, c, draws)
  local chance = draws:uniform(shape_of(x), 0.0, 1.0, x.dtype)
  local salted = ops.where(ops.less(chance, c / 2), ops.ones_like(x), x)
  return ops.where(ops.greater(chance, 1 - c / 2), ops.zeros_like(x), salted)
end)

corruption("blur", "defocus_blur", { { 3, 0.1 }, { 4, 0.5 }, { 6, 0.5 }, { 8, 0.5 }, { 10, 0.5 } }, function(x, c, _, scale)
  return smoothed(filters.correlated(x, disc(c[1] * scale)), c[2] * scale)
end)

corruption("blur", "glass_blur", { { 0.7, 1, 2 }, { 0.9, 2, 1 }, { 1, 2, 3 }, { 1.1, 3, 2 }, { 1.5, 4, 2 } }, function(x, c, draws, scale)
  local count, channels, height, width = table.unpack(shape_of(x))
  local y, reach = smoothed(x, c[1] * scale), math.max(1, math.floor(c[2] * scale + 0.5))
  local xs, ys = picture.places(x, height, width)
  for _ = 1, c[3] do
    local function moved(places, size)
      local by = draws:integers({ height, width }, -reach, reach + 1):astype(places.dtype)
      return ops.clamp(places + by, 0, size - 1)
    end
    local index = (moved(ys, height) * width + moved(xs, width)):astype(ms.int64):reshape { -1 }
    y = y:reshape({ count, channels, -1 }):index_select(2, index):reshape { count, channels, height, width }
  end
  return smoothed(y, c[1] * scale)
end)

corruption("blur", "motion_blur", { { 10, 3 }, { 15, 5 }, { 15, 8 }, { 15, 12 }, { 20, 15 } }, function(x, c, draws, scale)
  local degree = math.max(3, math.floor((2 * c[1] + 1) * scale + 0.5))
  return filters.correlated(x, line_kernel(degree, 90 + picture.between(draws, -45, 45), math.max(0.5, c[2] * scale)))
end)

corruption("blur", "zoom_blur", { { 1.11, 0.01 }, { 1.16, 0.01 }, { 1.21, 0.02 }, { 1.26, 0.02 }, { 1.31, 0.03 } }, function(x, c)
  local sum, count = x, 1
  for k = 0, math.ceil((c[1] - 1) / c[2] - 1e-9) - 1 do sum, count = sum + zoomed(x, 1 + k * c[2]), count + 1 end
  return sum / count
end)

corruption("weather", "snow", { { 0.1, 0.3, 3, 0.5, 10, 4, 0.8 }, { 0.2, 0.3, 2, 0.5, 12, 4, 0.7 }, { 0.55, 0.3, 4, 0.9, 12, 8, 0.7 },
  { 0.55, 0.3, 4.5, 0.85, 12, 8, 0.65 }, { 0.55, 0.3, 2.5, 0.85, 12, 12, 0.55 } }, function(x, c, draws, scale)
  local flakes = c[1] + c[2] * draws:normal({ x.shape[1], 1, x.shape[3], x.shape[4] }, x.dtype)
  local layer = zoomed(flakes, math.max(1, c[3] * math.min(1, scale)))
  layer = ops.clamp(ops.where(ops.less(layer, c[4]), ops.zeros_like(layer), layer), 0.0, 1.0)
  local degree = math.max(3, math.floor((2 * c[5] + 1) * scale + 0.5))
  layer = filters.correlated(layer, line_kernel(degree, picture.between(draws, -45, 45), math.max(0.5, c[6] * scale)))
  local whiter = c[7] * x + (1 - c[7]) * ops.maximum(x, grey(x) * 1.5 + 0.5)
  return whiter + layer + ops.flip(layer, { 2, 3 })
end)

corruption("weather", "frost", { { 1, 0.4 }, { 0.8, 0.6 }, { 0.7, 0.7 }, { 0.65, 0.7 }, { 0.6, 0.75 } }, function(x, c, draws)
  -- Ridges between clouds, as ice grows along lines.
  local ridges = 1 - ops.abs(2 * clouds(x, draws, 1.5) - 1)
  return c[1] * x + c[2] * ops.square(ridges) * ops.square(clouds(x, draws, 2.0))
end)

corruption("weather", "fog", { { 1.5, 2 }, { 2, 2 }, { 2.5, 1.7 }, { 2.5, 1.5 }, { 3, 1.4 } }, function(x, c, draws)
  local most = common.beside(x, ops.amax(x:reshape { x.shape[1], -1 }, 1))
  return (x + c[1] * clouds(x, draws, c[2])) * (most / (most + c[1]))
end)

corruption("weather", "brightness", { 0.1, 0.2, 0.3, 0.4, 0.5 }, function(x, c)
  return with_value(x, function(value) return value + c end)
end)

corruption("digital", "contrast", { 0.4, 0.3, 0.2, 0.1, 0.05 }, function(x, c)
  local mean = ops.mean(x, { 2, 3 }, true)
  return (x - mean) * c + mean
end)

corruption("digital", "elastic_transform", { { 2, 0.7, 0.1 }, { 2, 0.08, 0.2 }, { 0.05, 0.01, 0.02 }, { 0.07, 0.01, 0.02 },
  { 0.12, 0.01, 0.02 } }, function(x, c, draws)
  local height, width = x.shape[3], x.shape[4]
  local side = math.min(height, width)
  local function shift()
    return smoothed(draws:uniform({ 1, 1, height, width }, -1.0, 1.0, x.dtype), c[2] * side)[{ 0, 0 }] * (c[1] * side)
  end
  local dx, dy, a = shift(), shift(), {}
  for k = 1, 6 do a[k] = picture.between(draws, -c[3], c[3]) end
  local cx, cy = (width - 1) / 2, (height - 1) / 2
  return picture.warped(x, height, width, function(u, v)
    local s, t = u - cx, v - cy
    return u + a[1] * s + a[2] * t + a[3] * side / 3 + dx, v + a[4] * s + a[5] * t + a[6] * side / 3 + dy
  end)
end)

corruption("digital", "pixelate", { 0.6, 0.5, 0.4, 0.3, 0.25 }, function(x, c)
  local height, width = x.shape[3], x.shape[4]
  local h, w = math.max(1, math.floor(height * c)), math.max(1, math.floor(width * c))
  local small = ops.adaptive_avg_pool2d(x, { h, w })
  local function back(few, many)
    local list = {}
    for i = 0, many - 1 do list[i + 1] = i * few // many end
    return ms.tensor(list, ms.int64)
  end
  return small:index_select(2, back(h, height)):index_select(3, back(w, width))
end)

corruption("digital", "jpeg_compression", { 25, 18, 15, 10, 7 }, function(x, c) return jpeg("jpeg_compression", x, c) end)

corruption("extra", "speckle_noise", { 0.15, 0.2, 0.35, 0.45, 0.6 }, function(x, c, draws) return x + x * normal(x, draws) * c end)

corruption("extra", "gaussian_blur", { 1, 2, 3, 4, 6 }, function(x, c, _, scale) return smoothed(x, 0.25 + c * scale) end)

corruption("extra", "spatter", { { 0.65, 0.3, 4, 0.69, false }, { 0.65, 0.3, 3, 0.68, false }, { 0.65, 0.3, 2, 0.68, false },
  { 0.65, 0.3, 1, 0.65, true }, { 0.67, 0.4, 1, 0.65, true } }, function(x, c, draws, scale)
  local drops = smoothed(c[1] + c[2] * draws:normal({ x.shape[1], 1, x.shape[3], x.shape[4] }, x.dtype), math.max(0.5, c[3] * scale))
  local mask = smoothed(ops.greater(drops, c[4]):astype(x.dtype), math.max(0.3, scale))
  local tint = c[5] and { 63, 42, 20 } or { 175, 238, 238 }
  if x.shape[2] ~= 3 then tint = { (tint[1] + tint[2] + tint[3]) / 3 } end
  return x * (1 - mask) + mask * ms.tensor(tint, x.dtype):reshape { 1, -1, 1, 1 } / 255
end)

corruption("extra", "saturate", { { 0.3, 0 }, { 0.1, 0 }, { 2, 0 }, { 5, 0.1 }, { 20, 0.2 } }, function(x, c)
  if x.shape[2] ~= 3 then fail("saturate", ("a picture without colours has no saturation: it has %d channel"):format(x.shape[2])) end
  local value = ops.amax(x, 1, true)
  local spread = value - ops.amin(x, 1, true)
  local saturation = spread / ops.where(ops.less(value, 1e-6), ops.ones_like(value), value)
  local wanted = ops.clamp(saturation * c[1] + c[2], 0.0, 1.0)
  local is_grey = ops.less(saturation, 1e-6)
  -- A grey pixel has no hue: it stays so.
  local factor = ops.where(is_grey, ops.ones_like(value), wanted / ops.where(is_grey, ops.ones_like(value), saturation))
  return value - (value - x) * factor
end)

local M = {}

--- The names of corruptions, a list. group: "noise", "blur", "weather", "digital" (together the fifteen of ImageNet-C) or "extra"; nil
--- gives all nineteen.
---     > #ms.armour.natural_robustness.corruptions(), #ms.armour.natural_robustness.corruptions("blur") --> 19	4
function M.corruptions(group)
  group = arguments.named("corruptions", { "group" }, group)
  if group ~= nil then check.choice("corruptions", "group", group, { "noise", "blur", "weather", "digital", "extra" }) end
  local names = {}
  for _, name in ipairs(order) do
    if group == nil or rows[name].group == group then names[#names + 1] = name end
  end
  return names
end

--- Pictures, corrupted as in ImageNet-C (Hendrycks and Dietterich, 2019). images: a picture (H, W), (C, H, W) or (H, W, C) with 1 or 3
--- channels, or a batch of them, of floats from 0 to 1 or uint8; the result is of the same form. name: one of corruptions(). severity:
--- from 1 to 5. seed: of what is drawn (nil: from the session's random numbers). Strengths are those of ImageNet-C for 224 pixels; what
--- is a number of pixels grows and shrinks with the shorter side.
---     > x = ms.full({ 1, 3, 16, 16 }, 0.5)
---     > ms.armour.natural_robustness.corrupt(x, "brightness", 2)[{ 0, 0, 0, 0 }]:item() - 0.7 < 1e-6 --> true
function M.corrupt(images, name, severity, seed)
  local where = "corrupt"
  images, name, severity, seed = arguments.named(where, { "images", "name", "severity", "seed" }, images, name, severity, seed)
  local row = type(name) == "string" and rows[name]
  if not row then
    local hint = arguments.nearest(tostring(name), order) or table.concat(order, ", ")
    fail(where, "there is no corruption " .. arguments.describe(name), hint)
  end
  severity = check.integer(where, "severity", severity)
  if severity < 1 or severity > 5 then fail(where, ("severity must be from 1 to 5, got %d"):format(severity)) end
  local x, back = picture.planes(where, images)
  local scale = math.min(x.shape[3], x.shape[4]) / own_side
  return back(row.change(x, row.strengths[severity], common.generator(seed, where), scale))
end

return M
