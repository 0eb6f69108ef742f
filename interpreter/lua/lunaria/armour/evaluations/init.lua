-- ms.armour.evaluations: figures and pictures of how well attacks and defences do.
local parts = require "lunaria.parts"

return parts("ms.armour.evaluations", "name", {
  { "lunaria.armour.evaluations.attack", "AttackEvaluate" },
  { "lunaria.armour.evaluations.defense", "BlackDefenseEvaluate DefenseEvaluate" },
  { "lunaria.armour.evaluations.distances", "psnr relative_distances ssim" },
  { "lunaria.armour.evaluations.neuron", "NeuronMetric" },
  { "lunaria.armour.evaluations.pictures", "RadarMetric RobustnessCurve attacked_curve certified_curve" },
})
