-- Detectors by reconstruction (MagNet, Meng and Chen, 2017): an autoencoder of clean samples brings back clean ones, others not.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local Detector = require "lunaria.armour.detectors.detector".Detector
local divergence = require "lunaria.armour.evaluations.defense".divergence

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

-- What the autoencoder makes of samples, of their shape.
local function reconstructed(self, inputs)
  local y = self._encode(inputs)
  if not ms.is_tensor(y) or tostring(y.shape) ~= tostring(inputs.shape) then
    fail(getmetatable(self)._name, ("auto_encoder must give a tensor of the inputs' shape %s, got %s"):format(tostring(inputs.shape),
      arguments.describe(y)))
  end
  return y
end

local function keep(self, a)
  local name = getmetatable(self)._name
  self._encode = common.predictor(name, a.auto_encoder)
  self.rate = check.probability(name, "false_positive_rate", a.false_positive_rate)
  self._lo, self._hi = common.bounds(name, a.bounds, { 0.0, 1.0 })
end

local ErrorBased = class.define(Detector, "ErrorBasedDetector", "auto_encoder, false_positive_rate=0.01, bounds=nil",
  [[Takes samples for adversarial that an autoencoder of clean ones brings back badly (MagNet, Meng and Chen, 2017). The mark is the mean
squared error.

auto_encoder: a cell or a function that gives a tensor of its input's shape. false_positive_rate: the share of clean samples that fit lets
lie above the threshold, from 0 to 1. bounds: { lo, hi } that transform clips to (nil: { 0, 1 }; false: none).

  > detector = ms.armour.detectors.ErrorBasedDetector(function(x) return x * 0.5 end)
  > detector:fit(ms.full({ 10, 3 }, 0.5)) --> 0.0625]])

function ErrorBased:setup(a) keep(self, a) end

function ErrorBased:_marks(inputs)
  return ops.mean(ops.square(inputs - reconstructed(self, inputs)):reshape { inputs.shape[1], -1 }, 1)
end

--- The samples as the autoencoder brings them back, within the bounds. inputs: samples (N, ...).
---     > ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU()):transform(ms.tensor { { -2.0, 0.5 } }):tolist()[1][2] --> 0.5
function ErrorBased:transform(inputs)
  common.images(getmetatable(self)._name, inputs)
  return common.clip(reconstructed(self, inputs), self._lo, self._hi)
end

local DivergenceBased = class.define(ErrorBased, "DivergenceBasedDetector",
  "auto_encoder, model, option=\"jsd\", t=1, bounds=nil, false_positive_rate=0.01",
  [[Takes samples for adversarial for which a model answers otherwise after an autoencoder of clean ones has brought them back (MagNet,
Meng and Chen, 2017). The mark is the divergence of Jensen and Shannon of both answers, in nats.

auto_encoder: a cell or a function that gives a tensor of its input's shape. model: a cell or a function that gives logits (N, classes).
option: "jsd", the only one. t: the temperature that logits are divided by, above 0. bounds: { lo, hi } that transform clips to (nil: { 0,
1 }; false: none). false_positive_rate: the share of clean samples that fit lets lie above the threshold.

  > detector = ms.armour.detectors.DivergenceBasedDetector(function(x) return x * 0.5 end, ms.nn.Dense(3, 2), { t = 10 })
  > detector:detect_diff(ms.ones { 4, 3 }).shape --> (4,)]])

function DivergenceBased:setup(a)
  keep(self, a)
  self._model = common.classifier("DivergenceBasedDetector", a.model)
  check.choice("DivergenceBasedDetector", "option", a.option, { "jsd" })
  self._t = check.number_positive("DivergenceBasedDetector", "t", a.t)
end

function DivergenceBased:_marks(inputs)
  local function answer(x) return ops.softmax(self._model:logits(x):astype(ms.float64) / self._t, 1) end
  return divergence(answer(inputs), answer(reconstructed(self, inputs)))
end

return { ErrorBasedDetector = ErrorBased, DivergenceBasedDetector = DivergenceBased }
