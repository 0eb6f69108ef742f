-- Attacks that minimise a distance plus a weighted loss of logits, with a search for the weight: Carlini and Wagner's with the L2 norm,
-- and the elastic-net attack, whose distance has an L1 norm beside it. A step of the whole batch is one function, which graph mode
-- compiles; what a sample becomes does not depend on the others.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local margins = require "lunaria.armour.attacks.margins"

local ops = ms.ops
local check = arguments.check
local choose = margins.choose

local Weighted = common.Attack:extend("Attack")

-- For setup: what both attacks take.
function Weighted:_keep(a)
  local name = getmetatable(self)._name
  self.classes = check.positive(name, "num_classes", a.num_classes)
  self.low, self.high = common.bounds(name, { check.number(name, "box_min", a.box_min), check.number(name, "box_max", a.box_max) })
  for _, option in ipairs { "bin_search_steps", "max_iterations" } do self[option] = check.positive(name, option, a[option]) end
  self.confidence = check.finite_not_negative(name, "confidence", a.confidence)
  for _, option in ipairs { "learning_rate", "initial_const" } do self[option] = check.number_positive(name, option, a[option]) end
  self.abort_early_check_ratio = check.number_positive(name, "abort_early_check_ratio", a.abort_early_check_ratio)
  for _, option in ipairs { "targeted", "abort_early" } do self[option] = check.boolean(name, option, a[option]) end
  if not self.abort_early then
    arguments.without_effect(name, getmetatable(self)._signature, a, { "abort_early_check_ratio" }, "where abort_early is false")
  end
  self.sparse = margins.sparse(name, a.sparse)
  self.classifier = common.classifier(name, a.network)
  self._step = common.compiled(function(...) return self:_one_step(...) end)
end

function Weighted:_lead(point, mask)
  return margins.distance(self.classifier.network(point), mask, self.targeted, self.confidence)
end

-- Looks in a row without a gain after which a sample's steps end: Adam swings about a minimum, and a single look may fall on a crest.
local PATIENCE = 2

-- Which samples go on, looked at now and then: those whose loss still falls, or for which nearer points are still found. Of the others
-- later points do not count.
local function watch(self, count)
  local every = math.max(1, math.ceil(self.max_iterations * self.abort_early_check_ratio))
  local least, near, waited
  return function(iteration, losses, distances, goes_on)
    if not self.abort_early or iteration % every ~= 0 then return goes_on end
    local gains = ops.ones({ count }, ms.bool)
    if least then gains = ops.logical_or(ops.less(losses, least * 0.9999), ops.less(distances, near * 0.9999)) end
    waited = ops.where(gains, 0, waited and waited + 1 or 0)
    least, near = least and ops.minimum(losses, least) or losses, distances
    goes_on = ops.logical_and(goes_on, ops.less(waited, PATIENCE))
    return goes_on, not ops.any(goes_on):item()
  end
end

-- The search. _begin(x) gives what the steps start from and its origin; _one_step makes a step and judges its point.
function Weighted:_search(x, y)
  local count, mask = x.shape[1], margins.mask(y, self.classes)
  local first, origin = self:_begin(x)
  local weights = margins.weights(self.initial_const, count, x.dtype)
  local best, least = x, ops.full({ count }, math.huge, { dtype = x.dtype })
  for _ = 1, self.bin_search_steps do
    local state, one, two = first, self:_beside(first)
    local found, goes_on, look = ops.zeros({ count }, ms.bool), ops.ones({ count }, ms.bool), watch(self, count)
    local losses, all_ended
    for k = 1, self.max_iterations do
      local rate, share = self:_rates(k)
      rate, share = ops.full({}, rate, { dtype = x.dtype }), ops.full({}, share, { dtype = x.dtype })
      state, one, two, best, least, found, losses =
        self._step(state, one, two, best, least, found, goes_on, origin, mask, weights.value, rate, share)
      if self.fast and ops.all(ops.less(least, math.huge)):item() then return best end
      goes_on, all_ended = look(k, losses, least, goes_on)
      if all_ended then break end
    end
    weights.update(found)
  end
  return best
end

function Weighted:_generate(inputs, labels)
  local name = getmetatable(self)._name
  local x = common.images(name, inputs, self.low, self.high)
  local y = margins.labels(name, labels, x.shape[1], self.classes, self.sparse)
  margins.check_classes(name, self.classifier, x, self.classes)
  return common.predicting(self.classifier.network, self._search, self, x, y)
end

local CarliniWagnerL2Attack = class.define(Weighted, "CarliniWagnerL2Attack",
  "network, num_classes, box_min=0.0, box_max=1.0, bin_search_steps=5, max_iterations=1000, confidence=0, learning_rate=0.005, "
    .. "initial_const=0.01, abort_early_check_ratio=0.05, targeted=false, fast=false, abort_early=true, sparse=nil",
  [[The attack of Carlini and Wagner (2017), which looks for the smallest L2 distance: Adam minimises |x' - x|^2 + c max(lead, 0) over w
with x' = tanh(w) in the box, where lead is by how much the true class leads (the target lags) in logits, and a search finds the
smallest c that succeeds for each sample. network: a cell or function of inputs (N, ...) that gives logits. num_classes: how many it
gives. box_min, box_max: the range of the inputs. bin_search_steps: how many c are tried for each sample, from initial_const on.
max_iterations: steps of Adam for each of them. learning_rate: that of Adam. confidence: by how much the wrong class has to lead.
abort_early: a sample's steps end when in two looks, one after each abort_early_check_ratio of the iterations, neither its loss has
fallen nor a nearer sample been found. targeted: labels are the classes to reach. fast: ends as soon as each sample has an adversarial
one, without a search for near ones. sparse: true takes labels as class numbers only, false as one-hot only. Samples for which none is
found come back as they were.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
  > x = ms.full({ 2, 4 }, 0.5)
  > attack = ms.armour.attacks.CarliniWagnerL2Attack(net, 3, { max_iterations = 20, bin_search_steps = 2 })
  > attack:generate(x, ms.ops.argmax(net(x), 1)).shape --> (2, 4)]])

function CarliniWagnerL2Attack:setup(a)
  self:_keep(a)
  self.fast = check.boolean("CarliniWagnerL2Attack", "fast", a.fast)
  self.half, self.middle = (self.high - self.low) / 2, (self.high + self.low) / 2
end

-- Inputs are drawn in by this, as tanh has no inverse at the ends of the box.
local INSIDE = 0.999999

function CarliniWagnerL2Attack:_begin(x)
  local w = ops.atanh((x - self.middle) / self.half * INSIDE)
  return w, ops.tanh(w) * self.half + self.middle
end

function CarliniWagnerL2Attack:_beside(w) return ops.zeros_like(w), ops.zeros_like(w) end -- luacheck: ignore 212

-- Adam's small constant stands beside the root after its correction, as in its paper. Beside the root as it is, as some programs have it,
-- it outweighs the slopes of pixels at the ends of the box, where tanh is flat, and the samples that are found are a percent further away.
function CarliniWagnerL2Attack:_rates(k) return self.learning_rate / (1 - 0.9 ^ k), math.sqrt(1 - 0.999 ^ k) end

function CarliniWagnerL2Attack:_one_step(w, mean, square, best, least, found, goes_on, origin, mask, weight, rate, share)
  local aux, gradient = ms.value_and_grad(function(at)
    local point = ops.tanh(at) * self.half + self.middle
    local distance = ops.sum(ops.square(point - origin):reshape { point.shape[1], -1 }, 1)
    local lead = self:_lead(point, mask)
    local losses = distance + weight * ops.relu(lead)
    return ops.sum(losses), point, distance, lead, losses
  end, { has_aux = true })(w)
  local point, distance, hit = aux[2], aux[3], ops.logical_and(ops.less(aux[4], 0), goes_on)
  local better = ops.logical_and(hit, ops.less(distance, least))
  mean, square = mean * 0.9 + gradient * 0.1, square * 0.999 + ops.square(gradient) * 0.001
  return w - mean / (ops.sqrt(square) / share + 1e-8) * rate, mean, square, choose(better, point, best), ops.where(better, distance, least),
    ops.logical_or(found, hit), aux[5]
end

local ElasticNetAttack = class.define(Weighted, "ElasticNetAttack",
  "network, num_classes, box_min=0.0, box_max=1.0, bin_search_steps=9, max_iterations=1000, confidence=0, learning_rate=0.01, "
    .. "initial_const=0.001, beta=0.01, decision_rule=\"EN\", abort_early_check_ratio=0.1, targeted=false, abort_early=true, sparse=nil",
  [[The elastic-net attack (EAD, Chen and others 2018), which looks for the smallest beta |x' - x|_1 + |x' - x|_2^2 and so changes few
pixels: FISTA minimises it plus c max(lead, 0), where lead is by how much the true class leads (the target lags) in logits, and a search
finds the smallest c that succeeds. network: a cell or function of inputs (N, ...) that gives logits. num_classes: how many it gives.
box_min, box_max: the range of the inputs. beta: the weight of the L1 norm, and the size up to which a change is left out.
decision_rule: "EN", "L1" or "L2", the distance by which the best sample is chosen. bin_search_steps: how many c are tried for each
sample, from initial_const on. max_iterations: steps for each of them. learning_rate: the first size of a step, which falls to 0 as a
root does. confidence: by how much the wrong class has to lead. abort_early: a sample's steps end when in two looks, one after each
abort_early_check_ratio of the iterations, neither its loss has fallen nor a nearer sample been found. targeted: labels are the classes
to reach. sparse: true takes labels as class numbers only, false as one-hot only. Samples for which none is found come back as they
were.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
  > x = ms.full({ 2, 4 }, 0.5)
  > attack = ms.armour.attacks.ElasticNetAttack(net, 3, { max_iterations = 20, bin_search_steps = 2 })
  > attack:generate(x, ms.ops.argmax(net(x), 1)).shape --> (2, 4)]])

function ElasticNetAttack:setup(a)
  self:_keep(a)
  self.beta = check.finite_not_negative("ElasticNetAttack", "beta", a.beta)
  self.decision_rule = check.choice("ElasticNetAttack", "decision_rule", a.decision_rule, { "EN", "L1", "L2" })
end

function ElasticNetAttack:_begin(x) return x, x end -- luacheck: ignore 212

-- The point ahead of the last one, where the slope is taken.
function ElasticNetAttack:_beside(x) return x, nil end -- luacheck: ignore 212

function ElasticNetAttack:_rates(k)
  return self.learning_rate * math.sqrt(1 - (k - 1) / self.max_iterations), (k - 1) / (k + 2)
end

-- What is changed by at most beta goes back to x, all else by beta towards it, and into the box.
local function shrunk(self, point, x)
  local change = point - x
  return ops.clip(x + ops.sign(change) * ops.relu(ops.abs(change) - self.beta), self.low, self.high)
end

function ElasticNetAttack:_distance(change)
  local l1, l2 = ops.sum(ops.abs(change), 1), ops.sum(ops.square(change), 1)
  if self.decision_rule == "L1" then return l1 end
  return self.decision_rule == "L2" and l2 or l1 * self.beta + l2
end

function ElasticNetAttack:_one_step(point, ahead, _, best, least, found, goes_on, x, mask, weight, rate, share)
  local count = x.shape[1]
  local aux, gradient = ms.value_and_grad(function(at)
    local losses = ops.sum(ops.square(at - x):reshape { count, -1 }, 1) + weight * ops.relu(self:_lead(at, mask))
    return ops.sum(losses), losses
  end, { has_aux = true })(ahead)
  local next_point = shrunk(self, ahead - gradient * rate, x)
  local hit = ops.logical_and(ops.less(self:_lead(next_point, mask), 0), goes_on)
  local distance = self:_distance((next_point - x):reshape { count, -1 })
  local better = ops.logical_and(hit, ops.less(distance, least))
  return next_point, next_point + (next_point - point) * share, nil, choose(better, next_point, best),
    ops.where(better, distance, least), ops.logical_or(found, hit), aux[2]
end

return { CarliniWagnerL2Attack = CarliniWagnerL2Attack, ElasticNetAttack = ElasticNetAttack }
