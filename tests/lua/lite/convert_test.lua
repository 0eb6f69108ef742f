-- Conversion of networks to light models, also by functions that graph mode records.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local ops, nn = ms.ops, ms.nn

t.test("a network becomes a light model whose report tells steps, costs and lines", function()
  local net = nn.SequentialCell { nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 3) }
  local path = os.tmpname()
  net:set_train()
  local made = ms.lite.convert(net, { inputs = { ops.zeros { 2, 4 } }, outputFile = path })
  t.equal({ net.training, net[1].training, made.operators }, { true, true, 3.0 })
  t.equal(#made.steps, 2)
  t.equal(made.steps[1].label, "product + bias + relu")
  t.equal(tostring(made), made.text)
  assert(made.weights >= 4 * (4 * 8 + 8 + 8 * 3 + 3))
  assert(made.text:find("MFLOP", 1, true) and made.arena > 0)
  local file <close> = io.open(path, "rb")
  t.equal(file:read(12), "lunaria lite")
  os.remove(path)
end)

t.test("a function that is called again and again converts, in graph mode too", function()
  local function one_of(net) return #ms.lite.convert(net, { inputs = { ops.zeros { 1, 3, 8, 8 } } }).steps end
  for _ = 1, 8 do t.equal(one_of(nn.MaxPool2d(2)), 3) end
end)

local function agrees(net, ...)
  local inputs = { ... }
  if type(net) == "table" then net:set_train(false) end
  local made = ms.lite.convert(net, { inputs = inputs, infer = true })
  local wanted = { net(table.unpack(inputs)) }
  t.equal(#made.results, #wanted)
  for i, one in ipairs(wanted) do t.near(made.results[i], one, 1e-5 * math.max(1, ops.abs(one):max():item())) end
  return made
end

t.test("a light model gives what the network gives", function()
  local net = nn.SequentialCell { nn.Conv2d(3, 8, 3, { pad_mode = "pad", padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(),
    nn.MaxPool2d(2, 2), nn.Conv2d(8, 6, 3), nn.ReLU6(), nn.AvgPool2d(2, 2), nn.Flatten(), nn.Dense(6 * 4 * 4, 5), nn.Softmax() }
  local made = agrees(net, ops.randn { 2, 3, 16, 16 })
  t.equal(made.steps[2].kind, "convolution")
  assert(#made.steps <= 7)
  agrees(function(x, w) return ops.matmul(x, w), ops.matmul(w, ops.swapaxes(x, 1, 2)) end, ops.randn { 2, 3, 4 }, ops.randn { 4, 4 })
  agrees(nn.SequentialCell { nn.Conv2dTranspose(3, 4, 3, { stride = 2 }), nn.Sigmoid() }, ops.randn { 1, 3, 5, 6 })
  agrees(nn.LayerNorm { 6 }, ops.randn { 3, 6 })
end)

t.test("weights become halves or blocks of integers", function()
  local net = nn.SequentialCell { nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Dense(8 * 4 * 4, 64), nn.ReLU(), nn.Dense(64, 32) }
  net:set_train(false)
  local x = ops.randn { 2, 3, 4, 4 }
  local wanted = net(x)
  local most = ops.abs(wanted):max():item()
  local whole = ms.lite.convert(net, { inputs = { x } }).weights
  for _, row in ipairs { { { fp16 = "on" }, 1e-3, 0.6 }, { { quant_type = "WEIGHT_QUANT" }, 1e-2, 0.4 },
    { { quant_type = "WEIGHT_QUANT", bit_num = 4 }, 0.15, 0.3 } } do
    local options = row[1]
    options.inputs, options.infer = { x }, true
    local made = ms.lite.convert(net, options)
    t.near(made.results[1], wanted, row[2] * most)
    assert(made.weights < row[3] * whole, ("%d of %d bytes"):format(made.weights, whole))
  end
end)

t.test("a configuration file gives options, and a model can be C source", function()
  local config, path = os.tmpname(), os.tmpname()
  local text = io.open(config, "w")
  text:write "[common_quant_param]\n# blocks\nquant_type = WEIGHT_QUANT\nbit_num=4\n"
  text:close()
  local net = nn.Dense(64, 8)
  local made = ms.lite.convert(net, { inputs = { ops.zeros { 1, 64 } }, configFile = config, outputFile = path, embed = "net" })
  assert(made.weights < 64 * 8)
  local source = io.open(path):read "a"
  assert(source:find("const unsigned char net[] = {\n108,117,110,97,114,105,97,", 1, true))
  local wrong = { inputs = { ops.zeros { 1, 64 } }, embed = "a b", outputFile = path }
  t.fails("is no name in C", ms.lite.convert, net, wrong)
  t.fails("needs a key", ms.lite.convert, net, { inputs = wrong.inputs, outputFile = path, encryption = true })
  t.fails("hexadecimal digits", ms.lite.convert, net, { inputs = wrong.inputs, outputFile = path, encryptKey = "12" })
  ms.lite.convert(net, { inputs = wrong.inputs, outputFile = path, encryptKey = ("0f"):rep(16) })
  local file <close> = io.open(path, "rb")
  t.equal(file:read(12), "lunaria lock")
  os.remove(config)
  os.remove(path)
end)

t.test("inputs by which a network decides can be fixed", function()
  local net = function(x, shape) return ops.reshape(x, shape:tolist()) * 2 end
  local inputs = { ops.randn { 2, 6 }, ms.tensor({ 3, 4 }, ms.int64) }
  t.fails("decides by elements", ms.lite.convert, net, { inputs = inputs })
  local made = ms.lite.convert(net, { inputs = inputs, fixed = true, infer = true })
  t.equal(made.inputs, { "input0" })
  t.near(made.results[1], ops.reshape(inputs[1], { 3, 4 }) * 2, 0)
  made = ms.lite.convert(net, { inputs = inputs, fixed = { "input1" }, names = { "input0", "input1" } })
  t.equal(#made.inputs, 1)
end)

t.test("sizes of inputs can be left open", function()
  local net = nn.SequentialCell { nn.Conv2d(3, 8, 3, { stride = 2, pad_mode = "pad", padding = 1 }), nn.BatchNorm2d(8), nn.ReLU(),
    nn.MaxPool2d(2, 2), nn.Conv2d(8, 6, 3), nn.Sigmoid() }
  local head = nn.Dense(6, 4)
  net:set_train(false)
  local function all(x)
    local y = net(x)
    return head(ops.mean(y, { 2, 3 })), ops.softmax(y, -1), ops.concat({ y, y * 2 }, 2)
  end
  local made = ms.lite.convert(all, { inputs = { ops.randn { 2, 3, 16, 16 } }, inputShape = "input0:batch=2,3,height=16,width=16" })
  for _, shape in ipairs { { 2, 3, 16, 16 }, { 1, 3, 24, 16 }, { 5, 3, 17, 31 }, { 3, 3, 40, 22 } } do
    local x = ops.randn(shape)
    local results, wanted = made.run { x }, { all(x) }
    for i, one in ipairs(wanted) do t.near(results[i], one, 1e-4) end
  end
  t.fails("has 4 axes, not 3", made.run, { ops.randn { 2, 3, 16 } })
end)

t.test("constants that depend on open sizes are an error", function()
  local dense = nn.Dense(2, 2)
  for _, net in ipairs {
    function(x) return x * ms.tensor { 1 / x.shape[1], 2 } end,
    function(x) return ops.matmul(x, ms.tensor { { 1 / x.shape[1], 0 }, { 0, 1 } }) end,
    function(x) return dense(x) / x.shape[1] end,
  } do
    t.fails({ "tests/lua/lite/convert_test.lua:", "a constant depends on the sizes" }, ms.lite.convert, net,
      { inputs = { ops.ones { 2, 2 } }, inputShape = "input0:rows=2,2" })
  end
end)

t.test("the conformance program compares files with their outputs", function()
  local folder = os.tmpname()
  os.remove(folder)
  ms.io.make_folder(folder)
  local net = nn.SequentialCell { nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 16, 32) }
  net:set_train(false)
  local x = ops.randn { 2, 3, 4, 4 }
  ms.export(net, x, { file_name = folder .. "/net.onnx", file_format = "ONNX" })
  ms.export(net, x, { file_name = folder .. "/other.mindir", file_format = "MINDIR" })
  for _, name in ipairs { "net.onnx", "other.mindir" } do
    local _, _, about = ms.load(folder .. "/" .. name)
    local stem = folder .. "/" .. name:match "^%a+"
    ms.save(stem .. ".in.safetensors", { [about.inputs[1].name] = x })
    ms.save(stem .. ".out.safetensors", { [about.outputs[1].name] = net(x) })
    local file <close> = io.open(stem .. ".json", "w")
    file:write '{"fp32": 1e-5, "fp16": 1e-2, "weight_int8": 0.05, "full_int8": null}'
  end
  local run <close> = io.popen(("'%s' tests/conformance/lite.lua %s"):format(arg[-1], folder))
  t.equal(run:read "a", "6 passed, 0 failed\n")
  os.execute("rm -r " .. folder)
end)

t.test("layers of one input become one, and norms become loops", function()
  local q, k, v = nn.Dense(32, 32), nn.Dense(32, 32), nn.Dense(32, 16)
  local made = agrees(function(x)
    local scores = ops.softmax(ops.matmul(q(x):reshape { 2, 6, 2, 16 }:transpose { 0, 2, 1, 3 },
      k(x):reshape { 2, 6, 2, 16 }:transpose { 0, 2, 3, 1 }) / 4.0, -1)
    return ops.matmul(scores, v(x):reshape { 2, 6, 2, 8 }:transpose { 0, 2, 1, 3 })
  end, ops.randn { 2, 6, 32 })
  t.equal(#made.steps, 4)
  agrees(function(x) return x / ops.vector_norm(x, 2, 1, true) end, ops.randn { 2, 6, 3 })
end)

t.test("what is not supported is an error", function()
  local net = nn.Dense(4, 8)
  local inputs = { ops.zeros { 2, 4 } }
  t.fails("optimize = none is not supported", ms.lite.convert, net, { inputs = inputs, optimize = "none" })
  t.fails("device is not supported", ms.lite.convert, net, { inputs = inputs, device = "Ascend" })
  t.fails("there is no option 'speed'", ms.lite.convert, net, { inputs = inputs, speed = 2 })
  t.fails("example inputs are missing", ms.lite.convert, net)
  t.fails("draws random numbers", ms.lite.convert, function(x) return x + ops.randn { 2, 4 } end, { inputs = inputs })
  t.fails({ "argwhere (tests/lua/lite/convert_test.lua:", "depends on the elements of its operands" }, ms.lite.convert,
    function(x) return ops.argwhere(x) end, { inputs = inputs })
  t.fails("decides by elements", ms.lite.convert, function(x)
    if x:sum():item() > 0 then return x end
    return x * 2
  end, { inputs = inputs })
end)

t.finish()
