-- Corruptions of pictures by which robustness is measured: the fifteen of ImageNet-C and its four further ones (Hendrycks and Dietterich,
-- 2019), at five severities. Strengths are those of ImageNet-C for pictures of 224 pixels; what is a number of pixels there is a share of
-- the shorter side here. Frost and the noise under fog and snow are made, not photographed, drops of water have soft edges instead of those
-- that an edge detector finds, and glass moves pixels all at once instead of one after the other.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.armour.common"
local filters = require "lunaria.armour.filters"
local jpeg = require "lunaria.armour.natural.jpeg"
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

-- A disc as a kernel, also one of less than a pixel: of places that lie close together those that are inside.
local function disc(radius)
  local points, steps = {}, math.max(4, math.ceil(4 * radius))
  for i = -steps, steps do
    for j = -steps, steps do
      if i * i + j * j <= steps * steps then points[#points + 1] = { radius * i / steps, radius * j / steps, 1.0 } end
    end
  end
  return filters.kernel(math.ceil(radius), points)
end

-- The trail of a pixel in motion as a kernel: half a Gaussian of 2 radius + 1 pixels, from the pixel on. Angle 0 is upwards, against the
-- clock.
local function trail(radius, deviation, angle, scale)
  local points, sine, cosine = {}, math.sin(math.rad(angle)), math.cos(math.rad(angle))
  local reach = math.max(1, math.floor(2 * radius * scale + 0.5))
  deviation = math.max(0.5, deviation * scale)
  for t = 0, reach do points[t + 1] = { -t * cosine, -t * sine, math.exp(-t * t / (2 * deviation * deviation)) } end
  return filters.kernel(reach, points)
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

-- How light pixels are (ITU-R BT.601).
local function grey(x)
  if x.shape[2] ~= 3 then return x end
  return ops.sum(x * ms.tensor({ 0.299, 0.587, 0.114 }, x.dtype):to(x.device):reshape { 1, 3, 1, 1 }, 1, true)
end

local rows = {}
local order = {}

-- strengths: of the five severities. change(x, c, draws, scale): c: a strength; scale: the shorter side as a share of ImageNet-C's.
-- one_by_one: whether it draws something that is the same for all pictures which it gets, so that it must get them one by one.
local function corruption(group, name, strengths, change, one_by_one)
  rows[name] = { group = group, strengths = strengths, change = change, one_by_one = one_by_one }
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
end, true)

corruption("blur", "motion_blur", { { 10, 3 }, { 15, 5 }, { 15, 8 }, { 15, 12 }, { 20, 15 } }, function(x, c, draws, scale)
  return filters.correlated(x, trail(c[1], c[2], picture.between(draws, -45, 45) - 90, scale))
end, true)

corruption("blur", "zoom_blur", { { 1.11, 0.01 }, { 1.16, 0.01 }, { 1.21, 0.02 }, { 1.26, 0.02 }, { 1.31, 0.03 } }, function(x, c)
  local sum, count = x, 1
  for k = 0, math.ceil((c[1] - 1) / c[2] - 1e-9) - 1 do sum, count = sum + zoomed(x, 1 + k * c[2]), count + 1 end
  return sum / count
end)

corruption("weather", "snow", { { 0.1, 0.3, 3, 0.5, 10, 4, 0.8 }, { 0.2, 0.3, 2, 0.5, 12, 4, 0.7 }, { 0.55, 0.3, 4, 0.9, 12, 8, 0.7 },
  { 0.55, 0.3, 4.5, 0.85, 12, 8, 0.65 }, { 0.55, 0.3, 2.5, 0.85, 12, 12, 0.55 } }, function(x, c, draws, scale)
  local flakes = c[1] + c[2] * draws:normal({ x.shape[1], 1, x.shape[3], x.shape[4] }, x.dtype)
  local layer = zoomed(flakes, math.max(1, c[3] * scale))
  layer = ops.clamp(ops.where(ops.less(layer, c[4]), ops.zeros_like(layer), layer), 0.0, 1.0)
  layer = filters.correlated(layer, trail(c[5], c[6], picture.between(draws, -45, 45), scale))
  local whiter = c[7] * x + (1 - c[7]) * ops.maximum(x, grey(x) * 1.5 + 0.5)
  return whiter + layer + ops.flip(layer, { 2, 3 })
end, true)

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
  -- The affine map that moves three corners of a square of a third of the side by chance: what it adds to a place (s, t) from the middle.
  local third = side / 3
  local function moves()
    local d = {}
    for k = 1, 3 do d[k] = picture.between(draws, -c[3], c[3]) * side end
    return function(s, t) return (d[2] - d[3]) / (2 * third) * s + (d[1] - d[2]) / (2 * third) * t + (d[1] + d[3]) / 2 end
  end
  local dx, dy, along, down = shift(), shift(), moves(), moves()
  local cx, cy = (width - 1) / 2, (height - 1) / 2
  return picture.warped(x, height, width, function(u, v)
    local s, t = u - cx, v - cy
    return u + along(s, t) + dx, v + down(s, t) + dy
  end, "reflection")
end, true)

corruption("digital", "pixelate", { 0.6, 0.5, 0.4, 0.3, 0.25 }, function(x, c)
  -- Each block is the mean of the pixels whose middle lies in it: a product with the matrix of means, for rows and for columns.
  local function means(many)
    local few = math.max(1, math.floor(many * c))
    local block = ops.floor((ops.arange(many):astype(ms.float64) + 0.5) * (few / many))
    local is_same = ops.equal(block:reshape { -1, 1 }, block:reshape { 1, -1 }):astype(x.dtype)
    return (is_same / ops.sum(is_same, 1, true)):to(x.device)
  end
  return ops.matmul(ops.matmul(means(x.shape[3]), x), ops.swapaxes(means(x.shape[4]), 0, 1))
end)

corruption("digital", "jpeg_compression", { 25, 18, 15, 10, 7 }, function(x, c) return jpeg("jpeg_compression", x, c) end)

corruption("extra", "speckle_noise", { 0.15, 0.2, 0.35, 0.45, 0.6 }, function(x, c, draws) return x + x * normal(x, draws) * c end)

corruption("extra", "gaussian_blur", { 1, 2, 3, 4, 6 }, function(x, c, _, scale)
  -- What is below the size of a pixel would change nothing: small pictures get a quarter of a pixel more.
  return smoothed(x, c * scale + 0.25 * (1 - math.min(1, scale)))
end)

corruption("extra", "spatter", { { 0.65, 0.3, 4, 0.69, 0.6, false }, { 0.65, 0.3, 3, 0.68, 0.6, false },
  { 0.65, 0.3, 2, 0.68, 0.5, false }, { 0.65, 0.3, 1, 0.65, 1.5, true }, { 0.67, 0.4, 1, 0.65, 1.5, true } }, function(x, c, draws, scale)
  local drops = smoothed(c[1] + c[2] * draws:normal({ x.shape[1], 1, x.shape[3], x.shape[4] }, x.dtype), math.max(0.5, c[3] * scale))
  local mask, is_mud = ops.greater(drops, c[4]):astype(x.dtype), c[6]
  local tint = is_mud and { 63, 42, 20 } or { 175, 238, 238 }
  tint = ms.tensor(tint, x.dtype):to(x.device):reshape { 1, 3, 1, 1 } / 255
  if x.shape[2] ~= 3 then tint = grey(tint) end
  if not is_mud then return x + smoothed(mask, math.max(0.3, scale)) * c[5] * tint end
  mask = smoothed(mask, math.max(0.3, c[5] * scale))
  mask = ops.where(ops.less(mask, 0.8), ops.zeros_like(mask), mask)
  return x * (1 - mask) + mask * tint
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
--- from 1 to 5. seed: of what is drawn, anew for each picture (nil: from the session's random numbers). Strengths are those of ImageNet-C
--- for 224 pixels; what is a number of pixels grows and shrinks with the shorter side.
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
  local draws, count = common.generator(seed, where), row.one_by_one and 1 or x.shape[1]
  return back((common.in_batches(function(part) return row.change(part, row.strengths[severity], draws, scale) end, x, nil, count)))
end

return M
