-- ms.numpy: comparisons, logical and bitwise functions, questions about values.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"

local ops = ms.ops
local cast, result = arrays.cast, arrays.result
local M = {}

local function truth(where, name, x)
  x = arrays.of(where, name, x)
  return x.dtype == ms.bool_ and x or ops.not_equal(x, 0)
end

local function integers(where, x1, x2)
  local a, b = arrays.pair(where, x1, x2)
  local kind = arrays.kind(a.dtype)
  if kind == "f" or kind == "c" then arrays.fail(where, "integers or booleans are expected, got " .. tostring(a.dtype)) end
  return a, b
end

local function is_float(x)
  local kind = arrays.kind(x.dtype)
  return kind == "f" or kind == "c"
end

--- Whether the elements are equal.
---
---     > ms.numpy.equal({ 1, 2 }, 2)
---     Tensor(shape=[2], dtype=Bool, value=
---     [False,  True])
function M.equal(x1, x2, dtype)
  dtype = arrays.named("numpy.equal", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.equal", x1, x2)
  return result("numpy.equal", ops.equal(a, b), dtype)
end

--- Whether the elements differ.
---
---     > ms.numpy.not_equal({ 1, 3 }, 2)
---     Tensor(shape=[2], dtype=Bool, value=
---     [True, True])
function M.not_equal(x1, x2, dtype)
  dtype = arrays.named("numpy.not_equal", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.not_equal", x1, x2)
  return result("numpy.not_equal", ops.not_equal(a, b), dtype)
end

--- Whether x1 is less than x2.
---
---     > ms.numpy.less({ 1, 3 }, 2)
---     Tensor(shape=[2], dtype=Bool, value=
---     [ True, False])
function M.less(x1, x2, dtype)
  dtype = arrays.named("numpy.less", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.less", x1, x2)
  return result("numpy.less", ops.less(a, b), dtype)
end

--- Whether x1 is not greater than x2.
---
---     > ms.numpy.less_equal({ 1, 3 }, 2)
---     Tensor(shape=[2], dtype=Bool, value=
---     [ True, False])
function M.less_equal(x1, x2, dtype)
  dtype = arrays.named("numpy.less_equal", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.less_equal", x1, x2)
  return result("numpy.less_equal", ops.less_equal(a, b), dtype)
end

--- Whether x1 is greater than x2.
---
---     > ms.numpy.greater({ 1, 3 }, 2)
---     Tensor(shape=[2], dtype=Bool, value=
---     [False,  True])
function M.greater(x1, x2, dtype)
  dtype = arrays.named("numpy.greater", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.greater", x1, x2)
  return result("numpy.greater", ops.greater(a, b), dtype)
end

--- Whether x1 is not less than x2.
---
---     > ms.numpy.greater_equal({ 1, 3 }, 2)
---     Tensor(shape=[2], dtype=Bool, value=
---     [False,  True])
function M.greater_equal(x1, x2, dtype)
  dtype = arrays.named("numpy.greater_equal", { "dtype" }, dtype)
  local a, b = arrays.pair("numpy.greater_equal", x1, x2)
  return result("numpy.greater_equal", ops.greater_equal(a, b), dtype)
end

--- Whether both are true (not 0).
---
---     > ms.numpy.logical_and(1, 0):item()
---     false
function M.logical_and(x1, x2, dtype)
  dtype = arrays.named("numpy.logical_and", { "dtype" }, dtype)
  local where = "numpy.logical_and"
  return result(where, ops.logical_and(truth(where, "x1", x1), truth(where, "x2", x2)), dtype)
end

--- Whether one of them is true (not 0).
---
---     > ms.numpy.logical_or(1, 0):item()
---     true
function M.logical_or(x1, x2, dtype)
  dtype = arrays.named("numpy.logical_or", { "dtype" }, dtype)
  local where = "numpy.logical_or"
  return result(where, ops.logical_or(truth(where, "x1", x1), truth(where, "x2", x2)), dtype)
end

--- Whether exactly one of them is true (not 0).
---
---     > ms.numpy.logical_xor(1, 0):item()
---     true
function M.logical_xor(x1, x2, dtype)
  dtype = arrays.named("numpy.logical_xor", { "dtype" }, dtype)
  local where = "numpy.logical_xor"
  return result(where, ops.logical_xor(truth(where, "x1", x1), truth(where, "x2", x2)), dtype)
end

--- Whether the elements are false (0).
---
---     > ms.numpy.logical_not(1):item()
---     false
function M.logical_not(a, dtype)
  dtype = arrays.named("numpy.logical_not", { "dtype" }, dtype)
  return result("numpy.logical_not", ops.logical_not(truth("numpy.logical_not", "a", a)), dtype)
end

--- Bits that both have. Of integers or booleans.
---
---     > ms.numpy.bitwise_and(6, 3):item()
---     2
function M.bitwise_and(x1, x2, dtype)
  dtype = arrays.named("numpy.bitwise_and", { "dtype" }, dtype)
  local a, b = integers("numpy.bitwise_and", x1, x2)
  local y = a.dtype == ms.bool_ and ops.logical_and(a, b) or ops.bitwise_and(a, b)
  return result("numpy.bitwise_and", y, dtype)
end

--- Bits that one of them has. Of integers or booleans.
---
---     > ms.numpy.bitwise_or(6, 3):item()
---     7
function M.bitwise_or(x1, x2, dtype)
  dtype = arrays.named("numpy.bitwise_or", { "dtype" }, dtype)
  local a, b = integers("numpy.bitwise_or", x1, x2)
  local y = a.dtype == ms.bool_ and ops.logical_or(a, b) or ops.bitwise_or(a, b)
  return result("numpy.bitwise_or", y, dtype)
end

--- Bits that exactly one of them has. Of integers or booleans.
---
---     > ms.numpy.bitwise_xor(6, 3):item()
---     5
function M.bitwise_xor(x1, x2, dtype)
  dtype = arrays.named("numpy.bitwise_xor", { "dtype" }, dtype)
  local a, b = integers("numpy.bitwise_xor", x1, x2)
  local y = a.dtype == ms.bool_ and ops.logical_xor(a, b) or ops.bitwise_xor(a, b)
  return result("numpy.bitwise_xor", y, dtype)
end

--- All bits turned round; booleans by not.
---
---     > ms.numpy.invert(5):item()
---     -6
function M.invert(x, dtype)
  dtype = arrays.named("numpy.invert", { "dtype" }, dtype)
  x = arrays.of("numpy.invert", "x", x)
  if is_float(x) then arrays.fail("numpy.invert", "integers or booleans are expected, got " .. tostring(x.dtype)) end
  return result("numpy.invert", x.dtype == ms.bool_ and ops.logical_not(x) or ops.invert(x), dtype)
end

--- The same as ms.numpy.invert.
---
---     > ms.numpy.bitwise_not(5):item()
---     -6
function M.bitwise_not(x, dtype) return M.invert(x, dtype) end

--- Whether it is nan.
---
---     > ms.numpy.isnan({ 1.0, 1/0, -1/0, 0/0 })
---     Tensor(shape=[4], dtype=Bool, value=
---     [False, False, False,  True])
function M.isnan(x, dtype)
  dtype = arrays.named("numpy.isnan", { "dtype" }, dtype)
  x = arrays.of("numpy.isnan", "x", x)
  local y = is_float(x) and ops.isnan(x) or ops.zeros_like(x, ms.bool_)
  return result("numpy.isnan", y, dtype)
end

--- Whether it is an infinity.
---
---     > ms.numpy.isinf({ 1.0, 1/0, -1/0, 0/0 })
---     Tensor(shape=[4], dtype=Bool, value=
---     [False,  True,  True, False])
function M.isinf(x, dtype)
  dtype = arrays.named("numpy.isinf", { "dtype" }, dtype)
  x = arrays.of("numpy.isinf", "x", x)
  local y = is_float(x) and ops.isinf(x) or ops.zeros_like(x, ms.bool_)
  return result("numpy.isinf", y, dtype)
end

--- Whether it is neither nan nor an infinity.
---
---     > ms.numpy.isfinite({ 1.0, 1/0, -1/0, 0/0 })
---     Tensor(shape=[4], dtype=Bool, value=
---     [ True, False, False, False])
function M.isfinite(x, dtype)
  dtype = arrays.named("numpy.isfinite", { "dtype" }, dtype)
  x = arrays.of("numpy.isfinite", "x", x)
  local y = is_float(x) and ops.isfinite(x) or ops.ones_like(x, ms.bool_)
  return result("numpy.isfinite", y, dtype)
end

--- Whether it is the positive infinity.
---
---     > ms.numpy.isposinf({ 1.0, 1/0, -1/0, 0/0 })
---     Tensor(shape=[4], dtype=Bool, value=
---     [False,  True, False, False])
function M.isposinf(x, dtype)
  dtype = arrays.named("numpy.isposinf", { "dtype" }, dtype)
  x = arrays.of("numpy.isposinf", "x", x)
  local y = is_float(x) and ops.isposinf(x) or ops.zeros_like(x, ms.bool_)
  return result("numpy.isposinf", y, dtype)
end

--- Whether it is the negative infinity.
---
---     > ms.numpy.isneginf({ 1.0, 1/0, -1/0, 0/0 })
---     Tensor(shape=[4], dtype=Bool, value=
---     [False, False,  True, False])
function M.isneginf(x, dtype)
  dtype = arrays.named("numpy.isneginf", { "dtype" }, dtype)
  x = arrays.of("numpy.isneginf", "x", x)
  local y = is_float(x) and ops.isneginf(x) or ops.zeros_like(x, ms.bool_)
  return result("numpy.isneginf", y, dtype)
end

--- Whether the sign is minus, of -0.0 too.
---
---     > ms.numpy.signbit(-0.0):item()
---     true
function M.signbit(x, dtype)
  dtype = arrays.named("numpy.signbit", { "dtype" }, dtype)
  x = arrays.of("numpy.signbit", "x", x)
  return result("numpy.signbit", ops.signbit(x.dtype == ms.bool_ and cast(x, ms.int8) or x), dtype)
end

--- Whether |a - b| <= atol + rtol |b|. equal_nan: whether nan is close to nan.
---
---     > ms.numpy.isclose(1.0, 1.0000001):item()
---     true
function M.isclose(a, b, rtol, atol, equal_nan)
  local names = { "rtol", "atol", "equal_nan" }
  rtol, atol, equal_nan = arrays.named("numpy.isclose", names, rtol, atol, equal_nan)
  local x, y, dtype, plain = arrays.pair("numpy.isclose", a, b, "a", "b")
  dtype = arrays.float_of(dtype, plain)
  return ops.isclose(cast(x, dtype), cast(y, dtype), rtol or 1e-5, atol or 1e-8, equal_nan or false)
end

--- Whether shapes and elements are the same: true or false. equal_nan: whether nan equals nan.
---
---     > ms.numpy.array_equal({ 1, 2 }, { 1, 2 })
---     true
function M.array_equal(a1, a2, equal_nan)
  equal_nan = arrays.named("numpy.array_equal", { "equal_nan" }, equal_nan)
  local x, y = arrays.of("numpy.array_equal", "a1", a1), arrays.of("numpy.array_equal", "a2", a2)
  if table.concat(arrays.sizes(x), ",") ~= table.concat(arrays.sizes(y), ",") then return false end
  x, y = arrays.pair("numpy.array_equal", x, y)
  local same = ops.equal(x, y)
  if equal_nan and is_float(x) then same = ops.logical_or(same, ops.logical_and(ops.isnan(x), ops.isnan(y))) end
  return ops.all(same):item()
end

--- Whether the elements are the same after broadcasting: true or false.
---
---     > ms.numpy.array_equiv({ { 1, 2 }, { 1, 2 } }, { 1, 2 })
---     true
function M.array_equiv(a1, a2)
  local x, y = arrays.of("numpy.array_equiv", "a1", a1), arrays.of("numpy.array_equiv", "a2", a2)
  if not pcall(arrays.broadcast_shape, "numpy.array_equiv", { arrays.sizes(x), arrays.sizes(y) }) then return false end
  x, y = arrays.pair("numpy.array_equiv", x, y)
  return ops.all(ops.equal(x, y)):item()
end

--- Whether it is a number, a boolean or a string: true or false.
---
---     > ms.numpy.isscalar(3.1)
---     true
function M.isscalar(element) return math.type(element) ~= nil or type(element) == "boolean" or type(element) == "string" end

--- For each element whether it is among test_elements. invert: whether it is not.
---
---     > ms.numpy.isin({ 1, 2, 3 }, { 2, 5 })
---     Tensor(shape=[3], dtype=Bool, value=
---     [False,  True, False])
function M.isin(element, test_elements, invert)
  invert = arrays.named("numpy.isin", { "invert" }, invert)
  local x, y = arrays.pair("numpy.isin", element, test_elements, "element", "test_elements")
  local sizes = arrays.sizes(x)
  sizes[#sizes + 1] = 1
  local found = ops.any(ops.equal(x:reshape(sizes), y:reshape { -1 }), -1)
  return invert and ops.logical_not(found) or found
end

--- The same as isin with ar1 as a sequence.
---
---     > ms.numpy.in1d({ 1, 2, 3 }, { 2, 5 })
---     Tensor(shape=[3], dtype=Bool, value=
---     [False,  True, False])
function M.in1d(ar1, ar2, invert)
  invert = arrays.named("numpy.in1d", { "invert" }, invert)
  return M.isin(arrays.of("numpy.in1d", "ar1", ar1):reshape { -1 }, ar2, invert)
end

return M
