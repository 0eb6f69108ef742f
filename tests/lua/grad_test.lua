-- Gradients as a user meets them: what the transforms take and give, their errors, deep and long programs, memory.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local T, ops = ms.tensor, ms.ops

if not ms.grad then
  print("1 waiting for: ms.grad")
  t.finish()
end

-- The line on which this is called, as error messages write it.
local function here(offset)
  return ("grad_test.lua:%d:"):format(debug.getinfo(2, "l").currentline + (offset or 0))
end

local function square(x) return x * x end

t.test("numbers have gradients that are numbers", function()
  local slope = ms.grad(square)(3.0)
  t.equal(math.type(slope), "float")
  t.equal(slope, 6.0)
  t.near(ms.grad(math.exp)(0.5), math.exp(0.5), 1e-12)
end)

t.test("functions of math for programs of older versions have gradients", function()
  local x, y, h = 0.7, 1.3, 1e-6
  for _, name in ipairs { "sinh", "cosh", "tanh", "log10" } do
    local f = math[name]
    t.near(ms.grad(f)(x), (f(x + h) - f(x - h)) / (2 * h), 1e-8)
  end
  for _, name in ipairs { "pow", "atan2" } do
    local f = math[name]
    local slopes = ms.grad(f, { 0, 1 })(x, y)
    t.near(slopes[1], (f(x + h, y) - f(x - h, y)) / (2 * h), 1e-8)
    t.near(slopes[2], (f(x, y + h) - f(x, y - h)) / (2 * h), 1e-8)
  end
end)
t.test("tanh at 2, three times over", function()
  local d1 = ms.grad(ops.tanh)
  local d2 = ms.grad(d1)
  local d3 = ms.grad(d2)
  local x = T(2.0, ms.float64)
  t.near(d1(x):item(), 0.070650824853164, 1e-12)
  t.near(d2(x):item(), -0.136218687427113, 1e-12)
  t.near(d3(x):item(), 0.252654065098063, 1e-12)
end)

t.test("a gradient has the shape and dtype of its input", function()
  for _, dtype in ipairs { ms.float16, ms.bfloat16, ms.float32, ms.float64 } do
    local g = ms.grad(function(x) return ops.sum(x * x) end)(T({ { 1, 2 }, { 3, 4 } }, dtype))
    t.equal(g.dtype, dtype)
    t.equal(g:tolist(), { { 2, 4 }, { 6, 8 } })
  end
end)

t.test("a position gives one gradient, a table of positions a table", function()
  local function f(a, b, c) return ops.sum(a * b) + 2 * ops.sum(c) end
  local a, b, c = T { 1.0, 2.0 }, T { 3.0, 4.0 }, T { 5.0 }
  t.equal(ms.grad(f)(a, b, c), b)
  t.equal(ms.grad(f, 1)(a, b, c), a)
  local g = ms.grad(f, { 2, 0 })(a, b, c)
  t.equal(#g, 2)
  t.equal(g[1], T { 2.0 })
  t.equal(g[2], b)
  t.equal(ms.grad(f, { grad_position = 1 })(a, b, c), a)
end)

t.test("a table argument has a table of gradients", function()
  local function f(p, x) return ops.sum(p.w * x + p.layers[2].b) end
  local p = { w = T { 1.0, 2.0 }, layers = { { b = T { 0.5 } }, { b = T { 1.5 } } } }
  local g = ms.grad(f)(p, T { 3.0, 4.0 })
  t.equal(g.w, T { 3.0, 4.0 })
  t.equal(g.layers[1].b, T { 0.0 })
  t.equal(g.layers[2].b, T { 2.0 })
end)

t.test("value_and_grad gives the value first, with has_aux all results in a table", function()
  local value, g = ms.value_and_grad(function(x) return ops.sum(x * x) end)(T { 1.0, 2.0 })
  t.equal(value, T(5.0))
  t.equal(g, T { 2.0, 4.0 })
  local out, slope = ms.value_and_grad(function(x) return x * x, x + 1, "note" end, { has_aux = true })(3.0)
  t.equal(out, { 9.0, 4.0, "note" })
  t.equal(slope, 6.0)
end)

t.test("weights have gradients in their order", function()
  local w, b = ms.Parameter(T { 2.0, 3.0 }, "w"), ms.Parameter(T { 1.0 }, "b")
  local function f(x) return ops.sum(w * x + b) end
  local x = T { 5.0, 7.0 }
  local value, grads = ms.value_and_grad(f, nil, { w, b })(x)
  t.equal(value, T(33.0))
  t.equal(grads, { T { 5.0, 7.0 }, T { 2.0 } })
  local both = table.pack(ms.grad(f, 0, { b })(x))
  t.equal(both[1], T { 2.0, 3.0 })
  t.equal(both[2], { T { 2.0 } })
end)

t.test("stop_gradient stops it", function()
  t.equal(ms.grad(function(x) return x * ops.stop_gradient(x) end)(T(3.0)), T(3.0))
  t.equal(ms.grad(function(x) return x * ms.stop_gradient(x * x) end)(T(3.0)), T(9.0))
end)

t.test("grad inside grad inside pcall inside a coroutine", function()
  local thread = coroutine.wrap(function()
    local ok, slope = pcall(function()
      return ms.grad(function(x) return x * ms.grad(function(y) return y * y * x end)(x) end)(3.0)
    end)
    coroutine.yield(ok)
    return slope
  end)
  t.equal(thread(), true)
  t.equal(thread(), 6 * 3.0 ^ 2)
end)

t.test("a while loop of 100,000 steps whose end depends on the data", function()
  local function f(x)
    local y, steps = x, 0
    while y < 100000 do
      y = y + 1.0
      steps = steps + 1
    end
    return y * x, steps
  end
  local out, slope = ms.value_and_grad(f, 0, nil, true)(0.5)
  t.equal(out[2], 100000)
  t.equal(slope, 100000.5 + 0.5)
end)

t.test("the same with tensors", function()
  local function f(x)
    local y, i = x, 0
    while i < 100000 do
      y = y * 0.99999
      i = i + 1
    end
    return y
  end
  t.near(ms.grad(f)(T(1.0, ms.float64)):item(), 0.99999 ^ 100000, 1e-9)
end)

t.test("recursion 10,000 deep", function()
  local function down(x, n)
    if n == 0 then return x end
    return down(x, n - 1) + x
  end
  t.equal(ms.grad(function(x) return down(x, 10000) end)(1.0), 10001.0)
end)

local function live_bytes()
  collectgarbage()
  collectgarbage()
  return ms.memory_stats().live_bytes
end

t.test("memory returns to where it was", function()
  local function f(x)
    local y = x
    for _ = 1, 200 do y = ops.tanh(y) + x end
    return ops.sum(y)
  end
  local x = ops.ones({ 1000 })
  local gradient = ms.grad(f)
  for _ = 1, 5 do gradient(x) end -- in graph mode it is compiled by then and keeps the memory of its plan
  local before, lua_before = live_bytes(), collectgarbage("count")
  for _ = 1, 10 do gradient(x) end
  t.equal(live_bytes(), before)
  collectgarbage()
  if collectgarbage("count") > lua_before + 64 then
    error(("Lua holds %.0f KB more"):format(collectgarbage("count") - lua_before))
  end
end)

t.test("what the backward pass has used is freed as it goes", function()
  local live = {}
  -- Notes on its way back how much lives then.
  local note = ms.custom_vjp(function(x) return x end, function(_, _, d)
    live[#live + 1] = live_bytes()
    return d
  end)
  local function f(x)
    local y = note(ops.relu(x))
    for _ = 1, 10 do y = ops.relu(y) end
    return ops.sum(note(y))
  end
  local x = ops.ones({ 1 << 16 })
  local p = ms.Parameter(x, "p")
  local weight = ms.grad(function() return f(p) end, nil, p)
  for _, gradient in ipairs { ms.grad(f), weight, ms.value_and_grad(f, { 0 }) } do
    live = {}
    gradient(x)
    -- The ten results that lie between are gone.
    if live[1] - live[2] < 9 * x.nbytes then
      error(("%d bytes at first, %d at the end"):format(live[1], live[2]))
    end
  end
end)

t.test("a tensor that is asked for its properties is not kept by the question", function()
  local x = ops.ones({ 1 << 16 })
  local function f(y)
    y = ops.exp(y) * 2
    assert(y.shape[1] == 1 << 16 and #y == 1 << 16 and y.ndim == 1)
    y = ops.reshape(ops.sigmoid(y), { -1, y.shape[1] })
    return ops.sum(y)
  end
  ms.grad(f)(x)
  collectgarbage()
  collectgarbage("stop")
  local before = ms.memory_stats().live_bytes
  local d = ms.grad(f)(x)
  local kept = ms.memory_stats().live_bytes - before - d.nbytes
  collectgarbage("restart")
  if kept > 1000 then error(("%d bytes are still alive"):format(kept)) end
end)

t.test("the function that vjp gives can be called again", function()
  local _, pull = ms.vjp(function(x) return ops.tanh(ops.exp(x) * x) end, ms.tensor { 0.5, 1.0 })
  local first = pull(ms.tensor { 1.0, 2.0 })
  t.equal(pull(ms.tensor { 1.0, 2.0 }):tolist(), first:tolist())
  t.equal(pull(ms.tensor { 2.0, 4.0 }):tolist(), (first * 2):tolist())
end)

t.test("a given derivative gets zeros for results that nothing depends on, and is not asked where nothing does", function()
  local asked = 0
  local both = ms.custom_vjp(function(x)
    return x * x, x * 3, "text", x[0]:item()
  end, function(x, _, _, _, _, d, e, _, n)
    asked = asked + 1
    return d * x * 2 + e * 3 + n * ms.tensor({ 1.0, 0.0 }, ms.float64)
  end)
  local x = ms.tensor({ 1.0, 2.0 }, ms.float64)
  local function gradient(f) return ms.grad(function(v) return f(v, both(v)) end)(x) end
  t.equal(gradient(function(_, y) return ops.sum(y) end):tolist(), { 2.0, 4.0 })
  t.equal(gradient(function(_, _, z) return ops.sum(z * z) end):tolist(), { 18.0, 36.0 })
  t.equal(gradient(function(_, _, _, _, n) return n * n end):tolist(), { 2.0, 0.0 })
  t.equal(gradient(function(_, y, z) return ops.sum(y * z) end):tolist(), { 9.0, 36.0 })
  t.equal(ms.grad(function(v)
    return ops.sum(ms.grad(function(u)
      local _, z = both(u)
      return ops.sum(z * z)
    end)(v))
  end)(x):tolist(), { 18.0, 18.0 })
  asked = 0
  t.equal(gradient(function(v) return ops.sum(v) end):tolist(), { 1.0, 1.0 })
  t.equal(gradient(function(v, y) return ops.sum(v + ops.floor(y)) end):tolist(), { 1.0, 1.0 })
  t.equal(asked, 0)
  t.equal(gradient(function(v, y)
    y = y * 1.0
    y["..."] = 0.0
    return ops.sum(v + y)
  end):tolist(), { 1.0, 1.0 })
end)

t.test("cotangents and tangents that do not go with what they belong to are refused", function()
  local x = ms.tensor({ 1.0, 2.0, 3.0 }, ms.float64)
  local y, pull = ms.vjp(ops.square, x)
  for _, d in ipairs { ms.tensor { 1.0, 2.0 }, ms.tensor { 1.0 }, ms.tensor { { 1.0, 2.0, 3.0 } } } do
    t.fails({ "grad_test.lua:", "vjp: cotangent 0 is a tensor", tostring(d.shape), "the result is", "(3,)" },
      function() pull(d) end)
    t.fails({ "jvp: tangent 0 is a tensor", tostring(d.shape), "the argument is", "(3,)" }, ms.jvp, ops.square, x, d)
  end
  t.fails({ "vjp: cotangent 0 is the boolean true" }, pull, true)
  t.fails({ "vjp: cotangent 0 is a table" }, pull, { 1.0, 2.0, 3.0 })
  t.fails({ "jvp: tangent 0 is the string 'a'" }, ms.jvp, ops.square, x, "a")
  t.near(pull(0.5), x, 1e-12)
  t.near(pull(y), 2 * x ^ 3, 1e-12)
  local _, of_number = ms.vjp(function(v) return v * v end, 3.0)
  t.fails({ "vjp: cotangent 0 is a tensor", "the result is the number 9.0" }, of_number, ms.tensor { 1.0 })
  t.fails({ "jvp: tangent 0 is a tensor", "the argument is the number 3.0" }, ms.jvp, ops.square, 3.0, x)
  t.equal(of_number(2), 12.0)
end)

t.test("an attribute without a derivative that is differentiated is an error, however it is named", function()
  local x, m = ms.tensor({ -1.0, 2.0 }, ms.float64), ms.ones({ 2, 2 }, ms.float64)
  local message = { "has no gradient with respect to 'ord'", "grad_test.lua:" }
  t.fails(message, ms.grad(function(a) return ops.matrix_norm(m, a) end), 0.5)
  t.fails(message, ms.grad(function(a) return ops.matrix_norm(m, { ord = a }) end), 0.5)
  t.fails(message, ms.grad(function(a) return ops.matrix_norm { input = m * a, ord = a } end), 0.5)
  t.fails(message, ms.grad(function(a)
    local options = { ord = 0.1 }
    options.ord = a
    return ops.matrix_norm(m * a, options)
  end), 0.5)
  -- A plain number beside a tensor that is differentiated, and one that took the place of what was.
  t.equal(ms.grad(function(a) return ops.sum(ops.leaky_relu { input = x * a, negative_slope = 0.25 }) end)(0.5), 1.75)
  t.equal(ms.grad(function(a)
    local options = { input = x * a, negative_slope = a }
    options.negative_slope = 0.25
    return ops.sum(ops.leaky_relu(options))
  end)(0.5), 1.75)
end)

t.test("numbers in a tensor's place that are given by name have gradients", function()
  local x = ms.tensor({ -1.0, 0.1, 2.0 }, ms.float64)
  local function f(a) return ops.sum(ops.clip_by_value(x, { min = -a, max = a })) * 1.0 end
  t.equal(ms.grad(f)(0.5), 0.0)
  t.near(ms.grad(function(a) return ops.sum(ops.clip_by_value(x * a, { min = -0.25, max = a })) end)(0.5), 1.1, 1e-12)
end)

t.test("check_grad takes the dtype's precision into account, and finds what is wrong in each", function()
  local wrong = ms.custom_vjp(function(x) return x * x end, function(x, _, d) return d * x * 1.9 end)
  for _, dtype in ipairs { ms.float64, ms.float32 } do
    local x = ms.tensor({ 0.3, 0.7, -1.1 }, dtype)
    for _ = 1, 20 do
      ms.check_grad(function(y) return ops.sum(ops.tanh(y) * y) end, x)
      ms.check_grad(function(y) return ops.mean(ops.softmax(y, 0) * ops.exp(y)) end, x)
    end
    t.fails("check_grad: the gradient says", ms.check_grad, function(y) return ops.sum(wrong(y)) end, x)
  end
end)

t.test("operators are fields of ms, too", function()
  t.near(ms.grad(ms.tanh)(2.0), 0.070650824853165, 1e-6)
  t.fails("ms: there is no name 'no_such_operator'", function() return ms.no_such_operator end)
end)

t.test("an error of a transform's arguments names the user's line", function()
  t.fails("grad_test.lua:", function() return (ms.grad(3)) end)
  t.fails("grad_test.lua:", function() return (ms.value_and_grad("f")) end)
  t.fails("grad_test.lua:", function() return (ms.grad(function(x) return x end, 3)(1.0)) end)
  t.fails("grad_test.lua:", function() return (ms.grad(function(x) return x end)(1)) end)
end)

t.test("memory returns after an error in the middle", function()
  local x = ops.ones({ 1000 })
  local function f(y)
    for _ = 1, 50 do y = ops.tanh(y) end
    error("stopped here")
  end
  pcall(ms.grad(f), x)
  local before = live_bytes()
  for _ = 1, 10 do t.fails("stopped here", ms.grad(f), x) end
  t.equal(live_bytes(), before)
end)

t.test("plain calls cost the same after a gradient", function()
  local a, b = ops.ones({ 4 }), ops.ones({ 4 })
  local function best()
    local least = math.huge
    for _ = 1, 30 do
      local start = ms.clock()
      for _ = 1, 2000 do local _ = a + b end
      least = math.min(least, ms.clock() - start)
    end
    return least
  end
  local before = best()
  ms.grad(function(x) return ops.sum(x * x) end)(a)
  -- What else the machine does may make some of them slow, but not all.
  local after = best()
  for _ = 1, 20 do
    if after > before * 1.5 then after = math.min(after, best()) end
  end
  if after > before * 1.5 then error(("%.0f ns before, %.0f ns after"):format(before / 2000, after / 2000)) end
end)

t.test("nothing of one call is left for the next", function()
  local gradient = ms.grad(function(x, flag)
    if flag then error("half way") end
    return x * x
  end)
  t.equal(gradient(2.0, false), 4.0)
  t.fails("half way", gradient, 2.0, true)
  t.equal(gradient(3.0, false), 6.0)
end)

t.test("an output that is no scalar is an error that names the line and the remedy", function()
  local line
  local message = t.fails({ "scalar", "(2,)", "sum" }, function()
    line = here(1)
    local slope = ms.grad(function(x) return x * x end)(T { 1.0, 2.0 })
    return slope
  end)
  t.equal(message:find(line, 1, true) ~= nil, true)
  t.fails("string", ms.grad(function() return "text" end), 1.0)
  t.fails("nil", ms.grad(function() end), 1.0)
end)

t.test("an integer input is an error", function()
  t.fails({ "Int64", "float" }, ms.grad(function(x) return ops.sum(x) end), T { 1, 2 })
  t.fails({ "argument 0", "text" }, ms.grad(function(x) return x and 1.0 end), "text")
end)

t.test("positions that do not exist are errors", function()
  t.fails({ "2", "1" }, ms.grad(square, 2), 1.0)
  t.fails("-1", function() return ms.grad(square, -1)(1.0) end)
  t.fails("0.5", function() return ms.grad(square, 0.5)(1.0) end)
  t.fails("function", function() return ms.grad(42)(1.0) end)
  t.fails({ "grad_positon", "grad_position" }, function() return ms.grad(square, { grad_positon = 0 })(1.0) end)
end)

t.test("an error inside carries the user's line", function()
  local function f(x)
    local y = x * 2
    return ops.matmul(y, T { 1.0, 2.0, 3.0 })
  end
  local line = here(-2)
  local message = t.fails("matmul", ms.grad(f), T { 1.0, 2.0 })
  t.equal(message:find(line, 1, true) ~= nil, true)
end)

t.test("a gradient through an opaque function is an error that names the line and the remedy", function()
  local line
  local message = t.fails({ "no gradient flows", "ms.custom_vjp", "ms.stop_gradient" }, function()
    line = here(2)
    local slope = ms.grad(function(x)
      return x * os.difftime(x, 0)
    end)(3.0)
    return slope
  end)
  t.equal(message:find(line, 1, true) ~= nil, true)
end)

t.test("an in-place write over a value that the gradient needs is an error", function()
  local w = ms.Parameter(T { 2.0, 3.0 }, "w")
  local function f(x)
    local y = w * x
    w:assign(T { 0.0, 0.0 })
    return ops.sum(y)
  end
  t.fails("in place", ms.grad(f), T { 1.0, 1.0 })
end)

t.test("index assignment is seen by the gradient, or refused with the remedy", function()
  local function f(x)
    local y = x * 2
    y[0] = x[1]
    return ops.sum(y * y)
  end
  local known, slope = pcall(ms.grad(f), T { 3.0, 4.0 })
  if known then
    -- y = (b, 2b): f = 5 b^2
    t.equal(slope, T { 0.0, 40.0 })
  else
    t.fails({ "in place", "ops.index_put" }, ms.grad(f), T { 3.0, 4.0 })
  end
end)

t.test("functions on one line have gradients of their own", function()
  local a, b = ms.grad(function(x) return x * x end)(3.0), ms.grad(function(x) return x * x * x end)(3.0)
  t.equal(a, 6.0)
  t.equal(b, 27.0)
  local list = { function(x) return 2 * x end, function(x) return 3 * x end, function(x) return x / 4 end }
  t.equal({ ms.grad(list[1])(1.0), ms.grad(list[2])(1.0), ms.grad(list[3])(1.0) }, { 2.0, 3.0, 0.25 })
end)

t.test("functions of different texts with one name have gradients of their own", function()
  local slopes = {}
  for i = 1, 5 do slopes[i] = load("return function(x) return x * " .. i .. " end", "=made")() end
  for i = 1, 5 do t.equal(ms.grad(slopes[i])(1.0), i + 0.0) end
  local cube, square_of = load("local x = ... return x * x * x", "=main"), load("local x = ... return x * x", "=main")
  t.equal({ ms.grad(cube)(2.0), ms.grad(square_of)(2.0) }, { 12.0, 4.0 })
end)

t.test("operators over lists of tensors have second derivatives", function()
  local x = ms.tensor(1.5, ms.float64)
  for _, f in ipairs {
    function(y) return ops.sum(ops.stack({ y }) ^ 3) end,
    function(y) return ops.sum(ops.concat({ ops.reshape(y, { 1 }), ops.reshape(y * y, { 1 }) }, 0) ^ 2) end,
    function(y) local list = { y, y * 2 } return ops.sum(ops.stack(list, 0) * ops.stack(list, 0) * y) end,
  } do
    local first, second = ms.grad(f), ms.grad(ms.grad(f))
    t.near(second(x), (first(x + 1e-4) - first(x - 1e-4)) / 2e-4, 1e-6)
    t.near(ms.grad(second)(x), (second(x + 1e-4) - second(x - 1e-4)) / 2e-4, 1e-5)
  end
end)

t.test("a function without a gradient is named, with the reason", function()
  t.fails({ "os.difftime", "not written in Lua" }, ms.grad(function(x) return os.difftime(x, 0) end), 3.0)
end)

t.test("varargs taken apart keep their second derivatives", function()
  local function f(...)
    local q, r = ...
    return q * q * r * r
  end
  t.equal(ms.grad(ms.grad(f, 0), 0)(2.0, 3.0), 18.0)
  t.equal(ms.grad(ms.grad(f, 0), 1)(2.0, 3.0), 24.0)
end)

t.test("numbers in a list of tensors have gradients, wherever they stand", function()
  local y = ms.tensor(3.0)
  local function first(v) return ops.sum(ops.stack({ 1.0, v * v })) end
  t.equal(ms.grad(first)(y):item(), 6.0)
  t.equal(ms.grad(ms.grad(first))(y):item(), 2.0)
  local function mixed(v, n) return ops.sum(ops.stack({ n, v * v, n * n })) end
  local gradients = ms.grad(mixed, { 0, 1 })(y, 2.0)
  t.equal(gradients[1]:item(), 6.0)
  t.equal(gradients[2], 5.0)
  t.equal(ms.grad(function(n) return ops.sum(ops.stack({ n, n * n })) end)(3.0), 7.0)
end)

t.finish()
