-- Whole random programs.
local statements = require "programs.functions"

local kinds, Maker = statements.kinds, statements.Maker

local weights = {
  { 10, "declare" }, { 7, "declare_vector" }, { 2, "declare_text" }, { 1, "shadow" }, { 9, "assign" }, { 4, "assign_vector" },
  { 3, "swap" }, { 2, "index_assign" }, { 6, "branch" }, { 5, "for" }, { 3, "while" }, { 2, "repeat" }, { 4, "leave" },
  { 4, "over_list" }, { 2, "over_pairs" }, { 3, "list" }, { 2, "filled_list" }, { 4, "record" }, { 1, "alias" }, { 5, "write" },
  { 3, "grow" }, { 5, "function" }, { 2, "early_return" }, { 3, "one_result" }, { 3, "two_results" }, { 1, "spread" }, { 2, "unpack" },
  { 3, "shared_upvalue" }, { 2, "closures_in_loop" }, { 3, "recursion" }, { 3, "higher_order" }, { 3, "object" },
  { 2, "method_call" },
  { 2, "new_object" }, { 3, "pcall" }, { 2, "raised" }, { 2, "failing" }, { 1, "closing_exit" }, { 4, "log" }, { 1, "do" },
  { 2, "string_keys" }, { 1, "global" }, { 1, "close" }, { 2, "coroutine" }, { 4, "in_place" },
  { 1, "in_place_scalar" }, { 3, "alias_tensor" },
}

-- The nodes of one statement.
local function statement(m)
  local kind = m:weighted(weights)
  return not m.without[kind] and kinds[kind](m) or kinds.declare(m)
end

-- A block of its own scope.
function Maker:block(count)
  return self:scope(function()
    local block = {}
    if self.depth > 3 then return { { ("log[#log + 1] = %s"):format(self:integer(0)) } } end
    self.depth = self.depth + 1
    for _ = 1, count or self:between(1, 3) do
      for _, node in ipairs(statement(self)) do block[#block + 1] = node end
    end
    self.depth = self.depth - 1
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
  "Pair.__concat = function(p, q) return p.a * q.b * 0.3 end",
  "Pair.__len = function(p) return p.a - p.b * 0.5 end",
  "Pair.__idiv = function(p, k) p.a = p.a * 0.9 return p.b * k end",
  "Pair.__mod = function(p, q) return Pair.new(p.b, q.a * 0.5) end",
  "Pair.__pow = function(p, k) return p.a * k - p.b end",
  "Pair.__band = function(p) p.b = p.b * 0.8 return p.a end",
  "Pair.__bnot = function(p) return p.a * p.b * 0.2 end",
  "Pair.__shl = function(p) return Pair.new(p.b, p.a) end",
  "Pair.__lt = function(p, q) p.a = p.a * 0.7 return p.b < q.a end",
  "Pair.__le = function(p, q) return p.a <= q.b end",
  "Pair.__eq = function(p, q) q.b = q.b * 0.6 return p.a == q.a end",
  "local Child = setmetatable({}, { __index = Pair })",
  "Child.__index, Child.__add, Child.__mul, Child.__unm = Child, Pair.__add, Pair.__mul, Pair.__unm",
  "for _, event in ipairs { \"concat\", \"len\", \"idiv\", \"mod\", \"pow\", \"band\", \"bnot\", \"shl\", \"lt\", \"le\", \"eq\" } do",
  "  Child[\"__\" .. event] = Pair[\"__\" .. event]",
  "end",
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
    for _, node in ipairs(self:block(1)) do block[#block + 1] = node end
    for _ = 1, self:between(4, 9) do
      for _, node in ipairs(statement(self)) do block[#block + 1] = node end
    end
    block[#block + 1] = { ("return %s, table.concat(log, \" \")"):format(summary(self)) }
    return block
  end)
  program[#program + 1] = { ("return function(%s)"):format(takes_table and "t" or "x, y"), main, "end" }
  return program
end

return Maker
