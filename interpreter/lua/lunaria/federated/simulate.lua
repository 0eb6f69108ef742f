-- ms.federated.simulate: a federated training of many clients on one machine.
--
-- Which clients ask, which are taken and whose updates come in time is decided by the state machine of the server's rounds
-- (population.lua); the clients whose updates were taken are then trained (cohort.lua), and any strategy of the server makes the new
-- weights of their updates.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local adversaries = require "lunaria.federated.adversaries"
local chances = require "lunaria.federated.chances"
local partition = require "lunaria.federated.partition"
local population = require "lunaria.population"
local Simulation = require "lunaria.federated.simulation"
local strategies = require "lunaria.federated.strategies"
local check_settings = require("lunaria.federated.client_rules.train").check_settings
local strategy_of = require("lunaria.federated.strategies.strategy").of

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local WHERE = "simulate"

local function callable(value) return arguments.is_callable(value), "a function" end
local function integer(value) return math.type(value) ~= nil and math.tointeger(value) ~= nil, "an integer" end
local function number_or_list(value) return math.type(value) ~= nil or type(value) == "table", "a number or a list of numbers" end
local function number_or_function(value)
  return math.type(value) ~= nil or type(value) == "table" or arguments.is_callable(value), "a number, a list of numbers or a function"
end
local function any() return true, "" end

local known = {
  model = function(value) return cells.is_cell(value), "a cell" end, data = "table",
  partition = function(value) return class.is_a(value, partition.Partition), "a partition, as ms.federated.partition.iid(...)" end,
  clients = arguments.positive, rounds = arguments.positive, sample = "number", strategy = any, rule = any, settings = "table",
  loss = any, batch_size = arguments.positive, evaluate = any, evaluate_every = arguments.positive, target = "number",
  speeds = number_or_list, availability = number_or_function, dropout = "number", stragglers = "table", faults = "table",
  adversaries = "table", update_ratio = "number", window = integer, seed = integer, threads = arguments.positive,
  group = arguments.positive,
  one_by_one = "boolean", shuffle = "boolean", summary = any, callback = callable, limit = "number",
}

-- One loss for each sample.
local losses = {
  cross_entropy = function(logits, labels) return ops.cross_entropy(logits, labels, nil, -100, "none") end,
  mse = function(outputs, targets)
    local squares = (outputs - targets) ^ 2
    return squares.ndim > 1 and ops.mean(ops.reshape(squares, { squares.shape[1], -1 }), 1) or squares
  end,
}

local function loss_of(loss)
  if loss == nil then return losses.cross_entropy end
  if losses[loss] then return losses[loss] end
  if type(loss) == "string" or not arguments.is_callable(loss) then
    fail(WHERE, "loss must be 'cross_entropy', 'mse', or a function of outputs and labels that gives the loss of each sample, got "
      .. describe(loss))
  end
  return loss
end

local function is_pair(value) return type(value) == "table" and #value == 2 and ms.is_tensor(value[1]) and ms.is_tensor(value[2]) end

local function check_pair(name, x, y)
  if x.ndim == 0 or y.ndim == 0 or x.shape[1] ~= y.shape[1] or x.shape[1] == 0 then
    fail(WHERE, ("%s: inputs %s and labels %s must have a row for each sample"):format(name, tostring(x.shape), tostring(y.shape)))
  end
end

-- All samples in one tensor each, and which of them each client has.
local function samples_of(o)
  local data, parts = o.data, o.partition
  if is_pair(data) then
    check_pair("data", data[1], data[2])
    if not parts and not o.clients then fail(WHERE, "clients or a partition is needed", "clients = 100") end
    parts = parts or partition.iid(data[2], o.clients, { seed = o.seed })
    if not parts.shift then
      for client = 1, #parts do parts:take(client, data[2]) end
      return data[1], data[2], parts
    end
  elseif parts then
    fail(WHERE, "with a partition data must be { inputs, labels }, got " .. describe(data))
  end
  -- Each client's own tensors, behind each other.
  local xs, ys, rows, from = {}, {}, {}, 0
  for client = 1, parts and #parts or #data do
    local x, y
    if parts then
      x, y = parts:take(client, data[1], data[2])
    else
      if not is_pair(data[client]) then
        fail(WHERE, ("data must be { inputs, labels }, or a list of such pairs for the clients; data[%d] is %s"):format(
          client, describe(data[client])))
      end
      x, y = data[client][1], data[client][2]
      check_pair(("data[%d]"):format(client), x, y)
    end
    xs[client], ys[client] = x, y
    rows[client] = ops.arange(from, from + x.shape[1])
    from = from + x.shape[1]
  end
  if #xs == 0 then fail(WHERE, "data must be { inputs, labels }, or a list of such pairs for the clients, got " .. describe(data)) end
  return ops.concat(xs, 0), ops.concat(ys, 0), partition.Partition(rows)
end

-- How many clients a round takes.
local function count_of(sample, clients)
  if sample == nil then return clients end
  if math.type(sample) == "integer" and sample >= 1 then
    return sample <= clients and sample or fail(WHERE, ("sample is %d, and there are %d clients"):format(sample, clients))
  end
  if not (sample > 0 and sample <= 1) then
    fail(WHERE, "sample must be a share above 0 and at most 1, or an integer, got " .. describe(sample))
  end
  return math.max(1, math.floor(sample * clients + 0.5))
end

local fault_names = { lost = "number", duplicated = "number", replayed = "number", restart = "number", retry = integer }
local straggler_names = { share = "number", factor = "number", work = arguments.one_of("partial", "all") }

-- Milliseconds that a client needs for one sample once; the median one needs 1.
local function speeds_of(o, clients)
  local list = {}
  local stragglers = arguments.options(WHERE, o.stragglers, straggler_names, "{ share = 0.5, factor = 10 }")
  local share = check.probability(WHERE, "stragglers.share", stragglers.share or 0.0)
  local slow, partial = {}, stragglers.work == "partial"
  local factor = check.number_positive(WHERE, "stragglers.factor", stragglers.factor or 10)
  for _, client in ipairs(chances.of(o.seed, "stragglers"):sample(clients, math.floor(share * clients + 0.5))) do slow[client] = true end
  if type(o.speeds) == "table" and #o.speeds ~= clients then
    fail(WHERE, ("speeds has %d numbers, and there are %d clients"):format(#o.speeds, clients))
  end
  for client = 1, clients do
    local speed
    if type(o.speeds) == "table" then
      speed = check.number_positive(WHERE, ("speeds[%d]"):format(client), o.speeds[client])
    else
      local spread = check.number_not_negative(WHERE, "speeds", o.speeds or 0.0)
      speed = math.exp(-spread * chances.of(o.seed, "speed", 0, client):normal())
    end
    list[client] = (slow[client] and not partial and factor or 1) / speed
  end
  return list, slow, partial
end

-- Which clients do not ask in a round, as a list of 0 and 1; empty: all ask.
local function away_of(o, clients, round)
  local availability, list = o.availability, {}
  if availability == nil or availability == 1 then return list end
  for client = 1, clients do
    local chance = availability
    if type(chance) == "table" and not arguments.is_callable(chance) then
      chance = chance[client]
    elseif arguments.is_callable(chance) then
      chance = availability(client, round)
    end
    if type(chance) == "boolean" then chance = chance and 1 or 0 end
    if math.type(chance) == nil or not (chance >= 0 and chance <= 1) then
      fail(WHERE, ("the availability of client %d in round %d must be a probability, true or false, got %s"):format(
        client, round, describe(chance)))
    end
    list[client] = chances.of(o.seed, "availability", round, client):chance(chance) and 0 or 1
  end
  return list
end

local function strategy_from(o)
  local given = o.strategy
  if given == nil then given = "FedAvg" end
  if type(given) == "string" then given = strategies[given]() end
  return strategy_of(WHERE, given), given
end

local function machine_of(o, clients, count, strategy)
  local faults = arguments.options(WHERE, o.faults, fault_names, "{ lost = 0.1 }")
  local settings = { devices = clients, seed = o.seed, lists = true, iterations = o.rounds, start_threshold = count, start_window = 600000,
    update_ratio = o.update_ratio or 1.0, update_window = o.window or 600000, global_window = 1 << 40, dropout = o.dropout,
    lost = faults.lost, duplicated = faults.duplicated, replayed = faults.replayed, restart = faults.restart, retry = faults.retry }
  if strategy.asynchronous then
    settings.asynchronous, settings.buffer, settings.concurrency = true, strategy.buffer, count
    settings.max_staleness = strategy.max_staleness or 20
  end
  return population.make(settings)
end

-- The settings of a round's clients: what the strategy says, over what the caller says.
local function settings_of(o, strategy, round)
  local settings = { lr = 0.1, epochs = 1 }
  for key, value in pairs(o.settings or {}) do settings[key] = value end
  for key, value in pairs(strategies.configure(strategy, round)) do settings[key] = value end
  settings.rule = o.rule or settings.rule
  check_settings(settings, {})
  return settings
end

-- What of the settings the rule gets; the rest is about batches, and about what is sent.
local about_others = { epochs = true, steps = true, rule = true, sends = true, initial_loss = true }
local about_features = { personal = true, frozen = true }

local function for_rule(settings, one_by_one)
  local own = {}
  for key, value in pairs(settings) do
    if not about_others[key] and (one_by_one or not about_features[key]) then own[key] = value end
  end
  return own
end

-- f(x) for so many rows at a time.
local function evaluated(network, x, y, loss)
  local right, sum, n = 0, 0.0, x.shape[1]
  local forward = ms.jit(function(inputs, labels)
    local outputs = network(inputs)
    local hits = outputs.ndim == 2 and not labels:is_floating_point()
      and ops.sum(ops.equal(ops.argmax(outputs, 1), labels:astype(ms.int64)):astype(ms.float32)) or ops.zeros({}, ms.float32)
    return ops.sum(loss(outputs, labels)), hits
  end)
  return function()
    local training = network.training
    network:set_train(false)
    right, sum = 0, 0.0
    for from = 0, n - 1, 1000 do
      local part = { ms.slice(from, math.min(n, from + 1000)) }
      local losses_sum, hits = forward(x[part], y[part])
      sum, right = sum + losses_sum:item(), right + hits:item()
    end
    network:set_train(training)
    return right / n, sum / n
  end
end

--- A federated training of many clients on this machine, as the server would do it: the same rounds, strategies and client rules. Gives a
--- Simulation: its history, the weights, plots; the model has these weights afterwards. Every run with the same options gives the same
--- bits, on any number of threads.
---
--- options: model (a cell), data ({ inputs, labels } with a partition or a number of clients, or a list of such pairs, one for each
--- client), partition, clients, rounds (10), sample (how many clients take part: a share up to 1.0, or an integer; all if nil), strategy
--- (a name or an object of ms.federated.strategies, or a table of two functions; "FedAvg"), rule (a client rule; that of the strategy if
--- nil), settings (of the clients: lr 0.1, epochs 1, steps, momentum, weight_decay and what the rule knows; what the strategy says counts
--- more), batch_size (all samples at once if nil), shuffle (true: batches are drawn anew in each epoch), loss ("cross_entropy", "mse", or
--- a function of outputs and labels that gives the loss of each sample), evaluate ({ inputs, labels }), evaluate_every (1), target (an
--- accuracy at which it ends).
---
--- Devices: speeds (a number for each client, or the deviation of their logarithm, 0.0; a speed of 1 is a millisecond for each sample),
--- availability (a chance, a list of chances, or a function of client and round), dropout (the chance that a client that was taken sends
--- nothing), stragglers ({ share, factor, work }: factor times as slow; with work = "partial" they do part of their epochs instead),
--- update_ratio (1.0: the share of updates that ends a round), window (600000: milliseconds after which it fails), faults ({ lost,
--- duplicated, replayed, restart, retry }: of messages and of the server), adversaries ({ share | ids, attack, strength }: "label_flip",
--- "nan", "noise", "random", "scale", "sign_flip", or a function of w, w0 and { round, client, stream }), limit (of numbers in updates).
---
--- seed (0), threads, group (clients side by side: from 2 up it changes no bit; as many as the caches hold if nil), one_by_one (true
--- trains clients in turn on the model itself, which networks with running means, dropout or features that clients keep for themselves
--- need), summary (a folder for ms.train.SummaryRecord), callback (a function of each record of the history; true ends the training).
---     > x = ms.randn(64, 4)
---     > y = ms.ops.greater(x["...,0"], 0):astype(ms.int32)
---     > net = ms.nn.Dense(4, 2)
---     > run = ms.federated.simulate { model = net, data = { x, y }, clients = 4, rounds = 3, batch_size = 8, evaluate = { x, y } }
---     > #run.history, run.history[3].updates, run.history[3].accuracy > 0.5 --> 3	4	true
local function simulate(options)
  local o = {}
  for key, value in pairs(arguments.options(WHERE, options, known, "{ model = net, data = { x, y }, clients = 10 }")) do o[key] = value end
  for _, name in ipairs { "model", "data" } do
    if o[name] == nil then fail(WHERE, name .. " is missing") end
  end
  o.seed, o.rounds = check.not_negative(WHERE, "seed", o.seed or 0), o.rounds or 10
  local x, y, parts = samples_of(o)
  local clients = #parts
  if o.clients and o.clients ~= clients then fail(WHERE, ("clients is %d, and the data are of %d"):format(o.clients, clients)) end
  for client, size in ipairs(parts:sizes()) do
    if size == 0 then fail(WHERE, ("client %d has no samples"):format(client)) end
  end
  local threads = ms.get_num_threads()
  local training = o.model.training
  if o.threads then ms.set_num_threads(o.threads) end
  local strategy, given = strategy_from(o)
  local ok, result = pcall(Simulation.run, {
    o = o, x = x, y = y, parts = parts, clients = clients, count = count_of(o.sample, clients), strategy = strategy, given = given,
    loss = loss_of(o.loss), attackers = adversaries.of(o.adversaries, clients, o.seed), machine_of = machine_of, speeds_of = speeds_of,
    away_of = away_of, settings_of = settings_of, for_rule = for_rule, evaluated = evaluated,
  })
  if o.threads and threads then ms.set_num_threads(threads) end
  o.model:set_train(training)
  if not ok then error(result, 0) end
  return result
end

return { simulate = simulate }
