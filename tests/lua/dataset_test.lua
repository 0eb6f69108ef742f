-- Data sets: sources, samplers and operations against lists made by hand; order, restore and threads by digests.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local function plain(value)
  if ms.is_tensor(value) then return value:tolist() end
  return value
end

-- All rows of an epoch as lists of numbers.
local function rows(ds)
  local list = {}
  for first, second in ds:create_tuple_iterator() do
    list[#list + 1] = second == nil and plain(first) or { plain(first), plain(second) }
  end
  return list
end

local function numbers(n) return D.NumpySlicesDataset(ms.arange(n), { "x" }, { shuffle = false }) end

local function sorted(list)
  table.sort(list)
  return list
end

local function counted(n)
  local list = {}
  for i = 1, n do list[i] = i - 1 end
  return list
end

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
end

t.test("tables, lists and tensors are sources", function()
  t.equal(rows(numbers(3)), { 0, 1, 2 })
  t.equal(rows(D.NumpySlicesDataset({ 1.5, 2.5 }, { shuffle = false })), { 1.5, 2.5 })
  t.equal(rows(D.NumpySlicesDataset({ "a", "b" }, { shuffle = false })), { "a", "b" })
  t.equal(rows(D.NumpySlicesDataset({ ms.arange(2), ms.ones { 2, 1 } }, { shuffle = false })), { { 0, { 1.0 } }, { 1, { 1.0 } } })
  local ds = D.NumpySlicesDataset({ b = { "one", "two" }, a = { { 1, 2 }, { 3, 4 } } }, { shuffle = false })
  t.equal(ds:get_col_names(), { "a", "b" })
  t.equal(rows(ds), { { { 1, 2 }, "one" }, { { 3, 4 }, "two" } })
  t.equal(rows(D.NumpySlicesDataset({ b = { 1, 2 }, a = { 3, 4 } }, { "b", "a" }, { shuffle = false })), { { 1, 3 }, { 2, 4 } })
  -- A transposed tensor is not dense.
  local transposed = ms.tensor { { 1, 2, 3 }, { 4, 5, 6 } }.T
  t.equal(rows(D.NumpySlicesDataset(transposed, { shuffle = false }):batch(2)), { { { 1, 4 }, { 2, 5 } }, { { 3, 6 } } })
  t.equal(rows(D.NumpySlicesDataset(ms.zeros { 0, 2 })), {})
  t.equal(rows(D.NumpySlicesDataset(ms.zeros { 2, 0 }):batch(2)), { { {}, {} } })
end)

t.test("bad sources are refused", function()
  fails("missing argument 1", D.NumpySlicesDataset)
  fails("column 'a' has 2 rows and column 'b' has 1", D.NumpySlicesDataset, { a = { 1, 2 }, b = { 1 } })
  fails("is a scalar", D.NumpySlicesDataset, ms.tensor(1.0))
  fails("column_names has 2 names for 1", D.NumpySlicesDataset, { 1, 2 }, { "a", "b" })
  fails("there is no argument 'suffle'.*did you mean 'shuffle'", D.NumpySlicesDataset, { 1, 2 }, { suffle = true })
  fails("data must be", D.NumpySlicesDataset, 3)
  fails("column_names must be given", D.GeneratorDataset, function() end)
  fails("source must be a function", D.GeneratorDataset, 3, { "x" })
  fails("shuffle needs a source with random access", D.GeneratorDataset, function() end, { "x" }, { shuffle = true })
  fails("there is no name 'MnistDatset'.*MnistDataset", function() return D.MnistDatset end)
end)

t.test("functions, iterators, lists and objects are sources", function()
  t.equal(rows(D.GeneratorDataset(function(i) if i < 3 then return i * i end end, { "x" })), { 0, 1, 4 })
  t.equal(rows(D.GeneratorDataset(function(i) return i, -i end, { "x", "y" }, { num_samples = 2 })), { { 0, 0 }, { 1, -1 } })
  t.equal(rows(D.GeneratorDataset(function(i) return { i, "r" .. i } end, { "x", "y" }, { num_samples = 2 })), { { 0, "r0" }, { 1, "r1" } })
  local function generator()
    return coroutine.wrap(function() for i = 5, 7 do coroutine.yield(i) end end)
  end
  local ds = D.GeneratorDataset(generator, { "x" })
  t.equal(rows(ds), { 5, 6, 7 })
  t.equal(rows(ds:repeat_(2)), { 5, 6, 7, 5, 6, 7 })
  t.equal(ds:get_dataset_size(), 3)
  t.equal(rows(D.GeneratorDataset(function() return ipairs { "a", "b" } end, { "i", "text" })), { { 1, "a" }, { 2, "b" } })
  local list = { { 1, "a" }, { 2, "b" } }
  t.equal(rows(D.GeneratorDataset(list, { "x", "y" }, { shuffle = false })), { { 1, "a" }, { 2, "b" } })
  local object = { get_item = function(_, i) return i * 10 end, len = function() return 4 end }
  t.equal(rows(D.GeneratorDataset(object, { "x" }, { sampler = { 3, 1 } })), { 30, 10 })
  t.equal(sorted(rows(D.GeneratorDataset(object, { "x" }))), { 0, 10, 20, 30 })
  local other = { __getitem__ = object.get_item, __len__ = object.len }
  t.equal(rows(D.GeneratorDataset(other, { "x" }, { sampler = { 3, 1 } })), { 30, 10 })
  t.equal(tostring(D.GeneratorDataset(object, { "x" }, { column_types = { ms.float16 } }):output_types()[1]), "Float16")
  fails("returned 2 values for 1 column", rows, D.GeneratorDataset(function() return 1, 2 end, { "x" }))
  fails("got a function", rows, D.GeneratorDataset(function(i) if i == 0 then return 1 end return print end, { "x" }))
end)

t.test("samplers choose rows", function()
  local function of(sampler, n, options)
    options = options or {}
    options.sampler = sampler
    return rows(D.NumpySlicesDataset(ms.arange(n or 6), options))
  end
  t.equal(of(D.SequentialSampler(2, 3)), { 2, 3, 4 })
  t.equal(of(D.SubsetSampler { 5, 0, 5 }), { 5, 0, 5 })
  t.equal(of { 4, 2 }, { 4, 2 })
  t.equal(sorted(of(D.SubsetRandomSampler { 5, 0, 3 })), { 0, 3, 5 })
  t.equal(sorted(of(D.RandomSampler())), counted(6))
  t.equal(#of(D.RandomSampler(true, 20)), 20)
  t.equal(of(D.DistributedSampler(2, 1, false), 5), { 1, 3, 0 })
  t.equal(sorted(of(D.WeightedRandomSampler({ 0, 1, 0, 2 }, 2, false))), { 1, 3 })
  local hits = { 0, 0, 0 }
  for _, x in ipairs(of(D.WeightedRandomSampler({ 1, 0, 3 }, 4000), 3)) do hits[x + 1] = hits[x + 1] + 1 end
  -- Of 4,000 draws 3,000 with a deviation of 27.
  assert(hits[2] == 0 and math.abs(hits[3] - 3000) < 200, hits[3])
  t.equal(of(D.SequentialSampler(1, 2):add_child(D.SubsetSampler { 5, 4, 3, 2 })), { 4, 3 })
  t.equal(of(D.SequentialSampler(), 6, { num_samples = 2 }), { 0, 1 })
  local labelled = { x = ms.arange(6), label = { 0, 1, 0, 1, 2, 0 } }
  t.equal(rows(D.NumpySlicesDataset(labelled, { "x" }, { shuffle = false }):take(1)), { 0 })
  t.equal(rows(D.NumpySlicesDataset(labelled, { "x", "label" }, { sampler = D.PKSampler(2) })), { { 0, 0 }, { 2, 0 }, { 1, 1 }, { 3, 1 } })
  t.equal(rows(D.NumpySlicesDataset(ms.arange(6), { num_shards = 3, shard_id = 2, shuffle = false })), { 2, 5 })
  fails("shard_id must be less than num_shards", D.DistributedSampler, 2, 2)
  fails("the index 6 is out of range", of, { 6 })
  fails("no weight above 0", D.WeightedRandomSampler, { 0, 0 })
  fails("weights%[2%] must not be negative", D.WeightedRandomSampler, { 0, -1 })
  fails("weights%[1%] must not be negative", D.WeightedRandomSampler, { 0 / 0 })
  fails("only 1 weights are above 0", D.WeightedRandomSampler, { 0, 1 }, 2, false)
  fails("only 2 classes have num_val = 2", function()
    D.NumpySlicesDataset(labelled, { sampler = D.PKSampler(2, 3) })
  end)
  fails("there is no column 'label'", of, D.PKSampler(1))
  fails("sampler and shuffle are both given", of, { 1 }, 6, { shuffle = true })
  fails("start_index is 9", of, D.SequentialSampler(9))
end)

t.test("operations do what lists show", function()
  local ds = numbers(5)
  t.equal(rows(ds:batch(2)), { { 0, 1 }, { 2, 3 }, { 4 } })
  t.equal(rows(ds:batch(2, { drop_remainder = true })), { { 0, 1 }, { 2, 3 } })
  t.equal(rows(ds:batch(2, true):batch(2)), { { { 0, 1 }, { 2, 3 } } })
  t.equal(rows(ds:skip(3)), { 3, 4 })
  t.equal(rows(ds:take(2)), { 0, 1 })
  t.equal(rows(ds:take(9)), { 0, 1, 2, 3, 4 })
  t.equal(rows(ds:skip(9)), {})
  t.equal(rows(ds:repeat_(2):skip(4):take(3)), { 4, 0, 1 })
  t.equal(rows(ds:filter(function(x) return x:item() % 2 == 0 end)), { 0, 2, 4 })
  t.equal(rows(ds + ds:take(1)), { 0, 1, 2, 3, 4, 0 })
  t.equal(rows(ds:zip(numbers(3):rename("x", "y"))), { { 0, 0 }, { 1, 1 }, { 2, 2 } })
  t.equal(rows(D.zip({ ds, numbers(2):rename("x", "y") }):project("y")), { 0, 1 })
  t.equal(rows(D.zip({ ds, numbers(2):rename("x", "y") }):project { "y", "x" }), { { 0, 0 }, { 1, 1 } })
  t.equal(sorted(rows(ds:shuffle(3))), counted(5))
  t.equal(sorted(rows(ds:batch(1):shuffle(9):map(function(x) return x[{ 0 }] end, "x"))), counted(5))
  t.equal(rows(ds:map(function(x) return x * 2, x end, "x", { "a", "b" }):take(2)), { { 0, 0 }, { 2, 1 } })
  t.equal(rows(ds:map({ function(x) return x * 2 end, function(x) return x + 1 end }):take(2)), { 1, 3 })
  t.equal(rows(ds:apply(function(d) return d:take(1) end)), { 0 })
  local seen = {}
  local joined = ds:batch(2, { per_batch_map = function(list, info)
    seen[#seen + 1] = #list
    assert(type(info) == "table" and info.batch == #seen - 1, "the number of the batch")
    return ms.ops.stack(list, 0):sum()
  end })
  t.equal(rows(joined), { 1, 5, 4 })
  t.equal(seen, { 2, 2, 1 })
  local two = D.zip({ ds, numbers(5):rename("x", "y") }):batch(2, { input_columns = "y", per_batch_map = function(list) return #list end })
  t.equal(rows(two), { { { 0, 1 }, 2 }, { { 2, 3 }, 2 }, { { 4 }, 1 } })
  local texts = D.NumpySlicesDataset({ "a", "b", "c" }, { shuffle = false }):batch(2)
  t.equal(rows(texts), { { "a", "b" }, { "c" } })
end)

t.test("sizes, shapes and types", function()
  t.equal(#numbers(7):batch(2), 4)
  local ds = D.NumpySlicesDataset({ x = ms.ones { 7, 2 }, y = { "a", "b", "c", "d", "e", "f", "g" } })
  t.equal(ds:get_dataset_size(), 7)
  t.equal(ds:batch(3):get_dataset_size(), 3)
  t.equal(ds:batch(3, true):get_dataset_size(), 2)
  t.equal(ds:repeat_(3):get_dataset_size(), 21)
  t.equal(ds:repeat_():get_dataset_size(), nil)
  t.equal(ds:repeat_(-1):take(50):get_dataset_size(), 50)
  t.equal(ds:filter(function(_, y) return y < "c" end):get_dataset_size(), 2)
  t.equal(ds:get_batch_size(), 1)
  t.equal(ds:batch(3):repeat_(2):get_batch_size(), 3)
  t.equal(tostring(ds:batch(3):output_shapes()[1]), "(3, 2)")
  t.equal(ds:output_types()[2], "string")
  t.equal(#numbers(0):output_shapes(), 0)
end)

t.test("bad operations are refused", function()
  local ds = numbers(4)
  fails("batch_size must be positive", ds.batch, ds, 0)
  fails("there is no column 'z'; there are: x", ds.project, ds, "z")
  fails("there is no column 'z'", ds.map, ds, print, "z")
  fails("two columns would be called 'y'", function() return ds:zip(ds:rename("x", "y")):rename("x", "y") end)
  fails("two of the data sets have a column 'x'", ds.zip, ds, ds)
  fails("different columns: 'x' and 'y'", ds.concat, ds, ds:rename("x", "y"))
  fails("which is a column that the operation keeps", function()
    return ds:zip(ds:rename("x", "y")):map(print, "x", "y")
  end)
  fails("predicate must be a function", ds.filter, ds, 3)
  fails("operations must be a function", ds.map, ds, {})
  fails("must return true or false, got", rows, ds:filter(function() return 3 end))
  fails("shape %(1%) in row 0 and %(2%) in row 1", rows, D.NumpySlicesDataset(ms.arange(2), { shuffle = false }):map(function(x)
    return ms.ones { x:item() + 1 }
  end):batch(2))
  fails("dtype", rows, ds:map(function(x) return x:item() == 0 and 1.5 or 1 end):batch(2))
  fails("the sizes sum up to 3, but the data set has 4 rows", ds.split, ds, { 1, 2 })
  fails("has no end", function() return ds:repeat_():split { 0.5, 0.5 } end)
  fails("num_epochs must be positive", ds.create_dict_iterator, ds, 0)
  fails("a data set is expected", ds.zip, ds, { 3 })
  fails("num_parallel_workers", ds.batch, ds, 2, { num_parallel_workers = 0 })
  fails("there is no argument 'size'", ds.batch, ds, { size = 2 })
end)

t.test("an error of a function says where the row is", function()
  local ds = numbers(4):map(function(x)
    if x:item() == 2 then error("not this one") end
    return x
  end, "x")
  local it = ds:create_tuple_iterator()
  t.equal({ it():item(), it():item() }, { 0, 1 })
  local ok, message = pcall(it)
  assert(not ok and message:find("dataset_test.lua:%d+: not this one\n  in map: column 'x', row 2 of epoch 0"), message)
end)

t.test("parts of a split have no row in common, in any epoch", function()
  local train, test = table.unpack(D.NumpySlicesDataset(ms.arange(10)):split { 0.7, 0.3 })
  for _ = 1, 3 do
    local all, first = rows(train), rows(test)
    t.equal({ #all, #first }, { 7, 3 })
    for _, x in ipairs(first) do all[#all + 1] = x end
    t.equal(sorted(all), counted(10))
  end
  t.equal(rows(numbers(5):split({ 2, 3 }, false)[2]), { 2, 3, 4 })
  local sizes = {}
  for i, part in ipairs(numbers(10):split { 0.33, 0.33, 0.34 }) do sizes[i] = part:get_dataset_size() end
  t.equal(sizes, { 4, 3, 3 })
end)

t.test("each epoch has an order of its own, the same for a seed", function()
  local function epochs(seed)
    D.config.set_seed(seed)
    local it, list = D.NumpySlicesDataset(ms.arange(50)):shuffle(10):create_tuple_iterator(), {}
    for e = 1, 3 do
      list[e] = {}
      for x in it do table.insert(list[e], x:item()) end
    end
    return list
  end
  local a = epochs(1)
  t.equal(a, epochs(1))
  assert(table.concat(a[1], " ") ~= table.concat(a[2], " "), "the epochs have one order")
  assert(table.concat(a[1], " ") ~= table.concat(epochs(2)[1], " "), "the seeds have one order")
  t.equal(sorted(a[3]), counted(50))
  -- Iterators go on where the one before stopped, until reset.
  D.config.set_seed(1)
  local ds = D.NumpySlicesDataset(ms.arange(50)):shuffle(10)
  local first = rows(ds)
  t.equal(first, epochs(1)[1])
  t.equal(rows(ds), epochs(1)[2])
  ds:reset()
  t.equal(rows(ds), first)
  -- Every turn of a repeat has an order of its own.
  local twice = rows(D.NumpySlicesDataset(ms.arange(50)):repeat_(2))
  t.equal(sorted(table.move(twice, 1, 50, 1, {})), counted(50))
  assert(table.concat(twice, " ", 1, 50) ~= table.concat(twice, " ", 51), "both turns have one order")
end)

-- Pipelines of all operations, for restore and threads.
local pipelines = {
  function()
    return D.NumpySlicesDataset({ x = ms.arange(103), y = ms.arange(103):astype(ms.float32):reshape { 103, 1 } }):shuffle(17):batch(4)
  end,
  function() return D.NumpySlicesDataset(ms.arange(60)):repeat_(3):shuffle(7):skip(5):take(150):batch(7, true) end,
  function() return D.NumpySlicesDataset(ms.arange(40)):map(function(x) return x + ms.rand { 2 } end):shuffle(9):batch(3):repeat_(2) end,
  function() return D.NumpySlicesDataset(ms.arange(50)):filter(function(x) return x:item() % 3 ~= 1 end):shuffle(5):batch(4) end,
  function() return D.GeneratorDataset(function(i) if i < 45 then return i end end, { "x" }):shuffle(8):repeat_(2):batch(4) end,
  function() return D.GeneratorDataset(function(i) return i + ms.rand { 1 } end, { "x" }, { num_samples = 30 }):shuffle(8):batch(4) end,
  function()
    local a, b = D.NumpySlicesDataset(ms.arange(30), { "x" }), D.NumpySlicesDataset(ms.arange(40), { "y" })
    return a:zip(b):batch(3):concat(D.zip({ a:shuffle(5), b }):batch(2))
  end,
  function()
    local sampler = D.WeightedRandomSampler(ms.arange(64):astype(ms.float32))
    return D.NumpySlicesDataset(ms.arange(64), { sampler = sampler }):split({ 0.5, 0.5 })[2]:batch(5)
  end,
  function()
    local doubled = D.NumpySlicesDataset(ms.arange(64)):map(function(x) return x * 2 end)
    return doubled:rename("column_0", "z"):project("z"):batch(5):shuffle(3)
  end,
  function()
    return D.NumpySlicesDataset(ms.arange(33)):batch(4, { per_batch_map = function(list) return ms.ops.stack(list, 0) + ms.rand { 1 } end })
  end,
}

local function digests(it, count)
  local list = {}
  for i = 1, count do
    local row = table.pack(it())
    local parts = {}
    for k = 1, row.n do parts[k] = row[k] == nil and "end" or ms.json.encode(plain(row[k])) end
    list[i] = table.concat(parts, " ")
  end
  return list
end

t.test("order and content do not depend on the number of threads", function()
  for p, pipeline in ipairs(pipelines) do
    local expected
    for workers = 1, 8 do
      D.config.set_seed(5)
      D.config.set_num_parallel_workers(workers)
      local got = digests(pipeline():create_tuple_iterator(), 90)
      expected = expected or got
      for i = 1, 90 do assert(got[i] == expected[i], ("pipeline %d, %d threads, row %d"):format(p, workers, i)) end
    end
  end
  D.config.set_num_parallel_workers(2)
end)

t.test("an iterator is restored to the row after 200 random stops", function()
  math.randomseed(18)
  for p, pipeline in ipairs(pipelines) do
    D.config.set_seed(5)
    local expected = digests(pipeline():create_tuple_iterator(), 90)
    for _ = 1, 20 do
      local stop = math.random(0, 80)
      D.config.set_num_parallel_workers(math.random(8))
      local it = pipeline():create_tuple_iterator()
      digests(it, stop)
      local state = ms.json.decode(ms.json.encode(it:state()))
      it:close()
      local other = pipeline():create_tuple_iterator()
      D.config.set_num_parallel_workers(math.random(8))
      other:restore(state)
      t.equal(digests(other, 3), table.move(expected, stop + 1, stop + 3, 1, {}), ("pipeline %d after %d"):format(p, stop))
      other:close()
    end
  end
  D.config.set_num_parallel_workers(2)
  local it = numbers(3):create_tuple_iterator()
  fails("epoch 0 has 3 rows", it.restore, it, { epoch = 0, row = 4 })
  it = numbers(3):create_tuple_iterator()
  fails("a state is expected", it.restore, it, 3)
  fails("row must not be negative", it.restore, it, { epoch = 0, row = -1 })
end)

t.test("iterators end, are closed, and can be dropped anywhere", function()
  local ds = numbers(1000):batch(3)
  local it = ds:create_tuple_iterator(1)
  for _ = 1, 334 do assert(it()) end
  t.equal({ it(), it() }, {})
  for _ = 1, 50 do
    for row in ds:create_dict_iterator() do
      if row.x[0]:item() == 3 then break end
    end
    ds:create_tuple_iterator()()
  end
  collectgarbage()
  it = ds:create_tuple_iterator()
  it()
  it:close()
  fails("it was closed", it)
  local inner
  inner = numbers(4):map(function(x) return inner() end):create_tuple_iterator()
  fails("is in use", inner)
  for _ = 1, 2000 do
    for _ in numbers(4):batch(2):create_tuple_iterator() do end
  end
end)

t.test("what a row function does to its values stays with it", function()
  local x = ms.tensor { 1, 2, 3 }
  local ds = D.NumpySlicesDataset(x, { shuffle = false }):map(function(v)
    v[{}] = 9
    return v
  end)
  t.equal(rows(ds), { 9, 9, 9 })
  t.equal(x:tolist(), { 1, 2, 3 })
  local shared = ms.zeros { 1 }
  local again = D.GeneratorDataset(function(i)
    shared[0] = i
    return shared
  end, { "x" }, { num_samples = 3 })
  t.equal(rows(again:batch(3)), { { { 0.0 }, { 1.0 }, { 2.0 } } })
end)

t.test("random operators in a row function leave the program's own numbers alone", function()
  ms.set_seed(3)
  local expected = ms.rand { 2 }:tolist()
  ms.set_seed(3)
  rows(numbers(4):map(function(x) return x + ms.rand { 1 } end))
  t.equal(ms.rand { 2 }:tolist(), expected)
end)

local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir " .. folder)
local function write(name, text)
  local path = folder .. "/" .. name
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
  return path
end

t.test("CSV files", function()
  local samples = "tests/data/samples/csv/"
  local function of(path, options)
    options = options or {}
    options.shuffle = false
    local list = {}
    for row in D.CSVDataset(path, options):create_dict_iterator() do list[#list + 1] = row end
    return list
  end
  local list = of(samples .. "rfc4180.csv")
  t.equal(list[2].name, 'quote "q", comma')
  t.equal(list[3], { id = "3", name = "multi\nline", x = "", label = "c" })
  list = of(samples .. "rfc4180.csv", { column_defaults = { 0, "", -1.0, "" } })
  t.equal({ list[4].id:item(), list[3].x:item(), list[1].x:item() }, { 4, -1.0, 1.5 })
  t.equal(of(samples .. "bom_crlf.csv"), { { a = "1", b = "2" }, { a = "3", b = "4" } })
  t.equal(#of(samples .. "bom_crlf.csv", { column_names = { "a", "b" } }), 3)
  fails("REJECT_ragged.csv: line 2: there are 3 columns, but 2", of, samples .. "REJECT_ragged.csv")
  fails("never closed", of, samples .. "REJECT_open_quote.csv")
  local bad = write("bad.csv", "a;b\nx;1\n")
  fails("line 2: column 'a' has 'x', which is no integer", of, bad, { field_delim = ";", column_defaults = { 0, 0 } })
  fails("column_defaults has 1 values", of, write("two.csv", "a,b\n1,2\n"), { column_defaults = { 0 } })
  fails("is empty", of, write("empty.csv", ""))
  fails("no/such.csv", of, "/proc/no/such.csv")
  fails("field_delim", of, samples .. "bom_crlf.csv", { field_delim = "ab" })
  t.equal(#of { write("a.csv", "a,b\n1,2\n"), write("b.csv", "a,b\n3,4\n\n5,6") }, 3)
  fails("others than in", of, { write("a.csv", "a,b\n1,2\n"), write("b.csv", "a,c\n3,4\n") })
end)

t.test("lines of text files", function()
  local ds = D.TextFileDataset({ write("a.txt", "one\r\n\ntwo"), write("b.txt", "three\n") }, { shuffle = false })
  t.equal(rows(ds), { "one", "two", "three" })
  t.equal(ds:get_col_names(), { "text" })
  fails("dataset_files must be a path", D.TextFileDataset, 3)
end)

t.test("TFRecord files, of others and of our own", function()
  local samples = "tests/data/samples/tfrecord/"
  local manifest
  do
    local file = assert(io.open("tests/data/samples/manifest.json"))
    for _, entry in ipairs(ms.json.decode(file:read("a")).files) do
      if entry.path == "tfrecord/examples.tfrecord" then manifest = entry.expect end
    end
    file:close()
  end
  local function matches(path)
    local n = 0
    for row in D.TFRecordDataset(path, { shuffle = false }):create_dict_iterator() do
      n = n + 1
      for name, feature in pairs(manifest[n]) do
        if feature.bytes_hex then
          local hex = row[name]:gsub(".", function(c) return ("%02x"):format(c:byte()) end)
          t.equal(hex, feature.bytes_hex)
        elseif feature.int64 then
          t.equal({ tostring(row[name].dtype), row[name]:tolist() }, { "Int64", feature.int64 })
        elseif feature.float then
          t.equal({ tostring(row[name].dtype), row[name]:tolist() }, { "Float32", feature.float })
        else
          error("the manifest has a feature of another kind: " .. name)
        end
      end
    end
    t.equal(n, #manifest)
  end
  matches(samples .. "examples.tfrecord")
  local copy = folder .. "/copy.tfrecord"
  local whole = D.TFRecordDataset(samples .. "examples.tfrecord", { shuffle = false })
  t.equal(whole:save(copy), #manifest)
  matches(copy)
  t.equal(D.TFRecordDataset({ copy, samples .. "examples.tfrecord" }):get_dataset_size(), 2 * #manifest)
  t.equal(D.TFRecordDataset(copy, { columns_list = "label" }):get_col_names(), { "label" })
  local function all(path) return rows(D.TFRecordDataset(samples .. path)) end
  fails("REJECT_bad_data_crc.tfrecord: record %d+ is corrupt: the crc of its data is wrong", all, "REJECT_bad_data_crc.tfrecord")
  fails("record %d+ is corrupt: the crc of its length is wrong", all, "REJECT_bad_length_crc.tfrecord")
  fails("record %d+ is corrupt: ", all, "REJECT_truncated.tfrecord")
  fails("record %d+ is corrupt: ", all, "REJECT_huge_length.tfrecord")
  fails("there is no feature 'z'", rows, D.TFRecordDataset(copy, { columns_list = { "z" } }))
  fails("has no records", D.TFRecordDataset, write("none.tfrecord", ""))
  fails("has no end", function() numbers(2):repeat_():save(copy) end)
  -- Every damage of one byte is an error, and no other file is left behind.
  local file = assert(io.open(copy, "rb"))
  local text = file:read("a")
  file:close()
  for at = 1, #text, 7 do
    local damaged = text:sub(1, at - 1) .. string.char(text:byte(at) ~ 0x10) .. text:sub(at + 1)
    fails("corrupt", function() rows(D.TFRecordDataset(write("damaged.tfrecord", damaged))) end)
  end
end)

t.test("MNIST's files", function()
  local function idx(name, count, base)
    local pixels = {}
    for i = 1, count * 4 do pixels[i] = string.char((base + i) % 256) end
    write(name .. "-images-idx3-ubyte", string.pack(">I4I4I4I4", 0x803, count, 2, 2) .. table.concat(pixels))
    local labels = {}
    for i = 1, count do labels[i] = string.char((base + i) % 10) end
    write(name .. "-labels-idx1-ubyte", string.pack(">I4I4", 0x801, count) .. table.concat(labels))
  end
  idx("train", 5, 0)
  idx("t10k", 3, 100)
  local ds = D.MnistDataset(folder, "train", { shuffle = false })
  t.equal({ ds:get_dataset_size(), D.FashionMnistDataset(folder):get_dataset_size() }, { 5, 8 })
  local row = ds:create_dict_iterator()()
  t.equal({ tostring(row.image.shape), tostring(row.image.dtype) }, { "(2, 2, 1)", "UInt8" })
  t.equal({ tostring(row.label.dtype), row.label:item() }, { "Int32", 1 })
  t.equal(row.image:reshape { 4 }:tolist(), { 1, 2, 3, 4 })
  t.equal(D.MnistDataset(folder, { usage = "test", shuffle = false }):create_dict_iterator()().label:item(), 1)
  fails("usage must be one of", D.MnistDataset, folder, "valid")
  fails("there is no file /proc/no/such/folder/train%-images", D.MnistDataset, "/proc/no/such/folder")
  write("t10k-labels-idx1-ubyte", string.pack(">I4I4", 0x801, 2) .. "ab")
  fails("images have shape %(3, 2, 2%) and the labels %(2,%)", D.MnistDataset, folder, "test")
end)

-- What a row has under a name, as the manifest tells it: numbers and texts as they are, bytes and arrays described.
local function matches_field(value, expected, where)
  if type(expected) ~= "table" then
    return t.equal(ms.is_tensor(value) and value:item() or value, expected, where)
  elseif expected.bytes_hex or expected.len then
    t.equal(tostring(value.dtype), "UInt8", where)
    if expected.len then return t.equal(value.size, expected.len, where) end
    local parts = {}
    for i, byte in ipairs(value:tolist()) do parts[i] = ("%02x"):format(byte) end
    return t.equal(table.concat(parts), expected.bytes_hex, where)
  end
  t.equal(tostring(value.dtype):lower(), expected.dtype, where)
  local shape = {}
  for i = 1, value.ndim do shape[i] = value.shape[i] end
  t.equal(shape, expected.shape, where)
  if expected.values then t.equal(value:reshape { -1 }:tolist(), expected.values, where) end
end

t.test("MindRecord files of the reference product", function()
  local samples = "tests/data/samples/mindrecord/"
  local file = assert(io.open(samples .. "manifest.json"))
  local files = ms.json.decode(file:read("a")).files
  file:close()
  local read = 0
  for _, entry in ipairs(files) do
    local path = samples .. entry.name .. (entry.shards > 1 and "0" or "")
    if entry.name ~= "default_sizes.mindrecord" then
      local n = 0
      for row in D.MindDataset(path, { shuffle = false }):create_dict_iterator() do
        n = n + 1
        local expected = (entry.expected or {})[n]
        if entry.expected_any_order then
          for _, candidate in ipairs(entry.expected_any_order) do
            if candidate.id == row.id:item() then expected = candidate end
          end
        end
        for name, value in pairs(expected) do matches_field(row[name], value, entry.name .. " " .. n .. " " .. name) end
      end
      t.equal(n, entry.rows, entry.name)
      read = read + 1
    end
  end
  assert(read >= 6, read)
  t.equal(D.MindDataset({ samples .. "sharded.mindrecord0" }):get_dataset_size() < 22, true)
  t.equal(D.MindDataset(samples .. "images.mindrecord", { columns_list = "label" }):get_col_names(), { "label" })
  fails("there is no field 'z'", D.MindDataset, samples .. "images.mindrecord", { columns_list = "z" })
  -- Damages are errors or leave a row as it was: there is no check sum in the format. None may end the process.
  local source = assert(io.open(samples .. "arrays.mindrecord", "rb"))
  local text = source:read("a")
  source:close()
  local number = 1
  for _ = 1, 400 do
    number = (number * 1103515245 + 12345) % 2147483648
    -- The header's first bytes, and the pages.
    local at = number % 2 == 0 and number // 4 % 2600 + 1 or 16385 + number // 4 % (#text - 16384)
    local damaged = text:sub(1, at - 1) .. string.char(number >> 16 & 255) .. text:sub(at + 1)
    local path = write("damaged.mindrecord", damaged)
    local ok, message = pcall(function() return rows(D.MindDataset({ path })) end)
    assert(ok or tostring(message):find("damaged.mindrecord", 1, true), message)
  end
  for _, size in ipairs { 0, 7, 100, 16384, 33000, #text - 1 } do
    fails("corrupt", function() rows(D.MindDataset({ write("short.mindrecord", text:sub(1, size)) })) end)
  end
end)

t.test("CIFAR's files", function()
  local ds = D.Cifar10Dataset("tests/data/samples/cifar10", "train", { shuffle = false })
  local labels, sum, first = {}, 0, nil
  for row in ds:create_dict_iterator() do
    labels[#labels + 1] = row.label:item()
    sum = sum + row.image:astype(ms.int64):sum():item()
    first = first or row.image[{ 0, 0 }]:tolist()
  end
  t.equal({ #labels, labels[2], sum, first }, { 20, 5, 7801977, { 235, 100, 46 } })
  t.equal(tostring(ds:output_shapes()[1]), "(32, 32, 3)")
  fails("there is none of CIFAR's binary files", D.Cifar10Dataset, "tests/data/samples/cifar10", "test")
  write("train.bin", "\7\42" .. ("a"):rep(3072))
  local row = D.Cifar100Dataset(folder):create_dict_iterator()()
  t.equal({ row.coarse_label:item(), row.fine_label:item(), row.image[{ 31, 31, 2 }]:item() }, { 7, 42, 97 })
  write("test.bin", "abc")
  fails("has 3 bytes, which are no whole records of 3074", D.Cifar100Dataset, folder)
end)

t.test("a data set trains a network", function()
  ms.set_seed(1)
  local x = ms.randn { 64, 3 }
  local y = ms.ops.matmul(x, ms.tensor { { 1.0 }, { -2.0 }, { 0.5 } })
  local net = ms.nn.Dense(3, 1)
  local model = ms.Model(net, { loss_fn = ms.nn.MSELoss(), optimizer = ms.nn.Adam(net:trainable_params(), 0.1) })
  local history = ms.train.History()
  model:train(20, D.NumpySlicesDataset({ x, y }):batch(16), history)
  local losses = history.history.loss
  t.equal(#losses, 20)
  assert(losses[20] < 0.05 * losses[1], ("the loss went from %g to %g"):format(losses[1], losses[20]))
end)

os.execute("rm -r " .. folder)
t.finish()
