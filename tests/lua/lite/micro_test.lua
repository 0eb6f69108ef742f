-- Networks as C99, built and run by the system's C compiler.
-- Eager mode only: a conversion records the network itself.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local nn, ops = ms.nn, ms.ops

-- The folder of a network's C program.
local function written(net, inputs)
  local folder = os.tmpname()
  os.remove(folder)
  return folder, ms.lite.micro(net, { inputs = inputs, outputDir = folder })
end

-- Builds the program without a warning, lets it check itself, and compares the numbers that it prints with the network's.
local function check(net, x)
  local folder, made = written(net, { x })
  local pipe <close> = io.popen(("make -s -C %s CFLAGS='-O1 -Werror' test 2>&1"):format(folder))
  local text = pipe:read "a"
  assert(text:find "passed: 1 samples", text)
  assert(text:find(("arena %d bytes"):format(made.arena), 1, true), text)
  assert(made.arena <= 1.15 * made.live)
  local numbers = {}
  for number in text:match "output0:([^\n]*)":gmatch "%S+" do numbers[#numbers + 1] = tonumber(number) end
  local y = net(x)
  t.near(ops.reshape(ms.tensor(numbers), y.shape), y, 1e-5 * math.max(1, ops.abs(y):max():item()))
  os.execute("rm -r " .. folder)
  return made
end

ms.set_seed(1)

t.test("a perceptron with softmax is C that gives its outputs", function()
  check(nn.SequentialCell { nn.Dense(20, 16), nn.ReLU(), nn.Dense(16, 5), nn.Softmax() }, ops.randn { 3, 20 })
end)

t.test("LeNet and a network of depthwise convolutions are C that gives their outputs", function()
  local lenet = nn.SequentialCell { nn.Conv2d(1, 6, 5, { pad_mode = "same" }), nn.ReLU(), nn.MaxPool2d(2, 2),
    nn.Conv2d(6, 16, 5, { pad_mode = "valid" }), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(400, 120), nn.ReLU(),
    nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10) }
  check(lenet, ops.randn { 1, 1, 28, 28 })
  local words = nn.SequentialCell { nn.Conv2d(1, 16, 3, { stride = 2 }), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 16, 3, { group = 16 }), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 24, 1), nn.HSwish(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dense(24, 4), nn.LayerNorm { 4 } }
  check(words, ops.randn { 1, 1, 20, 12 })
end)

t.test("attention, and sums over a first axis, are C that gives their outputs", function()
  local project = nn.Dense(8, 24)
  check(function(x)
    local q, k, v = ops.split(project(x), 8, 2)
    return ops.matmul(ops.softmax(ops.matmul(q, ops.transpose(k, { 0, 2, 1 })) / 3, 2), v)
  end, ops.randn { 1, 5, 8 })
  check(function(x) return ops.cat({ x, ops.sin(x) }, 1):sum(0) end, ops.randn { 3, 4 })
end)

t.test("the keyword network of 8-bit integers has the bits of the host in less than 24 KB", function()
  local layers = { nn.Conv2d(1, 64, { 10, 4 }, { stride = 2, has_bias = true }), nn.ReLU() }
  for _ = 1, 4 do
    layers[#layers + 1] = nn.Conv2d(64, 64, 3, { group = 64, has_bias = true })
    layers[#layers + 1] = nn.ReLU()
    layers[#layers + 1] = nn.Conv2d(64, 64, 1, { has_bias = true })
    layers[#layers + 1] = nn.ReLU()
  end
  layers[#layers + 1] = nn.AvgPool2d { 25, 5 }
  layers[#layers + 1] = nn.Flatten()
  layers[#layers + 1] = nn.Dense(64, 12)
  local net, samples = nn.SequentialCell(layers), {}
  for i = 1, 4 do samples[i] = ops.randn { 1, 1, 49, 10 } end
  net:set_train(false)
  local folder, made = written(ms.lite.quantize(net, { calibrate_data = samples }), { samples[1] })
  assert(made.arena <= 24 * 1024, made.text)
  local pipe <close> = io.popen(("make -s -C %s CFLAGS='-O1 -Werror -DTOLERANCE=0' test 2>&1"):format(folder))
  local text = pipe:read "a"
  assert(text:find("largest difference 0\n", 1, true), text)
  os.execute("rm -r " .. folder)
end)

t.test("the command writes the C of a light file and tells its arena", function()
  local light, folder = os.tmpname() .. ".lite", os.tmpname()
  os.remove(folder)
  ms.lite.convert(nn.SequentialCell { nn.Dense(6, 7), nn.Tanh(), nn.Dense(7, 2) }, { inputs = { ops.ones { 1, 6 } }, outputFile = light })
  local pipe <close> = io.popen(("%s lite micro %s -o %s --target cortex-m 2>&1"):format(arg[-1], light, folder))
  t.equal(pipe:read "a", folder .. ": 8 files, arena 28 bytes (largest live set 28), weights 260 bytes\n")
  local file <close> = io.open(folder .. "/net.h")
  assert(file:read "a":find("#define NET_ARENA_BYTES 28u", 1, true))
  os.execute(("rm -r %s %s"):format(folder, light))
end)

t.test("what is not supported is an error, and no file is written", function()
  local folder = os.tmpname()
  os.remove(folder)
  t.fails("there is no option 'speed'", ms.lite.micro, nn.Dense(2, 2), { speed = 1 })
  t.fails("the folder is missing", ms.lite.micro, nn.Dense(2, 2))
  t.fails("the target 'esp' is not known", ms.lite.micro, nn.Dense(2, 2),
    { inputs = { ops.ones { 1, 2 } }, target = "esp", outputDir = folder })
  t.fails("not supported in C", ms.lite.micro, function(x) return (ops.sort(x)) end, { inputs = { ops.ones { 3 } }, outputDir = folder })
  assert(not io.open(folder .. "/net.c"))
end)

t.finish()
