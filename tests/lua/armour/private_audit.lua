-- A black-box audit of the private training that users run (DPModel with Poisson sampling): 1000 trainings of a linear model, half of them
-- with a canary, prove no epsilon above the one that is claimed. About a minute; not among the tests of every day.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, nn = ms.ops, ms.nn
local P = ms.armour.privacy

ms.set_seed(21)
local d, n, steps, rate, sigma, delta = 6, 12, 12, 0.5, 2.0, 1e-5
local x = ops.concat({ ms.randn { n, d - 1 }, ms.zeros { n, 1 } }, 1)
local y = x[{ ms.slice(), ms.slice(0, 1) }] * 0.5
-- Only the canary has the last column, so that the weight of this column tells whether it was there. Its target is out of reach, and the
-- derivative of the absolute error the same everywhere: in each step the canary moves that weight by the whole norm bound.
local with_x = ops.concat({ x, ops.concat({ ms.zeros { 1, d - 1 }, ms.full({ 1, 1 }, 50.0) }, 1) }, 0)
local with_y = ops.concat({ y, ms.full({ 1, 1 }, 1e5) }, 0)

local net = nn.Dense(d, 1)
local model = P.diff_privacy.DPModel(net, nn.L1Loss(), nn.SGD(net:trainable_params(), 0.5), {
  norm_bound = 1.0, noise_mech = P.diff_privacy.NoiseGaussianRandom(1.0, sigma), expected_batch_size = rate * n,
})

local function train(has_canary)
  local rows, labels = has_canary and with_x or x, has_canary and with_y or y
  for _, parameter in ipairs(net:trainable_params()) do parameter:assign(ops.zeros_like(parameter)) end
  for _ = 1, steps do
    local taken = {}
    for i, share in ipairs(ops.rand({ rows.shape[1] }):tolist()) do
      if share < rate then taken[#taken + 1] = i - 1 end
    end
    local chosen = ms.tensor(taken, ms.int64)
    if #taken > 0 then model.private(ops.gather(rows, chosen, 0), ops.gather(labels, chosen, 0)) end
    if #taken == 0 then model.private(rows[{ ms.slice(0, 0) }], labels[{ ms.slice(0, 0) }]) end
  end
  return net.weight[{ 0, d - 1 }]:item()
end

t.test("1000 trainings prove no more than the accountant claims", function()
  local found = P.evaluation.canary_audit(function(has_canary, seeds)
    local scores = {}
    for i = 1, seeds.shape[1] do scores[i] = train(has_canary) end
    return ms.tensor(scores, ms.float64)
  end, { runs = 1000, delta = delta })
  local accountant = P.accountants.Accountant()
  accountant:step { noise_multiplier = sigma, sample_rate = rate, steps = steps }
  local claimed = accountant:epsilon(delta)
  print(("proved %.3f, claimed %.3f (tpr %.3f, fpr %.3f)"):format(found.epsilon, claimed, found.tpr, found.fpr))
  -- The canary is as bad as a row can be, so that some epsilon is seen.
  assert(found.epsilon > 0.3 and found.epsilon <= claimed)
end)

t.finish()
