-- Pipelines as tables and JSON, and back.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local base = require "lunaria.dataset.dataset"
local files = require "lunaria.dataset.files"
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
  if rawget(ms, text:lower()) == value then return { dtype_name = text:lower() } end
  return fail("serialize", ("%s is %s, which cannot be written"):format(where, describe(value)))
end

-- A description is a text from outside the program: a name in it stands for a class of one of these lists and for nothing else that
-- there is by that name, and all that it gives to one is checked by the signature of that class.
local function malformed(what, value) fail("deserialize", ("%s is expected, got %s"):format(what, describe(value))) end

local function list_of(what, value, most)
  if type(value) ~= "table" then malformed("a list of " .. what, value) end
  local count = 0
  for _ in pairs(value) do count = count + 1 end
  if count ~= #value or (most and count > most) then
    malformed(most and ("a list of at most %d %s"):format(most, what) or "a list of " .. what, value)
  end
  return value
end

local function of_fields(what, value, names)
  if type(value) ~= "table" then malformed(what, value) end
  for name in pairs(value) do
    if type(name) ~= "string" or not (" " .. names .. " "):find(" " .. name .. " ", 1, true) then
      fail("deserialize", ("%s has no %s; it has: %s"):format(what, describe(name), names))
    end
  end
  return value
end

-- A class of a list that is one of `parent`'s; shown: its name in messages, where that is longer.
local function class_of(what, list, name, parent, shown)
  local found = type(name) == "string" and rawget(list, name)
  if type(found) == "table" and rawget(found, "_signature") then
    local above = getmetatable(found)
    if type(above) == "table" and above.__index == parent then return found end
  end
  return fail("deserialize", ("there is no %s '%s'"):format(what, tostring(shown or name)))
end

local function dtype_of(name)
  local dtype = type(name) == "string" and rawget(ms, name:lower())
  if debug.getmetatable(dtype) ~= debug.getmetatable(ms.float32) then
    fail("deserialize", ("there is no dtype '%s'"):format(tostring(name)))
  end
  return dtype
end

local decode

local function options_of(value)
  value = decode(value)
  if type(value) ~= "table" or getmetatable(value) ~= nil or (next(value) ~= nil and not arguments.is_options(value)) then
    malformed("a table of arguments by name", value)
  end
  return value
end

local kinds = {
  number = function(value)
    of_fields("a number", value, "number")
    return type(value.number) == "string" and tonumber(value.number) or malformed("a number as text", value.number)
  end,
  dtype_name = function(value) return dtype_of(of_fields("a dtype", value, "dtype_name").dtype_name) end,
  tensor = function(value)
    of_fields("a tensor", value, "tensor dtype")
    return ms.tensor(value.tensor, dtype_of(value.dtype))
  end,
  sampler = function(value)
    of_fields("a sampler", value, "sampler arguments child")
    local made = class_of("sampler", samplers.classes, value.sampler, samplers.classes.Sampler)(options_of(value.arguments))
    return value.child and made:add_child(decode(value.child)) or made
  end,
  slice = function(value)
    local parts = list_of("parts of a slice", of_fields("a slice", value, "slice").slice, 3)
    return ms.slice(parts[1] or nil, parts[2] or nil, parts[3] or nil)
  end,
  transform = function(value)
    of_fields("a transform", value, "transform arguments")
    local group, name = tostring(value.transform):match "^(%a+)%.([%w_]+)$"
    local known = false
    for _, other in ipairs(groups) do known = known or other == group end
    if not known then fail("deserialize", ("there is no transform '%s'"):format(tostring(value.transform))) end
    local step, given = class_of("transform", ms.dataset[group], name, steps.Transform, value.transform), options_of(value.arguments)
    if given.slices then return step(table.unpack(list_of("slices", given.slices))) end
    if next(given) == nil then return step() end
    return step(given)
  end,
  table = function(value)
    local list = {}
    for _, pair in ipairs(list_of("pairs", of_fields("a table", value, "table").table)) do
      local key = decode(list_of("a name and a value", pair, 2)[1])
      if type(key) ~= "string" and math.type(key) ~= "integer" then malformed("a name or a number as a key", key) end
      list[key] = decode(pair[2])
    end
    return list
  end,
}

function decode(value)
  if type(value) ~= "table" then return value end
  for kind, made in pairs(kinds) do
    if value[kind] ~= nil then return made(value) end
  end
  return malformed("a value that ms.dataset.serialize wrote", value)
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
---     > ms.dataset.serialize(ms.dataset.NumpySlicesDataset({ 1, 2 }):batch(2)).op_type --> batch
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
  of_fields("a data set", tree, "op_type arguments children")
  local given, last = {}, 0
  for i, argument in ipairs(list_of("arguments", tree.arguments, 4)) do
    given[i] = decode(list_of("one argument", argument, 1)[1])
    if given[i] ~= nil then last = i end
  end
  local children = {}
  for i, child in ipairs(list_of("data sets", tree.children or {})) do children[i] = build(child) end
  if #children == 0 then
    local source = class_of("source", ms.dataset, tree.op_type, base.class)
    if last > 1 or type(given[1]) ~= "table" then malformed("the table of the arguments of " .. tree.op_type, given[1]) end
    return source(given[1])
  end
  local most = base.operations[tree.op_type]
  if not most then fail("deserialize", ("there is no operation '%s'"):format(tree.op_type)) end
  if last > most then fail("deserialize", ("%s has at most %d arguments, got %d"):format(tree.op_type, most, last)) end
  local method = base.class[tree.op_type]
  if tree.op_type == "zip" or tree.op_type == "concat" then return method(children[1], { table.unpack(children, 2) }) end
  if #children > 1 then fail("deserialize", ("%s has one data set before it, got %d"):format(tree.op_type, #children)) end
  if tree.op_type ~= "split" then return method(children[1], table.unpack(given, 1, last)) end
  return children[1]:split(given[1], given[2])[given[3]] or fail("deserialize", "split has no part " .. describe(given[3]))
end

--- The data set of a table that ms.dataset.serialize gave, input_dict, or of the file into which it was written, json_filepath.
---     > ds = ms.dataset.deserialize(ms.dataset.serialize(ms.dataset.NumpySlicesDataset({ 1, 2, 3 }):batch(2)))
---     > ds:get_dataset_size() --> 2
function description.deserialize(input_dict, json_filepath)
  if arguments.is_options(input_dict) and not input_dict.op_type then
    input_dict, json_filepath = input_dict.input_dict, input_dict.json_filepath
  end
  if input_dict ~= nil then return build(input_dict) end
  if json_filepath == nil then fail("deserialize", "input_dict or json_filepath must be given") end
  return build(ms.json.decode(files.text_of("deserialize", json_filepath, "json_filepath")))
end

--- Whether two pipelines, pipeline1 and pipeline2, do the same: their sources, operations and arguments are equal.
---     > ds = ms.dataset.NumpySlicesDataset { 1, 2, 3 }
---     > ms.dataset.compare(ds:batch(2), ds:batch(2)) --> true
---     > ms.dataset.compare(ds:batch(2), ds:batch(3)) --> false
function description.compare(pipeline1, pipeline2)
  return ms.json.encode(description.serialize(pipeline1)) == ms.json.encode(description.serialize(pipeline2))
end

--- The pipeline of dataset as a text; see ds:show().
---     > ms.dataset.show(ms.dataset.NumpySlicesDataset({ x = { 1, 2, 3 } })) --> table: 3 rows of x
function description.show(dataset) return base.check_dataset("show", dataset):show() end

return description
