-- Variance tuning (Wang, He, 2021): each gradient is corrected by how much the gradients around the last iterate differed from the one
-- there, and then joins the momentum of MI or NI.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local texts = require "lunaria.armour.attacks.texts"
local Iterative = require "lunaria.armour.attacks.iterative".IterativeGradientMethod

local ops = ms.ops
local check = arguments.check

local M = {}

-- y once for each of so many copies of the inputs, one behind the other.
local function repeated(y, count)
  local list = {}
  for k = 1, count do list[k] = y end
  return ops.concat(list, 0)
end

-- The mean of the gradients at the inputs adv + noise[k]; all are one batch.
local function mean_around(self, adv, y, noise)
  local count, n = self.nb_neighbor, adv.shape[1]
  local around = (ops.expand_dims(adv, 0) + noise * (self._range * (self.neighbor_beta * self.eps)))
  local gradients = self:_slope(around:reshape { count * n, table.unpack(adv.shape, 2) }, repeated(y, count))
  return ops.mean(gradients:reshape(noise.shape), 0)
end

local function variance_step(self, is_ahead)
  return function(adv, momentum, variance, x, y, noise)
    local place = adv
    if is_ahead then place = adv + momentum * (self._range * (self.eps_iter * self.decay_factor)) end
    local gradient = self:_slope(place, y)
    local tuned = gradient + variance
    momentum = momentum * self.decay_factor + common.divided(tuned, common.norms(tuned, 1))
    return self:_moved(adv, x, momentum), momentum, mean_around(self, adv, y, noise) - gradient
  end
end

local function define(name, signature, what, is_ahead)
  local made = class.define(Iterative, name, signature, texts.doc(what, signature, name, ", ms.tensor { 0, 2 }"))
  function made:setup(a)
    self:keep(a)
    self.decay_factor = check.finite_not_negative(name, "decay_factor", a.decay_factor)
    self.nb_neighbor = check.positive(name, "nb_neighbor", a.nb_neighbor)
    self.neighbor_beta = check.number_positive(name, "neighbor_beta", a.neighbor_beta)
    self._step = common.compiled(variance_step(self, is_ahead))
  end
  function made:_attack(x, y)
    local adv, momentum, variance = x, ops.zeros_like(x), ops.zeros_like(x)
    for _ = 1, self.nb_iter do
      local noise = self._draws:uniform({ self.nb_neighbor, table.unpack(x.shape) }, -1.0, 1.0, x.dtype)
      adv, momentum, variance = self._step(adv, momentum, variance, x, y, noise)
    end
    return adv
  end
  M[name] = made
end

define("VarianceTuningMomentumIterativeMethod",
  "network, eps=0.3, eps_iter=0.1, bounds=nil, is_targeted=false, nb_iter=5, decay_factor=1.0, nb_neighbor=5, neighbor_beta=1.5, "
  .. "loss_fn=nil, seed=nil",
  [[The variance tuning momentum method (Wang, He, 2021): as ms.armour.attacks.MomentumIterativeMethod, with each gradient corrected by the
variance of the gradients around the last iterate.]], false)

define("VarianceTuningNesterovIterativeMethod",
  "network, eps=8/255, eps_iter=2/255, bounds=nil, is_targeted=false, nb_iter=10, decay_factor=1.0, nb_neighbor=5, neighbor_beta=1.5, "
  .. "loss_fn=nil, seed=nil",
  [[The variance tuning Nesterov method (Wang, He, 2021): as ms.armour.attacks.NesterovIterativeMethod, with each gradient corrected by the
variance of the gradients around the last iterate.]], true)

return M
