-- lunaria federated demo: a server and its clients on one machine, each a program of its own, which train a network on
-- Fashion-MNIST. The clients' data differ: each has more of some classes than of others.

local usage = [==[
usage: lunaria federated demo [options]     a server and five clients on this machine train on Fashion-MNIST
  --clients N      default 5
  --rounds N       default 5
  --samples N      pictures of each client (default 1000)
  --secure         secure aggregation: the server sees the sum of the updates alone
  --data D         the folder of the four .idx.gz files (default /usr/share/datasets/fashion-mnist)
  --keep D         leave the server's and the clients' files in a folder]==]

local function fail(message, ...)
  error("lunaria federated demo: " .. message:format(...) .. "\n  hint: lunaria federated demo --help", 0)
end

local M = { usage = usage }

local numbers = { clients = true, rounds = true, samples = true }
local texts = { data = true, keep = true }

local function parsed(words)
  local options = { clients = 5, rounds = 5, samples = 1000, data = "/usr/share/datasets/fashion-mnist" }
  local i = 1
  while i <= #words do
    local name, value = words[i]:match "^%-%-([%w%-]+)=(.*)$"
    name = name or words[i]:match "^%-%-([%w%-]+)$"
    if name == "help" then return nil end
    if name == "secure" and not value then
      options.secure = true
    elseif name and (numbers[name] or texts[name]) then
      if not value then
        i = i + 1
        value = words[i] or fail("option --%s needs an argument", name)
      end
      if numbers[name] then
        local number = math.tointeger(tonumber(value))
        if not number or number < 1 or number > 100000 then fail("--%s needs a positive whole number, got '%s'", name, value) end
        value = number
      end
      options[name] = value
    else
      fail("'%s' is not understood", words[i])
    end
    i = i + 1
  end
  if options.secure and options.clients < 2 then fail("--secure needs two clients or more") end
  return options
end

local function network()
  local nn = require("lunaria").nn
  return nn.SequentialCell(nn.Flatten(), nn.Dense(784, 64), nn.ReLU(), nn.Dense(64, 10))
end

local function pictures(folder, name)
  local ms = require "lunaria"
  local path = ("%s/%s-images-idx3-ubyte.gz"):format(folder, name)
  local file = io.open(path, "rb")
  if not file then fail("%s is not there: the Debian package dataset-fashion-mnist has it, or --data", path) end
  file:close()
  return ms.load_idx(path), ms.load_idx(("%s/%s-labels-idx1-ubyte.gz"):format(folder, name))
end

local function inputs(images) return (images:cast(require("lunaria").float32) - 72.9) / 90.0 end

-- The rows of a client: of its own pictures, those of half of the classes first, which are other classes for each client.
local function rows_of(labels, client, clients, samples)
  local liked, others = {}, {}
  for i = client - 1, #labels - 1, clients do
    local class = labels[i + 1]
    local list = (class + client) % 10 < 5 and liked or others
    list[#list + 1] = i
  end
  local rows, liked_count = {}, samples * 4 // 5
  for i = 1, math.min(liked_count, #liked) do rows[#rows + 1] = liked[i] end
  for i = 1, math.min(samples - #rows, #others) do rows[#rows + 1] = others[i] end
  return rows
end

--- The client's side: what its file gives to `lunaria federated client`.
function M.party(folder, client, clients, samples)
  local ms = require "lunaria"
  local images, labels = pictures(folder, "train")
  local rows = ms.tensor(rows_of(labels:tolist(), client, clients, samples), ms.int64)
  local x, y = inputs(images:index_select(0, rows)), labels:index_select(0, rows):cast(ms.int32)
  return {
    net = network(), loss_fn = ms.nn.CrossEntropyLoss(), samples = #rows,
    data = function(plan)
      local list, size = {}, plan.batch_size
      for first = 0, #rows - 1, size do
        local part = { ms.slice(first, math.min(first + size, #rows)) }
        list[#list + 1] = { x[part], y[part] }
      end
      return list
    end,
  }
end

local function accuracy(net, x, y)
  local ms = require "lunaria"
  net:set_train(false)
  local right = 0
  for first = 0, #x - 1, 2000 do
    local part = { ms.slice(first, math.min(first + 2000, #x)) }
    right = right + ms.ops.equal(ms.ops.argmax(net(x[part]), 1), y[part]:cast(ms.int64)):cast(ms.float32):sum():item()
  end
  return right / #x
end

local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- Starts the clients as programs in the background; they end by themselves.
local function start_clients(options, url, folder)
  local path = folder .. "/party.lua"
  local file = assert(io.open(path, "w"))
  file:write("local folder, client, clients, samples = ...\n",
    "return require(\"lunaria.federated.demo\").party(folder, tonumber(client), tonumber(clients), tonumber(samples))\n")
  assert(file:close())
  local program = require("lunaria.registry").program()
  for client = 1, options.clients do
    local words = { "LUNARIA_NUM_THREADS=1", quoted(program), "federated client", quoted(path), "--url", quoted(url),
      "--fl-name demo --client-id", "client-" .. client, "--state", quoted(("%s/client-%d.state"):format(folder, client)),
      "--patience 60 --quiet --", quoted(options.data), client, options.clients, options.samples }
    local log = quoted(("%s/client-%d.log"):format(folder, client))
    assert(os.execute(table.concat(words, " ") .. " >" .. log .. " 2>&1 &"))
  end
end

-- The configuration of the job: windows in which this machine can do it, and a threshold that all clients reach.
local function configuration(options, folder)
  local config = {
    fl_name = "demo", fl_iteration_num = options.rounds, server_mode = "FEDERATED_LEARNING", enable_ssl = false,
    round = { start_fl_job_threshold = options.clients, start_fl_job_time_window = 60000, update_model_ratio = 1.0,
      update_model_time_window = 120000, global_iteration_time_window = 300000 },
    client = { client_epoch_num = 1, client_batch_size = 32, client_learning_rate = 0.05 },
    encrypt = { encrypt_type = "NOT_ENCRYPT" },
    summary = { metrics_file = folder .. "/metrics.json", failure_event_file = folder .. "/failures.json" },
  }
  if options.secure then
    config.encrypt = { encrypt_type = "PW_ENCRYPT", pw_encrypt = { share_secrets_ratio = 1.0, cipher_time_window = 60000,
      reconstruct_secrets_threshold = math.max(2, options.clients * 2 // 3) } }
  end
  return config
end

function M.run(words)
  local options = parsed(words)
  if not options then return print(usage) end
  local ms = require "lunaria"
  local images, labels = pictures(options.data, "t10k")
  local x, y = inputs(images), labels
  local folder = options.keep or os.tmpname()
  if not options.keep then os.remove(folder) end
  ms.io.make_folder(folder)
  ms.set_seed(1)
  local net = network()
  print(("%d clients with %d pictures each, %d rounds%s"):format(options.clients, options.samples, options.rounds,
    options.secure and ", secure aggregation" or ""))
  print(("before:  accuracy %.4f"):format(accuracy(net, x, y)))
  local started = ms.clock()
  local server = ms.federated.Server {
    config = configuration(options, folder), model = net, address = "127.0.0.1:0", checkpoint_dir = folder .. "/server",
    callback = {
      after_started = function(context) start_clients(options, context.server.url, folder) end,
      on_iteration_end = function(context)
        context.feature_map:load_into(net)
        local result = context.iteration_valid and "" or ", failed: " .. context.reason
        print(("round %d: accuracy %.4f%s"):format(context.iteration_num, accuracy(net, x, y), result))
        io.stdout:flush()
      end,
    },
  }
  server:run(1)
  print(("done in %.1f s"):format((ms.clock() - started) / 1e9))
  if not options.keep then os.execute("rm -rf " .. quoted(folder)) end
end

return M
