-- Plans for clusters: networks divided among many devices of the simulated Ascend, schedules of pipelines.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local plans = require "lunaria.plans"
local nn, ops, estimate = ms.nn, ms.ops, ms.ascend.estimate

t.test("GPT-2 XL, which is too large for one chip, is planned for 64", function()
  local plan = estimate("gpt2_xl", { devices = 64, global_batch = 128, mesh = "auto" })
  local n = plan:numbers()
  t.equal(n.fitting > 3, true)
  t.equal(n.memory < 31e9, true)
  -- No faster than the products on all devices, and at least a tenth of their peak.
  t.equal(n.utilisation > 0.1 and n.utilisation < 0.8, true)
  t.equal(plan.layers, 48)
  t.equal(tostring(plan):match "plans were tried" ~= nil, true)
end)

t.test("what is given is kept: mesh, stages, micro-batches, level, recomputation", function()
  local plan = estimate("gpt2", { mesh = "dp=4,tp=2,pp=4", global_batch = 64, micro_batches = 8, level = 1, recompute = true })
  local best = plan[1]
  t.equal(best.text, "pp 4 (1f1b), dp 4 x tp 2, 8 micro-batches, sharded optimizer of level 1, layers computed twice")
  t.equal(#best.parts, 4)
  t.equal(plan.devices, 32)
  t.equal(best.bubble >= 3 / 11, true)
  for _, part in ipairs(best.parts) do t.equal(part.bytes <= best.bytes, true) end
end)

t.test("a batch is cut where weights are small, rows and columns where they are large", function()
  local function mlp(batch, width)
    local net = nn.SequentialCell { nn.Dense(width, width), nn.ReLU(), nn.Dense(width, width) }
    local function inputs(n) return ops.zeros { n, width }, ops.zeros { n, width } end
    return estimate({ make = function() return net end, inputs = inputs, forward = function(cell)
      return function(x, y) return ops.mse_loss(cell(x), y) end
    end }, { devices = 8, global_batch = batch, mesh = { { "a", 8 } }, optimizer = "sgd" })
  end
  local data = mlp(65536, 256)
  t.equal(data[1].operators[1].layout, "[65536@a, 256]")
  t.equal(data[1].parameters["0.weight"], "[256, 256]")
  local weights = mlp(64, 8192)
  t.equal(weights[1].parameters["0.weight"] ~= "[8192, 8192]", true)
end)

t.test("ResNet-50 scales as published, and data parallel plans move no activations", function()
  local one = estimate("resnet50", { mesh = "dp=1", global_batch = 32 })
  for devices, published in pairs { [8] = 0.95, [16] = 0.94 } do
    local plan = estimate("resnet50", { mesh = ("dp=%d"):format(devices), global_batch = 32 * devices })
    for _, m in ipairs(plan[1].movements) do t.equal(m.bytes < 1e6, true) end
    t.near(one[1].seconds / plan[1].seconds, published, 0.05)
  end
  t.equal(estimate("resnet50", { mesh = "dp=512", global_batch = 32 * 512 })[1].seconds < 38.1e-3, true)
end)

t.test("what does not fit or is not there is said", function()
  t.fails({ "131072 samples is too large", "global_batch" }, estimate, "gpt3", { mesh = "auto", devices = 4096 })
  t.fails({ "does not fit on 8 devices" }, estimate, "gpt3", { mesh = "dp=8", global_batch = 8 })
  t.fails({ "a mesh is auto or like dp=8,tp=4,pp=2" }, estimate, "gpt2", { mesh = "dp=x" })
  t.fails({ "there is no option 'sink'" }, estimate, "gpt2", { mesh = "auto", devices = 8, sink = "host" })
  t.fails({ "a mesh of 3 ranks" }, estimate, "gpt2", { mesh = "dp=3", devices = 8 })
  t.fails({ "there is no schedule 'fast'" }, estimate, "gpt2", { mesh = "dp=2", schedule = "fast" })
end)

t.test("idle shares of pipelines are the published ones", function()
  for _, row in ipairs { { "gpipe", 4, 8, 27.3 }, { "1f1b", 8, 16, 30.4 }, { "1f1b", 8, 32, 17.9 }, { "zero_bubble_h1", 4, 8, 11.1 },
    { "zero_bubble_h1", 8, 16, 12.7 }, { "zero_bubble_h1", 8, 32, 6.8 }, { "zero_bubble_h2", 8, 32, 0.0 } } do
    local s = plans.schedule { schedule = row[1], stages = row[2], micro_batches = row[3] }
    t.near(100 * s.bubble, row[4], 0.05)
  end
end)

t.finish()
