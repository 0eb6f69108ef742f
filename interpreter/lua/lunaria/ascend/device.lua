-- The device "Ascend": its memory, its overflow flag, and how long the chip would have taken for what ran on it.
local core = require "lunaria.ascend_core"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local chips = require "lunaria.ascend.chip"
local columns = require "lunaria.rich.columns"
local steps = require "lunaria.ascend.step"
local streams = require "lunaria.ascend.streams"
local tasks = require "lunaria.ascend.tasks"

local M = {}
local chosen -- what configure was given as the chip
local parts = { "parameters", "features", "communication" }

local function check_keys(where, o, known)
  if type(o) ~= "table" then arguments.fail(where, "options must be a table, got " .. arguments.describe(o)) end
  for key in pairs(o) do
    local found = false
    for _, name in ipairs(known) do found = found or name == key end
    if not found then arguments.fail(where, ("there is no option '%s'"):format(tostring(key)), arguments.nearest(tostring(key), known)) end
  end
end

--- Which chip the device "Ascend" is. options: chip (a name, a file or a table of changes of its parameters, as ms.ascend.estimate takes
--- it), overflow ("saturation": results that are too large become the largest number of their dtype and NaN becomes 0, which is what the
--- 910 does; "infnan": as IEEE 754 says). Both set a flag, see ms.ascend.overflowed. Tensors that are there stay.
---     > ms.ascend.configure { overflow = "infnan" }
---     > ms.ascend.configure {}
function M.configure(options)
  local where = "ascend.configure"
  check_keys(where, options, { "chip", "overflow" })
  local chip = chips.chip(where, options.chip)
  if options.overflow ~= nil and options.overflow ~= "saturation" and options.overflow ~= "infnan" then
    arguments.fail(where, "overflow must be \"saturation\" or \"infnan\", got " .. arguments.describe(options.overflow))
  end
  local settings = { saturate = chip.saturate }
  if options.overflow then settings.saturate = options.overflow == "saturation" end
  for _, part in ipairs(parts) do settings["memory_" .. part] = math.min(chip["memory_" .. part], 2.0 ^ 53) end
  core.configure(settings)
  chosen = options.chip
end

local Memory = {}
Memory.__index = Memory
Memory.__name = "memory of the device Ascend"

function Memory:__tostring()
  local rows = {}
  for i, part in ipairs(parts) do
    local p = self[part]
    rows[i] = { part, tostring(p.live), tostring(p.peak), ("%.1f GB"):format(p.limit / 1e9) }
  end
  return columns(rows, { "part", "bytes in use", "at most", "limit" }, { "left", "right", "right", "right" })
end

--- The memory of the device "Ascend" as its 32 GB are divided: parameters, features (all other tensors) and communication, each with
--- live, peak and limit in bytes. A tensor that does not fit into its part is an error.
---     > ms.ascend.memory().parameters.limit --> 5000000000
function M.memory()
  local memory, settings = core.memory(), core.settings()
  for _, part in ipairs(parts) do memory[part].limit = settings["memory_" .. part] end
  return setmetatable(memory, Memory)
end

--- Whether a result on the device "Ascend" was too large for its dtype or not a number since this was asked the last time.
---     > x = ms.tensor({ 60000 }, ms.float16):to "Ascend"; y = x * 2
---     > ms.ascend.overflowed() --> true
function M.overflowed() return core.take_overflow() end

-- Which of the tensors were there before, and how many elements each parameter has.
local function known_of(rows, rearranged)
  local made, inputs, counts, seen = {}, {}, {}, {}
  for _, id in ipairs(rearranged) do made[id] = true end
  for _, row in ipairs(rows) do
    for _, t in ipairs(row.inputs) do
      if not made[t.id] and not seen[t.id] then
        inputs[#inputs + 1] = t.id
        seen[t.id] = true
      end
      if t.parameter and not seen[t.parameter] then
        seen[t.parameter] = true
        local n = 1
        for _, d in ipairs(t) do n = n * d end
        counts[#counts + 1] = n
      end
    end
    for _, t in ipairs(row.outputs) do made[t.id] = true end
  end
  return inputs, counts
end

-- What ran() is asked for, checked.
local function settings_of_run(where, options, c)
  local sink = options.sink or (ms.get_context "mode" == ms.GRAPH_MODE and "graph" or "host")
  if sink ~= "host" and sink ~= "graph" and sink ~= "loop" then
    arguments.fail(where, "sink must be \"host\", \"graph\" or \"loop\", got " .. arguments.describe(sink))
  end
  local data = options.data or (sink == "host" and "feed" or "queue")
  if data ~= "feed" and data ~= "queue" then
    arguments.fail(where, "data must be \"feed\" or \"queue\", got " .. arguments.describe(options.data))
  end
  local synchronous = options.host_launch == "synchronous"
  local launch = synchronous and c.host_synchronous or options.host_launch or c.host_launch
  if type(launch) ~= "number" or launch <= 0 then
    arguments.fail(where, "host_launch must be seconds or \"synchronous\", got " .. arguments.describe(options.host_launch))
  end
  local count, loop_size = options.steps or 1, options.loop_size or 100
  for name, value in pairs { steps = count, loop_size = loop_size } do
    if math.type(value) ~= "integer" or value < 1 then
      arguments.fail(where, ("%s must be a positive integer, got %s"):format(name, arguments.describe(value)))
    end
  end
  return { sink = sink, loop_size = loop_size, host_launch = launch, synchronous = synchronous, batch = 1, devices = 1, dtype = "own",
    optimizer = "none", data = data, steps = count }
end

--- How long the chip would have taken for what ran on the device "Ascend" since this was asked the last time. options: sink ("host": each
--- operator is launched by the host, as in PyNative mode; "graph": the device has the whole graph, where operators that the chip's
--- compiler joins are one task, as in graph mode; "loop": and runs loop_size steps of it without the host; by the mode at the time of
--- the call), data ("feed": what comes from the host's memory comes when the program says so; "queue": ahead of time, through a queue of
--- batches, as in data sink mode; "queue" where the graph is sunk, else "feed"), steps (how many steps of training that was, 1),
--- loop_size (100), host_launch (seconds, or "synchronous"), chip, cluster. The result is like that of ms.ascend.estimate: step
--- (seconds), tasks, report(), timeline(), and races, where streams (ms.ascend.stream) lack an event. Up to 50,000 operators are
--- written down, and more are an error; discard (true: forgets them and gives nothing) comes before the steps that are to be timed.
---     > x = ms.ones({ 64, 64 }):to "Ascend"; ms.ascend.ran(); y = x:matmul(x)
---     > #ms.ascend.ran().tasks > 0 --> true
function M.ran(options)
  local where = "ascend.ran"
  options = options or {}
  check_keys(where, options, { "sink", "data", "steps", "loop_size", "host_launch", "chip", "cluster", "discard" })
  if options.discard then return core.discard_record() end
  local chip, c = chips.chip(where, options.chip or chosen), chips.cluster(where, options.cluster)
  local s = settings_of_run(where, options, c)
  local rows, rearranged, left_out = core.take_record()
  if left_out > 0 then
    arguments.fail(where, ("%d operators ran since this was asked the last time, and %d are written down at most"):format(
      #rows + left_out, #rows),
      "ms.ascend.ran { discard = true } right before the steps that are to be timed, and ran() after a few of them")
  end
  local operators = 0
  for _, row in ipairs(rows) do operators = operators + (row.op and 1 or 0) end
  local inputs, counts = known_of(rows, rearranged)
  local e = steps.new { network = "what ran", chip = chip, cluster = c, options = s, all_reduce = 0.0, tail = 0.0, collectives = {},
    measured = true, races = streams.races(rows) }
  e.tasks = tasks.build(chip, c, rows, counts, { dtype = "own", inputs = inputs, updates = true, alone = s.sink == "host",
    queue = s.data == "queue" })
  e.device = streams.schedule(e.tasks, s, chip, c, 1) / s.steps
  e.step = e.device + steps.round_trip(s, c)
  e.samples_per_second, e.parameters = 1 / e.step, 0
  for _, n in ipairs(counts) do e.parameters = e.parameters + n end
  e.title = ("%d operators on an Ascend %s in %d steps, sink %s: %.3f ms a step, of which the tasks are busy for %.3f ms"):format(operators,
    chip.name, s.steps, s.sink, e.step * 1e3, steps.busy(e.tasks) / s.steps * 1e3)
  return steps.finished(e)
end

return M
