-- ms.scipy against scipy: calls with what scipy gives (make.py beside calls.txt writes them), and minima of the usual functions with
-- at most 1.2 times as many evaluations as scipy's.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local run = require "numpy.calls"
local ms = require "lunaria"

local function pieces(x, n)
  local list = {}
  for i = 1, n do list[i] = x[i - 1] end
  return table.unpack(list)
end

local functions = {
  rosenbrock = function(x)
    local n = x.size
    local a, b = ms.ops.narrow(x, 0, 1, n - 1), ms.ops.narrow(x, 0, 0, n - 1)
    return ms.ops.sum(100.0 * (a - b * b) ^ 2 + (1.0 - b) ^ 2)
  end,
  beale = function(x)
    local a, b = pieces(x, 2)
    return (1.5 - a + a * b) ^ 2 + (2.25 - a + a * b ^ 2) ^ 2 + (2.625 - a + a * b ^ 3) ^ 2
  end,
  booth = function(x)
    local a, b = pieces(x, 2)
    return (a + 2.0 * b - 7.0) ^ 2 + (2.0 * a + b - 5.0) ^ 2
  end,
  himmelblau = function(x)
    local a, b = pieces(x, 2)
    return (a ^ 2 + b - 11.0) ^ 2 + (a + b ^ 2 - 7.0) ^ 2
  end,
  matyas = function(x)
    local a, b = pieces(x, 2)
    return 0.26 * (a ^ 2 + b ^ 2) - 0.48 * a * b
  end,
  sphere = function(x) return ms.ops.sum(x * x) end,
  powell = function(x)
    local a, b, c, d = pieces(x, 4)
    return (a + 10.0 * b) ^ 2 + 5.0 * (c - d) ^ 2 + (b - 2.0 * c) ^ 4 + 10.0 * (a - d) ^ 4
  end,
  quadratic = function(x) return ms.ops.sum(ms.ops.arange(1, x.size + 1, 1, ms.float64) * (x - 1.0) ^ 2) end,
}

local ours, theirs = 0, 0
local function minimum(name, start, method, evaluations)
  local f = functions[name]
  local r = ms.scipy.optimize.minimize(f, ms.tensor(start, ms.float64), { method = method })
  ours, theirs = ours + r.nfev, theirs + evaluations
  assert(r.success, r.message)
  assert(ms.ops.amax(ms.ops.abs(ms.grad(f)(r.x))):item() <= (method == "BFGS" and 1e-5 or 1e-3), "no minimum")
  assert(r.nfev <= math.ceil(1.2 * evaluations), ("%d evaluations instead of %d"):format(r.nfev, evaluations))
  return true
end

local count = run(arg[1] or "tests/data/scipy/calls.txt", setmetatable({ np = ms.numpy, minimum = minimum, select = select }, {
  __index = function(_, name) return ms.scipy[name] end,
}))
t.test("there are more than 500 calls", function() assert(count > 500, count) end)
print(("minima: %d evaluations, scipy %d"):format(ours, theirs))

t.test("minimize takes trees of tensors, and writes parameters of cells", function()
  local minimize, ops = ms.scipy.optimize.minimize, ms.ops
  local goal = ms.tensor({ 2.0, 3.0 }, ms.float64)
  for _, method in ipairs { "BFGS", "L-BFGS" } do
    local function f(tree, shift) return (tree.a - shift) ^ 2 + ops.sum((tree.b.c - goal) ^ 2) + ops.sum(tree.b[1] ^ 2) end
    local r = minimize(f, { a = 0.0, b = { c = ms.zeros({ 2 }, ms.float64), ms.ones { 3 } } }, { args = { 4 }, method = method })
    assert(r.success)
    t.near(r.x.a, 4.0, 1e-5)
    t.near(r.x.b.c, goal, 1e-5)
    t.near(r.x.b[1], { 0, 0, 0 }, 1e-5)
    t.equal({ math.type(r.x.a), r.x.b.c.dtype, r.x.b[1].dtype }, { "float", ms.float64, ms.float32 })
    t.near(r.jac.b.c, { 0, 0 }, 1e-5)
    -- The slopes may come from the user, in the structure of the tree.
    r = minimize(function(v) return ops.sum(v[1] ^ 2) + (v[2] - 1) ^ 2 end, { ms.ones({ 2 }, ms.float64), 3.0 },
      { method = method, jac = function(v) return { v[1] * 2, (v[2] - 1) * 2 } end })
    t.near(r.x[1], { 0, 0 }, 1e-6)
    t.near(r.x[2], 1.0, 1e-6)
    ms.set_seed(2)
    local net = ms.nn.Dense(2, 1, { dtype = ms.float64 })
    local inputs, wanted = ops.randn({ 20, 2 }, ms.float64), ops.randn({ 20, 1 }, ms.float64)
    local function loss() return ops.mean((net(inputs) - wanted) ^ 2) end
    for _, parameters in ipairs { net, net:trainable_params(), { w = net.weight, b = { net.bias } } } do
      r = minimize(loss, parameters, { method = method, options = { gtol = 1e-8, maxiter = 200 } })
      t.near(loss(), r.fun, 1e-12)
      for _, g in ipairs(ms.grad(loss, nil, net:trainable_params())()) do t.near(g, ops.zeros_like(g), 1e-7) end
      net.weight:assign(ops.zeros_like(net.weight))
    end
    local step, _, _, value = ms.scipy.optimize.line_search(function(v) return (v.a - 3) ^ 2 + ops.sum(v.b ^ 2) end,
      { a = 0.0, b = ms.ones { 2 } }, { a = 3.0, b = -ms.ones { 2 } })
    t.near(step, 1.0, 1e-12)
    t.near(value, 0.0, 1e-12)
  end
  t.fails({ "calls_test.lua:", "x0.b must be a tensor, a number or a table of them, got the string 'x'" },
    function() minimize(function() return 0 end, { a = ms.ones(1), b = "x" }) end)
  t.fails("x0 is an empty table", function() minimize(function() return 0 end, {}) end)
  t.fails("gradient of x0.a has 3 elements, 1 are expected",
    function()
      minimize(function(v) return v.a end, { a = 1.0, b = ms.ones(1) }, { jac = function() return { a = ms.ones(3), b = 0 } end })
    end)
  t.fails("there is no option 'maxit'; there are: ftol, gtol, maxcor, maxiter",
    function() minimize(function(v) return ops.sum(v) end, ms.ones(2), { options = { maxit = 3 } }) end)
end)
t.finish()
