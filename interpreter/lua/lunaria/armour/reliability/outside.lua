-- Inputs from outside of what a network has learnt: detectors that give each input a score, the larger the farther out, and a threshold.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local activations = require "lunaria.armour.activations"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local OodDetector = class.Object:extend("OodDetector")
OodDetector._called = "detector"
OodDetector._doc = [[What detectors of inputs from outside are. scores(inputs) gives each its score, get_optimal_threshold(label, inputs)
the threshold that tells known from foreign inputs best, ood_predict(threshold, inputs) which lie outside. A class of your own extends it
and has a method _scores(self, inputs) that gives a tensor (n,).

  > Far = ms.armour.reliability.OodDetector:extend("Far")
  > Far._scores = function(self, x) return ms.ops.amax(ms.ops.abs(x), 1) end
  > Far():ood_predict(2.0, ms.tensor { { 1.0, 0.5 }, { 0.5, 3.0 } }):tolist()[2] --> 1]]

local function inputs_of(where, x)
  if not ms.is_tensor(x) or x.ndim < 2 or x.size == 0 then
    fail(where, "inputs must be a tensor (N, ...) of at least one input, got " .. describe(x))
  end
  -- The score of nan is nan, which reaches no threshold: such an input would pass for a known one.
  if ops.is_floating_point(x) and not ops.all(ops.isfinite(x)):item() then fail(where, "inputs hold nan or infinity") end
  return x
end

--- The scores (N,) of inputs (N, ...): the larger, the farther from what was learnt.
function OodDetector:scores(inputs)
  inputs_of("scores", inputs)
  return common.in_batches(function(x) return self:_scores(x) end, inputs, nil, 256)
end

--- The threshold with which most inputs are told right. label: 0 for each known input and 1 for each foreign one, a tensor (N,) or a list.
--- ds_eval: the inputs (N, ...).
function OodDetector:get_optimal_threshold(label, ds_eval)
  local where = "get_optimal_threshold"
  label, ds_eval = arguments.named(where, { "label", "ds_eval" }, label, ds_eval)
  inputs_of(where, ds_eval)
  if ms.is_tensor(label) then label = label:tolist() end
  if type(label) ~= "table" or #label ~= ds_eval.shape[1] then
    fail(where, ("label must have a 0 or 1 for each of the %d inputs, got %s"):format(ds_eval.shape[1], describe(label)))
  end
  local scores, rows, foreign = self:scores(ds_eval):tolist(), {}, 0
  for i, is_foreign in ipairs(label) do
    if is_foreign ~= 0 and is_foreign ~= 1 then fail(where, ("label %d must be 0 or 1, got %s"):format(i, describe(is_foreign))) end
    rows[i] = { scores[i], is_foreign }
    foreign = foreign + (is_foreign == 1 and 1 or 0)
  end
  if foreign == 0 or foreign == #rows then fail(where, "label must have inputs of both kinds, known (0) and foreign (1)") end
  table.sort(rows, function(a, b) return a[1] < b[1] end)
  -- From a threshold below all on: what is passed is taken for known.
  local right = foreign
  local best, threshold = right, rows[1][1]
  for i, row in ipairs(rows) do
    right = right + (row[2] == 0 and 1 or -1)
    local following = rows[i + 1]
    if right > best and (following == nil or following[1] > row[1]) then
      best, threshold = right, following and (row[1] + following[1]) / 2 or row[1] * (1 + 1e-9) + 1e-300
    end
  end
  return threshold
end

--- Which inputs ds_test, a tensor (N, ...), lie outside: a tensor (N,) of int32, 1 where the score reaches the threshold.
function OodDetector:ood_predict(threshold, ds_test)
  local where = "ood_predict"
  threshold, ds_test = arguments.named(where, { "threshold", "ds_test" }, threshold, ds_test)
  check.real(where, "threshold", threshold)
  return ops.greater_equal(self:scores(ds_test), threshold):astype(ms.int32)
end

-- The features (N, d) of inputs: what a cell gives, flat.
local function features_of(self, x)
  local seen = self._record(x)
  local y = seen[#seen]
  return y:reshape { y.shape[1], -1 }
end

-- For setup of a detector by features.
local function keep_features(self, name, a)
  if type(a.layer) ~= "string" then fail(name, "layer must be the name of a cell, got " .. describe(a.layer)) end
  self._record = activations.recorder(name, a.model, { a.layer })
  inputs_of(name, a.ds_train)
  return common.in_batches(function(x) return features_of(self, x) end, a.ds_train, nil, 256):astype(ms.float64)
end

-- The squares of the distances (n, k) of rows x (n, d) from rows c (k, d).
local function squares(x, c)
  local cross = ops.matmul(x, c:swapaxes(0, 1))
  return ops.sum(x * x, 1, true) - 2 * cross + ops.sum(c * c, 1):reshape { 1, -1 }
end

-- The centres (k, d) of k clusters of rows (Lloyd's algorithm, from centres drawn far from one another: k-means++).
local function centres_of(x, k, draws)
  local n = x.shape[1]
  local list = { x[{ draws:integers({ 1 }, 0, n):item() }] }
  local least = squares(x, ops.expand_dims(list[1], 0)):reshape { -1 }
  while #list < k do
    local weights = ops.cumsum(ops.relu(least), 0)
    local sum = weights[-1]:item()
    local at = sum > 0 and ops.sum(ops.less_equal(weights, draws:number() * sum):astype(ms.int64)):item() or #list % n
    list[#list + 1] = x[{ math.min(at, n - 1) }]
    least = ops.minimum(least, squares(x, ops.expand_dims(list[#list], 0)):reshape { -1 })
  end
  local centres, before = ops.stack(list, 0), nil
  for _ = 1, 100 do
    local nearest = ops.argmin(squares(x, centres), 1)
    if before ~= nil and ops.all(ops.equal(nearest, before)):item() then break end
    before = nearest
    local members = common.one_hot(nearest:astype(ms.int32), k, x.dtype)
    local counts = ops.sum(members, 0):reshape { -1, 1 }
    local means = ops.matmul(members:swapaxes(0, 1), x) / ops.maximum(counts, 1)
    centres = ops.where(ops.greater(counts, 0), means, centres)
  end
  return centres
end

local OodDetectorFeatureCluster = class.define(OodDetector, "OodDetectorFeatureCluster", "model, ds_train, n_cluster, layer, seed=0",
  [[Scores by features: the distance, in the 1-norm relative to the centre, from the nearest centre of n_cluster clusters of the training
data, over the n_cluster largest features of each centre. model: a cell or a ms.train.Model. ds_train: inputs (N, ...). n_cluster: 2 to 100,
usually the number of classes. layer: the name of the cell whose output the features are. seed: of the first centres.

  > net = ms.nn.SequentialCell(ms.nn.Dense(2, 8), ms.nn.Dense(8, 3))
  > train = ms.ops.rand(50, 2)
  > detector = ms.armour.reliability.OodDetectorFeatureCluster(net, train, 3, "0")
  > near, far = detector:scores(train):max():item(), detector:scores(train + 100):min():item()
  > far > near --> true]])

function OodDetectorFeatureCluster:setup(a)
  local name = "OodDetectorFeatureCluster"
  local k = check.positive(name, "n_cluster", a.n_cluster)
  if k < 2 or k > 100 then fail(name, ("n_cluster must be from 2 to 100, got %d"):format(k)) end
  local x = keep_features(self, name, a)
  if x.shape[1] < k then fail(name, ("there are %d training inputs for %d clusters"):format(x.shape[1], k)) end
  local centres = centres_of(x, k, common.generator(a.seed, name))
  local values, places = ops.topk(centres, math.min(k, centres.shape[2]))
  self._places, self._values = places, values
end

function OodDetectorFeatureCluster:_scores(x)
  local y = features_of(self, x):astype(ms.float64)
  local nearest
  for i = 0, self._values.shape[1] - 1 do
    local centre = self._values[i]
    local distance = ops.sum(ops.abs(ops.gather(y, self._places[i], 1) - centre), 1)
    local relative = distance / ops.clamp(ops.sum(ops.abs(centre)), 1e-12)
    nearest = nearest and ops.minimum(nearest, relative) or relative
  end
  return nearest
end

local OodDetectorEnergy = class.define(OodDetector, "OodDetectorEnergy", "model, temperature=1.0",
  [[Scores by logits: the energy -T log sum exp(logits / T), which is low for what a classifier knows (Liu et al., 2020). model: a cell or a
ms.train.Model that gives logits (N, classes). temperature: T.

  > net = ms.nn.SequentialCell(ms.nn.Dense(2, 3, { weight_init = "ones" }))
  > scores = ms.armour.reliability.OodDetectorEnergy(net):scores(ms.tensor { { 0.0, 0.0 }, { 5.0, 5.0 } })
  > scores[0]:item() > scores[1]:item() --> true]])

function OodDetectorEnergy:setup(a)
  self._model = common.classifier("OodDetectorEnergy", activations.network("OodDetectorEnergy", a.model))
  self.temperature = check.number_positive("OodDetectorEnergy", "temperature", a.temperature)
end

function OodDetectorEnergy:_scores(x)
  local t = self.temperature
  return -t * ops.logsumexp(self._model:logits(x) / t, 1)
end

local OodDetectorMahalanobis = class.define(OodDetector, "OodDetectorMahalanobis", "model, ds_train, label, layer, shrinkage=1e-6",
  [[Scores by features: the square of the Mahalanobis distance from the nearest class, whose features are taken for normal with one
covariance for all classes (Lee et al., 2018). model: a cell or a ms.train.Model. ds_train: inputs (N, ...), label: their classes (N,) or
one-hot rows. layer: the name of the cell whose output the features are. shrinkage: the share of the mean variance that is added to each
feature's, so that the covariance can be inverted.

  > net = ms.nn.SequentialCell(ms.nn.Dense(2, 4), ms.nn.Dense(4, 2))
  > train, label = ms.ops.rand(40, 2), ms.ops.arange(40) % 2
  > detector = ms.armour.reliability.OodDetectorMahalanobis(net, train, label, "0")
  > detector:scores(train + 50):min():item() > detector:scores(train):max():item() --> true]])

function OodDetectorMahalanobis:setup(a)
  local name = "OodDetectorMahalanobis"
  check.number_positive(name, "shrinkage", a.shrinkage)
  local x = keep_features(self, name, a)
  local y = common.labels(name, a.label, x.shape[1])
  local members = common.one_hot(y, ops.max(y):item() + 1, x.dtype)
  local counts = ops.sum(members, 0):reshape { -1, 1 }
  local means = ops.matmul(members:swapaxes(0, 1), x) / ops.maximum(counts, 1)
  local rest = x - ops.matmul(members, means)
  local d = x.shape[2]
  local covariance = ops.matmul(rest:swapaxes(0, 1), rest) / x.shape[1]
  local ridge = a.shrinkage * math.max(ops.mean(ops.diagonal(covariance)):item(), 1e-300)
  self._factor = ops.cholesky(covariance + ridge * ops.eye(d):astype(x.dtype))
  -- Classes without an input have no mean.
  local present = {}
  for i, count in ipairs(counts:reshape { -1 }:tolist()) do
    if count > 0 then present[#present + 1] = i - 1 end
  end
  self._means = self:_whitened(ops.gather(means, ms.tensor(present, ms.int64), 0))
end

-- Rows in coordinates in which the covariance is the unit matrix.
function OodDetectorMahalanobis:_whitened(x)
  return ops.solve_triangular(self._factor, x:swapaxes(0, 1), { lower = true }):swapaxes(0, 1)
end

function OodDetectorMahalanobis:_scores(x)
  return ops.amin(squares(self:_whitened(features_of(self, x):astype(ms.float64)), self._means), 1)
end

return {
  OodDetector = OodDetector, OodDetectorEnergy = OodDetectorEnergy, OodDetectorFeatureCluster = OodDetectorFeatureCluster,
  OodDetectorMahalanobis = OodDetectorMahalanobis,
}
