-- Families of continuous distributions. Their densities and distribution functions are those of lunaria.probability.special; what stands
-- here are parameters, moments, divergences and draws.
local ms = require "lunaria"
local base = require "lunaria.probability.distribution"
local special = require "lunaria.probability.special"

local ops = ms.ops
local define, within, uniform, normal = base.define, special.within, base.uniform, base.normal
local log, exp, sqrt, lgamma, digamma, lbeta = ops.log, ops.exp, ops.sqrt, ops.lgamma, ops.digamma, ops.betaln
local huge, pi = math.huge, math.pi
local half_log_two_pi, euler = 0.5 * math.log(2 * pi), 0.57721566490153286

local classes = {}

local function first(a) return a end
local function second(_, b) return b end

-- Draws of one exponential variable with mean 1.
local function exponential(shape, seed, dtype) return -ops.log1p(-uniform(shape, seed, dtype)) end

-- The divergence of N(m, s) of `a` from that of `b`; LogNormal has the same.
local function normal_divergence(a, b)
  local ratio = a[2] / b[2]
  return 0.5 * (ratio ^ 2 + ((a[1] - b[1]) / b[2]) ^ 2 - 1.0) - log(ratio)
end

local of_value = { "log_prob", "cdf", "survival_function", "log_cdf", "log_survival" }

-- Standardized families: a place, a scale, and the formulas of `over` z = (x - place) / scale.
local function standardized(name, parameters, over, f, doc)
  local scale = parameters[2]
  f.name, f.parameters, f.conditions = name, parameters, { [scale] = "positive" }
  for _, key in ipairs(of_value) do
    local formula = over[key]
    f[key] = function(x, place, width)
      local value = formula((x - place) / width)
      return key == "log_prob" and value - log(width) or value
    end
  end
  f.mode = f.mode or first
  f.sample = f.sample or function(shape, seed, place, width) return place + width * f.draw(shape, seed, width.dtype) end
  return define(f, parameters[1] .. "=nil, " .. scale .. "=nil", doc)
end

classes.Normal = standardized("Normal", { "mean", "sd" }, special.normal, {
  mean = first, sd = second,
  entropy = function(_, sd) return log(sd) + (half_log_two_pi + 0.5) end,
  kl_loss = function(b, a) return normal_divergence(a, b) end,
  draw = normal,
}, [[The normal distribution. mean: the mean. sd: the standard deviation, above 0.

  > ("%.4f"):format(ms.probability.distribution.Normal(1.0, 2.0):log_prob(1.0):item()) --> -1.6121]])

classes.Laplace = standardized("Laplace", { "mean", "sd" }, special.laplace, {
  mean = first, sd = function(_, sd) return sd * math.sqrt(2) end,
  entropy = function(_, sd) return log(sd) + (1 + math.log(2)) end,
  kl_loss = function(b, a)
    local apart = ops.abs(a[1] - b[1])
    return log(b[2] / a[2]) + apart / b[2] + a[2] / b[2] * exp(-apart / a[2]) - 1.0
  end,
  draw = function(shape, seed, dtype)
    local u = uniform(shape, seed, dtype) - 0.5
    return -ops.sign(u) * ops.log1p(-2.0 * ops.abs(u))
  end,
}, [[The Laplace distribution. mean: the mean. sd: its scale, above 0, as the reference calls it; the standard deviation is
sqrt(2) times that.

  > ("%.4f"):format(ms.probability.distribution.Laplace(0.0, 1.0):cdf(0.0):item()) --> 0.5000]])

classes.Logistic = standardized("Logistic", { "loc", "scale" }, special.logistic, {
  mean = first, sd = function(_, scale) return scale * (pi / math.sqrt(3)) end,
  entropy = function(_, scale) return log(scale) + 2.0 end,
  draw = function(shape, seed, dtype)
    local u = uniform(shape, seed, dtype)
    return log(u) - ops.log1p(-u)
  end,
}, [[The logistic distribution. loc: the mean. scale: above 0.

  > ("%.4f"):format(ms.probability.distribution.Logistic(0.0, 1.0):prob(0.0):item()) --> 0.2500]])

classes.Gumbel = standardized("Gumbel", { "loc", "scale" }, special.gumbel, {
  mean = function(loc, scale) return loc + euler * scale end, sd = function(_, scale) return scale * (pi / math.sqrt(6)) end,
  entropy = function(_, scale) return log(scale) + (1 + euler) end,
  kl_loss = function(b, a)
    local ratio, apart = a[2] / b[2], (a[1] - b[1]) / b[2]
    return -log(ratio) + euler * (ratio - 1.0) + exp(-apart + lgamma(1.0 + ratio)) - 1.0 + apart
  end,
  draw = function(shape, seed, dtype) return -log(exponential(shape, seed, dtype)) end,
}, [[The Gumbel distribution, of the largest of many values. loc: the likeliest value. scale: above 0.

  > ("%.4f"):format(ms.probability.distribution.Gumbel(0.0, 1.0):mean():item()) --> 0.5772]])

classes.Cauchy = standardized("Cauchy", { "loc", "scale" }, special.cauchy, {
  entropy = function(_, scale) return log(scale) + math.log(4 * pi) end,
  kl_loss = function(b, a) return log(((a[2] + b[2]) ^ 2 + (a[1] - b[1]) ^ 2) / (4.0 * a[2] * b[2])) end,
  draw = function(shape, seed, dtype) return ops.tan((uniform(shape, seed, dtype) - 0.5) * pi) end,
}, [[The Cauchy distribution, which has neither mean nor variance. loc: the likeliest value. scale: above 0.

  > ("%.4f"):format(ms.probability.distribution.Cauchy(0.0, 1.0):cdf(1.0):item()) --> 0.7500]])

classes.HalfNormal = standardized("HalfNormal", { "mean", "sd" }, special.half_normal, {
  mean = function(mean, sd) return mean + sd * math.sqrt(2 / pi) end,
  sd = function(_, sd) return sd * math.sqrt(1 - 2 / pi) end,
  entropy = function(_, sd) return log(sd) + 0.5 * (math.log(pi / 2) + 1) end,
  kl_loss = function(b, a)
    local apart, ratio = (a[1] - b[1]) / b[2], a[2] / b[2]
    local d = 0.5 * (apart ^ 2 + 2 * math.sqrt(2 / pi) * apart * ratio + ratio ^ 2 - 1.0) - log(ratio)
    return ops.where(ops.greater_equal(apart + ops.zeros_like(d), 0.0), d, ops.full_like(d, huge))
  end,
  draw = function(shape, seed, dtype) return ops.abs(normal(shape, seed, dtype)) end,
}, [[The upper half of a normal distribution. mean: where it begins. sd: the standard deviation of the whole, above 0.

  > ("%.4f"):format(ms.probability.distribution.HalfNormal(0.0, 1.0):mean():item()) --> 0.7979]])

-- The formula of the normal distribution over log(x), and `outside` where x is not positive.
local function log_normal(key, outside)
  local formula = special.normal[key]
  return function(x, loc, scale)
    return within(ops.greater(x, 0.0), x, 1.0, function(s)
      local l = log(s)
      local value = formula((l - loc) / scale)
      return key == "log_prob" and value - log(scale) - l or value
    end, outside)
  end
end

classes.LogNormal = define({
  name = "LogNormal", parameters = { "loc", "scale" }, conditions = { scale = "positive" },
  log_prob = log_normal("log_prob", -huge), cdf = log_normal("cdf", 0.0), survival_function = log_normal("survival_function", 1.0),
  log_cdf = log_normal("log_cdf", -huge), log_survival = log_normal("log_survival", 0.0),
  mean = function(loc, scale) return exp(loc + 0.5 * scale ^ 2) end,
  mode = function(loc, scale) return exp(loc - scale ^ 2) end,
  var = function(loc, scale) return ops.expm1(scale ^ 2) * exp(2.0 * loc + scale ^ 2) end,
  entropy = function(loc, scale) return loc + log(scale) + (half_log_two_pi + 0.5) end,
  kl_loss = function(b, a) return normal_divergence(a, b) end,
  sample = function(shape, seed, loc, scale) return exp(loc + scale * normal(shape, seed, scale.dtype)) end,
}, "loc=nil, scale=nil", [[
The distribution of a number whose logarithm is normally distributed. loc: the mean of the logarithm. scale: its standard
deviation, above 0.

  > ("%.4f"):format(ms.probability.distribution.LogNormal(0.0, 1.0):mode():item()) --> 0.3679]])

-- f with the formulas of `over` z = rate x, where rate is the last parameter and the others follow z.
local function scaled(over, f)
  for _, key in ipairs(of_value) do
    f[key] = function(x, ...)
      local shapes = table.pack(...)
      local rate = table.remove(shapes)
      local value = over[key](rate * x, table.unpack(shapes))
      return key == "log_prob" and value + log(rate) or value
    end
  end
  return f
end

classes.Exponential = define(scaled(special.exponential, {
  name = "Exponential", parameters = { "rate" }, conditions = { rate = "positive" },
  mean = function(rate) return 1.0 / rate end, sd = function(rate) return 1.0 / rate end, mode = ops.zeros_like,
  entropy = function(rate) return 1.0 - log(rate) end,
  kl_loss = function(b, a) return log(a[1] / b[1]) + b[1] / a[1] - 1.0 end,
  sample = function(shape, seed, rate) return exponential(shape, seed, rate.dtype) / rate end,
}), "rate=nil", [[The exponential distribution. rate: 1 over the mean, above 0.

  > ("%.4f"):format(ms.probability.distribution.Exponential(2.0):mean():item()) --> 0.5000]])

local function between(f)
  for _, key in ipairs(of_value) do
    f[key] = function(x, low, high)
      local width = high - low
      local value = special.uniform[key]((x - low) / width, (high - x) / width)
      return key == "log_prob" and value - log(width) or value
    end
  end
  return f
end

classes.Uniform = define(between({
  name = "Uniform", parameters = { "low", "high" },
  check = function(self)
    if self._low and self._high and not ops.all(ops.less(self._low, self._high)):item() then
      require("lunaria.nn.arguments").fail("Uniform", "low must be less than high")
    end
  end,
  mean = function(low, high) return 0.5 * (low + high) end,
  sd = function(low, high) return (high - low) / math.sqrt(12) end,
  entropy = function(low, high) return log(high - low) end,
  kl_loss = function(b, a)
    local d = log((b[2] - b[1]) / (a[2] - a[1]))
    local inside = ops.logical_and(ops.less_equal(b[1] + ops.zeros_like(d), a[1]), ops.greater_equal(b[2] + ops.zeros_like(d), a[2]))
    return ops.where(inside, d, ops.full_like(d, huge))
  end,
  sample = function(shape, seed, low, high) return low + (high - low) * uniform(shape, seed, low.dtype) end,
}), "low=nil, high=nil", [[The uniform distribution between two numbers. low: the lower. high: the higher.

  > ("%.4f"):format(ms.probability.distribution.Uniform(0.0, 4.0):cdf(1.0):item()) --> 0.2500]])

local function gamma_draw(shape, seed, concentration)
  local sizes, own = {}, concentration.shape
  for i = 1, #shape - #own do sizes[i] = shape[i] end
  local x = ops.random_gamma(sizes, concentration, seed)
  return x.dtype == concentration.dtype and x or x:astype(concentration.dtype)
end

classes.Gamma = define(scaled(special.gamma, {
  name = "Gamma", parameters = { "concentration", "rate" }, conditions = { concentration = "positive", rate = "positive" },
  wide = true,
  mean = function(a, rate) return a / rate end, var = function(a, rate) return a / rate ^ 2 end,
  mode = function(a, rate) return ops.relu(a - 1.0) / rate end,
  entropy = function(a, rate) return a - log(rate) + lgamma(a) + (1.0 - a) * digamma(a) end,
  kl_loss = function(b, a)
    return (a[1] - b[1]) * digamma(a[1]) - lgamma(a[1]) + lgamma(b[1]) + b[1] * log(a[2] / b[2]) + a[1] * (b[2] / a[2] - 1.0)
  end,
  sample = function(shape, seed, a, rate) return gamma_draw(shape, seed, a + ops.zeros_like(rate)) / rate end,
}), "concentration=nil, rate=nil", [[
The gamma distribution. concentration: the shape parameter, above 0. rate: 1 over the scale, above 0. The gradient of a
sample goes to rate alone.

  > ("%.4f"):format(ms.probability.distribution.Gamma(3.0, 2.0):mean():item()) --> 1.5000]])

classes.Beta = define({
  name = "Beta", parameters = { "concentration1", "concentration0" },
  conditions = { concentration1 = "positive", concentration0 = "positive" },
  wide = true,
  log_prob = special.beta.log_prob, cdf = special.beta.cdf, survival_function = special.beta.survival_function,
  log_cdf = special.beta.log_cdf, log_survival = special.beta.log_survival,
  mean = function(a, b) return a / (a + b) end, var = function(a, b) return a * b / ((a + b) ^ 2 * (a + b + 1.0)) end,
  mode = function(a, b)
    local both = ops.logical_and(ops.greater(a + 0.0 * b, 1.0), ops.greater(b + 0.0 * a, 1.0))
    return within(both, a + 0.0 * b, 2.0, function(s) return (s - 1.0) / (s + ops.maximum(b, ops.ones_like(b)) - 2.0) end, 0 / 0)
  end,
  entropy = function(a, b)
    return lbeta(a, b) - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + (a + b - 2.0) * digamma(a + b)
  end,
  kl_loss = function(b, a)
    local sum = a[1] + a[2]
    return lbeta(b[1], b[2]) - lbeta(a[1], a[2]) + (a[1] - b[1]) * digamma(a[1]) + (a[2] - b[2]) * digamma(a[2])
      + (b[1] + b[2] - sum) * digamma(sum)
  end,
  sample = function(shape, seed, a, b)
    local x = gamma_draw(shape, seed, a + ops.zeros_like(b))
    local y = gamma_draw(shape, seed and seed + 1, b + ops.zeros_like(a))
    return x / (x + y)
  end,
}, "concentration1=nil, concentration0=nil", [[
The beta distribution over [0, 1]. concentration1, concentration0: the shape parameters of x and of 1 - x, above 0. A mode
is given where both are above 1. Samples are without gradient.

  > ("%.4f"):format(ms.probability.distribution.Beta(3.0, 1.0):mean():item()) --> 0.7500]])

classes.StudentT = define({
  name = "StudentT", parameters = { "df", "mean", "sd" }, conditions = { df = "positive", sd = "positive" },
  wide = true,
  log_prob = function(x, df, mean, sd) return special.student.log_prob((x - mean) / sd, df) - log(sd) end,
  log_cdf = function(x, df, mean, sd) return special.student.log_cdf((x - mean) / sd, df) end,
  log_survival = function(x, df, mean, sd) return special.student.log_survival((x - mean) / sd, df) end,
  mean = function(df, mean)
    local all = mean + ops.zeros_like(df)
    return ops.where(ops.greater(df + ops.zeros_like(all), 1.0), all, ops.full_like(all, 0 / 0))
  end,
  mode = function(df, mean) return mean + ops.zeros_like(df) end,
  var = function(df, _, sd)
    local width = sd ^ 2 + ops.zeros_like(df)
    local finite = within(ops.greater(df + ops.zeros_like(width), 2.0), df + ops.zeros_like(width), 3.0,
      function(s) return width * s / (s - 2.0) end, huge)
    return ops.where(ops.greater(df + ops.zeros_like(width), 1.0), finite, ops.full_like(width, 0 / 0))
  end,
  entropy = function(df, _, sd)
    local m = 0.5 * (df + 1.0)
    return m * (digamma(m) - digamma(0.5 * df)) + 0.5 * log(df) + lbeta(0.5 * df, ops.full_like(df, 0.5)) + log(sd)
  end,
  sample = function(shape, seed, df, mean, sd)
    local width = sd + ops.zeros_like(df) + ops.zeros_like(mean)
    local squares = gamma_draw(shape, seed and seed + 1, 0.5 * df + ops.zeros_like(width)) * 2.0
    return mean + sd * normal(shape, seed, sd.dtype) * sqrt(df / squares)
  end,
}, "df=nil, mean=nil, sd=nil", [[
Student's t distribution. df: the degrees of freedom, above 0. mean: its middle. sd: its scale, above 0, as the reference
calls it; the variance is df / (df - 2) times its square.

  > ("%.4f"):format(ms.probability.distribution.StudentT(3.0, 0.0, 1.0):cdf(0.0):item()) --> 0.5000]])

return classes
