-- Common ground of ms.armour: models as attacks see them (logits, losses and gradients sample by sample), checks of images, labels and
-- bounds, norms and projections of each sample, generators of random numbers, and batches.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local common = {}

--- f, compiled in graph mode: what an attack calls many times. f must be the same function at each call.
function common.compiled(f)
  local compiled
  return function(...)
    if ms.get_context("mode") ~= ms.GRAPH_MODE then return f(...) end
    compiled = compiled or ms.jit(f)
    return compiled(...)
  end
end

--- f(...) with the network, if it is a cell, as it predicts; afterwards it is as before, also after an error.
common.predicting = require "lunaria.explain.common".predicting

--- bounds as two numbers or tensors; nil for none. bounds: nil takes the default, false is none, else { lo, hi }.
function common.bounds(where, bounds, default)
  if bounds == nil then bounds = default end
  if bounds == nil or bounds == false then return nil end
  if type(bounds) ~= "table" or getmetatable(bounds) ~= nil or #bounds ~= 2 then
    fail(where, "bounds must be { least, greatest }, as { 0, 1 }, or false, got " .. describe(bounds))
  end
  local lo, hi = bounds[1], bounds[2]
  for _, b in ipairs { lo, hi } do
    if not math.type(b) and not ms.is_tensor(b) then fail(where, "bounds must be numbers or tensors, got " .. describe(b)) end
  end
  local width = hi - lo
  local least = ms.is_tensor(width) and ops.min(width):item() or width
  if not (least > 0 and least < math.huge) then
    local values = ms.is_tensor(width) and "" or (": %s and %s"):format(tostring(lo), tostring(hi))
    fail(where, "the first bound must be less than the second" .. values, "bounds = { 0, 1 }")
  end
  return lo, hi
end

--- Images, or other inputs, of an attack: a floating tensor of at least two axes with at least one sample, finite, and within bounds.
function common.images(where, x, lo, hi)
  if not ms.is_tensor(x) then fail(where, "inputs must be a tensor (N, ...), got " .. describe(x)) end
  if x.ndim < 2 then fail(where, ("inputs must have an axis of samples and others, got the shape %s"):format(tostring(x.shape))) end
  if not ops.is_floating_point(x) then
    fail(where, ("inputs must be of a floating dtype, got %s"):format(tostring(x.dtype)), "x:astype(ms.float32) / 255")
  end
  if x.size == 0 then fail(where, ("inputs of shape %s hold no sample"):format(tostring(x.shape))) end
  if not ops.all(ops.isfinite(x)):item() then fail(where, "inputs hold nan or infinity") end
  if lo ~= nil then
    -- Rounding while the images were scaled is no mistake of the user's.
    local slack = (hi - lo) * 1e-6
    local below, above = ops.min(x - (lo - slack)):item() < 0, ops.max(x - (hi + slack)):item() > 0
    if below or above then
      local between = ms.is_tensor(lo) and "the bounds" or ("the bounds %s and %s"):format(tostring(lo), tostring(hi))
      fail(where, ("inputs lie between %g and %g, outside of %s"):format(ops.min(x):item(), ops.max(x):item(), between),
        "give the attack the bounds of your data: { bounds = { lo, hi } }")
    end
  end
  return x
end

--- Class numbers (n,) as int32 of labels in either form: integers (n,), or floats (n, classes) with one 1 in each row. classes: their
--- number, or nil where it is not known. n: how many there must be.
function common.labels(where, y, n, classes)
  if not ms.is_tensor(y) then fail(where, "labels must be a tensor of class numbers or one-hot rows, got " .. describe(y)) end
  if y.ndim < 1 or y.shape[1] ~= n then
    fail(where, ("there are %d inputs, and labels of shape %s"):format(n, tostring(y.shape)))
  end
  if y.size == 0 then fail(where, ("labels of shape %s hold no sample"):format(tostring(y.shape))) end
  if y.ndim == 2 then
    if classes and y.shape[2] ~= classes then
      fail(where, ("one-hot labels have %d columns, and the network has %d classes"):format(y.shape[2], classes))
    end
    local ones, zeros = ops.sum(ops.equal(y, 1):astype(ms.int32), 1), ops.sum(ops.equal(y, 0):astype(ms.int32), 1)
    if not ops.all(ops.logical_and(ops.equal(ones, 1), ops.equal(zeros, y.shape[2] - 1))):item() then
      fail(where, "labels of two axes must be one-hot: a single 1 in each row, and zeros")
    end
    return ops.argmax(y:astype(ms.float32), 1):astype(ms.int32)
  end
  if y.ndim ~= 1 or ops.is_floating_point(y) or y.dtype == ms.bool_ then
    local given = ("%s of shape %s"):format(tostring(y.dtype), tostring(y.shape))
    fail(where, "labels must be integers (N,) or one-hot rows (N, classes), got " .. given)
  end
  local least, most = ops.min(y):item(), ops.max(y):item()
  if least < 0 or classes and most >= classes then
    local known = classes and (", and there are %d classes, from 0"):format(classes) or ""
    fail(where, ("labels lie between %d and %d%s"):format(least, most, known))
  end
  return y:astype(ms.int32)
end

--- Rows with a single 1. y: class numbers (n,). dtype: of the rows, default float32.
function common.one_hot(y, classes, dtype)
  return ops.equal(y:reshape { -1, 1 }, ops.arange(classes):astype(y.dtype):reshape { 1, -1 }):astype(dtype or ms.float32)
end

local kinds = { ["1"] = 1, l1 = 1, ["2"] = 2, l2 = 2, inf = "inf", linf = "inf", ["np.inf"] = "inf" }

--- A norm as 1, 2 or "inf".
function common.norm_kind(where, p)
  if p == 1 or p == 2 then return math.tointeger(p) end
  if p == math.huge then return "inf" end
  local kind = type(p) == "string" and kinds[p:lower()]
  return kind or fail(where, "the norm must be 1, 2 or 'inf', got " .. describe(p))
end

local function rows(x) return x:reshape { x.shape[1], -1 } end

-- A value for each sample, (n,), with axes of length 1 so that it goes with x.
local function beside(x, value)
  local shape = { x.shape[1] }
  for axis = 2, x.ndim do shape[axis] = 1 end
  return value:reshape(shape)
end
common.beside = beside

--- The norms (n,) of the samples of x. p: 1, 2 or "inf".
function common.norms(x, p)
  local flat = rows(x)
  if p == 1 then return ops.sum(ops.abs(flat), 1) end
  if p == 2 then return ops.sqrt(ops.sum(flat * flat, 1)) end
  return ops.amax(ops.abs(flat), 1)
end

-- x with each sample divided by a number of its own; a sample whose number is 0 stays.
local function divided(x, norms)
  return x / beside(x, ops.where(ops.greater(norms, 0), norms, ops.ones_like(norms)))
end
common.divided = divided

--- The step of length 1 in the norm that a gradient asks for: its signs for "inf", else the gradient over its norm. Samples whose gradient
--- is 0 have no step.
function common.steepest(gradient, p)
  -- The sign of nan is 0, which would hide it.
  if p == "inf" then return ops.sign(gradient) + gradient * 0 end
  return divided(gradient, common.norms(gradient, p))
end

-- The nearest point of the ball of 1-norm eps: |d| less a threshold, which the sorted magnitudes give (Duchi et al., 2008).
local function project_1(delta, eps)
  local flat = rows(delta)
  local size = ops.abs(flat)
  local sorted = (ops.sort(size, 1, true))
  local sums = ops.cumsum(sorted, 1) - eps
  local counts = ops.arange(1, flat.shape[2] + 1):astype(delta.dtype):reshape { 1, -1 }
  local kept = ops.greater(sorted * counts, sums):astype(delta.dtype)
  -- The largest of the thresholds that each number of kept elements gives is that of the right number.
  local threshold = ops.amax(ops.where(ops.greater(kept, 0), sums / counts, ops.full_like(sums, -math.huge)), 1, true)
  local cut = ops.sign(flat) * ops.relu(size - ops.relu(threshold))
  return cut:reshape(delta.shape)
end

--- The nearest point to each sample of delta in the ball of a norm around 0. eps: the radius, a number.
function common.project(delta, p, eps)
  if p == "inf" then return ops.clamp(delta, -eps, eps) end
  if p == 1 then return project_1(delta, eps) end
  local norms = common.norms(delta, 2)
  return delta * beside(delta, ops.where(ops.greater(norms, eps), eps / norms, ops.ones_like(norms)))
end

--- The step of length 1 in the norm, in units of a range (a number or a tensor), that a gradient asks for.
function common.direction(gradient, p, range)
  if not ms.is_tensor(range) then return common.steepest(gradient, p) * range end
  return common.steepest(gradient * range, p) * range
end

--- The nearest perturbation to each sample of delta in the ball of radius eps, in units of a range (a number or a tensor).
function common.in_ball(delta, p, eps, range)
  if not ms.is_tensor(range) then return common.project(delta, p, eps * range) end
  return common.project(delta / range, p, eps) * range
end

--- x between bounds; x itself where there are none.
function common.clip(x, lo, hi)
  if lo == nil then return x end
  if ms.is_tensor(lo) or ms.is_tensor(hi) then return ops.minimum(ops.maximum(x, lo), hi) end
  return ops.clamp(x, lo, hi)
end

--- A secret seed: an integer that is not negative. The error does not say what was given.
function common.secret(where, name, value)
  local number = math.type(value) and math.tointeger(value)
  if not number or number < 0 then fail(where, name .. " must be an integer that is not negative (its value is a secret and not shown)") end
  require "lunaria.common.secrets".keep()
  return number
end

local Draws = class.Object:extend("Draws")

--- Random numbers from a seed, which leave those of ms.set_seed alone: the same in both modes. seed: nil takes one from the session's.
function common.generator(seed, where)
  if seed == nil then seed = ops.randint(0, 1 << 31, { 1 }):item() end
  seed = check.not_negative(where or "generator", "seed", seed)
  local draws = setmetatable({}, Draws)
  draws._generator = ms.Generator():manual_seed(seed)
  return draws
end

--- Uniform numbers from lo on and below hi. dtype: default float32.
function Draws:uniform(shape, lo, hi, dtype)
  lo, hi = lo or 0.0, hi or 1.0
  local x = ops.rand(shape, { generator = self._generator, dtype = dtype or ms.float32 })
  return lo == 0 and hi == 1 and x or x * (hi - lo) + lo
end

--- Normal numbers. dtype: default float32.
function Draws:normal(shape, dtype) return ops.randn(shape, { generator = self._generator, dtype = dtype or ms.float32 }) end

--- Integers from lo on and below hi, int64.
function Draws:integers(shape, lo, hi) return ops.randint(lo, hi, shape, { generator = self._generator }) end

--- The numbers from 0 below n in random order, int64.
function Draws:permutation(n) return ops.randperm(n, { generator = self._generator }) end

--- One number from 0 on and below 1.
function Draws:number() return self:uniform({ 1 }, 0, 1, ms.float64):item() end

--- f(x, y) for so many samples at a time, its results put together: tensors along their first axis, lists one behind the other.
function common.in_batches(f, x, y, size)
  local columns, count, n = {}, 0, x.shape[1]
  for from = 0, n - 1, size do
    local part = { ms.slice(from, math.min(n, from + size)) }
    local got = table.pack(f(x[part], y ~= nil and y[part] or nil))
    count = got.n
    for k = 1, got.n do
      columns[k] = columns[k] or {}
      table.insert(columns[k], got[k])
    end
  end
  for k = 1, count do
    local column = columns[k]
    if ms.is_tensor(column[1]) then
      columns[k] = #column == 1 and column[1] or ops.concat(column, 0)
    else
      local whole = {}
      for _, list in ipairs(column) do table.move(list, 1, #list, #whole + 1, whole) end
      columns[k] = whole
    end
  end
  return table.unpack(columns, 1, count)
end

local Classifier = class.Object:extend("Classifier")
Classifier._called = "model"

local function check_logits(where, y, n)
  if not ms.is_tensor(y) or y.ndim ~= 2 or y.shape[1] ~= n or y.shape[2] < 2 then
    fail(where, "the network must give logits (N, classes), got " .. describe(y))
  end
  return y
end

--- A network as attacks see it. network: a cell or a function that takes (N, ...) and gives logits (N, classes). loss_fn: nil is
--- cross-entropy; else a callable of logits and labels that gives a number for each sample, or one for all of them, which is then taken of
--- each sample alone.
function common.classifier(where, network, loss_fn)
  if not arguments.is_callable(network) then
    fail(where, "network must be a cell or a function that gives logits, got " .. describe(network))
  end
  if loss_fn ~= nil and not arguments.is_callable(loss_fn) then
    fail(where, "loss_fn must be a callable of logits and labels, got " .. describe(loss_fn))
  end
  local m = setmetatable({}, Classifier)
  m.network, m.loss_fn, m._where = network, loss_fn, where
  -- Outside of graphs, for the checks' sake; within them, what the operators say.
  m._logits = common.compiled(function(x) return network(x) end)
  m._losses = common.compiled(function(x, y) return m:losses_of(network(x), y) end)
  m._gradient = common.compiled(function(x, y)
    return ms.grad(function(z) return ops.sum(m:losses_of(network(z), y)) end)(x)
  end)
  m._both = common.compiled(function(x, y)
    local value, gradient = ms.value_and_grad(function(z)
      local losses = m:losses_of(network(z), y)
      return ops.sum(losses), losses
    end, { has_aux = true })(x)
    return value[2], gradient
  end)
  return m
end

--- The losses (n,) of logits. y: class numbers, or with a loss_fn what it takes.
function Classifier:losses_of(logits, y)
  local loss_fn = self.loss_fn
  if loss_fn == nil then return ops.cross_entropy(logits, y, { reduction = "none" }) end
  local n = logits.shape[1]
  local losses = loss_fn(logits, y)
  if not ms.is_tensor(losses) or losses.ndim > 0 and losses.shape[1] ~= n then
    fail(self._where, ("loss_fn must give a number, or one for each of %d samples, got %s"):format(n, describe(losses)))
  end
  if losses.ndim == 0 then
    -- A sum or a mean over the batch: of one sample at a time it is that sample's.
    return ms.vmap(function(l, t) return loss_fn(l:reshape { 1, -1 }, ops.expand_dims(t, 0)) end)(logits, y)
  end
  return losses.ndim == 1 and losses or ops.mean(losses:reshape { n, -1 }, 1)
end

--- The logits (n, classes) of inputs.
function Classifier:logits(x)
  local y = check_logits(self._where, common.predicting(self.network, self._logits, x), x.shape[1])
  self._classes = y.shape[2]
  return y
end

--- The predicted classes (n,), int32.
function Classifier:predicted(x) return ops.argmax(self:logits(x), 1):astype(ms.int32) end

--- The losses (n,) of inputs.
function Classifier:losses(x, y) return common.predicting(self.network, self._losses, x, y) end

--- The gradient of the sum of the losses with respect to the inputs: for each sample that of its own loss.
function Classifier:input_gradient(x, y) return common.predicting(self.network, self._gradient, x, y) end

--- The losses (n,) and the gradient.
function Classifier:loss_and_gradient(x, y) return common.predicting(self.network, self._both, x, y) end

--- The number of classes. x: inputs, one of which is asked about where it is not known yet.
function Classifier:classes(x)
  if not self._classes then
    if x == nil then fail(self._where, "the number of classes is not known before the network has been asked") end
    self:logits(x[{ ms.slice(0, 1) }])
  end
  return self._classes
end

--- A function from inputs to predictions, of what has a method predict, of a cell or of a function.
function common.predictor(where, model)
  if type(model) == "table" and not cells.is_cell(model) and type(model.predict) == "function" then
    return function(x) return model:predict(x) end
  end
  if arguments.is_callable(model) then
    return function(x) return common.predicting(model, model, x) end
  end
  return fail(where, "model must be a function, a cell or an object with predict(x), got " .. describe(model))
end

local BlackModel = class.define(nil, "BlackModel", "predict=nil", [[What a black-box attack asks: predictions, and nothing else. predict: a
function of inputs (N, ...) that gives predictions (N, classes); or extend the class and write a method predict(self, inputs).

  > model = ms.armour.BlackModel(function(x) return ms.ops.softmax(x, 1) end)
  > model:is_adversarial(ms.tensor { 0.1, 0.9 }, 0, false) --> true]])
BlackModel._called = "model"
common.BlackModel = BlackModel

function BlackModel:setup(a)
  if a.predict ~= nil and not arguments.is_callable(a.predict) then
    fail("BlackModel", "predict must be a callable, got " .. describe(a.predict))
  end
  self._predict = a.predict
end

--- The predictions (N, classes) for inputs (N, ...).
---     > ms.armour.BlackModel(function(x) return x * 2 end):predict(ms.ones { 1, 2 }):tolist()[1][1] --> 2.0
function BlackModel:predict(inputs)
  if self._predict == nil then
    local hint = "ms.armour.BlackModel(function(x) ... end), or a method predict of a class that extends it"
    fail("predict", "this model has no predictions", hint)
  end
  return self._predict(inputs)
end

--- Whether one input has been led astray. data: a sample, without the axis of samples. label: its class, or with is_targeted the class that
--- is wanted.
---     > ms.armour.BlackModel(function(x) return x end):is_adversarial(ms.tensor { 0.1, 0.9 }, 1, true) --> true
function BlackModel:is_adversarial(data, label, is_targeted)
  label, is_targeted = arguments.named("is_adversarial", { "label", "is_targeted" }, label, is_targeted)
  if is_targeted ~= nil then check.boolean("is_adversarial", "is_targeted", is_targeted) end
  label = check.not_negative("is_adversarial", "label", label)
  local predicted = ops.argmax(self:predict(ops.expand_dims(data, 0)), 1):item()
  return (predicted == label) == (is_targeted or false)
end

local Attack = class.Object:extend("Attack")
Attack._called = "attack"
Attack._doc = [[What all attacks are. attack:generate(inputs, labels) gives adversarial inputs, attack:batch_generate(inputs, labels,
batch_size) so many samples at a time. A class of your own extends it and has a method _generate(self, inputs, labels).

  > Noise = ms.armour.Attack:extend("Noise")
  > Noise._generate = function(self, x) return ms.ops.clamp(x + 0.1, 0.0, 1.0) end
  > Noise():generate(ms.ones { 2, 3 }, ms.tensor { 0, 1 }).shape --> (2, 3)]]
common.Attack = Attack

--- Adversarial inputs. inputs: a floating tensor (N, ...) within the bounds of the attack. labels: class numbers (N,) or one-hot rows
--- (N, classes); with is_targeted those that are wanted. Gives a tensor like inputs; black-box attacks give whether each succeeded, the
--- adversarial inputs and how many queries each took.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 3))
---     > attack = ms.armour.attacks.FastGradientSignMethod(net, { eps = 0.1 })
---     > attack:generate(ms.ones { 2, 1, 2, 2 } * 0.5, ms.tensor { 0, 2 }).shape --> (2, 1, 2, 2)
function Attack:generate(inputs, labels)
  inputs, labels = arguments.named("generate", { "inputs", "labels" }, inputs, labels)
  local found, adversarial, queries = self:_generate(inputs, labels)
  -- Some attacks compute in float32 where inputs have fewer bits.
  local function like_inputs(x)
    return ms.is_tensor(x) and ms.is_tensor(inputs) and ops.is_floating_point(x) and x.dtype ~= inputs.dtype and x:astype(inputs.dtype) or x
  end
  if adversarial == nil then return like_inputs(found) end
  return found, like_inputs(adversarial), queries
end

--- The same as generate, so many samples at a time. batch_size: default 64.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(4, 3))
---     > attack = ms.armour.attacks.FastGradientSignMethod(net, { eps = 0.1 })
---     > attack:batch_generate(ms.ones { 5, 1, 2, 2 } * 0.5, ms.tensor { 0, 2, 1, 1, 0 }, { batch_size = 2 }).shape --> (5, 1, 2, 2)
function Attack:batch_generate(inputs, labels, batch_size)
  local where = "batch_generate"
  inputs, labels, batch_size = arguments.named(where, { "inputs", "labels", "batch_size" }, inputs, labels, batch_size)
  common.images(where, inputs)
  if labels ~= nil and (not ms.is_tensor(labels) or labels.ndim == 0 or labels.shape[1] ~= inputs.shape[1]) then
    fail(where, ("there are %d inputs, and labels are %s"):format(inputs.shape[1], describe(labels)))
  end
  batch_size = check.positive(where, "batch_size", batch_size or 64)
  return common.in_batches(function(x, y) return self:generate(x, y) end, inputs, labels, batch_size)
end

return common
