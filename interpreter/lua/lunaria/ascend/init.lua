-- ms.ascend: the simulated Ascend: kernels of its cores, and how long networks would take on it.
local parts = require "lunaria.parts"

return parts("ms.ascend", "name", {
  { "lunaria.ascend.kernel", "kernel library" },
  { "lunaria.ascend.estimate", "estimate report timeline" },
  { "lunaria.ascend.formats", "to_format from_format" },
})
