-- A convolutional network on small pictures, flipped and shifted at random, by Model.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local COUNT, BATCH, EPOCHS = 512, 32, 3
local x = ops.randn(COUNT, 1, 28, 28)
local y = ops.greater(ops.mean(x, { 1, 2, 3 }), 0):astype(ms.int32)
local xs, ys = { ops.split(x, BATCH) }, { ops.split(y, BATCH) }
local net = nn.SequentialCell(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(8, 16, 3), nn.ReLU(),
  nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(16 * 7 * 7, 2))
local optimizer = nn.Momentum(net:trainable_params(), 0.01, 0.9)
local step = ms.value_and_grad(function(a, b) return ops.cross_entropy(net(a), b) end, nil, net:trainable_params())
net:set_train()
local last
for epoch = 1, EPOCHS do
  for k = 1, COUNT // BATCH do
    local pictures = xs[k]
    if (epoch + k) % 2 == 0 then pictures = ops.flip(pictures, { 3 }) end
    pictures = ops.roll(pictures, k % 3 - 1, 2)
    local loss, grads = step(pictures, ys[k])
    optimizer(grads)
    last = loss
  end
end
print(("%.4f"):format(last:item()))
