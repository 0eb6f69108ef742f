-- JSMAAttack: few pixels changed a lot, chosen in pairs by the Jacobian of the logits (Papernot and others 2016).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local margins = require "lunaria.armour.attacks.margins"

local ops = ms.ops
local check = arguments.check

local JSMAAttack = class.define(common.Attack, "JSMAAttack",
  "network, num_classes, box_min=0.0, box_max=1.0, theta=1.0, max_iteration=1000, max_count=3, increase=true, sparse=nil",
  [[The saliency map attack: in each iteration the two pixels that raise the target's logit and lower all the others' together the most are
changed by theta, until the target is reached (Papernot and others 2016). Labels are the classes to reach. network: a cell or function
of pictures that gives logits. num_classes: how many it gives. box_min, box_max: the range of the pixels. theta: the change of a pixel.
max_iteration: how many pairs are changed at most. max_count: a pixel is left alone after more changes than these, and at the end of its
range. increase: whether pixels grow or shrink. sparse: true takes labels as class numbers only, false as one-hot only. Samples that do
not reach their target come back with the changes that were made.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
  > x = ms.full({ 2, 4 }, 0.5)
  > ms.armour.attacks.JSMAAttack(net, 3, { max_iteration = 4 }):generate(x, ms.tensor { 0, 2 }).shape --> (2, 4)]])

function JSMAAttack:setup(a)
  self.classes = check.positive("JSMAAttack", "num_classes", a.num_classes)
  self.low, self.high = common.bounds("JSMAAttack",
    { check.number("JSMAAttack", "box_min", a.box_min), check.number("JSMAAttack", "box_max", a.box_max) })
  self.theta = check.number_positive("JSMAAttack", "theta", a.theta)
  self.max_iteration = check.positive("JSMAAttack", "max_iteration", a.max_iteration)
  self.max_count = check.not_negative("JSMAAttack", "max_count", a.max_count)
  self.increase = check.boolean("JSMAAttack", "increase", a.increase)
  self.sparse = margins.sparse("JSMAAttack", a.sparse)
  self.classifier = common.classifier("JSMAAttack", a.network)
  self._jacobian = margins.jacobian(a.network, self.classes)
end

-- Elements of a matrix of pairs that are held at once.
local AT_ONCE = 1 << 22

-- The score of each pair of some pixels with all, and its largest: a, b (N, P), (N, D); apart (P, D) is 0 where a pixel meets itself. The
-- order of rows makes the first of two equal pairs (p, q), (q, p) the one with p < q.
local largest_pair = common.compiled(function(some_a, some_b, a, b, apart)
  local up = ops.relu(ops.expand_dims(some_a, 2) + ops.expand_dims(a, 1))
  local down = ops.relu(-(ops.expand_dims(some_b, 2) + ops.expand_dims(b, 1)))
  local score = (up * down * apart):reshape { a.shape[1], -1 }
  return ops.amax(score, 1), ops.argmax(score, 1)
end)

-- Of each sample the pair p < q of pixels with the largest -(a_p + a_q)(b_p + b_q) where the first sum is above 0, the second below: the
-- values (N), 0 where there is no such pair, and the numbers p and q. a, b: (N, D), the slopes of the target and of all others. free (N,
-- D): pixels that may change.
local function best_pairs(a, b, free)
  local count, size = a.shape[1], a.shape[2]
  local rows = math.max(1, math.min(size, AT_ONCE // (count * size)))
  a = ops.where(free, a, -math.huge)
  local value, first, second
  for from = 0, size - 1, rows do
    local to = math.min(size, from + rows)
    local part, pixels = { ms.slice(), ms.slice(from, to) }, ops.arange(size):reshape { 1, size }
    local apart = ops.not_equal(ops.arange(from, to):reshape { to - from, 1 }, pixels):astype(b.dtype)
    local top, at = largest_pair(a[part], b[part], a, b, apart)
    local p, q = ops.floor_div(at, size) + from, at % size
    if value then
      local better = ops.greater(top, value)
      value, first, second = ops.where(better, top, value), ops.where(better, p, first), ops.where(better, q, second)
    else
      value, first, second = top, p, q
    end
  end
  return value, first, second
end

function JSMAAttack:_generate(inputs, labels)
  local x = common.images("JSMAAttack", inputs, self.low, self.high)
  local y = margins.labels("JSMAAttack", labels, x.shape[1], self.classes, self.sparse)
  margins.check_classes("JSMAAttack", self.classifier, x, self.classes)
  return common.predicting(self.classifier.network, self._search, self, x, y)
end

--- watch(p, q, is_on), if given, is told which pair each sample changes in each iteration.
function JSMAAttack:_search(x, y, watch)
  local count, size = x.shape[1], x.size // x.shape[1]
  local jacobian, mask = self._jacobian, margins.mask(y, self.classes)
  local sign = self.increase and 1 or -1
  local limit = self.increase and self.high or self.low
  local changes, pixels = ops.zeros({ count, size }, ms.int32), ops.arange(size):reshape { 1, size }
  local point = x
  for _ = 1, self.max_iteration do
    local z, slopes = jacobian(point)
    slopes = slopes:reshape { count, self.classes, size } * sign
    local own = ops.sum(ops.where(mask:reshape { count, self.classes, 1 }, slopes, 0), 1)
    local flat = point:reshape { count, size }
    local inside = self.increase and ops.less(flat, limit) or ops.greater(flat, limit)
    local free = ops.logical_and(ops.less_equal(changes, self.max_count), inside)
    local value, p, q = best_pairs(own, ops.sum(slopes, 1) - own, free)
    local is_on = ops.logical_and(ops.greater(value, 0), ops.logical_not(margins.is_reached(z, y, true)))
    if watch then watch(p, q, is_on) end
    if not ops.any(is_on):item() then break end
    local chosen = ops.logical_or(ops.equal(pixels, p:reshape { count, 1 }), ops.equal(pixels, q:reshape { count, 1 }))
    chosen = ops.logical_and(chosen, is_on:reshape { count, 1 })
    changes = changes + chosen:astype(ms.int32)
    point = ops.clip(ops.where(chosen, flat + sign * self.theta, flat), self.low, self.high):reshape(x.shape)
  end
  return point
end

return { JSMAAttack = JSMAAttack }
