-- ms.armour.reliability: faults, drift, foreign inputs. Takes about two seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local R, nn, ops = ms.armour.reliability, ms.nn, ms.ops

local function trained()
  ms.set_seed(1)
  local net = nn.SequentialCell(nn.Dense(2, 8), nn.ReLU(), nn.Dense(8, 2))
  local x = ops.concat({ ops.randn(100, 2) * 0.3 - 1, ops.randn(100, 2) * 0.3 + 1 }, 0)
  local y = ops.concat({ ops.zeros({ 100 }, ms.int32), ops.ones({ 100 }, ms.int32) }, 0)
  local optimizer = nn.Adam(net:trainable_params(), 0.05)
  local step = ms.value_and_grad(function() return ops.cross_entropy(net(x), y) end, nil, optimizer.parameters)
  for _ = 1, 60 do
    local _, grads = step()
    optimizer(grads)
  end
  return net, x, y
end
local net, x, y = trained()

t.test("faults are counted, hurt as they should, and are gone afterwards", function()
  local before = {}
  for i, p in ipairs(net:trainable_params()) do before[i] = p:copy() end
  local injector = R.FaultInjector(net, { fi_type = { "zeros", "nan", "anti_activation", "precision_loss" }, fi_mode = { "all_layer" },
    fi_size = { 100 }, seed = 3 })
  local results = injector:kick_off(x, y, 2)
  t.near(results[1].original_acc, 1, 1e-12)
  t.equal(#results, 5)
  -- Without a weight every input gets the same answer; nan is no class; all signs turned leave it, through ReLU, to the last biases.
  t.near(results[2].acc, 0.5, 1e-12)
  t.near(results[2].SDC, 0.5, 1e-12)
  t.equal(results[5].acc > 0.9, true)
  for i, p in ipairs(net:trainable_params()) do t.near(p, before[i], 0) end
  local summary = injector:metrics()
  t.near(summary.all_layer.acc_min, 0.5, 0.5)
  t.equal(summary.single_layer, nil)
end)


t.test("designated bits make exponents large, in every mode", function()
  local injector = R.FaultInjector(net, { fi_type = "bitflips_designated", fi_size = 1, seed = 1 })
  local results = injector:kick_off(x, y, 5)
  t.equal(results[2].mode, "single_layer")
  t.equal(results[3].mode, "all_layer")
  t.equal(results[3].acc <= results[1].original_acc, true)
end)

t.test("activations get faults by hooks", function()
  local injector = R.FaultInjector(net, { fi_type = "zeros", fi_mode = "all_layer", fi_size = 100, target = "activations",
    layers = { "2" } })
  local results = injector:kick_off(x, y, 1)
  t.near(results[2].acc, 0.5, 1e-12)
  t.near(injector:kick_off(x, y, 1)[1].original_acc, 1, 1e-12)
end)

t.test("drift is found where a series changes, and nowhere in one that does not", function()
  local wave = ops.sin(ops.arange(1200):astype(ms.float64) * 0.25)
  local noise = ops.randn({ 1200 }, { dtype = ms.float64 }) * 0.02
  local changed = ops.concat({ wave[{ ms.slice(0, 600) }], wave[{ ms.slice(600, 1200) }] * 3 + 5 }, 0) + noise
  local scores, threshold, places = R.ConceptDriftCheckTimeSeries(100):concept_check(changed)
  t.equal(tostring(scores.shape), "(1200,)")
  t.equal(threshold > 0 and threshold < 1, true)
  t.equal(#places > 0, true)
  for _, place in ipairs(places) do t.equal(place > 450 and place < 750, true) end
  t.equal(#select(3, R.ConceptDriftCheckTimeSeries(100):concept_check(wave + noise)), 0)
  local two = ops.stack({ wave, changed }, 1)
  t.equal(#select(3, R.ConceptDriftCheckTimeSeries(100):concept_check(two)) > 0, true)
  -- A constant series has no range to be scaled to.
  t.equal(#select(3, R.ConceptDriftCheckTimeSeries(20):concept_check(ops.ones { 100 })), 0)
  t.fails("window_size must be at least 10", function() R.ConceptDriftCheckTimeSeries(5) end)
  t.fails("at most a third", function() R.ConceptDriftCheckTimeSeries(100):concept_check(wave[{ ms.slice(0, 200) }]) end)
  t.fails("step must be at most window_size", function() R.ConceptDriftCheckTimeSeries(100, { step = 101 }) end)
end)

t.test("detectors tell foreign inputs, and their threshold is the best one", function()
  local foreign = ops.randn(100, 2) * 0.3 + ms.tensor { 6.0, -6.0 }
  local detectors = {
    R.OodDetectorFeatureCluster(net, x, 2, "0"), R.OodDetectorMahalanobis(net, x, y, "0"),
    R.OodDetectorMahalanobis(ms.train.Model(net), x, y, "1"),
  }
  local label = ops.concat({ ops.zeros({ 200 }, ms.int32), ops.ones({ 100 }, ms.int32) }, 0)
  local all = ops.concat({ x, foreign }, 0)
  for _, detector in ipairs(detectors) do
    local threshold = detector:get_optimal_threshold(label, all)
    local wrong = ops.sum(ops.not_equal(detector:ood_predict(threshold, all), label):astype(ms.int32)):item()
    t.equal(wrong <= 3, true)
  end
end)

t.test("energies and Mahalanobis distances are those of their formulas", function()
  local energy = R.OodDetectorEnergy(net, { temperature = 2.0 }):scores(x)
  local logits = net(x)
  t.near(energy, -2 * ops.log(ops.sum(ops.exp(logits / 2), 1)), 1e-5)
  -- With features that are the inputs: the distance by the inverse of the common covariance.
  local identity = nn.SequentialCell(nn.Dense(2, 2, { weight_init = ops.eye(2):astype(ms.float32), has_bias = false }))
  local detector = R.OodDetectorMahalanobis(identity, x, y, "0", { shrinkage = 1e-12 })
  local first, second = x[{ ms.slice(0, 100) }]:astype(ms.float64), x[{ ms.slice(100, 200) }]:astype(ms.float64)
  local rest = ops.concat({ first - ops.mean(first, 0), second - ops.mean(second, 0) }, 0)
  local inverse = ops.inverse(ops.matmul(rest:swapaxes(0, 1), rest) / 200)
  local function distance(mean)
    local d = x:astype(ms.float64) - mean
    return ops.sum(ops.matmul(d, inverse) * d, 1)
  end
  t.near(detector:scores(x), ops.minimum(distance(ops.mean(first, 0)), distance(ops.mean(second, 0))), 1e-6)
end)

t.test("mistakes are told", function()
  t.fails("fi_type", function() R.FaultInjector(net, { fi_type = { "bitflip" } }) end)
  t.fails("fi_size", function() R.FaultInjector(net, { fi_size = { 0 } }) end)
  t.fails("fi_size is percents for zeros", function() R.FaultInjector(net, { fi_type = "zeros", fi_size = { 5, 101 } }) end)
  t.fails("inputs hold nan", function() R.OodDetectorEnergy(net):ood_predict(0.0, ops.full({ 2, 2 }, 0 / 0)) end)
  t.fails("threshold must not be nan", function() R.OodDetectorEnergy(net):ood_predict(0 / 0, ops.rand(2, 2)) end)
  t.fails("target must be", function() R.FaultInjector(net, { layers = { "2" } }) end)
  t.fails("before kick_off", function() R.FaultInjector(net):metrics() end)
  t.fails("n_cluster must be from 2 to 100", function() R.OodDetectorFeatureCluster(net, x, 1, "0") end)
  t.fails("inputs of both kinds", function() R.OodDetectorEnergy(net):get_optimal_threshold({ 0, 0 }, ops.rand(2, 2)) end)
end)

t.finish()
