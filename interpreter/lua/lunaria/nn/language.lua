-- Layers of language models that write token by token: weights in blocks, rotary positions, a cache of keys and values. A position
-- is a tensor, so that a program that graph mode compiled serves all of them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local init = require "lunaria.common.initializer"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell

local RMSNorm = layer(Cell, "RMSNorm", "size, epsilon=1e-6, gamma_init=\"ones\", dtype=nil",
  [[Divides the last axis, of `size` elements, by its root mean square and multiplies it by the parameter gamma.

epsilon is added to the mean square. gamma_init: the first value of gamma.
  > ms.nn.RMSNorm(2)(ms.tensor { { 3.0, 3.0 } }):tolist()[1][1] > 0.999 --> true]])
RMSNorm._full_precision = true

function RMSNorm:setup(a)
  self.size = check.positive("RMSNorm", "size", a.size)
  self.epsilon = check.number_not_negative("RMSNorm", "epsilon", a.epsilon)
  self.gamma = ms.Parameter(init.initializer(a.gamma_init, { self.size }, a.dtype), "gamma")
end

function RMSNorm:construct(x)
  return (ops.rms_norm(x, self.gamma, self.epsilon))
end

function RMSNorm:extend_repr() return ("size=%d, epsilon=%g"):format(self.size, self.epsilon) end

local forms = { "q8_0", "q4_0", "q4_k", "q6_k" }

-- A weight as a parameter that is not trained where it is in blocks.
local function weight_of(name, weight, form)
  if not ms.is_tensor(weight) then fail(name, "weight must be a tensor, got " .. describe(weight)) end
  if form ~= nil then check.choice(name, "form", form, forms) end
  return ms.is_parameter(weight) and weight or ms.Parameter(weight, "weight", form == nil)
end

local BlockDense = layer(Cell, "BlockDense", "weight, form=nil, bias=nil",
  [[Fully connected layer with a given weight (outputs, inputs), in blocks where form says so: "q8_0", "q4_0", "q4_k" or "q6_k".

Blocks are a tensor of bytes, as ms.load_gguf and ms.ops.quantize_blocks give them, and stay as they are. Without a form the weight
is trained as that of nn.Dense. bias: a tensor of `outputs` numbers, or nil.
  > w = ms.ops.quantize_blocks(ms.ones { 3, 64 }, "q8_0")
  > ms.nn.BlockDense(w, { form = "q8_0" })(ms.ones { 2, 64 }).shape --> (2, 3)]])

function BlockDense:setup(a)
  self.form = a.form
  self.weight = weight_of("BlockDense", a.weight, a.form)
  if a.bias ~= nil then self.bias = ms.is_parameter(a.bias) and a.bias or ms.Parameter(a.bias, "bias") end
end

function BlockDense:construct(x)
  if self.form then return ops.block_dense(x, self.weight, self.form, self.bias) end
  return ops.dense(x, self.weight, self.bias)
end

function BlockDense:extend_repr()
  return ("outputs=%d, form=%s, bias=%s"):format(self.weight:sizes(0), tostring(self.form), self.bias ~= nil)
end

local BlockEmbedding = layer(Cell, "BlockEmbedding", "weight, form=nil",
  [[Rows of a given table (rows, size) for the indices in the input, in blocks where form says so, as nn.BlockDense has it.

  > w = ms.ops.quantize_blocks(ms.ones { 5, 32 }, "q4_0")
  > ms.nn.BlockEmbedding(w, { form = "q4_0" })(ms.tensor { { 1, 4 } }).shape --> (1, 2, 32)]])

function BlockEmbedding:setup(a)
  self.form = a.form
  self.weight = weight_of("BlockEmbedding", a.weight, a.form)
end

function BlockEmbedding:construct(indices)
  local rows = ops.gather(self.weight, indices, 0)
  if self.form then return ops.dequantize_blocks(rows, self.form) end
  return rows
end

function BlockEmbedding:extend_repr() return ("rows=%d, form=%s"):format(self.weight:sizes(0), tostring(self.form)) end

-- What Llama 3.1 makes of the frequencies: those with wave lengths far above the length of its first training are divided by the
-- factor, short ones stay, and between the two it goes over.
local function llama3(frequency, s)
  local wave = 2 * math.pi / frequency
  local long, short = s.original_length / s.low_freq_factor, s.original_length / s.high_freq_factor
  if wave < short then return frequency end
  if wave > long then return frequency / s.factor end
  local part = (s.original_length / wave - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
  return (1 - part) * frequency / s.factor + part * frequency
end

local RotaryEmbedding = layer(Cell, "RotaryEmbedding", "size, length, base=10000, interleaved=false, scaling=nil, factors=nil",
  [[Turns pairs of the last axis of (batch, heads, n, size) by angles that grow with the position (Su and others: RoFormer, 2021):
cell(x, position), where position, a tensor of one integer, is that of the first of the n; 0 where it is left out.

Pair i turns by position * base ^ (-2 i / size). It is made of elements i and i + size / 2, or with interleaved = true of 2 i and
2 i + 1. length: how many positions there are. scaling: { type = "linear", factor = }, or { type = "llama3", factor =,
low_freq_factor =, high_freq_factor =, original_length = }. factors: a list of size / 2 numbers that the frequencies are divided by.
  > ms.nn.RotaryEmbedding(4, 16)(ms.ones { 1, 1, 2, 4 }):tolist()[1][1][1][1] --> 1.0]])

function RotaryEmbedding:setup(a)
  local name = "RotaryEmbedding"
  self.size, self.length = check.positive(name, "size", a.size), check.positive(name, "length", a.length)
  if self.size % 2 ~= 0 then fail(name, ("size must be even, got %d"):format(self.size)) end
  self.interleaved = check.boolean(name, "interleaved", a.interleaved)
  local half, base, scaling = self.size // 2, check.number_not_negative(name, "base", a.base), a.scaling or { type = "none" }
  check.choice(name, "scaling.type", scaling.type, { "none", "linear", "llama3" })
  local frequencies = {}
  for i = 0, half - 1 do
    local f = base ^ (-2 * i / self.size)
    if scaling.type == "linear" then f = f / scaling.factor end
    if scaling.type == "llama3" then f = llama3(f, scaling) end
    frequencies[i + 1] = a.factors and f / a.factors[i + 1] or f
  end
  -- In float64: an angle of some thousand turns would be a rough one in float32.
  local row = ops.reshape(ms.tensor(frequencies, ms.float64), { 1, half })
  local angles = ops.reshape(ops.arange(self.length):astype(ms.float64), { self.length, 1 }) * row
  angles = self.interleaved and ops.repeat_interleave(angles, 2, 1) or ops.concat({ angles, angles }, 1)
  self.cos = ms.Parameter(ops.cos(angles):astype(ms.float32), "cos", false)
  self.sin = ms.Parameter(ops.sin(angles):astype(ms.float32), "sin", false)
end

--- The cosines and sines for RotaryEmbedding:turn: layers of one network share them. places: the positions, a tensor of integers.
function RotaryEmbedding:angles(places)
  return ops.gather(self.cos, places, 0), ops.gather(self.sin, places, 0)
end

--- x turned by angles.
function RotaryEmbedding:turn(x, cos, sin) return ops.rotary_position_embedding(x, cos, sin, self.interleaved and 1 or 0) end

function RotaryEmbedding:construct(x, position)
  local places = ops.arange(x:sizes(2))
  if position ~= nil then places = places + position end
  return self:turn(x, self:angles(places))
end

function RotaryEmbedding:extend_repr() return ("size=%d, length=%d, interleaved=%s"):format(self.size, self.length, self.interleaved) end

local KVCache = layer(Cell, "KVCache", "batch_size, heads, length, size",
  [[Keys and values of earlier tokens, in memory of a fixed size: cell(query, key, value, position, scale).

Key and value (batch, heads, n, size) are written to the places from position on, a tensor of one integer; the result is the attention
of the query (batch, query heads, n, size) to all places that are not behind it. The query may have several heads for each of the
cache's. scale: what the scores are multiplied by; 1 / sqrt(size) where it is left out. batch_size: how many
texts there are. length: how many places a text has.
  > cache = ms.nn.KVCache(1, 1, 8, 4)
  > cache(ms.ones { 1, 2, 1, 4 }, ms.ones { 1, 1, 1, 4 }, ms.ones { 1, 1, 1, 4 }, ms.tensor { 0 }).shape --> (1, 2, 1, 4)]])

function KVCache:setup(a)
  local name = "KVCache"
  local shape = { check.positive(name, "batch_size", a.batch_size), check.positive(name, "heads", a.heads),
    check.positive(name, "length", a.length), check.positive(name, "size", a.size) }
  self.length, self.scale = a.length, 1 / math.sqrt(a.size)
  self.keys = ms.Parameter(ops.zeros(shape, ms.float32), "keys", false)
  self.values = ms.Parameter(ops.zeros(shape, ms.float32), "values", false)
end

function KVCache:construct(query, key, value, position, scale)
  ops.cache_write(self.keys, key, position)
  ops.cache_write(self.values, value, position)
  return ops.cache_attention(query, self.keys, self.values, position, scale or self.scale)
end

function KVCache:extend_repr() return "shape=" .. tostring(self.keys.shape) end

return { RMSNorm = RMSNorm, BlockDense = BlockDense, BlockEmbedding = BlockEmbedding, RotaryEmbedding = RotaryEmbedding, KVCache = KVCache }
