-- A sweep: 18 small trainings of a network with one hidden layer, by rate, width and optimizer.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local BATCHES, BATCH, EPOCHS = 16, 32, 4
local x = ops.randn(BATCHES * BATCH, 20)
local y = ops.greater(ops.sum(x * ops.cos(ops.arange(20):astype(ms.float32)), -1), 0):astype(ms.int32)
local xs, ys = { ops.split(x, BATCH) }, { ops.split(y, BATCH) }

local function train(rate, width, optimizer_class)
  local net = nn.SequentialCell(nn.Dense(20, width), nn.ReLU(), nn.Dense(width, 2))
  local optimizer = optimizer_class(net:trainable_params(), rate)
  local step = ms.value_and_grad(function(a, b) return ops.cross_entropy(net(a), b) end, nil, net:trainable_params())
  local last
  for _ = 1, EPOCHS do
    for k = 1, BATCHES do
      local loss, grads = step(xs[k], ys[k])
      optimizer(grads)
      last = loss
    end
  end
  return last:item()
end

local best, at = math.huge, nil
for _, rate in ipairs { 1e-3, 1e-2, 1e-1 } do
  for _, width in ipairs { 16, 32, 64 } do
    for name, class in pairs { Adam = nn.Adam, SGD = nn.SGD } do
      local loss = train(rate, width, class)
      if loss < best then best, at = loss, ("%s, rate %g, width %d"):format(name, rate, width) end
    end
  end
end
print(("%.4f with %s"):format(best, at))
