-- The training that the runs of tests/conformance/federated.lua share.
local ms = require "lunaria"
local nn, ops, federated = ms.nn, ms.ops, ms.federated

local task = { batch_size = 10, epochs = 2, lr = 0.1 }

--- Pictures of four classes; each client has two of them and a number of samples of its own. Gives inputs, labels and the division.
function task.data(seed, clients)
  ms.set_seed(seed)
  local per_client = 30
  local labels = (ms.arange(clients * per_client) % 4):astype(ms.int32)
  local inputs = ops.index_select(ops.randn(4, 16) * 2, 0, labels:astype(ms.int64)) + ops.randn(clients * per_client, 16)
  local division = clients >= 4 and federated.partition.by_label(labels, clients, { labels_per_client = 2, seed = seed })
    or federated.partition.iid(labels, clients, { seed = seed })
  return inputs, labels, division
end

function task.network(seed)
  ms.set_seed(seed + 1)
  return nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 4))
end

--- A text that stands for the bits of a vector of float32.
function task.bits(vector)
  local h = 0
  for _, value in ipairs(vector:tolist()) do h = (h ~ ("<i4"):unpack(("<f"):pack(value))) * 0x100000001b3 + (h >> 29) end
  return ("%016x"):format(h)
end

return task
