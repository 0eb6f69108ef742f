-- BERT (Devlin et al. 2019): an encoder over tokens, their positions and their segments, and a pooled first token.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local Bert = nn.Cell:extend("Bert")

function Bert:init(c, without_pooler)
  local draw = { embedding_table = ms.common.initializer.Normal(0.02) }
  self.word_embeddings = nn.Embedding(c.vocabulary, c.width, draw)
  self.position_embeddings = nn.Embedding(c.length, c.width, draw)
  self.token_type_embeddings = nn.Embedding(2, c.width, draw)
  self.norm = nn.LayerNorm({ c.width }, { epsilon = 1e-12 })
  self.dropout = nn.Dropout { p = 0.1 }
  local layer = nn.TransformerEncoderLayer(c.width, c.heads, 4 * c.width, 0.1, "gelu", 1e-12, true)
  self.encoder = nn.TransformerEncoder(layer, c.layers)
  if not without_pooler then self.pooler = nn.Dense(c.width, c.width) end
end

-- tokens (batch, length), segments of the same shape or nil, padding true where there is no token -> (batch, length, width)
function Bert:features(tokens, segments, padding)
  local x = self.word_embeddings(tokens) + self.position_embeddings(ops.arange(tokens:sizes(1)))
  x = x + self.token_type_embeddings(segments or ops.zeros_like(tokens))
  return self.encoder(self.dropout(self.norm(x)), nil, padding)
end

-- The features, and the pooled features of the first token.
function Bert:construct(tokens, segments, padding)
  local x = self:features(tokens, segments, padding)
  return x, ops.tanh(self.pooler(x:at(":", 0)))
end

local MaskedLM = Bert:extend("BertMaskedLM")

function MaskedLM:init(c)
  Bert.init(self, c, true)
  self.transform = nn.Dense(c.width, c.width)
  self.transform_norm = nn.LayerNorm({ c.width }, { epsilon = 1e-12 })
  self.bias = ms.Parameter(ops.zeros { c.vocabulary })
end

-- Scores (batch, length, vocabulary) of what a token was before it was masked.
function MaskedLM:construct(tokens, segments, padding)
  local x = self.transform_norm(ops.gelu_erf(self.transform(self:features(tokens, segments, padding))))
  return ops.matmul(x, ops.swapaxes(self.word_embeddings.embedding_table, 0, 1)) + self.bias
end

local M = {}

local sizes = { base = { 768, 12, 12 }, large = { 1024, 24, 16 } }

--- What a size ("base", "large") means: { vocabulary =, length =, width =, layers =, heads = }.
function M.config(size)
  local width, layers, heads = table.unpack(sizes[size] or error("bert: there is no size " .. tostring(size), 2))
  return { vocabulary = 30522, length = 512, width = width, layers = layers, heads = heads }
end

--- BERT of a size, "base" without it, or of a table as M.config gives; and BERT that says what was masked.
function M.bert(size) return Bert(type(size) == "table" and size or M.config(size or "base")) end
function M.masked_lm(size) return MaskedLM(type(size) == "table" and size or M.config(size or "base")) end

return M
