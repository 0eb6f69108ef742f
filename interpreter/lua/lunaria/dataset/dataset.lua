-- Dataset: what all data sets have. A data set never changes; each operation gives a new one.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local config = require "lunaria.dataset.config"
local iterator = require "lunaria.dataset.iterator"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check

local base = {}
local Dataset = class.Object:extend("Dataset")
Dataset._called = "data set"
Dataset._parameters = ""
Dataset._doc = [[What all data sets have: rows of named columns, and operations that give new data sets. An iterator goes through them;
the order is decided by the seed and the number of the epoch alone. The field input_indexs, a list such as { 1, 0 }, says which columns
ms.data_sink gives to its step, by their numbers from 0; where it is empty, as at first, all of them.

    > ds = ms.dataset.NumpySlicesDataset({ x = { 1, 2, 3, 4 } }, { shuffle = false }):batch(2)
    > for row in ds:create_dict_iterator() do print(row.x[{ 1 }]:item()) end
    2
    4]]

local function new(node) return setmetatable({ _node = node, _begun = 0 }, Dataset) end

-- The operations of which a pipeline consists, with the most arguments that a description of one has (see description.lua); what
-- else a data set can do is nothing that a file may ask for.
local known_operations = {
  batch = 1, bucket_batch_by_length = 1, cache = 0, concat = 0, filter = 1, flat_map = 1, map = 1, padded_batch = 1, project = 1,
  rename = 2, repeat_ = 1, shuffle = 1, skip = 1, split = 3, sync_wait = 1, take = 1, zip = 0,
}

-- What the operation of that name made of a data set, or of several, with these arguments; see description.lua.
local function made(parents, operation, given, node)
  assert(#given <= assert(known_operations[operation], operation), operation)
  local ds = new(node)
  if class.is_a(parents, Dataset) then parents = { parents } end
  ds._parents, ds._operation, ds._arguments = parents, operation, given
  return ds
end

local function init(self, node) self._node, self._begun = node, 0 end

-- ipairs asks for element 1, and would find none without a word.
getmetatable(Dataset).__index = function(_, key)
  if math.type(key) then
    fail("Dataset", "a data set has no elements by number", "for x, y in ds:create_tuple_iterator() do ... end goes through it")
  end
  return class.Object[key]
end

function Dataset.__tostring(self)
  return ("%s<%s>"):format(getmetatable(self)._name, table.concat(data.columns(self._node), ", "))
end

local signatures = {}
local function bind(name, text, ...)
  signatures[name] = signatures[name] or arguments.signature(text)
  return arguments.bind(name, signatures[name], ...)
end

local function check_dataset(where, value)
  if not class.is_a(value, Dataset) then fail(where, "a data set is expected, got " .. describe(value)) end
  return value
end

-- A name or a list of names as a list.
local function name_list(where, what, names)
  if type(names) == "string" then names = { names } end
  if type(names) ~= "table" or getmetatable(names) ~= nil or #names == 0 then
    fail(where, ("%s must be a name or a list of names, got %s"):format(what, describe(names)))
  end
  local seen = {}
  for _, name in ipairs(names) do
    if type(name) ~= "string" or name == "" then fail(where, ("%s must be names, got %s"):format(what, describe(name))) end
    if seen[name] then fail(where, ("%s has '%s' twice"):format(what, name)) end
    seen[name] = true
  end
  return names
end

-- Where the columns are, from 0; all of them without names.
local function positions(where, self, names)
  local columns, places = data.columns(self._node), {}
  if names == nil then
    for i = 1, #columns do places[i] = i - 1 end
    return places, columns
  end
  names = name_list(where, "input_columns", names)
  local index = {}
  for i, column in ipairs(columns) do index[column] = i - 1 end
  for i, name in ipairs(names) do
    places[i] = index[name] or fail(where, ("there is no column '%s'; there are: %s"):format(name, table.concat(columns, ", ")),
      arguments.nearest(name, columns))
  end
  return places, names
end

local function workers_of(where, a)
  return a.num_parallel_workers ~= nil and config._bounded(where, "num_parallel_workers", a.num_parallel_workers) or nil
end

-- Whether functions run as copies on threads.
local function copies_of(where, a) return check.boolean(where, "python_multiprocessing", a.python_multiprocessing) end

local function check_function(where, what, f)
  if not arguments.is_callable(f) then fail(where, ("%s must be a function, got %s"):format(what, describe(f))) end
  return type(f) == "function" and f or function(...) return f(...) end
end

-- One function that does what those of a list do, one after the other.
local function composed(where, operations)
  if arguments.is_callable(operations) then return check_function(where, "operations", operations) end
  if type(operations) ~= "table" or #operations == 0 then
    fail(where, "operations must be a function or a list of functions, got " .. describe(operations))
  end
  local list = {}
  for i, f in ipairs(operations) do list[i] = check_function(where, ("operations[%d]"):format(i), f) end
  if #list == 1 then return list[1] end
  local function apply(i, ...)
    if i > #list then return ... end
    return apply(i + 1, list[i](...))
  end
  return function(...) return apply(1, ...) end
end

local function new_names(where, self, inputs, outputs)
  outputs = outputs == nil and inputs or name_list(where, "output_columns", outputs)
  local kept = {}
  for _, column in ipairs(data.columns(self._node)) do kept[column] = true end
  for _, name in ipairs(inputs) do kept[name] = nil end
  for _, name in ipairs(outputs) do
    if kept[name] then fail(where, ("output_columns has '%s', which is a column that the operation keeps"):format(name)) end
  end
  return outputs
end

-- The handles of the transforms that an operation, or the first ones of a list, are; nil where there are none. The rest is
-- a list of functions.
local function natives(operations)
  local function handle(f) return type(f) == "table" and getmetatable(f) ~= nil and rawget(f, "_transform") or nil end
  if handle(operations) then return { handle(operations) }, {} end
  if type(operations) ~= "table" or getmetatable(operations) ~= nil or not handle(operations[1]) then return nil end
  local handles, rest = {}, {}
  for _, f in ipairs(operations) do
    local native = #rest == 0 and handle(f)
    if native then handles[#handles + 1] = native else rest[#rest + 1] = f end
  end
  return handles, rest
end

--- Gives columns through functions: operations, one or a list of them, get the values of input_columns (without: all) and
--- return as many as output_columns (without: as input_columns) names. Random operators draw from a stream of the row, so
--- that a row is the same whenever it is made. Transforms of the library run on num_parallel_workers threads (without: as
--- many as ms.dataset.config says) before the rows are asked for, and with python_multiprocessing = true Lua functions do too: as copies
--- in Lua states of their own, one for each thread. What the functions capture, and the globals that they name, is copied when an epoch
--- begins (numbers, texts, tensors, tables, functions, modules; an open file or a coroutine is an error); what a copy writes there stays
--- with it. Rows, also what math.random draws in them, do not depend on the number of workers. A copy that consists of operators is
--- recorded with the first row and runs without Lua from then on, compiled and for all rows of a batch at once where that gives the
--- same elements; ds:profile() tells. Functions in C and those that compiled
--- code made run where the rows are asked for; ms.grad and what else needs the virtual machine is an error in a worker.
--- callbacks: a DSCallback or a list, not
--- together with python_multiprocessing; cache: a DatasetCache for the rows.
---     > ds = ms.dataset.NumpySlicesDataset({ x = { 1, 2 } }, { shuffle = false }):map(function(x) return x * 10 end, "x")
---     > ds:create_tuple_iterator()():item() --> 10
function Dataset:map(...)
  local a = bind("map", "operations, input_columns=nil, output_columns=nil, num_parallel_workers=nil, callbacks=nil, cache=nil, "
    .. "python_multiprocessing=false", ...)
  local mode = config.get_error_samples_mode()
  local tolerant = mode ~= config.ErrorSamplesMode.RETURN
  local function kept(node)
    if tolerant then node = data.good(node, "map", mode == config.ErrorSamplesMode.REPLACE) end
    return a.cache and base.cached("map", node, a.cache) or node
  end
  local workers = workers_of("map", a)
  local copies = copies_of("map", a)
  if copies and a.callbacks then
    fail("map", "callbacks are called in order, by the program: not together with python_multiprocessing")
  end
  local function mapped(node, f, places, outputs)
    if copies then return data.map_anywhere(node, "map", f, places, outputs, config.get_seed(), false, workers, tolerant) end
    return data.map(node, "map", f, places, outputs, config.get_seed(), a.callbacks ~= nil, nil, tolerant)
  end
  local places, names = positions("map", self, a.input_columns)
  local handles, rest = natives(a.operations)
  if handles and not a.callbacks then
    local outputs = new_names("map", self, names, a.output_columns)
    if #rest == 0 then
      return made(self, "map", { a }, kept(data.transforms(self._node, handles, places, outputs, config.get_seed(), workers,
        tolerant)))
    end
    local between = {}
    for i = 1, data.results(handles, #places) do between[i] = "\0" .. i end
    local inner = new(data.transforms(self._node, handles, places, between, config.get_seed(), workers, tolerant))
    if tolerant then inner = new(data.good(inner._node, "map", mode == config.ErrorSamplesMode.REPLACE)) end
    places = positions("map", inner, between)
    return made(self, "map", { a }, kept(mapped(inner._node, composed("map", rest), places, outputs)))
  end
  local f = composed("map", a.operations)
  local outputs = new_names("map", self, names, a.output_columns)
  if a.callbacks then f = base.with_callbacks("map", f, a.callbacks, #places) end
  return made(self, "map", { a }, kept(mapped(self._node, f, places, outputs)))
end

--- The rows for which predicate, which gets the values of input_columns (without: all), returns true. num_parallel_workers: taken for
--- the sake of programs from Python; the predicate is asked where rows come in order.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3, 4 }):filter(function(x) return x:item() > 2 end):get_dataset_size() --> 2
function Dataset:filter(...)
  local a = bind("filter", "predicate, input_columns=nil, num_parallel_workers=nil", ...)
  workers_of("filter", a)
  local f = check_function("filter", "predicate", a.predicate)
  local places = positions("filter", self, a.input_columns)
  return made(self, "filter", { a }, data.filter(self._node, f, places, config.get_seed()))
end

--- Puts batch_size rows together: tensors get an axis more, texts become a list. drop_remainder leaves out a last batch
--- that is smaller. num_parallel_workers: how many threads do it where no Lua function is below. per_batch_map: a function of the
--- lists of values of input_columns, and at last of a table { batch =, epoch = }, which returns a batch for each of output_columns.
--- input_columns: names of columns; without them all. output_columns: names of what per_batch_map returns; without them those of
--- input_columns. python_multiprocessing: copies of it run on the threads, as in ds:map.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3 }, { shuffle = false }):batch(2):create_tuple_iterator()():tolist()[2] --> 2
function Dataset:batch(...)
  local a = bind("batch",
    "batch_size, drop_remainder=false, num_parallel_workers=nil, per_batch_map=nil, input_columns=nil, output_columns=nil, "
    .. "python_multiprocessing=false", ...)
  local size = check.positive("batch", "batch_size", a.batch_size)
  local drop = check.boolean("batch", "drop_remainder", a.drop_remainder)
  local workers = workers_of("batch", a)
  if a.per_batch_map == nil then
    if a.input_columns ~= nil or a.output_columns ~= nil then
      fail("batch", "input_columns and output_columns are those of per_batch_map, which is not given")
    end
    return made(self, "batch", { a }, data.batch(self._node, size, drop, workers, true))
  end
  local f = check_function("batch", "per_batch_map", a.per_batch_map)
  local places, names = positions("batch", self, a.input_columns)
  local outputs = new_names("batch", self, names, a.output_columns)
  local chosen, kept = {}, {}
  for _, name in ipairs(names) do chosen[name] = true end
  for i, column in ipairs(data.columns(self._node)) do
    if not chosen[column] then kept[#kept + 1] = { column, i - 1 } end
  end
  local gathered = data.batch(self._node, size, drop, workers, false)
  local count = #places
  local function told(...)
    local values = table.pack(...)
    local info = { batch = values[count + 1], epoch = values[count + 2] }
    values[count + 1] = info
    return f(table.unpack(values, 1, count + 1))
  end
  local node
  if copies_of("batch", a) then
    node = data.map_anywhere(gathered, "batch", told, places, outputs, config.get_seed(), true, workers)
  else
    node = data.map(gathered, "batch", told, places, outputs, config.get_seed(), true)
  end
  for _, column in ipairs(kept) do
    local now = positions("batch", { _node = node }, { column[1] })
    node = data.map(node, "batch", function(list)
      return ms.is_tensor(list[1]) and ms.ops.stack(list, 0) or list
    end, now, { column[1] }, 0)
  end
  return made(self, "batch", { a }, node)
end

--- The rows in another order: each is drawn out of the next buffer_size ones. The order is another one in every epoch.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3 }, { shuffle = false }):shuffle(3):get_dataset_size() --> 3
function Dataset:shuffle(buffer_size)
  local size = check.positive("shuffle", "buffer_size", buffer_size)
  return made(self, "shuffle", { size }, data.shuffle(self._node, size, config.get_seed()))
end

--- All rows count times in one epoch, each time in an order of its own; without a count, or with -1, for ever.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3 }):repeat_(2):get_dataset_size() --> 6
function Dataset:repeat_(count)
  count = arguments.named("repeat", { "count" }, count)
  if count == nil or count == -1 then return made(self, "repeat_", {}, data.repeat_(self._node)) end
  count = check.integer("repeat", "count", count)
  if count <= 0 then fail("repeat", ("count must be positive, or -1 for ever, got %d"):format(count)) end
  return made(self, "repeat_", { count }, data.repeat_(self._node, count))
end

--- The rows without the first count.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3 }, { shuffle = false }):skip(2):create_tuple_iterator()():item() --> 3
function Dataset:skip(count)
  count = check.not_negative("skip", "count", count)
  return made(self, "skip", { count }, data.skip(self._node, count))
end

--- The first count rows; all of them without a count, or with -1.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3 }):take(2):get_dataset_size() --> 2
function Dataset:take(count)
  count = arguments.named("take", { "count" }, count)
  if count == nil or count == -1 then return self end
  count = check.positive("take", "count", count)
  return made(self, "take", { count }, data.take(self._node, count))
end

--- The columns of these names, in this order.
---     > ds = ms.dataset.NumpySlicesDataset({ x = { 1, 2 }, y = { 3, 4 } }, { shuffle = false }):project { "y" }
---     > ds:create_tuple_iterator()():item() --> 3
function Dataset:project(columns)
  local places, names = positions("project", self, name_list("project", "columns", columns))
  return made(self, "project", { names }, data.select(self._node, places, names))
end

--- Other names, output_columns, for the columns input_columns.
---     > ds = ms.dataset.NumpySlicesDataset({ x = { 1, 2 } }, { shuffle = false }):rename("x", "y")
---     > ds:create_dict_iterator()().y:item() --> 1
function Dataset:rename(input_columns, output_columns)
  local inputs = name_list("rename", "input_columns", input_columns)
  local outputs = name_list("rename", "output_columns", output_columns)
  if #inputs ~= #outputs then
    fail("rename", ("input_columns has %d names and output_columns %d"):format(#inputs, #outputs))
  end
  local places = positions("rename", self, inputs)
  local names, seen = data.columns(self._node), {}
  for i, place in ipairs(places) do names[place + 1] = outputs[i] end
  for _, name in ipairs(names) do
    if seen[name] then fail("rename", ("two columns would be called '%s'"):format(name)) end
    seen[name] = true
  end
  return made(self, "rename", { inputs, outputs }, data.select(self._node, positions("rename", self), names))
end

local function nodes_of(where, first, others)
  if class.is_a(others, Dataset) then others = { others } end
  if type(others) ~= "table" or #others == 0 then fail(where, "a data set or a list of them is expected, got " .. describe(others)) end
  local nodes = { first and first._node }
  for _, other in ipairs(others) do nodes[#nodes + 1] = check_dataset(where, other)._node end
  return table.unpack(nodes)
end

--- Rows of this data set and of datasets, one or a list, side by side, as long as all have one.
---     > x = ms.dataset.NumpySlicesDataset({ x = { 1, 2 } }, { shuffle = false })
---     > y = ms.dataset.NumpySlicesDataset({ y = { 3, 4 } }, { shuffle = false })
---     > x:zip(y):create_dict_iterator()().y:item() --> 3
function Dataset:zip(datasets)
  local node = data.zip(nodes_of("zip", self, datasets))
  return made(class.is_a(datasets, Dataset) and { self, datasets } or { self, table.unpack(datasets) }, "zip", {}, node)
end

--- The rows of this data set and then those of datasets, one or a list, with the same columns; also ds1 + ds2.
---     > ds = ms.dataset.NumpySlicesDataset({ 1, 2 })
---     > (ds + ds):get_dataset_size() --> 4
function Dataset:concat(datasets)
  local node = data.concat(nodes_of("concat", self, datasets))
  return made(class.is_a(datasets, Dataset) and { self, datasets } or { self, table.unpack(datasets) }, "concat", {}, node)
end
Dataset.__add = function(a, b) return check_dataset("concat", a):concat(b) end

--- Data sets of parts that have no row in common, the same in all epochs. sizes: their numbers of rows, or their shares,
--- which sum up to 1. randomize: rows by chance, else in their order.
---     > train, test = table.unpack(ms.dataset.NumpySlicesDataset(ms.arange(10)):split { 0.8, 0.2 })
---     > train:get_dataset_size() --> 8
function Dataset:split(sizes, randomize)
  if type(randomize) == "table" then
    randomize = arguments.options("split", randomize, { randomize = "boolean" }, "{ randomize = false }").randomize
  end
  if randomize == nil then randomize = true end
  check.boolean("split", "randomize", randomize)
  if type(sizes) ~= "table" or #sizes == 0 then fail("split", "sizes must be a list of numbers, got " .. describe(sizes)) end
  local rows, shares, sum = self:get_dataset_size(), math.type(sizes[1]) == "float", 0
  if not rows then fail("split", "the data set has no end") end
  for i, size in ipairs(sizes) do
    local what = ("sizes[%d]"):format(i)
    if shares then check.number_positive("split", what, size) else check.positive("split", what, size) end
    sum = sum + size
  end
  if shares and math.abs(sum - 1) > 1e-9 then fail("split", ("the shares must sum up to 1, got %g"):format(sum)) end
  if not shares and sum ~= rows then
    fail("split", ("the sizes sum up to %d, but the data set has %d rows"):format(sum, rows), "shares such as { 0.8, 0.2 } need no numbers")
  end
  local counts, left = {}, rows
  for i, size in ipairs(sizes) do
    counts[i] = shares and math.floor(size * rows + 0.5) or math.tointeger(size)
    left = left - counts[i]
  end
  -- What rounding left over or took too much of goes to or comes from the first parts.
  local i = 1
  while left ~= 0 do
    local step = left > 0 and 1 or -1
    counts[i], left = counts[i] + step, left - step
    i = i % #counts + 1
  end
  local parts, begin = {}, 0
  for k, count in ipairs(counts) do
    if count <= 0 then fail("split", ("part %d would have no row of the %d"):format(k, rows)) end
    parts[k] = made(self, "split", { sizes, randomize, k }, data.part(self._node, begin, count, randomize, config.get_seed()))
    begin = begin + count
  end
  local line = arguments.calling_line()
  if line:find "[%w_]%s*,%s*[%a_][%w_]*%s*=[^=].*:split%s*[%({]" and not line:find "unpack" then
    arguments.warn("split", "the parts come in one list: the variables behind the first one get nil",
      "local a, b = table.unpack(ds:split{ ... })")
  end
  return parts
end

--- What f, which gets this data set, makes of it.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3 }):apply(function(ds) return ds:take(1) end):get_dataset_size() --> 1
function Dataset:apply(f) return check_dataset("apply", check_function("apply", "f", f)(self)) end

local function make_iterator(where, kind, self, ...)
  local a = bind(where, "num_epochs=-1, output_numpy=false, do_copy=true", ...)
  local epochs = check.integer(where, "num_epochs", a.num_epochs)
  if epochs ~= -1 and epochs <= 0 then fail(where, ("num_epochs must be positive, or -1 for ever, got %d"):format(epochs)) end
  check.boolean(where, "do_copy", a.do_copy)
  if check.boolean(where, "output_numpy", a.output_numpy) then
    fail(where, "output_numpy must be false: rows have tensors, of which x:asnumpy() makes tables")
  end
  local it = iterator.new(self, kind, epochs == -1 and math.huge or epochs)
  return it, nil, nil, it
end

--- An iterator that gives rows as tables by the names of the columns: for row in ds:create_dict_iterator() do ... end goes
--- through one epoch. Kept in a variable it begins the next epoch when it is called after the end of one, num_epochs times.
--- Values are tensors, texts and lists of texts; do_copy = false gives the same, as nothing writes into a tensor behind
--- another's back.
---     > ms.dataset.NumpySlicesDataset({ x = { 7 } }):create_dict_iterator()().x:item() --> 7
function Dataset:create_dict_iterator(...) return make_iterator("create_dict_iterator", "dict", self, ...) end

--- The same as ds:create_dict_iterator with rows as several values: for image, label in ds:create_tuple_iterator() do ... end
---     > ms.dataset.NumpySlicesDataset({ 7 }):create_tuple_iterator()():item() --> 7
function Dataset:create_tuple_iterator(...) return make_iterator("create_tuple_iterator", "tuple", self, ...) end

--- The number of rows in an epoch, batches where the rows are batches; also #ds. Where a filter or a function decides it, they are
--- run once; nil where there is no end.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3 }):batch(2):get_dataset_size() --> 2
function Dataset:get_dataset_size()
  local rows = data.rows(self._node) or self._size
  if not rows then
    local cursor = data.open(self._node, 0, 0, 1)
    rows = data.leave_out(cursor, math.maxinteger)
    data.close(cursor)
    self._size = rows
  end
  return math.tointeger(rows)
end

Dataset.__len = Dataset.get_dataset_size

--- How many rows are in one: the size of batches, else 1.
---     > ms.dataset.NumpySlicesDataset({ 1, 2, 3 }):batch(2):get_batch_size() --> 2
function Dataset:get_batch_size() return data.batch_size(self._node) end

--- The names of the columns.
---     > ms.dataset.NumpySlicesDataset({ x = { 1, 2 } }):get_col_names()[1] --> x
function Dataset:get_col_names() return data.columns(self._node) end

local function first_row(self)
  local cursor = data.open(self._node, 0, 0, 1)
  local row = table.pack(data.next(cursor))
  data.close(cursor)
  return row
end

--- The shapes of the columns of the first row, as a list; the shape of a text is empty.
---     > ms.dataset.NumpySlicesDataset(ms.ones { 6, 4 }):batch(3):output_shapes()[1] --> (3, 4)
function Dataset:output_shapes()
  local list, names = {}, data.columns(self._node)
  for i, value in ipairs(first_row(self)) do
    list[i] = ms.is_tensor(value) and value.shape or type(value) == "table" and { #value } or {}
    local dynamic = self._dynamic and self._dynamic[names[i]]
    if dynamic then
      local shape = {}
      for k = 1, #list[i] do shape[k] = dynamic[k] == list[i][k] and dynamic[k] or -1 end
      list[i] = shape
    end
  end
  return list
end

--- The dtypes of the columns of the first row, as a list; "string" for texts.
---     > ms.dataset.NumpySlicesDataset({ 1.5, 2.5 }):output_types()[1] --> Float32
function Dataset:output_types()
  local list = {}
  for i, value in ipairs(first_row(self)) do list[i] = ms.is_tensor(value) and value.dtype or "string" end
  return list
end

--- Writes the rows of an epoch to files, which are there whole or not at all, and gives their number. file_type is
--- "mindrecord", for ms.dataset.MindDataset and MindSpore, or "tfrecord", TensorFlow's, for ms.dataset.TFRecordDataset;
--- without it "tfrecord" where file_name ends so, else "mindrecord". MindRecord has fewer dtypes: bool and integers of up
--- to 16 bits become int32, uint32 int64 and float16 float32; uint64, complex numbers and lists of texts are errors.
--- num_files: over how many MindRecord files the rows are spread, whose names end in numbers where there are several.
--- overwrite = true replaces MindRecord files that are there. In a TFRecord tensors are lists of their elements, floats
--- float32.
---     > ms.dataset.NumpySlicesDataset({ x = { 1, 2, 3 } }, { shuffle = false }):save("/tmp/lunaria_help.mindrecord") --> 3
---     > ms.dataset.MindDataset("/tmp/lunaria_help.mindrecord", { shuffle = false }):create_dict_iterator()().x:item() --> 1
---     > (os.remove("/tmp/lunaria_help.mindrecord") and os.remove("/tmp/lunaria_help.mindrecord.db")) --> true
function Dataset:save(file_name, num_files, file_type, overwrite)
  return require("lunaria.dataset.save")(self, file_name, num_files, file_type, overwrite)
end

--- The next iterator begins with epoch 0 again. Each begins where the one before has stopped otherwise, so that a loop that
--- makes an iterator for each epoch gets a new order each time.
---     > ds = ms.dataset.NumpySlicesDataset({ 1, 2, 3 })
---     > first = ds:create_tuple_iterator()():item()
---     > ds:reset()
---     > ds:create_tuple_iterator()():item() == first --> true
function Dataset:reset() self._begun = 0 end

-- Others add functions to it, which this file calls.
for name, value in pairs {
  class = Dataset, new = new, operations = known_operations, made = made, init = init, bind = bind, positions = positions,
  workers_of = workers_of, new_names = new_names,
  first_row = first_row, check_dataset = check_dataset, name_list = name_list, nodes_of = nodes_of, check_function = check_function
} do base[name] = value end

return base

