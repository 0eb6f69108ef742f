-- Operators in shared libraries and functions on whole tensors as operators, with gradients and over batches.
--   lunaria operators_test.lua LIBRARY
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops
local library = arg[1]

local powers = ms.op { name = "powers", inputs = { "x[..., n]", "p[n]" }, output = "[...]", library = library, symbol = "powers",
  grad = "powers_grad", doc = "The sum of powers of the last axis." }
local function reference(x, p) return ops.sum(ops.pow(x, p), -1) end

local x, p = ms.tensor { { 1.0, 2.0, 3.0 }, { 0.5, 1.5, 2.5 } }, ms.tensor { 2.0, 1.0, 0.5 }
local function loss(f) return function(a, b) return ops.sum(ops.square(f(a, b))) end end

t.test("a function of a library is an operator, with its gradient, in both modes", function()
  t.near(powers(x, p), reference(x, p), 1e-6)
  t.equal(powers(x:double(), p:double()).dtype, ms.float64)
  t.near(powers(x:half(), p), reference(x, p), 1e-2)
  local wanted = ms.grad(loss(reference), { 0, 1 })(x, p)
  local step = ms.grad(loss(powers), { 0, 1 })
  local compiled = ms.jit(step)
  for _ = 1, 3 do
    for _, f in ipairs { step, compiled } do
      local got = f(x, p)
      for i = 1, 2 do t.near(got[i], wanted[i], 1e-4) end
    end
  end
  t.near(ms.jit(powers)(x.T:contiguous().T, p), reference(x, p), 1e-6)
end)

t.test("over a batch", function()
  local many = ops.stack({ x, x + 1, x * 2 }, 0)
  t.near(ms.vmap(powers, { 0, nil })(many, p), reference(many, p), 1e-5)
  local each = ms.vmap(ms.grad(function(a) return ops.sum(powers(a, p)) end))(many)
  t.near(each, ms.grad(function(a) return ops.sum(reference(a, p)) end)(many), 1e-4)
end)

t.test("a gradient in Lua", function()
  local twice = ms.op { name = "twice", inputs = { "x[...]" }, output = "...", library = library, symbol = "twice",
    grad = function(_, _, d) return d * 2 end }
  t.near(ms.grad(function(a) return ops.sum(ops.square(twice(a))) end)(x), x * 8, 1e-5)
  local bare = ms.op { name = "twice_bare", inputs = { "x[...]" }, output = "...", library = library, symbol = "twice" }
  t.fails({ "twice_bare", "no gradient" }, ms.grad(function(a) return ops.sum(bare(a)) end), x)
end)

t.test("operators that were given one name stay two", function()
  local more = ms.op("namesake", function(a) return a + 1 end)
  local twice = ms.op { name = "namesake", inputs = { "x[...]" }, output = "...", library = library, symbol = "twice",
    grad = function(_, _, d) return d * 2 end }
  local function both(a) return more(a) * 10 + twice(a) end
  for _, f in ipairs { both, ms.jit(both), function(a) return (ms.value_and_grad(function(b) return ops.sum(both(b)) end)(a)) end } do
    local wanted = (x + 1) * 10 + x * 2
    local got = f(x)
    t.near(got, got.ndim == 0 and ops.sum(wanted) or wanted, 1e-4)
  end
  t.fails({ "namesake#2" }, twice, ms.ones({ 2 }, ms.int64))
end)

t.test("what does not fit is said by name", function()
  t.fails({ "powers", "p has shape (2)", "must be 3" }, powers, x, ms.tensor { 1.0, 2.0 })
  t.fails({ "powers", "must hold floats" }, powers, ms.ones({ 2, 3 }, ms.int64), ms.ones({ 3 }, ms.int64))
  t.fails({ "cannot be opened" }, ms.op, { name = "n", inputs = { "x[n]" }, output = "n", library = "/proc/no/such.so", symbol = "f" })
  t.fails({ "no function nothing" }, ms.op, { name = "n", inputs = { "x[n]" }, output = "n", library = library, symbol = "nothing" })
  t.fails({ "no input has the output's size m" }, ms.op,
    { name = "n", inputs = { "x[n]" }, output = "m", library = library, symbol = "twice" })
  t.fails({ "is no input" }, ms.op, { name = "n", inputs = { "x" }, output = "n", library = library, symbol = "twice" })
end)

t.test("a function on whole tensors with a gradient of its own", function()
  local seen = 0
  local straight = ms.op { name = "straight", call = function(a)
    seen = seen + 1
    return ops.round(a)
  end, grad = function(_, _, d) return d end }
  t.near(straight(x), ops.round(x), 0)
  t.near(ms.grad(function(a) return ops.sum(straight(a) * a) end)(x), ops.round(x) + x, 1e-6)
  t.equal(seen >= 2, true)
end)

t.finish()
