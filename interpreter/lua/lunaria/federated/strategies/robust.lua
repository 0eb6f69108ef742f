-- Strategies that bear parties which send what they like. Updates are the rows of a matrix in the order of the parties' ids; ties go to
-- the first of them. Samples do not count: a party could claim any number.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local around = require "lunaria.federated.strategies.around"
local base = require "lunaria.federated.strategies.strategy"

local ops = ms.ops
local fail, check = arguments.fail, arguments.check

local M = {}

-- A strategy whose result is rule(self, rows, where) of the updates' rows (m, n).
local function define(name, signature, doc, setup, rule)
  local class_of = class.define(base.Strategy, name, signature .. (signature == "" and "" or ", ") .. "settings=nil", doc)
  function class_of:setup(a)
    self.settings = base.check_settings(name, a.settings)
    if setup then setup(self, a) end
  end
  function class_of:aggregate(round, global, updates) -- luacheck: ignore round
    return global:with_vector(rule(self, base.rows(updates)))
  end
  M[name] = class_of
  return class_of
end

local function sorted_rows(x) return (ops.sort(x, 0)) end

-- The mean of the sorted rows from `first` on, from 0, as many as count.
local function mean_of(sorted, first, count) return ops.mean(sorted[{ ms.slice(first, first + count) }], 0) end

local function median(x)
  local m = x.shape[1]
  return mean_of(sorted_rows(x), (m - 1) // 2, m % 2 == 1 and 1 or 2)
end

local example = [[

  > function sent(id, w) return { id = id, samples = 1, weights = ms.federated.FeatureMap { w = ms.tensor { w } } } end
  > updates = { sent(1, 1e6), sent(2, 1.0), sent(3, 1.0), sent(4, 1.0), sent(5, 1.0), sent(6, 1.0), sent(7, 1.0) }
  > strategy = ms.federated.strategies.%s
  > strategy:aggregate({ number = 1 }, ms.federated.FeatureMap { w = ms.zeros { 1 } }, updates).w:item() --> 1.0]]

define("Median", "", [[The median of the updates, number by number (Yin et al., 2018); bears less than half of the parties.

settings: of the parties.
]] .. example:format "Median()", nil, function(_, x) return median(x) end)

-- How many rows a share or a number of them is; fewer than half of m.
local function cut_of(self, m)
  local cut = self.faulty or math.floor(self.beta * m + 1e-9)
  if 2 * cut >= m then fail("TrimmedMean", ("%d are cut off at each end, and there are only %d updates"):format(cut, m)) end
  return cut
end

define("TrimmedMean", "beta=0.1, faulty=nil", [[The mean of the updates, number by number, without the least and the greatest ones (Yin et
al., 2018).

beta: the share that is cut off at each end, in [0, 0.5). faulty: their number, in place of the share. settings: of the parties.
]] .. example:format "TrimmedMean { faulty = 1 }", function(self, a)
  self.beta = check.rate("TrimmedMean", "beta", a.beta)
  if self.beta >= 0.5 then fail("TrimmedMean", ("beta must be below 0.5, got %g"):format(self.beta)) end
  if a.faulty ~= nil then self.faulty = check.not_negative("TrimmedMean", "faulty", a.faulty) end
end, function(self, x)
  local m = x.shape[1]
  local cut = cut_of(self, m)
  return mean_of(sorted_rows(x), cut, m - 2 * cut)
end)

-- Squared distances between rows, as lists. From differences: those of products would cancel beside large rows.
local function distances(x)
  local list = {}
  for i = 1, x.shape[1] do
    local difference = x - x[{ ms.slice(i - 1, i) }]
    list[i] = ops.sum(difference * difference, 1):tolist()
  end
  return list
end

-- For each of the rows `among`: the sum of its squared distances to the nearest others, of which there are so many.
local function scores_of(squares, among, nearest)
  local scores = {}
  for _, i in ipairs(among) do
    local own = {}
    for _, j in ipairs(among) do
      if j ~= i then own[#own + 1] = squares[i][j] end
    end
    table.sort(own)
    local sum = 0.0
    for k = 1, math.min(nearest, #own) do sum = sum + own[k] end
    scores[i] = sum
  end
  return scores
end

local function all_of(m)
  local list = {}
  for i = 1, m do list[i] = i end
  return list
end

-- The rows `among` by their scores, the best first.
local function by_score(squares, among, faulty)
  local scores = scores_of(squares, among, math.max(1, #among - faulty - 2))
  local list = table.move(among, 1, #among, 1, {})
  table.sort(list, function(a, b)
    if scores[a] ~= scores[b] then return scores[a] < scores[b] end
    return a < b
  end)
  return list, scores
end

local function mean_of_rows(x, chosen)
  table.sort(chosen)
  local list = {}
  for i, row in ipairs(chosen) do list[i] = x[row - 1] end
  return ops.mean(ops.stack(list, 0), 0)
end

local function enough(name, m, faulty, least)
  if m < least then
    fail(name, ("%d updates are too few to bear %d faulty ones: at least %d are needed"):format(m, faulty, least))
  end
end

local function set_faulty(name)
  return function(self, a) self.faulty = check.not_negative(name, "faulty", a.faulty) end
end

--- The scores of Krum, as a list: the sum of each update's squared distances to its m - faulty - 2 nearest others.
function M.krum_scores(rows, faulty)
  local m = rows.shape[1]
  return scores_of(distances(rows), all_of(m), m - faulty - 2)
end

define("Krum", "faulty=1", [[Krum (Blanchard et al., 2017): the update whose nearest neighbours lie nearest.

faulty: how many parties may be faulty; 2 faulty + 3 updates are needed. settings: of the parties.
]] .. example:format "Krum { faulty = 1 }", set_faulty "Krum", function(self, x)
  local m = x.shape[1]
  enough("Krum", m, self.faulty, 2 * self.faulty + 3)
  return x[by_score(distances(x), all_of(m), self.faulty)[1] - 1]
end)

define("MultiKrum", "faulty=1, count=nil", [[Multi-Krum (Blanchard et al., 2017): the mean of the updates whose nearest neighbours lie
nearest.

faulty: how many parties may be faulty; 2 faulty + 3 updates are needed. count: of how many; nil takes all but faulty + 2. settings: of
the
parties.
]] .. example:format "MultiKrum { faulty = 1 }", function(self, a)
  set_faulty "MultiKrum"(self, a)
  if a.count ~= nil then self.count = check.positive("MultiKrum", "count", a.count) end
end, function(self, x)
  local m = x.shape[1]
  enough("MultiKrum", m, self.faulty, math.max(2 * self.faulty + 3, self.count or 0))
  local list = by_score(distances(x), all_of(m), self.faulty)
  return mean_of_rows(x, table.move(list, 1, self.count or m - self.faulty - 2, 1, {}))
end)

define("Bulyan", "faulty=1", [[Bulyan (El Mhamdi et al., 2018): Krum chooses m - 2 faulty updates, one after the other; of these, number
by
number, the mean of the ones next to their median, all but 2 faulty.

faulty: how many parties may be faulty; 4 faulty + 3 updates are needed. settings: of the parties.
]] .. example:format "Bulyan { faulty = 1 }", set_faulty "Bulyan", function(self, x)
  local m, f = x.shape[1], self.faulty
  enough("Bulyan", m, f, 4 * f + 3)
  local squares, left, chosen = distances(x), all_of(m), {}
  for _ = 1, m - 2 * f do
    local best = by_score(squares, left, f)[1]
    chosen[#chosen + 1] = x[best - 1]
    for i, row in ipairs(left) do
      if row == best then table.remove(left, i) break end
    end
  end
  local rows = sorted_rows(ops.stack(chosen, 0))
  local order = ops.argsort(ops.abs(rows - ops.expand_dims(median(rows), 0)), 0)
  local nearest = order[{ ms.slice(0, #chosen - 2 * f) }]
  return ops.mean(ops.gather_elements(rows, 0, nearest), 0)
end)

define("GeometricMedian", "tolerance=1e-12, iterations=1000", [[The point whose distances to all updates have the least sum (Pillutla et
al.,
2022), by Weiszfeld's method; bears less than half of the parties.

tolerance: it ends when a step is shorter than that share of the point's norm. iterations: at most so many steps. settings: of the
parties.
]] .. example:format "GeometricMedian()", function(self, a)
  self.tolerance = check.number_positive("GeometricMedian", "tolerance", a.tolerance)
  self.iterations = check.positive("GeometricMedian", "iterations", a.iterations)
end, function(self, x)
  -- The median is where most updates are, also when others are far away: few steps are left.
  local point = median(x)
  for _ = 1, self.iterations do
    local difference = x - ops.expand_dims(point, 0)
    local lengths = ops.sqrt(ops.sum(difference * difference, 1))
    local scale = math.max(1.0, ops.sqrt(ops.sum(point * point)):item())
    -- A point on an update would weigh without bound; it then stays there only if the others do not pull it away (Vardi, Zhang 2000).
    local on = ops.less(lengths, 1e-14 * scale)
    local weights = ops.where(on, ops.zeros_like(lengths), 1.0 / ops.maximum(lengths, 1e-14 * scale))
    local total = ops.sum(weights):item()
    if total == 0 then break end
    local pull = ops.sum(difference * ops.expand_dims(weights, 1), 0)
    local step, here = pull / total, ops.sum(on:astype(x.dtype)):item()
    if here > 0 then
      local strength = ops.sqrt(ops.sum(pull * pull)):item()
      step = step * math.max(0.0, 1.0 - here / math.max(strength, 1e-300))
    end
    point = point + step
    if ops.sqrt(ops.sum(step * step)):item() <= self.tolerance * scale then break end
  end
  return point
end)

local NormBound = class.define(around.Around, "NormBound", "bound, strategy=nil",
  [[Another strategy, whose updates change the weights by at most a bound (Sun et al., 2019): longer changes are shortened to it.

bound: the greatest 2-norm of a change. strategy: which one gets the shortened updates; FedAvg if nil.

  > global = ms.federated.FeatureMap { w = ms.zeros { 2 } }
  > sent = { id = 1, samples = 1, weights = ms.federated.FeatureMap { w = ms.tensor { 30.0, 40.0 } } }
  > ms.federated.strategies.NormBound(5.0):aggregate({ number = 1 }, global, { sent }).w:tolist()[2] --> 4.0]])
NormBound.secure = false
M.NormBound = NormBound

function NormBound:setup(a)
  self.bound = check.number_positive("NormBound", "bound", a.bound)
  around.setup(self, "NormBound", a.strategy)
end

function NormBound:aggregate(round, global, updates)
  local w, list = global:vector(ms.float64), {}
  if self.sends == "difference" then w = ops.zeros_like(w) end
  for i, update in ipairs(updates) do
    local change = update.weights:vector(ms.float64) - w
    local length = ops.sqrt(ops.sum(change * change)):item()
    local copy = base.copied(update)
    if length > self.bound then copy.weights = update.weights:with_vector(w + change * (self.bound / length)) end
    list[i] = copy
  end
  return self.strategy:aggregate(round, global, list)
end

return M
