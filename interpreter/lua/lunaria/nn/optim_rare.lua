-- Optimizers with MindSpore's names of arguments for large batches, sparse models and little memory, written with operators.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.nn.optim"
local optimizer = require "lunaria.nn.optim_rule"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local classes = {}

local function pair(name, key, value)
  if type(value) ~= "table" or #value ~= 2 then
    fail(name, ("%s must be a table of two numbers, got %s"):format(key, describe(value)))
  end
  return check.number(name, key .. "[1]", value[1]), check.number(name, key .. "[2]", value[2])
end

classes.ASGD = optimizer("ASGD", {
  signature = "params, learning_rate=0.1, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0",
  doc = [[Gradient descent with averaged parameters (Polyak, Juditsky 1992): p = (1 - lambd r) p - r g, where r is learning_rate at
first and after each step t learning_rate / (1 + lambd learning_rate t)^alpha, with the rate of that step: a schedule acts one step later.
The averages, from step t0 on, are the optimizer's parameters "ax...".

lambd: the decay. alpha: the power of the rate. t0: the step from which on parameters are averaged.

  > ms.nn.ASGD(ms.nn.Dense(2, 3):trainable_params(), 0.1)
  ASGD<learning_rate=0.1, parameters=2>]],
  setup = function(self, a)
    for _, key in ipairs { "lambd", "alpha", "t0" } do self[key] = check.number("ASGD", key, a[key]) end
  end,
  slots = { { "ax", 0.0 }, { "eta", 0.0, shape = {} } },
  rule = function(self, p, g, rate, step, _, average, eta)
    local now = eta
    if step == 1 then now = rate end
    local new = ops.cast(p * (1 - self.lambd * now) - now * g, p.dtype)
    average:assign(average + (new - average) / math.max(1, step - 1 - self.t0))
    eta:assign(ops.full_like(eta, rate / (1 + self.lambd * rate * step) ^ self.alpha))
    return new
  end,
})

classes.Rprop = optimizer("Rprop", {
  signature = "params, learning_rate=0.1, etas=nil, step_sizes=nil, weight_decay=0.0",
  doc = [[Resilient backpropagation (Riedmiller, Braun 1993): each element has a step of its own, which grows while the sign of its gradient
stays and shrinks when it changes; then the element waits for a step.

etas: {0.5, 1.2} by default, the factors by which steps shrink and grow. step_sizes: {1e-6, 50} by default, the least and the largest
step. The first step is learning_rate.

  > ms.nn.Rprop(ms.nn.Dense(2, 3):trainable_params(), 0.1)
  Rprop<learning_rate=0.1, parameters=2>]],
  setup = function(self, a)
    self.eta_minus, self.eta_plus = pair("Rprop", "etas", a.etas or { 0.5, 1.2 })
    self.least, self.most = pair("Rprop", "step_sizes", a.step_sizes or { 1e-6, 50.0 })
    if not (self.eta_minus > 0 and self.eta_minus < 1 and self.eta_plus > 1) then
      fail("Rprop", ("etas must be a factor in (0, 1) and one above 1, got {%s, %s}"):format(self.eta_minus, self.eta_plus))
    elseif self.least > self.most then
      fail("Rprop", ("the least of step_sizes is above the largest: {%s, %s}"):format(self.least, self.most))
    end
  end,
  slots = { { "prev", 0.0 }, { "step_size", 0.0 } },
  rule = function(self, p, g, rate, step, _, before, size)
    local old = size
    if step == 1 then old = ops.full_like(size, rate) end
    local sign = ops.sign(g * before)
    local turned = ops.lt(sign, 0.0)
    local changed = ops.where(ops.gt(sign, 0.0), old * self.eta_plus, ops.where(turned, old * self.eta_minus, old))
    local new = ops.clamp(changed, self.least, self.most)
    size:assign(new)
    g = ops.where(turned, ops.zeros_like(g), g)
    before:assign(g)
    return p - ops.sign(g) * new
  end,
})

classes.FTRL = optimizer("FTRL", {
  signature = "params, initial_accum=0.1, learning_rate=0.001, lr_power=-0.5, l1=0.0, l2=0.0, use_locking=false, loss_scale=1.0, "
    .. "weight_decay=0.0",
  doc = [[Follow the regularised leader (McMahan and others 2013), for sparse models: n' = n + g g;
z = z + g - (n'^-lr_power - n^-lr_power) / learning_rate p; p = (sign(z) l1 - z) / (n'^-lr_power / learning_rate + 2 l2) where |z| > l1,
and 0 elsewhere.

initial_accum: what n starts from. lr_power: the power of the rate, at most 0. l1: the factor of the absolute values. l2: the factor of
the squares.

  > ms.nn.FTRL(ms.nn.Dense(2, 3):trainable_params(), { l1 = 0.01 })
  FTRL<learning_rate=0.001, parameters=2>]],
  setup = function(self, a)
    for _, key in ipairs { "initial_accum", "l1", "l2" } do self[key] = check.number_not_negative("FTRL", key, a[key]) end
    self.lr_power = check.number("FTRL", "lr_power", a.lr_power)
    if self.lr_power > 0 then fail("FTRL", ("lr_power must not be above 0, got %s"):format(self.lr_power)) end
    check.boolean("FTRL", "use_locking", a.use_locking)
  end,
  slots = { { "ftrl_accum", "initial_accum" }, { "linear", 0.0 } },
  rule = function(self, p, g, rate, _, _, accum, linear)
    local sum = accum + g * g
    local power = sum ^ -self.lr_power
    local z = linear + g - (power - accum ^ -self.lr_power) / rate * p
    accum:assign(sum)
    linear:assign(z)
    local new = (ops.sign(z) * self.l1 - z) / (power / rate + 2 * self.l2)
    return ops.where(ops.gt(ops.abs(z), self.l1), new, ops.zeros_like(new))
  end,
})

classes.ProximalAdagrad = optimizer("ProximalAdagrad", {
  signature = "params, accum=0.1, learning_rate=0.001, l1=0.0, l2=0.0, use_locking=false, loss_scale=1.0, weight_decay=0.0",
  doc = [[Adagrad with a proximal step (Duchi, Singer 2009), for sparse models: n = n + g g; r = learning_rate / sqrt(n); v = p - r g;
p = sign(v) max(|v| - r l1, 0) / (1 + r l2).

accum: what n starts from. l1: the factor of the absolute values. l2: the factor of the squares.

  > ms.nn.ProximalAdagrad(ms.nn.Dense(2, 3):trainable_params(), { l1 = 0.01 })
  ProximalAdagrad<learning_rate=0.001, parameters=2>]],
  setup = function(self, a)
    for _, key in ipairs { "accum", "l1", "l2" } do self[key] = check.number_not_negative("ProximalAdagrad", key, a[key]) end
    check.boolean("ProximalAdagrad", "use_locking", a.use_locking)
  end,
  slots = { { "accum", "accum" } },
  rule = function(self, p, g, rate, _, _, accum)
    local sum = accum + g * g
    accum:assign(sum)
    local r = rate / ops.sqrt(sum)
    local v = p - r * g
    if self.l1 > 0 then v = ops.sign(v) * ops.maximum(ops.abs(v) - r * self.l1, 0.0) end
    return v / (1 + r * self.l2)
  end,
})

-- The norm of all elements; half precision would overflow.
local function norm(x)
  return ops.vector_norm(x.dtype == ms.float64 and x or ops.cast(x, ms.float32))
end

-- a / b, and 1 where one of them is 0.
local function ratio(a, b)
  local sound = ops.logical_and(ops.gt(a, 0.0), ops.gt(b, 0.0))
  return ops.where(sound, a / ops.where(sound, b, ops.ones_like(b)), ops.ones_like(b))
end

local Lamb = base.layer("Lamb", "params, learning_rate, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0",
  [[Adam with a rate for each parameter, for large batches (You and others 2019): m = beta1 m + (1 - beta1) g;
v = beta2 v + (1 - beta2) g g; u = (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p; p = p - learning_rate |p| /
|u| u.

  > ms.nn.Lamb(ms.nn.Dense(2, 3):trainable_params(), 0.01) --> Lamb<learning_rate=0.01, parameters=2>]])
function Lamb:setup(a)
  base.setup(self, a, "learning_rate")
  self.beta1 = check.rate("Lamb", "beta1", a.beta1)
  self.beta2 = check.rate("Lamb", "beta2", a.beta2)
  self.eps = check.number_positive("Lamb", "eps", a.eps)
  for _, group in ipairs(self.param_groups) do
    group.moments = base.moments(self, group, "lamb_m")
    group.squares = base.moments(self, group, "lamb_v")
    group.decayed = base.decayed(group)
  end
end
function Lamb:update(group, grads, rate, weight_decay, step)
  ops.apply_lamb(group.params, grads, group.moments, group.squares, rate, self.beta1, self.beta2, self.eps, 1 - self.beta1 ^ step,
    1 - self.beta2 ^ step, weight_decay, group.decayed, "Lamb")
end
classes.Lamb = Lamb

local LazyAdam = base.layer("LazyAdam",
  "params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, use_locking=false, use_nesterov=false, weight_decay=0.0, loss_scale=1.0",
  [[Adam for models with large tables. Gradients are dense here, and for those it is nn.Adam with MindSpore's rule.

  > ms.nn.LazyAdam(ms.nn.Dense(2, 3):trainable_params(), 0.01) --> LazyAdam<learning_rate=0.01, parameters=2>]])
function LazyAdam:setup(a)
  a.use_amsgrad = false
  base.nn.Adam.setup(self, a)
end
LazyAdam.update = base.nn.Adam.update
classes.LazyAdam = LazyAdam

local AdaFactor = base.layer("AdaFactor",
  "params, learning_rate=nil, eps=nil, clip_threshold=1.0, decay_rate=0.8, beta1=0.9, weight_decay=0.0, scale_parameter=true, "
    .. "relative_step=true, warmup_init=false, compression=false, loss_scale=1.0",
  [[Adam that keeps sums of rows and columns in place of second moments (Shazeer, Stern 2018), for little memory.

eps: {1e-30, 1e-3} by default, what is added to squares, and the least root mean square of a parameter for scale_parameter.
clip_threshold: the largest root mean square of an update. decay_rate: second moments keep 1 - t^-decay_rate. beta1: how much of
the first moment is kept; 0 or false: there is none. scale_parameter: whether the rate is multiplied by the root mean square of the
parameter. relative_step: whether the rate is min(0.01, 1 / sqrt(t)); then learning_rate is left out. warmup_init: whether
that rate rises by 1e-6 t at the beginning. compression: whether first moments are kept in half precision.

  > ms.nn.AdaFactor(ms.nn.Dense(2, 3):trainable_params()) --> AdaFactor<learning_rate=0.0, parameters=2>]])

function AdaFactor:setup(a)
  local name = "AdaFactor"
  for _, key in ipairs { "scale_parameter", "relative_step", "warmup_init", "compression" } do
    self[key] = check.boolean(name, key, a[key])
  end
  if a.learning_rate ~= nil and self.relative_step then
    fail(name, "takes either learning_rate or relative_step, got both", "nn.AdaFactor(params, 0.01, { relative_step = false })")
  elseif a.learning_rate == nil and not self.relative_step then
    fail(name, "learning_rate must be given where relative_step is false")
  elseif self.warmup_init and not self.relative_step then
    fail(name, "warmup_init needs relative_step")
  end
  if a.learning_rate == nil then a.learning_rate = 0.0 end
  base.setup(self, a, "learning_rate")
  self.eps1, self.eps2 = pair(name, "eps", a.eps or { 1e-30, 1e-3 })
  self.clip_threshold = check.number_positive(name, "clip_threshold", a.clip_threshold)
  self.decay_rate = check.rate(name, "decay_rate", a.decay_rate)
  self.beta1 = check.rate(name, "beta1", a.beta1 or 0.0)
  self.loss_scale = base.scale_of(name, a)
  for _, group in ipairs(self.param_groups) do
    group.decayed = base.decayed(group)
    group.rows, group.columns, group.squares = {}, {}, {}
    if self.beta1 > 0 then group.moments = base.moments(self, group, "exp_avg") end
    for i, p in ipairs(group.params) do
      local function keep(list, prefix, shape)
        local dtype = p.dtype == ms.float64 and ms.float64 or ms.float32
        local slot = ms.Parameter(ops.zeros(shape, dtype):to(p.device), ("%s.%s"):format(prefix, p.name), false)
        list[i] = slot
        self:insert_param_to_cell(("%s.%d.%s"):format(prefix, i, p.name), slot)
      end
      local shape, rank = p.shape, p.ndim
      if rank >= 2 then
        local rows, columns = {}, {}
        for axis = 1, rank do
          if axis ~= rank then rows[#rows + 1] = shape[axis] end
          if axis ~= rank - 1 then columns[#columns + 1] = shape[axis] end
        end
        keep(group.rows, "exp_avg_sq_row", rows)
        keep(group.columns, "exp_avg_sq_col", columns)
      else
        keep(group.squares, "exp_avg_sq", shape)
      end
    end
    if self.compression and group.moments then
      for i, moment in ipairs(group.moments) do
        local small = ms.Parameter(ops.cast(moment, ms.float16), moment.name, false)
        group.moments[i] = small
        self:insert_param_to_cell(moment.name, small)
      end
    end
  end
end

local function root_mean_square(x) return ops.sqrt(ops.mean(x * x)) end

function AdaFactor:update(group, grads, rate, weight_decay, step)
  local beta2 = 1 - step ^ -self.decay_rate
  if self.relative_step then
    rate = math.min(self.warmup_init and 1e-6 * step or 1e-2, 1 / math.sqrt(step))
  end
  for i, p in ipairs(group.params) do
    local wide = p.dtype == ms.float64 and p or ops.cast(p, ms.float32)
    local g = ops.cast(grads[i], wide.dtype)
    if tostring(g.shape) ~= tostring(p.shape) then
      fail("AdaFactor", ("gradient %d has shape %s, parameter %s has %s"):format(i, tostring(g.shape), p.name, tostring(p.shape)))
    end
    local size = rate
    if self.scale_parameter then size = rate * ops.maximum(root_mean_square(wide), self.eps2) end
    local squares = g * g + self.eps1
    local update
    if p.ndim >= 2 then
      local rows, columns = group.rows[i], group.columns[i]
      rows:assign(rows * beta2 + ops.mean(squares, -1) * (1 - beta2))
      columns:assign(columns * beta2 + ops.mean(squares, -2) * (1 - beta2))
      local by_row = ops.rsqrt(rows / ops.mean(rows, -1, true))
      update = g * ops.expand_dims(by_row, -1) * ops.expand_dims(ops.rsqrt(columns), -2)
    else
      local kept = group.squares[i]
      kept:assign(kept * beta2 + squares * (1 - beta2))
      update = g * ops.rsqrt(kept)
    end
    update = update / ops.maximum(root_mean_square(update) / self.clip_threshold, 1.0) * size
    local moment = group.moments and group.moments[i]
    if moment then
      update = ops.cast(moment, wide.dtype) * self.beta1 + update * (1 - self.beta1)
      moment:assign(ops.cast(update, moment.dtype))
    end
    local kept = wide
    if weight_decay ~= 0 and (not group.decayed or group.decayed[i]) then kept = wide - wide * weight_decay * size end
    p:assign(ops.cast(kept - update, p.dtype))
  end
end
classes.AdaFactor = AdaFactor

return { classes = classes, norm = norm, ratio = ratio }
