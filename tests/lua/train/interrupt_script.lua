-- A training that interrupt_test.lua ends by SIGINT: lunaria interrupt_script.lua OUTPUT [sink]. What is closed on the way out trains
-- another network for as many steps as the optimizer has made, and writes how many these are and the largest difference.
local ms = require "lunaria"
local nn = ms.nn

ms.set_context { deterministic = true }
ms.set_seed(3)
local images, labels = ms.randn { 64, 8 }, ms.randint(0, 3, { 64 })
local batches = {}
for i = 0, 15 do batches[i + 1] = { images[{ ms.slice(4 * i, 4 * i + 4) }], labels[{ ms.slice(4 * i, 4 * i + 4) }] } end

local function model_of()
  ms.set_seed(4)
  local net = nn.SequentialCell(nn.Dense(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dense(32, 3))
  local optimizer = nn.Adam(net:trainable_params(), 0.01)
  return ms.Model(net, nn.CrossEntropyLoss(), optimizer), optimizer
end
local model, optimizer = model_of()

-- A variable that is closed runs to its end, whatever interrupt is on its way.
local function compare()
  local steps = optimizer.global_step
  local again = model_of()
  local left = steps
  if steps > 0 then
    again:train(1, function()
      if left == 0 then return nil end
      left = left - 1
      return table.unpack(batches[(steps - left - 1) % 16 + 1])
    end, { progress = false, dataset_sink_mode = arg[2] == "sink" })
  end
  local most, mine = 0, {}
  for name, parameter in again.train_network:parameters_and_names() do mine[name] = parameter end
  for name, parameter in model.train_network:parameters_and_names() do
    most = math.max(most, (parameter - mine[name]):abs():max():item())
  end
  local file <close> = assert(io.open(arg[1], "w"))
  file:write(("%d %g\n"):format(steps, most))
end

local sunk = arg[2] == "sink"
local closing <close> = setmetatable({}, { __close = compare })
model:train(1000000, batches, { progress = false, dataset_sink_mode = sunk })
print(closing)
