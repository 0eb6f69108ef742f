-- Pipelines as tables and JSON, and back.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local base = require "lunaria.dataset.dataset"
local samplers = require "lunaria.dataset.samplers"
local steps = require "lunaria.dataset.steps"

local fail, describe = arguments.fail, arguments.describe
local description = {}
local slice_type = getmetatable(ms.slice(0, 1))

local encode

-- "vision.Resize" of a transform of the library.
local groups = { "vision", "transforms", "text", "audio" }
local function name_of_transform(where, value)
  local step = getmetatable(value)
  for _, group in ipairs(groups) do
    if rawget(ms.dataset[group], step._name) == step then return group .. "." .. step._name end
  end
  return fail("serialize", ("%s is a transform of a class of your own, which cannot be written"):format(where))
end

-- What a function, an object or the like cannot be is an error that names where it is.
local function encode_table(where, value)
  if class.is_a(value, samplers.classes.Sampler) then
    return { sampler = getmetatable(value)._name, arguments = encode(where, value._arguments), child = encode(where, value._child) }
  end
  if steps.is_transform(value) then
    local name = name_of_transform(where, value)
    return { transform = name, arguments = encode(("%s of %s"):format(name, where), value._given) }
  end
  if getmetatable(value) == slice_type then
    return { slice = { encode(where, value.start) or false, encode(where, value.stop) or false, encode(where, value.step) or false } }
  end
  if getmetatable(value) ~= nil then fail("serialize", ("%s is %s, which cannot be written"):format(where, describe(value))) end
  local list = { table = {} }
  for key, item in pairs(value) do
    list.table[#list.table + 1] = { encode(where, key), encode(("%s.%s"):format(where, tostring(key)), item) }
  end
  table.sort(list.table, function(a, b) return tostring(a[1]) < tostring(b[1]) end)
  return list
end

function encode(where, value)
  if ms.is_tensor(value) then return { tensor = value:tolist(), dtype = tostring(value.dtype) } end
  if type(value) == "table" then return encode_table(where, value) end
  if value == nil or type(value) == "string" or type(value) == "boolean" or math.type(value) == "integer" then return value end
  if math.type(value) == "float" then return { number = ("%a"):format(value) } end
  local text = tostring(value)
  if ms[text:lower()] == value then return { dtype_name = text:lower() } end
  return fail("serialize", ("%s is %s, which cannot be written"):format(where, describe(value)))
end

local function decode(value)
  if type(value) ~= "table" then return value end
  if value.number then return tonumber(value.number) end
  if value.dtype_name then return ms[value.dtype_name] end
  if value.dtype then return ms.tensor(value.tensor, ms[value.dtype:lower()]) end
  if value.sampler then
    local sampler = samplers.classes[value.sampler]
    if not sampler then fail("deserialize", ("there is no sampler '%s'"):format(tostring(value.sampler))) end
    local made = sampler(decode(value.arguments))
    return value.child and made:add_child(decode(value.child)) or made
  end
  if value.slice then return ms.slice(value.slice[1] or nil, value.slice[2] or nil, value.slice[3] or nil) end
  if value.transform then
    local group, name = tostring(value.transform):match "^(%a+)%.([%w_]+)$"
    local step = (group == "vision" or group == "transforms" or group == "text" or group == "audio") and rawget(ms.dataset[group], name)
    if type(step) ~= "table" or not step._signature then
      fail("deserialize", ("there is no transform '%s'"):format(tostring(value.transform)))
    end
    local given = decode(value.arguments)
    if given.slices then return step(table.unpack(given.slices)) end
    if next(given) == nil then return step() end
    return step(given)
  end
  local list = {}
  for _, pair in ipairs(value.table or {}) do list[decode(pair[1])] = decode(pair[2]) end
  return list
end

local function describe_pipeline(dataset)
  if not dataset._operation then fail("serialize", "a source of another kind cannot be written: " .. tostring(dataset)) end
  local list = {}
  for i = 1, 4 do list[i] = { encode(dataset._operation, dataset._arguments[i]) } end
  local children = {}
  for i, parent in ipairs(dataset._parents or {}) do children[i] = describe_pipeline(parent) end
  return { op_type = dataset._operation, arguments = list, children = children }
end

--- The pipeline of dataset as a table of tables, which ms.dataset.deserialize takes; json_filepath: a file into which it is written
--- as JSON. Functions and what holds them, vocabularies and
--- generators cannot be written: they are an error that names the argument.
---
---     > ms.dataset.serialize(ms.dataset.NumpySlicesDataset({ 1, 2 }):batch(2)).op_type
---     batch
function description.serialize(dataset, json_filepath)
  json_filepath = arguments.named("serialize", { "json_filepath" }, json_filepath)
  local text = describe_pipeline(base.check_dataset("serialize", dataset))
  if json_filepath ~= nil and json_filepath ~= "" then
    if type(json_filepath) ~= "string" then fail("serialize", "json_filepath must be a path, got " .. describe(json_filepath)) end
    local file, problem = io.open(json_filepath, "w")
    if not file then fail("serialize", problem) end
    file:write(ms.json.encode(text))
    file:close()
  end
  return text
end

local function build(tree)
  if type(tree) ~= "table" or type(tree.op_type) ~= "string" or type(tree.arguments) ~= "table" then
    fail("deserialize", "a table that ms.dataset.serialize gave is expected, got " .. describe(tree))
  end
  local given, last = {}, 0
  for i = 1, #tree.arguments do
    given[i] = decode(tree.arguments[i][1])
    if given[i] ~= nil then last = i end
  end
  local children = {}
  for i, child in ipairs(tree.children or {}) do children[i] = build(child) end
  if #children == 0 then
    local source = rawget(ms.dataset, tree.op_type)
    if type(source) ~= "table" or not source._signature then fail("deserialize", ("there is no source '%s'"):format(tree.op_type)) end
    return source(given[1])
  end
  local method = rawget(base.class, tree.op_type)
  if type(method) ~= "function" then fail("deserialize", ("there is no operation '%s'"):format(tree.op_type)) end
  if tree.op_type == "split" then return children[1]:split(given[1], given[2])[given[3]] end
  if tree.op_type == "zip" or tree.op_type == "concat" then return method(children[1], { table.unpack(children, 2) }) end
  return method(children[1], table.unpack(given, 1, last))
end

--- The data set of a table that ms.dataset.serialize gave, input_dict, or of the file into which it was written, json_filepath.
---
---     > ds = ms.dataset.deserialize(ms.dataset.serialize(ms.dataset.NumpySlicesDataset({ 1, 2, 3 }):batch(2)))
---     > ds:get_dataset_size()
---     2
function description.deserialize(input_dict, json_filepath)
  if arguments.is_options(input_dict) and not input_dict.op_type then
    input_dict, json_filepath = input_dict.input_dict, input_dict.json_filepath
  end
  if input_dict ~= nil then return build(input_dict) end
  if type(json_filepath) ~= "string" then fail("deserialize", "input_dict or json_filepath must be given") end
  local file, problem = io.open(json_filepath, "r")
  if not file then fail("deserialize", problem) end
  local text = file:read "a"
  file:close()
  return build(ms.json.decode(text))
end

--- Whether two pipelines, pipeline1 and pipeline2, do the same: their sources, operations and arguments are equal.
---
---     > ds = ms.dataset.NumpySlicesDataset { 1, 2, 3 }
---     > ms.dataset.compare(ds:batch(2), ds:batch(2))
---     true
---     > ms.dataset.compare(ds:batch(2), ds:batch(3))
---     false
function description.compare(pipeline1, pipeline2)
  return ms.json.encode(description.serialize(pipeline1)) == ms.json.encode(description.serialize(pipeline2))
end

--- The pipeline of dataset as a text; see ds:show().
---
---     > ms.dataset.show(ms.dataset.NumpySlicesDataset({ x = { 1, 2, 3 } }))
---     table: 3 rows of x
function description.show(dataset) return base.check_dataset("show", dataset):show() end

return description
