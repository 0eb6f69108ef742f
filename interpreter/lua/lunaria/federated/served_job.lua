-- A job of ms.federated.Server: what its server computes. Plans of iterations, aggregations by the strategy, what the strategy
-- remembers. All of it is a function of what the store has, so that it may be done again by a server that goes on.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_server_core"
local packed = require "lunaria.federated.packed"
local strategies = require "lunaria.federated.strategies"
local base = require "lunaria.federated.strategies.strategy"
local sums = require "lunaria.federated.strategies.sums"
local feature_map = require "lunaria.federated.feature_map"
local FeatureMap, features_of = feature_map.FeatureMap, feature_map.features_of

local fail, describe = arguments.fail, arguments.describe

local where = "federated.Server"

local Job = class.Object:extend("Job")

local encryptions = { PW_ENCRYPT = "pairwise", STABLE_PW_ENCRYPT = "stable" }

-- The model as a feature map; `path` where only the configuration knows it.
local function map_of(model, path)
  if model == nil then
    if not path then fail(where, "model is missing: a feature map, a cell, a table of tensors, or a file of weights") end
    model = path
  end
  if type(model) == "string" then
    if model:find "%.mindir$" then
      local _, weights = ms.load(model)
      return FeatureMap(weights)
    end
    return FeatureMap(ms.load_checkpoint(model))
  end
  if class.is_a(model, FeatureMap) then return model end
  if cells.is_cell(model) or type(model) == "table" then return FeatureMap(model) end
  return fail(where, "model must be a feature map, a cell, a table of tensors, or a file of weights, got " .. describe(model))
end

local function strategy_of(strategy, setting)
  if strategy ~= nil then return base.of(where, strategy) end
  if type(setting) == "table" and setting.aggregate then return base.of(where, setting) end
  local name, options = setting, nil
  if type(setting) == "table" then
    name, options = setting.name, {}
    for key, value in pairs(setting) do
      if key ~= "name" then options[key] = value end
    end
    if next(options) == nil then options = nil end
  end
  local made = strategies[name]
  if type(made) ~= "table" then fail(where, ("strategy '%s' is none of ms.federated.strategies"):format(tostring(name))) end
  return base.of(where, options and made(options) or made())
end

-- The bits of a ring in which the largest sum of the clients' numbers fits, as FixedPoint in core/federated/ring.h has it.
local function ring_bits(config, most_weight)
  local pw = config.encrypt.pw_encrypt
  local clients = config.round.start_fl_job_threshold
  local bits = math.log(clients * most_weight * pw.clip, 2) + pw.fraction_bits + 1
  local whole = math.max(16, math.ceil((bits + 1e-9) / 8) * 8)
  if whole > 64 then
    fail(where, ("sums of %d clients with up to %d samples, weights up to %g and %d bits of fractions need %d bits, more than 64"):format(
      clients, most_weight, pw.clip, pw.fraction_bits, whole), "lower encrypt.pw_encrypt.most_samples, clip or fraction_bits")
  end
  return whole
end

-- The settings of the state machine. overrides: of the last newInstance.
local function settings_of(config, strategy, overrides)
  local round, encrypt = config.round, config.encrypt
  local s = {
    iterations = config.fl_iteration_num,
    start_threshold = round.start_fl_job_threshold, start_window = round.start_fl_job_time_window,
    update_ratio = round.update_model_ratio, update_window = round.update_model_time_window,
    global_window = round.global_iteration_time_window,
    encryption = encryptions[encrypt.encrypt_type] or "none",
    share_ratio = encrypt.pw_encrypt.share_secrets_ratio, cipher_window = encrypt.pw_encrypt.cipher_time_window,
    reconstruct_threshold = encryptions[encrypt.encrypt_type] == "pairwise" and encrypt.pw_encrypt.reconstruct_secrets_threshold or 1,
    signed_lists = encryptions[encrypt.encrypt_type] == "pairwise" and config.client_verify.pki_verify,
    selection = round.selection, seed = round.seed, poll = round.poll, spread = round.spread,
    asynchronous = round.asynchronous or strategy.asynchronous or false,
    buffer = round.asynchronous and round.buffer or strategy.asynchronous and strategy.buffer or 1,
    concurrency = round.concurrency, max_staleness = round.max_staleness,
  }
  for key, value in pairs(overrides or {}) do s[key] = value end
  return s
end

local compressions = { DIFF_SPARSE_QUANT = "sparse_quantised", TOP_K = "top_k" }
-- Uploads that are changes of the weights, which payloads.h makes.
local has_change = { sparse_quantised = true, top_k = true, signds = true }
local uploads = { SIGNDS = "signds", PW_ENCRYPT = "masked", STABLE_PW_ENCRYPT = "masked" }

function Job:init(a)
  self.config, self.name = a.config, a.config.fl_name
  self.strategy = strategy_of(a.strategy, a.config.strategy)
  self.map = map_of(a.model, a.config.server.feature_map)
  if self.strategy.prepare then self.map = self.strategy:prepare(self.map) end
  self.callback, self.evaluate = a.callback, a.evaluate
  -- A strategy that trains on the server by itself needs no worker for it.
  self.takes_weights = self.config.server_mode == "HYBRID_TRAINING" and not class.is_a(self.strategy, strategies.Hybrid)
  if self.takes_weights and self:settings().asynchronous then
    fail(where, "server_mode HYBRID_TRAINING has iterations, between which a worker trains, and an asynchronous job has none",
      "the strategy Hybrid trains on the server itself")
  end
  local encrypt = self.config.encrypt
  self.upload = uploads[encrypt.encrypt_type] or "plain"
  self.upload = compressions[self.config.compression.upload_compress_type] or self.upload
  if self.upload == "masked" then self:begin_sums(encrypt) end
end

-- What is added up in secret.
function Job:begin_sums(encrypt)
  local pw = encrypt.pw_encrypt
  if not self.strategy.secure then
    local message = "encrypt_type %s hides updates from the server, and the strategy %s needs each of them"
    fail(where, message:format(encrypt.encrypt_type, self:strategy_name()),
      "FedAvg, FedAdam, FedNova, QFedAvg, Scaffold { weighted = false } and others need sums alone")
  end
  self.most_weight = self.strategy.weighted and pw.most_samples or 1
  self.bits = ring_bits(self.config, self.most_weight)
  self.form = sums.form(self.strategy, pw.clip)
  self.further = self.form and sums.further(self.form.kind, self.map:size()) or 0
  if self.form and self.form.base < 2 then
    fail(where, ("encrypt.pw_encrypt.clip is %g, and sums of the strategy %s need at least 2"):format(pw.clip, self:strategy_name()))
  end
end

function Job:strategy_name()
  local meta = getmetatable(self.strategy)
  return meta and meta._name or "table"
end

-- Hyper-parameters of clients that newInstance may change.
local client_keys = { "client_epoch_num", "client_batch_size", "client_learning_rate" }

-- Puts the changes of the last newInstance into the configuration.
function Job:apply(overrides)
  self.overrides = overrides
  for _, key in ipairs(client_keys) do self.config.client[key] = overrides[key] or self.config.client[key] end
end

--- The settings of the state machine, as newInstance has changed them.
function Job:settings() return settings_of(self.config, self.strategy, self.overrides) end

--- A new instance of the job: it begins again with iteration 1 and other settings. overrides: those of settings.
function Job:begin_instance(name, overrides)
  local before = self.overrides
  self:apply(overrides)
  local fine, problem = pcall(core.instance, self.desk, self.name, self:settings(), name, ms.json.encode(overrides))
  if fine then return end
  self:apply(before)
  error(problem, 0)
end

-- The model's map with the tensors of features.
local function filled(map, features)
  local tensors = {}
  for _, feature in ipairs(features) do tensors[feature.name] = feature.tensor end
  return map:with(tensors)
end

--- Opens the job at a desk: it goes on where the store has it, or begins.
function Job:open(desk)
  self.desk = desk
  local c = self.config
  local verify = c.client_verify
  local stored = core.overrides(desk, self.name)
  self:apply(stored ~= "" and ms.json.decode(stored) or {})
  local options = self:settings()
  options.upload, options.quantises_download = self.upload, c.compression.download_compress_type == "QUANT"
  options.largest_weight, options.takes_weights = c.limits.largest_weight, self.takes_weights
  options.verifies, options.replay_window = verify.pki_verify, verify.replay_attack_time_diff
  options.authorities, options.revoked = { verify.root_first_ca_path, verify.root_second_ca_path }, verify.equip_crl_path
  if self.upload == "masked" then
    local pw = c.encrypt.pw_encrypt
    options.ring_bits, options.fraction_bits, options.clip, options.neighbours = self.bits, pw.fraction_bits, pw.clip, pw.neighbours
    options.share_threshold, options.further = pw.reconstruct_secrets_threshold, self.further
  end
  core.add(desk, self.name, options)
  local row = core.row(desk, self.name)
  if row.model_version < 0 then
    core.put_model(desk, self.name, features_of(self.map), 0, packed.pack(where, self.strategy:state()))
  else
    self:load(row)
  end
  self.version = core.row(desk, self.name).model_version
end

-- Takes up what another server, or this one before it was killed, has made.
function Job:load(row)
  local features, version = core.model(self.desk, self.name)
  self.map, self.version = filled(self.map, features), version
  if row.strategy ~= "" then self.strategy:load_state(packed.unpack(row.strategy)) end
end

function Job:refresh()
  local row = core.row(self.desk, self.name)
  -- Weights that a worker has pushed are of the same version.
  if row.model_version ~= self.version or self.takes_weights then self:load(row) end
end

local function is_plain(value)
  return math.type(value) ~= nil or type(value) == "string" or type(value) == "boolean"
    or type(value) == "table" and getmetatable(value) == nil
end

-- What the clients of an iteration are told, as bytes.
function Job:plan_of(iteration, strategy)
  local c, encrypt = self.config, self.config.encrypt
  local round = { number = iteration, seed = c.round.seed, clients = c.round.start_fl_job_threshold }
  local settings, plain, extra = (base.configure or strategy.configure)(strategy, round), {}, {}
  if type(settings) ~= "table" then fail(where, "the strategy's configure gave no table, but " .. describe(settings)) end
  for name, value in pairs(settings) do
    if ms.is_tensor(value) then
      extra[#extra + 1] = { name = tostring(name), tensor = value }
    elseif is_plain(value) then
      plain[name] = value
    else
      fail(where, ("the strategy's configure gave %s as '%s'"):format(describe(value), tostring(name)))
    end
  end
  table.sort(extra, function(a, b) return a.name < b.name end)
  plain.sums = self.form
  local pw, dp, signds = encrypt.pw_encrypt, encrypt.dp_encrypt, encrypt.signds
  return core.plan {
    aggregation = self:strategy_name(), rule = strategy.client or "sgd", iterations = self:settings().iterations,
    epochs = c.client.client_epoch_num, batch_size = c.client.client_batch_size, learning_rate = c.client.client_learning_rate,
    metrics = {}, settings = next(plain) and ms.json.encode(plain) or "", extra = extra, upload = self.upload,
    sparse_rate = c.compression.upload_sparse_rate, seed = c.round.seed,
    cipher = {
      type = encrypt.encrypt_type, share_threshold = pw.reconstruct_secrets_threshold, neighbours = pw.neighbours,
      ring_bits = self.bits or 0, fraction_bits = self.bits and pw.fraction_bits or 0, clip = pw.clip,
      most_weight = self.most_weight or 1, counts_alike = not self.strategy.weighted, further = self.further or 0,
      dp_eps = dp.dp_eps, dp_delta = dp.dp_delta, dp_norm_clip = dp.dp_norm_clip,
      sign_k = signds.sign_k, sign_eps = signds.sign_eps, sign_thr_ratio = signds.sign_thr_ratio,
      sign_global_lr = signds.sign_global_lr, sign_dim_out = signds.sign_dim_out,
    },
  }
end

function Job:plan(iteration)
  self:refresh()
  core.put_plan(self.desk, self.name, iteration, self:plan_of(iteration, self.strategy))
end

-- An update whose tensors are read from the store whenever they are asked for, and not kept: a thousand of them are in memory one at
-- a time.
local function lazy_update(job, iteration, row)
  local function read() return core.update(job.desk, job.name, iteration, row.id) end
  local update = { id = row.id, samples = row.samples, staleness = row.staleness }
  return setmetatable(update, { __index = function(_, key)
    if key == "weights" and has_change[job.upload] then
      local change = core.change(job.desk, job.name, iteration, row.id, iteration - row.staleness)
      return job.map:with_vector(job.map:vector(ms.float64) + change)
    end
    if key == "weights" then return filled(job.map, (read())) end
    if key == "metrics" then return (select(3, read())) end
    if key == "extra" then
      local extra = {}
      for _, feature in ipairs((select(2, read()))) do extra[feature.name] = feature.tensor end
      return extra
    end
    return nil
  end })
end

-- The updates of an iteration: of secure aggregation, one that is their mean.
function Job:updates(iteration)
  if self.upload == "masked" then
    local clients, weight, mean = core.secure_mean(self.desk, self.name)
    local weights = self.map:with_vector(mean)
    return { { id = "the sum", samples = weight, staleness = 0, metrics = {}, extra = {}, weights = weights } }, #clients
  end
  local rows = core.updates(self.desk, self.name, iteration)
  local list = {}
  for i, row in ipairs(rows) do list[i] = lazy_update(self, iteration, row) end
  return list, #rows
end

-- Larger than any number that is none.
local largest = 1e300

local function checked(self, map)
  local wrong = self.map:refusal(map, largest)
  if wrong then error(("%s gave weights that cannot be used: %s"):format(self:strategy_name(), wrong), 0) end
  return map
end

-- The new weights by a strategy that needs more than the mean of the weights.
local function by_sums(self, iteration)
  local clients, _, mean = core.secure_mean(self.desk, self.name)
  local size = self.map:size()
  local sum = { mean = mean[{ ms.slice(0, size) }], beside = sums.read(self.form, mean[{ ms.slice(size, mean.size) }]), clients = #clients }
  local round = { number = iteration, seed = self.config.round.seed, clients = #clients }
  return round, checked(self, self.strategy:aggregate_sums(round, self.map, sum))
end

local function by_updates(self, iteration)
  local updates, clients = self:updates(iteration)
  local round = { number = iteration, seed = self.config.round.seed, clients = clients }
  -- Names, shapes and numbers were checked when the updates came.
  local used, reason = {}, nil
  for _, update in ipairs(updates) do
    local wrong = self.strategy.refusal and self.strategy:refusal(self.map, update)
    if wrong then reason = reason or update.id .. ": " .. wrong else used[#used + 1] = update end
  end
  if #used == 0 then error("no update can be used: " .. (reason or "there is none"), 0) end
  return round, checked(self, self.strategy:aggregate(round, self.map, used))
end

local function aggregated(self, iteration)
  self:refresh()
  local round, map = (self.form and by_sums or by_updates)(self, iteration)
  if self.strategy.after then map = checked(self, self.strategy:after(round, map)) end
  return map
end

--- Aggregates an iteration and puts the model into the store. Gives whether it was valid, and the reason where not.
function Job:aggregate(iteration)
  local before = packed.pack(where, self.strategy:state())
  local done, map = pcall(aggregated, self, iteration)
  if not done then
    local reason = tostring(map)
    self.strategy:load_state(packed.unpack(before))
    core.finish(self.desk, self.name, iteration, nil, "", "", reason, "")
    return false, reason
  end
  local metrics = ms.json.decode(core.metrics(self.desk, self.name, iteration))
  if self.evaluate then
    for name, value in pairs(self.evaluate(map)) do metrics[name] = value end
  end
  local state = packed.pack(where, self.strategy:state())
  local plan = iteration < self:settings().iterations and self:plan_of(iteration + 1, self.strategy) or ""
  local fine, problem = pcall(core.finish, self.desk, self.name, iteration, features_of(map), state, plan, "", ms.json.encode(metrics))
  if not fine then
    -- The store has nothing of it: the strategy forgets it, too, and the desk gives the work out again.
    self.strategy:load_state(packed.unpack(before))
    return false, tostring(problem)
  end
  self.map, self.version = map, iteration
  return true
end

return { Job = Job }
