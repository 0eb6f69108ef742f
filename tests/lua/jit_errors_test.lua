-- Errors in compiled functions: those that the program meets itself, and those that leave it. Each snippet is the body of a
-- function of x (a tensor), n (a number), log (a function that notes what happens) and ms, called several times plain and
-- compiled: results, notes in their order, errors with their lines and words must be the same.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"

-- The second field: how many functions of this kind may be left to Lua (nil: it has to be compiled).
local snippets = {
  ["pcall that does not fail"] = { "return pcall(function() log('in') return x * 2, nil, 3 end)" },
  ["pcall of a failing body"] = { "log('a') local ok, e = pcall(function() log('b') error('no') end) log('c', ok) return e, x" },
  ["error without a place"] = { "local ok, e = pcall(function() error('no', 0) end) return e" },
  ["error one level up"] = { "local function f() error('up', 2) end local ok, e = pcall(function() log('')\n f() end) return e" },
  ["error with a table"] = { "local ok, e = pcall(function() error({ code = n, x = x }) end) return e.code, e.x" },
  ["error with a tensor"] = { "local ok, e = pcall(function() error(x) end) return e * 2, rawequal(e, x)" },
  ["error with a number"] = { "local ok, e = pcall(error, n) return e + 1" },
  ["error with nothing"] = { "return pcall(error)" },
  ["error with an object"] = { "local E = setmetatable({}, { __tostring = function() return 'E' .. n end }) local ok, e = "
    .. "pcall(error, E) return tostring(e), e == E", true },
  ["error that depends on a number"] = { "local ok, e = pcall(function() if n > 1 then error('big ' .. n) end return 'small' end) "
    .. "log(ok) return e" },
  ["error that depends on a tensor"] = { "local ok, e = pcall(function() if x:sum():item() > 5 then error('big') end return x end) "
    .. "log(ok) return e" },
  ["assert"] = { "log(1) local a = pcall(assert, false) local b, e = pcall(function() assert(n > 100, 'message') end) return a, e" },
  ["assert that holds"] = { "return assert(x, 'message'), (assert(n, 2, 3))" },
  ["operator that fails"] = { "log(1) local ok, e = pcall(function() return x + ms.ops.ones { 7 } end) log(ok, e) return x" },
  ["operator that fails sometimes"] = { "local ok, e = pcall(function() return x + ms.ops.ones { n } end) log(ok) return e" },
  ["index that fails sometimes"] = {
    "log(0) local ok, e = pcall(function() return ms.ops.gather(x, ms.tensor({ n * 2 }, ms.int32), 0) end) return "
    .. "ok, e" },
  ["library function that fails"] = { "log(1) local ok, e = pcall(function() return ('x'):rep({}) end) return e" },
  ["library function called by pcall"] = { "return pcall(string.rep), pcall(math.floor, 'a')" },
  ["division by zero"] = { "log(1) return pcall(function() return n // 0 end), pcall(function() return n % 0 end)" },
  ["comparison that fails"] = { "log(1) local ok, e = pcall(function() return {} < 1 end) return e" },
  ["pcall in pcall"] = { "return pcall(pcall, error, 'x'), pcall(function() return pcall(error, n) end)" },
  ["pcall raised again"] = {
    "local ok, e = pcall(function() local ok, e = pcall(error, 'in', 0) log(e) error(e .. n, 0) end) log(e) return e" },
  ["pcall as the last call"] = { "log(1) local function f() return pcall(function() error('deep') end) end return f()" },
  ["pcall of something else"] = {
    "return pcall(nil), pcall({}), pcall(setmetatable({}, { __call = function(_, a) return a end }), n)", true },
  ["error of an effect"] = { "local q = setmetatable({}, { __newindex = function(_, k) error('no ' .. k) end }) log(1) local ok, e = "
    .. "pcall(function() q.a = 1 end) return e" },
  ["xpcall"] = { "return xpcall(function() log('in') error('no') end, function(e) log('handler') return e .. '!' end)" },
  ["xpcall that does not fail"] = { "return xpcall(function(a, b) return a, b end, function() log('handler') end, x, n)" },
  ["xpcall whose handler fails"] = { "local ok = xpcall(function() error('a') end, function() error('b') end) return ok", true },
  ["xpcall with a traceback"] = { "local ok, e = xpcall(function() error('q') end, debug.traceback) return ok, e:match('^[^\\n]*')", true },
  ["closed on the way out"] = {
    "local c = setmetatable({}, { __close = function(_, e) log('close', e) end }) local ok, e = pcall(function() "
    .. "local h <close> = c error('no', 0) end) return ok, e" },
  ["closed at the end"] = { "do local h <close> = setmetatable({}, { __close = function() log('closed') end }) log('in') end return x" },
  ["closed in reverse order"] = {
    "local function c(k) return setmetatable({}, { __close = function() log(k) end }) end local a <close> = c(1) "
    .. "local b <close> = c(2) return x + 1" },
  ["an error while closing"] = {
    "return pcall(function() local h <close> = setmetatable({}, { __close = function(_, e) error(e .. '2', 0) end }) "
    .. "error('1', 0) end)" },
  ["effects before an error that leaves"] = { "log('before', n) if n == 2 then error('out ' .. n) end log('after') return x" },
  ["names in errors after effects"] = {
    "local a, t = nil, {} log(n) local k = n % 7 if k == 1 then return a.b elseif k == 2 then return t.c.d else return t:e() end" },
  ["names of operands after effects"] = {
    "local a, t = {}, {} log(n) if n == 1 then return 1 + a elseif n == 2 then return t.c .. 'x' else return -t.d end" },
  ["names of what is called and written after effects"] = {
    "local a log(n) if n == 1 then a() elseif n == 2 then nothing_of_this_name() else a.x = 1 end" },
  ["loops without bounds after effects"] = {
    "log(n) if n == 1 then for i = 1, 2, 0 do end elseif n == 2 then for i = 'a', 2 do end else for i = 1, {} do end end" },
  ["lines of operators on strings and tables after effects"] = {
    "log(n) if n == 1 then return 'x' + 1 elseif n == 2 then return ~{} else return {} .. 'y' end", true },
  ["effects before an operator that fails"] = { "log('before') local y = x + ms.ops.ones { n } log('after') return y" },
  ["writes before an error"] = { "local q = { 1 } local ok = pcall(function() q[1] = 2 q[2] = x error('') end) return q[1], q[2], ok" },
  ["variables before an error"] = {
    "local c = 0 for i = 1, 3 do pcall(function() c = c + i if i == 2 then error('') end c = c + 10 end) end return c" },
  ["error in a loop"] = {
    "local s = 0 for i = 1, 4 do local ok = pcall(function() if i % 2 == 0 then error(i) end s = s + i end) if not ok then "
    .. "log(i) end end return s * x" },
  ["error in an iterator"] = {
    "local function it(_, i) if i == 3 then error('end') end return i + 1 end return pcall(function() for i in it, "
    .. "nil, 0 do log(i) end end)" },
  ["error in a metamethod"] = {
    "local V = setmetatable({}, { __add = function() error('add') end }) return pcall(function() return V + 1 end)" },
  ["error in sort"] = {
    "return pcall(table.sort, { 3, 1, 2 }, function(a, b) log(a, b) if b == 2 then error('stop', 0) end return a < b end)" },
  ["sort with a wrong order"] = { "return pcall(function() table.sort({ 3, 1, 2, 5, 4 }, function() return true end) end)" },
  ["random numbers around an error"] = {
    "local a = ms.ops.randn { 2 } pcall(function() local b = ms.ops.randn { 3 } error(b) end) return a, ms.ops.randn { 2 }" },
  ["gradient in pcall"] = { "return pcall(function() return ms.grad(function(y) return (y * y):sum() end)(x) end)" },
  ["gradient that fails"] = { "log(1) return (pcall(function() return ms.grad(function(y) error('in grad') end)(x) end))", true },
  ["nil as an error"] = { "return pcall(error, nil), select('#', pcall(error))" },
  ["goto out of a failed call"] = {
    "local i = 0 ::again:: i = i + 1 if not pcall(function() if i < n then error('') end end) then goto again end return i" },
  ["coroutine that fails"] = {
    "local co = coroutine.create(function() log('co') error('in co', 0) end) return coroutine.resume(co)", true },
  ["rawset of nil after an effect"] = { "log('go') rawset(nil, n, n) return x" },
  ["rawget of nil after an effect"] = { "log('go') local r = rawget(nil, n) return x, r" },
  ["coroutine that yields"] = {
    "local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(x * i) end end) log('go') return co() + co(), co()", true },
}

local function outcome(f, ...)
  local lines = {}
  local function log(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = tostring(parts[i]) end
    lines[#lines + 1] = table.concat(parts, " ")
  end
  local results = table.pack(pcall(f, select(1, ...), select(2, ...), log, ms))
  for i = 1, results.n do
    if results[i] == nil then results[i] = "<nil>" end
  end
  results.n = nil
  return { results = results, lines = lines }
end

local names = {}
for name in pairs(snippets) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local code, may_be_left = table.unpack(snippets[name])
  t.test(name, function()
    local function build() return assert(load("return function(x, n, log, ms)\n" .. code .. "\nend", "=snippet"))() end
    local eager, compiled, expected = build(), ms.jit(build()), {}
    local list = { 1, 2, 2, 3, 1, 3, 1 }
    local function x_of(n) return ms.tensor({ 1.0, 2.0, 0.5 }) * n end
    ms.set_seed(1)
    for i, n in ipairs(list) do expected[i] = outcome(eager, x_of(n), n) end
    ms.set_seed(1)
    for i, n in ipairs(list) do t.equal(outcome(compiled, x_of(n), n), expected[i]) end
    local report = ms.jit_report(compiled)
    if report.eager and not may_be_left then error("left to Lua: " .. report.eager) end
  end)
end

t.test("a caught error is replayed without Lua", function()
  local calls = 0
  local f = ms.jit(function(x)
    local ok, e = pcall(function() error("no", 0) end)
    return x * 2, ok, e
  end)
  for i = 1, 6 do
    t.equal({ f(ms.tensor { 1.0 * i }) }, { ms.tensor { 2.0 * i }, false, "no" })
    calls = calls + 1
  end
  if ms.jit_report(f).compiled_calls < 4 then error("not compiled: " .. tostring(ms.jit_report(f))) end
end)

t.test("a call that fails is done again, and may not fail then", function()
  local count = 0
  local function host() -- through load, so that it is a function that is called, not looked into
    count = count + 1
    if count % 3 == 0 then error("third", 0) end
    return count
  end
  local opaque = coroutine.wrap(function() while true do coroutine.yield(select(2, pcall(host))) end end)
  local f = ms.jit(function(x)
    local _, v = pcall(opaque)
    return x, v
  end)
  for i = 1, 9 do
    local _, v = f(ms.tensor { 1.0 })
    t.equal(v, i % 3 == 0 and "third" or i)
  end
end)

t.test("equal elements are sorted as Lua does", function()
  for trial = 1, 30 do
    local a, b, log_a, log_b = {}, {}, {}, {}
    for i = 1, (trial * 7) % 40 do
      a[i] = { key = (i * trial * 13) % 5, i = i }
      b[i] = a[i]
    end
    table.sort(a, function(p, q)
      log_a[#log_a + 1] = p.i .. "," .. q.i
      return p.key < q.key
    end)
    ms.jit(function(list)
      table.sort(list, function(p, q)
        log_b[#log_b + 1] = p.i .. "," .. q.i
        return p.key < q.key
      end)
    end)(b)
    t.equal(log_b, log_a)
    for i = 1, #a do t.equal(rawequal(a[i], b[i]), true) end
  end
end)

t.test("a tensor that goes out twice is one tensor", function()
  local store = {}
  local f = ms.jit(function(x)
    local y = x * 2
    store.y = y
    return y, y, { y }
  end)
  for _ = 1, 4 do
    local a, b, list = f(ms.tensor { 1.0 })
    t.equal({ rawequal(a, b), rawequal(a, list[1]), rawequal(a, store.y) }, { true, true, true })
  end
end)

t.test("a wrong index has the same words in every mode", function()
  local ops = ms.ops
  local x = ms.tensor { { 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 } }
  local good, bad = ms.tensor { 1 }, ms.tensor { 7 }
  local cases = {
    function(v, i) return v[i] * 2 end, function(v, i) return (v * 2)[{ ms.slice(), i }] + 1 end,
    function(v, i) return (v + 1)[{ i, i }] end, function(v, i) return v[{ 0, i }] end,
    function(v, i)
      local w = v * 2
      w[i] = 5
      return w
    end,
    function(v, i)
      local w = v * 2
      w[{ ms.slice(), i }] = v[{ 0, 0 }]
      return w
    end,
    function(v, i)
      local w, log = v * 2, {}
      log[1] = w
      return w[i] + log[1]
    end,
    function(v, i)
      for _ = 1, 3 do v = v + v[i] end
      return v
    end,
    function(v, i) return v[i[0]] end,
    function(v, i)
      local w = v * 2
      w[0] = ops.ones { i[0]:item() == 7 and 7 or 3 }
      return w
    end,
    function(v, i) return ops.gather(v, i, 0) end,
  }
  for n, f in ipairs(cases) do
    local function scalar(v, i)
      local r = f(v, i)
      return ops.sum(r)
    end
    local _, wanted = pcall(f, x, bad)
    local _, of_scalar = pcall(scalar, x, bad)
    assert(wanted:find(n < #cases and ": tensor: " or ": gather: ", 1, true), wanted)
    local compiled, slope = ms.jit(f), ms.grad(scalar)
    local compiled_slope = ms.jit(slope)
    for _ = 1, 2 do
      t.equal({ n, select(2, pcall(compiled, x, bad)) }, { n, wanted })
      t.equal({ n, select(2, pcall(slope, x, bad)) }, { n, of_scalar })
      t.equal({ n, select(2, pcall(compiled_slope, x, bad)) }, { n, of_scalar })
      for _ = 1, 3 do
        compiled(x, good)
        compiled_slope(x, good)
      end
    end
    t.equal({ n, select(2, pcall(ms.vmap(f, { 0, false }), ops.stack({ x, x }, 0), bad)) }, { n, wanted })
  end
end)

-- A C function that a call in a tail position reaches leaves the frame of its caller where it is, and so the line.
t.test("methods of tensors fail with the same words and line in every mode", function()
  local x = ms.tensor { { 1.0, 2.0 }, { 3.0, 4.5 } }
  local three = ms.tensor { 1.0, 2.0, 3.0 }
  local lists = { {}, { "bad" }, { 9 }, { -9 }, { 1.5 }, { {} }, { { 9, 9, 9 } }, { 0, "bad" }, { true }, { three }, { { bad = 1 } },
    { 0, 9 }, { ms.float32 }, { x, 3 }, { 1, 2, 3, 4, 5, 6 } }
  local methods = { "astype", "to", "type_as", "item", "select", "where", "new_full", "reshape", "sum", "transpose", "masked_select",
    "masked_fill", "gather", "index_select", "scatter", "topk", "assign", "assign_add", "assign_sub", "add_", "clamp_", "flatten",
    "expand", "narrow", "tile" }
  local failed = 0
  for _, name in ipairs(methods) do
    for k, list in ipairs(lists) do
      local function last(v) return v[name](v, table.unpack(list)) end
      local function first(v)
        local r = v[name](v, table.unpack(list))
        return v, r
      end
      for way, f in ipairs { last, first } do
        local function total(v)
          f(v)
          return v:sum()
        end
        local fine, wanted = pcall(f, x:copy())
        local _, of_total = pcall(total, x:copy())
        if not fine then
          failed = failed + 1
          local compiled = ms.jit(f)
          t.equal({ name, k, way, select(2, pcall(compiled, x:copy())) }, { name, k, way, wanted })
          t.equal({ name, k, way, select(2, pcall(compiled, x:copy())) }, { name, k, way, wanted })
          t.equal({ name, k, way, select(2, pcall(ms.grad(total), x:copy())) }, { name, k, way, of_total })
        end
      end
    end
  end
  assert(failed > 400, failed)
end)

t.test("error takes any value, and levels as Lua reads them, in every mode", function()
  local x = ms.tensor { 1.0, 2.0 }
  local function same(a, b) return a == b or ms.is_tensor(a) and ms.is_tensor(b) and a:tolist()[1] == b:tolist()[1] end
  local levels = { 0, 1, 2, 1.0, "2", " 1 ", false, x, 1.5, "x", 0 / 0 }
  local values = { "text", x, 12, false, true }
  for k, level in ipairs(levels) do
    for _, value in ipairs(values) do
      local function raised(v) error(value, level or nil) return v end
      local function inner(v)
        local function g() error(value, level or nil) end
        g()
        return v
      end
      for _, f in ipairs { raised, inner } do
        local function caught(v)
          local _, e = pcall(f, v)
          return e
        end
        local function summed(v)
          local r = f(v)
          return r:sum()
        end
        local wanted = caught(x)
        t.equal({ k, same(ms.jit(caught)(x), wanted) }, { k, true })
        local _, plain = pcall(summed, x)
        local _, derived = pcall(ms.grad(summed), x)
        local _, compiled = pcall(ms.jit(ms.grad(summed)), x)
        if not same(derived, plain) or not same(compiled, plain) then
          error(("level %s of %s: %s, %s instead of %s"):format(level, value, derived, compiled, plain), 0)
        end
      end
    end
  end
end)

t.test("a file that dofile runs may yield", function()
  local path = os.tmpname()
  local file = io.open(path, "w")
  file:write "local a = coroutine.yield(1)\nlocal b = coroutine.yield(a + 1)\nreturn a, b, 'end'"
  file:close()
  local co = coroutine.wrap(function() return dofile(path) end)
  t.equal({ co(), co(10), co(20) }, { 1, 11, 10, 20, "end" })
  local failing = coroutine.create(function()
    return pcall(function()
      coroutine.yield(dofile(path) and 1)
      return 1
    end)
  end)
  coroutine.resume(failing)
  coroutine.resume(failing, 1)
  coroutine.resume(failing, 2)
  t.equal({ coroutine.resume(failing) }, { true, true, 1 })
  os.remove(path)
end)

t.test("an error that leaves what coroutine.wrap gave names its caller as well, in every call", function()
  local n
  local ops = ms.ops
  local function in_tail(limit)
    n = n + 1
    local function f(z)
      return coroutine.wrap(function(v)
        if v:sum():item() > limit then error("large") end
        return v * 2
      end)(z)
    end
    return f(ops.ones { 2 } * n)
  end
  local function in_between(limit)
    n = n + 1
    local y = ops.ones { 2 } * n
    local result = coroutine.wrap(function(v)
      coroutine.yield(v)
      if v:sum():item() > limit then error("large") end
      return v * 2
    end)
    result(y)
    local last = result()
    return last
  end
  local function dead()
    n = n + 1
    local y = ops.ones { 2 } * n
    local result = coroutine.wrap(function(v) return v end)
    result(y)
    local last = result()
    return last
  end
  local function outcomes(f)
    local list = {}
    n = 0
    for i = 1, 8 do
      local ok, e = pcall(f, 6)
      list[i] = ok and "right" or e
    end
    return list
  end
  for _, f in ipairs { in_tail, in_between, dead } do
    local expected = outcomes(f)
    t.equal(expected[8]:find "^[^\n]*:%d+: .*" ~= nil, true)
    t.equal(outcomes(ms.jit(f)), expected)
    local function value(limit) return ms.value_and_grad(function(z) return ops.sum(f(limit)) + z end)(0.0) end
    if f ~= dead then t.equal(outcomes(value), expected) end
    if f ~= dead then t.equal(outcomes(ms.jit(value)), expected) end
  end
end)

t.finish()
