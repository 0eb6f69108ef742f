-- EmbeddingAttack: pictures whose embeddings come near to those of others, or leave those of their own, as of networks that recognise faces
-- by how alike their embeddings are.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local margins = require "lunaria.armour.attacks.margins"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local EmbeddingAttack = class.define(common.Attack, "EmbeddingAttack",
  "network, mode=\"impersonation\", eps=0.3, eps_iter=0.03, nb_iter=40, norm_level=\"inf\", decay_factor=0.9, mask=nil, threshold=nil, "
    .. "random_start=false, bounds=nil, seed=0",
  [[An attack on networks that recognise by embeddings, as of faces: steps along the momentum of the slope of the cosine between the
embeddings of a picture and of a reference. network: a cell or function of pictures (N, ...) that gives embeddings (N, E). mode:
"impersonation", where the references are other persons who the pictures come to be taken for, or "dodging", where they are pictures of
the same persons, who are no longer recognised. eps: the radius of the ball about each picture, as a share of the range. eps_iter: the
length of a step. nb_iter: how many steps. norm_level: 1, 2 or "inf". decay_factor: the share of earlier slopes in a step. mask: a
tensor that goes with the pictures, 1 where they may change, as on the rims of glasses, nil for everywhere. threshold: the cosine from
which two pictures are of one person; the point is then the first one beyond it, and steps end when all are; nil takes the furthest of
all points. random_start: begin at a random point of the ball. bounds: { low, high } of the pictures, { 0, 1 } if nil. seed: of the
random numbers. generate(pictures, references) gives the pictures. similarity(pictures, references) gives the cosines (N).

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 8))
  > x, others = ms.rand(2, 1, 4, 4), ms.rand(2, 1, 4, 4)
  > attack = ms.armour.attacks.EmbeddingAttack(net, "impersonation")
  > adv = attack:generate(x, others)
  > ms.ops.all(ms.ops.greater(attack:similarity(adv, others), attack:similarity(x, others))):item() --> true]])

function EmbeddingAttack:setup(a)
  local name = "EmbeddingAttack"
  if not arguments.is_callable(a.network) then
    fail(name, "network must be a cell or a function that gives embeddings, got " .. describe(a.network))
  end
  self.network, self.norm = a.network, common.norm_kind(name, a.norm_level)
  self.mode = check.choice(name, "mode", a.mode, { "impersonation", "dodging" })
  for _, option in ipairs { "eps", "eps_iter" } do self[option] = check.number_positive(name, option, a[option]) end
  self.nb_iter = check.positive(name, "nb_iter", a.nb_iter)
  self.decay_factor = check.finite_not_negative(name, "decay_factor", a.decay_factor)
  self.low, self.high = common.bounds(name, a.bounds, { 0.0, 1.0 })
  if not math.type(self.low) then fail(name, "bounds must be two numbers, as { 0, 1 }") end
  if a.mask ~= nil and not ms.is_tensor(a.mask) then fail(name, "mask must be a tensor, got " .. describe(a.mask)) end
  self.mask = a.mask
  self.threshold = a.threshold and check.real(name, "threshold", a.threshold)
  if self.threshold and math.abs(self.threshold) > 1 then
    fail(name, ("threshold must be a cosine, from -1 to 1, got %g"):format(self.threshold))
  end
  self.random_start, self.seed = check.boolean(name, "random_start", a.random_start), check.not_negative(name, "seed", a.seed)
  if not self.random_start then arguments.without_effect(name, EmbeddingAttack._signature, a, { "seed" }, "without a random start") end
  self._embedded = common.compiled(function(x) return self:_units(x) end)
  self._step = common.compiled(function(...) return self:_one_step(...) end)
end

-- Embeddings of length 1.
function EmbeddingAttack:_units(x)
  local e = self.network(x)
  return e / ops.maximum(ops.sqrt(ops.sum(ops.square(e), 1, true)), 1e-12)
end

function EmbeddingAttack:_references(pictures, references)
  local where = "EmbeddingAttack"
  local x = common.images(where, pictures, self.low, self.high)
  if not ms.is_tensor(references) or tostring(references.shape) ~= tostring(x.shape) then
    fail(where, ("references must be pictures of shape %s, as those that are changed, got %s"):format(tostring(x.shape),
      describe(references)))
  end
  local goals = common.predicting(self.network, self._embedded, common.images(where, references, self.low, self.high))
  if goals.ndim ~= 2 then fail(where, "the network must give embeddings (N, E), got " .. describe(goals)) end
  return x, goals
end

--- The cosines (N) between the embeddings of pictures and of references. pictures, references: tensors (N, ...).
---     > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
---     > x = ms.rand(2, 4)
---     > ms.armour.attacks.EmbeddingAttack(net):similarity(x, x):tolist()[1] > 0.999 --> true
function EmbeddingAttack:similarity(pictures, references)
  local x, goals = self:_references(pictures, references)
  return ops.sum(common.predicting(self.network, self._embedded, x) * goals, 1)
end

-- The next points and their momentum; and what is to grow, at the points themselves.
function EmbeddingAttack:_one_step(point, momentum, x, goals)
  local sign = self.mode == "impersonation" and 1.0 or -1.0
  local aux, slope = ms.value_and_grad(function(at)
    local gains = ops.sum(self:_units(at) * goals, 1) * sign
    return ops.sum(gains), gains
  end, { has_aux = true })(point)
  if self.mask then slope = slope * self.mask:astype(x.dtype) end
  local size = common.beside(x, ops.maximum(common.norms(slope, 1), 1e-30))
  momentum = momentum * self.decay_factor + slope / size
  local range = self.high - self.low
  local moved = point + common.steepest(momentum, self.norm) * (self.eps_iter * range)
  moved = x + common.project(moved - x, self.norm, self.eps * range)
  return ops.clip(moved, self.low, self.high), momentum, aux[2]
end

-- The first point beyond the threshold, or the one with the greatest gain.
function EmbeddingAttack:_search(x, goals)
  local point, momentum = x, ops.zeros_like(x)
  if self.random_start then
    local range = self.eps * (self.high - self.low)
    local noise = common.generator(self.seed):uniform(x.shape, -range, range, x.dtype)
    if self.mask then noise = noise * self.mask:astype(x.dtype) end
    point = ops.clip(x + common.project(noise, self.norm, range), self.low, self.high)
  end
  local best, gain
  local wanted = self.threshold and (self.mode == "impersonation" and self.threshold or -self.threshold) or math.huge
  for _ = 1, self.nb_iter + 1 do
    local moved, next_momentum, gains = self._step(point, momentum, x, goals)
    local better = gain and ops.logical_and(ops.greater(gains, gain), ops.less(gain, wanted)) or ops.ones_like(gains):astype(ms.bool)
    best, gain = margins.choose(better, point, best or point), ops.where(better, gains, gain or gains)
    if ops.all(ops.greater_equal(gain, wanted)):item() then break end
    point, momentum = moved, next_momentum
  end
  return best
end

function EmbeddingAttack:_generate(pictures, references)
  local x, goals = self:_references(pictures, references)
  return common.predicting(self.network, self._search, self, x, goals)
end

return { EmbeddingAttack = EmbeddingAttack }
