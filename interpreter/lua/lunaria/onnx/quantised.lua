-- ONNX operators on integers that stand for real numbers: value = (integer - zero point) * scale.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

local ranges = { [ms.uint8] = { 0, 255 }, [ms.int8] = { -128, 127 }, [ms.uint16] = { 0, 65535 }, [ms.int16] = { -32768, 32767 } }

-- Scale or zero point for x: one number, one for each place along the axis, or one for each block along it.
local function spread(t, x, axis, block)
  if t.ndim == 0 then return t end
  if t.ndim == 1 and (block == 0 or t.ndim ~= x.ndim) then
    if t.shape[1] == 1 then return ops.reshape(t, {}) end
    local shape, on = {}, define.axis(x, axis)
    for i = 1, x.ndim do shape[i] = i == on + 1 and t.shape[1] or 1 end
    return ops.reshape(t, shape)
  end
  local on = define.axis(x, axis)
  return ops.narrow(ops.repeat_interleave(t, block, on), on, 0, x.shape[on + 1])
end

local function rounded(x, zero, dtype)
  local most = define.largest_float8[dtype]
  if most then return ops.cast(ops.clamp(x, -most, most), dtype) end
  local range = ranges[dtype]
  local y = ops.round(x)
  if zero then y = y + ops.cast(zero, y.dtype) end
  return ops.cast(ops.clamp(y, range[1], range[2]), dtype)
end

define.define("QuantizeLinear", "axis:i=1 saturate:i=1 block_size:i=0 output_dtype:i=0 precision:i=0", 2, 3,
  function(a, node)
    local wanted = a.output_dtype ~= 0 and define.dtype(node, a.output_dtype) or ms.uint8
    local exact = a.precision ~= 0 and define.dtype(node, a.precision)
    return function(x, scale, zero)
      local dtype = zero and zero.dtype or wanted
      if not ranges[dtype] and (not define.largest_float8[dtype] or a.saturate == 0) then
        error(("QuantizeLinear: results of dtype %s are not supported"):format(tostring(dtype)), 0)
      end
      local s = spread(scale, x, a.axis, a.block_size)
      local kind = exact or s.dtype
      local y
      if define.is_float(x.dtype) then
        y = ops.div(ops.cast(x, kind), ops.cast(s, kind))
      else
        y = ops.div(ops.cast(x, ms.float32), ops.cast(s, ms.float32))
      end
      y = ops.cast(y, ms.float32)
      return rounded(y, zero and spread(zero, x, a.axis, a.block_size), dtype)
    end
  end)

define.define("DequantizeLinear", "axis:i=1 block_size:i=0 output_dtype:i=0", 2, 3, function(a, node)
  local wanted = a.output_dtype ~= 0 and define.dtype(node, a.output_dtype)
  return function(x, scale, zero)
    local dtype = wanted or scale.dtype
    local y = ops.cast(x, ms.float32)
    if zero then y = y - ops.cast(spread(zero, x, a.axis, a.block_size), ms.float32) end
    y = y * ops.cast(spread(scale, x, a.axis, a.block_size), ms.float32)
    return dtype == ms.float32 and y or ops.cast(y, dtype)
  end
end)

-- A pair of the two above, as quantised_pairs puts it together: one operator with a gradient.
define.define("lunaria:FakeQuantize", "axis:i=1 block_size:i=0 least:i! most:i!", 3, 3, function(a, node)
  local zero = node.known[3]
  return function(x, scale)
    local axis, z, block = a.axis, ops.cast(zero, ms.float32), a.block_size
    if scale.ndim == 0 or scale.ndim == 1 and scale.shape[1] == 1 and block == 0 then
      axis, block, scale, z = nil, 0, ops.reshape(scale, {}), ops.reshape(z, {})
    end
    return ops.fake_quantize(ops.cast(x, ms.float32), scale, z, a.least, a.most, axis, block)
  end
end)

local function dynamic(x)
  local zero = ops.zeros({}, ms.float32)
  local high, low = ops.maximum(ops.amax(x), zero), ops.minimum(ops.amin(x), zero)
  local scale = (high - low) / 255.0
  scale = ops.where(ops.equal(scale, 0), ops.ones_like(scale), scale)
  local point = ops.cast(ops.round(ops.clamp(ops.neg(low) / scale, 0.0, 255.0)), ms.uint8)
  return rounded(x / scale, point, ms.uint8), scale, point
end
define.plain("DynamicQuantizeLinear", 1, dynamic)

-- Integers without their zero point, exact as float64 sums up to 2^53.
local function centred(x, zero, shape)
  local y = ops.cast(x, ms.float64)
  if not zero then return y end
  local z = ops.cast(zero, ms.float64)
  return y - (z.ndim == 1 and shape and ops.reshape(z, shape) or z)
end

-- A zero point or scale for each row of the first matrix.
local function rows(t) return t and t.ndim == 1 and t.shape[1] > 1 and ops.reshape(t, { -1, 1 }) or t end

define.define("MatMulInteger", "", 2, 4, function()
  return function(x, y, x_zero, y_zero)
    return ops.cast(ops.matmul(centred(x, rows(x_zero)), centred(y, y_zero)), ms.int32)
  end
end)

define.define("QLinearMatMul", "", 8, 8, function()
  return function(x, x_scale, x_zero, y, y_scale, y_zero, scale, zero)
    local sum = ops.matmul(centred(x, rows(x_zero)), centred(y, y_zero))
    local factor = ops.cast(rows(x_scale), ms.float64) * ops.cast(y_scale, ms.float64) / ops.cast(scale, ms.float64)
    return rounded(sum * factor, zero, zero.dtype)
  end
end)

local convolution = "auto_pad:s=NOTSET dilations:ints group:i=1 kernel_shape:ints pads:ints strides:ints"

-- One number for each kernel of a convolution.
local function per_kernel(t, rank)
  if not t or t.ndim == 0 then return t end
  local shape = { t.shape[1] }
  for i = 2, rank do shape[i] = 1 end
  return ops.reshape(t, shape)
end

local function convolve(a, node)
  local conv = require("lunaria.onnx.windows").convolution(a, node)
  return function(x, w, x_zero, w_zero)
    return conv(centred(x, x_zero), centred(w, per_kernel(w_zero, w.ndim)))
  end
end

define.define("ConvInteger", convolution, 2, 4, function(a, node)
  local conv = convolve(a, node)
  return function(x, w, x_zero, w_zero) return ops.cast(conv(x, w, x_zero, w_zero), ms.int32) end
end)

define.define("QLinearConv", convolution, 8, 9, function(a, node)
  local conv = convolve(a, node)
  return function(x, x_scale, x_zero, w, w_scale, w_zero, scale, zero, bias)
    local sum = conv(x, w, x_zero, w_zero)
    local function channel(t)
      if t.ndim == 0 or t.size == 1 then return ops.reshape(t, {}) end
      local shape = { 1, t.shape[1] }
      for i = 3, x.ndim do shape[i] = 1 end
      return ops.reshape(t, shape)
    end
    if bias then sum = sum + channel(ops.cast(bias, ms.float64)) end
    local factor = ops.cast(x_scale, ms.float64) * channel(ops.cast(w_scale, ms.float64)) / ops.cast(scale, ms.float64)
    return rounded(sum * factor, zero, zero.dtype)
  end
end)

return { dynamic = dynamic, spread = spread }
