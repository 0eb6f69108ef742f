-- Metrics of segmentations: how far the surface of a region lies from that of another. A surface are the points of a region
-- that have a neighbour along some axis outside of it; beyond the picture nothing is inside.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.train.metric"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local define, pair_of, seen = base.define, base.pair_of, base.seen

local metrics = {}

-- The exponents of the norms.
local norms = { euclidean = 2.0, taxicab = 1.0, chessboard = math.huge }

local function set_distance(self, a, name)
  self.distance_metric = check.choice(name, "distance_metric", a.distance_metric, { "euclidean", "chessboard", "taxicab" })
end

-- The coordinates of the surface of a mask: float64 (points, axes).
local function surface(mask)
  local inside = mask
  for axis = 0, mask.ndim - 1 do
    local size, sizes = mask.shape[axis + 1], {}
    for i = 1, mask.ndim do sizes[i] = i == axis + 1 and 1 or mask.shape[i] end
    local outside = ops.zeros(sizes, ms.bool_)
    local before = ops.concat({ outside, ops.narrow(mask, axis, 0, size - 1) }, axis)
    local behind = ops.concat({ ops.narrow(mask, axis, 1, size - 1), outside }, axis)
    inside = ops.logical_and(inside, ops.logical_and(before, behind))
  end
  return ops.nonzero(ops.logical_and(mask, ops.logical_not(inside))):astype(ms.float64)
end

-- So many rows of a table of distances at once.
local block = 1024

-- How far each point of one surface is from the nearest of the other: nil where the first has no point.
local function distances(self, from, to)
  local count = from.shape[1]
  if count == 0 then return nil end
  if to.shape[1] == 0 then return ops.full({ count }, math.huge, ms.float64) end
  local parts = {}
  for first = 0, count - 1, block do
    local rows = ops.narrow(from, 0, first, math.min(block, count - first))
    parts[#parts + 1] = ops.amin(ops.cdist(rows, to, norms[self.distance_metric]), 1)
  end
  return ops.concat(parts, 0)
end

local methods = {}
function methods.clear(self) self.predicted, self.actual = nil, nil end
function methods.update(self, ...)
  local name = getmetatable(self)._name
  if select("#", ...) ~= 3 then
    fail(name, ("update takes 3 inputs, got %d"):format(select("#", ...)),
      "they are the predictions, the labels and which label is looked at: metric:update(outputs, labels, 1)")
  end
  local outputs, labels, label = ...
  outputs, labels = pair_of(name, 2, outputs, labels)
  base.same_shape(name, outputs, labels)
  if outputs.ndim == 0 or outputs.size == 0 then
    fail(name, "y_pred and y must be pictures with elements, got " .. describe(outputs))
  end
  label = check.number(name, "label_idx", label)
  local predicted, actual = ops.equal(outputs, label), ops.equal(labels, label)
  if not ops.any(ops.logical_or(predicted, actual)):item() then
    fail(name, ("label_idx is %s, which is neither in y_pred nor in y"):format(tostring(label)))
  end
  self.predicted, self.actual = surface(predicted), surface(actual)
end

-- The distances there, and back where they are wanted: a list.
local function both(self, back)
  local name = getmetatable(self)._name
  seen(name, self.predicted and 1 or 0)
  local list = { distances(self, self.predicted, self.actual) or false }
  if back then list[2] = distances(self, self.actual, self.predicted) or false end
  return list
end

-- A metric by what it makes of the distances of the last update.
local function surface_metric(name, parameters, doc, setup, eval)
  return define(name, parameters, doc, setup, { clear = methods.clear, update = methods.update, eval = eval })
end

metrics.HausdorffDistance = surface_metric("HausdorffDistance", "distance_metric=\"euclidean\", percentile=nil, directed=false, crop=true",
  [[The distance of the point of one surface that is farthest from the other one.

update(y_pred, y, label_idx): pictures of class numbers of any number of axes, and which class is looked at; the last update counts.
distance_metric: "euclidean", "chessboard" or "taxicab". percentile: instead of the farthest point the one that so many per cent
are nearer than. directed: only from y_pred to y. crop: nothing depends on it. Infinite where only one picture has the class.

  > local metric = ms.train.HausdorffDistance()
  > metric:update(ms.tensor { { 1, 1, 0, 0 } }, ms.tensor { { 1, 1, 0, 1 } }, 1)
  > metric:eval()
  2.0]],
  function(self, a, name)
    set_distance(self, a, name)
    if a.percentile ~= nil then
      self.percentile = check.number_not_negative(name, "percentile", a.percentile)
      if self.percentile > 100 then fail(name, "percentile must be at most 100, got " .. describe(a.percentile)) end
    end
    self.directed = check.boolean(name, "directed", a.directed)
    check.boolean(name, "crop", a.crop)
  end,
  function(self)
    local most = 0.0
    for _, list in ipairs(both(self, not self.directed)) do
      if not list then return math.huge end
      local percentile = self.percentile
      local far = percentile and percentile > 0 and ops.quantile(list, percentile / 100) or ops.amax(list)
      most = math.max(most, far:item())
    end
    return most
  end)

-- The mean of a function of the distances, in one direction or that of the means of both.
local function mean_of(self, f)
  local sum, list = 0.0, both(self, self.symmetric)
  for _, each in ipairs(list) do
    if not each then return math.huge end
    sum = sum + ops.mean(f(each)):item()
  end
  return sum / #list
end

local function symmetric_setup(self, a, name)
  set_distance(self, a, name)
  self.symmetric = check.boolean(name, "symmetric", a.symmetric)
end

metrics.MeanSurfaceDistance = surface_metric("MeanSurfaceDistance", "symmetric=false, distance_metric=\"euclidean\"",
  [[The mean distance of the points of one surface from the other one.

update(y_pred, y, label_idx): pictures of class numbers of any number of axes, and which class is looked at; the last update counts.
symmetric: the mean of both directions, instead of only from y_pred to y. distance_metric: "euclidean", "chessboard" or "taxicab".

  > local metric = ms.train.MeanSurfaceDistance()
  > metric:update(ms.tensor { { 1, 1, 0, 1 } }, ms.tensor { { 1, 0, 0, 0 } }, 1)
  > metric:eval()
  1.3333333333333]],
  symmetric_setup, function(self) return mean_of(self, function(x) return x end) end)

metrics.RootMeanSquareDistance = surface_metric("RootMeanSquareDistance", "symmetric=false, distance_metric=\"euclidean\"",
  [[The mean of the squares of the distances of the points of one surface from the other one; of both directions, the root of it, as
MindSpore has it.

update(y_pred, y, label_idx): pictures of class numbers of any number of axes, and which class is looked at; the last update counts.
symmetric: both directions, instead of only from y_pred to y. distance_metric: "euclidean", "chessboard" or "taxicab".

  > local metric = ms.train.RootMeanSquareDistance()
  > metric:update(ms.tensor { { 1, 1, 0, 1 } }, ms.tensor { { 1, 0, 0, 0 } }, 1)
  > metric:eval()
  3.3333333333333]],
  symmetric_setup, function(self)
    local mean = mean_of(self, function(x) return x * x end)
    return self.symmetric and math.sqrt(mean) or mean
  end)

return metrics
