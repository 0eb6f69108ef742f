-- Trainings that leave answers in their folders, for ten questions to the pages. usage: questions.lua FOLDER
local ms = require "lunaria"
local folder = arg[1]
local nn, ops, train = ms.nn, ms.ops, ms.train

ms.set_seed(1)
-- Pictures of 8 x 8 with a bright upper or lower half.
local labels = ms.randint(0, 2, { 128 })
local pictures = ops.randn(128, 1, 8, 8) * 2
for i = 0, 127 do
  local half = labels[i]:item() == 1 and "0, 4:, :" or "0, :4, :"
  pictures[i] = pictures[i] + 0 -- a tensor of its own
  pictures[("%d, %s"):format(i, half)] = pictures[("%d, %s"):format(i, half)] + 1
end
local function data()
  return ms.dataset.NumpySlicesDataset({ pictures, labels }, { column_names = { "data", "label" }, shuffle = false }):shuffle(128):batch(32)
end
local function network(width) return nn.SequentialCell(nn.Flatten(), nn.Dense(64, width), nn.ReLU(), nn.Dense(width, 2)) end

local last
local function trained(name, rate, width, epochs)
  last = network(width)
  local model = ms.Model(last, nn.CrossEntropyLoss(), nn.SGD(last:trainable_params(), rate), { metrics = { "accuracy" } })
  local collector = train.SummaryCollector(folder .. "/" .. name, 1, { custom_lineage_data = { width = width } })
  model:fit(epochs, data(), data(), { callbacks = { collector }, progress = false })
end
for i, rate in ipairs { 0.1, 0.03, 0.003, 0.0003 } do trained("rate/" .. rate, rate, i % 2 == 0 and 8 or 16, 3) end

-- A training that breaks in its fourth step, under watch.
local record = train.SummaryRecord(folder .. "/broken")
local weight = ms.Parameter(ms.ones(4), "weight")
local step = ms.insight.watch(function(x)
  return ops.log(weight - x):sum()
end, { points = { "tensor_overflow" }, on_hit = function() end, record = record })
for i = 1, 6 do
  record:add_value("scalar", "loss", step(ms.full({ 4 }, i < 4 and 0.5 or 2.0)):item())
  record:record(i)
end
record:close()

-- A network of twelve equal blocks.
local blocks = {}
for i = 1, 12 do blocks[i] = nn.SequentialCell(nn.Dense(8, 8), nn.LayerNorm { 8 }, nn.GELU()) end
local deep = train.SummaryRecord(folder .. "/deep")
deep:add_graph(nn.SequentialCell(blocks), ms.ones { 1, 8 })
deep:close()

-- The loss around the last weights, and where the network looks.
local saved = {}
for i = 1, 4 do
  local weights = {}
  for name, p in last:parameters_and_names() do weights[name] = p * (0.25 * i) end
  saved[i] = weights
end
local land = train.SummaryRecord(folder .. "/around")
land:add_value("landscape", "landscape_1", ms.insight.landscape(last, nn.CrossEntropyLoss(), data(), saved, { size = 7 }))
land:record(0)
land:close()
local four = { pictures["0:4"], labels["0:4"] }
local samples = ms.dataset.NumpySlicesDataset(four, { column_names = { "data", "label" }, shuffle = false }):batch(2)
local runner = ms.explain.ImageClassificationRunner(folder .. "/looks", { samples, { "lower", "upper" } }, last, nn.Softmax())
runner:register_saliency({ ms.explain.Gradient(last) }, { ms.explain.ClassSensitivity() })
runner:run()

local server = ms.insight.start { dir = folder, port = 0, interval = 0.2 }
print(server.url)
io.stdout:flush()
io.read "a"
