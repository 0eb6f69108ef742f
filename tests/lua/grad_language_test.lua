-- Every construct of the language under ms.grad: the value must be that of a plain call and the slope that of central
-- differences. Each function takes one float.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

if not ms.value_and_grad then
  print("1 waiting for: ms.value_and_grad")
  t.finish()
end

local function check(name, f, x)
  t.test(name, function()
    local at, step = x or 1.3, 1e-5
    local high, low = (f(at + step)), (f(at - step))
    local value, slope = ms.value_and_grad(f)(at)
    t.equal(value, (f(at)))
    t.near(slope, (high - low) / (2 * step), 1e-7)
  end)
end

local function with(metamethods, x) return setmetatable({ v = x }, metamethods) end

check("arithmetic of floats", function(x) return x + x * x - x / (x + 1) + x ^ 3 + 2 ^ x + x ^ x - -x end)
check("remainder and floor division", function(x) return x % 0.7 + 5.3 % x + x // 0.4 + (x * 7) // x end)
check("integers stay integers", function(x) return x * (7 // 2) + x * (7 % 4) + x * (1 << 3) + x * (5 & 6 | 8 ~ 1) end)
check("an integer times a float that is followed", function(x) return 3 * x + x * 3 + 3 / x + 2 ^ (x * 2) end)

for _, name in ipairs { "sin", "cos", "tan", "asin", "acos", "atan", "exp", "sqrt", "log", "abs", "floor", "ceil" } do
  check("math." .. name, function(x) return x * math[name](x) + math[name](x * 0.9) end, 0.37)
end
check("math.atan of two", function(x) return math.atan(x, 2) + math.atan(2, x) + math.atan(x, 2 + x ^ 2) end)
check("math.log to a base", function(x) return math.log(x, 2) + math.log(x, 10) + math.log(7, x) end)
check("math.max and math.min", function(x) return math.max(1, x * x, x) + math.min(9, x, 2 * x) end)
check("math.fmod and math.modf", function(x)
  local whole, part = math.modf(x * 3)
  return math.fmod(x, 0.7) + part * x + whole
end)
check("math functions without a slope", function(x)
  return x * math.tointeger(3.0) + (math.type(x) == "float" and x or 0) + (math.ult(1, 2) and x or 0) + x * math.huge ^ -1
end)

check("and, or, not", function(x)
  return (x > 1 and x * 2 or x * 3) + (x < 1 and x * 2 or x * 3) + (not (x > 1) and 1 or x) + (nil or x) + (false or x * x)
end)
check("comparison chains", function(x)
  if x == 1.3 then return x * x elseif x ~= x then return 0 elseif x <= 1.3 then return x * x end
  return x * x
end)

check("several assignments at once", function(x)
  local a, b, c = x, x * 2, nil
  a, b = b, a
  c, a = a * b, c
  return (a or 1) * b + c
end)
check("evaluation before assignment", function(x)
  local i, list = 1, { x, x * 2, x * 3 }
  i, list[i] = i + 1, x * 10
  return list[1] * list[i]
end)
check("blocks and shadows", function(x)
  local a = x
  do
    local a = a * 2 -- luacheck: ignore
    x = x + a
  end
  return a * x
end)
check("constants", function(x)
  local k <const> = x * 2
  local three <const> = 3
  return k * three
end)
check("to-be-closed variables", function(x)
  local a = x
  do
    local _ <close> = setmetatable({}, { __close = function() a = a * x end })
    a = a * 3
  end
  return a
end)

check("numeric loops", function(x)
  local s = 0
  for i = 1, 3 do s = s + x ^ i end
  for i = 3, 1, -1 do s = s * x + i end
  for i = 1, 0 do s = s * i * 100 end
  for step = 0.5, 1.5, 0.5 do s = s + step * x end
  return s
end)
check("a loop whose bound is followed", function(x)
  local s = 0
  for i = x, x + 2 do s = s + i * i end
  return s
end)
check("while, repeat, break, goto", function(x)
  local s, i = x, 0
  while true do
    i = i + 1
    if i == 2 then goto continue end
    if i > 4 then break end
    s = s * x
    ::continue::
  end
  repeat
    local done = s > 50
    s = s * 1.5
  until done
  return s
end)
check("goto out of two loops, and back", function(x)
  local s, round = x, 0
  ::again::
  for _ = 1, 3 do
    for j = 1, 3 do
      s = s + j * x
      if j == 2 then goto out end
    end
  end
  ::out::
  round = round + 1
  if round < 3 then goto again end
  return s * s
end)
check("generic loops", function(x)
  local s, list = 0, { x, x * 2, x * 3, n = x }
  for i, v in ipairs(list) do s = s + i * v * v end
  for _, v in pairs(list) do s = s + v end
  for k, v in next, list do if k == "n" then s = s * v end end
  return s
end)
check("an iterator that is a closure", function(x)
  local function powers(n)
    local i, y = 0, 1
    return function()
      i = i + 1
      y = y * x
      if i <= n then return i, y end
    end
  end
  local s = 0
  for i, y in powers(4) do s = s + i * y end
  return s
end)
check("an iterator with __call", function(x)
  local s = 0
  for y in setmetatable({ left = 3 }, { __call = function(self)
    self.left = self.left - 1
    if self.left >= 0 then return x * self.left end
  end }) do s = s + y * y end
  return s
end)

check("varargs", function(x)
  local function sum(...)
    local s = 0
    for i = 1, select("#", ...) do s = s + i * (select(i, ...)) end
    return s, ...
  end
  local packed = table.pack(sum(x, x * x, 3))
  local a, b = (sum(x)), select(-1, sum(x, x * 5))
  local first, second, third = sum(x, x ^ 3)
  return packed[1] + packed[3] * packed.n + a * b + first * second * third
end)
check("results in the middle are cut to one", function(x)
  local function two() return x, x * 10 end
  local list = { two(), two() }
  return list[1] * list[2] * list[3] + (two()) * #list
end)
check("select with more results", function(x)
  local a, b = select(2, 1, x, x * 2)
  local function f(p, q) return p * q end
  return a + b + f(select(2, 1, x, x * 2))
end)
check("string keys and string work", function(x)
  local keys, s = {}, 0
  for word in ("one two three"):gmatch("%a+") do keys[#keys + 1] = word:upper() end
  local values = { ONE = x, TWO = x * x, THREE = x ^ 3 }
  for i, key in ipairs(keys) do s = s + values[key] * i * #key end
  return s + tonumber(("%d"):format(3)) * x
end)

check("tables share what they hold", function(x)
  local a = { v = x }
  local b, c = a, { inner = a }
  b.v = b.v * x
  c.inner.v = c.inner.v + a.v
  return a.v * x
end)
check("table functions", function(x)
  local list = { x, 2 * x, -x }
  table.insert(list, 1, x * x)
  table.insert(list, 4 * x)
  local last, second = table.remove(list), table.remove(list, 2)
  local a, b = table.unpack(list, 2)
  local moved = table.move(list, 1, 3, 2, {})
  return last * second + a * b + moved[2] * moved[4] + #list * x
end)
check("table.sort moves what is followed", function(x)
  local list = { 3 * x, x, 2 * x }
  table.sort(list)
  local s = list[1] + 10 * list[2] + 100 * list[3]
  table.sort(list, function(a, b) return a > b end)
  return s + list[1] * list[3]
end)
check("raw access and next", function(x)
  local u = setmetatable({}, { __index = function() return 5 end })
  rawset(u, "a", x * x)
  local _, v = next({ x })
  return rawget(u, "a") + u.b * v + rawlen({ x, x }) * x + (rawequal(u, u) and x or 0)
end)

check("closures over one variable", function(x)
  local n = x
  local function add(y) n = n + y end
  local function get() return n end
  add(x * x)
  n = n * 2
  add(get())
  return n * get()
end)
check("a closure per turn of a loop", function(x)
  local list = {}
  for i = 1, 3 do
    local y = x * i
    list[i] = function(z)
      y = y * z
      return y
    end
  end
  return list[1](x) + list[2](2) + list[2](x) + list[3](1)
end)
check("recursion, mutual and in tail position", function(x)
  local even, odd
  function even(n, y) if n == 0 then return y end return odd(n - 1, y * x) end
  function odd(n, y) if n == 0 then return -y end return even(n - 1, y + x) end
  local function fib(n) if n < 2 then return x end return fib(n - 1) + fib(n - 2) * x end
  return even(6, x) + odd(4, x) + fib(6)
end)
check("functions as values", function(x)
  local function compose(f, g) return function(...) return f(g(...)) end end
  local table_of = { sin = math.sin, double = function(y) return y + y end }
  local f = compose(table_of.sin, table_of.double)
  for _ = 1, 2 do f = compose(f, f) end
  return f(x)
end)
check("methods and inheritance", function(x)
  local Base = {}
  Base.__index = Base
  function Base.new(class, v) return setmetatable({ v = v }, class) end
  function Base:scale(k) self.v = self.v * k return self end
  function Base:value() return self.v end
  local Derived = setmetatable({}, { __index = Base })
  Derived.__index = Derived
  function Derived:value() return Base.value(self) + self.v ^ 2 end
  return Base.new(Derived, x):scale(x):scale(3):value() + Base.new(Base, x):value()
end)

local binary = {
  __add = function(a, b) return a + b end,
  __sub = function(a, b) return a - b end,
  __mul = function(a, b) return a * b end,
  __div = function(a, b) return a / b end,
  __mod = function(a, b) return a % b end,
  __pow = function(a, b) return a ^ b end,
  __idiv = function(a, b) return a // b end,
  __concat = function(a, b) return a .. b end,
  __band = function(a, b) return a & b end,
  __bor = function(a, b) return a | b end,
  __bxor = function(a, b) return a ~ b end,
  __shl = function(a, b) return a << b end,
  __shr = function(a, b) return a >> b end,
}
for name, call in pairs(binary) do
  check("metamethod " .. name, function(x)
    local m = { [name] = function(a, b) return a.v * b.v * x end }
    return call(with(m, x), with(m, x * x))
  end)
end
check("metamethods of one operand", function(x)
  local m = {
    __unm = function(a) return a.v * 2 end,
    __len = function(a) return a.v * 3 end,
    __bnot = function(a) return a.v ^ 2 end,
  }
  return -with(m, x) * #with(m, x) * ~with(m, x)
end)
check("metamethods that compare", function(x)
  local m = {
    __lt = function(a, b) return a.v < b.v end,
    __le = function(a, b) return a.v <= b.v end,
    __eq = function(a, b) return a.v == b.v end,
  }
  local a, b = with(m, x), with(m, 2 * x)
  return (a < b and x or 0) + (a <= b and x * x or 0) + (a == b and 0 or x) + (a > b and 1 or a.v * b.v)
end)
check("__index and __newindex", function(x)
  local store = {}
  local proxy = setmetatable({}, {
    __index = function(_, key) return (store[key] or x) * #key end,
    __newindex = function(_, key, value) store[key] = value * 2 end,
  })
  local before = proxy.abc
  proxy.abc = x * x
  return before + proxy.abc * proxy.z
end)
check("__call gets its arguments", function(x)
  local m = { __call = function(self, y, z) return self.v * y, z end }
  local a, b = with(m, x)(x, x * x)
  return a * b
end)

check("pcall gives results", function(x)
  local ok, a, b = pcall(function(y) return y * x, y end, x)
  local ok2, ok3, v = pcall(pcall, function() return x end)
  local bad, message = pcall(function() error("no" .. 1) end)
  return (ok and a or 0) * b + (ok2 and ok3 and v or 0) + (bad and 0 or #message * x)
end)
check("pcall gives what was raised", function(x)
  local bad, e = pcall(function() error({ value = x * x }) end)
  local worse, number = pcall(error, x)
  return (bad and 0 or e.value) + (worse and 0 or number)
end)
check("an error half way leaves what was written", function(x)
  local a = x
  pcall(function()
    a = a * x
    error("stop")
  end)
  return a * 3
end)
check("xpcall with a handler", function(x)
  local ok, v = xpcall(function(y) return y * x end, function(e) return e end, x)
  local bad, handled = xpcall(function() error(x * 1.0) end, function(e) return e * 2 end)
  return (ok and v or 0) + (bad and 0 or handled)
end)
check("assert gives its arguments back", function(x)
  local a, b = assert(x * x, x)
  return a * b
end)
check("load of a text", function(x) return load("local x = ... return x * x + 1")(x) end)
check("require and globals", function(x)
  _G.grad_language = x * 2
  local result = _ENV.grad_language * _G.grad_language
  _ENV.grad_language = result * x
  result = _G.grad_language + result
  _G.grad_language = nil
  return result + require("lunaria").grad(math.sin)(x)
end)

t.finish()
