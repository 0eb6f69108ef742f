-- Memory in loops: the collector keeps pace with tensors, which Lua does not see.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local function resident_mb()
  for line in io.lines("/proc/self/status") do
    local kb = line:match("VmRSS:%s+(%d+)")
    if kb then return tonumber(kb) / 1024 end
  end
end

-- Sanitizers keep freed memory for a while, arrays too, and count it.
local slack = os.getenv("ASAN_OPTIONS") and 1000 or 0

t.test("temporaries of 1 MB stay under 100 MB", function()
  local x, y = ms.ops.ones({ 512, 512 }, ms.float32), nil
  for _ = 1, 2000 do y = x:copy() end
  assert(y)
  assert(resident_mb() < 100 + slack, resident_mb())
end)

t.test("tables that outlive some tensors go when they are dead", function()
  -- A ring of tables: each is old in the collector's eyes when it dies, because large tensors ask for young collections all the time.
  collectgarbage()
  local before, ring = collectgarbage "count", {}
  for i = 1, 4000 do
    local held = {}
    for k = 1, 20 do held[k] = { k } end
    ring[i % 4] = held
    held.tensor = ms.ops.ones { 1 << 18 }
  end
  local grown = collectgarbage "count" - before
  assert(ring[0] and grown < 4000, grown)
end)

t.test("results of compiled functions and gradients make way for the next ones", function()
  local function chain(x) return ms.ops.sum(ms.ops.abs(x) * 2 + 1) end
  local x = ms.ops.ones { 16384 }
  local kinds = {
    ["compiled function"] = ms.jit(function(v) return ms.ops.abs(v) * 2 + 1 end),
    gradient = ms.grad(chain),
    ["compiled gradient"] = ms.jit(ms.grad(chain)),
  }
  for name, f in pairs(kinds) do
    for _ = 1, 50 do f(x) end
    collectgarbage()
    ms.reset_peak_memory_stats()
    local before = ms.memory_stats().live_bytes
    for _ = 1, 1000 do f(x) end
    local grown = ms.memory_stats().peak_bytes - before
    assert(grown < 4e6, name .. ": " .. grown)
  end
end)

t.test("small operations keep memory flat", function()
  local x, y = ms.tensor { 1.0, 2.0, 3.0, 4.0 }, nil
  local function loop() for _ = 1, 300000 do y = x + x end end
  -- Graph mode makes up its mind about the function at the third call.
  for _ = 1, 3 do loop() end
  local before = resident_mb()
  for _ = 1, 3 do loop() end
  assert(y and resident_mb() - before < 5 + slack, resident_mb() - before)
end)

t.test("small operations keep memory flat beside many live tables", function()
  local live = {}
  for i = 1, 300000 do live[i] = { i } end
  local x, y = ms.tensor { 1.0, 2.0, 3.0, 4.0 }, nil
  local function loop() for _ = 1, 300000 do y = x + x end end
  -- Graph mode makes up its mind about the function at the third call.
  for _ = 1, 3 do loop() end
  local before = resident_mb()
  for _ = 1, 3 do loop() end
  assert(y and #live == 300000 and resident_mb() - before < 10 + slack, resident_mb() - before)
end)

t.test("tensors that live for a while and are replaced are freed", function()
  local x, ring = ms.ops.ones({ 512, 512 }, ms.float32), {}
  local before = resident_mb()
  for i = 1, 1500 do ring[i % 10] = x:copy() end
  assert(#ring == 9 and resident_mb() - before < 150 + slack, resident_mb() - before)
end)

t.test("asking for more than there is raises an error and the program goes on", function()
  t.fails("memory", ms.ops.zeros, { 1 << 38 })
  t.equal((ms.tensor { 1.0 } + 1):tolist(), { 2 })
end)

t.test("tensors in cycles, weak tables and closed states are freed", function()
  local weak = setmetatable({}, { __mode = "v" })
  do
    local a, b = { ms.tensor { 1 } }, {}
    a.b, b.a = b, a
    weak[1], weak[2] = a, a[1]
  end
  collectgarbage()
  collectgarbage()
  t.equal({ weak[1], weak[2] }, {})
end)

t.test("functions that are made, differentiated and dropped leave nothing behind", function()
  local function differentiate(from, to)
    for i = from, to do
      local f = load(("return function(x) for i = 1, 3 do x = x * i + %d end return x end"):format(i))()
      t.equal(ms.grad(f)(2.0), 6.0)
    end
  end
  differentiate(1, 1500)
  collectgarbage()
  local before = resident_mb()
  differentiate(1501, 4000)
  collectgarbage()
  assert(resident_mb() - before < 10 + slack, resident_mb() - before)
end)

-- Runs f often, with a tensor of a megabyte in hand; nothing of it may be left.
local function leaves_nothing(f, times)
  local x = ms.ops.ones({ 1 << 18 }, ms.float32)
  local function live()
    collectgarbage()
    collectgarbage()
    return ms.memory_stats().live_bytes
  end
  for _ = 1, 5 do f(x) end -- in graph mode it is compiled by then and keeps the memory of its plan
  local before, kilobytes = live(), collectgarbage("count")
  for _ = 1, times do f(x) end
  t.equal(live(), before)
  assert(collectgarbage("count") - kilobytes < 20 + slack, collectgarbage("count") - kilobytes)
end

t.test("local functions that call each other are freed", function()
  leaves_nothing(ms.grad(function(x)
    local z, odd = x * 2, nil
    local function even(n) return n == 0 and z or odd(n - 1) end
    function odd(n) return n == 0 and x or even(n - 1) end
    return ms.ops.sum(even(4))
  end), 20)
end)

t.test("tables and functions made by a differentiated function that hold each other are freed", function()
  local finished = 0
  leaves_nothing(ms.grad(function(x)
    local object = { value = x * 2 }
    local class = setmetatable({}, { __gc = function() finished = finished + object.value.ndim end })
    class.__index = class
    function object.double() return object.value * 2 end
    function class:get() return object.double() + self.offset end
    return ms.ops.sum(setmetatable({ offset = 1.0, class = class }, class):get())
  end), 20)
  assert(finished >= 20, finished)
end)

t.test("what is still in use survives a collection of circles", function()
  local kept = {}
  local function f(x)
    local object, calls = { value = x }, 0
    function object.scale(y)
      calls = calls + 1
      return object.value * y * calls
    end
    kept[#kept + 1] = object.scale
    return object.scale(3.0)
  end
  for i = 1, 50 do t.equal(ms.grad(f)(i * 1.0), 3.0) end
  for round = 2, 3 do
    collectgarbage()
    for i = 1, 50 do t.equal(kept[i](2.0), i * 2.0 * round) end
  end
end)

t.finish()
