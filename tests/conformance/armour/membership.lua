-- Membership by thresholds of losses, and a likelihood ratio of two normal densities.
local ms = require "lunaria"
local values = require "armour.values"
local E = ms.armour.privacy.evaluation

return function(section, case)
  case("membership/threshold", function()
    local found = E.threshold_attack(-values.float64(section.member_losses), -values.float64(section.non_member_losses), 0.1)
    return values.first(values.differs("auc", found.auc, section.auc, section.tolerance),
      values.differs("advantage", found.advantage, section.advantage, section.tolerance),
      values.differs("tpr", found.tpr_at_fpr, section.tpr_at_fpr_0_1, section.tolerance))
  end)
  local lira = section.lira
  if lira then
    case("membership/lira", function()
      local got = E.lira_ratio(lira.phi, lira.mean_in, lira.std_in, lira.mean_out, lira.std_out)
      return values.differs("log ratio", got, lira.log_ratio, section.tolerance)
    end)
  end
end
