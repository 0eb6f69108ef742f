-- The profile of one step of a training, which SummaryCollector leaves in its folder.
local ms = require "lunaria"
local files = require "lunaria.profiler.files"
local recording = require "lunaria.profiler.recording"

local Step = {}
Step.__index = Step

--- Ends the recording and writes profiler/profile_step_N.json; nothing where the user's own profile took its place.
function Step:finish(step)
  local opened = self.opened
  opened.steps[1] = { step = step, start = 0.0, seconds = (ms.clock() - opened.clock) / 1e9, waiting = self.waiting }
  local report = recording.finish(opened)
  if not report then return end
  local folder = self.folder .. "/profiler"
  -- A disk that is full does not end the training.
  local ok, message = pcall(function()
    ms.io.make_folder(folder)
    files.page("SummaryCollector", ("%s/profile_step_%d.json"):format(folder, step), report)
  end)
  if not ok then io.stderr:write(tostring(message), "\n") end
end

--- Begins the recording of a step; nil while the user records. waiting: the seconds since the step before ended.
return function(folder, waiting)
  if recording.current() and not recording.current().gives_way then return nil end
  local ok, opened = pcall(recording.begin, true)
  if not ok then return nil end
  return setmetatable({ folder = folder, opened = opened, waiting = waiting }, Step)
end
