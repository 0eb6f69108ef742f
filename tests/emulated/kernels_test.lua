-- Generated kernels of processors with threads in blocks, run by the tests' device: that they run at all, in compiled
-- functions and by operators alone, and give what the CPU gives.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops
local test, equal = t.test, t.equal

local other = "Emulated"

if arg[1] == "eager" then
  local x = ms.tensor({ 1, 2, 3 }):to(other)
  for _ = 1, 5 do x = ops.tanh(x) * 2 end
  print(x:sum():item() > 0)
  os.exit(0, true)
end

test("operators alone run by generated kernels", function()
  local pipe = io.popen(("LUNARIA_EMULATED=1 %s %s eager 2>&1"):format(arg[-1], arg[0]))
  local text = pipe:read "a"
  pipe:close()
  equal(text:match "emulated: (%d+) calls", "11")
  equal(text:match "(%d+) left to others", "0")
end)

local function block(x, w) return ops.layer_norm(ops.softmax(x * w, -1) + ops.tanh(x), { x.shape[x.ndim] }, w, w * 0.5) end

for _, size in ipairs { { 3, 7 }, { 2, 5, 64 }, { 4, 1500 }, { 3000, 20 }, { 1, 1 } } do
  test("compiled functions of " .. table.concat(size, " x ") .. " elements", function()
    ms.set_seed(3)
    local x, w = ms.randn(size), ms.randn { size[#size] }
    local function f(a, b) return block(a, b):sum(0) + ops.exp(-a * a):mean() end
    local slope = ms.jit(ms.grad(function(a, b) return (f(a, b) * 0.1):sum() end, { 0, 1 }))
    local there = ms.jit(f)
    local slopes = ms.grad(function(a, b) return (f(a, b) * 0.1):sum() end, { 0, 1 })(x, w)
    for _ = 1, 3 do
      local y = there(x:to(other), w:to(other))
      equal(y.device, other)
      t.near(y:to "CPU", f(x, w), 2e-5)
      local found = slope(x:to(other), w:to(other))
      t.near(found[1]:to "CPU", slopes[1], 2e-4)
      t.near(found[2]:to "CPU", slopes[2], 2e-4)
    end
    equal(there:report().graphs > 0, true)
  end)
end

-- Points of windows, written one by one and as loops.
test("compiled rules for indices", function()
  ms.set_seed(4)
  local blur = ms.op { name = "blur_of_kernels_test", inputs = { "x[i + p, j + q]", "w[p, q]" }, output = "i, j", reduce = "sum",
    expr = function(x, w) return x * w end }
  local largest = ms.op { name = "largest_of_kernels_test", inputs = { "x[i, 2*j + p]" }, output = "i, j", reduce = "max",
    sizes = { p = 3 }, expr = function(x) return x * x end }
  for _, size in ipairs { { 20, 70, 7, 6 }, { 20, 64, 3, 3 }, { 9, 33, 2, 2 } } do
    local x, w = ops.randn { size[1], size[2] }, ops.randn { size[3], size[4] }
    local function f(a, b) return ops.tanh(blur(a, b)) * 2, largest(a) end
    local there, y, z = ms.jit(f), f(x, w)
    for _ = 1, 3 do
      local mine, other_one = there(x:to(other), w:to(other))
      equal(mine.device, other)
      t.near(mine:to "CPU", y, 1e-5)
      t.near(other_one:to "CPU", z, 1e-6)
    end
    equal(there:report().graphs > 0, true)
  end
end)

test("operators without a generated kernel are left to the host, and counted", function()
  ms.runtime.forget_fallbacks()
  local x = ms.tensor({ 3, 1, 2 }):to(other)
  equal(ops.sort(x):tolist(), { 1, 2, 3 })
  equal(x:cumsum(0):tolist(), { 3, 4, 6 })
  local counted = {}
  for _, f in ipairs(ms.runtime.fallbacks()) do counted[f.operator] = f.calls end
  equal(counted, { sort = 1, cumsum = 1 })
end)

t.finish()
