-- Model: training, evaluation and prediction against loops written out, callbacks, what a data set may be.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, train = ms.nn, ms.train

ms.set_seed(3)
local images, labels = ms.randn { 32, 4 }, ms.randint(0, 3, { 32 })
local batches = {}
for i = 0, 3 do
  local rows = ms.slice(8 * i, 8 * i + 8)
  batches[i + 1] = { images[{ rows }], labels[{ rows }] }
end

local function network()
  ms.set_seed(1)
  return nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 3))
end

local function weights(net)
  local list = {}
  for i, parameter in ipairs(net:get_parameters()) do list[i] = parameter:tolist() end
  return list
end

local function model_of(net, options)
  options = options or {}
  options.loss_fn, options.optimizer = nn.CrossEntropyLoss(), options.optimizer or nn.Adam(net:trainable_params(), 0.01)
  return ms.Model(net, options)
end

-- What the loop written out gives after some steps.
local function by_hand(steps)
  local net = network()
  local loss_fn, optimizer = nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.01)
  local gradient = ms.value_and_grad(function(x, y) return loss_fn(net(x), y) end, nil, optimizer.parameters)
  local loss
  for i = 0, steps - 1 do
    local grads
    loss, grads = gradient(table.unpack(batches[i % 4 + 1]))
    optimizer(grads)
  end
  return weights(net), loss:item()
end

-- Graph mode may round sums otherwise.
local function near(got, expected) t.near(got, expected, 1e-5) end

t.test("train does what the loop written out does", function()
  local net = network()
  local history = train.History()
  model_of(net):train(3, batches, history)
  local expected, loss = by_hand(12)
  near(weights(net), expected)
  near(history.history.loss[3], loss)
  t.equal(history.history.epoch, { 1, 2, 3 })
  assert(not net.training)
end)

t.test("a data set is a list, a function, a function for iterators, an object", function()
  local expected = by_hand(8)
  local function after(dataset, options)
    local net = network()
    model_of(net):train(2, dataset, options or {})
    near(weights(net), expected)
  end
  after(batches)
  local i = 0
  after(function()
    i = (i + 1) % 5
    if i > 0 then return batches[i] end
  end)
  local j = 0
  after(function()
    j = (j + 1) % 5
    if j > 0 then return table.unpack(batches[j]) end
  end)
  after(function()
    local k = 0
    return function()
      k = k + 1
      return batches[k]
    end
  end)
  local object = { get_dataset_size = function() return 4 end }
  function object:create_tuple_iterator() -- luacheck: ignore 212
    local k = 0
    return function()
      k = k + 1
      return batches[k]
    end
  end
  after(object)
  after(setmetatable({}, { __call = function(_)
    i = (i + 1) % 5
    return batches[i]
  end }))
  after(batches, { dataset_sink_mode = true })
  after(batches, { dataset_sink_mode = true, sink_size = 3 })
end)

t.test("eval gives metrics, fit gives them to callbacks, predict the outputs", function()
  local net = network()
  local model = model_of(net, { metrics = { "accuracy", "loss", top = train.Top1CategoricalAccuracy() } })
  local results = model:eval(batches)
  local logits = net(images)
  local right = ms.ops.equal(ms.ops.argmax(logits, 1), labels):astype(ms.float32):mean():item()
  t.near(results.accuracy, right, 1e-6)
  t.near(results.top, right, 1e-6)
  near(results.loss, ms.ops.cross_entropy(logits, labels):item())
  near(model:predict(images), logits)
  local seen = {}
  local Watch = train.Callback:extend("Watch")
  function Watch:on_train_epoch_end(run) -- luacheck: ignore 212
    local args = run:original_args()
    seen[args.cur_epoch_num] = args.eval_results.eval_accuracy or false
  end
  local history = train.History()
  model:fit(3, batches, batches, { valid_frequency = 2, callbacks = { Watch(), history } })
  t.equal(seen[1], false)
  t.near(seen[2], model_of(network()) and history.history.eval_accuracy[2], 0)
  t.equal(seen[3], false)
  t.near(history.history.eval_loss[2] < results.loss, true)
  local own = ms.Model(net, { metrics = { "mse" }, eval_network = function(x) return 0.0, net(x), net(x) end, eval_indexes = { 0, 1, 2 } })
  t.equal(own:eval(batches).mse, 0.0)
end)

t.test("data sets and metrics that are tables with names are no options", function()
  local data = {}
  function data:create_tuple_iterator() -- luacheck: ignore 212
    local k = 0
    return function()
      k = k + 1
      return batches[k]
    end
  end
  local net = network()
  local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.01), { mine = train.Accuracy() })
  model:train(1, data)
  near(weights(net), (by_hand(4)))
  model:fit(1, data, data)
  near(weights(net), (by_hand(8)))
  assert(model:eval(data).mine >= 0)
end)

t.test("callbacks are called in order, with what is going on", function()
  local log = {}
  local Log = train.Callback:extend("Log")
  for _, event in ipairs { "begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "stop" } do
    Log[event] = function(_, run)
      local args = run:original_args()
      log[#log + 1] = ("%s %s %d %d"):format(args.mode, event, args.cur_epoch_num, args.cur_step_num)
    end
  end
  local model = model_of(network(), { metrics = { "accuracy" } })
  model:train(2, { batches[1] }, Log())
  t.equal(log, { "train begin 0 0", "train epoch_begin 1 0", "train step_begin 1 1", "train step_end 1 1", "train epoch_end 1 1",
    "train epoch_begin 2 1", "train step_begin 2 2", "train step_end 2 2", "train epoch_end 2 2", "train stop 2 2" })
  log = {}
  model:eval({ batches[1] }, Log())
  t.equal(log, { "eval begin 1 0", "eval epoch_begin 1 0", "eval step_begin 1 1", "eval step_end 1 1", "eval epoch_end 1 1",
    "eval stop 1 1" })
  local counts = { 0, 0 }
  local lambda = train.LambdaCallback {
    on_train_step_end = function(run)
      counts[1] = counts[1] + 1
      assert(run:original_args().net_outputs:item() > 0)
      if counts[1] == 3 then run:request_stop() end
    end,
    on_eval_step_end = function() counts[2] = counts[2] + 1 end,
  }
  model:fit(5, batches, batches, { callbacks = lambda })
  t.equal(counts, { 3, 4 })
end)

local function printed(f)
  local lines, print = {}, print
  _G.print = function(text) lines[#lines + 1] = text end -- luacheck: ignore 122
  local ok, message = pcall(f)
  _G.print = print -- luacheck: ignore 122
  assert(ok, message)
  return lines
end

t.test("monitors print", function()
  local lines = printed(function()
    model_of(network()):train(1, batches, { callbacks = { train.LossMonitor(2), train.TimeMonitor() } })
  end)
  t.equal(#lines, 3)
  assert(lines[1]:match "^epoch: 1 step: 2, loss is %d%.%d+$", lines[1])
  assert(lines[2]:match "^epoch: 1 step: 4, loss is %d%.%d+$", lines[2])
  assert(lines[3]:match "^Train epoch time: [%d.]+ ms, per step time: [%d.]+ ms$", lines[3])
  -- A figure may be one number for each class.
  lines = printed(function()
    model_of(network(), { metrics = { "f1", "accuracy" } }):fit(1, batches, batches, { callbacks = train.LossMonitor(0) })
  end)
  local list = lines[1]:match "^Eval result: epoch 1, metrics: eval_accuracy: [%d.e-]+, eval_f1: %[(.*)%], eval_loss: [%d.e-]+$"
  assert(list and list:match "^[%d.e-]+, [%d.e-]+", lines[1])
end)

-- A training whose evaluation gives these figures, one for each epoch.
local function with_figures(figures, callback, optimizer)
  local Figure = train.Metric:extend("Figure")
  local epoch = 0
  function Figure:update() end
  function Figure:eval() -- luacheck: ignore 212
    epoch = epoch + 1
    return figures[epoch]
  end
  local net = network()
  local model = model_of(net, { metrics = { figure = Figure() }, optimizer = optimizer and optimizer(net:trainable_params()) })
  local history = train.History()
  model:fit(#figures, { batches[1] }, { batches[1] }, { callbacks = { callback, history } })
  return #history.history.epoch, model
end

t.test("training stops when a figure does not become better", function()
  local stop = train.EarlyStopping { monitor = "eval_figure", patience = 1 }
  t.equal(with_figures({ 3.0, 2.0, 2.5, 2.1, 1.0, 0.5 }, stop), 4)
  t.equal(stop.stopped_epoch, 4)
  t.equal(with_figures({ 3.0, 2.0, 2.5, 1.0, 0.5 }, train.EarlyStopping { monitor = "figure", patience = 1 }), 5)
  t.equal(with_figures({ 1.0, 2.0, 1.0 }, train.EarlyStopping { monitor = "figure", mode = "max", baseline = 1.5 }), 1)
  t.equal(with_figures({ 1.0, 1.2, 1.4 }, train.EarlyStopping { monitor = "figure", mode = "max", min_delta = 0.3 }), 2)
  local best = train.EarlyStopping { monitor = "figure", restore_best_weights = true, patience = 1 }
  local _, model = with_figures({ 1.0, 2.0, 3.0 }, best)
  local net = network()
  model_of(net):train(1, { batches[1] })
  near(weights(model.network), weights(net))
end)

t.test("learning rates are set by callbacks", function()
  local _, model = with_figures({ 2.0, 2.0, 2.0, 2.0, 2.0 }, train.ReduceLROnPlateau { monitor = "figure", patience = 2, factor = 0.5 },
    function(params) return nn.SGD(params, 0.1) end)
  t.near(model.optimizer:get_lr(), 0.025, 1e-9)
  local net = network()
  local optimizer = nn.SGD(net:trainable_params(), 1.0)
  model_of(net, { optimizer = optimizer }):train(1, batches, train.LearningRateScheduler(function(rate, step) return rate / step end))
  t.near(optimizer:get_lr(), 1 / 24, 1e-9)
end)

t.test("gradients of several batches make one step", function()
  local net, whole = network(), network()
  local optimizer = nn.GradientAccumulation(nn.SGD(net:trainable_params(), 0.1), 4)
  model_of(net, { optimizer = optimizer }):train(2, batches)
  model_of(whole, { optimizer = nn.SGD(whole:trainable_params(), 0.1) }):train(2, { { images, labels } })
  near(weights(net), weights(whole))
  local micro = network()
  local cell = nn.GradAccumulationCell(nn.WithLossCell(micro, nn.CrossEntropyLoss()), 4)
  local step = nn.TrainOneStepCell(cell, nn.SGD(micro:trainable_params(), 0.1))
  step(images, labels)
  step(images, labels)
  near(weights(micro), weights(whole))
end)

t.test("a loss that is not finite ends the training, the parameters are as before the step", function()
  local net = network()
  local model = model_of(net)
  local before = weights(net)
  t.fails({ "train: the loss is nan after step 1 of epoch 1: input 1 of the batch is not finite", "hint:" }, model.train, model, 1,
    { { images / 0, labels } })
  t.equal(weights(net), before)
  net[3].weight:assign(net[3].weight * 1e38)
  t.fails({ "train: the loss is", "the first layer whose result is not finite is 2" }, model.train, model, 1, { { images * 1e6, labels } })
  model:train(1, { { images / 0, labels } }, { check_finite = false })
  assert(net[1].weight:sum():item() ~= net[1].weight:sum():item())
end)

t.test("an error in a callback or a data set leaves the model usable", function()
  local net = network()
  local model = model_of(net)
  t.fails("oh", model.train, model, 1, batches, train.LambdaCallback { on_train_step_end = function() error("oh") end })
  near(weights(net), (by_hand(1)))
  model:train(1, { batches[2] })
  near(weights(net), (by_hand(2)))
end)

t.test("what is wrong is named", function()
  local net = network()
  t.fails({ "Model", "network must be a cell, got 3" }, ms.Model, 3)
  t.fails({ "Model", "optimizer must be an optimizer" }, ms.Model, net, nn.CrossEntropyLoss(), net)
  t.fails({ "get_metric_fn", "there is no metric the string 'accurcy'" }, ms.Model, net, { metrics = { "accurcy" } })
  local model = model_of(net)
  t.fails({ "train", "epoch must be positive, got 0" }, model.train, model, 0, batches)
  t.fails({ "train", "missing argument 2: train_dataset" }, model.train, model, 1)
  t.fails({ "train", "the data set must be a list of batches", "got 5" }, model.train, model, 1, 5)
  t.fails({ "train", "the data set is an empty table" }, model.train, model, 1, {})
  t.fails({ "train", "the data set gives no batch" }, model.train, model, 1, function() end)
  t.fails({ "train", "a table with the name 'x'", "{ images, labels }" }, model.train, model, 1, { { x = images } })
  t.fails({ "train", "callbacks[1] is the class LossMonitor", "make one: LossMonitor()" },
    model.train, model, 1, batches, train.LossMonitor)
  t.fails({ "train", "there is no argument 'callback'", "did you mean 'callbacks'?" }, model.train, model, 1, batches, { callback = {} })
  t.fails({ "eval", "the model has no metrics" }, model.eval, model, batches)
  t.fails({ "train", "the model has no optimizer" }, function() ms.Model(net, nn.CrossEntropyLoss()):train(1, batches) end)
  t.fails({ "EarlyStopping", "there is no figure 'other'", "eval_figure" },
    with_figures, { 1.0 }, train.EarlyStopping { monitor = "other" })
  t.fails({ "LambdaCallback", "on_train_begin must be a function" }, train.LambdaCallback, { on_train_begin = 3 })
  t.fails({ "GradientAccumulation", "max_accumulation_step must be positive" },
    nn.GradientAccumulation, nn.SGD(net:trainable_params(), 0.1), 0)
end)

t.finish()
