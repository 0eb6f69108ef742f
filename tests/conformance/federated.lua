-- lunaria tests/conformance/federated.lua SEED ROUNDS CLIENTS [--faults] [--strategy NAME] [--devices N]: a federated training that must
-- give the same bits whatever happens on its way. A population of CLIENTS is trained for ROUNDS rounds: as it is, with faults (--faults:
-- messages that are lost, late, repeated and old, servers that start anew) twice, in groups of other sizes, on other numbers of threads,
-- one client after the other, and over sockets by a server and its clients (with --faults also killed amid it). N devices (100,000) that
-- do not train go through rounds with the same faults.
package.path = "tests/conformance/?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"
local sockets = require "federated.sockets"
local task = require "federated.task"
local federated = ms.federated

local usage = "usage: lunaria tests/conformance/federated.lua SEED ROUNDS CLIENTS [--faults] [--strategy NAME] [--devices N]"
local known = { faults = true, strategy = "FedAvg", devices = "100000" }
local numbers = {}
for i = 1, 3 do
  numbers[i] = math.tointeger(tonumber(arg[i]))
  if not numbers[i] or numbers[i] < (i == 1 and 0 or 1) then
    io.stderr:write(usage, "\n")
    os.exit(2)
  end
end
local _, options = support.options(usage, known, 3)
local seed, rounds, clients = table.unpack(numbers)

local inputs, labels, division = task.data(seed, clients)

-- All clients take part in each round: what a fault delays then changes no selection.
local function train(more)
  local o = { model = task.network(seed), data = { inputs, labels }, partition = division, rounds = rounds,
    batch_size = task.batch_size, settings = { lr = task.lr, epochs = task.epochs }, strategy = options.strategy,
    seed = seed, speeds = 0.5 }
  for key, value in pairs(more or {}) do o[key] = value end
  return federated.simulate(o)
end

local passed, failed = 0, 0

local function agree(name, want, got)
  local same = want == got
  if same then passed = passed + 1 else failed = failed + 1 end
  print(("%-44s %s"):format(name, same and "same bits" or ("FAIL: %s, expected %s"):format(tostring(got), tostring(want))))
end

local want = train():digest()
print(("%-44s %s"):format("weights", want))
agree("again", want, train():digest())
agree("groups of 2 clients, 2 threads", want, train { group = 2, threads = 2 }:digest())
agree("groups of 7 clients, 1 thread", want, train { group = 7, threads = 1 }:digest())
agree("one client after the other", want, train { group = 1 }:digest())
if options.faults then
  local faults = { lost = 0.2, duplicated = 0.2, replayed = 0.2, restart = 0.2 }
  agree("with faults", want, train { faults = faults }:digest())
  agree("with faults, again", want, train { faults = faults }:digest())
end

-- The devices whose updates were taken, round by round.
local function devices(faults)
  local o = { devices = math.tointeger(tonumber(options.devices)), seed = seed, iterations = rounds, update_window = 60000,
    update_ratio = 0.8, availability = 0.5 }
  o.start_threshold = math.max(1, o.devices // 100)
  for name, chance in pairs(faults or {}) do o[name] = chance end
  local list = {}
  for i, report in ipairs(federated.Population(o):run()) do
    list[i] = ("%s %d %016x"):format(report.valid, report.updates, report.digest)
  end
  return table.concat(list, "\n")
end
local taken = devices()
agree(("%s devices, again"):format(options.devices), taken, devices())
if options.faults then
  local harmless = { duplicated = 0.1, replayed = 0.1, restart = 0.001 }
  agree(("%s devices, repeated and old messages"):format(options.devices), taken, devices(harmless))
  local lossy = { lost = 0.1, duplicated = 0.1, replayed = 0.1, restart = 0.001, dropout = 0.1 }
  agree(("%s devices, lost messages, twice"):format(options.devices), devices(lossy), devices(lossy))
end

-- A server and its clients as programs of their own: the clients train as one after the other in a simulation, with their batches in
-- order, since each side draws by its own seed.
local in_order = task.bits(train({ shuffle = false, one_by_one = true }).weights:vector())
local function over_sockets(name, faults)
  local weights, said, deaths = sockets.run(seed, rounds, clients, options.strategy, faults)
  agree(name, in_order, weights or said)
  if faults then agree("  programs that were killed", math.min(3, clients) + 1, deaths) end
end
over_sockets("over sockets, by a server and its clients")
if options.faults and rounds > 1 then over_sockets("over sockets, each program killed once", true) end

print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0 and 0 or 1, true)
