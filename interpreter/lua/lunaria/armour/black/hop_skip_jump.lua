-- HopSkipJumpAttack: near adversarial samples by decisions alone (Chen, Jordan and Wainwright 2020): steps to the boundary by bisection,
-- the direction of the boundary from decisions about it, and a jump along this direction.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local asking = require "lunaria.armour.black.asking"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local HopSkipJumpAttack = class.define(asking.BlackAttack, "HopSkipJumpAttack",
  "model, init_num_evals=100, max_num_evals=1000, stepsize_search=\"geometric_progression\", num_iterations=20, gamma=1.0, "
    .. "constraint=\"l2\", batch_size=32, clip_min=0.0, clip_max=1.0, sparse=nil, max_queries=nil, seed=0",
  [[The nearest adversarial sample that decisions alone lead to (Chen, Jordan and Wainwright 2020). model: a BlackModel, a cell or a
function of inputs (N, ...) that gives logits or class numbers. Labels are the classes of the inputs, nil for what the model says; after
set_target_images they are the classes to reach. init_num_evals: questions for the first estimate of the boundary's direction, which
grow with the root of the iterations up to max_num_evals. stepsize_search: "geometric_progression", where a step is halved until it
succeeds, or "grid_search", which tries steps of many sizes. num_iterations: estimates of the direction. gamma: a factor of the
precision of bisections, above 1 for coarser ones. constraint: "l2" or "linf", the distance. batch_size: points that the model is asked
for at once. clip_min, clip_max: the range of the inputs. sparse: true takes labels as class numbers only, false as one-hot only.
max_queries: questions for each sample at most; the best sample so far is what remains. seed: of the random numbers.

  > net = ms.nn.SequentialCell(ms.nn.Dense(9, 3))
  > attack = ms.armour.attacks.black.HopSkipJumpAttack(net, { num_iterations = 2 })
  > select(2, attack:generate(ms.rand(2, 9))).shape --> (2, 9)]])

function HopSkipJumpAttack:setup(a)
  local low = check.number("HopSkipJumpAttack", "clip_min", a.clip_min)
  local high = check.number("HopSkipJumpAttack", "clip_max", a.clip_max)
  a.bounds, a.is_targeted = { low, high }, false
  self:_keep(a)
  for _, name in ipairs { "init_num_evals", "max_num_evals", "num_iterations" } do
    self[name] = check.positive("HopSkipJumpAttack", name, a[name])
  end
  self.gamma = check.number_positive("HopSkipJumpAttack", "gamma", a.gamma)
  self.stepsize_search = check.choice("HopSkipJumpAttack", "stepsize_search", a.stepsize_search, { "geometric_progression", "grid_search" })
  self.norm = check.choice("HopSkipJumpAttack", "constraint", a.constraint, { "l2", "linf" }) == "l2" and 2 or "inf"
end

--- Makes the attack a targeted one. target_images: samples of the classes to reach, like the inputs (N, ...), from which it starts; nil is
--- the way back. Gives the attack back.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
---     > ms.armour.attacks.black.HopSkipJumpAttack(net):set_target_images(ms.rand(2, 4)).is_targeted --> true
function HopSkipJumpAttack:set_target_images(target_images)
  target_images = arguments.named("set_target_images", { "target_images" }, target_images)
  if target_images ~= nil and not ms.is_tensor(target_images) then
    fail("set_target_images", "target_images must be a tensor like the inputs, got " .. arguments.describe(target_images))
  end
  self.target_images, self.is_targeted = target_images, target_images ~= nil
  return self
end

function HopSkipJumpAttack:_prepare(samples, x)
  local starts = self.target_images
  if not starts then return end
  if tostring(starts.shape) ~= tostring(x.shape) then
    fail("HopSkipJumpAttack", ("there are inputs of shape %s, and target images of shape %s"):format(tostring(x.shape),
      tostring(starts.shape)))
  end
  for i, sample in ipairs(samples) do sample.start = starts[i - 1]:astype(x.dtype) end
end

local function distance(self, a, b) return common.norms(ops.expand_dims(a - b, 0), self.norm):item() end

-- The point between the sample and an adversarial one: a share of the way (2), or a cube about the sample (infinity).
local function between(self, x, point, share)
  if self.norm == 2 then return x * (1 - share) + point * share end
  return ops.minimum(ops.maximum(point, x - share), x + share)
end

-- The last adversarial point on the way from an adversarial one to the sample, to the precision that the dimension asks for.
local function to_boundary(self, sample, point, dimension)
  local low, high, precision
  if self.norm == 2 then
    low, high, precision = 0.0, 1.0, self.gamma / (dimension * math.sqrt(dimension))
  else
    high = distance(self, point, sample.x)
    low, precision = 0.0, math.min(high * self.gamma / (dimension * dimension), high * 1e-3)
  end
  -- Float32 has no finer steps.
  precision = math.max(precision, 1e-7)
  while high - low > precision do
    local middle = (low + high) / 2
    if middle <= low or middle >= high then break end
    if self:_is_adversarial(sample, between(self, sample.x, point, middle)) then high = middle else low = middle end
  end
  return between(self, sample.x, point, high)
end

-- Points to start from: noise, a single value, and noise in coarse blocks, in turn; a model that takes all noise for one class is not that
-- sure of all of them.
local function drawn_start(self, sample, kind)
  local x = sample.x
  local function noise(shape) return sample.draws:uniform(shape, self.low, self.high, x.dtype) end
  if kind == 1 then return noise(x.shape) end
  local blocks = kind == 2 and 1 or sample.draws:integers({ 1 }, 2, 8):item()
  if x.ndim < 3 then return ops.broadcast_to(noise { 1 }, x.shape) * 1 end
  local coarse = noise { 1, x.shape[1], blocks, blocks }
  return ops.interpolate(coarse, { x.shape[2], x.shape[3] }, nil, "nearest")[0]
end

-- Noise that is tried before a sample is given up.
local TRIES = 100

-- A point that is adversarial: the sample of the label, or noise as near to the sample as bisection on the way finds.
local function start_of(self, sample, dimension)
  if sample.start then return self:_is_adversarial(sample, sample.start) and sample.start or nil end
  for k = 1, TRIES do
    local noise = drawn_start(self, sample, k % 3 + 1)
    if self:_is_adversarial(sample, noise) then
      local low, high = 0.0, 1.0
      while high - low > math.max(1e-3, 1 / dimension) do
        local middle = (low + high) / 2
        if self:_is_adversarial(sample, sample.x * (1 - middle) + noise * middle) then high = middle else low = middle end
      end
      return sample.x * (1 - high) + noise * high
    end
  end
end

-- The direction in which the model changes its mind, from decisions at `count` random points about one on the boundary.
local function boundary_direction(self, sample, point, count, reach)
  local shape = { count }
  for axis = 1, point.ndim do shape[axis + 1] = point.shape[axis] end
  local u
  if self.norm == 2 then
    u = common.steepest(sample.draws:normal(shape, point.dtype), 2)
  else
    u = sample.draws:uniform(shape, -1, 1, point.dtype)
  end
  local points = ops.clip(point + u * reach, self.low, self.high)
  u = (points - point) / reach
  local list, sum = self:_ask(sample, points), 0
  for i, is_one in ipairs(list) do
    list[i] = is_one and 1.0 or -1.0
    sum = sum + list[i]
  end
  local marks = ms.tensor(list, point.dtype)
  -- Less the mean, for a smaller variance; where all decisions are the same, that would leave nothing.
  if math.abs(sum) < count then marks = marks - sum / count end
  local column = { count }
  for axis = 1, point.ndim do column[axis + 1] = 1 end
  local direction = ops.mean(marks:reshape(column) * u, 0)
  if self.norm == "inf" then return ops.sign(direction) end
  return common.steepest(ops.expand_dims(direction, 0), 2)[0]
end

-- The first adversarial point at steps 1, 1/2, 1/4 ... of what the distance and the iteration allow.
local function halved_step(self, sample, point, direction, away, iteration)
  local step = away / math.sqrt(iteration)
  for _ = 1, 30 do
    local next_point = ops.clip(point + direction * step, self.low, self.high)
    if self:_is_adversarial(sample, next_point) then return next_point end
    step = step / 2
  end
  return point
end

-- Of steps of twenty sizes the one after which the boundary is nearest to the sample.
local function grid_step(self, sample, point, direction, away, dimension)
  local best, least = point, away
  local points, sizes = {}, 20
  for k = 1, sizes do
    local step = away * 10 ^ (-4 + 4 * (k - 1) / (sizes - 1))
    points[k] = ops.clip(point + direction * step, self.low, self.high)
  end
  for k, is_one in ipairs((self:_ask(sample, ops.stack(points, 0)))) do
    if is_one then
      local at = to_boundary(self, sample, points[k], dimension)
      local far = distance(self, at, sample.x)
      if far < least then best, least = at, far end
    end
  end
  return best
end

local function note(self, sample, point)
  local far = distance(self, point, sample.x)
  if not sample.found or far < sample.least then sample.best, sample.found, sample.least = point, true, far end
  return far
end

function HopSkipJumpAttack:_attack(sample)
  local dimension = sample.x.size
  local point = start_of(self, sample, dimension)
  if not point then return end
  note(self, sample, point)
  point = to_boundary(self, sample, point, dimension)
  local away = note(self, sample, point)
  -- How far the points of an estimate are from the boundary: at first a tenth of the range, then what the precision of bisections asks for.
  local reach = 0.1 * (self.high - self.low)
  for iteration = 1, self.num_iterations do
    if not (away > 0) then return end
    if iteration > 1 then reach = math.max(self.gamma * away / dimension, 1e-7) end
    local count = math.min(self.max_num_evals, math.floor(self.init_num_evals * math.sqrt(iteration)))
    local direction = boundary_direction(self, sample, point, count, reach)
    if self.stepsize_search == "grid_search" then
      point = grid_step(self, sample, point, direction, away, dimension)
    else
      point = halved_step(self, sample, point, direction, away, iteration)
      note(self, sample, point)
      point = to_boundary(self, sample, point, dimension)
    end
    away = note(self, sample, point)
  end
end

return { HopSkipJumpAttack = HopSkipJumpAttack }
