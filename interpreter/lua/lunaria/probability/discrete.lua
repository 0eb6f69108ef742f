-- Families of distributions over whole numbers. Between and outside of their values the probability is 0.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.probability.distribution"
local special = require "lunaria.probability.special"

local ops = ms.ops
local define, within = base.define, special.within
local log, exp, lgamma = ops.log, ops.exp, ops.lgamma
local huge = math.huge

local classes = {}

-- Whole numbers from 0 up to `most`.
local function is_value(x, most)
  local inside = ops.logical_and(ops.equal(x, ops.floor(x)), ops.greater_equal(x, 0.0))
  return most and ops.logical_and(inside, ops.less_equal(x, most)) or inside
end

local function entropy_of(p) return -ops.xlogy(p, p) - special.xlog1py(1.0 - p, -p) end

-- f with the formulas of `over`: the probability of what is no value is 0.
local function counting(over, most, f)
  for _, key in ipairs { "cdf", "survival_function", "log_cdf", "log_survival" } do f[key] = over[key] end
  function f.log_prob(x, p)
    return within(is_value(x, most), x, 0.0, function(s) return over.log_prob(s, p) end, -huge)
  end
  return f
end

-- p log(p / q), which is 0 for p = 0 and infinite for q = 0.
local function term(p, q) return ops.xlogy(p, p) - ops.xlogy(p, q) end

classes.Bernoulli = define(counting(special.bernoulli, 1.0, {
  name = "Bernoulli", parameters = { "probs" }, conditions = { probs = "probability" }, discrete = true,
  mean = function(p) return p + 0.0 end, var = function(p) return p * (1.0 - p) end,
  mode = function(p) return ops.greater(p, 0.5):astype(p.dtype) end,
  entropy = entropy_of,
  kl_loss = function(b, a) return term(a[1], b[1]) + term(1.0 - a[1], 1.0 - b[1]) end,
  sample = function(shape, seed, p) return ops.less(ops.rand(shape, nil, seed), p:astype(ms.float32)):astype(ms.int32) end,
}), "probs=nil", [[1 with a probability and 0 otherwise. probs: the probability of 1.

  > ("%.4f"):format(ms.probability.distribution.Bernoulli(0.25):prob(1):item()) --> 0.2500]])

classes.Geometric = define(counting(special.geometric, nil, {
  name = "Geometric", parameters = { "probs" }, conditions = { probs = "probability" }, discrete = true,
  mean = function(p) return (1.0 - p) / p end, var = function(p) return (1.0 - p) / p ^ 2 end, mode = ops.zeros_like,
  entropy = function(p) return entropy_of(p) / p end,
  kl_loss = function(b, a) return log(a[1] / b[1]) + (1.0 / a[1] - 1.0) * (ops.log1p(-a[1]) - ops.log1p(-b[1])) end,
  sample = function(shape, seed, p)
    return ops.floor(ops.log1p(-base.uniform(shape, seed, p.dtype)) / ops.log1p(-p))
  end,
}), "probs=nil", [[How often an attempt fails before the first success. probs: the probability of a success.

  > ("%.4f"):format(ms.probability.distribution.Geometric(0.5):prob(2):item()) --> 0.1250]])

classes.Poisson = define(counting(special.poisson, nil, {
  name = "Poisson", parameters = { "rate" }, conditions = { rate = "positive" }, discrete = true,
  wide = true,
  mean = function(rate) return rate + 0.0 end, var = function(rate) return rate + 0.0 end,
  mode = function(rate) return ops.ceil(rate) - 1.0 + ops.equal(rate, ops.floor(rate)):astype(rate.dtype) end,
  -- A sum over all values that count: there is no closed form.
  entropy = function(rate)
    local most = ops.max(ops.stop_gradient(rate)):item()
    local count = math.ceil(most + 12 * math.sqrt(most) + 40)
    local k = ops.arange(count):astype(rate.dtype)
    local each = ops.expand_dims(rate, -1)
    local logs = ops.xlogy(k, each) - each - lgamma(k + 1.0)
    return -ops.sum(exp(logs) * logs, -1)
  end,
  kl_loss = function(b, a) return a[1] * log(a[1] / b[1]) - a[1] + b[1] end,
  sample = function(shape, seed, rate)
    local sizes = {}
    for i = 1, #shape - rate.ndim do sizes[i] = shape[i] end
    return ops.random_poisson(sizes, rate, seed)
  end,
}), "rate=nil", [[The Poisson distribution, of how often something happens. rate: the mean, above 0.

  > ("%.4f"):format(ms.probability.distribution.Poisson(2.0):prob(0):item()) --> 0.1353]])

-- Numbers of classes as a one-hot tensor over the last axis; all 0 where it is no class.
local function one_hot(x, p)
  local classes_of = ops.arange(p.shape[p.ndim]):astype(x.dtype)
  return ops.equal(ops.expand_dims(x, -1), classes_of)
end

-- Which classes are at most x.
local function up_to(x, p) return ops.less_equal(ops.arange(p.shape[p.ndim]):astype(x.dtype), ops.expand_dims(x, -1)) end

classes.Categorical = define({
  name = "Categorical", parameters = { "probs" }, conditions = { probs = "probability" }, discrete = true, event = 1,
  check = function(self)
    local p = self._probs
    if p == nil then return end
    if p.ndim == 0 then arguments.fail("Categorical", "probs must have an axis of classes, got " .. arguments.describe(p)) end
    if not ops.all(ops.less(ops.abs(ops.sum(p, -1) - 1.0), 1e-3)):item() then
      arguments.fail("Categorical", "probs must add up to 1 along the last axis", "ops.softmax(scores, -1) gives such")
    end
  end,
  prob = function(x, p) return ops.sum(ops.where(one_hot(x, p), p, ops.zeros_like(p)), -1) end,
  cdf = function(x, p) return ops.sum(ops.where(up_to(x, p), p, 0.0), -1) end,
  survival_function = function(x, p) return ops.sum(ops.where(up_to(x, p), 0.0, p), -1) end,
  mean = function(p) return ops.sum(p * ops.arange(p.shape[p.ndim]):astype(p.dtype), -1) end,
  var = function(p)
    local k = ops.arange(p.shape[p.ndim]):astype(p.dtype)
    return ops.sum(p * (k - ops.sum(p * k, -1, true)) ^ 2, -1)
  end,
  mode = function(p) return ops.argmax(p, -1):astype(p.dtype) end,
  entropy = function(p) return -ops.sum(ops.xlogy(p, p), -1) end,
  kl_loss = function(b, a) return ops.sum(term(a[1], b[1]), -1) end,
  sample = function(shape, seed, p)
    local batch = p.ndim - 1
    local count, rows = 1, p.shape[p.ndim]
    for i = 1, #shape - batch do count = count * shape[i] end
    local drawn = ops.random_categorical(log(ops.reshape(p, { -1, rows })), count, seed)
    return ops.reshape(ops.transpose(drawn, { 1, 0 }), shape)
  end,
}, "probs=nil", [[One of several classes, counted from 0. probs: the probabilities of the classes, along the last axis.

  > ms.probability.distribution.Categorical({ 0.5, 0.25, 0.25 }):prob(ms.tensor { 0, 2 }):tolist()[2] --> 0.25]])

return classes
