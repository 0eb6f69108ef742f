-- Compiled functions in which numbers change from call to call: steps, rates, weights of losses, lists that grow.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

-- make() gives a function of a vector, the number of the call and a table that keeps what it is left with.
local function check(name, make)
  t.test(name, function()
    local plain, f = make(), ms.jit(make())
    local expected_state, state = {}, {}
    for i = 1, 30 do
      local w = ms.tensor { 0.5, -1.0, 2.0, 0.1 * i }
      local expected, got = table.pack(plain(w, i, expected_state)), table.pack(f(w, i, state))
      t.near(got, expected, 1e-6)
      t.near(state, expected_state, 1e-6)
    end
    local report = ms.jit_report(f)
    if report.compiled_calls < 25 then error("not compiled: " .. tostring(report)) end
  end)
end

-- The same of the gradient of what make() gives.
local function check_gradient(name, make)
  check(name, function()
    local f = make()
    return function(w, i, s) return ms.value_and_grad(function(v) return f(v, i, s) end)(w) end
  end)
end

check("a list that grows", function()
  return function(w, i, s)
    s.log = s.log or {}
    s.log[#s.log + 1] = ops.sum(w):item() * i
    return w * 2
  end
end)
check("table.insert", function()
  return function(w, _, s)
    s.log = s.log or {}
    table.insert(s.log, ops.sum(w):item())
    return w * 2, #s.log
  end
end)
check("what was written under a number is read again", function()
  return function(w, _, s)
    s.log = s.log or { 5 }
    s.log[#s.log + 1] = ops.sum(w):item()
    s.first = s.log[1] + #s.log
    return w * s.first
  end
end)
check("numbers and tensors in one graph", function()
  return function(w, i) return (w * i + i / 2 - w / i) * 0.5, i - w, 1 / i + w end
end)
check("half precision keeps the number's", function()
  return function(w, i) return ops.cast(ops.cast(w, ms.float16) * (i * 0.1), ms.float32) end
end)
check("powers", function()
  return function(w, i) return w ^ (i % 12), ops.abs(w) ^ (1 / i) end
end)

check_gradient("an argument", function()
  return function(v, i) return ops.sum(v * v) * i end
end)
check_gradient("a counter of the function around it", function()
  local step = 0
  return function(v)
    step = step + 1
    return ops.sum(v * v) * (step / 100)
  end
end)
check_gradient("a counter in a table", function()
  return function(v, _, s)
    s.n = (s.n or 0) + 1
    return ops.sum(v * v + s.n) / (s.n + 1)
  end
end)
check_gradient("a schedule", function()
  return function(v, i)
    local rate = 0.5 * (1 + math.cos(i / 30 * math.pi)) ^ 2
    return ops.sum(v * v) * math.min(rate, math.exp(-i / 10)) - i
  end
end)
check_gradient("a weight that grows to 1", function()
  return function(v, i)
    local weight = i < 10 and i / 10 or 1.0
    return ops.sum(v * v) * weight
  end
end)
check_gradient("a loss that is kept as a number", function()
  return function(v, _, s)
    local loss = ops.sum(v * v)
    s.last = loss:item()
    return loss
  end
end)
check_gradient("a loss that is looked at", function()
  return function(v, i)
    local loss = ops.sum(v * v)
    if loss:item() > 1000 or loss:item() ~= loss:item() then error "diverged" end
    return loss * i
  end
end)
check_gradient("a number in a text", function()
  return function(v, i, s)
    s.text = "step " .. i
    return ops.sum(v * v) / i
  end
end)

check_gradient("running statistics, written in place", function()
  return function(v, i, s)
    s.mean = s.mean or ops.zeros { 1 }
    ops.assign(s.mean, 0.9 * s.mean + 0.1 * ops.mean(v))
    local y = v * i
    y[0] = s.mean[0] * v[1]
    y:add_(v)
    return ops.sum(y * v)
  end
end)

check_gradient("a loss as a number in arithmetic and comparisons", function()
  return function(v, i)
    local loss = ops.sum(v * v)
    local n = loss:item()
    if n > 1 then n = n * 2 - 1 / (n + i) end
    return loss * (1 + n) - n ^ 2 / 3 % 5
  end
end)
check_gradient("a loss as a number in functions of numbers", function()
  return function(v)
    local n = ops.sum(ops.abs(v)):item()
    return ops.sum(v * v) * math.exp(-n / 10) + math.max(n, 1.5) * math.sin(n) - math.abs(n)
  end
end)
check_gradient("a number beside tensors in operators", function()
  return function(v, i)
    local n = ops.sum(ops.abs(v)):item()
    local y = ops.mul(v, n) + ops.clip(v, -n / 4, n / 4) + ops.maximum(v, i / 10) + ops.lerp(v, v * v, i / 40)
    return ops.sum(y + ops.pow(ops.abs(v) + 1, n / 5) + (ops.abs(v) + 1) ^ (i / 10) + (1 + i / 10) ^ v + v % (i + 0.5))
  end
end)
t.test("integers and halves beside a number", function()
  local function make()
    return ms.value_and_grad(function(v, i)
      local n = ops.cast(ops.abs(v) * 10, ms.int32)
      local half = ops.cast(v, ms.float16)
      return ops.sum(v * ops.cast(ops.maximum(n, i), ms.float32)) + ops.sum(ops.cast(ops.mul(half, i / 8), ms.float32))
    end)
  end
  local plain, f = make(), ms.jit(make())
  for i = 1, 12 do
    local w = ms.tensor { 0.5, -1.0, 0.1 * i }
    t.near({ f(w, i) }, { plain(w, i) }, 1e-6)
  end
end)
check_gradient("a list of losses", function()
  return function(v, i, s)
    s.log = s.log or {}
    local loss = ops.sum(v * v) * i
    s.log[#s.log + 1] = loss:item()
    s.log[#s.log + 1] = loss:item() * 2
    return loss
  end
end)
check_gradient("an average of losses that goes into the loss", function()
  return function(v, _, s)
    local loss = ops.sum(v * v)
    s.mean = 0.9 * (s.mean or 0.0) + 0.1 * loss:item()
    return loss + s.mean
  end
end)
check_gradient("a loss in a text", function()
  return function(v, i, s)
    local loss = ops.sum(v * v)
    s.text = ("step %d: %.6f"):format(i, loss:item()) .. "."
    return loss
  end
end)

-- Gradients of numbers, in a loop.
local function check_numbers(name, f, ...)
  local positions = ...
  check(name, function()
    local gradient = ms.value_and_grad(f, positions)
    return function(w, i) return gradient(0.25 * i, i + 0.5, w) end
  end)
end
check_numbers("the slope of a number", function(x) return x * x end)
check_numbers("slopes of two numbers", function(x, y) return x * y ^ 2 / (x + y) - x % 3 end, { 0, 1 })
check_numbers("the slope of functions of a number", function(x) return math.sin(x) * math.exp(-x / 50) + math.sqrt(x) end)
check_numbers("the slope of a number by way of tensors", function(x, _, w) return ops.sum(w * x * x + ops.full({ 4 }, x)) end)
check_numbers("a slope that depends on comparisons", function(x, y)
  local sum = x
  while sum < 6 do sum = sum * 2 + y end
  return sum * x
end)
check_numbers("the slope of an element that is taken out", function(x, _, w) return ops.sum(w * x):item() * x end)
t.test("the slope of the slope of a number", function()
  local second = ms.grad(ms.grad(function(x) return x ^ 3 * math.sin(x) end))
  local f = ms.jit(second)
  for i = 1, 14 do t.near(f(i * 0.25), second(i * 0.25), 1e-9) end
end)

t.test("a list of losses that the loss reads again", function()
  local function make()
    local log = { 1.0 }
    return ms.value_and_grad(function(v, k)
      log[#log + 1] = ops.sum(v * v):item()
      return ops.sum(v) * log[k] * log[#log]
    end)
  end
  local plain, f = make(), ms.jit(make())
  for i = 1, 12 do
    local w, k = ms.tensor { 0.5, 0.1 * i }, i % 3 == 0 and i + 1 or (i + 1) // 2
    t.near({ f(w, k) }, { plain(w, k) }, 1e-5)
  end
end)
t.test("powers at the edges", function()
  local function make() return ms.value_and_grad(function(v, e) return ops.sum(v ^ e) + ops.sum(ops.pow(v, e)) end) end
  local plain, f = make(), ms.jit(make())
  for _, e in ipairs { 2, 1, 0, 3, 2.0, 1.0, 0.0, 3.0, -1.0, 0.5 } do
    local w = e == 0.5 and ms.tensor { 0.5, 2.0 } or ms.tensor { -2.0, 0.5, 3.0 }
    t.near({ f(w, e) }, { plain(w, e) }, 1e-5)
    if e > 0 and e ~= 0.5 then t.near({ f(w * 0, e) }, { plain(w * 0, e) }, 1e-5) end
  end
end)
t.test("what has no gradient is refused for numbers that change, too", function()
  local f = ms.jit(ms.grad(function(x) return math.floor(x) * x + tonumber("1") * #tostring(x) end))
  local plain = ms.grad(function(x) return math.floor(x) * x + tonumber("1") * #tostring(x) end)
  for i = 1, 6 do
    local ok, message = pcall(plain, i + 0.5)
    local ok2, message2 = pcall(f, i + 0.5)
    t.equal({ ok2, ok2 or (message2:gsub("^.-:%d+: ", "")) }, { ok, ok or (message:gsub("^.-:%d+: ", "")) })
  end
  for _, bad in ipairs {
    function(x) return tonumber(tostring(x)) end, function(x) return ({ [x] = 1 })[x] * x end,
    function(x) return ops.sum(ops.one_hot(ms.tensor { 0 }, 2, x, 0.0)) end,
  } do
    local g, h = ms.grad(bad), ms.jit(ms.grad(bad))
    for i = 1, 4 do
      local a, b = { pcall(g, i * 0.5) }, { pcall(h, i * 0.5) }
      t.equal(b[1], a[1])
      if a[1] then t.near(b[2], a[2], 1e-6) end
    end
  end
end)
t.test("attributes of differentiated operators that change", function()
  local uses = {
    leaky_relu = function(v, a) return ops.leaky_relu(v, a) end,
    elu = function(v, a) return ops.elu(v, a) end,
    huber = function(v, a) return ops.huber_loss(v, v * 0, "mean", a) end,
    layer_norm = function(v, a) return ops.layer_norm(v, { 4 }, ops.ones { 4 }, ops.zeros { 4 }, a) end,
    cross_entropy = function(v, a)
      return ops.cross_entropy(v:reshape(2, 2), ms.tensor { 0, 1 }, nil, -100, "mean", a / 10)
    end,
    norm = function(v, a) return ops.norm(v, a + 1) end,
    nan_to_num = function(v, a) return ops.nan_to_num(v / 0 * v, a, a, a) end,
  }
  for name, use in pairs(uses) do
    local function make()
      return ms.value_and_grad(function(v, a) return ops.sum(use(v, a) * 1.5) end)
    end
    local plain, f = make(), ms.jit(make())
    for i = 1, 6 do
      local w, a = ms.tensor { 0.5, -1.0, 2.0, 0.1 * i }, 0.37 * i
      local ok, message = pcall(t.near, { f(w, a) }, { plain(w, a) }, 1e-5)
      if not ok then error(name .. ": " .. message) end
    end
  end
end)
t.test("a number that is differentiated beside one that changes", function()
  local function make() return ms.value_and_grad(function(a, i) return a * a * i + i end) end
  local plain, f = make(), ms.jit(make())
  for i = 1, 20 do t.near({ f(0.5 * i, i) }, { plain(0.5 * i, i) }, 1e-12) end
end)
t.test("parameters are keys: an optimizer of one's own", function()
  local function make()
    local parameters = { ms.Parameter(ops.ones { 3 }, "a"), ms.Parameter(ops.ones { 2 } * 2, "b") }
    local moments, count = {}, 0
    return parameters, moments, function(x)
      local loss, g = ms.value_and_grad(function()
        return ops.sum(parameters[1] * x) + ops.sum(parameters[2] * parameters[2])
      end, nil, parameters)()
      count = count + 1
      for i, w in ipairs(parameters) do
        moments[w] = 0.9 * (moments[w] or 0) + g[i]
        ops.assign(w, w - 0.01 / count * moments[w])
      end
      return loss
    end
  end
  local expected, expected_moments, plain = make()
  local parameters, moments, step = make()
  local f = ms.jit(step)
  for i = 1, 12 do
    local x = ms.tensor { i * 1.0, 2.0, 3.0 }
    t.near(f(x), plain(x), 1e-6)
    local count = 0
    for w in pairs(moments) do
      count = count + 1
      t.equal(rawequal(w, parameters[1]) or rawequal(w, parameters[2]), true)
    end
    t.equal(count, 2)
    for k, w in ipairs(parameters) do
      t.near(w, expected[k], 1e-6)
      t.near(moments[w], expected_moments[expected[k]], 1e-5)
    end
  end
  t.equal(ms.jit_report(f).compiled_calls >= 8, true)
end)
t.test("parameters are keys within a derivative", function()
  local w, m = ms.Parameter(ops.ones { 2 }, "w"), {}
  local function f(x)
    m[w] = x * 2
    return ops.sum(m[w] * x)
  end
  t.equal(ms.grad(f)(ops.ones { 2 }):tolist(), { 4.0, 4.0 })
  t.equal(m[w]:tolist(), { 2.0, 2.0 })
  t.equal(next(m, w), nil)
end)
t.test("a tensor that the function makes is a key", function()
  local function make()
    local kept = {}
    return kept, function(x)
      local y = x * 2
      kept[#kept + 1] = y
      kept[y] = #kept
      return kept[y], y
    end
  end
  local kept, step = make()
  local f = ms.jit(step)
  for i = 1, 6 do
    local n, y = f(ms.tensor { i * 1.0 })
    t.equal(n, i)
    t.equal(y:item(), 2.0 * i)
    t.equal(kept[kept[i]], i)
  end
end)
t.test("second derivatives", function()
  local function make()
    return function(w, i)
      return ms.grad(function(v) return ops.sum(ms.grad(function(u) return ops.sum(u * u * u) * i end)(v) / (i + 1)) end)(w)
    end
  end
  local plain, f = make(), ms.jit(make())
  for i = 1, 20 do
    local w = ms.tensor { 0.5, i * 1.0 }
    t.near(f(w, i), plain(w, i), 1e-6)
  end
end)
t.finish()
