-- Clipping of given gradients: a network whose gradient for a sample is the sample itself.
local ms = require "lunaria"
local values = require "armour.values"

local nn, ops = ms.nn, ms.ops
local dp = ms.armour.privacy.diff_privacy

return function(section, case)
  case("clipping", function()
    local x = values.float64(section.per_sample_gradients)
    local n, width = x.shape[1], x.shape[2]
    local net = nn.Dense(width, 1, { has_bias = false, weight_init = "zeros", dtype = ms.float64 })
    local function loss(outputs) return ops.reshape(outputs, { -1 }) end
    local each = dp.PerSampleGradients(net, loss)
    local norms = each:norms(x, x)
    local sums = each:weighted_sum(values.float64(section.factors), x, x)
    local mechanism = dp.NoiseGaussianRandom(section.l2_norm_clip, section.noise_multiplier, { seed = 1 })
    function mechanism:_unit() return values.float64(section.unit_noise):reshape { 1, width } end -- luacheck: ignore 212
    local model = dp.DPModel(net, loss, nn.SGD(net:trainable_params(), 1.0),
      { norm_bound = section.l2_norm_clip, noise_mech = mechanism, poisson_sampling = false })
    model:train(1, { { x, x } })
    local tolerance = section.tolerance or 1e-12
    return values.first(
      values.differs("norms", norms, section.norms, tolerance),
      values.differs("factors", ops.minimum(section.l2_norm_clip / norms, 1.0), section.factors, tolerance),
      values.differs("clipped sum", sums[1]:reshape { -1 }, section.clipped_sum, tolerance),
      values.differs("noisy mean", (-net.weight):reshape { -1 }, section.noisy_mean, tolerance), n ~= #section.norms and "rows" or nil)
  end)
end
