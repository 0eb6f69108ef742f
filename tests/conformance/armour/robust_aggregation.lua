-- Rules of aggregation that bear faulty parties.
local ms = require "lunaria"
local values = require "armour.values"

local strategies = ms.federated.strategies
local robust = require "lunaria.federated.strategies.robust"

-- By the names of the expectations; of the others, what they are of the updates is said below.
local made = {
  multi_krum = function(part) return strategies.MultiKrum { faulty = part.f } end,
  trimmed_mean = function(part) return strategies.TrimmedMean { faulty = part.f } end,
  median = function() return strategies.Median() end,
  geometric_median = function() return strategies.GeometricMedian() end,
  bulyan = function(part) return strategies.Bulyan { faulty = part.f } end,
  mean = function() return strategies.FedAvg { weighted = false } end,
}

local function aggregated(strategy, part)
  local updates = {}
  for i, row in ipairs(part.updates) do
    updates[#part.updates + 1 - i] = { id = i, samples = 1, weights = ms.federated.FeatureMap { w = ms.tensor(row, ms.float64) } }
  end
  local global = ms.federated.FeatureMap { w = ms.zeros({ #part.updates[1] }, ms.float64) }
  local map, refused = strategies.aggregate(strategy, { number = 1, seed = 1, clients = #updates }, global, updates)
  if #refused > 0 then error(refused[1].reason) end
  return map.w:tolist()
end

return function(section, case)
  for i, part in ipairs(section[1] and section or { section }) do
    local tolerance = part.tolerance or section.tolerance or 1e-9
    for name, make in pairs(made) do
      if part[name] then
        case(("robust_aggregation/%s/%d"):format(name, i), function()
          return values.differs(name, aggregated(make(part), part), part[name], tolerance)
        end)
      end
    end
    if part.krum_index then
      case(("robust_aggregation/krum/%d"):format(i), function()
        local got = aggregated(strategies.Krum { faulty = part.f }, part)
        return values.differs("krum", got, part.updates[part.krum_index + 1], 0)
      end)
    end
    if part.krum_scores then
      case(("robust_aggregation/krum_scores/%d"):format(i), function()
        local got = robust.krum_scores(ms.tensor(part.updates, ms.float64), part.f)
        return values.differs("krum_scores", got, part.krum_scores, tolerance, tolerance)
      end)
    end
  end
end
