-- Judges the random operators by a file of statistical contracts:
--   lunaria tests/conformance/random.lua FILE.json [--prio P0]
-- Moments, ranges and the Kolmogorov-Smirnov distance to the law, for several seeds; reproducibility; the rules at the end
-- of the file. The last line is "N passed, N failed".
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"

local path, options = support.options("usage: lunaria random.lua FILE.json [--prio P0]", { prio = "" })
local set = support.read_json(path)
local has_prio = support.filter(options.prio)
local o = ms.ops
local passed, failed = 0, 0

local function check(name, f)
  local ok, wrong = pcall(f)
  if ok and not wrong then
    passed = passed + 1
  else
    failed = failed + 1
    print("FAIL " .. name .. ": " .. support.headline(wrong))
  end
end

-- Continuous laws by their distribution function; the arguments are those of scipy.stats.
local laws = {}
function laws.uniform(x, start, width) return math.max(0, math.min(1, (x - start) / width)) end
-- Error function, Abramowitz and Stegun 7.1.26 refined by a series: 1e-7 is plenty for a distance of 1e-2.
local function erf(x)
  local sign = x < 0 and -1 or 1
  x = math.abs(x)
  local t = 1 / (1 + 0.3275911 * x)
  local poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
  return sign * (1 - poly * math.exp(-x * x))
end
function laws.norm(x, mean, deviation) return 0.5 * (1 + erf((x - mean) / deviation / math.sqrt(2))) end
function laws.laplace(x, mean, scale)
  local z = (x - mean) / scale
  return z < 0 and 0.5 * math.exp(z) or 1 - 0.5 * math.exp(-z)
end
function laws.expon(x, start, scale) return x < start and 0 or 1 - math.exp(-(x - start) / scale) end
-- Lower incomplete gamma function by its series, divided by gamma(a); terms fall off once n > x.
function laws.gamma(x, a, start, scale)
  local z = (x - start) / scale
  if z <= 0 then return 0 end
  local term = 1 / a
  local sum, n = term, a
  while term > sum * 1e-12 do
    n = n + 1
    term = term * z / n
    sum = sum + term
  end
  -- ln gamma(a) by Stirling's series after moving a up.
  local shift, b = 0, a
  while b < 10 do
    shift = shift + math.log(b)
    b = b + 1
  end
  local ln_gamma = (b - 0.5) * math.log(b) - b + 0.5 * math.log(2 * math.pi) + 1 / (12 * b) - 1 / (360 * b ^ 3) - shift
  return math.min(1, sum * math.exp(a * math.log(z) - z - ln_gamma))
end

-- "zeros[20000]": a tensor.
local function argument(value)
  local fill, size = tostring(value):match("^(%a+)%[(%d+)%]$")
  if not fill then return value end
  return o[fill]({ tonumber(size) }, ms.float32)
end

local function draw(case)
  local named = {}
  for name, value in pairs(case.attrs) do
    if value ~= ms.json.null then named[name] = argument(value) end
  end
  return (o[case.op](named))
end

local function moments(case, list)
  local n, sum = #list, 0
  for i = 1, n do sum = sum + list[i] end
  local mean, squares = sum / n, 0
  for i = 1, n do squares = squares + (list[i] - mean) ^ 2 end
  local variance = squares / (n - 1)
  if mean < case.mean[1] or mean > case.mean[2] then
    return ("mean %g is not in [%g, %g]"):format(mean, case.mean[1], case.mean[2])
  end
  if variance < case.var[1] or variance > case.var[2] then
    return ("variance %g is not in [%g, %g]"):format(variance, case.var[1], case.var[2])
  end
end

local function range(case, list)
  local low, high = case.min_ge, case.max_le
  for i = 1, #list do
    local x = list[i]
    if x ~= x or (low ~= ms.json.null and x < low) or (high ~= ms.json.null and x > high) then
      return ("value %g is outside of [%s, %s]"):format(x, tostring(low), tostring(high))
    end
    if case.integer and x ~= math.floor(x) then return ("value %g is no integer"):format(x) end
  end
end

local function distance(case, list)
  if case.ks == ms.json.null then return end
  local law = laws[case.ks.dist] or error("no law named " .. case.ks.dist)
  table.sort(list)
  local n, worst = #list, 0
  for i = 1, n do
    local p = law(list[i], table.unpack(case.ks.args))
    worst = math.max(worst, math.abs(p - (i - 1) / n), math.abs(p - i / n))
  end
  if worst > case.ks.max_stat then
    return ("distance to the %s law is %g, more than %g"):format(case.ks.dist, worst, case.ks.max_stat)
  end
end

local function same(a, b)
  local x, y = support.elements(a), support.elements(b)
  if #x ~= #y then return false end
  for i = 1, #x do
    if x[i] ~= y[i] then return false end
  end
  return true
end

local chosen = {}
for _, case in ipairs(set.cases) do
  if has_prio(case.priority) then chosen[#chosen + 1] = case end
end
for _, case in ipairs(chosen) do
  for _, seed in ipairs(set.seeds) do
    check(("%s, seed %d"):format(case.op, seed), function()
      ms.set_seed(seed)
      local x = draw(case)
      if x.size ~= case.n then return ("%d values, expected %d"):format(x.size, case.n) end
      local dtype = tostring(x.dtype):lower()
      if dtype ~= case.dtype then return "dtype " .. dtype .. ", expected " .. case.dtype end
      local list = support.elements(x)
      return moments(case, list) or range(case, list) or distance(case, list)
    end)
  end
  check(case.op .. " repeats after set_seed and differs without", function()
    ms.set_seed(5)
    local first, second = draw(case), draw(case)
    ms.set_seed(5)
    if not same(draw(case), first) then return "the same seed gave other numbers" end
    if same(first, second) then return "two calls gave the same numbers" end
  end)
  check(case.op .. " does not depend on the number of threads", function()
    local before = ms.get_num_threads()
    ms.set_seed(7)
    ms.set_num_threads(1)
    local one = draw(case)
    ms.set_seed(7)
    ms.set_num_threads(3)
    local three = draw(case)
    ms.set_num_threads(before)
    if not same(one, three) then return "three threads gave other numbers than one" end
  end)
end

check("randperm is a permutation that moves things about", function()
  local n = 2000
  ms.set_seed(1)
  local list, seen, moved = support.elements(o.randperm(n)), {}, 0
  for i, x in ipairs(list) do
    if seen[x] or x < 0 or x >= n then return "it is not a permutation" end
    seen[x] = true
    moved = moved + math.abs(x - (i - 1))
  end
  -- |i - p(i)| has mean n/3 and variance about n^2/18.
  local mean, deviation = moved / n, n / math.sqrt(18) / math.sqrt(n)
  if math.abs(mean - n / 3) > 6 * deviation then return "mean displacement is " .. mean end
end)

check("shuffle moves whole rows", function()
  local rows = {}
  for i = 1, 100 do rows[i] = { i, -i } end
  local seen, moved = {}, 0
  for i, row in ipairs(o.shuffle(ms.tensor(rows)):tolist()) do
    if row[1] ~= -row[2] or seen[row[1]] then return "rows were torn apart" end
    seen[row[1]] = true
    if row[1] ~= i then moved = moved + 1 end
  end
  if moved < 50 then return "only " .. moved .. " of 100 rows moved" end
end)

check("multinomial draws with the given probabilities", function()
  local n, p = 20000, { 0.1, 0.2, 0.7 }
  local counts = { [0] = 0, 0, 0 }
  for _, x in ipairs(support.elements(o.multinomial(ms.tensor(p), n, true))) do counts[x] = counts[x] + 1 end
  for i = 1, 3 do
    local deviation = math.sqrt(p[i] * (1 - p[i]) / n)
    if math.abs(counts[i - 1] / n - p[i]) > 6 * deviation then
      return ("class %d has frequency %g, expected %g"):format(i - 1, counts[i - 1] / n, p[i])
    end
  end
end)

check("dropout scales what it keeps", function()
  local p = 0.4
  for _, x in ipairs(support.elements(o.dropout(o.ones({ 1000 }, ms.float32), p, true))) do
    if x ~= 0 and math.abs(x - 1 / (1 - p)) > 1e-6 then return "a kept value is " .. x end
  end
end)

print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
