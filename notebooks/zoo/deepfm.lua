-- DeepFM (Guo et al. 2017): a factorisation machine, which weighs pairs of features by the products of their vectors, and dense layers
-- over the same vectors. The sum of both is the score of a click.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local DeepFM = nn.Cell:extend("DeepFM")

function DeepFM:init(c)
  local draw = { embedding_table = ms.common.initializer.Normal(0.01) }
  self.linear = nn.Embedding(c.vocabulary, 1, draw)
  self.bias = ms.Parameter(ops.zeros { 1 })
  self.embedding = nn.Embedding(c.vocabulary, c.width, draw)
  local cells, from = {}, c.fields * c.width
  for _, to in ipairs(c.layers) do
    for _, cell in ipairs { nn.Dense(from, to), nn.ReLU(), nn.Dropout { p = c.dropout } } do cells[#cells + 1] = cell end
    from = to
  end
  cells[#cells + 1] = nn.Dense(from, 1)
  self.deep = nn.SequentialCell(cells)
end

-- ids (batch, fields) and the values of the fields, of the same shape -> scores (batch)
function DeepFM:construct(ids, values)
  local weights = ops.expand_dims(values, 2)
  local vectors = self.embedding(ids) * weights
  -- The sum of v_i . v_j over all pairs is half of |sum of v|^2 less the sum of |v|^2.
  local products = 0.5 * ops.sum(ops.sum(vectors, 1) ^ 2 - ops.sum(vectors ^ 2, 1), -1, true)
  local linear = ops.sum(self.linear(ids) * weights, 1) + self.bias
  return ops.squeeze(linear + products + self.deep(ops.flatten(vectors)), 1)
end

local M = {}

--- The network for Criteo's 39 fields with a table of 200,000 features, or of { vocabulary =, fields =, width =, layers =, dropout = }.
function M.deepfm(config)
  return DeepFM(config or { vocabulary = 200000, fields = 39, width = 10, layers = { 400, 400, 400 }, dropout = 0.5 })
end

return M
