-- Optimizers that few programs use: FTRL, Lamb, Rprop ..., and those of PyTorch beside Adam and SGD.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.nn.optim"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- The arguments that are numbers not below 0, as fields.
local function numbers(name, ...)
  local keys = { ... }
  return function(self, a)
    for _, key in ipairs(keys) do self[key] = check.number_not_negative(name, key, a[key]) end
  end
end

local function pair(self, name, key, value, default, checked)
  value = value == nil and default or value
  if type(value) ~= "table" or #value ~= 2 then fail(name, ("%s must be a table of two numbers, got %s"):format(key, describe(value))) end
  self[key] = { checked(name, key .. "[1]", value[1]), checked(name, key .. "[2]", value[2]) }
end

local function norm(x) return ops.sqrt(ops.sum(ops.square(x))) end

-- |p| / |r|, and 1 where one of them is zero.
local function trust(p, r)
  local above, below = norm(p), norm(r)
  local both = ops.logical_and(ops.greater(above, 0.0), ops.greater(below, 0.0))
  return ops.where(both, above / ops.where(both, below, 1.0), 1.0)
end

local function adam_fields(self, name, a)
  self.beta1, self.beta2 = check.rate(name, "beta1", a.beta1), check.rate(name, "beta2", a.beta2)
  self.eps = check.number_not_negative(name, "eps", a.eps)
end

local function mint_fields(self, name, a)
  pair(self, name, "betas", a.betas, { 0.9, 0.999 }, check.rate)
  self.eps = check.number_not_negative(name, "eps", a.eps)
end

local moments = { { "moment1", 0.0 }, { "moment2", 0.0 } }

local example = [[


  > p = ms.Parameter(ms.tensor { 1.0 }, "p")
  > %s({ p }%s)({ ms.tensor { 1.0 } })
  true
  > p:item() < 1
  true]]

local function define_rest(define, classes)
  local function own(name, signature, doc, setup, slots, rule)
    return define(name, signature, doc .. example:format("ms.nn." .. name, name == "Lamb" and ", 0.1" or ""), setup, slots, rule)
  end

  own("FTRL", "params, initial_accum=0.1, learning_rate=0.001, lr_power=-0.5, l1=0.0, l2=0.0, use_locking=false, loss_scale=1.0, "
    .. "weight_decay=0.0",
    [[Follow the regularised leader (McMahan et al. 2013), for sparse models: l1 makes weights zero. initial_accum: what the sums of
squared gradients start from. lr_power: the power of these sums, not above 0. l2: how much large weights cost.]],
    function(self, a)
      numbers("FTRL", "initial_accum", "l1", "l2")(self, a)
      self.lr_power = check.number("FTRL", "lr_power", a.lr_power)
      if self.lr_power > 0 then fail("FTRL", ("lr_power must not be above 0, got %s"):format(self.lr_power)) end
    end,
    { { "accum", "initial_accum" }, { "linear", 0.0 } },
    function(self, p, g, rate, _, accum, linear)
      local power = -self.lr_power
      local sum = accum + g * g
      linear:assign(linear + g - (sum ^ power - accum ^ power) / rate * p)
      accum:assign(sum)
      local curve = sum ^ power / rate + 2 * self.l2
      return ops.where(ops.greater(ops.abs(linear), self.l1), (ops.sign(linear) * self.l1 - linear) / curve, 0.0)
    end)

  own("ProximalAdagrad", "params, accum=0.1, learning_rate=0.001, l1=0.0, l2=0.0, use_locking=false, loss_scale=1.0, weight_decay=0.0",
    [[Adagrad with a step towards zero after each: l1 makes weights zero, l2 makes them small (Duchi, Singer 2009).]],
    numbers("ProximalAdagrad", "accum", "l1", "l2"), { { "accum", "accum" } },
    function(self, p, g, rate, _, accum)
      accum:assign(accum + g * g)
      local each = rate / ops.sqrt(accum)
      local moved = p - each * g
      return ops.sign(moved) * ops.maximum(ops.abs(moved) - each * self.l1, 0.0) / (1 + each * self.l2)
    end)

  local Lamb = own("Lamb", "params, learning_rate, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0",
    [[Adam with a step for each parameter that is in proportion to its norm, for large batches (You et al. 2020):
r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay p; p = p - learning_rate |p| / |r| r.]],
    function(self, a) adam_fields(self, "Lamb", a) end, moments,
    function(self, p, g, rate, step, moment, square)
      moment:assign(self.beta1 * moment + (1 - self.beta1) * g)
      square:assign(self.beta2 * square + (1 - self.beta2) * g * g)
      local r = moment / (1 - self.beta1 ^ step) / (ops.sqrt(square / (1 - self.beta2 ^ step)) + self.eps)
      local decay = self.decay_of[p]
      if decay ~= 0 then r = r + decay * p end
      return p - rate * trust(p, r) * r
    end)
  -- The weights are part of the step itself, not of the gradient.
  local update = Lamb.update
  function Lamb:update(group, grads, rate, weight_decay, step)
    local decays = {}
    for i, p in ipairs(group.params) do
      decays[p] = (not group.decayed or group.decayed[i]) and weight_decay or 0
    end
    rawset(self, "decay_of", decays)
    update(self, group, grads, rate, 0, step)
  end

  own("Rprop", "params, learning_rate=0.1, etas=nil, step_sizes=nil, weight_decay=0.0",
    [[Steps whose size depends on signs of gradients alone (Riedmiller, Braun 1993). etas: by what steps shrink when the sign changes
and grow when it does not, {0.5, 1.2}. step_sizes: the least and the largest step, {1e-6, 50}.]],
    function(self, a)
      pair(self, "Rprop", "etas", a.etas, { 0.5, 1.2 }, check.number_positive)
      pair(self, "Rprop", "step_sizes", a.step_sizes, { 1e-6, 50.0 }, check.number_positive)
      self.first_step = math.type(self.learning_rate) and self.learning_rate or 0.1
    end,
    { { "prev", 0.0 }, { "step_size", "first_step" } },
    function(self, p, g, _, _, previous, size)
      local turn = ops.sign(g * previous)
      local factor = ops.where(ops.greater(turn, 0.0), self.etas[2], ops.where(ops.less(turn, 0.0), self.etas[1], 1.0))
      size:assign(ops.clamp(size * factor, self.step_sizes[1], self.step_sizes[2]))
      local used = ops.where(ops.less(turn, 0.0), 0.0, g)
      previous:assign(used)
      return p - ops.sign(used) * size
    end)

  own("ASGD", "params, learning_rate=0.1, lambd=1e-4, alpha=0.75, t0=1000000.0, weight_decay=0.0",
    [[Gradient descent with the mean of the weights (Polyak, Juditsky 1992), kept beside them. lambd: how much of the weights each step
takes off. t0: the step at which the mean begins.]],
    numbers("ASGD", "lambd", "alpha", "t0"), { { "ax", 0.0 } },
    function(self, p, g, rate, step, mean)
      local eta = rate / (1 + self.lambd * rate * (step - 1)) ^ self.alpha
      local mu = 1 / math.max(1, step - 1 - self.t0)
      local moved = p * (1 - self.lambd * eta) - eta * g
      mean:assign(mean + (moved - mean) * mu)
      return moved
    end)

  local AdaFactor = own("AdaFactor", "params, learning_rate=nil, eps=nil, clip_threshold=1.0, decay_rate=0.8, beta1=0.9, weight_decay=0.0, "
    .. "scale_parameter=true, relative_step=true, warmup_init=false, compression=false, loss_scale=1.0",
    [[Adam whose second moments are kept as a row and a column of each matrix (Shazeer, Stern 2018). learning_rate: a number, or nil with
relative_step. eps: {1e-30, 1e-3}, what is added to squares, and the least size of a parameter. clip_threshold: the largest root
mean square of a step. decay_rate: the power of the step's number that the second moments decay by. scale_parameter: steps are in
proportion to the parameter's size. relative_step: the rate falls with the step's number. warmup_init: it grows from zero first.
compression: for programs written for MindSpore, nothing depends on it.]],
    function(self, a)
      local name = "AdaFactor"
      pair(self, name, "eps", a.eps, { 1e-30, 1e-3 }, check.number_not_negative)
      self.clip_threshold = check.number_positive(name, "clip_threshold", a.clip_threshold)
      self.decay_rate = check.number_not_negative(name, "decay_rate", a.decay_rate)
      self.beta1 = check.rate(name, "beta1", a.beta1)
      for _, key in ipairs { "scale_parameter", "relative_step", "warmup_init" } do self[key] = check.boolean(name, key, a[key]) end
      if self.warmup_init and not self.relative_step then fail(name, "warmup_init needs relative_step") end
      if not self.relative_step and not self.is_given then fail(name, "learning_rate must be given without relative_step") end
    end,
    { { "exp_avg", 0.0 }, { "square", 0.0 } },
    function(self, p, g, rate, step, average, square)
      local decay = 1 - step ^ -self.decay_rate
      local power = g * g + self.eps[1]
      local scaled
      -- All of the square's columns (or rows) are the same where it stands for a row and a column.
      if p.ndim >= 2 then
        local rows, columns = self.factors[p][1], self.factors[p][2]
        rows:assign(decay * rows + (1 - decay) * ops.mean(power, -1, true))
        columns:assign(decay * columns + (1 - decay) * ops.mean(power, -2, true))
        scaled = g * ops.rsqrt(rows / ops.mean(rows, -2, true)) * ops.rsqrt(columns)
      else
        square:assign(decay * square + (1 - decay) * power)
        scaled = g * ops.rsqrt(square)
      end
      local size = ops.sqrt(ops.mean(ops.square(scaled)))
      scaled = scaled / ops.maximum(size / self.clip_threshold, 1.0)
      if self.relative_step then
        rate = math.min(self.warmup_init and 1e-6 * step or 1e-2, 1 / math.sqrt(step))
      end
      if self.scale_parameter then rate = rate * ops.maximum(ops.sqrt(ops.mean(ops.square(p))), self.eps[2]) end
      local change = rate * scaled
      if self.beta1 > 0 then
        average:assign(self.beta1 * average + (1 - self.beta1) * change)
        change = average
      end
      return p - change
    end)
  local setup = AdaFactor.setup
  function AdaFactor:setup(a)
    rawset(self, "is_given", a.learning_rate ~= nil)
    if a.learning_rate == nil then a.learning_rate = 0.0 end
    setup(self, a)
    rawset(self, "factors", {})
    for _, parameter in ipairs(self.parameters) do
      if parameter.ndim >= 2 then
        local rows, columns = {}, {}
        for i, size in ipairs(parameter.shape) do
          rows[i] = i == parameter.ndim and 1 or size
          columns[i] = i == parameter.ndim - 1 and 1 or size
        end
        local list = {}
        for k, shape in ipairs { rows, columns } do
          local name = (k == 1 and "exp_avg_sq_row." or "exp_avg_sq_col.") .. parameter.name
          list[k] = ms.Parameter(ops.zeros(shape, ms.float32), name, false)
          self:insert_param_to_cell(name, list[k])
        end
        self.factors[parameter] = list
      end
    end
  end

  -- All gradients are dense here, so that it is Adam.
  local LazyAdam = classes.LazyAdam or base.nn.Adam:extend("LazyAdam")
  LazyAdam._doc = "Adam, under the name that MindSpore has for sparse gradients; here gradients are dense, and the steps are Adam's."
    .. example:format("ms.nn.LazyAdam", "")
  classes.LazyAdam = LazyAdam

  local LARS = base.layer("LARS", "optimizer, epsilon=1e-5, coefficient=0.001, use_clip=false, lars_filter=nil",
    [[An optimizer whose gradients are scaled for each parameter by its norm over that of the gradient (You et al. 2017):
g = coefficient |p| / (|g| + weight_decay |p| + epsilon) (g + weight_decay p).

optimizer: such as nn.Momentum, whose weight_decay is taken here. epsilon: what is added to the norms. coefficient: how far a step
goes in proportion to the parameter. use_clip: the factor is at most the learning rate's share. lars_filter: a function of a
parameter that says whether it is scaled; by default those whose names have neither LayerNorm nor bias.

  > p = ms.Parameter(ms.tensor { 1.0 }, "p")
  > ms.nn.LARS(ms.nn.Momentum({ p }, 0.1, 0.9))({ ms.tensor { 1.0 } })
  true]])
  function LARS:setup(a)
    if not cells.is_cell(a.optimizer) or not a.optimizer.parameters or not rawget(a.optimizer, "param_groups") then
      fail("LARS", "optimizer must be an optimizer, got " .. describe(a.optimizer))
    end
    self.optimizer = a.optimizer
    self.epsilon = check.number_not_negative("LARS", "epsilon", a.epsilon)
    self.coefficient = check.number_positive("LARS", "coefficient", a.coefficient)
    self.use_clip = check.boolean("LARS", "use_clip", a.use_clip)
    if a.lars_filter ~= nil and not arguments.is_callable(a.lars_filter) then
      fail("LARS", "lars_filter must be a function, got " .. describe(a.lars_filter))
    end
    local wanted = a.lars_filter or function(p) return not (p.name:find("LayerNorm", 1, true) or p.name:find("bias", 1, true)) end
    rawset(self, "parameters", a.optimizer.parameters)
    rawset(self, "scaled", {})
    for i, p in ipairs(self.parameters) do self.scaled[i] = wanted(p) and true or false end
    self.decay = math.type(a.optimizer.weight_decay) and a.optimizer.weight_decay or 0.0
    a.optimizer.weight_decay = 0.0
  end
  function LARS:construct(grads)
    if type(grads) ~= "table" or #grads ~= #self.parameters then
      fail("LARS", ("a table of %d gradients is expected, got %s"):format(#self.parameters, describe(grads)))
    end
    local list, rate = {}, self.optimizer:get_lr()
    for i, p in ipairs(self.parameters) do
      local g = grads[i]
      if self.scaled[i] then
        local size, slope = norm(p), norm(g)
        local both = ops.logical_and(ops.greater(size, 0.0), ops.greater(slope, 0.0))
        local factor = self.coefficient * size / (slope + self.decay * size + self.epsilon)
        if self.use_clip then factor = ops.minimum(factor / (type(rate) == "table" and rate[1] or rate), 1.0) end
        g = ops.where(both, factor, 1.0) * (g + self.decay * p)
      end
      list[i] = g
    end
    return self.optimizer(list)
  end
  function LARS:get_lr() return self.optimizer:get_lr() end
  function LARS:set_lr(value) self.optimizer:set_lr(value) end
  classes.LARS = LARS

  base.mint.FusedAdamW = base.mint.AdamW

  local function mint(name, signature, doc, setup_, slots, rule)
    return define(name, signature, doc .. example:format("ms.nn.optim." .. name, ""), setup_, slots, rule, true)
  end

  mint("Adagrad", "params, lr=0.01, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10",
    [[s = s + g g; p = p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps); PyTorch's rule. lr_decay: how fast the rate falls.
initial_accumulator_value: what the sums of squares start from.]],
    numbers("Adagrad", "lr_decay", "initial_accumulator_value", "eps"), { { "sum", "initial_accumulator_value" } },
    function(self, p, g, rate, step, sum)
      sum:assign(sum + g * g)
      return p - rate / (1 + (step - 1) * self.lr_decay) * g / (ops.sqrt(sum) + self.eps)
    end)

  mint("RMSprop", "params, lr=0.01, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=false",
    [[s = alpha s + (1 - alpha) g g; v = momentum v + g / (sqrt(s) + eps); p = p - lr v; PyTorch's rule.]],
    function(self, a)
      numbers("RMSprop", "alpha", "eps", "momentum")(self, a)
      self.centered = check.boolean("RMSprop", "centered", a.centered)
    end,
    { { "square_avg", 0.0 }, { "momentum_buffer", 0.0 }, { "grad_avg", 0.0 } },
    function(self, p, g, rate, _, square, velocity, mean)
      square:assign(self.alpha * square + (1 - self.alpha) * g * g)
      local spread = square
      if self.centered then
        mean:assign(self.alpha * mean + (1 - self.alpha) * g)
        spread = square - mean * mean
      end
      local step = g / (ops.sqrt(spread) + self.eps)
      if self.momentum > 0 then
        velocity:assign(self.momentum * velocity + step)
        step = velocity
      end
      return p - rate * step
    end)

  mint("NAdam", "params, lr=0.002, betas=nil, eps=1e-8, weight_decay=0.0, momentum_decay=0.004",
    [[Adam with Nesterov's momentum (Dozat 2016), whose first moment decays by beta1 (1 - 0.96^(t momentum_decay) / 2) at the step t;
PyTorch's rule.]],
    function(self, a)
      mint_fields(self, "NAdam", a)
      self.momentum_decay = check.number_not_negative("NAdam", "momentum_decay", a.momentum_decay)
    end, moments,
    function(self, p, g, rate, step, moment, square)
      local b1, b2 = self.betas[1], self.betas[2]
      local function mu(t) return b1 * (1 - 0.5 * 0.96 ^ (t * self.momentum_decay)) end
      local product = 1
      for t = 1, step do product = product * mu(t) end
      local now, following = mu(step), mu(step + 1)
      moment:assign(b1 * moment + (1 - b1) * g)
      square:assign(b2 * square + (1 - b2) * g * g)
      local root = ops.sqrt(square / (1 - b2 ^ step)) + self.eps
      return p - rate * (1 - now) / (1 - product) * g / root - rate * following / (1 - product * following) * moment / root
    end)

  mint("RAdam", "params, lr=0.001, betas=nil, eps=1e-8, weight_decay=0.0",
    [[Adam that begins with plain momentum until the second moments are known well enough (Liu et al. 2020); PyTorch's rule.]],
    function(self, a) mint_fields(self, "RAdam", a) end, moments,
    function(self, p, g, rate, step, moment, square)
      local b1, b2 = self.betas[1], self.betas[2]
      moment:assign(b1 * moment + (1 - b1) * g)
      square:assign(b2 * square + (1 - b2) * g * g)
      local corrected = moment / (1 - b1 ^ step)
      local most = 2 / (1 - b2) - 1
      local length = most - 2 * step * b2 ^ step / (1 - b2 ^ step)
      if length <= 5 then return p - rate * corrected end
      local r = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
      return p - rate * corrected * r * math.sqrt(1 - b2 ^ step) / (ops.sqrt(square) + self.eps)
    end)
end

return define_rest
