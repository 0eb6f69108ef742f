-- Numbers that reach operators by way of tables which also hold what is differentiated: plain ones and differentiated ones.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

-- Each gives both back, after having them in a table.
local carried = {
  ["a constructor"] = function(x, q) local n = { q, x } return n[2], n[1] end,
  ["names"] = function(x, q) local n = { x = x, q = q, w = x:sum() } return n.x, n.q end,
  ["writes"] = function(x, q) local n = {} n.x = x n.q = q n.q = n.q return n.x, n.q end,
  ["table.pack"] = function(...) local n = table.pack(...) return n[1], n[2] end,
  ["table.unpack"] = function(...) return table.unpack({ ... }) end,
  ["a table from outside"] = (function() local n = { q = 0.5 } return function(x, q) n.x = x n.q = q return n.x, n.q end end)(),
  ["a float key"] = function(x, q) local n = { x } n[2.0] = q return n[1], n[2] end,
  ["a longer table"] = function(x, q) local n = {} for i = 1, 3 do n[i] = x * i n[i + 3] = q end return n[1], n[5] end,
}
for name, f in pairs(carried) do
  t.test("a plain number is none that is differentiated: through " .. name, function()
    local function quantile(x, q)
      local v, at = f(x, q)
      return ops.quantile(v, at)
    end
    local x = ms.tensor({ 1.0, 2.0, 5.0 }, ms.float64)
    local expected = ms.grad(function(v) return ops.quantile(v, 0.3) end)(x)
    for _, g in ipairs { ms.grad(quantile), ms.jit(ms.grad(quantile)) } do
      for _ = 1, 3 do t.near(g(x, 0.3), expected, 1e-12) end
    end
    t.near(ms.grad(function(v) return (ms.grad(quantile)(v, 0.3) * v):sum() end)(x), expected, 1e-12)
    -- By the number itself there is no derivative, and it is not lost: an error says so.
    t.fails("has no gradient with respect to 'q'", ms.grad(quantile, 1), x, 0.3)
    t.fails("has no gradient with respect to 'q'", ms.grad(function(q) return quantile(x, q * 0.5) end), 0.6)
  end)
  t.test("a number that is differentiated keeps its gradient: through " .. name, function()
    local function product(x, q)
      local v, by = f(x, q)
      return (v * by):sum()
    end
    local x = ms.tensor({ 1.0, 2.0, 5.0 }, ms.float64)
    for _, g in ipairs { ms.grad(product, 1), ms.jit(ms.grad(product, 1)) } do
      for _ = 1, 3 do t.near(g(x, 3.0), 8.0, 1e-12) end
    end
    t.near(ms.grad(function(q) return product(x, q * q) end)(3.0), 48.0, 1e-12)
    t.near(ms.grad(ms.grad(function(q) return product(x, q * q) end))(3.0), 16.0, 1e-12)
  end)
end

t.finish()
