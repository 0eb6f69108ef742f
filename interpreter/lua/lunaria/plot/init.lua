-- ms.plot: pictures of numbers. A plot is one small description - layers over a pair of axes - that is drawn in several
-- ways: as a Vega-Lite specification, as SVG, as PNG and as text (plot/vega.lua, svg.lua, text.lua).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local data = require "lunaria.plot.data"
local scale = require "lunaria.plot.scale"

local fail, describe = arguments.fail, arguments.describe

local Plot = {}
Plot.__index = Plot
Plot.__name = "plot"

-- Options of the axes and the whole, which every kind takes.
local common = {
  title = "string", x_label = "string", y_label = "string", x_scale = "scale", y_scale = "scale", x_domain = "domain",
  y_domain = "domain", width = "size", height = "size", legend = "boolean",
}
local kinds, own = {}, {}

local checks = {
  string = function(v)
    return type(v) == "string", "a string"
  end,
  boolean = function(v)
    return type(v) == "boolean", "true or false"
  end,
  scale = function(v)
    return v == "linear" or v == "log", "'linear' or 'log'"
  end,
  domain = function(v)
    local ok = type(v) == "table" and type(v[1]) == "number" and type(v[2]) == "number" and v[1] < v[2]
      and data.is_finite(v[1]) and data.is_finite(v[2])
    return ok, "{low, high} with low < high"
  end,
  size = function(v)
    return math.type(v) == "integer" and v >= 50 and v <= 10000, "an integer from 50 to 10000"
  end,
  count = function(v)
    return math.type(v) == "integer" and v >= 1 and v <= 10000, "an integer from 1 to 10000"
  end,
  number = function(v)
    return type(v) == "number" and data.is_finite(v), "a number"
  end,
  color = function(v)
    return type(v) == "string" and v:find("^#%x%x%x%x%x%x$") ~= nil or math.type(v) == "integer" and v >= 1 and v <= 10,
      "'#rrggbb' or the number of one of the 10 colours"
  end,
  map = function(v)
    return type(v) == "string" and scale.maps[v] ~= nil, "'viridis', 'magma', 'coolwarm' or 'grey'"
  end,
}

-- The arguments of one call: data by position, then one table of options, or the table alone. Options that are data
-- have no check.
local function read(where, positions, known, ...)
  local n, options, given = select("#", ...), nil, {}
  local last = n > 0 and select(n, ...) or nil
  if type(last) == "table" and not ms.is_tensor(last) and last[1] == nil and getmetatable(last) == nil then
    options, n = last, n - 1
  end
  for name, value in pairs(options or {}) do
    local check = common[name] or known[name]
    if not check then
      local names = {}
      for other in pairs(common) do names[#names + 1] = other end
      for other in pairs(known) do names[#names + 1] = other end
      table.sort(names)
      local hint = arguments.nearest(tostring(name), names)
      fail(where, ("there is no option '%s'; there are: %s"):format(tostring(name), table.concat(names, ", ")), hint)
    elseif checks[check] then
      local ok, expected = checks[check](value)
      if not ok then
        fail(where, ("%s must be %s, got %s"):format(name, expected, describe(value)))
      end
    end
    given[name] = value
  end
  if n > #positions then
    fail(where, ("takes %s and a table of options, got %d arguments"):format(table.concat(positions, ", "), n))
  end
  -- One array alone is the last of the positions: line(y), line(x, y).
  local skip = n == 1 and #positions == 2 and 1 or 0
  for i = 1, n do
    given[positions[i + skip]] = (select(i, ...))
  end
  return given
end

local function required(where, given, name)
  if given[name] == nil then
    fail(where, name .. " is missing")
  end
  return given[name]
end

local function counted(n)
  local list = {}
  for i = 1, n do
    list[i] = i - 1.0
  end
  return list
end

local function same_length(where, x, y, name)
  if #x ~= #y then
    fail(where, ("x has %d values and %s has %d: they must have as many"):format(#x, name, #y))
  end
end

local function color_of(given)
  local color = given.color
  return math.type(color) == "integer" and scale.colors[color] or color
end

-- Layers out of given.y with given.x, one for each series.
local function series_layers(self, where, kind, given, fill)
  local list = data.series(required(where, given, "y"), where, "y")
  for i, series in ipairs(list) do
    local x, named
    if given.x == nil then
      x = counted(#series.values)
    else
      x, named = data.numbers_or_names(given.x, where, "x")
    end
    same_length(where, x, series.values, "y")
    local name = series.name
    if type(given.label) == "table" then
      name = given.label[i] and tostring(given.label[i]) or name
    elseif given.label ~= nil and #list == 1 then
      name = tostring(given.label)
    end
    local layer = { kind = kind, name = name, x = x, y = series.values, named = named or false, color = color_of(given) }
    if fill then
      fill(layer)
    end
    self._layers[#self._layers + 1] = layer
  end
end

own.line = { x = true, y = true, label = true, color = "color", dash = "boolean", points = "boolean", size = "number" }
function kinds.line(self, ...)
  local given = read("plot.line", { "x", "y" }, own.line, ...)
  series_layers(self, "plot.line", "line", given, function(layer)
    layer.dash, layer.points, layer.size = given.dash, given.points, given.size or 2
  end)
  return given
end

own.scatter = { x = true, y = true, label = true, color = "color", size = "number", c = true, cmap = "map" }
function kinds.scatter(self, ...)
  local given = read("plot.scatter", { "x", "y" }, own.scatter, ...)
  series_layers(self, "plot.scatter", "scatter", given, function(layer)
    layer.size = given.size or 3
    if given.c ~= nil then
      layer.c, layer.map = data.numbers(given.c, "plot.scatter", "c"), given.cmap or "viridis"
      same_length("plot.scatter", layer.x, layer.c, "c")
      layer.low, layer.high = data.extent { layer.c }
    end
  end)
  return given
end

own.bar = { x = true, y = true, label = true, color = "color" }
function kinds.bar(self, ...)
  local given = read("plot.bar", { "x", "y" }, own.bar, ...)
  series_layers(self, "plot.bar", "bar", given, function(layer)
    if not layer.named then
      for i, value in ipairs(layer.x) do
        layer.x[i] = ("%.14g"):format(value)
      end
      layer.named = true
    end
  end)
  return given
end

own.hist = { y = true, label = true, color = "color", bins = "count", range = "domain" }
function kinds.hist(self, ...)
  local given = read("plot.hist", { "y" }, own.hist, ...)
  local y = required("plot.hist", given, "y")
  -- All numbers of a tensor are one series, whatever its shape.
  local list = data.series(ms.is_tensor(y) and y:reshape { -1 } or y, "plot.hist", "y")
  local all = {}
  for i, series in ipairs(list) do
    all[i] = series.values
  end
  local low, high = data.extent(all)
  if given.range then
    low, high = given.range[1], given.range[2]
  elseif not low then
    fail("plot.hist", "y has no finite number")
  elseif low == high then
    low, high = low - 0.5, high + 0.5
  end
  -- As many bins as the square root of the count, which is what most programs take.
  local bins = given.bins or math.max(5, math.min(60, math.ceil(math.sqrt(#all[1]))))
  for i, series in ipairs(list) do
    local edges, counts = {}, {}
    for k = 0, bins do
      edges[k + 1] = low + (high - low) * k / bins
    end
    for k = 1, bins do
      counts[k] = 0
    end
    for _, value in ipairs(series.values) do
      if data.is_finite(value) and value >= low and value <= high then
        local k = math.min(bins, (value - low) / (high - low) * bins // 1 + 1)
        counts[math.tointeger(k)] = counts[math.tointeger(k)] + 1
      end
    end
    self._layers[#self._layers + 1] = {
      kind = "hist", edges = edges,
      name = #list > 1 and series.name or given.label ~= nil and tostring(given.label) or nil, counts = counts, color = color_of(given),
    }
  end
  given.y_label = given.y_label or "count"
  return given
end

own.heatmap = {
  z = true, x_names = true, y_names = true, cmap = "map", low = "number", high = "number", annotate = "boolean",
}
function kinds.heatmap(self, ...)
  local given = read("plot.heatmap", { "z" }, own.heatmap, ...)
  local z = data.matrix(required("plot.heatmap", given, "z"), "plot.heatmap", "z")
  local low, high = data.extent(z)
  local layer = {
    kind = "heatmap", z = z, map = given.cmap or "viridis", low = given.low or low or 0, high = given.high or high or 1,
    annotate = given.annotate,
  }
  for side, count in pairs { x_names = #z[1], y_names = #z } do
    if given[side] ~= nil then
      local names = given[side]
      if type(names) ~= "table" or #names ~= count then
        fail("plot.heatmap", ("%s must be a list of %d names"):format(side, count))
      end
      layer[side] = {}
      for i, name in ipairs(names) do
        layer[side][i] = tostring(name)
      end
    end
  end
  self._layers[#self._layers + 1] = layer
  return given
end

own.contour = { x = true, y = true, z = true, levels = true, cmap = "map" }
function kinds.contour(self, ...)
  local given = read("plot.contour", { "z" }, own.contour, ...)
  local where = "plot.contour"
  local z = data.matrix(required(where, given, "z"), where, "z")
  local x = given.x == nil and counted(#z[1]) or data.numbers(given.x, where, "x")
  local y = given.y == nil and counted(#z) or data.numbers(given.y, where, "y")
  if #x ~= #z[1] or #y ~= #z or #x < 2 or #y < 2 then
    fail(where, ("z has %d rows of %d numbers: x must have %d values, y %d, at least 2 each; got %d and %d"):format(
      #z, #z[1], #z[1], #z, #x, #y))
  end
  local low, high = data.extent(z)
  if not low then
    fail(where, "z has no finite number")
  end
  local levels = {}
  if type(given.levels) == "table" or ms.is_tensor(given.levels) then
    levels = data.numbers(given.levels, where, "levels")
  else
    local ok, expected = checks.count(given.levels or 8)
    if not ok then
      fail(where, ("levels must be %s or a list of numbers, got %s"):format(expected, describe(given.levels)))
    end
    for _, tick in ipairs(scale.linear_ticks(low, high, given.levels or 8)) do
      levels[#levels + 1] = tick.value
    end
  end
  self._layers[#self._layers + 1] = {
    kind = "contour", x = x, y = y, map = given.cmap or "viridis", low = levels[1], high = levels[#levels],
    lines = require "lunaria.plot.contour" (x, y, z, levels),
  }
  return given
end

own.image = { image = true, cmap = "map", layout = "string" }
function kinds.image(self, ...)
  local given = read("plot.image", { "image" }, own.image, ...)
  local picture = ms.image(required("plot.image", given, "image"), { cmap = given.cmap, layout = given.layout, scale = 1 })
  self._layers[#self._layers + 1] = { kind = "image", picture = picture }
  return given
end

-- The values of a radar as shares of its domain.
local function shares(values, low, high, count)
  if #values ~= count then
    fail("plot.radar", ("there are %d names and %d values of a series: each name needs one"):format(count, #values))
  end
  local list = {}
  for i, value in ipairs(values) do
    if not data.is_finite(value) or value < low or value > high then
      fail("plot.radar", ("values must lie from %g to %g, got %s"):format(low, high, tostring(value)), "y_domain = { low, high }")
    end
    list[i] = (value - low) / (high - low)
  end
  return list
end

own.radar = { y = true, names = true, label = true, color = "color", rings = true }
function kinds.radar(self, ...)
  local where = "plot.radar"
  local given = read(where, { "y" }, own.radar, ...)
  local low, high = table.unpack(given.y_domain or { 0, 1 })
  local names = required(where, given, "names")
  if type(names) ~= "table" or #names < 3 then fail(where, "names must be a list of at least 3 names, got " .. describe(names)) end
  local rings = {}
  for i, value in ipairs(given.rings == nil and {} or data.numbers(given.rings, where, "rings")) do
    rings[i] = { at = shares({ value }, low, high, 1)[1], label = ("%.6g"):format(value) }
  end
  local texts = {}
  for i, name in ipairs(names) do texts[i] = tostring(name) end
  self._web = { names = texts, rings = rings }
  for i, series in ipairs(data.series(required(where, given, "y"), where, "y")) do
    local x, y = require("lunaria.plot.radar").polygon(shares(series.values, low, high, #names))
    local name = type(given.label) == "table" and given.label[i] or type(given.label) == "string" and given.label or series.name
    self._layers[#self._layers + 1] = { kind = "radar", name = name and tostring(name), x = x, y = y, size = 2, color = color_of(given) }
  end
  return given
end

-- Adds the layers of one call and takes over its options for the axes.
local function add(self, kind, ...)
  if getmetatable(self) ~= Plot then
    fail("plot." .. kind, "as a method it is called on a plot: p:" .. kind .. "(...)")
  end
  local given = kinds[kind](self, ...)
  for name in pairs(common) do
    if given[name] ~= nil then
      self._options[name] = given[name]
    end
  end
  return self
end

local function new()
  return setmetatable({ _layers = {}, _options = {} }, Plot)
end

local plot = {}

--- Lines: line(y), line(x, y) or line{x = , y = , ...}. y may hold several series: a table from names to lists, or a tensor
--- with one row for each. Options: label, color, dash, points, size, and those of every plot (title, x_label, y_label,
--- x_scale and y_scale ("log"), x_domain and y_domain ({low, high}), width, height, legend).
---     > p = ms.plot.line({ 1, 4, 9, 16 }, { title = "squares" })
---     > p:text{ width = 24, height = 4 }
---             squares
---       │                ⢀⡠⠔⠂
---     10┤            ⢀⡠⠔⠊⠁
---       │       ⣀⡠⠤⠒⠉⠁
---       │⠠⠤⠤⠒⠒⠊⠉
---       └─┬──────────┬───────
---         0          2
function plot.line(...)
  return add(new(), "line", ...)
end

--- Points: scatter(x, y) or scatter{x = , y = , c = , ...}. Numbers in c give each point a colour of cmap ("viridis", "magma",
--- "coolwarm", "grey"). Options: label, color, size, and those of every plot (see line).
---     > ms.plot.scatter({ 1, 2, 3 }, { 2, 1, 3 }):svg():match("^<svg") --> <svg
function plot.scatter(...)
  return add(new(), "scatter", ...)
end

--- Bars: bar(y), bar(names, y) or bar{x = , y = , ...}; several series stand beside each other.
---     > ms.plot.bar({ "cats", "dogs" }, { 3, 6 }):text{ width = 24 }
---     cats │███████▎ 3
---     dogs │██████████████▍ 6
function plot.bar(...)
  return add(new(), "bar", ...)
end

--- A histogram of numbers: hist(values) or hist{y = , bins = , range = {low, high}, ...}.
---     > ms.plot.hist({ 1, 1, 2, 5 }, { bins = 2 }):vega().layer[1].data.values[1].y --> 3
function plot.hist(...)
  return add(new(), "hist", ...)
end

--- A matrix as colours, its first row on top: heatmap(z) or heatmap{z = , x_names = , y_names = , annotate = true, cmap = ,
--- low = , high = , ...}.
---     > ms.plot.heatmap({ { 0, 1 }, { 1, 0 } }):text{ height = 2 }
---       ██
---     ██
---     2 rows, 2 columns, from 0 to 1
function plot.heatmap(...)
  return add(new(), "heatmap", ...)
end

--- Lines of equal height of a matrix z with a row for each y: contour(z) or contour{x = , y = , z = , levels = , ...}; levels
--- is about how many there are, or a list of them.
---     > #ms.plot.contour{ z = { { 0, 1 }, { 0, 1 } }, levels = { 0.25, 0.5 } }:vega().layer[1].data.values --> 4
function plot.contour(...)
  return add(new(), "contour", ...)
end

--- An image on axes that count pixels: image(tensor) or image{image = , layout = , cmap = , ...}, see ms.image.
---     > ms.plot.image(ms.ops.zeros({ 2, 3 })):vega().layer[1].mark.type --> image
function plot.image(...)
  return add(new(), "image", ...)
end

--- A radar: values on spokes around a middle, radar(y, { names = , ... }); y is a list of numbers with one for each name, or several of
--- them: a table from names to lists, or a tensor with a row for each. Options: names (at least 3), label (one, or a list), color, rings
--- (values at which rings with numbers are drawn), y_domain ({ 0, 1 }: the values in the middle and at the border; others are an error),
--- and title, width, height, legend.
---     > p = ms.plot.radar({ 0.5, 1, 0.25 }, { names = { "a", "b", "c" }, rings = { 0.5 } })
---     > p:svg():match(">b</text>") --> >b</text>
function plot.radar(...)
  return add(new(), "radar", ...)
end

for kind in pairs(kinds) do
  Plot[kind] = function(self, ...)
    return add(self, kind, ...)
  end
end

-- A colour for each layer that has none, and a place in the legend for each that has a name.
local function take_colors(frame)
  local colors = 0
  for _, layer in ipairs(frame.layers) do
    if layer.map then
      frame.colorbar = frame.colorbar or layer
    elseif layer.kind ~= "image" then
      layer.color = layer.color or scale.colors[colors % #scale.colors + 1]
      colors = colors + 1
      if layer.name then frame.legend[#frame.legend + 1] = layer end
    end
  end
  if frame.options.legend == false then frame.legend = {} end
end

local function radar_frame(self, frame)
  for _, layer in ipairs(self._layers) do
    if layer.kind ~= "radar" then fail("plot", "a radar has no axes that other layers could stand on") end
  end
  local reach = require("lunaria.plot.radar").reach
  frame.radar, frame.aspect = self._web, 1
  frame.x, frame.y = scale.axis(-reach, reach, { exact = true }), scale.axis(-reach, reach, { exact = true })
  take_colors(frame)
  return frame
end

--- The axes, the layers with their colours and what the legend lists: what all ways of drawing start from.
function Plot:_frame()
  local options, xs, ys, names = self._options, {}, {}, {}
  local frame = { layers = self._layers, options = options, legend = {} }
  local x_options = { log = options.x_scale == "log", domain = options.x_domain }
  local y_options = { log = options.y_scale == "log", domain = options.y_domain }
  local named
  if self._web then return radar_frame(self, frame) end
  for _, layer in ipairs(self._layers) do
    local kind = layer.kind
    if kind == "line" or kind == "scatter" or kind == "bar" then
      if named ~= nil and named ~= layer.named then
        fail("plot", "one layer has names on its x axis and another has numbers")
      end
      named = layer.named
      if layer.named then
        table.move(layer.x, 1, #layer.x, #names + 1, names)
      else
        xs[#xs + 1] = layer.x
      end
      ys[#ys + 1] = layer.y
      y_options.zero = y_options.zero or kind == "bar"
    elseif kind == "hist" then
      xs[#xs + 1], ys[#ys + 1], y_options.zero = layer.edges, layer.counts, true
    elseif kind == "contour" then
      xs[#xs + 1], ys[#ys + 1] = layer.x, layer.y
      x_options.exact, y_options.exact = true, true
    else
      local width = kind == "image" and layer.picture.width or #layer.z[1]
      local height = kind == "image" and layer.picture.height or #layer.z
      xs[#xs + 1], ys[#ys + 1] = { 0, width }, { 0, height }
      -- Pixels are square unless a height is asked for.
      frame.aspect = kind == "image" and height / width or nil
      x_options.exact, y_options.exact, y_options.reversed = true, true, true
    end
  end
  take_colors(frame)
  for side, option in pairs { x = x_options, y = y_options } do
    if option.log and option.domain and option.domain[1] <= 0 then
      fail("plot", ("%s_domain must be above 0 on a logarithmic axis, got %s"):format(side, option.domain[1]))
    end
  end
  if named then
    frame.x = scale.category_axis(names)
  else
    local low, high = data.extent(xs, x_options.log)
    frame.x = scale.axis(low, high, x_options)
  end
  local low, high = data.extent(ys, y_options.log)
  frame.y = scale.axis(low, high, y_options)
  return frame
end

--- The plot as a Vega-Lite specification, a table.
---     > ms.plot.line({ 1, 2 }, { title = "two" }):vega().title --> two
function Plot:vega()
  return require "lunaria.plot.vega" (self:_frame())
end

--- The plot as SVG, a text.
---     > ms.plot.line({ 1, 2 }, { width = 300 }):svg():match('width="(%d+)"') --> 300
function Plot:svg()
  return require "lunaria.plot.svg" (self:_frame())
end

--- The plot as PNG, a string of bytes, drawn at `factor` times its size (2). Needs Debian's librsvg2-2.
---     > require("lunaria.rendering").has_svg() and ms.plot.line({ 1, 2 }):png():sub(2, 4) or "PNG" --> PNG
function Plot:png(factor)
  factor = arguments.named("png", { "factor" }, factor)
  return require("lunaria.rendering").svg_to_png(self:svg(), factor or 2)
end

--- The plot as lines of text. Options: width and height in characters, color (with the terminal's colours).
---     > ms.plot.line({ 0, 1 }):text{ width = 20, height = 3 }
---     1.0┤          ⣀⡠⠔⠒⠁
---     0.5┤     ⣀⡠⠔⠊⠉
---       0┤⢀⠤⠔⠊⠉
---        └─┬─────┬─────┬─
---          0    0.5   1.0
function Plot:text(options)
  local known = { width = arguments.positive, height = arguments.positive, color = "boolean" }
  options = arguments.options("text", options, known, "{ width = 60 }")
  return require("lunaria.plot.text").draw(self:_frame(), options)
end

function Plot:__tostring()
  return self:text()
end

function Plot:__terminal(options)
  local rendering = require "lunaria.rendering"
  if options.sixel and rendering.has_svg() then
    return rendering.svg_to_sixel(self:svg(), 1)
  end
  return self:text { width = options.width, height = options.height, color = options.color }
end

--- Writes the plot to a file; the ending of the name says how: .svg, .png, .html or .json (Vega-Lite). Gives the plot back.
---     > path = os.tmpname() .. ".svg"
---     > io.open(ms.plot.line({ 1, 2 }):save(path) and path):read(4), os.remove(path) --> <svg	true
function Plot:save(path)
  if type(path) ~= "string" then
    fail("plot.save", "the path must be a string, got " .. describe(path))
  end
  local ending, text = path:match("%.(%w+)$"), nil
  if ending == "svg" then
    text = self:svg()
  elseif ending == "png" then
    text = self:png()
  elseif ending == "html" then
    text = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>" .. require "lunaria.plot.svg_text" (self._options.title or "plot")
      .. "</title>\n" .. self:svg() .. "\n"
  elseif ending == "json" then
    text = ms.json.encode(self:vega()) .. "\n"
  else
    fail("plot.save", ("'%s' must end in .svg, .png, .html or .json"):format(path))
  end
  local file <close>, message = io.open(path, "wb")
  if not file or not file:write(text) or not file:flush() then
    fail("plot.save", "cannot write " .. (message or path))
  end
  return self
end

function Plot:__mime()
  local rendering = require "lunaria.rendering"
  local svg = self:svg()
  local bundle = {
    ["application/vnd.vegalite.v5+json"] = self:vega(),
    ["image/svg+xml"] = svg,
    ["text/plain"] = self:text { width = 80 },
  }
  -- For what shows neither of the others: pages made from notebooks, mail.
  if rendering.has_svg() then
    bundle["image/png"] = rendering.svg_to_png(svg, 1)
  end
  return bundle
end

return setmetatable(plot, {
  _head = "ms.plot",
  _doc = [[Plots: line, scatter, bar, hist, heatmap, contour, image, radar, and live for curves that grow (?ms.plot.line tells the options).
A plot is shown when it is the last expression of a cell or given to display. Methods of the same names add layers to it;
p:save("x.svg") writes .svg, .png, .html or .json (Vega-Lite); p:svg(), p:png(), p:text() and p:vega() give the same as values.

    ms.plot.scatter(x, measured, { label = "measured" }):line(x, fitted, { label = "fitted" })]],
  __index = function(_, name)
    if name == "live" then
      plot.live = require "lunaria.plot.live"
      return plot.live
    end
    fail("ms.plot", ("there is no plot '%s'"):format(tostring(name)),
      arguments.nearest(tostring(name), { "line", "scatter", "bar", "hist", "heatmap", "contour", "image", "radar", "live" }))
  end,
})
