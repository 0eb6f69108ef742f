-- NES: gradients estimated from answers at random points about a sample (Ilyas and others 2018), where a budget of questions is all that
-- there is, where the model tells only its first classes, and where it tells only their order.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local asking = require "lunaria.armour.black.asking"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local NES = class.define(asking.BlackAttack, "NES",
  "model, scene, max_queries=10000, top_k=-1, num_class=10, batch_size=128, epsilon=0.3, samples_per_draw=128, momentum=0.9, "
    .. "learning_rate=1e-3, max_lr=5e-2, min_lr=5e-4, sigma=1e-3, plateau_length=20, plateau_drop=2.0, adv_thresh=0.25, zero_iters=10, "
    .. "starting_eps=1.0, starting_delta_eps=0.5, label_only_sigma=1e-3, conservative=2, sparse=nil, bounds=nil, is_targeted=true, seed=0",
  [[Signs of estimated gradients (Ilyas and others 2018): the loss at pairs of random points x + sigma u and x - sigma u gives its slope.
Labels are the classes to reach. model: a BlackModel, a cell or a function of inputs (N, ...) that gives logits. scene: "Query_Limit",
where steps lead from the input to the label within epsilon; "Partial_Info", where only the top_k largest logits count; or "Label_Only",
where only their order does. In the latter two the steps lead from a sample of the label, see set_target_images, towards the input, in a
cube that shrinks from starting_eps to epsilon while the label stays among the first top_k. max_queries: questions for each sample at
most. top_k: how many classes are known, all if -1. num_class: how many there are. batch_size: points that the model is asked for at
once. epsilon: the largest change at the end, as a share of the range. samples_per_draw: points for an estimate, a multiple of 2.
momentum: the share of earlier estimates in a step. learning_rate: the size of a step in Query_Limit, divided by plateau_drop where
plateau_length estimates have not lowered the loss. max_lr, min_lr: the largest and smallest size of a step. sigma: how far the points
of an estimate are. adv_thresh: the loss below which the cube shrinks. zero_iters: random points about each one of an estimate in
Label_Only, over which the place of the label in the order is averaged. label_only_sigma: how far they are. starting_delta_eps: the part
by which the cube shrinks at first, halved where the label does not stay known. conservative: by what that part is divided when the step
is made. is_targeted: false leads away from the labels, in Query_Limit only. bounds: { low, high } of the inputs, { 0, 1 } if nil.
sparse: true takes labels as class numbers only, false as one-hot only. seed: of the random numbers.

  > net = ms.nn.SequentialCell(ms.nn.Dense(9, 3))
  > attack = ms.armour.attacks.black.NES(net, "Query_Limit", { num_class = 3, max_queries = 300, samples_per_draw = 20 })
  > select(2, attack:generate(ms.rand(2, 9), ms.tensor { 0, 1 })).shape --> (2, 9)]])

-- What the other scenes ask for alone.
local idle = {
  Query_Limit = { "top_k", "adv_thresh", "zero_iters", "starting_eps", "starting_delta_eps", "label_only_sigma", "conservative" },
  Partial_Info = { "learning_rate", "plateau_length", "plateau_drop", "zero_iters", "label_only_sigma" },
  Label_Only = { "learning_rate", "plateau_length", "plateau_drop" },
}

local function keep_numbers(self, a)
  for _, name in ipairs { "num_class", "samples_per_draw", "plateau_length", "zero_iters" } do
    self[name] = check.positive("NES", name, a[name])
  end
  for _, name in ipairs { "epsilon", "learning_rate", "max_lr", "min_lr", "sigma", "plateau_drop", "starting_eps", "starting_delta_eps",
    "label_only_sigma", "conservative" } do
    self[name] = check.number_positive("NES", name, a[name])
  end
  self.momentum, self.adv_thresh = check.rate("NES", "momentum", a.momentum), check.probability("NES", "adv_thresh", a.adv_thresh)
end

function NES:setup(a)
  self:_keep(a)
  keep_numbers(self, a)
  self.scene = check.choice("NES", "scene", a.scene, { "Query_Limit", "Partial_Info", "Label_Only" })
  arguments.without_effect("NES", NES._signature, a, idle[self.scene], ("where scene is '%s'"):format(self.scene))
  self.top_k = check.integer("NES", "top_k", a.top_k)
  if self.top_k ~= -1 and self.top_k < 1 or self.top_k > self.num_class then
    fail("NES", ("top_k must be -1 or from 1 to num_class, which is %d, got %d"):format(self.num_class, self.top_k))
  end
  if self.top_k == -1 then self.top_k = self.num_class end
  if self.samples_per_draw % 2 ~= 0 then fail("NES", ("samples_per_draw must be even, got %d"):format(self.samples_per_draw)) end
  if self.min_lr > self.max_lr then fail("NES", ("min_lr is %g and max_lr is %g"):format(self.min_lr, self.max_lr)) end
  if not self.is_targeted and self.scene ~= "Query_Limit" then
    fail("NES", "is_targeted = false needs scene 'Query_Limit', got '" .. self.scene .. "'")
  end
  self.range = self.high - self.low
end

--- What the scenes Partial_Info and Label_Only start from. target_images: samples of the labels, like the inputs (N, ...). Gives the attack
--- back.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
---     > ms.armour.attacks.black.NES(net, "Partial_Info", { num_class = 3 }):set_target_images(ms.rand(2, 4)).scene --> Partial_Info
function NES:set_target_images(target_images)
  if not ms.is_tensor(target_images) then
    fail("set_target_images", "target_images must be a tensor like the inputs, got " .. arguments.describe(target_images))
  end
  self.target_images = target_images
  return self
end

--- The slope of a loss at a point. losses: those at point + sigma u and behind them at point - sigma u (2 R). directions: u (R, ...).
--- sigma: how far these points are.
---     > u = ms.tensor { { 1.0, 0.0 }, { 0.0, 2.0 } }
---     > losses = ms.ops.concat({ u * 0.1, u * -0.1 }, 0):sum(1)
---     > ms.armour.attacks.black.NES.estimate(losses, u, 0.1):tolist()[2] --> 2.0
function NES.estimate(losses, directions, sigma)
  local count = directions.shape[1]
  local column = { count }
  for axis = 2, directions.ndim do column[axis] = 1 end
  local rise = losses[{ ms.slice(0, count) }] - losses[{ ms.slice(count, 2 * count) }]
  return ops.mean(rise:reshape(column) * directions, 0) / (2 * sigma)
end

function NES:_prepare(samples, x)
  if self.scene == "Query_Limit" then return end
  local starts = self.target_images
  if not starts then
    fail("NES", "scene '" .. self.scene .. "' starts from samples of the labels", "attack:set_target_images(images), one for each input")
  end
  if tostring(starts.shape) ~= tostring(x.shape) then
    fail("NES", ("there are inputs of shape %s, and target images of shape %s"):format(tostring(x.shape), tostring(starts.shape)))
  end
  for i, sample in ipairs(samples) do sample.start = starts[i - 1]:astype(x.dtype) end
end

-- Negative log-probabilities of the label (R), among the classes that are known; where it is none of these, that of the last one.
local function losses_of(self, sample, answers)
  local logs = ops.log_softmax(answers, 1)
  local own = logs[{ ms.slice(), sample.label }]
  if self.scene == "Partial_Info" and self.top_k < answers.shape[2] then
    local top = ops.topk(answers, self.top_k, 1)
    local last = top[{ ms.slice(), self.top_k - 1 }]
    own = ops.log(ops.exp(own) * ops.greater_equal(answers[{ ms.slice(), sample.label }], last):astype(own.dtype) + 1e-12)
  end
  return self.is_targeted and -own or own
end

-- Places of the label in the order of answers (R, K), 0 for the first.
local function places(sample, answers)
  local own = answers[{ ms.slice(), ms.slice(sample.label, sample.label + 1) }]
  return ops.sum(ops.greater(answers, own):astype(answers.dtype), 1)
end

-- What the order tells: how far behind the top_k the label is at random points about each of the points, on average.
local function placed_losses(self, sample, points)
  local count, sum = points.shape[1], nil
  for _ = 1, self.zero_iters do
    local noise = sample.draws:uniform(points.shape, -1, 1, points.dtype) * (self.label_only_sigma * self.range)
    local behind = ops.minimum(places(sample, sample.ask(points + noise)), self.top_k)
    sum = sum and sum + behind or behind
  end
  return sum:reshape { count } / self.zero_iters
end

local function slope_at(self, sample, point)
  local shape = { self.samples_per_draw // 2 }
  for axis = 1, point.ndim do shape[axis + 1] = point.shape[axis] end
  local u, sigma = sample.draws:normal(shape, point.dtype), self.sigma * self.range
  local points = ops.concat({ point + u * sigma, point - u * sigma }, 0)
  local losses
  if self.scene == "Label_Only" then
    losses = placed_losses(self, sample, points)
  else
    losses = losses_of(self, sample, sample.ask(points))
  end
  return NES.estimate(losses, u, sigma), ops.mean(losses):item()
end

-- Into the box of the inputs and the cube of this half side about the sample.
local function bounded(self, sample, point, wide)
  wide = wide * self.range
  return ops.clip(ops.minimum(ops.maximum(point, sample.x - wide), sample.x + wide), self.low, self.high)
end

-- Steps down the loss in the cube of epsilon.
local function within_budget(self, sample)
  local point, mean, rate = sample.x, nil, math.min(self.max_lr, self.learning_rate)
  local least, stands = math.huge, 0
  while true do
    local slope, loss = slope_at(self, sample, point)
    mean = mean and mean * self.momentum + slope * (1 - self.momentum) or slope
    stands = loss < least and 0 or stands + 1
    least = math.min(least, loss)
    if stands >= self.plateau_length then rate, stands = math.max(self.min_lr, rate / self.plateau_drop), 0 end
    point = bounded(self, sample, point - ops.sign(mean) * (rate * self.range), self.epsilon)
    sample.best = point
    if self:_is_adversarial(sample, point) then
      sample.found = true
      return
    end
  end
end

-- Whether the label is among the classes that are known of a point, and the first of them.
local function standing(self, sample, point)
  local answers = sample.ask(ops.expand_dims(point, 0))
  local place = places(sample, answers):item()
  return place < self.top_k, place == 0
end

-- The smallest part by which a cube is worth shrinking, and the least to begin with after one that succeeded.
local LEAST_PART, FIRST_PART = 2e-3, 0.1

-- A step along a slope with which the label stays known, in a cube that is smaller by at most `part`: steps are halved before the part is.
-- Gives the point, the part, and whether the label leads; nil where no step is found.
local function kept_step(self, sample, point, slope, wide, part)
  local rate = self.max_lr
  while true do
    local next_point = bounded(self, sample, point - ops.sign(slope) * (rate * self.range), math.max(self.epsilon, wide - part))
    local known, leads = standing(self, sample, next_point)
    if known then return next_point, part, leads end
    if rate >= 2 * self.min_lr then
      rate = rate / 2
    elseif part == 0 then
      return nil
    else
      part, rate = part / 2, self.max_lr
      if part < LEAST_PART then part = 0 end
    end
  end
end

-- Steps within a cube that shrinks about the input, while the label stays known.
local function shrinking(self, sample)
  local wide, next_part = self.starting_eps, self.starting_delta_eps
  local point = bounded(self, sample, sample.start, wide)
  local known, leads = standing(self, sample, point)
  local mean
  if not known then return end
  while not (leads and wide <= self.epsilon) do
    local slope, loss = slope_at(self, sample, point)
    mean = mean and mean * self.momentum + slope * (1 - self.momentum) or slope
    local wanted = loss < self.adv_thresh and wide > self.epsilon and next_part or 0
    local next_point, part, does_lead = kept_step(self, sample, point, mean, wide, wanted)
    if next_point then
      if part > 0 then next_part = math.max(part, FIRST_PART) end
      point, leads, wide = next_point, does_lead, math.max(self.epsilon, wide - part / self.conservative)
    else
      -- No step along earlier slopes is any good: only the next one counts.
      mean = nil
    end
    sample.best = point
  end
  sample.found = true
end

function NES:_attack(sample)
  if self.scene == "Query_Limit" then return within_budget(self, sample) end
  return shrinking(self, sample)
end

return { NES = NES }
