-- Wide & Deep (Cheng et al. 2016): one weight for each feature, and beside it vectors of the features under dense layers. The
-- sum of both is the score of a click.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local WideDeep = nn.Cell:extend("WideDeep")

function WideDeep:init(c)
  local draw = { embedding_table = ms.common.initializer.Normal(0.01) }
  self.wide = nn.Embedding(c.vocabulary, 1, draw)
  self.wide_bias = ms.Parameter(ops.zeros { 1 })
  self.embedding = nn.Embedding(c.vocabulary, c.width, draw)
  local cells, from = {}, c.fields * c.width
  for _, to in ipairs(c.layers) do
    cells[#cells + 1], cells[#cells + 2] = nn.Dense(from, to), nn.ReLU()
    from = to
  end
  cells[#cells + 1] = nn.Dense(from, 1)
  self.deep = nn.SequentialCell(cells)
end

-- ids (batch, fields) and the values of the fields, of the same shape -> scores (batch)
function WideDeep:construct(ids, values)
  local weights = ops.expand_dims(values, 2)
  local wide = ops.sum(self.wide(ids) * weights, 1) + self.wide_bias
  local deep = self.deep(ops.flatten(self.embedding(ids) * weights))
  return ops.squeeze(wide + deep, 1)
end

local M = {}

--- The network for Criteo's 39 fields with a table of 200,000 features, or of { vocabulary =, fields =, width =, layers = }.
function M.wide_and_deep(config)
  return WideDeep(config or { vocabulary = 200000, fields = 39, width = 80, layers = { 1024, 512, 256, 128 } })
end

return M
