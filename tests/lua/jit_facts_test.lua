-- Facts about operators hold in compiled functions as well: errors by values, numbers beside halves, exact sums.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

local function compiled(f)
  t.equal(ms.jit_report(f).compiled_calls > 0, true)
end

-- An operator whose result nothing reads, operands that it takes, others of the same types that it refuses.
local x = ops.reshape(ops.arange(12):float(), { 4, 3 })
local raising = {
  { "gather", function(i) return ops.gather(x, i, 0) end, { 0, 3 }, { 0, 4 } },
  { "take_along", function(i) return ops.gather_elements(x, 1, i:reshape({ 1, 2 })) end, { 0, 2 }, { 0, 3 } },
  { "nll_loss", function(i) return ops.nll_loss(x["0:2"], i) end, { 0, 2 }, { 0, 3 } },
  { "cross_entropy", function(i) return ops.cross_entropy(x["0:2"], i) end, { 0, 2 }, { -1, 2 } },
  { "index_add", function(i) return ops.index_add(x, i, x["0:2"], 0) end, { 0, 3 }, { 0, 9 } },
  { "floor_divide", function(i) return ops.floor_divide(7, i) end, { 1, 2 }, { 1, 0 } },
  { "remainder", function(i) return ops.remainder(i * 3, i) end, { 1, 2 }, { 0, 2 } },
  { "pow", function(i) return ops.pow(i * 0 + 2, i) end, { 1, 2 }, { 1, -2 } },
  { "unsorted_segment_sum", function(i) return ops.unsorted_segment_sum(x["0:2"], i, 2) end, { 0, 1 }, { 0, 2 } },
  { "cholesky", function(i) return ops.cholesky(ops.diag(i:float())) end, { 1, 2 }, { 1, -2 } },
  { "inverse", function(i) return ops.inverse(ops.diag(i:float())) end, { 1, 2 }, { 1, 0 } },
}
for _, case in ipairs(raising) do
  local name, call, good, bad = table.unpack(case)
  t.test(name .. " raises where nothing reads its result", function()
    local function f(v, i)
      local _ = call(i)
      return v * 2 + 1
    end
    local wrong = ms.tensor(bad, ms.int64)
    local ok, message = pcall(f, x, wrong)
    t.equal(ok, false)
    local g = ms.jit(f)
    for _ = 1, 4 do t.equal(g(x, ms.tensor(good, ms.int64)), x * 2 + 1) end
    compiled(g)
    local fine, said = pcall(g, x, wrong)
    t.equal(fine, false)
    -- The first line, without the place.
    t.equal(tostring(said):match("^[^\n]*"):gsub("^.-:%d+: ", ""), (tostring(message):match("^[^\n]*"):gsub("^.-:%d+: ", "")))
  end)
end

t.test("numbers beside halves are no halves", function()
  for _, dtype in ipairs { ms.float16, ms.bfloat16 } do
    local a, m = ops.full({ 4, 8 }, 0.5, dtype), ops.zeros({ 4, 8 }, dtype)
    for _, f in ipairs {
      function(u, v) return ops.softmax(u + v * -1e5) end,
      function(u) return (u * 65536) / 65536 end,
      function(u, v) return ops.where(ops.greater(v, -70000.0), u, v) end,
      function(u) return ops.maximum(u, 1e-9) * 1e6 end,
    } do
      local g = ms.jit(f)
      for _ = 1, 4 do t.near(g(a, m):float(), f(a, m):float(), 1e-2) end
      compiled(g)
    end
  end
end)

t.test("composite operators take numbers as eager mode does", function()
  local v = ms.tensor({ 0.3, 1.7, 2.9 }, ms.float64)
  for _, f in ipairs {
    function(u) return ops.ldexp(u, 0.3) end,
    function(u) return ops.float_power(u, 0.3) end,
    function(u) return ops.float_power(2.7, u) end,
    function(u) return ops.float_power(u:float(), 3) end,
  } do
    local g = ms.jit(f)
    for _ = 1, 4 do
      local got, want = g(v), f(v)
      t.equal(got.dtype, want.dtype)
      t.near(got:tolist(), want:tolist(), 1e-14)
    end
    compiled(g)
  end
end)

t.test("sums and means of integers", function()
  for _, dtype in ipairs { ms.uint8, ms.int32, ms.int64 } do
    local v = ops.cast(ops.arange(3 * 20001) % 17 + (dtype == ms.uint8 and 200 or 1000003), dtype):reshape({ 3, 20001 })
    for _, f in ipairs {
      function(u) return ops.mean(u) end, function(u) return ops.mean(u, 1) end,
      function(u) return ops.nansum(u, 1) end, function(u) return ops.nansum(u) end,
      function(u) return ops.nansum(u[0][0]) * 2 end,
    } do
      local g = ms.jit(f)
      for _ = 1, 4 do t.equal(g(v), f(v)) end
      compiled(g)
    end
  end
end)

t.finish()
