-- Our side of a bench. The driver (bench/run.py) starts one process per contestant, and asks each in turn for one batch of
-- calls, so that a change in the machine's speed hits all of them alike. It writes commands to standard input:
--   threads N           once, first
--   list                answered by the workloads and their bars
--   run WORKLOAD N      answered by nanoseconds per call in each of N batches
--   first WORKLOAD N    answered by the nanoseconds of each of its first N calls
-- A bar is the least ratio "time of the other / our time" that passes: `peers` against the fastest framework; the name of a
-- program that calls a library directly (openblas, onednn, bandwidth, fused, index), of one framework or of another workload of this
-- bench against that; `limit` is a time in nanoseconds.
local ms = require "lunaria"

local harness = {}
local workloads, order = {}, {}
local batch_ns = 20e6

-- Declares a workload. `setup` makes the inputs and returns a function that makes n calls.
function harness.workload(name, bars, setup)
  order[#order + 1] = name
  workloads[name] = { bars = bars, setup = setup }
end

-- A function that calls f with the given arguments n times and nothing else.
function harness.calls(f, ...)
  local count = select("#", ...)
  local a, b, c = ...
  if count == 1 then
    return function(n) for _ = 1, n do f(a) end end
  elseif count == 2 then
    return function(n) for _ = 1, n do f(a, b) end end
  elseif count == 3 then
    return function(n) for _ = 1, n do f(a, b, c) end end
  end
  local rest = { ... }
  return function(n) for _ = 1, n do f(table.unpack(rest, 1, count)) end end
end

-- With one thread batches are measured in processor time, which others on the machine do not stretch.
local clock = ms.clock
local function processor_ns() return os.clock() * 1e9 end

local function batch(run, n)
  local start = clock()
  run(n)
  return clock() - start
end

-- The inputs of one workload live at a time.
local current = {}

local function prepare(name)
  if current.name == name then return end
  current = { name = name }
  collectgarbage()
  current.run = workloads[name].setup()
  -- The first calls make what later ones find ready (compiled functions in the first few); taken for ordinary ones, they
  -- would stand for a whole batch.
  for _ = 1, 5 do current.run(1) end
  current.n = 1
  while true do
    local ns = batch(current.run, current.n)
    if ns >= batch_ns or current.n >= 1 << 30 then break end
    current.n = current.n * (ns < batch_ns / 20 and 10 or 2)
  end
end

local commands = {}

function commands.threads(n)
  ms.set_num_threads(math.tointeger(tonumber(n)))
  clock = n == "1" and processor_ns or ms.clock
  return '{"ok":true}'
end

function commands.list()
  local rows = {}
  for _, name in ipairs(order) do
    local bars = {}
    for peer, bar in pairs(workloads[name].bars) do bars[#bars + 1] = ('"%s":%g'):format(peer, bar) end
    rows[#rows + 1] = ('{"workload":"%s","bars":{%s}}'):format(name, table.concat(bars, ","))
  end
  return "[" .. table.concat(rows, ",") .. "]"
end

function commands.run(name, repeats)
  if not workloads[name] then return ('{"error":"no workload %s"}'):format(name) end
  prepare(name)
  local ns = {}
  for i = 1, tonumber(repeats) do ns[i] = ("%.1f"):format(batch(current.run, current.n) / current.n) end
  return ('{"workload":"%s","ns":[%s]}'):format(name, table.concat(ns, ","))
end

function commands.first(name, calls)
  local run, ns = workloads[name].setup(), {}
  clock = ms.clock
  for i = 1, tonumber(calls) do ns[i] = ("%d"):format(batch(run, 1)) end
  return ('{"workload":"%s","ns":[%s]}'):format(name, table.concat(ns, ","))
end

function harness.serve()
  for line in io.lines() do
    local words = {}
    for word in line:gmatch("%S+") do words[#words + 1] = word end
    local ok, answer = pcall(commands[words[1]], table.unpack(words, 2))
    if not ok then answer = ('{"error":%q}'):format(tostring(answer):gsub("[%c\"\\]", " ")) end
    io.write(answer, "\n")
    io.flush()
  end
end

return harness
