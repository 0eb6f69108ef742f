-- SummaryCollector and all that it leaves of a training, loss landscapes, and ms.insight.read, which reads it.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, train = ms.nn, ms.ops, ms.train

local root = os.tmpname()
os.remove(root)

-- MindSpore's own files against what its own tools read from them.
local function same(found, wanted, where)
  if type(wanted) ~= "table" then
    wanted = type(found) == "number" and tonumber(wanted) or wanted
    if math.type(found) then t.near(found, wanted, 1e-6 * math.abs(wanted)) else t.equal(found, wanted) end
    return
  end
  for key, value in pairs(wanted) do same(found[key], value, where .. "." .. key) end
  for key in pairs(found) do assert(wanted[key] ~= nil, where .. " has " .. key) end
end

t.test("the lineage of MindSpore's runs is what its manifest says", function()
  local folder = "tests/data/samples/insight"
  local file <close> = assert(io.open(folder .. "/manifest.json"))
  local manifest, count = ms.json.decode(file:read "a"), 0
  for path, wanted in pairs(manifest.lineage) do
    local run, name = path:match "^(.*)/(.*)$"
    local events = {}
    for _, event in ipairs(ms.insight.read(folder .. "/" .. run).lineage.events) do
      if event.file == name then events[#events + 1] = { [event.kind] = event.value } end
    end
    same(events, wanted, path)
    count = count + #events
  end
  t.equal(count, 17)
  t.equal(#ms.insight.runs(folder), 5)
  local run = ms.insight.read(folder .. "/run1").lineage
  t.equal({ run.network, run.metrics.accuracy, run.user.note, run.train_dataset.size }, { "Lenet", 0.23046875, "sample 1", 256 })
  t.equal({ run.dataset_graph.nodes[2].name, run.dataset_graph.edges }, { "Batch", { { 0, 1 } } })
end)

local function pictures(rows)
  ms.set_seed(2)
  local images, labels = ms.rand { rows, 1, 8, 8 }, ms.randint(0, 3, { rows })
  local ds = ms.dataset.NumpySlicesDataset({ images, labels }, { column_names = { "image", "label" }, shuffle = false })
  return ds:map(function(x) return x * 1.0 end, "image"):batch(4, true)
end

local Small = nn.Cell:extend("Small")
function Small:init()
  self.conv = nn.Conv2d(1, 2, 3)
  self.flatten = nn.Flatten()
  self.hidden = nn.Dense(128, 8)
  self.last = nn.Dense(8, 3)
end
function Small:construct(x) return self.last(ops.relu(self.hidden(self.flatten(self.conv(x))))) end

local function model_of(metrics)
  ms.set_seed(7)
  local net = Small()
  return ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net:trainable_params(), 0.05, 0.9), metrics), net
end

local function keys(map)
  local list = {}
  for key in pairs(map) do list[#list + 1] = key end
  table.sort(list)
  return table.concat(list, " ")
end

t.test("the collector alone leaves all that a page needs", function()
  local folder, model = root .. "/page", model_of { "accuracy" }
  local data = pictures(48)
  model:fit(2, data, data, { callbacks = train.SummaryCollector(folder, { custom_lineage_data = { note = "<b>" } }), progress = false })
  local run = ms.insight.read(folder)
  t.equal(keys(run.scalars), "eval_accuracy/auto eval_loss/auto learning_rate/auto loss/auto")
  t.equal(run.scalars["loss/auto"].step:tolist(), { 1, 10, 20, 24 })
  t.equal(run.scalars["eval_accuracy/auto"].step:tolist(), { 12, 24 })
  local times = run.scalars["loss/auto"].wall_time:tolist()
  for i = 2, #times do assert(times[i] >= times[i - 1] and math.abs(times[i] - os.time()) < 100) end
  t.equal(#(keys(run.histograms):gsub("[^ ]", "")), 4)
  for _, list in pairs(run.histograms) do t.equal(#list, 4) end
  local image = run.images["input_data/auto"]
  t.equal({ #image, image[1].value.width, image[1].value.bytes:sub(2, 4) }, { 4, 8, "PNG" })
  t.equal(run.has_graph, true)
  local lineage = run.lineage
  t.equal({ lineage.network, lineage.hyper.optimizer, lineage.hyper.batch_size, lineage.hyper.epoch, lineage.train_dataset.size },
    { "Small", "Momentum", 4, 2, 48 })
  t.equal({ lineage.user.note, lineage.valid_dataset.size }, { "<b>", 48 })
  t.near(lineage.metrics.accuracy, run.scalars["eval_accuracy/auto"].value[1]:item(), 1e-6)
  t.near(lineage.loss, run.scalars["loss/auto"].value[3]:item(), 1e-6)
  local names = {}
  for i, node in ipairs(lineage.dataset_graph.nodes) do names[i] = node.name end
  t.equal({ names, lineage.dataset_graph.edges }, { { "NumpySlicesDataset", "Map", "Batch" }, { { 0, 1 }, { 1, 2 } } })
  t.equal(lineage.dataset_graph.nodes[3].parameters.batch_size, 4)
  -- The training takes from the queue behind the last operation.
  local fill = lineage.dataset_graph.nodes[3].parameters.queue_fill
  assert(fill >= 0 and fill <= 1, fill)
  t.equal(lineage.dataset_graph.nodes[2].parameters.queue_fill, nil)
  assert(lineage.dataset_graph.nodes[2].parameters.operations[1].tensor_op:find "collector_test.lua:%d+$")
  local profile = run.profiles[1]
  t.equal({ #run.profiles, profile.steps[1].step, profile.mode }, { 1, 8, ms.get_context "mode" == ms.GRAPH_MODE and "graph" or "eager" })
  assert(#profile.operators > 3 and profile.steps[1].seconds > 0 and profile.steps[1].waiting >= 0)
  local cats = {}
  for _, event in ipairs(profile.traceEvents) do cats[event.cat or event.ph] = true end
  assert(cats.step and cats.data and cats.C)
  -- No weights are saved without collect_landscape.
  t.equal(ms.io.kind(folder .. "/ckpt_dir"), nil)
  assert(tostring(run):find("scalars 4, histograms 5, images 1", 1, true), tostring(run))
end)

t.test("what is collected can be chosen", function()
  local function collected(options, epochs)
    local folder = os.tmpname()
    os.remove(folder)
    options.summary_dir = folder
    model_of():train(epochs or 1, pictures(12), train.SummaryCollector(options))
    local run = ms.insight.read(folder)
    os.execute("rm -rf '" .. folder .. "'")
    return run
  end
  local none = collected { keep_default_action = false }
  t.equal({ keys(none.scalars), keys(none.histograms), keys(none.images), #none.profiles, #none.lineage.events, none.has_graph },
    { "", "", "", 0, 0, false })
  local one = collected { keep_default_action = false, collect_specified_data = { histogram_regular = "^conv|^last%.b" } }
  t.equal({ keys(one.scalars), keys(one.histograms) }, { "", "conv.weight/auto last.bias/auto" })
  local no = {}
  for name in ("metric graph profile input_data train_lineage dataset_graph"):gmatch "%S+" do no["collect_" .. name] = false end
  local less = collected { collect_freq = 2, collect_specified_data = no }
  t.equal({ keys(less.scalars), less.has_graph, #less.profiles, #less.lineage.events, keys(less.images) }, { "", false, 0, 0, "" })
  t.equal(#less.histograms["conv.weight/auto"], 3)
  local function fails(text, options)
    options.summary_dir = root
    t.fails({ "SummaryCollector", text }, train.SummaryCollector, options)
  end
  fails("there is no option 'collect_metrics'", { collect_specified_data = { collect_metrics = true } })
  fails("collect_metric must be true or false", { collect_specified_data = { collect_metric = 1 } })
  fails("histogram_regular must be a Lua pattern", { collect_specified_data = { histogram_regular = "a|(" } })
  fails("landscape_size must be between 3 and 256", { collect_specified_data = { collect_landscape = { landscape_size = 2 } } })
  fails("intervals[1] must be a list of at least three", { collect_specified_data = { collect_landscape = { intervals = { { 1, 2 } } } } })
  fails("collect_tensor_freq must be positive", { collect_tensor_freq = 0 })
  fails("max_file_size must be positive", { max_file_size = -1 })
  fails("tensor_format must be", { export_options = { tensor_format = "csv" } })
end)

local Shows = nn.Cell:extend("Shows")
function Shows:init()
  self.fc = nn.Dense(2, 1)
  self.scalar, self.tensor = ops.ScalarSummary(), ops.TensorSummary()
  self.histogram, self.image = ops.HistogramSummary(), ops.ImageSummary()
end
function Shows:construct(x)
  local y = self.fc(x)
  self.scalar("mean", ops.mean(x))
  self.tensor("in/put", x)
  self.histogram("h", x)
  self.image("i", ops.reshape(x, { 1, 1, 1, 2 }))
  return y
end

t.test("the four operators show each step, tensors more rarely, and as npy files", function()
  local net = Shows()
  local model = ms.Model(net, nn.MSELoss(), nn.SGD(net:trainable_params(), 0.0))
  local batches = {}
  for i = 1, 60 do batches[i] = { ms.full({ 1, 2 }, i / 100), ms.zeros { 1, 1 } } end
  local function steps_of(folder, options)
    options.summary_dir, options.collect_freq, options.keep_default_action = folder, 2, false
    model:train(1, batches, train.SummaryCollector(options))
    local run, list = ms.insight.read(folder), {}
    for i, entry in ipairs(run.tensors["in/put"]) do
      list[i] = entry.step
      t.near(entry.value:reshape({ -1 })[0]:item(), entry.step / 100, 1e-6)
    end
    t.equal({ #run.scalars.mean.step:tolist(), #run.histograms.h, #run.images.i }, { 31, 31, 31 })
    for i, step in ipairs(run.scalars.mean.step:tolist()) do t.near(run.scalars.mean.value[i - 1]:item(), step / 100, 1e-6) end
    return list
  end
  t.equal(#steps_of(root .. "/spread", {}), 20)
  t.equal(steps_of(root .. "/asked", { collect_tensor_freq = 20, export_options = { tensor_format = "npy" } }), { 1, 20, 40, 60 })
  local place
  for _, name in ipairs(ms.io.list_folder(root .. "/asked")) do place = name:match "^export_%d+$" or place end
  local names = ms.io.list_folder(root .. "/asked/" .. place .. "/tensor")
  t.equal(names, { "in_put_1.npy", "in_put_20.npy", "in_put_40.npy", "in_put_60.npy" })
  t.near(ms.io.read_npy(root .. "/asked/" .. place .. "/tensor/in_put_40.npy"):reshape({ -1 })[1]:item(), 0.4, 1e-6)
end)

t.test("a file ends before it is larger than asked", function()
  local record = train.SummaryRecord { log_dir = root .. "/small", max_file_size = 600 }
  local written = 0
  for step = 1, 50 do
    record:add_value("scalar", "loss", step)
    if record:record(step) then written = step end
  end
  record:close()
  local file <close> = io.open(record.path, "rb")
  local size = file:seek "end"
  assert(size <= 600 and size > 500 and written > 5 and written < 50, size)
  t.equal(#train.SummaryReader(record.path):values "loss", written)
  local all = train.SummaryRecord(root .. "/filtered")
  all:add_value("scalar", "a", 1)
  all:add_value("text", "b", "x")
  all:record { step = 3, plugin_filter = function(plugin) return plugin == "text" end }
  all:close()
  t.equal(table.concat(train.SummaryReader(all.path):tags(), " "), "b")
end)

t.test("an evaluation by itself leaves its lineage, and a training that is cut off its settings", function()
  local folder, model = root .. "/eval", model_of { "accuracy" }
  local collector = train.SummaryCollector(folder)
  local result = model:eval(pictures(8), { callbacks = collector })
  local run = ms.insight.read(folder)
  t.near(run.lineage.metrics.accuracy, result.accuracy, 1e-9)
  t.equal(run.lineage.valid_dataset.size, 8)
  local other = train.LambdaCallback { on_train_step_end = function(c) if c:original_args().cur_step_num == 2 then error "stop" end end }
  pcall(model.train, model, 1, pictures(48), { callbacks = { train.SummaryCollector(root .. "/cut"), other } })
  collectgarbage()
  local cut = ms.insight.read(root .. "/cut")
  t.equal({ cut.lineage.network, cut.lineage.hyper.batch_size, #cut.lineage.dataset_graph.nodes }, { "Small", 4, 3 })
end)

t.test("settings of add_hparams are read with their results", function()
  local record = train.SummaryRecord(root .. "/hparams")
  record:add_hparams({ rate = 0.25, name = "Adam", wide = false }, { accuracy = 0.5 })
  record:close()
  t.equal(ms.insight.read(root .. "/hparams").hparams,
    { settings = { rate = 0.25, name = "Adam", wide = false }, metrics = { accuracy = 0.5 } })
  t.fails({ "read: there is no folder" }, ms.insight.read, root .. "/nothing")
  local file <close> = io.open(root .. "/hparams/events.out.events.summary.1.0.x_lineage", "wb")
  file:write(ms.io.event_frame "\x32\x7f")
  file:flush()
  t.fails({ "x_lineage" }, ms.insight.read, root .. "/hparams")
end)

t.test("damaged messages are errors, however they are nested", function()
  local messages = require "lunaria.train.messages"
  local graph = { parameter = { mapStr = { op_type = "Batch" }, mapInt = { size = -3 }, mapBool = { drop = true }, mapDouble = { x = 0.5 },
    mapStrList = { columns = { strValue = { "a", "b" } } } }, operations = { { size = { 1, 300 }, weights = { 0.5 } } } }
  for _ = 1, 3 do graph = { children = { graph, graph } } end
  local schema = { messages.lineage[3] }
  local bytes = messages.encode(schema, { dataset_graph = graph })
  t.equal(messages.decode(schema, bytes), { dataset_graph = graph })
  math.randomseed(3)
  local refused = 0
  for _ = 1, 1000 do
    local at = math.random(#bytes)
    local damaged = bytes:sub(1, at - 1) .. string.char(math.random(0, 255)) .. bytes:sub(at + math.random(1, 2))
    local ok, message = pcall(messages.decode, schema, damaged)
    if not ok then
      refused = refused + 1
      t.equal(message, "a message is damaged")
    end
  end
  assert(refused > 100, refused)
  local deep = ""
  for _ = 1, 200 do deep = messages.encode({ { "x", 1, "string" } }, { x = deep }) end
  t.fails({ "a message is damaged" }, messages.decode, messages.lineage[3][3], deep)
end)

-- Two weights and the loss (w1^2 + w2^2) / 2: the plane is all there is.
local function bowl()
  local net = nn.Dense(2, 1, { has_bias = false })
  net.weight:assign(ms.tensor { { 3.0, 4.0 } })
  return net, { { ms.tensor { { 1.0, 0.0 }, { 0.0, 1.0 } }, ms.zeros { 2, 1 } } }
end

t.test("a landscape is the loss on the plane, and the path lies in it", function()
  local net, batches = bowl()
  local checkpoints = {}
  for i, w in ipairs { { 2.0, -1.0 }, { 1.0, 0.5 }, { 0.25, 0.5 }, { 0.0, 0.25 } } do checkpoints[i] = { weight = ms.tensor { w } } end
  net:set_train(true)
  local plane = ms.insight.landscape(net, nn.MSELoss(), batches, checkpoints, { size = 7, intervals = { 2, 4, 6, 8 } })
  t.near(net.weight, ms.tensor { { 3.0, 4.0 } }, 0)
  t.equal({ net.training, plane.decomposition, plane.path.intervals }, { true, "PCA", { 2, 4, 6, 8 } })
  t.near(plane.path.z, ms.tensor({ 2.5, 0.625, 0.15625, 0.03125 }, ms.float64), 1e-6)
  t.near({ plane.convergence.z[0]:item(), plane.path.x[3]:item(), plane.path.y[3]:item() }, { 0.03125, 0.0, 0.0 }, 1e-6)
  -- Directions are orthonormal: distances in the plane are those of the weights, and z is quadratic with the second derivative 1.
  t.near(math.sqrt(plane.path.x[0]:item() ^ 2 + plane.path.y[0]:item() ^ 2), math.sqrt(2.0 ^ 2 + 1.25 ^ 2), 1e-6)
  local dx, dy = (plane.x[1] - plane.x[0]):item(), (plane.y[1] - plane.y[0]):item()
  for i = 1, 5 do
    t.near((plane.z[{ i, i + 1 }] - plane.z[{ i, i }] * 2 + plane.z[{ i, i - 1 }]):item() / dx ^ 2, 1.0, 1e-4)
    t.near((plane.z[{ i + 1, i }] - plane.z[{ i, i }] * 2 + plane.z[{ i - 1, i }]):item() / dy ^ 2, 1.0, 1e-4)
  end
  assert(plane.x[0]:item() < ops.min(plane.path.x):item() and plane.x[6]:item() > ops.max(plane.path.x):item())
  t.near(ops.sum(ms.tensor(plane.explained)):item(), 1.0, 1e-6)
  -- A path along a line.
  local line = {}
  for i = 1, 4 do line[i] = { weight = ms.tensor { { 4.0 - i, 0.0 } } } end
  local straight = ms.insight.landscape(net, nn.MSELoss(), batches, line, { size = 3 })
  t.near(straight.path.z, ms.tensor({ 4.5, 2.0, 0.5, 0.0 }, ms.float64), 1e-6)
  local around = ms.insight.landscape(net, nn.MSELoss(), batches, { checkpoints[1] }, { size = 5, directions = "random" })
  t.near({ around.z[{ 2, 2 }]:item(), around.convergence.z[0]:item() }, { 2.5, 2.5 }, 1e-6)
  t.equal({ around.path, around.x:tolist() }, { nil, { -1.0, -0.5, 0.0, 0.5, 1.0 } })
  local function fails(text, ...) t.fails({ "landscape", text }, ms.insight.landscape, net, nn.MSELoss(), batches, ...) end
  fails("3 checkpoints are needed at least, got 2", { line[1], line[2] })
  fails("checkpoint 3 has no weight of shape (1, 2)", { line[1], line[2], { weight = ms.ones { 3 } } })
  fails("all checkpoints have the same weights", { line[1], line[1], line[1] })
  fails("size must be between 3 and 256", line, 2)
  fails("num_samples must be positive", line, { num_samples = 0 })
  t.near(net.weight, ms.tensor { { 3.0, 4.0 } }, 0)
end)

t.test("a training saves some weights where a landscape is asked for, and the run shows it", function()
  local folder = root .. "/landscape"
  local net, batches = bowl()
  local model = ms.Model(net, nn.MSELoss(), nn.SGD(net:trainable_params(), 0.1))
  local wanted = { collect_landscape = { landscape_size = 4, num_samples = 2, intervals = { { 1, 2, 4 }, { 4, 5, 6 } } } }
  model:train(8, batches, train.SummaryCollector(folder, { keep_default_action = false, collect_specified_data = wanted }))
  t.equal(#ms.io.list_folder(folder .. "/ckpt_dir"), 6)
  local weight = net.weight:copy()
  local landscape = train.SummaryLandscape(folder)
  local found = landscape:gen_landscapes_with_multi_process(function() return model, net, batches end)
  t.equal(keys(found), "landscape_[1, 4] landscape_[4, 6] landscape_[6]")
  t.near(net.weight, weight, 0)
  local read = ms.insight.read(folder).landscapes
  t.equal(keys(read), keys(found))
  for tag, plane in pairs(read) do
    t.near(plane.z, found[tag].z, 1e-5)
    t.equal({ plane.decomposition, plane.unit, plane.steps_per_epoch }, { tag == "landscape_[6]" and "Random" or "PCA", "step", 1 })
  end
  t.equal(read["landscape_[1, 4]"].path.intervals, { 1, 2, 4 })
  local larger = landscape:gen_landscapes_with_multi_process(function() return model, net, batches end,
    { landscape_size = 5, create_landscape = { train = true, result = false }, intervals = { { 4, 5, 6 } } }, { output = root .. "/other" })
  t.equal({ keys(larger), larger["landscape_[4, 6]"].x.size }, { "landscape_[4, 6]", 5 })
  landscape:clean_ckpt()
  t.fails({ "there is no", "train_metadata.json", "collect_landscape" }, landscape.gen_landscapes_with_multi_process, landscape, print)
  -- Without intervals few of many steps are saved.
  local only = { keep_default_action = false, collect_specified_data = { collect_landscape = {} } }
  model:train(70, batches, train.SummaryCollector(root .. "/few", only))
  t.equal(#ms.io.list_folder(root .. "/few/ckpt_dir"), 21)
end)

t.test("the profile of a step gives way to the user's", function()
  local model = model_of()
  local mine = ms.Profiler()
  model:train(1, pictures(48), train.SummaryCollector(root .. "/both"))
  mine:stop()
  assert(#mine.report.events > 100)
  t.equal(#ms.insight.read(root .. "/both").profiles, 0)
end)

os.execute("rm -rf '" .. root .. "'")
t.finish()
