-- ms.armour.privacy.statistics: figures of data with noise that hides every single row. Data sets are neighbours when one has a row more.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local released = require "lunaria.armour.privacy.released"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local statistics = {}

local function constant(x) return ms.tensor({ x }, f64) end

-- A vector of one element as a number.
local function plain(values, x) return x.ndim == 1 and values:item() or values end

--- How many rows there are, an integer. x: a tensor (n, ...), or of booleans (n,): those that are true. Options: epsilon, delta (0: Laplace
--- noise), seed (none: secure noise), accountant (whose history the answer enters).
---     > n = ms.armour.privacy.statistics.count(ms.ones { 500 }, { epsilon = 2.0, seed = 1 })
---     > math.abs(n - 500) < 20 --> true
function statistics.count(x, options)
  local where = "count"
  local o = released.budget(where, options, released.options(), "{ epsilon = 1.0 }")
  if not ms.is_tensor(x) or x.ndim == 0 then fail(where, "x must be a tensor (n, ...), got " .. describe(x)) end
  -- A row of several booleans would add more than the noise hides.
  if x.dtype == ms.bool_ and x.ndim ~= 1 then fail(where, "booleans must be a tensor (n,), got " .. describe(x)) end
  local n = x.dtype == ms.bool_ and ops.sum(x:astype(f64)):item() or x.shape[1] + 0.0
  o.grid = 1.0
  return math.max(0, math.tointeger(released.noisy(where, constant(n), 1.0, 1.0, o):item()))
end

-- Sums of columns of values that were moved to the middle of the bounds, so that a row adds at most half of their distance.
local function noisy_sum(where, x, lo, hi, center, o)
  local columns = x.ndim == 2 and x.shape[2] or 1
  local values = ops.sum(ops.clamp(x, lo, hi) - center, 0):reshape { columns }
  local most = math.max(math.abs(lo - center), math.abs(hi - center))
  return released.noisy(where, values, columns * most, math.sqrt(columns) * most, o)
end

--- The sum of values, which are first moved into bounds. x: a tensor (n,), which gives a number, or (n, columns), which gives a tensor
--- (columns,) for epsilon in all. Options: epsilon, bounds = { lo, hi }, delta (0: Laplace noise), seed (none: secure noise), accountant.
---     > s = ms.armour.privacy.statistics.sum(ms.ones { 1000 }, { epsilon = 1.0, bounds = { 0, 1 }, seed = 1 })
---     > math.abs(s - 1000) < 20 --> true
function statistics.sum(x, options)
  local where = "sum"
  local o = released.budget(where, options, released.options { bounds = "table" }, "{ epsilon = 1.0, bounds = { 0, 1 } }")
  local lo, hi = released.bounds(where, o.bounds)
  x = released.values(where, x, true)
  return plain(noisy_sum(where, x, lo, hi, 0.0, o), x)
end

--- The mean of values, which are first moved into bounds. x: a tensor (n,), which gives a number, or (n, columns), which gives a tensor.
--- Half of epsilon goes to the sum of the distances from the middle of the bounds, half to the number of rows; with n_is_public = true,
--- where n is known and neighbours differ in one row's content, all goes to the sum. Options: epsilon, bounds, n_is_public, delta (0),
--- seed, accountant.
---     > m = ms.armour.privacy.statistics.mean(ms.ones { 1000 } * 0.25, { epsilon = 1.0, bounds = { 0, 1 }, seed = 1 })
---     > math.abs(m - 0.25) < 0.02 --> true
function statistics.mean(x, options)
  local where = "mean"
  local known = released.options { bounds = "table", n_is_public = "boolean" }
  local o = released.budget(where, options, known, "{ epsilon = 1.0, bounds = { 0, 1 } }")
  local lo, hi = released.bounds(where, o.bounds)
  x = released.values(where, x, true)
  o.uniform = released.uniform(where, o.seed)
  local center, n = 0.5 * (lo + hi), x.shape[1]
  local sums
  if o.n_is_public then
    if n == 0 then fail(where, "there are no rows, and their number is public", "leave n_is_public out") end
    -- A changed row moves the sum by up to twice as much as one that is added.
    local columns = x.ndim == 2 and x.shape[2] or 1
    local values = ops.sum(ops.clamp(x, lo, hi) - center, 0):reshape { columns }
    sums = released.noisy(where, values, columns * (hi - lo), math.sqrt(columns) * (hi - lo), o)
  else
    o.epsilon = o.epsilon / 2
    o.delta = o.delta and o.delta / 2
    sums = noisy_sum(where, x, lo, hi, center, o)
    n = released.noisy(where, constant(n + 0.0), 1.0, 1.0, o):item()
  end
  return plain(ops.clamp(center + sums / math.max(1.0, n), lo, hi), x)
end

--- How many values lie in each interval [edges[i], edges[i + 1]), of the last one including its end: a tensor of int64, never below 0. A
--- row lies in one interval only, so that all counts together cost epsilon. x: a tensor (n,). edges: a list of rising numbers that do not
--- depend on the data. Options: epsilon, delta (0), seed, accountant.
---     > x = ms.tensor { 0.1, 0.2, 0.7 }
---     > ms.armour.privacy.statistics.histogram(x, { 0, 0.5, 1 }, { epsilon = 50.0, seed = 1 }):tolist()[1] --> 2
function statistics.histogram(x, edges, options)
  local where = "histogram"
  local o = released.budget(where, options, released.options(), "{ epsilon = 1.0 }")
  x = released.values(where, x)
  if type(edges) ~= "table" or getmetatable(edges) ~= nil or #edges < 2 then
    fail(where, "edges must be a list of at least two rising numbers, got " .. describe(edges))
  end
  for i, edge in ipairs(edges) do
    check.number(where, "edges", edge)
    if i > 1 and not (edge > edges[i - 1]) then fail(where, ("edges must rise, got %g after %g"):format(edge, edges[i - 1])) end
  end
  local bins = #edges - 1
  local from, to = ms.tensor(edges, f64)[{ ms.slice(0, bins) }], ms.tensor(edges, f64)[{ ms.slice(1, bins + 1) }]
  local counts = {}
  for i = 0, bins - 1 do
    local below = i == bins - 1 and ops.less_equal(x, to[i]) or ops.less(x, to[i])
    counts[i + 1] = ops.sum(ops.logical_and(ops.greater_equal(x, from[i]), below):astype(f64)):item()
  end
  o.grid = 1.0
  return ops.maximum(released.noisy(where, ms.tensor(counts, f64), 1.0, 1.0, o), 0.0):astype(ms.int64)
end

--- A value below which a share q of the values lies, by the exponential mechanism over the intervals between the sorted values (Smith
--- 2011). x: a tensor (n,), whose values are first moved into bounds. q: a share in [0, 1], or a list of them, which gives a list; epsilon
--- is divided among them. Options: epsilon, bounds, seed, accountant.
---     > x = ms.arange(1001):astype(ms.float64) / 1000
---     > median = ms.armour.privacy.statistics.quantile(x, 0.5, { epsilon = 1.0, bounds = { 0, 1 }, seed = 1 })
---     > math.abs(median - 0.5) < 0.05 --> true
function statistics.quantile(x, q, options)
  local where = "quantile"
  local known = released.options { bounds = "table" }
  known.delta = nil
  local o = released.budget(where, options, known, "{ epsilon = 1.0, bounds = { 0, 1 } }")
  local lo, hi = released.bounds(where, o.bounds)
  x = released.values(where, x)
  local shares = { q }
  if type(q) == "table" then shares = q end
  if #shares == 0 then fail(where, "q is an empty list") end
  for _, share in ipairs(shares) do check.probability(where, "q", share) end
  local n = x.shape[1]
  local ends = ops.concat({ constant(lo), (ops.sort(ops.clamp(x, lo, hi))), constant(hi) }, 0)
  local first = ends[{ ms.slice(0, n + 1) }]
  local width = ends[{ ms.slice(1, n + 2) }] - first
  local uniform, epsilon, results = released.uniform(where, o.seed), o.epsilon / #shares, {}
  for i, share in ipairs(shares) do
    -- k values lie below the interval k; one row more moves this and share n by at most max(share, 1 - share) from one another.
    local distance = ops.abs(ms.arange(0, n + 1):astype(f64) - share * n)
    local score = ops.log(width) - distance * (epsilon / (2 * math.max(share, 1 - share)))
    -- The greatest of scores with Gumbel noise is a draw with probabilities in proportion to their exponentials.
    local chosen = ops.argmax(score - ops.log(-ops.log(uniform(n + 1))), 0):item()
    results[i] = first[chosen]:item() + uniform(1):item() * width[chosen]:item()
    released.charge(o.accountant, { mechanism = "pure", epsilon = epsilon })
  end
  return type(q) == "table" and results or results[1]
end

return statistics
