-- An ONNX graph while it is made: names for values, nodes, constants; what handlers of operators (export_*.lua) call.
local ms = require "lunaria"

local ops = ms.ops
local Graph = {}
Graph.__index = Graph

function Graph:fail(message) error(("export: %s: %s"):format(self.op or "the graph", message), 0) end

--- A name that nothing has yet.
function Graph:fresh(base)
  self.count = self.count + 1
  return ("%s_%d"):format(base, self.count)
end

--- A tensor in the file; the same one is written once.
function Graph:tensor(t, name)
  local known = self.written[t]
  if known then return known end
  name = name and not self.taken[name] and name or self:fresh(name or "constant")
  self.taken[name] = true
  self.initializers[#self.initializers + 1] = { name = name, value = t, of = self.op }
  self.written[t] = name
  return name
end

--- A list of integers as an int64 tensor.
function Graph:integers(list)
  local key = table.concat(list, ",")
  local name = self.shares and self.lists[key]
  if not name then
    name = self:tensor(#list == 0 and ops.zeros({ 0 }, ms.int64) or ms.tensor(list, ms.int64))
    self.lists[key] = name
  end
  return name
end

--- A number as a tensor without axes.
function Graph:number(value, dtype)
  local key = ("%s %s"):format(tostring(dtype), tostring(value))
  local name = self.shares and self.lists[key]
  if not name then
    name = self:tensor(ms.tensor(value, dtype))
    self.lists[key] = name
  end
  return name
end

local function is_plain(v) return type(v) ~= "table" and not ms.is_tensor(v) end

--- The name of an operand: a value of the graph, a tensor, or a number of the dtype.
function Graph:value(v, dtype)
  if v == nil then return "" end
  if is_plain(v) then return self:number(v, dtype) end
  if v.constant ~= nil then
    if not ms.is_tensor(v.constant) then return self:number(v.constant, dtype) end
    return self:tensor(v.constant, v.name)
  end
  local name = self.names[v.id] and self.names[v.id][v.item]
  if not name then self:fail "an operand is not known" end
  return name
end

local kinds = {
  integer = function(v) return "integer", v end,
  float = function(v) return "number", v end,
  string = function(v) return "string", v end,
  boolean = function(v) return "integer", v and 1 or 0 end,
  table = function(v) return math.type(v[1]) == "float" and "numbers" or "integers", v end,
}

--- A node; gives the names of its `results` (one if not said). Attributes: integers, floats, texts, lists.
function Graph:add(op, inputs, attributes, results)
  local rows, outputs = {}, {}
  for name, v in pairs(attributes or {}) do
    local kind, value = kinds[math.type(v) or type(v)](v)
    rows[#rows + 1] = { name = name, kind = kind, value = value }
  end
  table.sort(rows, function(p, q) return p.name < q.name end)
  for i = 1, results or 1 do outputs[i] = self:fresh(op) end
  while inputs[#inputs] == "" do inputs[#inputs] = nil end
  self.nodes[#self.nodes + 1] = { op = op, name = outputs[1], inputs = inputs, outputs = outputs, attributes = rows, of = self.op }
  return table.unpack(outputs)
end

function Graph:cast(name, dtype) return self:add("Cast", { name }, { to = require "lunaria.onnx_files".number(dtype) }) end
function Graph:reshape(name, shape) return self:add("Reshape", { name, self:integers(shape) }) end

--- What is written of `value` (with its shape) along the axes: the positions from, to, by step.
function Graph:slice(name, from, to, axes, step)
  return self:add("Slice", { name, self:integers(from), self:integers(to), self:integers(axes), step and self:integers(step) or "" })
end

--- shares: whether equal lists and numbers are one constant. opset: the version of the operators, which handlers may raise.
return function(shares)
  return setmetatable({
    shares = shares, opset = 18,
    nodes = {}, initializers = {}, names = {}, written = {}, taken = {}, lists = {}, count = 0,
  }, Graph)
end
