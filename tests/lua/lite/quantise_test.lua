-- Quantisation: the operator, ranges, networks and their errors.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local ops, nn = ms.ops, ms.nn

t.test("gradients pass straight through the rounding, and the scale learns from its error", function()
  local x = ops.randn { 6, 4 } * 3
  local scale, zero = ms.tensor { 0.5, 0.25, 0.1, 0.7 }, ms.tensor { 0.0, 2.0, -1.0, 3.0 }
  local weight = ops.randn { 6, 4 }
  local function loss(v, s, z) return ops.sum(ops.fake_quantize(v, s, z, -8, 7, 1) * weight) end
  local grads = ms.grad(loss, { 0, 1, 2 })(x, scale, zero)
  local steps = x / scale
  local nearest = ops.round(steps)
  local level = ops.clamp(nearest + zero, -8, 7)
  local inside = ops.equal(level, nearest + zero)
  t.near(ops.fake_quantize(x, scale, zero, -8, 7, 1), (level - zero) * scale, 1e-6)
  t.near(grads[1], ops.where(inside, weight, 0.0), 0)
  t.near(grads[2], ops.sum(ops.where(inside, nearest - steps, level - zero) * weight, 0), 1e-4)
  t.near(grads[3], ops.sum(ops.where(inside, 0.0, -scale) * weight, 0), 1e-5)
  assert(ops.any(inside):item() and not ops.all(inside):item())
end)

t.test("halves of a step go to the even one, for all formats of at most 16 bits", function()
  local x = ms.tensor { 0.5, 1.5, 2.5, -0.5, -1.5, -2.5 }
  for bits = 2, 16 do
    local most = (1 << (bits - 1)) - 1
    local y = ops.fake_quantize(x, 1.0, 0, -most - 1, most)
    t.near(y, ops.clamp(ms.tensor { 0.0, 2.0, 2.0, 0.0, -2.0, -2.0 }, -most - 1, most), 0)
  end
  t.fails({ "at most 16 bits" }, ops.fake_quantize, x, 1.0, 0, -32768, 32768)
  t.fails({ "growing" }, ops.fake_quantize, x, 1.0, 0, 3, 3)
  t.fails({ "scale", "6, one for each place along axis 0" }, ops.fake_quantize, x, ops.ones { 4 }, { axis = 0 })
  t.fails({ "needs an axis" }, ops.fake_quantize, x, 1.0, { block_size = 2 })
end)

local Net = nn.Cell:extend("Net")
function Net:init()
  self.first, self.norm = nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16)
  self.second, self.pool = nn.Conv2d(16, 32, 3, { has_bias = true }), nn.MaxPool2d(2, 2)
  self.last = nn.Dense(32 * 16, 10)
end
function Net:construct(x)
  x = self.pool(ops.relu(self.second(ops.relu(self.norm(self.first(x))))))
  return self.last(ops.flatten(x))
end

local net = Net()
for _ = 1, 5 do net(ops.randn { 16, 1, 8, 8 } + 0.5) end
net:set_train(false)
local samples = {}
for i = 1, 5 do samples[i] = { ops.randn { 30, 1, 8, 8 }, ops.zeros { 30 } } end

-- Decibels of the signal over the difference.
local function sqnr(exact, rounded)
  local d = exact - rounded
  return 10 * math.log(ops.sum(exact * exact):item() / ops.sum(d * d):item(), 10)
end

local x = ops.randn { 7, 1, 8, 8 }
local exact = net(x)

t.test("a whole network computes in eight bits with little loss, by every method for ranges", function()
  for method, least in pairs { MSE = 36, MAX_MIN = 36, REMOVAL_OUTLIER = 33, KL = 25 } do
    local small, report = ms.lite.quantize(net, { calibrate_data = samples, activation_quant_method = method })
    t.equal({ report.folded, #report.layers }, { 1, 3 })
    assert(report.sqnr > least, ("%s: %.1f dB"):format(method, report.sqnr))
    assert(sqnr(exact, small(x)) > least - 3, method)
    t.near(small(x), small(x), 0)
    -- Names are those of the network, for checkpoints.
    assert(small:parameters_dict()["first.weight"] and not net.first.bias)
  end
  t.near(net(x), exact, 0)
end)

t.test("ranges, scales and zero points are what the samples say", function()
  local dense = nn.SequentialCell(nn.Dense(3, 2, { weight_init = ms.tensor { { 1.0, -0.5, 0.25 }, { 0.1, 0.2, -0.4 } } }))
  local small = ms.lite.quantize(dense, {
    calibrate_data = { ms.tensor { { -1.0, 0.0, 2.0 }, { 0.5, 4.1, 0.0 } } }, activation_quant_method = "MAX_MIN",
  })
  local layer = small[1]
  t.near(layer.input_scale, 5.1 / 255, 1e-6)
  t.near(layer.input_zero_point, -128 + 50, 0)
  t.near(layer.weight_scale, ms.tensor { 1 / 127, 0.4 / 127 }, 1e-7)
  t.near(layer.weight, ms.tensor { { 127, -64, 32 }, { 32, 64, -127 } } * ms.tensor { { 1 / 127 }, { 0.4 / 127 } }, 1e-6)
end)

t.test("weights alone: as integers, in blocks of 32 with scales of 16 bits, in as few bits as each needs", function()
  local dense = nn.SequentialCell(nn.Dense(80, 24), nn.ReLU(), nn.Dense(24, 40))
  local y = ops.randn { 50, 80 }
  local found = {}
  for _, bits in ipairs { 8, 4, 2 } do
    local small, report = ms.lite.quantize(dense, { quant_type = "WEIGHT_QUANT", bit_num = bits })
    found[bits] = sqnr(dense(y), small(y))
    t.equal(report.layers[1].bits, bits)
    local layer = small[1]
    if bits == 4 then
      t.equal(layer.weight_scale.shape, { 24, 3 })
      t.near(layer.weight_scale:to(ms.float16):to(ms.float32), layer.weight_scale, 0)
      local integers = layer.weight / ops.narrow(ops.repeat_interleave(layer.weight_scale, 32, 1), 1, 0, 80)
      t.near(integers, ops.round(integers), 1e-4)
      assert(ops.amin(integers):item() > -8.01 and ops.amax(integers):item() < 7.01)
      t.equal(report.layers[1].bytes, 24 * 80 // 2 + 24 * 3 * 2)
    end
  end
  assert(found[8] > 40 and found[4] > 18 and found[2] > 4, ("%.1f %.1f %.1f"):format(found[8], found[4], found[2]))
  local _, mixed = ms.lite.quantize(dense, { quant_type = "WEIGHT_QUANT", bit_num = 0, init_scale = 0.01 })
  assert(mixed.layers[1].weight_sqnr >= 40 and mixed.layers[1].bits < 9)
  local _, tuned = ms.lite.quantize(dense, { quant_type = "WEIGHT_QUANT", bit_num = 0, auto_tune = true, calibrate_data = { y } })
  assert(tuned.cosine >= 0.995 and tuned.layers[1].bits < mixed.layers[1].bits)
end)

t.test("GPTQ makes up for what rounding took from columns before", function()
  for _, block in ipairs { 0, 32 } do
    local dense = nn.SequentialCell(nn.Dense(64, 48))
    -- Inputs that depend on one another.
    local y = ops.matmul(ops.randn { 300, 16 }, ops.randn { 16, 64 })
    local options = { quant_type = "WEIGHT_QUANT", bit_num = 4, block_size = block, calibrate_data = { y }, calibrate_size = 300,
      quant_strategy = "MAX_MIN" }
    local _, plain = ms.lite.quantize(dense, options)
    options.quant_strategy = "GPTQ"
    local _, better = ms.lite.quantize(dense, options)
    t.equal(better.layers[1].method, "GPTQ")
    assert(better.sqnr > plain.sqnr + 4, ("%.1f against %.1f dB"):format(better.sqnr, plain.sqnr))
  end
  local _, plain = ms.lite.quantize(net, { calibrate_data = samples, bit_num = 4, quant_strategy = "MAX_MIN" })
  local _, better = ms.lite.quantize(net, { calibrate_data = samples, bit_num = 4 })
  assert(better.sqnr > plain.sqnr + 1, ("%.1f against %.1f dB"):format(better.sqnr, plain.sqnr))
end)

t.test("channels brought together compute the same, and lose less with one scale for a layer", function()
  local uneven = net.first.weight:copy()
  local factor = ops.exp(ops.randn { 16 } * 2)
  net.norm.gamma:set_data(factor)
  net.second.weight:set_data(net.second.weight / ops.reshape(factor, { 1, 16, 1, 1 }))
  local options = { calibrate_data = samples, per_channel = false, bias_correction = false }
  local _, plain = ms.lite.quantize(net, options)
  options.equalize = true
  local small, better = ms.lite.quantize(net, options)
  t.equal(better.equalised, 2)
  assert(better.sqnr > plain.sqnr + 3 and sqnr(net(x), small(x)) > 25, ("%.1f against %.1f dB"):format(better.sqnr, plain.sqnr))
  net.norm.gamma:set_data(ops.ones { 16 })
  net.second.weight:set_data(net.second.weight * ops.reshape(factor, { 1, 16, 1, 1 }))
  t.near(net.first.weight, uneven, 0)
end)

t.test("outliers of a normalisation move into the weights behind it", function()
  local Block = nn.Cell:extend("Block")
  function Block:init() self.norm, self.left, self.right = nn.LayerNorm({ 32 }), nn.Dense(32, 32), nn.Dense(32, 32) end
  function Block:construct(v)
    v = self.norm(v)
    return ops.relu(self.left(v)) + self.right(v)
  end
  local block = Block():set_train(false)
  local gamma = ops.ones { 32 }
  gamma[3], gamma[17] = 60.0, 90.0
  block.norm.gamma:set_data(gamma)
  local y = ops.randn { 64, 32 }
  local options = { calibrate_data = { y } }
  local _, plain = ms.lite.quantize(block, options)
  options.smooth, options.smooth_alpha = true, 0.5
  local small, better = ms.lite.quantize(block, options)
  t.equal(better.smoothed, 1)
  assert(better.sqnr > plain.sqnr + 3, ("%.1f against %.1f dB"):format(better.sqnr, plain.sqnr))
  assert(sqnr(block(y), small(y)) > 30)
end)

t.test("ranges at run time need no samples", function()
  local small = ms.lite.quantize(net, { quant_type = "DYNAMIC_QUANT", min_quant_weight_channel = 0 })
  assert(sqnr(exact, small(x)) > 33)
  assert(sqnr(net(x * 100), small(x * 100)) > 33)
  local _, report = ms.lite.quantize(net, { quant_type = "DYNAMIC_QUANT", min_quant_weight_channel = 17 })
  t.equal(#report.layers, 2)
end)

t.test("layers stay floating by name, or where the results would be too far off", function()
  local _, report = ms.lite.quantize(net, { calibrate_data = samples, skip_quant_node = { "first" } })
  t.equal({ report.layers[1].name, #report.layers }, { "second", 2 })
  local folder = os.tmpname()
  os.remove(folder)
  os.execute("mkdir " .. folder)
  local small, kept = ms.lite.quantize(net, { calibrate_data = samples, bit_num = 5, target_sqnr = 31, debug_info_save_path = folder })
  assert(kept.sqnr >= 31 and #kept.kept > 0 and #kept.kept < 3, tostring(kept))
  assert(sqnr(exact, small(x)) > 28)
  assert(tostring(kept):find "floating: ")
  assert(io.open(folder .. "/quant_summary.csv"):read "a":find("second,", 1, true))
  assert(io.open(folder .. "/output_summary.csv"):read "a":find "^sqnr,cosine\n")
  assert(kept:plot():text():find "Signal over rounding noise")
  os.execute("rm -r " .. folder)
end)

t.test("a training that knows of the rounding makes up for it", function()
  local batches = {}
  for i = 1, 8 do
    local v = ops.randn { 32, 1, 8, 8 }
    batches[i] = { v, ops.cast(ops.greater(ops.sum(ops.narrow(v, 2, 0, 4), { 1, 2, 3 }), 0), ms.int64) }
  end
  local trained = Net()
  ms.Model(trained, nn.CrossEntropyLoss(), nn.Adam(trained:trainable_params(), 0.005)):train(4, batches)
  local function accuracy(f) return ms.Model(f, nn.CrossEntropyLoss(), nil, { "accuracy" }):eval(batches).accuracy end
  local plain = ms.lite.quantize(trained, { calibrate_data = batches, bit_num = 2, activation_bit_num = 3, quant_strategy = "MAX_MIN" })
  for _, range in ipairs { "moving_average", "learned" } do
    local aware = ms.lite.quantize_aware(trained, { bit_num = 2, activation_bit_num = 3, range = range, calibrate_data = batches })
    -- The convolution knows of the normalisation behind it, and computes what it computed.
    assert(aware.first.norm and not aware.norm.gamma)
    local before = aware:trainable_params()
    t.equal(#before, range == "learned" and 16 or 7)
    ms.Model(aware, nn.CrossEntropyLoss(), nn.Adam(before, 0.003)):train(12, batches)
    local small = ms.lite.quantize_trained(aware)
    assert(accuracy(small) > accuracy(plain) + 0.05 and accuracy(small) > 0.85,
      ("%s: %.3f after %.3f"):format(range, accuracy(small), accuracy(plain)))
    -- The same numbers as while it was trained, but for the order of products and sums.
    assert(sqnr(aware:set_train(false)(x), small(x)) > 25)
    t.equal({ small.first.weight_min, small.first.weight_max, small.first.input_min, small.first.input_max }, { -1, 1, -4, 3 })
    local scale = ops.reshape(small.first.weight_scale, { 16, 1, 1, 1 })
    t.near(small.first.weight / scale, ops.round(small.first.weight / scale), 1e-5)
    assert(small.first.bias and small:parameters_dict()["first.input_scale"] and small:parameters_dict()["last.input_scale"])
  end
  local fine = ms.lite.quantize_aware(trained, { bit_num = 16, activation_bit_num = 16, calibrate_data = batches })
  assert(sqnr(trained:set_train(false)(x), fine:set_train(false)(x)) > 60)
end)

t.test("parts of a network that predict while others are trained do so in the copy that is trained with rounding", function()
  local parts = nn.SequentialCell(nn.Dense(4, 8), nn.Dropout { p = 0.5 }, nn.Dense(8, 2)):set_train()
  parts[2]:set_train(false)
  local aware = ms.lite.quantize_aware(parts)
  t.equal({ aware.training, aware[1].training, aware[2].training }, { true, true, false })
end)

t.test("a quantised network goes through an ONNX file: pairs become fake_quantize again, weights take a quarter", function()
  local path = os.tmpname() .. ".onnx"
  local small = ms.lite.quantize(net, { calibrate_data = samples })
  ms.export(small, x, { file_name = path, file_format = "ONNX" })
  local loaded, loaded_weights = ms.load(path)
  t.near(loaded(x), small(x), 0)
  local file = io.open(path)
  local quantised = file:seek "end"
  file:close()
  assert(quantised < (144 + 4608 + 5120) * 1.4)
  -- The import has gradients.
  local kernel
  for name, weight in pairs(loaded_weights) do kernel = name:find "second.weight" and weight or kernel end
  local slope = ms.value_and_grad(function(v) return ops.sum(loaded(v)) end)
  local _, g = slope(x)
  assert(ops.any(ops.not_equal(g, 0)):item() and kernel ~= nil)
  for i, f in ipairs {
    function(v) return ops.fake_quantize(v, 0.02, 3.0, -8, 7) end,
    function(v) return ops.fake_quantize(v, 0.01, 100.0, 0, 200) end,
    function(v) return ops.fake_quantize(v, ops.arange(8) * 0.01 + 0.01, 2.0, -32768, 32767, 2) end,
    function(v) return ops.fake_quantize(v, ops.amax(v) / 100, 0.0, -100, 100) end,
    function(v) return ops.fake_quantize(v, ops.ones { 1, 1, 8, 1 } * 0.03, 0.0) end,
  } do
    ms.export(f, x, { file_name = path, file_format = "ONNX" })
    t.near(ms.load(path)(x), f(x), 1e-6)
    t.near(ms.load(path)(x * 3), f(x * 3), 1e-6)
    if i == 4 then assert(ms.load(path)(x).dtype == ms.float32) end
  end
  os.remove(path)
end)

t.test("files of ONNX models are quantised as they are", function()
  local path = os.tmpname() .. ".onnx"
  local trained = nn.SequentialCell(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, { has_bias = true }), nn.ReLU(), nn.Flatten(),
    nn.Dense(8 * 64, 20), nn.ReLU(), nn.Dense(20, 5)):set_train(false)
  ms.export(trained, x, { file_name = path, file_format = "ONNX" })
  -- The file is for batches of seven.
  local sevens = {}
  for i = 1, 14 do sevens[i] = { ops.randn { 7, 1, 8, 8 } } end
  local f, report = ms.lite.quantize(path, { calibrate_data = sevens })
  t.equal(#report.layers, 4)
  assert(report.sqnr > 33 and sqnr(trained(x), f(x)) > 30, tostring(report))
  local same, whole = ms.lite.quantize(trained, { calibrate_data = sevens, bias_correction = false })
  -- The same method: only sums are made in another order.
  assert(math.abs(whole.sqnr - report.sqnr) < 1 and sqnr(same(x), f(x)) > 35)
  local only = ms.lite.quantize(path, { quant_type = "WEIGHT_QUANT", bit_num = 6, per_channel = false })
  assert(sqnr(trained(x), only(x)) > 20)
  ms.export(f, x, { file_name = path, file_format = "ONNX" })
  t.near(ms.load(path)(x), f(x), 1e-6)
  t.fails({ "quant_strategy is not supported for files" }, ms.lite.quantize, path, { calibrate_data = samples, quant_strategy = "GPTQ" })
  os.remove(path)
end)

t.test("settings that have no effect are errors", function()
  local quantize = ms.lite.quantize
  t.fails({ "calibrate_data is missing" }, quantize, net)
  t.fails({ "there is no option 'bits'" }, quantize, net, { bits = 8 })
  t.fails({ "skip_quant_node", "'firs'", "did you mean 'first'?" }, quantize, net,
    { calibrate_data = samples, skip_quant_node = { "firs" } })
  t.fails({ "block_size", "WEIGHT_QUANT" }, quantize, net, { calibrate_data = samples, block_size = 32 })
  t.fails({ "activation_quant_method is for FULL_QUANT" }, quantize, net,
    { quant_type = "WEIGHT_QUANT", activation_quant_method = "KL" })
  t.fails({ "bit_num must be 0 or from 2 to 16" }, quantize, net, { quant_type = "WEIGHT_QUANT", bit_num = 1 })
  t.fails({ "no layer that could be quantised" }, quantize, nn.ReLU(), { quant_type = "WEIGHT_QUANT" })
  t.fails({ "must be a cell" }, quantize, ops.relu, { quant_type = "WEIGHT_QUANT" })
end)

t.finish()
