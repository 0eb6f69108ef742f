-- ms.federated.simulate: trainings of many clients on one machine. Takes some seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local federated, nn, ops = ms.federated, ms.nn, ms.ops
local partition = federated.partition

ms.set_seed(1)
local centres = ops.randn(4, 6) * 2
local y = ms.arange(240) % 4
local x = ops.index_select(centres, 0, y) + ops.randn(240, 6)
local labels = y:astype(ms.int32)

local function make()
  ms.set_seed(7)
  return nn.SequentialCell(nn.Dense(6, 8), nn.Tanh(), nn.Dense(8, 4))
end

local function run(options)
  local all = { model = make(), data = { x, labels }, clients = 12, rounds = 4, batch_size = 5, seed = 3, settings = { lr = 0.2 } }
  for key, value in pairs(options or {}) do all[key] = value end
  if all.partition then all.clients = nil end
  return federated.simulate(all)
end

-- Federated averaging written out: each client's batches in turn, on the network itself.
local function by_hand(rounds, rows, batch, rate, epochs, seed)
  local chances = require "lunaria.federated.chances"
  local net = make()
  local global = federated.FeatureMap(net)
  for round = 1, rounds do
    local updates = {}
    for client = 1, #rows do
      global:load_into(net)
      local step = ms.value_and_grad(function(some)
        return ops.cross_entropy(net(ops.index_select(x, 0, some)), ops.index_select(labels, 0, some))
      end, nil, net:trainable_params())
      local n = rows[client].shape[1]
      for epoch = 1, epochs do
        local order = ops.index_select(rows[client], 0, chances.of(seed, "batches", round, client * 4096 + epoch):permutation(n))
        for from = 0, n - 1, batch do
          local _, gradients = step(order[{ ms.slice(from, math.min(n, from + batch)) }])
          for i, parameter in ipairs(net:trainable_params()) do parameter:assign(parameter - gradients[i] * rate) end
        end
      end
      updates[client] = { id = client, samples = n, weights = federated.FeatureMap(net) }
    end
    global = federated.strategies.aggregate(federated.strategies.FedAvg(), { number = round }, global, updates)
  end
  return global:vector()
end

local function bits_equal(a, b) return ops.all(ops.equal(a, b)):item() end

t.test("full batches give the bits of a training written out", function()
  local rows = partition.iid(240, 12, { seed = 3 })
  local simulated = run { rounds = 3, settings = { lr = 0.2, epochs = 2 } }
  t.equal(bits_equal(simulated.weights:vector(), by_hand(3, rows, 5, 0.2, 2, 3)), true)
end)

t.test("batches that are not full agree with a training written out", function()
  local rows = partition.by_quantity(240, 6, { seed = 2, min_size = 4 })
  local simulated = run { partition = rows, rounds = 2, settings = { lr = 0.2, epochs = 2 } }
  t.near(simulated.weights:vector(), by_hand(2, rows, 5, 0.2, 2, 3), 1e-5)
end)

t.test("groups, threads and turns change no bit", function()
  local rows = partition.dirichlet(labels, 12, { alpha = 0.5, seed = 2, min_size = 3 })
  for _, strategy in ipairs { "FedAvg", "FedProx" } do
    local want = run { partition = rows, group = 1, threads = 1, strategy = strategy }:digest()
    for _, how in ipairs { { 2, 2 }, { 5, 1 }, { 12, 2 } } do
      t.equal(run { partition = rows, group = how[1], threads = how[2], strategy = strategy }:digest(), want)
    end
  end
end)

t.test("a seed repeats a run, and another one does not", function()
  local settings = { sample = 0.5, dropout = 0.2, update_ratio = 0.5, speeds = 0.5, faults = { lost = 0.1, duplicated = 0.1 } }
  local one, again = run(settings), run(settings)
  t.equal(one:digest(), again:digest())
  t.equal(one.history[4].clients, again.history[4].clients)
  settings.seed = 4
  assert(run(settings):digest() ~= one:digest())
end)

t.test("lost, repeated and old messages and servers that start anew change no bit", function()
  local plain = run { sample = 6 }
  local faulty = run { sample = 6, faults = { duplicated = 0.5, replayed = 0.5, restart = 0.5 } }
  t.equal(faulty:digest(), plain:digest())
  local restarts, repeated = 0, 0
  for _, record in ipairs(faulty.history) do restarts, repeated = restarts + record.restarts, repeated + record.repeated end
  assert(restarts > 0 and repeated > 0)
  -- All take part: lost messages cost time alone.
  local lost = run { faults = { lost = 0.4 } }
  t.equal(lost:digest(), run():digest())
  assert(lost.history[4].time > run().history[4].time)
end)

t.test("it learns, and its history says so", function()
  local seen = {}
  local simulated = run { rounds = 8, evaluate = { x, labels }, callback = function(record) seen[#seen + 1] = record.round end }
  local last = simulated.history[8]
  assert(last.accuracy > 0.8 and last.loss < simulated.history[1].loss and last.test_loss < simulated.history[1].test_loss)
  t.equal(seen, { 1, 2, 3, 4, 5, 6, 7, 8 })
  t.equal({ last.updates, #last.clients, #last.refused }, { 12, 12, 0 })
  t.equal({ last.bytes_up, last.bytes_down }, { 12 * 4 * simulated.weights:size(), 12 * 4 * simulated.weights:size() })
  assert(simulated:rounds_to(0.5) < 8 and simulated:rounds_to(1.1) == nil)
  t.equal(simulated:plot("loss", { other = simulated }):svg():find "<svg" ~= nil, true)
  assert(tostring(simulated):find "accuracy")
end)

t.test("the model has the weights afterwards", function()
  local net = make()
  local simulated = run { model = net }
  t.equal(bits_equal(federated.FeatureMap(net):vector(), simulated.weights:vector()), true)
end)

t.test("a target ends it, and so does a callback", function()
  local simulated = run { rounds = 50, evaluate = { x, labels }, target = 0.6 }
  assert(#simulated.history < 50 and simulated.history[#simulated.history].accuracy >= 0.6)
  t.equal(#run({ callback = function(record) return record.round == 2 end }).history, 2)
end)

t.test("evaluation now and then", function()
  local history = run({ rounds = 5, evaluate = { x, labels }, evaluate_every = 2 }).history
  t.equal({ history[1].accuracy == nil, history[2].accuracy ~= nil, history[3].accuracy == nil, history[5].accuracy ~= nil },
    { true, true, true, true })
end)

t.test("a strategy of two functions gets every update, by client", function()
  local ids, samples = {}, {}
  local mine = { configure = function() return { lr = 0.1 } end, aggregate = function(_, round, global, updates)
    assert(round.clients == 6 and round.population == 12)
    ids[round.number] = {}
    for i, update in ipairs(updates) do ids[round.number][i], samples[#samples + 1] = update.id, update.samples end
    return global:with_vector(updates[1].weights:vector())
  end }
  local simulated = run { strategy = mine, sample = 6, rounds = 3 }
  for round = 1, 3 do
    t.equal(ids[round], simulated.history[round].clients)
    for i = 2, 6 do assert(ids[round][i] > ids[round][i - 1]) end
  end
  t.equal(samples[1], 20)
end)

t.test("the mean of updates is that of all updates one by one", function()
  -- The same strategy, once by the sum alone and once with every update.
  local Mine = federated.strategies.FedAvg:extend "Mine"
  local by_mean = run { partition = partition.by_quantity(240, 12, { seed = 2, min_size = 4 }), strategy = federated.strategies.FedAvgM() }
  Mine.secure = false
  local plain = setmetatable(Mine(), Mine)
  local one_by_one = run { strategy = plain }
  t.equal(one_by_one:digest(), run():digest())
  assert(by_mean.history[4].updates == 12)
end)

t.test("stragglers are late, or do less", function()
  local late = run { stragglers = { share = 0.5, factor = 100 }, update_ratio = 0.5, rounds = 3 }
  t.equal(late.history[2].updates, 6)
  local partial = run { stragglers = { share = 1.0, work = "partial" }, settings = { lr = 0.2, epochs = 6 }, rounds = 2 }
  assert(partial:digest() ~= run({ settings = { lr = 0.2, epochs = 6 }, rounds = 2 }):digest())
  t.equal(partial.history[2].updates, 12)
end)

t.test("who is away does not take part", function()
  local history = run({ availability = function(client) return client > 4 end, sample = 8, rounds = 3 }).history
  for _, record in ipairs(history) do t.equal(record.clients, { 5, 6, 7, 8, 9, 10, 11, 12 }) end
  local failed = run({ availability = function(client) return client > 4 end, sample = 9, rounds = 2 }).history
  t.equal({ failed[1].valid, failed[1].updates, type(failed[1].reason) }, { false, 0, "string" })
end)

t.test("adversaries spoil a mean; updates that are not finite are refused", function()
  local function accuracy(adversaries)
    return run({ rounds = 6, evaluate = { x, labels }, adversaries = adversaries }).history[6].accuracy
  end
  local honest = accuracy(nil)
  assert(accuracy { share = 0.4, attack = "sign_flip", strength = 5.0 } < honest - 0.1)
  local spoiled = run { adversaries = { ids = { 2, 5 }, attack = "nan" } }
  t.equal(#spoiled.history[1].refused, 2)
  t.equal(spoiled.history[1].refused[1].id, 2)
  t.equal(spoiled.history[4].updates, 10)
  t.equal(ops.all(ops.isfinite(spoiled.weights:vector())):item(), true)
  local mine = run { adversaries = { ids = { 1 }, attack = function(w, w0, about)
    assert(about.client == 1 and about.round >= 1 and about.stream)
    return w0 + (w - w0) * 2
  end } }
  assert(mine:digest() ~= run():digest())
  assert(run({ adversaries = { ids = { 1 }, attack = "label_flip" } }):digest() ~= run():digest())
end)

t.test("clients' own tensors, own losses, data of their own sizes", function()
  local data = {}
  for client = 1, 4 do data[client] = { x[{ ms.slice(client * 10, client * 20) }], x[{ ms.slice(client * 10, client * 20) }] * 2 } end
  ms.set_seed(1)
  local simulated = federated.simulate { model = nn.Dense(6, 6), data = data, loss = "mse", rounds = 20, batch_size = 4,
    settings = { lr = 0.3 } }
  assert(simulated.history[20].loss < 0.2 * simulated.history[1].loss)
  local own = federated.simulate { model = nn.Dense(6, 6), data = data, rounds = 2,
    loss = function(outputs, targets) return ops.mean(ops.abs(outputs - targets), 1) end }
  assert(own.history[2].loss < own.history[1].loss)
end)

-- Every strategy, side by side and in turn: the rules run under vmap there, and on the network itself here.
local S = federated.strategies
local strategies = {
  FedAvg = S.FedAvg { server_lr = 0.7 }, unweighted = S.FedAvg { weighted = false }, FedAvgM = S.FedAvgM, FedProx = S.FedProx { mu = 0.5 },
  Ditto = S.Ditto, FedAdam = S.FedAdam, FedYogi = S.FedYogi, FedAdagrad = S.FedAdagrad, FedNova = S.FedNova, Scaffold = S.Scaffold,
  QFedAvg = S.QFedAvg { settings = { lr = 0.2 } }, PerFedAvg = S.PerFedAvg, Reptile = S.Reptile, FedAsync = S.FedAsync,
  FedBuff = S.FedBuff { buffer = 5 }, Median = S.Median, TrimmedMean = S.TrimmedMean, GeometricMedian = S.GeometricMedian,
}
for name, strategy in pairs(strategies) do
  t.test(name .. " gives the same side by side and in turn", function()
    local rows = partition.by_quantity(240, 12, { seed = 2, min_size = 5 })
    if name == "PerFedAvg" then rows = nil end
    local function go(one_by_one)
      local own = strategy
      if getmetatable(own).__name == "class" then own = own() end
      return run { strategy = own, partition = rows, one_by_one = one_by_one, sample = own.asynchronous and 8 or 12, rounds = 3,
        settings = { lr = 0.2, momentum = name == "FedNova" and 0.5 or nil } }
    end
    local beside, in_turn = go(false), go(true)
    t.near(beside.weights:vector(), in_turn.weights:vector(), 2e-5)
    t.equal(#beside.history[3].refused, 0)
    for i = 1, 3 do
      t.equal(beside.history[i].clients, in_turn.history[i].clients)
      t.near(beside.history[i].loss, in_turn.history[i].loss, 1e-4)
    end
  end)
end

t.test("clients keep features of their own", function()
  local function bn()
    ms.set_seed(2)
    return nn.SequentialCell(nn.Dense(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dense(8, 4))
  end
  t.fails({ "one_by_one" }, function() run { model = make(), strategy = S.PersonalHead { head = { "2" } } } end)
  local simulated = run { model = bn(), strategy = S.FedBN(), one_by_one = true, rounds = 3 }
  t.equal(simulated.history[3].updates, 12)
  assert(simulated.weights:size() < federated.FeatureMap(bn()):size())
end)

t.test("robust strategies withstand what spoils a mean", function()
  local function accuracy(strategy)
    return run({ rounds = 8, strategy = strategy, evaluate = { x, labels },
      adversaries = { share = 0.25, attack = "sign_flip", strength = 8.0 } }).history[8].accuracy
  end
  local mean = accuracy(S.FedAvg())
  for _, strategy in ipairs { S.Median(), S.TrimmedMean { faulty = 3 }, S.GeometricMedian(), S.MultiKrum() } do
    local robust = accuracy(strategy)
    assert(robust > mean + 0.1 and robust > 0.75, ("%g against %g"):format(robust, mean))
  end
end)

t.test("networks with running means are trained in turn, and clients keep what is their own", function()
  local function bn()
    ms.set_seed(2)
    return nn.SequentialCell(nn.Dense(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout { p = 0.2 }, nn.Dense(8, 4))
  end
  t.fails({ "is not trained", "one_by_one" }, function() run { model = bn() } end)
  t.fails({ "draws random numbers" }, function() run { model = nn.SequentialCell(nn.Dense(6, 4), nn.Dropout { p = 0.2 }) } end)
  local one = run { model = bn(), one_by_one = true, rounds = 6, evaluate = { x, labels } }
  t.equal(one:digest(), run({ model = bn(), one_by_one = true, rounds = 6 }):digest())
  assert(one.history[6].accuracy > 0.7, one.history[6].accuracy)
  -- The same rule on networks without state.
  t.near(run({ one_by_one = true, rounds = 2 }).weights:vector(), run({ rounds = 2 }).weights:vector(), 1e-5)
end)

t.test("a record of summaries", function()
  local folder = os.tmpname()
  os.remove(folder)
  run { summary = folder, evaluate = { x, labels } }
  local told = ms.insight.read(folder)
  assert(told)
  for _, name in ipairs(ms.io.list_folder(folder)) do os.remove(folder .. "/" .. name) end
  os.remove(folder)
end)

t.test("mistakes are named", function()
  local function fails(text, options) t.fails({ text }, function() return run(options) end) end
  t.fails({ "model is missing" }, function() return federated.simulate { data = { x, labels } } end)
  fails("there is no option 'round'", { round = 3 })
  fails("did you mean 'rounds'?", { round = 3 })
  fails("sample is 13, and there are 12 clients", { sample = 13 })
  fails("sample must be a share", { sample = 1.5 })
  fails("settings.lr", { settings = { lr = 0 } })
  fails("there is no strategy 'FedAgv'", { strategy = "FedAgv" })
  fails("there is no client rule", { rule = "sdg" })
  fails("must have a row for each sample", { data = { x, labels[{ ms.slice(0, 3) }] } })
  fails("adversaries are given by share or by ids", { adversaries = {} })
  fails("clients are numbered from 1 to 12", { adversaries = { ids = { 13 } } })
  fails("lost must be", { faults = { lost = 1.5 } })
  fails("speeds has 2 numbers", { speeds = { 1, 2 } })
  fails("availability of client 1", { availability = 2 })
  fails("loss must be", { loss = "mae" })
end)

t.finish()
