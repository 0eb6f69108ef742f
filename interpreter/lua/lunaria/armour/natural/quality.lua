-- Natural changes of what a picture looks like: blur, light, noise.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local filters = require "lunaria.armour.filters"
local geometry = require "lunaria.armour.natural.geometry"
local picture = require "lunaria.armour.natural.picture"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check
local between, integer, one_of = picture.between, picture.integer, picture.one_of
local doc = geometry.doc

local M = {}

M.GaussianBlur = picture.define("GaussianBlur", "ksize=2", doc("A picture under a Gaussian filter.",
  "ksize: of the filter, which has 2 ksize + 1 pixels a side and the standard deviation that OpenCV has for them.", "GaussianBlur(1)"),
  function(a, where)
    check.positive(where, "ksize", a.ksize)
    return a
  end,
  function(a, draws) a.ksize = integer(draws, 0, 5) end,
  function(x, a) return a.ksize == 0 and x or filters.gaussian_blur(x, 2 * a.ksize + 1) end)

-- A line of so many pixels as a kernel, its middle in the middle; angle 0 is upright, against the clock.
local function line_kernel(degree, angle)
  local points, sine, cosine = {}, math.sin(math.rad(angle)), math.cos(math.rad(angle))
  for k = 1, degree do
    local t = (k - 1) - (degree - 1) / 2
    points[k] = { -t * cosine, -t * sine, 1.0 }
  end
  return filters.kernel(degree // 2, points)
end

M.MotionBlur = picture.define("MotionBlur", "degree=5, angle=45", doc("A picture that was taken in motion.",
  [[degree: how far the motion goes, in pixels. angle: its direction in degrees; 0 is up and down, and the angle grows against the clock.]],
  "MotionBlur(3, 90)"),
  function(a, where)
    check.positive(where, "degree", a.degree)
    check.finite(where, "angle", a.angle)
    return a
  end,
  function(a, draws) a.degree, a.angle = integer(draws, 1, 5), between(draws, 0, 360) end,
  function(x, a) return filters.correlated(x, line_kernel(a.degree, a.angle)) end)

M.GradientBlur = picture.define("GradientBlur", "point=nil, kernel_num=3, center=true", doc(
  "A picture that is sharp at a point and more blurred in rings around it, or the other way.",
  [[point: { x, y } in pixels (nil: the middle). kernel_num: how many rings. center: whether the point is sharp.]],
  "GradientBlur({ 2, 2 }, 2)"),
  function(a, where)
    if a.point ~= nil then a.point = picture.pair(where, "point", a.point) end
    check.positive(where, "kernel_num", a.kernel_num)
    check.boolean(where, "center", a.center)
    return a
  end,
  function(a, draws, height, width)
    a.point = { integer(draws, 0, width), integer(draws, 0, height) }
    a.kernel_num, a.center = integer(draws, 1, 6), one_of(draws, { true, false })
  end,
  function(x, a, _, height, width)
    local px, py = table.unpack(a.point or { width // 2, height // 2 })
    local count = a.kernel_num
    local radius = math.max(1, math.max(width - px, px, height - py, py) // count)
    local xs, ys = picture.places(x, height, width)
    local distance = ops.square(xs - px) + ops.square(ys - py)
    local y = x
    local first, last, step = 1, count, 1
    if not a.center then first, last, step = count, 1, -1 end
    for i = first, last, step do
      local is_inside = ops.less_equal(distance, (radius * i) ^ 2):reshape { 1, 1, height, width }
      if a.center then
        y = ops.where(is_inside, y, filters.gaussian_blur(x, 2 * i + 1))
      else
        y = ops.where(is_inside, filters.gaussian_blur(x, 2 * (count - i) + 3), y)
      end
    end
    return y
  end)

M.Contrast = picture.define("Contrast", "alpha=1, beta=0", doc("A picture with more or less contrast: alpha times a pixel plus beta.",
  "alpha: about 0.2 to 2. beta: in levels of which there are 255.", "Contrast(0.5, 10)"),
  function(a, where)
    check.finite_not_negative(where, "alpha", a.alpha)
    check.finite(where, "beta", a.beta)
    return a
  end,
  function(a, draws) a.alpha, a.beta = between(draws, 0.2, 2), between(draws, -20, 20) end,
  function(x, a) return x * a.alpha + a.beta / 255 end)

local function color(where, name, value)
  if type(value) ~= "table" or #value ~= 3 then
    fail(where, ("%s must be a list of three levels, got %s"):format(name, arguments.describe(value)))
  end
  for _, level in ipairs(value) do
    if not math.type(level) or level < 0 or level > 255 then
      fail(where, ("%s must be levels from 0 to 255, got %s"):format(name, arguments.describe(level)))
    end
  end
  return value
end

-- How far each pixel is from where the light is, as a share; 1 and more is where its reach ends.
local function reach(x, a, height, width)
  local xs, ys = picture.places(x, height, width)
  local px, py = table.unpack(a.start_point)
  if a.mode == "circle" then
    local far = 0
    for _, corner in ipairs { { 0, 0 }, { width, 0 }, { 0, height }, { width, height } } do
      far = math.max(far, math.sqrt((corner[1] - px) ^ 2 + (corner[2] - py) ^ 2))
    end
    return ops.sqrt(ops.square(xs - px) + ops.square(ys - py)) / math.max(1e-6, far * a.scope)
  end
  local places, size, at = xs, width, px
  if a.mode == "vertical" then places, size, at = ys, height, py end
  local share = math.max(0, math.min(1, at / size))
  return ops.abs(places / size - share) / math.max(share, 1 - share)
end

M.GradientLuminance = picture.define("GradientLuminance", "color_start=nil, color_end=nil, start_point=nil, scope=0.5, pattern=\"light\", "
  .. "bright_rate=0.3, mode=\"circle\"", doc("A picture in uneven light.",
  [[color_start, color_end: colours { r, g, b } from 0 to 255 where the light begins and ends (nil: black and white). start_point: { x, y }
in pixels where it begins (nil: { 10, 10 }). scope: how far it reaches, not negative, a share of the distance of the farthest corner, of
mode "circle". pattern: "light" (bright_rate of the light is added) or "dark" (bright_rate of the picture is left). bright_rate: from 0 to
1. mode: "circle", "horizontal" or "vertical".]],
  "GradientLuminance({ 255, 255, 255 }, { 0, 0, 0 }, { 4, 4 })"),
  function(a, where)
    return { color_start = color(where, "color_start", a.color_start or { 0, 0, 0 }),
      color_end = color(where, "color_end", a.color_end or { 255, 255, 255 }),
      start_point = picture.pair(where, "start_point", a.start_point or { 10, 10 }),
      scope = check.finite_not_negative(where, "scope", a.scope),
      pattern = check.choice(where, "pattern", a.pattern, { "light", "dark" }),
      bright_rate = check.probability(where, "bright_rate", a.bright_rate),
      mode = check.choice(where, "mode", a.mode, { "circle", "horizontal", "vertical" }) }
  end,
  function(a, draws, height, width)
    local first, last = between(draws, 0, 255), between(draws, 0, 255)
    a.color_start, a.color_end = { first, first, first }, { last, last, last }
    a.start_point, a.scope = { between(draws, 0, width), between(draws, 0, height) }, draws:number()
    a.bright_rate, a.pattern = between(draws, 0.1, 0.9), one_of(draws, { "light", "dark" })
    a.mode = one_of(draws, { "circle", "horizontal", "vertical" })
  end,
  function(x, a, _, height, width)
    local t = reach(x, a, height, width)
    local brightest = math.max(table.unpack(a.color_end)) / 255
    local parts = {}
    for c = 1, x.shape[2] do
      local from, to = a.color_start[(c - 1) % 3 + 1] / 255, a.color_end[(c - 1) % 3 + 1] / 255
      local light = from + t * (to - from)
      parts[c] = a.mode == "circle" and ops.where(ops.less(t, 1), light, ops.full_like(light, brightest)) or light
    end
    local light = ops.expand_dims(ops.clamp(ops.stack(parts, 0), 0.0, 1.0), 0)
    if a.pattern == "light" then return x + light * a.bright_rate end
    return x * a.bright_rate + light * (1 - a.bright_rate)
  end)

local function noise(name, signature, what, more, call, change, check_factor)
  M[name] = picture.define(name, signature, doc(what, more, call),
    function(a, where)
      check[check_factor or "finite_not_negative"](where, "factor", a.factor)
      return a
    end,
    function(a, draws) a.factor = between(draws, 0, 0.15) end, change)
end

noise("UniformNoise", "factor=0.1", "A picture with noise of equal chances.",
  "factor: the largest change, a share of the range, not negative, about 0.001 to 0.15.", "UniformNoise(0.1)",
  function(x, a, draws) return x + draws:uniform({ table.unpack(x.shape) }, -1.0, 1.0, x.dtype) * a.factor end)

noise("GaussianNoise", "factor=0.1", "A picture with normal noise.", [[factor: a share of the range, not negative; the standard deviation
is factor / sqrt(3), that of uniform noise of the same factor; about 0.001 to 0.15.]], "GaussianNoise(0.1)",
  function(x, a, draws) return x + draws:normal({ table.unpack(x.shape) }, x.dtype) * (a.factor / math.sqrt(3)) end)

noise("SaltAndPepperNoise", "factor=0", "A picture with black and white pixels.",
  "factor: their share, half of them black, from 0 to 1.", "SaltAndPepperNoise(0.1)",
  function(x, a, draws, height, width)
    local chance = ops.broadcast_to(draws:uniform({ x.shape[1], 1, height, width }, -1.0, 1.0, x.dtype), { table.unpack(x.shape) })
    local salted = ops.where(ops.greater(chance, 1 - a.factor), ops.ones_like(x), x)
    return ops.where(ops.less(chance, a.factor - 1), ops.zeros_like(x), salted)
  end, "probability")

-- A mask (N, 1, H, W) moved down and right, with nothing coming in.
local function moved(mask, down, right, height, width)
  local padded = ops.pad(mask, { math.max(0, right), math.max(0, -right), math.max(0, down), math.max(0, -down) })
  local top, left = math.max(0, -down), math.max(0, -right)
  return padded[{ ms.slice(), ms.slice(), ms.slice(top, top + height), ms.slice(left, left + width) }]
end

-- Blocks of kx x ky pixels around seeds (N, 1, H, W), with bits beside them and holes by chance.
local function speck(seeds, draws, kx, ky)
  local height, width, mask = seeds.shape[3], seeds.shape[4], seeds
  for i = -(kx // 2), (kx - 1) // 2 do
    for j = -(ky // 2), (ky - 1) // 2 do mask = ops.maximum(mask, moved(seeds, i, j, height, width)) end
  end
  for _ = 1, integer(draws, 0, math.ceil(kx * ky / 2)) do
    mask = ops.maximum(mask, moved(seeds, integer(draws, -kx, kx), integer(draws, -ky, ky), height, width))
  end
  for _ = 1, kx * ky // 2 do
    local down, right = integer(draws, -(kx // 2) - 1, kx // 2 + 1), integer(draws, -(ky // 2) - 1, ky // 2 + 1)
    mask = mask * (1 - moved(seeds, down, right, height, width))
  end
  return mask
end

-- How often specks of one size and shade are laid on a picture, and the brightest of them.
local rounds, brightest_speck = 5, 100

M.NaturalNoise = picture.define("NaturalNoise", "ratio=0.0002, k_x_range=nil, k_y_range=nil", doc(
  "A picture with dark specks of ragged shapes, as dust and scratches leave them.",
  [[ratio: how many specks there are for each pixel, from 0 to 1, about 1e-5 to 1e-3. k_x_range, k_y_range: the range { least, less than }
of their height and width in pixels, integers (nil: { 1, 5 } and { 3, 25 }).]], "NaturalNoise(0.01, { 1, 3 }, { 1, 4 })"),
  function(a, where)
    local function range(name, given, default)
      local pair = picture.pair(where, name, given or default)
      local least, most = check.positive(where, name .. "[1]", pair[1]), check.positive(where, name .. "[2]", pair[2])
      if least >= most then fail(where, ("%s must be { least, less than }, got { %d, %d }"):format(name, least, most)) end
      return { least, most }
    end
    return { ratio = check.probability(where, "ratio", a.ratio), k_x_range = range("k_x_range", a.k_x_range, { 1, 5 }),
      k_y_range = range("k_y_range", a.k_y_range, { 3, 25 }) }
  end,
  function(a, draws, height, width)
    a.ratio = between(draws, 0, 0.001)
    a.k_x_range, a.k_y_range = { 1, math.max(2, height // 10) }, { 1, math.max(2, width // 10) }
  end,
  function(x, a, draws, height, width)
    local y = x
    for _ = 1, rounds do
      local seeds = ops.less(draws:uniform({ x.shape[1], 1, height, width }, 0.0, 1.0, ms.float32), a.ratio / rounds):astype(x.dtype)
      local shade = integer(draws, 0, brightest_speck) / 255
      local mask = speck(seeds, draws, integer(draws, table.unpack(a.k_x_range)), integer(draws, table.unpack(a.k_y_range)))
      y = y * (1 - mask) + mask * shade
    end
    return y
  end)

return { transforms = M }
