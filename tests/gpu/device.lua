-- The GPU behind a mock of its driver (driver/mock.h): memory, copies, failures.
--   usage: device.lua [eager | graph]
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local mock = require "mock_control"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local equal, fails = t.equal, t.fails
local test = t.test

ms.set_context { mode = arg[1] == "graph" and ms.GRAPH_MODE or ms.PYNATIVE_MODE, device_target = "GPU" }
local out_of_memory, illegal_address = 2, 700

local function on_gpu(x) return x:to "GPU" end

test("elements come back as they went, of every size", function()
  for _, n in ipairs { 1, 3, 1000, 300000, 3000001 } do
    local x = ms.ops.arange(0, n, 1, { dtype = ms.float32 }):to "CPU"
    equal(x.device, "CPU")
    local y = on_gpu(x)
    equal(y.device, "GPU")
    equal(ops.equal(y:to "CPU", x):all():item(), true)
  end
end)

test("many small tensors travel before anything is read", function()
  local all = {}
  for i = 1, 20000 do all[i] = ms.tensor { i, i + 0.5 } end
  for i = 1, 20000, 997 do equal(all[i]:tolist(), { i + 0.0, i + 0.5 }) end
end)

test("strided tensors are copied, written and converted", function()
  local a = ms.tensor({ { 1, 2, 3 }, { 4, 5, 6.5 } }):to "CPU"
  local b = on_gpu(a)
  equal(b.T:contiguous():tolist(), a.T:tolist())
  equal(b["0:2, ::2"]:tolist(), { { 1.0, 3.0 }, { 4.0, 6.5 } })
  equal(b.T:astype(ms.int32):tolist(), { { 1, 4 }, { 2, 5 }, { 3, 6 } })
  local c = b:copy()
  c[{ 0, 1 }] = 20
  c["0:2, 2:3"] = ms.tensor { { 8 }, { 9 } }
  equal(c:tolist(), { { 1.0, 20.0, 8.0 }, { 4.0, 5.0, 9.0 } })
  equal(b:tolist(), a:tolist())
  local d = b:copy()
  d["0:2, ::2"] = ms.tensor { { 7, 8 }, { 9, 10 } }
  equal(d:tolist(), { { 7.0, 2.0, 8.0 }, { 9.0, 5.0, 10.0 } })
end)

test("memory is counted, reused and given back", function()
  collectgarbage()
  ms.runtime.empty_cache "GPU"
  local before = ms.runtime.memory_allocated "GPU"
  local x = ops.zeros { 1 << 20 }
  equal(ms.runtime.memory_allocated "GPU" - before, 4 << 20)
  x:release()
  equal(ms.runtime.memory_allocated "GPU", before)
  local calls = mock.calls "cuMemAlloc_v2"
  for _ = 1, 100 do ops.zeros({ 1 << 20 }):release() end
  equal(mock.calls "cuMemAlloc_v2", calls)
  local reserved = mock.alive "memory"
  ms.runtime.empty_cache "GPU"
  equal(mock.alive "memory" < reserved, true)
  equal(ms.runtime.max_memory_allocated "GPU" - before >= 4 << 20, true)
end)

local function small_net()
  ms.set_seed(3)
  local net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 3))
  local loss = nn.CrossEntropyLoss()
  local optimizer = nn.Adam(net:trainable_params(), 0.01)
  local step = ms.value_and_grad(function(x, y) return loss(net(x), y) end, nil, optimizer.parameters)
  return function(x, y)
    local value, grads = step(x, y)
    optimizer(grads)
    return value:item()
  end
end

local function data()
  ms.set_seed(5)
  return ops.randn { 12, 8 }, ms.tensor({ 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2 }, ms.int32)
end

local function losses(device, n)
  ms.set_device(device)
  local list, train, x, y = {}, small_net(), data()
  for i = 1, n do list[i] = train(x, y) end
  ms.set_device "GPU"
  return list
end

test("a net trains to the same losses as on the host", function()
  local here, there = losses("CPU", 8), losses("GPU", 8)
  for i = 1, 8 do equal(math.abs(here[i] - there[i]) < 1e-5, true) end
end)

test("a thousand steps take no more memory, events or modules than ten", function()
  local train, x, y = small_net(), data()
  local function taken(n)
    for _ = 1, n do train(x, y) end
    ms.synchronize "GPU"
    collectgarbage()
    collectgarbage()
    return { ms.runtime.memory_allocated "GPU", mock.alive "memory", mock.alive "events", mock.alive "streams", mock.alive "modules" }
  end
  local few = taken(10)
  local many = taken(os.getenv "LUNARIA_MOCK_ORDER" == "soon" and 100 or 1000)
  for i = 1, #few do
    if many[i] > few[i] then error(("number %d: %d after 1,000 steps, %d after 10"):format(i, many[i], few[i])) end
  end
end)

test("events tell when work is done", function()
  local first, last = ms.runtime.Event { device = "GPU" }, ms.runtime.Event { device = "GPU" }
  first:record()
  local y = ops.ones { 3 } + 1
  last:record()
  last:synchronize()
  equal(last:query(), true)
  equal(first:elapsed_time(last) >= 0, true)
  equal(y:tolist(), { 2.0, 2.0, 2.0 })
  local events = mock.alive "events"
  for _ = 1, 100 do
    first:record()
    first:synchronize()
    first:query()
  end
  equal(mock.alive "events" <= events + 1, true)
end)

test("out of memory is an error, after the cache and the garbage have been given back", function()
  local x = ops.ones { 1000 }
  mock.fail("cuMemAlloc_v2", 1, out_of_memory)
  equal(ops.zeros({ 8 << 20 }).device, "GPU")
  fails({ "out of device memory", "bytes are asked for", "are free" }, function() return ops.zeros { 1 << 36 } end)
  local ok, message = pcall(function() return ops.zeros { 1 << 36 } end)
  equal(ok, false)
  equal(message:match "device.lua:%d+: " ~= nil, true)
  equal((x + 1)[0]:item(), 2.0)
end)

test("out of memory while an operand is copied is told with the operator", function()
  collectgarbage()
  ms.runtime.empty_cache "GPU"
  local x = ops.ones { 3000, 1000 }
  ms.synchronize "GPU"
  mock.limit(14 << 20)
  local ok, message = pcall(function() return ops.cumsum(x.T, 0) end)
  mock.limit(1 << 32)
  equal(ok, false)
  if not message:match "device.lua:%d+: cumsum: GPU is out of device memory" then error(message) end
  equal(ops.cumsum(x.T, 0)[{ 2, 5 }]:item(), 3.0)
end)

test("a lost context is an error; what was there is lost and the session goes on", function()
  local x = ops.ones { 1000 }
  equal(x[0]:item(), 1.0)
  mock.fail("cuStreamSynchronize", 1, illegal_address)
  fails({ "the device failed", "CUDA_ERROR_ILLEGAL_ADDRESS", "hint" }, ms.synchronize, "GPU")
  fails({ "lost when the device failed", "hint" }, function() return x:to "CPU" end)
  local y = ops.ones { 1000 }
  equal((y + y):sum():item(), 2000.0)
  x:release()
  collectgarbage()
  equal(#losses("GPU", 2), 2)
end)

test("what fails in a kernel is told with the operator and its line", function()
  local x = ops.ones { 5000 } + 1
  x:to "CPU"
  mock.fail("kernel", 1, illegal_address)
  local line = debug.getinfo(1, "l").currentline + 1
  local y = ops.tanh(x)
  local ok, message = pcall(function() return y:to "CPU" end)
  equal(ok, false)
  for _, part in ipairs { "device.lua:" .. line .. ": tanh: the device failed", "CUDA_ERROR_ILLEGAL_ADDRESS" } do
    if not message:find(part, 1, true) then error(part .. " is not in " .. message) end
  end
  x = ops.ones { 5000 } + 1
  mock.fail("kernel", 2, illegal_address)
  ok, message = pcall(function() return ops.exp(ops.tanh(x) * 2):to "CPU" end)
  equal({ ok, message:find("tanh at ", 1, true) ~= nil, message:find("mul at ", 1, true) ~= nil }, { false, true, true })
  equal((ops.ones { 3 } + 1):tolist(), { 2.0, 2.0, 2.0 })
end)

test("the driver was used as it is to be used", function() equal(mock.blamed(), "") end)

t.finish()
