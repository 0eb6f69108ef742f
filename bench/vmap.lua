-- vmap against its peers, and the gradients of the samples of a batch against a loop over them.
local harness = require "bench.harness"
local ms = require "lunaria"
local ops = ms.ops

local BATCH, INPUTS, HIDDEN, CLASSES = 64, 32, 64, 10

harness.workload("vmap_matmul", { torch = 1 }, function()
  return harness.calls(ms.vmap(ops.matmul), ops.randn { BATCH, 32, 32 }, ops.randn { BATCH, 32, 32 })
end)

local function weights()
  return ops.randn { INPUTS, HIDDEN } / 6, ops.zeros { HIDDEN }, ops.randn { HIDDEN, HIDDEN } / 8, ops.zeros { HIDDEN },
    ops.randn { HIDDEN, CLASSES } / 8, ops.zeros { CLASSES }
end

local function loss(w1, b1, w2, b2, w3, b3, x, target)
  local h = ops.tanh(ops.matmul(x, w1) + b1)
  h = ops.tanh(ops.matmul(h, w2) + b2)
  return -ops.sum(ops.log_softmax(ops.matmul(h, w3) + b3, -1) * target)
end

local function data()
  return ops.randn { BATCH, INPUTS }, ops.one_hot(ops.randint(0, CLASSES, { BATCH }), CLASSES, 1.0, 0.0)
end

harness.workload("per_sample_grad", { torch = 1 }, function()
  local w1, b1, w2, b2, w3, b3 = weights()
  local f = ms.vmap(ms.grad(loss, { 0, 1, 2, 3, 4, 5 }), { false, false, false, false, false, false, 0, 0 })
  local x, target = data()
  return harness.calls(f, w1, b1, w2, b2, w3, b3, x, target)
end)

harness.workload("per_sample_loop", { torch = 1 }, function()
  local w1, b1, w2, b2, w3, b3 = weights()
  local f = ms.grad(loss, { 0, 1, 2, 3, 4, 5 })
  local x, target = data()
  return harness.calls(function()
    local columns = { {}, {}, {}, {}, {}, {} }
    for i = 0, BATCH - 1 do
      local g = f(w1, b1, w2, b2, w3, b3, x[i], target[i])
      for k = 1, 6 do columns[k][i + 1] = g[k] end
    end
    for k = 1, 6 do columns[k] = ops.stack(columns[k]) end
    return columns
  end, 0)
end)

harness.serve()
