-- lunaria serve MODEL: the words of the command line.
local ms = require "lunaria"

local usage = [==[
usage: lunaria serve MODEL [options]      serve a model by HTTP until Ctrl-C or SIGTERM; what has arrived is still answered
  MODEL              a MindIR, ONNX or light (.lite) file; the folder of a language model, or its GGUF file
  --port P           default 8080; 0: any that is free
  --host A           the address to listen at (default 127.0.0.1); at any other a token is asked for
  --allow-host H     another name that clients may use for this machine; may be repeated
  --prefix P         before all addresses, such as /model
  --batch N          run at most N rows of waiting requests together (default 1: each by itself)
  --max-body M       the largest request, in MiB (default 64)
  --max-waiting N    requests that may wait (default 256); more get status 503
  --graph            run the network in graph mode
  --length N         places of a language model's caches (default: what it was made for)
  --quantize F       weights of a language model in blocks: q8_0 or q4_0
POST /predict: {"inputs": {name: numbers, ...}} as JSON, or safetensors (application/x-safetensors), or npy (application/x-npy)
POST /v1/chat/completions, /v1/completions: as OpenAI's interface has them, with "stream": true by server-sent events
GET /model, /v1/models, /health, /metrics]==]

local function fail(message, ...) error("lunaria serve: " .. message:format(...) .. "\n  hint: lunaria serve --help", 0) end

local kinds = {
  port = "number", host = "text", ["allow-host"] = "list", prefix = "text", batch = "number", ["max-body"] = "number",
  ["max-waiting"] = "number", graph = "flag", length = "number", quantize = "text",
}
local names = { ["allow-host"] = "allow_hosts", ["max-body"] = "most_body", ["max-waiting"] = "most_waiting" }

return function(...)
  local words, options, path = { ... }, {}, nil
  local i = 1
  while i <= #words do
    local word = words[i]
    local name, value = word:match "^%-%-([%w%-]+)=(.*)$"
    name = name or word:match "^%-%-([%w%-]+)$"
    local kind = name and kinds[name]
    if name == "help" then return print(usage) end
    if kind == "flag" then
      options[name] = true
    elseif kind then
      if not value then
        i = i + 1
        value = words[i] or fail("option --%s needs an argument", name)
      end
      if kind == "number" then value = math.tointeger(tonumber(value)) or fail("--%s needs a whole number, got '%s'", name, value) end
      local key = names[name] or name
      if kind == "list" then
        options[key] = options[key] or {}
        table.insert(options[key], value)
      else
        options[key] = value
      end
    elseif word:find "^%-" or path then
      fail("'%s' is not understood", word)
    else
      path = word
    end
    i = i + 1
  end
  if not path then fail "the model is missing" end
  if options.most_body then options.most_body = options.most_body << 20 end
  if options.graph then ms.set_context { mode = ms.GRAPH_MODE } end
  options.graph = nil
  local server <close> = ms.lite.serve(path, options)
  print(("%s serves %s\nCtrl-C, or lunaria insight stop --port %d, ends it"):format(server.url, path, server.port))
  io.stdout:flush()
  server:run()
  print "stopped"
end
