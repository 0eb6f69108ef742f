-- The origin of a model: settings, data, results. For TensorBoard's page of hyper-parameters, and as MindSpore's lineage
-- files.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local callbacks = require "lunaria.train.callbacks"
local events = require "lunaria.train.events"

local fail, describe = arguments.fail, arguments.describe
local text_field, integer_field = events.text_field, events.integer_field
local double_field, float_field = events.double_field, events.float_field

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

--- What a user gives by name, as a field of MindSpore's.
function lineage.user_info(where, info)
  local parts = {}
  for _, name in ipairs(sorted(where, info)) do
    local value = info[name]
    if math.type(value) == "integer" and value == value << 32 >> 32 then
      parts[#parts + 1] = text_field(3, text_field(1, name) .. integer_field(2, value))
    elseif math.type(value) then
      parts[#parts + 1] = text_field(5, text_field(1, name) .. double_field(2, value + 0.0))
    elseif type(value) == "string" then
      parts[#parts + 1] = text_field(4, text_field(1, name) .. text_field(2, value))
    else
      fail(where, ("%s must be a number or a text, got %s"):format(name, describe(value)))
    end
  end
  for i, part in ipairs(parts) do parts[i] = text_field(1, part) end
  return table.concat(parts)
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

-- The operations of a data set of ours, the last one first.
local function operations_of(dataset)
  local text = dataset and getmetatable(dataset) and tostring(dataset) or ""
  return text ~= "" and text_field(2, text_field(1, text_field(1, "dataset") .. text_field(2, text))) or ""
end

--- Writes a lineage file of a training that has ended into a folder. args: what callbacks get. batch_size: nil when it is not
--- known.
function lineage.write(folder, args, batch_size, info)
  local file = events.create("SummaryCollector", folder, "events.out.events.summary.%d.%d.%s_lineage", "MindSpore.Event:1")
  local function record(number, content) file:write(double_field(1, events.now()) .. text_field(number, content)) end
  local optimizer, loss = args.optimizer, callbacks.loss_of(args)
  local rate = optimizer and rate_of(optimizer)
  local hyper = text_field(1, name_of(optimizer)) .. (rate and float_field(2, rate) or "") .. text_field(3, name_of(args.loss_fn))
    .. integer_field(4, args.epoch_num) .. text_field(5, args.parallel_mode) .. integer_field(6, args.device_number)
    .. (batch_size and integer_field(8, batch_size) or "")
  local data = integer_field(2, args.batch_num or 0)
  local algorithm = text_field(1, name_of(args.network)) .. (loss and float_field(2, loss) or "")
  local path
  for _, callback in ipairs(args.list_callback) do path = path or callback.last_checkpoint end
  local stream = path and ms.io.kind(path) == "file" and io.open(path, "rb")
  local model = text_field(3, path or "") .. integer_field(4, stream and stream:seek("end") or 0)
  if stream then stream:close() end
  record(6, text_field(1, hyper) .. text_field(2, data) .. text_field(3, algorithm) .. text_field(4, model))
  local operations = operations_of(args.train_dataset)
  if operations ~= "" then record(9, operations) end
  local results = {}
  for name, value in pairs(args.eval_results or {}) do
    if math.type(value) then results[name] = value end
  end
  if next(results) then record(7, text_field(2, ms.json.encode(results))) end
  if info then record(10, lineage.user_info("SummaryCollector", info)) end
  file:close()
end

return lineage
