-- Replacements of optimizers' steps for derivatives by what they change or are given: the same formulas by
-- operators, whose results are assigned to the parameters and moments. So gradients flow through updates.
local type, ipairs, next, select, tostring, table, math = type, ipairs, next, select, tostring, table, math

return function(core, ms)
  local ops = ms.ops

  -- Computed as the operator does: half precision only in what is kept.
  local function wide(x)
    return x.dtype == ms.float64 and x or ops.cast(x, ms.float32)
  end
  local function put(t, value) t["..."] = ops.cast(value, t.dtype) end

  -- The arguments in order, with their defaults; the last may be a table of names.
  local function in_order(names, defaults, ...)
    local n, given = select("#", ...), { ... }
    local named = given[n]
    if type(named) == "table" and type(next(named)) == "string" then given[n] = nil else named = {} end
    local all = {}
    for i, name in ipairs(names) do
      local value = given[i]
      if value == nil then value = named[name] end
      if value == nil then value = defaults[name] end
      all[i] = value
    end
    return all
  end

  local function fits(list, params)
    if type(list) ~= "table" or #list ~= #params then return false end
    for i, p in ipairs(params) do
      local t = list[i]
      if not (ms.is_tensor(p) and ms.is_tensor(t) and core.is_float(p) and core.is_float(t)) then return false end
      if tostring(t.shape) ~= tostring(p.shape) then return false end
    end
    return true
  end

  -- `lists`: how many of the arguments are lists of tensors, of which the one at `optional` may be nil. update(decays, p, g, ...) gets
  -- the tensors of one parameter, then the numbers.
  local function steps(name, lists, optional, names, defaults, update)
    local plain = core.original(ops[name])
    core.replace(ops[name], function(...)
      local all = in_order(names, defaults, ...)
      local params, decayed = all[1], all[#names]
      local sound = type(params) == "table" and (decayed == nil or #decayed == #params)
      for i = 1, lists do sound = sound and (fits(all[i], params) or i == optional and all[i] == nil) end
      for i = lists + 1, #names - 2 do sound = sound and (math.type(all[i]) ~= nil or ms.is_tensor(all[i])) end
      -- The operator says what is wrong.
      if not sound then
        plain(...)
        core.fail(name .. ": has no derivative with these arguments")
      end
      for i = 1, #params do
        local of_one = table.move(all, lists + 1, #names - 1, lists + 1, {})
        for k = 1, lists do of_one[k] = all[k] and all[k][i] end
        update(decayed == nil or decayed[i], table.unpack(of_one, 1, #names - 1))
      end
    end, true)
  end

  steps("apply_momentum", 3, 3, {
    "params", "grads", "accumulators", "lr", "momentum", "dampening", "weight_decay", "nesterov", "decayed",
  }, { momentum = 0.0, dampening = 0.0, weight_decay = 0.0, nesterov = false },
    function(decays, p, g, a, rate, momentum, dampening, weight_decay, nesterov)
      g = wide(g)
      if decays then g = g + wide(p) * weight_decay end
      if a == nil then
        if momentum ~= 0 then core.fail "apply_momentum: accumulators are missing: momentum needs one for every parameter" end
        return put(p, wide(p) - g * rate)
      end
      local moved = wide(a) * momentum + g * (1 - dampening)
      put(a, moved)
      put(p, wide(p) - (nesterov and g + moved * momentum or moved) * rate)
    end)

  -- Where it is 0 the root has no derivative, and what is divided by it is 0 too.
  local function root(v)
    local none = ops.equal(v, 0.0)
    return ops.where(none, 0.0, ops.sqrt(ops.where(none, 1.0, v)))
  end
  steps("apply_adam", 5, 5, {
    "params", "grads", "moments", "squares", "maxima", "step", "beta1", "beta2", "eps", "l2", "decay", "nesterov", "decayed",
  }, { beta1 = 0.9, beta2 = 0.999, eps = 1e-8, l2 = 0.0, decay = 1.0, nesterov = false },
    function(decays, p, g, m, v, most, step, beta1, beta2, eps, l2, decay, nesterov)
      local old = wide(p)
      g = wide(g)
      if decays then
        g, old = g + old * l2, old * decay
      end
      local moment = wide(m) * beta1 + g * (1 - beta1)
      local square = wide(v) * beta2 + g * g * (1 - beta2)
      put(m, moment)
      put(v, square)
      if most ~= nil then
        square = ops.maximum(wide(most), square)
        put(most, square)
      end
      if nesterov then moment = moment * beta1 + g * (1 - beta1) end
      put(p, old - moment * step / (root(square) + eps))
    end)

  -- The norm of all elements, whose derivative at 0 is 0.
  local function norm(x) return root(ops.sum(x * x)) end
  steps("apply_lamb", 4, nil, {
    "params", "grads", "moments", "squares", "lr", "beta1", "beta2", "eps", "correction1", "correction2", "weight_decay", "decayed",
  }, { beta1 = 0.9, beta2 = 0.999, eps = 1e-6, correction1 = 1.0, correction2 = 1.0, weight_decay = 0.0 },
    function(decays, p, g, m, v, rate, beta1, beta2, eps, correction1, correction2, weight_decay)
      local old = wide(p)
      g = wide(g)
      local moment = wide(m) * beta1 + g * (1 - beta1)
      local square = wide(v) * beta2 + g * g * (1 - beta2)
      put(m, moment)
      put(v, square)
      local u = moment / correction1 / (root(square / correction2) + eps)
      if decays then u = u + old * weight_decay end
      local own, moved = norm(old), norm(u)
      local sound = ops.logical_and(ops.greater(own, 0.0), ops.greater(moved, 0.0))
      local ratio = ops.where(sound, own / ops.where(sound, moved, 1.0), 1.0)
      put(p, old - u * ratio * rate)
    end)
end
