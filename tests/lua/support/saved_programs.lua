-- Programs that are saved as MindIR files: a list of names, and by name { f =, inputs =, options = }.
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn

local T = ms.tensor
local a, b = T { { 1.0, -2.0 }, { 0.5, 3.0 } }, T { { -0.25, 0.75 }, { 2.0, -1.5 } }
local v, w = T { 0.3, -0.7, 1.1 }, T { -1.2, 0.4, 0.9 }
local programs, order = {}, {}
-- inputs: lists of arguments, of which the first is the example. options.order: how many times it is differentiated by
-- its first argument (0: there is no derivative).
local function program(name, f, inputs, options)
  programs[name] = { f = f, inputs = inputs, options = options or {} }
  order[#order + 1] = name
end

program("while with a number of turns that depends on the elements", function(x)
  local turns = 0
  while x:sum() < 10 do
    x = x * 1.5 + 1
    turns = turns + 1
  end
  return x, turns
end, { { a }, { b }, { a * 100 } })
program("for with a number as its limit", function(x, n)
  for i = 1, n do x = ops.tanh(x) + i * 0.1 end
  return x
end, { { a, 3 }, { b, 0 }, { a, 11 } })
program("for with a float step", function(x, step)
  local sum = ops.zeros_like(x)
  for t = 0, 1, step do sum = sum + x * t end
  return sum
end, { { a, 0.25 }, { b, 0.5 }, { a, 0.1 } })
program("if by a tensor", function(x)
  if x:sum() > 2 then return x * 2 end
  return -x
end, { { a }, { b }, { a * -1 } })
program("else if, and results of different number", function(x)
  local s = x:sum():item()
  if s > 5 then return x, s elseif s > 0 then return x end
  return -x, 1, "low"
end, { { a }, { a * 3 }, { b * -4 } }, { order = 0 })
program("nested loops", function(x, n)
  local y = x
  for i = 1, n do
    for j = i, n do
      if (i + j) % 2 == 0 then y = y + x * j else y = y * 0.9 - i end
    end
  end
  return y
end, { { a, 3 }, { b, 5 }, { a, 1 } })
program("loops with break, goto and repeat", function(x, limit)
  local i = 0
  repeat
    i = i + 1
    if i % 3 == 0 then goto continue end
    x = x + i
    if x:sum() > limit then break end
    ::continue::
  until i >= 20
  return x, i
end, { { a, 20 }, { b, 1000 }, { a, 0 } })
local function power(x, n)
  if n == 0 then return ops.ones_like(x) end
  if n % 2 == 1 then return x * power(x, n - 1) end
  local half = power(x, n // 2)
  return half * half
end
program("recursion", power, { { a, 5 }, { b, 8 }, { a, 0 } })
program("recursion of local functions by each other", function(x, n)
  local even, odd
  function even(k, y) if k == 0 then return y end return odd(k - 1, y * 0.5) end
  function odd(k, y) if k == 0 then return -y end return even(k - 1, y + 1) end
  return even(n, x)
end, { { a, 4 }, { b, 7 }, { a, 0 } })
program("recursion with several results", function(x, n)
  local function fibonacci(k)
    if k < 2 then return k, x * k end
    local p, y = fibonacci(k - 1)
    local q, z = fibonacci(k - 2)
    return p + q, y + ops.sin(z)
  end
  return fibonacci(n)
end, { { a, 5 }, { b, 2 }, { a, 7 } })
program("early return from loops", function(x, n)
  for i = 1, n do
    x = x * 1.1
    if x:max() > 4 then return x, i end
  end
  return x, 0
end, { { a, 10 }, { b, 3 }, { a, 0 } })
program("several results", function(x, y) return x + y, x * y, x end, { { a, b }, { b, a } },
  { straight = true })
program("a table of results", function(x) return { sum = x + 1, parts = { x * 2, x:sum(), { deep = -x } } } end,
  { { a }, { b } })
program("a table of results beside others", function(x, n) return x, { n, x * n }, "text", n // 2, nil end,
  { { a, 5 }, { b, 2 } })
program("lists that are filled", function(x, n)
  local list = {}
  for i = 1, n do list[#list + 1] = x * i end
  table.insert(list, 1, -x)
  return ops.stack(list), #list
end, { { a, 3 }, { b, 1 }, { a, 6 } })
program("a table that is changed", function(x, n)
  local state = { h = x, count = 0 }
  for _ = 1, n do
    state.h = ops.tanh(state.h) + x
    state.count = state.count + 1
  end
  return state
end, { { a, 2 }, { b, 5 } })
program("casts by method", function(x)
  return x:int(), x:double():sum(), x:to(ms.float16), x:astype("int64"), x:bool(), (x * 100):byte():float() + x
end, { { a:abs() }, { b:abs() * 3 } }, { straight = true })
program("casts in a branch", function(x)
  if x:int():sum() > 2 then return x:half():float() * 2 end
  return x:to(ms.float32) + x:astype(ms.float64):float()
end, { { a }, { b } })
program("bit operators", function(x, y) return x & y, x | 5, x ~ y, ~x, x << 2, x >> 1 end,
  { { T { 1, 2, 255 }, T { 7, 6, 5 } }, { T { -9, 100, 3 }, T { 1, 2, 3 } } }, { order = 0, straight = true })
program("bit operators of numbers", function(x, n) return x * (n & 6 | 1 ~ n << 2), ~n, n >> 1 end,
  { { a, 5 }, { b, 1000 } })
program("a number is read from a tensor", function(x) return x * x:sum():item() + x[0][1]:item() end, { { a }, { b } })
program("arithmetic of numbers", function(x, n, s)
  return x * (n % 4 + n // 3 - n / 7), n ^ 2, -n, n < s, n == 3, math.floor(s), math.max(n, s), s .. n
end, { { a, 10, 2.5 }, { b, 3, -7.25 } }, { order = 0 })
local function factor(k) return function(x) return x * k end end
program("closures", function(x, n)
  local double, add = factor(2), function(y) return y + n end
  local function compose(f, g) return function(...) return f(g(...)) end end
  local both = compose(double, add)
  if n > 2 then both = compose(both, both) end
  return both(x)
end, { { a, 1 }, { b, 3 } })
program("a variable that closures share", function(x, n)
  local count, sum = 0, x
  local function note(y) count = count + 1 sum = sum + y end
  for i = 1, n do note(x * i) end
  return sum, count
end, { { a, 3 }, { b, 0 } })
local function gather(...)
  local list = { ... }
  local sum = 0
  for i = 1, select("#", ...) do sum = sum + list[i] * i end
  return sum, ...
end
program("varargs", function(x, ...) return gather(x, x + 1, ...) end, { { a, b, a }, { b, a, b } })
program("varargs in a loop", function(x, n)
  local t = { x }
  for i = 1, n do t[i + 1] = (gather(table.unpack(t))) end
  return select(-1, table.unpack(t))
end, { { a, 2 }, { b, 4 } })
local function reduced(x, how)
  if how == "mean" then return x:mean() elseif how == "sum" then return x:sum() end
  assert(how == "none", "how must be mean, sum or none")
  return x
end
program("options as texts", reduced, { { a, "mean" }, { b, "sum" }, { a, "none" }, { a, "other" } })
program("options in a table", function(x, options)
  local y = ops.softmax(x, { axis = options.axis or -1 })
  return options.keep and { y, options.keep } or y
end, { { a, { axis = 0 } }, { b, { keep = "all" } }, { a, {} } })
local schedule = { { 0.5, 2 }, { 0.25, 3 }, { 0.125, 1 } }
program("a table from outside", function(x, n)
  local rates = n > 1 and schedule[1] or schedule[2]
  for i = 1, n do
    for _ = 1, schedule[i][2] do x = x - x * schedule[i][1] * rates[1] end
  end
  return x
end, { { a, 1 }, { b, 3 } })
program("and, or, not", function(x, n)
  local y = n and n > 1 and x * n or -x
  return y, not n, n or "none", x:sum() > 0 and "positive" or "negative"
end, { { a, 2 }, { b, 1 }, { b, false } }, { order = 0 })
program("texts are put together", function(x, name)
  local text = ("%s: %d"):format(name:upper(), #name)
  return x, text .. "!", name:sub(2, 3), text:find(":", 1, true)
end, { { a, "abc" }, { b, "longer name" } })
program("errors that are caught", function(x, n)
  local ok, y = pcall(function() if n > 2 then error("too many") end return x * n end)
  return ok and y or x, ok, not ok and tostring(y):match("too many$") or nil
end, { { a, 1 }, { b, 5 } }, { order = 0 })
program("errors", function(x, n)
  if n < 0 then error("n is negative: " .. n) end
  return x * n
end, { { a, 2 }, { b, -1 } })
program("elements that are written", function(x, n)
  local y = x * 1
  for i = 0, n - 1 do y[i] = x[i] * i + x:sum() end
  return y
end, { { v, 2 }, { w, 3 }, { v, 0 } })
program("parts of tensors in a loop", function(x)
  local sum = x[0]
  for i = 1, x.shape[1] - 1 do
    if x[i] > 0 then sum = sum + x[i] else sum = sum * 2 end
  end
  return sum, x["1:"]
end, { { v }, { w }, { T { 1.0, 2.0, -3.0, 4.0 } } })
program("coroutines", function(x, n)
  local next_one = coroutine.wrap(function()
    for i = 1, n do coroutine.yield(x * i) end
    return -x
  end)
  local sum = x
  for _ = 1, n + 1 do sum = sum + next_one() end
  return sum
end, { { a, 2 }, { b, 4 } }, { by_lua = true })
program("objects with metatables", function(x, n)
  local vector = {}
  local meta = { __add = function(p, q) return setmetatable({ p[1] + q[1] }, getmetatable and nil) end }
  vector[1] = x
  local sum = setmetatable({ x }, { __add = function(p, q) return { p[1] + q[1] * n } end }) + vector
  return sum[1], meta ~= nil
end, { { a, 2 }, { b, 4 } })

-- Derivatives and vectorisation within the program, and programs that are one.
local function energy(x) return (x * x * x):sum() end
local function steps(x, n)
  local y = x
  for i = 1, n do y = ops.sin(y) * x + i end
  return y:sum()
end
program("grad", ms.grad(energy), { { a }, { b } })
program("value_and_grad", ms.value_and_grad(energy), { { a }, { b } })
program("grad of a loop", function(x, n) return ms.grad(steps)(x, n) end, { { a, 3 }, { b, 1 }, { b, 5 } }, { order = 1 })
program("grad of a function with branches", ms.grad(function(x)
  if x:sum() > 0 then return energy(x) end
  return (x * 2):sum()
end), { { a }, { b * -1 }, { b } })
program("the second derivative", ms.grad(function(x) return ms.grad(energy)(x):sum() end), { { a }, { b } }, { order = 1 })
program("vmap", ms.vmap(function(x) return ops.tanh(x) * x:sum() end), { { a }, { b }, { T { { 1.0, 2.0, 3.0 } } } },
  { order = 1 })
program("vmap of a function with a branch", function(x)
  return ms.vmap(function(row) if row:sum() > 0 then return row * 2 end return -row end)(x)
end, { { a }, { b } }, { order = 0 })
program("gradient steps", function(x, n, rate)
  local slope = ms.value_and_grad(function(p) return ((p - 1) * (p - 1)):sum() end)
  local loss
  for _ = 1, n do
    local g
    loss, g = slope(x)
    x = x - g * rate
  end
  return x, loss
end, { { a, 2, 0.1 }, { b, 6, 0.05 } }, { order = 1 })

-- Networks.
ms.set_seed(3)
local lstm, gru, rnn = nn.LSTM(3, 4, 2), nn.GRU(3, 4, { bidirectional = true }), nn.RNN(3, 4)
local short, long = ops.randn { 2, 3, 3 }, ops.randn { 5, 2, 3 }
program("LSTM", lstm, { { short }, { long } }, { order = 1 })
program("GRU", gru, { { short }, { long } }, { order = 1 })
program("RNN with a head", function(x)
  local y, h = rnn(x)
  return y[-1], { h }
end, { { short }, { long } }, { order = 1 })
local Router = nn.Cell:extend("Router")
function Router:init()
  self.first, self.second, self.scale = nn.Dense(2, 2), nn.Dense(2, 2), 0.5
  self.layers = nn.CellList { nn.Dense(2, 2), nn.ReLU(), nn.Dense(2, 2) }
end
function Router:construct(x)
  local turns = 0
  while turns < 8 and x:abs():sum() > 1 do
    if x:sum() > 0 then x = self.first(x) else x = self.second(x) end
    for _, layer in ipairs { self.first, self.second } do x = layer(x) end
    x = x * self.scale
    turns = turns + 1
  end
  for _, layer in ipairs(self.layers) do x = layer(x) end
  return { x = x, turns = turns }
end
local router = Router()
program("a cell with branches and loops", router, { { a }, { b }, { a * 9 } }, { order = 1 })
program("methods of tensors that are written in Lua", function(x, n)
  for _ = 1, n do x = x * 2 end
  return x:at(":", 0) + x:sizes(-1), x:at(-1)
end, { { a, 2 }, { b, 3 } })
local odd = ms.slice(1, nil, 2)
program("slices, new axes and texts as indices", function(x, n)
  local y = x[{ ms.newaxis, odd, ms.slice(nil, -1) }]
  for i = 1, n do y = y[{ ms.slice(0, i), "..." }] * 2 + x[{ i - 1, ms.slice(0, 1) }] end
  return y:at(":", 0), y[{ ":", -1, ms.newaxis }]
end, { { v["0:3"] * ops.ones { 3, 1 }, 2 }, { w * ops.ones { 4, 1 }, 1 }, { a["0"] * ops.ones { 5, 1 }, 3 } })
program("tables of operators and names", function(x, n)
  local called = { ops.tanh, ops.sin, string.rep }
  for i = 1, n do x = called[i % 2 + 1](x) * i end
  return x, called[3]("-", n)
end, { { a, 3 }, { b, 2 } })
program("a function that it compiles and asks before the call", function(x, n)
  local scaled = ms.jit(function(z) return z * n end)
  if ms.is_tensor(scaled) or ms.is_parameter(scaled) or type(scaled) ~= "function" then return x end
  return scaled(x) + ms.grad(ms.jit(function(z) return ops.sum(scaled(z) * z) end))(x)
end, { { v, 2.0 }, { w, 0.5 } })
local net = nn.SequentialCell(nn.Dense(2, 3), nn.Tanh(), nn.Dense(3, 1))
local train = ms.value_and_grad(function(x, y) return ((net(x) - y) * (net(x) - y)):mean() end, nil,
  net:trainable_params())
program("a training step", function(x, y) return train(x, y) end, { { a, v["0:2"]:reshape { 2, 1 } },
  { b, w["0:2"]:reshape { 2, 1 } } }, { order = 0 })
program("a step that writes the weights", function(x, y, rate)
  local loss, gradients = train(x, y)
  for i, p in ipairs(net:trainable_params()) do ops.assign(p, p - gradients[i] * rate) end
  return loss
end, { { a, v["0:2"]:reshape { 2, 1 }, 0.1 } }, { order = 0, once = true })

return { order = order, programs = programs, v = v, w = w }
