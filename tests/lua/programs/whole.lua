-- Whole random programs over tensors: loops, branches, closures, tables, writes in place, views, several results, errors.
-- Whole.new(random, options) gives a program as a tree of statements, Whole.render(program) its text: a chunk that returns
-- f(x, y, n, list), where x is a matrix, y a row of as many columns, n an integer and list two rows.
-- options.straight leaves out what vmap and saved programs cannot have: decisions by elements, tables that come in.
local Whole = {}

local PRELUDE = [[
local ms = require "lunaria"
local ops = ms.ops
local function twice(f, a) return f(f(a)) end
local function both(a, b) return a, b end
local function tail(a, ...) return ... end
local function each(t, f) local r = {} for i, v in ipairs(t) do r[i] = f(v, i) end return r end
local Cell = {}
Cell.__index = Cell
function Cell.new(w, k) return setmetatable({ w = w, k = k }, Cell) end
function Cell:run(a) self.k = self.k + 1 return a * self.w + self.k end
Cell.__call = function(self, a) return a - self.w * 0.5 end
Cell.__add = function(p, q) return Cell.new(p.w + q.w, p.k) end
]]

function Whole.new(random, options)
  options = options or {}
  local function pick(list) return list[random(#list)] end
  local function chance(p) return random() < p end
  local names = 0
  local function fresh(prefix)
    names = names + 1
    return prefix .. names
  end
  -- The variables in scope by kind: m matrices, v rows, s scalars (tensors of no axis), k floats, i integers, l lists of
  -- rows, f functions of a matrix, o objects.
  local function scope_of(outer)
    local s = { depth = outer and outer.depth + 1 or 0, loops = outer and outer.loops or 0 }
    for _, kind in ipairs { "m", "v", "s", "k", "i", "l", "f", "o" } do s[kind] = { table.unpack(outer and outer[kind] or {}) } end
    return s
  end

  -- Operators on elements, on rows, along an axis.
  local OF_ALL = { "sum", "mean", "amax", "amin", "prod" }
  local OF_ROW = { "sum", "mean" }
  local SPREAD = { "var", "std", "norm" }
  local DOWN = { "sum", "mean", "amax", "logsumexp", "var" }
  local ACROSS = { "mean", "amax", "sum", "logsumexp" }
  local ALONG = { "softmax", "log_softmax", "cumsum" }

  local m, v, s, k, i, condition
  local function literal() return pick { "0.5", "2.0", "-1.25", "0.1", "3.0", "-0.75", "1.5" } end
  local UNARY = { "tanh", "sin", "exp", "relu", "neg", "abs", "sigmoid", "square", "erf", "gelu", "softplus", "cos", "sign", "floor" }

  function i(c, deep)
    if deep > 2 or chance(0.4) then return chance(0.7) and #c.i > 0 and pick(c.i) or tostring(random(0, 4)) end
    return (pick {
      function() return ("(%s %s %s)"):format(i(c, deep + 1), pick { "+", "-", "*" }, i(c, deep + 1)) end,
      function() return ("(%s %s %d)"):format(i(c, deep + 1), pick { "%", "//", "&", "|", "~", ">>" }, random(2, 5)) end,
      function() return ("math.max(%s, %s)"):format(i(c, deep + 1), i(c, deep + 1)) end,
      function() return ("%s.shape[%d]"):format(pick(c.m), random(2)) end,
      function() return ("#%s"):format(pick(c.v)) end,
      function() return #c.l > 0 and ("#%s"):format(pick(c.l)) or "n" end,
      function() return ("select(\"#\", both(%s, nil))"):format(i(c, deep + 1)) end,
    })()
  end
  function k(c, deep)
    if deep > 2 or chance(0.35) then return chance(0.6) and #c.k > 0 and pick(c.k) or literal() end
    return (pick {
      function() return ("(%s %s %s)"):format(k(c, deep + 1), pick { "+", "-", "*" }, k(c, deep + 1)) end,
      function() return ("(%s * 0.5)"):format(i(c, deep + 1)) end,
      function() return ("math.sin(%s)"):format(k(c, deep + 1)) end,
      function() return ("math.min(%s, %s)"):format(k(c, deep + 1), k(c, deep + 1)) end,
      function() return ("(%s / 3)"):format(i(c, deep + 1)) end,
      function()
        if options.straight then return literal() end
        return ("%s:item()"):format(s(c, deep + 1))
      end,
      function()
        return ("(%s and %s or %s)"):format(condition(c, deep + 1), k(c, deep + 1), literal())
      end,
    })()
  end
  function s(c, deep)
    if deep > 3 or chance(0.2) then return #c.s > 0 and pick(c.s) or ("ops.%s(%s)"):format(OF_ROW[1], pick(c.m)) end
    return (pick {
      function() return ("ops.%s(%s)"):format(pick(OF_ALL), m(c, deep + 1)) end,
      function() return ("ops.%s(%s)"):format(pick(OF_ROW), v(c, deep + 1)) end,
      function() return ("%s[%d]"):format(v(c, deep + 1), random(-1, 1)) end,
      function() return ("%s[{ %d, %d }]"):format(pick(c.m), random(-1, 1), random(-1, 1)) end,
      function() return ("(%s %s %s)"):format(s(c, deep + 1), pick { "+", "-", "*", "/" }, s(c, deep + 1)) end,
      function() return ("(%s * %s)"):format(s(c, deep + 1), k(c, deep + 1)) end,
      function() return ("ops.%s(%s)"):format(pick(UNARY), s(c, deep + 1)) end,
      function() return ("ops.%s(%s)"):format(pick(SPREAD), m(c, deep + 1)) end,
    })()
  end
  function v(c, deep)
    if deep > 3 or chance(0.2) then return pick(c.v) end
    return (pick {
      function() return ("(%s %s %s)"):format(v(c, deep + 1), pick { "+", "-", "*" }, v(c, deep + 1)) end,
      function() return ("(%s %s %s)"):format(v(c, deep + 1), pick { "+", "*" }, s(c, deep + 1)) end,
      function() return ("(%s %s %s)"):format(v(c, deep + 1), pick { "+", "-", "*", "/" }, k(c, deep + 1)) end,
      function() return ("(%s %s %s)"):format(literal(), pick { "-", "/", "*" }, v(c, deep + 1)) end,
      function() return ("ops.%s(%s)"):format(pick(UNARY), v(c, deep + 1)) end,
      function() return ("ops.%s(%s, 0)"):format(pick(DOWN), m(c, deep + 1)) end,
      function() return ("%s[%d]"):format(m(c, deep + 1), random(-1, 1)) end,
      function() return ("%s[%s %% %s.shape[1]]"):format(pick(c.m), i(c, 2), pick(c.m)) end,
      function() return ("ops.%s(%s, 0)"):format(pick(ALONG), v(c, deep + 1)) end,
      function() return ("%s:flip(0)"):format(v(c, deep + 1)) end,
      function() return ("ops.roll(%s, %d, 0)"):format(v(c, deep + 1), random(-2, 2)) end,
      function() return ("ops.where(ops.less(%s, %s), %s, %s)"):format(v(c, deep + 1), literal(), v(c, deep + 1), v(c, deep + 1)) end,
      function() return #c.l > 0 and ("(%s[%d] or %s)"):format(pick(c.l), random(3), pick(c.v)) or pick(c.v) end,
      function() return ("ops.concat({ %s[\"0:1\"], %s[\"1:\"] }, 0)"):format(v(c, deep + 1), v(c, deep + 1)) end,
      function() return ("ops.minimum(%s, %s)"):format(v(c, deep + 1), v(c, deep + 1)) end,
    })()
  end
  function m(c, deep)
    if deep > 3 or chance(0.15) then return pick(c.m) end
    return (pick {
      function() return ("(%s %s %s)"):format(m(c, deep + 1), pick { "+", "-", "*" }, m(c, deep + 1)) end,
      function() return ("(%s %s %s)"):format(m(c, deep + 1), pick { "+", "-", "*" }, v(c, deep + 1)) end,
      function() return ("(%s %s %s)"):format(m(c, deep + 1), pick { "+", "*" }, s(c, deep + 1)) end,
      function() return ("(%s %s %s)"):format(m(c, deep + 1), pick { "+", "-", "*", "/" }, k(c, deep + 1)) end,
      function() return ("(%s %s %s)"):format(m(c, deep + 1), pick { "+", "*" }, i(c, deep + 1)) end,
      function() return ("ops.%s(%s)"):format(pick(UNARY), m(c, deep + 1)) end,
      function() return ("ops.%s(%s, %s)"):format(pick(ALONG), m(c, deep + 1), pick { "0", "1", "-1" }) end,
      function() return ("(%s - ops.%s(%s, 1, true))"):format(pick(c.m), pick(ACROSS), m(c, deep + 1)) end,
      function() return ("%s:flip(%s)"):format(m(c, deep + 1), pick { "0", "1", "{ 0, 1 }" }) end,
      function() return ("%s:t():t()"):format(m(c, deep + 1)) end,
      function() return ("(%s:t() * 2.0):t()"):format(m(c, deep + 1)) end,
      function() return ("%s:reshape(-1):reshape(%s.shape)"):format(m(c, deep + 1), pick(c.m)) end,
      function() return ("ops.where(ops.greater(%s, %s), %s, %s)"):format(m(c, deep + 1), literal(), m(c, deep + 1), m(c, deep + 1)) end,
      function() return ("ops.concat({ %s[\"1:\"], %s[\"0:1\"] }, 0)"):format(m(c, deep + 1), m(c, deep + 1)) end,
      function() return ("ops.clamp(%s, -2.0, 1.5)"):format(m(c, deep + 1)) end,
      function() return ("ops.maximum(%s, %s)"):format(m(c, deep + 1), v(c, deep + 1)) end,
      function() return ("ops.round(%s * 2):astype(ms.int32):astype(x.dtype)"):format(m(c, deep + 1)) end,
      function() return #c.f > 0 and ("%s(%s)"):format(pick(c.f), m(c, deep + 1)) or pick(c.m) end,
      function() return #c.f > 0 and ("twice(%s, %s)"):format(pick(c.f), m(c, deep + 1)) or pick(c.m) end,
      function() return #c.o > 0 and ("%s:run(%s)"):format(pick(c.o), m(c, deep + 1)) or pick(c.m) end,
      function() return #c.o > 0 and ("%s(%s)"):format(pick(c.o), m(c, deep + 1)) or pick(c.m) end,
      function() return ("(tail(%s, %s))"):format(i(c, deep + 1), m(c, deep + 1)) end,
      function() return ("ops.layer_norm(%s, { y.shape[1] })"):format(m(c, deep + 1)) end,
    })()
  end
  function condition(c, deep)
    local decisions = {
      function() return ("%s %s %s"):format(i(c, deep + 1), pick { "<", ">", "<=", "==", "~=" }, i(c, deep + 1)) end,
      function() return ("%s %% 2 == %d"):format(i(c, deep + 1), random(0, 1)) end,
      function() return ("(%s or %s == 1)"):format(pick { "false", "nil" }, i(c, deep + 1)) end,
      function() return ("%s %s %s"):format(k(c, deep + 1), pick { "<", ">" }, literal()) end,
    }
    if not options.straight then
      decisions[5] = function() return ("%s %s %s"):format(s(c, deep + 1), pick { "<", ">" }, literal()) end
    end
    return pick(decisions)()
  end

  local block
  local function add(c, kind, text)
    local name = fresh(kind)
    c[kind][#c[kind] + 1] = name
    return ("local %s = %s"):format(name, text)
  end
  local statements = {
    { 9, function(c) local e = m(c, 0) return { add(c, "m", e) } end },
    { 5, function(c) local e = v(c, 0) return { add(c, "v", e) } end },
    { 4, function(c) local e = s(c, 0) return { add(c, "s", e) } end },
    { 3, function(c) local e = k(c, 0) return { add(c, "k", e) } end },
    { 3, function(c) local e = i(c, 0) return { add(c, "i", e) } end },
    { 5, function(c) return { ("%s = %s"):format(pick(c.m), m(c, 0)) } end },
    { 4, function(c) return { ("%s = %s"):format(pick(c.v), v(c, 0)) } end },
    { 2, function(c) return { ("log[#log + 1] = %s"):format(i(c, 0)) } end },
    { 1, function(c) return #c.k > 0 and { ("log[#log + 1] = %s"):format(pick(c.k)) } or {} end },
    -- Tables.
    { 3, function(c) local e = ("{ %s, %s }"):format(v(c, 1), v(c, 1)) return { add(c, "l", e) } end },
    { 3, function(c) return #c.l > 0 and { ("%s[#%s + 1] = %s"):format(pick(c.l), pick(c.l), v(c, 1)) } or {} end },
    { 2, function(c)
      if #c.l == 0 then return {} end
      local e = ("each(%s, function(a, j) return a * j + %s end)"):format(pick(c.l), k(c, 2))
      return { add(c, "l", e) }
    end },
    { 1, function(c) return #c.l > 0 and { ("table.remove(%s, 1)"):format(pick(c.l)) } or {} end },
    { 2, function(c) local e = ("Cell.new(%s, %s)"):format(v(c, 1), k(c, 1)) return { add(c, "o", e) } end },
    { 2, function(c) return #c.o > 0 and { ("%s.w = %s"):format(pick(c.o), v(c, 1)) } or {} end },
    { 1, function(c) return #c.o > 0 and { ("%s = %s + %s"):format(pick(c.o), pick(c.o), pick(c.o)) } or {} end },
    -- Closures.
    { 3, function(c)
      local inner, name = scope_of(c), fresh "f"
      inner.loops = 0
      inner.m[#inner.m + 1] = "a"
      local seen = #c.k > 0 and pick(c.k)
      local body = block(inner, 2)
      body[#body + 1] = { seen and chance(0.5) and ("%s = %s + 0.25"):format(seen, seen) or "do end" }
      body[#body + 1] = { "return " .. m(inner, 1) }
      c.f[#c.f + 1] = name
      return { ("local function %s(a)"):format(name), body, "end" }
    end },
    -- Writes in place; the operand is a value of its own, or a view of another.
    { 4, function(c)
      local e = pick { "%s * 1.0", "%s:reshape(%s.shape)", "%s:flip(0)", "ops.flatten(%s):reshape(%s.shape)", "%s[\"...\"]", "%s:t():t()" }
      local text = add(c, "m", e:format(m(c, 1), pick(c.m)))
      local name = c.m[#c.m]
      return { text, pick { ("%s:add_(%s)"):format(name, v(c, 1)), ("%s:mul_(%s)"):format(name, k(c, 1)),
        ("%s[%d] = %s"):format(name, random(-1, 1), v(c, 1)), ("%s[{ %d, %d }] = %s"):format(name, random(0, 1), random(0, 1), k(c, 1)),
        ("%s[\"1:\"] = %s[\":-1\"]"):format(name, pick(c.m)), ("%s[\":, 0\"] = %s"):format(name, k(c, 1)),
        ("%s[ops.greater(%s, 0.5)] = %s"):format(name, name, literal()),
        ("%s:copy_(%s)"):format(name, m(c, 1)), ("%s:zero_()"):format(name), ("%s:clamp_(-1.0, 1.0)"):format(name) } }
    end },
    { 2, function(c)
      local text = add(c, "v", ("%s[%d]"):format(pick(c.m), random(0, 1)))
      local name = c.v[#c.v]
      return { text, pick { ("%s:add_(%s)"):format(name, k(c, 1)), ("%s[%d] = %s"):format(name, random(-1, 1), k(c, 1)),
        ("%s[\"::2\"] = %s"):format(name, k(c, 1)) } }
    end },
    -- Loops and branches.
    { 4, function(c)
      local inner, name = scope_of(c), fresh "i"
      inner.i[#inner.i + 1], inner.loops = name, c.loops + 1
      local range = pick { "1, 3", "1, n", "n, 1, -1", "0, n % 3", "1, #y % 4", "3, 1, -2" }
      return { ("for %s = %s do"):format(name, range), block(inner, 3), "end" }
    end, "nested" },
    { 2, function(c)
      local name, inner = fresh "i", scope_of(c)
      inner.loops = c.loops + 1
      local turns = random(2, 4)
      return { ("local %s = 0"):format(name), ("while %s < %d and not (%s) do"):format(name, turns, condition(c, 1)),
        { { ("%s = %s + 1"):format(name, name) }, table.unpack(block(inner, 2)) }, "end" }
    end, "nested" },
    { 1, function(c)
      local name, inner = fresh "i", scope_of(c)
      inner.loops = c.loops + 1
      return { ("local %s = 0"):format(name), "repeat", { { ("%s = %s + 1"):format(name, name) }, table.unpack(block(inner, 2)) },
        ("until %s >= 3 or %s"):format(name, condition(c, 1)) }
    end, "nested" },
    { 4, function(c)
      return { ("if %s then"):format(condition(c, 0)), block(scope_of(c), 2), "else", block(scope_of(c), 2), "end" }
    end, "nested" },
    { 2, function(c)
      if #c.l == 0 then return {} end
      local inner, name = scope_of(c), fresh "v"
      inner.v[#inner.v + 1], inner.loops = name, c.loops + 1
      return { ("for j, %s in ipairs(%s) do"):format(name, pick(c.l)), block(inner, 2), "if j > 3 then break end", "end" }
    end, "nested" },
    { 1, function(c) return c.loops > 0 and { ("if %s then break end"):format(condition(c, 1)) } or {} end },
    -- Several results.
    { 2, function(c)
      local a, b, name = m(c, 1), s(c, 1), fresh "m"
      local other = fresh "s"
      c.m[#c.m + 1], c.s[#c.s + 1] = name, other
      return { ("local %s, %s = both(%s, %s)"):format(name, other, a, b) }
    end },
    { 1, function(c)
      local a, b = fresh "v", fresh "v"
      local text = ("local %s, %s = ops.min(%s, 0)"):format(a, b, m(c, 1))
      c.v[#c.v + 1] = a
      return { text, ("log[#log + 1] = #%s"):format(b) }
    end },
    -- Errors.
    { 2, function(c)
      local inner = scope_of(c)
      inner.loops = 0
      local body = block(inner, 2)
      local raised = pick { "\"stop \" .. n", "{ code = n }", "n", "\"low\", 0" }
      body[#body + 1] = { ("if %s then error(%s) end"):format(condition(inner, 1), raised) }
      local target = pick(c.m)
      body[#body + 1] = { ("%s = %s"):format(target, m(inner, 1)) }
      return { "do", { { "local fine, e = pcall(function()", body, "end)" },
        { "log[#log + 1] = fine and \"fine\" or type(e) == \"table\" and \"code \" .. e.code or tostring(e)" } }, "end" }
    end, "nested" },
    { 1, function(c)
      local wrong = pick { ("ops.matmul(%s, y)[9]"):format(pick(c.m)), ("%s + %s[\"1:\"]"):format(pick(c.v), pick(c.v)),
        ("ops.concat({ %s, %s }, 0)"):format(pick(c.m), pick(c.v)), ("%s:reshape({ 7, -1 })"):format(pick(c.v)),
        ("ops.sum(%s, 5)"):format(pick(c.m)), ("%s[99]"):format(pick(c.m)), ("%s .. 1"):format(pick(c.m)), "nosuch.field",
        ("ops.softmax(%s, { axes = 1 })"):format(pick(c.m)), ("%s < %s"):format(pick(c.m), pick(c.v)), ("#%s + nil"):format(pick(c.v)) }
      return { ("do local fine, e = pcall(function() return %s end) log[#log + 1] = tostring(fine) .. \" \" .. "):format(wrong)
        .. "(fine and \"\" or tostring(e)) end" }
    end },
    { 1, function(c)
      if not options.errors then return {} end
      return { ("if %s then error(\"ended \" .. #log) end"):format(condition(c, 1)) }
    end },
    { 1, function(c)
      if not options.errors then return {} end
      return { ("if %s then return %s, \"early\" end"):format(condition(c, 1), pick(c.m)) }
    end },
    { 1, function(c) return { ("do local %s <const> = %s"):format(fresh "m", m(c, 1)), block(scope_of(c), 2), "end" } end, "nested" },
    { 1, function(c)
      if options.straight then return {} end
      return { ("%s = ms.grad(function(a) return ops.sum(a * %s) end)(%s)"):format(pick(c.m), m(c, 2), pick(c.m)) }
    end },
  }
  local total = 0
  for _, row in ipairs(statements) do total = total + row[1] end
  local function statement(c)
    while true do
      local at = random(total)
      for _, row in ipairs(statements) do
        at = at - row[1]
        if at <= 0 then
          if c.depth > 2 and row[3] then break end
          local node = row[2](c)
          if #node > 0 then return node end
          break
        end
      end
    end
  end
  function block(c, most)
    local list = {}
    for n = 1, random(most) do
      list[n] = statement(c)
      -- A break is the last statement of its block.
      if list[n][1]:find("^if .* then break end$") then break end
    end
    return list
  end

  local c = scope_of()
  c.m, c.v, c.i = { "x" }, { "y" }, { "n" }
  if not options.straight then c.l = { "list" } end
  local body = { { "local log = {}" } }
  for _ = 1, random(4, 10) do body[#body + 1] = statement(c) end
  local record = ("{ a = %s, list = { %s, %s } }"):format(pick(c.v), pick(c.v), s(c, 2))
  local results = { pick(c.m), s(c, 1), record, "table.concat(log, \" \")" }
  if #c.k > 0 then table.insert(results, 2, pick(c.k)) end
  if options.straight then results[#results] = nil end
  body[#body + 1] = { "return " .. table.concat(results, ", ") }
  return body
end

local function lines_of(block, indent, lines)
  for _, node in ipairs(block) do
    for _, part in ipairs(node) do
      if type(part) == "table" then lines_of(part, indent .. "  ", lines) else lines[#lines + 1] = indent .. part end
    end
  end
  return lines
end

function Whole.render(program)
  return PRELUDE .. "return function(x, y, n, list)\n" .. table.concat(lines_of(program, "  ", {}), "\n") .. "\nend\n"
end

-- Leaves out statements and opens blocks as long as `fails(program)` holds.
function Whole.shrink(program, fails)
  local tries = 0
  local function visit(block)
    local changed = false
    for at = #block, 1, -1 do
      local node = table.remove(block, at)
      tries = tries + 1
      if tries < 1000 and fails(program) then
        changed = true
      else
        table.insert(block, at, node)
        for _, part in ipairs(node) do
          if type(part) == "table" then changed = visit(part) or changed end
        end
      end
    end
    return changed
  end
  while visit(program) and tries < 1000 do end
  return program
end

return Whole
