-- Attacks on models that are only asked: what they find for a small trained network, that they count and keep to budgets, and that a sample
-- has its own random numbers. 20 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn, black = ms.ops, ms.nn, ms.armour.attacks.black

-- Pictures of 8 x 8 with a bright stripe across, down or along the diagonal, in noise.
local function pictures(count)
  local y = ops.randint(0, 3, { count }):astype(ms.int32)
  local at = ops.randint(1, 7, { count }):reshape { -1, 1, 1 }
  local rows, columns = ops.arange(8):reshape { 1, 8, 1 }, ops.arange(8):reshape { 1, 1, 8 }
  local kind = y:reshape { -1, 1, 1 }
  local stripe = ops.where(ops.equal(kind, 0), ops.equal(rows, at),
    ops.where(ops.equal(kind, 1), ops.equal(columns, at), ops.equal(rows - columns, at - 4)))
  local x = stripe:astype(ms.float32) * 0.5 + ops.rand { count, 8, 8 } * 0.5
  return x:reshape { count, 1, 8, 8 }, y
end

local net = nn.SequentialCell(nn.Conv2d(1, 8, 3, { has_bias = true }), nn.ReLU(), nn.Flatten(), nn.Dense(512, 3))
do
  local optimizer = nn.Adam(net:trainable_params(), 5e-3)
  local step = ms.value_and_grad(function(x, y) return ops.cross_entropy(net(x), y) end, nil, net:trainable_params())
  for _ = 1, 60 do
    local x, y = pictures(64)
    local _, gradients = step(x, y)
    optimizer(gradients)
  end
end

local all, labels = pictures(160)
do -- Only samples that the network has right: the attacks have something to do for each.
  local right = ops.equal(ops.argmax(net(all), 1):astype(ms.int32), labels)
  assert(ops.sum(right:astype(ms.int32)):item() >= 120, "the network has not learnt")
  all, labels = all[right], labels[right]
end
local x, y = all[{ ms.slice(0, 100) }], labels[{ ms.slice(0, 100) }]

local rows = 0
local function asked(points)
  rows = rows + points.shape[1]
  return net(points)
end

local function median(list)
  table.sort(list)
  return list[#list // 2 + 1]
end

-- Runs an attack: the share of samples found, the median of the questions for these, their change. What holds of any attack is checked.
local function run(attack, inputs, wanted, most)
  rows = 0
  local found, adv, queries = attack:generate(inputs, wanted)
  t.equal(rows, ops.sum(queries):item())
  if most then assert(ops.amax(queries):item() <= most, "a budget of " .. most .. " was not kept") end
  assert(ops.min(adv):item() >= 0 and ops.max(adv):item() <= 1 and adv.dtype == inputs.dtype)
  local decided, goal = ops.argmax(net(adv), 1):tolist(), wanted:tolist()
  local hits, list = 0, {}
  for i, is_found in ipairs(found:tolist()) do
    t.equal((decided[i] == goal[i]) == attack.is_targeted, is_found)
    if is_found then
      hits = hits + 1
      list[hits] = queries[i - 1]:item()
    end
  end
  return hits / found.size, median(list) or 0, adv - inputs
end

local function lengths(d) return ops.sqrt(ops.sum(ops.square(d):reshape { d.shape[1], -1 }, 1)):tolist() end

t.test("square search stays in its ball and finds most samples", function()
  local share, queries, d = run(black.SquareAttack(asked, { eps = 0.2, max_queries = 300 }), x, y, 300)
  assert(share > 0.8 and queries < 100, share .. " " .. queries)
  assert(ops.amax(ops.abs(d)):item() <= 0.2 + 1e-6)
  share, queries, d = run(black.SquareAttack(asked, { eps = 1.0, norm_level = 2, max_queries = 300 }), x, y, 300)
  assert(share > 0.5 and queries < 150, share .. " " .. queries)
  for _, length in ipairs(lengths(d)) do assert(length <= 1 + 1e-5) end
end)

t.test("HopSkipJump comes near to the boundary, by class numbers alone", function()
  local function numbers(points) return ops.argmax(asked(points), 1) end
  local few, wanted = x[{ ms.slice(0, 30) }], y[{ ms.slice(0, 30) }]
  local options = { num_iterations = 6, max_num_evals = 200 }
  local nearest = ms.armour.attacks.CarliniWagnerL2Attack(net, 3, { learning_rate = 0.05, max_iterations = 100 })
  local near = lengths(nearest:generate(few, wanted) - few)
  local share, _, d = run(black.HopSkipJumpAttack(numbers, options), few, wanted)
  t.equal(share, 1.0)
  assert(median(lengths(d)) < 1.6 * median(near), median(lengths(d)) .. " " .. median(near))
  options.constraint, options.stepsize_search = "linf", "grid_search"
  share, _, d = run(black.HopSkipJumpAttack(numbers, options), few, wanted)
  t.equal(share, 1.0)
  assert(median(ops.amax(ops.abs(d), { 1, 2, 3 }):tolist()) < 0.2)
end)

t.test("HopSkipJump is untargeted with labels, and goes to the labels of target images", function()
  local few, own = x[{ ms.slice(0, 8) }], y[{ ms.slice(0, 8) }]
  local found, adv = black.HopSkipJumpAttack(asked, { num_iterations = 1 }):generate(few)
  assert(ops.all(found):item() and not ops.any(ops.equal(ops.argmax(net(adv), 1):astype(ms.int32), own)):item())
  local wanted, starts = (own + 1) % 3, {}
  for i, class in ipairs(wanted:tolist()) do
    for k, other in ipairs(labels:tolist()) do
      if other == class then starts[i] = all[k - 1] end
    end
  end
  local attack = black.HopSkipJumpAttack(asked, { num_iterations = 2 }):set_target_images(ops.stack(starts, 0))
  t.equal(run(attack, few, wanted), 1.0)
  t.equal(attack:set_target_images(nil).is_targeted, false)
end)

t.test("NES leads to the labels within its cube", function()
  local few, wanted = x[{ ms.slice(0, 20) }], (y[{ ms.slice(0, 20) }] + 1) % 3
  local options = { num_class = 3, epsilon = 0.3, learning_rate = 0.02, samples_per_draw = 40, max_queries = 2000 }
  local share, queries, d = run(black.NES(asked, "Query_Limit", options), few, wanted, 2000)
  assert(share > 0.8 and queries < 1000, share .. " " .. queries)
  assert(ops.amax(ops.abs(d)):item() <= 0.3 + 1e-6)
  local starts = {}
  for i, class in ipairs(wanted:tolist()) do
    for k, other in ipairs(labels:tolist()) do
      if other == class then starts[i] = all[k - 1] end
    end
  end
  options.top_k, options.max_queries, options.epsilon, options.learning_rate = 2, 6000, 0.4, nil
  local order_only = { zero_iters = 4, adv_thresh = 1.0, label_only_sigma = 0.05, sigma = 0.05 }
  for name, value in pairs(options) do order_only[name] = order_only[name] or value end
  for scene, given in pairs { Partial_Info = options, Label_Only = order_only } do
    local attack = black.NES(asked, scene, given):set_target_images(ops.stack(starts, 0))
    share = run(attack, few, wanted, 6000)
    assert(share > 0.3, scene .. " " .. share)
  end
  t.fails({ "starts from samples of the labels", "set_target_images" }, function()
    black.NES(asked, "Partial_Info", options):generate(few, wanted)
  end)
end)

t.test("an estimate of NES is the mean over pairs of the slope along their directions", function()
  local u = ops.randn { 4, 3 }
  local slope = ms.tensor { 1.0, -2.0, 0.5 }
  local function loss(points) return ops.sum(points * slope, 1) end
  local wanted = ops.mean(ops.sum(u * slope, 1, true) * u, 0)
  t.near(black.NES.estimate(loss(ops.concat({ u * 0.1, u * -0.1 }, 0)), u, 0.1), wanted, 1e-5)
end)

t.test("populations find samples of other classes and of the labels", function()
  local share, queries, d = run(black.GeneticAttack(asked, { is_targeted = false, per_bounds = 0.3, max_steps = 150 }), x, y)
  assert(share > 0.7 and queries < 500, share .. " " .. queries)
  assert(ops.amax(ops.abs(d)):item() <= 0.3 + 1e-6)
  local options = { per_bounds = 0.5, max_steps = 150, adaptive = true, mutation_rate = 0.05, max_queries = 500 }
  share = run(black.GeneticAttack(asked, options), x[{ ms.slice(0, 30) }], (y[{ ms.slice(0, 30) }] + 1) % 3, 500)
  assert(share > 0.5, share)
  share, queries = run(black.PSOAttack(asked, { t_max = 50 }), x, y)
  assert(share > 0.9 and queries < 50, share .. " " .. queries)
end)

t.test("salt and pepper is a share of the pixels, which the pixel-wise attack brings down", function()
  local few, own = x[{ ms.slice(0, 10) }], y[{ ms.slice(0, 10) }]
  local function changed(d) return ops.sum(ops.not_equal(d, 0):astype(ms.int32)):item() end
  local share, _, d = run(black.SaltAndPepperNoiseAttack(asked, { max_iter = 5 }), few, own)
  local fewer, _, less = run(black.PointWiseAttack(asked, { max_iter = 3, search_iter = 4 }), few, own)
  assert(share == 1 and fewer == 1 and changed(less) < changed(d) / 2, share .. " " .. fewer)
  local start = black.PSOAttack(asked, { t_max = 20 })
  local attack = black.PointWiseAttack(asked, { max_iter = 1, search_iter = 2, init_attack = start, max_queries = 400 })
  local found, adv, queries = attack:generate(few, own)
  local _, before = start:generate(few, own)
  assert(ops.all(found):item() and changed(adv - few) < changed(before - few) and ops.amax(queries):item() <= 400)
end)

local function detector(points)
  -- Boxes at the left and the right, each of class 0 where its half is bright; the less so, the less sure.
  local count = points.shape[1]
  local light = ops.mean(points:reshape { count, 8, 2, 4 }, { 1, 3 })
  local boxes = ops.broadcast_to(ms.tensor({ { 0, 0, 4, 8 }, { 4, 0, 8, 8 } }, ms.float32):reshape { 1, 2, 4 }, { count, 2, 4 })
  return ops.concat({ boxes, light:reshape { count, 2, 1 } }, 2), ops.less(light, 0.5):astype(ms.int32)
end

t.test("populations hide objects", function()
  local bright = ops.rand { 6, 1, 8, 8 } * 0.1 + 0.5
  local boxes = ops.broadcast_to(ms.tensor({ { 0, 0, 4, 8 }, { 4, 0, 8, 8 } }, ms.float32):reshape { 1, 2, 4 }, { 6, 2, 4 })
  local classes = ops.zeros({ 6, 2 }, ms.int32)
  for _, make in ipairs { black.GeneticAttack, black.PSOAttack } do
    local attack = make(detector, { model_type = "detection", reserve_ratio = 0.5, per_bounds = 0.4 })
    local found, adv, queries = attack:generate(bright, { boxes, classes })
    assert(ops.all(found):item() and ops.amin(queries):item() > 1)
    local _, now = detector(adv)
    assert(ops.amax(ops.sum(ops.equal(now, 0):astype(ms.int32), 1)):item() <= 1)
  end
  t.fails({ "is_targeted must be false" }, function() black.PSOAttack(detector, { model_type = "detection", is_targeted = true }) end)
  t.fails({ "a model of objects must give boxes" }, function()
    black.PSOAttack(function(p) return net(p), net(p) end, { model_type = "detection" }):generate(bright, { boxes, classes })
  end)
end)

t.test("a seed gives the same bits, whatever else is in the batch and in the session", function()
  local few, own = x[{ ms.slice(0, 6) }], y[{ ms.slice(0, 6) }]
  for name, make in pairs {
    SquareAttack = function(seed) return black.SquareAttack(asked, { max_queries = 30, seed = seed }) end,
    GeneticAttack = function(seed) return black.GeneticAttack(asked, { is_targeted = false, max_steps = 5, seed = seed }) end,
    PSOAttack = function(seed) return black.PSOAttack(asked, { per_bounds = 0.1, t_max = 5, seed = seed }) end,
    HopSkipJumpAttack = function(seed) return black.HopSkipJumpAttack(asked, { num_iterations = 1, max_queries = 200, seed = seed }) end,
    SaltAndPepperNoiseAttack = function(seed) return black.SaltAndPepperNoiseAttack(asked, { max_iter = 2, seed = seed }) end,
  } do
    local _, first = make(3):generate(few, own)
    ops.rand { 3 }
    local _, again = make(3):generate(few, own)
    local _, alone = make(3):generate(few[{ ms.slice(0, 1) }], own[{ ms.slice(0, 1) }])
    local _, other = make(4):generate(few, own)
    t.equal(again:tolist(), first:tolist())
    t.near(alone, first[{ ms.slice(0, 1) }], 1e-6)
    assert(ops.any(ops.not_equal(other, first)):item(), name .. " does not use its seed")
    local found, adv, queries = make(3):batch_generate(few, own, 6)
    t.equal(adv:tolist(), first:tolist())
    t.equal({ found.size, queries.size }, { 6, 6 })
  end
end)

t.test("samples that are adversarial already take one question", function()
  local _, adv, queries = black.SquareAttack(asked):generate(x[{ ms.slice(0, 4) }], (y[{ ms.slice(0, 4) }] + 1) % 3)
  t.equal(queries:tolist(), { 1, 1, 1, 1 })
  t.equal(adv:tolist(), x[{ ms.slice(0, 4) }]:tolist())
end)

t.test("models may be cells, functions and BlackModels", function()
  local few, own = x[{ ms.slice(0, 2) }], y[{ ms.slice(0, 2) }]
  local _, first = black.SquareAttack(net, { max_queries = 20 }):generate(few, own)
  local _, second = black.SquareAttack(ms.armour.BlackModel(asked), { max_queries = 20, batch_size = 1 }):generate(few, own)
  t.near(first, second, 1e-6)
end)

t.test("labels beyond the model's classes are errors, not found adversarial at once", function()
  local few, wrong = x[{ ms.slice(0, 2) }], ms.tensor({ 0, 7 }, ms.int32)
  local names = { "HopSkipJumpAttack", "SaltAndPepperNoiseAttack", "PointWiseAttack", "SquareAttack", "GeneticAttack", "PSOAttack" }
  for _, name in ipairs(names) do
    t.fails({ name .. ": the label of sample", "the model has 3 classes" }, function() black[name](net):generate(few, wrong) end)
  end
  t.fails({ "num_class is 10, and the model has 3 classes" }, function() black.NES(net, "Query_Limit"):generate(few, wrong) end)
end)

t.test("bad arguments are errors", function()
  t.fails({ "model must be" }, function() black.SquareAttack(5) end)
  t.fails({ "max_queries must be positive" }, function() black.SquareAttack(net, { max_queries = 0 }) end)
  t.fails({ "norm_level must be 'inf' or 2" }, function() black.SquareAttack(net, { norm_level = 1 }) end)
  t.fails({ "labels must be the classes to reach" }, function() black.GeneticAttack(net):generate(x) end)
  local function single() return ms.ones { 1, 3 } end
  t.fails({ "must give a tensor of as many rows" }, function() black.SquareAttack(single):generate(x, y) end)
  t.fails({ "samples_per_draw must be even" }, function() black.NES(net, "Query_Limit", { samples_per_draw = 5 }) end)
  t.fails({ "scene must be" }, function() black.NES(net, "Nothing") end)
  for scene, option in pairs { Query_Limit = "top_k", Partial_Info = "zero_iters", Label_Only = "learning_rate" } do
    local wanted = ("NES: %s has no effect where scene is '%s'"):format(option, scene)
    t.fails({ wanted }, function() black.NES(net, scene, { num_class = 3, [option] = 2 }) end)
  end
  for _, name in ipairs { "GeneticAttack", "PSOAttack" } do
    t.fails({ "reserve_ratio has no effect where model_type is 'classification'" }, black[name], net, { reserve_ratio = 0.1 })
    t.fails({ "sparse has no effect where model_type is 'detection'" }, function()
      black[name](net, { model_type = "detection", sparse = true })
    end)
  end
  t.fails({ "outside of the bounds" }, function() black.PSOAttack(net):generate(x * 2, y) end)
  t.fails({ "init_attack must be an attack" }, function() black.PointWiseAttack(net, { init_attack = {} }) end)
end)

t.finish()
