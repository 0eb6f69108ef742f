-- Our side of bench/federated/rounds.py, with the same arguments as flower.py: CLIENTS SAMPLES BATCH EPOCHS ROUNDS RATE SEED. Prints the
-- seconds of each round, of which the first one compiles, those of the processors, and the accuracy of the last model.
local ms = require "lunaria"
local nn = ms.nn

local clients, samples, batch, epochs, rounds, rate, seed = table.unpack(arg)
clients, samples, rounds = math.tointeger(tonumber(clients)), math.tointeger(tonumber(samples)), math.tointeger(tonumber(rounds))
local folder = "/usr/share/datasets/fashion-mnist"

local function pictures(part)
  local images = ms.load_idx(("%s/%s-images-idx3-ubyte.gz"):format(folder, part))
  local labels = ms.load_idx(("%s/%s-labels-idx1-ubyte.gz"):format(folder, part))
  return images:reshape { -1, 784 }:cast(ms.float32) / 255, labels:cast(ms.int32)
end

ms.set_seed(math.tointeger(tonumber(seed)))
local x, y = pictures "train"
local rows = {}
for client = 1, clients do rows[client] = ms.arange((client - 1) * samples, client * samples) end
local net = nn.SequentialCell(nn.Dense(784, 200), nn.ReLU(), nn.Dense(200, 200), nn.ReLU(), nn.Dense(200, 10))
local seconds, processor, last, spent = {}, {}, ms.clock(), os.clock()
local run = ms.federated.simulate {
  model = net, data = { x, y }, partition = ms.federated.partition.Partition(rows), rounds = rounds,
  batch_size = math.tointeger(tonumber(batch)), settings = { lr = tonumber(rate), epochs = math.tointeger(tonumber(epochs)) },
  seed = math.tointeger(tonumber(seed)), evaluate = { pictures "t10k" }, evaluate_every = rounds,
  callback = function()
    local now, used = ms.clock(), os.clock()
    seconds[#seconds + 1], processor[#processor + 1] = ("%.6f"):format((now - last) / 1e9), ("%.6f"):format(used - spent)
    last, spent = now, used
  end,
}
print(('{"seconds": [%s], "processor": [%s], "accuracy": %.4f}'):format(
  table.concat(seconds, ", "), table.concat(processor, ", "), run.history[rounds].accuracy))
