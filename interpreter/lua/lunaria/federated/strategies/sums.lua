-- Strategies for which the mean of the weights is not enough, but means of a vector and of further numbers are, so that secure aggregation
-- can be used: what each party adds up. A kind has
--
--   vector(w0, w, update, settings) -> vector, number or vector    what a party adds up, float64: in place of its weights, and beside
--   is_vector        whether what stands beside the weights is a vector of their size; else it is a number
--   tells            the metric that the sums take the place of, which is then not sent in the open
--
-- w0: the global weights; w: the party's. A number is sent as a few digits, each of them within the bound of what can be added up.
local ms = require "lunaria"

local ops = ms.ops
local M, kinds = {}, {}

-- FedNova: the change of a step, and how many there were.
kinds.normalised = { tells = "normalizer" }
function kinds.normalised.vector(w0, w, update)
  local normalizer = update.metrics.normalizer or update.metrics.steps
  return (w - w0) * (1.0 / normalizer), normalizer
end

-- SCAFFOLD: the weights, and the change of the control variate.
kinds.controlled = { is_vector = true }
function kinds.controlled.vector(_, w, update) return w, update.extra.control:astype(ms.float64) end

-- q-FedAvg: the change times a power of the loss, and what the sum of these is divided by, both over the bound of the gradient's rate of
-- change.
kinds.fair = { tells = "initial_loss" }
function kinds.fair.vector(w0, w, update, settings)
  local q, lipschitz = settings.q, settings.lipschitz
  -- A loss of 0 has no power below 0.
  local loss, d = math.max(update.metrics.initial_loss, 1e-10), w0 - w
  return d * loss ^ q, q * loss ^ (q - 1) * lipschitz * ops.sum(d * d):item() + loss ^ q
end

M.kinds = kinds

local DIGITS = 4

--- How many elements of a sum stand behind the weights, of which there are so many.
function M.further(kind, size) return kinds[kind].is_vector and size or DIGITS end

-- Digits of a number to this base, the highest one first; the last one has the fraction. Nil where there are too few of them.
local function digits_of(x, base)
  local list = {}
  for i = DIGITS - 1, 1, -1 do
    local digit = x // base ^ i
    if digit >= base then return nil end
    list[#list + 1], x = digit, x - digit * base ^ i
  end
  list[#list + 1] = x
  return list
end

--- What a party adds up: a vector, and a tensor of further elements. form: { kind, base, ... }, as M.form gives it.
function M.sent(form, w0, w, update)
  local kind = kinds[form.kind]
  local vector, beside = kind.vector(w0, w, update, form)
  if kind.is_vector then return vector, beside end
  local digits = digits_of(beside, form.base)
  if not digits then
    error(("%s: %g cannot be added up in secret: it must be below %g"):format(form.kind, beside, form.base ^ DIGITS), 0)
  end
  return vector, ms.tensor(digits, ms.float64)
end

--- What the mean of the further elements says: a vector, or a number.
function M.read(form, mean)
  if kinds[form.kind].is_vector then return mean end
  local x = 0.0
  for _, digit in ipairs(mean:tolist()) do x = x * form.base + digit end
  return x
end

--- The form of a strategy's sums, plain values for the parties; nil where the mean of the weights is enough. clip: the largest number that
--- can be added up.
function M.form(strategy, clip)
  if not strategy.sums then return nil end
  local form = strategy:sums()
  form.base = math.min(64, clip // 1)
  return form
end

return M
