-- Sparse matrices against dense ones: products, sums, transposes, gradients, conversions, messages; iterative solvers.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

-- The matrix with these values at every place where a formula says so, dense and sparse.
local function sample(rows, columns, seed)
  local list = {}
  for i = 1, rows do
    list[i] = {}
    for j = 1, columns do
      local there = (i * 7 + j * 5 + seed) % 3 == 0
      list[i][j] = there and ((i * 31 + j * 17 + seed) % 19 - 9) / 4 or 0.0
    end
  end
  return ms.tensor(list, ms.float64)
end

local function close(a, b, tolerance)
  t.equal(tostring(a.shape), tostring(b.shape))
  t.near(a.size == 0 and 0 or ops.amax(ops.abs(a - b)):item(), 0, tolerance or 1e-12)
end

for _, kind in ipairs { "dense_to_sparse_coo", "dense_to_sparse_csr" } do
  t.test(kind .. ": what it does equals what dense matrices do", function()
    local a, b, x = sample(5, 4, 1), sample(5, 4, 2), sample(4, 3, 5)
    local s, other = ms.sparse[kind](a), ms.sparse[kind](b)
    close(s:to_dense(), a)
    close(s:to_csr():to_coo():to_dense(), a)
    close(s:matmul(x), ops.matmul(a, x))
    close(s:mv(ops.narrow(x, 1, 0, 1):reshape { 4 }), ops.mv(a, ops.narrow(x, 1, 0, 1):reshape { 4 }))
    close(s:transpose():to_dense(), ops.t(a))
    close(s:transpose():matmul(b), ops.matmul(ops.t(a), b))
    close((s + other):to_dense(), a + b)
    close((s - other):to_dense(), a - b)
    close(s + b, a + b)
    close((s * 2.5):to_dense(), a * 2.5)
    close((s * b):to_dense(), a * b)
    close(s:matmul(ms.sparse[kind](x)):to_dense(), ops.matmul(a, x))
    close(s:sum(), ops.sum(a))
    close(s:sum(0), ops.sum(a, 0))
    close(s:sum(1), ops.sum(a, 1))
    close((-s):abs():to_dense(), ops.abs(a))
  end)
end

t.test("matrices without values, rows or columns", function()
  local empty = ms.COOTensor(ms.zeros({ 0, 2 }, { dtype = ms.int64 }), ms.zeros({ 0 }), { 3, 2 })
  close(empty:to_dense(), ms.zeros { 3, 2 })
  close(empty:to_csr():matmul(ms.ones { 2, 4 }), ms.zeros { 3, 4 })
  local none = ms.CSRTensor(ms.tensor { 0 }, ms.zeros({ 0 }, { dtype = ms.int64 }), ms.zeros({ 0 }), { 0, 2 })
  t.equal(none:matmul(ms.ones { 2, 4 }).shape[1], 0)
end)

t.test("equal coordinates are added up", function()
  local x = ms.COOTensor({ { 1, 1 }, { 0, 1 }, { 1, 1 } }, { 2.0, 5.0, 3.0 }, { 2, 2 })
  t.equal(x:coalesce().values:tolist(), { 5.0, 5.0 })
  t.equal(x:to_dense():tolist(), { { 0.0, 5.0 }, { 0.0, 5.0 } })
  t.equal(x:to_csr().indptr:tolist(), { 0, 1, 2 })
end)

t.test("gradients of values and of dense operands, to the second order", function()
  local a, x = sample(4, 5, 1), sample(5, 3, 4)
  local s = ms.sparse.dense_to_sparse_csr(a)
  local weights = ops.cos(ops.arange(0, 12, 1, ms.float64)):reshape { 4, 3 }
  local function sparse_loss(values, d)
    return ops.sum(ops.sin(ms.CSRTensor(s.indptr, s.indices, values, { 4, 5 }):matmul(d)) * weights)
  end
  local function dense_loss(m, d) return ops.sum(ops.sin(ops.matmul(m, d)) * weights) end
  local dv, dx = table.unpack(ms.grad(sparse_loss, { 0, 1 })(s.values, x))
  local dm, dd = table.unpack(ms.grad(dense_loss, { 0, 1 })(a, x))
  local at = s:to_coo().indices
  close(dv, ops.gather_nd(dm, at))
  close(dx, dd)
  local function second(f) return ms.grad(function(d) return ops.sum(ms.grad(f, 1)(d[1], d[2]) ^ 2) end) end
  close(second(sparse_loss)({ s.values, x })[2], second(dense_loss)({ a, x })[2], 1e-10)
  local cubes = ms.grad(function(values) return ops.sum(ms.COOTensor(at, values, { 4, 5 }):to_dense() ^ 3) end)(s.values)
  close(cubes, 3.0 * s.values ^ 2)
end)

t.test("systems by iteration: dense, sparse, given by a function", function()
  local n, list = 30, {}
  for i = 1, n do
    list[i] = {}
    for j = 1, n do list[i][j] = i == j and 4.0 or math.abs(i - j) == 1 and -1.0 or 0.0 end
  end
  local a = ms.tensor(list, ms.float64)
  local b = ops.sin(ops.arange(0, n, 1, ms.float64))
  local wanted = ops.matrix_solve(a, b:reshape { n, 1 }):reshape { n }
  local skew = a + ms.tensor(list, ms.float64):triu(1) * 0.7
  local wanted_skew = ops.matrix_solve(skew, b:reshape { n, 1 }):reshape { n }
  local linalg = ms.scipy.sparse.linalg
  for _, A in ipairs { a, ms.sparse.dense_to_sparse_csr(a), function(x) return ops.mv(a, x) end } do
    local x, info = linalg.cg(A, b, { rtol = 1e-12 })
    t.equal(info, 0)
    close(x, wanted, 1e-10)
  end
  for _, name in ipairs { "gmres", "bicgstab" } do
    local x, info = linalg[name](skew, b, { rtol = 1e-12 })
    t.equal(info, 0)
    close(x, wanted_skew, 1e-10)
    x = linalg[name](skew, b, { rtol = 1e-12, M = function(v) return v / 4.0 end })
    close(x, wanted_skew, 1e-10)
  end
  t.equal(select(2, linalg.cg(a, b, { rtol = 1e-12, maxiter = 2 })), 2)
end)

t.test("wrong arguments", function()
  local one = ms.sparse.dense_to_sparse_csr(ms.ones { 2, 2 })
  t.fails({ "COOTensor: indices must have shape (1, 2)" }, function() ms.COOTensor({ { 0 } }, { 1.0 }, { 2, 2 }) end)
  t.fails({ "COOTensor: indices holds an index" }, function() ms.COOTensor({ { 0, 2 } }, { 1.0 }, { 2, 2 }) end)
  t.fails({ "CSRTensor: indptr must rise" }, function() ms.CSRTensor({ 0, 2, 1 }, { 0 }, { 1.0 }, { 2, 2 }) end)
  t.fails({ "CSRTensor: indptr must have 3 elements" }, function() ms.CSRTensor({ 0, 1 }, { 0 }, { 1.0 }, { 2, 2 }) end)
  t.fails({ "matmul: the matrix is (2, 2)" }, function() one:matmul(ms.ones { 3, 2 }) end)
  t.fails({ "add: the matrices are (2, 2) and (2, 3)" }, function()
    one:add(ms.sparse.dense_to_sparse_csr(ms.ones { 2, 3 }))
  end)
  t.fails({ "csr_matmul: column 5 is out of range" }, function()
    ops.csr_matmul(ms.tensor { 0, 1 }, ms.tensor { 5 }, ms.tensor { 1.0 }, ms.ones { 2, 2 })
  end)
  t.fails({ "csr_matmul: indptr must begin with 0" }, function()
    ops.csr_matmul(ms.tensor { 1, 1 }, ms.tensor { 0 }, ms.tensor { 1.0 }, ms.ones { 2, 2 })
  end)
end)

t.finish()
