-- Single operators that people compare frameworks by, against the best peer of the same run: each on a small tensor, on one
-- that fits the second cache and on one that does not fit the last. Bars: 1 for what a network is trained with, a little
-- less for what only moves elements, where all contestants wait for the same memory, and for products of integers.
local add_rows = require "bench.operator_rows"
local harness = require "bench.harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local calls = harness.calls
local near = { peers = 0.95 }

-- Whether products of bfloat16 are one instruction here.
local function has_bf16_products()
  local file = io.open("/proc/cpuinfo")
  if not file then return false end
  local text = file:read("a")
  file:close()
  return text:find("avx512_bf16", 1, true) ~= nil or text:find("amx_bf16", 1, true) ~= nil
end

for _, n in ipairs({ 64, 256, 1024 }) do
  harness.workload(("matmul_f32_%d"):format(n), { torch = 1 }, function()
    return calls(ops.matmul, ops.randn({ n, n }), ops.randn({ n, n }))
  end)
  for _, dtype in ipairs({ "int8", "int32" }) do
    harness.workload(("matmul_%s_%d"):format(dtype, n), { torch = 0.8 }, function()
      local function matrix() return ops.randint(-9, 9, { n, n }):astype(ms[dtype]) end
      return calls(ops.matmul, matrix(), matrix())
    end)
  end
  -- Where a product of bfloat16 costs less than one of float32, it has to show.
  local bars = { torch = 1 }
  if has_bf16_products() then bars[("matmul_f32_%d"):format(n)] = 1 end
  harness.workload(("matmul_bf16_%d"):format(n), bars, function()
    local function matrix() return ops.randn({ n, n }):astype(ms.bfloat16) end
    return calls(ops.matmul, matrix(), matrix())
  end)
end

local sizes = { { "4K", 1 << 12 }, { "128K", 1 << 17 }, { "8M", 1 << 23 } }
for _, size in ipairs(sizes) do
  local label, n = table.unpack(size)
  local function add(name, setup) harness.workload(("%s_%s"):format(name, label), near, setup) end
  local function vector() return ops.randn({ n }) end
  local rows = 1 << (math.tointeger(math.log(n, 2) // 1) // 2)
  local function matrix() return ops.randn({ rows, n // rows }) end

  for _, to in ipairs({ "int32", "int8", "int64" }) do
    add("cast_" .. to, function()
      local dtype = ms[to]
      return calls(ops.cast, vector() * 9, dtype)
    end)
  end
  add("take", function() return calls(ops.take, vector(), ops.randint(0, n, { n }):astype(ms.int64)) end)
  add("scatter_add", function()
    return calls(ops.scatter_add, vector(), 0, ops.randint(0, n, { n }):astype(ms.int64), vector())
  end)
  add("scatter_add_rows", function()
    return calls(ops.scatter_add, matrix(), 0, ops.randint(0, rows, { rows, n // rows }):astype(ms.int64), matrix())
  end)
  add("pad", function() return calls(ops.pad, matrix(), { 1, 1, 1, 1 }) end)
  add("roll", function() return calls(ops.roll, vector(), 5) end)
  add("roll_columns", function() return calls(ops.roll, matrix(), 5, 1) end)
  add("flip_rows", function() return calls(ops.flip, matrix(), { 0 }) end)
  add("flip_columns", function() return calls(ops.flip, matrix(), { 1 }) end)
  add("tile", function() return calls(ops.tile, matrix(), { 2, 2 }) end)
  add("copy_step2", function()
    local x = matrix()["::, ::2"]
    return function(k) for _ = 1, k do x:contiguous() end end
  end)
  add("copy_columns", function()
    local x = matrix()["::, 1:-1"]
    return function(k) for _ = 1, k do x:contiguous() end end
  end)
  add("copy_permuted", function()
    local x = ops.randn({ 16, rows // 4, n // rows // 4 }):permute(1, 0, 2)
    return function(k) for _ = 1, k do x:contiguous() end end
  end)
  add("pow", function() return calls(ops.pow, ops.rand({ n }) + 0.5, vector()) end)
  add("pow_2.5", function() return calls(ops.pow, ops.rand({ n }) + 0.5, 2.5) end)
  add("pow_3", function() return calls(ops.pow, vector(), 3) end)
end

for _, shape in ipairs({ { 1, 16, 16 }, { 4, 64, 28 }, { 16, 128, 56 } }) do
  local batch, channels, side = table.unpack(shape)
  harness.workload(("depthwise_%dx%dx%d"):format(batch, channels, side), near, function()
    local x, w = ops.randn({ batch, channels, side, side }), ops.randn({ channels, 1, 3, 3 })
    local options = { pad_mode = "pad", padding = 1, groups = channels }
    return function(n) for _ = 1, n do ops.conv2d(x, w, options) end end
  end)
end

for _, n in ipairs({ 16, 128, 512 }) do
  harness.workload(("svd_%d"):format(n), near, function() return calls(ops.svd, ops.randn({ n, n })) end)
end

-- One step of one layer, from an input and a state to the next state.
for _, size in ipairs({ { 1, 32 }, { 16, 128 }, { 64, 1024 } }) do
  local batch, hidden = table.unpack(size)
  harness.workload(("lstm_step_%dx%d"):format(batch, hidden), { torch = 1 }, function()
    local cell = nn.LSTM(hidden, hidden)
    local x, h, c = ops.randn({ 1, batch, hidden }), ops.randn({ 1, batch, hidden }), ops.randn({ 1, batch, hidden })
    return calls(cell, x, { h, c })
  end)
end

require "bench.operators_numeric"
add_rows(function(name, setup) harness.workload(name, near, setup) end)

harness.serve()
