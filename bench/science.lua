-- Fourier transforms beside numpy and pocketfft (scipy.fft), a sparse matrix times a dense one beside scipy, sums of products
-- of five operands beside numpy in the order that opt_einsum finds.
local harness = require "bench.harness"
local ms = require "lunaria"
local ops = ms.ops

-- Powers of two, primes and mixed sizes.
for _, n in ipairs { 64, 1024, 65536, 1048576, 251, 7919, 65537, 360, 10000, 98280 } do
  harness.workload("fft_" .. n, { peers = 1 }, function()
    return harness.calls(ops.fft, ops.view_as_complex(ops.randn { n, 2 }))
  end)
end
for _, n in ipairs { 1024, 65536, 10000 } do
  harness.workload("rfft_" .. n, { peers = 1 }, function() return harness.calls(ops.rfft, ops.randn { n }) end)
end

-- rows, columns, values in each row, columns of the dense matrix
for _, row in ipairs { { 20000, 20000, 10, 64 }, { 20000, 20000, 10, 1 }, { 2000, 5000, 100, 32 }, { 100000, 1000, 5, 16 } } do
  local rows, columns, filled, width = table.unpack(row)
  harness.workload(("csr_%dx%d_%d_by_%d"):format(rows, columns, filled, width), { peers = 1 }, function()
    local starts = ops.arange(0, rows * filled + 1, filled, ms.int32)
    local places = ops.randint(0, columns, { rows, filled }, nil, ms.int32)
    places = ops.reshape((ops.sort(places, 1)), { -1 })
    return harness.calls(ops.csr_matmul, starts, places, ops.randn { rows * filled }, ops.randn { columns, width })
  end)
end

for _, row in ipairs {
  { "ab,bc,cd,de,ef->af", { { 40, 60 }, { 60, 30 }, { 30, 80 }, { 80, 20 }, { 20, 50 } } },
  { "abi,bcj,ij,ck,kl->al", { { 12, 16, 20 }, { 16, 14, 18 }, { 20, 18 }, { 14, 24 }, { 24, 10 } } },
} do
  harness.workload("einsum_" .. row[1]:gsub("%W", "_"), { peers = 0.9 }, function()
    local operands = {}
    for i, shape in ipairs(row[2]) do operands[i] = ops.randn(shape) end
    return harness.calls(ops.einsum, row[1], operands)
  end)
end

harness.serve()
