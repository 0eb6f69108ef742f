-- Attacks on models that are only asked. The attack of one sample is a coroutine: it asks for some points and gets the model's answers to
-- them. Those of all samples run side by side, so that the model is asked for their points together, and each has its own budget, its own
-- count and its own random numbers: what comes of a sample does not depend on which others are in the batch.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.armour.common"
local margins = require "lunaria.armour.attacks.margins"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local asking = {}

-- Points are a tensor (R, ...), or a list of R things that are no tensors, as texts.
local function rows_in(points) return ms.is_tensor(points) and points.shape[1] or #points end

local function rows_of(points, from, to)
  if from == 0 and to == rows_in(points) then return points end
  return ms.is_tensor(points) and points[{ ms.slice(from, to) }] or table.move(points, from + 1, to, 1, {})
end

local function joined(list)
  if #list == 1 then return list[1] end
  if ms.is_tensor(list[1]) then return ops.concat(list, 0) end
  local all = {}
  for _, points in ipairs(list) do table.move(points, 1, #points, #all + 1, all) end
  return all
end

-- The answers to R points, in calls of at most `most`: a list of tensors, whose rows belong to the points.
local function answers_of(where, predict, points, most)
  local count, parts = rows_in(points), nil
  for from = 0, count - 1, most do
    local rows = math.min(count, from + most) - from
    local part = table.pack(predict(rows_of(points, from, from + rows)))
    for i, answer in ipairs(part) do
      if not ms.is_tensor(answer) or answer.ndim == 0 or answer.shape[1] ~= rows then
        fail(where, ("the model was asked for %d points and must give a tensor of as many rows, got %s"):format(rows, describe(answer)))
      end
      parts = parts or {}
      parts[i] = parts[i] or {}
      table.insert(parts[i], answer)
    end
  end
  if not parts then fail(where, "the model gave no tensor") end
  for i, list in ipairs(parts) do parts[i] = joined(list) end
  return parts
end

-- An error of a coroutine, whose stack does not reach to the line of the user.
local function raise(where, message)
  local own = type(message) == "string" and message:sub(1, #where + 2) == where .. ": "
  if own then fail(where, message:sub(#where + 3)) end
  error(message, 0)
end

--- Runs attack(sample) for each of the samples, tables to which this adds: ask(points), which gives the answers to them; queries, their
--- count so far. budget: questions for each sample; one that asks for more is ended.
function asking.run(where, model, samples, budget, batch_size, attack)
  local predict, running = common.predictor(where, model), {}
  for i, sample in ipairs(samples) do
    sample.queries = sample.queries or 0
    sample.ask = function(points) return coroutine.yield(points) end
    running[i] = { routine = coroutine.create(attack), sample = sample, answers = { sample } }
  end
  while #running > 0 do
    local open, wanted, total = {}, {}, 0
    for _, one in ipairs(running) do
      local ok, points = coroutine.resume(one.routine, table.unpack(one.answers))
      if not ok then raise(where, points) end
      if coroutine.status(one.routine) ~= "dead" then
        local rows = rows_in(points)
        if one.sample.queries + rows > budget then
          coroutine.close(one.routine)
        else
          one.sample.queries = one.sample.queries + rows
          one.from, one.to = total, total + rows
          total = total + rows
          open[#open + 1], wanted[#wanted + 1] = one, points
        end
      end
    end
    if total > 0 then
      local all = answers_of(where, predict, joined(wanted), batch_size)
      for _, one in ipairs(open) do
        one.answers = {}
        for i, answer in ipairs(all) do
          one.answers[i] = rows_of(answer, one.from, one.to)
        end
      end
    end
    running = open
  end
end

--- The classes that answers decide for, as a list: the largest of a row of logits, or the numbers themselves where the model tells only
--- those.
function asking.classes(answers)
  if answers.ndim == 1 and not ops.is_floating_point(answers) then return answers:tolist() end
  return ops.argmax(answers, 1):tolist()
end

local BlackAttack = common.Attack:extend("BlackAttack")
asking.BlackAttack = BlackAttack

--- For setup of an attack: what all take. max_queries: nil for no limit.
function BlackAttack:_keep(a)
  local name = getmetatable(self)._name
  self.model = a.model
  common.predictor(name, a.model)
  self.low, self.high = common.bounds(name, a.bounds, { 0.0, 1.0 })
  if not math.type(self.low) then fail(name, "bounds must be two numbers, as { 0, 1 }") end
  self.is_targeted = check.boolean(name, "is_targeted", a.is_targeted)
  self.max_queries = a.max_queries and check.positive(name, "max_queries", a.max_queries) or math.maxinteger
  self.batch_size, self.seed = check.positive(name, "batch_size", a.batch_size), check.not_negative(name, "seed", a.seed)
  self.sparse = margins.sparse(name, a.sparse)
end

--- The labels of inputs, checked: nil, or values that _aim gets.
function BlackAttack:_labels(x, labels)
  local name = getmetatable(self)._name
  if labels == nil then
    if self.is_targeted then fail(name, "labels must be the classes to reach, got nil") end
    return nil
  end
  return margins.labels(name, labels, x.shape[1], nil, self.sparse):tolist()
end

--- What is wanted of a sample. classes: those of all samples; nil for what the model says.
function BlackAttack:_aim(sample, classes)
  sample.label = classes and classes[sample.index]
  function sample.is_reached(class_of) return (class_of == sample.label) == self.is_targeted end
end

--- Whether the answers to the sample itself are already what is wanted.
function BlackAttack:_is_done(sample, answers) -- luacheck: ignore 212
  local class_of = asking.classes(answers)[1]
  sample.label = sample.label or class_of
  return sample.is_reached(class_of)
end

--- Which of the points (R, ...) the model takes for what the attack wants: a list of true and false; and the answers.
function BlackAttack:_ask(sample, points) -- luacheck: ignore 212
  local answers = sample.ask(points)
  local list = asking.classes(answers)
  for i, class_of in ipairs(list) do list[i] = sample.is_reached(class_of) end
  return list, answers
end

--- For a single point.
function BlackAttack:_is_adversarial(sample, point) return self:_ask(sample, ops.expand_dims(point, 0))[1] end

--- A sample's label must be among so many classes; columns of a sample: those that its one-hot label had.
function asking.check_label(where, sample, classes)
  if sample.columns and sample.columns ~= classes then
    fail(where, ("one-hot labels have %d columns, and the model has %d classes"):format(sample.columns, classes))
  end
  if sample.label and sample.label >= classes then
    fail(where, ("the label of sample %d is %d, and the model has %d classes, from 0"):format(sample.index - 1, sample.label, classes))
  end
end

-- The number of classes is told by the model's first answer where that is scores.
local function check_label(attack, sample, answers)
  if sample.label == nil or answers.ndim ~= 2 then return end
  local name, columns = getmetatable(attack)._name, answers.shape[2]
  if attack.num_class and attack.num_class ~= columns then
    fail(name, ("num_class is %d, and the model has %d classes"):format(attack.num_class, columns))
  end
  asking.check_label(name, sample, columns)
end

-- The samples of a call: each has x, best, found, index, draws, and what asking.run adds. The first question of each is the sample itself;
-- _attack(sample), a method of each attack, goes on where that is not yet what is wanted.
function BlackAttack:_generate(inputs, labels)
  local name = getmetatable(self)._name
  local x = common.images(name, inputs, self.low, self.high)
  local samples, aims = {}, table.pack(self:_labels(x, labels))
  local columns = ms.is_tensor(labels) and labels.ndim == 2 and labels.shape[2] or nil
  for i = 1, x.shape[1] do
    -- Seeds that lie far apart, so that the samples of attacks with neighbouring seeds have none in common.
    samples[i] = { x = x[i - 1], best = x[i - 1], found = false, index = i, columns = columns,
      draws = common.generator(self.seed * 1000003 + i) }
    self:_aim(samples[i], table.unpack(aims, 1, aims.n))
  end
  if self._prepare then self:_prepare(samples, x, labels) end
  asking.run(name, self.model, samples, self.max_queries, self.batch_size, function(sample)
    local answers = table.pack(sample.ask(ops.expand_dims(sample.x, 0)))
    check_label(self, sample, answers[1])
    sample.found = self:_is_done(sample, table.unpack(answers, 1, answers.n))
    if not sample.found then self:_attack(sample) end
  end)
  local found, best, queries = {}, {}, {}
  for i, sample in ipairs(samples) do found[i], best[i], queries[i] = sample.found, sample.best, sample.queries end
  return ms.tensor(found), ops.stack(best, 0), ms.tensor(queries, ms.int32)
end

return asking
