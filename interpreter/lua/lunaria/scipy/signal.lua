-- ms.scipy.signal: convolutions, filters and trends.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local M = {}

local function check_mode(where, mode)
  if mode ~= "full" and mode ~= "same" and mode ~= "valid" then
    arrays.fail(where, ("mode must be 'full', 'same' or 'valid', got %s"):format(arrays.describe(mode)))
  end
end

-- Sums of products of two tensors with as many axes that slide past each other: a convolution as conv1d to conv3d make it, of the first
-- tensor with zeros around it. late: of two middles of an even size "same" takes the second one.
local function slide(where, in1, in2, mode, late)
  mode = mode or "full"
  check_mode(where, mode)
  local a, b = arrays.pair(where, in1, in2, "in1", "in2")
  if a.ndim ~= b.ndim or a.ndim < 1 or a.ndim > 3 then
    arrays.fail(where, ("in1 and in2 must both have one, two or three axes, got %d and %d"):format(a.ndim, b.ndim))
  end
  if a.size == 0 or b.size == 0 then arrays.fail(where, "in1 and in2 must not be empty") end
  local rank, dtype = a.ndim, a.dtype
  local small, large = arrays.sizes(b), arrays.sizes(a)
  if mode == "valid" then
    local a_fits, b_fits = true, true
    for i = 1, rank do a_fits, b_fits = a_fits and large[i] >= small[i], b_fits and small[i] >= large[i] end
    if not a_fits and b_fits then
      a, b, small, large = b, a, large, small
    elseif not a_fits then
      arrays.fail(where, "in mode 'valid' one tensor must be at least as large as the other along every axis")
    end
  end
  local kind = arrays.kind(dtype)
  local computing = kind == "f" and dtype or ms.float64
  local pads, axes = {}, {}
  for i = rank, 1, -1 do
    pads[#pads + 1], pads[#pads + 2] = small[i] - 1, small[i] - 1
    axes[i] = i - 1
  end
  local x, w = arrays.cast(a, computing), ops.flip(arrays.cast(b, computing), axes)
  if mode ~= "valid" then x = ops.pad(x, pads) end
  local y
  local function batched(t) return ops.expand_dims(ops.expand_dims(t, 0), 0) end
  if rank == 1 then y = ops.conv1d(batched(x), batched(w)) elseif rank == 2 then y = ops.conv2d(batched(x), batched(w))
  else y = ops.conv3d(batched(x), batched(w)) end
  y = ops.squeeze(y, { 0, 1 })
  if mode == "same" then
    for i = 1, rank do y = ops.narrow(y, i - 1, (small[i] - (late and 0 or 1)) // 2, large[i]) end
  end
  if kind ~= "f" then y = ops.round_to_even(y) end
  return arrays.cast(y, dtype)
end

-- Rows: a second operand that is turned round makes a correlation.
local filter = rows.family(M, "scipy.signal.", { "in1", "in2" }, { "mode" }, function(where, f, in1, in2, mode)
  return f(where, in1, in2, mode)
end)

local function correlated(late)
  return function(where, in1, in2, mode)
    local a, b = arrays.of(where, "in1", in1), arrays.of(where, "in2", in2)
    local axes = {}
    for i = 1, b.ndim do axes[i] = i - 1 end
    return slide(where, a, b.ndim > 0 and ops.flip(b, axes) or b, mode, late)
  end
end

filter("convolve", slide, "Convolution of two tensors with as many axes (one to three). mode: \"full\", \"same\" (the shape of in1) or "
  .. "\"valid\" (whole overlaps).", "ms.scipy.signal.convolve({ 1, 2, 3 }, { 1, 1 }):tolist()[2] --> 3")
filter("correlate", correlated(false), "Correlation of two tensors: convolution with the second one turned round. mode as for convolve.",
  "ms.scipy.signal.correlate({ 1, 2, 3 }, { 0, 1 }):tolist()[1] --> 1")
filter("convolve2d", slide, "Convolution of two matrices. mode as for convolve.",
  "ms.scipy.signal.convolve2d({ { 1, 2 } }, { { 1, 1 } }).shape --> (1, 3)")
filter("correlate2d", correlated(true), "Correlation of two matrices. mode as for convolve.",
  "ms.scipy.signal.correlate2d({ { 1, 2 } }, { { 1, 1 } }).shape --> (1, 3)")

--- What is left of data without their straight line ("linear") or their mean ("constant") along an axis.
---     > ms.ops.abs(ms.scipy.signal.detrend({ 1.0, 2.0, 3.0 })):sum():item() < 1e-5 --> true
function M.detrend(data, axis, type)
  axis, type = arrays.named("scipy.signal.detrend", { "axis", "type" }, axis, type)
  local where = "scipy.signal.detrend"
  local x = arrays.mean_float(where, "data", data)
  axis = arrays.axis(where, axis or -1, x.ndim)
  local off = x - ops.mean(x, axis, true)
  if type == "constant" then return off end
  if type ~= nil and type ~= "linear" then
    arrays.fail(where, ("type must be 'linear' or 'constant', got %s"):format(arrays.describe(type)))
  end
  local n, sizes = x.shape[axis + 1], {}
  for i = 1, x.ndim do sizes[i] = i == axis + 1 and n or 1 end
  local at = ops.reshape(ops.cast(ops.arange(0, n, 1, ms.float64) - (n - 1) / 2, x.dtype), sizes)
  local slope = ops.reduce_sum(off * at, axis, true) / math.max(ops.reduce_sum(at * at):item(), 1e-300)
  return off - at * slope
end

--- A digital filter along an axis: a[0] y[n] = b[0] x[n] + b[1] x[n-1] + ... - a[1] y[n-1] - ..., from zeros on.
---     > ms.scipy.signal.lfilter({ 1.0 }, { 1.0, -1.0 }, { 1.0, 1.0, 1.0 }):tolist()[3] --> 3.0
function M.lfilter(b, a, x, axis)
  axis = arrays.named("scipy.signal.lfilter", { "axis" }, axis)
  local where = "scipy.signal.lfilter"
  local list, dtype = arrays.together(where, { "b", "a", "x" }, { b, a, x }, 3)
  local kind = arrays.kind(dtype)
  if kind ~= "f" then dtype = ms.float64 end
  for i = 1, 3 do list[i] = arrays.cast(ops.atleast_1d(list[i]), dtype) end
  local top, bottom, v = list[1] / list[2][0], list[2] / list[2][0], list[3]
  axis = arrays.axis(where, axis or -1, v.ndim)
  v = ops.movedim(v, axis, -1)
  local n = v.shape[v.ndim]
  local y
  for k = 0, math.min(top.size, n) - 1 do
    local late = ops.pad(ops.narrow(v, -1, 0, n - k), { k, 0 }) * top[k]
    y = y and y + late or late
  end
  y = y or v
  if bottom.size > 1 and n > 0 then
    -- The response of 1 / a to an impulse, as the rows of a triangle.
    local impulse = { ms.tensor(1.0, dtype) }
    for i = 2, n do
      local sum = ms.tensor(0.0, dtype)
      for k = 1, math.min(bottom.size, i) - 1 do sum = sum - bottom[k] * impulse[i - k] end
      impulse[i] = sum
    end
    local h = ops.stack(impulse, 0)
    local i, j = ops.arange(0, n):reshape { 1, n }, ops.arange(0, n):reshape { n, 1 }
    local matrix = ops.where(ops.greater_equal(i, j), ops.gather(h, ops.clamp(i - j, 0, n - 1), 0), ms.tensor(0.0, dtype))
    y = ops.matmul(y, matrix)
  end
  return ops.movedim(y, -1, axis)
end

return M
