-- Runs data pipelines that are written as JSON and prints a digest of every row:
--   lunaria tests/conformance/dataset.lua FILE.json [--workers N] [--rows N] [--epoch E] [--skip N]
-- FILE has one pipeline or a list of them:
--   { "name": ..., "seed": 5, "source": { "kind": "range", "count": 100, "shuffle": true }, "operations": [["shuffle", 10], ["batch", 4]] }
-- Sources: range (count, shuffle); csv, text, tfrecord, mindrecord, jsonlines (files, shuffle); mnist, cifar10 (folder, usage,
-- shuffle); images (folder, shuffle). Operations have the names of the methods of data sets. An argument
-- { "transforms": [["vision.Resize", [8, 8]], ["vision.HWC2CHW"]] } is a list of transforms with their arguments. --epoch and --skip
-- go on behind that many rows of an epoch by way of a state, as after a restart. Lines are "name epoch row digest"; those of two
-- runs are equal where they have the same rows, for any number of workers. --rows: how many lines of each pipeline, over the ends
-- of epochs.
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"
local D = ms.dataset

local usage = "usage: lunaria dataset.lua FILE.json [--workers N] [--rows N] [--epoch E] [--skip N]"
local path, options = support.options(usage, { workers = "2", rows = "1000", epoch = "0", skip = "0" })

local sources = {
  range = function(s) return D.NumpySlicesDataset(ms.arange(s.count), { "x" }, { shuffle = s.shuffle }) end,
  csv = function(s) return D.CSVDataset(s.files, { shuffle = s.shuffle, column_defaults = s.column_defaults }) end,
  text = function(s) return D.TextFileDataset(s.files, { shuffle = s.shuffle }) end,
  tfrecord = function(s) return D.TFRecordDataset(s.files, { shuffle = s.shuffle }) end,
  mindrecord = function(s) return D.MindDataset(s.files, { shuffle = s.shuffle }) end,
  jsonlines = function(s) return D.JSONLinesDataset(s.files, { shuffle = s.shuffle }) end,
  images = function(s) return D.ImageFolderDataset(s.folder, { shuffle = s.shuffle }) end,
  cifar10 = function(s) return D.Cifar10Dataset(s.folder, { usage = s.usage, shuffle = s.shuffle }) end,
  mnist = function(s) return D.MnistDataset(s.folder, { usage = s.usage, shuffle = s.shuffle }) end,
}

-- An argument of an operation: lists of transforms are made of their names.
local function argument(value)
  if type(value) ~= "table" or not value.transforms then return value end
  local list = {}
  for i, step in ipairs(value.transforms) do
    local group, name = step[1]:match "^(%a+)%.(%w+)$"
    local make = group and D[group] and D[group][name] or error("there is no transform " .. tostring(step[1]))
    list[i] = make(table.unpack(step, 2))
  end
  return list
end

-- FNV-1a over the text of a row: what tells two rows apart, not what withstands an adversary.
local function digest(text)
  local hash = 0xcbf29ce484222325
  for i = 1, #text do hash = (hash ~ text:byte(i)) * 0x100000001b3 end
  return ("%016x"):format(hash)
end

local function text_of(value)
  if ms.is_tensor(value) then return tostring(value.dtype) .. tostring(value.shape) .. ms.json.encode(value:tolist()) end
  if type(value) == "table" then
    local parts = {}
    for i, item in ipairs(value) do parts[i] = text_of(item) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  return ("%q"):format(value)
end

local function run(pipeline, index)
  D.config.set_seed(pipeline.seed or 0)
  D.config.set_num_parallel_workers(math.tointeger(options.workers))
  local make = sources[pipeline.source.kind] or error("there is no source " .. tostring(pipeline.source.kind))
  local ds = make(pipeline.source)
  for _, operation in ipairs(pipeline.operations or {}) do
    local method = D.Dataset[operation[1]] or error("there is no operation " .. tostring(operation[1]))
    local given = {}
    for i = 2, #operation do given[i - 1] = argument(operation[i]) end
    ds = method(ds, table.unpack(given))
  end
  local it = ds:create_tuple_iterator()
  local epoch, skip = math.tointeger(options.epoch), math.tointeger(options.skip)
  if epoch > 0 or skip > 0 then it:restore { epoch = epoch, row = skip } end
  local left = math.tointeger(options.rows)
  while left > 0 do
    local row = table.pack(it())
    if row[1] == nil then break end
    local parts = {}
    for i = 1, row.n do parts[i] = text_of(row[i]) end
    local state = it:state()
    print(("%s %d %d %s"):format(pipeline.name or index, state.epoch, state.row - 1, digest(table.concat(parts, "|"))))
    left = left - 1
  end
  it:close()
end

local pipelines = support.read_json(path)
if pipelines.source then pipelines = { pipelines } end
for index, pipeline in ipairs(pipelines) do run(pipeline, index) end
