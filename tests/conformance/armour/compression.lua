-- Min-max quantisation, the largest elements with error feedback, signs.
local ms = require "lunaria"
local values = require "armour.values"
local compression = ms.federated.compression

local function first_difference(what, got, expected)
  for i, value in ipairs(expected) do
    if got[i] ~= value then return ("%s: element %d is %s, expected %s"):format(what, i - 1, tostring(got[i]), tostring(value)) end
  end
end

return function(section, case)
  for i, part in ipairs(section) do
    local x = values.float64(part.data)
    case(("compression/%d quantised"):format(i), function()
      local q = compression.quantize(x, part.bits)
      return values.first(values.differs("scale", q.scale, part.scale, part.tolerance),
        first_difference("quantised", q.values:tolist(), part.quantised),
        values.differs("dequantised", compression.dequantize(q), part.dequantised, part.tolerance))
    end)
    case(("compression/%d packed"):format(i), function()
      local q = compression.quantize(x, part.bits)
      local bytes = compression.pack_bits(q.values, part.bits)
      return first_difference("unpacked", compression.unpack_bits(bytes, part.bits, #part.data):tolist(), part.quantised)
    end)
    case(("compression/%d largest"):format(i), function()
      local k = #part.topk_indices
      local codec = compression.TopK { rate = (k + 0.5) / x.size }
      local received = codec:decompress(codec:compress(x), x.size)
      -- Elements travel as float32.
      return values.first(first_difference("places", compression.top_k(x, k):tolist(), part.topk_indices),
        values.differs("residual", codec.residual, part.topk_residual, 1e-8), values.differs("sum", codec.residual + received, x, 1e-16))
    end)
    case(("compression/%d sign"):format(i), function()
      local codec = compression.Sign()
      local received = codec:decompress(codec:compress(x), x.size)
      return values.differs("scale", ms.ops.max(received), part.sign_scale, part.tolerance)
    end)
  end
end
