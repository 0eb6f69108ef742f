-- The bounds that follow a quantile of the norms, from the shares of gradients that were not clipped.
local ms = require "lunaria"
local values = require "armour.values"

return function(section, case)
  -- The settings are said in the description: "start 1, lr 0.2, quantile 0.5".
  local said = section.description
  local start, rate = tonumber(said:match "start ([%d.]+)"), tonumber(said:match "lr ([%d.]+)")
  local quantile = tonumber(said:match "quantile ([%d.]+)$" or said:match ", quantile ([%d.]+)")
  for name, policy in pairs { linear = "Linear", geometric = "Geometric" } do
    case("adaptive_clip/" .. name, function()
      local clip = ms.armour.privacy.diff_privacy.AdaClippingWithGaussianRandom(policy, rate, quantile, 0.0)
      local got, bound = {}, start
      for i, fraction in ipairs(section.fractions) do
        bound = clip(fraction, bound)
        got[i] = bound
      end
      return values.differs(name, got, section[name], section.tolerance)
    end)
  end
end
