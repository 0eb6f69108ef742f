-- Optimizers: opt(grads) makes one step with the gradients of opt's parameters, in their order. A step of all
-- parameters is one operator, which writes parameters and moments in place.
--
-- Two families with different names of arguments and, where the frameworks differ, different rules: nn.Adam and its kin
-- follow MindSpore, nn.optim (also mint.optim) follow PyTorch.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell
local apply_momentum, apply_adam = ops.apply_momentum, ops.apply_adam

local function option_of(name, group, key, checked)
  local value = group[key]
  if value ~= nil then
    return checked(name, key, value)
  end
end

-- A learning rate: a number, a list or tensor with one for each step, or something to call with the step's number (from 0).
local function learning_rate(name, key, value)
  if type(value) == "function" or cells.is_cell(value) then
    return value
  elseif ms.is_tensor(value) and value.size ~= 1 then
    value = value:tolist()
  end
  if type(value) == "table" then
    if #value == 0 then
      fail(name, key .. " is an empty list")
    end
    local rates = {}
    for i = 1, #value do
      rates[i] = check.number_not_negative(name, ("%s[%d]"):format(key, i), value[i])
    end
    return rates
  end
  return check.number_not_negative(name, key, value)
end

local function rate_at(name, key, value, step)
  if math.type(value) then
    return value
  elseif type(value) == "table" and getmetatable(value) == nil then
    return value[math.min(step + 1, #value)]
  end
  -- A cell of its own for so little would only be recorded and compiled for itself.
  return check.number_not_negative(name, key, cells.is_cell(value) and value:construct(step) or value(step))
end

-- Weight decay: a number, or something to call with the step's number, as the learning rate.
local function decay_of(name, key, value)
  if arguments.is_callable(value) then
    return value
  end
  return check.number_not_negative(name, key, value)
end

local Optimizer = Cell:extend("Optimizer")
Optimizer._called = "optimizer"
Optimizer._doc = [[What all optimizers have: parameters, learning rate, number of steps, state.
  > #ms.nn.SGD(ms.nn.Dense(2, 3):trainable_params(), 0.1).parameters --> 2]]

local function add_parameter(self, parameter, group, seen)
  local name = getmetatable(self)._name
  if not ms.is_parameter(parameter) then
    fail(name, "params must be a table of parameters, got " .. describe(parameter) .. " among them",
      "net:trainable_params() gives those of a network")
  elseif seen[parameter] then
    fail(name, ("the parameter %s is among params twice"):format(parameter.name))
  end
  seen[parameter] = true
  group.params[#group.params + 1] = parameter
  self.parameters[#self.parameters + 1] = parameter
end

local group_options = { params = true, lr = true, weight_decay = true, grad_centralization = true, order_params = true }
local group_names = { "grad_centralization", "lr", "order_params", "params", "weight_decay" }

local function check_group(name, i, item)
  for key in pairs(item) do
    if not group_options[key] then
      fail(name, ("group %d has no option '%s'; there are: %s"):format(i, tostring(key), table.concat(group_names, ", ")),
        arguments.nearest(tostring(key), group_names))
    end
  end
  if item.order_params ~= nil and next(item, next(item)) ~= nil then
    fail(name, ("group %d has order_params and more: order_params stands alone"):format(i))
  end
  local key = item.order_params ~= nil and "order_params" or "params"
  if type(item[key]) ~= "table" or #item[key] == 0 then
    fail(name, ("%s of group %d must be a table of parameters that is not empty, got %s"):format(key, i, describe(item[key])))
  end
end

-- The order in which gradients come, where it is not that of the groups: each group knows the places of its own.
local function set_order(self, name, order)
  local places = {}
  for i, parameter in ipairs(order) do
    if not ms.is_parameter(parameter) then
      fail(name, "order_params must be a table of parameters, got " .. describe(parameter) .. " among them")
    end
    places[parameter] = i
  end
  for _, parameter in ipairs(self.parameters) do
    if not places[parameter] then fail(name, ("the parameter %s is not in order_params"):format(parameter.name)) end
  end
  if #order ~= #self.parameters then
    fail(name, ("order_params has %d parameters, the groups have %d"):format(#order, #self.parameters))
  end
  for _, group in ipairs(self.param_groups) do
    group.places = {}
    for i, parameter in ipairs(group.params) do group.places[i] = places[parameter] end
  end
  rawset(self, "parameters", table.move(order, 1, #order, 1, {}))
end

-- What a user gives as params: a list of parameters, or of groups { params =, lr =, weight_decay =, grad_centralization = },
-- among which { order_params = } says in which order the gradients come.
local function setup(self, a, rate_name)
  local name = getmetatable(self)._name
  local params = a.params
  local network = cells.is_cell(params) and params
  if network then params = params:trainable_params() end
  local key = type(params) == "table" and #params == 0 and next(params)
  if type(params) ~= "table" or key then
    local plain = key and getmetatable(params) == nil
    fail(name, "params must be a table of parameters, got " .. describe(params)
      .. (plain and (" without elements, but with the field '%s'"):format(tostring(key)) or ""),
      "net:trainable_params() gives those of a network")
  elseif #params == 0 then
    fail(name, network and describe(network) .. " has no parameters that are trained: there is nothing to optimize"
      or "params is empty: there is nothing to optimize")
  end
  self.learning_rate = learning_rate(name, rate_name, a[rate_name])
  self.weight_decay = decay_of(name, "weight_decay", a.weight_decay or 0.0)
  self.global_step = 0
  rawset(self, "rate_name", rate_name)
  rawset(self, "given", a)
  rawset(self, "parameters", {})
  rawset(self, "param_groups", {})
  local seen = {}
  local plain, order
  for i = 1, #params do
    local item = params[i]
    if type(item) == "table" and not cells.is_cell(item) then
      check_group(name, i, item)
      if item.order_params then
        order = item.order_params
      else
        local group = {
          params = {},
          lr = option_of(name, item, "lr", learning_rate),
          weight_decay = option_of(name, item, "weight_decay", decay_of),
          centralized = option_of(name, item, "grad_centralization", check.boolean),
          explicit = item.weight_decay ~= nil,
        }
        for _, parameter in ipairs(item.params) do
          add_parameter(self, parameter, group, seen)
        end
        self.param_groups[#self.param_groups + 1] = group
      end
    else
      if not plain then
        plain = { params = {} }
        self.param_groups[#self.param_groups + 1] = plain
      end
      add_parameter(self, item, plain, seen)
    end
  end
  if order then set_order(self, name, order) end
end

-- A list of zeros for every parameter of a group, kept as parameters of the optimizer so that they are saved with it; of
-- the parameters' shapes unless there is another one for all.
local function moments(self, group, prefix, shape)
  local list = {}
  for i, parameter in ipairs(group.params) do
    local dtype = parameter.dtype
    if dtype == ms.float16 or dtype == ms.bfloat16 then
      dtype = ms.float32
    end
    local moment = ms.Parameter(ops.zeros(shape or parameter.shape, dtype):to(parameter.device), prefix .. "." .. parameter.name, false)
    list[i] = moment
    local key = moment.name
    -- Two parameters may have one name; their moments are told apart by a number.
    local n = 1
    while rawget(self, key) ~= nil do
      n = n + 1
      key = moment.name .. "." .. n
    end
    moment.name = key
    self:insert_param_to_cell(key, moment)
  end
  return list
end

-- Which parameters of a group decay: MindSpore leaves out those of normalisations unless the group says otherwise.
local function decayed(group)
  if group.explicit then
    return nil
  end
  local list, all = {}, true
  for i, parameter in ipairs(group.params) do
    local name = parameter.name
    list[i] = not (name:find("beta", 1, true) or name:find("gamma", 1, true))
    all = all and list[i]
  end
  if not all then
    return list
  end
end

-- The gradients less their means over all axes but the first (Yong et al. 2020); vectors stay as they are.
local function centralized(grads)
  local list = {}
  for i, g in ipairs(grads) do
    local axes = {}
    for axis = 1, g.ndim - 1 do axes[axis] = axis end
    list[i] = #axes > 0 and g - ops.mean(g, axes, true) or g
  end
  return list
end

-- The gradients of a group among all of them; first: how many came before.
local function part_of(grads, group, first)
  local places, part = group.places, {}
  if not places then return table.move(grads, first + 1, first + #group.params, 1, part) end
  for i = 1, #places do part[i] = grads[places[i]] end
  return part
end

--- One step: grads has the gradient of every parameter, in the order of the parameters. Within a function that is
--- differentiated gradients flow through the step, to the old parameters, the gradients and the learning rate; under
--- ms.stop_gradient(g) for each of the gradients they flow to the old parameters only. Gradients may also come one by one, as
--- ops.clip_by_global_norm gives them: optimizer(ops.clip_by_global_norm(grads, 1.0)).
function Optimizer:construct(grads, ...)
  local name = getmetatable(self)._name
  if ms.is_tensor(grads) and select("#", ...) == #self.parameters - 1 then
    grads = { grads, ... }
  elseif select("#", ...) > 0 then
    fail(name, ("got %d gradients for %d parameters"):format(select("#", ...) + 1, #self.parameters))
  elseif type(grads) ~= "table" then
    -- Clipping gives one result for each gradient.
    local hint = ms.is_tensor(grads) and "clipping gives one for each: optimizer(ops.clip_by_global_norm(grads, 1.0))"
      or "local loss, grads = ms.value_and_grad(f, { weights = params })(x)"
    fail(name, "a table of gradients is expected, got " .. describe(grads), hint)
  elseif #grads ~= #self.parameters then
    fail(name, ("got %d gradients for %d parameters"):format(#grads, #self.parameters))
  end
  local scale = self.loss_scale
  if scale and scale ~= 1 then
    local scaled = {}
    for i = 1, #grads do
      scaled[i] = grads[i] / scale
    end
    grads = scaled
  end
  if self.maximize then
    local negated = {}
    for i = 1, #grads do
      negated[i] = -grads[i]
    end
    grads = negated
  end
  local step = self.global_step
  local groups = self.param_groups
  local first = 0
  for i = 1, #groups do
    local group = groups[i]
    local part = grads
    if #groups > 1 or group.places then
      part = part_of(grads, group, first)
      first = first + #group.params
    end
    if group.centralized then part = centralized(part) end
    local rate = group.lr
    if rate == nil then
      rate = self.learning_rate
    end
    if not math.type(rate) then
      rate = rate_at(name, self.rate_name, rate, step)
    end
    local decay = group.weight_decay or self.weight_decay
    if not math.type(decay) then
      decay = rate_at(name, "weight_decay", decay, step)
    end
    self:update(group, part, rate, decay, step + 1)
  end
  self.global_step = step + 1
  return true
end

--- The learning rate of the next step; of several groups, a table with one for each.
---     > ms.nn.SGD(ms.nn.Dense(2, 3):trainable_params(), 0.5):get_lr() --> 0.5
function Optimizer:get_lr()
  local name, rates = getmetatable(self)._name, {}
  for i, group in ipairs(self.param_groups) do
    local rate = group.lr
    if rate == nil then
      rate = self.learning_rate
    end
    rates[i] = rate_at(name, self.rate_name, rate, self.global_step)
  end
  return #rates == 1 and rates[1] or rates
end

--- Sets the learning rate of all groups: a number, a list with one for each step, or a function of the step. The same
--- as opt.learning_rate = value when there are no groups with a rate of their own.
---     > (function() local opt = ms.nn.SGD(ms.nn.Dense(2, 3):trainable_params(), 0.5) opt:set_lr(0.25) return opt:get_lr() end)() --> 0.25
function Optimizer:set_lr(value)
  self.learning_rate = learning_rate(getmetatable(self)._name, self.rate_name, value)
  for _, group in ipairs(self.param_groups) do
    group.lr = nil
  end
end

--- The moments by name and the number of steps, for a checkpoint; the tensors are copies.
---     > type(ms.nn.SGD(ms.nn.Dense(2, 3):trainable_params(), 0.5):state_dict()) --> table
function Optimizer:state_dict()
  local state = { global_step = self.global_step }
  for name, parameter in self:parameters_and_names() do
    state[name] = parameter:copy()
  end
  return state
end

--- Takes up the state that state_dict gave.
---     > opt = ms.nn.SGD(ms.nn.Dense(2, 3):trainable_params(), 0.5)
---     > opt:load_state_dict(opt:state_dict())
---     > opt.global_step --> 0
function Optimizer:load_state_dict(state)
  local name = getmetatable(self)._name
  if type(state) ~= "table" or math.type(state.global_step) ~= "integer" then
    fail(name, "the state must be what state_dict gave, got " .. describe(state))
  end
  for key in self:parameters_and_names() do
    if not ms.is_tensor(state[key]) then
      fail(name, ("the state has no tensor '%s'"):format(key))
    end
  end
  for key, parameter in self:parameters_and_names() do
    parameter:assign(state[key])
  end
  self.global_step = state.global_step
end

function Optimizer:extend_repr()
  local rate = self.learning_rate
  return ("%s=%s, parameters=%d"):format(self.rate_name, math.type(rate) and rate or "scheduled", #self.parameters)
end

function Optimizer.init()
  fail("Optimizer", "is what optimizers extend; use one of them, such as nn.Adam")
end

local nn, mint = { Optimizer = Optimizer }, {}

local function scale_of(name, a)
  local scale = check.number(name, "loss_scale", a.loss_scale)
  if not (scale > 0) then
    fail(name, ("loss_scale must be positive, got %s"):format(scale))
  end
  return scale
end

-- Gradient descent with or without momentum. `like_mindspore`: normalisations are left out of weight decay.
local function momentum_setup(self, a, rate_name, like_mindspore)
  local name = getmetatable(self)._name
  setup(self, a, rate_name)
  self.momentum = check.number_not_negative(name, "momentum", a.momentum)
  self.dampening = check.number(name, "dampening", a.dampening or 0.0)
  self.nesterov = check.boolean(name, "nesterov", a.nesterov or false)
  if self.nesterov and (self.momentum == 0 or self.dampening ~= 0) then
    fail(name, ("nesterov needs a momentum and no dampening, got momentum %s and dampening %s"):format(self.momentum, self.dampening))
  end
  for _, group in ipairs(self.param_groups) do
    if self.momentum ~= 0 then
      group.accumulators = moments(self, group, "moments")
    end
    group.decayed = like_mindspore and decayed(group) or nil
  end
end

local function momentum_update(self, group, grads, rate, weight_decay, step)
  local dampening = self.dampening
  -- Asked for last: a compiled step is one for all numbers of steps where there is none.
  if dampening ~= 0 and step == 1 then dampening = 0.0 end
  apply_momentum(group.params, grads, group.accumulators, rate, self.momentum, dampening, weight_decay, self.nesterov,
    group.decayed, getmetatable(self)._name)
end

nn.SGD = layer(Optimizer, "SGD",
  "params, learning_rate=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=false, loss_scale=1.0",
  [[Stochastic gradient descent: v = momentum v + (1 - dampening) g; p = p - learning_rate v.

params is a list of parameters (net:trainable_params()) or of groups { params =, lr =, weight_decay =,
grad_centralization = }, among which { order_params = net:trainable_params() } says in which order the gradients come.
learning_rate is a number, a list with one for each step, a schedule such as nn.CosineDecayLR, or a function of the step.
weight_decay adds weight_decay p to the gradients of all parameters but those named gamma and beta.

  > local opt = ms.nn.SGD(net:trainable_params(), 0.1, { momentum = 0.9 })
  > opt(grads)
  > (function() local p = ms.Parameter(ms.ones { 2 }, "p") ms.nn.SGD({ p }, 0.5)({ ms.ones { 2 } }) return p:tolist()[1] end)() --> 0.5]])
function nn.SGD:setup(a)
  momentum_setup(self, a, "learning_rate", true)
  self.loss_scale = scale_of("SGD", a)
end
nn.SGD.update = momentum_update

nn.Momentum = layer(Optimizer, "Momentum",
  "params, learning_rate, momentum, weight_decay=0.0, loss_scale=1.0, use_nesterov=false",
  [[Gradient descent with momentum: v = momentum v + g; p = p - learning_rate v (nesterov: p - learning_rate (g + momentum v)).
  > (function() local p = ms.Parameter(ms.ones { 2 }, "p") ms.nn.Momentum({ p }, 0.5, 0.9)({ ms.ones { 2 } }) return p:tolist()[1] end)()
  0.5]])
function nn.Momentum:setup(a)
  a.nesterov = check.boolean("Momentum", "use_nesterov", a.use_nesterov)
  momentum_setup(self, a, "learning_rate", true)
  self.loss_scale = scale_of("Momentum", a)
end
nn.Momentum.update = momentum_update

mint.SGD = layer(Optimizer, "SGD",
  "params, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=false, maximize=false",
  [[Stochastic gradient descent with PyTorch's rules: v = momentum v + (1 - dampening) g; p = p - lr v.
  > ms.nn.optim.SGD(ms.nn.Dense(2, 3):trainable_params(), { lr = 1e-1 }) --> SGD<lr=0.1, parameters=2>]])
function mint.SGD:setup(a)
  momentum_setup(self, a, "lr", false)
  self.maximize = check.boolean("SGD", "maximize", a.maximize)
end
mint.SGD.update = momentum_update

local function adam_moments(self, with_maxima)
  for _, group in ipairs(self.param_groups) do
    group.moments = moments(self, group, "moment1")
    group.squares = moments(self, group, "moment2")
    group.maxima = with_maxima and moments(self, group, "vhat") or nil
  end
end

nn.Adam = layer(Optimizer, "Adam",
  "params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, use_locking=false, use_nesterov=false, weight_decay=0.0, "
    .. "loss_scale=1.0, use_amsgrad=false",
  [[Adam with MindSpore's rule, which adds eps before the bias correction (nn.optim.Adam adds it after, as PyTorch):
m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g g;
p = p - learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + eps).

params is a list of parameters (net:trainable_params()) or of groups { params =, lr =, weight_decay =,
grad_centralization = }, among which { order_params = net:trainable_params() } says in which order the gradients come.
learning_rate is a number, a list with one for each step, a schedule such as nn.CosineDecayLR, or a function of the step.
weight_decay adds weight_decay p to the gradients of all parameters but those named gamma and beta.
use_locking: whether updates are locked against each other; they always are, one is done at a time.

  > local opt = ms.nn.Adam(net:trainable_params(), 1e-3)
  > opt(grads)
  > ms.nn.Adam(ms.nn.Dense(2, 3):trainable_params(), 1e-3) --> Adam<learning_rate=0.001, parameters=2>]])
function nn.Adam:setup(a)
  local name = getmetatable(self)._name
  setup(self, a, "learning_rate")
  self.beta1 = check.rate(name, "beta1", a.beta1)
  self.beta2 = check.rate(name, "beta2", a.beta2)
  self.eps = check.number_not_negative(name, "eps", a.eps)
  if a.use_locking ~= nil then check.boolean(name, "use_locking", a.use_locking) end
  self.use_nesterov = check.boolean(name, "use_nesterov", a.use_nesterov)
  self.use_amsgrad = check.boolean(name, "use_amsgrad", a.use_amsgrad)
  self.loss_scale = scale_of(name, a)
  adam_moments(self, self.use_amsgrad)
  for _, group in ipairs(self.param_groups) do
    group.decayed = decayed(group)
  end
end
function nn.Adam:update(group, grads, rate, weight_decay, step)
  local size = rate * math.sqrt(1 - self.beta2 ^ step) / (1 - self.beta1 ^ step)
  apply_adam(group.params, grads, group.moments, group.squares, group.maxima, size, self.beta1, self.beta2, self.eps,
    weight_decay, 1.0, self.use_nesterov, group.decayed, "Adam")
end

nn.AdamWeightDecay = layer(Optimizer, "AdamWeightDecay",
  "params, learning_rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-6, weight_decay=0.0",
  [[Adam with decoupled weight decay and without bias correction, as for BERT:
p = p - learning_rate (m / (sqrt(v) + eps) + weight_decay p). nn.optim.AdamW corrects the bias, as PyTorch.
  > ms.nn.AdamWeightDecay(ms.nn.Dense(2, 3):trainable_params(), 1e-3) --> AdamWeightDecay<learning_rate=0.001, parameters=2>]])
function nn.AdamWeightDecay:setup(a)
  setup(self, a, "learning_rate")
  self.beta1 = check.rate("AdamWeightDecay", "beta1", a.beta1)
  self.beta2 = check.rate("AdamWeightDecay", "beta2", a.beta2)
  self.eps = check.number_not_negative("AdamWeightDecay", "eps", a.eps)
  adam_moments(self, false)
  for _, group in ipairs(self.param_groups) do
    group.decayed = decayed(group)
  end
end
function nn.AdamWeightDecay:update(group, grads, rate, weight_decay)
  apply_adam(group.params, grads, group.moments, group.squares, nil, rate, self.beta1, self.beta2, self.eps, 0.0,
    1 - rate * weight_decay, false, group.decayed, "AdamWeightDecay")
end

local function mint_adam(name, weight_decay, decoupled, doc)
  local class = layer(Optimizer, name,
    ("params, lr=1e-3, betas=nil, eps=1e-8, weight_decay=%s, amsgrad=false, maximize=false"):format(weight_decay), doc)
  function class:setup(a)
    setup(self, a, "lr")
    local betas = a.betas or { 0.9, 0.999 }
    if type(betas) ~= "table" or #betas ~= 2 then
      fail(name, "betas must be a table of two numbers, got " .. describe(betas))
    end
    self.beta1 = check.rate(name, "betas[1]", betas[1])
    self.beta2 = check.rate(name, "betas[2]", betas[2])
    self.eps = check.number_not_negative(name, "eps", a.eps)
    self.amsgrad = check.boolean(name, "amsgrad", a.amsgrad)
    self.maximize = check.boolean(name, "maximize", a.maximize)
    adam_moments(self, self.amsgrad)
  end
  function class:update(group, grads, rate, decay, step)
    -- (m / c1) / (sqrt(v / c2) + eps) = sqrt(c2) / c1 m / (sqrt(v) + eps sqrt(c2))
    local root = math.sqrt(1 - self.beta2 ^ step)
    apply_adam(group.params, grads, group.moments, group.squares, group.maxima, rate * root / (1 - self.beta1 ^ step),
      self.beta1, self.beta2, self.eps * root, decoupled and 0.0 or decay, decoupled and 1 - rate * decay or 1.0, false, nil, name)
  end
  return class
end
mint.Adam = mint_adam("Adam", "0.0", false,
  [[Adam with PyTorch's rule: p = p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps).
  > ms.nn.optim.Adam(ms.nn.Dense(2, 3):trainable_params(), { lr = 1e-3 }) --> Adam<lr=0.001, parameters=2>]])
mint.AdamW = mint_adam("AdamW", "1e-2", true,
  [[Adam with decoupled weight decay, p = (1 - lr weight_decay) p before each step; PyTorch's rule.
  > ms.nn.optim.AdamW(ms.nn.Dense(2, 3):trainable_params(), { lr = 1e-3 }) --> AdamW<lr=0.001, parameters=2>]])
mint.FusedAdamW = mint_adam("FusedAdamW", "1e-2", true,
  [[AdamW whose step of all parameters is one operator, as that of all optimizers here is: nn.optim.AdamW by another name.

  > ms.mint.optim.FusedAdamW(ms.nn.Dense(2, 3):trainable_params(), 0.01) --> FusedAdamW<lr=0.01, parameters=2>]])
nn.AdamW = mint.AdamW

local function optimizer_class(name, signature, doc)
  return layer(Optimizer, name, signature, doc)
end

-- The rest is what optimizers in other files are made of.
return {
  nn = nn, mint = mint, layer = optimizer_class, setup = setup, moments = moments, decayed = decayed, scale_of = scale_of,
  rate_at = rate_at, learning_rate = learning_rate,
}
