-- Layers whose weights are distributions: their draws, their divergence, and that they are trained.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
local bnn, d = ms.probability.bnn_layers, ms.probability.distribution

local function mean_and_sd(f, count)
  local list = {}
  for i = 1, count do list[i] = f() end
  local all = ops.stack(list, 0)
  return ops.mean(all, 0), ops.std(all, 0)
end

for _, kind in ipairs { "DenseReparam", "DenseLocalReparam" } do
  t.test(kind .. ": the results have the mean and the spread of the weights' distribution", function()
    ms.set_seed(4)
    local cell = bnn[kind](3, 2, { weight_posterior_fn = function(name, shape)
      return bnn.NormalPosterior(name, shape, { untransformed_scale_mean = 0.0 })
    end })
    local x = ms.tensor { { 1.0, 2.0, -1.0 } }
    local mean, sd = cell.weight_posterior("get_dist_args")
    local bias_mean, bias_sd = cell.bias_posterior("get_dist_args")
    local found_mean, found_sd = mean_and_sd(function() return cell(x) end, 4000)
    t.near(found_mean, ops.dense(x, mean) + bias_mean, 0.1)
    t.near(found_sd, ops.sqrt(ops.dense(x ^ 2, sd ^ 2) + bias_sd ^ 2), 0.1)
  end)
end

t.test("samples of a batch are independent where results are drawn, and not where weights are", function()
  ms.set_seed(4)
  local x = ms.ones { 2, 3 }
  local y = bnn.DenseReparam(3, 4)(x)
  t.equal(y[0], y[1])
  local z = bnn.DenseLocalReparam(3, 4, { has_bias = false })(x)
  assert((z[0] - z[1]):abs():max():item() > 0)
end)

t.test("the divergence is that of the posterior from the prior", function()
  local cell = bnn.DenseReparam(2, 2, { weight_prior_fn = function() return d.Normal(0.5, 2.0) end })
  local mean, sd = cell.weight_posterior("get_dist_args")
  local wanted = ops.sum(d.Normal(mean, sd):kl_loss(d.Normal(0.5, 2.0)))
  mean, sd = cell.bias_posterior("get_dist_args")
  wanted = wanted + ops.sum(d.Normal(mean, sd):kl_loss(d.Normal(0.0, 0.1)))
  for _ = 1, 3 do t.near(cell:compute_kl_loss():item(), wanted:item(), 1e-4) end
end)

t.test("a convolution", function()
  ms.set_seed(1)
  local cell = bnn.ConvReparam(2, 4, 3, { stride = 2, pad_mode = "pad", padding = 1, has_bias = true })
  local x = ms.randn { 1, 2, 6, 6 }
  t.equal(tostring(cell(x).shape), "(1, 4, 3, 3)")
  local mean = cell.weight_posterior("get_dist_args")
  local found = mean_and_sd(function() return cell(x) end, 600)
  local bias = cell.bias_posterior("get_dist_args")
  t.near(found, ops.conv2d(x, mean, bias, 2, "pad", 1), 0.1)
  t.equal(#cell:trainable_params(), 4)
end)

t.test("a network learns the line, and is less sure where it has seen nothing", function()
  ms.set_seed(3)
  local net = nn.SequentialCell(bnn.DenseReparam(1, 16, { activation = "tanh" }), bnn.DenseReparam(16, 1))
  local x = ops.linspace(-1.0, 1.0, 32):reshape { -1, 1 }
  local y = ops.sin(2.0 * x)
  local cell = bnn.WithBNNLossCell(net, nn.MSELoss(), 1, 1e-4)
  local step = nn.TrainOneStepCell(cell, nn.Adam(net:trainable_params(), 0.03))
  local first, last
  for _ = 1, 300 do
    last = step(x, y):item()
    first = first or last
  end
  assert(last < 0.3 * first, ("the loss went from %g to %g"):format(first, last))
  -- Without the divergence the loss is the plain one.
  local plain = bnn.WithBNNLossCell(nn.Dense(1, 1), nn.MSELoss(), 2.0, 1.0)
  t.near(plain(x, y):item(), 2 * nn.MSELoss()(plain.backbone(x), y):item(), 1e-5)
end)

t.test("errors", function()
  local function one() return 1 end
  t.fails({ "DenseReparam", "weight_prior_fn must give a distribution" }, bnn.DenseReparam, 1, 1, { weight_prior_fn = one })
  t.fails({ "DenseReparam", "weight_posterior_fn must be a function" }, bnn.DenseReparam, 1, 1, { weight_posterior_fn = 1 })
  t.fails({ "in_channels must be positive" }, bnn.DenseLocalReparam, 0, 1)
  t.fails({ "NormalPosterior", "loc_std must not be negative" }, bnn.NormalPosterior, "w", { 1 }, { loc_std = -1 })
  t.fails({ "WithBNNLossCell", "backbone must be a cell" }, bnn.WithBNNLossCell, 1, nn.MSELoss())
  t.fails({ "there is no layer 'Dense'" }, function() return bnn.Dense end)
end)

t.finish()
