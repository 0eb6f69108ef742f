-- Losses as cells: loss(logits, labels).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local settings, layer, Cell = arguments.settings, cells.layer, cells.Cell

local classes = {}

local LossBase = layer(Cell, "LossBase", "reduction=\"mean\"", [[What losses of your own can extend: get_loss(x) reduces as reduction says.
  > ms.nn.LossBase("sum"):get_loss(ms.ones { 3 }):item() --> 3.0]])
function LossBase:setup(a) self.reduction = arguments.check.reduction("LossBase", "reduction", a.reduction) end
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

-- A loss that is an operator of its inputs and of its settings.
local function define(name, signature, doc, checks, construct)
  classes[name] = layer(LossBase, name, signature, doc)
  classes[name].setup, classes[name].construct = settings(name, checks), construct
end

local function plain(name, f, default, doc)
  define(name, ("reduction=%q"):format(default), doc, "reduction:reduction", function(self, logits, labels)
    return f(logits, labels, self.reduction)
  end)
end
plain("MSELoss", ops.mse_loss, "mean", [[Squared differences of predictions and targets, averaged by default.
  > ms.nn.MSELoss()(ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 4.0 }):item() --> 2.0]])
plain("L1Loss", ops.l1_loss, "mean", [[Absolute differences of predictions and targets, averaged by default.
  > ms.nn.L1Loss()(ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 4.0 }):item() --> 1.0]])
plain("MAELoss", ops.l1_loss, "mean", [[Absolute differences of predictions and targets, averaged by default.
  > ms.nn.MAELoss()(ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0, 4.0 }):item() --> 1.0]])
plain("SoftMarginLoss", ops.soft_margin_loss, "mean", [[Logistic loss of scores and targets that are 1 or -1.
  > ms.nn.SoftMarginLoss()(ms.tensor { 100.0 }, ms.tensor { 1.0 }):item() --> 3.783505853677e-44]])

define("CrossEntropyLoss", "weight=nil, ignore_index=-100, reduction=\"mean\", label_smoothing=0.0",
  [[Cross-entropy of logits (classes on axis 1) and class labels, or probabilities of the same shape.
  > ms.nn.CrossEntropyLoss()(ms.tensor { { 100.0, 0.0 } }, ms.tensor { 1 }):item() --> 100.0]],
  "weight:optional_tensor, ignore_index:integer, reduction:reduction, label_smoothing:probability", function(self, logits, labels)
  return ops.cross_entropy(logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing)
end)

define("NLLLoss", "weight=nil, ignore_index=-100, reduction=\"mean\"",
  [[Negative log-likelihood of class labels given log-probabilities (classes on axis 1).
  > ms.nn.NLLLoss()(ms.tensor { { -1.0, -2.0 } }, ms.tensor { 1 }):item() --> 2.0]],
  "weight:optional_tensor, ignore_index:integer, reduction:reduction", function(self, logits, labels)
  return ops.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)
end)

define("SmoothL1Loss", "beta=1.0, reduction=\"none\"",
  [[Half the squared difference, divided by beta, below beta, and the absolute difference less beta / 2 above.
  > ms.nn.SmoothL1Loss(1.0, "mean")(ms.tensor { 1.0 }, ms.tensor { 4.0 }):item() --> 2.5]],
  "beta:number_not_negative, reduction:reduction", function(self, logits, labels)
  return ops.smooth_l1_loss(logits, labels, self.beta, self.reduction)
end)

define("HuberLoss", "reduction=\"mean\", delta=1.0",
  [[Half the squared difference up to delta, and delta times the absolute difference less delta / 2 beyond.
  > ms.nn.HuberLoss()(ms.tensor { 1.0 }, ms.tensor { 4.0 }):item() --> 2.5]],
  "reduction:reduction, delta:number", function(self, logits, labels)
  return ops.huber_loss(logits, labels, self.reduction, self.delta)
end)

define("BCELoss", "weight=nil, reduction=\"mean\"", [[Cross-entropy of probabilities in [0, 1] and targets.
  > ms.nn.BCELoss()(ms.tensor { 1.0 }, ms.tensor { 1.0 }):item() --> 0.0]],
  "weight:optional_tensor, reduction:reduction", function(self, logits, labels)
  return ops.binary_cross_entropy(logits, labels, self.weight, self.reduction)
end)

define("BCEWithLogitsLoss", "reduction=\"mean\", weight=nil, pos_weight=nil",
  [[Cross-entropy of the sigmoid of logits and targets, without overflow; pos_weight weighs the positive targets.
  > ms.nn.BCEWithLogitsLoss()(ms.tensor { -100.0 }, ms.tensor { 1.0 }):item() --> 100.0]],
  "reduction:reduction, weight:optional_tensor, pos_weight:optional_tensor", function(self, logits, labels)
  return ops.binary_cross_entropy_with_logits(logits, labels, self.weight, self.pos_weight, self.reduction)
end)

local KLDivLoss = layer(LossBase, "KLDivLoss", "reduction=\"mean\"",
  [[Kullback-Leibler divergence of log-probabilities from target probabilities; reduction may also be "batchmean".
  > ms.nn.KLDivLoss("sum")(ms.tensor { 0.0 }, ms.tensor { 1.0 }):item() --> 0.0]])
function KLDivLoss:setup(a)
  self.reduction = arguments.check.choice("KLDivLoss", "reduction", a.reduction, { "mean", "sum", "none", "batchmean" })
end
function KLDivLoss:construct(logits, labels)
  return ops.kl_div(logits, labels, self.reduction)
end
classes.KLDivLoss = KLDivLoss

define("SoftmaxCrossEntropyWithLogits", "sparse=false, reduction=\"none\"",
  [[Cross-entropy of logits of shape (N, C) and class labels (sparse = true) or probabilities of each class.
  > ms.nn.SoftmaxCrossEntropyWithLogits({ sparse = true, reduction = "mean" })(ms.tensor { { 100.0, 0.0 } }, ms.tensor { 1 }):item()
  100.0]],
  "sparse:boolean, reduction:reduction", function(self, logits, labels)
  return ops.cross_entropy(logits, labels, nil, -100, self.reduction)
end)

define("CosineEmbeddingLoss", "margin=0.0, reduction=\"mean\"",
  [[One less the cosine of two vectors where the target is 1, what the cosine exceeds the margin by where it is -1.
  > ms.nn.CosineEmbeddingLoss()(ms.ones { 1, 2 }, ms.ones { 1, 2 }, ms.tensor { -1 }).shape --> ()]],
  "margin:number, reduction:reduction", function(self, x1, x2, labels)
  return ops.cosine_embedding_loss(x1, x2, labels, self.margin, self.reduction)
end)

return classes
