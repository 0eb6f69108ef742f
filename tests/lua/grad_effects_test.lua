-- Effects of a differentiated program: errors, variables that are closed, functions behind operators, the
-- order in which operands are read. The value must be that of a plain call, slope and curvature those of differences.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local function check(name, f, x)
  t.test(name, function()
    local at, step = x or 1.3, 1e-5
    local function plain(y) return (f(y)) end
    local value, slope = ms.value_and_grad(f)(at)
    t.equal(value, plain(at))
    t.near(slope, (plain(at + step) - plain(at - step)) / (2 * step), 1e-7)
    local first = ms.grad(f)
    t.near(ms.grad(first)(at), (first(at + step) - first(at - step)) / (2 * step), 1e-6)
    t.equal(plain(at), value)
  end)
end

local function object(metamethods, v) return setmetatable({ v = v }, metamethods) end

-- Errors.
check("a table that error carries", function(x)
  local _, e = pcall(function() error({ v = x * x }) end)
  return e.v * x
end)
check("a number that error carries", function(x)
  local _, e = pcall(error, x * x)
  local _, g = pcall(function() error(x ^ 3, 2) end)
  return e * g
end)
check("assert carries its message", function(x)
  local ok, e = pcall(assert, nil, x * x)
  local yes, a, b = pcall(assert, x, x * 2)
  return (ok and 0 or e) * a * b + (yes and x or 0)
end)
check("an error through many calls", function(x)
  local a = x
  local function fall(n)
    a = a * x
    if n == 0 then error { v = a * x } end
    return 1 + fall(n - 1)
  end
  local _, e = pcall(fall, 5)
  return e.v + a
end)
check("an error out of loops and branches", function(x)
  local a, list = x, {}
  for i = 1, 4 do
    local ok = pcall(function()
      local y = a
      for j = 1, 5 do
        y = y * x
        if j % 2 == 1 then list[j] = y end
        if j == i then
          a = y
          error "stop"
        end
      end
    end)
    a = a + (ok and x or x * 0.5)
  end
  return a * list[1] * list[3]
end)
check("an error in the middle of an expression", function(x)
  local a = x
  local function put(y) a = a + y return y end
  pcall(function() return put(x * x) + nil + put(x) end)
  pcall(function() local list = { put(x), nil .. "", put(x) } return list end)
  pcall(function() put(x)() end)
  return a * x
end)
check("an error of an operator", function(x)
  local a = ms.tensor({ x, 1.0 }, ms.float64) * 0
  local s = x
  pcall(function()
    s = s * x
    return ops.matmul(a, ops.ones { 3, 4 })
  end)
  return s
end)
check("pcall within pcall", function(x)
  local a = x
  local ok, e = pcall(function()
    local inner, caught = pcall(function() a = a * x error { v = a } end)
    a = a + (inner and 0 or caught.v) * x
    error { v = caught.v * x }
  end)
  return (ok and 0 or e.v) + a
end)
check("an error is raised again", function(x)
  local _, e = pcall(function()
    local _, inner = pcall(error, { v = x })
    inner.v = inner.v * x
    error(inner)
  end)
  return e.v * x
end)
check("retries until it works", function(x)
  local tries, y = 0, x
  local function attempt()
    tries = tries + 1
    y = y * x
    if tries < 4 then error("again", 0) end
    return y
  end
  local ok, v
  repeat ok, v = pcall(attempt) until ok
  return v
end)
check("xpcall with a handler that computes", function(x)
  local _, e = xpcall(function(k) error(x * k) end, function(e) return e * x end, 2.0)
  local ok, v = xpcall(function(y) return y * x end, debug.traceback, x)
  local _, text = xpcall(function() error "text" end, debug.traceback)
  return e + (ok and v or 0) * (type(text) == "string" and text:find "text" and 1 or 0)
end)
check("errors within metamethods", function(x)
  local a = x
  local m = {}
  m.__index = function(_, key) a = a * x error { v = a * #key } end
  m.__add = function(p) a = a + p.v error { v = a } end
  m.__newindex = function(_, _, v) a = a * v error { v = a } end
  local o = object(m, x)
  local _, e1 = pcall(function() return o.abc end)
  local _, e2 = pcall(function() return o + 1 end)
  local _, e3 = pcall(function() o.k = x end)
  return e1.v + e2.v * e3.v
end)
check("an error of a method of a table", function(x)
  local Stack = { __index = { push = function(self, v)
    self[#self + 1] = v * x
    if #self > 2 then error(setmetatable({ top = self[#self], size = #self }, { __tostring = function() return "full" end })) end
    return self
  end } }
  local s = setmetatable({}, Stack)
  local ok, e = pcall(function() return s:push(x):push(x * x):push(x ^ 3):push(1) end)
  return ok and 0 or e.top * e.size + s[1] + s[2] * s[3]
end)
t.test("the place of an error is that of a plain call", function()
  local function messages(x)
    local list = {}
    local function note(f) list[#list + 1] = select(2, pcall(f)) end
    note(function() error "one" end)
    note(function() error("two", 1) end)
    note(function() error("zero", 0) end)
    note(function() local y = nil; return y.x end)
    local function inner() error("caller", 2) end
    note(function() inner() return 1 end)
    note(function() error() end)
    note(function() error { code = 7 } end)
    return x, list
  end
  local _, plain = messages(1.0)
  local value = ms.value_and_grad(messages, 0, nil, true)(1.0)
  for i, message in ipairs(plain) do
    if i == 4 then
      t.equal((value[2][i]:match "^[^ ]+ attempt to index a nil value"), (message:match "^[^ ]+ attempt to index a nil value"))
    else
      t.equal(value[2][i], message)
    end
  end
end)
t.test("an error that nobody meets keeps its value", function()
  local thrown = { code = 3 }
  local ok, e = pcall(ms.grad(function(x)
    pcall(function() return x end)
    if x > 0 then error(thrown) end
    return x
  end), 1.0)
  t.equal(ok, false)
  t.equal(rawequal(e, thrown), true)
end)
t.test("pcall as deep as memory allows", function()
  local function down(n, x)
    if n == 0 then return x end
    local _, v = pcall(down, n - 1, x * 1.0)
    return v * 1.0001
  end
  t.near(ms.grad(function(x) return down(3000, x) end)(1.0), 1.0001 ^ 3000, 1e-9)
end)

-- Variables that are closed.
check("a variable is closed at the end of its block", function(x)
  local a = x
  local function closer(k) return setmetatable({}, { __close = function(_, e) a = a * x + k + (e and 1 or 0) end }) end
  do
    local _ <close> = closer(1)
    local _ <close>, b = closer(x), a * 2
    a = a + b
  end
  return a
end)
check("closed by return, break and goto", function(x)
  local a = x
  local function closer(k) return setmetatable({}, { __close = function() a = a * k end }) end
  local function early(n)
    for i = 1, 5 do
      local _ <close> = closer(x)
      if i == n then
        local _ <close> = closer(2)
        return a, i
      end
      if i == 4 then break end
      a = a + x
    end
    return a, 0
  end
  local p, n = early(2)
  local q = early(9)
  local i = 0
  while i < 3 do
    i = i + 1
    do
      local _ <close> = closer(x * 0.5)
      if i == 2 then goto continue end
      a = a + i
    end
    ::continue::
  end
  repeat
    local c <close> = setmetatable({ n = i }, { __close = function() i = i - 1 a = a + x end })
  until c.n <= 1
  return a * p + q * n
end)
check("closed by an error, with the error", function(x)
  local a = x
  local function closer(k) return setmetatable({}, { __close = function(_, e) a = a * k + (e and e.v or 0) end }) end
  local _, e = pcall(function()
    local _ <close> = closer(x)
    for i = 1, 3 do
      local _ <close> = closer(0.5)
      a = a + x
      if i == 2 then error { v = a * x } end
    end
  end)
  return a + e.v
end)
check("an error in closing takes the place of the first", function(x)
  local a = x
  local function closer(f) return setmetatable({}, { __close = f }) end
  local _, e = pcall(function()
    local _ <close> = closer(function(_, e) a = a * (e == "second" and x or 7) end)
    local _ <close> = closer(function() error("second", 0) end)
    error "first"
  end)
  return a * (e == "second" and 1 or 3)
end)
check("closed through many calls", function(x)
  local a = 1.0
  local function down(n)
    local _ <close> = setmetatable({}, { __close = function() a = a * (x + n) end })
    if n == 0 then error "bottom" end
    return down(n - 1) + 1
  end
  pcall(down, 4)
  return a
end)
check("the closing value of a generic loop", function(x)
  local a = x
  local function items(list)
    local i = 0
    return function()
      i = i + 1
      return list[i]
    end, nil, nil, setmetatable({}, { __close = function() a = a * x end })
  end
  for v in items { x, x * 2, x * 3 } do a = a + v end
  for v in items { x, x * 2, x * 3 } do
    a = a * v
    if v > x * 1.5 then break end
  end
  pcall(function() for _ in items { x } do error "stop" end end)
  return a
end)
t.test("what cannot be closed is an error, nil and false are nothing", function()
  t.equal(ms.grad(function(x)
    local a <close> = nil
    local b <close> = false
    return a or b or x * x
  end)(3.0), 6.0)
  t.fails({ "variable 'a' got a non-closable value", "grad_effects_test.lua:" }, ms.grad(function(x)
    local a <close> = {}
    return x, a
  end), 3.0)
end)
t.test("an error that leaves the derivative closes variables", function()
  local log = {}
  local ok, e = pcall(ms.grad(function(x)
    local _ <close> = setmetatable({}, { __close = function(_, err) log[#log + 1] = err end })
    error("out", 0)
    return x
  end), 1.0)
  t.equal({ ok, e, log }, { false, "out", { "out" } })
end)

-- Functions behind operators with results that are unused, or that are truth values.
check("what metamethods of comparison do", function(x)
  local a = x
  local m = {
    __eq = function(p, q) a = a + p.v * q.v return true end,
    __lt = function(p, q) a = a * (type(p) == "table" and p.v or p) return 1, q end,
    __le = function(_, q) a = a + q.v return nil end,
  }
  local p, q = object(m, x), object(m, 2 * x)
  local r = p == q and 1 or 0
  r = r + (p ~= q and 1 or 0) + (p < q and 1 or 0) + (x > p and 1 or 0) + (p <= q and 1 or 0) + (p >= 2 and 1 or 0)
  if p < q then r = r + 1 end
  return a * r * ((p < q) == true and 1 or 0)
end)
check("what metamethods do whose results nobody uses", function(x)
  local a = x
  local m = {}
  for i, name in ipairs { "__add", "__concat", "__len", "__unm", "__band", "__shl", "__idiv", "__mod", "__pow", "__call" } do
    m[name] = function(p) a = a * p.v + i end
  end
  m.__index = function(_, k) a = a + k * x end
  local p = object(m, x)
  local function ignore() end
  ignore(p + 1, p .. "", #p, -p, p & 1, p << 2, p // 1, p % 2, p ^ 2, p[3], p())
  return a
end)
check("numbers beside objects", function(x)
  local m = { __concat = function(p, q) return type(p) == "table" and p.v * q or p * q.v end }
  m.__lt = function(p, q) return p == x and q.v > 0 end
  local o = object(m, x)
  return (o .. x) + (x .. o) * ((x < o) and 2 or 3) + (2 .. o) + (o .. 3)
end)
check("pairs with __pairs", function(x)
  local o = setmetatable({}, { __pairs = function(self)
    return function(_, k) if (k or 0) < 3 then return (k or 0) + 1, x ^ ((k or 0) + 1) end end, self, nil
  end })
  local s = 0
  for k, v in pairs(o) do s = s + k * v end
  return s
end)
check("ipairs and # with metamethods", function(x)
  local o = setmetatable({}, { __index = function(_, i) if i < 4 then return x * i end end, __len = function() return 3 end })
  local s = 0
  for i, v in ipairs(o) do s = s + i * v end
  return s * #o + table.unpack(o) * select("#", table.unpack(o))
end)

-- The order in which operands are read.
check("locals are read when they are used, as registers are", function(x)
  local a = x
  local function set(v) a = v return v end
  local s = a + set(a * 2)
  s = s + a * set(a + x) + (a) * set(x)
  s = s + (a < set(a * 2) and 1 or x)
  s = s * (a - set(a * 3) - set(a + 1))
  return s + a
end)
check("fields are read at their place", function(x)
  local o = { v = x }
  local function set(v) o.v = v return v end
  return o.v + set(o.v * 2) + o.v * set(x * 3) + -o.v * set(1) + (o.v + 0) * set(x)
end)
check("variables of an outer function are read at their place", function(x)
  local a = x
  local function set(v) a = v return v end
  local function f() return a + set(a * 2), a * set(x) - a, a - set(3) end
  local p, q, r = f()
  return p * q + r * a
end)
check("arguments, elements and concatenations are read at their place", function(x)
  local a = x
  local function set(v) a = v return v end
  local function list(...) return { ... } end
  local l = list(a, set(a * 2), a, set(x))
  local m = { a, set(a * 3), a, [7] = a, k = set(x * 5), [8] = a }
  local text = #(a .. "" .. set(12)) > 0 and 1 or 0
  local p, q = a, set(x)
  return l[1] * l[2] + l[3] * l[4] + m[1] * m[2] * m[3] + m[7] * m.k * m[8] + text + p * q
end)
check("a table or key that the values assign", function(x)
  local one, two = { x, x }, { x * 2, x * 2 }
  local list, i = one, 1
  local function swap(v) list = two i = 2 return v end
  list[i] = swap(x * 10)
  list, i = one, 1
  list[i] = list[i] + swap(x)
  list, i = one, 1
  i, list[i] = i + 1, swap(x * 4)
  list, i = one, i - i + 1
  local got = list[swap(1)]
  return one[1] + one[2] * two[1] + two[2] ^ 2 + got * i
end)
check("a table of an outer function that the values assign", function(x)
  local one, two = { k = x, x }, { k = x * 2, x * 2 }
  local list = one
  local function swap(v) list = two return v end
  local function f()
    list.k = swap(x * 3)
    list = one
    list[1] = swap(x * 5)
    list = one
    return list[swap(1)]
  end
  return f() + one.k * two.k + one[1] * two[1]
end)
check("fields with keys come before the others of a constructor", function(x)
  local l = { x, x * 2, [1] = x * 3, [3] = x * 4 } -- luacheck: ignore
  return l[1] * l[2] + l[3]
end)

check("a tensor of a table of numbers", function(x)
  local y = ms.tensor({ { x, 1.0, x * x }, { 2.0, x, 3 } }, ms.float64)
  local z = ms.tensor(x ^ 3, { dtype = ms.float64 })
  return (ops.sum(y * y) * z):item()
end)

check("texts that are numbers", function(x) return x * "2" + "0x10" / x - "1e1" + x ^ "3" + -"4" * x end)
check("elements as numbers in tables", function(x)
  local y = ops.ones({ 2, 2 }, ms.float64) * x
  y[{ 0, 1 }] = x * x
  local list, key = y:tolist(), {}
  key[y] = list[1][2]
  return list[1][1] * key[y] + #list * list[2][1]
end)
t.test("a text that is no number names the operation", function()
  t.fails({ "grad_effects_test.lua:", "attempt to mul a 'string' with a 'number'" }, ms.grad(function(x)
    local text = "abc"
    return text * x
  end), 2.0)
end)

check("gsub with a function that adds up", function(x)
  local s, words = 0, {}
  local text, n = ("one two  three"):gsub("(%a)(%a*)", function(first, rest)
    s = s * x + #rest * x
    words[#words + 1] = first
    if first == "o" then return nil end
    return #words
  end)
  assert(text == "one 2  3" and n == 3 and #words == 3)
  return s * #text
end)
check("gsub with names of values", function(x)
  local env, product = { a = x, b = x * x }, 1.0
  local text = ("$a-$b-$c"):gsub("%$(%w)", function(name)
    if not env[name] then return false end
    product = product * env[name]
    return name:upper()
  end, 3)
  return text == "A-B-$c" and product or 0
end)
t.test("gsub with a function gives the same texts as in plain Lua", function()
  local cases = {
    { "hello world", "o" }, { "hello world", "" }, { "abc", "%w*" }, { "a,b,,c", "[^,]*" }, { "  x  ", "^%s*" },
    { "abc", "()" }, { "aXbX", "(%l)(%u)" }, { "", "" }, { "", "^" }, { "aaa", "a-" }, { "abc", "^(a)" }, { "x=1, y=2", "(%w+)=(%w+)" },
    { "THE (quick) fox", "%f[%a]%a+" }, { "a\0b", "%z" }, { "[x[y]z]", "%b[]" },
  }
  local function run(x)
    local results, sum = {}, 0
    for _, case in ipairs(cases) do
      for _, most in ipairs { -1, 0, 1, 2, 100 } do
        local calls = 0
        local text, n = case[1]:gsub(case[2], function(...)
          calls = calls + 1
          sum = sum + x
          local word = ...
          if calls % 3 == 0 then return nil end
          return calls % 3 == 1 and "<" .. tostring(word) .. select("#", ...) .. ">" or calls * 1.5
        end, most)
        results[#results + 1] = ("%s/%d/%d"):format(text, n, calls)
      end
    end
    return sum, table.concat(results, "|")
  end
  local sum, texts = run(1.5)
  local out, slope = ms.value_and_grad(run, 0, nil, true)(1.5)
  t.equal(out[1], sum)
  t.equal(out[2], texts)
  t.near(slope, sum / 1.5, 1e-9)
end)
t.test("errors of gsub are those of plain Lua", function()
  for _, wrong in ipairs {
    function(x) local s = 0 ; ("abc"):gsub("b", function() s = s + x return {} end) return s end,
    function(x) local s = 0 ; ("abc"):gsub("(b", function() s = s + x end) return s end,
    function(x) local s = 0 ; ("abc"):gsub("b", function() s = s + x error("stop " .. #"abc") end) return s end,
    function(x) local s = 0 ; ("abc"):gsub("%1", function() s = s + x end) return s end,
  } do
    local _, plain = pcall(wrong, 1.5)
    local _, message = pcall(ms.grad(wrong), 1.5)
    t.equal(message, plain)
  end
end)
check("the length of tables with holes", function(x)
  local function count(...)
    local list, behind, named = { ... }, { x, ... }, { ..., n = 3, [9] = x }
    return #list + 10 * #behind + 100 * #named
  end
  return x * count(nil, x, nil) + x * x * count(nil, nil, 3) + x * count(x, nil, nil, x) + count() * x + x * count(nil)
end)

t.test("debug.getinfo tells the line", function()
  local lines = {}
  local function here() return debug.getinfo(2, "l").currentline, debug.getinfo(1, "S").short_src end
  local function f(x)
    local line, file = here()
    lines[#lines + 1] = line .. file
    lines[#lines + 1] = debug.getinfo(1, "Sl").currentline
    return x * x
  end
  f(1.5)
  ms.grad(f)(1.5)
  ms.grad(ms.grad(f))(1.5)
  t.equal(#lines, 6)
  for i = 3, 6 do t.equal(lines[i], lines[i - 2]) end
end)

-- What has no gradient says so.
local function refuses(name, texts, f)
  t.test(name, function()
    local _ = f(1.3)
    texts[#texts + 1] = "grad_effects_test.lua:"
    t.fails(texts, ms.grad(f), 1.3)
  end)
end
refuses("a change of dtype in place", { "no gradient flows through tensor:set_dtype", "write x = x:astype" }, function(x)
  local y = ops.ones({ 2 }) * x
  y:set_dtype(ms.float64)
  return ops.sum(y):item()
end)
refuses("a number that became a text", { "no gradient flows", "text" }, function(x) return (x .. "") * 2 end)
refuses("a text that became a number", { "no gradient flows", "tonumber" }, function(x) return tonumber(tostring(x)) * x end)
refuses("a formatted number", { "no gradient flows" }, function(x) return ("%.17g"):format(x) + x end)
refuses("a packed number", { "no gradient flows", "string.unpack" }, function(x)
  return (string.unpack("d", string.pack("d", x)))
end)
refuses("a callback of an opaque function", { "no gradient flows", "load" }, function(x)
  local s = 0
  load(function() s = s + x end)
  return s
end)
refuses("a callback that finds what is differentiated deep in a table", { "no gradient flows", "load" }, function(x)
  local s, outer = 0, { { {} } }
  outer[1][1].x = x
  load(function() s = s + outer[1][1].x end)
  return s
end)
refuses("a number within a joined text", { "no gradient flows" }, function(x) return table.concat({ x, "" }) * 2 end)
refuses("an attribute by position", { "matrix_norm", "no gradient with respect to 'ord'" }, function(x)
  return (ops.matrix_norm(ops.ones { 2, 2 }, x / x)):item()
end)
refuses("an attribute by name", { "matrix_norm", "no gradient with respect to 'ord'" }, function(x)
  return (ops.matrix_norm(ops.ones { 2, 2 }, { ord = x / x })):item()
end)
refuses("an attribute that is a list", { "interpolate", "no gradient with respect to 'scale_factor'" }, function(x)
  return ops.sum(ops.interpolate(ops.ones { 1, 1, 4, 4 }, { scale_factor = { x, 2.0 } })):item()
end)
refuses("an attribute that is a list, by position", { "quantile", "no gradient with respect to 'q'" }, function(x)
  return ops.sum(ops.quantile(ops.arange(4):double(), { x / 2, 0.5 })):item()
end)

-- A text that was made of a number is still known where it went through something.
for name, through in pairs {
  ["a table"] = function(s) return ({ s })[1] end,
  ["a field"] = function(s)
    local fields = {}
    fields.text = s
    return fields.text
  end,
  ["an error"] = function(s) return select(2, pcall(error, s, 0)) end,
  ["an error with its line"] = function(s)
    return select(2, pcall(function() error(s) end)):match "%d%.%d+$"
  end,
  ["an error in a table"] = function(s) return select(2, pcall(error, { s }))[1] end,
  ["assert"] = function(s) return select(2, pcall(assert, false, s)) end,
  ["string.gmatch"] = function(s)
    local words = {}
    for word in s:gmatch "%S+" do words[#words + 1] = word end
    return words[1]
  end,
  ["a coroutine"] = function(s)
    return coroutine.wrap(function(...) coroutine.yield(...) end)(s)
  end,
} do
  refuses("a text through " .. name, { "no gradient flows" }, function(x) return tonumber(through(tostring(x))) * 2 end)
end
refuses("a text that is loaded", { "no gradient flows through load, which makes a function of a text" }, function(x)
  return load("return " .. x)() * 2
end)
check("texts beside a number that is followed", function(x)
  local options = { rate = "0.5", x = x }
  local ok, message = pcall(error, "no number: 7", 0)
  return tonumber(options.rate) * options.x * tonumber(message:match "%d") + (ok and 1 or 0)
end)

-- Numbers as keys.
check("a number as a key that is looked up", function(x)
  local seen, sum = {}, 0
  for _, y in ipairs { x, x * 2, x, 3 } do
    if not seen[y] then sum = sum + y * y end
    seen[y] = true
  end
  seen[x] = x * x
  return sum + seen[x]
end)
for name, walk in pairs {
  ["pairs"] = function(list)
    local sum = 0
    for key in pairs(list) do sum = sum + key end
    return sum
  end,
  ["next"] = function(list) return (next(list)) end,
} do
  refuses("a number as a key that comes back by " .. name, { "no gradient flows through the keys of a table" },
    function(x) return walk { [x] = true } end)
  refuses("a key that is written and comes back by " .. name, { "no gradient flows through the keys" }, function(x)
    local list = {}
    list[x * 2] = 1
    return walk(list)
  end)
end
t.test("a key refuses the second derivative too", function()
  t.fails({ "no gradient flows through the keys" }, ms.grad(ms.grad(function(x)
    local s = setmetatable({}, {})
    s[x * x] = x
    return (next(s)) * x
  end)), 1.3)
end)

-- The library's own eyes on variables.
for name, use in pairs {
  setlocal = function(x) return debug.setlocal(1, 1, x * x) end,
  getupvalue = function(x)
    local _, value = debug.getupvalue(function() return x end, 1)
    return value
  end,
  setupvalue = function(x)
    local y = 1.0
    local function f() return y end
    debug.setupvalue(f, 1, x)
    return f()
  end,
  upvaluejoin = function(x)
    local y = 1.0
    local function f() return y end
    debug.upvaluejoin(f, 1, function() return x end, 1)
    return f()
  end,
  getlocal = function(x)
    local y = x
    local _, value = debug.getlocal(1, 2)
    return y + value
  end,
} do
  refuses("debug." .. name, { "debug." .. name .. ": variables cannot be reached" }, function(x) return use(x) and x end)
end

t.test("debug.getlocal of a function names its parameters", function()
  local function f(first, second) return first, second end
  t.equal(ms.grad(function(x) return x * #(debug.getlocal(f, 2)) end)(1.5), 6.0)
end)
refuses("a number in a text that __tostring makes of a variable", { "no gradient flows", "tonumber" }, function(x)
  local o = setmetatable({}, { __tostring = function() return tostring(x) end })
  return tonumber(tostring(o)) * x
end)
t.test("__tostring must give a text", function()
  local o = setmetatable({}, { __tostring = function() return {} end })
  t.fails("'__tostring' must return a string", ms.grad(function(x)
    tostring(o)
    return x
  end), 1.5)
end)

t.finish()
