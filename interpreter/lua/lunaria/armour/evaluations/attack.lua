-- AttackEvaluate: figures of an attack, of the samples that it has changed the answer for.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local distances = require "lunaria.armour.evaluations.distances"
local given = require "lunaria.armour.evaluations.given"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local AttackEvaluate = class.define(nil, "AttackEvaluate", "inputs, labels, adv_inputs, adv_preds, targeted=false, target_label=nil",
  [[How well an attack has done. All figures but the rate of misclassification are means over the samples for which it has succeeded: those
whose likeliest class is not the label's or, where it is targeted, is the target.

inputs: the clean samples (N, ...). labels: class numbers (N,) or one-hot (N, classes). adv_inputs: the changed samples, of inputs' shape.
adv_preds: probabilities (N, classes) of the changed samples. targeted: whether the attack had targets. target_label: these, class numbers
(N,). Probabilities that are none, labels out of range and shapes that do not fit are errors. Source: Ling et al. 2019 (DEEPSEC).

  > x, adv = ms.zeros { 2, 4 }, ms.full({ 2, 4 }, 0.5)
  > preds = ms.tensor { { 0.25, 0.75 }, { 0.125, 0.875 } }
  > evaluation = ms.armour.evaluations.AttackEvaluate(x, ms.tensor { 0, 1 }, adv, preds)
  > evaluation:mis_classification_rate() --> 0.5]])

function AttackEvaluate:setup(a)
  local where = "AttackEvaluate"
  self._inputs, self._adv = given.pair(where, "inputs", a.inputs, "adv_inputs", a.adv_inputs)
  local count = self._inputs.shape[1]
  self._preds = given.probabilities(where, "adv_preds", a.adv_preds, count)
  local classes = self._preds.shape[2]
  self._labels = given.classes(where, a.labels, count, classes)
  local found = given.argmax(self._preds)
  -- The class whose probability is that of the attack's success.
  self._reached = found
  if check.boolean(where, "targeted", a.targeted) then
    if a.target_label == nil then fail(where, "targeted is true, but target_label is missing") end
    self._reached = given.classes(where, a.target_label, count, classes)
    self._success = ops.equal(found, self._reached):astype(ms.float64)
  else
    if a.target_label ~= nil then fail(where, "target_label is given, but targeted is false", "targeted = true") end
    self._success = ops.not_equal(found, self._labels):astype(ms.float64)
  end
end

--- The share of samples for which the attack has succeeded (MR), from 0 to 1.
---     > x, p = ms.zeros { 1, 4 }, ms.tensor { { 0.25, 0.75 } }
---     > ms.armour.evaluations.AttackEvaluate(x, ms.tensor { 0 }, x, p):mis_classification_rate() --> 1.0
function AttackEvaluate:mis_classification_rate() return ops.mean(self._success):item() end

--- The mean probability of the class that the attack has reached (ACAC); 0 without success.
---     > x, p = ms.zeros { 1, 4 }, ms.tensor { { 0.25, 0.75 } }
---     > ms.armour.evaluations.AttackEvaluate(x, ms.tensor { 0 }, x, p):avg_conf_adv_class() --> 0.75
function AttackEvaluate:avg_conf_adv_class()
  return given.masked_mean(given.pick(self._preds, self._reached), self._success, 0.0)
end

--- The mean probability that is left to the true class (ACTC); 0 without success.
---     > x, p = ms.zeros { 1, 4 }, ms.tensor { { 0.25, 0.75 } }
---     > ms.armour.evaluations.AttackEvaluate(x, ms.tensor { 0 }, x, p):avg_conf_true_class() --> 0.25
function AttackEvaluate:avg_conf_true_class()
  return given.masked_mean(given.pick(self._preds, self._labels), self._success, 0.0)
end

--- The mean distances l0, l2 and linf, each divided by the clean sample's own norm; three times -1 without success.
---     > x, p = ms.ones { 1, 4 }, ms.tensor { { 0.25, 0.75 } }
---     > l0, l2, linf = ms.armour.evaluations.AttackEvaluate(x, ms.tensor { 0 }, x * 1.5, p):avg_lp_distance()
---     > linf --> 0.5
function AttackEvaluate:avg_lp_distance()
  local means = {}
  for i, distance in ipairs { distances.relative_distances(self._inputs, self._adv) } do
    means[i] = given.masked_mean(distance, self._success, -1.0)
  end
  return table.unpack(means)
end

--- The mean structural similarity with the clean pictures (ASS, see ms.armour.evaluations.ssim); -1 without success. Inputs that are no
--- pictures (N, H, W) or (N, C, H, W) of 7 x 7 pixels or more are an error.
---     > x, p = ms.ones { 1, 8, 8 }, ms.tensor { { 0.25, 0.75 } }
---     > ms.armour.evaluations.AttackEvaluate(x, ms.tensor { 0 }, x, p):avg_ssim() --> 1.0
function AttackEvaluate:avg_ssim()
  return given.masked_mean(distances.ssim(self._adv, self._inputs), self._success, -1.0)
end

--- The mean gap between the likeliest class and the next one (NTE), how much noise a success may lose; -1 without success.
---     > x, p = ms.zeros { 1, 4 }, ms.tensor { { 0.25, 0.75 } }
---     > ms.armour.evaluations.AttackEvaluate(x, ms.tensor { 0 }, x, p):nte() --> 0.5
function AttackEvaluate:nte()
  if self._preds.shape[2] < 2 then fail("nte", "there is one class only, and no next one") end
  local first = ops.topk(self._preds, 2)
  return given.masked_mean(first[{ ms.slice(), 0 }] - first[{ ms.slice(), 1 }], self._success, -1.0)
end

return { AttackEvaluate = AttackEvaluate }
