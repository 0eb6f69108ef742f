-- ms.numpy: sorted elements, medians and other quantiles, questions about all or any elements, places of elements that are not 0.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local cast = arrays.cast
local M = {}

local function tensor(where, a) return (arrays.of(where, "a", a)) end

-- x and the axis along which it is looked at: all elements in a row where axis is false.
local function along(where, a, axis)
  local x = tensor(where, a)
  if axis == false or x.ndim == 0 then return ops.reshape(x, { -1 }), 0 end
  return x, arrays.axis(where, axis == nil and -1 or axis, x.ndim)
end

-- Booleans are sorted as numbers.
local function ordered(x) return x.dtype == ms.bool_ and cast(x, ms.int8) or x end

local sorting = rows.family(M, "numpy.", { "a" }, { "axis" }, function(where, f, a, axis)
  local x, k = along(where, a, axis)
  return f(x, k)
end)
sorting("sort", function(x, axis) return cast(ops.msort(ordered(x), axis), x.dtype) end,
  "The elements in ascending order along an axis, the last one if none is given, nan at the end; axis = false: all of them in a row.",
  "ms.numpy.sort({ 3, 1, 2 }):tolist()[1] --> 1")
sorting("argsort", function(x, axis) return cast(ops.argsort(ordered(x), axis), ms.int64) end,
  "Where the elements stand that sort gives, along an axis, the last one if none is given; axis = false: in a row of all. Equal elements "
  .. "keep their order.", "ms.numpy.argsort({ 3, 1, 2 }):tolist()[1] --> 1")

local parting = rows.family(M, "numpy.", { "a", "kth" }, { "axis" }, function(where, f, a, kth, axis)
  local x, k = along(where, a, axis)
  local size = x.shape[k + 1]
  for _, place in ipairs(type(kth) == "table" and kth or { kth }) do
    local i = arrays.integer(where, "kth", place)
    if i < -size or i >= size then arrays.fail(where, ("kth is %d, and the axis has %d elements"):format(i, size)) end
  end
  return f(x, k)
end)
parting("partition", function(x, axis) return M.sort(x, axis) end,
  "The elements along an axis, those in place kth as if they were sorted, smaller ones before and larger ones behind them: all of them are "
  .. "sorted here. kth: a place from 0 on, or a table of them.", "ms.numpy.partition({ 3, 1, 2 }, 1):tolist()[2] --> 2")
parting("argpartition", function(x, axis) return M.argsort(x, axis) end,
  "Where the elements stand that partition gives. kth: a place from 0 on, or a table of them.",
  "ms.numpy.argpartition({ 3, 1, 2 }, 1):tolist()[1] --> 1")

--- The order of rows of several columns: by the last column, where it is equal by the one before, and so on. keys: a table of columns.
---     > ms.numpy.lexsort({ { 2, 1, 3 }, { 1, 1, 0 } }):tolist()[1] --> 2
function M.lexsort(keys)
  local where = "numpy.lexsort"
  if ms.is_tensor(keys) then keys = { ops.unbind(keys, 0) } end
  if type(keys) ~= "table" or #keys == 0 then arrays.fail(where, "keys must be a table of columns, got " .. arrays.describe(keys)) end
  local order
  for i, key in ipairs(keys) do
    local x = ordered(tensor(where, key))
    if x.ndim ~= 1 or order and x.size ~= order.size then
      arrays.fail(where, ("keys[%d] must be a column as long as the others"):format(i))
    end
    local next_order = ops.argsort(order and ops.gather(x, order, 0) or x, 0)
    order = cast(order and ops.gather(order, next_order, 0) or next_order, ms.int64)
  end
  return order
end

-- x as floats with all axes that are gone over as its last one, and the sizes of the result.
local function gathered(where, a, axis, keepdims)
  local x = arrays.mean_float(where, "a", a)
  if arrays.kind(x.dtype) == "c" then arrays.fail(where, "complex numbers have no order") end
  local axes, gone, kept, order, sizes = arrays.axes(where, axis, x.ndim), {}, {}, {}, {}
  for _, k in ipairs(axes) do gone[k] = true end
  for k = 0, x.ndim - 1 do
    if not gone[k] then
      order[#order + 1], kept[#kept + 1] = k, x.shape[k + 1]
      sizes[#sizes + 1] = x.shape[k + 1]
    elseif keepdims then
      sizes[#sizes + 1] = 1
    end
  end
  local count = 1
  for k in pairs(gone) do count = count * x.shape[k + 1] end
  if count == 0 then arrays.fail(where, "no elements have no quantiles") end
  for k = 0, x.ndim - 1 do
    if gone[k] then order[#order + 1] = k end
  end
  kept[#kept + 1] = count
  if x.ndim > 0 then x = ops.transpose(x, order) end
  return ops.reshape(x, kept), sizes
end

local methods = { linear = true, lower = true, higher = true, midpoint = true, nearest = true }

-- Quantiles of probabilities q: their axes come first.
local function quantiles(where, f, a, q, axis, keepdims, method)
  method = method or "linear"
  if not methods[method] then
    arrays.fail(where, ("method must be 'linear', 'lower', 'higher', 'midpoint' or 'nearest', got %s"):format(arrays.describe(method)))
  end
  local x, sizes = gathered(where, a, axis, keepdims)
  local chances = cast(tensor(where, q), ms.float64)
  if chances.size > 0 and not (ops.amin(chances):item() >= 0 and ops.amax(chances):item() <= 1) then
    arrays.fail(where, where:find "percentile" and "q must lie between 0 and 100" or "q must lie between 0 and 1")
  end
  local list = chances.ndim == 0 and { chances:item() } or ops.reshape(chances, { -1 }):tolist()
  local y = f(x, list, -1, false, { interpolation = method })
  local out = arrays.sizes(chances)
  for _, size in ipairs(sizes) do out[#out + 1] = size end
  return ops.reshape(y, out)
end

local quantile_names = { "axis", "keepdims", "method" }
local quantile_row = rows.family(M, "numpy.", { "a", "q" }, quantile_names, quantiles)
local percentile_row = rows.family(M, "numpy.", { "a", "q" }, quantile_names, function(where, f, a, q, ...)
  return quantiles(where, f, a, cast(tensor(where, q), ms.float64) / 100.0, ...)
end)
local method_text = " q: one or several. axis: one, several, or all if none is given. method between two elements: \"linear\", \"lower\", "
  .. "\"higher\", \"midpoint\", \"nearest\"."
quantile_row("quantile", ops.quantile, "The value below which the share q (from 0 to 1) of the elements lies." .. method_text,
  "ms.numpy.quantile({ 1.0, 2.0, 3.0 }, 0.25):item() --> 1.5")
quantile_row("nanquantile", ops.nanquantile, "quantile of the elements that are not nan." .. method_text,
  "ms.numpy.nanquantile({ 1.0, 0/0, 3.0 }, 0.5):item() --> 2.0")
percentile_row("percentile", ops.quantile, "The value below which q percent of the elements lie." .. method_text,
  "ms.numpy.percentile({ 1.0, 2.0, 3.0 }, 50):item() --> 2.0")
percentile_row("nanpercentile", ops.nanquantile, "percentile of the elements that are not nan." .. method_text,
  "ms.numpy.nanpercentile({ 1.0, 0/0, 3.0 }, 100):item() --> 3.0")

local middle = rows.family(M, "numpy.", { "a" }, { "axis", "keepdims" }, function(where, f, a, axis, keepdims)
  return quantiles(where, f, a, 0.5, axis, keepdims)
end)
middle("median", ops.quantile, "The element in the middle of the sorted ones, over axes or of all; of an even number of them the mean "
  .. "of two.", "ms.numpy.median({ 3.0, 1.0, 2.0, 9.0 }):item() --> 2.5")
middle("nanmedian", ops.nanquantile, "median of the elements that are not nan.", "ms.numpy.nanmedian({ 3.0, 0/0, 1.0 }):item() --> 2.0")

local truth = rows.family(M, "numpy.", { "a" }, { "axis", "keepdims" }, function(where, f, a, axis, keepdims)
  local x = tensor(where, a)
  if x.dtype ~= ms.bool_ then x = ops.not_equal(x, 0) end
  if axis == nil and not keepdims then return f(ops.reshape(x, { -1 }), 0) end
  local axes = arrays.axes(where, axis, x.ndim)
  return #axes == 0 and x or f(x, axes, keepdims or false)
end)
truth("any", ops.any, "Whether any element is true (not 0), over axes or of all.", "ms.numpy.any({ 0, 1 }):item() --> true")
truth("all", ops.all, "Whether all elements are true (not 0), over axes or of all.", "ms.numpy.all({ 0, 1 }):item() --> false")

--- Where elements are not 0: for each axis of a, a row of their indices along it.
---     > rows, columns = ms.numpy.nonzero({ { 0, 5 }, { 6, 0 } })
---     > columns:tolist()[1] --> 1
function M.nonzero(a)
  local x = tensor("numpy.nonzero", a)
  if x.ndim == 0 then arrays.fail("numpy.nonzero", "a must have an axis, got a number") end
  local places, list = cast(ops.argwhere(x), ms.int64), {}
  for k = 0, x.ndim - 1 do list[k + 1] = ops.reshape(ops.narrow(places, 1, k, 1), { -1 }) end
  return table.unpack(list)
end

--- Where elements are not 0 in a row of all.
---     > ms.numpy.flatnonzero({ { 0, 5 }, { 6, 0 } }):tolist()[1] --> 1
function M.flatnonzero(a) return (M.nonzero(ops.reshape(tensor("numpy.flatnonzero", a), { -1 }))) end

return M
