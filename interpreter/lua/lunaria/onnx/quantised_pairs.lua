-- Pairs of QuantizeLinear and DequantizeLinear in a graph, which stand for numbers rounded to the steps of an integer format,
-- become one operator that has a gradient. Weights that are stored as integers become floating ones that the same operator rounds:
-- they are then trained, folded and converted like any other.
local ms = require "lunaria"

local ops = ms.ops

local limits = { Int8 = { -128, 127 }, UInt8 = { 0, 255 }, Int16 = { -32768, 32767 }, UInt16 = { 0, 65535 } }

local function attribute(node, name, otherwise)
  local a = node.attributes[name]
  if a and a.value ~= nil then return a.value end
  return otherwise
end

-- Where the values of a graph are made and how often they are used.
local function look(graph)
  local made, uses, initial = {}, {}, {}
  for i, entry in ipairs(graph.initializers) do initial[entry.name] = i end
  local function use(name) uses[name] = (uses[name] or 0) + 1 end
  for _, node in ipairs(graph.nodes) do
    for _, name in ipairs(node.outputs) do made[name] = node end
    for _, name in ipairs(node.inputs) do use(name) end
    for _, a in pairs(node.attributes) do
      -- What graphs within use stays as it is.
      if a.kind == "graph" then return nil end
    end
  end
  for _, output in ipairs(graph.outputs) do use(output.name) end
  for _, input in ipairs(graph.inputs) do initial[input.name] = nil end
  return made, uses, initial
end

-- The integers from a clip between the two.
local function clipped(node, values, range)
  local least, most = values(node.inputs[2]), values(node.inputs[3])
  if node.inputs[2] and node.inputs[2] ~= "" and not least or node.inputs[3] and node.inputs[3] ~= "" and not most then return nil end
  return { math.max(range[1], least and least:item() or range[1]), math.min(range[2], most and most:item() or range[2]) }
end

local function same(a, b) return tostring(a.shape) == tostring(b.shape) and ops.all(ops.equal(a, b)):item() end

-- The numbers that integers stand for.
local function dequantised(x, scale, zero, axis, block)
  local spread = require("lunaria.onnx.quantised").spread
  return (ops.cast(x, ms.float32) - ops.cast(spread(zero, x, axis, block), ms.float32)) * spread(scale, x, axis, block)
end

return function(graph)
  local made, uses, initial = look(graph)
  if not made then return end
  local function values(name) return name and initial[name] and graph.initializers[initial[name]].value end

  -- Scale, zero point and format of a node, where all are known.
  local function format_of(node)
    local scale, zero = values(node.inputs[2]), values(node.inputs[3])
    if not scale or scale.dtype ~= ms.float32 or not zero then return nil end
    local range = limits[tostring(zero.dtype)]
    local strange = attribute(node, "output_dtype", 0) ~= 0 or attribute(node, "precision", 0) ~= 0
    return not strange and range and
      { scale = scale, zero = zero, range = range, axis = attribute(node, "axis", 1), block = attribute(node, "block_size", 0) } or nil
  end

  local function rewrite(node, x, format)
    node.op, node.domain, node.inputs = "FakeQuantize", "lunaria", { x, node.inputs[2], node.inputs[3] }
    node.attributes = {
      axis = { kind = "integer", value = format.axis }, block_size = { kind = "integer", value = format.block },
      least = { kind = "integer", value = format.range[1] }, most = { kind = "integer", value = format.range[2] },
    }
  end

  for _, node in ipairs(graph.nodes) do
    local format = node.op == "DequantizeLinear" and node.domain == "" and format_of(node)
    local name = node.inputs[1]
    local from = format and made[name]
    if from and from.op == "Clip" and from.domain == "" then
      format.range = clipped(from, values, format.range)
      from = format.range and made[from.inputs[1]]
    end
    local other = from and from.op == "QuantizeLinear" and from.domain == "" and format_of(from)
    if other and same(other.scale, format.scale) and same(other.zero, format.zero) and other.block == format.block
      and (other.axis == format.axis or format.scale.size == 1) then
      rewrite(node, from.inputs[1], format)
    elseif format and values(name) and uses[name] == 1 then
      local entry = graph.initializers[initial[name]]
      entry.value = dequantised(entry.value, format.scale, format.zero, format.axis, format.block)
      rewrite(node, name, format)
    end
  end
end
