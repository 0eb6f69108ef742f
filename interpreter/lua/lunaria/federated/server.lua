-- ms.federated.Server: federated jobs by HTTP. Requests of clients are answered by threads in C++ (core/federated/server); this thread
-- computes: plans, aggregations, reports, callbacks, the administrator's endpoints.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local admin = require "lunaria.federated.server_admin"
local config = require "lunaria.federated.config"
local core = require "lunaria.federated_server_core"
local serving = require "lunaria.serving"
local Job = require("lunaria.federated.served_job").Job
local Report = require("lunaria.federated.server_report").Report

local fail, describe = arguments.fail, arguments.describe

local where = "federated.Server"
local M = {}

local Callback = class.define(nil, "Callback", "", [[What a program does beside a federated job: a class to extend, whose methods a
server calls with a CallbackContext: after_started, before_stopped, on_iteration_end.

  > Mine = ms.federated.Callback:extend("Mine")
  > function Mine:on_iteration_end(context) print(context.iteration_num, context.iteration_result) end
  > class = Mine()]])
M.Callback = Callback
function Callback:setup() end -- luacheck: ignore self

--- Is called when the server has opened its address. context: a CallbackContext.
function Callback:after_started(context) end -- luacheck: ignore self context
--- Is called before the server ends. context: a CallbackContext.
function Callback:before_stopped(context) end -- luacheck: ignore self context
--- Is called after every iteration, also one that failed. context: a CallbackContext.
function Callback:on_iteration_end(context) end -- luacheck: ignore self context

local CallbackContext = class.define(nil, "CallbackContext", "fl_name, feature_map=nil, iteration_num=0, iteration_valid=true, "
  .. "checkpoint_file=nil, instance_name=\"\", iteration_result=\"success\", reason=\"\", metrics=nil, server=nil",
  [[What a callback of a federated job is told. fl_name: of the job. feature_map: the model. iteration_num: the last iteration.
iteration_valid, iteration_result: whether it gave a new model: "success" or "fail". reason: why it failed. checkpoint_file: of the
model, where it was saved. instance_name: of the last newInstance. metrics: numbers by name. server: the ms.federated.Server.

  > ms.federated.CallbackContext("lenet").iteration_result --> success]])
M.CallbackContext = CallbackContext
function CallbackContext:setup(a)
  for name, value in pairs(a) do self[name] = value end
end

local SSLConfig = class.define(nil, "SSLConfig", "server_password, client_password=\"\"",
  [[The passwords of the certificates of a job's configuration. server_password: of ssl.server_cert_path. client_password: of
ssl.client_cert_path, for workers.

  > ms.federated.SSLConfig("secret") --> SSLConfig<>]])
M.SSLConfig = SSLConfig
function SSLConfig:setup(a)
  if type(a.server_password) ~= "string" then fail("SSLConfig", "server_password must be a text, got " .. describe(a.server_password)) end
  if type(a.client_password) ~= "string" then fail("SSLConfig", "client_password must be a text, got " .. describe(a.client_password)) end
  -- Not a field: a password is not shown where the object is.
  self.password = function(of) return of == "client" and a.client_password or a.server_password end
end

local Server = class.define(nil, "Server", "config, strategy=nil, model=nil, callback=nil, evaluate=nil, address=nil, "
  .. "manage_address=nil, checkpoint_dir=nil, ssl_config=nil", [[A server of federated jobs. run() answers clients until all its jobs are
over; whatever a client was told is kept in a file, so that a server that was killed goes on where it was, and several servers may share
the file.

config: the path of a YAML or JSON file, or a table with the same keys (ms.federated.read_config has them). strategy: a strategy, or a
table of configure and aggregate; by default what the configuration names. model: a feature map, a cell, a table of tensors or the path
of a file of weights: what the first iteration begins with. callback: a ms.federated.Callback, or a table with its methods. evaluate: a
function from a feature map to numbers by name, for the model of every iteration. address: "host:port" for clients (port 0: any that is
free). manage_address: "host:port" for administrators: GET state, queryInstance, rounds, jobs, requests; POST newInstance, enableFLS,
disableFLS, stop (with /NAME for one of several jobs). checkpoint_dir: a folder for models, and for the file of the state where the
configuration has none. ssl_config: the passwords of certificates, a ms.federated.SSLConfig.

  > settings = { fl_name = "sum", fl_iteration_num = 2, server_mode = "FEDERATED_LEARNING", enable_ssl = false }
  > settings.round = { start_fl_job_threshold = 2, start_fl_job_time_window = 1000, update_model_ratio = 1.0 }
  > settings.round.update_model_time_window, settings.round.global_iteration_time_window = 1000, 5000
  > settings.summary = { metrics_file = os.tmpname(), failure_event_file = os.tmpname() }
  > options = { config = settings, model = { w = ms.zeros { 2 } }, address = "127.0.0.1:0", checkpoint_dir = os.tmpname() .. "_" }
  > server = ms.federated.Server(options)
  > server:start():match "^http://127.0.0.1:%d+/$" ~= nil --> true
  > server:state().phase --> starting
  > server:stop()]])
Server._called = "server"
M.Server = Server

local function split(name, address)
  if type(address) ~= "string" then
    fail(where, ("%s must be a text such as \"127.0.0.1:6666\", got %s"):format(name, describe(address)))
  end
  local host, port = address:match "^(.+):(%d+)$"
  port = math.tointeger(tonumber(port))
  if not host or port > 65535 then fail(where, ("%s must be such as \"127.0.0.1:6666\", got '%s'"):format(name, address)) end
  return host, port
end

local methods = { "after_started", "before_stopped", "on_iteration_end" }

local function checked_callback(callback)
  if callback == nil or class.is_a(callback, Callback) then return callback end
  if type(callback) ~= "table" then
    fail(where, "callback must be a ms.federated.Callback or a table of functions, got " .. describe(callback))
  end
  for name, value in pairs(callback) do
    local known = name == methods[1] or name == methods[2] or name == methods[3]
    if type(name) == "string" and not known then
      fail(where, ("callback has no method '%s'"):format(name), arguments.nearest(name, methods))
    elseif not arguments.is_callable(value) then
      fail(where, ("the callback's %s must be a function, got %s"):format(tostring(name), describe(value)))
    end
  end
  return callback
end

function Server:setup(a)
  self.jobs, self.reports = {}, {}
  if a.ssl_config ~= nil and not class.is_a(a.ssl_config, SSLConfig) then
    fail(where, "ssl_config must be a ms.federated.SSLConfig, got " .. describe(a.ssl_config))
  end
  self._passwords = a.ssl_config
  self:add(a)
  local first = self.jobs[1].config
  self.config = first
  self.address = a.address or first.server.http_server_address
  self._host, self._port = split("address", self.address)
  self.manage_address = a.manage_address or first.server.manage_address
  if self.manage_address then split("manage_address", self.manage_address) end
  self.checkpoint_dir = (a.checkpoint_dir or first.server.checkpoint_dir):gsub("(.)/+$", "%1")
end

--- One more job of this server, before it starts. job: config, strategy, model, callback, evaluate, as for the server.
---
---   server:add { config = "second.yaml", model = net }
function Server:add(job)
  if self._desk then fail(where, "jobs are added before the server starts") end
  local settings = config.read(job.config)
  for _, other in ipairs(self.jobs) do
    if other.name == settings.fl_name then fail(where, ("there is a job '%s' already"):format(settings.fl_name)) end
  end
  if job.evaluate ~= nil and not arguments.is_callable(job.evaluate) then
    fail(where, "evaluate must be a function from a feature map to numbers by name, got " .. describe(job.evaluate))
  end
  self.jobs[#self.jobs + 1] = Job { config = settings, strategy = job.strategy, model = job.model, evaluate = job.evaluate,
    callback = checked_callback(job.callback) }
  return self
end

local function tls_of(self)
  local c = self.config
  if not c.enable_ssl then return nil end
  return { certificate = c.ssl.server_cert_path, key = c.ssl.server_key_path, authorities = c.ssl.ca_cert_path, revoked = c.ssl.crl_path,
    ciphers = c.ssl.cipher_list, warning_days = c.ssl.cert_expire_warning_time_in_day,
    password = self._passwords and self._passwords.password "server" or "" }
end

local function store_of(self)
  local cache = self.config.distributed_cache or {}
  if cache.type == "sqlite" and cache.address then return cache.address end
  if cache.type == "redis" and cache.address then
    io.stderr:write("lunaria federated server: the state is kept in a file beside the checkpoints, not in redis\n")
  end
  return ("%s/%s.store"):format(self.checkpoint_dir, self.config.fl_name:gsub("[^%w_.-]", "_"))
end

local function tell(self, job, method, row, path)
  local callback = job.callback
  if not callback or not callback[method] then return end
  local context = CallbackContext { fl_name = job.name, feature_map = job.map, instance_name = job.instance or "", server = self,
    iteration_num = row and row.iteration or job.version or 0, iteration_valid = not row or row.valid, checkpoint_file = path,
    iteration_result = (not row or row.valid) and "success" or "fail", reason = row and row.reason or "",
    metrics = row and row.metrics ~= "" and ms.json.decode(row.metrics) or {} }
  -- A table has functions, a callback methods.
  if class.is_a(callback, Callback) then callback[method](callback, context) else callback[method](context) end
end

--- Opens the addresses; clients are answered from here on, and step() computes. Gives the address for clients.
function Server:start()
  if self._desk then return self.url end
  ms.io.make_folder(self.checkpoint_dir)
  local c = self.config
  self._desk = core.open { store = store_of(self), most_store_bytes = c.limits.most_store_bytes,
    names_clients = c.enable_ssl and c.ssl.names_clients }
  for i, job in ipairs(self.jobs) do
    job:open(self._desk)
    job.instance = core.row(self._desk, job.name).instance
    self.reports[i] = Report(job, self.checkpoint_dir)
    self.reports[i]:skip()
  end
  local warning
  self.url, warning = core.serve(self._desk, { about = ("federated job %s"):format(c.fl_name), host = self._host, port = self._port,
    prefix = c.client.http_url_prefix, most_body = c.limits.most_body, most_seconds = c.limits.most_seconds,
    most_connections = c.client.connection_num, tls = tls_of(self) })
  self.port = math.tointeger(tonumber(self.url:match ":(%d+)/"))
  if warning ~= "" then io.stderr:write("lunaria federated server: ", warning, "\n") end
  if self.manage_address then self._admin, self.manage_url = admin.open(split("manage_address", self.manage_address)) end
  for _, job in ipairs(self.jobs) do tell(self, job, "after_started") end
  return self.url
end

local function job_of(self, name)
  for i, job in ipairs(self.jobs) do
    if job.name == name then return job, self.reports[i] end
  end
  return nil
end

local function report(self, is_end)
  local _, bytes_in, bytes_out = core.figures(self._desk)
  for i, job in ipairs(self.jobs) do
    self.reports[i]:update(function(row, path) tell(self, job, "on_iteration_end", row, path) end)
    self.reports[i]:write_rate(bytes_in, bytes_out, is_end)
  end
end

local function seconds_of(name, what, value)
  value = arguments.check.number(name, what, value)
  if not (value >= 0 and value < math.huge) then fail(name, ("%s must be a number from 0 on, got %s"):format(what, describe(value))) end
  return value
end

--- Computes what is to be computed, or waits for it so long. seconds: 0.1 if nil. Gives whether a job is still going on.
function Server:step(seconds)
  seconds = seconds_of("step", "seconds", arguments.named("step", { "seconds" }, seconds) or 0.1)
  self:start()
  local kind, name, iteration = core.next(self._desk, seconds)
  local job, its_report
  if kind then job, its_report = job_of(self, name) end
  if kind == "plan" then
    job:plan(iteration)
  elseif kind == "aggregate" then
    its_report:note_updates(iteration)
    local fine, reason = job:aggregate(iteration)
    if not fine then io.stderr:write(("lunaria federated server: %s: iteration %d: %s\n"):format(name, iteration, reason)) end
  end
  report(self, false)
  if self._admin then admin.answer(self, self._admin) end
  local goes_on = false
  for _, one in ipairs(self.jobs) do goes_on = goes_on or core.row(self._desk, one.name).phase ~= "finished" end
  return goes_on
end

--- Answers clients until all jobs are over, or SIGTERM or Ctrl-C asks for the end; what has come is still answered. linger: seconds for
--- which clients are told that a job is over, 5 if nil. Gives the feature map of the first job.
---
---   ms.federated.Server({ config = "lenet.yaml", model = net, strategy = ms.federated.strategies.FedAdam() }):run()
function Server:run(linger)
  linger = seconds_of("run", "linger", arguments.named("run", { "linger" }, linger) or 5)
  self:start()
  serving.signals(true)
  local _ <close> = setmetatable({}, { __close = function() serving.signals(false) end })
  local over
  while not serving.is_end_wanted() and not core.has_ended(self._desk) do
    if self:step() then
      over = nil
    else
      over = over or os.time()
      -- An administrator may begin a new instance.
      if os.time() - over >= linger and not self._admin then break end
    end
  end
  local map = self.jobs[1].map
  self:stop()
  return map
end

--- What a job is doing: its phase, iteration and counts. name: of the job, the first one if nil.
---     > settings = { fl_name = "job", fl_iteration_num = 2, server_mode = "FEDERATED_LEARNING", enable_ssl = false }
---     > settings.round = { start_fl_job_threshold = 2, start_fl_job_time_window = 1000, update_model_ratio = 1.0 }
---     > settings.round.update_model_time_window, settings.round.global_iteration_time_window = 1000, 5000
---     > settings.summary = { metrics_file = os.tmpname(), failure_event_file = os.tmpname() }
---     > options = { config = settings, model = { w = ms.zeros { 2 } }, address = "127.0.0.1:0", checkpoint_dir = os.tmpname() .. "_" }
---     > server = ms.federated.Server(options)
---     > server:state().iterations --> 2
---     > server:stop()
function Server:state(name)
  name = arguments.named("state", { "name" }, name)
  self:start()
  local job = name == nil and self.jobs[1] or job_of(self, name)
  if not job then fail("state", ("there is no job '%s'"):format(tostring(name))) end
  return ms.json.decode(core.row(self._desk, job.name).state)
end

--- Answers what has come and ends the server; its state is in the file, so that another one may go on.
function Server:stop()
  if not self._desk then return end
  for _, job in ipairs(self.jobs) do tell(self, job, "before_stopped") end
  core.drain(self._desk)
  report(self, true)
  for _, one in ipairs(self.reports) do one:close() end
  if self._admin then serving.stop(self._admin) end
  core.close(self._desk)
  self._desk, self._admin, self.reports = nil, nil, {}
end
Server.__gc, Server.__close = nil, Server.stop

local FLServerJob = class.define(nil, "FLServerJob", "yaml_config, http_server_address=\"127.0.0.1:6666\", tcp_server_ip=\"127.0.0.1\", "
  .. "checkpoint_dir=\"./fl_ckpt/\", ssl_config=nil", [[A server of a federated job, as MindSpore has it; see ms.federated.Server.
yaml_config: the configuration. http_server_address: for clients. tcp_server_ip: MindSpore's address for other servers, which here share
a file. checkpoint_dir: a folder for models. ssl_config: a ms.federated.SSLConfig.

  > job = ms.federated.FLServerJob { yaml_config = { fl_name = "job" } }
  > (select(2, pcall(job.run, job, { w = ms.ones { 2 } })):match "fl_iteration_num is missing") --> fl_iteration_num is missing]])
M.FLServerJob = FLServerJob

function FLServerJob:setup(a)
  if type(a.tcp_server_ip) ~= "string" then fail("FLServerJob", "tcp_server_ip must be a text, got " .. describe(a.tcp_server_ip)) end
  self.options = { config = a.yaml_config, address = a.http_server_address, checkpoint_dir = a.checkpoint_dir, ssl_config = a.ssl_config }
end

--- Runs the job until it is over. feature_map: the first model, as model of ms.federated.Server. callback: a ms.federated.Callback.
---
---   ms.federated.FLServerJob("lenet.yaml", "0.0.0.0:6666"):run("lenet.ckpt")
function FLServerJob:run(feature_map, callback)
  local options = {}
  for name, value in pairs(self.options) do options[name] = value end
  options.model, options.callback = feature_map, callback
  return Server(options):run()
end

local FlSchedulerJob = class.define(nil, "FlSchedulerJob", "yaml_config, manage_address, ssl_config=nil",
  [[MindSpore's scheduler of a job's servers. Here, servers share a file and need none; this one opens the administrator's endpoints at
an address of its own, over the same file. yaml_config: the configuration of the job. manage_address: "host:port". ssl_config: a
ms.federated.SSLConfig.

  > scheduler = ms.federated.FlSchedulerJob({ fl_name = "job" }, "127.0.0.1:0")
  > scheduler.manage_address --> 127.0.0.1:0]])
M.FlSchedulerJob = FlSchedulerJob

function FlSchedulerJob:setup(a)
  split("manage_address", a.manage_address)
  self.manage_address, self.yaml_config, self.ssl_config = a.manage_address, a.yaml_config, a.ssl_config
end

--- Answers administrators until SIGTERM or Ctrl-C. model: the first model, where no server has put one into the file yet.
---
---   ms.federated.FlSchedulerJob("lenet.yaml", "127.0.0.1:18019"):run()
function FlSchedulerJob:run(model)
  local server = Server { config = self.yaml_config, manage_address = self.manage_address, address = "127.0.0.1:0", model = model,
    ssl_config = self.ssl_config }
  return server:run()
end

return M
