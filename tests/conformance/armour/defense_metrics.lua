-- Figures of defences.
local ms = require "lunaria"
local values = require "armour.values"

return function(section, case)
  for name, expected in pairs(section.expected) do
    case("defense_metrics/" .. name, function()
      local evaluation = ms.armour.evaluations.DefenseEvaluate(values.float64(section.raw), values.float64(section.defended),
        values.classes(section.labels))
      return values.differs(name, evaluation[name](evaluation), expected, section.tolerance)
    end)
  end
end
