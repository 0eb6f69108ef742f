-- The strategies of operators and cells within a network, which lay tensors out on the ranks.
local function divides(strategy)
  for _, parts in pairs(type(strategy) == "table" and strategy or {}) do
    if type(parts) ~= "table" then return true end
    for _, n in ipairs(parts) do
      if n ~= 1 then return true end
    end
  end
  return false
end

--- The name of a part of the network with a strategy that divides something; nil where there is none.
return function(network)
  local found = {}
  for name, cell in network:cells_and_names() do
    local sharded = rawget(cell, "_sharded")
    if type(sharded) == "table" and next(sharded) ~= nil then found[#found + 1] = name end
    for key, value in pairs(cell) do
      local attrs = type(value) == "table" and getmetatable(value) ~= nil and rawget(value, "attrs")
      if type(attrs) == "table" and divides(attrs.in_strategy) then
        found[#found + 1] = (name ~= "" and name .. "." or "") .. tostring(key)
      end
    end
  end
  table.sort(found)
  return found[1]
end
