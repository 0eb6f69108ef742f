-- Adversarial training: what its losses are by hand, that it makes networks robust, seeds, and as a callback of Model. Three seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local D, attacks, nn, ops = ms.armour.defenses, ms.armour.attacks, ms.nn, ms.ops

-- Two classes that the mean of many pixels tells apart by little, and a pixel by much: plain training rests on the many.
local function data(count, seed)
  local g = ms.Generator():manual_seed(seed)
  local labels = ops.randint(0, 2, { count }, { generator = g }):astype(ms.int32)
  local side = (labels:astype(ms.float32) * 2 - 1):reshape { -1, 1 }
  local weak = 0.5 + side * 0.04 + 0.06 * ops.randn({ count, 100 }, { generator = g })
  local strong = 0.5 + side * 0.35 + 0.08 * ops.randn({ count, 2 }, { generator = g })
  return ops.clamp(ops.concat({ weak, strong }, 1), 0.0, 1.0), labels
end

local function network(seed)
  ms.set_seed(seed)
  return nn.SequentialCell(nn.Dense(102, 16), nn.ReLU(), nn.Dense(16, 2))
end

local images, labels = data(256, 1)
local held, held_labels = data(200, 2)
local eps = 0.1

local function accuracy(net, x)
  return ops.mean(ops.equal(ops.argmax(net(x), 1), held_labels):astype(ms.float32)):item()
end
local function robust(net)
  return accuracy(net, attacks.FastGradientSignMethod(net, { eps = eps }):generate(held, held_labels))
end
local function trained(make)
  local net = network(5)
  -- From a network that has learned something: where answers are by chance, attacks keep them so.
  D.AdversarialDefense(net, nil, nn.Adam(net:trainable_params(), 0.005)):batch_defense(images, labels, { epochs = 10, seed = 2 })
  local defense = make(net, nn.Adam(net:trainable_params(), 0.005))
  local last, all = defense:batch_defense(images, labels, { batch_size = 64, epochs = 30, seed = 3 })
  t.equal(#all, 30)
  t.equal(last, all[#all])
  t.equal(last < all[1], true)
  return net, last
end

local plain = trained(function(net, opt) return D.AdversarialDefense(net, nil, opt) end)
local plain_robust = robust(plain)

t.test("plain training is not robust here", function()
  t.equal(accuracy(plain, held) > 0.95, true)
  t.equal(plain_robust < 0.9, true)
end)

for name, make in pairs {
  NaturalAdversarialDefense = function(net, opt) return D.NaturalAdversarialDefense(net, nil, opt, { eps = eps, replace_ratio = 1.0 }) end,
  TradesDefense = function(net, opt)
    return D.TradesDefense(net, opt, { eps = eps, eps_iter = 0.04, nb_iter = 4, beta = 2.0, seed = 1 })
  end,
  MartDefense = function(net, opt) return D.MartDefense(net, opt, { eps = eps, eps_iter = 0.04, nb_iter = 4, seed = 1 }) end,
  FastAdversarialDefense = function(net, opt) return D.FastAdversarialDefense(net, nil, opt, { eps = eps, alpha = 0.12, seed = 1 }) end,
  FreeAdversarialDefense = function(net, opt) return D.FreeAdversarialDefense(net, nil, opt, { eps = eps, replays = 2 }) end,
} do
  t.test(name .. " makes a network robust", function()
    local net = trained(make)
    t.equal(robust(net) > plain_robust + 0.15, true)
    t.equal(accuracy(net, held) > 0.9, true)
  end)
end

t.test("a part of a batch is changed, by each attack an equal part, and labels stay beside their samples", function()
  local net = network(6)
  local seen = {}
  local Mark = ms.armour.Attack:extend("Mark")
  function Mark:init(value) self.value = value end
  function Mark:_generate(x, y)
    seen[self.value] = x.shape[1]
    return x * 0 + self.value + y:reshape({ -1, 1 }):astype(ms.float32) * 0.25
  end
  local defense = D.EnsembleAdversarialDefense(net, { Mark(0.5), Mark(0.25) }, { replace_ratio = 0.7, seed = 4 })
  local x = images[{ ms.slice(0, 10) }]
  local changed, y = defense:adversarial(x, labels[{ ms.slice(0, 10) }])
  t.equal({ seen[0.5], seen[0.25] }, { 3, 4 })
  local rows, before, classes, count = changed:tolist(), x:tolist(), y:tolist(), 0
  for i = 1, 10 do
    if rows[i][1] ~= before[i][1] then
      count = count + 1
      t.equal(rows[i][1] == 0.5 + classes[i] * 0.25 or rows[i][1] == 0.25 + classes[i] * 0.25, true)
    end
  end
  t.equal(count, 7)
end)

t.test("the losses of TRADES and MART are those of their papers", function()
  local net = network(7)
  local clean, adv = images[{ ms.slice(0, 5) }], ops.clamp(images[{ ms.slice(0, 5) }] + 0.1, 0.0, 1.0)
  local y = labels[{ ms.slice(0, 5) }]
  local p, q = ops.softmax(net(clean), 1):tolist(), ops.softmax(net(adv), 1):tolist()
  local trades, mart = 0, 0
  for i, label in ipairs(y:tolist()) do
    local own, other, kl = label + 1, 2 - label, 0
    for k = 1, 2 do kl = kl + p[i][k] * math.log(p[i][k] / q[i][k]) end
    trades = trades + (-math.log(p[i][own]) + 3 * kl) / 5
    mart = mart + (-math.log(q[i][own]) - math.log(1 - q[i][other]) + 2 * kl * (1 - p[i][own])) / 5
  end
  t.near(D.TradesDefense(net, { beta = 3.0 }):loss_network()(clean, y, adv):item(), trades, 1e-5)
  t.near(D.MartDefense(net, { beta = 2.0 }):loss_network()(clean, y, adv):item(), mart, 1e-5)
end)

t.test("the loss of MART is finite where the network is sure", function()
  local net = nn.Dense(2, 2, { has_bias = false })
  net.weight:assign(ms.tensor { { 400.0, 0.0 }, { 0.0, 400.0 } })
  local x = ms.tensor { { 1.0, 0.0 } }
  local loss = D.MartDefense(net):loss_network()
  t.near(loss(x, ms.tensor({ 1 }, ms.int32), x):item(), 800, 1e-3)
  local slope = ms.grad(function(z) return loss(z, ms.tensor({ 1 }, ms.int32), z) end)(x)
  t.equal(ops.all(ops.isfinite(slope)):item(), true)
end)

t.test("the same seeds give the same weights", function()
  local function weights()
    local net = network(8)
    local defense = D.ProjectedAdversarialDefense(net, { seed = 2, nb_iter = 2, replace_ratio = 0.5 })
    defense:batch_defense(images, labels, { epochs = 1, seed = 1 })
    return net[1].weight
  end
  t.equal(weights(), weights())
end)

t.test("a defence is a callback of Model.train", function()
  local function by_model(make)
    local net = network(9)
    local defense = make(net)
    local own = defense:loss_network()
    local model = ms.Model(own, nil, nn.SGD(net:trainable_params(), 0.1))
    model:train(1, { { images, labels }, { images, labels } }, D.AdversarialTraining(defense))
    return net[1].weight
  end
  local function by_hand(make)
    local net = network(9)
    local defense = make(net, nn.SGD(net:trainable_params(), 0.1))
    for _ = 1, 2 do defense:defense(images, labels) end
    return net[1].weight
  end
  for _, make in ipairs {
    function(net, opt) return D.NaturalAdversarialDefense(net, nil, opt, { seed = 1 }) end,
    function(net, opt) return D.TradesDefense(net, opt, { seed = 1, nb_iter = 2 }) end,
  } do
    t.near(by_model(make), by_hand(make), 1e-6)
  end
  local net = network(9)
  local model = ms.Model(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 0.1))
  local callback = D.AdversarialTraining(D.NaturalAdversarialDefense(net))
  t.fails({ "dataset_sink_mode" }, model.train, model, 1, { { images, labels } }, callback, true)
  local free = D.AdversarialTraining(D.FreeAdversarialDefense(net))
  t.fails({ "call defense(inputs, labels)" }, model.train, model, 1, { { images, labels } }, free)
  t.fails({ "must be one of ms.armour.defenses" }, D.AdversarialTraining, net)
end)

t.test("balls of each norm in bounds that are tensors, and samples outside of the bounds", function()
  local lo, hi = ops.zeros { 1, 102 }, ops.full({ 1, 102 }, 2.0)
  local x, y = ops.rand { 3, 102 }, ms.tensor({ 0, 1, 0 }, ms.int32)
  for _, name in ipairs { "TradesDefense", "MartDefense" } do
    for _, norm in ipairs { 1, 2, "inf" } do
      -- The bounds as numbers and as tensors are the same ball.
      local function adversarial(bounds)
        local defense = D[name](network(4), { bounds = bounds, norm_level = norm, nb_iter = 2, eps = 0.2, eps_iter = 0.1, seed = 3 })
        return (select(3, defense:adversarial(x, y)))
      end
      t.near(adversarial { lo, hi }, adversarial { 0.0, 2.0 }, 1e-5)
    end
    t.fails({ "outside of the bounds 0.0 and 1.0" }, function() D[name](network(4)):defense(x * 5, y) end)
  end
  t.fails({ "outside of the bounds" }, function() D.FastAdversarialDefense(network(4)):defense(x * 5, y) end)
  t.fails({ "outside of the bounds" }, function() D.FreeAdversarialDefense(network(4)):defense(x * 5, y) end)
end)

t.test("what is wrong is said", function()
  local net = network(1)
  t.fails({ "replace_ratio must be a probability" }, D.NaturalAdversarialDefense, net, { replace_ratio = 1.5 })
  t.fails({ "attacks must be a list" }, D.EnsembleAdversarialDefense, net, {})
  t.fails({ "attacks[1] must be an attack" }, D.EnsembleAdversarialDefense, net, { net })
  t.fails({ "beta must be a positive number" }, D.TradesDefense, net, { beta = 0 })
  t.fails({ "eps must be a positive number" }, D.FastAdversarialDefense, net, { eps = 0 })
  t.fails({ "did you mean 'replays'" }, D.FreeAdversarialDefense, net, { replay = 3 })
  t.fails({ "there are 2 inputs, and labels of shape (3,)" }, function()
    D.AdversarialDefense(net):defense(ms.ones { 2, 102 }, ms.tensor({ 0, 1, 1 }, ms.int32))
  end)
  t.fails({ "hold no sample" }, function() D.AdversarialDefense(net):defense(ms.zeros { 0, 102 }, ms.zeros({ 0 }, ms.int32)) end)
  t.fails({ "no trainable parameters" }, D.AdversarialDefense, nn.ReLU())
end)

t.finish()
