-- Cells and functions that train on several ranks, each beside what one process computes from all rows. Writes "good" to a file for each
-- rank.
--   lunaria launch -n 2 tests/lua/parallel/faces.lua FOLDER
local ms = require "lunaria"
local core = require "lunaria.gradients"
local nn, ops = ms.nn, ms.ops

local folder = arg[1]
local rank, ranks = ms.get_auto_parallel_context "global_rank", ms.get_auto_parallel_context "device_num"
local x, y = ops.randn({ 8, 3 }, nil, 1), ops.randn({ 8, 2 }, nil, 2)

local function near(a, b, tolerance)
  local difference = ops.amax(ops.abs(a - b)):item()
  if not (difference <= tolerance) then error(("differs by %g: %s and %s"):format(difference, tostring(a), tostring(b)), 2) end
end
local function fails(wanted, f, ...)
  local good, message = pcall(f, ...)
  if good or not tostring(message):find(wanted, 1, true) then error(("expected '%s', got %s"):format(wanted, tostring(message)), 2) end
end
local function settings(options)
  ms.reset_auto_parallel_context()
  options.parallel_mode, options.gradients_mean = "data_parallel", options.gradients_mean ~= false
  ms.set_auto_parallel_context(options)
end
local function dense()
  ms.set_seed(7)
  return nn.Dense(3, 2)
end
-- The parameters after a step of plain descent with the gradients of these rows.
local function after_step(net, rate, ...)
  local loss = nn.WithLossCell(net, nn.MSELoss())
  local _, grads = ms.value_and_grad(loss, nil, net:trainable_params())(...)
  local result = {}
  for i, p in ipairs(net:trainable_params()) do result[i] = p - rate * grads[i] end
  return result
end
local function step_of(net, optimizer, scale)
  local loss = nn.WithLossCell(net, nn.MSELoss())
  if scale then return nn.TrainOneStepWithLossScaleCell(loss, optimizer, scale) end
  return nn.TrainOneStepCell(loss, optimizer)
end
local function expect_parameters(net, expected, tolerance)
  for i, p in ipairs(net:trainable_params()) do near(p, expected[i], tolerance or 1e-6) end
  assert(not core.difference(net:trainable_params()), "ranks have different parameters")
end

-- A step, with the mean and with the sum.
for _, mean in ipairs { true, false } do
  settings { full_batch = true, gradients_mean = mean }
  local net = dense()
  local expected = after_step(net, mean and 0.1 or 0.1 * ranks, x, y)
  local loss = step_of(net, nn.SGD(net:trainable_params(), 0.1))(x, y)
  near(loss, nn.MSELoss()(dense()(x), y), 1e-6)
  expect_parameters(net, expected)
end

-- Rows that are this rank's own, and rows that a strategy cuts.
for _, strategy in ipairs { "data_parallel", { { ranks, 1 }, { ranks, 1 } } } do
  settings { dataset_strategy = strategy }
  local net = dense()
  local expected = after_step(net, 0.1, x, y)
  local step = step_of(net, nn.SGD(net:trainable_params(), 0.1))
  if strategy == "data_parallel" then
    step(x[{ ms.slice(rank * 4, rank * 4 + 4) }], y[{ ms.slice(rank * 4, rank * 4 + 4) }])
  else
    step(x, y)
  end
  expect_parameters(net, expected)
end

-- Scaled losses: an overflow on one rank is one on all.
do
  settings {}
  local net = dense()
  local before = { net.weight:copy(), net.bias:copy() }
  local step = step_of(net, nn.SGD(net:trainable_params(), 0.1), 1024.0)
  local bad = rank == 1 and x / 0.0 or x
  local _, overflow = step(bad, y)
  assert(overflow:item() == true)
  expect_parameters(net, before, 0)
  local expected = after_step(net, 0.1, x, y)
  _, overflow = step(x, y)
  assert(overflow:item() == false)
  expect_parameters(net, expected)
end

-- Gradients of two batches, combined once.
do
  settings { full_batch = true }
  local net = dense()
  local first, second = after_step(net, 0.2, x, y), after_step(net, 0.2, x * 0.5, y)
  local optimizer = nn.GradientAccumulation(nn.SGD(net:trainable_params(), 0.2), 2)
  local step = step_of(net, optimizer)
  step(x, y)
  expect_parameters(net, { dense().weight, dense().bias }, 0)
  step(x * 0.5, y)
  expect_parameters(net, { (first[1] + second[1]) / 2, (first[2] + second[2]) / 2 })
end

-- A reducer that a program calls, and clipping by the norm of what it gives.
do
  settings {}
  local net = dense()
  local own = { ops.full({ 2, 3 }, rank + 1.0), ops.full({ 2 }, rank + 1.0) }
  near(nn.DistributedGradReducer(net:trainable_params())(own)[1], ops.full({ 2, 3 }, (ranks + 1) / 2), 1e-6)
  local sums = nn.DistributedGradReducer(net:trainable_params(), false)(own)
  near(sums[2], ops.full({ 2 }, ranks * (ranks + 1) / 2), 1e-6)
  local clipped = { ops.clip_by_global_norm(sums, 1.0) }
  near(ops.sum(ops.square(clipped[1])) + ops.sum(ops.square(clipped[2])), ms.tensor(1.0), 1e-5)
end

-- Other beginnings on each rank.
do
  ms.set_seed(7 + rank)
  settings {}
  local net = nn.Dense(3, 2)
  fails("weight is not the same on rank 1 as on rank 0", step_of(net, nn.SGD(net:trainable_params(), 0.1)), x, y)
  settings { parameter_broadcast = true, full_batch = true }
  step_of(net, nn.SGD(net:trainable_params(), 0.0))(x, y)
  expect_parameters(net, { dense().weight, dense().bias }, 0)
end

-- Other ways to combine.
for _, case in ipairs {
  { { gradient_compression = "fp16" }, 1e-3 }, { { gradient_compression = "bf16" }, 1e-2 },
  { { gradient_compression = { top_k = 1.0 } }, 1e-6 }, { { comm_fusion = { openstate = false } }, 1e-6 },
  { { comm_fusion = { allreduce = { mode = "index", config = { 0 } } } }, 1e-6 },
  { { comm_fusion = { allreduce = { mode = "size", config = 1 } } }, 1e-6 },
} do
  case[1].full_batch = true
  settings(case[1])
  local net = dense()
  local expected = after_step(net, 0.1, x, y)
  local step = step_of(net, nn.SGD(net:trainable_params(), 0.1))
  step(x, y)
  expect_parameters(net, expected, case[2])
  for _ = 1, 6 do step(x, y) end
  assert(not core.difference(net:trainable_params()))
end
do
  -- Equal gradients count once.
  settings { gradient_reduction = "adasum" }
  local net = dense()
  local expected = after_step(net, 0.1, x, y)
  step_of(net, nn.SGD(net:trainable_params(), 0.1))(x, y)
  expect_parameters(net, expected)
end

-- Whole parameters of divided ones, and what does not go with them.
do
  settings { full_batch = true, enable_parallel_optimizer = true,
    parallel_optimizer_config = { optimizer_level = "level2", parallel_optimizer_threshold = 0 } }
  ms.set_seed(7)
  local net = nn.Dense(3, 5)
  local other = ops.randn({ 8, 5 }, nil, 3)
  local expected = after_step(net, 0.1, x, other)
  local step = step_of(net, nn.SGD(net:trainable_params(), 0.1))
  step(x, other)
  assert(net.weight.shape[1] == (5 + ranks - 1) // ranks)
  local whole = step.whole_parameters()
  near(whole.weight, expected[1], 1e-6)
  near(whole.bias, expected[2], 1e-6)
  near(net(x), ops.matmul(x, expected[1].T) + expected[2], 1e-5)
  local second = nn.Dense(3, 2)
  fails("Lamb looks at whole parameters", step_of, second, nn.Lamb(second:trainable_params(), 0.1))
end
-- Rows are divided where operators have no strategies; those that are searched for divide the whole batch.
do
  settings { full_batch = true }
  ms.set_auto_parallel_context { parallel_mode = "semi_auto_parallel" }
  local net = dense()
  local expected = after_step(net, 0.1, x, y)
  step_of(net, nn.SGD(net:trainable_params(), 0.1))(x, y)
  expect_parameters(net, expected)
  ms.set_auto_parallel_context { parallel_mode = "auto_parallel", full_batch = false }
  fails("dataset_strategy must be 'full_batch' with the parallel_mode 'auto_parallel'", step_of, net, nn.SGD(net:trainable_params(), 0.1))
end
settings { full_batch = true }
do
  local net = dense()
  fails("a batch of 7 rows cannot be divided into 2 equal parts", step_of(net, nn.SGD(net:trainable_params(), 0.1)),
    x[{ ms.slice(0, 7) }], y[{ ms.slice(0, 7) }])
end
fails(("logical_shards is 1, which %d ranks do not divide"):format(ranks), function()
  settings { logical_shards = 1 }
  step_of(dense(), nn.SGD(dense():trainable_params(), 0.1))
end)

local out = assert(io.open(("%s/%d-of-%d.txt"):format(folder, rank, ranks), "w"))
out:write "good"
out:close()
