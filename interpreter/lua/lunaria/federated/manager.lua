-- ms.federated.FederatedLearningManager: a worker of a silo, as a callback of Model.train. The training goes on as written; every so
-- many steps its weights are an update of the job, and the job's model takes their place.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local callback = require "lunaria.train.callback"
local core = require "lunaria.federated_client_core"
local client_options = require "lunaria.federated.client_options"
local FeatureMap = require("lunaria.federated.feature_map").FeatureMap
local received = require "lunaria.federated.received"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

local Manager = class.define(callback.Callback, "FederatedLearningManager",
  "yaml_config, model, sync_frequency, http_server_address=\"\", data_size=1, sync_type=\"fixed\", ssl_config=nil, "
    .. "min_consistent_rate=1.1, ema_alpha=0.5, observation_window_size=5, frequency_increase_ratio=2, unchanged_round=0, "
    .. "client_id=nil, state=nil, patience=120.0",
  [[A worker of a silo: a callback of Model.train that synchronises the model with those of the job's other workers. yaml_config: the
configuration of the job's server, a file or a table. model: the cell that is trained. sync_frequency: after so many steps the weights
are sent and the job's model is taken. http_server_address: "host:port" or an address with http:// or https://. data_size: by how much
the worker's update counts. sync_type: "fixed", or "adaptive": the interval is divided by frequency_increase_ratio once the consistency
|EMA of changes| / EMA of |changes| of the job's model has not fallen below its minimum, at first min_consistent_rate, for
observation_window_size synchronisations; ema_alpha is the weight of earlier changes, and the first unchanged_round synchronisations
change nothing. ssl_config: as ssl of ms.federated.Client. client_id, state, patience: as for ms.federated.Client. When the job has
ended, the training goes on without it.

  local manager = ms.federated.FederatedLearningManager("job.yaml", net, 100, { http_server_address = "10.0.0.1:6666", data_size = 5000 })
  model:train(10, batches, { manager })

  > settings = { fl_name = "silos", encrypt = { encrypt_type = "NOT_ENCRYPT" } }
  > manager = ms.federated.FederatedLearningManager(settings, ms.nn.Dense(2, 1), 10, { http_server_address = "127.0.0.1:1" })
  > manager.interval --> 10]])

-- What workers may use of a server's encryptions: those that need no other clients at the moment of an update.
local encryptions = { NOT_ENCRYPT = true, STABLE_PW_ENCRYPT = true }

local function settings_of(yaml_config)
  local where = "FederatedLearningManager"
  local settings = yaml_config
  if type(yaml_config) == "string" then settings = require("lunaria.federated.config").read(yaml_config) end
  if type(settings) ~= "table" then fail(where, "yaml_config must be a file or a table, got " .. describe(yaml_config)) end
  if type(settings.fl_name) ~= "string" then fail(where, "yaml_config has no fl_name") end
  local encrypt = settings.encrypt or {}
  local kind = encrypt.encrypt_train_type or encrypt.encrypt_type or "NOT_ENCRYPT"
  if not encryptions[kind] then
    fail(where, ("a worker cannot take part in a job whose encrypt_type is %s"):format(tostring(kind)), "NOT_ENCRYPT or STABLE_PW_ENCRYPT")
  end
  return settings
end

local function url_of(where, settings, address)
  if type(address) ~= "string" or address == "" then
    fail(where, "http_server_address must be a text such as \"10.0.0.1:6666\", got " .. describe(address))
  end
  if address:find "^https?://" then return address end
  local prefix = settings.client and settings.client.http_url_prefix or ""
  return (settings.enable_ssl and "https://" or "http://") .. address .. prefix
end

function Manager:setup(a)
  local where = "FederatedLearningManager"
  local settings = settings_of(a.yaml_config)
  if not cells.is_cell(a.model) then fail(where, "model must be a cell, got " .. describe(a.model)) end
  self.model = a.model
  self.interval = check.positive(where, "sync_frequency", a.sync_frequency)
  self.data_size = check.positive(where, "data_size", a.data_size)
  self.is_adaptive = check.choice(where, "sync_type", a.sync_type, { "fixed", "adaptive" }) == "adaptive"
  self._least = check.number_positive(where, "min_consistent_rate", a.min_consistent_rate)
  self._start_least = self._least
  self._alpha = check.rate(where, "ema_alpha", a.ema_alpha)
  self._window = check.positive(where, "observation_window_size", a.observation_window_size)
  self._ratio = check.number_positive(where, "frequency_increase_ratio", a.frequency_increase_ratio)
  if self._ratio <= 1 then fail(where, ("frequency_increase_ratio must be above 1, got %s"):format(tostring(self._ratio))) end
  self._unchanged = check.not_negative(where, "unchanged_round", a.unchanged_round)
  self.fl_name, self.client_id = settings.fl_name, a.client_id or client_options.random_name()
  local url = url_of(where, settings, a.http_server_address)
  self._options = client_options.checked(self, client_options.with_defaults { url = url, ssl = a.ssl_config, client_id = a.client_id,
    state = a.state, samples = self.data_size, patience = a.patience })
  self._steps, self._rounds, self._waited, self.has_ended = 0, 0, 0, false
end

-- Requests until the job wants an update ("train"), gives a model ("model") or has ended.
local function await(self)
  while true do
    local kind, wait, reason = core.advance(self._job)
    if kind ~= "wait" then
      self.has_ended = kind == "ended"
      return kind, reason
    end
    if wait > 0 then core.wait(wait) end
  end
end

local function load(self)
  return (received("FederatedLearningManager", self.model, (core.model(self._job)), false))
end

-- Halves the interval where changes of the model have stopped to agree more.
local function adapt(self, before, after)
  self._rounds = self._rounds + 1
  local change = after:vector(ms.float64) - before:vector(ms.float64)
  local alpha, size = self._alpha, ops.abs(change)
  self._mean = self._mean and self._mean * alpha + change * (1 - alpha) or change * (1 - alpha)
  self._mean_size = self._mean_size and self._mean_size * alpha + size * (1 - alpha) or size * (1 - alpha)
  local whole = self._mean_size:sum():item()
  self.consistency = whole > 0 and ops.abs(self._mean):sum():item() / whole or 1.0
  if self._rounds <= self._unchanged then return end
  if self.consistency < self._least then
    self._least, self._waited = self.consistency, 0
    return
  end
  self._waited = self._waited + 1
  if self._waited < self._window then return end
  self.interval = math.max(1, math.ceil(self.interval / self._ratio))
  self._waited, self._least = 0, self._start_least
end

-- Sends the weights, and takes those of the job.
local function synchronise(self)
  local weights, sent = FeatureMap(self.model), {}
  for i, name in ipairs(self._model:names "aggregated") do sent[i] = { name = name, tensor = weights:get(name) } end
  core.give(self._job, self.data_size, sent, {}, self._metrics or {}, "")
  self._metrics = nil
  local kind = await(self)
  if kind == "model" then
    local before = self._model
    self._model = load(self)
    if self.is_adaptive then adapt(self, before, self._model) end
    if await(self) == "train" then self._model = load(self) end
  elseif kind == "train" then
    -- The iteration failed: the next one begins with the model that there was.
    self._model = load(self)
  end
end

--- Takes the job's model before the training begins. run: a RunContext.
function Manager:on_train_begin(run) -- luacheck: ignore 212
  self._job = self._job or core.open(self._options)
  if await(self) == "train" then self._model = load(self) end
end

--- Synchronises after every `interval` steps. run: a RunContext.
function Manager:on_train_step_end(run)
  if self.has_ended then return end
  self._steps = self._steps + 1
  if self._steps < self.interval then return end
  self._steps = 0
  local loss = run:original_args().net_outputs
  if ms.is_tensor(loss) and loss.size == 1 then self._metrics = { loss = loss:item() } end
  synchronise(self)
end

--- Closes the connection. run: a RunContext.
function Manager:on_train_end(run) -- luacheck: ignore 212
  if self._job then core.close(self._job) end
  self._job = nil
end

local PushMetrics = class.define(nil, "PushMetrics", "client",
  [[Sends the loss and the accuracy of a training to the job's server. client: an ms.federated.Client. The object is called with both, or
with numbers by name.

  local push = ms.federated.PushMetrics(client)
  push(0.31, 0.93)

  > client = ms.federated.Client { url = "http://127.0.0.1:1", net = ms.nn.Dense(1, 1), data = {}, fl_name = "job" }
  > tostring(ms.federated.PushMetrics(client)) --> PushMetrics<>]])

function PushMetrics:setup(a)
  if type(a.client) ~= "table" or type(a.client.push_metrics) ~= "function" then
    fail("PushMetrics", "client must be an ms.federated.Client, got " .. describe(a.client))
  end
  self.client = a.client
end

--- Sends the metrics.
function PushMetrics:__call(loss, accuracy)
  if type(loss) == "table" and not ms.is_tensor(loss) then return self.client:push_metrics(loss) end
  local function number(name, value) return check.number("PushMetrics", name, value) end
  self.client:push_metrics { loss = number("loss", loss), accuracy = number("accuracy", accuracy) }
end

M.FederatedLearningManager, M.PushMetrics = Manager, PushMetrics
return M
