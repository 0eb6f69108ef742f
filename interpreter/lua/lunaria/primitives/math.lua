-- Primitives of MindSpore that compute: arithmetic, reductions, linear algebra, special functions, sparse matrices. Rows for
-- nn/primitives.lua, as in array.lua.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.primitives.common"

local ops = ms.ops
local number, numbers = common.number, common.numbers
local fail, describe = arguments.fail, arguments.describe
local P = {}

-- MindSpore's axes: () are all of them.
local function axes(x)
  if type(x) == "table" and #x == 0 then return nil end
  return x
end

P.ACos, P.Acosh, P.Asin, P.Asinh, P.Atan, P.Atanh = "acos", "acosh", "asin", "asinh", "atan", "atanh"
P.TensorAdd, P.RealDiv, P.Div, P.Mod, P.Invert = "add", "div", "div", "fmod", "bitwise_not"
P.FloorDiv, P.FloorMod, P.Neg, P.Pow = "floor_divide", "remainder", "neg", "pow"
P.Inv, P.Reciprocal, P.Rint, P.Ceil = "reciprocal", "reciprocal", "round", "ceil"
P.IsNan, P.IsInf, P.IsFinite, P.IsClose = "isnan", "isinf", "isfinite", "isclose: rtol=1e-5, atol=1e-8, equal_nan=false"
P.LeftShift, P.RightShift = "bitwise_left_shift", "bitwise_right_shift"
P.ApproximateEqual = "approximate_equal: tolerance=1e-5"
P.Addcdiv = { "", "input, tensor1, tensor2, value", function(_, x, a, b, value) return x + a / b * value end }
P.Addcmul = { "", "input, tensor1, tensor2, value", function(_, x, a, b, value) return x + a * b * value end }
local function sum_of(_, list, ...)
  if ms.is_tensor(list) and select("#", ...) > 0 then list = { list, ... } end
  if type(list) ~= "table" or #list == 0 then fail("AddN", "a table of tensors is expected, got " .. describe(list)) end
  local sum = list[1]
  for i = 2, #list do sum = sum + list[i] end
  return sum
end
P.AddN = { "", "...", sum_of }
P.AccumulateNV2 = P.AddN
P.BatchMatMul = { "transpose_a=false, transpose_b=false", "x, y", function(a, x, y)
  if a.transpose_a then x = ops.swapaxes(x, -1, -2) end
  if a.transpose_b then y = ops.swapaxes(y, -1, -2) end
  return ops.matmul(x, y)
end }
P.MatMul = P.BatchMatMul
P.Betainc = { "", "a, b, x", function(_, a, b, x) return ms.scipy.special.betainc(a, b, x) end }
P.Bucketize = { "boundaries", "input", function(a, x)
  return ops.bucketize(x, ms.tensor(a.boundaries, ms.float32), { out_int32 = true })
end }
P.Cdist, P.Pdist = "cdist: p=2.0", "pdist: p=2.0"
P.CompareAndBitpack = { "", "x, threshold", function(_, x, threshold)
  local shape = { table.unpack(x.shape) }
  if #shape == 0 or shape[#shape] % 8 ~= 0 then
    fail("CompareAndBitpack", "the size of the last axis must be a multiple of 8, got " .. describe(x))
  end
  shape[#shape], shape[#shape + 1] = shape[#shape] // 8, 8
  local bits = ops.cast(ops.reshape(ops.greater(x, threshold), shape), ms.int32)
  return ops.cast(ops.sum(bits * ms.tensor({ 128, 64, 32, 16, 8, 4, 2, 1 }, ms.int32), -1), ms.uint8)
end }
P.ComplexAbs = "abs"
P.Cross = { "dim=-65530", "input, other", function(a, x, y)
  if a.dim == -65530 then return ops.cross(x, y) end
  return ops.cross(x, y, a.dim)
end }
-- Running sums or products: from the end, and without the element itself.
local function running(operator, first)
  return function(a, x, axis)
    axis = number(axis)
    if a.reverse then x = ops.flip(x, { axis }) end
    local y = operator(x, axis)
    if a.exclusive then
      y = ops.concat({ ops.full_like(ops.narrow(x, axis, 0, 1), first), ops.narrow(y, axis, 0, y.shape[axis % #y.shape + 1] - 1) }, axis)
    end
    return a.reverse and ops.flip(y, { axis }) or y
  end
end
P.CumSum = { "exclusive=false, reverse=false", "input, axis", running(function(x, axis) return ops.cumsum(x, axis) end, 0) }
P.CumProd = { "exclusive=false, reverse=false", "x, axis", running(function(x, axis) return ops.cumprod(x, axis) end, 1) }
P.CumulativeLogsumexp = { "exclusive=false, reverse=false", "x, axis", running(function(x, axis)
  return ops.logcumsumexp(x, axis)
end, -math.huge) }
P.Cummax, P.Cummin = "cummax: axis", "cummin: axis"
-- Zero where the second operand is, whatever the first one is: infinity and not a number included, and their derivatives.
P.DivNoNan = { "", "x1, x2", function(_, x, y)
  local zero = ops.equal(y, 0)
  return ops.where(zero, ops.zeros_like(x / ops.ones_like(y)), x / ops.where(zero, ops.ones_like(y), y))
end }
P.MulNoNan = { "", "x, y", function(_, x, y)
  local zero = ops.equal(y, 0)
  return ops.where(zero, ops.zeros_like(y), ops.where(zero, ops.zeros_like(x), x) * y)
end }
P.Eig = { "compute_v=false", "x", function(a, x)
  local values, vectors = ops.eig(x)
  if a.compute_v then return values, vectors end
  return values
end }
P.Einsum = { "equation", "x", function(a, list) return ops.einsum(a.equation, list) end }
local epsilons = { Float16 = 2.0 ^ -10, BFloat16 = 2.0 ^ -7, Float32 = 2.0 ^ -23, Float64 = 2.0 ^ -52 }
P.Eps = { "", "x", function(_, x)
  local value = epsilons[tostring(x.dtype)]
  if not value then fail("Eps", "a tensor of floats is expected, got one of " .. tostring(x.dtype)) end
  return ops.full_like(x, value)
end }
P.EqualCount = { "", "x, y", function(_, x, y) return ops.cast(ops.reshape(ops.sum(ops.equal(x, y)), { 1 }), x.dtype) end }
P.EuclideanNorm = { "keep_dims=false", "x, axes", function(a, x, along)
  return ops.sqrt(ops.sum(x * x, axes(numbers(along)), a.keep_dims))
end }
P.FFTWithSize = { "signal_ndim, inverse, real, norm=\"backward\", onesided=true, signal_sizes={}", "x", function(a, x)
  local along, sizes = {}, nil
  for i = 1, a.signal_ndim do along[i] = i - 1 - a.signal_ndim end
  if #a.signal_sizes > 0 then sizes = a.signal_sizes end
  if not a.real then return ops[a.inverse and "ifftn" or "fftn"](x, sizes, along, a.norm) end
  if a.onesided then return ops[a.inverse and "irfftn" or "rfftn"](x, sizes, along, a.norm) end
  local y = ops[a.inverse and "ifftn" or "fftn"](x, sizes, along, a.norm)
  return a.inverse and ops.real(y) or y
end }
P.FloatStatus = { "", "x", function(_, x)
  return ops.reshape(ops.cast(ops.logical_not(ops.all(ops.isfinite(x))), ms.float32), { 1 })
end }
P.Histogram = "histc: bins=100, min=0.0, max=0.0"
P.HistogramFixedWidth = { "nbins, dtype=\"int32\"", "x, range", function(a, x, range)
  local from, to = table.unpack(numbers(range))
  local place = ops.floor((x - from) * (a.nbins / (to - from)))
  return ops.cast(ops.bincount(ops.cast(ops.reshape(ops.clamp(place, 0, a.nbins - 1), { -1 }), ms.int64), nil, a.nbins), ms.int32)
end, { dtype = { "int32" } } }
P.LpNorm = { "axis, p=2, keep_dims=false, epsilon=1e-12", "input", function(a, x)
  local sum = ops.sum(ops.pow(ops.abs(x), a.p), axes(a.axis), a.keep_dims)
  return ops.pow(ops.maximum(sum, a.epsilon), 1 / a.p)
end }
P.Logit = { "eps=-1.0", "input", function(a, x)
  if a.eps < 0 then return ops.logit(x) end
  return ops.logit(x, a.eps)
end }
-- Pivots count from 1 here.
P.LuSolve = { "", "x, lu_data, lu_pivots", function(_, x, lu, pivots) return ops.lu_solve(x, lu, pivots - 1) end }
P.LuUnpack = { "unpack_data=true, unpack_pivots=true", "LU_data, LU_pivots", function(_, lu, pivots)
  return ops.lu_unpack(lu, pivots - 1)
end,
  { unpack_data = { true }, unpack_pivots = { true } } }
P.CholeskySolve, P.CholeskyInverse, P.Cholesky = "cholesky_solve: upper=false", "cholesky_inverse: upper=false", "cholesky: upper=false"
local function adjoint(x) return ops.conj(ops.swapaxes(x, -1, -2)) end
P.MatrixInverse = { "adjoint=false", "x", function(a, x) return ops.inverse(a.adjoint and adjoint(x) or x) end }
P.MatrixSolve = "matrix_solve: adjoint=false"
P.MatrixSolveLs = { "fast=true", "matrix, rhs, l2_regularizer", function(a, x, b, l2)
  -- What is not fast has no regularizer.
  l2 = a.fast and number(l2 or 0.0) or 0
  local h = adjoint(x)
  if l2 == 0 then return ops.matmul(ops.pinv(x), b) end
  if x.shape[#x.shape - 1] >= x.shape[#x.shape] then
    return ops.matrix_solve(ops.matmul(h, x) + ops.eye(x.shape[#x.shape], nil, x.dtype) * l2, ops.matmul(h, b))
  end
  return ops.matmul(h, ops.matrix_solve(ops.matmul(x, h) + ops.eye(x.shape[#x.shape - 1], nil, x.dtype) * l2, b))
end }
P.MatrixTriangularSolve = { "lower=true, adjoint=false", "matrix, rhs", function(a, x, b)
  if a.adjoint then return ops.solve_triangular(adjoint(x), b, { lower = not a.lower }) end
  return ops.solve_triangular(x, b, { lower = a.lower })
end }
P.MatrixPower = "matrix_power: n"
P.MatrixLogarithm = { "", "x", function(_, x)
  local values, vectors = ops.eig(x)
  return ops.matmul(vectors * ops.expand_dims(ops.log(values), -2), ops.inverse(vectors))
end }
P.Median = { "global_median=false, axis=0, keep_dims=false, ignore_nan=false", "x", function(a, x)
  local median = a.ignore_nan and ops.nanmedian or ops.median
  if a.global_median then
    local values, places = median(ops.reshape(x, { -1 }), 0)
    return values, places
  end
  return median(x, a.axis, a.keep_dims)
end }
P.NanToNum = "nan_to_num: nan=nil, posinf=nil, neginf=nil"
P.NuclearNorm = { "dim=nil, keepdim=false", "x", function(a, x) return ops.norm(x, "nuc", a.dim, a.keepdim) end }
P.Orgqr, P.Ormqr, P.Geqrf = "orgqr", "ormqr: left=true, transpose=false", "geqrf"
P.Polygamma = { "", "a, x", function(_, order, x) return ops.polygamma(number(order), x) end }
P.Qr = { "full_matrices=false", "x", function(a, x) return ops.qr(x, a.full_matrices and "complete" or "reduced") end }
P.Quantile = { "dim=nil, keep_dims=false, ignore_nan=false", "input, q", function(a, x, q)
  return ops[a.ignore_nan and "nanquantile" or "quantile"](x, q, a.dim, a.keep_dims)
end }
P.RaggedRange = { "Tsplits", "starts, limits, deltas", function(a, starts, limits, deltas)
  local splits, values, from, to, by = { 0 }, {}, starts:tolist(), limits:tolist(), deltas:tolist()
  for i, first in ipairs(from) do
    local step = by[i] or by[1]
    if step == 0 then fail("RaggedRange", "deltas must not be 0") end
    for value = first, to[i] - (step > 0 and 1e-12 or -1e-12), step do values[#values + 1] = value end
    splits[i + 1] = #values
  end
  return ms.tensor(splits, a.Tsplits), ms.tensor(values, starts.dtype)
end }
for name, operator in pairs { ReduceAll = "all", ReduceAny = "any", ReduceMax = "amax", ReduceMean = "mean", ReduceMin = "amin",
  ReduceProd = "prod" } do
  P[name] = { "keep_dims=false", "x, axis", function(a, x, axis) return ops[operator](x, axes(axis), a.keep_dims) end }
end
P.ReduceSum = { "keep_dims=false, skip_mode=false", "x, axis", function(a, x, axis)
  if a.skip_mode and type(axis) == "table" and #axis == 0 then return x end
  return ops.sum(x, axes(axis), a.keep_dims)
end }
P.ReduceStd = { "axis={}, unbiased=true, keep_dims=false", "x", function(a, x)
  return ops.std_mean(x, axes(a.axis), a.unbiased and 1 or 0, a.keep_dims)
end }
P.Renorm = "renorm: p, dim, maxnorm"
P.Round = { "", "input, decimals", function(_, x, decimals) return ops.round(x, { decimals = decimals or 0 }) end }
P.SquareSumAll = { "", "x, y", function(_, x, y) return ops.sum(x * x), ops.sum(y * y) end }
P.SquaredDifference = { "", "x, y", function(_, x, y) return ops.square(x - y) end }
P.STFT = { "n_fft, hop_length, win_length, normalized, onesided, return_complex", "x, window", function(a, x, window)
  return ops.stft(x, a.n_fft, a.hop_length, a.win_length,
    { window = window, center = false, normalized = a.normalized, onesided = a.onesided, return_complex = a.return_complex })
end }
P.Svd = "svd: full_matrices=false, compute_uv=true"
P.TridiagonalMatMul = { "", "superdiag, maindiag, subdiag, rhs", function(_, above, middle, below, x)
  local n, last = x.shape[#x.shape - 1], #x.shape - 2
  local zeros = ops.zeros_like(ops.narrow(x, last, 0, 1))
  local next_rows = ops.concat({ ops.narrow(x, last, 1, n - 1), zeros }, last)
  local rows_before = ops.concat({ zeros, ops.narrow(x, last, 0, n - 1) }, last)
  local function column(diagonal) return ops.swapaxes(diagonal, -1, -2) end
  return column(above) * next_rows + column(middle) * x + column(below) * rows_before
end }
P.TruncateMod, P.TruncateDiv = "fmod", "truncate_div"
P.NMSWithMask = { "iou_threshold=0.5", "bboxes", function(a, boxes)
  local order = ops.argsort(ops.squeeze(ops.narrow(boxes, 1, 4, 1), 1), 0, true)
  local sorted = ops.gather(boxes, order, 0)
  local list, kept = sorted:tolist(), {}
  for i, box in ipairs(list) do
    kept[i] = true
    for j = 1, i - 1 do
      local other = list[j]
      local width = math.max(math.min(box[3], other[3]) - math.max(box[1], other[1]), 0)
      local height = math.max(math.min(box[4], other[4]) - math.max(box[2], other[2]), 0)
      local both = width * height
      local all = (box[3] - box[1]) * (box[4] - box[2]) + (other[3] - other[1]) * (other[4] - other[2]) - both
      if kept[j] and all > 0 and both / all > a.iou_threshold then
        kept[i] = false
        break
      end
    end
  end
  return sorted, ops.arange(#list, { dtype = ms.int32 }), ms.tensor(kept)
end }
P.IOU = "iou: mode=\"iou\""
P.ComputeAccidentalHits = { "num_true=1", "true_classes, sampled_candidates", function(a, classes, sampled)
  local places, indices, ids, weights = {}, {}, {}, {}
  for k, class in ipairs(sampled:tolist()) do
    places[class] = places[class] or {}
    table.insert(places[class], k - 1)
  end
  for row, list in ipairs(classes:tolist()) do
    if type(list) ~= "table" or #list ~= a.num_true then
      fail("ComputeAccidentalHits", ("true_classes must have %s classes in each row"):format(describe(a.num_true)))
    end
    for _, class in ipairs(list) do
      for _, place in ipairs(places[class] or {}) do
        indices[#indices + 1], ids[#ids + 1], weights[#weights + 1] = row - 1, place, -3.4028234663852886e38
      end
    end
  end
  return ms.tensor(indices, ms.int32), ms.tensor(ids, sampled.dtype), ms.tensor(weights, ms.float32)
end }
-- Sparse matrices: indices, values and a shape.
local function dense_of(indices, values, shape) return ops.scatter_nd(indices, values, numbers(shape)) end
P.SparseToDense = { "", "indices, values, sparse_shape", function(_, ...) return dense_of(...) end }
P.SparseTensorDenseAdd = { "", "x1_indices, x1_values, x1_shape, x2", function(_, indices, values, shape, x)
  return dense_of(indices, values, shape) + x
end }
P.SparseTensorDenseMatmul = { "adjoint_st=false, adjoint_dt=false", "indices, values, sparse_shape, dense", function(a, indices, values,
  shape, x)
  local sparse = dense_of(indices, values, shape)
  return ops.matmul(a.adjoint_st and adjoint(sparse) or sparse, a.adjoint_dt and adjoint(x) or x)
end }
P.SparseSlice = { "", "indices, values, shape, start, size", function(_, indices, values, shape, start, size)
  local from, length, sizes, inside = numbers(start), numbers(size), {}, nil
  for axis, n in ipairs(numbers(shape)) do
    sizes[axis] = math.max(math.min(length[axis], n - from[axis]), 0)
    local column = ops.squeeze(ops.narrow(indices, 1, axis - 1, 1), 1)
    local here = ops.logical_and(ops.greater_equal(column, from[axis]), ops.less(column, from[axis] + sizes[axis]))
    inside = inside and ops.logical_and(inside, here) or here
  end
  local rows = ops.reshape(ops.nonzero(inside), { -1 })
  return ops.gather(indices, rows, 0) - ms.tensor(from, indices.dtype), ops.gather(values, rows, 0), ms.tensor(sizes, ms.int64)
end }

return P
