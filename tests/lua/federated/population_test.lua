-- ms.federated.Population: devices as messages alone; tests/core/federated/population_test.cpp has what happens in an iteration.
-- Eager mode only: nothing here is computed by tensors.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local Population = ms.federated.Population

local function run(options)
  local all = { devices = 5000, seed = 3, start_threshold = 200, update_ratio = 0.8, update_window = 60000, iterations = 4 }
  for key, value in pairs(options or {}) do all[key] = value end
  return Population(all):run()
end

local function digests(reports)
  local list = {}
  for i, report in ipairs(reports) do list[i] = report.digest end
  return list
end

t.test("options repeat a run to the bit", function()
  local faults = { lost = 0.1, duplicated = 0.1, replayed = 0.1, restart = 0.05, dropout = 0.05, availability = 0.7, stragglers = 0.1 }
  t.equal(digests(run(faults)), digests(run(faults)))
  faults.seed = 4
  local other = digests(run(faults))
  faults.seed = 3
  assert(digests(run(faults))[1] ~= other[1])
end)

t.test("reports count what happened", function()
  local p = Population { devices = 1000, start_threshold = 100, update_window = 60000, iterations = 2, seed = 1 }
  t.equal(p:finished(), false)
  local first = p:iteration()
  t.equal({ first.iteration, first.valid, first.started, first.updates }, { 1, true, 100, 100 })
  assert(first.asked == first.started + first.refused and first.ended > first.began)
  t.equal(#p:run(), 1)
  t.equal(p:finished(), true)
  t.fails({ "all iterations are over" }, function() p:iteration() end)
end)

t.test("a hundred thousand devices go through a round in a moment", function()
  local report = run({ devices = 100000, start_threshold = 20000, iterations = 1 })[1]
  t.equal({ report.started, report.updates }, { 20000, 16000 })
end)

t.test("mistakes are named", function()
  t.fails({ "there is no option 'device'", "did you mean 'devices'?" }, function() Population { device = 3 } end)
  t.fails({ "devices must be an integer" }, function() Population { devices = 1.5 } end)
  t.fails({ "devices must be from 1" }, function() Population { devices = 0 } end)
  t.fails({ "lost must be" }, function() Population { lost = 1.0 } end)
  t.fails({ "update_ratio" }, function() Population { update_ratio = 2.0 } end)
  t.fails({ "seed must not be negative" }, function() Population { seed = -1 } end)
end)

t.finish()
