-- The inputs and parameters of cells that compute in another dtype, cast.
local ms = require "lunaria"
local registry = require "lunaria.registry"

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

-- The parameters that a class's own methods write to, by the text of these: their state, which is neither read nor written in
-- another dtype, as a cast is no place to write to and a count would stop where a half has no next number. A write is a method
-- (assign, set_data, add_ and others that end so), an operator (assign, assign_add, batch_norm_update) or an assignment to
-- elements, on the field itself or a local variable of it; where the field has no written name, all that is not trained is state.
local writers = { assign = true, assign_add = true, assign_sub = true, set_data = true }

local function is_written(text, place)
  local from, to = text:find(place)
  while from do
    local method = text:match("^%s*:%s*([%a_][%w_]*)", to + 1)
    if method and (writers[method] or method:find "[^_]_$") then return true end
    if text:find("^%s*%b[]%s*=[^=]", to + 1) then return true end
    local before = text:sub(1, from - 1)
    if before:find "%f[%w_]assign[%w_]*%s*%(%s*$" or before:find "%f[%w_]batch_norm_update%s*%([^()]*$" then return true end
    from, to = text:find(place, to + 1)
  end
  return false
end

local function without_comments(text)
  return (text:gsub("%-%-%[(=*)%[.-%]%1%]", " "):gsub("%-%-[^\n]*", ""))
end

-- The texts of the methods that a cell, its class and those it extends have, without the library's own.
local function method_texts(cell)
  local texts, from = {}, cell
  while type(from) == "table" do
    for _, method in pairs(from) do
      if type(method) == "function" then
        local listing = registry.listing(method)
        if listing.text and not listing.file:find "^lunaria:" then texts[#texts + 1] = without_comments(listing.text) end
      end
    end
    local class = getmetatable(from)
    from = class and rawget(class, "__index")
  end
  return texts
end

local function state_of(cell, known)
  local state = {}
  for _, text in ipairs(method_texts(cell)) do
    local any = is_written(text, "self%s*%b[]")
    for key, value in pairs(known) do
      if is_parameter(value) and type(key) == "string" and not state[key] then
        local field = "%s*%.%s*" .. key .. "%f[^%w_]"
        local written = is_written(text, "[%a_][%w_]*" .. field) or any and not value.requires_grad
        for name in text:gmatch("local%s+([%a_][%w_]*)%s*=%s*[%a_][%w_]*" .. field) do
          written = written or is_written(text, "%f[%w_]" .. name .. "%f[^%w_]")
        end
        state[key] = written or nil
      end
    end
  end
  return state
end

-- The cell as its own construct sees it while it computes in another dtype: parameters are cast when they are read, all
-- else is the cell's. A cell without parameters is seen as it is: derivatives pay for each field that is read by a function.
-- The second result: whether some parameters are state.
local function view(cell, dtype)
  local known = rawget(cell, "_known")
  local has_parameters = false
  for _, value in pairs(known) do has_parameters = has_parameters or is_parameter(value) end
  if not has_parameters then return cell, false end
  local state = state_of(cell, known)
  local has_state = next(state) ~= nil
  if has_state then
    local all = known
    known = {}
    for key, value in pairs(all) do
      if not state[key] then known[key] = value end
    end
  end
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
  }), has_state
end

-- A construct that squares, counts or adds up: what it is given in half precision is float32 within it, and its result, one tensor,
-- is rounded once.
local function rounded_once(construct)
  return function(self, first, ...)
    local dtype = is_tensor(first) and first.dtype
    if dtype ~= ms.float16 and dtype ~= ms.bfloat16 then return construct(self, first, ...) end
    return cast(construct(self, as_float(ms.float32, select("#", ...) + 1, first, ...)), dtype)
  end
end

return { as_float = as_float, view = view, float_names = float_names, rounded_once = rounded_once }
