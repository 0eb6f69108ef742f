-- ms.profile: the times of one call; ms.Profiler has those of steps that a program makes.
local core = require "lunaria.profiling"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local recording = require "lunaria.profiler.recording"
local Profile = require "lunaria.profiler.report"

local function fail(message, ...) arguments.fail("profile", message:format(...)) end

--- Calls f with the arguments once and tells where the time went: a table by operator and line, with time, calls, memory
--- traffic and arithmetic per second. It prints as text, is a table in notebooks; rows(by) gives the numbers,
--- events the calls in their order, fallbacks the operators that had no kernel on their device and ran on the host,
--- results what f gave, and save("trace.json") writes a Chrome trace. A compiled function shows the steps of its graphs once
--- it is compiled: call it a few times before.
---     > #ms.profile(function(x) return x * 2 + 1 end, ms.tensor{1.0}).events --> 2
local function profile(f, ...)
  if not arguments.is_callable(f) then fail("a function or another callable is expected, got %s", arguments.describe(f)) end
  recording.drop()
  ms.reset_peak_memory_stats()
  local before = recording.fallbacks()
  local given = table.pack(core.run(f, ...))
  local results = table.pack(table.unpack(given, 3, given.n))
  return setmetatable({ events = given[1], seconds = given[2], results = results,
    peak_bytes = ms.memory_stats().peak_bytes, fallbacks = recording.fallbacks(before) }, Profile)
end

return profile
