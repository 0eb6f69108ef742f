-- Strategies whose server is an adaptive optimizer, for which the mean change of the parties is the gradient (Reddi et al., 2021).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local base = require "lunaria.federated.strategies.strategy"
local FedAvg = require("lunaria.federated.strategies.averaging").FedAvg

local ops, check = ms.ops, arguments.check

local M = {}

local signature = "server_lr=0.1, beta1=%s, beta2=0.99, tau=0.001, initial=nil, weighted=true, settings=nil"

-- Second moments v from the old ones and the change d.
local rules = {}
function rules.FedAdam(v, d, beta2) return v * beta2 + d * d * (1 - beta2) end
function rules.FedYogi(v, d, beta2)
  local square = d * d
  return v - square * ops.sign(v - square) * (1 - beta2)
end
function rules.FedAdagrad(v, d) return v + d * d end

local function define(name, beta1, formula)
  local class_of = class.define(FedAvg, name, signature:format(beta1), ([[Federated averaging with an adaptive server (Reddi et al.,
2021): with the mean change d of the parties, m = beta1 m + (1 - beta1) d, %s and global + server_lr m / (sqrt(v) + tau).

server_lr: the length of a step. beta1: how much of the mean of changes stays, in [0, 1). beta2: how much of that of their squares stays.
tau: what bounds the steps of small changes. initial: what v begins with; nil is tau^2. weighted: whether updates count by their samples.
settings: of the parties.

  > strategy = ms.federated.strategies.%s { server_lr = 0.5 }
  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > update = { id = 1, samples = 1, weights = ms.federated.FeatureMap { w = ms.ones { 1 } } }
  > strategy:aggregate({ number = 1 }, global, { update }).w:item() > 0 --> true]]):format(formula, name))

  function class_of:setup(a)
    FedAvg.setup(self, a)
    self.beta1, self.beta2 = check.rate(name, "beta1", a.beta1), check.rate(name, "beta2", a.beta2)
    self.tau = check.number_positive(name, "tau", a.tau)
    self.initial = check.number_not_negative(name, "initial", a.initial == nil and self.tau ^ 2 or a.initial)
  end

  function class_of:aggregate(round, global, updates) -- luacheck: ignore round
    local d = base.mean_difference(self, global, updates, self.weighted)
    local m = self._mean or ops.zeros_like(d)
    local v = self._square or ops.full_like(d, self.initial)
    m = m * self.beta1 + d * (1 - self.beta1)
    v = rules[name](v, d, self.beta2)
    self._mean, self._square = m, v
    return global:with_vector(global:vector(d.dtype) + m / (ops.sqrt(v) + self.tau) * self.server_lr)
  end

  function class_of:state() return { mean = self._mean, square = self._square } end

  function class_of:load_state(state)
    base.Strategy.load_state(self, state)
    self._mean, self._square = state.mean, state.square
  end
  return class_of
end

M.FedAdam = define("FedAdam", "0.9", "v = beta2 v + (1 - beta2) d^2")
M.FedYogi = define("FedYogi", "0.9", "v = v - (1 - beta2) d^2 sign(v - d^2)")
M.FedAdagrad = define("FedAdagrad", "0.0", "v = v + d^2")

return M
