-- Networks over graphs: GCN (Kipf, Welling 2017) takes the mean of the neighbours, GAT (Veličković et al. 2018) learns to which
-- of them a node attends. The graph is a matrix (nodes, nodes) of 0 and 1.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local M = {}

--- The graph with an edge of each node to itself, weighted by the degrees of both ends: D^-1/2 (A + I) D^-1/2.
function M.normalized(edges)
  local count = edges:sizes(0)
  local a = ops.maximum(edges, ops.eye(count, count, edges.dtype))
  local scale = ops.rsqrt(ops.sum(a, 1))
  return a * scale * ops.expand_dims(scale, 1)
end

local GCN = nn.Cell:extend("GCN")

function GCN:init(inputs, hidden, classes, dropout)
  self.conv1 = nn.Dense(inputs, hidden, { has_bias = false, weight_init = ms.common.initializer.XavierUniform() })
  self.bias1 = ms.Parameter(ops.zeros { hidden })
  self.conv2 = nn.Dense(hidden, classes, { has_bias = false, weight_init = ms.common.initializer.XavierUniform() })
  self.bias2 = ms.Parameter(ops.zeros { classes })
  self.dropout = nn.Dropout { p = dropout }
end

-- features (nodes, inputs) and M.normalized(edges) -> scores (nodes, classes)
function GCN:construct(x, graph)
  local h = ops.relu(ops.matmul(graph, self.conv1(self.dropout(x))) + self.bias1)
  return ops.matmul(graph, self.conv2(self.dropout(h))) + self.bias2
end

local Attention = nn.Cell:extend("GraphAttention")

function Attention:init(inputs, outputs, heads, joined, dropout)
  self.heads, self.outputs, self.joined = heads, outputs, joined
  local xavier = ms.common.initializer.XavierUniform()
  self.lin = nn.Dense(inputs, heads * outputs, { has_bias = false, weight_init = xavier })
  self.att_src = ms.Parameter(ms.initializer(xavier, { heads, outputs }))
  self.att_dst = ms.Parameter(ms.initializer(xavier, { heads, outputs }))
  self.bias = ms.Parameter(ops.zeros { joined and heads * outputs or outputs })
  self.dropout = nn.Dropout { p = dropout }
end

-- features (nodes, inputs) and edges -> the heads side by side, or their mean
function Attention:construct(x, edges)
  local count = x:sizes(0)
  local h = ops.reshape(self.lin(self.dropout(x)), { count, self.heads, self.outputs })
  local from, to = ops.sum(h * self.att_src, -1), ops.sum(h * self.att_dst, -1)
  local scores = ops.leaky_relu(ops.expand_dims(to, 1) + from, 0.2)
  local absent = ops.expand_dims(ops.equal(edges + ops.eye(count, count, edges.dtype), 0.0), 2)
  local weights = self.dropout(ops.softmax(ops.masked_fill(scores, absent, -1e9), 1))
  local y = ops.einsum("ijh,jhf->ihf", { weights, h })
  y = self.joined and ops.reshape(y, { count, -1 }) or ops.mean(y, 1)
  return y + self.bias
end

local GAT = nn.Cell:extend("GAT")

function GAT:init(inputs, hidden, heads, classes, dropout)
  self.conv1 = Attention(inputs, hidden, heads, true, dropout)
  self.conv2 = Attention(hidden * heads, classes, 1, false, dropout)
end

-- features (nodes, inputs) and edges -> scores (nodes, classes)
function GAT:construct(x, edges) return self.conv2(ops.elu(self.conv1(x, edges)), edges) end

--- The networks of the papers for Cora (1,433 words, 7 subjects), or of other sizes.
function M.gcn(inputs, hidden, classes) return GCN(inputs or 1433, hidden or 16, classes or 7, 0.5) end
function M.gat(inputs, hidden, heads, classes) return GAT(inputs or 1433, hidden or 8, heads or 8, classes or 7, 0.6) end

return M
