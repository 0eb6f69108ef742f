-- Noise multipliers before each step by the three rules of decay.
local ms = require "lunaria"
local values = require "armour.values"

return function(section, case)
  for name, policy in pairs { time = "Time", step = "Step", exp = "Exp" } do
    case("noise_decay/" .. name, function()
      local noise = ms.armour.privacy.diff_privacy.NoiseAdaGaussianRandom(1.0, section.initial,
        { noise_decay_rate = section.rate, decay_policy = policy })
      local got = {}
      for i = 1, #section[name] do
        got[i] = noise:noise_multiplier()
        noise:advance()
      end
      return values.differs(name, got, section[name], section.tolerance)
    end)
  end
end
