-- ms.armour.privacy.diff_privacy: training whose result tells little of any single sample.
local parts = require "lunaria.parts"

return parts("ms.armour.privacy.diff_privacy", "name", {
  { "lunaria.armour.privacy.per_sample", "PerSampleGradients" },
  { "lunaria.armour.privacy.noise", "NoiseGaussianRandom NoiseAdaGaussianRandom AdaClippingWithGaussianRandom NoiseMechanismsFactory "
    .. "ClipMechanismsFactory" },
  { "lunaria.armour.privacy.tree_noise", "NoiseTreeRandom" },
  { "lunaria.armour.privacy.monitors", "RDPMonitor ZCDPMonitor PRVMonitor PrivacyMonitorFactory" },
  { "lunaria.armour.privacy.dp_model", "DPModel DPOptimizerClassFactory" },
})
