-- ms.numpy: products of vectors and matrices, norms, polynomials, interpolation, Fourier transforms.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local cast, result = arrays.cast, arrays.result
local M = { fft = {} }

local function tensor(where, x, name) return (arrays.of(where, name or "a", x)) end

-- Products of booleans are numbers of products that are true, which is asked of integers.
local function product(where, a, b, f)
  local x, y = arrays.pair(where, a, b, "a", "b")
  if x.dtype ~= ms.bool_ then return f(x, y) end
  return ops.not_equal(f(cast(x, ms.int64), cast(y, ms.int64)), 0)
end

--- Product of vectors and matrices: of two vectors their inner product, else sums of products over the last axis of a and the last but one
--- of b. Numbers multiply.
---     > ms.numpy.dot({ 1, 2 }, { 3, 4 }):item() --> 11
function M.dot(a, b)
  return product("numpy.dot", a, b, function(x, y)
    if x.ndim == 0 or y.ndim == 0 then return ops.mul(x, y) end
    return ops.tensor_dot(x, y, { { x.ndim - 1 }, { math.max(y.ndim - 2, 0) } })
  end)
end

--- Sums of products over the last axes of both. Numbers multiply.
---     > ms.numpy.inner({ 1, 2 }, { 3, 4 }):item() --> 11
function M.inner(a, b)
  return product("numpy.inner", a, b, function(x, y)
    if x.ndim == 0 or y.ndim == 0 then return ops.mul(x, y) end
    return ops.tensor_dot(x, y, { { x.ndim - 1 }, { y.ndim - 1 } })
  end)
end

--- Sum of products of the elements in a row; of complex numbers the first ones are conjugated.
---     > ms.numpy.vdot({ { 1, 2 } }, { { 3 }, { 4 } }):item() --> 11
function M.vdot(a, b)
  return product("numpy.vdot", a, b, function(x, y)
    if arrays.kind(x.dtype) == "c" then x = ops.conj(x) end
    return ops.tensor_dot(ops.reshape(x, { -1 }), ops.reshape(y, { -1 }), 1)
  end)
end

--- Sums of products. subscripts: a letter for each axis of each operand, then "->" and the axes of the result. The operands follow.
---     > ms.numpy.einsum("ij,jk->ik", { { 1, 2 } }, { { 3 }, { 4 } }):item() --> 11
function M.einsum(subscripts, ...)
  local count = select("#", ...)
  if type(subscripts) ~= "string" then
    arrays.fail("numpy.einsum", "subscripts must be a text such as \"ij,jk->ik\", got " .. arrays.describe(subscripts))
  end
  if count == 0 then arrays.fail("numpy.einsum", "an operand is expected behind the subscripts") end
  return ops.einsum(subscripts, (arrays.together("numpy.einsum", { "operands" }, { ... }, count)))
end

--- Products of all pairs of elements, as a matrix.
---     > ms.numpy.outer({ 1, 2 }, { 3, 4 }):tolist()[2][2] --> 8
function M.outer(a, b)
  return product("numpy.outer", a, b, function(x, y) return ops.mul(ops.reshape(x, { -1, 1 }), ops.reshape(y, { 1, -1 })) end)
end

--- Product of matrices, or of stacks of them; vectors are rows on the left and columns on the right.
---     > ms.numpy.matmul({ { 1, 2 } }, { { 3 }, { 4 } }):item() --> 11
function M.matmul(x1, x2, dtype)
  dtype = arrays.named("numpy.matmul", { "dtype" }, dtype)
  return result("numpy.matmul", product("numpy.matmul", x1, x2, function(x, y)
    if x.ndim == 0 or y.ndim == 0 then arrays.fail("numpy.matmul", "x1 and x2 must have axes", "ms.numpy.multiply takes numbers") end
    return ops.matmul(x, y)
  end), dtype)
end

--- Sums of products over axes: the last axes of a with as many first ones of b, or those named by { axes of a, axes of b }.
---     > ms.numpy.tensordot({ { 1, 2 } }, { { 3 }, { 4 } }, 1):item() --> 11
function M.tensordot(a, b, axes)
  axes = arrays.named("numpy.tensordot", { "axes" }, axes)
  return product("numpy.tensordot", a, b, function(x, y) return ops.tensor_dot(x, y, axes or 2) end)
end

--- Kronecker's product: each element of a times the whole of b.
---     > ms.numpy.kron({ 1, 2 }, { 1, 1 }):tolist()[4] --> 2
function M.kron(a, b)
  return product("numpy.kron", a, b, function(x, y)
    local left, right = arrays.sizes(x), arrays.sizes(y)
    while #left < #right do table.insert(left, 1, 1) end
    while #right < #left do table.insert(right, 1, 1) end
    local wide, high, sizes = {}, {}, {}
    for i = 1, #left do
      wide[2 * i - 1], wide[2 * i] = left[i], 1
      high[2 * i - 1], high[2 * i] = 1, right[i]
      sizes[i] = left[i] * right[i]
    end
    return ops.reshape(ops.mul(ops.reshape(x, wide), ops.reshape(y, high)), sizes)
  end)
end

--- Cross product of vectors with 3 (or 2) elements, along the last axes or those given. Of two vectors with 2 elements the third element.
---     > ms.numpy.cross({ 1, 0, 0 }, { 0, 1, 0 }):tolist()[3] --> 1
function M.cross(a, b, axisa, axisb, axisc, axis)
  local where = "numpy.cross"
  axisa, axisb, axisc, axis = arrays.named(where, { "axisa", "axisb", "axisc", "axis" }, axisa, axisb, axisc, axis)
  local x, y = arrays.pair(where, a, b, "a", "b")
  x, y = ops.movedim(x, axis or axisa or -1, -1), ops.movedim(y, axis or axisb or -1, -1)
  local n, m = x.shape[x.ndim], y.shape[y.ndim]
  if (n ~= 2 and n ~= 3) or (m ~= 2 and m ~= 3) then
    arrays.fail(where, ("vectors must have 2 or 3 elements, got %d and %d"):format(n, m))
  end
  local function at(v, i)
    if v.ndim == 1 then return v[i] end
    local sizes = arrays.sizes(v)
    sizes[#sizes] = nil
    return ops.reshape(ops.narrow(v, v.ndim - 1, i, 1), sizes)
  end
  local third = at(x, 0) * at(y, 1) - at(x, 1) * at(y, 0)
  if n == 2 and m == 2 then return third end
  local x3 = n == 3 and at(x, 2) or ops.zeros_like(at(x, 0))
  local y3 = m == 3 and at(y, 2) or ops.zeros_like(at(y, 0))
  local parts = { at(x, 1) * y3 - x3 * at(y, 1), x3 * at(y, 0) - at(x, 0) * y3, third }
  local z = ops.stack(parts, -1)
  local to = axis or axisc
  return to and ops.movedim(z, -1, to) or z
end

-- The order of multiplications in a chain of matrices with the fewest products: for each piece where it is cut.
local function chain_order(sizes)
  local n = #sizes - 1
  local cost, cut = {}, {}
  for i = 1, n do cost[i], cut[i] = { [i] = 0 }, {} end
  for length = 2, n do
    for i = 1, n - length + 1 do
      local j = i + length - 1
      cost[i][j] = math.huge
      for k = i, j - 1 do
        local c = cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
        if c < cost[i][j] then cost[i][j], cut[i][j] = c, k end
      end
    end
  end
  return cut
end

--- Product of a chain of matrices in the order that takes the fewest operations; the first and the last may be vectors.
---     > ms.numpy.multi_dot({ { { 1, 2 } }, { { 3 }, { 4 } }, { { 5 } } }):item() --> 55
function M.multi_dot(tensors)
  local where = "numpy.multi_dot"
  if type(tensors) ~= "table" or #tensors < 2 then arrays.fail(where, "a table of at least two matrices is expected") end
  local list = {}
  for i, x in ipairs(tensors) do list[i] = x end
  list = arrays.together(where, { "arrays" }, list, #list)
  local first, last = list[1].ndim == 1, list[#list].ndim == 1
  if first then list[1] = ops.reshape(list[1], { 1, -1 }) end
  if last then list[#list] = ops.reshape(list[#list], { -1, 1 }) end
  local sizes = {}
  for i, x in ipairs(list) do
    if x.ndim ~= 2 then arrays.fail(where, ("tensor %d must be a matrix, got %d axes"):format(i, x.ndim)) end
    sizes[i], sizes[i + 1] = x.shape[1], x.shape[2]
  end
  local cut = chain_order(sizes)
  local function multiply(i, j)
    if i == j then return list[i] end
    return M.matmul(multiply(i, cut[i][j]), multiply(cut[i][j] + 1, j))
  end
  local y = multiply(1, #list)
  if first and last then return ops.reshape(y, {}) end
  return (first or last) and ops.reshape(y, { -1 }) or y
end

--- Norm of vectors or matrices. ord: nil (the root of the sum of squares), 1, 2, math.huge, -math.huge, 0, another power, and of matrices
--- "fro" and "nuc". axis: nil (all), an axis of vectors or two axes of matrices.
---     > ms.numpy.norm({ 3.0, 4.0 }):item() --> 5.0
function M.norm(x, ord, axis, keepdims)
  local where = "numpy.norm"
  ord, axis, keepdims = arrays.named(where, { "ord", "axis", "keepdims" }, ord, axis, keepdims)
  x = arrays.mean_float(where, "x", x)
  keepdims = keepdims or false
  local axes = axis ~= nil and arrays.axes(where, axis, x.ndim) or nil
  if axes == nil and ord == nil then
    return ops.sqrt(ops.reduce_sum(ops.square(ops.abs(x)), nil, keepdims))
  end
  axes = axes or arrays.axes(where, nil, x.ndim)
  if #axes == 1 then return ops.vector_norm(x, ord or 2, axes[1], keepdims) end
  if #axes ~= 2 then arrays.fail(where, ("a norm takes one or two axes, got %d"):format(#axes)) end
  return ops.matrix_norm(x, ord or "fro", axes, keepdims)
end

-- Sums of products of two sequences that slide past each other: the outer product, whose anti-diagonals are added.
local function slide(where, a, v, mode, turned)
  local x, y = arrays.pair(where, a, v, "a", "v")
  if x.ndim > 1 or y.ndim > 1 then arrays.fail(where, "sequences (tensors with one axis) are expected") end
  x, y = x:reshape { -1 }, y:reshape { -1 }
  local n, m = x.size, y.size
  if n == 0 or m == 0 then arrays.fail(where, "a and v must not be empty") end
  if not turned then y = ops.flip(y, 0) end
  local dtype = x.dtype
  if x.dtype == ms.bool_ then x, y = cast(x, ms.int8), cast(y, ms.int8) end
  local products = ops.mul(x:reshape { n, 1 }, y:reshape { 1, m })
  -- Rows one longer than the others shift each row by one place.
  local shifted = ops.pad(products, { 0, n })
  shifted = shifted:reshape { -1 }:slice({ 0 }, { n * (n + m - 1) }):reshape { n, n + m - 1 }
  local full = ops.reduce_sum(shifted, 0)
  if dtype == ms.bool_ then full = ops.not_equal(full, 0) end
  local shorter, longer = math.min(n, m), math.max(n, m)
  if mode == "full" then return full end
  -- Which of two middles of a correlation "same" takes depends on which is longer.
  if mode == "same" then
    local first = (shorter - 1) // 2
    if not turned and m > n then first = shorter - 1 - first end
    return ops.narrow(full, 0, first, longer)
  end
  if mode == "valid" then return ops.narrow(full, 0, shorter - 1, longer - shorter + 1) end
  return arrays.fail(where, ("mode must be 'full', 'same' or 'valid', got %s"):format(arrays.describe(mode)))
end

--- Product of two sequences as of polynomials. mode: "full" (all sums), "same" (as long as the longer one), "valid" (whole overlaps).
---     > ms.numpy.convolve({ 1, 2, 3 }, { 0, 1 })
---     Tensor(shape=[4], dtype=Int64, value=
---     [0, 1, 2, 3])
function M.convolve(a, v, mode)
  mode = arrays.named("numpy.convolve", { "mode" }, mode) or "full"
  return slide("numpy.convolve", a, v, mode, true)
end

--- Sums of products of a with v at each place. mode: "valid", "same" or "full".
---     > ms.numpy.correlate({ 1, 2, 3 }, { 0, 1 })
---     Tensor(shape=[2], dtype=Int64, value=
---     [2, 3])
function M.correlate(a, v, mode)
  mode = arrays.named("numpy.correlate", { "mode" }, mode) or "valid"
  return slide("numpy.correlate", a, v, mode, false)
end

-- Polynomials: coefficients from the highest power on

local function coefficients(where, p, name)
  local x = ops.atleast_1d(tensor(where, p, name))
  if x.ndim ~= 1 then arrays.fail(where, (name or "p") .. " must have one axis") end
  return x
end

local function of_one_length(where, a1, a2)
  local a, b = arrays.pair(where, coefficients(where, a1, "a1"), coefficients(where, a2, "a2"))
  local n = math.max(a.size, b.size)
  local function longer(x) return x.size == n and x or ops.concat({ ops.zeros({ n - x.size }, x.dtype), x }, 0) end
  return longer(a), longer(b)
end

-- Without the zeros in front.
local function trimmed(x)
  local n, first = x.size, 0
  while first < n - 1 and x[first]:item() == 0 do first = first + 1 end
  return first == 0 and x or ops.narrow(x, 0, first, n - first)
end

--- Sum of polynomials, whose coefficients are given from the highest power on.
---     > ms.numpy.polyadd({ 1, 2 }, { 9, 5, 4 }):tolist()[2] --> 6
function M.polyadd(a1, a2)
  local a, b = of_one_length("numpy.polyadd", a1, a2)
  return a + b
end

--- Difference of polynomials, whose coefficients are given from the highest power on.
---     > ms.numpy.polysub({ 2, 10, -2 }, { 3, 10, -4 }):tolist()[1] --> -1
function M.polysub(a1, a2)
  local a, b = of_one_length("numpy.polysub", a1, a2)
  return a - b
end

--- Product of polynomials, whose coefficients are given from the highest power on.
---     > ms.numpy.polymul({ 1, 2 }, { 1, 3 }):tolist()[2] --> 5
function M.polymul(a1, a2)
  local where = "numpy.polymul"
  local a, b = arrays.pair(where, coefficients(where, a1, "a1"), coefficients(where, a2, "a2"))
  return M.convolve(trimmed(a), trimmed(b))
end

--- The polynomial with coefficients p, from the highest power on, at x.
---     > ms.numpy.polyval({ 3, 0, 1 }, 5):item() --> 76
function M.polyval(p, x)
  local c, at = arrays.pair("numpy.polyval", coefficients("numpy.polyval", p), x, "p", "x")
  local y = ops.zeros_like(at)
  for i = 0, c.size - 1 do y = y * at + c[i] end
  return y
end

--- The polynomial of degree deg whose values at x differ least from y (the sum of squares): its coefficients, from the highest power on;
--- one column for each column of y. w: weights of the differences, before they are squared.
---     > ms.numpy.polyfit({ 0.0, 1.0, 2.0 }, { 1.0, 3.0, 5.0 }, 1):tolist()[1] --> 2.0
function M.polyfit(x, y, deg, w)
  local where = "numpy.polyfit"
  w = arrays.named(where, { "w" }, w)
  local list, _, plain = arrays.together(where, { "x", "y" }, { x, y }, 2)
  local at, to, n = cast(list[1], ms.float64), cast(list[2], ms.float64), arrays.times(where, "deg", deg) + 1
  if at.ndim ~= 1 or at.size == 0 then arrays.fail(where, "x must be a sequence of at least one number") end
  if to.ndim < 1 or to.ndim > 2 or to.shape[1] ~= at.size then
    arrays.fail(where, ("y must have a value, or a row of them, for each of the %d elements of x"):format(at.size))
  end
  local powers = ops.pow(ops.reshape(at, { -1, 1 }), ops.arange(n - 1, -1, -1, ms.float64))
  local columns = ops.reshape(to, { at.size, -1 })
  if w ~= nil then
    local weights = cast(tensor(where, w, "w"), ms.float64)
    if weights.ndim ~= 1 or weights.size ~= at.size then arrays.fail(where, "w must have as many elements as x") end
    weights = ops.reshape(weights, { -1, 1 })
    powers, columns = powers * weights, columns * weights
  end
  -- Columns of one length have the better condition.
  local lengths = ops.sqrt(ops.reduce_sum(powers * powers, 0))
  lengths = ops.where(ops.equal(lengths, 0.0), ops.ones_like(lengths), lengths)
  local c = ops.matmul(ops.pinv(powers / lengths), columns) / ops.reshape(lengths, { -1, 1 })
  if to.ndim == 1 then c = ops.reshape(c, { -1 }) end
  return cast(c, plain and ms.float32 or ms.float64)
end

--- The derivative of a polynomial, m times.
---     > ms.numpy.polyder({ 1, 1, 1, 1 }):tolist()[1] --> 3
function M.polyder(p, m)
  m = arrays.named("numpy.polyder", { "m" }, m)
  local c = coefficients("numpy.polyder", p)
  m = arrays.times("numpy.polyder", "m", m or 1)
  for _ = 1, m do
    local n = c.size - 1
    if n <= 0 then return ops.zeros({ 0 }, c.dtype) end
    local powers = ops.arange(n, 0, -1, ms.int64)
    local a, b = arrays.pair("numpy.polyder", ops.narrow(c, 0, 0, n), powers)
    c = a * b
  end
  return c
end

--- The integral of a polynomial, m times. k: the constants, a number or one for each time.
---     > ms.numpy.polyint({ 2.0, 1.0 }):tolist()[1] --> 1.0
function M.polyint(p, m, k)
  m, k = arrays.named("numpy.polyint", { "m", "k" }, m, k)
  local where = "numpy.polyint"
  local c, plain = arrays.of(where, "p", p)
  c = coefficients(where, c)
  m = arrays.times(where, "m", m or 1)
  if m == 0 then return c end
  local constants = k
  if ms.is_tensor(k) then constants = k.ndim == 0 and k:item() or k:tolist() end
  local dtype = plain and ms.float32 or arrays.promote(c.dtype, ms.float64)
  c = cast(c, dtype)
  for i = 1, m do
    local value = type(constants) == "table" and constants[#constants == 1 and 1 or i] or constants or 0
    if type(value) == "table" or value == nil then arrays.fail(where, "k must be a number or one number for each time") end
    local powers = ops.arange(c.size, 0, -1, ms.int64)
    c = ops.concat({ c / cast(powers, dtype), ops.full({ 1 }, value + 0.0, dtype) }, 0)
  end
  return c
end

--- Straight lines between the points (xp, fp), at x; left of them left (the first fp), right of them right (the last one). period: xp
--- repeats after this distance.
---     > ms.numpy.interp(2.5, { 1, 2, 3 }, { 3, 2, 0 }):item() --> 1.0
function M.interp(x, xp, fp, left, right, period)
  local where = "numpy.interp"
  left, right, period = arrays.named(where, { "left", "right", "period" }, left, right, period)
  local list, _, plain = arrays.together(where, { "x", "xp", "fp" }, { x, xp, fp }, 3)
  local dtype = plain and ms.float32 or ms.float64
  local at, from, to = cast(list[1], ms.float64), cast(list[2], ms.float64), cast(list[3], ms.float64)
  if from.ndim ~= 1 or to.ndim ~= 1 or from.size ~= to.size or from.size == 0 then
    arrays.fail(where, "xp and fp must be sequences of the same length, at least 1")
  end
  if period ~= nil then
    period = math.abs(arrays.number(where, "period", period))
    if period == 0 then arrays.fail(where, "period must not be 0") end
    at, from = ops.remainder(at, period), ops.remainder(from, period)
    local order = ops.argsort(from)
    from, to = ops.gather(from, order, 0), ops.gather(to, order, 0)
    from = ops.concat({ from[{ ms.slice(-1) }] - period, from, from[{ ms.slice(0, 1) }] + period }, 0)
    to = ops.concat({ to[{ ms.slice(-1) }], to, to[{ ms.slice(0, 1) }] }, 0)
  end
  local n = from.size
  local flat = ops.reshape(at, { -1 })
  local index = ops.clamp(cast(ops.searchsorted(from, flat, { right = true }), ms.int64) - 1, 0, math.max(n - 2, 0))
  local after = ops.clamp(index + 1, 0, n - 1)
  local x0, x1 = ops.gather(from, index, 0), ops.gather(from, after, 0)
  local y0, y1 = ops.gather(to, index, 0), ops.gather(to, after, 0)
  local width = x1 - x0
  width = ops.where(ops.equal(width, 0.0), ops.ones_like(width), width)
  local y = y0 + (flat - x0) * ((y1 - y0) / width)
  local function edge(value, i) return value == nil and to[i] or cast(tensor(where, value), ms.float64) end
  if period ~= nil then left, right = nil, nil end
  y = ops.where(ops.less(flat, from[0]), edge(left, 0) + ops.zeros_like(y), y)
  y = ops.where(ops.greater(flat, from[-1]), edge(right, -1) + ops.zeros_like(y), y)
  y = ops.where(ops.equal(flat, from[-1]), to[-1] + ops.zeros_like(y), y)
  return cast(ops.reshape(y, arrays.sizes(at)), dtype)
end

--- The elements as text, as print shows them.
---     > type(ms.numpy.array_str({ 1, 2 })) --> string
function M.array_str(a)
  return (tostring(tensor("numpy.array_str", a)):gsub("^Tensor%(.-value=%s*", ""):gsub("%)$", ""))
end

-- Fourier transforms

-- Rows of transforms along one axis, and along several, by default the axes given here.
local function transform(names, default)
  return rows.family(M.fft, "numpy.fft.", { "a" }, names, function(where, f, a, n, axis, norm)
    local x = arrays.of(where, "a", a)
    local kind = arrays.kind(x.dtype)
    if kind ~= "f" and kind ~= "c" then x = cast(x, ms.is_tensor(a) and ms.float64 or ms.float32) end
    return f(x, n, axis or default, norm)
  end)
end

local one_axis, several = transform({ "n", "axis", "norm" }, -1), { "s", "axes", "norm" }
local two_axes, all_axes = transform(several, { -2, -1 }), transform(several)
one_axis("fft", ops.fft, "The discrete Fourier transform along an axis: n elements of it, cut or filled with zeros. norm: \"backward\", "
  .. "\"ortho\" or \"forward\", where the factor 1/n stands.", "ms.numpy.fft.fft({ 1.0, 0.0 }).shape --> (2,)")
one_axis("ifft", ops.ifft, "The inverse of fft.", "ms.numpy.fft.ifft({ 1.0, 0.0 }).shape --> (2,)")
one_axis("rfft", ops.rfft, "The discrete Fourier transform of real numbers: its first half, which has the other one in it.",
  "ms.numpy.fft.rfft({ 1.0, 0.0, 0.0, 0.0 }).shape --> (3,)")
one_axis("irfft", ops.irfft, "The inverse of rfft: n real numbers, 2 (m - 1) of m if it is not given.",
  "ms.numpy.fft.irfft(ms.numpy.fft.rfft({ 1.0, 2.0 })):tolist()[2] --> 2.0")
two_axes("fft2", ops.fft2, "fft along two axes, the last two if none are given.", "ms.numpy.fft.fft2({ { 1.0, 0.0 } }).shape --> (1, 2)")
two_axes("ifft2", ops.ifft2, "The inverse of fft2.", "ms.numpy.fft.ifft2({ { 1.0, 0.0 } }).shape --> (1, 2)")
all_axes("fftn", ops.fftn, "fft along several axes, all if none are given.", "ms.numpy.fft.fftn({ { 1.0, 0.0 } }).shape --> (1, 2)")
all_axes("ifftn", ops.ifftn, "The inverse of fftn.", "ms.numpy.fft.ifftn({ { 1.0, 0.0 } }).shape --> (1, 2)")

local frequencies = rows.family(M.fft, "numpy.fft.", { "n" }, { "d" }, function(_, f, n, d) return f(n, d or 1.0) end)
frequencies("fftfreq", ops.fftfreq, "The frequencies of the elements that fft gives for n values at the distance d (1).",
  "ms.numpy.fft.fftfreq(4):tolist()[2] --> 0.25")
frequencies("rfftfreq", ops.rfftfreq, "The frequencies of the elements that rfft gives for n values at the distance d (1).",
  "ms.numpy.fft.rfftfreq(4):tolist()[3] --> 0.5")

local shift = rows.family(M.fft, "numpy.fft.", { "x" }, { "axes" }, function(where, f, x, axes)
  return f(tensor(where, x, "x"), axes)
end)
shift("fftshift", ops.fftshift, "The frequency 0 moved to the middle, along axes or all of them.",
  "ms.numpy.fft.fftshift({ 0, 1, 2, 3 }):tolist()[1] --> 2")
shift("ifftshift", ops.ifftshift, "The inverse of fftshift.", "ms.numpy.fft.ifftshift({ 0, 1, 2, 3 }):tolist()[1] --> 2")

return M
