-- ms.armour.reliability: faults in what is stored and computed, and inputs of another kind than those that were learnt.
local parts = require "lunaria.parts"

return parts("ms.armour.reliability", "name", {
  { "lunaria.armour.reliability.faults", "FaultInjector" },
  { "lunaria.armour.reliability.drift", "ConceptDriftCheckTimeSeries" },
  { "lunaria.armour.reliability.outside", "OodDetector OodDetectorEnergy OodDetectorFeatureCluster OodDetectorMahalanobis" },
})
