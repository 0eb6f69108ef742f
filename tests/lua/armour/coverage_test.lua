-- The names of MindArmour: how many of them there are, each where MindArmour has it. None may be missing.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local armour = ms.armour

local areas = {
  { "attacks", armour.adv_robustness.attacks, [[
    FastGradientMethod FastGradientSignMethod RandomFastGradientMethod RandomFastGradientSignMethod LeastLikelyClassMethod
    RandomLeastLikelyClassMethod BasicIterativeMethod ProjectedGradientDescent MomentumIterativeMethod AutoProjectedGradientDescent
    DiverseInputIterativeMethod MomentumDiverseInputIterativeMethod VarianceTuningMomentumIterativeMethod
    VarianceTuningNesterovIterativeMethod CarliniWagnerL2Attack DeepFool JSMAAttack LBFGS
    GradientMethod IterativeGradientMethod Attack
  ]] },
  { "black-box attacks", armour.adv_robustness.attacks.black, [[
    HopSkipJumpAttack NES GeneticAttack PSOAttack PointWiseAttack SaltAndPepperNoiseAttack
  ]] },
  { "defenses", armour.adv_robustness.defenses, [[
    AdversarialDefense AdversarialDefenseWithAttacks EnsembleAdversarialDefense NaturalAdversarialDefense ProjectedAdversarialDefense
  ]] },
  { "detectors", armour.adv_robustness.detectors, [[
    ErrorBasedDetector DivergenceBasedDetector RegionBasedDetector SpatialSmoothing EnsembleDetector SimilarityDetector
  ]] },
  { "evaluations", armour.adv_robustness.evaluations, [[
    AttackEvaluate DefenseEvaluate BlackDefenseEvaluate RadarMetric NeuronMetric
  ]] },
  { "fuzz testing", armour.fuzz_testing, [[
    Fuzzer SensitivityMaximizingFuzzer CoverageMetrics NeuronCoverage TopKNeuronCoverage NeuronBoundsCoverage
    SuperNeuronActivateCoverage KMultisectionNeuronCoverage SensitivityConvergenceCoverage
  ]] },
  { "natural robustness", armour.natural_robustness.transform.image, [[
    Translate Scale Shear Rotate Perspective Curve GaussianBlur MotionBlur GradientBlur Contrast GradientLuminance UniformNoise
    GaussianNoise SaltAndPepperNoise NaturalNoise
  ]] },
  { "differential privacy", armour.privacy.diff_privacy, [[
    NoiseGaussianRandom NoiseAdaGaussianRandom AdaClippingWithGaussianRandom NoiseMechanismsFactory ClipMechanismsFactory DPModel
    DPOptimizerClassFactory PrivacyMonitorFactory RDPMonitor ZCDPMonitor
  ]] },
  { "privacy evaluation", armour.privacy.evaluation, [[
    MembershipInference ImageInversionAttack ModelInversionAttack ShadowModelAttack
  ]] },
  { "suppressed privacy", armour.privacy.sup_privacy, [[
    SuppressModel SuppressPrivacyFactory MaskLayerDes SuppressMasker
  ]] },
  { "reliability", armour.reliability, [[
    ConceptDriftCheckTimeSeries OodDetector OodDetectorFeatureCluster FaultInjector
  ]] },
  { "models", armour, [[
    BlackModel Attack Defense Detector
  ]] },
  { "MindSpore", ms, [[
    obfuscate_model obfuscate_ckpt load_obf_params_into_net
  ]] },
}

for _, area in ipairs(areas) do
  local title, from, names = table.unpack(area)
  t.test(title .. " are there", function()
    local missing, count = {}, 0
    for name in names:gmatch "%S+" do
      count = count + 1
      local ok, value = pcall(function() return from[name] end)
      if not ok or value == nil then missing[#missing + 1] = name end
    end
    print(("%-22s %3d of %3d"):format(title, count - #missing, count))
    t.equal(missing, {})
  end)
end

t.finish()
