-- ms.federated.Client: a party that trains in a job of a server. What is requested, repeated and kept for a crash is decided in
-- core/federated/client; here are the network, its data, rules, callbacks, and the waiting.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local chances = require "lunaria.federated.chances"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_client_core"
local feature_map = require "lunaria.federated.feature_map"
local options = require "lunaria.federated.client_options"
local packed = require "lunaria.federated.packed"
local received = require "lunaria.federated.received"
local rules = require "lunaria.federated.client_rules"
local sums = require "lunaria.federated.strategies.sums"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local FeatureMap, features_of = feature_map.FeatureMap, feature_map.features_of

local Client = class.define(nil, "Client", options.signature, options.doc)
Client._called = "client"

local callback_names = { on_train_begin = "function", on_iteration_finished = "function", on_job_finished = "function",
  on_wait = "function" }

local function network_of(net)
  if cells.is_cell(net) then return net end
  if type(net) == "table" and getmetatable(net) == nil and cells.is_cell(net.network) then return net.network end
  return fail("Client", "net must be a cell that gives the loss of a batch, or { network = cell, loss_fn = loss }, got " .. describe(net))
end

function Client:setup(a)
  self.network = network_of(a.net)
  self.net = a.loss_fn ~= nil and { network = self.network, loss_fn = a.loss_fn } or a.net
  if type(a.data) ~= "function" and type(a.data) ~= "table" and type(a.data) ~= "userdata" then
    fail("Client", "data must be batches, or a function that gives them for a plan, got " .. describe(a.data))
  end
  self.data = a.data
  if a.rule ~= nil and type(a.rule) ~= "function" then rules.find(a.rule) end
  self.rule = a.rule
  self.callbacks = arguments.options("Client", a.callbacks, callback_names, "{ on_iteration_finished = function(client, result) end }")
  if a.evaluate ~= nil and not arguments.is_callable(a.evaluate) then
    fail("Client", "evaluate must be a function from the client to a table of numbers, got " .. describe(a.evaluate))
  end
  self.evaluate, self.push_results = a.evaluate, check.boolean("Client", "push_metrics", a.push_metrics)
  self.fl_name, self.client_id, self.url = a.fl_name, a.client_id or options.random_name(), a.url
  self._job = core.open(options.checked(self, a))
  self._result = {}
end

function Client:__tostring() return ("Client<%s in '%s' at %s>"):format(self.client_id, self.fl_name, self.url) end

-- What was kept after the last iteration that succeeded: the rule's state, and the parameters that are the party's own.
local function kept_state(self)
  local bytes = core.rule_state(self._job)
  local kept = bytes ~= "" and packed.unpack(bytes) or { state = {}, own = {} }
  return kept.state, kept.own, bytes ~= ""
end

-- The plan with what a rule reads: the strategy's settings, its tensors by name.
local function settings_of(plan, rule)
  local settings = plan.settings ~= "" and ms.json.decode(plan.settings) or {}
  settings.rule = type(rule) ~= "function" and (rule or settings.rule or plan.rule) or nil
  settings.lr, settings.epochs = settings.lr or plan.learning_rate, settings.epochs or plan.epochs
  for _, feature in ipairs(plan.extra) do settings[feature.name] = feature.tensor end
  return settings
end

local function named_tensors(extra)
  local list, names = {}, {}
  for name in pairs(extra or {}) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = { name = name, tensor = extra[name] } end
  return list
end

-- What is sent of an update: features, tensors beside them, metrics. Where more than weights is added up in secret, that is in their place.
local function sent_of(self, settings, update)
  local sent, given, metrics = {}, {}, update.metrics or {}
  for i, name in ipairs(self.model:names "aggregated") do
    given[name] = update.weights:get(name) or fail("Client", ("the update lacks the feature '%s'"):format(name))
    sent[i] = { name = name, tensor = given[name] }
  end
  if not settings.sums then return sent, named_tensors(update.extra), metrics end
  local vector, beside = sums.sent(settings.sums, self.model:vector(ms.float64), self.model:with(given):vector(ms.float64), update)
  for i, tensor in ipairs(self.model:split(vector, ms.float64)) do sent[i].tensor = tensor end
  local told, hidden = {}, sums.kinds[settings.sums.kind].tells
  for name, value in pairs(metrics) do
    if name ~= hidden then told[name] = value end
  end
  return sent, { { name = "beside", tensor = beside } }, told
end

local function train(self)
  local plan, features = core.plan(self._job), core.model(self._job)
  local state, kept, was_here = kept_state(self)
  local own
  self.model, own = received("Client", self.network, features, not was_here)
  for name, tensor in pairs(kept) do
    if own[name] then own[name]:assign(tensor) end
  end
  if self.callbacks.on_train_begin then self.callbacks.on_train_begin(self, plan) end
  local settings = settings_of(plan, self.rule)
  -- What a training draws is of the job's seed, the iteration and the client.
  local update = chances.with_seed(core.seed(self._job), function()
    local data = self.data
    if type(data) == "function" then data = data(plan) end
    self.network:set_train(true)
    if type(self.rule) == "function" then return self.rule(self.net, data, settings, state) end
    return rules.train(self.net, data, settings, state)
  end)
  self.network:set_train(false)
  if type(update) ~= "table" or not class.is_a(update.weights, FeatureMap) then
    fail("Client", "a rule gives a table such as { samples = n, weights = FeatureMap, metrics = {}, extra = {} }, got " .. describe(update))
  end
  local sent, extra, metrics = sent_of(self, settings, update)
  local personal = {}
  for name, parameter in pairs(own) do personal[name] = parameter:copy() end
  local is_difference = type(self.rule) ~= "function" and settings.sends == "difference"
  core.give(self._job, check.positive("Client", "samples of the update", update.samples), sent, extra, metrics,
    packed.pack("Client", { state = state, own = personal }), is_difference)
  self._result = { iteration = plan.iteration, iterations = plan.iterations, metrics = update.metrics or {}, samples = update.samples }
end

local function finish_iteration(self, failure)
  self.model = received("Client", self.network, (core.model(self._job)), false)
  local result = self._result
  result.iteration = result.iteration or core.counts(self._job)
  result.valid, result.reason = failure == "", failure
  if self.evaluate then
    self.network:set_train(false)
    result.evaluation = self.evaluate(self)
    if type(result.evaluation) ~= "table" then
      fail("Client", "evaluate must give a table of numbers by name, got " .. describe(result.evaluation))
    end
    if self.push_results then self:push_metrics(result.evaluation) end
  end
  if self.callbacks.on_iteration_finished then self.callbacks.on_iteration_finished(self, result) end
  self._result = {}
end

--- One request to the server, or the training of an iteration, and what comes next: "go" (call it again at once), "wait" with the
--- seconds to wait, "model" (an iteration is finished), or "ended" with the reason. For programs that do something else meanwhile, or have
--- several clients.
---     > client = ms.federated.Client { url = "http://127.0.0.1:1", net = ms.nn.Dense(1, 1), data = {}, fl_name = "job" }
---     > (client:step()) --> wait
function Client:step()
  local kind, wait, reason = core.advance(self._job)
  if kind == "train" then
    train(self)
    return "go"
  elseif kind == "model" then
    finish_iteration(self, reason)
    return "model"
  elseif kind == "ended" then
    return "ended", reason
  end
  if wait == 0 then return "go" end
  if self.callbacks.on_wait then self.callbacks.on_wait(self, wait / 1000, reason) end
  return "wait", wait / 1000, reason
end

--- Takes part until the job ends, or `iterations` of them are done; gives how many updates the server has taken, and why it ended. A
--- server that cannot be reached for longer than `patience` seconds, that has a wrong certificate, or that refuses the client, is an error.
---
---   local client = ms.federated.Client { url = "https://fl.example.org:6666", net = net, loss_fn = loss, data = batches,
---     fl_name = "lenet", client_id = "hospital-3", state = "hospital-3.state" }
---   client:run()
function Client:run()
  while true do
    local kind, wait = self:step()
    if kind == "ended" then
      local _, updates = core.counts(self._job)
      if self.callbacks.on_job_finished then self.callbacks.on_job_finished(self, updates, wait) end
      return updates, wait
    end
    if kind == "wait" then core.wait(math.ceil(wait * 1000)) end
  end
end

-- Repeats a request that may have to wait. What it gives, or nil and the reason where the job is over.
local function settle(request)
  while true do
    local results = table.pack(request())
    if results[1] then return table.unpack(results, 1, results.n) end
    local _, kind, wait, reason = table.unpack(results)
    if kind == "ended" then return nil, reason end
    core.wait(wait)
  end
end

--- The weights of the server's model at this moment, as a feature map, and the number of iterations that made it; the network has them
--- afterwards.
---
---   local map, version = client:get_model()
function Client:get_model()
  local features, version = settle(function() return core.pull(self._job) end)
  self.model = received("Client", self.network, features, false)
  return self.model, version
end

--- In a job whose server_mode is HYBRID_TRAINING: the weights of a worker on the server, which has trained with the model of get_model,
--- become the job's model. They are taken between two iterations: the next one waits for them, as long as for its first clients. weights:
--- a feature map, or a cell that has them; the network if nil. version: that of get_model. Gives true, or nil and why they
--- were not taken: the job has gone on with another model, or is over.
---
---   while true do
---     local _, version = client:get_model()
---     if version > done then
---       train_on_the_server(net)
---       done = version
---       client:push_weights(net, version)
---     end
---   end
function Client:push_weights(weights, version)
  local where = "push_weights"
  weights, version = arguments.named(where, { "weights", "version" }, weights, version)
  if weights == nil then weights = self.network end
  if cells.is_cell(weights) then weights = FeatureMap(weights) end
  if not class.is_a(weights, FeatureMap) then fail(where, "weights must be a feature map or a cell, got " .. describe(weights)) end
  version = check.not_negative(where, "version", version)
  if not self.model then fail(where, "the client has no model of the job yet", "client:get_model() gives it, and its version") end
  local sent = FeatureMap()
  for _, name in ipairs(self.model:names "aggregated") do
    local tensor = weights:get(name)
    if tensor then sent:add_feature(name, tensor) end
  end
  local wrong = self.model:refusal(sent)
  if wrong then fail(where, wrong) end
  local features = features_of(self.model:conformed(sent))
  return settle(function() return core.push(self._job, features, version) end)
end

--- What the network gives for inputs, in evaluation, with the weights that it has now: those of the last iteration, or of get_model.
---     > client = ms.federated.Client { url = "http://127.0.0.1:1", net = ms.nn.Dense(2, 3), data = {}, fl_name = "job" }
---     > client:model_inference(ms.ones { 4, 2 }).shape --> (4, 3)
function Client:model_inference(...)
  if select("#", ...) == 0 then fail("model_inference", "missing argument 1: an input is expected") end
  self.network:set_train(false)
  return self.network(...)
end

--- Sends metrics, which the server shows with those of its other clients. metrics: numbers by name.
---
---   client:push_metrics { accuracy = 0.93 }
function Client:push_metrics(metrics)
  if type(metrics) ~= "table" then fail("push_metrics", "a table of numbers by name is expected, got " .. describe(metrics)) end
  for name, value in pairs(metrics) do
    if type(name) ~= "string" or not math.type(value) then
      fail("push_metrics", ("a table of numbers by name is expected, got %s for %s"):format(describe(value), describe(name)))
    end
  end
  settle(function() return core.push_metrics(self._job, metrics) end)
end

--- How far the client is: the iteration, the updates that the server has taken, the requests that were sent again.
---     > client = ms.federated.Client { url = "http://127.0.0.1:1", net = ms.nn.Dense(1, 1), data = {}, fl_name = "job" }
---     > client:counts() --> 0	0	0
function Client:counts() return core.counts(self._job) end

--- Closes the connection; the client cannot be used any more.
---     > ms.federated.Client({ url = "http://127.0.0.1:1", net = ms.nn.Dense(1, 1), data = {}, fl_name = "job" }):close()
function Client:close() core.close(self._job) end

return { Client = Client }
