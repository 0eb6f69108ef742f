-- LBFGS: the first attack on networks (Szegedy and others 2014), a minimum of distance and loss in the box of the pixels.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local margins = require "lunaria.armour.attacks.margins"
local minimum = require "lunaria.armour.attacks.boxed"

local ops = ms.ops
local check = arguments.check

local LBFGS = class.define(common.Attack, "LBFGS",
  "network, eps=1e-5, bounds=nil, is_targeted=true, nb_iter=150, search_iters=30, loss_fn=nil, sparse=nil",
  [[The attack of Szegedy and others (2014): L-BFGS within the box of the pixels minimises |x' - x|^2 + c loss(x', target), and a search
finds the smallest c that succeeds for each sample. network: a cell or function of pictures that gives logits. eps: the first c, which
is ten times more until it succeeds, then halved into between. bounds: { low, high } of the pixels, { 0, 1 } if nil. is_targeted: labels
are the classes to reach; if false, they are left. nb_iter: steps of L-BFGS for each c. search_iters: how many c are tried. loss_fn: the
loss of logits and labels, cross-entropy if nil. sparse: true takes labels as class numbers only, false as one-hot only. Samples for
which none is found come back as they were.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3))
  > x = ms.full({ 2, 4 }, 0.5)
  > ms.armour.attacks.LBFGS(net, { search_iters = 8 }):generate(x, ms.tensor { 0, 2 }).shape --> (2, 4)]])

-- Differences that L-BFGS keeps.
local MEMORY = 10

function LBFGS:setup(a)
  self.eps = check.number_positive("LBFGS", "eps", a.eps)
  self.low, self.high = common.bounds("LBFGS", a.bounds, { 0.0, 1.0 })
  if not math.type(self.low) then arguments.fail("LBFGS", "bounds must be two numbers, as { 0, 1 }") end
  self.is_targeted = check.boolean("LBFGS", "is_targeted", a.is_targeted)
  self.nb_iter = check.positive("LBFGS", "nb_iter", a.nb_iter)
  self.search_iters = check.positive("LBFGS", "search_iters", a.search_iters)
  self.sparse = margins.sparse("LBFGS", a.sparse)
  self.classifier = common.classifier("LBFGS", a.network, a.loss_fn)
end

--- The minima of |x' - x|^2 + weights loss(x', y): points and values. weights: (N).
function LBFGS:_minimise(x, y, weights)
  local shape, count = x.shape, x.shape[1]
  local origin = x:reshape { count, -1 }
  local sign = self.is_targeted and 1 or -1
  local function objective(flat)
    local losses, slopes = self.classifier:loss_and_gradient(flat:reshape(shape), y)
    local change = flat - origin
    return ops.sum(ops.square(change), 1) + weights * losses * sign,
      change * 2 + slopes:reshape(flat.shape) * (weights * sign):reshape { count, 1 }
  end
  local point, value = minimum(objective, origin, self.low, self.high, self.nb_iter, MEMORY)
  return point:reshape(shape), value
end

function LBFGS:_generate(inputs, labels)
  local x = common.images("LBFGS", inputs, self.low, self.high)
  local count = x.shape[1]
  local y = margins.labels("LBFGS", labels, count, self.classifier:classes(x), self.sparse)
  local weights = margins.weights(self.eps, count, x.dtype)
  local best, least = x, ops.full({ count }, math.huge, { dtype = x.dtype })
  for _ = 1, self.search_iters do
    local point = self:_minimise(x, y, weights.value)
    local found = margins.is_reached(self.classifier:logits(point), y, self.is_targeted)
    local distance = ops.sum(ops.square(point - x):reshape { count, -1 }, 1)
    local better = ops.logical_and(found, ops.less(distance, least))
    least, best = ops.where(better, distance, least), margins.choose(better, point, best)
    weights.update(found)
  end
  return best
end

return { LBFGS = LBFGS }
