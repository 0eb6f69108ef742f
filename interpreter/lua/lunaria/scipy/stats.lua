-- ms.scipy.stats: statistics of samples, and distributions as tables of functions: ms.scipy.stats.norm.pdf(x, loc, scale).
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local special = require "lunaria.scipy.special"

local ops = ms.ops
local M = {}

local function float(where, x, name) return arrays.mean_float("scipy.stats." .. where, name or "a", x) end

local function moments(where, a, axis)
  local x = float(where, a)
  axis = arrays.axis("scipy.stats." .. where, axis or 0, x.ndim)
  local off = x - ops.mean(x, axis, true)
  return x, off, ops.mean(off * off, axis), axis
end

--- Differences from the mean in units of the standard deviation, along an axis (0).
---
---     > ms.scipy.stats.zscore({ 1.0, 3.0 }):tolist()[2]
---     1.0
function M.zscore(a, axis, ddof)
  axis, ddof = arrays.named("scipy.stats.zscore", { "axis", "ddof" }, axis, ddof)
  local x, off, _, k = moments("zscore", a, axis)
  local n = x.shape[k + 1]
  return off / ops.sqrt(ops.reduce_sum(off * off, k, true) / (n - (ddof or 0) + 0.0))
end

--- Skewness along an axis (0): the third moment in units of the standard deviation.
---
---     > ms.scipy.stats.skew({ 1.0, 2.0, 3.0 }):item()
---     0.0
function M.skew(a, axis)
  axis = arrays.named("scipy.stats.skew", { "axis" }, axis)
  local _, off, variance, k = moments("skew", a, axis)
  return ops.mean(off * off * off, k) / (variance * ops.sqrt(variance))
end

--- Kurtosis along an axis (0): the fourth moment in units of the variance, less 3 unless fisher is false.
---
---     > ms.scipy.stats.kurtosis({ 1.0, 3.0 }):item()
---     -2.0
function M.kurtosis(a, axis, fisher)
  axis, fisher = arrays.named("scipy.stats.kurtosis", { "axis", "fisher" }, axis, fisher)
  local _, off, variance, k = moments("kurtosis", a, axis)
  local y = ops.mean(ops.square(off * off), k) / (variance * variance)
  return fisher == false and y or y - 3.0
end

--- Standard error of the mean along an axis (0).
---
---     > ms.scipy.stats.sem({ 1.0, 3.0 }):item()
---     1.0
function M.sem(a, axis, ddof)
  axis, ddof = arrays.named("scipy.stats.sem", { "axis", "ddof" }, axis, ddof)
  local x, off, _, k = moments("sem", a, axis)
  local n = x.shape[k + 1]
  return ops.sqrt(ops.reduce_sum(off * off, k) / (n - (ddof or 1) + 0.0) / (n + 0.0))
end

--- Pearson's correlation coefficient of two samples.
---
---     > ms.scipy.stats.pearsonr({ 1.0, 2.0, 4.0 }, { 2.0, 4.0, 8.0 }):item() > 0.999
---     true
function M.pearsonr(x, y)
  local a, b = arrays.pair("scipy.stats.pearsonr", float("pearsonr", x, "x"), float("pearsonr", y, "y"))
  a, b = a - ops.mean(a), b - ops.mean(b)
  return ops.clamp(ops.reduce_sum(a * b) / ops.sqrt(ops.reduce_sum(a * a) * ops.reduce_sum(b * b)), -1.0, 1.0)
end

--- The rank of each element, from 1 on, of all in a row. method: what equal elements get: "average", "min", "max" or "ordinal".
---
---     > ms.scipy.stats.rankdata({ 10.0, 30.0, 20.0 }):tolist()[2]
---     3.0
function M.rankdata(a, method)
  method = arrays.named("scipy.stats.rankdata", { "method" }, method) or "average"
  local x = ops.reshape(float("rankdata", a), { -1 })
  local sorted, order = ops.sort(x)
  local n = x.size
  if method == "ordinal" then
    return ops.tensor_scatter_update(ops.zeros({ n }, ms.int64), ops.reshape(order, { -1, 1 }), ops.arange(1, n + 1, 1, ms.int64))
  end
  local low = ops.searchsorted(sorted, x) + 1
  local high = ops.searchsorted(sorted, x, { right = true })
  if method == "min" then return ops.cast(low, ms.int64) end
  if method == "max" then return ops.cast(high, ms.int64) end
  if method ~= "average" then
    arrays.fail("scipy.stats.rankdata", ("method must be 'average', 'min', 'max' or 'ordinal', got %s"):format(arrays.describe(method)))
  end
  return (ops.cast(low, ms.float64) + ops.cast(high, ms.float64)) * 0.5
end

--- Spearman's correlation coefficient of two samples: Pearson's of the ranks.
---
---     > ms.scipy.stats.spearmanr({ 1.0, 2.0, 4.0 }, { 1.0, 9.0, 10.0 }):item() > 0.999
---     true
function M.spearmanr(a, b) return M.pearsonr(M.rankdata(a), M.rankdata(b)) end

--- The straight line y = slope x + intercept with the least squares: slope, intercept and correlation coefficient, three results.
---
---     > (ms.scipy.stats.linregress({ 0.0, 1.0, 2.0 }, { 1.0, 3.0, 5.0 })):item()
---     2.0
function M.linregress(x, y)
  local a, b = arrays.pair("scipy.stats.linregress", float("linregress", x, "x"), float("linregress", y, "y"))
  local mx, my = ops.mean(a), ops.mean(b)
  local slope = ops.reduce_sum((a - mx) * (b - my)) / ops.reduce_sum((a - mx) * (a - mx))
  return slope, my - slope * mx, M.pearsonr(a, b)
end

--- The t statistic of the mean of a sample against popmean, along an axis (0), and the two-sided probability: two results.
---
---     > (ms.scipy.stats.ttest_1samp({ 1.0, 3.0 }, 2.0)):item()
---     0.0
function M.ttest_1samp(a, popmean, axis)
  axis = arrays.named("scipy.stats.ttest_1samp", { "axis" }, axis)
  local x, _, _, k = moments("ttest_1samp", a, axis)
  local t = (ops.mean(x, k) - popmean) / M.sem(x, k)
  local degrees = x.shape[k + 1] - 1.0
  local half = ops.full_like(t, 0.5)
  return t, special.betainc(half * degrees, half, degrees / (degrees + t * t))
end

-- Distributions: of the value z = (x - loc) / scale, the logarithm of the density and the distribution function; shapes: how many
-- parameters stand before loc; discrete: on integers, without scale.
local half_log_tau = 0.5 * math.log(2 * math.pi)

local function inside(z, condition, f, outside)
  local safe = ops.where(condition, z, ops.full_like(z, 0.5))
  local y = f(safe)
  return ops.where(condition, y, ops.full_like(y, outside))
end

local families = {
  norm = {
    logpdf = function(z) return -0.5 * z * z - half_log_tau end, cdf = special.ndtr, ppf = special.ndtri,
    sf = function(z) return special.ndtr(-z) end, logcdf = special.log_ndtr,
  },
  uniform = {
    logpdf = function(z)
      local within = ops.logical_and(ops.greater_equal(z, 0.0), ops.less_equal(z, 1.0))
      return ops.where(within, ops.zeros_like(z), ops.full_like(z, -math.huge))
    end,
    cdf = function(z) return ops.clamp(z, 0.0, 1.0) end, ppf = function(p) return p end,
  },
  expon = {
    logpdf = function(z) return ops.where(ops.greater_equal(z, 0.0), -z, ops.full_like(z, -math.huge)) end,
    cdf = function(z) return -ops.expm1(-ops.maximum(z, ops.zeros_like(z))) end, ppf = function(p) return -ops.log1p(-p) end,
    sf = function(z) return ops.exp(-ops.maximum(z, ops.zeros_like(z))) end,
  },
  laplace = {
    logpdf = function(z) return -ops.abs(z) - math.log(2) end,
    cdf = function(z)
      local tail = 0.5 * ops.exp(-ops.abs(z))
      return ops.where(ops.less(z, 0.0), tail, 1.0 - tail)
    end,
    ppf = function(p) return ops.where(ops.less(p, 0.5), ops.log(2.0 * p), -ops.log(2.0 - 2.0 * p)) end,
  },
  logistic = {
    logpdf = function(z) return -ops.abs(z) - 2.0 * ops.log1p(ops.exp(-ops.abs(z))) end, cdf = ops.sigmoid, ppf = special.logit,
    sf = function(z) return ops.sigmoid(-z) end,
  },
  cauchy = {
    logpdf = function(z) return -math.log(math.pi) - ops.log1p(z * z) end,
    cdf = function(z) return 0.5 + ops.atan(z) / math.pi end, ppf = function(p) return ops.tan((p - 0.5) * math.pi) end,
  },
  gamma = {
    shapes = 1,
    logpdf = function(z, a)
      return inside(z, ops.greater(z, 0.0), function(v) return ops.xlogy(a - 1.0, v) - v - ops.lgamma(a) end, -math.huge)
    end,
    cdf = function(z, a) return special.gammainc(a, ops.maximum(z, ops.zeros_like(z))) end,
  },
  chi2 = {
    shapes = 1,
    logpdf = function(z, df)
      return inside(z, ops.greater(z, 0.0), function(v)
        return ops.xlogy(df * 0.5 - 1.0, v) - v * 0.5 - ops.lgamma(df * 0.5) - df * (0.5 * math.log(2))
      end, -math.huge)
    end,
    cdf = function(z, df) return special.gammainc(df * 0.5, ops.maximum(z, ops.zeros_like(z)) * 0.5) end,
  },
  beta = {
    shapes = 2,
    logpdf = function(z, a, b)
      return inside(z, ops.logical_and(ops.greater(z, 0.0), ops.less(z, 1.0)), function(v)
        return ops.xlogy(a - 1.0, v) + special.xlog1py(b - 1.0, -v) - special.betaln(a, b)
      end, -math.huge)
    end,
    cdf = function(z, a, b) return special.betainc(a, b, ops.clamp(z, 0.0, 1.0)) end,
  },
  t = {
    shapes = 1,
    logpdf = function(z, df)
      local front = ops.lgamma((df + 1.0) * 0.5) - ops.lgamma(df * 0.5) - 0.5 * ops.log(df * math.pi)
      return front - (df + 1.0) * 0.5 * ops.log1p(z * z / df)
    end,
    cdf = function(z, df)
      local tail = 0.5 * special.betainc(df * 0.5, ops.full_like(df, 0.5), df / (df + z * z))
      return ops.where(ops.less(z, 0.0), tail, 1.0 - tail)
    end,
  },
  poisson = {
    shapes = 1, discrete = true,
    logpmf = function(k, mu) return ops.xlogy(k, mu) - mu - ops.lgamma(k + 1.0) end,
    cdf = function(k, mu)
      local y = special.gammaincc(ops.maximum(ops.floor(k), ops.zeros_like(k)) + 1.0, mu)
      return ops.where(ops.less(k, 0.0), ops.zeros_like(y), y)
    end,
  },
  bernoulli = {
    shapes = 1, discrete = true,
    logpmf = function(k, p)
      local y = ops.xlogy(k, p) + special.xlog1py(1.0 - k, -p)
      return ops.where(ops.greater(k, 1.0), ops.full_like(y, -math.huge), y)
    end,
    cdf = function(k, p)
      local one = ops.ones_like(p + k)
      return ops.where(ops.less(k, 0.0), 0.0 * one, ops.where(ops.less(k, 1.0), one - p, one))
    end,
  },
  binom = {
    shapes = 2, discrete = true,
    logpmf = function(k, n, p)
      local ways = ops.lgamma(n + 1.0) - ops.lgamma(k + 1.0) - ops.lgamma(n - k + 1.0)
      local y = ways + ops.xlogy(k, p) + special.xlog1py(n - k, -p)
      return ops.where(ops.greater(k, n), ops.full_like(y, -math.huge), y)
    end,
    cdf = function(k, n, p)
      local whole = ops.floor(k)
      local within = ops.logical_and(ops.greater_equal(whole, 0.0), ops.less(whole, n))
      local one = ops.ones_like(n - whole)
      local a, b = ops.where(within, n - whole, one), ops.where(within, whole + 1.0, one)
      local y = special.betainc(a, b, 1.0 - p + 0.0 * whole)
      return ops.where(within, y, ops.where(ops.less(whole, 0.0), ops.zeros_like(y), ops.ones_like(y)))
    end,
  },
}

local function bring(where, ...)
  local values = table.pack(...)
  local list, dtype, plain = arrays.together(where, { "x" }, values, values.n)
  local kind = arrays.kind(dtype)
  if kind ~= "f" then dtype = plain and ms.float32 or ms.float64 end
  for i = 1, values.n do list[i] = arrays.cast(list[i], dtype) end
  return list
end

-- f(x, shapes ..., loc, scale) of a family; `after` finishes with the value and the scale.
local function method(name, family, f, after, from_probability)
  local shapes = family.shapes or 0
  return function(x, ...)
    local where = "scipy.stats." .. name
    local given, values = { ... }, { x }
    for i = 1, shapes do
      if given[i] == nil then arrays.fail(where, ("%d parameters are expected behind the value"):format(shapes)) end
      values[i + 1] = given[i]
    end
    values[shapes + 2] = given[shapes + 1] or 0.0
    values[shapes + 3] = family.discrete and 1.0 or given[shapes + 2] or 1.0
    local list = bring(where, table.unpack(values, 1, shapes + 3))
    local loc, scale = list[shapes + 2], list[shapes + 3]
    local z = from_probability and list[1] or (list[1] - loc) / scale
    -- All broadcast against each other.
    for i = 2, shapes + 1 do list[i] = list[i] + ops.zeros_like(z) end
    if shapes > 0 then z = z + ops.zeros_like(list[2]) end
    return after(f(z, table.unpack(list, 2, shapes + 1)), loc, scale)
  end
end

local function same(y) return y end

for name, family in pairs(families) do
  local d = {}
  if family.discrete then
    local function logpmf(k, ...)
      local whole = ops.logical_and(ops.equal(k, ops.floor(k)), ops.greater_equal(k, 0.0))
      local y = family.logpmf(ops.where(whole, k, ops.zeros_like(k)), ...)
      return ops.where(whole, y, ops.full_like(y, -math.huge))
    end
    d.logpmf = method(name .. ".logpmf", family, logpmf, same)
    d.pmf = method(name .. ".pmf", family, logpmf, function(y) return ops.exp(y) end)
  else
    d.logpdf = method(name .. ".logpdf", family, family.logpdf, function(y, _, scale) return y - ops.log(scale) end)
    d.pdf = method(name .. ".pdf", family, family.logpdf, function(y, _, scale) return ops.exp(y) / scale end)
  end
  d.cdf = method(name .. ".cdf", family, family.cdf, same)
  d.sf = method(name .. ".sf", family, family.sf or family.cdf, family.sf and same or function(y) return 1.0 - y end)
  d.logcdf = method(name .. ".logcdf", family, family.logcdf or family.cdf, family.logcdf and same or function(y) return ops.log(y) end)
  if family.ppf then
    d.ppf = method(name .. ".ppf", family, family.ppf, function(y, loc, scale) return y * scale + loc end, true)
  end
  M[name] = setmetatable({}, {
    __index = d, _head = "ms.scipy.stats." .. name,
    _doc = ("The distribution %s with scipy's parameters: %s, cdf, sf, logcdf%s of the value, the shape parameters (%d), loc and "
      .. "scale.\n\n"):format(name, family.discrete and "pmf, logpmf" or "pdf, logpdf", family.ppf and ", ppf" or "", family.shapes or 0)
      .. ("  > type(ms.scipy.stats.%s.cdf)\n  function"):format(name),
  })
end

return M
