-- Differential privacy of rounds: budgets that end before the round that would pass them, noise as large as the account says, adaptive
-- clipping, noise in the ring. Three seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, f64 = ms.ops, ms.float64
local privacy, secure, strategies = ms.federated.privacy, ms.federated.secure, ms.federated.strategies
local accountants = ms.armour.privacy.accountants

local function fails(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "no error")
  assert(tostring(message):find(words, 1, true), tostring(message))
end

local function deviation(x) return math.sqrt(ops.mean(x * x):item()) end
local function about(got, expected, share) assert(math.abs(got / expected - 1) < share, ("%g, expected %g"):format(got, expected)) end

t.test("vectors are made shorter, not others", function()
  local y, changed = privacy.clip(ms.tensor { 3.0, 4.0 }, 10.0)
  t.equal(changed, false)
  t.equal(y:tolist()[1], 3.0)
  t.near(privacy.clip(ms.tensor({ 3e200, 4e200 }, f64), 1.0), ms.tensor({ 0.6, 0.8 }, f64), 1e-12)
  fails("nan or infinity", privacy.clip, ms.tensor { 0 / 0 }, 1.0)
end)

t.test("local: noise of the exact formula, and no round past the budget", function()
  local private = privacy.LocalDP { dp_eps = 2.0, dp_delta = 1e-5, dp_norm_clip = 0.5, max_eps = 5.0 }
  about(private.deviation, accountants.analytic_gaussian(2.0, 1e-5), 1e-12)
  local left = private:rounds_left()
  assert(left >= 3)
  for _ = 1, left do about(deviation(private:protect(ms.zeros(2000))), private.deviation, 0.1) end
  assert(private:epsilon() <= 5.0)
  fails("the round would pass the budget", private.protect, private, ms.zeros(3))
  private.accountant:step { noise_multiplier = private.noise_multiplier }
  assert(private:epsilon() > 5.0)
  fails("dp_eps", privacy.LocalDP, { dp_eps = 0.0 })
end)

local global = ms.federated.FeatureMap { w = ops.zeros({ 500 }, f64) }

local function update(id, first)
  local vector = ops.zeros({ 500 }, f64)
  vector[0] = first
  return { id = id, samples = 10 * id, weights = global:with_vector(vector), metrics = {}, extra = {}, staleness = 0 }
end

local function central(more)
  local a = { strategy = strategies.FedAvg(), noise_multiplier = 1.5, clip = 2.0, clients = 10, seed = 3 }
  for name, value in pairs(more or {}) do a[name] = value end
  return privacy.CentralDP(a)
end

t.test("central: clients count the same and are clipped, noise is as accounted, the budget ends the training", function()
  local private, round = central { population = 200, max_eps = 1.0 }, { number = 1, clients = 10 }
  local map = private:aggregate(round, global, { update(1, 1000.0), update(9, 1.0) })
  -- (2 + 1) / 10, and noise of 1.5 * 2 / 10.
  assert(math.abs(map.w[0]:item() - 0.3) < 1.2)
  about(deviation(map.w), 0.3, 0.15)
  local own = accountants.Accountant()
  own:step { noise_multiplier = 1.5, sample_rate = 0.05 }
  t.equal(private:epsilon(), own:epsilon(1e-5))
  local other = central { population = 200, max_eps = 1.0 }
  other:load_state(private:state())
  t.equal(other:epsilon(), private:epsilon())
  local same = central():aggregate(round, global, { update(1, 1000.0), update(9, 1.0) })
  t.equal(ops.all(ops.equal(same.w, map.w)):item(), true)
  private.accountant:step { noise_multiplier = 1.5, sample_rate = 0.05, steps = private:rounds_left() }
  assert(private:epsilon() <= 1.0)
  fails("would pass the budget", private.configure, private, { number = 9, clients = 10 })
  fails("would pass the budget", private.aggregate, private, { number = 9, clients = 10 }, global, {})
end)

t.test("central: it goes through any strategy", function()
  local private = central { strategy = strategies.FedAvgM { momentum = 0.5 }, noise_multiplier = 1e-6, clip = 100.0, clients = 1 }
  local map = global
  for number = 1, 2 do
    local sent = { id = 1, samples = 3, weights = global:with_vector(map.w + 1.0), metrics = {}, extra = {}, staleness = 0 }
    map = private:aggregate({ number = number, clients = 1 }, map, { sent })
  end
  t.near(map.w, ops.zeros({ 500 }, f64) + 2.5, 2e-3)
  t.equal(private:configure({ number = 3, clients = 1 }).clip, 100.0)
end)

t.test("adaptive clipping finds the quantile", function()
  local adaptive = privacy.AdaptiveClip { clip = 0.01, quantile = 0.5, learning_rate = 0.3, deviation = 2.0 }
  local private, updates = central { noise_multiplier = 0.5, adaptive = adaptive, clients = 40 }, {}
  for i = 1, 40 do updates[i] = update(i, i / 10) end
  for number = 1, 60 do private:aggregate({ number = number, clients = 40 }, global, updates) end
  assert(private.clip > 1.4 and private.clip < 2.7, private.clip)
  local costly = central { noise_multiplier = 5.0, adaptive = privacy.AdaptiveClip { deviation = 2.0 } }
  fails("costs more than", costly.aggregate, costly, { number = 1, clients = 40 }, global, updates)
end)

t.test("discrete Gaussian numbers have their law", function()
  for _, sigma in ipairs { 0.5, 3.0, 1000.5 } do
    local noise = privacy.discrete_gaussian(20000, sigma, { seed = 5 }):astype(f64)
    -- The variance is sigma^2 but for small sigma.
    local variance, total = 0.0, 0.0
    for k = -60, 60 do
      local p = math.exp(-k * k / (2 * sigma * sigma))
      variance, total = variance + k * k * p, total + p
    end
    about(ops.mean(noise * noise):item(), sigma > 10 and sigma ^ 2 or variance / total, 0.05)
    assert(math.abs(ops.mean(noise):item()) < 5 * sigma / math.sqrt(20000))
  end
  fails("at most 2^24", privacy.discrete_gaussian, 3, 1e9)
end)

t.test("distributed: the noise of all clients is in the secure sum, and no less", function()
  local code = secure.FixedPoint { fraction_bits = 16, clip = 64, clients = 20 }
  local private = privacy.DistributedDP { code = code, clip = 1.0, noise_multiplier = 1.0, clients = 4, max_eps = 8.0 }
  local vectors = {}
  for i = 1, 5 do vectors[i] = private:encode(ms.zeros(3000), { seed = i }) end
  local mean, count = private:decode(secure.sum(vectors, { threshold = 3, bits = code.bits }))
  t.equal(count, 5)
  -- Five times a fourth of the variance.
  about(deviation(mean * 5), math.sqrt(5 / 4), 0.06)
  fails("at least 4", private.decode, private, secure.sum({ vectors[1], vectors[2], vectors[3] }, { threshold = 2 }))
  local own = accountants.Accountant()
  own:step { noise_multiplier = 1.0 }
  t.equal(private:epsilon(), own:epsilon(1e-5))
  private.accountant:step { noise_multiplier = 1.0, steps = private:rounds_left() + 1 }
  fails("would pass the budget", private.decode, private, vectors[1] * 4)
  local coarse = privacy.DistributedDP { code = secure.FixedPoint { fraction_bits = 1, clip = 64 }, clip = 1.0, noise_multiplier = 1.0,
    clients = 4 }
  fails("more fraction_bits", coarse.encode, coarse, ms.zeros(3))
  fails("weight 1", privacy.DistributedDP, { code = secure.FixedPoint { weight = 2 }, clip = 1.0, noise_multiplier = 1.0, clients = 4 })
end)

t.finish()
