-- Figures of defences against attacks by queries.
local ms = require "lunaria"
local values = require "armour.values"

return function(section, case)
  for name, expected in pairs(section.expected) do
    case("black_defense_metrics/" .. name, function()
      local evaluation = ms.armour.evaluations.BlackDefenseEvaluate {
        raw_preds = values.float64(section.raw), def_preds = values.float64(section.defended),
        raw_query_counts = section.raw_query_counts, def_query_counts = section.def_query_counts,
        raw_query_time = section.raw_query_time, def_query_time = section.def_query_time,
        def_detection_counts = section.def_detection_counts, true_labels = values.classes(section.labels),
        max_queries = section.max_queries }
      return values.differs(name, evaluation[name](evaluation), expected, section.tolerance)
    end)
  end
end
