-- ms.Profiler and ms.profiler.profile: where the time of a program goes while they are started, and the files of it.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local files = require "lunaria.profiler.files"
local recording = require "lunaria.profiler.recording"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local told = [[lunaria insight, chrome://tracing and spreadsheets show into output_path. schedule: which steps are recorded
(ms.profiler.schedule), told by step(); on_trace_ready: a function that is given the profiler when a part of the schedule is recorded
(ms.profiler.tensorboard_trace_handler). MindSpore's profiler_level, activities, profile_memory, with_stack, aic_metrics, l2_cache,
hbm_ddr, pcie, data_process, parallel_strategy, sync_enable, mstx, data_simplification, hbm_mem and export_type change nothing: all is
recorded always, on the CPU. start_profile: whether it starts at once.
]]

local Profiler = class.define(nil, "Profiler",
  "profiler_level=\"Level0\", activities=nil, schedule=nil, on_trace_ready=nil, profile_memory=true, with_stack=true, aic_metrics=nil, "
    .. "l2_cache=false, hbm_ddr=false, pcie=false, data_process=false, parallel_strategy=false, sync_enable=true, mstx=true, "
    .. "output_path=\"./data\", start_profile=true, data_simplification=true, hbm_mem=nil, export_type=nil",
  "Records each operator and each step of compiled graphs while it is started, with time, line, bytes and arithmetic; analyse writes what\n"
    .. told .. [[

  > profiler = ms.Profiler { output_path = "/tmp/lunaria_help_profiler" }
  > y = ms.ones { 4 } * 2
  > profiler:stop()
  > profiler.report.events[2].operators --> mul]])

function Profiler:setup(a)
  local where = getmetatable(self)._name
  if type(a.output_path) ~= "string" or a.output_path == "" then
    fail(where, "output_path must be a path, got " .. describe(a.output_path))
  end
  for _, name in ipairs { "schedule", "on_trace_ready" } do
    if a[name] ~= nil and not arguments.is_callable(a[name]) then
      fail(where, ("%s must be a function, got %s"):format(name, describe(a[name])))
    end
  end
  self.output_path, self.schedule, self.on_trace_ready = a.output_path, a.schedule, a.on_trace_ready
  self.step_num, self.metadata, self.written = 0, {}, {}
  if check.boolean(where, "start_profile", a.start_profile) then self:start() end
end

-- Whether the schedule wants the step that begins to be recorded, and whether it is the last one of a part.
local function wanted(self)
  if not self.schedule then return true, false end
  local action = self.schedule(self.step_num)
  return action == "RECORD" or action == "RECORD_AND_SAVE", action == "RECORD_AND_SAVE"
end

local function begin(self)
  if self.opened then return end
  if recording.current() and not recording.current().gives_way then fail("Profiler", "another profiler is started", "stop it first") end
  self.opened = recording.begin(false)
  self.step_began = 0.0
end

local function finish(self)
  if not self.opened then return end
  self.report = recording.finish(self.opened)
  self.opened = nil
end

-- Notes that a step has ended.
local function note_step(self)
  local now = recording.now()
  if not self.opened or not now then return end
  local steps = self.opened.steps
  steps[#steps + 1] = { step = self.step_num, start = self.step_began, seconds = now - self.step_began }
  self.step_began = now
end

--- Begins to record; with a schedule, when it says so.
---     > profiler = ms.Profiler { start_profile = false }
---     > profiler:start()
---     > profiler:stop()
---     > #profiler.report.events --> 0
function Profiler:start()
  if self.started then fail("Profiler", "it is started already") end
  self.started = true
  if wanted(self) then begin(self) end
end

local function save(self)
  finish(self)
  if self.on_trace_ready then self.on_trace_ready(self) end
end

--- Tells that a step has ended; a schedule is asked about the next one.
---     > profiler = ms.Profiler()
---     > profiler:step()
---     > profiler:stop()
---     > #profiler.report.steps --> 1
function Profiler:step()
  if not self.started then fail("step", "the profiler is not started", "profiler:start()") end
  local _, is_last = wanted(self)
  note_step(self)
  if self.schedule and is_last and self.opened then save(self) end
  self.step_num = self.step_num + 1
  if wanted(self) then begin(self) else finish(self) end
end

--- Ends the recording: report has it, as ms.profile gives one.
---     > profiler = ms.Profiler()
---     > y = ms.ones { 4 } + 1
---     > profiler:stop()
---     > profiler.report:rows()[1].count --> 1
function Profiler:stop()
  if not self.started then fail("stop", "the profiler is not started", "profiler:start()") end
  self.started = false
  if not self.opened then return end
  if #self.opened.steps == 0 then note_step(self) end
  save(self)
end

--- A remark that the files keep. key: a text; value: a text or a number.
---     > profiler = ms.Profiler()
---     > profiler:add_metadata("batch", "32")
---     > profiler:stop()
---     > profiler.metadata.batch --> 32
function Profiler:add_metadata(key, value)
  key, value = arguments.named("add_metadata", { "key", "value" }, key, value)
  if type(key) ~= "string" or key == "" then fail("add_metadata", "key must be a string that is not empty, got " .. describe(key)) end
  if type(value) ~= "string" and not math.type(value) then
    fail("add_metadata", "value must be a text or a number, got " .. describe(value))
  end
  self.metadata[key] = value
end

--- The same with a value in JSON. key: a text; value: the JSON.
---     > profiler = ms.Profiler()
---     > profiler:add_metadata_json("shape", "[2, 3]")
---     > profiler:stop()
---     > profiler.metadata.shape[2] --> 3
function Profiler:add_metadata_json(key, value)
  key, value = arguments.named("add_metadata_json", { "key", "value" }, key, value)
  if type(key) ~= "string" or key == "" then fail("add_metadata_json", "key must be a string that is not empty, got " .. describe(key)) end
  local ok, decoded = pcall(ms.json.decode, value)
  if not ok then fail("add_metadata_json", "value must be JSON, got " .. describe(value)) end
  self.metadata[key] = decoded
end

local function report_of(self, where)
  if self.started and not self.schedule then self:stop() end
  return self.report or fail(where, "nothing was recorded", "profiler:start(), then what is to be timed, then profiler:stop()")
end

--- Writes what was recorded: output_path/profiler/profile_N.json for the page of lunaria insight, and the folder profile_N beside it with
--- trace_view.json, kernel_details.csv and step_trace_time.csv. Stops the recording. Gives the path of the first.
---     > profiler = ms.Profiler { output_path = "/tmp/lunaria_help_profiler" }
---     > y = ms.ones { 4 } * 2
---     > path = profiler:analyse()
---     > path --> /tmp/lunaria_help_profiler/profiler/profile_0.json
---     > ms.io.kind(path) --> file
---     > os.execute("rm -r /tmp/lunaria_help_profiler") --> true	exit	0
function Profiler:analyse()
  local report = report_of(self, "analyse")
  local folder = self.output_path .. "/profiler"
  ms.io.make_folder(folder)
  local path = files.free(folder:gsub("%%", "%%%%") .. "/profile_%d.json")
  files.page("analyse", path, report, next(self.metadata) and self.metadata or nil)
  files.tables("analyse", (path:gsub("%.json$", "")), report)
  return path
end

--- How often an operator ran and how long: a table by name of { count =, seconds =, share = }. op_name: a name or a list of names.
---     > profiler = ms.Profiler()
---     > y = ms.ones { 4 } * 2
---     > profiler:stop()
---     > profiler:op_analyse("mul").mul.count --> 1
function Profiler:op_analyse(op_name)
  op_name = arguments.named("op_analyse", { "op_name" }, op_name)
  if type(op_name) == "string" then op_name = { op_name } end
  if type(op_name) ~= "table" or #op_name == 0 then
    fail("op_analyse", "op_name must be a name or a list of names, got " .. describe(op_name))
  end
  local report, found = report_of(self, "op_analyse"), {}
  for _, name in ipairs(op_name) do
    local row = { count = 0, seconds = 0.0 }
    for _, event in ipairs(report.events) do
      if event.operators == name then row.count, row.seconds = row.count + 1, row.seconds + event.seconds end
    end
    row.share = report.seconds > 0 and row.seconds / report.seconds or 0.0
    found[name] = row
  end
  return found
end

Profiler.__close = function(self)
  if self.started then self:stop() end
end

-- MindSpore's newer name, which does not start by itself.
local Profile = Profiler:extend("profile")
Profile._signature = arguments.signature(Profiler._signature.text:gsub("start_profile=true", "start_profile=false"))
Profile._doc = "ms.Profiler that begins with start(), and ends with stop() or, where it is a variable with <close>, with its block.\n"
  .. "analyse writes what\n" .. told .. [[

  > profiler = ms.profiler.profile { schedule = ms.profiler.schedule { wait = 1, active = 1 } }
  > profiler:start()
  > for i = 1, 4 do y = ms.ones { 4 } * i; profiler:step() end
  > profiler:stop()
  > profiler.report.steps[1].step --> 3]]
function Profile:init(...) Profiler.setup(self, arguments.bind("profile", Profile._signature, ...)) end

return { Profiler = Profiler, profile = Profile }
