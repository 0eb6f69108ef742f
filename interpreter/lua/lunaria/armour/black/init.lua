-- ms.armour.attacks.black: attacks on models that are only asked.
return require "lunaria.parts" ("ms.armour.attacks.black", "attack", {
  { "lunaria.armour.black.hop_skip_jump", "HopSkipJumpAttack" },
  { "lunaria.armour.black.nes", "NES" },
  { "lunaria.armour.black.evolution", "GeneticAttack PSOAttack" },
  { "lunaria.armour.black.noise", "PointWiseAttack SaltAndPepperNoiseAttack" },
  { "lunaria.armour.black.square", "SquareAttack" },
  { "lunaria.armour.black.words", "WordSubstitutionAttack" },
})
