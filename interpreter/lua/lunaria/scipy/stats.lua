-- ms.scipy.stats: statistics of samples, and distributions as tables of functions: ms.scipy.stats.norm.pdf(x, loc, scale).
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local shared = require "lunaria.probability.special"

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
---     > ms.scipy.stats.zscore({ 1.0, 3.0 }):tolist()[2] --> 1.0
function M.zscore(a, axis, ddof)
  axis, ddof = arrays.named("scipy.stats.zscore", { "axis", "ddof" }, axis, ddof)
  local x, off, _, k = moments("zscore", a, axis)
  local n = x.shape[k + 1]
  return off / ops.sqrt(ops.reduce_sum(off * off, k, true) / (n - (ddof or 0) + 0.0))
end

--- Skewness along an axis (0): the third moment in units of the standard deviation.
---     > ms.scipy.stats.skew({ 1.0, 2.0, 3.0 }):item() --> 0.0
function M.skew(a, axis)
  axis = arrays.named("scipy.stats.skew", { "axis" }, axis)
  local _, off, variance, k = moments("skew", a, axis)
  return ops.mean(off * off * off, k) / (variance * ops.sqrt(variance))
end

--- Kurtosis along an axis (0): the fourth moment in units of the variance, less 3 unless fisher is false.
---     > ms.scipy.stats.kurtosis({ 1.0, 3.0 }):item() --> -2.0
function M.kurtosis(a, axis, fisher)
  axis, fisher = arrays.named("scipy.stats.kurtosis", { "axis", "fisher" }, axis, fisher)
  local _, off, variance, k = moments("kurtosis", a, axis)
  local y = ops.mean(ops.square(off * off), k) / (variance * variance)
  return fisher == false and y or y - 3.0
end

--- Standard error of the mean along an axis (0).
---     > ms.scipy.stats.sem({ 1.0, 3.0 }):item() --> 1.0
function M.sem(a, axis, ddof)
  axis, ddof = arrays.named("scipy.stats.sem", { "axis", "ddof" }, axis, ddof)
  local x, off, _, k = moments("sem", a, axis)
  local n = x.shape[k + 1]
  return ops.sqrt(ops.reduce_sum(off * off, k) / (n - (ddof or 1) + 0.0) / (n + 0.0))
end

--- Pearson's correlation coefficient of two samples.
---     > ms.scipy.stats.pearsonr({ 1.0, 2.0, 4.0 }, { 2.0, 4.0, 8.0 }):item() > 0.999 --> true
function M.pearsonr(x, y)
  local a, b = arrays.pair("scipy.stats.pearsonr", float("pearsonr", x, "x"), float("pearsonr", y, "y"))
  a, b = a - ops.mean(a), b - ops.mean(b)
  return ops.clamp(ops.reduce_sum(a * b) / ops.sqrt(ops.reduce_sum(a * a) * ops.reduce_sum(b * b)), -1.0, 1.0)
end

--- The rank of each element, from 1 on, of all in a row. method: what equal elements get: "average", "min", "max" or "ordinal".
---     > ms.scipy.stats.rankdata({ 10.0, 30.0, 20.0 }):tolist()[2] --> 3.0
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
---     > ms.scipy.stats.spearmanr({ 1.0, 2.0, 4.0 }, { 1.0, 9.0, 10.0 }):item() > 0.999 --> true
function M.spearmanr(a, b) return M.pearsonr(M.rankdata(a), M.rankdata(b)) end

--- The straight line y = slope x + intercept with the least squares: slope, intercept and correlation coefficient, three results.
---     > (ms.scipy.stats.linregress({ 0.0, 1.0, 2.0 }, { 1.0, 3.0, 5.0 })):item() --> 2.0
function M.linregress(x, y)
  local a, b = arrays.pair("scipy.stats.linregress", float("linregress", x, "x"), float("linregress", y, "y"))
  local mx, my = ops.mean(a), ops.mean(b)
  local slope = ops.reduce_sum((a - mx) * (b - my)) / ops.reduce_sum((a - mx) * (a - mx))
  return slope, my - slope * mx, M.pearsonr(a, b)
end

--- The t statistic of the mean of a sample against popmean, along an axis (0), and the two-sided probability: two results.
---     > (ms.scipy.stats.ttest_1samp({ 1.0, 3.0 }, 2.0)):item() --> 0.0
function M.ttest_1samp(a, popmean, axis)
  axis = arrays.named("scipy.stats.ttest_1samp", { "axis" }, axis)
  local x, _, _, k = moments("ttest_1samp", a, axis)
  local t = (ops.mean(x, k) - popmean) / M.sem(x, k)
  local degrees = x.shape[k + 1] - 1.0
  local half = ops.full_like(t, 0.5)
  return t, ops.betainc(half * degrees, half, degrees / (degrees + t * t))
end

-- Distributions: the formulas that ms.probability has, of the value z = (x - loc) / scale and the parameters before loc (shapes: how
-- many). discrete: on integers, without scale, from 0 to `most`. wide: computed in float64, as formulas are differences of large numbers.
local chi2 = {}
for name, formula in pairs(shared.gamma) do
  chi2[name] = function(z, df)
    local y = formula(0.5 * z, 0.5 * df)
    return name == "log_prob" and y - math.log(2) or y
  end
end
local uniform = {}
for name, formula in pairs(shared.uniform) do
  uniform[name] = name == "quantile" and formula or function(z) return formula(z, 1.0 - z) end
end

local families = {
  norm = { of = shared.normal }, uniform = { of = uniform }, expon = { of = shared.exponential }, laplace = { of = shared.laplace },
  logistic = { of = shared.logistic }, cauchy = { of = shared.cauchy },
  gamma = { of = shared.gamma, shapes = 1, wide = true }, chi2 = { of = chi2, shapes = 1, wide = true },
  beta = { of = shared.beta, shapes = 2, wide = true }, t = { of = shared.student, shapes = 1, wide = true },
  poisson = { of = shared.poisson, shapes = 1, discrete = true, wide = true },
  bernoulli = { of = shared.bernoulli, shapes = 1, discrete = true, most = function() return 1.0 end },
  binom = { of = shared.binomial, shapes = 2, discrete = true, wide = true, most = function(n) return n end },
}

local function bring(where, ...)
  local values = table.pack(...)
  local list, dtype, plain = arrays.together(where, { "x" }, values, values.n)
  local kind = arrays.kind(dtype)
  if kind ~= "f" then dtype = plain and ms.float32 or ms.float64 end
  return list, dtype
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
    local list, dtype = bring(where, table.unpack(values, 1, shapes + 3))
    local half = dtype == ms.float16 or dtype == ms.bfloat16
    local computed = family.wide and ms.float64 or half and ms.float32 or dtype
    for i = 1, shapes + 3 do list[i] = arrays.cast(arrays.cast(list[i], dtype), computed) end
    local loc, scale = list[shapes + 2], list[shapes + 3]
    local z = from_probability and list[1] or (list[1] - loc) / scale
    -- All broadcast against each other.
    for i = 2, shapes + 1 do list[i] = list[i] + ops.zeros_like(z) end
    if shapes > 0 then z = z + ops.zeros_like(list[2]) end
    return arrays.cast(after(f(z, table.unpack(list, 2, shapes + 1)), loc, scale), dtype)
  end
end

local function same(y) return y end

-- Names of scipy, and those of the formulas and of their logarithms.
local names = {
  cdf = { "cdf", "log_cdf" }, sf = { "survival_function", "log_survival" }, logcdf = { "log_cdf" }, logsf = { "log_survival" },
}

for name, family in pairs(families) do
  local d, of = {}, family.of
  if family.discrete then
    local function logpmf(k, ...)
      local whole = ops.logical_and(ops.equal(k, ops.floor(k)), ops.greater_equal(k, 0.0))
      if family.most then whole = ops.logical_and(whole, ops.less_equal(k, family.most(...))) end
      local y = of.log_prob(ops.where(whole, k, ops.zeros_like(k)), ...)
      return ops.where(whole, y, ops.full_like(y, -math.huge))
    end
    d.logpmf = method(name .. ".logpmf", family, logpmf, same)
    d.pmf = method(name .. ".pmf", family, logpmf, function(y) return ops.exp(y) end)
  else
    d.logpdf = method(name .. ".logpdf", family, of.log_prob, function(y, _, scale) return y - ops.log(scale) end)
    d.pdf = method(name .. ".pdf", family, of.log_prob, function(y, _, scale) return ops.exp(y) / scale end)
  end
  for key, formulas in pairs(names) do
    local own = of[formulas[1]]
    d[key] = method(name .. "." .. key, family, own or of[formulas[2]], own and same or function(y) return ops.exp(y) end)
  end
  if of.quantile then
    d.ppf = method(name .. ".ppf", family, of.quantile, function(y, loc, scale) return y * scale + loc end, true)
  end
  M[name] = setmetatable({}, {
    __index = d, _head = "ms.scipy.stats." .. name,
    _doc = ("The distribution %s with scipy's parameters: %s, cdf, sf, logcdf, logsf%s of the value, the shape parameters (%d), loc and "
      .. "scale.\n\n"):format(name, family.discrete and "pmf, logpmf" or "pdf, logpdf", of.quantile and ", ppf" or "", family.shapes or 0)
      .. ("  > type(ms.scipy.stats.%s.cdf)\n  function"):format(name),
  })
end

return M
