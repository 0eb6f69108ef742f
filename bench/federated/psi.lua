-- Private set intersection of 100,000 by 100,000 ids (or as many as the first argument says), both sides in this process one after the
-- other on all threads: seconds, bytes, and whether the result is that of a plain join.
--
--   build/lunaria bench/federated/psi.lua [IDS] [BINS]
local ms = require "lunaria"
local vertical = ms.federated.vertical

local n, bins = math.tointeger(tonumber(arg[1] or 100000)), math.tointeger(tonumber(arg[2] or 1))
local ids = { a = {}, b = {} }
for i = 1, n do
  ids.a[i] = ("person %d"):format(i * 2)
  ids.b[i] = ("person %d"):format(i * 3)
end
local expected = {}
for i = 1, n do
  if i * 3 % 2 == 0 and i * 3 // 2 <= n then expected[#expected + 1] = ids.b[i] end
end
table.sort(expected)

local bytes = 0
local function side(own, peer)
  return function(links)
    local common = vertical.psi(links[peer], ids[own], { bins = bins })
    bytes = bytes + links[peer].sent
    return common
  end
end
local from, cpu = ms.clock(), os.clock()
local common = vertical.run_parties { a = side("a", "b"), b = side("b", "a") }
local seconds = (ms.clock() - from) * 1e-9
cpu = os.clock() - cpu
for _, name in ipairs { "a", "b" } do
  assert(#common[name] == #expected, "a wrong number of common ids")
  for i, id in ipairs(expected) do assert(common[name][i] == id, "a wrong id") end
end
print(("%d x %d ids, %d bins, %d threads: %.1f s (%.1f s of CPU), %.1f MB on the wire, %d common ids, exact"):format(n, n, bins,
  ms.get_num_threads(), seconds, cpu, bytes / 1e6, #expected))
