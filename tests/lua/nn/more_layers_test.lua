-- Layers and losses that have no counterpart in PyTorch, or that draw numbers, against their formulas; what they say to
-- wrong arguments.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function values(...)
  local shape, count = { ... }, 1
  for _, size in ipairs(shape) do count = count * size end
  return ops.reshape(ops.sin(ops.arange(0, count, 1, { dtype = ms.float32 }) * 0.7), shape)
end

t.test("dropout of channels keeps or drops them whole", function()
  ms.set_seed(3)
  for axes, class in ipairs { nn.Dropout1d, nn.Dropout2d, nn.Dropout3d } do
    local shape = { 40, 25, table.unpack({ 2, 3, 2 }, 1, axes) }
    local x, cell = ops.ones(shape), class(0.3)
    t.equal(cell(x):sum():item(), x:sum():item())
    local y = cell:set_train()(x)
    local flat = y:reshape { 1000, -1 }
    t.equal(ops.amax(flat, 1):tolist(), ops.amin(flat, 1):tolist())
    local kept = ops.gt(flat:sum(1), 0.0):astype(ms.float32):mean():item()
    assert(math.abs(kept - 0.7) < 0.06, kept)
    t.near(flat:max():item(), 1 / 0.7, 1e-6)
    -- The gradient goes where the value goes.
    local at = ms.Parameter(values(table.unpack(shape)))
    local gradient = ms.grad(function() return (cell(at) * at):sum() end, nil, { at })()
    t.equal(gradient and #gradient, 1)
  end
  t.equal(nn.Dropout1d(1.0):set_train()(ops.ones { 3, 4, 5 }):sum():item(), 0.0)
  t.equal(nn.Dropout1d(0.0):set_train()(ops.ones { 4, 5 }):sum():item(), 20.0)
  t.fails({ "Dropout2d", "(N, C, H, W)", "(3, 4)" }, nn.Dropout2d(0.5), ops.ones { 3, 4 })
  t.fails({ "Dropout3d", "p must be a probability" }, nn.Dropout3d, 1.5)
end)

t.test("channels take turns, compete at each place, and leak by chance", function()
  local x = values(2, 6, 2, 3)
  local y = nn.ChannelShuffle(3)(x)
  -- Three groups of two channels: the first of each, then the second of each.
  for i, from in ipairs { 0, 2, 4, 1, 3, 5 } do t.equal(y:narrow(1, i - 1, 1):tolist(), x:narrow(1, from, 1):tolist()) end
  local exps = ops.exp(x)
  t.near(nn.Softmax2d()(x), exps / ops.sum(exps, 1, true), 1e-6)
  t.near(nn.Softmax2d()(x[0]), nn.Softmax2d()(x)[0], 0)
  t.fails({ "Softmax2d", "(N, C, H, W) or (C, H, W)", "(2, 3)" }, nn.Softmax2d(), ops.ones { 2, 3 })
  local leak = nn.RReLU(0.25, 0.5)
  local negative = ops.full({ 1000 }, -1.0)
  local drawn = -leak(negative)
  local least, most, mean = drawn:min():item(), drawn:max():item(), drawn:mean():item()
  assert(least >= 0.25 and least < 0.26 and most <= 0.5 and most > 0.49 and math.abs(mean - 0.375) < 0.015, mean)
  assert(ops.any(ops.not_equal(leak(negative), -drawn)):item())
  t.near(leak(ops.ones { 3 }), { 1, 1, 1 }, 0)
  t.fails({ "RReLU", "lower (0.5) must not be above upper (0.25)" }, nn.RReLU, 0.5, 0.25)
  t.fails({ "ChannelShuffle", "groups must be positive" }, nn.ChannelShuffle, 0)
end)

t.test("patches have their pixels in a row, each with all its channels", function()
  local x = values(2, 3, 5, 6)
  for _, case in ipairs { { 2, 1, 1, "valid" }, { { 1, 2, 3, 1 }, { 1, 2, 1, 1 }, { 1, 1, 2, 1 }, "valid" }, { 3, 2, 1, "same" } } do
    local cell = nn.Unfold(table.unpack(case))
    local k, s, r = cell.ksizes, cell.strides, cell.rates
    local y = cell(x)
    local before = { 0, 0 }
    if case[4] == "same" then
      t.equal(tostring(y.shape), "(2, 27, 3, 3)")
      before = { 1, 0 }
    end
    local function at(n, c, i, j)
      if i < 0 or j < 0 or i >= 5 or j >= 6 then return 0.0 end
      return x[{ n, c, i, j }]:item()
    end
    for i = 0, y.shape[3] - 1 do
      for j = 0, y.shape[4] - 1 do
        for a = 0, k[1] - 1 do
          for b = 0, k[2] - 1 do
            for c = 0, 2 do
              local row, column = i * s[1] + a * r[1] - before[1], j * s[2] + b * r[2] - before[2]
              t.equal(y[{ 1, (a * k[2] + b) * 3 + c, i, j }]:item(), at(1, c, row, column))
            end
          end
        end
      end
    end
  end
  t.fails({ "Unfold", "{1, rows, columns, 1}" }, nn.Unfold, { 2, 2, 2, 1 }, 1, 1)
  t.fails({ "Unfold", "smaller than the window (7 along axis 2)" }, nn.Unfold(7, 1, 1), x)
  t.fails({ "Unfold", "four axes" }, nn.Unfold(2, 1, 1), ops.ones { 3, 3 })
end)

t.test("norms are clipped over all elements or along axes", function()
  local x = values(3, 4)
  local norm = ops.norm(x):item()
  t.near(nn.ClipByNorm()(x, 0.5), x * (0.5 / norm), 1e-6)
  t.near(nn.ClipByNorm()(x, norm + 1), x, 1e-6)
  local rows = ops.sqrt(ops.sum(x * x, 1, true))
  t.near(nn.ClipByNorm(1)(x, ms.tensor(1.2)), x * 1.2 / ops.maximum(rows, 1.2), 1e-6)
  t.near(nn.ClipByNorm { axis = { 0, 1 } }(x, 0.5), x * (0.5 / norm), 1e-6)
  t.equal(nn.ClipByNorm()(ops.zeros { 3 }, 0.0):tolist(), { 0.0, 0.0, 0.0 })
  t.equal(ms.grad(function(z) return nn.ClipByNorm()(z, 1.0):sum() end)(ops.zeros { 2 }):tolist(), { 1.0, 1.0 })
  t.equal(tostring(nn.ClipByNorm()(x:astype(ms.float16) * 1000, 1.0).dtype), "Float16")
  t.fails({ "ClipByNorm", "clip_norm must not be negative" }, nn.ClipByNorm(), x, -1)
  t.fails({ "ClipByNorm", "axis must be an integer" }, nn.ClipByNorm, "first")
end)

t.test("rows of a table, scaled down to a norm", function()
  local cell = nn.EmbeddingLookup(6, 3, { max_norm = 0.5, param_init = "ones" })
  t.near(cell(ms.tensor { 1, 5 }), ops.full({ 2, 3 }, 0.5 / math.sqrt(3)), 1e-5)
  t.equal(nn.EmbeddingLookup(6, 3, "ones")(ms.tensor { { 1, 5 } }):sum():item(), 6.0)
  t.fails({ "EmbeddingLookup", "target must be one of 'CPU', 'DEVICE'" }, nn.EmbeddingLookup, 6, 3, { target = "GPU" })
end)

t.test("a layer with normalisation and activation is their composition", function()
  local cell = nn.Conv2dBnAct(2, 3, 3, { has_bn = true, activation = "relu", pad_mode = "valid", has_bias = true }):set_train()
  local x = values(2, 2, 5, 5)
  local bn = nn.BatchNorm2d(3, { eps = 1e-5, momentum = 0.997 }):set_train()
  t.near(cell(x), ops.relu(bn(cell.conv(x))), 1e-5)
  t.near(cell.batchnorm.moving_mean, bn.moving_mean, 1e-6)
  local dense = nn.DenseBnAct(4, 3, { activation = "leakyrelu", alpha = 0.5 })
  t.near(dense(values(2, 4)), ops.leaky_relu(dense.dense(values(2, 4)), 0.5), 1e-6)
  t.near(nn.DenseBnAct(4, 3, "ones", "zeros", { has_bn = true })(values(2, 4)), ops.sum(values(2, 4), 1, true) / math.sqrt(1 + 1e-5)
    * ops.ones { 1, 3 }, 1e-5)
  t.equal(#cell:trainable_params(), 4)
  t.fails({ "Conv2dBnAct", "activation", "there is no activation" }, nn.Conv2dBnAct, 2, 3, 3, { activation = "rellu" })
  t.fails({ "DenseBnAct", "did you mean 'has_bn'?" }, nn.DenseBnAct, 2, 3, { has_bnn = true })
end)

t.test("synchronous batch normalisation of one process", function()
  local x = values(4, 3, 2, 2)
  local cell, plain = nn.SyncBatchNorm(3):set_train(), nn.BatchNorm2d(3):set_train()
  t.near(cell(x), plain(x), 1e-6)
  t.near(cell.moving_variance, plain.moving_variance, 1e-6)
  t.near(nn.SyncBatchNorm(3, { process_groups = { { 0 } } })(values(4, 3)), values(4, 3), 1e-4)
  t.fails({ "SyncBatchNorm", "there is one process" }, nn.SyncBatchNorm, 3, { process_groups = { { 0, 1 } } })
end)

t.test("products with Jacobians", function()
  local function f(x, y) return x * y, x + y end
  local x, y = ms.tensor { 2.0, 3.0 }, ms.tensor { 5.0, 7.0 }
  local value, product = nn.Jvp(function(a, b) return a * b end)(x, y, { ms.tensor { 1.0, 0.0 }, ms.tensor { 0.0, 2.0 } })
  t.equal(value:tolist(), { 10.0, 21.0 })
  t.equal(product:tolist(), { 5.0, 6.0 })
  local _, first, second = nn.Vjp(f)(x, y, { ms.tensor { 1.0, 1.0 }, ms.tensor { 1.0, 0.0 } })
  t.equal(first:tolist(), { 6.0, 7.0 })
  t.equal(second:tolist(), { 3.0, 3.0 })
  local net = nn.Dense(2, 3)
  t.near(select(2, nn.Vjp(net)(x:reshape { 1, 2 }, ops.ones { 1, 3 })), net.weight:sum(0, true), 1e-6)
  t.fails({ "Jvp", "fn must be a function or a cell, got 3" }, nn.Jvp, 3)
  t.fails({ "Jvp", "table of 2 vectors" }, nn.Jvp(f), x, y, x)
  t.fails({ "Vjp", "got 1 arguments" }, nn.Vjp(f), x)
end)

t.test("a saved graph is a cell whose parameters are trained on", function()
  local net, path = nn.Dense(2, 3), os.tmpname() .. ".mindir"
  ms.save_mindir(net, path, ms.ones { 1, 2 })
  local x = values(4, 2)
  local cell = nn.GraphCell(path)
  t.near(cell(x), net(x), 1e-6)
  t.equal(#cell:trainable_params(), 2)
  local graph, weights = ms.load_mindir(path)
  local shared = nn.GraphCell(graph, weights)
  local step = nn.SGD(shared:trainable_params(), 0.1)
  local before = shared(x):sum():item()
  step(select(2, ms.value_and_grad(function() return shared(x):sum() end, nil, shared:trainable_params())()))
  assert(shared(x):sum():item() < before)
  local names = {}
  for name in pairs(weights) do names[#names + 1] = name end
  local zeros = {}
  for _, name in ipairs(names) do zeros[name] = ops.zeros_like(weights[name]) end
  t.equal(nn.GraphCell(path, zeros)(x):sum():item(), 0.0)
  t.fails({ "GraphCell", "no parameter", "nothing" }, nn.GraphCell, path, { nothing = x })
  t.fails({ "GraphCell", "of shape", "(4, 2)" }, nn.GraphCell, path, { [names[1]] = x })
  t.fails({ "GraphCell", "graph must be the path" }, nn.GraphCell, 3)
  os.remove(path)
end)

t.test("copies of a layer have parameters of their own", function()
  local layer = nn.TransformerEncoderLayer(4, 2, 8, { dropout = 0.0 }):to_float(ms.float16)
  local encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm { 4 })
  local x = values(3, 2, 4)
  t.equal(tostring(encoder.layers[2](x).dtype), "Float16")
  t.equal(#encoder:get_parameters(), 2 * 12 + 2)
  t.equal(encoder:get_parameters()[13].name, "layers.1.self_attn.in_proj_weight")
  t.equal(encoder.layers[1].linear1.weight:tolist(), layer.linear1.weight:tolist())
  encoder.layers[1].linear1.weight:fill_(0)
  assert(layer.linear1.weight:abs():sum():item() > 0 and encoder.layers[2].linear1.weight:abs():sum():item() > 0)
end)

t.test("the transformer learns to repeat a sequence", function()
  ms.set_seed(1)
  local net = nn.Transformer(8, 2, 1, 1, 16, { dropout = 0.0, batch_first = true }):set_train()
  local opt = nn.Adam(net:trainable_params(), 0.01)
  local x = values(4, 5, 8)
  local step = ms.value_and_grad(function() return nn.MSELoss()(net(x, x), x) end, nil, net:trainable_params())
  local first, loss, grads
  for _ = 1, 40 do
    loss, grads = step()
    first = first or loss:item()
    opt(grads)
  end
  assert(loss:item() < first / 2, loss:item() .. " after " .. first)
end)

t.test("arguments of transformers are checked", function()
  t.fails({ "TransformerEncoderLayer", "d_model (6) must be divisible by nhead (4)" }, nn.TransformerEncoderLayer, 6, 4)
  t.fails({ "Transformer", "did you mean 'norm_first'?" }, nn.Transformer, 8, 2, { norm_firsst = true })
  t.fails({ "TransformerEncoderLayer", "activation must be 'relu', 'gelu'" }, nn.TransformerEncoderLayer, 6, 2, { activation = "tanh" })
  t.fails({ "TransformerDecoder", "decoder_layer must be a cell" }, nn.TransformerDecoder, 3, 2)
  t.fails({ "TransformerEncoderLayer", "src", "(3, 2, 5)" }, nn.TransformerEncoderLayer(4, 2, 8), ops.ones { 3, 2, 5 })
  t.fails({ "TransformerDecoderLayer", "both or none have a batch" }, nn.TransformerDecoderLayer(4, 2, 8), ops.ones { 3, 4 },
    ops.ones { 3, 2, 4 })
end)

-- Values and gradients: by position and by name, in every mode.
t.test("inputs that may be left out are given by position or by name", function()
  local x, later = values(2, 4, 8), ops.triu(ops.ones({ 4, 4 }, ms.bool_), 1)
  local padding = ms.tensor { { false, false, false, true }, { false, false, true, true } }
  local options = { batch_first = true, dropout = 0.0 }
  local function same(cell, named, ...)
    local given = table.pack(...)
    local params = cell:trainable_params()
    local gradient = ms.value_and_grad(function(...) return ((cell(...))):sum() end, nil, params)
    local value, grads = gradient(table.unpack(given, 1, given.n))
    local other, others = gradient(table.unpack(named))
    t.equal(other:item(), value:item())
    for i, g in ipairs(grads) do t.near(others[i], g, 0) end
  end
  same(nn.Transformer(8, 2, 1, 1, 16, options), { x, x, { tgt_mask = later, src_key_padding_mask = padding } },
    x, x, nil, later, nil, padding)
  same(nn.Transformer(8, 2, 1, 1, 16, options), { x, x, nil, later, { src_key_padding_mask = padding } }, x, x, nil, later, nil, padding)
  local encoder, decoder = nn.TransformerEncoderLayer(8, 2, 16, options), nn.TransformerDecoderLayer(8, 2, 16, options)
  same(encoder, { x, { src_key_padding_mask = padding } }, x, nil, padding)
  same(nn.TransformerEncoder(encoder, 2), { x, { src_mask = later } }, x, later)
  same(decoder, { x, x, { memory_mask = later, tgt_key_padding_mask = padding } }, x, x, nil, later, padding)
  same(nn.TransformerDecoder(decoder, 2), { x, x, { memory_mask = later } }, x, x, nil, later)
  local attention = nn.MultiheadAttention(8, 2, { batch_first = true })
  same(attention, { x, x, x, { attn_mask = later, need_weights = false } }, x, x, x, nil, false, later)
  t.equal(select("#", attention(x, x, x, { need_weights = false })), 1)
  local h, c = values(1, 2, 4), values(1, 2, 4) + 1
  same(nn.LSTM(8, 4, { batch_first = true }), { x, { hx = { h, c } } }, x, { h, c })
  same(nn.GRU(8, 4, { batch_first = true }), { x, { hx = h } }, x, h)
  same(nn.RNN(8, 4, { batch_first = true }), { x, { hx = h } }, x, h)
  same(nn.GRUCell(8, 4), { x[0], { hx = ops.ones { 4, 4 } } }, x[0], ops.ones { 4, 4 })
  t.fails({ "MultiheadAttention", "there is no input 'attn_mas'", "did you mean 'attn_mask'?" }, attention, x, x, x, { attn_mas = later })
  t.fails({ "TransformerEncoderLayer", "src_mask is given twice" }, encoder, x, later, { src_mask = later })
  t.fails({ "MultiheadAttention", "masks must be tensors, got a table" }, attention, x, x, x, nil, nil, { later })
  t.fails({ "LSTM", "there is no input 'h'; there are: hx" }, nn.LSTM(8, 4), x, { h = { h, c } })
end)

-- Which way a program is saved depends on what it asks of its inputs; masks are constants, captured or made in the function.
t.test("attention with masks is saved", function()
  local x, later = values(2, 4, 8), ops.triu(ops.ones({ 4, 4 }, ms.bool_), 1)
  local attention = nn.MultiheadAttention(8, 2, { batch_first = true }):set_train(false)
  local layer = nn.TransformerEncoderLayer(8, 2, 16, { batch_first = true }):set_train(false)
  local path = os.tmpname()
  for _, f in ipairs {
    function(v) return layer(v, later) end,
    function(v) return layer(v, { src_mask = later }) end,
    function(v) return (attention(v, v, v, nil, true, later)) end,
    function(v) return (attention(v, v, v, nil, false, ops.where(later, -1e30, 0.0))) end,
  } do
    ms.save_mindir(f, path, x)
    t.near(ms.load_mindir(path)(x), f(x), 1e-6)
  end
  os.remove(path)
end)

t.test("losses of overlaps and hard examples", function()
  local logits = ms.tensor { { 0.2, 0.5 }, { 0.3, 0.1 }, { 0.9, 0.6 } }
  local labels = ms.tensor { { 0.0, 1.0 }, { 1.0, 0.0 }, { 0.0, 1.0 } }
  t.near(nn.DiceLoss()(logits, labels):item(), 0.38596618, 1e-6)
  local classes = ms.tensor { { 0.2, 0.5, 0.7 }, { 0.3, 0.1, 0.5 }, { 0.9, 0.6, 0.3 } }
  local which = ms.tensor { { 0.0, 1.0, 0.0 }, { 1.0, 0.0, 0.0 }, { 0.0, 0.0, 1.0 } }
  t.near(nn.MultiClassDiceLoss()(classes, which):item(), 0.54958105, 1e-6)
  local one = function(i) return nn.DiceLoss()(classes:narrow(1, i, 1), which:narrow(1, i, 1)):item() end
  local weighted = nn.MultiClassDiceLoss { weights = ms.tensor { 1.0, 5.0, 2.0 }, ignore_indiex = 1, activation = false }
  t.near(weighted(classes, which):item(), (one(0) + 2 * one(2)) / 3, 1e-6)
  t.near(nn.RMSELoss()(logits, labels):item(), math.sqrt(((logits - labels) ^ 2):mean():item()), 1e-6)
  t.fails({ "DiceLoss", "(3, 2)", "(3, 3)" }, nn.DiceLoss(), logits, which)
  t.fails({ "MultiClassDiceLoss", "there are 3 classes" }, nn.MultiClassDiceLoss(ms.ones { 2 }), classes, which)

  local focal = nn.FocalLoss { weight = ms.tensor { 1.0, 2.0 } }
  t.near(focal(ms.tensor { { 0.8, 1.4 }, { 0.5, 0.9 }, { 1.2, 0.9 } }, ms.tensor { { 1 }, { 1 }, { 0 } }):item(), 0.12516622, 1e-6)
  -- With gamma 0 it is the cross-entropy.
  local x, y = values(2, 3, 4, 5), (ops.arange(0, 40) % 3):reshape { 2, 1, 4, 5 }
  local entropy = nn.CrossEntropyLoss { reduction = "none" }(x, y:squeeze(1))
  t.near(nn.FocalLoss { gamma = 0, reduction = "none" }(x, y), entropy:reshape { 2, 20 }:mean(1), 1e-5)
  t.near(nn.FocalLoss { gamma = 0, reduction = "sum" }(x, y), entropy:sum() / 20, 1e-5)
  local p = ops.exp(-entropy)
  t.near(nn.FocalLoss { gamma = 1.5 }(x, y), ((1 - p) ^ 1.5 * entropy):mean(), 1e-5)
  -- Labels as probabilities: the same where they are 0 and 1, summed over the classes.
  local probabilities = ops.moveaxis(ops.one_hot(y:squeeze(1), 3, 1.0, 0.0), -1, 1)
  t.near(nn.FocalLoss { reduction = "none" }(x, probabilities):sum(1), nn.FocalLoss { reduction = "none" }(x, y), 1e-5)
  local with_weights = { weight = ms.tensor { 1.0, 2.0, 3.0 }, reduction = "none" }
  t.near(nn.FocalLoss(with_weights)(x, probabilities):sum(1), nn.FocalLoss(with_weights)(x, y), 1e-5)
  t.fails({ "FocalLoss", "one channel" }, focal, ops.ones { 2, 3 }, ops.ones { 2, 2 })
  t.fails({ "FocalLoss", "there are 3 classes" }, focal, ops.ones { 2, 3 }, ms.tensor { { 0 }, { 1 } })
end)

t.test("a margin can be given with the call", function()
  local a, p, n = ops.zeros { 1, 2 }, ms.tensor { { 3.0, 4.0 } }, ms.tensor { { 0.0, 2.0 } }
  t.near(nn.TripletMarginLoss()(a, p, n, 2.0):item(), 5.0, 1e-5)
  t.near(nn.TripletMarginLoss()(a, p, n):item(), 4.0, 1e-5)
end)

t.test("kernels that give the input itself", function()
  local x = values(2, 3, 5, 5)
  local conv = nn.Conv2d(3, 3, 3, { weight_init = ms.common.initializer.Dirac() })
  t.near(conv(x), x, 1e-6)
  local twice = nn.Conv2d(3, 6, 3, { weight_init = ms.common.initializer.Dirac(2) })
  t.near(twice(x), ops.concat({ x, x }, 1), 1e-6)
  t.near(nn.Conv1d(2, 4, 3, { weight_init = "dirac" })(values(1, 2, 6)), ops.pad(values(1, 2, 6), { 0, 0, 0, 2 }), 1e-6)
  t.fails({ "Dirac", "three to five axes" }, ms.initializer, "dirac", { 2, 2 })
  t.fails({ "Dirac", "divisible by groups (2)" }, ms.initializer, ms.common.initializer.Dirac(2), { 3, 2, 3 })
end)

t.test("matrices of which a share is zero", function()
  ms.set_seed(5)
  local w = ms.initializer(ms.common.initializer.Sparse(0.25, 2.0), { 200, 30 })
  t.equal(ops.sum(w:eq(0.0):astype(ms.int64), 0):tolist(), ops.full({ 30 }, 50, { dtype = ms.int64 }):tolist())
  assert(math.abs(w:std():item() - 2 * math.sqrt(0.75)) < 0.1, w:std():item())
  t.fails({ "Sparse", "two axes" }, ms.initializer, ms.common.initializer.Sparse(0.1), { 2, 2, 2 })
  t.fails({ "Sparse", "sparsity" }, ms.common.initializer.Sparse, 1.5)
end)

t.test("sizes of states and inputs are named", function()
  t.fails({ "LSTMCell", "input_size 3", "(2, 4)" }, nn.LSTMCell(3, 5), ops.ones { 2, 4 })
  t.fails({ "LSTMCell", "cx must be a tensor of shape (2, 5)" }, nn.LSTMCell(3, 5),
    ops.ones { 2, 3 }, { ops.ones { 2, 5 }, ops.ones { 2, 4 } })
  t.fails({ "LSTMCell", "hx must be a table" }, nn.LSTMCell(3, 5), ops.ones { 2, 3 }, 3)
  t.fails({ "GRUCell", "hx must be a tensor of shape (5)" }, nn.GRUCell(3, 5), ops.ones { 3 }, ops.ones { 1, 5 })
  t.fails({ "RNNCell", "nonlinearity must be one of" }, nn.RNNCell, 3, 5, { nonlinearity = "gelu" })
  t.fails({ "InstanceNorm2d", "num_features (3)", "(2, 4, 3, 3)" }, nn.InstanceNorm2d(3), ops.ones { 2, 4, 3, 3 })
  t.fails({ "BatchNorm2d", "the input must be a tensor, got 3" }, nn.BatchNorm2d(3), 3)
  t.fails({ "SyncBatchNorm", "the input must be a tensor, got a table" }, nn.SyncBatchNorm(3), { 1 })
  t.fails({ "InstanceNorm1d", "3 axes" }, nn.InstanceNorm1d(3), ops.ones { 2, 3 })
  t.fails({ "BiDense", "input2", "in2_channels (4)" }, nn.BiDense(3, 4, 2), ops.ones { 2, 3 }, ops.ones { 2, 3 })
  t.fails({ "Unflatten", "size 8", "(3, 2)" }, nn.Unflatten(1, { 3, 2 }), ops.ones { 2, 8 })
  t.fails({ "Unflatten", "at most one size may be -1" }, nn.Unflatten, 1, { -1, -1 })
  t.fails({ "ReflectionPad2d", "a table of 4 integers" }, nn.ReflectionPad2d, { 1, 2 })
  t.fails({ "Upsample", "either size or scale_factor" }, nn.Upsample, 3, 2.0)
  t.fails({ "Upsample", "must be given" }, nn.Upsample)
  t.fails({ "MaxUnpool2d", "kernel_size" }, nn.MaxUnpool2d, 0)
end)

-- The operators are compared with PyTorch and MindSpore by their own tests.
t.test("cells of pools and of losses call their operators", function()
  local x = values(2, 3, 8)
  t.near(nn.LPPool1d(2.0, 3, 2)(x), ops.lp_pool1d(x, 2.0, 3, 2), 0)
  t.near(nn.LPPool2d(3.0, 2, { ceil_mode = true })(values(1, 2, 5, 5)), ops.lp_pool2d(values(1, 2, 5, 5), 3.0, 2, 2, true), 0)
  t.near(nn.AdaptiveMaxPool1d(3)(x), ops.adaptive_max_pool1d(x, 3), 0)
  t.equal(nn.AdaptiveMaxPool3d { 1, 2, 3 }(values(1, 2, 3, 4, 5)).shape, ms.ones({ 1, 2, 1, 2, 3 }).shape)
  local y, at = nn.MaxPool1d(2, 2, { return_indices = true })(x)
  t.near(nn.MaxUnpool1d(2)(y, at):sum(), y:sum(), 1e-5)
  local volume, places = nn.MaxPool3d(2, 2, { return_indices = true })(values(1, 2, 4, 4, 4))
  t.equal(nn.MaxUnpool3d(2)(volume, places).shape, ms.ones({ 1, 2, 4, 4, 4 }).shape)
  t.fails({ "LPPool1d", "norm_type" }, nn.LPPool1d, 0, 2)

  local scores, which = values(4, 3), ms.tensor { 0, 2, 1, 1 }
  local weight = ms.tensor { 1.0, 2.0, 0.5 }
  t.near(nn.MultiMarginLoss(2, 0.7, { weight = weight })(scores, which), ops.multi_margin_loss(scores, which, 2, 0.7, weight), 0)
  t.near(nn.MultiMarginLoss()(scores, which, weight), ops.multi_margin_loss(scores, which, 1, 1.0, weight), 0)
  t.near(nn.MultilabelMarginLoss("sum")(scores, ms.tensor { { 0, -1, 1 }, { 1, 2, -1 }, { 2, 0, 1 }, { -1, 0, 1 } }),
    ops.multilabel_margin_loss(scores, ms.tensor { { 0, -1, 1 }, { 1, 2, -1 }, { 2, 0, 1 }, { -1, 0, 1 } }, "sum"), 0)
  t.near(nn.MultiLabelSoftMarginLoss(weight)(scores, ops.one_hot(which, 3):astype(ms.float32)),
    ops.multilabel_soft_margin_loss(scores, ops.one_hot(which, 3):astype(ms.float32), weight), 0)
  t.fails({ "MultiMarginLoss", "p must be 1 or 2" }, nn.MultiMarginLoss, 3)
  t.fails({ "MultiLabelSoftMarginLoss", "weight must be a tensor" }, nn.MultiLabelSoftMarginLoss, 3)
end)

t.test("counts and distances of one's own", function()
  -- exp(0.5) - 4 * 0.5 + 4 log 4 - 4 + log(8 pi) / 2, and exp(-1) + 1
  local input, target = ms.tensor { 0.5, -1.0 }, ms.tensor { 4.0, 1.0 }
  local first = math.exp(0.5) - 2 + 4 * math.log(4) - 4 + 0.5 * math.log(8 * math.pi)
  t.near(nn.PoissonNLLLoss { full = true, reduction = "none" }(input, target), { first, math.exp(-1) + 1 }, 1e-5)
  t.near(nn.PoissonNLLLoss { log_input = false, reduction = "sum" }(ms.tensor { 2.0, 0.0 }, ms.tensor { 3.0, 0.0 }),
    2 - 3 * math.log(2), 1e-5)
  local slope = ms.grad(function(x) return nn.PoissonNLLLoss { full = true }(x, ms.tensor { 0.0, 2.0 }) end)(input)
  t.near(slope, { math.exp(0.5) / 2, (math.exp(-1) - 2) / 2 }, 1e-5)
  local x, p, n = values(4, 3), values(4, 3) * 0.5 + 0.3, values(4, 3) * -1
  t.near(nn.TripletMarginWithDistanceLoss()(x, p, n), ops.triplet_margin_loss(x, p, n), 1e-5)
  local city = function(a, b) return (a - b):abs():sum(-1) end
  t.near(nn.TripletMarginWithDistanceLoss(city, true, 0.5, "none")(x, p, n),
    ops.relu(city(x, p) - ops.minimum(city(x, n), city(p, n)) + 0.5), 1e-6)
  t.fails({ "TripletMarginWithDistanceLoss", "distance_function must be a function" }, nn.TripletMarginWithDistanceLoss, 3)
end)

t.test("sequences of a batch may end at lengths of their own", function()
  ms.set_seed(3)
  local x, lengths = ms.ops.randn { 5, 3, 2 }, { 2, 5, 0 }
  for _, kind in ipairs { "LSTM", "GRU", "RNN" } do
    for _, options in ipairs { {}, { bidirectional = true, num_layers = 2 }, { batch_first = true } } do
      local net = ms.nn[kind](2, 4, options)
      local input = options.batch_first and ms.ops.swapaxes(x, 0, 1) or x
      local whole, state = net(input, { seq_length = ms.tensor(lengths) })
      t.near(net(input, nil, lengths), whole, 0)
      local function row(y, i) return options.batch_first and y[i] or y[{ ms.slice(), i }] end
      for i, n in ipairs(lengths) do
        local y = row(whole, i - 1)
        t.near(y[{ ms.slice(n, 5) }], ms.zeros { 5 - n, y.shape[2] }, 0)
        if n > 0 then
          local cut = x[{ ms.slice(0, n), ms.slice(i - 1, i) }]
          local alone, its_state = net(options.batch_first and ms.ops.swapaxes(cut, 0, 1) or cut)
          t.near(y[{ ms.slice(0, n) }], row(alone, 0), 1e-6)
          local a, b = kind == "LSTM" and state or { state }, kind == "LSTM" and its_state or { its_state }
          for k = 1, #a do t.near(a[k][{ ms.slice(), i - 1 }], b[k][{ ms.slice(), 0 }], 1e-6) end
        end
      end
      -- What comes behind the ends has no influence, on gradients neither.
      local slope = ms.grad(function(v) return ms.ops.sum((net(v, { seq_length = ms.tensor(lengths) })) ^ 2) end)(input)
      t.near(row(slope, 2), ms.zeros { 5, 2 }, 0)
      t.near(row(slope, 0)[{ ms.slice(2, 5) }], ms.zeros { 3, 2 }, 0)
      t.near(ms.jit(function(v, n) return (net(v, nil, n)) end)(input, ms.tensor(lengths)), whole, 1e-6)
    end
    local net = ms.nn[kind](2, 4)
    t.fails({ "more_layers_test.lua:", kind .. ": seq_length must be 3 integers" }, function() net(x, nil, ms.tensor { 1, 2 }) end)
    t.fails(kind .. ": seq_length must be 3 integers", function() net(x, nil, ms.tensor { 1.0, 2.0, 3.0 }) end)
    t.fails({ "there is no input 'lengths'; there are: hx, seq_length" }, function() net(x, { lengths = lengths }) end)
  end
end)

t.test("a transposed convolution of the same size is the gradient of one of the same size", function()
  for kernel = 1, 5 do
    for stride = 1, 3 do
      for dilation = 1, stride == 1 and 2 or 1 do
        local options = { stride = stride, dilation = dilation }
        local transposed = nn.Conv2dTranspose(3, 2, kernel, options)
        local x, size = values(1, 3, 4, 5), { 1, 2, 4 * stride, 5 * stride }
        local function product(at)
          return ops.sum(ops.conv2d(at, transposed.weight, { pad_mode = "same", stride = stride, dilation = dilation }) * x)
        end
        local y = transposed(x)
        t.equal(y:shape(), size)
        t.near(y, ms.grad(product)(ops.zeros(size)), 1e-5)
        local primitive = ops.Conv2DTranspose(3, kernel, { pad_mode = "same", stride = stride, dilation = dilation })
        t.near(primitive(x, transposed.weight, size), y, 1e-6)
        local line = nn.Conv1dTranspose(3, 2, kernel, options)(x[0]:swapaxes(0, 1))
        t.equal(line:shape(), { 4, 2, 5 * stride })
      end
    end
  end
  t.fails("output_padding must be 0 with pad_mode 'same'", nn.Conv2dTranspose, 3, 2, 3, { stride = 2, output_padding = 1 })
  local sides = nn.Conv2dTranspose(1, 1, 3, { pad_mode = "pad", padding = { 0, 2, 1, 0 }, weight_init = "ones" })
  local whole = nn.Conv2dTranspose(1, 1, 3, { pad_mode = "valid", weight_init = "ones" })
  local x = values(1, 1, 4, 4)
  t.near(sides(x), whole(x)["..., 0:4, 1:"], 1e-6)
end)

t.finish()
