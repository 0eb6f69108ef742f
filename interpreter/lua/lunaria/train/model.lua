-- Model: a network with its loss, optimizer and metrics, and the loops of training and evaluation over batches. A step of
-- training is one call of a cell, which graph mode compiles whole; what is done beside it is kept small.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local callback = require "lunaria.train.callback"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local metrics = require "lunaria.train.metrics"
local not_finite = require "lunaria.train.not_finite"
local source = require "lunaria.train.batches"
local training_state = require "lunaria.train.training_state"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local is_callable = arguments.is_callable
local as_whole, is_tensor = ms.io.as_whole, ms.is_tensor

local Model = class.define(nil, "Model",
  "network, loss_fn=nil, optimizer=nil, metrics=nil, eval_network=nil, eval_indexes=nil, amp_level=\"O0\", boost_level=\"O0\", "
    .. "loss_scale_manager=nil, keep_batchnorm_fp32=nil, amp_dtype=nil, boost_config_dict=nil",
  [[A network to be trained, evaluated and asked.

loss_fn(outputs, label) gives the loss; without it the network gives it. metrics: a list of names (ms.train.names()) or a table
of metrics by name. eval_network: a network for evaluation, which gives the loss, the outputs and the labels at the places
eval_indexes says (from 0). amp_level, amp_dtype,
loss_scale_manager, keep_batchnorm_fp32: as for ms.amp.build_train_network. boost_level, boost_config_dict: those of
ms.boost.AutoBoost, which changes the network and the optimizer: "O0" (nothing), "O1" or "O2".

  > net = ms.nn.Dense(2, 3)
  > batches = { { ms.ones { 4, 2 }, ms.zeros({ 4 }, ms.int64) } }
  > model = ms.Model(net, ms.nn.CrossEntropyLoss(), ms.nn.Adam(net:trainable_params(), 0.1), { "accuracy" })
  > model:train(30, batches)
  > model:eval(batches).accuracy --> 1.0]])

-- The arguments of a call by name. A data set, or metrics by name, that come last are tables with names too, but no options.
local function bound(where, signature, is_value, ...)
  local given = table.pack(...)
  if given.n > 0 and type(given[given.n]) == "table" and is_value(given[given.n]) then given.n = given.n + 1 end
  return arguments.bind(where, signature, table.unpack(given, 1, given.n))
end

local function is_dataset(value)
  return type(value.create_tuple_iterator) == "function" or type(value.iter) == "function"
end

local function is_metrics(value)
  for _, metric in pairs(value) do
    if not class.is_a(metric, metrics.Metric) then return false end
  end
  return next(value) ~= nil
end

-- The network that gives the loss, the outputs and the labels, and where they are among its results, from 0.
local function make_eval_network(self, a)
  if a.eval_network ~= nil then
    if not is_callable(a.eval_network) then fail("Model", "eval_network must be a cell, got " .. describe(a.eval_network)) end
    if a.eval_indexes ~= nil and (type(a.eval_indexes) ~= "table" or #a.eval_indexes ~= 3) then
      fail("Model", "eval_indexes must be a list of three integers, got " .. describe(a.eval_indexes))
    end
    return a.eval_network, a.eval_indexes
  end
  if a.eval_indexes ~= nil then fail("Model", "eval_indexes has no effect without eval_network", "leave eval_indexes out") end
  if self.loss_fn ~= nil then return ms.nn.WithEvalCell(self.network, self.loss_fn), { 0, 1, 2 } end
  return self.network, nil
end

--- Called with the arguments of the class.
function Model:init(...)
  self:setup(bound("Model", Model._signature, is_metrics, ...))
end

function Model:setup(a)
  if not cells.is_cell(a.network) then fail("Model", "network must be a cell, got " .. describe(a.network)) end
  if a.loss_fn ~= nil and not is_callable(a.loss_fn) then
    fail("Model", "loss_fn must be a cell or a function, got " .. describe(a.loss_fn))
  end
  if a.optimizer ~= nil and (not cells.is_cell(a.optimizer) or not a.optimizer.parameters) then
    fail("Model", "optimizer must be an optimizer, got " .. describe(a.optimizer))
  end
  if a.optimizer ~= nil and (a.boost_level ~= "O0" or a.boost_config_dict ~= nil) then
    local boost = ms.boost.AutoBoost(a.boost_level, a.boost_config_dict)
    a.network, a.optimizer = boost:network_auto_process_train(a.network, a.optimizer)
  elseif a.boost_level ~= "O0" then
    fail("Model", "boost_level changes how a network is trained, and there is no optimizer")
  end
  self.network, self.loss_fn, self.optimizer = a.network, a.loss_fn, a.optimizer
  self.metric_fns = metrics.get_metrics(a.metrics)
  if a.optimizer ~= nil then
    self.train_network = ms.amp.build_train_network(a.network, a.optimizer, {
      loss_fn = a.loss_fn, level = a.amp_level, dtype = a.amp_dtype,
      loss_scale_manager = a.loss_scale_manager, keep_batchnorm_fp32 = a.keep_batchnorm_fp32,
    })
  elseif a.loss_fn ~= nil then
    self.train_network = ms.nn.WithLossCell(a.network, a.loss_fn)
  else
    self.train_network = a.network
  end
  self.eval_network, self.eval_indexes = make_eval_network(self, a)
end

function Model:__tostring()
  return ("Model<%s>"):format(getmetatable(self.network)._name)
end

-- Keeps what the train network gave.
local function keep(args, loss, ...)
  args.net_outputs = select("#", ...) == 0 and loss or { loss, ... }
  return loss
end

local function number_of(loss)
  if is_tensor(loss) then
    if loss.size == 1 then return loss:item() end
    return nil
  end
  return math.type(loss) and loss or nil
end

-- How often a step is made for nothing before its first time counts: in graph mode it is compiled then.
local rehearsals = 5

-- The first steps of a program are recorded and not compiled, and products may round otherwise there. A training that is to be gone
-- on with to the bit makes steps for nothing where they are new, so that all that count are compiled ones.
local function rehearsal(args)
  local wanted = args.is_resumable and ms.get_context("mode") == ms.GRAPH_MODE and ms.get_context("deterministic") == "ON"
  if not wanted then return nil end
  local known = {}
  return function(network, ...)
    known[network] = known[network] or {}
    local words = {}
    for i = 1, select("#", ...) do
      local value = select(i, ...)
      words[i] = ms.is_tensor(value) and tostring(value.dtype) .. tostring(value.shape) or type(value)
    end
    local kind = table.concat(words, " ")
    if known[network][kind] then return end
    known[network][kind] = true
    local restore = training_state.snapshot(args)
    for _ = 1, rehearsals do network(...) end
    restore()
  end
end

-- A step of the network with a batch, whose loss has to be finite. An interrupt finds the parameters of whole steps.
local function make_step(state, network, ...)
  local args = state.args
  local loss = keep(args, as_whole(network, ...))
  if not state.check_finite then return end
  local value = number_of(loss)
  if value ~= nil and value - value ~= 0 then not_finite(args, value, ...) end
end

local function made(state, args, ...)
  if args.rehearse then args.rehearse(state.network, ...) end
  make_step(state, state.network, ...)
end

-- One step; gives whether there was a batch.
local function step(state, first, ...)
  if first == nil then return false end
  local args, fire = state.args, state.fire
  args.cur_step_num, args.cur_step_in_epoch = args.cur_step_num + 1, args.cur_step_in_epoch + 1
  local begins = fire.step_begin
  if begins then
    args.train_dataset_element = { first, ... }
    begins()
  end
  -- What a callback has put in the batch's place is trained with.
  if begins then made(state, args, table.unpack(args.train_dataset_element)) else made(state, args, first, ...) end
  if fire.step_end then fire.step_end() end
  return true
end

-- sink_size steps, compiled whatever the mode; what is called between steps is called once for all of them.
local function sunk_steps(state, next_batch, count)
  local args, fire, done = state.args, state.fire, 0
  state.compiled = state.compiled or ms.jit(state.network)
  local function advance(first, ...)
    if first == nil then return false end
    if done == 0 and fire.step_begin then
      args.train_dataset_element = { first, ... }
      fire.step_begin()
    end
    done = done + 1
    args.cur_step_num, args.cur_step_in_epoch = args.cur_step_num + 1, args.cur_step_in_epoch + 1
    make_step(state, state.compiled, first, ...)
    return done < count
  end
  while advance(next_batch()) do end
  if done == 0 then return false end
  if fire.step_end then fire.step_end() end
  return true
end

-- How far the epoch is, in a terminal or a notebook.
local function shown(state, next_batch, epoch)
  if not state.progress then return next_batch end
  local advance, s, control, guard = ms.progress(next_batch, {
    desc = ("epoch %d/%d"):format(epoch, state.args.epoch_num), total = state.args.batch_num,
  })
  return function() return advance(s, control) end, guard
end

local function wants_progress(given)
  if given ~= nil then return check.boolean("train", "progress", given) end
  return ms.is_terminal(io.stderr) or require("lunaria.frontend").has_display()
end

local function run_epoch(state, epoch, skip, ahead)
  local args, fire, run = state.args, state.fire, state.run
  args.cur_epoch_num, args.cur_step_in_epoch = epoch, skip
  state.network:set_train()
  -- An epoch that is gone on with begins with the random numbers that it had, so that its batches are the same.
  args.epoch_rng_state = args.resume_epoch_rng_state or ms.get_rng_state()
  if args.resume_epoch_rng_state then ms.set_rng_state(args.resume_epoch_rng_state) end
  if fire.epoch_begin then fire.epoch_begin() end
  local batches = state.source.epoch(skip, ahead)
  if args.resume_rng_state then ms.set_rng_state(args.resume_rng_state) end
  args.resume_epoch_rng_state, args.resume_rng_state = nil, nil
  local next_batch, guard = shown(state, batches, epoch)
  local closing <close> = guard
  local before = args.cur_step_in_epoch
  if state.sink_size then
    while not run:get_stop_requested() and sunk_steps(state, next_batch, state.sink_size) do end
  else
    while not run:get_stop_requested() and step(state, next_batch()) do end
  end
  if args.cur_step_in_epoch == 0 and before == 0 and not run:get_stop_requested() then fail("train", "the data set gives no batch") end
  return closing
end

-- train and fit.
local function train(self, where, a)
  if self.optimizer == nil and self.loss_fn ~= nil then
    fail(where, "the model has no optimizer", "ms.Model(network, loss_fn, optimizer)")
  end
  local epochs, first = check.positive(where, "epoch", a.epoch), check.not_negative(where, "initial_epoch", a.initial_epoch)
  local state = { source = source(where, a.train_dataset), network = self.train_network, progress = wants_progress(a.progress),
    check_finite = check.boolean(where, "check_finite", a.check_finite) }
  local parallel = package.loaded["lunaria.parallel.settings"]
  local args = {
    network = self.network, train_network = self.train_network, eval_network = self.eval_network, loss_fn = self.loss_fn,
    optimizer = self.optimizer, mode = "train", epoch_num = epochs, batch_num = state.source.size, cur_epoch_num = first,
    cur_step_num = first * (state.source.size or 0), cur_step_in_epoch = 0, train_dataset = a.train_dataset,
    dataset_sink_mode = check.boolean(where, "dataset_sink_mode", a.dataset_sink_mode), metrics = {}, eval_results = {},
    parallel_mode = parallel and parallel.get(where, "parallel_mode") or "stand_alone",
    device_number = parallel and parallel.get(where, "device_num") or 1, initial_epoch = first,
  }
  if args.dataset_sink_mode then
    local size = check.integer(where, "sink_size", a.sink_size)
    state.sink_size = size > 0 and size or args.batch_num or 100
  end
  local list = callback.callback_list(where, a.callbacks)
  -- A model that extends this one may have a callback in all its trainings.
  if self._own_callback then table.insert(list, 1, self._own_callback) end
  args.list_callback = list
  state.args, state.run = args, callback.RunContext(args)
  state.fire = callback.callers(list, "train", state.run)
  local fire, run = state.fire, state.run
  self.train_network:set_train()
  if class.is_a(self.train_network, ms.nn.TrainOneStepCell) then rawset(self.train_network, "finite_only", state.check_finite) end
  if fire.begin then fire.begin() end
  -- A callback that takes up an earlier training says where it stopped.
  local skip, ahead = args.resume_step or 0, args.resume_epoch and args.resume_epoch - first
  first = math.max(args.resume_epoch or first, first)
  args.resume_step, args.resume_epoch = nil, nil
  args.rehearse = rehearsal(args)
  for epoch = first + 1, epochs do
    if run:get_stop_requested() then break end
    run_epoch(state, epoch, skip, ahead)
    skip, ahead = 0, nil
    if a.validate then a.validate(args, epoch) end
    if fire.epoch_end then fire.epoch_end() end
  end
  if fire["end"] then fire["end"]() end
  self.network:set_train(false)
end

local train_signature = arguments.signature(
  "epoch, train_dataset, callbacks=nil, dataset_sink_mode=false, sink_size=-1, initial_epoch=0, progress=nil, check_finite=true")

--- Trains for so many epochs. train_dataset: a list of batches, a function that gives the next batch and nil at an epoch's
--- end, or an object with an iterator. Further arguments: callbacks=nil (one or a list), dataset_sink_mode=false (with
--- sink_size steps in one call), initial_epoch=0, progress=nil (a bar; by default in terminals and notebooks),
--- check_finite=true (a loss that is not finite is an error that names the layer). An interrupt ends the training after the step
--- that is being made, so that the parameters are those of the last whole step.
---     > net = ms.nn.Dense(2, 1)
---     > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()), { "loss" })
---     > model:train(2, { { ms.ones { 1, 2 }, ms.ones { 1, 1 } } })
function Model:train(...)
  train(self, "train", bound("train", train_signature, is_dataset, ...))
end

local fit_signature = arguments.signature("epoch, train_dataset, valid_dataset=nil, valid_frequency=1, callbacks=nil, "
  .. "dataset_sink_mode=false, valid_dataset_sink_mode=false, sink_size=-1, initial_epoch=0, progress=nil, check_finite=true")

local function refuse_sink(where, name, value)
  if check.boolean(where, name, value) then fail(where, name .. " must be false: only training sinks its steps into one graph") end
end

local function check_frequency(frequency)
  if type(frequency) ~= "table" then return check.positive("fit", "valid_frequency", frequency) end
  for _, epoch in ipairs(frequency) do
    if type(epoch) == "table" then
      fail("fit", "valid_frequency must be an integer or a list of epochs, got callbacks", "callbacks are named: { callbacks = { ... } }")
    end
    check.positive("fit", "an epoch in valid_frequency", epoch)
  end
  if getmetatable(frequency) ~= nil then
    fail("fit", "valid_frequency must be an integer or a list of epochs, got " .. describe(frequency),
      "callbacks are named: { callbacks = ... }")
  end
  return frequency
end

local function is_valid_epoch(frequency, epoch)
  if type(frequency) ~= "table" then return epoch % frequency == 0 end
  for _, wanted in ipairs(frequency) do
    if wanted == epoch then return true end
  end
  return false
end

--- Trains as train does, and evaluates with valid_dataset after every valid_frequency epochs (or those in a list): callbacks
--- find the metrics as eval_results, named "eval_loss" and so on. Further arguments as for train.
---     > net = ms.nn.Dense(2, 1)
---     > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()), { "loss" })
---     > batches = { { ms.ones { 1, 2 }, ms.ones { 1, 1 } } }
---     > model:fit(2, batches, batches)
function Model:fit(...)
  local a = bound("fit", fit_signature, is_dataset, ...)
  refuse_sink("fit", "valid_dataset_sink_mode", a.valid_dataset_sink_mode)
  local list = callback.callback_list("fit", a.callbacks)
  if a.valid_dataset ~= nil then
    local frequency = check_frequency(a.valid_frequency)
    a.validate = function(args, epoch)
      if not is_valid_epoch(frequency, epoch) then
        args.eval_results = {}
        return
      end
      local results, named = self:_evaluate("fit", a.valid_dataset, list, args, true), {}
      for name, value in pairs(results) do named["eval_" .. name] = value end
      args.metrics, args.eval_results = results, named
    end
  end
  a.callbacks = list
  train(self, "fit", a)
end

-- Gives a batch's results to a metric.
local function update_metric(self, name, metric, ...)
  local indexes = self.eval_indexes
  if metric.indexes or not indexes then return metric:update(...) end
  local results = { ... }
  if class.is_a(metric, metrics.Loss) then return metric:update(results[indexes[1] + 1]) end
  local outputs, labels = results[indexes[2] + 1], results[indexes[3] + 1]
  if outputs == nil or labels == nil then
    fail("eval", ("the metric '%s' needs outputs and labels, but the network gives %d results"):format(name, select("#", ...)))
  end
  return metric:update(outputs, labels)
end

function Model:_evaluate(where, dataset, list, train_args, with_loss)
  local fns = {}
  for name, metric in pairs(self.metric_fns) do fns[name] = metric end
  if with_loss and self.loss_fn and not fns.loss then fns.loss = metrics.Loss() end
  if next(fns) == nil then
    fail(where, "the model has no metrics", "ms.Model(network, loss_fn, optimizer, { \"accuracy\" })")
  end
  for _, metric in pairs(fns) do metric:clear() end
  local batches = source(where, dataset)
  local args = { network = self.network, eval_network = self.eval_network, loss_fn = self.loss_fn, mode = "eval", epoch_num = 1,
    batch_num = batches.size, cur_step_num = 0, cur_epoch_num = train_args and train_args.cur_epoch_num or 1, metrics = {},
    list_callback = list, valid_dataset = dataset, optimizer = self.optimizer }
  local fire = callback.callers(list, "eval", callback.RunContext(args))
  local network = self.eval_network
  self.network:set_train(false)
  if cells.is_cell(network) then network:set_train(false) end
  if fire.begin then fire.begin() end
  if fire.epoch_begin then fire.epoch_begin() end
  local function take(...)
    args.net_outputs = select("#", ...) > 1 and { ... } or (...)
    for name, metric in pairs(fns) do update_metric(self, name, metric, ...) end
  end
  local function one(first, ...)
    if first == nil then return false end
    args.cur_step_num = args.cur_step_num + 1
    if train_args and train_args.rehearse then train_args.rehearse(network, first, ...) end
    if fire.step_begin then fire.step_begin() end
    take(network(first, ...))
    if fire.step_end then fire.step_end() end
    return true
  end
  local next_batch = batches.epoch()
  while one(next_batch()) do end
  if args.cur_step_num == 0 then fail(where, "the data set gives no batch") end
  for name, metric in pairs(fns) do args.metrics[name] = metric:eval() end
  args.eval_results = args.metrics
  if fire.epoch_end then fire.epoch_end() end
  if fire["end"] then fire["end"]() end
  return args.metrics
end

local eval_signature = arguments.signature("valid_dataset, callbacks=nil, dataset_sink_mode=false")

--- The metrics over the batches of valid_dataset, in a table by name. Further arguments: callbacks=nil.
---     > net = ms.nn.Dense(2, 1)
---     > model = ms.Model(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params()), { "loss" })
---     > model:eval({ { ms.zeros { 1, 2 }, net(ms.zeros { 1, 2 }) } }).loss --> 0.0
function Model:eval(...)
  local a = bound("eval", eval_signature, is_dataset, ...)
  refuse_sink("eval", "dataset_sink_mode", a.dataset_sink_mode)
  return self:_evaluate("eval", a.valid_dataset, callback.callback_list("eval", a.callbacks))
end

--- What the network gives for inputs, in evaluation.
---     > ms.Model(ms.nn.Dense(2, 1)):predict(ms.ones { 3, 2 }).shape --> (3, 1)
function Model:predict(...)
  if select("#", ...) == 0 then fail("predict", "missing argument 1: an input is expected") end
  self.network:set_train(false)
  return self.network(...)
end

--- Has the networks of training and evaluation compiled when they are called, whatever the mode.
---     > ms.Model(ms.nn.Dense(2, 1)):build()
function Model:build()
  if self.optimizer then self.train_network:compile() end
  if cells.is_cell(self.eval_network) and next(self.metric_fns) then self.eval_network:compile() end
end

--- The layout of parameters for prediction; of one device it has none: an empty table.
---     > next(ms.Model(ms.nn.Dense(2, 1)):infer_predict_layout(ms.ones { 1, 2 })) == nil --> true
function Model:infer_predict_layout(...) -- luacheck: ignore 212
  self:predict(...)
  return {}
end

return Model
