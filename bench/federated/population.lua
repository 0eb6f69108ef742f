-- lunaria bench/federated/population.lua [DEVICES [ROUNDS]]: a round of DEVICES (10^7) devices at the level of messages, a hundredth of
-- which, and then half, takes part, within 10 seconds and 1 GB; and memory over ROUNDS (10^4) rounds of a smaller population with faults,
-- where the last nine tenths may add 5 %.
local ms = require "lunaria"

local devices, rounds = math.tointeger(tonumber(arg[1] or 10000000)), math.tointeger(tonumber(arg[2] or 10000))
local good = true

-- Megabytes: now (VmRSS), or at most so far (VmHWM).
local function memory(what)
  local file = assert(io.open "/proc/self/status")
  local text = file:read "a"
  file:close()
  return tonumber(text:match(what .. ":%s*(%d+)")) / 1024
end

local function check(name, holds)
  if not holds then print("FAIL " .. name) end
  good = good and holds
end

for _, share in ipairs { 100, 2 } do
  local p = ms.federated.Population { devices = devices, seed = 1, start_threshold = devices // share, update_window = 600000,
    update_ratio = 0.8, iterations = 2 }
  for _ = 1, 2 do
    local start, processor = ms.clock(), os.clock()
    local r = p:iteration()
    local seconds = (ms.clock() - start) / 1e9
    print(("%d devices: %d asked, %d started, %d updates; %.2f s (%.2f s of the processor), at most %.0f MB"):format(
      devices, r.asked, r.started, r.updates, seconds, os.clock() - processor, memory "VmHWM"))
    check("a round within 10 seconds of the processor", os.clock() - processor <= 10)
    check("a valid round", r.valid)
  end
  check("at most 1 GB", memory "VmHWM" <= 1024)
  p = nil -- luacheck: ignore
  collectgarbage()
end

local p = ms.federated.Population { devices = 2000, seed = 1, start_threshold = 200, update_window = 600000, update_ratio = 0.8,
  iterations = rounds, lost = 0.05, duplicated = 0.05, replayed = 0.05, restart = 0.01, dropout = 0.05 }
local first
for i = 1, rounds do
  p:iteration()
  if i == rounds // 10 then first = memory "VmRSS" end
end
local last = memory "VmRSS"
print(("%d rounds of 2000 devices: %.1f MB after a tenth, %.1f MB at the end (%+.2f %%)"):format(
  rounds, first, last, 100 * (last / first - 1)))
check("memory stays", last <= 1.05 * first)
os.exit(good)
