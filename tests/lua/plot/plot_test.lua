-- ms.plot: what it takes, and what the pictures hold.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local plot = ms.plot

local function count(text, pattern)
  local n = 0
  for _ in text:gmatch(pattern) do n = n + 1 end
  return n
end

local everything = {
  line = function() return plot.line({ 1, 4, 2 }, { title = "t", x_label = "x", y_label = "y" }) end,
  series = function() return plot.line { y = { train = { 1, 2 }, test = { 2, 1 } } } end,
  scatter = function() return plot.scatter({ 1, 2, 3 }, { 3, 1, 2 }, { c = { 1, 2, 3 } }) end,
  bar = function() return plot.bar({ "a", "b" }, { 1, -2 }) end,
  hist = function() return plot.hist({ 1, 2, 2, 3, 9 }, { bins = 4 }) end,
  heatmap = function() return plot.heatmap { z = { { 1, 2 }, { 3, 4 } }, annotate = true, x_names = { "p", "q" } } end,
  large_heatmap = function() return plot.heatmap(ms.ops.ones({ 70, 70 })) end,
  contour = function() return plot.contour { z = { { 0, 1, 0 }, { 1, 2, 1 }, { 0, 1, 0 } }, levels = { 0.5, 1.5 } } end,
  image = function() return plot.image(ms.ops.zeros({ 4, 5 })) end,
  log = function() return plot.line({ 1, 10, 100 }, { 1e-3, 1, 1e3 }, { x_scale = "log", y_scale = "log" }) end,
  one = function() return plot.line { 5 } end,
  holes = function() return plot.line { 1, 0 / 0, 3, math.huge, 2 } end,
  empty = function() return plot.line { 0 / 0, 0 / 0 } end,
}

for name, make in pairs(everything) do
  t.test(name .. " is drawn in every way", function()
    local p = make()
    local svg = p:svg()
    assert(svg:find("^<svg xmlns=") and svg:find("</svg>$"), svg)
    assert(not svg:find("nan", 1, true) and not svg:find("inf", 1, true), svg)
    t.equal(count(svg, "<g[ >]"), count(svg, "</g>"))
    t.equal(svg, make():svg())
    local spec = ms.json.decode(ms.json.encode(p:vega()))
    assert(spec["$schema"]:find("vega-lite/v5", 1, true) and #spec.layer >= 1)
    local text = p:text { width = 50, height = 8 }
    assert(#text > 0 and not text:find("\27", 1, true), text)
    for line in text:gmatch("[^\n]+") do
      assert(utf8.len(line) <= 52, line)
    end
    assert(utf8.len(p:text { color = true }))
    local bundle = getmetatable(p).__mime(p)
    assert(bundle["image/svg+xml"] and bundle["text/plain"] and bundle["application/vnd.vegalite.v5+json"])
    if require("lunaria.rendering").has_svg() then
      t.equal(bundle["image/png"]:sub(1, 8), "\x89PNG\r\n\x1a\n")
    end
  end)
end

t.test("lines pass through their points", function()
  local svg = plot.line({ 0, 1 }, { 0, 1 }, { x_domain = { 0, 1 }, y_domain = { 0, 1 } }):svg()
  local width, height = svg:match("<svg x=\"[%d.]+\" y=\"[%d.]+\" width=\"([%d.]+)\" height=\"([%d.]+)\"")
  assert(svg:find(("M0 %sL%s 0"):format(height, width), 1, true), svg)
end)

t.test("a hole breaks the line", function()
  t.equal(count(plot.line({ 1, 2, 0 / 0, 3, 4 }):svg():match("<path d=\"([^\"]+)\" fill=\"none\" stroke=\"#4c"), "M"), 2)
end)

t.test("values without a place on a logarithmic axis are left out", function()
  local p = plot.line({ -1, 0, 10, 100 }, { y_scale = "log" })
  t.equal(count(p:svg():match("<path d=\"([^\"]+)\" fill=\"none\" stroke=\"#4c"), "[ML]"), 2)
  t.fails("above 0", function() plot.line({ 1 }, { y_scale = "log", y_domain = { -1, 1 } }):svg() end)
end)

t.test("texts are escaped", function()
  local svg = plot.line({ 1, 2 }, { title = "a < b & \"c\"", label = "<script>" }):svg()
  assert(svg:find("a &lt; b &amp; &quot;c&quot;", 1, true))
  assert(not svg:find("<script>", 1, true))
end)

t.test("very long lines are thinned without losing their extremes", function()
  local y = {}
  for i = 1, 200000 do y[i] = math.sin(i / 100) end
  y[123456] = 7
  local svg = plot.line(y):svg()
  assert(#svg < 200000, #svg)
  local values = plot.line(y):vega().layer[1].data.values
  assert(#values <= 5000, #values)
  local most = 0
  for _, row in ipairs(values) do most = math.max(most, row.y) end
  t.equal(most, 7.0)
end)

t.test("numbers near the ends of what there is have a picture", function()
  for _, options in ipairs {
    { y = { 1e308, -1e308 } }, { y = { 1e-320, 2e-320 } }, { y = { 1, 2 }, x = { 1e300, 1 }, x_scale = "log" },
    { y = { 1e-300, 1e300 }, y_scale = "log" }, { y = { 1, 2 }, y_domain = { 1, 1 + 1e-15 } }, { y = { 5, 5 } },
  } do
    for _, kind in ipairs { "line", "scatter" } do
      local p = plot[kind](options)
      local svg = p:svg()
      assert(not svg:find("nan", 1, true) and not svg:find("%-?inf"), svg)
      assert(#p:text() < 10000)
      ms.json.encode(p:vega())
    end
  end
  assert(#plot.bar({ y = { 1, 2 }, y_domain = { 1, 1 + 1e-15 } }):text() < 1000)
end)

t.test("a million numbers are drawn in little text", function()
  local big = ms.ops.randn { 1000000 }
  assert(#plot.line(big):svg() < 100000 and #plot.hist(big):svg() < 100000)
  assert(#plot.heatmap(big:reshape { 1000, 1000 }):svg() < 5000000)
end)

t.test("a histogram counts every value once", function()
  local sum = 0
  for _, row in ipairs(plot.hist(ms.ops.linspace(0, 1, 1000), { bins = 7 }):vega().layer[1].data.values) do
    sum = sum + row.y
  end
  t.equal(sum, 1000)
end)

t.test("all numbers of a tensor go into one histogram, rows of a matrix are lines", function()
  t.equal(#plot.hist(ms.ops.ones({ 20, 30 })):vega().layer, 1)
  t.equal(#plot.line(ms.ops.ones({ 3, 10 })):vega().layer, 3)
  t.fails({ "101 rows" }, plot.line, ms.ops.ones({ 101, 2 }))
end)

t.test("contours of a cone are closed circles", function()
  local z, axis = {}, {}
  for i = 1, 41 do axis[i] = (i - 21) / 10 end
  for i = 1, 41 do
    z[i] = {}
    for j = 1, 41 do z[i][j] = math.sqrt(axis[i] ^ 2 + axis[j] ^ 2) end
  end
  local lines = require "lunaria.plot.contour" (axis, axis, z, { 1 })
  t.equal(#lines, 1)
  t.equal({ lines[1].x[1], lines[1].y[1] }, { lines[1].x[#lines[1].x], lines[1].y[#lines[1].y] })
  for i = 1, #lines[1].x do
    t.near(math.sqrt(lines[1].x[i] ^ 2 + lines[1].y[i] ^ 2), 1, 0.02)
  end
end)

t.test("ticks are round numbers", function()
  local scale = require "lunaria.plot.scale"
  local function labels(list)
    local texts = {}
    for i, tick in ipairs(list) do texts[i] = tick.label end
    return table.concat(texts, " ")
  end
  t.equal(labels(scale.linear_ticks(0, 1, 5)), "0 0.2 0.4 0.6 0.8 1.0")
  t.equal(labels(scale.linear_ticks(-3.7, 12.2, 4)), "0 5 10")
  t.equal(labels(scale.linear_ticks(1e6, 3e6, 4)), "1.0e6 1.5e6 2.0e6 2.5e6 3.0e6")
  t.equal(labels(scale.linear_ticks(0, 2e-7, 2)), "0 1e-7 2e-7")
  t.equal(labels(scale.log_ticks(1, 100)), "1 2 5 10 20 50 100")
  t.equal(labels(scale.log_ticks(1e-6, 1e6)), "1e-6 1e-4 0.01 1 100 10000 1e6")
end)

t.test("plots are saved by the ending of the name", function()
  local path = os.tmpname()
  for ending, start in pairs { svg = "<svg", html = "<!doctype html>", json = "{" } do
    plot.line({ 1, 2 }):save(path .. "." .. ending)
    local file <close> = assert(io.open(path .. "." .. ending))
    t.equal(file:read(#start), start)
    os.remove(path .. "." .. ending)
  end
  os.remove(path)
  t.fails({ "plot.save", ".png" }, function() plot.line({ 1 }):save("picture.bmp") end)
  t.fails("cannot write", function() plot.line({ 1 }):save("/proc/no/such/folder/x.svg") end)
end)

t.test("mistakes are told", function()
  t.fails({ "plot.line", "titles", "did you mean 'title'?" }, plot.line, { 1 }, { titles = "x" })
  t.fails({ "plot.line", "y is missing" }, plot.line)
  t.fails({ "x has 2 values and y has 1" }, plot.line, { 1, 2 }, { 1 })
  t.fails({ "y must hold numbers" }, plot.line, { 1, "x" })
  t.fails({ "y_scale", "'linear' or 'log'" }, plot.line, { 1 }, { y_scale = "sqrt" })
  t.fails({ "x_domain", "low < high" }, plot.line, { 1 }, { x_domain = { 2, 1 } })
  t.fails({ "width" }, plot.line, { 1 }, { width = 0 })
  t.fails({ "z", "rows of one length" }, plot.heatmap, { { 1, 2 }, { 1 } })
  t.fails({ "2 axes" }, plot.heatmap, ms.ops.ones({ 3 }))
  t.fails({ "at least 2" }, plot.contour, { { 1 } })
  t.fails({ "no finite" }, plot.hist, { 0 / 0 })
  t.fails({ "there is no plot 'lines'", "did you mean 'line'?" }, function() return plot.lines end)
  t.fails({ "names" }, function() return plot.bar({ "a" }, { 1 }):line({ 1, 2 }):svg() end)
end)

t.finish()
