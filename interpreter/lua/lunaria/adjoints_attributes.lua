-- Replacements of operators for derivatives by a number among their attributes, where the operator's entry cannot state the
-- derivative (core/ops/open.cpp): the formula depends on the number itself, or draws. Each function gets all arguments of the
-- operator in the order of its signature.
local math, ipairs = math, ipairs

return function(core, ms)
  local ops, stop = ms.ops, core.stop

  -- The plain operator runs first, without the numbers that are followed: it says what is wrong with the arguments, and
  -- of which dtype the result is. An attribute that the formula leaves out has the derivative 0.
  local function stands_for(name, plain, formula)
    core.replace(ops[name], function(...)
      local like = plain(...)
      if not core.is_float(like) then return like end
      local y = formula(like, ...)
      if y.dtype == like.dtype then return y end
      return ops.cast(y, like.dtype)
    end, true)
  end

  -- Ranges.
  stands_for("arange", function(start, last, step, dtype)
    if last == nil then return ops.arange(stop(start), { step = stop(step), dtype = dtype }) end
    return ops.arange(stop(start), stop(last), stop(step), dtype)
  end, function(like, start, last, step)
    return ops.arange(like.shape[1], { dtype = ms.float64 }) * step + (last == nil and 0 or start)
  end)

  local function wide(x)
    if not ms.is_tensor(x) then return ops.full({}, 1.0) * x end
    return x.dtype == ms.float64 and x or ops.cast(x, ms.float32)
  end

  -- Losses.
  local function reduced(loss, reduction)
    if reduction == "mean" then return ops.mean(loss) end
    if reduction == "sum" then return ops.sum(loss) end
    return loss
  end
  stands_for("triplet_margin_loss", function(a, near, far, margin, p, eps, swap, reduction)
    return ops.triplet_margin_loss(stop(a), stop(near), stop(far), stop(margin), stop(p), stop(eps), swap, reduction)
  end, function(_, a, near, far, margin, p, eps, swap, reduction)
    a, near, far = wide(a), wide(near), wide(far)
    local function distance(x, y) return ops.vector_norm(x - y + eps, p, -1) end
    local to_far = distance(a, far)
    if swap then to_far = ops.minimum(to_far, distance(near, far)) end
    return reduced(ops.relu(distance(a, near) - to_far + margin), reduction)
  end)

  -- Norms and what divides by them.
  local function p_norm(x, p)
    if p == math.huge then return ops.amax(x) end
    return ops.pow(ops.sum(ops.pow(x, p)), 1 / p)
  end
  stands_for("clip_by_norm", function(x, most, p) return ops.clip_by_norm(stop(x), stop(most), stop(p)) end,
    function(_, x, most, p)
      x = wide(x)
      local norm = p_norm(ops.abs(x), p) + 1e-6
      return ops.where(ops.greater(norm, stop(most)), x / norm * most, x)
    end)
  -- By channel, axis 1: the statistics and what is made of them.
  local function channels(x)
    local axes, beside = {}, {}
    for i = 1, #x.shape do
      if i ~= 2 then axes[#axes + 1] = i - 1 end
      beside[i] = i == 2 and x.shape[2] or 1
    end
    return axes, function(v) return v ~= nil and ops.reshape(v, beside) or nil end
  end
  local function scaled(y, weight, bias)
    if weight ~= nil then y = y * weight end
    if bias ~= nil then y = y + bias end
    return y
  end
  local function by_channel(x, mean, var, weight, bias, eps, beside)
    return scaled((x - beside(mean)) / ops.sqrt(beside(var) + eps), beside(weight), beside(bias))
  end
  local function statistics(x, axes)
    local centred = x - ops.mean(x, axes, true)
    return ops.mean(x, axes), ops.mean(centred * centred, axes)
  end
  stands_for("batch_norm", function(x, mean, var, weight, bias, training, momentum, eps)
    return ops.batch_norm(stop(x), stop(mean), stop(var), stop(weight), stop(bias), training, stop(momentum), stop(eps))
  end, function(_, x, mean, var, weight, bias, training, _, eps)
    x = wide(x)
    local axes, beside = channels(x)
    if training then mean, var = statistics(x, axes) end
    return by_channel(x, mean, var, weight, bias, eps, beside)
  end)
  core.replace(ops.batch_norm_train, function(x, weight, bias, eps)
    local plain, plain_mean, plain_var = ops.batch_norm_train(stop(x), stop(weight), stop(bias), stop(eps))
    x = wide(x)
    local axes, beside = channels(x)
    local mean, var = statistics(x, axes)
    local y = by_channel(x, mean, var, weight, bias, eps, beside)
    return ops.cast(y, plain.dtype), ops.cast(mean, plain_mean.dtype), ops.cast(var, plain_var.dtype)
  end, true)
  core.replace(ops.clip_by_global_norm, function(list, most, norm)
    local fixed = {}
    for i, x in ipairs(list) do fixed[i] = stop(x) end
    local plain = { ops.clip_by_global_norm(fixed, stop(most), norm ~= nil and stop(norm) or nil) }
    if norm == nil then
      local total = 0.0
      for _, x in ipairs(list) do
        local v = wide(x)
        total = total + ops.sum(v * v)
      end
      -- The root has no derivative at 0, where it does not matter.
      norm = ops.sqrt(ops.where(ops.equal(total, 0.0), ops.ones_like(stop(total)), total))
      norm = ops.where(ops.equal(total, 0.0), 0.0, norm)
    else
      norm = ops.ones({}, ms.float64) * norm
    end
    local clipped = {}
    for i, x in ipairs(list) do
      clipped[i] = ops.cast(wide(x) * (most / ops.maximum(norm, most)), plain[i].dtype)
    end
    return table.unpack(clipped)
  end, true)

  -- The order of a norm. Elements are scaled by the largest (the smallest for negative orders), so that no power of one
  -- overflows, and a 0 has no logarithm.
  local function check_order(name, attribute, p)
    if p == 0 then
      core.fail(name .. ": has no gradient with respect to '" .. attribute ..
        "' at 0, where it counts the elements: pass ms.stop_gradient(" .. attribute .. ")")
    end
  end
  local function ordered_norm(x, p, axes, keep)
    if p == math.huge or p == -math.huge then return ops.vector_norm(x, stop(p), axes, keep) end
    local size = ops.abs(x)
    local zero = ops.equal(size, 0.0)
    local sound = ops.where(zero, 1.0, size)
    local scale
    if p > 0 then scale = ops.amax(stop(size), axes, true) else scale = ops.amin(stop(sound), axes, true) end
    scale = ops.where(ops.equal(scale, 0.0), 1.0, scale)
    local powers = ops.where(zero, 0.0, ops.pow(sound / scale, p))
    local total = ops.sum(powers, axes, true)
    local none = ops.equal(total, 0.0)
    if p < 0 then none = ops.greater(ops.amax(ops.cast(zero, x.dtype), axes, true), 0.0) end
    local norm = ops.where(none, 0.0, scale * ops.pow(ops.where(none, 1.0, total), 1 / p))
    if keep then return norm end
    return ops.reshape(norm, ops.sum(stop(x), axes).shape)
  end
  stands_for("vector_norm", function(x, p, axes, keep, dtype)
    check_order("vector_norm", "ord", p)
    return ops.vector_norm(stop(x), stop(p), axes, keep, { dtype = dtype })
  end, function(like, x, p, axes, keep) return ordered_norm(wide(ops.cast(x, like.dtype)), p, axes, keep) end)
  stands_for("norm", function(x, p, axes, keep, dtype)
    local y = ops.norm(stop(x), stop(p), axes, keep, { dtype = dtype })
    local left = axes ~= nil and #ops.sum(stop(x), axes).shape or 0
    if #x.shape - left ~= 1 then
      core.fail "norm: has no gradient with respect to 'ord' of a matrix norm: pass ms.stop_gradient(ord)"
    end
    check_order("norm", "ord", p)
    return y
  end, function(like, x, p, axes, keep) return ordered_norm(wide(ops.cast(x, like.dtype)), p, axes, keep) end)
  stands_for("cdist", function(a, b, p)
    check_order("cdist", "p", p)
    return ops.cdist(stop(a), stop(b), stop(p))
  end, function(_, a, b, p) return ordered_norm(ops.unsqueeze(wide(a), -2) - ops.unsqueeze(wide(b), -3), p, -1, false) end)

  -- Further losses.
  stands_for("cosine_embedding_loss", function(a, b, target, margin, reduction)
    return ops.cosine_embedding_loss(stop(a), stop(b), stop(target), stop(margin), reduction)
  end, function(_, a, b, target, margin, reduction)
    a, b = wide(a), wide(b)
    local function square(v) return ops.sum(v * v, -1) + 1e-12 end
    local cosine = ops.sum(a * b, -1) / ops.sqrt(square(a) * square(b))
    local alike = ops.where(ops.equal(target, 1.0), 1 - cosine, 0.0)
    return reduced(alike + ops.where(ops.equal(target, -1.0), ops.relu(cosine - margin), 0.0), reduction)
  end)
  stands_for("multi_margin_loss", function(x, target, p, margin, weight, reduction)
    return ops.multi_margin_loss(stop(x), target, p, stop(margin), stop(weight), reduction)
  end, function(_, x, target, p, margin, weight, reduction)
    x = wide(x)
    local axis = #x.shape == 1 and 0 or 1
    local classes, column = x.shape[axis + 1], {}
    for i = 1, #x.shape do column[i] = i == axis + 1 and 1 or x.shape[i] end
    local at = ops.reshape(target, column)
    local picked = ops.gather_elements(x, axis, at)
    local terms = ops.relu(x - picked + margin) ^ p
    if weight ~= nil then terms = terms * ops.reshape(ops.gather(weight, target, 0), column) end
    terms = ops.scatter(terms, axis, at, ops.zeros_like(stop(picked)))
    return reduced(ops.sum(terms, axis) / classes, reduction)
  end)
  stands_for("gaussian_nll_loss", function(x, target, var, full, eps, reduction)
    return ops.gaussian_nll_loss(stop(x), stop(target), stop(var), full, stop(eps), reduction)
  end, function(_, x, target, var, full, eps, reduction)
    x, target, var = wide(x), wide(target), wide(var)
    if #var.shape + 1 == #x.shape then var = ops.unsqueeze(var, -1) end
    var = var + ops.relu(eps - stop(var))
    local d = x - target
    local loss = (ops.log(var) + d * d / var) * 0.5
    if full then loss = loss + 0.5 * math.log(2 * math.pi) end
    return reduced(loss, reduction)
  end)

  -- Windows.
  -- The series of the Bessel function I0, whose terms are all positive, up to where they are below the rounding.
  local function bessel(z, size)
    local quarter = z * z * 0.25
    local sum, term = 1.0, 1.0
    for k = 1, math.ceil(20 + 1.5 * size) do
      term = term * quarter / (k * k)
      sum = sum + term
    end
    return sum
  end
  stands_for("kaiser_window", function(n, periodic, beta, dtype) return ops.kaiser_window(n, periodic, stop(beta), dtype) end,
    function(like, n, periodic, beta)
      if n <= 1 then return like end
      local size = math.abs(stop(beta))
      if size > 700 then
        core.fail "kaiser_window: has no gradient with respect to 'beta' above 700: pass ms.stop_gradient(beta)"
      end
      local at = ops.arange(n, { dtype = ms.float64 }) * (2 / (periodic and n or n - 1)) - 1
      local height = ops.sqrt(ops.maximum(1 - at * at, 0.0))
      return bessel(height * beta, size) / bessel(beta, size)
    end)
  core.replace(ops.gumbel_softmax, function(x, tau, hard, axis)
    local sample = ops.gumbel_softmax(stop(x), stop(tau), false, axis)
    -- Up to a shift that softmax does not see, these are the logits with their noise.
    local drawn = ops.log(ops.maximum(sample, 1e-30)) * stop(tau)
    local soft = ops.softmax((wide(x) - stop(x) + drawn) / tau, axis)
    if hard then
      local index = ops.argmax(sample, axis, true)
      local one = ops.scatter(ops.zeros_like(sample), axis, index, ops.ones_like(ops.narrow(sample, axis, 0, 1)))
      soft = stop(one - soft) + soft
    end
    return ops.cast(soft, sample.dtype)
  end, true)

  -- The derivative is 0 wherever there is one.
  for _, name in ipairs { "isclose", "approximate_equal", "histc", "pinv" } do
    local plain = ops[name]
    core.replace(plain, function(x, ...)
      if name == "isclose" then
        local y, rtol, atol, nan = ...
        return plain(x, y, stop(rtol), stop(atol), nan)
      elseif name == "approximate_equal" then
        local y, tolerance = ...
        return plain(x, y, stop(tolerance))
      elseif name == "histc" then
        local bins, low, high = ...
        return plain(x, bins, stop(low), stop(high))
      end
      local atol, rtol, hermitian = ...
      return plain(x, { atol = stop(atol), rtol = stop(rtol), hermitian = hermitian })
    end, true)
  end
end
