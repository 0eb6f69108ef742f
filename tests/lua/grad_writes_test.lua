-- Parts of tensors that are written while a derivative is computed: x[i] = v.
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

t.test("an assignment whose gradient would be lost is an error", function()
  local p = ms.Parameter(ms.tensor({ 1.0, 2.0 }, ms.float64), "p")
  t.fails({ "written in place while other variables refer to it", "grad_writes_test.lua:" }, ms.grad(function(x)
    local q = p
    ops.assign(q, q * x)
    return ops.sum(q * q)
  end), 1.5)
  -- A running mean that nothing is computed from afterwards is none.
  local state = { mean = ms.Parameter(ms.tensor({ 1.0, 2.0 }, ms.float64), "mean") }
  local g = ms.grad(function(x)
    ops.assign(state.mean, 0.5 * state.mean + 0.5 * x)
    return ops.sum(x * x)
  end)(ms.tensor({ 3.0, 4.0 }, ms.float64))
  t.equal(g:tolist(), { 6.0, 8.0 })
  t.equal(state.mean:tolist(), { 2.0, 3.0 })
end)

t.test("what cannot be right is an error", function()
  local x = ms.tensor({ 1.0, 2.0 }, ms.float64)
  t.fails({ "written in place while other variables refer to it", "grad_writes_test.lua:" }, ms.grad(function(v)
    local y = v * 2
    local box = { y }
    local alias = box[1]
    y[0] = v[1]
    return ops.sum(alias)
  end), x)
  t.fails({ "written in place while other variables refer to it", "grad_writes_test.lua:" }, ms.grad(function(v)
    local y = ops.zeros({ 2 }, ms.float64)
    local function put(i, value) y[i] = value end
    put(0, v[1])
    return ops.sum(y)
  end), x)
end)

t.finish()
