-- Operations of data sets beyond the first ones: unequal rows, many rows of one, waiting, caches, descriptions, times.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local function plain(value)
  if ms.is_tensor(value) then return value:tolist() end
  return value
end

local function rows(ds)
  local list = {}
  for first, second in ds:create_tuple_iterator() do
    list[#list + 1] = second == nil and plain(first) or { plain(first), plain(second) }
  end
  return list
end

local function numbers(n, options)
  options = options or { shuffle = false }
  return D.NumpySlicesDataset(ms.arange(n), { "x" }, options)
end

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

-- Row i has i % 4 ones and its number.
local function unequal(n)
  return D.GeneratorDataset(function(i) if i < n then return ms.ones { i % 4 }, i end end, { "x", "i" })
end

t.test("rows of different shapes are filled up", function()
  t.equal(rows(unequal(3):padded_batch(2)), { { { { 0.0 }, { 1.0 } }, { 0, 1 } }, { { { 1.0, 1.0 } }, { 2 } } })
  t.equal(rows(unequal(3):padded_batch(2, true)), { { { { 0.0 }, { 1.0 } }, { 0, 1 } } })
  t.equal(rows(unequal(2):padded_batch(2, { pad_info = { x = { { 3 }, -1 } } })), { { { { -1.0, -1.0, -1.0 }, { 1.0, -1.0, -1.0 } }, { 0,
    1 } } })
  local ds = D.GeneratorDataset(function(i) if i < 2 then return ms.ones { 2, 1 + i, 2 - i } end end, { "x" })
  t.equal(rows(ds:padded_batch(2, { pad_info = { x = { { -1, 3, -1 }, 7 } } })), { {
    { { { 1.0, 1.0 }, { 7.0, 7.0 }, { 7.0, 7.0 } }, { { 1.0, 1.0 }, { 7.0, 7.0 }, { 7.0, 7.0 } } },
    { { { 1.0, 7.0 }, { 1.0, 7.0 }, { 7.0, 7.0 } }, { { 1.0, 7.0 }, { 1.0, 7.0 }, { 7.0, 7.0 } } },
  } })
  fails("more than the 2 of pad_info", rows, unequal(4):padded_batch(4, { pad_info = { x = { { 2 }, 0 } } }))
  fails("pad_info has 2 sizes", rows, unequal(4):padded_batch(4, { pad_info = { x = { { 2, 2 }, 0 } } }))
  fails("no column 'y'", unequal(4).padded_batch, unequal(4), 2, { pad_info = { y = { { 2 }, 0 } } })
  fails("must be %-1 or a size", unequal(4).padded_batch, unequal(4), 2, { pad_info = { x = { { -2 }, 0 } } })
  fails("batch_size", unequal(4).padded_batch, unequal(4), 0)
end)

t.test("rows of about one length come together", function()
  local function lengths(ds)
    local list = {}
    for x, i in ds:create_tuple_iterator() do list[#list + 1] = { x.shape[1], x.shape[2], i:tolist() } end
    return list
  end
  t.equal(lengths(unequal(9):bucket_batch_by_length({ "x" }, { 1, 3 }, { 2, 3, 2 })), {
    { 2, 0, { 0, 4 } }, { 3, 2, { 1, 2, 5 } }, { 2, 3, { 3, 7 } }, { 1, 0, { 8 } }, { 1, 2, { 6 } },
  })
  t.equal(lengths(unequal(9):bucket_batch_by_length({ "x" }, { 1, 3 }, { 2, 3, 2 }, { drop_remainder = true })), {
    { 2, 0, { 0, 4 } }, { 3, 2, { 1, 2, 5 } }, { 2, 3, { 3, 7 } },
  })
  local by_function = unequal(6):bucket_batch_by_length({ "i" }, { 3 }, { 3, 3 }, function(i) return i end)
  t.equal(by_function:get_col_names(), { "x", "i" })
  t.equal(lengths(by_function), { { 3, 2, { 0, 1, 2 } }, { 3, 3, { 3, 4, 5 } } })
  t.equal(lengths(unequal(4):bucket_batch_by_length({ "x" }, { 3, 6 }, { 2, 2, 2 }, { pad_to_bucket_boundary = true })), {
    { 2, 2, { 0, 1 } }, { 1, 2, { 2 } }, { 1, 5, { 3 } },
  })
  local ds = unequal(4)
  fails("longer than the last boundary", rows, ds:bucket_batch_by_length({ "x" }, { 1 }, { 2, 2 }, { pad_to_bucket_boundary = true }))
  fails("ascending", ds.bucket_batch_by_length, ds, { "x" }, { 3, 2 }, { 1, 1, 1 })
  fails("one number more", ds.bucket_batch_by_length, ds, { "x" }, { 3 }, { 1 })
  fails("name one column", ds.bucket_batch_by_length, ds, { "x", "i" }, { 3 }, { 1, 1 })
end)

t.test("rows become data sets", function()
  local ds = numbers(4):flat_map(function(n) return numbers(n:item()) end)
  t.equal(rows(ds), { 0, 0, 1, 0, 1, 2 })
  t.equal(rows(ds:batch(4)), { { 0, 0, 1, 0 }, { 1, 2 } })
  t.equal(ds:get_dataset_size(), 6)
  local shuffled = numbers(3):flat_map(function() return numbers(6, { shuffle = true }) end)
  assert(table.concat(rows(shuffled), " ") ~= table.concat(rows(shuffled), " "), "the order is the same in two epochs")
  fails("must return a data set", numbers(3).flat_map, numbers(3), function() return 3 end)
  fails("has the columns y", rows, numbers(3):flat_map(function(n) return n:item() == 1 and numbers(2):rename("x", "y") or numbers(1) end))
end)

t.test("rows wait for a consent", function()
  local scale, told = 1, {}
  local ds = numbers(6):map(function(x) return x * scale end):sync_wait("loss", 2, function(loss)
    told[#told + 1], scale = loss, scale * 10
  end):batch(2)
  local seen = {}
  for x in ds:create_tuple_iterator() do
    seen[#seen + 1] = x:tolist()
    ds:sync_update("loss", nil, #seen)
  end
  t.equal(seen, { { 0, 1 }, { 20, 30 }, { 400, 500 } })
  t.equal(told, { 1, 2, 3 })
  fails("was not updated after 2 rows.*sync_update", rows, ds)
  fails("no condition 'other'", ds.sync_update, ds, "other")
  fails("a condition 'loss' already", ds.sync_wait, ds, "loss")
end)

t.test("rows are made once by a cache", function()
  for _, limit in ipairs { { 0, false }, { 1, true } } do
    local made = 0
    local cache = D.DatasetCache { size = limit[1], spilling = limit[2] }
    local ds = D.NumpySlicesDataset({ x = ms.arange(40), s = { table.unpack((function()
      local list = {}
      for i = 1, 40 do list[i] = "t" .. i end
      return list
    end)()) } }, { shuffle = true }):map(function(x)
      made = made + 1
      return ms.full({ 10000 }, x:item(), ms.float32)
    end, "x"):cache(cache):shuffle(7):batch(3)
    for _ = 1, 3 do
      local count = 0
      for row in ds:create_dict_iterator() do
        for i = 1, #row.s do
          assert(row.x[{ i - 1, 9999 }]:item() + 1 == tonumber(row.s[i]:sub(2)), row.s[i])
          count = count + 1
        end
      end
      t.equal(count, 40)
    end
    t.equal(made, 40)
    t.equal(cache:get_stat().rows, 40)
    t.equal(cache:get_stat().hits, 80)
    fails("serves another data set", numbers(3).cache, numbers(3), cache)
  end
  -- Without a place for all of them the rest is made again.
  local made = 0
  local ds = numbers(40):map(function(x)
    made = made + 1
    return ms.full({ 100000 }, x:item(), ms.float32)
  end):cache(D.DatasetCache { size = 2 })
  for _ = 1, 2 do rows(ds:map(function(x) return x[0] end)) end
  assert(made > 70 and made < 80, made)
  fails("must be a DatasetCache", numbers(3).cache, numbers(3), 5)
end)

t.test("pipelines are drawn, written and read", function()
  local ds = D.NumpySlicesDataset({ x = ms.arange(12) }, { sampler = D.RandomSampler(false, 10) }):shuffle(4):batch(3, {
    drop_remainder = true })
  t.equal(ds:show(), "batch 3: 3 rows of x\n  shuffle 4: 10 rows of x\n    table: 10 rows of x")
  D.config.set_seed(5)
  local again = D.deserialize(D.serialize(ds))
  t.equal(D.compare(ds, again), true)
  t.equal(D.compare(ds, ds:skip(1)), false)
  t.equal(again:get_dataset_size(), 3)
  local path = os.tmpname()
  local both = numbers(5):zip(numbers(5):rename("x", "y")):concat(numbers(2):zip(numbers(2):rename("x", "y"))):take(6):split({ 2, 4 },
    false)[2]
  D.serialize(both, path)
  t.equal(rows(D.deserialize(nil, path)), rows(both))
  os.remove(path)
  fails("map%.operations is a function, which cannot be written", D.serialize, numbers(3):map(function(x) return x end))
  fails("there is no operation 'nothing'", D.deserialize, { op_type = "nothing", arguments = {}, children = { D.serialize(numbers(2)) } })
end)

-- A description is text from an unknown source: what it names is a source, an operation, a transform or a sampler, or it is
-- an error, and nothing else is called.
t.test("a description makes pipelines and does nothing else", function()
  local whole, path = D.serialize(numbers(2)), os.tmpname()
  local function of(op_type, ...) return { op_type = op_type, arguments = { ... }, children = { whole } } end
  local list = require "lunaria.dataset.dataset"
  for name, method in pairs(D.Dataset) do
    if type(method) == "function" and type(name) == "string" and not list.operations[name] then
      fails("there is no operation '" .. name:gsub("%p", "%%%0"), D.deserialize, of(name, { path }))
    end
  end
  for name in pairs(list.operations) do t.equal(type(D.Dataset[name]), "function") end
  for name, value in pairs(D) do
    local is_source = type(value) == "table" and rawget(value, "_signature") and (getmetatable(value) or {}).__index == D.Dataset
    if not is_source then
      fails("there is no source", D.deserialize, { op_type = name, arguments = { { { table = {} } } } })
      fails("there is no sampler", D.deserialize, of("map", { { table = { { "operations", { sampler = "Sampler", arguments = {} } } } } }))
    end
  end
  -- A dtype is one of the dtypes, not what else the library has by a name.
  for _, name in ipairs { "save", "export", "load", "dataset", "set_seed" } do
    for _, value in ipairs { { dtype_name = name }, { tensor = { 1 }, dtype = name } } do
      fails("there is no dtype '" .. name .. "'", D.deserialize, of("map", { { table = { { "operations", value } } } }))
    end
  end
  for _, name in ipairs { "vision.Inter", "vision.write_file", "text.Vocab", "text._read", "dataset.config", "vision._signature", "x" } do
    fails("there is no transform", D.deserialize, of("map", { { table = { { "operations", { transform = name, arguments = {} } } } } }))
  end
  for _, case in ipairs {
    { "takes at most|at most 1", of("take", { 1 }, { 2 }) }, { "count must be positive", of("take", { -5 }) },
    { "has no part", of("split", { { table = { { 1, 1 }, { 2, 1 } } } }, { false }, { 9 }) },
    { "one data set before it, got 2", { op_type = "take", arguments = { { 1 } }, children = { whole, whole } } },
    { "has no the string 'extra'", { op_type = "take", arguments = {}, children = { whole }, extra = 1 } },
    { "that ms.dataset.serialize wrote is expected", of("take", { { anything = 1 } }) },
    { "table of the arguments of NumpySlicesDataset is expected", { op_type = "NumpySlicesDataset", arguments = { { 5 } } } },
    { "no argument 'nothing'", of("batch", { { table = { { "nothing", 1 } } } }) },
  } do
    local ok, message = pcall(D.deserialize, case[2])
    assert(not ok and (message:find(case[1], 1, true) or case[1]:find "|" and message:find(case[1]:match "|(.*)", 1, true)), message)
  end
  assert(io.open(path)):close()
  os.remove(path)
  -- A file of another kind is an error at once.
  local pipe = os.tmpname()
  os.execute(("rm '%s'; mkfifo '%s'"):format(pipe, pipe))
  for _, other in ipairs { "/tmp", "/dev/zero", pipe } do
    fails("not a regular file", D.deserialize, nil, other)
    fails("not a regular file", D.config.load, other)
  end
  os.remove(pipe)
end)

t.test("times of stages are measured", function()
  local slow = numbers(50):map(function(x)
    local sum = 0
    for i = 1, 20000 do sum = sum + i end
    return x + sum * 0
  end):batch(5)
  local report = slow:profile()
  t.equal(report.rows, 10)
  t.equal(report.slowest, "map")
  t.equal(report[1].title, "batch 5")
  assert(tostring(report):find "map" and report.seconds > 0, tostring(report))
  t.equal(slow:profile(3).rows, 3)
end)

t.test("callbacks come between rows", function()
  local log = {}
  local Mine = D.DSCallback:extend "Mine"
  for _, name in ipairs { "ds_begin", "ds_epoch_begin", "ds_epoch_end", "ds_step_begin", "ds_step_end" } do
    Mine[name] = function(_, run) log[#log + 1] = ("%s %d %d"):format(name, run.cur_epoch_num, run.cur_step_num) end
  end
  local ds = numbers(2):map(function(x) return x end, { callbacks = Mine() })
  rows(ds)
  rows(ds)
  t.equal(table.concat(log, ","), "ds_begin 0 0,ds_epoch_begin 1 0,ds_step_begin 1 1,ds_step_end 1 1,ds_step_begin 1 2,ds_step_end 1 2,"
    .. "ds_epoch_end 1 2,ds_epoch_begin 2 2,ds_step_begin 2 3,ds_step_end 2 3,ds_step_begin 2 4,ds_step_end 2 4")
  fails("must be a DSCallback", numbers(2).map, numbers(2), function(x) return x end, { callbacks = 3 })
end)

t.test("what programs from Python ask for", function()
  local ds = numbers(4)
  t.equal(ds:get_repeat_count(), 1)
  t.equal(ds:repeat_(3):get_repeat_count(), 3)
  t.equal(ds:get_input_indexs(), { 0 })
  t.equal(rows(ds:device_que()), { 0, 1, 2, 3 })
  ds:set_dynamic_columns { x = {} }
  fails("no column 'y'", ds.set_dynamic_columns, ds, { y = {} })
end)

t.test("rows written into their batch are the rows", function()
  local V, T = D.vision, D.transforms
  ms.set_seed(3)
  local images = ms.ops.cast(ms.ops.rand({ 7, 80, 90, 3 }) * 255, ms.uint8)
  local normalise, planes = V.Normalize({ 1.0, 2.0, 3.0 }, { 4.0, 5.0, 6.0 }), V.HWC2CHW()
  local square = V.Resize({ 80, 80 })
  local function rows_of(ds)
    local list = {}
    for a, b in ds:create_tuple_iterator({ num_epochs = 1 }) do list[#list + 1] = { a:copy(), b and b:copy() } end
    return list
  end
  local function check(list, outputs)
    local function make()
      return D.NumpySlicesDataset({ x = images }, { shuffle = false }):map(list, "x", outputs or { "x" }, { num_parallel_workers = 2 })
    end
    local single, at = rows_of(make()), 0
    for _, batch in ipairs(rows_of(make():batch(3))) do
      for i = 0, batch[1].shape[1] - 1 do
        at = at + 1
        for c = 1, outputs and 2 or 1 do assert(ms.ops.all(ms.ops.equal(batch[c][i], single[at][c])):item(), at) end
      end
    end
    assert(at == 7)
  end
  check { normalise, planes }
  check { planes }
  check { normalise, planes, V.HorizontalFlip() }
  check({ normalise, planes, T.Duplicate() }, { "x", "y" })
  check({ T.Duplicate(), planes }, { "x", "y" })
  check { square, planes, T.RandomApply({ T.Fill(3) }, 0.5) }
  check { T.RandomOrder { normalise, square }, planes }
  -- What one row is does not become another by being kept.
  local kept = {}
  for x in D.NumpySlicesDataset({ x = images }, { shuffle = false }):map({ normalise, planes }, "x"):batch(2):create_tuple_iterator() do
    kept[#kept + 1] = { x, x:sum():item() }
  end
  for _, pair in ipairs(kept) do assert(pair[1]:sum():item() == pair[2]) end
end)

t.test("transforms are written and read", function()
  local V, T = D.vision, D.transforms
  D.config.set_seed(4)
  local ds = D.NumpySlicesDataset({ x = ms.ops.cast(ms.ops.rand({ 4, 8, 8, 3 }) * 255, ms.uint8) }, { shuffle = false })
    :map({ V.Resize({ 6, 6 }), V.RandomHorizontalFlip(0.5), V.Normalize({ 1.0, 2.0, 3.0 }, { 1.0, 1.0, 2.0 }), V.HWC2CHW(),
      T.Slice({ 0, 2 }, ":"), T.Slice(ms.slice(0, 1)), T.RandomApply({ T.Fill(2) }, 0.25) }, "x"):batch(2)
  local again = D.deserialize(D.serialize(ds))
  t.equal(D.compare(ds, again), true)
  t.equal(rows(again), rows(ds))
  t.equal(D.compare(ds, D.deserialize(ms.json.decode(ms.json.encode(D.serialize(ds))))), true)
  fails("there is no transform 'vision.Nothing'", D.deserialize, { op_type = "map", children = { D.serialize(numbers(2)) },
    arguments = { { { transform = "vision.Nothing", arguments = {} } } } })
  fails("map.operations is .* which cannot be written", D.serialize, numbers(2):map(T.Compose { T.Fill(1), function(x) return x end }))
end)

t.test("tuning changes threads and queues, not rows", function()
  local name = os.tmpname()
  local ds = numbers(40):map(D.transforms.TypeCast(ms.float32)):batch(4)
  local wanted = rows(ds)
  D.config.set_enable_autotune(true, name)
  for _ = 1, 4 do t.equal(rows(ds), wanted) end
  D.config.set_enable_autotune(false)
  local file <close> = assert(io.open(name .. "_0.json"))
  local found = ms.json.decode(file:read "a")
  assert(found.num_parallel_workers >= 1 and found.prefetch_size >= 1)
  D.config.load(name .. "_0.json")
  t.equal(D.config.get_num_parallel_workers(), found.num_parallel_workers)
  D.config.set_debug_mode(true)
  t.equal(rows(ds), wanted)
  D.config.set_debug_mode(false)
  os.remove(name)
  os.remove(name .. "_0.json")
end)

t.finish()
