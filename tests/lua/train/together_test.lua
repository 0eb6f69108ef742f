-- Everything at once: Model.fit over a pipeline whose last batch is smaller, with metrics and all callbacks, eager and compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, train, ds = ms.nn, ms.train, ms.dataset

local folder = os.tmpname()
os.remove(folder)
local rows, epochs = 50, 6

local function remove(path)
  for _, name in ipairs(ms.io.list_folder(path) or {}) do remove(path .. "/" .. name) end
  os.remove(path)
end

ms.set_seed(5)
local images, labels = ms.randn { rows, 6 }, ms.randint(0, 3, { rows })

local function pipeline(shuffled)
  local data = ds.NumpySlicesDataset({ images, labels }, { column_names = { "image", "label" }, shuffle = shuffled })
  return data:map(function(image) return image * 2.0 end, { input_columns = "image" }):batch(8)
end

-- The figures and parameters of a training with every callback, and what graph mode says of its step.
local function trained(mode, sink)
  local before = ms.get_context("mode")
  ms.set_context { mode = mode, deterministic = "ON" }
  ms.set_seed(3)
  local place = ("%s/%s%s"):format(folder, mode, tostring(sink))
  -- A bias before a normalisation has gradients that are nothing but rounding, which Adam makes steps of.
  local net = nn.SequentialCell(nn.Dense(6, 16, { has_bias = false }), nn.BatchNorm1d(16), nn.ReLU(), nn.Dense(16, 3))
  local optimizer = nn.Adam(net:trainable_params(), 0.01)
  local model = ms.Model(net, nn.CrossEntropyLoss(), optimizer, { metrics = { "accuracy", "loss" } })
  local history, losses = train.History(), {}
  local list = {
    train.LossMonitor(0), history, train.EarlyStopping { monitor = "eval_loss", patience = 100 },
    train.ReduceLROnPlateau { monitor = "eval_loss", patience = 1, min_delta = 10.0 },
    train.LearningRateScheduler(function(rate) return rate * 0.99 end),
    train.LambdaCallback { on_train_step_end = function(run) losses[#losses + 1] = run:original_args().net_outputs:item() end },
    train.ModelCheckpoint("net", place, train.CheckpointConfig { save_checkpoint_steps = 7, keep_checkpoint_max = 2 }),
    train.SummaryCollector(place .. "/summary", 3, { collect_specified_data = { histogram_regular = "weight" } }),
    train.BackupAndRestore(place .. "/backup"),
  }
  model:fit(epochs, pipeline(true), pipeline(false), { callbacks = list, dataset_sink_mode = sink, progress = false })
  local parameters = {}
  for name, parameter in net:parameters_and_names() do parameters[name] = parameter:copy() end
  local report = mode == ms.GRAPH_MODE and not sink and tostring(ms.jit_report(model.train_network)) or nil
  local result = { history = history.history, losses = losses, parameters = parameters, report = report, place = place,
    evaluated = model:eval(pipeline(false)), predicted = model:predict(images[{ ms.slice(0, 5) }]) }
  ms.set_context { mode = before, deterministic = "OFF" }
  return result
end

local eager, compiled = trained(ms.PYNATIVE_MODE, false), trained(ms.GRAPH_MODE, false)

t.test("every batch is a step, the smaller ones too", function()
  t.equal({ #eager.losses, #compiled.losses }, { 7 * epochs, 7 * epochs })
  -- A training that is to be gone on with to the bit rehearses its steps of each size. What is not compiled are the recordings
  -- for batches of 8 rows and of 2.
  local calls, done = compiled.report:match "(%d+) calls: (%d+) compiled"
  assert(tonumber(calls) >= 7 * epochs and tonumber(done) >= tonumber(calls) - 6, compiled.report)
end)

t.test("eager and compiled training give the same figures and parameters", function()
  -- Compiled sums are added up in another order.
  for name, parameter in pairs(eager.parameters) do t.near(parameter, compiled.parameters[name], 1e-5) end
  t.near(eager.losses, compiled.losses, 1e-5)
  for _, key in ipairs { "epoch", "loss", "eval_loss" } do t.near(eager.history[key], compiled.history[key], 1e-5) end
  t.equal(eager.history.eval_accuracy, compiled.history.eval_accuracy)
  t.equal(#eager.history.eval_loss, epochs)
  t.near(eager.evaluated.loss, compiled.evaluated.loss, 1e-5)
  t.near(eager.predicted, compiled.predicted, 1e-5)
end)

t.test("many steps at once train as steps one by one", function()
  local sunk = trained(ms.GRAPH_MODE, true)
  t.equal(#sunk.losses, epochs)
  t.equal(#sunk.history.eval_loss, epochs)
end)

t.test("what callbacks leave behind is there", function()
  for _, result in ipairs { eager, compiled } do
    local found = 0
    for _, name in ipairs(ms.io.list_folder(result.place)) do found = found + (name:find "%.ckpt$" and 1 or 0) end
    t.equal(found, 2)
    local reader = train.SummaryReader(result.place .. "/summary")
    t.equal(#reader:values "loss/auto", 1 + 7 * epochs // 3)
    t.equal(#reader:values "eval_accuracy/auto", epochs)
    assert(#reader:tags "histogram" >= 2)
  end
end)

remove(folder)
t.finish()
