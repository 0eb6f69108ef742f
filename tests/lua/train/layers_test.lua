-- Layers, losses and optimizers against what PyTorch gives (reference.json and reference_layers.json, by make_reference.py), and
-- against their formulas where it has none.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function read(name)
  local file <close> = assert(io.open("tests/lua/train/" .. name))
  return ms.json.decode(file:read("a"))
end
local reference, expected = read "reference.json", read "reference_layers.json"

-- sin(1), sin(2), ... in a shape.
local function seeded(...)
  local shape, count, values = { ... }, 1, {}
  for _, size in ipairs(shape) do count = count * size end
  for i = 1, count do values[i] = math.sin(i) end
  return ms.tensor(values, ms.float32):reshape(shape)
end

-- The parameters get the values that PyTorch's have: 0.5 cos(i k) for the k-th.
local function filled(cell)
  for k, parameter in ipairs(cell:trainable_params()) do
    local values = {}
    for i = 1, parameter.size do values[i] = 0.5 * math.cos(i * k) end
    parameter:assign(ms.tensor(values, parameter.dtype):reshape(parameter.shape))
  end
  return cell
end

local checked = {}
local function compare(name, cell, ...)
  checked[name] = true
  filled(cell)
  for _ = 1, 3 do
    local results = table.pack(cell(...))
    for i, values in ipairs(expected[name]) do
      if ms.is_tensor(results[i]) then t.near(results[i], values, 2e-5) end
    end
    assert(ms.is_tensor(results[1]), name)
  end
end

local x3, x4, x5 = seeded(2, 4, 6), seeded(2, 4, 6, 6), seeded(1, 2, 4, 4, 4)

t.test("normalisations of single samples", function()
  compare("InstanceNorm1d", nn.InstanceNorm1d(4), x3)
  compare("InstanceNorm2d", nn.InstanceNorm2d(4), x4)
  compare("InstanceNorm3d", nn.InstanceNorm3d(2), x5)
  local sync, plain = nn.SyncBatchNorm(4):set_train(), nn.BatchNorm2d(4):set_train()
  t.near(sync(x4), plain(x4), 1e-6)
  t.near(sync.moving_mean, plain.moving_mean, 1e-6)
  t.near(nn.LRN(1, 2.0, 0.5, 0.75)(x4), ops.lrn(x4, 1, 2.0, 0.5, 0.75), 1e-6)
end)

t.test("pixels, padding and sizes", function()
  compare("PixelShuffle", nn.PixelShuffle(2), x4)
  compare("PixelUnshuffle", nn.PixelUnshuffle(2), x4)
  compare("ReflectionPad2d", nn.ReflectionPad2d { 1, 2, 0, 1 }, x4)
  compare("ReplicationPad2d", nn.ReplicationPad2d { 1, 2, 0, 1 }, x4)
  compare("ConstantPad2d", nn.ConstantPad2d({ 1, 2, 0, 1 }, 0.5), x4)
  compare("ZeroPad2d", nn.ZeroPad2d(1), x4)
  compare("ReflectionPad1d", nn.ReflectionPad1d(2), x3)
  compare("ReplicationPad3d", nn.ReplicationPad3d(1), x5)
  compare("Upsample", nn.Upsample { scale_factor = 2.0, mode = "bilinear", align_corners = true }, x4)
  t.equal(nn.Unflatten(-1, { 2, 3 })(x3).shape, ops.reshape(x3, { 2, 4, 2, 3 }).shape)
  -- The window at row 1, column 2, its pixel at row 0, column 1, channel 3.
  local windows = nn.Unfold({ 1, 2, 2, 1 }, { 1, 1, 1, 1 }, { 1, 1, 1, 1 })(x4)
  t.equal(windows.shape, ms.zeros({ 2, 16, 5, 5 }).shape)
  t.near(windows[{ 1, 1 * 4 + 3, 1, 2 }]:item(), x4[{ 1, 3, 1, 3 }]:item(), 0)
  t.equal(nn.Unfold({ 1, 3, 3, 1 }, { 1, 2, 2, 1 }, { 1, 1, 1, 1 }, "same")(x4).shape, ms.zeros({ 2, 36, 3, 3 }).shape)
end)

t.test("pooling", function()
  compare("AdaptiveAvgPool3d", nn.AdaptiveAvgPool3d { 1, 2, 3 }, x5)
  compare("AdaptiveMaxPool2d", nn.AdaptiveMaxPool2d { 2, 3 }, x4)
  compare("AvgPool3d", nn.AvgPool3d(2, 2), x5)
  compare("MaxPool3d", nn.MaxPool3d(2, 2), x5)
  local y, at = nn.MaxPool2d(2, 2, { return_indices = true })(x4)
  local back = nn.MaxUnpool2d(2)(y, at)
  t.near(back:sum():item(), y:sum():item(), 1e-5)
  t.near(ops.max_pool2d(ops.abs(back), 2), ops.abs(y), 1e-6)
end)

t.test("layers with weights", function()
  compare("BiDense", nn.BiDense(3, 4, 2), seeded(5, 3), seeded(5, 4))
  compare("LSTMCell", nn.LSTMCell(3, 2), seeded(4, 3), { seeded(4, 2), seeded(4, 2) * 0.5 })
  compare("GRUCell", nn.GRUCell(3, 2), seeded(4, 3), seeded(4, 2))
  compare("RNNCell", nn.RNNCell(3, 2), seeded(4, 3), seeded(4, 2))
  compare("Conv3dTranspose", nn.Conv3dTranspose(2, 3, 2, { stride = 2, pad_mode = "valid", has_bias = true }), x5)
  local block = nn.Conv2dBnAct(4, 2, 3, { has_bn = true, activation = "leakyrelu", alpha = 0.5 })
  t.near(block(x4), ops.leaky_relu(block.batchnorm(block.conv(x4)), 0.5), 1e-6)
  local dense = nn.DenseBnAct(6, 2, { activation = "relu" })
  t.near(dense(x3), ops.relu(dense.dense(x3)), 1e-6)
  local lookup = nn.EmbeddingLookup(5, 3, { param_init = "ones", max_norm = 1.0 })
  t.near(lookup(ms.tensor { 1, 4 }), { { 3 ^ -0.5, 3 ^ -0.5, 3 ^ -0.5 }, { 3 ^ -0.5, 3 ^ -0.5, 3 ^ -0.5 } }, 1e-6)
end)

t.test("transformers", function()
  local mask = ops.triu(ms.ones({ 5, 5 }), 1):astype(ms.bool_)
  local source, target = seeded(5, 2, 8), seeded(5, 2, 8) * 0.7
  local options = { dropout = 0.0 }
  compare("TransformerEncoderLayer", nn.TransformerEncoderLayer(8, 2, 16, options), source)
  compare("TransformerEncoderLayer masked", nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", { norm_first = true }), source, mask)
  compare("TransformerDecoderLayer", nn.TransformerDecoderLayer(8, 2, 16, options), target, source, mask)
  compare("Transformer", nn.Transformer(8, 2, 2, 1, 16, options), source, target, nil, mask)
  local first = nn.TransformerEncoderLayer(8, 2, 16, { dropout = 0.0, batch_first = true })
  local two = nn.TransformerEncoder(first, 2, nn.LayerNorm { 8 })
  local x = source:transpose { 1, 0, 2 }
  t.near(two(x), two.norm(first(first(x))), 1e-5)
  assert(not rawequal(two.layers[1].linear1.weight, two.layers[2].linear1.weight))
end)

t.test("every layer of the reference is compared", function()
  for name in pairs(expected) do assert(checked[name], name) end
end)

t.test("dropout of whole channels", function()
  ms.set_seed(1)
  for axes, shape in pairs { { 8, 16, 5 }, { 8, 16, 5, 5 }, { 8, 16, 2, 3, 4 } } do
    local layer = nn[("Dropout%dd"):format(axes)](0.25)
    local x = ms.ones(shape)
    t.equal(layer(x):tolist(), x:tolist())
    layer:set_train()
    local y = layer(x)
    local list, other = {}, 0
    for i = 3, #shape do list[#list + 1] = i - 1 end
    for _, row in ipairs((ops.mean(y, list)):tolist()) do
      for _, value in ipairs(row) do
        if math.abs(value) > 1e-6 and math.abs(value - 4 / 3) > 1e-6 then other = other + 1 end
      end
    end
    t.equal(other, 0)
    t.near(y:mean():item(), 1.0, 0.2)
  end
end)

t.test("small cells", function()
  t.near(nn.ClipByNorm()(ms.tensor { 3.0, 4.0 }, 1.0), { 0.6, 0.8 }, 1e-6)
  t.near(nn.ClipByNorm(1)(ms.tensor { { 3.0, 4.0 }, { 0.3, 0.4 } }, ms.tensor(1.0)), { { 0.6, 0.8 }, { 0.3, 0.4 } }, 1e-6)
  t.near(nn.Threshold(0.5, -1.0)(ms.tensor { 0.2, 0.7 }), { -1.0, 0.7 }, 1e-6)
  local y, dy = nn.Jvp(function(a, b) return a * b end)(ms.tensor { 2.0 }, ms.tensor { 3.0 }, { ms.tensor { 1.0 }, ms.tensor { 10.0 } })
  t.near({ y:item(), dy:item() }, { 6.0, 23.0 }, 1e-6)
  local _, da, db = nn.Vjp(function(a, b) return a * b end)(ms.tensor { 2.0 }, ms.tensor { 3.0 }, ms.tensor { 1.0 })
  t.near({ da:item(), db:item() }, { 3.0, 2.0 }, 1e-6)
  local each = nn.TimeDistributed(nn.Dense(6, 2), 1)
  t.near(each(x3)[{ 0, 2 }], each.layer(x3[{ 0, 2 }]:reshape { 1, 6 }):reshape { 2 }, 1e-6)
end)

t.test("losses give PyTorch's values", function()
  local x = seeded(3, 4)
  local y, z, signs = ops.cos(x), x * 0.3 + 0.1, ops.sign(x)
  local inputs = {
    HingeEmbeddingLoss = { nn.HingeEmbeddingLoss(0.8), x, signs },
    MarginRankingLoss = { nn.MarginRankingLoss(0.3), x, y, signs },
    TripletMarginLoss = { nn.TripletMarginLoss { margin = 0.7, swap = true }, x, y, z },
    GaussianNLLLoss = { nn.GaussianNLLLoss { full = true }, x, y, ops.abs(z) + 0.1 },
    CTCLoss = { nn.CTCLoss(), ops.log_softmax(seeded(6, 2, 5), 2), ms.tensor { { 1, 2, 3 }, { 2, 2, 4 } }, ms.tensor { 6, 6 },
      ms.tensor { 3, 2 } },
  }
  for name, value in pairs(reference.losses) do
    local call = inputs[name]
    t.near(call[1](table.unpack(call, 2)), value, 1e-5)
  end
end)

t.test("losses without a counterpart follow their formulas", function()
  local a, b = ms.tensor { { 0.2, 0.8 }, { 0.5, 0.1 } }, ms.tensor { { 0.0, 1.0 }, { 1.0, 0.0 } }
  t.near(nn.DiceLoss()(a, b), 1 - 2 * 1.3 / (0.94 + 2 + 1e-5), 1e-5)
  t.near(nn.MultiClassDiceLoss { activation = "relu" }(a, b),
    (1 - 2 * 0.5 / (0.29 + 1 + 1e-5) + 1 - 2 * 0.8 / (0.65 + 1 + 1e-5)) / 2, 1e-5)
  t.near(nn.MultiClassDiceLoss { activation = "relu", ignore_indiex = 0, weights = ms.tensor { { 5.0 }, { 2.0 } } }(a, b),
    2 * (1 - 2 * 0.8 / (0.65 + 1 + 1e-5)) / 2, 1e-5)
  t.near(nn.RMSELoss()(a, b), math.sqrt((0.04 + 0.04 + 0.25 + 0.01) / 4), 1e-5)
end)

t.test("optimizers give PyTorch's values", function()
  local data = reference.optimizers
  for _, row in ipairs(data.rows) do
    local p = ms.Parameter(ms.tensor(data.start, ms.float64), "p")
    local arguments = { params = { p } }
    for key, value in pairs(row.arguments) do arguments[key] = value end
    local class = rawget(nn.optim, row.name)
    if not class then
      class = nn[row.name]
      arguments.learning_rate, arguments.lr = arguments.lr, nil
    end
    local optimizer = class(arguments)
    for step, values in ipairs(row.values) do
      optimizer { ms.tensor(data.slopes[(step - 1) % 3 + 1], ms.float64) * (1 + 0.1 * (step - 1)) }
      t.near(p, values, 1e-6)
    end
  end
end)

local start, slopes = { 1.0, -2.0, 0.5 }, { { 0.1, 0.2, -0.3 }, { 0.5, -0.1, 0.2 }, { -0.4, 0.3, 0.1 } }
-- Steps against a rule for each element.
local function elementwise(make, rule)
  local p = ms.Parameter(start, { name = "w" })
  local optimizer = make { p }
  local values, states = { table.unpack(start) }, { {}, {}, {} }
  for step, grads in ipairs(slopes) do
    optimizer { ms.tensor(grads) }
    for i, g in ipairs(grads) do values[i] = rule(values[i], g, states[i], step) end
    t.near(p, values, 1e-5)
  end
end

local function sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end
local function length(list)
  local sum = 0
  for _, v in ipairs(list) do sum = sum + v * v end
  return math.sqrt(sum)
end

t.test("FTRL, ProximalAdagrad, LazyAdam follow their formulas", function()
  elementwise(function(p) return nn.FTRL(p, { learning_rate = 0.5, l1 = 0.3, l2 = 0.1 }) end, function(p, g, s)
    local before = s.n or 0.1
    s.n = before + g * g
    s.z = (s.z or 0) + g - (s.n ^ 0.5 - before ^ 0.5) / 0.5 * p
    return math.abs(s.z) > 0.3 and (sign(s.z) * 0.3 - s.z) / (s.n ^ 0.5 / 0.5 + 0.2) or 0
  end)
  elementwise(function(p) return nn.ProximalAdagrad(p, 0.2, 0.3, 0.1, 0.5) end, function(p, g, s)
    s.n = (s.n or 0.2) + g * g
    local each = 0.3 / math.sqrt(s.n)
    local moved = p - each * g
    return sign(moved) * math.max(math.abs(moved) - each * 0.1, 0) / (1 + each * 0.5)
  end)
  local a, b = ms.Parameter(start, "a"), ms.Parameter(start, "b")
  local lazy, adam = nn.LazyAdam({ a }, 0.1), nn.Adam({ b }, 0.1)
  lazy { ms.tensor(slopes[1]) }
  adam { ms.tensor(slopes[1]) }
  t.equal(a:tolist(), b:tolist())
end)

t.test("Lamb and LARS scale steps by norms", function()
  local p = ms.Parameter(start, "w")
  local values, m, v = { table.unpack(start) }, { 0, 0, 0 }, { 0, 0, 0 }
  local lamb = nn.Lamb({ p }, 0.1, { weight_decay = 0.2 })
  for step, grads in ipairs(slopes) do
    lamb { ms.tensor(grads) }
    local r = {}
    for i, g in ipairs(grads) do
      m[i], v[i] = 0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g * g
      r[i] = m[i] / (1 - 0.9 ^ step) / (math.sqrt(v[i] / (1 - 0.999 ^ step)) + 1e-6) + 0.2 * values[i]
    end
    local scale = length(values) / length(r)
    for i = 1, 3 do values[i] = values[i] - 0.1 * scale * r[i] end
    t.near(p, values, 1e-5)
  end
  p = ms.Parameter(start, "w")
  local bias = ms.Parameter(start, "fc.bias")
  local lars = nn.LARS(nn.SGD({ p, bias }, { learning_rate = 0.5, weight_decay = 0.1 }), { coefficient = 0.01 })
  lars { ms.tensor(slopes[1]), ms.tensor(slopes[1]) }
  local factor = 0.01 * length(start) / (length(slopes[1]) + 0.1 * length(start) + 1e-5)
  for i, g in ipairs(slopes[1]) do
    t.near(p[i - 1]:item(), start[i] - 0.5 * factor * (g + 0.1 * start[i]), 1e-5)
    t.near(bias[i - 1]:item(), start[i] - 0.5 * g, 1e-5)
  end
end)

t.test("AdaFactor keeps a row and a column", function()
  local w, g = { { 1.0, -2.0 }, { 0.5, 3.0 } }, { { 0.1, 0.2 }, { -0.3, 0.4 } }
  local p = ms.Parameter(ms.tensor(w), "w")
  local optimizer = nn.AdaFactor({ p }, { learning_rate = 0.1, relative_step = false, scale_parameter = false, beta1 = 0.0 })
  optimizer { ms.tensor(g) }
  local rows, columns, all = {}, {}, 0
  for i = 1, 2 do
    rows[i] = (g[i][1] ^ 2 + g[i][2] ^ 2) / 2
    columns[i] = (g[1][i] ^ 2 + g[2][i] ^ 2) / 2
    all = all + rows[i] / 2
  end
  local u, mean = {}, 0
  for i = 1, 2 do
    u[i] = {}
    for j = 1, 2 do
      u[i][j] = g[i][j] / math.sqrt(rows[i] / all) / math.sqrt(columns[j])
      mean = mean + u[i][j] ^ 2 / 4
    end
  end
  for i = 1, 2 do
    for j = 1, 2 do t.near(p[{ i - 1, j - 1 }]:item(), w[i][j] - 0.1 * u[i][j] / math.max(1, math.sqrt(mean)), 1e-5) end
  end
  local relative = nn.AdaFactor { ms.Parameter(ms.tensor(w), "v") }
  relative { ms.tensor(g) }
  t.equal(relative.global_step, 1)
end)

t.test("what is wrong is named", function()
  t.fails({ "Rprop", "etas must be a table of two numbers" }, nn.Rprop, { ms.Parameter({ 1.0 }, "p") }, { etas = { 1 } })
  t.fails({ "AdaFactor", "learning_rate must be given" }, nn.AdaFactor, { ms.Parameter({ 1.0 }, "p") }, { relative_step = false })
  t.fails({ "LARS", "optimizer must be an optimizer" }, nn.LARS, nn.Dense(2, 2))
  t.fails({ "FTRL", "lr_power must not be above 0" }, nn.FTRL, { ms.Parameter({ 1.0 }, "p") }, { lr_power = 0.5 })
end)

t.finish()
