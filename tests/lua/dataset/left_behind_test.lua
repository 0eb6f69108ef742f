-- Iterators leave nothing behind: no thread, no file handle, no memory, however they end.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D = ms.dataset

local function number(path, pattern)
  local file <close> = assert(io.open(path))
  return tonumber(file:read("a"):match(pattern))
end
local process = number("/proc/self/stat", "^(%d+)")
local function count(folder)
  local pipe <close> = assert(io.popen(("ls /proc/%d/%s | wc -l"):format(process, folder)))
  return tonumber(pipe:read "a")
end
-- Once there are no more than so many threads, if that comes soon: those of the pool wait a while for more to do.
local function settled(threads)
  collectgarbage()
  collectgarbage()
  os.execute "sleep 0.6"
  for _ = 1, 100 do
    if count "task" <= threads then break end
    os.execute "sleep 0.1"
  end
  return { fd = count "fd", task = count "task", kilobytes = number("/proc/self/status", "VmRSS:%s+(%d+)") }
end

local function tiny()
  return D.NumpySlicesDataset({ x = ms.ones { 6, 8 } }, { shuffle = true }):map(D.transforms.TypeCast(ms.float64), "x"):batch(2)
end
local function failing(at)
  local bad = D.GeneratorDataset(function(i)
    if i == 3 and at == "source" then error "bad source" end
    if i < 6 then return ms.ones { at == "batch" and i or 4 } end
  end, { "x" })
  if at == "map" then bad = bad:map(function() error "bad map" end) end
  if at == "filter" then bad = bad:filter(function() error "bad filter" end) end
  if at == "transform" then bad = bad:map(D.transforms.Slice(9)) end
  return bad:batch(2)
end

local function use(epochs)
  local ds = tiny()
  local it = ds:create_tuple_iterator()
  local batches = 0
  for _ = 1, epochs do while it() do batches = batches + 1 end end
  assert(batches == 3 * epochs, batches)
  it:close()
  for _ = 1, 100 do
    for x in ds:create_tuple_iterator() do
      if x.size > 0 then break end
    end
    ds:create_tuple_iterator()()
    for _, at in ipairs { "source", "map", "filter", "transform", "batch" } do
      assert(not pcall(function() for _ in failing(at):create_tuple_iterator() do end end), at)
    end
  end
end

t.test("epochs, errors in every stage and iterators that are dropped leave nothing", function()
  use(2000)
  local before = settled(math.huge)
  use(10000)
  local after = settled(before.task)
  assert(after.fd <= before.fd + 2, ("%d file handles, %d before"):format(after.fd, before.fd))
  assert(after.task <= before.task, ("%d threads, %d before"):format(after.task, before.task))
  -- Sanitizers keep freed memory for a while.
  local more = os.getenv "ASAN_OPTIONS" and 1000 * 1024 or 4096
  assert(after.kilobytes <= before.kilobytes + more, ("%d KB, %d before"):format(after.kilobytes, before.kilobytes))
end)

t.finish()
