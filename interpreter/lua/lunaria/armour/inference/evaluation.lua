-- ms.armour.privacy.evaluation: what models give away of the rows that they were trained on.
return require "lunaria.parts" ("ms.armour.privacy.evaluation", "name", {
  { "lunaria.armour.inference.membership", "AttributeInference MembershipInference" },
  { "lunaria.armour.inference.scores", "LiRA lira_ratio logit_confidence loss_attack shadow_models threshold_attack" },
  { "lunaria.armour.inference.audit", "audit canary_audit clopper_pearson" },
  { "lunaria.armour.inference.inversion", "ImageInversionAttack ModelInversionAttack ShadowModelAttack" },
})
