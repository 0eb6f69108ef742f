-- RegionBasedDetector (Cao and Gong, 2017): asks for the class of most points around a sample. All samples get the same noise, drawn once
-- by the seed, so that a verdict does not depend on what else was asked.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local Detector = require "lunaria.armour.detectors.detector".Detector

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local Region = class.define(Detector, "RegionBasedDetector",
  "model, number_points=10, initial_radius=0.0, max_radius=1.0, search_step=0.01, "
  .. "degrade_limit=0.0, bounds=nil, seed=0",
  [[Takes samples for adversarial whose class is not that of most points around them (Cao and Gong, 2017).

model: a cell or a function that gives logits (N, classes). number_points: how many points around each sample are asked for.
initial_radius, max_radius, search_step: the radii of the cube around a sample that fit tries, not negative. degrade_limit: how much
accuracy on clean samples may be lost, from 0 to 1. bounds: { lo, hi } that points are clipped to (nil: { 0, 1 }; false: none). seed: of
the points.

  > net = ms.nn.Dense(4, 3)
  > detector = ms.armour.detectors.RegionBasedDetector(net, { max_radius = 0.1, search_step = 0.05 })
  > x = ms.rand { 6, 4 }
  > radius = detector:fit(x, ms.ops.argmax(net(x), 1):astype(ms.int32))
  > detector:detect(x):tolist()[1] --> 0]])

-- What fit tries.
local most_radii = 1000000

function Region:setup(a)
  local name = "RegionBasedDetector"
  self._model = common.classifier(name, a.model)
  self._points = check.positive(name, "number_points", a.number_points)
  self._initial = check.number_not_negative(name, "initial_radius", a.initial_radius)
  self._most = check.number_positive(name, "max_radius", a.max_radius)
  self._step = check.number_positive(name, "search_step", a.search_step)
  self._limit = check.probability(name, "degrade_limit", a.degrade_limit)
  if self._initial > self._most then
    fail(name, ("initial_radius is %g and max_radius is %g: it must be the smaller one"):format(self._initial, self._most))
  end
  if (self._most - self._initial) / self._step > most_radii then
    fail(name, ("from initial_radius %g to max_radius %g in steps of %g are more than %d radii to try"):format(self._initial, self._most,
      self._step, most_radii))
  end
  self._lo, self._hi = common.bounds(name, a.bounds, { 0.0, 1.0 })
  self._seed = check.not_negative(name, "seed", a.seed)
end

-- The points around samples: (points, N, ...), the same noise for each sample.
function Region:_cube(inputs, radius)
  local shape = { self._points, 1 }
  for axis = 2, inputs.ndim do shape[axis + 1] = inputs.shape[axis] end
  local noise = common.generator(self._seed):uniform(shape, -1.0, 1.0, inputs.dtype)
  return common.clip(ops.expand_dims(inputs, 0) + noise * radius, self._lo, self._hi)
end

-- The class of most points around each sample, the first of equal ones, and the classes of the samples themselves.
function Region:_classes(inputs, radius)
  local cube, votes = self:_cube(inputs, radius), nil
  for i = 0, self._points - 1 do
    local logits = self._model:logits(cube[i])
    local own = common.one_hot(ops.argmax(logits, 1):astype(ms.int32), logits.shape[2])
    votes = votes and votes + own or own
  end
  return ops.argmax(votes, 1):astype(ms.int32)
end

--- Sets the radius: the largest one for which the class of most points is right for no fewer clean samples than degrade_limit allows;
--- gives it. inputs: clean samples (N, ...). labels: class numbers (N,) or one-hot. Where even the initial radius loses more it is an
--- error.
---     > net = ms.nn.Dense(4, 3)
---     > x = ms.rand { 6, 4 }
---     > detector = ms.armour.detectors.RegionBasedDetector(net, { max_radius = 0.1, search_step = 0.05 })
---     > detector:fit(x, ms.ops.argmax(net(x), 1):astype(ms.int32)) >= 0 --> true
function Region:fit(inputs, labels)
  local where = "fit"
  common.images(where, inputs, self._lo, self._hi)
  local own = self._model:logits(inputs)
  labels = common.labels(where, labels, inputs.shape[1], own.shape[2])
  local function accuracy(classes) return ops.mean(ops.equal(classes, labels):astype(ms.float64)):item() end
  local least = accuracy(ops.argmax(own, 1):astype(ms.int32)) - self._limit - 1e-12
  local found
  for i = 0, math.floor((self._most - self._initial) / self._step + 1e-9) do
    local radius = self._initial + i * self._step
    if accuracy(self:_classes(inputs, radius)) < least then break end
    found = radius
  end
  if not found then
    fail(where, ("already at the initial radius %g the points around samples are of other classes"):format(self._initial),
      "initial_radius = 0")
  end
  self.radius = found
  return found
end

--- Sets the radius. radius: from initial_radius to max_radius.
---     > ms.armour.detectors.RegionBasedDetector(ms.nn.Dense(4, 3)):set_radius(0.25)
function Region:set_radius(radius)
  radius = check.number_not_negative("set_radius", "radius", radius)
  if radius < self._initial or radius > self._most then
    fail("set_radius", ("radius must be from initial_radius, %g, to max_radius, %g, got %g"):format(self._initial, self._most, radius))
  end
  self.radius = radius
end

local function radius_of(self, where)
  return self.radius or fail(where, "there is no radius yet", "call fit with clean samples, or set_radius")
end

--- 1 for each sample whose class is not that of most points around it, else 0: (N,) of int32. inputs: samples (N, ...).
---     > detector = ms.armour.detectors.RegionBasedDetector(ms.nn.Dense(4, 3))
---     > detector:set_radius(0.0)
---     > detector:detect(ms.rand { 2, 4 }):tolist()[1] --> 0
function Region:detect(inputs)
  local own, around = self:detect_diff(inputs)
  return ops.not_equal(ops.argmax(own, 1):astype(ms.int32), around):astype(ms.int32)
end

--- The logits (N, classes) of the samples and the class of most points around each (N,). inputs: samples (N, ...).
---     > detector = ms.armour.detectors.RegionBasedDetector(ms.nn.Dense(4, 3))
---     > detector:set_radius(0.1)
---     > select(2, detector:detect_diff(ms.rand { 2, 4 })).shape --> (2,)
function Region:detect_diff(inputs)
  local radius = radius_of(self, "detect_diff")
  common.images("detect_diff", inputs, self._lo, self._hi)
  return self._model:logits(inputs), self:_classes(inputs, radius)
end

--- The points around each sample: (N, number_points, ...). inputs: samples (N, ...).
---     > detector = ms.armour.detectors.RegionBasedDetector(ms.nn.Dense(4, 3), { number_points = 5 })
---     > detector:set_radius(0.1)
---     > detector:transform(ms.rand { 2, 4 }).shape --> (2, 5, 4)
function Region:transform(inputs)
  local radius = radius_of(self, "transform")
  common.images("transform", inputs, self._lo, self._hi)
  return ops.swapaxes(self:_cube(inputs, radius), 0, 1)
end

return { RegionBasedDetector = Region }
