-- ms.armour.detectors: verdicts on samples and queries.
local parts = require "lunaria.parts"

return parts("ms.armour.detectors", "detector", {
  { "lunaria.armour.detectors.detector", "Detector" },
  { "lunaria.armour.detectors.ensemble", "EnsembleDetector" },
  { "lunaria.armour.detectors.mag_net", "DivergenceBasedDetector ErrorBasedDetector" },
  { "lunaria.armour.detectors.region", "RegionBasedDetector" },
  { "lunaria.armour.detectors.similarity", "SimilarityDetector" },
  { "lunaria.armour.detectors.smoothing", "SpatialSmoothing" },
})
