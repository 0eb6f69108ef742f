-- The gain from sinking a graph on the Ascend 910: lunaria bench/ascend_sink.lua [--json]
-- "Host launching" is an eager program, whose host launches one operator after the other and runs ahead of the chip; the bar, ten times
-- faster for a graph of small operators, is about that. A host that waits for each operator is slower yet; one that launches the
-- kernels of a compiled graph is faster: the sweep shows for which hosts the bar holds.
-- The seconds of a launch are published figures of other programs on a 910B (parameters.lua); none was chosen by this bench. On that
-- chip the same decoder takes 103 ms when its captured graph is replayed, operator by operator and without fusion, and 365 ms eagerly.
local ms = require "lunaria"
local columns = require "lunaria.rich.columns"
local parameters = require "lunaria.ascend.parameters"
local nn, ops = ms.nn, ms.ops

-- Sixty small layers.
local function small()
  local layers = {}
  for i = 1, 30 do layers[2 * i - 1], layers[2 * i] = nn.Dense(16, 16), nn.Tanh() end
  return nn.SequentialCell(layers)
end
local function rows_of_16(batch) return ops.zeros { batch, 16 } end

local cases = { { "60 small layers b8", small(), 8, rows_of_16 }, { "LeNet b32", "lenet", 32 }, { "ResNet-50 b32", "resnet50", 32 },
  { "ResNet-50 b256", "resnet50", 256 } }

local function step(case, options)
  options.batch, options.inputs = case[3], case[4]
  local e = ms.ascend.estimate(case[2], options)
  return e.step * 1e3, #e.tasks
end

local report, rows = {}, {}
for i, case in ipairs(cases) do
  local loop, tasks = step(case, { sink = "loop" })
  local graph = step(case, { sink = "graph" })
  local host, operators = step(case, { sink = "host" })
  local waited = step(case, { sink = "host", host_launch = "synchronous" })
  report[i] = { case = case[1], tasks = tasks, operators = operators, loop_ms = loop, graph_ms = graph, host_ms = host, waited_ms = waited,
    host_by_loop = host / loop, waited_by_loop = waited / loop }
  rows[i] = { case[1], tostring(operators), tostring(tasks), ("%.2f"):format(host), ("%.2f"):format(waited), ("%.2f"):format(graph),
    ("%.2f"):format(loop), ("%.1f"):format(host / loop), ("%.1f"):format(waited / loop) }
end
local sweep, sweep_rows = {}, {}
for i, microseconds in ipairs { 5, 10, 20, 27, 34, 65, 130, 260 } do
  sweep[i] = { microseconds = microseconds }
  local row = { tostring(microseconds) }
  for k, case in ipairs(cases) do
    local times = step(case, { sink = "host", host_launch = microseconds * 1e-6 }) / report[k].loop_ms
    sweep[i][case[1]], row[k + 1] = times, ("%.1f"):format(times)
  end
  sweep_rows[i] = row
end

local launch = parameters.clusters.atlas.host_launch
local waited = parameters.clusters.atlas.host_synchronous
if arg and arg[1] == "--json" then
  print(ms.json.encode { model = parameters.version, cases = ms.json.array(report), sweep = ms.json.array(sweep),
    launch = { seconds = launch[1], source = launch[2] }, waited = { seconds = waited[1], source = waited[2] } })
else
  print(columns(rows, { "ms a step", "operators", "tasks when sunk", "eager host", "host that waits", "graph sink", "loop sink",
    "eager / loop", "waits / loop" }, { "left", "right", "right", "right", "right", "right", "right", "right", "right" }))
  print(("eager host: %.0f us an operator (%s)"):format(launch[1] * 1e6, launch[2]))
  print(("host that waits: %.0f us an operator (%s)"):format(waited[1] * 1e6, waited[2]))
  print "\nHow many times as long as with loop sink a step takes, by what a launch takes the host:"
  print(columns(sweep_rows, { "us", cases[1][1], cases[2][1], cases[3][1], cases[4][1] }, { "right", "right", "right", "right", "right" }))
  print(("model %s, parameters of the chip 910: not validated, no published step of a 910 is launched by its host"):format(
    parameters.version))
end
return { cases = report, sweep = sweep }
