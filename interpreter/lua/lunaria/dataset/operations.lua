-- More methods of data sets: batches of unequal rows, rows that become many, waiting, caches.
local ms = require "lunaria"
local data = require "lunaria.data"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local config = require "lunaria.dataset.config"
local base = require "lunaria.dataset.dataset"

local fail, describe, check = arguments.fail, arguments.describe, arguments.check
local Dataset, bind, made = base.class, base.bind, base.made
local operations = {}

-- What each column is filled up with, in their order: false, or { shape, value }. Without pad_info all are, with 0.
local function paddings(where, self, pad_info)
  local list, names = {}, data.columns(self._node)
  if pad_info == nil then
    for i = 1, #names do list[i] = { {}, 0 } end
    return list
  end
  if type(pad_info) ~= "table" or getmetatable(pad_info) ~= nil then
    fail(where, "pad_info must be a table such as { x = { { 8 }, 0 } }, got " .. describe(pad_info))
  end
  for name in pairs(pad_info) do base.positions(where, self, { name }) end
  for i, name in ipairs(names) do
    local info = pad_info[name]
    list[i] = false
    if info ~= nil then
      if type(info) ~= "table" then fail(where, ("pad_info.%s must be { shape, value }, got %s"):format(name, describe(info))) end
      local shape, value = info.shape or info[1] or {}, info.value or info[2] or 0
      if type(shape) ~= "table" then fail(where, ("the shape of pad_info.%s must be a list, got %s"):format(name, describe(shape))) end
      for k, size in ipairs(shape) do
        if check.integer(where, ("pad_info.%s[%d]"):format(name, k), size) < -1 then
          fail(where, ("pad_info.%s[%d] must be -1 or a size, got %d"):format(name, k, size))
        end
      end
      list[i] = { shape, check.number(where, "the value of pad_info." .. name, value) }
    end
  end
  return list
end

--- Puts batch_size rows together that need not have one shape: tensors are filled up at their ends to the largest of the batch.
--- pad_info: for each column that
--- is filled up { shape, value }, where -1 in the shape is the largest; without it all are, with 0. drop_remainder and
--- num_parallel_workers as in ds:batch.
---     > ds = ms.dataset.GeneratorDataset(function(i) if i < 2 then return ms.ones { i + 1 } end end, { "x" })
---     > ds:padded_batch(2):create_tuple_iterator()():tolist()[1][2] --> 0.0
function Dataset:padded_batch(...)
  local a = bind("padded_batch", "batch_size, drop_remainder=false, num_parallel_workers=nil, pad_info=nil", ...)
  local size = check.positive("padded_batch", "batch_size", a.batch_size)
  local drop = check.boolean("padded_batch", "drop_remainder", a.drop_remainder)
  local pads = paddings("padded_batch", self, a.pad_info)
  return made(self, "padded_batch", { a }, data.batch(self._node, size, drop, base.workers_of("padded_batch", a), true, pads))
end

--- Batches of rows that are about as long as each other. The length of a row is the size of the first axis of the one column in
--- column_names, or what
--- element_length_function gives for these columns. bucket_boundaries: lengths, ascending, at which the next bucket begins;
--- bucket_batch_sizes: how many rows a
--- batch of each bucket has, one number more. Rows are filled up as in ds:padded_batch by pad_info, or with pad_to_bucket_boundary
--- to the boundary of their
--- bucket less one. drop_remainder: batches that are not full at the end are left out.
---     > ds = ms.dataset.GeneratorDataset(function(i) if i < 4 then return ms.ones { i % 2 * 5 + 1 } end end, { "x" })
---     > ds:bucket_batch_by_length({ "x" }, { 4 }, { 2, 2 }):create_tuple_iterator()().shape --> (2, 1)
function Dataset:bucket_batch_by_length(...)
  local where = "bucket_batch_by_length"
  local a = bind(where, "column_names, bucket_boundaries, bucket_batch_sizes, element_length_function=nil, pad_info=nil, "
    .. "pad_to_bucket_boundary=false, drop_remainder=false", ...)
  local places, names = base.positions(where, self, a.column_names)
  local function list_of(what, list)
    if type(list) ~= "table" or #list == 0 then fail(where, what .. " must be a list of integers, got " .. describe(list)) end
    for i, n in ipairs(list) do check.positive(where, ("%s[%d]"):format(what, i), n) end
    return list
  end
  local boundaries, sizes = list_of("bucket_boundaries", a.bucket_boundaries), list_of("bucket_batch_sizes", a.bucket_batch_sizes)
  for i = 2, #boundaries do
    if boundaries[i] <= boundaries[i - 1] then fail(where, "bucket_boundaries must be ascending") end
  end
  if #sizes ~= #boundaries + 1 then
    fail(where, ("bucket_batch_sizes must have one number more than bucket_boundaries, got %d and %d"):format(#sizes, #boundaries))
  end
  local drop = check.boolean(where, "drop_remainder", a.drop_remainder)
  local to_boundary = check.boolean(where, "pad_to_bucket_boundary", a.pad_to_bucket_boundary)
  local pads = paddings(where, self, a.pad_info)
  if to_boundary then
    local first = base.first_row(self)
    for i, pad in ipairs(pads) do
      if pad and #pad[1] == 0 and ms.is_tensor(first[i]) then
        for axis = 1, first[i].ndim do pad[1][axis] = axis == 1 and -1 or first[i].shape[axis] end
      end
    end
  end
  if not a.element_length_function then
    if #places ~= 1 then fail(where, "column_names must name one column where there is no element_length_function") end
    return made(self, where, { a }, data.bucket(self._node, places, false, boundaries, sizes, drop, to_boundary, pads))
  end
  -- The length is a column of its own until the batches are made.
  local f = base.check_function(where, "element_length_function", a.element_length_function)
  local columns, kept = data.columns(self._node), {}
  for i = 1, #columns do kept[i] = i - 1 end
  local own, outputs = {}, { table.unpack(names) }
  for i = 1, #places do own[i] = places[i] end
  outputs[#outputs + 1] = "\0length"
  local node = data.map(self._node, where, function(...)
    local values = table.pack(...)
    local length = f(...)
    values[values.n + 1] = check.not_negative(where, "the length of a row", ms.is_tensor(length) and length:item() or length)
    return table.unpack(values, 1, values.n + 1)
  end, own, outputs, config.get_seed())
  local order = {}
  for i, name in ipairs(data.columns(node)) do order[name] = i - 1 end
  local all, all_pads = { order["\0length"] }, { false }
  for i, name in ipairs(columns) do all[i + 1], all_pads[i + 1] = order[name], pads[i] end
  local wide = { "\0length", table.unpack(columns) }
  node = data.bucket(data.select(node, all, wide), { 0 }, true, boundaries, sizes, drop, to_boundary, all_pads)
  for i = 1, #columns do kept[i] = i end
  return made(self, where, { a }, data.select(node, kept, columns))
end

--- The rows of the data sets that func, which gets the values of a row, makes of each row, one after the other. All of them have the
--- columns of the first.
---     > ds = ms.dataset.NumpySlicesDataset({ 1, 2 }, { shuffle = false })
---     > ds = ds:flat_map(function(n) return ms.dataset.NumpySlicesDataset(ms.arange(n:item()), { "x" }, { shuffle = false }) end)
---     > ds:get_dataset_size() --> 3
function Dataset:flat_map(func)
  local f = base.check_function("flat_map", "func", func)
  local function inner(...)
    local result = f(...)
    if not class.is_a(result, Dataset) then fail("flat_map", "func must return a data set, got " .. describe(result)) end
    return result
  end
  local first = base.first_row(self)
  if first.n == 0 or first[1] == nil then fail("flat_map", "the data set has no rows, so that the columns are not known") end
  local names = inner(table.unpack(first, 1, first.n)):get_col_names()
  local function open(epoch)
    local outer, current
    return function()
      outer = outer or data.open(self._node, epoch, 0, 1)
      while true do
        if current then
          local row = table.pack(data.next(current))
          if row[1] ~= nil then return table.unpack(row, 1, row.n) end
          current = nil
        end
        local row = table.pack(data.next(outer))
        if row[1] == nil then return nil end
        local ds = inner(table.unpack(row, 1, row.n))
        local columns = ds:get_col_names()
        if table.concat(columns, "\0") ~= table.concat(names, "\0") then
          fail("flat_map", ("a data set has the columns %s, the first one %s"):format(table.concat(columns, ", "), table.concat(names,
            ", ")))
        end
        current = data.open(ds._node, epoch, 0, 1)
      end
    end
  end
  return made(self, "flat_map", { func }, data.stream("flat_map", open, names, nil, config.get_seed()))
end

--- Lets num_batch rows (batches, behind ds:batch) pass and the next ones when ds:sync_update(condition_name) was called, which calls
--- callback with its data: for
--- pipelines that learn from the training. A row that is asked for before is an error. Nothing is made ahead in such a pipeline.
---     > ds = ms.dataset.NumpySlicesDataset({ 1, 2 }, { shuffle = false }):sync_wait("go")
---     > it = ds:create_tuple_iterator()
---     > it():item() --> 1
---     > ds:sync_update("go")
---     > it():item() --> 2
function Dataset:sync_wait(...)
  local a = bind("sync_wait", "condition_name, num_batch=1, callback=nil", ...)
  if type(a.condition_name) ~= "string" or a.condition_name == "" then
    fail("sync_wait", "condition_name must be a name, got " .. describe(a.condition_name))
  end
  if data.consent(self._node, a.condition_name) then fail("sync_wait", ("there is a condition '%s' already"):format(a.condition_name)) end
  local count = check.positive("sync_wait", "num_batch", a.num_batch)
  local callback = a.callback and base.check_function("sync_wait", "callback", a.callback)
  return made(self, "sync_wait", { a }, data.gate(self._node, a.condition_name, count, callback))
end

--- Lets the next rows pass ds:sync_wait of the name condition_name: num_batch of them, or as many as it says. data goes to its callback.
---     > ds = ms.dataset.NumpySlicesDataset({ 1, 2 }):sync_wait("go", 1, function(loss) last_loss = loss end)
---     > ds:sync_update("go", nil, 0.5)
---     > last_loss --> 0.5
function Dataset:sync_update(condition_name, num_batch, value)
  num_batch, value = arguments.named("sync_update", { "num_batch", "data" }, num_batch, value)
  if type(condition_name) ~= "string" then fail("sync_update", "condition_name must be a name, got " .. describe(condition_name)) end
  if num_batch ~= nil then check.positive("sync_update", "num_batch", num_batch) end
  local callback = data.consent(self._node, condition_name, num_batch)
  if not callback then fail("sync_update", ("there is no condition '%s'"):format(condition_name), "ds:sync_wait makes one") end
  if callback ~= true then callback(value) end
end

--- Waits for nothing in this library: the rows of a data set are ready when they are asked for. For programs from Python; dataset is
--- a data set.
---     > ms.dataset.sync_wait_for_dataset(ms.dataset.NumpySlicesDataset { 1 })
function operations.sync_wait_for_dataset(dataset) base.check_dataset("sync_wait_for_dataset", dataset) end

local DatasetCache = class.define(nil, "DatasetCache", "session_id=0, size=0, spilling=false", [[
Keeps rows once they were made: an argument cache of sources and ds:cache. size: MiB of rows in memory, 0 for as many as there are;
beyond that they are made again, or
with spilling are in a temporary file. A cache serves one data set. session_id is taken for the sake of programs from Python.

    > cache = ms.dataset.DatasetCache()
    > ds = ms.dataset.NumpySlicesDataset({ 1, 2 }, { cache = cache }):batch(2)
    > for _ = 1, 3 do for _ in ds:create_tuple_iterator() do end end
    > cache:get_stat().hits
    4]])
operations.DatasetCache = DatasetCache

function DatasetCache:setup(a)
  check.not_negative("DatasetCache", "session_id", a.session_id)
  local size = check.not_negative("DatasetCache", "size", a.size)
  check.boolean("DatasetCache", "spilling", a.spilling)
  self._cache = data.cache(size == 0 and math.maxinteger or size << 20, a.spilling)
end

--- A table: the number of rows that are kept, their bytes, and hits, how often one was found.
---     > ms.dataset.DatasetCache():get_stat().rows --> 0
function DatasetCache:get_stat()
  local rows, bytes, hits = data.cache_state(self._cache)
  return { rows = rows, bytes = bytes, hits = hits }
end

function base.cached(where, node, cache)
  if not class.is_a(cache, DatasetCache) then fail(where, "cache must be a DatasetCache, got " .. describe(cache)) end
  if cache._taken then fail(where, "the cache serves another data set already", "make one for each: ms.dataset.DatasetCache()") end
  cache._taken = true
  return data.cached(node, cache._cache)
end

--- The same rows, each made once and then kept by a DatasetCache, cache, or one without limits. Where rows have numbers, as behind a
--- source, their order stays free; behind
--- other operations the rows of the first epoch come again.
---     > ms.dataset.NumpySlicesDataset({ 1, 2 }):map(function(x) return x * 2 end):cache():get_dataset_size() --> 2
function Dataset:cache(cache)
  cache = arguments.named("cache", { "cache" }, cache)
  cache = cache or DatasetCache()
  return made(self, "cache", {}, base.cached("cache", self._node, cache))
end

--- Says what shapes columns have in a program that is compiled once: columns is a table of shapes by name, in which false is a size
--- that differs from row to row;
--- ds:output_shapes() has -1 there.
---     > ds = ms.dataset.NumpySlicesDataset({ x = ms.ones { 2, 3 } })
---     > ds:set_dynamic_columns { x = { false } }
---     > ds:output_shapes()[1][1] --> -1
function Dataset:set_dynamic_columns(columns)
  if type(columns) ~= "table" or next(columns) == nil then
    fail("set_dynamic_columns", "columns must be a table of shapes by name, got " .. describe(columns))
  end
  for name, shape in pairs(columns) do
    base.positions("set_dynamic_columns", self, { name })
    if type(shape) ~= "table" then fail("set_dynamic_columns", ("the shape of '%s' must be a list, got %s"):format(name,
      describe(shape))) end
    for i, size in ipairs(shape) do
      if size ~= false then check.positive("set_dynamic_columns", ("%s[%d]"):format(name, i), size) end
    end
  end
  self._dynamic = columns
end

-- Empty: all columns.
Dataset.input_indexs = {}

local function check_inputs(self, value)
  local count = #data.columns(self._node)
  if type(value) ~= "table" or getmetatable(value) ~= nil then
    fail("input_indexs", "a list of columns, as numbers from 0, is expected, got " .. describe(value), "ds.input_indexs = { 1, 0 }")
  end
  for i, at in ipairs(value) do
    local what = ("input_indexs[%d]"):format(i)
    if check.not_negative("input_indexs", what, at) >= count then
      fail("input_indexs", ("%s is %d, but the data set has %d columns"):format(what, at, count))
    end
  end
end

-- A field that is there already is written without this, so that what it says is checked again where it is used.
function Dataset:__newindex(name, value)
  if name == "input_indexs" then check_inputs(self, value) end
  rawset(self, name, value)
end

--- The columns that ms.data_sink gives to its step, in their order: by ds.input_indexs = { 0, 2 } of this data set or of the one that it
--- was made of, else all.
---     > ds = ms.dataset.NumpySlicesDataset({ x = { 1 }, y = { 2 } })
---     > ds.input_indexs = { 1 }
---     > ds:batch(1):get_input_indexs()[1] --> 1
function Dataset:get_input_indexs()
  local columns = data.columns(self._node)
  local ds = self
  while ds do
    local own = rawget(ds, "input_indexs")
    if own ~= nil then check_inputs(ds, own) end
    -- Numbers of other columns say nothing about these.
    if own and #own > 0 and table.concat(data.columns(ds._node), "\0") == table.concat(columns, "\0") then return own end
    ds = ds._parents and ds._parents[1]
  end
  local list = {}
  for i = 1, #columns do list[i] = i - 1 end
  return list
end

--- The numbers of classes by their names, where the source has such: folders, VOC, COCO and Manifest; nil else.
---     > ms.dataset.NumpySlicesDataset({ 1 }):get_class_indexing() == nil --> true
function Dataset:get_class_indexing()
  local ds = self
  while ds and not rawget(ds, "_classes") do ds = ds._parents and ds._parents[1] end
  return ds and ds._classes
end

--- The number of times that ds:repeat_ repeats the rows at the end of the pipeline, else 1.
---     > ms.dataset.NumpySlicesDataset({ 1 }):repeat_(3):get_repeat_count() --> 3
function Dataset:get_repeat_count()
  if self._operation ~= "repeat_" then return 1 end
  return self._arguments[1] or -1
end

--- The same rows, for programs from Python: batches are made ahead in any case, and those that come next are brought to the device
--- that new tensors are on (ms.set_device) while the one before is in use.
---     > ms.dataset.NumpySlicesDataset({ 1, 2 }):device_que():get_dataset_size() --> 2
function Dataset:device_que() return self end

--- Ends what threads a data set has; there are none here between two iterators, so that nothing is left to do.
---     > ms.dataset.NumpySlicesDataset({ 1, 2 }):close_pool()
function Dataset:close_pool() end

--- A vocabulary of the texts in columns, as ms.dataset.text.Vocab.from_dataset makes it. freq_range: { least, most } times that a
--- word comes, top_k: how many words,
--- special_tokens: words that are in it in any case, special_first: they are the first ones.
---     > (pcall(function() return ms.dataset.NumpySlicesDataset({ "a b" }):build_vocab("nothing") end)) --> false
function Dataset:build_vocab(columns, freq_range, top_k, special_tokens, special_first)
  columns, freq_range, top_k, special_tokens, special_first = arguments.named("build_vocab",
    { "columns", "freq_range", "top_k", "special_tokens", "special_first" }, columns, freq_range, top_k, special_tokens, special_first)
  if columns ~= nil then base.positions("build_vocab", self, columns) end
  return ms.dataset.text.Vocab.from_dataset(self, columns, freq_range, top_k, special_tokens, special_first)
end

-- How long a stage took by itself, in seconds: its times have those of the stages below in them.
local function own(node)
  local sum = node.drawing + node.making
  for _, child in ipairs(node) do sum = sum - child.drawing - child.making end
  return math.max(0, sum) / 1e9
end

--- Goes through an epoch and gives how long each stage took: a table of stages, from the end of the pipeline to its sources, with
--- title, rows, seconds (of all threads) and share, and
--- waiting, the seconds for which the program waited for rows, and queue, how full the queue of finished rows was, from 0 to 1;
--- recorded is how many of the functions that run as copies consist of operators and run without Lua, batched how many of these run for
--- whole batches at once.
--- Printed it is a table; slowest is the title of the
--- stage that holds the others up. rows: at most so many.
---     > report = ms.dataset.NumpySlicesDataset(ms.arange(100)):batch(10):profile()
---     > report.rows, report[1].title, report[2].title, report[3] --> 10	batch 10	table	nil
function Dataset:profile(rows)
  rows = arguments.named("profile", { "rows" }, rows)
  rows = rows == nil and math.maxinteger or check.positive("profile", "rows", rows)
  if rows == math.maxinteger and data.rows(self._node) == math.huge then fail("profile", "the data set has no end", "ds:profile(1000)") end
  local _, _, _, bounded = config._begin(self)
  local cursor = data.open(self._node, 0, config.get_num_parallel_workers(), config.get_prefetch_size(), true, bounded)
  local begin = ms.clock()
  local count = 0
  while count < rows and data.next(cursor) ~= nil do count = count + 1 end
  local seconds = (ms.clock() - begin) / 1e9
  local tree, queue = data.times(cursor)
  local recorded, batched = data.recorded(cursor)
  data.close(cursor)
  local report = { rows = count, seconds = seconds, waiting = queue.waiting / 1e9, recorded = recorded, batched = batched }
  report.queue = queue.asked * queue.places > 0 and queue.full / (queue.asked * queue.places) or 0
  local all = 0
  local function walk(node, depth)
    local stage = { title = node.title, rows = node.made, seconds = own(node), depth = depth }
    report[#report + 1], all = stage, all + stage.seconds
    for _, child in ipairs(node) do walk(child, depth + 1) end
  end
  walk(tree, 0)
  local slowest = report[1]
  for _, stage in ipairs(report) do
    stage.share = all > 0 and stage.seconds / all or 0
    if stage.seconds > slowest.seconds then slowest = stage end
  end
  report.slowest = slowest.title
  return setmetatable(report, {
    __tostring = function()
      local lines = { ("%d rows in %.3f s, %.3f s of them waiting; queue %.0f %% full"):format(count, seconds, report.waiting,
        100 * report.queue) }
      for _, stage in ipairs(report) do
        lines[#lines + 1] = ("%8.3f s %4.0f %%  %s%s"):format(stage.seconds, 100 * stage.share, ("  "):rep(stage.depth), stage.title)
      end
      return table.concat(lines, "\n")
    end,
  })
end

--- The pipeline as a text: a line for each stage with its rows and columns, sources last.
---     > ms.dataset.NumpySlicesDataset({ x = { 1, 2, 3 } }):batch(2):show()
---     batch 2: 2 rows of x
---       table: 3 rows of x
function Dataset:show()
  local lines = {}
  local function walk(node, depth)
    local columns = {}
    for i, name in ipairs(node.columns) do columns[i] = name:gsub("^%z", "") end
    local rows = node.rows == math.huge and "endless" or node.rows and ("%d"):format(node.rows) or "?"
    lines[#lines + 1] = ("%s%s: %s rows of %s"):format(("  "):rep(depth), node.title, rows, table.concat(columns, ", "))
    for _, child in ipairs(node) do walk(child, depth + 1) end
  end
  walk(data.tree(self._node), 0)
  return table.concat(lines, "\n")
end

return operations
