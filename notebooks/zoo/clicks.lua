-- Networks that score clicks, by a weight and a vector for each feature. Wide & Deep (Cheng et al. 2016) adds up the weights and
-- dense layers over the vectors of all fields; DeepFM (Guo et al. 2017) adds a factorisation machine, which weighs pairs of features
-- by the products of their vectors.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local Clicks = nn.Cell:extend("Clicks")

-- c: { vocabulary =, fields =, width = of the vectors, layers = sizes, dropout = nil }
function Clicks:init(c)
  local draw = { embedding_table = ms.common.initializer.Normal(0.01) }
  self.linear = nn.Embedding(c.vocabulary, 1, draw)
  self.bias = ms.Parameter(ops.zeros { 1 })
  self.embedding = nn.Embedding(c.vocabulary, c.width, draw)
  local cells, from = {}, c.fields * c.width
  for _, to in ipairs(c.layers) do
    cells[#cells + 1], cells[#cells + 2] = nn.Dense(from, to), nn.ReLU()
    if c.dropout then cells[#cells + 1] = nn.Dropout { p = c.dropout } end
    from = to
  end
  cells[#cells + 1] = nn.Dense(from, 1)
  self.deep = nn.SequentialCell(cells)
end

-- ids (batch, fields) and the values of the fields, of the same shape -> scores (batch)
function Clicks:construct(ids, values)
  local weights = ops.expand_dims(values, 2)
  local vectors = self.embedding(ids) * weights
  local linear = ops.sum(self.linear(ids) * weights, 1) + self.bias
  return ops.squeeze(linear + self:interactions(vectors) + self.deep(ops.flatten(vectors)), 1)
end

-- What pairs of features add: (batch, 1), or 0.
function Clicks:interactions(vectors) return 0.0 end -- luacheck: ignore 212

local DeepFM = Clicks:extend("DeepFM")

function DeepFM:interactions(vectors)
  -- The sum of v_i . v_j over all pairs is half of |sum of v|^2 less the sum of |v|^2.
  return 0.5 * ops.sum(ops.sum(vectors, 1) ^ 2 - ops.sum(vectors ^ 2, 1), -1, true)
end

local M = {}

--- The network for Criteo's 39 fields with a table of 200,000 features, or of { vocabulary =, fields =, width =, layers =, dropout = nil }.
function M.wide_and_deep(config)
  return Clicks(config or { vocabulary = 200000, fields = 39, width = 80, layers = { 1024, 512, 256, 128 } })
end

--- The same for DeepFM.
function M.deepfm(config)
  return DeepFM(config or { vocabulary = 200000, fields = 39, width = 10, layers = { 400, 400, 400 }, dropout = 0.5 })
end

return M
