-- Derivatives within derivatives, in every combination of transforms.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local function vector(...) return ms.tensor({ ... }, ms.float64) end
-- The first `orders` derivatives of f at x (a number or a scalar tensor) against differences of the one before.
local function derivatives(f, x, orders, tolerance)
  local h = 1e-4
  for _ = 1, orders do
    local g = ms.grad(f)
    t.near(g(x), (f(x + h) - f(x - h)) / (2 * h), tolerance or 1e-6)
    f = g
  end
end

t.test("attention has derivatives of every order", function()
  local q = ms.tensor({ { { { 0.3, -0.8 }, { 1.1, 0.2 }, { -0.5, 0.7 } } } }, ms.float64)
  local s = ms.tensor(0.8, ms.float64)
  derivatives(function(k) return ops.sum(ops.attention(q * k, q * k + 0.5, q * k * k, 0.7, true)) end, s, 3, 1e-5)
  derivatives(function(k) return ops.sum(ops.attention(q * k, q, q - k, 0.7) ^ 2) end, s, 3, 1e-5)
  local x, w = ops.reshape(q, { 1, 1, 3, 2 }), ops.reshape(ops.arange(6), { 1, 1, 3, 2 }):double()
  local function along(y) return ops.sum(ms.grad(function(z) return ops.sum(ops.attention(z, z, z, 1.0, true) * w) end)(y) * w) end
  t.equal(ms.check_grad(along, { x }, { rtol = 1e-6 }) < 1e-5, true)
end)
t.test("grad in grad in pcall in a coroutine", function()
  local thread = coroutine.wrap(function()
    local ok, v = pcall(ms.grad(ms.grad(function(x)
      local inner, y = pcall(function() return x ^ 4 end)
      return inner and y
    end)), 2.0)
    coroutine.yield(ok)
    return v
  end)
  t.equal(thread(), true)
  t.near(thread(), 48.0)
end)
t.test("jvp of vjp", function()
  local function pulled(x)
    local _, pull = ms.vjp(function(z) return ops.sin(z) * z end, x)
    return (pull(ops.ones_like(x)))
  end
  local x, v = vector(0.3, 1.2), vector(1.0, -2.0)
  local y, d = ms.jvp(pulled, x, v)
  t.near(y, ops.sin(x) + ops.cos(x) * x)
  t.near(d, (ops.cos(x) * 2 - ops.sin(x) * x) * v)
  t.near(select(2, ms.jvp(function(z) return select(2, ms.jvp(ops.exp, z, z)) end, x, v)), ops.exp(x) * (x + 1) * v, 1e-6)
end)
t.test("vmap of grad of vmap, grad of vmap of grad", function()
  local function cubes(row) return ops.sum(ms.vmap(function(e) return e * e * e end)(row)) end
  local x = ms.tensor({ { 1.0, 2.0 }, { 3.0, -1.0 } }, ms.float64)
  t.near(ms.vmap(ms.grad(cubes))(x), 3 * x * x)
  local z = vector(1.0, 2.0, -0.5)
  t.near(ms.grad(function(y) return ops.sum(ms.vmap(ms.grad(function(e) return e * e * e end))(y)) end)(z), 6 * z)
end)
t.test("checkpoint within derivatives of every order", function()
  local function plain(x, k) return ops.sin(x) * k * x end
  local kept = ms.checkpoint(plain)
  local function twice(f) return function(z) return f(z, 2.0) * f(z, z) end end
  local a, b = twice(kept), twice(plain)
  for _ = 1, 3 do
    a, b = ms.grad(a), ms.grad(b)
    t.near(a(ms.tensor(0.7, ms.float64)), b(ms.tensor(0.7, ms.float64)), 1e-12)
  end
end)
t.test("checkpoint of a function that writes and has parameters", function()
  local w = ms.Parameter(vector(0.5, 2.0), { name = "w" })
  local x = vector(1.5, -0.5)
  local function with(transform)
    return function(y)
      local box = { k = y * 2 }
      local f = transform(function(z)
        box.out = z * z
        return ops.sum(w * z * box.k * box.out)
      end)
      return f(y) + ops.sum(box.out)
    end
  end
  local g, gw = ms.grad(with(ms.checkpoint), 0, { w })(x)
  local h, hw = ms.grad(with(function(f) return f end), 0, { w })(x)
  t.near(g, h)
  t.near(gw[1], hw[1])
end)
t.test("custom_vjp under higher orders", function()
  local cube = ms.custom_vjp(function(x) return x * x * x end, function(x, _, d) return d * 3 * x * x end)
  t.near(ms.grad(ms.grad(cube))(2.0), 12.0)
  t.near(ms.grad(ms.grad(ms.grad(cube)))(2.0), 6.0)
  t.near(ms.grad(ms.grad(function(x) return cube(x) * x end))(2.0), 48.0)
  t.near(ms.grad(ms.grad(ms.grad(function(x) return cube(x) * x end)))(2.0), 48.0)
  local pair = ms.custom_vjp(function(a, b) return a * b, a + b end,
    function(a, b, _, _, dp, ds) return (dp or 0) * b + (ds or 0), (dp or 0) * a + (ds or 0) end)
  t.near(ms.grad(function(a, b) local p, s = pair(a, b) return p * s end, { 0, 1 })(2.0, 3.0), { 21.0, 16.0 })
end)
t.test("has_aux, positions and weights together", function()
  local function f(x, y) return x * y, x + y, { x } end
  local out, g = ms.value_and_grad(f, { 0, 1 }, nil, true)(2.0, 3.0)
  t.equal({ out[1], out[2], out[3][1], g }, { 6.0, 5.0, 2.0, { 3.0, 2.0 } })
  local d, aux = ms.grad(f, 0, nil, true)(2.0, 3.0)
  t.equal({ d, aux[1] }, { 3.0, 5.0 })
  t.near(ms.grad(function(x) local e, more = ms.grad(f, 0, nil, true)(x, x * x) return e * more[1] end)(2.0), 44.0)
  local w = ms.Parameter(vector(0.5, 2.0), { name = "w" })
  local value, gx, gw = ms.value_and_grad(function(x) return ops.sum(w * x), w * 2 end, 0, { w }, true)(vector(1.0, 3.0))
  t.near(value[1], 6.5)
  t.near({ gx, gw[1], value[2] }, { vector(0.5, 2.0), vector(1.0, 3.0), vector(1.0, 4.0) })
end)
t.test("tables as arguments, also within each other and twice", function()
  local g = ms.grad(function(p) return p.a * p.b.c + p.list[2] ^ 2 end)({ a = 2.0, b = { c = 3.0 }, list = { 1.0, 4.0 }, n = 3, s = "x" })
  t.equal(g, { a = 3.0, b = { c = 2.0 }, list = { 0.0, 8.0 } })
  t.near(ms.grad(function(x)
    local d = ms.grad(function(p) return p.a * p.a * p.b end)({ a = x, b = x * x })
    return d.a * d.b
  end)(2.0), 160.0)
  local ring = { a = 2.0 }
  ring.me = ring
  local d = ms.grad(function(p) return p.me.me.a * p.a end)(ring)
  t.equal({ d.a, d.me == d }, { 4.0, true })
end)
t.test("gradients of gradients by parameters", function()
  local w = ms.Parameter(vector(0.5, 2.0), { name = "w" })
  local net = { weight = w }
  local x = vector(1.5, -0.5)
  local function loss(y) return ops.sum(net.weight * net.weight * y * y) end
  -- d/dx of the sum of dloss/dw, and a penalty on dloss/dw by w.
  t.near(ms.grad(function(y) return ops.sum(ms.grad(loss, false, { w })(y)[1]) end)(x), 4 * x * w)
  t.near(ms.grad(function(y) return ops.sum(ms.grad(loss, false, { w })(y)[1] ^ 2) end, false, { w })(x)[1], 8 * w * x ^ 4)
  -- One step of descent inside: d/dw of loss(w - r dloss/dw).
  local function inner(p, y) return ops.sum((p * y - 1) ^ 2) end
  local function outer(p) return inner(p - 0.1 * ms.grad(inner)(p, x), x) end
  t.equal(ms.check_grad(outer, { vector(0.5, 2.0) }) < 1e-5, true)
end)
t.test("a penalty on the gradient by the cells of a network", function()
  local net = ms.nn.SequentialCell { ms.nn.Dense(2, 3), ms.nn.Tanh(), ms.nn.Dense(3, 1) }
  local weights, x = net:trainable_params(), ms.tensor { { 0.4, -0.7 }, { 1.0, 0.3 } }
  local function penalty(y) return ops.sum(ms.grad(function(z) return ops.sum(net(z)) end)(y) ^ 2) end
  local gradients = ms.grad(penalty, nil, weights)(x)
  t.equal(#gradients, #weights)
  local w, eps = weights[1], 1e-2
  local base = w:tolist()
  local function at(e)
    local moved = { { base[1][1] + e, base[1][2] }, base[2], base[3] }
    w:assign(ms.tensor(moved))
    local value = penalty(x):item()
    w:assign(ms.tensor(base))
    return value
  end
  t.near(gradients[1][0][0]:item(), (at(eps) - at(-eps)) / (2 * eps), 5e-3)
end)
t.test("jacobians of jacobians", function()
  local x = vector(1.0, 2.0)
  t.near(ms.hessian(function(y) return ops.sum(y ^ 3) * y[0] end)(x), { { 12.0, 12.0 }, { 12.0, 12.0 } })
  local third = { { { 6.0, 0.0 }, { 0.0, 0.0 } }, { { 0.0, 0.0 }, { 0.0, 12.0 } } }
  t.near(ms.jacfwd(ms.jacrev(function(y) return y * y * y end))(x), third)
  t.near(ms.jacrev(ms.jacfwd(function(y) return y * y * y end))(x), third)
  t.near(ms.jacrev(ms.jacrev(function(y) return y * y * y end))(x), third)
end)
t.test("a variable of the outer derivative is a constant of the inner", function()
  t.near(ms.grad(function(x) return x * ms.grad(function(y) return x + y end)(1.0) end)(1.0), 1.0)
  t.near(ms.grad(function(x) return x * ms.grad(function(y) return x * y end)(2.0) end)(3.0), 6.0)
  t.near(ms.grad(function(x)
    local s = 0.0
    for i = 1, 3 do s = s + ms.grad(function(y) return y ^ i * x end)(x) end
    return s
  end)(2.0), 45.0)
  t.near(ms.grad(ms.grad(function(x) return x * x * ms.stop_gradient(x * x) end))(2.0), 8.0)
end)
t.test("the graph of a derivative is what is shown", function()
  local text = ms.ir(ms.grad(function(x) return x * x + 1 end))
  t.equal({ text:find("order 1", 1, true) ~= nil, text:find("j_arith", 1, true) ~= nil, text:find("pull(", 1, true) ~= nil },
    { true, true, true })
  t.equal(ms.ir(ms.grad(ms.grad(function(x) return x * x end))):find("order 2", 1, true) ~= nil, true)
  t.equal(ms.ir(function(x) return x * x end):find("mul(", 1, true) ~= nil, true)
end)

t.test("a function is compiled within what is differentiated", function()
  local function f(x)
    local scaled = ms.jit(function(y) return y * y * x end, { fullgraph = true })
    local double = ms.jit(function(y) return y * 2 end)
    return scaled(x) * scaled(double(x))
  end
  derivatives(f, 1.3, 2, 1e-4)
  t.near(ms.jit(ms.grad(f))(1.3), ms.grad(f)(1.3), 1e-12)
end)

t.test("what a derivative gives is not followed by the next one", function()
  local weight = ms.Parameter(ops.full({ 2 }, 0.3))
  local function curve(z) return ops.sum(ops.tanh(z * weight)) end
  local slopes = {
    grad = ms.grad(curve),
    weights = function(x) return ms.grad(curve, nil, { weight })(x)[1] end,
    vjp = function(x) return (select(2, ms.vjp(ops.tanh, x))(x)) end,
    jvp = function(x) return (select(2, ms.jvp(ops.tanh, { x }, { x }))) end,
    jacrev = function(x) return ops.sum(ms.jacrev(ops.tanh)(x), 0) end,
  }
  for name, of in pairs(slopes) do
    local function f(x, n)
      local slope = of(x)
      return ms.grad(function(z)
        -- A function that knows a value which is followed would have its number followed.
        local function scaled() return slope * ms.stop_gradient(ms.Parameter(ops.full({ 2 }, 0.5) * n)) end
        return ops.sum(scaled() * z)
      end)(x)
    end
    local compiled, x = ms.jit(f), ops.full({ 2 }, 0.5)
    for _, n in ipairs { 1, 1, 2, 3, 0.5, 2.5 } do t.equal({ name, compiled(x, n) }, { name, f(x, n) }) end
  end
end)

t.finish()
