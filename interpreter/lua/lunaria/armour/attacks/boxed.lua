-- Minima of functions of many samples at once within a box: L-BFGS over the variables that are free, a search along the projected
-- way for each sample. A variable is held where it stands at an end of the box and the slope pushes it out.
local ms = require "lunaria"
local margins = require "lunaria.armour.attacks.margins"

local ops = ms.ops

local function dot(a, b) return ops.sum(a * b, 1, true) end

-- Minus the inverse Hessian times g, of the free variables, from the last differences of points s and of slopes y (Nocedal 1980); for
-- samples whose differences do not curve, minus the slope.
local function direction(list, g, free)
  local q, used = g, {}
  for i = #list, 1, -1 do
    local s, y = list[i].s * free, list[i].y * free
    local product = dot(s, y)
    local curves = ops.greater(product, dot(y, y) * 1e-12)
    local rho = ops.where(curves, 1 / ops.where(curves, product, 1), 0)
    local alpha = rho * dot(s, q)
    q = q - y * alpha
    used[i] = { s = s, y = y, rho = rho, alpha = alpha, curves = curves, square = dot(y, y) }
  end
  local scale = ops.ones_like(g[{ ms.slice(), ms.slice(0, 1) }])
  for _, item in ipairs(used) do
    scale = ops.where(item.curves, 1 / ops.where(item.curves, item.rho * item.square, 1), scale)
  end
  q = q * scale
  for _, item in ipairs(used) do q = q + item.s * (item.alpha - item.rho * dot(item.y, q)) end
  local downhill = ops.greater(dot(q, g), 0)
  return -ops.where(downhill, q, g)
end

-- Halvings of a step before a sample is given up, and the share of the promised descent that a step must keep.
local HALVINGS, DESCENT = 30, 1e-4

-- From points (N, D) along d the first of the steps 1, 1/2, 1/4 ... with enough descent: points, values, slopes, and which moved.
local function along(f, from, value, g, d, low, high)
  local length = ops.ones_like(value)
  local point, best, slope = from, value, g
  local moved = ops.zeros(value.shape, ms.bool)
  for _ = 1, HALVINGS do
    local to = ops.clip(from + d * length:reshape { -1, 1 }, low, high)
    local at, rise = f(to)
    local enough = ops.logical_and(ops.less_equal(at, value + dot(g, to - from):reshape { -1 } * DESCENT), ops.less(at, value))
    local takes = ops.logical_and(enough, ops.logical_not(moved))
    point, slope = margins.choose(takes, to, point), margins.choose(takes, rise, slope)
    best, moved = ops.where(takes, at, best), ops.logical_or(moved, takes)
    if ops.all(moved):item() then break end
    length = ops.where(moved, length, length / 2)
  end
  return point, best, slope, moved
end

--- The points (N, D) near minima of f from x (N, D) on, and the values (N) there. f(points) gives values (N) and slopes (N, D); each
--- sample's depend on it alone. low, high: the box. At most so many iterations, with so many differences kept.
return function(f, x, low, high, iterations, memory)
  local point, list = x, {}
  local value, g = f(point)
  for _ = 1, iterations do
    local held = ops.logical_or(ops.logical_and(ops.less_equal(point, low), ops.greater(g, 0)),
      ops.logical_and(ops.greater_equal(point, high), ops.less(g, 0)))
    local free = ops.logical_not(held):astype(x.dtype)
    local next_point, best, slope, moved = along(f, point, value, g, direction(list, g * free, free), low, high)
    if not ops.any(moved):item() then
      -- Where the estimated curvature misleads, the slope alone may still go down.
      if #list == 0 then break end
      list = {}
    else
      list[#list + 1] = { s = next_point - point, y = slope - g }
      if #list > memory then table.remove(list, 1) end
      point, value, g = next_point, best, slope
    end
  end
  return point, value
end
