-- Linear algebra on complex matrices: what the factors multiply to, and gradients against central differences along random
-- directions. Losses do not depend on what a decomposition leaves open (the phases of its vectors).
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local DTYPES = { complex64 = { real = ms.float32, near = 2e-5 }, complex128 = { real = ms.float64, near = 1e-12 } }

local function random(real, ...)
  local shape = { ... }
  return ops.complex(ops.randn(shape, { dtype = real }), ops.randn(shape, { dtype = real }))
end

local function rows(a) return a.shape[#a.shape - 1] end
local function columns(a) return a.shape[#a.shape] end
local function adjoint(a) return ops.conj(ops.swapaxes(a, -1, -2)) end
local function positive(a) return ops.matmul(a, adjoint(a)) + ops.eye(columns(a), columns(a), a.dtype) end

local function apart(got, wanted)
  t.equal(got.shape, wanted.shape)
  if got:numel() == 0 then return 0 end
  return ops.abs(got - wanted):max():item() / math.max(1, ops.abs(wanted):max():item())
end

-- f(near, check) for both dtypes, for single matrices, batches and none.
local function for_all(f)
  for name, d in pairs(DTYPES) do
    for _, shape in ipairs { { 1, 1 }, { 3, 3 }, { 5, 3 }, { 2, 4 }, { 2, 3, 3 }, { 2, 2, 4, 3 }, { 0, 3, 3 }, { 0, 0 } } do
      local a = random(d.real, table.unpack(shape))
      local function check(got, wanted, what)
        local distance = apart(got, wanted)
        if not (distance <= d.near * 10) then
          error(("%s of a %s matrix (%s) is off by %g"):format(what, name, table.concat(shape, "x"), distance))
        end
      end
      f(a, check, d.real)
    end
  end
end

local function is_square(a) return columns(a) == rows(a) end

t.test("inverses, systems, determinants", function()
  ms.set_seed(3)
  for_all(function(a, check, real)
    if not is_square(a) then return end
    local n = columns(a)
    a = a + 3 * ops.eye(n, n, a.dtype)
    local one = ops.broadcast_to(ops.eye(n, n, a.dtype), a.shape)
    check(ops.matmul(a, ops.inverse(a)), one, "the inverse")
    check(ops.matmul(a, ops.matrix_solve(a, one)), one, "the solution")
    check(ops.matmul(adjoint(a), ops.matrix_solve(a, one, true)), one, "the solution with the adjoint")
    check(ops.matmul(a, ops.pinv(a)), one, "the pseudo-inverse")
    local sign, size = ops.slogdet(a)
    t.equal({ sign.dtype, size.dtype }, { a.dtype, real })
    check(sign * ops.exp(size), ops.det(a), "slogdet")
    check(ops.exp(ops.logdet(a)), ops.det(a), "logdet")
    check(ops.det(ops.matmul(a, a)), ops.det(a) * ops.det(a), "the determinant of a square")
    check(ops.matmul(a, ops.swapaxes(ops.cofactor(a), -1, -2)), one * ops.expand_dims(ops.expand_dims(ops.det(a), -1), -1), "cofactors")
    check(ops.matmul(ops.matrix_exp(a * 0.3), ops.matrix_exp(a * -0.3)), one, "the exponential")
    check(ops.matrix_power(a, 3), ops.matmul(ops.matmul(a, a), a), "the third power")
    check(ops.matmul(ops.matrix_power(a, -2), ops.matmul(a, a)), one, "the power -2")
  end)
  -- By hand.
  local m = ops.complex(ms.tensor { { 1.0, 0.0 }, { 2.0, 1.0 } }, ms.tensor { { 0.0, 1.0 }, { 0.0, 1.0 } })
  t.near(ops.view_as_real(ops.det(m)), ms.tensor { 1.0, -1.0 }, 1e-6)
  local turn = ops.matrix_exp(ops.complex(ms.tensor { { 0.0 } }, ms.tensor { { math.pi } }))
  t.near(ops.view_as_real(turn), ms.tensor { { { -1.0, 0.0 } } }, 1e-6)
end)

t.test("decompositions", function()
  ms.set_seed(4)
  for_all(function(a, check, real)
    local function weighted(u, s) return u * ops.expand_dims(s, -2) end
    local s, u, v = ops.svd(a)
    t.equal({ s.dtype, u.dtype }, { real, a.dtype })
    check(ops.matmul(weighted(u, s), adjoint(v)), a, "svd")
    check(ops.svd(a, false, false), s, "the singular values alone")
    local q, r = ops.qr(a)
    check(ops.matmul(q, r), a, "qr")
    local gram = ops.matmul(adjoint(q), q)
    check(gram, ops.broadcast_to(ops.eye(columns(q), columns(q), a.dtype), gram.shape), "q of qr")
    check(ops.triu(r), r, "r of qr")
    local complete, rest = ops.qr(a, "complete")
    check(ops.matmul(complete, rest), a, "the complete qr")
    local packed, tau = ops.geqrf(a)
    if columns(a) <= rows(a) then
      check(ops.matmul(ops.orgqr(packed, tau), r), a, "orgqr")
      check(ops.narrow(ops.ormqr(packed, tau, a, true, true), -2, 0, columns(a)), r, "ormqr")
    end
    local lu, pivots = ops.lu_factor(a)
    local p, l, upper = ops.lu_unpack(lu, pivots)
    check(ops.matmul(ops.matmul(p, l), upper), a, "lu")
    if not is_square(a) then return end
    local h = positive(a)
    check(ops.matmul(ops.cholesky(h), adjoint(ops.cholesky(h))), h, "cholesky")
    check(ops.matmul(adjoint(ops.cholesky(h, true)), ops.cholesky(h, true)), h, "the upper cholesky")
    check(ops.matmul(h, ops.cholesky_solve(a, ops.cholesky(h))), a, "cholesky_solve")
    check(ops.cholesky_inverse(ops.cholesky(h, true), true), ops.inverse(h), "cholesky_inverse")
    check(ops.matmul(a + 3, ops.lu_solve(h, ops.lu_factor(a + 3))), h, "lu_solve")
    local w, x = ops.eigh(h)
    t.equal({ w.dtype, x.dtype }, { real, a.dtype })
    check(ops.matmul(weighted(x, w), adjoint(x)), h, "eigh")
    local values, vectors = ops.eig(a)
    check(ops.matmul(a, vectors), weighted(vectors, values), "eig")
    check(ops.norm(vectors, 2, -2), ops.ones(values.shape, { dtype = real }), "the norms of eigenvectors")
    for _, lower in ipairs { true, false } do
      local triangle = lower and ops.tril(a + 2) or ops.triu(a + 2)
      check(ops.matmul(triangle, ops.solve_triangular(a + 2, h, lower)), h, "solve_triangular")
      check(ops.matmul(ops.swapaxes(triangle, -1, -2), ops.solve_triangular(a + 2, h, lower, true)), h, "solve_triangular, transposed")
    end
  end)
end)

t.test("matrices of more than one block", function()
  ms.set_seed(8)
  local n = 850
  local a, one = random(ms.float64, n, n), ops.eye(n, n, ms.complex128)
  t.equal(apart(ops.matmul(a, ops.inverse(a)), one) < 1e-8, true)
  t.equal(apart(ops.matmul(adjoint(a), ops.matrix_solve(a, one, true)), one) < 1e-8, true)
  local h = positive(a)
  local l = ops.cholesky(h)
  t.equal(apart(ops.matmul(l, adjoint(l)), h) < 1e-12, true)
end)

t.test("least squares, condition numbers and a real matrix with a complex right side", function()
  ms.set_seed(5)
  local a, b = random(ms.float64, 5, 3), random(ms.float64, 5, 2)
  local x = ops.lstsq(a, b)
  t.equal(apart(ops.matmul(adjoint(a), ops.matmul(a, x)), ops.matmul(adjoint(a), b)) < 1e-12, true)
  local s = ops.svd(a, false, false)
  t.near(ops.cond(a), s[0] / s[2], 1e-10)
  local real = ops.randn({ 5, 5 }, { dtype = ms.float64 })
  t.equal(apart(ops.matmul(ops.cast(real, ms.complex128), ops.matrix_solve(real, b)), b) < 1e-12, true)
end)

-- Re <gradient, direction> against a central difference.
local function check_gradient(name, f, a, near)
  local gradient = ms.grad(f)(a)
  t.equal(gradient.dtype, a.dtype)
  for _ = 1, 3 do
    local direction = random(ms.float64, table.unpack(a.shape))
    if a.dtype == ms.float64 then direction = ops.real(direction) end
    local step = 1e-5
    local slope = ((f(a + direction * step) - f(a - direction * step)) / (2 * step)):item()
    local got = ops.real(ops.conj(gradient) * direction):sum():item()
    if not (math.abs(slope - got) <= (near or 1e-6) * math.max(1, math.abs(slope))) then
      error(("%s: the slope is %.9g, the gradient gives %.9g"):format(name, slope, got))
    end
  end
end

-- Weights that make a real number of any complex tensor.
local function weigh(x)
  local n = x:numel()
  local c = ops.reshape(ops.cos(ops.arange(1, n + 1) * 1.7), x.shape)
  if x.dtype ~= ms.complex128 then return (x * c):sum() end
  return (ops.real(x) * c):sum() + (ops.imag(x) * ops.sin(c * 3)):sum()
end

t.test("gradients of what is holomorphic", function()
  ms.set_seed(6)
  local eye = 2 * ops.eye(3, 3, ms.complex128)
  local b = random(ms.float64, 3, 2)
  local functions = {
    inverse = function(a) return weigh(ops.inverse(a)) end,
    det = function(a) return weigh(ops.det(a)) end,
    cofactor = function(a) return weigh(ops.cofactor(a)) end,
    slogdet = function(a) local sign, size = ops.slogdet(a) return weigh(sign) + weigh(size) * 0.7 end,
    sign = function(a) local sign = ops.slogdet(a) return weigh(sign) end,
    logdet = function(a) return weigh(ops.logdet(a)) end,
    solve = function(a) return weigh(ops.matrix_solve(a, b)) end,
    adjoint_solve = function(a) return weigh(ops.matrix_solve(a, b, true)) end,
    matrix_exp = function(a) return weigh(ops.matrix_exp(a)) end,
    matrix_power = function(a) return weigh(ops.matrix_power(a, -2)) end,
    lu_factor = function(a) local lu = ops.lu_factor(a) return weigh(lu) end,
    triangle = function(a) return weigh(ops.solve_triangular(a, b, true)) end,
    transposed_triangle = function(a) return weigh(ops.solve_triangular(a, b, false, true)) end,
    unit_triangle = function(a) return weigh(ops.solve_triangular(a, b, true, true, true)) end,
    lu_solve = function(a) return weigh(ops.lu_solve(b, ops.lu_factor(a))) end,
  }
  for name, f in pairs(functions) do
    check_gradient(name, f, random(ms.float64, 3, 3) + eye)
    check_gradient(name .. " of a batch", function(a) return f(a[0]) * 2 + f(a[1]) end, random(ms.float64, 2, 3, 3) + eye)
  end
  for _, transposed in ipairs { false, true } do
    local a = random(ms.float64, 3, 3) + eye
    check_gradient("the right side", function(x) return weigh(ops.matrix_solve(a, x, transposed)) end, b)
    check_gradient("a vector on the right", function(x) return weigh(ops.matrix_solve(a, x, transposed)) end, random(ms.float64, 3))
    check_gradient("beside a vector", function(m) return weigh(ops.matrix_solve(m, b[":, 0"], transposed)) end, a)
    check_gradient("the right side of a triangle", function(x) return weigh(ops.solve_triangular(a, x, true, transposed)) end, b)
  end
end)

t.test("gradients of decompositions", function()
  ms.set_seed(7)
  local function phaseless(u, weights)  -- u diag(weights) u^H, whatever the phases of u's columns
    return weigh(ops.matmul(u * ops.expand_dims(weights, -2), adjoint(u)))
  end
  for _, shape in ipairs { { 3, 3 }, { 4, 3 }, { 3, 5 }, { 2, 3, 3 } } do
    local a = random(ms.float64, table.unpack(shape))
    local least = math.min(shape[#shape], shape[#shape - 1])
    local ramp = ops.arange(1, least + 1, 1, ms.float64)
    check_gradient("pinv", function(x) return weigh(ops.pinv(x)) end, a)
    check_gradient("svd's values", function(x) return weigh(ops.svd(x, false, false)) end, a)
    check_gradient("svd's left", function(x) local _, u = ops.svd(x) return phaseless(u, ramp) end, a)
    check_gradient("svd's right", function(x) local _, _, v = ops.svd(x) return phaseless(v, ramp) end, a)
    check_gradient("svd's both", function(x)
      local s, u, v = ops.svd(x)
      return weigh(ops.matmul(u * ops.expand_dims(s * ramp, -2), adjoint(v)))
    end, a)
    check_gradient("qr", function(x) local q, r = ops.qr(x) return weigh(q) + weigh(r) * 0.3 end, a)
    if shape[#shape] == shape[#shape - 1] then
      check_gradient("cholesky", function(x) return weigh(ops.cholesky(positive(x))) end, a)
      check_gradient("upper cholesky", function(x) return weigh(ops.cholesky(positive(x), true)) end, a)
      check_gradient("eigh's values", function(x) local w = ops.eigh(positive(x)) return weigh(w) end, a)
      check_gradient("eigh's vectors", function(x) local _, v = ops.eigh(x) return phaseless(v, ramp) end, positive(a))
      check_gradient("eig's values", function(x) local w = ops.eig(x) return weigh(w:sum(-1)) + weigh((w * w * w):sum(-1)) end, a)
      check_gradient("eig's vectors", function(x) local _, v = ops.eig(x) return ops.square(ops.abs(v)):sum(-1)["..., 0"]:sum() end, a)
    end
  end
  -- The eigenvalues of a real matrix: its gradient is real.
  check_gradient("eigvals of a real matrix", function(x) return weigh(ops.square(ops.eigvals(x)):sum()) end,
    ops.randn({ 4, 4 }, { dtype = ms.float64 }))
  check_gradient("eig's vectors of a real matrix", function(x)
    local w, v = ops.eig(x)
    return (ops.square(ops.abs(v))["0"] * ops.abs(w)):sum()
  end, ops.randn({ 4, 4 }, { dtype = ms.float64 }))
end)

t.test("norms of complex vectors and matrices are real", function()
  ms.set_seed(9)
  local z = ops.complex(ms.tensor { { 3.0, 0.0 }, { 0.0, 5.0 } }, ms.tensor { { 4.0, 0.0 }, { 1.0, -12.0 } })
  t.equal(ops.norm(z).dtype, ms.float32)
  t.near(ops.vector_norm(z), ms.tensor(math.sqrt(25 + 1 + 169)), 1e-5)
  t.near(ops.vector_norm(z, 1, 1), ms.tensor { 5.0, 14.0 }, 1e-5)
  t.near(ops.vector_norm(z, math.huge), ms.tensor(13.0), 1e-5)
  t.near(ops.vector_norm(z, 0), ms.tensor(3.0), 0)
  t.near(ops.matrix_norm(z, 1), ms.tensor(13.0), 1e-5)
  local s = ops.svd(z, false, false)
  t.near(ops.matrix_norm(z, 2), s[0], 1e-5)
  t.near(ops.norm(z, "nuc", { 0, 1 }), s:sum(), 1e-5)
  local a = random(ms.float64, 3, 4)
  for _, order in ipairs { 0.5, 1, 2, 3, math.huge, -math.huge } do
    check_gradient("the norm of order " .. order, function(x) return weigh(ops.vector_norm(x, order, 1)) end, a)
  end
  for _, order in ipairs { "fro", "nuc", 1, -1, 2, -2, math.huge } do
    check_gradient("the matrix norm " .. order, function(x) return ops.matrix_norm(x, order) end, a)
  end
  t.near(ops.view_as_real(ms.grad(function(x) return ops.norm(x) end)(ops.zeros({ 2 }, ms.complex64))), ops.zeros { 2, 2 }, 0)
end)

t.test("what cannot be done is said", function()
  local zero = ops.zeros({ 2, 2 }, ms.complex64)
  t.fails({ "inverse", "singular" }, ops.inverse, zero)
  t.fails({ "matrix_solve", "singular" }, ops.matrix_solve, zero, zero)
  t.fails({ "cholesky", "not positive definite" }, ops.cholesky, zero)
  t.fails({ "solve_triangular", "singular" }, ops.solve_triangular, zero, zero)
  t.fails({ "eigh", "NaN" }, ops.eigh, zero + 0 / 0)
  t.equal(ops.det(zero):item(), { 0.0, 0.0 })
end)

t.finish()
