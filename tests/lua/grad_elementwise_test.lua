-- Elementwise operators on small tensors take a short way through the machine, forwards and backwards. What they give
-- is what the long way gives, and the memory that they reuse has no other owner.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local T, ops = ms.tensor, ms.ops

local function chain(x)
  local y = ops.sin(x) * x
  y = ops.tanh(y + x)
  y = ops.exp(-y) * x
  y = ops.sigmoid(y) - x
  return ops.sum(y * y)
end

-- By central differences in double precision.
local function slopes(f, x)
  local list, h = {}, 1e-6
  for i = 0, x.size - 1 do
    local up, down = x:copy(), x:copy()
    up[i] = up[i] + h
    down[i] = down[i] - h
    list[i + 1] = (f(up):item() - f(down):item()) / (2 * h)
  end
  return list
end

t.test("a chain of operators has the slopes of differences", function()
  for _, n in ipairs { 1, 7, 8, 40 } do
    local x = ops.linspace(0.1, 0.9, n):astype(ms.float64)
    local value, gradient = ms.value_and_grad(chain)(x)
    t.near(value:item(), chain(x):item(), 1e-12)
    local expected = slopes(chain, x)
    for i = 1, n do t.near(gradient[i - 1]:item(), expected[i], 1e-6) end
  end
end)

t.test("the same call site takes other shapes and dtypes", function()
  local gradient = ms.grad(function(x, y) return ops.sum(x * y * y) end, { 0, 1 })
  for _, case in ipairs {
    { T { 1.0, 2.0 }, T { 3.0, 4.0 }, { 9, 16 }, { 6, 16 } },
    { T({ 1.0, 2.0 }, ms.float64), T({ 3.0, 4.0 }, ms.float64), { 9, 16 }, { 6, 16 } },
    { T { { 1.0 }, { 2.0 } }, T { { 3.0 }, { 4.0 } }, { { 9 }, { 16 } }, { { 6 }, { 16 } } },
    { T { { 1.0, 2.0 } }, T { 3.0, 4.0 }, { { 9, 16 } }, { 6, 16 } },
    { T { 1.0, 2.0 }, T { { 3.0, 4.0 } }, { 9, 16 }, { { 6, 16 } } },
    { T { { { 1.0, 2.0 } } }, T { { 3.0, 4.0 } }, { { { 9, 16 } } }, { { 6, 16 } } },
    { T { { 1.0, 2.0 }, { 3.0, 4.0 } }, T { 1.0, 2.0 }, { { 1, 4 }, { 1, 4 } }, { 8, 24 } },
    { T { { 2.0 } }, T(3.0), { { 9 } }, 12 },
    { T { 1.0, 2.0 }, T(3.0), { 9, 9 }, 18 },
    { T({ 1.0, 2.0 }, ms.float16), T({ 3.0, 4.0 }, ms.float16), { 9, 16 }, { 6, 16 } },
  } do
    local g = gradient(case[1], case[2])
    t.equal(g[1]:tolist(), case[3])
    t.equal(g[2].size == 1 and type(case[4]) == "number" and g[2]:item() or g[2]:tolist(), case[4])
    t.equal(g[1].dtype, case[1].dtype)
    t.equal(g[2].dtype, case[2].dtype)
  end
end)

t.test("operands of other layouts", function()
  local x = ops.arange(6):astype(ms.float32):reshape({ 2, 3 })
  local g = ms.grad(function(a) return ops.sum(a:t() * a:t() * x:t()) end)(x)
  t.equal(g:tolist(), { { 0, 2, 8 }, { 18, 32, 50 } })
  local w = ms.grad(function(a) return ops.sum(ops.exp(a) * 0 + a * a) end)(x)
  t.equal(w:tolist(), { { 0, 2, 4 }, { 6, 8, 10 } })
end)

t.test("results take no memory that is needed later", function()
  local function f(x)
    local a = x + 1
    local view, held, later = a["0:2"], {}, nil
    local b = ops.tanh(a)
    local c = a - b
    local d = -c
    held.d = d
    local e = ops.exp(d)
    local closure = function() return e end
    local g = e + e
    g = g * g
    for _ = 1, 3 do
      later = g
      g = -g - x
    end
    local h = ops.sigmoid(g - held.d)
    return ops.sum(h * closure() + later), a, view, b, held.d, e, later, h
  end
  for _, dtype in ipairs { ms.float32, ms.float64 } do
    local x = ops.linspace(0.1, 0.9, 8):astype(dtype)
    local plain = { f(x) }
    local values, gradient = ms.value_and_grad(f, 0, nil, true)(x)
    for i = 1, #plain do
      local expected, found = plain[i]:reshape({ -1 }), values[i]:reshape({ -1 })
      t.equal(found.size, expected.size)
      for k = 0, expected.size - 1 do t.near(found[k]:item(), expected[k]:item(), 1e-6) end
    end
    if dtype == ms.float64 then
      local expected = slopes(function(v) return (f(v)) end, x)
      for i = 1, #expected do t.near(gradient[i - 1]:item(), expected[i], 1e-6) end
    end
    t.equal(x:tolist(), ops.linspace(0.1, 0.9, 8):astype(dtype):tolist())
  end
end)

t.test("sums of all elements, of none and of parts", function()
  local x = T { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }
  for _, case in ipairs {
    { x, 21 }, { x:t(), 21 }, { x["1"], 15 }, { x[":, 1"], 7 }, { T(3.0), 3 }, { ops.zeros { 0 }, 0 }, { ops.zeros { 2, 0 }, 0 },
    { x:astype(ms.float64), 21 }, { x:astype(ms.float16), 21 }, { x:astype(ms.int32), 21 },
  } do
    local sum = ops.sum(case[1])
    t.equal({ sum:item(), sum.ndim, sum.dtype == case[1].dtype or sum.dtype == ms.int64 }, { case[2], 0, true })
    if ms.ops.is_floating_point(case[1]) then
      local g = ms.grad(function(v) return ops.sum(v) * 2 end)(case[1])
      t.equal(g:tolist(), (ops.ones_like(case[1]) * 2):tolist())
      t.equal(g.shape, case[1].shape)
    end
  end
  t.equal(ops.sum(x, nil, true).shape, { 1, 1 })
  t.equal(ops.sum(x, { dtype = ms.float64 }).dtype, ms.float64)
  t.equal(ops.prod(x):item(), 720)
  t.equal(ops.mean(x):item(), 3.5)
end)

t.test("nothing that somebody has is written over", function()
  local x, y, d = T { 1.0, 2.0 }, T { 3.0, 4.0 }, T { 10.0, 20.0 }
  local kept
  local out, pull = ms.vjp(function(a, b)
    kept = a * b
    return kept * a + ops.tanh(b)
  end, x, y)
  local before = { out:tolist(), kept:tolist() }
  local a1, b1 = pull(d)
  local first = { a1:tolist(), b1:tolist() }
  local a2, b2 = pull(d)
  t.equal({ a2:tolist(), b2:tolist() }, first)
  t.equal({ a1:tolist(), b1:tolist() }, first)
  t.equal(d:tolist(), { 10, 20 })
  t.equal(x:tolist(), { 1, 2 })
  t.equal(y:tolist(), { 3, 4 })
  t.equal({ out:tolist(), kept:tolist() }, before)
end)

t.test("parameters keep their content, and get the gradient of all their uses", function()
  local w = ms.Parameter(T { 1.0, 2.0, 3.0 }, { name = "w" })
  local _, grads = ms.value_and_grad(function(x) return ops.sum(w * x * w - w) end, nil, { w })(T { 2.0, 2.0, 2.0 })
  t.equal(grads[1]:tolist(), { 3, 7, 11 })
  t.equal(w:tolist(), { 1, 2, 3 })
end)

t.test("the same cotangent for two operands", function()
  local g = ms.grad(function(a, b)
    local sum = a + b
    return ops.sum(sum * sum - (a - b))
  end, { 0, 1 })(T { 1.0, 2.0 }, T { 3.0, 5.0 })
  t.equal(g[1]:tolist(), { 7, 13 })
  t.equal(g[2]:tolist(), { 9, 15 })
end)

t.test("a cotangent that is handed on is not written over", function()
  local x, y = T { 1.0, 2.0 }, T { 3.0, 5.0 }
  local g = ms.grad(function(a, b) return ops.sum((a * 2 - b * 3) * x) end, { 0, 1 })(x, y)
  t.equal({ g[1]:tolist(), g[2]:tolist() }, { { 2, 4 }, { -3, -6 } })
end)

t.test("biases of rows have the sum over the rows", function()
  local b = T { 1.0, 2.0 }
  for rows = 1, 3 do
    local g = ms.grad(function(x) return ops.sum((ops.ones({ rows, 2 }) + x) * 3) end)(b)
    t.equal(g:tolist(), { 3 * rows, 3 * rows })
    t.equal(g.shape, b.shape)
  end
end)

t.test("a write destroys what a pullback needs, and is noticed", function()
  local x = T { 1.0, 2.0 }
  local _, pull = ms.vjp(function(a) return ops.sin(a) * x end, T { 0.5, 0.25 })
  x[0] = 7.0
  t.fails("changed in place", pull, T { 1.0, 1.0 })
end)

t.test("tables may change what a name stands for between calls", function()
  local lib = { f = ops.sin }
  local gradient = ms.grad(function(x) return ops.sum(lib.f(x)) end)
  local x = T { 0.0, 0.0 }
  t.equal(gradient(x):tolist(), { 1, 1 })
  lib.f = ops.neg
  t.equal(gradient(x):tolist(), { -1, -1 })
  lib.f = function(v) return v * 5 end
  t.equal(gradient(x):tolist(), { 5, 5 })
  lib.f = nil
  t.fails("nil", gradient, x)
  setmetatable(lib, { __index = { f = ops.square } })
  t.equal(gradient(x + 3):tolist(), { 6, 6 })
end)

t.test("second derivatives", function()
  local x = ops.linspace(0.1, 0.9, 5):astype(ms.float64)
  local first = function(v) return ops.sum(ms.grad(chain)(v)) end
  local expected, second = slopes(first, x), ms.grad(first)(x)
  for i = 1, 5 do t.near(second[i - 1]:item(), expected[i], 1e-5) end
end)

t.finish()
