-- AutoAttack: no attack of its own finds more than it, and it says where a network only hides its gradients. 15 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn, attacks = ms.ops, ms.nn, ms.armour.attacks

-- Four classes, by which quarter of the picture is brightest.
local function pictures(count)
  local y = ops.randint(0, 4, { count }):astype(ms.int32)
  local rows, columns = ops.arange(6):reshape { 1, 6, 1 }, ops.arange(6):reshape { 1, 1, 6 }
  local quarter = ops.floor_div(rows, 3) * 2 + ops.floor_div(columns, 3)
  local bright = ops.equal(quarter, y:reshape { -1, 1, 1 }):astype(ms.float32)
  return (bright * 0.3 + ops.rand { count, 6, 6 } * 0.6):reshape { count, 1, 6, 6 }, y
end

local net = nn.SequentialCell(nn.Conv2d(1, 6, 3, { has_bias = true }), nn.ReLU(), nn.Flatten(), nn.Dense(216, 4))
do
  local optimizer = nn.Adam(net:trainable_params(), 5e-3)
  local step = ms.value_and_grad(function(x, y) return ops.cross_entropy(net(x), y) end, nil, net:trainable_params())
  for _ = 1, 60 do
    local _, gradients = step(pictures(64))
    optimizer(gradients)
  end
end

local x, y = pictures(60)
local function right(model, inputs)
  return ops.mean(ops.equal(ops.argmax(model(inputs), 1):astype(ms.int32), y):astype(ms.float32)):item()
end
local options = { eps = 0.09, nb_iter = 10, max_queries = 60, verbose = false }

t.test("the ensemble leaves at most what each of its attacks leaves, within the ball", function()
  for _, norm in ipairs { "inf", 2, 1 } do
    options.norm_level, options.eps = norm, ({ [1] = 2.0, [2] = 0.5, inf = 0.09 })[norm]
    options.attacks = nil
    local attack = attacks.AutoAttack(net, options)
    local adv = attack:generate(x, y)
    local d = (adv - x):reshape { 60, 36 }
    local length = norm == 1 and ops.sum(ops.abs(d), 1) or norm == 2 and ops.sqrt(ops.sum(d * d, 1)) or ops.amax(ops.abs(d), 1)
    assert(ops.amax(length):item() <= options.eps * 1.0001 and ops.min(adv):item() >= 0 and ops.max(adv):item() <= 1)
    local report = attack.report
    t.near(report.clean, right(net, x), 1e-6)
    t.near(report.robust, right(net, adv), 1e-6)
    t.equal(#report.steps, norm == 1 and 3 or 4)
    t.equal(#report.warnings, 0)
    assert(report.clean > 0.9 and report.robust < report.clean)
    for _, name in ipairs { "apgd-ce", "fab-t" } do
      options.attacks = { name }
      local alone = attacks.AutoAttack(net, options)
      alone:generate(x, y)
      assert(report.robust <= alone.report.robust + 1e-6, name .. " finds more alone")
    end
  end
end)

-- Looks at eight levels of grey: right where the network is, but with slopes of zero.
local function quantised(input) return net(ops.floor(input * 7 + 0.5) / 7) end

t.test("a network that quantises its inputs is found out", function()
  local attack = attacks.AutoAttack(quantised, { eps = 0.12, nb_iter = 5, max_queries = 200, verbose = false })
  local adv = attack:generate(x, y)
  local report = attack.report
  t.equal(#report.warnings, 2)
  assert(report.warnings[1]:find("slope of the logits is zero at 100 %", 1, true))
  assert(report.warnings[2]:find "square search.*masked")
  t.near(right(quantised, adv), report.robust, 1e-6)
  -- Attacks by gradients alone take it for robust.
  attack = attacks.AutoAttack(quantised, { eps = 0.12, nb_iter = 5, attacks = { "apgd-ce", "apgd-t" }, verbose = false })
  attack:generate(x, y)
  assert(attack.report.robust > report.robust + 0.2, attack.report.robust .. " " .. report.robust)
end)

t.test("a network that draws random numbers is found out", function()
  local function noisy(input) return net(input) + ops.randn { input.shape[1], 4 } * 0.1 end
  local attack = attacks.AutoAttack(noisy, { nb_iter = 2, attacks = { "apgd-ce" }, verbose = false })
  attack:generate(x, y)
  assert(attack.report.warnings[1]:find "random numbers")
end)

t.test("two classes, nothing right and bad arguments", function()
  local two = nn.SequentialCell(nn.Flatten(), nn.Dense(36, 2))
  local own = ops.argmax(two(x), 1):astype(ms.int32)
  local attack = attacks.AutoAttack(two, { nb_iter = 5, max_queries = 10, eps = 0.3 })
  attack:generate(x, own)
  assert(attack.report.clean == 1 and attack.report.robust < 1)
  local adv = attack:generate(x, 1 - own)
  t.equal({ attack.report.clean, attack.report.robust }, { 0.0, 0.0 })
  t.equal(adv:tolist(), x:tolist())
  t.fails({ "attacks must be", "apgd-t" }, function() attacks.AutoAttack(net, { attacks = { "fgsm" } }) end)
  t.fails({ "eps" }, function() attacks.AutoAttack(net, { eps = 0 }) end)
end)

t.finish()
