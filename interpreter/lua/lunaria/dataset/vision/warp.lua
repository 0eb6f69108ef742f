-- Rotations, shears, perspectives.
local arguments = require "lunaria.nn.arguments"
local steps = require "lunaria.dataset.steps"

local fail, check = arguments.fail, arguments.check

return function(vision)
  local function define(...) return steps.define(vision, ...) end
  local inter = vision._plain_inter

  -- What rotations take at the end.
  local function around(name, a)
    local x, y = 0, 0
    if a.center ~= nil then x, y = table.unpack(steps.numbers(name, "center", a.center, 2)) end
    local numbers = { inter(name, a.resample, "resample"), check.boolean(name, "expand", a.expand) and 1 or 0, a.center ~= nil
      and 1 or 0, x, y }
    return table.unpack(steps.join(numbers, steps.color(name, "fill_value", a.fill_value)))
  end
  local words = [[ resample: one of Inter. expand: the result is as large as the whole image needs.
center: { x, y } of the point that stays, without it the middle. fill_value: the colour of what is beyond the image, a number or
three.]]

  define("Rotate", "degrees, resample=0, expand=false, center=nil, fill_value=0", [[
The image turned by so many degrees, against the clock.]] .. words .. [[


    > ms.dataset.vision.Rotate(90)(ms.tensor({ { 1, 2 }, { 3, 4 } }, ms.uint8)):tolist()[1][1]
    2]], function(a, name)
    return "rotate", steps.join({ check.number(name, "degrees", a.degrees) }, around(name, a))
  end)

  define("RandomRotation", "degrees, resample=0, expand=false, center=nil, fill_value=0", [[
The image turned by an angle by chance. degrees: the range { low, high }, or how far the angle may be from 0.]] .. words .. [[


    > ms.dataset.vision.RandomRotation({ 90, 90 })(ms.tensor({ { 1, 2 }, { 3, 4 } }, ms.uint8)):tolist()[1][1]
    2]], function(a, name)
    local numbers = { steps.around(name, "degrees", a.degrees, 0, -1e6, 1e6) }
    return "random_rotation", steps.join(numbers, around(name, a))
  end)

  define("Affine", "degrees, translate, scale, shear, resample=0, fill_value=0", [[
The image turned by so many degrees with the clock, moved by translate, { right, down } as shares of its size, larger or smaller by the
factor scale, and sheared by shear degrees, a number or { in x, in y }; around the middle. resample: one of Inter. fill_value: the
colour of what is beyond the image, a number or three.

    > ms.dataset.vision.Affine(0, { 0.5, 0 }, 1, 0)(ms.tensor({ { 1, 2 } }, ms.uint8)):tolist()[1][2]
    1]], function(a, name)
    local right, down = table.unpack(steps.numbers(name, "translate", a.translate, 2))
    for _, x in ipairs { right, down } do
      if x < -1 or x > 1 then fail(name, ("translate must be shares in [-1, 1], got %g"):format(x)) end
    end
    local shear = math.type(a.shear) and { a.shear, 0 } or steps.numbers(name, "shear", a.shear, 2)
    local numbers = { check.number(name, "degrees", a.degrees), right, down, check.number_positive(name, "scale", a.scale),
      shear[1], shear[2], inter(name, a.resample, "resample") }
    return "affine", steps.join(numbers, steps.color(name, "fill_value", a.fill_value))
  end)

  define("RandomAffine", "degrees, translate=nil, scale=nil, shear=nil, resample=0, fill_value=0", [[
As Affine, by chance. degrees: the range { low, high } of the angle, or how far it may be from 0. translate: { right, down }, the
largest shares, or the ranges { left, right, up, down }. scale: the range of the factor. shear: the range of the angle, how far it may be
from 0, or the ranges in x and in y, { low, high, low, high }. resample: one of Inter. fill_value: the colour of what is beyond the image.

    > ms.dataset.vision.RandomAffine(0)(ms.tensor({ { 1, 2 } }, ms.uint8)):tolist()[1][2]
    2]], function(a, name)
    local numbers = { steps.around(name, "degrees", a.degrees, 0, -1e6, 1e6) }
    local move = a.translate == nil and { 0, 0, 0, 0 } or steps.numbers(name, "translate", a.translate)
    if #move == 2 then move = { -move[1], move[1], -move[2], move[2] } end
    if #move ~= 4 then fail(name, ("translate must be 2 or 4 numbers, got %d"):format(#move)) end
    steps.join(numbers, steps.range(name, "translate", { move[1], move[2] }, -1, 1))
    steps.join(numbers, steps.range(name, "translate", { move[3], move[4] }, -1, 1))
    steps.join(numbers, steps.range(name, "scale", a.scale or { 1, 1 }, 1e-6, 1e6))
    local shear = a.shear == nil and 0 or a.shear
    if math.type(shear) then shear = { -shear, shear } end
    shear = steps.numbers(name, "shear", shear)
    if #shear == 2 then shear = { shear[1], shear[2], 0, 0 } end
    if #shear ~= 4 then fail(name, ("shear must be a number, 2 or 4 numbers, got %d"):format(#shear)) end
    steps.join(numbers, steps.range(name, "shear", { shear[1], shear[2] }, -360, 360))
    steps.join(numbers, steps.range(name, "shear", { shear[3], shear[4] }, -360, 360))
    steps.join(numbers, inter(name, a.resample, "resample"))
    return "random_affine", steps.join(numbers, steps.color(name, "fill_value", a.fill_value))
  end)

  local function points(name, what, list)
    if type(list) ~= "table" or #list ~= 4 then fail(name, what .. " must be four points { x, y }") end
    local numbers = {}
    for i, point in ipairs(list) do
      for _, x in ipairs(steps.numbers(name, ("%s[%d]"):format(what, i), point, 2)) do numbers[#numbers + 1] = x end
    end
    return table.unpack(numbers)
  end

  define("Perspective", "start_points, end_points, interpolation=2", [[
The image as seen from elsewhere: four points { x, y }, start_points, come to end_points. interpolation: one of Inter.

    > corners = { { 0, 0 }, { 1, 0 }, { 1, 1 }, { 0, 1 } }
    > ms.dataset.vision.Perspective(corners, corners)(ms.tensor({ { 1, 2 }, { 3, 4 } }, ms.uint8)):tolist()[2][1]
    3]], function(a, name)
    local numbers = steps.join({ inter(name, a.interpolation) }, points(name, "start_points", a.start_points))
    return "perspective", steps.join(numbers, points(name, "end_points", a.end_points))
  end)

  define("RandomPerspective", "distortion_scale=0.5, prob=0.5, interpolation=3", [[
The image as seen from elsewhere, by chance. distortion_scale: how far the corners may move, 1 is to the middle. prob: the probability
that the image is changed. interpolation: one of Inter.

    > ms.dataset.vision.RandomPerspective({ prob = 0.0 })(ms.tensor({ { 1, 2 } }, ms.uint8)):tolist()[1][2]
    2]], function(a, name)
    return "random_perspective", { check.probability(name, "distortion_scale", a.distortion_scale), check.probability(name, "prob",
      a.prob),
      inter(name, a.interpolation) }
  end)
end
