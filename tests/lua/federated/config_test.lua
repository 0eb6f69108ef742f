-- Eager mode only: no tensor is computed with.
local ms = require "lunaria"
package.path = "tests/lua/?.lua;" .. package.path
local harness = require "harness"
local test, equal = harness.test, harness.equal

local function good()
  return { fl_name = "job", fl_iteration_num = 3, server_mode = "FEDERATED_LEARNING", enable_ssl = false,
    round = { start_fl_job_threshold = 2, start_fl_job_time_window = 1000, update_model_ratio = 0.5,
      update_model_time_window = 1000, global_iteration_time_window = 5000 },
    summary = { metrics_file = "m.json", failure_event_file = "f.json" } }
end

-- The message that a change of a good configuration gives.
local function problem(change)
  local config = good()
  change(config)
  local fine, message = pcall(ms.federated.read_config, config)
  equal(fine, false)
  return message:match "config: ([^\n]*)"
end

test("what is left out has the defaults of MindSpore", function()
  local config = ms.federated.read_config(good())
  equal(config.client.client_epoch_num, 20)
  equal(config.client.connection_num, 10000)
  equal(config.encrypt.dp_encrypt.dp_eps, 50.0)
  equal(config.encrypt.signds.sign_thr_ratio, 0.6)
  equal(config.ssl.cert_expire_warning_time_in_day, 90)
  equal(config.client_verify.replay_attack_time_diff, 600000)
  equal(config.limits.most_body, 100 << 20)
  equal(config.strategy, "FedAvg")
end)

test("every number has a range, whose ends are what they are", function()
  for _, row in ipairs(require "lunaria.federated.config_keys") do
    local path, kind, low, high = row[1], row[2], row[3], row[4]
    local function with(value)
      local config = good()
      local at, last = config, path:match "[^.]+$"
      for part in path:gmatch "([^.]+)%." do
        at[part] = at[part] or {}
        at = at[part]
      end
      at[last] = value
      return (pcall(ms.federated.read_config, config))
    end
    if kind == "integer" then
      equal({ path, with(low - 1), with(low + 0.5), with "1" }, { path, false, false, false })
      if high < 2 ^ 53 then equal({ path, with(high + 1) }, { path, false }) end
      -- Bounds that other keys narrow are tested below.
      if path ~= "encrypt.pw_encrypt.reconstruct_secrets_threshold" then equal({ path, with(low) }, { path, true }) end
    elseif kind == "number" then
      local open_low, open_high = row.open == "low" or row.open == "both", row.open == "both"
      equal({ path, with(low), with(0 / 0), with(-1.0) }, { path, not open_low, false, false })
      if high < math.huge then equal({ path, with(high), with(high * 1.01) }, { path, not open_high, false }) end
      if high == math.huge then equal({ path, with(math.huge) }, { path, false }) end
    elseif kind == "choice" then
      equal({ path, with "nonsense", with(row[3][1]) }, { path, false, true })
    elseif kind == "boolean" then
      equal({ path, with "true", with(1) }, { path, false, false })
    end
  end
end)

test("a key that is unknown is refused with the nearest one", function()
  local fine, message = pcall(function()
    local config = good()
    config.round.start_fl_job_treshold = 3
    ms.federated.read_config(config)
  end)
  equal(fine, false)
  equal(message:match "round.start_fl_job_treshold: there is no such key" ~= nil, true)
  equal(message:match "hint: (.*)", "did you mean 'round.start_fl_job_threshold'?")
end)

test("what keys cannot say alone is checked together", function()
  equal(problem(function(c) c.enable_ssl = true end):match "ssl.server_cert_path is missing" ~= nil, true)
  equal(problem(function(c)
    c.encrypt = { encrypt_type = "PW_ENCRYPT" }
    c.compression = { upload_compress_type = "DIFF_SPARSE_QUANT" }
  end):match "must be NO_COMPRESS with encrypt_type PW_ENCRYPT" ~= nil, true)
  equal(problem(function(c)
    c.encrypt = { encrypt_train_type = "PW_ENCRYPT", pw_encrypt = { reconstruct_secrets_threshold = 3 } }
  end):match "so many clients are never there" ~= nil, true)
  equal(problem(function(c)
    c.round.asynchronous = true
    c.encrypt = { encrypt_type = "STABLE_PW_ENCRYPT" }
  end):match "its updates do not belong together" ~= nil, true)
  equal(problem(function(c) c.client_verify = { pki_verify = true } end):match "root_first_ca_path is missing" ~= nil, true)
  equal(problem(function(c) c.round = 3 end), "round must be a map of keys, got 3")
  equal(problem(function(c) c.fl_name = nil end):match "^fl_name is missing" ~= nil, true)
end)

test("YAML, JSON and a table give the same", function()
  local yaml, json = os.tmpname(), os.tmpname() .. ".json"
  local function write(path, text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
  end
  write(json, ms.json.encode(good()))
  write(yaml, [[
# A comment.
fl_name: "job"
fl_iteration_num: 3
server_mode: 'FEDERATED_LEARNING'
enable_ssl: false
round:
  {start_fl_job_threshold: 2, start_fl_job_time_window: 1000, update_model_ratio: 5e-1,
   update_model_time_window: 1000, global_iteration_time_window: 0x1388}
summary:
  metrics_file: m.json
  failure_event_file: f.json
  data_rate_dir: ~
]])
  local expected = ms.json.encode(ms.federated.read_config(good()))
  equal(#expected, #ms.json.encode(ms.federated.read_config(json)))
  local read = ms.federated.read_config(yaml)
  equal(read.round.update_model_ratio, 0.5)
  equal(read.round.global_iteration_time_window, 5000)
  equal(#ms.json.encode(read), #expected)
  os.remove(yaml)
  os.remove(json)
end)

test("a server says what its model and strategy lack", function()
  local function server(change)
    local options = { config = good(), model = { w = ms.zeros { 2 } } }
    change(options)
    local fine, message = pcall(ms.federated.Server, options)
    equal(fine, false)
    return message
  end
  equal(server(function(o) o.model = nil end):match "model is missing" ~= nil, true)
  equal(server(function(o) o.config.strategy = "FedAvgg" end):match "FedAvgg" ~= nil, true)
  equal(server(function(o) o.address = "nowhere" end):match "address must be such as" ~= nil, true)
  equal(server(function(o) o.callback = { on_iteration_ended = print } end):match "on_iteration_end'" ~= nil, true)
  equal(server(function(o)
    o.config.encrypt = { encrypt_type = "PW_ENCRYPT" }
    o.strategy = { configure = function() return {} end, aggregate = function(_, _, global) return global end }
  end):match "hides updates from the server" ~= nil, true)
  equal(server(function(o)
    o.config.encrypt = { encrypt_type = "PW_ENCRYPT", pw_encrypt = { most_samples = 2 ^ 40 | 0 } }
  end):match "more than 64" ~= nil, true)
end)

test("what a strategy remembers comes back to the bit", function()
  local packed = require "lunaria.federated.packed"
  local state = { rate = 0.1, count = 3, name = "x", on = true, list = { 1, 2.5 },
    [7] = { ms.tensor { 1.5, -0.0 }, { deep = ms.tensor(3) } } }
  local bytes = packed.pack("test", state)
  local back = packed.unpack(bytes)
  equal(back.rate, 0.1)
  equal(math.type(back.count), "integer")
  equal(back[7][1]:tolist(), { 1.5, -0.0 })
  equal(1 / back[7][1]:tolist()[2], -math.huge)
  equal(back[7][2].deep:item(), 3)
  equal(packed.pack("test", back), bytes)
  equal((pcall(packed.pack, "test", { print })), false)
end)

harness.finish()
