-- The bytes that a rank has of parameters and states divided among the ranks, at rest and in a step.
--   lunaria launch -n N tests/lua/parallel/memory.lua FOLDER LEVEL
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local folder, level = arg[1], arg[2]
local rank, ranks = ms.get_auto_parallel_context "global_rank", ms.get_auto_parallel_context "device_num"
ms.set_auto_parallel_context { parallel_mode = "data_parallel", gradients_mean = true, full_batch = true,
  enable_parallel_optimizer = level ~= "none", parallel_optimizer_config = level ~= "none" and
  { optimizer_level = level, parallel_optimizer_threshold = 1 } or {} }

local function live()
  collectgarbage()
  collectgarbage()
  return ms.memory_stats().live_bytes
end

ms.set_seed(1)
-- Sizes of which the allocator rounds none up.
local x, y = ops.randn({ 16, 64 }, nil, 2), ops.randn({ 16, 32 }, nil, 3)
local before = live()
local net = nn.SequentialCell(nn.Dense(64, 256), nn.Tanh(), nn.Dense(256, 128), nn.Tanh(), nn.Dense(128, 32))
local optimizer = nn.Adam(net:trainable_params(), 0.01)
local sizes = {}
for i, p in ipairs(optimizer.parameters) do sizes[i] = { p.shape[1], p.size } end
local step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
for _ = 1, 3 do step(x, y) end

-- Adam keeps two states for each parameter; a rank has ceil(rows / ranks) rows of those of at least 1 KB.
local at_rest, gradients = 0, 0
for _, size in ipairs(sizes) do
  local rows, elements = size[1], size[2]
  local own = level ~= "none" and ranks > 1 and elements * 4 >= 1024 and rows >= ranks and (rows + ranks - 1) // ranks * (elements // rows)
    or elements
  at_rest = at_rest + 3 * 4 * own
  gradients = gradients + 4 * own
end
local rested = live() - before

-- The gradients that a step hands to the optimizer.
local held = 0
local _, grads = step.value_and_gradients(x, y)
local with_gradients = live() - before - rested
for _, g in ipairs(grads) do held = held + g.nbytes end

local out = assert(io.open(("%s/%d-of-%d.txt"):format(folder, rank, ranks), "w"))
out:write(("at rest %d of %d, gradients %d of %d, live %d\n"):format(rested, at_rest, held, gradients, with_gradients))
out:close()
