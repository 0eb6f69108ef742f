-- Everyday training: a data set, a Model with a metric and a schedule of rates, its evaluation.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local pixels = ops.randn(1024, 4)
local classes = ops.argmax(ops.matmul(pixels, ops.randn(4, 3)), -1):astype(ms.int32)
local data = ms.dataset.NumpySlicesDataset({ pixels, classes }, { column_names = { "pixels", "class" } }):shuffle(64):batch(32)
local net = nn.SequentialCell(nn.Dense(4, 16), nn.ReLU(), nn.Dense(16, 3))
local rates = nn.CosineDecayLR(0.0, 0.01, 200)
local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), rates), { metrics = { "accuracy" } })
model:train(8, data, { progress = false })
print(("%.3f"):format(model:eval(data).accuracy))
