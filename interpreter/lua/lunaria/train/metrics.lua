-- The metrics of ms.train: accuracy and its kin, errors, curves. Definitions are MindSpore's.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local base = require "lunaria.train.metric"
local more = require "lunaria.train.metrics_more"
local surface = require "lunaria.train.metrics_surface"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local define, pair_of, classes_of, binary_of, sum_of, seen =
  base.define, base.pair_of, base.classes_of, base.binary_of, base.sum_of, base.seen

local metrics = { Metric = base.Metric }
for _, part in ipairs { more, surface } do
  for name, metric in pairs(part) do metrics[name] = metric end
end

local function nothing() end

local function eval_type(self, a, name)
  self.eval_type = check.choice(name, "eval_type", a.eval_type, { "classification", "multilabel" })
end

metrics.Accuracy = define("Accuracy", "eval_type=\"classification\"",
  [[The share of right predictions.

update(y_pred, y): scores (N, C, ...) and class numbers (N, ...) or one-hot labels. eval_type "multilabel": 0 and 1 for each
class in both; a sample counts when all of its classes are right.

  > local metric = ms.train.Accuracy()
  > metric:update(ms.tensor { { 0.2, 0.8 }, { 0.7, 0.3 } }, ms.tensor { 1, 1 })
  > metric:eval()
  0.5]],
  eval_type, {
    clear = function(self) self.correct, self.count = 0, 0 end,
    update = function(self, ...)
      local outputs, labels = pair_of("Accuracy", 2, ...)
      local right
      if self.eval_type == "multilabel" then
        outputs, labels = binary_of("Accuracy", outputs, labels)
        right = ops.all(ops.equal(outputs, labels), 1)
      else
        outputs, labels = classes_of("Accuracy", outputs, labels)
        right = ops.equal(outputs, labels)
      end
      self.correct, self.count = self.correct + sum_of(right), self.count + right.size
    end,
    eval = function(self) return self.correct / seen("Accuracy", self.count) end,
  })

-- Counts of a batch for each class (or, multilabel, each sample): right positives, predicted ones, true ones.
local function positives(name, kind, outputs, labels)
  local count
  if kind == "multilabel" then
    outputs, labels, count = binary_of(name, outputs, labels)
    return ops.sum(outputs * labels, 1), ops.sum(outputs, 1), ops.sum(labels, 1), count
  end
  outputs, labels, count = classes_of(name, outputs, labels)
  local predicted = ops.one_hot(outputs, count):astype(ms.float64)
  local actual = ops.one_hot(labels, count):astype(ms.float64)
  return ops.sum(predicted * actual, 0), ops.sum(predicted, 0), ops.sum(actual, 0), count
end

local tiny = 2.2250738585072014e-308

local function ratio_list(above, below)
  local list = {}
  for i, value in ipairs(above) do list[i] = value / (below[i] + tiny) end
  return list
end

local function mean_of(list)
  local sum = 0
  for _, value in ipairs(list) do sum = sum + value end
  return sum / #list
end

-- Adds lists of counts element by element, or behind each other where each sample has its own.
local function add_counts(self, name, kind, classes, ...)
  if self.classes ~= nil and self.classes ~= classes then
    fail(name, ("y_pred has %d classes, in the batches before it had %d"):format(classes, self.classes))
  end
  self.classes = classes
  for k, tensor in ipairs { ... } do
    local sums, values = self.sums[k], tensor:tolist()
    if kind == "multilabel" then
      table.move(values, 1, #values, #sums + 1, sums)
    else
      for i, value in ipairs(values) do sums[i] = (sums[i] or 0) + value end
    end
  end
end

-- Precision and recall: right positives over predicted or true ones.
local function share(name, what, doc)
  metrics[name] = define(name, "eval_type=\"classification\"", doc, eval_type, {
    clear = function(self) self.classes, self.sums = nil, { {}, {} } end,
    update = function(self, ...)
      local outputs, labels = pair_of(name, 2, ...)
      local right, predicted, actual, classes = positives(name, self.eval_type, outputs, labels)
      add_counts(self, name, self.eval_type, classes, right, what == "predicted" and predicted or actual)
    end,
    eval = function(self, average)
      seen(name, self.classes or 0)
      local list = ratio_list(self.sums[1], self.sums[2])
      if check.boolean(name, "average", average or false) then return mean_of(list) end
      return list
    end,
  })
end
share("Precision", "predicted",
  [[Right positives over predicted ones: eval() gives a list with one number for each class, eval(true) their mean.

update(y_pred, y) as for Accuracy; eval_type "multilabel" counts each sample instead of each class.
  > m = ms.train.Precision()
  > m:update(ms.tensor { { 0.2, 0.8 }, { 0.7, 0.3 } }, ms.tensor { 1, 0 })
  > m:eval(true) --> 1.0]])
share("Recall", "actual",
  [[Right positives over true ones: eval() gives a list with one number for each class, eval(true) their mean.

update(y_pred, y) as for Accuracy; eval_type "multilabel" counts each sample instead of each class.
  > m = ms.train.Recall()
  > m:update(ms.tensor { { 0.2, 0.8 }, { 0.7, 0.3 } }, ms.tensor { 1, 0 })
  > m:eval(true) --> 1.0]])

local Fbeta = define("Fbeta", "beta",
  [[(1 + beta^2) precision recall / (beta^2 precision + recall): eval() gives a list with one number for each class, eval(true) their mean.

update(y_pred, y) as for Accuracy.
  > m = ms.train.Fbeta(1)
  > m:update(ms.tensor { { 0.2, 0.8 }, { 0.7, 0.3 } }, ms.tensor { 1, 0 })
  > m:eval(true) --> 1.0]],
  function(self, a, name) self.beta = check.number_positive(name, "beta", a.beta) end, {
    clear = function(self) self.classes, self.sums = nil, { {}, {}, {} } end,
    update = function(self, ...)
      local name = getmetatable(self)._name
      local outputs, labels = pair_of(name, 2, ...)
      local right, predicted, actual, classes = positives(name, "classification", outputs, labels)
      add_counts(self, name, "classification", classes, right, predicted, actual)
    end,
    eval = function(self, average)
      local name = getmetatable(self)._name
      seen(name, self.classes or 0)
      local square, list = self.beta ^ 2, {}
      local right, predicted, actual = table.unpack(self.sums)
      for i = 1, #right do
        list[i] = (1 + square) * right[i] / (square * actual[i] + predicted[i] + tiny)
      end
      if check.boolean(name, "average", average or false) then return mean_of(list) end
      return list
    end,
  })
metrics.Fbeta = Fbeta

metrics.F1 = class.define(Fbeta, "F1", "", [[The harmonic mean of precision and recall: Fbeta with beta 1.
  > m = ms.train.F1()
  > m:update(ms.tensor { { 0.2, 0.8 }, { 0.7, 0.3 } }, ms.tensor { 1, 0 })
  > m:eval(true) --> 1.0]])
function metrics.F1:setup()
  self.beta = 1.0
  self:clear()
end

metrics.Loss = define("Loss", "", [[The mean of losses: update(loss) with one number or tensor of one element.
  > m = ms.train.Loss()
  > m:update(0.5)
  > m:update(1.5)
  > m:eval() --> 1.0]], nothing, {
  clear = function(self) self.sum, self.count = 0.0, 0 end,
  update = function(self, ...)
    if select("#", ...) ~= 1 then fail("Loss", ("update takes 1 input, got %d"):format(select("#", ...))) end
    self.sum, self.count = self.sum + check.number("Loss", "loss", (...)), self.count + 1
  end,
  eval = function(self) return self.sum / seen("Loss", self.count) end,
})

local function errors(name, of, doc)
  metrics[name] = define(name, "", doc, nothing, {
    clear = function(self) self.sum, self.count = 0.0, 0 end,
    update = function(self, ...)
      local outputs, labels = pair_of(name, 2, ...)
      base.same_shape(name, outputs, labels)
      self.sum = self.sum + sum_of(of(outputs:astype(ms.float64) - labels:astype(ms.float64)))
      self.count = self.count + (labels.ndim > 0 and labels.shape[1] or 1)
    end,
    eval = function(self) return self.sum / seen(name, self.count) end,
  })
end
errors("MAE", ops.abs, [[The sum of absolute differences over the number of samples (rows): update(y_pred, y).
  > m = ms.train.MAE()
  > m:update(ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 4.0 })
  > m:eval() --> 1.0]])
errors("MSE", ops.square, [[The sum of squared differences over the number of samples (rows): update(y_pred, y).
  > m = ms.train.MSE()
  > m:update(ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 4.0 })
  > m:eval() --> 2.0]])

local TopK = define("TopKCategoricalAccuracy", "k",
  [[The share of samples whose class is among the k with the highest scores.

update(y_pred, y): scores (N, C) and class numbers (N) or one-hot labels.
  > m = ms.train.TopKCategoricalAccuracy(2)
  > m:update(ms.tensor { { 0.2, 0.1, 0.8 } }, ms.tensor { 0 })
  > m:eval() --> 1.0]],
  function(self, a, name) self.k = check.positive(name, "k", a.k) end, {
    clear = function(self) self.correct, self.count = 0, 0 end,
    update = function(self, ...)
      local name = getmetatable(self)._name
      local outputs, labels = pair_of(name, 2, ...)
      if outputs.ndim ~= 2 then fail(name, ("y_pred must have shape (N, C), got %s"):format(tostring(outputs.shape))) end
      local _, actual, classes = classes_of(name, outputs, labels)
      if self.k > classes then fail(name, ("k is %d, but y_pred has %d classes"):format(self.k, classes)) end
      local _, best = ops.topk(outputs, self.k)
      local hits = ops.any(ops.equal(best:astype(ms.int64), ops.expand_dims(actual, 1)), 1)
      self.correct, self.count = self.correct + sum_of(hits), self.count + hits.size
    end,
    eval = function(self) return self.correct / seen(getmetatable(self)._name, self.count) end,
  })
metrics.TopKCategoricalAccuracy = TopK
for k, words in pairs { [1] = "has the highest score", [5] = "is among the five with the highest scores" } do
  local name = ("Top%dCategoricalAccuracy"):format(k)
  metrics[name] = class.define(TopK, name, "", ([[The share of samples whose class %s.
  > m = ms.train.%s()
  > m:update(ms.tensor { { 0.1, 0.1, 0.1, 0.1, 0.1, 0.5 } }, ms.tensor { 5 })
  > m:eval() --> 1.0]]):format(words, name))
  metrics[name].setup = function(self)
    self.k = k
    self:clear()
  end
end

metrics.Perplexity = define("Perplexity", "ignore_label=nil",
  [[exp of the mean negative log-probability of the labels: update(probabilities, labels) with (..., C) and (...).

Labels of ignore_label do not count.
  > m = ms.train.Perplexity()
  > m:update(ms.tensor { { 0.5, 0.5 } }, ms.tensor { 1 })
  > m:eval() --> 2.0]],
  function(self, a, name)
    self.ignore_label = a.ignore_label ~= nil and check.integer(name, "ignore_label", a.ignore_label) or nil
  end, {
    clear = function(self) self.sum, self.count = 0.0, 0 end,
    update = function(self, ...)
      local outputs, labels = pair_of("Perplexity", 2, ...)
      local classes = outputs.ndim > 0 and outputs.shape[outputs.ndim] or 0
      if outputs.ndim < 1 or classes == 0 or outputs.size ~= labels.size * classes then
        fail("Perplexity", ("y_pred has shape %s and y has %s: y must be the shape of y_pred without its last axis"):format(
          tostring(outputs.shape), tostring(labels.shape)))
      end
      labels = labels:astype(ms.int64):reshape { -1 }
      local kept = ops.ones(labels.shape, ms.bool_)
      if self.ignore_label then kept = ops.not_equal(labels, self.ignore_label) end
      local index = ops.where(kept, labels, 0)
      if index.size > 0 and (index:min():item() < 0 or index:max():item() >= classes) then
        fail("Perplexity", ("y has a class out of range; y_pred has classes 0 to %d"):format(classes - 1))
      end
      local chosen = ops.gather_elements(outputs:astype(ms.float64):reshape { -1, classes }, 1, ops.expand_dims(index, 1))
      local logs = ops.log(ops.maximum(ops.squeeze(chosen, 1), 1e-10))
      self.sum = self.sum - ops.sum(ops.where(kept, logs, 0.0)):item()
      self.count = self.count + sum_of(kept)
    end,
    eval = function(self) return math.exp(self.sum / seen("Perplexity", self.count)) end,
  })

local by_name = {
  accuracy = "Accuracy", acc = "Accuracy", precision = "Precision", recall = "Recall", F1 = "F1", f1 = "F1", fbeta = "Fbeta",
  dice = "Dice", roc = "ROC", loss = "Loss", mae = "MAE", mse = "MSE", topk = "TopKCategoricalAccuracy",
  top_1_accuracy = "Top1CategoricalAccuracy", top_5_accuracy = "Top5CategoricalAccuracy", perplexity = "Perplexity",
  bleu_score = "BleuScore", confusion_matrix = "ConfusionMatrix", confusion_matrix_metric = "ConfusionMatrixMetric",
  cosine_similarity = "CosineSimilarity", hausdorff_distance = "HausdorffDistance", mean_surface_distance = "MeanSurfaceDistance",
  root_mean_square_distance = "RootMeanSquareDistance",
}

--- The names that get_metric_fn and Model's metrics know, sorted.
---     > ms.train.names()[1] --> F1
---     > #ms.train.names() > 5 --> true
function metrics.names()
  local list = {}
  for name in pairs(by_name) do list[#list + 1] = name end
  table.sort(list)
  return list
end

--- A metric by its name (ms.train.names() lists them), made with the arguments.
---     > tostring(ms.train.get_metric_fn("topk", 3)) --> TopKCategoricalAccuracy<>
---     > tostring(ms.train.get_metric_fn("accuracy")) --> Accuracy<>
function metrics.get_metric_fn(name, ...)
  local known = type(name) == "string" and by_name[name]
  if not known then
    fail("get_metric_fn", ("there is no metric %s; there are: %s"):format(describe(name), table.concat(metrics.names(), ", ")),
      type(name) == "string" and arguments.nearest(name, metrics.names()) or nil)
  end
  return metrics[known](...)
end

--- A table of metrics by name from what Model takes: a list of names, or a table from names of your own to metrics or names.
---     > type(ms.train.get_metrics { "accuracy" }.accuracy) --> table
function metrics.get_metrics(given)
  local found = {}
  if given == nil then return found end
  if type(given) == "string" then given = { given } end
  if type(given) ~= "table" or getmetatable(given) ~= nil then
    fail("metrics", "must be a list of names or a table of metrics by name, got " .. describe(given))
  end
  for key, value in pairs(given) do
    local name = type(key) == "string" and key or value
    if type(value) == "string" then value = metrics.get_metric_fn(value) end
    if type(name) ~= "string" then
      if not class.is_a(value, base.Metric) then
        fail("metrics", "must be a list of names or of metrics, got " .. describe(value) .. " in it")
      end
      name = getmetatable(value)._name
    end
    if type(value) ~= "table" or not value.update or not value.eval or not value.clear then
      fail("metrics", ("the metric '%s' must be a metric, got %s"):format(name, describe(value)),
        "a metric has the methods clear, update and eval")
    end
    found[name] = value
  end
  return found
end

metrics.rearrange_inputs = base.rearrange_inputs

return metrics
