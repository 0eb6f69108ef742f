-- Membership inference by classifiers over what a model answers (Shokri and others 2017, Salem and others 2019), and the inference of
-- attributes, which asks the same classifiers.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local armour = require "lunaria.armour.common"
local class = require "lunaria.nn.class"
local learners = require "lunaria.armour.inference.learners"
local rows = require "lunaria.armour.inference.rows"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

-- A predictor over features as they are: columns are scaled by those of the training rows.
local function fitted(method, x, y, settings, draws)
  local mean = ops.mean(x, 0)
  local deviation = ops.sqrt(ops.mean(ops.square(x - mean), 0))
  deviation = ops.where(ops.greater(deviation, 1e-12), deviation, 1.0)
  local predict = learners.fit[method]((x - mean) / deviation, y, settings, draws)
  return function(z) return predict((z - mean) / deviation) end
end

local function accuracy(shares, y)
  local right = 0
  for i, share in ipairs(shares) do
    if (share > 0.5) == (y[i] == 1) then right = right + 1 end
  end
  return right / #y
end

-- Checked settings: numbers above 0, and a list of sizes.
local function checked_settings(where, method, given)
  local settings, names = {}, {}
  for name, value in pairs(learners.defaults[method]) do settings[name], names[#names + 1] = value, name end
  table.sort(names)
  for name, value in pairs(given) do
    if settings[name] == nil then
      fail(where, ("method '%s' has no parameter '%s'; there are: %s"):format(method, tostring(name), table.concat(names, ", ")),
        arguments.nearest(tostring(name), names))
    end
    if name == "hidden_layer_sizes" then
      if math.type(value) then value = { value } end
      if type(value) ~= "table" or #value == 0 then fail(where, name .. " must be a list of sizes, got " .. describe(value)) end
      for _, size in ipairs(value) do check.positive(where, name, size) end
    elseif math.type(settings[name]) == "integer" then
      value = check.positive(where, name, value)
    else
      value = check.number_positive(where, name, value)
    end
    settings[name] = value
  end
  return settings
end

-- All combinations of a grid { name = { values } }.
local function combinations(where, method, grid)
  local names, list = {}, { {} }
  for name in pairs(grid) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for _, name in ipairs(names) do
    local values, longer = grid[name], {}
    if type(values) ~= "table" then values = { values } end
    if #values == 0 then fail(where, ("the grid has no values for %s"):format(tostring(name))) end
    for _, one in ipairs(list) do
      for _, value in ipairs(values) do
        local copy = { [name] = value }
        for key, other in pairs(one) do copy[key] = other end
        longer[#longer + 1] = copy
      end
    end
    list = longer
  end
  for i, one in ipairs(list) do list[i] = checked_settings(where, method, one) end
  return list
end

local folds = 3

-- The combination with the best mean accuracy in three folds, fitted to all rows.
local function searched(where, config, x, y, draws)
  local list = combinations(where, config.method, config.params or {})
  local best, most = list[1], -1
  if #list > 1 then
    local order, fold_of = draws:permutation(#y):tolist(), {}
    for place, row in ipairs(order) do fold_of[row + 1] = place % folds end
    for _, settings in ipairs(list) do
      local sum = 0
      for fold = 0, folds - 1 do
        local train, test, y_train, y_test = {}, {}, {}, {}
        for i = 1, #y do
          local is_test = fold_of[i] == fold
          table.insert(is_test and test or train, i - 1)
          table.insert(is_test and y_test or y_train, y[i])
        end
        local predict = fitted(config.method, ops.gather(x, ms.tensor(train, ms.int64), 0), y_train, settings, draws)
        sum = sum + accuracy(predict(ops.gather(x, ms.tensor(test, ms.int64), 0)), y_test)
      end
      if sum > most then best, most = settings, sum end
    end
  end
  return { predict = fitted(config.method, x, y, best, draws), settings = best }
end

local function checked_config(where, config)
  if type(config) ~= "table" or getmetatable(config) ~= nil or #config == 0 then
    fail(where, "attack_config must be a list such as { { method = 'lr', params = { C = { 0.1, 1.0 } } } }, got " .. describe(config))
  end
  for _, one in ipairs(config) do
    if type(one) ~= "table" then fail(where, "each attack must be a table with method and params, got " .. describe(one)) end
    for name in pairs(one) do
      if name ~= "method" and name ~= "params" then fail(where, ("an attack has method and params, not '%s'"):format(tostring(name))) end
    end
    check.choice(where, "method", one.method, { "lr", "knn", "rf", "mlp" })
    if one.params ~= nil and type(one.params) ~= "table" then
      fail(where, "params must be a table of lists, got " .. describe(one.params))
    end
    combinations(where, one.method, one.params or {})
  end
  return config
end

-- One row of zeros and ones for each side.
local function sides(ones, zeros)
  local y = {}
  for i = 1, ones do y[i] = 1 end
  for i = 1, zeros do y[ones + i] = 0 end
  return y
end

local MembershipInference = class.define(nil, "MembershipInference", "model, seed=1",
  [[Tells by a model's answers whether it was trained on a row: classifiers over the loss and the logits. model: a cell or a function that
gives logits (n, classes). seed: of the classifiers' draws.

  > net = ms.nn.Dense(2, 3)
  > x, y = ms.randn { 30, 2 }, ms.randint(0, 3, { 30 })
  > attack = ms.armour.privacy.evaluation.MembershipInference(net)
  > attack:train({ x, y }, { x, y }, { { method = "lr", params = { C = { 0.1, 1.0 } } } })
  > attack:eval({ x, y }, { x, y }, { "accuracy" })[1].accuracy --> 0.5]])
M.MembershipInference = MembershipInference
MembershipInference._called = "attack"

function MembershipInference:setup(a)
  self._model = armour.classifier("MembershipInference", a.model)
  self._seed = check.not_negative("MembershipInference", "seed", a.seed)
  self._attacks = {}
end

-- Loss and logits of rows, (n, 1 + classes).
function MembershipInference:_features(where, data)
  local x, y = rows.labelled(where, data)
  local logits = armour.in_batches(function(part) return self._model:logits(part) end, x, nil, 256):astype(f64)
  return ops.concat({ ops.cross_entropy(logits, y, { reduction = "none" }):reshape { -1, 1 }, logits }, 1)
end

--- Trains attacks. dataset_train: rows the model was trained on, { inputs, labels } or a data set of such batches; dataset_test: others.
--- attack_config: a list of { method, params }: "lr" (C, max_iter), "knn" (n_neighbors), "rf" (n_estimators, max_depth, min_samples_leaf)
--- or "mlp" (hidden_layer_sizes, alpha, learning_rate_init, max_iter, batch_size), each with a list of values; the best combination in
--- three folds is taken.
---     > net = ms.nn.Dense(2, 3)
---     > x, y = ms.randn { 30, 2 }, ms.randint(0, 3, { 30 })
---     > ms.armour.privacy.evaluation.MembershipInference(net):train({ x, y }, { x, y }, { { method = "knn" } })
function MembershipInference:train(dataset_train, dataset_test, attack_config)
  local config = checked_config("train", attack_config)
  local members, others = self:_features("train", dataset_train), self:_features("train", dataset_test)
  local x, y = ops.concat({ members, others }, 0), sides(members.shape[1], others.shape[1])
  self._attacks = {}
  for i, one in ipairs(config) do self._attacks[i] = searched("train", one, x, y, armour.generator(self._seed + i)) end
end

--- How good the attacks are on rows that they were not trained on: a list of tables with the metrics, in the order of attack_config.
--- dataset_train: rows that the model was trained on, { inputs, labels } or a data set of such batches; dataset_test: others. metrics: of
--- "accuracy", "precision", "recall", "advantage" (tpr - fpr) and "auc"; default the first three.
---     > net = ms.nn.Dense(2, 3)
---     > x, y = ms.randn { 30, 2 }, ms.randint(0, 3, { 30 })
---     > attack = ms.armour.privacy.evaluation.MembershipInference(net)
---     > attack:train({ x, y }, { x, y }, { { method = "lr" } })
---     > attack:eval({ x, y }, { x, y }, { "advantage" })[1].advantage --> 0.0
function MembershipInference:eval(dataset_train, dataset_test, metrics)
  local where = "eval"
  dataset_test, metrics = arguments.named(where, { "dataset_test", "metrics" }, dataset_test, metrics)
  metrics = metrics or { "accuracy", "precision", "recall" }
  if type(metrics) ~= "table" or #metrics == 0 then fail(where, "metrics must be a list of names, got " .. describe(metrics)) end
  for _, name in ipairs(metrics) do check.choice(where, "metrics", name, { "accuracy", "precision", "recall", "advantage", "auc" }) end
  if #self._attacks == 0 then fail(where, "no attack has been trained", "attack:train(dataset_train, dataset_test, attack_config)") end
  local members, others = self:_features(where, dataset_train), self:_features(where, dataset_test)
  local results = {}
  for i, attack in ipairs(self._attacks) do
    local inside, outside = attack.predict(members), attack.predict(others)
    local hits, alarms = 0, 0
    for _, share in ipairs(inside) do hits = hits + (share > 0.5 and 1 or 0) end
    for _, share in ipairs(outside) do alarms = alarms + (share > 0.5 and 1 or 0) end
    local found = {
      accuracy = (hits + #outside - alarms) / (#inside + #outside),
      precision = hits + alarms > 0 and hits / (hits + alarms) or 0.0,
      recall = hits / #inside,
      advantage = hits / #inside - alarms / #outside,
    }
    results[i] = {}
    for _, name in ipairs(metrics) do
      results[i][name] = name == "auc" and require("lunaria.armour.inference.scores").threshold_attack(inside, outside).auc or found[name]
    end
  end
  return results
end

local AttributeInference = class.define(nil, "AttributeInference", "model, column, method='rf', params=nil, seed=1",
  [[Guesses a column of the inputs that is 0 or 1 from the others, the label and what the model answers (Fredrikson and others 2014, Yeom
and others 2018). model: a cell or a function that gives logits for inputs (n, columns). column: its number, from 0. method, params: of the
classifier, as for MembershipInference. seed: of its draws.

  > net = ms.nn.Dense(3, 2)
  > x = ms.concat({ ms.randn { 40, 2 }, ms.randint(0, 2, { 40, 1 }):astype(ms.float32) }, 1)
  > attack = ms.armour.privacy.evaluation.AttributeInference(net, 2, { method = "lr" })
  > attack:train({ x, ms.randint(0, 2, { 40 }) })
  > attack:infer({ x, ms.randint(0, 2, { 40 }) }).shape --> (40,)]])
M.AttributeInference = AttributeInference
AttributeInference._called = "attack"

function AttributeInference:setup(a)
  local where = "AttributeInference"
  self._model = armour.classifier(where, a.model)
  self._column = check.not_negative(where, "column", a.column)
  self._config = checked_config(where, { { method = a.method, params = a.params } })[1]
  self._seed = check.not_negative(where, "seed", a.seed)
end

-- The other columns, the label as one-hot rows and the model's answers with the column at 0 and at 1; and the column itself.
function AttributeInference:_features(where, data)
  local x, labels = rows.labelled(where, data)
  if x.ndim ~= 2 or self._column >= x.shape[2] then
    fail(where, ("inputs must be (n, columns) with the column %d, got the shape %s"):format(self._column, tostring(x.shape)))
  end
  local logits, parts = nil, {}
  local mask = ops.equal(ops.arange(x.shape[2]), self._column):astype(x.dtype):reshape { 1, -1 }
  for value = 0, 1 do
    logits = self._model:logits(x * (1 - mask) + mask * value):astype(f64)
    parts[#parts + 1] = ops.log_softmax(logits, 1)
  end
  parts[#parts + 1] = armour.one_hot(labels, logits.shape[2], f64)
  parts[#parts + 1] = (x * (1 - mask)):astype(f64)
  return ops.concat(parts, 1), x[{ ms.slice(), self._column }]
end

--- Trains the attack on rows whose attribute is known. data: { inputs, labels } or a data set of such batches.
---     > attack = ms.armour.privacy.evaluation.AttributeInference(ms.nn.Dense(2, 2), 0, { method = "knn" })
---     > attack:train({ ms.tensor { { 0.0, 1.0 }, { 1.0, 2.0 }, { 1.0, 1.5 } }, ms.tensor { 0, 1, 1 } })
function AttributeInference:train(data)
  local x, attribute = self:_features("train", data)
  local y = attribute:tolist()
  for i, value in ipairs(y) do
    if value ~= 0 and value ~= 1 then fail("train", ("the attribute must be 0 or 1, got %g"):format(value)) end
    y[i] = math.tointeger(value)
  end
  self._attack = searched("train", self._config, x, y, armour.generator(self._seed))
end

--- The guessed attribute of each row, int32 (n,); the column itself is not looked at. data: as for train.
---     > attack = ms.armour.privacy.evaluation.AttributeInference(ms.nn.Dense(2, 2), 0, { method = "knn", params = { n_neighbors = 1 } })
---     > data = { ms.tensor { { 0.0, 1.0 }, { 1.0, 2.0 }, { 1.0, 1.5 } }, ms.tensor { 0, 1, 1 } }
---     > attack:train(data)
---     > attack:infer(data):tolist()[2] --> 1
function AttributeInference:infer(data)
  if not self._attack then fail("infer", "the attack has not been trained", "attack:train(data)") end
  local guessed = {}
  for i, share in ipairs(self._attack.predict((self:_features("infer", data)))) do guessed[i] = share > 0.5 and 1 or 0 end
  return ms.tensor(guessed, ms.int32)
end

return M
