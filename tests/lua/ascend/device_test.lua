-- The device "Ascend": numbers, overflow, memory, and how long the chip would have taken.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, ascend = ms.nn, ms.ops, ms.ascend
local parameters = require "lunaria.ascend.parameters"

local function there(x) return x:to "Ascend" end
local function half(values) return there(ms.tensor(values, ms.float16)) end
-- What a finaliser frees is gone after the second run.
local function settle()
  collectgarbage()
  collectgarbage()
end
local largest = 2.0 ^ 127 * (2 - 2 ^ -23)

t.test("products take float32 operands as float16 and add up in float32", function()
  local a, b = ops.randn { 5, 300 }, ops.randn { 300, 7 }
  local rounded = ops.matmul(a:astype(ms.float16):astype(ms.float32), b:astype(ms.float16):astype(ms.float32))
  local found = ops.matmul(there(a), there(b))
  t.equal(found.dtype, ms.float32)
  t.near(found:to "CPU", rounded, 1e-5)
  t.equal(ops.amax(ops.abs(found:to "CPU" - ops.matmul(a, b))):item() > 1e-5, true)
  -- 2048 + 1 is no number of float16, so that sums in float16 would stay at 2048.
  t.equal(ops.sum(ops.matmul(there(ops.ones { 1, 4097 }), there(ops.ones { 4097, 1 }))):item(), 4097.0)
  local x, w = ops.randn { 2, 3, 8, 8 }, ops.randn { 4, 3, 3, 3 }
  t.near(ops.conv2d(there(x), there(w)):to "CPU",
    ops.conv2d(x:astype(ms.float16):astype(ms.float32), w:astype(ms.float16):astype(ms.float32)), 1e-4)
end)

t.test("other operators and float64 compute as the CPU does", function()
  local x = ops.randn { 4, 33 }
  for name, f in pairs { softmax = function(v) return ops.softmax(v, 1) end, layers = function(v) return ops.gelu(v) + ops.exp(v) end,
    product = function(v) return ops.matmul(v:astype(ms.float64), v:astype(ms.float64).T) end } do
    t.equal({ name, f(there(x)):to "CPU" }, { name, f(x) })
  end
end)

t.test("too large is the largest number and NaN is 0, and the flag says so", function()
  ascend.overflowed()
  local y = half { 60000, -60000, 1 } * 2
  t.equal(y:tolist(), { 65504.0, -65504.0, 2.0 })
  t.equal(ascend.overflowed(), true)
  t.equal(ascend.overflowed(), false)
  t.equal(ops.log(there(ms.tensor { 0.0, 1.0, -1.0 })):tolist(), { -largest, 0.0, 0.0 })
  t.equal(ascend.overflowed(), true)
  -- A product's result, and an operand that is too large for float16.
  t.equal(ops.matmul(half { { 300, 300 } }, half { { 300 }, { 300 } }):tolist(), { { 65504.0 } })
  t.equal(ops.matmul(there(ms.tensor { { 1e6 } }), there(ms.tensor { { 1.0 } })):tolist(), { { 65504.0 } })
  t.equal(there(ms.tensor { 1e6 }):astype(ms.float16):tolist(), { 65504.0 })
  t.equal(ascend.overflowed(), true)
end)

t.test("what is infinite before is no overflow", function()
  ascend.overflowed()
  local mask = there(ms.tensor { -1 / 0, 0.0 })
  t.equal(ops.softmax(mask + 1, 0):tolist(), { 0.0, 1.0 })
  -- What only moves elements leaves them as they are.
  t.equal(ops.concat({ mask, mask }, 0):tolist(), { -1 / 0, 0.0, -1 / 0, 0.0 })
  t.equal(ops.isinf(ops.stack({ mask, mask }, 0)):tolist(), { { true, false }, { true, false } })
  t.equal(ascend.overflowed(), false)
end)

t.test("with overflow = infnan results are those of IEEE 754, and the flag is there too", function()
  ascend.configure { overflow = "infnan" }
  ascend.overflowed()
  local y = half { 60000 } * 2
  t.equal(y:tolist(), { 1 / 0 })
  t.equal(ascend.overflowed(), true)
  local log = ops.log(there(ms.tensor { -1.0 })):item()
  t.equal(log ~= log, true)
  ascend.configure {}
  t.equal((half { 60000 } * 2):tolist(), { 65504.0 })
  ascend.configure { chip = "910B" }
  t.equal((half { 60000 } * 2):tolist(), { 1 / 0 })
  ascend.configure {}
end)

t.test("loss scaling reads the flag, since saturated gradients are finite", function()
  local function all_finite(x)
    local y = x * 2
    return ms.amp.all_finite { y, ops.sum(y) }
  end
  ascend.overflowed()
  local compiled = ms.jit(all_finite)
  for _, f in ipairs { all_finite, compiled, compiled, compiled, compiled } do
    t.equal(f(half { 60000 }):item(), false)
    t.equal(f(half { 2 }):item(), true)
  end
  t.equal(compiled:report().compiled_calls > 0, true)
  -- A step whose gradients were saturated leaves the parameters alone and halves the scale.
  ms.set_device "Ascend"
  local net = nn.Dense(4, 1, { has_bias = false }):to_float(ms.float16)
  local scale = nn.DynamicLossScaleUpdateCell(2.0 ^ 14, 2, 1000)
  local step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net:trainable_params(), 0.1), scale)
  local before = net.weight:tolist()
  local x, y = ops.full({ 2, 4 }, 100.0), ops.full({ 2, 1 }, -50.0)
  local _, overflow = step(x, y)
  t.equal({ overflow:item(), step.scale_sense:item() }, { true, 2.0 ^ 14 / 2 })
  t.equal(net.weight:tolist(), before)
  ms.set_device "CPU"
end)

t.test("memory is counted by parameters and other tensors", function()
  settle()
  local before = ascend.memory()
  local p = ms.Parameter(there(ops.zeros { 1000 }), "p")
  local x = there(ops.zeros { 500 })
  settle()
  local after = ascend.memory()
  t.equal(after.parameters.live - before.parameters.live, 4000)
  t.equal(after.features.live - before.features.live, 2000)
  -- An assignment gives the parameter other memory.
  p:assign(p * 2 + 1)
  settle()
  t.equal(ascend.memory().parameters.live - before.parameters.live, 4000)
  t.equal(after.communication, { live = 0, peak = 0, limit = 1000000000 })
  t.equal(tostring(after):find("5.0 GB", 1, true) ~= nil, true)
  t.equal({ p.shape[1], x.shape[1] }, { 1000, 500 })
end)

t.test("what does not fit is an error that names the part, and leaves everything as it was", function()
  settle()
  local x = there(ops.ones { 10 })
  local before = ascend.memory()
  local function limits(features, params)
    ascend.configure { chip = { memory_features = before.features.live + features,
      memory_parameters = before.parameters.live + params } }
  end
  limits(1000.0, 1000.0)
  t.fails({ "Ascend is out of device memory", "1200 bytes are asked for as feature maps", "hint" },
    function() return ops.tile(x, { 30 }) end)
  limits(1e6, 1000.0)
  t.fails({ "1200 bytes are asked for as parameters" }, function() return ms.Parameter(there(ops.zeros { 300 }), "p") end)
  ascend.configure {}
  settle()
  t.equal(ascend.memory().parameters.live, before.parameters.live)
  t.equal(ascend.memory().features.live, before.features.live)
  t.equal((x + 1):tolist()[1], 2.0)
end)

t.test("limits of any size are taken", function()
  for _, bytes in ipairs { 1e-300, 1e300, 2.0 ^ 63 } do
    ascend.configure { chip = { memory_communication = bytes } }
    t.equal(ascend.memory().communication.limit, math.tointeger(math.min(bytes, 2.0 ^ 53) // 1))
  end
  ascend.configure {}
end)

t.test("the device starts with the numbers of the parameter file", function()
  local memory, chip = ascend.memory(), parameters.chips["910"]
  for _, part in ipairs { "parameters", "features", "communication" } do
    t.equal(memory[part].limit, math.tointeger(chip["memory_" .. part][1]))
  end
end)

local function network()
  local net = nn.SequentialCell(nn.Conv2d(3, 16, 3, { pad_mode = "same" }), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(),
    nn.Dense(16 * 64, 10))
  net:set_train(true)
  local loss = nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" }
  local optimizer = nn.Momentum(net:trainable_params(), 0.01, 0.9)
  local gradient = ms.value_and_grad(function(x, y) return loss(net(x), y) end, nil, net:trainable_params())
  return function(x, y)
    local value, grads = gradient(x, y)
    optimizer(grads)
    return value
  end
end

t.test("what ran is timed by operator, in the mode that is asked for", function()
  ms.set_device "Ascend"
  local step = network()
  local x, y = ops.randn { 8, 3, 8, 8 }, ops.zeros({ 8 }, ms.int32)
  for _ = 1, 5 do step(x, y) end
  local results = {}
  for _, sink in ipairs { "host", "graph", "loop" } do
    ascend.ran()
    for _ = 1, 4 do step(x, y) end
    results[sink] = ascend.ran { sink = sink, steps = 4 }
  end
  ms.set_device "CPU"
  local names = {}
  for _, task in ipairs(results.host.tasks) do names[task.name] = (names[task.name] or 0) + 1 end
  t.equal(names.apply_momentum, 4 * 5)
  t.equal((names.conv2d or names.conv2d_relu), 4)
  t.equal(names.conv_weight_grad, 4)
  -- A float32 network is converted for the cube, its parameters after every update.
  t.equal(names.Cast, 4 * 4 - 3)
  -- Operators that become one task, and a host that is asked once a step, or once in a hundred.
  t.equal(#results.graph.tasks < #results.host.tasks, true)
  t.equal(results.graph.device < results.host.device, true)
  t.near(results.graph.step - results.loop.step, 300e-6 * 0.99, 1e-9)
  local text = tostring(results.graph)
  for _, part in ipairs { "4 steps, sink graph", "bound by", "not validated", "model " } do
    t.equal(text:find(part, 1, true) ~= nil, true)
  end
  t.equal(#ascend.report() > 3, true)
  local shown = 0
  for _, e in ipairs(ms.json.decode(ascend.timeline()).traceEvents) do shown = shown + (e.ph == "X" and 1 or 0) end
  t.equal(shown, #results.loop.tasks)
  t.equal(results.host.tasks[1].place:find("device_test.lua", 1, true) ~= nil, true)
end)

t.test("halves count as halves, also where kernels compute in float32", function()
  local x = half { { 1, 2 }, { 3, 4 } }
  local big = there(ops.ones({ 256, 4096 }, ms.float16))
  ascend.ran()
  local y = ops.softmax(x, 1)
  local z = ops.softmax(big, 1)
  t.equal({ y.dtype, z.dtype }, { ms.float16, ms.float16 })
  local tasks = ascend.ran().tasks
  t.equal({ tasks[1].name, tasks[1].hbm }, { "softmax", 16 })
  t.equal({ tasks[2].name, tasks[2].hbm }, { "softmax", 2 * 2 * 256 * 4096 })
end)

t.test("operators that the cores cannot run take their time on the AI CPUs", function()
  local x, w = there(ops.randn { 1000 }), there(ops.ones({ 2, 2 }, ms.float64))
  ascend.ran()
  local sorted = ops.sort(x)
  local wide = ops.matmul(w, w)
  t.equal({ sorted.shape[1], wide.dtype }, { 1000, ms.float64 })
  for _, task in ipairs(ascend.ran().tasks) do t.equal({ task.name, task.bound }, { task.name, "AI CPU" }) end
end)

t.test("kernels take tensors of the device and give them", function()
  local library = require "lunaria.ascend.kernels"
  local x, w = ops.randn({ 1, 3, 8, 8 }):astype(ms.float16), ops.randn({ 5, 3, 3, 3 }):astype(ms.float16)
  local here = { library.relu(x), library.conv2d(x, w), library.max_pool(x, 2) }
  ms.set_device "Ascend"
  local a, b = there(x), there(w)
  local found = { library.relu(a), library.conv2d(a, b), library.max_pool(a, 2) }
  for i, y in ipairs(found) do t.equal({ y.device, y:to "CPU" }, { "Ascend", here[i] }) end
  t.equal(library.relu(x).device, "CPU")
  ms.set_device "CPU"
end)

t.test("more operators than are written down are an error that says what to do", function()
  local x = there(ops.ones { 4 })
  ascend.ran()
  for _ = 1, 50007 do local _ = x + 1 end
  t.fails({ "ascend.ran", "50007 operators ran since this was asked the last time, and 50000 are written down at most",
    "discard = true } right before the steps that are to be timed" }, ascend.ran)
  for _ = 1, 50001 do local _ = x + 1 end
  t.equal(ascend.ran { discard = true }, nil)
  local _ = x + 1
  t.equal(#ascend.ran { sink = "host" }.tasks, 1)
end)

t.test("mistakes are told", function()
  t.fails({ "ascend.ran", "sink must be", "tape" }, function() ascend.ran { sink = "tape" } end)
  t.fails({ "ascend.ran", "no option 'stepps'", "steps" }, function() ascend.ran { stepps = 1 } end)
  t.fails({ "ascend.ran", "steps must be a positive integer", "0" }, function() ascend.ran { steps = 0 } end)
  t.fails({ "ascend.ran", "host_launch" }, function() ascend.ran { host_launch = -1 } end)
  t.fails({ "ascend.ran", "table" }, function() ascend.ran(3) end)
  t.fails({ "ascend.configure", "overflow must be" }, function() ascend.configure { overflow = "wrap" } end)
  t.fails({ "ascend.configure", "there is no '920'" }, function() ascend.configure { chip = "920" } end)
  t.fails({ "ascend.configure", "table" }, function() ascend.configure() end)
end)

t.finish()
