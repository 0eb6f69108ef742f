-- The parts that attacks on decisions share: by how much a class leads, which samples are adversarial, the gradients of single classes,
-- the search for the weight of a loss.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.armour.common"

local ops = ms.ops
local check = arguments.check
local margins = {}

--- Labels as class numbers (N); with sparse = true only class numbers are taken, with false only one-hot rows, with nil either.
function margins.labels(where, labels, count, classes, sparse)
  local rows = ms.is_tensor(labels) and labels.ndim == 2
  if sparse ~= nil and sparse == rows then
    arguments.fail(where, ("with sparse = %s labels must be %s, got %s"):format(sparse, sparse and "class numbers" or "one-hot rows",
      arguments.describe(labels)))
  end
  return common.labels(where, labels, count, classes)
end

--- The option sparse of an attack, checked.
function margins.sparse(where, value)
  if value ~= nil then check.boolean(where, "sparse", value) end
  return value
end

--- The network must have as many classes as num_classes says. x: inputs, of which one is asked about.
function margins.check_classes(where, classifier, x, classes)
  local given = classifier:classes(x)
  if given ~= classes then
    arguments.fail(where, ("num_classes is %d, and the network gives %d logits"):format(classes, given))
  end
end

--- The samples where `mask` (N) holds from `a`, the others from `b`.
function margins.choose(mask, a, b) return ops.where(common.beside(a, mask), a, b) end

--- Class numbers y (N) as a mask (N, K).
function margins.mask(y, classes)
  return ops.equal(y:reshape { -1, 1 }, ops.arange(classes):astype(y.dtype):reshape { 1, -1 })
end

--- How far an attack is from its goal in logits z (N, K): the lead of the true class, or the lag of the target, plus the confidence
--- asked for. Below 0 the goal is reached. mask (N, K): true at the labels.
function margins.distance(z, mask, targeted, confidence)
  local own = ops.sum(ops.where(mask, z, 0), 1)
  local other = ops.amax(ops.where(mask, -math.huge, z), 1)
  return (targeted and other - own or own - other) + confidence
end

--- Which answers z (N, K) are what the attack wants.
function margins.is_reached(z, y, targeted)
  local decided = ops.argmax(z, 1):astype(y.dtype)
  return targeted and ops.equal(decided, y) or not targeted and ops.not_equal(decided, y)
end

-- Rows that one pass of the network takes for a Jacobian.
local AT_ONCE = 512

--- A function of samples x (N, ...) that gives the logits (N, K) and their gradients (N, K, ...). The samples stand in the batch once
--- for each class, so that a pass gives the gradients of many classes; passes hold AT_ONCE rows where one class does not need more.
function margins.jacobian(network, classes)
  local pass = common.compiled(function(points, picked)
    return ms.value_and_grad(function(at)
      local z = network(at)
      return ops.sum(z * picked), z
    end, { has_aux = true })(points)
  end)
  return function(x)
    local count, parts, z = x.shape[1], {}, nil
    local chunk = math.max(1, math.min(classes, AT_ONCE // count))
    for from = 0, classes - 1, chunk do
      local wide = math.min(chunk, classes - from)
      local picked = margins.mask(ops.arange(from, from + wide), classes):astype(x.dtype)
      local copies, shape = { wide }, { wide, count }
      for axis = 2, x.ndim do copies[axis], shape[axis + 1] = 1, x.shape[axis] end
      local aux, gradient = pass(ops.tile(x, copies), ops.repeat_interleave(picked, count, 0))
      z = z or aux[2][{ ms.slice(0, count) }]
      parts[#parts + 1] = gradient:reshape(shape)
    end
    return z, ops.swapaxes(#parts == 1 and parts[1] or ops.concat(parts, 0), 0, 1)
  end
end

--- The search for the smallest weight of a loss with which an attack succeeds, for each sample: ten times more until it succeeds,
--- then halfway between the largest that failed and the smallest that did not. search.value: the weights (N) to try;
--- search.update(found) takes whether they succeeded.
function margins.weights(initial, count, dtype)
  local search = { value = ops.full({ count }, initial, { dtype = dtype }) }
  local low, high = ops.zeros_like(search.value), ops.full({ count }, math.huge, { dtype = dtype })
  function search.update(found)
    local value = search.value
    high = ops.where(found, ops.minimum(high, value), high)
    low = ops.where(found, low, ops.maximum(low, value))
    search.value = ops.where(ops.less(high, math.huge), (low + high) / 2, value * 10)
  end
  return search
end

return margins
