-- ms.numpy: choosing, taking and placing elements, index grids, triangles and diagonals, sets and sorted sequences.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"

local ops = ms.ops
local cast, sizes_of = arrays.cast, arrays.sizes
local M = {}

local function tensor(where, x, name) return (arrays.of(where, name or "a", x)) end

local function truth(x) return x.dtype == ms.bool_ and x or ops.not_equal(x, 0) end

--- Elements of x where the condition is true (not 0), and of y elsewhere. Without x and y: where the condition is true, as ms.numpy.nonzero
--- gives it.
---     > ms.numpy.where({ true, false }, 1, 2):tolist()[2] --> 2
---     > ms.numpy.where({ false, true }):tolist()[1] --> 1
function M.where(condition, x, y)
  if x == nil and y == nil then return ms.numpy.nonzero(condition) end
  if x == nil or y == nil then arrays.fail("numpy.where", "x and y are expected, or neither of them") end
  local a, b = arrays.pair("numpy.where", x, y, "x", "y")
  return ops.where(truth(tensor("numpy.where", condition, "condition")), a, b)
end

--- The places of elements that are not 0: a row of indices for each.
---     > ms.numpy.argwhere({ 0, 5, 6 }).shape --> (2, 1)
function M.argwhere(a) return cast(ops.argwhere(tensor("numpy.argwhere", a)), ms.int64) end

--- The element of the first choice whose condition is true, for each place; default (0) where none is.
---     > ms.numpy.select({ { true, false } }, { { 1, 2 } }, 9):tolist()[2] --> 9
function M.select(condlist, choicelist, default)
  local where = "numpy.select"
  default = arrays.named(where, { "default" }, default)
  if type(condlist) ~= "table" or type(choicelist) ~= "table" or #condlist ~= #choicelist or #condlist == 0 then
    arrays.fail(where, "condlist and choicelist must be tables of the same length, at least 1")
  end
  local values = {}
  for i, choice in ipairs(choicelist) do values[i] = choice end
  values[#values + 1] = default or 0
  local list = arrays.together(where, { "choicelist" }, values, #values)
  local y = list[#list]
  for i = #condlist, 1, -1 do y = ops.where(truth(tensor(where, condlist[i], "condlist")), list[i], y) end
  return y
end

--- For each place the element of the choice with that number. mode: what numbers out of range do: "raise" an error, "wrap", "clip".
---     > ms.numpy.choose({ 0, 1 }, { { 1, 2 }, { 3, 4 } }):tolist()[2] --> 4
function M.choose(a, choices, mode)
  mode = arrays.named("numpy.choose", { "mode" }, mode) or "raise"
  local where = "numpy.choose"
  local index = cast(tensor(where, a), ms.int64)
  local list
  if ms.is_tensor(choices) then
    list = table.pack(ops.unbind(choices, 0))
    list.n = nil
  else
    list = arrays.together(where, { "choices" }, choices, #choices)
  end
  index = M._in_range(where, index, #list, mode)
  local shapes = { sizes_of(index) }
  for i, x in ipairs(list) do shapes[i + 1] = sizes_of(x) end
  local shape = arrays.broadcast_shape(where, shapes)
  for i, x in ipairs(list) do list[i] = ops.broadcast_to(x, shape) end
  index = ops.broadcast_to(index, shape)
  return ops.squeeze(ops.gather_elements(ops.stack(list, 0), 0, ops.expand_dims(index, 0)), 0)
end

-- Indices from 0 up to n, by what mode says of others.
function M._in_range(where, index, n, mode)
  if mode == "wrap" then return ops.remainder(index, n) end
  if mode == "clip" then return ops.clamp(index, 0, n - 1) end
  if mode ~= "raise" then arrays.fail(where, ("mode must be 'raise', 'wrap' or 'clip', got %s"):format(arrays.describe(mode))) end
  if index.size > 0 and (ops.amax(index):item() >= n or ops.amin(index):item() < -n) then
    arrays.fail(where, ("an index is out of range for %d elements"):format(n))
  end
  return ops.where(ops.less(index, 0), index + n, index)
end

--- Functions of the elements where their condition is true; one more function (or number) is for the others, which else are 0.
---     > ms.numpy.piecewise({ -1.0, 2.0 }, { { true, false } }, { function(x) return -x end, 5 }):tolist()[2] --> 5.0
function M.piecewise(x, condlist, funclist, ...)
  local where = "numpy.piecewise"
  x = tensor(where, x, "x")
  if ms.is_tensor(condlist) or type(condlist[1]) == "boolean" then condlist = { condlist } end
  if #funclist ~= #condlist and #funclist ~= #condlist + 1 then
    arrays.fail(where, ("%d conditions need as many functions or one more, got %d"):format(#condlist, #funclist))
  end
  local function value(f, ...)
    if math.type(f) or ms.is_tensor(f) then return cast(tensor(where, f), x.dtype) end
    return cast(tensor(where, f(x, ...)), x.dtype)
  end
  local y = #funclist > #condlist and value(funclist[#funclist], ...) or ops.zeros_like(x)
  y = ops.broadcast_to(y, sizes_of(x))
  for i = 1, #condlist do y = ops.where(truth(tensor(where, condlist[i], "condlist")), value(funclist[i], ...), y) end
  return y
end

--- Elements at these indices, along an axis or of all in a row. mode: what indices out of range do: "raise" an error, "wrap", "clip".
---     > ms.numpy.take({ 4, 5, 6 }, { 2, 0 }):tolist()[1] --> 6
function M.take(a, indices, axis, mode)
  axis, mode = arrays.named("numpy.take", { "axis", "mode" }, axis, mode)
  local where = "numpy.take"
  a = tensor(where, a)
  local index = cast(tensor(where, indices, "indices"), ms.int64)
  if axis == nil then a, axis = ops.reshape(a, { -1 }), 0 end
  axis = arrays.axis(where, axis, a.ndim)
  return ops.gather(a, M._in_range(where, index, a.shape[axis + 1], mode or "raise"), axis)
end

--- Elements at the index of each place along an axis, as argsort gives them; axis nil: of all in a row.
---     > ms.numpy.take_along_axis({ 4, 5, 6 }, { 2, 0 }, 0):tolist()[1] --> 6
function M.take_along_axis(arr, indices, axis)
  local where = "numpy.take_along_axis"
  axis = arrays.named(where, { "axis" }, axis)
  local x, index = tensor(where, arr, "arr"), cast(tensor(where, indices, "indices"), ms.int64)
  if axis == nil then x, axis = ops.reshape(x, { -1 }), 0 end
  axis = arrays.axis(where, axis, x.ndim)
  if index.ndim ~= x.ndim then arrays.fail(where, ("indices must have %d axes, got %d"):format(x.ndim, index.ndim)) end
  index = M._in_range(where, index, x.shape[axis + 1], "raise")
  -- All axes but this one are broadcast.
  local a, b = sizes_of(x), sizes_of(index)
  a[axis + 1], b[axis + 1] = 1, 1
  local shape = arrays.broadcast_shape(where, { a, b })
  local other = { table.unpack(shape) }
  shape[axis + 1], other[axis + 1] = x.shape[axis + 1], index.shape[axis + 1]
  return ops.gather_elements(ops.broadcast_to(x, shape), axis, ops.broadcast_to(index, other))
end

-- Triangles

local function triangle(f)
  return function(where, m, k)
    m = tensor(where, m, "m")
    if m.ndim == 1 then m = ops.broadcast_to(m, { m.size, m.size }) end
    return f(m, arrays.integer(where, "k", k or 0))
  end
end
local lower, upper = triangle(ops.tril), triangle(ops.triu)

--- The elements on the diagonal k and below it, zeros above.
---     > ms.numpy.tril({ { 1, 2 }, { 3, 4 } }):sum():item() --> 8
function M.tril(m, k)
  k = arrays.named("numpy.tril", { "k" }, k)
  return lower("numpy.tril", m, k)
end

--- The elements on the diagonal k and above it, zeros below.
---     > ms.numpy.triu({ { 1, 2 }, { 3, 4 } }):sum():item() --> 7
function M.triu(m, k)
  k = arrays.named("numpy.triu", { "k" }, k)
  return upper("numpy.triu", m, k)
end

local function triangle_places(mask)
  local places = ops.argwhere(mask)
  return cast(places["..., 0"], ms.int64), cast(places["..., 1"], ms.int64)
end

local function grid(n, m) return ops.arange(0, n):reshape { n, 1 }, ops.arange(0, m):reshape { 1, m } end

local function places_below(where, n, k, m)
  n = arrays.integer(where, "n", n)
  local rows, columns = grid(n, arrays.integer(where, "m", m or n))
  return triangle_places(ops.less_equal(columns, rows + arrays.integer(where, "k", k or 0)))
end

local function places_above(where, n, k, m)
  n = arrays.integer(where, "n", n)
  local rows, columns = grid(n, arrays.integer(where, "m", m or n))
  return triangle_places(ops.greater_equal(columns, rows + arrays.integer(where, "k", k or 0)))
end

--- Rows and columns of the elements on the diagonal k and below it, of a matrix of n rows and m columns (n): two results.
---     > (ms.numpy.tril_indices(2)).size --> 3
function M.tril_indices(n, k, m)
  k, m = arrays.named("numpy.tril_indices", { "k", "m" }, k, m)
  return places_below("numpy.tril_indices", n, k, m)
end

--- Rows and columns of the elements on the diagonal k and above it, of a matrix of n rows and m columns (n): two results.
---     > (ms.numpy.triu_indices(2)).size --> 3
function M.triu_indices(n, k, m)
  k, m = arrays.named("numpy.triu_indices", { "k", "m" }, k, m)
  return places_above("numpy.triu_indices", n, k, m)
end

local function matrix(where, arr)
  local x = tensor(where, arr, "arr")
  if x.ndim ~= 2 then arrays.fail(where, ("arr must have two axes, got %d"):format(x.ndim)) end
  return x.shape[1], x.shape[2]
end

--- The same as tril_indices for a matrix of arr's shape.
---     > (ms.numpy.tril_indices_from({ { 1, 2 }, { 3, 4 } })).size --> 3
function M.tril_indices_from(arr, k)
  k = arrays.named("numpy.tril_indices_from", { "k" }, k)
  local n, m = matrix("numpy.tril_indices_from", arr)
  return places_below("numpy.tril_indices_from", n, k, m)
end

--- The same as triu_indices for a matrix of arr's shape.
---     > (ms.numpy.triu_indices_from({ { 1, 2 }, { 3, 4 } })).size --> 3
function M.triu_indices_from(arr, k)
  k = arrays.named("numpy.triu_indices_from", { "k" }, k)
  local n, m = matrix("numpy.triu_indices_from", arr)
  return places_above("numpy.triu_indices_from", n, k, m)
end

-- Diagonals

--- The diagonal k of a matrix, or the matrix with v on its diagonal k.
---     > ms.numpy.diag({ 1, 2 }).shape --> (2, 2)
function M.diag(v, k)
  k = arrays.named("numpy.diag", { "k" }, k)
  v = tensor("numpy.diag", v, "v")
  if v.ndim ~= 1 and v.ndim ~= 2 then arrays.fail("numpy.diag", ("v must have one or two axes, got %d"):format(v.ndim)) end
  return ops.diag(v, k or 0)
end

--- The matrix with all elements of v on its diagonal k.
---     > ms.numpy.diagflat({ { 1, 2 } }).shape --> (2, 2)
function M.diagflat(v, k)
  k = arrays.named("numpy.diagflat", { "k" }, k)
  return ops.diag(ops.reshape(tensor("numpy.diagflat", v, "v"), { -1 }), k or 0)
end

--- The diagonals of the planes of two axes, along a new last axis.
---     > ms.numpy.diagonal({ { 1, 2 }, { 3, 4 } }):tolist()[2] --> 4
function M.diagonal(a, offset, axis1, axis2)
  offset, axis1, axis2 = arrays.named("numpy.diagonal", { "offset", "axis1", "axis2" }, offset, axis1, axis2)
  return ops.diagonal(tensor("numpy.diagonal", a), offset or 0, axis1 or 0, axis2 or 1)
end

--- The sum of a diagonal.
---     > ms.numpy.trace({ { 1, 2 }, { 3, 4 } }):item() --> 5
function M.trace(a, offset, axis1, axis2, dtype)
  local names = { "offset", "axis1", "axis2", "dtype" }
  offset, axis1, axis2, dtype = arrays.named("numpy.trace", names, offset, axis1, axis2, dtype)
  local d = M.diagonal(a, offset, axis1, axis2)
  local kind = arrays.kind(d.dtype)
  local wide = arrays.dtype("numpy.trace", dtype)
    or (kind == "u" and (ms.uint64 or ms.int64)) or (kind == "b" or kind == "i") and ms.int64 or d.dtype
  return ops.reduce_sum(cast(d, wide), -1)
end

--- The indices of the main diagonal of a tensor with ndim axes of size n: ndim results.
---     > select("#", ms.numpy.diag_indices(3)) --> 2
function M.diag_indices(n, ndim)
  ndim = arrays.named("numpy.diag_indices", { "ndim" }, ndim)
  local list = {}
  n = arrays.integer("numpy.diag_indices", "n", n)
  for i = 1, arrays.times("numpy.diag_indices", "ndim", ndim or 2) do list[i] = ops.arange(0, n, 1, ms.int64) end
  return table.unpack(list)
end

-- Grids

--- Coordinates as grids, one for each sequence: as many results. indexing: "xy" with x along columns, or "ij". sparse: axes of
--- size 1 where nothing changes.
---     > (ms.numpy.meshgrid({ 1, 2, 3 }, { 4, 5 })).shape --> (2, 3)
function M.meshgrid(...)
  local where = "numpy.meshgrid"
  local list = table.pack(...)
  local sparse, indexing
  local last = list[list.n]
  if type(last) == "table" and type(next(last)) == "string" then
    sparse, indexing = select(2, arrays.named(where, { "copy", "sparse", "indexing" }, last))
    list[list.n], list.n = nil, list.n - 1
  end
  indexing = indexing or "xy"
  if indexing ~= "xy" and indexing ~= "ij" then
    arrays.fail(where, ("indexing must be 'xy' or 'ij', got %s"):format(arrays.describe(indexing)))
  end
  local n, shapes = list.n, {}
  for i = 1, n do
    local sizes, place = {}, i
    if indexing == "xy" and n > 1 and i <= 2 then place = 3 - i end
    for k = 1, n do sizes[k] = 1 end
    local x = ops.reshape(tensor(where, list[i], "xi"), { -1 })
    sizes[place] = x.size
    list[i], shapes[i] = ops.reshape(x, sizes), sizes
  end
  if not sparse and n > 0 then
    local shape = arrays.broadcast_shape(where, shapes)
    for i = 1, n do list[i] = ops.broadcast_to(list[i], shape) end
  end
  return table.unpack(list, 1, n)
end

--- The index of each place along each axis of a shape: one tensor, or as many results as axes if sparse.
---     > ms.numpy.indices({ 2, 3 }).shape --> (2, 2, 3)
function M.indices(dimensions, dtype, sparse)
  dtype, sparse = arrays.named("numpy.indices", { "dtype", "sparse" }, dtype, sparse)
  local sizes, list = arrays.shape("numpy.indices", "dimensions", dimensions), {}
  dtype = arrays.dtype("numpy.indices", dtype) or ms.int64
  for i, n in ipairs(sizes) do
    local shape = {}
    for k = 1, #sizes do shape[k] = k == i and n or 1 end
    list[i] = ops.reshape(cast(ops.arange(0, n), dtype), shape)
    if not sparse then list[i] = ops.broadcast_to(list[i], sizes) end
  end
  if sparse then return table.unpack(list) end
  return ops.stack(list, 0)
end

--- Sequences as index tensors for all combinations: as many results, each with its own long axis. Booleans become their places.
---     > (ms.numpy.ix_({ 0, 1 }, { 2 })).shape --> (2, 1)
function M.ix_(...)
  local list = table.pack(...)
  for i = 1, list.n do
    local x = tensor("numpy.ix_", list[i], "args")
    if x.ndim ~= 1 then arrays.fail("numpy.ix_", "sequences (tensors with one axis) are expected") end
    if x.dtype == ms.bool_ then x = ops.reshape(cast(ops.argwhere(x), ms.int64), { -1 }) end
    local shape = {}
    for k = 1, list.n do shape[k] = k == i and x.size or 1 end
    list[i] = ops.reshape(x, shape)
  end
  return table.unpack(list, 1, list.n)
end

-- One axis of mgrid: "start:stop:step", or "start:stop:5j" for 5 numbers with both ends.
local function ruler(where, text)
  local from, to, by = text:match "^%s*(.-)%s*:%s*(.-)%s*:%s*(.-)%s*$"
  if not from then from, to = text:match "^%s*(.-)%s*:%s*(.-)%s*$" end
  local start, stop = from == "" and 0 or tonumber(from), tonumber(to)
  local count = by and by:match "^(%d+)j$"
  local step = by == nil and 1 or count and 1 or tonumber(by)
  if not start or not stop or not step then
    arrays.fail(where, ("'%s' is no range such as 0:5, 0:5:2 or 0:1:5j"):format(text))
  end
  if not count then return ops.arange(start, stop, step) end
  local i = ops.arange(0, math.tointeger(count), 1, ms.float32)
  return i * ((stop - start) / math.max(1, math.tointeger(count) - 1)) + start
end

local function rulers(where, text)
  if type(text) ~= "string" then arrays.fail(where, ("a string such as \"0:3, 0:4\" is expected, got %s"):format(arrays.describe(text))) end
  local list = {}
  for part in text:gmatch "[^,]+" do list[#list + 1] = ruler(where, part) end
  return list
end

--- Grids of coordinates by ranges: ms.numpy.mgrid["0:3, 0:4"] gives a tensor of two planes; "0:1:5j" stands for 5 numbers with both ends.
M.mgrid = setmetatable({}, {
  _head = "ms.numpy.mgrid[ranges]",
  _doc = [[Grids of coordinates by ranges: ms.numpy.mgrid["0:3, 0:4"] gives a tensor of two planes; "0:1:5j" stands for 5 numbers with
both ends.

  > ms.numpy.mgrid["0:2, 0:3"].shape
  (2, 2, 3)]],
  __index = function(_, ranges)
    local list = rulers("numpy.mgrid", ranges)
    if #list == 1 then return list[1] end
    list = arrays.together("numpy.mgrid", { "ranges" }, list, #list)
    local n = #list
    list[n + 1] = { indexing = "ij" }
    return ops.stack({ M.meshgrid(table.unpack(list)) }, 0)
  end,
})

--- Coordinates by ranges that can be broadcast to grids: ms.numpy.ogrid["0:3, 0:4"] gives a table of two tensors.
M.ogrid = setmetatable({}, {
  _head = "ms.numpy.ogrid[ranges]",
  _doc = [[Coordinates by ranges that can be broadcast to grids: ms.numpy.ogrid["0:3, 0:4"] gives a table of two tensors.

  > ms.numpy.ogrid["0:2, 0:3"][2].shape
  (1, 3)]],
  __index = function(_, ranges)
    local list = rulers("numpy.ogrid", ranges)
    if #list == 1 then return list[1] end
    list = arrays.together("numpy.ogrid", { "ranges" }, list, #list)
    list[#list + 1] = { indexing = "ij", sparse = true }
    return { M.meshgrid(table.unpack(list)) }
  end,
})

--- The index in a row of elements with these indices in dims: multi_index is a table of tensors, one for each axis. mode: what indices
--- out of range do: "raise" an error, "wrap", "clip". order: "C" by rows, "F" by columns.
---     > ms.numpy.ravel_multi_index({ { 1 }, { 2 } }, { 3, 4 }):item() --> 6
function M.ravel_multi_index(multi_index, dims, mode, order)
  mode, order = arrays.named("numpy.ravel_multi_index", { "mode", "order" }, mode, order)
  local where = "numpy.ravel_multi_index"
  local sizes = arrays.shape(where, "dims", dims)
  local list = multi_index
  if ms.is_tensor(multi_index) then list = { ops.unbind(multi_index, 0) } end
  if #list ~= #sizes then arrays.fail(where, ("%d indices are given for %d axes"):format(#list, #sizes)) end
  local y, from, to, by = nil, 1, #sizes, 1
  if order == "F" then from, to, by = #sizes, 1, -1 end
  for i = from, to, by do
    local index = cast(tensor(where, list[i], "multi_index"), ms.int64)
    if (mode or "raise") == "raise" and index.size > 0 and ops.amin(index):item() < 0 then
      arrays.fail(where, "an index is negative")
    end
    index = M._in_range(where, index, sizes[i], mode or "raise")
    y = y and y * sizes[i] + index or index
  end
  return y
end

--- The indices in a shape of elements that have these indices in a row: one result for each axis. order: "C" by rows, "F" by columns.
---     > select("#", ms.numpy.unravel_index({ 5 }, { 3, 4 })) --> 2
function M.unravel_index(indices, shape, order)
  order = arrays.named("numpy.unravel_index", { "order" }, order)
  local where = "numpy.unravel_index"
  local rest, sizes, list = cast(tensor(where, indices, "indices"), ms.int64), arrays.shape(where, "shape", shape), {}
  local total = 1
  for _, n in ipairs(sizes) do total = total * n end
  if rest.size > 0 and (ops.amax(rest):item() >= total or ops.amin(rest):item() < 0) then
    arrays.fail(where, ("an index is out of range for %d elements"):format(total))
  end
  local from, to, by = #sizes, 1, -1
  if order == "F" then from, to, by = 1, #sizes, 1 end
  for i = from, to, by do
    list[i] = ops.remainder(rest, sizes[i])
    rest = ops.floor_divide(rest, sizes[i])
  end
  return table.unpack(list, 1, #sizes)
end

--- A function of the sequences along an axis; what it gives stands in place of this axis.
---     > ms.numpy.apply_along_axis(ms.numpy.sum, 0, { { 1, 2 }, { 3, 4 } }):tolist()[2] --> 6
function M.apply_along_axis(func1d, axis, arr, ...)
  local where = "numpy.apply_along_axis"
  local x = tensor(where, arr, "arr")
  axis = arrays.axis(where, axis, x.ndim)
  local moved = ops.movedim(x, axis, -1)
  local outer = sizes_of(moved)
  local n = table.remove(outer)
  local rows = ops.reshape(moved, { -1, n })
  local results = {}
  for i = 0, rows.shape[1] - 1 do results[i + 1] = tensor(where, func1d(rows[i], ...)) end
  if #results == 0 then arrays.fail(where, "arr has no sequences along this axis") end
  local inner = sizes_of(results[1])
  local y = ops.stack(results, 0)
  local shape = { table.unpack(outer) }
  for _, k in ipairs(inner) do shape[#shape + 1] = k end
  y = ops.reshape(y, shape)
  -- The axes of the results go where the axis was.
  local from, to = {}, {}
  for i = 1, #inner do from[i], to[i] = #outer + i - 1, axis + i - 1 end
  return #inner > 0 and ops.movedim(y, from, to) or y
end

--- A function(a, axis) for one axis after another; axes that it takes away come back with size 1.
---     > ms.numpy.apply_over_axes(ms.numpy.sum, { { 1, 2 }, { 3, 4 } }, { 0, 1 }).shape --> (1, 1)
function M.apply_over_axes(func, a, axes)
  local where = "numpy.apply_over_axes"
  local x = tensor(where, a)
  for _, axis in ipairs(arrays.axes(where, axes, x.ndim)) do
    local y = func(x, axis)
    if y.ndim == x.ndim - 1 then y = ops.expand_dims(y, axis) end
    if y.ndim ~= x.ndim then arrays.fail(where, "the function must keep the number of axes or take one away") end
    x = y
  end
  return x
end

return M
