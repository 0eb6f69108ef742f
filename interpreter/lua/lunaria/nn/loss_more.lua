-- Losses beyond regression and classification: of sequences, of distances, of overlaps.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local activation = require "lunaria.nn.activation"
local LossBase = require("lunaria.nn.loss").LossBase
local rounded_once = require("lunaria.nn.casts").rounded_once

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, is_cell = cells.layer, cells.is_cell

local classes = {}

local function same_shape(name, x, what, y, other)
  if not ms.is_tensor(x) then fail(name, what .. " must be a tensor, got " .. describe(x)) end
  if not ms.is_tensor(y) then fail(name, other .. " must be a tensor, got " .. describe(y)) end
  if tostring(x.shape) ~= tostring(y.shape) then
    fail(name, ("%s has shape %s and %s %s: they must be the same"):format(what, tostring(x.shape), other, tostring(y.shape)))
  end
end

local function define(name, signature, doc, setup, construct)
  local class = layer(LossBase, name, signature, doc)
  local take = type(setup) == "string" and arguments.settings(name, setup) or setup
  function class:setup(a) take(self, a) end
  class.construct = rounded_once(construct)
  classes[name] = class
  return class
end

define("CTCLoss", "blank=0, reduction=\"mean\", zero_infinity=false",
  [[Connectionist temporal classification (Graves and others 2006): cell(log_probs, targets, input_lengths, target_lengths).

The negative logarithm of the probability that log_probs (time, batch, classes), such as log_softmax gives them, spell the
labels of targets (batch, longest) with blanks between them. reduction "mean" divides the loss of each sequence by its number
of labels first.

  > log_probs = ms.tensor { { { -0.5, -1.0 } } }
  > ms.nn.CTCLoss()(log_probs, ms.tensor { { 1 } }, ms.tensor { 1 }, ms.tensor { 1 }):item()
  1.0]],
  "blank:not_negative, reduction:reduction, zero_infinity:boolean",
  function(self, log_probs, targets, input_lengths, target_lengths)
    return ops.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)
  end)

define("GaussianNLLLoss", "full=false, eps=1e-6, reduction=\"mean\"",
  [[Negative log-likelihood of labels under a normal distribution: cell(logits, labels, var), with means logits and variances var.

full: whether the constant log(2 pi) / 2 is added. eps: the least variance.

  > ms.nn.GaussianNLLLoss()(ms.tensor { 1.0 }, ms.tensor { 3.0 }, ms.tensor { 1.0 }):item()
  2.0]],
  "full:boolean, eps:number_positive, reduction:reduction",
  function(self, logits, labels, var)
    return ops.gaussian_nll_loss(logits, labels, var, self.full, self.eps, self.reduction)
  end)

define("HingeEmbeddingLoss", "margin=1.0, reduction=\"mean\"",
  [[Of distances: the distance itself where the label is 1, what it lacks to the margin where the label is -1.

  > ms.nn.HingeEmbeddingLoss()(ms.tensor { 0.5, 0.25 }, ms.tensor { 1.0, -1.0 }):item()
  0.625]],
  "margin:number, reduction:reduction",
  function(self, logits, labels)
    return ops.hinge_embedding_loss(logits, labels, self.margin, self.reduction)
  end)

define("MarginRankingLoss", "margin=0.0, reduction=\"mean\"",
  [[Of two scores: cell(input1, input2, target) gives what the first one lacks to exceed the second by the margin where the target
is 1, and the other way round where it is -1.

  > ms.nn.MarginRankingLoss()(ms.tensor { 1.0 }, ms.tensor { 3.0 }, ms.tensor { 1.0 }):item()
  2.0]],
  "margin:number, reduction:reduction",
  function(self, input1, input2, target)
    return ops.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)
  end)

define("TripletMarginLoss", "p=2, swap=false, eps=1e-6, reduction=\"mean\", margin=1.0",
  [[What the negative lacks to be farther from x than the positive by the margin: cell(x, positive, negative, margin).

The margin of a call replaces the cell's. Distances are p-norms of the differences along the last axis.

  > ms.nn.TripletMarginLoss()(ms.zeros { 1, 2 }, ms.tensor { { 3.0, 4.0 } }, ms.tensor { { 0.0, 2.0 } }):item() < 4.1
  true]],
  "p:number_positive, swap:boolean, eps:number_not_negative, margin:number, reduction:reduction",
  function(self, x, positive, negative, margin)
    return ops.triplet_margin_loss(x, positive, negative, margin or self.margin, self.p, self.eps, self.swap, self.reduction)
  end)

local RMSELoss = layer(LossBase, "RMSELoss", "", [[The root of the mean of squared differences of predictions and targets.

  > ms.nn.RMSELoss()(ms.tensor { 1.0, 2.0 }, ms.tensor { 3.0, 4.0 }):item() --> 2.0]])
function RMSELoss:setup()
  self.reduction = "mean"
end
function RMSELoss:construct(logits, labels)
  return ops.sqrt(ops.mse_loss(logits, labels, "mean"))
end
RMSELoss.construct = rounded_once(RMSELoss.construct)
classes.RMSELoss = RMSELoss

local function dice(x, y, smooth)
  return 1 - 2 * ops.sum(x * y) / (ops.sum(x * x) + ops.sum(y * y) + smooth)
end

define("DiceLoss", "smooth=1e-5",
  [[One less the overlap of predictions and labels (Milletari and others 2016): 1 - 2 sum(x y) / (sum(x x) + sum(y y) + smooth).

Both have the same shape, values in [0, 1]. smooth: a small number that keeps the divisor away from 0.

  > ms.nn.DiceLoss()(ms.ones { 2, 2 }, ms.zeros { 2, 2 }):item()
  1.0]],
  function(self, a)
    self.reduction = "mean"
    self.smooth = check.number_positive("DiceLoss", "smooth", a.smooth)
  end,
  function(self, logits, label)
    same_shape("DiceLoss", logits, "logits", label, "label")
    return dice(logits, label, self.smooth)
  end)

define("MultiClassDiceLoss", "weights=nil, ignore_indiex=nil, activation=\"softmax\"",
  [[The mean of nn.DiceLoss over the classes (axis 1): cell(logits, label), both of shape (N, C, ...).

weights: a tensor with the weight of each class. ignore_indiex: the class that does not count, whose share of the mean is 0; the name is
MindSpore's. activation: what is applied to the logits first, a name, a cell or a function; false: nothing, they are probabilities already.

  > ms.nn.MultiClassDiceLoss()(ms.zeros { 2, 2 }, ms.ones { 2, 2 }):item() < 0.21
  true]],
  function(self, a)
    local name = "MultiClassDiceLoss"
    self.reduction = "mean"
    if a.weights ~= nil then
      if not ms.is_tensor(a.weights) or a.weights.ndim < 1 then
        fail(name, "weights must be a tensor with one weight for each class, got " .. describe(a.weights))
      end
      rawset(self, "weights", a.weights)
    end
    if a.ignore_indiex ~= nil then self.ignored = check.not_negative(name, "ignore_indiex", a.ignore_indiex) end
    if type(a.activation) == "string" then
      -- Classes lie along axis 1, wherever the last axis is.
      self.activation = a.activation:lower() == "softmax" and activation.classes.Softmax(1)
        or activation.activation_of(a.activation, name)
    elseif is_cell(a.activation) or type(a.activation) == "function" then
      self.activation = a.activation
    elseif a.activation then
      fail(name, "activation must be a name, a cell, a function or false, got " .. describe(a.activation))
    end
  end,
  function(self, logits, label)
    same_shape("MultiClassDiceLoss", logits, "logits", label, "label")
    if logits.ndim < 2 then
      fail("MultiClassDiceLoss", "logits must have two axes or more, got shape " .. tostring(logits.shape))
    end
    local count = logits.shape[2]
    local weights = self.weights
    if weights and weights.shape[1] ~= count then
      fail("MultiClassDiceLoss", ("weights has shape %s, and there are %d classes"):format(tostring(weights.shape), count))
    end
    local x = self.activation and self.activation(logits) or logits
    local total = 0.0
    for i = 0, count - 1 do
      if i ~= self.ignored then
        local one = dice(ops.narrow(x, 1, i, 1), ops.narrow(label, 1, i, 1), 1e-5)
        total = total + (weights and ops.mean(weights[i]) * one or one)
      end
    end
    return total / count
  end)

define("FocalLoss", "weight=nil, gamma=2.0, reduction=\"mean\"",
  [[Cross-entropy that counts hard examples more (Lin and others 2017): -(1 - p)^gamma log p, with p the probability of the label.

logits are (N, C), (N, C, L) or (N, C, H, W); labels have the same shape with C (probabilities) or 1 (classes) on axis 1. weight: a
tensor with the weight of each class. gamma: how much less certain examples count. "none" gives the mean over the places of each
sample, and of each class where labels are probabilities.

  > ms.nn.FocalLoss()(ms.zeros { 1, 2 }, ms.tensor { { 1 } }):item() < 0.174
  true]],
  function(self, a)
    if a.weight ~= nil then
      if not ms.is_tensor(a.weight) or a.weight.ndim ~= 1 then
        fail("FocalLoss", "weight must be a tensor of one axis, got " .. describe(a.weight))
      end
      rawset(self, "weight", a.weight)
    end
    self.gamma = check.number_not_negative("FocalLoss", "gamma", a.gamma)
    self.reduction = check.reduction("FocalLoss", "reduction", a.reduction)
  end,
  function(self, logits, labels)
    local fits = ms.is_tensor(logits) and ms.is_tensor(labels) and logits.ndim == labels.ndim and logits.ndim >= 2 and logits.ndim <= 4
    for i = 1, fits and logits.ndim or 0 do
      fits = fits and (labels.shape[i] == logits.shape[i] or i == 2 and labels.shape[i] == 1)
    end
    if not fits then
      fail("FocalLoss", ("logits must be (N, C), (N, C, L) or (N, C, H, W) and labels the same, or with one channel, got %s and %s"):format(
        describe(logits), describe(labels)))
    end
    local shape = logits.shape
    local batch, count = shape[1], shape[2]
    if self.weight and self.weight.shape[1] ~= count then
      fail("FocalLoss", ("weight has shape %s, and there are %d classes"):format(tostring(self.weight.shape), count))
    end
    local places = logits.size // (batch * count)
    local log_p = ops.log_softmax(ops.reshape(logits, { batch, count, places }), 1)
    local weight = self.weight and ops.reshape(self.weight, { 1, count, 1 })
    local sparse = labels.shape[2] == 1 and count > 1
    labels = ops.reshape(labels, { batch, sparse and 1 or count, places })
    if sparse then
      labels = ops.cast(labels, ms.int64)
      log_p = ops.gather_elements(log_p, 1, labels)
      if weight then weight = ops.gather_elements(ops.broadcast_to(weight, { batch, count, places }), 1, labels) end
    end
    local loss = -((1 - ops.exp(log_p)) ^ self.gamma) * log_p
    if weight then loss = loss * weight end
    if sparse then return self:get_loss(ops.mean(ops.squeeze(loss, 1), 1)) end
    return self:get_loss(ops.mean(loss * labels, -1))
  end)

return classes
