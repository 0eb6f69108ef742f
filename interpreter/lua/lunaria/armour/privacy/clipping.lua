-- Factors that bound what one sample gives to a sum of gradients: policies over the squares of the norms of its parts.
local ms = require "lunaria"
local rules = require "lunaria.armour.privacy.layer_rules"

local ops = ms.ops
local clipping = {}

local function total_of(parts)
  local total = parts[1].norm2
  for i = 2, #parts do total = total + parts[i].norm2 end
  return total
end

local function repeated(value, count)
  local list = {}
  for i = 1, count do list[i] = value end
  return list
end

-- One factor for all parameters: the norm over all of them is at most the bound.
local function flat(parts, bound)
  local norms = ops.sqrt(total_of(parts))
  return repeated(ops.minimum(bound / norms, 1.0), #parts), norms
end

-- A factor for each parameter, whose share of the bound is 1 / sqrt(their number): all together keep the bound.
local function per_layer(parts, bound)
  local factors, share = {}, bound / math.sqrt(#parts)
  for i, part in ipairs(parts) do factors[i] = ops.minimum(share / ops.sqrt(part.norm2), 1.0) end
  return factors, ops.sqrt(total_of(parts))
end

-- Normalised rather than clipped, so that the bound needs no tuning (arXiv 2206.07136): C / (norm + 0.01) is below C / norm.
local function automatic(parts, bound)
  local norms = ops.sqrt(total_of(parts))
  return repeated(bound / (norms + 0.01), #parts), norms
end

clipping.policies = { flat = flat, per_layer = per_layer, automatic = automatic, adaptive = flat }
clipping.names = { "flat", "per_layer", "automatic", "adaptive" }

--- The parts of micro-batches of so many samples each: the "sample" is then the mean of its micro-batch.
function clipping.micro_batches(parts, count)
  local list = {}
  for i, part in ipairs(parts) do
    local each = part.each()
    local size = each.shape[1] // count
    local sizes = { count, size, table.unpack(part.parameter.shape) }
    list[i] = rules.materialised(part.parameter, ops.mean(ops.reshape(each, sizes), 1))
  end
  return list
end

return clipping
