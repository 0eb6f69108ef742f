-- Function transforms: derivatives and vectorisation of Lua functions over tensors and numbers. All of them are plain
-- Lua over one primitive, core.vjp, and so are differentiated like anything else: they nest in any order.
local core = require "lunaria.autodiff"
local ms = require "lunaria"
local binding = require "lunaria.nn.arguments"
local ops = ms.ops

local T = {}

local is_tensor = ms.is_tensor

local function describe(v)
  if is_tensor(v) then return "a tensor of dtype " .. tostring(v.dtype) .. " and shape " .. tostring(v.shape) end
  if v == nil then return "nil" end
  if type(v) == "number" or type(v) == "boolean" then return "the " .. type(v) .. " " .. tostring(v) end
  if type(v) == "string" then return "the string '" .. v .. "'" end
  return binding.describe(v)
end

-- The line in an error is the user's, however many of the library's functions lie between.
local function error(message) core.fail(message) end

local function check_callable(f, name)
  if type(f) ~= "function" and not binding.is_callable(f) then
    error(name .. ": a function or another callable is expected, got " .. describe(f))
  end
end

-- Whether gradients with respect to x exist: floating-point tensors and numbers.
local is_float = core.is_float

local function zeros_of(x)
  if is_tensor(x) then return ops.zeros_like(x) end
  return 0.0
end

-- The gradient of an argument, in the structure of the argument: d is its cotangent, nil for zero; parts of tables are
-- in the context.
local function gradient_of(context, x, d, known)
  if type(x) ~= "table" then
    if d == nil then return zeros_of(x) end
    if type(x) == "number" and is_tensor(d) then return d:item() end
    return d
  end
  -- A table that occurs twice, or within itself, has one table of gradients.
  known = known or {}
  if known[x] then return known[x] end
  local result = {}
  known[x] = result
  for key, value in next, x do
    if type(value) == "table" then
      result[key] = gradient_of(context, value, nil, known)
    elseif is_float(value) then
      result[key] = gradient_of(context, value, core.cotangent(context, x, key))
    end
  end
  return result
end

-- The gradient by a tensor that came from outside, after the hooks that were registered there (tensor_methods.lua).
local function hooked(x, d)
  local list = core.tensor_hooks and d ~= nil and is_tensor(x) and core.tensor_hooks[x]
  if not list then return d end
  for _, hook in ipairs(list) do
    local other = hook(d)
    if other ~= nil then d = other end
  end
  return d
end

-- Positions as a set, for the primitive; and whether one or several gradients are asked for.
local function check_positions(positions, count, name)
  for _, p in ipairs(positions) do
    if math.type(p) ~= "integer" then
      error(name .. ": grad_position must be an integer or a table of integers, got " .. describe(p))
    elseif p < 0 or p >= count then
      error(string.format("%s: grad_position %d is out of range: the function was called with %d argument%s "
        .. "(positions count from 0)", name, p, count, count == 1 and "" or "s"))
    end
  end
end

local function check_argument(x, p, name)
  if type(x) == "table" or is_float(x) then return end
  if is_tensor(x) or math.type(x) == "integer" then
    error(string.format("%s: argument %d is %s: integers have no gradient\n  hint: pass a float (%s)", name, p,
      describe(x), is_tensor(x) and "x:float()" or string.format("%d.0", x)))
  end
  error(string.format("%s: argument %d is %s: only tensors, numbers and tables of them have a gradient", name, p,
    describe(x)))
end

-- Options by position or in one table of names.
local function options(name, position, weights, has_aux)
  position, weights, has_aux = binding.named(name, { "grad_position", "weights", "has_aux" }, position, weights, has_aux)
  if position == nil and weights == nil then position = 0 end
  if position == false then position = nil end
  if weights == false then weights = nil end
  if position ~= nil and math.type(position) ~= "integer" and type(position) ~= "table" then
    error(name .. ": grad_position must be an integer or a table of integers, got " .. describe(position))
  end
  local parameters
  if is_tensor(weights) then
    parameters = { weights }
  elseif type(weights) == "table" then
    parameters = {}
    for i = 1, #weights do
      if not is_tensor(weights[i]) then
        error(string.format("%s: weights[%d] must be a parameter, got %s", name, i, describe(weights[i])))
      end
      parameters[i] = weights[i]
    end
  elseif weights ~= nil then
    error(name .. ": weights must be a parameter or a table of parameters, got " .. describe(weights))
  end
  if has_aux ~= nil and type(has_aux) ~= "boolean" then
    error(name .. ": has_aux must be true or false, got " .. describe(has_aux))
  end
  return position, parameters, is_tensor(weights), has_aux
end

local function set_of(positions)
  local set = {}
  for _, p in ipairs(positions) do set[p] = true end
  return set
end

-- The function that value_and_grad and grad share: values, then gradients.
local function differentiate(name, f, position, weights, has_aux, with_value)
  check_callable(f, name)
  local parameters, single_weight
  position, parameters, single_weight, has_aux = options(name, position, weights, has_aux)
  local positions = type(position) == "table" and position or { position }
  local wanted = set_of(positions)
  local several = type(position) == "table"
  local single = not several and not parameters and not has_aux and position >= 0
  return function(...)
    if single and position < select("#", ...) then
      local x = select(position + 1, ...)
      if is_float(x) then
        local y, d = core.gradient(name, f, position, ...)
        if d == nil or type(x) == "number" then d = gradient_of(nil, x, d) end
        d = hooked(x, d)
        if with_value then return y, d end
        return d
      end
    end
    check_positions(positions, select("#", ...), name)
    local arguments = { ... }
    for i = 1, #positions do check_argument(arguments[positions[i] + 1], positions[i], name) end
    local all = table.pack(core.derivative(name, f, wanted, parameters, ...))
    local context, results, y, aux = all[1], all[2], all[3], nil
    if has_aux then
      aux = {}
      for i = 2, results do aux[i - 1] = all[2 + i] end
    end
    local by_position, by_weight
    if several then
      by_position = {}
      for i = 1, #positions do
        local p = positions[i] + 1
        by_position[i] = hooked(arguments[p], gradient_of(context, arguments[p], all[2 + results + p]))
      end
    elseif position then
      local x = arguments[position + 1]
      by_position = hooked(x, gradient_of(context, x, all[3 + results + position]))
    end
    if parameters then
      by_weight = {}
      for i = 1, #parameters do
        by_weight[i] = hooked(parameters[i], core.cotangent(context, parameters[i], 0) or zeros_of(parameters[i]))
      end
      if single_weight then by_weight = by_weight[1] end
    end
    if aux then
      local value = { y }
      for i = 1, #aux do value[i + 1] = aux[i] end
      if not with_value then y = aux else y = value end
    end
    if with_value then
      if not by_weight then return y, by_position end
      if by_position == nil then return y, by_weight end
      return y, by_position, by_weight
    end
    local first, second = by_position, by_weight
    if first == nil then first, second = by_weight, nil end
    if aux then
      if second ~= nil then return first, second, y end
      return first, y
    end
    if second ~= nil then return first, second end
    return first
  end
end

--- The function that computes the gradient of f, which must return one scalar.
--- grad_position: of the argument to differentiate by, from 0, or a table of positions (the result is then a table of
--- gradients). A table argument gives a table of gradients. weights: parameters whose gradients are wanted too (or,
--- with grad_position nil, only). has_aux: f returns further values, which the result hands on behind the gradients.
--- All options can be given in one table of names. Numbers that operators take as attributes have gradients where the
--- derivative exists, as the value of full, the slope of leaky_relu, the start of linspace, the eps of batch_norm or the
--- order of a norm.
--- Tensors may be written in place (y:add_(x), y[i] = x): as in a plain call, all names of the tensor see it.
--- So may parameters: gradients flow through w:assign(w - rate * g), ms.ops.assign and the steps of optimizers, also to
--- their learning rates. The running statistics of normalisations are moved without a gradient.
--- Derivatives of derivatives may be taken ten deep; each level doubles the time.
--- grad(net, loss) gives the second result of value_and_grad(net, loss).
---     > ms.grad(function(x) return x * x end)(3.0) --> 6.0
---     > #ms.grad(ms.nn.Dense(2, 1), ms.nn.MSELoss())(ms.ones { 4, 2 }, ms.ones { 4, 1 }) --> 2
---     > ms.grad(function(a) return ms.ops.sum(ms.ops.full({ 3 }, a)) end)(0.5) --> 3.0
---     > ms.grad(function(x) local y = x * x; local z = y; y:add_(x) return z end)(ms.tensor(3.0)):item() --> 7.0
function T.grad(f, grad_position, weights, has_aux)
  return differentiate("grad", f, grad_position, weights, has_aux, false)
end

--- The function that computes the value of f and its gradient, see grad. Of a network and a loss, value_and_grad(net, loss) is the
--- function of the network's inputs and a label that gives loss(net(inputs), label) and its gradients by the network's trainable
--- parameters; other weights are named: value_and_grad(net, loss, { weights = list }). With has_aux the first result is the table
--- {value, further results...}.
---     > ms.value_and_grad(function(x) return x * x end)(3.0) --> 9.0	6.0
---     > step = ms.value_and_grad(ms.nn.Dense(2, 1, { weight_init = "ones", bias_init = "zeros" }), ms.nn.MSELoss())
---     > loss, grads = step(ms.ones { 4, 2 }, ms.ones { 4, 1 })
---     > loss:item(), #grads --> 1.0	2
function T.value_and_grad(f, grad_position, weights, has_aux)
  return differentiate("value_and_grad", f, grad_position, weights, has_aux, true)
end

local function all_positions(...)
  local wanted = {}
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    if type(x) == "table" or is_float(x) then wanted[i - 1] = true end
  end
  return wanted
end

-- What goes in and out of functions whose derivative is not that of their text.
local content = core.content
local function contents(...)
  local n = select("#", ...)
  if n == 0 then return end
  if n == 1 then return content((...)) end
  return content((...)), contents(select(2, ...))
end

local function vjp(f, ...)
  return core.vjp(function(...) return contents(f(...)) end, ...)
end

-- Whether d can be a cotangent or tangent of x: of its shape, or a number for all elements.
local function goes_with(d, x)
  if d == nil or not (is_tensor(x) or type(x) == "number") then return true end
  if not is_tensor(d) then return type(d) == "number" end
  if not is_tensor(x) or #d.shape ~= #x.shape then return false end
  for k = 1, #x.shape do
    if d.shape[k] ~= x.shape[k] then return false end
  end
  return true
end

--- The value of f(...) and the function that takes a cotangent of it to the gradients of the arguments, one each.
--- With several results the value is a table of them and the function takes one cotangent for each.
---     > (function() local y, pull = ms.vjp(ms.ops.square, 3.0) return pull(1.0) end)() --> 6.0
function T.vjp(f, ...)
  check_callable(f, "vjp")
  local arguments = table.pack(...)
  local all = table.pack(vjp(f, all_positions(...), nil, ...))
  local pull, context = all[1], all[2]
  local value = all[3]
  if all.n > 3 then
    value = {}
    for i = 3, all.n do value[i - 2] = all[i] end
  end
  local results = all.n - 2
  return value, function(...)
    local given = select("#", ...)
    if given ~= results then
      error(string.format("vjp: the function has %d result%s, got %d cotangent%s", results, results == 1 and "" or "s",
        given, given == 1 and "" or "s"))
    end
    local ds = { ... }
    for i = 1, results do
      if not goes_with(ds[i], all[i + 2]) then
        error(string.format("vjp: cotangent %d is %s, the result is %s", i - 1, describe(ds[i]), describe(all[i + 2])))
      end
    end
    local cotangents = { pull(...) }
    local gradients = {}
    for i = 1, arguments.n do
      local x = arguments[i]
      if type(x) == "table" or is_float(x) then
        gradients[i] = gradient_of(context, x, cotangents[i])
      end
    end
    return table.unpack(gradients, 1, arguments.n)
  end
end

-- The inner product of two lists of tensors or numbers.
local function inner(a, b, n)
  local sum = 0.0
  for i = 1, n do
    if a[i] ~= nil and b[i] ~= nil then
      local product = a[i] * b[i]
      sum = sum + (is_tensor(product) and ops.sum(product) or product)
    end
  end
  return sum
end

local function as_list(x)
  if type(x) == "table" then return x end
  return { x }
end

--- The value of f and its derivative in the direction of the tangents: ms.jvp(f, x, v), or tables of both for several
--- arguments. One product of forward mode, made by transposing reverse mode twice.
---     > select(2, ms.jvp(ms.ops.square, 3.0, 1.0)):item() --> 6.0
function T.jvp(f, primals, tangents)
  check_callable(f, "jvp")
  local xs, vs = as_list(primals), as_list(tangents)
  local n = #xs
  if #vs ~= n then error(string.format("jvp: %d arguments but %d tangents", n, #vs)) end
  for i = 1, n do
    check_argument(xs[i], i - 1, "jvp")
    if not goes_with(vs[i], xs[i]) then
      error(string.format("jvp: tangent %d is %s, the argument is %s", i - 1, describe(vs[i]), describe(xs[i])))
    end
  end
  local wanted = {}
  for i = 1, n do wanted[i - 1] = true end
  local values = table.pack(f(table.unpack(xs, 1, n)))
  local seeds = {}
  for i = 1, values.n do seeds[i] = zeros_of(values[i]) end
  -- u -> <J^T u, v>, linear in u: its gradient is J v.
  local function transposed(...)
    local pull = vjp(f, wanted, nil, table.unpack(xs, 1, n))
    return inner({ pull(...) }, vs, n)
  end
  local seen = {}
  for i = 1, values.n do seen[i - 1] = true end
  local back, context = vjp(transposed, seen, nil, table.unpack(seeds, 1, values.n))
  local d = { back(1.0) }
  for i = 1, values.n do d[i] = gradient_of(context, values[i], d[i]) end
  if values.n == 1 then return values[1], d[1] end
  return values, d
end

local function shape_list(...)
  local result = {}
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    if is_tensor(x) then
      for j = 1, #x.shape do result[#result + 1] = x.shape[j] end
    end
  end
  return result
end

local function as_tensor(x, like)
  if is_tensor(x) then return x end
  return is_tensor(like) and ops.full({}, x, { dtype = like.dtype }) or x
end

local vmap = require "lunaria.vmap"(core, check_callable, describe, as_tensor)

-- Takes f over the tensors that are one at a single element of x and zero elsewhere, in one run for as many of them as
-- take little memory. For each result of f a list of parts, to be put together along the first axis. `like`: what f
-- gives has the sizes of these.
local AT_ONCE = 1 << 22
local function for_each_element(x, like, f)
  local total, shape = x:numel(), shape_list(x)
  local largest = total
  for _, other in ipairs(like) do
    if is_tensor(other) then largest = math.max(largest, other:numel()) end
  end
  local step = math.max(1, AT_ONCE // math.max(1, largest))
  local run, columns = vmap(f), {}
  for from = 0, total - 1, step do
    local count = math.min(step, total - from)
    local at = ops.reshape(ops.arange(from, from + count), { count, 1 })
    local units = ops.cast(ops.equal(at, ops.arange(total)), x.dtype)
    local results = { run(ops.reshape(units, { count, table.unpack(shape) })) }
    for k = 1, #results do
      columns[k] = columns[k] or {}
      columns[k][#columns[k] + 1] = results[k]
    end
  end
  return columns
end

-- The derivatives of all elements of y by x out of the parts for these elements, in the structure of x.
local function rows_of(parts, y, x)
  if type(x) ~= "table" then
    if #parts == 0 then return ops.zeros(shape_list(y, x), y.dtype) end
    return ops.reshape(#parts == 1 and parts[1] or ops.concat(parts, 0), shape_list(y, x))
  end
  local result = {}
  for key in next, parts[1] or {} do
    local column = {}
    for i = 1, #parts do column[i] = parts[i][key] end
    result[key] = rows_of(column, y, x[key])
  end
  return result
end

--- The function that computes the Jacobian of f by reverse mode: a tensor of shape (shape of f's result..., shape of
--- the argument...). grad_position as in grad. The rows are computed in one run, as by vmap.
---     > ms.jacrev(ms.ops.square)(ms.tensor{1.0, 2.0}):tolist()[2][2] --> 4.0
function T.jacrev(f, grad_position)
  check_callable(f, "jacrev")
  grad_position = binding.named("jacrev", { "grad_position" }, grad_position)
  local position = grad_position or 0
  local positions = type(position) == "table" and position or { position }
  return function(...)
    check_positions(positions, select("#", ...), "jacrev")
    local arguments = { ... }
    for _, p in ipairs(positions) do check_argument(arguments[p + 1], p, "jacrev") end
    local pull, context, y = vjp(f, set_of(positions), nil, ...)
    if not (is_tensor(y) or type(y) == "number") then
      error("jacrev: the function must return a tensor or a number, got " .. describe(y))
    end
    local function row(d)
      local all, list = { pull(d) }, {}
      for i, p in ipairs(positions) do
        local g = gradient_of(context, arguments[p + 1], all[p + 1])
        list[i] = type(g) == "table" and g or as_tensor(g, y)
      end
      return table.unpack(list, 1, #positions)
    end
    local result = {}
    if is_tensor(y) then
      local columns = for_each_element(y, arguments, row)
      for i, p in ipairs(positions) do result[i] = rows_of(columns[i] or {}, y, arguments[p + 1]) end
    else
      result = { row(1.0) }
    end
    if type(position) == "table" then return result end
    return result[1]
  end
end

--- The Jacobian as jacrev gives it, by forward mode: cheaper where there are fewer inputs than results. The columns are
--- computed in one run, as by vmap.
---     > ms.jacfwd(ms.ops.square)(ms.tensor{1.0, 2.0}):tolist()[2][2] --> 4.0
function T.jacfwd(f, grad_position)
  check_callable(f, "jacfwd")
  grad_position = binding.named("jacfwd", { "grad_position" }, grad_position)
  local position = grad_position or 0
  local positions = type(position) == "table" and position or { position }
  return function(...)
    check_positions(positions, select("#", ...), "jacfwd")
    local arguments = table.pack(...)
    local result = {}
    for i, p in ipairs(positions) do
      local x = arguments[p + 1]
      check_argument(x, p, "jacfwd")
      local function partial(v)
        local all = {}
        for k = 1, arguments.n do all[k] = arguments[k] end
        all[p + 1] = v
        return f(table.unpack(all, 1, arguments.n))
      end
      local function column(v)
        local _, t = T.jvp(partial, x, v)
        return as_tensor(t, x)
      end
      if is_tensor(x) then
        local parts = for_each_element(x, arguments, column)[1]
        if not parts then
          local y = partial(x)
          parts = { ops.zeros({ 0, table.unpack(shape_list(y)) }, x.dtype) }
        end
        local all = #parts == 1 and parts[1] or ops.concat(parts, 0)
        local shape = {}
        for k = 2, #all.shape do shape[k - 1] = all.shape[k] end
        for k = 1, #x.shape do shape[#shape + 1] = x.shape[k] end
        result[i] = ops.reshape(ops.moveaxis(all, 0, -1), shape)
      else
        result[i] = column(1.0)
      end
    end
    if type(position) == "table" then return result end
    return result[1]
  end
end

--- The function that computes the matrix of second derivatives of a scalar function.
---     > ms.hessian(function(x) return ms.ops.sum(x ^ 3) end)(ms.tensor{1.0, 2.0}):tolist()[2][2] --> 12.0
function T.hessian(f, grad_position)
  check_callable(f, "hessian")
  grad_position = binding.named("hessian", { "grad_position" }, grad_position)
  return T.jacrev(T.grad(f, grad_position or 0), grad_position or 0)
end

T.vmap = vmap

T.stop_gradient = core.stop

--- A function with a derivative of its own: back(arguments..., results..., cotangents...) gives one gradient for each
--- argument of f. The cotangent of a result that nothing depends on is zero; where nothing depends on any of them back is
--- not called. f may write in place into its own tensors, not into its arguments: that is an error where a derivative
--- is computed.
---     > ms.grad(ms.custom_vjp(function(x) return x * x end, function(x, y, d) return 10 * d end))(3.0) --> 10.0
function T.custom_vjp(f, back)
  check_callable(f, "custom_vjp")
  check_callable(back, "custom_vjp")
  return function(...) return core.custom(f, back, contents(...)) end
end

--- f with its intermediate values computed again for the gradient instead of being kept: less memory, more time. f must
--- not write in place into its arguments and local variables of the function around it, nor may the latter be written
--- between the call and the gradient: both are errors where a derivative is computed. What f finds in tables should not
--- change meanwhile either, if its result depends on it. Random numbers, as masks of dropout, are the same both times.
---     > ms.grad(ms.checkpoint(function(x) return x * x end))(3.0) --> 6.0
function T.checkpoint(f)
  check_callable(f, "checkpoint")
  return function(...)
    local before, count, drew = ms.get_rng_state(), core.draws(0), false
    local function again(...)
      if not drew then return contents(f(...)) end
      local now = ms.get_rng_state()
      ms.set_rng_state(before)
      local results = table.pack(contents(f(...)))
      ms.set_rng_state(now)
      return table.unpack(results, 1, results.n)
    end
    local function noted(...)
      drew = core.draws(0) ~= count
      return ...
    end
    return noted(core.checkpoint(f, again, contents(...)))
  end
end
T.recompute = T.checkpoint

local function is_number(value) return math.type(value) ~= nil, "a number" end
local function is_position(value)
  return math.type(value) == "integer" or type(value) == "table", "an integer or a table of integers"
end
local check_options = { eps = is_number, rtol = is_number, atol = is_number, directions = is_number, grad_position = is_position }

--- Compares the gradient of f at the arguments with central differences along random directions; raises an error where
--- they disagree and returns the largest relative deviation. options: eps, rtol, atol, directions, grad_position.
---     > ms.check_grad(function(x) return ms.ops.sum(x * x) end, {ms.tensor({1.0, 2.0}, ms.float64)}) < 1e-6 --> true
function T.check_grad(f, arguments, opts)
  check_callable(f, "check_grad")
  if type(arguments) ~= "table" then arguments = { arguments } end
  opts = binding.options("check_grad", opts, check_options, "{ eps = 1e-3 }")
  -- What the value's rounding may add to a difference; in float32 it asks for wide steps.
  local unit = 2.0 ^ -53
  for _, x in ipairs(arguments) do
    if is_tensor(x) and is_float(x) and x.dtype ~= ms.float64 then
      unit = math.max(unit, x.dtype == ms.float32 and 2.0 ^ -24 or 2.0 ^ -9)
    end
  end
  local eps = opts.eps or (unit < 1e-12 and 1e-3 or unit < 1e-6 and 3e-2 or 0.2)
  local rtol, atol = opts.rtol or (unit < 1e-6 and 1e-3 or 5e-2), opts.atol or 1e-5
  local positions = {}
  for i, x in ipairs(arguments) do
    if is_float(x) then positions[#positions + 1] = i - 1 end
  end
  if opts.grad_position then positions = as_list(opts.grad_position) end
  local gradients = T.grad(f, positions)(table.unpack(arguments))
  local function value(...)
    local y = f(...)
    return is_tensor(y) and y:item() or y
  end
  local worst = 0.0
  for _ = 1, opts.directions or 4 do
    local expected, directions, largest = 0.0, {}, 0.0
    for i, p in ipairs(positions) do
      local x = arguments[p + 1]
      if is_tensor(x) then
        directions[i] = ops.cast(ops.randn(shape_list(x)), x.dtype)
        expected = expected + ops.sum(gradients[i] * directions[i]):item()
      else
        directions[i] = math.random() * 2 - 1
        expected = expected + gradients[i] * directions[i]
      end
    end
    local function at(step)
      local moved = {}
      for i, x in ipairs(arguments) do moved[i] = x end
      for i, p in ipairs(positions) do moved[p + 1] = moved[p + 1] + directions[i] * step end
      local y = value(table.unpack(moved))
      largest = math.max(largest, math.abs(y))
      return y
    end
    -- Two central differences, of whose errors the larger part cancels.
    local wide = (at(eps) - at(-eps)) / (2 * eps)
    local found = (4 * (at(eps / 2) - at(-eps / 2)) / eps - wide) / 3
    local difference = math.abs(found - expected)
    if not (difference <= atol + rtol * math.abs(found) + 4 * unit * largest / eps) then
      error(string.format("check_grad: the gradient says %.9g along a random direction, differences say %.9g",
        expected, found))
    end
    worst = math.max(worst, difference / math.max(math.abs(found), atol))
  end
  return worst
end

local orders = setmetatable({}, { __mode = "k" })

--- The graph of a function; of its derivative for ms.ir(ms.grad(f)). It prints as text and is drawn in a notebook; the
--- methods of strings work on the text, and svg() gives the drawing.
---     > g = ms.ir(function(x) return x * x end)
---     > g:find("mul", 1, true) ~= nil, g:svg():match("^<svg") --> true	<svg
function T.ir(f, order)
  check_callable(f, "ir")
  order = binding.named("ir", { "order" }, order)
  local known = orders[f]
  local text = known and core.graph_text(known.f, known.order + (order or 0)) or core.graph_text(f, order or 0)
  return require "lunaria.rich.graph" (text)
end

-- For help, which finds the text of a function where it stands: what those below are made of.
local wrapped = { "grad", "value_and_grad", "vmap", "jacrev", "jacfwd", "hessian" }
core.declared = {}
for _, name in ipairs(wrapped) do core.declared[name] = T[name] end

-- What ms.ir shows for the result of grad is J of the function, not the library's code around it.
for _, name in ipairs { "grad", "value_and_grad" } do
  local plain = T[name]
  T[name] = function(f, ...)
    local result = plain(f, ...)
    local known = orders[f]
    core.note(orders, result, known and known.f or f, (known and known.order or 0) + 1)
    return result
  end
end

-- In graph mode the functions that these give are compiled from their second call on.
local jit = require "lunaria.jit"
local mode, inside = jit.mode, jit.inside
-- What they were made of, for programs that are saved.
core.transformed = setmetatable({}, { __mode = "k" })
for _, name in ipairs(wrapped) do
  local plain = T[name]
  T[name] = function(f, ...)
    local result, compiled = plain(f, ...), nil
    local function either(...)
      if not mode.graph or inside() then return result(...) end
      if not compiled then
        require "lunaria.graph"
        compiled = jit.make(result, { patience = 1, label = ("%s of %s"):format(name, jit.name(f)) })
        jit.note_compiled(either, compiled)
      end
      return compiled(...)
    end
    local known = orders[result]
    if known then core.note(orders, either, known.f, known.order) end
    core.note(core.transformed, either, table.pack(f, ...), name)
    return either
  end
end

-- The loss of a network: its inputs, and a label behind them.
local function loss_of(net, loss)
  return function(x, y, ...)
    local more = select("#", ...)
    if more == 0 then return loss(net(x), y) end
    local all = { x, y, ... }
    return loss(net(table.unpack(all, 1, more + 1)), all[more + 2])
  end
end

for _, name in ipairs { "grad", "value_and_grad" } do
  local plain = T[name]
  T[name] = function(f, ...)
    local loss, named = ...
    if not binding.is_callable(loss) then return plain(f, ...) end
    if not require "lunaria.nn.cell".is_cell(f) then
      error(("%s: of a network and a loss, the network must be a cell, got %s"):format(name, describe(f)))
    end
    local given = binding.options(name, named, { has_aux = "boolean",
      weights = function(v) return type(v) == "table" or is_tensor(v), "a list of parameters" end }, "{ weights = net:trainable_params() }")
    return plain(loss_of(f, loss), nil, given.weights or f:trainable_params(), given.has_aux)
  end
end

require "lunaria.adjoints" (core, ms)
require "lunaria.adjoints_attributes" (core, ms)
require "lunaria.adjoints_optimizers" (core, ms)
require "lunaria.adjoints_methods" (core, ms)
require "lunaria.adjoints_session" (core)

for name, f in pairs(T) do rawset(ms, name, f) end
return T
