-- Special functions and distributions against mpmath (tests/data/special/make.py): 200 points each, in float32 and float64, eager and
-- compiled. What is allowed is 4 units in the last place, or what `bounds` and the documentation of the function say.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops
local special, stats, d = ms.scipy.special, ms.scipy.stats, ms.probability.distribution

local functions = ms.load "tests/data/special/functions.npz"
local tables = ms.load "tests/data/special/distributions.npz"
local singles = 140 -- so many points of a function are numbers of float32

-- One unit in the last place of a number with so many bits, as least of the smallest one.
local function ulp(y, bits, least)
  local exponent = (string.unpack("<i8", string.pack("<d", y)) >> 52 & 0x7ff) - 1023
  return 2.0 ^ math.max(exponent - bits + 1, least)
end
local formats = {
  [ms.float64] = { bits = 53, least = -1074, most = math.huge }, [ms.float32] = { bits = 24, least = -149, most = 3.4028235677973366e38 },
  [ms.float16] = { bits = 11, least = -24, most = 65520 }, [ms.bfloat16] = { bits = 8, least = -133, most = 3.3961775e38 },
}
local function format_of(dtype)
  for key, f in pairs(formats) do
    if key == dtype then return f end
  end
end

-- Lists of numbers: got[i] is within bound(i) units of wanted[i]; NaN among those wanted is no answer.
local function close(name, got, wanted, dtype, bound, show)
  local f = format_of(dtype)
  assert(#got == #wanted, ("%s: %d values instead of %d"):format(name, #got, #wanted))
  local worst, where = 0, nil
  for i, y in ipairs(wanted) do
    if y == y and got[i] ~= y then
      local g = got[i]
      local units = math.abs(g - y) / ulp(y, f.bits, f.least)
      -- Beyond the largest number both are infinite.
      if math.abs(y) >= f.most and math.abs(g) == math.huge and (g > 0) == (y > 0) then units = 0 end
      if g ~= g or math.abs(g) == math.huge and units ~= 0 then units = math.huge end
      units = units / bound(i, y)
      if units > worst then worst, where = units, i end
    end
  end
  if os.getenv "LUNARIA_SHOW_UNITS" then print(("%-24s %-9s %8.3g of the bound"):format(name, tostring(dtype), worst)) end
  if worst > 1 then
    error(("%s in %s: %.17g instead of %.17g at %s, %.3g times the bound"):format(name, tostring(dtype), got[where], wanted[where],
      show(where), worst), 0)
  end
end

local function columns(x, rows, dtype)
  local list = {}
  for i = 1, x.shape[2] do list[i] = ops.narrow(ops.narrow(x, 1, i - 1, 1):reshape { -1 }, 0, 0, rows):astype(dtype) end
  return list
end

local function logs(_, y) return 8 * math.max(1, math.abs(math.log(math.abs(y)))) end
-- Next to a zero the error is that of the terms that cancel there.
local function beside(size)
  return function(_, y, x, dtype)
    local f = format_of(dtype)
    return 4 * math.max(1, size(x) / math.abs(y) * (y == 0 and 1 or ulp(1, f.bits, f.least) * math.abs(y) / ulp(y, f.bits, f.least)))
  end
end
local function wave(x) return math.sqrt(2 / (math.pi * math.max(math.abs(x[1]), 0.5))) end
local function log_gamma(x) return ops.lgamma(ms.tensor(x, ms.float64)):item() end

-- In float64; in float32 4 units are the bound of all but those that have `single`.
local bounds = {
  digamma = beside(function(x) return x[1] < 0 and math.abs(math.pi / math.tan(math.pi * x[1])) + math.log(2 - x[1]) or 0 end),
  tgamma = function() return 6 end, polygamma = function() return 8 end, comb = logs, binom = function(_, y) return 8 * logs(_, y) end,
  beta = function(_, y, x) return x[1] + x[2] < 20 and 64 or 8 * logs(_, y) end, factorial = function() return 6 end,
  bessel_j0 = beside(wave), bessel_j1 = beside(wave), bessel_y0 = beside(wave), bessel_y1 = beside(wave),
  igamma = logs, igammac = logs, log_igamma = logs, log_igammac = logs,
  betaln = beside(function(x) return math.max(math.abs(log_gamma(x[1])), math.abs(log_gamma(x[2]))) end),
  multigammaln = beside(function(x) return math.max(1, math.abs(log_gamma(x[1]))) end),
  kl_div = beside(function(x) return math.max(x[1] * math.abs(math.log(x[1] / x[2])), x[1], x[2]) end),
}
local function shape_bound(_, y, x)
  return 32 * math.max(x[1], x[2], 1 / x[1], 1 / x[2], math.abs(math.log(math.abs(y))))
end
bounds.betainc, bounds.log_betainc, bounds.log_betaincc = shape_bound, shape_bound, shape_bound
-- Compositions that are made in the dtype of their operands.
local single = { digamma = true, kl_div = true, multigammaln = true }

-- What is computed: the operator of the name, and the function of ms.scipy.special where it has another.
local calls = {
  kl_div = special.kl_div,
  log_igammac = function(a, x) return ops.log_igamma(a, x, { upper = true }) end,
  log_betaincc = function(a, b, x) return ops.log_betainc(a, b, x, { upper = true }) end,
  multigammaln = function(a) return special.multigammaln(a, 2) end,
  polygamma = function(n, x)
    local result = ops.zeros_like(x)
    for _, order in ipairs { 1, 2, 3, 7, 20 } do result = ops.where(ops.equal(n, order + 0.0), ops.polygamma(order, x), result) end
    return result
  end,
}
local scipy = {
  gammaln = "lgamma", loggamma = "lgamma", psi = "digamma", gamma = "tgamma", logit = "log_odds", expit = "sigmoid",
  log_expit = "logsigmoid", gammainc = "igamma", gammaincc = "igammac", betaincc = "log_betaincc",
}
for _, order in ipairs { "j0", "j1", "y0", "y1", "i0", "i1", "i0e", "i1e", "k0", "k1", "k0e", "k1e" } do
  scipy[order] = "bessel_" .. order
end

local names = {}
for key in pairs(functions) do
  local name = key:match "^(.+)%.x$"
  if name then names[#names + 1] = name end
end
table.sort(names)

-- Tables of the library raise errors for what they do not have.
local function field(of, name)
  local known, value = pcall(function() return of[name] end)
  return known and value or nil
end
local function call_of(name) return calls[name] or field(ops, name) or special[name] end

for _, name in ipairs(names) do
  t.test(name, function()
    local f, rows = call_of(name), functions[name .. ".x"]
    local x, y = rows:tolist(), functions[name .. ".y"]:tolist()
    for _, dtype in ipairs { ms.float32, ms.float64 } do
      local count = dtype == ms.float32 and singles or #y
      local operands = columns(rows, count, dtype)
      local got = f(table.unpack(operands))
      assert(tostring(got.dtype) == tostring(dtype))
      local bound = (dtype == ms.float64 or single[name]) and bounds[name] or function() return 4 end
      close(name, got:tolist(), table.move(y, 1, count, 1, {}), dtype, function(i, v) return bound(i, v, x[i], dtype) end,
        function(i) return table.concat(x[i], ", ") end)
    end
    -- Halves are rounded once.
    for _, dtype in ipairs { ms.float16, ms.bfloat16 } do
      local operands, wide = columns(rows, singles, dtype), {}
      for i, operand in ipairs(operands) do wide[i] = operand:astype(ms.float64) end
      local wanted = f(table.unpack(wide)):tolist()
      if not calls[name] and field(ops, name) then
        close(name, f(table.unpack(operands)):astype(ms.float64):tolist(), wanted, dtype, function() return 1 end,
          function(i) return tostring(wide[1][i - 1]:item()) end)
      end
    end
  end)
end

t.test("compiled functions give the bits of eager ones", function()
  for _, dtype in ipairs { ms.float32, ms.float64 } do
    local given = {}
    for i, name in ipairs(names) do given[i] = columns(functions[name .. ".x"], singles, dtype) end
    -- Several functions to a graph, as each takes its time to be compiled.
    for first = 1, #names, 12 do
      local last = math.min(first + 11, #names)
      local function all(list)
        local results = {}
        for i = first, last do results[#results + 1] = call_of(names[i])(table.unpack(list[i - first + 1])) end
        return results
      end
      local list = table.move(given, first, last, 1, {})
      local fast = ms.jit(all)
      fast(list)
      local eager, compiled = all(list), fast(list)
      assert(tonumber(tostring(ms.jit_report(fast)):match "(%d+) compiled") > 0, names[first])
      for i, y in ipairs(eager) do
        local a, b = y:tolist(), compiled[i]:tolist()
        for k, v in ipairs(a) do
          assert(v == b[k] or v ~= v and b[k] ~= b[k], ("%s: %.17g eager, %.17g compiled"):format(names[first + i - 1], v, b[k]))
        end
      end
    end
  end
end)

t.test("functions of ms.scipy.special are those of the tables", function()
  local elsewhere = { softmax = true, log_softmax = true, logsumexp = true } -- reductions
  local known = {}
  for _, name in ipairs(names) do known[name] = true end
  for name, f in pairs(special) do
    local from = scipy[name] or name
    assert(known[from] or elsewhere[name], name .. " has no table")
    if scipy[name] then
      local operands = columns(functions[from .. ".x"], 3, ms.float64)
      local wanted = call_of(from)(table.unpack(operands))
      if name == "betaincc" then wanted = ops.exp(wanted) end
      t.near(f(table.unpack(operands)):tolist()[3], wanted:tolist()[3], 1e-9)
    end
  end
  -- Operators of this family.
  for name in pairs(ops) do
    for _, part in ipairs { "^bessel_", "gamma", "^erf", "ndtr", "^beta", "^log_beta", "zeta", "^sinc?h?$", "^cosh?$", "^tanh?$", "^log1p$",
      "^expm1$", "^xlog" } do
      if name:find(part) and not name:find "_slope$" and not name:find "random" then
        -- ops.gamma draws numbers.
        local own = ({ i0 = "bessel_i0", mvlgamma = "multigammaln", erfinv_ = "erfinv" })[name] or name
        assert(known[own] or name == "gamma", "ops." .. name .. " has no table")
      end
    end
  end
end)

-- Distributions.
local families = {}
for key in pairs(tables) do
  local name = key:match "^(.+)%.x$"
  if name then families[#families + 1] = name end
end
table.sort(families)

-- With loc and scale behind the value as scipy has them.
local in_scipy = {
  Normal = "norm", Laplace = "laplace", Logistic = "logistic", Cauchy = "cauchy", Bernoulli = "bernoulli", Poisson = "poisson",
  Beta = "beta", Binomial = "binom",
  StudentT = function(x, df, mean, sd) return "t", x, df, mean, sd end,
  Gamma = function(x, a, rate) return "gamma", x, a, 0.0, 1.0 / rate end,
  Exponential = function(x, rate) return "expon", x, 0.0, 1.0 / rate end,
  Uniform = function(x, low, high) return "uniform", x, low, high - low end,
}
local formulas = { "log_prob", "log_cdf", "log_survival" }
local in_stats = { log_prob = "logpdf", log_cdf = "logcdf", log_survival = "logsf", prob = "pdf", cdf = "cdf", survival_function = "sf" }

local function of_stats(name, key)
  local how = in_scipy[name]
  return function(x, ...)
    local family, list = how, { x, ... }
    if type(how) == "function" then
      list = table.pack(how(x, ...))
      family = table.remove(list, 1)
    end
    local f = field(stats[family], in_stats[key]) or stats[family][(in_stats[key]:gsub("pdf", "pmf"))]
    return f(table.unpack(list))
  end
end
local function of_class(name, key)
  return function(x, ...) return d[name](nil, { dtype = x.dtype })[key](d[name](nil, { dtype = x.dtype }), x, ...) end
end

-- Of a composition: 8 units of the result and of the largest term of its sum, and what the rounding of z = (x - place) / scale comes to,
-- which is known by the slopes. In float32 the families that are computed in float64 have only to be rounded.
local wide = { Gamma = true, Beta = true, StudentT = true, Poisson = true, Binomial = true }
local function slack(name, dtype, x, y, slopes)
  local sum, condition = 0, 0
  for i = 2, #x do sum = sum + math.abs(x[i]) end
  local largest = 1 + math.abs(math.log(math.abs(x[#x]) + 1e-300))
  if wide[name] and dtype == ms.float32 then largest = 0 end
  if wide[name] and dtype == ms.float64 then
    largest = (1 + sum) * (1 + math.log(1 + sum) + math.abs(math.log(math.abs(x[1]) + 1e-300)))
    if name == "Gamma" or name == "Poisson" then
      largest = largest + math.abs(x[1]) * (math.abs(x[#x]) + math.log(1 + math.abs(x[1])))
    end
  end
  for i, slope in ipairs(slopes) do
    if slope == slope and math.abs(slope) < 1e37 then condition = condition + math.abs(slope * x[i]) end
  end
  return 8 * math.max(1, (largest + condition) / math.max(math.abs(y), 1e-300))
end
for _, name in ipairs(families) do
  local rows, y, g = tables[name .. ".x"], tables[name .. ".y"]:tolist(), tables[name .. ".g"]:tolist()
  local x = rows:tolist()
  local function show(i) return "(" .. table.concat(x[i], ", ") .. ")" end
  local makers = {}
  if field(d, name) then makers[#makers + 1] = of_class end
  if in_scipy[name] then makers[#makers + 1] = of_stats end

  t.test(name .. ": logarithms, and what they are logarithms of", function()
    for _, maker in ipairs(makers) do
      for _, dtype in ipairs { ms.float32, ms.float64 } do
        local operands = columns(rows, #x, dtype)
        for k, key in ipairs(formulas) do
          local wanted = {}
          for i, three in ipairs(y) do wanted[i] = three[k] end
          close(name .. ":" .. key, maker(name, key)(table.unpack(operands)):tolist(), wanted, dtype, function(i, v)
            return slack(name, dtype, x[i], v, g[i][k])
          end, show)
          local other = ({ "prob", "cdf", "survival_function" })[k]
          local exact = {}
          for i, v in ipairs(wanted) do exact[i] = math.exp(v) end
          close(name .. ":" .. other, maker(name, other)(table.unpack(operands)):tolist(), exact, dtype, function(i)
            local size = math.abs(wanted[i])
            return size < math.huge and math.max(8, 2 * size * slack(name, dtype, x[i], wanted[i], g[i][k])) or 8
          end, show)
        end
      end
    end
  end)

  t.test(name .. ": slopes", function()
    for _, maker in ipairs(makers) do
      for _, dtype in ipairs { ms.float32, ms.float64 } do
        local operands = columns(rows, #x, dtype)
        for k, key in ipairs(formulas) do
          for i = 1, #operands do
            local wanted, any = {}, false
            for row, three in ipairs(g) do
              wanted[row] = three[k][i]
              any = any or wanted[row] == wanted[row]
            end
            if any then
              local slope = ms.grad(function(...) return ops.sum(maker(name, key)(...)) end, i - 1)
              local got = slope(table.unpack(operands)):tolist()
              for row, w in ipairs(wanted) do
                local tiny = dtype == ms.float32 and 1e-37 or 1e-300
                if w == w and math.abs(w) < 1e37 and not (math.abs(got[row] - w) <= 2e-5 * math.abs(w) + tiny + 1e-6) then
                  error(("%s: slope %d of %s is %.9g instead of %.9g at %s in %s"):format(name, i, key, got[row], w, show(row),
                    tostring(dtype)), 0)
                end
              end
            end
          end
        end
      end
    end
  end)
end

t.test("halves are computed in float32 and rounded once", function()
  for name in pairs(in_scipy) do
    if field(d, name) then
      local rows = ops.narrow(tables[name .. ".x"], 0, 0, 60)
      for _, dtype in ipairs { ms.float16, ms.bfloat16 } do
        local operands = columns(rows, 60, dtype)
        local wide_ones = {}
        for i, operand in ipairs(operands) do wide_ones[i] = operand:astype(ms.float32) end
        for _, key in ipairs(formulas) do
          local got, wanted = of_class(name, key)(table.unpack(operands)), of_class(name, key)(table.unpack(wide_ones))
          close(name .. ":" .. key, got:astype(ms.float64):tolist(), wanted:astype(ms.float64):tolist(), dtype, function() return 1 end,
            function(i) return tostring(i) end)
        end
      end
    end
  end
end)

t.test("every distribution has a table", function()
  local elsewhere = { Distribution = true, TransformedDistribution = true, Categorical = true }
  for name in pairs(d) do
    if not name:find "^_" then assert(elsewhere[name] or tables[name .. ".x"], name .. " has no table") end
  end
end)

t.test("quantiles turn the distribution functions round", function()
  local p = ms.tensor({ 1e-300, 1e-17, 1e-5, 0.1, 0.25, 0.49999, 0.5, 0.7, 0.99999 }, ms.float64)
  for _, name in ipairs { "norm", "laplace", "logistic", "cauchy", "expon", "uniform" } do
    local back = stats[name].cdf(stats[name].ppf(p)):tolist()
    for i, v in ipairs(p:tolist()) do
      local room = 1e-13 * math.max(1, -math.log(v))
      assert(math.abs(back[i] - v) <= room * v, ("%s: %.17g became %.17g"):format(name, v, back[i]))
    end
  end
end)

t.test("special points", function()
  local function value(x) return x:item() end
  t.equal(value(d.Beta(1.0, 1.0):log_prob(0.0)), 0.0)
  t.equal(value(d.Beta(2.0, 1.0):prob(1.0)), 2.0)
  t.equal(value(d.Beta(1.0, 1.0):log_prob(1.0)), 0.0)
  t.near(value(d.Normal(0.0, 1.0):log_cdf(-20.0)), -203.917155, 1e-4)
  t.near(value(ms.grad(function(x) return d.Normal(0.0, 1.0):log_cdf(x) end)(ms.tensor(-20.0))), 20.049753, 1e-4)
  local probs = ms.tensor({ 1e-12, 0.5, 0.5 }, ms.float64)
  local one = d.Categorical(probs)
  t.near(value(one:survival_function(1.0)), 0.5, 1e-12)
  t.near(value(one:log_cdf(0.0)), math.log(1e-12), 1e-9)
  assert(ms.amp.all_finite(ms.grad(function(q) return one:log_cdf(ms.tensor(1.0, ms.float64), q) end)(probs)):item())
end)

t.test("functions that grow beyond all numbers become infinite, and are numbers up to there", function()
  for _, case in ipairs { { ms.float64, 700, 720, 709.78 }, { ms.float32, 85, 95, 88.72 } } do
    local dtype, from, to, edge = table.unpack(case)
    local x = ops.linspace(from, to, 20001):astype(dtype)
    for _, name in ipairs { "exp", "expm1", "sinh", "cosh", "exp2" } do
      local given = name == "exp2" and x / math.log(2) or x
      for _, f in ipairs { ops[name], ms.jit(ops[name]) } do
        local y = f(given)
        assert(not ops.any(ops.isnan(y)):item(), name .. " is no number")
        t.equal(ops.all(ops.isfinite(y[{ ms.slice(0, 1000) }])):item(), true)
        t.equal(y[-1]:item(), math.huge)
      end
    end
    local finite = ops.isfinite(ops.expm1(x))
    -- Up to the rounding of the edge.
    t.equal(ops.sum(ops.not_equal(finite, ops.less(x, edge)):astype(ms.int32)):item() < 20, true)
  end
end)

t.finish()
