-- ms.armour.privacy: training that keeps its samples private, what it costs, and what models give away.
return require "lunaria.parts" ("ms.armour.privacy", "name", {
  { "lunaria.armour.privacy.diff_privacy", "diff_privacy", whole = true },
  { "lunaria.armour.privacy.accountants", "accountants", whole = true },
  { "lunaria.armour.privacy.statistics", "statistics", whole = true },
  { "lunaria.armour.privacy.local_privacy", "local_privacy", whole = true },
  { "lunaria.armour.privacy.pate", "PATE" },
  { "lunaria.armour.privacy.suppress", "sup_privacy", whole = true },
  { "lunaria.armour.privacy.unlearning", "unlearning", whole = true },
  { "lunaria.armour.inference.evaluation", "evaluation", whole = true },
})
