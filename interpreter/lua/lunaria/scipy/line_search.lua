-- A step that fulfils the strong Wolfe conditions, by J. Moré and D. Thuente, "Line search algorithms with guaranteed sufficient
-- decrease" (1994): an interval that holds such a step is made smaller by cubic and quadratic interpolation; what fails is tried again by
-- bracketing and zooming (J. Nocedal and S. Wright, chapter 3).
local ms = require "lunaria"
local ops = ms.ops
local M = {}

local function dot(a, b) return ops.reduce_sum(a * b):item() end

-- The minimum of the cubic through two points with their slopes: how far from the first point a to the second b, as a share. least: what is
-- under the root is not less than this. turned: the other root.
local function cubic(a, b, turned, least)
  local theta = 3 * (a.value - b.value) / (b.at - a.at) + a.slope + b.slope
  local scale = math.max(math.abs(theta), math.abs(a.slope), math.abs(b.slope))
  local inner = (theta / scale) ^ 2 - a.slope / scale * (b.slope / scale)
  local gamma = scale * math.sqrt(least and math.max(least, inner) or inner)
  return theta, turned and -gamma or gamma
end

local function secant(x, t) return t.at + t.slope / (t.slope - x.slope) * (x.at - t.at) end

-- A higher value: between x and t lies a minimum.
local function step_from_higher(x, t)
  local theta, gamma = cubic(x, t, t.at < x.at)
  local r = (gamma - x.slope + theta) / (gamma - x.slope + gamma + t.slope)
  local by_cubic = x.at + r * (t.at - x.at)
  local by_square = x.at + x.slope / ((x.value - t.value) / (t.at - x.at) + x.slope) / 2 * (t.at - x.at)
  return math.abs(by_cubic - x.at) <= math.abs(by_square - x.at) and by_cubic or by_cubic + (by_square - by_cubic) / 2
end

-- A lower value and a slope of the opposite sign: there lies one too.
local function step_across(x, t)
  local theta, gamma = cubic(x, t, t.at > x.at)
  local r = (gamma - t.slope + theta) / (gamma - t.slope + gamma + x.slope)
  local by_cubic, by_secant = t.at + r * (x.at - t.at), secant(x, t)
  return math.abs(by_cubic - t.at) > math.abs(by_secant - t.at) and by_cubic or by_secant
end

-- A lower value and a slope of the same sign that has become flatter.
local function step_beyond(s, t, least, most)
  local x = s.x
  local theta, gamma = cubic(x, t, t.at > x.at, 0)
  local r = (gamma - t.slope + theta) / (gamma + (x.slope - t.slope) + gamma)
  local by_cubic, by_secant = t.at > x.at and most or least, secant(x, t)
  if r < 0 and gamma ~= 0 then by_cubic = t.at + r * (x.at - t.at) end
  local nearer = math.abs(by_cubic - t.at) < math.abs(by_secant - t.at)
  if not s.bracketed then return math.max(least, math.min(most, nearer and by_secant or by_cubic)) end
  local step, bound = nearer and by_cubic or by_secant, t.at + 0.66 * (s.y.at - t.at)
  return t.at > x.at and math.min(bound, step) or math.max(bound, step)
end

-- A lower value and a slope that has not become flatter.
local function step_downhill(s, t, least, most)
  if not s.bracketed then return t.at > s.x.at and most or least end
  local y = s.y
  local theta, gamma = cubic(t, y, t.at > y.at)
  local r = (gamma - t.slope + theta) / (gamma - t.slope + gamma + y.slope)
  return t.at + r * (y.at - t.at)
end

-- The next trial step between the best one (x) and the other end (y) of the interval. s: both with value and slope, and whether the
-- interval brackets a minimum; t: the trial.
local function next_step(s, t, least, most)
  local x = s.x
  local opposite = t.slope * (x.slope < 0 and -1 or x.slope > 0 and 1 or 0) < 0
  local step
  if t.value > x.value then
    step, s.bracketed = step_from_higher(x, t), true
  elseif opposite then
    step, s.bracketed = step_across(x, t), true
  elseif math.abs(t.slope) < math.abs(x.slope) then
    step = step_beyond(s, t, least, most)
  else
    step = step_downhill(s, t, least, most)
  end
  local trial = { at = t.at, value = t.value, slope = t.slope }
  if t.value > x.value then
    s.y = trial
  else
    if opposite then s.y = x end
    s.x = trial
  end
  return step
end

-- Whether there is no use in going on from the trial t at this step.
local function is_stuck(s, t, step, least, most, decrease, test_slope, o)
  if s.bracketed then
    if step <= least or step >= most or most - least <= o.xtol * most then return true end
  end
  if step == o.amax then return t.value <= decrease and t.slope <= test_slope end
  return step == o.amin and (t.value > decrease or t.slope >= test_slope)
end

local function more_thuente(phi, value, slope, step, o)
  local s = { x = { at = 0.0, value = value, slope = slope }, y = { at = 0.0, value = value, slope = slope }, bracketed = false }
  local first_stage, test_slope = true, o.c1 * slope
  local width, wider = o.amax - o.amin, 2 * (o.amax - o.amin)
  local least, most = 0.0, step + 4 * step
  for _ = 1, o.maxiter do
    local t = phi(step)
    if t.value ~= t.value or math.abs(t.value) == math.huge then return nil end
    local decrease = value + step * test_slope
    if first_stage and t.value <= decrease and t.slope >= 0 then first_stage = false end
    if t.value <= decrease and math.abs(t.slope) <= o.c2 * -slope then return t end
    if is_stuck(s, t, step, least, most, decrease, test_slope, o) then return nil end
    if first_stage and t.value <= s.x.value and t.value > decrease then
      -- The function less its allowed decrease, until a step has less than that.
      local function less(p) return { at = p.at, value = p.value - p.at * test_slope, slope = p.slope - test_slope } end
      local function back(p) return { at = p.at, value = p.value + p.at * test_slope, slope = p.slope + test_slope } end
      s.x, s.y = less(s.x), less(s.y)
      step = next_step(s, less(t), least, most)
      s.x, s.y = back(s.x), back(s.y)
    else
      step = next_step(s, t, least, most)
    end
    if s.bracketed then
      if math.abs(s.y.at - s.x.at) >= 0.66 * wider then step = s.x.at + 0.5 * (s.y.at - s.x.at) end
      wider, width = width, math.abs(s.y.at - s.x.at)
      least, most = math.min(s.x.at, s.y.at), math.max(s.x.at, s.y.at)
    else
      least, most = step + 1.1 * (step - s.x.at), step + 4 * (step - s.x.at)
    end
    step = math.max(o.amin, math.min(o.amax, step))
    if s.bracketed and (step <= least or step >= most or most - least <= o.xtol * most) then step = s.x.at end
  end
  return nil
end

-- Between two steps, of which `low` is the best so far.
local function zoom(phi, low, high, value, slope, o)
  for _ = 1, 10 do
    local width = high.at - low.at
    local step = low.at - low.slope * width * width / (2 * (high.value - low.value - low.slope * width))
    local inside = (step - low.at) / width
    if not (inside > 0.1 and inside < 0.9) then step = low.at + 0.5 * width end
    local t = phi(step)
    if t.value > value + o.c1 * step * slope or t.value >= low.value then
      high = t
    else
      if math.abs(t.slope) <= -o.c2 * slope then return t end
      if t.slope * (high.at - low.at) >= 0 then high = low end
      low = t
    end
  end
  return nil
end

local function bracketing(phi, value, slope, step, o)
  local before = { at = 0.0, value = value, slope = slope }
  for i = 1, 10 do
    local t = phi(math.min(step, o.amax))
    if t.value > value + o.c1 * t.at * slope or (t.value >= before.value and i > 1) then return zoom(phi, before, t, value, slope, o) end
    if math.abs(t.slope) <= -o.c2 * slope then return t end
    if t.slope >= 0 then return zoom(phi, t, before, value, slope, o) end
    before, step = t, 2 * t.at
  end
  return nil
end

--- The step { alpha, value, gradient } from x along p, or nil. f(x) gives value and gradient; `before`: the value one step ago, from
--- which the first trial is guessed. o: c1, c2, amin, amax, maxiter, first (the first trial is scaled by the gradient).
function M.find(f, x, p, value, gradient, before, o)
  o = { c1 = o.c1 or 1e-4, c2 = o.c2 or 0.9, amin = o.amin, amax = o.amax, maxiter = o.maxiter or 100, xtol = 1e-14, first = o.first }
  local slope = dot(gradient, p)
  local function phi(step)
    local v, g = f(x + p * step)
    return { at = step, value = v, slope = dot(g, p), gradient = g }
  end
  local step = 1.0
  if o.first then
    step = math.min(1.0, 1 / math.sqrt(dot(p, p)))
  elseif before and slope ~= 0 then
    step = math.min(1.0, 1.01 * 2 * (value - before) / slope)
    if step < 0 then step = 1.0 end
  end
  if slope >= 0 or slope ~= slope then return nil end
  local found = more_thuente(phi, value, slope, step, o) or bracketing(phi, value, slope, step, o)
  return found and { alpha = found.at, value = found.value, gradient = found.gradient }
end

return M
