-- Steps of optimizers as primitives of MindSpore: they write into the parameter and its accumulators, and give what they wrote. Rows
-- for nn/primitives.lua, as in array.lua; those whose name has Sparse do the same to the rows that indices name.
local ms = require "lunaria"

local ops = ms.ops
local P = {}

local function put(x, value) return ops.assign(x, ops.cast(value, x.dtype)) end
local function soft(x, by) return ops.sign(x) * ops.relu(ops.abs(x) - by) end

-- The inputs up to the count are written; f(attributes, inputs...) gives their new values.
local function step(attributes, inputs, count, f)
  return { attributes, inputs, function(a, ...)
    local values, given = { f(a, ...) }, { ... }
    for i = 1, count do given[i] = put(given[i], values[i]) end
    return table.unpack(given, 1, count)
  end }
end

-- The same step on rows: `from` is the place of the indices, behind the inputs; repeated rows have their gradients added up.
local function sparse(attributes, inputs, count, gradient, f)
  return { attributes, inputs, function(a, ...)
    local given = table.pack(...)
    local indices = given[given.n]
    local rows, places = ops.unique(indices)
    local cut = {}
    for i = 1, given.n - 1 do cut[i] = given[i] end
    for i = 1, count do cut[i] = ops.gather(given[i], rows, 0) end
    cut[gradient] = ops.unsorted_segment_sum(given[gradient], places, rows.size)
    local values = { f(a, table.unpack(cut, 1, given.n - 1)) }
    for i = 1, count do
      given[i] = put(given[i], ops.tensor_scatter_update(given[i], ops.expand_dims(rows, 1), ops.cast(values[i], given[i].dtype)))
    end
    return table.unpack(given, 1, count)
  end }
end

local locking = "use_locking=false"

local function adam(a, var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)
  local rate = lr * ops.sqrt(1 - beta2_power) / (1 - beta1_power)
  m, v = m + (grad - m) * (1 - beta1), v + (grad * grad - v) * (1 - beta2)
  local along = m
  if a.use_nesterov then along = m * beta1 + grad * (1 - beta1) end
  return var - rate * along / (ops.sqrt(v) + epsilon), m, v
end
local adam_attributes = "use_locking=false, use_nesterov=false"
local adam_inputs = "var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient"
-- Powers and rates may be numbers.
local function tensors(f)
  return function(a, var, m, v, p1, p2, ...)
    if not ms.is_tensor(p1) then p1 = ms.tensor(p1, ms.float32) end
    if not ms.is_tensor(p2) then p2 = ms.tensor(p2, ms.float32) end
    return f(a, var, m, v, p1, p2, ...)
  end
end
P.Adam = step(adam_attributes, adam_inputs, 3, tensors(adam))
P.FusedSparseAdam = { adam_attributes, adam_inputs .. ", indices", function(a, var, m, v, p1, p2, lr, beta1, beta2, epsilon, grad, indices)
  local dense = ops.tensor_scatter_add(ops.zeros_like(var), ops.expand_dims(indices, 1), grad)
  local new_var, new_m, new_v = tensors(adam)(a, var, m, v, p1, p2, lr, beta1, beta2, epsilon, dense)
  return put(var, new_var), put(m, new_m), put(v, new_v)
end }
P.FusedSparseLazyAdam = sparse(adam_attributes, adam_inputs .. ", indices", 3, 10, tensors(adam))
P.AdamNoUpdateParam = { adam_attributes, "m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient", function(a, m, v, p1, p2,
  lr, ...)
  local change, new_m, new_v = tensors(adam)(a, ops.zeros_like(m), m, v, p1, p2, lr, ...)
  put(m, new_m)
  put(v, new_v)
  return change
end }
P.AdamWeightDecay = step(locking, "var, m, v, lr, beta1, beta2, epsilon, decay, gradient", 3,
  function(_, var, m, v, lr, beta1, beta2, epsilon, decay, grad)
    m, v = m * beta1 + grad * (1 - beta1), v * beta2 + grad * grad * (1 - beta2)
    return var - lr * (m / (ops.sqrt(v) + epsilon) + var * decay), m, v
  end)
P.FusedCastAdamWeightDecay = { locking, "var, m, v, lr, beta1, beta2, epsilon, decay, gradient, global_norm",
  function(a, var, m, v, lr, beta1, beta2, epsilon, decay, grad, norm)
    grad = ops.cast(grad, ms.float32)
    if norm ~= nil then grad = grad / norm end
    return P.AdamWeightDecay[3](a, var, m, v, lr, beta1, beta2, epsilon, decay, grad)
  end }
P.ApplyAdaMax = step("", "var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad", 3,
  function(_, var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad)
    m, v = m * beta1 + grad * (1 - beta1), ops.maximum(v * beta2, ops.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v
  end)
P.ApplyAdadelta = step("", "var, accum, accum_update, lr, rho, epsilon, grad", 3, function(_, var, accum, changes, lr, rho, epsilon, grad)
  accum = accum * rho + grad * grad * (1 - rho)
  local change = ops.sqrt(changes + epsilon) / ops.sqrt(accum + epsilon) * grad
  return var - lr * change, accum, changes * rho + change * change * (1 - rho)
end)
P.SparseApplyAdadelta = sparse("epsilon, use_locking=false", "var, accum, accum_update, lr, rho, grad, indices", 3, 6,
  function(a, var, accum, changes, lr, rho, grad)
    accum = accum * rho + grad * grad * (1 - rho)
    local change = ops.sqrt(changes + a.epsilon) / ops.sqrt(accum + a.epsilon) * grad
    return var - lr * change, accum, changes * rho + change * change * (1 - rho)
  end)
local function adagrad(a, var, accum, lr, grad)
  if a.update_slots then accum = accum + grad * grad end
  return var - lr * grad / (ops.sqrt(accum) + (a.epsilon or 0)), accum
end
P.ApplyAdagrad = step("update_slots=true", "var, accum, lr, grad", 2, adagrad)
P.ApplyAdagradV2 = step("epsilon, update_slots=true", "var, accum, lr, grad", 2, adagrad)
local function sparse_adagrad(a, var, accum, grad) return adagrad(a, var, accum, a.lr, grad) end
P.SparseApplyAdagrad = sparse("lr, update_slots=true, use_locking=false", "var, accum, grad, indices", 2, 3, sparse_adagrad)
P.SparseApplyAdagradV2 = sparse("lr, epsilon, use_locking=false, update_slots=true", "var, accum, grad, indices", 2, 3, sparse_adagrad)
P.ApplyAdagradDA = step(locking, "var, gradient_accumulator, gradient_squared_accumulator, grad, lr, l1, l2, global_step", 3,
  function(_, _, sums, squares, grad, lr, l1, l2, steps)
    sums, squares = sums + grad, squares + grad * grad
    local top = -soft(sums, l1 * steps) * lr
    return top / (l2 * steps * lr + ops.sqrt(squares)), sums, squares
  end)
local function amsgrad(_, var, m, v, most, p1, p2, lr, beta1, beta2, epsilon, grad)
  local rate = lr * ops.sqrt(1 - ms.tensor(p2, var.dtype)) / (1 - p1)
  m, v = m + (grad - m) * (1 - beta1), v + (grad * grad - v) * (1 - beta2)
  most = ops.maximum(most, v)
  return var - rate * m / (ops.sqrt(most) + epsilon), m, v, most
end
P.ApplyAdamWithAmsgrad = step("beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=false",
  "var, m, v, vhat, beta1_power, beta2_power, lr, grad", 4,
  function(a, var, m, v, most, p1, p2, lr, grad) return amsgrad(a, var, m, v, most, p1, p2, lr, a.beta1, a.beta2, a.epsilon, grad) end)
P.ApplyAdamWithAmsgradV2 = step(locking, "var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad", 4, amsgrad)
P.ApplyAddSign = step("", "var, m, lr, alpha, sign_decay, beta, grad", 2, function(_, var, m, lr, alpha, decay, beta, grad)
  m = m * beta + grad * (1 - beta)
  return var - lr * (alpha + decay * ops.sign(grad) * ops.sign(m)) * grad, m
end)
P.ApplyPowerSign = step("", "var, m, lr, logbase, sign_decay, beta, grad", 2, function(_, var, m, lr, logbase, decay, beta, grad)
  m = m * beta + grad * (1 - beta)
  return var - lr * ops.exp(logbase * decay * ops.sign(grad) * ops.sign(m)) * grad, m
end)
P.ApplyRMSProp = { locking, "var, mean_square, moment, learning_rate, grad, decay, momentum, epsilon",
  function(_, var, square, moment, lr, grad, decay, momentum, epsilon)
    local new_square = square * decay + grad * grad * (1 - decay)
    local new_moment = moment * momentum + lr * grad / ops.sqrt(new_square + epsilon)
    put(square, new_square)
    put(moment, new_moment)
    return put(var, var - new_moment)
  end }
P.ApplyCenteredRMSProp = { locking, "var, mean_gradient, mean_square, moment, grad, learning_rate, decay, momentum, epsilon",
  function(_, var, mean, square, moment, grad, lr, decay, momentum, epsilon)
    local new_mean, new_square = mean * decay + grad * (1 - decay), square * decay + grad * grad * (1 - decay)
    local new_moment = moment * momentum + lr * grad / ops.sqrt(new_square - new_mean * new_mean + epsilon)
    put(mean, new_mean)
    put(square, new_square)
    put(moment, new_moment)
    return put(var, var - new_moment)
  end }
P.SparseApplyRMSProp = sparse("rho, momentum, epsilon, use_locking=false", "var, ms, mom, lr, grad, indices", 3, 5,
  function(a, var, square, moment, lr, grad)
    square = square * a.rho + grad * grad * (1 - a.rho)
    moment = moment * a.momentum + lr * grad / ops.sqrt(square + a.epsilon)
    return var - moment, square, moment
  end)
local function ftrl(var, accum, linear, grad, lr, l1, l2, power, shrinkage)
  local new = accum + grad * grad
  local along = shrinkage and grad + var * (2 * shrinkage) or grad
  linear = linear + along - (ops.pow(new, -power) - ops.pow(accum, -power)) / lr * var
  return -soft(linear, l1) / (ops.pow(new, -power) / lr + 2 * l2), new, linear
end
P.ApplyFtrl = { locking, "var, accum, linear, grad, lr, l1, l2, lr_power", function(_, var, accum, linear, ...)
  local new_var, new_accum, new_linear = ftrl(var, accum, linear, ...)
  put(accum, new_accum)
  put(linear, new_linear)
  return put(var, new_var)
end }
local ftrl_inputs = "var, accum, linear, grad, indices"
local function sparse_ftrl(a, var, accum, linear, grad) return ftrl(var, accum, linear, grad, a.lr, a.l1, a.l2, a.lr_power,
  a.l2_shrinkage) end
P.SparseApplyFtrl = sparse("lr, l1, l2, lr_power, use_locking=false", ftrl_inputs, 3, 4, sparse_ftrl)
P.FusedSparseFtrl = P.SparseApplyFtrl
P.SparseApplyFtrlV2 = sparse("lr, l1, l2, l2_shrinkage, lr_power, use_locking=false", ftrl_inputs, 3, 4, sparse_ftrl)
P.ApplyGradientDescent = step("", "var, alpha, delta", 1, function(_, var, alpha, delta) return var - alpha * delta end)
P.ApplyProximalGradientDescent = step("", "var, alpha, l1, l2, delta", 1, function(_, var, alpha, l1, l2, delta)
  return soft(var - alpha * delta, alpha * l1) / (1 + alpha * l2)
end)
local function proximal(_, var, accum, lr, l1, l2, grad)
  accum = accum + grad * grad
  local rate = lr / ops.sqrt(accum)
  return soft(var - rate * grad, rate * l1) / (1 + rate * l2), accum
end
P.ApplyProximalAdagrad = step(locking, "var, accum, lr, l1, l2, grad", 2, proximal)
P.SparseApplyProximalAdagrad = sparse(locking, "var, accum, lr, l1, l2, grad, indices", 2, 6, proximal)
P.FusedSparseProximalAdagrad = P.SparseApplyProximalAdagrad
P.ApplyMomentum = { "use_nesterov=false, use_locking=false, gradient_scale=1.0",
  "variable, accumulation, learning_rate, gradient, momentum",
  function(a, var, accum, lr, grad, momentum)
    if a.gradient_scale ~= 1.0 then grad = grad * a.gradient_scale end
    local new = accum * momentum + grad
    put(accum, new)
    return put(var, a.use_nesterov and var - (grad + new * momentum) * lr or var - new * lr)
  end }
P.FusedWeightScaleApplyMomentum = { "", "weight_decay, loss_scale, variable, accumulation, learning_rate, gradient, momentum",
  function(_, decay, scale, var, accum, lr, grad, momentum)
    local new = accum * momentum + (grad * scale + var * decay)
    put(accum, new)
    return put(var, var - new * lr)
  end }
P.ApplyKerasMomentum = step("use_locking=false, use_nesterov=false", "var, accum, lr, grad, momentum", 2, function(a, var, accum, lr,
  grad, momentum)
  accum = accum * momentum - grad * lr
  return a.use_nesterov and var + accum * momentum - grad * lr or var + accum, accum
end)
-- In the first step, which stat tells, there is no dampening.
P.SGD = { "dampening=0.0, weight_decay=0.0, nesterov=false", "parameters, gradient, learning_rate, accum, momentum, stat",
  function(a, var, grad, lr, accum, momentum, stat)
    if a.weight_decay ~= 0 then grad = grad + var * a.weight_decay end
    local later = accum * momentum + grad * (1 - a.dampening)
    local new = ops.where(ops.greater(stat, 0), grad, later)
    put(accum, new)
    put(stat, ops.zeros_like(stat))
    return put(var, var - (a.nesterov and grad + new * momentum or new) * lr)
  end }
P.LARSUpdate = { "epsilon=1e-5, hyperpara=0.001, use_clip=false",
  "weight, gradient, norm_weight, norm_gradient, weight_decay, learning_rate",
  function(a, weight, grad, weight_square, grad_square, decay, lr)
    local weight_norm, grad_norm = ops.sqrt(weight_square), ops.sqrt(grad_square)
    local ratio = a.hyperpara * weight_norm / (grad_norm + decay * weight_norm + a.epsilon)
    if a.use_clip then ratio = ops.clamp(ratio / lr, 0.0, 1.0) end
    local used = ops.logical_and(ops.greater(weight_norm, 0), ops.greater(grad_norm, 0))
    return ops.where(used, ratio, 1.0) * (grad + decay * weight)
  end }

return P
