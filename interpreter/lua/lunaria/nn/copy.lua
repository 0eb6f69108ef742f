-- A cell like another, with parameters of its own that start with the same values. Tensors that are no parameters and
-- functions are shared.
local ms = require "lunaria"
local cells = require "lunaria.nn.cell"

local function copy(value, seen, cast)
  if seen[value] then return seen[value] end
  if ms.is_parameter(value) then
    seen[value] = ms.Parameter(value:copy(), value.name, value.requires_grad)
    return seen[value]
  end
  local is_cell = cells.is_cell(value)
  if type(value) ~= "table" or not is_cell and getmetatable(value) ~= nil then return value end
  local new = {}
  seen[value] = new
  local special = is_cell and rawget(value, "_special")
  if special and special.dtype then cast[#cast + 1] = { new, special.dtype } end
  for key, item in next, value do
    if key ~= "_special" or not is_cell then
      rawset(new, key, copy(item, seen, cast))
    elseif item then
      -- Hooks stay; the view that computes in another dtype is one of this cell alone.
      new._special = { output = item.output, recompute = item.recompute, inputs = item.inputs }
      for _, list in ipairs { "before", "after", "backward", "backward_pre" } do
        new._special[list] = copy(item[list], seen, cast)
      end
    end
  end
  return setmetatable(new, getmetatable(value))
end

return function(cell)
  local cast = {}
  local new = copy(cell, {}, cast)
  -- Outer cells were noted first, so that what was said of inner ones holds.
  for _, pair in ipairs(cast) do pair[1]:to_float(pair[2]) end
  return new
end
