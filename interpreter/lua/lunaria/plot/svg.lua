-- A plot as SVG. Places are rounded to hundredths of a pixel, so that the same numbers give the same text everywhere.
local data = require "lunaria.plot.data"
local scale = require "lunaria.plot.scale"
local escaped = require "lunaria.plot.svg_text"

local FONT = "DejaVu Sans, Verdana, Helvetica, sans-serif"

local function n(x)
  local text = ("%.2f"):format(x):gsub("%.?0+$", "")
  return text == "-0" and "0" or text
end

local function text_width(text, size)
  return (utf8.len(text) or #text) * size * 0.61
end

local Canvas = {}
Canvas.__index = Canvas

function Canvas:add(format, ...)
  self[#self + 1] = format:format(...)
end

function Canvas:text(x, y, text, options)
  self:add("<text x=\"%s\" y=\"%s\" font-size=\"%d\" text-anchor=\"%s\"%s%s>%s</text>", n(x), n(y), options.size or 11,
    options.anchor or "middle", options.bold and " font-weight=\"bold\"" or "",
    options.turned and (" transform=\"rotate(-90 %s %s)\""):format(n(x), n(y)) or "", escaped(text))
end

local function ticks_and_margins(frame, width, height)
  local options = frame.options
  if frame.radar then
    local longest = 0
    for _, layer in ipairs(frame.legend) do longest = math.max(longest, text_width(layer.name, 11)) end
    local room = #frame.legend > 0 and 34 + math.min(longest, width / 3) or 8
    local side = math.max(20, math.min(width - 8 - room, height - 16 - (options.title and 26 or 0)))
    return { left = math.max(8, (width - room - side) / 2), top = options.title and 34 or 8, width = side, height = side }
  end
  local y_ticks = frame.y:ticks(math.max(2, height // 55))
  local widest = 0
  for _, tick in ipairs(y_ticks) do
    widest = math.max(widest, text_width(tick.label, 11))
  end
  local heatmap = frame.layers[1] and frame.layers[1].kind == "heatmap" and frame.layers[1]
  for _, name in ipairs(heatmap and heatmap.y_names or {}) do
    widest = math.max(widest, text_width(name, 11))
  end
  local box = { left = 16 + widest + (options.y_label and 18 or 0), top = options.title and 34 or 14, right = 16 }
  box.bottom = 26 + (options.x_label and 20 or 0)
  if #frame.legend > 0 then
    local longest = 0
    for _, layer in ipairs(frame.legend) do
      longest = math.max(longest, text_width(layer.name, 11))
    end
    box.right = 34 + math.min(longest, width / 3)
  elseif frame.colorbar then
    box.right = 74
  end
  box.width = math.max(20, width - box.left - box.right)
  box.height = math.max(20, height - box.top - box.bottom)
  return box, frame.x:ticks(math.max(2, box.width // 75)), y_ticks
end

local function draw_title(canvas, frame, box)
  if frame.options.title then
    canvas:text(box.left + box.width / 2, 21, frame.options.title, { size = 14, bold = true })
  end
end

local function draw_axes(canvas, frame, box, x_ticks, y_ticks)
  local heatmap = frame.layers[1] and frame.layers[1].kind == "heatmap" and frame.layers[1]
  local plain = heatmap or frame.layers[1] and frame.layers[1].kind == "image"
  local right, bottom = box.left + box.width, box.top + box.height
  local grid = {}
  local function tick_x(at, label)
    local x = box.left + at * box.width
    if not plain then
      grid[#grid + 1] = ("M%s %sV%s"):format(n(x), n(box.top), n(bottom))
    end
    canvas:text(x, bottom + 16, label, {})
  end
  local function tick_y(at, label)
    local y = bottom - at * box.height
    if not plain then
      grid[#grid + 1] = ("M%s %sH%s"):format(n(box.left), n(y), n(right))
    end
    canvas:text(box.left - 6, y + 4, label, { anchor = "end" })
  end
  for _, tick in ipairs(heatmap and {} or x_ticks) do
    tick_x(frame.x:place(tick.value), tick.label)
  end
  for _, tick in ipairs(heatmap and {} or y_ticks) do
    tick_y(frame.y:place(tick.value), tick.label)
  end
  if heatmap then
    -- The labels stand at the middle of a cell.
    local rows, columns = #heatmap.z, #heatmap.z[1]
    for j = 1, columns, math.max(1, math.ceil(columns / (box.width // 40))) do
      tick_x((j - 0.5) / columns, heatmap.x_names and heatmap.x_names[j] or tostring(j - 1))
    end
    for i = 1, rows, math.max(1, math.ceil(rows / (box.height // 16))) do
      tick_y(1 - (i - 0.5) / rows, heatmap.y_names and heatmap.y_names[i] or tostring(i - 1))
    end
  end
  if #grid > 0 then
    canvas:add("<path d=\"%s\" stroke=\"#dddddd\" fill=\"none\" shape-rendering=\"crispEdges\"/>", table.concat(grid))
  end
  canvas:add("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"none\" stroke=\"#888888\"/>", n(box.left), n(box.top),
    n(box.width), n(box.height))
  local options = frame.options
  if options.x_label then
    canvas:text(box.left + box.width / 2, bottom + 36, options.x_label, { size = 12 })
  end
  if options.y_label then
    canvas:text(16, box.top + box.height / 2, options.y_label, { size = 12, turned = true })
  end
  draw_title(canvas, frame, box)
end

local draw = {}

local function path_of(frame, box, x, y)
  local parts, pen = {}, "M"
  for i = 1, #x do
    local u, v = frame.x:place(x[i]), frame.y:place(y[i])
    if u and v then
      parts[#parts + 1] = ("%s%s %s"):format(pen, n(u * box.width), n((1 - v) * box.height))
      pen = "L"
    else
      pen = "M"
    end
  end
  return table.concat(parts)
end

function draw.radar(canvas, frame, box, layer)
  canvas:add("<path d=\"%sZ\" fill=\"%s\" fill-opacity=\"0.1\" stroke=\"%s\" stroke-width=\"%s\" stroke-linejoin=\"round\"/>",
    path_of(frame, box, layer.x, layer.y), layer.color, layer.color, n(layer.size))
end

local function dots(canvas, frame, box, x, y, size, color)
  for _, i in ipairs(data.thin_points(x, y, frame, box.width * 2, box.height * 2)) do
    local u, v = frame.x:place(x[i]), frame.y:place(y[i])
    canvas:add("<circle cx=\"%s\" cy=\"%s\" r=\"%s\" fill=\"%s\"/>", n(u * box.width), n((1 - v) * box.height), n(size), color(i))
  end
end

function draw.line(canvas, frame, box, layer)
  local x, y = layer.x, layer.y
  if not layer.named then
    x, y = data.thin_line(x, y, box.width * 4)
  end
  canvas:add("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\" stroke-linejoin=\"round\"%s/>",
    path_of(frame, box, x, y), layer.color, n(layer.size), layer.dash and " stroke-dasharray=\"6 4\"" or "")
  if layer.points or #x == 1 then
    dots(canvas, frame, box, x, y, 3, function()
      return layer.color
    end)
  end
end

function draw.scatter(canvas, frame, box, layer)
  local span = layer.c and layer.high and layer.high > layer.low and layer.high - layer.low or 1
  canvas:add("<g fill-opacity=\"0.8\">")
  dots(canvas, frame, box, layer.x, layer.y, layer.size, function(i)
    return layer.c and scale.hex(layer.map, (layer.c[i] - (layer.low or 0)) / span) or layer.color
  end)
  canvas:add("</g>")
end

function draw.bar(canvas, frame, box, layer)
  local all, position = 0, 0
  for _, other in ipairs(frame.layers) do
    if other.kind == "bar" then
      all = all + 1
      position = other == layer and all or position
    end
  end
  local slot = box.width / #frame.x.categories * 0.8
  local base = frame.y:place(0) or 0
  for i, name in ipairs(layer.x) do
    local v = frame.y:place(layer.y[i])
    if v then
      local left = frame.x:place(name) * box.width - slot / 2 + slot / all * (position - 1)
      canvas:add("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"/>", n(left), n((1 - math.max(v, base)) * box.height),
        n(slot / all), n(math.abs(v - base) * box.height), layer.color)
    end
  end
end

function draw.hist(canvas, frame, box, layer)
  local base = frame.y:place(0) or 0
  canvas:add("<g fill=\"%s\" fill-opacity=\"%s\">", layer.color, #frame.legend > 1 and "0.6" or "1")
  for k, count in ipairs(layer.counts) do
    local left, right = frame.x:place(layer.edges[k]), frame.x:place(layer.edges[k + 1])
    local v = frame.y:place(count)
    if left and right and v and count > 0 then
      canvas:add("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"/>", n(left * box.width), n((1 - v) * box.height),
        n(math.max(0.5, (right - left) * box.width - 1)), n((v - base) * box.height))
    end
  end
  canvas:add("</g>")
end

local function picture(canvas, frame, box, png, width, height)
  local left, right = frame.x:place(0), frame.x:place(width)
  local top, bottom = frame.y:place(0), frame.y:place(height)
  if frame.x.log or frame.y.log then
    left, right, top, bottom = 0, 1, 1, 0
  end
  canvas:add("<image x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" preserveAspectRatio=\"none\" image-rendering=\"optimizeSpeed\" "
    .. "style=\"image-rendering:pixelated\" href=\"data:image/png;base64,%s\"/>", n(left * box.width), n((1 - top) * box.height),
    n((right - left) * box.width), n((top - bottom) * box.height), require("lunaria.rendering").base64(png))
end

local function share_of(layer, value)
  return layer.high > layer.low and (value - layer.low) / (layer.high - layer.low) or 0.5
end

function draw.heatmap(canvas, frame, box, layer)
  local rows, columns = #layer.z, #layer.z[1]
  -- Cells one by one are sharp at any size; very many of them are smaller as an image.
  if rows * columns > 4096 then
    picture(canvas, frame, box, require "lunaria.plot.colored" (layer), columns, rows)
  else
    for i = 1, rows do
      for j = 1, columns do
        local left, right = frame.x:place(j - 1), frame.x:place(j)
        local top, bottom = 1 - frame.y:place(i - 1), 1 - frame.y:place(i)
        if left and right then
          canvas:add("<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\" shape-rendering=\"crispEdges\"/>",
            n(left * box.width), n(top * box.height), n((right - left) * box.width), n((bottom - top) * box.height),
            scale.hex(layer.map, share_of(layer, layer.z[i][j])))
        end
      end
    end
  end
  if layer.annotate and rows * columns <= 4096 then
    for i = 1, rows do
      for j = 1, columns do
        local r, g, b = scale.rgb(layer.map, share_of(layer, layer.z[i][j]))
        local dark = 0.299 * r + 0.587 * g + 0.114 * b < 128
        canvas:add("<g fill=\"%s\">", dark and "#ffffff" or "#000000")
        canvas:text((j - 0.5) / columns * box.width, (i - 0.5) / rows * box.height + 4, ("%.4g"):format(layer.z[i][j]), {})
        canvas:add("</g>")
      end
    end
  end
end

function draw.contour(canvas, frame, box, layer)
  for _, line in ipairs(layer.lines) do
    canvas:add("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>", path_of(frame, box, line.x, line.y),
      scale.hex(layer.map, share_of(layer, line.level)))
  end
end

function draw.image(canvas, frame, box, layer)
  picture(canvas, frame, box, layer.picture:png(math.max(1, 600 // layer.picture.width)), layer.picture.width, layer.picture.height)
end

local function draw_legend(canvas, frame, box)
  local x = box.left + box.width + 12
  if #frame.legend > 0 then
    for i, layer in ipairs(frame.legend) do
      local y = box.top + 10 + (i - 1) * 18
      canvas:add("<rect x=\"%s\" y=\"%s\" width=\"10\" height=\"10\" fill=\"%s\"/>", n(x), n(y - 9), layer.color)
      canvas:text(x + 15, y, layer.name, { anchor = "start" })
    end
  elseif frame.colorbar then
    local layer, steps = frame.colorbar, 40
    local low, high = layer.low or 0, layer.high or 1
    for k = 0, steps - 1 do
      canvas:add("<rect x=\"%s\" y=\"%s\" width=\"14\" height=\"%s\" fill=\"%s\" shape-rendering=\"crispEdges\"/>", n(x),
        n(box.top + box.height * (1 - (k + 1) / steps)), n(box.height / steps + 0.5), scale.hex(layer.map, (k + 0.5) / steps))
    end
    for _, tick in ipairs(scale.linear_ticks(low, high, 5)) do
      local share = high > low and (tick.value - low) / (high - low) or 0.5
      canvas:text(x + 18, box.top + box.height * (1 - share) + 4, tick.label, { anchor = "start" })
    end
  end
end

return function(frame)
  local width = frame.options.width or 640
  local height = frame.options.height or frame.aspect and math.floor(math.min(900, math.max(120, width * frame.aspect))) or 400
  local box, x_ticks, y_ticks = ticks_and_margins(frame, width, height)
  local canvas = setmetatable({}, Canvas)
  canvas:add("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"%s\" "
    .. "fill=\"#222222\">", width, height, width, height, FONT)
  canvas:add("<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>", width, height)
  if frame.radar then
    require "lunaria.plot.radar".svg(canvas, frame, box, n)
    draw_title(canvas, frame, box)
  else
    draw_axes(canvas, frame, box, x_ticks, y_ticks)
  end
  -- An svg within cuts off what lies outside it, without a name that another picture on the page could have too.
  canvas:add("<svg x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" overflow=\"hidden\">", n(box.left), n(box.top), n(box.width),
    n(box.height))
  for _, layer in ipairs(frame.layers) do
    draw[layer.kind](canvas, frame, box, layer)
  end
  canvas:add("</svg>")
  draw_legend(canvas, frame, box)
  canvas:add("</svg>")
  return table.concat(canvas, "\n")
end
