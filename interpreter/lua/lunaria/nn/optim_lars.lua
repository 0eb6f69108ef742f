-- LARS: gradients are scaled parameter by parameter before another optimizer gets them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.nn.optim"
local cells = require "lunaria.nn.cell"
local rare = require "lunaria.nn.optim_rare"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local function takes_part(parameter)
  return not parameter.name:find("LayerNorm", 1, true) and not parameter.name:find("bias", 1, true)
end

local LARS = base.layer("LARS", "optimizer, epsilon=1e-5, coefficient=0.001, use_clip=false, lars_filter=nil",
  [[A rate for each parameter around another optimizer, for large batches (You, Gitman, Ginsburg 2017):
g = r (g + d p) with r = coefficient |p| / (|g| + d |p| + epsilon), where d is the optimizer's weight decay, which it does not
apply itself any more.

optimizer: the optimizer that gets the gradients. epsilon: a small number that keeps the divisor away from 0. coefficient: the
factor of the rates. use_clip: whether r is min(r / learning_rate, 1). lars_filter: a function that says of a parameter whether it
is scaled; all but those with LayerNorm or bias in their names by default.

  > tostring(ms.nn.LARS(ms.nn.Momentum(ms.nn.Dense(2, 3):trainable_params(), 0.1, 0.9))):match "^%w+" --> LARS]])

function LARS:setup(a)
  local opt = a.optimizer
  if not cells.is_cell(opt) or type(opt.parameters) ~= "table" or type(opt.param_groups) ~= "table" then
    fail("LARS", "optimizer must be an optimizer, got " .. describe(opt))
  end
  self.epsilon = check.number_not_negative("LARS", "epsilon", a.epsilon)
  self.coefficient = check.number_positive("LARS", "coefficient", a.coefficient)
  self.use_clip = check.boolean("LARS", "use_clip", a.use_clip)
  local filter = a.lars_filter
  if filter == nil then
    filter = takes_part
  elseif not arguments.is_callable(filter) then
    fail("LARS", "lars_filter must be a function of a parameter, got " .. describe(filter))
  end
  self.opt = opt
  self.global_step = opt.global_step
  rawset(self, "rate_name", opt.rate_name)
  rawset(self, "parameters", opt.parameters)
  rawset(self, "param_groups", opt.param_groups)
  -- The weight decay of each parameter, or the function that gives it, and whether the parameter is scaled.
  rawset(self, "facts", {})
  local places = {}
  for i, p in ipairs(opt.parameters) do places[p] = i end
  for _, group in ipairs(opt.param_groups) do
    for i, p in ipairs(group.params) do
      local decays = not group.decayed or group.decayed[i]
      self.facts[places[p]] = {
        scaled = filter(p) and true or false, group = group, decay = decays and (group.weight_decay or opt.weight_decay) or 0.0,
      }
    end
  end
  for _, group in ipairs(opt.param_groups) do
    if group.weight_decay then group.weight_decay = 0.0 end
  end
  opt.weight_decay = 0.0
  if opt.loss_scale then
    self.loss_scale = opt.loss_scale
    opt.loss_scale = 1.0
  end
end

function LARS:construct(grads)
  if ms.is_tensor(grads) and #self.parameters == 1 then grads = { grads } end
  if type(grads) ~= "table" or #grads ~= #self.parameters then
    fail("LARS", ("a table of %d gradients is expected, got %s"):format(#self.parameters,
      type(grads) == "table" and #grads or describe(grads)))
  end
  local opt, step, scaled = self.opt, self.opt.global_step, {}
  for i, g in ipairs(grads) do
    local p, fact = self.parameters[i], self.facts[i]
    if self.loss_scale and self.loss_scale ~= 1 then g = g / self.loss_scale end
    if fact.scaled then
      local decay = fact.decay
      if not math.type(decay) then decay = base.rate_at("LARS", "weight_decay", decay, step) end
      local size = rare.norm(p)
      local sum = rare.norm(g) + decay * size + self.epsilon
      local sound = ops.logical_and(ops.gt(size, 0.0), ops.gt(sum, self.epsilon))
      local r = ops.where(sound, self.coefficient * size / ops.where(sound, sum, ops.ones_like(sum)), ops.ones_like(sum))
      if self.use_clip then
        local rate = fact.group.lr
        if rate == nil then rate = opt.learning_rate end
        r = ops.minimum(r / base.rate_at("LARS", opt.rate_name, rate, step), 1.0)
      end
      if decay ~= 0 then g = g + decay * p end
      g = ops.cast(r * g, grads[i].dtype)
    end
    scaled[i] = g
  end
  opt:construct(scaled)
  self.global_step = opt.global_step
  return true
end

function LARS:get_lr() return self.opt:get_lr() end
function LARS:set_lr(value) return self.opt:set_lr(value) end

function LARS:load_state_dict(state)
  base.nn.Optimizer.load_state_dict(self, state)
  self.opt.global_step = state.global_step
end

function LARS:extend_repr() return self.opt:extend_repr() end

return { LARS = LARS }
