-- ONNX forms of fake_quantize: QuantizeLinear and DequantizeLinear, or for a weight its integers and DequantizeLinear alone.
local ms = require "lunaria"

local ops = ms.ops

-- The narrowest integers that hold a format; 16 bits came with version 21 of the operators.
local formats = {
  { ms.int8, -128, 127, 18 }, { ms.uint8, 0, 255, 18 }, { ms.int16, -32768, 32767, 21 }, { ms.uint16, 0, 65535, 21 },
}
local function format_of(least, most)
  for _, format in ipairs(formats) do
    if least >= format[2] and most <= format[3] then return table.unpack(format) end
  end
end

local function constant_of(v) return type(v) == "table" and ms.is_tensor(v.constant) and v.constant or nil end

-- Scale or zero point as a tensor, if it is known and of a form that the standard has.
local function known(v, dtype)
  if math.type(v) then return ms.tensor(v, dtype) end
  local t = constant_of(v)
  return t and ops.cast(t, dtype)
end

-- The integers of a weight, whose scale and zero point are known.
local function integers(x, scale, zero, a, dtype)
  if a.axis then
    local spread = require("lunaria.onnx.quantised").spread
    scale, zero = spread(scale, x, a.axis, a.block_size), spread(zero, x, a.axis, a.block_size)
  end
  return ops.cast(ops.clamp(ops.round(x / scale) + zero, a.quant_min, a.quant_max), dtype)
end

return function(handlers)
  -- By arithmetic, where scales lie in a way that the standard has not.
  handlers.fake_quantize_element = function(g, a, node)
    local scale, zero = g:value(a.scale, node.dtype), g:value(a.zero_point, node.dtype)
    local level = g:add("Add", { g:add("Round", { g:add("Div", { g:value(a.input, node.dtype), scale }) }), zero })
    local bounded = g:add("Clip", { level, g:number(a.quant_min + 0.0, node.dtype), g:number(a.quant_max + 0.0, node.dtype) })
    return g:add("Mul", { g:add("Sub", { bounded, zero }), scale })
  end

  handlers.fake_quantize = function(g, a, node)
    local scale, zero = known(a.scale, ms.float32), known(a.zero_point, ms.float32)
    local is_plain = scale and zero and (a.axis or scale.size == 1 and zero.size == 1)
    if not is_plain or node.dtype ~= ms.float32 then
      if a.axis then g:fail "with an axis it needs a scale and a zero point that are known, and numbers of float32" end
      return handlers.fake_quantize_element(g, a, node)
    end
    if scale.ndim > 0 and not a.axis then scale = ops.reshape(scale, {}) end
    if zero.size == 1 and scale.ndim > 0 then zero = ops.broadcast_to(ops.reshape(zero, {}), scale.shape) end
    if zero.ndim > 0 and zero.size == 1 then zero = ops.reshape(zero, {}) end
    local dtype, least, most, version = format_of(a.quant_min, a.quant_max)
    g.opset = math.max(g.opset, a.block_size > 0 and 21 or version)
    local attributes = {}
    if scale.ndim > 0 then attributes.axis = a.axis end
    if a.block_size > 0 then attributes.block_size = a.block_size end
    local step, point = g:tensor(scale), g:tensor(ops.cast(zero, dtype))
    local x = constant_of(a.input)
    local levels
    if x then
      levels = g:tensor(integers(x, scale, zero, a, dtype), a.input.name and a.input.name .. "_quantized")
    else
      levels = g:add("QuantizeLinear", { g:value(a.input), step, point }, attributes)
      if a.quant_min > least or a.quant_max < most then
        levels = g:add("Clip", { levels, g:number(a.quant_min, dtype), g:number(a.quant_max, dtype) })
      end
    end
    return g:add("DequantizeLinear", { levels, step, point }, attributes)
  end
end
