-- ms.federated.vertical.LogisticRegression: over parties that have different columns of the same rows. Gradients of a follower's weights
-- are products of its columns with the leader's residuals, in additive shares: residuals, which would tell labels, are never shown.
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

-- Bits behind the point: of columns, of residuals, and of scores.
local column_point, residual_point, score_point = 20, 36, 32

local LogisticRegression = class.define(nil, "LogisticRegression",
  "role=\"leader\", epochs=10, batch_size=256, learning_rate=0.1, weight_decay=0.0, leader=\"leader\", dealer=\"dealer\"",
  [[Logistic regression over vertical parties: a leader, which has the labels and perhaps columns, followers, which have other columns of
  the same rows, and a dealer of random numbers (ms.federated.vertical.deal), which has no data. All call fit with rows in the same order,
  as ms.federated.vertical.psi gives it, and their links to the others by name.

role: "leader" or "follower"; the other settings are those of the leader. epochs: passes over the rows. batch_size: rows of a step. Each
step is one of gradient descent on a batch, the batches in the order of the rows. learning_rate; weight_decay: of the L2 penalty, not of
the bias, which is the leader's. Columns should be of about 1 in size, such as standardised ones. After fit each party has the weights of
its own columns: model.weights (columns,), and the leader model.bias.

Columns are rounded to 2^-20, residuals to 2^-36, products of them are exact. Who learns what:
- the leader: for each row, in each epoch, the sum of the followers' scores, with one follower its score; what the scores of many epochs
  tell of columns is not hidden; how many columns each follower has;
- a follower: the gradients of its own weights, sums over a batch, which must have more rows than the follower has columns (else they
  could be solved for residuals, and it refuses); not labels, residuals, scores or other columns;
- the dealer: the sizes; it must work with none of the others.

  > model = ms.federated.vertical.LogisticRegression { epochs = 200, learning_rate = 1.0 }
  > x = ms.tensor { { -2.0 }, { -1.0 }, { 1.0 }, { 2.0 } }
  > model:fit(x, ms.tensor { 0, 0, 1, 1 })
  > model:predict(x):tolist()[4] > 0.9 --> true]])
LogisticRegression._called = "model"

function LogisticRegression:setup(a)
  local where = "LogisticRegression"
  self.role = check.choice(where, "role", a.role, { "leader", "follower" })
  self.epochs, self.batch_size = check.positive(where, "epochs", a.epochs), check.positive(where, "batch_size", a.batch_size)
  self.learning_rate = check.number_positive(where, "learning_rate", a.learning_rate) + 0.0
  self.weight_decay = check.number_not_negative(where, "weight_decay", a.weight_decay) + 0.0
  if type(a.leader) ~= "string" or type(a.dealer) ~= "string" then fail(where, "leader and dealer are names, texts") end
  self._leader, self._dealer = a.leader, a.dealer
end

function LogisticRegression:__tostring() return ("LogisticRegression<%s>"):format(self.role) end

local function rounded(x) return core.from_fixed(core.to_fixed(x, column_point), column_point) end

-- Rows from and up to below which each batch goes.
local function batches_of(n, size)
  local list = {}
  for from = 0, n - 1, size do list[#list + 1] = { from, math.min(n, from + size) } end
  return list
end

local function rows(x, batch) return x[{ ms.slice(batch[1], batch[2]) }] end

local function step(self, gradient)
  self.weights = self.weights - (gradient + self.weights * self.weight_decay) * self.learning_rate
end

-- Leader. ----------------------------------------------------------------------------------------------------------

-- The sum of the followers' scores of so many rows.
local function scores_of(followers, count)
  local sum = ops.zeros({ count }, i64)
  for _, link in ipairs(followers) do
    sum = core.sum(sum, messages.tensor(link, link:receive "scores", "scores", i64, { count }))
  end
  return core.from_fixed(sum, score_point)
end

local function begin(self, followers, n, batches)
  local askers = {}
  for b in ipairs(batches) do askers[b] = {} end
  if #followers == 0 then return askers end
  local dealer = self._dealer_link
  local names = {}
  for i, link in ipairs(followers) do names[i] = link.peer end
  dealer:send("zeros", { owners = table.concat(names, "\n") })
  for _, link in ipairs(followers) do
    link:send("begin", { rows = n, batch_size = self.batch_size, epochs = self.epochs, learning_rate = self.learning_rate,
      weight_decay = self.weight_decay })
    local count = messages.integer(link, link:receive "columns", "columns", 1, 1 << 20)
    for b, batch in ipairs(batches) do table.insert(askers[b], products.asker(link, dealer, count, batch[2] - batch[1], b - 1)) end
  end
  return askers
end

local function lead(self, x, links, y)
  local where = "fit"
  y = columns.labels(where, y, true)
  local n = y.size
  x = columns.checked(where, x, n, true)
  local followers = products.others(links, self._dealer)
  if not x and #followers == 0 then fail(where, "there are no columns: the leader has none, and there are no followers") end
  self._dealer_link = #followers > 0 and products.link_of(where, links, self._dealer) or nil
  x = x and rounded(x)
  self.weights, self.bias = ops.zeros({ x and x.shape[2] or 0 }, f64), 0.0
  local batches = batches_of(n, self.batch_size)
  local askers = begin(self, followers, n, batches)
  for _ = 1, self.epochs do
    for b, batch in ipairs(batches) do
      local count = batch[2] - batch[1]
      local scores = scores_of(followers, count) + self.bias
      if x then scores = scores + ops.matmul(rows(x, batch), self.weights) end
      local residuals = (ops.sigmoid(scores) - rows(y, batch)) / count
      local fixed = core.to_fixed(residuals, residual_point):reshape { 1, count }
      for _, asker in ipairs(askers[b]) do asker:give(fixed) end
      if x then step(self, ops.matmul(residuals, rows(x, batch))) end
      self.bias = self.bias - self.learning_rate * ops.sum(residuals):item()
    end
  end
  for _, link in ipairs(followers) do link:send("end", {}) end
  if self._dealer_link then self._dealer_link:send("end", {}) end
  self._dealer_link = nil
end

-- Follower. --------------------------------------------------------------------------------------------------------

-- Scores of rows as integers, with numbers that sum up to 0 over all followers.
local function masked_scores(self, x, number)
  local scores = core.to_fixed(ops.matmul(x, self.weights), score_point)
  return core.sum(scores, products.zero_share(self._seeds, number, x.shape[1]))
end

-- Gradients by as many weights as a batch has rows could be solved for its residuals, whose signs are the labels.
local function check_sizes(x, batches)
  for i, batch in ipairs(batches) do
    local count = batch[2] - batch[1]
    if count <= x.shape[2] then
      fail("fit", ("batch %d has %d rows for %d columns of this follower: its gradients would tell the leader's labels"):format(i, count,
        x.shape[2]), "the leader's batch_size, and what is left for the last batch, must be larger than the columns of each follower")
    end
  end
end

local function follow(self, x, links)
  x = columns.checked("fit", x, nil, false)
  local leader = products.link_of("fit", links, self._leader)
  local dealer = products.link_of("fit", links, self._dealer)
  local values = dealer:receive "zeros"
  self._seeds = { own = messages.text(dealer, values, "own", 32), next = messages.text(dealer, values, "next", 32) }
  local settings = leader:receive "begin"
  messages.integer(leader, settings, "rows", x.shape[1], x.shape[1])
  local size = messages.integer(leader, settings, "batch_size", 1, 1 << 40)
  local epochs = messages.integer(leader, settings, "epochs", 1, 1 << 40)
  self.learning_rate, self.weight_decay = messages.number(leader, settings, "learning_rate"), messages.number(leader, settings,
    "weight_decay")
  local batches, owners = batches_of(x.shape[1], size), {}
  check_sizes(x, batches)
  leader:send("columns", { columns = x.shape[2] })
  local fixed = core.to_fixed(x, column_point)
  x = core.from_fixed(fixed, column_point)
  for b, batch in ipairs(batches) do
    owners[b] = products.owner(leader, dealer, rows(fixed, batch):transpose(1, 0):contiguous(), b - 1)
  end
  self.weights = ops.zeros({ x.shape[2] }, f64)
  for epoch = 1, epochs do
    for b, batch in ipairs(batches) do
      leader:send("scores", { scores = masked_scores(self, rows(x, batch), (epoch - 1) * #batches + b) })
      local asked = leader:receive "product"
      if asked.share == nil then fail("fit", ("'%s' has sent no share of the gradients"):format(leader.peer)) end
      step(self, core.from_fixed(owners[b]:answer(leader, asked)[0], column_point + residual_point))
    end
  end
  self._used = epochs * #batches
  leader:receive "end"
end

--- Fits the weights. x: the own columns, floating (n, columns); nil for a leader that has none. y: the labels (n,), 0 and 1, of the
--- leader. links: the links to the other parties by name; nil for a leader that has all columns.
---     > model = ms.federated.vertical.LogisticRegression { epochs = 1 }
---     > model:fit(ms.tensor { { -1.0 }, { 1.0 } }, ms.tensor { 0, 1 })
---     > model.weights.shape --> (1,)
function LogisticRegression:fit(x, y, links)
  x, y, links = arguments.named("fit", take_fit, x, y, links)
  links = links or {}
  return messages.guarded(links, self.role == "follower" and follow or lead, self, x, links, y)
end

local function predict(self, x, links)
  if self.weights == nil then fail("predict", "the model has no weights: fit comes first") end
  x = columns.checked("predict", x, nil, self.role == "leader")
  if x and x.shape[2] ~= self.weights.shape[1] then
    fail("predict", ("there are %d columns, and the model was fitted with %d"):format(x.shape[2], self.weights.shape[1]))
  end
  x = x and rounded(x)
  if self.role == "follower" then
    local leader = products.link_of("predict", links, self._leader)
    leader:receive "predict"
    self._used = self._used + 1
    leader:send("scores", { rows = x.shape[1], scores = masked_scores(self, x, self._used) })
    return nil
  end
  local followers = products.others(links, self._dealer)
  local n, sum = x and x.shape[1], nil
  for _, link in ipairs(followers) do link:send("predict", {}) end
  for _, link in ipairs(followers) do
    local values = link:receive "scores"
    n = messages.integer(link, values, "rows", n or 0, n or 1 << 40)
    local scores = messages.tensor(link, values, "scores", i64, { n })
    sum = sum and core.sum(sum, scores) or scores
  end
  local scores = (sum and core.from_fixed(sum, score_point) or ops.zeros({ n }, f64)) + self.bias
  if x then scores = scores + ops.matmul(x, self.weights) end
  return ops.sigmoid(scores)
end

--- The probabilities (n,) of label 1 for new rows, at the leader. Followers call it at the same time, with their columns and links, and get
--- nothing; the leader gets to know the sum of their scores of each row.
---     > model = ms.federated.vertical.LogisticRegression { epochs = 1 }
---     > model:fit(ms.tensor { { -1.0 }, { 1.0 } }, ms.tensor { 0, 1 })
---     > model:predict(ms.tensor { { 0.0 } }):tolist()[1] --> 0.5
function LogisticRegression:predict(x, links)
  x, links = arguments.named("predict", take_predict, x, links)
  links = links or {}
  return messages.guarded(links, predict, self, x, links)
end

return LogisticRegression
