-- ONNX losses, and operators that draw random numbers.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

local function check_reduction(a, node)
  if a.reduction ~= "mean" and a.reduction ~= "sum" and a.reduction ~= "none" then
    node.fail(("the reduction '%s' is not known"):format(a.reduction))
  end
end

-- Of log probabilities (batch, classes, ...) and the classes (batch, ...).
local function likelihood(a, x, target, weight)
  local classes = ops.cast(target, ms.int64)
  local counted
  if a.ignore_index then
    counted = ops.not_equal(classes, a.ignore_index)
    classes = ops.where(counted, classes, ops.zeros_like(classes))
  end
  local loss = ops.neg(ops.squeeze(ops.gather_elements(x, 1, ops.expand_dims(classes, 1)), { 1 }))
  local w = weight and ops.gather(weight, classes, 0)
  if counted then
    local zero = ops.zeros_like(loss)
    loss = ops.where(counted, loss, zero)
    w = w and ops.where(counted, w, zero) or a.reduction == "mean" and ops.cast(counted, x.dtype) or nil
  end
  if weight then loss = loss * w end
  if a.reduction == "none" then return loss end
  local sum = ops.reduce_sum(loss)
  if a.reduction == "sum" then return sum end
  return w and sum / ops.reduce_sum(w) or sum / loss.size
end

define.define("NegativeLogLikelihoodLoss", "ignore_index:i reduction:s=mean", 2, 3, function(a, node)
  check_reduction(a, node)
  return function(x, target, weight) return likelihood(a, x, target, weight) end
end)

define.define("SoftmaxCrossEntropyLoss", "ignore_index:i reduction:s=mean", 2, 3, function(a, node)
  check_reduction(a, node)
  return function(x, target, weight)
    local probabilities = ops.log_softmax(x, 1)
    return likelihood(a, probabilities, target, weight), probabilities
  end
end)

define.define("Dropout", "ratio:f=0.5 seed:i is_test:i=0 consumed_inputs:ints", 1, 3, function(a, node)
  local mask_dtype = node.version >= 10 and ms.bool_ or nil
  return function(x, ratio, training)
    local rate = ratio and define.number(ratio) or a.ratio
    local on = training and define.number(training) == true
    if not on or rate == 0 then return ops.identity(x), ops.ones(define.sizes(x), mask_dtype or x.dtype) end
    local y, mask = ops.dropout_with_mask(x, rate, a.seed)
    return y, ops.cast(mask, ms.bool_)
  end
end)

local function seed_of(a) return a.seed and math.abs(string.unpack("<i4", string.pack("<f", a.seed))) or nil end

define.define("Bernoulli", "dtype:i seed:f", 1, 1, function(a, node)
  local dtype = a.dtype and define.dtype(node, a.dtype)
  return function(x) return ops.cast(ops.less(ops.rand(define.sizes(x), ms.float32, seed_of(a)), x), dtype or x.dtype) end
end)

local function random(name, spec, least, draw)
  define.define(name, spec .. " dtype:i seed:f shape:ints", least, least, function(a, node)
    local dtype = a.dtype and define.dtype(node, a.dtype)
    if least == 0 and not a.shape then node.fail "shape is missing" end
    return function(x)
      local drawn = draw(a, a.shape or define.sizes(x), seed_of(a))
      local wanted = dtype or x and x.dtype or ms.float32
      return drawn.dtype == wanted and drawn or ops.cast(drawn, wanted)
    end
  end)
end
local function uniform(a, shape, seed) return ops.rand(shape, ms.float32, seed) * (a.high - a.low) + a.low end
local function normal(a, shape, seed) return ops.randn(shape, ms.float32, seed) * a.scale + a.mean end
random("RandomUniform", "low:f=0 high:f=1", 0, uniform)
random("RandomUniformLike", "low:f=0 high:f=1", 1, uniform)
random("RandomNormal", "mean:f=0 scale:f=1", 0, normal)
random("RandomNormalLike", "mean:f=0 scale:f=1", 1, normal)

define.define("Multinomial", "dtype:i=6 sample_size:i=1 seed:f", 1, 1, function(a, node)
  local dtype = define.dtype(node, a.dtype)
  return function(x) return ops.cast(ops.multinomial(ops.softmax(x, -1), a.sample_size, true, seed_of(a)), dtype) end
end)
