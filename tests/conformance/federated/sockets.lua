-- The training of task.lua over sockets: a server and programs with several clients each.
--   sockets.run(SEED, ROUNDS, CLIENTS, STRATEGY, faults)         gives the weights of the server at the end
--   lunaria sockets.lua server FOLDER SEED ROUNDS CLIENTS STRATEGY [DEATHS]         a server, which writes its address into FOLDER
--   lunaria sockets.lua clients FOLDER SEED CLIENTS FIRST STEP [DEATHS]             the clients FIRST, FIRST + STEP, ...
-- With faults the server and each program of clients is killed (SIGKILL) once while the job goes on, and started again: a server when it
-- has finished an iteration, clients amid a training.
package.path = "tests/conformance/?.lua;" .. package.path
local ms = require "lunaria"
local task = require "federated.task"

local wait = require("lunaria.federated_client_core").wait

local SCRIPT, PROGRAMS = "tests/conformance/federated/sockets.lua", 3

local function quoted(text) return "'" .. tostring(text):gsub("'", "'\\''") .. "'" end

local function contents(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a"
end

-- Written whole or not at all.
local function write(path, text)
  local file = assert(io.open(path .. ".part", "wb"))
  assert(file:write(text))
  assert(file:close())
  assert(os.rename(path .. ".part", path))
end

-- Kills this program the first time.
local function die_once(path)
  if contents(path) then return end
  write(path, "killed")
  local process = contents("/proc/self/stat"):match "^%d+"
  os.execute("kill -9 " .. process)
end

local function serve(folder, seed, rounds, clients, strategy, deaths)
  local window = 60000
  local server
  server = ms.federated.Server {
    config = { fl_name = "sockets", fl_iteration_num = rounds, server_mode = "FEDERATED_LEARNING", enable_ssl = false,
      round = { start_fl_job_threshold = clients, start_fl_job_time_window = window, update_model_ratio = 1.0,
        update_model_time_window = window, global_iteration_time_window = 5 * window, poll = 20 },
      summary = { metrics_file = folder .. "/metrics.json", failure_event_file = folder .. "/failures.json" },
      encrypt = { encrypt_type = "NOT_ENCRYPT" },
      client = { client_epoch_num = task.epochs, client_learning_rate = task.lr, client_batch_size = task.batch_size } },
    strategy = ms.federated.strategies[strategy](), model = task.network(seed), checkpoint_dir = folder .. "/server",
    address = "127.0.0.1:" .. (contents(folder .. "/port") or 0),
    callback = {
      after_started = function() write(folder .. "/port", tostring(server.port)) end,
      on_iteration_end = function() if deaths then die_once(folder .. "/server.killed") end end,
    },
  }
  write(folder .. "/model", task.bits(server:run(3):vector()))
end

local function take_part(folder, seed, clients, first, step, deaths)
  local port
  for _ = 1, 600 do
    port = contents(folder .. "/port")
    if port then break end
    wait(50)
  end
  local inputs, labels, division = task.data(seed, clients)
  local parties = {}
  for number = first, clients, step do
    local batches, rows = {}, division[number]
    for from = 0, #rows - 1, task.batch_size do
      local some = rows[{ ms.slice(from, math.min(#rows, from + task.batch_size)) }]
      batches[#batches + 1] = { ms.ops.index_select(inputs, 0, some), ms.ops.index_select(labels, 0, some) }
    end
    parties[#parties + 1] = ms.federated.Client {
      url = "http://127.0.0.1:" .. port, fl_name = "sockets", client_id = ("client-%06d"):format(number), net = task.network(seed),
      loss_fn = ms.nn.CrossEntropyLoss(), samples = #rows, seed = number, state = ("%s/%d.state"):format(folder, number), backoff = 0.05,
      data = function(plan)
        if deaths and plan.iteration > 1 then die_once(("%s/clients-%d.killed"):format(folder, first)) end
        return batches
      end,
    }
  end
  while #parties > 0 do
    local least = math.huge
    for i = #parties, 1, -1 do
      local kind, seconds = parties[i]:step()
      if kind == "ended" then table.remove(parties, i) end
      least = math.min(least, kind == "wait" and seconds or 0)
    end
    if least > 0 and least < math.huge then wait(math.ceil(least * 1000)) end
  end
end

local sockets = {}

--- Gives the bits of the weights as task.bits has them, what the programs said, and how many were killed.
function sockets.run(seed, rounds, clients, strategy, faults)
  local folder = os.tmpname()
  os.remove(folder)
  ms.io.make_folder(folder)
  local program = require("lunaria.registry").program()
  -- A program that is killed starts again.
  local function start(name, ...)
    local words = { quoted(program), SCRIPT }
    for _, word in ipairs { ... } do words[#words + 1] = quoted(word) end
    local once = table.concat(words, " ")
    return ("(%s; while [ $? = 137 ]; do %s; done) >%s 2>&1 &"):format(once, once, quoted(("%s/%s.log"):format(folder, name)))
  end
  local lines = { start("server", "server", folder, seed, rounds, clients, strategy, faults and "deaths" or nil) }
  for first = 1, math.min(PROGRAMS, clients) do
    lines[#lines + 1] = start("clients-" .. first, "clients", folder, seed, clients, first, PROGRAMS, faults and "deaths" or nil)
  end
  os.execute("{ " .. table.concat(lines, " ") .. " wait; } 2>" .. quoted(folder .. "/shell.log"))
  local model, said = contents(folder .. "/model"), {}
  for _, name in ipairs { "server", "clients-1", "clients-2", "clients-3" } do
    said[#said + 1] = ("%s: %s"):format(name, contents(("%s/%s.log"):format(folder, name)) or "")
  end
  local deaths = 0
  for _, name in ipairs { "server", "clients-1", "clients-2", "clients-3" } do
    if contents(("%s/%s.killed"):format(folder, name)) then deaths = deaths + 1 end
  end
  os.execute("rm -rf " .. quoted(folder))
  return model, table.concat(said, "\n"), deaths
end

if arg and arg[0] and arg[0]:find "sockets%.lua$" then
  local role, folder = arg[1], arg[2]
  local function number(i) return math.tointeger(tonumber(arg[i])) end
  if role == "server" then
    serve(folder, number(3), number(4), number(5), arg[6], arg[7] ~= nil)
  else
    take_part(folder, number(3), number(4), number(5), number(6), arg[7] ~= nil)
  end
end

return sockets
