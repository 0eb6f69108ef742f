-- ms.armour.defenses: training that makes networks robust, answers with a certificate, and inputs that attacks are washed out of.
local parts = require "lunaria.parts"

return parts("ms.armour.defenses", "defence", {
  { "lunaria.armour.defenses.adversarial", "AdversarialDefense AdversarialDefenseWithAttacks Defense EnsembleAdversarialDefense "
    .. "NaturalAdversarialDefense ProjectedAdversarialDefense" },
  { "lunaria.armour.defenses.callback", "AdversarialTraining" },
  { "lunaria.armour.defenses.inputs", "BitDepthReduction JpegCompression RandomResizePad TotalVariationMinimization" },
  { "lunaria.armour.defenses.regularized", "FastAdversarialDefense FreeAdversarialDefense MartDefense TradesDefense" },
  { "lunaria.armour.defenses.smoothing", "GaussianDefense SmoothedClassifier" },
})
