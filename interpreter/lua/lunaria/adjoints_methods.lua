-- Replacements for derivatives of methods of tensors that are no operators. Programs without an interpreter have these texts too
-- (jit/runtime), where they are what the methods do.
local math, select, type, ipairs, pairs, pcall = math, select, type, ipairs, pairs, pcall

return function(core, ms)
  local replace = core.replace
  local ops = ms.ops

  local plain_select = core.original(select)
  local function count(...) return plain_select("#", ...) end

  -- Methods of tensors that are no operators.
  local x = ms.tensor { 1.0 }
  local function put(t, value)
    t["..."] = value
    return t
  end
  local function same(t) return ops.identity(t) end
  for _, name in ipairs { "copy", "clone", "contiguous", "value" } do replace(x[name], same) end
  local is_device = core.original(require "lunaria.devices".is_device)
  local function convert(method)
    local plain = core.original(method)
    replace(method, function(t, ...)
      local dtype = ...
      if ms.is_tensor(dtype) then dtype = dtype.dtype end
      if core.is_dtype(dtype) then return ops.cast(t, dtype) end
      if type(dtype) == "string" and is_device(dtype) then return ops.to_device(t, dtype) end
      return plain(t, ...)
    end)
  end
  local only, plain_item = core.item, core.original(x.item)
  replace(x.item, function(t, ...)
    if not ms.is_tensor(t) then
      if t == nil then return plain_item() end
      return plain_item(t, ...)
    end
    local n, shape, at = count(...), t.shape, t
    if n ~= #shape then return plain_item(t, ...) end
    for axis = 1, n do
      local i = select(axis, ...)
      if math.type(i) ~= "integer" or i < -shape[axis] or i >= shape[axis] then return plain_item(t, ...) end
      at = at[i]
    end
    return only(at)
  end)
  -- Numbers that are followed, in nested tables.
  local function listed(t, axis, shape)
    if axis > #shape then return only(t) end
    local list = {}
    for i = 1, shape[axis] do list[i] = listed(t[i - 1], axis + 1, shape) end
    return list
  end
  replace(x.tolist, function(t) return listed(t, 1, t.shape) end, true)
  local array = getmetatable(ms.zeros({ 1 }):asnumpy())
  local function marked(list, rank)
    if rank == 0 then return list end
    for _, item in ipairs(list) do marked(item, rank - 1) end
    return setmetatable(list, array)
  end
  replace(x.asnumpy, function(t) return marked(listed(t, 1, t.shape), #t.shape) end, true)
  for _, name in ipairs { "astype", "to", "type_as" } do convert(x[name]) end
  for name, dtype in pairs { half = ms.float16, bfloat16 = ms.bfloat16, float = ms.float32, double = ms.float64 } do
    replace(x[name], function(t) return ops.cast(t, dtype) end)
  end
  for _, name in ipairs { "copy_", "fill_", "set_data" } do
    local plain, single = core.original(x[name]), name == "fill_"
    replace(x[name], function(t, ...)
      local value = ...
      if type(value) == "table" then
        local made
        made, value = pcall(ms.tensor, value, t.dtype)
        if not made then return plain(t, ...) end
      end
      if not core.fills(t, value) or (single and ms.is_tensor(value) and value.size ~= 1) then return plain(t, ...) end
      return put(t, value)
    end, true)
  end
  replace(x.zero_, function(t) return core.overwrite(t, ops.zeros_like(core.stop(t))) end, true)
  for _, name in ipairs { "uniform_", "normal_", "random_" } do
    local draw = core.original(x[name])
    replace(x[name], function(t, ...) return core.overwrite(t, draw(ops.zeros_like(core.stop(t)), ...)) end, true)
  end
  -- add_, clamp_ and all others that put an operator's result in place.
  core.in_place(function(op, method)
    local plain = core.original(method)
    return function(t, ...)
      local y = op(t, ...)
      if not core.fits(t, y) then return plain(t, ...) end
      if y.dtype ~= t.dtype then y = ops.cast(y, t.dtype) end
      return core.overwrite(t, y)
    end
  end)
  local plain_where, plain_slice = core.original(x.where), core.original(x.select)
  replace(x.where, function(t, ...)
    local condition, other = ...
    if count(...) ~= 2 or not ms.is_tensor(condition) then return plain_where(t, ...) end
    return ops.where(condition, t, other)
  end)
  replace(x.select, function(t, ...)
    local axis, index = ...
    if count(...) == 2 and ms.is_tensor(axis) then return ops.where(axis, t, index) end
    local size = math.type(axis) == "integer" and t.shape[(axis < 0 and axis + #t.shape or axis) + 1]
    if not size or math.type(index) ~= "integer" or index < -size or index >= size then return plain_slice(t, ...) end
    if index < 0 then index = index + size end
    return ops.squeeze(ops.narrow(t, axis, index, 1), axis)
  end)
  local iterator = x:iter()
  replace(x.iter, function(t) return iterator, same(t), nil end)
  replace(iterator, function(t, i)
    i = i == nil and 0 or i + 1
    if i < #t then
      local row = t[i]
      if #t.shape == 1 then row = row:item() end
      return i, row
    end
  end)
  local new_full = x.new_full
  local plain_new_full = core.original(new_full)
  replace(new_full, function(t, ...)
    local size, value, dtype = ...
    if type(value) ~= "number" then return plain_new_full(t, ...) end
    return ops.new_full(t, size, value, dtype)
  end, true)
end
