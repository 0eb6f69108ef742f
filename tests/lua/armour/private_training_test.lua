-- Private training: clipping against a loop of one, noise, the sampler, models and optimizers. Three seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn
local dp = ms.armour.privacy.diff_privacy

local f64 = ms.float64
local function network(dtype)
  return nn.SequentialCell(nn.Dense(4, 6, { dtype = dtype }), nn.Tanh(), nn.Dense(6, 3, { dtype = dtype }))
end
local x, y = ms.randn({ 24, 4 }, { dtype = f64 }), ms.random.randint(0, 3, { 24 })
local function one(v, i) return v[{ ms.slice(i, i + 1) }] end

-- What an optimizer of the rate 1 took from the parameters in a step of a model without noise to speak of.
local function step_of(options, batch, make)
  local net = network(f64)
  options.noise_mech = dp.NoiseGaussianRandom(options.norm_bound or 1.0, 1e-14)
  options.poisson_sampling = false
  local params, before = net:trainable_params(), {}
  for i, p in ipairs(params) do before[i] = p:copy() end
  local model = dp.DPModel(net, nn.CrossEntropyLoss(), (make or nn.SGD)(params, 1.0), options)
  model:train(1, { batch })
  local moved = {}
  for i, p in ipairs(params) do
    moved[i] = before[i] - p
    p:assign(before[i])
  end
  return moved, net, params, model
end

local function sample_gradients(net, params, from, to)
  local list = {}
  for i = from, to do
    list[#list + 1] = ms.grad(function() return ops.cross_entropy(net(one(x, i)), one(y, i)) end, nil, params)()
  end
  return list
end

local function norm(list)
  local sum = 0
  for _, g in ipairs(list) do sum = sum + ops.sum(g * g):item() end
  return math.sqrt(sum)
end

local function expect(moved, gradients, factors, divisor)
  for k = 1, #moved do
    local sum
    for i, g in ipairs(gradients) do
      local part = g[k] * (type(factors[i]) == "table" and factors[i][k] or factors[i])
      sum = sum and sum + part or part
    end
    t.near(moved[k], sum / divisor, 1e-11)
  end
end

t.test("a step takes the sum of clipped gradients over the size of the batch, by each policy", function()
  for _, bound in ipairs { 0.3, 5.0 } do
    for _, clipping in ipairs { "flat", "per_layer", "automatic" } do
      for _, pieces in ipairs { false, 5 } do
        local moved, net, params = step_of({ norm_bound = bound, clipping = clipping, max_physical_batch_size = pieces or nil }, { x, y })
        local gradients, factors = sample_gradients(net, params, 0, 23), {}
        for i, g in ipairs(gradients) do
          if clipping == "flat" then factors[i] = math.min(1, bound / norm(g)) end
          if clipping == "automatic" then factors[i] = bound / (norm(g) + 0.01) end
          if clipping == "per_layer" then
            factors[i] = {}
            for k, own in ipairs(g) do factors[i][k] = math.min(1, bound / math.sqrt(#g) / norm { own }) end
          end
        end
        expect(moved, gradients, factors, 24)
      end
    end
  end
end)

t.test("micro-batches clip the means of their samples", function()
  local moved, net, params = step_of({ norm_bound = 0.2, micro_batches = 6 }, { x, y })
  local gradients, means, factors = sample_gradients(net, params, 0, 23), {}, {}
  for m = 0, 5 do
    local mean = {}
    for k = 1, #params do
      for i = 1, 4 do
        local part = gradients[4 * m + i][k] / 4
        mean[k] = mean[k] and mean[k] + part or part
      end
    end
    means[m + 1], factors[m + 1] = mean, math.min(1, 0.2 / norm(mean))
  end
  expect(moved, means, factors, 6)
  t.fails({ "a batch of 24 samples does not divide into 5 micro-batches" }, step_of, { micro_batches = 5 }, { x, y })
end)

t.test("the adaptive bound follows the share of gradients within it, and the noise follows the bound", function()
  local clip = dp.AdaClippingWithGaussianRandom { learning_rate = 0.2, target_unclipped_quantile = 0.5, fraction_stddev = 1e-9 }
  local _, net, params, model = step_of({ clip_mech = clip }, { x, y })
  local within = 0
  for _, g in ipairs(sample_gradients(net, params, 0, 23)) do
    if norm(g) <= 1 then within = within + 1 end
  end
  t.near(ms.tensor(model.private.norm_bound, f64), ms.tensor(1 - 0.2 * (within / 24 - 0.5), f64), 1e-7)
  t.equal(model.private.noise_mech.norm_bound, model.private.norm_bound)
end)

t.test("what counts for an accountant holds the noise of the share, too", function()
  local net = network()
  local model = dp.DPModel(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.1), {
    noise_mech = dp.NoiseGaussianRandom(1.0, 2.0), clip_mech = dp.AdaClippingWithGaussianRandom { fraction_stddev = 0.05 },
    expected_batch_size = 30 })
  t.near(ms.tensor(model:noise_multiplier()), ms.tensor(1 / math.sqrt(1 / 4 + 1 / 9)), 1e-6)
end)

t.test("noise has its deviation, a seed gives the same bits whatever the session's is", function()
  local zeros = ms.zeros { 20000 }
  local a = dp.NoiseGaussianRandom(0.5, 3.0, { seed = 9 })(zeros)
  assert(math.abs(a:std():item() - 1.5) < 0.03 and math.abs(a:mean():item()) < 0.05)
  ms.set_seed(4)
  local again = dp.NoiseGaussianRandom(0.5, 3.0, { seed = 9 })
  t.near(again(zeros), a, 0)
  assert(ops.max(ops.abs(again(zeros) - a)):item() > 1)
  local list = dp.NoiseGaussianRandom(1.0, 1.0, { seed = 9 }) { ms.zeros { 3 }, ms.zeros { 3 } }
  assert(ops.max(ops.abs(list[1] - list[2])):item() > 0)
end)

t.test("secure noise is normal, of no seed, and never the same", function()
  local secure = dp.NoiseGaussianRandom(1.0, 2.0, { secure = true })
  ms.set_seed(4)
  local state = ms.get_rng_state():tolist()
  local a, b = secure(ms.zeros({ 40000 }, f64)), secure(ms.zeros({ 40000 }, f64))
  t.equal(ms.get_rng_state():tolist(), state)
  for _, z in ipairs { a / 2, b / 2 } do
    assert(math.abs(ops.mean(z):item()) < 0.03 and math.abs(ops.mean(z * z):item() - 1) < 0.04)
    assert(math.abs(ops.mean(z * z * z * z):item() - 3) < 0.35)
  end
  assert(math.abs(ops.mean(a * b):item()) < 0.15)
  t.fails({ "secure noise has no seed" }, dp.NoiseGaussianRandom, 1.0, 1.0, { secure = true, seed = 3 })
end)

t.test("decays are those of the paper's three rules", function()
  local make = dp.NoiseMechanismsFactory()
  local options = { initial_noise_multiplier = 1.5, noise_decay_rate = 0.1 }
  local expected = { Time = 1.5 / 1.2, Step = 1.5 * 0.81, Exp = 1.5 * math.exp(-0.2) }
  for policy, value in pairs(expected) do
    options.decay_policy = policy
    t.near(ms.tensor(make:create("AdaGaussian", options):noise_multiplier(2), f64), ms.tensor(value, f64), 1e-15)
  end
  t.fails({ "Gaussian has no argument 'decay_policy'" }, make.create, make, "Gaussian", { decay_policy = "Exp" })
  t.fails({ "there is no noise mechanism the string 'Gaussia'", "did you mean 'Gaussian'" }, make.create, make, "Gaussia")
end)

t.test("Poisson batches: every row by a chance of its own, batches of any size, the same by a seed", function()
  local rows = ms.arange(400)
  local sampler = ms.dataset.PoissonSampler({ rows, rows * 2 }, 0.05, { num_batches = 200, seed = 3 })
  local counts, sizes, least, most = ms.zeros({ 400 }), {}, math.huge, 0
  for a, b in sampler:create_tuple_iterator() do
    t.equal((a * 2):tolist(), b:tolist())
    sizes[#sizes + 1] = a.shape[1]
    least, most = math.min(least, a.shape[1]), math.max(most, a.shape[1])
    counts = counts + ops.sum(ops.equal(ops.reshape(a, { -1, 1 }), rows):astype(ms.float32), 0)
  end
  t.equal(#sizes, 200)
  assert(least < 15 and most > 25, "the sizes vary")
  -- Binomial(200, 0.05): mean 10, deviation 3.1.
  assert(math.abs(ops.mean(counts):item() - 10) < 0.5 and ops.max(counts):item() < 26)
  local again = ms.dataset.PoissonSampler({ rows }, 0.05, { num_batches = 200, seed = 3 })
  local k = 0
  for a in again:create_tuple_iterator() do
    k = k + 1
    t.equal(a.shape[1], sizes[k])
  end
  local other = again:create_tuple_iterator()()
  assert(other.shape[1] ~= sizes[1] or k == 200, "another epoch draws others")
end)

t.test("an empty batch adds noise alone", function()
  local net = network()
  local before = net[1].weight:copy()
  local model = dp.DPModel(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 1.0),
    { noise_mech = dp.NoiseGaussianRandom(1.0, 2.0) })
  model:train(3, ms.dataset.PoissonSampler({ x:astype(ms.float32), y }, 1e-9, { num_batches = 1 }))
  local moved = (net[1].weight - before) * model.private.divisor
  assert(math.abs(moved:std():item() / (2 * math.sqrt(3)) - 1) < 0.5)
end)

t.test("models draw by Poisson sampling and divide by the expected size", function()
  local net = network(f64)
  local sizes = {}
  local Watch = ms.train.Callback:extend("Watch")
  function Watch:on_train_step_begin(run) -- luacheck: ignore 212
    sizes[#sizes + 1] = run:original_args().train_dataset_element[1].shape[1]
  end
  local model = dp.DPModel(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.01))
  local data = ms.dataset.NumpySlicesDataset({ x, y }, { shuffle = false }):batch(6)
  model:train(5, data, Watch())
  t.equal(#sizes, 20)
  t.equal(model.private.divisor, 6.0)
  local seen = {}
  for _, size in ipairs(sizes) do seen[size] = true end
  assert(next(seen, next(seen)) ~= nil, "sizes vary")
  t.fails({ "batches of a function cannot be drawn by chance" }, model.train, model, 1, function() end)
end)

t.test("optimizers with noise of their own, of any class", function()
  local factory = dp.DPOptimizerClassFactory(24)
  t.fails({ "there is no noise yet" }, factory.create, factory, "SGD")
  factory:set_mechanisms("AdaGaussian", { norm_bound = 1.0, initial_noise_multiplier = 1e-14, decay_policy = "Step" })
  for _, name in ipairs { "SGD", "Adam", "RMSProp", "AdamWeightDecay", "Adagrad" } do
    local plain, noisy = network(f64), network(f64)
    for i, p in ipairs(noisy:get_parameters()) do p:assign(plain:get_parameters()[i]) end
    local model = dp.DPModel(noisy, nn.CrossEntropyLoss(), factory:create(name)(noisy:trainable_params(), 0.1),
      { poisson_sampling = false, norm_bound = 1.0 })
    local gradients = {}
    for k, g in ipairs(dp.PerSampleGradients(plain, nn.CrossEntropyLoss()):gradients(x, y)) do gradients[k] = g end
    local norms, sums = dp.PerSampleGradients(plain, nn.CrossEntropyLoss()):norms(x, y), {}
    for k, g in ipairs(gradients) do
      local shape = { 24 }
      for axis = 2, g.ndim do shape[axis] = 1 end
      sums[k] = ops.sum(g * ops.reshape(ops.minimum(1.0 / norms, 1.0), shape), 0) / 24
    end
    nn[name](plain:trainable_params(), 0.1)(sums)
    model:train(1, { { x, y } })
    for i, p in ipairs(noisy:get_parameters()) do t.near(p, plain:get_parameters()[i], 1e-9) end
  end
  t.fails({ "create wants the name of an optimizer of ms.nn, got the string 'Dense'" }, factory.create, factory, "Dense")
end)

t.test("mistakes", function()
  local net = network()
  local sgd, loss = nn.SGD(net:trainable_params(), 0.1), nn.CrossEntropyLoss()
  local function model(options) return dp.DPModel(net, loss, sgd, options) end
  t.fails({ "DPModel: norm_bound must be a positive number, got 0.0" }, model, { norm_bound = 0.0 })
  t.fails({ "norm_bound is 2, that of the noise mechanism is 1" }, model, { norm_bound = 2.0, noise_mech = dp.NoiseGaussianRandom() })
  t.fails({ "noise_mech must be a noise mechanism, got 3" }, model, { noise_mech = 3 })
  t.fails({ "clipping must be one of 'flat', 'per_layer', 'automatic', 'adaptive'" }, model, { clipping = "layers" })
  t.fails({ "micro_batches need batches of one size" }, model, { micro_batches = 2 })
  t.fails({ "secure has no effect where the noise mechanism is given" }, model,
    { noise_mech = dp.NoiseGaussianRandom(1.0, 1.0), secure = true })
  t.fails({ "expected_batch_size has no effect with micro_batches" }, model,
    { micro_batches = 2, expected_batch_size = 8, poisson_sampling = false })
  t.fails({ "clip_mech adapts one bound" }, model, { clip_mech = dp.AdaClippingWithGaussianRandom(), clipping = "per_layer" })
  t.fails({ "optimizer is missing" }, dp.DPModel, net, loss)
  t.fails({ "train: a private training sinks no steps" }, function() model {}:train(1, { { x, y } }, nil, true) end)
  t.fails({ "train: a private training sinks no steps" }, function() model {}:train(1, { { x, y } }, { dataset_sink_mode = true }) end)
  t.fails({ "fit: a private training sinks no steps" }, function() model {}:fit(1, { { x, y } }, nil, 1, nil, true) end)
  t.fails({ "must have all trained parameters" }, dp.DPModel, net, loss, nn.SGD({ net[3].weight }, 0.1))
  t.fails({ "initial_noise_multiplier must be a positive number, got 0" }, dp.NoiseGaussianRandom, 1.0, 0)
  t.fails({ "sample_rate is 0" }, ms.dataset.PoissonSampler, { x }, 0.0)
  t.fails({ "column 1 has 24 rows, column 2 has 1" }, ms.dataset.PoissonSampler, { x, one(y, 3) }, 0.5)
  t.fails({ "sample_rate is missing" }, ms.dataset.PoissonSampler, { x })
end)

t.finish()
