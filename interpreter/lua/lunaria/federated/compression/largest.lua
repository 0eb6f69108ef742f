-- The largest elements of a vector, and its signs, with what was left out added to the next vector.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_compression"
local quantized = require "lunaria.federated.compression.quantized"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

--- The places of the k elements of the greatest absolute values, of equal ones the first, in ascending order: an int64 tensor (k,). x: a
--- tensor (n,).
---     > ms.federated.compression.top_k(ms.tensor { 0.5, -3.0, 1.0 }, 2):tolist()[1] --> 1
function M.top_k(x, k)
  k = arguments.named("top_k", { "k" }, k)
  return core.largest(quantized.vector("top_k", x), check.positive("top_k", "k", k))
end

-- The base of codecs with error feedback: what a compressed vector lacks is kept and added to the next one.
local function with_residual(self, x)
  x = x:astype(f64)
  local residual = self.feedback and self.residual
  if not residual then return x end
  if residual.size ~= x.size then
    fail("compress", ("the vector has %d elements, and what was left of the last one has %d"):format(x.size, residual.size))
  end
  return x + residual
end

local TopK = class.define(nil, "TopK", "rate=0.01, bits=0, feedback=true", [[The largest elements of a vector and their places (Lin and
others 2018). rate: the share of the elements that is sent, above 0 and at most 1. bits: of each, 1 to 16, or 0 for float32. feedback:
whether what is left out is kept in `residual` and added to the next vector, so that it arrives some time; a codec then serves one client.

  > codec = ms.federated.compression.TopK { rate = 0.5 }
  > first = codec:decompress(codec:compress(ms.tensor { 1.0, -3.0 }), 2)
  > second = codec:decompress(codec:compress(ms.tensor { 1.0, 0.0 }), 2)
  > first[1]:item(), second[0]:item() --> -3.0	2.0]])
TopK._called = "codec"
M.TopK = TopK

function TopK:setup(a)
  self.rate = check.number_positive("TopK", "rate", a.rate) + 0.0
  if self.rate > 1 then fail("TopK", ("rate must be at most 1, got %g"):format(self.rate)) end
  self.bits = check.not_negative("TopK", "bits", a.bits)
  if self.bits > 16 then fail("TopK", ("bits must be 0 for float32, or from 1 to 16, got %d"):format(self.bits)) end
  self.feedback = check.boolean("TopK", "feedback", a.feedback)
end

--- How many elements of a vector of `size` are sent.
---     > ms.federated.compression.TopK({ rate = 0.1 }):count(33) --> 3
function TopK:count(size)
  return math.max(1, math.floor(check.positive("count", "size", size) * self.rate))
end

--- A vector as a text. x: a tensor (n,) of float32 or float64.
---     > #ms.federated.compression.TopK():compress(ms.randn(10000)) < 800 --> true
function TopK:compress(x)
  local whole = with_residual(self, quantized.vector("compress", x))
  local bytes = core.top(whole, self:count(whole.size), self.bits)
  if self.feedback then self.residual = whole - self:decompress(bytes, whole.size) end
  return bytes
end

--- The vector for which a text stands: a float64 tensor (size,), zeros where nothing was sent. bytes: of compress. size: of the vector.
---     > codec = ms.federated.compression.TopK { rate = 0.5, feedback = false }
---     > codec:decompress(codec:compress(ms.tensor { 1.0, -3.0 }), 2):tolist()[1] --> 0.0
function TopK:decompress(bytes, size)
  size = arguments.named("decompress", { "size" }, size)
  if type(bytes) ~= "string" then fail("decompress", "bytes must be a text, got " .. describe(bytes)) end
  size = check.positive("decompress", "size", size)
  return core.from_top(size, self:count(size), bytes)
end

local Sign = class.define(nil, "Sign", "feedback=true", [[The signs of a vector, one bit each, and the mean of its absolute values (signSGD,
Bernstein and others 2018; with feedback Karimireddy and others 2019). feedback: whether what is lost is kept in `residual` and added to
the next vector; a codec then serves one client.

  > codec = ms.federated.compression.Sign()
  > codec:decompress(codec:compress(ms.tensor { 1.0, -3.0 }), 2):tolist()[2] --> -2.0]])
Sign._called = "codec"
M.Sign = Sign

function Sign:setup(a) self.feedback = check.boolean("Sign", "feedback", a.feedback) end

--- A vector as a text of (n + 71) // 8 bytes. x: a tensor (n,) of float32 or float64.
---     > #ms.federated.compression.Sign():compress(ms.randn(800)) --> 108
function Sign:compress(x)
  local whole = with_residual(self, quantized.vector("compress", x))
  if whole.size == 0 or not ops.all(ops.isfinite(whole)):item() then fail("compress", "x must hold numbers, and at least one") end
  local scale = ops.mean(ops.abs(whole)):item()
  local bytes = ("<d"):pack(scale) .. core.pack(-ops.less(whole, 0.0):astype(ms.int64), 1)
  if self.feedback then self.residual = whole - self:decompress(bytes, whole.size) end
  return bytes
end

--- The vector for which a text stands: a float64 tensor (size,). bytes: of compress. size: of the vector.
---     > codec = ms.federated.compression.Sign { feedback = false }
---     > codec:decompress(codec:compress(ms.tensor { 1.0, -3.0 }), 2):tolist()[1] --> 2.0
function Sign:decompress(bytes, size)
  local where = "decompress"
  size = arguments.named(where, { "size" }, size)
  if type(bytes) ~= "string" or #bytes < 8 then fail(where, "bytes must be a text that compress gave, got " .. describe(bytes)) end
  local scale = ("<d"):unpack(bytes)
  if not (scale >= 0 and scale < math.huge) then fail(where, ("the scale of a text is %g, which no vector has"):format(scale)) end
  local negative = core.unpack(bytes:sub(9), 1, check.positive(where, "size", size))
  return (negative:astype(f64) * 2.0 + 1.0) * scale
end

return M
