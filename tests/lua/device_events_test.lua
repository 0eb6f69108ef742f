-- Events of a device, however many there are.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"

local function resident()
  local file = assert(io.open "/proc/self/statm")
  local pages = file:read("a"):match "^%d+ (%d+)"
  file:close()
  return tonumber(pages) * 4096
end

t.test("events that are recorded again and again take no more memory", function()
  local event = ms.runtime.Event { device = "Separate" }
  local function record(n)
    for _ = 1, n do
      event:record()
      event:synchronize()
    end
    t.equal(event:query(), true)
  end
  record(20000)
  local before = resident()
  record(200000)
  -- 200,000 of them would be more than 20 MB.
  if resident() - before > 6 << 20 then error(("%d bytes more"):format(resident() - before)) end
end)

t.test("an event of long ago is done", function()
  local first, last = ms.runtime.Event { device = "Separate" }, ms.runtime.Event { device = "Separate" }
  first:record()
  for _ = 1, 10000 do last:record() end
  last:synchronize()
  t.equal(first:query(), true)
end)

t.finish()
