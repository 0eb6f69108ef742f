-- Natural changes of where things are in a picture. Each is the inverse map of places, from the new picture to the old one.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local picture = require "lunaria.armour.natural.picture"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check
local between, one_of = picture.between, picture.one_of

local M = {}

local forms = [[A call takes a picture, (H, W), (C, H, W) or (H, W, C) with 1 or 3 channels, or a batch of them, of floats from 0 to 1 or
of uint8, and gives one of the same form; what is outside of the picture is black.]]
local chance = [[auto_param: whether each call draws the parameters anew, within what leaves the meaning of a picture. seed: of what is
drawn (nil: from the session's random numbers).]]

local function doc(what, more, call)
  return ([[%s

%s %s

%s

  > image = ms.ones { 1, 8, 8 }
  > ms.armour.natural_robustness.transform.image.%s(image).shape --> (1, 8, 8)]]):format(what, more, chance, forms, call)
end

local function numbers(...)
  local names = { ... }
  return function(a, where)
    for _, name in ipairs(names) do check.finite(where, name, a[name]) end
    return a
  end
end

M.Translate = picture.define("Translate", "x_bias=0, y_bias=0", doc("A picture that is moved.",
  "x_bias, y_bias: how far to the right and down, shares of its width and height, about -0.1 to 0.1.", "Translate(0.25, 0)"),
  numbers("x_bias", "y_bias"),
  function(a, draws) a.x_bias, a.y_bias = between(draws, -0.1, 0.1), between(draws, -0.1, 0.1) end,
  function(x, a, _, height, width)
    return picture.warped(x, height, width, function(u, v) return u - a.x_bias * width, v - a.y_bias * height end)
  end)

M.Scale = picture.define("Scale", "factor_x=1, factor_y=1", doc("A picture that is larger or smaller, around its middle.",
  "factor_x, factor_y: how many times as wide and as high, above 0, about 0.5 to 1.", "Scale(0.5, 0.75)"),
  function(a, where)
    for _, name in ipairs { "factor_x", "factor_y" } do check.number_positive(where, name, a[name]) end
    return a
  end,
  function(a, draws) a.factor_x, a.factor_y = between(draws, 0.5, 1), between(draws, 0.5, 1) end,
  function(x, a, _, height, width)
    local cx, cy = (width - 1) / 2, (height - 1) / 2
    return picture.warped(x, height, width, function(u, v) return (u - cx) / a.factor_x + cx, (v - cy) / a.factor_y + cy end)
  end)

-- The inverse map of a linear one m = { a, b, c, d }, (x, y) to (a x + b y, c x + d y), onto the whole of its image, which is then
-- brought to the old size.
local function fitted(x, height, width, m)
  local a, b, c, d = table.unpack(m)
  local determinant = a * d - b * c
  local reach_x = math.abs(a) * (width - 1) + math.abs(b) * (height - 1)
  local reach_y = math.abs(c) * (width - 1) + math.abs(d) * (height - 1)
  local sx, sy = reach_x / math.max(1, width - 1), reach_y / math.max(1, height - 1)
  local cx, cy = (width - 1) / 2, (height - 1) / 2
  return picture.warped(x, height, width, function(u, v)
    u, v = (u - cx) * sx, (v - cy) * sy
    return (d * u - b * v) / determinant + cx, (a * v - c * u) / determinant + cy
  end)
end

M.Shear = picture.define("Shear", "factor=0.2, direction=\"horizontal\"", doc("A picture that is sheared and brought back to its size.",
  "factor: how far a pixel moves for each one of distance, about 0.05 to 0.5. direction: \"horizontal\" or \"vertical\".", "Shear(0.3)"),
  function(a, where)
    check.finite(where, "factor", a.factor)
    check.choice(where, "direction", a.direction, { "horizontal", "vertical" })
    return a
  end,
  function(a, draws) a.factor, a.direction = between(draws, 0.05, 0.5), one_of(draws, { "horizontal", "vertical" }) end,
  function(x, a, _, height, width)
    return fitted(x, height, width, a.direction == "horizontal" and { 1, a.factor, 0, 1 } or { 1, 0, a.factor, 1 })
  end)

M.Rotate = picture.define("Rotate", "angle=20", doc(
  "A picture that is turned around its middle; the whole of it is brought back to the size.",
  "angle: in degrees, against the clock.", "Rotate(45)"),
  numbers("angle"),
  function(a, draws) a.angle = between(draws, 0, 360) end,
  function(x, a, _, height, width)
    local cosine, sine = math.cos(math.rad(a.angle)), math.sin(math.rad(a.angle))
    -- Rows count downwards.
    return fitted(x, height, width, { cosine, sine, -sine, cosine })
  end)

-- Four points as lists of numbers.
local function points(where, name, value)
  if type(value) ~= "table" or #value ~= 4 then
    fail(where, ("%s must be a list of four points { x, y }, got %s"):format(name, arguments.describe(value)))
  end
  local list = {}
  for i = 1, 4 do list[i] = picture.pair(where, ("%s[%d]"):format(name, i), value[i]) end
  return list
end

-- Four points { x, y } of which no three lie on a line.
local function corners(where, name, value)
  local list = points(where, name, value)
  for i = 1, 4 do
    local p, q, r = list[i], list[i % 4 + 1], list[(i + 1) % 4 + 1]
    local a, b, c, d = q[1] - p[1], q[2] - p[2], r[1] - p[1], r[2] - p[2]
    -- The sine of an angle of the triangle; rounding of points far away is not more.
    if math.abs(a * d - b * c) <= 1e-6 * math.sqrt((a * a + b * b) * (c * c + d * d)) then
      fail(where, name .. ": of the four points three lie on a line, so that no perspective brings them there")
    end
  end
  return list
end

-- The matrix that brings (1, 0, 0), (0, 1, 0), (0, 0, 1) and (1, 1, 1) to four points, in homogeneous coordinates.
local function basis(four)
  local matrix = ms.tensor({ { four[1][1], four[2][1], four[3][1] }, { four[1][2], four[2][2], four[3][2] }, { 1, 1, 1 } }, ms.float64)
  local last = ms.tensor({ four[4][1], four[4][2], 1 }, ms.float64):reshape { 3, 1 }
  return matrix * ops.solve(matrix, last):reshape { 1, 3 }
end

-- The perspective map that brings four points to four others: the nine numbers of its matrix.
local function perspective(from, to)
  return ops.matmul(basis(to), ops.inverse(basis(from))):reshape({ 9 }):tolist()
end

M.Perspective = picture.define("Perspective", "ori_pos=nil, dst_pos=nil", doc("A picture as it is seen from elsewhere.",
  [[ori_pos, dst_pos: lists of four points { x, y } in pixels, and of where these come to lie, no three on a line; they may be left out with
auto_param.]],
  "Perspective({ { 0, 0 }, { 0, 7 }, { 7, 0 }, { 7, 7 } }, { { 1, 0 }, { 0, 7 }, { 6, 0 }, { 7, 7 } })"),
  function(a, where)
    if a.auto_param and a.ori_pos == nil and a.dst_pos == nil then return a end
    return { ori_pos = corners(where, "ori_pos", a.ori_pos), dst_pos = corners(where, "dst_pos", a.dst_pos) }
  end,
  function(a, draws, height, width)
    local from, to = {}, {}
    for i, side in ipairs { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } } do
      from[i] = { (0.25 + 0.5 * side[1]) * width, (0.25 + 0.5 * side[2]) * height }
      to[i] = { (side[1] + draws:number()) * 0.5 * width, (side[2] + draws:number()) * 0.5 * height }
    end
    a.ori_pos, a.dst_pos = from, to
  end,
  function(x, a, _, height, width)
    local m = perspective(a.dst_pos, a.ori_pos)
    return picture.warped(x, height, width, function(u, v)
      local depth = m[7] * u + m[8] * v + m[9]
      return (m[1] * u + m[2] * v + m[3]) / depth, (m[4] * u + m[5] * v + m[6]) / depth
    end)
  end)

M.Curve = picture.define("Curve", "curves=3, depth=10, mode=\"vertical\"", doc("A picture whose lines have become waves.",
  [[curves: how many waves, not negative. depth: their amplitude in pixels, not negative. mode: "vertical" (upright lines)
or "horizontal".]],
  "Curve(2, 1)"),
  function(a, where)
    check.finite_not_negative(where, "curves", a.curves)
    check.finite_not_negative(where, "depth", a.depth)
    check.choice(where, "mode", a.mode, { "vertical", "horizontal" })
    return a
  end,
  function(a, draws, height, width)
    a.curves, a.mode = between(draws, 1, 5), one_of(draws, { "vertical", "horizontal" })
    a.depth = between(draws, math.min(1, 0.1 * width), 0.1 * (a.mode == "vertical" and width or height))
  end,
  function(x, a, _, height, width)
    return picture.warped(x, height, width, function(u, v)
      if a.mode == "vertical" then return u + a.depth * ops.sin(v * (2 * math.pi * a.curves / height)), v end
      return u, v + a.depth * ops.sin(u * (2 * math.pi * a.curves / width))
    end)
  end)

return { transforms = M, forms = forms, chance = chance, doc = doc }
