-- Auto-PGD (Croce, Hein, 2020): projected gradient descent with momentum whose step, of each sample, is halved at checkpoints where the
-- loss has not grown often enough, and which then goes on from the best point.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local losses = require "lunaria.armour.attacks.losses"
local texts = require "lunaria.armour.attacks.texts"
local Iterative = require "lunaria.armour.attacks.iterative".IterativeGradientMethod

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

-- The share of the new step in each move; the rest is the last move.
local MOMENTUM = 0.75

local signature = "network, eps=8/255, eps_iter=nil, bounds=nil, is_targeted=false, nb_iter=10, norm_level=\"inf\", loss_fn=nil, "
  .. "eot_iter=1, thr_decr=0.75, seed=nil"

local APGD = class.define(Iterative, "AutoProjectedGradientDescent", signature,
  texts.doc([[Auto-PGD (Croce, Hein, 2020): projected gradient descent that finds its steps itself. They begin with 2 eps (or eps_iter) and
are halved, sample by sample, at checkpoints where the loss has not grown often enough; the point of greatest loss is kept, an adversarial
one before others. loss_fn may also be "ce" or "dlr", the difference of logits ratio.]], signature, "AutoProjectedGradientDescent",
    ", ms.tensor { 0, 2 }"))

local function named_loss(self, a)
  local name = a.loss_fn
  if type(name) ~= "string" then return end
  check.choice("AutoProjectedGradientDescent", "loss_fn", name, { "ce", "dlr" })
  a.loss_fn = nil
  if name == "dlr" then self._is_dlr = true end
end

function APGD:setup(a)
  named_loss(self, a)
  local first = a.eps_iter
  a.eps_iter = first or 2 * check.number_positive("AutoProjectedGradientDescent", "eps", a.eps)
  self:keep(a)
  self.eot_iter = check.positive(self._name_of, "eot_iter", a.eot_iter)
  self.thr_decr = check.probability(self._name_of, "thr_decr", a.thr_decr)
  self._seen = common.compiled(function(adv, y, clean) return self:_look(adv, y, clean) end)
  self._step = common.compiled(function(adv, old, gradient, size, share, x, y, clean)
    local at = self:_back(adv + self:_direction(gradient) * common.beside(x, size), x)
    local moved = self:_back(adv + (at - adv) * share + (adv - old) * (1 - share), x)
    return moved, self:_look(moved, y, clean)
  end)
end

-- What the attack raises. clean: the classes that the network gives the inputs.
function APGD:_objective(logits, y, clean)
  if not self._is_dlr then return self._model:losses_of(logits, y) * self._sign end
  if self.is_targeted then return losses.dlr_targeted(logits, clean, y) end
  return losses.dlr(logits, y)
end

-- Losses, gradients and classes at a point, as the mean over eot_iter looks.
function APGD:_look(adv, y, clean)
  local value, slope, logits
  for _ = 1, self.eot_iter do
    local got, gradient = ms.value_and_grad(function(z)
      local out = self.network(z)
      local each = self:_objective(out, y, clean)
      return ops.sum(each), each, out
    end, { has_aux = true })(adv)
    value, slope = value and value + got[2] or got[2], slope and slope + gradient or gradient
    logits = logits and logits + got[3] or got[3]
  end
  if self.eot_iter > 1 then value, slope = value / self.eot_iter, slope / self.eot_iter end
  return value, slope, ops.argmax(logits, 1):astype(ms.int32)
end

-- A random point on the sphere of radius eps.
function APGD:_random_start(x)
  local shape = { table.unpack(x.shape) }
  local noise = self.norm_level == "inf" and self._draws:uniform(shape, -1.0, 1.0, x.dtype) or self._draws:normal(shape, x.dtype)
  return common.clip(x + common.divided(noise, common.norms(noise, self.norm_level)) * self._range * self.eps, self._lo, self._hi)
end

function APGD:_checked(inputs, labels)
  local x, y = Iterative._checked(self, inputs, labels)
  local classes, least = self._model:classes(x), self.is_targeted and 4 or 3
  if self._is_dlr and classes < least then
    fail("generate", ("the difference of logits ratio takes %d classes at least, and the network has %d"):format(least, classes))
  end
  return x, y
end

-- Checkpoints: the numbers of steps between them, which get shorter.
local function checkpoints(steps)
  local every = math.max(1, math.floor(0.22 * steps))
  local least, less = math.max(1, math.floor(0.06 * steps)), math.max(1, math.floor(0.03 * steps))
  return function()
    local now = every
    every = math.max(every - less, least)
    return now
  end
end

-- Whether of the last steps too few have made the loss grow: (n,).
local function is_slow(history, count, share)
  local grown
  for k = #history - count + 1, #history do
    local step = ops.greater(history[k], history[k - 1]):astype(ms.int32)
    grown = grown and grown + step or step
  end
  return ops.less_equal(grown, math.floor(count * share))
end

function APGD:_attack(x, y)
  local labels = common.labels("generate", y, x.shape[1])
  local clean = self._is_dlr and self.is_targeted and self._model:predicted(x) or labels
  local adv = self:_random_start(x)
  local value, slope, found = self._seen(adv, y, clean)
  local function is_fooled(predicted)
    local same = ops.equal(predicted, labels)
    return self.is_targeted and same or ops.logical_not(same)
  end
  local best = { x = adv, value = value, slope = slope, fooled = is_fooled(found) }
  local fooling = { x = adv, yes = best.fooled }
  local size = ops.full_like(value, self.eps_iter)
  local was_halved, last_best = ops.ones_like(best.fooled), value
  local history, next_count = { [0] = value }, checkpoints(self.nb_iter)
  local count, since, old = next_count(), 0, adv
  for i = 1, self.nb_iter do
    local moved
    moved, value, slope, found = self._step(adv, old, slope, size, i == 1 and 1.0 or MOMENTUM, x, y, clean)
    old, adv = adv, moved
    local fooled = is_fooled(found)
    fooling.x, fooling.yes = ops.where(common.beside(x, fooled), adv, fooling.x), ops.logical_or(fooling.yes, fooled)
    local better = ops.greater(value, best.value)
    local beside = common.beside(x, better)
    best.x, best.slope = ops.where(beside, adv, best.x), ops.where(beside, slope, best.slope)
    best.value, best.fooled = ops.where(better, value, best.value), ops.where(better, fooled, best.fooled)
    history[i], since = value, since + 1
    if since == count then
      local is_stuck = ops.logical_and(ops.logical_not(was_halved), ops.less_equal(best.value, last_best))
      local halved = ops.logical_or(is_slow(history, count, self.thr_decr), is_stuck)
      was_halved, last_best = halved, best.value
      size = ops.where(halved, size * 0.5, size)
      local at = common.beside(x, halved)
      adv, slope = ops.where(at, best.x, adv), ops.where(at, best.slope, slope)
      since, count = 0, next_count()
    end
  end
  -- The point of greatest loss, unless it is not adversarial and another one is.
  local takes_other = ops.logical_and(ops.logical_not(best.fooled), fooling.yes)
  return ops.where(common.beside(x, takes_other), fooling.x, best.x)
end

return { AutoProjectedGradientDescent = APGD }
