-- Operators as objects, as MindSpore's programs write them: ops.Softmax(-1)(x). An object keeps the attributes and is called with
-- the inputs. They are made of the operators' signatures when their names are first used; a few have names, attributes or
-- results of their own.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local registry = require "lunaria.registry"
local with_own_derivative = require "lunaria.nn.own_derivative"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local Primitive = class.Object:extend("Primitive")
Primitive._called = "primitive"
Primitive._parameters = "name"
Primitive._doc = [[What operators as objects extend: ops.NAME(attributes...)(inputs...) is the operator's call, with NAME in
MindSpore's letters: ops.Softmax, ops.ReduceSum, ops.ExpandDims. name: a name for it. Methods: infer_shape(shapes...) and
infer_dtype(dtypes...) say what comes out; add_prim_attr(name, value), set_strategy and shard keep what they are given.

Yours have a method construct(self, inputs...), and where it is not to be derived bprop(self, inputs..., results...,
cotangents...), which gives one gradient for each input:

  local Twice = ms.ops.PrimitiveWithInfer:extend("Twice")
  function Twice:construct(x) return x * 2 end

  > ms.ops.Softmax(-1)(ms.zeros { 1, 2 }):tolist()[1][1]
  0.5]]
function Primitive:init(name)
  if name ~= nil and type(name) ~= "string" then fail("Primitive", "name must be a string, got " .. describe(name)) end
  self.name, self.attrs = name or getmetatable(self)._name, {}
end

function Primitive:__call(...)
  if not self.construct then fail(self.name, "has no method construct to be called by") end
  if self.bprop then return with_own_derivative(self, self.name, ...) end
  return self:construct(...)
end

function Primitive:__tostring()
  local words, names = {}, {}
  for name in pairs(self.attrs) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do words[i] = ("%s=%s"):format(name, describe(self.attrs[name])) end
  return ("Prim[%s]<%s>"):format(self.name, table.concat(words, ", "))
end

--- Keeps a value under a name in the table attrs, and gives the primitive.
function Primitive:add_prim_attr(name, value)
  self.attrs[name] = value
  return self
end
--- Keeps how inputs and outputs would be cut over devices; on one device nothing is.
function Primitive:shard(in_strategy, out_strategy)
  return self:add_prim_attr("in_strategy", in_strategy):add_prim_attr("out_strategy", out_strategy)
end
Primitive.set_strategy = Primitive.shard
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

local function as_table(shape)
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

-- Names whose operator has other words.
local other_names = {
  RealDiv = "div", TensorAdd = "add", Mod = "remainder", Pack = "stack", Unpack = "unstack", GatherV2 = "gather", InvertPermutation = false,
  SparseGatherV2 = "gather", NotEqual = "not_equal", Invert = "logical_not", ReLU6 = "relu6", SeLU = "selu", HSwish = "hardswish",
  HSigmoid = "hardsigmoid", SoftPlus = "softplus", Swish = "silu", SiLU = "silu", HShrink = "hardshrink", SoftShrink = "softshrink",
  Elu = "elu", Pow = "pow", Neg = "neg", LogicalAnd = "logical_and", BroadcastTo = "broadcast_to", Unique = "unique",
}

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
  local other = other_names[name]
  if other == false then return nil end
  return by_plain_name[plain(other or name)]
end

-- The class of the objects of an operator.
local function of_operator(name, entry)
  local result = Primitive:extend(name)
  local inputs, attributes, own = {}, {}, {}
  local chosen = attributes_of[entry.name]
  for _, attribute in ipairs(chosen or {}) do own[attribute] = true end
  for _, parameter in ipairs(entry.parameters) do
    local is_attribute
    if chosen then
      is_attribute = own[parameter.name]
    else
      is_attribute = not tensor_types[parameter.type] and (parameter.has_default or parameter.optional)
    end
    local list = is_attribute and attributes or inputs
    list[#list + 1] = parameter
  end
  local words, f = {}, ops[entry.name]
  for i, attribute in ipairs(attributes) do words[i] = attribute.name .. "=nil" end
  local signature = arguments.signature(table.concat(words, ", "))
  result._signature = signature
  local function named(list)
    local given = {}
    for i, parameter in ipairs(list) do given[i] = parameter.name end
    return table.concat(given, ", ")
  end
  result._doc = ("The operator ops.%s as an object: ops.%s(%s)(%s).\n\n%s"):format(entry.name, name, named(attributes), named(inputs),
    entry.doc)
  function result:init(...)
    Primitive.init(self, name)
    self.attrs = select("#", ...) == 0 and {} or arguments.bind(name, signature, ...)
  end
  function result:_is_tensor(i) return inputs[i] == nil or tensor_types[inputs[i].type] == true end
  function result:_kind(i) return inputs[i] and inputs[i].type end
  -- Inputs stand first in nearly every signature; what does not is given by name.
  local in_order = true
  for i, parameter in ipairs(inputs) do in_order = in_order and entry.parameters[i] == parameter end
  function result:construct(...)
    local count = select("#", ...)
    if count > #inputs then fail(name, ("takes at most %d inputs, got %d"):format(#inputs, count)) end
    local attrs = self.attrs
    if next(attrs) == nil and in_order then return f(...) end
    local options, given = {}, table.pack(...)
    for key, value in pairs(attrs) do options[key] = value end
    local positional = {}
    for i = 1, count do
      if in_order then positional[i] = given[i] else options[inputs[i].name] = given[i] end
    end
    positional[#positional + 1] = options
    return f(table.unpack(positional, 1, in_order and count + 1 or 1))
  end
  return result
end

-- Those whose attributes are no parameters of one operator: signature and construct(self, attributes, inputs...).
local own = {
  MatMul = { "transpose_a=false, transpose_b=false", function(_, a, x, y)
    if a.transpose_a then x = ops.swapaxes(x, -1, -2) end
    if a.transpose_b then y = ops.swapaxes(y, -1, -2) end
    return ops.matmul(x, y)
  end },
  Conv2D = { "out_channel, kernel_size, mode=1, pad_mode=\"valid\", pad=0, stride=1, dilation=1, group=1", function(_, a, x, weight)
    return ops.conv2d(x, weight, { stride = a.stride, pad_mode = a.pad_mode, padding = a.pad, dilation = a.dilation, groups = a.group })
  end },
  MaxPool = { "kernel_size=1, strides=1, pad_mode=\"valid\"", function(_, a, x)
    return ms.nn.MaxPool2d(a.kernel_size, a.strides, { pad_mode = a.pad_mode:lower() })(x)
  end },
  AvgPool = { "kernel_size=1, strides=1, pad_mode=\"valid\"", function(_, a, x)
    return ms.nn.AvgPool2d(a.kernel_size, a.strides, { pad_mode = a.pad_mode:lower() })(x)
  end },
  AddN = { "", function(_, _, list)
    if type(list) ~= "table" or #list == 0 then fail("AddN", "a table of tensors is expected, got " .. describe(list)) end
    local sum = list[1]
    for i = 2, #list do sum = sum + list[i] end
    return sum
  end },
  SoftmaxCrossEntropyWithLogits = { "", function(_, _, logits, labels)
    local logs = ops.log_softmax(logits, -1)
    return -ops.sum(labels * logs, -1), ops.exp(logs) - labels
  end },
  SparseSoftmaxCrossEntropyWithLogits = { "is_grad=false", function(_, a, logits, labels)
    if not a.is_grad then return ops.cross_entropy(logits, labels) end
    local hot = ops.one_hot(labels, logits.shape[2], 1.0, 0.0)
    return (ops.softmax(logits, -1) - hot) / logits.shape[1]
  end },
  SigmoidCrossEntropyWithLogits = { "", function(_, _, logits, labels)
    return ops.relu(logits) - logits * labels + ops.softplus(-ops.abs(logits))
  end },
  L2Normalize = { "axis=0, epsilon=1e-4", function(_, a, x)
    return x / ops.sqrt(ops.maximum(ops.sum(x * x, a.axis, true), a.epsilon))
  end },
  Depend = { "", function(_, _, value) return value end },
  ControlDepend = { "depend_mode=0", function() end },
  Print = { "", function(_, _, ...) return print(...) end },
  Dropout = { "keep_prob=0.5", function(_, a, x)
    local mask = ops.less(ops.rand(x.shape), a.keep_prob)
    return x * mask / a.keep_prob, mask
  end },
}
own.BatchMatMul = own.MatMul
own.MaxPoolV1, own.AccumulateNV2 = nil, own.AddN

local function of_own(name, entry)
  local result = Primitive:extend(name)
  local signature, construct = arguments.signature(entry[1]), entry[2]
  result._signature = signature
  result._doc = ("The operator %s as an object, with MindSpore's attributes: ops.%s(%s)."):format(name, name, entry[1])
  function result:init(...)
    Primitive.init(self, name)
    self.attrs = arguments.bind(name, signature, ...)
  end
  function result:construct(...) return construct(self, self.attrs, ...) end
  return result
end

-- What a step shows: kept under its name until SummaryRecord:record writes it.
local pending = {}
for name, plugin in pairs { ScalarSummary = "scalar", ImageSummary = "image", HistogramSummary = "histogram", TensorSummary = "tensor" } do
  own[name] = { "", function(_, _, tag, value)
    if type(tag) ~= "string" or tag == "" then fail(name, "the name must be a string that is not empty, got " .. describe(tag)) end
    if not ms.is_tensor(value) and not (plugin == "scalar" and math.type(value)) then
      fail(name, "the value must be a tensor, got " .. describe(value))
    end
    pending[plugin .. " " .. tag] = ms.is_tensor(value) and ms.stop_gradient(value) or value
  end }
end

local made = { Primitive = Primitive, PrimitiveWithInfer = Primitive, PrimitiveWithCheck = Primitive }

local primitives = { Primitive = Primitive, pending = pending }

--- The class for a name, or nil.
function primitives.find(name)
  if made[name] == nil then
    local entry = not own[name] and operator_named(name)
    made[name] = own[name] and of_own(name, own[name]) or entry and of_operator(name, entry) or false
  end
  return made[name] or nil
end

return primitives
