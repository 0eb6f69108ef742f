-- Histories of sampled Gaussian steps: the tight accountant lies between what Fourier accountants say, divergences give at most theirs.
local ms = require "lunaria"
local A = ms.armour.privacy.accountants

local function epsilon_of(row, options)
  local accountant = A.Accountant(options)
  for _, step in ipairs(row.history) do accountant:step(step) end
  return accountant:epsilon(row.delta)
end

-- nil, or that a value is not between two bounds.
local function outside(what, value, least, most)
  if value >= least and value <= most then return nil end
  return ("%s: epsilon is %.9g, not from %.9g to %.9g"):format(what, value, least, most)
end

return function(section, case)
  for i, row in ipairs(section.rows) do
    case(("accountants/prv/%d"):format(i), function()
      return outside("prv", epsilon_of(row, { mechanism = "prv" }), row.epsilon_prv_lower, row.epsilon_pld_dp_accounting + 1e-3)
    end)
    case(("accountants/rdp/%d"):format(i), function()
      -- Orders differ between libraries: ours are more, so that the bound is at most theirs, and never below the truth.
      local theirs = math.min(row.epsilon_rdp_opacus, row.epsilon_rdp_dp_accounting)
      return outside("rdp", epsilon_of(row, { mechanism = "rdp" }), row.epsilon_prv_lower, theirs * (1 + 1e-6))
    end)
    if row.epsilon_zcdp_unsampled then
      case(("accountants/zcdp/%d"):format(i), function()
        local unsampled = { history = {}, delta = row.delta }
        for k, step in ipairs(row.history) do unsampled.history[k] = { noise_multiplier = step.noise_multiplier, steps = step.steps } end
        local plain = row.epsilon_zcdp_unsampled
        return outside("zcdp without sampling", epsilon_of(unsampled, { mechanism = "zcdp", conversion = "classic" }), plain * (1 - 1e-9),
          plain * (1 + 1e-9)) or outside("zcdp", epsilon_of(row, { mechanism = "zcdp" }), row.epsilon_prv_lower, plain)
      end)
    end
    if row.epsilon_exact_gaussian then
      case(("accountants/exact/%d"):format(i), function()
        local exact = row.epsilon_exact_gaussian
        return outside("prv", epsilon_of(row, { mechanism = "prv" }), exact - 1e-6, exact + 1e-5)
      end)
    end
  end
end
