-- ms.dataset.transforms: transforms of any values, and those that consist of others.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local steps = require "lunaria.dataset.steps"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local transforms = { Transform = steps.Transform }
local function define(...) return steps.define(transforms, ...) end

-- Of others. A list with a Lua function is made of Lua calls; see mixed.
local function apply_all(list, first, ...)
  if first > #list then return ... end
  return apply_all(list, first + 1, list[first](...))
end

-- Whether all of a list are transforms of the library; else they must be functions.
local function all_native(name, list)
  if type(list) ~= "table" or getmetatable(list) ~= nil or #list == 0 then
    fail(name, "transforms must be a list of transforms, got " .. describe(list))
  end
  local native = true
  for i, part in ipairs(list) do
    if not steps.is_transform(part) then
      native = false
      if not arguments.is_callable(part) then
        fail(name, ("transforms[%d] must be a transform or a function, got %s"):format(i, describe(part)))
      end
    end
  end
  return native
end

local function unit() return ms.ops.rand({ 1 }):item() end
local function below(n) return math.min(n - 1, math.floor(unit() * n)) end

-- A transform of others: native(parts) where all of them are, else call(list, ...) in Lua.
local function define_of(name, signature, doc, native, call)
  local step = define(name, signature, doc, function(a) return native(a, name, steps.parts_of(name, "transforms", a.transforms)) end)
  local setup = step.setup
  function step:setup(a)
    if all_native(name, a.transforms) then return setup(self, a) end
    native(a, name, {})
    self._list, self._arguments = { table.unpack(a.transforms) }, a
  end
  function step:__call(...)
    if not self._list then return steps.Transform.__call(self, ...) end
    return call(self._list, self._arguments, ...)
  end
end

define_of("Compose", "transforms", [[
The transforms of a list in a row: each gets what the one before it gives. Functions may be among them; then ds:map calls all of it in
Lua.

    > half = function(x) return x / 2 end
    > ms.dataset.transforms.Compose { ms.dataset.transforms.TypeCast(ms.float32), half }(ms.tensor(3)):item()
    1.5]], function(_, _, parts) return "compose", {}, nil, nil, parts end, function(list, _, ...) return apply_all(list, 1, ...) end)

define_of("RandomApply", "transforms, prob=0.5", [[
The transforms of a list in a row, or none of them. prob: the probability that they are applied.

    > ms.dataset.transforms.RandomApply({ ms.dataset.transforms.Fill(7) }, 1.0)(ms.tensor(3)):item()
    7]], function(a, name, parts)
  return "random_apply", { check.probability(name, "prob", a.prob) }, nil, nil, parts
end, function(list, a, ...)
  if unit() >= a.prob then return ... end
  return apply_all(list, 1, ...)
end)

define_of("RandomChoice", "transforms", [[
One of the transforms of a list by chance.

    > ms.dataset.transforms.RandomChoice { ms.dataset.transforms.Fill(7), ms.dataset.transforms.Fill(7) }(ms.tensor(3)):item()
    7]], function(_, _, parts) return "random_choice", {}, nil, nil, parts end, function(list, _,
      ...) return list[below(#list) + 1](...) end)

define_of("RandomOrder", "transforms", [[
The transforms of a list in a row, in an order by chance.

    > ms.dataset.transforms.RandomOrder { ms.dataset.transforms.Fill(7), ms.dataset.transforms.Fill(7) }(ms.tensor(3)):item()
    7]], function(_, _, parts) return "random_order", {}, nil, nil, parts end, function(list, _, ...)
  local order = { table.unpack(list) }
  for i = #order, 2, -1 do
    local k = below(i) + 1
    order[i], order[k] = order[k], order[i]
  end
  return apply_all(order, 1, ...)
end)

define("OneHot", "num_classes, smoothing_rate=0.0", [[
Numbers of classes as rows with a 1 at the class. num_classes: how many there are. smoothing_rate: how much of the 1 is spread evenly
over all classes, which makes the rows float32.

    > ms.dataset.transforms.OneHot(3)(ms.tensor(1)):tolist()[2]
    1]], function(a, name)
  return "one_hot", { check.positive(name, "num_classes", a.num_classes), check.probability(name, "smoothing_rate", a.smoothing_rate) }
end)

define("TypeCast", "data_type", [[
The value with the dtype data_type.

    > ms.dataset.transforms.TypeCast(ms.float32)(ms.tensor(3)):item()
    3.0]], function(a, name) return "type_cast", {}, { steps.dtype_name(name, "data_type", a.data_type) } end)

define("Duplicate", "", [[
A value twice: two columns of one.

    > select("#", ms.dataset.transforms.Duplicate()(ms.tensor(3)))
    2]], function() return "duplicate" end)

-- A number or a text.
local function number_or_text(name, what, value)
  if type(value) == "string" then return 0, { value } end
  local number = check.number(name, what, value)
  return number
end

define("Fill", "fill_value", [[
A value of the same shape with fill_value everywhere, a number for tensors and a text for texts.

    > ms.dataset.transforms.Fill(7)(ms.tensor { 1, 2 }):tolist()[2]
    7]], function(a, name)
  local number, texts = number_or_text(name, "fill_value", a.fill_value)
  return "fill", { number }, texts
end)

steps.enumeration(transforms, "Relational", [[
What Mask asks of each element: EQ (equal), NE (not equal), GT (greater), GE (greater or equal), LT (less), LE (less
or equal).

    > ms.dataset.transforms.Relational.GT
    2]], { EQ = 0, NE = 1, GT = 2, GE = 3, LT = 4, LE = 5 })

define("Mask", "operator, constant, dtype='bool'", [[
Where elements stand in a relation to constant, a number, or a text for texts. operator: one of Relational, or its name. dtype: of the
result.

    > ms.dataset.transforms.Mask("GT", 2, ms.int32)(ms.tensor { 1, 3 }):tolist()[2]
    1]], function(a, name)
  local number, texts = number_or_text(name, "constant", a.constant)
  local relation = steps.choice(name, "operator", a.operator, transforms, "Relational")
  return "mask", { relation, number }, { steps.dtype_name(name, "dtype", a.dtype), texts and texts[1] }
end)

define("PadEnd", "pad_shape, pad_value=0", [[
A value of the shape pad_shape: what is shorter is filled up at its end with pad_value, a number or a text for texts, what is longer is
cut. -1 as a size leaves the axis as it is.

    > ms.dataset.transforms.PadEnd({ 4 }, 9)(ms.tensor { 1, 2 }):tolist()[4]
    9]], function(a, name)
  local number, texts = number_or_text(name, "pad_value", a.pad_value)
  if type(a.pad_shape) ~= "table" or #a.pad_shape == 0 then fail(name, "pad_shape must be a list of sizes, got "
    .. describe(a.pad_shape)) end
  local numbers = { number }
  for i, size in ipairs(a.pad_shape) do
    size = check.integer(name, ("pad_shape[%d]"):format(i), size)
    if size < -1 then fail(name, ("pad_shape[%d] must not be negative, or -1, got %d"):format(i, size)) end
    numbers[#numbers + 1] = size
  end
  return "pad_end", numbers, texts
end)

define("Concatenate", "axis=0, prepend=nil, append=nil", [[
All columns along axis as one, with prepend in front and append behind, tensors or lists of numbers.

    > ms.dataset.transforms.Concatenate({ prepend = { 0 }, append = { 9 } })(ms.tensor { 1, 2 }):tolist()[4]
    9]], function(a, name)
  local tensors = {}
  for _, what in ipairs { "prepend", "append" } do
    local value = a[what]
    if value ~= nil then
      local ok, tensor = true, value
      if not ms.is_tensor(value) then ok, tensor = pcall(ms.tensor, value) end
      if not ok then fail(name, ("%s must be a tensor or a list of numbers, got %s"):format(what, describe(value))) end
      tensors[#tensors + 1] = tensor
    end
  end
  return "concatenate", { check.integer(name, "axis", a.axis), a.prepend ~= nil and 1 or 0, a.append ~= nil and 1 or 0 }, nil, tensors
end)

define("Unique", "", [[
The elements without repetition, in the order in which they first come; for each element the place of its value among these; how often
each value comes.

    > values, places, counts = ms.dataset.transforms.Unique()(ms.tensor { 3, 1, 3 })
    > counts:tolist()[1]
    2]], function() return "unique" end)

-- Slice takes any number of slices, so its arguments are read by hand.
local slice_type = getmetatable(ms.slice(0, 1))
local not_given = 1e15

local function slice_of(name, i, value)
  local what = ("slice %d"):format(i)
  local function bound(x)
    return x == nil and not_given or check.integer(name, what, x)
  end
  if math.type(value) then return { 1, 1, check.integer(name, what, value) } end
  if type(value) == "string" then
    if value == ":" or value == "..." then return { 0, not_given, not_given, 1 } end
    local start, stop, step = value:match "^%s*(%-?%d*)%s*:%s*(%-?%d*)%s*:?%s*(%-?%d*)%s*$"
    if start then value = { start = tonumber(start), stop = tonumber(stop), step = tonumber(step) } end
  end
  local meta = getmetatable(value)
  if type(value) == "table" and (meta == slice_type or meta == nil and #value == 0) then
    local step = value.step == nil and 1 or check.integer(name, what, value.step)
    if step == 0 then fail(name, what .. " has the step 0") end
    return { 0, bound(value.start), bound(value.stop or value["end"]), step }
  end
  if type(value) == "table" and meta == nil then
    local list = { 1, #value }
    for k, place in ipairs(value) do list[k + 2] = check.integer(name, ("%s[%d]"):format(what, k), place) end
    return list
  end
  local words = "%s must be a place, a list of places, ms.slice(start, stop, step) or a text such as '1:3', got %s"
  return fail(name, words:format(what, describe(value)))
end

local Slice = define("Slice", "slices", [[
A part of a value, one of slices for each of the first axes: a place, a list of places, ms.slice(start, stop, step), or a text as
"1:3" and ":" for all. Slice(1, ":") and Slice({ 0, 2 }) take several arguments as MindSpore's does.

    > ms.dataset.transforms.Slice(":", "0:2")(ms.zeros({ 3, 4 })).shape
    (3, 2)]], function(a, name)
  local numbers = {}
  for i, value in ipairs(a.slices) do
    for _, x in ipairs(slice_of(name, i, value)) do numbers[#numbers + 1] = x end
  end
  return "slice", numbers
end)

function Slice:init(...)
  if select("#", ...) == 0 then fail("Slice", "missing argument 1: a slice is expected") end
  for i = 1, select("#", ...) do
    if (select(i, ...)) == nil then fail("Slice", ("slice %d is nil"):format(i)) end
  end
  Slice.setup(self, { slices = { ... } })
end

return steps.module(transforms, "ms.dataset.transforms")
