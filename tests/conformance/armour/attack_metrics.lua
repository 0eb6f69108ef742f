-- Figures of attacks, and of pictures.
local ms = require "lunaria"
local values = require "armour.values"

local E, float64 = ms.armour.evaluations, values.float64

return function(section, case)
  local images, changed, one_hot = float64(section.images), float64(section.adversarial), float64(section.one_hot)
  local preds = float64(section.probabilities)
  local kinds = {
    untargeted = function() return E.AttackEvaluate(images, one_hot, changed, preds) end,
    targeted = function() return E.AttackEvaluate(images, one_hot, changed, preds, true, values.classes(section.target_labels)) end,
  }
  for kind, make in pairs(kinds) do
    for name, expected in pairs(section[kind]) do
      case(("attack_metrics/%s/%s"):format(kind, name), function()
        local evaluation = make()
        local got = { evaluation[name](evaluation) }
        return values.differs(name, #got > 1 and got or got[1], expected, section.tolerance)
      end)
    end
  end
  for name, key in pairs { ssim = "ssim", psnr = "psnr_range1" } do
    if section[key] then
      case("attack_metrics/" .. key, function() return values.differs(key, E[name](images, changed), section[key], section.tolerance) end)
    end
  end
end
