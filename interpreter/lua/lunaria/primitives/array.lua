-- Primitives of MindSpore that arrange, index, sort and make tensors: rows for nn/primitives.lua, "operator: attributes" or
-- { attributes, inputs, function of the attributes and the inputs, choices }.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.primitives.common"

local ops = ms.ops
local number, numbers, updated = common.number, common.numbers, common.updated
local fail, describe = arguments.fail, arguments.describe
local P = {}

local function pair(x) return type(x) == "table" and x or { x, x } end

P.ArgMaxWithValue = { "axis=0, keep_dims=false", "x", function(a, x)
  local values, places = ops.max(x, a.axis, a.keep_dims)
  return places, values
end }
P.ArgMinWithValue = { "axis=0, keep_dims=false", "x", function(a, x)
  local values, places = ops.min(x, a.axis, a.keep_dims)
  return places, values
end }
P.Argmax = { "axis=-1, output_type=nil", "x", function(a, x) return ops.cast(ops.argmax(x, a.axis), a.output_type or ms.int32) end }
P.Argmin = { "axis=-1, output_type=nil", "x", function(a, x) return ops.cast(ops.argmin(x, a.axis), a.output_type or ms.int32) end }
P.BatchToSpace = { "block_size, crops", "x", function(a, x) return ops.batch_to_space_nd(x, pair(a.block_size), a.crops) end }
P.BatchToSpaceND = "batch_to_space_nd: block_shape, crops"
P.BatchToSpaceNDV2 = { "", "x, block_shape, crops", function(_, x, block, crops)
  return ops.batch_to_space_nd(x, numbers(block), numbers(crops))
end }
P.SpaceToBatch = { "block_size, paddings", "x", function(a, x) return ops.space_to_batch_nd(x, pair(a.block_size), a.paddings) end }
P.SpaceToBatchND = "space_to_batch_nd: block_shape->block_size, paddings"
P.BroadcastTo = "broadcast_to: shape"
P.Bincount = { "", "array, size, weights", function(_, array, size, weights)
  size = number(size)
  return ops.cast(ops.narrow(ops.bincount(array, weights, size), 0, 0, size), weights.dtype)
end }
P.CheckNumerics = { "", "x", function(_, x)
  if not ops.all(ops.isfinite(x)):item() then fail("CheckNumerics", "the tensor has elements that are infinite or not a number") end
  return x
end }
P.Coalesce = { "", "x_indices, x_values, x_shape", function(_, indices, values, shape)
  local flat, step, sizes = nil, 1, numbers(shape)
  for axis = #sizes, 1, -1 do
    local part = indices[axis - 1] * step
    flat, step = flat and flat + part or part, step * sizes[axis]
  end
  local places, inverse = ops.unique(flat)
  local order = ops.argsort(places)
  local rank = ops.zeros_like(order)
  rank = ops.tensor_scatter_update(rank, ops.expand_dims(order, 1), ops.arange(order.size))
  local sums = ops.unsorted_segment_sum(values, ops.gather(rank, inverse, 0), order.size)
  places = ops.gather(places, order, 0)
  local rows = {}
  for axis = #sizes, 1, -1 do
    rows[axis] = ops.remainder(places, sizes[axis])
    places = ops.floor_divide(places, sizes[axis])
  end
  return ops.stack(rows), sums, shape
end }
P.Col2Im = { "kernel_size, dilation=1, padding=0, stride=1", "x, output_size", function(a, x, size)
  return ops.col2im(x, numbers(size), a.kernel_size, a.dilation, a.padding, a.stride)
end }
P.Im2Col = { "ksizes, strides=1, dilations=1, pads=0", "x", function(a, x)
  local columns, k = ops.unfold(x, a.ksizes, a.dilations, a.pads, a.strides), pair(a.ksizes)
  return ops.reshape(columns, { x.shape[1], x.shape[2], k[1] * (k[2] or k[1]), columns.shape[3] })
end }
P.ConjugateTranspose = { "", "x, perm", function(_, x, perm) return ops.conj(ops.permute(x, numbers(perm))) end }
P.CopyWithSlice = { "", "x, y", function(_, x, y) return x:copy_(y) end }
P.CountNonZero = { "dims=nil", "x", function(a, x) return ops.count_nonzero(x, a.dims, { dtype = ms.int64 }) end }
P.DepthToSpace = { "block_size", "x", function(a, x)
  local n, c, h, w = table.unpack(x.shape)
  local b = a.block_size
  local blocks = ops.permute(ops.reshape(x, { n, b, b, c // (b * b), h, w }), { 0, 3, 4, 1, 5, 2 })
  return ops.reshape(blocks, { n, c // (b * b), h * b, w * b })
end }
P.SpaceToDepth = { "block_size", "x", function(a, x)
  local n, c, h, w = table.unpack(x.shape)
  local b = a.block_size
  local blocks = ops.permute(ops.reshape(x, { n, c, h // b, b, w // b, b }), { 0, 3, 5, 1, 2, 4 })
  return ops.reshape(blocks, { n, c * b * b, h // b, w // b })
end }
-- A tensor with its elements on the diagonal of one of twice the rank, and back.
P.Diag = { "", "x", function(_, x)
  local shape = { table.unpack(x.shape) }
  for i = 1, #x.shape do shape[#shape + 1] = x.shape[i] end
  return ops.reshape(ops.diag(ops.reshape(x, { -1 })), shape)
end }
P.DiagPart = { "", "x", function(_, x)
  local half = {}
  for i = 1, #x.shape // 2 do half[i] = x.shape[i] end
  local size = 1
  for _, n in ipairs(half) do size = size * n end
  return ops.reshape(ops.diag(ops.reshape(x, { size, size })), half)
end }
P.DynamicShape = { "dtype=nil", "x", function(a, x)
  return ops.cast(ms.tensor({ table.unpack(x.shape) }, ms.int64), a.dtype or ms.int64)
end }
P.TensorShape = { "", "x", function(_, x) return ms.tensor({ table.unpack(x.shape) }, ms.int64) end }
-- The least number of steps that make one sequence of another, as a part of the latter's length.
P.EditDistance = { "normalize=true", "hypothesis_indices, hypothesis_values, hypothesis_shape, truth_indices, truth_values, truth_shape",
  function(a, h_indices, h_values, h_shape, t_indices, t_values, t_shape)
    local sizes = {}
    for i, size in ipairs(numbers(h_shape)) do sizes[i] = math.max(size, numbers(t_shape)[i]) end
    table.remove(sizes)
    local function sequences(indices, values)
      local found, items = {}, values:tolist()
      for k, place in ipairs(indices:tolist()) do
        local flat = 0
        for axis, size in ipairs(sizes) do flat = flat * size + place[axis] end
        found[flat] = found[flat] or {}
        table.insert(found[flat], items[k])
      end
      return found
    end
    local hypotheses, truths, total, result = sequences(h_indices, h_values), sequences(t_indices, t_values), 1, {}
    for _, size in ipairs(sizes) do total = total * size end
    for k = 0, total - 1 do
      local one, other = hypotheses[k] or {}, truths[k] or {}
      local row = {}
      for j = 0, #other do row[j] = j end
      for i = 1, #one do
        local diagonal = row[0]
        row[0] = i
        for j = 1, #other do
          local best = math.min(row[j] + 1, row[j - 1] + 1, diagonal + (one[i] == other[j] and 0 or 1))
          diagonal, row[j] = row[j], best
        end
      end
      result[k + 1] = row[#other] + 0.0
      if a.normalize then result[k + 1] = #other > 0 and result[k + 1] / #other or (#one > 0 and math.huge or 0.0) end
    end
    return ops.reshape(ms.tensor(result, ms.float32), sizes)
  end }
P.Expand = { "", "x, shape", function(_, x, shape) return ops.broadcast_to(x, numbers(shape)) end }
P.ExtractImagePatches = { "ksizes, strides, rates, padding=\"VALID\"", "x", function(a, x)
  local function two(list) return { list[#list - 1], list[#list] } end
  local k, stride, rate, pad = two(a.ksizes), two(a.strides), two(a.rates), { 0, 0, 0, 0 }
  local sizes = {}
  for i = 1, 2 do
    local size, reach = x.shape[i + 2], (k[i] - 1) * rate[i] + 1
    sizes[i] = (size - reach) // stride[i] + 1
    if a.padding:upper() == "SAME" then
      sizes[i] = (size + stride[i] - 1) // stride[i]
      local missing = math.max((sizes[i] - 1) * stride[i] + reach - size, 0)
      pad[5 - 2 * i], pad[6 - 2 * i] = missing // 2, missing - missing // 2
    end
  end
  local columns = ops.unfold(ops.pad(x, pad), k, rate, 0, stride)
  local n, c = x.shape[1], x.shape[2]
  return ops.reshape(ops.swapaxes(ops.reshape(columns, { n, c, k[1] * k[2], -1 }), 1, 2), { n, -1, sizes[1], sizes[2] })
end }
P.ExtractVolumePatches = { "kernel_size, strides, padding", "x", function(a, x)
  local function three(list) return type(list) == "table" and { table.unpack(list, #list - 2) } or { list, list, list } end
  local k, stride, pad = three(a.kernel_size), three(a.strides), {}
  for i = 1, 3 do
    local size, missing = x.shape[i + 2], 0
    if a.padding:upper() == "SAME" then missing = math.max(((size + stride[i] - 1) // stride[i] - 1) * stride[i] + k[i] - size, 0) end
    pad[7 - 2 * i], pad[8 - 2 * i] = missing // 2, missing - missing // 2
  end
  x = ops.pad(x, pad)
  for i = 1, 3 do
    local size = (x.shape[i + 2] - k[i]) // stride[i] + 1
    -- Windows along an axis: their places stand where the axis was, what is in them behind all axes.
    local at = ops.expand_dims(ops.arange(size) * stride[i], 1) + ops.arange(k[i])
    local windows = ops.gather(x, at, i + 1)
    x = ops.moveaxis(windows, i + 2, -1)
  end
  local n, c, d, h, w = table.unpack(x.shape)
  return ops.reshape(ops.permute(x, { 0, 5, 6, 7, 1, 2, 3, 4 }), { n, c * k[1] * k[2] * k[3], d, h, w })
end }
P.FillDiagonal = { "fill_value, wrap=false", "x", function(a, x) return x:fill_diagonal(a.fill_value, a.wrap) end }
P.FillV2 = { "", "shape, value", function(_, shape, value) return ops.broadcast_to(value, numbers(shape)) end }
P.Fills = { "", "x, value", function(_, x, value) return ops.full_like(x, number(value)) end }
local function gather_batches(x, indices, axis, batches)
  if batches == 0 then return ops.gather(x, indices, axis) end
  local n = #x.shape
  return ms.vmap(function(row, index) return gather_batches(row, index, axis < 0 and axis + n - 1 or axis - 1, batches - 1) end)(x, indices)
end
P.Gather = { "batch_dims=0", "x, indices, axis", function(a, x, indices, axis)
  return gather_batches(x, indices, number(axis), a.batch_dims)
end }
P.GatherV2, P.SparseGatherV2 = "gather", "gather"
P.HammingWindow = { "periodic=true, alpha=0.54, beta=0.46, dtype=nil", "length", function(a, length)
  return ops.hamming_window(number(length), a.periodic, a.alpha, a.beta, a.dtype or ms.float32)
end }
for name, operator in pairs { BartlettWindow = "bartlett_window", BlackmanWindow = "blackman_window" } do
  P[name] = { "periodic=true, dtype=nil", "window_length", function(a, length)
    return ops[operator](number(length), a.periodic, a.dtype or ms.float32)
  end }
end
P.IdentityN = { "", "x", function(_, list) return table.unpack(list) end }
P.IndexFill = { "", "x, dim, index, value", function(_, x, dim, index, value) return ops.index_fill(x, number(dim), index, value) end }
P.IndexPut = { "accumulate=0", "x1, x2, indices", function(a, x, values, indices)
  return x:index_put(indices, values, a.accumulate ~= 0 and a.accumulate ~= false)
end }
P.InvertPermutation = { "", "x", function(_, list)
  local inverse = {}
  for i, place in ipairs(numbers(list)) do
    if math.type(place) ~= "integer" or place < 0 or place >= #list or inverse[place + 1] then
      fail("InvertPermutation", "a permutation of 0, 1, ... is expected, got " .. describe(place) .. " in place " .. i - 1)
    end
    inverse[place + 1] = i - 1
  end
  return inverse
end }
P.ListDiff = { "out_idx=nil", "x, y", function(a, x, y)
  local other, places = {}, {}
  for _, value in ipairs(y:tolist()) do other[value] = true end
  for i, value in ipairs(x:tolist()) do
    if not other[value] then places[#places + 1] = i - 1 end
  end
  local index = ms.tensor(places, ms.int64)
  return ops.gather(x, index, 0), ops.cast(index, a.out_idx or ms.int32)
end }
P.LogSpace = { "steps=10, base=10, dtype=nil", "start, end", function(a, from, to)
  return ops.logspace(number(from), number(to), a.steps, a.base, a.dtype or ms.float32)
end }
for name, right in pairs { LowerBound = false, UpperBound = true } do
  P[name] = { "out_type=nil", "sorted_x, values", function(a, sorted, values)
    return ops.cast(ops.searchsorted(sorted, values, { right = right }), a.out_type or ms.int32)
  end }
end
P.SearchSorted = { "dtype=nil, right=false", "sorted_sequence, values, sorter", function(a, sorted, values, sorter)
  if sorter then sorted = ops.gather_elements(sorted, -1, sorter) end
  return ops.cast(ops.searchsorted(sorted, values, { right = a.right }), a.dtype or ms.int64)
end }
P.Lstsq = { "fast=true, l2_regularizer=0.0", "x, a", function(_, x, b) return ops.lstsq(x, b) end, { l2_regularizer = { 0.0 } } }
P.MatrixDiagV3, P.MatrixDiagPartV3 = "matrix_diag: align=\"RIGHT_LEFT\"", "matrix_diag_part: align=\"RIGHT_LEFT\""
P.MatrixSetDiagV3 = "matrix_set_diag: align=\"RIGHT_LEFT\""
P.MaskedFill = "masked_fill"
P.Meshgrid = "meshgrid: indexing=\"xy\""
P.Mvlgamma = "mvlgamma: p"
P.NthElement = { "reverse=false", "input, n", function(a, x, n)
  local sorted = ops.sort(x, -1, a.reverse)
  return ops.squeeze(ops.narrow(sorted, -1, number(n), 1), -1)
end }
P.OneHot = { "axis=-1", "indices, depth, on_value, off_value", function(a, indices, depth, on, off)
  return ops.one_hot(indices, number(depth), on, off, a.axis)
end }
P.Pack, P.Unpack, P.ParallelConcat = "stack: axis=0", "unstack: axis=0", "concat"
P.Stack, P.Concat = "stack: axis=0", "concat: axis=0"
P.Unstack = { "axis=0, num=nil", "x", function(a, x)
  local parts = table.pack(ops.unstack(x, a.axis))
  if a.num and a.num ~= parts.n then fail("Unstack", ("num is %s, and the axis has the size %d"):format(describe(a.num), parts.n)) end
  return table.unpack(parts, 1, parts.n)
end }
P.Range = { "maxlen=1000000", "start, end, step", function(a, from, to, step)
  local x = ops.arange(number(from), number(to), number(step))
  if x.size > a.maxlen then fail("Range", ("there are %d numbers, and maxlen is %d"):format(x.size, a.maxlen)) end
  return x
end }
P.ReverseSequence, P.ReverseV2 = "reverse_sequence: seq_dim, batch_dim=0", "flip: axis"
P.Roll = "roll: shifts, dims=nil"
P.ScalarCast = { "", "x, dtype", function(_, x, dtype)
  local value = ms.tensor(number(x), dtype):item()
  return value
end }
P.ScalarToTensor = { "", "x, dtype", function(_, x, dtype) return ms.tensor(x, dtype or ms.float32) end }
P.ScalarToArray = { "", "x", function(_, x) return ms.tensor(x) end }
P.TupleToArray = { "", "x", function(_, x) return ms.tensor(x) end }
P.TensorToTuple = { "", "x", function(_, x) return x:tolist() end }
-- Those that write into a parameter: rows, and elements at the ends of lists of indices.
for name, operator in pairs { Add = "add", Sub = "sub", Mul = "mul", Div = "div", Max = "max", Min = "min", Update = "update" } do
  local of_points = ops["tensor_scatter_" .. operator]
  local function rows(x, indices, updates) return of_points(x, ops.expand_dims(indices, -1), updates) end
  P["Scatter" .. name] = { "use_locking=false", "x, indices, updates", function(_, x, indices, updates)
    return updated(x, rows(x, indices, updates))
  end }
  P["ScatterNd" .. name] = { "use_locking=false", "x, indices, updates", function(_, x, indices, updates)
    return updated(x, of_points(x, indices, updates))
  end }
end
P.ScatterNonAliasingAdd = { "", "x, indices, updates", P.ScatterNdAdd[3] }
P.ScatterAddWithAxis = { "axis=0", "x, indices, updates", function(a, x, indices, updates)
  return ops.scatter_add(x, a.axis, indices, updates)
end }
P.InplaceAdd, P.InplaceSub, P.InplaceUpdate = "inplace_add: indices", "inplace_sub: indices", "inplace_update: indices"
P.InplaceUpdateV2 = { "", "x, indices, v", function(_, x, indices, v) return ops.inplace_update(x, v, numbers(indices)) end }
P.InplaceIndexAdd = { "axis", "var, indices, updates", function(a, x, indices, y)
  return updated(x, ops.index_add(x, indices, y, a.axis))
end }
P.IndexAdd = { "axis, use_lock=true, check_index_bound=true", "x, indices, y", function(a, x, indices, y)
  return updated(x, ops.index_add(x, indices, y, a.axis))
end, { check_index_bound = { true } } }
-- Rows of one number follow each other; numbers without a row have zeros, or ones.
local function segments(where, operator, empty)
  return { "", "x, segment_ids", function(_, x, ids)
    if ids.size == 0 then fail(where, "there are no segments: segment_ids is empty") end
    local count = ids[-1]:item() + 1
    local sum = ops["unsorted_segment_" .. operator](x, ids, count)
    if empty == nil then return sum end
    local rows = ops.unsorted_segment_sum(ops.ones_like(ids), ids, count)
    local shape = { count }
    for axis = 2, #x.shape do shape[axis] = 1 end
    rows = ops.reshape(rows, shape)
    if empty == "mean" then return sum / ops.cast(ops.maximum(rows, 1), x.dtype) end
    return ops.where(ops.equal(rows, 0), ops.full({}, empty, { dtype = x.dtype }), sum)
  end }
end
P.SegmentSum, P.SegmentProd, P.SegmentMean = segments("SegmentSum", "sum"), segments("SegmentProd", "prod", 1), segments("SegmentMean",
  "sum", "mean")
P.SegmentMax, P.SegmentMin = segments("SegmentMax", "max", 0), segments("SegmentMin", "min", 0)
P.SelectView = { "", "x, index, axis", function(_, x, index, axis) return ops.squeeze(ops.narrow(x, axis, index, 1), axis) end }
P.Shape = { "", "x", function(_, x) return x.shape end }
P.Size = { "", "x", function(_, x) return x.size end }
P.Sort = "sort: axis=-1, descending=false"
P.Split = { "axis=0, output_num=1", "x", function(a, x) return ops.tensor_split(x, a.output_num, a.axis) end }
P.SplitV = { "size_splits, split_dim, num_split", "x", function(a, x)
  if #a.size_splits ~= a.num_split then
    fail("SplitV", ("num_split is %s, and size_splits has %d sizes"):format(describe(a.num_split), #a.size_splits))
  end
  local sizes, known, open = {}, 0, nil
  for i, size in ipairs(a.size_splits) do
    sizes[i] = size
    if size == -1 then open = i else known = known + size end
  end
  if open then sizes[open] = x.shape[a.split_dim % #x.shape + 1] - known end
  return ops.split(x, sizes, a.split_dim)
end }
P.Squeeze = { "axis={}", "x", function(a, x)
  if type(a.axis) == "table" and #a.axis == 0 then return ops.squeeze(x) end
  return ops.squeeze(x, a.axis)
end }
P.TensorScatterElements = "tensor_scatter_elements: axis=0, reduction=\"none\""
P.TopK = "topk: sorted=true"
P.TransposeView = "permute"
P.TransposeExtView = "swapaxes"
P.Tril, P.Triu = "tril: diagonal=0", "triu: diagonal=0"
for name, operator in pairs { TrilIndices = "tril_indices", TriuIndices = "triu_indices" } do
  P[name] = { "row, col, offset=0, dtype=nil", "", function(a) return ops[operator](a.row, a.col, a.offset, a.dtype or ms.int32) end }
end
-- The values in the order in which they come first.
local function in_order(x)
  local values, inverse = ops.unique(x)
  local order = ops.argsort(ops.unsorted_segment_min(ops.arange(inverse.size), ops.reshape(inverse, { -1 }), values.size))
  local rank = ops.tensor_scatter_update(ops.zeros_like(order), ops.expand_dims(order, 1), ops.arange(order.size))
  return ops.gather(values, order, 0), ops.cast(ops.gather(rank, inverse, 0), x.dtype == ms.int64 and ms.int64 or ms.int32)
end
P.Unique = { "", "x", function(_, x) return in_order(x) end }
P.UniqueWithPad = { "", "x, pad_num", function(_, x, pad)
  local values, inverse = in_order(x)
  return ops.concat { values, ops.full({ x.size - values.size }, number(pad), { dtype = x.dtype }) }, inverse
end }
P.StridedSlice = "strided_slice: begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0"
P.NonZero, P.OnesLike, P.ZerosLike, P.Flatten = "nonzero", "ones_like", "zeros_like", "flatten"
P.UniqueConsecutive = "unique_consecutive: return_inverse=false, return_counts=false, dim=nil"
P.UnravelIndex = { "", "indices, dims", function(_, indices, dims)
  local rows, sizes = {}, numbers(dims)
  for axis = #sizes, 1, -1 do
    rows[axis] = ops.remainder(indices, sizes[axis])
    indices = ops.floor_divide(indices, sizes[axis])
  end
  return ops.stack(rows)
end }
P.MapUniform = { "", "input, per_group_size, group_num", function(_, x, size, count)
  return ops.remainder(x, number(count)) * number(size) + ops.floor_divide(x, number(count))
end }
P.SubAndFilter = { "", "input_x, max_num, offset", function(_, x, most, offset)
  local moved = x - number(offset)
  local inside = ops.logical_and(ops.greater_equal(moved, 0), ops.less(moved, number(most)))
  return ops.masked_select(moved, inside), ops.reshape(ops.nonzero(inside), { -1 })
end }
P.EmbeddingLookup = { "", "input_params, input_indices, offset", function(_, params, indices, offset)
  local moved = indices - number(offset)
  local inside = ops.logical_and(ops.greater_equal(moved, 0), ops.less(moved, params.shape[1]))
  local rows = ops.gather(params, ops.where(inside, moved, 0), 0)
  local shape = { table.unpack(indices.shape) }
  while #shape < #rows.shape do shape[#shape + 1] = 1 end
  return ops.where(ops.reshape(inside, shape), rows, ops.zeros_like(rows))
end }

return P
