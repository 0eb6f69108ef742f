-- L-BFGS as an optimizer of parameters: a step evaluates the loss as often as it needs, through a function that it is given.
-- Counts, tolerances and the line search are those of torch.optim.LBFGS, so that programs find the same points.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.nn.optim"
local limited = require "lunaria.nn.limited_memory"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local function number(x) return ms.is_tensor(x) and x:item() or x end
local function largest(x) return ops.amax(ops.abs(x)):item() end
local function dot(a, b) return ops.sum(a * b):item() end

-- Where the cubic through two points with their values and slopes is least, within bounds.
local function least_of_cubic(a, b, low, high)
  local d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
  local square = d1 * d1 - a.slope * b.slope
  if not (square >= 0) then return (low + high) / 2 end
  local d2 = math.sqrt(square)
  local left, right = a, b
  if a.t > b.t then left, right = b, a end
  local t = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
  return math.min(math.max(t, low), high)
end

local MOST = 25 -- evaluations of a line search

-- A step along a direction that fulfils the strong Wolfe conditions, where it is found: at(t) gives the point { t, value, gradient,
-- slope }. start: the point 0. reach: the largest element of the direction.
local function strong_wolfe(at, t, start, reach, tolerance)
  local c1, c2 = 1e-4, 0.9
  local function too_high(p) return p.value > start.value + c1 * p.t * start.slope end
  local function is_flat(p) return math.abs(p.slope) <= -c2 * start.slope end
  local before, now, count = start, at(t), 0
  local a, b
  while count < MOST do
    if too_high(now) or (count > 1 and now.value >= before.value) then
      a, b = before, now
      break
    elseif is_flat(now) then
      return now, count + 1
    elseif now.slope >= 0 then
      a, b = before, now
      break
    end
    local following = least_of_cubic(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10)
    before, now = now, at(following)
    count = count + 1
  end
  if not a then a, b = start, now end
  -- Between these two there is a point that will do; low is the better one.
  local low, high = a, b
  if not (a.value <= b.value) then low, high = b, a end
  local little = false
  while count < MOST and math.abs(b.t - a.t) * reach >= tolerance do
    local left, right = math.min(low.t, high.t), math.max(low.t, high.t)
    t = least_of_cubic(low, high, left, right)
    local margin = 0.1 * (right - left)
    if math.min(right - t, t - left) < margin then
      -- Too near to an end: the second time in a row it is moved away.
      if little or t >= right or t <= left then
        t = math.abs(t - right) < math.abs(t - left) and right - margin or left + margin
        little = false
      else
        little = true
      end
    else
      little = false
    end
    now = at(t)
    count = count + 1
    if too_high(now) or now.value >= low.value then
      high = now
      if not (low.value <= high.value) then low, high = high, low end
    else
      if is_flat(now) then return now, count + 1 end
      if now.slope * (high.t - low.t) >= 0 then high = low end
      low = now
    end
    a, b = low, high
  end
  return low, count + 1
end

local function setup(self, a, rate_name)
  local name = getmetatable(self)._name
  base.setup(self, a, rate_name)
  if #self.param_groups > 1 then fail(name, "has one group of parameters, got " .. #self.param_groups) end
  self.max_iter = check.positive(name, "max_iter", a.max_iter)
  self.max_eval = a.max_eval == nil and self.max_iter * 5 // 4 or check.positive(name, "max_eval", a.max_eval)
  self.tolerance_grad = check.number_not_negative(name, "tolerance_grad", a.tolerance_grad)
  self.tolerance_change = check.number_not_negative(name, "tolerance_change", a.tolerance_change)
  self.history_size = check.positive(name, "history_size", a.history_size)
  if a.line_search_fn ~= nil then
    self.line_search_fn = check.choice(name, "line_search_fn", a.line_search_fn, { "strong_wolfe" })
  end
  rawset(self, "curvature", limited(self.history_size, function(product) return product > 1e-10 end))
end

local function flat(list)
  local parts = {}
  for i = 1, #list do parts[i] = ops.reshape(list[i], { -1 }) end
  return #parts == 1 and parts[1] or ops.concat(parts, 0)
end

local function write(parameters, vector)
  local from = 0
  for _, p in ipairs(parameters) do
    p:assign(ops.reshape(vector[{ ms.slice(from, from + p.size) }], p.shape):astype(p.dtype))
    from = from + p.size
  end
end

-- The loss and the gradients that the function gives, as a number and a vector.
local function evaluate(self, closure)
  local name, loss, grads = getmetatable(self)._name, closure()
  if ms.is_tensor(grads) and #self.parameters == 1 then grads = { grads } end
  if type(grads) ~= "table" or #grads ~= #self.parameters then
    fail(name, ("the function must give the loss and a table of %d gradients, got %s and %s"):format(#self.parameters, describe(loss),
      describe(grads)), "ms.value_and_grad(f, nil, optimizer.parameters) is such a function")
  end
  local value = number(loss)
  if math.type(value) == nil then fail(name, "the loss must be one number, got " .. describe(loss)) end
  return loss, value + 0.0, flat(grads)
end

local function construct(self, closure)
  local name = getmetatable(self)._name
  if not arguments.is_callable(closure) then
    fail(name, "a function that gives the loss and the gradients is expected, got " .. describe(closure),
      "optimizer(ms.value_and_grad(f, nil, optimizer.parameters))")
  end
  local parameters, curvature = self.parameters, self.curvature
  local rate, change = base.rate_at(name, self.rate_name, self.learning_rate, self.global_step), self.tolerance_change
  local first_loss, value, gradient = evaluate(self, closure)
  local evaluations, iterations = 1, 0
  local done = largest(gradient) <= self.tolerance_grad
  while not done and iterations < self.max_iter do
    iterations = iterations + 1
    local last, t = self._last, rate
    if last then
      curvature.update(last.direction * last.t, gradient - last.gradient)
    else
      t = math.min(1.0, 1.0 / ops.sum(ops.abs(gradient)):item()) * rate
    end
    local direction = curvature.direction(gradient)
    local before = value
    rawset(self, "_last", { direction = direction, t = t, gradient = gradient })
    local slope = dot(gradient, direction)
    if slope > -change then break end
    local from = flat(parameters)
    local function at(step)
      write(parameters, from + direction * step)
      local _, v, g = evaluate(self, closure)
      return { t = step, value = v, gradient = g, slope = dot(g, direction) }
    end
    local count = 0
    if self.line_search_fn then
      local found
      found, count = strong_wolfe(at, t, { t = 0.0, value = value, gradient = gradient, slope = slope }, largest(direction), 1e-9)
      t, value, gradient = found.t, found.value, found.gradient
      self._last.t = t
      write(parameters, from + direction * t)
    else
      write(parameters, from + direction * t)
      -- What the last step gives is not asked for.
      if iterations ~= self.max_iter then
        local _
        _, value, gradient = evaluate(self, closure)
        count = 1
      end
    end
    evaluations = evaluations + count
    done = iterations == self.max_iter or evaluations >= self.max_eval or largest(gradient) <= self.tolerance_grad
      or largest(direction * t) <= change or math.abs(value - before) < change
  end
  self.global_step = self.global_step + 1
  return first_loss
end

local doc = [[Limited-memory BFGS (Liu, Nocedal 1989): optimizer(closure) makes up to max_iter steps and gives the loss at the beginning.
closure gives the loss and the gradients, as ms.value_and_grad(f, nil, optimizer.parameters) does; it is called as often as is needed.

max_iter: steps of a call. max_eval: calls of closure after which it stops, 1.25 max_iter by default. tolerance_grad: it stops where
no element of the gradient is larger. tolerance_change: it stops where the parameters or the loss change less. history_size: how
many steps are remembered. line_search_fn: "strong_wolfe" looks along each direction for a step with the strong Wolfe conditions; by
default a step is %s.

  > w = ms.Parameter(ms.zeros { 2 }, "w")
  > optimizer = ms.nn.%s({ w }, { line_search_fn = "strong_wolfe" })
  > optimizer(ms.value_and_grad(function() return ms.ops.sum((w - 3) ^ 2) end, nil, { w }))
  > w:tolist()[2] --> 3.0]]

local function define(class_name, prefix, rate_name)
  local class = base.layer("LBFGS", "params, " .. rate_name .. "=1.0, max_iter=20, max_eval=nil, tolerance_grad=1e-7, "
    .. "tolerance_change=1e-9, history_size=100, line_search_fn=nil", doc:format(rate_name, prefix .. class_name))
  function class:setup(a) setup(self, a, rate_name) end
  class.construct = construct
  -- How often the function is called depends on what it gives: graph mode compiles the function, not the steps.
  class.__call = function(self, closure) return self:construct(closure) end
  --- What the optimizer remembers and the number of its steps, for a checkpoint.
  function class:state_dict()
    local list = self.curvature.list
    return { global_step = self.global_step, last = self._last, list = table.move(list, 1, #list, 1, {}) }
  end
  --- Takes up the state that state_dict gave.
  function class:load_state_dict(state)
    if type(state) ~= "table" or math.type(state.global_step) ~= "integer" or type(state.list) ~= "table" then
      fail("LBFGS", "the state must be what state_dict gave, got " .. describe(state))
    end
    local list = self.curvature.list
    for i = #list, 1, -1 do list[i] = nil end
    table.move(state.list, 1, #state.list, 1, list)
    rawset(self, "_last", state.last)
    self.global_step = state.global_step
  end
  return class
end

return { LBFGS = define("LBFGS", "", "learning_rate"), like_torch = define("LBFGS", "optim.", "lr") }
