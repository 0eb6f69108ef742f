-- Metrics that are used now and then: confusion matrices, overlaps, texts, curves.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.train.metric"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local define, pair_of, sum_of, seen = base.define, base.pair_of, base.sum_of, base.seen

local metrics = {}

metrics.ConfusionMatrix = define("ConfusionMatrix", "num_classes, normalize=\"no_norm\", threshold=0.5",
  [[How often each class (row) was taken for each (column): eval() gives a float64 tensor (C, C).

update(y_pred, y): class numbers or scores (N, C) and class numbers; for two classes also probabilities, which are compared
with threshold. normalize: "no_norm", "target" (rows add up to 1), "prediction" (columns do), "all".
  > m = ms.train.ConfusionMatrix(2)
  > m:update(ms.tensor { 0, 1, 1 }, ms.tensor { 0, 1, 0 })
  > m:eval():tolist()[1][2] --> 1.0]],
  function(self, a, name)
    self.num_classes = check.positive(name, "num_classes", a.num_classes)
    self.normalize = check.choice(name, "normalize", a.normalize, { "no_norm", "target", "prediction", "all" })
    self.threshold = check.number(name, "threshold", a.threshold)
  end, {
    clear = function(self) self.matrix = ops.zeros({ self.num_classes, self.num_classes }, ms.float64) end,
    update = function(self, ...)
      local name, n = "ConfusionMatrix", self.num_classes
      local outputs, labels = pair_of(name, 2, ...)
      if outputs.ndim == labels.ndim + 1 then
        outputs = ops.argmax(outputs, 1)
      elseif outputs.ndim == labels.ndim and ops.is_floating_point(outputs) then
        outputs = ops.greater_equal(outputs, self.threshold)
      end
      base.same_shape(name, outputs, labels)
      outputs, labels = outputs:astype(ms.int64):reshape { -1 }, labels:astype(ms.int64):reshape { -1 }
      for what, x in pairs { y_pred = outputs, y = labels } do
        if x.size > 0 and (x:min():item() < 0 or x:max():item() >= n) then
          fail(name, ("%s has a class that is not in 0 to %d (num_classes - 1)"):format(what, n - 1))
        end
      end
      local counts = ops.bincount(labels * n + outputs, nil, n * n)
      self.matrix = self.matrix + ops.reshape(counts, { n, n }):astype(ms.float64)
    end,
    eval = function(self)
      local matrix = self.matrix
      if self.normalize == "no_norm" then return matrix end
      local sum
      if self.normalize == "all" then
        sum = ops.sum(matrix)
      else
        sum = ops.sum(matrix, self.normalize == "target" and 1 or 0, true)
      end
      return ops.where(ops.greater(sum, 0.0), matrix / ops.maximum(sum, 1.0), 0.0)
    end,
  })

local function over(a, b)
  return b ~= 0 and a / b or 0 / 0
end

-- From counts of right and wrong positives and negatives.
local rates = {
  sensitivity = function(m) return over(m.tp, m.tp + m.fn) end,
  specificity = function(m) return over(m.tn, m.tn + m.fp) end,
  precision = function(m) return over(m.tp, m.tp + m.fp) end,
  ["negative predictive value"] = function(m) return over(m.tn, m.tn + m.fn) end,
  ["miss rate"] = function(m) return over(m.fn, m.tp + m.fn) end,
  ["fall out"] = function(m) return over(m.fp, m.tn + m.fp) end,
  ["false discovery rate"] = function(m) return over(m.fp, m.tp + m.fp) end,
  ["false omission rate"] = function(m) return over(m.fn, m.tn + m.fn) end,
  ["threat score"] = function(m) return over(m.tp, m.tp + m.fn + m.fp) end,
  accuracy = function(m) return over(m.tp + m.tn, m.tp + m.fn + m.fp + m.tn) end,
  ["f1 score"] = function(m) return over(2 * m.tp, 2 * m.tp + m.fn + m.fp) end,
}
function rates.prevalence(m) return over(m.tp + m.fn, m.tp + m.fn + m.fp + m.tn) end
function rates.informedness(m) return rates.sensitivity(m) + rates.specificity(m) - 1 end
function rates.markedness(m) return rates.precision(m) + rates["negative predictive value"](m) - 1 end
rates["balanced accuracy"] = function(m) return (rates.sensitivity(m) + rates.specificity(m)) / 2 end
rates["fowlkes mallows index"] = function(m) return math.sqrt(rates.precision(m) * rates.sensitivity(m)) end
rates["prevalence threshold"] = function(m)
  local hit, false_alarm = rates.sensitivity(m), 1 - rates.specificity(m)
  return over(math.sqrt(hit * false_alarm) - false_alarm, hit - false_alarm)
end
rates["matthews correlation coefficient"] = function(m)
  return over(m.tp * m.tn - m.fp * m.fn, math.sqrt((m.tp + m.fp) * (m.tp + m.fn) * (m.tn + m.fp) * (m.tn + m.fn)))
end

local other_names = {
  recall = "sensitivity", ["hit rate"] = "sensitivity", tpr = "sensitivity", ["true positive rate"] = "sensitivity",
  selectivity = "specificity", tnr = "specificity", ["true negative rate"] = "specificity",
  ppv = "precision", ["positive predictive value"] = "precision", npv = "negative predictive value",
  fnr = "miss rate", ["false negative rate"] = "miss rate", fpr = "fall out", ["false positive rate"] = "fall out",
  fdr = "false discovery rate", ["for"] = "false omission rate", ts = "threat score", ["critical success index"] = "threat score",
  csi = "threat score", acc = "accuracy", ba = "balanced accuracy", f1 = "f1 score", pt = "prevalence threshold",
  fm = "fowlkes mallows index", bm = "informedness", ["bookmaker informedness"] = "informedness", mk = "markedness",
  deltap = "markedness", mcc = "matthews correlation coefficient",
}

local decreases = { "none", "mean", "sum", "mean_batch", "sum_batch", "mean_channel", "sum_channel" }

local function is_nan(x) return x ~= x end

-- The mean or the sum of a list of lists of numbers, nan left out: the result and how many there were.
local function decreased(rows, how)
  local sum, count = 0, 0
  for _, row in ipairs(rows) do
    for _, value in ipairs(row) do
      if not is_nan(value) then sum, count = sum + value, count + 1 end
    end
  end
  if how:find("^mean") then return count > 0 and sum / count or 0, count end
  return sum, count
end

metrics.ConfusionMatrixMetric = define("ConfusionMatrixMetric",
  "skip_channel=true, metric_name=\"sensitivity\", calculation_method=false, decrease=\"mean\"",
  [[A rate from right and wrong positives and negatives: update(y_pred, y) with one-hot 0 and 1 of shape (N, C, ...).

metric_name: sensitivity, specificity, precision, negative predictive value, miss rate, fall out, false discovery rate, false
omission rate, prevalence threshold, threat score, accuracy, balanced accuracy, f1 score, matthews correlation coefficient,
fowlkes mallows index, informedness, markedness, or a usual name of these (recall, tpr, ...). skip_channel leaves out class 0.
calculation_method: the rate of each sample and class first, then their mean; else the rate of the sums.
  > m = ms.train.ConfusionMatrixMetric { skip_channel = false, metric_name = "recall" }
  > m:update(ms.tensor { { 1, 0 }, { 0, 1 } }, ms.tensor { { 1, 0 }, { 0, 1 } })
  > type(m:eval()) --> number]],
  function(self, a, name)
    self.skip_channel = check.boolean(name, "skip_channel", a.skip_channel)
    self.calculation_method = check.boolean(name, "calculation_method", a.calculation_method)
    self.decrease = check.choice(name, "decrease", a.decrease, decreases)
    local wanted = type(a.metric_name) == "string" and a.metric_name:lower():gsub("_", " ")
    wanted = other_names[wanted] or wanted
    if not rates[wanted] then
      local names = {}
      for known in pairs(rates) do names[#names + 1] = known end
      table.sort(names)
      fail(name, ("there is no metric_name %s; there are: %s"):format(describe(a.metric_name), table.concat(names, ", ")))
    end
    self.metric_name = wanted
  end, {
    clear = function(self)
      self.counts, self.sum, self.count, self.batches = { tp = 0, fp = 0, tn = 0, fn = 0 }, 0, 0, 0
    end,
    update = function(self, ...)
      local name = "ConfusionMatrixMetric"
      local outputs, labels = pair_of(name, 2, ...)
      base.same_shape(name, outputs, labels)
      if outputs.ndim < 2 then fail(name, ("y_pred must have shape (N, C, ...), got %s"):format(tostring(outputs.shape))) end
      local first = self.skip_channel and outputs.shape[2] > 1 and 1 or 0
      local function flat(x)
        x = ops.reshape(x:astype(ms.float64), { x.shape[1], x.shape[2], -1 })
        return x[{ ms.slice(nil, nil), ms.slice(first, nil) }]
      end
      outputs, labels = flat(outputs), flat(labels)
      local tp = ops.sum(outputs * labels, 2)
      local fp, fn = ops.sum(outputs, 2) - tp, ops.sum(labels, 2) - tp
      local tn = outputs.shape[3] - tp - fp - fn
      self.batches = self.batches + 1
      if not self.calculation_method then
        local counts = self.counts
        counts.tp, counts.fp = counts.tp + sum_of(tp), counts.fp + sum_of(fp)
        counts.tn, counts.fn = counts.tn + sum_of(tn), counts.fn + sum_of(fn)
        return
      end
      local rows = {}
      tp, fp, tn, fn = tp:tolist(), fp:tolist(), tn:tolist(), fn:tolist()
      for i = 1, #tp do
        rows[i] = {}
        for j = 1, #tp[i] do
          rows[i][j] = rates[self.metric_name] { tp = tp[i][j], fp = fp[i][j], tn = tn[i][j], fn = fn[i][j] }
        end
      end
      local score, count = decreased(rows, self.decrease)
      self.sum, self.count = self.sum + score * count, self.count + count
    end,
    eval = function(self)
      seen("ConfusionMatrixMetric", self.batches)
      if self.calculation_method then return self.sum / seen("ConfusionMatrixMetric", self.count) end
      return rates[self.metric_name](self.counts)
    end,
  })

metrics.CosineSimilarity = define("CosineSimilarity", "similarity=\"cosine\", reduction=\"none\", zero_diagonal=true",
  [[How similar the rows of a matrix are: update(x) with (N, D); eval() gives a tensor (N, N), or of its rows the sum or the mean.

similarity: "cosine" or "dot". zero_diagonal: that of a row with itself is 0.
  > m = ms.train.CosineSimilarity()
  > m:update(ms.tensor { { 1.0, 0.0 }, { 1.0, 0.0 } })
  > m:eval().shape --> (2, 2)]],
  function(self, a, name)
    self.similarity = check.choice(name, "similarity", a.similarity, { "cosine", "dot" })
    self.reduction = check.choice(name, "reduction", a.reduction, { "none", "sum", "mean" })
    self.zero_diagonal = check.boolean(name, "zero_diagonal", a.zero_diagonal)
  end, {
    clear = function(self) self.matrix = nil end,
    update = function(self, ...)
      if select("#", ...) ~= 1 then fail("CosineSimilarity", ("update takes 1 input, got %d"):format(select("#", ...))) end
      local x = base.tensor_of("CosineSimilarity", "inputs", (...))
      if x.ndim ~= 2 then fail("CosineSimilarity", ("inputs must have shape (N, D), got %s"):format(tostring(x.shape))) end
      x = x:astype(ms.float64)
      if self.similarity == "cosine" then x = x / ops.sqrt(ops.sum(x * x, 1, true)) end
      self.matrix = ops.matmul(x, ops.transpose(x, { 1, 0 }))
      if self.zero_diagonal then self.matrix = self.matrix * (1 - ops.eye(x.shape[1], x.shape[1], ms.float64)) end
    end,
    eval = function(self)
      seen("CosineSimilarity", self.matrix and 1 or 0)
      if self.reduction == "none" then return self.matrix end
      return ops[self.reduction](self.matrix, -1)
    end,
  })

metrics.Dice = define("Dice", "smooth=1e-5",
  [[2 |A B| / (|A|^2 + |B|^2 + smooth), averaged over the batches: update(y_pred, y) with tensors of one shape.
  > m = ms.train.Dice()
  > m:update(ms.tensor { 1.0, 0.0 }, ms.tensor { 1.0, 0.0 })
  > m:eval() > 0.99 --> true]],
  function(self, a, name) self.smooth = check.number_positive(name, "smooth", a.smooth) end, {
    clear = function(self) self.sum, self.count = 0.0, 0 end,
    update = function(self, ...)
      local outputs, labels = pair_of("Dice", 2, ...)
      base.same_shape("Dice", outputs, labels)
      outputs, labels = outputs:astype(ms.float64), labels:astype(ms.float64)
      local union = sum_of(outputs * outputs) + sum_of(labels * labels)
      self.sum = self.sum + 2 * sum_of(outputs * labels) / (union + self.smooth)
      self.count = self.count + 1
    end,
    eval = function(self) return self.sum / seen("Dice", self.count) end,
  })

-- How often each run of up to n tokens occurs.
local function runs_of(tokens, n)
  local counts = {}
  for length = 1, n do
    for i = 1, #tokens - length + 1 do
      local run = { length }
      for j = i, i + length - 1 do run[#run + 1] = #tostring(tokens[j]) .. ":" .. tostring(tokens[j]) end
      local key = table.concat(run, " ")
      counts[key] = { length, (counts[key] and counts[key][2] or 0) + 1 }
    end
  end
  return counts
end

local function add_sentence(self, candidate, references)
  local most, nearest, gap = {}, nil, math.huge
  for _, reference in ipairs(references) do
    if math.abs(#candidate - #reference) < gap then nearest, gap = #reference, math.abs(#candidate - #reference) end
    for run, entry in pairs(runs_of(reference, self.n_gram)) do most[run] = math.max(most[run] or 0, entry[2]) end
  end
  for run, entry in pairs(runs_of(candidate, self.n_gram)) do
    local length = entry[1]
    self.found[length] = self.found[length] + math.min(entry[2], most[run] or 0)
    self.total[length] = self.total[length] + entry[2]
  end
  self.length, self.reference_length = self.length + #candidate, self.reference_length + nearest
end

metrics.BleuScore = define("BleuScore", "n_gram=4, smooth=false",
  [[BLEU of translations (Papineni et al. 2002): update(candidates, references), lists of token lists and of lists of them.

  > local metric = ms.train.BleuScore(2)
  > metric:update({ { "a", "cat", "sat" } }, { { { "a", "cat", "sat" }, { "the", "cat" } } })
  > metric:eval()
  1.0]],
  function(self, a, name)
    self.n_gram = check.positive(name, "n_gram", a.n_gram)
    if self.n_gram > 4 then fail(name, ("n_gram must be 1 to 4, got %d"):format(self.n_gram)) end
    self.smooth = check.boolean(name, "smooth", a.smooth)
  end, {
    clear = function(self)
      self.found, self.total, self.length, self.reference_length = {}, {}, 0, 0
      for i = 1, self.n_gram do self.found[i], self.total[i] = 0, 0 end
    end,
    update = function(self, ...)
      local candidates, references = ...
      if select("#", ...) ~= 2 or type(candidates) ~= "table" or type(references) ~= "table" then
        fail("BleuScore", "update takes a list of token lists and a list of lists of token lists")
      elseif #candidates ~= #references then
        fail("BleuScore", ("got %d candidates and %d lists of references"):format(#candidates, #references))
      end
      for i, candidate in ipairs(candidates) do
        if type(candidate) ~= "table" or type(references[i]) ~= "table" or type(references[i][1]) ~= "table" then
          fail("BleuScore", ("candidate %d must be a list of tokens and its references a list of such lists"):format(i))
        end
        add_sentence(self, candidate, references[i])
      end
    end,
    eval = function(self)
      seen("BleuScore", self.length)
      local logs, extra = 0, self.smooth and 1 or 0
      for i = 1, self.n_gram do
        if self.found[i] == 0 then return 0.0 end
        logs = logs + math.log((self.found[i] + extra) / (self.total[i] + extra)) / self.n_gram
      end
      local brevity = self.length > self.reference_length and 1 or math.exp(1 - self.reference_length / self.length)
      return brevity * math.exp(logs)
    end,
  })

-- The curve of one class: rates of false and of true positives, and thresholds, all as lists.
local function curve(name, scores, hits)
  local order, all_hits = {}, 0
  for i = 1, #scores do
    order[i] = i
    all_hits = all_hits + (hits[i] and 1 or 0)
  end
  if all_hits == 0 then fail(name, "y has no positive sample") end
  if all_hits == #scores then fail(name, "y has no negative sample") end
  table.sort(order, function(a, b) return scores[a] > scores[b] end)
  local false_rate, true_rate, thresholds = { 0.0 }, { 0.0 }, { scores[order[1]] + 1 }
  local right, wrong = 0, 0
  for k, i in ipairs(order) do
    if hits[i] then right = right + 1 else wrong = wrong + 1 end
    if scores[order[k + 1]] ~= scores[i] then
      false_rate[#false_rate + 1], true_rate[#true_rate + 1] = wrong / (#scores - all_hits), right / all_hits
      thresholds[#thresholds + 1] = scores[i]
    end
  end
  return false_rate, true_rate, thresholds
end

metrics.ROC = define("ROC", "class_num=nil, pos_label=nil",
  [[The curve of false against true positives: eval() gives their rates and the thresholds as three lists, of several classes as
lists of lists.

update(y_pred, y): scores (N) and labels, of which pos_label (1) is positive; or scores (N, C) and class numbers.
  > m = ms.train.ROC()
  > m:update(ms.tensor { 0.1, 0.9 }, ms.tensor { 0, 1 })
  > select("#", m:eval()) --> 3]],
  function(self, a, name)
    self.class_num = a.class_num ~= nil and check.positive(name, "class_num", a.class_num) or nil
    self.pos_label = a.pos_label ~= nil and check.integer(name, "pos_label", a.pos_label) or nil
  end, {
    clear = function(self) self.scores, self.labels, self.columns = {}, {}, nil end,
    update = function(self, ...)
      local outputs, labels = pair_of("ROC", 2, ...)
      local columns = outputs.ndim == labels.ndim + 1 and outputs.shape[2] or 1
      if outputs.ndim == labels.ndim then
        base.same_shape("ROC", outputs, labels)
      elseif columns == 1 and outputs.ndim ~= labels.ndim + 1 or outputs.size ~= labels.size * columns then
        fail("ROC", ("y_pred has shape %s and y has %s"):format(tostring(outputs.shape), tostring(labels.shape)))
      end
      if self.class_num and self.class_num ~= columns or self.columns and self.columns ~= columns then
        fail("ROC", ("y_pred has %d classes, %d are expected"):format(columns, self.class_num or self.columns))
      end
      self.columns = columns
      if ops.any(ops.isnan(outputs:astype(ms.float64))):item() then fail("ROC", "y_pred has nan among the scores") end
      if outputs.ndim > labels.ndim then outputs = ops.movedim(outputs, 1, -1) end
      local rows = ops.reshape(outputs:astype(ms.float64), { -1, columns }):tolist()
      for i, label in ipairs(labels:reshape({ -1 }):tolist()) do
        self.scores[#self.scores + 1], self.labels[#self.labels + 1] = rows[i], label
      end
    end,
    eval = function(self)
      seen("ROC", #self.labels)
      local function of(column, positive)
        local scores, hits = {}, {}
        for i, row in ipairs(self.scores) do scores[i], hits[i] = row[column], self.labels[i] == positive end
        return curve("ROC", scores, hits)
      end
      if self.columns == 1 then return of(1, self.pos_label or 1) end
      local lists = { {}, {}, {} }
      for c = 1, self.columns do lists[1][c], lists[2][c], lists[3][c] = of(c, c - 1) end
      return table.unpack(lists)
    end,
  })

local function list_of(what, value)
  if ms.is_tensor(value) and value.ndim == 1 then value = value:tolist() end
  if type(value) ~= "table" or #value < 2 then
    fail("auc", ("%s must be a list of two numbers or more, got %s"):format(what, describe(value)))
  end
  for i = 1, #value do check.number("auc", ("%s[%d]"):format(what, i), value[i]) end
  return value
end

--- The area under a curve through points, by the trapezoidal rule; x must grow or fall. reorder sorts the points by x first.
---     > ms.train.auc({ 0, 0.5, 1 }, { 0, 1, 1 }) --> 0.75
function metrics.auc(x, y, reorder)
  reorder = arguments.named("auc", { "reorder" }, reorder)
  x, y = list_of("x", x), list_of("y", y)
  if #x ~= #y then fail("auc", ("x has %d numbers and y has %d"):format(#x, #y)) end
  local order = {}
  for i = 1, #x do order[i] = i end
  if reorder then
    table.sort(order, function(a, b) return x[a] < x[b] or x[a] == x[b] and y[a] < y[b] end)
  end
  local area, up, down = 0, false, false
  for k = 2, #order do
    local a, b = order[k - 1], order[k]
    up, down = up or x[b] > x[a], down or x[b] < x[a]
    area = area + (x[b] - x[a]) * (y[a] + y[b]) / 2
  end
  if up and down then fail("auc", "x neither grows nor falls all the way", "auc(x, y, true) sorts the points") end
  return down and -area or area
end

return metrics
