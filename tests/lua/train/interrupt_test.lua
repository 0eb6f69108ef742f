-- Ctrl-C at any moment of Model.train: the parameters, moments and statistics are those of whole steps. The argument is how many
-- moments are tried, 6 by default.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local program, output = arg[-1], os.tmpname()
local count = tonumber(arg[1] or "") or 6

math.randomseed(7)
local slow = os.getenv "ASAN_OPTIONS" and 8 or 1 -- with sanitizers everything takes longer
local function interrupted(way)
  local done, most = 0, 0
  for _ = 1, count do
    io.open(output, "w"):close()
    os.execute(("timeout -k 60 -s INT %.3f '%s' tests/lua/train/interrupt_script.lua '%s' %s >/dev/null 2>&1"):format(
      slow * (0.1 + 0.5 * math.random()), program, output, way))
    local file <close> = assert(io.open(output))
    local steps, difference = file:read("n", "n")
    -- Before the training has begun there is nothing to be closed.
    if steps then
      done, most = done + (steps > 0 and 1 or 0), math.max(most, difference)
      -- In graph mode networks that are compiled one after the other may add up in another order, and many steps make more of it.
      if ms.get_context("mode") == ms.PYNATIVE_MODE then
        assert(difference == 0, ("after %d steps: %g"):format(steps, difference))
      end
    end
  end
  assert(done > 0)
  if arg[1] then print(("%d interrupts within a training, the largest difference %g"):format(done, most)) end
end
t.test("an interrupt finds the parameters of whole steps", function() interrupted "" end)
t.test("an interrupt finds those of whole steps where many are made at once", function() interrupted "sink" end)

os.remove(output)
t.finish()
