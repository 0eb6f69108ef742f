-- ms.insight: networks and trainings looked at.
local parts = require "lunaria.parts"

return parts("ms.insight", "name", {
  { "lunaria.insight.landscape", "landscape" },
  { "lunaria.insight.read", "read runs" },
  { "lunaria.insight.substructures", "substructures" },
  { "lunaria.insight.graph", "graph" },
  { "lunaria.insight.start", "start" },
})
