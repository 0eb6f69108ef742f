-- FastAdaptiveBoundary (FAB, Croce and Hein 2020): near adversarial samples by steps to the boundaries as they are linearised, drawn to the
-- sample itself, within the box of the inputs.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local margins = require "lunaria.armour.attacks.margins"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local FastAdaptiveBoundary = class.define(common.Attack, "FastAdaptiveBoundary",
  "network, norm_level=\"inf\", nb_iter=100, nb_restarts=1, n_target_classes=nil, eps=0.3, alpha_max=0.1, eta=1.05, beta=0.9, bounds=nil, "
    .. "seed=0",
  [[Near adversarial samples (FAB, Croce and Hein 2020): steps to the nearest boundary of the network as it is linearised, drawn to the
sample itself, exactly within the box of the inputs; what is adversarial is brought nearer and goes on. network: a cell or function of
inputs (N, ...) that gives logits. norm_level: 1, 2 or "inf", the distance. nb_iter: steps. nb_restarts: how often it begins, after the
first time at a random point. n_target_classes: so many classes of the largest logits are approached one after the other, each by the
gradient of its own boundary alone; nil takes the nearest boundary of all in each step. eps: how far random points are at most.
alpha_max: how much a step is drawn to the sample at most. eta: by what steps are lengthened, to cross the boundary. beta: the share of
its distance that an adversarial sample is brought back to. bounds: { low, high } of the inputs, { 0, 1 } if nil. seed: of the random
numbers. Samples whose class is not the label come back as they were.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
  > x = ms.full({ 2, 4 }, 0.5)
  > attack = ms.armour.attacks.FastAdaptiveBoundary(net, { nb_iter = 5 })
  > attack:generate(x, ms.ops.argmax(net(x), 1)).shape --> (2, 4)]])

function FastAdaptiveBoundary:setup(a)
  local name = "FastAdaptiveBoundary"
  self.norm = common.norm_kind(name, a.norm_level)
  for _, option in ipairs { "nb_iter", "nb_restarts" } do self[option] = check.positive(name, option, a[option]) end
  for _, option in ipairs { "eps", "eta" } do self[option] = check.number_positive(name, option, a[option]) end
  for _, option in ipairs { "alpha_max", "beta" } do self[option] = check.probability(name, option, a[option]) end
  self.n_target_classes = a.n_target_classes and check.positive(name, "n_target_classes", a.n_target_classes)
  self.low, self.high = common.bounds(name, a.bounds, { 0.0, 1.0 })
  if not math.type(self.low) then fail(name, "bounds must be two numbers, as { 0, 1 }") end
  self.seed = check.not_negative(name, "seed", a.seed)
  if self.nb_restarts == 1 then
    arguments.without_effect(name, FastAdaptiveBoundary._signature, a, { "eps", "seed" }, "without restarts, which begin at random points")
  end
  self.classifier = common.classifier(name, a.network)
  self._differences = common.compiled(function(x, own, other)
    local aux, gradient = ms.value_and_grad(function(at)
      local z = self.classifier.network(at)
      local difference = ops.sum(ops.where(other, z, 0), 1) - ops.sum(ops.where(own, z, 0), 1)
      return ops.sum(difference), difference
    end, { has_aux = true })(x)
    return aux[2], gradient
  end)
  self._logits = common.compiled(function(x) return self.classifier.network(x) end)
  self._move = common.compiled(function(...) return self:_step(...) end)
end

local dual = { [1] = "inf", [2] = 2, inf = 1 }

-- Steps that fill `room`, pixel by pixel, in the order in which `key` rises, until the product of slopes and steps is c: for the 1-norm.
local function filled(size, room, c)
  local order = ops.argsort(size, 1, true)
  local each = ops.gather_elements(size * room, 1, order)
  local before = ops.cumsum(each, 1) - each
  local part = ops.clip((c:reshape { -1, 1 } - before) / ops.maximum(each, 1e-30), 0, 1)
  return ops.gather_elements(part, 1, ops.argsort(order, 1)) * room
end

-- Steps min(t s, room) with the t for which the product of slopes and steps is c, where s is 1 for the norm infinity and the size of the
-- slope for the norm 2: the product is a piecewise linear function of t, whose corners are at room / s.
local function levelled(size, scale, room, c)
  local corner = room / ops.maximum(scale, 1e-30)
  local order = ops.argsort(corner, 1)
  local at = ops.gather_elements(corner, 1, order)
  local full, rate = ops.gather_elements(size * room, 1, order), ops.gather_elements(size * scale, 1, order)
  local sums, rates = ops.cumsum(full, 1), ops.cumsum(rate, 1)
  local left = rates["..., -1:"] - rates
  c = c:reshape { -1, 1 }
  -- Corners at which the product is still too small: those pixels are at the end of their room.
  local below = ops.less(sums + at * left, c):astype(size.dtype)
  local filled_up = ops.sum(below * full, 1, true)
  local open_rate = ops.sum((1 - below) * rate, 1, true)
  local t = ops.where(ops.greater(open_rate, 1e-30), (c - filled_up) / ops.maximum(open_rate, 1e-30), math.huge)
  return ops.minimum(ops.where(ops.isfinite(t), t, 0) * scale, room) + ops.where(ops.isfinite(t), 0, room)
end

-- The shortest step, in the norm, from points (N, D) to the plane where slope (N, D) times the step is c (N), within the box; where the box
-- does not reach the plane, as far as it goes.
local function to_plane(points, slope, c, norm, low, high)
  local up = ops.sign(slope) * ops.sign(c):reshape { -1, 1 }
  local size = ops.abs(slope)
  local room = ops.where(ops.greater(up, 0), high - points, ops.where(ops.less(up, 0), points - low, 0))
  local far = ops.abs(c)
  if norm == 1 then return up * filled(size, room, far) end
  return up * levelled(size, norm == 2 and size or ops.ones_like(size), room, far)
end

-- One step from points x of samples x0 (N, D): f (N), the other class's logit less the label's, and its slope w (N, D).
function FastAdaptiveBoundary:_step(x, x0, f, w)
  local count = x.shape[1]
  local plane = ops.sum(w * x, 1) - f
  local both, slopes = ops.concat({ x, x0 }, 0), ops.concat({ w, w }, 0)
  local c = ops.concat({ plane, plane }, 0) - ops.sum(slopes * both, 1)
  local steps = to_plane(both, slopes, c, self.norm, self.low, self.high)
  local own, first = steps[{ ms.slice(0, count) }], steps[{ ms.slice(count, 2 * count) }]
  local a, b = ops.maximum(common.norms(own, self.norm), 1e-8), ops.maximum(common.norms(first, self.norm), 1e-8)
  local alpha = ops.minimum(a / (a + b), self.alpha_max):reshape { -1, 1 }
  return ops.clip((x + own * self.eta) * (1 - alpha) + (x0 + first * self.eta) * alpha, self.low, self.high)
end

-- The nearest of all boundaries, or that of the target: the difference of logits (N) and its slope (N, D).
function FastAdaptiveBoundary:_boundary(x, y, mask, target)
  if target then
    local difference, slope = self._differences(x, mask, margins.mask(target, mask.shape[2]))
    return difference, slope:reshape { x.shape[1], -1 }
  end
  local z, slopes = self._jacobian(x)
  local count, classes = z.shape[1], z.shape[2]
  slopes = slopes:reshape { count, classes, -1 }
  local rows = ops.arange(count) * classes + y:astype(ms.int64)
  local differences = z - ops.sum(ops.where(mask, z, 0), 1, true)
  slopes = slopes - ops.gather(slopes:reshape { count * classes, -1 }, rows, 0):reshape { count, 1, -1 }
  local flat = slopes:reshape { count * classes, -1 }
  local far = ops.abs(differences) / ops.maximum(common.norms(flat, dual[self.norm]):reshape(z.shape), 1e-12)
  local nearest = ops.argmin(ops.where(mask, math.huge, far), 1)
  local at = ops.arange(count) * classes + nearest
  return ops.gather(differences:reshape { -1 }, at, 0), ops.gather(flat, at, 0)
end

-- Keeps in `best` what is nearer than before: points x and their logits.
local function note(self, best, x, z, x0, y)
  local is_adversarial = margins.is_reached(z, y, false)
  local far = common.norms(x - x0, self.norm)
  local nearer = ops.logical_and(is_adversarial, ops.less(far, best.far))
  best.x, best.far = margins.choose(nearer, x, best.x), ops.where(nearer, far, best.far)
  return is_adversarial
end

function FastAdaptiveBoundary:_run(x0, y, mask, target, start, best)
  local shape, count = x0.shape, x0.shape[1]
  local origin, x = x0:reshape { count, -1 }, start
  for _ = 1, self.nb_iter do
    local f, slope = self:_boundary(x, y, mask, target)
    x = self._move(x:reshape { count, -1 }, origin, f, slope):reshape(shape)
    local is_adversarial = note(self, best, x, self._logits(x), x0, y)
    x = margins.choose(is_adversarial, x0 + (x - x0) * self.beta, x)
  end
end

function FastAdaptiveBoundary:_search(x, y)
  local classes = self.classifier:classes(x)
  if not self._jacobian then self._jacobian = margins.jacobian(self.classifier.network, classes) end
  local mask = margins.mask(y, classes)
  local logits = self._logits(x)
  local best = { x = x, far = ops.full({ x.shape[1] }, math.huge, { dtype = x.dtype }) }
  local draws = common.generator(self.seed)
  local order = ops.argsort(ops.where(mask, -math.huge, logits), 1, true)
  local targets = self.n_target_classes and math.min(self.n_target_classes, classes - 1) or 0
  for restart = 1, self.nb_restarts do
    local start = x
    if restart > 1 then
      local noise = draws:uniform(x.shape, -1, 1, x.dtype)
      local reach = ops.minimum(best.far, self.eps * (self.high - self.low)) / 2
      noise = noise / common.beside(x, ops.maximum(common.norms(noise, self.norm), 1e-12))
      start = ops.clip(x + noise * common.beside(x, reach), self.low, self.high)
    end
    for k = 1, math.max(1, targets) do
      self:_run(x, y, mask, targets > 0 and order[{ ms.slice(), k - 1 }]:astype(y.dtype) or nil, start, best)
    end
  end
  -- What is no longer of its class comes back as it was.
  return margins.choose(margins.is_reached(logits, y, false), x, best.x)
end

function FastAdaptiveBoundary:_generate(inputs, labels)
  local x = common.images("FastAdaptiveBoundary", inputs, self.low, self.high)
  local y = common.labels("FastAdaptiveBoundary", labels, x.shape[1], self.classifier:classes(x))
  return common.predicting(self.classifier.network, self._search, self, x, y)
end

return { FastAdaptiveBoundary = FastAdaptiveBoundary }
