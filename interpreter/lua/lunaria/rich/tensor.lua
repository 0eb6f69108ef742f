-- A tensor as HTML: what it is, and its numbers in a table whose rows are the last axis but one and columns the last.
-- Of long axes the ends are shown, of further axes the first blocks.
local ms = require "lunaria"
local html = require "lunaria.rich.html"

local MOST_ROWS, MOST_COLUMNS, MOST_BLOCKS = 12, 12, 3

-- Numbers of one table with the same digits, as few as tell them well.
local function formatter(dtype, values)
  if dtype == ms.bool_ then
    return tostring
  elseif dtype == ms.complex64 or dtype == ms.complex128 then
    return function(v)
      return tostring(v)
    end
  elseif not tostring(dtype):find("loat") then
    return function(v)
      return ("%d"):format(v)
    end
  end
  local largest, whole = 0, true
  for _, v in ipairs(values) do
    if v == v and math.abs(v) ~= math.huge then
      largest = math.max(largest, math.abs(v))
      whole = whole and v == math.floor(v)
    end
  end
  local pattern = (largest >= 1e5 or largest > 0 and largest < 1e-3) and "%.4e" or whole and "%.0f" or "%.4f"
  return function(v)
    return v ~= v and "nan" or pattern:format(v)
  end
end

-- The text of one element.
local function element(x, ...)
  local index = { ... }
  local v = #index > 0 and x[index] or x
  return v:item()
end

local function block(x, lead)
  local shape, rank = x.shape, x.ndim
  local own = rank - #lead
  local rows = html.shown(own > 1 and shape[rank - 1] or 1, MOST_ROWS)
  local columns = html.shown(own > 0 and shape[rank] or 1, MOST_COLUMNS)
  local values, cells = {}, {}
  for r, i in ipairs(rows) do
    cells[r] = {}
    for c, j in ipairs(columns) do
      if i and j then
        local index = { table.unpack(lead) }
        if own > 1 then index[#index + 1] = i end
        if own > 0 then index[#index + 1] = j end
        local v = element(x, table.unpack(index))
        cells[r][c] = v
        values[#values + 1] = type(v) == "number" and v or nil
      else
        cells[r][c] = ms.json.null
      end
    end
  end
  local text = formatter(x.dtype, values)
  for _, row in ipairs(cells) do
    for c, v in ipairs(row) do
      row[c] = v == ms.json.null and "…" or text(v)
    end
  end
  local caption = #lead > 0 and "[" .. table.concat(lead, ", ") .. "]" or nil
  return html.table(cells, { caption = caption })
end

-- Least, mean and greatest, for what is too large to be shown whole.
local function statistics(x)
  if not tostring(x.dtype):find("loat") or x.size > 10000000 or x.size == 0 then
    return ""
  end
  local ops = ms.ops
  local wide = x:cast(ms.float32)
  return (" · min %.4g · mean %.4g · max %.4g"):format(ops.reduce_min(wide):item(), ops.reduce_mean(wide):item(),
    ops.reduce_max(wide):item())
end

return function(x)
  local parts = {}
  local name = ms.is_parameter(x) and ("Parameter " .. x.name) or "Tensor"
  local head = ("%s · shape %s · %s"):format(name, tostring(x.shape), tostring(x.dtype))
  local blocks = 1
  for axis = 1, x.ndim - 2 do
    blocks = blocks * x.shape[axis]
  end
  local is_whole = blocks <= MOST_BLOCKS and x.size <= MOST_ROWS * MOST_COLUMNS * MOST_BLOCKS
  parts[1] = ("<div style=\"font-family:monospace;font-size:90%%\">%s%s</div>"):format(html.escaped(head),
    is_whole and "" or html.escaped(statistics(x)))
  if x.size == 0 then
    return parts[1]
  end
  for b = 0, math.min(blocks, MOST_BLOCKS) - 1 do
    local lead, rest = {}, b
    for axis = x.ndim - 2, 1, -1 do
      lead[axis] = rest % x.shape[axis]
      rest = rest // x.shape[axis]
    end
    parts[#parts + 1] = block(x, lead)
  end
  if blocks > MOST_BLOCKS then
    parts[#parts + 1] = ("<div style=\"font-family:monospace;font-size:90%%\">… %d more</div>"):format(blocks - MOST_BLOCKS)
  end
  return table.concat(parts)
end
