-- ms.armour.natural_robustness: changes of pictures that happen without an attacker, and corruptions by which robustness is measured.
local parts = require "lunaria.parts"

local image = parts("ms.armour.natural_robustness.transform.image", "transform", {
  { "lunaria.armour.natural.geometry", "Curve Perspective Rotate Scale Shear Translate", of = "transforms" },
  { "lunaria.armour.natural.quality", "Contrast GaussianBlur GaussianNoise GradientBlur GradientLuminance MotionBlur NaturalNoise "
    .. "SaltAndPepperNoise UniformNoise", of = "transforms" },
})

local robustness = parts("ms.armour.natural_robustness", "name", {
  { "lunaria.armour.natural.corruptions", "corrupt corruptions" },
})
robustness.transform = { image = image }
return robustness
