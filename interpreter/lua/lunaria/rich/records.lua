-- A list of records, tables with the same names in them, as an HTML table; nothing for any other table.
local ms = require "lunaria"
local html = require "lunaria.rich.html"

local MOST_ROWS, MOST_COLUMNS = 50, 20

local function text(value)
  if value == nil then
    return ""
  elseif math.type(value) == "float" then
    return ("%.6g"):format(value)
  elseif ms.is_tensor(value) then
    return value.size == 1 and ("%.6g"):format(value:item()) or "tensor " .. tostring(value.shape)
  end
  return tostring(value)
end

return function(list)
  if getmetatable(list) ~= nil or type(list[1]) ~= "table" then
    return nil
  end
  local names, known, count = {}, {}, 0
  for key in next, list do
    if math.type(key) ~= "integer" then
      return nil
    end
  end
  for _, record in ipairs(list) do
    if type(record) ~= "table" or getmetatable(record) ~= nil then
      return nil
    end
    for name, value in next, record do
      local kind = type(value)
      if type(name) ~= "string" or kind == "table" and getmetatable(value) == nil or kind == "function" or kind == "thread" then
        return nil
      elseif not known[name] then
        known[name] = true
        names[#names + 1] = name
      end
    end
    count = count + 1
  end
  if #names == 0 or #names > MOST_COLUMNS then
    return nil
  end
  table.sort(names)
  local rows, align = {}, {}
  for _, i in ipairs(html.shown(count, MOST_ROWS)) do
    local cells = {}
    for c, name in ipairs(names) do
      local value = i and list[i + 1][name]
      cells[c] = i and text(value) or "…"
      align[c] = type(value) == "string" and "left" or align[c] or "right"
    end
    rows[#rows + 1] = cells
  end
  return html.table(rows, { head = names, align = align })
end
