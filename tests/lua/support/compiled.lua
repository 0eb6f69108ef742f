-- The check that a test which is run again in graph mode compiled something: one that records no function repeats its first run, and
-- fails (LUNARIA_TEST_COMPILES in the environment asks for it). What was compiled is forgotten with the function, so that a
-- test looks now and then.
local ms = require "lunaria"
local compiled = {}

local asked = os.getenv "LUNARIA_TEST_COMPILES" ~= nil
local found = false

function compiled.look()
  if not asked or found then return end
  for _, report in ipairs(ms.jit_report()) do
    -- A test that was recorded as a whole is part of what harness.test recorded.
    local own = report.name:find("support/compiled.lua", 1, true)
      or report.name:find("tests/lua/harness.lua", 1, true) and not report.name:find "^harness%.test "
    found = found or report.steps > 0 and not own
  end
end

-- True, or false after saying what to do.
function compiled.check()
  compiled.look()
  if not asked or found then return true end
  print("FAIL graph mode compiled nothing: say \"-- Eager mode only\" and why in the head of the file, or call what is tested often enough")
  return false
end

return compiled
