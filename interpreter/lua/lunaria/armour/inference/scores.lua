-- Scores that tell rows a model was trained on from others: thresholds, and likelihood ratios from shadow models.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local armour = require "lunaria.armour.common"
local class = require "lunaria.nn.class"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

-- A list or a tensor (n,) of numbers as a list, without nan.
local function numbers(where, name, values)
  if ms.is_tensor(values) and values.ndim == 1 then values = values:astype(f64):tolist() end
  if type(values) ~= "table" or getmetatable(values) ~= nil or #values == 0 then
    fail(where, ("%s must be a tensor (n,) or a list of numbers with at least one, got %s"):format(name, describe(values)))
  end
  local list = {}
  for i, value in ipairs(values) do list[i] = check.real(where, name, value) end
  return list
end

-- The curve of a threshold that goes down over the scores: lists of the shares of members and of others at or above it.
local function curve(members, others)
  local all = {}
  for _, score in ipairs(members) do all[#all + 1] = { score, 1 } end
  for _, score in ipairs(others) do all[#all + 1] = { score, 0 } end
  table.sort(all, function(a, b) return a[1] > b[1] end)
  local tpr, fpr, hits, alarms = { 0.0 }, { 0.0 }, 0, 0
  for i, item in ipairs(all) do
    if item[2] == 1 then hits = hits + 1 else alarms = alarms + 1 end
    -- Equal scores lie on the same side of any threshold.
    if i == #all or all[i + 1][1] ~= item[1] then
      tpr[#tpr + 1], fpr[#fpr + 1] = hits / #members, alarms / #others
    end
  end
  return tpr, fpr
end

--- How well scores tell members from others: a table with auc, advantage (the largest tpr - fpr of a threshold, Yeom and others 2018) and
--- tpr_at_fpr (the largest share of members that is found while at most `fpr` of the others are taken for members). members, others:
--- tensors (n,) or lists of scores, which are higher for members: losses are negated. fpr: default 0.1.
---     > found = ms.armour.privacy.evaluation.threshold_attack({ 3.0, 2.0, 0.5 }, { 1.0, 0.0 })
---     > ("%.4f"):format(found.auc) --> 0.8333
function M.threshold_attack(members, others, fpr)
  local where = "threshold_attack"
  fpr = arguments.named(where, { "fpr" }, fpr)
  fpr = fpr == nil and 0.1 or check.probability(where, "fpr", fpr)
  local tprs, fprs = curve(numbers(where, "members", members), numbers(where, "others", others))
  local auc, advantage, at_fpr = 0.0, 0.0, 0.0
  for i = 2, #tprs do
    auc = auc + (fprs[i] - fprs[i - 1]) * 0.5 * (tprs[i] + tprs[i - 1])
    advantage = math.max(advantage, tprs[i] - fprs[i])
    if fprs[i] <= fpr then at_fpr = math.max(at_fpr, tprs[i]) end
  end
  return { auc = auc, advantage = advantage, tpr_at_fpr = at_fpr }
end

--- The advantage of the attack that takes rows of small loss for members, with auc and tpr_at_fpr as of threshold_attack. network: a cell
--- or a function that gives logits (n, classes). members, others: { inputs, labels }, or data sets of such batches.
---     > net = ms.nn.Dense(2, 3)
---     > x, y = ms.randn { 4, 2 }, ms.tensor { 0, 1, 2, 0 }
---     > ms.armour.privacy.evaluation.loss_attack(net, { x, y }, { x, y }).auc --> 0.5
function M.loss_attack(network, members, others)
  local where = "loss_attack"
  local model = armour.classifier(where, network)
  local rows = require "lunaria.armour.inference.rows"
  local function scores(data) return -model:losses(rows.labelled(where, data)) end
  return M.threshold_attack(scores(members), scores(others))
end

--- The logarithms of p / (1 - p), where p is the probability of the label: a tensor (n,). logits: (n, classes). labels: class numbers.
---     > ms.armour.privacy.evaluation.logit_confidence(ms.tensor { { 2.0, 0.5 } }, ms.tensor { 0 }):item() --> 1.5
function M.logit_confidence(logits, labels)
  local where = "logit_confidence"
  if not ms.is_tensor(logits) or logits.ndim ~= 2 or logits.shape[2] < 2 then
    fail(where, "logits must be a tensor (n, classes), got " .. describe(logits))
  end
  local hot = armour.one_hot(armour.labels(where, labels, logits.shape[1], logits.shape[2]), logits.shape[2], logits.dtype)
  -- The others' logits, without 1 - p, which rounds to 0 where the label is nearly sure.
  return ops.sum(ops.where(ops.greater(hot, 0), logits, 0.0), 1) - ops.logsumexp(ops.where(ops.greater(hot, 0), -math.huge, logits), 1)
end

--- The logarithm of the ratio of two normal densities at phi, a number or a tensor: above 0 where the row was rather a member (Carlini and
--- others 2022). mean_in, std_in: mean and standard deviation of what models with the row give; mean_out, std_out: of models without it.
---     > ("%.6f"):format(ms.armour.privacy.evaluation.lira_ratio(1.3, 2.0, 0.7, 0.4, 1.1)) --> 0.286696
function M.lira_ratio(phi, mean_in, std_in, mean_out, std_out)
  local where = "lira_ratio"
  for name, value in pairs { std_in = std_in, std_out = std_out } do
    if math.type(value) then check.number_positive(where, name, value) end
  end
  local near, far = (phi - mean_in) / std_in, (phi - mean_out) / std_out
  local ratio = std_out / std_in
  return 0.5 * (far * far - near * near) + (math.type(ratio) and math.log(ratio) or ops.log(ratio))
end

--- Trains shadow models for LiRA, each on a random half of the rows: confidences (models, n) and membership (models, n), booleans. Each
--- row is in half of the models. train: a function train(inputs, labels, i) that gives a network, a cell or a function to logits, trained
--- on these rows. data: { inputs, labels } or a data set of such batches. Options: models (16, an even number), seed (1).
---     > x, y = ms.randn { 6, 2 }, ms.tensor { 0, 1, 2, 0, 1, 2 }
---     > phi, member = ms.armour.privacy.evaluation.shadow_models(function() return ms.nn.Dense(2, 3) end, { x, y }, { models = 4 })
---     > phi.shape --> (4, 6)
function M.shadow_models(train, data, options)
  local where = "shadow_models"
  local o = arguments.options(where, options, { models = arguments.positive, seed = "number" }, "{ models = 16 }")
  if not arguments.is_callable(train) then fail(where, "train must be a function train(inputs, labels, i), got " .. describe(train)) end
  local models = o.models or 16
  if models % 2 == 1 or models < 4 then fail(where, ("models must be an even number of at least 4, got %d"):format(models)) end
  local x, y = require("lunaria.armour.inference.rows").labelled(where, data)
  local n, draws = x.shape[1], armour.generator(o.seed or 1, where)
  local confidences, membership = {}, {}
  local order
  for i = 1, models do
    -- Two models after one another are trained on the two halves of one random order.
    if i % 2 == 1 then order = draws:permutation(n) end
    local half = i % 2 == 1 and ms.slice(0, n // 2) or ms.slice(n // 2, n)
    local chosen = order[{ half }]
    local network = train(ops.gather(x, chosen, 0), ops.gather(y, chosen, 0), i)
    local logits = armour.classifier(where, network):logits(x)
    confidences[i] = M.logit_confidence(logits, y)
    membership[i] = ops.scatter(ms.zeros({ n }, ms.float32), 0, chosen, ms.ones({ chosen.size }, ms.float32))
  end
  return ops.stack(confidences, 0), ops.greater(ops.stack(membership, 0), 0.5)
end

local LiRA = class.define(nil, "LiRA", "confidences, membership, fixed_variance=false",
  [[The likelihood ratio attack with shadow models (Carlini and others 2022). confidences: a tensor (models, n), logit_confidence of n
rows by each shadow model. membership: a tensor (models, n) of booleans, whether the model was trained on the row. Every row must be in at
least two models and out of two; where no model was trained on any row the attack is the offline one, which only knows models without.
fixed_variance: one variance for all rows, better where there are few models.

  > phi = ms.tensor { { 2.0 }, { 3.0 }, { 0.0 }, { 1.0 } }
  > member = ms.tensor { { true }, { true }, { false }, { false } }
  > ms.armour.privacy.evaluation.LiRA(phi, member):score(ms.tensor { 2.5 }):item() > 0 --> true]])
M.LiRA = LiRA
LiRA._called = "attack"

-- Means and standard deviations (n,) over the models that a mask marks.
local function moments(values, mask, fixed)
  local count = ops.sum(mask, 0)
  local mean = ops.sum(values * mask, 0) / count
  local square = ops.sum(ops.square(values - mean) * mask, 0)
  if fixed then return mean, ops.full_like(mean, math.sqrt(ops.sum(square):item() / ops.sum(count - 1):item()) + 1e-12) end
  return mean, ops.sqrt(square / (count - 1)) + 1e-12
end

function LiRA:setup(a)
  local phi, mask = a.confidences, a.membership
  if not ms.is_tensor(phi) or phi.ndim ~= 2 or phi.shape[1] < 2 then
    fail("LiRA", "confidences must be a tensor (models, n) of at least two models, got " .. describe(phi))
  end
  if not ms.is_tensor(mask) or tostring(mask.shape) ~= tostring(phi.shape) then
    fail("LiRA", ("membership must be a tensor of shape %s, got %s"):format(tostring(phi.shape), describe(mask)))
  end
  phi, mask = phi:astype(f64), mask:astype(f64)
  local inside = ops.sum(mask, 0)
  self.is_online = ops.max(inside):item() > 0
  if ops.max(inside):item() > phi.shape[1] - 2 or self.is_online and ops.min(inside):item() < 2 then
    fail("LiRA", ("every row must be in at least two of the %d models and out of two; rows are in %d to %d"):format(phi.shape[1],
      ops.min(inside):item(), ops.max(inside):item()), "train more shadow models, each on half of the rows")
  end
  local fixed = check.boolean("LiRA", "fixed_variance", a.fixed_variance)
  self._mean_out, self._std_out = moments(phi, 1 - mask, fixed)
  if self.is_online then self._mean_in, self._std_in = moments(phi, mask, fixed) end
end

--- Scores (n,) of the rows for a model that is attacked: higher for members. confidences: its logit_confidence of the same rows, (n,).
---     > phi = ms.tensor { { 0.0 }, { 1.0 }, { 0.5 } }
---     > lira = ms.armour.privacy.evaluation.LiRA(phi, ms.zeros({ 3, 1 }, ms.bool_))
---     > lira:score(ms.tensor { 4.0 }):item() > 0.99 --> true
function LiRA:score(confidences)
  if not ms.is_tensor(confidences) or confidences.ndim ~= 1 or confidences.shape[1] ~= self._mean_out.shape[1] then
    fail("score", ("confidences must be a tensor (%d,), got %s"):format(self._mean_out.shape[1], describe(confidences)))
  end
  local phi = confidences:astype(f64)
  if self.is_online then return M.lira_ratio(phi, self._mean_in, self._std_in, self._mean_out, self._std_out) end
  -- How unlikely so high a confidence is for a model without the row.
  return ops.ndtr((phi - self._mean_out) / self._std_out)
end

return M
