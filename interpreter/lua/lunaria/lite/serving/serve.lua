-- ms.lite.serve: a model behind an HTTP server of this process. The server's threads bring requests; they are answered by the thread
-- that calls run() or step().
local ms = require "lunaria"
local core = require "lunaria.serving"
local arguments = require "lunaria.nn.arguments"
local completions = require "lunaria.lite.serving.completions"
local models = require "lunaria.lite.serving.models"
local predict = require "lunaria.lite.serving.predict"

local Server = {}
Server.__index = Server
Server.__name = "model server"

function Server:__tostring()
  return self._handle and ("%s serves %s"):format(self.url, self.model.name) or "a model server that was stopped"
end

local function answer_json(exchange, status, value) core.answer(exchange, status, "application/json", ms.json.encode(value)) end

-- Errors of OpenAI's interface are tables, those of the others sentences.
local function refuse(exchange, path, status, sentence)
  if path:find "^v1/" then
    local kind = status < 500 and "invalid_request_error" or "server_error"
    answer_json(exchange, status, { error = { message = sentence, type = kind, code = status } })
  else
    answer_json(exchange, status, { error = sentence })
  end
end

local function about(model)
  return { name = model.name, kind = model.kind, inputs = model.inputs and ms.json.array(model.inputs),
    outputs = model.outputs and ms.json.array(model.outputs), tokens = model.tokenizer and #model.tokenizer or nil }
end

-- What is asked for by GET; the address says what it is.
local pages = {
  [""] = about, model = about,
  ["v1/models"] = function(model)
    return { object = "list", data = ms.json.array { { id = model.name, object = "model", owned_by = "local" } } }
  end,
}
local forms = { ["v1/chat/completions"] = "chat.completion", ["v1/completions"] = "text_completion" }

-- Further requests that wait for a prediction and can run together with the first one.
function Server:_gathered(first, exchange)
  local requests, exchanges, rows = { first }, { exchange }, first.rows
  local is_open = first.rows and (not self.model.inputs[1].shape or (self.model.inputs[1].shape[1] or 0) < 0)
  while is_open and rows < self._batch do
    local other = core.next(self._handle, 0)
    if not other then break end
    local method, path, type, body = core.request(other)
    local fine, request = false, nil
    if method == "POST" and path == "predict" then fine, request = pcall(predict.read, self.model, type, body) end
    if fine and request.key == first.key and request.rows and rows + request.rows <= self._batch then
      requests[#requests + 1], exchanges[#exchanges + 1], rows = request, other, rows + request.rows
    else
      self._held[#self._held + 1] = other
      break
    end
  end
  return requests, exchanges
end

function Server:_predict(exchange, type, body)
  local requests, exchanges = self:_gathered(predict.read(self.model, type, body), exchange)
  predict.run(self.model, requests)
  self.runs = self.runs + 1
  for i, request in ipairs(requests) do
    local fine, content, content_type = true, nil, nil
    if not request.problem then fine, content, content_type = pcall(predict.written, self.model, request) end
    if request.problem then
      refuse(exchanges[i], "predict", 400, request.problem)
    elseif fine then
      core.answer(exchanges[i], 200, content_type, content)
    else
      refuse(exchanges[i], "predict", 500, (predict.sentence_of(content)))
    end
  end
end

function Server:_answer(exchange)
  local method, path, type, body = core.request(exchange)
  local reads = method == "GET" or method == "HEAD"
  if reads and pages[path] then return answer_json(exchange, 200, pages[path](self.model)) end
  local form = forms[path]
  if path ~= "predict" and not form then predict.refuse(404, "there is nothing at /%s", path) end
  if method ~= "POST" then predict.refuse(405, "/%s is asked by POST", path) end
  if form then
    if self.model.kind ~= "language" then predict.refuse(400, "the model is no language model: ask /predict") end
    if not type:find "^application/json" then predict.refuse(415, "the content must be application/json") end
    return completions.answer(exchange, self.model, form, body)
  end
  if self.model.kind ~= "network" then predict.refuse(400, "the model is a language model: ask /v1/chat/completions") end
  return self:_predict(exchange, type, body)
end

--- Answers the next request, waiting for one at most so many seconds (default: not at all): whether there was one; nil when the server
--- has ended.
function Server:step(seconds)
  if not self._handle then return nil end
  local exchange, has_ended = table.remove(self._held, 1), false
  if not exchange then exchange, has_ended = core.next(self._handle, seconds or 0) end
  if not exchange then
    if has_ended then return nil end
    return false
  end
  local fine, problem = pcall(self._answer, self, exchange)
  if not fine then
    local sentence, status = predict.sentence_of(problem)
    local _, path = core.request(exchange)
    -- Does nothing where a stream has begun.
    refuse(exchange, path, status or 500, sentence)
    core.finish(exchange)
  end
  return true
end

--- Answers requests until SIGTERM or Ctrl-C, or until another program ends the server; what has arrived is still answered.
function Server:run()
  core.signals(true)
  local _ <close> = setmetatable({}, { __close = function() core.signals(false) end })
  local drains = false
  while self:step(0.1) ~= nil do
    if core.is_end_wanted() and not drains then
      drains = true
      core.drain(self._handle)
    end
  end
end

--- Ends the server; a second time does nothing.
function Server:stop()
  if self._handle then core.stop(self._handle) end
  self._handle = nil
end
Server.__gc, Server.__close = Server.stop, Server.stop

local function positive(value) return math.type(value) == "integer" and value > 0, "a positive integer" end
local known = {
  host = "string", prefix = "string", batch = positive, most_body = positive, most_waiting = positive, length = positive,
  quantize = "string", tokenizer = "table",
  port = function(value) return math.type(value) == "integer" and value >= 0 and value <= 65535, "an integer from 0 to 65535" end,
  allow_hosts = function(value)
    local fine = type(value) == "table"
    for _, host in ipairs(fine and value or {}) do fine = fine and type(host) == "string" end
    return fine, "a list of names"
  end,
}

--- Serves a model by HTTP, as `lunaria serve` does. model: the path of a MindIR, ONNX or light file, a folder of a language model or a
--- GGUF file; or a decoder, with its tokenizer as an option. Networks are asked at /predict by JSON ({"inputs": {name: numbers}}),
--- safetensors or npy; language models at /v1/chat/completions and /v1/completions, as OpenAI's are, also by server-sent events.
--- /model, /health and /metrics say how it is. options: port (8080; 0: any that is free), host (127.0.0.1; at any other a token is asked
--- for, which `url` has), allow_hosts, prefix, batch (rows of waiting requests that run together, default 1: none; for networks that
--- treat the rows of their inputs one by one), most_body (bytes of a request, 64 MiB), most_waiting (requests, 256), and for language
--- models length and quantize as load_decoder has them. Gives a server: run() answers until it is ended, step() one request, stop()
--- ends it.
---     > path = os.tmpname() .. ".mindir"
---     > ms.export(ms.nn.ReLU(), ms.tensor { -1.0, 2.0 }, { file_name = path })
---     > server = ms.lite.serve(path, { port = 0 })
---     > server.url:match "^http://127.0.0.1:%d+/$" == server.url --> true
---     > server:stop()
local function serve(model, options)
  options = arguments.options("serve", options, known, "{ port = 8080 }")
  local own
  if type(model) == "string" then
    if options.tokenizer then arguments.fail("serve", "tokenizer is for decoders: a file or folder brings its own") end
    own = models.open(model, { length = options.length, quantize = options.quantize })
  elseif type(model) == "table" and options.tokenizer then
    own = models.language(model, options.tokenizer)
    own.name = "decoder"
  else
    arguments.fail("serve", "a model is the path of a file or folder, or a decoder with { tokenizer = ... }, got "
      .. arguments.describe(model))
  end
  local handle, url = core.start {
    about = own.name, host = options.host, port = options.port or 8080, prefix = options.prefix, hosts = options.allow_hosts or {},
    types = predict.types, most_body = options.most_body or 64 << 20, most_connections = 1024, most_waiting = options.most_waiting or 256,
  }
  return setmetatable({ _handle = handle, _held = {}, _batch = options.batch or 1, url = url, model = own, runs = 0,
    port = math.tointeger(tonumber(url:match ":(%d+)/")) }, Server)
end

return { serve = serve }
