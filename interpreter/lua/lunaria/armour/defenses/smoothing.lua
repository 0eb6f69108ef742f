-- Randomised smoothing (Cohen et al., 2019): the answer of most copies of a sample under Gaussian noise, with a radius within which no
-- perturbation changes it. All samples get the same noise, drawn by the seed: of each sample the copies are independent of each other,
-- which is what the certificate needs, and an answer does not depend on what else was asked.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local binomial = require "lunaria.armour.binomial"
local common = require "lunaria.armour.common"
local Defense = require "lunaria.armour.defenses.adversarial".Defense

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local M = {}

local Smoothed = class.define(nil, "SmoothedClassifier", "network, sigma=0.25, batch_size=128, seed=0",
  [[A network whose answers are those of most copies under noise, with certificates (randomised smoothing, Cohen et al., 2019).

network: a cell or a function that gives logits (N, classes), best one trained with such noise (GaussianDefense). sigma: the standard
deviation of the noise, above 0, in units of the inputs. batch_size: how many copies are asked for at once. seed: of the noise.

A call gives the shares of 100 copies that each class has, (N, classes): a model for attacks by answers alone.

  > smoothed = ms.armour.defenses.SmoothedClassifier(ms.nn.Dense(4, 3), { sigma = 0.5 })
  > classes, radii = smoothed:certify(ms.rand { 2, 4 }, { n = 200 })
  > radii.shape --> (2,)]])
Smoothed._called = "model"
M.SmoothedClassifier = Smoothed

function Smoothed:setup(a)
  local name = "SmoothedClassifier"
  self._model = common.classifier(name, a.network)
  self.sigma = check.number_positive(name, "sigma", a.sigma)
  self._batch = check.positive(name, "batch_size", a.batch_size)
  self._seed = check.not_negative(name, "seed", a.seed)
end

-- For each sample how many of n copies each class has: (N, classes) of float64.
function Smoothed:_counts(inputs, n, seed)
  local draws, shape, rows = common.generator(seed), { table.unpack(inputs.shape) }, {}
  local count, parts = shape[1], {}
  for from = 0, n - 1, self._batch do
    shape[1] = math.min(self._batch, n - from)
    parts[#parts + 1] = draws:normal(shape, inputs.dtype) * self.sigma
  end
  for i = 0, count - 1 do
    local own, sum = inputs[{ ms.slice(i, i + 1) }], nil
    for _, noise in ipairs(parts) do
      local logits = self._model:logits(own + noise)
      local votes = ops.sum(common.one_hot(ops.argmax(logits, 1):astype(ms.int32), logits.shape[2], ms.float64), 0)
      sum = sum and sum + votes or votes
    end
    rows[i + 1] = sum
  end
  return ops.stack(rows, 0)
end

-- How many copies a call asks for.
local copies_of_call = 100

function Smoothed:__call(inputs)
  common.images("SmoothedClassifier", inputs)
  return (self:_counts(inputs, copies_of_call, self._seed) / copies_of_call):astype(inputs.dtype)
end

local function options_of(where, options, known)
  options = arguments.options(where, options, known, "{ n = 1000, alpha = 0.001 }")
  local alpha = check.number(where, "alpha", options.alpha or 0.001)
  if not (alpha > 0 and alpha < 1) then fail(where, ("alpha must be above 0 and below 1, got %s"):format(tostring(alpha))) end
  return options, alpha
end

--- The class of each sample (N,) of int32 by most of n copies; -1 where the first class is not more frequent than the second one with
--- confidence 1 - alpha. inputs: samples (N, ...). Options: n=1000, alpha=0.001.
---     > smoothed = ms.armour.defenses.SmoothedClassifier(function(x) return ms.ops.concat({ x, -x }, 1) end)
---     > smoothed:predict(ms.tensor { { 2.0 }, { -2.0 }, { 0.0 } }, { n = 100 }):tolist()[2] --> 1
function Smoothed:predict(inputs, options)
  local where = "predict"
  local alpha
  options, alpha = options_of(where, options, { n = arguments.positive, alpha = "number" })
  common.images(where, inputs)
  local counts, classes = self:_counts(inputs, options.n or 1000, self._seed), {}
  local values, index = ops.topk(counts, 2)
  for i, pair in ipairs(values:tolist()) do
    local first, second = math.tointeger(pair[1]), math.tointeger(pair[2])
    classes[i] = binomial.uneven(first, first + second) <= alpha and index[{ i - 1, 0 }]:item() or -1
  end
  return ms.tensor(classes, ms.int32)
end

--- The class of each sample (N,) of int32, and the radius (N,) of float64 of the ball in the norm 2, in units of the inputs, within which
--- the smoothed answer is certainly the same; -1 and 0 where there is no certificate. Each holds with confidence 1 - alpha. inputs:
--- samples (N, ...). Options: n0=100 (copies that choose the class), n=1000 (further copies that bound its probability from below, by
--- Clopper and Pearson), alpha=0.001. The radius is sigma times the quantile of the normal distribution at that bound.
---     > smoothed = ms.armour.defenses.SmoothedClassifier(function(x) return ms.ops.concat({ x, -x }, 1) end, { sigma = 0.5 })
---     > classes, radii = smoothed:certify(ms.tensor { { 1.0 } }, { n = 2000 })
---     > radii:item() < 1.0 and radii:item() > 0.75 --> true
function Smoothed:certify(inputs, options)
  local where = "certify"
  local alpha
  options, alpha = options_of(where, options, { n0 = arguments.positive, n = arguments.positive, alpha = "number" })
  common.images(where, inputs)
  -- Two seeds: what chose the class must not be counted for it.
  local guess = ops.argmax(self:_counts(inputs, options.n0 or 100, 2 * self._seed + 1), 1):tolist()
  local n = options.n or 1000
  local counts, classes, bounds = self:_counts(inputs, n, 2 * self._seed + 2):tolist(), {}, {}
  for i, class_number in ipairs(guess) do
    local bound = binomial.lower(math.tointeger(counts[i][class_number + 1]), n, alpha)
    classes[i], bounds[i] = bound > 0.5 and class_number or -1, math.max(bound, 0.5)
  end
  return ms.tensor(classes, ms.int32), ops.ndtri(ms.tensor(bounds, ms.float64)) * self.sigma
end

local Gaussian = class.define(Defense, "GaussianDefense", "network, loss_fn=nil, optimizer=nil, sigma=0.25, seed=nil",
  [[Training with Gaussian noise on the samples, for networks that are to be smoothed (Cohen et al., 2019).

network: a cell that gives logits (N, classes). loss_fn: a cell or function of logits and labels (nil: cross-entropy of class numbers).
optimizer: an optimizer of the network's parameters (nil: Momentum with rate 0.01 and momentum 0.9). sigma: the standard deviation of the
noise, above 0. seed: of the noise (nil: from the session's random numbers).

  > defense = ms.armour.defenses.GaussianDefense(ms.nn.Dense(4, 3), { sigma = 0.5 })
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
M.GaussianDefense = Gaussian

function Gaussian:setup(a)
  self:keep(a)
  rawset(self, "_own", { sigma = check.number_positive("GaussianDefense", "sigma", a.sigma),
    draws = common.generator(a.seed, "GaussianDefense") })
end

--- The samples with noise, and the labels.
---     > defense = ms.armour.defenses.GaussianDefense(ms.nn.Dense(4, 3))
---     > defense:adversarial(ms.rand { 2, 4 }, ms.tensor({ 0, 2 }, ms.int32)).shape --> (2, 4)
function Gaussian:adversarial(inputs, labels)
  local own = self._own
  return inputs + own.draws:normal({ table.unpack(inputs.shape) }, inputs.dtype) * own.sigma, labels
end

return M
