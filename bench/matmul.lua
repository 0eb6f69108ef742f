-- Matrix products: within 3 % of OpenBLAS called directly, and at least as fast as the frameworks that call it (or its like).
local harness = require "bench.harness"
local ops = require "lunaria".ops

local shapes = {
  { 64, 64, 64 }, { 128, 128, 128 }, { 256, 256, 256 }, { 512, 512, 512 }, { 1024, 1024, 1024 }, { 2048, 2048, 2048 },
  { 64, 784, 512 }, { 64, 512, 256 }, { 64, 512, 10 }, { 1, 784, 512 }, { 1024, 128, 512 }, { 1024, 512, 128 },
  { 32, 400, 120 },
}

for _, shape in ipairs(shapes) do
  local m, k, n = table.unpack(shape)
  harness.workload(("matmul_%dx%dx%d"):format(m, k, n), { openblas = 0.97 }, function()
    return harness.calls(ops.matmul, ops.randn({ m, k }), ops.randn({ k, n }))
  end)
end

harness.serve()
