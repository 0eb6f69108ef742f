-- Batches that are brought to the GPU beside the work, behind the mock of its driver: in all orders of the two streams
-- that their waiting for each other allows (LUNARIA_MOCK_ORDER) the numbers are the host's.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local mock = require "mock_control"
local t = require "harness"
local ops = ms.ops
local equal = t.equal

ms.set_seed(1)
local count = 1 << 15

local function batch(i) return ops.arange(0, count, 1, { dtype = ms.float32 }) * 0 + i end

t.test("memory is filled again only when nothing reads it any more", function()
  local sums, expected = {}, {}
  for i = 1, 200 do
    local x = batch(i):to "GPU"
    sums[i] = (ops.cumsum(x, 0) - x):sum()
    expected[i] = i * (count * (count - 1) / 2)
    x:release()
  end
  for i = 1, 200 do
    local ratio = sums[i]:item() / expected[i]
    if math.abs(ratio - 1) > 1e-4 then error(("batch %d: %g of what it is to be"):format(i, ratio)) end
  end
end)

t.test("what was written since it was allocated is overwritten in its turn", function()
  for i = 1, 50 do
    local x = ms.ops.full({ count }, 7.0):to "GPU"
    local y = x + i
    x["0:" .. count] = batch(i):to "GPU"
    equal({ (y[5]):item(), (x[7]):item() }, { 7.0 + i, i + 0.0 })
  end
end)

t.test("uploads use a stream of their own", function()
  local streams = mock.alive "streams"
  equal(streams, 2)
  local events = mock.alive "events"
  for i = 1, 100 do
    local x = batch(i):to "GPU"
    x:release()
  end
  equal({ mock.alive "streams", mock.alive "events" }, { streams, events })
end)

t.test("a data sink feeds compiled steps", function()
  local w = ms.Parameter(ops.zeros({ count }):to "GPU", "w")
  local function source()
    local i = 0
    return function()
      i = i + 1
      if i <= 20 then return batch(i):to "GPU" end
    end
  end
  local step = ms.jit(function(x)
    ops.assign(w, w * 0.5 + ops.cumsum(x, 0) / x:sum())
    return w:sum()
  end)
  local all = ms.data_sink(step, source(), { sink_size = 20, collect = true })()
  local v = 0
  for i = 1, 20 do
    v = v * 0.5 + (count + 1) / 2
    equal(math.abs(all[i]:item() / v - 1) < 1e-3, true)
  end
end)

t.test("the driver was used as it is to be used", function() equal(mock.blamed(), "") end)

t.finish()
