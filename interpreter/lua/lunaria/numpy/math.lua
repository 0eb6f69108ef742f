-- ms.numpy: arithmetic, element by element.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local cast, either = arrays.cast, arrays.either
local M = {}

local function is_bool(x) return x.dtype == ms.bool_ end
local function is_integer(x)
  local kind = arrays.kind(x.dtype)
  return kind == "i" or kind == "u" or kind == "b"
end

-- Two operands of one dtype, booleans as int8.
local function numbers(where, x1, x2)
  local a, b = arrays.pair(where, x1, x2)
  if is_bool(a) then return cast(a, ms.int8), cast(b, ms.int8) end
  return a, b
end

-- What numpy gives for integers that are divided by 0.
local function by_integers(f)
  return function(a, b)
    if not is_integer(a) then return f(a, b) end
    local zero = ops.equal(b, 0)
    if not ops.any(zero):item() then return f(a, b) end
    return ops.where(zero, ops.zeros_like(a), f(a, ops.where(zero, ops.ones_like(b), b)))
  end
end

local float, any = arrays.unary(M, arrays.float), arrays.unary(M, arrays.of)
local pair, floats = arrays.binary(M, arrays.pair), arrays.binary(M, arrays.floats)
local same = rows.same(M, "numpy.")

float("sin", ops.sin, "Sine. Integers give floats.", "ms.numpy.sin(0.5):item() --> 0.47942554950714")
float("cos", ops.cos, "Cosine. Integers give floats.", "ms.numpy.cos(0.0):item() --> 1.0")
float("tan", ops.tan, "Tangent. Integers give floats.", "ms.numpy.tan(0.0):item() --> 0.0")
float("arcsin", ops.asin, "Angle with this sine. Integers give floats.", "ms.numpy.arcsin(0.0):item() --> 0.0")
float("arccos", ops.acos, "Angle with this cosine. Integers give floats.", "ms.numpy.arccos(1.0):item() --> 0.0")
float("arctan", ops.atan, "Angle with this tangent. Integers give floats.", "ms.numpy.arctan(0.0):item() --> 0.0")
float("sinh", ops.sinh, "Hyperbolic sine. Integers give floats.", "ms.numpy.sinh(0.0):item() --> 0.0")
float("cosh", ops.cosh, "Hyperbolic cosine. Integers give floats.", "ms.numpy.cosh(0.0):item() --> 1.0")
float("tanh", ops.tanh, "Hyperbolic tangent. Integers give floats.", "ms.grad(ms.numpy.tanh)(0.0) --> 1.0")
float("arcsinh", ops.asinh, "Inverse hyperbolic sine. Integers give floats.", "ms.numpy.arcsinh(0.0):item() --> 0.0")
float("arccosh", ops.acosh, "Inverse hyperbolic cosine. Integers give floats.", "ms.numpy.arccosh(1.0):item() --> 0.0")
float("arctanh", ops.atanh, "Inverse hyperbolic tangent. Integers give floats.", "ms.numpy.arctanh(0.0):item() --> 0.0")
float("exp", ops.exp, "e to the power of x. Integers give floats.", "ms.numpy.exp(0.0):item() --> 1.0")
float("exp2", ops.exp2, "2 to the power of x. Integers give floats.", "ms.numpy.exp2(3):item() --> 8.0")
float("expm1", ops.expm1, "e to the power of x, less 1, exact for small x. Integers give floats.", "ms.numpy.expm1(0.0):item() --> 0.0")
float("log", ops.log, "Natural logarithm. Integers give floats.", "ms.numpy.log(1.0):item() --> 0.0")
float("log2", ops.log2, "Logarithm to base 2. Integers give floats.", "ms.numpy.log2(8.0):item() --> 3.0")
float("log10", ops.log10, "Logarithm to base 10. Integers give floats.", "ms.numpy.log10(1000.0):item() --> 3.0")
float("log1p", ops.log1p, "Natural logarithm of 1 + x, exact for small x. Integers give floats.", "ms.numpy.log1p(0.0):item() --> 0.0")
float("sqrt", ops.sqrt, "Square root. Integers give floats.", "ms.numpy.sqrt(16):item() --> 4.0")
float("deg2rad", ops.deg2rad, "Degrees as radians. Integers give floats.", "ms.numpy.deg2rad(0.0):item() --> 0.0")
float("rad2deg", ops.rad2deg, "Radians as degrees. Integers give floats.", "ms.numpy.rad2deg(0.0):item() --> 0.0")
float("rint", ops.round_to_even, "The nearest integer, of two the even one. Integers give floats.", "ms.numpy.rint(2.5):item() --> 2.0")
float("fabs", ops.abs, "Absolute value, as a float.", "ms.numpy.fabs(-2):item() --> 2.0")

local function cbrt(x)
  local size = ops.abs(x)
  -- One step of Newton's method takes away the rounding of the power.
  local zero = ops.logical_or(ops.equal(size, 0), ops.logical_not(ops.isfinite(size)))
  local safe = ops.where(zero, ops.ones_like(size), size)
  local root = ops.pow(safe, 1 / 3)
  root = root - (root - safe / (root * root)) / 3
  return ops.where(zero, x, ops.sign(x) * root)
end

float("cbrt", cbrt, "Cube root, of negative numbers too. Integers give floats.", "ms.numpy.cbrt(-8.0):item() --> -2.0")
same("radians", "deg2rad", "ms.numpy.radians(0.0):item() --> 0.0")
same("degrees", "rad2deg", "ms.numpy.degrees(0.0):item() --> 0.0")

-- Booleans as they are.
local function but_bools(f)
  return function(x) return is_bool(x) and x or f(x) end
end

-- Operands among which booleans are an error.
local function no_bools(take, problem, hint)
  return function(where, ...)
    local a, b = take(where, ...)
    if is_bool(a) then arrays.fail(where, problem, hint) end
    return a, b
  end
end

local function reciprocal(x)
  if is_bool(x) then x = cast(x, ms.int8) end
  return is_integer(x) and ops.where(ops.equal(ops.abs(x), 1), x, ops.zeros_like(x)) or ops.reciprocal(x)
end

any("abs", but_bools(ops.abs), "Absolute value.", "ms.numpy.abs(-2):item() --> 2")
any("square", but_bools(ops.square), "The number times itself.", "ms.numpy.square(3):item() --> 9")
any("floor", but_bools(ops.floor), "The largest integer that is not larger. Integers stay as they are.",
  "ms.numpy.floor(-1.5):item() --> -2.0")
any("ceil", but_bools(ops.ceil), "The smallest integer that is not smaller. Integers stay as they are.",
  "ms.numpy.ceil(-1.5):item() --> -1.0")
any("trunc", but_bools(ops.trunc), "The number without its fraction. Integers stay as they are.", "ms.numpy.trunc(-1.5):item() --> -1.0")
any("fix", but_bools(ops.trunc), "The number without its fraction, rounded towards 0.", "ms.numpy.fix(-1.5):item() --> -1.0")
arrays.unary(M, no_bools(arrays.of, "booleans have no negative", "use ms.numpy.logical_not(x)"))("negative", ops.neg,
  "The number with its sign turned round.", "ms.numpy.negative(2):item() --> -2")
local signed = arrays.unary(M, no_bools(arrays.of, "booleans have no sign"))
signed("positive", ops.identity, "The number itself, as +x.", "ms.numpy.positive(2):item() --> 2")
signed("sign", ops.sign, "-1, 0 or 1 by the sign.", "ms.numpy.sign(-2.5):item() --> -1.0")
any("reciprocal", reciprocal, "1 divided by the number; of integers without the fraction, as in numpy.",
  "ms.numpy.reciprocal(4.0):item() --> 0.25")
same("absolute", "abs", "ms.numpy.absolute(-2):item() --> 2")

pair("add", either(ops.logical_or, ops.add), "Sum. Operands are broadcast and promoted as in numpy; booleans are joined by or.",
  "ms.numpy.add({ 1, 2 }, 0.5) --> Tensor(shape=[2], dtype=Float32, value=\n[ 1.50000000e+00,  2.50000000e+00])")
arrays.binary(M, no_bools(arrays.pair, "booleans cannot be subtracted", "use ms.numpy.logical_xor(a, b)"))("subtract", ops.sub,
  "Difference.", "ms.numpy.subtract(3, 1):item() --> 2")
pair("multiply", either(ops.logical_and, ops.mul), "Product. Booleans are joined by and.", "ms.numpy.multiply(3, 2.5):item() --> 7.5")
pair("maximum", either(ops.logical_or, ops.maximum), "The larger of two numbers; nan is larger than all.",
  "ms.numpy.maximum(3, 2):item() --> 3")
pair("minimum", either(ops.logical_and, ops.minimum), "The smaller of two numbers; nan is smaller than all.",
  "ms.numpy.minimum(3, 2):item() --> 2")
pair("fmax", either(ops.logical_or, ops.fmax), "The larger of two numbers; nan counts as missing.",
  "ms.numpy.fmax(3.0, 0/0):item() --> 3.0")
pair("fmin", either(ops.logical_and, ops.fmin), "The smaller of two numbers; nan counts as missing.",
  "ms.numpy.fmin(3.0, 0/0):item() --> 3.0")
arrays.binary(M, arrays.floats, ms.float64)("divide", ops.div, "Quotient, as a float.", "ms.numpy.divide(3, 2):item() --> 1.5")
same("true_divide", "divide", "ms.numpy.true_divide(3, 2):item() --> 1.5")
floats("arctan2", ops.atan2, "Angle of the point (x2, x1), in its quadrant.", "ms.numpy.arctan2(0.0, 1.0):item() --> 0.0")
floats("hypot", ops.hypot, "Length of the hypotenuse, without overflow in between.", "ms.numpy.hypot(3, 4):item() --> 5.0")
floats("copysign", ops.copysign, "x1 with the sign of x2.", "ms.numpy.copysign(3, -0.0):item() --> -3.0")
floats("logaddexp", ops.logaddexp, "Logarithm of the sum of the exponentials.", "ms.numpy.logaddexp(0.0, 0.0):item() --> 0.6931471824646")
floats("logaddexp2", ops.logaddexp2, "Logarithm to base 2 of the sum of the powers of 2.", "ms.numpy.logaddexp2(1.0, 1.0):item() --> 2.0")
floats("heaviside", ops.heaviside, "0 below 0, 1 above, x2 at 0.", "ms.numpy.heaviside(0.0, 0.5):item() --> 0.5")

local whole = arrays.binary(M, numbers)
whole("power", ops.pow, "x1 to the power of x2. Integers stay integers and need powers from 0 on.", "ms.numpy.power(2, 10):item() --> 1024")
whole("floor_divide", by_integers(ops.floor_divide), "Quotient, rounded down. Integers divided by 0 give 0.",
  "ms.numpy.floor_divide(-7, 2):item() --> -4")
whole("remainder", by_integers(ops.remainder), "What floor_divide leaves, with the sign of the divisor. Integers divided by 0 give 0.",
  "ms.numpy.remainder(-7, 3):item() --> 2")
whole("fmod", by_integers(ops.fmod), "What division leaves, with the sign of the dividend. Integers divided by 0 give 0.",
  "ms.numpy.fmod(-7, 3):item() --> -1")
same("mod", "remainder", "ms.numpy.mod(-7, 3):item() --> 2")

local integer = arrays.binary(M, function(where, x1, x2)
  local a, b = arrays.pair(where, x1, x2)
  if not is_integer(a) or is_bool(a) then arrays.fail(where, "integers are expected") end
  return a, b
end)
integer("gcd", ops.gcd, "Greatest common divisor of integers.", "ms.numpy.gcd(12, 18):item() --> 6")
integer("lcm", ops.lcm, "Least common multiple of integers.", "ms.numpy.lcm(12, 18):item() --> 36")

--- Rounded to so many decimals, of two neighbours the even one.
---     > ms.numpy.around(1.25, 1):item() --> 1.2000000476837
function M.around(a, decimals)
  decimals = arrays.named("numpy.around", { "decimals" }, decimals) or 0
  a = arrays.of("numpy.around", "a", a)
  if is_bool(a) then a = cast(a, ms.float16) end
  decimals = arrays.integer("numpy.around", "decimals", decimals)
  if decimals == 0 then return ops.round_to_even(a) end
  if is_integer(a) then
    if decimals > 0 then return a end
    return cast(ops.round_to_even(cast(a, ms.float64) / 10.0 ^ -decimals) * 10.0 ^ -decimals, a.dtype)
  end
  if decimals > 0 then return ops.round_to_even(a * 10.0 ^ decimals) / 10.0 ^ decimals end
  return ops.round_to_even(a / 10.0 ^ -decimals) * 10.0 ^ -decimals
end

--- The same as ms.numpy.around.
---     > ms.numpy.round(1.25, 1):item() --> 1.2000000476837
function M.round(a, decimals) return M.around(a, decimals) end

--- x1 to the power of x2, in float64.
---     > ms.numpy.float_power(2, -1):item() --> 0.5
function M.float_power(x1, x2)
  local a, b = arrays.pair("numpy.float_power", x1, x2)
  local wide = arrays.promote(a.dtype, ms.float64)
  return ops.pow(cast(a, wide), cast(b, wide))
end

--- Quotient, rounded down, and remainder: two results.
---     > ms.numpy.divmod(7, 2) --> Tensor(shape=[], dtype=Int64, value= 3)	Tensor(shape=[], dtype=Int64, value= 1)
function M.divmod(x1, x2)
  local a, b = numbers("numpy.divmod", x1, x2)
  return by_integers(ops.floor_divide)(a, b), by_integers(ops.remainder)(a, b)
end

--- Numbers below xmin become xmin, those above xmax become xmax; either may be nil.
---     > ms.numpy.clip({ 1, 5, 9 }, 2, 6)
---     Tensor(shape=[3], dtype=Int64, value=
---     [2, 5, 6])
function M.clip(x, xmin, xmax, dtype)
  xmin, xmax, dtype = arrays.named("numpy.clip", { "xmin", "xmax", "dtype" }, xmin, xmax, dtype)
  local where = "numpy.clip"
  local values = { x }
  if xmin ~= nil then values[#values + 1] = xmin end
  if xmax ~= nil then values[#values + 1] = xmax end
  local list = arrays.together(where, { "x", "xmin", "xmax" }, values, #values)
  local y = list[1]
  if xmin ~= nil then y = M.maximum(y, list[2]) end
  if xmax ~= nil then y = M.minimum(y, list[#list]) end
  return arrays.result(where, y, dtype)
end

--- nan becomes nan (0), infinities the largest numbers of the dtype or posinf and neginf.
---     > ms.numpy.nan_to_num(0/0):item() --> 0.0
function M.nan_to_num(x, copy, nan, posinf, neginf)
  local names = { "copy", "nan", "posinf", "neginf" }
  nan, posinf, neginf = select(2, arrays.named("numpy.nan_to_num", names, copy, nan, posinf, neginf))
  x = arrays.of("numpy.nan_to_num", "x", x)
  if is_integer(x) then return x end
  return ops.nan_to_num(x, nan or 0.0, posinf, neginf)
end

return M
