-- AutoAttack: several unlike attacks one after the other, each on what the ones before have left (Croce and Hein 2020), and signs that a
-- network only hides its gradients (Athalye and others 2018).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"
local margins = require "lunaria.armour.attacks.margins"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local AutoAttack = class.define(common.Attack, "AutoAttack",
  "network, eps=0.03137254901960784, norm_level=\"inf\", attacks=nil, nb_iter=100, max_queries=5000, n_target_classes=9, bounds=nil, "
    .. "verbose=true, seed=0",
  [[Unlike attacks one after the other, each on the samples that the ones before have left (Croce and Hein 2020): Auto-PGD by cross-entropy,
Auto-PGD to the classes of the largest other logits by the difference of logits ratio, FAB to these classes, and square search, which
uses no gradients. network: a cell or function of pictures (N, C, H, W) that gives logits. eps: the radius of the ball, as a share of
the range. norm_level: "inf", 2 or 1 (without square search). attacks: a list of some of "apgd-ce", "apgd-t", "fab-t", "square", all if
nil. nb_iter: steps of each attack by gradients. max_queries: questions of square search for each sample. n_target_classes: how many
classes are tried. bounds: { low, high } of the inputs, { 0, 1 } if nil. verbose: warnings are also written to the error output. seed:
of the random numbers. generate gives the samples; attack.report then has clean, the share that was right at first, robust, the share
that still is, steps, a list of { attack =, robust = }, and warnings: that the network draws random numbers, that slopes are zero, or
that square search finds what the gradients did not, which is the sign of masked gradients: robustness that better attacks take away.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 4))
  > attack = ms.armour.attacks.AutoAttack(net, { nb_iter = 3, max_queries = 10 })
  > attack:generate(ms.rand(2, 1, 4, 4), ms.tensor { 0, 1 }).shape --> (2, 1, 4, 4)
  > attack.report.robust <= attack.report.clean --> true]])

local order = { "apgd-ce", "apgd-t", "fab-t", "square" }

function AutoAttack:setup(a)
  local name = "AutoAttack"
  self.eps, self.norm = check.number_positive(name, "eps", a.eps), common.norm_kind(name, a.norm_level)
  for _, option in ipairs { "nb_iter", "max_queries", "n_target_classes" } do self[option] = check.positive(name, option, a[option]) end
  self.low, self.high = common.bounds(name, a.bounds, { 0.0, 1.0 })
  if not math.type(self.low) then fail(name, "bounds must be two numbers, as { 0, 1 }") end
  self.verbose, self.seed = check.boolean(name, "verbose", a.verbose), check.not_negative(name, "seed", a.seed)
  local names = a.attacks
  if names == nil then names = self.norm == 1 and table.move(order, 1, 3, 1, {}) or order end
  if type(names) ~= "table" or #names == 0 then
    fail(name, "attacks must be a list of names, as { 'apgd-ce', 'square' }, got " .. arguments.describe(names))
  end
  for _, one in ipairs(names) do check.choice(name, "attacks", one, order) end
  self.attacks = names
  self.classifier = common.classifier(name, a.network)
end

-- Numbers of the classes of the largest logits besides the label: tensors (N).
local function targets_of(self, x, y)
  local z = self.classifier:logits(x)
  local ranked = ops.argsort(ops.where(margins.mask(y, z.shape[2]), -math.huge, z), 1, true):astype(ms.int32)
  local list = {}
  for k = 1, math.min(self.n_target_classes, z.shape[2] - 1) do list[k] = ranked[{ ms.slice(), k - 1 }] end
  return list
end

local function auto_pgd(self, x, y, loss, is_targeted)
  local attack = require "lunaria.armour.attacks.auto_pgd".AutoProjectedGradientDescent(self.classifier.network, { eps = self.eps,
    bounds = { self.low, self.high }, nb_iter = self.nb_iter, norm_level = self.norm, loss_fn = loss, is_targeted = is_targeted,
    seed = self.seed })
  return attack:generate(x, y)
end

-- What each attack does with the samples that are left; left:try(adv) takes those out that adv beats.
local run = {}

run["apgd-ce"] = function(self, left) left:try(auto_pgd(self, left.x, left.y, "ce", false)) end

run["apgd-t"] = function(self, left)
  -- The ratio needs the largest four logits.
  local loss = self.classifier:classes(left.x) >= 4 and "dlr" or "ce"
  for k = 1, #targets_of(self, left.x, left.y) do
    if left.x then left:try(auto_pgd(self, left.x, targets_of(self, left.x, left.y)[k], loss, true)) end
  end
end

run["fab-t"] = function(self, left)
  local attack = require "lunaria.armour.attacks.boundary".FastAdaptiveBoundary(self.classifier.network, { norm_level = self.norm,
    nb_iter = self.nb_iter, n_target_classes = self.n_target_classes, bounds = { self.low, self.high } })
  left:try(attack:generate(left.x, left.y))
end

run.square = function(self, left)
  local attack = require "lunaria.armour.black.square".SquareAttack(self.classifier.network, { eps = self.eps, norm_level = self.norm,
    max_queries = self.max_queries, bounds = { self.low, self.high }, seed = self.seed })
  left:try((select(2, attack:generate(left.x, left.y))))
end

local Left = {}
Left.__index = Left

-- The samples that the network still has right: x and y, nil when there are none. best: what becomes of all, as a list.
local function left_of(self, x, y)
  local left = setmetatable({ attack = self, all = x, labels = y, x = x, y = y, rows = {}, best = {} }, Left)
  for i = 1, x.shape[1] do left.rows[i], left.best[i] = i, x[i - 1] end
  left:keep(ops.logical_not(margins.is_reached(self.classifier:logits(x), y, false)))
  return left
end

function Left:keep(mask)
  local rows = {}
  for i, stays in ipairs(mask:tolist()) do
    if stays then rows[#rows + 1] = self.rows[i] end
  end
  self.rows, self.x, self.y = rows, nil, nil
  if #rows == 0 then return end
  local at = ms.tensor(rows, ms.int64) - 1
  self.x, self.y = ops.gather(self.all, at, 0), ops.gather(self.labels, at, 0)
end

function Left:try(adv)
  local attack = self.attack
  local radius = attack.eps * (attack.high - attack.low)
  local within = ops.less_equal(common.norms(adv - self.x, attack.norm), radius * (1 + 1e-5) + 1e-7)
  local beaten = ops.logical_and(margins.is_reached(attack.classifier:logits(adv), self.y, false), within)
  for i, is_beaten in ipairs(beaten:tolist()) do
    if is_beaten then self.best[self.rows[i]] = adv[i - 1] end
  end
  self:keep(ops.logical_not(beaten))
end

-- Shares of the samples from which on slopes of zero, and what square search alone finds, are signs.
local FLAT, FOUND = 0.1, 0.002

-- Signs that are seen before any attack: randomness, and slopes of zero.
local function first_signs(self, x, y)
  local signs = {}
  local first, second = self.classifier:logits(x), self.classifier:logits(x)
  if ops.amax(ops.abs(first - second)):item() > 1e-5 * math.max(1, ops.amax(ops.abs(first)):item()) then
    signs[1] = "the network gives other logits each time: it draws random numbers, and single looks at its slopes mislead attacks"
  end
  local mask = margins.mask(y, first.shape[2])
  local slope = ms.grad(function(at)
    return ops.sum(margins.distance(self.classifier.network(at), mask, false, 0))
  end)(x)
  local flat = ops.mean(ops.equal(common.norms(slope, "inf"), 0):astype(ms.float32)):item()
  if flat > FLAT then
    signs[#signs + 1] = ("the slope of the logits is zero at %.0f %% of the samples: the gradients are masked, attacks by gradients find "
      .. "nothing there"):format(flat * 100)
  end
  return signs
end

function AutoAttack:_search(x, y)
  local left, count = left_of(self, x, y), x.shape[1]
  local report = { clean = #left.rows / count, steps = {}, warnings = {} }
  if left.x then report.warnings = first_signs(self, left.x, left.y) end
  for _, name in ipairs(self.attacks) do
    local before = #left.rows
    if left.x then run[name](self, left) end
    report.steps[#report.steps + 1] = { attack = name, robust = #left.rows / count }
    local found = before - #left.rows
    if name == "square" and #report.steps > 1 and found > math.max(1, FOUND * count) then
      table.insert(report.warnings, ("square search, which uses no gradients, finds %d of %d samples that attacks by gradients leave: the "
        .. "gradients are masked, and robustness is overrated"):format(found, before))
    end
  end
  report.robust = #left.rows / count
  self.report = report
  for _, text in ipairs(self.verbose and report.warnings or {}) do io.stderr:write("AutoAttack: ", text, "\n") end
  return ops.stack(left.best, 0)
end

function AutoAttack:_generate(inputs, labels)
  local x = common.images("AutoAttack", inputs, self.low, self.high)
  local y = common.labels("AutoAttack", labels, x.shape[1], self.classifier:classes(x))
  return common.predicting(self.classifier.network, self._search, self, x, y)
end

return { AutoAttack = AutoAttack }
