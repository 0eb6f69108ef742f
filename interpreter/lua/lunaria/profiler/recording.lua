-- An open recording of what runs: begin opens it, finish gives the report. Only one may be open; one that a callback opened gives way
-- to one that the user opens.
local core = require "lunaria.profiling"
local ms = require "lunaria"
local devices = require "lunaria.devices"
local Profile = require "lunaria.profiler.report"

local recording = {}

-- The recording that is open: handle, the clock when it was opened, steps, marks.
local current

--- Calls of operators that had no kernel on their device and ran on the host; before: what fallbacks() gave then, so that only those
--- since then are there.
function recording.fallbacks(before)
  if not before then return devices.fallbacks() end
  local known, list = {}, {}
  for _, f in ipairs(before) do known[f.operator .. f.device] = f end
  for _, f in ipairs(devices.fallbacks()) do
    local old = known[f.operator .. f.device]
    if old then f.calls, f.bytes = f.calls - old.calls, f.bytes - old.bytes end
    if f.calls > 0 then list[#list + 1] = f end
  end
  return list
end

--- Gives up a recording of a callback, whose step may have ended with an error.
function recording.drop()
  if current and current.gives_way then
    pcall(core.finish, current.handle)
    current = nil
  end
end

-- The most events of a recording that others may end: a training that is interrupted leaves it open.
local most_events = 20000

--- Opens a recording. gives_way: whether others may end it.
function recording.begin(gives_way)
  recording.drop()
  ms.reset_peak_memory_stats()
  local opened = { gives_way = gives_way, fallbacks = recording.fallbacks(), steps = {}, marks = {} }
  opened.handle = core.begin(gives_way and most_events or nil)
  opened.clock = ms.clock()
  current = opened
  return opened
end

--- Ends a recording and gives its report; nil where it was given up.
function recording.finish(opened)
  if current ~= opened then return nil end
  current = nil
  local events, seconds = core.finish(opened.handle)
  return setmetatable({ events = events, seconds = seconds, peak_bytes = ms.memory_stats().peak_bytes, steps = opened.steps,
    marks = opened.marks, results = {}, fallbacks = recording.fallbacks(opened.fallbacks),
    mode = ms.get_context "mode" == ms.GRAPH_MODE and "graph" or "eager" }, Profile)
end

--- Seconds since the recording that is open began; nil where none is.
function recording.now() return current and (ms.clock() - current.clock) / 1e9 end
--- The recording that is open, or nil.
function recording.current() return current end

return recording
