-- Client rules as pure functions over vectors of weights. With gradient(w, ...) -> loss, gradient of a batch:
--
--   begin(w0, s, state) -> carry            what one training keeps, a table of tensors; carry.w are the weights
--   step(carry, gradient, s, k, ...) -> carry, loss     step k, from 0, on the batch ...
--   finish(carry, w0, s, steps, state) -> w, extra, metrics, state
--
-- w0: the weights that training begins with. s: settings, of which every rule knows lr, momentum and weight_decay. state: tensors that
-- the
-- party keeps from round to round; a table that is empty at first. extra: tensors by name and metrics: numbers by name, for the server.
-- A rule
-- gives new tables and changes none, and uses operators alone, so that begin, step and finish run under ms.vmap with a row for each
-- party.
local ms = require "lunaria"

local ops = ms.ops

local rules = {}

-- One step of stochastic gradient descent along g.
local function descend(carry, g, s)
  local new = {}
  for key, value in pairs(carry) do new[key] = value end
  local decay, momentum = s.weight_decay or 0, s.momentum or 0
  if decay ~= 0 then g = g + carry.w * decay end
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

local function sgd_step(carry, gradient, s, _, ...)
  local loss, g = gradient(carry.w, ...)
  return descend(carry, g, s), loss
end

rules.sgd = { begin = begin, step = sgd_step, finish = weights_alone }

-- What training begins with is needed in its steps.
local function begin_with_start(w0, s)
  local carry = begin(w0, s)
  carry.start = w0
  return carry
end

-- FedProx: mu / 2 |w - w0|^2 is added to the loss.
local function prox_step(carry, gradient, s, _, ...)
  local loss, g = gradient(carry.w, ...)
  return descend(carry, g + (carry.w - carry.start) * s.mu, s), loss
end

rules.prox = { begin = begin_with_start, step = prox_step, finish = weights_alone }

return rules
