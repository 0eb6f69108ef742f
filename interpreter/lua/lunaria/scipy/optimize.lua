-- ms.scipy.optimize: minima of functions, line search, assignment. Derivatives are those of ms.grad; computed in float64.
local ms = require "lunaria"
local arrays = require "lunaria.numpy.arrays"
local search = require "lunaria.scipy.line_search"

local ops = ms.ops
local M = {}

local function number(x) return ms.is_tensor(x) and x:item() or x end

-- The function over float64 vectors with its gradient; counts are kept in `counts`.
local function objective(where, fun, shape, dtype, args, jac, counts)
  local call = function(x) return fun(x, table.unpack(args, 1, args.n or #args)) end
  local both = jac == nil and ms.value_and_grad(call) or nil
  return function(x)
    counts.nfev = counts.nfev + 1
    local point = arrays.cast(ops.reshape(x, shape), dtype)
    local value, gradient
    if both then
      value, gradient = both(point)
    elseif jac == true then
      value, gradient = call(point)
    else
      value, gradient = call(point), jac(point, table.unpack(args, 1, args.n or #args))
    end
    value = number(value)
    if math.type(value) == nil then arrays.fail(where, "the function must give one number") end
    gradient = ops.reshape(arrays.cast((arrays.of(where, "gradient", gradient)), ms.float64), { -1 })
    return value + 0.0, gradient
  end
end

local function largest(g) return g.size > 0 and ops.amax(ops.abs(g)):item() or 0.0 end
local function dot(a, b) return ops.reduce_sum(a * b):item() end

local messages = {
  [0] = "Optimization terminated successfully.", [1] = "Maximum number of iterations has been exceeded.",
  [2] = "Desired error not necessarily achieved due to precision loss.",
}

-- What BFGS and L-BFGS share: a direction from what is known of the curvature, a line search, an update. curvature: { direction(g),
-- update(s, y) }. stops(f, f_before): a further rule for the end.
local function quasi_newton(f, x, curvature, gtol, maxiter, stops, first_step)
  local value, gradient = f(x)
  local before = value + math.sqrt(dot(gradient, gradient)) / 2
  local nit, status = 0, 0
  while largest(gradient) > gtol do
    if nit >= maxiter then
      status = 1
      break
    end
    local p = curvature.direction(gradient)
    local found = search.find(f, x, p, value, gradient, before, { amin = 1e-100, amax = 1e100, first = nit == 0 and first_step or nil })
    if not found then
      status = 2
      break
    end
    local s, y = p * found.alpha, found.gradient - gradient
    x, before, value, gradient = x + s, value, found.value, found.gradient
    nit = nit + 1
    if largest(gradient) <= gtol or stops(value, before) then break end
    if value ~= value or math.abs(value) == math.huge then
      status = 2
      break
    end
    curvature.update(s, y)
  end
  return x, value, gradient, nit, status
end

-- The whole inverse of the Hessian.
local function dense(n)
  local h = ops.eye(n, n, ms.float64)
  return {
    inverse = function() return h end,
    direction = function(g) return -ops.mv(h, g) end,
    update = function(s, y)
      local product = dot(y, s)
      local rho = product == 0 and 1000.0 or 1 / product
      local hy = ops.mv(h, y)
      local yhy = dot(y, hy)
      local cross = ops.outer(s, hy)
      h = h - (cross + ops.transpose(cross)) * rho + ops.outer(s, s) * (rho * rho * yhy + rho)
    end,
  }
end

-- The last differences, from which the product with the inverse is made (Nocedal's two loops).
local function limited(memory)
  local list = {}
  return {
    direction = function(g)
      local q, alphas = g, {}
      for i = #list, 1, -1 do
        alphas[i] = list[i].rho * dot(list[i].s, q)
        q = q - list[i].y * alphas[i]
      end
      local last = list[#list]
      if last then q = q * (1 / (last.rho * dot(last.y, last.y))) end
      for i, item in ipairs(list) do q = q + item.s * (alphas[i] - item.rho * dot(item.y, q)) end
      return -q
    end,
    update = function(s, y)
      local product = dot(y, s)
      if product <= 2.2e-16 * dot(y, y) then return end
      list[#list + 1] = { s = s, y = y, rho = 1 / product }
      if #list > memory then table.remove(list, 1) end
    end,
  }
end

--- A minimum of fun(x, ...) near x0 by BFGS or L-BFGS ("L-BFGS-B" too; there are no bounds). args: a table of further arguments. jac:
--- nil (the gradient is derived), a function of the same arguments, or true where fun gives value and gradient. tol: for
--- options.gtol. options: gtol (1e-5, the largest element of the gradient at the end), maxiter (200 for each number), maxcor (10) and
--- ftol (2.2e-9) of L-BFGS. Gives a table: x, fun, jac, success, status, message, nfev, njev, nit, and hess_inv of BFGS.
---
---     > result = ms.scipy.optimize.minimize(function(x) return ms.ops.sum((x - 1) ^ 2) end, ms.zeros(2))
---     > result.success, result.nfev
---     true	3
function M.minimize(fun, x0, args, method, jac, tol, options)
  local where = "scipy.optimize.minimize"
  args, method, jac, tol, options = arrays.named(where, { "args", "method", "jac", "tol", "options" }, args, method, jac, tol, options)
  if type(fun) ~= "function" then arrays.fail(where, ("fun must be a function, got %s"):format(arrays.describe(fun))) end
  local start = arrays.mean_float(where, "x0", x0)
  if not ms.is_tensor(x0) then start = arrays.cast(start, ms.float64) end
  method, options = (method or "BFGS"):upper(), options or {}
  if method ~= "BFGS" and not method:find "^L%-?BFGS" then
    arrays.fail(where, ("method must be 'BFGS' or 'L-BFGS', got '%s'"):format(method))
  end
  local counts = { nfev = 0 }
  local f = objective(where, fun, arrays.sizes(start), start.dtype, args or {}, jac, counts)
  local n = start.size
  local full = method == "BFGS"
  local curvature = full and dense(n) or limited(options.maxcor or 10)
  local ftol = options.ftol or 2.220446049250313e-9
  local function stops(value, before)
    return not full and before - value <= ftol * math.max(math.abs(before), math.abs(value), 1)
  end
  local x, value, gradient, nit, status = quasi_newton(f, arrays.cast(ops.reshape(start, { -1 }), ms.float64), curvature,
    options.gtol or tol or 1e-5, options.maxiter or 200 * n, stops, not full)
  local sizes = arrays.sizes(start)
  return {
    x = arrays.cast(ops.reshape(x, sizes), start.dtype), fun = value, jac = arrays.cast(ops.reshape(gradient, sizes), start.dtype),
    success = status == 0, status = status, message = messages[status], nfev = counts.nfev, njev = counts.nfev, nit = nit,
    hess_inv = full and curvature.inverse() or nil,
  }
end

--- A step along pk from xk that fulfils the strong Wolfe conditions: the step (nil if none was found), the number of calls of f and
--- of its gradient, the new value, the old value, the new gradient: six results. jac: the gradient as a function (it is derived). c1,
--- c2: the constants of the conditions (1e-4 and 0.9).
---
---     > (ms.scipy.optimize.line_search(function(x) return ms.ops.sum(x ^ 2) end, ms.tensor { 1.0 }, ms.tensor { -1.0 }))
---     1.0
function M.line_search(f, xk, pk, jac, gfk, old_fval, old_old_fval, c1, c2, maxiter)
  local where = "scipy.optimize.line_search"
  local names = { "jac", "gfk", "old_fval", "old_old_fval", "c1", "c2", "maxiter" }
  jac, gfk, old_fval, old_old_fval, c1, c2, maxiter = arrays.named(where, names, jac, gfk, old_fval, old_old_fval, c1, c2, maxiter)
  local x, p = arrays.mean_float(where, "xk", xk), arrays.mean_float(where, "pk", pk)
  local counts = { nfev = 0 }
  local call = objective(where, f, arrays.sizes(x), x.dtype, {}, jac, counts)
  local flat = arrays.cast(ops.reshape(x, { -1 }), ms.float64)
  local value, gradient = number(old_fval), gfk
  if value == nil or gradient == nil then value, gradient = call(flat) end
  gradient = ops.reshape(arrays.cast((arrays.of(where, "gfk", gradient)), ms.float64), { -1 })
  local found = search.find(call, flat, arrays.cast(ops.reshape(p, { -1 }), ms.float64), value, gradient, number(old_old_fval),
    { c1 = c1, c2 = c2, maxiter = maxiter, amax = 50.0, amin = 1e-8 })
  if not found then return nil, counts.nfev, counts.nfev, nil, value, nil end
  return found.alpha, counts.nfev, counts.nfev, found.value, value, arrays.cast(ops.reshape(found.gradient, arrays.sizes(x)), x.dtype)
end

--- The cheapest assignment of rows to columns, each at most once: the rows and the columns as two results. maximize: the most
--- expensive one.
---
---     > select(2, ms.scipy.optimize.linear_sum_assignment({ { 4, 1, 3 }, { 2, 0, 5 }, { 3, 2, 2 } })):tolist()[1]
---     1
function M.linear_sum_assignment(cost_matrix, maximize)
  local where = "scipy.optimize.linear_sum_assignment"
  maximize = arrays.named(where, { "maximize" }, maximize)
  local cost = arrays.of(where, "cost_matrix", cost_matrix)
  if cost.ndim ~= 2 then arrays.fail(where, ("cost_matrix must be a matrix, got shape %s"):format(tostring(cost.shape))) end
  cost = arrays.cast(cost, ms.float64)
  if cost.size > 0 and ops.any(ops.isnan(cost)):item() then arrays.fail(where, "cost_matrix holds nan") end
  if maximize then cost = -cost end
  local turned = cost.shape[2] < cost.shape[1]
  if turned then cost = ops.transpose(cost) end
  local columns = require "lunaria.scipy.assignment"(cost:tolist(), cost.shape[1], cost.shape[2])
  if not columns then arrays.fail(where, "there is no assignment of finite cost") end
  local pairs_ = {}
  for i, j in ipairs(columns) do pairs_[i] = turned and { j - 1, i - 1 } or { i - 1, j - 1 } end
  table.sort(pairs_, function(a, b) return a[1] < b[1] end)
  local first, second = {}, {}
  for i, pair in ipairs(pairs_) do first[i], second[i] = pair[1], pair[2] end
  if #first == 0 then return ops.zeros({ 0 }, ms.int64), ops.zeros({ 0 }, ms.int64) end
  return ms.tensor(first, ms.int64), ms.tensor(second, ms.int64)
end

return M
