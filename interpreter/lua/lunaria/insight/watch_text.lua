-- Hits and nodes of a watch as text.
local text = {}

local function number(x) return ("%.6g"):format(x) end

--- " at conv1/conv2d-0 (train.lua:12)".
function text.at(node)
  if not node then return "" end
  return (" at %s%s"):format(node.name, node.place ~= "" and (" (%s)"):format(node.place) or "")
end

--- "float32(2, 3): 1 NaN, 2 Inf, min -1, max 2, mean 0.5".
function text.figures(f)
  local parts = {}
  if f.nan > 0 then parts[#parts + 1] = f.nan .. " NaN" end
  if f.positive_infinity > 0 then parts[#parts + 1] = f.positive_infinity .. " Inf" end
  if f.negative_infinity > 0 then parts[#parts + 1] = f.negative_infinity .. " -Inf" end
  if f.min == f.min and f.count > 0 then
    parts[#parts + 1] = ("min %s, max %s, mean %s"):format(number(f.min), number(f.max), number(f.mean))
  end
  if f.zeros > 0 then parts[#parts + 1] = f.zeros .. " zeros" end
  if f.value then parts[#parts + 1] = "there " .. number(f.value) end
  local kind = f.dtype and tostring(f.dtype):lower() .. tostring(f.shape) .. ": " or ""
  return kind .. table.concat(parts, ", ")
end

--- The lines below a hit: what its operator was given.
function text.operands(hit, lines)
  for _, f in ipairs(hit.operands) do
    local from = f.node and (" from %s (%s)"):format(f.node, f.place) or ""
    lines[#lines + 1] = ("    %s%s: %s"):format(f.name, from, text.figures(f))
  end
  local names = {}
  for name in pairs(hit.numbers) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do lines[#lines + 1] = ("    %s = %s"):format(name, number(hit.numbers[name])) end
  return lines
end

function text.hit(hit)
  local value = hit.quantity ~= "not_finite" and hit.quantity ~= "overflow" and hit.quantity ~= "unchanged"
    and (" (%s %s)"):format(hit.quantity, number(hit.value)) or ""
  local first = ("step %d: %s%s%s: %s, %s"):format(hit.step, hit.condition, text.at(hit.node), value, hit.tensor.name,
    text.figures(hit.tensor))
  if hit.count > 1 then first = first .. (" (in %d steps up to %d)"):format(hit.count, hit.last_step) end
  return table.concat(text.operands(hit, { first }), "\n")
end

--- What an error says of a stop.
function text.stop(stopped)
  if stopped.hits[1] then return text.hit(stopped.hits[1]) end
  return ("stopped in step %d%s"):format(stopped.step, text.at(stopped.node))
end

local function begins(name, part) return name == part or name:sub(1, #part + 1) == part .. "." end

--- Whether a name that a user gives means a node, or a parameter: as core/watch has it.
function text.is_called(node, name)
  return node.operator == name or node.name == name or begins(node.layer or "", name) or node.place == name
    or (node.place or ""):sub(-#name - 1) == "/" .. name
end
text.begins_with_part = begins

return text
