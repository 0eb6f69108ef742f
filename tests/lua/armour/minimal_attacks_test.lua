-- Attacks that look for near adversarial samples, where the nearest one is known in closed form: networks that are linear. 2 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, attacks = ms.ops, ms.armour.attacks

local classes, shape = 3, { 5, 2, 3, 4 }
local size = 24
local weights = ms.tensor(ops.randn { classes, size }, ms.float64) * 0.4
local function linear(x) return ops.matmul(x:reshape { x.shape[1], size }, weights:t()) end
local x = ops.rand(shape, { dtype = ms.float64 }) * 0.2 + 0.4
local y = ops.argmax(linear(x), 1):astype(ms.int32)

local function predicted(adv) return ops.argmax(linear(adv), 1):tolist() end
local function all_others(adv)
  local got, own = predicted(adv), y:tolist()
  for i = 1, #own do assert(got[i] ~= own[i], "sample " .. i .. " is still of class " .. own[i]) end
end
-- The distances to the nearest boundary, by the norm of the differences of rows.
local function nearest(norm)
  local z, list = linear(x), {}
  for i = 0, shape[1] - 1 do
    local label, least = y[i]:item(), math.huge
    for k = 0, classes - 1 do
      local w = weights[k] - weights[label]
      local size_of = norm == 2 and ops.sqrt(ops.sum(w * w)) or norm == 1 and ops.amax(ops.abs(w)) or ops.sum(ops.abs(w))
      if k ~= label then least = math.min(least, ((z[{ i, label }] - z[{ i, k }]) / size_of):item()) end
    end
    list[i + 1] = least
  end
  return list
end
local function norms(d, norm)
  local flat = d:reshape { shape[1], size }
  if norm == 2 then return ops.sqrt(ops.sum(flat * flat, 1)):tolist() end
  if norm == 1 then return ops.sum(ops.abs(flat), 1):tolist() end
  return ops.amax(ops.abs(flat), 1):tolist()
end

t.test("DeepFool reaches the nearest boundary of a linear network in one step", function()
  for _, norm in ipairs { 2, "inf" } do
    local adv = attacks.DeepFool(linear, classes, { norm_level = norm, max_iters = 1 }):generate(x, y)
    all_others(adv)
    local got, exact = norms(adv - x, norm), nearest(norm)
    for i = 1, shape[1] do t.near(got[i], (exact[i] + 1e-4) * 1.02, 1e-6) end
  end
end)

t.test("FAB finds the nearest adversarial sample of a linear network, in each norm", function()
  for _, norm in ipairs { 1, 2, "inf" } do
    for _, targets in ipairs { false, classes } do
      local attack = attacks.FastAdaptiveBoundary(linear, { norm_level = norm, nb_iter = 15, n_target_classes = targets or nil })
      local adv = attack:generate(x, y)
      all_others(adv)
      local got, exact = norms(adv - x, norm), nearest(norm)
      -- Exact where the box does not bind, as one element of a step of norm 1 may leave it.
      for i = 1, shape[1] do assert(got[i] > exact[i] * 0.999 and (norm == 1 or got[i] < exact[i] * 1.01), norm .. " " .. got[i]) end
    end
  end
end)

t.test("FAB stays in the box, exactly on the way to it", function()
  local low, high = 0.45, 0.6
  local inside = ops.clip(x, low, high)
  local own = ops.argmax(linear(inside), 1):astype(ms.int32)
  for _, norm in ipairs { 1, 2, "inf" } do
    local attack = attacks.FastAdaptiveBoundary(linear, { norm_level = norm, nb_iter = 20, nb_restarts = 2, bounds = { low, high } })
    local adv = attack:generate(inside, own)
    assert(ops.min(adv):item() >= low and ops.max(adv):item() <= high)
  end
end)

t.test("DeepFool leaves samples of another class alone and keeps to bounds", function()
  local adv = attacks.DeepFool(linear, classes, { bounds = { 0, 1 } }):generate(x, (y + 1) % classes)
  t.equal(adv:tolist(), x:tolist())
  adv = attacks.DeepFool(linear, classes, { bounds = { 0.35, 0.65 }, max_iters = 3 }):generate(x, y)
  assert(ops.min(adv):item() >= 0.35 and ops.max(adv):item() <= 0.65)
end)

t.test("the attack of Carlini and Wagner minimises the distance", function()
  local far = nearest(2)
  local options = { learning_rate = 0.02, max_iterations = 300, bin_search_steps = 6, initial_const = 0.1 }
  local adv = attacks.CarliniWagnerL2Attack(linear, classes, options):generate(x, y)
  all_others(adv)
  for i, d in ipairs(norms(adv - x, 2)) do assert(d >= far[i] * 0.999 and d <= far[i] * 1.06, d .. " of " .. far[i]) end
  options.fast = true
  all_others(attacks.CarliniWagnerL2Attack(linear, classes, options):generate(x, y))
  options.fast, options.targeted, options.confidence = nil, true, 0.3
  local wanted = (y + 1) % classes
  adv = attacks.CarliniWagnerL2Attack(linear, classes, options):generate(x, wanted)
  local z = linear(adv)
  for i, target in ipairs(wanted:tolist()) do
    local own = z[{ i - 1, target }]:item()
    for k = 0, classes - 1 do assert(k == target or own - z[{ i - 1, k }]:item() >= 0.3 - 1e-9) end
  end
end)

t.test("what an attack finds for a sample does not depend on the rest of the batch", function()
  for _, attack in ipairs {
    attacks.CarliniWagnerL2Attack(linear, classes, { max_iterations = 40, bin_search_steps = 3, learning_rate = 0.05, initial_const = 1 }),
    attacks.ElasticNetAttack(linear, classes, { max_iterations = 40, bin_search_steps = 3, learning_rate = 0.05, initial_const = 1 }),
    attacks.DeepFool(linear, classes), attacks.JSMAAttack(linear, classes, { theta = 0.3, max_iteration = 6 }),
    attacks.LBFGS(linear, { search_iters = 12, is_targeted = false }),
  } do
    local all, parts = attack:generate(x, y), {}
    for i = 0, shape[1] - 1 do
      local row = { ms.slice(i, i + 1) }
      parts[i + 1] = attack:generate(x[row], y[row])
    end
    t.near(all, ops.concat(parts, 0), 1e-9)
    t.near(attack:batch_generate(x, y, 2), all, 1e-9)
  end
end)

t.test("the elastic-net attack changes few elements", function()
  local one = ms.tensor(weights:tolist(), ms.float64)
  for k = 0, classes - 1 do one[{ k, 7 }] = (k - 1) * 20.0 end
  local function net(input) return ops.matmul(input:reshape { input.shape[1], size } - 0.5, one:t()) end
  local own = ops.argmax(net(x), 1):astype(ms.int32)
  local options = { beta = 0.05, learning_rate = 0.05, max_iterations = 100, bin_search_steps = 4, initial_const = 1 }
  for _, rule in ipairs { "EN", "L1", "L2" } do
    options.decision_rule = rule
    local adv = attacks.ElasticNetAttack(net, classes, options):generate(x, own)
    assert(not ops.any(ops.equal(ops.argmax(net(adv), 1):astype(ms.int32), own)):item())
    assert(ops.amax(ops.sum(ops.not_equal(adv, x):reshape { shape[1], size }:astype(ms.int32), 1)):item() <= 4)
  end
end)

t.test("JSMA changes two elements at a time, each only so often", function()
  -- One element raises the target more than any two others: a pair of it with itself would win.
  local w = ms.zeros({ 2, 6 }, ms.float64)
  for i = 0, 5 do w[{ 1, i }], w[{ 0, i }] = 0.1, -0.1 end
  w[{ 1, 2 }] = 5.0
  w[{ 0, 2 }] = -5.0
  local function net(input) return ops.matmul(input, w:t()) - ms.tensor({ -20.0, 0.0 }, ms.float64) end
  local start = ms.full({ 1, 6 }, 0.1, ms.float64)
  local adv = attacks.JSMAAttack(net, 2, { theta = 0.05, max_iteration = 1 }):generate(start, ms.tensor { 1 })
  t.near(ops.sum(adv - start):item(), 0.1, 1e-12)
  t.near(adv[{ 0, 2 }]:item(), 0.15, 1e-12)
  adv = attacks.JSMAAttack(net, 2, { theta = 0.05, max_iteration = 50, max_count = 1 }):generate(start, ms.tensor { 1 })
  t.near(adv[{ 0, 2 }]:item(), 0.2, 1e-12)
  local function other(input) return net(input) - ms.tensor({ 40.0, 0.0 }, ms.float64) end
  adv = attacks.JSMAAttack(other, 2, { theta = 0.05, max_iteration = 1, increase = false }):generate(start, ms.tensor { 0 })
  t.near(adv[{ 0, 2 }]:item(), 0.05, 1e-12)
end)

t.test("L-BFGS finds the minimum of distance and loss, not that of the loss alone", function()
  -- With a loss g x' the minimum of |x' - x|^2 + c g x' is x - c g / 2, drawn into the box.
  local function own(z, labels) return ops.gather_elements(z, 1, labels:reshape { -1, 1 }):reshape { -1 } end
  local attack = attacks.LBFGS(linear, { loss_fn = own })
  local c = ms.tensor({ 0.1, 1.0, 0.3, 5.0, 0.01 }, ms.float64)
  local point = attack:_minimise(x, y, c)
  local g = ops.gather(weights, y, 0):reshape(shape)
  t.near(point, ops.clip(x - g * (c / 2):reshape { 5, 1, 1, 1 }, 0, 1), 1e-9)
end)

t.test("L-BFGS searches for the smallest weight that succeeds", function()
  local adv = attacks.LBFGS(linear, { is_targeted = false }):generate(x, y)
  all_others(adv)
  local far = nearest(2)
  for i, d in ipairs(norms(adv - x, 2)) do assert(d >= far[i] * 0.999 and d < far[i] * 1.2, d .. " of " .. far[i]) end
end)

t.test("DeepFool hides objects", function()
  -- Three boxes, whose logits are linear, over three objects, one of which no box is near to.
  local places = ms.tensor({ { 0, 0, 4, 4 }, { 4, 0, 8, 4 }, { 0, 4, 4, 8 } }, ms.float64)
  local w = ops.randn { 12, size }:astype(ms.float64)
  local function detector(input)
    local count = input.shape[1]
    return ops.broadcast_to(places:reshape { 1, 3, 4 }, { count, 3, 4 }),
      ops.matmul(input:reshape { count, size }, w:t()):reshape { count, 3, 4 }
  end
  local _, z = detector(x)
  local boxes, found = ops.broadcast_to(places:reshape { 1, 3, 4 }, { 5, 3, 4 }), ops.argmax(z, 2)
  local function left(adv)
    local _, now = detector(adv)
    return ops.sum(ops.equal(ops.argmax(now, 2), found):astype(ms.int32), 1):tolist()
  end
  for ratio, most in pairs { [0.4] = 1, [0.0] = 0 } do
    local attack = attacks.DeepFool(detector, 4, { model_type = "detection", reserve_ratio = ratio })
    t.equal(left(attack:generate(x, { boxes, found })), { most, most, most, most, most })
  end
  local none = attacks.DeepFool(detector, 4, { model_type = "detection" }):generate(x, { boxes, found - found - 1 })
  t.equal(none:tolist(), x:tolist())
  t.fails({ "labels of objects must be" }, function() attacks.DeepFool(detector, 4, { model_type = "detection" }):generate(x, y) end)
end)

t.test("what comes back is of the inputs' dtype", function()
  local halves = x:astype(ms.float16)
  local function network(z) return linear(z:astype(ms.float64)) end
  for _, attack in ipairs { attacks.DeepFool(network, classes, { max_iters = 2 }),
    attacks.LBFGS(network, { search_iters = 2, nb_iter = 2 }), attacks.FastAdaptiveBoundary(network, { nb_iter = 2 }) } do
    t.equal(attack:generate(halves, y).dtype, ms.float16)
  end
end)

t.test("bad arguments are errors", function()
  t.fails({ "num_classes is 4, and the network gives 3" }, function() attacks.CarliniWagnerL2Attack(linear, 4):generate(x, y) end)
  t.fails({ "the first bound must be less" }, function() attacks.JSMAAttack(linear, classes, { box_min = 1, box_max = 0 }) end)
  t.fails({ "labels lie between" }, function() attacks.DeepFool(linear, classes):generate(x, y + classes) end)
  t.fails({ "with sparse = false" }, function() attacks.LBFGS(linear, { sparse = false }):generate(x, y) end)
  t.fails({ "max_iterations" }, function() attacks.ElasticNetAttack(linear, classes, { max_iterations = 0 }) end)
  t.fails({ "abort_early_check_ratio has no effect where abort_early is false" }, function()
    attacks.CarliniWagnerL2Attack(linear, classes, { abort_early = false, abort_early_check_ratio = 0.5 })
  end)
  t.fails({ "eps has no effect without restarts" }, function() attacks.FastAdaptiveBoundary(linear, { eps = 0.1 }) end)
  t.fails({ "reserve_ratio has no effect" }, function() attacks.DeepFool(linear, classes, { reserve_ratio = 0.1 }) end)
  t.fails({ "decision_rule" }, function() attacks.ElasticNetAttack(linear, classes, { decision_rule = "L3" }) end)
  t.fails({ "inputs hold nan" }, function() attacks.DeepFool(linear, classes):generate(x / 0 * 0, y) end)
end)

t.finish()
