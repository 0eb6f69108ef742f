-- Lua functions of pipelines in workers: copies in Lua states of their own, on the threads that make rows.
-- luacheck: globals scale_of_workers helper_of_workers file_of_workers
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local function numbers(n) return D.NumpySlicesDataset(ms.arange(n), { "x" }, { shuffle = false }) end

local function items(ds)
  local list = {}
  for value in ds:create_tuple_iterator() do list[#list + 1] = ms.is_tensor(value) and value:tolist() or value end
  return list
end

local function mapped(n, f, workers) return numbers(n):map(f, { python_multiprocessing = true, num_parallel_workers = workers }) end

local function fails(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(pattern), message)
  return tostring(message)
end

t.test("what a function captures is copied", function()
  local factor, words, weights = 3, { first = { "a", "b" }, deep = {} }, ms.tensor { 1.0, 2.0 }
  words.deep.back = words
  setmetatable(words, { __call = function(self, i) return self.first[i] end })
  local function twice(v) return v * 2 end
  local shared = 0
  local function add(n) shared = shared + n end
  local kind = ms.float64
  local ds = mapped(3, function(x)
    add(1)
    add(2)
    local seen = shared
    shared = 0
    assert(words.deep.back == words and words(2) == "b" and weights.dtype == ms.float32 and kind == ms.float64)
    return twice(x:item()) * factor + seen + weights[1]:item()
  end, 2)
  t.equal(items(ds), { 5.0, 11.0, 17.0 })
  assert(shared == 0)
end)

t.test("copies see what the function captures when an epoch begins", function()
  local factor = 1
  local ds = mapped(2, function(x) return x * factor end, 2)
  t.equal(items(ds), { 0, 1 })
  factor = 5
  t.equal(items(ds), { 0, 5 })
end)

t.test("globals, modules and methods of the library are there", function()
  scale_of_workers, helper_of_workers = 7, function(v) return math.floor(v) + #string.rep("a", 3) end
  package.loaded["own.module"] = { offset = 100 }
  local own = require "own.module"
  local relu, half = ms.ops.relu, D.transforms.Compose { D.transforms.TypeCast(ms.float32), function(v) return v / 2 end }
  local ds = mapped(2, function(x)
    return half(relu(x - 1)) * scale_of_workers + helper_of_workers(1.5) + own.offset + require("own.module").offset
  end, 2)
  t.equal(items(ds), { 204.0, 204.0 })
  scale_of_workers, helper_of_workers, package.loaded["own.module"] = nil, nil, nil
end)

t.test("cells and coroutines work in workers, gradients are an error", function()
  local net = ms.nn.Dense(1, 1, { weight_init = "ones", bias_init = "zeros" })
  local ds = mapped(4, function(x)
    local walk = coroutine.wrap(function() coroutine.yield(x:item()) end)
    return net(ms.ops.cast(x, ms.float32):reshape(1, 1))[{ 0, 0 }]:item() + walk()
  end, 2)
  t.equal(items(ds), { 0.0, 2.0, 4.0, 6.0 })
  fails("a function in a worker cannot use the virtual machine.*hint: leave python_multiprocessing out", function()
    items(mapped(2, function() return ms.grad(function(v) return v * v end)(2.0) end, 2))
  end)
end)

t.test("what cannot be copied is an error that names it", function()
  local file <close> = assert(io.tmpfile())
  local routine = coroutine.create(function() end)
  local iterator = string.gmatch("a b", "%a")
  local inner = { list = { [3] = routine } }
  local function run(f) return function() return items(mapped(1, f, 1)) end end
  local message = fails("'file', which the function at .*workers_test.lua:%d+ captures is an open file", run(function(x)
    file:write "x"
    return x
  end))
  assert(message:find "cannot be copied to workers" and message:find "hint: make it within the function", message)
  fails("'inner'.*%.list%[3%] is a", run(function(x) return inner and x end))
  fails("'iterator'.* is a function in C", run(function(x) return iterator() and x end))
  fails("'ds'.* is a data node", (function()
    local ds = numbers(2)._node
    return run(function(x) return ds and x end)
  end)())
  -- A global only where it is used.
  file_of_workers = file
  t.equal(items(mapped(1, function(x) return x or file_of_workers end, 1)), { 0 })
  fails("the global 'file_of_workers' is an open file", run(function(x) return file_of_workers and x end))
  file_of_workers = nil
end)

t.test("an error has the line, the traceback, the column and the row", function()
  local function inner(v)
    if v == 5 then error "five is bad" end
    return v
  end
  for workers = 0, 3 do
    D.config.set_num_parallel_workers(math.max(1, workers))
    local ds = mapped(9, function(x) return inner(x:item()) + 0 end, workers > 0 and workers or nil)
    local seen = {}
    local message = fails("^[^\n]*workers_test.lua:%d+: five is bad\n", function()
      for v in ds:create_tuple_iterator() do seen[#seen + 1] = v:item() end
    end)
    t.equal(seen, { 0, 1, 2, 3, 4 })
    assert(message:find("in map: column 'x', row 5 of epoch 0", 1, true), message)
    assert(message:find "in a worker, stack traceback:" and message:find "in upvalue 'inner'", message)
  end
  fails("returned 2 values for 1 column in row 0", function() items(mapped(1, function(x) return x, x end, 1)) end)
  fails("error object", function() items(mapped(1, function() error { code = 3 } end, 1)) end)
  fails("cannot end the program", function() items(mapped(1, function() os.exit(3) end, 1)) end)
end)

local function random_row(x) return x + math.random(1000), ms.ops.rand({ 3 }) end
local function random_batch(list, info) return ms.ops.stack(list) * 1000 + info.batch + ms.ops.rand({ 1 }) end

t.test("functions that compiled code made run where rows are asked for", function()
  local function sums(k)
    local ds = mapped(3, function(x) return x * k end, 2)
    return items(ds)
  end
  for k = 1, 20 do t.equal(sums(k), { 0, k, 2 * k }) end
end)

t.test("rows and random numbers do not depend on the number of workers", function()
  local function digest(workers)
    D.config.set_seed(5)
    D.config.set_num_parallel_workers(math.max(1, workers))
    local ds = D.NumpySlicesDataset(ms.arange(60), { "x" }, { shuffle = true })
      :map(random_row, { output_columns = { "x", "r" }, python_multiprocessing = true,
        num_parallel_workers = workers > 0 and workers or nil })
      :batch(8, { per_batch_map = random_batch, input_columns = { "x" }, python_multiprocessing = true })
    local text = {}
    for _ = 1, 2 do
      for x, r in ds:create_tuple_iterator({ num_epochs = 1 }) do text[#text + 1] = tostring(x) .. tostring(r) end
    end
    return table.concat(text)
  end
  local first = digest(0)
  for _, workers in ipairs { 1, 2, 3, 8 } do assert(digest(workers) == first, workers) end
end)

t.test("an interrupt stops what workers run, also what catches errors", function()
  local name = os.tmpname()
  local file <close> = assert(io.open(name, "w"))
  file:write [[
    local ms = require "lunaria"
    local ds = ms.dataset.NumpySlicesDataset(ms.arange(9), { "x" }, { shuffle = false })
    ds = ds:map(function(x) while x do pcall(function() while true do end end) end end, { python_multiprocessing = true })
    print "begun"
    for v in ds:create_tuple_iterator() do print(v) end]]
  file:close()
  local pipe <close> = assert(io.popen(("timeout -k 20 -s INT 3 %s %s 2>&1"):format(arg[-1], name)))
  local text = pipe:read "a"
  os.remove(name)
  assert(text:find "begun" and text:find "interrupted!", text)
end)

t.test("an error below a tail call tells where the function is", function()
  local function deep(v)
    if v then error "bad row" end
    return v
  end
  fails("tail calls.*workers_test.lua:%d+: the function of map", function() items(mapped(1, function(x) return deep(x) end, 1)) end)
end)

t.test("iterators that are dropped and epochs leave nothing behind", function()
  local function count(folder)
    local stat <close> = assert(io.open "/proc/self/stat")
    local pipe <close> = assert(io.popen(("ls /proc/%d/%s | wc -l"):format(stat:read "n", folder)))
    return tonumber(pipe:read "a")
  end
  local ds = mapped(50, function(x) return x + 1 end, 2)
  local function some()
    for v in ds:create_tuple_iterator() do
      if v:item() == 7 then break end
    end
  end
  some()
  collectgarbage()
  local handles = count "fd"
  for _ = 1, 300 do some() end
  local left = count "fd"
  -- Graph mode may open a file of its own meanwhile.
  assert(left <= handles + 2, ("%d file handles, %d before"):format(left, handles))
end)

D.config.set_num_parallel_workers(2)
t.finish()
