-- ms.armour.privacy: training that keeps its samples private.
local parts = require "lunaria.parts"

return parts("ms.armour.privacy", "name", {
  { "lunaria.armour.privacy.diff_privacy", "diff_privacy", whole = true },
})
