-- Random statements about functions: declarations, closures, recursion, objects, pcall. As in statements.lua.
local statements = require "programs.statements"

local kinds = statements.kinds

local function n(m, depth) return m:value("n", depth) end

-- A body that ends in `return`; early returns on the way.
local function function_body(m, params, results)
  return m:body(function()
    for _, param in ipairs(params) do m:declare(param, "n", true) end
    local block = m:block(m:between(0, 2))
    local values = {}
    for i = 1, results do values[i] = m:squashed(m:expression("n", 2)) end
    block[#block + 1] = { "return " .. table.concat(values, ", ") }
    return block
  end, results)
end

local function names(m, prefix, count)
  local list = {}
  for i = 1, count do list[i] = m:fresh(prefix) end
  return list
end

local function simple(count)
  local list = {}
  for i = 1, count do list[i] = "n" end
  return list
end

kinds["function"] = function(m)
  if m.functions > 2 then return nil end
  local name, params, results = m:fresh("f"), names(m, "p", m:between(0, 3)), m:between(1, 2)
  local varargs = m:chance(0.2)
  local head = table.concat(params, ", ") .. (varargs and (#params > 0 and ", ..." or "...") or "")
  local block, cost, writer = function_body(m, params, results)
  if varargs then
    table.insert(block, 1, { ("if select(\"#\", ...) > 0 then local q = ... return %s end"):format(
      results == 2 and "q * 0.7, (select(\"#\", ...) * q)" or "0.2 + (select(-1, ...)) * q") })
  end
  m:declare(name, {
    kind = "function", params = simple(#params), results = simple(results), cost = cost, varargs = varargs, writer = writer,
  })
  if m:chance(0.7) then return { { ("local function %s(%s)"):format(name, head), block, "end" } } end
  return { { ("local %s = function(%s)"):format(name, head), block, "end" } }
end

function kinds.early_return(m)
  if not m.results then return nil end
  local values = {}
  for i = 1, m.results do values[i] = m:squashed(m:expression("n", 1)) end
  return { { ("if %s then return %s end"):format(m:condition(1), table.concat(values, ", ")) } }
end

function kinds.one_result(m)
  local text = m:call(1, 1)
  if not text then return nil end
  return { { ("local %s = %s"):format(m:declare(m:fresh("a"), "n", true), text) } }
end

function kinds.two_results(m)
  local text, type = m:call(1, 2)
  if not text or #type.results < 2 then return nil end
  local a, b = m:fresh("a"), m:fresh("a")
  m:declare(a, "n", true)
  m:declare(b, "n", true)
  return { { ("local %s, %s = %s"):format(a, b, text) } }
end

-- All results of a call as arguments or elements.
function kinds.spread(m)
  local text, type = m:call(1, 2)
  if not text or #type.results < 2 then return nil end
  local name, first = m:fresh("t"), m:expression("n", 1)
  m:declare(name, { kind = "list", length = 3 })
  return { { ("local %s = { %s, %s }"):format(name, first, text) } }
end

function kinds.unpack(m)
  local list = m:variable("list")
  if not list or list.type.length < 2 then return nil end
  local a, b = m:fresh("a"), m:fresh("a")
  m:declare(a, "n", true)
  m:declare(b, "n", true)
  return { { ("local %s, %s = table.unpack(%s)"):format(a, b, list.name) } }
end

-- Two closures over one variable, one that writes and one that reads.
function kinds.shared_upvalue(m)
  if m.functions > 2 then return nil end
  local state, put, get, p, a = m:fresh("state"), m:fresh("put"), m:fresh("get"), m:fresh("p"), m:fresh("a")
  local start, argument = n(m, 1), m:expression("n", 1)
  local update = m:body(function()
    m:declare(p, "n")
    m:declare(state, "n")
    return m:squashed(("%s * 0.6 + %s"):format(state, m:expression("n", 2)))
  end)
  m:declare(state, "n", true)
  m:declare(a, "n", true)
  return {
    { ("local %s = %s"):format(state, start) },
    { ("local function %s(%s) %s = %s end"):format(put, p, state, update) },
    { ("local %s = function() return %s end"):format(get, state) },
    { ("%s(%s) %s(%s())"):format(put, argument, put, get) },
    { ("local %s = %s() - %s"):format(a, get, state) .. (" + %s"):format(state) },
  }
end

-- Closures made in a loop keep the loop's variables of their own turn.
function kinds.closures_in_loop(m)
  if m.functions > 2 or not m:affords(6) then return nil end
  local list, i, a, total, f = m:fresh("fs"), m:fresh("i"), m:fresh("a"), m:fresh("a"), m:fresh("f")
  local value = m:repeated(3, function()
    m:declare(i, "i")
    return m:squashed(("%s + %s"):format(i, m:expression("n", 2)))
  end)
  local start = m:squashed(m:expression("n", 1))
  local result = {
    { ("local %s = {}"):format(list) },
    { ("for %s = 1, 3 do"):format(i), {
      { ("local %s = %s"):format(a, value) },
      { ("%s[%s] = function(q) %s = %s * 0.5 + q return %s * %s end"):format(list, i, a, a, a, i) },
    }, "end" },
    { ("local %s = %s"):format(total, start) },
    { ("for _, %s in ipairs(%s) do %s = %s(%s) * 0.5 + 0.1 * %s(%s) end"):format(f, list, total, f, total, f, total) },
  }
  m:declare(total, "n", true)
  return result
end

function kinds.recursion(m)
  if m.functions > 2 or not m:affords(5) then return nil end
  local name, count, p = m:fresh("rec"), m:fresh("i"), names(m, "p", 2)
  local last, first, second, kept
  local block = m:body(function()
    m:declare(count, "i")
    for _, param in ipairs(p) do m:declare(param, "n", true) end
    m.cost = 4
    local inner = m:block(m:between(0, 1))
    last, first, second, kept = m:squashed(m:expression("n", 1)), m:squashed(m:expression("n", 2)),
      m:squashed(m:expression("n", 1)), m:squashed(m:expression("n", 1))
    return inner
  end, 1)
  table.insert(block, 1, { ("if %s <= 0 then return %s end"):format(count, last) })
  local again = ("%s(%s - 1, %s, %s)"):format(name, count, first, second)
  block[#block + 1] = { m:weighted {
    { 2, "return " .. again }, { 2, ("return %s + 0.5 * %s"):format(kept, again) }, { 1, ("return %s * %s"):format(kept, again) },
  } }
  local a = m:fresh("a")
  local call = ("local %s = %s(%d, %s, %s)"):format(a, name, m:between(0, 4), m:expression("n", 1), m:expression("n", 1))
  m:declare(a, "n", true)
  return { { ("local function %s(%s, %s)"):format(name, count, table.concat(p, ", ")), block, "end" }, { call } }
end

function kinds.higher_order(m)
  if m.functions > 2 or not m:affords(6) then return nil end
  local p, q = m:fresh("p"), m:fresh("p")
  local one = m:body(function()
    m:declare(p, "n", true)
    return m:squashed(m:expression("n", 2))
  end)
  local two = m:body(function()
    m:declare(p, "n", true)
    m:declare(q, "n", true)
    return m:squashed(("%s * 0.5 + %s"):format(p, m:expression("n", 2)))
  end)
  local list, a, start = m:variable("list"), m:fresh("a"), m:expression("n", 1)
  local sine = m.tensors and "ops.sin" or "math.sin"
  local way = m:between(1, list and 4 or 2)
  local result
  if way == 1 then
    result = ("compose(function(%s) return %s end, %s)(%s)"):format(p, one, sine, start)
  elseif way == 2 then
    result = ("iterate(%d, function(%s) return %s end, %s)"):format(m:between(0, 3), p, one, start)
  elseif way == 3 then
    result = ("fold(function(%s, %s) return %s end, %s, %s)"):format(p, q, two, start, list.name)
  else
    local t = m:fresh("t")
    local length = list.type.length
    m:declare(t, { kind = "list", length = length })
    return { { ("local %s = map(function(%s) return %s end, %s)"):format(t, p, one, list.name) } }
  end
  m:declare(a, "n", true)
  return { { ("local %s = %s"):format(a, result) } }
end

function kinds.object(m)
  local a, b = m:value("n", 1), m:value("n", 1)
  local name = m:fresh("o")
  m:declare(name, { kind = "object" })
  return { { ("local %s = %s.new(%s, %s)"):format(name, m:pick { "Pair", "Pair", "Child" }, a, b) } }
end

function kinds.method_call(m)
  local object = m:variable("object")
  if not object or not m:affords(2) then return nil end
  return { { ("%s:set(%s)"):format(object.name, m:squashed(m:expression("n", 1))) } }
end

function kinds.new_object(m)
  local p, q = m:variable("object"), m:variable("object")
  if not p then return nil end
  local name = m:fresh("o")
  m:declare(name, { kind = "object" })
  return { { ("local %s = %s"):format(name, m:pick { p.name .. " + " .. q.name, "-" .. p.name, p.name .. " * 0.5" }) } }
end

function kinds.pcall(m)
  local ok, a = m:fresh("ok"), m:fresh("a")
  local value = m:squashed(m:expression("n", 2))
  local way = m:between(1, 3)
  local other = m:squashed(m:expression("n", 1))
  m:declare(a, "n", true)
  if way == 1 then return { { ("local %s, %s = pcall(function() return %s end)"):format(ok, a, value) } } end
  if way == 2 then
    return { { ("local %s, %s = pcall(function()"):format(ok, a), {
      { ("if %s then error(\"left\") end"):format(m:condition(1)) }, { "return " .. value } }, "end)" },
      { ("if not %s then log[#log + 1] = type(%s) %s = %s end"):format(ok, a, a, other) } }
  end
  return { { ("local %s, %s = select(2, pcall(pcall, function(q) return q + %s end, %s))"):format(ok, a, value, other) } }
end

-- An error that carries a value.
function kinds.raised(m)
  local ok, a = m:fresh("ok"), m:fresh("a")
  local value = m:squashed(m:expression("n", 2))
  local way = m:between(1, 4)
  m:declare(a, "n", true)
  if way == 1 then
    return { { ("local %s, %s = pcall(error, %s)"):format(ok, a, value) } }
  elseif way == 2 then
    return { { ("local %s, %s = xpcall(function() error(%s) end, function(e) return e * 0.6 end)"):format(ok, a, value) } }
  end
  return { { ("local %s, %s = pcall(function() error({ value = %s }) end)"):format(ok, a, value) },
    { ("if not %s then %s = %s.value * 0.8 end"):format(ok, a, a) } }
end

-- A coroutine that a loop takes values from, or that gets values as well and may not come to its end.
function kinds.coroutine(m)
  local target = m:target("n")
  if not target or m.functions > 2 or not m:affords(4) then return nil end
  local i, co, q, a, b = m:fresh("i"), m:fresh("co"), m:fresh("q"), m:fresh("a"), m:fresh("b")
  local both, times = m:chance(0.5), m:between(1, 4)
  local block = nil
  m:body(function()
    m.cost = 4
    block = m:scope(function()
      m:declare(i, "i")
      if both then m:declare(q, "n", true) end
      local inner = m:block(1)
      local value = m:squashed(m:expression("n", 1))
      inner[#inner + 1] = { both and ("%s = 0.5 * coroutine.yield(%s)"):format(q, value) or ("coroutine.yield(%s)"):format(value) }
      return inner
    end)
  end)
  local loop = { ("for %s = 1, %d do"):format(i, times), block, "end" }
  if not both then
    return { { ("for %s in coroutine.wrap(function()"):format(a), { loop },
      ("end) do %s = 0.6 * %s + 0.4 * %s end"):format(target.name, target.name, a) } }
  end
  local first = m:squashed(m:expression("n", 1))
  m:declare(a, "n", true)
  m:declare(b, "n", true)
  return { { ("local %s = coroutine.create(function(%s)"):format(co, q), { loop, { ("return %s"):format(q) } }, "end)" },
    { ("local _, %s = coroutine.resume(%s, %s)"):format(a, co, first) },
    { ("local _, %s = coroutine.resume(%s, %s + %s)"):format(b, co, a, target.name) },
    { ("if type(%s) ~= type(%s) then %s = %s end"):format(b, a, b, a) } }
end

-- A call that changes variables and then may fail, half way through a loop.
function kinds.failing(m)
  local target = m:target("n")
  if not target or m.functions > 2 or not m:affords(4) then return nil end
  local ok, e, i, a = m:fresh("ok"), m:fresh("e"), m:fresh("i"), m:fresh("a")
  local block, condition, value = nil, nil, nil
  m:body(function()
    m.cost = 4
    block = m:scope(function()
      m:declare(i, "i")
      local inner = m:block(1)
      condition = m:condition(1)
      inner[#inner + 1] = { ("%s = %s"):format(target.name, m:squashed(m:expression("n", 1))) }
      return inner
    end)
    value = m:squashed(m:expression("n", 1))
  end)
  block[#block + 1] = { ("if %s then error({ value = %s }) end"):format(condition, value) }
  m:declare(a, "n", true)
  return {
    { ("local %s, %s = pcall(function()"):format(ok, e), {
      { ("for %s = 1, %d do"):format(i, m:between(1, 3)), block, "end" },
      { m.tensors and "return ms.tensor(0.3, ms.float64)" or "return 0.3" } }, "end)" },
    { ("local %s = %s and %s or %s.value"):format(a, ok, e, e) },
  }
end

-- A variable that is closed on the way out of a function or of a loop.
function kinds.closing_exit(m)
  local target = m:target("n")
  if not target or m.functions > 2 or not m:affords(3) then return nil end
  local closed, inner, i, a = m:fresh("c"), m:fresh("q"), m:fresh("i"), m:fresh("a")
  local first = m:squashed(target.name .. " * 0.7 + " .. m:expression("n", 1))
  local second, condition = m:squashed(m:expression("n", 1)), m:condition(1)
  local value = m:squashed(target.name .. " + " .. m:expression("n", 1))
  m:declare(a, "n", true)
  return {
    { ("local %s = (function()"):format(a), {
      { ("for %s = 1, 3 do"):format(i), {
        { ("local %s <close> = setmetatable({}, { __close = function() %s = %s end })"):format(closed, target.name, first) },
        { ("if %s then break end"):format(condition) },
        { ("local %s <close> = setmetatable({}, { __close = function() %s = %s end })"):format(inner, target.name, second) },
        { ("if %s == 2 then return %s end"):format(i, value) },
      }, "end" },
      { ("return %s * 0.5"):format(target.name) },
    }, "end)()" },
  }
end

return statements
