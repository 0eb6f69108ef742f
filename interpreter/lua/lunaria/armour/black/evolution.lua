-- Attacks by populations of changed samples: a genetic algorithm (Alzantot and others 2019) and particle swarms, on models that classify
-- and on models that find objects.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local margins = require "lunaria.armour.attacks.margins"
local asking = require "lunaria.armour.black.asking"
local detection = require "lunaria.armour.detection"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local Evolution = asking.BlackAttack:extend("BlackAttack")

function Evolution:_keep_population(a)
  local name = getmetatable(self)._name
  self:_keep(a)
  detection.keep(self, a)
  if self.model_type == "detection" and a.is_targeted then
    fail(name, "objects are hidden, not made others: is_targeted must be false where model_type is 'detection'")
  end
  for _, option in ipairs { "pop_size", "max_steps" } do self[option] = check.positive(name, option, a[option]) end
  for _, option in ipairs { "per_bounds", "step_size" } do self[option] = check.number_positive(name, option, a[option]) end
  self.c = check.finite_not_negative(name, "c", a.c)
  self.range = self.high - self.low
  self.wide, self.step = self.per_bounds * self.range, self.step_size * self.range
end

function Evolution:_labels(x, labels)
  if self.model_type == "classification" then return asking.BlackAttack._labels(self, x, labels) end
  return detection.labels(getmetatable(self)._name, labels, x.shape[1])
end

-- Objects of a sample, and how many of them may still be found.
function Evolution:_aim(sample, boxes, classes)
  if self.model_type == "classification" then return asking.BlackAttack._aim(self, sample, boxes) end
  sample.boxes, sample.classes = boxes[sample.index - 1], classes[sample.index - 1]
  sample.most = self.reserve_ratio * ops.sum(ops.greater_equal(sample.classes, 0):astype(ms.int32)):item()
end

-- How fit points are by the model's answers, the better the higher (R), and which of them do what is wanted.
function Evolution:_fitness(sample, answers, classes)
  local name = getmetatable(self)._name
  if self.model_type == "detection" then
    local left, sure = detection.judged(name, answers, classes, sample.boxes, sample.classes)
    return -sure, ops.less_equal(left, sample.most):tolist()
  end
  if answers.ndim ~= 2 then fail(name, "the model must give logits (N, classes), got " .. arguments.describe(answers)) end
  local mask = margins.mask(ms.tensor({ sample.label }), answers.shape[2])
  local own = ops.sum(ops.where(mask, answers, 0), 1)
  local others = ops.logsumexp(ops.where(mask, -math.huge, answers), 1)
  local list = asking.classes(answers)
  for i, class_of in ipairs(list) do list[i] = sample.is_reached(class_of) end
  return self.is_targeted and own - others or others - own, list
end

function Evolution:_is_done(sample, ...)
  return select(2, self:_fitness(sample, ...))[1]
end

-- Into the box of the pixels and the cube of per_bounds about the sample.
local function bounded(self, sample, population)
  return ops.clip(ops.minimum(ops.maximum(population, sample.x - self.wide), sample.x + self.wide), self.low, self.high)
end

local function uniform(sample, shape, low, high) return sample.draws:uniform(shape, low, high, sample.x.dtype) end

-- The place of the largest of a list.
local function largest(list)
  local at = 1
  for i = 2, #list do
    if list[i] > list[at] then at = i end
  end
  return at
end

-- Asks for a population. Gives how fit each of its points is, by the model's answer and by nearness: a tensor (P) and a list. A point that
-- does what is wanted becomes the sample's best.
local function judged(self, sample, population)
  local fitness, reached = self:_fitness(sample, sample.ask(population))
  local away = (population - sample.x):reshape { population.shape[1], -1 }
  fitness = fitness:astype(sample.x.dtype) - ops.mean(ops.abs(away), 1) * (self.c / self.range)
  local list, best = fitness:tolist(), nil
  for i, is_one in ipairs(reached) do
    if is_one and (not best or list[i] > list[best]) then best = i end
  end
  if best then sample.best, sample.found = population[best - 1], true end
  return fitness, list
end

-- So many points like the sample, and a number for each of them.
local function rows_of(sample, count)
  local shape, column = { count }, { count }
  for axis = 1, sample.x.ndim do shape[axis + 1], column[axis + 1] = sample.x.shape[axis], 1 end
  return shape, column
end

local GeneticAttack = class.define(Evolution, "GeneticAttack",
  "model, model_type=\"classification\", is_targeted=nil, reserve_ratio=0.3, sparse=nil, pop_size=6, mutation_rate=0.005, per_bounds=0.15, "
    .. "max_steps=1000, step_size=0.2, temp=0.3, bounds=nil, adaptive=false, c=0.1, max_queries=nil, batch_size=256, seed=0",
  [[A genetic algorithm (Alzantot and others 2019): of a population of changed samples the fittest stays, the others are bred of two parents
each, chosen by their fitness, with mutations. model: a BlackModel, a cell or a function of inputs (N, ...) that gives logits; with
model_type = "detection" one that gives boxes with confidences (N, B, 5) and their classes (N, B). is_targeted: labels are the classes
to reach, which is so unless objects are to be hidden. For detection labels are { boxes (N, G, 4), classes (N, G) }, with class -1 where
there are fewer objects, and the attack ends when at most reserve_ratio of them are found. pop_size: samples of a generation.
mutation_rate: the share of elements that mutate. per_bounds: the largest change of an element, as a share of the range. max_steps:
generations. step_size: the largest mutation, as a share of per_bounds. temp: the temperature of the choice of parents. bounds: { low,
high } of the inputs, { 0, 1 } if nil. adaptive: mutations become rarer and smaller where fitness stands still. c: the weight of the
mean change in the fitness. sparse: true takes labels as class numbers only, false as one-hot only. max_queries: questions for each
sample at most. batch_size: points that the model is asked for at once. seed: of the random numbers.

  > net = ms.nn.SequentialCell(ms.nn.Dense(9, 3))
  > attack = ms.armour.attacks.black.GeneticAttack(net, { max_steps = 3 })
  > select(2, attack:generate(ms.rand(2, 9), ms.tensor { 0, 1 })).shape --> (2, 9)]])

function GeneticAttack:setup(a)
  if a.is_targeted == nil then a.is_targeted = a.model_type ~= "detection" end
  self:_keep_population(a)
  self.mutation_rate = check.probability("GeneticAttack", "mutation_rate", a.mutation_rate)
  self.temp = check.number_positive("GeneticAttack", "temp", a.temp)
  self.adaptive = check.boolean("GeneticAttack", "adaptive", a.adaptive)
end

-- Generations without a gain after which the adaptive form mutates less, by which factor, and the least rate and share of the step.
local PATIENCE, LESS, LEAST_RATE, LEAST_STEP = 10, 0.9, 0.001, 0.15

-- Places drawn by weights that add up to 1, as a tensor.
local function drawn(sample, weights, count)
  local list = uniform(sample, { count }, 0, 1):tolist()
  for i, number in ipairs(list) do
    local at, sum = 1, weights[1]
    while sum < number and at < #weights do
      at = at + 1
      sum = sum + weights[at]
    end
    list[i] = at - 1
  end
  return ms.tensor(list, ms.int64)
end

-- Children of parents that are chosen by their fitness: each element is that of one of the two, the fitter one's more often.
local function bred(sample, population, fitness, temp, count)
  local shape, column = rows_of(sample, count)
  local weights = ops.softmax((fitness - ops.amax(fitness)) / temp, 0)
  local list = weights:tolist()
  local first, second = drawn(sample, list, count), drawn(sample, list, count)
  local own, other = ops.gather(weights, first, 0), ops.gather(weights, second, 0)
  local of_first = ops.less(uniform(sample, shape, 0, 1), (own / ops.maximum(own + other, 1e-30)):reshape(column))
  return ops.where(of_first, ops.gather(population, first, 0), ops.gather(population, second, 0))
end

function GeneticAttack:_attack(sample)
  local shape = rows_of(sample, self.pop_size)
  local population = bounded(self, sample, sample.x + uniform(sample, shape, -self.wide, self.wide))
  local rate, step, stands, top = self.mutation_rate, self.step_size * self.wide, 0, -math.huge
  for _ = 1, self.max_steps do
    local fitness, list = judged(self, sample, population)
    if sample.found then return end
    local elite = largest(list)
    sample.best = population[elite - 1]
    stands = list[elite] > top and 0 or stands + 1
    top = math.max(top, list[elite])
    if self.adaptive and stands >= PATIENCE then
      rate, step, stands = math.max(LEAST_RATE, rate * LESS), math.max(LEAST_STEP * self.step_size * self.wide, step * LESS), 0
    end
    local stays = population[{ ms.slice(elite - 1, elite) }]
    if self.pop_size > 1 then
      local children = bred(sample, population, fitness, self.temp, self.pop_size - 1)
      local mutates = ops.less(uniform(sample, children.shape, 0, 1), rate):astype(sample.x.dtype)
      children = bounded(self, sample, children + mutates * uniform(sample, children.shape, -step, step))
      population = ops.concat({ stays, children }, 0)
    else
      population = bounded(self, sample, stays + uniform(sample, shape, -step, step))
    end
  end
end

local PSOAttack = class.define(Evolution, "PSOAttack",
  "model, model_type=\"classification\", is_targeted=false, reserve_ratio=0.3, sparse=nil, step_size=0.5, per_bounds=0.6, "
    .. "c1=2.0, c2=2.0, c=2.0, pop_size=6, t_max=1000, pm=0.5, bounds=nil, max_queries=nil, batch_size=256, seed=0",
  [[A swarm of changed samples that fly towards the best place that each has seen and the best that any has (Kennedy and Eberhart 1995).
model: a BlackModel, a cell or a function of inputs (N, ...) that gives logits; with model_type = "detection" one that gives boxes with
confidences (N, B, 5) and their classes (N, B). is_targeted: labels are the classes to reach. For detection labels are { boxes (N, G,
4), classes (N, G) }, with class -1 where there are fewer objects, and the attack ends when at most reserve_ratio of them are found.
step_size: the largest mutation, and the largest change at first, as a share of the range. per_bounds: the largest change of an element,
as a share of the range. c1, c2: how much a sample is drawn to its own best place and to that of all. c: the weight of the mean change
in the fitness. pop_size: samples of the swarm. t_max: steps. pm: how likely a sample mutates in a step. bounds: { low, high } of the
inputs, { 0, 1 } if nil. sparse: true takes labels as class numbers only, false as one-hot only. max_queries: questions for each sample
at most. batch_size: points that the model is asked for at once. seed: of the random numbers.

  > net = ms.nn.SequentialCell(ms.nn.Dense(9, 3))
  > attack = ms.armour.attacks.black.PSOAttack(net, { t_max = 3 })
  > select(2, attack:generate(ms.rand(2, 9), ms.tensor { 0, 1 })).shape --> (2, 9)]])

function PSOAttack:setup(a)
  a.max_steps = check.positive("PSOAttack", "t_max", a.t_max)
  self:_keep_population(a)
  for _, option in ipairs { "c1", "c2" } do self[option] = check.finite_not_negative("PSOAttack", option, a[option]) end
  self.pm = check.probability("PSOAttack", "pm", a.pm)
end

-- The share of its velocity that a sample keeps, at first and at last (Shi and Eberhart 1998), and that of elements that mutate.
local INERTIA, LAST_INERTIA, MUTATED = 0.9, 0.4, 0.05

function PSOAttack:_attack(sample)
  local x, step, wide = sample.x, self.step, self.wide
  local shape, column = rows_of(sample, self.pop_size)
  local place = bounded(self, sample, x + uniform(sample, shape, -step, step))
  local velocity = ops.zeros_like(place)
  local own, own_place = ops.full({ self.pop_size }, -math.huge, { dtype = x.dtype }), place
  local best, best_place = -math.huge, nil
  for t = 0, self.max_steps - 1 do
    local fitness, list = judged(self, sample, place)
    if sample.found then return end
    own_place = ops.where(ops.greater(fitness, own):reshape(column), place, own_place)
    own = ops.maximum(own, fitness)
    local at = largest(list)
    if list[at] > best or not best_place then best, best_place = list[at], place[at - 1] end
    sample.best = best_place
    local inertia = INERTIA + (LAST_INERTIA - INERTIA) * t / self.max_steps
    velocity = velocity * inertia + uniform(sample, shape, 0, self.c1) * (own_place - place)
      + uniform(sample, shape, 0, self.c2) * (best_place - place)
    velocity = ops.clip(velocity, -wide, wide)
    local mutates = ops.logical_and(ops.less(uniform(sample, column, 0, 1), self.pm), ops.less(uniform(sample, shape, 0, 1), MUTATED))
    place = bounded(self, sample, place + velocity + mutates:astype(x.dtype) * uniform(sample, shape, -step, step))
  end
end

return { GeneticAttack = GeneticAttack, PSOAttack = PSOAttack }
