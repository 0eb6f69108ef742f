-- Runs for the pages, a server over them, and on every line of input a point more. usage: runs.lua FOLDER
local ms = require "lunaria"
local folder = arg[1]
local nn, train = ms.nn, ms.train

local hostile = '<img src=x onerror="window.hacked=1">'
ms.set_seed(1)

-- Two trainings as users write them, with a collector and nothing more.
local function trained(name, rate)
  local columns = { column_names = { "data", "label" }, shuffle = false }
  local data = ms.dataset.NumpySlicesDataset({ ms.randn { 64, 3 }, ms.randint(0, 2, { 64 }) }, columns):batch(16)
  local net = nn.SequentialCell(nn.Dense(3, 8), nn.ReLU(), nn.Dense(8, 2))
  local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net:trainable_params(), rate, 0.9), { metrics = { "accuracy" } })
  -- The page of profiles is tested with one of its own, below.
  local options = { collect_specified_data = { collect_profile = false }, custom_lineage_data = { dropout = rate } }
  local collector = train.SummaryCollector(folder .. "/" .. name, 1, options)
  model:fit(3, data, data, { callbacks = { collector }, progress = false })
end
trained("trained/fast", 0.1)
trained("trained/slow", 0.001)

-- A run with every kind of record, and names that would harm a page that took them for markup.
local record = train.SummaryRecord(folder .. "/" .. hostile)
local x = ms.ops.randn(1, 8, 8)
for step = 0, 4 do
  record:add_value("scalar", hostile, step * 0.5)
  record:add_value("scalar", "broken/loss", step < 3 and 1 / (step + 1) or 0 / 0)
  record:add_value("image", "pictures/" .. hostile, ms.ops.sigmoid(x))
  record:add_value("histogram", "weights", x + step)
  record:add_value("tensor", "activation", x)
  record:add_value("text", "words", hostile .. "<script>window.hacked=1</script>")
  record:add_value("audio", "sound", { data = ms.ops.sin(ms.arange(2000) * 0.1), sample_rate = 8000 })
  record:record(step)
end
-- Points of four dimensions with names, for the page of embeddings.
record:add_value("tensor", "vectors", ms.ops.randn(6, 4))
record:add_value("text", "vectors/labels", "one\ntwo\nthree\nfour\nfive\n" .. hostile)
record:add_value("pr_curve", "zebra", { labels = ms.tensor { 1, 0, 1 }, predictions = ms.tensor { 0.9, 0.2, 0.6 } })
record:record(5)
record:close()

-- One curve of many points with a peak that a sample of them would lose.
local long = train.SummaryRecord(folder .. "/long")
for step = 0, 19999 do
  long:add_value("scalar", "curve", step == 12345 and 50.0 or math.sin(step / 900))
  long:record(step)
end
long:flush()

ms.profile(function() return ms.ops.matmul(x[0], x[0]) + 1 end):save(folder .. "/long/trace.json")

local server = ms.insight.start { dir = folder, port = 0, interval = 0.2 }
print(server.url)
io.stdout:flush()
local step = 20000
for _ in io.lines() do
  long:add_value("scalar", "curve", 99.0)
  long:record(step)
  long:flush()
  step = step + 1
end
