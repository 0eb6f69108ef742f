-- Tensors that are written while a derivative is computed: x[i] = v, x:add_(y), by whatever name.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

-- f takes a vector of four float64 and gives a scalar tensor; it must not write into its argument.
local function check(name, f)
  t.test(name, function()
    local at = { 0.7, -1.2, 1.5, 0.4 }
    local x = ms.tensor(at, ms.float64)
    t.near(ms.value_and_grad(f)(x), f(x), 1e-12)
    t.equal(ms.check_grad(f, { x }, { rtol = 1e-5, atol = 1e-7 }) < 1e-5, true)
    -- Second order: the gradient's product with a constant vector.
    local w = ms.tensor({ 0.3, 1.1, -0.6, 0.9 }, ms.float64)
    local function along(y) return ops.sum(ms.grad(f)(y) * w) end
    t.equal(ms.check_grad(along, { x }, { rtol = 1e-5, atol = 1e-7 }) < 1e-4, true)
    t.equal(x:tolist(), at)
    local plain, compiled = ms.value_and_grad(f), ms.jit(ms.value_and_grad(f))
    for i = 1, 4 do t.near({ compiled(x * i) }, { plain(x * i) }, 1e-12) end
  end)
end

check("an element of a fresh tensor", function(x)
  local y = ops.zeros({ 4 }, ms.float64)
  y[1] = x[0] * x[2]
  y[3] = ops.sum(x * x)
  return ops.sum(y * y * x)
end)
check("an element of a tensor that is differentiated", function(x)
  local y = x * x
  local before = ops.sum(y * x)
  y[1] = y[0] * y[2]
  y[-1] = 5.0
  return before + ops.sum(y * x) * y[1]
end)
check("the old value of what is overwritten", function(x)
  local y = ops.sin(x) + 0
  y[2] = y[2] * y[2] + x[0]
  y[2] = y[2] * y[2] + x[1]
  return ops.sum(y)
end)
check("elements one after the other in a loop", function(x)
  local y = ops.zeros({ 5 }, ms.float64)
  y[0] = x[0]
  for i = 1, 4 do y[i] = y[i - 1] * x[(i * 3) % 4] + i end
  return ops.sum(y)
end)
check("a loop that ends on a condition", function(x)
  local y, i = x + 0, 0
  while i < 10 do
    if i % 3 == 0 then y[i % 4] = y[(i + 1) % 4] * 0.5 elseif i % 3 == 1 then y[0] = y[3] + x[1] end
    i = i + 1
  end
  return ops.sum(y * y)
end)
check("slices", function(x)
  local y = ops.zeros({ 3, 4 }, ms.float64)
  y["0"] = x
  y["1:, 1:3"] = x["2:4"] * x["0:2"]
  y[{ 2, ms.slice(0, 1) }] = ops.sum(x)
  y["..., -1"] = x[0] * 2
  return ops.sum(y * ops.reshape(ops.arange(12), { 3, 4 }):double() * y)
end)
check("masks", function(x)
  local y = x * 2
  y[ops.greater(x, 0.5)] = x[1] * x[2]
  y[ops.less(y, 0.0)] = 3.0
  return ops.sum(y * y * x)
end)
check("index tensors, some of them twice", function(x)
  local y = x * x
  y[ms.tensor { 0, 3, 1 }] = ops.stack({ x[1], x[2], x[0] * x[3] }, 0)
  y[ms.tensor { 2, 2 }] = x[0]
  return ops.sum(y * y)
end)
check("a number", function(x)
  local n = x[0]:item() * x[1]:item()
  local y = x * 1
  y[2] = n * n
  y["0:2"] = n
  return ops.sum(y * x)
end)
check("a tensor in a table", function(x)
  local state = { h = ops.zeros({ 4 }, ms.float64), all = {} }
  for i = 0, 3 do
    state.h[i] = x[i] * (i > 0 and state.h[i - 1] + 1 or x[3])
    state.all[i + 1] = ops.sum(state.h)
  end
  return ops.sum(state.h * x) + state.all[2] * state.all[4]
end)
check("a method that writes a field", function(x)
  local Buffer = {}
  Buffer.__index = Buffer
  function Buffer:push(v)
    self.data[self.n] = v
    self.n = self.n + 1
  end
  local b = setmetatable({ data = ops.ones({ 4 }, ms.float64), n = 0 }, Buffer)
  b:push(x[0])
  b:push(x[1] * x[2])
  b:push(ops.sum(b.data))
  return ops.sum(b.data * b.data * x)
end)
check("a closure reads what is written later", function(x)
  local y = x * 1
  local function total() return ops.sum(y * x) end
  local before = total()
  y[0] = before
  local between = total()
  y[1] = between * x[0]
  return total() * between
end)
check("a closure writes into what it has in a table", function(x)
  local box = { y = ops.zeros({ 4 }, ms.float64) }
  local function put(i, v) box.y[i] = v end
  for i = 0, 3 do put(i, x[i] * x[i]) end
  put(0, box.y[1] * box.y[2])
  return ops.sum(box.y * x)
end)
check("results that a pullback needs are overwritten", function(x)
  local y = ops.exp(x)
  local before = ops.sum(y * y)
  y[0] = 1.0
  y["1:3"] = y["2:4"] * y[0]
  return before * ops.sum(y * y)
end)
check("a function that writes gives the tensor back", function(x)
  local function filled(v)
    local y = ops.zeros({ 4 }, ms.float64)
    y["1:3"] = v["0:2"]
    return y
  end
  return ops.sum(filled(x * x) * filled(x) + x)
end)
check("writes before an error", function(x)
  local s = { y = x * 1 }
  pcall(function()
    s.y[0] = x[1] * x[2]
    error "stop"
  end)
  return ops.sum(s.y * s.y)
end)

t.test("an argument is written into, as in a plain call", function()
  local function f(x)
    x[0] = x[1] * 3
    return ops.sum(x * x)
  end
  local x = ms.tensor({ 1.0, 2.0 }, ms.float64)
  t.equal(ms.grad(f)(x):tolist(), { 0.0, 40.0 })
  t.equal(x:tolist(), { 6.0, 2.0 })
end)
-- A cell of plain Lua with a state that it assigns.
local function unit(start)
  local self = { state = ms.Parameter(ms.tensor(start, ms.float64), "state") }
  function self.read() return ops.sum(self.state * self.state) end
  return self
end

check("a variable in a table that is assigned carries the gradient of its new value", function(x)
  local cell = unit { 1.0, 2.0, 3.0, 4.0 }
  ops.assign(cell.state, x * x)
  local first = cell.read()
  cell.state:assign(ops.sin(x))
  ops.assign_add(cell.state, x * 0.5)
  ops.assign_sub(cell.state, ops.exp(x))
  return first + cell.read()
end)
check("methods that write all of a tensor", function(x)
  local cell = { y = x * 2 }
  cell.y:copy_(x * x)
  local first = ops.sum(cell.y * x)
  cell.y:fill_(x[1])
  local second = ops.sum(cell.y * cell.y)
  cell.y:zero_()
  return first + second + ops.sum(cell.y * x)
end)

-- Writes that other names of the tensor see.
check("an alias sees what is written", function(x)
  local y = x * 2
  local alias = y
  local before = ops.sum(alias * x)
  y[0] = x[1] * x[3]
  local between = ops.sum(alias * alias)
  alias[2] = y[0] * x[2]
  return before + between + ops.sum(y * x) * alias[2]
end)
check("a name in a table, one in a closure and one in the varargs", function(x)
  local y = x * x
  local box = { y }
  local function read() return ops.sum(y * x) end
  local function put(i, v, ...)
    local into = ...
    into[i] = v
    return select("#", ...)
  end
  local before = read()
  put(1, before, y)
  local between = ops.sum(box[1] * x)
  box[1][3] = between
  put(2, y[3] * 0.1, box[1], 7)
  return read() + before * ops.sum(y)
end)
check("a closure writes into what it captured", function(x)
  local y = ops.zeros({ 4 }, ms.float64)
  local function put(i, value) y[i] = value end
  for i = 0, 3 do put(i, x[i] * x[(i + 1) % 4]) end
  local first = ops.sum(y * x)
  put(0, first)
  return ops.sum(y * y)
end)
check("a tensor that is followed from the write on, by its other name", function(x)
  local buffer = ops.ones({ 4 }, ms.float64)
  local other = buffer
  local constant = ops.sum(other)
  buffer:add_(x)
  return ops.sum(other * other) * constant + ops.sum(other["1:3"])
end)
check("add_ and its kin", function(x)
  local y = x * 1.5
  local alias = y
  y:add_(x):mul_(x)
  alias:sub_(0.5)
  local first = ops.sum(y * alias)
  y:div_(x + 3):sin_()
  y:pow_(2.0)
  return first + ops.sum(alias * x)
end)
check("in place with one operand, with bounds and with masks", function(x)
  local y = ops.exp(x)
  local z = y
  y:tanh_():neg_()
  y:clamp_(-0.9, -0.35)
  local first = ops.sum(z * x)
  z:exp_():sqrt_():square_()
  z:masked_fill_(ops.greater(z, 0.6), 2.0)
  return first + ops.sum(y * y * x)
end)
check("a tensor with itself", function(x)
  local y = x + 1
  y:mul_(y)
  y:add_(y)
  y[1] = ops.sum(y * y)
  y["..."] = y * y[1]
  return ops.sum(y) * 0.01
end)
check("the results of functions that write are the tensors themselves", function(x)
  local function twice(v) return v:mul_(2.0) end
  local y = x * x
  local z = twice(y)
  local w = twice(z)
  assert(rawequal(y, z) and y == w)
  y[0] = z[1] * w[2]
  return ops.sum(z * x)
end)
check("a result that was written into", function(x)
  local y = ops.sum(x * x)
  local z = y
  y:mul_(y)
  z:add_(x[0])
  return y
end)
check("in a loop that carries the tensor along", function(x)
  local state, sum = x * 1.0, 0.0
  local history = {}
  for i = 1, 6 do
    local last = state
    state:mul_(0.9)
    state[i % 4] = last[(i + 1) % 4] * x[i % 4]
    history[i] = state
    if i % 2 == 0 then state = state + x end
    sum = sum + ops.sum(last * state)
  end
  for _, h in ipairs(history) do sum = sum + ops.sum(h * h) end
  return sum
end)
check("in a function that calls itself", function(x)
  local function fill(v, i)
    if i > 3 then return v end
    v[i] = v[i - 1] * x[i] + x[0]
    return fill(v, i + 1)
  end
  local y = ops.zeros({ 4 }, ms.float64)
  y[0] = x[0]
  local z = fill(y, 1)
  return ops.sum(y * z)
end)
check("in a coroutine", function(x)
  local y = x * 1.0
  local writer = coroutine.wrap(function(v)
    for i = 0, 3 do
      v:mul_(x[i])
      coroutine.yield(v)
    end
  end)
  local sum = 0.0
  for _ = 1, 4 do sum = sum + ops.sum(writer(y) * y) end
  return sum
end)
check("before an error", function(x)
  local y = x * 1.0
  local alias = y
  local ok = pcall(function()
    y:mul_(x)
    alias[1] = x[0]
    error "stop"
  end)
  assert(not ok)
  return ops.sum(alias * y)
end)
check("an object that keeps a running value", function(x)
  local Mean = {}
  Mean.__index = Mean
  function Mean.new() return setmetatable({ value = ops.zeros({ 4 }, ms.float64), n = 0 }, Mean) end
  function Mean:push(v)
    self.n = self.n + 1
    self.value:add_((v - self.value) / self.n)
    return self.value
  end
  local mean = Mean.new()
  local seen = mean:push(x)
  mean:push(x * x)
  mean:push(ops.sin(x))
  return ops.sum(seen * mean.value * x)
end)
check("two tensors that are written into in turn", function(x)
  local a, b = x * 1.0, x * x
  local p, q = a, b
  for i = 1, 3 do
    p:add_(q * 0.5)
    q:mul_(a)
    p, q = q, p
  end
  return ops.sum(a * b)
end)
check("an object's copy is not written into", function(x)
  local y = x * 2
  local copy, view = y:clone(), ops.reshape(y, { 2, 2 })
  local row = y["1:3"]
  y:mul_(x)
  view[0] = x["0:2"]
  row:add_(x[3])
  return ops.sum(copy * y) + ops.sum(view * view) + ops.sum(row * row)
end)
check("what stop_gradient gives is a constant of its own", function(x)
  local y = x * 2
  local fixed = ms.stop_gradient(x)
  local constant = ms.stop_gradient(y)
  y:mul_(x * 0 + 3.0)
  fixed:fill_(3.0)
  constant:fill_(2.0)
  return ops.sum(y * fixed * x * constant)
end)
check("drawn numbers in place", function(x)
  local y = x * 2
  local alias = y
  local before = ops.sum(alias * x)
  ms.set_seed(7)
  y:normal_(0.0, 1.0)
  local drawn = ops.sum(alias * x)
  y:uniform_():add_(x)
  return before + drawn + ops.sum(alias * alias)
end)
check("operators on lists of tensors", function(x)
  local a, b = x["0:2"] * 1.0, x["2:4"] * 1.0
  local list = { a, b }
  a:mul_(b)
  local joined = ops.concat(list, 0)
  b:add_(a)
  return ops.sum(ops.concat(list, 0) * joined) + ops.sum(ops.stack({ a, b }, 0))
end)
check("a parameter by name", function(x)
  local p = ms.Parameter(ms.tensor({ 1.0, 2.0, 3.0, 4.0 }, ms.float64), "p")
  local q, holder = p, { p }
  ops.assign(q, q * x)
  local first = ops.sum(p * x)
  q:mul_(x)
  return first + ops.sum(holder[1] * p)
end)
check("derivatives within, of functions that write", function(x)
  local function inner(v)
    local y = v * 1.0
    local alias = y
    y:mul_(v)
    alias[0] = y[1] * x[2]
    return ops.sum(y * alias * x)
  end
  local g = ms.grad(inner)(x * x)
  local alias = g
  g:mul_(x)
  return ops.sum(alias * g)
end)
check("a tensor that is written inside and outside of a derivative", function(x)
  local w = x * 1.0
  local alias = w
  w:mul_(x)
  local g = ms.grad(function(v)
    local y = alias * v
    y:add_(w)
    return ops.sum(y * y)
  end)(x)
  w:add_(g)
  return ops.sum(alias * g)
end)
check("custom derivatives and checkpoints of what was written into", function(x)
  local twice = ms.custom_vjp(function(v) return v * 2 end, function(_, _, d) return d * 2 end)
  local square = ms.checkpoint(function(v) return v * v end)
  local y = x * 1.0
  local alias = y
  y:mul_(x)
  local a, b = twice(alias), square(y)
  y:add_(1.0)
  return ops.sum(a * b * y)
end)

t.test("a weight that is written into, with other names of it", function()
  local p = ms.Parameter(ms.tensor({ 1.0, 2.0 }, ms.float64), "p")
  local start = p:clone()
  local x = ms.tensor({ 3.0, -1.0 }, ms.float64)
  local function f(v)
    local q = p
    local before = ops.sum(q * v)
    q:mul_(v)
    p[0] = p[1] * v[0]
    return before + ops.sum(q * p)
  end
  -- before = p0 v0 + p1 v1; then (p1 v1 v0)^2 + (p1 v1)^2.
  local y, dx, dw = ms.value_and_grad(f, 0, { p })(x)
  t.near(y, ms.tensor(3.0 - 2.0 + 36.0 + 4.0, ms.float64), 1e-12)
  t.equal(dx:tolist(), { 1.0 + 2 * 4.0 * 3.0, 2.0 + 2 * 4.0 * -1.0 * 10.0 })
  t.equal(dw[1]:tolist(), { 3.0, -1.0 + 2 * 2.0 * (9.0 + 1.0) })
  t.equal(p:tolist(), { -6.0, -2.0 })
  p:copy_(start)
end)
t.test("pulling back twice through writes", function()
  local x = ms.tensor({ 1.0, 2.0 }, ms.float64)
  local y, pull = ms.vjp(function(v)
    local a = v * v
    local b = a
    a:mul_(v)
    return b, a * 2
  end, x)
  t.equal(y[1]:tolist(), { 1.0, 8.0 })
  local one = ms.ones({ 2 }, ms.float64)
  for _ = 1, 2 do t.equal(pull(one, one * 0):tolist(), { 3.0, 12.0 }) end
  t.equal(pull(one, one):tolist(), { 9.0, 36.0 })
end)
t.test("errors of methods in place are those of plain calls", function()
  local function lines(f, ...)
    local ok, message = pcall(f, ...)
    t.equal(ok, false)
    return (tostring(message):gsub("^[^\n]-:%d+: ", ""):match "^[^\n]*")
  end
  local x = ms.tensor({ 1.0, 2.0 }, ms.float64)
  for _, wrong in ipairs {
    function(v) v = v * 1 v:add_(ms.ones({ 3, 2 }, ms.float64)) return ops.sum(v) end,
    function(v) v = v * 1 v:mul_ "x" return ops.sum(v) end,
    function(v) v = v * 1 v:clamp_({}) return ops.sum(v) end,
    function(v) v = v * 1 v:copy_(ms.ones { 3 }) return ops.sum(v) end,
    function(v) v = v * 1 v:fill_ "x" return ops.sum(v) end,
    function(v) v = v * 1 v:copy_ { 1, "x" } return ops.sum(v) end,
    function(v) v = v * 1 v:set_data { 1, {} } return ops.sum(v) end,
    function(v) v = v * 1 v:fill_ { { 1 }, { 1, 2 } } return ops.sum(v) end,
    function(v) local n = ms.tensor { 1, 2 } n:mul_(v) return ops.sum(v) end,
  } do
    t.equal(lines(ms.grad(wrong), x), lines(wrong, x))
  end
end)

t.test("a loaded program computes with what was written into", function()
  local path = os.tmpname()
  ms.save_mindir(function(v) return ops.sin(v) * v + v end, path, ms.tensor({ 1.0, 2.0 }, ms.float64))
  local loaded = ms.load_mindir(path)
  os.remove(path)
  t.equal(ms.check_grad(function(v)
    local y = v * 1.0
    local alias = y
    y:mul_(v)
    local a = loaded(alias)
    y:add_(a)
    return ops.sum(loaded(y) * alias)
  end, { ms.tensor({ 0.5, -1.5 }, ms.float64) }) < 1e-5, true)
end)
t.test("a running mean that nothing is computed from afterwards", function()
  local state = { mean = ms.Parameter(ms.tensor({ 1.0, 2.0 }, ms.float64), "mean") }
  local g = ms.grad(function(x)
    ops.assign(state.mean, 0.5 * state.mean + 0.5 * x)
    return ops.sum(x * x)
  end)(ms.tensor({ 3.0, 4.0 }, ms.float64))
  t.equal(g:tolist(), { 6.0, 8.0 })
  t.equal(state.mean:tolist(), { 2.0, 3.0 })
end)
-- A call that a recording takes up behind the write must not give the slope of the new content.
for name, write in pairs {
  method = function(p) p:add_(1.0) end,
  operator = function(p) ops.assign(p, p + 1) end,
  index = function(p) p[0] = 7.0 end,
} do
  t.test("what is not followed is written after it was used, compiled: " .. name, function()
    local p = ms.tensor({ 1.0, 2.0 }, ms.float64)
    local f = ms.jit(function(v, k)
      return ms.grad(function(u)
        local before = ops.sum(p * u)
        write(p)
        return before * k.n + ops.sum(u)
      end)(v)
    end)
    for i = 1, 6 do
      t.fails({ "grad_writes_test.lua:", "was changed in place" }, f, ms.tensor({ 1.0, 1.0 }, ms.float64),
        { n = i % 2 == 0 and i or i + 0.5 })
    end
  end)
end

-- Functions with a derivative of their own, or computed again for it, get arguments that stay as they were.
local function product(v, w) return v * w end
check("a write into the argument of a checkpoint after the call", function(x)
  local y, fresh = x * 1.0, ops.ones_like(x)
  local a = ms.checkpoint(product)(y, y) + ms.checkpoint(product)(y, fresh)
  y:mul_(x)
  fresh:mul_(5.0)
  return ops.sum(a * y * fresh)
end)
check("a write into arguments and results of a custom derivative after the call", function(x)
  local y = x * 1.0
  local e = ms.custom_vjp(function(v) return ops.exp(v) end, function(_, r, d) return d * r end)(y)
  local s = ms.custom_vjp(function(v) return v * v end, function(v, _, d) return d * v * 2 end)(y)
  local before = e * s
  y:mul_(x)
  e:mul_(y)
  s[0] = y[1]
  return ops.sum(before * e * s)
end)
check("what a custom derivative hands through is the argument itself", function(x)
  local through = ms.custom_vjp(function(v) return v end, function(_, _, d) return d end)
  local y = x * 1.0
  local z = through(y)
  z:mul_(x)
  return ops.sum(y * z) + ops.sum(ms.checkpoint(function(v) return v end)(y) * x)
end)
check("a custom derivative's function writes into what is its own", function(x)
  local f = function(v)
    local y = v * 1.0
    y:mul_(2.0)
    return y
  end
  return ops.sum(ms.checkpoint(f)(x) * ms.custom_vjp(f, function(_, _, d) return d * 2 end)(x))
end)

t.test("functions that write into arguments of theirs are refused where they have derivatives", function()
  local x = ms.tensor({ 1.0, 2.0 }, ms.float64)
  local function writes(v)
    v:mul_(3.0)
    return v * 2
  end
  local custom = ms.custom_vjp(writes, function(_, _, d) return d * 6 end)
  for name, transformed in pairs { checkpoint = ms.checkpoint(writes), custom_vjp = custom } do
    for _, already in ipairs { false, true } do
      local function f(v)
        local y = v * 1.0
        if already then y:mul_(v) end
        local a = transformed(y)
        return ops.sum(y * a)
      end
      -- No derivative: a call as any other.
      t.near(f(x), ms.tensor(already and 18.0 * (1 + 16) or 18.0 * (1 + 4), ms.float64))
      local message = { "grad_writes_test.lua:", name, "writes into its argument 0, (2)", "v = v:clone()" }
      for _, differentiated in ipairs { ms.grad(f), ms.jit(ms.grad(f)), ms.grad(ms.jit(f)) } do
        t.fails(message, differentiated, x)
      end
      t.fails(message, ms.grad(function(v) return ops.sum(ms.grad(f)(v)) end), x)
    end
  end
end)
t.test("functions computed again meet what they use as it was, or say that they cannot", function()
  local x = ms.tensor({ 1.0, 2.0 }, ms.float64)
  local function within(v)
    local w = v * 1.0
    local function f(u)
      w:mul_(u)
      return u * w
    end
    return ops.sum(ms.checkpoint(f)(v) + w)
  end
  t.fails({ "checkpoint", "writes into a tensor that it uses", "clone" }, ms.grad(within), x)
  local function within_custom(v)
    local w = v * 1.0
    local function f(u)
      w:mul_(u)
      return u * w
    end
    return ops.sum(ms.custom_vjp(f, function(_, _, d) return d end)(v) + w)
  end
  t.fails({ "custom_vjp", "writes into a tensor that it uses", "clone" }, ms.grad(within_custom), x)
  for _, fresh in ipairs { true, false } do
    local function after(v)
      local w = fresh and ops.ones_like(ms.stop_gradient(v)) or v * 1.0
      local a = ms.checkpoint(function(u) return u * w end)(v)
      w:mul_(5.0)
      return ops.sum(a)
    end
    t.fails({ "checkpoint", "was written in place after the call", "argument" }, ms.grad(after), x)
    t.fails({ "checkpoint", "was written in place after the call", "argument" }, ms.jit(ms.grad(after)), x)
  end
  -- Counters of a function that runs once are its own business.
  local calls = ms.zeros({}, ms.float64)
  local counted = ms.custom_vjp(function(v)
    calls:add_(1.0)
    return v * 2
  end, function(_, _, d) return d * 2 end)
  t.equal(ms.grad(function(v) return ops.sum(counted(v)) end)(x):tolist(), { 2.0, 2.0 })
  t.equal(calls:item(), 1.0)
end)

t.finish()
