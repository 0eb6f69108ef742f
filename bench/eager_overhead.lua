-- The cost of one eager call with hardly anything to compute. numpy, which knows neither devices nor gradients, has
-- the least overhead of all peers: the bar against it is not to be slower.
local harness = require "bench.harness"
local ops = require "lunaria".ops

harness.workload("add_4", { torch = 5, numpy = 1 }, function()
  return harness.calls(ops.add, ops.randn({ 4 }), ops.randn({ 4 }))
end)

harness.workload("operator_add_4", { torch = 5, numpy = 1 }, function()
  local a, b = ops.randn({ 4 }), ops.randn({ 4 })
  return function(n) for _ = 1, n do local _ = a + b end end
end)

harness.workload("matmul_4x4", { torch = 5, numpy = 1 }, function()
  return harness.calls(ops.matmul, ops.randn({ 4, 4 }), ops.randn({ 4, 4 }))
end)

harness.workload("add_32x32", { torch = 4, numpy = 1 }, function()
  return harness.calls(ops.add, ops.randn({ 32, 32 }), ops.randn({ 32, 32 }))
end)

harness.serve()
