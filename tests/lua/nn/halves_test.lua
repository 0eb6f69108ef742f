-- float16 and bfloat16 in every layer, loss and optimizer of ms.nn: a cell that computes in one of them, by to_float or by
-- the levels of mixed precision, gives what it gives in float32 for the same rounded inputs and parameters; so do its
-- gradients and one step of every optimizer. Sweeps over all names: one without a case here fails.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, amp = ms.nn, ms.ops, ms.amp

local f32, dtypes = ms.float32, { ms.float16, ms.bfloat16 }

-- How far a result may be from that of float32, beside the larger of one and the largest element: 8 units in the last place.
local MARGIN = { [ms.float16] = 2 ^ -8, [ms.bfloat16] = 2 ^ -5 }
-- What runs through more than one layer of rounded values, or is scaled to the spread of a few of them.
local DEEP = { Transformer = 3, TransformerDecoder = 3, TransformerDecoderLayer = 3, TransformerEncoder = 3,
  TransformerEncoderLayer = 3, MultiheadAttention = 2, LSTM = 2, GRU = 2, RNN = 2 }

local function values(shape, k)
  local count = 1
  for _, size in ipairs(shape) do count = count * size end
  return ops.reshape(ops.sin(ops.arange(0, count, 1, { dtype = f32 }) * 0.7 + (1.3 * k + 0.2)) * 0.75, shape)
end
local function positive(shape, k) return ops.abs(values(shape, k)) * 0.5 + 0.25 end

local classes = ms.tensor { 2, 0, 1 }
local signs = ms.tensor { { 1.0, -1.0, 1.0, -1.0 }, { -1.0, 1.0, 1.0, -1.0 }, { 1.0, 1.0, -1.0, -1.0 } }
local line, picture, volume = { 2, 4, 6 }, { 2, 4, 6, 6 }, { 1, 4, 4, 4, 4 }
local matrix = { 3, 4 }

-- A case: make() gives the cell; then its inputs, which are shapes (filled with values) or tensors.
local cases = {}
local function case(name, make, ...) cases[name] = { make = make, inputs = { ... } } end
-- Names whose cell is made with these arguments, for inputs of these shapes.
local function plain(names, arguments, ...)
  for name in names:gmatch "%S+" do
    case(name, function() return nn[name](table.unpack(arguments)) end, ...)
  end
end

plain([[CELU ELU FastGelu GELU HShrink HSigmoid HSwish Hardtanh Identity LeakyReLU LogSigmoid LogSoftmax Mish ReLU ReLU6 SeLU
  SiLU Sigmoid SoftShrink Softmax Softmin Softsign Tanh Tanhshrink GLU PReLU Flatten]], {}, matrix)
plain("Threshold", { 0.1, 0.5 }, matrix)
plain("Dense Linear", { 4, 5 }, matrix)
plain("BiDense", { 3, 4, 2 }, { 5, 3 }, { 5, 4 })
plain("ClipByNorm", {}, matrix, ms.tensor { 0.5 })
plain("Embedding EmbeddingLookup", { 5, 3 }, classes)
plain("Pad", { { { 0, 0 }, { 1, 2 } } }, matrix)
plain("Unflatten", { 1, { 2, 2 } }, matrix)
plain("Dropout Dropout1d", { { p = 0.4 } }, line)
plain("Dropout2d", { 0.4 }, picture)
plain("Dropout3d", { 0.4 }, volume)
plain("ConstantPad1d", { 1, 0.5 }, line)
plain("ConstantPad2d", { 1, 0.5 }, picture)
plain("ConstantPad3d", { 1, 0.5 }, volume)
plain("ReflectionPad1d ReplicationPad1d", { 1 }, line)
plain("ReflectionPad2d ReplicationPad2d ZeroPad2d", { 1 }, picture)
plain("ReflectionPad3d ReplicationPad3d", { 1 }, volume)
plain("PixelShuffle PixelUnshuffle ChannelShuffle", { 2 }, picture)
plain("Softmax2d", {}, picture)
plain("RReLU", { 0.25, 0.25 }, picture)
plain("Unfold", { 2, 1, 1 }, picture)
plain("Upsample", { { scale_factor = 2.0, mode = "bilinear" } }, picture)
plain("Conv2dBnAct", { 4, 3, 3, { has_bn = true, activation = "relu" } }, picture)
plain("DenseBnAct", { 4, 5, { has_bn = true, activation = "relu" } }, matrix)
plain("Conv1d Conv1dTranspose", { 4, 3, 3 }, line)
plain("Conv2d Conv2dTranspose", { 4, 3, 3 }, picture)
plain("Conv3d Conv3dTranspose", { 4, 3, 3 }, volume)
plain("AdaptiveAvgPool1d AdaptiveMaxPool1d", { 3 }, line)
plain("AdaptiveAvgPool2d AdaptiveMaxPool2d", { { 2, 3 } }, picture)
plain("AdaptiveAvgPool3d AdaptiveMaxPool3d", { { 2, 3, 2 } }, volume)
plain("AvgPool1d MaxPool1d", { 2, 2 }, line)
plain("AvgPool2d MaxPool2d", { 2, 2 }, picture)
plain("AvgPool3d MaxPool3d", { 2, 2 }, volume)
plain("LPPool1d", { 2, 2 }, positive(line, 1))
plain("LPPool2d", { 2, 2 }, positive(picture, 1))
for axes, shape in ipairs { line, picture, volume } do
  -- The second input is the indices that pooling has given.
  local _, indices = nn[("MaxPool%dd"):format(axes)](2, 2, { return_indices = true })(values(shape, 0))
  plain(("MaxUnpool%dd"):format(axes), { 2, 2 }, indices.shape, indices)
end
plain("BatchNorm1d", { 4 }, { 6, 4 })
plain("BatchNorm2d SyncBatchNorm", { 4 }, picture)
plain("BatchNorm3d", { 4 }, volume)
plain("GroupNorm", { 2, 4 }, picture)
plain("InstanceNorm1d", { 4 }, line)
plain("InstanceNorm2d", { 4 }, picture)
plain("InstanceNorm3d", { 4 }, volume)
plain("LRN", {}, picture)
plain("LayerNorm", { { 6 } }, line)
plain("RMSNorm", { 6 }, line)
plain("GRU RNN", { 6, 3 }, { 4, 2, 6 })
plain("GRUCell RNNCell", { 4, 5 }, matrix, { 3, 5 })
-- States come in a table.
local function with_states(cell)
  local Around = nn.Cell:extend "Around"
  function Around:init() self.cell = cell end
  function Around:construct(x, h, c) return self.cell(x, { h, c }) end
  return Around()
end
case("LSTMCell", function() return with_states(nn.LSTMCell(4, 5)) end, matrix, { 3, 5 }, { 3, 5 })
case("LSTM", function() return with_states(nn.LSTM(6, 3)) end, { 4, 2, 6 }, { 1, 2, 3 }, { 1, 2, 3 })
plain("MultiheadAttention", { 6, 2 }, { 4, 2, 6 }, { 4, 2, 6 }, { 4, 2, 6 })
local small = { dim_feedforward = 5, dropout = 0.0 }
plain("TransformerEncoderLayer", { 6, 2, small }, { 4, 2, 6 })
plain("TransformerDecoderLayer", { 6, 2, small }, { 4, 2, 6 }, { 5, 2, 6 })
case("TransformerEncoder", function() return nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, small), 2) end, { 4, 2, 6 })
case("TransformerDecoder", function() return nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, small), 2) end,
  { 4, 2, 6 }, { 5, 2, 6 })
plain("Transformer", { 6, 2, 1, 1, 5, { dropout = 0.0 } }, { 5, 2, 6 }, { 4, 2, 6 })
case("SequentialCell", function() return nn.SequentialCell(nn.Dense(4, 5), nn.Tanh(), nn.Dense(5, 2)) end, matrix)
case("TimeDistributed", function() return nn.TimeDistributed(nn.Dense(6, 3), { time_axis = 1, reshape_with_axis = 0 }) end, line)
case("MicroBatchInterleaved", function() return nn.MicroBatchInterleaved(nn.Dense(4, 5), 2) end, { 4, 4 })

plain("L1Loss MAELoss MSELoss RMSELoss SmoothL1Loss HuberLoss", {}, matrix, matrix)
plain("BCELoss", {}, positive(matrix, 0), positive(matrix, 1))
plain("BCEWithLogitsLoss", {}, matrix, positive(matrix, 1))
plain("CrossEntropyLoss", {}, matrix, classes)
case("NLLLoss", function() return nn.NLLLoss() end, ops.log_softmax(values(matrix, 0), -1), classes)
case("KLDivLoss", function() return nn.KLDivLoss() end, ops.log_softmax(values(matrix, 0), -1), ops.softmax(values(matrix, 1), -1))
plain("SoftmaxCrossEntropyWithLogits", { true }, matrix, classes)
plain("SoftMarginLoss", {}, matrix, signs)
plain("CosineEmbeddingLoss", {}, matrix, matrix, ms.tensor { 1, -1, 1 })
case("CTCLoss", function() return nn.CTCLoss() end, ops.log_softmax(values({ 7, 2, 4 }, 0), -1), ms.tensor { { 1, 2, 2 }, { 3, 1, 0 } },
  ms.tensor { 7, 5 }, ms.tensor { 3, 2 })
plain("DiceLoss", {}, positive(matrix, 0), positive(matrix, 1))
plain("MultiClassDiceLoss", {}, positive(matrix, 0), positive(matrix, 1))
plain("FocalLoss", {}, { 3, 4, 2 }, ms.tensor { { { 0, 1 } }, { { 3, 2 } }, { { 1, 0 } } })
plain("GaussianNLLLoss", {}, matrix, matrix, positive(matrix, 2))
plain("HingeEmbeddingLoss", {}, matrix, signs)
plain("MarginRankingLoss", {}, matrix, matrix, signs)
plain("TripletMarginLoss TripletMarginWithDistanceLoss", {}, matrix, matrix, matrix)
plain("MultiMarginLoss", {}, matrix, classes)
plain("MultilabelMarginLoss", {}, matrix, ms.tensor { { 2, 0, -1, 1 }, { 1, -1, 0, 2 }, { 3, 2, 1, 0 } })
plain("MultiLabelSoftMarginLoss", {}, matrix, ops.relu(signs))
plain("PoissonNLLLoss", {}, matrix, positive(matrix, 1))

-- Names of ms.nn without a case of their own, and why.
local NO_CASE = {}
for why, names in pairs {
  ["what other cells extend"] = "Cell LossBase Optimizer LearningRateSchedule",
  ["a container, which computes nothing"] = "CellDict CellList",
  ["steps and evaluations: their own tests, and below"] = [[TrainOneStepCell TrainOneStepWithLossScaleCell WithEvalCell WithGradCell
    WithLossCell ForwardValueAndGrad GradAccumulationCell GradientAccumulation PipelineCell DynamicLossScaleUpdateCell
    FixedLossScaleUpdateCell DistributedGradReducer ParameterUpdate Jvp Vjp GraphCell]],
  ["weights in blocks, places as integers, a layer within: tests/lua/lite"] = "BlockDense BlockEmbedding KVCache LoRADense RotaryEmbedding",
  ["rows and counts on ranks: tests/lua/parallel/divided_layers_test.lua"] = "MixtureOfExperts RingAttention RowTable",
  ["schedules give numbers"] = [[CosineDecayLR ExponentialDecayLR InverseDecayLR NaturalExpDecayLR PolynomialDecayLR WarmUpLR]],
} do
  for name in names:gmatch "%S+" do NO_CASE[name] = why end
end

-- The same cell with rounded parameters, and its inputs.
local function build(case_of, dtype)
  ms.set_seed(5)
  local cell = case_of.make():set_train()
  for k, p in ipairs(cell:get_parameters()) do
    if p.requires_grad then p:assign(values(p.shape, 9 + k):astype(dtype):astype(p.dtype)) end
  end
  local inputs, axes = {}, {}
  for k, input in ipairs(case_of.inputs) do
    inputs[k] = ms.is_tensor(input) and input or values(input, k)
    if inputs[k].dtype == f32 then
      inputs[k] = inputs[k]:astype(dtype):astype(f32)
      axes[#axes + 1] = k - 1
    end
  end
  return cell, inputs, axes
end

local function tensors_of(value, list)
  if ms.is_tensor(value) then
    list[#list + 1] = value
  elseif type(value) == "table" then
    for _, item in ipairs(value) do tensors_of(item, list) end
  end
  return list
end

-- Results, gradients of inputs and parameters, and the parameters after a step against the gradient.
local function run(cell, inputs, axes)
  local results
  local function loss(...)
    results = tensors_of(table.pack(cell(...)), {})
    local sum = 0.0
    for k, r in ipairs(results) do
      if ops.is_floating_point(r) then sum = sum + ops.sum(r:astype(f32) * positive(r.shape, 49 + k)) end
    end
    return sum
  end
  local parameters = cell:trainable_params()
  ms.set_seed(11)
  loss(table.unpack(inputs))
  local plain_results = results
  ms.set_seed(11)
  local with_parameters = #parameters > 0 and parameters or nil
  local at = #axes > 0 and axes or nil
  local grads = {}
  if at or with_parameters then
    grads = tensors_of(table.pack(ms.grad(loss, at, with_parameters)(table.unpack(inputs))), {})
  end
  if #parameters > 0 then
    local of_parameters = table.move(grads, #axes + 1, #grads, 1, {})
    nn.Momentum(parameters, 0.1, 0.9)(of_parameters)
  end
  return plain_results, grads, parameters
end

local function compare(what, got, expected, margin)
  if #got ~= #expected then error(("%s: %d tensors, %d in float32"):format(what, #got, #expected)) end
  for k, x in ipairs(expected) do
    local y = got[k]
    t.equal(tostring(y.shape), tostring(x.shape))
    if ops.is_floating_point(x) then
      local largest = math.max(1, ops.amax(ops.abs(x)):item())
      local off = ops.amax(ops.abs(y:astype(f32) - x)):item()
      if not (off <= margin * largest) then
        error(("%s %d: off by %g, largest %g, margin %g\n%s\n%s"):format(what, k, off, largest, margin * largest, y, x))
      end
    else
      t.equal(y, x)
    end
  end
end

local ways = {
  to_float = function(cell, dtype) return cell:to_float(dtype) end,
  O2 = function(cell, dtype) return amp.auto_mixed_precision(cell, "O2", dtype) end,
  O3 = function(cell, dtype) return amp.auto_mixed_precision(cell, "O3", dtype) end,
}

local names = {}
for name in pairs(nn) do names[#names + 1] = name end
table.sort(names)

-- Neither is called with gradients alone.
local OTHER_CALLS = { Optimizer = true, thor = true, LBFGS = true }

local optimizers = {}
for _, name in ipairs(names) do
  local value = nn[name]
  local is_class = type(value) == "table" and rawget(value, "_is_class")
  if is_class and value._called == "optimizer" and not OTHER_CALLS[name] then
    optimizers[#optimizers + 1] = name
  elseif cases[name] then
    t.test(name .. " in halves", function()
      for _, dtype in ipairs(dtypes) do
        local margin = MARGIN[dtype] * (DEEP[name] or 1)
        local expected, expected_grads, expected_parameters = run(build(cases[name], dtype))
        for way, lower in pairs(ways) do
          local cell, inputs, axes = build(cases[name], dtype)
          local results, grads, parameters = run(lower(cell, dtype), inputs, axes)
          local title = ("%s, %s: "):format(way, dtype)
          for _, result in ipairs(results) do
            if ops.is_floating_point(result) and result.dtype ~= (way == "to_float" and dtype or f32) then
              error(("%sthe result is %s"):format(title, result.dtype))
            end
          end
          compare(title .. "result", results, expected, margin)
          compare(title .. "gradient", grads, expected_grads, margin)
          compare(title .. "parameter after a step", parameters, expected_parameters, margin)
        end
      end
    end)
  elseif is_class and value._called ~= "optimizer" and not NO_CASE[name] then
    t.test(name .. " in halves", function() error("there is no case for it") end)
  end
end

-- The cells of optimizers by name; those that are other than params and a rate.
local make = setmetatable({
  AdaFactor = function(p) return nn.AdaFactor(p) end,
  AdamW = function(p) return nn.AdamW(p, { lr = 0.05 }) end,
  Momentum = function(p) return nn.Momentum(p, 0.05, 0.9) end,
  LARS = function(p) return nn.LARS(nn.Momentum(p, 0.05, 0.9), { coefficient = 0.1 }) end,
}, { __index = function(_, name)
  return function(p) return nn[name](p, { learning_rate = 0.05 }) end
end })
for _, place in ipairs { "ms.experimental.optim", "ms.mint.optim" } do
  local list = place == "ms.mint.optim" and ms.mint.optim or ms.experimental.optim
  for name, value in pairs(list) do
    if type(value) == "table" and rawget(value, "_is_class") and value._called == "optimizer" and not OTHER_CALLS[name] then
      optimizers[#optimizers + 1] = place .. "." .. name
      make[place .. "." .. name] = function(p) return value(p, { lr = 0.05 }) end
    end
  end
end

local x, y = values({ 8, 4 }, 3), values({ 8, 2 }, 4)
for _, name in ipairs(optimizers) do
  t.test(name .. " after gradients in halves", function()
    -- A network that computes in halves; its parameters are float32.
    local function train(lower)
      ms.set_seed(7)
      local net = lower(nn.SequentialCell(nn.Dense(4, 5), nn.Tanh(), nn.Dense(5, 2)))
      local step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), make[name](net:trainable_params()))
      local first = step(x, y):astype(f32):item()
      for _ = 1, 3 do step(x, y) end
      return first, step(x, y):astype(f32):item(), net
    end
    local first, last = train(function(net) return net end)
    assert(last < first, ("the loss goes from %g to %g in float32"):format(first, last))
    for _, dtype in ipairs(dtypes) do
      for _, lower in pairs(ways) do
        local a, b, net = train(function(cell) return lower(cell, dtype) end)
        t.near(a, first, 2 * MARGIN[dtype])
        t.near(b, last, 3 * MARGIN[dtype])
        for _, p in ipairs(net:get_parameters()) do t.equal(p.dtype, f32) end
      end
      -- Parameters and gradients that are halves themselves.
      local half = ms.Parameter(values({ 3, 4 }, 1):astype(dtype), "w")
      local whole = ms.Parameter(half:astype(f32), "w")
      local a, b = make[name]({ half }), make[name]({ whole })
      for k = 1, 3 do
        local g = values({ 3, 4 }, 20 + k):astype(dtype)
        a({ g })
        b({ g:astype(f32) })
      end
      t.equal(half.dtype, dtype)
      compare(tostring(dtype), { half }, { whole }, MARGIN[dtype])
    end
  end)
end

t.finish()
