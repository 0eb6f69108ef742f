-- ms.mindrecord: converters of other formats.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local files = require "lunaria.dataset.files"
local FileWriter = require "lunaria.mindrecord.writer"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local converters = {}

-- Rows that are put together before they are written.
local rows_at_once = 256

-- Writes the rows that next_row() gives until it gives nil; how many there were.
local function write(path, partitions, content, description, index, next_row)
  local writer = FileWriter(path, { shard_num = partitions or 1 })
  writer:add_schema(content, description)
  if index and #index > 0 then writer:add_index(index) end
  local rows = {}
  for row in next_row do
    rows[#rows + 1] = row
    if #rows == rows_at_once then
      writer:write_raw_data(rows)
      rows = {}
    end
  end
  writer:write_raw_data(rows)
  return writer:commit()
end

local function text(name, what, value)
  if type(value) ~= "string" or value == "" then fail(name, ("%s must be a path, got %s"):format(what, describe(value))) end
  return value
end

local function define(name, signature, doc, setup)
  local converter = class.define(nil, name, signature, doc)
  function converter:setup(a)
    text(name, "source", a.source or a.map_file)
    text(name, "destination", a.destination)
    if a.partition_number ~= nil then check.positive(name, "partition_number", a.partition_number) end
    setup(self, a, name)
  end
  converters[name] = converter
  return converter
end

local function rows_of(dataset)
  local rows = dataset:create_dict_iterator { num_epochs = 1 }
  return function() return rows() end
end

-- Pixels of a picture as a PNG file, which loses nothing.
local function png(image)
  return require "lunaria.rendering".png(image, image.shape[2], image.shape[1], image.shape[3])
end

define("MnistToMR", "source, destination, partition_number=1", [[
Converts MNIST, the folder source of its idx files, to the MindRecord files destination_train.mindrecord and
destination_test.mindrecord with the fields label,
int64, and data, a PNG file. partition_number: how many files each.

    > ms.mindrecord.MnistToMR("/no/such/folder", "/tmp/lunaria_help")
    MnistToMR<>]], function(self, a) self._a = a end)

--- Converts; gives the numbers of rows for training and test.
---     > (pcall(ms.mindrecord.MnistToMR("/no/such/folder", "/tmp/lunaria_help").transform)) --> false
function converters.MnistToMR:transform()
  local a, counts = self._a, {}
  for i, usage in ipairs { "train", "test" } do
    local rows = rows_of(ms.dataset.MnistDataset(a.source, usage, { shuffle = false }))
    counts[i] = write(("%s_%s.mindrecord"):format(a.destination, usage), a.partition_number,
      { label = { type = "int64" }, data = { type = "bytes" } }, "mnist_schema", { "label" }, function()
        local row = rows()
        return row and { label = row.label:item(), data = png(row.image) }
      end)
  end
  return table.unpack(counts)
end

local function cifar(name, title, dataset, labels, description)
  define(name, "source, destination", ([[
Converts %s, the folder source of its binary files, to the MindRecord file destination and, for the part for tests, the same name
with _test behind it, with
the fields id, %s, int64, and data, a PNG file.

    > ms.mindrecord.%s("/no/such/folder", "/tmp/lunaria_help.mindrecord")
    %s<>]]):format(title, table.concat(labels, ", "), name, name), function(self, a) self._a = a end)

  --- Converts; gives the numbers of rows for training and test. fields: a list of those that are indexed.
  converters[name].transform = function(self, fields)
    fields = arguments.named("transform", { "fields" }, fields)
    if fields ~= nil and (type(fields) ~= "table" or getmetatable(fields) ~= nil) then
      fail("transform", "fields must be a list of names, got " .. describe(fields))
    end
    local a, counts = self._a, {}
    for i, usage in ipairs { "train", "test" } do
      local rows, id = rows_of(ms.dataset[dataset](a.source, usage, { shuffle = false })), -1
      local content = { id = { type = "int64" }, data = { type = "bytes" } }
      for _, label in ipairs(labels) do content[label] = { type = "int64" } end
      counts[i] = write(a.destination .. (usage == "test" and "_test" or ""), 1, content, description .. usage, fields, function()
        local row = rows()
        if not row then return nil end
        id = id + 1
        local result = { id = id, data = png(row.image) }
        for _, label in ipairs(labels) do result[label] = (row[label] or row[label:gsub("_label$", "") .. "_label"]):item() end
        return result
      end)
    end
    return table.unpack(counts)
  end
end

cifar("Cifar10ToMR", "CIFAR-10", "Cifar10Dataset", { "label" }, "img_")
cifar("Cifar100ToMR", "CIFAR-100", "Cifar100Dataset", { "coarse_label", "fine_label" }, "img_")

define("ImageNetToMR", "map_file, image_dir, destination, partition_number=1", [[
Converts folders of JPEG files to MindRecord: map_file has a line "folder label" for each class, image_dir is where the folders are.
The fields of destination
are label, int32, file_name and data, the file. partition_number: how many files.

    > tostring(ms.mindrecord.ImageNetToMR("/no/map.txt", "/no/folder", "/tmp/lunaria_help.mindrecord"))
    ImageNetToMR<>]], function(self, a, name)
  text(name, "image_dir", a.image_dir)
  self._a = a
end)

local function list_folder(where, path)
  local names = ms.io.list_folder(path) or fail(where, "there is no folder " .. path)
  table.sort(names)
  return names
end

--- Converts; gives the number of rows.
---     > (pcall(ms.mindrecord.ImageNetToMR("/no/map.txt", "/no/folder", "/tmp/lunaria_help.mindrecord").transform)) --> false
function converters.ImageNetToMR:transform()
  local a, list = self._a, {}
  local number = 0
  for line in files.text_of("ImageNetToMR", a.map_file):gmatch "[^\r\n]+" do
    number = number + 1
    local folder, label = line:match "^(%S+)%s+(%-?%d+)%s*$"
    if not folder then fail("ImageNetToMR", ("line %d of %s is not \"folder label\": %s"):format(number, a.map_file, line)) end
    for _, file in ipairs(list_folder("ImageNetToMR", a.image_dir .. "/" .. folder)) do
      if file:lower():match "%.jpe?g$" then
        list[#list + 1] = { file = a.image_dir .. "/" .. folder .. "/" .. file, label = math.tointeger(tonumber(label)) }
      end
    end
  end
  local at = 0
  local content = { label = { type = "int32" }, file_name = { type = "string" }, data = { type = "bytes" } }
  return write(a.destination, a.partition_number, content, "imagenet_schema", { "label", "file_name" }, function()
      at = at + 1
      local item = list[at]
      return item and { label = item.label, file_name = item.file, data = files.text_of("ImageNetToMR", item.file) }
    end)
end

define("CsvToMR", "source, destination, columns_list=nil, partition_number=1", [[
Converts a CSV file, whose first line names the columns, to the MindRecord file destination. columns_list: the columns that are
taken, else all. A column is int64
or float64 if all its fields are such numbers, else string. partition_number: how many files.

    > f = io.open("/tmp/lunaria_help7.csv", "w") f:write("x,name\n1,one\n2,two\n") f:close()
    > ms.mindrecord.CsvToMR("/tmp/lunaria_help7.csv", "/tmp/lunaria_help7.mindrecord"):transform()
    2
    > ms.mindrecord.FileReader("/tmp/lunaria_help7.mindrecord"):get_next()().x
    1
    > (os.remove("/tmp/lunaria_help7.csv") and os.remove("/tmp/lunaria_help7.mindrecord") and os.remove("/tmp/lunaria_help7.mindrecord.db"))
    true]], function(self, a, name)
  if a.columns_list ~= nil and (type(a.columns_list) ~= "table" or #a.columns_list == 0) then
    fail(name, "columns_list must be a list of names, got " .. describe(a.columns_list))
  end
  self._a = a
end)

--- Converts; gives the number of rows.
---     > (pcall(ms.mindrecord.CsvToMR("/no/such.csv", "/tmp/lunaria_help.mindrecord").transform)) --> false
function converters.CsvToMR:transform()
  local a = self._a
  local dataset = ms.dataset.CSVDataset(a.source, { shuffle = false })
  if a.columns_list then dataset = dataset:project(a.columns_list) end
  local names, types = dataset:get_col_names(), {}
  for _, name in ipairs(names) do types[name] = "int64" end
  for row in dataset:create_dict_iterator() do
    for _, name in ipairs(names) do
      local number = tonumber(row[name])
      if not number then
        types[name] = "string"
      elseif types[name] == "int64" and math.type(number) ~= "integer" then
        types[name] = "float64"
      end
    end
  end
  local content = {}
  for name, kind in pairs(types) do content[name] = { type = kind } end
  local rows = rows_of(dataset)
  return write(a.destination, a.partition_number, content, "csv_schema", names, function()
    local row = rows()
    if not row then return nil end
    for _, name in ipairs(names) do
      if types[name] ~= "string" then row[name] = tonumber(row[name]) end
    end
    return row
  end)
end

define("TFRecordToMR", "source, destination, feature_dict, bytes_fields=nil", [[
Converts a TFRecord file of tf.Example messages to the MindRecord file destination. feature_dict: the type of each feature that is
taken, "int64", "float32" or "string", or
a table { type =, shape = { n } } for n numbers. bytes_fields: the strings that are bytes.

    > ms.dataset.NumpySlicesDataset({ x = { 1, 2, 3 } }, { shuffle = false }):save("/tmp/lunaria_help8.tfrecord")
    3
    > ms.mindrecord.TFRecordToMR("/tmp/lunaria_help8.tfrecord", "/tmp/lunaria_help8.mindrecord", { x = "int64" }):transform()
    3
    > ms.mindrecord.FileReader("/tmp/lunaria_help8.mindrecord"):get_next()().x
    1
    > for _, ending in ipairs { "tfrecord", "mindrecord", "mindrecord.db" } do os.remove("/tmp/lunaria_help8." .. ending) end]],
function(self, a, name)
  if type(a.feature_dict) ~= "table" or next(a.feature_dict) == nil then
    fail(name, "feature_dict must be a table such as { x = \"int64\" }, got " .. describe(a.feature_dict))
  end
  local is_bytes = {}
  for _, field in ipairs(a.bytes_fields or {}) do
    if a.feature_dict[field] == nil then fail(name, ("bytes_fields has '%s', which feature_dict does not have"):format(tostring(field))) end
    is_bytes[field] = true
  end
  local content, names = {}, {}
  for field, kind in pairs(a.feature_dict) do
    local shape
    if type(kind) == "table" and getmetatable(kind) == nil then kind, shape = kind.type, kind.shape end
    kind = tostring(kind):lower()
    if kind ~= "string" and kind ~= "int64" and kind ~= "float32" then
      fail(name, ("feature '%s' has the type %s: it must be string, int64 or float32"):format(tostring(field), describe(kind)))
    end
    content[field] = { type = is_bytes[field] and "bytes" or kind, shape = shape }
    names[#names + 1] = field
  end
  table.sort(names)
  self._a, self._content, self._names = a, content, names
end)

-- Its features are a table of names, which is no table of arguments.
local plain_init = converters.TFRecordToMR.init
function converters.TFRecordToMR:init(...)
  local source, destination, features, bytes_fields = ...
  if type(destination) == "string" and arguments.is_options(features) and not features.feature_dict then
    if arguments.is_options(bytes_fields) then bytes_fields = bytes_fields.bytes_fields end
    return plain_init(self, { source = source, destination = destination, feature_dict = features, bytes_fields = bytes_fields })
  end
  return plain_init(self, ...)
end

--- Converts; gives the number of rows.
---     > (pcall(ms.mindrecord.TFRecordToMR("/no/such.tfrecord", "/tmp/lunaria_help.mindrecord", { x = "int64" }).transform)) --> false
function converters.TFRecordToMR:transform()
  local a, content = self._a, self._content
  local rows = rows_of(ms.dataset.TFRecordDataset(a.source, self._names, { shuffle = false }))
  return write(a.destination, 1, content, "tfrecord_schema", nil, function()
    local row = rows()
    if not row then return nil end
    for name, field in pairs(content) do
      local value = row[name]
      if not field.shape and ms.is_tensor(value) then
        if value.size ~= 1 then
          fail("TFRecordToMR", ("feature '%s' has %d values"):format(name, value.size),
            ("feature_dict says so with %s = { type = \"%s\", shape = { -1 } }"):format(name, field.type))
        end
        row[name] = value:reshape({}):item()
      end
    end
    return row
  end)
end

return converters
