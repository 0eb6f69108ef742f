-- A table of embeddings that is too large for a device: it lies in host memory, its rows divided among the ranks of a group, and only
-- the rows of a batch and their gradients travel.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local communication = require "lunaria.communication"
local init = require "lunaria.common.initializer"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell
local core = communication._core

local RowTable = layer(Cell, "RowTable",
  "vocab_size, embedding_size, optimizer=\"lazy_adam\", learning_rate=1e-3, param_init=\"normal\", group=nil",
  [[A table of shape (vocab_size, embedding_size) in host memory, of which each rank of a group owns as many rows as the others: the
table of a recommender, with an optimizer of its own.

rows, places, ticket = table:pull(indices) brings the rows of a batch to the device in use, each once; ops.gather(rows, places, 0) are the
embeddings. table:push(ticket, gradient), with the loss's gradient for these rows, has their owners change them; rows that no rank asked
for stay as they are, with what the optimizer keeps for them. Gradients of several ranks for a row are summed. All ranks of the group
pull and push together. optimizer: "sgd", "adagrad" or "lazy_adam" (betas 0.9 and 0.999, epsilon 1e-8). learning_rate: a number; the
field learning_rate may be set later. param_init: how the table starts. group: the name of the ranks' group; nil: all ranks. A checkpoint
of a rank has the rows that it owns. (Cheng et al., Wide & deep learning for recommender systems, 2016.)
  > t = ms.nn.RowTable(100, 4, { optimizer = "sgd", learning_rate = 0.5, param_init = "zeros" })
  > rows, places, ticket = t:pull(ms.tensor { 7, 9, 7 })
  > rows.shape --> (2, 4)
  > t:push(ticket, ms.ones { 2, 4 })
  > t:pull(ms.tensor { 9 }):tolist()[1][1] --> -0.5]])

local rows_of_block = 65536
local kinds = { "sgd", "adagrad", "lazy_adam" }

local function on_host(x) return ops.to_device(x, "host") end

function RowTable:setup(a)
  local where = "RowTable"
  self.vocab_size = check.positive(where, "vocab_size", a.vocab_size)
  self.embedding_size = check.positive(where, "embedding_size", a.embedding_size)
  self.optimizer = check.choice(where, "optimizer", a.optimizer, kinds)
  self.learning_rate = check.number_positive(where, "learning_rate", a.learning_rate)
  self.group = communication._group_name(where, a.group)
  self.ranks, self.rank = core.size(where, self.group), core.rank(where, self.group)
  if self.rank < 0 then fail(where, ("this rank is not in the group '%s'"):format(self.group)) end
  self.each = (self.vocab_size + self.ranks - 1) // self.ranks
  self.first = math.min(self.rank * self.each, self.vocab_size)
  local count = math.min(self.each, self.vocab_size - self.first)
  -- Drawn in blocks, so that the table starts as it does on one rank, and never lies anywhere as a whole.
  local parts = {}
  for begin = 0, self.vocab_size - 1, rows_of_block do
    local rows = math.min(rows_of_block, self.vocab_size - begin)
    local block = init.initializer(a.param_init, { rows, self.embedding_size }, ms.float32)
    local low, high = math.max(self.first - begin, 0), math.min(self.first + count - begin, rows)
    if low < high then parts[#parts + 1] = on_host(block[{ ms.slice(low, high) }]:copy()) end
  end
  local own = #parts > 0 and ops.concat(parts, 0) or on_host(ms.zeros { 0, self.embedding_size })
  self.embedding_table = ms.Parameter(own, "embedding_table", false)
  local function slot(name) self[name] = ms.Parameter(on_host(ms.zeros { count, self.embedding_size }), name, false) end
  if self.optimizer == "adagrad" then slot "accumulated" end
  if self.optimizer == "lazy_adam" then slot "moment1" slot "moment2" end
  self.steps = ms.Parameter(on_host(ms.tensor(0, ms.int64)), "steps", false)
end

--- Brings the rows of the table for the indices, a tensor of whole numbers of any shape, to the device in use. Gives the rows, each once,
--- in the order of their numbers; for each index its place among them; and what push needs.
function RowTable:pull(indices)
  if not ms.is_tensor(indices) then fail("RowTable.pull", "indices must be a tensor, got " .. describe(indices)) end
  local flat = on_host(indices):reshape { -1 }:astype(ms.int64)
  if flat.size > 0 and (flat:min():item() < 0 or flat:max():item() >= self.vocab_size) then
    fail("RowTable.pull", ("indices are %d to %d; the table has the rows 0 to %d"):format(flat:min():item(), flat:max():item(),
      self.vocab_size - 1))
  end
  local ids, places = ops.unique(flat)
  local owners = ids // self.each
  local sends, counts = {}, ops.bincount(owners, nil, self.ranks):astype(ms.int32)
  for rank = 1, self.ranks do sends[rank] = counts[rank - 1]:item() end
  local receives = ops.all_to_all(counts, 0, 0, self.group):tolist()
  local asked = ops.all_to_all_v(ids, sends, receives, self.group) - self.first
  local rows = ops.all_to_all_v(ops.gather(self.embedding_table, asked, 0), receives, sends, self.group)
  local device = indices.device
  return rows:to(device), places:reshape(indices.shape):to(device), { asked = asked, sends = sends, receives = receives, count = ids.size }
end

-- New rows for those with the numbers `ids`, by their gradients.
local changed = {}
function changed.sgd(self, _, old, gradient) return old - self.learning_rate * gradient end
function changed.adagrad(self, ids, old, gradient)
  local sum = ops.gather(self.accumulated, ids, 0) + gradient * gradient
  self.accumulated[ids] = sum
  return old - self.learning_rate * gradient / (ops.sqrt(sum) + 1e-8)
end
function changed.lazy_adam(self, ids, old, gradient)
  local m = 0.9 * ops.gather(self.moment1, ids, 0) + 0.1 * gradient
  local v = 0.999 * ops.gather(self.moment2, ids, 0) + 0.001 * gradient * gradient
  self.moment1[ids], self.moment2[ids] = m, v
  local steps = self.steps:item()
  local rate = self.learning_rate * math.sqrt(1 - 0.999 ^ steps) / (1 - 0.9 ^ steps)
  return old - rate * m / (ops.sqrt(v) + 1e-8)
end

--- Has the owners of rows change them. ticket: the third result of pull; gradient: of the shape of its rows.
function RowTable:push(ticket, gradient)
  if type(ticket) ~= "table" or not ticket.asked then
    fail("RowTable.push", "ticket must be the third result of pull, got " .. describe(ticket))
  end
  local wanted = ("(%d, %d)"):format(ticket.count, self.embedding_size)
  if not ms.is_tensor(gradient) or tostring(gradient.shape) ~= wanted then
    fail("RowTable.push", ("gradient must have the shape %s of the rows, got %s"):format(wanted,
      ms.is_tensor(gradient) and tostring(gradient.shape) or describe(gradient)))
  end
  self.steps:assign(self.steps + 1)
  local came = ops.all_to_all_v(on_host(gradient):astype(ms.float32), ticket.sends, ticket.receives, self.group)
  if came.shape[1] == 0 then return end
  local ids, places = ops.unique(ticket.asked)
  local sum = ops.index_add(on_host(ms.zeros { ids.size, self.embedding_size }), places, came, 0)
  self.embedding_table[ids] = changed[self.optimizer](self, ids, ops.gather(self.embedding_table, ids, 0), sum)
end

--- The rows for the indices as a layer gives them, without a gradient for the table: for predictions.
function RowTable:construct(indices)
  local rows, places = self:pull(indices)
  return ops.gather(rows, places, 0)
end

function RowTable:extend_repr()
  return ("vocab_size=%d, embedding_size=%d, optimizer=%s, ranks=%d"):format(self.vocab_size, self.embedding_size, self.optimizer,
    self.ranks)
end

return { RowTable = RowTable }
