-- Optimizers with PyTorch's rules and names of arguments beyond Adam and SGD.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local mint = require("lunaria.nn.optim").mint
local optimizer = require "lunaria.nn.optim_rule"
local rare = require("lunaria.nn.optim_rare").classes

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local function define(name, entry)
  entry.rate_name = "lr"
  local example = "  > ms.nn.optim.%s(ms.nn.Dense(2, 3):trainable_params(), { lr = 0.01 })\n  %s<lr=0.01, parameters=2>"
  entry.doc = entry.doc .. "\n\n" .. example:format(name, name)
  mint[name] = optimizer(name, entry)
end

local function take_betas(name)
  return function(self, a)
    local betas = a.betas or { 0.9, 0.999 }
    if type(betas) ~= "table" or #betas ~= 2 then
      fail(name, "betas must be a table of two numbers, got " .. describe(betas))
    end
    self.beta1 = check.rate(name, "betas[1]", betas[1])
    self.beta2 = check.rate(name, "betas[2]", betas[2])
    self.eps = check.number_not_negative(name, "eps", a.eps)
    if a.momentum_decay then self.momentum_decay = check.number_not_negative(name, "momentum_decay", a.momentum_decay) end
  end
end

local function both_moments(self, g, moment, square)
  moment:assign(self.beta1 * moment + (1 - self.beta1) * g)
  square:assign(self.beta2 * square + (1 - self.beta2) * g * g)
end

-- How much of the first moment is kept in a step.
local function kept(self, step)
  return self.beta1 * (1 - 0.5 * 0.96 ^ (step * self.momentum_decay))
end

define("NAdam", {
  signature = "params, lr=2e-3, betas=nil, eps=1e-8, weight_decay=0.0, momentum_decay=4e-3",
  doc = [[Adam with Nesterov's momentum (Dozat 2016), PyTorch's rule: with k_t = beta1 (1 - 0.96^(t momentum_decay) / 2)
and K_t the product of all k so far, p = p - lr (k_(t+1) m / (1 - K_(t+1)) + (1 - k_t) g / (1 - K_t)) / (sqrt(v / (1 - beta2^t)) + eps).

momentum_decay: how soon the momentum reaches beta1.]],
  setup = take_betas("NAdam"),
  slots = { { "moment1", 0.0 }, { "moment2", 0.0 }, { "mu_product", 1.0, shape = {} } },
  rule = function(self, p, g, rate, step, _, moment, square, product)
    both_moments(self, g, moment, square)
    local now, next_one = kept(self, step), kept(self, step + 1)
    local all = product * now
    product:assign(all)
    local direction = moment * next_one / (1 - all * next_one) + (1 - now) * g / (1 - all)
    return p - rate * direction / (ops.sqrt(square / (1 - self.beta2 ^ step)) + self.eps)
  end,
})

define("RAdam", {
  signature = "params, lr=1e-3, betas=nil, eps=1e-8, weight_decay=0.0",
  doc = [[Adam whose rate is rectified while the second moments are few (Liu and others 2019), PyTorch's rule.]],
  setup = take_betas("RAdam"),
  slots = { { "moment1", 0.0 }, { "moment2", 0.0 } },
  rule = function(self, p, g, rate, step, _, moment, square)
    both_moments(self, g, moment, square)
    local power = self.beta2 ^ step
    local most = 2 / (1 - self.beta2) - 1
    local length = most - 2 * step * power / (1 - power)
    local size = rate / (1 - self.beta1 ^ step)
    if length > 5 then
      local rectified = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
      return p - size * rectified * math.sqrt(1 - power) * moment / (ops.sqrt(square) + self.eps)
    end
    return p - size * moment
  end,
})

define("RMSprop", {
  signature = "params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=false, maximize=false",
  doc = [[s = alpha s + (1 - alpha) g g; v = momentum v + g / (sqrt(s) + eps); p = p - lr v. s starts at 0; PyTorch's rule.

alpha: how much of s is kept in each step. centered: whether the square of the running mean of the gradients is taken from s.]],
  setup = function(self, a)
    self.alpha = check.rate("RMSprop", "alpha", a.alpha)
    self.eps = check.number_not_negative("RMSprop", "eps", a.eps)
    self.momentum = check.number_not_negative("RMSprop", "momentum", a.momentum)
    self.centered = check.boolean("RMSprop", "centered", a.centered)
  end,
  slots = { { "square_avg", 0.0 }, { "momentum_buffer", 0.0 }, { "grad_avg", 0.0 } },
  rule = function(self, p, g, rate, _, _, square, moment, mean)
    square:assign(self.alpha * square + (1 - self.alpha) * g * g)
    local spread = square
    if self.centered then
      mean:assign(self.alpha * mean + (1 - self.alpha) * g)
      spread = square - mean * mean
    end
    moment:assign(self.momentum * moment + g / (ops.sqrt(spread) + self.eps))
    return p - rate * moment
  end,
})

define("Adagrad", {
  signature = "params, lr=1e-2, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10, maximize=false",
  doc = [[s = s + g g; p = p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s) + eps); PyTorch's rule.

lr_decay: how fast the rate falls. initial_accumulator_value: what s starts from.]],
  setup = function(self, a)
    for _, key in ipairs { "lr_decay", "initial_accumulator_value", "eps" } do
      self[key] = check.number_not_negative("Adagrad", key, a[key])
    end
  end,
  slots = { { "sum", "initial_accumulator_value" } },
  rule = function(self, p, g, rate, step, _, sum)
    sum:assign(sum + g * g)
    return p - rate / (1 + (step - 1) * self.lr_decay) * g / (ops.sqrt(sum) + self.eps)
  end,
})

define("Adadelta", {
  signature = "params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, maximize=false",
  doc = [[s = rho s + (1 - rho) g g; d = g sqrt(u + eps) / sqrt(s + eps); u = rho u + (1 - rho) d d; p = p - lr d; PyTorch's rule.]],
  setup = function(self, a)
    self.rho = check.probability("Adadelta", "rho", a.rho)
    self.eps = check.number_not_negative("Adadelta", "eps", a.eps)
  end,
  slots = { { "square_avg", 0.0 }, { "acc_delta", 0.0 } },
  rule = function(self, p, g, rate, _, _, square, deltas)
    square:assign(self.rho * square + (1 - self.rho) * g * g)
    local d = g * ops.sqrt(deltas + self.eps) / ops.sqrt(square + self.eps)
    deltas:assign(self.rho * deltas + (1 - self.rho) * d * d)
    return p - rate * d
  end,
})

define("Adamax", {
  signature = "params, lr=2e-3, betas=nil, eps=1e-8, weight_decay=0.0, maximize=false",
  doc = [[Adam with the largest gradient so far: m = beta1 m + (1 - beta1) g; u = max(beta2 u, |g| + eps);
p = p - lr / (1 - beta1^t) m / u; PyTorch's rule.]],
  setup = take_betas("Adamax"),
  slots = { { "moment1", 0.0 }, { "moment2", 0.0 } },
  rule = function(self, p, g, rate, step, _, moment, most)
    moment:assign(self.beta1 * moment + (1 - self.beta1) * g)
    most:assign(ops.maximum(self.beta2 * most, ops.abs(g) + self.eps))
    return p - rate / (1 - self.beta1 ^ step) * moment / most
  end,
})

mint.LBFGS = require("lunaria.nn.optim_lbfgs").like_torch

-- These two have one rule; only the names of their arguments differ.
local function like(name, signature, doc)
  local entry = rare[name]._entry
  define(name, { signature = signature, doc = doc, setup = entry.setup, slots = entry.slots, rule = entry.rule })
end
like("ASGD", "params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0, maximize=false",
  [[Gradient descent with averaged parameters, nn.ASGD with PyTorch's names of arguments.

lambd: the decay. alpha: the power of the rate. t0: the step from which on parameters are averaged.]])
like("Rprop", "params, lr=1e-2, etas=nil, step_sizes=nil, maximize=false",
  [[Resilient backpropagation, nn.Rprop with PyTorch's names of arguments.

etas: {0.5, 1.2} by default, the factors by which steps shrink and grow. step_sizes: {1e-6, 50} by default, the least and the
largest step.]])

return mint
