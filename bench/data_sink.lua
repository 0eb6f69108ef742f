-- Run by data_sink.py: training steps of a small perceptron for single examples, by 100 calls of the compiled step and by
-- one of ms.data_sink. Prints the nanoseconds per step of both, the median of rounds that take turns.
local ms = require "lunaria"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

local inputs, hidden = tonumber(arg[1]), tonumber(arg[2])
ms.set_num_threads(1)

local function make()
  ms.set_seed(1)
  local net = nn.SequentialCell(nn.Dense(inputs, hidden), nn.ReLU(), nn.Dense(hidden, 10))
  local optimizer = nn.Adam(net:trainable_params(), 1e-4)
  local gradient = ms.value_and_grad(networks.loss(net), nil, optimizer.parameters)
  return ms.jit(function(x, y)
    local loss, grads = gradient(x, y)
    optimizer(grads)
    return loss
  end)
end

local data = {}
for i = 1, 100 do data[i] = { ops.randn({ 1, inputs }), ops.randint(0, 10, { 1 }) } end

local called, sunk = make(), make()
local function calls()
  local loss
  for i = 1, 100 do loss = called(data[i][1], data[i][2]) end
  return loss
end
local sink = ms.data_sink(sunk, data, { sink_size = 100 })

assert(calls():item() == sink():item(), "the two ways give different losses")
local function time(f)
  local start = ms.clock()
  for _ = 1, 20 do f() end
  return (ms.clock() - start) / 2000
end
local a, b = {}, {}
for i = 1, 21 do a[i], b[i] = time(calls), time(sink) end
table.sort(a)
table.sort(b)
print(a[11], b[11])
