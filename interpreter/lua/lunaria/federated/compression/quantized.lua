-- Quantisation between the least and the greatest value, packed bits, and updates at places of a common seed.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_compression"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

--- A vector of float32 or float64 for the core, which copies what lies elsewhere.
function M.vector(where, x)
  if not ms.is_tensor(x) or x.ndim ~= 1 or x.dtype ~= ms.float32 and x.dtype ~= ms.float64 then
    fail(where, "x must be a float32 or float64 tensor (n,), got " .. describe(x))
  end
  return x
end

local function bits_of(where, bits, default, most)
  bits = bits == nil and default or check.positive(where, "bits", bits)
  if bits > most then fail(where, ("bits must be from 1 to %d, got %d"):format(most, bits)) end
  return bits
end

--- A vector as whole numbers of few bits, between its least and its greatest value: scale = (high - low) / (2^bits - 1), and
--- q = floor((x - low) / scale + 1/2) - 2^(bits - 1). x: a tensor (n,) of float32 or float64. bits: 1 to 16 (8). Gives a table { values (an
--- int32 tensor), low, high, scale, bits }, which dequantize takes.
---     > q = ms.federated.compression.quantize(ms.tensor { 0.0, 0.5, 1.0 }, 2)
---     > q.values:tolist()[1], q.values:tolist()[2], q.values:tolist()[3] --> -2	0	1
function M.quantize(x, bits)
  bits = bits_of("quantize", arguments.named("quantize", { "bits" }, bits), 8, 16)
  local values, low, high, scale = core.quantise(M.vector("quantize", x), bits)
  return { values = values, low = low, high = high, scale = scale, bits = bits }
end

--- The vector for which a table of quantize stands: a float64 tensor (n,), off by at most half of its scale. quantized: that table.
---     > q = ms.federated.compression.quantize(ms.tensor { 0.0, 0.5, 1.0 }, 8)
---     > ("%.4f"):format(ms.federated.compression.dequantize(q)[1]:item()) --> 0.5020
function M.dequantize(quantized)
  local where, q = "dequantize", quantized
  if type(q) ~= "table" or not ms.is_tensor(q.values) then fail(where, "a table that quantize gave is expected, got " .. describe(q)) end
  local low, high = check.number(where, "low", q.low), check.number(where, "high", q.high)
  return core.dequantise(q.values:reshape { -1 }:astype(ms.int64), low, high, bits_of(where, q.bits, 8, 16))
end

--- Whole numbers in `bits` bits each (1 to 32), as two's complement, the most significant bit first, one after the other: a text, whose
--- last byte is filled up with zeros. values: a tensor of integers.
---     > ms.federated.compression.pack_bits(ms.tensor({ 3, -4, 3 }, ms.int32), 3):byte(1, -1) --> 113	128
function M.pack_bits(values, bits)
  bits = bits_of("pack_bits", arguments.named("pack_bits", { "bits" }, bits), 8, 32)
  if not ms.is_tensor(values) or ms.ops.is_floating_point(values) then
    fail("pack_bits", "values must be a tensor of integers, got " .. describe(values))
  end
  return core.pack(values:reshape { -1 }:astype(ms.int64), bits)
end

--- The numbers of pack_bits: an int32 tensor (count,). bytes: the text. bits: of each number. count: how many there are.
---     > bytes = ms.federated.compression.pack_bits(ms.tensor({ 3, -4, 3 }, ms.int32), 3)
---     > ms.federated.compression.unpack_bits(bytes, 3, 3):tolist()[2] --> -4
function M.unpack_bits(bytes, bits, count)
  local where = "unpack_bits"
  bits, count = arguments.named(where, { "bits", "count" }, bits, count)
  if type(bytes) ~= "string" then fail(where, "bytes must be a text, got " .. describe(bytes)) end
  return core.unpack(bytes, bits_of(where, bits, 8, 32), check.not_negative(where, "count", count))
end

--- The places, of 0 to size - 1, at which clients with the seed send elements: floor(size * rate) of them (at least 1) in ascending order,
--- every such set as likely as any other. Gives an int64 tensor.
---     > ms.federated.compression.sparse_places(99221, 0.08, 1).shape --> (7937,)
function M.sparse_places(size, rate, seed)
  local where = "sparse_places"
  rate, seed = arguments.named(where, { "rate", "seed" }, rate, seed)
  size = check.positive(where, "size", size)
  return core.places(size, check.number(where, "rate", rate) + 0.0, check.integer(where, "seed", seed == nil and 0 or seed))
end

local DiffSparseQuant = class.define(nil, "DiffSparseQuant", "rate=0.4, bits=8, seed=0, block=0", [[Differences of weights at places that
follow from a common seed, quantised (MindSpore Federated's DIFF_SPARSE_QUANT): places cost no bytes. rate: the share of the elements
that is sent, above 0 and at most 1. bits: of each, 1 to 16. seed: of the job; each round has places of its own. block: so many sent
elements have a least and a greatest value of their own; 0: all have one.

  > codec = ms.federated.compression.DiffSparseQuant { rate = 0.5, seed = 3 }
  > difference = ms.tensor({ 0.5, -1.0, 0.25, 1.0 })
  > bytes = codec:compress(difference, 1)
  > codec:decompress(bytes, 4, 1).shape --> (4,)]])
DiffSparseQuant._called = "codec"
M.DiffSparseQuant = DiffSparseQuant

function DiffSparseQuant:setup(a)
  local where = "DiffSparseQuant"
  self.rate = check.number_positive(where, "rate", a.rate) + 0.0
  if self.rate > 1 then fail(where, ("rate must be at most 1, got %g"):format(self.rate)) end
  self.bits = bits_of(where, a.bits, 8, 16)
  self.seed, self.block = check.integer(where, "seed", a.seed), check.not_negative(where, "block", a.block)
end

-- The seed of a round: the fractional part of the golden ratio keeps rounds of one seed and seeds of one round apart.
local function plan_of(self, where, size, round)
  round = round == nil and 0 or check.not_negative(where, "round", round)
  return { size = size, rate = self.rate, seed = self.seed ~ (round * -7046029254386353131), bits = self.bits, block = self.block }
end

--- The places of a round, an int64 tensor. size: elements of the vector.
---     > ms.federated.compression.DiffSparseQuant({ rate = 0.5 }):places(10, 3).shape --> (5,)
function DiffSparseQuant:places(size, round)
  round = arguments.named("places", { "round" }, round)
  local plan = plan_of(self, "places", check.positive("places", "size", size), round)
  return core.places(plan.size, plan.rate, plan.seed)
end

--- A difference as a text. x: a tensor (n,) of float32 or float64. round: its number (0).
---     > #ms.federated.compression.DiffSparseQuant():compress(ms.randn(1000), 1) < 500 --> true
function DiffSparseQuant:compress(x, round)
  round = arguments.named("compress", { "round" }, round)
  return core.sparse(plan_of(self, "compress", M.vector("compress", x).size, round), x)
end

--- The difference for which a text stands: a float64 tensor (size,), with zeros at the other places. bytes: of compress. size: elements of
--- the vector. round: its number (0). An error where the text is of another codec, size or round.
---     > codec = ms.federated.compression.DiffSparseQuant { rate = 1.0 }
---     > ("%.3f"):format(codec:decompress(codec:compress(ms.tensor { -1.0, 0.5 }), 2)[1]:item()) --> 0.500
function DiffSparseQuant:decompress(bytes, size, round)
  local where = "decompress"
  size, round = arguments.named(where, { "size", "round" }, size, round)
  if type(bytes) ~= "string" then fail(where, "bytes must be a text, got " .. describe(bytes)) end
  return core.from_sparse(plan_of(self, where, check.positive(where, "size", size), round), bytes)
end

return M
