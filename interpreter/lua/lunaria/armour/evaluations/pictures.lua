-- Pictures of robustness: radars of figures, and curves of accuracy over the strength of attacks or the radius of certificates.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

-- The rings of each scale.
local scales = { hide = {}, sparse = { 0.5 }, norm = { 0.2, 0.4, 0.6, 0.8 }, dense = { 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9 } }

local Radar = class.define(nil, "RadarMetric", "metrics_name, metrics_data, labels, title=\"\", scale=\"hide\"",
  [[A radar of several figures, for several models or attacks.

metrics_name: a list of at least 3 names. metrics_data: a list of lists, or a tensor (curves, figures), of values from 0 to 1. labels: a
list of names, one for each curve. title: of the picture. scale: which rings have numbers: "hide" (none), "sparse", "norm" or "dense".

  > radar = ms.armour.evaluations.RadarMetric({ "MR", "ACAC", "ASS" }, { { 0.9, 0.8, 0.6 }, { 0.5, 0.3, 0.5 } }, { "before", "after" })
  > radar:plot():svg():match(">before</text>") --> >before</text>]])
M.RadarMetric = Radar

local function list_of(where, name, value)
  if ms.is_tensor(value) then value = value:tolist() end
  if type(value) ~= "table" or #value == 0 then fail(where, ("%s must be a list, got %s"):format(name, describe(value))) end
  return value
end

function Radar:setup(a)
  local where = "RadarMetric"
  self._names = list_of(where, "metrics_name", a.metrics_name)
  self._rows = list_of(where, "metrics_data", a.metrics_data)
  self._labels = list_of(where, "labels", a.labels)
  if #self._rows ~= #self._labels then
    fail(where, ("there are %d curves in metrics_data and %d labels"):format(#self._rows, #self._labels))
  end
  if type(a.title) ~= "string" then fail(where, "title must be a string, got " .. describe(a.title)) end
  self._title = a.title ~= "" and a.title or nil
  self._rings = scales[check.choice(where, "scale", a.scale, { "hide", "norm", "sparse", "dense" })]
  self:plot()
end

--- The picture, as those of ms.plot are: shown in terminal and notebook, and saved by p:save("radar.svg").
---     > radar = ms.armour.evaluations.RadarMetric({ "a", "b", "c" }, { { 0.5, 1, 0.25 } }, { "one" }, "title", "dense")
---     > #radar:plot():vega().layer --> 3
function Radar:plot()
  local rings = #self._rings > 0 and self._rings or nil
  local plot
  for i, row in ipairs(self._rows) do
    local options = { names = self._names, label = tostring(self._labels[i]), rings = rings, title = self._title }
    if ms.is_tensor(row) then row = row:tolist() end
    plot = plot and plot:radar(row, options) or ms.plot.radar(row, options)
  end
  return plot
end

--- Shows the picture, and gives it.
---     > radar = ms.armour.evaluations.RadarMetric({ "a", "b", "c" }, { { 0.5, 1, 0.25 } }, { "one" })
---     > type(radar.show) --> function
function Radar:show()
  local plot = self:plot()
  ms.display(plot)
  return plot
end

local Curve = class.define(nil, "RobustnessCurve", "at, accuracy, label=nil, x_label=nil",
  [[Accuracy over the strength of attacks or the radius of certificates; attacked_curve and certified_curve measure it.

at: a list of strengths, growing and not negative. accuracy: a list of as many shares. label: the name of the curve. x_label: what at is.

  > ms.armour.evaluations.RobustnessCurve({ 0, 0.1 }, { 0.75, 0.5 }):plot():vega().layer[1].data.values[2].y --> 0.5]])
M.RobustnessCurve = Curve

local function strengths(where, name, value)
  local list = list_of(where, name, value)
  for i, x in ipairs(list) do
    check.number_not_negative(where, ("%s[%d]"):format(name, i), x)
    if i > 1 and x <= list[i - 1] then fail(where, ("%s must grow, but has %g after %g"):format(name, x, list[i - 1])) end
  end
  return list
end

function Curve:setup(a)
  local where = "RobustnessCurve"
  self.at, self.accuracy = strengths(where, "at", a.at), list_of(where, "accuracy", a.accuracy)
  if #self.at ~= #self.accuracy then fail(where, ("there are %d strengths and %d accuracies"):format(#self.at, #self.accuracy)) end
  for i, share in ipairs(self.accuracy) do check.probability(where, ("accuracy[%d]"):format(i), share) end
  for _, name in ipairs { "label", "x_label" } do
    if a[name] ~= nil and type(a[name]) ~= "string" then fail(where, ("%s must be a string, got %s"):format(name, describe(a[name]))) end
  end
  self.label, self.x_label = a.label, a.x_label
end

--- The area under the curve over its width: the mean accuracy over all strengths.
---     > ms.armour.evaluations.RobustnessCurve({ 0, 1, 2 }, { 1, 0.5, 0 }):area() --> 0.5
function Curve:area()
  local n, sum = #self.at, 0.0
  if n == 1 then return self.accuracy[1] + 0.0 end
  for i = 2, n do sum = sum + (self.at[i] - self.at[i - 1]) * (self.accuracy[i] + self.accuracy[i - 1]) / 2 end
  return sum / (self.at[n] - self.at[1])
end

--- The curve as a picture, as those of ms.plot are. others: a list of further curves in it.
---     > one, two = ms.armour.evaluations.RobustnessCurve({ 0, 1 }, { 1, 0 }), ms.armour.evaluations.RobustnessCurve({ 0, 1 }, { 1, 0.5 })
---     > #one:plot({ two }):vega().layer --> 2
function Curve:plot(others)
  local plot
  others = arguments.named("plot", { "others" }, others)
  local curves = { self, table.unpack(others or {}) }
  for i, curve in ipairs(curves) do
    if not class.is_a(curve, Curve) then fail("plot", ("curve %d must be a RobustnessCurve, got %s"):format(i, describe(curve))) end
    local label = curve.label or #curves > 1 and ("curve %d"):format(i) or nil
    local options = { label = label, points = true, y_domain = { 0, 1 }, x_label = self.x_label, y_label = "accuracy" }
    plot = plot and plot:line(curve.at, curve.accuracy, options) or ms.plot.line(curve.at, curve.accuracy, options)
  end
  return plot
end

--- The accuracy under an attack of growing strength: a RobustnessCurve. network: a cell or a function that gives logits (N, classes).
--- attack: a function from a strength eps to an attack on the network. inputs, labels: samples (N, ...) and class numbers (N,) or
--- one-hot. Options: eps={ 0, 0.05, 0.1, 0.2, 0.3 } (0 is without an attack), batch_size=64, label. A sample counts where the answer is
--- right with and without the attack.
---     > net = ms.nn.Dense(4, 3)
---     > function attack(eps) return ms.armour.attacks.FastGradientSignMethod(net, { eps = eps }) end
---     > curve = ms.armour.evaluations.attacked_curve(net, attack, ms.rand { 6, 4 }, ms.zeros({ 6 }, ms.int32), { eps = { 0, 0.5 } })
---     > curve.accuracy[2] <= curve.accuracy[1] --> true
function M.attacked_curve(network, attack, inputs, labels, options)
  local where = "attacked_curve"
  options = arguments.options(where, options, { eps = "table", batch_size = arguments.positive, label = "string" }, "{ eps = { 0, 0.1 } }")
  local model = common.classifier(where, network)
  if not arguments.is_callable(attack) then fail(where, "attack must be a function from eps to an attack, got " .. describe(attack)) end
  common.images(where, inputs)
  labels = common.labels(where, labels, inputs.shape[1], model:classes(inputs))
  local eps, size, shares = strengths(where, "eps", options.eps or { 0, 0.05, 0.1, 0.2, 0.3 }), options.batch_size or 64, {}
  local function right(x, y) return ops.equal(model:predicted(x), y):astype(ms.float64) end
  local clean = common.in_batches(right, inputs, labels, size)
  for i, strength in ipairs(eps) do
    local kept = clean
    if strength > 0 then
      local made = attack(strength)
      if type(made) ~= "table" or type(made.generate) ~= "function" then
        fail(where, ("attack(%g) must give an attack, got %s"):format(strength, describe(made)))
      end
      kept = clean * common.in_batches(function(x, y)
        local first, second = made:generate(x, y)
        return right(second ~= nil and second or first, y)
      end, inputs, labels, size)
    end
    shares[i] = ops.mean(kept):item()
  end
  return Curve { at = eps, accuracy = shares, label = options.label, x_label = "eps" }
end

--- The certified accuracy over radii: a RobustnessCurve. labels: class numbers (N,) or one-hot. classes, radii: what
--- SmoothedClassifier:certify gave, (N,). Options: at (a list of radii; without it 21 from 0 to the largest), label. A sample counts
--- where its class is right and its radius is no smaller.
---     > labels, classes, radii = ms.tensor({ 0, 1 }, ms.int32), ms.tensor({ 0, 1 }, ms.int32), ms.tensor { 0.5, 1.0 }
---     > ms.armour.evaluations.certified_curve(labels, classes, radii, { at = { 0, 0.75 } }).accuracy[2] --> 0.5
function M.certified_curve(labels, classes, radii, options)
  local where = "certified_curve"
  options = arguments.options(where, options, { at = "table", label = "string" }, "{ at = { 0, 0.5 } }")
  if not ms.is_tensor(radii) or radii.ndim ~= 1 or radii.size == 0 then
    fail(where, "radii must be a tensor (N,), got " .. describe(radii))
  end
  local n = radii.shape[1]
  labels = common.labels(where, labels, n)
  if not ms.is_tensor(classes) or classes.ndim ~= 1 or classes.shape[1] ~= n then
    fail(where, ("classes must be a tensor of %d class numbers, got %s"):format(n, describe(classes)))
  end
  local at, shares = options.at, {}
  if at == nil then
    at = {}
    local most = ops.max(radii):item()
    for i = 0, 20 do at[i + 1] = (most > 0 and most or 1) * i / 20 end
  end
  strengths(where, "at", at)
  local is_right = ops.equal(classes:astype(ms.int32), labels):astype(ms.float64)
  for i, radius in ipairs(at) do
    shares[i] = ops.mean(is_right * ops.greater_equal(radii:astype(ms.float64), radius):astype(ms.float64)):item()
  end
  return Curve { at = at, accuracy = shares, label = options.label, x_label = "radius" }
end

return M
