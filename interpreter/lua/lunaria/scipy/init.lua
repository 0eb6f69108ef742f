-- ms.scipy: scipy's functions by area. Each area is loaded when it is first used.
local parts = require "lunaria.parts"

return parts("ms.scipy", "module", {
  { "lunaria.scipy.linalg", "linalg", whole = true },
  { "lunaria.scipy.fft", "fft", whole = true },
  { "lunaria.scipy.optimize", "optimize", whole = true },
  { "lunaria.scipy.special", "special", whole = true },
  { "lunaria.scipy.stats", "stats", whole = true },
  { "lunaria.scipy.signal", "signal", whole = true },
  { "lunaria.scipy.sparse", "sparse", whole = true },
})
