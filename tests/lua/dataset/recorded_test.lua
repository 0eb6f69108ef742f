-- Row functions that consist of operators: recorded once, and run without Lua by the threads that make rows.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset
local ops = ms.ops

local function rows_of(n, shape)
  ms.set_seed(3)
  return D.NumpySlicesDataset({ x = ops.rand { n, table.unpack(shape) } * 8 - 3 }, { shuffle = false })
end

local function text_of(ds)
  local parts = {}
  for _ = 1, 2 do
    for _, value in ipairs { table.unpack((function()
      local list = {}
      for a, b in ds:create_tuple_iterator { num_epochs = 1 } do
        list[#list + 1] = { a, b }
      end
      return list
    end)()) } do
      for _, v in ipairs(value) do
        local list = v:reshape(-1):tolist()
        for i, number in ipairs(list) do list[i] = ("%q"):format(number) end
        parts[#parts + 1] = tostring(v.dtype) .. tostring(v.shape) .. table.concat(list, " ")
      end
    end
  end
  return table.concat(parts, "\n")
end

-- The same by a function that Lua calls for each row, and by its recording for 0 to 8 threads.
local function same(f, shape, options, recorded, batched)
  options = options or {}
  local function pipeline(copies, workers)
    D.config.set_seed(11)
    D.config.set_num_parallel_workers(math.max(1, workers))
    local ds = rows_of(22, shape):map(f, { input_columns = { "x" }, output_columns = options.outputs, python_multiprocessing = copies,
      num_parallel_workers = workers > 0 and workers or nil })
    if options.batch then ds = ds:batch(options.batch) end
    return ds
  end
  local expected = text_of(pipeline(false, 0))
  for _, workers in ipairs { 0, 1, 2, 3, 8 } do
    assert(text_of(pipeline(true, workers)) == expected, ("%d workers: not what Lua gives"):format(workers))
  end
  local report = pipeline(true, 2):profile()
  -- Where graph mode made a function in C of it, that runs.
  if ms.get_context "mode" == ms.PYNATIVE_MODE then t.equal({ report.recorded, report.batched }, { recorded or 1, batched or 0 }) end
end

local mean, deviation = ms.tensor { 0.5, 1.5, 2.5, 3.5, 4.5 }, 0.3
local function normalise(x) return (x - mean) / deviation end

t.test("element by element: compiled, and for whole batches at once", function()
  for _, batch in ipairs { false, 4, 5, 11 } do
    same(normalise, { 3, 5 }, { batch = batch }, 1, 1)
    same(function(x) return ops.exp(x):tanh() * 2 + ops.sigmoid(x), x:astype(ms.float64) end, { 7 },
      { batch = batch, outputs = { "a", "b" } }, 1, 1)
    same(function(x) return ops.transpose(x, { 1, 0 }), x[{ 0 }] end, { 3, 5 }, { batch = batch, outputs = { "a", "b" } }, 1, 1)
    same(function(x) return x end, { 3 }, { batch = batch }, 1)
  end
end)

t.test("sums and products run without Lua, one row after the other", function()
  local weight = ops.rand { 5, 4 }
  same(function(x) return (x - ops.mean(x)) / ops.std(x) end, { 3, 5 }, { batch = 4 })
  same(function(x) return ops.softmax(ops.matmul(x, weight), -1) end, { 3, 5 })
end)

t.test("random operators draw what they draw in Lua", function()
  same(function(x) return x + ops.rand { 3 }, ops.randn { 2 } end, { 3 }, { batch = 4, outputs = { "a", "b" } })
end)

t.test("control flow that the rows do not decide, tables and helpers are recorded", function()
  local function scaled(x, k) return x * k end
  same(function(x)
    local parts = {}
    for i = 1, 3 do parts[i] = scaled(x, i) end
    local sum = parts[1]
    for i = 2, #parts do
      if i % 2 == 0 then sum = sum + parts[i] end
    end
    return sum:reshape(-1)
  end, { 2, 3 }, { batch = 4 }, 1, 1)
end)

t.test("what may not be recorded runs in Lua", function()
  local seen = {}
  local ten = ms.tensor { 10.0 }
  local cases = {
    function(x) return x[{ 0 }]:item() > 1 and x or -x end,
    function(x) return x * math.random() end,
    function(x)
      seen[1] = (seen[1] or 0) + 1
      return x * 2
    end,
    function(x)
      x[{ 0 }] = 5
      return x
    end,
    function(x) return x + os.time() * 0 end,
    function(x) return x, "a text" end,
    function(x) return ms.tensor(x:tolist()) end,
    function(x) return pcall(error, "no") and x or x + ten end,
  }
  for i, f in ipairs(cases) do
    D.config.set_seed(5)
    local outputs = i == 6 and { "a", "b" } or nil
    local function list(ds)
      local texts = {}
      for a, b in ds:create_tuple_iterator() do texts[#texts + 1] = tostring(a) .. tostring(b) end
      return texts
    end
    local ds = rows_of(6, { 3 }):map(f, { output_columns = outputs, python_multiprocessing = true, num_parallel_workers = 2 })
    t.equal(ds:profile().recorded, 0)
    if i ~= 2 then t.equal(list(ds), list(rows_of(6, { 3 }):map(f, { output_columns = outputs }))) end
  end
end)

t.test("nothing that a function writes is written by its recording", function()
  local log = {}
  local ds = rows_of(4, { 3 }):map(function(x)
    log[#log + 1] = "called"
    return x
  end, { python_multiprocessing = true })
  for _ in ds:create_tuple_iterator() do t.equal(#log, 0) end
  t.equal(#log, 0)
end)

t.test("what changes between epochs is seen in the next one", function()
  local factor, shift, kept = 2, ms.tensor { 1.0, 1.0 }, { scale = 1 }
  local ds = D.NumpySlicesDataset({ x = ms.ones { 6, 2 } }, { shuffle = false })
    :map(function(x) return x * factor * kept.scale + shift end, { python_multiprocessing = true, num_parallel_workers = 2 }):batch(3)
  local function first() return ds:create_tuple_iterator()():tolist()[1] end
  t.equal(first(), { 3.0, 3.0 })
  factor = 4
  t.equal(first(), { 5.0, 5.0 })
  shift[{ 0 }] = 7
  t.equal(first(), { 11.0, 5.0 })
  shift = shift * 0
  t.equal(first(), { 4.0, 4.0 })
  kept.scale = 3
  t.equal(first(), { 12.0, 12.0 })
end)

t.test("a tensor that is written while rows are made is as it was", function()
  local shift = ms.tensor { 1.0, 1.0 }
  for _, f in ipairs { function(x) return x + shift end, function(x) return x + shift + ops.sum(x) * 0 end } do
    shift[{ 0 }] = 1
    local sum = 0
    local ds = D.NumpySlicesDataset({ x = ms.zeros { 400, 2 } }, { shuffle = false })
      :map(f, { python_multiprocessing = true, num_parallel_workers = 2 })
    for x in ds:create_tuple_iterator() do
      sum = sum + x[{ 0 }]:item()
      shift[{ 0 }] = shift[{ 0 }] + 1
    end
    t.equal(sum, 400.0)
  end
end)

t.test("rows of other shapes than the first one run in Lua", function()
  local ds = D.GeneratorDataset(function(i) if i < 9 then return ms.ones { i % 3 + 1 } end end, { "x" })
    :map(function(x) return x * 2 + #x.shape + x.shape[1] end, { python_multiprocessing = true, num_parallel_workers = 2 })
  local sizes = {}
  for x in ds:create_tuple_iterator() do sizes[#sizes + 1] = ("%d:%g"):format(x.size, x[{ 0 }]:item()) end
  t.equal(table.concat(sizes, " "), "1:4 2:5 3:6 1:4 2:5 3:6 1:4 2:5 3:6")
  t.equal(ds:profile().recorded, 1)
end)

t.test("an error in a recorded row is the one that Lua gives", function()
  local ds = D.NumpySlicesDataset({ i = ms.tensor { 0, 1, 9, 2 } }, { shuffle = false })
  local values = ms.tensor { 1.0, 2.0, 3.0 }
  local function take(i) return ops.gather(values, i, 0) + 0 end
  ds = ds:map(take, { python_multiprocessing = true, num_parallel_workers = 2 })
  local ok, message = pcall(function() for _ in ds:create_tuple_iterator() do end end)
  assert(not ok and message:find("recorded_test.lua:%d+:") and message:find("row 2 of epoch 0", 1, true), message)
end)

t.test("a stream of rows, a chain of functions and batches as rows", function()
  local function pipeline(copies)
    local options = { python_multiprocessing = copies, num_parallel_workers = copies and 2 or nil }
    return D.GeneratorDataset(function(i) if i < 20 then return ms.arange(6):reshape(2, 3) * 0.1 * i end end, { "x" })
      :map(function(x) return x * 3 end, options):map(function(x) return x - 1, x end,
        { output_columns = { "a", "b" }, python_multiprocessing = copies }):batch(4)
      :map(function(a) return ops.relu(a) end, { input_columns = { "a" }, python_multiprocessing = copies })
  end
  assert(text_of(pipeline(true)) == text_of(pipeline(false)))
  -- The last one where the program's own thread makes a batch.
  assert(pipeline(true):profile().recorded >= 2)
end)

t.finish()
