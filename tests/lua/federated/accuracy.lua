-- Training without rounds (FedBuff with a buffer of 10) and federated meta-learning (Reptile, Per-FedAvg) reach the accuracy of federated
-- averaging within a point, on 50 parties whose classes differ (Dirichlet, alpha 0.5) with some 120 pictures of Fashion-MNIST each.
-- Meta-learning is for weights that each party adapts, so that its accuracy is that of the parties on pictures of their own that were
-- kept apart, after an epoch on the others; and so is the one that it is compared with. Two minutes; only for --long; argument: rounds,
-- default 60.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, F = ms.nn, ms.ops, ms.federated
local S, partition = F.strategies, F.partition

local folder = "/usr/share/datasets/fashion-mnist"
local rounds = math.tointeger(tonumber(arg[1] or 60))
local party_count, chosen, batch = 50, 10, 20

local function load_set(name, count)
  local images = ms.load_idx(("%s/%s-images-idx3-ubyte.gz"):format(folder, name))[{ ms.slice(0, count) }]
  local labels = ms.load_idx(("%s/%s-labels-idx1-ubyte.gz"):format(folder, name))[{ ms.slice(0, count) }]
  return images:reshape { -1, 784 }:astype(ms.float32) / 255, labels:astype(ms.int32)
end

local test_x, test_labels = load_set("t10k", 4000)
local x, labels = load_set("train", 9000)

-- A third of each party's pictures is kept apart.
local parts, held = {}, {}
for i, places in ipairs(partition.dirichlet(labels, party_count, { alpha = 0.5, seed = 1, min_size = 30 })) do
  local third = places.shape[1] // 3
  held[i], parts[i] = places[{ ms.slice(0, third) }], places[{ ms.slice(third, places.shape[1]) }]
end
parts = partition.Partition(parts)

local function network()
  ms.set_seed(2)
  return nn.SequentialCell(nn.Dense(784, 64), nn.ReLU(), nn.Dense(64, 10))
end

-- The mean accuracy of the last five weights, which goes up and down with the classes of those that took part, and the simulation.
local function run(strategy, options)
  local settings = { model = network(), data = { x, labels }, partition = parts, rounds = rounds, sample = chosen, strategy = strategy,
    batch_size = batch, evaluate = { test_x, test_labels }, speeds = 0.5, seed = 3 }
  for key, value in pairs(options or {}) do settings[key] = value end
  local simulation = F.simulate(settings)
  local sum = 0.0
  for i = #simulation.history - 4, #simulation.history do sum = sum + simulation.history[i].accuracy / 5 end
  return sum, simulation
end

-- The mean accuracy of parties on what they have kept apart, after an epoch on the rest.
local function adapted(weights)
  local net, right, count = network(), 0, 0
  for i = 1, party_count do
    weights:load_into(net)
    local data, mine, own = {}, ops.gather(x, parts[i], 0), ops.gather(labels, parts[i], 0)
    for from = 0, mine.shape[1] - 1, batch do
      local part = { ms.slice(from, math.min(mine.shape[1], from + batch)) }
      data[#data + 1] = { mine[part], own[part] }
    end
    F.client_rules.train({ network = net, loss_fn = function(y, classes) return ops.cross_entropy(y, classes) end }, data, { lr = 0.1 }, {})
    local found = ops.argmax(net(ops.gather(x, held[i], 0)), 1)
    right = right + ops.sum(ops.equal(found, ops.gather(labels, held[i], 0)):astype(ms.int32)):item()
    count = count + held[i].shape[1]
  end
  return right / count
end

local settings = { lr = 0.1, epochs = 2 }
local plain, average = run(S.FedAvg { settings = settings })
local plain_adapted = adapted(average.weights)
print(("FedAvg %.4f, adapted %.4f, %.0f simulated seconds"):format(plain, plain_adapted, average.history[rounds].time))

t.test("FedBuff with a buffer of 10 reaches FedAvg within a point", function()
  -- Twice as many parties at a time as the buffer holds. Stale changes count less, which a longer step of the server makes up for.
  local got, buffered = run(S.FedBuff { buffer = 10, server_lr = 1.5, settings = settings }, { sample = 2 * chosen })
  print(("FedBuff %.4f, %.0f simulated seconds"):format(got, buffered.history[rounds].time))
  assert(got >= plain - 0.01, ("%.4f, and FedAvg %.4f"):format(got, plain))
  assert(buffered.history[rounds].time < average.history[rounds].time)
end)

t.test("Reptile reaches FedAvg within a point", function()
  local got, meta = run(S.Reptile { server_lr = 1.0, final_lr = 0.5, rounds = rounds, settings = { lr = 0.1, epochs = 3 } })
  local after = adapted(meta.weights)
  print(("Reptile %.4f, adapted %.4f"):format(got, after))
  assert(after >= plain_adapted - 0.01, ("%.4f, and FedAvg %.4f"):format(after, plain_adapted))
end)

t.test("Per-FedAvg reaches FedAvg within a point", function()
  local got, meta = run(S.PerFedAvg { alpha = 0.1, settings = { lr = 0.15, epochs = 3 } })
  local after = adapted(meta.weights)
  print(("Per-FedAvg %.4f, adapted %.4f"):format(got, after))
  assert(after >= plain_adapted - 0.01, ("%.4f, and FedAvg %.4f"):format(after, plain_adapted))
end)

t.finish()
