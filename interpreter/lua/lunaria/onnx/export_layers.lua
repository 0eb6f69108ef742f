-- ONNX forms of products, reductions, norms, convolutions and pools.
local ms = require "lunaria"

local function axis_of(axis, rank) return axis < 0 and axis + rank or axis end
local function list_of(v)
  if type(v) == "table" then return v end
  return { v }
end
-- A list of `count` numbers of one, or of as many.
local function spread(v, count)
  local list = {}
  for i = 1, count do list[i] = type(v) == "table" and (v[i] or v[1]) or v end
  return list
end

return function(handlers)
  for _, op in ipairs { "matmul", "mm", "bmm", "mv", "dot" } do
    handlers[op] = function(g, a)
      local p, q = a.a or a.input or a.input_x, a.b or a.mat2 or a.vec or a.other
      return g:add("MatMul", { g:value(p), g:value(q) })
    end
  end

  -- x times the transpose of the weight.
  handlers.dense = function(g, a)
    local x, w, bias = g:value(a.input), g:value(a.weight), g:value(a.bias)
    if #a.input.shape == 2 and #a.weight.shape == 2 and (not a.bias or #a.bias.shape == 1) then
      return g:add("Gemm", { x, w, bias }, { transB = 1 })
    end
    local turned = #a.weight.shape == 2 and g:add("Transpose", { w }, { perm = { 1, 0 } }) or w
    local y = g:add("MatMul", { x, turned })
    return a.bias and g:add("Add", { y, bias }) or y
  end

  local function reduce(g, name, from, a)
    -- Some have the name of torch, others that of MindSpore.
    local axis = a.axis
    if axis == nil then axis = a.dim end
    local keep = a.keep_dims
    if keep == nil then keep = a.keepdims end
    if keep == nil then keep = a.keepdim end
    return g:add(name, { from, axis ~= nil and g:integers(list_of(axis)) or "" }, { keepdims = keep and 1 or 0 })
  end
  local function reduction(name)
    return function(g, a, node)
      local x = a.input or a.x
      local from = g:value(x)
      -- Sums of integers are wider than their elements.
      if node.dtype ~= x.dtype then from = g:cast(from, node.dtype) end
      return reduce(g, name, from, a)
    end
  end
  -- Booleans have no order before opset 20; as bytes their least and greatest are right for no elements, too.
  local function truth(name)
    return function(g, a)
      local from = g:value(a.input)
      if a.input.dtype ~= ms.bool then from = g:cast(from, ms.bool) end
      return g:cast(reduce(g, name, g:cast(from, ms.uint8), a), ms.bool)
    end
  end
  handlers.all, handlers.any = truth "ReduceMin", truth "ReduceMax"
  handlers.sum = reduction "ReduceSum"
  handlers.reduce_sum = reduction "ReduceSum"
  handlers.mean = reduction "ReduceMean"
  handlers.reduce_mean = reduction "ReduceMean"
  handlers.prod = reduction "ReduceProd"
  handlers.amax = reduction "ReduceMax"
  handlers.amin = reduction "ReduceMin"
  handlers.logsumexp = reduction "ReduceLogSumExp"

  -- The mean of the squares, or their sum divided by so many fewer.
  local function spread_of(g, a)
    local axes = a.axis ~= nil and list_of(a.axis) or nil
    local keep = { keepdims = a.keepdims and 1 or 0 }
    local on = axes and g:integers(axes) or ""
    local x, dtype, count = g:value(a.input), a.input.dtype, 1
    for i, n in ipairs(a.input.shape) do
      local reduced = not axes
      for _, axis in ipairs(axes or {}) do reduced = reduced or axis_of(axis, #a.input.shape) == i - 1 end
      if reduced then count = count * n end
    end
    local less = a.ddof == true and 1 or a.ddof == false and 0 or a.ddof
    local centred = g:add("Sub", { x, g:add("ReduceMean", { x, on }, { keepdims = 1 }) })
    local sum = g:add("ReduceSum", { g:add("Mul", { centred, centred }), on }, keep)
    return g:add("Div", { sum, g:number(count - less + 0.0, dtype) })
  end
  handlers.var = spread_of
  handlers.std = function(g, a) return g:add("Sqrt", { spread_of(g, a) }) end

  handlers.vector_norm = function(g, a)
    local x, order = g:value(a.x), a.ord
    if order ~= 1 and order ~= 2 then g:fail(("ord %s is not supported"):format(tostring(order))) end
    return g:add(order == 1 and "ReduceL1" or "ReduceL2", { x, a.axis ~= nil and g:integers(list_of(a.axis)) or "" },
      { keepdims = a.keepdims and 1 or 0 })
  end

  local function extreme(values, positions)
    return function(g, a)
      if a.axis == nil then return g:add(values, { g:value(a.input) }, { keepdims = 0 }) end
      local keep = { keepdims = a.keepdims and 1 or 0 }
      local y = g:add(values, { g:value(a.input), g:integers { a.axis } }, keep)
      return y, g:add(positions, { g:value(a.input) }, { axis = a.axis, keepdims = keep.keepdims })
    end
  end
  handlers.max, handlers.min = extreme("ReduceMax", "ArgMax"), extreme("ReduceMin", "ArgMin")

  local function position(name)
    return function(g, a, node)
      local axis = a.dim
      if axis == nil then axis = a.axis end
      local keep = a.keepdim
      if keep == nil then keep = a.keepdims end
      local x = g:value(a.input)
      if axis == nil then x, axis, keep = g:reshape(x, { -1 }), 0, false end
      local y = g:add(name, { x }, { axis = axis, keepdims = keep and 1 or 0 })
      return node.dtype == ms.int64 and y or g:cast(y, node.dtype)
    end
  end
  handlers.argmax, handlers.argmin = position "ArgMax", position "ArgMin"

  handlers.cumsum = function(g, a, node)
    local x = g:value(a.x)
    if node.dtype ~= a.x.dtype then x = g:cast(x, node.dtype) end
    return g:add("CumSum", { x, g:number(a.axis, ms.int64) }, { exclusive = a.exclusive, reverse = a.reverse })
  end
  handlers.sort = function(g, a)
    local n = a.input_x.shape[axis_of(a.axis, #a.input_x.shape) + 1]
    return g:add("TopK", { g:value(a.input_x), g:integers { n } }, { axis = a.axis, largest = a.descending }, 2)
  end
  handlers.topk = function(g, a)
    return g:add("TopK", { g:value(a.input), g:integers { a.k } },
      { axis = a.dim or -1, largest = a.largest, sorted = a.sorted }, 2)
  end

  local function over_axis(name)
    return function(g, a) return g:add(name, { g:value(a.input or a.logits) }, { axis = a.axis }) end
  end
  handlers.softmax, handlers.log_softmax = over_axis "Softmax", over_axis "LogSoftmax"

  handlers.layer_norm = function(g, a)
    local x, count = a.input, #list_of(a.normalized_shape)
    local weight = a.weight and g:value(a.weight) or g:tensor(ms.ops.ones(list_of(a.normalized_shape), x.dtype))
    return g:add("LayerNormalization", { g:value(x), weight, g:value(a.bias) }, { axis = -count, epsilon = a.eps })
  end
  handlers.rms_norm = function(g, a)
    local x, axes, dtype = g:value(a.x), {}, a.x.dtype
    for i = 1, #a.gamma.shape do axes[i] = -i end
    local mean = g:add("ReduceMean", { g:add("Mul", { x, x }), g:integers(axes) }, { keepdims = 1 })
    local inverse = g:add("Reciprocal", { g:add("Sqrt", { g:add("Add", { mean, g:number(a.epsilon, dtype) }) }) })
    return g:add("Mul", { g:add("Mul", { x, inverse }), g:value(a.gamma) }), inverse
  end
  handlers.batch_norm = function(g, a)
    if a.training then g:fail "a network in training mode is not supported; export it after net:set_train(false)" end
    local x, channels = a.input_x, a.input_x.shape[2]
    local function channel(v, fill)
      if v == nil then return g:tensor(ms.ops.full({ channels }, fill, x.dtype)) end
      return g:value(v)
    end
    local inputs = {
      g:value(x), channel(a.weight, 1.0), channel(a.bias, 0.0), channel(a.running_mean, 0.0), channel(a.running_var, 1.0),
    }
    return g:add("BatchNormalization", inputs, { epsilon = a.eps })
  end
  handlers.group_norm = function(g, a, node)
    local x, dtype, channels = a.input, a.input.dtype, a.input.shape[2]
    local rows = g:reshape(g:value(x), { x.shape[1], a.num_groups, -1 })
    local one, zero = ms.ops.ones({ a.num_groups }, dtype), ms.ops.zeros({ a.num_groups }, dtype)
    local y = g:add("InstanceNormalization", { rows, g:tensor(one), g:tensor(zero) }, { epsilon = a.eps })
    y = g:reshape(y, node.shape)
    local per_channel = { channels }
    for i = 3, #x.shape do per_channel[i - 1] = 1 end
    if a.weight then y = g:add("Mul", { y, g:reshape(g:value(a.weight), per_channel) }) end
    if a.bias then y = g:add("Add", { y, g:reshape(g:value(a.bias), per_channel) }) end
    return y
  end

  -- Two paddings for each axis from one number, one for each axis, or two for each.
  local function pads_of(padding, rank)
    local list = list_of(padding)
    local before, after = {}, {}
    for i = 1, rank do
      if #list == 2 * rank then
        before[i], after[i] = list[2 * i - 1], list[2 * i]
      else
        before[i] = list[i] or list[1]
        after[i] = before[i]
      end
    end
    return table.move(after, 1, rank, rank + 1, before)
  end

  for rank, op in ipairs { "conv1d", "conv2d", "conv3d" } do
    handlers[op] = function(g, a)
      local kernel = {}
      for i = 1, rank do kernel[i] = a.weight.shape[i + 2] end
      local attributes = {
        kernel_shape = kernel, strides = spread(a.stride, rank), dilations = spread(a.dilation, rank), group = a.groups,
      }
      if a.pad_mode == "same" then
        attributes.auto_pad = "SAME_UPPER"
      elseif a.pad_mode == "pad" then
        attributes.pads = pads_of(a.padding, rank)
      end
      return g:add("Conv", { g:value(a.input), g:value(a.weight), g:value(a.bias) }, attributes)
    end
  end
  for rank, op in ipairs { "conv_transpose1d", "conv_transpose2d", "conv_transpose3d" } do
    handlers[op] = function(g, a)
      local pads, more, strides = pads_of(a.padding, rank), spread(a.output_padding, rank), spread(a.stride, rank)
      local attributes = { strides = strides, dilations = spread(a.dilation, rank), group = a.groups, pads = pads, output_padding = more }
      local wide = false
      for i = 1, rank do wide = wide or more[i] > 0 and more[i] >= strides[i] end
      if not wide then return g:add("ConvTranspose", { g:value(a.input), g:value(a.weight), g:value(a.bias) }, attributes) end
      -- The standard's output_padding is smaller than the stride: less is cut off at the end, and what is there beyond that
      -- is the bias alone.
      local beyond, any, per_channel = {}, false, { a.weight.shape[2] * a.groups }
      for i = 1, rank do
        local left = pads[rank + i] - more[i]
        pads[rank + i] = math.max(left, 0)
        beyond[2 + i], beyond[4 + rank + i] = 0, math.max(-left, 0)
        any = any or left < 0
        per_channel[1 + i] = 1
      end
      attributes.output_padding = nil
      if not any then return g:add("ConvTranspose", { g:value(a.input), g:value(a.weight), g:value(a.bias) }, attributes) end
      local y = g:add("ConvTranspose", { g:value(a.input), g:value(a.weight) }, attributes)
      beyond[1], beyond[2], beyond[3 + rank], beyond[4 + rank] = 0, 0, 0, 0
      y = g:add("Pad", { y, g:integers(beyond), g:number(0.0, a.input.dtype) }, { mode = "constant" })
      if a.bias then y = g:add("Add", { y, g:reshape(g:value(a.bias), per_channel) }) end
      return y
    end
  end

  for rank, op in ipairs { "max_pool1d", "max_pool2d", "max_pool3d" } do
    handlers[op] = function(g, a)
      if a.return_indices then g:fail "return_indices is not supported" end
      return g:add("MaxPool", { g:value(a.x) }, {
        kernel_shape = spread(a.kernel_size, rank), strides = spread(a.stride or a.kernel_size, rank),
        pads = pads_of(a.padding, rank), dilations = spread(a.dilation, rank), ceil_mode = a.ceil_mode,
      })
    end
  end
  for rank, op in ipairs { "avg_pool1d", "avg_pool2d", "avg_pool3d" } do
    handlers[op] = function(g, a)
      if a.divisor_override and a.divisor_override ~= 0 then g:fail "divisor_override is not supported" end
      return g:add("AveragePool", { g:value(a.input_x) }, {
        kernel_shape = spread(a.kernel_size, rank), strides = spread(a.stride or a.kernel_size, rank),
        pads = pads_of(a.padding, rank), ceil_mode = a.ceil_mode, count_include_pad = a.count_include_pad,
      })
    end
  end

  handlers.attention = function(g, a)
    local q, k, v, dtype = g:value(a.query), g:value(a.key), g:value(a.value), a.query.dtype
    local scores = g:add("MatMul", { g:add("Mul", { q, g:number(a.scale + 0.0, dtype) }),
      g:add("Transpose", { k }, { perm = { 0, 1, 3, 2 } }) })
    if a.causal then
      local rows, columns = a.query.shape[3], a.key.shape[3]
      local i = ms.ops.reshape(ms.ops.arange(rows), { rows, 1 }) + a.shift
      local seen = ms.ops.less_equal(ms.ops.reshape(ms.ops.arange(columns), { 1, columns }), i)
      local mask = ms.ops.where(seen, ms.ops.zeros({}, dtype), ms.ops.full({}, -math.huge, dtype))
      scores = g:add("Add", { scores, g:tensor(mask) })
    end
    return g:add("MatMul", { g:add("Softmax", { scores }, { axis = -1 }), v })
  end
end
