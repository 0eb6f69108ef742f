-- Random statements, as nodes (maker.lua): each kind gives a list of nodes, or nil where it does not fit.
local Maker = require "programs.expressions"

local kinds = {}

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
  local variable = m:target("n")
  if not variable then return nil end
  local name = variable.name
  local value = m:weighted {
    { 3, n(m) }, { 2, ("%s * 0.5 + %s"):format(name, m:squashed(m:expression("n", 2))) },
    { 1, ("%s - 0.3 * %s"):format(name, m:squashed(m:expression("n", 2))) },
  }
  return { { ("%s = %s"):format(name, value) } }
end

function kinds.assign_vector(m)
  local variable = m.tensors and m:target("v")
  if not variable then return nil end
  return { { ("%s = ops.tanh(%s)"):format(variable.name, m:expression("v", 2)) } }
end

function kinds.swap(m)
  local a, b = m:target("n"), m:target("n")
  if not a or a.name == b.name then return nil end
  return { { ("%s, %s = %s, %s"):format(a.name, b.name, b.name, m:squashed(a.name .. " + " .. m:expression("n", 1))) } }
end

function kinds.index_assign(m)
  if not m.tensors then return nil end
  local value, name = m:value("v", 1), m:fresh("v")
  local lines = { { ("local %s = %s * 1.0"):format(name, value) } }
  for _ = 1, m:between(1, 3) do
    lines[#lines + 1] = { m:weighted {
      { 3, ("%s[%d] = %s"):format(name, m:between(0, 2), m:squashed(m:expression("n", 1))) },
      { 1, ("%s[%d] = %s[%d] * %s"):format(name, m:between(0, 2), name, m:between(0, 2), m:constant()) },
      { 1, ("%s[\"%d:\"] = %s"):format(name, m:between(0, 2), m:squashed(m:expression("n", 1))) },
      { 1, ("%s[ops.less(%s, %s)] = %s"):format(name, name, m:constant(), m:squashed(m:expression("n", 0))) },
      { 1, ("for i = 0, 2 do %s[i] = %s[(i + 1) %% 3] * 0.5 + %s end"):format(name, name, m:expression("n", 0)) },
    } }
  end
  m:declare(name, "v", false)
  return lines
end

-- A tensor that is written into, with or without other owners.
local function written(m)
  local variable = m:variable("v")
  if variable.level < m.functions then m.writer = true end
  return variable.name
end

function kinds.in_place(m)
  if not m.tensors then return nil end
  local name = written(m)
  return { { m:weighted {
    { 2, ("%s:mul_(%s)"):format(name, m:constant()) },
    { 3, ("%s:add_(%s)"):format(name, m:squashed(m:expression("n", 1))) },
    { 2, ("%s:mul_(%s):tanh_()"):format(name, m:expression("v", 1)) },
    { 2, ("%s:sin_()"):format(name) },
    { 3, ("%s[%d] = %s"):format(name, m:between(0, 2), m:squashed(m:expression("n", 1))) },
    { 2, ("%s:copy_(ops.tanh(%s))"):format(name, m:expression("v", 1)) },
    { 1, ("%s:fill_(%s)"):format(name, m:squashed(m:expression("n", 1))) },
    { 1, ("%s:clamp_(-1.31, 1.17)"):format(name) },
    { 1, ("%s:sub_(%s):cos_()"):format(name, name) },
    { 1, ("%s[\"1:\"] = %s"):format(name, m:squashed(m:expression("n", 1))) },
    { 1, ("ops.assign(%s, ops.sin(%s))"):format(name, m:expression("v", 1)) },
  } } }
end

function kinds.in_place_scalar(m)
  local variable = m.tensors and m:variable("n")
  if not variable then return nil end
  if variable.level < m.functions then m.writer = true end
  local name = variable.name
  return { { ("if ms.is_tensor(%s) then %s end"):format(name, m:pick {
    ("%s:mul_(%s)"):format(name, m:constant()), ("%s:add_(%s):tanh_()"):format(name, m:expression("n", 1)), ("%s:sin_()"):format(name),
  }) } }
end

-- Another name for a tensor, the tensor in a table, and what reads and writes it from there.
function kinds.alias_tensor(m)
  if not m.tensors then return nil end
  local of, name, box = m:variable("v").name, m:fresh("v"), m:fresh("h")
  local way = m:between(1, 4)
  if way == 1 then
    m:declare(name, "v", m:chance(0.5))
    return { { ("local %s = %s"):format(name, of) } }
  elseif way == 2 then
    local lines = {
      { ("local %s = { %s, inner = { %s, %s } }"):format(box, of, m:variable("v").name, of) },
      { ("%s.inner[1]:mul_(%s)"):format(box, m:constant()) },
      { ("%s[1][%d] = %s"):format(box, m:between(0, 2), m:squashed(m:expression("n", 1))) },
      { ("local %s = %s.inner[%d]"):format(name, box, m:between(1, 2)) },
    }
    m.writer = true
    m:declare(name, "v", true)
    return lines
  elseif way == 3 then
    local value, argument = m:fresh("f"), m:fresh("p")
    m:declare(value, { kind = "function", params = { "n" }, results = { "n" }, cost = 1, writer = true })
    return { { ("local function %s(%s) %s[%d] = ops.tanh(%s) return ops.sum(%s) * 0.3 end"):format(value, argument, of,
      m:between(0, 2), argument, m:variable("v").name) } }
  end
  m.writer = true
  m:declare(name, "v", true)
  return { { ("local %s = (function(t, ...) t:mul_(%s) return ... end)(%s, %s)"):format(name, m:constant(), of,
    m:variable("v").name) } }
end

function kinds.branch(m)
  local node = { ("if %s then"):format(m:condition(2)), m:block() }
  for _ = 1, m:between(0, 1) do
    node[#node + 1] = ("elseif %s then"):format(m:condition(1))
    node[#node + 1] = m:block()
  end
  if m:chance(0.6) then
    node[#node + 1] = "else"
    node[#node + 1] = m:block()
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
    local block = m:block()
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
  local record, target = m:variable("record"), m:target("n")
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

function kinds.log(m)
  local value = m:weighted { { 2, m:wild_integer() }, { 2, m:text() }, { 1, m:integer(1) } }
  return { { ("log[#log + 1] = %s"):format(value) } }
end

kinds["do"] = function(m) return { { "do", m:block(), "end" } } end

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
  local target = m:target("n")
  if not target then return nil end
  local value = m:squashed(m:expression("n", 1))
  return { { "do", {
    { ("local _ <close> = setmetatable({}, { __close = function() %s = %s * 0.7 + %s end })"):format(target.name, target.name, value) },
    { ("%s = %s"):format(target.name, m:squashed(m:expression("n", 1))) },
  }, "end" } }
end

return { kinds = kinds, Maker = Maker }
