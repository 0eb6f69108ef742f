-- Attacks of many steps in a ball: the basic iterative method (Kurakin et al., 2017), projected gradient descent (Madry et al., 2018), and
-- those whose steps follow a momentum of gradients that are divided by their 1-norm: MI (Dong et al., 2018), NI (Lin et al., 2020), and
-- DI (Xie et al., 2019), which takes gradients through images of random size and place.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local texts = require "lunaria.armour.attacks.texts"
local GradientMethod = require "lunaria.armour.attacks.gradient".GradientMethod

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local M = {}

local Iterative = GradientMethod:extend("IterativeGradientMethod")
Iterative._doc = [[What attacks of many steps share: nb_iter steps of length eps_iter within the ball of radius eps. A class of your own
extends it and has a method _attack(self, x, y); see ms.armour.attacks.GradientMethod.

  > ms.armour.attacks.ProjectedGradientDescent(ms.nn.Dense(2, 3)).nb_iter --> 5]]
M.IterativeGradientMethod = Iterative

--- As keep of ms.armour.attacks.GradientMethod, also of eps_iter, the length of a step as a share of the range, and nb_iter, the number of
--- steps.
---     > Own = ms.armour.attacks.IterativeGradientMethod:extend("Own")
---     > Own.init = function(self, network) self:keep { network = network, eps = 0.1, eps_iter = 0.01, nb_iter = 20 } end
---     > Own(ms.nn.Dense(2, 3)).nb_iter --> 20
function Iterative:keep(a)
  GradientMethod.keep(self, a)
  self.eps_iter = check.number_positive(self._name_of, "eps_iter", a.eps_iter)
  self.nb_iter = check.positive(self._name_of, "nb_iter", a.nb_iter)
end

-- A step along a direction, and back into the ball and the bounds.
function Iterative:_moved(adv, x, gradient)
  return self:_back(adv + self:_direction(gradient) * self.eps_iter, x)
end

-- A random point of the ball, at which the attack begins.
function Iterative:_random_start(x)
  local noise = self._draws:uniform({ table.unpack(x.shape) }, -1.0, 1.0, x.dtype)
  return common.clip(x + self:_in_ball(noise * (self._range * self.eps), self.eps), self._lo, self._hi)
end

local function define(name, parent, signature, what)
  local made = class.define(parent, name, signature, texts.doc(what, signature, name, ", ms.tensor { 0, 2 }"))
  M[name] = made
  return made
end

local BIM = define("BasicIterativeMethod", Iterative,
  "network, eps=0.3, eps_iter=0.1, bounds=nil, is_targeted=false, nb_iter=5, loss_fn=nil",
  [[The basic iterative method (Kurakin et al., 2017): fast gradient sign steps of length eps_iter, after each of which every pixel is
brought back to eps around the input.]])

local function plain_steps(self)
  self._step = common.compiled(function(adv, x, y) return self:_moved(adv, x, self:_slope(adv, y)) end)
end

local function iterated(self, adv, x, y)
  for _ = 1, self.nb_iter do adv = self._step(adv, x, y) end
  return adv
end

function BIM:setup(a)
  self:keep(a)
  plain_steps(self)
end
function BIM:_attack(x, y) return iterated(self, x, x, y) end

local PGD = define("ProjectedGradientDescent", Iterative,
  "network, eps=0.3, eps_iter=0.1, bounds=nil, is_targeted=false, nb_iter=5, norm_level=\"inf\", loss_fn=nil, random_start=true, "
  .. "restarts=1, seed=nil",
  [[Projected gradient descent (Madry et al., 2018): steps of length eps_iter in the norm, after each of which the perturbation is brought
to the nearest point of the ball of that norm. It begins at a random point of the ball, as the paper has it; random_start = false begins at
the input.]])

function PGD:setup(a)
  self:keep(a)
  self.random_start = check.boolean("ProjectedGradientDescent", "random_start", a.random_start)
  self.restarts = check.positive("ProjectedGradientDescent", "restarts", a.restarts)
  if self.restarts > 1 and not self.random_start then
    fail("ProjectedGradientDescent", ("restarts is %d, but without a random start all are the same"):format(self.restarts))
  end
  if not self.random_start then
    arguments.without_effect("ProjectedGradientDescent", PGD._signature, a, { "seed" }, "without a random start")
  end
  plain_steps(self)
end

function PGD:_attack(x, y)
  local best, greatest
  for _ = 1, self.restarts do
    local adv = iterated(self, self.random_start and self:_random_start(x) or x, x, y)
    if self.restarts == 1 then return adv end
    local losses = self._model:losses(adv, y) * self._sign
    if best == nil then
      best, greatest = adv, losses
    else
      local better = ops.greater(losses, greatest)
      best, greatest = ops.where(common.beside(x, better), adv, best), ops.maximum(losses, greatest)
    end
  end
  return best
end

-- A step along the momentum of gradients that are divided by their 1-norm: what (adv, momentum, x, y, ...) becomes. at(adv, momentum):
-- where the gradient is taken; seen(images, ...): the images that the network gets there.
local function momentum_steps(self, at, seen)
  return common.compiled(function(adv, momentum, x, y, ...)
    local place = at and at(self, adv, momentum) or adv
    local gradient
    if seen then
      local rows, columns = ...
      local model, network = self._model, self.network
      gradient = ms.grad(function(z) return ops.sum(model:losses_of(network(seen(z, rows, columns)), y)) end)(place) * self._sign
    else
      gradient = self:_slope(place, y)
    end
    momentum = momentum * self.decay_factor + common.divided(gradient, common.norms(gradient, self._gradient_norm))
    return self:_moved(adv, x, momentum), momentum
  end)
end

local function momentum_attack(self, x, y)
  local adv, momentum = x, ops.zeros_like(x)
  for _ = 1, self.nb_iter do adv, momentum = self._step(adv, momentum, x, y) end
  return adv
end

local function keep_momentum(self, a)
  self:keep(a)
  self.decay_factor, self._gradient_norm = check.finite_not_negative(self._name_of, "decay_factor", a.decay_factor), 1
end

local MI = define("MomentumIterativeMethod", Iterative,
  "network, eps=0.3, eps_iter=0.1, bounds=nil, is_targeted=false, nb_iter=5, decay_factor=1.0, norm_level=\"inf\", loss_fn=nil",
  [[The momentum iterative method (Dong et al., 2018): steps follow a momentum of the gradients, each divided by its 1-norm. norm_level is
the norm of the ball and of the steps.]])
function MI:setup(a)
  keep_momentum(self, a)
  self._step = momentum_steps(self)
end
MI._attack = momentum_attack

local function looked_ahead(self, adv, momentum)
  return adv + momentum * (self._range * self.eps_iter * self.decay_factor)
end

local NI = define("NesterovIterativeMethod", Iterative,
  "network, eps=0.3, eps_iter=0.1, bounds=nil, is_targeted=false, nb_iter=5, decay_factor=1.0, norm_level=\"inf\", loss_fn=nil",
  [[The Nesterov iterative method (Lin et al., 2020): as ms.armour.attacks.MomentumIterativeMethod, but each gradient is taken ahead, where
the momentum leads.]])
function NI:setup(a)
  keep_momentum(self, a)
  self._step = momentum_steps(self, looked_ahead)
end
NI._attack = momentum_attack

-- For each sample the matrix (H, H) of ones and zeros that resizes an axis of length H to `size` elements, by the nearest one below, and
-- puts them at `from` between zeros. size, from: integers (n,).
local function placed(size, from, length, dtype)
  local at = ops.arange(length):reshape { 1, length, 1 } - from:reshape { -1, 1, 1 }
  local sizes = size:reshape { -1, 1, 1 }
  local source = ops.floor_divide(at * length, sizes)
  local inside = ops.logical_and(ops.greater_equal(at, 0), ops.less(at, sizes))
  return ops.logical_and(inside, ops.equal(source, ops.arange(length):reshape { 1, 1, length })):astype(dtype)
end

local function resized(x, rows, columns)
  return ops.matmul(ops.matmul(ops.expand_dims(rows, 1), x), ops.expand_dims(ops.swapaxes(columns, 1, 2), 1))
end

-- The random sizes and places of each image along an axis: shares of the ways that there are, so that both axes get the same size.
local function places(self, n, length, share)
  local least = math.max(1, math.floor(length * self.resize_rate))
  local size = ops.floor(share * (length - least + 1)):astype(ms.int64) + least
  local from = ops.floor(self._draws:uniform({ n }, 0, 1, ms.float64) * (length - size + 1)):astype(ms.int64)
  return size, from
end

-- The matrices of one step: of all images, those that stay as they are included.
local function diverse(self, x)
  local n, height, width = x.shape[1], x.shape[3], x.shape[4]
  local stays = ops.greater_equal(self._draws:uniform({ n }, 0, 1, ms.float64), self.prob)
  local share = self._draws:uniform({ n }, 0, 1, ms.float64)
  local matrices = {}
  for axis, length in ipairs { height, width } do
    local size, from = places(self, n, length, share)
    size = ops.where(stays, ops.full_like(size, length), size)
    from = ops.where(stays, ops.zeros_like(from), from)
    matrices[axis] = placed(size, from, length, x.dtype)
  end
  return matrices[1], matrices[2]
end

local function keep_diverse(self, a)
  local name = getmetatable(self)._name
  local eps = check.number_positive(name, "eps", a.eps)
  a.eps_iter = a.eps_iter or 32 / 255
  a.nb_iter = a.nb_iter or math.max(1, math.floor(math.min(255 * eps + 4, 318.75 * eps)))
  self:keep(a)
  self.prob = check.probability(name, "prob", a.prob)
  self.resize_rate = check.probability(name, "resize_rate", a.resize_rate)
  if self.resize_rate == 0 then fail(name, "resize_rate must be above 0") end
end

local function diverse_attack(self, x, y)
  if x.ndim ~= 4 then
    fail("generate", ("diverse inputs are images (N, C, H, W), got the shape %s"):format(tostring(x.shape)))
  end
  local adv, momentum = x, ops.zeros_like(x)
  for _ = 1, self.nb_iter do adv, momentum = self._step(adv, momentum, x, y, self:_diverse(x)) end
  return adv
end

local DI = define("DiverseInputIterativeMethod", Iterative,
  "network, eps=0.3, bounds=nil, is_targeted=false, prob=0.5, loss_fn=nil, eps_iter=nil, nb_iter=nil, resize_rate=0.9, seed=nil",
  [[The diverse input method (Xie et al., 2019): as ms.armour.attacks.BasicIterativeMethod, but each gradient is taken, with probability
prob, through the image shrunk to a random size and put at a random place between zeros. eps_iter: default 32/255; nb_iter: default
min(255 eps + 4, 318.75 eps), rounded down.]])
function DI:setup(a)
  keep_diverse(self, a)
  self.decay_factor, self._gradient_norm = 0.0, 1
  self._step = momentum_steps(self, nil, resized)
end
DI._attack, DI._diverse = diverse_attack, diverse

local MDI = define("MomentumDiverseInputIterativeMethod", Iterative,
  "network, eps=0.3, bounds=nil, is_targeted=false, norm_level=\"l1\", prob=0.5, loss_fn=nil, decay_factor=1.0, eps_iter=nil, "
  .. "nb_iter=nil, resize_rate=0.9, seed=nil",
  [[The momentum diverse input method (Xie et al., 2019): as ms.armour.attacks.DiverseInputIterativeMethod, with a momentum of the
gradients. The ball is that of the largest element; norm_level is here the norm that gradients are divided by before they join the
momentum, in the paper the 1-norm.]])
function MDI:setup(a)
  local divisor = common.norm_kind("MomentumDiverseInputIterativeMethod", a.norm_level)
  a.norm_level = "inf"
  keep_diverse(self, a)
  self.decay_factor = check.finite_not_negative("MomentumDiverseInputIterativeMethod", "decay_factor", a.decay_factor)
  self._gradient_norm = divisor
  self._step = momentum_steps(self, nil, resized)
end
MDI._attack, MDI._diverse = diverse_attack, diverse

return M
