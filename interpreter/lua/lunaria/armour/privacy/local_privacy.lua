-- ms.armour.privacy.local_privacy: values that are made private at their source, and estimates from many of them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local armour = require "lunaria.armour.common"
local released = require "lunaria.armour.privacy.released"

local ops, f64 = ms.ops, ms.float64
local fail, check = arguments.fail, arguments.check
local M = {}

local function at_least_two(where, classes)
  classes = check.positive(where, "classes", classes)
  if classes < 2 then fail(where, "classes must be at least 2, got 1") end
  return classes
end

local seeds = { seed = "number" }

--- The probability that randomized response keeps a label: exp(epsilon) / (classes - 1 + exp(epsilon)).
---     > ("%.6f"):format(ms.armour.privacy.local_privacy.keep_probability(2, 1.0)) --> 0.731059
function M.keep_probability(classes, epsilon)
  classes = at_least_two("keep_probability", classes)
  epsilon = check.number_not_negative("keep_probability", "epsilon", epsilon)
  return 1 / (1 + (classes - 1) * math.exp(-epsilon))
end

--- Labels of which each is kept with keep_probability and else becomes one of the others, all alike: epsilon private for each (Warner 1965,
--- Kairouz, Oh and Viswanath 2014). labels: class numbers (n,) or one-hot rows. Options: seed (none: secure draws).
---     > noisy = ms.armour.privacy.local_privacy.randomized_response(ms.tensor { 0, 1, 2 }, 3, 30.0, { seed = 1 })
---     > noisy:tolist()[3] --> 2
function M.randomized_response(labels, classes, epsilon, options)
  local where = "randomized_response"
  classes = at_least_two(where, classes)
  local keep = M.keep_probability(classes, epsilon)
  local o = arguments.options(where, options, seeds, "{ seed = 1 }")
  if not ms.is_tensor(labels) or labels.ndim == 0 then fail(where, "labels must be a tensor, got " .. arguments.describe(labels)) end
  local n = labels.shape[1]
  labels = armour.labels(where, labels, n, classes)
  local uniform = released.uniform(where, o.seed)
  local is_kept = ops.less(uniform(n), keep)
  local moved = 1 + ops.clamp(ops.floor(uniform(n) * (classes - 1)), 0, classes - 2):astype(ms.int32)
  return ops.where(is_kept, labels, (labels + moved) % classes):astype(ms.int32)
end

--- Estimates without bias of how many labels of each class there were before randomized response: a tensor (classes,).
---     > ms.armour.privacy.local_privacy.estimate_counts(ms.tensor { 0, 0, 1 }, 2, 50.0):tolist()[1] --> 2.0
function M.estimate_counts(labels, classes, epsilon)
  local where = "estimate_counts"
  classes = at_least_two(where, classes)
  if not (check.number(where, "epsilon", epsilon) > 0) then
    fail(where, "epsilon must be above 0: labels that are kept by chance alone tell nothing of their counts, got " .. tostring(epsilon))
  end
  local keep = M.keep_probability(classes, epsilon)
  if not ms.is_tensor(labels) or labels.ndim == 0 then fail(where, "labels must be a tensor, got " .. arguments.describe(labels)) end
  local n = labels.shape[1]
  local rows = armour.one_hot(armour.labels(where, labels, n, classes), classes, f64)
  local other = (1 - keep) / (classes - 1)
  return (ops.sum(rows, 0) - n * other) / (keep - other)
end

-- The probabilities that a bit that is 1, and one that is 0, is told as 1.
local function bit_probabilities(epsilon, optimized)
  if optimized then return 0.5, 1 / (1 + math.exp(epsilon)) end
  local keep = 1 / (1 + math.exp(-epsilon / 2))
  return keep, 1 - keep
end

--- Labels as one-hot rows whose bits are told at random, epsilon private for each row: a bit that is 1 is told as 1 with probability 1/2,
--- one that is 0 with 1 / (1 + exp(epsilon)) (Wang and others 2017); with optimized = false each bit is kept with
--- exp(epsilon / 2) / (1 + exp(epsilon / 2)) (RAPPOR, Erlingsson, Pihur and Korolova 2014). Gives int32 (n, classes). Options: optimized
--- (true), seed (none: secure draws).
---     > bits = ms.armour.privacy.local_privacy.unary_encoding(ms.tensor { 0, 2 }, 3, 60.0, { optimized = false, seed = 1 })
---     > bits:tolist()[2][3] --> 1
function M.unary_encoding(labels, classes, epsilon, options)
  local where = "unary_encoding"
  classes = at_least_two(where, classes)
  epsilon = check.number_not_negative(where, "epsilon", epsilon)
  local o = arguments.options(where, options, { seed = "number", optimized = "boolean" }, "{ seed = 1 }")
  if not ms.is_tensor(labels) or labels.ndim == 0 then fail(where, "labels must be a tensor, got " .. arguments.describe(labels)) end
  local n = labels.shape[1]
  local rows = armour.one_hot(armour.labels(where, labels, n, classes), classes, f64)
  local of_1, of_0 = bit_probabilities(epsilon, o.optimized ~= false)
  local draws = released.uniform(where, o.seed)(n * classes):reshape { n, classes }
  return ops.less(draws, rows * of_1 + (1 - rows) * of_0):astype(ms.int32)
end

--- Estimates without bias of the counts behind rows of unary_encoding: a tensor (classes,). bits: those rows, (n, classes). Options:
--- optimized, as it was there (true).
---     > bits = ms.tensor { { 1, 0 }, { 1, 0 }, { 0, 1 } }
---     > ms.armour.privacy.local_privacy.estimate_unary(bits, 80.0, { optimized = false }):tolist()[1] --> 2.0
function M.estimate_unary(bits, epsilon, options)
  local where = "estimate_unary"
  local o = arguments.options(where, options, { optimized = "boolean" }, "{ optimized = false }")
  if not (check.number(where, "epsilon", epsilon) > 0) then fail(where, "epsilon must be above 0, got " .. tostring(epsilon)) end
  if not ms.is_tensor(bits) or bits.ndim ~= 2 then fail(where, "bits must be a tensor (n, classes), got " .. arguments.describe(bits)) end
  local of_1, of_0 = bit_probabilities(epsilon, o.optimized ~= false)
  return (ops.sum(bits:astype(f64), 0) - bits.shape[1] * of_0) / (of_1 - of_0)
end

--- Values with Laplace noise of scale (hi - lo) / epsilon, each of them epsilon private. x: a tensor, whose values are first moved into
--- bounds; with several columns epsilon is that of a row. Options: bounds = { lo, hi }, seed (none: secure noise).
---     > y = ms.armour.privacy.local_privacy.laplace(ms.zeros { 3 }, 1.0, { bounds = { 0, 1 }, seed = 1 })
---     > y.shape --> (3,)
function M.laplace(x, epsilon, options)
  local where = "local_privacy.laplace"
  local o = arguments.options(where, options, { bounds = "table", seed = "number" }, "{ bounds = { 0, 1 } }")
  local lo, hi = released.bounds(where, o.bounds)
  epsilon = check.number_positive(where, "epsilon", epsilon)
  local values = released.values(where, x, true)
  local of_row = values.ndim == 2 and values.shape[2] or 1
  local flat = ops.clamp(values, lo, hi):reshape { values.size }
  local noisy = released.noisy(where, flat, (hi - lo) * of_row, 1.0, { epsilon = epsilon, uniform = released.uniform(where, o.seed) })
  return noisy:reshape(values.shape)
end

--- Embeddings as bits: 1 where an element is above 0, and each bit kept with exp(epsilon / 2) / (1 + exp(epsilon / 2)), as MindSpore
--- Federated's EmbeddingDP has them; epsilon is that of one bit's change in a unary code. Gives x's dtype, 0 and 1. Options: seed.
---     > bits = ms.armour.privacy.local_privacy.embedding(ms.tensor { { 0.5, -0.5 } }, 80.0, { seed = 1 })
---     > bits:tolist()[1][1] --> 1.0
function M.embedding(x, epsilon, options)
  local where = "local_privacy.embedding"
  local o = arguments.options(where, options, seeds, "{ seed = 1 }")
  epsilon = check.number_not_negative(where, "epsilon", epsilon)
  if not ms.is_tensor(x) or not ops.is_floating_point(x) then fail(where, "x must be a floating tensor, got " .. arguments.describe(x)) end
  local keep = bit_probabilities(epsilon, false)
  local bits = ops.greater(x, 0):reshape { x.size }
  local is_kept = ops.less(released.uniform(where, o.seed)(x.size), keep)
  return ops.equal(bits, is_kept):reshape(x.shape):astype(x.dtype)
end

return M
