-- Names of parameters when cells are put into each other. To go through all that lies below a cell for each cell more that is put
-- around it would be the square of their number: below many levels, what is known of a part from when it was put there is taken as
-- it is. `of` has what cell.lua knows of cells: fields, named_parameters and shown_key.
-- A cell has the number of its levels in _levels and, as the outermost of many, { path, parameter } ... of all parameters below it
-- in _below.
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

return naming
