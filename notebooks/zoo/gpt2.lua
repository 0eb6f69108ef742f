-- GPT-2 (Radford et al. 2019): blocks of causal attention over tokens, normalised before each part. The scores of the next
-- token come from the table of tokens itself.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local Block = nn.Cell:extend("GPT2Block")

function Block:init(width, heads)
  self.heads = heads
  self.ln_1 = nn.LayerNorm({ width }, { epsilon = 1e-5 })
  self.c_attn = nn.Dense(width, 3 * width)
  self.c_proj = nn.Dense(width, width)
  self.ln_2 = nn.LayerNorm({ width }, { epsilon = 1e-5 })
  self.c_fc = nn.Dense(width, 4 * width)
  self.c_out = nn.Dense(4 * width, width)
end

function Block:construct(x, mask)
  local batch, length, width = x:sizes()
  local size = width // self.heads
  local function by_heads(part) return ops.transpose(ops.reshape(part, { batch, length, self.heads, size }), { 0, 2, 1, 3 }) end
  local q, k, v = ops.split(self.c_attn(self.ln_1(x)), width, -1)
  local scores = ops.matmul(by_heads(q), ops.swapaxes(by_heads(k), -1, -2)) / math.sqrt(size) + mask
  local seen = ops.matmul(ops.softmax(scores, -1), by_heads(v))
  x = x + self.c_proj(ops.reshape(ops.transpose(seen, { 0, 2, 1, 3 }), { batch, length, width }))
  return x + self.c_out(ops.gelu_tanh(self.c_fc(self.ln_2(x))))
end

local GPT2 = nn.Cell:extend("GPT2")

function GPT2:init(c)
  self.wte = nn.Embedding(c.vocabulary, c.width, { embedding_table = ms.common.initializer.Normal(0.02) })
  self.wpe = nn.Embedding(c.length, c.width, { embedding_table = ms.common.initializer.Normal(0.02) })
  local blocks = {}
  for i = 1, c.layers do blocks[i] = Block(c.width, c.heads) end
  self.h = nn.CellList(blocks)
  self.ln_f = nn.LayerNorm({ c.width }, { epsilon = 1e-5 })
end

-- tokens (batch, length) -> scores (batch, length, vocabulary)
function GPT2:construct(tokens)
  local length = tokens:sizes(1)
  local x = self.wte(tokens) + self.wpe(ops.arange(length))
  local mask = ops.triu(ops.full({ length, length }, -1e9), 1)
  for i = 1, #self.h do x = self.h[i](x, mask) end
  return ops.matmul(self.ln_f(x), ops.swapaxes(self.wte.embedding_table, 0, 1))
end

local M = {}

local sizes = { small = { 768, 12, 12 }, medium = { 1024, 24, 16 }, large = { 1280, 36, 20 }, xl = { 1600, 48, 25 } }

--- What a size ("small", "medium", "large", "xl") means: { vocabulary =, length =, width =, layers =, heads = }.
function M.config(size)
  local width, layers, heads = table.unpack(sizes[size] or error("gpt2: there is no size " .. tostring(size), 2))
  return { vocabulary = 50257, length = 1024, width = width, layers = layers, heads = heads }
end

--- GPT-2 of a size, "small" without it, or of a table as M.config gives.
function M.gpt2(size) return GPT2(type(size) == "table" and size or M.config(size or "small")) end

--- Tokens (1, length) and `count` more, each drawn from the `best` likeliest; always the likeliest where best is 1.
function M.write(net, tokens, count, best)
  local length = net.wpe.embedding_table:sizes(0)
  for _ = 1, count do
    local scores = net(tokens:at(":", ms.slice(-length, nil))):at(":", -1)
    local top, index = ops.topk(scores, best or 40)
    local chosen = ops.random_categorical(ops.log_softmax(top, -1), 1)
    tokens = ops.concat({ tokens, ops.gather_elements(index, 1, chosen):astype(tokens.dtype) }, 1)
  end
  return tokens
end

return M
