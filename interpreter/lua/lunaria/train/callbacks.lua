-- The callbacks of ms.train that look at a training and steer it: monitors, early stopping, rates, history.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.train.callback"
local class = require "lunaria.nn.class"
local say = require "lunaria.progress_line".print

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local Callback = base.Callback

local callbacks = { Callback = Callback, RunContext = base.RunContext }

-- The loss of a step as a number: of several results the first.
local function loss_of(args)
  local outputs = args.net_outputs
  if type(outputs) == "table" and not ms.is_tensor(outputs) then outputs = outputs[1] end
  if ms.is_tensor(outputs) then
    return outputs.size == 1 and outputs:item() or ms.ops.mean(outputs):item()
  end
  return math.type(outputs) and outputs or nil
end

-- A number, or a list of a few, one for each class.
local function shown(value)
  if math.type(value) then return ("%.6g"):format(value) end
  local most, words = 16, {}
  for i = 1, type(value) == "table" and #value <= most and #value or 0 do
    if not math.type(value[i]) then return "..." end
    words[i] = ("%.6g"):format(value[i])
  end
  return #words > 0 and "[" .. table.concat(words, ", ") .. "]" or "..."
end

local function figures(results)
  local names, words = {}, {}
  for name in pairs(results) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    words[i] = ("%s: %s"):format(name, shown(results[name]))
  end
  return table.concat(words, ", ")
end

local LossMonitor = class.define(Callback, "LossMonitor", "per_print_times=1",
  [[Prints the loss after every per_print_times steps, and metrics where Model:fit has evaluated.

  > net = ms.nn.Dense(2, 1)
  > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()))
  > model:train(1, { { ms.zeros { 1, 2 }, net(ms.zeros { 1, 2 }) } }, ms.train.LossMonitor()) --> epoch: 1 step: 1, loss is 0.0
  > tostring(ms.train.LossMonitor(10)) --> LossMonitor<>]])
callbacks.LossMonitor = LossMonitor
function LossMonitor:setup(a)
  self.per_print_times = check.not_negative("LossMonitor", "per_print_times", a.per_print_times)
  self.last_print = 0
end
--- Called before the training.
function LossMonitor:on_train_begin(run) self.last_print = run:original_args().cur_step_num end
--- Called after a step.
function LossMonitor:on_train_step_end(run)
  local args = run:original_args()
  if self.per_print_times == 0 or args.cur_step_num - self.last_print < self.per_print_times then return end
  self.last_print = args.cur_step_num
  say(("epoch: %d step: %d, loss is %s"):format(args.cur_epoch_num, args.cur_step_in_epoch, loss_of(args)))
end
--- Called after an epoch.
function LossMonitor:on_train_epoch_end(run)
  local args = run:original_args()
  if next(args.eval_results) then
    say(("Eval result: epoch %d, metrics: %s"):format(args.cur_epoch_num, figures(args.eval_results)))
  end
end

--- The step that was printed last.
function LossMonitor:state_dict() return { last_print = self.last_print } end
--- Takes up what state_dict gave.
function LossMonitor:load_state_dict(state) self.last_print = state.last_print end

local TimeMonitor = class.define(Callback, "TimeMonitor", "data_size=nil",
  [[Prints how long each epoch took, and its steps on average; data_size: the number of steps, where it cannot be told.

  > tostring(ms.train.TimeMonitor()) --> TimeMonitor<>
  > tostring(ms.train.TimeMonitor()) --> TimeMonitor<>]])
callbacks.TimeMonitor = TimeMonitor
function TimeMonitor:setup(a)
  if a.data_size ~= nil then self.data_size = check.positive("TimeMonitor", "data_size", a.data_size) end
end
--- Called before an epoch.
function TimeMonitor:on_train_epoch_begin() self.start = ms.clock() end
--- Called after an epoch.
function TimeMonitor:on_train_epoch_end(run)
  local args = run:original_args()
  local milliseconds = (ms.clock() - self.start) / 1e6
  local steps = math.max(1, self.data_size or args.cur_step_in_epoch)
  self.epoch_milliseconds = milliseconds
  say(("Train epoch time: %.3f ms, per step time: %.3f ms"):format(milliseconds, milliseconds / steps))
end

local History = class.define(Callback, "History", "",
  [[Keeps figures of every epoch in lists by name: history.epoch, history.loss (of the last step) and those of Model:fit.

  > net = ms.nn.Dense(2, 1)
  > history = ms.train.History()
  > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()))
  > model:train(2, { { ms.zeros { 1, 2 }, ms.zeros { 1, 1 } } }, history)
  > table.concat(history.history.epoch, " ") --> 1 2
  > type(ms.train.History()) --> table]])
callbacks.History = History
function History:setup() self.history = { epoch = {}, loss = {} } end
--- Called before the training.
function History:on_train_begin() self.history = { epoch = {}, loss = {} } end
--- Called after an epoch.
function History:on_train_epoch_end(run)
  local args = run:original_args()
  local history = self.history
  local row = #history.epoch + 1
  history.epoch[row] = args.cur_epoch_num
  history.loss[row] = loss_of(args)
  for name, value in pairs(args.eval_results) do
    history[name] = history[name] or {}
    history[name][row] = value
  end
end

--- The figures so far.
function History:state_dict() return { history = self.history } end
--- Takes up what state_dict gave.
function History:load_state_dict(state) self.history = state.history end

local events = {}
for _, mode in ipairs { "train", "eval" } do
  for _, event in ipairs { "begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end" } do
    events[#events + 1] = ("on_%s_%s"):format(mode, event)
  end
end

local LambdaCallback = class.define(Callback, "LambdaCallback", table.concat(events, "=nil, ") .. "=nil",
  [[A callback of functions, each with the RunContext as argument: on_train_begin, on_train_epoch_begin, on_train_step_begin,
on_train_step_end, on_train_epoch_end, on_train_end, on_eval_begin, on_eval_epoch_begin, on_eval_step_begin, on_eval_step_end,
on_eval_epoch_end, on_eval_end.

  > callback = ms.train.LambdaCallback { on_train_end = function(run) print(run:original_args().mode) end }
  > callback:on_train_end(ms.RunContext({ mode = "train" })) --> train]])
callbacks.LambdaCallback = LambdaCallback
function LambdaCallback:setup(a)
  for _, event in ipairs(events) do
    local f = a[event]
    if f ~= nil then
      if not arguments.is_callable(f) then fail("LambdaCallback", ("%s must be a function, got %s"):format(event, describe(f))) end
      self[event] = function(_, run) return f(run) end
    end
  end
end

local LearningRateScheduler = class.define(Callback, "LearningRateScheduler", "learning_rate_function",
  [[Sets the optimizer's learning rate after every step to learning_rate_function(rate, step).

  > tostring(ms.train.LearningRateScheduler(function(rate, step) return rate / step end)) --> LearningRateScheduler<>
  > tostring(ms.train.LearningRateScheduler(function(rate, step) return rate / (1 + step) end)) --> LearningRateScheduler<>]])
callbacks.LearningRateScheduler = LearningRateScheduler
function LearningRateScheduler:setup(a)
  if not arguments.is_callable(a.learning_rate_function) then
    fail("LearningRateScheduler", "learning_rate_function must be a function, got " .. describe(a.learning_rate_function))
  end
  self.learning_rate_function = a.learning_rate_function
end
local function optimizer_of(name, args)
  if not args.optimizer then fail(name, "the model has no optimizer whose rate could be set") end
  return args.optimizer
end
--- Called after a step.
function LearningRateScheduler:on_train_step_end(run)
  local args = run:original_args()
  local optimizer = optimizer_of("LearningRateScheduler", args)
  local rate = optimizer:get_lr()
  if type(rate) == "table" then rate = rate[1] end
  optimizer:set_lr(self.learning_rate_function(rate, args.cur_step_num))
end

-- What callbacks that look at a figure have: which one, and whether it is better than another.
local function watch(self, name, a)
  self.monitor = a.monitor
  if type(self.monitor) ~= "string" then fail(name, "monitor must be a string, got " .. describe(self.monitor)) end
  self.mode = check.choice(name, "mode", a.mode, { "auto", "min", "max" })
  self.min_delta = math.abs(check.number(name, "min_delta", a.min_delta))
  self.patience = check.not_negative(name, "patience", a.patience)
  self.verbose = check.boolean(name, "verbose", a.verbose)
  if self.mode == "auto" then
    local last = self.monitor:lower()
    self.mode = (last:find "acc" or last:find "precision" or last:find "recall" or last:find "f1" or last:find "dice"
      or last:find "score") and "max" or "min"
  end
end

local function worst(self) return self.mode == "min" and math.huge or -math.huge end

local function is_better(self, value, best)
  if self.mode == "min" then return value < best - self.min_delta end
  return value > best + self.min_delta
end

-- The figure, or nil in an epoch that was not evaluated.
local function figure(self, args)
  local name = self.monitor
  if name == "loss" then return loss_of(args) end
  local value = args.eval_results[name]
  if value == nil then value = args.eval_results["eval_" .. name] end
  if value == nil then
    if next(args.eval_results) ~= nil then
      fail(getmetatable(self)._name, ("there is no figure '%s'; there are: loss, %s"):format(name, figures(args.eval_results)))
    end
    return nil
  end
  return check.number(getmetatable(self)._name, name, value)
end

local EarlyStopping = class.define(Callback, "EarlyStopping",
  "monitor=\"eval_loss\", min_delta=0.0, patience=0, verbose=false, mode=\"auto\", baseline=nil, restore_best_weights=false",
  [[Ends the training when a figure has not become better by more than min_delta for more than patience epochs.

monitor: "loss", or a metric of Model:fit such as "eval_loss" or "eval_accuracy". mode: "min", "max", or "auto" by the figure's
name. baseline: what it has to be better than at first. restore_best_weights: the network gets those of the best epoch.
verbose: the end is told.

  > ms.train.EarlyStopping { monitor = "eval_accuracy", patience = 2 }.mode --> max
  > tostring(ms.train.EarlyStopping { monitor = "loss", patience = 3 }) --> EarlyStopping<>]])
callbacks.EarlyStopping = EarlyStopping
function EarlyStopping:setup(a)
  watch(self, "EarlyStopping", a)
  if a.baseline ~= nil then self.baseline = check.number("EarlyStopping", "baseline", a.baseline) end
  self.restore_best_weights = check.boolean("EarlyStopping", "restore_best_weights", a.restore_best_weights)
  self:on_train_begin()
end
--- Called before the training.
function EarlyStopping:on_train_begin()
  self.wait, self.stopped_epoch = 0, 0
  self.best = self.baseline or worst(self)
  self.best_weights = nil
end
--- Called after an epoch.
function EarlyStopping:on_train_epoch_end(run)
  local args = run:original_args()
  local value = figure(self, args)
  if value == nil then return end
  if is_better(self, value, self.best) then
    self.best, self.wait = value, 0
    if self.restore_best_weights then
      self.best_weights = {}
      for name, parameter in args.network:parameters_and_names() do self.best_weights[name] = parameter:copy() end
    end
    return
  end
  self.wait = self.wait + 1
  if self.wait <= self.patience then return end
  self.stopped_epoch = args.cur_epoch_num
  run:request_stop()
  if self.best_weights then
    for name, parameter in args.network:parameters_and_names() do parameter:assign(self.best_weights[name]) end
  end
end
--- Called after the training.
function EarlyStopping:on_train_end()
  if self.stopped_epoch > 0 and self.verbose then say(("Epoch %d: early stopping"):format(self.stopped_epoch)) end
end
--- What was counted, for a checkpoint.
function EarlyStopping:state_dict() return { wait = self.wait, best = self.best } end
--- Takes up what state_dict gave.
function EarlyStopping:load_state_dict(state) self.wait, self.best = state.wait, state.best end

local ReduceLROnPlateau = class.define(Callback, "ReduceLROnPlateau",
  "monitor=\"eval_loss\", factor=0.1, patience=10, verbose=false, mode=\"auto\", min_delta=1e-4, cooldown=0, min_lr=0.0",
  [[The optimizer's learning rate times factor when a figure has not become better by more than min_delta for patience epochs; cooldown
epochs after a change are not counted. monitor and mode as for EarlyStopping. min_lr: the least rate. verbose: changes are told.

  > ms.train.ReduceLROnPlateau { monitor = "eval_loss" }.mode --> min
  > tostring(ms.train.ReduceLROnPlateau { monitor = "loss", patience = 3 }) --> ReduceLROnPlateau<>]])
callbacks.ReduceLROnPlateau = ReduceLROnPlateau
function ReduceLROnPlateau:setup(a)
  local name = "ReduceLROnPlateau"
  watch(self, name, a)
  self.factor = check.number_not_negative(name, "factor", a.factor)
  if self.factor >= 1 then fail(name, ("factor must be less than 1, got %s"):format(self.factor)) end
  self.cooldown = check.not_negative(name, "cooldown", a.cooldown)
  self.min_lr = check.number_not_negative(name, "min_lr", a.min_lr)
  self:on_train_begin()
end
--- Called before the training.
function ReduceLROnPlateau:on_train_begin()
  self.wait, self.cooling, self.best = 0, 0, worst(self)
end
--- Called after an epoch.
function ReduceLROnPlateau:on_train_epoch_end(run)
  local args = run:original_args()
  local value = figure(self, args)
  if value == nil then return end
  if self.cooling > 0 then
    self.cooling, self.wait = self.cooling - 1, 0
  end
  if is_better(self, value, self.best) then
    self.best, self.wait = value, 0
  elseif self.cooling == 0 then
    self.wait = self.wait + 1
    if self.wait < self.patience then return end
    local optimizer = optimizer_of("ReduceLROnPlateau", args)
    local rate = optimizer:get_lr()
    if type(rate) == "table" then rate = rate[1] end
    if rate > self.min_lr then
      local reduced = math.max(rate * self.factor, self.min_lr)
      optimizer:set_lr(reduced)
      self.cooling, self.wait = self.cooldown, 0
      if self.verbose then say(("Epoch %d: the learning rate is reduced to %s"):format(args.cur_epoch_num, reduced)) end
    end
  end
end
--- What was counted, for a checkpoint.
function ReduceLROnPlateau:state_dict() return { wait = self.wait, cooling = self.cooling, best = self.best } end
--- Takes up what state_dict gave.
function ReduceLROnPlateau:load_state_dict(state)
  self.wait, self.cooling, self.best = state.wait, state.cooling, state.best
end

return { classes = callbacks, loss_of = loss_of, watch = watch, is_better = is_better, figure = figure, worst = worst }
