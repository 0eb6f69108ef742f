-- Whole numbers of few bits.
local ms = require "lunaria"
local compression = ms.federated.compression

return function(section, case)
  case("bit_packing", function()
    local bytes = compression.pack_bits(ms.tensor(section.values, ms.int32), section.bits)
    local expected = {}
    for i, byte in ipairs(section.packed) do expected[i] = string.char(byte & 255) end
    if bytes ~= table.concat(expected) then return "the bytes differ" end
    local back = compression.unpack_bits(bytes, section.bits, #section.values):tolist()
    for i, value in ipairs(section.values) do
      if back[i] ~= value then return ("element %d is %d, expected %d"):format(i - 1, back[i], value) end
    end
  end)
end
