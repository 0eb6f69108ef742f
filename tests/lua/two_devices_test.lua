-- Two devices in one program: data on the host, a network on the test device, tensors that change places inside of functions,
-- compiled and differentiated.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local test, equal, near, fails = t.test, t.equal, t.near, t.fails

local other = "Separate"
local a = ms.tensor { { 1, 2, 3 }, { 4, 5, 6.5 } }
local b = a:to(other)

local function there(x) return ((x:to(other) * b):tanh() + x:to(other) * 0.5):sum() end
local function here(x) return ((x * a):tanh() + x * 0.5):sum() end

test("a function that takes its argument elsewhere, compiled", function()
  local f = ms.jit(there)
  for _ = 1, 4 do
    equal(f(a).device, other)
    near(f(a):to "CPU", here(a), 1e-5)
  end
  equal(f:report().graphs > 0, true)
end)

test("its gradient is where the argument is", function()
  local expected = ms.grad(here)(a)
  local compiled = ms.jit(ms.grad(there))
  for _, slope in ipairs { ms.grad(there), compiled, compiled, compiled } do
    local d = slope(a)
    equal(d.device, "CPU")
    near(d, expected, 1e-5)
  end
  equal(compiled:report().graphs > 0, true)
end)

test("there and back", function()
  local function f(x) return (x:to(other) * 2):to "CPU" + 1 end
  local compiled = ms.jit(f)
  for _ = 1, 4 do
    equal(compiled(a), a * 2 + 1)
    equal(compiled(a).device, "CPU")
  end
  equal(ms.grad(function(x) return (f(x) * x):sum() end)(a):tolist(), (a * 4 + 1):tolist())
end)

test("vmap takes samples along", function()
  local function f(x) return x:to(other) * 3 + 1 end
  local each = ms.vmap(f)
  local compiled = ms.jit(each)
  for _, g in ipairs { each, compiled, compiled, compiled } do
    equal(g(a).device, other)
    equal(g(a):to "CPU", a * 3 + 1)
  end
  near(ms.vmap(ms.grad(function(x) return (x:to(other) ^ 2):sum() end))(a), a * 2, 1e-5)
end)

test("a saved function changes places as the one that was saved", function()
  local file = os.tmpname()
  ms.export(function(x) return (x:to(other) * 2):to "CPU" + 1 end, a, { file_name = file, file_format = "MINDIR" })
  local again = nn.GraphCell(ms.load(file .. ".mindir"))
  equal(again(a), a * 2 + 1)
  os.remove(file)
  os.remove(file .. ".mindir")
end)

test("tensors that a function makes for its operands are where these are", function()
  local function f(x) return x * ops.ones_like(x) + ops.zeros_like(x) + x:new_full({ 3 }, 2) + ops.full_like(x, 1.0) end
  local compiled = ms.jit(f)
  for _ = 1, 3 do
    equal(compiled(b).device, other)
    equal(compiled(b):to "CPU", f(a))
  end
  for _, g in ipairs {
    function(x) return ops.where(x:greater(2), x, 0.0):sum() end, function(x) return ops.clamp(x, 2, 5):sum() end,
    function(x) return x["0:1"]:sum() end, function(x) return ops.pad(x, { 1, 1 }):prod() end,
    function(x) return ops.cumsum(x, 1):max() end, function(x) return ops.log_softmax(x, 1)[0][1] end,
  } do
    local slope = ms.jit(ms.grad(g))
    for _ = 1, 3 do
      equal(slope(b).device, other)
      near(slope(b):to "CPU", ms.grad(g)(a), 1e-5)
    end
  end
  ms.runtime.forget_fallbacks()
end)

-- A network on a device, fed by batches in host memory.
local function trained(device, mode)
  ms.set_context { mode = mode }
  ms.set_seed(5)
  local net = nn.SequentialCell { nn.Dense(3, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout { p = 0.25 }, nn.Dense(8, 2) }
  net:to(device)
  net:set_train(true)
  -- Not Adam, which makes steps of rounding: a bias before a normalisation has no gradient.
  local optimizer = nn.Momentum(net:trainable_params(), 0.05, 0.9)
  local loss = nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" }
  local step = ms.value_and_grad(function(x, y) return loss(net(x:to(device)), y:to(device)) end, nil, optimizer.parameters)
  local losses = {}
  for i = 1, 6 do
    local value, grads = step(ms.randn { 4, 3 }, ms.tensor({ 0, 1, 1, 0 }, ms.int32))
    optimizer(grads)
    losses[i] = value:item()
  end
  for _, p in ipairs(net:get_parameters()) do
    equal(p.device, device)
    losses[#losses + 1] = p:sum():item()
  end
  ms.set_context { mode = ms.PYNATIVE_MODE }
  return ms.tensor(losses)
end

test("a network on a device is trained with data of the host, without anything left to the host", function()
  local expected = trained("CPU", ms.PYNATIVE_MODE)
  ms.runtime.forget_fallbacks()
  near(trained(other, ms.PYNATIVE_MODE), expected, 2e-4)
  near(trained(other, ms.GRAPH_MODE), expected, 2e-4)
  equal(#ms.runtime.fallbacks(), 0)
end)

test("operands on two devices are an error in compiled code, too", function()
  local f = ms.jit(function(x) return x * 2 + b end)
  equal(f(b):to "CPU", a * 3)
  for _ = 1, 3 do fails({ "CPU", other, "two_devices_test.lua" }, f, a) end
  equal(f(b):to "CPU", a * 3)
end)

t.finish()
