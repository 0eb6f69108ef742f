-- Schedulers of learning rates: objects that set the rate of each group of an optimizer when step() is called, mostly once
-- per epoch. Each computes the next rate from the present one, as PyTorch's do, so that several may work on one optimizer
-- and a rate that was set by hand is gone on from.
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local LRScheduler = class.Object:extend("LRScheduler")
LRScheduler._called = "schedule"
LRScheduler._parameters = "optimizer, last_epoch=-1"
LRScheduler._doc = [[What schedulers of your own extend: get_lr(self, epoch) gives the learning rate of each group of self.optimizer.

self.base_lrs are the rates at the start, self:rates() those of now.
  > tostring(ms.experimental.optim.LRScheduler:extend("Mine")) --> class Mine(...)]]

local function group_rates(optimizer)
  local list = {}
  for i, group in ipairs(optimizer.param_groups) do
    local rate = group.lr
    if rate == nil then rate = optimizer.learning_rate end
    list[i] = rate
  end
  return list
end

local function set_rates(optimizer, rates)
  for i, group in ipairs(optimizer.param_groups) do group.lr = rates[i] end
end

local function begin(self, optimizer, last_epoch)
  local name = getmetatable(self)._name
  if not cells.is_cell(optimizer) or not rawget(optimizer, "param_groups") then
    fail(name, "optimizer must be an optimizer, got " .. describe(optimizer))
  end
  self.optimizer = optimizer
  self.last_epoch = check.integer(name, "last_epoch", last_epoch or -1)
  if self.last_epoch < -1 then fail(name, ("last_epoch must be -1 or more, got %d"):format(self.last_epoch)) end
  self.base_lrs = {}
  for i, rate in ipairs(group_rates(optimizer)) do
    if not math.type(rate) then
      fail(name, "the optimizer's learning rate changes with the step already", "give the optimizer a number")
    end
    local group = optimizer.param_groups[i]
    group.initial_lr = group.initial_lr or rate
    self.base_lrs[i] = group.initial_lr
  end
end

--- Called with the optimizer.
function LRScheduler:init(optimizer, last_epoch)
  begin(self, optimizer, last_epoch)
  self:step()
end

--- The learning rates of the optimizer's groups now.
---     > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
---     > ms.experimental.optim.StepLR(opt, 10):rates()[1] --> 0.5
function LRScheduler:rates() return group_rates(self.optimizer) end

--- The learning rates of an epoch; yours overrides it.
---     > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
---     > ms.experimental.optim.StepLR(opt, 10, 0.5):get_lr(10)[1] --> 0.25
function LRScheduler:get_lr() return self:rates() end

--- Goes on by one epoch and sets the learning rates.
---     > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
---     > s = ms.experimental.optim.StepLR(opt, 1, 0.5)
---     > s:step()
---     > s:rates()[1] --> 0.25
function LRScheduler:step()
  self.last_epoch = self.last_epoch + 1
  local rates = self:get_lr(self.last_epoch)
  if type(rates) ~= "table" or #rates ~= #self.base_lrs then
    fail(getmetatable(self)._name, ("get_lr must give a list of %d rates, got %s"):format(#self.base_lrs, describe(rates)))
  end
  set_rates(self.optimizer, rates)
  self._last = rates
end

--- The learning rates that step() has set last.
---     > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
---     > ms.experimental.optim.StepLR(opt, 10):get_last_lr()[1] --> 0.5
function LRScheduler:get_last_lr() return table.move(self._last, 1, #self._last, 1, {}) end

local function plain(value)
  if type(value) ~= "table" then return type(value) ~= "function" end
  for _, item in pairs(value) do
    if getmetatable(value) ~= nil or not plain(item) then return false end
  end
  return getmetatable(value) == nil
end

local function copied(value)
  if type(value) ~= "table" then return value end
  local result = {}
  for key, item in pairs(value) do result[key] = copied(item) end
  return result
end

--- What the scheduler has counted so far, for a checkpoint: numbers and texts by name.
---     > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
---     > ms.experimental.optim.StepLR(opt, 10):state_dict().last_epoch --> 0
function LRScheduler:state_dict()
  local state = {}
  for key, value in pairs(self) do
    if key ~= "optimizer" and plain(value) then state[key] = copied(value) end
  end
  return state
end

--- Takes up what state_dict gave.
---     > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
---     > s = ms.experimental.optim.StepLR(opt, 10)
---     > s:load_state_dict(s:state_dict())
---     > s.last_epoch --> 0
function LRScheduler:load_state_dict(state)
  if type(state) ~= "table" or math.type(state.last_epoch) ~= "integer" then
    fail(getmetatable(self)._name, "the state must be what state_dict gave, got " .. describe(state))
  end
  for key, value in pairs(state) do self[key] = copied(value) end
  if self._last then set_rates(self.optimizer, self._last) end
end

local classes = { LRScheduler = LRScheduler }

-- `setup(self, a, name)` checks the arguments, `next_rate(self, epoch, rate, base, group)` gives the next rate of a group.
local function define(name, signature, doc, setup, next_rate)
  local scheduler = class.define(LRScheduler, name, "optimizer, " .. signature .. ", last_epoch=-1", doc)
  function scheduler:setup(a)
    begin(self, a.optimizer, a.last_epoch)
    setup(self, a, name)
    self:step()
  end
  function scheduler:get_lr(epoch)
    epoch = check.not_negative(name .. ":get_lr", "epoch", epoch == nil and self.last_epoch or epoch)
    local rates, now = {}, self:rates()
    for i, base in ipairs(self.base_lrs) do rates[i] = next_rate(self, epoch, now[i], base, i) end
    return rates
  end
  classes[name] = scheduler
  return scheduler
end

local function numbers(...)
  local keys = { ... }
  return function(self, a, name)
    for i = 1, #keys, 2 do self[keys[i]] = check[keys[i + 1]](name, keys[i], a[keys[i]]) end
  end
end

define("StepLR", "step_size, gamma=0.1",
  [[The rate times gamma after every step_size epochs.

  > local scheduler = ms.experimental.optim.lr_scheduler.StepLR(optimizer, 30, 0.1)
  > scheduler:step()]],
  numbers("step_size", "positive", "gamma", "number"),
  function(self, epoch, rate)
    return epoch > 0 and epoch % self.step_size == 0 and rate * self.gamma or rate
  end)

define("MultiStepLR", "milestones, gamma=0.1", [[The rate times gamma at each of the epochs in milestones.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.MultiStepLR(opt, { 10, 20 }):get_last_lr()[1] --> 0.5]],
  function(self, a, name)
    if type(a.milestones) ~= "table" or #a.milestones == 0 then
      fail(name, "milestones must be a list of epochs that is not empty, got " .. describe(a.milestones))
    end
    self.milestones = {}
    for i, epoch in ipairs(a.milestones) do
      epoch = check.not_negative(name, ("milestones[%d]"):format(i), epoch)
      self.milestones[epoch] = (self.milestones[epoch] or 0) + 1
    end
    self.gamma = check.number(name, "gamma", a.gamma)
  end,
  function(self, epoch, rate)
    local times = self.milestones[epoch]
    return times and rate * self.gamma ^ times or rate
  end)

define("ExponentialLR", "gamma", [[The rate times gamma in every epoch.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > s = ms.experimental.optim.ExponentialLR(opt, 0.5)
  > s:step()
  > s:get_last_lr()[1] --> 0.25]], numbers("gamma", "number"),
  function(self, epoch, rate) return epoch > 0 and rate * self.gamma or rate end)

local function factor_setup(self, a, name)
  for _, key in ipairs { "start_factor", "end_factor", "factor" } do
    if a[key] ~= nil then
      self[key] = check.number(name, key, a[key])
      local least = key ~= "end_factor" and self[key] > 0 or self[key] >= 0
      if not (least and self[key] <= 1) then
        fail(name, ("%s must be %s and at most 1, got %s"):format(key, key == "end_factor" and "0 or more" or "above 0", self[key]))
      end
    end
  end
  self.total_iters = check.positive(name, "total_iters", a.total_iters)
end

define("LinearLR", "start_factor=0.3333333333333333, end_factor=1.0, total_iters=5",
  [[The rate times a factor that goes from start_factor to end_factor in total_iters epochs.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.LinearLR(opt, 0.5):get_last_lr()[1] --> 0.25]], factor_setup,
  function(self, epoch, rate)
    local first, last, count = self.start_factor, self.end_factor, self.total_iters
    if epoch == 0 then return rate * first end
    if epoch > count then return rate end
    return rate * (1 + (last - first) / (count * first + (epoch - 1) * (last - first)))
  end)

define("ConstantLR", "factor=0.3333333333333333, total_iters=5",
  [[The rate times factor in the first total_iters epochs.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.ConstantLR(opt, 0.5, 2):get_last_lr()[1] --> 0.25]], factor_setup,
  function(self, epoch, rate)
    if epoch == 0 then return rate * self.factor end
    return epoch == self.total_iters and rate / self.factor or rate
  end)

define("PolynomialLR", "total_iters=5, power=1.0", [[The rate times (1 - epoch / total_iters)^power; 0 from there on.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.PolynomialLR(opt, 4):get_last_lr()[1] --> 0.5]],
  numbers("total_iters", "positive", "power", "number_positive"),
  function(self, epoch, rate)
    if epoch == 0 or epoch > self.total_iters then return rate end
    return rate * ((1 - epoch / self.total_iters) / (1 - (epoch - 1) / self.total_iters)) ^ self.power
  end)

define("CosineAnnealingLR", "T_max, eta_min=0.0",
  [[From the rate down to eta_min and up again along a cosine, whose half takes T_max epochs (Loshchilov, Hutter 2017).
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.CosineAnnealingLR(opt, 4):get_last_lr()[1] --> 0.5]],
  numbers("T_max", "positive", "eta_min", "number_not_negative"),
  function(self, epoch, rate, base)
    local least, half = self.eta_min, self.T_max
    if epoch == 0 then return rate end
    if (epoch - 1 - half) % (2 * half) == 0 then
      return rate + (base - least) * (1 - math.cos(math.pi / half)) / 2
    end
    return (1 + math.cos(math.pi * epoch / half)) / (1 + math.cos(math.pi * (epoch - 1) / half)) * (rate - least) + least
  end)

define("CosineAnnealingWarmRestarts", "T_0, T_mult=1, eta_min=0.0",
  [[Along a cosine down to eta_min in T_0 epochs, again from the start, T_mult times as long (SGDR, Loshchilov, Hutter 2017).
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.CosineAnnealingWarmRestarts(opt, 4):get_last_lr()[1] --> 0.5]],
  numbers("T_0", "positive", "T_mult", "positive", "eta_min", "number_not_negative"),
  function(self, epoch, _, base)
    local length = self.T_0
    while epoch >= length do
      epoch, length = epoch - length, length * self.T_mult
    end
    return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / length)) / 2
  end)

-- One function for all groups, or a list with one for each.
local function lambdas(self, a, name)
  local given = a.lr_lambda
  local list = arguments.is_callable(given) and {} or given
  if type(list) ~= "table" then fail(name, "lr_lambda must be a function or a list of them, got " .. describe(given)) end
  self.lr_lambdas = {}
  for i = 1, #self.base_lrs do
    local f = arguments.is_callable(given) and given or list[i]
    if not arguments.is_callable(f) then
      fail(name, ("lr_lambda must be a function or a list of %d functions, got %s at %d"):format(#self.base_lrs, describe(f), i))
    end
    self.lr_lambdas[i] = f
  end
end

define("LambdaLR", "lr_lambda", [[The rate at the start times lr_lambda(epoch), a function or one for each group.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.LambdaLR(opt, function(epoch) return 0.5 ^ epoch end):get_last_lr()[1] --> 0.5]], lambdas,
  function(self, epoch, _, base, i) return base * check.number("LambdaLR", "lr_lambda's result", self.lr_lambdas[i](epoch)) end)

define("MultiplicativeLR", "lr_lambda", [[The rate times lr_lambda(epoch), a function or one for each group, in every epoch.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.MultiplicativeLR(opt, function() return 0.5 end):get_last_lr()[1] --> 0.5]], lambdas,
  function(self, epoch, rate, _, i)
    return epoch == 0 and rate or rate * check.number("MultiplicativeLR", "lr_lambda's result", self.lr_lambdas[i](epoch))
  end)

local function limits(name, key, value, count)
  if math.type(value) then
    local list = {}
    for i = 1, count do list[i] = check.number_not_negative(name, key, value) end
    return list
  elseif type(value) ~= "table" or #value ~= count then
    fail(name, ("%s must be a number or a list of %d, one for each group, got %s"):format(key, count, describe(value)))
  end
  local list = {}
  for i = 1, count do list[i] = check.number_not_negative(name, key, value[i]) end
  return list
end

local shapes = {
  triangular = function() return 1 end,
  triangular2 = function(_, cycle) return 1 / 2 ^ (cycle - 1) end,
  exp_range = function(self, _, step) return self.gamma ^ step end,
}

define("CyclicLR",
  "base_lr, max_lr, step_size_up=2000, step_size_down=nil, mode=\"triangular\", gamma=1.0, scale_fn=nil, scale_mode=\"cycle\"",
  [[From base_lr up to max_lr in step_size_up steps and down again in step_size_down (as many by default), over and over
(Smith 2017). mode: "triangular", "triangular2" (half the height in each cycle), "exp_range" (gamma^step times the height).
scale_fn(cycle), or scale_fn(step) with scale_mode "iterations", replaces the mode. step() is called after every batch.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > ms.experimental.optim.CyclicLR(opt, 0.25, 0.5, 4):get_last_lr()[1] --> 0.25]],
  function(self, a, name)
    self.base, self.most = limits(name, "base_lr", a.base_lr, #self.base_lrs), limits(name, "max_lr", a.max_lr, #self.base_lrs)
    self.up = check.positive(name, "step_size_up", a.step_size_up)
    self.down = a.step_size_down == nil and self.up or check.positive(name, "step_size_down", a.step_size_down)
    self.mode = check.choice(name, "mode", a.mode, { "triangular", "triangular2", "exp_range" })
    self.gamma = check.number(name, "gamma", a.gamma)
    self.scale_mode = check.choice(name, "scale_mode", a.scale_mode, { "cycle", "iterations" })
    if a.scale_fn ~= nil and not arguments.is_callable(a.scale_fn) then
      fail(name, "scale_fn must be a function, got " .. describe(a.scale_fn))
    end
    self.scale_fn = a.scale_fn
  end,
  function(self, step, _, _, i)
    local whole = self.up + self.down
    local cycle = 1 + step // whole
    local at = 1 + step / whole - cycle
    local share = self.up / whole
    local height = at <= share and at / share or (at - 1) / (share - 1)
    local scale
    if self.scale_fn then
      scale = check.number("CyclicLR", "scale_fn's result", self.scale_fn(self.scale_mode == "cycle" and cycle or step))
    else
      scale = shapes[self.mode](self, cycle, step)
    end
    return self.base[i] + (self.most[i] - self.base[i]) * height * scale
  end)

local SequentialLR = class.define(LRScheduler, "SequentialLR", "optimizer, schedulers, milestones, last_epoch=-1",
  [[Schedulers one after the other: the second begins at the epoch milestones[1], and so on.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > o = ms.experimental.optim
  > o.SequentialLR(opt, { o.ConstantLR(opt, 0.5, 2), o.ExponentialLR(opt, 0.5) }, { 2 }):step()]])
function SequentialLR:setup(a)
  local name = "SequentialLR"
  begin(self, a.optimizer, a.last_epoch)
  if type(a.schedulers) ~= "table" or #a.schedulers == 0 then
    fail(name, "schedulers must be a list of schedulers that is not empty, got " .. describe(a.schedulers))
  elseif type(a.milestones) ~= "table" or #a.milestones ~= #a.schedulers - 1 then
    fail(name, ("milestones must be a list of %d epochs, one less than the schedulers, got %s"):format(
      #a.schedulers - 1, describe(a.milestones)))
  end
  for i, scheduler in ipairs(a.schedulers) do
    if not class.is_a(scheduler, LRScheduler) or scheduler.optimizer ~= a.optimizer then
      fail(name, ("schedulers[%d] must be a scheduler of the same optimizer, got %s"):format(i, describe(scheduler)))
    end
  end
  self.schedulers, self.milestones = a.schedulers, {}
  for i, epoch in ipairs(a.milestones) do
    self.milestones[i] = check.positive(name, ("milestones[%d]"):format(i), epoch)
    if i > 1 and epoch <= self.milestones[i - 1] then fail(name, "milestones must grow") end
  end
  -- Each scheduler has made its first step when it was made; only that of the first counts.
  local rates = {}
  for i, group in ipairs(a.optimizer.param_groups) do rates[i] = group.initial_lr end
  set_rates(a.optimizer, rates)
  self.last_epoch = self.last_epoch + 1
  self.schedulers[1].last_epoch = -1
  self.schedulers[1]:step()
  self._last = self.schedulers[1]:get_last_lr()
end
function SequentialLR:step()
  self.last_epoch = self.last_epoch + 1
  local which = 1
  while self.milestones[which] and self.last_epoch >= self.milestones[which] do which = which + 1 end
  local scheduler = self.schedulers[which]
  if which > 1 and self.last_epoch == self.milestones[which - 1] then
    scheduler.last_epoch = -1
    set_rates(self.optimizer, self.base_lrs)
  end
  scheduler:step()
  self._last = scheduler:get_last_lr()
end
function SequentialLR:state_dict()
  local state = LRScheduler.state_dict(self)
  state.schedulers = {}
  for i, scheduler in ipairs(self.schedulers) do state.schedulers[i] = scheduler:state_dict() end
  return state
end
function SequentialLR:load_state_dict(state)
  if type(state) ~= "table" or type(state.schedulers) ~= "table" or #state.schedulers ~= #self.schedulers then
    fail("SequentialLR", "the state must be what state_dict gave, got " .. describe(state))
  end
  for i, scheduler in ipairs(self.schedulers) do scheduler:load_state_dict(state.schedulers[i]) end
  self.last_epoch, self._last = state.last_epoch, copied(state._last)
  set_rates(self.optimizer, self._last)
end
classes.SequentialLR = SequentialLR

local ReduceLROnPlateau = class.define(LRScheduler, "ReduceLROnPlateau",
  "optimizer, mode=\"min\", factor=0.1, patience=10, threshold=1e-4, threshold_mode=\"rel\", cooldown=0, min_lr=0.0, eps=1e-8",
  [[The rate times factor when a figure has not become better for more than patience epochs: step(figure) after every epoch.

mode: "min", the figure is to become less, or "max". It is better by more than threshold, relative ("rel") or absolute
("abs"). After a change cooldown epochs are not counted; min_lr is the least rate, one or one for each group; changes of
less than eps are not made.
  > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
  > s = ms.experimental.optim.ReduceLROnPlateau(opt, { factor = 0.5, patience = 0 })
  > s:step(1.0)
  > s:step(1.0)
  > opt:get_lr() --> 0.25]])
function ReduceLROnPlateau:setup(a)
  local name = "ReduceLROnPlateau"
  begin(self, a.optimizer, -1)
  self.mode = check.choice(name, "mode", a.mode, { "min", "max" })
  self.factor = check.number_not_negative(name, "factor", a.factor)
  if self.factor >= 1 then fail(name, ("factor must be less than 1, got %s"):format(self.factor)) end
  self.patience = check.not_negative(name, "patience", a.patience)
  self.threshold = check.number_not_negative(name, "threshold", a.threshold)
  self.threshold_mode = check.choice(name, "threshold_mode", a.threshold_mode, { "rel", "abs" })
  self.cooldown = check.not_negative(name, "cooldown", a.cooldown)
  self.min_lrs = limits(name, "min_lr", a.min_lr, #self.base_lrs)
  self.eps = check.number_not_negative(name, "eps", a.eps)
  self.best = self.mode == "min" and math.huge or -math.huge
  self.bad_epochs, self.cooling, self.last_epoch = 0, 0, 0
  self._last = self:rates()
end
--- Whether the figure is better than the best so far.
---     > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
---     > ms.experimental.optim.ReduceLROnPlateau(opt):is_better(1.0) --> true
function ReduceLROnPlateau:is_better(value)
  local margin = self.threshold
  -- Anything is better than the infinity that is there at first.
  if self.threshold_mode == "rel" and math.abs(self.best) < math.huge then margin = margin * self.best end
  if self.mode == "min" then
    return value < self.best - margin
  end
  return value > self.best + margin
end
--- Goes on by one epoch, whose figure this is.
function ReduceLROnPlateau:step(metrics)
  local value = check.number("ReduceLROnPlateau", "metrics", metrics)
  self.last_epoch = self.last_epoch + 1
  if self:is_better(value) then
    self.best, self.bad_epochs = value, 0
  else
    self.bad_epochs = self.bad_epochs + 1
  end
  if self.cooling > 0 then
    self.cooling, self.bad_epochs = self.cooling - 1, 0
  end
  if self.bad_epochs > self.patience then
    local rates = self:rates()
    for i, rate in ipairs(rates) do
      local reduced = math.max(rate * self.factor, self.min_lrs[i])
      if rate - reduced > self.eps then rates[i] = reduced end
    end
    set_rates(self.optimizer, rates)
    self.cooling, self.bad_epochs = self.cooldown, 0
  end
  self._last = self:rates()
end
--- Whether epochs after a change are still left out.
---     > opt = ms.nn.optim.SGD(ms.nn.Dense(2, 1):trainable_params(), 0.5)
---     > ms.experimental.optim.ReduceLROnPlateau(opt):in_cooldown() --> false
function ReduceLROnPlateau:in_cooldown() return self.cooling > 0 end
classes.ReduceLROnPlateau = ReduceLROnPlateau

return classes
