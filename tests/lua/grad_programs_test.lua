-- Programs as people write them, differentiated up to three times: control flow, recursion, closures, tables, strings.
-- Each takes a float; where the formula is known it stands behind the program, otherwise differences judge.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local function check(name, orders, x, f, formula)
  t.test(name, function()
    local value, slope = ms.value_and_grad(f)(x)
    t.equal(value, (f(x)))
    if formula then t.near(slope, formula(x), 1e-9) end
    local h, g = 1e-4, f
    for order = 1, orders do
      local d = ms.grad(g)
      t.near(d(x), ((g(x + h)) - (g(x - h))) / (2 * h), order < 3 and 1e-5 or 1e-4)
      g = d
    end
  end)
end

-- Control flow.
check("Newton's square root", 3, 2.7, function(x)
  local y = x
  while math.abs(y * y - x) > 1e-13 do y = 0.5 * (y + x / y) end
  return 0.5 * (y + x / y)
end, function(x) return 0.5 / math.sqrt(x) end)
check("a fixed point with a bound on the rounds", 2, 0.4, function(x)
  local y, rounds = 1.0, 0
  repeat
    local before = y
    y = math.cos(x * y)
    rounds = rounds + 1
  until math.abs(y - before) < 1e-14 or rounds > 200
  return y
end)
check("Horner's rule", 3, 1.3, function(x)
  local p = 0
  for _, c in ipairs { 2, -1, 0.5, 3 } do p = p * x + c end
  return p
end, function(x) return 6 * x ^ 2 - 2 * x + 0.5 end)
check("a continued fraction", 3, 0.8, function(x)
  local y = 1.0
  for i = 12, 1, -1 do y = i + x / y end
  return y
end)
check("exp by its series", 3, 0.9, function(x)
  local sum, term, n = 0, 1, 0
  while math.abs(term) > 1e-18 do
    sum = sum + term
    n = n + 1
    term = term * x / n
  end
  return sum
end, math.exp)
check("the arithmetic-geometric mean", 2, 1.7, function(x)
  local a, g = 1.0, x
  for _ = 1, 6 do a, g = (a + g) / 2, math.sqrt(a * g) end
  return a
end)
check("Euler's steps of a pendulum", 2, 0.6, function(x)
  local angle, speed = x, 0
  for _ = 1, 30 do speed, angle = speed - 0.05 * math.sin(angle), angle + 0.05 * speed end
  return angle * speed
end)
check("Runge and Kutta's steps", 3, 0.5, function(x)
  local function slope(time, y) return x * y - time end
  local y, h = 1.0, 0.1
  for i = 0, 9 do
    local time = i * h
    local k1 = slope(time, y)
    local k2 = slope(time + h / 2, y + h / 2 * k1)
    local k3 = slope(time + h / 2, y + h / 2 * k2)
    local k4 = slope(time + h, y + h * k3)
    y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
  end
  return y
end)
check("bisection of what it then corrects", 1, 3.0, function(x)
  local low, high = 0.0, 4.0
  for _ = 1, 50 do
    local middle = (low + high) / 2
    if middle ^ 3 < x then low = middle else high = middle end
  end
  local root = (low + high) / 2
  return root - (root ^ 3 - x) / (3 * root ^ 2)
end)
check("pieces of a spline", 2, 1.4, function(x)
  if x < 0 then return 0 * x elseif x < 1 then return x ^ 3 elseif x < 2 then return 1 + 3 * (x - 1) + 3 * (x - 1) ^ 2 end
  return 7 + 9 * (x - 2)
end, function(x) return 3 + 6 * (x - 1) end)
check("nested loops with two ways out", 2, 1.1, function(x)
  local s = 0
  for i = 1, 6 do
    for j = 1, 6 do
      if (i + j) % 5 == 0 then goto next_i end
      if i * j > 12 then return s * x end
      s = s + x ^ (i % 3) * j
    end
    ::next_i::
  end
  return s
end)
check("a state machine", 2, 0.7, function(x)
  local state, y, steps = "grow", x, 0
  while state ~= "done" do
    steps = steps + 1
    if state == "grow" then
      y = y * 1.5 + x
      if y > 4 then state = "shrink" end
    elseif state == "shrink" then
      y = y - x * x
      if y < 2 then state = "turn" end
    else
      y, state = -y, "done"
    end
  end
  return y * steps
end)
check("Collatz beside a number", 1, 0.3, function(x)
  local n, y = 7, 1.0
  while n ~= 1 do
    if n % 2 == 0 then n = n // 2 else n = 3 * n + 1 end
    y = y + math.sin(x * n) * 1e-2
  end
  return y
end)
check("integers that run over", 2, 1.2, function(x)
  local n, s = math.maxinteger - 1, 0
  for i = math.maxinteger - 2, math.maxinteger do
    n = n + 1
    s = s + x * ((i ~ n) & 7) + (n < 0 and x * x or 0)
  end
  return s
end)
check("the larger of many, at different places", 2, 0.4, function(x)
  local best, where = -math.huge, 0
  for i = 1, 7 do
    local y = math.sin(i * x) * i
    if y > best then best, where = y, i end
  end
  return best * where
end)

-- Recursion.
check("powers by squaring", 3, 1.1, function(x)
  local function power(y, n)
    if n == 0 then return 1 end
    if n % 2 == 1 then return y * power(y, n - 1) end
    local half = power(y, n // 2)
    return half * half
  end
  return power(x, 11)
end, function(x) return 11 * x ^ 10 end)
check("Legendre's polynomials", 3, 0.35, function(x)
  local function p(n)
    if n == 0 then return 1 elseif n == 1 then return x end
    return ((2 * n - 1) * x * p(n - 1) - (n - 1) * p(n - 2)) / n
  end
  return p(6)
end)
check("Chebyshev's polynomials with a memory", 3, 0.6, function(x)
  local memory = { [0] = 1, x }
  local function c(n)
    if not memory[n] then memory[n] = 2 * x * c(n - 1) - c(n - 2) end
    return memory[n]
  end
  return c(8)
end, function(x) local a = math.acos(x) return 8 * math.sin(8 * a) / math.sin(a) end)
check("Ackermann's shape", 2, 1.2, function(x)
  local function a(m, y)
    if m == 0 then return y * x end
    if y > 5 then return y end
    return a(m - 1, a(m, y + x)) * 0.5
  end
  return a(2, x * 1.01)
end)
check("the value of a tree", 2, 0.8, function(x)
  local function grow(depth) return depth == 0 and x or { grow(depth - 1), op = depth % 2 == 0 and "+" or "*", grow(depth - 1) } end
  local function value(node)
    if type(node) ~= "table" then return node end
    local a, b = value(node[1]), value(node[2])
    return node.op == "+" and a + b or a * b * 0.9
  end
  return value(grow(4))
end)
check("quicksort of what is differentiated", 2, 0.9, function(x)
  local function sort(list)
    if #list < 2 then return list end
    local pivot, less, more = list[1], {}, {}
    for i = 2, #list do
      if list[i] < pivot then less[#less + 1] = list[i] else more[#more + 1] = list[i] end
    end
    local result = sort(less)
    result[#result + 1] = pivot
    for _, v in ipairs(sort(more)) do result[#result + 1] = v end
    return result
  end
  local sorted = sort { 3 * x, x * x, math.sin(x), 2, -x, x ^ 3 }
  local s = 0
  for i, v in ipairs(sorted) do s = s + i * v end
  return s
end)
check("mutual recursion over a list", 2, 1.3, function(x)
  local list = { x, 2, x * x, 3 }
  local add, multiply
  function add(i, y) if i > #list then return y end return multiply(i + 1, y + list[i]) end
  function multiply(i, y) if i > #list then return y end return add(i + 1, y * list[i]) end
  return add(1, 0)
end)
check("the fixed point combinator", 3, 1.4, function(x)
  local function fix(f) return (function(g) return g(g) end)(function(g) return f(function(...) return g(g)(...) end) end) end
  return fix(function(self) return function(n, y) if n == 0 then return y end return self(n - 1, y * x) end end)(5, 1)
end, function(x) return 5 * x ^ 4 end)
check("tail calls by hundreds", 2, 0.7, function(x)
  local function go(n, y) if n == 0 then return y end return go(n - 1, math.sin(y) + x * 0.1) end
  return go(400, x)
end)
check("dynamic programming over two words", 2, 0.6, function(x)
  local a, b, row = "kitten", "sitting", {}
  for j = 0, #b do row[j] = j * x end
  for i = 1, #a do
    local corner
    corner, row[0] = row[0], i * x
    for j = 1, #b do
      local cost = a:sub(i, i) == b:sub(j, j) and 0 or x * x + 0.7
      corner, row[j] = row[j], math.min(row[j] + x, row[j - 1] + x, corner + cost)
    end
  end
  return row[#b]
end)

-- Closures and functions of functions.
check("compositions by a fold", 3, 0.5, function(x)
  local function fold(list, f, start) for _, v in ipairs(list) do start = f(start, v) end return start end
  local composed = fold({ math.sin, function(y) return y * y end, math.exp }, function(f, g)
    return function(y) return g(f(y)) end
  end, function(y) return y end)
  return composed(x)
end, function(x) local s = math.sin(x) return math.exp(s * s) * 2 * s * math.cos(x) end)
check("currying", 3, 1.2, function(x)
  local function curry(f, n, ...)
    if n == 0 then return f(...) end
    local given = table.pack(...)
    return function(v)
      local all = table.move(given, 1, given.n, 1, {})
      all[given.n + 1] = v
      return curry(f, n - 1, table.unpack(all, 1, given.n + 1))
    end
  end
  return curry(function(a, b, c) return a * b + c ^ 2 * a end, 3)(x)(x + 1)(2 * x)
end)
check("Church's numerals", 3, 1.1, function(x)
  local function number(n) return function(f) return function(y) for _ = 1, n do y = f(y) end return y end end end
  local function times(a, b) return function(f) return a(b(f)) end end
  return times(number(2), number(3))(function(y) return y * x end)(1)
end, function(x) return 6 * x ^ 5 end)
check("a counter that several closures share", 2, 0.9, function(x)
  local function account(start)
    local balance = start
    return { add = function(v) balance = balance + v * x end, read = function() return balance end,
      reset = function() local old = balance balance = x return old end }
  end
  local a, b = account(x), account(1)
  for i = 1, 3 do a.add(i) b.add(a.read()) end
  return a.reset() * b.read() + a.read()
end)
check("continuations", 2, 1.3, function(x)
  local function add(a, b, k) return k(a + b) end
  local function multiply(a, b, k) return k(a * b) end
  return add(x, 2, function(s) return multiply(s, s, function(p) return add(p, x, function(r) return r * x end) end) end)
end)
check("lazy values", 2, 0.7, function(x)
  local forced = 0
  local function lazy(f)
    local known, value = false, nil
    return function()
      if not known then forced = forced + 1 value = f() known = true end
      return value
    end
  end
  local a = lazy(function() return x * x end)
  local b = lazy(function() return a() * a() + x end)
  return b() * a() + b() + forced
end)
check("a stream of numbers", 2, 0.4, function(x)
  local function stream(v, f) return { head = v, tail = function() return stream(f(v), f) end } end
  local s, sum = stream(x, function(v) return v * x + 0.1 end), 0
  for _ = 1, 6 do sum, s = sum + s.head, s.tail() end
  return sum
end)
check("a memory keyed by strings", 2, 0.8, function(x)
  local calls, memory = 0, {}
  local function f(a, b)
    local key = a .. "," .. b
    if memory[key] == nil then
      calls = calls + 1
      memory[key] = (a == 0 or b == 0) and 1 or x * f(a - 1, b) + f(a, b - 1)
    end
    return memory[key]
  end
  return f(4, 4) + calls * 0
end)
check("varargs through several functions", 2, 1.1, function(x)
  local function sum(...) local s = 0 for _, v in ipairs { ... } do s = s + v end return s end
  local function scaled(k, ...) local list = { ... } for i = 1, #list do list[i] = list[i] * k end return table.unpack(list) end
  local function both(f, g, ...) return f(g(...)) end
  return both(sum, function(...) return scaled(x, ...) end, x, 2, x * x, select("#", x, x)) + sum(scaled(2, x), x)
end)

-- Tables and objects.
check("a matrix power", 2, 0.6, function(x)
  local m, r = { { x, 1 }, { 0.5, x * x } }, { { 1, 0 }, { 0, 1 } }
  for _ = 1, 4 do
    local p = { {}, {} }
    for i = 1, 2 do for j = 1, 2 do p[i][j] = r[i][1] * m[1][j] + r[i][2] * m[2][j] end end
    r = p
  end
  return r[1][1] + r[2][2] + r[1][2] * r[2][1]
end)
check("Gaussian elimination in tables", 2, 1.5, function(x)
  local a = { { x, 2, 1, 1 }, { 1, x * x, 0.5, 2 }, { 0.3, 1, 3, x } }
  for c = 1, 3 do
    for r = 1, 3 do
      if r ~= c then
        local k = a[r][c] / a[c][c]
        for j = c, 4 do a[r][j] = a[r][j] - k * a[c][j] end
      end
    end
  end
  return a[1][4] / a[1][1] + a[2][4] / a[2][2] * a[3][4] / a[3][3]
end)
check("a queue and a stack", 2, 0.9, function(x)
  local queue, stack, s = { x, x * 2 }, {}, 0
  for i = 1, 8 do
    local v = table.remove(queue, 1)
    stack[#stack + 1] = v * x
    table.insert(queue, v + i * 0.1)
    if i % 3 == 0 then table.insert(queue, 1, table.remove(stack)) end
  end
  while #stack > 0 do s = s * 0.5 + table.remove(stack) end
  return s + queue[1]
end)
check("linked lists, turned round in place", 2, 1.2, function(x)
  local list
  for i = 1, 5 do list = { v = x ^ i, next = list } end
  local turned
  while list do list, list.next, turned = list.next, turned, list end
  local s, k = 0, 1
  while turned do s, k, turned = s + k * turned.v, k * 2, turned.next end
  return s
end)
check("a graph that is walked", 2, 0.7, function(x)
  local edges = { a = { b = x, c = 4 }, b = { c = x * x, d = 5 }, c = { d = x }, d = {} }
  local distance, seen = { a = 0 }, {}
  while true do
    local node
    for name, d in pairs(distance) do if not seen[name] and (not node or d < distance[node]) then node = name end end
    if not node then break end
    seen[node] = true
    for name, w in pairs(edges[node]) do
      local d = distance[node] + w
      if not distance[name] or d < distance[name] then distance[name] = d end
    end
  end
  return distance.d
end, function(x) return 2 + 2 * x end)
check("dual numbers by metamethods", 3, 0.8, function(x)
  local Dual = {}
  Dual.__index = Dual
  local function dual(v, d) return setmetatable({ v = v, d = d }, Dual) end
  Dual.__add = function(a, b) return dual(a.v + b.v, a.d + b.d) end
  Dual.__mul = function(a, b) return dual(a.v * b.v, a.v * b.d + a.d * b.v) end
  function Dual:sin() return dual(math.sin(self.v), math.cos(self.v) * self.d) end
  local z = dual(x, 1)
  return ((z * z):sin() + z * z * z).d
end)
check("complex numbers by metamethods", 2, 0.3, function(x)
  local C = {}
  C.__add = function(a, b) return setmetatable({ a[1] + b[1], a[2] + b[2] }, C) end
  C.__mul = function(a, b) return setmetatable({ a[1] * b[1] - a[2] * b[2], a[1] * b[2] + a[2] * b[1] }, C) end
  C.__len = function(a) return a[1] * a[1] + a[2] * a[2] end
  local c, z = setmetatable({ x, 0.2 }, C), setmetatable({ 0, 0 }, C)
  for _ = 1, 6 do z = z * z + c end
  return #z
end)
check("polynomials as objects", 3, 0.9, function(x)
  local P = {}
  P.__index = P
  P.__call = function(p, y) local s = 0 for i = #p, 1, -1 do s = s * y + p[i] end return s end
  P.__mul = function(p, q)
    local r = setmetatable({}, P)
    for i = 1, #p + #q - 1 do r[i] = 0 end
    for i, a in ipairs(p) do for j, b in ipairs(q) do r[i + j - 1] = r[i + j - 1] + a * b end end
    return r
  end
  local p = setmetatable({ x, 1, 2 }, P)
  return (p * p * p)(x)
end)
check("a class with a parent and a counter", 2, 1.1, function(x)
  local made = 0
  local Shape = { scale = function(self, k) self.size = self.size * k return self end }
  Shape.__index = Shape
  local function class(parent, fields) fields.__index = fields return setmetatable(fields, { __index = parent, __call = function(c, s)
    made = made + 1
    return setmetatable({ size = s }, c)
  end }) end
  local Circle = class(Shape, { area = function(self) return 3 * self.size ^ 2 end })
  local Ring = class(Circle, { area = function(self) return Circle.area(self) - Circle(self.size / 2):area() end })
  return Ring(x):scale(x):area() + Circle(2 * x):area() * made
end)
check("defaults behind missing fields", 2, 0.6, function(x)
  local defaults = setmetatable({ rate = x }, { __index = function(self, k) local v = x * #k rawset(self, k, v) return v end })
  local options = setmetatable({ size = 2 }, { __index = defaults })
  return options.rate * options.size + options.width * options.width + rawget(defaults, "width")
end)
check("a proxy that notes every write", 2, 1.2, function(x)
  local log, store = {}, {}
  local p = setmetatable({}, { __newindex = function(_, k, v) log[#log + 1] = v store[k] = v * x end, __index = store })
  p.a, p.b = x, x * x
  p.a = p.a + p.b
  return p.a + log[1] * log[3] + #log
end)
check("tables as keys", 2, 0.8, function(x)
  local a, b, weight = {}, {}, {}
  weight[a], weight[b] = x, x * x
  for k, v in pairs(weight) do weight[k] = v * 2 end
  return weight[a] * weight[b] + weight[a]
end)
check("fields removed while a table is walked", 2, 0.9, function(x)
  local list = { a = x, b = x * x, c = x ^ 3 }
  local s = 0
  for k, v in pairs(list) do s = s + v * #k if k ~= "b" then list[k] = nil end end
  return s + list.b + (list.a or x)
end)
check("table.concat beside numbers, string keys from gsub", 2, 1.4, function(x)
  local names = ("alpha beta gamma"):gsub("%a+", string.upper)
  local s, values = 0, { ALPHA = x, BETA = x * x, GAMMA = 1 }
  for name in names:gmatch("%u+") do s = s + values[name] * #name end
  return s + #table.concat({ "a", 1, 2.5 }, "-")
end)

-- Errors, coroutines outside, several results.
check("division that may fail", 2, 0.7, function(x)
  local function divide(a, b) if b == 0 then error "zero" end return a / b end
  local s = 0
  for i = -1, 1 do
    local ok, v = pcall(divide, x, i)
    s = s + (ok and v * v or x ^ 3)
  end
  return s
end, function(x) return 4 * x + 3 * x ^ 2 end)
check("a parser that raises its value", 2, 0.6, function(x)
  local tokens, at = { "(", "x", "+", 2, ")", "*", "x", "!" }, 0
  local function peek() return tokens[at + 1] end
  local function take() at = at + 1 return tokens[at] end
  local sum
  local function atom()
    local k = take()
    if k == "(" then local v = sum() take() return v end
    return k == "x" and x or k
  end
  local function product() local v = atom() while peek() == "*" do take() v = v * atom() end return v end
  function sum()
    local v = product()
    while peek() == "+" do take() v = v + product() end
    if peek() == "!" then error({ value = v }) end
    return v
  end
  return select(2, pcall(sum)).value
end, function(x) return 2 * x + 2 end)
check("several results in all places", 2, 1.1, function(x)
  local function three(y) return y, y * y, y ^ 3 end
  local a, b, c, d = three(x)
  local list = { three(a), three(b), (three(c)) }
  local function last(...) return (select(select("#", ...), ...)) end
  return a + b * c + list[1] * list[2] + #list * last(three(x)) + (d or 0) + list[3]
end)
check("a gradient step inside", 2, 0.5, function(x)
  local w = 1.0
  for _ = 1, 3 do w = w - 0.1 * ms.grad(function(v) return (v * x - 2) ^ 2 end)(w) end
  return w
end)
check("Newton's method with its own derivative", 2, 0.9, function(x)
  local y = 1.0
  local function f(v) return v * math.exp(v) - x end
  for _ = 1, 12 do y = y - f(y) / ms.grad(f)(y) end
  return y
end)

-- Tensors of a number.
local function scalar(f) return function(x) return f(x):item() end end
check("a loop over rows", 3, 0.6, scalar(function(x)
  local m = ops.reshape(ops.arange(6), { 3, 2 }):double() * x
  local s = ops.zeros({ 2 }, ms.float64)
  for _, row in m:iter() do s = s * x + ops.sin(row) end
  return ops.sum(s)
end))
check("a network of tables", 3, 0.3, scalar(function(x)
  local w = { ms.tensor({ { 0.3, -0.2 }, { 0.5, 0.1 } }, ms.float64), ms.tensor({ { 0.7 }, { -0.4 } }, ms.float64) }
  local h = ms.tensor({ { x, 1.0 } }, ms.float64)
  for i, m in ipairs(w) do h = ops.tanh(ops.matmul(h, m * (1 + i * x))) end
  return ops.sum(h)
end))
check("a recurrent net that stops by itself", 2, 0.4, scalar(function(x)
  local w = ms.tensor({ { 0.5, 0.3 }, { -0.2, 0.4 } }, ms.float64)
  local h, steps = ops.ones({ 1, 2 }, ms.float64) * x, 0
  while ops.sum(h):item() < 1.2 and steps < 20 do
    h = ops.tanh(ops.matmul(h, w) + x + 0.2)
    steps = steps + 1
  end
  return ops.sum(h * h)
end))
check("softmax by hand, and its entropy", 3, 0.9, scalar(function(x)
  local z = ms.tensor({ 0.2, 1.0, -0.7 }, ms.float64) * x
  local e = ops.exp(z - ops.max(z))
  local p = e / ops.sum(e)
  return -ops.sum(p * ops.log(p))
end))
check("a determinant by elimination in place", 2, 0.8, scalar(function(x)
  local state = { m = ms.tensor({ { 2.0, 1.0, 0.5 }, { 1.0, 3.0, 0.2 }, { 0.1, 0.4, 1.5 } }, ms.float64) * x + ops.eye(3):double() }
  local d = 1.0
  for c = 0, 2 do
    d = d * state.m[{ c, c }]:item()
    for r = c + 1, 2 do state.m[r] = state.m[r] - state.m[c] * (state.m[{ r, c }]:item() / state.m[{ c, c }]:item()) end
  end
  return ops.ones({}, ms.float64) * d
end))
check("a mask that depends on the value", 2, 0.7, scalar(function(x)
  local v = ms.tensor({ -1.0, 0.4, 2.0, -0.3 }, ms.float64) * x
  local y = ops.where(ops.greater(v, 0.0), v * v, v * 0.1)
  return ops.sum(y) * (ops.any(ops.greater(y, 1.5)):item() and 2 or 3)
end))
check("cumulative products and flips", 3, 0.8, scalar(function(x)
  local v = ms.tensor({ 1.0, 0.5, 2.0 }, ms.float64) + x
  return ops.sum(ops.cumsum(ops.flip(v * v, { 0 }), 0) * ops.cumprod(v, 0))
end))

t.finish()
