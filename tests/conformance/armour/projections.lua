-- Projections of rows on balls around 0, and on the simplex.
local common = require "lunaria.armour.common"
local values = require "armour.values"

return function(section, case)
  local rows = values.float64(section.rows)
  -- The radii are said in the description of the file: "l1 radius 2, l2 radius 1.5, linf 0.7".
  local said = section.description
  local radius = { l1 = tonumber(said:match "l1 radius ([%d.]+)"), l2 = tonumber(said:match "l2 radius ([%d.]+)"),
    linf = tonumber(said:match "linf ([%d.]+)") }
  for name, eps in pairs(radius) do
    case("projections/" .. name, function()
      local got = common.project(rows, common.norm_kind("case", name), eps)
      return values.differs(name, got, section[name], section.tolerance)
    end)
  end
  if section.simplex then
    case("projections/simplex", function()
      return values.differs("simplex", common.project(rows:abs(), 1, 1.0), section.simplex, section.tolerance)
    end)
  end
end
