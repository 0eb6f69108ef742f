-- A plot as a Vega-Lite specification (version 5) with its data inside. Domains are those of the other ways of drawing,
-- so that the pictures agree.
local ms = require "lunaria"
local data = require "lunaria.plot.data"
local scale = require "lunaria.plot.scale"

-- Nine digits are more than a screen shows, and half the text.
local function number(x)
  return data.is_finite(x) and tonumber(("%.9g"):format(x)) or ms.json.null
end

-- Vega joins points from left to right unless it is told another order.
local function is_sorted(x)
  for i = 2, #x do
    if not (x[i] >= x[i - 1]) then
      return false
    end
  end
  return true
end

local function axis(frame, side)
  local this, title = frame[side], frame.options[side .. "_label"]
  local channel = { field = side, title = title or ms.json.null }
  if this.categories then
    channel.type, channel.sort = "nominal", ms.json.array { table.unpack(this.categories) }
    channel.axis = { labelAngle = 0 }
    return channel
  end
  channel.type = "quantitative"
  if frame.radar then channel.axis = ms.json.null end
  channel.scale = { domain = { this.low, this.high }, nice = false, zero = false }
  if this.log then
    channel.scale.type = "log"
  end
  if this.reversed then
    channel.scale.reverse = true
  end
  return channel
end

-- The colour of a layer: by the legend when it has a name there, plain otherwise.
local function color_of(frame, layer)
  if not layer.name or #frame.legend == 0 then
    return { value = layer.color }
  end
  local names, colors = {}, {}
  for i, other in ipairs(frame.legend) do
    names[i], colors[i] = other.name, other.color
  end
  return { datum = layer.name, type = "nominal", scale = { domain = names, range = colors }, legend = { title = ms.json.null } }
end

local function colors_by(layer, field)
  local range = {}
  for i = 0, 8 do
    range[i + 1] = scale.hex(layer.map, i / 8)
  end
  return {
    field = field, type = "quantitative", title = ms.json.null,
    scale = { domain = { layer.low or 0, layer.high or 1 }, range = range, clamp = true },
  }
end

local function rows_of(layer, x, y, with)
  local rows = {}
  for i = 1, #x do
    rows[i] = { x = layer.named and x[i] or number(x[i]), y = number(y[i]) }
    if with then
      with(rows[i], i)
    end
  end
  return ms.json.array(rows)
end

local function flat(layer)
  local rows = {}
  for i, row in ipairs(layer.z) do
    for j, value in ipairs(row) do
      rows[#rows + 1] = {
        x = layer.x_names and layer.x_names[j] or j - 1, y = layer.y_names and layer.y_names[i] or i - 1, z = number(value),
      }
    end
  end
  return rows
end

local function size(frame, side)
  local width = frame.options.width or 480
  if side == "width" then
    return width
  end
  return frame.options.height or frame.aspect and math.floor(math.min(900, math.max(60, width * frame.aspect))) or 300
end

-- Vega smooths what it enlarges; large pixels are made here.
local function picture(frame, png, width, height)
  return {
    data = { values = { { url = "data:image/png;base64," .. require("lunaria.rendering").base64(png), x = width / 2, y = height / 2 } } },
    mark = { type = "image", width = size(frame, "width"), height = size(frame, "height"), aspect = false },
    encoding = { x = axis(frame, "x"), y = axis(frame, "y"), url = { field = "url", type = "nominal" } },
  }
end

local make = {}

function make.line(frame, layer)
  local x, y = layer.x, layer.y
  if not layer.named then
    x, y = data.thin_line(x, y, 4000)
  end
  local sorted = not layer.named and is_sorted(x)
  return {
    data = { values = rows_of(layer, x, y, not sorted and function(row, i)
      row.i = i
    end) },
    mark = {
      type = "line", strokeWidth = layer.size, strokeDash = layer.dash and { 6, 4 } or nil, point = layer.points and true or nil,
      clip = true, invalid = "break-paths-show-domains",
    },
    encoding = {
      x = axis(frame, "x"), y = axis(frame, "y"), color = color_of(frame, layer),
      order = not sorted and { field = "i", type = "quantitative" } or nil,
    },
  }
end

make.radar = make.line

function make.scatter(frame, layer)
  local kept = { x = {}, y = {}, c = {} }
  for k, i in ipairs(data.thin_points(layer.x, layer.y, frame, 1200, 800)) do
    kept.x[k], kept.y[k], kept.c[k] = layer.x[i], layer.y[i], layer.c and layer.c[i]
  end
  return {
    data = { values = rows_of(layer, kept.x, kept.y, layer.c and function(row, i)
      row.c = number(kept.c[i])
    end) },
    mark = { type = "circle", size = (2 * layer.size) ^ 2, opacity = 0.8, clip = true },
    encoding = {
      x = axis(frame, "x"), y = axis(frame, "y"),
      color = layer.c and colors_by(layer, "c") or color_of(frame, layer),
    },
  }
end

function make.bar(frame, layer)
  local encoding = { x = axis(frame, "x"), y = axis(frame, "y"), color = color_of(frame, layer) }
  if layer.name and #frame.legend > 1 then
    local names = {}
    for i, other in ipairs(frame.legend) do
      names[i] = other.name
    end
    encoding.xOffset = { datum = layer.name, type = "nominal", scale = { domain = names } }
  end
  return { data = { values = rows_of(layer, layer.x, layer.y) }, mark = { type = "bar", clip = true }, encoding = encoding }
end

function make.hist(frame, layer)
  local rows = {}
  for k, count in ipairs(layer.counts) do
    rows[k] = { x = layer.edges[k], x2 = layer.edges[k + 1], y = count }
  end
  return {
    data = { values = rows },
    mark = { type = "bar", clip = true, opacity = #frame.legend > 1 and 0.6 or 1, binSpacing = 1 },
    encoding = {
      x = axis(frame, "x"), x2 = { field = "x2" }, y = axis(frame, "y"), y2 = { datum = 0 }, color = color_of(frame, layer),
    },
  }
end

function make.heatmap(frame, layer)
  if #layer.z * #layer.z[1] > 4096 then
    return picture(frame, require "lunaria.plot.colored" (layer), #layer.z[1], #layer.z)
  end
  local function side(name, names)
    return {
      field = name, type = "ordinal", sort = names and ms.json.array { table.unpack(names) } or nil,
      title = frame.options[name .. "_label"] or ms.json.null, axis = { labelAngle = 0, labelOverlap = true },
    }
  end
  local encoding = { x = side("x", layer.x_names), y = side("y", layer.y_names) }
  local cells = { mark = { type = "rect" }, encoding = { color = colors_by(layer, "z") } }
  if not layer.annotate then
    encoding.color = cells.encoding.color
    return { data = { values = flat(layer) }, mark = cells.mark, encoding = encoding }
  end
  local dark = scale.maps[layer.map] == scale.maps.coolwarm and 0 or (layer.low + layer.high) / 2
  return {
    data = { values = flat(layer) },
    encoding = encoding,
    layer = ms.json.array {
      cells,
      {
        mark = { type = "text" },
        encoding = {
          text = { field = "z", type = "quantitative", format = ".4~g" },
          color = { value = "black", condition = { test = ("datum.z < %.17g"):format(dark), value = "white" } },
        },
      },
    },
  }
end

function make.contour(frame, layer)
  local rows = {}
  for k, line in ipairs(layer.lines) do
    for i = 1, #line.x do
      rows[#rows + 1] = { x = number(line.x[i]), y = number(line.y[i]), z = line.level, k = k, i = i }
    end
  end
  return {
    data = { values = ms.json.array(rows) },
    mark = { type = "line", strokeWidth = 1.5, clip = true },
    encoding = {
      x = axis(frame, "x"), y = axis(frame, "y"), color = colors_by(layer, "z"), detail = { field = "k", type = "nominal" },
      order = { field = "i", type = "quantitative" },
    },
  }
end

function make.image(frame, layer)
  return picture(frame, layer.picture:png(math.max(1, 600 // layer.picture.width)), layer.picture.width, layer.picture.height)
end

return function(frame)
  local layers = {}
  for i, layer in ipairs(frame.layers) do
    layers[i] = make[layer.kind](frame, layer)
  end
  if frame.radar then
    local lines, texts = require "lunaria.plot.radar".vega(frame, axis)
    table.insert(layers, 1, lines)
    layers[#layers + 1] = texts
  end
  return {
    ["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json",
    title = frame.options.title,
    width = size(frame, "width"),
    height = size(frame, "height"),
    layer = ms.json.array(layers),
  }
end
