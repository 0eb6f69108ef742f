-- Exact statements on a probability by how often something has happened: the bounds of Clopper and Pearson, and the test of a majority.
local ms = require "lunaria"

local ops = ms.ops

local binomial = {}

local function float64(x) return ms.tensor({ x }, ms.float64) end

-- The chance of at least k successes among n > 0, 0 < k <= n, where each has the probability p: an incomplete beta function.
local function at_least(k, n, p) return ops.betainc(float64(k), float64(n - k + 1), float64(p)):item() end
binomial.at_least = at_least

-- Bisection halves an interval of length 1 until its ends are neighbours.
local halvings = 60

--- The greatest p for which k or more successes among n have at most the chance alpha: with confidence 1 - alpha the probability is no
--- smaller (Clopper and Pearson, 1934).
function binomial.lower(k, n, alpha)
  if k == 0 then return 0.0 end
  -- In closed form, where bisection would come to the same.
  if k == n then return alpha ^ (1 / n) end
  local lo, hi = 0.0, k / n
  for _ = 1, halvings do
    local middle = (lo + hi) / 2
    if at_least(k, n, middle) <= alpha then lo = middle else hi = middle end
  end
  return lo
end

--- The least p for which k or fewer successes among n have at most the chance alpha: with confidence 1 - alpha the probability is no
--- larger.
function binomial.upper(k, n, alpha) return 1 - binomial.lower(n - k, n, alpha) end

--- The chance that a fair coin falls at least as unevenly as k to n - k, of both sides.
function binomial.uneven(k, n)
  local more = math.max(k, n - k)
  if 2 * more == n then return 1.0 end
  return math.min(1.0, 2 * at_least(more, n, 0.5))
end

return binomial
