-- Models that find objects, as attacks judge them: an object is found where a box of its class covers it by more than half (intersection
-- over union). The attack hides objects until at most a share of them is found.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local detection = {}

-- How much boxes must overlap.
local OVERLAP = 0.5

--- The overlap (R, B, G) of boxes (R, B, 4) and (R, G, 4), each { left, top, right, bottom }.
function detection.overlaps(boxes, others)
  local a, b = ops.expand_dims(boxes, 2), ops.expand_dims(others, 1)
  local function side(v, i) return v["..., " .. i] end
  local width = ops.relu(ops.minimum(side(a, 2), side(b, 2)) - ops.maximum(side(a, 0), side(b, 0)))
  local height = ops.relu(ops.minimum(side(a, 3), side(b, 3)) - ops.maximum(side(a, 1), side(b, 1)))
  local function area(v) return (side(v, 2) - side(v, 0)) * (side(v, 3) - side(v, 1)) end
  local both = width * height
  return both / ops.maximum(area(a) + area(b) - both, 1e-12)
end

--- Which boxes find which objects: (R, B, G). boxes (R, B, 4), classes (R, B), true_boxes (R, G, 4), true_classes (R, G), of which -1 is
--- no object.
function detection.matches(boxes, classes, true_boxes, true_classes)
  local same = ops.equal(ops.expand_dims(classes, 2), ops.expand_dims(true_classes:astype(classes.dtype), 1))
  local is_object = ops.expand_dims(ops.greater_equal(true_classes, 0), 1)
  local near = ops.greater(detection.overlaps(boxes, true_boxes:astype(boxes.dtype)), OVERLAP)
  return ops.logical_and(ops.logical_and(same, is_object), near)
end

--- True boxes and classes of `count` samples, checked: labels = { boxes (N, G, 4), classes (N, G) }.
function detection.labels(where, labels, count)
  local boxes, classes
  if type(labels) == "table" and getmetatable(labels) == nil then boxes, classes = labels[1], labels[2] end
  if not ms.is_tensor(boxes) or not ms.is_tensor(classes) or boxes.ndim ~= 3 or classes.ndim ~= 2 or boxes.shape[3] ~= 4 then
    fail(where, "labels of objects must be { boxes (N, G, 4), classes (N, G) }, got " .. describe(labels))
  end
  if boxes.shape[1] ~= count or classes.shape[1] ~= count or boxes.shape[2] ~= classes.shape[2] then
    fail(where, ("there are %d inputs, and labels are boxes of shape %s and classes of shape %s"):format(count, tostring(boxes.shape),
      tostring(classes.shape)))
  end
  if ops.is_floating_point(classes) then fail(where, "classes of objects must be integers, got " .. tostring(classes.dtype)) end
  return boxes, classes
end

--- For setup of an attack: model_type, reserve_ratio, which is for objects, and sparse, which is for classes.
function detection.keep(self, a)
  local name = getmetatable(self)._name
  self.model_type = check.choice(name, "model_type", a.model_type, { "classification", "detection" })
  self.reserve_ratio = check.probability(name, "reserve_ratio", a.reserve_ratio)
  local idle = self.model_type == "detection" and "sparse" or "reserve_ratio"
  arguments.without_effect(name, getmetatable(self)._signature, a, { idle }, ("where model_type is '%s'"):format(self.model_type))
end

--- How many objects of each row the boxes leave found (R), and how sure of those the model is in all (R). answers: boxes with
--- confidences (R, B, 5), classes (R, B).
function detection.judged(where, answers, classes, true_boxes, true_classes)
  local is_given = ms.is_tensor(classes) and classes.ndim == 2 and answers.ndim == 3
  if not is_given or answers.shape[3] ~= 5 or classes.shape[2] ~= answers.shape[2] then
    fail(where, "a model of objects must give boxes with confidences (N, B, 5) and classes (N, B), got " .. describe(answers) .. " and "
      .. describe(classes))
  end
  local rows = answers.shape[1]
  local function repeated(v) return ops.broadcast_to(ops.expand_dims(v, 0), { rows, table.unpack(v:shape()) }) end
  local boxes, sure = answers["..., 0:4"], answers["..., 4"]
  local found = detection.matches(boxes, classes, repeated(true_boxes), repeated(true_classes))
  return ops.sum(ops.any(found, 1):astype(ms.int32), 1), ops.sum(ops.any(found, 2):astype(sure.dtype) * sure, 1)
end

return detection
