-- Operators in compiled functions: whatever stands for them, by name, by sign or within a gradient, is recorded.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

-- f compiled gives what f gives, and does so without Lua.
local function agrees(name, f, ...)
  local arguments = table.pack(...)
  t.test(name, function()
    local expected = table.pack(f(table.unpack(arguments, 1, arguments.n)))
    local compiled = ms.jit(f)
    for _ = 1, 4 do
      local found = table.pack(compiled(table.unpack(arguments, 1, arguments.n)))
      t.equal(found.n, expected.n)
      for i = 1, expected.n do t.near(found[i], expected[i]) end
    end
    local report = ms.jit_report(compiled)
    if report.compiled_calls < 3 then error("not compiled: " .. (report.eager or tostring(report))) end
  end)
end

-- The gradient by all arguments.
local function gradient_agrees(name, f, ...)
  local positions = {}
  for i = 1, select("#", ...) do positions[i] = i - 1 end
  agrees("gradient of " .. name, ms.grad(function(...)
    local y = f(...)
    return ops.sum(y * ops.cos(ops.arange(y.size)):reshape(y.shape))
  end, positions), ...)
end

-- Their rules have tensors of their own, such as the positions that an element came from.
gradient_agrees("adaptive_avg_pool2d", function(x) return ops.adaptive_avg_pool2d(x, { 2, 3 }) end, ops.randn { 2, 5, 5 })
gradient_agrees("unfold", function(x) return ops.unfold(x, { kernel_size = { 2, 3 } }) end, ops.randn { 1, 2, 4, 5 })
gradient_agrees("fold", function(x) return ops.fold(x, { 4, 4 }, { 2, 2 }) end, ops.randn { 1, 8, 9 })
gradient_agrees("interpolate", function(x) return ops.interpolate(x, { size = { 5, 7 }, mode = "bilinear" }) end,
  ops.randn { 1, 2, 3, 4 })
gradient_agrees("repeat_interleave", function(x) return ops.repeat_interleave(x, { 1, 0, 2 }, 0) end, ops.randn { 3, 2 })
gradient_agrees("combinations", function(x) return ops.combinations(x) end, ops.randn { 4 })
gradient_agrees("inplace_add", function(x, v) return ops.inplace_add(x, v, { 0, 3 }) end, ops.randn { 4, 2 }, ops.randn { 2, 2 })
gradient_agrees("svd", function(x) return (ops.svd(x, { compute_uv = false })) end, ops.randn { 3, 2 })

local a, b = ms.tensor({ 6, 5, -3 }, ms.int32), ms.tensor({ 3, 1, 2 }, ms.int32)
local yes, no = ms.tensor { true, false, true }, ms.tensor { false, false, true }
agrees("signs of bits", function(x, y) return x & y, x | y, x ~ y, ~x, x << y, x >> y end, a, b)
agrees("signs of bits with numbers", function(x) return x & 3, 12 | x, x ~ 1, x << 2, x >> 1 end, a)
agrees("signs of bools", function(x, y) return x & y, x | y, x ~ y, ~x end, yes, no)
agrees("signs of bits within a gradient", ms.grad(function(x, m)
  return ops.sum(ops.where(~m | (m & m), x * 2, x * x))
end, 0), ops.randn { 3 }, yes)

t.finish()
