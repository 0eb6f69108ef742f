-- Primitives of MindSpore for networks: activations, convolutions, pooling, normalisation, losses. Rows for nn/primitives.lua, as in
-- array.lua.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.primitives.common"

local ops = ms.ops
local number, numbers, updated = common.number, common.numbers, common.updated
local fail, describe = arguments.fail, arguments.describe
local P = {}

local NCHW, NCDHW = { data_format = { "NCHW" } }, { data_format = { "NCDHW" } }
-- The last `count` of sizes, of which there may be one for all axes, or more for the axes of batch and channels.
local function sizes(x, count)
  if type(x) ~= "table" then
    local list = {}
    for i = 1, count do list[i] = x end
    return list
  end
  return #x > count and { table.unpack(x, #x - count + 1) } or x
end

P.ReLU6, P.SeLU, P.HSwish, P.HSigmoid, P.Softplus, P.Softsign = "relu6", "selu", "hardswish", "hardsigmoid", "softplus", "softsign"
P.SoftPlus, P.Swish, P.SiLU, P.Mish = "softplus", "silu", "silu", "mish"
P.HShrink, P.SoftShrink = "hardshrink: lambd=0.5", "softshrink: lambd=0.5"
P.Elu = { "alpha=1.0", "x", function(_, x) return ops.elu(x) end, { alpha = { 1.0 } } }
P.CeLU, P.GLU = "celu: alpha=1.0", "glu: axis=-1"
P.GeLU = { "", "x", function(_, x) return ops.gelu(x, "tanh") end }
P.Gelu, P.FastGeLU, P.FastGelu = P.GeLU, "fast_gelu", "fast_gelu"
P.Softmax, P.LogSoftmax = "softmax: axis=-1", "log_softmax: axis=-1"
P.LogSoftmaxExt = { "", "input, dim, dtype", function(_, x, dim, dtype) return ops.log_softmax(x, dim or -1, { dtype = dtype }) end }
P.L2Normalize = { "axis=0, epsilon=1e-4", "x", function(a, x)
  return x / ops.sqrt(ops.maximum(ops.sum(x * x, a.axis, true), a.epsilon))
end }
P.L2Loss = { "", "x", function(_, x) return ops.sum(x * x) / 2 end }
P.LRN = "lrn: depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region=\"ACROSS_CHANNELS\""
P.LerpScalar = "lerp"
P.ChannelShuffle = "channel_shuffle: group->groups"
P.BiasAdd = { "data_format=\"NCHW\"", "x, bias", function(_, x, bias) return ops.bias_add(x, bias) end, NCHW }

-- Pooling.
local function window_layer(layer) return function(a, x)
  return ms.nn[layer](a.kernel_size, a.strides, { pad_mode = a.pad_mode:lower() })(x)
end end
P.MaxPool = { "kernel_size=1, strides=1, pad_mode=\"valid\", data_format=\"NCHW\"", "x", window_layer "MaxPool2d", NCHW }
P.AvgPool = { "kernel_size=1, strides=1, pad_mode=\"valid\", data_format=\"NCHW\"", "x", window_layer "AvgPool2d", NCHW }
P.MaxPoolWithArgmax = { "kernel_size=1, strides=1, pad_mode=\"valid\", data_format=\"NCHW\"", "x", function(a, x)
  local y, places = ops.max_pool2d(x, a.kernel_size, a.strides, 0, 1, true)
  -- They count through all channels of a picture.
  local planes = ops.arange(x.shape[2]) * (x.shape[3] * x.shape[4])
  return y, ops.cast(places + ops.reshape(planes, { -1, 1, 1 }), ms.int32)
end, { data_format = { "NCHW" }, pad_mode = { "valid", "VALID" } } }
-- "Pooling" of the first papers: both kinds under one name, window, stride and pad as there.
P.Pooling = { "mode=\"max\", ksize=1, strides=1, pad_mode=\"valid\"", "x", function(a, x)
  return ms.nn[a.mode == "max" and "MaxPool2d" or "AvgPool2d"](a.ksize, a.strides, { pad_mode = a.pad_mode:lower() })(x)
end, { mode = { "max", "avg" } } }
local with_argmax = "ksize, strides, pads, dilation=1, ceil_mode=false, data_format=\"NCDHW\", argmax_type=nil"
P.MaxPool3DWithArgmax = { with_argmax, "x", function(a, x)
  local y, places = ops.max_pool3d(x, a.ksize, a.strides, a.pads, a.dilation, a.ceil_mode, true)
  return y, ops.cast(places, a.argmax_type or ms.int64)
end, NCDHW }
P.MaxPoolWithArgmaxV2 = { "kernel_size, strides=nil, pads=0, dilation=1, ceil_mode=false, argmax_type=nil", "x", function(a, x)
  local y, places = ops.max_pool2d(x, sizes(a.kernel_size, 2), sizes(a.strides or a.kernel_size, 2), sizes(a.pads, 2), sizes(a.dilation, 2),
    true, a.ceil_mode)
  return y, ops.cast(places, a.argmax_type or ms.int64)
end }
local function same_padding(x, kernel, stride)
  local list = {}
  for i = 1, 3 do
    local size = x.shape[i + 2]
    local missing = math.max(((size + stride[i] - 1) // stride[i] - 1) * stride[i] + kernel[i] - size, 0)
    list[7 - 2 * i], list[8 - 2 * i] = missing // 2, missing - missing // 2
  end
  return list
end
P.MaxPool3D = { "kernel_size=1, strides=1, pad_mode=\"VALID\", pad_list=0, ceil_mode=nil, data_format=\"NCDHW\"", "x", function(a, x)
  local kernel, stride, mode = sizes(a.kernel_size, 3), sizes(a.strides, 3), a.pad_mode:upper()
  if mode == "SAME" then x = ops.pad(x, same_padding(x, kernel, stride), "constant", -math.huge) end
  return ops.max_pool3d(x, kernel, stride, mode == "PAD" and a.pad_list or 0, 1, a.ceil_mode or false)
end, NCDHW }
P.AvgPool3D = { "kernel_size=1, strides=1, pad_mode=\"valid\", pad=0, ceil_mode=false, count_include_pad=true, divisor_override=0, "
  .. "data_format=\"NCDHW\"", "x", function(a, x)
  return ops.avg_pool3d(x, a.kernel_size, a.strides, a.pad_mode:lower() == "pad" and a.pad or 0, a.ceil_mode, a.count_include_pad,
    a.divisor_override ~= 0 and a.divisor_override or nil)
end, { data_format = { "NCDHW" }, pad_mode = { "valid", "VALID", "pad", "PAD" } } }
P.AdaptiveAvgPool2D, P.AdaptiveAvgPool3D = "adaptive_avg_pool2d: output_size", "adaptive_avg_pool3d: output_size"
P.AdaptiveMaxPool2D = { "output_size", "x", function(a, x) return ops.adaptive_max_pool2d(x, a.output_size, true) end }
P.AdaptiveMaxPool3D = { "", "x, output_size", function(_, x, size)
  local y, places = ops.adaptive_max_pool3d(x, numbers(size), true)
  return y, ops.cast(places, ms.int32)
end }
for axes, layout in pairs { [2] = "NCHW", [3] = "NCDHW" } do
  P["MaxUnpool" .. axes .. "D"] = { ("ksize, strides=0, pads=0, output_shape={}, data_format=%q"):format(layout), "x, argmax",
    function(a, x, places)
    local stride = a.strides
    if stride == 0 then stride = a.ksize end
    return ops["max_unpool" .. axes .. "d"](x, places, sizes(a.ksize, axes), sizes(stride, axes), sizes(a.pads, axes),
      #a.output_shape > 0 and a.output_shape or nil)
  end, { data_format = { layout } } }
  P["FractionalMaxPool" .. (axes == 3 and "3D" or "") .. "WithFixedKsize"] = { ("ksize, output_shape, data_format=%q"):format(layout),
    "x, random_samples", function(a, x, samples)
      return ops["fractional_max_pool" .. axes .. "d"](x, a.ksize, { output_size = a.output_shape, return_indices = true,
        _random_samples = samples })
    end, { data_format = { layout } } }
end
-- Windows of sizes that differ, of pictures with the channels behind: the borders are drawn, and come with the result.
local function fractional(reduce, least)
  return function(a, x)
    local ratio, borders, draws = a.pooling_ratio, {}, a
    if #ratio ~= 4 or ratio[1] ~= 1 or ratio[4] ~= 1 then fail("FractionalPool", "pooling_ratio must be {1.0, rows, columns, 1.0}") end
    local seed
    if draws.seed ~= 0 or draws.seed2 ~= 0 or draws.deterministic then seed = draws.seed * 1000003 + draws.seed2 end
    for axis = 1, 2 do
      local size = x.shape[axis + 1]
      local count = math.floor(size / ratio[axis + 1])
      local list, u = { 0 }, ops.rand({ count }, nil, seed and seed + axis):tolist()
      if a.pseudo_random then
        local step = size / count
        local function border(i) return math.ceil(step * (i + u[1] - 1e-9)) end
        for i = 1, count do list[i + 1] = i == count and size or math.min(border(i) - border(0), size) end
      else
        -- Windows of two sizes, in an order that is drawn.
        local small, steps, order = size // count, {}, {}
        for i = 1, count do steps[i], order[i] = i <= size - small * count and small + 1 or small, i end
        table.sort(order, function(i, k) return u[i] < u[k] end)
        for i = 1, count do list[i + 1] = list[i] + steps[order[i]] end
      end
      borders[axis] = list
    end
    local y = x
    for axis = 1, 2 do
      local parts, list = {}, borders[axis]
      for i = 1, #list - 1 do
        local stop = math.min(list[i + 1] + (a.overlapping and 1 or 0), x.shape[axis + 1])
        parts[i] = reduce(ops.narrow(y, axis, list[i], math.max(stop - list[i], least)), axis)
      end
      y = ops.concat(parts, axis)
    end
    return y, ms.tensor(borders[1], ms.int64), ms.tensor(borders[2], ms.int64)
  end
end
local of_fractional = "pooling_ratio, pseudo_random=false, overlapping=false, deterministic=false, seed=0, seed2=0"
P.FractionalMaxPool = { of_fractional, "x", fractional(function(x, axis) return ops.amax(x, axis, true) end, 1) }
P.FractionalAvgPool = { of_fractional, "x", fractional(function(x, axis) return ops.mean(x, axis, true) end, 1) }
P.Dilation2D = { "stride, dilation, pad_mode=\"SAME\", data_format=\"NCHW\"", "x, filter", function(a, x, filter)
  local stride, rate, k, pad, out = sizes(a.stride, 2), sizes(a.dilation, 2), { filter.shape[2], filter.shape[3] }, { 0, 0, 0, 0 }, {}
  for i = 1, 2 do
    local size, reach = x.shape[i + 2], (k[i] - 1) * rate[i] + 1
    out[i] = (size - reach) // stride[i] + 1
    if a.pad_mode:upper() == "SAME" then
      out[i] = (size + stride[i] - 1) // stride[i]
      local missing = math.max((out[i] - 1) * stride[i] + reach - size, 0)
      pad[5 - 2 * i], pad[6 - 2 * i] = missing // 2, missing - missing // 2
    end
  end
  local columns = ops.unfold(ops.pad(x, pad, "constant", -1e38), k, rate, 0, stride)
  local n, c = x.shape[1], x.shape[2]
  local sums = ops.reshape(columns, { n, c, k[1] * k[2], -1 }) + ops.reshape(filter, { 1, c, k[1] * k[2], 1 })
  return ops.reshape(ops.amax(sums, 2), { n, c, out[1], out[2] })
end, NCHW }

-- Convolutions.
-- The weight has the sizes that the attributes say: so many channels at `axis`, and the kernel's at the end.
local function expect_weight(where, a, weight, axis, channels)
  local rank = #weight.shape
  local kernel, fine = sizes(a.kernel_size, rank - 2), channels == nil or weight.shape[axis] == channels
  for i = 1, rank - 2 do fine = fine and weight.shape[i + 2] == kernel[i] end
  if fine then return end
  fail(where, ("the weight must have %s on axis %d and kernels of (%s), as the attributes say, got %s"):format(tostring(channels), axis - 1,
    table.concat(kernel, ", "), describe(weight)))
end
local function convolution(operator, name)
  return function(a, x, weight, bias)
    expect_weight(name, a, weight, 1, a.out_channel)
    return ops[operator](x, weight, bias, { stride = a.stride, pad_mode = a.pad_mode, padding = a.pad, dilation = a.dilation,
      groups = a.group })
  end
end
local of_conv = "out_channel, kernel_size, mode=1, pad_mode=\"valid\", pad=0, stride=1, dilation=1, group=1, data_format="
P.Conv2D = { of_conv .. "\"NCHW\"", "x, weight", convolution("conv2d", "Conv2D"), { data_format = { "NCHW" }, mode = { 1 } } }
P.Conv3D = { of_conv .. "\"NCDHW\"", "x, weight, bias", convolution("conv3d", "Conv3D"), { data_format = { "NCDHW" }, mode = { 1 } } }
P.DepthwiseConv2dNative = { "channel_multiplier, kernel_size, mode=3, pad_mode=\"valid\", pad=0, stride=1, dilation=1, group=1",
  "x, weight",
  function(a, x, weight)
    local c = x.shape[2]
    -- The weight has the multiples of a channel in front, the channels behind.
    local own = ops.reshape(ops.swapaxes(weight, 0, 1), { c * a.channel_multiplier, 1, weight.shape[3], weight.shape[4] })
    return ops.conv2d(x, own, { stride = sizes(a.stride, 2), pad_mode = a.pad_mode, padding = a.pad, dilation = sizes(a.dilation, 2),
      groups = c })
  end, { mode = { 3 }, group = { 1 } } }
-- The padding on both sides of each axis that gives an input of these sizes results of those of dout.
local function transposed(a, dout, weight, size)
  local stride, dilation, mode, pad = sizes(a.stride, 2), sizes(a.dilation, 2), a.pad_mode:lower(), {}
  local given = type(a.pad) == "table" and #a.pad == 4 and a.pad or nil
  local both = not given and sizes(a.pad, 2)
  for i = 1, 2 do
    local first, last = given and given[2 * i - 1] or both[i], given and given[2 * i] or both[i]
    if mode == "valid" then first, last = 0, 0 end
    if mode == "same" then
      local reach = (weight.shape[i + 2] - 1) * dilation[i] + 1
      local missing = math.max((dout.shape[i + 2] - 1) * stride[i] + reach - size[i + 2], 0)
      first = missing // 2
      last = missing - first
    end
    pad[2 * i - 1], pad[2 * i] = first, last
  end
  return ops.conv_input_grad(dout, weight, size, stride, pad, dilation, a.group)
end
local of_transposed = "out_channel, kernel_size, pad_mode=\"valid\", pad=0, pad_list=nil, mode=1, stride=1, dilation=1, group=1, "
  .. "data_format=\"NCHW\""
P.Conv2DTranspose = { of_transposed, "dout, weight, input_size", function(a, dout, weight, size)
  expect_weight("Conv2DTranspose", a, weight, 1, a.out_channel)
  return transposed(a, dout, weight, numbers(size))
end, { data_format = { "NCHW" }, mode = { 1 }, pad_list = {} } }
P.Conv2DBackpropInput = P.Conv2DTranspose
P.Conv3DTranspose = { "in_channel, out_channel, kernel_size, mode=1, pad_mode=\"valid\", pad=0, stride=1, dilation=1, group=1, "
  .. "output_padding=0, data_format=\"NCDHW\"", "dout, weight, bias", function(a, dout, weight, bias)
  expect_weight("Conv3DTranspose", a, weight, 1, a.in_channel)
  expect_weight("Conv3DTranspose", a, weight, 2, a.out_channel and a.out_channel // a.group)
  return ops.conv_transpose3d(dout, weight, bias, sizes(a.stride, 3), a.pad_mode == "pad" and sizes(a.pad, 3) or 0,
    sizes(a.output_padding, 3),
    a.group, sizes(a.dilation, 3))
end, { data_format = { "NCDHW" }, mode = { 1 }, pad_mode = { "valid", "pad" } } }

-- Normalisation.
P.BatchNorm = { "is_training=false, epsilon=1e-5, momentum=0.1, data_format=\"NCHW\"", "x, scale, bias, mean, variance",
  function(a, x, scale, bias, mean, variance)
    if not a.is_training then
      return ops.batch_norm(x, mean, variance, scale, bias, false, a.momentum, a.epsilon), mean, variance, mean, variance
    end
    local y, batch_mean, batch_variance = ops.batch_norm_train(x, scale, bias, a.epsilon)
    local count = x.size // x.shape[2]
    local unbiased = batch_variance * (count / math.max(count - 1, 1))
    updated(mean, mean * (1 - a.momentum) + ops.stop_gradient(batch_mean) * a.momentum)
    updated(variance, variance * (1 - a.momentum) + ops.stop_gradient(unbiased) * a.momentum)
    return y, batch_mean, unbiased, batch_mean, 1 / ops.sqrt(batch_variance + a.epsilon)
  end, NCHW }
-- Names of the first releases: a normalisation in training.
local function fused(a, ...) return P.BatchNorm[3]({ is_training = true, epsilon = a.epsilon, momentum = a.momentum }, ...) end
P.FusedBatchNorm = { "mode=0, epsilon=1e-5, momentum=0.1", "x, scale, bias, mean, variance", fused, { mode = { 0, 1 } } }
P.FusedBatchNormEx = P.FusedBatchNorm
P.LayerNorm = { "begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7", "x, gamma, beta", function(a, x, gamma, beta)
  local first, shape, along = a.begin_norm_axis % #x.shape, {}, {}
  for axis = first, #x.shape - 1 do along[#along + 1] = axis end
  local params = a.begin_params_axis % #x.shape
  for axis = params + 1, #x.shape do shape[#shape + 1] = x.shape[axis] end
  local mean = ops.mean(x, along, true)
  local variance = ops.mean(ops.square(x - mean), along, true)
  if params == first then return ops.layer_norm(x, shape, gamma, beta, a.epsilon), mean, variance end
  return (x - mean) / ops.sqrt(variance + a.epsilon) * gamma + beta, mean, variance
end }
P.RmsNorm = "rms_norm: epsilon=1e-6"
P.GridSampler2D = "grid_sample: interpolation_mode=\"bilinear\"->mode, padding_mode=\"zeros\", align_corners=false"
local function unnormalized(x, size, align)
  if align then return (x + 1) * ((size - 1) / 2) end
  return ((x + 1) * size - 1) / 2
end
P.GridSampler3D = { "interpolation_mode=\"bilinear\", padding_mode=\"zeros\", align_corners=false", "x, grid", function(a, x, grid)
  local n, c, d, h, w = table.unpack(x.shape)
  local sizes_of, points = { w, h, d }, grid.shape[2] * grid.shape[3] * grid.shape[4]
  local low, part = {}, {}
  for k = 1, 3 do
    local at = unnormalized(ops.reshape(ops.narrow(grid, -1, k - 1, 1), { n, points }), sizes_of[k], a.align_corners)
    if a.padding_mode == "border" then at = ops.clamp(at, 0.0, sizes_of[k] - 1.0) end
    if a.interpolation_mode == "nearest" then at = ops.round(at) end
    low[k] = ops.floor(at)
    part[k] = at - low[k]
  end
  local flat, sum = ops.reshape(x, { n, c, d * h * w }), nil
  for corner = 0, 7 do
    local place, weight, inside = nil, nil, nil
    for k = 3, 1, -1 do
      local up = corner >> (k - 1) & 1
      local i = low[k] + up
      local here = ops.logical_and(ops.greater_equal(i, 0), ops.less_equal(i, sizes_of[k] - 1))
      local share = up == 1 and part[k] or 1 - part[k]
      i = ops.cast(ops.clamp(i, 0, sizes_of[k] - 1), ms.int64)
      place = place and place * sizes_of[k] + i or i
      weight, inside = weight and weight * share or share, inside and ops.logical_and(inside, here) or here
    end
    local values = ops.gather_elements(flat, 2, ops.broadcast_to(ops.expand_dims(place, 1), { n, c, points }))
    local term = values * ops.expand_dims(ops.where(inside, weight, 0.0), 1)
    sum = sum and sum + term or term
  end
  return ops.reshape(sum, { n, c, grid.shape[2], grid.shape[3], grid.shape[4] })
end, { interpolation_mode = { "bilinear", "nearest" }, padding_mode = { "zeros", "border" } } }
P.AffineGrid = { "align_corners=false", "theta, output_size", function(a, theta, size)
  return ops.affine_grid(theta, numbers(size), a.align_corners)
end }
P.PReLU = "prelu"
P.InTopK = "intopk: k"
P.Pad = { "paddings", "x", function(a, x)
  local list = {}
  for axis = #a.paddings, 1, -1 do
    list[#list + 1], list[#list + 2] = a.paddings[axis][1], a.paddings[axis][2]
  end
  return ops.pad(x, list)
end }
P.PadV3 = { "mode=\"constant\", paddings_contiguous=true", "x, paddings, constant_value", function(a, x, paddings, value)
  local list = numbers(paddings)
  if not a.paddings_contiguous then
    local half, joined = #list // 2, {}
    for i = 1, half do joined[2 * i - 1], joined[2 * i] = list[i], list[half + i] end
    list = joined
  end
  local mode = a.mode == "edge" and "replicate" or a.mode
  return ops.pad(x, list, mode, mode == "constant" and number(value) or nil)
end, { mode = { "constant", "reflect", "edge", "circular" } } }
P.MirrorPad = { "mode=\"REFLECT\"", "x, paddings", function(a, x, paddings) return ops.mirror_pad(x, numbers(paddings), a.mode) end }
P.Padding = "padding: pad_dim_size=8"

-- Dropout: the result and the mask. MindSpore's keep_prob is the part that stays.
P.Dropout = { "keep_prob=0.5, Seed0=0, Seed1=0", "x", function(a, x)
  local seed
  if a.Seed0 ~= 0 or a.Seed1 ~= 0 then seed = a.Seed0 * 1000003 + a.Seed1 end
  return ops.dropout_with_mask(x, 1 - a.keep_prob, seed)
end }
for _, axes in ipairs { 2, 3 } do
  P["Dropout" .. axes .. "D"] = { "keep_prob=0.5", "x", function(a, x)
    local shape = { x.shape[1], x.shape[2] }
    while #shape < #x.shape do shape[#shape + 1] = 1 end
    local mask = ops.broadcast_to(ops.less(ops.rand(shape), a.keep_prob), x.shape)
    if a.keep_prob == 0 then return ops.zeros_like(x), mask end
    return x * mask / a.keep_prob, mask
  end }
end
local bits = { 1, 2, 4, 8, 16, 32, 64, 128 }
P.DropoutGenMask = { "Seed0=0, Seed1=0", "shape, keep_prob", function(a, shape, keep)
  local count, seed = 1, nil
  for _, size in ipairs(numbers(shape)) do count = count * size end
  if a.Seed0 ~= 0 or a.Seed1 ~= 0 then seed = a.Seed0 * 1000003 + a.Seed1 end
  local drawn = ops.less(ops.rand({ (count + 127) // 128 * 16, 8 }, nil, seed), keep)
  return ops.cast(ops.sum(ops.cast(drawn, ms.int32) * ms.tensor(bits, ms.int32), -1), ms.uint8)
end }
P.DropoutDoMask = { "", "x, mask, keep_prob", function(_, x, mask, keep)
  local drawn = ops.bitwise_and(ops.expand_dims(ops.cast(mask, ms.int32), 1), ms.tensor(bits, ms.int32))
  local inside = ops.reshape(ops.narrow(ops.reshape(ops.not_equal(drawn, 0), { -1 }), 0, 0, x.size), x.shape)
  return x * inside / keep
end }

-- Losses.
P.SoftmaxCrossEntropyWithLogits = { "", "logits, labels", function(_, logits, labels)
  local logs = ops.log_softmax(logits, -1)
  return -ops.sum(labels * logs, -1), ops.exp(logs) - labels
end }
P.SparseSoftmaxCrossEntropyWithLogits = { "is_grad=false", "logits, labels", function(a, logits, labels)
  if not a.is_grad then return ops.cross_entropy(logits, labels) end
  local hot = ops.one_hot(labels, logits.shape[2], 1.0, 0.0)
  return (ops.softmax(logits, -1) - hot) / logits.shape[1]
end }
P.SoftmaxCrossEntropy = P.SoftmaxCrossEntropyWithLogits
P.SigmoidCrossEntropyWithLogits = { "", "logits, label", function(_, logits, labels)
  return ops.relu(logits) - logits * labels + ops.softplus(-ops.abs(logits))
end }
P.SigmoidCrossEntropy = P.SigmoidCrossEntropyWithLogits
P.BCEWithLogitsLoss = { "reduction=\"mean\"", "input, target, weight, pos_weight", function(a, x, target, weight, pos_weight)
  return ops.binary_cross_entropy_with_logits(x, target, weight, pos_weight, a.reduction)
end }
P.BinaryCrossEntropy = "binary_cross_entropy: reduction=\"mean\""
P.KLDivLoss = { "reduction=\"mean\"", "logits, labels", function(a, logits, labels) return ops.kl_div(logits, labels, a.reduction) end }
P.SmoothL1Loss = { "beta=1.0, reduction=\"none\"", "prediction, target", function(a, x, target)
  return ops.smooth_l1_loss(x, target, a.beta, a.reduction)
end }
P.SoftMarginLoss = "soft_margin_loss: reduction=\"mean\""
P.MultiMarginLoss = "multi_margin_loss: p=1, margin=1.0, reduction=\"mean\""
P.MultilabelMarginLoss = { "reduction=\"mean\"", "x, target", function(a, x, target)
  -- Labels count up to the first that is negative.
  local before = ops.equal(ops.cumsum(ops.cast(ops.less(target, 0), ms.int32), -1), 0)
  local classes = x.shape[#x.shape]
  local hot = ops.one_hot(ops.where(before, target, 0), classes, 1, 0) * ops.expand_dims(ops.cast(before, ms.int64), -1)
  return ops.multilabel_margin_loss(x, target, a.reduction), ops.cast(ops.greater(ops.sum(hot, #x.shape - 1), 0), ms.int32)
end }
P.NLLLoss = { "reduction=\"mean\", ignore_index=-100", "logits, labels, weight", function(a, logits, labels, weight)
  local used = ops.not_equal(labels, a.ignore_index)
  local total = ops.sum(ops.where(used, ops.gather(weight, ops.where(used, labels, 0), 0), 0.0))
  return ops.nll_loss(logits, labels, weight, a.ignore_index, a.reduction), total
end }
P.TripletMarginLoss = { "p=2, swap=false, eps=1e-6, reduction=\"mean\"", "x, positive, negative, margin", function(a, x, positive,
  negative, margin)
  return ops.triplet_margin_loss(x, positive, negative, number(margin), a.p, a.eps, a.swap, a.reduction)
end }
P.CTCGreedyDecoder = "ctc_greedy_decoder: merge_repeated=true"
-- Labels come as the places and values of a sparse matrix; the gradient comes with the loss.
P.CTCLoss = { "preprocess_collapse_repeated=false, ctc_merge_repeated=true, ignore_longer_outputs_than_inputs=false",
  "x, labels_indices, labels_values, sequence_length", function(_, x, places, values, lengths)
    local time, batch, classes = table.unpack(x.shape)
    local rows, longest, count = places:tolist(), 1, {}
    for i = 1, batch do count[i] = 0 end
    for _, place in ipairs(rows) do
      count[place[1] + 1] = count[place[1] + 1] + 1
      longest = math.max(longest, place[2] + 1)
    end
    local targets = ops.cast(ops.scatter_nd(ops.cast(places, ms.int64), ops.cast(values, ms.int64), { batch, longest }), ms.int64)
    local function loss(v)
      return ops.ctc_loss(ops.log_softmax(v, -1), targets, ops.cast(lengths, ms.int64), ms.tensor(count, ms.int64), classes - 1, "none")
    end
    assert(time > 0, "CTCLoss: x has no steps")
    local value, slope = ms.value_and_grad(function(v)
      local each = loss(v)
      return ops.sum(each), each
    end, 0, nil, true)(x)
    return value[2], slope
  end, { preprocess_collapse_repeated = { false }, ctc_merge_repeated = { true }, ignore_longer_outputs_than_inputs = { false } } }
-- Places of axes in another layout.
local function check_layouts(where, a)
  local function letters(text)
    local list = {}
    for letter in text:gmatch "." do list[#list + 1] = letter end
    table.sort(list)
    return table.concat(list)
  end
  if letters(a.src_format) ~= letters(a.dst_format) or letters(a.src_format) ~= "CHNW" then
    fail(where, ("src_format and dst_format must have the letters N, C, H and W, got %s and %s"):format(describe(a.src_format),
      describe(a.dst_format)))
  end
end
P.DataFormatDimMap = { "src_format=\"NHWC\", dst_format=\"NCHW\"", "x", function(a, x)
  check_layouts("DataFormatDimMap", a)
  local places = {}
  for i = 1, 4 do places[i] = a.src_format:find(a.dst_format:sub(i, i), 1, true) - 1 end
  return ops.gather(ms.tensor(places, x.dtype), ops.remainder(x, 4), 0)
end }
P.DataFormatVecPermute = { "src_format=\"NHWC\", dst_format=\"NCHW\"", "x", function(a, x)
  check_layouts("DataFormatVecPermute", a)
  local places, src, dst = {}, a.src_format, a.dst_format
  if x.shape[1] == 2 then src, dst = src:gsub("[NC]", ""), dst:gsub("[NC]", "") end
  for i = 1, #dst do places[i] = src:find(dst:sub(i, i), 1, true) - 1 end
  return ops.gather(x, ms.tensor(places, ms.int64), 0)
end }

return P
