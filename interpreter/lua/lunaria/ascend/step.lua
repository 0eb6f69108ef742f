-- A step on the simulated chips: its tasks with their times, by operator, as a timeline. Estimates give such steps, and records of
-- what ran on the device.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local columns = require "lunaria.rich.columns"
local parameters = require "lunaria.ascend.parameters"
local streams = require "lunaria.ascend.streams"
local validation = require "lunaria.ascend.validation"

local M = {}
local last

local Step = {}
Step.__index = Step
Step.__name = "Ascend estimate"

function M.new(fields) return setmetatable(fields, Step) end

--- The step with what follows from its tasks; report() and timeline() speak of it from then on.
function M.finished(e)
  e.flops = 0
  for _, task in ipairs(e.tasks) do e.flops = e.flops + (task.flops or 0) end
  e.utilisation = e.flops / e.step / e.chip.peak_flops
  last = e
  return e
end

--- Seconds of all tasks together.
function M.busy(list)
  local sum = 0
  for _, task in ipairs(list) do sum = sum + task.seconds end
  return sum
end

--- Seconds that a step waits for the host when its tasks are done: once a step, once in a loop, or, where the host launches every
--- operator, not at all.
function M.round_trip(o, c)
  if o.sink == "host" then return 0.0 end
  return o.sink == "loop" and c.host_step / o.loop_size or c.host_step
end

local bounds = { cube = "cube", vector = "vector", hbm = "HBM", l2 = "L2", moves = "MTE1", launch = "launch", ["AI CPU"] = "AI CPU",
  link = "host link" }

--- By operator: how many tasks, their time, what bounds them.
function Step:report(count)
  local by_name, list, device = {}, {}, 0
  for _, task in ipairs(self.tasks) do
    local key = task.name .. "\0" .. task.bound
    local row = by_name[key]
    if not row then
      row = { name = task.name, bound = bounds[task.bound], tasks = 0, seconds = 0.0, flops = 0.0, hbm = 0.0 }
      by_name[key], list[#list + 1] = row, row
    end
    row.tasks, row.seconds, row.flops, row.hbm = row.tasks + 1, row.seconds + task.seconds, row.flops + (task.flops or 0),
      row.hbm + (task.hbm or 0)
    device = device + task.seconds
  end
  table.sort(list, function(a, b) return a.seconds > b.seconds end)
  for _, row in ipairs(list) do
    row.share = row.seconds / device
    row.cube_utilisation = row.flops / row.seconds / self.chip.peak_flops
    row.hbm_utilisation = row.hbm / row.seconds / self.chip.hbm_bytes_per_second
  end
  return setmetatable(list, { __tostring = function()
    local rows = {}
    for i = 1, math.min(#list, count or 15) do
      local r = list[i]
      rows[i] = { r.name, tostring(r.tasks), ("%.3f"):format(r.seconds * 1e3), ("%.1f"):format(100 * r.share), r.bound,
        ("%.0f"):format(100 * r.cube_utilisation), ("%.0f"):format(100 * r.hbm_utilisation) }
    end
    return columns(rows, { "operator", "tasks", "ms", "% of the device", "bound by", "% cube", "% HBM" },
      { "left", "right", "right", "right", "left", "right", "right" })
  end })
end

function Step:__tostring()
  local s, m = self.options, self.memory
  local lines = self.title and { self.title } or {
    ("%s: batch %d on %d x Ascend %s, %s, %s, sink %s"):format(self.network, s.batch, s.devices, self.chip.name, s.dtype, s.optimizer,
      s.sink),
    ("step %.3f ms, %.0f samples/s, %.1f %% of the cube's peak; %d tasks"):format(self.step * 1e3, self.samples_per_second,
      100 * self.utilisation, #self.tasks) }
  if s.devices > 1 then
    lines[#lines + 1] = ("all-reduce %.3f ms in %d buckets, of which %.3f ms come after the backward pass"):format(self.all_reduce * 1e3,
      #self.collectives, self.tail * 1e3)
  end
  if (s.data_seconds or 0) > self.device then
    lines[#lines + 1] = ("the step waits for its batch, which takes the host %.3f ms; the device is busy for %.3f ms"):format(
      s.data_seconds * 1e3, self.device * 1e3)
  end
  if self.waited then
    lines[#lines + 1] = ("the host launches %d operators, %.1f us each%s; the device waits for it for %.3f ms"):format(#self.tasks,
      s.host_launch * 1e6, s.synchronous and ", and waits for every one" or "", self.waited * 1e3)
  end
  for i, race in ipairs(self.races or {}) do
    if i > 5 then
      lines[#lines + 1] = ("... and %d more"):format(#self.races - 5)
      break
    end
    local function name(row) return ("%s on the stream %s (%s)"):format(row.op or row.kind, streams.name_of(row.stream), row.place) end
    lines[#lines + 1] = ("no event orders %s before %s, which reads what it writes"):format(name(race.write), name(race.read))
  end
  if m then
    local function part(name)
      local bytes = m[name]
      local text = bytes < 1e7 and ("%.2f MB"):format(bytes / 1e6) or ("%.2f GB"):format(bytes / 1e9)
      return ("%s of %.0f GB"):format(bytes == 0 and "0" or text, m.limits[name] / 1e9)
    end
    lines[#lines + 1] = ("memory: parameters %s, feature maps %s, communication %s"):format(part "parameters", part "features",
      part "communication")
  end
  lines[#lines + 1] = tostring(self:report(10))
  lines[#lines + 1] = validation.text(self)
  return table.concat(lines, "\n")
end

local lanes = { "device", "communication", "host" }

--- Events for Chrome's and Perfetto's viewers, as JSON text: the tasks of the device's streams, the collectives, what the host launches.
function Step:timeline()
  local events = { { name = "process_name", ph = "M", pid = 0, tid = 0, args = { name = "Ascend " .. self.chip.name } } }
  for i, name in ipairs(lanes) do events[i + 1] = { name = "thread_name", ph = "M", pid = 0, tid = i, args = { name = name } } end
  local function add(lane, name, start, seconds, args)
    events[#events + 1] = { name = name, ph = "X", pid = 0, tid = lane, ts = start * 1e6, dur = seconds * 1e6, args = args }
  end
  local lane_of = { [0] = 1 }
  for _, task in ipairs(self.tasks) do
    if not lane_of[task.stream] then
      lane_of[task.stream] = #lanes + 1 + task.stream
      events[#events + 1] = { name = "thread_name", ph = "M", pid = 0, tid = lane_of[task.stream], args = {
        name = streams.name_of(task.stream) } }
    end
    add(lane_of[task.stream], task.name .. (task.joined or ""), task.start, task.seconds, { place = task.place,
      bound = bounds[task.bound] })
  end
  for i, row in ipairs(self.collectives) do add(2, "AllReduce " .. i, row.start, row.stop - row.start, { bytes = row.bytes }) end
  for _, task in ipairs(self.options.sink == "host" and self.tasks or {}) do
    add(3, "launch " .. task.name, task.launched, task.launch, { place = task.place })
  end
  return ms.json.encode { traceEvents = ms.json.array(events), displayTimeUnit = "ms", otherData = { model = parameters.version,
    chip = self.chip.name } }
end

--- A plot of the step: how busy the cubes are and how much of the memory stacks' bandwidth is used, in per cent, from its start to its
--- end. count: in how many pieces of time.
function Step:picture(count)
  count = count or 120
  if math.type(count) ~= "integer" or count < 1 then
    arguments.fail("ascend.picture", "count must be a positive integer, got " .. arguments.describe(count))
  end
  local width = self.device / count
  local x, cube, hbm = {}, {}, {}
  for i = 1, count do x[i], cube[i], hbm[i] = (i - 0.5) * width * 1e3, 0.0, 0.0 end
  for _, task in ipairs(self.tasks) do
    local cube_part = task.product and task.product.cube / self.chip.hertz / task.seconds or 0
    local hbm_part = (task.hbm or 0) / self.chip.hbm_bytes_per_second / task.seconds
    local stop = task.start + task.seconds
    for i = math.max(1, task.start // width + 1 | 0), math.min(count, stop // width + 1 | 0) do
      local inside = math.max(0, math.min(stop, i * width) - math.max(task.start, (i - 1) * width)) / width
      cube[i], hbm[i] = cube[i] + 100 * inside * cube_part, hbm[i] + 100 * inside * hbm_part
    end
  end
  return ms.plot.line { x = x, y = { cube = cube, HBM = hbm }, title = ("%s on an Ascend %s"):format(self.network, self.chip.name),
    x_label = "ms", y_label = "% busy", y_domain = { 0, 100 } }
end

--- The numbers of the estimate, as a table.
function Step:numbers()
  return { network = self.network, batch = self.options.batch, devices = self.options.devices, dtype = self.options.dtype,
    optimizer = self.options.optimizer, sink = self.options.sink, chip = self.chip.name, step_ms = self.step * 1e3,
      device_ms = self.device * 1e3, data_ms = (self.options.data_seconds or 0.0) * 1e3,
    samples_per_second = self.samples_per_second, utilisation = self.utilisation, tasks = #self.tasks, parameters = self.parameters,
    all_reduce_ms = self.all_reduce * 1e3, tail_ms = self.tail * 1e3, memory = self.memory and {
      parameters = self.memory.parameters, features = self.memory.features, communication = self.memory.communication },
    model_version = parameters.version, validation = validation.text(self) }
end

local function latest(name)
  if not last then arguments.fail("ascend." .. name, "nothing was estimated yet", "ms.ascend.estimate(\"resnet50\") makes an estimate") end
  return last
end

--- The last estimate, or what ms.ascend.ran gave last, by operator: tasks, milliseconds, what bounds them (cube, vector,
--- HBM, L2, launch), utilisation.
---     > ms.ascend.estimate("lenet") and #ms.ascend.report() > 3 --> true
function M.report() return latest "report":report() end

--- The last estimate, or what ms.ascend.ran gave last, as JSON text for Chrome's and Perfetto's viewers; written to a file
--- where a path is given.
---     > ms.ascend.estimate("lenet") and #ms.json.decode(ms.ascend.timeline()).traceEvents > 3 --> true
function M.timeline(path)
  path = arguments.named("ascend.timeline", { "path" }, path)
  local text = latest "timeline":timeline()
  if path == nil then return text end
  local file, problem = io.open(path, "w")
  if not file then arguments.fail("ascend.timeline", problem) end
  file:write(text)
  file:close()
end

--- A plot of the last estimate, or of what ms.ascend.ran gave last: how busy the cubes and the memory stacks are from the start of the
--- step to its end, in per cent. count: in how many pieces of time, 120.
---     > ms.ascend.estimate("lenet") and ms.ascend.picture():vega().title --> lenet on an Ascend 910
function M.picture(count) return latest "picture":picture(count) end

return M
