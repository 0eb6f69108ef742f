-- Client rules as pure functions over vectors of weights. With gradient(w, ...) -> loss, gradient of a batch:
--
--   begin(w0, s, state) -> carry            what one training keeps, a table of tensors; carry.w are the weights
--   step(carry, gradient, s, k, ...) -> carry, loss     step k, from 0, on the batch ...
--   finish(carry, w0, s, steps, state) -> w, extra, metrics, state
--
-- w0: the weights that training begins with. s: settings, of which every rule knows lr, momentum and weight_decay; head_steps with
-- s.head,
-- a vector of ones where the head's numbers are, trains first these and then the others. state: tensors that the party keeps from round
-- to
-- round; a table that is empty at first. extra: tensors by name and metrics: numbers by name, for the server. A rule gives new tables and
-- changes none, and uses operators alone, so that begin, step and finish run under ms.vmap with a row for each party. A rule may also
-- have
-- objective(network, s) -> loss function of a batch, in place of the loss that the party has; initial(w0), the state of a party that has
-- not trained yet; needs, the kinds of settings that it cannot do without; vectors, settings and tensors of extra that are laid out as
-- weights.
local ms = require "lunaria"

local ops = ms.ops

local rules = {}

-- One step of stochastic gradient descent along g.
local function descend(carry, g, s, k)
  local new = {}
  for key, value in pairs(carry) do new[key] = value end
  local decay, momentum, head_steps = s.weight_decay or 0, s.momentum or 0, s.head_steps or 0
  if decay ~= 0 then g = g + carry.w * decay end
  if head_steps > 0 then g = k < head_steps and g * s.head or g * (1.0 - s.head) end
  if momentum ~= 0 then
    g = carry.velocity * momentum + g
    new.velocity = g
  end
  new.w = carry.w - g * s.lr
  return new
end

local function begin(w0, s)
  local carry = { w = w0 }
  if (s.momentum or 0) ~= 0 then carry.velocity = ops.zeros_like(w0) end
  return carry
end

local function weights_alone(carry, _, _, _, state) return carry.w, {}, {}, state end

local function sgd_step(carry, gradient, s, k, ...)
  local loss, g = gradient(carry.w, ...)
  return descend(carry, g, s, k), loss
end

rules.sgd = { begin = begin, step = sgd_step, finish = weights_alone }

-- What training begins with is needed in its steps.
local function begin_with_start(w0, s)
  local carry = begin(w0, s)
  carry.start = w0
  return carry
end

-- FedProx: mu / 2 |w - w0|^2 is added to the loss.
local function prox_step(carry, gradient, s, k, ...)
  local loss, g = gradient(carry.w, ...)
  return descend(carry, g + (carry.w - carry.start) * s.mu, s, k), loss
end

rules.prox = { begin = begin_with_start, step = prox_step, finish = weights_alone, needs = { mu = "number" } }

-- FedNova: what so many steps do to the weights, in steps of size lr along one gradient (Wang et al., 2020, section 4). With momentum m
-- the k-th gradient goes on to count; with a proximal term, as FedProx has it, it fades.
local function normalizer_of(s, steps)
  local momentum, mu = s.momentum or 0, s.mu or 0
  if momentum ~= 0 and mu == 0 then return (steps - momentum * (1 - momentum ^ steps) / (1 - momentum)) / (1 - momentum) end
  local sum, velocity = 0.0, 0.0
  if mu == 0 then return steps * 1.0 end
  -- How far weights have gone where every gradient is 1; the term pulls them back by mu times that.
  for _ = 1, steps do
    velocity = momentum * velocity + 1.0 - s.lr * mu * sum
    sum = sum + velocity
  end
  return sum
end

local function nova_finish(carry, _, s, steps, state) return carry.w, {}, { normalizer = normalizer_of(s, steps) }, state end

local function nova_step(carry, gradient, s, k, ...)
  local loss, g = gradient(carry.w, ...)
  if (s.mu or 0) ~= 0 then g = g + (carry.w - carry.start) * s.mu end
  return descend(carry, g, s, k), loss
end

rules.nova = { begin = begin_with_start, step = nova_step, finish = nova_finish }

-- SCAFFOLD: gradients are corrected by the server's control variate less the party's own.
local function scaffold_begin(w0, s, state)
  local carry = begin(w0, s)
  carry.correction = s.control - state.control
  return carry
end

local function scaffold_step(carry, gradient, s, k, ...)
  local loss, g = gradient(carry.w, ...)
  if (s.momentum or 0) == 0 then return descend(carry, g + carry.correction, s, k), loss end
  -- Control variates are of whole steps, which momentum makes 1 / (1 - momentum) times as long as gradients: the correction goes beside
  -- the velocity (as in NIID-Bench), where it would grow by the same factor again, and the training would run away.
  local new = descend(carry, g, s, k)
  new.w = new.w - carry.correction * s.lr
  return new, loss
end

-- The new control variate is the mean direction of this training (option II): own - server + (w0 - w) / (steps lr).
local function scaffold_finish(carry, w0, s, steps, state)
  local change = (w0 - carry.w) / (steps * s.lr) - s.control
  return carry.w, { control = change }, {}, { control = state.control + change }
end

local function scaffold_initial(w0) return { control = ops.zeros_like(w0) } end

rules.scaffold = { begin = scaffold_begin, step = scaffold_step, finish = scaffold_finish, initial = scaffold_initial,
  needs = { control = "tensor" }, vectors = { "control" } }

-- Ditto: beside the common training one of the party's own weights, which are drawn to the weights of the round.
local function ditto_begin(w0, s, state)
  local carry = begin_with_start(w0, s)
  carry.own = state.own
  return carry
end

local function ditto_step(carry, gradient, s, k, ...)
  local _, own = gradient(carry.own, ...)
  local loss, g = gradient(carry.w, ...)
  local new = descend(carry, g, s, k)
  new.own = carry.own - (own + (carry.own - carry.start) * s.lambda) * s.lr
  return new, loss
end

local function ditto_finish(carry) return carry.w, {}, {}, { own = carry.own } end

local function ditto_initial(w0) return { own = w0 } end

rules.ditto = { begin = ditto_begin, step = ditto_step, finish = ditto_finish, initial = ditto_initial, needs = { lambda = "number" } }

-- The tensors of a batch in two halves; one of a single sample, and what is no batch, is both.
local function halves(...)
  local first, second = table.pack(...), table.pack(...)
  for i = 1, first.n do
    local x = first[i]
    local count = ms.is_tensor(x) and x.ndim > 0 and x.shape[1] or 0
    if count > 1 then
      first[i], second[i] = x[{ ms.slice(0, count // 2) }], x[{ ms.slice(count // 2, count) }]
    end
  end
  return first, second
end

-- Per-FedAvg: the gradient on one half of the batch of the loss after a step of size alpha on the other half. Its second derivative,
-- alpha H g, is left out, or taken by a difference of gradients at both sides of w.
local function meta_step(carry, gradient, s, k, ...)
  local first, second = halves(...)
  local function at(w, batch) return gradient(w, table.unpack(batch, 1, batch.n)) end
  local loss, inner = at(carry.w, first)
  local _, g = at(carry.w - inner * s.alpha, second)
  if s.order == "hessian_free" then
    local delta = s.delta or 1e-3
    local _, above = at(carry.w + g * delta, first)
    local _, below = at(carry.w - g * delta, first)
    g = g - (above - below) * (s.alpha / (2 * delta))
  end
  return descend(carry, g, s, k), loss
end

rules.per_fedavg = { begin = begin, step = meta_step, finish = weights_alone, needs = { alpha = "number" } }

-- FixMatch: of inputs changed a little and much, the classes of the first, where the network is sure of them, are the labels of the
-- second.
-- Batches are (weak, strong), or inputs alone where s.weak and s.strong are functions that change them.
local function fixmatch_objective(network, s)
  return function(weak, strong)
    if strong == nil or s.strong then
      weak, strong = s.weak and s.weak(weak) or weak, s.strong and s.strong(weak) or weak
    end
    local sure = ops.softmax(ops.stop_gradient(network(weak)), 1)
    local most, label = ops.amax(sure, 1), ops.argmax(sure, 1)
    local mask = ops.greater_equal(most, s.threshold):astype(sure.dtype)
    local losses = ops.cross_entropy(network(strong), label:astype(ms.int32), { reduction = "none" })
    return ops.mean(losses * mask) * (s.lambda or 1.0)
  end
end

rules.fixmatch = { begin = begin, step = sgd_step, finish = weights_alone, objective = fixmatch_objective,
  needs = { threshold = "number" } }

return rules
