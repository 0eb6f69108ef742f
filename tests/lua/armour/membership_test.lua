-- Attacks on nets that know their rows by heart and on nets that do not, classifiers on problems whose answer is known, audits of
-- mechanisms whose epsilon is known, and of private training. About 3 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local learners = require "lunaria.armour.inference.learners"
local armour = require "lunaria.armour.common"
local ops, nn = ms.ops, ms.nn
local E = ms.armour.privacy.evaluation
local A = ms.armour.privacy.accountants

ms.set_seed(5)

t.test("the classifiers learn what they can: a line, a circle, noise", function()
  local draws = armour.generator(3)
  local x = draws:normal({ 400, 2 }, ms.float64)
  local test = draws:normal({ 400, 2 }, ms.float64)
  local line = function(z) return ops.greater(z[{ ms.slice(), 0 }] * 2 - z[{ ms.slice(), 1 }], 0.3):astype(ms.int32):tolist() end
  local circle = function(z) return ops.less(ops.sum(z * z, 1), 1.4):astype(ms.int32):tolist() end
  local coin = function(z) return ops.less(draws:uniform({ z.shape[1] }), 0.5):astype(ms.int32):tolist() end
  local function accuracy(method, rule)
    local settings = {}
    for name, value in pairs(learners.defaults[method]) do settings[name] = value end
    local predict = learners.fit[method](x, rule(x), settings, armour.generator(1))
    local right, truth = 0, rule(test)
    for i, share in ipairs(predict(test)) do right = right + ((share > 0.5) == (truth[i] == 1) and 1 or 0) end
    return right / 400
  end
  for _, method in ipairs { "lr", "knn", "rf", "mlp" } do
    local found = accuracy(method, line)
    assert(found > 0.94, ("%s: %g of a line"):format(method, found))
    found = accuracy(method, coin)
    assert(math.abs(found - 0.5) < 0.09, ("%s: %g of coins"):format(method, found))
  end
  for _, method in ipairs { "knn", "rf", "mlp" } do
    local found = accuracy(method, circle)
    assert(found > 0.9, ("%s: %g of a circle"):format(method, found))
  end
  assert(accuracy("lr", circle) < 0.75)
end)

t.test("logistic regression is at the minimum of its objective", function()
  local draws = armour.generator(4)
  local x, y = draws:normal({ 50, 3 }, ms.float64), {}
  for i = 1, 50 do y[i] = i % 2 end
  local predict = learners.fit.lr(x, y, { C = 0.7, max_iter = 30 })
  -- At the minimum the weights are C X^T (y - p), and the sum of y - p is 0, as the intercept is free.
  local rest = ms.tensor(y, ms.float64) - ms.tensor(predict(x), ms.float64)
  t.near(ops.sum(rest):item(), 0, 1e-7)
  local weights = ops.matmul(x:t(), rest:reshape { 50, 1 }) * 0.7
  local logits = ops.matmul(x, weights):reshape { 50 }
  local got = ops.logit(ms.tensor(predict(x), ms.float64))
  t.near(got - got[0], logits - logits[0], 1e-6)
end)

-- Rows of random labels, which only memory can tell.
local function memorized()
  local x, y = ms.randn { 240, 12 }, ms.randint(0, 4, { 240 }):astype(ms.int32)
  local function part(from, to) return { x[{ ms.slice(from, to) }], y[{ ms.slice(from, to) }] } end
  local members, others = part(0, 120), part(120, 240)
  local net = nn.SequentialCell(nn.Dense(12, 64), nn.ReLU(), nn.Dense(64, 4))
  local optimizer = nn.Adam(net:trainable_params(), 1e-2)
  local step = ms.value_and_grad(function() return ops.cross_entropy(net(members[1]), members[2]) end, nil, net:trainable_params())
  for _ = 1, 120 do
    local _, gradients = step()
    optimizer(gradients)
  end
  return net, members, others
end

local function halves(data)
  local n = data[1].shape[1] // 2
  local function part(from, to) return { data[1][{ ms.slice(from, to) }], data[2][{ ms.slice(from, to) }] } end
  return part(0, n), part(n, 2 * n)
end

t.test("membership shows in a net that knows its rows by heart, and not in one that was not trained", function()
  local net, members, others = memorized()
  local members_1, members_2 = halves(members)
  local others_1, others_2 = halves(others)
  local attack = E.MembershipInference(net)
  attack:train(members_1, others_1, {
    { method = "lr", params = { C = { 0.1, 1.0 } } }, { method = "knn", params = { n_neighbors = { 3, 7 } } },
    { method = "rf", params = { n_estimators = { 30 } } }, { method = "mlp", params = { max_iter = { 40 }, batch_size = 30 } },
  })
  local all = { "accuracy", "precision", "recall", "advantage", "auc" }
  for i, found in ipairs(attack:eval(members_2, others_2, all)) do
    local is_found = found.accuracy > 0.7 and found.auc > 0.75 and found.precision > 0.65 and found.recall > 0.6
    assert(is_found, ("attack %d: %g"):format(i, found.accuracy))
    t.near(found.advantage, 2 * found.accuracy - 1, 1e-9)
  end
  assert(E.loss_attack(net, members, others).advantage > 0.5)
  local fresh = nn.SequentialCell(nn.Dense(12, 64), nn.ReLU(), nn.Dense(64, 4))
  assert(E.loss_attack(fresh, members, others).advantage < 0.25)
  -- Data sets of batches are as good as tensors, and seeds give the same attack.
  local set = ms.dataset.NumpySlicesDataset({ members_1[1], members_1[2] }, { column_names = { "x", "y" }, shuffle = false }):batch(16)
  local again = E.MembershipInference(net)
  again:train(set, others_1, { { method = "rf", params = { n_estimators = { 10 } } } })
  local once = again:eval(members_2, others_2)[1].accuracy
  again:train(members_1, others_1, { { method = "rf", params = { n_estimators = { 10 } } } })
  t.equal(again:eval(members_2, others_2)[1].accuracy, once)
end)

t.test("likelihood ratios find members where a threshold on all rows does not", function()
  local draws = armour.generator(9)
  local models, n = 24, 400
  -- Rows differ in difficulty by far more than membership moves them.
  local difficulty = draws:normal({ 1, n }, ms.float64) * 5
  local member = ops.less(draws:uniform({ models, n }), 0.5)
  local phi = difficulty + draws:normal({ models, n }, ms.float64) * 0.5 + member:astype(ms.float64) * 1.5
  local target_member = ops.less(draws:uniform({ n }), 0.5)
  local target = difficulty:reshape { n } + draws:normal({ n }, ms.float64) * 0.5 + target_member:astype(ms.float64) * 1.5
  local function auc(scores)
    local inside, outside, flags = {}, {}, target_member:tolist()
    for i, score in ipairs(scores:tolist()) do table.insert(flags[i] and inside or outside, score) end
    return E.threshold_attack(inside, outside).auc
  end
  local online = auc(E.LiRA(phi, member):score(target))
  local fixed = auc(E.LiRA(phi, member, { fixed_variance = true }):score(target))
  local offline = auc(E.LiRA(phi - member:astype(ms.float64) * 1.5, ms.zeros({ models, n }, ms.bool_)):score(target))
  local plain = auc(target)
  assert(plain < 0.65 and online > 0.93 and fixed > 0.95 and offline > 0.9, ("%g %g %g %g"):format(plain, online, fixed, offline))
  t.near(E.logit_confidence(ms.tensor { { 40.0, 1.0, 0.0 } }, ms.tensor { 0 }):item(), 40 - math.log(math.exp(1) + 1), 1e-5)
end)

t.test("shadow models find members of a net that knows its rows by heart", function()
  local net, members, others = memorized()
  local x, y = ops.concat({ members[1], others[1] }, 0), ops.concat({ members[2], others[2] }, 0)
  local function train(inputs, labels)
    local shadow = nn.SequentialCell(nn.Dense(12, 64), nn.ReLU(), nn.Dense(64, 4))
    local optimizer = nn.Adam(shadow:trainable_params(), 1e-2)
    local step = ms.value_and_grad(function() return ops.cross_entropy(shadow(inputs), labels) end, nil, shadow:trainable_params())
    for _ = 1, 60 do
      local _, gradients = step()
      optimizer(gradients)
    end
    return shadow
  end
  local phi, member = E.shadow_models(train, { x, y }, { models = 8 })
  t.equal(ops.sum(member:astype(ms.int32), 0):tolist(), ops.full({ 240 }, 4, { dtype = ms.int32 }):tolist())
  local scores = E.LiRA(phi, member, { fixed_variance = true }):score(E.logit_confidence(net(x), y))
  local found = E.threshold_attack(scores[{ ms.slice(0, 120) }], scores[{ ms.slice(120, 240) }])
  assert(found.auc > 0.9, found.auc)
end)

t.test("an attribute that the answers depend on is guessed", function()
  local x = ops.concat({ ms.randn { 300, 2 }, ms.randint(0, 2, { 300, 1 }):astype(ms.float32) }, 1)
  local weights = ms.tensor { { 0.5, -0.5 }, { 0.2, 0.1 }, { -2.0, 2.0 } }
  local function network(z) return ops.matmul(z, weights) + ms.tensor { 1.0, -1.0 } end
  local labels = ops.argmax(network(x) + ms.randn { 300, 2 }, 1):astype(ms.int32)
  local attack = E.AttributeInference(network, 2, { method = "rf", params = { n_estimators = 30 } })
  local function part(from, to) return { x[{ ms.slice(from, to) }], labels[{ ms.slice(from, to) }] } end
  local known, unknown = part(0, 200), part(200, 300)
  attack:train(known)
  local truth = unknown[1][{ ms.slice(), 2 }]:astype(ms.int32)
  assert(ops.mean(ops.equal(attack:infer(unknown), truth):astype(ms.float32)):item() > 0.8)
  -- The column itself is not looked at.
  local hidden = { unknown[1] * ms.tensor { { 1.0, 1.0, 0.0 } }, unknown[2] }
  t.equal(attack:infer(hidden), attack:infer(unknown))
end)

t.test("intervals of Clopper and Pearson hold what they say", function()
  local low, high = E.clopper_pearson(5, 20, 0.95)
  t.near(low, 0.0865715, 1e-6)
  t.near(high, 0.4910459, 1e-6)
  low, high = E.clopper_pearson(0, 30)
  t.near(low, 0, 0)
  t.near(high, 1 - 0.025 ^ (1 / 30), 1e-9)
end)

t.test("an audit of one Gaussian answer comes near its epsilon from below", function()
  -- sigma 0.5: delta 1e-5 at epsilon 9.9; what 2000 runs prove is bounded by their number.
  local draws = armour.generator(2)
  local function run(has_canary, seeds) return draws:normal({ seeds.shape[1] }, ms.float64) * 0.5 + (has_canary and 1.0 or 0.0) end
  local found = E.canary_audit(run, { runs = 4000, delta = 1e-5 })
  local claim = A.Accountant()
  claim:step { noise_multiplier = 0.5 }
  assert(found.epsilon > 2.5 and found.epsilon <= claim:epsilon(1e-5), found.epsilon)
  -- A claim that is wrong is found out: sensitivity 4 where 1 is accounted for.
  local function loud(has_canary, seeds) return draws:normal({ seeds.shape[1] }) + (has_canary and 4.0 or 0.0) end
  local wrong = E.canary_audit(loud, { runs = 1000, delta = 1e-5 })
  local small = A.Accountant()
  small:step { noise_multiplier = 2.0 }
  assert(wrong.epsilon > small:epsilon(1e-5), wrong.epsilon)
  -- No difference, no epsilon.
  t.near(E.canary_audit(function(_, seeds) return draws:normal({ seeds.shape[1] }) end, { runs = 1000 }).epsilon, 0, 0.5)
end)

-- Private training of a linear classifier, many runs at a time: per-sample gradients by vmap over runs and rows, clipped, of rows that take
-- part by coins, with noise.
local function private_runs(x, y, steps, rate, sigma, clip)
  local n, d = x.shape[1], x.shape[2]
  local gradient = ms.grad(function(w, row, label) return ops.softplus(-label * ops.sum(w * row)) end)
  local per_row = ms.vmap(gradient, { in_axes = { nil, 0, 0 } })
  local per_run = ms.vmap(function(w) return per_row(w, x, y) end)
  return function(seeds)
    local draws = armour.generator(seeds[0]:item())
    local runs = seeds.shape[1]
    local w = ms.zeros { runs, d }
    for _ = 1, steps do
      local gradients = per_run(w)
      local norms = ops.sqrt(ops.sum(gradients * gradients, 2, { keepdim = true }))
      local taken = ops.less(draws:uniform({ runs, n, 1 }), rate):astype(ms.float32)
      local sum = ops.sum(gradients * taken * ops.clamp(clip / (norms + 1e-12), nil, 1.0), 1)
      w = w - 0.5 * (sum + draws:normal({ runs, d }) * (sigma * clip)) / (rate * n)
    end
    return w
  end
end

t.test("1000 runs of private training prove no more than the accountant claims", function()
  local d, n, steps, rate, sigma = 8, 12, 15, 0.5, 3.0
  local x = ops.concat({ ms.randn { n, d - 1 }, ms.zeros { n, 1 } }, 1)
  local y = ops.sign(x[{ ms.slice(), 0 }])
  -- The canary is the only row with the last column, whose weight tells whether it was there.
  local canary = ops.concat({ ms.zeros { 1, d - 1 }, ms.full({ 1, 1 }, 50.0) }, 1)
  local with = private_runs(ops.concat({ x, canary }, 0), ops.concat({ y, ms.ones { 1 } }, 0), steps, rate, sigma, 1.0)
  local without = private_runs(x, y, steps, rate, sigma, 1.0)
  local last = { ms.slice(), d - 1 }
  local function score(has_canary, seeds) return (has_canary and with or without)(seeds)[last] end
  local found = E.canary_audit(score, { runs = 1000, delta = 1e-5 })
  local claim = A.Accountant()
  claim:step { noise_multiplier = sigma, sample_rate = rate, steps = steps }
  local epsilon = claim:epsilon(1e-5)
  assert(found.epsilon > 0.3 and found.epsilon <= epsilon, ("%g, claimed %g"):format(found.epsilon, epsilon))
  -- Clipping at a bound 30 times that which the noise is for proves more than is claimed.
  local loose = private_runs(ops.concat({ x, canary }, 0), ops.concat({ y, ms.ones { 1 } }, 0), steps, rate, sigma / 30, 30.0)
  local function broken(has_canary, seeds) return (has_canary and loose or without)(seeds)[last] end
  local wrong = E.canary_audit(broken, { runs = 1000, delta = 1e-5 })
  assert(wrong.epsilon > epsilon, wrong.epsilon)
end)

t.test("bad input is an error that says what is wrong", function()
  local net = nn.Dense(2, 3)
  local data = { ms.ones { 4, 2 }, ms.tensor { 0, 1, 2, 0 } }
  local attack = E.MembershipInference(net)
  t.fails({ "eval", "no attack has been trained" }, attack.eval, attack, data, data)
  t.fails({ "train", "method must be one of", "svm" }, attack.train, attack, data, data, { { method = "svm" } })
  t.fails({ "train", "has no parameter 'c'", "C" }, attack.train, attack, data, data, { { method = "lr", params = { c = { 1.0 } } } })
  local none = { { method = "knn", params = { n_neighbors = { 0 } } } }
  t.fails({ "train", "n_neighbors must be positive" }, attack.train, attack, data, data, none)
  t.fails({ "train", "attack_config must be a list" }, attack.train, attack, data, data, {})
  t.fails({ "train", "labels lie between" }, attack.train, attack, { data[1], ms.tensor { 0, 1, 2, -1 } }, data, { { method = "lr" } })
  attack:train(data, data, { { method = "lr" } })
  t.fails({ "eval", "metrics must be one of", "f1" }, attack.eval, attack, data, data, { "f1" })
  t.fails({ "MembershipInference", "network must be a cell or a function" }, E.MembershipInference, 3)
  t.fails({ "threshold_attack", "members must be" }, E.threshold_attack, {}, { 1.0 })
  t.fails({ "threshold_attack", "nan" }, E.threshold_attack, { 0 / 0 }, { 1.0 })
  t.fails({ "LiRA", "every row must be in at least two" }, E.LiRA, ms.ones { 3, 1 }, ms.tensor { { true }, { false }, { false } })
  t.fails({ "LiRA", "membership must be a tensor of shape" }, E.LiRA, ms.ones { 3, 1 }, ms.ones { 3 })
  t.fails({ "audit", "at least 4 scores" }, E.audit, { 1.0 }, { 1.0 })
  t.fails({ "canary_audit", "train must give" }, E.canary_audit, function() return 1 end)
  t.fails({ "clopper_pearson", "hits must be at most n" }, E.clopper_pearson, 3, 2)
  t.fails({ "AttributeInference", "method must be one of" }, E.AttributeInference, net, 0, { method = "tree" })
  local attribute = E.AttributeInference(net, 5)
  t.fails({ "train", "with the column 5" }, attribute.train, attribute, data)
end)

t.finish()
