-- Estimates of training steps on the simulated Ascend: published results, scaling, sinks, memory, and what is said.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, estimate = ms.nn, ms.ops, ms.ascend.estimate
-- Orders of magnitude: other machines are slower, and with sanitizers everything takes longer.
local patience = os.getenv "ASAN_OPTIONS" and 40 or 10
-- Benches are asked for their numbers alone.
local quiet = setmetatable({ print = function() end }, { __index = _G })

local resnet, resnet_seconds
do
  local start = os.clock()
  resnet = estimate("resnet50", { batch = 32 })
  resnet_seconds = os.clock() - start
end

t.each_day(3)
t.test("ResNet-50 is near the published step, and estimated in seconds", function()
  t.equal(resnet.step > 16.5e-3 and resnet.step < 19.5e-3, true)
  t.equal(resnet.parameters, 25557032 + 2049)
  t.equal(resnet_seconds < 0.5 * patience, true)
end)

t.test("eight and sixteen chips scale as published, and fused gradients leave a short tail", function()
  for devices, published in pairs { [8] = 0.95, [16] = 0.94 } do
    local e = estimate("resnet50", { batch = 32, devices = devices })
    t.near(resnet.step / e.step, published, 0.05)
    t.equal(e.tail < 2e-3, true)
    t.equal(e.step > 18e-3 and e.step < 22e-3, true)
  end
  local whole = estimate("resnet50", { devices = 8, fusion = { 1000 } })
  local fused = estimate("resnet50", { devices = 8 })
  t.equal(#whole.collectives, 1)
  t.equal(fused.tail < 0.5 * whole.tail, true)
end)

t.test("the figures that reports name are those of the validation", function()
  local validation = require "lunaria.ascend.validation"
  local found = assert(loadfile("bench/ascend_validation.lua", "t", quiet))()
  t.equal(found.cases, validation.cases)
  t.near(found.mean, validation.mean_error, 6e-4)
  t.near(found.worst, validation.worst_error, 6e-4)
  t.near(found.alone_mean, validation.device_mean_error, 6e-4)
  t.near(found.alone_worst, validation.device_worst_error, 6e-4)
  t.equal(found.mean <= 0.08, true)
  -- Inception-v3, whose published step is longer than the device's by what no rule for all networks explains; with what is inferred from
  -- that error the others are the worst.
  t.equal(found.worst <= 0.34, true)
  t.equal(found.inferred_mean <= 0.06 and found.inferred_worst <= 0.15, true)
  t.equal(validation.version, require("lunaria.ascend.parameters").version)
  for _, s in ipairs(found.scaling) do t.near(s[3], s[2], 0.05) end
  -- What is left behind the backward pass, in one bucket and in two.
  t.near(found.tail_ratio, 4.20 / 6.15, 0.15)
  t.near(found.outside, validation.outside_error, 6e-4)
  for name, said in pairs { resnet50 = false, bert_base = false, lenet = true, gpt2 = true } do
    local line = estimate(name, { batch = 8 }):numbers().validation
    t.equal({ name, line:find("of other networks up to 75 %", 1, true) ~= nil }, { name, said })
  end
end)

t.test("a report tells by operator what bounds it, and names version and error", function()
  local total, device = 0, 0
  for _, row in ipairs(resnet:report()) do
    total = total + row.seconds
    t.equal(({ cube = true, vector = true, HBM = true, L2 = true, MTE1 = true, launch = true, ["AI CPU"] = true })[row.bound], true)
    t.equal(row.hbm_utilisation <= 1 and row.cube_utilisation <= 1, true)
  end
  for _, task in ipairs(resnet.tasks) do device = device + task.seconds end
  t.near(total, device, 1e-9)
  local text = tostring(resnet)
  for _, part in ipairs { "samples/s", "bound by", "model 3", "mean error", "worst", "published results", "feature maps" } do
    t.equal(text:find(part, 1, true) ~= nil, true)
  end
  local slower = { chip = { hbm_bytes_per_second = 1e12, name = "910" } }
  local other = { devices = 8, cluster = { server = 4 } }
  for reason, o in pairs { ["steps of the 910"] = { chip = "910B" }, ["steps of the 910)"] = slower, ["on the cluster atlas"] = other,
    ["sunk graphs"] = { sink = "host" }, ["steps of training"] = { train = false },
    ["with float16"] = { dtype = "float32" } } do
    local line = estimate("lenet", o):numbers().validation
    t.equal({ reason, line:find("not validated against published results (published are ", 1, true) ~= nil }, { reason, true })
    t.equal({ reason, line:find(reason, 1, true) ~= nil }, { reason, true })
  end
end)

t.test("the peaks of the chips are near the published ones, and reports of others say that nothing was validated", function()
  local chips = require "lunaria.ascend.chip"
  for name, range in pairs { ["910"] = { 250e12, 265e12 }, ["310"] = { 8e12, 12e12 }, ["910B"] = { 256e12, 380e12 } } do
    local peak = chips.chip("test", name).peak_flops
    t.equal({ name, peak >= range[1] and peak <= range[2] }, { name, true })
    local text = tostring(estimate("lenet", { chip = name }))
    t.equal(text:find("not validated", 1, true) ~= nil, name ~= "910")
  end
end)

t.test("a picture shows how busy the units are along the step", function()
  local plot = resnet:picture(50)
  local busy, points = { cube = 0.0, HBM = 0.0 }, 0
  for _, layer in ipairs(plot:vega().layer) do
    local series = layer.encoding.color.datum
    for _, row in ipairs(layer.data.values) do
      points = points + 1
      t.equal(row.y >= 0 and row.y <= 100, true)
      busy[series] = busy[series] + row.y / 50
    end
  end
  t.equal(points, 100)
  -- The means are those of the whole step.
  local cube, hbm = 0, 0
  for _, task in ipairs(resnet.tasks) do
    cube = cube + (task.product and task.product.cube / resnet.chip.hertz or 0)
    hbm = hbm + (task.hbm or 0) / resnet.chip.hbm_bytes_per_second
  end
  t.near(busy.cube, 100 * cube / resnet.device, 1e-4)
  t.near(busy.HBM, 100 * hbm / resnet.device, 1e-4)
  t.fails({ "ascend.picture", "count must be a positive integer" }, resnet.picture, resnet, 0)
end)

t.test("timelines are JSON for the viewers, with tasks that follow one another", function()
  -- Threads are numbers, and metadata names them.
  local function lanes_of(text)
    local names, lanes, last = {}, { device = 0, communication = 0, host = 0 }, {}
    local events = ms.json.decode(text).traceEvents
    for _, e in ipairs(events) do
      t.equal({ math.type(e.pid), math.type(e.tid) }, { "integer", "integer" })
      if e.ph == "M" then
        if e.name == "thread_name" then names[e.tid] = e.args.name end
      else
        local lane = names[e.tid]
        t.equal({ e.ph, e.dur > 0, e.ts >= (last[lane] or 0) - 1e-6 }, { "X", true, true })
        lanes[lane], last[lane] = lanes[lane] + 1, e.ts + e.dur
      end
    end
    return lanes, events
  end
  local e = estimate("resnet50", { devices = 8 })
  local lanes, events = lanes_of(ms.ascend.timeline())
  t.equal(lanes, { device = #e.tasks, communication = #e.collectives, host = 0 })
  local host = estimate("lenet", { sink = "host" })
  t.equal(lanes_of(host:timeline()), { device = #host.tasks, communication = 0, host = #host.tasks })
  estimate("resnet50", { devices = 8 })
  local path = os.tmpname()
  ms.ascend.timeline(path)
  local file = io.open(path)
  t.equal(#ms.json.decode(file:read "a").traceEvents, #events)
  file:close()
  os.remove(path)
end)

t.test("sinking wins tenfold where operators are small, and by how much depends on the host", function()
  local found = assert(loadfile("bench/ascend_sink.lua", "t", quiet))()
  local small, lenet, resnet32, resnet256 = table.unpack(found.cases)
  t.equal(small.host_by_loop >= 10, true)
  t.equal(lenet.host_by_loop >= 10, true)
  -- What a host that waits was measured to need is what each operator takes.
  t.near(small.waited_ms, small.operators * 65e-3, 0.01 * small.waited_ms)
  -- The host takes each operator by itself, the sunk graph has fewer and longer tasks.
  t.equal(small.operators > small.tasks, true)
  -- All that the host still does in a loop is a hundredth of a round trip.
  t.near(small.graph_ms - small.loop_ms, 0.3 * 0.99, 1e-6)
  -- The larger the operators, the less is there to win.
  t.equal(resnet32.host_by_loop > 1.5 and resnet32.host_by_loop < 3, true)
  t.equal(resnet256.host_by_loop > 1 and resnet256.host_by_loop < 1.6, true)
  for i = 2, #found.sweep do
    for _, case in ipairs(found.cases) do t.equal(found.sweep[i][case.case] >= found.sweep[i - 1][case.case], true) end
  end
  -- An asynchronous host that is fast enough is hidden altogether.
  local slow, fast = estimate("resnet50", { batch = 256, sink = "host", host_launch = 1e-6 }),
    estimate("resnet50", { batch = 256, sink = "host", host_launch = 20e-6 })
  t.near(fast.step / slow.step, 1, 1e-3)
end)

-- Sixty small layers.
local function small()
  local layers = {}
  for i = 1, 30 do layers[2 * i - 1], layers[2 * i] = nn.Dense(16, 16), nn.Tanh() end
  return nn.SequentialCell(layers)
end

t.test("a host that launches every operator is told of in the report", function()
  local e = estimate(small(), { inputs = function(batch) return ops.zeros { batch, 16 } end, batch = 8, sink = "host" })
  local text = tostring(e)
  t.equal(text:find("the host launches 361 operators, 34.0 us each; the device waits for it", 1, true) ~= nil, true)
  t.equal(tostring(estimate("lenet")):find("the host launches", 1, true), nil)
end)

t.test("a step waits for its input where that is slower", function()
  t.near(estimate("resnet50", { data_seconds = 0.1, sink = "loop" }).step, 0.1, 1e-4)
  -- The pipeline that ResNet-18 and ResNet-34 were published to wait for.
  for _, name in ipairs { "resnet18", "resnet50" } do
    local e = estimate(name, { batch = 256, pictures = {} })
    t.near(e.options.data_seconds, 0.110, 1e-3)
    t.equal(e.device > 0.110, name == "resnet50")
    t.equal(tostring(e):find("waits for its batch", 1, true) ~= nil, name == "resnet18")
  end
  local plain = estimate("resnet18", { pictures = {} })
  local heavy = estimate("resnet18", { pictures = { size = 299, threads = 6, colour = true } })
  t.equal(heavy.options.data_seconds > 2 * plain.options.data_seconds, true)
end)

t.test("a cell of the user's: forward, loss, and nothing is computed or changed", function()
  local net = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 10))
  local before = net:trainable_params()[1]:copy()
  local state = ms.get_rng_state()
  local e = estimate(net, { batch = 16, inputs = function(batch) return ops.zeros { batch, 64 }, ops.zeros({ batch }, ms.int32) end,
    loss = nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" } })
  t.equal(net:trainable_params()[1], before)
  t.equal(ms.get_rng_state(), state)
  t.equal(e.parameters, 64 * 32 + 32 + 32 * 10 + 10)
  local forward = estimate(net, { batch = 16, train = false, inputs = function(batch) return ops.zeros { batch, 64 } end })
  t.equal(#forward.tasks < #e.tasks, true)
  t.equal(forward.memory.parameters < e.memory.parameters, true)
  -- Products are counted by their sizes.
  t.equal(forward.flops, 2 * 16 * (64 * 32 + 32 * 10) + 0.0)
end)

t.test("a cell whose parameters are on the device, which has work to do meanwhile", function()
  ms.set_device "Ascend"
  local net = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 10))
  local before = net:trainable_params()[1]:to("CPU"):copy()
  local x = ops.ones { 256, 256 }
  for _ = 1, 20 do x = ops.matmul(x, x) / 256 end
  local lenet = estimate("lenet")
  local e = estimate(net, { batch = 16, inputs = function(batch) return ops.zeros { batch, 64 } end })
  local p = net:trainable_params()[1]
  t.equal({ p.device, x.device, e.parameters }, { "Ascend", "Ascend", 64 * 32 + 32 + 32 * 10 + 10 })
  t.equal(p:to "CPU", before)
  t.near(x[0][0]:item(), 1, 1e-2)
  -- Its inputs are of the host, too.
  local mine = ops.ones { 16, 64 }
  t.fails({ "is on the device" }, estimate, net, { batch = 16, inputs = function() return mine end })
  t.equal(p.device, "Ascend")
  ms.set_device "CPU"
  t.equal(lenet.step, estimate("lenet").step)
end)

t.test("sizes follow the batch as they would if it were outlined", function()
  local net = nn.SequentialCell(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3))
  local function flops(batch)
    return estimate(net, { batch = batch, inputs = function(n) return ops.zeros { n, 3, 16, 16 } end }).flops
  end
  t.equal(flops(30), 10 * flops(3))
end)

t.test("memory is planned in three parts, and an error where it does not fit", function()
  t.fails({ "resnet50 with batch 4096 does not fit: feature maps need", "and 26 of 32 GB are theirs", "a smaller batch" }, estimate,
    "resnet50", { batch = 4096 })
  local e = estimate("resnet50", { batch = 4096, check_memory = false })
  t.equal(e.memory.problem ~= nil, true)
  t.fails({ "gpt2_xl with batch 1 does not fit: parameters need", "and 5 of 32 GB are theirs", "parallel_optimizer" }, estimate, "gpt2_xl",
    { batch = 1 })
end)

t.test("several devices need buffers for their collectives", function()
  t.equal(resnet.memory.communication, 0)
  local e = estimate("resnet50", { devices = 8 })
  t.equal({ e.memory.communication, e:numbers().memory.communication }, { 0.4e9, 0.4e9 })
  t.equal(tostring(e):find("communication 0.40 GB of 1 GB", 1, true) ~= nil, true)
  t.equal(estimate("resnet50", { devices = 8, cluster = { communicators = 2 } }).memory.communication, 0.8e9)
  t.equal(estimate("resnet50", { devices = 8, train = false }).memory.communication, 0)
  t.fails({ "resnet50 with batch 32 does not fit: buffers of collectives need 1.20 GB, and 1 of 32 GB are theirs", "fewer communicators" },
    estimate, "resnet50", { devices = 8, cluster = { communicators = 3 } })
  -- What does not fit into them goes in pieces.
  local pieces = estimate("resnet50", { devices = 8, cluster = { collective_buffer = 1e6 } })
  t.equal(pieces.all_reduce > 1.2 * e.all_reduce, true)
  t.equal(pieces.memory.communication, 2e6)
  -- Gradients of float32 are twice as large.
  local function bytes(o)
    local sum = 0
    for _, row in ipairs(estimate("resnet50", o).collectives) do sum = sum + row.bytes end
    return sum
  end
  t.near(bytes { devices = 8 }, 2 * resnet.parameters, 1)
  t.near(bytes { devices = 8, dtype = "float32" }, 4 * resnet.parameters, 1)
end)

t.test("GPT-2 XL on 512 devices is estimated in less than a minute", function()
  local start = os.clock()
  local e = estimate("gpt2_xl", { batch = 1, devices = 512, parallel_optimizer = true })
  local seconds = os.clock() - start
  if seconds >= 5 * patience then error(("%.1f s"):format(seconds)) end
  t.equal(e.parameters, 1557611200)
  t.equal(e.memory.problem, nil)
end)

t.test("other chips by name, by a table and by a file", function()
  local slow = estimate("resnet50", { chip = { hbm_bytes_per_second = 0.6e12 } })
  t.equal(slow.step > 1.3 * resnet.step, true)
  t.equal(estimate("resnet50", { chip = "310" }).step > 5 * resnet.step, true)
  local path = os.tmpname() .. ".json"
  local file = io.open(path, "w")
  file:write [[{"base": "910", "name": "half", "cores": 16}]]
  file:close()
  local half = estimate("resnet50", { chip = path })
  os.remove(path)
  t.equal(half.chip.name, "half")
  t.equal(half.step > resnet.step, true)
  t.equal(estimate("resnet50", { devices = 8, cluster = { pcie_bytes_per_second = 4e9 } }).all_reduce
    > 3 * estimate("resnet50", { devices = 8 }).all_reduce, true)
end)

t.test("every parameter has a source", function()
  local parameters = require "lunaria.ascend.parameters"
  for _, set in pairs { parameters.chips, parameters.clusters } do
    for name, entry in pairs(set) do
      for key, pair in pairs(entry) do
        if key ~= "base" and (type(pair) ~= "table" or type(pair[2]) ~= "string" or #pair[2] < 4) then error(name .. "." .. key) end
      end
    end
  end
end)

t.test("wrong arguments are told", function()
  t.fails({ "there is no network 'resnet5'", "resnet50" }, estimate, "resnet5")
  t.fails({ "there is no option 'batches'", "batch" }, estimate, "resnet50", { batches = 3 })
  t.fails({ "batch must be a positive integer, got 0" }, estimate, "resnet50", { batch = 0 })
  t.fails({ "sink must be one of graph, loop, host" }, estimate, "resnet50", { sink = "x" })
  t.fails({ "pictures has no field 'sizes'", "size, threads" }, estimate, "resnet50", { pictures = { sizes = 2 } })
  t.fails({ "pictures.threads must be a positive integer, got", "0" }, estimate, "resnet50", { pictures = { threads = 0 } })
  t.fails({ "pictures must be a table" }, estimate, "resnet50", { pictures = 224 })
  t.fails({ "a cell needs inputs" }, estimate, small())
  t.fails({ "a cell, the name of a network" }, estimate, 3)
  t.fails({ "cannot be read" }, estimate, "resnet50", { chip = "/nonexistent.json" })
end)

t.test("an estimate needs no memory of the size of the tensors", function()
  local function peak_kilobytes() return tonumber(io.open("/proc/self/status"):read "a":match "VmHWM:%s*(%d+)") end
  local before = peak_kilobytes()
  local e = estimate("gpt2_xl", { batch = 2, check_memory = false })
  assert(e.step > 0.1, e.step)
  -- Its features alone are 200 GB for the batch, the parameters 6.
  estimate("gpt2_xl", { batch = 64, check_memory = false })
  assert(peak_kilobytes() - before < 300 * 1024, peak_kilobytes() - before)
  local x = ms.ones { 1 << 20 }
  t.equal((x + x):sum():item(), 2.0 * (1 << 20))
end)

t.finish()
