-- ms.numpy: arithmetic, element by element.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"

local ops = ms.ops
local cast, result = arrays.cast, arrays.result
local M = {}

-- x as floats.
local function float(where, x) return (arrays.float(where, "x", x)) end

local floats = arrays.floats

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
local function by_integers(a, b, f)
  if not is_integer(a) then return f(a, b) end
  local zero = ops.equal(b, 0)
  if not ops.any(zero):item() then return f(a, b) end
  return ops.where(zero, ops.zeros_like(a), f(a, ops.where(zero, ops.ones_like(b), b)))
end

--- Sine. Integers give floats.
---
---     > ms.numpy.sin(0.5):item()
---     0.47942554950714
function M.sin(x, dtype)
  dtype = arrays.named("numpy.sin", { "dtype" }, dtype)
  return result("numpy.sin", ops.sin(float("numpy.sin", x)), dtype)
end

--- Cosine. Integers give floats.
---
---     > ms.numpy.cos(0.0):item()
---     1.0
function M.cos(x, dtype)
  dtype = arrays.named("numpy.cos", { "dtype" }, dtype)
  return result("numpy.cos", ops.cos(float("numpy.cos", x)), dtype)
end

--- Tangent. Integers give floats.
---
---     > ms.numpy.tan(0.0):item()
---     0.0
function M.tan(x, dtype)
  dtype = arrays.named("numpy.tan", { "dtype" }, dtype)
  return result("numpy.tan", ops.tan(float("numpy.tan", x)), dtype)
end

--- Angle with this sine. Integers give floats.
---
---     > ms.numpy.arcsin(0.0):item()
---     0.0
function M.arcsin(x, dtype)
  dtype = arrays.named("numpy.arcsin", { "dtype" }, dtype)
  return result("numpy.arcsin", ops.asin(float("numpy.arcsin", x)), dtype)
end

--- Angle with this cosine. Integers give floats.
---
---     > ms.numpy.arccos(1.0):item()
---     0.0
function M.arccos(x, dtype)
  dtype = arrays.named("numpy.arccos", { "dtype" }, dtype)
  return result("numpy.arccos", ops.acos(float("numpy.arccos", x)), dtype)
end

--- Angle with this tangent. Integers give floats.
---
---     > ms.numpy.arctan(0.0):item()
---     0.0
function M.arctan(x, dtype)
  dtype = arrays.named("numpy.arctan", { "dtype" }, dtype)
  return result("numpy.arctan", ops.atan(float("numpy.arctan", x)), dtype)
end

--- Hyperbolic sine. Integers give floats.
---
---     > ms.numpy.sinh(0.0):item()
---     0.0
function M.sinh(x, dtype)
  dtype = arrays.named("numpy.sinh", { "dtype" }, dtype)
  return result("numpy.sinh", ops.sinh(float("numpy.sinh", x)), dtype)
end

--- Hyperbolic cosine. Integers give floats.
---
---     > ms.numpy.cosh(0.0):item()
---     1.0
function M.cosh(x, dtype)
  dtype = arrays.named("numpy.cosh", { "dtype" }, dtype)
  return result("numpy.cosh", ops.cosh(float("numpy.cosh", x)), dtype)
end

--- Hyperbolic tangent. Integers give floats.
---
---     > ms.grad(ms.numpy.tanh)(0.0)
---     1.0
function M.tanh(x, dtype)
  dtype = arrays.named("numpy.tanh", { "dtype" }, dtype)
  return result("numpy.tanh", ops.tanh(float("numpy.tanh", x)), dtype)
end

--- Inverse hyperbolic sine. Integers give floats.
---
---     > ms.numpy.arcsinh(0.0):item()
---     0.0
function M.arcsinh(x, dtype)
  dtype = arrays.named("numpy.arcsinh", { "dtype" }, dtype)
  return result("numpy.arcsinh", ops.asinh(float("numpy.arcsinh", x)), dtype)
end

--- Inverse hyperbolic cosine. Integers give floats.
---
---     > ms.numpy.arccosh(1.0):item()
---     0.0
function M.arccosh(x, dtype)
  dtype = arrays.named("numpy.arccosh", { "dtype" }, dtype)
  return result("numpy.arccosh", ops.acosh(float("numpy.arccosh", x)), dtype)
end

--- Inverse hyperbolic tangent. Integers give floats.
---
---     > ms.numpy.arctanh(0.0):item()
---     0.0
function M.arctanh(x, dtype)
  dtype = arrays.named("numpy.arctanh", { "dtype" }, dtype)
  return result("numpy.arctanh", ops.atanh(float("numpy.arctanh", x)), dtype)
end

--- e to the power of x. Integers give floats.
---
---     > ms.numpy.exp(0.0):item()
---     1.0
function M.exp(x, dtype)
  dtype = arrays.named("numpy.exp", { "dtype" }, dtype)
  return result("numpy.exp", ops.exp(float("numpy.exp", x)), dtype)
end

--- 2 to the power of x. Integers give floats.
---
---     > ms.numpy.exp2(3):item()
---     8.0
function M.exp2(x, dtype)
  dtype = arrays.named("numpy.exp2", { "dtype" }, dtype)
  return result("numpy.exp2", ops.exp2(float("numpy.exp2", x)), dtype)
end

--- e to the power of x, less 1, exact for small x. Integers give floats.
---
---     > ms.numpy.expm1(0.0):item()
---     0.0
function M.expm1(x, dtype)
  dtype = arrays.named("numpy.expm1", { "dtype" }, dtype)
  return result("numpy.expm1", ops.expm1(float("numpy.expm1", x)), dtype)
end

--- Natural logarithm. Integers give floats.
---
---     > ms.numpy.log(1.0):item()
---     0.0
function M.log(x, dtype)
  dtype = arrays.named("numpy.log", { "dtype" }, dtype)
  return result("numpy.log", ops.log(float("numpy.log", x)), dtype)
end

--- Logarithm to base 2. Integers give floats.
---
---     > ms.numpy.log2(8.0):item()
---     3.0
function M.log2(x, dtype)
  dtype = arrays.named("numpy.log2", { "dtype" }, dtype)
  return result("numpy.log2", ops.log2(float("numpy.log2", x)), dtype)
end

--- Logarithm to base 10. Integers give floats.
---
---     > ms.numpy.log10(1000.0):item()
---     3.0
function M.log10(x, dtype)
  dtype = arrays.named("numpy.log10", { "dtype" }, dtype)
  return result("numpy.log10", ops.log10(float("numpy.log10", x)), dtype)
end

--- Natural logarithm of 1 + x, exact for small x. Integers give floats.
---
---     > ms.numpy.log1p(0.0):item()
---     0.0
function M.log1p(x, dtype)
  dtype = arrays.named("numpy.log1p", { "dtype" }, dtype)
  return result("numpy.log1p", ops.log1p(float("numpy.log1p", x)), dtype)
end

--- Square root. Integers give floats.
---
---     > ms.numpy.sqrt(16):item()
---     4.0
function M.sqrt(x, dtype)
  dtype = arrays.named("numpy.sqrt", { "dtype" }, dtype)
  return result("numpy.sqrt", ops.sqrt(float("numpy.sqrt", x)), dtype)
end

--- Degrees as radians. Integers give floats.
---
---     > ms.numpy.deg2rad(0.0):item()
---     0.0
function M.deg2rad(x, dtype)
  dtype = arrays.named("numpy.deg2rad", { "dtype" }, dtype)
  return result("numpy.deg2rad", ops.deg2rad(float("numpy.deg2rad", x)), dtype)
end

--- The same as ms.numpy.deg2rad.
---
---     > ms.numpy.radians(0.0):item()
---     0.0
function M.radians(x, dtype) return M.deg2rad(x, dtype) end

--- Radians as degrees. Integers give floats.
---
---     > ms.numpy.rad2deg(0.0):item()
---     0.0
function M.rad2deg(x, dtype)
  dtype = arrays.named("numpy.rad2deg", { "dtype" }, dtype)
  return result("numpy.rad2deg", ops.rad2deg(float("numpy.rad2deg", x)), dtype)
end

--- The same as ms.numpy.rad2deg.
---
---     > ms.numpy.degrees(0.0):item()
---     0.0
function M.degrees(x, dtype) return M.rad2deg(x, dtype) end

--- Cube root, of negative numbers too. Integers give floats.
---
---     > ms.numpy.cbrt(-8.0):item()
---     -2.0
function M.cbrt(x, dtype)
  dtype = arrays.named("numpy.cbrt", { "dtype" }, dtype)
  x = float("numpy.cbrt", x)
  local size = ops.abs(x)
  -- One step of Newton's method takes away the rounding of the power.
  local zero = ops.logical_or(ops.equal(size, 0), ops.logical_not(ops.isfinite(size)))
  local safe = ops.where(zero, ops.ones_like(size), size)
  local root = ops.pow(safe, 1 / 3)
  root = root - (root - safe / (root * root)) / 3
  return result("numpy.cbrt", ops.where(zero, x, ops.sign(x) * root), dtype)
end

--- Absolute value.
---
---     > ms.numpy.abs(-2):item()
---     2
function M.abs(x, dtype)
  dtype = arrays.named("numpy.abs", { "dtype" }, dtype)
  x = arrays.of("numpy.abs", "x", x)
  return result("numpy.abs", is_bool(x) and x or ops.abs(x), dtype)
end

--- The same as ms.numpy.abs.
---
---     > ms.numpy.absolute(-2):item()
---     2
function M.absolute(x, dtype) return M.abs(x, dtype) end

--- The number with its sign turned round.
---
---     > ms.numpy.negative(2):item()
---     -2
function M.negative(x, dtype)
  dtype = arrays.named("numpy.negative", { "dtype" }, dtype)
  x = arrays.of("numpy.negative", "x", x)
  if is_bool(x) then arrays.fail("numpy.negative", "booleans have no negative", "use ms.numpy.logical_not(x)") end
  return result("numpy.negative", ops.neg(x), dtype)
end

--- The number itself, as +x.
---
---     > ms.numpy.positive(2):item()
---     2
function M.positive(x, dtype)
  dtype = arrays.named("numpy.positive", { "dtype" }, dtype)
  x = arrays.of("numpy.positive", "x", x)
  if is_bool(x) then arrays.fail("numpy.positive", "booleans have no sign") end
  return result("numpy.positive", x, dtype)
end

--- -1, 0 or 1 by the sign.
---
---     > ms.numpy.sign(-2.5):item()
---     -1.0
function M.sign(x, dtype)
  dtype = arrays.named("numpy.sign", { "dtype" }, dtype)
  x = arrays.of("numpy.sign", "x", x)
  if is_bool(x) then arrays.fail("numpy.sign", "booleans have no sign") end
  return result("numpy.sign", ops.sign(x), dtype)
end

--- The number times itself.
---
---     > ms.numpy.square(3):item()
---     9
function M.square(x, dtype)
  dtype = arrays.named("numpy.square", { "dtype" }, dtype)
  x = arrays.of("numpy.square", "x", x)
  return result("numpy.square", is_bool(x) and x or ops.square(x), dtype)
end

--- 1 divided by the number; of integers without the fraction, as in numpy.
---
---     > ms.numpy.reciprocal(4.0):item()
---     0.25
function M.reciprocal(x, dtype)
  dtype = arrays.named("numpy.reciprocal", { "dtype" }, dtype)
  x = arrays.of("numpy.reciprocal", "x", x)
  if is_bool(x) then x = cast(x, ms.int8) end
  if is_integer(x) then
    x = ops.where(ops.equal(ops.abs(x), 1), x, ops.zeros_like(x))
  else
    x = ops.reciprocal(x)
  end
  return result("numpy.reciprocal", x, dtype)
end

--- The largest integer that is not larger. Integers stay as they are.
---
---     > ms.numpy.floor(-1.5):item()
---     -2.0
function M.floor(x, dtype)
  dtype = arrays.named("numpy.floor", { "dtype" }, dtype)
  x = arrays.of("numpy.floor", "x", x)
  return result("numpy.floor", is_bool(x) and x or ops.floor(x), dtype)
end

--- The smallest integer that is not smaller. Integers stay as they are.
---
---     > ms.numpy.ceil(-1.5):item()
---     -1.0
function M.ceil(x, dtype)
  dtype = arrays.named("numpy.ceil", { "dtype" }, dtype)
  x = arrays.of("numpy.ceil", "x", x)
  return result("numpy.ceil", is_bool(x) and x or ops.ceil(x), dtype)
end

--- The number without its fraction. Integers stay as they are.
---
---     > ms.numpy.trunc(-1.5):item()
---     -1.0
function M.trunc(x, dtype)
  dtype = arrays.named("numpy.trunc", { "dtype" }, dtype)
  x = arrays.of("numpy.trunc", "x", x)
  return result("numpy.trunc", is_bool(x) and x or ops.trunc(x), dtype)
end

--- The number without its fraction, rounded towards 0.
---
---     > ms.numpy.fix(-1.5):item()
---     -1.0
function M.fix(x, dtype)
  dtype = arrays.named("numpy.fix", { "dtype" }, dtype)
  x = arrays.of("numpy.fix", "x", x)
  return result("numpy.fix", is_bool(x) and x or ops.trunc(x), dtype)
end

--- The nearest integer, of two the even one. Integers give floats.
---
---     > ms.numpy.rint(2.5):item()
---     2.0
function M.rint(x, dtype)
  dtype = arrays.named("numpy.rint", { "dtype" }, dtype)
  return result("numpy.rint", ops.round_to_even(float("numpy.rint", x)), dtype)
end

--- Rounded to so many decimals, of two neighbours the even one.
---
---     > ms.numpy.around(1.25, 1):item()
---     1.2000000476837
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
---
---     > ms.numpy.round(1.25, 1):item()
---     1.2000000476837
function M.round(a, decimals) return M.around(a, decimals) end

--- Absolute value, as a float.
---
---     > ms.numpy.fabs(-2):item()
---     2.0
function M.fabs(x, dtype)
  dtype = arrays.named("numpy.fabs", { "dtype" }, dtype)
  return result("numpy.fabs", ops.abs(float("numpy.fabs", x)), dtype)
end

--- Sum. Operands are broadcast and promoted as in numpy; booleans are joined by or.
---
---     > ms.numpy.add({ 1, 2 }, 0.5)
---     Tensor(shape=[2], dtype=Float32, value=
---     [ 1.50000000e+00,  2.50000000e+00])
function M.add(x1, x2, dtype)
  dtype = arrays.named("numpy.add", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.add", x1, x2)
  return result("numpy.add", is_bool(a) and ops.logical_or(a, b) or ops.add(a, b), dtype)
end

--- Difference.
---
---     > ms.numpy.subtract(3, 1):item()
---     2
function M.subtract(x1, x2, dtype)
  dtype = arrays.named("numpy.subtract", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.subtract", x1, x2)
  if is_bool(a) then arrays.fail("numpy.subtract", "booleans cannot be subtracted", "use ms.numpy.logical_xor(a, b)") end
  return result("numpy.subtract", ops.sub(a, b), dtype)
end

--- Product. Booleans are joined by and.
---
---     > ms.numpy.multiply(3, 2.5):item()
---     7.5
function M.multiply(x1, x2, dtype)
  dtype = arrays.named("numpy.multiply", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.multiply", x1, x2)
  return result("numpy.multiply", is_bool(a) and ops.logical_and(a, b) or ops.mul(a, b), dtype)
end

--- Quotient, as a float.
---
---     > ms.numpy.divide(3, 2):item()
---     1.5
function M.divide(x1, x2, dtype)
  dtype = arrays.named("numpy.divide", { "dtype" }, dtype)
  local a, b = floats("numpy.divide", x1, x2, ms.float64)
  return result("numpy.divide", ops.div(a, b), dtype)
end

--- The same as ms.numpy.divide.
---
---     > ms.numpy.true_divide(3, 2):item()
---     1.5
function M.true_divide(x1, x2, dtype) return M.divide(x1, x2, dtype) end

--- x1 to the power of x2. Integers stay integers and need powers from 0 on.
---
---     > ms.numpy.power(2, 10):item()
---     1024
function M.power(x1, x2, dtype)
  dtype = arrays.named("numpy.power", { "dtype" }, dtype)
  local a, b = numbers("numpy.power", x1, x2)
  return result("numpy.power", ops.pow(a, b), dtype)
end

--- x1 to the power of x2, in float64.
---
---     > ms.numpy.float_power(2, -1):item()
---     0.5
function M.float_power(x1, x2)
  local a, b = arrays.pair("numpy.float_power", x1, x2)
  local wide = arrays.promote(a.dtype, ms.float64)
  return ops.pow(cast(a, wide), cast(b, wide))
end

--- The larger of two numbers; nan is larger than all.
---
---     > ms.numpy.maximum(3, 2):item()
---     3
function M.maximum(x1, x2, dtype)
  dtype = arrays.named("numpy.maximum", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.maximum", x1, x2)
  return result("numpy.maximum", is_bool(a) and ops.logical_or(a, b) or ops.maximum(a, b), dtype)
end

--- The smaller of two numbers; nan is smaller than all.
---
---     > ms.numpy.minimum(3, 2):item()
---     2
function M.minimum(x1, x2, dtype)
  dtype = arrays.named("numpy.minimum", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.minimum", x1, x2)
  return result("numpy.minimum", is_bool(a) and ops.logical_and(a, b) or ops.minimum(a, b), dtype)
end

--- The larger of two numbers; nan counts as missing.
---
---     > ms.numpy.fmax(3.0, 0/0):item()
---     3.0
function M.fmax(x1, x2, dtype)
  dtype = arrays.named("numpy.fmax", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.fmax", x1, x2)
  return result("numpy.fmax", is_bool(a) and ops.logical_or(a, b) or ops.fmax(a, b), dtype)
end

--- The smaller of two numbers; nan counts as missing.
---
---     > ms.numpy.fmin(3.0, 0/0):item()
---     3.0
function M.fmin(x1, x2, dtype)
  dtype = arrays.named("numpy.fmin", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.fmin", x1, x2)
  return result("numpy.fmin", is_bool(a) and ops.logical_and(a, b) or ops.fmin(a, b), dtype)
end

--- Quotient, rounded down. Integers divided by 0 give 0.
---
---     > ms.numpy.floor_divide(-7, 2):item()
---     -4
function M.floor_divide(x1, x2, dtype)
  dtype = arrays.named("numpy.floor_divide", { "dtype" }, dtype)
  local a, b = numbers("numpy.floor_divide", x1, x2)
  return result("numpy.floor_divide", by_integers(a, b, ops.floor_divide), dtype)
end

--- What floor_divide leaves, with the sign of the divisor. Integers divided by 0 give 0.
---
---     > ms.numpy.remainder(-7, 3):item()
---     2
function M.remainder(x1, x2, dtype)
  dtype = arrays.named("numpy.remainder", { "dtype" }, dtype)
  local a, b = numbers("numpy.remainder", x1, x2)
  return result("numpy.remainder", by_integers(a, b, ops.remainder), dtype)
end

--- The same as ms.numpy.remainder.
---
---     > ms.numpy.mod(-7, 3):item()
---     2
function M.mod(x1, x2, dtype) return M.remainder(x1, x2, dtype) end

--- What division leaves, with the sign of the dividend. Integers divided by 0 give 0.
---
---     > ms.numpy.fmod(-7, 3):item()
---     -1
function M.fmod(x1, x2, dtype)
  dtype = arrays.named("numpy.fmod", { "dtype" }, dtype)
  local a, b = numbers("numpy.fmod", x1, x2)
  return result("numpy.fmod", by_integers(a, b, ops.fmod), dtype)
end

--- Quotient, rounded down, and remainder: two results.
---
---     > ms.numpy.divmod(7, 2)
---     Tensor(shape=[], dtype=Int64, value= 3)	Tensor(shape=[], dtype=Int64, value= 1)
function M.divmod(x1, x2)
  local a, b = numbers("numpy.divmod", x1, x2)
  return by_integers(a, b, ops.floor_divide), by_integers(a, b, ops.remainder)
end

--- Angle of the point (x2, x1), in its quadrant.
---
---     > ms.numpy.arctan2(0.0, 1.0):item()
---     0.0
function M.arctan2(x1, x2, dtype)
  dtype = arrays.named("numpy.arctan2", { "dtype" }, dtype)
  local a, b = floats("numpy.arctan2", x1, x2)
  return result("numpy.arctan2", ops.atan2(a, b), dtype)
end

--- Length of the hypotenuse, without overflow in between.
---
---     > ms.numpy.hypot(3, 4):item()
---     5.0
function M.hypot(x1, x2, dtype)
  dtype = arrays.named("numpy.hypot", { "dtype" }, dtype)
  local a, b = floats("numpy.hypot", x1, x2)
  return result("numpy.hypot", ops.hypot(a, b), dtype)
end

--- x1 with the sign of x2.
---
---     > ms.numpy.copysign(3, -0.0):item()
---     -3.0
function M.copysign(x1, x2, dtype)
  dtype = arrays.named("numpy.copysign", { "dtype" }, dtype)
  local a, b = floats("numpy.copysign", x1, x2)
  return result("numpy.copysign", ops.copysign(a, b), dtype)
end

--- Logarithm of the sum of the exponentials.
---
---     > ms.numpy.logaddexp(0.0, 0.0):item()
---     0.6931471824646
function M.logaddexp(x1, x2, dtype)
  dtype = arrays.named("numpy.logaddexp", { "dtype" }, dtype)
  local a, b = floats("numpy.logaddexp", x1, x2)
  return result("numpy.logaddexp", ops.logaddexp(a, b), dtype)
end

--- Logarithm to base 2 of the sum of the powers of 2.
---
---     > ms.numpy.logaddexp2(1.0, 1.0):item()
---     2.0
function M.logaddexp2(x1, x2, dtype)
  dtype = arrays.named("numpy.logaddexp2", { "dtype" }, dtype)
  local a, b = floats("numpy.logaddexp2", x1, x2)
  return result("numpy.logaddexp2", ops.logaddexp2(a, b), dtype)
end

--- 0 below 0, 1 above, x2 at 0.
---
---     > ms.numpy.heaviside(0.0, 0.5):item()
---     0.5
function M.heaviside(x1, x2, dtype)
  dtype = arrays.named("numpy.heaviside", { "dtype" }, dtype)
  local a, b = floats("numpy.heaviside", x1, x2)
  return result("numpy.heaviside", ops.heaviside(a, b), dtype)
end

--- Greatest common divisor of integers.
---
---     > ms.numpy.gcd(12, 18):item()
---     6
function M.gcd(x1, x2, dtype)
  dtype = arrays.named("numpy.gcd", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.gcd", x1, x2)
  if not is_integer(a) or is_bool(a) then arrays.fail("numpy.gcd", "integers are expected") end
  return result("numpy.gcd", ops.gcd(a, b), dtype)
end

--- Least common multiple of integers.
---
---     > ms.numpy.lcm(12, 18):item()
---     36
function M.lcm(x1, x2, dtype)
  dtype = arrays.named("numpy.lcm", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.lcm", x1, x2)
  if not is_integer(a) or is_bool(a) then arrays.fail("numpy.lcm", "integers are expected") end
  return result("numpy.lcm", ops.lcm(a, b), dtype)
end

--- Numbers below xmin become xmin, those above xmax become xmax; either may be nil.
---
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
  return result(where, y, dtype)
end

--- nan becomes nan (0), infinities the largest numbers of the dtype or posinf and neginf.
---
---     > ms.numpy.nan_to_num(0/0):item()
---     0.0
function M.nan_to_num(x, copy, nan, posinf, neginf)
  local names = { "copy", "nan", "posinf", "neginf" }
  nan, posinf, neginf = select(2, arrays.named("numpy.nan_to_num", names, copy, nan, posinf, neginf))
  x = arrays.of("numpy.nan_to_num", "x", x)
  if is_integer(x) then return x end
  return ops.nan_to_num(x, nan or 0.0, posinf, neginf)
end

return M
