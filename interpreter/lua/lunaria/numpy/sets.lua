-- ms.numpy: sets, sorted sequences and histograms.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"

local ops = ms.ops
local cast = arrays.cast
local M = {}

local function tensor(where, x, name) return (arrays.of(where, name or "a", x)) end
local function row(where, x, name) return ops.reshape(tensor(where, x, name), { -1 }) end

-- The different elements in order, in their dtype.
local function different(x)
  if x.dtype == ms.bool_ then return cast((ops.unique(cast(x, ms.int8))), ms.bool_) end
  return (ops.unique(x))
end

--- The different elements in order. return_index: also where each is first; return_inverse: also where each element has gone;
--- return_counts: also how often each is there.
---     > ms.numpy.unique({ 3, 1, 3 }):tolist()[2] --> 3
function M.unique(x, return_inverse, return_index, return_counts)
  local where = "numpy.unique"
  return_inverse, return_index, return_counts =
    arrays.named(where, { "return_inverse", "return_index", "return_counts" }, return_inverse, return_index, return_counts)
  local all = tensor(where, x, "x")
  local flat = ops.reshape(all, { -1 })
  local values, inverse = ops.unique(flat.dtype == ms.bool_ and cast(flat, ms.int8) or flat)
  inverse = cast(ops.reshape(inverse, { -1 }), ms.int64)
  local results = { cast(values, flat.dtype) }
  local n = values.size
  if return_index then
    local first = ops.full({ n }, flat.size, ms.int64)
    results[#results + 1] = ops.tensor_scatter_min(first, ops.expand_dims(inverse, 1), ops.arange(0, flat.size, 1, ms.int64))
  end
  if return_inverse then results[#results + 1] = ops.reshape(inverse, arrays.sizes(all)) end
  if return_counts then results[#results + 1] = cast(ops.bincount(inverse, nil, n), ms.int64) end
  return table.unpack(results)
end

--- The different elements that both have, in order. assume_unique: both have each element once. return_indices: also where each is first
--- in ar1 and ar2.
---     > ms.numpy.intersect1d({ 1, 2, 3 }, { 2, 3, 5 }).size --> 2
function M.intersect1d(ar1, ar2, assume_unique, return_indices)
  local where = "numpy.intersect1d"
  return_indices = select(2, arrays.named(where, { "assume_unique", "return_indices" }, assume_unique, return_indices))
  local a, b = arrays.pair(where, ar1, ar2, "ar1", "ar2")
  a, b = ops.reshape(a, { -1 }), ops.reshape(b, { -1 })
  local values = different(a)
  local found = ops.any(ops.equal(ops.reshape(values, { -1, 1 }), b), -1)
  values = ops.masked_select(values, found)
  if not return_indices then return values end
  local function places(x)
    return cast(ops.argmax(cast(ops.equal(ops.reshape(values, { -1, 1 }), x), ms.int8), 1), ms.int64)
  end
  if values.size == 0 then return values, ops.zeros({ 0 }, ms.int64), ops.zeros({ 0 }, ms.int64) end
  return values, places(a), places(b)
end

--- The elements of ar1 that ar2 does not have: in order and once, or as they stand if assume_unique.
---     > ms.numpy.setdiff1d({ 1, 2, 3 }, { 2 }):tolist()[2] --> 3
function M.setdiff1d(ar1, ar2, assume_unique)
  assume_unique = arrays.named("numpy.setdiff1d", { "assume_unique" }, assume_unique)
  local own = row("numpy.setdiff1d", ar1, "ar1")
  if not assume_unique then own = different(own) end
  local a, b = arrays.pair("numpy.setdiff1d", own, ar2, "ar1", "ar2")
  local found = ops.any(ops.equal(ops.reshape(a, { -1, 1 }), ops.reshape(b, { -1 })), -1)
  return ops.masked_select(own, ops.logical_not(found))
end

--- The different elements that at least one of both has, in order.
---     > ms.numpy.union1d({ 1, 2 }, { 2, 5 }):tolist()[3] --> 5
function M.union1d(ar1, ar2)
  local a, b = arrays.pair("numpy.union1d", ar1, ar2, "ar1", "ar2")
  return different(ops.concat({ ops.reshape(a, { -1 }), ops.reshape(b, { -1 }) }, 0))
end

--- The different elements that only one of both has, in order.
---     > ms.numpy.setxor1d({ 1, 2 }, { 2, 5 }):tolist()[2] --> 5
function M.setxor1d(ar1, ar2) return M.union1d(M.setdiff1d(ar1, ar2), M.setdiff1d(ar2, ar1)) end

--- Where values go into a sorted sequence: before equal elements (side "left") or behind them ("right"). sorter: the order of a.
---     > ms.numpy.searchsorted({ 1, 3, 5 }, 4):item() --> 2
function M.searchsorted(a, v, side, sorter)
  side, sorter = arrays.named("numpy.searchsorted", { "side", "sorter" }, side, sorter)
  local where = "numpy.searchsorted"
  if side ~= nil and side ~= "left" and side ~= "right" then
    arrays.fail(where, ("side must be 'left' or 'right', got %s"):format(arrays.describe(side)))
  end
  local x, values = arrays.pair(where, a, v, "a", "v")
  if x.ndim ~= 1 then arrays.fail(where, "a must have one axis") end
  if sorter ~= nil then x = ops.gather(x, cast(tensor(where, sorter, "sorter"), ms.int64), 0) end
  if x.dtype == ms.bool_ then x, values = cast(x, ms.int8), cast(values, ms.int8) end
  local flat = ops.searchsorted(x, ops.reshape(values, { -1 }), { right = side == "right" })
  return ops.reshape(cast(flat, ms.int64), arrays.sizes(values))
end

--- In which bin each element is: bins are the edges, rising or falling. right: an element on an edge belongs to the bin below it.
---     > ms.numpy.digitize({ 0.5, 2.5 }, { 0.0, 1.0, 2.0 }):tolist()[2] --> 3
function M.digitize(x, bins, right)
  right = arrays.named("numpy.digitize", { "right" }, right)
  local where = "numpy.digitize"
  local edges = tensor(where, bins, "bins")
  local n = edges.size
  local falling = n > 1 and ops.less(edges[-1], edges[0]):item()
  local side = right and "left" or "right"
  if not falling then return M.searchsorted(edges, x, side) end
  return n - M.searchsorted(ops.flip(edges, { 0 }), x, side)
end

--- How often each number from 0 on is there, or the sums of weights. minlength: the least length of the result. length: its length.
---     > ms.numpy.bincount({ 0, 1, 1 }):tolist()[2] --> 2
function M.bincount(x, weights, minlength, length)
  weights, minlength, length = arrays.named("numpy.bincount", { "weights", "minlength", "length" }, weights, minlength, length)
  local where = "numpy.bincount"
  x = tensor(where, x, "x")
  if x.ndim ~= 1 then arrays.fail(where, "x must have one axis") end
  if x.dtype == ms.bool_ then x = cast(x, ms.int64) end
  local kind = arrays.kind(x.dtype)
  if kind == "f" or kind == "c" then arrays.fail(where, "integers are expected, got " .. tostring(x.dtype)) end
  x = cast(x, ms.int64)
  local y
  if weights ~= nil then
    local w, plain = arrays.of(where, "weights", weights)
    local dtype = plain and ms.float32 or ms.float64
    local n = math.max(minlength or 0, x.size > 0 and ops.amax(x):item() + 1 or 0)
    y = ops.unsorted_segment_sum(cast(w, dtype), x, math.max(n, 1))
    if n == 0 then y = ops.narrow(y, 0, 0, 0) end
  else
    y = cast(ops.bincount(x, nil, minlength or 0), ms.int64)
  end
  if not length then return y end
  if y.size >= length then return ops.narrow(y, 0, 0, length) end
  return ops.concat({ y, ops.zeros({ length - y.size }, y.dtype) }, 0)
end

local rules = {
  sqrt = function(n) return math.ceil(math.sqrt(n)) end,
  sturges = function(n) return math.ceil(math.log(n, 2) + 1) end,
  rice = function(n) return math.ceil(2 * n ^ (1 / 3)) end,
}

-- The edges of bins: a number of them over a range, a rule for this number, or the edges themselves. In float64.
local function edges_of(where, x, bins, range)
  if bins == nil then bins = 10 end
  if ms.is_tensor(bins) and bins.ndim == 0 then bins = bins:item() end
  if type(bins) == "string" then
    if not rules[bins] then
      arrays.fail(where, ("bins '%s' are not known"):format(bins), "there are: rice, sqrt, sturges; or give their number or their edges")
    end
    bins = math.max(1, math.tointeger(rules[bins](math.max(1, x.size))))
  end
  if type(bins) ~= "number" then return tensor(where, bins, "bins"), false end
  local count = arrays.integer(where, "bins", bins)
  if count < 1 then arrays.fail(where, ("bins must be positive, got %d"):format(count)) end
  local low, high = 0.0, 1.0
  if range ~= nil then
    if ms.is_tensor(range) then range = range:tolist() end
    low, high = arrays.number(where, "range", range[1]), arrays.number(where, "range", range[2])
  elseif x.size > 0 then
    low, high = ops.amin(x):item(), ops.amax(x):item()
  end
  if type(low) == "boolean" then low, high = low and 1 or 0, high and 1 or 0 end
  if not (low <= high) or low - low ~= 0 or high - high ~= 0 then
    arrays.fail(where, ("the range from %s to %s is not finite or not rising"):format(low, high))
  end
  if low == high then low, high = low - 0.5, high + 0.5 end
  local i = ops.arange(0, count + 1, 1, ms.float64)
  local edges = i * ((high - low) / count) + low
  return ops.where(ops.equal(i, count), ops.full_like(edges, high), edges), true
end

local function edge_dtype(x, plain)
  local kind = arrays.kind(x.dtype)
  return kind == "f" and x.dtype or plain and ms.float32 or ms.float64
end

--- The edges of the bins of a histogram: bins of the same width, of which bins (10) says the number or a rule for it ("sqrt", "sturges",
--- "rice"), from the least to the largest element, or over range.
---     > ms.numpy.histogram_bin_edges({ 0.0, 4.0 }, 4):tolist()[2] --> 1.0
function M.histogram_bin_edges(a, bins, range)
  bins, range = arrays.named("numpy.histogram_bin_edges", { "bins", "range" }, bins, range)
  local x, plain = arrays.of("numpy.histogram_bin_edges", "a", a)
  local edges, made = edges_of("numpy.histogram_bin_edges", ops.reshape(x, { -1 }), bins, range)
  return made and cast(edges, edge_dtype(x, plain)) or edges
end

-- The bin of each element, and whether it is in one; the last bin has both of its edges.
local function bins_of(x, edges)
  local wide = cast(x, ms.float64)
  local e = cast(edges, ms.float64)
  local n = e.size - 1
  local place = cast(ops.searchsorted(e, wide, { right = true }), ms.int64) - 1
  place = ops.where(ops.equal(wide, e[-1]), ops.full_like(place, n - 1), place)
  local inside = ops.logical_and(ops.greater_equal(wide, e[0]), ops.less_equal(wide, e[-1]))
  return ops.clamp(place, 0, n - 1), inside, n
end

local function counted(place, inside, n, weights)
  if weights == nil then return ops.unsorted_segment_sum(cast(inside, ms.int64), place, n) end
  local kind = arrays.kind(weights.dtype)
  local w = weights
  if kind ~= "f" and kind ~= "c" then w = cast(w, ms.int64) end
  return ops.unsorted_segment_sum(ops.where(inside, w, ops.zeros_like(w)), place, n)
end

--- How many elements are in each bin, and the edges: two results. bins and range as for histogram_bin_edges. weights: what each element
--- counts. density: as a density, whose integral is 1.
---     > (ms.numpy.histogram({ 0.0, 1.0, 1.5 }, 2)):tolist()[2] --> 2
function M.histogram(a, bins, range, weights, density)
  local where = "numpy.histogram"
  bins, range, weights, density = arrays.named(where, { "bins", "range", "weights", "density" }, bins, range, weights, density)
  local x, plain = arrays.of(where, "a", a)
  local flat = ops.reshape(x, { -1 })
  local edges, made = edges_of(where, flat, bins, range)
  local place, inside, n = bins_of(flat, edges)
  local w = weights ~= nil and row(where, weights, "weights") or nil
  local counts = counted(place, inside, n, w)
  if density then
    local e = cast(edges, ms.float64)
    local width = ops.narrow(e, 0, 1, n) - ops.narrow(e, 0, 0, n)
    local c = cast(counts, ms.float64)
    counts = c / width / ops.reduce_sum(c)
    if plain then counts = cast(counts, ms.float32) end
  end
  return counts, made and cast(edges, edge_dtype(x, plain)) or edges
end

--- Counts in bins of several dimensions, and a table of the edges: sample has a column for each. bins: a number, or one, or edges, for each
--- column. range: { low, high } for each column. weights, density as for histogram.
---     > (ms.numpy.histogramdd({ { 0.0, 0.0 }, { 1.0, 1.0 } }, 2)).shape --> (2, 2)
function M.histogramdd(sample, bins, range, weights, density)
  local where = "numpy.histogramdd"
  bins, range, weights, density = arrays.named(where, { "bins", "range", "weights", "density" }, bins, range, weights, density)
  local x, plain = arrays.of(where, "sample", sample)
  if x.ndim == 1 then x = ops.reshape(x, { -1, 1 }) end
  local total_place, inside, shape, all_edges = nil, nil, {}, {}
  for k = 1, x.shape[2] do
    local column = x["..., " .. k - 1]
    local own = type(bins) == "table" and bins[k] or not (type(bins) == "table") and bins or nil
    local edges, made = edges_of(where, column, own, range and range[k])
    local place, in_bin, n = bins_of(column, edges)
    total_place = total_place and total_place * n + place or place
    inside = inside and ops.logical_and(inside, in_bin) or in_bin
    shape[k], all_edges[k] = n, made and cast(edges, edge_dtype(x, plain)) or edges
  end
  local cells = 1
  for _, n in ipairs(shape) do cells = cells * n end
  local w = weights ~= nil and row(where, weights, "weights") or nil
  local natural = plain and ms.float32 or ms.float64
  local counts = ops.reshape(cast(counted(total_place, inside, cells, w), natural), shape)
  if density then
    local total = ops.reduce_sum(counts)
    for k, e in ipairs(all_edges) do
      local sizes = {}
      for i = 1, #shape do sizes[i] = i == k and shape[k] or 1 end
      e = cast(e, natural)
      counts = counts / ops.reshape(ops.narrow(e, 0, 1, shape[k]) - ops.narrow(e, 0, 0, shape[k]), sizes)
    end
    counts = counts / total
  end
  return counts, all_edges
end

--- Counts of pairs in bins, and the edges for x and for y: three results. bins, range, weights, density as for histogramdd.
---     > (ms.numpy.histogram2d({ 0.0, 1.0 }, { 0.0, 1.0 }, 2)).shape --> (2, 2)
function M.histogram2d(x, y, bins, range, weights, density)
  local where = "numpy.histogram2d"
  bins, range, weights, density = arrays.named(where, { "bins", "range", "weights", "density" }, bins, range, weights, density)
  local a, b = arrays.pair(where, x, y, "x", "y")
  local sample = ops.stack({ ops.reshape(a, { -1 }), ops.reshape(b, { -1 }) }, 1)
  -- Edges for both.
  if ms.is_tensor(bins) or (type(bins) == "table" and #bins ~= 2) then bins = { bins, bins } end
  local counts, edges = M.histogramdd(sample, bins, range, weights, density)
  return counts, edges[1], edges[2]
end

return M
