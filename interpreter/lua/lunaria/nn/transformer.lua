-- Attention as a cell.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local basic = require "lunaria.nn.basic"
local cells = require "lunaria.nn.cell"
local init = require "lunaria.common.initializer"

local ops = ms.ops
local fail, check, describe, by_name = arguments.fail, arguments.check, arguments.describe, arguments.by_name
local is_table = arguments.is_table
local layer, Cell = cells.layer, cells.Cell

local MultiheadAttention = layer(Cell, "MultiheadAttention",
  "embed_dim, num_heads, dropout=0.0, has_bias=true, batch_first=false, dtype=nil",
  [[Attention of several heads: out, weights = cell(query, key, value, key_padding_mask, need_weights, attn_mask,
average_attn_weights).

Query, key and value are (length, batch, embed_dim), or (batch, length, embed_dim) with batch_first. key_padding_mask
(batch, keys) is true for keys that do not count; attn_mask (queries, keys), or one for each batch and head, is true where a
query must not see a key, or is added to the scores where it is a float. weights are averaged over the heads unless
average_attn_weights is false, and left out with need_weights = false, which is faster. All after value may be given by name:
cell(x, x, x, { attn_mask = mask }).
  > (ms.nn.MultiheadAttention(8, 2, { batch_first = true })(ms.ones { 2, 5, 8 }, ms.ones { 2, 5, 8 }, ms.ones { 2, 5, 8 })).shape
  (2, 5, 8)]])

function MultiheadAttention:setup(a)
  local name = "MultiheadAttention"
  self.embed_dim = check.positive(name, "embed_dim", a.embed_dim)
  self.num_heads = check.positive(name, "num_heads", a.num_heads)
  if self.embed_dim % self.num_heads ~= 0 then
    fail(name, ("embed_dim (%d) must be divisible by num_heads (%d)"):format(self.embed_dim, self.num_heads))
  end
  self.dropout = check.probability(name, "dropout", a.dropout)
  self.has_bias = check.boolean(name, "has_bias", a.has_bias)
  self.batch_first = check.boolean(name, "batch_first", a.batch_first)
  local width = self.embed_dim
  self.in_proj_weight = ms.Parameter(init.initializer("xavier_uniform", { 3 * width, width }, a.dtype), "in_proj_weight")
  if self.has_bias then
    self.in_proj_bias = ms.Parameter(init.initializer("zeros", { 3 * width }, a.dtype), "in_proj_bias")
  end
  self.out_proj = basic.Dense(width, width, { has_bias = self.has_bias, bias_init = "zeros", dtype = a.dtype })
end

-- To (batch, heads, length, size).
local function heads_of(self, x, weight, bias)
  local y = ops.dense(x, weight, bias)
  local shape = y.shape
  return ops.transpose(ops.reshape(y, { shape[1], shape[2], self.num_heads, self.embed_dim // self.num_heads }), { 0, 2, 1, 3 })
end

local lowest = -1e30

-- What is added to the scores for a mask: itself, or a very negative number where it is true.
local function added(mask, shape)
  if mask.dtype == ms.bool_ then
    mask = ops.where(mask, lowest, 0.0)
  end
  return ops.reshape(mask, shape)
end

local inputs = { "key_padding_mask", "need_weights", "attn_mask", "average_attn_weights" }

-- What may be left out, given by position or by name.
local function optional(name, key_padding_mask, need_weights, attn_mask, average_attn_weights)
  if is_table(key_padding_mask) or is_table(need_weights) or is_table(attn_mask) or is_table(average_attn_weights) then
    key_padding_mask, need_weights, attn_mask, average_attn_weights =
      by_name(name, inputs, key_padding_mask, need_weights, attn_mask, average_attn_weights)
    if is_table(key_padding_mask) or is_table(attn_mask) then fail(name, "masks must be tensors, got a table") end
  end
  return key_padding_mask, need_weights, attn_mask, average_attn_weights
end

function MultiheadAttention:construct(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights)
  local name = "MultiheadAttention"
  key_padding_mask, need_weights, attn_mask, average_attn_weights =
    optional(name, key_padding_mask, need_weights, attn_mask, average_attn_weights)
  for what, x in pairs { query = query, key = key, value = value } do
    if not ms.is_tensor(x) or x.ndim ~= 3 or x.shape[3] ~= self.embed_dim then
      fail(name, ("%s must be a tensor of three axes, the last of size embed_dim (%d), got %s"):format(what, self.embed_dim, describe(x)))
    end
  end
  if not self.batch_first then
    query, key, value = ops.swapaxes(query, 0, 1), ops.swapaxes(key, 0, 1), ops.swapaxes(value, 0, 1)
  end
  local wq, wk, wv = ops.split(self.in_proj_weight, self.embed_dim, 0)
  local bq, bk, bv
  if self.in_proj_bias then
    bq, bk, bv = ops.split(self.in_proj_bias, self.embed_dim, 0)
  end
  local q, k, v = heads_of(self, query, wq, bq), heads_of(self, key, wk, bk), heads_of(self, value, wv, bv)
  local batch, queries, keys = q.shape[1], q.shape[3], k.shape[3]
  local scale = 1 / math.sqrt(self.embed_dim // self.num_heads)
  local out, weights
  if need_weights == false and not attn_mask and not key_padding_mask and not (self.training and self.dropout > 0) then
    out = ops.attention(q, k, v, scale)
  else
    local scores = ops.matmul(q * scale, ops.swapaxes(k, -1, -2))
    if attn_mask then
      local shape = attn_mask.ndim == 3 and { batch, self.num_heads, queries, keys } or { 1, 1, queries, keys }
      scores = scores + added(attn_mask, shape)
    end
    if key_padding_mask then
      scores = scores + added(key_padding_mask, { batch, 1, 1, keys })
    end
    weights = ops.softmax(scores, -1)
    local kept = weights
    if self.training and self.dropout > 0 then
      kept = ops.dropout(weights, self.dropout, true)
    end
    out = ops.matmul(kept, v)
  end
  out = self.out_proj(ops.reshape(ops.transpose(out, { 0, 2, 1, 3 }), { batch, queries, self.embed_dim }))
  if not self.batch_first then
    out = ops.swapaxes(out, 0, 1)
  end
  if need_weights == false then
    return out
  elseif average_attn_weights == false then
    return out, weights
  end
  return out, ops.mean(weights, 1)
end

function MultiheadAttention:extend_repr()
  return ("embed_dim=%d, num_heads=%d, dropout=%s, batch_first=%s"):format(self.embed_dim, self.num_heads, self.dropout, self.batch_first)
end

return { MultiheadAttention = MultiheadAttention }
