-- The transformer (Vaswani et al. 2017) for translation: an encoder over the source, a decoder over what is written so far. One
-- table of tokens serves both and gives the scores.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

-- Positions as sines and cosines of falling frequency.
local function positions(length, width)
  local rate = ops.exp(ops.arange(0, width, 2):astype(ms.float32) * (-math.log(10000) / width))
  local angle = ops.expand_dims(ops.arange(length):astype(ms.float32), 1) * rate
  return ops.reshape(ops.stack({ ops.sin(angle), ops.cos(angle) }, 2), { length, width })
end

local Transformer = nn.Cell:extend("TransformerMT")

function Transformer:init(c)
  self.width = c.width
  self.embedding = nn.Embedding(c.vocabulary, c.width, { embedding_table = ms.common.initializer.Normal(c.width ^ -0.5) })
  self.table_of_positions = positions(c.length, c.width)
  self.dropout = nn.Dropout { p = c.dropout }
  self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(c.width, c.heads, c.inner, c.dropout, { batch_first = true }), c.layers)
  self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(c.width, c.heads, c.inner, c.dropout, { batch_first = true }), c.layers)
end

function Transformer:embed(tokens)
  local x = self.embedding(tokens) * math.sqrt(self.width)
  return self.dropout(x + self.table_of_positions[{ ms.slice(0, tokens:sizes(1)) }])
end

--- source (batch, length), padding true where there is no token -> what the decoder looks at
function Transformer:encode(source, padding) return self.encoder(self:embed(source), nil, padding) end

--- Scores (batch, length, vocabulary) of the token after each of target.
function Transformer:decode(target, memory, padding)
  local length = target:sizes(1)
  local ahead = ops.greater(ops.triu(ops.ones { length, length }, 1), 0)
  local y = self.decoder(self:embed(target), memory, ahead, nil, nil, padding)
  return ops.matmul(y, ops.swapaxes(self.embedding.embedding_table, 0, 1))
end

function Transformer:construct(source, target, padding) return self:decode(target, self:encode(source, padding), padding) end

--- Writes a translation of source, always the likeliest token, from `first` up to `last` or `length` tokens.
function Transformer:translate(source, first, last, length)
  local memory, written = self:encode(source), ops.full({ source:sizes(0), 1 }, first, ms.int64)
  local ended = ops.equal(written, last)
  for _ = 1, length do
    local scores = self:decode(written, memory)
    local token = ops.argmax(scores:at(":", -1), 1):astype(ms.int64)
    written = ops.concat({ written, ops.expand_dims(token, 1) }, 1)
    ended = ops.logical_or(ended, ops.expand_dims(ops.equal(token, last), 1))
    if ops.all(ended):item() then break end
  end
  return written
end

local M = {}

--- The base model of the paper, with its table of 37,000 tokens, or { vocabulary =, length =, width =, heads =, inner =, layers =,
--- dropout = }.
function M.transformer(config)
  return Transformer(config or { vocabulary = 37000, length = 512, width = 512, heads = 8, inner = 2048, layers = 6, dropout = 0.1 })
end

return M
