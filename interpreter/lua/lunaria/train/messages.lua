-- Messages of Protocol Buffers as tables: of lineage files, loss landscapes and explanations, which MindSpore defines. A schema is a
-- list of rows { name, number, kind }, where kind is "string", "integer", "float", "double", "bool" or another schema, in a list of
-- one for a field that is repeated, or { map = kind }. Names are those of MindSpore's files, so that what is read reads the same.
local ms = require "lunaria"
local events = require "lunaria.train.events"

local text_field, integer_field = events.text_field, events.integer_field

local messages = {}

local Parameter = {
  { "mapStr", 1, { map = "string" } },
  { "mapStrList", 2, { map = { { "strValue", 1, { "string" } } } } },
  { "mapBool", 3, { map = "bool" } },
  { "mapInt", 4, { map = "integer" } },
  { "mapDouble", 5, { map = "double" } },
}
local Operation = { { "operationParam", 1, Parameter }, { "size", 2, { "integer" } }, { "weights", 3, { "float" } } }
local DatasetGraph = { { "parameter", 2, Parameter }, { "operations", 3, { Operation } }, { "sampler", 4, Operation } }
table.insert(DatasetGraph, 1, { "children", 1, { DatasetGraph } })

local UserInfo = {
  { "map_int32", 3, { map = "integer" } }, { "map_str", 4, { map = "string" } }, { "map_double", 5, { map = "double" } },
}
table.insert(UserInfo, 1, { "user_info", 1, { UserInfo } })

--- The content of a lineage event, by the name of its field.
messages.lineage = {
  { "train_lineage", 6, {
    { "hyper_parameters", 1, { { "optimizer", 1, "string" }, { "learning_rate", 2, "float" }, { "loss_function", 3, "string" },
      { "epoch", 4, "integer" }, { "parallel_mode", 5, "string" }, { "device_num", 6, "integer" }, { "batch_size", 8, "integer" } } },
    { "train_dataset", 2, { { "train_dataset_path", 1, "string" }, { "train_dataset_size", 2, "integer" } } },
    { "algorithm", 3, { { "network", 1, "string" }, { "loss", 2, "float" } } },
    { "model", 4, { { "path", 3, "string" }, { "size", 4, "integer" } } },
  } },
  { "evaluation_lineage", 7, {
    { "metric", 2, "string" },
    { "valid_dataset", 3, { { "valid_dataset_path", 1, "string" }, { "valid_dataset_size", 2, "integer" } } },
  } },
  { "dataset_graph", 9, DatasetGraph },
  { "user_defined_info", 10, UserInfo },
}

-- MindSpore's TensorProto; of its types, float32 and float64 have their numbers among floats.
local Tensor = { { "dims", 1, { "integer" } }, { "data_type", 2, "integer" }, { "float_data", 3, { "float" } },
  { "double_data", 6, { "double" } } }
local Points = { { "x", 1, Tensor }, { "y", 2, Tensor }, { "z", 3, Tensor } }

messages.landscape = {
  { "landscape", 1, Points },
  { "loss_path", 2, { { "intervals", 1, { "integer" } }, { "points", 2, Points } } },
  { "metadata", 3, { { "decomposition", 1, "string" }, { "unit", 2, "string" }, { "step_per_epoch", 3, "integer" } } },
  { "convergence_point", 4, Points },
}

messages.explain = {
  { "sample_id", 1, "integer" }, { "image_path", 2, "string" }, { "ground_truth_label", 3, { "integer" } },
  { "inference", 4, { { "ground_truth_prob", 1, { "float" } }, { "predicted_label", 2, { "integer" } },
    { "predicted_prob", 3, { "float" } } } },
  { "explanation", 5, { { { "explain_method", 1, "string" }, { "label", 2, "integer" }, { "heatmap_path", 3, "string" } } } },
  { "benchmark", 6, { { { "benchmark_method", 1, "string" }, { "explain_method", 2, "string" }, { "total_score", 3, "float" },
    { "label_score", 4, { "float" } } } } },
  { "metadata", 7, { { "label", 1, { "string" } }, { "explain_method", 2, { "string" } }, { "benchmark_method", 3, { "string" } } } },
  { "hoc", 9, { { { "label", 1, "integer" }, { "mask", 2, "string" },
    { "layer", 3, { { { "prob", 1, "float" }, { "box", 2, { "integer" } } } } } } } },
}

-- Whether a kind is a list or a map, rather than a schema or the name of a plain kind.
local function is_map(kind) return type(kind) == "table" and kind.map ~= nil end
-- A schema's rows begin with a name; the list of one schema or kind does not.
local function is_schema(kind) return type(kind) == "table" and type(kind[1]) == "table" and type(kind[1][1]) == "string" end
local function is_list(kind) return type(kind) == "table" and not kind.map and not is_schema(kind) end

local writers = {
  string = text_field,
  integer = integer_field,
  float = events.float_field,
  double = events.double_field,
  bool = function(number, value) return integer_field(number, value and 1 or 0) end,
}

local encode

local function encode_field(number, kind, value)
  if is_map(kind) then
    local names, parts = {}, {}
    for name in pairs(value) do names[#names + 1] = name end
    table.sort(names)
    for i, name in ipairs(names) do
      parts[i] = text_field(number, text_field(1, name) .. encode_field(2, kind.map, value[name]))
    end
    return table.concat(parts)
  end
  if is_list(kind) then
    local parts = {}
    local packed = kind[1] == "float" and "<f" or kind[1] == "double" and "<d"
    for i, item in ipairs(value) do parts[i] = packed and packed:pack(item) or encode_field(number, kind[1], item) end
    if packed and #parts > 0 then return text_field(number, table.concat(parts)) end
    return table.concat(parts)
  end
  if is_schema(kind) then return text_field(number, encode(kind, value)) end
  return writers[kind](number, value)
end

--- The bytes of a message. value: its fields by name; those that are nil are left out.
function encode(schema, value)
  local parts = {}
  for _, row in ipairs(schema) do
    if value[row[1]] ~= nil then parts[#parts + 1] = encode_field(row[2], row[3], value[row[1]]) end
  end
  return table.concat(parts)
end
messages.encode = encode

local function damaged() error("a message is damaged", 0) end

local function varint(text, at)
  local value, shift = 0, 0
  while true do
    local byte = text:byte(at) or damaged()
    value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
    if byte < 128 then return value, at end
    if shift > 63 then damaged() end
  end
end

--- Calls found(number, content, kind) for each field of a message: an integer, a number, or text (kind 0, 1 and 5, 2).
function messages.each_field(text, found)
  local at = 1
  while at <= #text do
    local key, length
    key, at = varint(text, at)
    local number, kind = key >> 3, key & 7
    if kind == 0 then
      key, at = varint(text, at)
      found(number, key, kind)
    elseif kind == 2 then
      length, at = varint(text, at)
      if length < 0 or length > #text - at + 1 then damaged() end
      found(number, text:sub(at, at + length - 1), kind)
      at = at + length
    elseif kind == 1 or kind == 5 then
      local form, size = kind == 1 and "<d" or "<f", kind == 1 and 8 or 4
      if at + size - 1 > #text then damaged() end
      found(number, (form:unpack(text, at)), kind)
      at = at + size
    else
      damaged()
    end
  end
end

local wires = { string = 2, integer = 0, bool = 0, float = 5, double = 1 }

local decode

local function decode_value(kind, content, wire, depth)
  if type(kind) == "table" then
    if wire ~= 2 then damaged() end
    return decode(kind, content, depth + 1)
  end
  if wires[kind] ~= wire then damaged() end
  if kind == "bool" then return content ~= 0 end
  return content
end

-- The numbers of a field in one piece.
local function unpacked(kind, content, list)
  local at = 1
  if kind == "float" or kind == "double" then
    local form, size = kind == "float" and "<f" or "<d", kind == "float" and 4 or 8
    if #content % size ~= 0 then damaged() end
    for i = 1, #content, size do list[#list + 1] = (form:unpack(content, i)) end
  else
    local value
    while at <= #content do
      value, at = varint(content, at)
      list[#list + 1] = kind == "bool" and value ~= 0 or value
    end
  end
end

local function add_entry(map, kind, content, depth)
  local key, value
  messages.each_field(content, function(number, item, wire)
    if number == 1 then key = item end
    if number == 2 then value = decode_value(kind, item, wire, depth) end
  end)
  if type(key) ~= "string" then damaged() end
  -- An empty value is left out of a file.
  if value == nil then value = ({ string = "", integer = 0, bool = false, float = 0.0, double = 0.0 })[kind] or {} end
  map[key] = value
end

-- Messages within messages; a damaged file may nest them without end.
local deepest = 100

--- A message as a table by name; fields that the schema lacks are left out. Raises an error where the bytes are no message.
function decode(schema, text, depth)
  depth = depth or 0
  if depth > deepest then damaged() end
  local rows, value = {}, {}
  for _, row in ipairs(schema) do rows[row[2]] = row end
  messages.each_field(text, function(number, content, wire)
    local row = rows[number]
    if not row then return end
    local name, kind = row[1], row[3]
    if is_map(kind) then
      if wire ~= 2 then damaged() end
      value[name] = value[name] or {}
      add_entry(value[name], kind.map, content, depth)
    elseif is_list(kind) then
      value[name] = value[name] or {}
      local list, item = value[name], kind[1]
      if wire == 2 and type(item) == "string" and item ~= "string" then
        unpacked(item, content, list)
      else
        list[#list + 1] = decode_value(item, content, wire, depth)
      end
    else
      value[name] = decode_value(kind, content, wire, depth)
    end
  end)
  return value
end
messages.decode = decode

--- A tensor as a field of a message, and back.
function messages.of_tensor(x)
  local dims = {}
  for i, size in ipairs(x.shape) do dims[i] = size end
  return { dims = dims, data_type = 11, float_data = x:astype(ms.float32):reshape({ -1 }):tolist() }
end
function messages.to_tensor(field)
  local numbers = field.float_data or field.double_data or {}
  local count = 1
  for _, size in ipairs(field.dims or {}) do count = count * size end
  if count ~= #numbers then damaged() end
  return ms.tensor(numbers, ms.float64):reshape(field.dims or { 1 })
end

local function points_of(field)
  field = field or {}
  local function axis(name) return field[name] and messages.to_tensor(field[name]) or ms.zeros({ 0 }, ms.float64) end
  return { x = axis "x", y = axis "y", z = axis "z" }
end

--- The bytes of a landscape as ms.insight.landscape gives one.
function messages.landscape_of(bytes)
  local m = decode(messages.landscape, bytes)
  local found, about = points_of(m.landscape), m.metadata or {}
  found.decomposition, found.unit, found.steps_per_epoch = about.decomposition, about.unit, about.step_per_epoch
  if m.loss_path then
    found.path = points_of(m.loss_path.points)
    found.path.intervals = m.loss_path.intervals or {}
  end
  if m.convergence_point then found.convergence = points_of(m.convergence_point) end
  return found
end

return messages
