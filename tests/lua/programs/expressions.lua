-- Random expressions as text. Values stay small: what is stored is squashed by a bounded function first.
local Maker = require "programs.maker"

local function format(pattern, ...) return (pattern:gsub("%%", "%%%%"):gsub("@", "%%s")):format(...) end

-- A stored scalar that can be read at this point, or nil: a variable, a field, an element, a field of a field.
function Maker:stored()
  local where = self:weighted { { 6, "n" }, { 2, "record" }, { 2, "list" }, { 1, "object" } }
  local variable = self:variable(where)
  if not variable then return nil end
  if where == "n" then return variable.name end
  if where == "list" then return self:element(variable) end
  if where == "object" then return variable.name .. "." .. self:pick { "a", "b" } end
  return self:field(variable.name, variable.type)
end

function Maker:element(variable)
  local length = variable.type.length
  return self:weighted {
    { 4, ("%s[%d]"):format(variable.name, self:between(1, length)) },
    { 1, ("%s[#%s]"):format(variable.name, variable.name) },
  }
end

function Maker:field(path, type)
  local names = {}
  for name in pairs(type.fields) do names[#names + 1] = name end
  table.sort(names)
  local name = self:pick(names)
  local inner = type.fields[name]
  path = self:chance(0.3) and ("%s[%q]"):format(path, name) or path .. "." .. name
  if inner == "n" then return path end
  return self:field(path, inner)
end

function Maker:leaf()
  for _ = 1, 4 do
    local text = self:stored()
    if text then return text end
  end
  return self:variable("n").name
end

local unary = {
  number = {
    { 4, "math.sin(@)" }, { 3, "math.cos(@)" }, { 2, "-(@)" }, { 1, "math.sqrt(1 + (@) ^ 2)" }, { 1, "math.exp(-(@) ^ 2)" },
    { 1, "math.atan(@)" }, { 1, "math.log(2.5 + math.sin(@))" }, { 1, "math.abs(@)" }, { 1, "(@) % 1.7" }, { 1, "(@) ^ 3" },
  },
  tensor = {
    { 4, "ops.sin(@)" }, { 3, "ops.cos(@)" }, { 2, "-(@)" }, { 2, "(@):tanh()" }, { 1, "ops.sqrt(1 + ops.square(@))" },
    { 1, "ops.exp(-(@) ^ 2)" }, { 1, "ops.atan(@)" }, { 1, "ops.sigmoid(@)" }, { 1, "ops.abs(@)" }, { 1, "(@) ^ 3" },
  },
}
local binary = {
  number = {
    { 6, "@ + @" }, { 5, "@ * @" }, { 3, "@ - @" }, { 2, "(@) / (1.5 + (@) ^ 2)" }, { 1, "math.max(@, @)" }, { 1, "math.min(@, @)" },
    { 1, "(1.2 + (@) ^ 2) ^ math.cos(@)" }, { 1, "math.atan(@, 2 + (@) ^ 2)" },
  },
  tensor = {
    { 6, "@ + @" }, { 5, "@ * @" }, { 3, "@ - @" }, { 2, "(@) / (1.5 + (@) ^ 2)" }, { 1, "ops.maximum(@, @)" },
    { 1, "ops.minimum(@, @)" },
  },
}

function Maker:tables() return self.tensors and "tensor" or "number" end

-- A call of a function in scope with at least that many results; nil when there is none that is cheap enough. It may
-- assign variables that the expression around it reads.
function Maker:call(depth, results)
  local variable = self:variable("function")
  if not variable or #variable.type.results < results then return nil end
  if not self:affords(variable.type.cost) then return nil end
  if variable.type.writer then self.writer = true end
  local arguments = {}
  for i, type in ipairs(variable.type.params) do arguments[i] = self:expression(type, depth - 1) end
  -- Functions that take any number of arguments.
  if variable.type.varargs then
    for _ = 1, self:between(0, 2) do arguments[#arguments + 1] = self:expression("n", depth - 1) end
  end
  return ("%s(%s)"):format(variable.name, table.concat(arguments, ", ")), variable.type
end

function Maker:method(depth)
  local object = self:variable("object")
  if not object or not self:affords(2) then return nil end
  return self:weighted {
    { 3, ("%s:mix(%s)"):format(object.name, self:expression("n", depth - 1)) },
    { 1, ("(%s + %s).a"):format(object.name, object.name) },
    { 1, ("(-%s).b"):format(object.name) },
    { 1, ("%s(%s)"):format(object.name, self:expression("n", depth - 1)) },
    { 1, ("(%s * %s).a"):format(object.name, self:constant()) },
    { 1, ("%s.sum"):format(object.name) },
    { 1, ("(%s .. %s)"):format(object.name, object.name) },
    { 1, ("#%s"):format(object.name) },
    { 1, ("(%s // %s)"):format(object.name, self:constant()) },
    { 1, ("(%s %% %s).b"):format(object.name, object.name) },
    { 1, ("(%s ^ 2)"):format(object.name) },
    { 1, ("(%s & 1)"):format(object.name) },
    { 1, ("(~%s)"):format(object.name) },
    { 1, ("(%s << 1).a"):format(object.name) },
  }
end

-- Ways to a scalar that only exist in some programs; each gives text or nil.
local extras = {}

function extras.call(m, depth)
  local text = m:call(depth, 1)
  return text and "(" .. text .. ")"
end

function extras.method(m, depth) return m:method(depth) end

function extras.choice(m, depth)
  return ("((%s) and %s or %s)"):format(m:condition(depth - 1), m:expression("n", depth - 1), m:expression("n", depth - 1))
end

function extras.default(m, depth)
  local record = m:variable("record")
  return record and ("(%s.nothing or %s)"):format(record.name, m:expression("n", depth - 1))
end

function extras.select(m, depth)
  return ("(select(%d, %s, %s))"):format(m:between(1, 2), m:expression("n", depth - 1), m:expression("n", depth - 1))
end

function extras.immediate(m, depth)
  local name = m:fresh("q")
  local argument = m:expression("n", depth - 1)
  local body = m:body(function()
    m:declare(name, "n")
    return m:expression("n", depth - 1)
  end)
  return ("(function(%s) return %s end)(%s)"):format(name, body, argument)
end

function extras.vector(m, depth)
  if not m.tensors then return nil end
  local v = m:expression("v", depth - 1)
  return m:weighted {
    { 3, ("ops.sum(%s)"):format(v) }, { 2, ("(%s):mean()"):format(v) }, { 3, ("(%s)[%d]"):format(v, m:between(0, 2)) },
    { 1, ("ops.sum(%s * %s)"):format(v, m:expression("v", 0)) },
  }
end

function extras.gradient(m, depth)
  if not m.nested or m.functions > 2 or not m:affords(8) then return nil end
  local name, argument = m:fresh("q"), m:expression("n", depth - 1)
  local body = m:body(function()
    m:declare(name, "n")
    return m:squashed(m:expression("n", 2))
  end)
  return ("ms.grad(function(%s) return %s * %s end)(%s)"):format(name, name, body, argument)
end

local extra_weights = {
  { 4, "call" }, { 2, "method" }, { 1, "choice" }, { 1, "default" }, { 1, "select" }, { 1, "immediate" }, { 4, "vector" },
  { 1, "gradient" },
}

local function scalar(m, depth)
  if depth <= 0 then return m:leaf() end
  local way = m:weighted { { 3, "leaf" }, { 4, "unary" }, { 7, "binary" }, { 2, "constant" }, { 1, "integer" }, { 4, "extra" } }
  if way == "extra" then
    local text = extras[m:weighted(extra_weights)](m, depth)
    if text then return text end
    way = "binary"
  end
  if way == "unary" then
    return format(m:weighted(unary[m:tables()]), m:expression("n", depth - 1))
  elseif way == "binary" then
    local text = format(m:weighted(binary[m:tables()]), m:expression("n", depth - 1), m:expression("n", depth - 1))
    return "(" .. text .. ")"
  elseif way == "constant" then
    return format(m:pick { "(@ * @)", "(@ + @)", "(@ - @)", "(@ / @)" }, m:expression("n", depth - 1), m:constant())
  elseif way == "integer" then
    return ("(%s * %s)"):format(m:integer(1), m:expression("n", depth - 1))
  end
  return m:leaf()
end

local function vector(m, depth)
  local variable = m:variable("v").name
  if depth <= 0 then return variable end
  local function v() return m:expression("v", depth - 1) end
  local function n() return m:expression("n", depth - 1) end
  local way = m:between(1, 14)
  if way <= 2 then return ("(%s * %s)"):format(v(), v()) end
  if way <= 4 then return ("(%s + %s)"):format(v(), v()) end
  if way <= 6 then return ("(%s * %s)"):format(v(), n()) end
  if way == 7 then return ("(%s - %s)"):format(m:constant(), v()) end
  if way == 8 then return ("ops.%s(%s)"):format(m:pick { "sin", "cos", "tanh", "sigmoid", "softmax" }, v()) end
  if way == 9 then return ("ops.stack({ %s, %s, %s })"):format(n(), n(), n()) end
  if way == 10 then return ("ops.concat({ (%s)[\"0:1\"], (%s)[\"1:3\"] }, 0)"):format(v(), v()) end
  if way == 11 then return ("ops.where(ops.greater(%s, %s), %s, %s)"):format(variable, m:constant(), v(), v()) end
  if way == 12 then return ("ops.%s"):format(m:pick { "cumsum(%s, 0)", "flip(%s, { 0 })" }):format(v()) end
  if way == 13 then return ("(%s):reshape({ 3, 1 }):reshape({ -1 })"):format(v()) end
  return variable
end

-- A small integer; never differentiated.
function Maker:integer(depth)
  local variable = self:variable("i")
  if depth <= 0 or not variable then
    return variable and self:chance(0.7) and variable.name or tostring(self:between(1, 4))
  end
  local list = self:variable("list")
  return self:weighted {
    { 3, variable.name },
    { 2, ("(%s %% %d)"):format(variable.name, self:between(2, 4)) },
    { 1, ("(%s // 2)"):format(variable.name) },
    { 1, ("(%s + %d)"):format(variable.name, self:between(1, 3)) },
    { 1, ("(%s & 3)"):format(variable.name) },
    { 1, list and "#" .. list.name or tostring(self:between(1, 4)) },
  }
end

-- An integer beyond the small ones, for the log only: it wraps and must wrap alike.
function Maker:wild_integer()
  return self:weighted {
    { 2, ("(%s * 4611686018427387905)"):format(self:integer(1)) },
    { 1, ("(%s << 62)"):format(self:integer(1)) },
    { 1, ("(%s ~ 1023) // 7"):format(self:integer(1)) },
    { 1, ("(-%s) %% 5"):format(self:integer(1)) },
    { 1, ("math.maxinteger + %s"):format(self:integer(0)) },
    { 1, ("(~%s >> 60)"):format(self:integer(1)) },
  }
end

function Maker:text()
  local variable = self:variable("s")
  return self:weighted {
    { 2, variable and variable.name or "\"k1\"" },
    { 2, ("\"k\" .. %s"):format(self:integer(1)) },
    { 1, ("string.format(\"%%d:%%s\", %s, %q)"):format(self:integer(1), self:pick { "a", "b" }) },
    { 1, ("(\"abc\"):rep(%s)"):format(self:between(1, 3)) },
    { 1, ("math.type(%s)"):format(self:pick { self:integer(1), self:integer(0) .. " / 2", "2 ^ 3" }) },
    { 1, ("tostring(%s)"):format(self:condition(0)) },
    { 1, variable and ("%s:sub(1, 2):upper()"):format(variable.name) or "\"x\"" },
  }
end

function Maker:condition(depth)
  local list, text = self:variable("list"), self:variable("s")
  local way = self:between(1, 13)
  local object = way == 13 and self:variable("object")
  if object then
    return ("%s %s %s"):format(object.name, self:pick { "<", "<=", "==", "~=", ">" }, self:variable("object").name)
  end
  if way <= 4 then
    return ("%s %s %s"):format(self:expression("n", math.max(depth, 0)), self:pick { "<", ">", "<=", ">=" }, self:constant())
  end
  if way == 5 then return ("%s < %s"):format(self:expression("n", math.max(depth, 0)), self:expression("n", 0)) end
  if way == 6 and depth > 0 then return ("not (%s)"):format(self:condition(depth - 1)) end
  if way == 7 and depth > 0 then
    return ("(%s) %s (%s)"):format(self:condition(depth - 1), self:pick { "and", "or" }, self:condition(depth - 1))
  end
  if way == 8 and list then return ("#%s > %d"):format(list.name, list.type.length) end
  if way == 9 and text then return ("%s %s \"k2\""):format(text.name, self:pick { "==", "~=", "<" }) end
  if way == 10 and list then return ("%s[%d] %s nil"):format(list.name, self:between(1, 9), self:pick { "==", "~=" }) end
  return ("%s %s %d"):format(self:integer(1), self:pick { "==", "~=", "<", ">=" }, self:between(0, 3))
end

function Maker:expression(type, depth)
  if type == "v" then return vector(self, depth) end
  if type == "i" then return self:integer(depth) end
  if type == "s" then return self:text() end
  return scalar(self, depth)
end

-- The same value brought into a small range.
function Maker:squashed(text)
  if self.tensors then return format(self:weighted { { 3, "ops.sin(@)" }, { 2, "ops.tanh(@)" }, { 1, "ops.atan(@)" } }, text) end
  return format(self:weighted { { 3, "math.sin(@)" }, { 2, "math.atan(@)" }, { 1, "math.cos(@)" } }, text)
end

-- What may be stored: squashed where the program may come by again.
function Maker:value(type, depth)
  local text = self:expression(type or "n", depth or 2)
  if type == "v" then return self:chance(0.6) and ("ops.tanh(%s)"):format(text) or text end
  if (type or "n") ~= "n" then return text end
  if self.cost > 1 or self.functions > 1 or self:chance(0.5) then return self:squashed(text) end
  return text
end

return Maker
