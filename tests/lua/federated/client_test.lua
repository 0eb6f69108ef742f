-- Clients and a server of a job in one program, over real sockets: what clients send is what the strategy, the encryption and the
-- compression say, whatever party has what.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"

local nn, ops = ms.nn, ms.ops

local function temporary()
  local path = os.tmpname()
  os.remove(path)
  ms.io.make_folder(path)
  return path
end

local function config_of(clients, changes)
  local folder = temporary()
  local config = {
    fl_name = "job", fl_iteration_num = 2, server_mode = "FEDERATED_LEARNING", enable_ssl = false,
    round = { start_fl_job_threshold = clients, start_fl_job_time_window = 20000, update_model_ratio = 1.0,
      update_model_time_window = 20000, global_iteration_time_window = 60000, poll = 5, seed = 3 },
    summary = { metrics_file = folder .. "/metrics", failure_event_file = folder .. "/failures" },
    client = { client_epoch_num = 1, client_learning_rate = 0.1 },
  }
  for key, value in pairs(changes or {}) do
    if type(value) == "table" and config[key] then
      for name, inner in pairs(value) do config[key][name] = inner end
    else
      config[key] = value
    end
  end
  return config, folder
end

local function network()
  ms.set_seed(1)
  return nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2))
end

local function batches_of(seed)
  ms.set_seed(seed)
  return { { ops.randn { 5, 3 }, ops.randn { 5, 2 } }, { ops.randn { 5, 3 }, ops.randn { 5, 2 } } }
end

-- Runs a job with so many clients; options(number) gives more options of one. Gives the server's map and the clients.
local function run(clients, changes, options, server_options)
  local config, folder = config_of(clients, changes)
  local server = ms.federated.Server { config = config, model = network(), address = "127.0.0.1:0", checkpoint_dir = folder,
    strategy = server_options and server_options.strategy, callback = server_options and server_options.callback }
  local url, all, left = server:start(), {}, clients
  for number = 1, clients do
    local given = { url = url, net = network(), loss_fn = nn.MSELoss(), data = batches_of(number), fl_name = config.fl_name,
      client_id = "client-" .. number, patience = 10.0, seed = number }
    for name, value in pairs(options and options(number) or {}) do given[name] = value end
    all[number] = ms.federated.Client(given)
  end
  local ended, until_time = {}, os.time() + 60
  while left > 0 do
    assert(os.time() < until_time, "the job does not end")
    server:step(0.005)
    for number, client in ipairs(all) do
      if not ended[number] and client:step() == "ended" then
        ended[number], left = true, left - 1
      end
    end
  end
  local map = server.jobs[1].map
  server:stop()
  return map, all
end

-- The same by hand: two rounds of weighted means.
local function by_hand(clients, rounds)
  local global = ms.federated.FeatureMap(network())
  for _ = 1, rounds do
    local sum, count
    for number = 1, clients do
      local net = network()
      global:load_into(net)
      local update = ms.federated.client_rules.train({ network = net, loss_fn = nn.MSELoss() }, batches_of(number), { lr = 0.1 }, {})
      local weighted = update.weights:vector(ms.float64) * update.samples
      sum, count = sum and sum + weighted or weighted, (count or 0) + update.samples
    end
    global = global:with_vector((sum / count):astype(ms.float32))
  end
  return global
end

local function most_apart(a, b) return ops.abs(a:vector(ms.float64) - b:vector(ms.float64)):max():item() end

t.test("clients of a job give what training by hand gives", function()
  local map, clients = run(2)
  t.equal(most_apart(map, by_hand(2, 2)) < 1e-6, true)
  -- The clients have the job's model at the end.
  for _, client in ipairs(clients) do
    t.equal(most_apart(ms.federated.FeatureMap(client.network), map), 0.0)
    t.equal(select(2, client:counts()), 2)
  end
end)

t.test("secure aggregation gives the same but for the steps of its fixed-point numbers", function()
  local expected = by_hand(3, 2)
  for _, kind in ipairs { "PW_ENCRYPT", "STABLE_PW_ENCRYPT" } do
    local pw_encrypt = { reconstruct_secrets_threshold = 2, cipher_time_window = 20000 }
    local map = run(3, { encrypt = { encrypt_type = kind, pw_encrypt = pw_encrypt } })
    t.equal(most_apart(map, expected) < 1e-6, true)
  end
end)

-- Parties that have different numbers of samples and of batches.
local function uneven(number)
  local data = batches_of(number)
  if number == 1 then data[2] = nil end
  if number == 3 then data[3] = { ops.randn { 7, 3 }, ops.randn { 7, 2 } } end
  return { data = data, samples = number }
end

local masked = { encrypt_type = "PW_ENCRYPT", pw_encrypt = { reconstruct_secrets_threshold = 2, cipher_time_window = 20000 } }

t.test("strategies whose sums are of more than weights give the same in secret", function()
  local S = ms.federated.strategies
  local made = {
    function() return S.FedNova { server_lr = 0.7 } end,
    function() return S.FedNova { weighted = false } end,
    function() return S.Scaffold() end,
    function() return S.QFedAvg { q = 0.5, settings = { lr = 0.1 } } end,
    function() return S.FedAvg { weighted = false } end,
    function() return S.PersonalHead({ "2" }, { strategy = S.FedNova() }) end,
  }
  for _, make in ipairs(made) do
    local changes = { fl_iteration_num = 3 }
    local plain = run(3, changes, uneven, { strategy = make() })
    local file = os.tmpname()
    changes.encrypt, changes.summary = masked, { metrics_file = file }
    local hidden = run(3, changes, uneven, { strategy = make() })
    -- A job of shared layers has the first of them alone.
    local now, begun = hidden:vector(ms.float64), ms.federated.FeatureMap(network()):vector(ms.float64)
    t.equal(ops.abs(now - begun:narrow(0, 0, now.size)):max():item() > 1e-2, true)
    t.equal(most_apart(hidden, plain) < 2e-6, true)
    -- What is hidden is not told in the open.
    for line in io.lines(file) do
      local metrics = ms.json.decode(line).metrics
      t.equal({ metrics.normalizer == nil, metrics.initial_loss == nil, metrics.loss ~= nil }, { true, true, true })
    end
  end
end)

t.test("what secure sums cannot do is refused by name", function()
  local S = ms.federated.strategies
  local function with(strategy, pw)
    local pw_encrypt = { reconstruct_secrets_threshold = 2, cipher_time_window = 20000 }
    for name, value in pairs(pw or {}) do pw_encrypt[name] = value end
    return run(2, { encrypt = { encrypt_type = "PW_ENCRYPT", pw_encrypt = pw_encrypt } }, nil, { strategy = strategy })
  end
  t.fails({ "hides updates from the server, and the strategy Scaffold needs each of them" }, with, S.Scaffold { weighted = true })
  t.fails({ "the strategy Median needs each of them" }, with, S.Median())
  t.fails({ "sums of the strategy FedNova need at least 2" }, with, S.FedNova(), { clip = 1.5 })
  t.fails({ "beyond clip (0.001)" }, with, S.FedAvg(), { clip = 0.001 })
  t.fails({ "the weight must be from 1 to 3, got 10" }, with, S.FedAvg(), { most_samples = 3 })
end)

t.test("a client that goes away after the shares is made good", function()
  local config, folder = config_of(3, { fl_iteration_num = 1, round = { update_model_ratio = 0.6, update_model_time_window = 300 },
    encrypt = { encrypt_type = "PW_ENCRYPT", pw_encrypt = { reconstruct_secrets_threshold = 2, cipher_time_window = 5000 } } })
  local server = ms.federated.Server { config = config, model = network(), address = "127.0.0.1:0", checkpoint_dir = folder }
  local url, clients, gone = server:start(), {}, false
  for number = 1, 3 do
    clients[number] = ms.federated.Client { url = url, net = network(), loss_fn = nn.MSELoss(), fl_name = "job", client_id = "c" .. number,
      data = function()
        if number == 2 then gone = true end
        return batches_of(number)
      end }
  end
  local ended = 0
  while ended < 2 do
    server:step(0.005)
    for number, client in pairs(clients) do
      local kind = client:step()
      if number == 2 and gone then clients[2] = nil end
      if kind == "ended" then clients[number], ended = nil, ended + 1 end
    end
  end
  local map = server.jobs[1].map
  server:stop()
  t.equal(most_apart(map, ms.federated.FeatureMap(network())) > 1e-3, true)
end)

t.test("rules keep their state from round to round, and it is in the file", function()
  local folder = temporary()
  local seen = {}
  local function rule(net, data, settings, state)
    seen[#seen + 1] = { count = state.count or 0, vector = state.vector and state.vector:sum():item() or 0.0 }
    state.count, state.vector = (state.count or 0) + 1, (state.vector or ms.zeros { 2 }) + 1.5
    return ms.federated.client_rules.train(net, data, { lr = settings.lr }, {})
  end
  run(1, { fl_iteration_num = 3 }, function() return { rule = rule, state = folder .. "/state" } end)
  t.equal(seen, { { count = 0, vector = 0.0 }, { count = 1, vector = 3.0 }, { count = 2, vector = 6.0 } })
end)

t.test("SCAFFOLD's control variates travel both ways", function()
  local map = run(2, { fl_iteration_num = 3, client = { client_epoch_num = 3 } }, nil, { strategy = ms.federated.strategies.Scaffold() })
  local plain = run(2, { fl_iteration_num = 3, client = { client_epoch_num = 3 } })
  t.equal(most_apart(map, plain) > 1e-6, true)
end)

t.test("compressed updates arrive", function()
  local full = by_hand(2, 2)
  local map = run(2, { compression = { upload_compress_type = "DIFF_SPARSE_QUANT", upload_sparse_rate = 1.0 } })
  t.equal(most_apart(map, full) < 5e-3, true)
  map = run(2, { compression = { download_compress_type = "QUANT" } })
  t.equal(most_apart(map, full) < 2e-2, true)
end)

t.test("SignDS and local noise change the model within their bounds", function()
  local start = ms.federated.FeatureMap(network())
  local map = run(2, { encrypt = { encrypt_type = "SIGNDS", signds = { sign_k = 0.25, sign_dim_out = 3, sign_global_lr = 0.01 } } })
  local moved = most_apart(map, start)
  t.equal(moved > 0 and moved <= 0.021, true)
  map = run(2, { encrypt = { encrypt_type = "DP_ENCRYPT", dp_encrypt = { dp_eps = 1e4, dp_delta = 0.1, dp_norm_clip = 0.01 } } })
  moved = ops.sqrt(ops.square(map:vector() - start:vector()):sum()):item()
  t.equal(moved > 0 and moved < 0.2, true)
end)

t.test("callbacks, evaluation and metrics", function()
  local said, pushed = {}, {}
  run(1, nil, function()
    return {
      evaluate = function(client) return { first = client:model_inference(ms.ones { 1, 3 }):sum():item() } end,
      push_metrics = true,
      callbacks = {
        on_train_begin = function(_, plan) said[#said + 1] = ("train %d/%d"):format(plan.iteration, plan.iterations) end,
        on_iteration_finished = function(_, result)
          said[#said + 1] = ("done %d, loss %s"):format(result.iteration, math.type(result.metrics.loss))
          pushed[#pushed + 1] = result.evaluation.first
        end,
      },
    }
  end)
  t.equal(said, { "train 1/2", "done 1, loss float", "train 2/2", "done 2, loss float" })
  t.equal(#pushed, 2)
end)

t.test("an asynchronous job aggregates whenever its buffer is full", function()
  local S = ms.federated.strategies
  -- Two parties that fill the buffer: as in rounds, where all count the same.
  local map = run(2, { fl_iteration_num = 3 }, uneven, { strategy = S.FedBuff { buffer = 2 } })
  t.equal(most_apart(map, run(2, { fl_iteration_num = 3 }, uneven, { strategy = S.FedAvg { weighted = false } })) < 1e-6, true)
  -- One party: half of the way to its weights each time.
  map = run(1, nil, nil, { strategy = S.FedAsync { alpha = 0.5 } })
  t.equal(most_apart(map, run(1, nil, nil, { strategy = S.FedAvg { server_lr = 0.5 } })) < 1e-6, true)
  -- Three parties and a buffer of two: the third one's update is of an older model.
  local seen, buffered = {}, S.FedBuff { buffer = 2 }
  local aggregate = buffered.aggregate
  function buffered.aggregate(self, round, global, updates)
    for _, update in ipairs(updates) do seen[#seen + 1] = ("%d %s %d"):format(round.number, update.id, update.staleness) end
    return aggregate(self, round, global, updates)
  end
  run(3, { fl_iteration_num = 4 }, uneven, { strategy = buffered })
  t.equal({ #seen, seen[1], seen[2], seen[3]:sub(1, 1) }, { 8, "1 client-1 0", "1 client-2 0", "2" })
  t.equal(table.concat(seen, ","):find "client%-3 1" ~= nil, true)
end)

t.test("in hybrid training a worker on the server trains between iterations", function()
  local function moved(map) return map:with_vector(map:vector() + 0.25) end
  local config, folder = config_of(2, { server_mode = "HYBRID_TRAINING" })
  local server = ms.federated.Server { config = config, model = network(), address = "127.0.0.1:0", checkpoint_dir = folder }
  local url, ended, pushed, reason = server:start(), 0, 0, nil
  local function client(name, data)
    return ms.federated.Client { url = url, net = network(), loss_fn = nn.MSELoss(), data = data, fl_name = "job", client_id = name }
  end
  local clients, worker = { client("a", batches_of(1)), client("b", batches_of(2)) }, client("worker", {})
  while ended < 2 do
    server:step(0.005)
    local map, version = worker:get_model()
    if version > pushed then
      moved(map):load_into(worker.network)
      pushed = version
      local taken
      taken, reason = worker:push_weights(nil, version)
      t.equal(taken, version < 2 or nil)
      if version < 2 then t.equal({ worker:push_weights(map, version - 1) }, { nil, "the weights go on from the model of iteration 0, "
        .. "and the job has that of iteration 1" }) end
    end
    for i, one in pairs(clients) do
      if one:step() == "ended" then clients[i], ended = nil, ended + 1 end
    end
  end
  local map = server.jobs[1].map
  t.equal(reason, "the job is over")
  local some = ms.federated.FeatureMap { ["0.weight"] = ms.ones { 4, 3 } }
  t.fails({ "the feature '0.bias' is missing" }, worker.push_weights, worker, some, 2)
  server:stop()
  -- The strategy does the same on the server, also after the last iteration.
  local hybrid = ms.federated.strategies.Hybrid(function(_, new) return moved(new) end)
  local same = run(2, { server_mode = "HYBRID_TRAINING" }, nil, { strategy = hybrid })
  t.equal(most_apart(moved(map), same) < 1e-6, true)
  t.fails({ "server_mode HYBRID_TRAINING has iterations" }, run, 2, { server_mode = "HYBRID_TRAINING" }, nil,
    { strategy = ms.federated.strategies.FedBuff() })
end)

t.test("get_model has the weights of the moment", function()
  local config, folder = config_of(1)
  local server = ms.federated.Server { config = config, model = network(), address = "127.0.0.1:0", checkpoint_dir = folder }
  local client = ms.federated.Client { url = server:start(), net = nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2)),
    loss_fn = nn.MSELoss(), data = {}, fl_name = "job", client_id = "a" }
  local map, version = client:get_model()
  t.equal(version, 0)
  t.equal(most_apart(map, ms.federated.FeatureMap(network())), 0.0)
  t.equal(most_apart(ms.federated.FeatureMap(client.network), map), 0.0)
  client:push_metrics { accuracy = 0.5 }
  client:close()
  server:stop()
end)

t.test("a network that is not the job's is an error", function()
  local config, folder = config_of(1)
  local server = ms.federated.Server { config = config, model = network(), address = "127.0.0.1:0", checkpoint_dir = folder }
  local url = server:start()
  local function client(net)
    return ms.federated.Client { url = url, net = net, loss_fn = nn.MSELoss(), data = batches_of(1), fl_name = "job", client_id = "a" }
  end
  local function until_error(one)
    for _ = 1, 200 do
      server:step(0.005)
      one:step()
    end
  end
  t.fails({ "has the feature '0.weight', and the network has no such parameter" }, until_error, client(nn.Dense(3, 2)))
  local wide = nn.SequentialCell(nn.Dense(3, 5), nn.Tanh(), nn.Dense(5, 2))
  t.fails({ "has the shape (5, 3), and the job's model (4, 3)" }, until_error, client(wide))
  server:stop()
end)

t.test("options that make no sense are errors", function()
  local function try(changes)
    local given = { url = "http://127.0.0.1:1", net = network(), data = {}, fl_name = "job" }
    for name, value in pairs(changes) do given[name] = value end
    ms.federated.Client(given)
  end
  t.fails({ "url must be http://host:port" }, try, { url = "localhost:80" })
  t.fails({ "url must be http://host:port" }, try, { url = "http://a/b?c" })
  t.fails({ "net must be a cell" }, try, { net = 3 })
  t.fails({ "data must be batches" }, try, { data = 3 })
  t.fails({ "did you mean 'prox'" }, try, { rule = "proxx" })
  t.fails({ "patience must be a positive number" }, try, { patience = 0 })
  t.fails({ "upload_limit must not be negative" }, try, { upload_limit = -1 })
  t.fails({ "ssl is for https" }, try, { ssl = {} })
  t.fails({ "did you mean 'ca_cert_path'" }, try, { url = "https://127.0.0.1:1", ssl = { ca_cert_pat = "x" } })
  t.fails({ "there is no file '/nowhere'" }, try, { url = "https://127.0.0.1:1", ssl = { ca_cert_path = "/nowhere" } })
  t.fails({ "needs a client_id" }, try, { state = "/tmp/x" })
  t.fails({ "must have 32 bytes, got 5" }, try, { signing = { key = "short" } })
  t.fails({ "did you mean 'on_iteration_finished'" }, try, { callbacks = { on_iteration_finish = print } })
  t.fails({ "samples must be positive" }, try, { samples = 0 })
end)

t.finish()
