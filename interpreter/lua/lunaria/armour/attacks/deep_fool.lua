-- DeepFool: steps to the nearest boundary between classes of the network as it is linearised (Moosavi-Dezfooli and others 2016).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local detection = require "lunaria.armour.detection"
local margins = require "lunaria.armour.attacks.margins"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local DeepFool = class.define(common.Attack, "DeepFool",
  "network, num_classes, model_type=\"classification\", reserve_ratio=0.3, max_iters=50, overshoot=0.02, norm_level=2, "
    .. "bounds=nil, sparse=nil",
  [[A small change after which the class is another one: each step goes to the nearest boundary of the network as it is linearised there
(Moosavi-Dezfooli and others 2016). network: a cell or function of inputs (N, ...) that gives logits; with model_type = "detection" one
that gives boxes (N, B, 4), each { left, top, right, bottom }, and their logits (N, B, classes). num_classes: how many classes there
are. For detection labels are { boxes (N, G, 4), classes (N, G) }, with class -1 where there are fewer objects; steps go to where the
leads of the right classes in all boxes that find objects add up to 0, until at most reserve_ratio of the objects are found. max_iters:
how many steps at most. overshoot: by which share the way is lengthened, to cross the boundary. norm_level: 2 or "inf", the norm that is
to be small. bounds: { low, high } of the inputs, nil where they have none. sparse: true takes labels as class numbers only, false as
one-hot only. Samples whose class is not the label come back as they were.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
  > x = ms.randn(2, 4)
  > y = ms.ops.argmax(net(x), 1)
  > adv = ms.armour.attacks.DeepFool(net, 3):generate(x, y)
  > ms.ops.equal(ms.ops.argmax(net(adv), 1), y):tolist()[1] --> false]])

-- Added to each way: boundaries are crossed where rounding would end on them.
local BEYOND = 1e-4

function DeepFool:setup(a)
  self.classes = check.positive("DeepFool", "num_classes", a.num_classes)
  self.max_iters = check.positive("DeepFool", "max_iters", a.max_iters)
  self.overshoot = check.finite_not_negative("DeepFool", "overshoot", a.overshoot)
  self.norm = common.norm_kind("DeepFool", a.norm_level)
  if self.norm == 1 then
    fail("DeepFool", "norm_level must be 2 or 'inf', got 1", "ms.armour.attacks.FastAdaptiveBoundary has the norm 1 too")
  end
  self.sparse, self.beyond = margins.sparse("DeepFool", a.sparse), BEYOND
  detection.keep(self, a)
  self.low, self.high = common.bounds("DeepFool", a.bounds)
  self.classifier = common.classifier("DeepFool", a.network)
  self._jacobian = margins.jacobian(a.network, self.classes)
  self._objects = common.compiled(function(...) return self:_objects_found(...) end)
end

-- The norm whose product with another bounds that of two vectors.
local dual = { [2] = 2, inf = 1 }

-- The way (N, ...) to the nearest of the boundaries f_k = 0 with slopes w_k: f (N, K), w (N, K, ...); the label's own is left out by mask.
local function way(self, f, w, mask)
  local count, classes = f.shape[1], f.shape[2]
  local size = w.size // (count * classes)
  local rows = w:reshape { count * classes, size }
  local distance = ops.abs(f) / ops.maximum(common.norms(rows, dual[self.norm]):reshape(f.shape), 1e-30)
  distance = ops.where(mask, math.huge, distance)
  local nearest = ops.argmin(distance, 1)
  local slope = ops.gather(rows, nearest + ops.arange(count) * classes, 0)
  local step = ops.amin(distance, 1) + self.beyond
  return common.steepest(slope, self.norm) * step:reshape { count, 1 }
end

function DeepFool:_generate(inputs, labels)
  local x = common.images("DeepFool", inputs, self.low, self.high)
  if self.model_type == "detection" then
    local boxes, classes = detection.labels("DeepFool", labels, x.shape[1])
    return common.predicting(self.classifier.network, self._hide, self, x, boxes, classes)
  end
  local y = margins.labels("DeepFool", labels, x.shape[1], self.classes, self.sparse)
  margins.check_classes("DeepFool", self.classifier, x, self.classes)
  return common.predicting(self.classifier.network, self._search, self, x, y)
end

function DeepFool:_search(x, y)
  local mask, jacobian = margins.mask(y, self.classes), self._jacobian
  local total, point = ops.zeros_like(x), x
  for _ = 1, self.max_iters do
    local z, slopes = jacobian(point)
    local stays = ops.logical_not(margins.is_reached(z, y, false))
    if not ops.any(stays):item() then break end
    local own = ops.sum(ops.where(mask, z, 0), 1, true)
    local slope = ops.gather(slopes:reshape { z.size, -1 }, y:astype(ms.int64) + ops.arange(x.shape[1]) * self.classes, 0)
    local r = way(self, z - own, slopes:reshape { x.shape[1], self.classes, -1 } - slope:reshape { x.shape[1], 1, -1 }, mask)
    total = total + margins.choose(stays, r:reshape(x.shape), ops.zeros_like(x))
    local moved = x + total * (1 + self.overshoot)
    point = margins.choose(stays, common.clip(moved, self.low, self.high), point)
  end
  return point
end

-- How many objects are found (N), by how much the right classes lead in all boxes that find any, added up (N), and the slope of that.
function DeepFool:_objects_found(x, true_boxes, true_classes)
  local aux, slope = ms.value_and_grad(function(at)
    local boxes, z = self.classifier.network(at)
    local decided = ops.argmax(ops.stop_gradient(z), 2)
    local found = detection.matches(ops.stop_gradient(boxes), decided, true_boxes, true_classes)
    local own = margins.mask(decided:reshape { -1 }, self.classes)
    local lead = -margins.distance(z:reshape { -1, self.classes }, own, true, 0):reshape(decided.shape)
    local leads = ops.sum(ops.where(ops.any(found, 2), lead, 0), 1)
    return ops.sum(leads), leads, ops.sum(ops.any(found, 1):astype(ms.int32), 1)
  end, { has_aux = true })(x)
  return aux[3], aux[2], slope
end

function DeepFool:_hide(x, boxes, classes)
  local first, z = self.classifier.network(x)
  if not ms.is_tensor(z) or first.ndim ~= 3 or z.ndim ~= 3 or first.shape[3] ~= 4 or z.shape[3] ~= self.classes then
    fail("DeepFool", ("the network must give boxes (N, B, 4) and logits (N, B, %d), got %s and %s"):format(self.classes,
      arguments.describe(first), arguments.describe(z)))
  end
  local most = ops.sum(ops.greater_equal(classes, 0):astype(x.dtype), 1) * self.reserve_ratio
  local total, point = ops.zeros_like(x), x
  for _ = 1, self.max_iters do
    local found, leads, slope = self._objects(point, boxes, classes)
    local goes_on = ops.greater(found:astype(x.dtype), most)
    if not ops.any(goes_on):item() then break end
    local far = leads / ops.maximum(common.norms(slope, dual[self.norm]), 1e-30) + self.beyond
    local step = common.steepest(slope, self.norm) * common.beside(x, far)
    total = total - margins.choose(goes_on, step, ops.zeros_like(x))
    point = margins.choose(goes_on, common.clip(x + total * (1 + self.overshoot), self.low, self.high), point)
  end
  return point
end

return { DeepFool = DeepFool }
