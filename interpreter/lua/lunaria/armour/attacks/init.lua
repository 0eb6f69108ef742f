-- ms.armour.attacks: adversarial inputs for models whose gradients are known; attacks.black: for those that only answer.
return require "lunaria.parts" ("ms.armour.attacks", "attack", {
  { "lunaria.armour.common", "Attack" },
  { "lunaria.armour.attacks.gradient", "GradientMethod" },
  { "lunaria.armour.attacks.single_step", "FastGradientMethod FastGradientSignMethod LeastLikelyClassMethod "
    .. "RandomFastGradientMethod RandomFastGradientSignMethod RandomLeastLikelyClassMethod" },
  { "lunaria.armour.attacks.iterative", "BasicIterativeMethod DiverseInputIterativeMethod IterativeGradientMethod "
    .. "MomentumDiverseInputIterativeMethod MomentumIterativeMethod NesterovIterativeMethod ProjectedGradientDescent" },
  { "lunaria.armour.attacks.variance", "VarianceTuningMomentumIterativeMethod VarianceTuningNesterovIterativeMethod" },
  { "lunaria.armour.attacks.auto_pgd", "AutoProjectedGradientDescent" },
  { "lunaria.armour.attacks.carlini_wagner", "CarliniWagnerL2Attack ElasticNetAttack" },
  { "lunaria.armour.attacks.deep_fool", "DeepFool" },
  { "lunaria.armour.attacks.jsma", "JSMAAttack" },
  { "lunaria.armour.attacks.lbfgs", "LBFGS" },
  { "lunaria.armour.attacks.boundary", "FastAdaptiveBoundary" },
  { "lunaria.armour.attacks.embedding", "EmbeddingAttack" },
  { "lunaria.armour.attacks.ensemble", "AutoAttack" },
  { "lunaria.armour.black", "black", whole = true },
})
