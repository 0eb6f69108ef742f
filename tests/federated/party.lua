-- A party for tests of jobs over sockets: `lunaria federated client party.lua ... -- SEED [nan | signed FOLDER]`. A small network on data
-- of the seed.
local ms = require "lunaria"

local seed, kind, folder = ...
seed = tonumber(seed)
ms.set_seed(seed)
local x = ms.ops.randn { 24, 6 }
local y = ms.ops.randn { 24, 3 }
ms.set_seed(1)
local net = ms.nn.SequentialCell(ms.nn.Dense(6, 8), ms.nn.Tanh(), ms.nn.Dense(8, 3))
local batches = { { x[{ ms.slice(0, 12) }], y[{ ms.slice(0, 12) }] }, { x[{ ms.slice(12, 24) }], y[{ ms.slice(12, 24) }] } }

local party = { net = net, loss_fn = ms.nn.MSELoss(), data = batches, samples = 24 + seed }
if kind == "nan" then
  function party.rule(given, data, settings, state)
    local update = ms.federated.client_rules.train(given, data, { rule = "sgd", lr = settings.lr, epochs = settings.epochs }, state)
    update.weights = update.weights:with_vector(update.weights:vector() * (0 / 0))
    return update
  end
end
local function contents(name)
  local file <close> = assert(io.open(folder .. "/" .. name, "rb"))
  return file:read "a"
end
if kind == "signed" then
  local name = ("client-%d"):format(seed)
  party.signing = { key = contents(name .. ".seed"), certificate = contents(name .. ".pem"), authorities = contents "ca.pem" }
end
return party
