-- ms.scipy.linalg: linear algebra with scipy's names and arguments. Integers become float64; float32 stays, all is computed in float64.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"

local ops = ms.ops
local M = {}

local function float(where, x, name) return arrays.mean_float("scipy.linalg." .. where, name or "a", x) end

local function matrix(where, x, name)
  local a = float(where, x, name)
  if a.ndim < 2 then arrays.fail("scipy.linalg." .. where, ("%s must be a matrix, got shape %s"):format(name or "a", tostring(a.shape))) end
  return a
end

local function both(where, a, b)
  local x, y = matrix(where, a), float(where, b, "b")
  local dtype = arrays.promote(x.dtype, y.dtype)
  return arrays.cast(x, dtype), arrays.cast(y, dtype)
end

-- Right sides with one axis are columns; f gives the solution for a matrix.
local function with_columns(b, rank, f)
  if b.ndim ~= rank - 1 then return f(b) end
  return ops.squeeze(f(ops.expand_dims(b, -1)), -1)
end

local function t(x) return ops.swapaxes(x, -1, -2) end

--- The inverse of a matrix.
---     > ms.scipy.linalg.inv({ { 2.0, 0.0 }, { 0.0, 4.0 } }):tolist()[2][2] --> 0.25
function M.inv(a) return ops.inverse(matrix("inv", a)) end

--- The determinant of a matrix.
---     > ms.scipy.linalg.det({ { 2.0, 0.0 }, { 0.0, 4.0 } }):item() --> 8.0
function M.det(a) return ops.det(matrix("det", a)) end

--- Solves a x = b. trans: with the transpose of a. assume_a: "gen", "sym" or "pos", where Cholesky's factors are taken. lower: of
--- "sym" and "pos" the lower triangle counts.
---     > ms.scipy.linalg.solve({ { 2.0, 0.0 }, { 0.0, 4.0 } }, { 2.0, 2.0 }):tolist()[2] --> 0.5
function M.solve(a, b, lower, assume_a, trans)
  lower, assume_a, trans = arrays.named("scipy.linalg.solve", { "lower", "assume_a", "trans" }, lower, assume_a, trans)
  local x, y = both("solve", a, b)
  if assume_a == "pos" or assume_a == "sym" or assume_a == "her" then
    -- Only one triangle counts.
    local part = lower and ops.tril(x) or t(ops.triu(x))
    x = part + t(ops.tril(part, -1))
  elseif assume_a ~= nil and assume_a ~= "gen" then
    arrays.fail("scipy.linalg.solve", ("assume_a must be 'gen', 'sym' or 'pos', got %s"):format(arrays.describe(assume_a)))
  end
  return with_columns(y, x.ndim, function(columns)
    if assume_a == "pos" then return ops.cholesky_solve(columns, ops.cholesky(x)) end
    return ops.matrix_solve(x, columns, trans == true or trans == 1 or trans == "T")
  end)
end

--- Solves a x = b for an upper (or lower) triangle. trans: 0 or "N", 1 or "T" (with the transpose). unit_diagonal: the diagonal is
--- taken for ones.
---     > ms.scipy.linalg.solve_triangular({ { 2.0, 1.0 }, { 0.0, 4.0 } }, { 3.0, 4.0 }):tolist()[1] --> 1.0
function M.solve_triangular(a, b, trans, lower, unit_diagonal)
  trans, lower, unit_diagonal =
    arrays.named("scipy.linalg.solve_triangular", { "trans", "lower", "unit_diagonal" }, trans, lower, unit_diagonal)
  local x, y = both("solve_triangular", a, b)
  local turned = trans == 1 or trans == "T" or trans == 2 or trans == "C"
  return with_columns(y, x.ndim, function(columns)
    return ops.solve_triangular(x, columns, lower or false, turned, unit_diagonal or false)
  end)
end

--- Cholesky's factor of a positive definite matrix: upper, or lower if lower.
---     > ms.scipy.linalg.cholesky({ { 4.0, 2.0 }, { 2.0, 5.0 } }):tolist()[2][2] --> 2.0
function M.cholesky(a, lower)
  lower = arrays.named("scipy.linalg.cholesky", { "lower" }, lower)
  return ops.cholesky(matrix("cholesky", a), not lower)
end

--- Cholesky's factor for cho_solve, and whether it is lower: two results.
---     > select(2, ms.scipy.linalg.cho_factor({ { 4.0, 2.0 }, { 2.0, 5.0 } })) --> false
function M.cho_factor(a, lower)
  lower = arrays.named("scipy.linalg.cho_factor", { "lower" }, lower)
  return M.cholesky(a, lower), lower or false
end

--- Solves a x = b with what cho_factor gave, as a table { c, lower }.
---     > linalg = ms.scipy.linalg
---     > linalg.cho_solve({ linalg.cho_factor({ { 4.0, 2.0 }, { 2.0, 5.0 } }) }, { 8.0, 8.0 }):tolist()[2] --> 1.0
function M.cho_solve(c_and_lower, b)
  local x, y = both("cho_solve", c_and_lower[1], b)
  return with_columns(y, x.ndim, function(columns) return ops.cholesky_solve(columns, x, not c_and_lower[2]) end)
end

--- Factors of a matrix a = p l u: three results, or p l and u if permute_l.
---     > (select(3, ms.scipy.linalg.lu({ { 1.0, 2.0 }, { 4.0, 4.0 } }))):tolist()[1][1] --> 4.0
function M.lu(a, permute_l)
  permute_l = arrays.named("scipy.linalg.lu", { "permute_l" }, permute_l)
  local p, l, u = ops.lu_unpack(ops.lu_factor(matrix("lu", a)))
  if permute_l then return ops.matmul(p, l), u end
  return p, l, u
end

--- l and u in one matrix, and the exchanged rows: two results, for lu_solve.
---     > (ms.scipy.linalg.lu_factor({ { 1.0, 2.0 }, { 4.0, 4.0 } })):tolist()[2][1] --> 0.25
function M.lu_factor(a) return ops.lu_factor(matrix("lu_factor", a)) end

--- Solves a x = b with what lu_factor gave, as a table { lu, pivots }. trans: 1 for the transpose of a.
---     > linalg = ms.scipy.linalg
---     > linalg.lu_solve({ linalg.lu_factor({ { 2.0, 0.0 }, { 0.0, 4.0 } }) }, { 2.0, 2.0 }):tolist()[1] --> 1.0
function M.lu_solve(lu_and_piv, b, trans)
  trans = arrays.named("scipy.linalg.lu_solve", { "trans" }, trans)
  local x, y = both("lu_solve", lu_and_piv[1], b)
  return with_columns(y, x.ndim, function(columns)
    if trans == nil or trans == 0 then return ops.lu_solve(columns, x, lu_and_piv[2]) end
    local z = ops.solve_triangular(x, ops.solve_triangular(x, columns, false, true), true, true, true)
    return ops.matmul(ops.permutation_of_pivots(lu_and_piv[2], x.shape[x.ndim], x.dtype), z)
  end)
end

--- Eigenvalues and eigenvectors of a symmetric matrix, of which only one triangle counts: two results. b: of the problem a v = w b v with
--- a positive definite b. eigvals_only: the eigenvalues alone.
---     > (ms.scipy.linalg.eigh({ { 2.0, 0.0 }, { 0.0, 1.0 } })):tolist()[1] --> 1.0
function M.eigh(a, b, lower, eigvals_only)
  b, lower, eigvals_only = arrays.named("scipy.linalg.eigh", { "b", "lower", "eigvals_only" }, b, lower, eigvals_only)
  local x = matrix("eigh", a)
  local part = lower == false and t(ops.triu(x)) or ops.tril(x)
  x = part + t(ops.tril(part, -1))
  local factor
  if b ~= nil then
    factor = ops.cholesky(arrays.cast(matrix("eigh", b, "b"), x.dtype))
    x = ops.solve_triangular(factor, t(ops.solve_triangular(factor, x, true)), true)
  end
  local w, v = ops.eigh(x)
  if eigvals_only then return w end
  if factor then v = ops.solve_triangular(factor, v, true, true) end
  return w, v
end

--- Eigenvalues of a symmetric matrix.
---     > ms.scipy.linalg.eigvalsh({ { 2.0, 0.0 }, { 0.0, 1.0 } }):tolist()[2] --> 2.0
function M.eigvalsh(a, b, lower) return M.eigh(a, b, lower, true) end

--- Singular values and vectors a = u diag(s) vh: three results. full_matrices: u and vh are square (true). compute_uv: false gives s
--- alone.
---     > (select(2, ms.scipy.linalg.svd({ { 3.0, 0.0 }, { 0.0, 4.0 } }))):tolist()[1] --> 4.0
function M.svd(a, full_matrices, compute_uv)
  full_matrices, compute_uv = arrays.named("scipy.linalg.svd", { "full_matrices", "compute_uv" }, full_matrices, compute_uv)
  local x = matrix("svd", a)
  if compute_uv == false then return ops.svd(x, false, false) end
  local s, u, v = ops.svd(x, full_matrices ~= false)
  return u, s, t(v)
end

--- Singular values of a matrix.
---     > ms.scipy.linalg.svdvals({ { 3.0, 0.0 }, { 0.0, 4.0 } }):tolist()[1] --> 4.0
function M.svdvals(a) return M.svd(a, false, false) end

--- Orthogonal and upper triangular factor: two results. mode: "full", "economic", "r" (the triangle alone).
---     > ms.ops.abs((ms.scipy.linalg.qr({ { 3.0 }, { 4.0 } }, "economic"))):tolist()[1][1] --> 0.60000002384186
function M.qr(a, mode)
  mode = arrays.named("scipy.linalg.qr", { "mode" }, mode) or "full"
  if mode ~= "full" and mode ~= "economic" and mode ~= "r" then
    arrays.fail("scipy.linalg.qr", ("mode must be 'full', 'economic' or 'r', got %s"):format(arrays.describe(mode)))
  end
  local q, r = ops.qr(matrix("qr", a), mode == "economic" and "reduced" or "complete")
  if mode == "r" then return r end
  return q, r
end

--- The exponential of a matrix.
---     > ms.scipy.linalg.expm({ { 0.0, 0.0 }, { 0.0, 0.0 } }):tolist()[1][1] --> 1.0
function M.expm(a) return ops.matrix_exp(matrix("expm", a)) end

--- The pseudo-inverse of a matrix. atol, rtol: singular values up to atol + rtol times the largest one count as 0.
---     > ms.scipy.linalg.pinv({ { 2.0, 0.0 } }):tolist()[1][1] --> 0.5
function M.pinv(a, atol, rtol)
  atol, rtol = arrays.named("scipy.linalg.pinv", { "atol", "rtol" }, atol, rtol)
  local x = matrix("pinv", a)
  if atol == nil and rtol == nil then return ops.pinv(x) end
  return ops.pinv(x, { atol = atol, rtol = rtol })
end

--- Least squares: the x of the smallest norm for which the norm of a x - b is least, the sums of squared residuals (where a has full
--- rank and more rows than columns), the rank and the singular values: four results. cond: which singular values count as 0, as a
--- share of the largest.
---     > (ms.scipy.linalg.lstsq({ { 1.0 }, { 1.0 } }, { 1.0, 3.0 })):tolist()[1] --> 1.9999998807907
function M.lstsq(a, b, cond)
  cond = arrays.named("scipy.linalg.lstsq", { "cond" }, cond)
  local x, y = both("lstsq", a, b)
  if x.ndim ~= 2 then arrays.fail("scipy.linalg.lstsq", "a must be one matrix") end
  local m, n = x.shape[1], x.shape[2]
  local s, u, v = ops.svd(x)
  local least = cond or (x.dtype == ms.float32 and 2.0 ^ -23 or 2.0 ^ -52)
  local counts = ops.greater(s, ops.amax(s) * least)
  local inverse = ops.where(counts, 1.0 / ops.where(counts, s, ops.ones_like(s)), ops.zeros_like(s))
  local residual_sums = ops.zeros({ 0 }, x.dtype)
  local rank = ops.reduce_sum(ops.cast(counts, ms.int64)):item()
  local solution = with_columns(y, 2, function(columns)
    local z = ops.matmul(v, ops.reshape(inverse, { -1, 1 }) * ops.matmul(t(u), columns))
    if rank == n and m > n then residual_sums = ops.reduce_sum(ops.square(columns - ops.matmul(x, z)), 0) end
    return ops.reshape(z, { n, columns.shape[2] })
  end)
  return solution, y.ndim == 1 and residual_sums.size == 1 and ops.reshape(residual_sums, {}) or residual_sums, rank, s
end
--- Matrices along the diagonal of one, zeros elsewhere.
---     > ms.scipy.linalg.block_diag({ { 1, 2 } }, { { 3 } }).shape --> (2, 3)
function M.block_diag(...)
  local where, list = "scipy.linalg.block_diag", table.pack(...)
  if list.n == 0 then return ops.zeros({ 1, 0 }, ms.float32) end
  list = arrays.together(where, { "arrs" }, list, list.n)
  for i, x in ipairs(list) do
    if x.ndim > 2 then arrays.fail(where, "matrices are expected") end
    list[i] = ops.atleast_2d(x)
  end
  return ops.block_diag(list)
end

-- A matrix of a sequence's elements at the places that f(i, j) gives.
local function by_places(values, rows, columns, f)
  local i, j = ops.arange(0, rows):reshape { rows, 1 }, ops.arange(0, columns):reshape { 1, columns }
  return ops.gather(values, f(i, j), 0)
end

local function row(where, x, name) return ops.reshape((arrays.of("scipy.linalg." .. where, name, x)), { -1 }) end

--- The matrix with constant diagonals that has c as its first column and r as its first row (c).
---     > ms.scipy.linalg.toeplitz({ 1, 2, 3 }, { 1, 4 }):tolist()[1][2] --> 4
function M.toeplitz(c, r)
  r = arrays.named("scipy.linalg.toeplitz", { "r" }, r)
  local first, top = arrays.pair("scipy.linalg.toeplitz", row("toeplitz", c, "c"), row("toeplitz", r or c, "r"))
  local n, m = first.size, top.size
  local values = ops.concat({ ops.flip(first, { 0 }), ops.narrow(top, 0, 1, m - 1) }, 0)
  return by_places(values, n, m, function(i, j) return j - i + (n - 1) end)
end

--- The matrix with constant anti-diagonals that has c as its first column and r as its last row (zeros).
---     > ms.scipy.linalg.hankel({ 1, 2 }):tolist()[1][2] --> 2
function M.hankel(c, r)
  r = arrays.named("scipy.linalg.hankel", { "r" }, r)
  local first = row("hankel", c, "c")
  local last
  first, last = arrays.pair("scipy.linalg.hankel", first, r ~= nil and row("hankel", r, "r") or ops.zeros_like(first))
  local values = ops.concat({ first, ops.narrow(last, 0, 1, last.size - 1) }, 0)
  return by_places(values, first.size, last.size, function(i, j) return i + j end)
end

--- The matrix whose columns are c, each turned by one place more.
---     > ms.scipy.linalg.circulant({ 1, 2, 3 }):tolist()[1][2] --> 3
function M.circulant(c)
  local x = row("circulant", c, "c")
  return by_places(x, x.size, x.size, function(i, j) return ops.remainder(i - j, x.size) end)
end

--- Hilbert's matrix: 1 / (i + j + 1).
---     > ms.scipy.linalg.hilbert(2):tolist()[2][1] --> 0.5
function M.hilbert(n)
  local i = ops.arange(0, arrays.integer("scipy.linalg.hilbert", "n", n), 1, ms.float64)
  return 1.0 / (ops.reshape(i, { -1, 1 }) + i + 1.0)
end

--- Norm of vectors or matrices, see ms.numpy.norm.
---     > ms.scipy.linalg.norm({ 3.0, 4.0 }):item() --> 5.0
function M.norm(a, ord, axis, keepdims) return require("lunaria.numpy.linalg").norm(a, ord, axis, keepdims) end

return M
