-- Cells that add elements around the last axes: zeros, another number, the input mirrored or its edge repeated.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell

-- One amount for all sides, or {left, right, top, bottom, front, back} up to the number of axes. Negative ones cut off.
local function amounts_of(name, value, axes)
  local list = {}
  if math.type(value) then
    for i = 1, 2 * axes do list[i] = check.integer(name, "padding", value) end
  elseif type(value) ~= "table" or #value ~= 2 * axes then
    fail(name, ("padding must be an integer or a table of %d integers, got %s"):format(2 * axes, describe(value)))
  else
    for i = 1, 2 * axes do list[i] = check.integer(name, ("padding[%d]"):format(i), value[i]) end
  end
  return list
end

local sides = { "{left, right}", "{left, right, top, bottom}", "{left, right, top, bottom, front, back}" }
local counts = { "axis", "two axes", "three axes" }

-- fill: "constant" with a number to be given, "zeros", "reflect" or "replicate".
local function padding(kind, axes, fill, what)
  local name = ("%s%dd"):format(kind, axes)
  local doc = ([[Adds %s around the last %s: padding is %s or one number for all sides; a negative one cuts off.

  > ms.nn.%s(1%s)(ms.ones { 2, 3%s }).shape
  (2, 3%s)]]):format(what, counts[axes], sides[axes], name, fill == "constant" and ", 2.0" or "", (", 4"):rep(axes),
    (", 6"):rep(axes))
  local class = layer(Cell, name, fill == "constant" and "padding, value" or "padding", doc)
  function class:setup(a)
    self.padding = amounts_of(name, a.padding, axes)
    self.value = fill == "constant" and check.number(name, "value", a.value) or 0
  end
  local mode = fill == "zeros" and "constant" or fill
  function class:construct(x)
    -- Mirrored and repeated elements are those of an image: without a batch there may be one axis less.
    local least = mode == "constant" and axes or axes + 1
    if not ms.is_tensor(x) or x.ndim < least then
      fail(name, ("the input must be a tensor of %d axes or more, got %s"):format(least, describe(x)))
    end
    if mode == "constant" then return ops.pad(x, self.padding, mode, self.value) end
    return ops.pad(x, self.padding, mode)
  end
  function class:extend_repr()
    return "padding=(" .. table.concat(self.padding, ", ") .. ")" .. (fill == "constant" and ", value=" .. self.value or "")
  end
  return class
end

local classes = {
  ZeroPad2d = padding("ZeroPad", 2, "zeros", "zeros"),
}
for axes = 1, 3 do
  for kind, about in pairs {
    ConstantPad = { "constant", "elements that are value" },
    ReflectionPad = { "reflect", "the input mirrored at its edge, whose elements are not repeated," },
    ReplicationPad = { "replicate", "the elements of the edge again and again" },
  } do
    classes[("%s%dd"):format(kind, axes)] = padding(kind, axes, about[1], about[2])
  end
end
return classes
