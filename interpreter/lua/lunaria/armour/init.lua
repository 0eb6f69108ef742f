-- ms.armour: attacks on models and what helps against them, tests of models, privacy. MindArmour's names.
local parts = require "lunaria.parts"

return parts("ms.armour", "name", {
  { "lunaria.armour.common", "Attack BlackModel" },
  { "lunaria.armour.attacks", "attacks", whole = true },
  { "lunaria.armour.adv_robustness", "adv_robustness", whole = true },
  { "lunaria.armour.defenses", "defenses", whole = true },
  { "lunaria.armour.defenses.adversarial", "Defense" },
  { "lunaria.armour.detectors", "detectors", whole = true },
  { "lunaria.armour.detectors.detector", "Detector" },
  { "lunaria.armour.evaluations", "evaluations", whole = true },
  { "lunaria.armour.natural", "natural_robustness", whole = true },
  { "lunaria.armour.privacy", "privacy", whole = true },
  { "lunaria.armour.fuzz", "fuzz_testing", whole = true },
  { "lunaria.armour.reliability", "reliability", whole = true },
  { "lunaria.armour.protection", "protection", whole = true },
})
