-- Sensitivity convergence coverage: how many of a network's units have shown all of how mutations of inputs can change them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local coverage = require "lunaria.armour.fuzz.coverage"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local name = "SensitivityConvergenceCoverage"

local SensitivityConvergenceCoverage = class.define(coverage.CoverageMetrics, name,
  "model, threshold=0.5, incremental=false, batch_size=32, selected_neurons_num=100, n_iter=1000, layers=nil, seed=0",
  [[The share of sensitive units whose sensitivities, the changes of what they give from clean to mutated inputs, have converged (Huang et
al., Themis, 2022). get_metrics(dataset) takes clean inputs and behind them as many mutated ones; in each layer the selected_neurons_num
units that change most are looked at, and a unit has converged when a Metropolis chain of n_iter steps through the space of its
sensitivities accepts more than the share `threshold` of its proposals. seed: of the chains. model, layers: as NeuronCoverage takes them.
incremental: whether the inputs of earlier calls count. batch_size: inputs that pass at once.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 8), ms.nn.ReLU(), ms.nn.Dense(8, 2))
  > metric = ms.armour.fuzz_testing.SensitivityConvergenceCoverage(net, { n_iter = 50 })
  > clean = ms.ops.rand(6, 4)
  > metric:get_metrics(ms.ops.concat({ clean, clean + 0.01 }, 0)) --> 1.0]])

function SensitivityConvergenceCoverage:setup(a)
  self:_keep(a)
  self.threshold = check.probability(name, "threshold", a.threshold)
  self.selected_neurons_num = check.positive(name, "selected_neurons_num", a.selected_neurons_num)
  self.n_iter = check.positive(name, "n_iter", a.n_iter)
  self.seed = check.not_negative(name, "seed", a.seed)
  self:reset()
end

--- Forgets what has been seen, and which units were the sensitive ones.
function SensitivityConvergenceCoverage:reset()
  self._converged, self._looked, self._chosen = 0, 0, {}
end

-- The shares of accepted steps (k,) of chains that start at the columns of x (m, k) and step as far as their means; the density is the
-- standard normal one.
local function acceptance(x, steps, draws)
  local m, k = x.shape[1], x.shape[2]
  local width = ops.mean(x, 0)
  local energy = ops.sum(x * x, 0) / 2
  local accepted = ops.zeros({ k }, x.dtype)
  for _ = 1, steps do
    local proposed = x + draws:uniform({ m, k }, -0.5, 0.5, x.dtype) * width
    local other = ops.sum(proposed * proposed, 0) / 2
    local takes = ops.less(draws:uniform({ k }, 0, 1, x.dtype), ops.exp(energy - other))
    x, energy = ops.where(takes, proposed, x), ops.where(takes, other, energy)
    accepted = accepted + takes:astype(x.dtype)
  end
  return accepted / steps
end

-- The sensitivities (m, units) of each layer.
local function sensitivities(self, clean, mutated)
  local before, after = coverage.layers_of(self, clean), coverage.layers_of(self, mutated)
  local list = {}
  for i, y in ipairs(before) do list[i] = ops.abs(y - after[i]):astype(ms.float64) end
  return list
end

--- The share of sensitive units that have converged. dataset: a tensor of clean inputs and, in the second half, of mutated ones.
function SensitivityConvergenceCoverage:get_metrics(dataset)
  coverage.inputs_of(name, dataset)
  local half = dataset.shape[1] // 2
  if 2 * half ~= dataset.shape[1] then
    fail(name, ("dataset has %d inputs: its first half must be clean and its second the same mutated"):format(dataset.shape[1]))
  end
  if not self.incremental then self:reset() end
  local parts = table.pack(common.in_batches(function(x, y) return table.unpack(sensitivities(self, x, y)) end,
    dataset[{ ms.slice(0, half) }], dataset[{ ms.slice(half, 2 * half) }], self.batch_size))
  local draws = common.generator(self.seed)
  for i = 1, parts.n do
    local layer = parts[i]
    if not self._chosen[i] then
      local k = math.min(self.selected_neurons_num, layer.shape[2])
      self._chosen[i] = select(2, ops.topk(ops.sum(layer, 0), k))
    end
    local shares = acceptance(ops.gather(layer, self._chosen[i], 1), self.n_iter, draws)
    self._converged = self._converged + ops.sum(ops.greater(shares, self.threshold):astype(ms.int64)):item()
    self._looked = self._looked + shares.shape[1]
  end
  return self:_value()
end

function SensitivityConvergenceCoverage:_value() return self._looked > 0 and self._converged / self._looked or 0.0 end

return { SensitivityConvergenceCoverage = SensitivityConvergenceCoverage, sensitivities = sensitivities }
