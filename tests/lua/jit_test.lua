-- Compiled functions: whatever they depend on may change between two calls, and they follow.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local nn, ops = ms.nn, ms.ops
local test, equal, near, fails = t.test, t.equal, t.near, t.fails
local function vector(...) return ms.tensor({ ... }, ms.float32) end

-- That the last calls went without Lua.
local function compiled(f, at_least)
  local report = ms.jit_report(f)
  if report.compiled_calls < (at_least or 1) then error("not compiled: " .. tostring(report), 2) end
end

local function printed(f)
  local lines, plain = {}, print
  _G.print = function(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = tostring(parts[i]) end
    lines[#lines + 1] = table.concat(parts, " ")
  end
  local ok, message = pcall(f)
  _G.print = plain
  if not ok then error(message, 2) end
  return lines
end

test("a compiled function gives what the function gives", function()
  local f = ms.jit(function(x, y) return x * 2 + y, ops.sum(x) end)
  for i = 1, 4 do
    local a, b = f(vector(1, 2 * i), vector(3, 4))
    equal(a, vector(5, 4 * i + 4))
    equal(b:item(), 1.0 + 2 * i)
  end
  compiled(f, 3)
end)

test("what is divided into one part is compiled with the rest", function()
  local f = ms.jit(function(x) return ops.unbind(x) * 2 + 1 end)
  for i = 1, 4 do equal(f(ops.full({ 1, 2 }, i * 1.0)), vector(2 * i + 1, 2 * i + 1)) end
  equal(ms.jit_report(f).graphs, 1)
  equal(ms.jit_report(f).graph_operators, 3)
end)

test("other types, shapes and counts of arguments", function()
  local f = ms.jit(function(x, ...) return x + 1, select("#", ...) end)
  for _ = 1, 3 do
    equal({ f(vector(1, 2)) }, { vector(2, 3), 0 })
    equal({ f(vector(1, 2, 3)) }, { vector(2, 3, 4), 0 })
    equal({ f(ms.tensor({ 1, 2 }, ms.int32), nil) }, { ms.tensor({ 2, 3 }, ms.int32), 1 })
    equal({ f(1, 2, 3) }, { 2, 2 })
    equal({ f(1.5) }, { 2.5, 0 })
  end
  compiled(f, 8)
end)

test("a number that is decided upon is followed", function()
  local f = ms.jit(function(x, n)
    if n > 2 then return x * n end
    return x - n
  end)
  for n = 0, 40 do equal(f(vector(1, 2), n), n > 2 and vector(n, 2 * n) or vector(1 - n, 2 - n)) end
  compiled(f, 30)
end)

test("an upvalue that changes is followed", function()
  local factor = 2
  local f = ms.jit(function(x) return x * factor end)
  for i = 1, 20 do
    factor = i
    equal(f(vector(1, 2)), vector(i, 2 * i))
  end
  factor = vector(1, 10)
  equal(f(vector(1, 2)), vector(1, 20))
  factor = 0.5
  equal(f(vector(1, 2)), vector(0.5, 1))
  compiled(f, 10)
end)

test("a global that changes is followed", function()
  _G.scale_of_test = 3
  local f = ms.jit(function(x) return x * _G.scale_of_test end)
  equal(f(vector(1)), vector(3))
  equal(f(vector(1)), vector(3))
  _G.scale_of_test = 4
  equal(f(vector(1)), vector(4))
  _G.scale_of_test = vector(7)
  equal(f(vector(1)), vector(7))
  _G.scale_of_test = nil
  fails("got nil", f, vector(1))
  _G.scale_of_test = 5
  equal(f(vector(1)), vector(5))
  _G.scale_of_test = nil
end)

test("a global function that is replaced is followed", function()
  _G.helper_of_test = function(x) return x + 1 end
  local f = ms.jit(function(x) return _G.helper_of_test(x) * 2 end)
  equal(f(vector(1)), vector(4))
  equal(f(vector(1)), vector(4))
  _G.helper_of_test = function(x) return x + 2 end
  equal(f(vector(1)), vector(6))
  _G.helper_of_test = nil
end)

test("fields of parameters are written", function()
  local f = ms.jit(function(x, name)
    local p = ms.Parameter(x)
    p.name = name
    p.requires_grad = false
    return p.name, p.requires_grad, p * 2
  end)
  for i = 1, 5 do equal({ f(vector(1), "p" .. i) }, { "p" .. i, false, vector(2) }) end
  local x = vector(1)
  fails("the field 'colour' of a tensor cannot be set", ms.jit(function() x.colour = 1 end))
end)

test("fields of tables are followed", function()
  local settings = { scale = 2, inner = { shift = 1 } }
  local f = ms.jit(function(x) return x * settings.scale + settings.inner.shift end)
  equal(f(vector(1)), vector(3))
  equal(f(vector(1)), vector(3))
  settings.scale = 3
  equal(f(vector(1)), vector(4))
  settings.inner.shift = 10
  equal(f(vector(1)), vector(13))
  settings.inner = { shift = -1 }
  equal(f(vector(1)), vector(2))
  settings.inner = setmetatable({}, { __index = function() return 100 end })
  equal(f(vector(1)), vector(103))
  settings = { scale = 1, inner = { shift = 0 } }
  equal(f(vector(5)), vector(5))
end)

test("length, order and content of a list are followed", function()
  local list = { vector(1), vector(2) }
  local f = ms.jit(function()
    local sum = vector(0)
    for i = 1, #list do sum = sum + list[i] * i end
    for _, v in ipairs(list) do sum = sum + v end
    for _, v in pairs(list) do sum = sum + v end
    return sum
  end)
  equal(f(), vector(11))
  equal(f(), vector(11))
  list[3] = vector(3)
  equal(f(), vector(26))
  list[1] = vector(10)
  equal(f(), vector(53))
  list[3], list[2] = nil, nil
  equal(f(), vector(30))
  list.extra = vector(5)
  equal(f(), vector(35))
end)

test("a metatable that changes is followed", function()
  local object = setmetatable({}, { __index = { value = 2 } })
  local f = ms.jit(function(x) return x * object.value end)
  equal(f(vector(1)), vector(2))
  equal(f(vector(1)), vector(2))
  getmetatable(object).__index.value = 3
  equal(f(vector(1)), vector(3))
  setmetatable(object, { __index = { value = 4 } })
  equal(f(vector(1)), vector(4))
  object.value = 5
  equal(f(vector(1)), vector(5))
end)

test("attributes, parameters and methods of a cell are followed", function()
  local Net = nn.Cell:extend("Net")
  function Net:init()
    self.dense = nn.Dense(2, 1, { has_bias = false })
    self.scale = 1.0
  end
  function Net:construct(x) return self.dense(x) * self.scale end
  local net = Net()
  net.dense.weight:set_data(ms.tensor { { 1.0, 2.0 } })
  local f = ms.jit(function(x) return net(x) end)
  local x = ms.tensor { { 1.0, 1.0 } }
  for _ = 1, 3 do equal(f(x):item(), 3.0) end
  net.scale = 2.0
  equal(f(x):item(), 6.0)
  net.dense.weight:set_data(ms.tensor { { 1.0, 4.0 } })
  equal(f(x):item(), 10.0)
  net.dense.weight = ms.Parameter(ms.tensor { { 0.0, 1.0 } }, "other")
  equal(f(x):item(), 2.0)
  net.dense = nn.Dense(2, 1, { has_bias = false })
  net.dense.weight:set_data(ms.tensor { { 5.0, 5.0 } })
  equal(f(x):item(), 20.0)
  function Net:construct(y) return self.dense(y) end
  equal(f(x):item(), 10.0)
  compiled(f, 2)
end)

test("training and evaluation are told apart", function()
  local net = nn.SequentialCell { nn.Dense(4, 4), nn.Dropout { p = 0.5 } }
  local f = ms.jit(function(x) return net(x) end)
  local x = ops.ones { 2, 4 }
  net:set_train(false)
  local expected = net(x)
  for _ = 1, 3 do equal(f(x), expected) end
  net:set_train(true)
  ms.set_seed(3)
  local random = net(x)
  ms.set_seed(3)
  equal(f(x), random)
  net:set_train(false)
  equal(f(x), expected)
end)

test("random numbers are drawn anew, in eager mode's order", function()
  local function draw(x)
    local a = ops.randn { 2 }
    return a + x, ops.uniform { 2 }
  end
  local f = ms.jit(draw)
  local x = vector(0, 0)
  local function series(g)
    ms.set_seed(7)
    local list = {}
    for i = 1, 4 do
      local a, b = g(i == 3 and vector(1, 1, 1):narrow(0, 0, 2) or x)
      list[#list + 1], list[#list + 2] = a, b
    end
    return list
  end
  local expected = series(draw)
  equal(series(f), expected)
  equal(series(f), expected)
  -- In graph mode the calls of f are parts of series, which is compiled.
  if ms.get_context "mode" ~= ms.GRAPH_MODE then compiled(f, 6) end
end)

test("the generator stands where it stood when a call is begun anew", function()
  local limit = 0
  local function draw(x)
    local a = ops.randn { 2 }
    if limit > 0 then a = a * limit end
    return a + x
  end
  local f = ms.jit(draw)
  local function series(g)
    ms.set_seed(11)
    local list = {}
    for i = 1, 6 do
      limit = i % 3
      list[i] = g(vector(0, 0))
    end
    return list
  end
  local expected = series(draw)
  equal(series(f), expected)
end)

test("prints come at every call, in their order", function()
  local function f(x)
    print("first", x:sum():item())
    local y = x * 2
    print("second", y)
    if y:sum():item() > 5 then print("large") else print("small") end
    return y
  end
  local g = ms.jit(f)
  for _ = 1, 3 do
    for _, n in ipairs { 1, 5, 2, 9, 3 } do
      local results = {}
      local expected = printed(function() results[1] = f(vector(n)) end)
      equal(printed(function() results[2] = g(vector(n)) end), expected)
      equal(results[2], results[1])
    end
  end
end)

test("metamethods that print calls may change what is read next", function()
  local seen = { n = 0 }
  local object = setmetatable({}, { __tostring = function()
    seen.n = seen.n + 1
    return "object " .. seen.n
  end })
  local f = ms.jit(function(x)
    local before = seen.n
    print(object)
    local text = tostring(object)
    return x + before * 10 + seen.n, text
  end)
  for i = 1, 5 do
    local results
    equal(printed(function() results = { f(vector(0)) } end), { "object " .. 2 * i - 1 })
    equal(results, { vector((2 * i - 2) * 10 + 2 * i), "object " .. 2 * i })
  end
end)

test("effects before a decision are not done twice", function()
  local log = {}
  local f = ms.jit(function(x)
    log[#log + 1] = "begin"
    local n = x:sum():item()
    _G.counter_of_test = (_G.counter_of_test or 0) + 1
    if n > 10 then log[#log + 1] = "big" elseif n > 5 then log[#log + 1] = "middle" end
    log[#log + 1] = "end"
    return x + _G.counter_of_test
  end)
  local expected = {}
  for i, n in ipairs { 1, 2, 7, 20, 3, 8, 30, 1, 6, 11 } do
    expected[#expected + 1] = "begin"
    if n > 10 then expected[#expected + 1] = "big" elseif n > 5 then expected[#expected + 1] = "middle" end
    expected[#expected + 1] = "end"
    equal(f(vector(n)), vector(n + i))
    equal(log, expected)
  end
  _G.counter_of_test = nil
end)

test("a table that is stored and then changed is one table", function()
  local kept = {}
  local f = ms.jit(function(x, more)
    local entry = { value = x, tags = { "a" } }
    kept[#kept + 1] = entry
    entry.value = entry.value * 2
    if x:sum():item() > 5 then entry.big = true end
    entry.tags[2] = more
    return entry
  end)
  for i, n in ipairs { 1, 2, 9, 10, 3, 12 } do
    local entry = f(vector(n), n)
    assert(rawequal(kept[i], entry))
    equal(entry.value, vector(2 * n))
    equal(entry.tags, { "a", n })
    equal(entry.big, n > 5 or nil)
  end
end)

test("results are new at each call", function()
  local f = ms.jit(function(x) return { x + 1, sub = { x } } end)
  local a, b, c = f(vector(1)), f(vector(1)), f(vector(2))
  assert(not rawequal(b, c) and not rawequal(b.sub, c.sub))
  b[1]:add_(1)
  equal({ a[1], b[1], c[1] }, { vector(2), vector(3), vector(3) })
  equal(f(vector(1))[1], vector(2))
end)

test("a tensor that is handed on is the very same one", function()
  local kept = {}
  local f = ms.jit(function(x, y)
    kept.y = y
    return x, { y }
  end)
  for _ = 1, 4 do
    local x, y = vector(1), vector(2)
    local a, list = f(x, y)
    assert(rawequal(a, x) and rawequal(list[1], y) and rawequal(kept.y, y))
  end
end)

test("errors are the function's own, with its line", function()
  local function f(x, y)
    local z = x * 2
    return z + y
  end
  local g = ms.jit(f)
  equal(g(vector(1, 2), vector(1, 2)), vector(3, 6))
  equal(g(vector(1, 2), vector(1, 2)), vector(3, 6))
  local _, expected = pcall(f, vector(1, 2), vector(1, 2, 3))
  local _, found = pcall(g, vector(1, 2), vector(1, 2, 3))
  equal(found, expected)
  _, expected = pcall(f, vector(1, 2), nil)
  _, found = pcall(g, vector(1, 2), nil)
  equal(found, expected)
  equal(g(vector(1, 2), vector(1, 2)), vector(3, 6))
end)

test("an error that depends on elements comes when they are so", function()
  local function f(x, i)
    print("before")
    local y = x:gather(i, 0)
    print("after")
    return y
  end
  local g = ms.jit(f)
  local x = vector(1, 2, 3)
  for _ = 1, 3 do
    for _, at in ipairs { 0, 2, 5, 1 } do
      local ok, message
      local expected_ok, expected
      local lines = printed(function() expected_ok, expected = pcall(f, x, ms.tensor({ at }, ms.int64)) end)
      equal(printed(function() ok, message = pcall(g, x, ms.tensor({ at }, ms.int64)) end), lines)
      equal(ok, expected_ok)
      if not ok then
        equal(tostring(message):match(":%d+: (.*)"), tostring(expected):match(":%d+: (.*)"))
      else
        equal(message, expected)
      end
    end
  end
end)

test("loops whose end depends on elements", function()
  local function f(x)
    local n = 0
    while x:sum():item() < 100 do
      x = x * 2
      n = n + 1
    end
    return x, n
  end
  local g = ms.jit(f)
  for _ = 1, 2 do
    for _, start in ipairs { 60, 1, 30, 200, 3, 12 } do equal({ g(vector(start)) }, { f(vector(start)) }) end
  end
end)

test("tensors written in place are written at each call", function()
  local total = vector(0, 0)
  local f = ms.jit(function(x)
    total:add_(x)
    local y = x + 0
    y[0] = 7
    y:mul_(2)
    return y, total
  end)
  for i = 1, 5 do
    local y, sum = f(vector(1, i))
    equal(y, vector(14, 2 * i))
    assert(rawequal(sum, total))
  end
  equal(total, vector(5, 15))
end)

test("two names of one tensor are told from two tensors", function()
  local f = ms.jit(function(x, y)
    x:add_(1)
    return x + y
  end)
  for _ = 1, 3 do
    equal(f(vector(1), vector(10)), vector(12))
    local x = vector(1)
    equal(f(x, x), vector(4))
  end
end)

test("gradients inside and outside", function()
  local function loss(x, w) return ops.sum(ops.tanh(x * w)) end
  local inside = ms.jit(function(x, w) return ms.grad(loss, { 0, 1 })(x, w) end)
  local outside = ms.jit(ms.value_and_grad(loss, { 0, 1 }))
  local through = ms.grad(ms.jit(loss), { 0, 1 })
  for i = 1, 4 do
    local x, w = vector(0.5, i), vector(0.1, 0.2)
    local expected = ms.grad(loss, { 0, 1 })(x, w)
    near(inside(x, w), expected)
    near(select(2, outside(x, w)), expected)
    near(through(x, w), expected)
  end
  compiled(inside, 3)
  compiled(outside, 3)
end)

test("second derivatives and gradients of numbers", function()
  local function f(x) return x ^ 3 end
  local second = ms.jit(ms.grad(ms.grad(f)))
  for i = 1, 5 do near(second(i * 0.5), 3.0 * i, 1e-9) end
  local function first(y) return ops.sum(ms.grad(function(z) return ops.sum(f(z)) end)(y)) end
  local of_tensor = ms.jit(function(x) return ms.grad(first)(x) end)
  for i = 1, 3 do equal(of_tensor(vector(i, 2)), vector(6 * i, 12)) end
  compiled(of_tensor, 2)
end)

test("compiled functions call each other", function()
  local double = ms.jit(function(x) return x * 2 end)
  local f = ms.jit(function(x) return double(double(x)) + 1 end)
  for i = 1, 3 do equal(f(vector(i)), vector(4 * i + 1)) end
  compiled(f, 2)
end)

test("recursion", function()
  local f
  f = ms.jit(function(x, n)
    if n == 0 then return x end
    return f(x * 2, n - 1)
  end)
  for i = 1, 6 do equal(f(vector(1), i), vector(2 ^ i)) end
end)

test("closures and their variables", function()
  local function f(x, n)
    local total = x
    local function add(y) total = total + y end
    local list = {}
    for i = 1, n do list[i] = function() return i end end
    for i = 1, n do add(x * list[i]()) end
    return total
  end
  local g = ms.jit(f)
  for n = 0, 4 do
    for _ = 1, 2 do equal(g(vector(1, 2), n), f(vector(1, 2), n)) end
  end
  compiled(g)
end)

test("variables of the outside are written", function()
  local calls, last = 0, nil
  local f = ms.jit(function(x)
    calls = calls + 1
    last = x * calls
    return last
  end)
  for i = 1, 6 do
    equal(f(vector(2)), vector(2 * i))
    equal(calls, i)
    equal(last, vector(2 * i))
  end
  compiled(f, 3)
end)

test("pcall inside", function()
  local function f(x, bad)
    local ok, message = pcall(function()
      if bad then error("refused") end
      return x * 2
    end)
    if ok then return message end
    return tostring(message):match("refused"), ok
  end
  local g = ms.jit(f)
  for i = 1, 3 do
    equal(g(vector(i)), vector(2 * i))
    equal({ g(vector(i), true) }, { "refused", false })
  end
end)

test("a step of training", function()
  local function build(optimizer)
    ms.set_seed(5)
    local net = nn.SequentialCell { nn.Dense(3, 8), nn.ReLU(), nn.Dense(8, 2) }
    local opt = optimizer(net:trainable_params())
    local loss = nn.MSELoss()
    local function forward(x, y) return loss(net(x), y) end
    local value_and_grad = ms.value_and_grad(forward, nil, opt.parameters)
    local function step(x, y)
      local value, grads = value_and_grad(x, y)
      opt(grads)
      return value
    end
    return net, step
  end
  local optimizers = {
    function(p) return nn.SGD(p, { learning_rate = 0.1 }) end,
    function(p) return nn.Momentum(p, 0.1, 0.9) end,
    function(p) return nn.Adam(p, { learning_rate = 0.01 }) end,
    function(p) return nn.AdamWeightDecay(p, { learning_rate = 0.01 }) end,
    function(p) return nn.SGD(p, { learning_rate = { 0.1, 0.05, 0.02 } }) end,
  }
  ms.set_seed(9)
  local x, y = ops.randn { 4, 3 }, ops.randn { 4, 2 }
  for k, optimizer in ipairs(optimizers) do
    local eager_net, eager = build(optimizer)
    local net, step = build(optimizer)
    step = ms.jit(step)
    for i = 1, 8 do
      local expected, found = eager(x * i, y), step(x * i, y)
      near(found, expected, 1e-5)
    end
    local expected = eager_net:trainable_params()
    for i, p in ipairs(net:trainable_params()) do near(p, expected[i], 1e-5) end
    local report = ms.jit_report(step)
    if report.eager or report.compiled_calls < 2 then error(("optimizer %d: %s"):format(k, report)) end
  end
end)

test("graph mode compiles cells and gradients, and follows its switch", function()
  local net = nn.Dense(2, 1)
  local x = ms.tensor { { 1.0, 2.0 } }
  local f = ms.value_and_grad(function(y) return ops.sum(net(y)) end)
  local value, gradient = f(x)
  ms.set_context { mode = ms.GRAPH_MODE }
  equal(ms.get_context "mode", ms.GRAPH_MODE)
  local result = net(x)
  for _ = 1, 4 do
    equal(net(x), result)
    equal({ f(x) }, { value, gradient })
    near(ms.vmap(function(y) return y * 2 end)(x), x * 2)
  end
  ms.set_context { mode = ms.PYNATIVE_MODE }
  equal(ms.get_context "mode", ms.PYNATIVE_MODE)
  equal({ f(x) }, { value, gradient })
  equal(net(x), result)
end)

test("weights have their gradients from the first call on in graph mode", function()
  ms.set_context { mode = ms.GRAPH_MODE }
  local net = nn.Dense(3, 1)
  local gradient = ms.value_and_grad(function(x) return ops.sum(net(x)) end, nil, net:trainable_params())
  for i = 1, 4 do
    local _, grads = gradient(ops.ones { 1, 3 } * i)
    equal(grads[1], ops.ones { 1, 3 } * i)
  end
  local f = ms.jit(function(y) return y * y end)
  for i = 1, 3 do equal(ms.grad(function(y) return ops.sum(f(f(y))) end)(vector(i)), vector(4 * i ^ 3)) end
  ms.set_context { mode = ms.PYNATIVE_MODE }
end)

test("a cell can be compiled by itself", function()
  local net = nn.Dense(2, 1)
  local x = ms.tensor { { 1.0, 2.0 } }
  local expected = net(x)
  assert(rawequal(net:compile(), net))
  for _ = 1, 3 do near(net(x), expected) end
end)

test("compiled functions and what they refer to are collected", function()
  local weak = setmetatable({}, { __mode = "k" })
  local function use()
    local net = nn.Dense(4, 4)
    local f
    f = ms.jit(function(x) return net(x), f end)
    for _ = 1, 4 do f(ops.ones { 1, 4 }) end
    weak[net], weak[f] = true, true
    ms.set_context { mode = ms.GRAPH_MODE }
    local other = nn.Dense(4, 4)
    for _ = 1, 4 do other(ops.ones { 1, 4 }) end
    weak[other] = true
    ms.set_context { mode = ms.PYNATIVE_MODE }
  end
  use()
  for _ = 1, 3 do collectgarbage() end
  equal(next(weak), nil)
end)

test("what cannot be compiled runs as before and is named", function()
  local f = ms.jit(function(x)
    local co = coroutine.wrap(function(y) coroutine.yield(y * 2) end)
    return co(x)
  end)
  for i = 1, 3 do equal(f(vector(i)), vector(2 * i)) end
  local report = ms.jit_report(f)
  assert(report.eager:find("coroutine.wrap", 1, true), report.eager)
  assert(report.eager:find("jit_test.lua:%d+"), report.eager)
  assert(tostring(report):find("left to Lua", 1, true))
end)

test("a call within a coroutine may yield", function()
  local f = ms.jit(function(x)
    coroutine.yield(x)
    return x + 1
  end)
  local co = coroutine.wrap(function() return f(vector(1)) end)
  equal(co(), vector(1))
  equal(co(), vector(2))
end)

test("fullgraph makes it an error", function()
  local f = ms.jit(function(x) return debug.getinfo(1, "l") and x end, { fullgraph = true })
  fails({ "cannot be compiled as a whole", "debug.getinfo" }, f, vector(1))
  -- What is done by Lua at every call is in no graph either.
  for _, outside in ipairs { function() io.write("") end, function() return os.time() end } do
    local h = ms.jit(function(x)
      outside()
      return x + 1
    end, { fullgraph = true })
    for _ = 1, 2 do fails({ "cannot be compiled as a whole", "which no graph holds" }, h, vector(1)) end
  end
  local g = ms.jit(function(x) return x + 1 end, { fullgraph = true })
  equal(g(vector(1)), vector(2))
end)

test("bad options are refused", function()
  fails("there is no option 'speed'", ms.jit, function() end, { speed = 11 })
  fails("a function or another callable is expected", ms.jit, 5)
  fails("fullgraph must be true or false", ms.jit, function() end, { fullgraph = 1 })
end)

test("the recorded graph can be shown", function()
  local f = ms.jit(function(x) return ops.tanh(x) * 2 end)
  f(vector(1))
  assert(f:ir():find("tanh", 1, true))
  assert(ms.ir(f):find("tanh", 1, true))
end)

-- f:ir() verifies the graph before it is printed.
test("what a call does is a graph of the IR: operators, guards, effects and ways", function()
  local settings, log = { scale = 2, list = { 1, 2 } }, {}
  local g = ms.jit(function(x, mode)
    if mode == "plain" then return x end
    local parts = { ops.split(x * settings.scale, 1) }
    log[1] = { parts[1], n = #settings.list }
    log.count = (log.count or 0) + 1
    for key, value in pairs(settings) do
      if type(value) == "number" then x = x + value * #key end
    end
    if (x:sum() > 0) and x:sum():item() > 1 then return parts[1], { x } end
    return pcall(error, "an error that is met")
  end)
  for k = -1, 10 do g(ms.tensor { 1.0 * k % 4, 2.0, 3.0 * k % 4 }, ({ "plain", "other", "another" })[k % 3 + 1]) end
  local text = g:ir()
  for _, word in ipairs { "graph call()", "ops.mul(%", "expect(%", "raw_index(", "raw_set(", "make_table(", "ways({@", "jit_test.lua:",
    "argument(1)", "next_key(", "element(%", "return" } do
    if not text:find(word, 1, true) then error(word .. " is not in:\n" .. text) end
  end
end)
t.finish()
