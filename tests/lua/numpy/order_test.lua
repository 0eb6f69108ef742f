-- Sorted elements, quantiles and polynomial fits of ms.numpy beside values that numpy gives.
-- Both modes: each call is also made from a compiled function.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local np = ms.numpy

local x = { { 3.0, 1.0, 2.0, 9.0 }, { 4.0, 0 / 0, 0.5, -1.0 } }
local whole = { { 7, 2, 5 }, { 1, 8, 5 } }

local function list(y) return ms.is_tensor(y) and y:tolist() or y end

-- { what is called, its result as numpy 2.4 gives it }
local rows = {
  { function() return np.sort(whole) end, { { 2, 5, 7 }, { 1, 5, 8 } } },
  { function() return np.sort(whole, 0) end, { { 1, 2, 5 }, { 7, 8, 5 } } },
  { function() return np.sort(whole, false) end, { 1, 2, 5, 5, 7, 8 } },
  { function() return np.argsort({ 2, 1, 2, 0 }) end, { 3, 1, 0, 2 } },
  { function() return np.sort({ true, false, true }) end, { false, true, true } },
  { function() return np.partition({ 4, 3, 2, 1 }, 2)[2]:item() end, 3 },
  { function() return np.lexsort({ { 2, 1, 3, 0 }, { 1, 1, 0, 0 } }) end, { 3, 2, 1, 0 } },
  { function() return np.median(whole, 1) end, { 5, 5 } },
  { function() return np.median(whole) end, 5.0 },
  { function() return np.median(whole, 0, true).shape[1] end, 1 },
  { function() return np.percentile(whole, { 0, 50, 75 }) end, { 1.0, 5.0, 6.5 } },
  { function() return np.percentile(whole, 40, 1) end, { 4.4, 4.2 } },
  { function() return np.quantile(whole, 0.4, { method = "lower" }) end, 5.0 },
  { function() return np.quantile(whole, 0.3, { method = "higher" }) end, 5.0 },
  { function() return np.quantile(whole, 0.1, { method = "midpoint" }) end, 1.5 },
  { function() return np.nanmedian(x, 1) end, { 2.5, 0.5 } },
  { function() return np.nanpercentile(x, 50) end, 2.0 },
  { function() return np.any({ { 0, 0 }, { 0, 3 } }, 1) end, { false, true } },
  { function() return np.all({ { 0, 1 }, { 2, 3 } }, 1, true) end, { { false }, { true } } },
  { function() return np.all({}) end, true },
  { function() return (select(2, np.nonzero({ { 0, 5 }, { 6, 7 } }))) end, { 1, 0, 1 } },
  { function() return np.flatnonzero({ 0, 5, 0, 6 }) end, { 1, 3 } },
  { function() return (np.where({ 0, 5, 0, 6 })) end, { 1, 3 } },
  { function() return np.union1d({ 3, 1 }, { 2, 3 }) end, { 1, 2, 3 } },
  { function() return np.setxor1d({ 3, 1 }, { 2, 3 }) end, { 1, 2 } },
  { function() return np.allclose({ 1.0, 2.0 }, { 1.0, 2.1 }, { rtol = 0.1 }) end, true },
  { function() return np.allclose({ 1.0, 2.0 }, { 1.0, 2.1 }) end, false },
  { function() return np.vdot({ 1, 2 }, { 3, 4 }) end, 11 },
  { function() return np.einsum("ij,kj->ik", { { 1, 2 } }, { { 3, 4 }, { 5, 6 } }) end, { { 11, 17 } } },
}

local function near(a, b)
  if type(a) == "table" then
    assert(#a == #b, "lengths differ")
    for i = 1, #a do near(a[i], b[i]) end
  elseif math.type(a) == "float" then
    assert(math.abs(a - b) <= 1e-6 * math.max(1, math.abs(b)), ("%g instead of %g"):format(a, b))
  else
    t.equal(a, b)
  end
end

for i, row in ipairs(rows) do
  for name, call in pairs { eager = row[1], compiled = ms.jit(row[1]) } do
    t.test(("row %d, %s"):format(i, name), function()
      for _ = 1, 3 do near(list(call()), row[2]) end
    end)
  end
end

t.test("polyfit finds the coefficients of a polynomial and of noise", function()
  local at = ms.arange(20):astype(ms.float64) * 0.5 - 3
  local y = np.polyval({ 2.0, -1.0, 0.5, 3.0 }, at)
  near(np.polyfit(at, y, 3):tolist(), { 2.0, -1.0, 0.5, 3.0 })
  -- numpy.polyfit([0, 1, 2, 3], [1, 3, 2, 5], 1) and with w = [1, 2, 1, 1]
  near(np.polyfit({ 0, 1, 2, 3 }, { 1, 3, 2, 5 }, 1):tolist(), { 1.1, 1.1 })
  near(np.polyfit({ 0, 1, 2, 3 }, { 1, 3, 2, 5 }, 1, { w = { 1, 2, 1, 1 } }):tolist(), { 0.97368421, 1.60526316 })
  near(np.polyfit({ 0, 1, 2 }, { { 1, 0 }, { 2, 1 }, { 3, 2 } }, 1):tolist(), { { 1, 1 }, { 1, 0 } })
end)

t.test("what cannot be is told", function()
  t.fails("q must lie between 0 and 100", np.percentile, whole, 101)
  t.fails("q must lie between 0 and 1", np.quantile, whole, -0.1)
  t.fails("method must be", np.quantile, whole, 0.5, { method = "best" })
  t.fails("kth is 3, and the axis has 3 elements", np.partition, whole, 3)
  t.fails("no elements have no quantiles", np.median, {})
  t.fails("x must be a sequence", np.polyfit, 3, 3, 1)
  t.fails("as many elements as x", np.polyfit, { 1, 2 }, { 1, 2 }, 1, { w = { 1 } })
  t.fails("x and y are expected, or neither", np.where, { true }, 1)
  t.fails("keys[2] must be a column", np.lexsort, { { 1, 2 }, { 1 } })
end)

t.finish()
