-- Programs of Lua's whole language and library, and what they do, for tests that run each in several ways. A snippet is the
-- body of a function of x (a tensor) and n (a number) with a table `state` that lives as long as the function and a
-- function log().
local ms = require "lunaria"
local M = {}

M.snippets = {
  -- Statements.
  ["local variables"] = "local a, b, c = x, n  return a, b, c",
  ["several assignment"] = "local a, b = 1, 2  a, b = b, a  return a * x, b",
  ["swap in a table"] = "local q = { 1, 2, 3 }  q[1], q[3] = q[3], q[1]  return q[1] * x + q[3]",
  ["assignment order"] = "local i, q = 1, {}  i, q[i] = i + 1, 20  return i, q[1], q[2]",
  ["if"] = "if n > 1 then return x + 1 end  return x - 1",
  ["if else chain"] = "if n == 1 then return x elseif n == 2 then return -x else return x * 3 end",
  ["nested if"] = "if n > 1 then if n > 2 then x = x * 2 end x = x + 1 end return x",
  ["while"] = "local i = 0  while i < n do x = x * 2  i = i + 1 end  return x, i",
  ["while with break"] = "local i = 0  while true do i = i + 1  if i > n then break end  x = x + i end  return x",
  ["repeat"] = "local i = 0  repeat i = i + 1  local last = i >= n  x = x + i until last  return x, i",
  ["numeric for"] = "for i = 1, n do x = x + i end return x",
  ["for with a step"] = "for i = 10, 1, -3 do x = x + i * n end return x",
  ["for with floats"] = "local c = 0 for f = 0.0, 1.0, 0.25 do c = c + f x = x + f end return x, c",
  ["for that does not run"] = "for i = 1, 0 do x = x * 100 end return x",
  ["for with huge bounds"] = "local c = 0 for i = math.maxinteger - 1, math.maxinteger do c = c + 1 end return c",
  ["for in ipairs"] = "for i, v in ipairs { 1, 2, nil, 4 } do x = x + i * v end return x",
  ["for in pairs"] = "local s = 0 for k, v in pairs { 5, 6, a = 7 } do s = s + v end return x * s",
  ["for in next"] = "local s = 0 for k, v in next, { 5, 6 } do s = s + k * v end return x * s",
  ["own iterator"] = [[local function count(limit, i) if i < limit then return i + 1 end end
    for i in count, n, 0 do x = x + i end return x]],
  ["iterator closure"] = [[local function each(q) local i = 0 return function() i = i + 1 return q[i] end end
    for v in each { 3, 4, 5 } do x = x * v end return x]],
  ["goto"] = "local i = 0 ::again:: i = i + 1 x = x + i if i < n then goto again end return x",
  ["goto continue"] = "for i = 1, 5 do if i % 2 == 0 then goto continue end x = x + i ::continue:: end return x",
  ["do block"] = "local a = 1 do local a = 2 x = x + a end return x + a",
  ["const"] = "local k <const> = 3 return x * k",
  ["close"] = [[local log = {} do local h <close> = setmetatable({}, { __close = function() log[1] = "closed" end }) end
    return x, log[1] ]],
  ["return of nothing"] = "if n == 1 then return end return nil, x",
  ["return of many"] = "return x, n, nil, true, 'text', nil",
  ["semicolons"] = "; ; local a = 1 ; ; return a ;",
  ["local function"] = "local function f(i) if i == 0 then return 0 end return i + f(i - 1) end return f(n) * x",
  ["method definition"] = "local o = { k = n } function o:get(y) return y * self.k end return o:get(x)",
  ["field function"] = "local o = { p = {} } function o.p.f(y) return y + 1 end return o.p.f(x)",
  -- Expressions.
  ["arithmetic"] = "return n + 1, n - 1, n * 2, n / 2, n // 2, n % 2, n ^ 2, -n",
  ["float arithmetic"] = "return n + 0.5, n // 0.3, n % 0.7, 7.5 // 2, -7 // 2, -7 % 3, 7 % -3",
  ["integer and float"] = "return 1 == 1.0, math.type(1 + 1), math.type(1 + 1.0), 3 / 1, 2 ^ 2, 10 // 2.0",
  ["bits"] = "return n & 3, n | 8, n ~ 1, ~n, n << 2, 256 >> n",
  ["bits of floats"] = "return 3.0 & 1, 2.0 | 1",
  ["comparison"] = "return n < 2, n <= 2, n > 2, n >= 2, n == 2, n ~= 2",
  ["comparison of strings"] = "return 'a' < 'b', 'a' <= 'a', 'Z' < 'a', 'ab' > 'a'",
  ["and or"] = "return n > 1 and x or -x, nil and 1, false or nil, 1 and 2, nil or false",
  ["not"] = "return not n, not nil, not not x, not (n > 1)",
  ["concat"] = "return 'a' .. n .. 'b' .. 1.5, 1 .. 2",
  ["length"] = "return #'hello', #{ 1, 2, 3 }, #x, #('x'):rep(n)",
  ["precedence"] = "return 2 + 3 * n ^ 2 / 4, -2 ^ 2, not nil == true, 2 ^ 3 ^ 2, 'a' .. 1 + 2",
  ["parentheses"] = "local function f() return 1, 2, 3 end return (f()), f()",
  ["long strings"] = "return [[a\nb]], [==[]]]==], '\\65\\x42\\u{43}\\z   d'",
  ["numerals"] = "return 0xff, 0x1p4, 1e2, .5, 3., 0xA.8p0, 9007199254740993",
  ["integer wrap"] = "return math.maxinteger + n, math.mininteger - n, math.maxinteger * 2",
  ["division by zero"] = "return 1 / 0, -1 / 0, 0 / 0 ~= 0 / 0, 1.0 // 0, 5 % math.huge",
  ["string arithmetic"] = "return '10' + n, '3' * '4', 10 .. '' + 1, '0x10' + 0",
  ["table constructors"] = "local q = { 1, 2; 3, a = 4, ['b c'] = 5, [10] = 6, n } return #q, q.a, q['b c'], q[10], q[4]",
  ["table of a call"] = "local function f() return 1, 2, 3 end local a, b, c = { f() }, { f(), 10 }, { (f()) } return #a, #b, #c",
  ["nested tables"] = "local q = { a = { b = { c = x } } } q.a.b.d = n return q.a.b.c * q.a.b.d",
  ["table with holes"] = "local q = {} q[1], q[2], q[4] = 1, 2, 4 return q[3], q[4], x",
  ["float keys"] = "local q = {} q[1.0] = 'a' q[2^53] = 'b' return q[1], q[2^53], next(q)",
  ["nested functions"] = "local function f(y) local function g(z) return z * n end return g(y) + 1 end return f(x)",
  ["anonymous function"] = "return (function(y) return y * 2 end)(x)",
  ["index by expression"] = "local q = { [1] = x, [2] = -x, [3] = x * 2 } return q[n % 3 + 1]",
  ["call without brackets"] = "local function f(s) return type(s) == 'table' and s[1] or s end return f 'text', f { 5 }, f [[long]]",
  ["method of a string"] = "return ('hello'):upper(), ('%d items'):format(n), (' x '):rep(2, '-')",
  ["chained methods"] = "return x:abs():sqrt():sum()",
  -- Functions.
  ["varargs"] = "local function f(...) local a, b = ... return select('#', ...), a, b end return f(), f(1), f(x, n, nil)",
  ["varargs in a table"] = "local function f(...) local q = { ... } return #q, ... end return f(1, 2, x)",
  ["varargs passed on"] = "local function g(...) return ... end local function f(...) return g(n, ...) end return f(x, 2)",
  ["select"] = "return select(2, 'a', x, 'c'), select(-1, 1, 2, x), (select(2, 1, 2, 3))",
  ["select negative"] = "return select(-2, 1, 2, 3)",
  ["pack and unpack"] = "local q = table.pack(x, nil, n) return q.n, table.unpack(q, 1, q.n)",
  ["tail call"] = "local function loop(i, y) if i == 0 then return y end return loop(i - 1, y + i) end return loop(n * 10, x)",
  ["mutual recursion"] = [[local even, odd function even(i) if i == 0 then return true end return odd(i - 1) end
    function odd(i) if i == 0 then return false end return even(i - 1) end return even(n), odd(n), x]],
  ["closures over loop variables"] = [[local q = {} for i = 1, 3 do q[i] = function() i = i + 1 return i end end
    return q[1](), q[1](), q[2](), q[3](), x]],
  ["shared upvalues"] = [[local c = 0 local function up() c = c + 1 end local function get() return c end
    for _ = 1, n do up() end return get(), x * c]],
  ["counter"] = "local function make() local c = 0 return function() c = c + 1 return c end end local a, b = make(), make() a() "
    .. "return a(), b()",
  ["higher order"] = [[local function map(q, f) local r = {} for i, v in ipairs(q) do r[i] = f(v) end return r end
    local r = map({ 1, 2, 3 }, function(v) return v * n end) return r[1], r[3], x * r[2] ]],
  ["compose"] = "local function c(f, g) return function(y) return f(g(y)) end end return c(function(y) return y + 1 end, "
    .. "function(y) return y * n end)(x)",
  ["fewer arguments"] = "local function f(a, b, c) return a, b, c end return f(1), f(x, 2), f(1, 2, 3, 4)",
  ["default arguments"] = "local function f(y, k) k = k or 2 return y * k end return f(x), f(x, n)",
  ["fixpoint"] = [[local function Y(f) return (function(h) return h(h) end)(function(h) return f(function(...) return
    h(h)(...) end) end) end
    return Y(function(self) return function(i) if i == 0 then return 1 end return i * self(i - 1) end end)(n), x]],
  -- Metatables.
  ["__index function"] = "local q = setmetatable({}, { __index = function(_, k) return k .. n end }) return q.abc, q[1], x",
  ["__index table"] = "local base = { f = n } local q = setmetatable({}, { __index = base }) return q.f * x, rawget(q, 'f')",
  ["__index chain"] = "local a = { v = 1 } local b = setmetatable({ w = 2 }, { __index = a }) local c = setmetatable({}, { "
    .. "__index = b }) return c.v, c.w, c.z",
  ["__newindex function"] = "local log = {} local q = setmetatable({}, { __newindex = function(_, k, v) log[k] = v end }) q.a = n "
    .. "return rawget(q, 'a'), log.a",
  ["__newindex table"] = "local store = {} local q = setmetatable({}, { __newindex = store }) q.a = x return q.a, store.a",
  ["__call"] = "local q = setmetatable({ k = n }, { __call = function(self, y) return y * self.k end }) return q(x)",
  ["__call of a __call"] = "local a = setmetatable({}, { __call = function(_, y) return y + 1 end }) local b = setmetatable({}, { "
    .. "__call = a }) return pcall(b, 1)",
  ["operators"] = [[local V = {} V.__index = V V.__add = function(a, b) return setmetatable({ a[1] + b[1] }, V) end
    V.__mul = function(a, b) if type(b) == "number" then return setmetatable({ a[1] * b }, V) end return a end
    V.__unm = function(a) return setmetatable({ -a[1] }, V) end
    local v = -(setmetatable({ n }, V) + setmetatable({ 2 }, V)) * 3 return v[1], x]],
  ["more operators"] = [[local M = { __sub = function() return "sub" end, __div = function() return "div" end, __mod =
    function() return "mod" end,
    __pow = function() return "pow" end, __idiv = function() return "idiv" end }
    local o = setmetatable({}, M) return o - 1, 1 / o, o % 2, o ^ 2, o // 3]],
  ["bit operators"] = "local o = setmetatable({}, { __band = function() return 'and' end, __shl = function() return 'shl' end, "
    .. "__bnot = function() return 'not' end }) return o & 1, o << 1, ~o",
  ["__concat"] = "local o = setmetatable({}, { __concat = function(a, b) return 'cat' end }) return o .. 'a', 'a' .. o, 1 .. o",
  ["__len"] = "local o = setmetatable({}, { __len = function() return n end }) return #o",
  ["__eq"] = "local M = { __eq = function(a, b) return a.v == b.v end } local a, b = setmetatable({ v = n }, M), setmetatable({ v "
    .. "= 2 }, M) return a == b, a ~= b, rawequal(a, b)",
  ["__lt and __le"] = "local M = { __lt = function(a, b) return a.v < b.v end, __le = function(a, b) return a.v <= b.v end } "
    .. "local a, b = setmetatable({ v = n }, M), setmetatable({ v = 2 }, M) return a < b, a <= b, a > b, a >= b",
  ["__tostring"] = "local o = setmetatable({}, { __tostring = function() return 'object ' .. n end }) return tostring(o)",
  ["__name"] = "return (tostring(setmetatable({}, { __name = 'Thing' })):gsub('0x%x+', ''))",
  ["__pairs"] = "local o = setmetatable({}, { __pairs = function(q) return function(_, k) if not k then return 1, n end end, q, "
    .. "nil end }) for k, v in pairs(o) do x = x + k * v end return x",
  ["__metatable"] = "local o = setmetatable({}, { __metatable = 'locked' }) return getmetatable(o), pcall(setmetatable, o, {})",
  ["inheritance"] = [[local Base = {} Base.__index = Base function Base.new(k) return setmetatable({ k = k }, Base) end
    function Base:value(y) return y * self.k end
    local Derived = setmetatable({}, { __index = Base }) Derived.__index = Derived
    function Derived.new(k) local o = Base.new(k) return setmetatable(o, Derived) end
    function Derived:value(y) return Base.value(self, y) + 1 end
    return Derived.new(n):value(x)]],
  ["rawset and rawget"] = "local q = setmetatable({}, { __newindex = error, __index = error }) rawset(q, 'a', n) return rawget(q, "
    .. "'a'), rawlen { 1, 2 }, rawequal(q, q)",
  ["metatable of strings"] = "return getmetatable('').__index == string, ('x').len('abc')",
  ["getmetatable"] = "local M = {} return getmetatable({}), getmetatable(setmetatable({}, M)) == M, getmetatable(1)",
  -- Errors.
  ["error caught"] = "local ok, e = pcall(error, 'plain', 0) return ok, e, x",
  ["error with a line"] = "local ok, e = pcall(function() error('here') end) return ok, e",
  ["error object"] = "local ok, e = pcall(error, { code = n }) return ok, type(e), e.code",
  ["error nil"] = "return pcall(error)",
  ["error passes"] = "if n == 3 then error('three') end return x",
  ["error at level two"] = "local function check(v) if v == 3 then error('bad value', 2) end end check(n) return x",
  ["runtime error"] = "local q if n == 2 then return q.field end return x",
  ["call of nil"] = "local q = {} if n == 2 then q.missing() end return x",
  ["arithmetic on nil"] = "local q if n == 2 then return q + 1 end return x",
  ["arithmetic on a table"] = "return pcall(function() return {} + 1 end)",
  ["compare error"] = "return pcall(function() return 1 < 'a' end)",
  ["concat error"] = "return pcall(function() return 'a' .. {} end)",
  ["for error"] = "return pcall(function() for i = 'a', 2 do end end)",
  ["integer overflow"] = "return pcall(function() return 1 // 0 end)",
  ["index of a number"] = "return pcall(function() return (1).x end)",
  ["nil key"] = "return pcall(function() local q = {} q[nil] = 1 end)",
  ["nan key"] = "return pcall(function() local q = {} q[0 / 0] = 1 end)",
  ["assert"] = "return assert(n, 'message'), select('#', assert(1, 2, 3))",
  ["assert fails"] = "return pcall(assert, n > 2, 'not three')",
  ["assert without a message"] = "return pcall(assert, false)",
  ["pcall gives results"] = "return pcall(function(a, b) return a + b, n end, x, 1)",
  ["pcall nested"] = "return pcall(pcall, error, 'inner')",
  ["xpcall"] = "return xpcall(function() error('e', 0) end, function(e) return 'handled ' .. e end)",
  ["xpcall without error"] = "return xpcall(function(y) return y * 2 end, print, x)",
  ["xpcall handler gets its own errors"] = [[local c = 0
    local function handler(m) c = c + 1 if c <= n then error("again", 0) end return m .. c end
    local ok, e = xpcall(error, handler, "first", 0) return ok, e, c]],
  ["xpcall handler that fails once"] = "local ok, e = xpcall(error, function(m) return m .. '!' end, {}) return ok, e",
  ["xpcall handler that always fails"] = [[local c = 0
    local ok, e = xpcall(error, function() c = c + 1 error('b') end, 'a') return ok, e, c > 200]],
  ["pcall of no function"] = "return select(2, pcall(nil)), select(2, pcall({})), select(2, xpcall(n, function(m) return m .. '!' end))",
  ["bits of fractions"] = [[local h, q = 0.5, { a = 1.5 }
    return select(2, pcall(function() return h | n end)), select(2, pcall(function() return n << h end)),
      select(2, pcall(function() return q.a & 1 end)), select(2, pcall(function() return ~h end)),
      select(2, pcall(function() return 2 ^ 70 | n end))]],
  ["bits of texts"] = [[return select(2, pcall(function() return "1.5" | n end)), select(2, pcall(function() return n | "a" end)),
      select(2, pcall(function() return "7" & 2 end)), select(2, pcall(function() return {} ~ "1" end))]],
  ["a for loop over a number"] = "return select(2, pcall(function() for k in n do return k end end))",
  ["error in a callback"] = "local ok, e = pcall(table.sort, { 3, 1, 2 }, function(a, b) error('in sort', 0) end) return ok, e",
  ["tensor error"] = "if n == 3 then return x + ms.tensor { 1.0, 2.0, 3.0, 4.0 } end return x",
  ["bad argument"] = "return pcall(string.rep)",
  ["bad argument of a method"] = "return pcall(function() return ('x'):rep({}) end)",
  ["stack overflow"] = "local function f(i) return 1 + f(i + 1) end local ok, e = pcall(f, 1) return ok, (tostring(e):find('stack "
    .. "overflow')) ~= nil",
  -- Coroutines.
  ["coroutine wrap"] = "local g = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return g(x), g(n)",
  ["coroutine status"] = "local co = coroutine.create(function() coroutine.yield() end) local s = coroutine.status(co) "
    .. "coroutine.resume(co) return s, coroutine.status(co)",
  ["generator"] = "local s = 0 for v in coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) do s = s + v end "
    .. "return s * x",
  ["coroutine error"] = "local co = coroutine.create(function() error('in', 0) end) return coroutine.resume(co)",
  ["isyieldable"] = "return coroutine.isyieldable(), x",
  -- Globals.
  ["global written"] = "counter = (counter or 0) + 1 return x * counter",
  ["global function"] = "function helper(y) return y + n end return helper(x)",
  ["global table"] = "state = state or {} state[#state + 1] = n return #state, x",
  ["_G"] = "_G.dynamic = n return _G.dynamic, dynamic, rawget(_G, 'nothing')",
  ["_ENV"] = "local _ENV = { y = x, n = n } z = y * n return z",
  ["local _ENV with fallback"] = "local _ENV = setmetatable({}, { __index = _ENV }) a = n return a, math.abs(-1)",
  ["load"] = "return load('return ' .. n)(), x",
  ["load with environment"] = "return load('return a', 'chunk', 't', { a = n })()",
  ["require"] = "return require 'string' == string, x",
  -- Libraries.
  ["math constants"] = "return math.pi, math.huge, -math.huge, math.maxinteger, math.mininteger",
  ["math rounding"] = "return math.floor(2.5 * n), math.ceil(2.5 * n), math.tointeger(3.0), math.fmod(-7, 3), math.modf(3.7)",
  ["math functions"] = "return math.abs(-n), math.sqrt(n), math.exp(0), math.log(8, 2), math.sin(0), math.cos(0), math.max(1, n, "
    .. "2), math.min(n, 2)",
  ["math trigonometry"] = "return math.tan(0.5), math.asin(0.5), math.acos(0.5), math.atan(1, 2), math.deg(math.pi), math.rad(180)",
  ["math.type"] = "return math.type(n), math.type(n + 0.0), math.type('1'), math.ult(1, -1)",
  ["math.random"] = "math.randomseed(n) return math.random(100), math.random(), math.random(5, 10)",
  ["string.format"] = "return string.format('%d %5.2f %s %q %x %%', n, n / 3, 'a', 'b\\n', 255), ('%s'):format(nil)",
  ["string.find"] = "return ('hello world'):find('o w'), ('a.b'):find('.', 1, true), ('abc'):find('(b)(c)')",
  ["string.match"] = "return ('key=value'):match('(%w+)=(%w+)'), ('  x '):match('^%s*(.-)%s*$'), ('12:34'):match('%d+', 3)",
  ["string.gmatch"] = "local q = {} for w in ('one two three'):gmatch('%a+') do q[#q + 1] = w end return #q, q[n], table.concat(q, ',')",
  ["string.gmatch captures"] = "local s = '' for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do s = s .. k .. v end return s",
  ["string.gmatch empty"] = "local c = 0 for _ in ('abc'):gmatch('x*') do c = c + 1 end return c",
  ["string.gsub"] = "return ('hello'):gsub('l', 'L'), ('abc'):gsub('%w', '%0%0', 2), ('$a'):gsub('%$(%w)', { a = 'value' })",
  ["string.gsub with a function"] = "return ('1 2 3'):gsub('%d', function(d) return d * n end)",
  ["string.sub"] = "return ('hello'):sub(2, -2), ('hello'):sub(-3), ('x'):sub(5), ('hello'):byte(1, -1)",
  ["string.rep and reverse"] = "return ('ab'):rep(n, '-'), ('abc'):reverse(), ('AbC'):lower(), string.char(72, 105)",
  ["string.pack"] = "return string.unpack('<i4', string.pack('<i4', n)), string.packsize('i4')",
  ["utf8"] = "local q = {} for _, c in utf8.codes('aé') do q[#q + 1] = c end return utf8.char(72, 228), utf8.len('äö'), q[2]",
  ["table.insert"] = "local q = { 1, 2 } table.insert(q, n) table.insert(q, 1, 0) return #q, q[1], q[4]",
  ["table.remove"] = "local q = { 1, 2, 3 } return table.remove(q), table.remove(q, 1), #q, table.remove({}), x",
  ["table.concat"] = "return table.concat({ 1, 2, 3 }, '-'), table.concat({ 'a', n }, ',', 2), table.concat {}",
  ["table.sort"] = "local q = { 3, 1, n, 2 } table.sort(q) table.sort(q, function(a, b) return a > b end) return q[1], q[4]",
  ["table.move"] = "local q = table.move({ 1, 2, 3 }, 2, 3, 1) return q[1], q[2], q[3]",
  ["table.unpack"] = "return table.unpack({ 1, 2, 3 }, 2), table.unpack { n, x }",
  ["ipairs of an object"] = "local o = setmetatable({}, { __index = function(_, i) if i <= n then return i end end }) local s = 0 "
    .. "for _, v in ipairs(o) do s = s + v end return s",
  ["next of an empty table"] = "return next {}, type(next), next({ 5 })",
  ["os and io"] = "return type(os.time()), type(os.clock()), os.getenv('NOTHING_OF_THIS_NAME'), io.type(io.stdout)",
  ["os.date"] = "return os.date('!%Y', 0), os.time { year = 2000, month = 1, day = 1, hour = 12 } ~= nil",
  ["tostring and tonumber"] = "return tostring(n), tostring(nil), tostring(1.5), tonumber('0x10'), tonumber('z', 36), "
    .. "tonumber('x'), tonumber '1e1'",
  ["type"] = "return type(x), type(n), type(nil), type({}), type(print), type('')",
  ["print"] = "print('n is', n, nil, true) print(x) print() return x",
  ["print in a loop"] = "for i = 1, n do print(i, x:sum():item()) end return x",
  ["collectgarbage"] = "collectgarbage() return type(collectgarbage('count'))",
  ["debug.getinfo"] = "return debug.getinfo(1, 'l').currentline, type(debug.traceback())",
  -- Tensors.
  ["tensor arithmetic"] = "return x + n, x - 1, 2 * x, x / n, x ^ 2, -x, x % 2, x // 2, 1 - x",
  ["tensor comparison"] = "return x > 1, x == x, (x:sum() > n) and 1 or 2",
  ["tensor attributes"] = "return x.shape[1], #x.shape, tostring(x.dtype), x.ndim, x.size",
  ["tensor indexing"] = "return x[0], x[n - 1], x['0:2'], x[-1], x[ms.tensor({ 0, 1 }, ms.int64)]",
  ["tensor assignment"] = "local y = x:copy() y[0] = n y['1:2'] = 7 return y, x",
  ["tensor in place"] = "local y = x + 0 y:mul_(n) y:add_(1) return y",
  ["tensor of a table"] = "return ms.tensor { 1, n, 3 }, ms.tensor { { 1.0, n } }",
  ["item decides"] = "if x:sum():item() > 5 then return 'large' end return 'small'",
  ["item in arithmetic"] = "local s = x:sum():item() return s * 2 + n, math.floor(s), tostring(s)",
  ["tolist"] = "local q = x:tolist() return q[1] + n, #q",
  ["operators with names"] = "return ms.ops.sum(x, { axis = 0 }), x:reshape { 3, 1 }, ms.ops.concat({ x, x }, 0)",
  ["iteration over rows"] = "local s = 0 for i, v in x:iter() do s = s + i * v end return s",
  ["gradient"] = "return ms.grad(function(y) return (y * y * n):sum() end)(x)",
  ["gradient of a number"] = "return ms.grad(function(y) return y ^ 3 end)(n + 0.5)",
  ["value and gradient"] = "return ms.value_and_grad(function(y) return ms.ops.sum(ms.ops.exp(y)) end)(x)",
  ["table of tensors"] = "local q = { a = x, b = { x * 2 } } return q, ms.grad(function(p) return ms.ops.sum(p.a * p.b[1]) end)(q)",
  ["random tensors"] = "ms.set_seed(n) return ms.ops.randn { 2 }, ms.ops.uniform { 2 }",
  ["tensor as a key"] = "local q = {} q[x] = n return q[x], x",
  ["where"] = "return ms.ops.where(x > 1, x, -x), x:where(x > n, 0)",
  ["vmap"] = "return ms.vmap(function(v) return v * n end)(x)",
  -- The rest of the libraries.
  ["coroutine.close"] = "local co = coroutine.create(function() coroutine.yield(1) end) coroutine.resume(co) return coroutine.close(co), "
    .. "coroutine.status(co)",
  ["coroutine.running"] = "local co = coroutine.wrap(function() return select(2, coroutine.running()) end) return co(), x",
  ["files"] = [[local name = os.tmpname() local file = io.open(name, "w") file:write(n, "\n", "second") file:flush() file:close()
    local lines = {} for line in io.lines(name) do lines[#lines + 1] = line end io.input(name) local first = io.read("n")
    io.close(io.input()) io.input(io.stdin) os.rename(name, name .. "b") os.remove(name .. "b")
    return lines[1], lines[2], first, io.open(name), x]],
  ["files that run"] = [[local name = os.tmpname() local file = io.open(name, "w") file:write("return 7") file:close()
    local a, b = dofile(name), loadfile(name)() os.remove(name) return a * x, b]],
  ["output"] = "return io.type(io.output()), io.output() == io.stdout, io.write('') == io.stdout, x",
  ["temporary file"] = "local f = io.tmpfile() f:write('abc') f:seek('set') local s = f:read('a') f:close() return s, io.type(f)",
  ["system"] = "return os.difftime(n + 5, n), (os.setlocale('C')), os.execute() ~= nil, io.popen ~= nil, type(os.exit), x",
  ["older functions of math"] = "return math.pow == nil, math.cosh == nil, math.sinh == nil, math.tanh == nil, math.log10 == nil, "
    .. "math.frexp == nil, math.ldexp == nil, math.atan2 == nil",
  ["string.len"] = "return string.len('abc'), ('x'):rep(n):len(), (string.dump == nil)",
  ["utf8.codepoint"] = "return utf8.codepoint('h\u{e9}', 1, -1), utf8.offset('h\u{e9}l', 3)",
  ["warnings"] = "warn('@off') return x * n",
}

M.more = {
  ["gen"] = "local s = 0 for v in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(x * i) end end) do s = s + v end return s",
  ["gen effects"] = "state.n = state.n + 1 log('a') local s = 0 for v in coroutine.wrap(function() for i = 1, 3 do log('y', i) "
    .. "coroutine.yield(x * i) end end) do s = s + v end log('b') return s",
  ["yield across pcall"] = "log(1) local co = coroutine.create(function(a) local ok, b = pcall(function() local q = coroutine.yield(a * 2) "
    .. "error('E' .. q:sum():item()) end) log(ok, b) return b end) local ok, y = coroutine.resume(co, x) local ok2, z = "
    .. "coroutine.resume(co, y) return y, z, coroutine.status(co)",
  ["coroutine state kept"] = "state.co = state.co or coroutine.wrap(function() local i = 0 while true do i = i + 1 "
    .. "coroutine.yield(i) end end) "
    .. "return x * state.co()",
  ["dead"] = "local co = coroutine.create(function() return x end) coroutine.resume(co) return coroutine.resume(co)",
  ["close"] = "local co = coroutine.create(function() local v <close> = setmetatable({}, {__close = function() log('closed') end}) "
    .. "coroutine.yield(1) end) coroutine.resume(co) return coroutine.close(co), coroutine.status(co)",
  ["error in co"] = "log(0) local co = coroutine.wrap(function() error('inside') end) local ok, e = pcall(co) return ok, e",
  ["running"] = "local co, main = coroutine.running() return main, coroutine.isyieldable()",
  ["wrap in wrap"] = "local f = coroutine.wrap(function() local g = coroutine.wrap(function() coroutine.yield(x) "
    .. "coroutine.yield(x * 2) end) "
    .. "coroutine.yield(g()) coroutine.yield(g()) end) log('s') return f() + f()",
  ["closures in loop"] = "local fs = {} for i = 1, 3 do fs[i] = function() i = i + 1 return x * i end end state.n = "
    .. "state.n + 1 return fs[1]() + "
    .. "fs[1]() + fs[2]()",
  ["return closure"] = "state.n = state.n + 1 local c = 0 return (function() c = c + 1 return x * c end)()",
  ["store closure"] = "state.f = state.f or function(k) state.n = state.n + k return k * 2 end return x * state.f(n)",
  ["returned closure used"] = "local function counter() local c = 0 return function() c = c + 1 return c end end local c1, c2 "
    .. "= counter(), counter() "
    .. "c1() c1() log(c1(), c2()) return x * c1()",
  ["table sort by tensor"] = "local l = {x, x * 3, x * 2} table.sort(l, function(a, b) return a:sum():item() < "
    .. "b:sum():item() end) log(l[1]) return "
    .. "l[3]",
  ["metatables"] = "local V = {} V.__index = V V.__add = function(a, b) log('add') return setmetatable({v = a.v + b.v}, V) end V.__eq = "
    .. "function(a, b) return true end V.__lt = function(a, b) return a.v:sum():item() < b.v:sum():item() end V.__call = "
    .. "function(self, k) return self.v * k end V.__tostring = function() return 'V' end V.__len = function() return 7 end "
    .. "V.__concat = function(a, b) return 'cat' end V.__unm = function(a) return a.v * -1 end local a, b = setmetatable({v = "
    .. "x}, V), setmetatable({v = x * 2}, V) log(a == b, a < b, a .. 'x', #a, tostring(a)) return (a + b)(n), -a",
  ["weak tables"] = "local w = setmetatable({}, {__mode = 'k'}) local k = {} w[k] = x log(w[k]) return w[k]",
  ["gc"] = "local c = collectgarbage('count') log(c > 0) return x + 1",
  ["goto"] = "local i = 1 ::top:: if i > n then goto done end log(i) i = i + 1 goto top ::done:: return x * i",
  ["varargs"] = "local function f(...) local a, b = ... return select('#', ...), a, (b or 0), ... end log(f(1, nil, 3)) return f(x, x)",
  ["multiple assign"] = "local a, b, c = n, x b, a = a, b log(a, b, c) local t = {1, 2} local i = 1 i, t[i] = i + 1, 20 log(i, t[1], t[2]) "
    .. "return a",
  ["string methods"] = "local s = ('%d %s'):format(n, 'abc') log(s:upper(), s:len(), s:find('a'), s:gsub('b', '%0%0'), "
    .. "s:rep(2, '-')) return x",
  ["os/io"] = "log(type(os.time()), type(os.clock()), io.type(io.stdout)) return x",
  ["load"] = "local f = load('local a = ... return a * 2') return f(x)",
  ["load env"] = "local f = load('y = 5 return y', 'c', 't', state) log(f()) return x * state.y",
  ["require"] = "local m = require 'math' == math log(m) return x",
  ["dump refused"] = "local ok, e = pcall(string.dump, function() end) log(ok) return x",
  ["debug"] = "log(debug.getinfo(1, 'l').currentline) return x",
  ["debug traceback"] = "log(type(debug.traceback('m'))) return x",
  ["setmetatable string index"] = "log(('x').len ~= nil, #'abc') return x",
  ["integer division"] = "log(7 // 2, -7 // 2, 7 % -3, 7.5 // 2, 1e308 * 10, -(0/0) ~= -(0/0), 3 | 4, ~0, 1 << 62, 5 // 0.0) return x",
  ["integer for"] = "for i = 10, 1, -3 do log(i) end for i = 1.0, 2 do log(i) end for i = math.maxinteger - 1, math.maxinteger do log(i) "
    .. "end return x",
  ["while break"] = "local i = 0 while true do i = i + 1 if i > n then break end end repeat local j = i i = i - 1 until j < 1 return x * i",
  ["nested break"] = "for i = 1, 3 do for j = 1, 3 do if j == n then break end log(i, j) end end return x",
  ["env"] = "local _ENV = {x = x, log = log} y = 3 log(y) return x * y",
  ["env upvalue"] = "local g = {} do local _ENV = g z = 4 end return x * g.z",
  ["global write"] = "GG = (GG or 0) + 1 log(GG) return x * GG",
  ["upvalue counter"] = "state.n = state.n + n state.list[#state.list + 1] = state.n return x * state.n",
  ["tensor in state"] = "state.v = (state.v or x * 0) + x return state.v * 1",
  ["inplace"] = "local y = x * 1 y[0] = 10 log(y) y[1] = y[0] * n return y",
  ["alias"] = "local y = x * 1 local z = y y[0] = 5 return z + y",
  ["view alias"] = "local y = x * 1 local z = y[{1, 3}] y[1] = 50 return z, y",
  ["to const/close"] = "local c <const> = n do local v <close> = setmetatable({}, {__close = function(_, e) "
    .. "log('close', e) end}) log('in') "
    .. "end return x * c",
  ["close on error"] = "local ok, e = pcall(function() local v <close> = setmetatable({}, {__close = function(_, e) log('close', e) end}) "
    .. "error('boom', 0) end) return ok, e, x",
  ["close order"] = "do local a <close> = setmetatable({}, {__close = function() log('a') end}) local b <close> = "
    .. "setmetatable({}, {__close "
    .. "= function() log('b') end}) end return x",
  ["pcall error obj"] = "local ok, e = pcall(error, setmetatable({c = n}, {__tostring = function(s) return 'obj' end})) "
    .. "log(e.c, tostring(e)) "
    .. "return x",
  ["xpcall traceback"] = "local ok, e = xpcall(function() error('m', 0) end, function(m) log('h', m) return m .. '!' end) return e, x",
  ["deep recursion"] = "local function f(k) if k == 0 then return 0 end return 1 + f(k - 1) end return x * f(5000)",
  ["mutual rec"] = "local even, odd function even(k) if k == 0 then return true end return odd(k - 1) end function odd(k) if k == 0 then "
    .. "return false end return even(k - 1) end log(even(100)) return x",
  ["method def"] = "local o = {v = n} function o:get(k) return self.v * k end function o.static(k) return k end log(o:get(2), o.static(3)) "
    .. "return x * o:get(1)",
  ["tostring number"] = "log(1e15, 1e16, 0.1, 1/3, 100, 100.0, -0.0, 2^53, 1e300 * 1e10) return x",
  ["string coercion"] = "log('10' + 5, '3' * '4', 10 .. 20, '0x10' * 1) return x",
  ["comparison chain"] = "log(1 < 2, 'a' < 'b', 1 == 1.0, '1' == 1, nil == false) return x",
  ["and or"] = "log(nil and 1, false or 2, 0 and 3, nil or false) return n > 1 and x or x * 2",
  ["table fns"] = "local l = {5, 3, 1} table.insert(l, 1, 9) log(table.remove(l), table.concat(l, ','), table.unpack(l)) table.sort(l) "
    .. "log(l) return x",
  ["next/pairs order"] = "local s = {} for k, v in pairs({a = 1}) do s[#s+1] = k .. v end for i, v in ipairs({4, 5, nil, "
    .. "7}) do s[#s+1] = i .. "
    .. "':' .. v end log(table.concat(s, ' ')) return x",
  ["pairs modify"] = "local l = {a = 1, b = 2, c = 3} for k in pairs(l) do l[k] = nil end log(next(l)) return x",
  ["utf8"] = "for p, c in utf8.codes('aé') do log(p, c) end log(utf8.char(233), #utf8.charpattern) return x",
  ["gmatch"] = "for k, v in ('a=1,b=2'):gmatch('(%w+)=(%w+)') do log(k, v) end return x",
  ["gsub fn"] = "log((('abc'):gsub('%w', function(c) state.n = state.n + 1 return c .. state.n end))) return x * state.n",
  ["random seeded"] = "math.randomseed(42) local a = math.random(100) math.randomseed(42) log(a == math.random(100)) return x",
  ["data dependent"] = "if x:sum():item() > 10 then log('big') return x * 2 else log('small') return x end",
  ["data loop"] = "local y, k = x, 0 while y:sum():item() < 100 do y = y * 2 k = k + 1 end log(k) return y",
  ["shape dependent"] = "if #x.shape == 1 then return x:reshape(3, 1) end return x",
  ["tensor as key"] = "local m = {} m[x] = 'here' log(m[x]) return x",
  ["tensor equality"] = "log(x == x, x ~= nil, rawequal(x, x)) return x",
  ["tensor tostring"] = "log(tostring(x * n)) return x",
  ["ms.grad inside"] = "local g = ms.grad(function(w) return (w * w):sum() * n end) return g(x)",
  ["vmap inside"] = "return ms.vmap(function(r) return r * n end)(x:reshape(3, 1))",
  ["error line after effects"] = "state.n = state.n + 1\nlog('e')\nlocal y = nil\nreturn y.z",
  ["error arith after effects"] = "state.n = state.n + 1\nlocal q = {}\nreturn x + q.a",
  ["error op after effects"] = "state.n = state.n + 1\nreturn x + ms.ops.ones({7})",
  ["error call after effects"] = "state.n = state.n + 1\nreturn state.foo(x)",
  ["error deep"] = "state.n = state.n + 1\nlocal function f(a) return a.b.c end\nreturn (f({}))",
  ["assert msg"] = "state.n = state.n + 1 assert(n == 1, 'n is ' .. n) return x",
  ["error rethrow"] = "local ok, e = pcall(error, 'a', 0) state.n = state.n + 1 error(e, 0)",
  ["tail call"] = "local function loop(k, acc) if k == 0 then return acc end return loop(k - 1, acc + x) end return loop(50, x)",
  ["select neg"] = "log(select(-1, 1, 2, 3), select(2, 'a', 'b')) return x",
  ["nested pcall ok"] = "log(pcall(pcall, pcall, function() return 1 end)) return x",
  ["math lib"] = "log(math.floor(3.7), math.ceil(3.2), math.max(1, 2.5), math.huge, math.pi, math.fmod(7, 3), math.tointeger(3.0), "
    .. "math.ult(1, -1), math.abs(math.mininteger)) return x",
  ["string pack"] = "log(string.unpack('i4', string.pack('i4', 100)), ('%q'):format('a\\nb')) return x",
  ["byte/char"] = "log(('abc'):byte(1, -1), string.char(72, 105)) return x",
  ["long string"] = "local s = [[line1\nline2]] log(#s) return x",
  ["integer keys float"] = "local q = {} q[1.0] = 'a' q[2] = 'b' log(q[1], #q) return x",
  ["nil holes"] = "local q = {1, nil, 3} log(#q, q[3]) return x",
  ["table.move"] = "log(table.concat(table.move({1, 2, 3}, 2, 3, 1), ',')) return x",
  ["os.getenv"] = "log(os.getenv('NO_SUCH_VAR')) return x",
  ["upvalue shared"] = "local c = 0 local function inc() c = c + 1 end local function get() return c end inc() inc() log(get()) return x * "
    .. "get()",
  ["loop closures shared"] = "local fs = {} local k = 0 for i = 1, 3 do k = k + i fs[i] = function() return k end end "
    .. "log(fs[1](), fs[3]()) return x",
  ["while closure fresh"] = "local fs, i = {}, 1 while i <= 3 do local j = i fs[i] = function() j = j + 1 return j end i = "
    .. "i + 1 end log(fs[1](), "
    .. "fs[1](), fs[2]()) return x",
  ["recursion closure"] = "local function fact(k) return k <= 1 and 1 or k * fact(k - 1) end return x * fact(n + 3)",
  ["producer/consumer"] = [[local function producer()
 return coroutine.create(function() for i = 1, 4 do coroutine.yield(x + i) end return nil end) end
 local p = producer() local total = x * 0
 while true do local ok, v = coroutine.resume(p) if not v then break end total = total + v log(v) end return total]],
}

-- What a function gives, prints and raises.
function M.outcome(f, ...)
  local lines, plain = {}, print
  _G.print = function(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = tostring(parts[i]) end
    lines[#lines + 1] = table.concat(parts, "\t")
  end
  local results = table.pack(pcall(f, ...))
  _G.print = plain
  for i = 1, results.n do
    if results[i] == nil then results[i] = "<nil>" end
    if type(results[i]) == "function" then results[i] = "<function>" end
  end
  results.n = nil
  return { results = results, lines = lines }
end

-- A tensor as its elements: an output does not show all of them.
local function show(value)
  if ms.is_tensor(value) then value = value:tolist() end
  if type(value) ~= "table" then return (tostring(value):gsub("0x%x+", "0x")) end
  local parts = {}
  for i = 1, #value do parts[i] = show(value[i]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

-- The snippet as a function, with a new environment.
function M.build(code)
  local environment = setmetatable({ ms = ms, state = { n = 0, list = {} } }, { __index = _G })
  environment._G = environment
  function environment.log(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = show(parts[i]) end
    print(table.concat(parts, " "))
  end
  return assert(load("local x, n = ...\n" .. code, "=snippet", "t", environment))
end

return M
