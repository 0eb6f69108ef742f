-- ms.insight: networks and trainings looked at.
local parts = require "lunaria.parts"

return parts("ms.insight", "name", {
  { "lunaria.insight.landscape", "landscape" },
  { "lunaria.insight.read", "read runs" },
  { "lunaria.insight.substructures", "substructures" },
  { "lunaria.insight.graph", "graph" },
  { "lunaria.insight.start", "start" },
  { "lunaria.insight.watch", "watch statistics" },
  { "lunaria.insight.conditions", "conditions recommended" },
  { "lunaria.insight.first_nan", "first_nan" },
  { "lunaria.insight.dump", "dump" },
  { "lunaria.insight.dump_analyzer", "DumpAnalyzer" },
})
