-- The administrator's endpoints of a server: MindSpore's scheduler has them, by JSON. They have an address of their own, which asks for
-- a token wherever others than this machine can reach it.
local ms = require "lunaria"
local core = require "lunaria.federated_server_core"
local serving = require "lunaria.serving"

local M = {}

-- Hyper-parameters that newInstance may change, by MindSpore's names.
local changes = {
  start_fl_job_threshold = "start_threshold", start_fl_job_time_window = "start_window", update_model_ratio = "update_ratio",
  update_model_time_window = "update_window", global_iteration_time_window = "global_window", fl_iteration_num = "iterations",
  selection = "selection",
}
for _, key in ipairs { "client_epoch_num", "client_batch_size", "client_learning_rate" } do changes[key] = key end

local function refuse(status, message) error({ status = status, message = message }, 0) end

local function decoded(body)
  if body == "" then return {} end
  local fine, given = pcall(ms.json.decode, body)
  if not fine or type(given) ~= "table" then refuse(400, "the content is no JSON object") end
  return given
end

local function instance_name() return ("%016x"):format(ms.io.secure_words(1):tolist()[1]) end

local posts, gets = {}, {}

function gets.state(_, job) return core.row(job.desk, job.name).state end

function gets.queryInstance(_, job)
  local s, c = job:settings(), job.config.client
  local row = core.row(job.desk, job.name)
  return ms.json.encode { fl_name = job.name, instance_name = row.instance, iteration_num = row.iteration,
    start_fl_job_threshold = s.start_threshold, start_fl_job_time_window = s.start_window, update_model_ratio = s.update_ratio,
    update_model_time_window = s.update_window, global_iteration_time_window = s.global_window, fl_iteration_num = s.iterations,
    selection = s.selection, client_epoch_num = c.client_epoch_num, client_batch_size = c.client_batch_size,
    client_learning_rate = c.client_learning_rate }
end

function posts.newInstance(_, job, given)
  local overrides = {}
  for key, value in pairs(job.overrides) do overrides[key] = value end
  for key, value in pairs(given) do
    if not changes[key] then refuse(400, ("there is no hyper-parameter '%s'"):format(tostring(key))) end
    overrides[changes[key]] = value
    if not math.type(value) or value <= 0 then refuse(400, ("%s must be a positive number"):format(key)) end
  end
  local name = instance_name()
  local fine, problem = pcall(job.begin_instance, job, name, overrides)
  if not fine then refuse(400, tostring(problem)) end
  job.instance = name
  return ms.json.encode { result = "Success", instance_name = name }
end

function posts.enableFLS(_, job)
  core.enable(job.desk, job.name, true)
  return ms.json.encode { result = "Success" }
end

function posts.disableFLS(_, job)
  core.enable(job.desk, job.name, false)
  return ms.json.encode { result = "Success" }
end

function posts.stop(_, job)
  core.stop(job.desk, job.name, "the administrator has stopped the job")
  return ms.json.encode { result = "Success" }
end

function gets.rounds(_, job)
  local list, after = ms.json.array {}, 0
  -- The last ones: a job may have had millions.
  local most = 1000
  while true do
    local rows = core.history(job.desk, job.name, after, most)
    for _, row in ipairs(rows) do
      row.metrics = row.metrics ~= "" and ms.json.decode(row.metrics) or {}
      list[#list + 1], after = row, row.number
      if #list > most then table.remove(list, 1) end
    end
    if #rows < most then break end
  end
  return ms.json.encode(list)
end

function gets.jobs(server)
  local list = ms.json.array {}
  for i, job in ipairs(server.jobs) do list[i] = job.name end
  return ms.json.encode(list)
end

function gets.requests(server) return (core.figures(server._desk)), "text/plain; version=0.0.4; charset=utf-8" end

local function answered(server, method, path, body)
  local action, name = path:match "^([%w_]+)/?(.*)$"
  local handlers = method == "POST" and posts or gets
  local handler = action and handlers[action]
  if not handler then refuse(404, "there is no such page: GET state, queryInstance, rounds, jobs, requests; POST newInstance, ...") end
  local job = server.jobs[1]
  if name ~= "" then
    job = nil
    for _, other in ipairs(server.jobs) do
      if other.name == name then job = other end
    end
  end
  if not job then refuse(404, "there is no such job") end
  return handler(server, job, method == "POST" and decoded(body) or nil)
end

--- Opens the endpoints at an address. Gives a handle and the address with its token.
function M.open(host, port)
  return serving.start { about = "federated administration", host = host, port = port, hosts = {}, types = { "application/json" },
    most_body = 1 << 16, most_connections = 64, most_waiting = 64 }
end

--- Answers what has come.
function M.answer(server, handle)
  while true do
    local exchange = serving.next(handle, 0)
    if not exchange then return end
    local method, path, _, body = serving.request(exchange)
    local fine, text, kind = pcall(answered, server, method, path, body)
    if fine then
      serving.answer(exchange, 200, kind or "application/json", text)
    else
      local status, message = 500, tostring(text)
      if type(text) == "table" and text.status then status, message = text.status, text.message end
      serving.answer(exchange, status, "application/json", ms.json.encode { result = "Failed", error = message })
    end
  end
end

return M
