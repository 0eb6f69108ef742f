-- ms.armour.adv_robustness: MindArmour's second place of attacks, defenses, detectors and evaluations.
return require "lunaria.parts" ("ms.armour.adv_robustness", "module", {
  { "lunaria.armour.attacks", "attacks", whole = true },
  { "lunaria.armour.defenses", "defenses", whole = true },
  { "lunaria.armour.detectors", "detectors", whole = true },
  { "lunaria.armour.evaluations", "evaluations", whole = true },
})
