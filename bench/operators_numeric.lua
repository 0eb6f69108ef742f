-- Rows of bench/operators.lua: products of wide and complex numbers, sorting, Fourier transforms, random numbers and small
-- matrices. The peers' expressions are in operators_numeric.py.
local harness = require "bench.harness"
local ms = require "lunaria"
local ops, np = ms.ops, ms.numpy

local function add(name, f, setup)
  harness.workload(name, { peers = 0.95 }, function() return harness.calls(f, setup()) end)
end

local function double(shape) return ops.randn(shape, ms.float64) end
local function complex(shape) return ops.complex(ops.randn(shape), ops.randn(shape)) end

for _, row in ipairs({ { 1, 3, 16, 32, 3 }, { 8, 16, 32, 28, 3 }, { 4, 64, 64, 28, 3 }, { 8, 32, 64, 14, 5 } }) do
  local batch, from, to, side, kernel = table.unpack(row)
  local options = { pad_mode = "pad", padding = kernel // 2 }
  local label = ("%dx%dx%dx%dk%d"):format(batch, from, to, side, kernel)
  add("conv2d_f64_" .. label, function(x, w) return ops.conv2d(x, w, options) end,
    function() return double({ batch, from, side, side }), double({ to, from, kernel, kernel }) end)
end
add("conv1d_f64_8x16x32x1000k9", function(x, w) return ops.conv1d(x, w) end,
  function() return double({ 8, 16, 1000 }), double({ 32, 16, 9 }) end)
for _, n in ipairs({ 4, 64, 256, 512 }) do
  add("matmul_c64_" .. n, ops.matmul, function() return complex({ n, n }), complex({ n, n }) end)
end
add("matmul_c128_128", ops.matmul, function()
  local function wide() return ops.complex(double({ 128, 128 }), double({ 128, 128 })) end
  return wide(), wide()
end)
add("matmul_c64_64x8x8", ops.matmul, function() return complex({ 64, 8, 8 }), complex({ 64, 8, 8 }) end)

for _, row in ipairs({ { 1, 1000 }, { 1, 1 << 16 }, { 1, 1 << 20 }, { 65536, 16 }, { 1024, 256 }, { 4096, 100 } }) do
  local lines, n = table.unpack(row)
  local label = ("%dx%d"):format(lines, n)
  add("sort_values_f32_" .. label, np.sort, function() return ops.randn({ lines, n }) end)
  add("sort_f32_" .. label, ops.sort, function() return ops.randn({ lines, n }) end)
  add("kthvalue_f32_" .. label, ops.kthvalue, function() return ops.randn({ lines, n }), n // 3 end)
end
for _, dtype in ipairs({ "float64", "int32", "int64" }) do
  local function numbers() return (ops.randn({ 1 << 20 }, ms.float64) * 1e6):astype(ms[dtype]) end
  add("sort_values_" .. dtype .. "_1M", np.sort, numbers)
  add("sort_" .. dtype .. "_1M", ops.sort, numbers)
end
add("argsort_f32_64K", ops.argsort, function() return ops.randn({ 1 << 16 }) end)
add("median_f32_1M", ops.median, function() return ops.randn({ 1 << 20 }) end)
add("unique_i64_1M", ops.unique, function() return ops.randint(0, 1000, { 1 << 20 }):astype(ms.int64) end)
add("quantile_f32_64K", function(x) return ops.quantile(x, 0.3) end, function() return ops.randn({ 1 << 16 }) end)

for _, row in ipairs({ { 1024, 512 }, { 256, 1000 }, { 4096, 64 }, { 1, 1 << 20 } }) do
  local lines, n = table.unpack(row)
  add(("rfft_f32_%dx%d"):format(lines, n), ops.rfft, function() return ops.randn({ lines, n }) end)
  add(("fft_c64_%dx%d"):format(lines, n), ops.fft, function() return complex({ lines, n }) end)
end
add("irfft_c64_1024x257", ops.irfft, function() return ops.rfft(ops.randn({ 1024, 512 })) end)
add("fft_c64_axis0_512x512", function(x) return ops.fft(x, nil, 0) end, function() return complex({ 512, 512 }) end)
add("fft2_c64_512x512", ops.fft2, function() return complex({ 512, 512 }) end)
add("fftn_c64_32x64x64", ops.fftn, function() return complex({ 32, 64, 64 }) end)
add("stft_f32_160000", function(x, window)
  return ops.stft(x, 512, 160, { window = window, return_complex = true })
end, function() return ops.randn({ 160000 }), ops.hann_window(512) end)
add("abs_c64_1M", ops.abs, function() return complex({ 1 << 20 }) end)
add("abs_c128_1M", ops.abs, function() return ops.complex(double({ 1 << 20 }), double({ 1 << 20 })) end)

for label, n in pairs({ [16] = 16, ["1K"] = 1000, ["1M"] = 1 << 20 }) do
  local function row(name, f) add(name .. "_" .. label, f, function() return { n } end) end
  row("rand", ops.rand)
  row("randn", ops.randn)
  row("randn_f64", function(shape) return ops.randn(shape, ms.float64) end)
  row("randint", function(shape) return ops.randint(0, 1000, shape) end)
  row("randperm", function(shape) return ops.randperm(shape[1]) end)
  row("laplace", function(shape) return ops.laplace(shape) end)
  row("gamma", function(shape) return ops.gamma(shape, ms.tensor(2.5)) end)
  row("poisson", function(shape) return ops.poisson(shape, ms.tensor(4.0)) end)
  row("poisson_100", function(shape) return ops.poisson(shape, ms.tensor(100.0)) end)
end

for _, row in ipairs({ { 4096, 4 }, { 4096, 8 }, { 1024, 16 } }) do
  local batch, n = table.unpack(row)
  for _, dtype in ipairs({ "float32", "float64" }) do
    local label = ("_%s_%dx%d"):format(dtype, batch, n)
    local function regular()
      return (ops.randn({ batch, n, n }, ms.float64) + ops.eye(n, n, ms.float64) * (2 * n)):astype(ms[dtype])
    end
    local function positive()
      local a = regular()
      return ops.matmul(a, a:swapaxes(1, 2))
    end
    local function right() return ops.randn({ batch, n, 2 }, ms.float64):astype(ms[dtype]) end
    add("solve" .. label, ops.matrix_solve, function() return regular(), right() end)
    add("inverse" .. label, ops.inverse, regular)
    add("det" .. label, ops.det, regular)
    add("cholesky" .. label, ops.cholesky, positive)
    add("triangular" .. label, function(a, b) return ops.solve_triangular(a, b, true) end,
      function() return ops.tril(regular()), right() end)
  end
end
for _, n in ipairs({ 64, 256, 512 }) do
  local function symmetric()
    local a = ops.randn({ n, n })
    return ops.matmul(a, a:t()) + ops.eye(n) * n
  end
  add("cholesky_f32_" .. n, ops.cholesky, symmetric)
  add("qr_f32_" .. n, ops.qr, function() return ops.randn({ n, n }) end)
  add("eigh_f32_" .. n, ops.eigh, symmetric)
  add("solve_f32_" .. n, ops.matrix_solve, function() return symmetric(), ops.randn({ n, 4 }) end)
end
