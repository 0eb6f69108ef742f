-- Probabilities of randomized response and of bits of embeddings.
local ms = require "lunaria"
local values = require "armour.values"
local L = ms.armour.privacy.local_privacy

return function(section, case)
  for i, row in ipairs(section.rows) do
    case(("label_dp/%d"):format(i), function()
      -- Bits are kept as labels of two classes are with half of epsilon.
      return values.first(values.differs("binary flip", 1 - L.keep_probability(2, row.eps), row.binary_flip, section.tolerance),
        values.differs("keep of 10", L.keep_probability(10, row.eps), row.keep_10, section.tolerance),
        values.differs("bit", L.keep_probability(2, row.eps / 2), row.bit_keep, section.tolerance))
    end)
  end
end
