-- ms.armour.fuzz_testing: coverage by hand, from other numbers than the stored ones, and fuzzers. Takes about a second.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local fuzz, nn, ops = ms.armour.fuzz_testing, ms.nn, ms.ops

-- A model whose layers are its inputs.
local function layers(x) return { x[{ ms.slice(), ms.slice(0, 2) }], x[{ ms.slice(), ms.slice(2, 5) }] } end
local train = ms.tensor { { 0.0, 0.0, 0.0, 0.0, 0.0 }, { 1.0, 1.0, 1.0, 1.0, 0.0 } }

t.test("coverage counts events of units by hand", function()
  local x = ms.tensor { { 0.5, -1.0, 0.2, 0.9, 0.1 } }
  t.near(fuzz.NeuronCoverage(layers, 0.3):get_metrics(x), 2 / 5, 1e-12)
  t.near(fuzz.TopKNeuronCoverage(layers, 1):get_metrics(x), 2 / 5, 1e-12)
  t.near(fuzz.TopKNeuronCoverage(layers, 7):get_metrics(x), 1, 1e-12)
  t.near(fuzz.SuperNeuronActivateCoverage(layers, train):get_metrics(x), 1 / 5, 1e-12)
  t.near(fuzz.NeuronBoundsCoverage(layers, train):get_metrics(x), 2 / 5, 1e-12)
  t.near(fuzz.NeuronBoundsCoverage(layers, train, { corners = true }):get_metrics(x), 2 / 10, 1e-12)
  -- 0.5 in section 2 of 4, -1 outside, 0.2 in section 0, 0.9 in section 3, 0.1 outside of the range of a constant unit.
  t.near(fuzz.KMultisectionNeuronCoverage(layers, train, 4):get_metrics(x), 3 / 20, 1e-12)
  t.near(fuzz.KMultisectionNeuronCoverage(layers, train, 4):get_metrics(train), (2 * 4 + 1) / 20, 1e-12)
end)

t.test("what inputs add does not depend on how they are cut into batches", function()
  local x = ops.randn(50, 5)
  local whole = fuzz.KMultisectionNeuronCoverage(layers, train, 10):get_metrics(x)
  t.near(fuzz.KMultisectionNeuronCoverage(layers, train, 10, { batch_size = 7 }):get_metrics(x), whole, 0)
  local step = fuzz.KMultisectionNeuronCoverage(layers, train, 10, { incremental = true })
  for i = 0, 49 do step:get_metrics(x[{ ms.slice(i, i + 1) }]) end
  t.near(step:get_metrics(x[{ ms.slice(0, 1) }]), whole, 0)
  -- Each prefix's coverage, from one pass, is what asking for the prefix gives.
  local metric = fuzz.KMultisectionNeuronCoverage(layers, train, 10)
  local gains, sum = metric:_add(x), 0
  for i = 1, 50 do
    sum = sum + gains[i]
    if i % 9 == 0 then
      t.near(sum, fuzz.KMultisectionNeuronCoverage(layers, train, 10):get_metrics(x[{ ms.slice(0, i) }]), 1e-12)
    end
  end
  metric:reset()
  t.equal(metric:_value(), 0.0)
end)

local function network()
  ms.set_seed(3)
  return nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Dense(4 * 64, 3))
end

t.test("layers are the inner cells with weights, or those that are named; pictures are averaged over places", function()
  local net = network()
  local x = ops.rand(6, 1, 8, 8)
  t.near(fuzz.NeuronCoverage(net, -1e9):get_metrics(x), 1, 0)
  local metric = fuzz.NeuronCoverage(net, -1e9, { layers = { "1" } })
  metric:get_metrics(x)
  t.equal(metric._seen.shape[1], 4)
  t.fails("the network has no cell 'konv'", function() fuzz.NeuronCoverage(net, { layers = { "konv" } }) end)
  t.equal(next(net:cells()) ~= nil, true)
  -- No hook is left behind: what the network gives afterwards is recorded nowhere.
  local y = net(x)
  t.near(net(x), y, 0)
end)

t.test("sensitivities that never change have converged, large ones have not", function()
  local identity = function(x) return { x } end
  local clean = ops.zeros { 10, 4 }
  t.near(fuzz.SensitivityConvergenceCoverage(identity, { n_iter = 50 }):get_metrics(ops.concat({ clean, clean }, 0)), 1, 0)
  local far = ops.concat({ clean, clean + 100 }, 0)
  t.near(fuzz.SensitivityConvergenceCoverage(identity, 0.95, { n_iter = 200 }):get_metrics(far), 0, 0)
  t.fails("its first half must be clean", function() fuzz.SensitivityConvergenceCoverage(identity):get_metrics(ops.rand(3, 4)) end)
end)

local mutations = {
  { method = "GaussianNoise", params = { factor = { 0.1, 0.3 } } },
  { method = "Rotate", params = { angle = { 20, 90 } } },
  { method = "Contrast", params = { alpha = { 0.5, 1.5 }, beta = { 0, 0.1 } } },
  { method = "FGSM", params = { eps = { 0.1, 0.3 } } },
}

local function seeds(count)
  local list = {}
  ms.set_seed(5)
  for i = 1, count do list[i] = { ops.rand(1, 8, 8), i % 3 } end
  return list
end

t.test("a fuzzer finds mutants that add to the coverage, the same ones from the same seed", function()
  local net = network()
  local function run()
    local metric = fuzz.KMultisectionNeuronCoverage(net, ops.concat({ seeds(6)[1][1], seeds(6)[2][1] }, 0):reshape { 2, 1, 8, 8 }, 50,
      { incremental = true })
    return fuzz.Fuzzer(net, { seed = 7 }):fuzzing(mutations, seeds(6), metric, { max_iters = 8, mutate_num_per_seed = 5 })
  end
  local samples, labels, predictions, methods, report = run()
  t.equal(#samples, #labels)
  t.equal(#samples, #predictions)
  t.equal(#samples, #methods)
  t.equal(report.Coverage_metrics > report.Initial_coverage, true)
  t.equal(report.Accuracy >= 0 and report.Accuracy <= 1, true)
  t.equal(tostring(report):find "coverage" ~= nil, true)
  t.equal(tostring(report:plot()):find "mutants" ~= nil, true)
  local again = run()
  for i, sample in ipairs(samples) do t.near(again[i], sample, 0) end
  -- After a rotation or an attack only pixels change: no mutant of a mutant is rotated twice.
  for _, sample in ipairs(samples) do t.equal(tostring(sample.shape), "(1, 8, 8)") end
end)

t.test("a fuzzer of sensitivities mutates every seed", function()
  local net = network()
  local metric = fuzz.SensitivityConvergenceCoverage(net, 0.9, { n_iter = 30 })
  local fuzzer = fuzz.SensitivityMaximizingFuzzer(net, { seed = 2 })
  local samples, _, _, _, report = fuzzer:fuzzing(mutations, seeds(4), metric, { max_iters = 3 })
  t.equal(#samples == 12 or #samples >= 4 and report.Coverage_metrics == 1, true)
end)

t.test("mistakes are told", function()
  local net = network()
  local metric = fuzz.NeuronCoverage(net)
  local fuzzer = fuzz.Fuzzer(net)
  t.fails("mutate_config must be a list of methods", function() fuzzer:fuzzing({}, seeds(1), metric) end)
  local turns = { { method = "Rotate", params = { angle = { 10 } } } }
  t.fails("at least one change of pixels", function() fuzzer:fuzzing(turns, seeds(1), metric) end)
  t.fails("there is no mutation 'GausianNoise'", function() fuzzer:fuzzing({ { method = "GausianNoise" } }, seeds(1), metric) end)
  local single = { { method = "GaussianNoise", params = { factor = 0.1 } } }
  t.fails("factor of GaussianNoise must be a list", function() fuzzer:fuzzing(single, seeds(1), metric) end)
  t.fails("initial_seeds must be a list", function() fuzzer:fuzzing(mutations, {}, metric) end)
  t.fails("seed 1 must be { image, label }", function() fuzzer:fuzzing(mutations, { { ops.rand(1, 8, 8) } }, metric) end)
  t.fails("coverage must be a coverage metric", function() fuzzer:fuzzing(mutations, seeds(1), 3) end)
  t.fails("SensitivityMaximizingFuzzer", function() fuzzer:fuzzing(mutations, seeds(1), fuzz.SensitivityConvergenceCoverage(net)) end)
  t.fails("dataset must be a tensor", function() metric:get_metrics(3) end)
  t.fails("inputs hold nan", function() metric:get_metrics(ops.full({ 2, 1, 8, 8 }, 0 / 0)) end)
  t.fails("model must be a cell", function() fuzz.NeuronCoverage(3) end)
  t.fails("threshold must not be nan", function() fuzz.NeuronCoverage(net, 0 / 0) end)
end)

t.finish()
