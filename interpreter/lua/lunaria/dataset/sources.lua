-- Sources: data sets that read files, tensors, tables and functions.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local config = require "lunaria.dataset.config"
local base = require "lunaria.dataset.dataset"
local samplers = require "lunaria.dataset.samplers"

local fail, describe = arguments.fail, arguments.describe
local sources = {}

-- What all sources take at the end.
local common = "num_samples=nil, num_parallel_workers=nil, shuffle=nil, sampler=nil, num_shards=nil, shard_id=nil, cache=nil"
local common_doc = [[ num_samples: at most so many rows. shuffle: in random order, another one in each epoch%s. sampler: a
sampler, or a list of row numbers. num_shards and shard_id: the share of one of several programs. num_parallel_workers: a
number of threads, taken for the sake of programs from Python: it is the batches that are made by threads. cache: a DatasetCache for
the rows.]]

local function check_common(where, a)
  if a.num_parallel_workers ~= nil then config._bounded(where, "num_parallel_workers", a.num_parallel_workers) end
end

-- A source whose records come from make(a, name).
local function define(name, signature, doc, shuffled, make)
  local words = shuffled and ", which is so unless false is given" or ""
  local text, example = doc:match "^(.-)(\n\n    > .*)$"
  local source = class.define(base.class, name, signature .. common, text .. common_doc:format(words) .. example)
  function source:setup(a)
    check_common(name, a)
    local records, fields = make(a, name)
    for field, value in pairs(fields or {}) do self[field] = value end
    local node = data.source(records, samplers.choose(name, records, a, shuffled))
    -- Files that are pictures.
    for column, transform in pairs(fields and fields._decode or {}) do
      node = data.transforms(node, { transform }, { column - 1 }, { data.columns(records)[column] }, 0)
    end
    if fields and fields._wav then
      node = data.transforms(node, { data.sound_decoder() }, { 0 }, { "waveform", "sample_rate" }, 0)
    end
    -- Lists of texts, which tables of texts do not have.
    for _, column in ipairs(fields and fields._lists or {}) do
      for i, known in ipairs(data.columns(node)) do
        if known == column then node = data.transforms(node, { data.text_splitter() }, { i - 1 }, { column }, 0) end
      end
    end
    base.init(self, a.cache and base.cached(name, node, a.cache) or node)
    self._operation, self._arguments = name, { a }
  end
  sources[name] = source
  return source
end

-- Paths: one or a list.
local function paths_of(where, what, paths)
  if type(paths) == "string" then paths = { paths } end
  if type(paths) ~= "table" or #paths == 0 then
    fail(where, ("%s must be a path or a list of paths, got %s"):format(what, describe(paths)))
  end
  for i, path in ipairs(paths) do
    if type(path) ~= "string" then fail(where, ("%s[%d] must be a path, got %s"):format(what, i, describe(path))) end
  end
  return paths
end

base.define_source, base.paths_of = define, paths_of

local function is_texts(value)
  if type(value) ~= "table" or type(value[1]) ~= "string" then return false end
  for _, text in ipairs(value) do
    if type(text) ~= "string" then return false end
  end
  return true
end

local function column_of(where, name, value)
  if is_texts(value) then return value end
  if not ms.is_tensor(value) then
    if type(value) ~= "table" then fail(where, ("column '%s' must be a tensor or a list, got %s"):format(name, describe(value))) end
    local ok, tensor = pcall(ms.tensor, value)
    if not ok then fail(where, ("column '%s' cannot be made a tensor: %s"):format(name, tostring(tensor):gsub("^.-: ", ""))) end
    value = tensor
  end
  if value.ndim == 0 then fail(where, ("column '%s' is a scalar: its first axis must be the rows"):format(name)) end
  return value
end

local function table_of(where, value, column_names)
  local names, columns = {}, {}
  if arguments.is_options(value) then
    for name in pairs(value) do
      if type(name) ~= "string" then fail(where, "data has names and numbers as keys") end
      names[#names + 1] = name
    end
    table.sort(names)
    if column_names then names = base.name_list(where, "column_names", column_names) end
    for i, name in ipairs(names) do
      if value[name] == nil then fail(where, ("column_names has '%s', but data has no such column"):format(name)) end
      columns[i] = column_of(where, name, value[name])
    end
    return names, columns
  end
  local list = value
  if ms.is_tensor(value) or type(value) == "table" and not ms.is_tensor(value[1]) and not is_texts(value[1]) then list = { value } end
  if type(list) ~= "table" or #list == 0 then
    fail(where, "data must be a tensor, a list or a table of columns, got " .. describe(value))
  end
  names = column_names and base.name_list(where, "column_names", column_names) or nil
  if names and #names ~= #list then fail(where, ("column_names has %d names for %d columns"):format(#names, #list)) end
  if not names then
    names = {}
    for i = 1, #list do names[i] = "column_" .. i - 1 end
  end
  for i, column in ipairs(list) do columns[i] = column_of(where, names[i], column) end
  return names, columns
end

local slices = define("NumpySlicesDataset", "data, column_names=nil, ", [[
Rows of tensors and lists. data: a tensor, whose first axis are the rows; a list of numbers, texts or lists; a list of
tensors, one for each column; a table of any of these by name. column_names: what the columns are called, else
column_0, column_1 and so on.

    > ds = ms.dataset.NumpySlicesDataset({ x = ms.ones { 4, 2 }, y = { 0, 1, 0, 1 } }, { shuffle = false })
    > ds:create_dict_iterator()().x.shape
    (2,)]], true, function(a, name) return data.table(name, table_of(name, a.data, a.column_names)) end)

-- A table of columns is data, not options.
local rest = arguments.signature(slices._signature.text:gsub("^data, ", ""))
function slices:init(...)
  if select("#", ...) == 0 then fail("NumpySlicesDataset", "missing argument 1: data is expected") end
  local a = arguments.bind("NumpySlicesDataset", rest, select(2, ...))
  a.data = (...)
  if arguments.is_options(a.data) and a.data.data ~= nil and select("#", ...) == 1 then
    a = arguments.bind("NumpySlicesDataset", slices._signature, a.data)
  end
  slices.setup(self, a)
end

-- What a source of GeneratorDataset is, in order of what is looked for.
local function random_access(value)
  local meta = getmetatable(value)
  if type(value) == "table" and meta == nil and #value > 0 then
    return #value, function(i) return value[i + 1] end
  end
  local get = type(value) == "table" and (value.get_item or value.getitem or value.__getitem__)
  if not get then return nil end
  local length = value.len or value.size or value.__len__
  local count = type(length) == "function" and length(value) or math.tointeger(length) or (meta and meta.__len and #value)
  if math.type(count) ~= "integer" or count < 0 then
    fail("GeneratorDataset", "an object with get_item(i) must tell its number of rows: len() or #, got " .. describe(count))
  end
  return count, function(i) return get(value, i) end
end

-- A function that begins an epoch and gives the function for its rows.
local function opener(value)
  if type(value) == "table" and value.iter then
    return function() return value:iter() end
  end
  local f = base.check_function("GeneratorDataset", "source", value)
  return function()
    local first = table.pack(f(0))
    if type(first[1]) == "function" or arguments.is_callable(first[1]) and not ms.is_tensor(first[1]) then
      return table.unpack(first, 1, 3)
    end
    local i = -1
    return function()
      i = i + 1
      if i == 0 then
        local now = first
        first = nil
        return table.unpack(now, 1, now.n)
      end
      return f(i)
    end
  end
end

-- Gives the values the dtypes that were asked for.
local function typed(types, ...)
  local values = table.pack(...)
  if values.n == 1 and #types > 1 and type(values[1]) == "table" and not ms.is_tensor(values[1]) then
    values = table.pack(table.unpack(values[1]))
  end
  for i, dtype in ipairs(types) do
    local value = values[i]
    if value ~= nil and type(value) ~= "string" then values[i] = (ms.is_tensor(value) and value or ms.tensor(value)):astype(dtype) end
  end
  return table.unpack(values, 1, values.n)
end

sources.GeneratorDataset = class.define(base.class, "GeneratorDataset",
  "source, column_names=nil, column_types=nil, " .. common, [[Rows that Lua gives. source is one of
  a function f(i)     gives row i = 0, 1, 2 ...; nil ends an epoch, or num_samples does
  a function f()      that gives an iterator for each epoch, as generic for loops take one
  a list of rows      { { image, label }, ... }
  an object           with get_item(i), i from 0, and len(), also called __getitem__ and __len__: rows in any order; or with iter()
A row is several values, or a list of as many as there are columns. column_names: what the columns are called. column_types: their dtypes.
num_samples: at most so many rows. num_parallel_workers: a number of threads, taken for the sake of programs from Python: functions run on
the thread of the program. cache: a DatasetCache for the rows. shuffle, sampler, num_shards and shard_id are for lists and objects
with get_item, whose rows come in
random order unless shuffle is false.

    > ds = ms.dataset.GeneratorDataset(function(i) return i * i end, { "x" }, { num_samples = 4 })
    > ds:batch(4):create_tuple_iterator()():tolist()[4]
    9]])

function sources.GeneratorDataset:setup(a)
  local name = "GeneratorDataset"
  check_common(name, a)
  if a.column_names == nil then fail(name, "column_names must be given", 'for instance { "image", "label" }') end
  local names = base.name_list(name, "column_names", a.column_names)
  local types = a.column_types
  if types ~= nil and (type(types) ~= "table" or #types ~= #names) then
    fail(name, ("column_types must be a list of %d dtypes, got %s"):format(#names, describe(types)))
  end
  local count, get = random_access(a.source)
  if count then
    local records = data.range(names[1], count)
    local node = data.source(records, samplers.choose(name, records, a, true))
    -- The same message for a row that is missing as for one of another kind.
    local function row(index)
      if types then return typed(types, get(index:item())) end
      return get(index:item())
    end
    node = data.map(node, name, row, { 0 }, names, config.get_seed())
    base.init(self, a.cache and base.cached(name, node, a.cache) or node)
    return
  end
  for _, option in ipairs { "sampler", "num_shards", "shard_id" } do
    if a[option] ~= nil then
      fail(name, option .. " needs a source with random access", "a list of rows, or an object with get_item(i) and len()")
    end
  end
  if a.shuffle then fail(name, "shuffle needs a source with random access", "ds:shuffle(buffer_size) mixes rows of any source") end
  if a.source == nil or not (arguments.is_callable(a.source) or type(a.source) == "table" and a.source.iter) then
    fail(name, "source must be a function, a list of rows or an object with get_item(i) or iter(), got " .. describe(a.source),
      "function Rows:get_item(i) ... end gives row i, from 0 on, and function Rows:len() ... end their number")
  end
  local samples = a.num_samples ~= nil and arguments.check.positive(name, "num_samples", a.num_samples) or nil
  local open = opener(a.source)
  if types then
    local plain = open
    open = function()
      local step, state, control = plain()
      return function()
        return (function(first, ...)
          control = first
          if first == nil then return nil end
          return typed(types, first, ...)
        end)(step(state, control))
      end
    end
  end
  local node = data.stream(name, open, names, nil, config.get_seed())
  node = samples and data.take(node, samples) or node
  base.init(self, a.cache and base.cached(name, node, a.cache) or node)
end

-- An idx file under one of the names that it goes by.
local function idx(where, folder, stem, kind)
  for _, name in ipairs { stem .. "-" .. kind, stem .. "." .. kind } do
    for _, ending in ipairs { "", ".gz" } do
      local path = folder .. "/" .. name .. ending
      if ms.io.kind(path) then return ms.load_idx(path) end
    end
  end
  return fail(where, ("there is no file %s/%s-%s, with or without .gz"):format(folder, stem, kind))
end

local function mnist(prefix)
  return function(a, name)
    if type(a.dataset_dir) ~= "string" then fail(name, "dataset_dir must be a folder's name, got " .. describe(a.dataset_dir)) end
    local usage = arguments.check.choice(name, "usage", a.usage or "all", { "train", "test", "all" })
    local images, labels = {}, {}
    for _, part in ipairs(prefix(a, name)) do
      if usage == part[1] or usage == "all" then
        local x = idx(name, a.dataset_dir, part[2] .. "-images", "idx3-ubyte")
        local y = idx(name, a.dataset_dir, part[2] .. "-labels", "idx1-ubyte")
        if x.ndim ~= 3 or y.ndim ~= 1 or x.shape[1] ~= y.shape[1] then
          fail(name, ("the images have shape %s and the labels %s in %s"):format(tostring(x.shape), tostring(y.shape), a.dataset_dir))
        end
        images[#images + 1], labels[#labels + 1] = x, y
      end
    end
    local function whole(list) return #list == 1 and list[1] or ms.ops.concat(list, 0) end
    local x = whole(images)
    return data.table(name, { "image", "label" }, { x:reshape { x.shape[1], x.shape[2], x.shape[3], 1 }, whole(labels):astype(ms.int32) })
  end
end

local function plain_names() return { { "train", "train" }, { "test", "t10k" } } end
for name, what in pairs { MnistDataset = "MNIST", FashionMnistDataset = "Fashion-MNIST", KMnistDataset = "Kuzushiji-MNIST" } do
  define(name, "dataset_dir, usage=nil, ", ([[
%s: the columns image, uint8 of shape (28, 28, 1), and label, int32. dataset_dir: the folder of the idx
files, with or without .gz. usage: "train", "test" or "all", which it is without.

    > (pcall(ms.dataset.%s, "/no/such/folder"))
    false]]):format(what, name), true, mnist(plain_names))
end

local emnist = { "byclass", "bymerge", "balanced", "letters", "digits", "mnist" }
define("EMnistDataset", "dataset_dir, name, usage=nil, ", [[
EMNIST: the columns image, uint8 of shape (28, 28, 1), and label, int32. dataset_dir: the folder of the idx files, with or
without .gz. name: which of its parts, byclass, bymerge, balanced, letters, digits or mnist. usage: "train", "test" or "all", which it is
without.

    > (pcall(ms.dataset.EMnistDataset, "/no/such/folder", "letters"))
    false]], true, mnist(function(a, name)
  local part = arguments.check.choice(name, "name", a.name, emnist)
  return { { "train", "emnist-" .. part .. "-train" }, { "test", "emnist-" .. part .. "-test" } }
end))

-- CIFAR's binary files: label bytes, then the planes of red, green and blue.
local function cifar(labels, files)
  return function(a, name)
    if type(a.dataset_dir) ~= "string" then fail(name, "dataset_dir must be a folder's name, got " .. describe(a.dataset_dir)) end
    local usage = arguments.check.choice(name, "usage", a.usage or "all", { "train", "test", "all" })
    local paths = {}
    for _, part in ipairs { "train", "test" } do
      for _, file in ipairs((usage == part or usage == "all") and files[part] or {}) do
        local path = a.dataset_dir .. "/" .. file
        if ms.io.kind(path) then paths[#paths + 1] = path end
      end
    end
    if #paths == 0 then fail(name, ("there is none of CIFAR's binary files for usage '%s' in %s"):format(usage, a.dataset_dir)) end
    local bytes = data.fixed(paths, #labels + 3072)
    local planes = bytes[{ ms.slice(nil, nil), ms.slice(#labels, nil) }]:reshape { -1, 3, 32, 32 }
    local names, columns = { "image" }, { planes:permute { 0, 2, 3, 1 } }
    for i, label in ipairs(labels) do
      names[i + 1], columns[i + 1] = label, bytes[{ ms.slice(nil, nil), i - 1 }]:astype(ms.int32)
    end
    return data.table(name, names, columns)
  end
end

local cifar_doc = [[
%s: the columns image, uint8 of shape (32, 32, 3), and %s, int32. dataset_dir: the folder of the binary files. usage: "train",
"test" or "all", which it is without.

    > (pcall(ms.dataset.%s, "/no/such/folder"))
    false]]

define("Cifar10Dataset", "dataset_dir, usage=nil, ", cifar_doc:format("CIFAR-10", "label", "Cifar10Dataset"), true, cifar({ "label" }, {
  train = { "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin" },
  test = { "test_batch.bin" },
}))
define("Cifar100Dataset", "dataset_dir, usage=nil, ", cifar_doc:format("CIFAR-100", "coarse_label and fine_label", "Cifar100Dataset"), true,
  cifar({ "coarse_label", "fine_label" }, { train = { "train.bin" }, test = { "test.bin" } }))

define("CSVDataset", "dataset_files, field_delim=nil, column_defaults=nil, column_names=nil, ", [[
Lines of CSV files. dataset_files: a path or a list. field_delim: what is between fields, a comma without it.
column_names: else the first line of each file has them. column_defaults: a value for each column, which says what it
is: an integer for int64, a float for float32, a text for texts; it stands for fields that are empty. Without it all
are texts.

    > f = io.open("/tmp/lunaria_help.csv", "w") f:write("x,name\n1,one\n2,two\n") f:close()
    > ds = ms.dataset.CSVDataset("/tmp/lunaria_help.csv", { column_defaults = { 0, "" }, shuffle = false })
    > ds:create_dict_iterator()().name
    one
    > (os.remove("/tmp/lunaria_help.csv"))
    true]], true, function(a, name)
  local paths = paths_of(name, "dataset_files", a.dataset_files)
  local delimiter = a.field_delim == nil and "," or a.field_delim
  if type(delimiter) ~= "string" then fail(name, "field_delim must be a character, got " .. describe(a.field_delim)) end
  local names = a.column_names ~= nil and base.name_list(name, "column_names", a.column_names) or {}
  local types, defaults = {}, {}
  if a.column_defaults ~= nil then
    if type(a.column_defaults) ~= "table" or #a.column_defaults == 0 then
      fail(name, "column_defaults must be a list of values, got " .. describe(a.column_defaults))
    end
    for i, value in ipairs(a.column_defaults) do
      local kind = math.type(value) or type(value)
      types[i] = kind == "integer" and "integer" or kind == "float" and "number" or kind == "string" and "text"
        or fail(name, ("column_defaults[%d] must be a number or a text, got %s"):format(i, describe(value)))
      defaults[i] = types[i] == "text" and 0 or value
    end
  end
  return data.csv(paths, delimiter, names, types, defaults)
end)

define("TextFileDataset", "dataset_files, ", [[
The lines of text files that are not empty, as the column text. dataset_files: a path or a list.

    > f = io.open("/tmp/lunaria_help.txt", "w") f:write("one\ntwo\n") f:close()
    > ms.dataset.TextFileDataset("/tmp/lunaria_help.txt", { shuffle = false }):create_dict_iterator()().text
    one
    > (os.remove("/tmp/lunaria_help.txt"))
    true]], true, function(a, name) return data.lines(paths_of(name, "dataset_files", a.dataset_files)) end)

define("TFRecordDataset", "dataset_files, columns_list=nil, ", [[
The tf.Example and tf.SequenceExample messages of TFRecord files. dataset_files: a path or a list. columns_list: the features that are the
columns, else those of the first record. Numbers are tensors with one axis, int64 or float32; one string is a text,
several are a list. A feature x with steps is a column x of the values of all steps and a column x.lengths, how many
each step has. Check sums are looked at: a record that is damaged is an error.

    > ms.dataset.NumpySlicesDataset({ x = { 1, 2, 3 } }, { shuffle = false }):save("/tmp/lunaria_help.tfrecord")
    3
    > ms.dataset.TFRecordDataset("/tmp/lunaria_help.tfrecord", { shuffle = false }):create_dict_iterator()().x:item()
    1
    > (os.remove("/tmp/lunaria_help.tfrecord"))
    true]], true, function(a, name)
  local names = a.columns_list ~= nil and base.name_list(name, "columns_list", a.columns_list) or {}
  return data.tfrecords(paths_of(name, "dataset_files", a.dataset_files), names)
end)

define("MindDataset", "dataset_files, columns_list=nil, skip_damaged=false, ", [[
The rows of MindRecord files. dataset_files: the path of one file, with which all shards are read that its header names,
or a list of files. columns_list: the fields that are the columns, else all of them. Numbers and arrays are tensors of
their types, bytes a tensor of uint8, strings texts. The index file is not needed. skip_damaged: rows in damaged pages
are left out, and ds.skipped_rows is their number; without it such a page is an error when one of its rows is read.

    > (pcall(ms.dataset.MindDataset, "/no/such.mindrecord"))
    false]], true, function(a, name)
  local names = a.columns_list ~= nil and base.name_list(name, "columns_list", a.columns_list) or {}
  local skip = arguments.check.boolean(name, "skip_damaged", a.skip_damaged)
  local paths = paths_of(name, "dataset_files", a.dataset_files)
  local records, skipped = require("lunaria.mindrecord.secret").with_plain(name, paths, type(a.dataset_files) == "string",
    function(files, whole) return data.mindrecords(files, whole, names, skip) end)
  return records, { skipped_rows = skipped }
end)

return sources
