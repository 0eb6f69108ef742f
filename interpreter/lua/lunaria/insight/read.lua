-- ms.insight.read and ms.insight.runs: what a run has left in its folder, as tables.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local events = require "lunaria.train.events"
local messages = require "lunaria.train.messages"

local fail, describe = arguments.fail, arguments.describe

local Run = {}
Run.__index = Run
Run.__name = "run"

local function count_of(list)
  local count = 0
  for _ in pairs(list) do count = count + 1 end
  return count
end

function Run:__tostring()
  local words = {}
  for _, kind in ipairs { "scalars", "histograms", "images", "tensors", "texts", "audio", "landscapes" } do
    local count = count_of(self[kind])
    if count > 0 then words[#words + 1] = ("%s %d"):format(kind, count) end
  end
  return ("run %s: %s"):format(self.path, #words > 0 and table.concat(words, ", ") or "nothing recorded")
end

local function path_at(where, path)
  path = arguments.named(where, { "path" }, path)
  if type(path) ~= "string" or path == "" then fail(where, "path must be a folder, got " .. describe(path)) end
  if ms.io.kind(path) ~= "folder" then fail(where, ("there is no folder %s"):format(path)) end
  return path
end

-- The messages of the lineage files of a folder, in the order in which they were written.
local function lineage_events(path, names)
  local list = {}
  for _, name in ipairs(names) do
    if events.is_lineage(name) then
      for i, event in ipairs((ms.io.read_events(path .. "/" .. name, true))) do
        for _, row in ipairs(messages.lineage) do
          local bytes = event.others and event.others[row[2]]
          if bytes then
            local ok, message = pcall(messages.decode, row[3], bytes)
            if not ok then fail("read", ("%s/%s: record %d is damaged"):format(path, name, i - 1)) end
            list[#list + 1] = { kind = row[1], value = message, wall_time = event.wall_time, file = name }
          end
        end
      end
    end
  end
  return list
end

local function values_of(message)
  local found = {}
  for _, map in ipairs { "map_int32", "map_str", "map_double" } do
    for name, value in pairs(message[map] or {}) do found[name] = value end
  end
  for _, inner in ipairs(message.user_info or {}) do
    for name, value in pairs(values_of(inner)) do found[name] = value end
  end
  return found
end

-- All parameters of an operation, whatever their kind.
local function parameters_of(parameter)
  local found = {}
  for _, map in ipairs { "mapStr", "mapBool", "mapInt", "mapDouble" } do
    for name, value in pairs((parameter or {})[map] or {}) do found[name] = value end
  end
  for name, list in pairs((parameter or {}).mapStrList or {}) do found[name] = list.strValue or {} end
  return found
end

-- The data set's operations as nodes and edges, from the sources on.
local function graph_of(message)
  local nodes, edges = {}, {}
  local function walk(operation)
    local inputs = {}
    for i, child in ipairs(operation.children or {}) do inputs[i] = walk(child) end
    local parameters = parameters_of(operation.parameter)
    local name = parameters.op_type or "?"
    parameters.op_type = nil
    for i, step in ipairs(operation.operations or {}) do
      local given = parameters_of(step.operationParam)
      parameters.operations = parameters.operations or {}
      parameters.operations[i] = given
    end
    if operation.sampler then parameters.sampler = parameters_of(operation.sampler.operationParam) end
    nodes[#nodes + 1] = { id = #nodes, name = name, parameters = parameters }
    for _, input in ipairs(inputs) do edges[#edges + 1] = { input, #nodes - 1 } end
    return #nodes - 1
  end
  walk(message)
  return { nodes = nodes, edges = edges }
end

-- The last message of each kind, in one table.
local function lineage_of(list)
  local found = { events = list, hyper = {}, metrics = {}, user = {} }
  for _, event in ipairs(list) do
    local message = event.value
    if event.kind == "train_lineage" then
      found.hyper = message.hyper_parameters or {}
      local data = message.train_dataset or {}
      found.train_dataset = { path = data.train_dataset_path, size = data.train_dataset_size }
      found.network, found.loss = (message.algorithm or {}).network, (message.algorithm or {}).loss
      local model = message.model or {}
      local ok, paths = pcall(ms.json.decode, model.path or "")
      local checkpoint = ok and type(paths) == "table" and paths.ckpt
      found.model = { path = type(checkpoint) == "string" and checkpoint or nil, size = model.size }
    elseif event.kind == "evaluation_lineage" then
      local ok, metrics = pcall(ms.json.decode, message.metric or "")
      for name, value in pairs(ok and type(metrics) == "table" and metrics or {}) do found.metrics[name] = value end
      local data = message.valid_dataset or {}
      found.valid_dataset = { path = data.valid_dataset_path, size = data.valid_dataset_size }
    elseif event.kind == "dataset_graph" then
      found.dataset_graph = graph_of(message)
    else
      for name, value in pairs(values_of(message)) do found.user[name] = value end
    end
  end
  return found
end

-- google.protobuf.Value.
local Value = { { "number", 2, "double" }, { "text", 3, "string" }, { "bool", 4, "bool" } }
local HParams = { { "start", 3, { { "settings", 1, { map = Value } } } },
  { "experiment", 2, { { "metrics", 5, { { { "name", 1, { { "tag", 2, "string" } } } } } } } } }

-- What add_hparams wrote, and other programs do.
local function hyper_parameters_of(reader)
  local settings, metrics = {}, {}
  for _, tag in ipairs(reader and reader:tags "hparams" or {}) do
    for _, entry in ipairs(reader:values(tag)) do
      local ok, message = pcall(messages.decode, HParams, entry.value)
      message = ok and message or {}
      for name, value in pairs((message.start or {}).settings or {}) do
        if value.bool ~= nil then
          settings[name] = value.bool
        else
          settings[name] = value.number or value.text
        end
      end
      for _, metric in ipairs((message.experiment or {}).metrics or {}) do
        local name = (metric.name or {}).tag
        local series = name and pcall(reader.kind, reader, name) and reader:values(name)
        if series and math.type(series[#series].value) then metrics[name] = series[#series].value end
      end
    end
  end
  return { settings = settings, metrics = metrics }
end

local function profiles_of(path)
  local folder, found = path .. "/profiler", {}
  for _, name in ipairs(ms.io.list_folder(folder) or {}) do
    if name:find "%.json$" then
      local file <close> = io.open(folder .. "/" .. name, "r")
      local ok, profile = pcall(ms.json.decode, file and file:read "a" or "")
      if ok and type(profile) == "table" and profile.operators then
        profile.file = name
        found[#found + 1] = profile
      end
    end
  end
  return found
end

local kinds = { scalar = "scalars", histogram = "histograms", image = "images", tensor = "tensors", text = "texts", audio = "audio",
  landscape = "landscapes" }

-- The columns of a scalar as tensors.
local function columns_of(list)
  local steps, times, values = {}, {}, {}
  for i, entry in ipairs(list) do steps[i], times[i], values[i] = entry.step, entry.wall_time, entry.value end
  return { step = ms.tensor(steps, ms.int64), wall_time = ms.tensor(times, ms.float64), value = ms.tensor(values, ms.float64) }
end

--- What a run has left in a folder, whether this library, MindSpore or TensorBoard wrote it: a table of scalars (by tag: tensors step,
--- wall_time and value), histograms, images, tensors, texts, audio (by tag: lists of { step =, wall_time =, value = } as
--- ms.train.SummaryReader gives them), landscapes (by tag, as ms.insight.landscape gives them), lineage (hyper, train_dataset,
--- valid_dataset, network, loss, model, metrics, user, dataset_graph of nodes and edges, and events: the messages as they were written),
--- hparams (settings and metrics of add_hparams), explanations (of ms.explain.ImageClassificationRunner) and profiles (of ms.Profiler). A
--- run that is being written is read as far as it is whole. path: the folder.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_read")
---     > for step = 1, 3 do record:add_value("scalar", "loss", 1 / step); record:record(step) end
---     > record:close()
---     > run = ms.insight.read("/tmp/lunaria_help_read")
---     > run.scalars.loss.step:tolist()[3], run.scalars.loss.value[1]:item() --> 3	0.5
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_read") --> true
local function read(path)
  path = path_at("read", path)
  local names, has_events = ms.io.list_folder(path), false
  for _, name in ipairs(names) do has_events = has_events or events.has_values(name) end
  local run = setmetatable({ path = path, explanations = {} }, Run)
  for _, field in pairs(kinds) do run[field] = {} end
  local reader = has_events and ms.train.SummaryReader(path, { partial = true }) or nil
  for kind, field in pairs(kinds) do
    for _, tag in ipairs(reader and reader:tags(kind) or {}) do
      local list = reader:values(tag)
      if kind == "scalar" then
        run[field][tag] = columns_of(list)
      elseif kind == "landscape" then
        run[field][tag] = list[#list].value
      else
        run[field][tag] = list
      end
    end
  end
  run.explanations, run.has_graph = reader and reader.explanations or {}, reader ~= nil and reader.has_graph or false
  run.lineage = lineage_of(lineage_events(path, names))
  run.hparams = hyper_parameters_of(reader)
  run.profiles = profiles_of(path)
  return run
end

-- Folders within folders, at most so deep, so that a link that leads back ends somewhere.
local deepest = 16

--- The folders below a folder, and itself, that have records of a run, as paths that read takes, sorted. path: the folder.
---     > record = ms.train.SummaryRecord("/tmp/lunaria_help_runs/first")
---     > record:close()
---     > ms.insight.runs("/tmp/lunaria_help_runs")[1] --> /tmp/lunaria_help_runs/first
---     > os.remove(record.path) and os.remove("/tmp/lunaria_help_runs/first") and os.remove("/tmp/lunaria_help_runs") --> true
local function runs(path)
  local found = {}
  local function walk(folder, depth)
    local is_run = false
    for _, name in ipairs(ms.io.list_folder(folder) or {}) do
      is_run = is_run or events.has_values(name) or events.is_lineage(name)
      if depth < deepest and name:sub(1, 1) ~= "." and ms.io.kind(folder .. "/" .. name) == "folder" then
        walk(folder .. "/" .. name, depth + 1)
      end
    end
    if is_run then found[#found + 1] = folder end
  end
  walk(path_at("runs", path), 0)
  table.sort(found)
  return found
end

return { read = read, runs = runs }
