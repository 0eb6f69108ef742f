-- A device without memory: an error that names the operator and the line, and a session that goes on. In a process of its
-- own, where the test device is given little.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local test, equal, fails = t.test, t.equal, t.fails

local other = "Separate"

if arg[1] ~= "little" then
  local ok = os.execute(("LUNARIA_SEPARATE_MEMORY=2000000 %s %s little"):format(arg[-1], arg[0]))
  os.exit(ok and true or false, true)
end

local b = ms.ones({ 1000 }):to(other)
local function free()
  collectgarbage()
  ms.synchronize(other)
  return ms.runtime.memory_allocated(other)
end

for name, f in pairs {
  add = function() return b:reshape { 1000, 1 } + b end,
  matmul = function() return b:reshape { 1000, 1 }:matmul(b:reshape { 1, 1000 }) end,
  softmax = function() return ops.softmax(b:broadcast_to { 1000, 1000 }, 1) end,
  tile = function() return ops.tile(b, { 1000 }) end,
} do
  test("the error of " .. name .. " names it, the device and the line", function()
    local before = free()
    for _ = 1, 2 do
      local ok, message = pcall(f)
      equal(ok, false)
      equal(message:match "device_memory_test.lua:%d+: ([%w_]+): Separate is out of device memory" ~= nil, true)
      fails({ "of 2000000 are in use", "hint: use smaller batches" }, f)
    end
    equal(free() - before < 4096, true) -- compiled functions keep a little
    equal((b + 1):sum():item(), 2000.0)
  end)
end

test("a tensor that does not fit is not copied there", function()
  fails({ other, "out of device memory" }, function() return ms.zeros({ 1000, 1000 }):to(other) end)
  fails({ other, "out of device memory" }, function() return nn.Dense(1000, 1000):to(other) end)
  equal((b + 1):sum():item(), 2000.0)
end)

test("compiled functions and gradients", function()
  local function f(x)
    local y = ops.tanh(x:reshape { -1, 1 } + x)
    return (y:matmul(y) * 0.5):sum()
  end
  local compiled, slope = ms.jit(f), ms.jit(ms.grad(f))
  local few = ms.ones({ 20 }):to(other)
  local expected = f(few):item()
  for _ = 1, 4 do
    fails({ "out of device memory", "device_memory_test.lua" }, function() return compiled(b) end)
    fails({ "out of device memory", "device_memory_test.lua" }, function() return slope(b) end)
    fails({ "out of device memory", "device_memory_test.lua" }, function() return ms.grad(f)(b) end)
    t.near(compiled(few), expected, 1e-3)
    equal(slope(few).device, other)
  end
  equal(free() < 1000000, true)
end)

test("a step of training that fails changes nothing, and a smaller one goes on", function()
  ms.set_seed(1)
  local net = nn.Dense(1000, 100):to(other)
  local optimizer = nn.SGD(net:trainable_params(), 0.01)
  local step = ms.value_and_grad(function(x) return (net(x) ^ 2):mean() end, nil, optimizer.parameters)
  local before = net.weight:sum():item()
  fails("out of device memory", function()
    local _, grads = step(ms.ones({ 300, 1000 }):to(other))
    optimizer(grads)
  end)
  equal(net.weight:sum():item(), before)
  local first = step(ms.ones({ 2, 1000 }):to(other)):item()
  for _ = 1, 3 do
    local _, grads = step(ms.ones({ 2, 1000 }):to(other))
    optimizer(grads)
  end
  equal(step(ms.ones({ 2, 1000 }):to(other)):item() < first, true)
end)

test("what the collector can find makes room", function()
  local x = ms.ones({ 100000 }):to(other)
  local sum = 0
  for _ = 1, 200 do sum = ops.exp(x) end
  equal(sum.device, other)
end)

t.finish()
