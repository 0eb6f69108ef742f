-- Strategies around another one, to which they leave all that they do not do themselves.
local class = require "lunaria.nn.class"
local base = require "lunaria.federated.strategies.strategy"

local M = {}

local Around = base.Strategy:extend("Around")
M.Around = Around

--- Sets up the object around a strategy, FedAvg if nil.
function M.setup(self, where, strategy)
  local inner = strategy == nil and require("lunaria.federated.strategies.averaging").FedAvg() or base.of(where, strategy)
  self.strategy = inner
  self.client, self.sends, self.asynchronous, self.buffer = inner.client, inner.sends, inner.asynchronous, inner.buffer
  self.weighted = inner.weighted
  self.sums = inner.sums and function() return inner:sums() end
  -- What it does with single updates, secure aggregation cannot.
  self.secure = inner.secure and getmetatable(self).secure
end

function Around:configure(round) return base.copied(self.strategy:configure(round)) end
function Around:aggregate(round, global, updates) return self.strategy:aggregate(round, global, updates) end

--- As of FedNova, where the inner strategy has it.
---     > inner = ms.federated.strategies.FedNova()
---     > sum = { mean = ms.ones({ 1 }, ms.float64), beside = 2.0 }
---     > strategy = ms.federated.strategies.Hybrid(function(round, map) return map end, { strategy = inner })
---     > strategy:aggregate_sums({ number = 1 }, ms.federated.FeatureMap { w = ms.zeros { 1 } }, sum).w:item() --> 2.0
function Around:aggregate_sums(round, global, sum) return self.strategy:aggregate_sums(round, global, sum) end

--- The feature map, as the inner strategy prepares it. map: the weights that training begins with.
---     > inner = ms.federated.strategies.NormBound(1.0)
---     > inner:prepare(ms.federated.FeatureMap { w = ms.zeros { 2 } }):size() --> 2
function Around:prepare(map) return self.strategy.prepare and self.strategy:prepare(map) or map end

--- What is wrong with an update for the inner strategy, as text, or nil. global: the feature map. update: what was sent.
---     > ms.federated.strategies.NormBound(1.0):refusal(nil, {})
function Around:refusal(global, update) return self.strategy.refusal and self.strategy:refusal(global, update) or nil end

--- The feature map after the inner strategy's work on the server. round: its number and seed. map: the new weights.
---     > map = ms.federated.FeatureMap { w = ms.zeros { 2 } }
---     > ms.federated.strategies.NormBound(1.0):after({ number = 1 }, map):size() --> 2
function Around:after(round, map) return self.strategy.after and self.strategy:after(round, map) or map end

function Around:state() return { inner = self.strategy:state() } end

function Around:load_state(state)
  base.Strategy.load_state(self, state)
  self.strategy:load_state(state.inner or {})
end

M.is_strategy = function(value) return class.is_a(value, base.Strategy) end

return M
