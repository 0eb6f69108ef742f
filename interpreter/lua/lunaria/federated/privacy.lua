-- ms.federated.privacy: differential privacy of what clients send (local), of what a server makes of it (central), or of the sum that a
-- secure sum gives (distributed), with an account of all rounds that ends before the round that would pass the budget.
local ms = require "lunaria"
local accountants = require "lunaria.armour.privacy.accountants"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local core = require "lunaria.federated_compression"
local released = require "lunaria.armour.privacy.released"
local strategies = require "lunaria.federated.strategies.strategy"
local FixedPoint = require("lunaria.federated.secure.fixed_point").FixedPoint

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local M = {}

local function norm_of(x)
  local largest = ops.max(ops.abs(x))
  -- Squares of large numbers overflow.
  return ops.where(ops.greater(largest, 0.0), largest * ops.sqrt(ops.sum(ops.square(x / ops.maximum(largest, 1e-300)))), 0.0)
end

local function vector(where, x)
  if not ms.is_tensor(x) or x.ndim ~= 1 or x.size == 0 or not ops.is_floating_point(x) then
    fail(where, "x must be a floating tensor (n,), got " .. describe(x))
  end
  x = x:astype(f64)
  if not ops.all(ops.isfinite(x)):item() then fail(where, "x holds nan or infinity, which has no norm") end
  return x
end

--- A vector made shorter where its length is more than `norm`: a float64 tensor (n,), and whether it was changed. x: a tensor (n,).
---     > y, changed = ms.federated.privacy.clip(ms.tensor { 3.0, 4.0 }, 1.0)
---     > ("%.2f"):format(y[1]:item()), changed --> 0.80	true
function M.clip(x, norm)
  norm = check.number_positive("clip", "norm", arguments.named("clip", { "norm" }, norm)) + 0.0
  x = vector("clip", x)
  local length = norm_of(x):item()
  if length <= norm then return x, false end
  return x * (norm / length), true
end

local function normal_noise(where, seed, count, deviation)
  return released.normal(released.uniform(where, seed), count) * deviation
end

-- A budget over rounds, which the classes below have in common.
local function open_account(self, where, a)
  self.delta = check.number_positive(where, "delta", a.delta) + 0.0
  if self.delta >= 1 then fail(where, ("delta must be below 1, got %g"):format(self.delta)) end
  if a.max_eps ~= nil then self.max_eps = check.number_positive(where, "max_eps", a.max_eps) + 0.0 end
  self.accountant = accountants.Accountant { mechanism = a.mechanism }
end

-- An error where one more event would pass the budget.
local function must_fit(self, where, event)
  if not self.max_eps or self.accountant:steps_left(event, self.max_eps, self.delta, 1) > 0 then return end
  fail(where, ("the round would pass the budget: epsilon is %.4g of %g at delta %g"):format(self.accountant:epsilon(self.delta),
    self.max_eps, self.delta), "end the training here, or take more noise from the start")
end

local function epsilon_of(self) return self.accountant:epsilon(self.delta) end
local function rounds_left(self)
  return self.max_eps and self.accountant:steps_left(self:_event(), self.max_eps, self.delta) or math.huge
end

local LocalDP = class.define(nil, "LocalDP", "dp_eps, dp_delta=1e-5, dp_norm_clip=1.0, max_eps=nil, mechanism='prv'", [[Differential privacy
at the client (MindSpore Federated's DP_ENCRYPT): its update is clipped to the length dp_norm_clip and gets Gaussian noise for
(dp_eps, dp_delta) of this one round by the exact formula (Balle and Wang 2018); the sensitivity is twice the length, since one update
may become any other. All rounds of a client are accounted for together. max_eps: the budget over all rounds at dp_delta; the round that
would pass it is an error before anything is sent. mechanism: of the accountant.

  > private = ms.federated.privacy.LocalDP { dp_eps = 1.0, dp_delta = 1e-5, max_eps = 2.0 }
  > noisy = private:protect(ms.tensor { 0.5, 0.25 })
  > private:epsilon() <= 1.0001, private:rounds_left() --> true	2]])
M.LocalDP = LocalDP
LocalDP._called = "privacy"

function LocalDP:setup(a)
  local where = "LocalDP"
  self.eps = check.number_positive(where, "dp_eps", a.dp_eps) + 0.0
  self.norm = check.number_positive(where, "dp_norm_clip", a.dp_norm_clip) + 0.0
  open_account(self, where, { delta = a.dp_delta, max_eps = a.max_eps, mechanism = a.mechanism })
  self.noise_multiplier = accountants.analytic_gaussian(self.eps, self.delta)
  --- The standard deviation of the noise of an element.
  self.deviation = 2 * self.norm * self.noise_multiplier
end

function LocalDP:_event() return { noise_multiplier = self.noise_multiplier } end

--- The epsilon that all rounds so far have cost, at dp_delta.
---     > ms.federated.privacy.LocalDP({ dp_eps = 1.0 }):epsilon() --> 0.0
function LocalDP:epsilon() return epsilon_of(self) end

--- How many more rounds the budget allows; infinite without one.
---     > ms.federated.privacy.LocalDP({ dp_eps = 1.0 }):rounds_left() --> inf
function LocalDP:rounds_left() return rounds_left(self) end

--- An update with noise: a float64 tensor (n,). x: a tensor (n,). Options: seed, for tests; without one the noise is of the system's
--- cryptographic generator.
---     > private = ms.federated.privacy.LocalDP { dp_eps = 50.0 }
---     > private:protect(ms.randn(10), { seed = 1 }).shape --> (10,)
function LocalDP:protect(x, options)
  local where = "protect"
  local o = arguments.options(where, options, { seed = "number" }, "{ seed = 1 }")
  local clipped = M.clip(vector(where, x), self.norm)
  must_fit(self, where, self:_event())
  self.accountant:step(self:_event())
  return clipped + normal_noise(where, o.seed, clipped.size, self.deviation)
end

local AdaptiveClip = class.define(nil, "AdaptiveClip", "clip=0.1, quantile=0.5, learning_rate=0.2, deviation=nil", [[A clipping length that
follows a quantile of the lengths of updates (Andrew, Thakkar, McMahan and Ramaswamy 2021): each client tells by one bit whether its
update was within it, and the mean of the bits, with noise, moves it by exp(-learning_rate (mean - quantile)). deviation: of the noise on
the sum of the bits; by default a twentieth of the clients of a round. clip: the length to begin with.

  > adaptive = ms.federated.privacy.AdaptiveClip { clip = 1.0, learning_rate = 1.0 }
  > ("%.4f"):format(adaptive:update(1.0)) --> 0.6065]])
AdaptiveClip._called = "rule"
M.AdaptiveClip = AdaptiveClip

function AdaptiveClip:setup(a)
  local where = "AdaptiveClip"
  self.clip = check.number_positive(where, "clip", a.clip) + 0.0
  self.quantile = check.probability(where, "quantile", a.quantile) + 0.0
  self.learning_rate = check.number_positive(where, "learning_rate", a.learning_rate) + 0.0
  if a.deviation ~= nil then self.deviation = check.number_positive(where, "deviation", a.deviation) + 0.0 end
end

--- Moves the length by the share of updates that were within it, and gives it. share: a number, which noise may have moved out of 0 to 1.
---     > ms.federated.privacy.AdaptiveClip({ clip = 2.0 }):update(0.5) --> 2.0
function AdaptiveClip:update(share)
  self.clip = self.clip * math.exp(-self.learning_rate * (check.number("update", "share", share) - self.quantile))
  return self.clip
end

local CentralDP = class.define(strategies.Strategy, "CentralDP", "strategy, noise_multiplier, clip=1.0, clients=nil, population=nil, " ..
  "delta=1e-5, max_eps=nil, adaptive=nil, mechanism='prv', seed=nil, settings=nil", [[A strategy with differential privacy at the server
(DP-FedAvg, McMahan and others 2018): what each client has changed is clipped to the length clip and counts the same; their sum gets
Gaussian noise of noise_multiplier times clip, and is divided by the number of clients that is expected, not by how many came. The noisy
mean then goes through another strategy as the update of one client, which costs no further privacy. A client is what is protected.

strategy: that other one, such as FedAvg or FedAdam. clients: how many are expected in a round; by default the round's. population: how
many there are, of which each takes part with the same probability on its own; by default all take part. max_eps: the budget at delta;
the round that would pass it is an error before it begins. adaptive: an AdaptiveClip, whose noisy bits are paid for by a little more
noise. seed: of the noise, for tests; without one it comes from the system's cryptographic generator. mechanism: of the
accountant. settings: what configure gives beside the inner strategy's.

  > private = ms.federated.privacy.CentralDP { strategy = ms.federated.strategies.FedAvg(), noise_multiplier = 1.0, clip = 0.5, seed = 1 }
  > global = ms.federated.FeatureMap { w = ms.zeros { 2 } }
  > updates = { { id = 1, samples = 3, weights = ms.federated.FeatureMap { w = ms.ones { 2 } } } }
  > private:aggregate({ number = 1, clients = 1 }, global, updates).w.shape --> (2,)
  > ("%.3f"):format(private:epsilon()) --> 4.377]])
CentralDP._called = "strategy"
M.CentralDP = CentralDP

function CentralDP:setup(a)
  local where = "CentralDP"
  self.inner = strategies.of(where, a.strategy)
  self.noise_multiplier = check.number_positive(where, "noise_multiplier", a.noise_multiplier) + 0.0
  self.clip = check.number_positive(where, "clip", a.clip) + 0.0
  if a.clients ~= nil then self.clients = check.positive(where, "clients", a.clients) end
  if a.population ~= nil then
    self.population = check.positive(where, "population", a.population)
    if not self.clients then fail(where, "population needs clients, how many are expected in a round") end
    if self.clients > self.population then
      fail(where, ("clients is %d, and there are %d"):format(self.clients, self.population))
    end
  end
  if a.adaptive ~= nil and not class.is_a(a.adaptive, AdaptiveClip) then
    fail(where, "adaptive must be a ms.federated.privacy.AdaptiveClip, got " .. describe(a.adaptive))
  end
  self.adaptive, self.seed = a.adaptive, a.seed and check.integer(where, "seed", a.seed)
  if self.adaptive then self.clip = self.adaptive.clip end
  self.settings = strategies.check_settings(where, a.settings)
  self.client, self.prepare, self.after = self.inner.client, self.inner.prepare, self.inner.after
  open_account(self, where, a)
end

function CentralDP:_event()
  return { noise_multiplier = self.noise_multiplier, sample_rate = self.population and self.clients / self.population or 1.0 }
end

--- The epsilon that all rounds so far have cost, at delta.
---     > ms.federated.privacy.CentralDP({ strategy = ms.federated.strategies.FedAvg(), noise_multiplier = 1.0 }):epsilon() --> 0.0
function CentralDP:epsilon() return epsilon_of(self) end

--- How many more rounds the budget allows; infinite without one.
---     > ms.federated.privacy.CentralDP({ strategy = ms.federated.strategies.FedAvg(), noise_multiplier = 1.0 }):rounds_left() --> inf
function CentralDP:rounds_left() return rounds_left(self) end

--- The settings of a round, those of the inner strategy with the clipping length as clip. An error where the round would pass the budget.
---     > private = ms.federated.privacy.CentralDP { strategy = ms.federated.strategies.FedAvg(), noise_multiplier = 1.0 }
---     > private:configure({ number = 1, clients = 10 }).clip --> 1.0
function CentralDP:configure(round)
  must_fit(self, "configure", self:_event())
  local settings = self.inner:configure(round)
  for name, value in pairs(self.settings) do settings[name] = value end
  settings.clip = self.clip
  return settings
end

-- The noise of the sum where bits of the same clients get noise, too: together both cost what noise_multiplier says.
local function multiplier_of_sum(self, clients)
  if not self.adaptive then return self.noise_multiplier end
  local deviation = self.adaptive.deviation or clients / 20
  local rest = self.noise_multiplier ^ -2 - (2 * deviation) ^ -2
  if rest <= 0 then
    fail("aggregate", ("noise of %g on %d bits costs more than noise_multiplier %g allows"):format(deviation, clients,
      self.noise_multiplier), "AdaptiveClip { deviation = ... } above half of noise_multiplier")
  end
  return rest ^ -0.5, deviation
end

--- The new weights, privately. round: its number, seed, clients and population. global: the feature map that clients began with. updates:
--- what they sent.
---     > private = ms.federated.privacy.CentralDP { strategy = ms.federated.strategies.FedAvg(), noise_multiplier = 1.0, seed = 1 }
---     > global = ms.federated.FeatureMap { w = ms.zeros { 2 } }
---     > private:aggregate({ number = 1, clients = 2 }, global, {}).w.shape --> (2,)
function CentralDP:aggregate(round, global, updates)
  local where = "aggregate"
  must_fit(self, where, self:_event())
  local expected = self.clients or round.clients or #updates
  if not math.type(expected) or expected < 1 then fail(where, "a round has at least one client, got " .. describe(expected)) end
  local start, sum, within = global:vector(f64), nil, 0
  for _, update in ipairs(updates) do
    local change = update.weights:vector(f64)
    if self.inner.sends ~= "difference" then change = change - start end
    local clipped, was_changed = M.clip(change, self.clip)
    sum, within = sum and sum + clipped or clipped, within + (was_changed and 0 or 1)
  end
  local multiplier, deviation = multiplier_of_sum(self, expected)
  local seed = self.seed and self.seed + 2 * (round.number or 0)
  local noise = normal_noise(where, seed, start.size, multiplier * self.clip)
  local mean = ((sum or start * 0.0) + noise) / expected
  self.accountant:step(self:_event())
  if self.adaptive then
    -- A bit less 1/2 has the sensitivity 1/2.
    local told = within - #updates / 2 + normal_noise(where, seed and seed + 1, 1, deviation):item()
    self.clip = self.adaptive:update(told / expected + 0.5)
  end
  local weights = self.inner.sends == "difference" and mean or start + mean
  local update = { id = 1, samples = 1, weights = global:with_vector(weights), metrics = {}, extra = {}, staleness = 0 }
  return self.inner:aggregate(round, global, { update })
end

--- What a server that goes on needs: the inner strategy's state, the account, the clipping length.
---     > private = ms.federated.privacy.CentralDP { strategy = ms.federated.strategies.FedAvg(), noise_multiplier = 1.0 }
---     > #private:state().account.history --> 0
function CentralDP:state() return { inner = self.inner:state(), account = self.accountant:state(), clip = self.clip } end

--- Takes up what state gave. state: that table.
---     > private = ms.federated.privacy.CentralDP { strategy = ms.federated.strategies.FedAvg(), noise_multiplier = 1.0 }
---     > private:load_state(private:state())
function CentralDP:load_state(state)
  if type(state) ~= "table" or type(state.account) ~= "table" then
    fail("load_state", "a table that state() gave is expected, got " .. describe(state))
  end
  self.inner:load_state(state.inner or {})
  self.accountant:restore(state.account)
  self.clip = check.number_positive("load_state", "clip", state.clip) + 0.0
  if self.adaptive then self.adaptive.clip = self.clip end
end

--- Whole numbers with probabilities proportional to exp(-k^2 / (2 sigma^2)), drawn exactly (Canonne, Kamath and Steinke 2020): an int64
--- tensor (count,). sigma: above 0, at most 2^24. Options: seed, for tests; without one the draws are of the system's generator.
---     > noise = ms.federated.privacy.discrete_gaussian(1000, 2.0, { seed = 1 })
---     > noise.shape, math.abs(ms.ops.mean(noise:astype(ms.float64)):item()) < 0.3 --> (1000,)	true
function M.discrete_gaussian(count, sigma, options)
  local where = "discrete_gaussian"
  local o = arguments.options(where, options, { seed = "number" }, "{ seed = 1 }")
  return core.discrete_gaussian(check.positive(where, "count", count), check.number_positive(where, "sigma", sigma) + 0.0,
    o.seed and check.integer(where, "seed", o.seed))
end

local DistributedDP = class.define(nil, "DistributedDP", "code, clip, noise_multiplier, clients, delta=1e-5, max_eps=nil, mechanism='prv'",
  [[Differential privacy of a secure sum, by noise that each client adds in the ring (Kairouz, Liu and Steinke 2021): neither the server nor
any client sees a sum with less than the noise of all. code: a FixedPoint of weight 1; clip: the length to which a vector is clipped;
noise_multiplier: of the sum, over the sensitivity; clients: how many are in the sum at least; those that drop out take their noise along,
so that each gives the noise of a sum of so many. Sums of discrete Gaussians of at least the deviation that is asked for are accounted as
the Gaussian mechanism, which they approach far beyond any delta in use; deviations in the ring below 4 are refused. How many clients are
in the sum is told without noise. max_eps: the budget at delta; the round that would pass it is an error. mechanism: of the accountant.

  > code = ms.federated.secure.FixedPoint { fraction_bits = 16, clip = 16, clients = 100 }
  > private = ms.federated.privacy.DistributedDP { code = code, clip = 1.0, noise_multiplier = 1.0, clients = 10 }
  > private:encode(ms.randn(20)).shape --> (21,)]])
M.DistributedDP = DistributedDP
DistributedDP._called = "privacy"

function DistributedDP:setup(a)
  local where = "DistributedDP"
  if not class.is_a(a.code, FixedPoint) then fail(where, "code must be a ms.federated.secure.FixedPoint, got " .. describe(a.code)) end
  if a.code.weight ~= 1 then fail(where, "code must have weight 1: clients count the same, or the largest weight would need the noise") end
  self.code, self.norm = a.code, check.number_positive(where, "clip", a.clip) + 0.0
  self.noise_multiplier = check.number_positive(where, "noise_multiplier", a.noise_multiplier) + 0.0
  self.clients = check.positive(where, "clients", a.clients)
  open_account(self, where, a)
end

function DistributedDP:_event() return { noise_multiplier = self.noise_multiplier } end

--- The epsilon that all rounds so far have cost, at delta.
---     > code = ms.federated.secure.FixedPoint()
---     > ms.federated.privacy.DistributedDP({ code = code, clip = 1.0, noise_multiplier = 1.0, clients = 2 }):epsilon() --> 0.0
function DistributedDP:epsilon() return epsilon_of(self) end

--- How many more rounds the budget allows; infinite without one.
---     > code = ms.federated.secure.FixedPoint()
---     > ms.federated.privacy.DistributedDP({ code = code, clip = 1.0, noise_multiplier = 1.0, clients = 2 }):rounds_left() --> inf
function DistributedDP:rounds_left() return rounds_left(self) end

-- The deviation of one client's noise in the ring. Rounding makes a vector of n elements longer by at most sqrt(n) / 2 steps.
function DistributedDP:_deviation(size)
  local sensitivity = self.norm * 2.0 ^ self.code.fraction_bits + math.sqrt(size) / 2
  return self.noise_multiplier * sensitivity / math.sqrt(self.clients)
end

--- The elements of a vector with the client's noise, an int64 tensor (n + 1,), and how many of its values were clipped by the code. x: a
--- tensor (n,), which is clipped to the length clip first. Options: seed, for tests.
---     > code = ms.federated.secure.FixedPoint { fraction_bits = 16, clip = 16, clients = 100 }
---     > private = ms.federated.privacy.DistributedDP { code = code, clip = 1.0, noise_multiplier = 1.0, clients = 10 }
---     > private:encode(ms.zeros(3), { seed = 1 })[3]:item() --> 1
function DistributedDP:encode(x, options)
  local where = "encode"
  local o = arguments.options(where, options, { seed = "number" }, "{ seed = 1 }")
  local clipped = M.clip(vector(where, x), self.norm)
  local sigma = self:_deviation(clipped.size)
  if sigma < 4 then
    fail(where, ("the noise of a client has the deviation %.3g in the ring, less than 4"):format(sigma), "more fraction_bits")
  end
  -- Ten deviations, as far as noise ever comes, beside the vector.
  if self.norm + 10 * sigma * self.code:step() > self.code.clip then
    fail(where, ("clip of the code is %g, less than a vector of length %g with ten deviations of its noise (%.3g)"):format(self.code.clip,
      self.norm, sigma * self.code:step()), "FixedPoint { clip = ... }")
  end
  local elements, count = self.code:encode(clipped)
  local noise = core.discrete_gaussian(clipped.size, sigma, o.seed and check.integer(where, "seed", o.seed))
  return elements + ops.concat({ noise, ops.zeros({ 1 }, ms.int64) }, 0), count
end

--- Enters the round into the account, and gives the noisy mean, a float64 tensor (n,), and how many clients are in it. sum: an int64 tensor
--- (n + 1,), as a secure sum gives it. An error where the round would pass the budget, or has fewer clients than their noise is made for.
---     > code = ms.federated.secure.FixedPoint { fraction_bits = 16, clip = 64, clients = 100 }
---     > private = ms.federated.privacy.DistributedDP { code = code, clip = 1.0, noise_multiplier = 1.0, clients = 1 }
---     > private:decode(private:encode(ms.zeros(3), { seed = 1 })).shape --> (3,)
function DistributedDP:decode(sum)
  local mean, count = self.code:decode(sum)
  if count < self.clients then
    fail("decode", ("the sum has %d clients, and the noise is made for at least %d"):format(count, self.clients))
  end
  must_fit(self, "decode", self:_event())
  self.accountant:step(self:_event())
  return mean, count
end

return M
