-- Optimizers that are used now and then, written with operators.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local optimizer = require "lunaria.nn.optim_rule"

local ops = ms.ops
local check = arguments.check

local classes = {}

local function define(name, signature, doc, setup, slots, rule)
  local take = type(setup) == "string" and arguments.settings(name, setup) or setup
  classes[name] = optimizer(name, { signature = signature, doc = doc, slots = slots, rule = rule,
    setup = function(self, a) take(self, a) end })
end

define("RMSProp",
  "params, learning_rate=0.1, decay=0.9, momentum=0.0, epsilon=1e-10, use_locking=false, centered=false, loss_scale=1.0, weight_decay=0.0",
  [[s = decay s + (1 - decay) g g; v = momentum v + learning_rate g / sqrt(s + epsilon); p = p - v. s starts at 1.

centered subtracts the square of the running mean of the gradients from s.
  > ms.nn.RMSProp(ms.nn.Dense(2, 3):trainable_params(), 0.01) --> RMSProp<learning_rate=0.01, parameters=2>]],
  function(self, a)
    check.boolean("RMSProp", "use_locking", a.use_locking)
    self.decay = check.probability("RMSProp", "decay", a.decay)
    self.momentum = check.number_not_negative("RMSProp", "momentum", a.momentum)
    self.epsilon = check.number_not_negative("RMSProp", "epsilon", a.epsilon)
    self.centered = check.boolean("RMSProp", "centered", a.centered)
  end,
  { { "mean_square", 1.0 }, { "moment", 0.0 }, { "mean_gradient", 0.0 } },
  function(self, p, g, rate, _, _, square, moment, mean)
    square:assign(self.decay * square + (1 - self.decay) * g * g)
    local spread = square
    if self.centered then
      mean:assign(self.decay * mean + (1 - self.decay) * g)
      spread = square - mean * mean
    end
    moment:assign(self.momentum * moment + rate * g / ops.sqrt(spread + self.epsilon))
    return p - moment
  end)

define("Adagrad", "params, accum=0.1, learning_rate=0.001, update_slots=true, loss_scale=1.0, weight_decay=0.0",
  [[s = s + g g; p = p - learning_rate g / sqrt(s). s starts at accum.
  > ms.nn.Adagrad(ms.nn.Dense(2, 3):trainable_params(), 0.1, 0.01) --> Adagrad<learning_rate=0.01, parameters=2>]],
  "accum:number_not_negative, update_slots:boolean",
  { { "accum", "accum" } },
  function(self, p, g, rate, _, _, sum)
    if self.update_slots then
      sum:assign(sum + g * g)
    end
    return p - rate * g / ops.sqrt(sum)
  end)

define("Adadelta", "params, learning_rate=1.0, rho=0.9, epsilon=1e-6, loss_scale=1.0, weight_decay=0.0",
  [[s = rho s + (1 - rho) g g; d = g sqrt(u + epsilon) / sqrt(s + epsilon); u = rho u + (1 - rho) d d; p = p - learning_rate d.
  > ms.nn.Adadelta(ms.nn.Dense(2, 3):trainable_params(), 1.0) --> Adadelta<learning_rate=1.0, parameters=2>]],
  "rho:probability, epsilon:number_not_negative",
  { { "accum", 0.0 }, { "accum_update", 0.0 } },
  function(self, p, g, rate, _, _, sum, updates)
    sum:assign(self.rho * sum + (1 - self.rho) * g * g)
    local d = g * ops.sqrt(updates + self.epsilon) / ops.sqrt(sum + self.epsilon)
    updates:assign(self.rho * updates + (1 - self.rho) * d * d)
    return p - rate * d
  end)

define("AdaMax", "params, learning_rate=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0, loss_scale=1.0",
  [[Adam with the largest gradient so far: m = beta1 m + (1 - beta1) g; u = max(beta2 u, |g|);
p = p - learning_rate / (1 - beta1^t) m / (u + eps).
  > ms.nn.AdaMax(ms.nn.Dense(2, 3):trainable_params(), 1e-3) --> AdaMax<learning_rate=0.001, parameters=2>]],
  "beta1:rate, beta2:rate, eps:number_not_negative",
  { { "moment1", 0.0 }, { "moment2", 0.0 } },
  function(self, p, g, rate, step, _, moment, most)
    moment:assign(self.beta1 * moment + (1 - self.beta1) * g)
    most:assign(ops.maximum(self.beta2 * most, ops.abs(g)))
    return p - rate / (1 - self.beta1 ^ step) * moment / (most + self.eps)
  end)

return classes
