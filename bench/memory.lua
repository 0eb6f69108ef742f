-- Run by memory.py, one mode per process; prints "name value" lines.
--   temporaries N     N results of 1 MB, each garbage at once
--   small N TABLES    N additions of 4 elements in 20 blocks, beside TABLES live tables
local ms = require "lunaria"

local function status(field)
  for line in io.lines("/proc/self/status") do
    local kilobytes = line:match("^" .. field .. ":%s*(%d+)")
    if kilobytes then return tonumber(kilobytes) / 1024 end
  end
end

local modes = {}

function modes.temporaries(count)
  local x = ms.ops.randn({ 256, 1024 })
  local start = ms.clock()
  for _ = 1, count do local _ = x + 1 end
  print("peak_mb", status("VmHWM"))
  print("us_per_call", (ms.clock() - start) / count / 1e3)
end

function modes.small(count, tables)
  local live = {}
  for i = 1, tables do live[i] = { i } end
  local a, b = ms.ops.randn({ 4 }), ms.ops.randn({ 4 })
  for _ = 1, 100000 do local _ = a + b end
  local before = status("VmRSS")
  local blocks = 20
  for _ = 1, blocks do
    local start = ms.clock()
    for _ = 1, count // blocks do local _ = a + b end
    print("ns", (ms.clock() - start) / (count // blocks))
  end
  print("growth_mb", status("VmHWM") - before)
  print("live", #live)
end

modes[arg[1]](math.tointeger(arg[2]), math.tointeger(arg[3] or 0))
