-- ms.numpy: shapes, order and joining of tensors.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local sizes_of = arrays.sizes
local M = {}

local function tensor(where, x, name) return (arrays.of(where, name or "a", x)) end

--- A tensor with another shape; one size may be -1. order: "C" by rows, "F" by columns.
---     > ms.numpy.reshape({ 1, 2, 3, 4 }, { 2, 2 }).shape --> (2, 2)
function M.reshape(x, new_shape, order)
  new_shape, order = arrays.named("numpy.reshape", { "new_shape", "order" }, new_shape, order)
  x = tensor("numpy.reshape", x, "x")
  local sizes = arrays.shape("numpy.reshape", "new_shape", new_shape)
  if order == "F" then
    local turned = {}
    for i, n in ipairs(sizes) do turned[#sizes + 1 - i] = n end
    return ops.transpose(ops.reshape(ops.transpose(x), turned))
  elseif order ~= nil and order ~= "C" then
    arrays.fail("numpy.reshape", ("order must be 'C' or 'F', got %s"):format(arrays.describe(order)))
  end
  return ops.reshape(x, sizes)
end

--- All elements in a row.
---     > ms.numpy.ravel({ { 1, 2 }, { 3, 4 } }).shape --> (4,)
function M.ravel(x) return ops.reshape(tensor("numpy.ravel", x, "x"), { -1 }) end

--- Without the axes of size 1, or without those given.
---     > ms.numpy.squeeze({ { 1, 2 } }).shape --> (2,)
function M.squeeze(a, axis)
  axis = arrays.named("numpy.squeeze", { "axis" }, axis)
  return ops.squeeze(tensor("numpy.squeeze", a), axis)
end

--- With new axes of size 1 at these places.
---     > ms.numpy.expand_dims({ 1, 2 }, 0).shape --> (1, 2)
function M.expand_dims(a, axis)
  axis = arrays.named("numpy.expand_dims", { "axis" }, axis)
  a = tensor("numpy.expand_dims", a)
  local list = type(axis) == "table" and axis or { axis }
  local rank = a.ndim + #list
  local places = {}
  for i, k in ipairs(list) do places[i] = arrays.axis("numpy.expand_dims", k, rank) end
  table.sort(places)
  for _, k in ipairs(places) do a = ops.expand_dims(a, k) end
  return a
end

--- The axes in another order; without axes in the opposite one.
---     > ms.numpy.transpose({ { 1, 2, 3 } }).shape --> (3, 1)
function M.transpose(a, axes)
  axes = arrays.named("numpy.transpose", { "axes" }, axes)
  a = tensor("numpy.transpose", a)
  return ops.transpose(a, axes and arrays.axes("numpy.transpose", axes, a.ndim) or nil)
end

--- Two axes exchanged.
---     > ms.numpy.swapaxes({ { 1, 2, 3 } }, 0, 1).shape --> (3, 1)
function M.swapaxes(x, axis1, axis2) return ops.swapaxes(tensor("numpy.swapaxes", x, "x"), axis1, axis2) end

--- Axes moved to other places; the others keep their order.
---     > ms.numpy.moveaxis(ms.numpy.zeros({ 2, 3, 4 }), 0, -1).shape --> (3, 4, 2)
function M.moveaxis(a, source, destination) return ops.movedim(tensor("numpy.moveaxis", a), source, destination) end

--- The axis moved back until it stands before the axis start.
---     > ms.numpy.rollaxis(ms.numpy.zeros({ 2, 3, 4 }), 2).shape --> (4, 2, 3)
function M.rollaxis(x, axis, start)
  start = arrays.named("numpy.rollaxis", { "start" }, start)
  local where = "numpy.rollaxis"
  x = tensor(where, x, "x")
  axis, start = arrays.axis(where, axis, x.ndim), arrays.integer(where, "start", start or 0)
  if start < -x.ndim or start > x.ndim then arrays.fail(where, ("start %d is out of range for %d axes"):format(start, x.ndim)) end
  if start < 0 then start = start + x.ndim end
  if start > axis then start = start - 1 end
  return ops.movedim(x, axis, start)
end

--- A tensor repeated along new or old axes up to this shape.
---     > ms.numpy.broadcast_to({ 1, 2 }, { 3, 2 }).shape --> (3, 2)
function M.broadcast_to(array, shape)
  return ops.broadcast_to(tensor("numpy.broadcast_to", array, "array"), arrays.shape("numpy.broadcast_to", "shape", shape))
end

--- The tensors, broadcast to one shape: as many results.
---     > select("#", ms.numpy.broadcast_arrays({ 1, 2 }, { { 1 }, { 2 } })) --> 2
function M.broadcast_arrays(...)
  local list, shapes = table.pack(...), {}
  for i = 1, list.n do
    list[i] = tensor("numpy.broadcast_arrays", list[i], "arrays")
    shapes[i] = sizes_of(list[i])
  end
  local shape = arrays.broadcast_shape("numpy.broadcast_arrays", shapes)
  for i = 1, list.n do list[i] = ops.broadcast_to(list[i], shape) end
  return table.unpack(list, 1, list.n)
end

local function each(where, f, ...)
  local list = table.pack(...)
  for i = 1, list.n do list[i] = f(tensor(where, list[i], "arrays")) end
  return table.unpack(list, 1, list.n)
end

--- Tensors with at least one axis: as many results as arguments.
---     > ms.numpy.atleast_1d(3).shape --> (1,)
function M.atleast_1d(...) return each("numpy.atleast_1d", ops.atleast_1d, ...) end

--- Tensors with at least two axes, new ones in front: as many results as arguments.
---     > ms.numpy.atleast_2d({ 1, 2 }).shape --> (1, 2)
function M.atleast_2d(...) return each("numpy.atleast_2d", ops.atleast_2d, ...) end

local function three(x)
  if x.ndim == 0 then return ops.reshape(x, { 1, 1, 1 }) end
  if x.ndim == 1 then return ops.reshape(x, { 1, x.size, 1 }) end
  return x.ndim == 2 and ops.expand_dims(x, 2) or x
end

--- Tensors with at least three axes: as many results as arguments.
---     > ms.numpy.atleast_3d({ 1, 2 }).shape --> (1, 2, 1)
function M.atleast_3d(...) return each("numpy.atleast_3d", three, ...) end

-- The tensors of a list (or of a tensor's first axis), promoted to one dtype.
local function list_of(where, values, axis)
  local list = {}
  if ms.is_tensor(axis) then arrays.fail(where, "the tensors go in as one table, not one by one", ("ms.%s({ a, b }, 0)"):format(where)) end
  if ms.is_tensor(values) then
    list = table.pack(ops.unbind(values, 0))
    list.n = nil
  elseif type(values) == "table" then
    for i, x in ipairs(values) do list[i] = x end
  else
    arrays.fail(where, ("a table of tensors is expected, got %s"):format(arrays.describe(values)))
  end
  if #list == 0 then arrays.fail(where, "at least one tensor is expected") end
  for i, x in ipairs(list) do list[i] = tensor(where, x, "arrays") end
  return (arrays.together(where, { "arrays" }, list, #list))
end

--- Tensors joined along an axis.
---     > ms.numpy.concatenate({ ms.numpy.ones(2), { 3, 4 } }).shape --> (4,)
function M.concatenate(tensors, axis)
  axis = arrays.named("numpy.concatenate", { "axis" }, axis)
  local list = list_of("numpy.concatenate", tensors, axis)
  for i, x in ipairs(list) do
    if x.ndim == 0 then arrays.fail("numpy.concatenate", ("tensor %d has no axes"):format(i), "use ms.numpy.stack") end
  end
  return ops.concat(list, axis or 0)
end

--- values behind arr along an axis; without axis all elements in a row.
---     > ms.numpy.append({ 1, 2 }, { 3 }).size --> 3
function M.append(arr, values, axis)
  axis = arrays.named("numpy.append", { "axis" }, axis)
  local x, y = arrays.pair("numpy.append", arr, values, "arr", "values")
  if axis == nil then return ops.concat({ ops.reshape(x, { -1 }), ops.reshape(y, { -1 }) }, 0) end
  return ops.concat({ x, y }, axis)
end

--- Tensors of one shape joined along a new axis.
---     > ms.numpy.stack({ { 1, 2 }, { 3, 4 } }, 1).shape --> (2, 2)
function M.stack(tensors, axis)
  axis = arrays.named("numpy.stack", { "axis" }, axis)
  return ops.stack(list_of("numpy.stack", tensors, axis), axis or 0)
end

local joined = rows.family(M, "numpy.", { "tup" }, {}, function(where, join, tup)
  local list = list_of(where, tup)
  for i, x in ipairs(list) do list[i] = join.prepare(x) end
  return ops.concat(list, join.axis or list[1].ndim == 1 and 0 or 1)
end)
local function column(x) return x.ndim < 2 and ops.reshape(x, { -1, 1 }) or x end
joined("hstack", { prepare = ops.atleast_1d }, "Tensors side by side: joined along the second axis, those with one axis along this.",
  "ms.numpy.hstack({ { 1, 2 }, { 3 } }).shape --> (3,)")
joined("vstack", { prepare = ops.atleast_2d, axis = 0 }, "Tensors on top of each other, those with one axis as rows.",
  "ms.numpy.vstack({ { 1, 2 }, { 3, 4 } }).shape --> (2, 2)")
joined("dstack", { prepare = three, axis = 2 }, "Tensors behind each other, along the third axis.",
  "ms.numpy.dstack({ { 1, 2 }, { 3, 4 } }).shape --> (1, 2, 2)")
joined("column_stack", { prepare = column, axis = 1 }, "Tensors with one axis as the columns of a matrix; matrices are joined side by "
  .. "side.", "ms.numpy.column_stack({ { 1, 2 }, { 3, 4 } }):tolist()[1][2] --> 3")

-- The places at which an axis of n elements is cut: into equal parts, or at indices.
local function cuts(where, n, sections, uneven)
  if ms.is_tensor(sections) then sections = sections.ndim == 0 and sections:item() or sections:tolist() end
  local places = { 0 }
  if type(sections) == "table" then
    for i, at in ipairs(sections) do
      at = arrays.integer(where, "indices", at)
      places[i + 1] = at < 0 and math.max(at + n, 0) or math.min(at, n)
    end
  else
    local parts = arrays.integer(where, "indices_or_sections", sections)
    if parts <= 0 then arrays.fail(where, ("the number of parts must be positive, got %d"):format(parts)) end
    if n % parts ~= 0 and not uneven then
      arrays.fail(where, ("an axis of size %d cannot be cut into %d equal parts"):format(n, parts),
        "ms.numpy.array_split makes parts of different sizes")
    end
    if parts > 100000 then arrays.fail(where, ("the number of parts must be at most 100000, got %d"):format(parts)) end
    for i = 1, parts - 1 do places[i + 1] = i * (n // parts) + math.min(i, n % parts) end
  end
  places[#places + 1] = n
  return places
end

local function cut(where, x, sections, axis, uneven)
  x = tensor(where, x, "x")
  axis = arrays.axis(where, axis or 0, x.ndim)
  local places = cuts(where, x.shape[axis + 1], sections, uneven)
  local list = {}
  for i = 1, #places - 1 do
    list[i] = ops.narrow(x, axis, math.min(places[i], x.shape[axis + 1]), math.max(0, places[i + 1] - places[i]))
  end
  return table.unpack(list, 1, #list)
end

local parts = rows.family(M, "numpy.", { "x", "indices_or_sections" }, { "axis" }, function(where, uneven, x, sections, axis)
  return cut(where, x, sections, axis, uneven)
end)
local parts_along = rows.family(M, "numpy.", { "x", "indices_or_sections" }, {}, function(where, axis, x, sections)
  x = tensor(where, x, "x")
  return cut(where, x, sections, axis == 1 and x.ndim < 2 and 0 or axis, false)
end)
parts("split", false, "Equal parts along an axis, or parts that end at the given indices: as many results.",
  "select(\"#\", ms.numpy.split(ms.numpy.arange(6), 3)) --> 3")
parts("array_split", true, "Parts along an axis, the first ones longer by one where it must be: as many results.",
  "(ms.numpy.array_split(ms.numpy.arange(5), 2)).shape --> (3,)")
parts_along("hsplit", 1, "Parts along the second axis, of one axis along this: as many results.",
  "select(\"#\", ms.numpy.hsplit(ms.numpy.zeros({ 2, 4 }), 2)) --> 2")
parts_along("vsplit", 0, "Parts along the first axis: as many results.",
  "select(\"#\", ms.numpy.vsplit(ms.numpy.zeros({ 4, 2 }), 2)) --> 2")
parts_along("dsplit", 2, "Parts along the third axis: as many results.",
  "select(\"#\", ms.numpy.dsplit(ms.numpy.zeros({ 2, 2, 4 }), 2)) --> 2")

--- The tensor reps times along each axis.
---     > ms.numpy.tile({ 1, 2 }, 2).shape --> (4,)
function M.tile(a, reps)
  a = tensor("numpy.tile", a)
  local times = arrays.shape("numpy.tile", "reps", reps)
  while #times < a.ndim do table.insert(times, 1, 1) end
  local sizes = sizes_of(a)
  while #sizes < #times do table.insert(sizes, 1, 1) end
  return ops.tile(ops.reshape(a, sizes), times)
end

--- Each element repeats times, along an axis; without axis all elements in a row. repeats: one number, or one for each element.
--- Also called repeat in numpy, which is a reserved word of Lua: ms.numpy["repeat"].
---     > ms.numpy.repeat_({ 1, 2 }, 2):tolist()[2] --> 1
function M.repeat_(a, repeats, axis)
  axis = arrays.named("numpy.repeat", { "axis" }, axis)
  a = tensor("numpy.repeat", a)
  if type(repeats) == "table" then repeats = ms.tensor(repeats) end
  if ms.is_tensor(repeats) then
    if repeats.ndim == 0 or repeats.size == 1 then repeats = repeats:reshape({}):item() end
  end
  if axis == nil then return ops.repeat_interleave(ops.reshape(a, { -1 }), repeats, 0) end
  return ops.repeat_interleave(a, repeats, arrays.axis("numpy.repeat", axis, a.ndim))
end

--- Elements pushed along axes; what leaves at one end comes in at the other. Without axis as if all elements stood in a row.
---     > ms.numpy.roll({ 1, 2, 3 }, 1):tolist()[1] --> 3
function M.roll(a, shift, axis)
  axis = arrays.named("numpy.roll", { "axis" }, axis)
  a = tensor("numpy.roll", a)
  if axis == nil then
    if type(shift) == "table" then
      local sum = 0
      for _, n in ipairs(shift) do sum = sum + n end
      shift = sum
    end
    return ops.reshape(ops.roll(ops.reshape(a, { -1 }), shift, 0), sizes_of(a))
  end
  local axes = arrays.axes("numpy.roll", axis, a.ndim)
  if type(shift) ~= "table" then
    local list = {}
    for i = 1, #axes do list[i] = shift end
    shift = list
  end
  for i, k in ipairs(axes) do a = ops.roll(a, shift[i], k) end
  return a
end

M["repeat"] = M.repeat_

--- The opposite order along the axes, or along all.
---     > ms.numpy.flip({ 1, 2, 3 }):tolist()[1] --> 3
function M.flip(m, axis)
  axis = arrays.named("numpy.flip", { "axis" }, axis)
  m = tensor("numpy.flip", m, "m")
  return m.ndim == 0 and m or ops.flip(m, arrays.axes("numpy.flip", axis, m.ndim))
end

local flipped = rows.family(M, "numpy.", { "m" }, {}, function(where, axis, m) return ops.flip(tensor(where, m, "m"), { axis }) end)
flipped("fliplr", 1, "The opposite order from left to right, along the second axis.", "ms.numpy.fliplr({ { 1, 2 } }):tolist()[1][1] --> 2")
flipped("flipud", 0, "The opposite order from top to bottom, along the first axis.", "ms.numpy.flipud({ 1, 2 }):tolist()[1] --> 2")

--- k quarter turns in the plane of two axes, from the first to the second.
---     > ms.numpy.rot90({ { 1, 2 }, { 3, 4 } }):tolist()[1][1] --> 2
function M.rot90(a, k, axes)
  k, axes = arrays.named("numpy.rot90", { "k", "axes" }, k, axes)
  return ops.rot90(tensor("numpy.rot90", a), k or 1, axes or { 0, 1 })
end

-- { before, after } for each axis from n, { n }, { a, b } or { { a, b }, ... }.
local function widths(where, value, rank)
  if ms.is_tensor(value) then value = value:tolist() end
  local list = {}
  for i = 1, rank do
    local w = value
    if type(w) == "table" and type(w[1]) == "table" then w = w[#value == 1 and 1 or i] end
    if type(w) == "number" then w = { w, w } end
    if type(w) == "table" and #w == 1 then w = { w[1], w[1] } end
    if type(w) ~= "table" or #w ~= 2 then
      arrays.fail(where, "a number, { before, after } or a table of these for each axis is expected")
    end
    list[i] = w
  end
  return list
end

-- Which elements stand where along an axis of n elements after padding.
local function padded_indices(n, before, after, mode)
  local list = {}
  for i = -before, n + after - 1 do
    local at = 0
    if mode == "edge" then
      at = math.max(0, math.min(n - 1, i))
    elseif mode == "wrap" then
      at = i % n
    elseif mode == "symmetric" then
      at = i % (2 * n)
      if at >= n then at = 2 * n - 1 - at end
    elseif n > 1 then -- reflect
      at = i % (2 * n - 2)
      if at >= n then at = 2 * n - 2 - at end
    end
    list[#list + 1] = at
  end
  return ms.tensor(list, ms.int64)
end

local statistics = {
  maximum = function(x, axis) return ops.amax(x, axis, true) end,
  minimum = function(x, axis) return ops.amin(x, axis, true) end,
  mean = function(x, axis)
    if ops.is_floating_point(x) then return ops.mean(x, axis, true) end
    return ops.cast(ops.round_to_even(ops.mean(ops.cast(x, ms.float64), axis, true)), x.dtype)
  end,
}

-- One value before and after an axis, of the axis's shape otherwise.
local function with_values(x, axis, before, after, first, last)
  local sizes, list = sizes_of(x), { x }
  if before > 0 then
    sizes[axis + 1] = before
    table.insert(list, 1, ops.broadcast_to(first, sizes))
  end
  if after > 0 then
    sizes[axis + 1] = after
    list[#list + 1] = ops.broadcast_to(last, sizes)
  end
  return #list == 1 and x or ops.concat(list, axis)
end

local function ramp(x, axis, count, from, edge, rising)
  local sizes = {}
  for i = 1, x.ndim do sizes[i] = i == axis + 1 and count or 1 end
  local i = ops.cast(ops.arange(0, count), ms.float64):reshape(sizes)
  local share = rising and i / count or (i + 1.0) / count
  local wide = ops.cast(edge, ms.float64)
  local y = rising and from + (wide - from) * share or wide + (from - wide) * share
  if not ops.is_floating_point(x) then y = ops.floor(y) end
  return ops.cast(y, x.dtype)
end

--- Elements around a tensor. pad_width: how many before and after: n, { before, after }, or a table of these for each axis. mode:
--- "constant" (constant_values, 0), "edge", "reflect", "symmetric", "wrap", "linear_ramp" (to end_values, 0), "maximum", "minimum",
--- "mean", "median" (of stat_length elements, all), "empty".
---     > ms.numpy.pad({ 1, 2 }, { 1, 2 }):tolist()[5] --> 0
function M.pad(arr, pad_width, mode, stat_length, constant_values, end_values, reflect_type)
  local where = "numpy.pad"
  mode, stat_length, constant_values, end_values, reflect_type = arrays.named(where,
    { "mode", "stat_length", "constant_values", "end_values", "reflect_type" }, mode, stat_length, constant_values, end_values,
    reflect_type)
  mode = mode or "constant"
  local x = tensor(where, arr, "arr")
  local pads = widths(where, pad_width, x.ndim)
  local values = widths(where, (mode == "linear_ramp" and end_values or constant_values) or 0, x.ndim)
  local lengths = stat_length and widths(where, stat_length, x.ndim)
  for axis = 0, x.ndim - 1 do
    local before = arrays.integer(where, "pad_width", pads[axis + 1][1])
    local after = arrays.integer(where, "pad_width", pads[axis + 1][2])
    if before < 0 or after < 0 then arrays.fail(where, "pad_width must not be negative") end
    if math.max(before, after) > 1 << 24 then arrays.fail(where, "pad_width must be at most 16777216") end
    local n = x.shape[axis + 1]
    if mode == "constant" or mode == "empty" then
      local first, last = ms.tensor(values[axis + 1][1], x.dtype), ms.tensor(values[axis + 1][2], x.dtype)
      x = with_values(x, axis, before, after, first, last)
    elseif n == 0 and before + after > 0 then
      arrays.fail(where, ("axis %d is empty and can only be filled with constants"):format(axis))
    elseif mode == "linear_ramp" then
      local list = { x }
      if before > 0 then
        table.insert(list, 1, ramp(x, axis, before, values[axis + 1][1], ops.narrow(x, axis, 0, 1), true))
      end
      if after > 0 then list[#list + 1] = ramp(x, axis, after, values[axis + 1][2], ops.narrow(x, axis, n - 1, 1), false) end
      x = ops.concat(list, axis)
    elseif statistics[mode] or mode == "median" then
      local f = statistics[mode] or M._median
      local a = math.min(lengths and lengths[axis + 1][1] or n, n)
      local b = math.min(lengths and lengths[axis + 1][2] or n, n)
      x = with_values(x, axis, before, after, f(ops.narrow(x, axis, 0, a), axis), f(ops.narrow(x, axis, n - b, b), axis))
    elseif mode == "edge" or mode == "wrap" or mode == "symmetric" or mode == "reflect" then
      if reflect_type == "odd" then arrays.fail(where, "reflect_type 'odd' is not supported") end
      x = ops.index_select(x, axis, padded_indices(n, before, after, mode))
    else
      arrays.fail(where, ("mode %s is not known"):format(arrays.describe(mode)),
        "there are: constant, edge, empty, linear_ramp, maximum, mean, median, minimum, reflect, symmetric, wrap")
    end
  end
  return x
end

function M._median(x, axis)
  local y = ops.quantile(ops.cast(x, ms.float64), 0.5, axis, true)
  return ops.cast(ops.is_floating_point(x) and y or ops.round_to_even(y), x.dtype)
end

--- The number of elements, or along one axis.
---     > ms.numpy.size({ { 1, 2, 3 } }, 1) --> 3
function M.size(a, axis)
  axis = arrays.named("numpy.size", { "axis" }, axis)
  a = tensor("numpy.size", a)
  return axis == nil and a.size or a.shape[arrays.axis("numpy.size", axis, a.ndim) + 1]
end

return M
