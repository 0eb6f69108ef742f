-- Metrics against values computed by hand from their definitions.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local train, ops = ms.train, ms.ops

-- Two batches of scores of three classes; predicted classes 1, 0, 2 and 2, 1.
local scores = { ms.tensor { { 0.1, 0.7, 0.2 }, { 0.5, 0.3, 0.2 }, { 0.2, 0.3, 0.5 } }, ms.tensor { { 0.1, 0.2, 0.7 }, { 0.1, 0.6, 0.3 } } }
local labels = { ms.tensor { 1, 0, 1 }, ms.tensor { 2, 0 } }

local function over_batches(metric)
  for i = 1, 2 do metric:update(scores[i], labels[i]) end
  return metric
end

local left, right = ms.tensor { { 1, 0, 1 }, { 0, 1, 0 } }, ms.tensor { { 1, 0, 0 }, { 0, 1, 0 } }

t.test("accuracy of classes, one-hot labels and several labels", function()
  local metric = over_batches(train.Accuracy())
  t.near(metric:eval(), 3 / 5, 1e-12)
  metric:clear()
  metric:update(scores[1], ops.one_hot(labels[1], 3))
  t.near(metric:eval(), 2 / 3, 1e-12)
  metric = train.Accuracy("multilabel")
  metric:update(left, right)
  t.near(metric:eval(), 0.5)
  metric = train.Accuracy()
  metric:update(ms.tensor { { { 0.9, 0.1 }, { 0.1, 0.9 } } }, ms.tensor { { 0, 0 } })
  t.near(metric:eval(), 0.5)
  metric:update({ { 0.9, 0.1 } }, { 0 })
  t.near(metric:eval(), 2 / 3, 1e-12)
end)

t.test("precision, recall and F", function()
  -- Predicted 0: 1, 1: 2, 2: 2; true 0: 2, 1: 2, 2: 1; right 0: 1, 1: 1, 2: 1.
  t.near(over_batches(train.Precision()):eval(), { 1, 1 / 2, 1 / 2 }, 1e-12)
  t.near(over_batches(train.Precision()):eval(true), 2 / 3, 1e-12)
  t.near(over_batches(train.Recall()):eval(), { 1 / 2, 1 / 2, 1 }, 1e-12)
  t.near(over_batches(train.Recall()):eval(true), 2 / 3, 1e-12)
  t.near(over_batches(train.F1()):eval(), { 2 / 3, 1 / 2, 2 / 3 }, 1e-12)
  t.near(over_batches(train.Fbeta(2)):eval(), { 5 / 9, 1 / 2, 5 / 6 }, 1e-12)
  t.near(over_batches(train.Fbeta(2)):eval(true), (5 / 9 + 1 / 2 + 5 / 6) / 3, 1e-12)
  local metric = train.Precision { eval_type = "multilabel" }
  metric:update(left, right)
  t.near(metric:eval(), { 1 / 2, 1 }, 1e-12)
  t.near(metric:eval(true), 3 / 4, 1e-12)
  metric = train.Recall("multilabel")
  metric:update(left, right)
  metric:update(right, left)
  t.near(metric:eval(), { 1, 1, 1 / 2, 1 }, 1e-12)
end)

t.test("errors and losses", function()
  local metric = train.MAE()
  metric:update(ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }, ms.tensor { { 1.5, 2.0 }, { 2.0, 6.0 } })
  t.near(metric:eval(), 3.5 / 2, 1e-12)
  metric = train.MSE()
  metric:update(ms.tensor { 1.0, 2.0, 3.0 }, ms.tensor { 1.5, 2.0, 1.0 })
  metric:update(ms.tensor { 1.0 }, ms.tensor { 0.0 })
  t.near(metric:eval(), (0.25 + 4 + 1) / 4, 1e-12)
  metric = train.Loss()
  metric:update(ms.tensor(0.5))
  metric:update(ms.tensor { 1.0 })
  metric:update(3)
  t.near(metric:eval(), 1.5, 1e-12)
end)

t.test("the first k classes", function()
  t.near(over_batches(train.TopKCategoricalAccuracy(2)):eval(), 4 / 5, 1e-12)
  t.near(over_batches(train.Top1CategoricalAccuracy()):eval(), 3 / 5, 1e-12)
  local metric = train.Top5CategoricalAccuracy()
  metric:update(ms.tensor { { 1, 2, 3, 4, 5, 6 }, { 6, 5, 4, 3, 2, 1 } }, ms.tensor { 0, 0 })
  t.near(metric:eval(), 0.5)
end)

t.test("perplexity", function()
  local metric = train.Perplexity()
  metric:update(ms.tensor { { 0.2, 0.5, 0.3 }, { 0.6, 0.3, 0.1 } }, ms.tensor { 1, 0 })
  t.near(metric:eval(), math.exp(-(math.log(0.5) + math.log(0.6)) / 2), 1e-6)
  metric = train.Perplexity(-1)
  metric:update(ms.tensor { { { 0.2, 0.5, 0.3 }, { 0.6, 0.3, 0.1 } } }, ms.tensor { { 1, -1 } })
  t.near(metric:eval(), 2.0, 1e-6)
end)

t.test("confusion matrices", function()
  local metric = train.ConfusionMatrix(3)
  metric:update(ms.tensor { 1, 0, 1, 2 }, ms.tensor { 1, 0, 2, 2 })
  metric:update(scores[2], labels[2])
  t.near(metric:eval(), { { 1, 1, 0 }, { 0, 1, 0 }, { 0, 1, 2 } }, 0)
  local function normalized(how)
    metric = train.ConfusionMatrix(2, how)
    metric:update(ms.tensor { 0.7, 0.2, 0.9, 0.4 }, ms.tensor { 1, 0, 0, 1 })
    metric:update(ms.tensor { 1, 1 }, ms.tensor { 1, 1 })
    return metric:eval()
  end
  t.near(normalized("target"), { { 0.5, 0.5 }, { 0.25, 0.75 } }, 1e-12)
  t.near(normalized("prediction"), { { 0.5, 0.25 }, { 0.5, 0.75 } }, 1e-12)
  t.near(normalized("all"), { { 1 / 6, 1 / 6 }, { 1 / 6, 1 / 2 } }, 1e-12)
end)

t.test("rates of a confusion matrix, by any of their names", function()
  -- Class 1: 2 right positives, 1 wrong one, 1 missed, 2 right negatives.
  local outputs = ms.tensor { { { 0, 0, 0, 1, 1, 1 }, { 1, 1, 1, 0, 0, 0 } } }
  local truth = ms.tensor { { { 0, 0, 1, 0, 1, 1 }, { 1, 1, 0, 1, 0, 0 } } }
  local expected = {
    sensitivity = 2 / 3, recall = 2 / 3, specificity = 2 / 3, precision = 2 / 3, npv = 2 / 3, ["miss rate"] = 1 / 3, fall_out = 1 / 3,
    fdr = 1 / 3, ["for"] = 1 / 3, ["threat score"] = 1 / 2, accuracy = 2 / 3, ["balanced accuracy"] = 2 / 3, f1 = 2 / 3, mcc = 1 / 3,
    fm = 2 / 3, informedness = 1 / 3, markedness = 1 / 3, prevalence = 1 / 2, pt = (math.sqrt(2) / 3 - 1 / 3) / (1 / 3),
  }
  for name, value in pairs(expected) do
    for _, how in ipairs { false, true } do
      local metric = train.ConfusionMatrixMetric(true, name, how)
      metric:update(outputs, truth)
      t.near(metric:eval(), value, 1e-12)
    end
  end
  local metric = train.ConfusionMatrixMetric { metric_name = "recall", skip_channel = false }
  metric:update(outputs, truth)
  t.near(metric:eval(), 4 / 6, 1e-12)
end)

t.test("similarity, overlap and texts", function()
  local metric = train.CosineSimilarity()
  metric:update(ms.tensor { { 1.0, 0.0 }, { 1.0, 1.0 } })
  t.near(metric:eval(), { { 0, math.sqrt(0.5) }, { math.sqrt(0.5), 0 } }, 1e-12)
  metric = train.CosineSimilarity { similarity = "dot", reduction = "sum", zero_diagonal = false }
  metric:update(ms.tensor { { 1.0, 0.0 }, { 1.0, 2.0 } })
  t.near(metric:eval(), { 2, 6 }, 1e-12)
  metric = train.Dice()
  metric:update(ms.tensor { 0.5, 1.0 }, ms.tensor { 1.0, 1.0 })
  metric:update(ms.tensor { 0.0, 1.0 }, ms.tensor { 1.0, 0.0 })
  t.near(metric:eval(), (3 / (1.25 + 2 + 1e-5)) / 2, 1e-9)
  metric = train.BleuScore()
  local candidate = { "i", "have", "a", "pen", "on", "my", "desk" }
  local references = { { "i", "have", "a", "pen", "in", "my", "desk" }, { "there", "is", "a", "pen", "on", "the", "desk" } }
  metric:update({ candidate }, { references })
  -- Runs of 1 to 4 that occur: 7 of 7, 5 of 6, 3 of 5, 1 of 4.
  t.near(metric:eval(), (5 / 6 * 3 / 5 * 1 / 4) ^ 0.25, 1e-12)
  metric = train.BleuScore(2, true)
  metric:update({ { "a", "b" } }, { { { "a", "b", "c" } } })
  t.near(metric:eval(), math.exp(1 - 3 / 2), 1e-12)
end)

-- MindSpore 2.10's values.
t.test("distances of surfaces", function()
  local outputs = { { 0, 0, 0, 0, 0 }, { 0, 1, 1, 0, 0 }, { 0, 1, 1, 1, 0 }, { 0, 0, 1, 1, 0 }, { 0, 0, 0, 0, 0 } }
  local actual = { { 0, 0, 0, 0, 0 }, { 0, 1, 0, 0, 0 }, { 0, 1, 1, 0, 0 }, { 0, 1, 1, 0, 1 }, { 0, 1, 0, 0, 0 } }
  local function gives(name, options, expected, y_pred, y)
    local metric = train.get_metric_fn(name, options)
    metric:update(y_pred or outputs, y or actual, 1)
    t.near(metric:eval(), expected, 1e-12)
  end
  gives("hausdorff_distance", {}, math.sqrt(2))
  gives("hausdorff_distance", { directed = true }, 1)
  gives("hausdorff_distance", { distance_metric = "taxicab" }, 2)
  gives("hausdorff_distance", { distance_metric = "chessboard" }, 1)
  gives("hausdorff_distance", { percentile = 50.0, directed = true }, 0.5)
  gives("mean_surface_distance", {}, 0.5)
  gives("mean_surface_distance", { symmetric = true }, 0.5653009687409354)
  gives("root_mean_square_distance", {}, 0.5)
  gives("root_mean_square_distance", { symmetric = true }, 0.7791937224739797)
  -- A cube within a cube: 98 points of a surface, of which 54 are 1 from the inner one, 36 the root of 2 and 8 that of 3.
  local big, small = ops.ones({ 5, 5, 5 }), ops.zeros({ 5, 5, 5 })
  small["1:4, 1:4, 1:4"] = 1.0
  gives("mean_surface_distance", {}, (54 + 36 * math.sqrt(2) + 8 * math.sqrt(3)) / 98, big, small)
  gives("hausdorff_distance", {}, math.sqrt(3), big, small)
  -- Only the surface counts: the points within are none of it.
  gives("hausdorff_distance", { directed = true }, 1, small, big)
  -- Many points are looked at in parts.
  gives("hausdorff_distance", { directed = true }, 1999, ops.ones({ 1, 2000 }), ops.one_hot(ms.tensor { 0 }, 2000))
  gives("hausdorff_distance", {}, math.huge, ops.ones({ 2, 2 }), ops.zeros({ 2, 2 }))
  gives("mean_surface_distance", {}, math.huge, ops.zeros({ 2, 2 }), ops.ones({ 2, 2 }))
  local metric = train.HausdorffDistance()
  t.fails({ "HausdorffDistance", "nothing was counted" }, metric.eval, metric)
  t.fails({ "HausdorffDistance", "update takes 3 inputs, got 2" }, metric.update, metric, outputs, actual)
  t.fails({ "HausdorffDistance", "label_idx is 3, which is neither" }, metric.update, metric, outputs, actual, 3)
  t.fails({ "HausdorffDistance", "y_pred has shape (5, 5) and y has (2,)" }, metric.update, metric, outputs, { 0, 1 }, 1)
  t.fails({ "HausdorffDistance", "percentile must be at most 100" }, train.HausdorffDistance, { percentile = 101 })
  t.fails({ "MeanSurfaceDistance", "distance_metric must be one of" }, train.MeanSurfaceDistance, { distance_metric = "x" })
end)

t.test("curves and areas", function()
  local metric = train.ROC()
  metric:update(ms.tensor { 0.1, 0.4, 0.35, 0.8 }, ms.tensor { 0, 0, 1, 1 })
  local x, y, thresholds = metric:eval()
  t.near(x, { 0, 0, 0.5, 0.5, 1 }, 1e-6)
  t.near(y, { 0, 0.5, 0.5, 1, 1 }, 1e-6)
  t.near(thresholds, { 1.8, 0.8, 0.4, 0.35, 0.1 }, 1e-6)
  t.near(train.auc(x, y), 0.75, 1e-12)
  metric = train.ROC { class_num = 2 }
  metric:update(ms.tensor { { 0.9, 0.1 }, { 0.2, 0.8 } }, ms.tensor { 0, 1 })
  x, y = metric:eval()
  t.equal({ x, y }, { { { 0.0, 0.0, 1.0 }, { 0.0, 0.0, 1.0 } }, { { 0.0, 1.0, 1.0 }, { 0.0, 1.0, 1.0 } } })
  t.near(train.auc({ 3, 1, 2 }, { 3, 1, 2 }, true), 4, 1e-12)
  t.near(train.auc({ 3, 2, 1 }, { 1, 1, 1 }), 2, 1e-12)
end)

t.test("metrics by name, and of one's own", function()
  for _, name in ipairs(train.names()) do
    local arguments = name == "fbeta" and { 1 } or name == "topk" and { 1 } or name == "confusion_matrix" and { 2 } or {}
    assert(train.get_metric_fn(name, table.unpack(arguments)).eval, name)
  end
  t.equal(#train.names(), 23)
  assert(rawequal(ms.nn.Accuracy, train.Accuracy))
  local Share = train.Metric:extend("Share")
  function Share:clear() self.sum = 0 end
  Share.update = train.rearrange_inputs(function(self, a, b) self.sum = self.sum + a - b end)
  function Share:eval() return self.sum end
  local metric = Share():set_indexes { 2, 0 }
  metric:update(1, 10, 100)
  t.equal(metric:eval(), 99)
  local accuracy = train.Accuracy():set_indexes { 1, 2 }
  accuracy:update("unused", scores[1], labels[1])
  t.near(accuracy:eval(), 2 / 3, 1e-12)
  local found = train.get_metrics { "acc", other = train.MSE() }
  assert(found.acc and found.other)
end)

t.test("what is wrong is named", function()
  t.fails({ "Accuracy", "nothing was counted" }, function() return train.Accuracy():eval() end)
  local function update(metric, ...)
    return pcall(metric.update, metric, ...)
  end
  local function fails(texts, metric, ...)
    local ok, message = update(metric, ...)
    assert(not ok)
    t.fails(texts, error, message)
  end
  fails({ "Accuracy", "update takes 2 inputs, got 1", "hint:" }, train.Accuracy(), scores[1])
  fails({ "Accuracy", "y has the class 3, but y_pred has classes 0 to 2" }, train.Accuracy(), scores[1], ms.tensor { 0, 3, 1 })
  fails({ "Accuracy", "y_pred has shape (3, 3) and y has (2,)" }, train.Accuracy(), scores[1], ms.tensor { 0, 1 })
  fails({ "Accuracy", "must hold only 0 and 1" }, train.Accuracy("multilabel"), scores[1], scores[1])
  fails({ "Precision", "y must be a tensor, got the string 'x'" }, train.Precision(), scores[1], "x")
  fails({ "MAE", "y_pred has shape (3, 3) and y has (3,)" }, train.MAE(), scores[1], labels[1])
  fails({ "Loss", "loss must be a number" }, train.Loss(), scores[1])
  fails({ "TopKCategoricalAccuracy", "k is 4, but y_pred has 3 classes" }, train.TopKCategoricalAccuracy(4), scores[1], labels[1])
  fails({ "Accuracy", "indexes[1] is 2, but update got 2 inputs" }, train.Accuracy():set_indexes { 2 }, scores[1], labels[1])
  fails({ "ROC", "nan" }, train.ROC(), ms.tensor { 0 / 0, 1.0 }, ms.tensor { 0, 1 })
  fails({ "ConfusionMatrix", "not in 0 to 1" }, train.ConfusionMatrix(2), ms.tensor { 0, 2 }, ms.tensor { 0, 1 })
  t.fails({ "get_metric_fn", "there is no metric the string 'accurcy'", "did you mean 'accuracy'?" }, train.get_metric_fn, "accurcy")
  t.fails({ "Accuracy", "eval_type must be one of" }, train.Accuracy, "other")
  t.fails({ "ConfusionMatrixMetric", "there is no metric_name" }, train.ConfusionMatrixMetric, { metric_name = "x" })
  t.fails({ "auc", "neither grows nor falls" }, train.auc, { 1, 3, 2 }, { 1, 1, 1 })
  t.fails({ "Metric", "has no eval method" }, function() return train.Metric():eval() end)
  t.fails({ "ms.train", "there is no name 'Accurcy'", "did you mean 'Accuracy'?" }, function() return train.Accurcy end)
end)

t.finish()
