-- Decoders: networks that give the scores of the next token for each token of a text. One class for Llama, Qwen 2 and 3, Mistral
-- and GPT-2, whose differences are entries of its configuration. Weights may be in blocks; where they come from is `load`'s matter.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local container = require "lunaria.nn.container"
local language = require "lunaria.nn.language"
local norms = require "lunaria.nn.norm"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local Cell = cells.Cell

-- The configuration with what follows from it. vocabulary, width, layers, heads, inner and length must be there.
local defaults = {
  kind = "llama", normalization = "rms", epsilon = 1e-5, mlp = "swiglu", positions = "rotary", base = 10000.0,
  interleaved = false, qkv_bias = false, out_bias = false, qk_norm = false, tied = false,
}

local function completed(config)
  if type(config) ~= "table" then fail("Decoder", "config must be a table, got " .. describe(config)) end
  local c = {}
  for key, value in pairs(defaults) do c[key] = value end
  for key, value in pairs(config) do c[key] = value end
  local function need_integers(keys)
    for _, key in ipairs(keys) do
      if math.type(c[key]) ~= "integer" or c[key] < 1 then
        fail("Decoder", ("config.%s must be a positive integer, got %s"):format(key, describe(c[key])))
      end
    end
  end
  need_integers { "vocabulary", "width", "layers", "heads", "inner", "length" }
  if c.kv_heads == nil then c.kv_heads = c.heads end
  if c.head_size == nil then c.head_size = c.width // c.heads end
  need_integers { "kv_heads", "head_size" }
  for _, key in ipairs { "epsilon", "base" } do
    if type(c[key]) ~= "number" then fail("Decoder", ("config.%s must be a number, got %s"):format(key, describe(c[key]))) end
  end
  if c.heads % c.kv_heads ~= 0 then
    fail("Decoder", ("config.heads (%d) must be a multiple of config.kv_heads (%d)"):format(c.heads, c.kv_heads))
  end
  return c
end

-- Weights of a network that is to be trained: `get(name, shape)` gives new ones.
local function new_weights(c)
  local deviation = 0.02
  return function(name, shape)
    if name:find "norm" then return name:find "bias$" and ops.zeros(shape) or ops.ones(shape) end
    if name:find "bias$" then return ops.zeros(shape) end
    -- The last matrices of a block add up over all blocks (Radford and others, 2019).
    local last = name:find "%.o%." or name:find "%.down%."
    return ops.randn(shape) * (last and deviation / math.sqrt(2 * c.layers) or deviation)
  end
end

local function normalization(c, get, name, size)
  if c.normalization == "layer" then
    local norm = norms.LayerNorm({ size }, { epsilon = c.epsilon })
    norm.gamma:assign((get(name .. ".weight", { size })))
    norm.beta:assign((get(name .. ".bias", { size })))
    return norm
  end
  local norm = language.RMSNorm(size, { epsilon = c.epsilon })
  norm.gamma:assign((get(name .. ".weight", { size })))
  return norm
end

local function dense(get, name, outputs, inputs, bias)
  local weight, form = get(name .. ".weight", { outputs, inputs })
  return language.BlockDense(weight, { form = form, bias = bias and (get(name .. ".bias", { outputs })) or nil })
end

local Block = Cell:extend("DecoderBlock")

function Block:init(c, get, name, rotary)
  local width, size = c.width, c.head_size
  self.heads, self.kv_heads, self.size, self.swiglu = c.heads, c.kv_heads, size, c.mlp == "swiglu"
  self.norm1 = normalization(c, get, name .. "norm1", width)
  self.q = dense(get, name .. "q", c.heads * size, width, c.qkv_bias)
  self.k = dense(get, name .. "k", c.kv_heads * size, width, c.qkv_bias)
  self.v = dense(get, name .. "v", c.kv_heads * size, width, c.qkv_bias)
  self.o = dense(get, name .. "o", width, c.heads * size, c.out_bias)
  if c.qk_norm then
    self.q_norm, self.k_norm = normalization(c, get, name .. "q_norm", size), normalization(c, get, name .. "k_norm", size)
  end
  self.norm2 = normalization(c, get, name .. "norm2", width)
  if self.swiglu then self.gate = dense(get, name .. "gate", c.inner, width) end
  self.up = dense(get, name .. "up", c.inner, width, c.out_bias)
  self.down = dense(get, name .. "down", width, c.inner, c.out_bias)
  -- In a table of its own: the decoder has the cell.
  self._rotary = { rotary }
end

local function by_heads(x, heads, size)
  local batch, n = x:sizes()
  return ops.transpose(ops.reshape(x, { batch, n, heads, size }), { 0, 2, 1, 3 })
end

function Block:attend(x, position, cos, sin)
  local batch, n = x:sizes()
  local q, k, v = by_heads(self.q(x), self.heads, self.size), by_heads(self.k(x), self.kv_heads, self.size),
    by_heads(self.v(x), self.kv_heads, self.size)
  if self.q_norm then q, k = self.q_norm(q), self.k_norm(k) end
  if cos then
    local rotary = self._rotary[1]
    q, k = rotary:turn(q, cos, sin), rotary:turn(k, cos, sin)
  end
  local seen
  if position ~= nil then
    seen = self.cache(q, k, v, position)
  else
    local group = self.heads // self.kv_heads
    if group > 1 then k, v = ops.repeat_interleave(k, group, 1), ops.repeat_interleave(v, group, 1) end
    seen = ops.attention(q, k, v, 1 / math.sqrt(self.size), true)
  end
  return self.o(ops.reshape(ops.transpose(seen, { 0, 2, 1, 3 }), { batch, n, self.heads * self.size }))
end

function Block:construct(x, position, cos, sin)
  x = x + self:attend(self.norm1(x), position, cos, sin)
  local y = self.norm2(x)
  if self.swiglu then return x + self.down(ops.silu(self.gate(y)) * self.up(y)) end
  return x + self.down(ops.gelu_tanh(self.up(y)))
end

local Decoder = Cell:extend("Decoder")
Decoder._doc = [[A network that gives the scores of the next token for each token of a text: ms.lite.Decoder(config).

config has vocabulary, width, layers, heads, inner (of the network in each layer) and length (the most tokens of a text), and what
differs from Llama: kv_heads and head_size; kind ("llama", "qwen2", "qwen3", "gpt2"), normalization ("rms" or "layer"), epsilon, mlp
("swiglu" or "gelu"), positions ("rotary" or "learned"), base, interleaved and scaling of nn.RotaryEmbedding, qkv_bias, out_bias,
qk_norm, tied (the scores come from the table of tokens). Weights are drawn anew; ms.lite.load_decoder reads them.

decoder(tokens) gives the scores (batch, n, vocabulary) of tokens (batch, n), to train with. decoder:begin(batch, length) makes caches
of keys and values; then decoder:step(tokens) takes further tokens and gives the scores (batch, vocabulary) after the last.
  > config = { vocabulary = 20, width = 16, layers = 1, heads = 2, kv_heads = 1, inner = 32, length = 8 }
  > ms.lite.Decoder(config)(ms.tensor { { 1, 2, 3 } }).shape --> (1, 3, 20)]]

--- get: a function of a name and a shape that gives a weight and its form, or nil: new weights.
function Decoder:init(config, get)
  local c = completed(config)
  get = get or new_weights(c)
  self.config = c
  local table_of_tokens, form = get("embed.weight", { c.vocabulary, c.width })
  self.embed = language.BlockEmbedding(table_of_tokens, { form = form })
  if c.positions == "learned" then
    self.places = language.BlockEmbedding((get("places.weight", { c.length, c.width })))
  else
    self.rotary = language.RotaryEmbedding(c.head_size, c.length,
      { base = c.base, interleaved = c.interleaved, scaling = c.scaling, factors = c.factors })
  end
  local blocks = {}
  for i = 1, c.layers do blocks[i] = Block(c, get, ("layers.%d."):format(i - 1), self.rotary) end
  self.layers = container.CellList(blocks)
  self.norm = normalization(c, get, "norm", c.width)
  if not c.tied then self.head = dense(get, "head", c.vocabulary, c.width) end
  self._state = {}
end

-- Features of the tokens.
local function features(self, tokens, position)
  local n = tokens:sizes(1)
  local x, places, cos, sin = self.embed(tokens), ops.arange(n), nil, nil
  if position ~= nil then places = places + position end
  if self.rotary then
    cos, sin = self.rotary:angles(places)
  else
    x = x + self.places(places)
  end
  for i = 1, #self.layers do x = self.layers[i](x, position, cos, sin) end
  return self.norm(x)
end

local function scores_of(self, x)
  if self.head then return self.head(x) end
  local e = self.embed
  if e.form then return ops.block_dense(x, e.weight, e.form) end
  return ops.dense(x, e.weight)
end

function Decoder:construct(tokens) return scores_of(self, features(self, tokens)) end

-- The scores after token `last` of some from a position on.
local function scores_after(self, tokens, position, last)
  return ops.squeeze(scores_of(self, ops.gather(features(self, tokens, position), last, 1)), 1)
end

local begin_signature = arguments.signature "batch_size=1, length=nil, compile=true"

--- Makes caches for texts and begins anew: decoder:begin(batch_size, length, { compile = true }). Caches that fit are kept. batch_size: how
--- many texts there are, 1. length: the most tokens of a text, the network's length where it is left out. compile: false has no step
--- compiled. Gives the decoder.
function Decoder:begin(...)
  local a = arguments.bind("begin", begin_signature, ...)
  local c, state = self.config, self._state
  local batch_size = check.positive("begin", "batch_size", a.batch_size)
  local length = math.min(a.length == nil and c.length or check.positive("begin", "length", a.length), c.length)
  if state.batch ~= batch_size or (state.length or 0) < length then
    for i = 1, #self.layers do self.layers[i].cache = language.KVCache(batch_size, c.kv_heads, length, c.head_size) end
    state.batch, state.length, state.run = batch_size, length, nil
  end
  state.position = 0
  if not state.run then
    local function run(tokens, position, last) return scores_after(self, tokens, position, last) end
    state.run = a.compile == false and run or ms.jit(run)
  end
  return self
end

-- Prompts are taken in parts of these sizes, the last one filled up, so that a few compiled programs serve all lengths.
local parts = { 1, 8, 32, 128, 512 }

local function part_for(count, free)
  for _, size in ipairs(parts) do
    if size >= count then return math.min(size, math.max(free, count)) end
  end
  return parts[#parts]
end

--- Takes further tokens and gives the scores (batch, vocabulary) after the last. tokens: (batch, n), or a list of a single text's.
function Decoder:step(tokens)
  local state = self._state
  if not state.run then self:begin(1) end
  if type(tokens) == "table" then tokens = ms.tensor({ tokens }, ms.int64) end
  local count = tokens:sizes(1)
  if state.position + count > state.length then
    fail("step", ("%d tokens after %d do not fit into caches of %d"):format(count, state.position, state.length),
      "decoder:begin(batch, length) makes larger ones")
  end
  local at, scores = 0, nil
  while at < count do
    local here = math.min(count - at, parts[#parts])
    local size = part_for(here, state.length - state.position)
    local part = ops.narrow(tokens, 1, at, here)
    if size > here then part = ops.concat({ part, ops.zeros({ state.batch, size - here }, part.dtype) }, 1) end
    scores = state.run(part, ms.tensor({ state.position }, ms.int64), ms.tensor({ here - 1 }, ms.int64))
    at, state.position = at + here, state.position + here
  end
  return scores
end

--- How many tokens the caches hold.
function Decoder:position() return self._state.position or 0 end

--- Forgets the tokens after the first `count`.
function Decoder:rewind(count)
  if count > self:position() then fail("rewind", ("there are %d tokens, not %d"):format(self:position(), count)) end
  self._state.position = count
end

return { Decoder = Decoder }
