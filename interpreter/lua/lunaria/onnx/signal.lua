-- ONNX's matrix products, Fourier transforms and windows.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

define.plain("MatMul", 2, function(x, y) return ops.matmul(x, y) end)

define.define("Gemm", "alpha:f=1 beta:f=1 transA:i=0 transB:i=0 broadcast:i=0", 2, 3, function(a)
  local alpha, beta, turn_a, turn_b = a.alpha, a.beta, a.transA ~= 0, a.transB ~= 0
  if alpha == 1 and beta == 1 and not turn_a and turn_b then
    return function(x, y, c)
      if c and c.ndim == 1 and c.shape[1] == y.shape[1] then return ops.dense(x, y, c) end
      local product = ops.dense(x, y)
      return c and product + c or product
    end
  end
  return function(x, y, c)
    if turn_a then x = ops.transpose(x, { 1, 0 }) end
    if turn_b then y = ops.transpose(y, { 1, 0 }) end
    local product = ops.matmul(x, y)
    local whole = not define.is_float(product.dtype)
    if alpha ~= 1 then product = product * (whole and math.tointeger(alpha) or alpha) end
    if not c then return product end
    return product + (beta == 1 and c or c * (whole and math.tointeger(beta) or beta))
  end
end)

define.define("Einsum", "equation:s!", 1, 100, function(a)
  local equation = a.equation:gsub("%s", "")
  return function(...) return ops.einsum(equation, { ... }) end
end)

define.plain("Det", 1, function(x) return ops.det(x) end)

-- Tensors whose last axis holds the real and the imaginary part, as complex ones.
local function complex(x)
  if x.shape[x.ndim] == 1 then x = ops.concat({ x, ops.zeros_like(x) }, -1) end
  return ops.view_as_complex(x)
end

define.define("DFT", "axis:i=1 inverse:i=0 onesided:i=0", 1, 3, function(a, node)
  local inverse, onesided = a.inverse ~= 0, a.onesided ~= 0
  return function(x, length, axis_tensor)
    local axis = node.version >= 20 and (axis_tensor and define.number(axis_tensor) or -2) or a.axis
    axis = define.axis(x, axis)
    local n = length and define.number(length) or nil
    if onesided and not inverse then
      return ops.view_as_real(ops.rfft(ops.squeeze(ops.narrow(x, -1, 0, 1), { -1 }), n, axis))
    end
    if onesided then
      local real = ops.irfft(complex(x), n or 2 * (x.shape[axis + 1] - 1), axis)
      return ops.expand_dims(real, -1)
    end
    local z = complex(x)
    return ops.view_as_real(inverse and ops.ifft(z, n, axis) or ops.fft(z, n, axis))
  end
end)

define.define("STFT", "onesided:i=1", 2, 4, function(a)
  return function(x, step, window, length)
    local hop = define.number(step)
    local n = window and window.shape[1] or define.number(length)
    local count = (x.shape[2] - n) // hop + 1
    local at = ops.reshape(ops.arange(count, nil, 1, ms.int64) * hop, { count, 1 })
      + ops.reshape(ops.arange(n, nil, 1, ms.int64), { 1, n })
    local frames = ops.gather(x, at, 1)
    if window then frames = frames * ops.reshape(window, { 1, 1, n, 1 }) end
    if a.onesided ~= 0 and frames.shape[4] == 1 then
      return ops.view_as_real(ops.rfft(ops.squeeze(frames, { -1 }), n, -1))
    end
    local z = ops.fft(complex(frames), n, -1)
    if a.onesided ~= 0 then z = ops.narrow(z, -1, 0, n // 2 + 1) end
    return ops.view_as_real(z)
  end
end)

-- Windows are sums of cosines.
local function window(name, ...)
  local terms = { ... }
  define.define(name, "output_datatype:i=1 periodic:i=1", 1, 1, function(a, node)
    local dtype = define.dtype(node, a.output_datatype)
    return function(size)
      local n = define.number(size)
      local turn = ops.arange(n, nil, 1, ms.float64) * (2 * math.pi / (a.periodic ~= 0 and n or n - 1))
      local y = ops.full({ n }, terms[1], ms.float64)
      for k = 2, #terms do y = y + ops.cos(turn * (k - 1.0)) * terms[k] end
      return ops.cast(y, dtype)
    end
  end)
end
window("HannWindow", 0.5, -0.5)
window("HammingWindow", 25 / 46, -21 / 46)
window("BlackmanWindow", 0.42, -0.5, 0.08)

define.define("MelWeightMatrix", "output_datatype:i=1", 5, 5, function(a, node)
  local dtype = define.dtype(node, a.output_datatype)
  return function(bins_of, length_of, rate_of, low_of, high_of)
    local bins, length, rate = define.number(bins_of), define.number(length_of), define.number(rate_of)
    local low, high = define.number(low_of), define.number(high_of)
    local function mel(f) return 2595 * math.log(1 + f / 700, 10) end
    local spectrum, points = length // 2 + 1, {}
    define.listed(spectrum, bins)
    define.listed(spectrum)
    define.listed(bins)
    local step = (mel(high) - mel(low)) / (bins + 2)
    for i = 0, bins + 1 do
      local f = 700 * (10 ^ ((i * step + mel(low)) / 2595) - 1)
      points[i] = ((length + 1) * f) // rate
    end
    local rows = {}
    for i = 1, spectrum do
      rows[i] = {}
      for j = 1, bins do rows[i][j] = 0.0 end
    end
    for j = 0, bins - 1 do
      local from, centre, to = math.tointeger(points[j]), math.tointeger(points[j + 1]), math.tointeger(points[j + 2])
      if centre == from then
        rows[centre + 1][j + 1] = 1.0
      else
        for i = from, centre do rows[i + 1][j + 1] = (i - from) / (centre - from) end
      end
      for i = centre, to - 1 do rows[i + 1][j + 1] = (to - i) / (to - centre) end
    end
    return ms.tensor(rows, dtype)
  end
end)
