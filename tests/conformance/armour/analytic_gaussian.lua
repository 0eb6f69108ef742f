-- The least noise of the Gaussian mechanism for one answer.
local ms = require "lunaria"
local values = require "armour.values"

return function(section, case)
  for i, row in ipairs(section.rows) do
    case(("analytic_gaussian/%d"):format(i), function()
      local sigma = ms.armour.privacy.accountants.analytic_gaussian(row.eps, row.delta)
      return values.differs("sigma", sigma, row.sigma, section.tolerance, section.tolerance)
    end)
  end
end
