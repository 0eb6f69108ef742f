-- Runs of compiled functions as graphs of the driver's, on the GPU behind its mock.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local mock = require "mock_control"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local equal = t.equal

ms.set_context { device_target = "GPU" }
ms.set_seed(1)

-- Steps that no loop joins.
local function chain(x)
  for _ = 1, 3 do x = ops.cumsum(ops.tanh(x), 0) / x:sum() end
  return x
end
local function cpu(x) return x:to "CPU" end
local function same(a, b)
  local distance = (cpu(a) - cpu(b)):abs():max():item()
  if not (distance < 1e-5) then error("differs by " .. distance) end
end

-- Calls of the driver while f runs.
local function calls(f, name)
  local before = mock.calls(name)
  f()
  return mock.calls(name) - before
end

t.test("a call that is like the last one is one launch", function()
  local f, x = ms.jit(chain), ops.rand { 40 } + 1
  for _ = 1, 4 do f(x) end
  ms.synchronize "GPU"
  local kernels = mock.calls "kernels"
  local y
  equal({ calls(function() y = f(x) end, "cuGraphLaunch"), calls(function() f(x) end, "cuLaunchKernel") }, { 1, 0 })
  ms.synchronize "GPU"
  equal(mock.calls "kernels" - kernels > 10, true)
  same(y, chain(cpu(x)))
end)

t.test("other tensors only change what kernels are passed", function()
  local f = ms.jit(chain)
  local kept = {}
  for i = 1, 8 do
    local x = ops.rand { 40 } + i
    kept[i] = { x, f(x) }
    if i == 4 then kept.ready = mock.calls "cuGraphInstantiate" end
  end
  for i = 1, 8 do same(kept[i][2], chain(cpu(kept[i][1]))) end
  equal(mock.calls "cuGraphInstantiate", kept.ready)
  equal(mock.calls "cuGraphExecKernelNodeSetParams" > 0, true)
end)

t.test("random numbers are those of the host in every call", function()
  local function f(x) return ops.dropout(ops.cumsum(x, 0), 0.5, true) + ops.dropout(ops.cumsum(x * 2, 0), 0.3, true) end
  local compiled, x = ms.jit(f), ops.rand { 500 } + 1
  local there, here = {}, {}
  ms.set_seed(7)
  for i = 1, 6 do there[i] = compiled(x) end
  ms.set_seed(7)
  for i = 1, 6 do
    here[i] = f(cpu(x))
    equal(ops.equal(there[i]:to "CPU", 0):astype(ms.int32):sum():item(), ops.equal(here[i], 0):astype(ms.int32):sum():item())
    same(there[i] * 1e-3, here[i] * 1e-3)
  end
end)

local function losses(device, compiled)
  ms.set_device(device)
  ms.set_seed(3)
  local net = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 3))
  local optimizer = nn.Adam(net:trainable_params(), nn.CosineDecayLR(0.001, 0.01, 20))
  local loss = nn.CrossEntropyLoss()
  local gradient = ms.value_and_grad(function(x, y) return loss(net(x), y) end, nil, optimizer.parameters)
  local x, y = ops.randn { 12, 8 }, ms.tensor({ 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2 }, ms.int32)
  local function step()
    local value, grads = gradient(x, y)
    optimizer(grads)
    return value
  end
  if compiled then step = ms.jit(step) end
  local list, launches = {}, 0
  for i = 1, 12 do
    local before = mock.calls "cuGraphLaunch"
    list[i] = step():item()
    launches = mock.calls "cuGraphLaunch" - before
  end
  ms.set_device "GPU"
  return list, launches
end

t.test("a training step is a launch or two, and learns as on the host", function()
  local here = losses "CPU"
  local there, launches = losses("GPU", true)
  for i = 1, 12 do equal(math.abs(here[i] - there[i]) < 1e-5, true) end
  equal(launches, 1)
end)

t.test("what the driver makes no graph of is done as it comes", function()
  local f, x = ms.jit(chain), ops.rand { 40 } + 1
  for _ = 1, 2 do f(x) end
  mock.fail("cuGraphInstantiate", 1, 801)
  for _ = 1, 4 do same(f(x), chain(cpu(x))) end
  local g = ms.jit(chain)
  for _ = 1, 2 do g(x) end
  mock.fail("cuGraphAddKernelNode", 3, 801)
  for _ = 1, 4 do same(g(x), chain(cpu(x))) end
end)

t.test("an index that is out of range is told by the next call that waits, and everything goes on", function()
  local f = ms.jit(function(x, i) return chain(ops.gather(chain(x), i, 0)) end)
  local x, near, far = ops.rand { 40 } + 1, ms.tensor({ 1, 39 }, ms.int64), ms.tensor({ 1, 40 }, ms.int64)
  for _ = 1, 4 do f(x, near) end
  equal(calls(function() f(x, near) end, "cuMemcpyDtoHAsync_v2"), 0)
  local y = f(x, far)
  t.fails({ "gather: an index of a compiled function was out of range", "LUNARIA_GPU_WAIT=1" }, function() return y:to "CPU" end)
  same(f(x, near), chain(ops.gather(chain(cpu(x)), cpu(near), 0)))
  f(x, far)
  t.fails({ "gather: an index of a compiled function was out of range" }, ms.synchronize, "GPU")
  ms.synchronize "GPU"
end)

t.test("a context that is lost in a graph is an error, and the function goes on with a new one", function()
  local f = ms.jit(chain)
  local x = cpu(ops.rand { 40 }) + 1
  local there = x:to "GPU"
  for _ = 1, 4 do f(there) end
  mock.fail("cuGraphLaunch", 1, 700)
  t.fails({ "the device failed: an illegal memory access", "CUDA_ERROR_ILLEGAL_ADDRESS" }, function() return f(there):to "CPU" end)
  local g = ms.jit(chain)
  there = x:to "GPU"
  for _ = 1, 5 do same(g(there), chain(x)) end
end)

t.test("graphs of functions that are given up are given back", function()
  collectgarbage()
  collectgarbage()
  local before = mock.alive "ready graphs"
  do
    local f, x = ms.jit(function(x) return chain(x) * 3 end), ops.rand { 40 } + 1
    for _ = 1, 4 do f(x) end
    equal(mock.alive "ready graphs" > before, true)
  end
  for _ = 1, 3 do collectgarbage() end
  equal(mock.alive "ready graphs" <= before, true)
  equal(mock.alive "graphs" >= mock.alive "ready graphs", true)
end)

t.test("the driver was used as it is to be used", function() equal(mock.blamed(), "") end)

t.finish()
