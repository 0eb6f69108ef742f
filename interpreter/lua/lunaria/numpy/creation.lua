-- ms.numpy: new tensors. Floats are float32 where no dtype is given, as everywhere in Lunaria and MindSpore; numpy has float64.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local family = require("lunaria.numpy.rows").family

local ops = ms.ops
local M = {}

function M._without_copy(dtype, _, ndmin) return dtype, ndmin end

--- A tensor of numbers, nested tables or a tensor. copy: whether a tensor is copied, which makes no difference to values.
--- ndmin: the least number of axes.
---     > ms.numpy.array({ { 1, 2 }, { 3, 4 } }, ms.float32).dtype --> Float32
---     > ms.numpy.array({ 1, 2 }, { ndmin = 2 }).shape --> (1, 2)
function M.array(obj, dtype, copy, ndmin)
  local options = { "dtype", "copy", "ndmin" }
  dtype, ndmin = M._without_copy(arrays.named("numpy.array", options, dtype, copy, ndmin))
  dtype = arrays.dtype("numpy.array", dtype)
  local plain = not ms.is_tensor(obj)
  local x
  -- Numbers of Lua go into float64 without a detour.
  if plain and dtype and type(obj) ~= "table" then x = ms.tensor(obj, dtype) else x = arrays.of("numpy.array", "obj", obj) end
  if dtype and plain and type(obj) == "table" and dtype == ms.float64 then
    local ok, exact = pcall(ms.tensor, obj, dtype)
    x = ok and exact or x
  end
  if dtype then x = arrays.cast(x, dtype) end
  ndmin = arrays.times("numpy.array", "ndmin", ndmin or 0)
  while x.ndim < ndmin do x = ops.expand_dims(x, 0) end
  return x
end

--- A value as a tensor.
---     > ms.numpy.asarray({ 1, 2 }).dtype --> Int64
function M.asarray(a, dtype)
  dtype = arrays.named("numpy.asarray", { "dtype" }, dtype)
  return M.array(a, dtype)
end

--- A value as a tensor of floats. Integers become the default float.
---     > ms.numpy.asfarray({ 1, 2 }).dtype --> Float32
function M.asfarray(a, dtype)
  dtype = arrays.named("numpy.asfarray", { "dtype" }, dtype)
  local x = M.array(a)
  if dtype == nil then
    local kind = arrays.kind(x.dtype)
    return (kind == "f" or kind == "c") and x or arrays.cast(x, ms.float32)
  end
  dtype = arrays.dtype("numpy.asfarray", dtype)
  local kind = arrays.kind(dtype)
  return arrays.cast(x, (kind == "f" or kind == "c") and dtype or ms.float32)
end

--- A copy of a tensor.
---     > ms.numpy.copy(ms.numpy.ones(2)):sum():item() --> 2.0
function M.copy(a) return ops.identity((arrays.of("numpy.copy", "a", a))) end

local filled = family(M, "numpy.", { "shape" }, { "dtype" }, function(where, value, shape, dtype)
  return ops.full(arrays.shape(where, "shape", shape), value, arrays.dtype(where, dtype or ms.float32))
end)
filled("zeros", 0.0, "Zeros. dtype: float32 if it is not given.", "ms.numpy.zeros({ 2, 3 }).shape --> (2, 3)")
filled("ones", 1.0, "Ones. dtype: float32 if it is not given.", "ms.numpy.ones(3, ms.int32):sum():item() --> 3")
filled("empty", 0.0, "A tensor whose elements mean nothing: zeros.", "ms.numpy.empty({ 2, 2 }).dtype --> Float32")

--- A tensor of one value, which may be a tensor that is broadcast to shape.
---     > ms.numpy.full({ 2 }, 7):sum():item() --> 14
function M.full(shape, fill_value, dtype)
  dtype = arrays.named("numpy.full", { "dtype" }, dtype)
  local x = M.array(fill_value, dtype)
  return ops.broadcast_to(x, arrays.shape("numpy.full", "shape", shape))
end

local function like(operand)
  return family(M, "numpy.", { operand }, { "dtype", "shape" }, function(where, value, a, dtype, shape)
    local x, plain = arrays.of(where, "a", a)
    dtype = arrays.dtype(where, dtype) or (plain == "float" and ms.float32 or x.dtype)
    return ops.full(shape and arrays.shape(where, "shape", shape) or arrays.sizes(x), value, dtype)
  end)
end
like "a" ("zeros_like", 0, "Zeros of a's shape and dtype, or of those given.", "ms.numpy.zeros_like({ 1.5, 2.5 }).dtype --> Float32")
like "a" ("ones_like", 1, "Ones of a's shape and dtype, or of those given.", "ms.numpy.ones_like({ { 1, 2 } }).shape --> (1, 2)")
like "prototype" ("empty_like", 0, "A tensor of a's shape and dtype whose elements mean nothing: zeros.",
  "ms.numpy.empty_like({ 1, 2 }).dtype --> Int64")

--- A tensor of one value of a's shape and dtype, or of those given.
---     > ms.numpy.full_like({ 1, 2 }, 9):sum():item() --> 18
function M.full_like(a, fill_value, dtype, shape)
  dtype, shape = arrays.named("numpy.full_like", { "dtype", "shape" }, dtype, shape)
  local x = arrays.of("numpy.full_like", "a", a)
  dtype = arrays.dtype("numpy.full_like", dtype) or x.dtype
  local sizes = shape and arrays.shape("numpy.full_like", "shape", shape) or arrays.sizes(x)
  return ops.broadcast_to(M.array(fill_value, dtype), sizes)
end

--- Numbers from start (0) up to stop, which is not among them, by step (1). arange(stop) starts at 0.
---     > ms.numpy.arange(1, 7, 2):tolist()[3] --> 5
function M.arange(start, stop, step, dtype)
  start, stop, step, dtype = arrays.named("numpy.arange", { "start", "stop", "step", "dtype" }, start, stop, step, dtype)
  local where = "numpy.arange"
  if stop == nil then start, stop = 0, start end
  start, stop = arrays.number(where, "start", start or 0), arrays.number(where, "stop", stop)
  step = arrays.number(where, "step", step or 1)
  if step == 0 then arrays.fail(where, "step must not be 0") end
  return ops.arange(start, stop, step, arrays.dtype(where, dtype))
end

-- start + i * (stop - start) / n for i = 0, 1, ..., in float64; start and stop are numbers or tensors.
local function steps(where, start, stop, num, endpoint)
  num = arrays.integer(where, "num", num)
  if num < 0 then arrays.fail(where, ("num must not be negative, got %d"):format(num)) end
  local a, b, dtype, plain = arrays.pair(where, start, stop, "start", "stop")
  dtype = plain and ms.float32 or arrays.float_of(dtype, false)
  a, b = arrays.cast(a, ms.float64), arrays.cast(b, ms.float64)
  if type(start) == "number" then a = ms.tensor(start + 0.0, ms.float64) end
  if type(stop) == "number" then b = ms.tensor(stop + 0.0, ms.float64) end
  local parts = endpoint and num - 1 or num
  local i = ops.arange(0, num, 1, ms.float64)
  local sizes = { num }
  for k = 1, math.max(a.ndim, b.ndim) do sizes[k + 1] = 1 end
  i = i:reshape(sizes)
  local step = (b - a) / (parts > 0 and parts or 1)
  local y = a + i * step
  -- The end is exact.
  if endpoint and num > 1 then y = ops.where(ops.equal(i, num - 1), ops.broadcast_to(b, arrays.sizes(step)), y) end
  return y, dtype, step
end

--- num (50) numbers from start to stop in equal steps. endpoint: whether stop is one of them (true). retstep: also gives the step.
--- start and stop may be tensors; the new axis is the first, or axis.
---     > ms.numpy.linspace(0, 1, 5):tolist()[2] --> 0.25
function M.linspace(start, stop, num, endpoint, retstep, dtype, axis)
  local where = "numpy.linspace"
  num, endpoint, retstep, dtype, axis =
    arrays.named(where, { "num", "endpoint", "retstep", "dtype", "axis" }, num, endpoint, retstep, dtype, axis)
  local y, natural, step = steps(where, start, stop, num or 50, endpoint ~= false)
  if axis and axis ~= 0 then y = ops.movedim(y, 0, axis) end
  local wanted = arrays.dtype(where, dtype) or natural
  local kind = arrays.kind(wanted)
  if kind == "i" or kind == "u" then y = ops.floor(y) end
  y = arrays.cast(y, wanted)
  if retstep then return y, arrays.cast(step, natural) end
  return y
end

--- base (10) to the powers of num (50) numbers from start to stop in equal steps.
---     > ms.numpy.logspace(0, 2, 3):tolist()[3] --> 100.0
function M.logspace(start, stop, num, endpoint, base, dtype, axis)
  local where = "numpy.logspace"
  num, endpoint, base, dtype, axis =
    arrays.named(where, { "num", "endpoint", "base", "dtype", "axis" }, num, endpoint, base, dtype, axis)
  local y, natural = steps(where, start, stop, num or 50, endpoint ~= false)
  if axis and axis ~= 0 then y = ops.movedim(y, 0, axis) end
  y = ops.pow(ms.tensor(arrays.number(where, "base", base or 10) + 0.0, ms.float64), y)
  return arrays.cast(y, arrays.dtype(where, dtype) or natural)
end

--- num (50) numbers from start to stop, each the one before times the same factor.
---     > ms.numpy.geomspace(1, 8, 4):tolist()[3] --> 4.0
function M.geomspace(start, stop, num, endpoint, dtype, axis)
  local where = "numpy.geomspace"
  num, endpoint, dtype, axis = arrays.named(where, { "num", "endpoint", "dtype", "axis" }, num, endpoint, dtype, axis)
  num, endpoint = arrays.integer(where, "num", num or 50), endpoint ~= false
  local a, b, natural, plain = arrays.pair(where, start, stop, "start", "stop")
  natural = plain and ms.float32 or arrays.float_of(natural, false)
  a, b = arrays.cast(a, ms.float64), arrays.cast(b, ms.float64)
  if type(start) == "number" then a = ms.tensor(start + 0.0, ms.float64) end
  if type(stop) == "number" then b = ms.tensor(stop + 0.0, ms.float64) end
  if ops.any(ops.less_equal(a * b, 0.0)):item() then
    arrays.fail(where, "start and stop must not be 0 and must have the same sign")
  end
  local sign = ops.sign(a)
  local powers = steps(where, ops.log10(ops.abs(a)), ops.log10(ops.abs(b)), num, endpoint)
  local y = sign * ops.pow(ms.tensor(10.0, ms.float64), powers)
  -- Both ends are exact.
  local sizes = { num }
  for k = 2, y.ndim do sizes[k] = 1 end
  local i = ops.arange(0, num):reshape(sizes)
  y = ops.where(ops.equal(i, 0), a + ops.zeros_like(y), y)
  if endpoint and num > 1 then y = ops.where(ops.equal(i, num - 1), b + ops.zeros_like(y), y) end
  if axis and axis ~= 0 then y = ops.movedim(y, 0, axis) end
  return arrays.cast(y, arrays.dtype(where, dtype) or natural)
end

--- A matrix with ones on the diagonal k, n rows and m columns (n).
---     > ms.numpy.eye(2):tolist()[1][1] --> 1.0
function M.eye(n, m, k, dtype)
  m, k, dtype = arrays.named("numpy.eye", { "m", "k", "dtype" }, m, k, dtype)
  local where = "numpy.eye"
  n = arrays.integer(where, "n", n)
  m, k = arrays.integer(where, "m", m or n), arrays.integer(where, "k", k or 0)
  if n < 0 or m < 0 then arrays.fail(where, ("sizes must not be negative, got %d and %d"):format(n, m)) end
  local rows, columns = ops.arange(0, n):reshape { n, 1 }, ops.arange(0, m):reshape { 1, m }
  return arrays.cast(ops.equal(columns, rows + k), arrays.dtype(where, dtype) or ms.float32)
end

--- The square matrix with ones on the diagonal.
---     > ms.numpy.identity(3).shape --> (3, 3)
function M.identity(n, dtype)
  dtype = arrays.named("numpy.identity", { "dtype" }, dtype)
  return M.eye(n, nil, 0, dtype)
end

--- A matrix with ones on the diagonal k and below it, zeros above.
---     > ms.numpy.tri(2):sum():item() --> 3.0
function M.tri(n, m, k, dtype)
  m, k, dtype = arrays.named("numpy.tri", { "m", "k", "dtype" }, m, k, dtype)
  local where = "numpy.tri"
  n = arrays.integer(where, "n", n)
  m, k = arrays.integer(where, "m", m or n), arrays.integer(where, "k", k or 0)
  local rows, columns = ops.arange(0, n):reshape { n, 1 }, ops.arange(0, m):reshape { 1, m }
  return arrays.cast(ops.less_equal(columns, rows + k), arrays.dtype(where, dtype) or ms.float32)
end

--- Random numbers of [0, 1): a tensor of these sizes. The last argument may be { dtype = }.
---     > ms.numpy.rand(2, 3).shape --> (2, 3)
function M.rand(...)
  local sizes, dtype = M._sizes("numpy.rand", ...)
  return ops.rand(sizes, dtype)
end

--- Random numbers of the normal distribution: a tensor of these sizes. The last argument may be { dtype = }.
---     > ms.numpy.randn(4).shape --> (4,)
function M.randn(...)
  local sizes, dtype = M._sizes("numpy.randn", ...)
  return ops.randn(sizes, dtype)
end

function M._sizes(where, ...)
  local list, dtype = { ... }, nil
  local last = list[#list]
  if type(last) == "table" and type(next(last)) == "string" then
    list[#list] = nil
    dtype = arrays.dtype(where, arrays.named(where, { "dtype" }, last))
  end
  if #list == 1 and math.type(list[1]) == nil then list = list[1] end
  return arrays.shape(where, "shape", list), dtype or ms.float32
end

--- Random integers from minval up to maxval, which is not among them; randint(maxval) starts at 0. shape: nil gives one number.
---     > ms.numpy.randint(5, 6, { 2 }):sum():item() --> 10
function M.randint(minval, maxval, shape, dtype)
  maxval, shape, dtype = arrays.named("numpy.randint", { "maxval", "shape", "dtype" }, maxval, shape, dtype)
  local where = "numpy.randint"
  if maxval == nil then minval, maxval = 0, minval end
  minval, maxval = arrays.integer(where, "minval", minval), arrays.integer(where, "maxval", maxval)
  if minval >= maxval then arrays.fail(where, ("minval %d must be less than maxval %d"):format(minval, maxval)) end
  return ops.randint(minval, maxval, arrays.shape(where, "shape", shape or {}), nil, arrays.dtype(where, dtype))
end

-- Of cosines over m points, as windows are, in float64: a[1] - a[2] cos(x) + a[3] cos(2 x).
local function window(where, m, f)
  m = arrays.integer(where, "M", m)
  if m < 1 then return ops.zeros({ 0 }, ms.float32) end
  if m == 1 then return ops.ones({ 1 }, ms.float32) end
  return ops.cast(f(ops.arange(0, m, 1, ms.float64) * (2 * math.pi / (m - 1))), ms.float32)
end

--- Bartlett's window, a triangle, of M points.
---     > ms.numpy.bartlett(3):tolist()[2] --> 1.0
function M.bartlett(m)
  return window("numpy.bartlett", m, function(x) return 1.0 - ops.abs(x / math.pi - 1.0) end)
end

--- Blackman's window of m points.
---     > ms.numpy.blackman(3).shape --> (3,)
function M.blackman(m)
  return window("numpy.blackman", m, function(x) return 0.42 - 0.5 * ops.cos(x) + 0.08 * ops.cos(x * 2.0) end)
end

--- Hamming's window of m points.
---     > ms.numpy.hamming(3):tolist()[2] --> 1.0
function M.hamming(m)
  return window("numpy.hamming", m, function(x) return 0.54 - 0.46 * ops.cos(x) end)
end

--- Hann's window of m points.
---     > ms.numpy.hanning(3):tolist()[2] --> 1.0
function M.hanning(m)
  return window("numpy.hanning", m, function(x) return 0.5 - 0.5 * ops.cos(x) end)
end

--- The powers of x as columns: n of them (the length of x), from the highest, or from the lowest (increasing).
---     > ms.numpy.vander({ 2, 3 }, 3):tolist()[1][1] --> 4
function M.vander(x, n, increasing)
  n, increasing = arrays.named("numpy.vander", { "n", "increasing" }, n, increasing)
  local where = "numpy.vander"
  local plain
  x, plain = arrays.of(where, "x", x)
  if x.ndim ~= 1 then arrays.fail(where, "x must have one axis") end
  x = arrays.cast(x, plain and x.dtype == ms.float32 and x.dtype or arrays.promote(x.dtype, ms.int64))
  n = arrays.integer(where, "n", n or x.size)
  if n > 100000 then arrays.fail(where, ("n must be at most 100000, got %d"):format(n)) end
  if n <= 0 then return ops.zeros({ x.size, 0 }, x.dtype) end
  local columns = { ops.ones_like(x) }
  for i = 2, n do columns[i] = columns[i - 1] * x end
  local powers = ops.stack(columns, 1)
  return increasing and powers or ops.flip(powers, 1)
end

--- The dtype that both dtypes are promoted to.
---     > ms.numpy.promote_types(ms.int32, ms.float32) --> Float64
function M.promote_types(type1, type2)
  return arrays.promote(arrays.dtype("numpy.promote_types", type1), arrays.dtype("numpy.promote_types", type2))
end

--- The dtype that these tensors, numbers and dtypes are promoted to.
---     > ms.numpy.result_type(ms.numpy.ones(2, ms.int8), 3) --> Int8
function M.result_type(...)
  local list = table.pack(...)
  for i = 1, list.n do
    local ok, dtype = pcall(arrays.dtype, "numpy.result_type", not ms.is_tensor(list[i]) and list[i] or nil)
    if ok and dtype then list[i] = ops.zeros({ 0 }, dtype) end
  end
  if list.n == 0 then arrays.fail("numpy.result_type", "at least one argument is expected") end
  local sample = {}
  for i = 1, list.n do
    local x = list[i]
    sample[i] = ms.is_tensor(x) and ops.zeros({ 0 }, x.dtype) or type(x) == "boolean" and ops.zeros({ 0 }, ms.bool_) or x
  end
  local _, dtype = arrays.together("numpy.result_type", { "argument" }, sample, list.n)
  return dtype
end

return M
