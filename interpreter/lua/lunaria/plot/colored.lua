-- A matrix as a PNG with a square of pixels for each number, coloured by a layer's map between its limits. Of more numbers
-- than a screen has pixels every second, third ... is taken.
local scale = require "lunaria.plot.scale"

local MOST = 1000

return function(layer)
  local span = layer.high > layer.low and layer.high - layer.low or 1
  local table_of_colors = {}
  for i = 0, 255 do
    table_of_colors[i] = string.char(scale.rgb(layer.map, i / 255))
  end
  local hole = string.char(scale.rgb(layer.map, 0 / 0))
  local rows, factor, columns = {}, math.max(1, 600 // #layer.z[1]), 0
  local down, right = math.max(1, #layer.z // MOST), math.max(1, #layer.z[1] // MOST)
  for i = 1, #layer.z, down do
    local row, line = layer.z[i], {}
    for j = 1, #row, right do
      local share = (row[j] - layer.low) / span
      local color = share ~= share and hole or table_of_colors[math.floor(math.min(1, math.max(0, share)) * 255 + 0.5)]
      line[#line + 1] = color:rep(factor)
    end
    rows[#rows + 1], columns = table.concat(line):rep(factor), #line
  end
  return require("lunaria.rendering").png(table.concat(rows), columns * factor, #rows * factor, 3)
end
