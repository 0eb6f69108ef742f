-- Operators that a program defines: against the same written with the library's operators.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops
local test, equal, near = t.test, t.equal, t.near
local function fails(f, message) t.fails(message, f) end

local x = ms.tensor { 0.0, 1.0, -2.0, 0.5, 3.0 }
local function total(f, ...)
  local rest = { ... }
  return function(a) return ops.sum(f(a, table.unpack(rest))) end
end

-- The operator and a function of tensors agree in value, derivatives of two orders, compiled and mapped.
local function agrees(op, f, ...)
  local args = { ... }
  local a = args[1]
  local function on_first(g) return function(v) return g(v, table.unpack(args, 2)) end end
  local mine, theirs = on_first(op), on_first(f)
  near(mine(a), theirs(a), 1e-5)
  if not a:is_floating_point() then return end
  local d_mine, d_theirs = ms.grad(total(mine)), ms.grad(total(theirs))
  near(d_mine(a), d_theirs(a), 1e-5)
  near(ms.grad(total(d_mine))(a), ms.grad(total(d_theirs))(a), 1e-4)
  local compiled, d_compiled = ms.jit(mine), ms.jit(d_mine)
  for _ = 1, 4 do
    near(compiled(a), theirs(a), 1e-5)
    near(d_compiled(a), d_theirs(a), 1e-5)
  end
  if #a.shape > 0 then near(ms.vmap(mine)(a), ms.vmap(theirs)(a), 1e-5) end
end

test("an expression is an operator", function()
  local swish = ms.op { name = "swish_of_test", inputs = { "x", "beta" },
    expr = load("return function(v, beta) return v * sigmoid(beta * v) end")() }
  agrees(swish, function(v, b) return v * ops.sigmoid(b * v) end, x, 2.0)
  local beta = ms.tensor { { 1.0 }, { 2.0 } }
  near(swish(x, beta), x * ops.sigmoid(beta * x), 1e-6)
  -- The cotangent of an operand that was broadcast has its shape.
  local d = ms.grad(function(b) return ops.sum(swish(x, b)) end)
  local e = ms.grad(function(b) return ops.sum(x * ops.sigmoid(b * x)) end)
  near(d(beta), e(beta), 1e-5)
  equal(d(beta).shape[1], 2)
end)

test("arithmetic, methods, functions of math and locals", function()
  agrees(ms.op("t1", function(v) return -v * 2 + 1 / (v * v + 1) - v % 3 end),
    function(v) return -v * 2 + 1 / (v * v + 1) - v % 3 end, x)
  agrees(ms.op("t2", function(v) return math.exp(v) - math.sin(v) * math.abs(v) end),
    function(v) return ops.exp(v) - ops.sin(v) * ops.abs(v) end, x)
  agrees(ms.op("t3", function(v) return v:tanh() + math.max(v, 0, -v) ^ 2 end),
    function(v) return v:tanh() + ops.maximum(ops.maximum(v, 0), -v) ^ 2 end, x)
  local scale, helper = 3, function(v) return v * v end
  agrees(ms.op("t4", function(v)
    local sum = 0
    for i = 1, 4 do sum = sum + helper(v) / i end
    return sum * scale
  end), function(v) return v * v * (1 + 1 / 2 + 1 / 3 + 1 / 4) * 3 end, x)
  near(ms.op("t5", function(v) return math.log(v, 2) + math.atan(v, 2) end)(ms.tensor { 1.0, 4.0 }),
    ops.log2(ms.tensor { 1.0, 4.0 }) + ops.atan2(ms.tensor { 1.0, 4.0 }, ms.tensor(2.0)), 1e-5)
  agrees(ms.op("t6", function(v) return ops.gelu(v) + ops.softplus(v) end),
    function(v) return ops.gelu(v) + ops.softplus(v) end, x)
end)

test("conditions choose element by element", function()
  local f = ms.op("t7", function(v)
    if v > 1 then return v * v elseif v == 0 then return -1 end
    return v < -1 and 10 or v
  end)
  equal(f(x), ms.tensor { -1.0, 1.0, 10.0, 0.5, 9.0 })
  equal(f(ms.tensor(2.0)), ms.tensor(4.0))
  equal(ms.op("t8", function(v) return v ~= 0 and 1 or 0 end)(x), ms.tensor { 0.0, 1.0, 1.0, 1.0, 1.0 })
  equal(ms.op("t9", function(v, w) return v >= w and v or w end)(x, 0.5), ops.maximum(x, 0.5))
  local calls = 0
  local counted = ms.op("t10", function(v)
    calls = calls + 1
    return v > 0 and v or 0.5 * v
  end)
  equal(calls, 2)
  counted(x)
  equal(calls, 2)
end)

test("a way that is not taken has no part in the gradient", function()
  local f = ms.op("t11", function(v) if v > 0 then return math.log(v) end return v end)
  local d = ms.grad(total(f))
  equal(d(x), ms.tensor { 1.0, 1.0, 1.0, 2.0, 1 / 3 })
  equal(ms.grad(total(d))(ms.tensor { 0.0, 2.0 }), ms.tensor { 0.0, -0.25 })
  local safe = ms.op("t12", function(v) return v > 0 and math.sqrt(v) or 0 end)
  equal(ms.grad(total(safe))(ms.tensor { 0.0, 4.0 }), ms.tensor { 0.0, 0.25 })
end)

test("a third derivative", function()
  local cube = ms.op("t13", function(v) return v ^ 4 / 24 end)
  local d3 = ms.grad(ms.grad(ms.grad(function(v) return ops.sum(cube(v)) end)))
  near(d3(ms.tensor(2.0)), ms.tensor(2.0), 1e-5)
end)

test("dtypes are as those of the operators that it is made of", function()
  local f = ms.op("t14", function(a, b) return a * b + 1 end)
  for _, dtype in ipairs { ms.float32, ms.float64, ms.float16, ms.bfloat16, ms.int32, ms.int64, ms.uint8 } do
    local a = ms.tensor({ 1, 2, 3 }, dtype)
    equal(f(a, a), a * a + 1)
    equal(f(a, 2), a * 2 + 1)
  end
  equal(tostring(f(ms.tensor({ 1 }, ms.int32), ms.tensor({ 0.5 }, ms.float64)).dtype), tostring(ms.float64))
  equal(ms.op("t15", function(v) return ops.less(v, 1) end)(x), ops.less(x, 1))
  local select = ms.op { name = "t16", inputs = { "m: bool", "a" }, expr = function(m, a) return ops.where(m, a, -a) end }
  equal(select(ops.less(x, 1), x), ops.where(ops.less(x, 1), x, -x))
  near(ms.grad(function(v) return ops.sum(select(ops.less(x, 1), v)) end)(x),
    ops.where(ops.less(x, 1), ops.ones_like(x), -ops.ones_like(x)), 0)
  -- In double precision throughout: no step is rounded to single.
  local third = ms.op("t17", function(v) return v > 0 and v / 3 or 0 end)
  local one = ms.tensor({ 1 }, ms.float64)
  equal(third(one):item(), 1 / 3)
  equal(ms.grad(total(third))(one):item(), 1 / 3)
end)

test("layouts and empty tensors", function()
  local f = ms.op("t18", function(a, b) return a - 2 * b end)
  local m = ms.tensor { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }
  equal(f(m:t(), m:t()), (m - 2 * m):t())
  equal(f(m["0, ::2"], 1), m["0, ::2"] - 2)
  equal(f(ops.zeros { 0, 3 }, 1.0).shape[2], 3)
  local out = f(m, m)
  out[{ 0, 0 }] = 5
  equal(f(m, m), m - 2 * m)
end)

test("a rule computes at the points of an index space", function()
  local a, v = ms.tensor { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }, ms.tensor { 1.0, 10.0, 100.0 }
  local distance = ms.op { name = "distance_of_test", inputs = { "a[i, k]", "b[j, k]" }, output = "i, j", reduce = "sum",
    expr = function(p, q) return (p - q) ^ 2 end }
  local function composed(p, q)
    return ops.sum((ops.reshape(p, { 2, 1, 3 }) - ops.reshape(q, { 1, 2, 3 })) ^ 2, 2)
  end
  local b = a * 0.5 + 1
  near(distance(a, b), composed(a, b), 1e-5)
  near(ms.grad(function(p) return ops.sum(distance(p, b) ^ 2) end)(a),
    ms.grad(function(p) return ops.sum(composed(p, b) ^ 2) end)(a), 1e-2)
  local compiled = ms.jit(function(p, q) return distance(p, q) * 2 end)
  for _ = 1, 3 do near(compiled(a, b), composed(a, b) * 2, 1e-4) end
  local function rule(inputs, output, reduce, expr)
    return ms.op { name = "rule_of_test", inputs = inputs, output = output, reduce = reduce, expr = expr }
  end
  equal(rule({ "a[i,k]", "v[k]" }, "i", "max", function(p, q) return p * q end)(a, v), ms.tensor { 300.0, 600.0 })
  equal(rule({ "a[i,k]" }, "k, i", nil, function(p) return p + 1 end)(a), a:t() + 1)
  equal(rule({ "a[i,k]" }, "", "mean", function(p) return p end)(a), ms.tensor(3.5))
  equal(rule({ "a[i,k]", "s[]" }, "k", "min", function(p, s) return p * s end)(a, -1), ms.tensor { -4.0, -5.0, -6.0 })
  equal(rule({ "u[i]", "w[j]" }, "j, i", nil, function(p, q) return p - q end)(v, ms.tensor { 1.0, 2.0 }),
    ms.tensor { { 0.0, 9.0, 99.0 }, { -1.0, 8.0, 98.0 } })
  fails(function() distance(a, v) end, "b has shape (3) and the rule gives it 2 indices")
  fails(function() distance(a, ms.tensor { { 1.0 }, { 2.0 } }) end, "index k has 3 values in a and 1 in b")
end)

test("a rule's gradient", function()
  local lse = ms.op { name = "weighted_of_test", inputs = { "x[n, c]", "w[c]" }, output = "n", reduce = "sum",
    expr = function(p, w) return math.exp(p) * w end }
  local a, w = ms.tensor { { 0.1, 0.2 }, { 0.3, -0.4 } }, ms.tensor { 1.0, 2.0 }
  local mine = ms.grad(function(p, q) return ops.sum(lse(p, q) ^ 2) end, { 0, 1 })
  local theirs = ms.grad(function(p, q) return ops.sum(ops.sum(ops.exp(p) * q, 1) ^ 2) end, { 0, 1 })
  local d, e = table.pack(mine(a, w)), table.pack(theirs(a, w))
  near(d[1], e[1], 1e-5)
  near(d[2], e[2], 1e-5)
end)

test("one definition twice is one operator, another of its name a second one", function()
  local source = "local ms = ... return ms.op('again_of_test', function(v) return v + %d end)"
  local one = load(source:format(1), "cell")(ms)
  local other = load(source:format(2), "cell")(ms)
  equal(one(x), x + 1)
  equal(other(x), x + 2)
  equal(ms.grad(total(other))(x), ops.ones_like(x))
end)

test("it is saved as what it is made of", function()
  local f = ms.op("saved_of_test", function(v) return v > 0 and v * 2 or v end)
  local path = os.tmpname()
  ms.save_mindir(function(v) return f(v) + 1 end, path, x)
  equal(ms.load_mindir(path)(x), f(x) + 1)
  os.remove(path)
end)

test("what is no expression over scalars is refused, with its line", function()
  local function refused(f, message) fails(function() ms.op("refused_of_test", f) end, message) end
  refused(function(v) return ops.sum(v) end, "op_test.lua:187: op: 'sum' does not work element by element")
  refused(function(v) return ops.softmax(v, 0) end, "'softmax' does not work element by element")
  refused(function(v) return v .. "" end, "an element cannot be part of a text")
  refused(function(v) return tostring(v) end, "tostring cannot be part of an expression")
  refused(function(v) while v > 0 do v = v - 1 end return v end, "it decides by its inputs without end")
  refused(function() return 3 end, "at least one input")
  refused(function(v) return 3 end, "does not depend on its inputs")
  refused(function(v, w) return v end, "does not use its input 'w'")
  refused(function(v) return v.shape end, "an element has no part 'shape'")
  refused(function(v) return v[0] end, "an element has no part '0'")
  refused(function(v) return #v end, "an element has no length")
  refused(function(v) return v:item() end, "value of an element is not known")
  refused(function(v) return v, v end, "must return one value, got 2")
  refused(function(v) return { v } end, "must return a number")
  refused(function(v) return v + x end, "a tensor of shape (5) is no scalar")
  refused(function(v) return _ENV.unknown_of_test(v) end, "attempt to call a nil value")
  refused(function(...) return 1 end, "must name its parameters")
  fails(function() ms.op { name = "tanh", expr = function(v) return v * 2 end } end, "there is an operator 'tanh'")
  fails(function() ms.op { expr = function(v) return v end, shape = 3 } end, "there is no field 'shape'")
  fails(function() ms.op { inputs = { "a", "b" }, expr = function(v) return v end } end, "2 inputs and the expression takes 1")
  fails(function() ms.op { inputs = { "a[i]" }, output = "j", expr = function(v) return v end } end, "index j")
  fails(function() ms.op { inputs = { "a[i, k]" }, output = "i", expr = function(v) return v end } end, "reduce says how")
  fails(function() ms.op { inputs = { "a[i]", "b" }, output = "i", expr = function(v, w) return v * w end } end, "no indices")
  fails(function() ms.op { inputs = { "a: int" }, expr = function(v) return v end } end, "the only type")
  fails(function() ms.op(3) end, "a table {name")
  local f = ms.op("shapes_of_test", function(a, b) return a * b end)
  fails(function() f(x, ms.tensor { 1.0, 2.0 }) end, "shapes_of_test")
  fails(function() f(x) end, "shapes_of_test: missing argument 2: b is expected")
end)

t.finish()
