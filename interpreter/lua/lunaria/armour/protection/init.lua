-- ms.armour.protection: marks in weights that show whose network it is, and weights that are of use only with a secret.
local parts = require "lunaria.parts"

return parts("ms.armour.protection", "name", {
  { "lunaria.armour.protection.watermark", "TriggerSet Watermark" },
  { "lunaria.armour.protection.obfuscation", "load_obf_params_into_net obfuscate_ckpt obfuscate_model" },
})
