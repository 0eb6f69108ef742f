-- Schedules of recordings, what is done with a recording, marks within one, and recordings that a file asks for.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local files = require "lunaria.profiler.files"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local signature = arguments.signature("wait, active, warmup=0, repeat_=0, skip_first=0")

--- A schedule for ms.Profiler: a function that gives for the number of a step, from 0, what is done in it: "NONE", "WARM_UP", "RECORD"
--- or, in the last step of a part, "RECORD_AND_SAVE". wait: steps of a part that pass first. warmup: steps that are not recorded
--- either. active: steps that are. repeat_: how many parts; 0: no end. skip_first: steps before the first part.
---     > plan = ms.profiler.schedule { wait = 1, warmup = 1, active = 2, repeat_ = 1 }
---     > plan(0), plan(1), plan(2), plan(3), plan(4) --> NONE	WARM_UP	RECORD	RECORD_AND_SAVE	NONE
local function schedule(...)
  local a = arguments.bind("schedule", signature, ...)
  for _, name in ipairs { "wait", "warmup", "repeat_", "skip_first" } do check.not_negative("schedule", name, a[name]) end
  check.positive("schedule", "active", a.active)
  local cycle = a.wait + a.warmup + a.active
  return function(step)
    step = check.not_negative("schedule", "step", step) - a.skip_first
    if step < 0 or a.repeat_ > 0 and step // cycle >= a.repeat_ then return "NONE" end
    local at = step % cycle
    if at < a.wait then return "NONE" end
    if at < a.wait + a.warmup then return "WARM_UP" end
    return at == cycle - 1 and "RECORD_AND_SAVE" or "RECORD"
  end
end

local handler_signature = arguments.signature("dir_name=\"./data\", worker_name=nil, analyse_flag=true, async_mode=false")

--- A function for on_trace_ready of ms.Profiler that writes each recording into a folder of its own below dir_name:
--- WORKER_N_ascend_ms/ASCEND_PROFILER_OUTPUT with trace_view.json, kernel_details.csv and step_trace_time.csv. worker_name: the first
--- part of its name. analyse_flag: false writes nothing. async_mode: MindSpore's.
---     > folder = "/tmp/lunaria_help_traces"
---     > ready = ms.profiler.tensorboard_trace_handler(folder, "worker")
---     > profiler = ms.Profiler { on_trace_ready = ready }
---     > profiler:stop()
---     > ms.io.list_folder(folder)[1] --> worker_0_ascend_ms
---     > inside = folder .. "/worker_0_ascend_ms/ASCEND_PROFILER_OUTPUT"
---     > for _, name in ipairs(ms.io.list_folder(inside)) do os.remove(inside .. "/" .. name) end
---     > os.remove(inside) and os.remove(folder .. "/worker_0_ascend_ms") and os.remove(folder) --> true
local function tensorboard_trace_handler(...)
  local where = "tensorboard_trace_handler"
  local a = arguments.bind(where, handler_signature, ...)
  if type(a.dir_name) ~= "string" or a.dir_name == "" then fail(where, "dir_name must be a path, got " .. describe(a.dir_name)) end
  local worker = a.worker_name or "lunaria"
  if type(worker) ~= "string" or not worker:find "^[%w_.-]+$" then
    fail(where, "worker_name must consist of letters, digits, _, - and ., got " .. describe(a.worker_name))
  end
  check.boolean(where, "analyse_flag", a.analyse_flag)
  return function(profiler)
    if not a.analyse_flag or not profiler.report then return end
    ms.io.make_folder(a.dir_name)
    local folder = files.free(("%s/%s_%%d_ascend_ms"):format(a.dir_name:gsub("%%", "%%%%"), worker))
    files.tables(where, folder .. "/ASCEND_PROFILER_OUTPUT", profiler.report)
  end
end

local ProfilerLevel = { Level0 = "Level0", Level1 = "Level1", Level2 = "Level2", LevelNone = "Level_none" }
local ProfilerActivity = { CPU = "CPU", NPU = "NPU", GPU = "GPU" }

-- The ranges that are open: name and start.
local ranges, last = {}, 0

local recording = require "lunaria.profiler.recording"

local mstx = {}

local function checked_message(where, message)
  message = arguments.named(where, { "message" }, message)
  if type(message) ~= "string" or message == "" then
    fail(where, "message must be a string that is not empty, got " .. describe(message))
  end
  return message
end

--- Marks this moment. message: what it is called.
---     > profiler = ms.Profiler()
---     > ms.profiler.mstx.mark("half way")
---     > profiler:stop()
---     > profiler.report.marks[1].name --> half way
function mstx.mark(message)
  message = checked_message("mark", message)
  local now = recording.now()
  if not now then return end
  local marks = recording.current().marks
  marks[#marks + 1] = { name = message, start = now, seconds = 0.0 }
end

--- Begins a range and gives its number for range_end; 0 while nothing is recorded. message: what it is called.
---     > profiler = ms.Profiler()
---     > range = ms.profiler.mstx.range_start("loading")
---     > ms.profiler.mstx.range_end(range)
---     > profiler:stop()
---     > profiler.report.marks[1].name --> loading
function mstx.range_start(message)
  message = checked_message("range_start", message)
  local now = recording.now()
  if not now then return 0 end
  last = last + 1
  ranges[last] = { name = message, start = now, of = recording.current() }
  return last
end

--- Ends a range. range_id: what range_start gave.
---     > ms.profiler.mstx.range_end(0)
function mstx.range_end(range_id)
  range_id = check.not_negative("range_end", "range_id", arguments.named("range_end", { "range_id" }, range_id))
  local range, now = ranges[range_id], recording.now()
  ranges[range_id] = nil
  if not range or not now or recording.current() ~= range.of then return end
  local marks = range.of.marks
  marks[#marks + 1] = { name = range.name, start = range.start, seconds = now - range.start }
end

local base = require "lunaria.train.callback"

local DynamicProfilerMonitor = class.define(base.Callback, "DynamicProfilerMonitor",
  "cfg_path, output_path=\"./dyn_profile_data\", poll_interval=2",
  [[Records steps of a program that runs already: the file profiler_config.json in the folder cfg_path says which, { "start_step": 5,
"stop_step": 8 }, and may be changed at any time. A callback of Model, or told by step(). output_path: where the files go.
poll_interval: after how many seconds the file is read again.

  > folder = "/tmp/lunaria_help_monitor"
  > monitor = ms.profiler.DynamicProfilerMonitor(folder)
  > monitor:step()
  > monitor.step_num --> 1
  > os.remove(folder .. "/profiler_config.json") and os.remove(folder) --> true]])

local function read_settings(self)
  local file <close> = io.open(self.path, "r")
  local text = file and file:read "a"
  if not text or text == self.text then return end
  self.text = text
  local ok, settings = pcall(ms.json.decode, text)
  -- A file that is being written is read again.
  if not ok or type(settings) ~= "table" then return end
  self.start_step, self.stop_step = math.tointeger(settings.start_step) or -1, math.tointeger(settings.stop_step) or -1
end

function DynamicProfilerMonitor:setup(a)
  local where = "DynamicProfilerMonitor"
  for _, name in ipairs { "cfg_path", "output_path" } do
    if type(a[name]) ~= "string" or a[name] == "" then fail(where, ("%s must be a path, got %s"):format(name, describe(a[name]))) end
  end
  self.poll_interval = check.positive(where, "poll_interval", a.poll_interval)
  self.output_path, self.path = a.output_path, a.cfg_path .. "/profiler_config.json"
  self.step_num, self.start_step, self.stop_step, self.polled = 0, -1, -1, -math.huge
  ms.io.make_folder(a.cfg_path)
  if not ms.io.kind(self.path) then
    local file, message = io.open(self.path, "w")
    if not file then fail(where, message) end
    file:write '{ "start_step": -1, "stop_step": -1 }\n'
    file:close()
  end
end

--- Tells that a step has ended.
---     > folder = "/tmp/lunaria_help_monitor"
---     > monitor = ms.profiler.DynamicProfilerMonitor(folder, folder)
---     > for i = 1, 3 do monitor:step() end
---     > monitor.step_num --> 3
---     > os.remove(folder .. "/profiler_config.json") and os.remove(folder) --> true
function DynamicProfilerMonitor:step()
  self.step_num = self.step_num + 1
  if ms.clock() / 1e9 - self.polled >= self.poll_interval then
    self.polled = ms.clock() / 1e9
    read_settings(self)
  end
  if self.profiler then
    self.profiler:step()
    if self.step_num >= self.stop_step then
      self.last_profile = self.profiler:analyse()
      self.profiler = nil
    end
  elseif self.start_step >= 0 and self.step_num == self.start_step - 1 and self.stop_step >= self.start_step then
    self.profiler = ms.Profiler { output_path = self.output_path, start_profile = false }
    self.profiler.step_num = self.start_step
    self.profiler:start()
  end
end

--- Called after a step of Model.
function DynamicProfilerMonitor:on_train_step_end() self:step() end
--- Called after the training of Model.
function DynamicProfilerMonitor:on_train_end()
  if self.profiler then
    self.last_profile = self.profiler:analyse()
    self.profiler = nil
  end
end

return { schedule = schedule, tensorboard_trace_handler = tensorboard_trace_handler, ProfilerLevel = ProfilerLevel,
  ProfilerActivity = ProfilerActivity, mstx = mstx, DynamicProfilerMonitor = DynamicProfilerMonitor }
