-- Strategies whose new weights are the global ones and a step along the mean of what parties have changed.
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local base = require "lunaria.federated.strategies.strategy"

local check = arguments.check

local M = {}

local FedAvg = class.define(base.Strategy, "FedAvg", "server_lr=1.0, weighted=true, settings=nil",
  [[Federated averaging (McMahan et al., 2017): global + server_lr * (mean of the updates - global).

server_lr: the length of the step; 1 is the mean itself. weighted: whether updates count by their samples; else all the same. settings: of
the parties: lr, epochs, steps, momentum, weight_decay.

  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > function sent(id, samples, w) return { id = id, samples = samples, weights = ms.federated.FeatureMap { w = ms.tensor { w } } } end
  > ms.federated.strategies.FedAvg():aggregate({ number = 1 }, global, { sent(1, 1, 0.0), sent(2, 3, 4.0) }).w:item() --> 3.0]])
FedAvg.secure = true
M.FedAvg = FedAvg

function FedAvg:setup(a)
  local name = getmetatable(self)._name
  self.server_lr = check.number_positive(name, "server_lr", a.server_lr)
  self.weighted = check.boolean(name, "weighted", a.weighted)
  self.settings = base.check_settings(name, a.settings)
end

function FedAvg:aggregate(round, global, updates) -- luacheck: ignore round
  if self.server_lr == 1 and self.sends == "weights" then return global:with_vector(base.mean(updates, self.weighted)) end
  local step = base.mean_difference(self, global, updates, self.weighted)
  return global:with_vector(global:vector(step.dtype) + step * self.server_lr)
end

local FedAvgM = class.define(FedAvg, "FedAvgM", "server_lr=1.0, momentum=0.9, weighted=true, settings=nil",
  [[Federated averaging with momentum on the server (Hsu et al., 2019): v = momentum * v + mean change, global + server_lr * v.

server_lr: the length of the step. momentum: in [0, 1). weighted: whether updates count by their samples. settings: of the parties.

  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > strategy = ms.federated.strategies.FedAvgM { momentum = 0.5 }
  > update = { id = 1, samples = 1, weights = ms.federated.FeatureMap { w = ms.ones { 1 } } }
  > strategy:aggregate({ number = 1 }, global, { update }).w:item() --> 1.0]])
M.FedAvgM = FedAvgM

function FedAvgM:setup(a)
  FedAvg.setup(self, a)
  self.momentum = check.rate("FedAvgM", "momentum", a.momentum)
end

function FedAvgM:aggregate(round, global, updates) -- luacheck: ignore round
  local step = base.mean_difference(self, global, updates, self.weighted)
  self._velocity = self._velocity and self._velocity * self.momentum + step or step
  return global:with_vector(global:vector(step.dtype) + self._velocity * self.server_lr)
end

function FedAvgM:state() return { velocity = self._velocity } end

function FedAvgM:load_state(state)
  base.Strategy.load_state(self, state)
  self._velocity = state.velocity
end

local FedProx = class.define(FedAvg, "FedProx", "mu=0.01, server_lr=1.0, weighted=true, settings=nil",
  [[Averages of parties that are held near the global weights (Li et al., 2020): each adds mu / 2 * |w - global|^2 to its loss.

mu: the strength, 0 or more. server_lr: the length of the step. weighted: whether updates count by their samples. settings: of the
parties.

  > ms.federated.strategies.FedProx({ mu = 0.1 }):configure({ number = 1 }).mu --> 0.1]])
FedProx.client = "prox"
M.FedProx = FedProx

function FedProx:setup(a)
  FedAvg.setup(self, a)
  self.settings.mu = check.number_not_negative("FedProx", "mu", a.mu)
end

local Ditto = class.define(FedAvg, "Ditto", "lambda=1.0, server_lr=1.0, weighted=true, settings=nil",
  [[Averages, beside which each party has weights of its own that are held near the global ones (Li et al., 2021).

lambda: how much the party's own weights are drawn to the global ones, 0 or more. server_lr: the length of the step. weighted: whether
updates count by their samples. settings: of the parties.

  > ms.federated.strategies.Ditto({ lambda = 0.5 }).client --> ditto]])
Ditto.client = "ditto"
M.Ditto = Ditto

function Ditto:setup(a)
  FedAvg.setup(self, a)
  self.settings.lambda = check.number_not_negative("Ditto", "lambda", a.lambda)
end

return M
