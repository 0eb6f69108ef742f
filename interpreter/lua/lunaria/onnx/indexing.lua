-- ONNX operators that pick elements by index and put them somewhere.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

-- Positions from the front; `n` is the size of the axis that they count in, or one size for each coordinate.
local function from_front(indices, n) return ops.where(ops.less(indices, 0), ops.add(indices, n), indices) end

define.define("Gather", "axis:i=0", 2, 2, function(a)
  local axis = a.axis
  return function(x, indices) return ops.gather(x, from_front(indices, x.shape[define.axis(x, axis) + 1]), axis) end
end)

define.define("GatherElements", "axis:i=0", 2, 2, function(a)
  local axis = a.axis
  return function(x, indices)
    return ops.gather_elements(x, axis, from_front(indices, x.shape[define.axis(x, axis) + 1]))
  end
end)

-- A tensor with the coordinates of its first `count` axes put before those of the indices.
local function with_batch(x, indices, count)
  local parts, shape = {}, define.sizes(indices)
  shape[#shape] = 1
  for i = 1, count do
    local along = {}
    for k = 1, #shape do along[k] = k == i and x.shape[i] or 1 end
    parts[i] = ops.broadcast_to(ops.reshape(ops.arange(x.shape[i], nil, 1, indices.dtype), along), shape)
  end
  parts[count + 1] = indices
  return ops.concat(parts, -1)
end

define.define("GatherND", "batch_dims:i=0", 2, 2, function(a)
  local count = a.batch_dims
  return function(x, indices)
    local n = {}
    for i = 1, indices.shape[indices.ndim] do n[i] = x.shape[count + i] end
    indices = from_front(indices, ms.tensor(n, indices.dtype))
    if count > 0 then indices = with_batch(x, indices, count) end
    return ops.gather_nd(x, indices)
  end
end)

local reductions = { none = "none", add = "add", mul = "mul", max = "max", min = "min" }

define.define("ScatterElements Scatter", "axis:i=0 reduction:s=none", 3, 3, function(a, node)
  local axis, how = a.axis, reductions[a.reduction]
  if not how then node.fail(("the reduction '%s' is not known"):format(a.reduction)) end
  return function(x, indices, updates)
    indices = from_front(indices, x.shape[define.axis(x, axis) + 1])
    return ops.tensor_scatter_elements(x, indices, updates, axis, how)
  end
end)

local scatter = {
  none = "tensor_scatter_update", add = "tensor_scatter_add", mul = "tensor_scatter_mul", max = "tensor_scatter_max",
  min = "tensor_scatter_min",
}
define.define("ScatterND", "reduction:s=none", 3, 3, function(a, node)
  local f = ops[scatter[a.reduction] or ""]
  if not f then node.fail(("the reduction '%s' is not known"):format(a.reduction)) end
  return function(x, indices, updates)
    local n = {}
    for i = 1, indices.shape[indices.ndim] do n[i] = x.shape[i] end
    return f(x, from_front(indices, ms.tensor(n, indices.dtype)), updates)
  end
end)

-- The cache with the update put in at a place of its own for each item of the batch.
define.define("TensorScatter", "mode:s=linear axis:i=-2", 2, 3, function(a, node)
  local circular = a.mode == "circular"
  if not circular and a.mode ~= "linear" then node.fail(("the mode '%s' is not known"):format(a.mode)) end
  return function(cache, update, places)
    local axis = define.axis(cache, a.axis)
    local length, count = cache.shape[axis + 1], update.shape[axis + 1]
    local at = ops.arange(count, nil, 1, ms.int64)
    local batch = { cache.shape[1], 1 }
    at = ops.broadcast_to(ops.reshape(at, { 1, count }), { cache.shape[1], count })
    if places then at = ops.add(at, ops.reshape(ops.cast(places, ms.int64), batch)) end
    if circular then at = ops.remainder(at, length) end
    local shape = {}
    for i = 1, cache.ndim do shape[i] = i == 1 and cache.shape[1] or i == axis + 1 and count or 1 end
    at = ops.broadcast_to(ops.reshape(at, shape), define.sizes(update))
    return ops.tensor_scatter_elements(cache, at, update, axis, "none")
  end
end)

define.plain("NonZero", 1, function(x)
  local found = ops.argwhere(x.ndim == 0 and ops.reshape(x, { 1 }) or x)
  return ops.cast(ops.transpose(found, { 1, 0 }), ms.int64)
end)

define.define("Compress", "axis:i", 2, 2, function(a)
  return function(x, condition)
    local kept = ops.reshape(ops.argwhere(condition), { -1 })
    if not a.axis then return ops.gather(ops.reshape(x, { -1 }), kept, 0) end
    return ops.gather(x, kept, a.axis)
  end
end)

define.define("ReverseSequence", "batch_axis:i=1 time_axis:i=0", 2, 2, function(a)
  return function(x, lengths) return ops.reverse_sequence(x, lengths, a.time_axis, a.batch_axis) end
end)

for name, find in pairs { ArgMax = ops.argmax, ArgMin = ops.argmin } do
  define.define(name, "axis:i=0 keepdims:i=1 select_last_index:i=0", 1, 1, function(a)
    local axis, keep, last = a.axis, a.keepdims ~= 0, a.select_last_index ~= 0
    return function(x)
      if not last then return ops.cast(find(x, axis, keep), ms.int64) end
      local n = x.shape[define.axis(x, axis) + 1]
      return ops.sub(n - 1, ops.cast(find(ops.flip(x, { axis }), axis, keep), ms.int64))
    end
  end)
end

define.define("TopK", "axis:i=-1 k:i largest:i=1 sorted:i=1", 1, 2, function(a)
  local axis, largest = a.axis, a.largest ~= 0
  return function(x, k)
    local values, indices = ops.sort(x, axis, largest)
    local n = a.k or define.number(k)
    return ops.narrow(values, axis, 0, n), ops.cast(ops.narrow(indices, axis, 0, n), ms.int64)
  end
end)

-- Whether a row comes before another.
local function before(a, b)
  if type(a) ~= "table" then return a < b end
  for i = 1, #a do
    local p, q = a[i], b[i]
    if type(p) == "table" then
      if before(p, q) then return true end
      if before(q, p) then return false end
    elseif p ~= q then
      if type(p) == "boolean" then return q end
      return p < q
    end
  end
  return false
end

define.define("Unique", "axis:i sorted:i=1", 1, 1, function(a)
  local axis, sorted = a.axis, a.sorted ~= 0
  return function(x)
    local on = axis and define.axis(x, axis) or 0
    local rows = axis and define.move(x, on, 0) or ops.reshape(x, { -1 })
    local n = rows.shape[1]
    local list = axis and ops.reshape(rows, { n, -1 }):tolist() or rows:tolist()
    local order = {}
    for i = 1, n do order[i] = i end
    table.sort(order, function(i, k)
      if before(list[i], list[k]) then return true end
      return not before(list[k], list[i]) and i < k
    end)
    local groups, group_of = {}, {}
    for place, i in ipairs(order) do
      local first = place == 1 or before(list[order[place - 1]], list[i])
      if first then groups[#groups + 1] = { first = i, count = 0 } end
      groups[#groups].count = groups[#groups].count + 1
      group_of[i] = groups[#groups]
    end
    if not sorted then table.sort(groups, function(p, q) return p.first < q.first end) end
    local firsts, counts, inverse = {}, {}, {}
    for i, group in ipairs(groups) do firsts[i], counts[i], group.place = group.first - 1, group.count, i - 1 end
    for i = 1, n do inverse[i] = group_of[i].place end
    local picked = ms.tensor(firsts, ms.int64)
    local values = ops.gather(axis and x or ops.reshape(x, { -1 }), picked, on)
    return values, picked, ms.tensor(inverse, ms.int64), ms.tensor(counts, ms.int64)
  end
end)
