-- Rényi divergences of noise mechanisms, in float64, and what they say about (epsilon, delta).
--
-- With A(a) = E_Q[(P/Q)^a], the divergence of order a is log A(a) / (a - 1), and (a - 1) times it is convex in a. All moments are computed
-- as A - 1 by sums of terms that are not negative: for the small sampling rates of training A is 1 + 1e-6 and less.
local ms = require "lunaria"
local events = require "lunaria.armour.privacy.events"

local ops, f64 = ms.ops, ms.float64
local renyi = {}

local function vector(list) return ms.tensor(list, f64) end

--- The orders that are used unless others are given: 1.01, 1.02, 1.05, from 1.1 to 10.9 by tenths, all integers up to 64, then fewer.
renyi.default_orders = { 1.01, 1.02, 1.05 }
for tenth = 11, 109 do table.insert(renyi.default_orders, tenth / 10) end
for order = 11, 64 do table.insert(renyi.default_orders, order + 0.0) end
for _, order in ipairs { 72, 80, 96, 112, 128, 160, 192, 256, 384, 512, 768, 1024, 2048, 4096 } do
  table.insert(renyi.default_orders, order + 0.0)
end

-- log(A) where s is log(A - 1).
local function log_of_one_plus(s)
  if s > 30 then return s end
  return ops.log1p(ms.tensor(math.exp(s), f64)):item()
end

-- The logarithm of exp(g) - 1 for g >= 0 without overflow.
local function log_expm1(g)
  return ops.where(ops.less(g, 30.0), ops.log(ops.expm1(ops.clamp(g, nil, 30.0))), g + ops.log1p(-ops.exp(-g)))
end

local function log_binomials(order, k)
  return ops.lgamma(vector { order + 1.0 }) - ops.lgamma(k + 1.0) - ops.lgamma(order + 1.0 - k)
end

-- log A of Poisson sampling at an integer order: A - 1 = sum over k >= 2 of binomial(a, k) (1 - q)^(a - k) q^k (B(k) - 1), where B are the
-- moments of the mechanism without sampling. log_moments(k): their logarithms.
local function poisson_integer(order, q, log_moments)
  if order < 2 then return 0.0 end
  local k = ms.arange(2, order + 1):astype(f64)
  local keep = ops.log1p(ms.tensor(-q, f64)):item()
  local terms = log_binomials(order, k) + (order - k) * keep + k * math.log(q) + log_expm1(log_moments(k))
  return log_of_one_plus(ops.logsumexp(terms, 0):item())
end

-- log A of sampling of a fixed size without replacement, between data sets that differ in the content of one row, at an integer order:
-- the bound of Wang, Balle and Kasiviswanathan (2019), theorem 9, for mechanisms whose loss has no bound.
local function fixed_integer(order, q, log_moments)
  if order < 2 then return 0.0 end
  local k = ms.arange(2, order + 1):astype(f64)
  local moments = log_moments(k)
  local second = moments[0]:item()
  local terms = log_binomials(order, k) + k * math.log(q) + moments + math.log(2)
  if second < math.log(2) then
    -- At k = 2 the bound also has 4 (exp(e) - 1), which is less than 2 exp(e) here.
    local change = math.log(4) + log_expm1(vector { second }):item() - second - math.log(2)
    terms = terms + vector { change } * ops.equal(k, 2.0):astype(f64)
  end
  return log_of_one_plus(ops.logsumexp(terms, 0):item())
end

-- log A of a Gaussian with Poisson sampling at orders that are no integers (a column), by the trapezoidal rule over x. The integrand
-- m^a - 1 - a (m - 1), with m the ratio of the densities, is not negative and analytic in a strip of width pi sigma^2 around the real
-- axis, beyond which the step below is so small that the rule is exact to rounding.
local function gaussian_fractional(orders, q, sigma)
  local highest = 0.0
  for _, order in ipairs(orders) do highest = math.max(highest, order) end
  local step = math.min(sigma / 5, 0.5 * sigma * sigma)
  local first = -14 * sigma
  local count = math.ceil((highest + 28 * sigma) / step)
  local x = first + ms.arange(count):astype(f64):reshape { 1, count } * step
  local a = vector(orders):reshape { #orders, 1 }
  local log_density = -0.5 * ops.square(x / sigma) - math.log(sigma * math.sqrt(2 * math.pi) / step)
  local log_m = ops.logaddexp(ops.log1p(vector { -q }):reshape { 1, 1 }, math.log(q) + (2 * x - 1) / (2 * sigma * sigma))
  local power = a * log_m
  local u = ops.expm1(ops.clamp(log_m, nil, 300.0))
  -- Near m = 1 the terms cancel, and the series is exact.
  local near = a * (a - 1) / 2 * u * u * (1 + (a - 2) / 3 * u * (1 + (a - 3) / 4 * u * (1 + (a - 4) / 5 * u * (1 + (a - 5) / 6 * u))))
  local direct = ops.expm1(ops.clamp(power, nil, 30.0)) - a * u
  local small = ops.log(ops.clamp(ops.where(ops.less(ops.abs(a * u), 0.005), near, direct), 0.0))
  local large = power + ops.log1p(ops.clamp((a - 1) * ops.exp(-power) - a * ops.exp(log_m - power), -1.0))
  local terms = ops.where(ops.less(power, 30.0), small, large) + log_density
  local result = {}
  for i, s in ipairs(ops.logsumexp(terms, 1):tolist()) do result[i] = log_of_one_plus(s) end
  return result
end

-- log A at any order from integers: (a - 1) times the divergence is convex, so that the chord lies above it.
local function between(at_integer)
  local known = {}
  local function at(order)
    if not known[order] then known[order] = at_integer(order) end
    return known[order]
  end
  return function(order)
    local below = math.floor(order)
    if below == order then return at(below) end
    local low, high = at(below), at(below + 1)
    return low + (order - below) * (high - low)
  end
end

-- Mechanisms without sampling: log E_Q[(P/Q)^a] of a tensor of orders.
local bases = {}
function bases.gaussian(event)
  local rate = 0.5 * (events.moves(event) / event.noise_multiplier) ^ 2
  return function(a) return a * (a - 1) * rate end
end
function bases.laplace(event)
  local loss = events.moves(event) / event.noise_multiplier
  return function(a)
    local up = ops.log(a / (2 * a - 1)) + (a - 1) * loss
    return ops.maximum(ops.logaddexp(up, ops.log((a - 1) / (2 * a - 1)) - a * loss), 0.0)
  end
end
function bases.pure(event)
  local loss = event.epsilon
  local whole = loss + ops.log1p(vector { math.exp(-loss) }):item()
  return function(a) return ops.maximum(ops.logaddexp(a * loss, (1 - a) * loss) - whole, 0.0) end
end

-- Below this noise the integrand of gaussian_fractional needs too many points.
local least_sigma = 0.2

local function sampled(event, orders, moments)
  local q, result = event.sample_rate, {}
  if event.sampling == "fixed" then
    local at = between(function(order) return fixed_integer(order, q, moments) end)
    -- With sampling the mechanism is at least as private as without.
    for i, order in ipairs(orders) do result[i] = math.min(at(order), moments(vector { order }):item()) end
    return result
  end
  local at = between(function(order) return poisson_integer(order, q, moments) end)
  local fractional, places = {}, {}
  for i, order in ipairs(orders) do
    if order ~= math.floor(order) and event.mechanism == "gaussian" and event.noise_multiplier >= least_sigma then
      fractional[#fractional + 1], places[#places + 1] = order, i
    else
      result[i] = at(order)
    end
  end
  if #fractional > 0 then
    for i, value in ipairs(gaussian_fractional(fractional, q, event.noise_multiplier)) do result[places[i]] = value end
  end
  return result
end

-- log A of one step at a list of orders. known: those that were computed before, for these orders.
local function moments_of(event, orders, known)
  local key = events.key(event)
  if not known[key] then
    local moments = bases[event.mechanism](event)
    known[key] = event.sample_rate == 1 and moments(vector(orders)):tolist() or sampled(event, orders, moments)
  end
  return known[key]
end

local function filled(orders, value)
  local list = {}
  for i = 1, #orders do list[i] = value end
  return list
end

--- The divergences of one step of an event at a list of orders, as a list; infinite where there is no noise. known: a table that keeps
--- what was computed for these orders.
function renyi.of_event(event, orders, known)
  if event.sample_rate == 0 or event.epsilon == 0 then return filled(orders, 0.0) end
  if event.noise_multiplier == 0 then return filled(orders, math.huge) end
  local moments
  if event.share then
    local low = vector(moments_of(events.alone(event, event.lower_noise), orders, known))
    local high = vector(moments_of(events.alone(event, event.noise_multiplier), orders, known))
    local near = ops.log1p(event.share * ops.expm1(ops.clamp(low, nil, 1.0)) + (1 - event.share) * ops.expm1(ops.clamp(high, nil, 1.0)))
    local far = ops.logaddexp(low + math.log(event.share), high + math.log(1 - event.share))
    moments = ops.where(ops.less(low, 1.0), near, far):tolist()
  else
    moments = moments_of(event, orders, known)
  end
  local result = {}
  for i, order in ipairs(orders) do
    local value = moments[i] / (order - 1)
    result[i] = value ~= value and math.huge or value
  end
  return result
end

-- 1 - exp(-x) for x >= 0.
local function one_less_exp(x) return x < 1e-5 and x - 0.5 * x * x or 1 - math.exp(-x) end

-- The least epsilon of one order.
local conversions = {}
--- Mironov (2017), proposition 3.
function conversions.classic(order, divergence, delta) return divergence + math.log(1 / delta) / (order - 1) end
--- Balle, Barthe, Gaboardi, Hsu and Sato (2020), theorem 21; and 0 where the total variation (Bretagnolle and Huber) is below delta.
function conversions.tight(order, divergence, delta)
  if delta * delta >= one_less_exp(divergence) then return 0.0 end
  return divergence + math.log(1 - 1 / order) - math.log(delta * order) / (order - 1)
end
renyi.conversions = conversions

--- The least epsilon that divergences at orders give for a delta above 0, and its order.
function renyi.epsilon(orders, divergences, delta, conversion)
  local least, best = math.huge, orders[1]
  for i, order in ipairs(orders) do
    local value = divergences[i] < math.huge and conversions[conversion](order, divergences[i], delta) or math.huge
    if value < least then least, best = value, order end
  end
  return math.max(0.0, least), best
end

--- The least delta for an epsilon, by Chernoff's bound at orders.
function renyi.delta(orders, divergences, epsilon)
  local least = 0.0
  for i, order in ipairs(orders) do least = math.min(least, (order - 1) * (divergences[i] - epsilon)) end
  return math.exp(least)
end

return renyi
