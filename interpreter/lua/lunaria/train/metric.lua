-- Metric: what all metrics have, and the helpers that they share. A metric counts over batches: clear(), update(batch's
-- outputs and labels) for each batch, eval(). Sums are kept as plain numbers and float64 tensors.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local Metric = class.Object:extend("Metric")
Metric._called = "metric"
Metric._parameters = ""
Metric._doc = [[What metrics of your own extend: clear(self) begins anew, update(self, ...) takes a batch, eval(self) gives the result.

  local Share = ms.train.Metric:extend("Share")
  function Share:clear() self.hits, self.count = 0, 0 end
  function Share:update(outputs, labels)
    self.hits = self.hits + ((outputs > 0) & labels):sum():item()
    self.count = self.count + labels.size
  end
  function Share:eval() return self.hits / self.count end
  > tostring(ms.train.Metric:extend("Share")) --> class Share(...)]]

--- Begins anew.
function Metric:init() self:clear() end

--- Forgets all batches.
---     > m = ms.train.Loss()
---     > m:update(3.0)
---     > m:clear()
---     > m:update(1.0)
---     > m:eval() --> 1.0
function Metric:clear() end

--- Takes a batch.
function Metric:update()
  fail(getmetatable(self)._name, "has no update method", "define it: function metric:update(outputs, labels) ... end")
end

--- The result over all batches.
---     > m = ms.train.Loss()
---     > m:update(3.0)
---     > m:eval() --> 3.0
function Metric:eval()
  fail(getmetatable(self)._name, "has no eval method", "define it: function metric:eval() return ... end")
end

--- Which of the inputs of update are used, and in which order, counting from 0: metric:set_indexes({ 0, 2 }). Gives the
--- metric back.
---     > tostring(ms.train.MSE():set_indexes { 0, 1 }) --> MSE<>
function Metric:set_indexes(indexes)
  local name = getmetatable(self)._name
  if type(indexes) ~= "table" or #indexes == 0 then
    fail(name, "indexes must be a list of positions from 0, got " .. describe(indexes))
  end
  self.indexes = {}
  for i, index in ipairs(indexes) do self.indexes[i] = check.not_negative(name, ("indexes[%d]"):format(i), index) end
  return self
end

local function reordered(self, ...)
  local indexes = self.indexes
  if not indexes then return ... end
  local inputs, chosen = table.pack(...), {}
  for i, index in ipairs(indexes) do
    if index >= inputs.n then
      fail(getmetatable(self)._name, ("indexes[%d] is %d, but update got %d inputs"):format(i, index, inputs.n))
    end
    chosen[i] = inputs[index + 1]
  end
  return table.unpack(chosen, 1, #indexes)
end

--- The update method of a metric of your own, which gets the inputs that set_indexes chose:
--- Mine.update = ms.train.rearrange_inputs(function(self, outputs, labels) ... end)
---     > type(ms.train.rearrange_inputs(function(self, outputs, labels) return self, outputs, labels end)) --> function
local function rearrange_inputs(f)
  if not arguments.is_callable(f) then fail("rearrange_inputs", "a function is expected, got " .. describe(f)) end
  return function(self, ...) return f(self, reordered(self, ...)) end
end

-- An input as a tensor: tensors, numbers and nested lists of them.
local function tensor_of(name, what, value)
  if ms.is_tensor(value) then return ops.stop_gradient(value) end
  if type(value) == "table" or math.type(value) then
    local ok, tensor = pcall(ms.tensor, value)
    if ok then return tensor end
  end
  return fail(name, ("%s must be a tensor, got %s"):format(what, describe(value)))
end

local function pair_of(name, count, ...)
  if select("#", ...) ~= count then
    fail(name, ("update takes %d inputs, got %d"):format(count, select("#", ...)),
      count == 2 and "they are the predictions and the labels: metric:update(outputs, labels)" or nil)
  end
  local outputs, labels = ...
  return tensor_of(name, "y_pred", outputs), tensor_of(name, "y", labels)
end

local function same_shape(name, outputs, labels)
  if tostring(outputs.shape) ~= tostring(labels.shape) then
    fail(name, ("y_pred has shape %s and y has %s: they must be the same"):format(tostring(outputs.shape), tostring(labels.shape)))
  end
end

-- Scores of shape (N, C, ...) and labels as class numbers (N, ...) or one-hot (N, C, ...): the predicted and the true
-- classes as flat int64 tensors, and C.
local function classes_of(name, outputs, labels)
  if outputs.ndim < 2 then
    fail(name, ("y_pred must have shape (N, C) or (N, C, ...), got %s"):format(tostring(outputs.shape)))
  end
  local count = outputs.shape[2]
  if outputs.ndim == labels.ndim then
    same_shape(name, outputs, labels)
    labels = ops.argmax(labels, 1)
  end
  local predicted = ops.argmax(outputs, 1)
  if tostring(predicted.shape) ~= tostring(labels.shape) then
    fail(name, ("y_pred has shape %s and y has %s: y must hold class numbers of shape %s, or be one-hot"):format(
      tostring(outputs.shape), tostring(labels.shape), tostring(predicted.shape)))
  end
  labels = labels:astype(ms.int64):reshape { -1 }
  if labels.size > 0 then
    local least, most = labels:min():item(), labels:max():item()
    if least < 0 or most >= count then
      fail(name, ("y has the class %d, but y_pred has classes 0 to %d"):format(least < 0 and least or most, count - 1))
    end
  end
  return predicted:reshape { -1 }, labels, count
end

-- Predictions and labels of 0 and 1 of shape (N, C, ...): as two tensors (samples, C).
local function binary_of(name, outputs, labels)
  same_shape(name, outputs, labels)
  if outputs.ndim < 2 then fail(name, ("y_pred must have shape (N, C) or (N, C, ...), got %s"):format(tostring(outputs.shape))) end
  local count = outputs.shape[2]
  local function flat(what, x)
    x = x:astype(ms.float64)
    if ops.any(ops.logical_and(ops.not_equal(x, 0.0), ops.not_equal(x, 1.0))):item() then
      fail(name, what .. " must hold only 0 and 1 for multilabel")
    end
    return ops.reshape(ops.movedim(x, 1, -1), { -1, count })
  end
  return flat("y_pred", outputs), flat("y", labels), count
end

local function sum_of(x) return x:astype(ms.float64):sum():item() end

local function seen(name, count)
  if count == 0 then fail(name, "nothing was counted: update comes before eval") end
  return count
end

-- A metric of the library. methods: clear, update, eval; update gets the inputs that set_indexes chose.
local function define(name, signature, doc, setup, methods)
  local metric = class.define(Metric, name, signature, doc)
  function metric:setup(a)
    setup(self, a, name)
    self:clear()
  end
  metric.clear, metric.eval, metric.update = methods.clear, methods.eval, rearrange_inputs(methods.update)
  return metric
end

return {
  Metric = Metric, define = define, rearrange_inputs = rearrange_inputs, tensor_of = tensor_of, pair_of = pair_of,
  same_shape = same_shape, classes_of = classes_of, binary_of = binary_of, sum_of = sum_of, seen = seen,
}
