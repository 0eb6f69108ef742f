-- A matrix as a PNG with one pixel for each number, coloured by a layer's map between its limits.
local scale = require "lunaria.plot.scale"

return function(layer)
  local span = layer.high > layer.low and layer.high - layer.low or 1
  local table_of_colors = {}
  for i = 0, 255 do
    table_of_colors[i] = string.char(scale.rgb(layer.map, i / 255))
  end
  local hole = string.char(scale.rgb(layer.map, 0 / 0))
  local rows = {}
  for i, row in ipairs(layer.z) do
    local line = {}
    for j, value in ipairs(row) do
      local share = (value - layer.low) / span
      line[j] = share ~= share and hole or table_of_colors[math.floor(math.min(1, math.max(0, share)) * 255 + 0.5)]
    end
    rows[i] = table.concat(line)
  end
  return require("lunaria.rendering").png(table.concat(rows), #layer.z[1], #layer.z, 3)
end
