-- A network that several ranks train together, each on its part of the data. The same script runs alone:
--   lunaria notebooks/ranks.lua
--   lunaria launch -n 4 notebooks/ranks.lua
--   notebooks/mpirun.sh -n 4 notebooks/ranks.lua
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
local ranks, comm = ms.communication, ms.communication.comm_func
if arg and arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end

ranks.init()
local rank, count = ranks.get_rank(), ranks.get_group_size()

-- The same seed in all ranks: they begin with the same weights, and agree on the data.
ms.set_seed(1)
local net = nn.SequentialCell(nn.Dense(16, 32), nn.ReLU(), nn.Dense(32, 2))
local parameters = net:trainable_params()
local optimizer = nn.Momentum(parameters, 0.1, 0.9)
local x = ms.randn { 240, 16 }
local y = (x[":, 0"] + x[":, 1"]):greater(0):astype "int32"

local function loss_of(inputs, labels) return ops.cross_entropy(net(inputs), labels) end
local step = ms.value_and_grad(loss_of, { weights = parameters })

-- Rows rank, rank + count, rank + 2 count ...; the mean over all ranks is the mean over all rows.
local rows = ops.arange(rank, 240, count)
local own_x, own_y = ops.gather(x, rows, 0), ops.gather(y, rows, 0)

local loss
for _ = 1, 30 do
  local own_loss, gradients = step(own_x, own_y)
  for i, gradient in ipairs(gradients) do gradients[i] = comm.all_reduce(gradient, "avg") end
  optimizer(gradients)
  loss = comm.all_reduce(own_loss, "avg")
end
if rank == 0 then print(("%d rank%s: loss %.4f"):format(count, count == 1 and "" or "s", loss:item())) end
