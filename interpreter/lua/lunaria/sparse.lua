-- ms.sparse: sparse matrices as coordinates (COO) and as rows (CSR). They hold tensors, are values like these, and are
-- differentiated through: derivatives of dense results with respect to the values of a sparse matrix are tensors of as many values.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local COOTensor, CSRTensor = {}, {}
COOTensor.__name, CSRTensor.__name = "COOTensor", "CSRTensor"
COOTensor._name, CSRTensor._name = "COOTensor", "CSRTensor"

local function as_tensor(where, name, value, integers)
  if type(value) == "table" and getmetatable(value) == nil then value = ms.tensor(value) end
  if not ms.is_tensor(value) then fail(where, ("%s must be a tensor, got %s"):format(name, describe(value))) end
  if integers and value.dtype ~= ms.int32 and value.dtype ~= ms.int64 then
    fail(where, ("%s must hold int32 or int64, got %s"):format(name, tostring(value.dtype)))
  end
  return value
end

local function as_shape(where, shape)
  local rows, columns = math.tointeger(shape and shape[1]), math.tointeger(shape and shape[2])
  if not rows or not columns or shape[3] ~= nil or rows < 0 or columns < 0 then
    fail(where, ("shape must be a table of two sizes, got %s"):format(describe(shape)))
  end
  return { rows, columns }
end

local function is_sparse(x) return type(x) == "table" and (getmetatable(x) == COOTensor or getmetatable(x) == CSRTensor) end

local function dense_operand(where, x)
  if is_sparse(x) then return x:to_dense() end
  return as_tensor(where, "the operand", x)
end

-- The row and the column of each value.
local function places(x)
  if getmetatable(x) == COOTensor then
    local n = x.values.size
    return ops.reshape(ops.narrow(x.indices, 1, 0, 1), { n }), ops.reshape(ops.narrow(x.indices, 1, 1, 1), { n })
  end
  local each = ops.arange(0, x.values.size, 1, x.indptr.dtype)
  return ops.cast(ops.searchsorted(x.indptr, each, { right = true }) - 1, x.indices.dtype), x.indices
end

local function new_coo(indices, values, shape)
  return setmetatable({ indices = indices, values = values, shape = shape, dtype = values.dtype, ndim = 2, size = values.size }, COOTensor)
end

local function new_csr(indptr, indices, values, shape)
  return setmetatable(
    { indptr = indptr, indices = indices, values = values, shape = shape, dtype = values.dtype, ndim = 2, size = values.size }, CSRTensor)
end

-- Sorted by rows and columns, equal places added up.
local function ordered(rows, columns, values, shape)
  local key = ops.cast(rows, ms.int64) * shape[2] + ops.cast(columns, ms.int64)
  local places_, inverse = ops.unique(key)
  local n = places_.size
  if n == 0 then return rows, columns, values end
  local sums = ops.unsorted_segment_sum(values, ops.reshape(inverse, { -1 }), n)
  return ops.cast(ops.floor_divide(places_, shape[2]), rows.dtype), ops.cast(ops.remainder(places_, shape[2]), rows.dtype), sums
end

local function csr_of(rows, columns, values, shape)
  rows, columns, values = ordered(rows, columns, values, shape)
  local starts = ops.searchsorted(rows, ops.arange(0, shape[1] + 1, 1, rows.dtype))
  if values.size == 0 then starts = ops.zeros({ shape[1] + 1 }, rows.dtype) end
  return new_csr(ops.cast(starts, rows.dtype), columns, values, shape)
end

local methods = {}

--- The matrix with all its zeros.
---     > ms.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):to_dense():tolist()[1][2] --> 5.0
function methods.to_dense(x)
  local rows, columns = places(x)
  local shape = x.shape
  local at = ops.cast(rows, ms.int64) * shape[2] + ops.cast(columns, ms.int64)
  local flat = ops.unsorted_segment_sum(x.values, at, math.max(shape[1] * shape[2], 1))
  if shape[1] * shape[2] == 0 then return ops.zeros(shape, x.values.dtype) end
  return ops.reshape(flat, shape)
end

--- The matrix as rows.
---     > ms.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):to_csr().indptr:tolist()[2] --> 1
function methods.to_csr(x)
  if getmetatable(x) == CSRTensor then return x end
  local rows, columns = places(x)
  return csr_of(rows, columns, x.values, x.shape)
end

--- The matrix as coordinates.
---     > ms.CSRTensor({ 0, 1 }, { 1 }, { 5.0 }, { 1, 2 }):to_coo().indices:tolist()[1][2] --> 1
function methods.to_coo(x)
  if getmetatable(x) == COOTensor then return x end
  local rows, columns = places(x)
  return new_coo(ops.stack({ rows, columns }, 1), x.values, x.shape)
end

--- Coordinates in order, of which each is there once: values of equal ones are added up.
---     > ms.COOTensor({ { 0, 1 }, { 0, 1 } }, { 5.0, 1.0 }, { 1, 2 }):coalesce().values:tolist()[1] --> 6.0
function methods.coalesce(x)
  local rows, columns = places(x)
  local values
  rows, columns, values = ordered(rows, columns, x.values, x.shape)
  return new_coo(ops.stack({ rows, columns }, 1), values, x.shape)
end

--- Product with a dense matrix or vector, or with a sparse matrix, which gives a sparse one in rows.
---     > ms.CSRTensor({ 0, 1 }, { 1 }, { 5.0 }, { 1, 2 }):matmul(ms.tensor { 1.0, 2.0 }):tolist()[1] --> 10.0
function methods.matmul(x, other)
  local a = methods.to_csr(x)
  if is_sparse(other) then
    -- Each value of a meets a whole row of the other: the products are values of the result.
    local b = methods.to_csr(other)
    if a.shape[2] ~= b.shape[1] then
      fail("matmul", ("the matrices are (%d, %d) and (%d, %d): the columns of the first must be the rows of the second"):format(
        a.shape[1], a.shape[2], b.shape[1], b.shape[2]))
    end
    local rows, columns = places(a)
    local first = ops.gather(b.indptr, columns, 0)
    local counts = ops.gather(b.indptr, columns + 1, 0) - first
    local owner = ops.repeat_interleave(ops.arange(0, a.values.size, 1, ms.int64), counts)
    local before = ops.cumsum(ops.cast(counts, ms.int64), 0) - ops.cast(counts, ms.int64)
    local at = ops.arange(0, owner.size, 1, ms.int64) - ops.gather(before, owner, 0) + ops.cast(ops.gather(first, owner, 0), ms.int64)
    local values = ops.gather(a.values, owner, 0) * ops.gather(b.values, at, 0)
    return csr_of(ops.gather(rows, owner, 0), ops.gather(b.indices, at, 0), values, { a.shape[1], b.shape[2] })
  end
  other = as_tensor("matmul", "the operand", other)
  if other.ndim ~= 1 and other.ndim ~= 2 or other.shape[1] ~= a.shape[2] then
    fail("matmul", ("the matrix is (%d, %d) and the operand has shape %s: it must have %d rows"):format(a.shape[1], a.shape[2],
      tostring(other.shape), a.shape[2]))
  end
  if other.ndim == 2 then return ops.csr_matmul(a.indptr, a.indices, a.values, other) end
  return ops.reshape(ops.csr_matmul(a.indptr, a.indices, a.values, ops.reshape(other, { -1, 1 })), { a.shape[1] })
end
--- The same as matmul with a dense matrix.
---     > ms.CSRTensor({ 0, 1 }, { 1 }, { 5.0 }, { 1, 2 }):mm(ms.tensor { { 1.0 }, { 2.0 } }).shape --> (1, 1)
function methods.mm(x, other) return methods.matmul(x, other) end

--- The same as matmul with a vector.
---     > ms.CSRTensor({ 0, 1 }, { 1 }, { 5.0 }, { 1, 2 }):mv(ms.tensor { 1.0, 2.0 }):tolist()[1] --> 10.0
function methods.mv(x, other) return methods.matmul(x, other) end

local function same_shape(where, a, b)
  if a.shape[1] ~= b.shape[1] or a.shape[2] ~= b.shape[2] then
    fail(where, ("the matrices are (%d, %d) and (%d, %d): their shapes must be the same"):format(a.shape[1], a.shape[2], b.shape[1],
      b.shape[2]))
  end
end

local function as_kind(result, like) return getmetatable(like) == CSRTensor and methods.to_csr(result) or result end

--- Sum with a matrix of the same shape: sparse with a sparse one, dense with a dense one.
---     > ms.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):add(ms.ones { 1, 2 }):tolist()[1][2] --> 6.0
function methods.add(x, other)
  if not is_sparse(other) then return methods.to_dense(x) + dense_operand("add", other) end
  same_shape("add", x, other)
  local r1, c1 = places(x)
  local r2, c2 = places(other)
  local rows, columns = ops.concat({ r1, ops.cast(r2, r1.dtype) }, 0), ops.concat({ c1, ops.cast(c2, c1.dtype) }, 0)
  local dtype = (x.values[{ ms.slice(0, 0) }] + other.values[{ ms.slice(0, 0) }]).dtype
  local values = ops.concat({ ops.cast(x.values, dtype), ops.cast(other.values, dtype) }, 0)
  return as_kind(methods.coalesce(new_coo(ops.stack({ rows, columns }, 1), values, { x.shape[1], x.shape[2] })), x)
end

-- The same places with other values.
local function with_values(x, values)
  if getmetatable(x) == COOTensor then return new_coo(x.indices, values, x.shape) end
  return new_csr(x.indptr, x.indices, values, x.shape)
end

--- Product with a number, or element by element with a dense matrix of the same shape.
---     > ms.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):mul(2).values:tolist()[1] --> 10.0
function methods.mul(x, other)
  if math.type(other) or (ms.is_tensor(other) and other.size == 1) then return with_values(x, x.values * other) end
  other = dense_operand("mul", other)
  if other.ndim ~= 2 then fail("mul", "the operand must be a number or a matrix") end
  same_shape("mul", x, { shape = { other.shape[1], other.shape[2] } })
  local rows, columns = places(x)
  return with_values(x, x.values * ops.gather_nd(other, ops.stack({ rows, columns }, 1)))
end

--- Rows and columns exchanged.
---     > ms.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):transpose().shape[1] --> 2
function methods.transpose(x)
  local rows, columns = places(x)
  return as_kind(new_coo(ops.stack({ columns, rows }, 1), x.values, { x.shape[2], x.shape[1] }), x)
end

--- The same as transpose.
---     > ms.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):t().shape[2] --> 1
function methods.t(x) return methods.transpose(x) end

--- The sum of all values, or of the rows (axis 1) or columns (axis 0), as a dense tensor.
---     > ms.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):sum():item() --> 5.0
function methods.sum(x, axis)
  axis = arguments.named("sum", { "axis" }, axis)
  if axis == nil then return ops.sum(x.values) end
  if axis ~= 0 and axis ~= 1 and axis ~= -1 and axis ~= -2 then fail("sum", ("axis must be 0 or 1, got %s"):format(describe(axis))) end
  local rows, columns = places(x)
  local by_row = axis == 1 or axis == -1
  return ops.unsorted_segment_sum(x.values, by_row and rows or columns, by_row and x.shape[1] or x.shape[2])
end

--- The absolute values.
---     > ms.COOTensor({ { 0, 1 } }, { -5.0 }, { 1, 2 }):abs().values:tolist()[1] --> 5.0
function methods.abs(x) return with_values(x, ops.abs(x.values)) end

--- Values of another dtype.
---     > ms.COOTensor({ { 0, 1 } }, { 5.0 }, { 1, 2 }):astype(ms.float64).dtype --> Float64
function methods.astype(x, dtype) return with_values(x, ops.cast(x.values, dtype)) end

local function text(x)
  local dtype = tostring(x.values.dtype)
  return ("%s(shape=[%d, %d], dtype=%s, %d values)"):format(getmetatable(x)._name, x.shape[1], x.shape[2], dtype, x.values.size)
end

local function product(a, b)
  if is_sparse(a) then return methods.mul(a, b) end
  return methods.mul(b, a)
end
local function sum(a, b)
  if is_sparse(a) then return methods.add(a, b) end
  return methods.add(b, a)
end

for _, class in ipairs { COOTensor, CSRTensor } do
  for name, f in pairs(methods) do class[name] = f end
  class.__index, class.__tostring, class.__mul, class.__add = class, text, product, sum
  class.__unm = function(x) return with_values(x, -x.values) end
  class.__sub = function(a, b) return sum(a, -b) end
end

COOTensor._parameters = "indices, values, shape"
COOTensor._doc = [[A sparse matrix as coordinates: values[i] stands at row and column indices[i].

indices: a tensor of integers (n, 2). values: a tensor of n values. shape: { rows, columns }. Fields: indices, values, shape, dtype.
Values of places that are named more than once are added up.

  > ms.COOTensor({ { 0, 1 }, { 1, 0 } }, { 5.0, 6.0 }, { 2, 2 }):to_dense():tolist()[2][1] --> 6.0]]
CSRTensor._parameters = "indptr, indices, values, shape"
CSRTensor._doc = [[A sparse matrix as rows: row i has the values from indptr[i] up to indptr[i + 1], in the columns that indices names.

indptr: a tensor of rows + 1 integers. indices: the columns of the values. values: their tensor. shape: { rows, columns }.
Fields: indptr, indices, values, shape, dtype.

  > ms.CSRTensor({ 0, 1, 2 }, { 1, 0 }, { 5.0, 6.0 }, { 2, 2 }):to_dense():tolist()[2][1] --> 6.0]]

local function in_range(where, name, index, size)
  if index.size > 0 and (ops.amin(index):item() < 0 or ops.amax(index):item() >= size) then
    fail(where, ("%s holds an index that is not from 0 to %d"):format(name, size - 1))
  end
end

setmetatable(COOTensor, {
  __call = function(_, indices, values, shape)
    local where = "COOTensor"
    indices, values, shape = as_tensor(where, "indices", indices, true), as_tensor(where, "values", values), as_shape(where, shape)
    if values.ndim ~= 1 then fail(where, ("values must have one axis, got %d"):format(values.ndim)) end
    if indices.ndim ~= 2 or indices.shape[1] ~= values.size or indices.shape[2] ~= 2 then
      fail(where, ("indices must have shape (%d, 2), got %s"):format(values.size, tostring(indices.shape)))
    end
    if values.size > 0 then
      in_range(where, "indices", ops.narrow(indices, 1, 0, 1), shape[1])
      in_range(where, "indices", ops.narrow(indices, 1, 1, 1), shape[2])
    end
    return new_coo(indices, values, shape)
  end,
})

setmetatable(CSRTensor, {
  __call = function(_, indptr, indices, values, shape)
    local where = "CSRTensor"
    indptr, indices = as_tensor(where, "indptr", indptr, true), as_tensor(where, "indices", indices, true)
    values, shape = as_tensor(where, "values", values), as_shape(where, shape)
    if values.ndim ~= 1 or indices.ndim ~= 1 or indices.size ~= values.size then
      fail(where, ("there are %d indices and %d values: each value has a column"):format(indices.size, values.size))
    end
    if indptr.ndim ~= 1 or indptr.size ~= shape[1] + 1 then
      fail(where, ("indptr must have %d elements, got %d"):format(shape[1] + 1, indptr.size))
    end
    if indptr.dtype ~= indices.dtype then indptr, indices = ops.cast(indptr, ms.int64), ops.cast(indices, ms.int64) end
    local falls = ops.any(ops.less(ops.narrow(indptr, 0, 1, shape[1]), ops.narrow(indptr, 0, 0, shape[1]))):item()
    if indptr[0]:item() ~= 0 or indptr[-1]:item() ~= values.size or falls then
      fail(where, ("indptr must rise from 0 to the number of values, %d"):format(values.size))
    end
    in_range(where, "indices", indices, shape[2])
    return new_csr(indptr, indices, values, shape)
  end,
})

local M = { COOTensor = COOTensor, CSRTensor = CSRTensor }

--- The sparse matrix, as coordinates, of a dense one: of its elements that are not 0.
---     > ms.sparse.dense_to_sparse_coo(ms.tensor { { 0.0, 5.0 } }).values:tolist()[1] --> 5.0
function M.dense_to_sparse_coo(tensor)
  local x = as_tensor("dense_to_sparse_coo", "tensor", tensor)
  if x.ndim ~= 2 then fail("dense_to_sparse_coo", ("tensor must be a matrix, got shape %s"):format(tostring(x.shape))) end
  local at = ops.cast(ops.argwhere(ops.not_equal(x, 0)), ms.int64)
  return new_coo(at, ops.gather_nd(x, at), { x.shape[1], x.shape[2] })
end

--- The sparse matrix, as rows, of a dense one: of its elements that are not 0.
---     > ms.sparse.dense_to_sparse_csr(ms.tensor { { 0.0, 5.0 } }).indices:tolist()[1] --> 1
function M.dense_to_sparse_csr(tensor) return M.dense_to_sparse_coo(tensor):to_csr() end

--- indptr of the rows that these rising row numbers belong to.
---     > ms.sparse.coo2csr(ms.tensor { 0, 1, 1 }, 2):tolist()[3] --> 3
function M.coo2csr(row_indices, height)
  local rows = as_tensor("coo2csr", "row_indices", row_indices, true)
  return ops.cast(ops.searchsorted(rows, ops.arange(0, height + 1, 1, rows.dtype)), rows.dtype)
end

--- The row number of each value from indptr.
---     > ms.sparse.csr2coo(ms.tensor { 0, 1, 3 }, 3):tolist()[3] --> 1
function M.csr2coo(indptr, values_num)
  local starts = as_tensor("csr2coo", "indptr", indptr, true)
  return ops.cast(ops.searchsorted(starts, ops.arange(0, values_num, 1, starts.dtype), { right = true }) - 1, starts.dtype)
end

return M
