-- What cells see while they compute in another dtype: their inputs and parameters, cast.
local ms = require "lunaria"

local is_parameter, is_tensor, cast = ms.is_parameter, ms.is_tensor, ms.ops.cast

local float_names = { Float16 = true, BFloat16 = true, Float32 = true, Float64 = true }

-- A plain table with its floating tensors in another dtype, also those of tables in it; itself where there is none. Beyond that
-- depth a table is left as it is: one may hold itself.
local deepest = 8
local function table_as_float(dtype, values, depth)
  local changed
  for key, value in pairs(values) do
    local other = value
    if is_tensor(value) then
      if value.dtype ~= dtype and float_names[tostring(value.dtype)] then other = cast(value, dtype) end
    elseif depth < deepest and type(value) == "table" and getmetatable(value) == nil then
      other = table_as_float(dtype, value, depth + 1)
    end
    if not rawequal(other, value) then
      if not changed then
        changed = {}
        for k, v in pairs(values) do changed[k] = v end
      end
      changed[key] = other
    end
  end
  return changed or values
end

-- Values with their floating tensors in another dtype, also those in plain tables (states of recurrent cells); nothing else of
-- them changes.
local function as_float(dtype, count, first, ...)
  if count == 0 then return end
  if is_tensor(first) then
    if first.dtype ~= dtype and float_names[tostring(first.dtype)] then first = cast(first, dtype) end
  elseif type(first) == "table" and getmetatable(first) == nil then
    first = table_as_float(dtype, first, 1)
  end
  if count == 1 then return first end
  return first, as_float(dtype, count - 1, ...)
end

-- The cell as its own construct sees it while it computes in another dtype: parameters are cast when they are read, all
-- else is the cell's. A cell without parameters is seen as it is: derivatives pay for each field that is read by a function.
local function view(cell, dtype)
  local known = rawget(cell, "_known")
  local has_parameters = false
  for _, value in pairs(known) do has_parameters = has_parameters or is_parameter(value) end
  if not has_parameters then return cell end
  return setmetatable({}, {
    __index = function(_, key)
      local value = cell[key]
      if known[key] ~= nil and is_parameter(value) and value.dtype ~= dtype and float_names[tostring(value.dtype)] then
        return cast(value, dtype)
      end
      return value
    end,
    __newindex = function(_, key, value) cell[key] = value end,
    __len = function() return #cell end,
    __call = function(_, ...) return cell(...) end,
    _name = getmetatable(cell)._name,
  })
end

return { as_float = as_float, view = view, float_names = float_names }
