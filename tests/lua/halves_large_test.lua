-- Large halves: what is counted, squared, placed or added up over 257 elements and more is what float32 gives for the same
-- numbers, rounded once, to the bit the same eager and compiled. tests/backends/halves_test.cpp has every operator; here are the
-- ways in which programs come to them.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local halves = { float16 = ms.float16, bfloat16 = ms.bfloat16 }
local SIZES = { 257, 2049, 70001 }

local function bits(x) return x:contiguous():astype(ms.float32):tolist() end

-- f of halves, eager and compiled, is f of the same numbers in float32, rounded once.
local function check(what, f, make)
  for name, half in pairs(halves) do
    for _, n in ipairs(SIZES) do
      local operands, wide = table.pack(make(n)), {}
      for i, x in ipairs(operands) do
        if x.dtype == ms.float32 then operands[i] = ops.cast(x, half) end
        wide[i] = operands[i].dtype == half and ops.cast(operands[i], ms.float32) or operands[i]
      end
      local where = ("%s of %d %s"):format(what, n, name)
      local wanted, got = ops.cast(f(table.unpack(wide)), half), f(table.unpack(operands))
      assert(got.dtype == half, where .. " is " .. tostring(got.dtype))
      local a, b = bits(ops.reshape(got, { -1 })), bits(ops.reshape(wanted, { -1 }))
      local margin = name == "float16" and 2 ^ -10 or 2 ^ -7
      for i, y in ipairs(b) do
        local close = a[i] == y or math.abs(a[i] - y) <= margin * math.abs(y) + 2 ^ -24 or (a[i] ~= a[i] and y ~= y)
        assert(close, ("%s: element %d is %.9g instead of %.9g"):format(where, i - 1, a[i], y))
      end
      local compiled = ms.jit(f)
      for _ = 1, 3 do
        t.equal(bits(ops.reshape(compiled(table.unpack(operands)), { -1 })), a, where .. ", compiled")
      end
    end
  end
end

local function gradient(f) return ms.grad(function(x, ...) return ops.sum(f(x, ...)) end) end
local function ones(n) return ops.ones { n } end
local function waves(n) return ops.sin(ops.arange(0, n, 1, { dtype = ms.float32 }) * 0.37) end
local function many(n) return ops.zeros({ n }, ms.int64) end

t.test("gradients of what is read many times count the readers", function()
  local w = ops.ones { 3, 2 }
  check("embedding", gradient(function(x, i) return ops.embedding(i, x) end), function(n) return w, many(n) end)
  check("index", gradient(function(x, i) return x[i] end), function(n) return w, many(n) end)
  check("gather", gradient(function(x, i) return ops.gather(x, i, 1) end), function(n) return w, many(n) end)
  check("take", gradient(function(x, i) return ops.take(x, i) end), function(n) return w, many(n) end)
  check("index_select", gradient(function(x, i) return ops.index_select(x, 0, i) end), function(n) return w, many(n) end)
  check("gather_nd", gradient(function(x, i) return ops.gather_nd(x, ops.expand_dims(i, 1)) end), function(n) return w, many(n) end)
  check("gather_elements", gradient(function(x, i) return ops.gather_elements(x, 0, ops.stack({ i, i }, 1)) end),
    function(n) return w, many(n) end)
  check("nearest", gradient(function(x) return ops.interpolate(x, { size = { 2049 } }) end), function() return ops.ones { 1, 1, 2 } end)
  check("replicate", gradient(function(x) return ops.pad(x, { 2100, 300 }, "replicate") end), function() return ops.ones { 1, 1, 2 } end)
  check("broadcast", gradient(function(x, y) return x * y end), function(n) return ops.ones { 1 }, ones(n) end)
end)

t.test("what is added to one place is added in float32", function()
  local zero = ops.zeros { 2 }
  check("index_add", function(x, i, y) return ops.index_add(x, i, y, 0) end, function(n) return zero, many(n), ones(n) end)
  check("scatter_add", function(x, i, y) return ops.scatter_add(x, 0, i, y) end, function(n) return zero, many(n), ones(n) end)
  check("tensor_scatter_add", function(x, i, y) return ops.tensor_scatter_add(x, ops.expand_dims(i, 1), y) end,
    function(n) return zero, many(n), ones(n) end)
  check("unsorted_segment_sum", function(y, i) return ops.unsorted_segment_sum(y, i, 2) end, function(n) return ones(n), many(n) end)
  check("bincount", function(i, y) return ops.bincount(i, y) end, function(n) return many(n), ones(n) end)
  check("histc", function(x) return ops.histc(x, 3, -1.0, 1.0) end, function(n) return waves(n) end)
end)

t.test("order statistics find their places", function()
  local function gaps(n) return ops.where(ops.greater(waves(n), 0.95), 0 / 0, waves(n)) end
  for _, q in ipairs { 0.1, 0.5, 0.999 } do
    check("quantile", function(x) return ops.quantile(x, q) end, waves)
    check("nanquantile", function(x) return ops.nanquantile(x, q) end, gaps)
  end
  check("median", function(x) return (ops.median(x)) end, waves)
  check("nanmean", function(x) return ops.nanmean(x) end, gaps)
end)

t.test("gradients of reductions count and square in float32", function()
  check("amax", gradient(function(x) return ops.amax(x) end), ones)
  check("max", gradient(function(x) return ops.max(x) end), ones)
  check("mean", gradient(function(x) return ops.mean(x) * 1000 end), ones)
  check("std", gradient(function(x) return ops.std(x) * 4000 end), waves)
  check("var", gradient(function(x) return ops.var(x) * 4000 end), waves)
  check("norm", gradient(function(x) return ops.norm(x) end), function(n) return waves(n) * 300 end)
  check("cov", function(x) return ops.cov(x) end, function(n) return ops.stack { waves(n) * 300, ops.cos(waves(n)) * 300 } end)
end)

t.test("positions in images are float32", function()
  local picture = ops.reshape(waves(9 * 700), { 1, 1, 9, 700 })
  check("grid_sample", function(x, grid) return ops.grid_sample(x, grid) end,
    function() return picture, ops.reshape(waves(2 * 600), { 1, 3, 200, 2 }) end)
  check("affine_grid", function(theta) return ops.affine_grid(theta, { 1, 1, 3, 700 }) end,
    function() return ms.tensor { { { 0.9, 0.1, 0.2 }, { -0.1, 1.1, 0.0 } } } end)
  check("bilinear", function(x) return ops.interpolate(x, { size = { 5, 1024 }, mode = "bilinear" }) end, function() return picture end)
end)

t.test("clipping squares what float16 and float32 cannot", function()
  check("clip_by_norm", function(x) return ops.clip_by_norm(x, 1000.0) end, function(n) return waves(n) * 300 end)
  check("clip_by_global_norm", function(x, y) return (ops.clip_by_global_norm({ x, y }, 1000.0)) end,
    function(n) return waves(n) * 300, ones(n) end)
  local large = ops.full({ 4 }, 1e20)
  t.equal(ops.clip_by_norm(large, 1.0):tolist(), { 0.5, 0.5, 0.5, 0.5 })
  t.equal((ops.clip_by_global_norm({ large }, 1.0)):tolist(), { 0.5, 0.5, 0.5, 0.5 })
end)

t.test("losses of cells and steps of optimizers are rounded once", function()
  local losses = {
    DiceLoss = nn.DiceLoss(), RMSELoss = nn.RMSELoss(), PoissonNLLLoss = nn.PoissonNLLLoss { reduction = "sum" }, MSELoss = nn.MSELoss(),
    TripletMarginWithDistanceLoss = nn.TripletMarginWithDistanceLoss(),
  }
  for name, loss in pairs(losses) do
    local third = name:find "Triplet"
    check(name, function(x, y) return third and loss(x, y, -x) or loss(x, y) end, function(n) return waves(n) * 2, ops.cos(waves(n)) end)
  end
  local optimizers = "RMSProp Adagrad Adadelta AdaMax Rprop ASGD FTRL ProximalAdagrad Adam Momentum Lamb"
  for name in optimizers:gmatch "%S+" do
    for dtype_name, half in pairs(halves) do
      local function step(dtype)
        local start, slope = ops.cast(waves(2049), half), ops.cast(ops.cos(waves(2049)) * 1e-3, half)
        local p = ms.Parameter(ops.cast(start, dtype), "p")
        local optimizer = nn[name]({ p }, { learning_rate = 0.01, momentum = name == "Momentum" and 0.9 or nil })
        optimizer { ops.cast(slope, dtype) }
        return bits(ops.cast(p:value(), half))
      end
      t.equal(step(half), step(ms.float32), ("%s in %s"):format(name, dtype_name))
    end
  end
end)

t.finish()
