-- Watermarks: bits in the weights of a network, which its owner can read (Uchida et al., 2017), and inputs with answers of their own (Adi
-- et al.,
-- 2018), for which the network need not be opened.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local Watermark = class.define(nil, "Watermark", "parameter, bits, key",
  [[Bits in a parameter of a network: the signs of so many random projections of its mean over the first axis. parameter: the parameter.
bits: a list of 0 and 1. key: an integer, the seed of the projections, which the owner keeps. loss() is added to the loss of a training,
strength times, and puts the bits in; read() gives them, errors() how many are wrong.

  > net = ms.nn.SequentialCell(ms.nn.Dense(64, 16))
  > mark = ms.armour.protection.Watermark(net[1].weight, { 1, 0, 1, 1, 0, 0, 1, 0 }, 1234)
  > optimizer = ms.nn.Adam(net:trainable_params(), 0.01)
  > step = ms.value_and_grad(function() return mark:loss() end, nil, optimizer.parameters)
  > for _ = 1, 50 do optimizer((select(2, step()))) end
  > mark:errors() --> 0]])
Watermark._called = "watermark"

function Watermark:setup(a)
  local name = "Watermark"
  if not ms.is_tensor(a.parameter) or a.parameter.ndim < 1 or not ops.is_floating_point(a.parameter) then
    fail(name, "parameter must be a floating parameter of a network, got " .. describe(a.parameter))
  end
  if type(a.bits) ~= "table" or getmetatable(a.bits) ~= nil or #a.bits == 0 then
    fail(name, "bits must be a list of 0 and 1, got " .. describe(a.bits))
  end
  for i, bit in ipairs(a.bits) do
    if bit ~= 0 and bit ~= 1 then fail(name, ("bit %d must be 0 or 1, got %s"):format(i, describe(bit))) end
  end
  local key = common.secret(name, "key", a.key)
  self._parameter, self._bits = a.parameter, a.bits
  local size = a.parameter.size // (a.parameter.ndim > 1 and a.parameter.shape[1] or 1)
  if size < #a.bits then
    fail(name, ("%d bits don't fit: a row of the parameter has %d elements"):format(#a.bits, size))
  end
  self._projection = common.generator(key):normal({ size, #a.bits }, a.parameter.dtype)
  self._wanted = ms.tensor(a.bits, a.parameter.dtype)
end

function Watermark:_logits()
  local p = self._parameter
  local row = p.ndim > 1 and ops.mean(p, 0):reshape { 1, -1 } or p:reshape { 1, -1 }
  return ops.matmul(row, self._projection):reshape { -1 }
end

--- The cross-entropy of the bits: a term of the loss. strength: a factor, 1 by default.
function Watermark:loss(strength)
  strength = arguments.named("loss", { "strength" }, strength)
  strength = strength == nil and 1.0 or check.number_positive("loss", "strength", strength)
  return strength * ops.binary_cross_entropy_with_logits(self:_logits(), self._wanted, ops.ones_like(self._wanted),
    ops.ones_like(self._wanted))
end

--- The bits that are in the parameter now: a list. parameter: another one to read them from, as that of a network that may be a copy.
function Watermark:read(parameter)
  local own = self._parameter
  parameter = arguments.named("read", { "parameter" }, parameter)
  if parameter ~= nil then
    if not ms.is_tensor(parameter) or tostring(parameter.shape) ~= tostring(own.shape) then
      fail("read", ("parameter must have the shape %s, got %s"):format(tostring(own.shape), describe(parameter)))
    end
    own = parameter
  end
  local other = setmetatable({ _parameter = own, _projection = self._projection }, Watermark)
  return ops.greater(other:_logits(), 0):astype(ms.int32):tolist()
end

--- How many bits of a parameter are not those of the mark: of a network without it half of them, up to chance.
function Watermark:errors(parameter)
  local wrong = 0
  for i, bit in ipairs(self:read(parameter)) do wrong = wrong + (bit ~= self._bits[i] and 1 or 0) end
  return wrong
end

--- The probability that a network without the mark agrees in as many bits by chance, each being a coin's: the strength of the
--- evidence. parameter: as for read.
function Watermark:p_value(parameter)
  local n, wrong, sum, term = #self._bits, self:errors(parameter), 0.0, 1.0
  for k = 0, wrong do
    sum = sum + term
    term = term * (n - k) / (k + 1)
  end
  return sum / 2.0 ^ n
end

local TriggerSet = class.define(nil, "TriggerSet", "shape, classes, count=30, key=0",
  [[Random inputs with random classes of their own, learnt along with the data: who has the key can show whose network it is by asking it.
shape: of one input, a list. classes: their number. count: how many inputs. key: the seed, which the owner keeps.

  > set = ms.armour.protection.TriggerSet({ 1, 8, 8 }, 10, { count = 20, key = 99 })
  > set.inputs.shape --> (20, 1, 8, 8)
  > set:accuracy(function(x) return ms.ops.one_hot(set.labels, 10) end) --> 1.0]])
TriggerSet._called = "trigger set"

function TriggerSet:setup(a)
  local name = "TriggerSet"
  if type(a.shape) ~= "table" or #a.shape == 0 then fail(name, "shape must be the sizes of an input, got " .. describe(a.shape)) end
  local sizes = {}
  for i, size in ipairs(a.shape) do sizes[i] = check.positive(name, "shape", size) end
  self.classes = check.positive(name, "classes", a.classes)
  local count = check.positive(name, "count", a.count)
  local draws = common.generator(common.secret(name, "key", a.key))
  --- The inputs (count, ...) within 0 and 1, and their classes (count,), int32.
  self.inputs = draws:uniform({ count, table.unpack(sizes) })
  self.labels = draws:integers({ count }, 0, self.classes):astype(ms.int32)
end

--- The share of the inputs for which a model gives the classes of the set. model: a cell or function that gives (N, classes).
function TriggerSet:accuracy(model)
  local predict = common.predictor("accuracy", model)
  return ops.mean(ops.equal(ops.argmax(predict(self.inputs), 1):astype(ms.int32), self.labels):astype(ms.float64)):item()
end

return { Watermark = Watermark, TriggerSet = TriggerSet }
