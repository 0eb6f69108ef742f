-- Scores of saliency methods: Faithfulness, Localization, Robustness, ClassSensitivity. A score is from 0 to 1, the higher the better.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.explain.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- What the scores of several samples have in common: means by label and in all.
local Metric = class.Object:extend("Metric")

local function begin(self, name, a)
  if a.num_labels ~= nil then self.num_labels = check.positive(name, "num_labels", a.num_labels) end
  if a.activation_fn ~= nil and not arguments.is_callable(a.activation_fn) then
    fail(name, "activation_fn must be a cell, got " .. describe(a.activation_fn))
  end
  self.activation_fn = a.activation_fn
  self:reset()
end

--- Forgets what aggregate was given.
---     > score = ms.explain.ClassSensitivity()
---     > score:reset()
---     > score.count --> 0
function Metric:reset() self.sums, self.counts, self.sum, self.count = {}, {}, 0.0, 0 end

--- Adds a result of evaluate. targets: the label of each sample, which ClassSensitivity has not.
---     > score = ms.explain.ClassSensitivity()
---     > score:aggregate(ms.tensor { 0.25, 0.75 })
---     > score:performance() --> 0.5
function Metric:aggregate(result, targets)
  result, targets = arguments.named("aggregate", { "result", "targets" }, result, targets)
  if not ms.is_tensor(result) or result.ndim ~= 1 then fail("aggregate", "result must be what evaluate gave, got " .. describe(result)) end
  local list = result:tolist()
  local labels = self.num_labels and common.targets("aggregate", targets, #list):reshape({ -1 }):tolist()
  for i, value in ipairs(list) do
    -- A score that does not exist, as of an empty map, says nothing.
    if value == value then
      self.sum, self.count = self.sum + value, self.count + 1
      if labels then
        local label = labels[i]
        if label >= self.num_labels then fail("aggregate", ("the label %d is not below num_labels, %d"):format(label, self.num_labels)) end
        self.sums[label], self.counts[label] = (self.sums[label] or 0.0) + value, (self.counts[label] or 0) + 1
      end
    end
  end
end

--- The mean of all results; 0 without any.
---     > ms.explain.ClassSensitivity():performance() --> 0.0
function Metric:performance() return self.count > 0 and self.sum / self.count or 0.0 end

--- The mean of the results of each label, a list from label 0 on; 0 without any.
---     > score = ms.explain.Localization(2)
---     > score:aggregate(ms.tensor { 1.0 }, 1)
---     > table.concat(score:class_performances(), " ") --> 0.0 1.0
function Metric:class_performances()
  local list = {}
  for label = 0, (self.num_labels or 0) - 1 do list[label + 1] = self.counts[label] and self.sums[label] / self.counts[label] or 0.0 end
  return list
end

-- Inputs, targets and a map for each, checked; the map is the explainer's where none is given.
local function given(where, explainer, inputs, targets, saliency)
  if not class.is_a(explainer, common.Attribution) then
    fail(where, "explainer must be one of ms.explain, got " .. describe(explainer))
  end
  inputs = common.inputs(where, inputs)
  targets = common.targets(where, targets, inputs.shape[1])
  if targets.shape[2] ~= 1 then fail(where, "targets must be one class for each input") end
  if saliency == nil then saliency = explainer(inputs, targets) end
  local shape = ms.is_tensor(saliency) and saliency.ndim == 4 and saliency.shape
  if not shape or shape[1] ~= inputs.shape[1] or shape[2] ~= 1 or shape[3] ~= inputs.shape[3] or shape[4] ~= inputs.shape[4] then
    fail(where, ("saliency must be a tensor (%d, 1, %d, %d), got %s"):format(inputs.shape[1], inputs.shape[3], inputs.shape[4],
      describe(saliency)))
  end
  return inputs, targets, saliency
end

local evaluate_names = { "explainer", "inputs", "targets", "saliency", "mask" }

local Faithfulness = class.define(Metric, "Faithfulness", "num_labels, activation_fn, metric=\"NaiveFaithfulness\", "
  .. "perturb_percent=0.5, num_perturbations=100, base_value=0.0",
  [[Whether the network's answer changes where the map says that it rests. num_labels: how many classes. activation_fn: what makes
probabilities of the network's logits. metric: "NaiveFaithfulness": pixels are replaced in groups, from those of the largest saliency to
those of the least, each group by itself: the correlation of its mean saliency and the fall of the probability, brought to 0 to 1;
"DeletionAUC": the groups are replaced one after the other and stay so: the area under the curve of the fall; "InsertionAUC": the groups
are put into a picture of base_value: the area under the curve of the rise. perturb_percent: the share of pixels that are replaced.
num_perturbations: in how many groups, at most one for each pixel. base_value: what replaces a pixel.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > score = ms.explain.Faithfulness(3, ms.nn.Softmax(), "DeletionAUC")
  > score:evaluate(ms.explain.Gradient(net), ms.ones { 1, 1, 4, 4 }, 1).shape --> (1,)]])

function Faithfulness:setup(a)
  begin(self, "Faithfulness", a)
  if a.activation_fn == nil then fail("Faithfulness", "activation_fn is missing", "nn.Softmax()") end
  self.metric = check.choice("Faithfulness", "metric", a.metric, { "NaiveFaithfulness", "DeletionAUC", "InsertionAUC" })
  self.perturb_percent = check.probability("Faithfulness", "perturb_percent", a.perturb_percent)
  self.num_perturbations = check.positive("Faithfulness", "num_perturbations", a.num_perturbations)
  self.base_value = check.number("Faithfulness", "base_value", a.base_value)
end

-- The pixels by falling saliency in groups of equal size: for each group a list of places. Ties are in the order of the places.
local function groups_of(self, saliency)
  local values, order = saliency:reshape({ -1 }):tolist(), {}
  for i = 1, #values do order[i] = i end
  table.sort(order, function(i, j)
    if values[i] ~= values[j] then return values[i] > values[j] end
    return i < j
  end)
  local pixels = math.max(1, math.floor(#values * self.perturb_percent + 0.5))
  local count = math.min(self.num_perturbations, pixels)
  local groups = {}
  for g = 1, count do
    groups[g] = {}
    for k = (g - 1) * pixels // count + 1, g * pixels // count do table.insert(groups[g], order[k]) end
  end
  return groups, values
end

-- For each group a mask (H, W) of 1 where a pixel is replaced; is_growing: with those of the groups before.
local function masks_of(groups, height, width, is_growing)
  local rows, row = {}, nil
  for g, group in ipairs(groups) do
    if not row or not is_growing then
      row = {}
      for i = 1, height * width do row[i] = 0.0 end
    end
    for _, place in ipairs(group) do row[place] = 1.0 end
    rows[g] = table.move(row, 1, #row, 1, {})
  end
  return ms.tensor(rows, ms.float32):reshape { #groups, 1, height, width }
end

-- The area under a curve of points that are equally far from each other, over a width of 1.
local function area(first, list)
  local sum, before = 0.0, first
  for _, value in ipairs(list) do sum, before = sum + (before + value) / 2, value end
  return sum / #list
end

--- The score of one sample: a tensor (1,). explainer: one of ms.explain. inputs: (1, C, H, W). targets: the class. saliency: a map
--- (1, 1, H, W) to be scored; without it the explainer's.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
---     > score = ms.explain.Faithfulness(3, ms.nn.Softmax())
---     > score:evaluate(ms.explain.Gradient(net), ms.ones { 1, 1, 4, 4 }, 1).shape --> (1,)
function Faithfulness:evaluate(...)
  local explainer, inputs, targets, saliency = arguments.named("evaluate", evaluate_names, ...)
  inputs, targets, saliency = given("evaluate", explainer, inputs, targets, saliency)
  if inputs.shape[1] ~= 1 then fail("evaluate", ("inputs must be one sample, got %d"):format(inputs.shape[1])) end
  local target = targets[{ 0, 0 }]:item()
  local ask = common.activated(explainer.network, self.activation_fn)
  local function probability(x)
    return common.predicting(explainer.network, function()
      local y = common.answers("evaluate", ask, x, 32)
      if target >= y.shape[2] then fail("evaluate", ("the network has %d classes, and the target is %d"):format(y.shape[2], target)) end
      return y[{ ms.slice(), target }]:tolist()
    end)
  end
  local groups, values = groups_of(self, saliency)
  local is_naive, is_insertion = self.metric == "NaiveFaithfulness", self.metric == "InsertionAUC"
  local masks = masks_of(groups, inputs.shape[3], inputs.shape[4], not is_naive):astype(inputs.dtype)
  local base = ops.full_like(inputs, self.base_value)
  local changed = is_insertion and base * (1 - masks) + inputs * masks or inputs * (1 - masks) + base * masks
  local found = probability(changed)
  local result
  if is_naive then
    local importance, falls = {}, {}
    for g, group in ipairs(groups) do
      local sum = 0.0
      for _, place in ipairs(group) do sum = sum + values[place] end
      importance[g], falls[g] = sum / #group, -found[g]
    end
    result = (common.correlation(ms.tensor(importance, ms.float64), ms.tensor(falls, ms.float64)) + 1) / 2
  else
    local first, changes = probability(is_insertion and base or inputs)[1], {}
    for g, value in ipairs(found) do changes[g] = is_insertion and value - first or first - value end
    result = area(0.0, changes)
  end
  return ms.tensor({ result }, ms.float64)
end

local Localization = class.define(Metric, "Localization", "num_labels, metric=\"PointingGame\", tolerance=15, threshold=0.5",
  [[Whether a map points at what is in the picture. num_labels: how many classes. metric: "PointingGame": 1 where the largest value lies
less than tolerance pixels from the object, else 0; "IoSR": the share of the pixels above threshold times the largest value that lie in the
object.

  > mask = ms.zeros { 1, 1, 4, 4 }
  > mask[{ 0, 0, 1, 1 }] = 1
  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > score = ms.explain.Localization(3, "IoSR")
  > score:evaluate(ms.explain.Gradient(net), ms.ones { 1, 1, 4, 4 }, 1, mask, mask):item() --> 1.0]])

function Localization:setup(a)
  begin(self, "Localization", a)
  self.metric = check.choice("Localization", "metric", a.metric, { "PointingGame", "IoSR" })
  self.tolerance = check.number_positive("Localization", "tolerance", a.tolerance)
  self.threshold = check.number("Localization", "threshold", a.threshold)
end

--- The score of one sample: a tensor (1,). explainer, inputs, targets, saliency as for Faithfulness. mask: a tensor (1, 1, H, W), not 0
--- where the object is.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
---     > x = ms.ones { 1, 1, 4, 4 }
---     > ms.explain.Localization(3):evaluate(ms.explain.Gradient(net), x, 1, { mask = x }):item() --> 1.0
function Localization:evaluate(...)
  local explainer, inputs, targets, saliency, mask = arguments.named("evaluate", evaluate_names, ...)
  local map
  inputs, targets, map = given("evaluate", explainer, inputs, targets, saliency) -- luacheck: ignore 311
  local height, width = inputs.shape[3], inputs.shape[4]
  if inputs.shape[1] ~= 1 then fail("evaluate", ("inputs must be one sample, got %d"):format(inputs.shape[1])) end
  if not ms.is_tensor(mask) or mask.size ~= height * width then
    fail("evaluate", ("mask must be a tensor (1, 1, %d, %d), got %s"):format(height, width, describe(mask)))
  end
  local inside = ops.not_equal(mask:reshape { height, width }, 0)
  map = map:reshape { height, width }
  local result
  if self.metric == "PointingGame" then
    local place = ops.argmax(map:reshape { -1 }):item()
    local y, x = place // width, place % width
    local down = ops.square(ms.arange(height):astype(ms.float32) - y):reshape { height, 1 }
    local across = ops.square(ms.arange(width):astype(ms.float32) - x):reshape { 1, width }
    local near = ops.less(down + across, self.tolerance ^ 2)
    result = ops.any(ops.logical_and(near, inside)):item() and 1.0 or 0.0
  else
    local salient = ops.greater(map, ops.max(map):item() * self.threshold)
    local size = ops.sum(salient:astype(ms.float32)):item()
    result = size > 0 and ops.sum(ops.logical_and(salient, inside):astype(ms.float32)):item() / size or 0.0
  end
  return ms.tensor({ result }, ms.float64)
end

local Robustness = class.define(Metric, "Robustness", "num_labels, activation_fn, num_perturbations=10, threshold=0.1, radius=0.2",
  [[How little a map changes with noise that hardly changes the answer: exp(-d), where d is the largest change of the map, as a share of its
length, among num_perturbations pictures with uniform noise of up to radius. Noise that changes the probabilities by more than threshold
(as a length) is drawn again, up to three times. num_labels: how many classes. activation_fn: what makes probabilities of logits.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > ms.explain.Robustness(3, ms.nn.Softmax()):evaluate(ms.explain.Gradient(net), ms.ones { 1, 1, 4, 4 }, 1):item() --> 1.0]])

function Robustness:setup(a)
  begin(self, "Robustness", a)
  if a.activation_fn == nil then fail("Robustness", "activation_fn is missing", "nn.Softmax()") end
  self.num_perturbations = check.positive("Robustness", "num_perturbations", a.num_perturbations)
  self.threshold = check.number_positive("Robustness", "threshold", a.threshold)
  self.radius = check.number_positive("Robustness", "radius", a.radius)
end

-- How often noise is drawn until the answer is as before.
local attempts = 3

--- The score of one sample: a tensor (1,); NaN where the map is zero. explainer, inputs, targets, saliency as for Faithfulness.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
---     > score = ms.explain.Robustness(3, ms.nn.Softmax(), { num_perturbations = 2 })
---     > score:evaluate(ms.explain.Gradient(net), ms.ones { 1, 1, 4, 4 }, 1):item() --> 1.0
function Robustness:evaluate(...)
  local explainer, inputs, targets, saliency = arguments.named("evaluate", evaluate_names, ...)
  inputs, targets, saliency = given("evaluate", explainer, inputs, targets, saliency)
  if inputs.shape[1] ~= 1 then fail("evaluate", ("inputs must be one sample, got %d"):format(inputs.shape[1])) end
  local length = ops.norm(saliency):item()
  local ask = common.activated(explainer.network, self.activation_fn)
  local function answer(x) return common.predicting(explainer.network, ask, x) end
  local own, most = answer(inputs), 0.0
  for _ = 1, self.num_perturbations do
    local noisy
    for _ = 1, attempts do
      noisy = inputs + (ms.rand(inputs.shape):astype(inputs.dtype) * 2 - 1) * self.radius
      if ops.norm(answer(noisy) - own):item() <= self.threshold then break end
    end
    most = math.max(most, ops.norm(explainer(noisy, targets) - saliency):item())
  end
  return ms.tensor({ length > 0 and math.exp(-most / length) or 0 / 0 }, ms.float64)
end

local ClassSensitivity = class.define(Metric, "ClassSensitivity", "",
  [[Whether maps differ between classes: (1 - c) / 2, where c is the correlation of the maps of the most and the least likely class.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > ms.explain.ClassSensitivity():evaluate(ms.explain.Gradient(net), ms.ones { 2, 1, 4, 4 }).shape --> (2,)]])
function ClassSensitivity:setup(a) begin(self, "ClassSensitivity", a) end

--- The score of each sample: a tensor (N,). explainer: one of ms.explain. inputs: (N, C, H, W).
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 2))
---     > ms.explain.ClassSensitivity():evaluate(ms.explain.Gradient(net), ms.ones { 1, 1, 4, 4 }).shape --> (1,)
function ClassSensitivity:evaluate(...)
  local explainer, inputs = arguments.named("evaluate", { "explainer", "inputs" }, ...)
  inputs = given("evaluate", explainer, inputs, 0, inputs ~= nil and ms.is_tensor(inputs) and inputs.ndim == 4
    and ms.zeros { inputs.shape[1], 1, inputs.shape[3], inputs.shape[4] } or nil)
  local y = common.predicting(explainer.network, common.outputs, "evaluate", explainer.network, inputs)
  local likely = explainer(inputs, ops.argmax(y, 1):reshape { -1, 1 })
  local unlikely = explainer(inputs, ops.argmin(y, 1):reshape { -1, 1 })
  local list = {}
  for n = 0, inputs.shape[1] - 1 do list[n + 1] = (1 - common.correlation(likely[n], unlikely[n])) / 2 end
  return ms.tensor(list, ms.float64)
end

return { Faithfulness = Faithfulness, Localization = Localization, Robustness = Robustness, ClassSensitivity = ClassSensitivity }
