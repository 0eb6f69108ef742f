-- Adversarial training whose loss sees a sample and its adversarial neighbour at once (TRADES, MART), and two that are as cheap as plain
-- training (fast and free).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local adversarial = require "lunaria.armour.defenses.adversarial"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check
local Defense = adversarial.Defense

local M = {}

-- The divergence of Kullback and Leibler of the clean logits' distribution from that of the adversarial logits, for each row.
local function divergence(clean, adv)
  local log_p = ops.log_softmax(clean, 1)
  return ops.sum(ops.exp(log_p) * (log_p - ops.log_softmax(adv, 1)), 1)
end

local PairLoss = cells.layer(cells.Cell, "PairLoss", "network, loss")
PairLoss.auto_prefix = false
function PairLoss:setup(a)
  self.network, self.loss = a.network, a.loss
end
function PairLoss:construct(inputs, labels, adv)
  return self.loss(self.network(inputs), labels, self.network(adv))
end

-- What is common to the settings of the ball around a sample.
local function keep_ball(self, name, a)
  local lo, hi = common.bounds(name, a.bounds, { 0.0, 1.0 })
  local ball = { lo = lo, hi = hi, range = lo ~= nil and hi - lo or 1.0, draws = common.generator(a.seed, name),
    eps = check.number_positive(name, "eps", a.eps) }
  for _, side in ipairs { "eps_iter", "nb_iter", "norm_level", "replays", "alpha" } do
    if a[side] ~= nil then
      local is_count = side == "nb_iter" or side == "replays"
      ball[side] = side == "norm_level" and common.norm_kind(name, a[side])
        or check[is_count and "positive" or "number_positive"](name, side, a[side])
    end
  end
  rawset(self, "_ball", ball)
  return ball
end

-- Samples as far up the classifier's losses as steps in the ball lead, from a start; y: what the losses take.
local function ascend(ball, model, x, start, y)
  local adv = start
  for _ = 1, ball.nb_iter do
    local moved = adv + ball.eps_iter * common.direction(model:input_gradient(adv, y), ball.norm_level, ball.range)
    adv = common.clip(x + common.in_ball(moved - x, ball.norm_level, ball.eps, ball.range), ball.lo, ball.hi)
  end
  return ops.stop_gradient(adv)
end

local ball_text = "eps=8/255, eps_iter=2/255, nb_iter=10"

local Trades = class.define(Defense, "TradesDefense",
  "network, optimizer=nil, " .. ball_text .. ", beta=6.0, norm_level=\"inf\", bounds=nil, seed=nil",
  [[TRADES (Zhang et al., 2019): the loss is the cross-entropy of the clean samples plus beta times the divergence of Kullback and Leibler
of their answers from those of the samples in the ball for which it is largest.

network, optimizer: as for AdversarialDefense. eps, eps_iter, nb_iter, norm_level (1, 2 or "inf"): the ball and the steps in it, shares of
the range of the bounds; the defaults are 8/255 and 2/255. beta: how much robustness counts, above 0. bounds: { lo, hi } of the inputs
(nil: { 0, 1 }; false: none). seed: of the random starts. Labels are class numbers or one-hot rows.

  > defense = ms.armour.defenses.TradesDefense(ms.nn.Dense(4, 3), { beta = 1.0 })
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
M.TradesDefense = Trades

function Trades:setup(a)
  local name = "TradesDefense"
  local beta = check.number_positive(name, "beta", a.beta)
  local function loss(clean, labels, adv)
    return ops.cross_entropy(clean, labels) + beta * ops.mean(divergence(clean, adv))
  end
  self:keep(a, PairLoss(a.network, loss))
  keep_ball(self, name, a)
  rawset(self, "_model", common.classifier(name, a.network, function(logits, p)
    return ops.sum(ops.xlogy(p, p) - p * ops.log_softmax(logits, 1), 1)
  end))
end

-- The standard deviation of the start: at the sample itself the divergence has no slope.
local start_deviation = 0.001

--- The samples, the labels and the samples in the ball whose answers are farthest off.
---     > defense = ms.armour.defenses.TradesDefense(ms.nn.Dense(4, 3), { eps = 0.1 })
---     > x, y, adv = defense:adversarial(ms.rand { 2, 4 }, ms.tensor({ 0, 2 }, ms.int32))
---     > ms.ops.max(ms.ops.abs(adv - x)):item() <= 0.10001 --> true
function Trades:adversarial(inputs, labels)
  local ball = self._ball
  local p = ops.softmax(self._model:logits(inputs), 1)
  local start = inputs + ball.draws:normal({ table.unpack(inputs.shape) }, inputs.dtype) * (start_deviation * ball.range)
  return inputs, labels, ascend(ball, self._model, inputs, common.clip(start, ball.lo, ball.hi), p)
end

local Mart = class.define(Defense, "MartDefense",
  "network, optimizer=nil, " .. ball_text .. ", beta=5.0, norm_level=\"inf\", bounds=nil, seed=nil",
  [[MART (Wang et al., 2020): the loss is the boosted cross-entropy of adversarial samples plus beta times their divergence from the clean
answers, which counts the more the less sure the clean answer is of the label.

network, optimizer: as for AdversarialDefense. eps, eps_iter, nb_iter, norm_level (1, 2 or "inf"): the ball and the steps in it, shares of
the range of the bounds. beta: how much the divergence counts, above 0. bounds: { lo, hi } of the inputs (nil: { 0, 1 }; false: none). seed:
of the random starts. Labels are class numbers or one-hot rows.

  > defense = ms.armour.defenses.MartDefense(ms.nn.Dense(4, 3))
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
M.MartDefense = Mart

function Mart:setup(a)
  local name = "MartDefense"
  local beta = check.number_positive(name, "beta", a.beta)
  local function loss(clean, labels, adv)
    local index = labels:astype(ms.int64):reshape { -1, 1 }
    local is_label = ops.equal(ops.arange(adv.shape[2]):astype(ms.int64):reshape { 1, -1 }, index)
    local log_q = ops.log_softmax(adv, 1)
    local others = ops.where(is_label, ops.full_like(adv, -1e30), adv)
    local rival = ops.equal(others, ops.amax(others, 1, true))
    -- log(1 - q) of the likeliest other class is taken as the logarithm of the sum of all but it, which does not cancel where q is close
    -- to 1.
    local rest = ops.logsumexp(ops.where(rival, ops.full_like(adv, -1e30), adv), 1) - ops.logsumexp(adv, 1)
    local boosted = -ops.gather_elements(log_q, 1, index):reshape { -1 } - rest
    local unsure = 1 - ops.gather_elements(ops.softmax(clean, 1), 1, index):reshape { -1 }
    return ops.mean(boosted) + beta * ops.mean(divergence(clean, adv) * unsure)
  end
  self:keep(a, PairLoss(a.network, loss))
  keep_ball(self, name, a)
  rawset(self, "_model", common.classifier(name, a.network))
end

--- The samples, the labels and the samples in the ball with the largest cross-entropy that was found.
---     > defense = ms.armour.defenses.MartDefense(ms.nn.Dense(4, 3), { eps = 0.1 })
---     > x, y, adv = defense:adversarial(ms.rand { 2, 4 }, ms.tensor({ 0, 2 }, ms.int32))
---     > ms.ops.max(ms.ops.abs(adv - x)):item() <= 0.10001 --> true
function Mart:adversarial(inputs, labels)
  local ball = self._ball
  local start = inputs + ball.draws:normal({ table.unpack(inputs.shape) }, inputs.dtype) * (start_deviation * ball.range)
  return inputs, labels, ascend(ball, self._model, inputs, common.clip(start, ball.lo, ball.hi), labels)
end

local Fast = class.define(Defense, "FastAdversarialDefense",
  "network, loss_fn=nil, optimizer=nil, eps=8/255, alpha=10/255, bounds=nil, seed=nil",
  [[Fast adversarial training (Wong et al., 2020): one step of signs of length alpha from a random point of the ball, brought back into it.

network, loss_fn, optimizer: as for AdversarialDefense. eps: the radius for the norm of infinity, alpha: the step, shares of the range of
the bounds; the defaults are 8/255 and 1.25 times that. bounds: { lo, hi } of the inputs (nil: { 0, 1 }; false: none). seed: of the random
starts.

  > defense = ms.armour.defenses.FastAdversarialDefense(ms.nn.Dense(4, 3), { eps = 0.1, alpha = 0.125 })
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
M.FastAdversarialDefense = Fast

function Fast:setup(a)
  self:keep(a)
  keep_ball(self, "FastAdversarialDefense", a)
  rawset(self, "_model", common.classifier("FastAdversarialDefense", a.network, a.loss_fn))
end

--- The samples after the step, and the labels.
---     > defense = ms.armour.defenses.FastAdversarialDefense(ms.nn.Dense(4, 3), { eps = 0.1 })
---     > x = ms.rand { 2, 4 }
---     > adv = defense:adversarial(x, ms.tensor({ 0, 2 }, ms.int32))
---     > ms.ops.max(ms.ops.abs(adv - x)):item() <= 0.10001 --> true
function Fast:adversarial(inputs, labels)
  local ball = self._ball
  local eps = ball.eps * ball.range
  local start = (ball.draws:uniform({ table.unpack(inputs.shape) }, -1.0, 1.0, inputs.dtype)) * eps
  local at = common.clip(inputs + start, ball.lo, ball.hi)
  local moved = at - inputs + ball.alpha * ball.range * ops.sign(self._model:input_gradient(at, labels))
  local delta = ms.is_tensor(eps) and ops.minimum(ops.maximum(moved, -eps), eps) or ops.clamp(moved, -eps, eps)
  return ops.stop_gradient(common.clip(inputs + delta, ball.lo, ball.hi)), labels
end

local Free = class.define(Defense, "FreeAdversarialDefense",
  "network, loss_fn=nil, optimizer=nil, eps=8/255, replays=4, bounds=nil",
  [[Free adversarial training (Shafahi et al., 2019): each batch is trained with replays times, and each gradient moves both the weights
and the perturbation, which the next batch of the same shape begins with.

network, loss_fn, optimizer: as for AdversarialDefense. eps: the radius for the norm of infinity and the step, a share of the range of the
bounds (8/255). replays: steps for each batch. bounds: { lo, hi } of the inputs (nil: { 0, 1 }; false: none). A call gives the loss of the
last replay.

  > defense = ms.armour.defenses.FreeAdversarialDefense(ms.nn.Dense(4, 3), { replays = 3 })
  > defense:defense(ms.rand { 2, 4 }, ms.tensor { 0, 2 }) > 0 --> true]])
M.FreeAdversarialDefense = Free

function Free:setup(a)
  self:keep(a)
  keep_ball(self, "FreeAdversarialDefense", a)
  local loss_net = self.loss_net
  rawset(self, "_both", ms.value_and_grad(function(x, y) return loss_net(x, y) end, 0, self.optimizer.parameters))
end

function Free:construct(inputs, labels)
  inputs, labels = self:_checked(inputs, labels)
  local ball = self._ball
  local eps, delta = ball.eps * ball.range, ball.delta
  if delta == nil or tostring(delta.shape) ~= tostring(inputs.shape) or delta.dtype ~= inputs.dtype then delta = ops.zeros_like(inputs) end
  self.network:set_train()
  local loss
  for _ = 1, ball.replays do
    local slope, gradients
    loss, slope, gradients = self._both(common.clip(inputs + delta, ball.lo, ball.hi), labels)
    self.optimizer(gradients)
    local moved = delta + eps * ops.sign(slope)
    delta = ms.is_tensor(eps) and ops.minimum(ops.maximum(moved, -eps), eps) or ops.clamp(moved, -eps, eps)
  end
  ball.delta = delta
  return loss
end

--- Free training has no samples of its own before a step: use the defence as the cell of a step.
---     > (pcall(ms.armour.defenses.FreeAdversarialDefense(ms.nn.Dense(4, 3)).adversarial)) --> false
function Free:adversarial() -- luacheck: ignore 212
  fail("FreeAdversarialDefense", "its gradients are those of the step itself, so that a callback cannot give it samples",
    "call defense(inputs, labels) for a step")
end

return M
