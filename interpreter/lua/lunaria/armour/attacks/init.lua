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
})
