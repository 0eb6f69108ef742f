-- Strategies without rounds that parties wait for: each begins with the newest weights, and its update counts less the staler it is.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local base = require "lunaria.federated.strategies.strategy"

local check = arguments.check

local M = {}

-- How much an update counts that is so many aggregations old (Xie et al., 2019).
local decays = {}
function decays.constant() return 1.0 end
function decays.polynomial(staleness, a) return (1.0 + staleness) ^ -a end
function decays.hinge(staleness, a, b) return staleness <= b and 1.0 or 1.0 / (a * (staleness - b) + 1.0) end

local function setup(self, name, a)
  self.decay = check.choice(name, "decay", a.decay, { "constant", "polynomial", "hinge" })
  self.a, self.b = check.number_not_negative(name, "a", a.a), check.number_not_negative(name, "b", a.b)
  self.settings = base.check_settings(name, a.settings)
end

local function factor(self, update) return decays[self.decay](update.staleness or 0, self.a, self.b) end

local FedAsync = class.define(base.Strategy, "FedAsync", "alpha=0.6, decay=\"polynomial\", a=0.5, b=4.0, settings=nil",
  [[Asynchronous averaging (Xie et al., 2019): each update moves the global weights towards its own, by the share alpha times a factor
  that
falls with its staleness s: "constant" 1, "polynomial" (1 + s)^-a, "hinge" 1 up to s = b and then 1 / (a (s - b) + 1).

alpha: in (0, 1]. decay: which factor. a, b: its numbers. settings: of the parties.

  > strategy = ms.federated.strategies.FedAsync { alpha = 0.5, a = 1.0 }
  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > sent = { id = 1, samples = 1, weights = ms.federated.FeatureMap { w = ms.ones { 1 } }, staleness = 1 }
  > strategy:aggregate({ number = 3 }, global, { sent }).w:item() --> 0.25]])
FedAsync.asynchronous, FedAsync.buffer = true, 1
M.FedAsync = FedAsync

function FedAsync:setup(a)
  self.alpha = check.number_positive("FedAsync", "alpha", a.alpha)
  check.probability("FedAsync", "alpha", a.alpha)
  setup(self, "FedAsync", a)
end

function FedAsync:aggregate(round, global, updates) -- luacheck: ignore round
  local w = global:vector(ms.float64)
  for _, update in ipairs(updates) do
    local share = self.alpha * factor(self, update)
    w = w * (1 - share) + update.weights:vector(ms.float64) * share
  end
  return global:with_vector(w)
end

local FedBuff = class.define(base.Strategy, "FedBuff", "buffer=10, server_lr=1.0, decay=\"polynomial\", a=0.5, b=4.0, settings=nil",
  [[Buffered asynchronous averaging (Nguyen et al., 2022): after so many updates the global weights move along the mean of their
  changes, each
times a factor that falls with its staleness, by default 1 / sqrt(1 + staleness).

buffer: updates of an aggregation; there must be more parties. server_lr: the length of the step. decay, a, b: the factor, as FedAsync has
it. settings: of the parties.

  > strategy = ms.federated.strategies.FedBuff { buffer = 2 }
  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > map = ms.federated.FeatureMap { w = ms.ones { 1 } }
  > function sent(id, staleness) return { id = id, samples = 1, weights = map, staleness = staleness } end
  > strategy:aggregate({ number = 9 }, global, { sent(1, 0), sent(2, 3) }).w:item() --> 0.75]])
FedBuff.asynchronous, FedBuff.sends = true, "difference"
M.FedBuff = FedBuff

function FedBuff:setup(a)
  self.buffer = check.positive("FedBuff", "buffer", a.buffer)
  self.server_lr = check.number_positive("FedBuff", "server_lr", a.server_lr)
  setup(self, "FedBuff", a)
end

function FedBuff:aggregate(round, global, updates) -- luacheck: ignore round
  local shares = {}
  for i, update in ipairs(updates) do shares[i] = factor(self, update) / #updates end
  local step = base.weighted_sum(shares, function(i) return updates[i].weights:vector(ms.float64) end)
  return global:with_vector(global:vector(ms.float64) + step * self.server_lr)
end

return M
