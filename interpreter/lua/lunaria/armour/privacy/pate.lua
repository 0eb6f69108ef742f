-- ms.armour.privacy.PATE: labels by noisy votes of teachers that were trained on disjoint parts of private data (Papernot and others 2017,
-- 2018), and what these labels have cost.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local released = require "lunaria.armour.privacy.released"
local renyi = require "lunaria.armour.privacy.renyi"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

-- One row changes one teacher, and so two counts by 1: an L2 sensitivity of sqrt(2), whose divergence of order a is a / sigma^2.
local function plain_divergence(order, sigma) return order / (sigma * sigma) end

-- The logarithm of a bound of the probability that noise changes the winner: half the sum of erfc((n1 - n) / (2 sigma)) over the others.
local function log_change(counts, sigma)
  local winner = ops.argmax(counts, 0):item()
  local gaps = (counts[winner] - counts) / (2 * sigma)
  local others = ops.not_equal(ops.arange(counts.size), winner)
  -- erfc(x) = 2 P(Z > x sqrt(2)), by its logarithm because a clear vote leaves next to nothing.
  local logs = ops.log_ndtr(-gaps * math.sqrt(2))
  return math.min(0.0, ops.logsumexp(ops.where(others, logs, -math.huge), 0):item())
end

-- The divergence of one answer for a vote that is known (Papernot and others 2018, theorem 6 with their proposition 10), or that of any
-- vote where this is less or the theorem says nothing.
local function divergence_of_vote(order, sigma, log_q)
  local plain = plain_divergence(order, sigma)
  if log_q == -math.huge then return 0.0 end
  local second = sigma * math.sqrt(-log_q)
  local first = second + 1
  if second <= 1 or order > first then return plain end
  local e1, e2 = first / (sigma * sigma), second / (sigma * sigma)
  local limit = (second - 1) * e2 - second * (math.log(first / (first - 1)) + math.log(second / (second - 1)))
  if log_q > limit or log_q + e2 >= 0 then return plain end
  local keeps = ops.log1p(ms.tensor(-math.exp(log_q), f64)):item()
  local ratio = ops.log1p(ms.tensor(-math.exp((log_q + e2) * (second - 1) / second), f64)):item()
  local kept = keeps + (order - 1) * (keeps - ratio)
  local changed = log_q + (order - 1) * (e1 - log_q / (first - 1))
  local most = math.max(kept, changed)
  local bound = (most + math.log(math.exp(kept - most) + math.exp(changed - most))) / (order - 1)
  return math.max(0.0, math.min(plain, bound))
end

local PATE = class.define(nil, "PATE", "sigma, threshold=nil, threshold_sigma=nil, seed=nil",
  [[Labels by votes of teachers with Gaussian noise (GNMax). sigma: the standard deviation of the noise on each class's number of votes.
threshold: a query is only answered where the largest number of votes, with noise of threshold_sigma, reaches it (confident GNMax). seed: of
the noise; without one it is secure.

pate:answer(votes) takes (queries, classes) numbers of votes and gives classes; pate:epsilon(delta) what all answers have cost.

  > pate = ms.armour.privacy.PATE(10.0, { seed = 1 })
  > pate:answer(ms.tensor { { 2, 240, 8 }, { 200, 30, 20 } }):tolist()[1] --> 1]])
PATE._called = "vote"

function PATE:setup(a)
  self.sigma = check.number_positive("PATE", "sigma", a.sigma) + 0.0
  if (a.threshold == nil) ~= (a.threshold_sigma == nil) then
    fail("PATE", "threshold and threshold_sigma go together: one of them is missing")
  end
  if a.threshold ~= nil then
    self.threshold = check.finite("PATE", "threshold", a.threshold) + 0.0
    self.threshold_sigma = check.number_positive("PATE", "threshold_sigma", a.threshold_sigma) + 0.0
  end
  self._uniform = released.uniform("PATE", a.seed)
  self._plain, self._of_votes = {}, {}
  for i = 1, #renyi.default_orders do self._plain[i], self._of_votes[i] = 0.0, 0.0 end
  self.queries, self.answered = 0, 0
end

--- Classes by noisy votes: int32 (queries,), -1 where too few agreed. votes: a tensor (queries, classes) of numbers of votes.
---     > pate = ms.armour.privacy.PATE(5.0, { threshold = 150, threshold_sigma = 10.0, seed = 1 })
---     > pate:answer(ms.tensor { { 90, 85, 75 } }):tolist()[1] --> -1
function PATE:answer(votes)
  if not ms.is_tensor(votes) or votes.ndim ~= 2 or votes.shape[2] < 2 then
    fail("answer", "votes must be a tensor (queries, classes), got " .. describe(votes))
  end
  votes = votes:astype(f64)
  local is_count = ops.logical_and(ops.isfinite(votes), ops.equal(votes, ops.floor(votes)))
  if not ops.all(is_count):item() then fail("answer", "numbers of votes must be whole numbers") end
  if votes.size > 0 and ops.min(votes):item() < 0 then fail("answer", "numbers of votes must not be negative") end
  local n, classes = votes.shape[1], votes.shape[2]
  if n == 0 then return ms.zeros({ 0 }, ms.int32) end
  local noise = released.normal(self._uniform, n * classes):reshape { n, classes } * self.sigma
  local labels = ops.argmax(votes + noise, 1):astype(ms.int32)
  local answers = {}
  if self.threshold then
    local most = ops.amax(votes, 1) + released.normal(self._uniform, n) * self.threshold_sigma
    local agreed = ops.greater_equal(most, self.threshold)
    labels, answers = ops.where(agreed, labels, -1):astype(ms.int32), agreed:tolist()
  end
  for i = 1, n do self:_charge(votes[i - 1], answers[i] ~= false) end
  return labels
end

-- The cost of one query. Asking whether enough agree has a sensitivity of 1.
function PATE:_charge(counts, is_answered)
  self.queries = self.queries + 1
  if is_answered then self.answered = self.answered + 1 end
  local log_q = is_answered and log_change(counts, self.sigma)
  for i, order in ipairs(renyi.default_orders) do
    local asked = self.threshold and order / (2 * self.threshold_sigma ^ 2) or 0.0
    local plain = is_answered and plain_divergence(order, self.sigma) or 0.0
    local of_vote = is_answered and divergence_of_vote(order, self.sigma, log_q) or 0.0
    self._plain[i], self._of_votes[i] = self._plain[i] + asked + plain, self._of_votes[i] + asked + of_vote
  end
end

--- What the answers so far have cost at a delta. data_dependent: true (default) counts clear votes as cheaper, which is the true cost but
--- itself tells of the data and is not to be published; false is the cost of any votes.
---     > pate = ms.armour.privacy.PATE(40.0, { seed = 1 })
---     > labels = pate:answer(ms.tensor { { 250, 0 } })
---     > pate:epsilon(1e-5) < pate:epsilon(1e-5, { data_dependent = false }) --> true
function PATE:epsilon(delta, data_dependent)
  delta, data_dependent = arguments.named("epsilon", { "delta", "data_dependent" }, delta, data_dependent)
  delta = check.number("epsilon", "delta", delta)
  if not (delta > 0 and delta < 1) then fail("epsilon", ("delta must be above 0 and below 1, got %s"):format(tostring(delta))) end
  if data_dependent ~= nil then check.boolean("epsilon", "data_dependent", data_dependent) end
  if self.queries == 0 then return 0.0 end
  return (renyi.epsilon(renyi.default_orders, data_dependent == false and self._plain or self._of_votes, delta, "tight"))
end

return { PATE = PATE }
