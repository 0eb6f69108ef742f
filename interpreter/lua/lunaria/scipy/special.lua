-- ms.scipy.special: special functions, element by element. Integers become float64.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local probability = require "lunaria.probability.special"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local M = {}
local prefix = "scipy.special."

local function float(where, x) return arrays.mean_float("scipy.special." .. where, "x", x) end

local function floats(where, a, b)
  local x, y, dtype, plain = arrays.pair(where, a, b)
  local kind = arrays.kind(dtype)
  if kind ~= "f" and kind ~= "c" then dtype = plain and ms.float32 or ms.float64 end
  return arrays.cast(x, dtype), arrays.cast(y, dtype)
end

-- Rows of functions of one operand.
local function unary(operand)
  return rows.family(M, prefix, { operand }, {}, function(where, f, x) return f(arrays.mean_float(where, "x", x)) end)
end

-- Rows of those of two operands.
local function binary(first, second)
  return rows.family(M, prefix, { first, second }, {}, function(where, f, x, y)
    local a, b = floats(where, x, y)
    return f(a, b)
  end)
end

local of_x = unary "x"
of_x("gammaln", ops.lgamma, "Logarithm of the absolute value of the gamma function.", "ms.scipy.special.gammaln(1.0):item() --> 0.0")
of_x("loggamma", ops.lgamma, "Logarithm of the gamma function, of positive numbers.", "ms.scipy.special.loggamma(1.0):item() --> 0.0")
of_x("psi", ops.digamma, "Derivative of the logarithm of the gamma function.", "ms.scipy.special.psi(1.0):item() --> -0.57721567153931")
of_x("digamma", ops.digamma, "The same as psi.", "ms.scipy.special.digamma(1.0):item() --> -0.57721567153931")
of_x("erf", ops.erf, "Error function.", "ms.scipy.special.erf(0.0):item() --> 0.0")
of_x("erfc", ops.erfc, "1 less the error function, exact where this is small.", "ms.scipy.special.erfc(0.0):item() --> 1.0")
of_x("erfcx", ops.erfcx, "exp(x^2) erfc(x), also where erfc(x) is too small to be a number.", "ms.scipy.special.erfcx(0.0):item() --> 1.0")
of_x("erfinv", ops.erfinv, "Inverse of the error function.", "ms.scipy.special.erfinv(0.0):item() --> 0.0")
of_x("expit", ops.sigmoid, "1 / (1 + exp(-x)).", "ms.scipy.special.expit(0.0):item() --> 0.5")
of_x("logit", ops.logit, "Logarithm of x / (1 - x), the inverse of expit.", "ms.scipy.special.logit(0.5):item() --> 0.0")
of_x("log_expit", ops.logsigmoid, "Logarithm of expit, without overflow.", "ms.scipy.special.log_expit(0.0):item() --> -0.6931471824646")
of_x("exp2", ops.exp2, "2 to the power of x.", "ms.scipy.special.exp2(3.0):item() --> 8.0")
of_x("expm1", ops.expm1, "exp(x) - 1, exact for small x.", "ms.scipy.special.expm1(0.0):item() --> 0.0")
of_x("log1p", ops.log1p, "log(1 + x), exact for small x.", "ms.scipy.special.log1p(0.0):item() --> 0.0")
of_x("i0", ops.bessel_i0, "Bessel function: ms.ops.bessel_i0.", "ms.scipy.special.i0(0.0):item() --> 1.0")
of_x("i0e", ops.bessel_i0e, "Bessel function: ms.ops.bessel_i0e.", "ms.scipy.special.i0e(0.0):item() --> 1.0")
of_x("i1", ops.bessel_i1, "Bessel function: ms.ops.bessel_i1.", "ms.scipy.special.i1(0.0):item() --> 0.0")
of_x("i1e", ops.bessel_i1e, "Bessel function: ms.ops.bessel_i1e.", "ms.scipy.special.i1e(0.0):item() --> 0.0")
of_x("j0", ops.bessel_j0, "Bessel function: ms.ops.bessel_j0.", "ms.scipy.special.j0(0.0):item() --> 1.0")
of_x("j1", ops.bessel_j1, "Bessel function: ms.ops.bessel_j1.", "ms.scipy.special.j1(0.0):item() --> 0.0")
of_x("y0", ops.bessel_y0, "Bessel function: ms.ops.bessel_y0.", "ms.scipy.special.y0(1.0):item() < 2 --> true")
of_x("y1", ops.bessel_y1, "Bessel function: ms.ops.bessel_y1.", "ms.scipy.special.y1(1.0):item() < 2 --> true")
of_x("k0", ops.bessel_k0, "Bessel function: ms.ops.bessel_k0.", "ms.scipy.special.k0(1.0):item() < 2 --> true")
of_x("k1", ops.bessel_k1, "Bessel function: ms.ops.bessel_k1.", "ms.scipy.special.k1(1.0):item() < 2 --> true")
of_x("k0e", ops.bessel_k0e, "Bessel function: ms.ops.bessel_k0e.", "ms.scipy.special.k0e(1.0):item() < 2 --> true")
of_x("k1e", ops.bessel_k1e, "Bessel function: ms.ops.bessel_k1e.", "ms.scipy.special.k1e(1.0):item() < 2 --> true")
of_x("gamma", ops.tgamma, "Gamma function; (n - 1)! of integers, NaN of negative ones. Within 6 units in the last place.",
  "ms.scipy.special.gamma(1.0):item() --> 1.0")
of_x("ndtr", ops.ndtr, "Distribution function of the normal distribution.", "ms.scipy.special.ndtr(0.0):item() --> 0.5")
of_x("log_ndtr", ops.log_ndtr, "Logarithm of the distribution function of the normal distribution, exact far below 0.",
  "ms.scipy.special.log_ndtr(0.0):item() < -0.69 --> true")
unary "p"("ndtri", ops.ndtri, "Inverse of ndtr.", "ms.scipy.special.ndtri(0.5):item() --> 0.0")

of_x("entr", function(x) return ops.where(ops.less(x, 0.0), ops.full_like(x, -math.huge), -ops.xlogy(x, x)) end,
  "-x log(x), 0 at 0, minus infinity below.", "ms.scipy.special.entr(1.0):item() --> -0.0")

local of_a_x, of_a_b, of_x_y, of_n_k = binary("a", "x"), binary("a", "b"), binary("x", "y"), binary("n", "k")
of_a_x("gammainc", ops.igamma, "Regularized lower incomplete gamma function.", "ms.scipy.special.gammainc(1.0, 0.0):item() --> 0.0")
of_a_x("gammaincc", ops.igammac, "Regularized upper incomplete gamma function.", "ms.scipy.special.gammaincc(1.0, 0.0):item() --> 1.0")
of_a_b("betaln", ops.betaln, "Logarithm of the beta function, within 4 units in the last place of the largest of the logarithms that it "
  .. "is a sum of.", "ms.scipy.special.betaln(1.0, 1.0):item() --> 0.0")
of_x_y("xlogy", ops.xlogy, "x log(y), 0 where x is 0.", "ms.scipy.special.xlogy(0.0, 0.0):item() --> 0.0")
of_x_y("xlog1py", probability.xlog1py, "x log(1 + y), 0 where x is 0.", "ms.scipy.special.xlog1py(0.0, -1.0):item() --> 0.0")

local function beta(x, y)
  local p, q = arrays.cast(x, ms.float64), arrays.cast(y, ms.float64)
  local small = ops.less(p + q, 20.0)
  local r = ops.where(small, ops.tgamma(ops.where(small, p, 1.0)) * ops.tgamma(ops.where(small, q, 1.0))
    / ops.tgamma(ops.where(small, p + q, 2.0)), ops.exp(ops.betaln(p, q)))
  return arrays.cast(r, x.dtype)
end
of_a_b("beta", beta, "Beta function. In float64 within 64 units in the last place, and of a + b > 20 so many times its logarithm.",
  "ms.scipy.special.beta(1.0, 1.0):item() --> 1.0")

local function rel_entr(a, b)
  local inside = ops.logical_and(ops.greater(a, 0.0), ops.greater(b, 0.0))
  local p, q = ops.where(inside, a, 1.0), ops.where(inside, b, 1.0)
  -- Where the quotient is close to 1 the difference is exact, and the quotient is not.
  local ratio = p / q
  local near = ops.logical_and(ops.greater(ratio, 0.5), ops.less(ratio, 2.0))
  local value = p * ops.where(near, ops.log1p(ops.where(near, p - q, 0.0) / q), ops.log(ops.where(near, 1.0, ratio)))
  local zero = ops.logical_and(ops.equal(a, 0.0), ops.greater_equal(b, 0.0))
  return ops.where(inside, value, ops.where(zero, ops.zeros_like(value), math.huge))
end
of_x_y("rel_entr", rel_entr, "x log(x / y), 0 where x is 0 and y is not negative.", "ms.scipy.special.rel_entr(1.0, 1.0):item() --> 0.0")

local of_a_b_x = rows.family(M, prefix, { "a", "b", "x" }, {}, function(where, f, a, b, x)
  local p, q = floats(where, a, b)
  local y
  p, y = floats(where, p, x)
  return f(p, arrays.cast(q, p.dtype), y)
end)
of_a_b_x("betainc", ops.betainc, "Regularized incomplete beta function.", "ms.scipy.special.betainc(1.0, 1.0, 0.5):item() --> 0.5")
of_a_b_x("betaincc", function(p, q, y) return ops.betainc(p, q, y, { upper = true }) end,
  "1 less the regularized incomplete beta function, exact where that is small.",
  "ms.scipy.special.betaincc(1.0, 1.0, 0.25):item() --> 0.75")

-- The gamma function is negative between odd and even negative integers, from -1 down.
local function gamma_sign(x)
  local odd = ops.not_equal(ops.remainder(ops.floor(x), 2.0), 0.0)
  return ops.where(ops.logical_and(ops.less(x, 0.0), odd), ops.full_like(x, -1.0), 1.0)
end

local function binom(x, y)
  local a, b = arrays.cast(x, ms.float64), arrays.cast(y, ms.float64)
  local usual = ops.greater(a, -1.0)
  local p, q = ops.where(usual, a, 1.0), ops.where(usual, b, 1.0)
  local logs = ops.where(usual, -ops.betaln(p - q + 1.0, q + 1.0) - ops.log1p(p),
    ops.lgamma(a + 1.0) - ops.lgamma(b + 1.0) - ops.lgamma(a - b + 1.0))
  local sign = gamma_sign(a + 1.0) * gamma_sign(b + 1.0) * gamma_sign(a - b + 1.0)
  return arrays.cast(sign * ops.exp(logs), x.dtype)
end
of_n_k("binom", binom, "Number of ways to choose k of n, also of floats. In float64 within 64 units in the last place times its logarithm.",
  "ms.scipy.special.binom(2.0, 0.0):item() --> 1.0")

--- Derivative number n + 1 of the logarithm of the gamma function.
---     > ms.scipy.special.polygamma(1, 1.0):item() > 1.64 --> true
function M.polygamma(n, x) return ops.polygamma(arrays.integer("scipy.special.polygamma", "n", n), float("polygamma", x)) end

--- Hurwitz's zeta function: the sum of 1 / (k + q)^x for k from 0 on. q: nil: 1.
---     > ms.scipy.special.zeta(2.0, 1.0):item() > 1.64 --> true
function M.zeta(x, q)
  q = arrays.named("scipy.special.zeta", { "q" }, q)
  local a, b = floats("scipy.special.zeta", x, q or 1)
  return ops.zeta(a, b)
end

--- x log(x / y) - x + y, within 4 units in the last place of the largest of the three.
---     > ms.scipy.special.kl_div(1.0, 1.0):item() --> 0.0
function M.kl_div(x, y) return M.rel_entr(x, y) - x + y end

--- Logarithm of the sum of the exponentials, over axes or all.
---     > ms.scipy.special.logsumexp({ 0.0 }):item() --> 0.0
function M.logsumexp(a, axis, keepdims)
  axis, keepdims = arrays.named("scipy.special.logsumexp", { "axis", "keepdims" }, axis, keepdims)
  return ops.logsumexp(float("logsumexp", a), axis, keepdims or false)
end

--- Exponentials divided by their sum, over axes or all.
---     > ms.scipy.special.softmax({ 0.0, 0.0 }):tolist()[1] --> 0.5
function M.softmax(x, axis)
  axis = arrays.named("scipy.special.softmax", { "axis" }, axis)
  x = float("softmax", x)
  return ops.exp(x - ops.logsumexp(x, axis, true))
end

--- Logarithm of softmax.
---     > ms.scipy.special.log_softmax({ 0.0 }):tolist()[1] --> 0.0
function M.log_softmax(x, axis)
  axis = arrays.named("scipy.special.log_softmax", { "axis" }, axis)
  x = float("log_softmax", x)
  return x - ops.logsumexp(x, axis, true)
end

--- Logarithm of the multivariate gamma function, within 4 units in the last place of the largest of the logarithms that it is a sum of.
---     > ms.scipy.special.multigammaln(2.0, 1):item() --> 0.0
function M.multigammaln(a, d) return ops.mvlgamma(float("multigammaln", a), arrays.integer("scipy.special.multigammaln", "d", d)) end

--- n!, as a float.
---     > ms.scipy.special.factorial(4):item() --> 24.0
function M.factorial(n)
  local x = float("factorial", n)
  return ops.where(ops.less(x, 0.0), ops.zeros_like(x), ops.round(M.gamma(x + 1.0)))
end

--- Number of ways to choose k of n; 0 where k is not from 0 to n.
---     > ms.scipy.special.comb(4.0, 2.0):item() --> 6.0
function M.comb(n, k)
  local a, b = floats("scipy.special.comb", n, k)
  local inside = ops.logical_and(ops.greater_equal(b, 0.0), ops.less_equal(b, a))
  local value = ops.round(M.binom(ops.where(inside, a, ops.zeros_like(a)), ops.where(inside, b, ops.zeros_like(b))))
  return ops.where(inside, value, ops.zeros_like(value))
end

return M
