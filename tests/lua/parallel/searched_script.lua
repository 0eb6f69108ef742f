-- Trainings with strategies that are searched for. Arguments: the folder for what comes out, the kind of network, the simulated ranks (0:
-- the processes), eager or graph.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local folder, kind, simulated, mode = table.unpack(arg)
simulated = math.tointeger(tonumber(simulated))
local ranks = ms.communication.get_group_size()
if mode == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
if ranks > 1 or simulated > 0 then
  if simulated > 0 then ms.set_auto_parallel_context { device_num = simulated } end
  ms.set_auto_parallel_context { parallel_mode = "auto_parallel", full_batch = true }
end
ms.set_seed(7)

local kinds = {}
-- Large weights and few rows: columns and rows of products are divided.
function kinds.wide()
  local net = nn.SequentialCell(nn.Dense(64, 512), nn.ReLU(), nn.Dense(512, 64))
  return net, nn.MSELoss(), function(k) return ops.randn({ 4, 64 }, nil, k), ops.randn({ 4, 64 }, nil, k + 100) end
end
-- Small weights and many rows: the batch is divided.
function kinds.tall()
  local net = nn.SequentialCell(nn.Dense(16, 16), nn.LayerNorm { 16 }, nn.Tanh(), nn.Dense(16, 4))
  return net, nn.MSELoss(), function(k) return ops.randn({ 512, 16 }, nil, k), ops.randn({ 512, 4 }, nil, k + 100) end
end
function kinds.convolutions()
  local net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(64, 10))
  return net, nn.CrossEntropyLoss(), function(k)
    return ops.randn({ 16, 1, 8, 8 }, nil, k), ops.randint(0, 10, { 16 }, k + 100):astype(ms.int32)
  end
end

local net, loss, batch = kinds[kind]()
local step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net:trainable_params(), 0.01))
step:set_train()
local out = assert(io.open(("%s/%d-of-%d.txt"):format(folder, ms.communication.get_rank(), ranks), "w"))
for _ = 1, 6 do out:write(("loss %.17g\n"):format(step(batch(1)):item())) end
local elements, held = 0, 0
for _, p in ipairs(net:trainable_params()) do
  local laid = require "lunaria.laid"
  elements, held = elements + p.size, held + (laid.is_laid_out(p) and laid.pieces(p)[1].size or p.size)
  out:write(("%s %.9g\n"):format(p.name, ops.sum(ops.lay_out(p, 0) * ops.arange(p.size):reshape(p.shape)):item()))
end
out:write(("share %.4f\n"):format(held / elements))
if ranks > 1 or simulated > 0 then out:write("plan ", require "lunaria.parallel.search".found[1].text:gsub(" ", "_"), "\n") end
out:close()
