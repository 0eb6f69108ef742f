-- Privacy loss distributions: the law of log(P/Q) under P, composed by the fast Fourier transform. From it delta(epsilon) is exact, where
-- Rényi divergences only bound it.
--
-- The law of one step is moved to a grid so that the mass of P and of Q between two grid points stays what it was ("connect the dots",
-- Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022): every delta(epsilon) of the moved law is at least the true one. Before the
-- transform laws are tilted by exp(theta x), which puts the bulk where epsilon will be: what the transform rounds is small beside delta
-- itself, however small this is.
local ms = require "lunaria"
local events = require "lunaria.armour.privacy.events"

local ops, f64 = ms.ops, ms.float64
local loss = {}

-- Tails of mechanisms without sampling, where one row moves the answer by `moves` units: tensors P(loss > l) and Q(loss > l) for a tensor
-- l. For each of them the loss under Q is distributed as its negative under P.
local bases = {}
function bases.gaussian(event, moves)
  local sigma = event.noise_multiplier / moves
  return function(l)
    local z = -sigma * l
    return ops.ndtr(z + 1 / (2 * sigma)), ops.ndtr(z - 1 / (2 * sigma))
  end
end
function bases.laplace(event, moves)
  local most = moves / event.noise_multiplier
  return function(l)
    local inside = ops.clamp(l, -most, most)
    local p = 1 - 0.5 * ops.exp((inside - most) / 2)
    local q = 0.5 * ops.exp(-(inside + most) / 2)
    local below, above = ops.less(l, -most), ops.greater_equal(l, most)
    return ops.where(above, 0.0, ops.where(below, 1.0, p)), ops.where(above, 0.0, ops.where(below, 1.0, q))
  end
end
function bases.pure(event)
  local most = event.epsilon
  local p, q = 1 / (1 + math.exp(-most)), 1 / (1 + math.exp(most))
  return function(l)
    local below, above = ops.less(l, -most), ops.greater_equal(l, most)
    return ops.where(above, 0.0, ops.where(below, 1.0, p)), ops.where(above, 0.0, ops.where(below, 1.0, q))
  end
end

-- log(1 + (exp(e) - 1) / q), and where this is a number: the loss without sampling that sampling at rate q turns into e.
local function unsampled(e, q)
  local change = ops.expm1(ops.clamp(e, nil, 30.0))
  local exists = ops.greater(change, -q)
  local small = ops.log1p(ops.clamp(change / q, -1.0))
  local large = e - math.log(q) + ops.log1p(-(1 - q) * ops.exp(-ops.clamp(e, 0.0)))
  return ops.where(exists, ops.where(ops.less(e, 30.0), small, large), 0.0), exists
end

--- Tails of one step of an event for losses l. direction: "remove", where P has the row, or "add", where Q has it.
local function tails(event, direction)
  local q, sampling = event.sample_rate, event.sampling
  local base = bases[event.mechanism](event, events.moves(event))
  if q == 1 then return base end
  if sampling == "fixed" then
    -- delta(epsilon) of the sampled mechanism is q delta(log(1 + (exp(epsilon) - 1) / q)) for epsilon >= 0 (Balle, Barthe and Gaboardi
    -- 2018, theorem 9), in both directions, so that the other half of the law is its mirror image.
    return function(l)
      local p, other = base((unsampled(ops.abs(l), q)))
      p = q * p + (1 - q) * other
      local is_above = ops.greater_equal(l, 0.0)
      return ops.where(is_above, p, 1 - other), ops.where(is_above, other, 1 - p)
    end
  end
  if direction == "remove" then
    return function(l)
      local at, exists = unsampled(l, q)
      local p, other = base(at)
      return ops.where(exists, q * p + (1 - q) * other, 1.0), ops.where(exists, other, 1.0)
    end
  end
  return function(l)
    local at, exists = unsampled(-l, q)
    local p, other = base(-at)
    return ops.where(exists, p, 0.0), ops.where(exists, (1 - q) * p + q * other, 0.0)
  end
end

-- The part of a grid where a law has mass, as first and last place: below it P(loss > l) is 1, beyond it it is less than `left_out`.
local coarse = 256
local function bounds_of(tails_of, first, n, h, left_out)
  local points = ops.minimum(first + coarse * ms.arange(0, n // coarse + 1), first + n - 1):astype(f64) * h
  local from, to = 0, n - 1
  for i, p in ipairs(tails_of(points):tolist()) do
    if p == 1 then from = coarse * (i - 1) end
    if p < left_out then
      to = math.min(n - 1, coarse * (i - 1))
      break
    end
  end
  return math.min(from, n - 2), math.max(to, from + 1)
end

-- The law of one step on the grid i h, first <= i < first + n: masses by place, and the mass at infinity.
local function discretized(event, direction, first, n, h, left_out)
  local tails_of = tails(event, direction)
  local from, to = bounds_of(tails_of, first, n, h, left_out)
  local count = to - from + 1
  local grid = ms.arange(first + from, first + to + 1):astype(f64) * h
  local p, q = tails_of(grid)
  local lower, upper = { ms.slice(0, count - 1) }, { ms.slice(1, count) }
  -- Between two grid points, P has `between` and Q has `other`; of the former `up` goes to the upper point.
  local between = ops.clamp(p[lower] - p[upper], 0.0)
  local other = ops.clamp(q[lower] - q[upper], 0.0)
  local scaled = other * ops.exp(ops.clamp(grid[lower], nil, 700.0))
  local up = ops.clamp((between - scaled) / -(ops.expm1(ms.tensor(-h, f64)):item()), 0.0)
  up = ops.minimum(up, between)
  -- What lies below the first point is moved up to it.
  local masses = ops.concat({ 1 - p[{ ms.slice(0, 1) }], up }, 0) + ops.concat({ between - up, ms.zeros({ 1 }, f64) }, 0)
  return ops.concat({ ms.zeros({ from }, f64), masses, ms.zeros({ n - 1 - to }, f64) }, 0), p[count - 1]:item()
end

-- z to the power of a positive integer, element by element.
local function power(z, n)
  local result
  while true do
    if n % 2 == 1 then result = result and result * z or z end
    n = n // 2
    if n == 0 then return result end
    z = z * z
  end
end

-- Half the width of a window around 0 outside of which the tilted sum has less than exp(log_left_out) on each side (Chernoff's bound by
-- the divergences).
local function half_width(orders, divergences, theta, log_left_out)
  local upper, lower = math.huge, math.huge
  for i, order in ipairs(orders) do
    local moment, power_of = (order - 1) * divergences[i], order - 1 - theta
    if power_of > 0 then upper = math.min(upper, (moment - log_left_out) / power_of) end
    lower = math.min(lower, (moment - log_left_out) / (order + theta))
  end
  return math.max(upper, lower)
end

local most_points = 1 << 20

-- Points and step of the grid. In each step of a training the grid moves the mean of the loss up by at most h^2 / 8, which may add up to
-- 1e-4, and adds at most h^2 / 4 to its variance. The variance is about twice the divergence of an order near 1; it may grow by 2.5e-4 of
-- itself, or to a standard deviation of 2e-5.
local function grid_of(width, steps, divergence)
  local h = math.min(1e-4, math.sqrt(8e-4 / steps), math.max(math.sqrt(2e-3 * divergence / steps), 4e-5 / math.sqrt(steps)))
  local n = 1 << 12
  while n * h < 2 * width and n < most_points do n = 2 * n end
  return n, 2 * width / n
end

-- Laws on one grid as their transforms, tilted: { values = for one step, scaled to a sum of 1, log_moment = of that sum, infinite = }. What
-- neighbouring kinds share is computed once.
local function transforms(direction, n, h, theta, left_out)
  local known = {}
  local function of(event)
    local key = events.key(event)
    if not known[key] then
      local masses, infinite = discretized(event, direction, -(n // 2), n, h, left_out)
      local log_moment
      if theta == 0 then
        log_moment = math.log(ops.sum(masses):item())
      else
        masses = ops.log(masses) + theta * h * ms.arange(-(n // 2), n // 2):astype(f64)
        log_moment = ops.logsumexp(masses, 0):item()
        masses = ops.exp(masses - log_moment)
      end
      known[key] = { values = ops.rfft(ops.ifftshift(masses)), log_moment = log_moment, infinite = infinite }
    end
    return known[key]
  end
  return function(event)
    if not event.share then return of(event) end
    local low, high = of(events.alone(event, event.lower_noise)), of(events.alone(event, event.noise_multiplier))
    local of_low = event.share * math.exp(low.log_moment - high.log_moment)
    local sum = of_low + 1 - event.share
    return { values = low.values * (of_low / sum) + high.values * ((1 - event.share) / sum),
      log_moment = high.log_moment + math.log(sum), infinite = event.share * low.infinite + (1 - event.share) * high.infinite }
  end
end

--- The composed law of kinds of events, with divergences of the whole at orders, for losses above 0: { grid =, masses =, h = the step,
--- infinite = the mass at infinity }. tilt: { theta =, log_delta = } of tilt_of.
function loss.compose(kinds, direction, orders, divergences, tilt)
  local theta = tilt.theta
  local width, steps = half_width(orders, divergences, theta, tilt.log_delta - 14), 0
  for _, event in ipairs(kinds) do steps = steps + event.steps end
  local n, h = grid_of(width, steps, divergences[1])
  local of = transforms(direction, n, h, theta, math.exp(tilt.log_delta - 20) / steps)
  local spectrum, log_scale, log_finite = nil, 0.0, 0.0
  for _, event in ipairs(kinds) do
    local one = of(event)
    log_finite = log_finite + event.steps * ops.log1p(ms.tensor(-math.min(one.infinite, 1.0), f64)):item()
    log_scale = log_scale + event.steps * one.log_moment
    local part = power(one.values, event.steps)
    spectrum = spectrum and spectrum * part or part
  end
  local sum = ops.fftshift(ops.irfft(spectrum, n))
  local grid = ms.arange(1, n // 2):astype(f64) * h
  local log_masses = ops.log(ops.clamp(sum[{ ms.slice(n // 2 + 1, n) }], 0.0)) + log_scale - theta * grid
  return { grid = grid, h = h, masses = ops.exp(ops.clamp(log_masses, nil, 600.0)),
    infinite = -ops.expm1(ms.tensor(log_finite, f64)):item() }
end

--- delta of an epsilon >= 0.
function loss.delta(law, epsilon)
  local gains = -ops.expm1(ops.clamp(epsilon - law.grid, nil, 0.0))
  return math.min(1.0, law.infinite + ops.sum(law.masses * gains):item())
end

--- The least epsilon >= 0 of a delta; infinite where the mass at infinity is above delta.
function loss.epsilon(law, delta)
  if law.infinite > delta then return math.huge end
  if loss.delta(law, 0.0) <= delta then return 0.0 end
  -- delta(k h) > delta >= delta((k + 1) h); k = 0 is at epsilon 0.
  local low, high = 0, law.grid.size
  while high - low > 1 do
    local middle = (low + high) // 2
    if loss.delta(law, middle * law.h) > delta then low = middle else high = middle end
  end
  if high == law.grid.size and loss.delta(law, high * law.h) > delta then return math.huge end
  -- Between the two points the sum runs over the places from `high` on: a - exp(epsilon - high h) b, with b <= a.
  local part = ms.slice(high - 1, law.grid.size)
  local masses = law.masses[{ part }]
  local a = ops.sum(masses):item() + law.infinite
  local b = ops.sum(masses * ops.exp(high * law.h - law.grid[{ part }])):item()
  return math.max(low * law.h, math.min(high * law.h, high * law.h + math.log((a - delta) / b)))
end

--- The largest loss of one step in either direction: epsilon where delta is 0. Infinite for Gaussian noise.
function loss.largest(event)
  local q = event.sample_rate
  if q == 0 then return 0.0 end
  local most = event.mechanism == "pure" and event.epsilon or math.huge
  if event.mechanism == "laplace" then
    local noise = event.lower_noise or event.noise_multiplier
    if noise > 0 then most = events.moves(event) / noise end
  end
  if most == math.huge or q == 1 then return most end
  if most > 700 then return most + math.log(q) end
  return ops.log1p(q * ops.expm1(ms.tensor(most, f64))):item()
end

--- The tilt for a question whose answer is near (epsilon, delta) by the divergences: the least with which what the transform rounds, 1e-15
--- in all, is below 1e-5 of delta. A factor of e^5 is for epsilons that are lower than the divergences say.
function loss.tilt_of(orders, divergences, epsilon, delta)
  local log_delta = math.log(math.max(delta, 1e-300))
  local least, best = math.log(1e-15), 0.0
  for i, order in ipairs(orders) do
    if least <= log_delta + math.log(1e-5) - 5 then break end
    local log_rounded = (order - 1) * (divergences[i] - epsilon) + math.log(1e-15)
    if log_rounded < least then least, best = log_rounded, order - 1 end
  end
  return { theta = best, log_delta = log_delta }
end

return loss
