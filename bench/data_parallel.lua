-- Run by data_parallel.py: steps of a perceptron of 2.1 million parameters on the ranks of a program. Prints on rank 0 the seconds of the
-- fastest of some steps.
--   lunaria launch -n N bench/data_parallel.lua ROWS STEPS MODE
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local rows, steps, mode = tonumber(arg[1]), tonumber(arg[2]), arg[3]
local ranks, rank = ms.get_auto_parallel_context "device_num", ms.get_auto_parallel_context "global_rank"
if mode == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_auto_parallel_context { parallel_mode = ranks > 1 and "data_parallel" or "stand_alone", gradients_mean = true }

ms.set_seed(1)
local net = nn.SequentialCell(nn.Dense(784, 1024), nn.ReLU(), nn.Dense(1024, 1024), nn.ReLU(), nn.Dense(1024, 256), nn.ReLU(),
  nn.Dense(256, 10))
local step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), nn.SGD(net:trainable_params(), 0.01))
local x, y = ops.randn({ rows, 784 }, nil, 2 + rank), ops.randint(0, 10, { rows }, 3 + rank)
for _ = 1, 8 do step(x, y) end
local times = {}
for i = 1, steps do
  local start = ms.clock()
  step(x, y):item()
  times[i] = (ms.clock() - start) / 1e9
end
table.sort(times)
if rank == 0 then print(("%.9f %.9f"):format(times[1], times[steps // 2 + 1])) end
