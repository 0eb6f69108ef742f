-- Light models that run.
-- Eager mode only: they do not go through a graph.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local ops, nn = ms.ops, ms.nn

local function converted(net, inputs)
  local path = os.tmpname()
  ms.lite.convert(net, { inputs = inputs, outputFile = path })
  return path
end

local function near(got, wanted, most)
  t.equal(tostring(got.shape), tostring(wanted.shape))
  local off = (got - wanted):abs():max():item()
  if off > most then error(("differs by %g"):format(off), 2) end
end

ms.set_seed(3)

t.test("a light model gives what the network gives", function()
  local net = nn.SequentialCell(nn.Dense(12, 24), nn.GELU(), nn.LayerNorm { 24 }, nn.Dense(24, 7), nn.Softmax())
  local x = ops.randn { 5, 12 }
  local path = converted(net, { x })
  for threads = 1, 3 do
    local model = ms.lite.Model(path, { threads = threads })
    near(model:predict(x), net(x), 1e-5)
    near(model:predict { [model:inputs()[1].name] = x }, net(x), 1e-5)
  end
  os.remove(path)
end)

t.test("pictures go through convolutions, pools and norms", function()
  local net = nn.SequentialCell(nn.Conv2d(3, 8, 3, { stride = 2, pad_mode = "same" }), nn.BatchNorm2d(8), nn.ReLU(),
    nn.MaxPool2d { kernel_size = 3, stride = 2, pad_mode = "same" }, nn.Conv2d(8, 8, 3, { group = 8, pad_mode = "same" }), nn.HSwish(),
    nn.AvgPool2d { kernel_size = 3, stride = 1, pad_mode = "same" }, nn.Flatten(), nn.Dense(8 * 8 * 8, 5))
  net:set_train(false)
  local x = ops.randn { 2, 3, 32, 32 }
  local path = converted(net, { x })
  for threads = 1, 2 do near(ms.lite.Model(path, { threads = threads }):predict(x), net(x), 2e-5) end
  os.remove(path)
end)

t.test("a model tells its inputs, outputs, steps and memory", function()
  local net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 2))
  local path = converted(net, { ops.zeros { 3, 4 } })
  local model = ms.lite.Model(path):measure(true)
  t.equal(tostring(model:inputs()[1].shape), "(3, 4)")
  t.equal(tostring(model:outputs()[1].shape), "(3, 2)")
  model:predict(ops.zeros { 3, 4 })
  local seconds = 0
  for _, step in ipairs((model:steps())) do seconds = seconds + step.seconds end
  assert(seconds > 0 and model:memory().arena > 0)
  assert(tostring(model):find("lite.Model(", 1, true))
  os.remove(path)
end)

t.test("what does not fit is an error", function()
  local path = converted(nn.Dense(4, 8), { ops.zeros { 3, 4 } })
  local model = ms.lite.Model(path)
  t.fails("the model takes float32(3, 4)", model.predict, model, ops.zeros { 4, 4 })
  t.fails("there is no option 'speed'", ms.lite.Model, path, { speed = 1 })
  t.fails("there is no weight 'missing'", model.update_weights, model, { missing = ops.zeros { 1 } })
  t.fails("the model takes 1 input, got 2", model.predict, model, ops.zeros { 3, 4 }, 1)
  t.fails("No such file", ms.lite.Model, path .. ".none")
  local whole = io.open(path, "rb"):read "a"
  local file <close> = io.open(path, "wb")
  file:write(whole:sub(1, -2), string.char(whole:byte(-1) ~ 1))
  file:flush()
  t.fails("the checksum of the", ms.lite.Model, path)
  file:seek "set"
  file:write "no model at all, but for its name"
  file:flush()
  t.fails("at byte", ms.lite.Model, path)
  os.remove(path)
end)

t.test("an encrypted model runs by its key alone", function()
  local net, x = nn.Dense(4, 8), ops.randn { 3, 4 }
  local path, key = os.tmpname(), "00112233445566778899aabbccddeeff"
  ms.lite.convert(net, { inputs = { x }, outputFile = path, encryptKey = key })
  near(ms.lite.Model(path, { decrypt_key = key }):predict(x), net(x), 1e-5)
  t.fails("is encrypted", ms.lite.Model, path)
  t.fails("at byte", ms.lite.Model, path, { decrypt_key = "f" .. key:sub(2) })
  os.remove(path)
end)

t.test("open sizes get other numbers", function()
  local net = nn.SequentialCell(nn.Dense(6, 16), nn.Tanh(), nn.Dense(16, 3), nn.Softmax())
  local path = os.tmpname()
  ms.lite.convert(net, { inputs = { ops.zeros { 2, 6 } }, inputShape = "input0:rows=2,6", outputFile = path })
  local model = ms.lite.Model(path)
  for _, rows in ipairs { 1, 7, 300, 2 } do
    local x = ops.randn { rows, 6 }
    near(model:resize({ rows, 6 }):predict(x), net(x), 1e-5)
  end
  t.fails("lite.Model", model.resize, model, { 2, 7 })
  os.remove(path)
end)

t.test("lunaria lite benchmark prints times that add up and compares results", function()
  local net = nn.SequentialCell(nn.Dense(256, 512), nn.ReLU(), nn.Dense(512, 256))
  local x = ops.randn { 64, 256 }
  local path, input, output = converted(net, { x }), os.tmpname() .. ".npy", os.tmpname() .. ".npy"
  ms.save(input, x)
  ms.save(output, net(x))
  local lines = {}
  require "lunaria.lite.benchmark".run({ path, "--inDataFile=" .. input, "--loopCount", "5", "--numThreads=1", "--timeProfiling",
    "--benchmarkDataFile=" .. output }, function(text) lines[#lines + 1] = text end)
  local text = table.concat(lines, "\n")
  assert(text:find(": good", 1, true), text)
  assert(tonumber(text:match "steps add up to ([%d.]+) %%") >= 95, text)
  t.fails("--enableFp16 is not supported", require "lunaria.lite.benchmark".run, { path, "--enableFp16" })
  for _, file in ipairs { path, input, output } do os.remove(file) end
end)

t.finish()
