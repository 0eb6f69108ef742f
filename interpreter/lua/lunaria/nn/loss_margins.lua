-- Losses of several labels, of margins between scores, and of counts.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local LossBase = require("lunaria.nn.loss").LossBase
local rounded_once = require("lunaria.nn.casts").rounded_once

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local classes = {}

local function define(name, signature, doc)
  local class = cells.layer(LossBase, name, signature, doc)
  classes[name] = class
  return class
end

local function reduction(name, a) return check.choice(name, "reduction", a.reduction, { "mean", "sum", "none" }) end

local function keep_weight(self, name, weight)
  if weight == nil then return end
  if not ms.is_tensor(weight) then fail(name, "weight must be a tensor, got " .. describe(weight)) end
  rawset(self, "weight", weight)
end

local MultiMargin = define("MultiMarginLoss", "p=1, margin=1.0, reduction=\"mean\", weight=nil",
  [[What the scores of other classes lack to stay below that of the label by the margin: cell(x, target, weight), with x of shape (N, C)
and integers target of shape (N).

p: the exponent, 1 or 2. weight: a tensor with the weight of each class; that of a call replaces the cell's.

  > ms.nn.MultiMarginLoss()(ms.tensor { { 0.5, 0.0 } }, ms.tensor { 0 }):item() --> 0.25]])
function MultiMargin:setup(a)
  self.p = check.integer("MultiMarginLoss", "p", a.p)
  if self.p ~= 1 and self.p ~= 2 then fail("MultiMarginLoss", ("p must be 1 or 2, got %d"):format(self.p)) end
  self.margin = check.number("MultiMarginLoss", "margin", a.margin)
  self.reduction = reduction("MultiMarginLoss", a)
  keep_weight(self, "MultiMarginLoss", a.weight)
end
function MultiMargin:construct(x, target, weight)
  return ops.multi_margin_loss(x, target, self.p, self.margin, weight or self.weight, self.reduction)
end

local MultilabelMargin = define("MultilabelMarginLoss", "reduction=\"mean\"",
  [[What the scores of unlisted classes lack to stay 1 below those of the listed ones: cell(x, target), both of shape (N, C) or (C); a row
of integers target lists classes up to the first -1.

  > ms.nn.MultilabelMarginLoss()(ms.tensor { { 0.5, 0.0 } }, ms.tensor { { 0, -1 } }):item() --> 0.25]])
function MultilabelMargin:setup(a) self.reduction = reduction("MultilabelMarginLoss", a) end
function MultilabelMargin:construct(x, target) return ops.multilabel_margin_loss(x, target, self.reduction) end

local SoftMargin = define("MultiLabelSoftMarginLoss", "weight=nil, reduction=\"mean\"",
  [[Binary cross-entropy of each class from logits, averaged over the classes: cell(x, target), both of shape (N, C), target 0 or 1.

weight: a tensor with the weight of each class.

  > ms.nn.MultiLabelSoftMarginLoss()(ms.zeros { 1, 2 }, ms.tensor { { 1.0, 0.0 } }):item() < 0.694 --> true]])
function SoftMargin:setup(a)
  self.reduction = reduction("MultiLabelSoftMarginLoss", a)
  keep_weight(self, "MultiLabelSoftMarginLoss", a.weight)
end
function SoftMargin:construct(x, target) return ops.multilabel_soft_margin_loss(x, target, self.weight, self.reduction) end

local Poisson = define("PoissonNLLLoss", "log_input=true, full=false, eps=1e-8, reduction=\"mean\"",
  [[Negative log-likelihood of counts under Poisson distributions: cell(input, target), of one shape.

log_input: input is the logarithm of the rate, else the rate itself, to which eps is added in its logarithm. full: whether Stirling's
approximation of log(target!) is added, where target is above 1.

  > ms.nn.PoissonNLLLoss()(ms.tensor { 0.0 }, ms.tensor { 3.0 }):item() --> 1.0]])
function Poisson:setup(a)
  local name = "PoissonNLLLoss"
  self.log_input, self.full = check.boolean(name, "log_input", a.log_input), check.boolean(name, "full", a.full)
  self.eps = check.number_positive(name, "eps", a.eps)
  self.reduction = reduction(name, a)
end
function Poisson:construct(input, target)
  local loss = self.log_input and ops.exp(input) - target * input or input - target * ops.log(input + self.eps)
  if self.full then
    -- 1 keeps the logarithm away from 0 where it is not looked at.
    local n = ops.maximum(target, 1.0)
    local stirling = n * ops.log(n) - n + 0.5 * ops.log(n * (2 * math.pi))
    loss = loss + ops.where(ops.greater(target, 1.0), stirling, ops.zeros_like(stirling))
  end
  return self:get_loss(loss)
end
Poisson.construct = rounded_once(Poisson.construct)

local Triplet = define("TripletMarginWithDistanceLoss", "distance_function=nil, swap=false, margin=1.0, reduction=\"mean\"",
  [[What the negative lacks to be farther from x than the positive by the margin: cell(x, positive, negative), of one shape.

distance_function: a function of two tensors that gives distances; by default the Euclidean one along the last axis. swap: the
distance between positive and negative counts where it is less than that between x and the negative.

  > far = function(a, b) return (a - b):abs():sum(-1) end
  > ms.nn.TripletMarginWithDistanceLoss(far)(ms.zeros { 1, 2 }, ms.ones { 1, 2 }, ms.zeros { 1, 2 }):item() --> 3.0]])
function Triplet:setup(a)
  local name = "TripletMarginWithDistanceLoss"
  if a.distance_function ~= nil and not arguments.is_callable(a.distance_function) then
    fail(name, "distance_function must be a function, got " .. describe(a.distance_function))
  end
  self.distance = a.distance_function
  self.swap, self.margin = check.boolean(name, "swap", a.swap), check.number(name, "margin", a.margin)
  self.reduction = reduction(name, a)
end
-- As PyTorch's pairwise distance: with a small number at each difference, so that there is a slope at 0.
local function euclidean(x, y) return ops.vector_norm(x - y + 1e-6, 2, -1) end
function Triplet:construct(x, positive, negative)
  local distance = self.distance or euclidean
  local near, far = distance(x, positive), distance(x, negative)
  if self.swap then far = ops.minimum(far, distance(positive, negative)) end
  return self:get_loss(ops.relu(near - far + self.margin))
end
Triplet.construct = rounded_once(Triplet.construct)

return classes
