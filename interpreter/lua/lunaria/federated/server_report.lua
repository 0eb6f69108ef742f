-- Reports of a server on its iterations: lines of JSON, summaries for lunaria insight, models in a folder. Of clients they say how
-- many there were and how long they took, not what they sent.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_server_core"

local Report = class.Object:extend("Report")

local function parent_of(path) return path:match "^(.*)/[^/]*$" end

local function append(path, line)
  local folder = parent_of(path)
  if folder and folder ~= "" then ms.io.make_folder(folder) end
  local file, problem = io.open(path, "a")
  if not file then arguments.fail("federated.Server", problem) end
  local fine, said = file:write(line, "\n")
  if fine then fine, said = file:close() end
  if not fine then arguments.fail("federated.Server", path .. ": " .. tostring(said)) end
end

function Report:init(job, checkpoint_dir)
  self.job, self.folder = job, checkpoint_dir
  self.seen, self.failures, self.saved = 0, 0, {}
  self.bytes_in, self.bytes_out, self.rated = 0, 0, os.time()
  local folder = job.config.summary.summary_dir
  if folder then self:begin_summary(folder) end
end

function Report:begin_summary(folder)
  local lineage = require "lunaria.train.lineage"
  local c = self.job.config
  self.record = ms.train.SummaryRecord(folder)
  self.lineage = lineage
  lineage.write("federated.Server", folder, { {
    train_lineage = {
      hyper_parameters = { optimizer = self.job:strategy_name(), learning_rate = c.client.client_learning_rate,
        epoch = c.client.client_epoch_num, batch_size = c.client.client_batch_size, parallel_mode = "federated",
        device_num = c.round.start_fl_job_threshold },
      algorithm = { network = c.fl_name },
    },
  } })
end

-- How many clients took up to the first level of minutes, up to the second, and longer.
local function participation(levels, updates)
  local low, high = levels:match "([%d.]+)%s*,%s*([%d.]+)"
  local counts = { 0, 0, 0 }
  for _, update in ipairs(updates) do
    local minutes = update.milliseconds / 60000
    local i = minutes <= tonumber(low) and 1 or minutes <= tonumber(high) and 2 or 3
    counts[i] = counts[i] + 1
  end
  return counts
end

--- Counts the durations of an iteration's updates, before they are forgotten.
function Report:note_updates(iteration)
  local updates = core.updates(self.job.desk, self.job.name, iteration)
  self.participation = { iteration = iteration,
    counts = participation(self.job.config.summary.participation_time_level, updates) }
end

function Report:save_model(iteration)
  local keep = self.job.config.server.checkpoints
  if keep == 0 then return nil end
  ms.io.make_folder(self.folder)
  local path = ("%s/%s_%d.ckpt"):format(self.folder, self.job.name:gsub("[^%w_.-]", "_"), iteration)
  local list = {}
  for _, name in ipairs(self.job.map:names()) do list[#list + 1] = { name = name, data = self.job.map:get(name) } end
  -- Whole or not at all: a server may be killed here.
  ms.save_checkpoint(list, path .. ".part.ckpt")
  assert(os.rename(path .. ".part.ckpt", path))
  self.saved[#self.saved + 1] = path
  while #self.saved > keep do os.remove(table.remove(self.saved, 1)) end
  return path
end

function Report:write_iteration(row, path)
  local summary, job = self.job.config.summary, self.job
  local metrics = row.metrics ~= "" and ms.json.decode(row.metrics) or {}
  local line = {
    fl_name = job.name, instance_name = job.instance or "", iteration_num = row.iteration, iteration_valid = row.valid,
    iteration_result = row.valid and "success" or "fail", reason = row.reason, joined_client_num = row.clients,
    milliseconds = math.max(row.ended - row.began, 0), metrics = metrics, checkpoint_file = path, time = os.time(),
  }
  local noted = self.participation
  if noted and noted.iteration == row.iteration then line.participation_time = ms.json.array(noted.counts) end
  append(summary.metrics_file, ms.json.encode(line))
  if row.valid then
    self.failures = 0
  else
    self.failures = self.failures + 1
    append(summary.failure_event_file, ms.json.encode {
      fl_name = job.name, iteration_num = row.iteration, event = "iteration failed", reason = row.reason, time = os.time(),
      continuous_failures = self.failures, is_alarm = self.failures >= summary.continuous_failure_times })
    if self.failures == summary.continuous_failure_times then
      local message = "lunaria federated server: %s: %d iterations have failed in a row: %s\n"
      io.stderr:write(message:format(job.name, self.failures, row.reason))
    end
  end
  return metrics
end

function Report:write_summary(row, metrics)
  if not self.record then return end
  for name, value in pairs(metrics) do
    if math.type(value) then self.record:add_value("scalar", "metrics/" .. name, value + 0.0) end
  end
  self.record:add_value("scalar", "federated/clients", row.clients + 0.0)
  self.record:add_value("scalar", "federated/valid", row.valid and 1.0 or 0.0)
  self.record:add_value("scalar", "federated/seconds", math.max(row.ended - row.began, 0) / 1000)
  self.record:record(row.iteration)
  self.record:flush()
end

-- Bytes of the last interval, once a minute and at the end.
function Report:write_rate(bytes_in, bytes_out, is_end)
  local folder = self.job.config.summary.data_rate_dir
  local now = os.time()
  if not folder or not is_end and now - self.rated < 60 then return end
  append(("%s/%s_data_rate_%s.txt"):format(folder, self.job.name:gsub("[^%w_.-]", "_"), os.date("!%Y-%m-%d", now)),
    ms.json.encode { time = now, seconds = now - self.rated, bytes_in = bytes_in - self.bytes_in, bytes_out = bytes_out - self.bytes_out })
  self.bytes_in, self.bytes_out, self.rated = bytes_in, bytes_out, now
end

--- Writes about the iterations that have ended since the last call, and gives each to a function with the path of its model.
function Report:update(on_end)
  while true do
    local rows = core.history(self.job.desk, self.job.name, self.seen, 100)
    if #rows == 0 then return end
    for i, row in ipairs(rows) do
      self.seen = row.number
      -- Only the last model is there.
      local is_last = i == #rows and row.valid and row.iteration == self.job.version
      local path = is_last and self:save_model(row.iteration) or nil
      self:write_summary(row, self:write_iteration(row, path))
      on_end(row, path)
    end
  end
end

--- What was written about before, by a server of this store that was ended: it is not written again.
function Report:skip()
  while true do
    local rows = core.history(self.job.desk, self.job.name, self.seen, 100)
    if #rows == 0 then return end
    self.seen = rows[#rows].number
  end
end

function Report:close()
  if self.record then self.record:close() end
  self.record = nil
end

return { Report = Report }
