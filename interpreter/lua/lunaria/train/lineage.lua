-- The origin of a model: settings, data, results. For TensorBoard's page of hyper-parameters, and as MindSpore's lineage
-- files.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local callbacks = require "lunaria.train.callbacks"
local events = require "lunaria.train.events"
local messages = require "lunaria.train.messages"

local fail, describe = arguments.fail, arguments.describe
local text_field, integer_field = events.text_field, events.integer_field
local double_field = events.double_field

local lineage = {}

local function sorted(where, list)
  if type(list) ~= "table" then fail(where, "a table by name is expected, got " .. describe(list)) end
  local names = {}
  for name in pairs(list) do
    if type(name) ~= "string" or name == "" then fail(where, "names must be strings that are not empty, got " .. describe(name)) end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- A value of google.protobuf.Value, and the number of its kind among TensorBoard's DataType.
local function boxed(where, name, value)
  if math.type(value) then return double_field(2, value), 3 end
  if type(value) == "string" then return text_field(3, value), 1 end
  if type(value) == "boolean" then return integer_field(4, value and 1 or 0), 2 end
  fail(where, ("%s must be a number, a text or a boolean, got %s"):format(name, describe(value)))
end

-- A value that holds nothing but data for the plug-in.
local function plugin_value(tag, data)
  local content = integer_field(1, 0) .. data
  return text_field(1, tag) .. text_field(9, text_field(1, text_field(1, "hparams") .. text_field(2, content)))
end

--- The values (Summary.Value) that tell TensorBoard of settings and of the names of results.
function lineage.hparams(settings, results)
  local where = "add_hparams"
  local experiment, session = {}, {}
  for _, name in ipairs(sorted(where, settings)) do
    local value, kind = boxed(where, name, settings[name])
    experiment[#experiment + 1] = text_field(4, text_field(1, name) .. integer_field(4, kind))
    session[#session + 1] = text_field(1, text_field(1, name) .. text_field(2, value))
  end
  for _, name in ipairs(sorted(where, results)) do
    if not math.type(results[name]) then fail(where, ("%s must be a number, got %s"):format(name, describe(results[name]))) end
    experiment[#experiment + 1] = text_field(5, text_field(1, text_field(2, name)))
  end
  return {
    plugin_value("_hparams_/experiment", text_field(2, table.concat(experiment))),
    plugin_value("_hparams_/session_start_info", text_field(3, table.concat(session) .. double_field(5, os.time() + 0.0))),
    plugin_value("_hparams_/session_end_info", text_field(4, integer_field(1, 1) .. double_field(2, os.time() + 0.0))),
  }
end

--- What a user gives by name, as the message user_defined_info: each name in an entry of its own.
function lineage.user_info(where, info)
  local entries = {}
  for _, name in ipairs(sorted(where, info)) do
    local value = info[name]
    if math.type(value) == "integer" and value >= -0x80000000 and value <= 0x7fffffff then
      entries[#entries + 1] = { map_int32 = { [name] = value } }
    elseif math.type(value) then
      entries[#entries + 1] = { map_double = { [name] = value + 0.0 } }
    elseif type(value) == "string" then
      entries[#entries + 1] = { map_str = { [name] = value } }
    else
      fail(where, ("%s must be a number or a text, got %s"):format(name, describe(value)))
    end
  end
  return { user_info = entries }
end

-- "bucket_batch_by_length" -> "BucketBatchByLength", as MindSpore writes types of operations.
local function type_name(operation)
  return (("_" .. operation):gsub("_(%a?)", string.upper))
end

-- Texts that are shown of a value, at most so long.
local longest = 200
local function shown(value)
  local text = tostring(value)
  if type(value) == "function" then
    local info = debug.getinfo(value, "S")
    text = ("function %s:%d"):format(info.short_src, info.linedefined)
  end
  return #text > longest and text:sub(1, longest - 3) .. "..." or text
end

-- Arguments by name as the maps of a message.
local function parameter_of(op_type, given)
  local parameter = { mapStr = { op_type = op_type }, mapBool = {}, mapInt = {}, mapDouble = {}, mapStrList = {} }
  for name, value in pairs(given) do
    if type(name) ~= "string" then name = "argument_" .. tostring(name) end
    if type(value) == "boolean" then
      parameter.mapBool[name] = value
    elseif math.type(value) == "integer" then
      parameter.mapInt[name] = value
    elseif math.type(value) then
      parameter.mapDouble[name] = value
    elseif type(value) == "table" and getmetatable(value) == nil and type(value[1]) == "string" then
      local list = {}
      for i, item in ipairs(value) do list[i] = tostring(item) end
      parameter.mapStrList[name] = { strValue = list }
    elseif ms.is_tensor(value) then
      parameter.mapStr[name] = ("tensor %s of %s"):format(tostring(value.shape), tostring(value.dtype))
    elseif type(value) == "table" and getmetatable(value) == nil then
      local ok, text = pcall(ms.json.encode, value)
      parameter.mapStr[name] = shown(ok and text or "table")
    else
      parameter.mapStr[name] = shown(value)
    end
  end
  for name, map in pairs(parameter) do
    if next(map) == nil then parameter[name] = nil end
  end
  return parameter
end

-- A transform among the operations of a map.
local function operation_of(step)
  local meta = type(step) == "table" and getmetatable(step)
  local given = type(step) == "table" and rawget(step, "_given") or {}
  local parameter = parameter_of(nil, given)
  parameter.mapStr = parameter.mapStr or {}
  parameter.mapStr.tensor_op = meta and rawget(meta, "_name") or shown(step)
  return { operationParam = parameter }
end

-- The places of arguments that operations of one or two have by their place.
local by_place = { shuffle = { "buffer_size" }, repeat_ = { "count" }, skip = { "count" }, take = { "count" },
  project = { "columns" }, rename = { "input_columns", "output_columns" }, split = { "sizes", "randomize", "part" } }

-- The operations of a map, one or a list.
local function operations_of(given)
  local list = type(given) == "table" and getmetatable(given) == nil and given or { given }
  local operations = {}
  for i, step in ipairs(list) do operations[i] = operation_of(step) end
  return operations
end

-- The arguments of an operation by name, the transforms among them, and the sampler.
local function arguments_of(dataset)
  local given, operations, sampler = {}, nil, nil
  local places = by_place[dataset._operation or ""]
  for i, name in ipairs(places or {}) do given[name] = (dataset._arguments or {})[i] end
  local options = not places and (dataset._arguments or {})[1]
  if type(options) ~= "table" or getmetatable(options) ~= nil then return given end
  for name, value in pairs(options) do
    if name == "operations" then
      operations = operations_of(value)
    elseif name == "sampler" and type(value) == "table" then
      local meta = getmetatable(value)
      sampler = { operationParam = parameter_of(meta and meta._name or "Sampler", rawget(value, "_arguments") or {}) }
    elseif type(value) == "string" or (name ~= "data" and name ~= "source") then
      given[name] = value
    end
  end
  return given, operations, sampler
end

-- The name of what made a data set: a source's class, or an operation.
local function op_type_of(dataset)
  local operation = dataset._operation
  if not operation then return getmetatable(dataset)._name end
  return operation:find "^%u" and operation or type_name((operation:gsub("_$", "")))
end

local function graph_of(dataset)
  local given, operations, sampler = arguments_of(dataset)
  given.columns = given.columns or { table.unpack(dataset:get_col_names()) }
  if given.num_parallel_workers == nil then given.num_parallel_workers = ms.dataset.config.get_num_parallel_workers() end
  local children = {}
  for i, parent in ipairs(dataset._parents or {}) do children[i] = graph_of(parent) end
  return { children = children[1] and children, parameter = parameter_of(op_type_of(dataset), given), operations = operations,
    sampler = sampler }
end

-- Whether a value is a data set of this library, with the operations that made it.
local function is_pipeline(value) return type(value) == "table" and type(value.get_col_names) == "function" and value._node ~= nil end
lineage.is_pipeline = is_pipeline

--- The operations of a data set, from the last one to its sources, as the message dataset_graph. queue_fill: how full the queue behind
--- the last one was, from 0 to 1, if that is known.
function lineage.dataset_graph(where, dataset, queue_fill)
  if not is_pipeline(dataset) then fail(where, "a data set is expected, got " .. describe(dataset)) end
  local graph = graph_of(dataset)
  if queue_fill then
    graph.parameter.mapDouble = graph.parameter.mapDouble or {}
    graph.parameter.mapDouble.queue_fill = queue_fill
  end
  return graph
end

-- The path of the first file of a data set that is read from files.
local function path_of(dataset)
  for _, parent in ipairs(dataset._parents or {}) do
    local path = path_of(parent)
    if path then return path end
  end
  local given = (dataset._arguments or {})[1]
  for _, name in ipairs { "dataset_dir", "dataset_files", "dataset_file", "path" } do
    local value = type(given) == "table" and given[name]
    if type(value) == "table" then value = value[1] end
    if type(value) == "string" then return value end
  end
  return nil
end

-- How many samples a data set has, where its batches have so many: of a list of batches those that are in it.
local function samples_of(dataset, batches, batch_size)
  if is_pipeline(dataset) then
    local ok, size = pcall(dataset.get_batch_size, dataset)
    batch_size = ok and math.tointeger(size) or batch_size
  end
  return batches and batches * (batch_size or 1)
end

-- The name of a class, or of what else there is.
local function name_of(value)
  local meta = type(value) == "table" and getmetatable(value)
  return meta and rawget(meta, "_name") or value ~= nil and type(value) or ""
end

local function rate_of(optimizer)
  local ok, rate = pcall(function() return optimizer:get_lr() end)
  if ok and type(rate) == "table" then rate = rate[1] end
  return ok and math.type(rate) and rate or nil
end

-- How many samples the first tensor of a batch has.
local function batch_size_of(batch)
  local first = type(batch) == "table" and batch[1]
  return ms.is_tensor(first) and first.ndim > 0 and first.shape[1] or nil
end
lineage.batch_size_of = batch_size_of

--- What a training was: its settings, data, network and the checkpoint that it left. args: what callbacks get. batch_size: nil when
--- it is not known.
function lineage.of_training(args, batch_size)
  local optimizer, loss = args.optimizer, callbacks.loss_of(args)
  local path
  for _, callback in ipairs(args.list_callback or {}) do path = path or callback.last_checkpoint end
  local stream = path and ms.io.kind(path) == "file" and io.open(path, "rb")
  local size = stream and stream:seek("end") or 0
  if stream then stream:close() end
  return { train_lineage = {
    hyper_parameters = { optimizer = name_of(optimizer), learning_rate = optimizer and rate_of(optimizer),
      loss_function = name_of(args.loss_fn), epoch = args.epoch_num, parallel_mode = args.parallel_mode,
      device_num = args.device_number, batch_size = batch_size },
    train_dataset = { train_dataset_path = is_pipeline(args.train_dataset) and path_of(args.train_dataset) or nil,
      train_dataset_size = samples_of(args.train_dataset, args.batch_num, batch_size) },
    algorithm = { network = name_of(args.network), loss = loss },
    model = { path = ms.json.encode { ckpt = path or ms.json.null }, size = size },
  } }
end

--- What an evaluation gave, and of which data.
function lineage.of_evaluation(args)
  local results = {}
  for name, value in pairs(args.eval_results or {}) do
    if math.type(value) and value == value and math.abs(value) < math.huge then results[name] = value end
  end
  local dataset = args.valid_dataset
  local batch_size = type(dataset) == "table" and not is_pipeline(dataset) and batch_size_of(dataset[1]) or nil
  return { evaluation_lineage = {
    metric = ms.json.encode(results),
    valid_dataset = { valid_dataset_path = is_pipeline(dataset) and path_of(dataset) or nil,
      valid_dataset_size = samples_of(dataset, args.batch_num, batch_size) },
  } }
end

--- The lineage file of a run that is going on: write(message) adds an event to it, close() ends it. where: for messages.
function lineage.create(where, folder)
  local file = events.create(where, folder, "events.out.events.summary.%d.%d.%s_lineage", "MindSpore.Event:1")
  return {
    write = function(message)
      file:write(double_field(1, events.now()) .. messages.encode(messages.lineage, message))
      file:flush()
    end,
    close = function() file:close() end,
  }
end

--- Writes a lineage file with these messages into a folder.
function lineage.write(where, folder, list)
  local file = lineage.create(where, folder)
  for _, message in ipairs(list) do file.write(message) end
  file.close()
end

return lineage
