-- Evaluations of attacks and defences against figures that are known in closed form, and what they refuse. Half a second.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local E, ops, nn = ms.armour.evaluations, ms.ops, ms.nn

ms.set_seed(3)

local clean = ms.rand { 4, 8, 9 } + 0.5
local changed = clean * 1.25
local labels = ms.tensor({ 0, 1, 2, 0 }, ms.int32)
local preds = ms.tensor({ { 0.5, 0.25, 0.25 }, { 0.7, 0.2, 0.1 }, { 0.1, 0.6, 0.3 }, { 0.0, 0.1, 0.9 } }, ms.float64)

t.test("figures of an attack are means over its successes", function()
  local evaluation = E.AttackEvaluate(clean, labels, changed, preds)
  t.equal(evaluation:mis_classification_rate(), 0.75)
  t.near(evaluation:avg_conf_adv_class(), (0.7 + 0.6 + 0.9) / 3, 1e-15)
  t.near(evaluation:avg_conf_true_class(), (0.2 + 0.3 + 0.0) / 3, 1e-15)
  t.near({ evaluation:avg_lp_distance() }, { 1.0, 0.25, 0.25 }, 1e-6)
  t.near(evaluation:nte(), (0.5 + 0.3 + 0.8) / 3, 1e-15)
  local one_hot = E.AttackEvaluate(clean, ms.tensor { { 1.0, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 1, 0, 0 } }, changed, preds)
  t.equal(one_hot:avg_conf_true_class(), evaluation:avg_conf_true_class())
end)

t.test("a targeted attack succeeds where it reaches its target", function()
  local evaluation = E.AttackEvaluate(clean, labels, changed, preds, true, ms.tensor({ 1, 0, 1, 1 }, ms.int32))
  t.equal(evaluation:mis_classification_rate(), 0.5)
  t.near(evaluation:avg_conf_adv_class(), (0.7 + 0.6) / 2, 1e-15)
end)

t.test("without success figures are those that mean none", function()
  local right = ms.tensor({ { 1, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 }, { 1, 0, 0 } }, ms.float64)
  local evaluation = E.AttackEvaluate(clean, labels, changed, right)
  t.equal(evaluation:mis_classification_rate(), 0.0)
  t.equal({ evaluation:avg_conf_adv_class(), evaluation:avg_conf_true_class(), evaluation:avg_ssim(), evaluation:nte() },
    { 0.0, 0.0, -1.0, -1.0 })
  t.equal({ evaluation:avg_lp_distance() }, { -1.0, -1.0, -1.0 })
end)

t.test("structural similarity is that of its definition, window by window", function()
  local x, y = clean:astype(ms.float64), (clean + 0.1 * ms.randn { 4, 8, 9 }):astype(ms.float64)
  local a, b = x:tolist(), y:tolist()
  local sum, count = 0, 0
  for top = 1, 2 do
    for left = 1, 3 do
      local n, ma, mb = 49, 0, 0
      for i = top, top + 6 do
        for j = left, left + 6 do ma, mb = ma + a[1][i][j] / n, mb + b[1][i][j] / n end
      end
      local va, vb, vab = 0, 0, 0
      for i = top, top + 6 do
        for j = left, left + 6 do
          local u, v = a[1][i][j] - ma, b[1][i][j] - mb
          va, vb, vab = va + u * u / (n - 1), vb + v * v / (n - 1), vab + u * v / (n - 1)
        end
      end
      sum = sum + (2 * ma * mb + 1e-4) * (2 * vab + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4))
      count = count + 1
    end
  end
  t.near(E.ssim(x, y, { data_range = 1 })[0]:item(), sum / count, 1e-12)
  -- Channels are compared each by itself, and pictures do not see each other.
  local both = E.ssim(x:reshape { 2, 2, 8, 9 }, y:reshape { 2, 2, 8, 9 })
  t.near(both[0]:item(), ops.mean(E.ssim(x, y)[{ ms.slice(0, 2) }]):item(), 1e-14)
  t.equal(E.ssim(x[{ ms.slice(1, 2) }], y[{ ms.slice(1, 2) }]):item(), E.ssim(x, y)[1]:item())
  t.near(E.psnr(x, x + 0.01)[2]:item(), 40, 1e-9)
  t.equal(E.psnr(x, x)[0]:item(), math.huge)
end)

t.test("figures of a defence", function()
  local raw = ms.tensor { { 0.8, 0.2 }, { 0.6, 0.4 }, { 0.3, 0.7 }, { 0.1, 0.9 } }
  local defended = ms.tensor { { 0.7, 0.3 }, { 0.4, 0.6 }, { 0.6, 0.4 }, { 0.2, 0.8 } }
  local evaluation = E.DefenseEvaluate(raw, defended, ms.tensor({ 0, 0, 0, 1 }, ms.int32))
  t.near({ evaluation:cav(), evaluation:crr(), evaluation:csr(), evaluation:ccv() }, { 0.0, 0.25, 0.25, 0.1 }, 1e-7)
  local function divergence(p, q)
    local sum = 0
    for i = 1, 2 do
      local m = (p[i] + q[i]) / 2
      sum = sum + (p[i] * math.log(p[i] / m) + q[i] * math.log(q[i] / m)) / 2
    end
    return sum
  end
  t.near(evaluation:cos(), (divergence({ 0.8, 0.2 }, { 0.7, 0.3 }) + divergence({ 0.1, 0.9 }, { 0.2, 0.8 })) / 2, 1e-7)
  local never = E.DefenseEvaluate(raw, defended, ms.tensor({ 1, 1, 0, 0 }, ms.int32))
  t.equal({ never:ccv(), never:cos() }, { -1.0, -1.0 })
end)

t.test("figures of a defence against queries", function()
  local raw = ms.tensor { { 0.2, 0.8 }, { 0.6, 0.4 }, { 0.3, 0.7 } }
  local defended = ms.tensor { { 0.9, 0.1 }, { 0.6, 0.4 }, { 0.3, 0.7 } }
  local zero = ms.tensor({ 0, 0, 0 }, ms.int32)
  local function black(counts, longest)
    return E.BlackDefenseEvaluate(raw, defended, { 20, 0, 10 }, counts, { 1, 2, 1 }, { 1, 3, 1 }, { 4, 1, 0 }, zero, longest)
  end
  local evaluation = black({ 50, 0, 30 }, 100)
  t.near({ evaluation:qcv(), evaluation:asv(), evaluation:fpr(), evaluation:qrv() }, { 0.25, 0.5, 1.0, 0.5 }, 1e-9)
  t.equal(black({ 100, 0, 100 }, 100):qcv(), 1.0)
  local all = E.BlackDefenseEvaluate(raw, raw, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, { 1, 1, 1 }, zero, 9)
  t.equal({ all:fpr(), all:qrv() }, { -1.0, -1.0 })
end)

t.test("sensitivity of units is a sum over samples of averaged differences", function()
  local net = nn.SequentialCell(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Dense(2 * 6 * 6, 3))
  local x = ms.rand { 5, 1, 6, 6 }
  local y = x + 0.1
  local found = E.NeuronMetric(net, x, y, { "0", "3" }):neuron_sensitivity()
  local wanted = ops.sum(ops.abs(ops.mean(net[1](x) - net[1](y), { 2, 3 })), 0)
  t.near(found["0"], wanted, 1e-5)
  t.near(found["3"], ops.sum(ops.abs(net(x) - net(y)), 0), 1e-5)
  t.fails({ "the network has no layer 'conv'" }, E.NeuronMetric, net, x, y, { "conv" })
end)

t.test("what is wrong is said", function()
  t.fails({ "adv_preds must be probabilities", "softmax" }, E.AttackEvaluate, clean, labels, changed, preds * 3)
  t.fails({ "adv_inputs hold nan or infinity" }, E.AttackEvaluate, clean, labels, changed * 0 / 0, preds)
  t.fails({ "inputs is (4, 8, 9) and adv_inputs is (4, 8, 8)" }, E.AttackEvaluate, clean, labels, ms.ones { 4, 8, 8 }, preds)
  t.fails({ "labels lie between 0 and 2" }, E.AttackEvaluate, clean, labels, changed, ms.full({ 4, 2 }, 0.5))
  t.fails({ "target_label is missing" }, E.AttackEvaluate, clean, labels, changed, preds, true)
  t.fails({ "targeted is false" }, E.AttackEvaluate, clean, labels, changed, preds, false, labels)
  t.fails({ "7 x 7 pixels, got 6 x 6" }, E.ssim, ms.ones { 1, 6, 6 }, ms.ones { 1, 6, 6 })
  t.fails({ "data_range must be a positive number" }, E.ssim, clean, clean, { data_range = 0 })
  t.fails({ "raw_preds has 3 classes and def_preds has 2" }, E.DefenseEvaluate, preds, ms.full({ 4, 2 }, 0.5), labels)
  t.fails({ "one of them is an attacker's" }, E.BlackDefenseEvaluate, preds, preds, { 0, 0, 0, 0 }, { 0, 0, 0, 0 }, { 1, 1, 1, 1 },
    { 1, 1, 1, 1 }, { 0, 0, 0, 0 }, labels, 10)
  t.fails({ "must not be negative" }, E.BlackDefenseEvaluate, preds, preds, { -1, 1, 1, 1 }, { 0, 0, 0, 0 }, { 1, 1, 1, 1 },
    { 1, 1, 1, 1 }, { 0, 0, 0, 0 }, labels, 10)
end)

t.finish()
