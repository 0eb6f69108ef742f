-- Random numbers of no seed, from the operating system's cryptographic generator.
local ms = require "lunaria"
local secrets = require "lunaria.common.secrets"

local ops = ms.ops
local draws = {}

--- Doubles between 0 and 1, of 53 random bits each. count: how many.
function draws.secure_uniform(count)
  secrets.keep()
  local bits = ops.bitwise_and(ms.io.secure_words(count), (1 << 53) - 1)
  return (bits:astype(ms.float64) + 0.5) * 2.0 ^ -53
end

return draws
