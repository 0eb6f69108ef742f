-- ms.numpy: sums, products, extremes, means, scans, statistics.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local rows = require "lunaria.numpy.rows"

local ops = ms.ops
local cast, result = arrays.cast, arrays.result
local M = {}

local reduction_names = { "axis", "dtype", "keepdims", "initial" }

local function tensor(where, a) return (arrays.of(where, "a", a)) end

-- In which dtype integers are added: the widest one of their kind.
local function sum_dtype(x)
  local kind = arrays.kind(x.dtype)
  if kind == "b" or kind == "i" then return ms.int64 end
  if kind == "u" then return ms.uint64 or ms.int64 end
  return x.dtype
end

-- Over no axes nothing is added; ops take that for all.
local function over(f, x, axis, keepdims)
  if type(axis) == "table" and #axis == 0 then return x end
  return f(x, axis, keepdims or false)
end

local function checked(where, x, axis)
  if axis == nil then return nil end
  return arrays.axes(where, axis, x.ndim)
end

--- Sum over axes, or over all. initial: a number that is added. Integers and booleans are added as int64.
---     > ms.numpy.sum({ { 1, 2 }, { 3, 4 } }, 0):tolist()[1] --> 4
function M.sum(a, axis, dtype, keepdims, initial)
  axis, dtype, keepdims, initial = arrays.named("numpy.sum", reduction_names, axis, dtype, keepdims, initial)
  local x = tensor("numpy.sum", a)
  x = cast(x, arrays.dtype("numpy.sum", dtype) or sum_dtype(x))
  if x.dtype == ms.bool_ then return over(ops.any, x, checked("numpy.sum", x, axis), keepdims) end
  local y = over(ops.reduce_sum, x, checked("numpy.sum", x, axis), keepdims)
  return initial and initial ~= 0 and y + cast(ms.tensor(initial), y.dtype) or y
end

--- Product over axes, or over all. initial: a number that it is multiplied with. Integers and booleans are multiplied as int64.
---     > ms.numpy.prod({ 2, 3, 4 }):item() --> 24
function M.prod(a, axis, dtype, keepdims, initial)
  axis, dtype, keepdims, initial = arrays.named("numpy.prod", reduction_names, axis, dtype, keepdims, initial)
  local x = tensor("numpy.prod", a)
  x = cast(x, arrays.dtype("numpy.prod", dtype) or sum_dtype(x))
  local y = over(ops.reduce_prod, x, checked("numpy.prod", x, axis), keepdims)
  return initial and y * cast(ms.tensor(initial), y.dtype) or y
end

local extreme = rows.family(M, "numpy.", { "a" }, { "axis", "keepdims", "initial", "where" },
function(where, f, a, axis, keepdims, initial, mask)
  local x = tensor(where, a)
  axis = checked(where, x, axis)
  if mask ~= nil then
    if initial == nil then arrays.fail(where, "where needs initial, the result where no element counts") end
    x = ops.where(tensor(where, mask), x, cast(ms.tensor(initial), x.dtype))
  end
  if x.size == 0 and initial == nil then arrays.fail(where, "a tensor without elements has no extremes", "give initial") end
  local logical = x.dtype == ms.bool_
  local y
  if x.size == 0 then
    y = M.sum(x, axis, x.dtype, keepdims)
    return cast(ms.tensor(initial), x.dtype) + y
  end
  local reduce, of_bools, pair = table.unpack(f)
  y = over(logical and of_bools or reduce, x, axis, keepdims)
  if initial ~= nil and not logical then y = pair(y, cast(ms.tensor(initial), y.dtype)) end
  return y
end)

extreme("max", { ops.amax, ops.any, ops.maximum }, "The largest element over axes, or of all; nan is larger than all. initial: a number "
  .. "that counts too. where: a mask of the elements that count.", "ms.numpy.max({ 3, 9, 4 }):item() --> 9")
extreme("min", { ops.amin, ops.all, ops.minimum }, "The smallest element over axes, or of all; nan is smaller than all. initial: a "
  .. "number that counts too. where: a mask of the elements that count.", "ms.numpy.min({ 3, 9, 4 }):item() --> 3")
M.amax, M.amin = M.max, M.min

--- The largest less the smallest element over axes, or of all.
---     > ms.numpy.ptp({ 3, 9, 4 }):item() --> 6
function M.ptp(x, axis, keepdims)
  axis, keepdims = arrays.named("numpy.ptp", { "axis", "keepdims" }, axis, keepdims)
  return M.max(x, axis, keepdims) - M.min(x, axis, keepdims)
end

-- Booleans have an order too.
local position = rows.family(M, "numpy.", { "a" }, { "axis" }, function(where, f, a, axis)
  local x = tensor(where, a)
  if x.dtype == ms.bool_ then x = cast(x, ms.int8) end
  if x.size == 0 then arrays.fail(where, "a tensor without elements has no extremes") end
  if axis == nil then return cast(f(ops.reshape(x, { -1 }), 0), ms.int64) end
  return cast(f(x, arrays.axis(where, axis, x.ndim)), ms.int64)
end)

position("argmax", ops.argmax, "Where the largest element stands, along an axis, or among all in a row.",
  "ms.numpy.argmax({ 3, 9, 4 }):item() --> 1")
position("argmin", ops.argmin, "Where the smallest element stands, along an axis, or among all in a row.",
  "ms.numpy.argmin({ 3, 9, 4 }):item() --> 0")

-- Halves as float32, in which squares and counts are numbers.
local function wide(x)
  return (x.dtype == ms.float16 or x.dtype == ms.bfloat16) and cast(x, ms.float32) or x
end

-- Mean over axes, as floats.
local function mean_of(where, x, axis, keepdims)
  axis = checked(where, x, axis)
  if type(axis) == "table" and #axis == 0 then return x end
  return ops.mean(x, axis, keepdims or false)
end

--- Mean over axes, or of all. Integers give float64.
---     > ms.numpy.mean({ 1.0, 2.0 }):item() --> 1.5
function M.mean(a, axis, keepdims, dtype)
  axis, keepdims, dtype = arrays.named("numpy.mean", { "axis", "keepdims", "dtype" }, axis, keepdims, dtype)
  local x = arrays.mean_float("numpy.mean", "a", a)
  return mean_of("numpy.mean", result("numpy.mean", x, dtype), axis, keepdims)
end

local function variance(where, x, axis, ddof, keepdims)
  local dtype = x.dtype
  x = wide(x)
  local off = x - mean_of(where, x, axis, true)
  local axes, count = arrays.axes(where, axis, x.ndim), 1
  for _, k in ipairs(axes) do count = count * x.shape[k + 1] end
  local squares = over(ops.reduce_sum, off * off, axes, keepdims)
  return squares / (math.max(count - (ddof or 0), 0) + 0.0), dtype
end

local function spread(operand, f)
  return rows.family(M, "numpy.", { operand }, { "axis", "ddof", "keepdims" }, function(where, finish, x, axis, ddof, keepdims)
    local y, dtype = f(where, x, axis, ddof, keepdims)
    return cast(finish(y), dtype)
  end)
end
local of_all = spread("x", function(where, x, ...) return variance(where, arrays.mean_float(where, "x", x), ...) end)
of_all("var", ops.identity, "Variance over axes, or of all: the mean of squared differences from the mean. ddof: what the number of "
  .. "elements is less by.", "ms.numpy.var({ 1.0, 3.0 }):item() --> 1.0")
of_all("std", ops.sqrt, "Standard deviation over axes, or of all: the root of the variance.", "ms.numpy.std({ 1.0, 3.0 }):item() --> 1.0")

-- x with a value in place of nan, and how many elements over the axes are not nan.
local function without_nan(where, a, value, axis, keepdims)
  local x, plain = arrays.of(where, "a", a)
  local kind = arrays.kind(x.dtype)
  if kind ~= "f" and kind ~= "c" then return x, nil, plain end
  local missing = ops.isnan(x)
  local count = over(ops.reduce_sum, cast(ops.logical_not(missing), ms.int64), checked(where, x, axis), keepdims)
  return ops.where(missing, ops.full_like(x, value), x), count, plain, missing
end

--- Sum over axes, nan as 0.
---     > ms.numpy.nansum({ 1.0, 0/0 }):item() --> 1.0
function M.nansum(a, axis, dtype, keepdims)
  axis, dtype, keepdims = arrays.named("numpy.nansum", { "axis", "dtype", "keepdims" }, axis, dtype, keepdims)
  return M.sum(without_nan("numpy.nansum", a, 0.0, axis, keepdims), axis, dtype, keepdims)
end

--- Mean over axes of what is not nan.
---     > ms.numpy.nanmean({ 1.0, 0/0, 3.0 }):item() --> 2.0
function M.nanmean(a, axis, dtype, keepdims)
  axis, dtype, keepdims = arrays.named("numpy.nanmean", { "axis", "dtype", "keepdims" }, axis, dtype, keepdims)
  local x, count = without_nan("numpy.nanmean", a, 0.0, axis, keepdims)
  if not count then return M.mean(a, axis, keepdims, dtype) end
  x = result("numpy.nanmean", x, dtype)
  local y = wide(x)
  return cast(M.sum(y, axis, nil, keepdims) / cast(count, y.dtype), x.dtype)
end

local function nan_variance(where, a, axis, ddof, keepdims)
  local x, count, _, missing = without_nan(where, a, 0.0, axis, true)
  if not count then return variance(where, arrays.mean_float(where, "a", a), axis, ddof, keepdims) end
  local dtype = x.dtype
  x = wide(x)
  local mean = M.sum(x, axis, nil, true) / cast(count, x.dtype)
  local off = ops.where(missing, ops.zeros_like(x), x - mean)
  local squares = M.sum(off * off, axis, nil, true)
  local parts = cast(count - (ddof or 0), x.dtype)
  local y = squares / ops.where(ops.greater(parts, 0.0), parts, ops.full_like(parts, 0 / 0))
  if not keepdims then y = ops.squeeze(y, arrays.axes(where, axis, x.ndim)) end
  return y, dtype
end

local of_numbers = spread("a", nan_variance)
of_numbers("nanvar", ops.identity, "Variance over axes of what is not nan.", "ms.numpy.nanvar({ 1.0, 0/0, 3.0 }):item() --> 1.0")
of_numbers("nanstd", ops.sqrt, "Standard deviation over axes of what is not nan.", "ms.numpy.nanstd({ 1.0, 0/0, 3.0 }):item() --> 1.0")

local nan_extreme = rows.family(M, "numpy.", { "a" }, { "axis", "keepdims" }, function(where, f, a, axis, keepdims)
  local x, count = without_nan(where, a, f == M.max and -math.huge or math.huge, axis, keepdims)
  local y = f(x, axis, keepdims)
  if not count then return y end
  return ops.where(ops.equal(count, 0), ops.full_like(y, 0 / 0), y)
end)

nan_extreme("nanmax", M.max, "The largest element over axes that is not nan.", "ms.numpy.nanmax({ 1.0, 0/0 }):item() --> 1.0")
nan_extreme("nanmin", M.min, "The smallest element over axes that is not nan.", "ms.numpy.nanmin({ 1.0, 0/0 }):item() --> 1.0")

local function scan(take)
  return rows.family(M, "numpy.", { "a" }, { "axis", "dtype" }, function(where, f, a, axis, dtype)
    local x = take(where, a)
    x = cast(x, arrays.dtype(where, dtype) or sum_dtype(x))
    if axis == nil then return f(ops.reshape(x, { -1 }), 0) end
    return f(x, arrays.axis(where, axis, x.ndim))
  end)
end
local scans = scan(tensor)

scans("cumsum", ops.cumsum, "Sums of all elements up to each, along an axis or of all in a row.",
  "ms.numpy.cumsum({ 1, 2, 3 }):tolist()[3] --> 6")
scans("cumprod", ops.cumprod, "Products of all elements up to each, along an axis or of all in a row.",
  "ms.numpy.cumprod({ 1, 2, 3 }):tolist()[3] --> 6")
scan(function(where, a) return (without_nan(where, a, 0.0)) end)("nancumsum", ops.cumsum, "Sums of all elements up to each, nan as 0.",
  "ms.numpy.nancumsum({ 1.0, 0/0, 3.0 }):tolist()[3] --> 4.0")

--- Whether any element over the axes is true (not 0).
---     > ms.numpy.sometrue({ 0, 1 }):item() --> true
function M.sometrue(a, axis, keepdims)
  axis, keepdims = arrays.named("numpy.sometrue", { "axis", "keepdims" }, axis, keepdims)
  local x = tensor("numpy.sometrue", a)
  if x.dtype ~= ms.bool_ then x = ops.not_equal(x, 0) end
  return over(ops.any, x, checked("numpy.sometrue", x, axis), keepdims)
end

--- The number of elements over axes that are not 0.
---     > ms.numpy.count_nonzero({ 0, 1, 7 }):item() --> 2
function M.count_nonzero(x, axis, keepdims)
  axis, keepdims = arrays.named("numpy.count_nonzero", { "axis", "keepdims" }, axis, keepdims)
  x = tensor("numpy.count_nonzero", x)
  return M.sum(x.dtype == ms.bool_ and x or ops.not_equal(x, 0), axis, ms.int64, keepdims)
end

--- Mean with weights, over axes or of all. returned: also gives the sum of the weights.
---     > ms.numpy.average({ 1.0, 3.0 }, { weights = { 3.0, 1.0 } }):item() --> 1.5
function M.average(x, axis, weights, returned)
  axis, weights, returned = arrays.named("numpy.average", { "axis", "weights", "returned" }, axis, weights, returned)
  local where = "numpy.average"
  if weights == nil then
    local y = M.mean(x, axis)
    if not returned then return y end
    local all = arrays.of(where, "x", x)
    return y, ops.full_like(y, all.size / math.max(y.size, 1))
  end
  local a, w, dtype, plain = arrays.pair(where, x, weights, "x", "weights")
  dtype = plain and arrays.float_of(dtype, true) or arrays.kind(dtype) == "f" and dtype or ms.float64
  a, w = wide(cast(a, dtype)), wide(cast(w, dtype))
  if w.ndim ~= a.ndim then
    if type(axis) ~= "number" or w.ndim ~= 1 then
      arrays.fail(where, "weights must have the shape of x, or one axis where axis is given")
    end
    local sizes = {}
    for i = 1, a.ndim do sizes[i] = i == arrays.axis(where, axis, a.ndim) + 1 and w.size or 1 end
    w = ops.reshape(w, sizes) + ops.zeros_like(a)
  end
  local total = M.sum(w, axis)
  local y = cast(M.sum(a * w, axis) / total, dtype)
  if returned then return y, cast(total, dtype) end
  return y
end

-- Rows of observations as numpy's cov takes them.
local function observations(where, m, y, rowvar)
  local list, dtype, plain = arrays.together(where, { "m", "y" }, { m, y }, y ~= nil and 2 or 1)
  dtype = plain and ms.float32 or arrays.promote(dtype, ms.float64)
  for i, x in ipairs(list) do
    if x.ndim > 2 then arrays.fail(where, "m and y must have at most two axes") end
    x = cast(ops.atleast_2d(x), dtype)
    if rowvar == false and x.shape[1] ~= 1 then x = ops.transpose(x) end
    list[i] = x
  end
  return #list == 2 and ops.concat(list, 0) or list[1]
end

--- Covariances of the variables in the rows of m (the columns if rowvar is false), and of y if there is one. bias: divided by the number
--- of observations in place of one less; ddof: what is taken off it. fweights: how often each observation counts; aweights: its weight.
---     > ms.numpy.cov({ 1.0, 2.0, 3.0 }):item() --> 1.0
function M.cov(m, y, rowvar, bias, ddof, fweights, aweights, dtype)
  local where = "numpy.cov"
  y, rowvar, bias, ddof, fweights, aweights, dtype = arrays.named(where, { "y", "rowvar", "bias", "ddof", "fweights", "aweights", "dtype" },
    y, rowvar, bias, ddof, fweights, aweights, dtype)
  local x = observations(where, m, y, rowvar)
  ddof = ddof or bias and 0 or 1
  local w
  if fweights ~= nil then w = cast(arrays.of(where, "fweights", fweights), x.dtype) end
  local a = aweights ~= nil and cast(arrays.of(where, "aweights", aweights), x.dtype) or nil
  if a then w = w and w * a or a end
  local n = x.shape[2]
  local total = w and ops.reduce_sum(w) or ms.tensor(n + 0.0, x.dtype)
  local mean = w and ops.reduce_sum(x * w, 1, true) / total or ops.mean(x, 1, true)
  local parts
  if not w then
    parts = total - ddof
  elseif ddof == 0 then
    parts = total
  elseif not a then
    parts = total - ddof
  else
    parts = total - ddof * ops.reduce_sum(w * a) / total
  end
  local off = x - mean
  local c = ops.matmul(off, ops.transpose(w and off * w or off)) / parts
  return result(where, ops.squeeze(c), dtype)
end

--- Correlation coefficients of the variables in the rows of x (the columns if rowvar is false), and of y if there is one.
---     > ms.numpy.corrcoef({ 1.0, 2.0 }, { 1.0, 2.0 }).shape --> (2, 2)
function M.corrcoef(x, y, rowvar, dtype)
  y, rowvar, dtype = arrays.named("numpy.corrcoef", { "y", "rowvar", "dtype" }, y, rowvar, dtype)
  local c = M.cov(x, y, rowvar)
  if c.ndim == 0 then return result("numpy.corrcoef", c / c, dtype) end
  local d = ops.sqrt(ops.diagonal(c))
  c = c / ops.reshape(d, { -1, 1 }) / d
  return result("numpy.corrcoef", ops.clamp(c, -1.0, 1.0), dtype)
end

--- Differences of neighbours along an axis, n times. prepend, append: what stands before and behind first.
---     > ms.numpy.diff({ 1, 4, 9 }):tolist()[2] --> 5
function M.diff(a, n, axis, prepend, append)
  n, axis, prepend, append = arrays.named("numpy.diff", { "n", "axis", "prepend", "append" }, n, axis, prepend, append)
  local where = "numpy.diff"
  local x = tensor(where, a)
  if x.ndim == 0 then arrays.fail(where, "a must have an axis") end
  axis = arrays.axis(where, axis or -1, x.ndim)
  local function joined(value, before)
    if value == nil then return end
    local v, w = arrays.pair(where, value, x)
    if v.ndim == 0 then
      local sizes = arrays.sizes(x)
      sizes[axis + 1] = 1
      v = ops.broadcast_to(v, sizes)
    end
    x = ops.concat(before and { v, w } or { w, v }, axis)
  end
  joined(prepend, true)
  joined(append, false)
  n = arrays.times(where, "n", n or 1)
  for _ = 1, n do
    local size = x.shape[axis + 1]
    if size == 0 then break end
    local after, before = ops.narrow(x, axis, 1, size - 1), ops.narrow(x, axis, 0, size - 1)
    x = x.dtype == ms.bool_ and ops.logical_xor(after, before) or after - before
  end
  return x
end

--- Differences of neighbours in a row. to_begin, to_end: what stands before and behind them.
---     > ms.numpy.ediff1d({ 1, 4, 9 }):tolist()[1] --> 3
function M.ediff1d(ary, to_end, to_begin)
  to_end, to_begin = arrays.named("numpy.ediff1d", { "to_end", "to_begin" }, to_end, to_begin)
  local x = ops.reshape(tensor("numpy.ediff1d", ary), { -1 })
  local list = { M.diff(x) }
  if to_begin ~= nil then table.insert(list, 1, cast(ops.reshape(tensor("numpy.ediff1d", to_begin), { -1 }), x.dtype)) end
  if to_end ~= nil then list[#list + 1] = cast(ops.reshape(tensor("numpy.ediff1d", to_end), { -1 }), x.dtype) end
  return #list == 1 and list[1] or ops.concat(list, 0)
end

--- The area under y by trapezoids, along an axis. x: where the values are; else they are dx apart.
---     > ms.numpy.trapz({ 1.0, 2.0, 3.0 }):item() --> 4.0
function M.trapz(y, x, dx, axis)
  x, dx, axis = arrays.named("numpy.trapz", { "x", "dx", "axis" }, x, dx, axis)
  local where = "numpy.trapz"
  local v, plain = arrays.of(where, "y", y)
  axis = arrays.axis(where, axis or -1, v.ndim)
  local steps
  if x ~= nil then
    local at = arrays.of(where, "x", x)
    steps = M.diff(at, 1, at.ndim == 1 and 0 or axis)
    if at.ndim == 1 then
      local sizes = {}
      for i = 1, v.ndim do sizes[i] = i == axis + 1 and steps.size or 1 end
      steps = ops.reshape(steps, sizes)
    end
  else
    steps = dx or 1.0
  end
  local n = v.shape[axis + 1]
  if v.dtype == ms.bool_ then v = cast(v, ms.int64) end
  local pairs_ = ops.narrow(v, axis, 1, n - 1) + ops.narrow(v, axis, 0, n - 1)
  local a, b, dtype = arrays.pair(where, steps, pairs_)
  local kind = arrays.kind(dtype)
  if kind ~= "f" and kind ~= "c" then dtype = plain and ms.float32 or ms.float64 end
  return cast(ops.reduce_sum(wide(cast(a, dtype)) * wide(cast(b, dtype)) / 2.0, axis), dtype)
end

--- Differences of second order along each axis, or along those given, one-sided at the ends. varargs: the distance of the values, a
--- number for all axes, one for each, or tensors with the coordinates. Of several axes as many results. edge_order: 1 or 2, the order at
--- the ends.
---     > ms.numpy.gradient({ 1.0, 4.0, 9.0 }):tolist()[2] --> 4.0
function M.gradient(f, ...)
  local where = "numpy.gradient"
  local list = table.pack(...)
  local axis, edge_order
  local last = list[list.n]
  if type(last) == "table" and type(next(last)) == "string" then
    axis, edge_order = arrays.named(where, { "axis", "edge_order" }, last)
    list[list.n], list.n = nil, list.n - 1
  end
  local x = arrays.mean_float(where, "f", f)
  local axes, results = arrays.axes(where, axis, x.ndim), {}
  for i, k in ipairs(axes) do results[i] = M._slope(where, x, k, list[list.n == 1 and 1 or i] or 1.0, edge_order or 1) end
  return table.unpack(results, 1, #results)
end

-- The slope along one axis; h: a number, or the coordinates.
function M._slope(where, x, axis, h, edge_order)
  local n = x.shape[axis + 1]
  if n < edge_order + 1 then
    arrays.fail(where, ("axis %d has %d elements, at least %d are needed"):format(axis, n, edge_order + 1))
  end
  local function part(from, count) return ops.narrow(x, axis, from, count) end
  if type(h) == "table" then h = ms.tensor(h) end
  local d
  if ms.is_tensor(h) and h.ndim == 1 then
    local sizes = {}
    for i = 1, x.ndim do sizes[i] = i == axis + 1 and n - 1 or 1 end
    d = ops.reshape(M.diff(cast(h, x.dtype)), sizes)
  else
    h = cast(ms.is_tensor(h) and h or ms.tensor(h + 0.0), x.dtype)
    local sizes = {}
    for i = 1, x.ndim do sizes[i] = i == axis + 1 and n - 1 or 1 end
    d = ops.broadcast_to(h, sizes)
  end
  local function step(from, count) return ops.narrow(d, axis, from, count) end
  local pieces = {}
  if edge_order == 1 then
    pieces[1] = (part(1, 1) - part(0, 1)) / step(0, 1)
  else
    local a, b = step(0, 1), step(1, 1)
    pieces[1] = part(0, 1) * (-(a * 2.0 + b) / (a * (a + b))) + part(1, 1) * ((a + b) / (a * b)) - part(2, 1) * (a / (b * (a + b)))
  end
  if n > 2 then
    local a, b = step(0, n - 2), step(1, n - 2)
    pieces[2] = part(0, n - 2) * (-b / (a * (a + b))) + part(1, n - 2) * ((b - a) / (a * b)) + part(2, n - 2) * (a / (b * (a + b)))
  end
  if edge_order == 1 then
    pieces[#pieces + 1] = (part(n - 1, 1) - part(n - 2, 1)) / step(n - 2, 1)
  else
    local a, b = step(n - 3, 1), step(n - 2, 1)
    pieces[#pieces + 1] = part(n - 3, 1) * (b / (a * (a + b))) - part(n - 2, 1) * ((a + b) / (a * b))
      + part(n - 1, 1) * ((b * 2.0 + a) / (b * (a + b)))
  end
  return ops.concat(pieces, axis)
end

--- Angles without jumps larger than discont (period / 2) along an axis: multiples of the period are added.
---     > ms.numpy.unwrap({ 0.0, 6.283185307179586 }):tolist()[2] < 1e-5 --> true
function M.unwrap(p, discont, axis, period)
  discont, axis, period = arrays.named("numpy.unwrap", { "discont", "axis", "period" }, discont, axis, period)
  local where = "numpy.unwrap"
  local x = arrays.mean_float(where, "p", p)
  axis = arrays.axis(where, axis or -1, x.ndim)
  period = arrays.number(where, "period", period or 2 * math.pi)
  local half = period / 2
  local d = M.diff(x, 1, axis)
  local folded = ops.remainder(d + half, period) - half
  folded = ops.where(ops.logical_and(ops.equal(folded, -half), ops.greater(d, 0.0)), ops.full_like(folded, half), folded)
  local correction = ops.where(ops.less(ops.abs(d), math.max(discont or half, half)), ops.zeros_like(d), folded - d)
  local n = x.shape[axis + 1]
  return ops.concat({ ops.narrow(x, axis, 0, 1), ops.narrow(x, axis, 1, n - 1) + ops.cumsum(correction, axis) }, axis)
end

return M
