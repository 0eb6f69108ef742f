-- ms.armour.fuzz_testing: inputs that show what a network does not do well, found by mutation.
local parts = require "lunaria.parts"

return parts("ms.armour.fuzz_testing", "name", {
  { "lunaria.armour.fuzz.coverage", "CoverageMetrics NeuronCoverage TopKNeuronCoverage SuperNeuronActivateCoverage NeuronBoundsCoverage "
    .. "KMultisectionNeuronCoverage" },
  { "lunaria.armour.fuzz.sensitivity", "SensitivityConvergenceCoverage" },
  { "lunaria.armour.fuzz.fuzzer", "Fuzzer SensitivityMaximizingFuzzer" },
})
