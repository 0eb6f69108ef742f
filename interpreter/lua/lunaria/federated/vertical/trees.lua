-- ms.federated.vertical.BoostedTrees: gradient-boosted trees over parties that have different columns of the same rows, in the manner of
-- SecureBoost (Cheng and others 2019), with additive shares in the place of encryption. Sums of gradients are exact, so the trees are
-- those that one party with all columns would grow, to the bit.
local core = require "lunaria.vertical"
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local columns = require "lunaria.federated.vertical.columns"
local messages = require "lunaria.federated.vertical.link"
local products = require "lunaria.federated.vertical.products"

local ops, i64, f64 = ms.ops, ms.int64, ms.float64
-- The last argument is a table of links by name.
local take_fit, take_predict = { "x", "y", "links", last_has_names = true }, { "x", "links", last_has_names = true }

local fail, check = arguments.fail, arguments.check

-- Bits behind the point of gradients, which are at most about 1: sums over 2^20 rows have room.
local point = 40

local BoostedTrees = class.define(nil, "BoostedTrees",
  "role=\"leader\", rounds=20, depth=3, bins=32, learning_rate=0.3, reg_lambda=1.0, gamma=0.0, min_child_weight=1.0, "
    .. "objective=\"binary\", leader=\"leader\", dealer=\"dealer\"",
  [[Gradient-boosted trees over vertical parties: a leader, which has the labels and perhaps columns, followers, which have other columns of
the same rows, and a dealer of random numbers (ms.federated.vertical.deal), which has no data. All call fit with rows in the same order,
as ms.federated.vertical.psi gives it, and their links to the others by name. A leader without links grows the same trees from columns
that lie side by side.

role: "leader" or "follower". rounds: trees. depth: of each. bins: intervals of a column, by quantiles. learning_rate, reg_lambda, gamma,
min_child_weight: as XGBoost has them. objective: "binary" (labels 0 and 1, the logistic loss) or "regression" (the squared error; labels
of about 1 in size). leader, dealer: the names of these parties; all others are followers.

Sums of gradients by bins are computed in integers of 64 bits, 40 of them behind the point, and in shares: a follower sees gradients, and
which rows are in which node, as random numbers only. Who learns what:
- the leader: how many columns and bins a follower has; for each node the sums of gradients in each bin; for each split that it chooses
  which rows lie on which side; when it predicts, the same of new rows;
- a follower: which of its columns are split at which bins, in what order; not labels, not gradients, not nodes, not other columns;
- the dealer: the sizes; it must work with none of the others.
Encryption by homomorphism, by which a dealer is not needed, is left out: no library of Debian has it.

  > trees = ms.federated.vertical.BoostedTrees { rounds = 3, depth = 2, min_child_weight = 0 }
  > x = ms.tensor { { 0.0 }, { 1.0 }, { 2.0 }, { 3.0 }, { 4.0 }, { 5.0 } }
  > trees:fit(x, ms.tensor { 0, 0, 0, 1, 1, 1 })
  > trees:predict(x):tolist()[6] > 0.5 --> true]])
BoostedTrees._called = "model"

function BoostedTrees:setup(a)
  local where = "BoostedTrees"
  self.role = check.choice(where, "role", a.role, { "leader", "follower" })
  self.rounds, self.depth = check.positive(where, "rounds", a.rounds), check.positive(where, "depth", a.depth)
  if self.depth > 12 then fail(where, ("depth must be at most 12, got %d"):format(self.depth)) end
  self.bins = check.positive(where, "bins", a.bins)
  if self.bins < 2 or self.bins > 256 then fail(where, ("bins must be from 2 to 256, got %d"):format(self.bins)) end
  self.learning_rate = check.number_positive(where, "learning_rate", a.learning_rate) + 0.0
  self.reg_lambda = check.number_not_negative(where, "reg_lambda", a.reg_lambda) + 0.0
  self.gamma = check.number_not_negative(where, "gamma", a.gamma) + 0.0
  self.min_child_weight = check.number_not_negative(where, "min_child_weight", a.min_child_weight) + 0.0
  self.objective = check.choice(where, "objective", a.objective, { "binary", "regression" })
  if type(a.leader) ~= "string" or type(a.dealer) ~= "string" then fail(where, "leader and dealer are names, texts") end
  self._leader, self._dealer = a.leader, a.dealer
  self.trees, self.splits = {}, {}
end

function BoostedTrees:__tostring() return ("BoostedTrees<%s, %d trees>"):format(self.role, #self.trees) end

-- The own columns as bins: which bin each row is in, (columns, n) int64, and the upper edges of the bins of each column.
local function binned(x, bins)
  local numbers, edges = {}, {}
  for f = 0, x.shape[2] - 1 do
    local column = x[{ ms.slice(), f }]
    edges[f + 1] = columns.quantiles(column, bins)
    numbers[f + 1] = ops.searchsorted(edges[f + 1], column):astype(i64):reshape { 1, -1 }
  end
  return #numbers == 1 and numbers[1] or ops.concat(numbers, 0), edges
end

-- Leader. ----------------------------------------------------------------------------------------------------------

-- First and second derivatives of the loss by the scores.
local derivatives = {}
function derivatives.binary(scores, y)
  local p = ops.sigmoid(scores)
  return p - y, p * (1 - p)
end
function derivatives.regression(scores, y) return scores - y, ops.ones_like(y) end

-- A source of sums by bins: of the leader's own columns, or of a follower's. `of(vectors)` takes (k, n) to (k, columns * bins).
local function own_source(self, x)
  local numbers, edges = binned(x, self.bins)
  return {
    columns = x.shape[2],
    of = function(vectors) return core.histogram(numbers, self.bins, vectors) end,
    split = function(chosen)
      local sides = {}
      for i, c in ipairs(chosen) do
        self.splits[#self.splits + 1] = { column = c.column, threshold = edges[c.column + 1][c.bin]:item() }
        sides[i] = { number = #self.splits, left = ops.less_equal(numbers[c.column], c.bin):astype(i64) }
      end
      return sides
    end,
  }
end

local function follower_source(self, link, dealer, n)
  local values = link:receive "columns"
  messages.integer(link, values, "rows", n, n)
  messages.integer(link, values, "bins", self.bins, self.bins)
  local count = messages.integer(link, values, "columns", 1, 1 << 20)
  local asker = products.asker(link, dealer, count * self.bins, n, 0)
  local known = 0
  return {
    columns = count, party = link.peer,
    of = function(vectors) return asker:multiply(vectors) end,
    split = function(chosen)
      local wanted = {}
      for i, c in ipairs(chosen) do wanted[i] = { c.column, c.bin } end
      link:send("splits", { wanted = ms.tensor(wanted, i64) })
      local left = messages.tensor(link, link:receive "sides", "left", ms.bool, { #chosen, n })
      local sides = {}
      for i in ipairs(chosen) do
        known = known + 1
        sides[i] = { number = known, left = left[i - 1]:astype(i64) }
      end
      return sides
    end,
  }
end

-- The best split of a node from its sums of both derivatives, each (columns of all, bins): nil where none is better than the node as it is.
local function best_split(self, g, h)
  local left_g, left_h = core.from_fixed(ops.cumsum(g, 1), point), core.from_fixed(ops.cumsum(h, 1), point)
  local last = { ms.slice(), ms.slice(self.bins - 1, self.bins) }
  local all_g, all_h = left_g[last], left_h[last]
  local right_g, right_h = all_g - left_g, all_h - left_h
  local function score(sum, weight) return sum * sum / (weight + self.reg_lambda) end
  local gain = (score(left_g, left_h) + score(right_g, right_h) - score(all_g, all_h)) * 0.5 - self.gamma
  local least = self.min_child_weight
  local allowed = ops.logical_and(ops.logical_and(ops.greater(left_h, 0), ops.greater_equal(left_h, least)),
    ops.logical_and(ops.greater(right_h, 0), ops.greater_equal(right_h, least)))
  gain = ops.where(allowed, gain, -math.huge):reshape { -1 }
  local at = ops.argmax(gain, 0):item()
  local value = gain[at]:item()
  if not (value > 0) then return nil end
  return { column = at // self.bins, bin = at % self.bins, gain = value }
end

-- Sums by bins for nodes, from vectors (2k, n): for each node both derivatives, (columns of all, bins).
local function sums_of(self, sources, vectors)
  local parts = {}
  for i, source in ipairs(sources) do
    parts[i] = source.of(vectors):reshape { vectors.shape[1], source.columns, self.bins }
  end
  return #parts == 1 and parts[1] or ops.concat(parts, 1)
end

local function add_sums(self, sources, nodes, g, h)
  -- Of two children the sums of one are computed; those of the other are what its parent's leave.
  local asked, vectors = {}, {}
  for _, node in ipairs(nodes) do
    if node.sibling == nil or node.is_smaller then
      asked[#asked + 1] = node
      vectors[#vectors + 1] = (g * node.rows):reshape { 1, -1 }
      vectors[#vectors + 1] = (h * node.rows):reshape { 1, -1 }
    end
  end
  local all = sums_of(self, sources, ops.concat(vectors, 0))
  for i, node in ipairs(asked) do node.g, node.h = all[2 * i - 2], all[2 * i - 1] end
  for _, node in ipairs(nodes) do
    if node.g == nil then
      node.g, node.h = core.difference(node.parent.g, node.sibling.g), core.difference(node.parent.h, node.sibling.h)
    end
  end
end

-- Divides nodes where that is worth it; gives their children.
local function divide(self, sources, nodes)
  local by_source, children = {}, {}
  for _, node in ipairs(nodes) do
    local best = best_split(self, node.g, node.h)
    if best then
      local s, column = 1, best.column
      while column >= sources[s].columns do column, s = column - sources[s].columns, s + 1 end
      by_source[s] = by_source[s] or {}
      table.insert(by_source[s], { node = node, column = column, bin = best.bin })
    end
  end
  for s, source in ipairs(sources) do
    local chosen = by_source[s]
    for i, side in ipairs(chosen and source.split(chosen) or {}) do
      local node = chosen[i].node
      node.party, node.split = source.party, side.number
      local left = node.rows * side.left
      local right = node.rows - left
      local left_is_smaller = ops.sum(left):item() <= ops.sum(right):item()
      node.left = { rows = left, parent = node, is_smaller = left_is_smaller }
      node.right = { rows = right, parent = node, is_smaller = not left_is_smaller }
      node.left.sibling, node.right.sibling = node.right, node.left
      table.insert(children, node.left)
      table.insert(children, node.right)
    end
  end
  return children
end

-- The value of a leaf, from its exact sums.
local function leaf_value(self, node, g, h)
  local both = core.times(ops.concat({ g:reshape { 1, -1 }, h:reshape { 1, -1 } }, 0), node.rows:reshape { 1, -1 })
  local sums = core.from_fixed(both, point):tolist()[1]
  return -sums[1] / (sums[2] + self.reg_lambda) * self.learning_rate
end

local function grow(self, sources, g, h, scores)
  local root = { rows = ops.ones_like(g) }
  local nodes = { root }
  for _ = 1, self.depth do
    if #nodes == 0 then break end
    add_sums(self, sources, nodes, g, h)
    nodes = divide(self, sources, nodes)
  end
  -- What is kept of a node, and the scores of its rows.
  local function kept(node)
    if node.left then
      return { party = node.party, split = node.split, left = kept(node.left), right = kept(node.right) }
    end
    local value = leaf_value(self, node, g, h)
    scores = scores + node.rows:astype(f64) * value
    return { value = value }
  end
  local tree = kept(root)
  return tree, scores
end

local function lead(self, x, links, y)
  y = columns.labels("fit", y, self.objective == "binary", "objective = \"regression\" takes any numbers")
  if self.objective == "regression" and ops.max(ops.abs(y)):item() > 1024 then
    fail("fit", "labels must lie within 1024 of 0", "divide them by their standard deviation first")
  end
  local n = y.size
  x = columns.checked("fit", x, n, true)
  local sources = {}
  if x then sources[1] = own_source(self, x) end
  local followers = products.others(links, self._dealer)
  local dealer = #followers > 0 and products.link_of("fit", links, self._dealer)
  for _, link in ipairs(followers) do sources[#sources + 1] = follower_source(self, link, dealer, n) end
  if #sources == 0 then fail("fit", "there are no columns: the leader has none, and there are no followers") end
  self.trees, self.splits, self._followers = {}, {}, followers
  local scores = ops.zeros_like(y)
  for i = 1, self.rounds do
    local g, h = derivatives[self.objective](scores, y)
    self.trees[i], scores = grow(self, sources, core.to_fixed(g, point), core.to_fixed(h, point), scores)
  end
  for _, link in ipairs(followers) do link:send("end", {}) end
  if dealer then dealer:send("end", {}) end
end

-- Follower. --------------------------------------------------------------------------------------------------------

local function follow(self, x, links)
  if x == nil then fail("fit", "a follower needs columns") end
  x = columns.checked("fit", x, nil, false)
  local leader = products.link_of("fit", links, self._leader)
  local dealer = products.link_of("fit", links, self._dealer)
  local numbers, edges = binned(x, self.bins)
  leader:send("columns", { rows = x.shape[1], columns = x.shape[2], bins = self.bins })
  -- A row of zeros and ones for each bin of each column.
  local places = ops.arange(self.bins):astype(i64):reshape { 1, self.bins, 1 }
  local indicators = ops.equal(numbers:reshape { x.shape[2], 1, -1 }, places):astype(i64):reshape { x.shape[2] * self.bins, -1 }
  local owner = products.owner(leader, dealer, indicators, 0)
  self.splits = {}
  while true do
    local values, kind = leader:receive()
    if kind == "end" then return end
    if kind == "product" then
      if values.share ~= nil then fail("fit", ("'%s' has sent a share that is not expected"):format(leader.peer)) end
      leader:send("share", { values = owner:answer(leader, values) })
    elseif kind == "splits" then
      local left = {}
      for i, pair in ipairs(messages.tensor(leader, values, "wanted", i64, { -1, 2 }):tolist()) do
        local column, bin = pair[1], pair[2]
        if column < 0 or column >= x.shape[2] or bin < 0 or bin >= edges[column + 1].size then
          fail("fit", ("'%s' asks for a split at column %d, bin %d, which are not there"):format(leader.peer, column, bin))
        end
        self.splits[#self.splits + 1] = { column = column, threshold = edges[column + 1][bin]:item() }
        left[i] = ops.less_equal(numbers[column], bin):reshape { 1, -1 }
      end
      leader:send("sides", { left = #left == 1 and left[1] or ops.concat(left, 0) })
    else
      fail("fit", ("'%s' has sent '%s', which a follower does not know"):format(leader.peer, kind))
    end
  end
end

--- Grows the trees. x: the own columns, floating (n, columns); nil for a leader that has none. y: the labels (n,), of the leader. links:
--- the links to the other parties by name; nil for a leader that has all columns.
---     > trees = ms.federated.vertical.BoostedTrees { rounds = 2, objective = "regression" }
---     > trees:fit(ms.tensor { { 0.0 }, { 1.0 }, { 2.0 }, { 3.0 } }, ms.tensor { 0.0, 0.0, 1.0, 1.0 })
---     > #trees.trees --> 2
function BoostedTrees:fit(x, y, links)
  x, y, links = arguments.named("fit", take_fit, x, y, links)
  links = links or {}
  return messages.guarded(links, self.role == "follower" and follow or lead, self, x, links, y)
end

-- Which rows lie on the left side of splits: (splits, n), bool.
local function sides_of(splits, x)
  if #splits == 0 then return nil end
  local left = {}
  for i, split in ipairs(splits) do left[i] = ops.less_equal(x[{ ms.slice(), split.column }], split.threshold):reshape { 1, -1 } end
  return #left == 1 and left[1] or ops.concat(left, 0)
end

local function answer_prediction(self, x, links)
  local leader = products.link_of("predict", links, self._leader)
  x = columns.checked("predict", x, nil, false)
  leader:receive "predict"
  local left = sides_of(self.splits, x) or ops.zeros({ 0, x.shape[1] }, ms.bool)
  leader:send("sides", { rows = x.shape[1], left = left })
end

local function ask_prediction(self, x, links)
  local followers = products.others(links, self._dealer)
  local n, left = x and x.shape[1], {}
  for _, link in ipairs(followers) do link:send("predict", {}) end
  for _, link in ipairs(followers) do
    local values = link:receive "sides"
    local rows = messages.integer(link, values, "rows", n or 0, n or 1 << 31)
    n, left[link.peer] = rows, messages.tensor(link, values, "left", ms.bool, { -1, rows })
  end
  if n == nil then fail("predict", "there are no columns: the leader has none, and there are no followers") end
  local own = x and sides_of(self.splits, x)
  local scores = ops.zeros({ n }, f64)
  local function add(node, rows)
    if node.value then
      scores = scores + rows:astype(f64) * node.value
      return
    end
    local sides = own
    if node.party then
      sides = left[node.party] or fail("predict", ("the trees have splits of a party '%s', to which there is no link"):format(node.party))
    end
    if sides == nil or node.split > sides.shape[1] then fail("predict", ("a split of '%s' is missing"):format(node.party
      or "the leader")) end
    local on_left = ops.logical_and(rows, sides[node.split - 1])
    add(node.left, on_left)
    add(node.right, ops.logical_and(rows, ops.logical_not(on_left)))
  end
  for _, tree in ipairs(self.trees) do add(tree, ops.ones({ n }, ms.bool)) end
  return self.objective == "binary" and ops.sigmoid(scores) or scores
end

--- Predictions (n,) for new rows, at the leader: probabilities of label 1 with the objective "binary". Followers call it at the same time,
--- with their columns and links, and get nothing; the leader gets to know on which side of each of their splits each row lies.
---     > trees = ms.federated.vertical.BoostedTrees { rounds = 2, objective = "regression", reg_lambda = 0, learning_rate = 1 }
---     > x = ms.tensor { { 0.0 }, { 1.0 }, { 2.0 }, { 3.0 } }
---     > trees:fit(x, ms.tensor { 0.0, 0.0, 1.0, 1.0 })
---     > trees:predict(x):tolist()[4] --> 1.0
function BoostedTrees:predict(x, links)
  x, links = arguments.named("predict", take_predict, x, links)
  links = links or {}
  if self.role == "follower" then return messages.guarded(links, answer_prediction, self, x, links) end
  x = columns.checked("predict", x, nil, true)
  return messages.guarded(links, ask_prediction, self, x, links)
end

local kept_fields = { "role", "rounds", "depth", "bins", "learning_rate", "reg_lambda", "gamma", "min_child_weight", "objective" }

--- Writes this party's half of the trees to a JSON file: at the leader the trees with its splits, at a follower its splits.
---     > trees = ms.federated.vertical.BoostedTrees { rounds = 1 }
---     > trees:fit(ms.tensor { { 0.0 }, { 1.0 } }, ms.tensor { 0, 1 })
---     > trees:save "/tmp/lunaria_trees.json"
---     > #ms.federated.vertical.BoostedTrees.load("/tmp/lunaria_trees.json").trees --> 1
---     > (os.remove "/tmp/lunaria_trees.json") --> true
function BoostedTrees:save(path)
  local content = { trees = self.trees, splits = self.splits, leader = self._leader, dealer = self._dealer }
  for _, name in ipairs(kept_fields) do content[name] = self[name] end
  local file, problem = io.open(path, "wb")
  if not file then fail("save", ("%s cannot be written: %s"):format(tostring(path), problem)) end
  file:write(ms.json.encode(content))
  file:close()
end

-- A node as it was written; depth: how deep it may be.
local function checked_node(node, depth, place)
  if type(node) ~= "table" or depth < 0 then fail("load", place .. " holds no tree") end
  if math.type(node.value) then return { value = node.value + 0.0 } end
  local split, party = math.tointeger(node.split), node.party
  if not split or split < 1 or party ~= nil and type(party) ~= "string" then fail("load", place .. " holds a node without a split") end
  local left, right = checked_node(node.left, depth - 1, place), checked_node(node.right, depth - 1, place)
  return { split = split, party = party, left = left, right = right }
end

--- The half of the trees that save wrote to a file.
---     > (pcall(ms.federated.vertical.BoostedTrees.load, "/no/such.json")) --> false
function BoostedTrees.load(path)
  local file, problem = io.open(path, "rb")
  if not file then fail("load", ("%s cannot be read: %s"):format(tostring(path), problem)) end
  local ok, content = pcall(ms.json.decode, file:read "a")
  file:close()
  if not ok or type(content) ~= "table" or type(content.trees) ~= "table" or type(content.splits) ~= "table" then
    fail("load", path .. " holds no boosted trees")
  end
  local settings = { leader = content.leader, dealer = content.dealer }
  for _, name in ipairs(kept_fields) do settings[name] = content[name] end
  local model = BoostedTrees(settings)
  for i, tree in ipairs(content.trees) do model.trees[i] = checked_node(tree, model.depth, path) end
  for i, split in ipairs(content.splits) do
    local column = type(split) == "table" and math.tointeger(split.column)
    if not column or column < 0 or not math.type(split.threshold) then fail("load", path .. " holds a split without a column") end
    model.splits[i] = { column = column, threshold = split.threshold + 0.0 }
  end
  return model
end

return BoostedTrees
