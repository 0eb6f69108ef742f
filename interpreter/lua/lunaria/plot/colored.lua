-- A matrix as a PNG with a square of pixels for each number, coloured by a layer's map between its limits.
local scale = require "lunaria.plot.scale"

return function(layer)
  local span = layer.high > layer.low and layer.high - layer.low or 1
  local table_of_colors = {}
  for i = 0, 255 do
    table_of_colors[i] = string.char(scale.rgb(layer.map, i / 255))
  end
  local hole = string.char(scale.rgb(layer.map, 0 / 0))
  local rows, factor = {}, math.max(1, 600 // #layer.z[1])
  for i, row in ipairs(layer.z) do
    local line = {}
    for j, value in ipairs(row) do
      local share = (value - layer.low) / span
      local color = share ~= share and hole or table_of_colors[math.floor(math.min(1, math.max(0, share)) * 255 + 0.5)]
      line[j] = color:rep(factor)
    end
    rows[i] = table.concat(line):rep(factor)
  end
  return require("lunaria.rendering").png(table.concat(rows), #layer.z[1] * factor, #layer.z * factor, 3)
end
