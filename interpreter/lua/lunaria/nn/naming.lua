-- Names of parameters when cells are put into each other. To go through all that lies below a cell for each cell more that is put
-- around it would be the square of their number: below many levels, what is known of a part from when it was put there is taken as
-- it is. `of` has what cell.lua knows of cells: fields, named_parameters and shown_key.
-- A cell has the number of its levels in _levels and, as the outermost of many, { path, parameter } ... of all parameters below it
-- in _below.
local ms = require "lunaria"
local most_levels, of = 64, {}
local naming = { of = of }

--- A list of { path, parameter } of all parameters of a cell.
function naming.parameters(cell)
  if (rawget(cell, "_levels") or 0) < most_levels then return of.named_parameters(cell) end
  local known = rawget(cell, "_below")
  if known then return known end
  local list, seen = {}, {}
  rawset(cell, "_below", list) -- also where the cell lies in itself
  local function add(path, parameter)
    if seen[parameter] then return end
    seen[parameter] = true
    list[#list + 1] = { path, parameter }
  end
  local own = of.fields(cell)
  for _, field in ipairs(own) do
    if field.parameter then add(of.shown_key(field.key), field.value) end
  end
  for _, field in ipairs(own) do
    if not field.parameter then
      for _, pair in ipairs(naming.parameters(field.value)) do add(of.shown_key(field.key) .. "." .. pair[1], pair[2]) end
      if field.value ~= cell then rawset(field.value, "_below", nil) end
    end
  end
  return list
end

--- A cell got another part, or a parameter.
function naming.changed(cell, child)
  if child then rawset(cell, "_levels", math.max(rawget(cell, "_levels") or 0, (rawget(child, "_levels") or 0) + 1)) end
  rawset(cell, "_below", nil)
end

-- Whether the user wrote the class of a cell: classes of the library keep cells in tables where they mean it.
local function is_own_class(cell)
  local construct = cell.construct
  return type(construct) == "function" and debug.getinfo(construct, "S").source:sub(1, 9) ~= "@lunaria:"
end

local function holds_parameters(value)
  local meta = type(value) == "table" and getmetatable(value)
  return ms.is_parameter(value) or meta and meta._is_cell and #naming.parameters(value) > 0
end

local function is_plain_table(value) return type(value) == "table" and getmetatable(value) == nil end

-- What parameters of a cell's fields are not among those that were reached.
local function look_through(cell, reached)
  local arguments = require "lunaria.nn.arguments"
  local name, known, own = getmetatable(cell)._name, rawget(cell, "_known"), is_own_class(cell)
  for key, value in next, cell do
    local is_field = type(key) == "string" and key:sub(1, 1) ~= "_"
    if is_field and ms.is_parameter(known[key]) and not reached[value] then
      local now = arguments.describe(value)
      arguments.warn(name, ("the parameter in the field '%s' was replaced by %s, which is not trained"):format(key, now),
        ("cell.%s:set_data(tensor) gives it another value"):format(key))
    elseif is_field and own and is_plain_table(value) then
      for _, part in next, value do
        if holds_parameters(part) and not reached[part] then
          arguments.warn(name, ("the field '%s' is a plain table, and the parameters in it are not trained"):format(key),
            ("self.%s = nn.CellList { ... }, or a field of its own for each"):format(key))
          break
        end
      end
    end
  end
end

--- Warns of parameters that lie in plain tables of a cell's fields, or were replaced by tensors: they look as if they were trained.
function naming.warn_of_overlooked(cell)
  local reached, cells = {}, {}
  local function visit(one)
    if reached[one] then return end
    reached[one], cells[#cells + 1] = true, one
    for _, field in ipairs(of.fields(one)) do
      if field.parameter then reached[field.value] = true else visit(field.value) end
    end
  end
  visit(cell)
  for _, one in ipairs(cells) do look_through(one, reached) end
end

return naming
