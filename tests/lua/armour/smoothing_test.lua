-- Randomised smoothing against networks whose radius is known, exact bounds of probabilities, transformations of inputs. Three seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local binomial = require "lunaria.armour.binomial"
local D, nn, ops = ms.armour.defenses, ms.nn, ms.ops

ms.set_seed(4)

t.test("bounds of probabilities are those of Clopper and Pearson", function()
  for _, row in ipairs { { 990, 1000, 0.001, 0.9760361871553114, 0.9970304990695041 },
    { 60, 100, 0.05, 0.5129758202538943, 0.6824739847635005 }, { 3, 7, 0.025, 0.09898827844250786, 0.8159484323599169 },
    { 99999, 100000, 0.001, 0.9999076696662654, 0.9999999899949967 } } do
    t.near(binomial.lower(row[1], row[2], row[3]), row[4], 1e-10)
    t.near(binomial.upper(row[1], row[2], row[3]), row[5], 1e-10)
  end
  t.equal({ binomial.lower(0, 5, 0.1), binomial.upper(5, 5, 0.1) }, { 0.0, 1.0 })
  t.near(binomial.lower(5, 5, 0.1), 0.1 ^ (1 / 5), 1e-15)
  t.near(binomial.uneven(60, 100), 0.05688793364098089, 1e-10)
  t.near(binomial.uneven(2, 10), 0.109375, 1e-12)
  t.equal(binomial.uneven(5, 10), 1.0)
end)

-- Of a network w x + b the smoothed answer changes at the same plane.
local w = ms.tensor { 0.6, -0.8, 0.0 }
local function plane(x)
  local s = ops.sum(x * w, 1, true) - 0.25
  return ops.concat({ s, -s }, 1)
end
local x = ms.tensor { { 1.0, -1.0, 3.0 }, { 0.0, 0.0, 1.0 }, { 0.43, 0.0, 2.0 } }
local distance = { 1.15, 0.25, 0.008 }

t.test("a radius is below the distance of the border, and near it with many copies", function()
  local smoothed = D.SmoothedClassifier(plane, { sigma = 0.5, seed = 3 })
  local classes, radii = smoothed:certify(x, { n = 4000 })
  t.equal(classes:tolist(), { 0, 1, -1 })
  local found = radii:tolist()
  t.equal(found[1] < distance[1] and found[1] > 0.9 * distance[1], true)
  t.equal(found[2] < distance[2] and found[2] > 0.7 * distance[2], true)
  t.equal(found[3], 0.0)
  t.equal(smoothed:predict(x, { n = 400 }):tolist(), { 0, 1, -1 })
  local again, same = smoothed:certify(x, { n = 4000 })
  t.equal({ again, same }, { classes, radii })
end)

t.test("a radius is exactly sigma times the quantile of the bound", function()
  local radii = select(2, D.SmoothedClassifier(plane, { sigma = 0.01 }):certify(x[{ ms.slice(0, 1) }], { n = 1000, alpha = 0.01 }))
  t.near(radii:item(), 0.01 * ops.ndtri(ms.tensor({ 0.01 ^ (1 / 1000) }, ms.float64)):item(), 1e-12)
end)

t.test("radii are too large no more often than alpha says", function()
  local wrong = 0
  for seed = 1, 60 do
    local smoothed = D.SmoothedClassifier(plane, { sigma = 0.5, seed = seed })
    local radius = select(2, smoothed:certify(x[{ ms.slice(1, 2) }], { n = 200, alpha = 0.1 }))
    if radius:item() > distance[2] then wrong = wrong + 1 end
  end
  -- 6 are expected at most; 13 or more would come once in 200 runs.
  t.equal(wrong <= 12, true)
end)

t.test("an answer does not depend on what else is asked, and a call gives shares", function()
  local smoothed = D.SmoothedClassifier(plane, { sigma = 0.5, batch_size = 33 })
  local radii = select(2, smoothed:certify(x, { n = 300 }))
  for i = 0, 2 do t.equal(select(2, smoothed:certify(x[{ ms.slice(i, i + 1) }], { n = 300 })):item(), radii[i]:item()) end
  t.near(ops.sum(smoothed(x), 1), ms.ones { 3 }, 1e-6)
end)

t.test("training with noise makes noise harmless", function()
  ms.set_seed(1)
  local images = ms.rand { 200, 6 }
  local labels = ops.greater(images[{ ms.slice(), 0 }], 0.5):astype(ms.int32)
  local net = nn.Dense(6, 2)
  local defense = D.GaussianDefense(net, nil, nn.Adam(net:trainable_params(), 0.05), { sigma = 0.25, seed = 1 })
  local noisy = defense:adversarial(images, labels) - images
  t.equal(math.abs(ops.std(noisy):item() - 0.25) < 0.02, true)
  local last, all = defense:batch_defense(images, labels, { epochs = 8, seed = 1 })
  t.equal(last < all[1], true)
  local classes = D.SmoothedClassifier(net, { sigma = 0.25 }):predict(images[{ ms.slice(0, 20) }], { n = 200 }):tolist()
  local right = 0
  for i, label in ipairs(labels[{ ms.slice(0, 20) }]:tolist()) do right = right + (classes[i] == label and 1 or 0) end
  t.equal(right >= 12, true)
end)

local pictures = ms.rand { 2, 1, 9, 8 }

t.test("transformations do what they are called", function()
  local levels = D.BitDepthReduction(2)(pictures)
  t.near(ops.remainder(levels * 3 + 0.25, 1.0), ms.full({ 2, 1, 9, 8 }, 0.25), 1e-5)
  t.equal(ops.max(ops.abs(levels - pictures)):item() <= 1 / 6 + 1e-6, true)
  local even = ms.full({ 1, 3, 16, 16 }, 0.5)
  t.near(D.JpegCompression(90)(even), even, 0.01)
  local fine, coarse = D.JpegCompression(95)(pictures), D.JpegCompression(5)(pictures)
  t.equal(ops.mean(ops.abs(fine - pictures)):item() < ops.mean(ops.abs(coarse - pictures)):item(), true)
  local shrunk = D.RandomResizePad(0.5, { seed = 3 })(ms.ones { 1, 1, 20, 20 })
  local kept = ops.mean(shrunk):item()
  t.equal(kept > 0.2 and kept < 1, true)
  t.near(D.RandomResizePad(1.0)(pictures), pictures, 1e-5)
end)

t.test("total variation is least where it says", function()
  local weight = 0.1
  local function energy(u, f)
    local down = u[{ 0, 0, ms.slice(1, 9) }] - u[{ 0, 0, ms.slice(0, 8) }]
    local right = u[{ 0, 0, ms.slice(), ms.slice(1, 8) }] - u[{ 0, 0, ms.slice(), ms.slice(0, 7) }]
    local d = ops.pad(down, { 0, 0, 0, 1 })
    local r = ops.pad(right, { 0, 1 })
    return (ops.sum(ops.sqrt(d * d + r * r)) * weight + ops.sum(ops.square(u - f)) / 2):item()
  end
  local f = pictures[{ ms.slice(0, 1) }]:astype(ms.float64)
  local u = D.TotalVariationMinimization(weight, 2000)(f)
  local least = energy(u, f)
  t.equal(least < energy(f, f), true)
  for _ = 1, 20 do t.equal(energy(ops.clamp(u + 0.01 * ms.randn({ 1, 1, 9, 8 }):astype(ms.float64), 0.0, 1.0), f) > least, true) end
  t.near(ops.mean(u):item(), ops.mean(f):item(), 1e-9)
end)

t.test("gradients pass a transformation straight where they are asked to", function()
  local net = nn.SequentialCell(nn.Flatten(), nn.Dense(72, 3))
  local depth = D.BitDepthReduction(1)
  local function slope(f) return ms.grad(function(z) return ops.sum(ops.square(f(z))) end)(pictures) end
  local at_result = ms.grad(function(z) return ops.sum(ops.square(net(z))) end)(depth(pictures))
  t.near(slope(depth:defend(net)), at_result, 1e-5)
  t.near(depth:defend(net)(pictures), net(depth(pictures)), 1e-5)
  t.equal(ops.max(ops.abs(slope(depth:defend(net, false)))):item(), 0.0)
  local labels = ms.tensor({ 0, 1 }, ms.int32)
  local attack = ms.armour.attacks.FastGradientSignMethod(D.JpegCompression(50):defend(net), { eps = 0.1 })
  local adv = attack:generate(pictures, labels)
  t.equal(ops.max(ops.abs(adv - pictures)):item() > 0.05, true)
end)

t.test("what is wrong is said", function()
  t.fails({ "sigma must be a positive number" }, D.SmoothedClassifier, plane, { sigma = 0 })
  t.fails({ "alpha must be above 0 and below 1" }, function() D.SmoothedClassifier(plane):certify(x, { alpha = 0 }) end)
  t.fails({ "hold no sample" }, function() D.SmoothedClassifier(plane):certify(ms.zeros { 0, 3 }) end)
  t.fails({ "n must be a positive integer" }, function() D.SmoothedClassifier(plane):predict(x, { n = 0 }) end)
  t.fails({ "quality must be from 1 to 100" }, D.JpegCompression, 101)
  t.fails({ "bits must be from 1 to 8" }, D.BitDepthReduction, 9)
  t.fails({ "smallest must be at most 1" }, D.RandomResizePad, 1.5)
  t.fails({ "outside of the bounds 0.0 and 1.0" }, D.JpegCompression(), pictures * 2)
  t.fails({ "1 or 3 channels, got 2" }, D.JpegCompression(), ms.rand { 1, 2, 8, 8 })
end)

t.finish()
