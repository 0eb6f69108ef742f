-- The classes of vision, text and transforms, whose objects hold a transform of core/data/transforms. An object is
-- called with values, or given to ds:map, which runs it on threads.
local ms = require "lunaria"
local data = require "lunaria.data"
local native = require "lunaria.steps"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local steps = {}

local Transform = class.Object:extend("Transform")
Transform._called = "transform"
Transform._parameters = ""
Transform._doc = [[
What the transforms have in common: t(value, ...) gives the values that it makes of these, and ds:map(t, columns) does so with
the rows of a data set, on threads. Random ones draw from the generator of ms.set_seed, and in ds:map from the stream of the row.

    > t = ms.dataset.vision.HorizontalFlip()
    > t(ms.tensor({ { 1, 2 } }, ms.uint8)):tolist()[1][1]
    2]]

function Transform:__call(...)
  local count = select("#", ...)
  if count == 0 then fail(getmetatable(self)._name, "a value is expected, got nothing") end
  local values = { ... }
  for i = 1, count do
    local value = values[i]
    if type(value) == "table" and type(value[1]) ~= "string" and next(value) ~= nil and not ms.is_tensor(value) then
      local ok, tensor = pcall(ms.tensor, value)
      if ok then values[i] = tensor end
    elseif value == nil then
      fail(getmetatable(self)._name, ("argument %d must be a tensor, a number or a text, got nil"):format(i))
    end
  end
  return data.transform(self._transform, table.unpack(values, 1, count))
end
steps.Transform = Transform

--- Whether a value is one of the library's transforms.
function steps.is_transform(value)
  return type(value) == "table" and getmetatable(value) ~= nil and rawget(value, "_transform") ~= nil
end

--- A class whose setup(a, name) gives kind, numbers, texts, tensors, parts and vocabulary of the transform.
function steps.define(group, name, signature, doc, setup)
  local step = class.define(Transform, name, signature, doc)
  function step:setup(a)
    local kind, numbers, texts, tensors, parts, shared = setup(a, name)
    self._transform = native.make(kind, name, numbers or {}, texts, tensors, parts, shared)
    self._given = a
    self._random = kind:find "random" ~= nil
  end
  group[name] = step
  return step
end

-- The handles of a list of transforms.
function steps.parts_of(where, name, list)
  if type(list) ~= "table" or #list == 0 then
    fail(where, ("%s must be a list of transforms, got %s"):format(name, describe(list)))
  end
  local parts = {}
  for i, part in ipairs(list) do
    if not steps.is_transform(part) then
      fail(where, ("%s[%d] must be a transform, got %s"):format(name, i, describe(part)))
    end
    parts[i] = part._transform
  end
  return parts
end

--- A transform that holds others, which are handles.
function steps.made(kind, name, numbers, parts)
  return native.make(kind, name, numbers, nil, nil, parts)
end

--- Names with values, such as Inter.
function steps.enumeration(group, name, doc, values)
  local list = { _name = name, _doc = doc, _parameters = "" }
  for key, value in pairs(values) do list[key] = value end
  group[name] = setmetatable(list, {
    __tostring = function() return name end,
    __index = function(_, key)
      if type(key) ~= "string" or key:sub(1, 1) == "_" then return nil end
      local names = {}
      for other in pairs(values) do names[#names + 1] = other end
      table.sort(names)
      return fail(name, ("there is no name '%s'; there are: %s"):format(key, table.concat(names, ", ")), arguments.nearest(key, names))
    end,
  })
  return list
end

--- The value of an enumeration: itself, or its name in any case.
function steps.choice(where, name, value, group, enumeration)
  local list = group[enumeration]
  local names = {}
  for key, item in next, list do
    if key:sub(1, 1) ~= "_" then
      if item == value or (type(value) == "string" and key:lower() == value:lower()) then return item end
      names[#names + 1] = enumeration .. "." .. key
    end
  end
  table.sort(names)
  return fail(where, ("%s must be one of %s, got %s"):format(name, table.concat(names, ", "), describe(value)))
end

--- Height and width.
function steps.size(where, name, value) return table.unpack(check.sizes(where, name, value, 2, 1)) end

--- A size as height and width; width 0: the number is that of the shorter side.
function steps.side(where, name, value)
  if math.type(value) then return check.sizes(where, name, value, 1, 1)[1], 0 end
  return steps.size(where, name, value)
end

--- A list of numbers.
function steps.numbers(where, name, value, count)
  if ms.is_tensor(value) then value = value:tolist() end
  if math.type(value) then value = { value } end
  if type(value) ~= "table" or #value == 0 or (count and #value ~= count) then
    fail(where, ("%s must be %s, got %s"):format(name, count and ("a list of %d numbers"):format(count) or "a list of numbers",
      describe(value)))
  end
  local list = {}
  for i = 1, #value do
    list[i] = check.number(where, ("%s[%d]"):format(name, i), value[i])
    if list[i] ~= list[i] or math.abs(list[i]) == math.huge then fail(where, ("%s[%d] must be finite"):format(name, i)) end
  end
  return list
end

--- Two numbers, the first at most as large as the second, within least and most.
function steps.range(where, name, value, least, most)
  local low, high = table.unpack(steps.numbers(where, name, value, 2))
  if low > high then fail(where, ("%s must be { low, high }, got { %g, %g }"):format(name, low, high)) end
  if (least and low < least) or (most and high > most) then
    fail(where, ("%s must be in [%g, %g], got { %g, %g }"):format(name, least or -math.huge, most or math.huge, low, high))
  end
  return low, high
end

--- One number around which to draw, at a distance of it from `middle`, or a range.
function steps.around(where, name, value, middle, least, most)
  if math.type(value) then
    if value < 0 then fail(where, ("%s must not be negative, got %s"):format(name, tostring(value))) end
    return steps.range(where, name, { math.max(middle - value, least or -math.huge), middle + value }, least, most)
  end
  return steps.range(where, name, value, least, most)
end

--- A colour: one number for all channels, or three.
function steps.color(where, name, value)
  if math.type(value) then value = { value, value, value } end
  local list = steps.numbers(where, name, value)
  if #list ~= 3 then fail(where, ("%s must be a number or three, got %d"):format(name, #list)) end
  for _, level in ipairs(list) do
    if level < 0 or level > 255 then fail(where, ("%s must be in [0, 255], got %g"):format(name, level)) end
  end
  return table.unpack(list)
end

--- The numbers after those of the first list.
function steps.join(list, ...)
  for _, value in ipairs { ... } do list[#list + 1] = value end
  return list
end

--- The name of a dtype, for C++.
function steps.dtype_name(where, name, value)
  local ok, dtype = pcall(function() return ms.zeros({ 1 }, { dtype = value }).dtype end)
  if value == nil or not ok then fail(where, ("%s must be a dtype, got %s"):format(name, describe(value))) end
  return tostring(dtype):lower()
end

--- A module whose unknown names are errors.
function steps.module(group, name)
  return setmetatable(group, {
    __index = function(_, key)
      local names = {}
      for known in next, group do names[#names + 1] = known end
      fail(name, ("there is no name '%s'"):format(tostring(key)), arguments.nearest(tostring(key), names))
    end,
  })
end

return steps
