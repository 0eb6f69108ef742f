-- Client rules: what they compute by hand, what parties keep, and that they run under vmap. Three seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local F, nn, ops = ms.federated, ms.nn, ms.ops
local S, FeatureMap, train, find = F.strategies, F.FeatureMap, F.client_rules.train, F.client_rules.find

local draws = require "lunaria.armour.common".generator(8)

local function network(seed)
  ms.set_seed(seed or 1)
  return nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2))
end

local function batches(count, size, seed)
  local g = require "lunaria.armour.common".generator(seed or 4)
  local list = {}
  for i = 1, count do
    local x = g:normal { size or 6, 3 }
    list[i] = { x, ops.greater(ops.sum(x, 1), 0):astype(ms.int32) }
  end
  return list
end

local function cross_entropy(y, labels) return ops.cross_entropy(y, labels) end

local function party(net) return { network = net, loss_fn = cross_entropy } end

local function near(a, b, tolerance) t.near(a:vector():tolist(), b:vector():tolist(), tolerance) end

t.test("plain steps are those of the optimizer SGD, with momentum and decay", function()
  for _, s in ipairs { { lr = 0.1 }, { lr = 0.05, momentum = 0.9 }, { lr = 0.1, momentum = 0.5, weight_decay = 0.01 } } do
    local mine, other, data = network(), network(), batches(4)
    s.epochs = 3
    local update = train(party(mine), data, s, {})
    local optimizer = nn.SGD(other:trainable_params(), s.lr, { momentum = s.momentum, weight_decay = s.weight_decay })
    local step = nn.TrainOneStepCell(nn.WithLossCell(other, cross_entropy), optimizer)
    for _ = 1, 3 do
      for _, batch in ipairs(data) do step(batch[1], batch[2]) end
    end
    near(update.weights, FeatureMap(other), 1e-6)
    near(update.weights, FeatureMap(mine), 0)
    t.equal({ update.samples, update.metrics.steps }, { 24, 12 })
  end
end)

t.test("a cell may give the loss itself, and steps may end a training", function()
  local net = network()
  local update = train(nn.WithLossCell(net, cross_entropy), batches(5), { lr = 0.1, steps = 2, epochs = 4 }, {})
  t.equal({ update.metrics.steps, update.samples }, { 2, 12 })
  local cells_of_loss = train(party(network()), batches(5), { lr = 0.1, steps = 2 }, {})
  t.equal(update.metrics.loss, cells_of_loss.metrics.loss)
end)

-- A rule on loss 0.5 |w - c|^2 with n numbers: gradient w - c.
local function run(name, s, steps, options)
  options = options or {}
  local rule, c = find(name), options.centre
  local gradient = function(w) return ops.sum((w - c) * (w - c)) * 0.5, w - c end
  local w0 = options.start
  local state = options.state or rule.initial and rule.initial(w0) or {}
  local carry = rule.begin(w0, s, state)
  for k = 0, steps - 1 do carry = rule.step(carry, options.gradient or gradient, s, k) end
  return rule.finish(carry, w0, s, steps, state)
end

local start, centre = draws:normal({ 5 }, ms.float64), draws:normal({ 5 }, ms.float64)

t.test("a proximal term holds weights near where they began", function()
  local w = run("prox", { lr = 0.1, mu = 2.0 }, 50, { start = start, centre = centre })
  -- The fixed point of (w - c) + 2 (w - w0).
  local expected = (centre + start * 2.0) / 3.0
  t.near(w:tolist(), expected:tolist(), 1e-5)
  t.near(run("prox", { lr = 0.1, mu = 0.0 }, 7, { start = start, centre = centre }):tolist(),
    run("sgd", { lr = 0.1 }, 7, { start = start, centre = centre }):tolist(), 1e-15)
end)

t.test("a normalizer is how far steps lead along one gradient", function()
  local function constant(w) return ops.sum(w), ops.ones_like(w) end
  for _, s in ipairs { { lr = 0.1 }, { lr = 0.1, momentum = 0.9 }, { lr = 0.1, mu = 0.5 }, { lr = 0.05, mu = 0.5, momentum = 0.6 } } do
    local w, _, metrics = run("nova", s, 6, { start = start, gradient = constant })
    t.near(((start - w) / s.lr):tolist()[2], metrics.normalizer, 1e-12)
  end
end)

t.test("control variates sum up what parties saw", function()
  local control = draws:normal({ 5 }, ms.float64)
  local s = { lr = 0.1, control = control }
  local state = { control = draws:normal({ 5 }, ms.float64) }
  local w, extra, _, kept = run("scaffold", s, 3, { start = start, centre = centre, state = state })
  local x = start
  for _ = 1, 3 do x = x - ((x - centre) + control - state.control) * 0.1 end
  t.near(w:tolist(), x:tolist(), 1e-14)
  local own = state.control - control + (start - w) / 0.3
  t.near(kept.control:tolist(), own:tolist(), 1e-12)
  t.near(extra.control:tolist(), (own - state.control):tolist(), 1e-12)
end)

t.test("Ditto's own weights go on from round to round, drawn to the common ones", function()
  local s = { lr = 0.1, lambda = 0.7 }
  local w, _, _, state = run("ditto", s, 4, { start = start, centre = centre })
  t.near(w:tolist(), run("sgd", s, 4, { start = start, centre = centre }):tolist(), 1e-15)
  local v = start
  for _ = 1, 4 do v = v - ((v - centre) + (v - start) * 0.7) * 0.1 end
  t.near(state.own:tolist(), v:tolist(), 1e-14)
  local _, _, _, second = run("ditto", s, 2, { start = w, centre = centre, state = state })
  for _ = 1, 2 do v = v - ((v - centre) + (v - w) * 0.7) * 0.1 end
  t.near(second.own:tolist(), v:tolist(), 1e-14)
end)

t.test("Per-FedAvg is the gradient after a step, with its second derivative where that is wanted", function()
  local x = draws:normal({ 8, 5 }, ms.float64)
  local y = draws:normal({ 8 }, ms.float64)
  local function loss(w, rows, targets)
    local out = ops.tanh(ops.matmul(rows, w))
    return ops.mean((out - targets) ^ 2)
  end
  local function gradient(w, rows, targets) return ms.value_and_grad(loss)(w, rows, targets) end
  local a, b = { x[{ ms.slice(0, 4) }], y[{ ms.slice(0, 4) }] }, { x[{ ms.slice(4, 8) }], y[{ ms.slice(4, 8) }] }
  local rule = find "per_fedavg"
  local function step(s) return rule.step(rule.begin(start, s, {}), gradient, s, 0, x, y).w end
  local w1 = start - ms.grad(loss)(start, a[1], a[2]) * 0.3
  local first = start - ms.grad(loss)(w1, b[1], b[2]) * 0.1
  t.near(step({ lr = 0.1, alpha = 0.3, order = "first" }):tolist(), first:tolist(), 1e-14)
  local exact = ms.grad(function(w) return loss(w - ms.grad(loss)(w, a[1], a[2]) * 0.3, b[1], b[2]) end)(start)
  t.near(step({ lr = 0.1, alpha = 0.3, order = "hessian_free" }):tolist(), (start - exact * 0.1):tolist(), 1e-7)
end)

t.test("rules run under vmap with a row for each party, to the bit as alone", function()
  local starts, centres = draws:normal { 4, 5 }, draws:normal { 4, 5 }
  for name, s in pairs { sgd = { lr = 0.1, momentum = 0.9 }, prox = { lr = 0.1, mu = 0.5 }, nova = { lr = 0.1 },
    ditto = { lr = 0.1, lambda = 1.0 }, scaffold = { lr = 0.1, control = draws:normal { 5 } }, per_fedavg = { lr = 0.1, alpha = 0.1 } } do
    local rule = find(name)
    local function whole(w0, c)
      local gradient = function(w) return ops.sum((w - c) * (w - c)) * 0.5, w - c end
      local state = rule.initial and rule.initial(w0) or {}
      local carry = rule.begin(w0, s, state)
      for k = 0, 2 do carry = rule.step(carry, gradient, s, k) end
      local w, extra, _, kept = rule.finish(carry, w0, s, 3, state)
      return w, extra.control or w, kept.own or kept.control or w
    end
    local all = table.pack(ms.vmap(whole)(starts, centres))
    for i = 0, 3 do
      local one = table.pack(whole(starts[i], centres[i]))
      for k = 1, 3 do t.equal(all[k][i]:tolist(), one[k]:tolist()) end
    end
  end
end)

local function settings_of(strategy, map, more)
  strategy:prepare(map)
  local s = S.configure(strategy, { number = 1, seed = 1 })
  for key, value in pairs(more) do s[key] = value end
  return s
end

t.test("personal features are trained, kept by the party and not sent", function()
  local server = network(3)
  local global = FeatureMap(server)
  local strategy = S.PersonalHead { "2" }
  local s, state = settings_of(strategy, global, { lr = 0.1 }), {}
  local net = network(3)
  local update = train(party(net), batches(3), s, state)
  t.equal(update.weights:names "aggregated", { "0.weight", "0.bias" })
  local kept = state.personal["2.weight"]:tolist()
  assert(kept[1][1] ~= global["2.weight"]:tolist()[1][1], "the head was not trained")
  t.equal(strategy:prepare(global):refusal(update.weights), nil)
  -- The next round begins with the server's body and the party's own head.
  global:load_into(net)
  s.lr = 1e-30
  train(party(net), batches(1), s, state)
  t.equal(FeatureMap(net)["2.weight"]:tolist(), kept)
  t.equal(FeatureMap(net)["0.weight"], global["0.weight"])
end)

t.test("a party's own network is what it keeps beside the common weights", function()
  local net, s, state = network(3), S.configure(S.Ditto { lambda = 0.1, settings = { lr = 0.1, epochs = 2 } }, { number = 1 }), {}
  local update = train(party(net), batches(3), s, state)
  F.client_rules.personalise(net, s, state)
  near(FeatureMap(net), FeatureMap(net):with_vector(state.rule.own), 0)
  assert(FeatureMap(net):vector():tolist()[1] ~= update.weights:vector():tolist()[1])
  local other, fresh = network(3), FeatureMap(network(3))
  F.client_rules.personalise(other, s, {})
  near(FeatureMap(other), fresh, 0)
end)

t.test("frozen features are neither trained nor sent", function()
  local net = network(3)
  local before = FeatureMap(net)
  local s = settings_of(S.Transfer { "0" }, before, { lr = 0.1 })
  local update = train(party(net), batches(3), s, {})
  t.equal(update.weights:names "aggregated", { "2.weight", "2.bias" })
  t.equal(FeatureMap(net)["0.weight"], before["0.weight"])
  assert(FeatureMap(net)["2.weight"]:tolist()[1][1] ~= before["2.weight"]:tolist()[1][1])
end)

t.test("FedRep trains the head first, and then what lies below", function()
  local net = network(3)
  local before = FeatureMap(net)
  local s = settings_of(S.PersonalHead({ "2" }, { head_steps = 2 }), before, { lr = 0.1, steps = 2 })
  train(party(net), batches(3), s, {})
  t.equal(FeatureMap(net)["0.weight"], before["0.weight"])
  local head = FeatureMap(net)["2.weight"]
  local again = network(3)
  s.steps = 3
  train(party(again), batches(3), s, {})
  t.equal(FeatureMap(again)["2.weight"], head)
  assert(FeatureMap(again)["0.weight"]:tolist()[1][1] ~= before["0.weight"]:tolist()[1][1])
end)

local function with_norm(seed)
  ms.set_seed(seed)
  return nn.SequentialCell(nn.Dense(3, 4), nn.BatchNorm1d(4), nn.Dense(4, 2))
end

t.test("batch normalisations: statistics are sent by default, and stay with the party under FedBN", function()
  local net = with_norm(1)
  local before = FeatureMap(net)
  local update = train(party(net), batches(3), { lr = 0.1 }, {})
  assert(update.weights["1.moving_mean"]:tolist()[1] ~= before["1.moving_mean"]:tolist()[1])
  t.equal(before:refusal(update.weights), nil)
  local state, other = {}, with_norm(1)
  local s = settings_of(S.FedBN(), FeatureMap(other), { lr = 0.1 })
  update = train(party(other), batches(3), s, state)
  t.equal(update.weights:names "aggregated", { "0.weight", "0.bias", "2.weight", "2.bias" })
  local kept = state.personal["1.moving_mean"]:tolist()
  before:load_into(other)
  train(party(other), batches(1), { lr = 1e-9, rule = "sgd", personal = s.personal }, state)
  -- It went on from its own statistics, not from those of the server.
  assert(math.abs(state.personal["1.moving_mean"]:tolist()[1] - kept[1] * 0.9) < 0.5)
  t.equal(other.training, false)
end)

t.test("SCAFFOLD's vectors are those of what is aggregated, also beside statistics and parts that stay", function()
  local net = with_norm(1)
  local strategy = S.Scaffold()
  local global = strategy:prepare(FeatureMap(net))
  local s = S.configure(strategy, { number = 1 })
  s.lr = 0.1
  local update = train(party(net), batches(3), s, {})
  t.equal(update.extra.control.shape[1], global:size())
  local map = global:with_vector(update.extra.control)
  t.equal(map["1.moving_mean"]:tolist(), { 0, 0, 0, 0 })
  assert(map["2.weight"]:tolist()[1][1] ~= 0)
  local changed = S.aggregate(strategy, { number = 1, population = 4 }, global, { { id = 1, samples = update.samples,
    weights = update.weights, extra = update.extra, metrics = update.metrics } })
  t.near(changed:vector():tolist(), update.weights:vector():tolist(), 1e-6)
  t.near(strategy:configure({ number = 2 }).control:tolist(), (update.extra.control / 4):tolist(), 1e-7)
end)

t.test("differences are what training has changed", function()
  local a, b = network(2), network(2)
  local before = FeatureMap(a):vector(ms.float64)
  local whole = train(party(a), batches(2), { lr = 0.1 }, {})
  local part = train(party(b), batches(2), { lr = 0.1, sends = "difference" }, {})
  t.near(part.weights:vector():tolist(), (whole.weights:vector(ms.float64) - before):tolist(), 1e-7)
end)

t.test("the loss before training is of the weights that it begins with", function()
  local net = network(2)
  local data = batches(3, 4)
  local sum = 0.0
  for _, batch in ipairs(data) do sum = sum + cross_entropy(net(batch[1]), batch[2]):item() / 3 end
  local update = train(party(net), data, { lr = 0.1, initial_loss = true }, {})
  t.near(update.metrics.initial_loss, sum, 1e-6)
end)

t.test("a network of float64 stays one", function()
  local net = network(2)
  for _, p in net:parameters_and_names() do p:set_dtype(ms.float64) end
  local data = batches(2)
  for _, batch in ipairs(data) do batch[1] = batch[1]:astype(ms.float64) end
  local update = train(party(net), data, { lr = 0.1 }, {})
  t.equal(update.weights:vector().dtype == ms.float64, true)
end)

-- Three groups of points.
local function groups(count, seed, spread)
  local g = require "lunaria.armour.common".generator(seed)
  local labels = g:integers({ count }, 0, 3)
  local angle = labels:astype(ms.float32) * (2 * math.pi / 3)
  local x = ops.stack({ ops.cos(angle), ops.sin(angle) }, 1) * 2.0 + g:normal { count, 2 } * spread
  return x, labels:astype(ms.int32)
end

local function accuracy(net, x, labels) return ops.mean(ops.equal(ops.argmax(net(x), 1), labels):astype(ms.float32)):item() end

t.test("a server with few labels and parties without any learn together what the server alone does not", function()
  local test_x, test_labels = groups(600, 99, 0.75)
  local few_x, few_labels = groups(9, 5, 0.75)
  local function make()
    ms.set_seed(4)
    return nn.SequentialCell(nn.Dense(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dense(16, 3))
  end
  local function server_training(net)
    return function(_, map)
      map:load_into(net)
      train(party(net), { { few_x, few_labels } }, { lr = 0.1, epochs = 5 }, {})
      return map:conformed(FeatureMap(net))
    end
  end
  local noise = require "lunaria.armour.common".generator(6)
  local parties = {}
  for i = 1, 3 do parties[i] = (groups(120, 10 + i, 0.75)) end
  local strategy = S.SemiSupervised(server_training(make()), { threshold = 0.8 })
  local net = make()
  local global = strategy:prepare(FeatureMap(net))
  global = strategy:after({ number = 0 }, global)
  local alone = make()
  for number = 1, 6 do
    local s = S.configure(strategy, { number = number, seed = number })
    s.lr = 0.05
    s.strong = function(x) return x + noise:normal(x.shape) * 0.3 end
    local updates = {}
    for i, x in ipairs(parties) do
      global:load_into(net)
      updates[i] = train({ network = net }, { { x } }, s, {})
      updates[i].id = i
    end
    local refused
    global, refused = S.aggregate(strategy, { number = number, seed = number }, global, updates)
    t.equal(#refused, 0)
    train(party(alone), { { few_x, few_labels } }, { lr = 0.1, epochs = 5 }, {})
  end
  global:load_into(net)
  alone:set_train(false)
  net:set_train(false)
  local together, single = accuracy(net, test_x, test_labels), accuracy(alone, test_x, test_labels)
  assert(together > 0.85 and together >= single - 0.01, ("%.3f together, %.3f alone"):format(together, single))
end)

t.test("pooled statistics are those of all parties' data together", function()
  local g = require "lunaria.armour.common".generator(12)
  local function sent(id, x)
    local mean = ops.mean(x, 0)
    return { id = id, samples = x.shape[1], weights = FeatureMap { { "n.moving_mean", mean },
      { "n.moving_variance", ops.mean((x - mean) * (x - mean), 0) } } }
  end
  local a, b = g:normal({ 30, 4 }, ms.float64) + 2.0, g:normal({ 50, 4 }, ms.float64) * 3.0
  local all = ops.concat({ a, b }, 0)
  local strategy = S.SemiSupervised(function(_, map) return map end)
  local global = FeatureMap { { "n.moving_mean", ms.zeros({ 4 }, ms.float64) }, { "n.moving_variance", ms.ones({ 4 }, ms.float64) } }
  local map = S.aggregate(strategy, { number = 1 }, global, { sent(1, a), sent(2, b) })
  local mean = ops.mean(all, 0)
  t.near(map["n.moving_mean"], mean, 1e-13)
  t.near(map["n.moving_variance"], ops.mean((all - mean) * (all - mean), 0), 1e-13)
end)

t.test("mistakes say what to do", function()
  local where = "client_rules.train"
  t.fails({ where, "settings.lr must be a number, got nil" }, train, network(), {}, {}, {})
  t.fails({ "client_rules.find", "no client rule 'proxy'", "did you mean 'prox'" }, train, network(), {}, { lr = 0.1, rule = "proxy" }, {})
  t.fails({ where, "settings.mu must be a number, got nil" }, train, network(), {}, { lr = 0.1, rule = "prox" }, {})
  t.fails({ where, "settings.control must be a tensor" }, train, network(), {}, { lr = 0.1, rule = "scaffold" }, {})
  t.fails({ where, "net must be a cell" }, train, 5, {}, { lr = 0.1 }, {})
  t.fails({ where, "net.loss_fn must be a callable" }, train, { network = network() }, {}, { lr = 0.1 }, {})
  t.fails({ where, "state must be a table" }, train, network(), {}, { lr = 0.1 })
  t.fails({ where, "the data set is an empty table" }, train, party(network()), {}, { lr = 0.1 }, {})
  t.fails({ where, "a vector of 26 numbers" }, train, party(network()), batches(1),
    { lr = 0.1, rule = "scaffold", control = ms.zeros { 3 } }, {})
  t.fails({ where, "the network has no parameters that are trained" }, train, party(network()), batches(1),
    { lr = 0.1, frozen = { "0", "2" } }, {})
end)

t.finish()
