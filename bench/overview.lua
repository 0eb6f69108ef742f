-- Lunaria's side of bench/overview.py: steps of training, as many as a line says.
-- usage: lunaria bench/overview.lua NETWORK eager|graph
local ms = require "lunaria"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

local name, mode = arg[1], arg[2]
ms.set_context { mode = mode == "graph" and ms.GRAPH_MODE or ms.PYNATIVE_MODE }
ms.set_seed(1)
local net = networks[name]()
net:set_train(true)
local params = net:trainable_params()
local loss = networks.loss(net)
local gradient = ms.value_and_grad(loss, nil, params)
local optimizer = name == "mlp" and nn.Adam(params, 1e-6) or nn.Momentum(params, 1e-5, 0.9)
local x = name == "mlp" and ops.randn { 64, 784 } or ops.randn { 32, 1, 32, 32 }
local y = ops.randint(0, 10, { #x }):cast(ms.int32)

local function steps(n)
  for _ = 1, n do
    local _, grads = gradient(x, y)
    optimizer(grads)
  end
end

steps(20)
print "ready"
io.stdout:flush()
for line in io.lines() do
  local start = ms.clock()
  steps(tonumber(line))
  print((ms.clock() - start) / 1e9 / tonumber(line))
  io.stdout:flush()
end
