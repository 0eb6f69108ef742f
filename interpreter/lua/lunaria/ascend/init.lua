-- ms.ascend: the simulated Ascend: kernels of its cores, the device "Ascend", and how long networks would take on it.
local parts = require "lunaria.parts"

return parts("ms.ascend", "name", {
  { "lunaria.ascend.kernel", "kernel library" },
  { "lunaria.ascend.estimate", "estimate" },
  { "lunaria.ascend.step", "report timeline picture" },
  { "lunaria.ascend.device", "configure memory overflowed ran" },
  { "lunaria.ascend.streams", "stream" },
  { "lunaria.ascend.operators", "operators" },
  { "lunaria.ascend.formats", "to_format from_format" },
})
