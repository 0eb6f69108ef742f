-- Functions that distributions need and operators do not give: the incomplete gamma and beta functions, as power series whose terms
-- are all positive, so that nothing cancels. The number of terms follows from the values; derivatives go through the series.
local ms = require "lunaria"

local ops = ms.ops
local special = {}

local most_terms = 20000

-- Adds terms until none counts any more: next_term(term, n) gives the n-th of the one before.
local function series(first, next_term)
  local sum, term = first, first
  for n = 1, most_terms do
    term = next_term(term, n)
    sum = sum + term
    if not ops.any(ops.greater(ops.stop_gradient(term), ops.stop_gradient(sum) * 1e-17)):item() then break end
  end
  return sum
end

--- Regularized lower incomplete gamma function P(a, x) for a > 0, x >= 0:
--- x^a e^-x / Gamma(a + 1) * (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ...).
function special.gammainc(a, x)
  local inside = ops.greater(x, 0.0)
  -- From here on P is 1 in double precision, and the series would be long.
  local far = ops.greater(x, a + 40.0 + 12.0 * ops.sqrt(a))
  local safe = ops.where(ops.logical_and(inside, ops.logical_not(far)), x, ops.ones_like(x))
  local sum = series(ops.ones_like(safe + a), function(term, n) return term * safe / (a + n) end)
  local value = ops.exp(a * ops.log(safe) - safe - ops.lgamma(a + 1.0)) * sum
  value = ops.minimum(value, ops.ones_like(value))
  return ops.where(inside, ops.where(far, ops.ones_like(value), value), ops.zeros_like(value))
end

--- log B(a, b)
function special.lbeta(a, b) return ops.lgamma(a) + ops.lgamma(b) - ops.lgamma(a + b) end

--- Regularized incomplete beta function I_x(a, b) for 0 <= x <= 1: where x is beyond the middle, 1 - I_(1-x)(b, a), whose series
--- is short: x^a (1 - x)^b / (a B(a, b)) * (1 + (a + b) / (a + 1) x + (a + b) (a + b + 1) / ((a + 1) (a + 2)) x^2 + ...).
function special.betainc(a, b, x)
  x, a, b = x + 0.0 * (a + b), a + 0.0 * (x + b), b + 0.0 * (a + x)
  local turned = ops.greater(x, (a + 1.0) / (a + b + 2.0))
  local p, q = ops.where(turned, b, a), ops.where(turned, a, b)
  local z = ops.where(turned, 1.0 - x, x)
  local inside = ops.greater(z, 0.0)
  local safe = ops.where(inside, z, 0.5 * ops.ones_like(z))
  local sum = series(ops.ones_like(safe), function(term, n) return term * safe * (p + q + (n - 1)) / (p + n) end)
  local value = ops.exp(p * ops.log(safe) + q * ops.log1p(-safe) - special.lbeta(p, q)) / p * sum
  value = ops.where(inside, value, ops.zeros_like(value))
  return ops.where(turned, 1.0 - value, value)
end

--- f of a value where it is inside, and `outside` elsewhere; there f is computed of `safe`, so that its derivative is finite.
function special.within(inside, value, safe, f, outside)
  local result = f(ops.where(inside, value, ops.full_like(value, safe)))
  return ops.where(inside, result, ops.full_like(result, outside))
end

return special
