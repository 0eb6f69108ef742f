-- One program gives the same bits eagerly and compiled, with one thread and two, on processors of another instruction set, and on a
-- device with a memory of its own. What can differ is in one table, which help
-- shows (lunaria/help/bits.lua) and which this test reads: an operator that differs and is not there fails, and so does one that
-- is there and does not differ.
-- Eager mode only: what it compares is compiled here as well.
local folder = arg[0]:match("^(.*/)") or "./"
package.path = folder .. "?.lua;" .. package.path
local t = require "harness"
local others = require "lunaria.help.bits"
local today = require "support.today"

local caches = os.tmpname()
os.remove(caches)

-- The lines of a run: by the name of a call, what stands for its bits.
local function run(settings, words)
  local pipe = assert(io.popen(("XDG_CACHE_HOME=%s %s %s %sprograms/bits.lua %s 2>&1"):format(caches, settings, arg[-1], folder, words)))
  local lines, count = {}, 0
  for line in pipe:lines() do
    local name, bits = line:match "^(.*)\t(%x+)$"
    if not name then error(line .. "\n" .. pipe:read "a") end
    lines[name], count = bits, count + 1
  end
  assert(pipe:close())
  assert(count > (today.whole and 1000 or 100), "few calls: " .. count)
  return lines
end

local eager = run("OMP_NUM_THREADS=1", "eager")

-- The operators of today, by the first word of a call's name.
local ran = {}
for name in pairs(eager) do ran[name:match "^[%w_]+"] = true end

-- Those that differ.
local function compare(kind, settings, words)
  local other = run(settings, words)
  local differs, first = {}, {}
  for name, bits in pairs(other) do
    if eager[name] ~= bits then
      local operator = name:match "^[%w_]+"
      differs[operator] = (differs[operator] or 0) + 1
      if not first[operator] or name < first[operator] then first[operator] = name end
    end
  end
  local known, certain = {}, {}
  for _, row in ipairs(others) do
    for _, operator in ipairs(row[kind] or {}) do
      known[operator] = true
      if not row.library then certain[operator] = true end
    end
  end
  local wrong = {}
  for operator, count in pairs(differs) do
    if not known[operator] then wrong[#wrong + 1] = ("%s differs in %d calls, as in %s"):format(operator, count, first[operator]) end
  end
  for operator in pairs(certain) do
    local has_run = ran[operator] or today.whole
    if has_run and not differs[operator] then wrong[#wrong + 1] = operator .. " does not differ, but the table has it" end
  end
  table.sort(wrong)
  assert(#wrong == 0, kind .. ": " .. table.concat(wrong, "\n"))
end

t.test("two threads", function() compare("threads", "OMP_NUM_THREADS=2", "eager") end)
t.test("graph mode", function() compare("graph", "OMP_NUM_THREADS=1", "graph") end)
t.test("another device", function() compare("device", "OMP_NUM_THREADS=1", "eager Separate") end)
if io.open "/proc/cpuinfo":read "a":find "avx512bw" then
  t.test("AVX2", function() compare("avx2", "LUNARIA_ISA=avx2 OMP_NUM_THREADS=1", "eager") end)
end
os.execute("rm -rf " .. caches)
t.finish()
