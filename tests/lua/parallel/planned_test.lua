-- Steps of plans on the simulated chips, from the operators of a rank of each stage: published scalings, the search's order, what ranks
-- ask of each other, timelines. About five seconds.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, estimate = ms.nn, ms.ops, ms.ascend.estimate

local function data_parallel(name, devices, batch)
  return estimate(name, { mesh = ("dp=%d"):format(devices), global_batch = batch * devices, level = 0, micro_batches = 1 })
end

t.each_day(3)
t.test("the plan of one device takes as long as the network alone", function()
  for _, name in ipairs { "resnet50", "bert_large", "gpt2", "vit_b_16" } do
    local alone = estimate(name, { batch = 8, check_memory = false }).step
    local planned = estimate(name, { mesh = "dp=1", global_batch = 8, level = 0, micro_batches = 1, recompute = false })[1].step
    t.near(planned / alone, 1, 0.01)
  end
end)

t.test("planned graphs scale as published: ResNet-50 on 8, 16 and 512 chips, BERT-Large on 8", function()
  for _, row in ipairs { { "resnet50", 32, { [8] = 0.95, [16] = 0.94 } }, { "resnet50", 256, { [8] = 0.98, [16] = 0.96 } },
    { "bert_large", 96, { [8] = 0.96 } } } do
    local one = data_parallel(row[1], 1, row[2])[1].step
    for devices, published in pairs(row[3]) do t.near(one / data_parallel(row[1], devices, row[2])[1].step, published, 0.05) end
  end
  t.equal(data_parallel("resnet50", 512, 32)[1].step < 38.1e-3, true)
end)

-- Equal layers, several for each stage, whose ends cost next to nothing; links that take no time.
local function layers(count, width)
  return { make = function()
    local list = { nn.LayerNorm { width } }
    for _ = 1, count do list[#list + 1] = nn.SequentialCell { nn.Dense(width, width, { has_bias = false }), nn.ReLU() } end
    return nn.SequentialCell(list)
  end, inputs = function(n) return ops.zeros { n, width } end, forward = function(cell)
    return function(x)
      local y = cell(x)
      return ops.mean(y * y)
    end
  end, optimizer = "sgd" }
end
local free = {}
for _, name in ipairs { "hccs", "pcie", "roce" } do
  free[name .. "_latency"], free[name .. "_bytes_per_second"] = 1e-15, 1e18
end
free.step_jitter = 1e-12

t.test("pipelines idle as published: (p - 1) / (m + p - 1), and less when interleaved", function()
  for _, row in ipairs { { 4, 8, "1f1b", 1 }, { 4, 8, "gpipe", 1 }, { 8, 16, "1f1b", 1 }, { 4, 8, "interleaved", 2 } } do
    local stages, micro, schedule, chunks = table.unpack(row)
    local plan = estimate(layers(4 * stages * chunks, 4096), { mesh = ("dp=1,pp=%d"):format(stages), global_batch = 2048 * micro,
      micro_batches = micro, schedule = schedule, chunks = chunks, level = 0, recompute = false, cluster = free })
    t.near(plan:bubble(), (stages - 1) / (chunks * micro + stages - 1), 0.03)
  end
end)

t.test("what the columns and rows of two products ask of others is one sum forward and one backward", function()
  local width, batch = 4096, 64
  local plan = estimate({ make = function()
    return nn.SequentialCell { nn.Dense(width, 4 * width, { has_bias = false }), nn.ReLU(),
      nn.Dense(4 * width, width, { has_bias = false }) }
  end, inputs = function(n) return ops.zeros { n, width } end,
    forward = function(cell) return function(x) return ops.sum(ops.tanh(cell(ops.tanh(x)))) end end }, { mesh = "tp=4",
    global_batch = batch, level = 0, micro_batches = 1, recompute = false, optimizer = "sgd" })
  local asked = plan:simulated():communication()
  local bytes = 0
  for _, row in ipairs(asked) do
    t.equal(row.axis, "tp")
    bytes = bytes + row.bytes
  end
  -- Nothing of the size of weights moves.
  t.equal(bytes > 0 and bytes <= 4 * batch * width * 2, true)
  t.equal(plan[1].parameters["0.weight"], "[16384@tp, 4096]")
  t.equal(plan[1].parameters["2.weight"], "[4096, 16384@tp]")
end)

local function kendall(list)
  local same, other = 0, 0
  for i = 1, #list do
    for j = 1, i - 1 do
      local s = (list[i].seconds - list[j].seconds) * (list[i].step - list[j].step)
      same, other = same + (s > 0 and 1 or 0), other + (s < 0 and 1 or 0)
    end
  end
  return (same - other) / (same + other)
end

t.test("the search orders plans as the simulation does: Kendall's tau of 50 plans is at least 0.9", function()
  local all = {}
  local function add(mesh, micro, recompute, level)
    local found = estimate("gpt2", { mesh = mesh, devices = 16, global_batch = 128, micro_batches = micro, recompute = recompute,
      level = level })
    for _, plan in ipairs(found) do all[#all + 1] = plan end
  end
  for _, mesh in ipairs { "dp=16", "dp=8,tp=2", "dp=4,tp=4", "dp=2,tp=8", "dp=8,pp=2", "dp=4,pp=4", "dp=4,tp=2,pp=2", "dp=2,tp=2,pp=4",
    "tp=4,pp=4", "tp=8,pp=2", "tp=16" } do
    for _, micro in ipairs { 4, 16 } do
      add(mesh, micro, true, 1)
      add(mesh, micro, false, 1)
    end
  end
  for _, level in ipairs { 2, 3 } do
    for _, mesh in ipairs { "dp=16", "dp=8,tp=2", "dp=4,tp=4" } do add(mesh, 1, false, level) end
  end
  t.equal(#all, 50)
  assert(kendall(all) >= 0.9, kendall(all))
end)

t.test("the best plans are in the order of their simulated steps", function()
  local plans = estimate("vit_b_16", { devices = 8, global_batch = 256, mesh = "auto" })
  t.equal(#plans >= 5 and #plans <= 20, true)
  for i = 2, #plans do t.equal(plans[i - 1].step <= plans[i].step, true) end
  local n = plans:numbers()
  t.near(n.step_ms, plans[1].step * 1e3, 1e-9)
  t.equal(plans[1].operators ~= nil and plans[1].parameters ~= nil, true)
  t.equal(tostring(plans):find("simulated step", 1, true) ~= nil, true)
end)

t.test("with links of a node of eight GPUs, products are cut inside of a node", function()
  -- 312 TFLOPS of float16, 80 GB, NVLink of 300 GB/s each way between 8, 25 GB/s to other nodes.
  local chip = { base = "910", cores = 108, cube_macs = 1024, hertz = 1.41e9, hbm_bytes_per_second = 2.0e12, memory_parameters = 10e9,
    memory_features = 65e9, memory_communication = 5e9 }
  local nodes = { group = 8, server = 8, hccs_bytes_per_second = 100e9, hccs_ports = 3, roce_bytes_per_second = 25e9,
    hccs_latency = 3e-6, roce_latency = 8e-6, collective_seconds = 10e-6 }
  local function large(layers_, width, heads)
    return { make = function()
      return require "lunaria.zoo.gpt2".gpt2 { vocabulary = 51200, length = 1024, width = width, layers = layers_, heads = heads }
    end, inputs = function(n) return ops.zeros({ n, 1024 }, ms.int32) end, forward = function(net)
      return function(x) return ops.mean(net(x)) end
    end, dtype = "mixed", optimizer = "adam" }
  end
  local plans = estimate(large(24, 8192, 64), { devices = 64, global_batch = 64, mesh = "auto", chip = chip, cluster = nodes })
  local tensor = 1
  for _, axis in ipairs(plans[1].mesh) do
    if axis[1]:match "^tp" then tensor = tensor * axis[2] end
  end
  t.equal(tensor <= 8, true)
  t.equal(plans[1].stages > 1 or tensor > 1, true)
end)

t.test("zero bubble schedules take less time, recomputation more, and inference no way back", function()
  local function step(o)
    o.mesh, o.global_batch, o.micro_batches, o.level = o.mesh or "dp=2,pp=4", 64, 16, 1
    return estimate("gpt2", o)[1]
  end
  local plain = step { recompute = false }
  t.equal(step({ recompute = false, schedule = "zero_bubble_h1" }).step < plain.step, true)
  local function whole(recompute) return step({ mesh = "dp=8", recompute = recompute }).step end
  t.near(whole(true) / whole(false), 1.3, 0.1)
  local alone = step { train = false }
  t.equal(alone.step < 0.5 * plain.step, true)
  t.equal(#alone.simulated.parts[1].backward, 0)
end)

t.test("memory follows the pipeline, recomputation and the sharded optimizer, within what the plan allows for", function()
  local function most(o)
    o.mesh, o.global_batch, o.micro_batches = o.mesh or "dp=2,pp=4", 64, 8
    local plan, bytes = estimate("gpt2", o)[1], 0
    for _, stage in ipairs(plan.simulated.stages) do bytes = math.max(bytes, stage.memory) end
    t.equal(bytes <= plan.bytes and bytes > 0.5 * plan.bytes, true)
    return bytes, plan.simulated
  end
  local plain, step = most { level = 1, recompute = false }
  t.equal(most { level = 1, recompute = true } < 0.5 * plain, true)
  t.equal(most { level = 1, recompute = false, schedule = "gpipe" } > plain, true)
  -- Of eight ranks each has an eighth of what the level divides; the parameters that a rank has are counted from their shapes.
  local elements = 0
  for _, g in ipairs(step.parts[1].gradients) do elements = elements + g.elements end
  t.near(step.stages[1].memory - step.parts[1].kept * 4, elements * (2 + 2 + 12 / 2), 1)
end)

t.test("timelines have a rank of each stage, pictures a line and a row for each", function()
  local plans = estimate("gpt2", { mesh = "dp=2,tp=2,pp=2", global_batch = 16, micro_batches = 2, level = 1, recompute = false })
  local events, pids, lanes = ms.json.decode(plans:timeline()).traceEvents, {}, {}
  for _, e in ipairs(events) do
    pids[e.pid] = true
    if e.ph == "X" then
      lanes[e.tid] = (lanes[e.tid] or 0) + 1
      t.equal(e.ts + e.dur <= plans[1].step * 1e6 + 1, true)
    end
  end
  t.equal(pids[0] and pids[4] and next(pids, next(pids, next(pids))) == nil, true)
  for lane = 1, 4 do t.equal((lanes[lane] or 0) > 0, true) end
  local text = plans:picture(60)
  t.equal(select(2, text:gsub("stage", "")), 2)
  t.equal(text:find("F", 1, true) ~= nil and text:find("B", 1, true) ~= nil and text:find("u", 1, true) ~= nil, true)
  t.equal(plans:svg():match "^<svg" ~= nil and select(2, plans:svg():gsub("<text", "")) == 2, true)
  t.fails({ "the width of a picture" }, plans.picture, plans, 0)
end)

t.test("a file describes another cluster, and says which key is wrong", function()
  local path = os.tmpname() .. ".json"
  local function write(text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
  end
  local o = { mesh = "dp=16", global_batch = 512, level = 0, micro_batches = 1, cluster = path }
  write '{"cluster": {"base": "atlas", "roce_bytes_per_second": 1e9}}'
  t.equal(estimate("resnet50", o)[1].step > data_parallel("resnet50", 16, 32)[1].step * 1.1, true)
  for text, message in pairs { ['{"cluster": {"roce_bytes": 1}}'] = "there is no parameter 'roce_bytes'",
    ['{"cluster": {"group": 2.5}}'] = "'group' must be an integer of at least 1, got 2.5",
    ['{"cluster": {"roce_latency": -1}}'] = "'roce_latency' must be positive, got -1",
    ['{"cluster": {"link_efficiency": 3}}'] = "'link_efficiency' must be at most 1, got 3", ["{"] = "is no JSON object" } do
    write(text)
    t.fails({ message }, estimate, "resnet50", o)
  end
  os.remove(path)
end)

t.finish()
