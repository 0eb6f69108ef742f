-- The GPU's own kernels against those of the CPU: every family, with shapes that take each way through it, and that
-- nothing was left to the host.
--   usage: kernels.lua [assemble | PART PARTS]
-- With `assemble` the mock keeps the assembly of a real processor and runs nothing: results are not looked at. Parts of
-- the checks may run side by side, number PART of PARTS. A third of the checks runs each day, a fifth with `assemble`.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local today = require "support.today"
local ops = ms.ops
local only_assembles = arg[1] == "assemble"
local part, parts = math.tointeger(tonumber(arg[1])) or 1, math.tointeger(tonumber(arg[2])) or 1
local checked = 0

ms.set_seed(1)

local function values(result)
  if type(result) ~= "table" then return { result } end
  return result
end

-- The greatest difference, beside the greatest element: sums of much that cancels are known to no more.
local function distance(here, there)
  if here.size == 0 then return 0 end
  local wide, other = here:astype(ms.float64), there:to("CPU"):astype(ms.float64)
  return (wide - other):abs():max():item() / (wide:abs():max():item() + 1)
end

local function check(name, f, ...)
  checked = checked + 1
  if checked % parts ~= part - 1 or not today.has(checked // parts, only_assembles and 5 or 3) then return end
  local args = { ... }
  t.test(name, function()
    local there = {}
    for i, a in ipairs(args) do there[i] = type(a) == "userdata" and a:to "GPU" or a end
    ms.runtime.forget_fallbacks()
    local results = values(f(table.unpack(there)))
    local left = {}
    for _, entry in ipairs(ms.runtime.fallbacks()) do left[#left + 1] = entry.operator end
    t.equal(table.concat(left, " "), "")
    if only_assembles then return end
    for i, expected in ipairs(values(f(table.unpack(args)))) do
      t.equal(results[i].device, "GPU")
      t.equal(results[i].shape, expected.shape)
      t.equal(results[i].dtype, expected.dtype)
      local bound = expected.dtype == ms.float16 and 1e-3 or expected.dtype == ms.bfloat16 and 8e-3 or 5e-6
      local far = distance(expected, results[i])
      if not (far <= bound) then error(("result %d differs by %g"):format(i, far)) end
    end
  end)
end

local randn = ops.randn
local function positions(n, shape) return ops.randint(0, n, shape):astype(ms.int64) end

-- One tile, several, few rows, few columns, much depth, many tiles.
for _, s in ipairs { { 1, 1, 1 }, { 3, 5, 7 }, { 65, 130, 67 }, { 5, 300, 70 }, { 300, 5, 1600 }, { 20, 30, 3000 }, { 1300, 1300, 9 } } do
  local name = table.concat(s, " x ")
  check("matmul " .. name, ops.matmul, randn { s[1], s[3] }, randn { s[3], s[2] })
  check("dense " .. name, ops.dense, randn { s[1], s[3] }, randn { s[2], s[3] }, randn { s[2] })
end
check("matmul of transposed views", function(a, b) return ops.matmul(a.T, b.T) end, randn { 30, 20 }, randn { 40, 30 })
check("matmul of batches", ops.matmul, randn { 2, 1, 30, 20 }, randn { 3, 20, 40 })
check("matmul of a batch and a matrix", ops.matmul, randn { 2, 3, 30, 20 }, randn { 20, 40 })
check("matmul of a vector and a matrix", ops.matmul, randn { 20 }, randn { 20, 40 })
check("matmul of a matrix and a vector", ops.matmul, randn { 20, 40 }, randn { 40 })
check("matmul without depth", ops.matmul, randn { 3, 0 }, randn { 0, 4 })
check("matmul without rows", ops.matmul, randn { 0, 3 }, randn { 3, 4 })
check("bmm", ops.bmm, randn { 3, 4, 5 }, randn { 3, 5, 6 })
for _, dtype in ipairs { ms.float64, ms.float16, ms.bfloat16 } do
  check("matmul of " .. tostring(dtype), ops.matmul, randn({ 20, 40 }):astype(dtype), randn({ 40, 7 }):astype(dtype))
  check("dense of " .. tostring(dtype), ops.dense, randn({ 20, 40 }):astype(dtype), randn({ 7, 40 }):astype(dtype),
    randn({ 7 }):astype(dtype))
end
for _, dtype in ipairs { ms.int32, ms.int64 } do
  check("matmul of " .. tostring(dtype), ops.matmul, positions(9, { 20, 40 }):astype(dtype), positions(9, { 40, 7 }):astype(dtype))
end

for i, w in ipairs {
  { { 2, 3, 5, 7 }, { 4, 3, 3, 2 }, 2, { 0, 0 }, 1, 1 },
  { { 2, 4, 8, 8 }, { 6, 2, 3, 3 }, 1, { 1, 1 }, 1, 2 },
  { { 3, 4, 9, 8 }, { 8, 4, 3, 3 }, 2, { 1, 1 }, 2, 1 },
  { { 2, 16, 12, 12 }, { 32, 16, 1, 1 }, 1, { 0, 0 }, 1, 1 },
  { { 9, 3, 16, 16 }, { 70, 3, 3, 3 }, 1, { 1, 1 }, 1, 1 },
} do
  local options = { stride = w[3], pad_mode = "pad", padding = w[4], dilation = w[5], groups = w[6] }
  local x, weight, bias = randn(w[1]), randn(w[2]), randn { w[2][1] }
  local function conv(a, b, c) return ops.conv2d(a, b, c, options) end
  check("conv2d " .. i, conv, x, weight, bias)
  check("gradients of conv2d " .. i, ms.grad(function(a, b, c)
    local y = conv(a, b, c)
    return (y * y):sum() * 0.01
  end, { 0, 1, 2 }), x, weight, bias)
end
for _, dtype in ipairs { ms.float16, ms.bfloat16 } do
  local function conv(a, b, c) return ops.conv2d(a, b, c, { pad_mode = "pad", padding = 1 }) end
  local x, weight, bias = randn({ 2, 3, 6, 5 }):astype(dtype), randn({ 4, 3, 3, 3 }):astype(dtype), randn({ 4 }):astype(dtype)
  check("conv2d of " .. tostring(dtype), conv, x, weight, bias)
  check("gradients of conv2d of " .. tostring(dtype), ms.grad(function(a, b, c) return (conv(a, b, c) * 0.5):sum() end, { 0, 1, 2 }),
    x, weight, bias)
end
check("conv1d", ops.conv1d, randn { 2, 3, 20 }, randn { 4, 3, 5 })
check("conv3d of float64", ops.conv3d, randn({ 2, 3, 6, 5, 4 }, ms.float64), randn({ 4, 3, 2, 3, 2 }, ms.float64))

for _, k in ipairs { { 2, 2, 0 }, { 3, 2, 1 }, { 3, 1, 1 } } do
  local name, x = table.concat(k, " "), randn { 2, 3, 9, 8 }
  local function largest(a) return ops.max_pool2d(a, k[1], { stride = k[2], padding = k[3] }) end
  local function mean(a) return ops.avg_pool2d(a, k[1], { stride = k[2], padding = k[3], count_include_pad = k[2] == 2 }) end
  check("max_pool2d " .. name, largest, x)
  check("gradient of max_pool2d " .. name, ms.grad(function(a) return (largest(a) * largest(a)):sum() end), x)
  check("avg_pool2d " .. name, mean, x)
  check("gradient of avg_pool2d " .. name, ms.grad(function(a) return (mean(a) * mean(a)):sum() end), x)
end
check("largest of windows with NaN", function(a) return ops.isnan(ops.max_pool2d(a, 2)) end,
  ms.tensor { { { { 1, 0 / 0, 3, 4 }, { 1, 2, 3, 4 } } } })

for _, s in ipairs { { 4, 3, 5, 6 }, { 4, 3 }, { 2, 70, 9 } } do
  local x, c = randn(s), s[2]
  check("batch norm of " .. table.concat(s, " x "), ops.batch_norm_train, x, randn { c }, randn { c })
  check("its gradient", ops.batch_norm_grad, randn(s), x, randn { c })
end
check("batch norm without weight", ops.batch_norm_train, randn { 4, 3 })
for _, s in ipairs { { 3, 5 }, { 700, 40 }, { 2, 1000 } } do
  local n = s[2]
  local function norm(x, a, b) return ops.layer_norm(x, { n }, a, b) end
  check("layer norm of " .. table.concat(s, " x "), norm, randn(s), randn { n }, randn { n })
  check("its gradient", function(d, x, a) return ops.layer_norm_grad(d, x, a, 1) end, randn(s), randn(s), randn { n })
  check("its gradient without weight", function(d, x) return ops.layer_norm_grad(d, x, nil, 1) end, randn(s), randn(s))
end

for _, f in ipairs { "sum", "mean", "prod", "amax", "amin", "all", "any" } do
  for _, s in ipairs { { 3, 5, 4 }, { 20000, 2 }, { 2, 9000 }, { 100, 3, 70 } } do
    local x = randn(s) * 0.1 + 1
    if f == "all" or f == "any" then x = ops.greater(randn(s), 2.5) end
    local rank = #s
    for _, axis in ipairs { 0, 1, { 0, rank - 1 }, "all" } do
      local axes = axis ~= "all" and axis or nil
      if not (f == "prod" and s[2] == 9000) and not (f == "prod" and s[1] == 20000) then
        check(("%s of %s along %s"):format(f, table.concat(s, " x "), type(axis) == "table" and table.concat(axis, " ") or axis),
          function(a) return ops[f](a, axes) end, x)
      end
    end
  end
end
-- Parts of columns, parts of those, columns of several axes, and what lies transposed.
for _, f in ipairs { "sum", "mean", "amax" } do
  local function along(axes) return function(a) return ops[f](a, axes) end end
  check(f .. " of columns in parts", along { 0 }, randn { 40000, 33 })
  check(f .. " between axes", along { 1 }, randn { 3, 1500, 65 })
  check(f .. " of columns of two axes", along { 0, 1 }, randn { 30, 40, 50 })
  check(f .. " of columns that lie apart", function(a) return ops[f](a["0:2000, 0:90:3"], 0) end, randn { 2000, 90 })
  check(f .. " of rows that lie as columns", function(a) return ops[f](a.T, 1) end, randn { 3000, 40 })
  check(f .. " of everything in parts", function(a) return ops[f](a) end, randn { 300, 1000 })
end
check("layer norm of rows too long for a loop", function(x, a, b) return ops.layer_norm(x, { 70000 }, a, b) end,
  randn { 2, 70000 }, randn { 70000 }, randn { 70000 })
check("layer norm of them without weight", function(x) return ops.layer_norm(x, { 2, 40000 }) end, randn { 1, 2, 40000 })
check("sum of nothing", function(x) return ops.sum(x, 1) end, randn { 5, 0 })
check("clamp from below", function(x) return ops.clamp(x, 0.5) end, randn { 5, 30 })
check("clamp from above", function(x) return ops.clamp(x, nil, 0.5) end, randn { 5, 30 })
check("sum of integers", function(x) return ops.sum(x, 0) end, positions(100, { 300, 4 }):astype(ms.int32))
check("amax of integers", function(x) return ops.amax(x, 0) end, positions(100, { 300, 4 }))

for _, s in ipairs { { 3, 5, 4 }, { 2, 900 }, { 1, 3 }, { 40, 6 } } do
  local x, name = randn(s), table.concat(s, " x ")
  for axis = 0, #s - 1 do
    local where = (" of %s along %d"):format(name, axis)
    for _, f in ipairs { "softmax", "log_softmax" } do
      check(f .. where, function(a) return ops[f](a, axis) end, x)
      check("gradient of " .. f .. where, ms.grad(function(a) return (ops[f](a, axis) * a):sum() end), x)
    end
    check("cumsum" .. where, function(a) return ops.cumsum(a, axis) end, x)
    check("cumsum of some before" .. where, function(a)
      return ops.cumsum(a, axis, nil, { exclusive = true, reverse = true })
    end, x)
    check("cumprod" .. where, function(a) return ops.cumprod(a, axis) end, x * 0.1 + 1)
    for _, reverse in ipairs { false, true } do
      check("linear_recurrence" .. where, function(a, b) return ops.linear_recurrence(a, b, axis, { reverse = reverse }) end, x * 0.3, x)
    end
    -- Equal elements and NaN among them.
    local few = ops.floor(x * 2) * 0.5
    few = ops.where(ops.greater(x, 2), 0 / 0, few)
    local function numbers(list)
      for i, r in ipairs(list) do list[i] = r.dtype == ms.int64 and r or ops.where(ops.isnan(r), 1e6, r) end
      return list
    end
    for _, descending in ipairs { false, true } do
      check("sort" .. where, function(a) return numbers { ops.sort(a, axis, descending) } end, few)
      check("argsort" .. where, function(a) return ops.argsort(a, axis, descending) end, few)
      check("topk" .. where, function(a) return numbers { ops.topk(a, math.min(2, s[axis + 1]), axis, descending) } end, few)
    end
    for _, f in ipairs { "max", "min" } do
      check(f .. where, function(a) return numbers { ops[f](a, axis) } end, few)
      check("arg" .. f .. where, function(a) return ops["arg" .. f](a, axis) end, few)
    end
  end
  check("argmax of all of " .. name, function(a) return ops.argmax(a) end, x)
  check("max of all of " .. name, function(a) return { (ops.max(a)) } end, x)
end
check("sort of integers", function(a) return { ops.sort(a) } end, positions(9, { 5, 30 }):astype(ms.int32))
check("cumsum of integers", function(a) return ops.cumsum(a, 1) end, positions(9, { 5, 30 }):astype(ms.int32))

for _, s in ipairs { { 3, 5, 4 }, { 2, 3000 } } do
  for _, axis in ipairs { 0, 1, "all" } do
    local axes = axis ~= "all" and axis or nil
    for _, f in ipairs { "var", "std", "logsumexp" } do
      check(("%s of %s along %s"):format(f, table.concat(s, " x "), axis), function(x) return ops[f](x, axes) end, randn(s))
    end
    check("var of a sample along " .. axis, function(x) return ops.var(x, axes, 1) end, randn(s))
  end
end
check("logsumexp of infinities", function(x) return ops.exp(ops.logsumexp(x, 0)) end, ms.tensor { -1 / 0, -1 / 0 })
-- One tile and several, of queries and of keys; heads of several sizes; windows.
for _, s in ipairs { { 1, 1, 5, 7, 4, 3 }, { 2, 3, 70, 67, 16, 8 }, { 1, 2, 33, 130, 64, 64 }, { 1, 1, 20, 20, 130, 17 },
  { 1, 1, 9, 9, 200, 9 } } do
  local b, h, n, m, d, e = table.unpack(s)
  local name = table.concat(s, " x ")
  local q, k, v, slopes = randn { b, h, n, d }, randn { b, h, m, d }, randn { b, h, m, e }, randn { b, h, n, e }
  for _, window in ipairs { { false, 0 }, { true, 0 }, { true, -3 }, { true, 9223372036854775807 } } do
    local where = (" of %s, %s %d"):format(name, window[1] and "causal" or "all", window[2])
    check("attention" .. where, function(x, y, z) return ops.attention(x, y, z, 0.3, window[1], window[2]) end, q, k, v)
    if window[2] <= 0 then
      check("gradient of attention" .. where, function(o, x, y, z) return { ops.attention_grad(o, x, y, z, 0.3, window[1], window[2]) } end,
        slopes, q, k, v)
    end
  end
end
for _, dtype in ipairs { ms.float64, ms.float16, ms.bfloat16 } do
  local x = randn({ 1, 2, 40, 16 }):astype(dtype)
  check("attention of " .. tostring(dtype), function(a) return ops.attention(a, a, a, 0.3) end, x)
  check("gradient of attention of " .. tostring(dtype), function(a) return { ops.attention_grad(a, a, a, a, 0.3, true, 0) } end, x)
end
-- By the units for blocks of matrices: sizes that they take, of which no length is a multiple of a tile, and windows of
-- every kind, those behind which some queries see nothing among them.
for _, dtype in ipairs { ms.float16, ms.bfloat16 } do
  for _, s in ipairs {
    { 70, 70, 64, 64, true, 0 }, { 33, 129, 16, 32, false, 0 }, { 200, 100, 128, 64, true, -100 },
    { 40, 100, 48, 80, true, 60 }, { 5, 3, 16, 16, true, -2 }, { 130, 130, 128, 128, true, 0 },
  } do
    local queries, keys, size, value_size, causal, shift = table.unpack(s)
    local function heads(n, width) return randn({ 2, 2, n, width }):astype(dtype) end
    local q, k, v, d = heads(queries, size), heads(keys, size), heads(keys, value_size), heads(queries, value_size)
    local where = (" by units of %s, %d x %d of %d and %d"):format(dtype, queries, keys, size, value_size)
    check("attention" .. where, function(a, b, c) return ops.attention(a, b, c, 0.3, causal, shift) end, q, k, v)
    check("gradient of attention" .. where, function(o, a, b, c) return { ops.attention_grad(o, a, b, c, 0.3, causal, shift) } end,
      d, q, k, v)
  end
end
-- Of no queries, no keys, neither.
for _, dtype in ipairs { ms.float32, ms.bfloat16 } do
  for _, s in ipairs { { 0, 3 }, { 3, 0 }, { 0, 0 } } do
    local q, k = randn({ 2, 1, s[1], 64 }):astype(dtype), randn({ 2, 1, s[2], 64 }):astype(dtype)
    local where = (" of %d x %d in %s"):format(s[1], s[2], dtype)
    check("attention" .. where, function(a, b) return ops.attention(a, b, b, 0.3) end, q, k)
    check("gradient of attention" .. where, function(a, b) return { ops.attention_grad(a, a, b, b, 0.3, false, 0) } end, q, k)
  end
end
check("attention of heads that lie side by side", function(a)
  local heads = a:transpose { 0, 2, 1, 3 }
  return ops.attention(heads, heads, heads)
end, randn { 2, 9, 3, 8 })
check("rms_norm", ops.rms_norm, randn { 5, 70 }, randn { 70 })
check("gather_nd", ops.gather_nd, randn { 5, 6, 7 }, positions(5, { 9, 2 }) - 2)
check("gather_nd of elements", ops.gather_nd, randn { 5, 6 }, positions(5, { 3, 4, 2 }))
for diagonal = -2, 2 do
  check("tril from " .. diagonal, function(x) return ops.tril(x, diagonal) end, randn { 2, 3, 4 })
  check("triu from " .. diagonal, function(x) return ops.triu(x, diagonal) end, randn { 2, 4, 3 })
end
for axis = -1, 1 do
  check("one_hot along " .. axis, function(x) return ops.one_hot(x, 4, 2.5, -1, axis) end, positions(5, { 3, 4 }) - 1)
end

check("gather", function(x, i) return ops.gather(x, i, 0) end, randn { 50, 7 }, positions(50, { 3, 4 }))
check("gather from the end", function(x, i) return ops.gather(x, i, 1) end, randn { 5, 17, 3 }, positions(17, { 4 }) - 17)
check("gather of bytes", function(x, i) return ops.gather(x, i, 0) end, ops.greater(randn { 9, 5 }, 0), positions(9, { 20 }))
check("gather_elements", function(x, i) return ops.gather_elements(x, 1, i) end, randn { 5, 17 }, positions(17, { 5, 3 }))
for _, how in ipairs { "none", "add", "sub" } do
  check("tensor_scatter_elements " .. how, function(x, i, u) return ops.tensor_scatter_elements(x, i, u, 1, how) end, randn { 5, 17 },
    positions(17, { 5, 30 }), randn { 5, 30 })
end
for _, how in ipairs { "none", "add", "sub" } do
  check("tensor_scatter_nd " .. how, function(x, i, u) return ops.tensor_scatter_nd(x, i, u, how) end, randn { 5, 6, 7 },
    positions(5, { 30, 2 }) - 2, randn { 30, 7 })
end
check("index_add", function(x, i, u) return ops.index_add(x, i, u, 1, { alpha = 2 }) end, randn { 5, 17, 3 },
  positions(17, { 40 }), randn { 5, 40, 3 })
check("valid_labels", function(i) return ops.valid_labels(i, 9) end, positions(9, { 40 }))
check("valid_labels with one that does not count", function(i) return ops.valid_labels(i, 9, -1) end, ms.tensor({ 3, -1, 8 }, ms.int64))
check("concat", function(a, b) return ops.concat({ a, b }, 1) end, randn { 3, 4, 5 }, randn { 3, 2, 5 })
check("slice_assign", function(a, b) return ops.slice_assign(a, b, { 0, 1 }, { 2, 3 }) end, randn { 3, 4 }, randn { 2, 2 })
check("slice_assign with steps", function(a, b) return ops.slice_assign(a, b, { 0, 3 }, { 4, -5 }, { 2, -2 }) end,
  randn { 4, 4 }, randn { 2, 2 })
check("slice_assign of bytes with steps", function(a, b) return ops.slice_assign(a, b, { 0, 0 }, { 4, 4 }, { 2, 2 }) end,
  ops.greater(randn { 4, 4 }, 0), ops.greater(randn { 2, 2 }, 0))
check("constants", function(x)
  ms.set_device(x.device)
  local all = { ops.full({ 3, 4 }, 2.5), ops.ones { 5 }, ops.zeros { 2, 3 }, ops.full({ 2 }, 7, ms.int32), ops.full_like(x, 3),
    ops.arange(3, 50, 4), ops.arange(0, 1, 0.1), ops.arange(5, 0, -1, { dtype = ms.float32 }), ops.eye(3), ops.eye(2, 4, ms.int32),
    ops.linspace(0, 1, 7), ops.linspace(3, -2, 8, ms.float64), ops.linspace(4, 5, 1) }
  ms.set_device "CPU"
  return all
end, randn { 3, 4 })

-- The streams are the CPU's, to the bit.
local function draws(name, f)
  t.test(name, function()
    ms.runtime.forget_fallbacks()
    ms.set_device "GPU"
    ms.set_seed(11)
    local there = values(f())
    ms.set_device "CPU"
    t.equal(#ms.runtime.fallbacks(), 0)
    if only_assembles then return end
    ms.set_seed(11)
    for i, here in ipairs(values(f())) do
      t.equal(there[i].device, "GPU")
      t.equal(ops.equal(here, there[i]:to "CPU"):all():item(), true)
    end
  end)
end
for _, n in ipairs { 1, 2, 5, 4000 } do
  for _, dtype in ipairs { ms.float32, ms.float64, ms.float16, ms.bfloat16 } do
    draws(("rand of %d %s"):format(n, dtype), function() return ops.rand({ n }, dtype) end)
  end
  draws(("randn of %d"):format(n), function() return ops.randn { n } end)
  for _, bounds in ipairs { { 0, 10 }, { -5, 3000000000 }, { 0, math.maxinteger }, { math.mininteger, math.maxinteger } } do
    draws(("randint of %d from %d to %d"):format(n, bounds[1], bounds[2]), function() return ops.randint(bounds[1], bounds[2], { n }) end)
  end
  for _, p in ipairs { 0.3, 0, 1 } do
    draws(("dropout of %d with %g"):format(n, p), function()
      return ops.dropout_with_mask(ops.rand { n }, p)
    end)
  end
end

-- What is updated: many parameters of several sizes, with and without each part of the formula.
local function steps(name, f)
  for _, dtype in ipairs { ms.float32, ms.float64 } do
    for _, count in ipairs { 1, 70 } do
      t.test(("%s of %d parameters of %s"):format(name, count, dtype), function()
        local function lists(device)
          ms.set_seed(5)
          local all = {}
          for list = 1, 5 do
            all[list] = {}
            for k = 1, count do all[list][k] = randn({ k % 7 == 0 and 5000 or k, 3 }, dtype):to "CPU" end
          end
          for list = 4, 5 do
            for k = 1, count do all[list][k] = ops.abs(all[list][k]) end
          end
          for list = 1, 5 do
            for k = 1, count do all[list][k] = all[list][k]:to(device) end
          end
          return all
        end
        local decayed = {}
        for k = 1, count do decayed[k] = k % 2 == 1 end
        local here, there = lists "CPU", lists "GPU"
        ms.runtime.forget_fallbacks()
        f(there, decayed)
        t.equal(#ms.runtime.fallbacks(), 0)
        if only_assembles then return end
        f(here, decayed)
        for list = 1, 5 do
          for k = 1, count do
            local far = distance(here[list][k], there[list][k])
            if not (far < 1e-6) then error(("list %d, parameter %d: differs by %g"):format(list, k, far)) end
          end
        end
      end)
    end
  end
end
for _, nesterov in ipairs { false, true } do
  steps("momentum", function(l, decayed) ops.apply_momentum(l[1], l[2], l[3], 0.1, 0.9, 0.2, 0.01, nesterov, decayed) end)
  steps("adam", function(l, decayed) ops.apply_adam(l[1], l[2], l[3], l[4], nil, 0.1, 0.9, 0.99, 1e-8, 0.01, 0.9, nesterov, decayed) end)
  steps("adam with maxima", function(l) ops.apply_adam(l[1], l[2], l[3], l[4], l[5], 0.1, 0.9, 0.99, 1e-8, 0, 1, nesterov) end)
end
steps("gradient descent", function(l) ops.apply_momentum(l[1], l[2], nil, 0.1) end)

if not only_assembles then
  t.test("what a kernel refuses is told as the CPU tells it", function()
    local x = randn({ 5, 7 }):to "GPU"
    local far, label = ms.tensor({ 1, 6 }, ms.int64):to "GPU", ms.tensor({ 1, 9 }, ms.int64):to "GPU"
    t.fails({ "gather: index 6 is out of range" }, ops.gather, x, far, 0)
    t.fails({ "gather_nd: index 6 is out of range" }, ops.gather_nd, x, far:reshape { 2, 1 })
    t.fails({ "gather_elements: index 6 is out of range" }, ops.gather_elements, x, 0, far:reshape { 2, 1 })
    t.fails({ "index_add: index 6 is out of range" }, ops.index_add, x, far, randn({ 2, 7 }):to "GPU", 0)
    t.fails({ "tensor_scatter_elements: index 6 is out of range" }, ops.tensor_scatter_elements, x, far:reshape { 2, 1 },
      randn({ 2, 1 }):to "GPU", 0)
    t.fails({ "tensor_scatter_nd: index 6 is out of range" }, ops.tensor_scatter_nd, x, far:reshape { 2, 1 },
      randn({ 2, 7 }):to "GPU")
    t.fails({ "label 9 at position 1 is out of range" }, ops.valid_labels, label, 9)
    t.equal(ops.gather(x, far - 2, 0).shape, { 2, 7 })
  end)
end

-- On a processor there is no mock to ask.
local has_mock, mock = pcall(require, "mock_control")
if has_mock then
  t.test("the driver was used as it is to be used", function() t.equal(mock.blamed(), "") end)
end

t.finish()
