-- Checks of what evaluations are given: probabilities, class numbers, numbers of samples, pictures before and after.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local given = {}

-- Rows may be off by the rounding of float16.
local sum_tolerance = 1e-2

--- Probabilities (N, classes) as float64. count: N where it is known.
function given.probabilities(where, name, value, count)
  if not ms.is_tensor(value) or value.ndim ~= 2 or value.size == 0 or not ops.is_floating_point(value) then
    fail(where, ("%s must be a float tensor (samples, classes) of probabilities, got %s"):format(name, describe(value)))
  end
  if count and value.shape[1] ~= count then
    fail(where, ("there are %d samples, but %s has %d rows"):format(count, name, value.shape[1]))
  end
  value = value:astype(ms.float64)
  local sums = ops.sum(value, 1)
  local is_one = ops.min(value):item() >= 0 and ops.max(ops.abs(sums - 1)):item() <= sum_tolerance
  if not is_one then
    fail(where, ("each row of %s must be probabilities, which are not negative and sum to 1; the least value is %.6g, the sums are "
      .. "from %.6g to %.6g"):format(name, ops.min(value):item(), ops.min(sums):item(), ops.max(sums):item()),
      "give ms.ops.softmax(logits, 1)")
  end
  return value
end

--- One number for each of count samples, a tensor (count,) of float64; a list is as good. None may be negative.
function given.amounts(where, name, value, count)
  if type(value) == "table" and #value > 0 then value = ms.tensor(value, ms.float64) end
  if not ms.is_tensor(value) or value.ndim ~= 1 or value.shape[1] ~= count then
    fail(where, ("%s must be a tensor of %d numbers, one for each sample, got %s"):format(name, count, describe(value)))
  end
  value = value:astype(ms.float64)
  -- Written so that NaN fails too.
  if not (ops.min(value):item() >= 0) then fail(where, ("%s must not be negative, but has %s"):format(name, ops.min(value):item())) end
  return value
end

--- Class numbers (count,) as int64.
function given.classes(where, value, count, classes)
  return common.labels(where, value, count, classes):astype(ms.int64)
end

--- Two tensors of the same shape (N, ...) as float64.
function given.pair(where, first_name, first, second_name, second)
  for name, value in pairs { [first_name] = first, [second_name] = second } do
    if not ms.is_tensor(value) or value.ndim < 2 or value.size == 0 then
      fail(where, ("%s must be a tensor of samples (N, ...), got %s"):format(name, describe(value)))
    end
    if not ops.all(ops.isfinite(value)):item() then fail(where, name .. " hold nan or infinity") end
  end
  if tostring(first.shape) ~= tostring(second.shape) then
    fail(where, ("%s is %s and %s is %s: they must have the same shape"):format(first_name, tostring(first.shape), second_name,
      tostring(second.shape)))
  end
  return first:astype(ms.float64), second:astype(ms.float64)
end

--- The class that each row takes for the likeliest, the first of equal ones.
function given.argmax(probabilities) return ops.argmax(probabilities, 1):astype(ms.int64) end

--- The element of each row at the place that index (N,) says.
function given.pick(rows, index) return ops.gather_elements(rows, 1, index:reshape { -1, 1 }):reshape { -1 } end

--- The mean of the values where mask is 1, or none where it is 1 nowhere. values, mask: (N,) of float64.
function given.masked_mean(values, mask, none)
  local count = ops.sum(mask):item()
  return count > 0 and ops.sum(ops.where(ops.greater(mask, 0), values, ops.zeros_like(values))):item() / count or none
end

return given
