-- Run by steady_memory.py: LeNet is trained by Model.train with a data set for so many seconds; prints the resident memory in
-- megabytes about twice a second. Arguments: seconds, "eager" or "graph".
local ms = require "lunaria"
local networks = require "bench.networks"
local nn = ms.nn

local seconds, mode = tonumber(arg[1]), arg[2]
ms.set_num_threads(1)
if mode == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local function resident()
  for line in io.lines("/proc/self/status") do
    local kilobytes = line:match("^VmRSS:%s*(%d+)")
    if kilobytes then return tonumber(kilobytes) / 1024 end
  end
end

local images, labels = ms.randn { 2048, 1, 32, 32 }, ms.ops.randint(0, 10, { 2048 })
local rows = ms.dataset.NumpySlicesDataset({ images, labels }, { column_names = { "image", "label" }, shuffle = true })
rows = rows:batch(32, { drop_remainder = true })
local net = networks.lenet()
local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net:trainable_params(), 1e-3, 0.9), { metrics = { "accuracy" } })

local start, told = ms.clock(), 0
local Watch = ms.train.Callback:extend("Watch")
function Watch:on_train_step_end() -- luacheck: ignore 212
  local now = ms.clock()
  if now - told > 5e8 then
    told = now
    print(resident())
  end
end
while ms.clock() - start < seconds * 1e9 do model:train(5, rows, Watch()) end
