-- lunaria bench/federated/mcmahan.lua [TARGET [MOST [SAMPLES]]]: how many rounds federated averaging needs until the 2NN tells TARGET
-- (0.8) of the test pictures apart, at most MOST (200), in the manner of the tables of McMahan and others (2017): 100 clients with
-- SAMPLES (150) pictures each, a tenth of which takes part in each round, E epochs with batches of B pictures, the classes divided evenly
-- or two shards for each client. The learning rate is the best of three for each cell. Fashion-MNIST in the place of MNIST. A quarter of
-- an hour on one core.
package.path = "bench/federated/?.lua;" .. package.path
local ms = require "lunaria"
local fashion = require "fashion"

local clients = 100
local target, most, samples = tonumber(arg[1] or 0.8), math.tointeger(tonumber(arg[2] or 200)), math.tointeger(tonumber(arg[3] or 150))
ms.set_num_threads(1)
local x, y = fashion.pictures("train", clients * samples, 784)
local test = { fashion.pictures("t10k", 2000, 784) }
local partition = ms.federated.partition
local divisions = {
  { "IID", partition.iid(y, clients, { seed = 1 }) },
  { "non-IID", partition.by_label(y, clients, { labels_per_client = 2, method = "shards", seed = 1 }) },
}
-- E, B (nil: all pictures of a client)
local rows = { { 1, nil }, { 5, nil }, { 1, 50 }, { 20, nil }, { 1, 10 }, { 5, 50 }, { 20, 50 }, { 5, 10 }, { 20, 10 } }
local rates = { 0.3, 0.1, 0.03 }

print(("rounds to %.0f %% with %d clients, 2NN"):format(100 * target, clients))
print(("%4s %4s %5s %18s %18s"):format("E", "B", "u", "IID (rate)", "non-IID (rate)"))
for _, row in ipairs(rows) do
  local epochs, batch = row[1], row[2]
  local cells = {}
  for i, division in ipairs(divisions) do
    local best, rate
    for _, lr in ipairs(rates) do
      -- No more rounds than the best so far.
      local limit = best and best - 1 or most
      if limit > 0 then
        local run = ms.federated.simulate { model = fashion.perceptron(1), data = { x, y }, partition = division[2], sample = 0.1,
          rounds = limit, batch_size = batch, settings = { lr = lr, epochs = epochs }, evaluate = test, target = target, seed = 1 }
        local rounds = run:rounds_to(target)
        if rounds then best, rate = rounds, lr end
      end
    end
    cells[i] = best and ("%d (%g)"):format(best, rate) or ("> %d"):format(most)
  end
  local updates = math.ceil(epochs * samples / (batch or samples))
  print(("%4d %4s %5d %18s %18s"):format(epochs, batch or "all", updates, cells[1], cells[2]))
  io.stdout:flush()
end
