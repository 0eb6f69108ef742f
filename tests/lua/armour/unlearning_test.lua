-- ms.armour.privacy: networks that can forget, and suppressed weights. Takes about a second.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local privacy, nn, ops = ms.armour.privacy, ms.nn, ms.ops

local function make(seed)
  ms.set_seed(seed)
  return nn.SequentialCell(nn.Dense(3, 4), nn.Tanh(), nn.Dense(4, 2))
end

local function train(net, x, y, seed)
  ms.set_seed(seed)
  local optimizer = nn.SGD(net:trainable_params(), 0.2)
  local step = ms.value_and_grad(function() return ops.cross_entropy(net(x), y) end, nil, optimizer.parameters)
  for _ = 1, 5 do optimizer((select(2, step()))) end
end

local function same_bits(a, b)
  for i, network in ipairs(a:networks()) do
    for k, p in ipairs(network:trainable_params()) do
      if not ops.all(ops.equal(p, b:networks()[i]:trainable_params()[k])):item() then return false end
    end
  end
  return true
end

t.test("what has forgotten samples has the bits of a training that never had them", function()
  ms.set_seed(1)
  local x, y = ops.randn(60, 3), ops.arange(60):astype(ms.int32) % 2
  local function fitted()
    local sisa = privacy.unlearning.SISA(make, train, { shards = 3, slices = 4, seed = 9 })
    sisa:fit(x, y)
    return sisa
  end
  local one, other = fitted(), fitted()
  t.equal(same_bits(one, other), true)
  local trained = one:unlearn { 7, 30 }
  t.equal(trained >= 1 and trained <= 8, true)
  t.equal(same_bits(one, other), false)
  -- From the start without the two samples: the same parts, so taken out one after the other before the training of a new ensemble.
  local third = fitted()
  third:unlearn { 30 }
  third:unlearn { 7 }
  t.equal(same_bits(one, third), true)
  -- The samples' values no longer matter.
  local changed = x:copy()
  changed[7] = 100.0
  changed[30] = -100.0
  local fourth = privacy.unlearning.SISA(make, train, { shards = 3, slices = 4, seed = 9 })
  fourth:fit(changed, y)
  t.equal(same_bits(one, fourth), false)
  fourth:unlearn { 7, 30 }
  t.equal(same_bits(one, fourth), true)
  t.near(ops.sum(one:predict(x), 1), ops.ones { 60 }, 1e-5)
  t.fails("sample 7 is forgotten already", function() one:unlearn { 7 } end)
  t.fails("there is no sample 60", function() one:unlearn { 60 } end)
  t.fails("nothing has been learnt yet", function() privacy.unlearning.SISA(make, train):unlearn { 1 } end)
end)

local sup = privacy.sup_privacy

t.test("suppression leaves the share of weights that was asked for, within the bound", function()
  ms.set_seed(2)
  local net = make(3)
  local x, y = ops.randn(16, 3), ops.arange(16):astype(ms.int32) % 2
  local model = sup.SuppressModel(net, nn.CrossEntropyLoss(), nn.Momentum(net:trainable_params(), 0.1, 0.9))
  local masks = { sup.MaskLayerDes("0.weight", 0, false, true, 0, 0.5), sup.MaskLayerDes("2.weight", -1, true, true, 5) }
  local ctrl = sup.SuppressPrivacyFactory.create(net, masks, "local_train",
    { start_epoch = 2, end_epoch = 4, batch_num = 2, sparse_end = 0.75, seed = 1 })
  model:link_suppress_ctrl(ctrl)
  model:train(1, { { x, y }, { x, y } })
  t.equal(ctrl:shares()["0.weight"], 0.0)
  model:train(5, { { x, y }, { x, y } }, { initial_epoch = 1 })
  t.near(ctrl:shares()["0.weight"], 0.75, 1e-12)
  t.near(ctrl:shares()["2.weight"], 3 / 8, 1e-12)
  t.equal(ops.max(ops.abs(net[1].weight)):item() <= 0.5, true)
  t.near(ctrl:sparsity(2), 0, 0)
  t.near(ctrl:sparsity(5), 0.75 - 0.75 * 0.5 ^ 3, 1e-12)
  t.near(ctrl:sparsity(8), 0.75, 1e-12)
  t.near(ctrl:sparsity(100), 0.75, 1e-12)
  -- Fitting trains, too.
  local fitted = sup.SuppressModel(make(3), nn.CrossEntropyLoss())
  local own = sup.SuppressPrivacyFactory.create(fitted.network, { sup.MaskLayerDes("0.weight", 0) }, "local_train",
    { start_epoch = 1, end_epoch = 1, batch_num = 1, sparse_end = 0.5 })
  fitted:link_suppress_ctrl(own)
  fitted:fit(1, { { x, y } }, { { x, y } })
  t.near(own:shares()["0.weight"], 0.5, 1e-12)
  t.fails("no control is linked", function() sup.SuppressModel(net, nn.CrossEntropyLoss()):train(1, {}) end)
  t.fails("the network has no parameter '1.weight'", function()
    sup.SuppressPrivacyFactory.create(net, { sup.MaskLayerDes("1.weight", -1) })
  end)
  t.fails("is parameter 0 of the network, not 1", function()
    sup.SuppressPrivacyFactory.create(net, { sup.MaskLayerDes("0.weight", 1) })
  end)
end)

t.test("a model without an optimizer learns by the control's rate", function()
  local net = make(4)
  local model = sup.SuppressModel(net, nn.MSELoss())
  model:link_suppress_ctrl(sup.SuppressPrivacyFactory.create(net, { sup.MaskLayerDes("0.weight", -1) }, { lr = 0.1 }))
  local before = net[3].bias:copy()
  model:train(1, { { ops.ones { 2, 3 }, ops.ones { 2, 2 } } })
  t.equal(ops.max(ops.abs(net[3].bias - before)):item() > 0, true)
end)

t.finish()
