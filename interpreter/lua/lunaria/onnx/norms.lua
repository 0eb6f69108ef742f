-- ONNX operators that normalise.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

-- The dtype that statistics are taken in.
local function wide(x) return x.dtype == ms.float64 and ms.float64 or ms.float32 end
local function cast(x, dtype) return x.dtype == dtype and x or ops.cast(x, dtype) end

define.define("LayerNormalization", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", 2, 3, function(a, node)
  local axis, eps = a.axis, a.epsilon
  local plain = not node.wanted[2] and not node.wanted[3]
  return function(x, scale, bias)
    local axes = define.axes_from(x, axis)
    if plain then
      local shape = {}
      for i, k in ipairs(axes) do shape[i] = x.shape[k + 1] end
      local same = scale.ndim == #shape and (not bias or bias.ndim == #shape)
      for i = 1, #shape do
        same = same and scale.shape[i] == shape[i] and (not bias or bias.shape[i] == shape[i])
      end
      if same then return ops.layer_norm(x, shape, scale, bias, eps) end
    end
    local w = cast(x, wide(x))
    local mean = ops.reduce_mean(w, axes, true)
    local centred = w - mean
    local inverse = ops.rsqrt(ops.reduce_mean(centred * centred, axes, true) + eps)
    local y = cast(centred * inverse, x.dtype) * scale
    if bias then y = y + bias end
    return y, mean, inverse
  end
end)

define.define("RMSNormalization", "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", 2, 2, function(a)
  return function(x, scale)
    local w = cast(x, wide(x))
    local y = w * ops.rsqrt(ops.reduce_mean(w * w, define.axes_from(x, a.axis), true) + a.epsilon)
    return cast(y, x.dtype) * scale
  end
end)

define.define("InstanceNormalization", "epsilon:f=1e-5 consumed_inputs:ints", 3, 3, function(a)
  return function(x, scale, bias) return ops.instance_norm(x, scale, bias, a.epsilon) end
end)

define.define("GroupNormalization", "num_groups:i! epsilon:f=1e-5 stash_type:i=1", 3, 3, function(a, node)
  local groups = a.num_groups
  return function(x, scale, bias)
    -- Until version 21 there is one weight for each group.
    if node.version < 21 then
      local each = x.shape[2] // groups
      scale, bias = ops.repeat_interleave(scale, each), ops.repeat_interleave(bias, each)
    end
    return ops.group_norm(x, groups, scale, bias, a.epsilon)
  end
end)

local function per_channel(t, rank)
  local shape = { 1, t.shape[1] }
  for i = 3, rank do shape[i] = 1 end
  return ops.reshape(t, shape)
end

define.define("BatchNormalization",
  "epsilon:f=1e-5 momentum:f=0.9 training_mode:i=0 spatial:i=1 is_test:i=0 consumed_inputs:ints", 5, 5, function(a, node)
    if a.spatial == 0 then node.fail "spatial = 0 is not supported" end
    local eps, momentum = a.epsilon, a.momentum
    if a.training_mode == 0 then
      if node.version < 14 and node.wanted[2] then node.fail "a model in training mode of this version is not supported" end
      return function(x, scale, bias, mean, variance)
        if x.ndim == 1 then return (x - mean) * ops.rsqrt(variance + eps) * scale + bias end
        if scale.dtype ~= x.dtype or mean.dtype ~= x.dtype then
          local rank = x.ndim
          local w = wide(x)
          local function channel(t) return per_channel(cast(t, w), rank) end
          local y = (cast(x, w) - channel(mean)) * ops.rsqrt(channel(variance) + eps) * channel(scale) + channel(bias)
          return cast(y, x.dtype)
        end
        return ops.batch_norm(x, mean, variance, scale, bias, false, momentum, eps)
      end
    end
    return function(x, scale, bias, mean, variance)
      local axes = define.axes_without(x.ndim, 1)
      local now = ops.reduce_mean(x, axes)
      local centred = x - per_channel(now, x.ndim)
      local spread = ops.reduce_mean(centred * centred, axes)
      local y = centred * ops.rsqrt(per_channel(spread, x.ndim) + eps) * per_channel(scale, x.ndim) + per_channel(bias, x.ndim)
      return y, mean * momentum + now * (1 - momentum), variance * momentum + spread * (1 - momentum)
    end
  end)

define.define("MeanVarianceNormalization", "axes:ints", 1, 1, function(a)
  local axes = a.axes or { 0, 2, 3 }
  return function(x)
    local centred = x - ops.reduce_mean(x, axes, true)
    return centred / (ops.sqrt(ops.reduce_mean(centred * centred, axes, true)) + 1e-9)
  end
end)

define.define("LRN", "alpha:f=1e-4 beta:f=0.75 bias:f=1 size:i!", 1, 1, function(a)
  local size = a.size
  return function(x)
    -- Beyond the channels there are zeros.
    local flat, channels = {}, x.shape[2]
    local low, high = math.min((size - 1) // 2, channels), math.min(size - 1 - (size - 1) // 2, channels)
    for _ = 1, 2 * (x.ndim - 2) do flat[#flat + 1] = 0 end
    flat[#flat + 1] = low
    flat[#flat + 1] = high
    local squares = ops.pad(x * x, flat, "constant", 0)
    local sum = ops.narrow(squares, 1, 0, channels)
    for i = 1, low + high do sum = sum + ops.narrow(squares, 1, i, channels) end
    return x / ops.pow(sum * (a.alpha / size) + a.bias, a.beta)
  end
end)
