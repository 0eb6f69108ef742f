-- Budgets: monitors stop before the step that would pass them, tell what training is no fit, and keep their history in a training's state;
-- noise of a tree. Five seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn
local dp, accountants = ms.armour.privacy.diff_privacy, ms.armour.privacy.accountants

local rows = 400
local x, y = ms.randn { rows, 4 }, ms.random.randint(0, 3, { rows })
local function network() return nn.SequentialCell(nn.Dense(4, 6), nn.Tanh(), nn.Dense(6, 3)) end

local function model_of(net, options) return dp.DPModel(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.1), options) end
local function sampler() return ms.dataset.PoissonSampler({ x, y }, 20 / rows) end

-- What a function prints.
local function printed(f)
  local real, lines = print, {}
  print = function(...) lines[#lines + 1] = table.concat({ ... }, "\t") end -- luacheck: ignore 121
  local ok, message = pcall(f)
  print = real -- luacheck: ignore 121
  assert(ok, message)
  return table.concat(lines, "\n")
end

-- Trains until the monitor stops; gives the monitor.
local function until_stopped(monitor, noise, data, options)
  options = options or {}
  options.noise_mech = noise
  local text = printed(function() model_of(network(), options):train(50, data or sampler(), monitor) end)
  t.equal(monitor.stopped, true)
  assert(text:find("stops before step " .. monitor.steps + 1, 1, true), text)
  return monitor
end

-- The epsilon where the next step had been made, too.
local function with_one_more(monitor)
  monitor.accountant:step(monitor._next)
  return monitor.accountant:epsilon(monitor.target_delta)
end

for _, kind in ipairs { "rdp", "zcdp", "prv" } do
  t.test(kind .. ": stops before the step that would pass the budget, and not a step earlier", function()
    local monitor = dp.PrivacyMonitorFactory():create(kind, rows, 20, { max_eps = 2.0, target_delta = 1e-5, per_print_times = 0 })
    until_stopped(monitor, dp.NoiseGaussianRandom(1.0, 1.1))
    assert(monitor.steps > 3)
    assert(monitor:epsilon() <= 2.0)
    assert(with_one_more(monitor) > 2.0)
  end)
end

t.test("noise that decays: each step counts with its own", function()
  local monitor = dp.RDPMonitor(rows, 20, { max_eps = 2.0, target_delta = 1e-5, per_print_times = 0 })
  until_stopped(monitor, dp.NoiseAdaGaussianRandom(1.0, 1.3, { noise_decay_rate = 0.01, decay_policy = "Time" }))
  local own = accountants.Accountant { mechanism = "rdp" }
  for step = 0, monitor.steps - 1 do own:step { noise_multiplier = 1.3 / (1 + 0.01 * step), sample_rate = 20 / rows } end
  t.near(ms.tensor(monitor:epsilon()), ms.tensor(own:epsilon(1e-5)), 1e-6)
  assert(monitor:epsilon() <= 2.0 and with_one_more(monitor) > 2.0)
end)

t.test("delta within a bound at a given epsilon is the same budget", function()
  local monitor = dp.PRVMonitor(rows, 20, { max_delta = 1e-4, target_eps = 1.5, per_print_times = 0 })
  until_stopped(monitor, dp.NoiseGaussianRandom(1.0, 1.5))
  assert(monitor.accountant:delta(1.5) <= 1e-4)
  monitor.accountant:step(monitor._next)
  assert(monitor.accountant:delta(1.5) > 1e-4)
end)

t.test("a budget that allows no step leaves the network as it is", function()
  local net = network()
  local before = net[1].weight:tolist()
  local monitor = dp.RDPMonitor(rows, 20, { max_eps = 1e-3, target_delta = 1e-5, per_print_times = 0 })
  printed(function() model_of(net):train(2, sampler(), monitor) end)
  t.equal(monitor.steps, 0)
  t.equal(monitor.stopped, true)
  t.equal(net[1].weight:tolist(), before)
end)

t.test("the history and the place of the noise are part of a training's state", function()
  local folder = os.tmpname()
  os.remove(folder)
  local function train(epochs, save)
    local net = network()
    for i, p in ipairs(net:trainable_params()) do p:assign(ops.full(p.shape, 0.1 * i)) end
    local monitor = dp.RDPMonitor(rows, 100, { max_eps = 50.0, target_delta = 1e-5, per_print_times = 0 })
    local model = model_of(net, { noise_mech = dp.NoiseAdaGaussianRandom(1.0, 1.3, { noise_decay_rate = 0.01, seed = 5 }),
      clip_mech = dp.AdaClippingWithGaussianRandom { learning_rate = 0.2, seed = 6 } })
    local data = ms.dataset.PoissonSampler({ x, y }, 100 / rows, { seed = 7 })
    local callbacks = { monitor }
    if save then callbacks[2] = ms.train.BackupAndRestore(folder, 3, false) end
    model:train(epochs, data, callbacks)
    return monitor, net, model
  end
  local whole, expected = train(4)
  -- The last backup is that of step 6: the second epoch is gone on with in its middle.
  train(2, true)
  local monitor, net, model = train(4, true)
  t.equal(monitor.steps, 16)
  t.equal(#monitor.accountant:history(), #whole.accountant:history())
  t.near(ms.tensor(monitor:epsilon()), ms.tensor(whole:epsilon()), 1e-6)
  t.equal(model.private.noise_mech.step, 16)
  for i, p in ipairs(net:trainable_params()) do t.near(p, expected:trainable_params()[i], 1e-5) end
end)

t.test("batches of one size count as such", function()
  local monitor = dp.RDPMonitor(rows, 20, { max_eps = 2.0, target_delta = 1e-5, per_print_times = 0 })
  local data = ms.dataset.NumpySlicesDataset({ x, y }):batch(20)
  until_stopped(monitor, dp.NoiseGaussianRandom(1.0, 3.0), data, { poisson_sampling = false })
  t.equal(monitor.accountant:history()[1].sampling, "fixed")
  local poisson = dp.RDPMonitor(rows, 20, { sampling = "poisson" })
  t.fails({ "the batches are not drawn by a ms.dataset.PoissonSampler" }, function()
    model_of(network(), { poisson_sampling = false }):train(1, data, poisson)
  end)
end)

t.test("the share of unclipped gradients costs, too", function()
  local clip = dp.AdaClippingWithGaussianRandom { fraction_stddev = 0.05 }
  local monitor = dp.RDPMonitor(rows, 20, { per_print_times = 0, max_eps = 100.0 })
  model_of(network(), { clip_mech = clip, noise_mech = dp.NoiseGaussianRandom(1.0, 2.0) }):train(1, sampler(), monitor)
  -- 0.05 of 20 samples is a deviation of 1, for a sensitivity of 1/2.
  t.near(ms.tensor(monitor.accountant:history()[1].noise_multiplier), ms.tensor(1 / math.sqrt(1 / 4 + 1 / 4)), 1e-6)
end)

t.test("epochs within a budget", function()
  local function monitor(options)
    options.max_eps, options.target_delta = 2.0, 1e-5
    return dp.RDPMonitor(rows, 20, options)
  end
  local epochs = monitor { initial_noise_multiplier = 2.0 }:max_epoch_suggest()
  local own = accountants.Accountant { mechanism = "rdp" }
  own:step { noise_multiplier = 2.0, sample_rate = 0.05, steps = epochs * 20 }
  assert(epochs > 0 and own:epsilon(1e-5) <= 2.0)
  own:step { noise_multiplier = 2.0, sample_rate = 0.05, steps = 20 }
  assert(own:epsilon(1e-5) > 2.0)
  local fewer = monitor { initial_noise_multiplier = 2.0, noise_decay_mode = "Time", noise_decay_rate = 1e-3 }:max_epoch_suggest()
  assert(fewer > 0 and fewer < epochs)
end)

t.test("what does not fit is told before the training", function()
  local function train(monitor, options, data) return function() model_of(network(), options):train(1, data or sampler(), monitor) end end
  t.fails({ "RDPMonitor: the monitor counts the noise multiplier 1.5, and the training has 1" },
    train(dp.RDPMonitor(rows, 20, { initial_noise_multiplier = 1.5 })))
  t.fails({ "batch_size / num_samples is 0.1, and the data are drawn with the rate 0.05", "num_samples = 400, batch_size = 20" },
    train(dp.PRVMonitor(rows, 40)))
  t.fails({ "the training adds no noise that the monitor knows of" }, function()
    local net = network()
    ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.1)):train(1, { { x, y } }, dp.RDPMonitor(rows, 20))
  end)
  t.fails({ "max_eps must be a positive number, got 0" }, dp.RDPMonitor, rows, 20, { max_eps = 0 })
  t.fails({ "target_delta must be a positive number, got 0.0" }, dp.RDPMonitor, rows, 20, { target_delta = 0.0 })
  t.fails({ "batch_size is 500, and there are 400 samples" }, dp.RDPMonitor, rows, 500)
  t.fails({ "max_delta and target_eps are given together" }, dp.RDPMonitor, rows, 20, { max_delta = 1e-5 })
  t.fails({ "max_eps has no effect beside" }, dp.RDPMonitor, rows, 20, { max_delta = 1e-5, target_eps = 2.0, max_eps = 1.0 })
  t.fails({ "noise_decay_rate has no effect without noise_decay_mode" }, dp.RDPMonitor, rows, 20, { noise_decay_rate = 0.5 })
  t.fails({ "policy must be 'rdp', 'zcdp' or 'prv'" }, function() dp.PrivacyMonitorFactory():create "gdp" end)
  t.fails({ "dataset_sink_mode" }, function()
    model_of(network()):train(1, sampler(), { callbacks = dp.RDPMonitor(rows, 20), dataset_sink_mode = true })
  end)
end)

t.test("a tree's noise: each sum of steps has that of as many nodes as its number has ones", function()
  local noise = dp.NoiseTreeRandom(8, 0.5, 2.0, { seed = 3 })
  local zeros = ms.zeros({ 40000 }, ms.float64)
  local sum, at = zeros, {}
  local ones = { 1, 1, 2, 1, 2, 2, 3, 1 }
  for step = 1, 16 do
    sum = sum + noise { zeros }[1]
    at[step] = sum
    noise:advance()
    -- The second tree begins where the first one ended.
    local own = step <= 8 and sum or sum - at[8]
    local expected = ones[(step - 1) % 8 + 1]
    assert(math.abs(ops.mean(own * own):item() - expected) < 0.06 * expected, step)
  end
  assert(math.abs(ops.mean(at[4] * (at[6] - at[4])):item()) < 0.03, "nodes are drawn once each")
end)

t.test("trees are counted one by one, and another one is begun only within the budget", function()
  local monitor = dp.PRVMonitor(rows, 20, { max_eps = 5.0, target_delta = 1e-5, per_print_times = 0 })
  local data = ms.dataset.NumpySlicesDataset({ x, y }):batch(20)
  until_stopped(monitor, dp.NoiseTreeRandom(20, 1.0, 3.0), data, { poisson_sampling = false })
  t.equal(monitor.steps % 20, 0)
  assert(monitor.steps > 0 and monitor:epsilon() <= 5.0 and with_one_more(monitor) > 5.0)
  t.fails({ "Poisson sampling draws rows again" }, model_of, network(), { noise_mech = dp.NoiseTreeRandom(20) })
  t.fails({ "3 participations 10 steps apart do not fit into 20 leaves" }, dp.NoiseTreeRandom, 20, { participations = 3, separation = 10 })
end)

t.finish()
