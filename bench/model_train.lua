-- Run by model_train.py: the same training by a bare loop over a step, by Model.train, and by Model.train with a progress bar,
-- in turns of a short epoch each. Arguments: network, "eager" or "graph", rounds. Prints the processor time of a step in
-- microseconds for the three, and the medians of the rounds' ratios: Model.train to the loop, and with the bar to without.
local ms = require "lunaria"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

local name, mode, rounds = arg[1], arg[2], math.tointeger(tonumber(arg[3] or 21))
ms.set_num_threads(1)

local inputs = {
  mlp = function() return ops.randn({ 64, 784 }), ops.randint(0, 10, { 64 }) end,
  lenet = function() return ops.randn({ 32, 1, 32, 32 }), ops.randint(0, 10, { 32 }) end,
}

-- One network for all three: where its parameters lie in memory is a few per cent of a step.
ms.set_seed(1)
local net = networks[name]()
local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net:trainable_params(), 1e-6, 0.9))
local step = model.train_network
local distinct = {}
for i = 1, 8 do distinct[i] = { inputs[name]() } end
if mode == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end

local function median(figures)
  table.sort(figures)
  return figures[(#figures + 1) // 2]
end

-- The first rounds find what there is to compile, and how many steps are a fifth of a second.
local times, epoch = { {}, {}, {} }, distinct
for round = -2, rounds do
  for turn = 1, 3 do
    local which = (round + turn) % 3 + 1
    -- Of the processor, as others may use the machine. The loop stands in no function, which graph mode would compile whole.
    local start = os.clock()
    if which == 1 then
      step:set_train()
      rawset(step, "finite_only", false)
      for _, batch in ipairs(epoch) do step(batch[1], batch[2]) end
    else
      model:train(1, epoch, { progress = which == 3 })
    end
    times[which][round] = (os.clock() - start) * 1e6 / #epoch
  end
  if round == 0 then
    epoch = {}
    for i = 1, math.max(8, math.ceil(2e5 / times[1][0])) do epoch[i] = distinct[(i - 1) % 8 + 1] end
  end
end

local overhead, bar = {}, {}
for round = 1, rounds do
  overhead[round], bar[round] = times[2][round] / times[1][round], times[3][round] / times[2][round]
end
print(("%.1f %.1f %.1f %.4f %.4f"):format(median(times[1]), median(times[2]), median(times[3]), median(overhead), median(bar)))
