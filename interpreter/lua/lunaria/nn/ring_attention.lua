-- Attention over a sequence that is divided among the ranks of a group: keys and values go round a ring of ranks, and each rank merges
-- what its queries find in one piece after the other. Nothing of the length of the whole sequence is kept.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local communication = require "lunaria.communication"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell
local core = communication._core

local RingAttention = layer(Cell, "RingAttention", "causal=false, scale=nil, group=nil",
  [[softmax(scale * q k^T) v for sequences of which each rank of a group has a piece: q, k and v of shape (batch, heads, length / ranks,
size) give this rank's piece of the result, of the same shape.

The pieces follow one another in the order of the group's ranks and have one length. causal: a position sees those up to itself, in the
whole sequence. scale: 1 / sqrt(size) where it is nil. group: the name of the ranks' group; nil: all ranks. The memory of a rank depends
on the length of its piece alone: in the forward and the backward pass keys, values and their gradients go round the ranks, and the
weights are computed again. (Liu, Zaharia, Abbeel: Ring attention with blockwise transformers, 2023.)
  > q = ms.ones { 1, 2, 4, 8 }
  > ms.nn.RingAttention { causal = true }(q, q, q).shape --> (1, 2, 4, 8)]])

function RingAttention:setup(a)
  local where = "RingAttention"
  self.causal = check.boolean(where, "causal", a.causal)
  if a.scale ~= nil then self.scale = check.number_positive(where, "scale", a.scale) end
  self.group = communication._group_name(where, a.group)
  self.ranks, self.rank = core.size(where, self.group), core.rank(where, self.group)
  if self.rank < 0 then fail(where, ("this rank is not in the group '%s'"):format(self.group)) end
end

-- What the rank before this one has; what this one has goes to the next.
local function passed_on(self, x)
  if self.ranks == 1 then return x end
  local flat, sends, receives = x:reshape { -1 }, {}, {}
  for place = 1, self.ranks do sends[place], receives[place] = 0, 0 end
  sends[(self.rank + 1) % self.ranks + 1] = flat.size
  receives[(self.rank - 1) % self.ranks + 1] = flat.size
  return ops.all_to_all_v(flat, sends, receives, self.group):reshape(x.shape)
end

-- The scores of the queries for the keys of rank `source`, in float32; nil where none of them is seen.
local function scores(self, q, k, source, scale)
  if self.causal and source > self.rank then return nil end
  local s = ops.matmul(q, k:transpose(0, 1, 3, 2)) * scale
  if self.causal and source == self.rank then
    local length = s.shape[3]
    s = ops.masked_fill(s, ops.triu(ops.ones({ length, length }, ms.bool), 1), -math.huge)
  end
  return s
end

local function check_pieces(q, k, v)
  for name, x in pairs { query = q, key = k, value = v } do
    if not ms.is_tensor(x) or x.ndim ~= 4 then
      fail("RingAttention", ("%s must have the axes (batch, heads, length, size), got %s"):format(name, describe(x)))
    end
  end
  for name, x in pairs { key = k, value = v } do
    if tostring(x.shape) ~= tostring(q.shape) then
      fail("RingAttention", ("query has shape %s and %s %s: pieces of one sequence have one shape"):format(q.shape, name, x.shape))
    end
  end
end

-- The result, and the logarithms of the sums of the exponentials of all scores.
local function forward(self, q, k, v)
  local scale = self.scale or 1 / math.sqrt(q.shape[4])
  local wide = q:astype(ms.float32)
  local most, sum, result
  for step = 0, self.ranks - 1 do
    local s = scores(self, wide, k:astype(ms.float32), (self.rank - step) % self.ranks, scale)
    if s then
      local higher = s:amax(-1, true)
      if most then higher = ops.maximum(most, higher) end
      local p = ops.exp(s - higher)
      local own, found = p:sum(-1, true), ops.matmul(p, v:astype(ms.float32))
      if most then
        local older = ops.exp(most - higher)
        sum, result = sum * older + own, result * older + found
      else
        sum, result = own, found
      end
      most = higher
    end
    if step < self.ranks - 1 then k, v = passed_on(self, k), passed_on(self, v) end
  end
  return (result / sum):astype(q.dtype), most + ops.log(sum)
end

-- Keys and values go round once more, and their gradients with them: after as many steps as there are ranks these are where they belong.
local function backward(self, q, k, v, out, logs, d)
  local scale = self.scale or 1 / math.sqrt(q.shape[4])
  local wide, dout = q:astype(ms.float32), d:astype(ms.float32)
  local inner = (dout * out:astype(ms.float32)):sum(-1, true)
  local dq, dk, dv
  for step = 0, self.ranks - 1 do
    local keys, values = k:astype(ms.float32), v:astype(ms.float32)
    local s = scores(self, wide, keys, (self.rank - step) % self.ranks, scale)
    if s then
      local p = ops.exp(s - logs)
      local ds = p * (ops.matmul(dout, values:transpose(0, 1, 3, 2)) - inner) * scale
      local own_dq = ops.matmul(ds, keys)
      local own_dk, own_dv = ops.matmul(ds:transpose(0, 1, 3, 2), wide), ops.matmul(p:transpose(0, 1, 3, 2), dout)
      dq = dq and dq + own_dq or own_dq
      dk, dv = dk and dk + own_dk or own_dk, dv and dv + own_dv or own_dv
    else
      dk, dv = dk or ops.zeros_like(keys), dv or ops.zeros_like(values)
    end
    dk, dv = passed_on(self, dk), passed_on(self, dv)
    if step < self.ranks - 1 then k, v = passed_on(self, k), passed_on(self, v) end
  end
  return dq:astype(q.dtype), dk:astype(q.dtype), dv:astype(q.dtype)
end

function RingAttention:construct(q, k, v)
  check_pieces(q, k, v)
  local attend = ms.custom_vjp(function(query, key, value) return forward(self, query, key, value) end,
    function(query, key, value, out, logs, d) return backward(self, query, key, value, out, logs, d) end)
  return (attend(q, k, v))
end

function RingAttention:extend_repr() return ("causal=%s, ranks=%d"):format(self.causal, self.ranks) end

return { RingAttention = RingAttention }
