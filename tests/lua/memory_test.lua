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

-- Sanitizers keep freed memory for a while and count it.
local slack = os.getenv("ASAN_OPTIONS") and 600 or 0

t.test("temporaries of 1 MB stay under 100 MB", function()
  local x, y = ms.ops.ones({ 512, 512 }, ms.float32), nil
  for _ = 1, 2000 do y = x:copy() end
  assert(y)
  assert(resident_mb() < 100 + slack, resident_mb())
end)

t.test("small operations keep memory flat", function()
  local x, y = ms.tensor { 1.0, 2.0, 3.0, 4.0 }, nil
  local function loop() for _ = 1, 300000 do y = x + x end end
  loop()
  local before = resident_mb()
  for _ = 1, 3 do loop() end
  assert(y and resident_mb() - before < 5 + slack, resident_mb() - before)
end)

t.test("small operations keep memory flat beside many live tables", function()
  local live = {}
  for i = 1, 300000 do live[i] = { i } end
  local x, y = ms.tensor { 1.0, 2.0, 3.0, 4.0 }, nil
  local function loop() for _ = 1, 300000 do y = x + x end end
  loop()
  local before = resident_mb()
  for _ = 1, 3 do loop() end
  assert(y and #live == 300000 and resident_mb() - before < 10 + slack, resident_mb() - before)
end)

t.test("tensors that live for a while and are replaced are freed", function()
  local x, ring = ms.ops.ones({ 512, 512 }, ms.float32), {}
  for i = 1, 1500 do ring[i % 10] = x:copy() end
  assert(#ring == 9 and resident_mb() < 250 + slack, resident_mb())
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

t.finish()
