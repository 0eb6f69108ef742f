-- EnsembleDetector: a verdict by several detectors.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local Detector = require "lunaria.armour.detectors.detector".Detector

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local Ensemble = class.define(Detector, "EnsembleDetector", "detectors, policy=\"vote\"",
  [[A verdict by several detectors.

detectors: a list of them. policy: "vote" (more than half of them must find a sample adversarial), "all" or "any".

  > encoder = ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU())
  > ensemble = ms.armour.detectors.EnsembleDetector({ encoder }, "any")
  > ensemble:fit(ms.rand { 4, 2 })
  > ensemble:detect(ms.tensor { { -2.0, 1.0 }, { 0.5, 1.0 } }):tolist()[1] --> 1]])

function Ensemble:setup(a)
  local name = "EnsembleDetector"
  if type(a.detectors) ~= "table" or getmetatable(a.detectors) ~= nil or #a.detectors == 0 then
    fail(name, "detectors must be a list of detectors, got " .. describe(a.detectors))
  end
  for i, detector in ipairs(a.detectors) do
    if not class.is_a(detector, Detector) then
      fail(name, ("detectors[%d] must be a detector, got %s"):format(i, describe(detector)))
    end
  end
  self._detectors, self._policy = a.detectors, check.choice(name, "policy", a.policy, { "vote", "all", "any" })
end

--- Fits each of the detectors. inputs: clean samples (N, ...). labels: theirs, for detectors that need them.
---     > ms.armour.detectors.EnsembleDetector({ ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU()) }):fit(ms.rand { 4, 2 })
function Ensemble:fit(inputs, labels)
  for _, detector in ipairs(self._detectors) do detector:fit(inputs, labels) end
end

--- How many of the detectors find each sample adversarial: (N,) of int32. inputs: samples (N, ...).
---     > encoder = ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU())
---     > encoder:set_threshold(0.5)
---     > ms.armour.detectors.EnsembleDetector({ encoder, encoder }):detect_diff(ms.tensor { { -2.0 } }):item() --> 2
function Ensemble:detect_diff(inputs)
  common.images("EnsembleDetector", inputs)
  local votes
  for _, detector in ipairs(self._detectors) do
    local own = detector:detect(inputs)
    votes = votes and votes + own or own
  end
  return votes
end

--- 1 for each sample that is adversarial by the policy, else 0: (N,) of int32. inputs: samples (N, ...).
---     > encoder = ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU())
---     > encoder:set_threshold(0.5)
---     > ms.armour.detectors.EnsembleDetector({ encoder }, "all"):detect(ms.tensor { { -2.0 } }):item() --> 1
function Ensemble:detect(inputs)
  local count = #self._detectors
  local needed = self._policy == "all" and count or self._policy == "any" and 1 or count // 2 + 1
  return ops.greater_equal(self:detect_diff(inputs), needed):astype(ms.int32)
end

--- An ensemble has no threshold of its own: it is an error.
---     > (pcall(ms.armour.detectors.EnsembleDetector({ ms.armour.detectors.ErrorBasedDetector(ms.nn.ReLU()) }).set_threshold)) --> false
function Ensemble:set_threshold() -- luacheck: ignore 212
  fail("set_threshold", "an ensemble has no threshold of its own", "set those of its detectors")
end

return { EnsembleDetector = Ensemble }
