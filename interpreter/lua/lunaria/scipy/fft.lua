-- ms.scipy.fft: the transforms of ms.numpy.fft and those of cosines and sines. The latter are products with the matrix of the
-- transform, in the dtype of the input: exact to its last digits, and the derivative is the transposed product.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local family = require("lunaria.numpy.rows").family
local numpy_fft = require("lunaria.numpy.linalg").fft

local ops = ms.ops
local M = {}
for name, f in pairs(numpy_fft) do M[name] = f end

-- The matrix of a transform of n numbers: y = W x, unnormalised as scipy defines it.
local function cosines(kind, n)
  local k, i = ops.arange(0, n, 1, ms.float64):reshape { n, 1 }, ops.arange(0, n, 1, ms.float64):reshape { 1, n }
  local function cos(numerator, denominator)
    -- Angles are taken modulo one turn as integers, so that large ones keep their digits.
    return ops.cos(ops.remainder(numerator, 2.0 * denominator) * (math.pi / denominator))
  end
  if kind == 1 then
    local w = 2.0 * cos(k * i, n - 1)
    local edge = ops.logical_or(ops.equal(i, 0.0), ops.equal(i, n - 1.0))
    return ops.where(edge, w * 0.5, w)
  elseif kind == 2 then
    return 2.0 * cos(k * (2.0 * i + 1.0), 2 * n)
  elseif kind == 3 then
    local w = 2.0 * cos((2.0 * k + 1.0) * i, 2 * n)
    return ops.where(ops.equal(i, 0.0), w * 0.5, w)
  end
  return 2.0 * cos((2.0 * k + 1.0) * (2.0 * i + 1.0), 4 * n)
end

local function sines(kind, n)
  local k, i = ops.arange(0, n, 1, ms.float64):reshape { n, 1 }, ops.arange(0, n, 1, ms.float64):reshape { 1, n }
  local function sin(numerator, denominator)
    return ops.sin(ops.remainder(numerator, 2.0 * denominator) * (math.pi / denominator))
  end
  if kind == 1 then return 2.0 * sin((k + 1.0) * (i + 1.0), n + 1) end
  if kind == 2 then return 2.0 * sin((k + 1.0) * (2.0 * i + 1.0), 2 * n) end
  if kind == 3 then
    local w = 2.0 * sin((2.0 * k + 1.0) * (i + 1.0), 2 * n)
    return ops.where(ops.equal(i, n - 1.0), w * 0.5, w)
  end
  return 2.0 * sin((2.0 * k + 1.0) * (2.0 * i + 1.0), 4 * n)
end

-- Factors of the rows (outputs) or columns (inputs) that make the matrix orthogonal.
local function orthonormal(w, kind, n, is_sine)
  local at = ops.arange(0, n, 1, ms.float64)
  local special = is_sine and n - 1.0 or 0.0
  if kind == 1 then
    local size = is_sine and 2 * (n + 1) or 2 * (n - 1)
    if is_sine then return w * math.sqrt(1 / size) end
    local edge = ops.logical_or(ops.equal(at, 0.0), ops.equal(at, n - 1.0))
    local rows = ops.where(edge, ops.full_like(at, math.sqrt(0.5)), ops.ones_like(at))
    local columns = ops.where(edge, ops.full_like(at, math.sqrt(2)), ops.ones_like(at))
    return w * ops.reshape(rows, { n, 1 }) * columns * math.sqrt(1 / size)
  end
  w = w * math.sqrt(1 / (2 * n))
  if kind == 2 then
    local rows = ops.where(ops.equal(at, special), ops.full_like(at, math.sqrt(0.5)), ops.ones_like(at))
    return w * ops.reshape(rows, { n, 1 })
  elseif kind == 3 then
    return w * ops.where(ops.equal(at, special), ops.full_like(at, math.sqrt(2)), ops.ones_like(at))
  end
  return w
end

local inverse_kind = { 1, 3, 2, 4 }

local function check(where, kind, norm, n, is_sine)
  if kind < 1 or kind > 4 then arrays.fail(where, ("type must be from 1 to 4, got %d"):format(kind)) end
  if norm ~= "backward" and norm ~= "ortho" and norm ~= "forward" then
    arrays.fail(where, ("norm must be 'backward', 'ortho' or 'forward', got %s"):format(arrays.describe(norm)))
  end
  if n < ((kind == 1 and not is_sine) and 2 or 1) then
    arrays.fail(where, ("n must be positive, and 2 or more for type 1, got %d"):format(n))
  end
end

local function transform(where, x, kind, n, axis, norm, inverse, is_sine)
  x = arrays.mean_float(where, "x", x)
  kind, norm = arrays.integer(where, "type", kind or 2), norm or "backward"
  axis = arrays.axis(where, axis or -1, x.ndim)
  local size = x.shape[axis + 1]
  n = n and arrays.integer(where, "n", n) or size
  check(where, kind, norm, n, is_sine)
  local moved = ops.movedim(x, axis, -1)
  if n < size then moved = ops.narrow(moved, -1, 0, n) end
  if n > size then moved = ops.pad(moved, { 0, n - size }) end
  local real = inverse and inverse_kind[kind] or kind
  local w = (is_sine and sines or cosines)(real, n)
  local length = kind == 1 and (is_sine and 2 * (n + 1) or 2 * (n - 1)) or 2 * n
  if norm == "ortho" then w = orthonormal(w, real, n, is_sine) end
  if norm == (inverse and "backward" or "forward") then w = w * (1 / length) end
  local y = ops.matmul(moved, ops.transpose(ops.cast(w, x.dtype)))
  return ops.movedim(y, -1, axis)
end

local along_one = family(M, "scipy.fft.", { "x" }, { "type", "n", "axis", "norm" }, function(where, of, x, kind, n, axis, norm)
  return transform(where, x, kind, n, axis, norm, of.inverse, of.sine)
end)
along_one("dct", {}, "The discrete cosine transform along an axis. type: 1, 2, 3 or 4 (2). n: elements of it, cut or filled with zeros. "
  .. "norm: \"backward\", \"ortho\" (orthogonal) or \"forward\".", "ms.scipy.fft.dct({ 1.0, 1.0 }):tolist()[1] --> 4.0")
along_one("idct", { inverse = true }, "The inverse of dct with the same arguments.", "ms.scipy.fft.idct({ 4.0, 0.0 }):tolist()[2] --> 1.0")
along_one("dst", { sine = true }, "The discrete sine transform along an axis, with the arguments of dct.",
  "ms.scipy.fft.dst({ 1.0 }):tolist()[1] --> 2.0")
along_one("idst", { inverse = true, sine = true }, "The inverse of dst with the same arguments.",
  "ms.scipy.fft.idst({ 2.0 }):tolist()[1] --> 1.0")

local along_all = family(M, "scipy.fft.", { "x" }, { "type", "s", "axes", "norm" }, function(where, f, x, kind, s, axes, norm)
  x = arrays.mean_float(where, "x", x)
  if axes == nil and s ~= nil then
    axes = {}
    for i = 1, #s do axes[i] = x.ndim - #s + i - 1 end
  end
  for i, axis in ipairs(arrays.axes(where, axes, x.ndim)) do x = f(x, kind, s and s[i], axis, norm) end
  return x
end)
along_all("dctn", M.dct, "The discrete cosine transform along several axes, all if none are given. s: how many elements of each.",
  "ms.scipy.fft.dctn({ { 1.0, 1.0 } }).shape --> (1, 2)")
along_all("idctn", M.idct, "The inverse of dctn with the same arguments.", "ms.scipy.fft.idctn({ { 4.0, 0.0 } }):tolist()[1][1] --> 0.5")

return M
