-- The options of clients of a server: what each may be, and what the core takes.
local arguments = require "lunaria.nn.arguments"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

M.signature = "url, net, data, fl_name, client_id=nil, loss_fn=nil, rule=nil, samples=1, iterations=0, state=nil, callbacks=nil, "
  .. "evaluate=nil, push_metrics=false, ssl=nil, signing=nil, patience=120.0, backoff=0.5, most_backoff=30.0, connect_timeout=10.0, "
  .. "idle_timeout=30.0, timeout=300.0, upload_limit=0, download_limit=0, seed=nil, proxy=\"\""

M.doc = [[A party of a job that `lunaria federated server` or ms.federated.Server runs: it trains a network with its own data and
sends the update. run() takes part until the job ends.

url: of the server, with its prefix. net: a cell that gives the loss of a batch, or with loss_fn the network alone. data: batches as
for Model.train, or a function from the plan of an iteration (iteration, epochs, batch_size, learning_rate, seed, ...) to them: shuffled
data come from such a function, so that a client that was killed trains with the same batches again. fl_name: of the job. client_id: of
this party; a random one if nil. rule: how it trains: the name of a client rule, a table of begin, step and finish, or a function
rule(net, data, settings, state) -> update; by default what the server's strategy says. samples: how many it has, for the server's
choice. iterations: how many it takes part in (0: all). state: a file in which the client keeps what it needs to go on after a crash.
callbacks: a table of on_train_begin(client, plan), on_iteration_finished(client, result), on_job_finished(client, updates, reason),
on_wait(client, seconds, reason); a result has iteration, iterations, valid, reason (why it is not), metrics, samples, evaluation.
evaluate: a function from the client to numbers by name, after each iteration; push_metrics = true sends them to the server.
ssl: { ca_cert_path, client_cert_path, client_key_path, client_password, crl_path, cipher_list } of https.
signing: true, or { key = 32 bytes, certificate = PEM, authorities = PEM }, for jobs that verify clients: the seed of an Ed25519 key, the
certificate of it in the client's name, and for secure aggregation those that have issued the other clients'. patience: seconds for
which a request is repeated; backoff, most_backoff: the first and the longest wait between (doubled each time, less a part drawn by
seed). connect_timeout, idle_timeout, timeout: seconds for a connection, without a byte, for a request. upload_limit, download_limit:
bytes per second (0: none). proxy: of HTTP.

  > client = ms.federated.Client { url = "http://127.0.0.1:1", net = ms.nn.Dense(2, 1), data = {}, fl_name = "job", client_id = "a" }
  > client --> Client<a in 'job' at http://127.0.0.1:1>]]

local function text(where, name, value)
  if type(value) ~= "string" or value == "" then fail(where, ("%s must be a text, got %s"):format(name, describe(value))) end
  return value
end

local function milliseconds(where, name, value)
  return math.ceil(math.min(check.number_positive(where, name, value), 1e9) * 1000)
end

--- Sixteen hexadecimal digits of the system's random numbers.
function M.random_name()
  return (require("lunaria.federated_client_core").random(8):gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

local ssl_names = { ca_cert_path = "authorities", client_cert_path = "certificate", client_key_path = "key", client_password = "password",
  crl_path = "revoked", cipher_list = "ciphers" }

local function add_ssl(where, to, ssl)
  local known = {}
  for name in pairs(ssl_names) do known[name] = "string" end
  for name, value in pairs(arguments.options(where, ssl, known, "{ ca_cert_path = \"ca.pem\" }")) do
    if name:find "_path$" then
      local file = io.open(value, "rb")
      if not file then fail(where, ("%s: there is no file '%s'"):format(name, value)) end
      file:close()
    end
    to[ssl_names[name]] = value
  end
end

local function add_signing(where, to, signing)
  if signing == nil or signing == false then return end
  to.signs = true
  if signing == true then return end
  local known = { key = "string", certificate = "string", authorities = "string" }
  local given = arguments.options(where, signing, known, "{ key = seed, certificate = pem }")
  if given.key and #given.key ~= 32 then fail(where, ("signing.key must have 32 bytes, got %d"):format(#given.key)) end
  to.signing_key, to.identity, to.peer_authorities = given.key, given.certificate, given.authorities
end

--- The table for the core, of a connection alone: url, ssl and limits. a: the arguments by name.
function M.connection(where, a)
  local url = text(where, "url", a.url)
  if not url:find "^https?://[^/?#%s]+[^?#%s]*$" then
    fail(where, ("url must be http://host:port or https://host:port, with a prefix or without, got '%s'"):format(url))
  end
  local to = { url = url:gsub("/+$", ""), proxy = a.proxy }
  add_ssl(where, to, a.ssl)
  if a.ssl and url:find "^http:" then fail(where, "ssl is for https, and the url is " .. url) end
  to.connect_timeout = milliseconds(where, "connect_timeout", a.connect_timeout)
  to.idle_timeout = milliseconds(where, "idle_timeout", a.idle_timeout)
  to.request_timeout = milliseconds(where, "timeout", a.timeout)
  to.upload_rate = check.not_negative(where, "upload_limit", a.upload_limit)
  to.download_rate = check.not_negative(where, "download_limit", a.download_limit)
  to.patience = milliseconds(where, "patience", a.patience)
  to.backoff = milliseconds(where, "backoff", a.backoff)
  to.most_backoff = math.max(to.backoff, milliseconds(where, "most_backoff", a.most_backoff))
  -- Clients that lose the same server come back at times of their own.
  to.seed = a.seed and check.not_negative(where, "seed", a.seed) or string.unpack("<I7", require("lunaria.federated_client_core").random(7))
  return to
end

--- Options of which some are given, with the defaults of the others.
function M.with_defaults(given)
  local all = {}
  for _, parameter in ipairs(arguments.signature(M.signature)) do
    local value = given[parameter.name]
    if value == nil then value = parameter.default end
    all[parameter.name] = value
  end
  return all
end

--- The table for the core of a client with these arguments.
function M.checked(client, a)
  local where = "Client"
  local to = M.connection(where, a)
  to.job, to.client = text(where, "fl_name", client.fl_name), text(where, "client_id", client.client_id)
  to.samples = check.positive(where, "samples", a.samples)
  to.iterations = check.not_negative(where, "iterations", a.iterations)
  if a.state ~= nil then to.state = text(where, "state", a.state) end
  if a.state ~= nil and a.client_id == nil then
    fail(where, "a client with a state needs a client_id, by which the server knows it again")
  end
  add_signing(where, to, a.signing)
  return to
end

return M
