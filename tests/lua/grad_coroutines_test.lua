-- Coroutines in differentiated functions: gradients flow through what resume and yield pass, also when the coroutine
-- does not run to its end. The value must be that of a plain call, slope and curvature those of differences.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local function check(name, f, at)
  t.test(name, function()
    local step = 1e-5
    local value, slope = ms.value_and_grad(f)(at)
    t.near(value, f(at), 1e-12)
    t.near(slope, (f(at + step) - f(at - step)) / (2 * step), 1e-6)
    local first = ms.grad(f)
    t.near(ms.grad(first)(at), (first(at + step) - first(at - step)) / (2 * step), 1e-5)
  end)
end

check("gen", function(x)
  local s = 0.0
  for v in coroutine.wrap(function() for i = 1, 4 do coroutine.yield(x ^ i) end end) do s = s + v * v end
  return s
end, 1.3)
check("two-way", function(x)
  local co = coroutine.create(function(a, b)
    local c = coroutine.yield(a * b)
    local d, e = coroutine.yield(c * a, c + 1)
    return d * e * a
  end)
  local _, p = coroutine.resume(co, x, x + 1)
  local _, q, r = coroutine.resume(co, p * 2)
  local _, u = coroutine.resume(co, q * x, r)
  return u + p
end, 0.7)
check("unfinished", function(x)
  local next = coroutine.wrap(function()
    local y = x
    while true do
      coroutine.yield(y)
      y = y * x + 1
    end
  end)
  local a, b, c = next(), next(), next()
  return a * b + c * c
end, 0.9)
check("accumulator", function(x)
  local add = coroutine.wrap(function(v)
    local s = 0.0
    while true do
      s = s + v * x
      v = coroutine.yield(s)
    end
  end)
  local sum = 0.0
  for i = 1, 5 do sum = add(x * i + sum) end
  return sum
end, 0.6)
check("yields within calls", function(x)
  local function tree(depth)
    if depth == 0 then
      coroutine.yield(x)
    else
      tree(depth - 1)
      coroutine.yield(x * depth)
      tree(depth - 1)
    end
  end
  local s, k = 0.0, 1
  for v in coroutine.wrap(function() tree(3) end) do
    s = s + math.sin(v * k)
    k = k + 1
  end
  return s
end, 0.4)
check("a coroutine in a coroutine", function(x)
  local function gen(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(x * i) end end) end
  local outer = coroutine.wrap(function()
    for v in gen(3) do
      for w in gen(2) do coroutine.yield(v * w) end
    end
  end)
  local s = 0.0
  for v in outer do s = s * x + v end
  return s
end, 0.8)
check("an error that ends it", function(x)
  local co = coroutine.create(function(a)
    local b = coroutine.yield(a * a)
    error { v = b * a }
  end)
  local _, y = coroutine.resume(co, x)
  local ok, e = coroutine.resume(co, y * 3)
  return e.v + y + (ok and 1 or 0)
end, 1.1)
check("yields within pcall", function(x)
  local co = coroutine.wrap(function(a)
    local _, e = pcall(function()
      local b = coroutine.yield(a * 2)
      error { b * a }
    end)
    local _, c = pcall(function() return coroutine.yield(e[1]) end)
    return c * a
  end)
  local p = co(x)
  local q = co(p * x)
  local r = co(q * q)
  return r + q * p
end, 0.9)
check("left within pcall", function(x)
  local co = coroutine.wrap(function(a)
    pcall(function()
      local y = a * 3
      local b = coroutine.yield(y * y)
      error { b * a }
    end)
  end)
  return co(x) * x
end, 0.9)
check("tables", function(x)
  local store = { v = x, n = 0.0 }
  local co = coroutine.wrap(function()
    while true do
      store.n = store.n + store.v ^ 2
      coroutine.yield()
      store.v = store.v * x
    end
  end)
  for _ = 1, 4 do co() end
  return store.n
end, 0.9)
check("upvalues", function(x)
  local s = x
  local co = coroutine.create(function()
    for i = 1, 3 do
      s = s * x + i
      coroutine.yield(i)
    end
    s = s + x
  end)
  while coroutine.resume(co) and coroutine.status(co) ~= "dead" do s = math.sin(s) end
  return s
end, 0.9)
check("yields within metamethods", function(x)
  local mt = {
    __add = function(a, b) return coroutine.yield(a.v * b.v) + 1 end,
    __index = function()
      local p, q = coroutine.yield(x, x * x)
      return p * q
    end,
  }
  local co = coroutine.wrap(function()
    local a, b = setmetatable({ v = x }, mt), setmetatable({ v = x * 2 }, mt)
    local r = a + b
    return r * a.missing
  end)
  local p = co()
  local q, r = co(p * 3)
  return co(q * r, r) + q
end, 0.9)
check("left within a metamethod", function(x)
  local mt = {
    __index = function()
      local p, q = coroutine.yield(x, x * x)
      return p * q
    end,
  }
  local co = coroutine.wrap(function() return setmetatable({}, mt).missing end)
  local q, r = co()
  return q + r * r
end, 0.9)
check("tensors", function(x)
  local ones = ops.ones({ 3 }, ms.float64)
  local s = 0.0
  for y in coroutine.wrap(function()
    local y = ones * x
    for _ = 1, 3 do
      coroutine.yield(y)
      y = y:tanh() + x
    end
  end) do s = s + y:sum():item() * x end
  return s
end, 0.5)
check("close", function(x)
  local co = coroutine.create(function(a)
    local y = a * a
    coroutine.yield(y * x)
  end)
  local _, v = coroutine.resume(co, x)
  assert(coroutine.close(co))
  assert(coroutine.status(co) == "dead")
  return v * x
end, 0.5)
check("close closes variables", function(x)
  local log = { 0.0 }
  local co = coroutine.create(function(a)
    local _ <close> = setmetatable({}, {
      __close = function(_, e)
        assert(e == nil)
        log[1] = log[1] + a * a
      end,
    })
    coroutine.yield(a * x)
  end)
  local _, v = coroutine.resume(co, x)
  assert(coroutine.close(co))
  return v * x + log[1] * x
end, 0.5)
check("wrong use", function(x)
  local co = coroutine.create(function() return x end)
  local _, a = coroutine.resume(co)
  local ok, e = coroutine.resume(co)
  assert(not ok and e == "cannot resume dead coroutine", e)
  local w = coroutine.wrap(function() error "boom" end)
  ok, e = pcall(w)
  assert(not ok and e:find("boom$"))
  _, e = pcall(function() w() end)
  assert(e:find("^[^:]*:%d+: cannot resume dead coroutine$"), e)
  assert(not pcall(coroutine.create, 3))
  assert(not coroutine.isyieldable())
  local own
  own = coroutine.create(function()
    assert(coroutine.running() == own and coroutine.isyieldable() and coroutine.status(own) == "running")
    assert(not coroutine.resume(own))
    return 2
  end)
  assert(select(2, assert(coroutine.resume(own))) == 2)
  assert(type(own) == "thread" and tostring(own):find "^thread: ", type(own))
  return a * a
end, 0.5)
check("a coroutine gets itself", function(x)
  local co = coroutine.create(function(own, a)
    local b = coroutine.yield(own)
    return a * b
  end)
  local _, own = coroutine.resume(co, co, x)
  local _, v = coroutine.resume(own, x * x)
  return v
end, 0.5)
check("a chain of coroutines", function(x)
  local producer = coroutine.create(function()
    local v = x
    for _ = 1, 4 do
      v = v * 1.1
      coroutine.yield(v)
    end
    return nil
  end)
  local filter = coroutine.create(function()
    while true do
      local _, v = coroutine.resume(producer)
      if v == nil then return nil end
      coroutine.yield(v * v)
    end
  end)
  local s = 0.0
  while true do
    local _, v = coroutine.resume(filter)
    if v == nil then break end
    s = s + v
  end
  return s
end, 0.5)
check("plain values", function(x)
  local s = 0.0
  for i, name in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i, "n" .. i) end end) do
    s = s + x ^ i * #name
  end
  return s
end, 0.5)
check("a derivative within a coroutine", function(x)
  local g = coroutine.wrap(function()
    coroutine.yield(ms.grad(function(y) return y * y * x end)(x))
  end)
  return g() * x
end, 0.5)
check("a coroutine within a derivative", function(x)
  return ms.grad(function(y)
    local s = 0.0
    for v in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(y ^ i * x) end end) do s = s + v * v end
    return s
  end)(x * 2)
end, 0.5)

check("what is opaque passes through", function(x)
  local thread = coroutine.create(string.rep)
  return select("#", coroutine.resume(thread, x, 2)) * x
end, 1.3)
check("a variable that changes later", function(x)
  local v = 0
  local following = coroutine.wrap(function() while true do coroutine.yield(v) end end)
  v = x * 2
  return following() * x
end, 1.3)
check("a coroutine of Lua's own that has nothing to do with it", function(x)
  local gen = load "return coroutine.wrap(function() for i = 1, 10 do coroutine.yield(i * 1.5) end end)"()
  return x * gen() + x * x * gen()
end, 1.3)

local function powers(x)
  local s = 0.0
  for v in coroutine.wrap(function()
    local y = x
    for _ = 1, 4 do
      y = y * x
      coroutine.yield(y)
    end
  end) do s = s + v end
  return s
end

t.test("every transform", function()
  t.near(ms.grad(ms.grad(ms.grad(powers)))(0.5), 6 + 24 * 0.5 + 60 * 0.25)
  local y, d = ms.jvp(powers, 0.5, 1.0)
  t.near(y, powers(0.5))
  t.near(d, 1 + 3 * 0.25 + 4 * 0.125 + 5 * 0.0625)
  t.near(ms.grad(ms.checkpoint(powers))(0.5), d)
  local function neighbours(x)
    local next = coroutine.wrap(function() for i = 0, 2 do coroutine.yield(x[i] * x[(i + 1) % 3]) end end)
    return ops.stack { next(), next(), next() }
  end
  t.near(ms.jacrev(neighbours)(ms.tensor { 1.0, 2.0, 3.0 }):tolist(), { { 2, 1, 0 }, { 0, 3, 2 }, { 3, 0, 1 } })
end)
t.test("a backpropagator runs more than once", function()
  local out, pull = ms.vjp(function(x)
    local next = coroutine.wrap(function()
      local y = x
      while true do
        y = y * x
        coroutine.yield(y)
      end
    end)
    return next() + next()
  end, 2.0)
  t.near(out, 12.0)
  t.near({ pull(1.0), pull(2.0), pull(1.0) }, { 16.0, 32.0, 16.0 })
end)
t.test("many resumptions, and deep ones", function()
  t.near(ms.grad(function(x)
    local s = 0.0
    for v in coroutine.wrap(function() for _ = 1, 20000 do coroutine.yield(x) end end) do s = s + v * v end
    return s
  end)(0.5), 20000.0)
  t.near(ms.grad(function(x)
    local function fall(depth)
      if depth == 0 then
        coroutine.yield(x)
        return x
      end
      return fall(depth - 1) * 1.0
    end
    local next = coroutine.wrap(function() return fall(2000) end)
    return next() * next()
  end)(3.0), 6.0)
end)

t.test("a coroutine that is left over", function()
  local left, fresh
  ms.grad(function(x)
    left = coroutine.create(function() coroutine.yield(x * 2) end)
    fresh = coroutine.create(function(a) return coroutine.yield(a + 1) * 2 end)
    coroutine.resume(left)
    return x
  end)(2.0)
  t.equal({ type(left), coroutine.status(left) }, { "thread", "suspended" })
  local ok, message = coroutine.resume(left)
  t.equal(ok, false)
  t.equal(tostring(message):find("began in another differentiation", 1, true) ~= nil, true)
  t.equal({ coroutine.close(left), coroutine.status(left) }, { true, "dead" })
  t.equal({ coroutine.resume(fresh, 1) }, { true, 2 })
  t.equal({ coroutine.resume(fresh, 4) }, { true, 8 })
  t.equal({ coroutine.resume(fresh) }, { false, "cannot resume dead coroutine" })
end)
t.test("circles through a coroutine are freed", function()
  local function round()
    ms.grad(function(x)
      local kept = {}
      local co = coroutine.create(function(me)
        local big = ops.ones { 1000 }
        kept.me = me
        coroutine.yield(kept)
        return big
      end)
      coroutine.resume(co, co)
      return x * x
    end)(1.0)
  end
  local function live()
    collectgarbage()
    ms.grad(function(x) return x end)(1.0)
    collectgarbage()
    return ms.memory_stats().live_bytes
  end
  round()
  local before = live()
  for _ = 1, 50 do round() end
  t.equal(live() - before < 20 * 4000, true)
end)

-- What has no gradient says so.
local function refuses(name, texts, f)
  t.test(name, function()
    texts[#texts + 1] = "grad_coroutines_test.lua:"
    t.fails(texts, ms.grad(f), 1.3)
  end)
end
local taking = load "return coroutine.wrap(function(v) while true do v = coroutine.yield(v * 2) end end)"()
refuses("a coroutine of Lua's own that computes with it", { "no gradient flows" }, function(x) return taking(x) end)
refuses("to yield out of a differentiated function", { "a differentiated function cannot yield" }, function(x)
  coroutine.yield(x)
  return x
end)
refuses("to yield out of a derivative within a coroutine", { "cannot be left by yield" }, function(x)
  return coroutine.wrap(function()
    return ms.grad(function(y)
      coroutine.yield(y)
      return y * y
    end)(x)
  end)()
end)
local elsewhere = { "coroutine.resume: the coroutine began in another differentiation", "hint: create it in the function" }
refuses("to go on in another differentiation", elsewhere, function(x)
  local next = coroutine.wrap(function()
    coroutine.yield(x)
    coroutine.yield(x * x)
  end)
  local a = next()
  return ms.grad(function(y) return y * next() end)(x) * a
end)
t.test("a coroutine that outlives its differentiation says where it is resumed, and what to do", function()
  local next
  ms.grad(function(x)
    next = coroutine.wrap(function() coroutine.yield(x * x) end)
    return next()
  end)(1.3)
  local texts = { "grad_coroutines_test.lua:", "began in another differentiation", "take its values before ms.grad" }
  t.fails(texts, function() return next() end)
  t.fails(texts, ms.grad(function(x) return x * next() end), 1.3)
end)
t.test("a coroutine that was created outside gives constants, and takes nothing that is differentiated", function()
  local function counter() return coroutine.create(function(v)
    while true do v = coroutine.yield((v or 0.5) * 2) end
  end) end
  for _, begun in ipairs { true, false } do
    local thread = counter()
    if begun then coroutine.resume(thread) end
    t.equal(ms.grad(function(x) return x * select(2, coroutine.resume(thread)) end)(3.0), 1.0)
    t.equal(select(2, coroutine.resume(thread, 4)), 8)
    local text = { "grad_coroutines_test.lua:", "no gradient flows through", "the coroutine was created outside of what is" }
    t.fails(text, ms.grad(function(x) return (select(2, coroutine.resume(thread, x))) end), 3.0)
    local doubling = coroutine.wrap(function(v)
      while true do v = coroutine.yield(v * 2) end
    end)
    if begun then doubling(1) end
    t.fails(text, ms.grad(function(x) return doubling(x) end), 3.0)
    t.equal(doubling(5), 10)
  end
end)
-- luacheck: push globals outer_number outer_table read_outer total
-- Made outside; each call of what is given goes on with the coroutine.
local function going_on(f)
  return coroutine.wrap(function(v)
    while true do v = coroutine.yield(f(v)) end
  end)
end
do
  local texts = { "no gradient flows", "has to do with what is differentiated", "was created outside" }
  local shared, variable, tensor = { deep = {} }, 1.0, ops.ones { 1 }
  outer_number, outer_table = 1.0, { v = 1.0 }
  function read_outer() return outer_table.v end
  local function indirect() return shared.deep.h * 2 end
  local reads, reads_variable = going_on(function() return shared.h end), going_on(function() return variable * 2 end)
  local reads_far, reads_global = going_on(indirect), going_on(function() return outer_number end)
  local reads_field, reads_tensor = going_on(function() return read_outer() end), going_on(function() return tensor:item() end)
  local calls, writes = going_on(function() return shared.f() end), going_on(function(v) shared.h = v end)
  local overwrites = going_on(function() shared.h = 5.0 end)
  local thread = coroutine.create(function() coroutine.yield(variable) end)
  refuses("a coroutine from outside that reads a table", texts, function(x) shared.h = x * x return reads() * x end)
  refuses("a coroutine from outside that reads a table in a table", texts, function(x) shared.deep.h = x * x return reads_far() * x end)
  refuses("a coroutine from outside that reads a variable", texts, function(x) variable = x * x return reads_variable() * x end)
  refuses("a coroutine from outside that reads a global", texts, function(x) outer_number = x * x return reads_global() * x end)
  refuses("a coroutine from outside that reads a field of a global", texts, function(x) outer_table.v = x * x return reads_field() * x end)
  refuses("a coroutine from outside that reads a tensor", texts, function(x) tensor[0] = x * x return reads_tensor() * x end)
  refuses("a coroutine from outside that calls a function", texts, function(x)
    shared.f = function() return x * x end
    return calls() * x
  end)
  refuses("a coroutine from outside that keeps what it is given", texts, function(x) writes(x * x) return shared.h * x end)
  refuses("a coroutine from outside that overwrites", texts, function(x) shared.h = x * x overwrites() return shared.h * x end)
  refuses("a coroutine from outside that has not begun", texts, function(x)
    variable = x * x
    local _, v = coroutine.resume(thread)
    return v * x
  end)
end
t.test("a coroutine from outside that has nothing to do with what is differentiated goes on", function()
  local data, trainer, last = {}, { w = ms.Parameter(ms.tensor({ 2.0 }, ms.float64), "w") }, nil
  for i = 1, 4 do data[i] = ms.tensor({ i * 1.0 }, ms.float64) end
  local i = 0
  trainer.next = going_on(function()
    i = i % #data + 1
    return data[i], trainer
  end)
  total = 0
  local step = ms.value_and_grad(function()
    total = 0
    for _ = 1, 2 do
      local hidden = { trainer.w * trainer.next() }
      last = hidden[1]
      total = total + ops.sum(hidden[1])
    end
    return total
  end, nil, { trainer.w })
  for _, f in ipairs { step, ms.jit(step) } do
    for _ = 1, 3 do
      for _, sum in ipairs { 3.0, 7.0 } do
        local loss, g = f()
        t.equal({ loss:item(), g[1]:tolist(), last ~= nil }, { 2 * sum, { sum }, true })
      end
    end
  end
end)
-- luacheck: pop
refuses("a coroutine that an opaque function runs", { "no gradient flows" }, function(x)
  local text = coroutine.wrap(function() coroutine.yield("return " .. x) end)
  return load(text)() * x
end)
t.test("gsub calls a coroutine", function()
  local function f(x)
    local sum = 0
    local word = coroutine.wrap(function(s)
      while true do
        sum = sum + x * #s
        s = coroutine.yield(s .. #s)
      end
    end)
    return sum + #string.gsub("a bb", "%a+", word) * x + sum
  end
  t.equal(f(1.5), 6 * 1.5 + 2 * 4.5)
  t.equal(ms.grad(f)(1.5), 12.0)
end)
t.finish()
