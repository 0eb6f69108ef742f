-- Radars and curves of robustness: what they show in text, SVG and Vega-Lite, and what they measure. Half a second.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local E, ops = ms.armour.evaluations, ms.ops

local function count(text, pattern) return select(2, text:gsub(pattern, "")) end

t.test("a radar's corners are at its values, the first spoke up, the others with the clock", function()
  local spec = ms.plot.radar({ 1, 0.5, 0.25, 0 }, { names = { "up", "right", "down", "left" } }):vega()
  local values = spec.layer[2].data.values
  local wanted = { { 0, 1 }, { 0.5, 0 }, { 0, -0.25 }, { 0, 0 }, { 0, 1 } }
  t.equal(#values, 5)
  for i, place in ipairs(wanted) do t.near({ values[i].x, values[i].y }, place, 1e-8) end
  t.equal(spec.width, spec.height or spec.width)
  -- The same in the picture: the value 0 of a domain from -1 to 1 is half way.
  local half = ms.plot.radar({ 0, 0, 0 }, { names = { "a", "b", "c" }, y_domain = { -1, 1 } }):vega().layer[2].data.values
  t.near(half[1].y, 0.5, 1e-8)
end)

t.test("a radar has names, rings, curves and a legend in each way of drawing", function()
  local radar = E.RadarMetric({ "MR", "ACAC", "ASS", "NTE" }, { { 0.9, 0.8, 0.6, 0.7 }, { 0.5, 0.3, 0.5, 0.6 } }, { "before", "after" },
    "robustness", "norm")
  local plot = radar:plot()
  local svg = plot:svg()
  for _, text in ipairs { "MR", "ACAC", "ASS", "NTE", "before", "after", "robustness", "0.2", "0.8" } do
    t.equal({ text, svg:find(">" .. text .. "</text>", 1, true) ~= nil }, { text, true })
  end
  -- Four rings, four spokes and the border; two filled curves.
  t.equal({ count(svg, "<polyline"), count(svg, "fill%-opacity=\"0.1\"") }, { 9, 2 })
  local text = plot:text { width = 40, height = 11 }
  for _, name in ipairs { "MR", "ACAC", "ASS", "NTE", "a before", "b after" } do
    t.equal({ name, text:find(name, 1, true) ~= nil }, { name, true })
  end
  for line in (text .. "\n"):gmatch "(.-)\n" do t.equal(utf8.len(line) <= 41, true) end
  t.equal(#plot:vega().layer, 4)
  local hidden = E.RadarMetric({ "a", "b", "c" }, ms.tensor { { 0.5, 0.5, 0.5 } }, { "one" }):plot():svg()
  t.equal(count(hidden, "<polyline"), 4)
  local path = os.tmpname() .. ".svg"
  plot:save(path)
  local file = io.open(path)
  t.equal(file:read "a", svg)
  file:close()
  os.remove(path)
end)

local net = function(x) return ops.concat({ x * 4, 2 - x * 4 }, 1) end
local inputs, labels = ms.tensor { { 0.9 }, { 0.6 }, { 0.4 }, { 0.05 } }, ms.tensor({ 0, 0, 0, 1 }, ms.int32)

t.test("a curve is the accuracy under attacks of growing strength", function()
  -- The border is at 1/4: the distances are 0.65, 0.35, 0.15 and 0.2.
  local function attack(eps) return ms.armour.attacks.FastGradientSignMethod(net, { eps = eps }) end
  local curve = E.attacked_curve(net, attack, inputs, labels, { eps = { 0, 0.1, 0.18, 0.3, 0.5 }, batch_size = 3, label = "signs" })
  t.equal(curve.accuracy, { 1.0, 1.0, 0.75, 0.5, 0.25 })
  t.near(curve:area(), (0.1 * 1 + 0.08 * 0.875 + 0.12 * 0.625 + 0.2 * 0.375) / 0.5, 1e-12)
  local svg = curve:plot({ E.RobustnessCurve({ 0, 0.5 }, { 1, 0 }) }):svg()
  for _, text in ipairs { "signs", "curve 2", "eps", "accuracy" } do t.equal(svg:find(">" .. text .. "<", 1, true) ~= nil, true) end
  local wrong = E.attacked_curve(net, attack, inputs, 1 - labels, { eps = { 0, 0.1 } })
  t.equal(wrong.accuracy, { 0.0, 0.0 })
end)

t.test("a curve is the certified accuracy over radii", function()
  local classes, radii = ms.tensor({ 0, 0, -1, 1 }, ms.int32), ms.tensor({ 0.6, 0.3, 0.0, 0.2 }, ms.float64)
  t.equal(E.certified_curve(labels, classes, radii, { at = { 0, 0.2, 0.25, 0.6, 0.7 } }).accuracy, { 0.75, 0.75, 0.5, 0.25, 0.0 })
  local whole = E.certified_curve(labels, classes, radii)
  t.equal({ #whole.at, whole.accuracy[1], whole.accuracy[21] }, { 21, 0.75, 0.25 })
end)

t.test("what is wrong is said", function()
  t.fails({ "there are 3 names and 2 values" }, ms.plot.radar, { 0.5, 1 }, { names = { "a", "b", "c" } })
  t.fails({ "values must lie from 0 to 1, got 2" }, ms.plot.radar, { 0.5, 1, 2 }, { names = { "a", "b", "c" } })
  t.fails({ "at least 3 names" }, ms.plot.radar, { 0.5, 1 }, { names = { "a", "b" } })
  t.fails({ "names is missing" }, ms.plot.radar, { 0.5, 1, 1 })
  t.fails({ "a radar has no axes" }, function() ms.plot.line({ 1, 2 }):radar({ 0, 1, 1 }, { names = { "a", "b", "c" } }):svg() end)
  t.fails({ "2 curves in metrics_data and 1 labels" }, E.RadarMetric, { "a", "b", "c" }, { { 0, 0, 0 }, { 1, 1, 1 } }, { "x" })
  t.fails({ "scale must be one of" }, E.RadarMetric, { "a", "b", "c" }, { { 0, 0, 0 } }, { "x" }, "", "log")
  t.fails({ "at must grow, but has 0 after 1" }, E.RobustnessCurve, { 1, 0 }, { 1, 1 })
  t.fails({ "accuracy[2] must be a probability" }, E.RobustnessCurve, { 0, 1 }, { 1, 2 })
  t.fails({ "must give an attack" }, E.attacked_curve, net, function() return 3 end, inputs, labels)
end)

t.finish()
