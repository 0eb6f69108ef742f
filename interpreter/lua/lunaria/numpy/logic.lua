-- ms.numpy: comparisons, logical and bitwise functions, questions about values.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local either = arrays.either
local M = {}

local function truth(where, name, x)
  x = arrays.of(where, name, x)
  return x.dtype == ms.bool_ and x or ops.not_equal(x, 0)
end

local function is_float(x)
  local kind = arrays.kind(x.dtype)
  return kind == "f" or kind == "c"
end

local function integers(where, x1, x2)
  local a, b = arrays.pair(where, x1, x2)
  if is_float(a) then arrays.fail(where, "integers or booleans are expected, got " .. tostring(a.dtype)) end
  return a, b
end

-- Comparisons
local pair = arrays.binary(M, arrays.pair)
pair("equal", ops.equal, "Whether the elements are equal.",
  "ms.numpy.equal({ 1, 2 }, 2) --> Tensor(shape=[2], dtype=Bool, value=\n[False,  True])")
pair("not_equal", ops.not_equal, "Whether the elements differ.",
  "ms.numpy.not_equal({ 1, 3 }, 2) --> Tensor(shape=[2], dtype=Bool, value=\n[True, True])")
pair("less", ops.less, "Whether x1 is less than x2.",
  "ms.numpy.less({ 1, 3 }, 2) --> Tensor(shape=[2], dtype=Bool, value=\n[ True, False])")
pair("less_equal", ops.less_equal, "Whether x1 is not greater than x2.",
  "ms.numpy.less_equal({ 1, 3 }, 2) --> Tensor(shape=[2], dtype=Bool, value=\n[ True, False])")
pair("greater", ops.greater, "Whether x1 is greater than x2.",
  "ms.numpy.greater({ 1, 3 }, 2) --> Tensor(shape=[2], dtype=Bool, value=\n[False,  True])")
pair("greater_equal", ops.greater_equal, "Whether x1 is not less than x2.",
  "ms.numpy.greater_equal({ 1, 3 }, 2) --> Tensor(shape=[2], dtype=Bool, value=\n[False,  True])")

local logical = arrays.binary(M, function(where, x1, x2) return truth(where, "x1", x1), truth(where, "x2", x2) end)
logical("logical_and", ops.logical_and, "Whether both are true (not 0).", "ms.numpy.logical_and(1, 0):item() --> false")
logical("logical_or", ops.logical_or, "Whether one of them is true (not 0).", "ms.numpy.logical_or(1, 0):item() --> true")
logical("logical_xor", ops.logical_xor, "Whether exactly one of them is true (not 0).", "ms.numpy.logical_xor(1, 0):item() --> true")

local bitwise = arrays.binary(M, integers)
bitwise("bitwise_and", either(ops.logical_and, ops.bitwise_and), "Bits that both have. Of integers or booleans.",
  "ms.numpy.bitwise_and(6, 3):item() --> 2")
bitwise("bitwise_or", either(ops.logical_or, ops.bitwise_or), "Bits that one of them has. Of integers or booleans.",
  "ms.numpy.bitwise_or(6, 3):item() --> 7")
bitwise("bitwise_xor", either(ops.logical_xor, ops.bitwise_xor), "Bits that exactly one of them has. Of integers or booleans.",
  "ms.numpy.bitwise_xor(6, 3):item() --> 5")

arrays.unary(M, function(where, name, x)
  x = arrays.of(where, name, x)
  if is_float(x) then arrays.fail(where, "integers or booleans are expected, got " .. tostring(x.dtype)) end
  return x
end)("invert", function(x) return x.dtype == ms.bool_ and ops.logical_not(x) or ops.invert(x) end,
  "All bits turned round; booleans by not.", "ms.numpy.invert(5):item() --> -6")
rows.same(M, "numpy.")("bitwise_not", "invert", "ms.numpy.bitwise_not(5):item() --> -6")

-- Questions about floats, which have one answer for all integers.
local any = arrays.unary(M, arrays.of)
local function asks(f, of_integers)
  return function(x) return is_float(x) and f(x) or of_integers(x, ms.bool_) end
end
any("isnan", asks(ops.isnan, ops.zeros_like), "Whether it is nan.",
  "ms.numpy.isnan({ 1.0, 1/0, -1/0, 0/0 }) --> Tensor(shape=[4], dtype=Bool, value=\n[False, False, False,  True])")
any("isinf", asks(ops.isinf, ops.zeros_like), "Whether it is an infinity.",
  "ms.numpy.isinf({ 1.0, 1/0, -1/0, 0/0 }) --> Tensor(shape=[4], dtype=Bool, value=\n[False,  True,  True, False])")
any("isfinite", asks(ops.isfinite, ops.ones_like), "Whether it is neither nan nor an infinity.",
  "ms.numpy.isfinite({ 1.0, 1/0, -1/0, 0/0 }) --> Tensor(shape=[4], dtype=Bool, value=\n[ True, False, False, False])")
any("isposinf", asks(ops.isposinf, ops.zeros_like), "Whether it is the positive infinity.",
  "ms.numpy.isposinf({ 1.0, 1/0, -1/0, 0/0 }) --> Tensor(shape=[4], dtype=Bool, value=\n[False,  True, False, False])")
any("isneginf", asks(ops.isneginf, ops.zeros_like), "Whether it is the negative infinity.",
  "ms.numpy.isneginf({ 1.0, 1/0, -1/0, 0/0 }) --> Tensor(shape=[4], dtype=Bool, value=\n[False, False,  True, False])")
any("signbit", function(x) return ops.signbit(x.dtype == ms.bool_ and arrays.cast(x, ms.int8) or x) end,
  "Whether the sign is minus, of -0.0 too.", "ms.numpy.signbit(-0.0):item() --> true")

--- Whether the elements are false (0).
---     > ms.numpy.logical_not(1):item() --> false
function M.logical_not(a, dtype)
  dtype = arrays.named("numpy.logical_not", { "dtype" }, dtype)
  return arrays.result("numpy.logical_not", ops.logical_not(truth("numpy.logical_not", "a", a)), dtype)
end

--- Whether |a - b| <= atol + rtol |b|. equal_nan: whether nan is close to nan.
---     > ms.numpy.isclose(1.0, 1.0000001):item() --> true
function M.isclose(a, b, rtol, atol, equal_nan)
  local names = { "rtol", "atol", "equal_nan" }
  rtol, atol, equal_nan = arrays.named("numpy.isclose", names, rtol, atol, equal_nan)
  local x, y, dtype, plain = arrays.pair("numpy.isclose", a, b, "a", "b")
  dtype = arrays.float_of(dtype, plain)
  return ops.isclose(arrays.cast(x, dtype), arrays.cast(y, dtype), rtol or 1e-5, atol or 1e-8, equal_nan or false)
end

--- Whether all elements are close, as isclose has it: true or false.
---     > ms.numpy.allclose({ 1.0, 2.0 }, { 1.0, 2.0000001 }) --> true
function M.allclose(a, b, rtol, atol, equal_nan)
  return ops.all(M.isclose(a, b, rtol, atol, equal_nan)):item()
end

--- Whether shapes and elements are the same: true or false. equal_nan: whether nan equals nan.
---     > ms.numpy.array_equal({ 1, 2 }, { 1, 2 }) --> true
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
---     > ms.numpy.array_equiv({ { 1, 2 }, { 1, 2 } }, { 1, 2 }) --> true
function M.array_equiv(a1, a2)
  local x, y = arrays.of("numpy.array_equiv", "a1", a1), arrays.of("numpy.array_equiv", "a2", a2)
  if not pcall(arrays.broadcast_shape, "numpy.array_equiv", { arrays.sizes(x), arrays.sizes(y) }) then return false end
  x, y = arrays.pair("numpy.array_equiv", x, y)
  return ops.all(ops.equal(x, y)):item()
end

--- Whether it is a number, a boolean or a string: true or false.
---     > ms.numpy.isscalar(3.1) --> true
function M.isscalar(element) return math.type(element) ~= nil or type(element) == "boolean" or type(element) == "string" end

--- For each element whether it is among test_elements. invert: whether it is not.
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
---     > ms.numpy.in1d({ 1, 2, 3 }, { 2, 5 })
---     Tensor(shape=[3], dtype=Bool, value=
---     [False,  True, False])
function M.in1d(ar1, ar2, invert)
  invert = arrays.named("numpy.in1d", { "invert" }, invert)
  return M.isin(arrays.of("numpy.in1d", "ar1", ar1):reshape { -1 }, ar2, invert)
end

return M
