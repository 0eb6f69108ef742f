-- lunaria tests/conformance/federated.lua SEED ROUNDS CLIENTS [--faults] [--strategy NAME] [--devices N]: a federated training that must
-- give the same bits whatever happens on its way. A population of CLIENTS is trained for ROUNDS rounds: as it is, with faults (--faults:
-- messages that are lost, late, repeated and old, servers that start anew) twice, in groups of other sizes, on other numbers of threads,
-- one client after the other, and, where a server can be had, over sockets. N devices (100,000) that do not train go through rounds with
-- the same faults.
package.path = "tests/conformance/?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"
local nn, ops, federated = ms.nn, ms.ops, ms.federated

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

-- Pictures of four classes; each client has two of them and a number of samples of its own.
ms.set_seed(seed)
local per_client = 30
local labels = (ms.arange(clients * per_client) % 4):astype(ms.int32)
local inputs = ops.index_select(ops.randn(4, 16) * 2, 0, labels:astype(ms.int64)) + ops.randn(clients * per_client, 16)
local division = clients >= 4 and federated.partition.by_label(labels, clients, { labels_per_client = 2, seed = seed })
  or federated.partition.iid(labels, clients, { seed = seed })

local function network()
  ms.set_seed(seed + 1)
  return nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 4))
end

-- All clients take part in each round: what a fault delays then changes no selection.
local function train(more)
  local o = { model = network(), data = { inputs, labels }, partition = division, rounds = rounds, batch_size = 10,
    settings = { lr = 0.1, epochs = 2 }, strategy = options.strategy, seed = seed, speeds = 0.5 }
  for key, value in pairs(more or {}) do o[key] = value end
  return federated.simulate(o):digest()
end

local passed, failed, waiting = 0, 0, support.waiting_list()

local function agree(name, want, got)
  local same = want == got
  if same then passed = passed + 1 else failed = failed + 1 end
  print(("%-44s %s"):format(name, same and "same bits" or ("FAIL: %s, expected %s"):format(tostring(got), tostring(want))))
end

local want = train()
print(("%-44s %s"):format("weights", want))
agree("again", want, train())
agree("groups of 2 clients, 2 threads", want, train { group = 2, threads = 2 })
agree("groups of 7 clients, 1 thread", want, train { group = 7, threads = 1 })
agree("one client after the other", want, train { group = 1 })
if options.faults then
  local faults = { lost = 0.2, duplicated = 0.2, replayed = 0.2, restart = 0.2 }
  agree("with faults", want, train { faults = faults })
  agree("with faults, again", want, train { faults = faults })
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

waiting:add "over sockets, by a server and clients"
waiting:print()
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0 and 0 or 1, true)
