-- Strategies for parties that want models of their own: parts that are not shared, and weights from which few steps lead to each party's.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local around = require "lunaria.federated.strategies.around"
local FedAvg = require("lunaria.federated.strategies.averaging").FedAvg

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

-- Around a strategy, with some features of the model left out: _left_out(self, map) gives their names.
local Partial = around.Around:extend("Partial")
Partial.secure = true

--- The feature map without what parties keep for themselves or what is not trained. map: the weights that training begins with.
---     > map = ms.federated.FeatureMap { ["head.weight"] = ms.ones { 2 }, ["body.weight"] = ms.ones { 3 } }
---     > ms.federated.strategies.PersonalHead({ "head" }):prepare(map):size() --> 3
function Partial:prepare(map)
  map = map:without(self:_left_out(map), { frozen = self._frozen or false })
  self._personal, self._frozen_names = map:names("personal"), map:names("frozen")
  return around.Around.prepare(self, map)
end

function Partial:configure(round)
  local settings = around.Around.configure(self, round)
  settings.personal, settings.frozen = self._personal or {}, self._frozen_names or {}
  return settings
end

local function check_names(where, name, list)
  if type(list) ~= "table" or #list == 0 then
    fail(where, ("%s must be a list of names of parameters, or of cells that have them, got %s"):format(name, describe(list)))
  end
  return list
end

local FedBN = class.define(Partial, "FedBN", "strategy=nil, norms=nil",
  [[Parties keep their batch normalisations (Li et al., 2021): what differs in the distribution of their inputs stays with them, all other
features are aggregated by another strategy.

strategy: which one; FedAvg if nil. norms: names of layers, or of parameters, that stay with the parties; nil is all layers that have
moving
means.

  > net = ms.nn.SequentialCell(ms.nn.Dense(2, 3), ms.nn.BatchNorm1d(3))
  > map = ms.federated.strategies.FedBN():prepare(ms.federated.FeatureMap(net))
  > table.concat(map:names("aggregated"), " ") --> 0.weight 0.bias]])
M.FedBN = FedBN

function FedBN:setup(a)
  around.setup(self, "FedBN", a.strategy)
  if a.norms ~= nil then self.norms = check_names("FedBN", "norms", a.norms) end
end

function FedBN:_left_out(map)
  if self.norms then return self.norms end
  local list = {}
  for _, name in ipairs(map:names()) do
    local layer = name:match "^(.*)%.moving_mean$"
    if layer then list[#list + 1] = layer end
  end
  if #list == 0 then fail("FedBN", "the model has no layer with a moving mean", "give norms, a list of names") end
  return list
end

local PersonalHead = class.define(Partial, "PersonalHead", "head, head_steps=0, strategy=nil",
  [[Parties keep the last layers, and share those below (FedPer, Arivazhagan et al., 2019; with head_steps FedRep, Collins et al., 2021).

head: names of cells or parameters that stay with the parties. head_steps: in so many steps of a training only the head is trained, and
afterwards only the rest; 0 trains both together. strategy: what aggregates the rest; FedAvg if nil.

  > strategy = ms.federated.strategies.PersonalHead({ "head" }, { head_steps = 5 })
  > map = strategy:prepare(ms.federated.FeatureMap { ["head.weight"] = ms.ones { 2 }, ["body.weight"] = ms.ones { 3 } })
  > table.concat(strategy:configure({ number = 1 }).personal, " ") --> head.weight]])
M.PersonalHead = PersonalHead

function PersonalHead:setup(a)
  self.head = check_names("PersonalHead", "head", a.head)
  self.head_steps = check.not_negative("PersonalHead", "head_steps", a.head_steps)
  around.setup(self, "PersonalHead", a.strategy)
end

function PersonalHead:_left_out() return self.head end

function PersonalHead:configure(round)
  local settings = Partial.configure(self, round)
  settings.head_steps = self.head_steps
  return settings
end

local Transfer = class.define(Partial, "Transfer", "frozen, strategy=nil",
  [[Transfer learning: a part of the model, trained beforehand, is neither trained nor sent; the rest is aggregated by another strategy.

frozen: names of cells or parameters that stay as they are. strategy: what aggregates the rest; FedAvg if nil.

  > strategy = ms.federated.strategies.Transfer({ "body" })
  > map = strategy:prepare(ms.federated.FeatureMap { ["head.weight"] = ms.ones { 2 }, ["body.weight"] = ms.ones { 3 } })
  > table.concat(strategy:configure({ number = 1 }).frozen, " "), map:size() --> body.weight	2]])
Transfer._frozen = true
M.Transfer = Transfer

function Transfer:setup(a)
  self._names = check_names("Transfer", "frozen", a.frozen)
  around.setup(self, "Transfer", a.strategy)
end

function Transfer:_left_out() return self._names end

local PerFedAvg = class.define(FedAvg, "PerFedAvg", "alpha=0.01, order=\"first\", server_lr=1.0, weighted=false, settings=nil",
  [[Federated meta-learning (Per-FedAvg, Fallah et al., 2020): weights from which one step on its own data leads each party to a good
  model.

alpha: the length of that step. order: "first" leaves second derivatives out, "hessian_free" takes them by a difference of gradients.
server_lr: the length of the server's step. weighted: whether updates count by their samples. settings: of the parties.

  > ms.federated.strategies.PerFedAvg({ alpha = 0.1 }):configure({ number = 1 }).alpha --> 0.1]])
PerFedAvg.client = "per_fedavg"
M.PerFedAvg = PerFedAvg

function PerFedAvg:setup(a)
  FedAvg.setup(self, a)
  self.settings.alpha = check.number_positive("PerFedAvg", "alpha", a.alpha)
  self.settings.order = check.choice("PerFedAvg", "order", a.order, { "first", "hessian_free" })
end

local Reptile = class.define(FedAvg, "Reptile", "server_lr=0.5, final_lr=nil, rounds=nil, weighted=false, settings=nil",
  [[Federated meta-learning by Reptile (Nichol et al., 2018): parties take several steps, and the global weights go a part of the way to
  the
mean of where they have come.

server_lr: which part. final_lr: what it falls to, in a straight line, in the round `rounds`; nil keeps it. rounds: when it has fallen.
weighted: whether updates count by their samples. settings: of the parties.

  > strategy = ms.federated.strategies.Reptile { server_lr = 1.0, final_lr = 0.0, rounds = 3 }
  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > sent = { id = 1, samples = 1, weights = ms.federated.FeatureMap { w = ms.ones { 1 } } }
  > strategy:aggregate({ number = 2 }, global, { sent }).w:item() --> 0.5]])
M.Reptile = Reptile

function Reptile:setup(a)
  FedAvg.setup(self, a)
  self._first = self.server_lr
  if (a.final_lr == nil) ~= (a.rounds == nil) then fail("Reptile", "final_lr and rounds go together") end
  if a.final_lr == nil then return end
  self.final_lr = check.number_not_negative("Reptile", "final_lr", a.final_lr)
  self.rounds = check.positive("Reptile", "rounds", a.rounds)
end

function Reptile:aggregate(round, global, updates)
  if self.final_lr then
    local past = math.min(1.0, (round.number - 1) / math.max(1, self.rounds - 1))
    self.server_lr = self._first + (self.final_lr - self._first) * past
  end
  return FedAvg.aggregate(self, round, global, updates)
end

return M
