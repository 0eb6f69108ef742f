-- lunaria federated COMMAND: the words of the command line.
local ms = require "lunaria"

local usage = [==[
usage: lunaria federated server --config F [options]     serve a federated job until it is over, or Ctrl-C or SIGTERM
  --config F               YAML or JSON: every key is checked; lunaria federated keys lists them
  --address A              host:port for clients (default: the configuration's server.http_server_address)
  --manage-address A       host:port for administrators
  --checkpoint-dir D       a folder for models and the state
  --model M                the first model: weights (.ckpt, .safetensors), a network (.mindir), or a Lua file that gives one
  --password-file F        a file with the password of the server's certificate
  --linger S               seconds for which clients are told that the job is over (default 5)
usage: lunaria federated check --config F                read a configuration and say what is wrong with it
usage: lunaria federated keys                            all keys of configurations
usage: lunaria federated client FILE [options]           a party of a job; lunaria federated client --help
usage: lunaria federated demo [options]                  a server and five clients here; lunaria federated demo --help]==]

local function fail(message, ...) error("lunaria federated: " .. message:format(...) .. "\n  hint: lunaria federated --help", 0) end

-- The options among words, which all have an argument.
local function parsed(words, known)
  local options, i = {}, 1
  while i <= #words do
    local name, value = words[i]:match "^%-%-([%w%-]+)=(.*)$"
    name = name or words[i]:match "^%-%-([%w%-]+)$"
    if not name or not known[name] then fail("'%s' is not understood", words[i]) end
    if not value then
      i = i + 1
      value = words[i] or fail("option --%s needs an argument", name)
    end
    options[name], i = value, i + 1
  end
  return options
end

local function model_of(path)
  if not path or not path:find "%.lua$" then return path end
  local chunk, problem = loadfile(path)
  if not chunk then fail("%s", problem) end
  local model = chunk()
  if model == nil then fail("%s gives no model: it ends with `return net`", path) end
  return model
end

local function password_of(path)
  if not path then return nil end
  local file = io.open(path, "rb") or fail("%s cannot be read", path)
  local text = file:read "a"
  file:close()
  return ms.federated.SSLConfig((text:gsub("[\r\n]+$", "")))
end

-- The configuration in a file. What is wrong with it is told as what is wrong with the command: nothing of ours is the user's line.
local function config_of(options)
  local path = options.config or fail "--config is missing"
  local ok, config = pcall(ms.federated.read_config, path)
  return ok and config or fail("%s", config)
end

local commands = {}

function commands.server(words)
  local options = parsed(words, { config = true, address = true, ["manage-address"] = true, ["checkpoint-dir"] = true, model = true,
    ["password-file"] = true, linger = true })
  config_of(options)
  local server = ms.federated.Server {
    config = options.config, address = options.address, manage_address = options["manage-address"],
    checkpoint_dir = options["checkpoint-dir"], model = model_of(options.model), ssl_config = password_of(options["password-file"]),
  }
  local linger = tonumber(options.linger or 5) or fail("--linger needs a number, got '%s'", options.linger)
  print(("%s answers clients of %s"):format(server:start(), server.config.fl_name))
  if server.manage_url then print(("%s answers administrators"):format(server.manage_url)) end
  io.stdout:flush()
  server:run(linger)
  print(("%s: version %d of the model"):format(server.config.fl_name, server.jobs[1].version))
end

function commands.check(words)
  local options = parsed(words, { config = true })
  local config = config_of(options)
  print(("%s is a configuration of %s"):format(options.config, config.fl_name))
end

function commands.keys(words)
  parsed(words, {})
  for _, row in ipairs(require "lunaria.federated.config_keys") do
    local default = row.required and "required" or row.default ~= nil and tostring(row.default) or "none"
    print(("%-50s %s (%s)"):format(row[1], row.doc, default))
  end
end

-- Commands in files of their own: a table of usage, the text of its help, and run(words).
local files = { client = "lunaria.federated.client_command", demo = "lunaria.federated.demo" }

return function(...)
  local words = { ... }
  local name = table.remove(words, 1)
  if files[name] then return require(files[name]).run(words) end
  for _, word in ipairs(words) do
    if word == "--help" then name = "--help" end
  end
  if name == nil or name == "--help" or name == "-h" then return print(usage) end
  local command = commands[name] or fail("there is no command '%s'", name)
  command(words)
end
