-- Coverage: the share of what a network's units can do that inputs have brought out. Each metric is a set of events, as "unit 7 is above
-- its threshold", and its value the share of those that any input has caused: so inputs can be added to it, and what each of them added is
-- known.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local activations = require "lunaria.armour.activations"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local coverage = {}

local CoverageMetrics = class.Object:extend("CoverageMetrics")
CoverageMetrics._called = "coverage metric"
CoverageMetrics._doc = [[What all coverage metrics are: get_metrics(dataset) gives the share of events, as units above a threshold, that the
inputs have caused, from 0 to 1; reset() forgets them. With incremental = true those of earlier calls count, too.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.ReLU(), ms.nn.Dense(3, 2))
  > metric = ms.armour.fuzz_testing.NeuronCoverage(net, 0.1)
  > share = metric:get_metrics(ms.ones { 2, 4 })
  > share >= 0 and share <= 1 --> true]]
coverage.CoverageMetrics = CoverageMetrics

local function name_of(self) return getmetatable(self)._name end

-- For setup of a metric: what all of them take.
function CoverageMetrics:_keep(a)
  local name = name_of(self)
  self._record = activations.recorder(name, a.model, a.layers)
  self.incremental = check.boolean(name, "incremental", a.incremental)
  self.batch_size = check.positive(name, "batch_size", a.batch_size)
end

local function inputs_of(where, dataset)
  if not ms.is_tensor(dataset) or dataset.ndim < 2 or dataset.size == 0 then
    fail(where, "dataset must be a tensor (N, ...) of at least one input, got " .. describe(dataset))
  end
  if ops.is_floating_point(dataset) and not ops.all(ops.isfinite(dataset)):item() then fail(where, "inputs hold nan or infinity") end
  return dataset
end

-- The events (N, all events) of units in layers: a list of tensors (N, units).
local function events_of(self, layers)
  local parts = {}
  for i, y in ipairs(layers) do
    local hits = self:_events(y, i)
    parts[i] = hits:reshape { hits.shape[1], -1 }
  end
  local hits = #parts == 1 and parts[1] or ops.concat(parts, 1)
  if self._seen and self._seen.shape[1] ~= hits.shape[2] then
    fail(name_of(self), ("the network has %d events now and had %d before"):format(hits.shape[2], self._seen.shape[1]), "metric:reset()")
  end
  return hits
end

local function layers_of(self, x)
  local list, output = self._record(x)
  local layers = {}
  for i, y in ipairs(list) do layers[i] = activations.units(y) end
  return layers, output
end

--- Forgets what inputs have caused so far.
---     > metric = ms.armour.fuzz_testing.NeuronCoverage(ms.nn.SequentialCell(ms.nn.Dense(2, 3)), { incremental = true })
---     > metric:reset()
function CoverageMetrics:reset() self._seen = nil end

-- Adds inputs; gives how much of the whole each of them, in this order, has added, as a list, and what the network gave.
function CoverageMetrics:_add(x)
  local layers, output = layers_of(self, x)
  local hits = events_of(self, layers)
  local all = hits.shape[2]
  local fresh = self._seen and ops.logical_and(hits, ops.logical_not(self._seen)) or hits
  -- An event is new where it happens for the first time.
  local counted = fresh:astype(ms.int32)
  local first = ops.logical_and(fresh, ops.equal(ops.cumsum(counted, 0), 1))
  local any = ops.any(hits, 0)
  self._seen = self._seen and ops.logical_or(self._seen, any) or any
  local gains = (ops.sum(first:astype(ms.float64), 1) / all):tolist()
  return gains, output
end

-- The share of events that have been caused.
function CoverageMetrics:_value()
  return self._seen and ops.mean(self._seen:astype(ms.float64)):item() or 0.0
end

--- The share of events that the inputs cause, a number from 0 to 1. dataset: a tensor (N, ...) of inputs.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(2, 3, { weight_init = "ones" }))
---     > ms.armour.fuzz_testing.NeuronCoverage(net, 0.1):get_metrics(ms.ones { 1, 2 }) --> 1.0
function CoverageMetrics:get_metrics(dataset)
  inputs_of(name_of(self), dataset)
  if not self.incremental then self:reset() end
  common.in_batches(function(x)
    local hits = ops.any(events_of(self, (layers_of(self, x))), 0)
    self._seen = self._seen and ops.logical_or(self._seen, hits) or hits
  end, dataset, nil, self.batch_size)
  return self:_value()
end

local NeuronCoverage = class.define(CoverageMetrics, "NeuronCoverage", "model, threshold=0.1, incremental=false, batch_size=32, layers=nil",
  [[The share of units that some input brings above a threshold (Pei et al., DeepXplore, 2017). What a unit gives is its mean over the axes
behind axis 1. model: a cell or a ms.train.Model, whose innermost cells with weights are looked at, or a function that gives a list of
tensors (N, units, ...). layers: names of the cells to look at.
threshold: above which a unit is active. incremental: whether the inputs of earlier calls count. batch_size: inputs that pass at once.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
  > ms.armour.fuzz_testing.NeuronCoverage(net, 1e9):get_metrics(ms.ones { 3, 4 }) --> 0.0]])
coverage.NeuronCoverage = NeuronCoverage

function NeuronCoverage:setup(a)
  self:_keep(a)
  self.threshold = check.real("NeuronCoverage", "threshold", a.threshold)
end

function NeuronCoverage:_events(y) return ops.greater(y, self.threshold) end

local TopKNeuronCoverage = class.define(CoverageMetrics, "TopKNeuronCoverage",
  "model, top_k=3, incremental=false, batch_size=32, layers=nil",
  [[The share of units that are among the top_k largest of their layer for some input (Ma et al., DeepGauge, 2018).
model, layers: as NeuronCoverage takes them. incremental: whether the inputs of earlier calls count. batch_size: inputs that pass at once.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
  > ms.armour.fuzz_testing.TopKNeuronCoverage(net, 8):get_metrics(ms.ones { 3, 4 }) --> 1.0]])
coverage.TopKNeuronCoverage = TopKNeuronCoverage

function TopKNeuronCoverage:setup(a)
  self:_keep(a)
  self.top_k = check.positive("TopKNeuronCoverage", "top_k", a.top_k)
end

function TopKNeuronCoverage:_events(y)
  local k = math.min(self.top_k, y.shape[2])
  local largest = (ops.topk(y, k))
  return ops.greater_equal(y, ops.amin(largest, 1, true))
end

-- The least and greatest value of each unit for training data.
local function keep_bounds(self, train_dataset)
  local name = name_of(self)
  inputs_of(name, train_dataset)
  local least, greatest = {}, {}
  common.in_batches(function(x)
    for i, y in ipairs((layers_of(self, x))) do
      local lo, hi = ops.amin(y, 0), ops.amax(y, 0)
      least[i] = least[i] and ops.minimum(least[i], lo) or lo
      greatest[i] = greatest[i] and ops.maximum(greatest[i], hi) or hi
    end
  end, train_dataset, nil, self.batch_size)
  self._least, self._greatest = least, greatest
end

local SuperNeuronActivateCoverage = class.define(CoverageMetrics, "SuperNeuronActivateCoverage",
  "model, train_dataset, incremental=false, batch_size=32, layers=nil",
  [[The share of units that some input brings above all that training data did (Ma et al., DeepGauge, 2018). train_dataset: a tensor of
inputs. model, layers: as NeuronCoverage
takes them. incremental: whether the inputs of earlier calls count. batch_size: inputs that pass at once.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
  > train = ms.ops.rand(20, 4)
  > ms.armour.fuzz_testing.SuperNeuronActivateCoverage(net, train):get_metrics(train) --> 0.0]])
coverage.SuperNeuronActivateCoverage = SuperNeuronActivateCoverage

function SuperNeuronActivateCoverage:setup(a)
  self:_keep(a)
  keep_bounds(self, a.train_dataset)
end

function SuperNeuronActivateCoverage:_events(y, i) return ops.greater(y, self._greatest[i]) end

local NeuronBoundsCoverage = class.define(CoverageMetrics, "NeuronBoundsCoverage",
  "model, train_dataset, incremental=false, batch_size=32, layers=nil, corners=false",
  [[The share of units that some input brings above or below all that training data did. train_dataset: a tensor of inputs. corners: counts
above and below as two events of a unit, as DeepGauge (Ma et al., 2018) does. model, layers: as NeuronCoverage
takes them. incremental: whether the inputs of earlier calls count. batch_size: inputs that pass at once.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
  > train = ms.ops.rand(20, 4)
  > ms.armour.fuzz_testing.NeuronBoundsCoverage(net, train):get_metrics(train) --> 0.0]])
coverage.NeuronBoundsCoverage = NeuronBoundsCoverage

function NeuronBoundsCoverage:setup(a)
  self:_keep(a)
  self.corners = check.boolean("NeuronBoundsCoverage", "corners", a.corners)
  keep_bounds(self, a.train_dataset)
end

function NeuronBoundsCoverage:_events(y, i)
  local above, below = ops.greater(y, self._greatest[i]), ops.less(y, self._least[i])
  if self.corners then return ops.stack({ above, below }, 2) end
  return ops.logical_or(above, below)
end

local KMultisectionNeuronCoverage = class.define(CoverageMetrics, "KMultisectionNeuronCoverage",
  "model, train_dataset, segmented_num=100, incremental=false, batch_size=32, layers=nil",
  [[The share of (unit, section) that inputs reach, where the range of each unit for training data is cut into segmented_num sections
of equal length (Ma et al., DeepGauge, 2018). train_dataset: a tensor of inputs. model, layers: as NeuronCoverage
takes them. incremental: whether the inputs of earlier calls count. batch_size: inputs that pass at once.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
  > train = ms.ops.rand(20, 4)
  > share = ms.armour.fuzz_testing.KMultisectionNeuronCoverage(net, train, 10):get_metrics(train)
  > share > 0.2 and share < 1 --> true]])
coverage.KMultisectionNeuronCoverage = KMultisectionNeuronCoverage

function KMultisectionNeuronCoverage:setup(a)
  self:_keep(a)
  self.segmented_num = check.positive("KMultisectionNeuronCoverage", "segmented_num", a.segmented_num)
  keep_bounds(self, a.train_dataset)
end

function KMultisectionNeuronCoverage:_events(y, i)
  local k, lo, hi = self.segmented_num, self._least[i], self._greatest[i]
  local width = hi - lo
  -- A unit that never changed has its only value in section 0.
  local place = (y - lo) / ops.where(ops.greater(width, 0), width, ops.ones_like(width)) * k
  local section = ops.clamp(ops.floor(place), 0, k - 1):astype(ms.int32)
  local inside = ops.logical_and(ops.greater_equal(y, lo), ops.less_equal(y, hi))
  local reached = ops.equal(ops.expand_dims(section, 2), ops.arange(k):astype(ms.int32))
  return ops.logical_and(reached, ops.expand_dims(inside, 2))
end

--- layers_of for metrics of other files.
coverage.layers_of = layers_of
coverage.inputs_of = inputs_of

return coverage
