-- Streams, events, copies between the memories and queues of batches on the simulated Ascend; which unit runs which operator.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, ascend = ms.ops, ms.ascend
local parameters = require "lunaria.ascend.parameters"

local function there(x) return x:to "Ascend" end
local link = parameters.clusters.atlas
local function copy_seconds(bytes)
  return link.pcie_latency[1] + bytes / (link.pcie_bytes_per_second[1] * link.link_efficiency[1])
end

local function named(e, name)
  local list = {}
  for _, task in ipairs(e.tasks) do
    if task.name == name then list[#list + 1] = task end
  end
  return list
end

t.test("copies between the memories are tasks of the host link", function()
  local x = ops.ones { 256, 1024 }
  ascend.ran()
  local y = there(x) * 2
  local back = y:to "CPU"
  local e = ascend.ran { sink = "host" }
  t.equal(back[0][0]:item(), 2.0)
  local to, from = named(e, "HostToDevice"), named(e, "DeviceToHost")
  t.equal({ #to, #from, to[1].bound }, { 1, 1, "link" })
  t.near(to[1].seconds, copy_seconds(2 ^ 20), 1e-12)
  t.equal(tostring(e):find("host link", 1, true) ~= nil, true)
  t.equal(e.title:match "^%d+ operators", "1 operators")
  -- Numbers go along with the launch.
  local z = y + 3 + there(ms.tensor(2.0))
  t.equal(#named(ascend.ran(), "HostToDevice"), 0)
  t.equal(z.shape[1], 256)
end)

t.test("a queue of batches hides the copies that a program waits for", function()
  local w = there(ops.randn { 512, 512 }:astype(ms.float16))
  local batches = {}
  for i = 1, 6 do batches[i] = ops.randn({ 512, 512 }):astype(ms.float16) end
  local function steps(data)
    ascend.ran()
    for _, batch in ipairs(batches) do
      local x = there(batch)
      for _ = 1, 10 do x = ops.matmul(x, w) end
    end
    return ascend.ran { sink = "graph", data = data, steps = 6 }
  end
  local fed, queued = steps "feed", steps "queue"
  local copy = copy_seconds(2 * 512 * 512)
  t.equal(#fed.tasks, #queued.tasks)
  -- What a step is shorter by: all copies but the first one.
  t.near((fed.device - queued.device) / (copy * 5 / 6), 1, 0.02)
  t.equal(#fed.races + #queued.races, 0)
  -- Copies that take longer than the work are waited for all the same.
  local function short(data)
    ascend.ran()
    for _, batch in ipairs(batches) do local _ = there(batch) * 2 end
    return ascend.ran { sink = "graph", data = data, steps = 6 }
  end
  local slow = short "queue"
  t.equal(slow.device >= copy, true)
  t.equal(short("feed").device > slow.device, true)
  -- No batch is used before it is there.
  for _, task in ipairs(queued.tasks) do
    for _, other in ipairs(task.after or {}) do t.equal(task.start >= other.ended, true) end
  end
end)

-- Sorting is done by the AI CPUs, beside the cores.
local function program(sorts, x, big)
  local sorted = sorts(function() return ops.sort(x) end)
  local y = big
  for _ = 1, 20 do y = ops.matmul(y, y) / 512 end
  return sorted, y
end

t.test("streams run beside one another where they need different parts of the chip", function()
  local x, big = there(ops.randn { 100000 }), there(ops.ones({ 256, 256 }, ms.float16))
  local function time(name)
    ascend.ran()
    local s = ascend.stream(name)
    local sorted, y = program(s, x, big)
    t.equal({ sorted.shape[1], y.shape[1] }, { 100000, 256 })
    return ascend.ran { sink = "graph" }
  end
  local one, two = time "device", time "other"
  t.equal(#one.tasks, #two.tasks)
  local sort = named(two, "sort")[1]
  t.near(one.device - two.device, math.min(sort.seconds, one.device - sort.seconds), 1e-9)
  t.equal({ #one.races, #two.races }, { 0, 0 })
  -- Each stream is a lane.
  local names = {}
  for _, e in ipairs(ms.json.decode(two:timeline()).traceEvents) do
    if e.name == "thread_name" then names[e.args.name] = true end
  end
  t.equal({ names.device, names.other }, { true, true })
  -- Both need the cores: nothing is won.
  ascend.ran()
  ascend.stream "left"(function() return ops.matmul(big, big) end)
  ascend.stream "right"(function() return ops.matmul(big, big) end)
  local e = ascend.ran { sink = "graph" }
  t.near(e.device, e.tasks[1].seconds + e.tasks[2].seconds, 1e-12)
end)

t.test("events make streams wait, and where one is missing the report names both places", function()
  local x, big = there(ops.randn { 100000 }), there(ops.ones({ 256, 256 }, ms.float16))
  local function run(with_event)
    ascend.ran()
    local s = ascend.stream "sorter"
    local sorted = s(function() return ops.sort(x) end)
    if with_event then
      s:record "sorted"
      ascend.stream "device":wait "sorted"
    end
    local y = sorted + 1
    return ascend.ran { sink = "graph" }, y, ops.matmul(big, big)
  end
  local good, y = run(true)
  local sort, add = named(good, "sort")[1], named(good, "add")[1]
  t.equal({ #good.races, add.start >= sort.start + sort.seconds }, { 0, true })
  local bad, same = run(false)
  t.equal(#bad.races, 1)
  t.equal(named(bad, "add")[1].start < named(bad, "sort")[1].seconds, true)
  -- The numbers are those of the program's order.
  t.equal(same:to "CPU", y:to "CPU")
  local text = tostring(bad)
  t.equal(text:find("no event orders sort on the stream sorter (", 1, true) ~= nil, true)
  t.equal(text:match "streams_test.lua:%d+%) before add on the stream device %(.-streams_test.lua:%d+" ~= nil, true)
  -- An order by way of a third stream is one, too.
  ascend.ran()
  local a, b = ascend.stream "a", ascend.stream "b"
  local z = a(function() return x * 2 end)
  a:record "first"
  b:wait "first"
  b:record "second"
  ascend.stream "device":wait "second"
  local w = z + 1
  t.equal({ #ascend.ran().races, w.shape[1] }, { 0, 100000 })
end)

t.test("an error within a stream leaves it", function()
  local s = ascend.stream "failing"
  t.equal(pcall(s, function() error "no" end), false)
  ascend.ran()
  local y = there(ops.ones { 4 }) + 1
  for _, task in ipairs(ascend.ran { data = "feed" }.tasks) do t.equal(task.stream, 0) end
  t.equal({ y.shape[1], s(function(...) return select("#", ...) end, 1, nil, 3) }, { 4, 3 })
end)

t.test("a host is as far ahead as its queue is long", function()
  local x = there(ops.ones { 1024, 1024 })
  local function time(queue)
    ascend.ran()
    local y = x
    for _ = 1, 50 do y = y + 1 end
    local e = ascend.ran { sink = "host", cluster = { launch_queue = queue, host_launch = 1e-6 } }
    t.equal(y.shape[1], 1024)
    return e
  end
  local short, long = time(2), time(1000)
  t.near(short.device, long.device, 2e-6 * 50)
  local function last_launch(e) return e.tasks[#e.tasks].launched end
  t.equal(last_launch(short) > 5 * last_launch(long), true)
end)

t.test("every operator has its unit, and tile programs are named by operators and kernels that there are", function()
  local list, counts = ascend.operators(), {}
  for name, row in pairs(list) do
    counts[row.unit] = (counts[row.unit] or 0) + 1
    if row.program then
      t.equal({ name, ascend.library(row.program) ~= nil, row.unit == "cube" or row.unit == "vector" or row.unit == "others"
        or row.unit == "none" }, { name, true, true })
    end
  end
  for name, unit in pairs { matmul = "cube", conv2d = "cube", conv_weight_grad = "cube", add = "vector", softmax = "vector", sum = "vector",
    layer_norm = "vector", max_window = "vector", gather = "vector", apply_adam = "vector", sort = "AI CPU", svd_factors = "AI CPU",
    reshape = "none" } do
    t.equal({ name, list[name].unit }, { name, unit })
  end
  t.equal(counts.host, nil)
  t.equal(counts["AI CPU"] < counts.vector, true)
  local programs = 0
  for _, row in pairs(list) do programs = programs + (row.program and 1 or 0) end
  t.equal(programs >= 34, true)
  t.equal(tostring(list):find("AI CPUs (", 1, true) ~= nil, true)
end)

t.test("mistakes are told", function()
  t.fails({ "ascend.stream", "the name must be a string" }, ascend.stream, 3)
  t.fails({ "ascend.stream", "queue of batches" }, ascend.stream, "data")
  t.fails({ "ascend.stream", "a function is expected, got" }, ascend.stream "x", 3)
  t.fails({ "ascend.stream", "an event is told by its name" }, function() ascend.stream "x":record() end)
  t.fails({ "ascend.ran", "data must be \"feed\" or \"queue\"", "tape" }, function() ascend.ran { data = "tape" } end)
end)

t.finish()
