-- The fast gradient methods, projected gradient descent without a random start, and its targeted form, on perceptrons.
local ms = require "lunaria"
local common = require "lunaria.armour.common"
local values = require "armour.values"

local A = ms.armour.attacks

return function(section, case)
  for number, given in ipairs(section) do
    local network = values.network(given)
    local x, y, tolerance = values.float64(given.x), values.classes(given.y), given.tolerance
    local bounds, model = { given.clip[1], given.clip[2] }, common.classifier("case", network)
    -- eps and steps of the file are lengths, those of attacks shares of the range.
    local range = given.clip[2] - given.clip[1]
    local function settings(more)
      local all = { eps = given.eps / range, bounds = bounds }
      for name, value in pairs(more) do all[name] = value end
      return all
    end
    local steps = { eps_iter = given.alpha / range, nb_iter = given.steps, random_start = false }
    local function check(name, f) case(("adversarial/%d/%s"):format(number, name), f) end
    check("logits", function() return values.differs("logits", model:logits(x), given.logits, tolerance) end)
    check("loss_sum", function() return values.differs("loss", ms.ops.sum(model:losses(x, y)), given.loss_sum, tolerance) end)
    check("input_gradient", function()
      return values.differs("gradient", model:input_gradient(x, y), given.input_gradient, tolerance)
    end)
    check("fgsm_linf", function()
      return values.differs("adversarial", A.FastGradientSignMethod(network, settings {}):generate(x, y), given.fgsm_linf, tolerance)
    end)
    check("fgm_l2", function()
      local attack = A.FastGradientMethod(network, settings { norm_level = 2 })
      return values.differs("adversarial", attack:generate(x, y), given.fgm_l2, tolerance)
    end)
    check("pgd_linf", function()
      return values.differs("adversarial", A.ProjectedGradientDescent(network, settings(steps)):generate(x, y), given.pgd_linf, tolerance)
    end)
    check("pgd_targeted_next_class", function()
      local attack = A.ProjectedGradientDescent(network, settings { eps_iter = steps.eps_iter, nb_iter = steps.nb_iter,
        random_start = false, is_targeted = true })
      return values.differs("adversarial", attack:generate(x, (y + 1) % #given.logits[1]), given.pgd_targeted_next_class, tolerance)
    end)
    check("mi_fgsm_linf", function()
      local attack = A.MomentumIterativeMethod(network, settings { eps_iter = steps.eps_iter, nb_iter = steps.nb_iter })
      return values.differs("adversarial", attack:generate(x, y), given.mi_fgsm_linf, tolerance)
    end)
  end
end
