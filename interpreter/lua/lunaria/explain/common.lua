-- Common ground of explanations: inputs and targets as tensors, a network as it predicts, the class that saliency methods extend.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local predicting = require "lunaria.nn.predicting"
local class = require "lunaria.nn.class"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local common = {}

--- Inputs of an explanation: a floating tensor (N, C, H, W).
function common.inputs(where, inputs)
  if not ms.is_tensor(inputs) or inputs.ndim ~= 4 or inputs.size == 0 then
    fail(where, "inputs must be a tensor (N, C, H, W), got " .. describe(inputs))
  end
  return ops.is_floating_point(inputs) and inputs or inputs:astype(ms.float32)
end

--- Targets as a tensor (N, l) of int64: a class for all inputs, one for each, or l for each.
function common.targets(where, targets, count)
  if type(targets) == "table" and getmetatable(targets) == nil and #targets > 0 then targets = ms.tensor(targets, ms.int64) end
  if math.type(targets) then targets = ms.tensor({ check.not_negative(where, "targets", targets) }, ms.int64) end
  if not ms.is_tensor(targets) or targets.ndim > 2 or ops.is_floating_point(targets) then
    fail(where, "targets must be a class, from 0, a list of them or a tensor of integers of at most two axes, got " .. describe(targets))
  end
  targets = targets:astype(ms.int64)
  if targets.ndim == 0 then targets = targets:reshape { 1 } end
  if targets.ndim == 1 then targets = targets:reshape { targets.size, 1 } end
  if targets.shape[1] == 1 and count > 1 then targets = ops.broadcast_to(targets, { count, targets.shape[2] }) end
  if targets.shape[1] ~= count then
    fail(where, ("there are %d inputs, but targets for %d"):format(count, targets.shape[1]))
  end
  return targets
end

--- The outputs (N, classes) of a network; what has further axes, as of a fully convolutional network, is averaged.
function common.outputs(where, network, inputs)
  local y = network(inputs)
  if not ms.is_tensor(y) or y.ndim < 2 then fail(where, "the network must give a tensor (N, classes), got " .. describe(y)) end
  while y.ndim > 2 do y = ops.mean(y, 2) end
  return y
end

--- An error where the outputs y have no such targets. targets: (N, 1).
function common.check_targets(where, y, targets)
  local most = ops.max(targets):item()
  if most >= y.shape[2] or ops.min(targets):item() < 0 then
    fail(where, ("the network has %d classes, and the target is %d"):format(y.shape[2], most))
  end
end

--- f(...) with the network as it predicts; afterwards it is as before, also after an error.
function common.predicting(network, f, ...)
  local restore = cells.is_cell(network) and predicting(network) or function() end
  local guard <close> = setmetatable({}, { __close = restore }) -- luacheck: ignore 211
  return f(...)
end

--- f(...) with a hook on cells; handles: what registering gave.
function common.hooked(handles, f, ...)
  local guard <close> = setmetatable({}, { __close = function() -- luacheck: ignore 211
    for _, handle in ipairs(handles) do handle:remove() end
  end })
  return f(...)
end

--- The gradient of the targets' outputs with respect to the inputs; targets that have been checked.
function common.slope(where, network, inputs, targets)
  return ms.grad(function(x)
    return ops.sum(ops.gather_elements(common.outputs(where, network, x), 1, targets))
  end)(inputs)
end

--- The same of targets that are still to be checked, outside of the derivative.
function common.gradient(where, network, inputs, targets)
  common.check_targets(where, common.outputs(where, network, inputs), targets)
  return common.slope(where, network, inputs, targets)
end

--- The largest magnitude among the channels: (N, 1, H, W).
function common.abs_max(x) return ops.amax(ops.abs(x), 1, true) end

--- The probabilities that a network and the activation behind it give.
function common.activated(network, activation_fn)
  return function(x) return activation_fn(network(x)) end
end

--- The outputs (N, classes) for many inputs, so many at a time. A last part is filled up to a power of two: graph mode compiles for each
--- number of inputs.
function common.answers(where, network, x, most)
  local parts, count = {}, x.shape[1]
  for from = 0, count - 1, most do
    local part = x[{ ms.slice(from, math.min(count, from + most)) }]
    local own, size = part.shape[1], 1
    while size < own do size = 2 * size end
    size = math.min(size, most)
    if size > own then
      local first = part[{ ms.slice(0, 1) }]
      part = ops.concat({ part, ops.broadcast_to(first, { size - own, x.shape[2], x.shape[3], x.shape[4] }) }, 0)
    end
    local y = common.outputs(where, network, part)
    parts[#parts + 1] = size > own and y[{ ms.slice(0, own) }] or y
  end
  return #parts == 1 and parts[1] or ops.concat(parts, 0)
end

--- Pearson's correlation of two tensors; 0 where one of them is constant.
function common.correlation(x, y)
  x, y = x:astype(ms.float64):reshape { -1 }, y:astype(ms.float64):reshape { -1 }
  x, y = x - ops.mean(x), y - ops.mean(y)
  local norm = (ops.norm(x) * ops.norm(y)):item()
  if not (norm > 0) then return 0.0 end
  return math.max(-1.0, math.min(1.0, ops.sum(x * y):item() / norm))
end

local Attribution = class.Object:extend("Attribution")
common.Attribution = Attribution
Attribution._called = "explainer"

--- For setup of a method: keeps the network.
function Attribution:_keep(a)
  local name = getmetatable(self)._name
  if not cells.is_cell(a.network) then fail(name, "network must be a cell, got " .. describe(a.network)) end
  self.network = a.network
  if a.activation_fn ~= nil then
    if not arguments.is_callable(a.activation_fn) then fail(name, "activation_fn must be a cell, got " .. describe(a.activation_fn)) end
    self.activation_fn = a.activation_fn
  end
  if a.perturbation_per_eval ~= nil then
    self.perturbation_per_eval = check.positive(name, "perturbation_per_eval", a.perturbation_per_eval)
  end
end

--- A class of saliency methods. _compute(self, inputs, targets): the maps.
function common.method(name, signature, doc)
  local method = class.define(Attribution, name, signature, doc)
  function method:__call(inputs, targets)
    inputs, targets = arguments.named(name, { "inputs", "targets" }, inputs, targets)
    inputs = common.inputs(name, inputs)
    targets = common.targets(name, targets, inputs.shape[1])
    if targets.shape[2] > 1 and not self.many_targets then fail(name, "targets must be one class for each input") end
    return common.predicting(self.network, self._compute, self, inputs, targets)
  end
  return method
end

return common
