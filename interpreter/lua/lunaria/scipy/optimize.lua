-- ms.scipy.optimize: minima of functions, line search, assignment. Derivatives are those of ms.grad; computed in float64.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local arrays = require "lunaria.numpy.arrays"
local search = require "lunaria.scipy.line_search"
local limited = require "lunaria.nn.limited_memory"

local ops = ms.ops
local M = {}

local function number(x) return ms.is_tensor(x) and x:item() or x end

-- A number, or a list of numbers and such lists: what means one tensor.
local function is_numbers(x)
  if type(x) ~= "table" then return math.type(x) ~= nil end
  if getmetatable(x) ~= nil then return false end
  local count = 0
  for _, item in pairs(x) do
    count = count + 1
    if not is_numbers(item) then return false end
  end
  return count == #x and count > 0
end

-- What is varied: one tensor, or a table of tensors, numbers and such tables, whose leaves come in a fixed order; or the parameters of
-- a cell or of such a table, which are written. As a float64 vector: pack(tree), and unpack(vector), which gives the tree.
local function layout_of(where, name, x0)
  if is_numbers(x0) then x0 = arrays.cast(arrays.mean_float(where, name, x0), ms.float64) end
  if type(x0) == "table" and getmetatable(x0) ~= nil and x0.trainable_params then x0 = x0:trainable_params() end
  local leaves, layout = {}, { size = 0, parameters = {} }
  local function add(x, path)
    if ms.is_tensor(x) then
      local leaf = arrays.mean_float(where, path, x)
      leaves[#leaves + 1] = { path = path, sizes = arrays.sizes(leaf), size = leaf.size, dtype = leaf.dtype }
      if ms.is_parameter(x) then layout.parameters[#layout.parameters + 1] = x end
      return leaves[#leaves]
    elseif math.type(x) then
      leaves[#leaves + 1] = { path = path, size = 1, plain = true }
      return leaves[#leaves]
    elseif type(x) ~= "table" or getmetatable(x) ~= nil then
      arrays.fail(where, ("%s must be a tensor, a number or a table of them, got %s"):format(path, arrays.describe(x)))
    end
    local keys, inner = {}, {}
    for key in pairs(x) do keys[#keys + 1] = key end
    table.sort(keys, function(a, b)
      if type(a) ~= type(b) then return type(a) < type(b) end
      return a < b
    end)
    for i, key in ipairs(keys) do inner[i] = { key, add(x[key], ("%s.%s"):format(path, tostring(key))) } end
    return inner
  end
  local shape = add(x0, name)
  if #leaves == 0 then arrays.fail(where, name .. " is an empty table") end
  for _, leaf in ipairs(leaves) do layout.size = layout.size + leaf.size end
  local written = #layout.parameters == #leaves
  if not written then layout.parameters = nil end
  local function each(tree, at, f)
    if at.path then return f(tree, at) end
    local result = {}
    for _, item in ipairs(at) do result[item[1]] = each(tree[item[1]], item[2], f) end
    return result
  end
  function layout.pack(tree, what)
    local parts = {}
    each(tree, shape, function(x, leaf)
      local part = ops.reshape(arrays.cast((arrays.of(where, what, x)), ms.float64), { -1 })
      if part.size ~= leaf.size then
        arrays.fail(where, ("%s of %s has %d elements, %d are expected"):format(what, leaf.path, part.size, leaf.size))
      end
      parts[#parts + 1] = part
    end)
    return #parts == 1 and parts[1] or ops.concat(parts, 0)
  end
  function layout.unpack(vector)
    local from = 0
    local tree = each(x0, shape, function(x, leaf)
      local part = #leaves == 1 and vector or vector[{ ms.slice(from, from + leaf.size) }]
      from = from + leaf.size
      if leaf.plain then return part:item() end
      local value = arrays.cast(ops.reshape(part, leaf.sizes), leaf.dtype)
      if written then x:assign(value) end
      return value
    end)
    return written and x0 or tree, tree
  end
  -- A list with a value for each leaf, in their order, as a tree.
  function layout.in_structure(list)
    local i = 0
    return each(x0, shape, function()
      i = i + 1
      return list[i]
    end)
  end
  layout.start = layout.pack(x0, name)
  return layout
end

-- The function over float64 vectors with its gradient; counts are kept in `counts`.
local function objective(where, fun, layout, args, jac, counts)
  local call = function(x) return fun(x, table.unpack(args, 1, args.n or #args)) end
  local parameters, both = layout.parameters, nil
  if jac == nil then both = parameters and ms.value_and_grad(call, nil, parameters) or ms.value_and_grad(call) end
  return function(x)
    counts.nfev = counts.nfev + 1
    local point = layout.unpack(x)
    local value, gradient
    if both then
      value, gradient = both(point)
      if parameters then gradient = layout.in_structure(gradient) end
    elseif jac == true then
      value, gradient = call(point)
    else
      value, gradient = call(point), jac(point, table.unpack(args, 1, args.n or #args))
    end
    value = number(value)
    if math.type(value) == nil then arrays.fail(where, "the function must give one number") end
    return value + 0.0, layout.pack(gradient, "gradient")
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

-- Whether a difference says something of the curvature.
local function is_curved(product, square) return product > 2.2e-16 * square end

local function is_number(value) return math.type(value) ~= nil, "a number" end
local known_options = { gtol = is_number, ftol = is_number, maxiter = arguments.positive, maxcor = arguments.positive }

--- A minimum of fun(x, ...) near x0 by BFGS or L-BFGS ("L-BFGS-B" too; there are no bounds). x0: a tensor, numbers, or a table of tensors,
--- numbers and such tables, as fun gets them; or a cell, a parameter or a table of parameters, which fun uses: they are written, and
--- have the minimum at the end. args: a table of further arguments. jac:
--- nil (the gradient is derived), a function of the same arguments, or true where fun gives value and gradient. tol: for
--- options.gtol. options: gtol (1e-5, the largest element of the gradient at the end), maxiter (200 for each number), maxcor (10) and
--- ftol (2.2e-9) of L-BFGS. Gives a table: x, fun, jac, success, status, message, nfev, njev, nit, and hess_inv of BFGS.
---     > result = ms.scipy.optimize.minimize(function(x) return ms.ops.sum((x - 1) ^ 2) end, ms.zeros(2))
---     > result.success, result.nfev --> true	3
function M.minimize(fun, x0, args, method, jac, tol, options)
  local where = "scipy.optimize.minimize"
  args, method, jac, tol, options = arrays.named(where,
    { "args", "method", "jac", "tol", "options", last_has_names = true }, args, method, jac, tol, options)
  if type(fun) ~= "function" then arrays.fail(where, ("fun must be a function, got %s"):format(arrays.describe(fun))) end
  local layout = layout_of(where, "x0", x0)
  options = arguments.options(where, options, known_options, "{ maxiter = 100 }")
  method = (method or "BFGS"):upper()
  if method ~= "BFGS" and not method:find "^L%-?BFGS" then
    arrays.fail(where, ("method must be 'BFGS' or 'L-BFGS', got '%s'"):format(method))
  end
  local counts = { nfev = 0 }
  local f = objective(where, fun, layout, args or {}, jac, counts)
  local n = layout.size
  local full = method == "BFGS"
  local curvature = full and dense(n) or limited(options.maxcor or 10, is_curved)
  local ftol = options.ftol or 2.220446049250313e-9
  local function stops(value, before)
    return not full and before - value <= ftol * math.max(math.abs(before), math.abs(value), 1)
  end
  local x, value, gradient, nit, status = quasi_newton(f, layout.start, curvature,
    options.gtol or tol or 1e-5, options.maxiter or 200 * n, stops, not full)
  local _, slopes = layout.unpack(gradient)
  local _, least = layout.unpack(x)
  return {
    x = least, fun = value, jac = slopes,
    success = status == 0, status = status, message = messages[status], nfev = counts.nfev, njev = counts.nfev, nit = nit,
    hess_inv = full and curvature.inverse() or nil,
  }
end

--- A step along pk from xk that fulfils the strong Wolfe conditions: the step (nil if none was found), the number of calls of f and
--- of its gradient, the new value, the old value, the new gradient: six results. jac: the gradient as a function (it is derived). c1,
--- c2: the constants of the conditions (1e-4 and 0.9).
---     > (ms.scipy.optimize.line_search(function(x) return ms.ops.sum(x ^ 2) end, ms.tensor { 1.0 }, ms.tensor { -1.0 })) --> 1.0
function M.line_search(f, xk, pk, jac, gfk, old_fval, old_old_fval, c1, c2, maxiter)
  local where = "scipy.optimize.line_search"
  local names = { "jac", "gfk", "old_fval", "old_old_fval", "c1", "c2", "maxiter" }
  jac, gfk, old_fval, old_old_fval, c1, c2, maxiter = arrays.named(where, names, jac, gfk, old_fval, old_old_fval, c1, c2, maxiter)
  local layout, counts = layout_of(where, "xk", xk), { nfev = 0 }
  local p = layout.pack(is_numbers(pk) and arrays.of(where, "pk", pk) or pk, "pk")
  local call = objective(where, f, layout, {}, jac, counts)
  local value, gradient = number(old_fval), gfk ~= nil and layout.pack(gfk, "gfk") or nil
  if value == nil or gradient == nil then value, gradient = call(layout.start) end
  local found = search.find(call, layout.start, p, value, gradient, number(old_old_fval),
    { c1 = c1, c2 = c2, maxiter = maxiter, amax = 50.0, amin = 1e-8 })
  local slopes = found and select(2, layout.unpack(found.gradient))
  layout.unpack(layout.start)
  if not found then return nil, counts.nfev, counts.nfev, nil, value, nil end
  return found.alpha, counts.nfev, counts.nfev, found.value, value, slopes
end

--- The cheapest assignment of rows to columns, each at most once: the rows and the columns as two results. maximize: the most
--- expensive one.
---     > select(2, ms.scipy.optimize.linear_sum_assignment({ { 4, 1, 3 }, { 2, 0, 5 }, { 3, 2, 2 } })):tolist()[1] --> 1
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
