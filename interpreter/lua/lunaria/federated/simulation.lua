-- A simulated federated training as it runs, and what is left of it: ms.federated.simulate gives one.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local adversaries = require "lunaria.federated.adversaries"
local chances = require "lunaria.federated.chances"
local client_rules = require "lunaria.federated.client_rules"
local Cohort = require "lunaria.federated.cohort"
local FeatureMap = require("lunaria.federated.feature_map").FeatureMap
local population = require "lunaria.population"
local strategies = require "lunaria.federated.strategies"
local Turns = require "lunaria.federated.turns"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local Simulation = class.Object:extend("Simulation")
Simulation._called = "simulation"
Simulation._parameters = ""
Simulation._doc = [[What ms.federated.simulate gives. history: a list with a record of each round: { round, valid, reason, updates,
clients (the numbers of those whose updates were used), refused ({ id, reason } of the others), loss (the mean of the clients' last
epoch), accuracy and test_loss (where they were evaluated), bytes_down, bytes_up (of weights and tensors beside them), time (simulated
seconds), started, late, lost, repeated, restarts }. weights: the feature map. strategy: as it is after the last round.

  > x, y = ms.randn(32, 2), ms.random.randint(0, 2, { 32 })
  > run = ms.federated.simulate { model = ms.nn.Dense(2, 2), data = { x, y }, clients = 4, rounds = 2 }
  > run.history[2].round, run.history[2].bytes_up --> 2	96]]

function Simulation:init() fail("Simulation", "is made by ms.federated.simulate{ ... }") end

function Simulation:__tostring()
  local last = self.history[#self.history]
  return ("Simulation<%d rounds%s>"):format(#self.history, last and last.accuracy and (", accuracy %.4f"):format(last.accuracy) or "")
end

--- The first round after which the accuracy was at least so high; nil if none was. accuracy: from 0 to 1.
---     > x = ms.randn(64, 2)
---     > y = ms.ops.greater(x["...,0"], 0):astype(ms.int32)
---     > run = ms.federated.simulate { model = ms.nn.Dense(2, 2), data = { x, y }, clients = 4, rounds = 4, evaluate = { x, y } }
---     > run:rounds_to(2.0) == nil --> true
function Simulation:rounds_to(accuracy)
  accuracy = check.number("rounds_to", "accuracy", accuracy)
  for _, record in ipairs(self.history) do
    if record.accuracy and record.accuracy >= accuracy then return record.round end
  end
  return nil
end

--- A curve of the history. what: "accuracy" (the default), "loss", "test_loss", "bytes_up", "bytes_down", "updates" or "time". others:
--- further simulations by name, whose curves stand beside.
---     > x, y = ms.randn(32, 2), ms.random.randint(0, 2, { 32 })
---     > run = ms.federated.simulate { model = ms.nn.Dense(2, 2), data = { x, y }, clients = 4, rounds = 2 }
---     > run:plot("loss"):vega().title --> loss
function Simulation:plot(what, others)
  what, others = arguments.named("plot", { "what", "others", last_has_names = true }, what, others)
  what = check.choice("Simulation:plot", "what", what or "accuracy",
    { "accuracy", "bytes_down", "bytes_up", "loss", "test_loss", "time", "updates" })
  local plot
  local function add(run, label)
    local x, y = {}, {}
    for _, record in ipairs(run.history) do
      if record[what] then x[#x + 1], y[#y + 1] = record.round, record[what] end
    end
    if #x == 0 then fail("Simulation:plot", "no round has " .. what, what == "accuracy" and "evaluate = { inputs, labels }" or nil) end
    local options = { title = what, x_label = "round", label = label }
    plot = plot and plot:line(x, y, options) or ms.plot.line(x, y, options)
  end
  local names = {}
  for name in pairs(others or {}) do names[#names + 1] = name end
  table.sort(names)
  add(self, #names > 0 and (self.strategy._name or "this") or nil)
  for _, name in ipairs(names) do add(others[name], name) end
  return plot
end

--- A number of 16 hexadecimal digits that stands for the bits of the weights: two runs that give the same have the same weights.
---     > x, y = ms.randn(32, 2), ms.random.randint(0, 2, { 32 })
---     > function net() return ms.nn.Dense(2, 2, { weight_init = "ones", has_bias = false }) end
---     > function go() return ms.federated.simulate { model = net(), data = { x, y }, clients = 4 } end
---     > go():digest() == go():digest() --> true
function Simulation:digest()
  local h = chances.key(0, "digest")
  local values = self.weights:vector(ms.float64):tolist()
  for i = 1, #values do h = (h ~ ("<i8"):unpack(("<d"):pack(values[i]))) * 0x100000001b3 + (h >> 29) end
  return ("%016x"):format(h)
end

-- Eight terms of a weighted sum in one pass.
local WIDTH = 8
local add_terms

local function weighted_mean(vectors, shares)
  local f64 = ms.float64
  add_terms = add_terms or ms.jit(function(sum, s, ...)
    local terms = { ... }
    for i = 1, #terms do sum = sum + terms[i]:astype(f64) * s[i - 1] end
    return sum
  end)
  -- -0 + x is x for every x.
  local sum = ops.full_like(vectors[1]:astype(f64), -0.0)
  for from = 1, #vectors, WIDTH do
    local to = math.min(#vectors, from + WIDTH - 1)
    sum = add_terms(sum, ms.tensor({ table.unpack(shares, from, to) }, f64), table.unpack(vectors, from, to))
  end
  return sum
end

local function most_of(w) return ops.amax(ops.abs(w), 0):item() end

-- Whether the strategy's result is the mean of the updates by their samples, which is then taken in one pass, to the same bits.
local function takes_mean(strategy)
  return strategy.aggregate == strategies.FedAvg.aggregate and strategy.weighted and strategy.server_lr == 1 and strategy.sends == "weights"
end

local Run = {}
Run.__index = Run

local function copied(map, vector) return map:with_vector(vector) end

-- What a client sends: its vector, after an attack if it is an adversary's.
function Run:received(job, w)
  local sent = adversaries.sent(self.attackers, job.client, self.number, w, job.start)
  return sent, not rawequal(sent, w)
end

-- The jobs of the updates that were taken, in the order of the clients.
function Run:jobs(taken, settings)
  local jobs = {}
  for i = 1, #taken, 2 do
    local client, started = taken[i] + 1, taken[i + 1]
    local epochs = settings.epochs
    if self.partial and self.slow[client] then epochs = 1 + chances.of(self.o.seed, "partial", started, client):below(epochs) end
    jobs[#jobs + 1] = { client = client, started = started, staleness = self.number - started, start = self.versions[started],
      epochs = epochs, most = settings.steps }
  end
  table.sort(jobs, function(a, b) return a.client < b.client end)
  return jobs
end

-- The new feature map by a strategy that takes the mean.
function Run:by_mean(round, received)
  local limit, total, refused, used = self.o.limit or 1e10, 0, {}, {}
  for _, one in ipairs(received) do
    if one.most <= limit then
      used[#used + 1] = one
      total = total + one.samples
    else
      refused[#refused + 1] = { id = one.id, reason = ("the weights hold %s, above the limit of %g"):format(one.most, limit) }
    end
  end
  if #used == 0 then return self.global, refused, used end
  local vectors, shares = {}, {}
  for i, one in ipairs(used) do vectors[i], shares[i] = one.w, one.samples / total end
  local mean = weighted_mean(vectors, shares)
  -- In float64: the strategy rounds once.
  local list, parts = {}, self.global:split(mean, ms.float64)
  for i, name in ipairs(self.global:names "aggregated") do list[i] = { name, parts[i] } end
  for name, tensor in pairs(self.personal) do list[#list + 1] = { name, tensor } end
  local update = { id = 0, samples = total, weights = FeatureMap(list), metrics = {}, extra = {}, staleness = 0 }
  local map, wrong = strategies.aggregate(self.c.given, round, self.global, { update }, { limit = limit })
  return map, #wrong > 0 and wrong or refused, used
end

function Run:by_all(round, received)
  local updates, by_id = {}, {}
  for i, one in ipairs(received) do
    local w = one.w
    if self.strategy.sends == "difference" then w = w - one.start end
    updates[i] = { id = one.id, samples = one.samples, weights = copied(self.global, w), metrics = one.metrics, extra = one.extra,
      staleness = one.staleness }
    by_id[one.id] = one
  end
  local map, refused = strategies.aggregate(self.c.given, round, self.global, updates, { limit = self.o.limit })
  for _, row in ipairs(refused) do by_id[row.id] = nil end
  local used = {}
  for _, one in ipairs(received) do
    if by_id[one.id] then used[#used + 1] = one end
  end
  return map, refused, used
end

local function bytes_of(extra)
  local sum = 0
  for _, tensor in pairs(extra) do
    if ms.is_tensor(tensor) then sum = sum + tensor.size * tensor.itemsize end
  end
  return sum
end

-- Trains the clients of a round and aggregates; fills in the record.
function Run:train(round, settings, taken, record)
  local jobs, received = self:jobs(taken, settings), {}
  local rule = client_rules.find(settings.rule)
  if rule.objective and not self.o.one_by_one then
    fail("simulate", "the client rule has an objective of its own", "one_by_one = true trains clients in turn")
  end
  local own = self.c.for_rule(settings, self.o.one_by_one)
  self.cohort:train(jobs, rule, own, self.number, settings.initial_loss, function(job, w, extra, metrics)
    local sent, attacked = self:received(job, w)
    received[#received + 1] = { id = job.client, samples = self.sizes[job.client], w = sent, start = job.start, extra = extra,
      metrics = metrics, staleness = job.staleness, most = (attacked or not job.most_of) and most_of(sent) or job.most_of }
  end)
  local aggregate = takes_mean(self.strategy) and self.by_mean or self.by_all
  local map, refused, used = aggregate(self, round, received)
  self.global = map
  record.refused, record.clients, record.updates = refused, {}, #used
  local loss, samples = 0.0, 0
  for i, one in ipairs(used) do
    record.clients[i] = one.id
    loss, samples = loss + one.metrics.loss * one.samples, samples + one.samples
    record.bytes_up = record.bytes_up + bytes_of(one.extra)
  end
  record.loss = samples > 0 and loss / samples or nil
  record.bytes_up = record.bytes_up + #received * self.vector.size * self.vector.itemsize
end

function Run:evaluate(record)
  if not self.evaluation or not (self.number % (self.o.evaluate_every or 1) == 0 or self.number == self.o.rounds) then return end
  self.global:load_into(self.o.model)
  record.accuracy, record.test_loss = self.evaluation()
end

function Run:summarise(record)
  if not self.summary then return end
  for _, name in ipairs { "accuracy", "loss", "test_loss", "bytes_up", "bytes_down", "updates", "time" } do
    if record[name] then self.summary:add_value("scalar", "federated/" .. name, ms.tensor(record[name] + 0.0)) end
  end
  self.summary:record(record.round)
end

function Run:round()
  self.number = self.number + 1
  local round = { number = self.number, seed = self.o.seed, clients = self.c.count, population = self.c.clients }
  local settings = self.c.settings_of(self.o, self.c.given, round)
  local times = {}
  for client, size in ipairs(self.sizes) do times[client] = math.ceil(math.min(size * settings.epochs * self.pace[client], 1e9)) end
  population.set_times(self.machine, times)
  population.set_away(self.machine, self.c.away_of(self.o, self.c.clients, self.number))
  local report = population.iteration(self.machine)
  local size = self.vector.size * self.vector.itemsize
  local record = { round = self.number, valid = report.valid, reason = report.reason, updates = 0, clients = {}, refused = {}, bytes_up = 0,
    bytes_down = report.started * (size + bytes_of(settings)), time = report.ended / 1000, started = report.started, late = report.late,
    lost = report.lost, repeated = report.repeated, restarts = report.restarts }
  if report.valid and report.taken then self:train(round, settings, report.taken, record) end
  self.vector = self.global:vector()
  self.versions[self.number + 1] = self.vector
  self.versions[self.number - self.staleness] = nil
  self:evaluate(record)
  self:summarise(record)
  self.history[self.number] = record
  return record
end

-- How many clients go side by side: no more than whose weights stay in the caches.
local function together(size)
  local numbers = 500000
  return math.max(2, math.min(32, numbers // math.max(size, 1)))
end

-- What many sets of weights side by side cannot have: state that training writes, and draws from the session's random numbers.
local function check_pure(network)
  local hint = "one_by_one = true trains clients in turn"
  for name, parameter in network:parameters_and_names() do
    if not parameter.requires_grad then
      fail("simulate", ("the parameter '%s' is not trained, as running means are not"):format(name), hint)
    end
  end
  for name, cell in network:cells_and_names() do
    if (getmetatable(cell)._name or ""):find "Dropout" then fail("simulate", ("the cell '%s' draws random numbers"):format(name), hint) end
  end
end

-- What trains the clients.
local function cohort_of(c, global)
  local o, rows = c.o, {}
  for client = 1, c.clients do rows[client] = c.parts[client] end
  if not o.one_by_one then
    check_pure(o.model)
    if #global:names "personal" > 0 then
      fail("simulate", "the strategy lets clients keep features for themselves", "one_by_one = true trains clients in turn")
    end
  end
  return (o.one_by_one and Turns or Cohort).new { network = o.model, map = global, loss = c.loss,
    tensors = { c.x, adversaries.labels(c.attackers, rows, c.y) }, rows = rows, batch_size = o.batch_size,
    shuffle = o.shuffle ~= false, seed = o.seed, group = o.group or together(global:size()) }
end

-- c: what ms.federated.simulate has made of its options.
function Simulation.run(c)
  local o = c.o
  local self = setmetatable({ c = c, o = o, strategy = c.strategy, attackers = c.attackers, number = 0, history = {} }, Run)
  self.global = FeatureMap(o.model)
  if c.strategy.prepare then self.global = c.strategy:prepare(self.global) end
  self.personal = {}
  for _, kind in ipairs { "personal", "frozen" } do
    for _, name in ipairs(self.global:names(kind)) do self.personal[name] = self.global:get(name) end
  end
  self.vector, self.versions = self.global:vector(), {}
  self.versions[1] = self.vector
  self.sizes = c.parts:sizes()
  self.pace, self.slow, self.partial = c.speeds_of(o, c.clients)
  self.machine = c.machine_of(o, c.clients, c.count, c.strategy)
  self.staleness = c.strategy.asynchronous and (c.strategy.max_staleness or 20) + 1 or 0
  self.cohort = cohort_of(c, self.global)
  if o.evaluate then self.evaluation = c.evaluated(o.model, o.evaluate[1], o.evaluate[2], c.loss) end
  self.summary = type(o.summary) == "string" and ms.train.SummaryRecord(o.summary) or o.summary
  o.model:set_train(true)
  while not population.finished(self.machine) do
    local record = self:round()
    local ends = o.callback and o.callback(record) == true
    if ends or o.target and record.accuracy and record.accuracy >= o.target then break end
  end
  if type(o.summary) == "string" then self.summary:close() end
  self.global:load_into(o.model)
  local result = setmetatable({}, Simulation)
  result.history, result.weights, result.strategy = self.history, self.global, c.strategy
  return result
end

return Simulation
