-- Two devices: where tensors are, what runs where, copies, errors, memory. The second one is the test device, whose memory
-- the host cannot touch: a host access would end the program.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local test, equal, fails = t.test, t.equal, t.fails

local other = "Separate"
local a = ms.tensor { { 1, 2, 3 }, { 4, 5, 6.5 } }
local b = a:to(other)

test("a tensor tells its device, and a copy on another one has the same elements", function()
  equal(a.device, "CPU")
  equal(b.device, other)
  equal(b:tolist(), a:tolist())
  equal(b:to("CPU"), a)
  equal(b:to("cpu").device, "CPU")
  -- A tensor of its own, also where it is there already.
  equal(rawequal(b:to(other), b), false)
  equal(b:to(other):data_ptr(), b:data_ptr())
  equal({ table.unpack(ms.runtime.devices(), 1, 2) }, { "CPU", other })
end)

test("views, conversions and copies stay on the device", function()
  for name, x in pairs { T = b.T, row = b[1], part = b["0:1, 1:3"], reshaped = b:reshape { 3, 2 }, dense = b.T:contiguous(),
    half = b:astype(ms.float16), copy = b:copy(), zeros = b:new_zeros { 2 }, full = b:new_full({ 2 }, 3) } do
    equal(name .. x.device, name .. other)
  end
  equal(b.T:tolist(), a.T:tolist())
  equal(b["0:1, 1:3"]:tolist(), { { 2.0, 3.0 } })
  equal(b.T:reshape { 6 }:tolist(), a.T:reshape { 6 }:tolist())
  equal(b:astype(ms.int32):tolist(), { { 1, 2, 3 }, { 4, 5, 6 } })
end)

test("elements are read by item, index, printing and iteration", function()
  equal(b[{ 1, 2 }]:item(), 6.5)
  equal(tostring(b), (tostring(a)))
  local seen = {}
  for i, x in b[0]:iter() do seen[i + 1] = x end
  equal(seen, { 1.0, 2.0, 3.0 })
  equal(ops.sum(b) > 20, true)
  equal(b:sum() == ms.tensor(21.5), true)
end)

test("operators run where their operands are", function()
  for name, f in pairs {
    add = function(x) return x + x end, number = function(x) return 2 * x - 1 end, product = function(x) return x:matmul(x.T) end,
    sum = function(x) return x:sum(1) end, softmax = function(x) return ops.softmax(x, 1) end, max = function(x) return (x:max(1)) end,
    scalar = function(x) return x * ms.tensor(3.0) end, compare = function(x) return x:greater(2) end,
    gather = function(x) return ops.gather(x, ms.tensor({ 1, 0 }):to(x.device), 0) end,
    composite = function(x) return ops.gelu(x) + ops.log_softmax(x, 1) end, nonzero = function(x) return ops.nonzero(x:greater(2)) end,
    topk = function(x) return (ops.topk(x, 2)) end, quantile = function(x) return ops.quantile(x, 0.3, 1) end,
  } do
    local there = f(b)
    equal(name .. there.device, name .. other)
    equal(there:to("CPU"), f(a))
  end
end)

test("operands on two devices are an error that names both", function()
  fails({ "add", "CPU", other, "hint" }, function() return a + b end)
  fails({ "matmul", other, "CPU" }, function() return b:matmul(a.T) end)
  fails({ "concat", other, "CPU" }, function() return ops.concat { a, b } end)
  equal((b + 1).device, other)
end)

test("writing by index and in place", function()
  local x = b:copy()
  x[{ 0, 1 }] = 20
  x["1:2"] = ms.tensor { { 7, 8, 9 } }
  equal(x:tolist(), { { 1.0, 20.0, 3.0 }, { 7.0, 8.0, 9.0 } })
  x:mul_(2)
  equal(x.device, other)
  equal(x[0]:tolist(), { 2.0, 40.0, 6.0 })
  x:zero_()
  equal(x.device .. x:sum():item(), other .. "0.0")
  equal(b:tolist(), a:tolist())
  local p = ms.Parameter(b, "p")
  ops.assign_add(p, b)
  p:set_data(p * 2)
  equal(p.device, other)
  equal(p:tolist(), (a * 4):tolist())
end)

test("gradients are on the device of what they are by", function()
  local function f(x) return (ops.tanh(x) * x):sum() end
  local g = ms.grad(f)
  equal(g(b).device, other)
  equal(g(b):to("CPU"), g(a))
  local h = ms.grad(function(x) return (x:to(other) * b):sum() end)
  equal(h(a).device, "CPU")
  equal(h(a), a)
  for _, k in ipairs {
    function(x) return ops.softmax(x, 1)[0]:sum() end, function(x) return ops.gather(x, ms.tensor({ 1, 1 }):to(x.device), 0):sum() end,
    function(x) return (x:max(1)):sum() end,
    function(x) return ops.layer_norm(x, { 3 }, ops.ones_like(x[0]), ops.zeros_like(x[0])):sum() end,
    function(x) return x[0][1] * 3 end, function(x) return ops.concat({ x, x * 2 }, 0):prod() end,
  } do
    equal(ms.grad(k)(b).device, other)
    equal(ms.grad(k)(b):to("CPU"), ms.grad(k)(a))
  end
end)

test("a cell moves with its parameters, and trains there", function()
  ms.set_seed(3)
  local net = nn.Dense(3, 2)
  local before = net.weight:tolist()
  equal(rawequal(net:to(other), net), true)
  equal(net.weight.device .. net.bias.device, other .. other)
  equal(net.weight:tolist(), before)
  equal(ms.is_parameter(net.weight), true)
  local optimizer = nn.Adam(net:trainable_params(), 0.1)
  local step = ms.value_and_grad(function(x) return (net(x) ^ 2):sum() end, nil, optimizer.parameters)
  local first = step(b)
  for _ = 1, 20 do
    local _, grads = step(b)
    optimizer(grads)
  end
  equal(net.weight.device, other)
  equal(step(b) < first, true)
end)

test("new tensors are on the current device", function()
  ms.set_device(other)
  equal(ms.get_context("device_target"), other)
  local made = { ms.tensor { 1, 2 }, ops.ones { 2 }, ops.arange(3), ms.rand { 3 }, ms.tensor(1) }
  for _, x in ipairs(made) do equal(x.device, other) end
  ms.set_context { device_target = "CPU" }
  equal(ms.tensor({ 1 }).device, "CPU")
end)

test("random numbers are the same bits on both", function()
  local function draw(device)
    ms.set_device(device)
    ms.set_seed(11)
    local drawn = { ms.rand { 5 }, ms.randn { 5 }, ops.randint(0, 100, { 5 }), ops.dropout(ops.ones { 16 }, 0.5), ops.randperm(9) }
    ms.set_device "CPU"
    for i, x in ipairs(drawn) do drawn[i] = x:tolist() end
    return drawn
  end
  equal(draw(other), draw "CPU")
end)

test("an operator without a kernel runs on the host, is counted, and may be refused", function()
  ms.runtime.forget_fallbacks()
  equal(b:cumsum(1):to("CPU"), a:cumsum(1))
  equal(b:cumsum(1).device, other)
  local list = ms.runtime.fallbacks()
  equal({ #list, list[1].operator, list[1].device, list[1].calls, list[1].bytes }, { 1, "cumsum", other, 2, 96 })
  ms.set_context { device_fallback = false }
  fails({ "cumsum", "no kernel", other, "device_fallback" }, function() return b:cumsum(1) end)
  ms.set_context { device_fallback = true }
  ms.runtime.forget_fallbacks()
end)

test("what an operator without a kernel writes into operands is written on the device", function()
  local function trained(device)
    local p = ms.Parameter(a:to(device), "p")
    local optimizer = nn.Lamb({ p }, 0.1)
    for _ = 1, 3 do optimizer { p * 0.5 + 1 } end
    equal(p.device, device)
    return p:tolist()
  end
  equal(trained(other), trained "CPU")
  equal(ms.runtime.fallbacks()[1].operator, "apply_lamb")
  ms.runtime.forget_fallbacks()
end)

test("errors name the operator and the line, and the session goes on", function()
  local ok, message = pcall(function() return ops.gather(b, ms.tensor({ 5 }):to(other), 0) end)
  equal(ok, false)
  equal(message:match "devices_test.lua:%d+: gather" ~= nil, true)
  for _ = 1, 2 do fails("bitwise_and", function() return ops.bitwise_and(b, b) end) end
  equal((b + b)[0]:tolist(), { 2.0, 4.0, 6.0 })
end)

test("memory is counted", function()
  collectgarbage()
  local before = ms.runtime.memory_allocated(other)
  ms.runtime.reset_peak_memory_stats(other)
  local x = ms.tensor({ 1 }):to(other):broadcast_to({ 1 << 20 }):contiguous()
  equal(ms.runtime.memory_allocated(other) - before >= 4 << 20, true)
  x:release()
  collectgarbage()
  equal(ms.runtime.memory_allocated(other) - before < 4 << 20, true)
  equal(ms.runtime.max_memory_allocated(other) - before >= 4 << 20, true)
  ms.runtime.empty_cache(other)
end)

test("a thousand steps take no more memory than ten", function()
  local x = b
  local function steps(n)
    for _ = 1, n do x = ops.tanh(x + b) end
  end
  -- Asked for when no step runs: a compiled function holds what it has read until it ends.
  local function taken()
    ms.synchronize(other)
    collectgarbage()
    return ms.runtime.memory_allocated(other)
  end
  steps(10)
  local few = taken()
  steps(1000)
  equal(taken() <= few, true)
end)

test("work is asynchronous, and events tell when it is done", function()
  local first, last = ms.runtime.Event { device = other }, ms.runtime.Event { device = other }
  first:record()
  local y = b:matmul(b.T)
  for _ = 1, 20 do y = ops.tanh(y) end
  last:record()
  equal(last:query() or true, true)
  equal(first:elapsed_time(last) >= 0, true)
  equal(last:query(), true)
  ms.synchronize(other)
  fails("recorded", function() return ms.runtime.Event():elapsed_time(first) end)
end)

test("wrong names of devices", function()
  fails({ "Quantum", "CPU", other }, ms.set_device, "Quantum")
  fails({ "Quantum", "CPU", other }, ms.set_context, { device_target = "Quantum" })
  fails("device_id must be 0", ms.set_device, other, 1)
  fails("Quantum", nn.Dense(1, 1).to, nn.Dense(1, 1), "Quantum")
  fails("Quantum", a.to, a, "Quantum")
end)

test("data stays on the host until it is given away", function()
  ms.set_device(other)
  local rows = {}
  local data = ms.dataset.NumpySlicesDataset({ x = { { 1, 2 }, { 3, 4 } } }, { shuffle = false })
    :map(function(x) return x * 2 + ops.ones { 2 } end, { "x" }):batch(2)
  for row in data:create_dict_iterator() do rows[#rows + 1] = row.x end
  ms.set_device "CPU"
  equal(rows[1].device, other)
  equal(rows[1]:tolist(), { { 3, 5 }, { 7, 9 } })
end)

test("profiles and reports name what ran on the host", function()
  local p = ms.profile(function(x) return x:cumsum(1) + 1 end, b)
  equal({ p.fallbacks[1].operator, p.fallbacks[1].calls }, { "cumsum", 1 })
  equal(tostring(p):find("cumsum has no kernel on the device " .. other, 1, true) ~= nil, true)
  equal(#ms.profile(function(x) return x + 1 end, b).fallbacks, 0)
  ms.set_device(other)
  local f = ms.jit(function(x) return (x * 2):cumsum(1) + 1 end)
  for _ = 1, 4 do f(b) end
  ms.set_device "CPU"
  equal(f:report().on_host.cumsum, 1)
  equal(tostring(f:report()):find("run on the host, for want of a kernel: cumsum 1", 1, true) ~= nil, true)
  ms.runtime.forget_fallbacks()
end)

test("compiled functions run where their operands are", function()
  local function net(x) return (ops.softmax(x:matmul(x.T) * 0.1, 1) + ops.relu(x)["0:2, 0:2"]):sum(1) end
  local f, g = ms.jit(net), ms.jit(ms.grad(function(x) return net(x):sum() end))
  local expected, slope = net(a), ms.grad(function(x) return net(x):sum() end)(a)
  for round = 1, 3 do
    for _, device in ipairs { "CPU", other } do
      ms.set_device(device)
      for _, x in ipairs { a, b } do
        for _ = 1, 3 do
          equal(f(x).device, x.device)
          t.near(f(x):to "CPU", expected, 1e-6)
          t.near(g(x):to "CPU", slope, 1e-6)
        end
      end
    end
    equal(f:report().graphs > 0 or round, true)
  end
  ms.set_device "CPU"
end)

t.finish()
