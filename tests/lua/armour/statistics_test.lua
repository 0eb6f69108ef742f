-- Private statistics, local privacy and PATE: distributions of what is released, costs, errors. About 2 seconds.
-- Eager mode only: draws and sums of data of many sizes, none of which is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops
local P = ms.armour.privacy
local S, L = P.statistics, P.local_privacy

-- Mean and standard deviation of many answers.
local function of_many(n, answer)
  local sum, square = 0, 0
  for i = 1, n do
    local value = answer(i)
    sum, square = sum + value, square + value * value
  end
  return sum / n, math.sqrt(square / n - (sum / n) ^ 2)
end

t.test("a sum has Laplace noise of its sensitivity over epsilon", function()
  local x = ms.tensor({ 0.5, 2.0, -3.0, 0.25 }, ms.float64)
  -- 2 and -3 are moved to the bounds 1 and -1; the noise has a standard deviation of sqrt(2) b.
  local mean, deviation = of_many(2000, function(i) return S.sum(x, { epsilon = 0.5, bounds = { -1, 1 }, seed = i }) end)
  t.near(mean, 0.75, 0.3)
  t.near(deviation / (math.sqrt(2) * 2.0), 1, 0.1)
  local _, normal = of_many(1000, function(i) return S.sum(x, { epsilon = 0.5, delta = 1e-5, bounds = { -1, 1 }, seed = i }) end)
  t.near(normal / P.accountants.analytic_gaussian(0.5, 1e-5), 1, 0.1)
  -- Three columns share epsilon.
  local wide = ms.zeros({ 4, 3 }, ms.float64)
  local _, column = of_many(1000, function(i) return S.sum(wide, { epsilon = 0.5, bounds = { -1, 1 }, seed = i })[0]:item() end)
  t.near(column / (math.sqrt(2) * 6.0), 1, 0.15)
end)

t.test("counts and histograms are integers near the truth, and one row is in one interval", function()
  local x = ops.concat({ ms.ones { 300 } * 0.2, ms.ones { 100 } * 0.7, ms.ones { 50 } }, 0)
  local counts = S.histogram(x, { 0, 0.5, 1 }, { epsilon = 1.0, seed = 3 })
  t.equal(tostring(counts.dtype), tostring(ms.int64))
  t.near(counts:tolist()[1], 300, 0.1)
  t.near(counts:tolist()[2], 150, 0.1)
  local mean, deviation = of_many(1000, function(i) return S.count(x, { epsilon = 0.5, seed = i }) end)
  t.near(mean, 450, 0.01)
  t.near(deviation / (math.sqrt(2) / 0.5), 1, 0.15)
  t.equal(math.type(S.count(ops.greater(x, 0.5), { epsilon = 1.0 })), "integer")
  t.equal(S.count(ms.zeros { 0 }, { epsilon = 100.0 }), 0)
end)

t.test("means and quantiles are near the truth and stay within the bounds", function()
  local x = ms.arange(2001):astype(ms.float64) / 2000
  local mean, deviation = of_many(300, function(i) return S.mean(x, { epsilon = 1.0, bounds = { 0, 1 }, seed = i }) end)
  t.near(mean, 0.5, 1e-3)
  assert(deviation < 2e-3, deviation)
  local public = S.mean(x, { epsilon = 1.0, bounds = { 0, 1 }, n_is_public = true, seed = 1 })
  t.near(public, 0.5, 0.01)
  t.near(S.quantile(x, 0.9, { epsilon = 1.0, bounds = { 0, 1 }, seed = 5 }), 0.9, 0.02)
  local list = S.quantile(x, { 0.25, 0.75 }, { epsilon = 2.0, bounds = { 0, 1 }, seed = 5 })
  t.near(list[1], 0.25, 0.02)
  t.near(list[2], 0.75, 0.02)
  -- With next to no budget the answer is any number between the bounds.
  local _, wide = of_many(300, function(i) return S.quantile(x, 0.5, { epsilon = 1e-6, bounds = { -10, 10 }, seed = i }) end)
  assert(wide > 4, wide)
  for i = 1, 20 do
    local m = S.mean(ms.zeros { 0 }, { epsilon = 0.1, bounds = { 2, 3 }, seed = i })
    assert(m >= 2 and m <= 3)
  end
end)

t.test("quantiles follow the exponential mechanism", function()
  -- One value in the middle of two intervals of length 1 and 3: at the median both have the same score, so that lengths decide.
  local x, below = ms.tensor({ 1.0 }, ms.float64), 0
  for i = 1, 2000 do
    if S.quantile(x, 0.5, { epsilon = 1.0, bounds = { 0, 4 }, seed = i }) < 1 then below = below + 1 end
  end
  t.near(below / 2000, 0.25, 0.04)
end)

t.test("answers enter the history of an accountant", function()
  local accountant = P.accountants.Accountant()
  local x = ms.ones { 10 }
  S.count(x, { epsilon = 0.1, accountant = accountant })
  S.mean(x, { epsilon = 0.2, bounds = { 0, 1 }, accountant = accountant })
  S.quantile(x, { 0.1, 0.9 }, { epsilon = 0.3, bounds = { 0, 1 }, accountant = accountant })
  S.histogram(x, { 0, 1 }, { epsilon = 0.4, accountant = accountant })
  t.near(accountant:epsilon(0), 1.0, 1e-9)
  S.sum(x, { epsilon = 1.0, delta = 1e-6, bounds = { 0, 1 }, accountant = accountant })
  t.equal(accountant:epsilon(0), math.huge)
end)

t.test("seeds give the same bits, and no seed gives others", function()
  local x = ms.ones { 10 }
  local function answer(seed) return S.sum(x, { epsilon = 1.0, bounds = { 0, 1 }, seed = seed }) end
  t.equal(answer(4), answer(4))
  assert(answer(4) ~= answer(5) and answer() ~= answer())
  -- All bits of an answer are those of a grid that does not depend on the data.
  t.equal(answer() * 2.0 ^ 24 % 1, 0.0)
end)

t.test("randomized response keeps labels as often as it says, and counts are without bias", function()
  local n = 40000
  for _, classes in ipairs { 2, 3, 10 } do
    local epsilon = 1.0
    local labels = ops.full({ n }, 1, { dtype = ms.int32 })
    local noisy = L.randomized_response(labels, classes, epsilon, { seed = 7 })
    local keep = L.keep_probability(classes, epsilon)
    local kept = ops.sum(ops.equal(noisy, 1):astype(ms.float64)):item()
    assert(math.abs(kept - n * keep) < 4 * math.sqrt(n * keep * (1 - keep)), classes)
    -- The others are all alike.
    local other = ops.sum(ops.equal(noisy, 0):astype(ms.float64)):item()
    local share = (1 - keep) / (classes - 1)
    assert(math.abs(other - n * share) < 4 * math.sqrt(n * share), classes)
    local estimate = L.estimate_counts(noisy, classes, epsilon):tolist()
    assert(math.abs(estimate[2] - n) < 4 * math.sqrt(n * keep * (1 - keep)) / (keep - share), estimate[2])
    -- The ratio of probabilities is exp(epsilon), exactly.
    t.near(math.log(keep / share), epsilon, 1e-12)
  end
  t.near(1 - L.keep_probability(2, 0.5), 0.3775406687981454, 1e-14)
  t.near(L.keep_probability(10, 5.0), 0.9428256185740148, 1e-14)
end)

t.test("unary codes and embeddings keep bits as often as they say", function()
  local n = 20000
  local labels = ops.full({ n }, 2, { dtype = ms.int32 })
  for _, optimized in ipairs { true, false } do
    local bits = L.unary_encoding(labels, 4, 1.5, { optimized = optimized, seed = 3 })
    local estimate = L.estimate_unary(bits, 1.5, { optimized = optimized }):tolist()
    t.near(estimate[3] / n, 1, 0.05)
    t.near(estimate[1] / n, 0, 0.05)
  end
  local x = ops.full({ 100, 200 }, -0.3)
  local bits = L.embedding(x, 1.0, { seed = 2 })
  t.near(ops.mean(bits):item(), 1 - 0.6224593312018546, 0.02)
  local noisy = L.laplace(ms.zeros { n }, 2.0, { bounds = { 0, 1 }, seed = 2 })
  t.near(ops.mean(ops.abs(noisy)):item(), 0.5, 0.03)
end)

t.test("clear votes cost less than others, and PATE's bound is that of its theorem", function()
  local clear, close = P.PATE(40.0, { seed = 1 }), P.PATE(40.0, { seed = 1 })
  local votes = ms.tensor { { 240, 5, 5 } }
  for _ = 1, 50 do
    clear:answer(ops.broadcast_to(votes, { 2, 3 }))
    close:answer(ms.tensor { { 84, 83, 83 }, { 84, 83, 83 } })
  end
  t.equal(clear.answered, 100)
  local any = clear:epsilon(1e-5, { data_dependent = false })
  -- 100 answers of divergence a / 1600 are one Gaussian step of noise 40 / sqrt(2 * 100).
  local same = P.accountants.Accountant { mechanism = "rdp" }
  same:step { noise_multiplier = 40 / math.sqrt(200) }
  t.near(any, same:epsilon(1e-5), 1e-9)
  t.near(close:epsilon(1e-5), any, 1e-9)
  assert(clear:epsilon(1e-5) < 0.5 * any, clear:epsilon(1e-5))
  local careful = P.PATE(5.0, { threshold = 200, threshold_sigma = 10.0, seed = 1 })
  local labels = careful:answer(ms.tensor { { 250, 0, 0 }, { 90, 80, 80 } })
  t.equal(labels:tolist(), { 0, -1 })
  t.equal(careful.answered, 1)
end)

t.test("what is on a device of its own is answered there", function()
  ms.set_device("Separate")
  local restore <close> = setmetatable({}, { __close = function() ms.set_device "CPU" end }) -- luacheck: ignore 211
  local x = ms.ones { 200 } * 0.5
  t.near(S.mean(x, { epsilon = 50.0, bounds = { 0, 1 } }), 0.5, 0.1)
  t.near(S.quantile(x, 0.5, { epsilon = 50.0, bounds = { 0, 1 } }), 0.5, 0.5)
  t.equal(L.randomized_response(ms.tensor { 0, 1 }, 2, 50.0):tolist(), { 0, 1 })
  t.equal(P.PATE(1.0):answer(ms.tensor { { 100, 3 } }):tolist(), { 0 })
end)

t.test("bad input is an error that says what is wrong", function()
  local x = ms.ones { 4 }
  t.fails({ "sum", "needs epsilon" }, S.sum, x, { bounds = { 0, 1 } })
  t.fails({ "sum", "epsilon must be a positive number", "0" }, S.sum, x, { epsilon = 0, bounds = { 0, 1 } })
  t.fails({ "sum", "bounds must be { lo, hi }" }, S.sum, x, { epsilon = 1.0 })
  t.fails({ "mean", "the first bound must be less" }, S.mean, x, { epsilon = 1.0, bounds = { 1, 0 } })
  t.fails({ "mean", "no option 'epsilom'", "did you mean 'epsilon'" }, S.mean, x, { epsilom = 1.0 })
  t.fails({ "mean", "nan" }, S.mean, ms.tensor { 0 / 0 }, { epsilon = 1.0, bounds = { 0, 1 } })
  t.fails({ "histogram", "edges must rise" }, S.histogram, x, { 0, 0 }, { epsilon = 1.0 })
  t.fails({ "quantile", "q must be a probability" }, S.quantile, x, 1.5, { epsilon = 1.0, bounds = { 0, 1 } })
  t.fails({ "quantile", "no option 'delta'" }, S.quantile, x, 0.5, { epsilon = 1.0, delta = 0.1, bounds = { 0, 1 } })
  t.fails({ "count", "accountant must be an accountant" }, S.count, x, { epsilon = 1.0, accountant = {} })
  t.fails({ "randomized_response", "labels lie between 0 and 3", "2 classes" }, L.randomized_response, ms.tensor { 0, 3 }, 2, 1.0)
  t.fails({ "estimate_counts", "epsilon must be above 0" }, L.estimate_counts, ms.tensor { 0, 1 }, 2, 0)
  t.fails({ "keep_probability", "classes must be at least 2" }, L.keep_probability, 1, 1.0)
  t.fails({ "PATE", "sigma must be a positive number" }, P.PATE, 0)
  t.fails({ "count", "booleans must be a tensor (n,)" }, P.statistics.count, ms.ones({ 3, 4 }, ms.bool_), { epsilon = 1.0 })
  t.fails({ "PATE", "threshold and threshold_sigma go together" }, P.PATE, 1.0, { threshold = 3 })
  t.fails({ "answer", "votes must be a tensor (queries, classes)" }, P.PATE(1.0).answer, P.PATE(1.0), ms.ones { 3 })
end)

t.finish()
