-- Layers and losses against PyTorch's, results and gradients; tests/data/layers/expected.py says how the values were made.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local expected = ms.load_safetensors("tests/data/layers/expected.safetensors")
local f64, used, compared = ms.float64, {}, {}

local function values(shape, k)
  local count = 1
  for _, size in ipairs(shape) do count = count * size end
  return ops.reshape(ops.sin(ops.arange(0, count, 1, { dtype = f64 }) * 0.7 + (1.3 * k + 0.2)) * 0.5, shape)
end

-- f is a cell, or a function with its cell in `module`.
local function compare(name, f, shapes, module)
  t.test(name, function()
    module = module or (type(f) == "table" and f or nil)
    if module and module.cells_and_names then
      for _, cell in module:cells_and_names() do compared[getmetatable(cell)] = true end
    end
    local parameters = module and module:get_parameters() or {}
    for k, p in ipairs(parameters) do p:assign(values(p.shape, 9 + k)) end
    local inputs, axes = {}, {}
    for k, shape in ipairs(shapes) do inputs[k], axes[k] = values(shape, k - 1), k - 1 end
    local results
    local function loss(...)
      results = table.pack(f(...))
      local sum = 0.0
      for k = 1, results.n do
        local r = results[k]
        if r.dtype == f64 then sum = sum + ops.sum(r * values(r.shape, 49 + k)) end
      end
      return sum
    end
    -- The second time a cell is compiled where graph mode is on.
    for _ = 1, 2 do
      loss(table.unpack(inputs))
      for k = 1, results.n do
        local key = ("%s.out%d"):format(name, k - 1)
        used[key] = true
        t.equal(tostring(results[k].shape), tostring(expected[key].shape))
        t.near(results[k], expected[key], 1e-12)
      end
    end
    local of_inputs, of_parameters = ms.grad(loss, axes, #parameters > 0 and parameters or nil)(table.unpack(inputs))
    if #inputs == 1 and ms.is_tensor(of_inputs) then of_inputs = { of_inputs } end
    for k = 1, #inputs + #parameters do
      local key = ("%s.grad%d"):format(name, k - 1)
      local got = k <= #inputs and of_inputs[k] or of_parameters[k - #inputs]
      if expected[key] then
        used[key] = true
        t.near(got, expected[key], 1e-11)
      end
    end
  end)
end

local double = { dtype = f64 }
local function with(options)
  local all = { dtype = f64 }
  for key, value in pairs(options) do all[key] = value end
  return all
end

local causal = ops.triu(ms.ones { 4, 4 }, 1):astype(ms.bool_)
local causal5 = ops.triu(ms.ones { 5, 5 }, 1):astype(ms.bool_)
local f, u = false, true
local padded = ms.tensor { { f, f, f, f, f }, { f, f, f, u, u } }
local hidden = ms.tensor { { f, f, f, f }, { f, f, f, u } }
for style, extra in pairs {
  [""] = {}, _gelu = { activation = "gelu", norm_first = true }, _batch = { batch_first = true },
} do
  local options = with { dim_feedforward = 5, dropout = 0.0 }
  for key, value in pairs(extra) do options[key] = value end
  local src, tgt = { 5, 2, 6 }, { 4, 2, 6 }
  if extra.batch_first then src, tgt = { 2, 5, 6 }, { 2, 4, 6 } end
  local encoder = nn.TransformerEncoderLayer(6, 2, options)
  compare("encoder_layer" .. style, encoder, { src })
  compare("encoder_layer_masked" .. style, function(x) return encoder(x, causal5, padded) end, { src }, encoder)
  local decoder = nn.TransformerDecoderLayer(6, 2, options)
  compare("decoder_layer" .. style, function(x, y) return decoder(x, y, causal, nil, hidden, padded) end, { tgt, src }, decoder)
end
local whole = nn.Transformer(6, 2, 2, 1, 5, with { dropout = 0.0 })
compare("transformer", whole, { { 5, 2, 6 }, { 4, 2, 6 } })
local added = ops.where(causal, -math.huge, ops.zeros({ 4, 4 }, f64))
compare("transformer_masked", function(x, y) return whole(x, y, nil, added, nil, padded, nil, padded) end,
  { { 5, 2, 6 }, { 4, 2, 6 } }, whole)
compare("encoder_unbatched", nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 5, with { dropout = 0.0 }), 2), { { 5, 6 } })

local lstm = nn.LSTMCell(3, 4, double)
compare("lstm_cell", function(x, h, c) return lstm(x, { h, c }) end, { { 2, 3 }, { 2, 4 }, { 2, 4 } }, lstm)
compare("lstm_cell_from_zero", nn.LSTMCell(3, 4, double), { { 2, 3 } })
compare("gru_cell", nn.GRUCell(3, 4, double), { { 2, 3 }, { 2, 4 } })
compare("gru_cell_unbatched", nn.GRUCell(3, 4, false, double), { { 3 }, { 4 } })
compare("rnn_cell", nn.RNNCell(3, 4, double), { { 2, 3 }, { 2, 4 } })
compare("rnn_cell_relu", nn.RNNCell(3, 4, with { nonlinearity = "relu" }), { { 2, 3 }, { 2, 4 } })

for axes, shape in ipairs { { 2, 3, 5 }, { 2, 3, 2, 3 }, { 2, 3, 2, 2, 3 } } do
  compare(("instance_norm%dd"):format(axes), nn["InstanceNorm" .. axes .. "d"](3, double), { shape })
  local function first(list) return table.move(list, 1, 2 * axes, 1, {}) end
  local picture = table.move({ 1, 2, 3, 4, 3 }, 1, axes + 2, 1, {})
  for _, kind in ipairs { "Reflection", "Replication" } do
    compare(("%s_pad%dd"):format(kind:lower(), axes), nn[kind .. "Pad" .. axes .. "d"](first { 1, 2, 0, 1, 1, 0 }), { picture })
  end
  compare(("constant_pad%dd"):format(axes), nn["ConstantPad" .. axes .. "d"](first { 1, -1, 2, 0, 1, 1 }, 2.5), { picture })
end
compare("zero_pad2d", nn.ZeroPad2d(1), { { 1, 2, 2, 3 } })
compare("pixel_shuffle", nn.PixelShuffle(2), { { 1, 8, 2, 3 } })
compare("pixel_unshuffle", nn.PixelUnshuffle(2), { { 1, 2, 4, 6 } })
for mode, shape in pairs {
  nearest = { 1, 2, 3, 4 }, bilinear = { 1, 2, 3, 4 }, bicubic = { 1, 2, 3, 4 }, linear = { 1, 2, 5 }, trilinear = { 1, 1, 2, 3, 2 },
} do
  compare("upsample_" .. mode, nn.Upsample { scale_factor = 2.0, mode = mode }, { shape })
end
compare("upsample_corners", nn.Upsample({ 5, 7 }, { mode = "bilinear", align_corners = true }), { { 1, 2, 3, 4 } })
compare("max_pool3d", nn.MaxPool3d(2, 1), { { 1, 2, 3, 3, 4 } })
compare("max_pool3d_indices", nn.MaxPool3d({ 2, 1, 2 }, 2, { pad_mode = "pad", padding = { 1, 0, 1 }, return_indices = true }),
  { { 1, 2, 3, 3, 4 } })
compare("avg_pool3d", nn.AvgPool3d(2, 1), { { 1, 2, 3, 3, 4 } })
compare("avg_pool3d_padded",
  nn.AvgPool3d({ 2, 3, 2 }, 2, { pad_mode = "pad", padding = { 1, 1, 0 }, ceil_mode = true, count_include_pad = false }),
  { { 1, 2, 3, 3, 4 } })
compare("adaptive_avg_pool3d", nn.AdaptiveAvgPool3d { 2, 1, 3 }, { { 1, 2, 3, 3, 4 } })
compare("adaptive_max_pool2d", nn.AdaptiveMaxPool2d({ 2, 3 }, true), { { 1, 2, 3, 5 } })
local pool, unpool = nn.MaxPool2d(2, 2, { return_indices = true }), nn.MaxUnpool2d(2)
compare("max_unpool2d", function(x) return unpool(pool(x)) end, { { 1, 2, 4, 6 } }, unpool)
compare("bi_dense", nn.BiDense(3, 4, 2, double), { { 2, 5, 3 }, { 2, 5, 4 } })
compare("conv3d_transpose",
  nn.Conv3dTranspose(2, 4, 2, with { stride = 2, pad_mode = "pad", padding = 1, output_padding = 1, group = 2, has_bias = true }),
  { { 1, 2, 2, 3, 2 } })
compare("threshold", nn.Threshold(0.1, 7.0), { { 2, 5 } })
compare("lrn", nn.LRN(1, 2.0, 2.0, 0.5), { { 1, 5, 2, 2 } })
compare("unflatten", nn.Unflatten(1, { 2, -1 }), { { 2, 6, 2 } })

local signs = ms.tensor({ 1.0, -1.0, -1.0, 1.0, 1.0 }, f64)
for _, reduction in ipairs { "mean", "sum", "none" } do
  local r = { reduction = reduction }
  local hinge, ranking = nn.HingeEmbeddingLoss(0.3, r), nn.MarginRankingLoss(0.2, r)
  compare("hinge_" .. reduction, function(x) return hinge(x, signs) end, { { 5 } }, hinge)
  compare("ranking_" .. reduction, function(x, y) return ranking(x, y, signs) end, { { 5 }, { 5 } }, ranking)
  compare("triplet_" .. reduction, nn.TripletMarginLoss { margin = 0.4, reduction = reduction }, { { 3, 4 }, { 3, 4 }, { 3, 4 } })
  compare("triplet_swap_" .. reduction, nn.TripletMarginLoss(3, { margin = 0.9, swap = true, reduction = reduction }),
    { { 3, 4 }, { 3, 4 }, { 3, 4 } })
  local gaussian = nn.GaussianNLLLoss { full = true, reduction = reduction }
  compare("gaussian_" .. reduction, function(x, y, v) return gaussian(x, y, v * v) end, { { 3, 4 }, { 3, 4 }, { 3, 4 } }, gaussian)
  local ctc, infinite = nn.CTCLoss(r), nn.CTCLoss { blank = 3, zero_infinity = true, reduction = reduction }
  compare("ctc_" .. reduction, function(x)
    return ctc(ops.log_softmax(3 * x, -1), ms.tensor { { 1, 2, 2 }, { 3, 1, 0 } }, ms.tensor { 7, 5 }, ms.tensor { 3, 2 })
  end, { { 7, 2, 4 } }, ctc)
  compare("ctc_infinite_" .. reduction, function(x)
    return infinite(ops.log_softmax(3 * x, -1), ms.tensor { { 1, 2, 2 }, { 0, 1, 0 } }, ms.tensor { 3, 4 }, ms.tensor { 3, 2 })
  end, { { 4, 2, 4 } })
end

-- Activations, at their defaults and with other arguments.
for name, cell in pairs {
  celu = nn.CELU(), celu_alpha = nn.CELU(0.25), elu = nn.ELU(), gelu = nn.GELU(), gelu_exact = nn.GELU(false), glu = nn.GLU(),
  glu_rows = nn.GLU(0), hard_shrink = nn.HShrink(), hard_shrink_narrow = nn.HShrink(0.2), hard_sigmoid = nn.HSigmoid(),
  hard_swish = nn.HSwish(), hard_tanh = nn.Hardtanh(), hard_tanh_narrow = nn.Hardtanh(-0.1, 0.3), identity = nn.Identity(),
  leaky_relu = nn.LeakyReLU(), leaky_relu_steep = nn.LeakyReLU(0.6), log_sigmoid = nn.LogSigmoid(), log_softmax = nn.LogSoftmax(),
  log_softmax_rows = nn.LogSoftmax(0), mish = nn.Mish(), relu = nn.ReLU(), relu6 = nn.ReLU6(), selu = nn.SeLU(), silu = nn.SiLU(),
  sigmoid = nn.Sigmoid(), soft_shrink = nn.SoftShrink(), soft_shrink_narrow = nn.SoftShrink(0.2), softmax = nn.Softmax(),
  softmax_rows = nn.Softmax(0), softmin = nn.Softmin(), softsign = nn.Softsign(), tanh = nn.Tanh(), tanh_shrink = nn.Tanhshrink(),
} do
  compare(name, function(x) return cell(8 * x) end, { { 4, 6 } }, cell)
end

compare("linear", nn.Linear(3, 4, double), { { 2, 3 } })
compare("linear", nn.Dense(3, 4, double), { { 2, 3 } })
compare("pad", nn.Pad { { 0, 0 }, { 1, 2 }, { 2, 0 } }, { { 2, 3, 4 } })
compare("pad_reflected", nn.Pad({ { 0, 0 }, { 1, 2 }, { 2, 0 } }, "REFLECT"), { { 2, 3, 4 } })
compare("fast_gelu", nn.FastGelu(), { { 4, 6 } })
compare("flatten", nn.Flatten(), { { 2, 3, 2 } })
compare("flatten_first", nn.Flatten(0, 1), { { 2, 3, 2 } })
compare("conv1d", nn.Conv1d(4, 6, 3, with { stride = 2, pad_mode = "pad", padding = 1, dilation = 2, group = 2, has_bias = true }),
  { { 2, 4, 9 } })
compare("conv1d_same", nn.Conv1d(4, 6, 3, double), { { 2, 4, 5 } })
compare("conv3d", nn.Conv3d(2, 4, 2, with { stride = 2, pad_mode = "pad", padding = 1, group = 2, has_bias = true }),
  { { 1, 2, 3, 4, 3 } })
compare("conv1d_transpose",
  nn.Conv1dTranspose(4, 6, 3, with { stride = 2, pad_mode = "pad", padding = 1, group = 2, has_bias = true }), { { 2, 4, 5 } })
-- The moving statistics are parameters too, which PyTorch's are not.
compared[nn.BatchNorm3d] = true
local norm = nn.BatchNorm3d(3, double):set_train()
compare("batch_norm3d", function(x) return norm(x) end, { { 2, 3, 2, 2, 2 } },
  { get_parameters = function() return { norm.gamma, norm.beta } end })
compare("avg_pool1d", nn.AvgPool1d(3, 2), { { 2, 3, 8 } })
compare("avg_pool1d_padded", nn.AvgPool1d(3, 2, { pad_mode = "pad", padding = 1, count_include_pad = false }), { { 2, 3, 8 } })
compare("avg_pool2d", nn.AvgPool2d(3, 2), { { 2, 3, 7, 8 } })
compare("avg_pool2d_padded", nn.AvgPool2d({ 3, 2 }, { 2, 1 }, { pad_mode = "pad", padding = 1, ceil_mode = true }), { { 2, 3, 7, 8 } })
compare("max_pool1d", nn.MaxPool1d(3, 2), { { 2, 3, 8 } })
compare("max_pool1d_indices", nn.MaxPool1d(3, 2, { pad_mode = "pad", padding = 1, dilation = 2, return_indices = true }), { { 2, 3, 8 } })
compare("max_pool2d", nn.MaxPool2d(3, 2), { { 2, 3, 7, 8 } })
compare("adaptive_avg_pool1d", nn.AdaptiveAvgPool1d(3), { { 2, 3, 8 } })
compare("adaptive_avg_pool2d", nn.AdaptiveAvgPool2d { 2, 3 }, { { 2, 3, 5, 7 } })
compare("adaptive_max_pool1d", nn.AdaptiveMaxPool1d(3, true), { { 2, 3, 8 } })
compare("adaptive_max_pool3d", nn.AdaptiveMaxPool3d({ 2, 1, 3 }, true), { { 1, 2, 3, 3, 4 } })
local lp1, lp2 = nn.LPPool1d(3, 2), nn.LPPool2d(2, { 2, 3 }, 2)
compare("lp_pool1d", function(x) return lp1(x + 1) end, { { 2, 3, 8 } }, lp1)
compare("lp_pool2d", function(x) return lp2(x + 1) end, { { 2, 3, 5, 7 } }, lp2)
for axes, shape in pairs { { 1, 2, 6 }, [3] = { 1, 2, 4, 4, 4 } } do
  local pooled = nn[("MaxPool%dd"):format(axes)](2, 2, { return_indices = true })
  local back = nn[("MaxUnpool%dd"):format(axes)](2)
  compare(("max_unpool%dd"):format(axes), function(x) return back(pooled(x)) end, { shape }, back)
end
compare("decoder", nn.TransformerDecoder(nn.TransformerDecoderLayer(6, 2, with { dim_feedforward = 5, dropout = 0.0 }), 2),
  { { 4, 2, 6 }, { 5, 2, 6 } })

local classes, several = ms.tensor { 2, 0, 1 }, ms.tensor { { 2, 0, -1, 1 }, { 1, -1, 0, 2 }, { 3, 2, 1, 0 } }
local weights = ms.tensor({ 0.5, 1.0, 2.0, 0.25 }, f64)
local both = ms.tensor({ { 1.0, -1.0, 1.0, -1.0 }, { -1.0, 1.0, 1.0, -1.0 }, { 1.0, 1.0, -1.0, -1.0 } }, f64)
local rows = { { 3, 4 }, { 3, 4 } }
for _, reduction in ipairs { "mean", "sum", "none" } do
  local function loss(name, cell, call, shapes)
    compare(name .. "_" .. reduction, call and function(...) return call(cell, ...) end or cell, shapes or rows, cell)
  end
  local r = { reduction = reduction }
  local function also(options)
    options.reduction = reduction
    return options
  end
  loss("l1", nn.L1Loss(r))
  if reduction == "mean" then loss("l1", nn.MAELoss(r)) end
  loss("mse", nn.MSELoss(r))
  loss("smooth_l1", nn.SmoothL1Loss(also { beta = 0.3 }))
  loss("huber", nn.HuberLoss(also { delta = 0.3 }))
  loss("bce", nn.BCELoss(also { weight = weights }), function(cell, x, y) return cell(ops.sigmoid(x), ops.sigmoid(y)) end)
  loss("bce_logits", nn.BCEWithLogitsLoss(also { weight = weights, pos_weight = 2 * weights }),
    function(cell, x, y) return cell(x, ops.sigmoid(y)) end)
  loss("cross_entropy", nn.CrossEntropyLoss(also { weight = weights, ignore_index = 1, label_smoothing = 0.1 }),
    function(cell, x) return cell(x, classes) end, { { 3, 4 } })
  loss("cross_entropy_soft", nn.CrossEntropyLoss(r), function(cell, x, y) return cell(x, ops.softmax(y, -1)) end)
  loss("nll", nn.NLLLoss(also { weight = weights, ignore_index = 1 }),
    function(cell, x) return cell(ops.log_softmax(x, -1), classes) end, { { 3, 4 } })
  loss("kl", nn.KLDivLoss(r), function(cell, x, y) return cell(ops.log_softmax(x, -1), ops.softmax(y, -1)) end)
  loss("cosine", nn.CosineEmbeddingLoss(also { margin = 0.2 }), function(cell, x, y) return cell(x, y, ms.tensor { 1, -1, 1 }) end)
  loss("soft_margin", nn.SoftMarginLoss(r), function(cell, x) return cell(x, both) end, { { 3, 4 } })
  loss("multi_margin", nn.MultiMarginLoss(also { p = 2, margin = 0.7, weight = weights }),
    function(cell, x) return cell(x, classes) end, { { 3, 4 } })
  loss("multi_label_margin", nn.MultilabelMarginLoss(r), function(cell, x) return cell(x, several) end, { { 3, 4 } })
  loss("multi_label_soft_margin", nn.MultiLabelSoftMarginLoss(also { weight = weights }),
    function(cell, x) return cell(x, ops.relu(both)) end, { { 3, 4 } })
  loss("poisson", nn.PoissonNLLLoss(also { log_input = false, full = true }),
    function(cell, x, y) return cell(x * x + 0.5, 3 * y * y) end)
  loss("poisson_log", nn.PoissonNLLLoss(r), function(cell, x, y) return cell(x, y * y) end)
  loss("triplet_distance", nn.TripletMarginWithDistanceLoss(also { margin = 0.4, swap = true }), nil, { { 3, 4 }, { 3, 4 }, { 3, 4 } })
end

t.test("every expected value has been compared", function()
  local missing = {}
  for key in pairs(expected) do
    -- Those of optimizers are compared in optimizers_test.lua.
    if not used[key] and not key:find "%.step%d" and not key:find "%.ax$" then missing[#missing + 1] = key end
  end
  table.sort(missing)
  t.equal(missing, {})
end)

-- Layers and losses whose values are compared elsewhere, and where.
local ELSEWHERE = {}
for where, names in pairs {
  ["the conformance data"] = [[BatchNorm1d BatchNorm2d Conv2d Conv2dTranspose Embedding GRU GroupNorm LSTM PReLU RNN
    SoftmaxCrossEntropyWithLogits]],
  ["formulas in more_layers_test.lua and parts_test.lua"] = [[ChannelShuffle ClipByNorm Conv2dBnAct DenseBnAct DiceLoss Dropout1d
    Dropout2d Dropout3d EmbeddingLookup FocalLoss GraphCell Jvp MultiClassDiceLoss RMSELoss RReLU Softmax2d SyncBatchNorm Unfold Vjp
    MicroBatchInterleaved TimeDistributed]],
  ["formulas in nn_test.lua"] = "Dropout",
  ["one rank beside several: tests/lua/parallel/divided_layers_test.lua"] = "MixtureOfExperts RingAttention RowTable",
  ["decoders of transformers: tests/lua/lite"] = "BlockDense BlockEmbedding KVCache LoRADense RMSNorm RotaryEmbedding",
  ["what other cells extend, containers, steps: nn_test.lua, parts_test.lua, tests/lua/train, their examples"] = [[Cell LossBase Optimizer
    LearningRateSchedule CellDict CellList SequentialCell TrainOneStepCell TrainOneStepWithLossScaleCell WithEvalCell WithGradCell
    WithLossCell ForwardValueAndGrad GradAccumulationCell GradientAccumulation PipelineCell DynamicLossScaleUpdateCell
    FixedLossScaleUpdateCell DistributedGradReducer ParameterUpdate]],
} do
  for name in names:gmatch "%S+" do ELSEWHERE[name] = where end
end

t.test("every layer and loss is compared", function()
  local missing = {}
  for name, value in pairs(nn) do
    local is_class = type(value) == "table" and rawget(value, "_is_class")
    -- Optimizers and schedules have files of their own.
    if is_class and value._called ~= "optimizer" and not name:find "LR$" and not compared[value] and not ELSEWHERE[name] then
      missing[#missing + 1] = name
    end
  end
  table.sort(missing)
  t.equal(missing, {})
end)

t.finish()
