-- Strategies of several stages: regions below a centre, and training on the server beside that of the parties.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local around = require "lunaria.federated.strategies.around"
local base = require "lunaria.federated.strategies.strategy"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

local Hierarchical = class.define(around.Around, "Hierarchical", "group, inner=nil, strategy=nil",
  [[Regions below a centre: the updates of each region are aggregated by a strategy of its own, and the regions' weights by another one,
  for
which a region has as many samples as its parties.

group: a function from a party's id to the name of its region, or a table by id. inner: a function that makes the strategy of a region,
from
its name; FedAvg if nil. strategy: that of the centre; FedAvg if nil.

  > strategies = ms.federated.strategies
  > function region(id) return id <= 3 and "a" or "b" end
  > strategy = strategies.Hierarchical(region, { inner = function() return strategies.Median() end })
  > function sent(id, w) return { id = id, samples = 1, weights = ms.federated.FeatureMap { w = ms.tensor { w } } } end
  > global = ms.federated.FeatureMap { w = ms.zeros { 1 } }
  > strategy:aggregate({ number = 1 }, global, { sent(1, 1.0), sent(2, 1.0), sent(3, 99.0), sent(4, 5.0) }).w:item() --> 2.0]])
Hierarchical.secure = false
M.Hierarchical = Hierarchical

function Hierarchical:setup(a)
  if type(a.group) ~= "table" and not arguments.is_callable(a.group) then
    fail("Hierarchical", "group must be a function from ids to names of regions, or a table, got " .. describe(a.group))
  end
  if a.inner ~= nil and not arguments.is_callable(a.inner) then
    fail("Hierarchical", "inner must be a function that makes a strategy, got " .. describe(a.inner))
  end
  self._group, self._inner, self._regions, self._loaded = a.group, a.inner, {}, {}
  around.setup(self, "Hierarchical", a.strategy)
  -- Weights of regions, whatever parties send.
  if self.sends ~= "weights" then fail("Hierarchical", "the strategy of the centre must take weights, and not differences") end
end

local function region_of(self, id)
  local region
  if arguments.is_callable(self._group) then region = self._group(id) else region = self._group[id] end
  if type(region) ~= "string" then
    fail("Hierarchical", ("the region of the party %s must be a text, got %s"):format(tostring(id), describe(region)))
  end
  return region
end

local function strategy_of(self, region)
  if not self._regions[region] then
    local inner = self._inner and self._inner(region) or require("lunaria.federated.strategies.averaging").FedAvg()
    self._regions[region] = base.of("Hierarchical", inner)
    if self._loaded[region] then inner:load_state(self._loaded[region]) end
  end
  return self._regions[region]
end

function Hierarchical:aggregate(round, global, updates)
  local names, members = {}, {}
  for _, update in ipairs(updates) do
    local region = region_of(self, update.id)
    if not members[region] then names[#names + 1], members[region] = region, {} end
    table.insert(members[region], update)
  end
  table.sort(names)
  local list = {}
  for i, region in ipairs(names) do
    local samples = 0
    for _, update in ipairs(members[region]) do samples = samples + update.samples end
    local weights = strategy_of(self, region):aggregate(round, global, members[region])
    list[i] = { id = region, samples = samples, weights = weights, metrics = {}, extra = {}, staleness = 0 }
  end
  return self.strategy:aggregate(round, global, list)
end

function Hierarchical:state()
  local regions = {}
  for region, strategy in pairs(self._regions) do regions[region] = strategy:state() end
  return { inner = self.strategy:state(), regions = regions }
end

function Hierarchical:load_state(state)
  around.Around.load_state(self, state)
  self._regions, self._loaded = {}, state.regions or {}
end

local Hybrid = class.define(around.Around, "Hybrid", "train, strategy=nil",
  [[Training on the server beside that of the parties, as MindSpore's HYBRID_TRAINING: after each aggregation the server trains on its
  own data.

train: a function from the round { number, seed, ... } and the aggregated feature map to the one that the next round begins with.
strategy:
what aggregates; FedAvg if nil.

  > strategy = ms.federated.strategies.Hybrid(function(round, map) return map:with_vector(map:vector() + 1) end)
  > strategy:after({ number = 1 }, ms.federated.FeatureMap { w = ms.zeros { 1 } }).w:item() --> 1.0]])
Hybrid.secure = true
M.Hybrid = Hybrid

function Hybrid:setup(a)
  if not arguments.is_callable(a.train) then
    fail("Hybrid", "train must be a function of a round and a feature map, got " .. describe(a.train))
  end
  self._train = a.train
  around.setup(self, "Hybrid", a.strategy)
end

--- The feature map after the server's training. round: its number and seed. map: the aggregated weights.
---     > strategy = ms.federated.strategies.Hybrid(function(round, map) return map end)
---     > strategy:after({ number = 1 }, ms.federated.FeatureMap { w = ms.zeros { 1 } }):size() --> 1
function Hybrid:after(round, map) return self._train(round, around.Around.after(self, round, map)) end

-- Means and variances of batch normalisations over the data of all parties: the variance of a mixture is the mean of the squares less the
-- square of the mean, not the mean of the variances.
local function pooled(map, global, updates, shares)
  local moments = {}
  for _, name in ipairs(global:names("aggregated")) do
    local layer = name:match "^(.*)moving_mean$"
    local variance = layer and layer .. "moving_variance"
    if variance and global:get(variance) then
      local function mean(i) return updates[i].weights:get(name):astype(ms.float64) end
      local first = base.weighted_sum(shares, mean)
      local second = base.weighted_sum(shares, function(i)
        return updates[i].weights:get(variance):astype(ms.float64) + mean(i) * mean(i)
      end)
      moments[name], moments[variance] = first, ms.ops.relu(second - first * first)
    end
  end
  return map:with(moments)
end

local SemiSupervised = class.define(Hybrid, "SemiSupervised",
  "train, threshold=0.95, lambda=1.0, statistics=\"pooled\", strategy=nil",
  [[A server with labels and parties without: the server trains on its labelled samples after each aggregation, and parties by FixMatch
  (Sohn
et al., 2020), where predictions of which the model is sure are the labels of strongly changed inputs.

train: a function from the round and the aggregated feature map to the one after the server's training. threshold: from which
probability on
a prediction is a label. lambda: how much the parties' loss counts. statistics: of batch normalisations, "pooled" is those of all
parties' data together, "mean" the means, and "local" leaves the server's. strategy: what aggregates; FedAvg if nil.

  > strategy = ms.federated.strategies.SemiSupervised(function(round, map) return map end, { threshold = 0.9 })
  > strategy.client, strategy:configure({ number = 1 }).threshold --> fixmatch	0.9]])
SemiSupervised.secure = false
M.SemiSupervised = SemiSupervised

function SemiSupervised:setup(a)
  Hybrid.setup(self, a)
  self.threshold = check.probability("SemiSupervised", "threshold", a.threshold)
  self.lambda = check.number_positive("SemiSupervised", "lambda", a.lambda)
  self.statistics = check.choice("SemiSupervised", "statistics", a.statistics, { "pooled", "mean", "local" })
  if self.sends ~= "weights" then fail("SemiSupervised", "the strategy must take weights, and not differences") end
  self.client = "fixmatch"
end

function SemiSupervised:configure(round)
  local settings = around.Around.configure(self, round)
  settings.threshold, settings.lambda = self.threshold, self.lambda
  return settings
end

function SemiSupervised:aggregate(round, global, updates)
  local map = self.strategy:aggregate(round, global, updates)
  if self.statistics == "pooled" then return pooled(map, global, updates, base.shares(updates, true)) end
  if self.statistics == "mean" then return map end
  local kept = {}
  for _, name in ipairs(global:names("aggregated")) do
    if name:find "moving_mean$" or name:find "moving_variance$" then kept[name] = global:get(name) end
  end
  return map:with(kept)
end

return M
