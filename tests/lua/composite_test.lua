-- The older idioms of MindSpore's programs: GradOperation, HyperMap and their kin, by MindSpore's own documented examples, eagerly,
-- compiled, and under derivatives.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local F = ms.float32

-- f as it is and compiled; several calls, so that records run.
local function each_way(f, check)
  check(f)
  local compiled = ms.jit(f)
  for _ = 1, 3 do check(compiled) end
end

t.test("GradOperation gives gradients by the first input, by all inputs and by parameters", function()
  local Net = nn.Cell:extend("Net")
  function Net:init()
    self.z = ms.Parameter(ms.tensor({ 1.0, 1.0, 1.0 }), "z")
  end
  function Net:construct(x, y) return ops.matmul(x * self.z, y) end
  local net = Net()
  local x = ms.tensor { { 0.8, 0.6, 0.2 }, { 1.8, 1.3, 1.1 } }
  local y = ms.tensor { { 0.11, 3.3, 1.1 }, { 1.1, 0.2, 1.4 }, { 1.1, 2.2, 0.3 } }
  each_way(function(a, b) return ops.GradOperation()(net)(a, b) end, function(f)
    t.near(f(x, y), { { 4.51, 2.7, 3.6 }, { 4.51, 2.7, 3.6 } }, 1e-5)
  end)
  each_way(function(a, b) return ops.GradOperation { get_all = true }(net)(a, b) end, function(f)
    local all = f(x, y)
    t.near(all[1], { { 4.51, 2.7, 3.6 }, { 4.51, 2.7, 3.6 } }, 1e-5)
    t.near(all[2], { { 2.6, 2.6, 2.6 }, { 1.9, 1.9, 1.9 }, { 1.3, 1.3, 1.3 } }, 1e-5)
  end)
  local sens = ms.tensor { { 0.1, 0.6, 0.2 }, { 0.8, 1.3, 1.1 } }
  t.near(ops.GradOperation { sens_param = true }(net)(x, y, sens), { { 2.211, 0.51, 1.49 }, { 5.588, 2.68, 4.07 } }, 1e-5)
  local weights = ms.ParameterTuple(net:trainable_params())
  local by_weight = ops.GradOperation { get_by_list = true }(net, weights)(x, y)
  t.near(by_weight[1], { 11.726, 5.13, 4.68 }, 1e-4)
  local all, again = ops.GradOperation { get_all = true, get_by_list = true }(net, weights)(x, y)
  t.near(all[2], { { 2.6, 2.6, 2.6 }, { 1.9, 1.9, 1.9 }, { 1.3, 1.3, 1.3 } }, 1e-5)
  t.near(again[1], by_weight[1], 0)
  t.near(ops.GradOperation { get_by_list = true }(net)(x, y)[1], by_weight[1], 0)
  -- Integers have zeros, and derivatives of derivatives are taken.
  local mixed = ops.GradOperation { get_all = true }(function(v, k) return v * k end)(ms.tensor { 2.0 }, ms.tensor({ 3 }))
  t.equal({ mixed[1]:tolist(), mixed[2]:tolist() }, { { 3.0 }, { 0 } })
  local cube = function(v) return v * v * v end
  t.near(ops.GradOperation()(ops.GradOperation()(cube))(ms.tensor { 2.0 }), { 12.0 }, 0)
  t.fails({ "GradOperation: parameters are given" }, function() return ops.GradOperation()(net, weights) end)
  t.fails({ "GradOperation: get_by_list needs the parameters" }, function() return ops.GradOperation { get_by_list = true }(cube) end)
  t.fails({ "GradOperation: fn must be a function" }, function() return ops.GradOperation()(3) end)
end)

t.test("HyperMap goes into lists of lists, Map does not; types choose among functions", function()
  local nested = { { ms.tensor(1.0), ms.tensor(2.0) }, { ms.tensor(3.0), ms.tensor(4.0) } }
  local square = ops.MultitypeFuncGraph("square")
  square:register("Tensor")(function(x) return ops.square(x) end)
  local squares = ops.HyperMap()(square, nested)
  t.equal({ squares[1][1]:item(), squares[1][2]:item(), squares[2][1]:item(), squares[2][2]:item() }, { 1.0, 4.0, 9.0, 16.0 })
  t.equal(ops.HyperMap(square, false)(nested)[2][2]:item(), 16.0)
  t.equal(ops.Map()(function(row) return #row end, { { 1, 2 }, { 3 } }), { 2, 1 })
  local order = {}
  ops.Map(function(v) order[#order + 1] = v return v end, true) { 1, 2, 3 }
  t.equal(order, { 3, 2, 1 })
  local add = ops.MultitypeFuncGraph("add")
  add:register("Number", "Number")(function(x, y) return x + y end)
  add:register("Tensor", "Number")(function(x, y) return ops.add(x, y * 10) end)
  add:register(ms.tensor_type, "Tensor")(function(x, y) return ops.add(x, y) end)
  t.equal(add(1, 2), 3)
  t.equal(add(ms.tensor { 1.0 }, 2):tolist(), { 21.0 })
  t.equal(add(ms.tensor { 1.0 }, ms.tensor { 5.0 }):tolist(), { 6.0 })
  t.fails({ "add: nothing is registered for (String); there are: (Number, Number)" }, function() return add "x" end)
  t.fails({ "add: there is no type 'Tensro'", "did you mean 'Tensor'?" }, function() return add:register "Tensro" end)
  t.fails({ "HyperMap: list 2 must have 2 items as the first one, got 1 items" }, function()
    return ops.HyperMap()(add, { 1, 2 }, { 1 })
  end)
end)

t.test("the loss scale of a training in the wild: HyperMap over partial of a graph of functions", function()
  local grad_scale = ops.MultitypeFuncGraph("grad_scale")
  local reciprocal = ops.Reciprocal()
  grad_scale:register("Tensor", "Tensor")(function(scale, grad) return grad * ops.cast(reciprocal(scale), grad.dtype) end)
  local hyper_map = ops.HyperMap()
  local function loss(w, b) return ops.sum(w * w) * 4 + ops.sum(b) * 4 end
  local function step(w, b)
    local grads = ops.GradOperation { get_all = true }(loss)(w, b)
    return hyper_map(ops.functional.partial(grad_scale, ms.tensor(4.0)), grads)
  end
  each_way(function(w, b)
    local g = step(w, b)
    return g[1], g[2]
  end, function(f)
    local gw, gb = f(ms.tensor { 1.0, 2.0 }, ms.tensor { 3.0 })
    t.near(gw, { 2.0, 4.0 }, 0)
    t.near(gb, { 1.0 }, 0)
  end)
end)

t.test("partial functions", function()
  local show = function(x, y, z) return { x, y, z } end
  t.equal(ops.Partial()(show, 1)(2, 3), { 1, 2, 3 })
  t.equal(ops.partial(show, 1, 2)(3), { 1, 2, 3 })
  t.equal(ops.partial(show, nil, 2)(3), { nil, 2, 3 })
  local scaled = ops.partial(function(k, x) return x * k end, 3.0)
  each_way(function(x) return scaled(x) end, function(f) t.near(f(ms.tensor { 2.0 }), { 6.0 }, 0) end)
  t.near(ms.grad(scaled)(ms.tensor { 2.0 }:sum()), 3.0, 0)
end)

t.test("loops with functions for their bodies", function()
  t.equal(ops.WhileLoop()(function(x) return x < 100 end, function(x) return x + 1 end, 10), 100)
  t.equal(ops.ForiLoop()(0, 4, function(i, sum) return i + sum end, 0), 6)
  local carry, all = ops.Scan()(function(sum, x) return sum + x, sum + x end, 0, { 1, 2, 3, 4 })
  t.equal({ carry, all }, { 10, { 1, 3, 6, 10 } })
  local _, counted = ops.scan(function(n) return n + 1, n end, 0, nil, 3)
  t.equal(counted, { 0, 1, 2 })
  local last, rows = ops.scan(function(sum, x) return sum + x, sum * x end, ms.tensor(0.0), ms.tensor { 1.0, 2.0, 3.0 })
  t.equal({ last:item(), rows:tolist() }, { 6.0, { 0.0, 2.0, 9.0 } })
  local function power(x) return ops.fori_loop(0, 3, function(_, y) return y * x end, ms.tensor(1.0)) end
  each_way(power, function(f)
    t.near(f(ms.tensor(2.0)), 8.0, 0)
    t.near(ms.grad(f)(ms.tensor(2.0)), 12.0, 0)
  end)
  local function doubled(x) return ops.while_loop(function(y) return ops.less(y, 10.0) end, function(y) return y * 2 end, x) end
  each_way(doubled, function(f)
    t.near(f(ms.tensor(3.0)), 12.0, 0)
    t.near(ms.grad(f)(ms.tensor(3.0)), 4.0, 0)
  end)
  t.fails({ "fori_loop: upper must be an integer, got 2.5" }, function() return ops.fori_loop(0, 2.5, power, 1) end)
  t.fails({ "scan: length is 2, and xs has 3 items" }, function() return ops.scan(power, 0, { 1, 2, 3 }, 2) end)
end)

t.test("hooks on gradients", function()
  local a, b = ms.tensor { 1.0 }, ms.tensor { 0.2 }
  local function clip_gradient(d)
    local result = d
    if result > a then result = a end
    if result < b then result = b end
    return result
  end
  local clip = ops.InsertGradientOf(clip_gradient)
  local function product(x, y) return clip(x) * clip(y) end
  each_way(product, function(f) t.near(f(ms.tensor { 1.1 }, ms.tensor { 0.1 }), { 0.11 }, 1e-6) end)
  each_way(function(x, y) return ops.GradOperation { get_all = true }(product)(x, y) end, function(f)
    local all = f(ms.tensor { 1.1 }, ms.tensor { 0.1 })
    t.near(all[1], { 0.2 }, 1e-6)
    t.near(all[2], { 1.0 }, 1e-6)
  end)
  local seen = {}
  local hook = ops.HookBackward(function(grads) seen[#seen + 1] = grads[1]:item() end)
  local function hooked(x, y) return hook(x * y) * y end
  local all = ops.GradOperation { get_all = true }(hooked)(ms.tensor(1.0), ms.tensor(2.0))
  t.equal({ all[1]:item(), all[2]:item(), seen[1] }, { 4.0, 4.0, 2.0 })
  local double = ops.HookBackward(function(grads) return grads[1] * 2 end)
  each_way(function(x) return double(x) * 3 end, function(f) t.near(ms.grad(f)(ms.tensor(1.0)), 6.0, 0) end)
  t.fails({ "HookBackward: cell_id must be \"\"" }, function() return ops.HookBackward(print, "conv") end)
end)

t.test("hooks of tensors: what a function computes, inputs and parameters", function()
  local function hook_test(x, y)
    local z = x * y
    z:register_hook(function(d) return d * 2 end)
    z = z * y
    return z
  end
  each_way(hook_test, function(f)
    local all = ms.grad(f, { 0, 1 })(ms.tensor(1.0), ms.tensor(2.0))
    t.equal({ all[1]:item(), all[2]:item() }, { 8.0, 6.0 })
  end)
  local net = nn.Dense(2, 1, { has_bias = false, weight_init = "ones" })
  local handle = net.weight:register_hook(function(d) return d * 10 end)
  local f = ms.value_and_grad(function(x) return ops.sum(net(x)) end, nil, net:trainable_params())
  for _ = 1, 3 do
    local _, grads = f(ms.tensor { { 1.0, 2.0 } })
    t.near(grads[1], { { 10.0, 20.0 } }, 0)
  end
  handle:remove()
  local _, grads = f(ms.tensor { { 1.0, 2.0 } })
  t.near(grads[1], { { 1.0, 2.0 } }, 0)
  t.fails({ "register_hook: hook must be a function" }, function() ms.ones({ 1 }):register_hook(3) end)
end)

t.test("derivatives of any order along a line and along curves", function()
  local x = ms.tensor({ { 1, 2 }, { 3, 4 } }, F)
  local function net(v) return ops.exp(ops.sin(v)) end
  local value, third = ops.derivative(net, x, 3)
  t.near(value, { { 2.319777, 2.4825778 }, { 1.1515628, 0.4691642 } }, 1e-5)
  t.near(third, { { -4.0515366, 3.6724353 }, { 0.5053504, -0.52061415 } }, 1e-4)
  local series = ms.tensor({ { { 1, 1 }, { 1, 1 } }, { { 0, 0 }, { 0, 0 } }, { { 0, 0 }, { 0, 0 } } }, F)
  each_way(function(v, s) return select(2, ops.jet(net, v, s)) end, function(f)
    local all = f(x, series)
    t.near(all[0], { { 1.2533808, -1.0331168 }, { -1.1400385, -0.3066662 } }, 1e-5)
    t.near(all[1], { { -1.2748207, -1.8274734 }, { 0.966121, 0.55551505 } }, 1e-5)
    t.near(all[2], { { -4.0515366, 3.6724353 }, { 0.5053504, -0.52061415 } }, 1e-4)
  end)
  -- Two inputs, both growing: d^2/dt^2 (x + t)(y + t) = 2.
  t.near(select(2, ops.derivative(function(a, b) return a * b end, { ms.tensor(3.0), ms.tensor(5.0) }, 2)), 2.0, 1e-5)
end)

t.test("a linear approximation", function()
  local matmul = ops.MatMul()
  local x = ms.tensor({ { 1, 2, 3 }, { 3, 4, 5 } }, F)
  local y = ms.tensor({ { 1, 2 }, { 3, 4 }, { 5, 6 } }, F)
  local value, jvp = ops.linearize(matmul, { x, y })
  t.near(value, { { 22, 28 }, { 40, 52 } }, 0)
  local v = { ms.ones { 2, 3 }, ms.tensor({ { 1, 1 }, { 1, 1 }, { 0, 0 } }, F) }
  for _ = 1, 2 do t.near(jvp(v), { { 12, 15 }, { 16, 19 } }, 1e-5) end
end)

t.test("saved tensors are packed and unpacked", function()
  local events = {}
  local saved = ms.saved_tensors_hooks(function(x)
    events[#events + 1] = "packing " .. x:tolist()[1]
    return x + 1
  end, function(x)
    events[#events + 1] = "unpacking " .. x:tolist()[1]
    return x
  end)
  local function forward(x, y) return ops.sum(saved(function(a, b) return a * b end, x, y)) end
  local value, grads = ms.value_and_grad(forward, { 0, 1 })(ms.ones { 2 }, ms.ones { 2 })
  t.equal(value:item(), 2.0)
  t.equal(events, { "packing 1.0", "packing 1.0", "unpacking 2.0", "unpacking 2.0" })
  t.equal({ grads[1]:tolist(), grads[2]:tolist() }, { { 2.0, 2.0 }, { 2.0, 2.0 } })
  -- Halves keep less memory, and slopes nearly as good.
  local halved = ms.saved_tensors_hooks(function(x) return ops.cast(x, ms.float16) end, function(x) return ops.cast(x, F) end)
  each_way(function(x)
    return ops.sum(halved(ops.square, x)) end, function(f) t.near(ms.grad(f)(ms.tensor { 1.5, 0.25 }), { 3.0, 0.5 }, 0)
  end)
end)

t.test("words for the compiler", function()
  local shape = ops.constexpr(function(n) return { n, n } end)
  each_way(function(x) return ops.reshape(x, shape(2)) end, function(f) t.equal(f(ms.arange(4)):tolist(), { { 0, 1 }, { 2, 3 } }) end)
  t.fails({ "sizes: argument 1 is a tensor of shape (4,)" }, function() return ms.constexpr { name = "sizes" }(shape)(ms.arange(4)) end)
  t.fails({ "constexpr: get_instance must be true, got false" }, function() return ms.constexpr(shape, false) end)
  local list = ms.mutable({ ms.tensor(1.0), ms.tensor(2.0) }, true)
  local grads = ms.grad(function(l) return l[1] * l[2] end)(list)
  t.equal({ grads[1]:item(), grads[2]:item() }, { 2.0, 1.0 })
  t.fails({ "mutable: dynamic_len is for tables, got 3" }, function() return ms.mutable(3, true) end)
  local Point = ms.jit_class({})
  Point.__index = Point
  function Point:sum() return self.x + self.y end
  local point = setmetatable({ x = 1.0, y = 2.0 }, Point)
  each_way(function(x) return x * point:sum() end, function(f) t.near(f(ms.tensor { 2.0 }), { 6.0 }, 0) end)
  local triple = ms.no_inline(function(x) return x * 3 end)
  local init = ms.lazy_inline(function(x) return triple(x) end)
  each_way(function(x) return init(x) end, function(f) t.near(f(ms.tensor { 2.0 }), { 6.0 }, 0) end)
  t.fails({ "lazy_inline: policy must be nil, got the string 'front'" }, function() return ms.lazy_inline(init, nil, "front") end)
end)

t.finish()
