-- The formulas of distributions: over z = (x - place) / scale, or over a value and its parameters, as logarithms of densities,
-- of distribution functions and of what these lack to 1. ms.probability and ms.scipy.stats both use them. In each tail there is a form in
-- which nothing cancels, and operands of the forms that are not chosen are replaced, so that their slopes are finite.
local ms = require "lunaria"

local ops = ms.ops
local log, exp, log1p, erf, ndtr, log_ndtr = ops.log, ops.exp, ops.log1p, ops.erf, ops.ndtr, ops.log_ndtr
local huge, pi, root_half = math.huge, math.pi, math.sqrt(0.5)
local log_two, half_log_two_pi = math.log(2), 0.5 * math.log(2 * pi)

local special = {}

--- f of a value where it is inside, and `outside` elsewhere; there f is computed of `safe`, so that its derivative is finite.
function special.within(inside, value, safe, f, outside)
  local result = f(ops.where(inside, value, ops.full_like(value, safe)))
  return ops.where(inside, result, ops.full_like(result, outside))
end
local within = special.within

-- low(z) where z < 0 and high(z) elsewhere.
local function halves(z, low, high)
  local left = ops.less(z, 0.0)
  return ops.where(left, low(ops.where(left, z, 0.0)), high(ops.where(left, 0.0, z)))
end

--- log(1 - exp(x)) for x <= 0: by expm1 where exp(x) is next to 1, and by log1p where it is small.
function special.log1m_exp(x)
  local near = ops.greater(x, -log_two)
  return ops.where(near, log(-ops.expm1(ops.where(near, x, -1.0))), log1p(-exp(ops.where(near, -1.0, x))))
end
local log1m_exp = special.log1m_exp

--- x log(1 + y), and 0 where x is 0.
function special.xlog1py(x, y)
  local zero = ops.equal(x, 0.0)
  return ops.where(zero, 0.0, x * log1p(ops.where(zero, 0.0, y)))
end

local function mirrored(f) return function(z) return f(-z) end end

special.normal = {
  log_prob = function(z) return -0.5 * z * z - half_log_two_pi end,
  cdf = ndtr, survival_function = mirrored(ndtr), log_cdf = log_ndtr, log_survival = mirrored(log_ndtr), quantile = ops.ndtri,
}

local laplace = {
  log_prob = function(z) return -ops.abs(z) - log_two end,
  cdf = function(z)
    return halves(z, function(s) return 0.5 * exp(s) end, function(s) return 1.0 - 0.5 * exp(-s) end)
  end,
  log_cdf = function(z)
    return halves(z, function(s) return s - log_two end, function(s) return log1p(-0.5 * exp(-s)) end)
  end,
  quantile = function(p) return ops.where(ops.less(p, 0.5), log(2.0 * p), -log(2.0 - 2.0 * p)) end,
}
laplace.survival_function, laplace.log_survival = mirrored(laplace.cdf), mirrored(laplace.log_cdf)
special.laplace = laplace

special.logistic = {
  log_prob = function(z) return ops.log_sigmoid(z) + ops.log_sigmoid(-z) end,
  cdf = ops.sigmoid, survival_function = mirrored(ops.sigmoid), log_cdf = ops.log_sigmoid, log_survival = mirrored(ops.log_sigmoid),
  quantile = function(p) return ops.logit(p) end,
}

special.gumbel = {
  log_prob = function(z) return -z - exp(-z) end,
  cdf = function(z) return exp(-exp(-z)) end, log_cdf = function(z) return -exp(-z) end,
  survival_function = function(z) return -ops.expm1(-exp(-z)) end,
  -- With t = exp(-z) it is log(1 - exp(-t)), which is -z - t / 2 + t^2 / 24 where t is small.
  log_survival = function(z)
    local far = ops.greater(z, 10.0)
    local t = exp(-ops.where(far, z, 10.0))
    return ops.where(far, -z - t * (0.5 - t / 24.0), log1m_exp(-exp(-ops.where(far, 0.0, z))))
  end,
}

-- atan2 has all its digits in both tails, and hypot does not overflow.
local cauchy = {
  log_prob = function(z) return -2.0 * log(ops.hypot(z, ops.ones_like(z))) - math.log(pi) end,
  cdf = function(z) return ops.atan2(ops.ones_like(z), -z) / pi end,
  quantile = function(p)
    local left = ops.less(p, 0.5)
    local tail = ops.tan(pi * ops.where(left, p, 1.0 - p))
    return ops.where(left, -1.0, 1.0) / tail
  end,
}
cauchy.survival_function = mirrored(cauchy.cdf)
cauchy.log_cdf = function(z)
  return halves(z, function(s) return log(cauchy.cdf(s)) end, function(s) return log1p(-cauchy.survival_function(s)) end)
end
cauchy.log_survival = mirrored(cauchy.log_cdf)
special.cauchy = cauchy

local function from_zero(f, outside)
  return function(z, ...)
    local more = table.pack(...)
    return within(ops.greater_equal(z, 0.0), z, 1.0, function(s) return f(s, table.unpack(more, 1, more.n)) end, outside)
  end
end

special.half_normal = {
  log_prob = from_zero(function(s) return -0.5 * s * s + 0.5 * math.log(2 / pi) end, -huge),
  cdf = from_zero(function(s) return erf(s * root_half) end, 0.0),
  survival_function = from_zero(function(s) return 2.0 * ndtr(-s) end, 1.0),
  log_cdf = from_zero(function(s)
    local low = ops.less(s, 1.0)
    return ops.where(low, log(erf(ops.where(low, s, 1.0) * root_half)), log1p(-2.0 * ndtr(-ops.where(low, 1.0, s))))
  end, -huge),
  log_survival = from_zero(function(s)
    local low = ops.less(s, 1.0)
    return ops.where(low, log1p(-erf(ops.where(low, s, 1.0) * root_half)), log_ndtr(-ops.where(low, 1.0, s)) + log_two)
  end, 0.0),
}

special.exponential = {
  log_prob = from_zero(function(s) return -s end, -huge),
  cdf = from_zero(function(s) return -ops.expm1(-s) end, 0.0), survival_function = from_zero(function(s) return exp(-s) end, 1.0),
  log_cdf = from_zero(function(s) return log1m_exp(-s) end, -huge), log_survival = from_zero(function(s) return -s end, 0.0),
  quantile = function(p) return -log1p(-p) end,
}

-- f over [0, 1], where it is asked for z and what that lacks to 1, w: each has digits that the other has lost.
local function share(f, below, above)
  return function(z, w)
    local inside = ops.logical_and(ops.greater_equal(z, 0.0), ops.less_equal(z, 1.0))
    local value = f(ops.where(inside, z, 0.5), w and ops.where(inside, w, 0.5))
    return ops.where(inside, value, ops.where(ops.less(z, 0.0), ops.full_like(value, below), above))
  end
end
local function itself(s) return s end
special.uniform = {
  log_prob = share(function(s) return 0.0 * s end, -huge, -huge), cdf = share(itself, 0.0, 1.0),
  log_cdf = share(function(z, w)
    local low = ops.less(z, 0.5)
    return ops.where(low, log(ops.where(low, z, 0.5)), log1p(-ops.where(low, 0.5, w)))
  end, -huge, 0.0),
  quantile = itself,
}
function special.uniform.survival_function(z, w) return special.uniform.cdf(w, z) end
function special.uniform.log_survival(z, w) return special.uniform.log_cdf(w, z) end

-- Of z and the shape a.
special.gamma = {
  log_prob = from_zero(function(s, a) return ops.xlogy(a - 1.0, s) - s - ops.lgamma(a) end, -huge),
  cdf = from_zero(function(s, a) return ops.igamma(a, s) end, 0.0),
  survival_function = from_zero(function(s, a) return ops.igammac(a, s) end, 1.0),
  log_cdf = from_zero(function(s, a) return ops.log_igamma(a, s) end, -huge),
  log_survival = from_zero(function(s, a) return ops.log_igamma(a, s, { upper = true }) end, 0.0),
}

local upper = { upper = true }
local function over_unit(f, below, above)
  return function(x, a, b) return share(function(s) return f(s, a, b) end, below, above)(x) end
end
special.beta = {
  log_prob = over_unit(function(s, a, b)
    return ops.xlogy(a - 1.0, s) + ops.xlogy(b - 1.0, 1.0 - s) - ops.betaln(a, b)
  end, -huge, -huge),
  cdf = over_unit(function(s, a, b) return ops.betainc(a, b, s) end, 0.0, 1.0),
  survival_function = over_unit(function(s, a, b) return ops.betainc(a, b, s, upper) end, 1.0, 0.0),
  log_cdf = over_unit(function(s, a, b) return ops.log_betainc(a, b, s) end, -huge, 0.0),
  log_survival = over_unit(function(s, a, b) return ops.log_betainc(a, b, s, upper) end, 0.0, -huge),
}

-- log of the share of a tail of Student's t distribution from z >= 0 on. The incomplete beta function is asked from the end that z is
-- nearer to, where the argument has all its digits. Beyond 1e150 the tail is a power.
local function student_tail(z, df)
  local least = ops.minimum(z, 1e150)
  local half, near = 0.5 * df, ops.less(least * least, df)
  local inner, outer = ops.where(near, least, 1.0), ops.where(near, 1e3, least)
  local one_half = ops.full_like(half, 0.5)
  local value = ops.where(near, ops.log_betainc(one_half, half, inner * inner / (df + inner * inner), upper),
    ops.log_betainc(half, one_half, df / (df + outer * outer)))
  return value - log_two - df * log(z / least)
end
special.student = {
  -- log(1 + z^2 / df) is 2 log(hypot(1, z / sqrt(df))), without overflow.
  log_prob = function(z, df)
    local r = z / ops.sqrt(df)
    local low = ops.less(ops.abs(r), 1.0)
    local inner, outer = ops.where(low, r, 0.0), ops.where(low, 1.0, r)
    local logs = ops.where(low, 0.5 * log1p(inner * inner), log(ops.hypot(outer, ops.ones_like(outer))))
    return -(df + 1.0) * logs - 0.5 * log(df) - ops.betaln(0.5 * df, ops.full_like(df, 0.5))
  end,
  log_cdf = function(z, df)
    -- At 0 the slope is that of a number next to it.
    local at = z + ops.where(ops.equal(z, 0.0), 1e-20, ops.zeros_like(z))
    local tail = student_tail(ops.abs(at), df)
    return ops.where(ops.less(z, 0.0), tail, log1p(-exp(tail)))
  end,
}
function special.student.log_survival(z, df) return special.student.log_cdf(-z, df) end

-- Whole numbers, of which the logarithm of the probability is asked only where they are possible.
special.bernoulli = {
  log_prob = function(s, p) return ops.xlogy(s, p) + special.xlog1py(1.0 - s, -p) end,
}
-- f(p) from 0 up to 1, `below` and `above` elsewhere.
local function between(f, below, above)
  return function(x, p)
    local value = f(p) + ops.zeros_like(x)
    return ops.where(ops.less(x, 0.0), ops.full_like(value, below), ops.where(ops.less(x, 1.0), value, above))
  end
end
special.bernoulli.cdf = between(function(p) return 1.0 - p end, 0.0, 1.0)
special.bernoulli.survival_function = between(itself, 1.0, 0.0)
special.bernoulli.log_cdf = between(function(p) return log1p(-p) end, -huge, 0.0)
special.bernoulli.log_survival = between(log, 0.0, -huge)

-- The number of failures before a success. The share of more than k is (1 - p)^(k + 1), by log1p unless p is 1.
local function log_failures(k, p)
  local sure = ops.equal(p, 1.0)
  return ops.where(sure, -huge, (ops.floor(k) + 1.0) * log1p(-ops.where(sure, 0.5, p)))
end
special.geometric = {
  log_prob = function(s, p) return special.xlog1py(s, -p) + log(p) end,
  cdf = from_zero(function(s, p) return -ops.expm1(log_failures(s, p)) end, 0.0),
  survival_function = from_zero(function(s, p) return exp(log_failures(s, p)) end, 1.0),
  log_cdf = from_zero(function(s, p) return log1m_exp(log_failures(s, p)) end, -huge),
  log_survival = from_zero(log_failures, 0.0),
}

special.poisson = {
  log_prob = function(s, rate) return ops.xlogy(s, rate) - rate - ops.lgamma(s + 1.0) end,
  cdf = from_zero(function(s, rate) return ops.igammac(ops.floor(s) + 1.0, rate) end, 0.0),
  survival_function = from_zero(function(s, rate) return ops.igamma(ops.floor(s) + 1.0, rate) end, 1.0),
  log_cdf = from_zero(function(s, rate) return ops.log_igamma(ops.floor(s) + 1.0, rate, upper) end, -huge),
  log_survival = from_zero(function(s, rate) return ops.log_igamma(ops.floor(s) + 1.0, rate) end, 0.0),
}

-- The number of successes in n attempts, through the beta distribution of p.
local function of_attempts(f, below, above)
  return function(x, n, p)
    local k = ops.floor(x) + 0.0 * p
    local inside = ops.logical_and(ops.greater_equal(k, 0.0), ops.less(k, n))
    local a, b = ops.where(inside, k + 1.0, 1.0), ops.where(inside, n - k, 1.0)
    return ops.where(inside, f(a, b, p), ops.where(ops.less(k, 0.0), ops.full_like(a, below), above))
  end
end
special.binomial = {
  log_prob = function(s, n, p)
    local one_way = ops.logical_or(ops.equal(s, 0.0), ops.equal(s, n))
    local ways = ops.where(one_way, 0.0, -log(n + 1.0) - ops.betaln(s + 1.0, n - s + 1.0))
    return ops.xlogy(s, p) + special.xlog1py(n - s, -p) + ways
  end,
  cdf = of_attempts(function(a, b, p) return ops.betainc(a, b, p, upper) end, 0.0, 1.0),
  survival_function = of_attempts(function(a, b, p) return ops.betainc(a, b, p) end, 1.0, 0.0),
  log_cdf = of_attempts(function(a, b, p) return ops.log_betainc(a, b, p, upper) end, -huge, 0.0),
  log_survival = of_attempts(function(a, b, p) return ops.log_betainc(a, b, p) end, 0.0, -huge),
}

return special
