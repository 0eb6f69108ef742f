-- ms.scipy.sparse: linear systems of sparse (or dense, or given by their product alone) matrices by iteration, in the dtype of b.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"

local ops = ms.ops
local M = { linalg = {} }

-- a(x) for a matrix, a sparse one or a function.
local function operator(where, a)
  if type(a) == "function" then return a end
  if type(a) == "table" and type(getmetatable(a)) == "table" and a.matmul then
    return function(x) return a:matmul(x) end
  end
  local dense = arrays.mean_float(where, "A", a)
  if dense.ndim ~= 2 or dense.shape[1] ~= dense.shape[2] then
    arrays.fail(where, ("A must be a square matrix, a sparse one or a function, got shape %s"):format(tostring(dense.shape)))
  end
  return function(x) return ops.mv(dense, x) end
end

local function identity(x) return x end
local function dot(a, b) return ops.reduce_sum(a * b) end
local function length(a) return math.sqrt(dot(a, a):item()) end

local names = { "x0", "rtol", "atol", "maxiter", "M" }

-- What all have: the operator, the right side, the first x, the limit of the residual's norm.
local function begin(where, a, b, x0, rtol, atol, maxiter, m)
  local f = operator(where, a)
  local rhs = arrays.mean_float(where, "b", b)
  if rhs.ndim ~= 1 then arrays.fail(where, ("b must have one axis, got %d"):format(rhs.ndim)) end
  local x = x0 ~= nil and arrays.cast(arrays.mean_float(where, "x0", x0), rhs.dtype) or ops.zeros_like(rhs)
  local limit = math.max(atol or 0.0, (rtol or 1e-5) * length(rhs))
  return f, rhs, x, limit, maxiter or 10 * rhs.size, m and operator(where, m) or identity
end

--- Solves A x = b for a symmetric positive definite A by conjugate gradients: x, and 0 or the number of iterations if they were too
--- few. A: a matrix, a sparse one or a function that gives its product. rtol (1e-5), atol (0): the residual's norm at the end is at
--- most max(rtol |b|, atol). preconditioner (by name: M): about the inverse of A. maxiter: 10 for each element.
---     > (ms.scipy.sparse.linalg.cg({ { 2.0, 0.0 }, { 0.0, 4.0 } }, { 2.0, 4.0 })):tolist()[2] --> 0.99999994039536
function M.linalg.cg(A, b, x0, rtol, atol, maxiter, preconditioner)
  local where = "scipy.sparse.linalg.cg"
  x0, rtol, atol, maxiter, preconditioner = arrays.named(where, names, x0, rtol, atol, maxiter, preconditioner)
  local f, rhs, x, limit, most, precondition = begin(where, A, b, x0, rtol, atol, maxiter, preconditioner)
  local r = rhs - f(x)
  if length(rhs) == 0 then return rhs, 0 end
  local p, rho_before
  for _ = 1, most do
    if length(r) <= limit then return x, 0 end
    local z = precondition(r)
    local rho = dot(r, z)
    p = p and z + p * (rho / rho_before) or z
    local q = f(p)
    local alpha = rho / dot(p, q)
    x, r, rho_before = x + p * alpha, r - q * alpha, rho
  end
  return x, length(r) <= limit and 0 or most
end

--- Solves A x = b for any square A by stabilized biconjugate gradients: x, and 0, the number of iterations if they were too few, or
--- -10 or -11 where the method broke down. Arguments as of cg.
---     > (ms.scipy.sparse.linalg.bicgstab({ { 2.0, 1.0 }, { 0.0, 4.0 } }, { 3.0, 4.0 })):tolist()[2] - 1 < 1e-5 --> true
function M.linalg.bicgstab(A, b, x0, rtol, atol, maxiter, preconditioner)
  local where = "scipy.sparse.linalg.bicgstab"
  x0, rtol, atol, maxiter, preconditioner = arrays.named(where, names, x0, rtol, atol, maxiter, preconditioner)
  local f, rhs, x, limit, most, precondition = begin(where, A, b, x0, rtol, atol, maxiter, preconditioner)
  if length(rhs) == 0 then return rhs, 0 end
  local r = rhs - f(x)
  local shadow, rho_before, alpha, omega, p, v = r, 1.0, nil, nil, nil, nil
  for _ = 1, most do
    if length(r) <= limit then return x, 0 end
    local rho = dot(shadow, r):item()
    if math.abs(rho) < 1e-300 then return x, -10 end
    if p then
      if math.abs(omega) < 1e-300 then return x, -11 end
      p = r + (p - v * omega) * (rho / rho_before * (alpha / omega))
    else
      p = r
    end
    local turned = precondition(p)
    v = f(turned)
    local product = dot(shadow, v):item()
    if product == 0 then return x, -11 end
    alpha = rho / product
    local s = r - v * alpha
    x = x + turned * alpha
    if length(s) <= limit then return x, 0 end
    local second = precondition(s)
    local t = f(second)
    omega = dot(t, s):item() / dot(t, t):item()
    x, r, rho_before = x + second * omega, s - t * omega, rho
  end
  return x, length(r) <= limit and 0 or most
end

-- One cycle of GMRES from the residual r: the correction of x. Arnoldi's vectors are made orthogonal twice; rotations keep the triangle.
local function cycle(f, r, restart, limit)
  local beta = length(r)
  local vectors, columns, cosines, sines, rest = { r / beta }, {}, {}, {}, { beta }
  local used = 0
  for k = 1, restart do
    local w, h = f(vectors[k]), {}
    for i = 1, k do h[i] = 0.0 end
    for _ = 1, 2 do
      for i = 1, k do
        local part = dot(vectors[i], w):item()
        h[i], w = h[i] + part, w - vectors[i] * part
      end
    end
    local below = length(w)
    for i = 1, k - 1 do h[i], h[i + 1] = cosines[i] * h[i] + sines[i] * h[i + 1], cosines[i] * h[i + 1] - sines[i] * h[i] end
    local size = math.sqrt(h[k] * h[k] + below * below)
    if size == 0 then break end
    cosines[k], sines[k] = h[k] / size, below / size
    h[k] = size
    rest[k], rest[k + 1] = cosines[k] * rest[k], -sines[k] * rest[k]
    columns[k], used = h, k
    if math.abs(rest[k + 1]) <= limit or below <= 1e-14 * size then break end
    vectors[k + 1] = w / below
  end
  local y, correction = {}, nil
  for i = used, 1, -1 do
    local sum = rest[i]
    for j = i + 1, used do sum = sum - columns[j][i] * y[j] end
    y[i] = sum / columns[i][i]
  end
  for i = 1, used do correction = correction and correction + vectors[i] * y[i] or vectors[i] * y[i] end
  return correction or ops.zeros_like(r), used
end

--- Solves A x = b for any square A by GMRES, which starts anew after restart (20) vectors: x, and 0 or the number of iterations if
--- they were too few. Arguments as of cg; maxiter counts starts.
---     > (ms.scipy.sparse.linalg.gmres({ { 2.0, 1.0 }, { 0.0, 4.0 } }, { 3.0, 4.0 })):tolist()[2] - 1 < 1e-5 --> true
function M.linalg.gmres(A, b, x0, rtol, atol, restart, maxiter, preconditioner)
  local where = "scipy.sparse.linalg.gmres"
  x0, rtol, atol, restart, maxiter, preconditioner =
    arrays.named(where, { "x0", "rtol", "atol", "restart", "maxiter", "M" }, x0, rtol, atol, restart, maxiter, preconditioner)
  local f, rhs, x, limit, most, precondition = begin(where, A, b, x0, rtol, atol, maxiter, preconditioner)
  if length(rhs) == 0 then return rhs, 0 end
  restart = math.min(restart or 20, rhs.size)
  local iterations = 0
  for _ = 1, most do
    local r = rhs - f(x)
    local norm = length(r)
    if norm <= limit then return x, 0 end
    -- The right-hand preconditioner leaves the residual as it is.
    local step, used = cycle(function(v) return f(precondition(v)) end, r, restart, limit)
    x, iterations = x + precondition(step), iterations + used
    if used == 0 then break end
  end
  return x, length(rhs - f(x)) <= limit and 0 or iterations
end

return M
