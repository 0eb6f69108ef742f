-- Per-sample gradients of convolution, group norm and dense layer: norms, sums by each way of clipping, and a noisy mean, which is what a
-- private step of gradient descent takes from the parameters.
local ms = require "lunaria"
local values = require "armour.values"

local nn, float64 = ms.nn, values.float64
local dp = ms.armour.privacy.diff_privacy
local names = { "K", "bc", "gamma", "beta", "W", "b" }

local function network(p)
  local K, W = float64(p.K), float64(p.W)
  local shape = K.shape
  local options = { dtype = ms.float64 }
  local net = nn.SequentialCell(
    nn.Conv2d(shape[2], shape[1], { shape[3], shape[4] }, { pad_mode = "valid", has_bias = true, dtype = ms.float64 }), nn.Tanh(),
    nn.GroupNorm(p.groups, shape[1], options), nn.Flatten(), nn.Dense(W.shape[2], W.shape[1], options))
  for i, parameter in ipairs(net:trainable_params()) do parameter:assign(float64(p[names[i]])) end
  return net
end

-- What a step of the rate 1 takes from the parameters. noise: of unit deviation, by parameter.
local function taken(row, x, y, clipping, sigma, noise, divisor)
  local net = network(row.params)
  local before = {}
  for i, parameter in ipairs(net:trainable_params()) do before[i] = parameter:copy() end
  local mechanism = dp.NoiseGaussianRandom(row.clip, sigma, { seed = 1 })
  local k = 0
  function mechanism:_unit(like) -- luacheck: ignore 212
    k = k + 1
    return noise and float64(noise[names[k]]):reshape(like.shape) or ms.ops.zeros_like(like)
  end
  local model = dp.DPModel(net, nn.CrossEntropyLoss(), nn.SGD(net:trainable_params(), 1.0), {
    norm_bound = row.clip, noise_mech = mechanism, clipping = clipping, expected_batch_size = divisor, poisson_sampling = false })
  model:train(1, { { x, y } })
  local moved = {}
  for i, parameter in ipairs(net:trainable_params()) do moved[i] = before[i] - parameter end
  return moved
end

local function compare(what, got, expected, tolerance)
  for i, name in ipairs(names) do
    local wrong = values.differs(what .. " " .. name, got[i]:reshape { -1 }, float64(expected[name]):reshape { -1 }, tolerance)
    if wrong then return wrong end
  end
end

return function(section, case)
  for index, row in ipairs(section) do
    local x, y = float64(row.x), values.classes(row.y)
    local n = x.shape[1]
    for _, mode in ipairs { "ghost", "vmap" } do
      case(("dp_gradients/%d/%s"):format(index, mode), function()
        local each = dp.PerSampleGradients(network(row.params), nn.CrossEntropyLoss(), { mode = mode })
        local norms = each:norms(x, y)
        local gradients, losses = each:gradients(x, y)
        local sums = each:weighted_sum(ms.ones({ n }, ms.float64), x, y)
        local scaled = each:weighted_sum(float64(row.factors), x, y)
        local added = {}
        for i, g in ipairs(gradients) do added[i] = ms.ops.sum(g, 0) end
        return values.first(
          values.differs("losses", losses, row.losses, row.tolerance), values.differs("norms", norms, row.norms, row.tolerance),
          compare("plain sum", sums, row.plain_sum, row.tolerance), compare("sum of gradients", added, row.plain_sum, row.tolerance),
          compare("clipped sum", scaled, row.flat_clipped_sum, row.tolerance))
      end)
    end
    for _, clipping in ipairs { "flat", "per_layer", "automatic" } do
      case(("dp_gradients/%d/%s"):format(index, clipping), function()
        -- The vectors' automatic clipping has the bound 1.
        local scale = clipping == "automatic" and row.clip or 1.0
        local sums = taken(row, x, y, clipping, 1.0, nil, 1)
        for i = 1, #sums do sums[i] = sums[i] / scale end
        return compare(clipping, sums, row[clipping .. "_clipped_sum"], row.tolerance)
      end)
    end
    case(("dp_gradients/%d/noisy mean"):format(index), function()
      return compare("noisy mean", taken(row, x, y, "flat", row.sigma, row.unit_noise, row.expected_batch), row.noisy_mean, row.tolerance)
    end)
  end
end
