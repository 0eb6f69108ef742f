-- Random scripts: functions that share state of many kinds (tables with a second name, objects with metatables, closures,
-- globals, memoised results, views) and a main part that calls them, changes the state in between and reports everything
-- through out(...). Script.new(random) gives { lines, functions = { { head, body, tail } ... }, main = { ... } } of texts that
-- are statements, so that a search for a smaller script can leave some out; Script.render makes a text of it.
local Script = {}

local PRELUDE = [[
local ms, out = ...
local ops = ms.ops
local function V(...) return ms.tensor({ ... }, ms.float64) end
local S = { n = 2, a = 0.5, t = V(0.5, -1, 2), list = {}, sub = { a = 0.25, v = V(1, 2, 3) }, name = "ab", flag = true }
S.alias = S.sub
local base = V(1, 2, 3, 4, 5, 6)
local count, kept, memo, weak = 0, nil, {}, setmetatable({}, { __mode = "k" })
G1, G2 = 1, V(3, 2, 1)
local Box = {}
Box.__index = Box
function Box.new(v, k) return setmetatable({ v = v, k = k }, Box) end
function Box:scaled(x) return x * self.k end
function Box:bump(d) self.k = self.k + d return self end
Box.__call = function(self, x, n) return self.v * x + (n or 0) end
Box.__add = function(a, b) return getmetatable(a) == Box and a.v + b or b.v + a end
Box.__len = function(self) return self.k // 1 end
Box.__eq = function(a, b) return a.k == b.k end
Box.__lt = function(a, b) return a.k < b.k end
Box.__concat = function(a, b) return tostring(a) .. tostring(b) end
Box.__tostring = function(self) return ("Box(%.3f)"):format(self.k) end
local Chest = setmetatable({}, { __index = Box })
Chest.__index = function(self, key) if key == "lazy" then self.lazy = self.v * 2 return self.lazy end return Chest[key] end
Chest.__newindex = function(self, key, value) rawset(self, key, value) count = count + 1 end
function Chest:scaled(x) return Box.scaled(self, x) + 1 end
local box, chest = Box.new(V(1, 0, -1), 2), setmetatable({ v = V(2, 2, 2), k = 3 }, Chest)
local function counter(k) local n = k return function(x) n = n + 1 return x * n, n end end
local c1, c2 = counter(0), counter(5)
local function each(t, f) for i, v in ipairs(t) do f(v, i) end end
local function many(...) return select("#", ...), ... end
local function apply(f, ...) return f(...) end
local function remember(f) return function(x, n) local r = memo[n] if r == nil then r = f(x, n) memo[n] = r end return r end end
local closer = { __close = function(o, e) S.closed = (S.closed or 0) + (e == nil and 1 or 100) + o.k end }
local function add_(t, x) t.v = t.v + x return t end
]]

local TAIL = [[
out("S", S.n, S.a, S.t, S.sub.a, S.sub.v, S.name, S.flag, #S.list, S.closed, rawequal(S.alias, S.sub), S.alias.a, S.last)
out("rest", count, kept, base, G1, G2, box.k, box.v, chest.k, rawget(chest, "lazy"), c1(V(1)), c2(V(1)))
for i, v in ipairs(S.list) do out("list", i, v) end
for i = -3, 12 do if memo[i] ~= nil then out("memo", i, memo[i]) end end
]]

function Script.new(random)
  local function pick(list) return list[random(#list)] end
  local function chance(p) return random() < p end

  -- `scope`: the names of local variables by kind that a statement may use.
  local function scope_of(outer)
    local s = { x = { table.unpack(outer and outer.x or { "x" }) }, n = { table.unpack(outer and outer.n or { "n" }) } }
    s.depth = outer and outer.depth + 1 or 0
    s.functions = outer and outer.functions or {}
    return s
  end
  local names = 0
  local function fresh(prefix) names = names + 1 return prefix .. names end

  local number, vector, condition
  local function literal() return pick { "0.5", "2", "1", "-1", "3", "0.25", "1.5", "-0.5" } end
  function number(s, deep)
    deep = deep or 0
    if deep > 2 or chance(0.3) then return chance(0.6) and pick(s.n) or literal() end
    return (pick {
      function() return ("(%s %s %s)"):format(number(s, deep + 1), pick { "+", "-", "*" }, number(s, deep + 1)) end,
      function() return ("(%s // 1 %% %d)"):format(number(s, deep + 1), random(2, 5)) end,
      function() return "S.n" end,
      function() return "S.a" end,
      function() return "S.sub.a" end,
      function() return "S.alias.a" end,
      function() return "count" end,
      function() return "G1" end,
      function() return "box.k" end,
      function() return "#S.list" end,
      function() return "#x" end, function() return "#S.name" end, function() return "#box" end,
      function() return ("ops.sum(%s):item()"):format(pick(s.x)) end,
      function() return ("%s[0]:item()"):format(pick(s.x)) end,
      function() return ("math.%s(%s, %s)"):format(pick { "max", "min" }, number(s, deep + 1), number(s, deep + 1)) end,
      function() return ("math.floor(%s)"):format(number(s, deep + 1)) end,
      function() return ("(%s and %s or %s)"):format(condition(s, deep + 1), number(s, deep + 1), literal()) end,
      function() return ("(t.k or %s)"):format(literal()) end,
      function() return ("(S.sub.%s or %s)"):format(pick { "b", "c" }, literal()) end,
      function() return ("select('#', many(%s))"):format(pick { "", "n", "n, nil", "x, n, 1" }) end,
      function() return ("(tonumber(S.name) or %d)"):format(random(5)) end,
      function() return ("(chest.%s or 1)"):format(pick { "k", "j" }) end,
      function() return ("(math.type(%s) == 'integer' and 2 or 1)"):format(pick(s.n)) end,
    })()
  end
  function condition(s, deep)
    deep = deep or 0
    return (pick {
      function()
        return ("%s %s %s"):format(number(s, deep + 1), pick { "<", ">", "<=", "==", "~=" }, number(s, deep + 1))
      end,
      function() return "S.flag" end, function() return "not S.flag" end, function() return "kept" end,
      function() return ("ops.mean(%s):item() > %s"):format(pick(s.x), pick { "0.137", "-0.377", "1.913" }) end,
      function() return ("ops.sum(%s) > %s"):format(pick(s.x), pick { "0.137", "1.913" }) end,
      function() return "rawequal(S.alias, S.sub)" end,
      function() return "S.t == x" end,
      function() return "box == chest" end,
      function() return "t.k" end, function() return "n" end, function() return "S.name:find('b')" end,
      function() return "box < Box.new(x, 3)" end,
      function() return ("next(S.list) %s nil"):format(pick { "==", "~=" }) end,
      function() return "getmetatable(t) == Box" end,
    })()
  end
  function vector(s, deep)
    deep = deep or 0
    if deep > 2 or chance(0.25) then return pick(s.x) end
    local function v() return vector(s, deep + 1) end
    return (pick {
      function() return ("(%s %s %s)"):format(v(), pick { "+", "-", "*" }, v()) end,
      function() return ("(%s %s %s)"):format(v(), pick { "+", "-", "*", "/" }, number(s, deep + 1)) end,
      function() return ("(%s * %s)"):format(number(s, deep + 1), v()) end,
      function()
        local text = ("ops.%s(%s)")
        return text:format(pick { "tanh", "sin", "relu", "cumsum", "exp", "neg", "softmax" }, v()):gsub("cumsum%((.*)%)$", "cumsum(%1, 0)")
      end,
      function() return ("ops.clip(%s, -2, 2)"):format(v()) end,
      function() return ("ops.where(ops.greater(%s, %s), %s, %s)"):format(v(), literal(), v(), v()) end,
      function() return "S.t" end,
      function() return "S.sub.v" end,
      function() return "S.alias.v" end,
      function() return "G2" end,
      function() return "box.v" end, function() return "chest.lazy" end, function() return "(kept or x)" end,
      function() return "(S.list[#S.list] or x)" end,
      function() return "(S.list[1] or S.t)" end,
      function() return "(t.x or x)" end,
      function() return "base['0:3']" end,
      function() return "base['::2']" end,
      function() return ("base[{ ms.slice(%d, %d) }]"):format(random(0, 2), random(4, 6)) end,
      function() return ("%s:flip(0)"):format(pick(s.x)) end,
      function() return ("ops.roll(%s, 1, 0)"):format(pick(s.x)) end,
      function() return ("box:scaled(%s)"):format(v()) end, function() return ("chest:scaled(%s)"):format(v()) end,
      function() return ("box(%s, %s)"):format(v(), pick { "n", "nil", "2" }) end,
      function() return ("(box + %s)"):format(v()) end,
      function() return ("(c1(%s))"):format(v()) end, function() return ("(apply(c2, %s))"):format(v()) end,
      function() return ("apply(function(y) return y * %s end, %s)"):format(number(s, deep + 1), v()) end,
      function()
        return ("remember(function(y, k) return y * k end)(%s, math.floor(%s) %% 5)"):format(v(), number(s, deep + 1))
      end,
      function()
        return ("(select(2, pcall(function() if %s then error(%s) end return %s end)))"):format(condition(s, 2), v(), v())
      end,
      function() return ("(%s and %s or %s)"):format(condition(s, deep + 1), v(), v()) end,
      function()
        return ("coroutine.wrap(function(y) coroutine.yield(y * %s) end)(%s)"):format(number(s, deep + 1), v())
      end,
      function()
        local text = ("(ms.grad(function(y) return ops.sum(y * %s) end)(%s))")
        return text:format(pick { "y", "S.t", "n", "S.a", "box.v", "y * S.sub.a" }, pick(s.x))
      end,
      function() return ("V(%s, %s, %s)"):format(number(s, deep + 1), literal(), number(s, deep + 1)) end,
      function() return ("ops.stack({ %s[0], %s[1], %s[2] })"):format(pick(s.x), pick(s.x), pick(s.x)) end,
      function() return ("(select(%d, many(%s, %s)))"):format(random(2, 3), v(), v()) end,
      function()
        if #s.functions == 0 then return v() end
        return ("(%s(%s, %s, t))"):format(pick(s.functions), v(), number(s, deep + 1))
      end,
    })()
  end

  local block
  local function statement(s)
    local function x() return pick(s.x) end
    local kinds = {
      function() local e, name = vector(s), fresh "v" s.x[#s.x + 1] = name return ("local %s = %s"):format(name, e) end,
      function() local e, name = vector(s), fresh "v" s.x[#s.x + 1] = name return ("local %s = %s"):format(name, e) end,
      function() local e, name = number(s), fresh "k" s.n[#s.n + 1] = name return ("local %s = %s"):format(name, e) end,
      function() return ("S.n = (%s) %% 7"):format(number(s)) end,
      function() return ("S.a = 0.5 * S.a + ops.mean(%s):item() * 0.1"):format(x()) end,
      function() return ("S.t = 0.5 * S.t + 0.1 * %s"):format(vector(s)) end,
      function() return ("S.%s.a = %s"):format(pick { "sub", "alias" }, number(s)) end,
      function() return ("S.%s.v = %s"):format(pick { "sub", "alias" }, vector(s)) end,
      function() return ("S.sub.%s = %s"):format(pick { "b", "c" }, pick { "nil", number(s) }) end,
      function() return ("S.list[#S.list + 1] = %s"):format(vector(s)) end,
      function() return "if #S.list > 3 then table.remove(S.list, 1) end" end,
      function() return "S.list[#S.list] = nil" end,
      function() return ("table.insert(S.list, 1, %s)"):format(x()) end,
      function() return "count = count + 1" end,
      function() return ("count = count + (%s) // 1"):format(number(s)) end,
      function() return ("kept = %s"):format(pick { "nil", vector(s), x() }) end,
      function() return ("G1 = %s"):format(number(s)) end,
      function() return ("G2 = %s"):format(vector(s)) end,
      function() return "S.flag = not S.flag" end,
      function() return ("S.name = (S.name .. (%s) // 1 %% 10):sub(-5)"):format(number(s)) end,
      function()
        local text = ("S.name = S.name:gsub('%%d', %s)")
        local by = pick { "''", "'b'", "{ ['1'] = 'one' }", "function(d) count = count + d return 'b' end" }
        return text:format(by) .. " S.name = S.name:sub(1, 6)"
      end,
      function() return ("box:bump(%s)"):format(number(s)) end,
      function() return ("box.v = %s"):format(vector(s)) end,
      function() return ("chest.%s = %s"):format(pick { "j", "k" }, number(s)) end,
      function() return ("t.%s = %s"):format(pick { "k", "x" }, "nil") end,
      function() return ("t.x = %s"):format(vector(s)) end,
      function() return ("t.k = %s"):format(number(s)) end,
      function() return ("add_(S.sub, %s)"):format(vector(s)) end,
      function()
        return ("S[%s] = %s"):format(pick { "'last'", "#S.name", "box.k", "'' .. #S.list" }, pick { number(s), "true" })
      end,
      function() return ("weak[%s] = %s"):format(x(), number(s)) end,
      function()
        return ("do local y = %s * 1 y[%s] = %s S.t = y end"):format(vector(s), pick { "0", "-1", "'1:'" }, number(s))
      end,
      function()
        return ("do local y = %s * 1 y:%s(%s) kept = y end"):format(vector(s), pick { "add_", "mul_" }, pick { number(s), vector(s) })
      end,
      function() return ("S.t[%s] = %s"):format(pick { "0", "-1" }, number(s)) end,
      function() return ("S.sub.v:mul_(%s)"):format(literal()) end,
      function() return ("base[%s] = %s"):format(pick { "0", "2", "'3:5'" }, number(s)) end,
      function() return ("S.t, S.sub.v = S.sub.v, %s"):format(pick { "S.t", vector(s) }) end,
      function() return ("S.alias = %s"):format(pick { "S.sub", "{ a = 1, v = x }" }) end,
      function() return ("out(%s, %s)"):format(number(s), vector(s)) end,
      function()
        return ("out(tostring(box), S.name .. %s, ('%%s|%%5.2f'):format(S.name, %s))"):format("#S.list", number(s))
      end,
      function() return "out(math.random(10), ops.rand({ 2 }))" end,
      function() return ("each(S.list, function(v, i) S.a = S.a + (%s) * i * 0.01 end)"):format(number(s)) end,
      function()
        local text = ("do local _ <close> = setmetatable({ k = %s }, closer) %s end")
        return text:format(pick { "1", "n" }, chance(0.3) and "if " .. condition(s) .. " then return x, 'closed' end" or "")
      end,
      function()
        local text = ("out(pcall(function() count = count + 1 if %s then error({ code = count }) end S.n = %s end))")
        return text:format(condition(s), number(s)):gsub("out%(pcall%(", "out((pcall(") .. ")"
      end,
      function()
        return ("do local ok, e = pcall(error, %s) out(ok, e) end"):format(pick { number(s), x(), "'text'", "nil" })
      end,
      function() return ("if %s then return %s, 'early' end"):format(condition(s), x()) end,
      function() return ("if %s then error('stop ' .. count) end"):format(condition(s)) end,
      function()
        local text = ("local function %s(y) %s = %s + 1 return y * %s end")
        return text:format("f", "count", "count", number(s)) .. (" S.t = f(%s)"):format(x())
      end,
    }
    if s.depth < 2 then
      for _ = 1, 2 do
        table.insert(kinds, function()
          return ("if %s then\n%s\nelse\n%s\nend"):format(condition(s), block(s, 2), block(s, 1))
        end)
        table.insert(kinds, function()
          return ("for i = %s do\n%s\nend"):format(pick { "1, 3", "1, S.n % 4", "3, 1, -1", "1, #S.list", "0, n % 3" }, block(s, 2, "i"))
        end)
        table.insert(kinds, function()
          return ("for i, v in ipairs(S.list) do\n%s\nif i > 4 then break end\nend"):format(block(s, 1, "i", "v"))
        end)
        table.insert(kinds, function()
          return ("do local i = 0 while i < 3 and %s do i = i + 1\n%s\nend end"):format(condition(s), block(s, 2, "i"))
        end)
        table.insert(kinds, function()
          return ("for _, key in ipairs({ 'a', 'b', 'c' }) do local i = S.sub[key]\nif i then\n%s\nend end"):format(block(s, 1, "i"))
        end)
        table.insert(kinds, function()
          return ("for i = 1, 4 do\nif %s then goto continue end\ndo\n%s\nend\n::continue::\nend"):format(condition(s), block(s, 1, "i"))
        end)
      end
    end
    return pick(kinds)()
  end
  function block(s, most, number_name, vector_name)
    local inner, lines = scope_of(s), {}
    if number_name then inner.n[#inner.n + 1] = number_name end
    if vector_name then inner.x[#inner.x + 1] = vector_name end
    for i = 1, random(most) do
      local text = statement(inner)
      -- What leaves the function has to be the last of a block.
      lines[i] = text
    end
    return table.concat(lines, "\n")
  end

  local script = { functions = {}, main = {} }
  local defined = {}
  for i = 1, random(2, 4) do
    local s = scope_of()
    s.functions = { table.unpack(defined) }
    local name, body = "f" .. i, {}
    for k = 1, random(2, 7) do body[k] = statement(s) end
    local results = { vector(s), number(s) }
    if chance(0.3) then results[3] = "t" end
    script.functions[i] = { name = name, body = body, tail = "return " .. table.concat(results, ", ", 1, random(#results)) }
    defined[i] = name
  end
  local s = scope_of()
  s.x, s.n, s.depth, s.functions = { "x" }, { "n" }, 1, defined
  for _ = 1, random(16, 30) do
    local text
    if chance(0.75) then
      text = ("out(pcall(%s, x, n, t))"):format(pick(defined))
    else
      text = (pick {
        function() return ("x = V(%s, %s, %s)"):format(literal(), literal(), literal()) end,
        function()
          return pick { "x = S.t", "x = x * 1", "x = G2", "x = V(1, 2, 3, 4)", "x = V(2)", "x = box.v", "x = base['3:']" }
        end,
        function()
          return "n = " .. pick { "1", "2", "3", "2.0", "0.5", "nil", "-1", "n and n + 1", "0", "'3'", "1e308 * 10", "-0.0" }
        end,
        function()
          return "t = " .. pick { "{}", "{ k = 2 }", "{ x = V(1, 1, 1) }", "S.sub",
            "S", "box", "{ k = 1.5, x = x }", "setmetatable({}, { __index = { k = 4 } })" }
        end,
        function()
          return "S.sub = " .. pick { "{ a = 1, v = V(1, 1, 1) }", "S.alias", "{ a = 0.5, b = 2, v = x }" }
        end,
        function()
          return pick { "S.list = {}", "S.flag = not S.flag", "S.name = '12'", "S.n = 3",
            "S.n = 2.0", "S.a = 1", "kept = nil", "memo = {}" }
        end,
        function() return "function Box:scaled(y) return y * self.k + " .. literal() .. " end" end,
        function() return "Box.__call = function(self, y) return y - self.k end" end,
        function()
          return pick { "G1 = G1 + 1", "G2 = G2 * 1", "G1 = 2.5", "base = base + 1", "base[0] = 7", "S.t[1] = 9" }
        end,
        function()
          return pick { "box = Box.new(V(0, 1, 2), 1)", "setmetatable(box, Chest)", "setmetatable(box, Box)", "chest.lazy = nil" }
        end,
        function() return "c1 = counter(" .. pick { "0", "10", "0.5" } .. ")" end,
        function() return "many = function(...) return 7, ... end" end,
        function() return pick { "collectgarbage()", "ms.set_seed(3)", "math.randomseed(5)" } end,
        function() return pick(defined) .. " = " .. pick(defined) end,
      })()
    end
    script.main[#script.main + 1] = text
  end
  return script
end

function Script.render(script)
  local parts = { PRELUDE, "local x, n, t = V(1, -0.5, 2), 2, {}" }
  local names = {}
  for i, f in ipairs(script.functions) do names[i] = f.name end
  parts[#parts + 1] = "local " .. table.concat(names, ", ")
  for _, f in ipairs(script.functions) do
    parts[#parts + 1] = ("function %s(x, n, t)"):format(f.name)
    for _, text in ipairs(f.body) do parts[#parts + 1] = "do end " .. text end
    parts[#parts + 1] = f.tail .. "\nend"
  end
  for _, text in ipairs(script.main) do parts[#parts + 1] = text end
  parts[#parts + 1] = TAIL
  return table.concat(parts, "\n")
end

return Script
