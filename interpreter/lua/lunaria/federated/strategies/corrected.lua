-- Strategies that make good what differs between parties: numbers of steps, directions of drift, losses.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local base = require "lunaria.federated.strategies.strategy"
local FedAvg = require("lunaria.federated.strategies.averaging").FedAvg
local sums = require "lunaria.federated.strategies.sums"

local ops, check, describe = ms.ops, arguments.check, arguments.describe

local M = {}

local FedNova = class.define(FedAvg, "FedNova", "server_lr=1.0, weighted=true, settings=nil",
  [[Normalised averaging (Wang et al., 2020): changes are divided by the parties' numbers of steps, and the mean is multiplied by the
mean number, so that parties which train longer do not pull the model towards their own data.

server_lr: the length of the step. weighted: whether updates count by their samples. settings: of the parties.

  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > sent = { id = 1, samples = 1, weights = ms.federated.FeatureMap { w = ms.ones { 1 } }, metrics = { normalizer = 4 } }
  > ms.federated.strategies.FedNova():aggregate({ number = 1 }, global, { sent }).w:item() --> 1.0]])
FedNova.client, FedNova.secure = "nova", true
M.FedNova = FedNova

local function normalizer_of(update) return update.metrics and (update.metrics.normalizer or update.metrics.steps) end

--- What is wrong with an update, as text, or nil. global: the feature map. update: what was sent.
---     > ms.federated.strategies.FedNova():refusal(nil, { metrics = {} }) --> the metric 'normalizer' must be a positive number, got nil
function FedNova:refusal(global, update) -- luacheck: ignore self global
  local a = normalizer_of(update)
  if not math.type(a) or not (a > 0) then return "the metric 'normalizer' must be a positive number, got " .. describe(a) end
  return nil
end

function FedNova:aggregate(round, global, updates)
  local w, shares, normalizer = global:vector(ms.float64), base.shares(updates, self.weighted), 0.0
  local step = base.weighted_sum(shares, function(i)
    local vector, own = sums.kinds.normalised.vector(w, updates[i].weights:vector(ms.float64), updates[i])
    normalizer = normalizer + shares[i] * own
    return vector
  end)
  return self:aggregate_sums(round, global, { mean = step, beside = normalizer })
end

--- What parties add up where aggregation is secure: a table of plain values, whose kind is one of strategies/sums.lua.
---     > ms.federated.strategies.FedNova():sums().kind --> normalised
function FedNova:sums() -- luacheck: ignore self
  return { kind = "normalised" }
end

--- The new weights from means over all parties. round, global: as for aggregate. sum: mean and beside, of what sums says; clients, how many
--- parties.
---     > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
---     > sum = { mean = ms.ones({ 1 }, ms.float64), beside = 4.0 }
---     > ms.federated.strategies.FedNova():aggregate_sums({ number = 1 }, global, sum).w:item() --> 4.0
function FedNova:aggregate_sums(round, global, sum) -- luacheck: ignore round
  return global:with_vector(global:vector(ms.float64) + sum.mean * (sum.beside * self.server_lr))
end

local Scaffold = class.define(FedAvg, "Scaffold", "server_lr=1.0, weighted=false, settings=nil",
  [[SCAFFOLD (Karimireddy et al., 2020): parties correct their gradients by the difference between the mean direction of all parties and
their own, so that training on data of one kind does not drift.

server_lr: the length of the step. weighted: whether updates count by their samples; control variates always count the same. settings: of
the parties. A round's population says how many parties there are; without it, those of the round are all.

  > strategy = ms.federated.strategies.Scaffold()
  > strategy:prepare(ms.federated.FeatureMap { w = ms.zeros { 2 } }):size() --> 2
  > strategy:configure({ number = 1 }).control.shape --> (2,)]])
Scaffold.client, Scaffold.secure = "scaffold", true
M.Scaffold = Scaffold

--- Takes note of the model's form, and gives the feature map back. map: the weights that training begins with.
---     > ms.federated.strategies.Scaffold():prepare(ms.federated.FeatureMap { w = ms.zeros { 2 } }):size() --> 2
function Scaffold:prepare(map)
  self._control = self._control or ops.zeros_like(map:vector())
  return map
end

function Scaffold:configure(round) -- luacheck: ignore round
  local settings = base.copied(self.settings)
  settings.control = self._control
  return settings
end

--- What is wrong with an update, as text, or nil. global: the feature map. update: what was sent.
---     > global = ms.federated.FeatureMap { w = ms.zeros { 2 } }
---     > ms.federated.strategies.Scaffold():refusal(global, {}) --> the tensor 'control' must be a vector of 2 numbers, got nil
function Scaffold:refusal(global, update) -- luacheck: ignore self
  local control = update.extra and update.extra.control
  if not ms.is_tensor(control) or control.ndim ~= 1 or control.shape[1] ~= global:size() then
    return ("the tensor 'control' must be a vector of %d numbers, got %s"):format(global:size(), describe(control))
  end
  return nil
end

function Scaffold:setup(a)
  FedAvg.setup(self, a)
  -- Weights by samples and control variates that count the same are no sum of one vector.
  self.secure = not self.weighted
end

function Scaffold:aggregate(round, global, updates)
  local changes = base.weighted_sum(base.shares(updates, false), function(i) return updates[i].extra.control:astype(ms.float64) end)
  return self:aggregate_sums(round, global, { mean = base.mean(updates, self.weighted), beside = changes, clients = #updates })
end

--- As of FedNova.
---     > ms.federated.strategies.Scaffold():sums().kind --> controlled
function Scaffold:sums() -- luacheck: ignore self
  return { kind = "controlled" }
end

--- As of FedNova: the mean of the weights, beside it that of the changes of control variates.
---     > strategy, global = ms.federated.strategies.Scaffold(), ms.federated.FeatureMap { w = ms.zeros { 1 } }
---     > sum = { mean = ms.ones({ 1 }, ms.float64), beside = ms.ones({ 1 }, ms.float64), clients = 2 }
---     > strategy:aggregate_sums({ number = 1, population = 4 }, global, sum).w:item(), strategy:state().control:item() --> 1.0	0.5
function Scaffold:aggregate_sums(round, global, sum)
  local w = global:vector(ms.float64)
  local control = (self._control or ops.zeros_like(global:vector())):astype(ms.float64)
  control = control + sum.beside * (sum.clients / (round.population or sum.clients))
  self._control = control:astype(global:vector().dtype)
  return global:with_vector(w + (sum.mean - w) * self.server_lr)
end

function Scaffold:state() return { control = self._control } end

function Scaffold:load_state(state)
  base.Strategy.load_state(self, state)
  self._control = state.control
end

local QFedAvg = class.define(FedAvg, "QFedAvg", "q=1.0, lipschitz=nil, settings=nil",
  [[q-FedAvg (Li et al., 2020): parties whose loss is high count more, so that a model serves all of them more evenly. With the losses
  F_i of
the global weights and the changes d_i = lipschitz (w - w_i): w - sum(F_i^q d_i) / sum(q F_i^(q-1) |d_i|^2 + lipschitz F_i^q).

q: how much losses count; 0 is a plain mean. lipschitz: a bound of the gradient's rate of change; nil is 1 over the lr of the settings.
settings: of the parties, with an lr.

  > strategy = ms.federated.strategies.QFedAvg { q = 0, settings = { lr = 0.1 } }
  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > sent = { id = 1, samples = 1, weights = ms.federated.FeatureMap { w = ms.ones { 1 } }, metrics = { initial_loss = 2.0 } }
  > ("%.6f"):format(strategy:aggregate({ number = 1 }, global, { sent }).w:item()) --> 1.000000]])
QFedAvg.secure = true
M.QFedAvg = QFedAvg

function QFedAvg:setup(a)
  FedAvg.setup(self, { server_lr = 1.0, weighted = false, settings = a.settings })
  self.q = check.number_not_negative("QFedAvg", "q", a.q)
  local lipschitz = a.lipschitz
  if lipschitz == nil then lipschitz = 1.0 / check.number_positive("QFedAvg", "settings.lr", self.settings.lr) end
  self.lipschitz = check.number_positive("QFedAvg", "lipschitz", lipschitz)
  -- Parties measure the loss of the global weights before they train.
  self.settings.initial_loss = true
end

--- What is wrong with an update, as text, or nil. global: the feature map. update: what was sent.
---     > strategy = ms.federated.strategies.QFedAvg { settings = { lr = 0.1 } }
---     > strategy:refusal(nil, { metrics = {} }) --> the metric 'initial_loss' must be a number that is not negative, got nil
function QFedAvg:refusal(global, update) -- luacheck: ignore self global
  local loss = update.metrics and update.metrics.initial_loss
  if not math.type(loss) or not (loss >= 0) then
    return "the metric 'initial_loss' must be a number that is not negative, got " .. describe(loss)
  end
  return nil
end

function QFedAvg:aggregate(round, global, updates)
  local w, form, divisor = global:vector(ms.float64), self:sums(), 0.0
  local shares = base.shares(updates, false)
  local mean = base.weighted_sum(shares, function(i)
    local vector, own = sums.kinds.fair.vector(w, updates[i].weights:vector(ms.float64), updates[i], form)
    divisor = divisor + shares[i] * own
    return vector
  end)
  return self:aggregate_sums(round, global, { mean = mean, beside = divisor })
end

--- As of FedNova.
---     > ms.federated.strategies.QFedAvg({ q = 2, settings = { lr = 0.1 } }):sums().q --> 2
function QFedAvg:sums() return { kind = "fair", q = self.q, lipschitz = self.lipschitz } end

--- As of FedNova: the mean of the changes times powers of losses, beside it that of what it is divided by.
---     > strategy = ms.federated.strategies.QFedAvg { settings = { lr = 0.1 } }
---     > global, sum = ms.federated.FeatureMap { w = ms.zeros { 1 } }, { mean = ms.ones({ 1 }, ms.float64), beside = 2.0 }
---     > strategy:aggregate_sums({ number = 1 }, global, sum).w:item() --> -0.5
function QFedAvg:aggregate_sums(round, global, sum) -- luacheck: ignore self round
  return global:with_vector(global:vector(ms.float64) - sum.mean / sum.beside)
end

return M
