-- Random statements, functions and whole programs as nodes (maker.lua). Each kind gives a list of nodes, or nil where it does
-- not fit.
local Maker = require "programs.expressions"

local kinds = {}
local make_block

local function n(m, depth) return m:value("n", depth) end

function kinds.declare(m)
  local value, name = n(m), m:fresh("a")
  local attribute = m:chance(0.15)
  m:declare(name, "n", not attribute)
  return { { ("local %s%s = %s"):format(name, attribute and " <const>" or "", value) } }
end

function kinds.declare_vector(m)
  if not m.tensors then return nil end
  local value = m:value("v", 2)
  return { { ("local %s = %s"):format(m:declare(m:fresh("v"), "v", true), value) } }
end

function kinds.declare_text(m)
  local value = m:text()
  return { { ("local %s = %s"):format(m:declare(m:fresh("s"), "s"), value) } }
end

function kinds.shadow(m)
  local old = m:variable("n")
  local value = n(m)
  m:declare(old.name, "n", true)
  return { { ("local %s = %s"):format(old.name, value) } }
end

function kinds.assign(m)
  local variable = m:variable("n", true)
  if not variable then return nil end
  local name = variable.name
  local value = m:weighted {
    { 3, n(m) }, { 2, ("%s * 0.5 + %s"):format(name, m:squashed(m:expression("n", 2))) },
    { 1, ("%s - 0.3 * %s"):format(name, m:squashed(m:expression("n", 2))) },
  }
  return { { ("%s = %s"):format(name, value) } }
end

function kinds.assign_vector(m)
  local variable = m.tensors and m:variable("v", true)
  if not variable then return nil end
  return { { ("%s = ops.tanh(%s)"):format(variable.name, m:expression("v", 2)) } }
end

function kinds.swap(m)
  local a, b = m:variable("n", true), m:variable("n", true)
  if not a or a.name == b.name then return nil end
  return { { ("%s, %s = %s, %s"):format(a.name, b.name, b.name, m:squashed(a.name .. " + " .. m:expression("n", 1))) } }
end

function kinds.index_assign(m)
  if not m.tensors then return nil end
  local value, name = m:value("v", 1), m:fresh("v")
  local lines = { { ("local %s = %s * 1.0"):format(name, value) },
    { ("%s[%d] = %s"):format(name, m:between(0, 2), m:squashed(m:expression("n", 1))) } }
  m:declare(name, "v", false)
  return lines
end

function kinds.branch(m)
  local node = { ("if %s then"):format(m:condition(2)), make_block(m) }
  for _ = 1, m:between(0, 1) do
    node[#node + 1] = ("elseif %s then"):format(m:condition(1))
    node[#node + 1] = make_block(m)
  end
  if m:chance(0.6) then
    node[#node + 1] = "else"
    node[#node + 1] = make_block(m)
  end
  node[#node + 1] = "end"
  return { node }
end

-- A block that runs several times; what it needs from the loop is declared first. `continue` puts a label at its end.
local function loop_body(m, times, can_continue, declare)
  return m:repeated(times, function()
    local label = can_continue and m:fresh("continue_")
    m.loops[#m.loops + 1] = { label = label }
    if declare then declare() end
    local block = make_block(m)
    local loop = table.remove(m.loops)
    if loop.used then block[#block + 1] = { ("::%s::"):format(label) } end
    return block
  end)
end

kinds["for"] = function(m)
  local times = m:between(0, 4)
  if not m:affords(times) then return nil end
  local i, first, step = m:fresh("i"), m:between(-1, 3), m:pick { 1, 1, 1, -1, 2 }
  local head = ("for %s = %d, %d%s do"):format(i, first, first + step * (times - 1), step == 1 and "" or ", " .. step)
  return { { head, loop_body(m, math.max(times, 1), true, function() m:declare(i, "i") end), "end" } }
end

kinds["while"] = function(m)
  local times = m:between(1, 4)
  if not m:affords(times) then return nil end
  local i = m:fresh("i")
  local head = m:chance(0.4) and ("while %s < %d and (%s) do"):format(i, times, m:condition(1)) or ("while %s < %d do"):format(i, times)
  local body = loop_body(m, times, true, function() m:declare(i, "i") end)
  table.insert(body, 1, { ("%s = %s + 1"):format(i, i) })
  return { { ("local %s = 0"):format(i) }, { head, body, "end" } }
end

kinds["repeat"] = function(m)
  local times = m:between(1, 4)
  if not m:affords(times) then return nil end
  local i, done = m:fresh("i"), m:fresh("done")
  local body = loop_body(m, times, false, function() m:declare(i, "i") end)
  table.insert(body, 1, { ("%s = %s + 1"):format(i, i) })
  -- The condition sees the body's local.
  table.insert(body, 2, { ("local %s = %s >= %d"):format(done, i, times) })
  return { { ("local %s = 0"):format(i) }, { "repeat", body, ("until %s or (%s)"):format(done, m:condition(1)) } }
end

function kinds.leave(m)
  local loop = m.loops[#m.loops]
  if not loop then return nil end
  if loop.label and m:chance(0.5) then
    loop.used = true
    return { { ("if %s then goto %s end"):format(m:condition(1), loop.label) } }
  end
  return { { ("if %s then break end"):format(m:condition(1)) } }
end

function kinds.over_list(m)
  local list = m:variable("list")
  if not list or not m:affords(list.type.length + 2) then return nil end
  local i, a = m:fresh("i"), m:fresh("a")
  local head = m:weighted {
    { 3, ("for %s, %s in ipairs(%s) do"):format(i, a, list.name) },
    { 1, ("for %s, %s in counted(%s) do"):format(i, a, list.name) },
    { 1, ("for %s, %s in backwards, %s, #%s + 1 do"):format(i, a, list.name, list.name) },
  }
  return { { head, loop_body(m, list.type.length + 2, true, function()
    m:declare(i, "i")
    m:declare(a, "n", true)
  end), "end" } }
end

-- pairs comes in no order that a program may rely on: only a sum is taken.
function kinds.over_pairs(m)
  local record, target = m:variable("record"), m:variable("n", true)
  if not record or not target or not m:affords(4) then return nil end
  local key, value = m:fresh("key"), m:fresh("a")
  return { { ("for %s, %s in pairs(%s) do"):format(key, value, record.name), {
    { ("if type(%s) == %q then %s = %s + 0.3 * %s end"):format(value, m.tensors and "userdata" or "number", target.name,
      target.name, m:squashed(value)) },
  }, "end" } }
end

function kinds.list(m)
  local values, length = {}, m:between(1, 4)
  for i = 1, length do values[i] = m:value("n", 1) end
  local name = m:fresh("t")
  m:declare(name, { kind = "list", length = length })
  if m:chance(0.3) then return { { ("local %s = table.pack(%s)"):format(name, table.concat(values, ", ")) } } end
  return { { ("local %s = { %s }"):format(name, table.concat(values, ", ")) } }
end

-- A list that a loop fills.
function kinds.filled_list(m)
  local length = m:between(2, 4)
  if not m:affords(length) then return nil end
  local i, name = m:fresh("i"), m:fresh("t")
  local value = m:repeated(length, function()
    m:declare(i, "i")
    return m:squashed(("%s * %s"):format(i, m:expression("n", 2)))
  end)
  m:declare(name, { kind = "list", length = length })
  return { { ("local %s = {}"):format(name) }, { ("for %s = 1, %d do"):format(i, length), {
    { ("%s[#%s + 1] = %s"):format(name, name, value) } }, "end" } }
end

function kinds.record(m)
  local fields, parts = {}, {}
  for _, name in ipairs { "a", "b", "c" } do
    if m:chance(0.7) or name == "a" then
      fields[name] = "n"
      parts[#parts + 1] = ("%s = %s"):format(name, m:value("n", 1))
    end
  end
  if m:chance(0.3) then
    fields.inner = { kind = "record", fields = { k1 = "n", k2 = "n" } }
    parts[#parts + 1] = ("inner = { k1 = %s, [\"k\" .. 2] = %s }"):format(m:value("n", 1), m:value("n", 1))
  end
  local name = m:fresh("t")
  m:declare(name, { kind = "record", fields = fields })
  return { { ("local %s = { %s }"):format(name, table.concat(parts, ", ")) } }
end

function kinds.alias(m)
  local variable = m:variable(m:pick { "record", "list", "object", "function" })
  if not variable then return nil end
  local name = m:fresh("u")
  m:declare(name, variable.type)
  return { { ("local %s = %s"):format(name, variable.name) } }
end

function kinds.write(m)
  local variable = m:variable(m:pick { "record", "list", "object" })
  if not variable then return nil end
  local kind = variable.type.kind
  local place = kind == "list" and m:element(variable) or kind == "object" and variable.name .. "." .. m:pick { "a", "b" }
    or m:field(variable.name, variable.type)
  local value = m:squashed(m:weighted { { 1, m:expression("n", 2) }, { 1, place .. " + " .. m:expression("n", 1) } })
  return { { ("%s = %s"):format(place, value) } }
end

-- Lists stay short, also where a loop over the list comes by.
function kinds.grow(m)
  local list = m:variable("list")
  if not list then return nil end
  local name, value = list.name, m:squashed(m:expression("n", 1))
  if m:chance(0.3) then return { { ("if #%s > %d then table.remove(%s) end"):format(name, list.type.length, name) } } end
  return { { ("if #%s < 8 then"):format(name), { { m:weighted {
    { 2, ("table.insert(%s, %s)"):format(name, value) },
    { 1, ("table.insert(%s, 1, %s)"):format(name, value) },
    { 1, ("%s[#%s + 1] = %s"):format(name, name, value) },
  } } }, "end" } }
end

-- A body that ends in `return`; early returns on the way.
local function function_body(m, params, results)
  return m:body(function()
    for _, param in ipairs(params) do m:declare(param, "n", true) end
    local block = make_block(m, m:between(0, 2))
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
  local block, cost = function_body(m, params, results)
  if varargs then
    table.insert(block, 1, { ("if select(\"#\", ...) > 0 then local q = ... return %s end"):format(
      results == 2 and "q * 0.7, (select(\"#\", ...) * q)" or "0.2 + (select(-1, ...)) * q") })
  end
  m:declare(name, { kind = "function", params = simple(#params), results = simple(results), cost = cost, varargs = varargs })
  if m:chance(0.7) then return { { ("local function %s(%s)"):format(name, head), block, "end" } } end
  return { { ("local %s = function(%s)"):format(name, head), block, "end" } }
end

function kinds.early_return(m)
  if not m.results then return nil end
  local values = {}
  for i = 1, m.results do values[i] = m:squashed(m:expression("n", 1)) end
  return { { ("if %s then return %s end"):format(m:condition(1), table.concat(values, ", ")) } }
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
    local inner = make_block(m, m:between(0, 1))
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
  local way = m:between(1, 4)
  local other = m:squashed(m:expression("n", 1))
  m:declare(a, "n", true)
  if way == 1 then return { { ("local %s, %s = pcall(function() return %s end)"):format(ok, a, value) } } end
  if way == 2 then
    return { { ("local %s, %s = pcall(function() error({ value = %s }) end)"):format(ok, a, value) },
      { ("if not %s then %s = %s.value * 0.8 end"):format(ok, a, a) } }
  end
  if way == 3 then
    return { { ("local %s, %s = pcall(function()"):format(ok, a), {
      { ("if %s then error(\"left\") end"):format(m:condition(1)) }, { "return " .. value } }, "end)" },
      { ("if not %s then log[#log + 1] = type(%s) %s = %s end"):format(ok, a, a, other) } }
  end
  return { { ("local %s, %s = select(2, pcall(pcall, function(q) return q + %s end, %s))"):format(ok, a, value, other) } }
end

function kinds.log(m)
  local value = m:weighted { { 2, m:wild_integer() }, { 2, m:text() }, { 1, m:integer(1) } }
  return { { ("log[#log + 1] = %s"):format(value) } }
end

kinds["do"] = function(m) return { { "do", make_block(m), "end" } } end

-- String keys, made at run time, with a default for what is missing.
function kinds.string_keys(m)
  local t, a, i = m:fresh("t"), m:fresh("a"), m:integer(1)
  local value, other = m:squashed(m:expression("n", 2)), m:squashed(m:expression("n", 1))
  m:declare(a, "n", true)
  return {
    { ("local %s = { k0 = %s, k1 = %s, k3 = %s }"):format(t, other, value, m:constant()) },
    { ("%s[\"k\" .. %s] = %s"):format(t, i, m:squashed(t .. ".k1 + " .. other)) },
    { ("local %s = (%s[\"k\" .. %s] or %s) * 0.9 + %s.k1"):format(a, t, m:integer(1), value, t) },
  }
end

function kinds.global(m)
  local value, a = n(m, 2), m:fresh("a")
  local lines = { { ("shared = %s"):format(value) }, { ("shared = %s"):format(m:squashed("shared * " .. m:expression("n", 1))) },
    { ("local %s = shared + _G.shared"):format(a) } }
  m:declare(a, "n", true)
  return lines
end

function kinds.close(m)
  local target = m:variable("n", true)
  if not target then return nil end
  local value = m:squashed(m:expression("n", 1))
  return { { "do", {
    { ("local _ <close> = setmetatable({}, { __close = function() %s = %s * 0.7 + %s end })"):format(target.name, target.name, value) },
    { ("%s = %s"):format(target.name, m:squashed(m:expression("n", 1))) },
  }, "end" } }
end

local weights = {
  { 10, "declare" }, { 7, "declare_vector" }, { 2, "declare_text" }, { 1, "shadow" }, { 9, "assign" }, { 4, "assign_vector" },
  { 3, "swap" }, { 2, "index_assign" }, { 6, "branch" }, { 5, "for" }, { 3, "while" }, { 2, "repeat" }, { 4, "leave" },
  { 4, "over_list" }, { 2, "over_pairs" }, { 3, "list" }, { 2, "filled_list" }, { 4, "record" }, { 1, "alias" }, { 5, "write" },
  { 3, "grow" }, { 5, "function" }, { 2, "early_return" }, { 3, "two_results" }, { 1, "spread" }, { 2, "unpack" },
  { 3, "shared_upvalue" }, { 2, "closures_in_loop" }, { 3, "recursion" }, { 3, "higher_order" }, { 3, "object" },
  { 2, "method_call" }, { 2, "new_object" }, { 3, "pcall" }, { 4, "log" }, { 1, "do" }, { 2, "string_keys" }, { 1, "global" },
  { 1, "close" },
}

function make_block(m, count)
  return m:scope(function()
    local block = {}
    if m.depth > 3 then return { { ("log[#log + 1] = %s"):format(m:integer(0)) } } end
    m.depth = m.depth + 1
    for _ = 1, count or m:between(1, 3) do
      for _, node in ipairs(kinds[m:weighted(weights)](m) or kinds.declare(m)) do block[#block + 1] = node end
    end
    m.depth = m.depth - 1
    return block
  end)
end

-- What every program may use.
local prelude = {
  "local ms = require \"lunaria\"",
  "local ops = ms.ops",
  "local log",
  "local function compose(f, g) return function(x) return f(g(x)) end end",
  "local function iterate(count, f, x) if count == 0 then return x end return iterate(count - 1, f, f(x)) end",
  "local function map(f, t) local r = {} for i, x in ipairs(t) do r[i] = f(x) end return r end",
  "local function fold(f, x, t) for i = 1, #t do x = f(x, t[i]) end return x end",
  "local function counted(t) local i = 0 return function() i = i + 1 if t[i] then return i, t[i] end end end",
  "local function backwards(t, i) i = i - 1 if i > 0 then return i, t[i] end end",
  "local Pair = {}",
  "function Pair.new(a, b) return setmetatable({ a = a, b = b }, Pair) end",
  "function Pair:mix(x) return self.a * x + self.b end",
  "function Pair:set(x) self.a, self.b = self.b, x return self end",
  "Pair.__index = function(self, key) if key == \"sum\" then return self.a + self.b end return Pair[key] end",
  "Pair.__add = function(p, q) return Pair.new(p.a + q.a, p.b * q.b) end",
  "Pair.__mul = function(p, k) return Pair.new(p.a * k, p.b) end",
  "Pair.__unm = function(p) return Pair.new(-p.a, p.b) end",
  "Pair.__call = function(self, x) return self:mix(x) * 0.5 end",
  "local Child = setmetatable({}, { __index = Pair })",
  "Child.__index, Child.__add, Child.__mul, Child.__unm = Child, Pair.__add, Pair.__mul, Pair.__unm",
  "Child.__call = function(self, x) return Pair.mix(self, x) - self.b end",
  "function Child.new(a, b) return setmetatable(Pair.new(a, b), Child) end",
  "function Child:mix(x) return Pair.mix(self, x) * 0.7 + self.sum end",
  "Child.sum = 0.25",
}

-- The result: something of all that is in scope at the end.
local function summary(m)
  local terms = {}
  for _ = 1, 4 do terms[#terms + 1] = ("%s * %s"):format(m:constant(), m:expression("n", 1)) end
  for _, variable in ipairs(m.variables) do
    if variable.type == "n" and m:chance(0.5) and #terms < 9 then terms[#terms + 1] = variable.name end
    if variable.type == "v" and m:chance(0.5) and #terms < 9 then terms[#terms + 1] = ("ops.sum(%s)"):format(variable.name) end
  end
  return table.concat(terms, " + ")
end

-- The program as a block: a chunk that gives a function of x and y, or of one table with the fields x, y and list. The
-- function gives its value and what it has logged.
function Maker:program(takes_table)
  local program = {}
  for _, line in ipairs(prelude) do program[#program + 1] = { line } end
  local main = self:body(function()
    local block = { { "log = {}" } }
    if takes_table then
      block[2] = { "local x, y = t.x, t.list[1]" }
      if not self.tensors then self:declare("t", { kind = "record", fields = { x = "n" } }) end
    end
    if self.tensors then
      block[#block + 1] = { ("local a = ops.sum(x * %s)"):format(self:constant()) }
      block[#block + 1] = { ("local b = y[%d]"):format(self:between(0, 2)) }
      self:declare("x", "v", true)
      self:declare("y", "v", true)
      self:declare("a", "n", true)
      self:declare("b", "n", true)
    else
      self:declare("x", "n", true)
      self:declare("y", "n", true)
    end
    for _, node in ipairs(make_block(self, 1)) do block[#block + 1] = node end
    for _ = 1, self:between(4, 9) do
      for _, node in ipairs(kinds[self:weighted(weights)](self) or kinds.declare(self)) do block[#block + 1] = node end
    end
    block[#block + 1] = { ("return %s, table.concat(log, \" \")"):format(summary(self)) }
    return block
  end)
  program[#program + 1] = { ("return function(%s)"):format(takes_table and "t" or "x, y"), main, "end" }
  return program
end

return Maker
