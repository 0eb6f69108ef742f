-- Detector: what verdicts on samples have in common. A mark of suspicion for each sample, and a threshold that a share of clean ones lies
-- above. A mark depends on its own sample alone: what else is in a batch changes nothing.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local Detector = class.Object:extend("Detector")
Detector._called = "detector"
Detector._parameters = ""
Detector._doc = [[What tells adversarial samples from clean ones. A class of your own extends it and has a method _marks(self, inputs),
which gives a number for each sample, the larger the more suspicious. It has rate, the share of clean samples that may lie above the
threshold (0.01 without it).

  > Bright = ms.armour.Detector:extend("Bright")
  > Bright._marks = function(self, x) return ms.ops.mean(x, 1) end
  > bright = Bright()
  > bright:fit(ms.tensor { { 0.25 }, { 0.5 } })
  > bright:detect(ms.tensor { { 0.25 }, { 0.75 } }):tolist()[2] --> 1]]
Detector.rate = 0.01

local function name_of(object) return getmetatable(object)._name end

--- Sets the threshold by clean samples, so that at most a share of rate of them lies above it; gives the threshold. inputs: clean samples
--- (N, ...). labels: their labels, which few detectors need.
---     > detector = ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU())
---     > detector:fit(ms.tensor { { -1.0, 1.0 }, { 0.0, 2.0 } }) --> 0.5
function Detector:fit(inputs, labels) -- luacheck: ignore 212
  common.images(name_of(self), inputs)
  local sorted, n = (ops.sort(self:_marks(inputs):astype(ms.float64), 0)), inputs.shape[1]
  self.threshold = sorted[n - 1 - math.min(n - 1, math.floor(n * self.rate + 1e-9))]:item()
  return self.threshold
end

--- The mark of each sample (N,), before the threshold. inputs: samples (N, ...).
---     > ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU()):detect_diff(ms.tensor { { -2.0, 1.0 } }):item() --> 2.0
function Detector:detect_diff(inputs)
  common.images(name_of(self), inputs)
  return self:_marks(inputs)
end

--- 1 for each sample whose mark lies above the threshold, else 0: (N,) of int32. inputs: samples (N, ...). Before fit or set_threshold it
--- is an error.
---     > detector = ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU())
---     > detector:set_threshold(0.5)
---     > detector:detect(ms.tensor { { -2.0, 1.0 }, { 2.0, 1.0 } }):tolist()[1] --> 1
function Detector:detect(inputs)
  if self.threshold == nil then fail("detect", "there is no threshold yet", "call fit with clean samples, or set_threshold") end
  return ops.greater(self:detect_diff(inputs):astype(ms.float64), self.threshold):astype(ms.int32)
end

--- Sets the threshold. threshold: not negative.
---     > ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU()):set_threshold(0.25)
function Detector:set_threshold(threshold)
  self.threshold = check.number_not_negative("set_threshold", "threshold", threshold)
end

--- The samples without what makes them suspicious, as far as the detector can: reconstructed, smoothed. Not all detectors have it.
---     > ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU()):transform(ms.tensor { { -2.0, 0.5 } }):tolist()[1][1] --> 0.0
function Detector:transform()
  return fail("transform", name_of(self) .. " does not change samples")
end

return { Detector = Detector, name_of = name_of }
