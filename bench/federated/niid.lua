-- lunaria bench/federated/niid.lua [ROUNDS [SAMPLES [TEST]]]: accuracies of FedAvg, SCAFFOLD, FedProx and FedNova after ROUNDS (10)
-- rounds in the manner of NIID-Bench (Li and others 2021) on Fashion-MNIST: 10 parties that all take part, 10 local epochs, batches of
-- 64, SGD with the learning rate 0.01 and momentum 0.9, a network of two convolutions. Of the training pictures only SAMPLES (6000), of
-- the test pictures TEST (2000). The published figures are after 50 rounds with 60,000 pictures.
package.path = "bench/federated/?.lua;" .. package.path
local ms = require "lunaria"
local fashion = require "fashion"

local function given(i, otherwise) return math.tointeger(tonumber(arg[i] or otherwise)) end
local rounds, samples, tests = given(1, 10), given(2, 6000), given(3, 2000)
ms.set_num_threads(1)
local x, y = fashion.pictures("train", samples, 1, 28, 28)
local test = { fashion.pictures("t10k", tests, 1, 28, 28) }
local partition, strategies = ms.federated.partition, ms.federated.strategies
local rows = {
  { "IID", partition.iid(y, 10, { seed = 1 }), { 89.0, 89.5, 89.5, 89.3 } },
  { "1 label", partition.by_label(y, 10, { labels_per_client = 1, seed = 1 }), { 10.0, 10.0, 38.0, 11.1 } },
  { "2 labels", partition.by_label(y, 10, { labels_per_client = 2, seed = 1 }), { 81.0, 10.0, 78.8, 70.5 } },
  { "3 labels", partition.by_label(y, 10, { labels_per_client = 3, seed = 1 }), { 83.2, 84.2, 82.5, 83.2 } },
  { "Dirichlet 0.5", partition.dirichlet(y, 10, { alpha = 0.5, seed = 1 }), { 88.4, 88.4, 88.6, 88.1 } },
}
local kinds = {
  { "FedAvg", function() return strategies.FedAvg() end },
  { "SCAFFOLD", function() return strategies.Scaffold() end },
  { "FedProx", function() return strategies.FedProx { mu = 0.1 } end },
  { "FedNova", function() return strategies.FedNova() end },
}

print(("%d rounds, %d pictures; published figures in brackets"):format(rounds, samples))
print(("%-14s %15s %15s %15s %15s"):format("", kinds[1][1], kinds[2][1], kinds[3][1], kinds[4][1]))
for _, row in ipairs(rows) do
  local cells = {}
  for i, kind in ipairs(kinds) do
    local run = ms.federated.simulate { model = fashion.convolutions(1), data = { x, y }, partition = row[2], rounds = rounds,
      batch_size = 64, settings = { lr = 0.01, momentum = 0.9, epochs = 10 }, strategy = kind[2](), evaluate = test,
      evaluate_every = rounds, seed = 1, group = 1 }
    local last = run.history[rounds]
    cells[i] = ("%.1f (%.1f)"):format(100 * (last.accuracy or 0.1), row[3][i])
    io.stderr:write(row[1], " ", kind[1], " ", cells[i], " refused ", #last.refused, "\n")
  end
  print(("%-14s %15s %15s %15s %15s"):format(row[1], table.unpack(cells)))
  io.stdout:flush()
end
