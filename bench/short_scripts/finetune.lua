-- Fine-tuning: a network is loaded from a checkpoint, its last layer replaced, and only that one trained at first.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local function backbone()
  return nn.SequentialCell(nn.Dense(64, 128), nn.ReLU(), nn.Dense(128, 128), nn.ReLU(), nn.Dense(128, 10))
end
local file = os.tmpname() .. ".ckpt"
ms.save_checkpoint(backbone(), file)
local net = backbone()
ms.load_param_into_net(net, ms.load_checkpoint(file))
os.remove(file)

local body, head = {}, nn.Dense(128, 5)
for k = 0, 3 do body[#body + 1] = net[k] end
local whole = nn.SequentialCell(table.unpack(body))
local BATCHES, BATCH = 12, 64
local x = ops.randn(BATCHES * BATCH, 64)
local y = ops.argmax(ops.matmul(x, ops.randn(64, 5)), -1):astype(ms.int32)
local xs, ys = { ops.split(x, BATCH) }, { ops.split(y, BATCH) }

local function train(parameters, epochs, rate)
  local optimizer = nn.Adam(parameters, rate)
  local step = ms.value_and_grad(function(a, b)
    return ops.cross_entropy(head(whole(a)), b)
  end, nil, parameters)
  local last
  for _ = 1, epochs do
    for k = 1, BATCHES do
      local loss, grads = step(xs[k], ys[k])
      optimizer(grads)
      last = loss
    end
  end
  return last:item()
end

local first = train(head:trainable_params(), 6, 1e-2)
local all = head:trainable_params()
for _, p in ipairs(whole:trainable_params()) do all[#all + 1] = p end
print(("%.4f, then %.4f"):format(first, train(all, 6, 1e-3)))
