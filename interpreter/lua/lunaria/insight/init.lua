-- ms.insight: networks and trainings looked at.
local parts = require "lunaria.parts"

return parts("ms.insight", "name", {
  { "lunaria.insight.substructures", "substructures" },
  { "lunaria.insight.graph", "graph" },
  { "lunaria.insight.start", "start" },
})
