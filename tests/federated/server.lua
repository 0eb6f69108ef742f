-- The server of tests over sockets: server.lua PORT FOLDER ITERATIONS CLIENTS ENCRYPT_TYPE WINDOW [AUTHORITY]. WINDOW: seconds of
-- a phase but the first. Leaves the first model's numbers in FOLDER/begin.bin, the final one's in FOLDER/model.bin.
local ms = require "lunaria"

local port, folder, iterations, clients, encrypt, seconds, authority = table.unpack(arg)
ms.set_seed(1)
local net = ms.nn.SequentialCell(ms.nn.Dense(6, 8), ms.nn.Tanh(), ms.nn.Dense(8, 3))
local window = tonumber(seconds) * 1000
local server = ms.federated.Server {
  config = {
    fl_name = "faults", fl_iteration_num = tonumber(iterations), server_mode = "FEDERATED_LEARNING", enable_ssl = false,
    round = { start_fl_job_threshold = tonumber(clients), start_fl_job_time_window = 60000, update_model_ratio = 1.0,
      update_model_time_window = window, global_iteration_time_window = 5 * window, poll = 50 },
    summary = { metrics_file = folder .. "/metrics.json", failure_event_file = folder .. "/failures.json" },
    encrypt = { encrypt_type = encrypt, pw_encrypt = { cipher_time_window = window, reconstruct_secrets_threshold = 2 } },
    client = { client_epoch_num = 1, client_learning_rate = 0.1 },
    client_verify = { pki_verify = authority ~= nil, root_first_ca_path = authority },
  },
  model = net, address = "127.0.0.1:" .. port, checkpoint_dir = folder .. "/server",
}
local function keep(map, name)
  local parts = {}
  for i, number in ipairs(map:vector():tolist()) do parts[i] = string.pack("<d", number) end
  local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
  assert(file:write(table.concat(parts)))
end
keep(ms.federated.FeatureMap(net), "begin.bin")
keep(server:run(3), "model.bin")
