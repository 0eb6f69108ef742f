-- Sums and products of several operators are rounded after each of them, together as alone.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

ms.set_seed(1)
local x, y = ms.randn { 3000 }, ms.randn { 3000 }
local positive = ops.abs(ms.randn { 3000 }) + 0.5

local FORMULAS = {
  ["a product added"] = function(a, b) return a + b * b end,
  ["a square added"] = function(a, b) return a + ops.square(b) end,
  ["a product taken off"] = function(a, b) return a - 1e-3 * b end,
  ["a line"] = function(a) return a * 3 + 1 end,
  ["two products"] = function(a, b) return a * b + b * 0.7 - a * 0.3 end,
  ["a moment and a step"] = function(a, b, c) return a - (b * 0.9 + c * 0.1) * 0.01 end,
  ["a sum of products"] = function(a, b) return ops.sum((a * b):reshape(100, 30), 1) end,
  ["a product in a function"] = function(a, b) return ops.exp(a * b + 0.5) * 2 + ops.sigmoid(a * 1.5) end,
  ["a root"] = function(a, _, c) return ops.sqrt(c) * 2 + a end,
  ["a reciprocal root"] = function(a, _, c) return ops.rsqrt(c) * a end,
  ["a quotient"] = function(a, b, c) return (a * b + 1) / (c * c + 1e-7) end,
}

for name, f in pairs(FORMULAS) do
  for _, dtype in ipairs { "float32", "float64" } do
    t.test(("%s in %s has the bits of the plain operators"):format(name, dtype), function()
      local a, b, c = x:astype(ms[dtype]), y:astype(ms[dtype]), positive:astype(ms[dtype])
      local expected, compiled = f(a, b, c), ms.jit(f)
      for _ = 1, 4 do t.equal(compiled(a, b, c), expected) end
      assert(ms.jit_report(compiled).compiled_calls > 0)
    end)
  end
end

t.finish()
