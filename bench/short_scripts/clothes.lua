-- Pictures of clothes: a network as a class, a loop that trains and one that tests, five times.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local BATCH, EPOCHS = 64, 5
local prototypes = ops.randn(10, 784)
local function pictures(count)
  local labels = ms.random.randint(0, 10, { count })
  return { ops.split(prototypes[labels] + 2 * ops.randn(count, 784), BATCH) }, { ops.split(labels:astype(ms.int32), BATCH) }
end
local train_x, train_y = pictures(6400)
local test_x, test_y = pictures(256)

local Net = nn.Cell:extend "Net"
function Net:init()
  self.flatten = nn.Flatten()
  self.first, self.second, self.last = nn.Dense(784, 128), nn.Dense(128, 128), nn.Dense(128, 10)
end
function Net:construct(x)
  x = ops.relu(self.first(self.flatten(x)))
  return self.last(ops.relu(self.second(x)))
end

local net = Net()
local optimizer = nn.SGD(net:trainable_params(), 1e-2)
local loss_fn = nn.CrossEntropyLoss()
local step = ms.value_and_grad(function(x, y)
  local logits = net(x)
  return loss_fn(logits, y), logits
end, nil, net:trainable_params(), true)

local function train()
  net:set_train()
  for k = 1, #train_x do
    local loss, grads = step(train_x[k], train_y[k])
    optimizer(grads)
    if k % 50 == 1 then print(("loss %.4f  [%d]"):format((type(loss) == "table" and loss[1] or loss):item(), k * BATCH)) end
  end
end

local function test()
  net:set_train(false)
  local right, loss, count = 0, 0, 0
  for k = 1, #test_x do
    local logits = net(test_x[k])
    loss = loss + loss_fn(logits, test_y[k]):item()
    right = right + ops.equal(ops.argmax(logits, 1), test_y[k]):astype(ms.float32):sum():item()
    count = count + BATCH
  end
  print(("accuracy %.1f%%, loss %.4f"):format(100 * right / count, loss / #test_x))
end

for _ = 1, EPOCHS do
  train()
  test()
end
