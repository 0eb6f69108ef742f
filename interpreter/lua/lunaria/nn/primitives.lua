-- Operators as objects, as MindSpore's programs write them: ops.Softmax(-1)(x). An object keeps the attributes and is called with
-- the inputs. Classes are made when their names are first used: of the operators' signatures where MindSpore has the same inputs and
-- attributes, of the rows in lunaria/primitives/ where names, attributes or results differ.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local registry = require "lunaria.registry"
local with_own_derivative = require "lunaria.nn.own_derivative"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

-- Objects have their name and the table of their attributes before their init is called, which yours need not hand on.
local Primitive = class.make_class({ _name = "Primitive", _called = "primitive" }, class.Object, function(of, ...)
  local object = setmetatable({ name = of._name, attrs = {} }, of)
  object:init(...)
  return object
end)
Primitive._called = "primitive"
Primitive._parameters = "name"
Primitive._doc = [[What operators as objects extend: ops.NAME(attributes...)(inputs...) is the operator's call, with NAME in
MindSpore's letters: ops.Softmax, ops.ReduceSum, ops.ExpandDims. name: a name for it. Methods: infer_shape(shapes...) and
infer_dtype(dtypes...) say what comes out; add_prim_attr(name, value) sets an attribute, init_prim_io_names names inputs and outputs.

Yours have a method construct(self, inputs...), or the name of an operator, which is called with the attributes of the object; and where
it is not to be derived bprop(self, inputs..., results..., cotangents...), which gives one gradient for each input:

  local Twice = ms.ops.PrimitiveWithInfer:extend("Twice")
  function Twice:construct(x) return x * 2 end

  local Softmax = ms.ops.PrimitiveWithInfer:extend("Softmax")
  function Softmax:init(axis)
    self:init_prim_io_names { inputs = { "x" }, outputs = { "output" } }
    self.axis = axis
  end
  function Softmax:infer_shape(logits) return logits end

What their own infer_shape and infer_dtype say is compared with what comes out, and is an error where it differs.

  > ms.ops.Softmax(-1)(ms.zeros { 1, 2 }):tolist()[1][1] --> 0.5]]
function Primitive:init(name)
  if name ~= nil and type(name) ~= "string" then fail("Primitive", "name must be a string, got " .. describe(name)) end
  self.name = name or self.name
end

local primitives

-- The operator's class that an object without a method construct stands for, and the attributes that the object has of it.
local function bound(self)
  local of = primitives.find(self.name)
  if not of or of == getmetatable(self) or not of._signature then
    fail(self.name, "has no method construct to be called by, and there is no operator of this name")
  end
  local attrs, given = {}, false
  for _, attribute in ipairs(of._signature) do
    local value = self.attrs[attribute.name]
    if value == nil then value = rawget(self, attribute.name) end
    attrs[attribute.name], given = value, given or value ~= nil
  end
  return given and of(attrs) or of()
end

local function check_names(self, count)
  local inputs = self.input_names
  if inputs and count > #inputs then
    fail(self.name, ("init_prim_io_names named %d inputs, got %d"):format(#inputs, count))
  end
end

local function computed(self, ...)
  if self.bprop then return with_own_derivative(self, self.name, ...) end
  return self:construct(...)
end

-- Read with the first strategy: a compiled function does not read files.
local shard

local function compute(self, ...)
  check_names(self, select("#", ...))
  if not self.attrs.in_strategy then return computed(self, ...) end
  shard = shard or require "lunaria.parallel.shard"
  return shard.laid_results(self, computed(self, shard.laid_inputs(self, ...)))
end

--- What a primitive computes; without one of its own that of the operator of its name.
function Primitive:construct(...) return bound(self)(...) end

local as_table

local function same_type(a, b)
  if type(a) ~= "table" then return a == b end
  if type(b) ~= "table" or #a ~= #b then return false end
  for i = 1, #a do
    if not same_type(a[i], b[i]) then return false end
  end
  return true
end

local function type_text(value)
  return type(value) == "table" and "(" .. table.concat(value, ", ") .. ")" or tostring(value)
end

-- The results, after their shapes or dtypes were compared with what the object's own method says.
local function compared(self, method, field, given, ...)
  local inputs = {}
  for i = 1, given.n do
    local x = given[i]
    if ms.is_tensor(x) then
      x = x[field]
      if field == "shape" then x = as_table(x) end
    end
    inputs[i] = x
  end
  local said = table.pack(self[method](self, table.unpack(inputs, 1, given.n)))
  -- Several shapes may come in one table.
  if said.n == 1 and select("#", ...) > 1 and type(said[1]) == "table" then said = said[1] end
  for i = 1, select("#", ...) do
    local y = select(i, ...)
    if ms.is_tensor(y) and said[i] ~= nil and not same_type(said[i], y[field]) then
      fail(self.name, ("%s says %s for result %d, which has %s"):format(method, type_text(said[i]), i, type_text(as_table(y[field]))))
    end
  end
  return ...
end

local function checked(self, shapes, given, ...)
  if shapes then compared(self, "infer_shape", "shape", given, ...) end
  if self.infer_dtype ~= Primitive.infer_dtype then compared(self, "infer_dtype", "dtype", given, ...) end
  return ...
end

function Primitive:__call(...)
  local shapes = self.infer_shape ~= Primitive.infer_shape
  if shapes or self.infer_dtype ~= Primitive.infer_dtype then
    return checked(self, shapes, table.pack(...), compute(self, ...))
  end
  return compute(self, ...)
end

function Primitive:__tostring()
  local words, names = {}, {}
  for name in pairs(self.attrs) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do words[i] = ("%s=%s"):format(name, describe(self.attrs[name])) end
  return ("Prim[%s]<%s>"):format(self.name, table.concat(words, ", "))
end

--- Sets an attribute, and gives the primitive. Those of operators have the attributes of their class only.
function Primitive:add_prim_attr(name, value)
  local signature = self._signature
  if signature and type(signature[name]) ~= "table" then
    fail(self.name, ("has no attribute %s; there are: %s"):format(describe(name), table.concat(signature.names, ", ")),
      type(name) == "string" and arguments.nearest(name, signature.names) or nil)
  end
  self.attrs[name] = value
  return self
end
--- Takes an attribute away, and gives the primitive.
function Primitive:del_prim_attr(name)
  self.attrs[name] = nil
  return self
end
--- Names the inputs and outputs: two tables, or one { inputs = , outputs = }. More inputs than names are an error.
function Primitive:init_prim_io_names(inputs, outputs)
  inputs, outputs = arguments.named("init_prim_io_names", { "inputs", "outputs" }, inputs, outputs)
  if type(inputs) ~= "table" or outputs ~= nil and type(outputs) ~= "table" then
    fail("init_prim_io_names", "two tables of names are expected, such as { \"x\" }, { \"output\" }")
  end
  self.input_names, self.output_names = inputs, outputs
  return self
end

local function with_strategy(self, in_strategy, out_strategy)
  in_strategy, out_strategy = arguments.named("set_strategy", { "in_strategy", "out_strategy" }, in_strategy, out_strategy)
  shard = shard or require "lunaria.parallel.shard"
  shard.check_strategy("set_strategy", "in_strategy", in_strategy)
  if out_strategy ~= nil then shard.check_strategy("set_strategy", "out_strategy", out_strategy) end
  self.attrs.in_strategy, self.attrs.out_strategy = in_strategy, out_strategy
  return self
end

--- Says how inputs and outputs are cut over ranks: a table for each input with the number of parts along each axis, or a layout; axes
--- that go together, as the columns of one matrix and the rows of the other, have the same number. Of a class, as in
--- ops.MatMul.set_strategy { { 2, 1 }, { 1, 1 } }: an object without attributes. The same as shard.
--- in_strategy, out_strategy: the tables of inputs and outputs.
function Primitive:set_strategy(in_strategy, out_strategy) return with_strategy(self, in_strategy, out_strategy) end
--- The same as set_strategy. in_strategy, out_strategy: the tables of inputs and outputs.
function Primitive:shard(in_strategy, out_strategy) return with_strategy(self, in_strategy, out_strategy) end

-- Called on a class, with a colon or a dot, they make an object first.
local function on_class(of)
  of.set_strategy = function(self, ...)
    if rawequal(self, of) then return with_strategy(of(), ...) end
    if class.is_a(self, Primitive) then return with_strategy(self, ...) end
    return with_strategy(of(), self, ...)
  end
  of.shard = of.set_strategy
  return of
end

--- Gives it another name in messages.
function Primitive:set_prim_instance_name(name)
  self.name = name
  return self
end

-- What stands for an input of which only the type is given: one number, seen as a tensor of the shape.
local function stand_in(shape, dtype)
  return ops.broadcast_to(ops.zeros({}, dtype), shape)
end

local kinds = { index = "int64", mask = "bool_" }

local function types_of(results, field)
  local list = {}
  for i = 1, results.n do
    local value = results[i]
    list[i] = ms.is_tensor(value) and value[field] or nil
  end
  return table.unpack(list, 1, results.n)
end

function as_table(shape)
  if type(shape) ~= "table" then return shape end
  local list = {}
  for i, size in ipairs(shape) do list[i] = size end
  return list
end

--- The shapes of the results for inputs of these shapes (tables); other inputs are given as they are.
function Primitive:infer_shape(...)
  local inputs = table.pack(...)
  for i = 1, inputs.n do
    if type(inputs[i]) == "table" and (math.type(inputs[i][1]) or #inputs[i] == 0) and self:_is_tensor(i) then
      inputs[i] = stand_in(inputs[i], ms[kinds[self:_kind(i)] or "float32"])
    end
  end
  local results = table.pack(self(table.unpack(inputs, 1, inputs.n)))
  local shapes = table.pack(types_of(results, "shape"))
  for i = 1, shapes.n do shapes[i] = shapes[i] and as_table(shapes[i]) end
  return table.unpack(shapes, 1, shapes.n)
end

--- The dtypes of the results for inputs of these dtypes; other inputs are given as they are.
function Primitive:infer_dtype(...)
  local given, message = table.pack(...), nil
  -- The operator may need some number of axes.
  for rank = 0, 5 do
    local shape, inputs = {}, table.pack(table.unpack(given, 1, given.n))
    for axis = 1, rank do shape[axis] = 1 end
    for i = 1, given.n do
      if self:_is_tensor(i) then inputs[i] = stand_in(shape, given[i]) end
    end
    local results = table.pack(pcall(self, table.unpack(inputs, 1, inputs.n)))
    if results[1] then return types_of(table.pack(table.unpack(results, 2, results.n)), "dtype") end
    message = message or results[2]
  end
  error(message, 0)
end

-- Inputs of objects without a signature are tensors.
function Primitive:_is_tensor() return true end
function Primitive:_kind() return nil end

local tensor_types = { same = true, float = true, tensor = true, tensors = true, index = true, mask = true }

-- Which of an operator's parameters are attributes, where that does not follow from the defaults.
local attributes_of = {
  transpose = {}, one_hot = { "axis" }, topk = { "sorted" }, gather = {}, strided_slice = {}, slice = {}, tile = {}, fill = {},
  reduce_sum = { "keep_dims" }, reduce_mean = { "keep_dims" }, reduce_max = { "keep_dims" }, reduce_min = { "keep_dims" },
  reduce_prod = { "keep_dims" }, reduce_all = { "keep_dims" }, reduce_any = { "keep_dims" }, all = { "keep_dims" }, any = { "keep_dims" },
  eye = {}, ones = {}, zeros = {}, linspace = {}, expand_dims = {}, clip_by_value = {}, scatter_nd = {}, select = {}, where = {},
}

local function plain(name) return (name:lower():gsub("_", "")) end

local by_plain_name
local function operator_named(name)
  if not by_plain_name then
    by_plain_name = {}
    for _, entry in ipairs(registry.entries()) do
      by_plain_name[plain(entry.name)] = by_plain_name[plain(entry.name)] or entry
      for _, alias in ipairs(entry.aliases) do by_plain_name[plain(alias)] = by_plain_name[plain(alias)] or entry end
    end
  end
  return by_plain_name[plain(name)]
end

local function names_of(list)
  local names = {}
  for i, item in ipairs(list) do names[i] = item.name end
  return table.concat(names, ", ")
end

-- Values that an attribute may have, by its name; all others are an error.
local function check_choices(name, choices, attrs)
  for attribute, allowed in pairs(choices) do
    local value, found = attrs[attribute], false
    for _, other in ipairs(allowed) do found = found or value == other end
    if value ~= nil and not found then
      local texts = {}
      for i, other in ipairs(allowed) do texts[i] = describe(other) end
      fail(name, ("%s must be %s, got %s"):format(attribute, table.concat(texts, " or "), describe(value)))
    end
  end
end

-- The class of the objects of an operator. attributes: its parameters that are attributes, each { name =, default =, parameter = },
-- a signature with their names in MindSpore, or nil, for those that the operator's own signature tells.
local function of_operator(name, entry, signature, parameter_of)
  local result = on_class(Primitive:extend(name))
  local inputs, own, words = {}, {}, {}
  if signature then
    for _, attribute in ipairs(signature) do own[parameter_of[attribute.name]] = true end
  else
    local chosen = attributes_of[entry.name]
    for _, attribute in ipairs(chosen or {}) do own[attribute] = true end
    for _, parameter in ipairs(entry.parameters) do
      if not chosen and not tensor_types[parameter.type] and (parameter.has_default or parameter.optional) then
        own[parameter.name] = true
      end
      if own[parameter.name] then words[#words + 1] = parameter.name .. "=nil" end
    end
    signature = arguments.signature(table.concat(words, ", "))
  end
  for _, parameter in ipairs(entry.parameters) do
    if not own[parameter.name] and not parameter.by_name_only then inputs[#inputs + 1] = parameter end
  end
  local f = ops[entry.name]
  result._signature = signature
  result._doc = ("The operator ops.%s as an object: ops.%s(%s)(%s).\n\n%s"):format(entry.name, name, names_of(signature), names_of(inputs),
    entry.doc)
  function result:init(...)
    self.attrs = select("#", ...) == 0 and #signature == 0 and {} or arguments.bind(name, signature, ...)
  end
  function result:_is_tensor(i) return inputs[i] == nil or tensor_types[inputs[i].type] == true end
  function result:_kind(i) return inputs[i] and inputs[i].type end
  -- Inputs stand first in nearly every signature; what does not is given by name.
  local in_order = true
  for i, parameter in ipairs(inputs) do in_order = in_order and entry.parameters[i] == parameter end
  function result:construct(...)
    local count = select("#", ...)
    if count > #inputs then fail(name, ("takes at most %d inputs, got %d"):format(#inputs, count)) end
    local options, any = {}, false
    for _, attribute in ipairs(signature) do
      local value = self.attrs[attribute.name]
      if value ~= nil then options[parameter_of and parameter_of[attribute.name] or attribute.name], any = value, true end
    end
    if not any and in_order then return f(...) end
    local given, positional = table.pack(...), {}
    for i = 1, count do
      if in_order then positional[i] = given[i] else options[inputs[i].name] = given[i] end
    end
    positional[#positional + 1] = options
    return f(table.unpack(positional, 1, in_order and count + 1 or 1))
  end
  return result
end

-- A row "operator: attribute=default->parameter, ...", whose attributes are called as in MindSpore.
local function of_text(name, text)
  local operator, list = text:match "^([%w_]+):?%s*(.*)$"
  local entry = registry.entry(operator)
  local words, parameter_of = {}, {}
  for word in list:gmatch "[^,]+" do
    local attribute, parameter = word:match "^%s*(.-)%s*%->%s*([%w_]+)%s*$"
    attribute = attribute or word:match "^%s*(.-)%s*$"
    words[#words + 1] = attribute
    local key = attribute:match "^[%w_]+"
    parameter_of[key] = parameter or key
    -- The operator's own name of it.
    for _, own in ipairs(entry.parameters) do
      for _, other in ipairs(own.other_names) do
        if other == parameter_of[key] then parameter_of[key] = own.name end
      end
    end
  end
  return of_operator(name, entry, arguments.signature(table.concat(words, ", ")), parameter_of)
end

-- Attributes of the first releases under the names that they have now.
local old_names = { ksize = "kernel_size", padding = "pad_mode", sigma = "beta" }
local function with_new_names(signature, ...)
  local given = table.pack(...)
  local options = given[given.n]
  if not arguments.is_options(options) then return ... end
  local renamed = {}
  for key, value in pairs(options) do
    if type(signature[key]) == "string" then key = signature[key] end
    renamed[key] = value
  end
  given[given.n] = renamed
  return table.unpack(given, 1, given.n)
end

-- Attributes by which results do not differ: one update is done at a time, as under a lock, and systems of equations are solved by
-- the singular values, fast or not.
local locked = { true, false }
local either_way = { use_locking = locked, use_lock = locked, fast = locked }

-- A row { attributes, inputs, f(attributes, inputs...), choices }.
local function of_row(name, row)
  local result = on_class(Primitive:extend(name))
  local signature, inputs, f, choices = arguments.signature(row[1]), row[2], row[3], row[4]
  local most = 0
  for _ in inputs:gmatch "[%w_]+" do most = most + 1 end
  result._signature = signature
  result._doc = ("The operator %s as an object, with MindSpore's attributes and inputs: ops.%s(%s)(%s)."):format(name, name, row[1], inputs)
  for old, attribute in pairs(old_names) do
    if signature[attribute] and not signature[old] then signature[old] = attribute end
  end
  function result:init(...)
    self.attrs = arguments.bind(name, signature, with_new_names(signature, ...))
    if choices then check_choices(name, choices, self.attrs) end
    check_choices(name, either_way, self.attrs)
  end
  local open = inputs:find "%.%.%."
  function result:construct(...)
    if not open and select("#", ...) > most then
      fail(name, ("takes at most %d inputs, got %d"):format(most, select("#", ...)))
    end
    return f(self.attrs, ...)
  end
  return result
end

local rows
local function row_of(name)
  if not rows then
    rows = {}
    for _, file in ipairs { "array", "communication", "image", "math", "nn", "optim", "other", "random", "sequence" } do
      for key, row in pairs(require("lunaria.primitives." .. file)) do rows[key] = row end
    end
  end
  return rows[name]
end

local made = { Primitive = Primitive, PrimitiveWithInfer = Primitive, PrimitiveWithCheck = Primitive }

primitives = { Primitive = Primitive }

--- For init of a class of one's own: the arguments become attributes under the names of f's parameters, then f is called.
local function prim_attr_register(f)
  if type(f) ~= "function" then fail("prim_attr_register", "a function init(self, ...) is expected, got " .. describe(f)) end
  local names, info = {}, debug.getinfo(f, "u")
  for i = 2, info.nparams do names[i - 1] = debug.getlocal(f, i) end
  return function(self, ...)
    for i, name in ipairs(names) do self.attrs[name] = (select(i, ...)) end
    return f(self, ...)
  end
end

-- What mindspore.ops.functional has of ms.
local of_ms = {}
for name in ("grad value_and_grad vmap vjp jvp jacrev jacfwd hessian recompute jit mutable jit_class"):gmatch "%S+" do
  of_ms[name] = true
end

--- What ms.ops has under a name beside the operators: the class of a primitive, or something to make functions of functions with; or nil.
function primitives.find(name)
  if made[name] == nil then
    local value
    if name == "prim_attr_register" then
      value = prim_attr_register
    elseif of_ms[name] then
      return ms[name]
    elseif name:find "^[%a_]" then
      value = require "lunaria.nn.composite"[name]
      local row = not value and row_of(name)
      if row then
        local of_class = type(row) == "table" and rawget(row, 3) and of_row(name, row)
        value = type(row) == "string" and (name:find "^%u" and of_text(name, row) or ops[row]) or of_class or row
      elseif not value and name:find "^%u" then
        local entry = operator_named(name)
        value = entry and of_operator(name, entry)
      end
    end
    made[name] = value or false
  end
  return made[name] or nil
end

--- The names of all classes of primitives that MindSpore has and rows tell of.
function primitives.names()
  local _ = row_of ""
  local list = {}
  for name in pairs(rows) do list[#list + 1] = name end
  table.sort(list)
  return list
end

return primitives
