-- ms.armour.attacks: attacks by gradients do what their papers say, where MindArmour does not (each such test fails with its formula), keep
-- to the ball and the bounds, give the same bits for the same seed in both modes, and say what is wrong with their arguments.
-- Cost: 3 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local common = require "lunaria.armour.common"

local ops, nn, A = ms.ops, ms.nn, ms.armour.attacks

-- A small network and inputs that are the same in all tests.
ms.set_seed(7)
local net = nn.SequentialCell(nn.Conv2d(1, 3, 3, { pad_mode = "valid" }), nn.Tanh(), nn.Flatten(), nn.Dense(3 * 8 * 8, 5))
local x, y = ops.rand { 6, 1, 10, 10 }, ms.tensor({ 0, 1, 2, 3, 4, 0 }, ms.int32)
local model = common.classifier("test", net)

local every = { "FastGradientMethod", "FastGradientSignMethod", "RandomFastGradientMethod", "RandomFastGradientSignMethod",
  "LeastLikelyClassMethod", "RandomLeastLikelyClassMethod", "BasicIterativeMethod", "ProjectedGradientDescent", "MomentumIterativeMethod",
  "NesterovIterativeMethod", "DiverseInputIterativeMethod", "MomentumDiverseInputIterativeMethod", "VarianceTuningMomentumIterativeMethod",
  "VarianceTuningNesterovIterativeMethod", "AutoProjectedGradientDescent" }

local function mean_loss(inputs) return ops.mean(model:losses(inputs, y)):item() end
local function largest(v) return ops.max(ops.abs(v)):item() end
local function same_bits(a, b) return ops.all(ops.equal(a, b)):item() end

t.test("every attack raises the loss within its ball and the bounds", function()
  for _, name in ipairs(every) do
    local attack = A[name](net, { eps = 0.1 })
    local adv = attack:generate(x, y)
    t.equal(tostring(adv.shape), tostring(x.shape))
    t.equal(adv.dtype, x.dtype)
    assert(name:find "LeastLikely" or mean_loss(adv) > mean_loss(x) + 1e-3, name)
    assert(ops.max(common.norms(adv - x, attack.norm_level)):item() <= 0.1 * (1 + 1e-5), name)
    assert(ops.min(adv):item() >= 0 and ops.max(adv):item() <= 1, name)
  end
end)

t.test("the same seed gives the same bits in both modes and leaves the session's random numbers alone", function()
  local before = ms.get_context "mode"
  for _, name in ipairs(every) do
    local results, next_of = {}, {}
    for _, mode in ipairs { ms.PYNATIVE_MODE, ms.GRAPH_MODE } do
      ms.set_context { mode = mode }
      local ok, wrong = pcall(function()
        ms.set_seed(3)
        local options = { eps = 0.1 }
        if name:find "Random" or name:find "Projected" or name:find "Diverse" or name:find "Variance" then options.seed = 11 end
        results[mode] = A[name](net, options):generate(x, y)
        -- The next number of the session's generator.
        next_of[mode] = options.seed and ops.rand { 3 }
      end)
      ms.set_context { mode = before }
      assert(ok, wrong)
    end
    assert(largest(results[ms.PYNATIVE_MODE] - results[ms.GRAPH_MODE]) < 1e-5, name)
    local untouched = next_of[ms.PYNATIVE_MODE]
    if untouched then
      ms.set_seed(3)
      assert(same_bits(untouched, ops.rand { 3 }) and same_bits(untouched, next_of[ms.GRAPH_MODE]), name)
    end
  end
end)

t.test("two attacks with one seed begin alike, and with another seed elsewhere", function()
  local function start(seed)
    return A.ProjectedGradientDescent(net, { eps = 0.1, eps_iter = 1e-6, nb_iter = 1, seed = seed }):generate(x, y)
  end
  assert(same_bits(start(1), start(1)))
  assert(largest(start(1) - start(2)) > 0.05)
end)

t.test("wanted labels become likelier with every attack that takes them", function()
  local target = (y + 1) % 5
  for _, name in ipairs(every) do
    if not name:find "LeastLikely" then
      local adv = A[name](net, { eps = 0.1, is_targeted = true }):generate(x, target)
      assert(ops.mean(model:losses(adv, target)):item() < ops.mean(model:losses(x, target)):item() - 1e-3, name)
    end
  end
end)

t.test("projected gradient descent stays in the ball of its norm, not in that of single elements", function()
  for _, p in ipairs { 1, 2 } do
    local eps = p == 1 and 2.0 or 0.5
    local attack = A.ProjectedGradientDescent(net, { eps = eps, eps_iter = eps / 4, nb_iter = 20, norm_level = p, seed = 1 })
    local delta = attack:generate(x, y) - x
    local norms = common.norms(delta, p)
    assert(ops.max(norms):item() <= eps * (1 + 1e-5) and ops.min(norms):item() > eps * 0.5)
    -- Elements go beyond what an equal share of the ball would allow.
    assert(largest(delta) > eps / (p == 1 and 100 or 10))
  end
end)

t.test("the projections are the nearest points of the balls", function()
  local generator = common.generator(5)
  local far = generator:normal({ 4, 2, 6 }, ms.float64) * 3
  for _, p in ipairs { 1, 2, "inf" } do
    local nearest = common.project(far, p, 1.5)
    t.near(common.norms(nearest, p), { 1.5, 1.5, 1.5, 1.5 }, 1e-12)
    -- No other point of the ball is nearer.
    local distance = common.norms(far - nearest, 2)
    for _ = 1, 50 do
      local other = common.project(nearest + generator:normal({ 4, 2, 6 }, ms.float64) * 0.1, p, 1.5)
      assert(ops.all(ops.greater_equal(common.norms(far - other, 2), distance - 1e-12)):item())
    end
    t.near(common.project(nearest * 0.5, p, 1.5), nearest * 0.5, 1e-15)
  end
end)

t.test("projected gradient descent begins at random and looks for targets", function()
  local attack = A.ProjectedGradientDescent(net, { eps = 0.1, eps_iter = 1e-7, nb_iter = 1, seed = 4 })
  local start = ops.abs(attack:generate(x, y) - x)
  assert(ops.mean(start):item() > 0.02 and largest(start) <= 0.1 * (1 + 1e-5))
  local plain = A.ProjectedGradientDescent(net, { eps = 0.1, eps_iter = 1e-7, nb_iter = 1, random_start = false })
  assert(largest(plain:generate(x, y) - x) < 1e-6)
end)

t.test("restarts keep the point of greatest loss of each sample", function()
  local one = A.ProjectedGradientDescent(net, { eps = 0.1, eps_iter = 0.05, nb_iter = 1, seed = 2 })
  local first = model:losses(one:generate(x, y), y)
  local many = A.ProjectedGradientDescent(net, { eps = 0.1, eps_iter = 0.05, nb_iter = 1, seed = 2, restarts = 5 })
  local best = model:losses(many:generate(x, y), y)
  assert(ops.all(ops.greater_equal(best, first)):item() and ops.any(ops.greater(best, first)):item())
end)

t.test("a random fast gradient step takes the gradient where the random step ends", function()
  -- The loss grows away from 0.5 on either side, and the images lie a little above.
  local function valley(images)
    local height = ops.sum(ops.abs(images - 0.5), 1, true)
    return ops.concat({ -height, height }, 1)
  end
  local images = ops.full({ 8, 4 }, 0.51)
  local attack = A.RandomFastGradientSignMethod(valley, { eps = 0.1, alpha = 0.05, seed = 3 })
  local moved = attack:generate(images, ops.zeros({ 8 }, ms.int32)) - images
  -- Where the random step crosses the valley the second one goes on; with the gradient at the image it would come back.
  t.near(ops.abs(moved), ops.full({ 8, 4 }, 0.1), 1e-6)
  assert(ops.min(moved):item() < 0 and ops.max(moved):item() > 0)
end)

t.test("diverse inputs are diverse", function()
  local settings = { eps = 0.1, eps_iter = 0.02, nb_iter = 5 }
  local function diverse(name, prob)
    return A[name](net, { eps = 0.1, eps_iter = 0.02, nb_iter = 5, prob = prob, seed = 1 }):generate(x, y)
  end
  local plain = A.BasicIterativeMethod(net, settings):generate(x, y)
  assert(same_bits(diverse("DiverseInputIterativeMethod", 0.0), plain))
  assert(largest(diverse("DiverseInputIterativeMethod", 1.0) - plain) > 0.01)
  local momentum = A.MomentumIterativeMethod(net, settings):generate(x, y)
  assert(same_bits(diverse("MomentumDiverseInputIterativeMethod", 0.0), momentum))
  assert(largest(diverse("MomentumDiverseInputIterativeMethod", 1.0) - momentum) > 0.01)
end)

t.test("Auto-PGD keeps its step while the loss grows, and halves it where it does not", function()
  local weight = ms.tensor { { 1.0, -1.0 }, { -2.0, 1.0 } }
  local function linear(images) return ops.matmul(images, weight) end
  local images, labels = ops.zeros { 3, 2 }, ms.tensor({ 0, 1, 0 }, ms.int32)
  local attack = A.AutoProjectedGradientDescent(linear, { eps = 1.0, eps_iter = 0.01, nb_iter = 10, bounds = false })
  attack._random_start = function(_, start) return start end
  t.near(ops.abs(attack:generate(images, labels)), ops.full({ 3, 2 }, 0.1), 1e-6)
  -- A ridge at 0.3: steps of 0.5 leap over it, and only shorter ones come near.
  local function ridge(v)
    local height = -ops.square(ops.sum(v, 1, true) - 0.3)
    return ops.concat({ ops.zeros_like(height), height }, 1)
  end
  local climbing = A.AutoProjectedGradientDescent(ridge, { eps = 1.0, eps_iter = 0.5, nb_iter = 50, bounds = false })
  climbing._random_start = attack._random_start
  local top = climbing:generate(ops.zeros { 1, 1 }, ops.zeros({ 1 }, ms.int32))
  t.near(top:item(), 0.3, 0.02)
end)

t.test("Auto-PGD takes bounds, losses and targets, and gives the best point it saw", function()
  local steps = A.AutoProjectedGradientDescent(net, { eps = 0.2, nb_iter = 12, seed = 5, bounds = { 0.2, 0.9 } })
  local adv = steps:generate(ops.clamp(x, 0.2, 0.9), y)
  assert(ops.min(adv):item() >= 0.2 and ops.max(adv):item() <= 0.9)
  local function cross_entropy(logits, labels) return ops.cross_entropy(logits, labels, { reduction = "none" }) end
  local own = A.AutoProjectedGradientDescent(net, { eps = 0.1, seed = 5, loss_fn = cross_entropy }):generate(x, y)
  t.near(own, A.AutoProjectedGradientDescent(net, { eps = 0.1, seed = 5 }):generate(x, y), 1e-6)
  -- With a step as long as the ball plain descent leaps to and fro; the best point is no worse than where it stops.
  local plain = A.ProjectedGradientDescent(net, { eps = 0.1, eps_iter = 0.2, nb_iter = 10, seed = 5 })
  assert(mean_loss(own) >= mean_loss(plain:generate(x, y)) - 1e-4)
end)

t.test("variance tuning stays within the bounds", function()
  for _, name in ipairs { "VarianceTuningMomentumIterativeMethod", "VarianceTuningNesterovIterativeMethod" } do
    local adv = A[name](net, { eps = 0.5, eps_iter = 0.2, seed = 1 }):generate(x, y)
    assert(ops.min(adv):item() >= 0 and ops.max(adv):item() <= 1)
  end
end)

t.test("eps is a share of the range, and bounds may differ from pixel to pixel", function()
  local wide = A.FastGradientSignMethod(net, { eps = 0.1, bounds = { -1, 3 } }):generate(x, y)
  t.near(largest(wide - x), 0.4, 1e-5)
  local lo, hi = ops.zeros { 1, 10, 10 }, ops.full({ 1, 10, 10 }, 2.0)
  hi[{ 0, 0 }] = 1.0
  local delta = ops.abs(A.FastGradientSignMethod(net, { eps = 0.1, bounds = { lo, hi } }):generate(x, y) - x)
  assert(largest(delta[{ ms.slice(), 0, 0 }]) <= 0.1001)
  t.near(largest(delta[{ ms.slice(), 0, ms.slice(1, 10) }]), 0.2, 1e-5)
  local free = A.ProjectedGradientDescent(net, { eps = 0.5, bounds = false, seed = 1 }):generate(x, y)
  assert(ops.min(free):item() < 0)
end)

t.test("labels may be one-hot, and a loss of the whole batch is taken sample by sample", function()
  local expected = A.BasicIterativeMethod(net, { eps = 0.1 }):generate(x, y)
  assert(same_bits(A.BasicIterativeMethod(net, { eps = 0.1 }):generate(x, common.one_hot(y, 5)), expected))
  local mean = A.BasicIterativeMethod(net, { eps = 0.1, loss_fn = nn.CrossEntropyLoss() })
  t.near(mean:generate(x, y), expected, 1e-6)
  t.near(common.classifier("test", net, nn.CrossEntropyLoss()):losses(x, y), model:losses(x, y), 1e-6)
end)

t.test("batch_generate gives what generate gives, batch by batch", function()
  local attack = A.BasicIterativeMethod(net, { eps = 0.1 })
  t.near(attack:batch_generate(x, y, 4), attack:generate(x, y), 1e-6)
  t.near(attack:batch_generate(x, y, { batch_size = 1 }), attack:generate(x, y), 1e-6)
end)

t.test("the network predicts while it is attacked, and is as before afterwards", function()
  local dropping = nn.SequentialCell(nn.Flatten(), nn.Dropout { p = 0.9 }, nn.Dense(100, 5))
  dropping:set_train(true)
  local attack = A.FastGradientSignMethod(dropping, { eps = 0.1 })
  assert(same_bits(attack:generate(x, y), attack:generate(x, y)))
  assert(dropping.training and dropping[2].training)
  t.fails("no such loss", function()
    A.FastGradientSignMethod(dropping, { loss_fn = function() error "no such loss" end }):generate(x, y)
  end)
  assert(dropping[2].training)
end)

t.test("attacks work on another device", function()
  ms.set_context { device_target = "Separate" }
  local ok, wrong = pcall(function()
    local there = nn.SequentialCell(nn.Flatten(), nn.Dense(100, 5))
    local images, labels = ops.rand { 3, 1, 10, 10 }, ms.tensor({ 0, 1, 2 }, ms.int32)
    for _, name in ipairs(every) do
      local adv = A[name](there, { eps = 0.1 }):generate(images, labels)
      assert(largest(adv - images) <= 0.1001 and largest(adv - images) > 0.01, name)
    end
  end)
  ms.set_context { device_target = "CPU" }
  assert(ok, wrong)
end)

t.test("mistakes are errors that say what to do", function()
  local PGD = A.ProjectedGradientDescent
  local function attacked(inputs, labels, options) return PGD(net, options):generate(inputs, labels) end
  t.fails({ "ProjectedGradientDescent: network", "got 3" }, PGD, 3)
  t.fails({ "eps must be a positive number", "0" }, PGD, net, { eps = 0 })
  t.fails({ "nb_iter must be positive" }, PGD, net, { nb_iter = 0 })
  t.fails({ "there is no argument 'epsilon'" }, PGD, net, { epsilon = 1 })
  t.fails({ "the first bound must be less than the second: 1 and 0" }, PGD, net, { bounds = { 1, 0 } })
  t.fails({ "the norm must be 1, 2 or 'inf'", "3" }, PGD, net, { norm_level = 3 })
  t.fails({ "loss_fn must be a callable" }, PGD, net, { loss_fn = 1 })
  for _, name in ipairs { "FastGradientMethod", "FastGradientSignMethod", "LeastLikelyClassMethod" } do
    t.fails({ name .. ": seed has no effect without alpha" }, A[name], net, { seed = 3 })
    local function once() return A[name](net, { alpha = 0.01, seed = 3 }):generate(x, y) end
    assert(same_bits(once(), once()), name)
  end
  t.fails({ "seed has no effect without a random start" }, PGD, net, { seed = 3, random_start = false })
  t.fails({ "restarts is 2, but without a random start" }, PGD, net, { restarts = 2, random_start = false })
  t.fails({ "the random step must be the shorter one" }, A.FastGradientMethod, net, { alpha = 0.1, eps = 0.1 })
  t.fails({ "one of 'ce', 'dlr'" }, A.AutoProjectedGradientDescent, net, { loss_fn = "hinge" })
  t.fails({ "generate: inputs lie between", "outside of the bounds 0", "{ bounds = { lo, hi } }" }, attacked, x * 255, y)
  t.fails({ "hold no sample" }, attacked, x[{ ms.slice(0, 0) }], y)
  t.fails({ "inputs must be of a floating dtype", "Int32" }, attacked, ops.zeros({ 2, 1, 10, 10 }, ms.int32), y)
  t.fails({ "inputs hold nan" }, attacked, x * (0 / 0), y)
  t.fails({ "there are 6 inputs, and labels of shape (2,)" }, attacked, x, ms.tensor { 0, 1 })
  t.fails({ "labels lie between 0 and 5, and there are 5 classes" }, attacked, x, ms.tensor { 0, 1, 2, 3, 4, 5 })
  t.fails({ "labels must be integers (N,)" }, attacked, x, ops.rand { 6 })
  t.fails({ "one-hot labels have 4 columns, and the network has 5 classes" }, attacked, x, ops.eye(6, 4))
  t.fails({ "labels of two axes must be one-hot" }, attacked, x, ops.full({ 6, 5 }, 0.2))
  t.fails({ "labels must be a tensor" }, attacked, x, nil)
  t.fails({ "diverse inputs are images (N, C, H, W)" }, function()
    local dense = nn.Dense(4, 3)
    A.DiverseInputIterativeMethod(dense):generate(ops.rand { 2, 4 }, ms.tensor { 0, 1 })
  end)
  t.fails({ "the network must give logits (N, classes)" }, function()
    A.FastGradientSignMethod(function(v) return ops.sum(v) end):generate(x, y)
  end)
  t.fails({ "takes 3 classes at least, and the network has 2" }, function()
    A.AutoProjectedGradientDescent(nn.Dense(4, 2), { loss_fn = "dlr" }):generate(ops.rand { 2, 4 }, ms.tensor { 0, 1 })
  end)
  t.fails({ "batch_size must be positive" }, function() PGD(net):batch_generate(x, y, 0) end)
  t.fails({ "hold nan or infinity" }, function()
    A.FastGradientSignMethod(function(v) return ops.sqrt(v - 2) end):generate(ops.rand { 2, 4 }, ms.tensor { 0, 1 })
  end)
end)

t.finish()
