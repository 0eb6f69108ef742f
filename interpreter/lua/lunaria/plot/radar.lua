-- Radars: values on spokes around a middle. The first spoke points up, the others follow with the clock. The web (border, rings, spokes
-- and names) stands in the place of axes; the layers are closed lines.
local ms = require "lunaria"
local escaped = require "lunaria.plot.svg_text"

local radar = {}

-- How far the picture reaches, where the border is at 1: the names need room.
radar.reach = 1.3
-- Where names stand.
local name_distance = 1.12

--- The place at a distance from the middle on spoke k of n, right and up.
function radar.place(k, n, distance)
  local angle = 2 * math.pi * (k - 1) / n
  return distance * math.sin(angle), distance * math.cos(angle)
end

--- A closed line through values from 0 to 1, one on each spoke: lists of x and y.
function radar.polygon(values)
  local x, y, n = {}, {}, #values
  for k = 1, n + 1 do x[k], y[k] = radar.place((k - 1) % n + 1, n, values[(k - 1) % n + 1]) end
  return x, y
end

local function ring(n, distance)
  local values = {}
  for k = 1, n do values[k] = distance end
  return radar.polygon(values)
end

-- The lines of the web: lists of x and y, and whether the line is the border.
local function lines_of(web)
  local n, list = #web.names, {}
  for _, share in ipairs(web.rings) do
    local x, y = ring(n, share.at)
    list[#list + 1] = { x = x, y = y }
  end
  for k = 1, n do
    local x, y = radar.place(k, n, 1)
    list[#list + 1] = { x = { 0, x }, y = { 0, y } }
  end
  local x, y = ring(n, 1)
  list[#list + 1] = { x = x, y = y, is_border = true }
  return list
end

-- Names and numbers with their places; side: -1, 0 or 1, where the text lies from its place.
local function texts_of(web)
  local n, list = #web.names, {}
  for k, name in ipairs(web.names) do
    local x, y = radar.place(k, n, name_distance)
    list[k] = { text = name, x = x, y = y, side = x > 0.05 and 1 or x < -0.05 and -1 or 0 }
  end
  for _, share in ipairs(web.rings) do
    local x, y = radar.place(1, n, share.at)
    list[#list + 1] = { text = share.label, x = x + 0.02, y = y, side = 1, is_small = true }
  end
  return list
end

--- Draws the web. number: how the canvas writes places.
function radar.svg(canvas, frame, box, number)
  local function at(x, y) return box.left + frame.x:place(x) * box.width, box.top + (1 - frame.y:place(y)) * box.height end
  for _, line in ipairs(lines_of(frame.radar)) do
    local points = {}
    for i = 1, #line.x do
      local x, y = at(line.x[i], line.y[i])
      points[i] = number(x) .. "," .. number(y)
    end
    canvas:add("<polyline points=\"%s\" fill=\"none\" stroke=\"%s\"/>", table.concat(points, " "),
      line.is_border and "#888888" or "#dddddd")
  end
  for _, text in ipairs(texts_of(frame.radar)) do
    local x, y = at(text.x, text.y)
    local anchor = text.side > 0 and "start" or text.side < 0 and "end" or "middle"
    canvas:add("<text x=\"%s\" y=\"%s\" font-size=\"%d\" text-anchor=\"%s\"%s>%s</text>", number(x), number(y + 4),
      text.is_small and 9 or 12, anchor, text.is_small and " fill=\"#888888\"" or "", escaped(text.text))
  end
end

--- The web as layers of Vega-Lite. axis: the function that gives the channel of a side.
function radar.vega(frame, axis)
  local lines, texts = {}, {}
  for k, line in ipairs(lines_of(frame.radar)) do
    for i = 1, #line.x do
      lines[#lines + 1] = { x = line.x[i], y = line.y[i], k = k, i = i, c = line.is_border and "#888888" or "#dddddd" }
    end
  end
  for i, text in ipairs(texts_of(frame.radar)) do texts[i] = { x = text.x, y = text.y, text = text.text } end
  local place = { x = axis(frame, "x"), y = axis(frame, "y") }
  return {
    data = { values = ms.json.array(lines) }, mark = { type = "line", strokeWidth = 1 },
    encoding = { x = place.x, y = place.y, detail = { field = "k", type = "nominal" }, order = { field = "i", type = "quantitative" },
      color = { field = "c", type = "nominal", scale = ms.json.null, legend = ms.json.null } },
  }, {
    data = { values = ms.json.array(texts) }, mark = { type = "text" },
    encoding = { x = place.x, y = place.y, text = { field = "text", type = "nominal" } },
  }
end

--- Writes the border and the names into a field of characters. write(u, v, text, side): at shares of the field.
function radar.text(frame, field, write)
  local border = lines_of(frame.radar)
  border = border[#border]
  for i = 2, #border.x do
    field:line(frame.x:place(border.x[i - 1]), frame.y:place(border.y[i - 1]), frame.x:place(border.x[i]), frame.y:place(border.y[i]), 244)
  end
  for _, text in ipairs(texts_of(frame.radar)) do
    if not text.is_small then write(frame.x:place(text.x), frame.y:place(text.y), text.text, text.side) end
  end
end

return radar
