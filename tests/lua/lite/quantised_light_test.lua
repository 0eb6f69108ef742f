-- Quantised networks as light models: integers are multiplied, and the numbers are those of the network that rounds.
-- Eager mode only: a conversion records the network itself.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn

local path = os.tmpname()

-- Decibels of the signal over the difference.
local function sqnr(exact, rounded)
  local d = exact - rounded
  return 10 * math.log(ops.sum(exact * exact):item() / math.max(1e-30, ops.sum(d * d):item()), 10)
end

-- The kinds of the steps of the light model, in order, and how many decibels lie between its results and the network's.
local function light(net, x)
  local made = ms.lite.convert(net, { inputs = { x }, outputFile = path })
  local kinds = {}
  for _, step in ipairs(made.steps) do
    if step.kind ~= "copy" then kinds[#kinds + 1] = step.kind end
  end
  return table.concat(kinds, " "), sqnr(net(x), ms.lite.Model(path):predict(x))
end

local function quantised(net, shape, options)
  net:set_train(false)
  options = options or {}
  local many = table.move(shape, 1, #shape, 1, {})
  many[1] = 32
  options.calibrate_data = { ops.randn(many) }
  return ms.lite.quantize(net, options), ops.randn(shape)
end

t.test("convolutions, pools and products compute on integers from the first to the last", function()
  local net = nn.SequentialCell(nn.Conv2d(1, 6, 5, { has_bias = true }), nn.ReLU(), nn.MaxPool2d(2, 2),
    nn.Conv2d(6, 16, 5, { pad_mode = "valid" }), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
    nn.Dense(64, 30), nn.ReLU(), nn.Dense(30, 10))
  local kinds, decibels = light(quantised(net, { 2, 1, 16, 16 }))
  t.equal(kinds, "quantize integer_convolution max_pool integer_convolution max_pool integer_product integer_product")
  -- A bias in integers and a sum in floats may round a number to the neighbouring step.
  assert(decibels > 40, decibels)
end)

t.test("each form of a convolution gives what the network gives", function()
  for name, layer in pairs {
    strided = nn.Conv2d(8, 12, 3, { stride = 2, has_bias = true }), dilated = nn.Conv2d(8, 4, 3, { dilation = 2 }),
    grouped = nn.Conv2d(8, 6, 3, { group = 2 }), depthwise = nn.Conv2d(8, 8, 3, { group = 8, has_bias = true }),
    padded = nn.Conv2d(8, 5, 3, { pad_mode = "pad", padding = { 0, 2, 1, 0 } }),
  } do
    local kinds, decibels = light(quantised(nn.SequentialCell(layer, nn.ReLU()), { 2, 8, 9, 7 }))
    t.equal(kinds, "quantize integer_convolution")
    assert(decibels > 100, ("%s: %.1f dB"):format(name, decibels))
  end
  local kinds, decibels = light(quantised(nn.SequentialCell(nn.Conv1d(4, 8, 3), nn.ReLU(), nn.Conv1d(8, 4, 3)), { 2, 4, 20 }))
  t.equal(kinds, "quantize integer_convolution integer_convolution")
  assert(decibels > 40, decibels)
end)

t.test("sums of two branches are floats between integers", function()
  local Block = nn.Cell:extend("Block")
  function Block:init() self.first, self.second, self.last = nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 3), nn.Conv2d(4, 4, 1) end
  function Block:construct(x) return self.last(ops.relu(self.second(ops.relu(self.first(x))) + x)) end
  local kinds, decibels = light(quantised(Block(), { 1, 4, 8, 8 }))
  t.equal(kinds, "quantize integer_convolution integer_convolution loop quantize integer_convolution")
  assert(decibels > 40, decibels)
end)

t.test("products of matrices with a bias beside them, as ONNX files have them", function()
  local net, x = quantised(nn.SequentialCell(nn.Dense(32, 24), nn.ReLU(), nn.Dense(24, 8)), { 2, 5, 32 })
  local file = path .. ".onnx"
  ms.export(net, x, { file_name = file, file_format = "ONNX" })
  local loaded = ms.load(file)
  os.remove(file)
  local kinds, decibels = light(loaded, x)
  t.equal(kinds, "quantize integer_product integer_product")
  assert(decibels > 40, decibels)
end)

t.test("weights alone lie in blocks of 8 or 4 bits", function()
  for bits, least in pairs { [8] = 30, [4] = 30 } do
    for _, k in ipairs { 64, 70 } do
      local net, x = nn.SequentialCell(nn.Dense(k, 40)), ops.randn { 3, k }
      net = ms.lite.quantize(net, { quant_type = "WEIGHT_QUANT", bit_num = bits })
      local kinds, decibels = light(net, x)
      t.equal(kinds, k == 64 and "product" or "concat product")
      assert(decibels > least, decibels)
      local size = io.open(path):seek "end"
      assert(size < 40 * 96 * bits / 8 + 40 * 3 * 2 + 40 * 4 + 2200, size)
    end
  end
end)

t.test("files are converted with samples of their inputs", function()
  local net = nn.SequentialCell(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Dense(8 * 36, 4)):set_train(false)
  local x, samples = ops.randn { 1, 1, 6, 6 }, ops.randn { 40, 1, 1, 6, 6 }
  for _, format in ipairs { "ONNX", "MINDIR" } do
    local file = path .. (format == "ONNX" and ".onnx" or ".mindir")
    ms.export(net, x, { file_name = file, file_format = format })
    for _, calibration in ipairs { { samples }, path .. ".safetensors" } do
      local name = select(3, ms.load(file)).inputs[1].name
      ms.save(path .. ".safetensors", { [name] = samples })
      local made = ms.lite.convert(file, { inputs = { x }, quant_type = "FULL_QUANT", calibration = calibration, infer = true,
        min_quant_input_channel = 0 })
      local kinds = {}
      for _, step in ipairs(made.steps) do kinds[step.kind] = true end
      assert(kinds.integer_convolution and kinds.integer_product)
      assert(sqnr(net(x), made.results[1]) > 28)
      -- A convolution of one channel is faster in floats.
      made = ms.lite.convert(file, { inputs = { x }, quant_type = "FULL_QUANT", calibration = calibration })
      kinds = {}
      for _, step in ipairs(made.steps) do kinds[step.kind] = true end
      assert(kinds.convolution and not kinds.integer_convolution and kinds.integer_product)
    end
    os.remove(file)
  end
  os.remove(path .. ".safetensors")
  t.fails({ "FULL_QUANT needs samples" }, ms.lite.convert, net, { inputs = { x }, quant_type = "FULL_QUANT" })
  t.fails({ "calibration is for quant_type = FULL_QUANT" }, ms.lite.convert, net, { inputs = { x }, calibration = { samples } })
end)

os.remove(path)
t.finish()
