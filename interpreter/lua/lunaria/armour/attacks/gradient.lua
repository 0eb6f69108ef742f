-- The base of attacks by gradients: the model with its loss, bounds, the radius of the ball that perturbations stay in, and the steps and
-- projections in it. eps and steps are shares of the range that the bounds give, as in MindArmour.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local GradientMethod = common.Attack:extend("GradientMethod")
GradientMethod._doc = [[What attacks by gradients share. A class of your own extends it: init(self, ...) calls self:keep { network =, eps =,
bounds =, norm_level =, is_targeted =, loss_fn =, seed = }, and _attack(self, x, y) gives adversarial inputs.

  > tostring(ms.armour.attacks.GradientMethod):match "GradientMethod" --> GradientMethod]]

--- For init of a class of your own: checks and keeps the arguments of the attack. a: a table of network, a cell or a function that gives
--- logits (N, classes); eps, the radius as a share of the range of the bounds; bounds, { lo, hi }, nil for { 0, 1 }, false for none;
--- norm_level, 1, 2 or "inf" (nil); is_targeted; loss_fn, a callable of logits and labels, nil for cross-entropy; seed.
---     > Own = ms.armour.attacks.GradientMethod:extend("Own")
---     > Own.init = function(self, network) self:keep { network = network, eps = 0.1 } end
---     > Own(ms.nn.Dense(2, 3)).eps --> 0.1
function GradientMethod:keep(a)
  local name = getmetatable(self)._name
  self.network, self._name_of = a.network, name
  self._model = common.classifier(name, a.network, a.loss_fn)
  self.eps = check.number_positive(name, "eps", a.eps)
  self._lo, self._hi = common.bounds(name, a.bounds, { 0.0, 1.0 })
  self._range = self._lo ~= nil and self._hi - self._lo or 1.0
  self.norm_level = common.norm_kind(name, a.norm_level == nil and "inf" or a.norm_level)
  self.is_targeted = check.boolean(name, "is_targeted", a.is_targeted or false)
  self._sign = self.is_targeted and -1.0 or 1.0
  self._draws = common.generator(a.seed, name)
end

-- The inputs, and the labels in the form that the loss takes.
function GradientMethod:_checked(inputs, labels)
  local x = common.images("generate", inputs, self._lo, self._hi)
  local y = common.labels("generate", labels, x.shape[1], self._model:classes(x))
  return x, self._model.loss_fn and labels or y
end

-- The step in the unit ball of the norm, in units of the range, that a gradient asks for.
function GradientMethod:_direction(gradient) return common.direction(gradient, self.norm_level, self._range) end

-- The nearest perturbation in the ball of so many eps.
function GradientMethod:_in_ball(delta, eps) return common.in_ball(delta, self.norm_level, eps, self._range) end

-- The nearest image to adv that is both in the ball around x and within the bounds, one after the other.
function GradientMethod:_back(adv, x)
  return common.clip(x + self:_in_ball(adv - x, self.eps), self._lo, self._hi)
end

-- What gradients lead up: the loss of the labels, or down for labels that are wanted.
function GradientMethod:_slope(x, y)
  local gradient = ms.grad(function(z) return ops.sum(self._model:losses_of(self.network(z), y)) end)(x)
  return self.is_targeted and -gradient or gradient
end

function GradientMethod:_generate(inputs, labels)
  local x, y = self:_checked(inputs, labels)
  local adv = common.predicting(self.network, self._attack, self, x, y)
  if not ops.all(ops.isfinite(adv)):item() then
    fail("generate", "the gradients of the network hold nan or infinity", "look at ms.grad of its loss")
  end
  return ops.stop_gradient(adv)
end

return { GradientMethod = GradientMethod }
