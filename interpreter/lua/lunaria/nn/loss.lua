-- Losses as cells: loss(logits, labels).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell

local reductions = { "mean", "sum", "none" }
local classes = {}

local function reduction(name, a)
  return check.choice(name, "reduction", a.reduction, reductions)
end

local function optional_tensor(name, parameter, value)
  if value ~= nil and not ms.is_tensor(value) then
    fail(name, parameter .. " must be a tensor, got " .. describe(value))
  end
  return value
end

local LossBase = layer(Cell, "LossBase", "reduction=\"mean\"", [[What losses of your own can extend: get_loss(x) reduces as reduction says.
  > ms.nn.LossBase("sum"):get_loss(ms.ones { 3 }):item() --> 3.0]])
function LossBase:setup(a)
  self.reduction = reduction("LossBase", a)
end
--- The mean or the sum of x, or x as it is, as the loss's reduction says.
---     > ms.nn.LossBase("mean"):get_loss(ms.tensor { 1.0, 3.0 }):item() --> 2.0
function LossBase:get_loss(x)
  if self.reduction == "mean" then
    return ops.mean(x)
  elseif self.reduction == "sum" then
    return ops.sum(x)
  end
  return ops.identity(x)
end
classes.LossBase = LossBase

-- Losses of predictions and targets that have nothing but a reduction.
local function plain(name, f, default, doc)
  local class = layer(LossBase, name, ("reduction=%q"):format(default), doc)
  function class:setup(a)
    self.reduction = reduction(name, a)
  end
  function class:construct(logits, labels)
    return f(logits, labels, self.reduction)
  end
  classes[name] = class
end
plain("MSELoss", ops.mse_loss, "mean", [[Squared differences of predictions and targets, averaged by default.
  > ms.nn.MSELoss()(ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 4.0 }):item() --> 2.0]])
plain("L1Loss", ops.l1_loss, "mean", [[Absolute differences of predictions and targets, averaged by default.
  > ms.nn.L1Loss()(ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 4.0 }):item() --> 1.0]])
plain("MAELoss", ops.l1_loss, "mean", [[Absolute differences of predictions and targets, averaged by default.
  > ms.nn.MAELoss()(ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 4.0 }):item() --> 1.0]])
plain("SoftMarginLoss", ops.soft_margin_loss, "mean", [[Logistic loss of scores and targets that are 1 or -1.
  > ms.nn.SoftMarginLoss()(ms.tensor { 100.0 }, ms.tensor { 1.0 }):item() --> 3.783505853677e-44]])

local CrossEntropyLoss = layer(LossBase, "CrossEntropyLoss", "weight=nil, ignore_index=-100, reduction=\"mean\", label_smoothing=0.0",
  [[Cross-entropy of logits (classes on axis 1) and class labels, or probabilities of the same shape.
  > ms.nn.CrossEntropyLoss()(ms.tensor { { 100.0, 0.0 } }, ms.tensor { 1 }):item() --> 100.0]])
function CrossEntropyLoss:setup(a)
  self.weight = optional_tensor("CrossEntropyLoss", "weight", a.weight)
  self.ignore_index = check.integer("CrossEntropyLoss", "ignore_index", a.ignore_index)
  self.reduction = reduction("CrossEntropyLoss", a)
  self.label_smoothing = check.probability("CrossEntropyLoss", "label_smoothing", a.label_smoothing)
end
function CrossEntropyLoss:construct(logits, labels)
  return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)
end
classes.CrossEntropyLoss = CrossEntropyLoss

local NLLLoss = layer(LossBase, "NLLLoss", "weight=nil, ignore_index=-100, reduction=\"mean\"",
  [[Negative log-likelihood of class labels given log-probabilities (classes on axis 1).
  > ms.nn.NLLLoss()(ms.tensor { { -1.0, -2.0 } }, ms.tensor { 1 }):item() --> 2.0]])
function NLLLoss:setup(a)
  self.weight = optional_tensor("NLLLoss", "weight", a.weight)
  self.ignore_index = check.integer("NLLLoss", "ignore_index", a.ignore_index)
  self.reduction = reduction("NLLLoss", a)
end
function NLLLoss:construct(logits, labels)
  return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)
end
classes.NLLLoss = NLLLoss

local SmoothL1Loss = layer(LossBase, "SmoothL1Loss", "beta=1.0, reduction=\"none\"",
  [[Half the squared difference, divided by beta, below beta, and the absolute difference less beta / 2 above.
  > ms.nn.SmoothL1Loss(1.0, "mean")(ms.tensor { 1.0 }, ms.tensor { 4.0 }):item() --> 2.5]])
function SmoothL1Loss:setup(a)
  self.beta = check.number_not_negative("SmoothL1Loss", "beta", a.beta)
  self.reduction = reduction("SmoothL1Loss", a)
end
function SmoothL1Loss:construct(logits, labels)
  return ops.smooth_l1_loss(logits, labels, self.beta, self.reduction)
end
classes.SmoothL1Loss = SmoothL1Loss

local HuberLoss = layer(LossBase, "HuberLoss", "reduction=\"mean\", delta=1.0",
  [[Half the squared difference up to delta, and delta times the absolute difference less delta / 2 beyond.
  > ms.nn.HuberLoss()(ms.tensor { 1.0 }, ms.tensor { 4.0 }):item() --> 2.5]])
function HuberLoss:setup(a)
  self.reduction = reduction("HuberLoss", a)
  self.delta = check.number("HuberLoss", "delta", a.delta)
end
function HuberLoss:construct(logits, labels)
  return ops.huber_loss(logits, labels, self.reduction, self.delta)
end
classes.HuberLoss = HuberLoss

local BCELoss = layer(LossBase, "BCELoss", "weight=nil, reduction=\"mean\"", [[Cross-entropy of probabilities in [0, 1] and targets.
  > ms.nn.BCELoss()(ms.tensor { 1.0 }, ms.tensor { 1.0 }):item() --> 0.0]])
function BCELoss:setup(a)
  self.weight = optional_tensor("BCELoss", "weight", a.weight)
  self.reduction = reduction("BCELoss", a)
end
function BCELoss:construct(logits, labels)
  return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)
end
classes.BCELoss = BCELoss

local BCEWithLogitsLoss = layer(LossBase, "BCEWithLogitsLoss", "reduction=\"mean\", weight=nil, pos_weight=nil",
  [[Cross-entropy of the sigmoid of logits and targets, without overflow; pos_weight weighs the positive targets.
  > ms.nn.BCEWithLogitsLoss()(ms.tensor { -100.0 }, ms.tensor { 1.0 }):item() --> 100.0]])
function BCEWithLogitsLoss:setup(a)
  self.reduction = reduction("BCEWithLogitsLoss", a)
  self.weight = optional_tensor("BCEWithLogitsLoss", "weight", a.weight)
  self.pos_weight = optional_tensor("BCEWithLogitsLoss", "pos_weight", a.pos_weight)
end
function BCEWithLogitsLoss:construct(logits, labels)
  return ops.binary_cross_entropy_with_logits(logits, labels, self.weight, self.pos_weight, self.reduction)
end
classes.BCEWithLogitsLoss = BCEWithLogitsLoss

local KLDivLoss = layer(LossBase, "KLDivLoss", "reduction=\"mean\"",
  [[Kullback-Leibler divergence of log-probabilities from target probabilities; reduction may also be "batchmean".
  > ms.nn.KLDivLoss("sum")(ms.tensor { 0.0 }, ms.tensor { 1.0 }):item() --> 0.0]])
function KLDivLoss:setup(a)
  self.reduction = check.choice("KLDivLoss", "reduction", a.reduction, { "mean", "sum", "none", "batchmean" })
end
function KLDivLoss:construct(logits, labels)
  return ops.kl_div(logits, labels, self.reduction)
end
classes.KLDivLoss = KLDivLoss

local SoftmaxCrossEntropyWithLogits = layer(LossBase, "SoftmaxCrossEntropyWithLogits", "sparse=false, reduction=\"none\"",
  [[Cross-entropy of logits of shape (N, C) and class labels (sparse = true) or probabilities of each class.
  > ms.nn.SoftmaxCrossEntropyWithLogits({ sparse = true, reduction = "mean" })(ms.tensor { { 100.0, 0.0 } }, ms.tensor { 1 }):item()
  100.0]])
function SoftmaxCrossEntropyWithLogits:setup(a)
  self.sparse = check.boolean("SoftmaxCrossEntropyWithLogits", "sparse", a.sparse)
  self.reduction = reduction("SoftmaxCrossEntropyWithLogits", a)
end
function SoftmaxCrossEntropyWithLogits:construct(logits, labels)
  return ops.cross_entropy(logits, labels, nil, -100, self.reduction)
end
classes.SoftmaxCrossEntropyWithLogits = SoftmaxCrossEntropyWithLogits

local CosineEmbeddingLoss = layer(LossBase, "CosineEmbeddingLoss", "margin=0.0, reduction=\"mean\"",
  [[One less the cosine of two vectors where the target is 1, what the cosine exceeds the margin by where it is -1.
  > ms.nn.CosineEmbeddingLoss()(ms.ones { 1, 2 }, ms.ones { 1, 2 }, ms.tensor { -1 }).shape --> ()]])
function CosineEmbeddingLoss:setup(a)
  self.margin = check.number("CosineEmbeddingLoss", "margin", a.margin)
  self.reduction = reduction("CosineEmbeddingLoss", a)
end
function CosineEmbeddingLoss:construct(x1, x2, labels)
  return ops.cosine_embedding_loss(x1, x2, labels, self.margin, self.reduction)
end
classes.CosineEmbeddingLoss = CosineEmbeddingLoss

return classes
