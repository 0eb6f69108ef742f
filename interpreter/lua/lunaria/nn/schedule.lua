-- Learning rates that change with the step: cells that give the rate of a step (from 0), to be given to an optimizer as its
-- learning_rate, and functions that give a list with the rate of every step. The formulas are MindSpore's.
--
-- A cell computes with plain numbers when it gets one, so that a step of an optimizer costs no operator; a tensor gives a
-- tensor.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell
local max, min = math.max, math.min

local LearningRateSchedule = Cell:extend("LearningRateSchedule")
LearningRateSchedule._parameters = ""
LearningRateSchedule._doc = [[What schedules of your own extend: construct(self, global_step) gives the learning rate of a step, from 0.

  local Halved = ms.nn.LearningRateSchedule:extend("Halved")
  function Halved:construct(step) return 0.1 * 0.5 ^ (step // 100) end
  local optimizer = ms.nn.SGD(net:trainable_params(), Halved())
  > tostring(ms.nn.LearningRateSchedule:extend("Mine")) --> class Mine(...)]]

local classes = { LearningRateSchedule = LearningRateSchedule }

local function is_number(x) return math.type(x) ~= nil end
local function floor(x) return is_number(x) and math.floor(x) or ops.floor(x) end
local function ceil(x) return is_number(x) and math.ceil(x) or ops.ceil(x) end
local function at_most(x, limit) return is_number(x) and min(x, limit) or ops.minimum(x, limit) end
local function at_least(x, limit) return is_number(x) and max(x, limit) or ops.maximum(x, limit) end
local function cosine(x) return is_number(x) and math.cos(x) or ops.cos(x) end

local function step_of(name, step)
  if is_number(step) then return step end
  if ms.is_tensor(step) then return step:astype(ms.float32) end
  return fail(name, "global_step must be a number or a tensor, got " .. describe(step))
end

local function above(name, a, low, high)
  if not (a[low] < a[high]) then
    fail(name, ("%s must be less than %s, got %s and %s"):format(low, high, a[low], a[high]))
  end
end

-- What the signature of each schedule says of its arguments.
local kinds = {
  learning_rate = check.number_not_negative, max_lr = check.number_positive, min_lr = check.number_not_negative,
  end_learning_rate = check.number_not_negative, decay_rate = check.number_positive, decay_steps = check.positive,
  warmup_steps = check.positive, power = check.number_positive, is_stair = check.boolean, update_decay_steps = check.boolean,
  total_step = check.positive, step_per_epoch = check.positive, decay_epoch = check.positive, warmup_epoch = check.not_negative,
  update_decay_epoch = check.boolean,
}

local function checked(name, signature, a)
  for _, parameter in ipairs(signature) do
    local key = parameter.name
    a[key] = kinds[key](name, key, a[key])
  end
  if a.max_lr then above(name, a, "min_lr", "max_lr") end
  return a
end

-- `rate(a, step)` gives the rate of a step from the arguments.
local function schedule(name, signature, doc, rate)
  local class = layer(LearningRateSchedule, name, signature, doc)
  function class:setup(a)
    for key, value in pairs(checked(name, class._signature, a)) do self[key] = value end
  end
  function class:construct(global_step)
    return rate(self, step_of(name, global_step))
  end
  function class:extend_repr()
    local words = {}
    for i, parameter in ipairs(class._signature) do words[i] = ("%s=%s"):format(parameter.name, self[parameter.name]) end
    return table.concat(words, ", ")
  end
  classes[name] = class
end

schedule("CosineDecayLR", "min_lr, max_lr, decay_steps",
  [[min_lr + (max_lr - min_lr) (1 + cos(pi min(step, decay_steps) / decay_steps)) / 2.

  > ms.nn.CosineDecayLR(0.01, 0.1, 4)(2)
  0.055]],
  function(a, step)
    return a.min_lr + 0.5 * (a.max_lr - a.min_lr) * (1 + cosine(at_most(step, a.decay_steps) * (math.pi / a.decay_steps)))
  end)

local function stairs(a, p) return a.is_stair and floor(p) or p end

schedule("ExponentialDecayLR", "learning_rate, decay_rate, decay_steps, is_stair=false",
  [[learning_rate decay_rate^(step / decay_steps); is_stair rounds the exponent down.

  > ms.nn.ExponentialDecayLR(0.1, 0.5, 4)(8)
  0.025]],
  function(a, step) return a.learning_rate * a.decay_rate ^ stairs(a, step / a.decay_steps) end)

schedule("NaturalExpDecayLR", "learning_rate, decay_rate, decay_steps, is_stair=false",
  [[learning_rate exp(-decay_rate step); is_stair rounds the step down to a multiple of decay_steps.
  > ms.nn.NaturalExpDecayLR(0.5, 0.1, 4)(0) --> 0.5]],
  function(a, step)
    if a.is_stair then step = floor(step / a.decay_steps) * a.decay_steps end
    return a.learning_rate * math.exp(-a.decay_rate) ^ step
  end)

schedule("InverseDecayLR", "learning_rate, decay_rate, decay_steps, is_stair=false",
  [[learning_rate / (1 + decay_rate step / decay_steps); is_stair rounds step / decay_steps down.
  > ms.nn.InverseDecayLR(0.5, 1.0, 4)(4) --> 0.25]],
  function(a, step) return a.learning_rate / (1 + a.decay_rate * stairs(a, step / a.decay_steps)) end)

schedule("PolynomialDecayLR", "learning_rate, end_learning_rate, decay_steps, power, update_decay_steps=false",
  [[(learning_rate - end_learning_rate) (1 - min(step, decay_steps) / decay_steps)^power + end_learning_rate.

update_decay_steps: beyond decay_steps the decay goes on towards the next multiple of decay_steps.
  > ms.nn.PolynomialDecayLR(0.5, 0.0, 4, 1.0)(2) --> 0.25]],
  function(a, step)
    local steps = a.decay_steps
    if a.update_decay_steps then
      steps = steps * at_least(ceil(step / steps), 1)
    else
      step = at_most(step, steps)
    end
    return (a.learning_rate - a.end_learning_rate) * (1 - step / steps) ^ a.power + a.end_learning_rate
  end)

schedule("WarmUpLR", "learning_rate, warmup_steps",
  [[learning_rate min(step, warmup_steps) / warmup_steps.

  > ms.nn.WarmUpLR(0.1, 4)(2)
  0.05]],
  function(a, step) return a.learning_rate * at_most(step, a.warmup_steps) / a.warmup_steps end)

local lists = {}

-- `rate(a, epoch)` of every step; all steps of an epoch have one.
local function rates(name, signature, ...)
  local a = checked(name, signature, arguments.bind(name, signature, ...))
  return a, function(rate)
    local list = {}
    for i = 0, a.total_step - 1 do
      list[i + 1] = rate(i // a.step_per_epoch)
    end
    return list
  end
end

local function declared(text) return arguments.signature(text) end

local exponential = declared "learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=false"

local function epochs(a, epoch)
  return a.is_stair and epoch // a.decay_epoch or epoch / a.decay_epoch
end

--- The rate of every step: learning_rate decay_rate^(epoch / decay_epoch); is_stair rounds the exponent down. Arguments:
--- learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=false.
---     > table.concat(ms.nn.exponential_decay_lr(0.1, 0.5, 4, 2, 1), " ") --> 0.1 0.1 0.05 0.05
function lists.exponential_decay_lr(...)
  local a, list = rates("exponential_decay_lr", exponential, ...)
  return list(function(epoch) return a.learning_rate * a.decay_rate ^ epochs(a, epoch) end)
end

--- The rate of every step: learning_rate exp(-decay_rate epoch); is_stair rounds the epoch down to a multiple of
--- decay_epoch. Arguments: learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=false.
---     > ("%.4f"):format(ms.nn.natural_exp_decay_lr(0.1, 0.5, 4, 2, 1)[3]) --> 0.0607
function lists.natural_exp_decay_lr(...)
  local a, list = rates("natural_exp_decay_lr", exponential, ...)
  return list(function(epoch)
    if a.is_stair then epoch = epoch // a.decay_epoch * a.decay_epoch end
    return a.learning_rate * math.exp(-a.decay_rate * epoch)
  end)
end

--- The rate of every step: learning_rate / (1 + decay_rate epoch / decay_epoch); is_stair rounds epoch / decay_epoch down.
--- Arguments: learning_rate, decay_rate, total_step, step_per_epoch, decay_epoch, is_stair=false.
---     > table.concat(ms.nn.inverse_decay_lr(0.1, 1.0, 4, 2, 1), " ") --> 0.1 0.1 0.05 0.05
function lists.inverse_decay_lr(...)
  local a, list = rates("inverse_decay_lr", exponential, ...)
  return list(function(epoch) return a.learning_rate / (1 + a.decay_rate * epochs(a, epoch)) end)
end

local cosine_signature = declared "min_lr, max_lr, total_step, step_per_epoch, decay_epoch"

--- The rate of every step: min_lr + (max_lr - min_lr) (1 + cos(pi min(epoch, decay_epoch) / decay_epoch)) / 2. Arguments:
--- min_lr, max_lr, total_step, step_per_epoch, decay_epoch.
---     > table.concat(ms.nn.cosine_decay_lr(0.0, 0.5, 3, 1, 2), " ") --> 0.5 0.25 0.0
function lists.cosine_decay_lr(...)
  local a, list = rates("cosine_decay_lr", cosine_signature, ...)
  return list(function(epoch)
    return a.min_lr + 0.5 * (a.max_lr - a.min_lr) * (1 + math.cos(math.pi * min(epoch, a.decay_epoch) / a.decay_epoch))
  end)
end

local polynomial =
  declared "learning_rate, end_learning_rate, total_step, step_per_epoch, decay_epoch, power, update_decay_epoch=false"

--- The rate of every step: (learning_rate - end_learning_rate) (1 - min(epoch, decay_epoch) / decay_epoch)^power +
--- end_learning_rate; update_decay_epoch: beyond decay_epoch the decay goes on towards its next multiple. Arguments:
--- learning_rate, end_learning_rate, total_step, step_per_epoch, decay_epoch, power, update_decay_epoch=false.
---     > table.concat(ms.nn.polynomial_decay_lr(0.5, 0.0, 3, 1, 2, 1), " ") --> 0.5 0.25 0.0
function lists.polynomial_decay_lr(...)
  local a, list = rates("polynomial_decay_lr", polynomial, ...)
  return list(function(epoch)
    local whole = a.decay_epoch
    if a.update_decay_epoch then
      whole = whole * max(math.ceil(epoch / whole), 1)
    else
      epoch = min(epoch, whole)
    end
    return (a.learning_rate - a.end_learning_rate) * (1 - epoch / whole) ^ a.power + a.end_learning_rate
  end)
end

local warmup = declared "learning_rate, total_step, step_per_epoch, warmup_epoch"

--- The rate of every step: learning_rate min(epoch, warmup_epoch) / warmup_epoch. Arguments: learning_rate, total_step,
--- step_per_epoch, warmup_epoch.
---     > table.concat(ms.nn.warmup_lr(0.5, 3, 1, 2), " ") --> 0.0 0.25 0.5
function lists.warmup_lr(...)
  local a, list = rates("warmup_lr", warmup, ...)
  return list(function(epoch)
    if a.warmup_epoch == 0 then return a.learning_rate end
    return a.learning_rate * min(epoch, a.warmup_epoch) / a.warmup_epoch
  end)
end

local piecewise = declared "milestone, learning_rates"

--- The rate of every step: learning_rates[i] up to the step milestone[i], not included. Arguments: milestone, growing
--- integers, and learning_rates, as many numbers.
---     > table.concat(ms.nn.piecewise_constant_lr({ 2, 5 }, { 0.1, 0.05 }), " ") --> 0.1 0.1 0.05 0.05 0.05
function lists.piecewise_constant_lr(...)
  local name = "piecewise_constant_lr"
  local a = arguments.bind(name, piecewise, ...)
  for _, key in ipairs { "milestone", "learning_rates" } do
    if type(a[key]) ~= "table" or #a[key] == 0 then
      fail(name, ("%s must be a list that is not empty, got %s"):format(key, describe(a[key])))
    end
  end
  if #a.milestone ~= #a.learning_rates then
    fail(name, ("milestone and learning_rates must have as many elements, got %d and %d"):format(#a.milestone, #a.learning_rates))
  end
  local list, last = {}, 0
  for i, milestone in ipairs(a.milestone) do
    milestone = check.positive(name, ("milestone[%d]"):format(i), milestone)
    local rate = check.number_not_negative(name, ("learning_rates[%d]"):format(i), a.learning_rates[i])
    if milestone <= last then
      fail(name, ("milestone must grow, but milestone[%d] is %d after %d"):format(i, milestone, last))
    end
    for step = last + 1, milestone do list[step] = rate end
    last = milestone
  end
  return list
end

return { classes = classes, lists = lists }
