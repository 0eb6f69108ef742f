-- Rows that ds:map fails for: an error, left out, or replaced.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset
local modes = D.config.ErrorSamplesMode

local function odd(x)
  assert(x:item() % 3 ~= 0, "bad row")
  return x
end
local function items(ds)
  local list = {}
  for x in ds:create_tuple_iterator { num_epochs = 1 } do
    for _, v in ipairs(x.ndim == 0 and { x:item() } or x:tolist()) do list[#list + 1] = v end
  end
  return list
end

-- In the mode, by functions, copies of functions and transforms of the library.
local function each(mode, check)
  D.config.set_error_samples_mode(mode)
  local source = D.NumpySlicesDataset(ms.arange(10), { "x" }, { shuffle = false })
  for workers = 1, 4 do
    D.config.set_num_parallel_workers(workers)
    check(source:map(odd))
    check(source:map(odd, { python_multiprocessing = true }))
    check(source:map { D.transforms.TypeCast(ms.int32), odd })
  end
  local lengths = D.GeneratorDataset(function(i) if i < 10 then return ms.zeros { i % 3 == 0 and 2 or 7 } + i end end, { "x" })
  local ds = lengths:map(D.transforms.Slice { 5 })
  check(ds:map(function(x) return x:reshape(-1)[{ 0 }]:astype(ms.int64) end))
  D.config.set_error_samples_mode(modes.RETURN)
  D.config.set_num_parallel_workers(2)
end

t.test("without a mode the first one is an error", function()
  each(modes.RETURN, function(ds)
    local ok, message = pcall(items, ds)
    assert(not ok and message:find("row 0 of epoch 0", 1, true), message)
  end)
end)

t.test("bad rows are left out, and batches are full", function()
  each(modes.SKIP, function(ds)
    t.equal(items(ds), { 1, 2, 4, 5, 7, 8 })
    t.equal(ds:get_dataset_size(), 6)
    local sizes = {}
    for x in ds:batch(4):create_tuple_iterator() do sizes[#sizes + 1] = x.shape[1] end
    t.equal(sizes, { 4, 2 })
    t.equal(items(ds:skip(2):take(3)), { 4, 5, 7 })
  end)
end)

t.test("bad rows are replaced by the good one before, at the beginning by the first", function()
  each(modes.REPLACE, function(ds)
    t.equal(items(ds), { 1, 1, 2, 2, 4, 5, 5, 7, 8, 8 })
    t.equal(ds:get_dataset_size(), 10)
    t.equal(items(ds:batch(3)), { 1, 1, 2, 2, 4, 5, 5, 7, 8, 8 })
  end)
end)

t.test("where no row is good there is none to replace them", function()
  D.config.set_error_samples_mode(modes.REPLACE)
  local ds = D.NumpySlicesDataset({ 1, 2, 3 }, { shuffle = false }):map(function() error "bad" end)
  local ok, message = pcall(items, ds)
  assert(not ok and message:find("map: fails for each of the 3 rows", 1, true), message)
  D.config.set_error_samples_mode(modes.SKIP)
  t.equal(items(D.NumpySlicesDataset({ 1, 2, 3 }):map(function() error "bad" end)), {})
  D.config.set_error_samples_mode(modes.RETURN)
end)

t.test("errors of a source stay errors, and bad modes are named", function()
  D.config.set_error_samples_mode(modes.SKIP)
  local ds = D.GeneratorDataset(function() error "bad source" end, { "x" }):map(odd)
  D.config.set_error_samples_mode(modes.RETURN)
  local ok, message = pcall(items, ds)
  assert(not ok and message:find "bad source", message)
  ok, message = pcall(D.config.set_error_samples_mode, "drop")
  assert(not ok and message:find "set_error_samples_mode: .*error_samples_mode", message)
end)

t.finish()
