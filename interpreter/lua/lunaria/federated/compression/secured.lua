-- Compression under secure sums: what is linear in the vector, and the same for all clients, can be added up behind masks.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local FixedPoint = require("lunaria.federated.secure.fixed_point").FixedPoint
local quantized = require "lunaria.federated.compression.quantized"
local sketch = require "lunaria.federated.compression.sketch"
local largest = require "lunaria.federated.compression.largest"
local low_rank = require "lunaria.federated.compression.low_rank"
local signds = require "lunaria.federated.compression.signds"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

-- Why other codecs cannot be combined with a secure sum, and what can be done.
local reasons = {
  { largest.TopK, "each client sends places of its own, which masks would hide",
    "DiffSparseQuant has the same places for all, CountSketch adds up" },
  { largest.Sign, "signs with a scale of each client are no sum", "DiffSparseQuant sends few elements of few bits" },
  { signds.SignDS, "its updates are private without masks, and are read one by one", "send them as they are" },
  { low_rank.PowerSGD, "a round has two sums, of left and of right", "encode each of them by FixedPoint" },
}

local Secured = class.define(nil, "Secured", "codec, code", [[A codec and a fixed-point code, for vectors that a secure sum
adds up. codec: a DiffSparseQuant, of which the places count (the ring takes the part of quantisation, with the same
range for all), or a CountSketch.

  > secured = ms.federated.compression.secured(ms.federated.compression.DiffSparseQuant { rate = 0.5 }, ms.federated.secure.FixedPoint())
  > tostring(secured) --> Secured<DiffSparseQuant>]])
Secured._called = "codec"

function Secured:setup(a) self.codec, self.code = a.codec, a.code end
function Secured:__tostring() return ("Secured<%s>"):format(getmetatable(self.codec)._name) end

--- How many elements the sum has for vectors of `size`: that of ms.federated.secure.Client.
---     > code = ms.federated.secure.FixedPoint()
---     > ms.federated.compression.secured(ms.federated.compression.CountSketch { columns = 10 }, code):size(1000) --> 51
function Secured:size(size)
  size = check.positive("size", "size", size)
  if class.is_a(self.codec, sketch.CountSketch) then return self.codec.rows * self.codec.columns + 1 end
  return self.codec:places(size).size + 1
end

--- The elements of a vector, an int64 tensor, and how many values were clipped. x: a tensor (n,) of float32 or float64. weight: a whole
--- number (1). round: its number (0).
---     > codec = ms.federated.compression.DiffSparseQuant { rate = 0.5 }
---     > ms.federated.compression.secured(codec, ms.federated.secure.FixedPoint()):encode(ms.randn(10)).shape --> (6,)
function Secured:encode(x, weight, round)
  weight, round = arguments.named("encode", { "weight", "round" }, weight, round)
  quantized.vector("encode", x)
  if class.is_a(self.codec, sketch.CountSketch) then return self.code:encode(self.codec:sketch(x), weight) end
  return self.code:encode(x[self.codec:places(x.size, round)], weight)
end

--- The weighted mean of a sum of elements: a float64 tensor (size,), zeros (or, of a sketch, estimates) at places that were not sent; and
--- the sum of the weights. sum: an int64 tensor. size: of the vectors. round: its number (0).
---     > codec = ms.federated.compression.DiffSparseQuant { rate = 1.0 }
---     > secured = ms.federated.compression.secured(codec, ms.federated.secure.FixedPoint())
---     > secured:decode(secured:encode(ms.tensor { 0.5, 0.25 }), 2):tolist()[1] --> 0.5
function Secured:decode(sum, size, round)
  size, round = arguments.named("decode", { "size", "round" }, size, round)
  size = check.positive("decode", "size", size)
  local mean, weight = self.code:decode(sum)
  if class.is_a(self.codec, sketch.CountSketch) then return self.codec:estimate(mean, size), weight end
  local places = self.codec:places(size, round)
  if mean.size ~= places.size then fail("decode", ("the sum has %d values, and %d were sent"):format(mean.size, places.size)) end
  local whole = ms.ops.zeros({ size }, ms.float64)
  whole[places] = mean
  return whole, weight
end

--- A codec combined with a secure sum, where the mathematics allows it. codec: a DiffSparseQuant or a CountSketch; others are refused with
--- the reason. code: a FixedPoint. Gives an object with size, encode and decode.
---     > (pcall(ms.federated.compression.secured, ms.federated.compression.TopK(), ms.federated.secure.FixedPoint())) --> false
function M.secured(codec, code)
  local where = "secured"
  for _, reason in ipairs(reasons) do
    if class.is_a(codec, reason[1]) then
      fail(where, ("%s cannot be combined with secure sums: %s"):format(reason[1]._name, reason[2]), reason[3])
    end
  end
  if not class.is_a(codec, quantized.DiffSparseQuant) and not class.is_a(codec, sketch.CountSketch) then
    fail(where, "codec must be a DiffSparseQuant or a CountSketch, got " .. describe(codec))
  end
  if not class.is_a(code, FixedPoint) then fail(where, "code must be a ms.federated.secure.FixedPoint, got " .. describe(code)) end
  return Secured(codec, code)
end

return M
