-- Rényi divergences of private training and the epsilons of both conversions, at the orders that the libraries use by default.
local ms = require "lunaria"
local values = require "armour.values"
local A = ms.armour.privacy.accountants

local opacus, integers = {}, {}
for tenth = 11, 109 do opacus[#opacus + 1] = tenth / 10 end
for order = 12, 63 do opacus[#opacus + 1] = order end
for order = 2, 64 do integers[#integers + 1] = order end
for _, order in ipairs { 128, 256, 512 } do integers[#integers + 1] = order end

local function accountant(row, options)
  local a = A.Accountant(options)
  a:step { noise_multiplier = row.noise_multiplier, sample_rate = row.sample_rate, steps = row.steps }
  return a
end

-- Where nothing is sampled epsilon is 0, which the conversions of divergences alone do not say.
local function expected(row, epsilon) return row.sample_rate == 0 and 0.0 or epsilon end

return function(section, case)
  for i, row in ipairs(section) do
    local function check(name, f) case(("dp_sgd/%s/%d"):format(name, i), f) end
    check("rdp", function()
      local one = { noise_multiplier = row.noise_multiplier, sample_rate = row.sample_rate, steps = 1 }
      for _, field in ipairs { "rdp_per_step", "rdp_per_step_opacus" } do
        local orders, list = {}, {}
        for order, value in pairs(row[field] or {}) do
          orders[#orders + 1], list[#list + 1] = tonumber(order), value
        end
        if #orders > 0 then
          local wrong = values.differs(field, accountant(one):divergences(orders), list, 1e-12, 1e-6)
          if wrong then return wrong end
        end
      end
    end)
    check("opacus", function()
      local got = accountant(row, { mechanism = "rdp", orders = opacus }):epsilon(row.delta)
      return values.differs("epsilon", got, expected(row, row.epsilon_opacus), 1e-6, 4e-4)
    end)
    check("integers", function()
      local got = accountant(row, { mechanism = "rdp", orders = integers }):epsilon(row.delta)
      return values.differs("epsilon", got, expected(row, row.epsilon_integer_orders), 1e-9, 1e-9)
    end)
    check("classic", function()
      local got = accountant(row, { mechanism = "rdp", orders = opacus, conversion = "classic" }):epsilon(row.delta)
      return values.differs("epsilon", got, expected(row, row.epsilon_classic_conversion), 1e-6, 4e-4)
    end)
    check("prv", function()
      -- The reference is a law on a coarser grid, which lies up to 6 % above the truth.
      local got = accountant(row):epsilon(row.delta)
      if got > row.epsilon_pld_reference + 1e-3 or got < 0.93 * row.epsilon_pld_reference then
        return ("epsilon is %.9g, the reference %.9g"):format(got, row.epsilon_pld_reference)
      end
    end)
  end
end
