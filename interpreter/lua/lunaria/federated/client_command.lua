-- lunaria federated client FILE: a party of a job, as a file says.

local usage = [==[
usage: lunaria federated client FILE [options] [-- ARG...]     a party of a federated job
  FILE gives a table: net, data, and whatever else ms.federated.Client takes; or a function of ARG... that gives one
  --url U, --fl-name N, --client-id C, --rule R, --state F    as those of ms.federated.Client; they go before what FILE says
  --ca-cert F, --client-cert F, --client-key F, --client-password P, --crl F    of https
  --iterations N       how many it takes part in (default: all)
  --patience S         seconds for which a request is repeated (default 120)
  --upload-limit B, --download-limit B    bytes per second
  --signing            requests are signed by a key of the client's
  --graph              in graph mode
  --quiet              prints errors alone]==]

local function fail(message, ...)
  error("lunaria federated client: " .. message:format(...) .. "\n  hint: lunaria federated client --help", 0)
end

local texts = { url = "url", ["fl-name"] = "fl_name", ["client-id"] = "client_id", rule = "rule", state = "state" }
local ssl = { ["ca-cert"] = "ca_cert_path", ["client-cert"] = "client_cert_path", ["client-key"] = "client_key_path",
  ["client-password"] = "client_password", crl = "crl_path" }
local numbers = { iterations = "iterations", patience = "patience", ["upload-limit"] = "upload_limit",
  ["download-limit"] = "download_limit", seed = "seed" }
local flags = { signing = true, graph = true, quiet = true }

-- The options by the names of ms.federated.Client, the file, and its arguments.
local function parsed(words)
  local given, files, rest, i = {}, {}, {}, 1
  while i <= #words do
    local word = words[i]
    if word == "--" then
      table.move(words, i + 1, #words, 1, rest)
      break
    end
    local name, value = word:match "^%-%-([%w%-]+)=(.*)$"
    name = name or word:match "^%-%-([%w%-]+)$"
    if name and flags[name] and not value then
      given[name] = true
    elseif name and (texts[name] or ssl[name] or numbers[name]) then
      if not value then
        i = i + 1
        value = words[i] or fail("option --%s needs an argument", name)
      end
      if numbers[name] then
        given[numbers[name]] = tonumber(value) or fail("--%s needs a number, got '%s'", name, value)
      elseif ssl[name] then
        given.ssl = given.ssl or {}
        given.ssl[ssl[name]] = value
      else
        given[texts[name]] = value
      end
    elseif word:find "^%-" then
      fail("'%s' is not understood", word)
    else
      files[#files + 1] = word
    end
    i = i + 1
  end
  if #files ~= 1 then fail(#files == 0 and "the file is missing" or "one file is expected") end
  return given, files[1], rest
end

local function described(result)
  local parts = { ("iteration %d of %d"):format(result.iteration, result.iterations or 0) }
  for _, list in ipairs { result.metrics or {}, result.evaluation or {} } do
    local names = {}
    for name in pairs(list) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do parts[#parts + 1] = ("%s %.5g"):format(name, list[name]) end
  end
  if not result.valid then parts[#parts + 1] = result.reason end
  return table.concat(parts, ", ")
end

local M = { usage = usage }

function M.run(words)
  for _, word in ipairs(words) do
    if word == "--help" then return print(usage) end
    if word == "--" then break end
  end
  local given, file, rest = parsed(words)
  local ms = require "lunaria"
  if given.graph then ms.set_context { mode = ms.GRAPH_MODE } end
  local chunk, problem = loadfile(file)
  if not chunk then fail("%s", problem) end
  local a = chunk(table.unpack(rest))
  if type(a) == "function" then a = a(table.unpack(rest)) end
  if type(a) ~= "table" then fail("%s must give a table such as { net = net, data = batches }, got a %s", file, type(a)) end
  local options, quiet = {}, given.quiet
  for name, value in pairs(a) do options[name] = value end
  for name, value in pairs(given) do
    if not flags[name] then options[name] = value end
  end
  if given.signing then options.signing = options.signing or true end
  local own = options.callbacks or {}
  options.callbacks = {}
  for name, callback in pairs(own) do options.callbacks[name] = callback end
  local function say(...)
    if not quiet then
      print(...)
      io.stdout:flush()
    end
  end
  local before = own.on_iteration_finished
  options.callbacks.on_iteration_finished = function(client, result)
    say(("%s: %s"):format(client.client_id, described(result)))
    if before then before(client, result) end
  end
  local client = ms.federated.Client(options)
  local updates, reason = client:run()
  local _, _, repeats = client:counts()
  say(("%s: %d updates were taken, %d requests were sent again; %s"):format(client.client_id, updates, repeats, reason))
end

return M
