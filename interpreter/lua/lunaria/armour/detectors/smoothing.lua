-- SpatialSmoothing (feature squeezing, Xu et al., 2018): an answer that changes where a picture is smoothed is suspicious. Each channel
-- of each picture is smoothed by itself.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local filters = require "lunaria.armour.filters"
local Detector = require "lunaria.armour.detectors.detector".Detector

local fail, check = arguments.fail, arguments.check

local Smoothing = class.define(Detector, "SpatialSmoothing",
  "model, ksize=3, is_local_smooth=true, metric=\"l1\", false_positive_ratio=0.05",
  [[Takes pictures for adversarial for which a model answers otherwise after they have been smoothed (feature squeezing, Xu et al., 2018).
The mark is the distance of both answers.

model: a cell or a function that gives answers (N, classes), probabilities in the paper. ksize: the side of the window, in pixels.
is_local_smooth: the median of a window (true) or the mean of pixels with similar surroundings of ksize pixels (false: non-local means).
metric: "l1" or "l2". false_positive_ratio: the share of clean samples that fit lets lie above the threshold.

  > detector = ms.armour.detectors.SpatialSmoothing(ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(25, 3), ms.nn.Softmax()))
  > threshold = detector:fit(ms.rand { 20, 1, 5, 5 })
  > ms.ops.sum(detector:detect(ms.ones { 2, 1, 5, 5 })):item() --> 0]])

function Smoothing:setup(a)
  local name = "SpatialSmoothing"
  self._predict = common.predictor(name, a.model)
  self._size = check.positive(name, "ksize", a.ksize)
  self._is_local = check.boolean(name, "is_local_smooth", a.is_local_smooth)
  if not self._is_local and self._size % 2 == 0 then fail(name, ("ksize must be odd for non-local means, got %d"):format(self._size)) end
  self._metric = common.norm_kind(name, check.choice(name, "metric", a.metric, { "l1", "l2" }))
  self.rate = check.probability(name, "false_positive_ratio", a.false_positive_ratio)
end

function Smoothing:_marks(inputs)
  local before, after = self._predict(inputs), self._predict(self:transform(inputs))
  if not ms.is_tensor(before) or before.ndim < 2 or before.shape[1] ~= inputs.shape[1] then
    fail("SpatialSmoothing", "model must give a tensor (N, classes), got " .. arguments.describe(before))
  end
  return common.norms(after - before, self._metric)
end

--- The pictures, smoothed. inputs: pictures (N, H, W) or (N, C, H, W).
---     > x = ms.zeros { 1, 3, 3 }
---     > x[{ 0, 1, 1 }] = 1.0
---     > detector = ms.armour.detectors.SpatialSmoothing(ms.nn.Dense(9, 2))
---     > ms.ops.max(detector:transform(x)):item() --> 0.0
function Smoothing:transform(inputs)
  common.images("SpatialSmoothing", inputs)
  if inputs.ndim ~= 3 and inputs.ndim ~= 4 then
    fail("SpatialSmoothing", ("pictures must be (N, H, W) or (N, C, H, W), got %s"):format(tostring(inputs.shape)))
  end
  if self._is_local then return filters.median(inputs, self._size) end
  return filters.non_local_means(inputs, { patch = self._size })
end

return { SpatialSmoothing = Smoothing }
