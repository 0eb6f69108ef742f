-- Estimates of training steps on the simulated Ascend: published results, scaling, sinks, memory, and what is said.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, estimate = ms.nn, ms.ops, ms.ascend.estimate

local resnet, resnet_seconds
do
  local start = os.clock()
  resnet = estimate("resnet50", { batch = 32 })
  resnet_seconds = os.clock() - start
end

t.test("ResNet-50 is near the published step, and estimated in half a second", function()
  t.equal(resnet.step > 16.5e-3 and resnet.step < 19.5e-3, true)
  t.equal(resnet.parameters, 25557032 + 2049)
  t.equal(resnet_seconds < 0.5, true)
end)

t.test("eight and sixteen chips scale as published, and fused gradients leave a short tail", function()
  for devices, published in pairs { [8] = 0.95, [16] = 0.94 } do
    local e = estimate("resnet50", { batch = 32, devices = devices })
    t.near(resnet.step / e.step, published, 0.05)
    t.equal(e.tail < 2e-3, true)
  end
  local whole = estimate("resnet50", { devices = 8, fusion = { 1000 } })
  local fused = estimate("resnet50", { devices = 8 })
  t.equal(#whole.collectives, 1)
  t.equal(fused.tail < 0.5 * whole.tail, true)
end)

t.test("the figures that reports name are those of the validation", function()
  local validation = require "lunaria.ascend.validation"
  local quiet = setmetatable({ print = function() end }, { __index = _G })
  local found = assert(loadfile("bench/ascend_validation.lua", "t", quiet))()
  t.equal(found.cases, validation.cases)
  t.near(found.mean, validation.mean_error, 6e-4)
  t.near(found.worst, validation.worst_error, 6e-4)
  t.equal(found.mean <= 0.08, true)
  t.equal(found.worst <= 0.15, true)
  t.equal(validation.version, require("lunaria.ascend.parameters").version)
  for _, s in ipairs(found.scaling) do t.near(s[3], s[2], 0.05) end
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
  for _, part in ipairs { "samples/s", "bound by", "model 2", "mean error", "worst", "published results", "feature maps" } do
    t.equal(text:find(part, 1, true) ~= nil, true)
  end
  t.equal(tostring(estimate("resnet50", { chip = "910B" })):find("not validated", 1, true) ~= nil, true)
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
  estimate("resnet50", { devices = 8 })
  local events = ms.json.decode(ms.ascend.timeline()).traceEvents
  local last, collectives = 0, 0
  for _, e in ipairs(events) do
    t.equal(e.ph, "X")
    if e.tid == "device" then
      t.equal(e.ts >= last - 1e-6, true)
      last = e.ts + e.dur
    else
      collectives = collectives + 1
    end
  end
  t.equal(collectives > 1, true)
  local path = os.tmpname()
  ms.ascend.timeline(path)
  local file = io.open(path)
  t.equal(#ms.json.decode(file:read "a").traceEvents, #events)
  file:close()
  os.remove(path)
end)

-- Sixty small layers.
local function small()
  local layers = {}
  for i = 1, 30 do layers[2 * i - 1], layers[2 * i] = nn.Dense(16, 16), nn.Tanh() end
  return nn.SequentialCell(layers)
end
local function small_inputs(batch) return ops.zeros { batch, 16 } end

t.test("sinking wins where operators are small, and by how much depends on the host", function()
  local net = small()
  local function step(o)
    o.inputs, o.batch = small_inputs, 8
    return estimate(net, o).step
  end
  local sunk, asynchronous, waited = step { sink = "loop" }, step { sink = "host" }, step { sink = "host", host_launch = "synchronous" }
  t.equal(asynchronous > 2 * sunk, true)
  t.equal(waited > 10 * sunk, true)
  t.equal(step { sink = "graph" } > sunk, true)
  -- Where operators are large an asynchronous host is hidden.
  local host = estimate("resnet50", { batch = 256, sink = "host" })
  t.near(host.step / estimate("resnet50", { batch = 256 }).step, 1, 0.02)
  -- A slow input pipeline is what a step waits for.
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
  t.fails({ "gpt2_xl with batch 1 does not fit: parameters need", "and 5 of 32 GB are theirs" }, estimate, "gpt2_xl", { batch = 1 })
end)

t.test("GPT-2 XL on 512 devices is estimated in five seconds", function()
  local start = os.clock()
  local e = estimate("gpt2_xl", { batch = 1, devices = 512, parallel_optimizer = true })
  local seconds = os.clock() - start
  if seconds >= 5 then error(("%.1f s"):format(seconds)) end
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

t.finish()
