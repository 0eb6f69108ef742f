-- Pictures that are found again from features: by descent, by an inverse network, by a shadow of a part that is not known. About 4 seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn
local E = ms.armour.privacy.evaluation

ms.set_seed(8)

-- Pictures of one square each.
local function squares(n)
  local list = {}
  for i = 1, n do
    local x = ms.full({ 1, 1, 8, 8 }, 0.2)
    local row, column = i % 4, i * 7 % 5
    x[{ ms.slice(), ms.slice(), ms.slice(row, row + 4), ms.slice(column, column + 3) }] = 0.9
    list[i] = x
  end
  return ops.concat(list, 0)
end
local x = squares(4)

t.test("features of a wide layer give the picture back, each sample on its own", function()
  local net = nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.Tanh(), nn.Flatten())
  local attack = E.ImageInversionAttack(net, { 1, 8, 8 }, { 0, 1 })
  local features = net(x)
  local found = attack:generate(features, 200)
  local distance, ssim = attack:evaluate(x, found)
  assert(distance < 0.1 and ssim > 0.9, ("%g %g"):format(distance, ssim))
  t.near(attack:generate(features[{ ms.slice(2, 3) }], 200), found[{ ms.slice(2, 3) }], 1e-3)
  assert(ops.min(found):item() >= 0 and ops.max(found):item() <= 1)
  -- Features that were rounded away give less back.
  local little = nn.SequentialCell(nn.Flatten(), nn.Dense(64, 3))
  local poor = E.ImageInversionAttack(little, { 1, 8, 8 }, { 0, 1 })
  assert(poor:evaluate(x, poor:generate(little(x), 200)) > 2 * distance)
  local _, _, confidence = attack:evaluate(x, found, ms.tensor { 0, 1, 2, 0 }, nn.SequentialCell(nn.Flatten(), nn.Dense(64, 3)))
  assert(confidence > 0 and confidence < 1)
end)

t.test("the weight of the total variation smooths what is found", function()
  local net = nn.SequentialCell(nn.Flatten(), nn.Dense(64, 20))
  local function roughness(weight)
    local found = E.ImageInversionAttack(net, { 1, 8, 8 }, { 0, 1 }, { 1.0, weight, 0.0 }):generate(net(x), 100)
    return ops.mean(ops.abs(found[{ ms.slice(), ms.slice(), ms.slice(1, 8) }] - found[{ ms.slice(), ms.slice(), ms.slice(0, 7) }])):item()
  end
  assert(roughness(2.0) < 0.5 * roughness(0.0))
end)

t.test("an inverse network learns the way back", function()
  local net = nn.SequentialCell(nn.Flatten(), nn.Dense(64, 32), nn.Tanh())
  local back = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 64))
  local attack = E.ModelInversionAttack(net, back, { 1, 8, 8 })
  local _, before = attack:evaluate(x, attack:inverse(net(x)))
  attack:train_inversion_model({ { squares(20) } }, { epochs = 150, lr = 5e-3 })
  local ssim, psnr = attack:evaluate(x, attack:inverse(net(x)))
  assert(psnr > before + 8 and ssim > 0.8, ("%g %g %g"):format(before, psnr, ssim))
end)

t.test("a shadow of a part that is not known inverts it better than chance", function()
  local first, rest = nn.SequentialCell(nn.Dense(6, 12), nn.Tanh()), nn.Dense(12, 3)
  local inputs = ms.rand { 300, 6 }
  local labels = ops.argmax(ops.matmul(inputs, ms.randn { 6, 3 }), 1):astype(ms.int32)
  local parameters = nn.CellList({ first, rest }):trainable_params()
  local optimizer = nn.Adam(parameters, 2e-2)
  local step = ms.value_and_grad(function() return ops.cross_entropy(rest(first(inputs)), labels) end, nil, parameters)
  for _ = 1, 100 do
    local _, gradients = step()
    optimizer(gradients)
  end
  local frozen = rest.weight:astype(ms.float32) + 0
  local attack = E.ShadowModelAttack(nn.SequentialCell(nn.Dense(6, 12), nn.Tanh()), rest, { 6 }, { 0, 1 })
  local loss = attack:train_shadow_model({ { inputs, labels } }, { epochs = 150, lr = 2e-2 })
  assert(loss < 0.5, loss)
  t.near(rest.weight, frozen, 0)
  local found = attack:inverse(first(inputs[{ ms.slice(0, 50) }]), 100)
  -- What decides the class comes back, even if the rest of the input does not.
  local classes = ops.argmax(rest(first(found)), 1):astype(ms.int32)
  local agree = ops.mean(ops.equal(classes, labels[{ ms.slice(0, 50) }]):astype(ms.float32)):item()
  assert(agree > 0.7, agree)
end)

t.test("bad input is an error that says what is wrong", function()
  local net = nn.Dense(4, 2)
  t.fails({ "ImageInversionAttack", "the first bound must be less" }, E.ImageInversionAttack, net, { 4 }, { 1, 0 })
  t.fails({ "ImageInversionAttack", "input_shape must be the sizes" }, E.ImageInversionAttack, net, 4, { 0, 1 })
  local weights = { loss_weights = { 1 } }
  t.fails({ "ImageInversionAttack", "loss_weights must be three numbers" }, E.ImageInversionAttack, net, { 4 }, { 0, 1 }, weights)
  local attack = E.ImageInversionAttack(net, { 4 }, { 0, 1 })
  t.fails({ "generate", "iters must be positive" }, attack.generate, attack, ms.ones { 1, 2 }, 0)
  local one = ms.ones { 1, 4 }
  t.fails({ "evaluate", "labels and new_network go together" }, attack.evaluate, attack, one, one, ms.tensor { 0 })
  t.fails({ "target_features hold nan" }, attack.generate, attack, net(one) / 0 * 0)
  t.fails({ "ModelInversionAttack", "inv_network must be a cell" }, E.ModelInversionAttack, net, function(z) return z end, { 4 })
  local back = E.ModelInversionAttack(net, nn.Dense(2, 4), { 4 })
  t.fails({ "train_inversion_model", "lr must be a positive number" }, back.train_inversion_model, back, { { one } }, { lr = 0 })
  t.fails({ "ShadowModelAttack", "shadow_network must be a cell" }, E.ShadowModelAttack, 3, net, { 4 }, { 0, 1 })
end)

t.finish()
