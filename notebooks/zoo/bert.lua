-- BERT (Devlin et al. 2019): an encoder over tokens, their positions and their segments, and a pooled first token.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local Bert = nn.Cell:extend("Bert")

function Bert:init(c)
  local draw = { embedding_table = ms.common.initializer.Normal(0.02) }
  self.word_embeddings = nn.Embedding(c.vocabulary, c.width, draw)
  self.position_embeddings = nn.Embedding(c.length, c.width, draw)
  self.token_type_embeddings = nn.Embedding(2, c.width, draw)
  self.norm = nn.LayerNorm({ c.width }, { epsilon = 1e-12 })
  self.dropout = nn.Dropout { p = 0.1 }
  local layer = nn.TransformerEncoderLayer(c.width, c.heads, 4 * c.width, 0.1, "gelu", 1e-12, true)
  self.encoder = nn.TransformerEncoder(layer, c.layers)
  self.pooler = nn.Dense(c.width, c.width)
end

-- tokens (batch, length), segments of the same shape or nil, padding true where there is no token -> features (batch, length,
-- width) and the pooled features of the first token
function Bert:construct(tokens, segments, padding)
  local x = self.word_embeddings(tokens) + self.position_embeddings(ops.arange(tokens.shape[2]))
  x = x + self.token_type_embeddings(segments or ops.zeros_like(tokens))
  x = self.encoder(self.dropout(self.norm(x)), nil, padding)
  return x, ops.tanh(self.pooler(x[{ ms.slice(nil, nil), 0 }]))
end

local M = {}

local sizes = { base = { 768, 12, 12 }, large = { 1024, 24, 16 } }

--- BERT of a size ("base", "large"), or of { vocabulary =, length =, width =, layers =, heads = }.
function M.bert(size)
  if type(size) == "table" then return Bert(size) end
  local width, layers, heads = table.unpack(sizes[size or "base"] or error("bert: there is no size " .. tostring(size), 2))
  return Bert { vocabulary = 30522, length = 512, width = width, layers = layers, heads = heads }
end

return M
