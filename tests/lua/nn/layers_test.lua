-- Layers and losses against PyTorch's, results and gradients; tests/data/layers/expected.py says how the values were made.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local expected = ms.load_safetensors("tests/data/layers/expected.safetensors")
local f64, used = ms.float64, {}

local function values(shape, k)
  local count = 1
  for _, size in ipairs(shape) do count = count * size end
  return ops.reshape(ops.sin(ops.arange(0, count, 1, { dtype = f64 }) * 0.7 + (1.3 * k + 0.2)) * 0.5, shape)
end

-- f is a cell, or a function with its cell in `module`.
local function compare(name, f, shapes, module)
  t.test(name, function()
    module = module or (type(f) == "table" and f or nil)
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
compare("max_unpool2d", function(x) return unpool(pool(x)) end, { { 1, 2, 4, 6 } })
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
  compare("hinge_" .. reduction, function(x) return hinge(x, signs) end, { { 5 } })
  compare("ranking_" .. reduction, function(x, y) return ranking(x, y, signs) end, { { 5 }, { 5 } })
  compare("triplet_" .. reduction, nn.TripletMarginLoss { margin = 0.4, reduction = reduction }, { { 3, 4 }, { 3, 4 }, { 3, 4 } })
  compare("triplet_swap_" .. reduction, nn.TripletMarginLoss(3, { margin = 0.9, swap = true, reduction = reduction }),
    { { 3, 4 }, { 3, 4 }, { 3, 4 } })
  local gaussian = nn.GaussianNLLLoss { full = true, reduction = reduction }
  compare("gaussian_" .. reduction, function(x, y, v) return gaussian(x, y, v * v) end, { { 3, 4 }, { 3, 4 }, { 3, 4 } })
  local ctc, infinite = nn.CTCLoss(r), nn.CTCLoss { blank = 3, zero_infinity = true, reduction = reduction }
  compare("ctc_" .. reduction, function(x)
    return ctc(ops.log_softmax(3 * x, -1), ms.tensor { { 1, 2, 2 }, { 3, 1, 0 } }, ms.tensor { 7, 5 }, ms.tensor { 3, 2 })
  end, { { 7, 2, 4 } })
  compare("ctc_infinite_" .. reduction, function(x)
    return infinite(ops.log_softmax(3 * x, -1), ms.tensor { { 1, 2, 2 }, { 0, 1, 0 } }, ms.tensor { 3, 4 }, ms.tensor { 3, 2 })
  end, { { 4, 2, 4 } })
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

t.finish()
