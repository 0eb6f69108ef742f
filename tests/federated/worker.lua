-- A worker of a silo for tests: worker.lua PORT SEED FREQUENCY SYNC_TYPE EPOCHS. Model.train with the network and the data of party.lua.
local ms = require "lunaria"

local port, seed, frequency, sync_type, epochs = table.unpack(arg)
local party = assert(loadfile "tests/federated/party.lua")(seed)
local config = { fl_name = "faults", encrypt = { encrypt_type = "NOT_ENCRYPT" } }
local manager = ms.federated.FederatedLearningManager(config, party.net, tonumber(frequency), {
  http_server_address = "127.0.0.1:" .. port, data_size = 24, sync_type = sync_type, client_id = "worker-" .. seed, patience = 20.0,
  min_consistent_rate = 1e-9, observation_window_size = 1,
})
local model = ms.Model(party.net, party.loss_fn, ms.nn.SGD(party.net:trainable_params(), 0.1))
model:train(tonumber(epochs), party.data, { manager })
print(("interval %d, ended %s"):format(manager.interval, tostring(manager.has_ended)))
local parts = {}
for i, number in ipairs(ms.federated.FeatureMap(party.net):vector():tolist()) do parts[i] = ("%a"):format(number) end
print("weights " .. table.concat(parts, " "))
