-- Accountants against what the theory says in closed form, and against each other. About 4 seconds on a quiet machine.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local A = ms.armour.privacy.accountants

local function accountant(mechanism, ...)
  local a = A.Accountant { mechanism = mechanism }
  for _, step in ipairs { ... } do a:step(step) end
  return a
end

t.test("Gaussian steps without sampling cost what one step of less noise does, exactly", function()
  local a = accountant("prv", { noise_multiplier = 4.0, steps = 10 })
  t.near(a:epsilon(1e-5), 3.341409469239346, 1e-6)
  for _, delta in ipairs { 1e-2, 1e-8, 1e-15, 1e-60 } do
    local epsilon = a:epsilon(delta)
    local exact = A.gaussian_delta(4.0 / math.sqrt(10), epsilon)
    t.near(math.log(exact), math.log(delta), 1e-4)
    -- Never below the truth.
    assert(exact <= delta * (1 + 1e-9), ("delta %g is %g"):format(delta, exact))
  end
  for _, epsilon in ipairs { 0, 0.5, 2, 8 } do
    t.near(math.log(a:delta(epsilon)), math.log(A.gaussian_delta(4.0 / math.sqrt(10), epsilon)), 1e-4)
  end
end)

t.test("one sampled step has the curve of its formula", function()
  local q, sigma = 0.05, 0.8
  local a = accountant("prv", { noise_multiplier = sigma, sample_rate = q })
  for _, epsilon in ipairs { 0.01, 0.3, 1.0 } do
    -- delta(epsilon) of the sampled mechanism is q delta(log(1 + (exp(epsilon) - 1) / q)).
    local inner = math.log(1 + (math.exp(epsilon) - 1) / q)
    t.near(a:delta(epsilon) / (q * A.gaussian_delta(sigma, inner)), 1, 1e-4)
  end
end)

t.test("sampling of a fixed size has its formula with twice the sensitivity", function()
  local q, sigma = 0.1, 2.0
  local a = accountant("prv", { noise_multiplier = sigma, sample_rate = q, sampling = "fixed" })
  for _, epsilon in ipairs { 0.05, 0.4 } do
    local inner = math.log(1 + (math.exp(epsilon) - 1) / q)
    t.near(a:delta(epsilon) / (q * A.gaussian_delta(sigma / 2, inner)), 1, 1e-4)
  end
  assert(accountant("rdp", { noise_multiplier = sigma, sample_rate = q, sampling = "fixed", steps = 50 }):epsilon(1e-5)
    > accountant("prv", { noise_multiplier = sigma, sample_rate = q, sampling = "fixed", steps = 50 }):epsilon(1e-5))
end)

t.test("Laplace noise and pure steps have a finite epsilon at delta 0", function()
  for _, mechanism in ipairs { "prv", "rdp", "zcdp" } do
    t.near(accountant(mechanism, { mechanism = "laplace", noise_multiplier = 2.0, steps = 4 }):epsilon(0), 2.0, 1e-12)
    t.near(accountant(mechanism, { mechanism = "pure", epsilon = 0.25, steps = 4 }):epsilon(0), 1.0, 1e-12)
  end
  -- delta(epsilon) of one Laplace answer: 1 - exp((epsilon - 1 / b) / 2).
  local one = accountant("prv", { mechanism = "laplace", noise_multiplier = 1.0 })
  t.near(one:delta(0.4), 1 - math.exp((0.4 - 1) / 2), 1e-6)
  -- Randomized response twice: both answers true has probability p^2.
  local e = 0.5
  local p = math.exp(e) / (1 + math.exp(e))
  local twice = accountant("prv", { mechanism = "pure", epsilon = e, steps = 2 })
  t.near(twice:delta(0.3), p * p - math.exp(0.3) * (1 - p) ^ 2, 1e-6)
  -- Sampled, at delta 0: log(1 + q (exp(epsilon) - 1)).
  local sampled = accountant("prv", { mechanism = "laplace", noise_multiplier = 1.0, sample_rate = 0.1 })
  t.near(sampled:epsilon(0), math.log(1 + 0.1 * (math.exp(1) - 1)), 1e-12)
end)

t.test("edges: no steps, no sampling, no noise, hardly any noise, delta 0", function()
  for _, mechanism in ipairs { "prv", "rdp", "zcdp" } do
    t.equal(accountant(mechanism):epsilon(1e-5), 0.0)
    t.equal(accountant(mechanism, { noise_multiplier = 1.0, steps = 0 }):epsilon(1e-5), 0.0)
    t.equal(accountant(mechanism, { noise_multiplier = 1.0, sample_rate = 0, steps = 100 }):epsilon(0), 0.0)
    t.equal(accountant(mechanism, { noise_multiplier = 0, sample_rate = 0.1 }):epsilon(1e-5), math.huge)
    t.equal(accountant(mechanism, { noise_multiplier = 1.0, sample_rate = 0.1 }):epsilon(0), math.huge)
    t.equal(accountant(mechanism, { noise_multiplier = 1e-200, sample_rate = 0.1 }):epsilon(1e-5), math.huge)
  end
  -- exp(epsilon) would overflow. Seven of ten steps with the row have probability 9e-6.
  local epsilon = accountant("prv", { noise_multiplier = 0.05, sample_rate = 0.1, steps = 10 }):epsilon(1e-5)
  assert(epsilon > 1200 and epsilon < 1500, epsilon)
end)

t.test("the mechanisms agree on the order of what they know", function()
  local history = {
    { noise_multiplier = 1.2, sample_rate = 0.01, steps = 500 }, { noise_multiplier = 0.9, sample_rate = 0.02, steps = 300 },
  }
  local prv = accountant("prv", table.unpack(history)):epsilon(1e-5)
  local rdp = accountant("rdp", table.unpack(history)):epsilon(1e-5)
  local zcdp = accountant("zcdp", table.unpack(history)):epsilon(1e-5)
  t.near(prv, 2.9484775, 1e-5)
  t.near(rdp, 3.4365688, 1e-6)
  assert(prv < rdp and rdp <= zcdp + 1e-12 and zcdp < 10, zcdp)
  local classic = A.Accountant { mechanism = "rdp", conversion = "classic" }
  for _, step in ipairs(history) do classic:step(step) end
  assert(classic:epsilon(1e-5) > rdp)
  -- Concentrated privacy without sampling: rho + 2 sqrt(rho log(1 / delta)).
  local plain = A.Accountant { mechanism = "zcdp", conversion = "classic" }
  plain:step { noise_multiplier = 4.0, steps = 10 }
  t.near(plain:epsilon(1e-5), 4.106067823462865, 1e-12)
end)

t.test("the order of the steps does not matter, and what is added twice is added", function()
  local function sampled(steps) return { noise_multiplier = 1.0, sample_rate = 0.02, steps = steps } end
  local a = accountant("prv", sampled(1), { noise_multiplier = 2.0, steps = 2 }, sampled(9))
  local b = accountant("prv", { noise_multiplier = 2.0 }, sampled(10), { noise_multiplier = 2.0 })
  t.near(a:epsilon(1e-6), b:epsilon(1e-6), 1e-9)
end)

t.test("noise that decays over hundreds of steps is bounded closely from above", function()
  local a, least = A.Accountant(), A.Accountant()
  local square = 0
  for i = 1, 300 do
    local sigma = 30 + 20 * math.exp(-i / 100)
    square = square + 1 / sigma ^ 2
    a:step { noise_multiplier = sigma }
    least:step { noise_multiplier = 30 }
  end
  local exact = accountant("prv", { noise_multiplier = 1 / math.sqrt(square) }):epsilon(1e-5)
  local epsilon = a:epsilon(1e-5)
  assert(epsilon >= exact - 1e-9 and epsilon <= exact * 1.005, ("%.6f, exactly %.6f"):format(epsilon, exact))
  assert(epsilon < least:epsilon(1e-5))
end)

t.test("divergences of sampled Gaussian steps, at integers and between", function()
  local a = accountant("rdp", { noise_multiplier = 1.0, sample_rate = 0.01 })
  local got = a:divergences { 1.1, 1.5, 2, 2.5, 3, 8, 16, 32 }
  local expected = { 9.241470982855839e-05, 0.00012725374351154145, 0.00017181342207454121, 0.00021757533233085147, 0.0002646375745846804,
    0.0008936439076060211, 3.087850783696245, 11.246275937048072 }
  for i, value in ipairs(expected) do t.near(got[i] / value, 1, 1e-7) end
  -- A - 1 is 5e-13 here, where 1 - exp of rounded sums would show nothing.
  local tiny = accountant("rdp", { noise_multiplier = 1.0, sample_rate = 1e-6 }):divergences { 1.5, 2 }
  t.near(tiny[2] / (1e-12 * (math.exp(1) - 1)), 1, 1e-6)
  t.near(tiny[1] / (0.75 * tiny[2]), 1, 1e-4)
end)

t.test("a tree of sums costs as many levels as a row takes part in", function()
  local tree = accountant("prv", { mechanism = "tree", noise_multiplier = 5.0, leaves = 1000 })
  t.near(tree:epsilon(1e-5), accountant("prv", { noise_multiplier = 5.0 / math.sqrt(10) }):epsilon(1e-5), 1e-9)
  local restarted = accountant("prv", { mechanism = "tree", noise_multiplier = 5.0, leaves = 1000, steps = 3 })
  t.near(restarted:epsilon(1e-5), accountant("prv", { noise_multiplier = 5.0 / math.sqrt(30) }):epsilon(1e-5), 1e-6)
  -- Two leaves 4 apart: in nodes of 1, 2 and 4 leaves once in each, in the node of 8 twice.
  local twice = accountant("prv", { mechanism = "tree", noise_multiplier = 5.0, leaves = 8, participations = 2, separation = 4 })
  t.near(twice:epsilon(1e-5), accountant("prv", { noise_multiplier = 5.0 / math.sqrt(2 + 2 + 2 + 4) }):epsilon(1e-5), 1e-9)
end)

t.test("calibrated noise keeps the budget and hardly more", function()
  for _, case in ipairs { { 1.0, 1e-5, 0.02, 200 } } do
    local budget = { epsilon = case[1], delta = case[2], sample_rate = case[3], steps = case[4] }
    local sigma = A.calibrate(budget)
    local function epsilon(noise)
      return accountant("prv", { noise_multiplier = noise, sample_rate = case[3], steps = case[4] }):epsilon(case[2])
    end
    assert(epsilon(sigma) <= case[1] and epsilon(sigma - 1e-3) > case[1], sigma)
  end
  t.near(A.calibrate { epsilon = 1.0, delta = 1e-5, mechanism = "prv" }, A.analytic_gaussian(1.0, 1e-5), 1e-4)
  t.near(A.calibrate { epsilon = 2.0, delta = 0, noise = "laplace", steps = 4 }, 2.0, 1e-4)
  local past = accountant("prv", { noise_multiplier = 2.0 })
  local more = A.calibrate { epsilon = 3.0, delta = 1e-5, history = past:state().history }
  past:step { noise_multiplier = more }
  t.near(past:epsilon(1e-5), 3.0, 1e-3)
  t.fails({ "calibrate", "already cost", "budget is 1" }, A.calibrate, { epsilon = 1.0, delta = 1e-5, history = past:state().history })
end)

t.test("steps_left stops before the step that would pass the budget", function()
  local a = accountant("rdp", { noise_multiplier = 1.0, sample_rate = 0.01, steps = 100 })
  local step, budget, delta = { noise_multiplier = 1.0, sample_rate = 0.01 }, 1.5, 1e-5
  local left = a:steps_left(step, budget, delta)
  local function epsilon(steps)
    local b = A.Accountant { mechanism = "rdp" }
    b:restore(a:state())
    b:step { noise_multiplier = 1.0, sample_rate = 0.01, steps = steps }
    return b:epsilon(delta)
  end
  assert(left > 0 and epsilon(left) <= budget and epsilon(left + 1) > budget, left)
  t.equal(a:steps_left(step, budget, delta, 7), 7)
  t.equal(a:steps_left(step, 0.1, delta), 0)
  -- The tight accountant lets more steps be.
  local tight = A.Accountant()
  tight:restore(a:state())
  assert(tight:steps_left(step, budget, delta, left + 1) == left + 1)
end)

t.test("the state is a plain table and restores the same answer", function()
  local a = accountant("prv", { noise_multiplier = 1.0, sample_rate = 0.01, steps = 100 }, { mechanism = "pure", epsilon = 0.1 })
  local b = A.Accountant()
  b:restore(ms.json.decode(ms.json.encode(a:state())))
  t.equal(b:epsilon(1e-5), a:epsilon(1e-5))
  t.equal(b:history(), a:history())
  a:step { noise_multiplier = 1.0 }
  t.equal(#b:history(), 2)
end)

t.test("the analytic Gaussian mechanism is exact where the classic formula is wrong", function()
  for _, row in ipairs { { 0.5, 1e-5, 7.0318266755824625 }, { 5, 1e-5, 0.8918682649515202 }, { 50, 0.01, 0.12460112363122791 } } do
    t.near(A.analytic_gaussian(row[1], row[2]), row[3], 1e-9)
    t.near(A.analytic_gaussian(row[1], row[2], 3.0), 3 * row[3], 1e-9)
  end
  t.near(A.analytic_gaussian(0, 0.1), A.calibrate { epsilon = 1e-9, delta = 0.1 }, 1e-3)
end)

t.test("bad input is an error that says what is wrong", function()
  local a = A.Accountant()
  t.fails({ "conversion belongs to mechanism" }, A.Accountant, { conversion = "classic" })
  t.fails({ "step", "noise_multipler", "did you mean 'noise_multiplier'" }, a.step, a, { noise_multipler = 1.0 })
  t.fails({ "step", "needs noise_multiplier" }, a.step, a, { sample_rate = 0.1 })
  t.fails({ "step", "noise_multiplier must not be negative", "-1" }, a.step, a, { noise_multiplier = -1 })
  t.fails({ "step", "sample_rate must be a probability", "1.5" }, a.step, a, { noise_multiplier = 1, sample_rate = 1.5 })
  t.fails({ "step", "steps must be an integer" }, a.step, a, { noise_multiplier = 1, steps = 0.5 })
  t.fails({ "step", "has no field 'sample_rate'" }, a.step, a, { mechanism = "tree", noise_multiplier = 1, leaves = 4, sample_rate = 0.1 })
  t.fails({ "step", "needs leaves" }, a.step, a, { mechanism = "tree", noise_multiplier = 1 })
  t.fails({ "step", "a step is a table", "3" }, a.step, a, 3)
  t.fails({ "epsilon", "delta must be from 0", "1" }, a.epsilon, a, 1)
  t.fails({ "epsilon", "delta", "nan" }, a.epsilon, a, 0 / 0)
  t.fails({ "delta", "epsilon must not be negative" }, a.delta, a, -0.1)
  t.fails({ "Accountant", "mechanism must be one of", "gdp" }, A.Accountant, { mechanism = "gdp" })
  t.fails({ "Accountant", "orders must be numbers above 1" }, A.Accountant, { mechanism = "rdp", orders = { 1 } })
  t.fails({ "restore", "a table that state() gave" }, a.restore, a, 3)
  t.fails({ "calibrate", "needs epsilon and delta" }, A.calibrate, { epsilon = 1.0 })
  t.fails({ "calibrate", "epsilon must be a positive number", "0" }, A.calibrate, { epsilon = 0, delta = 1e-5 })
  t.fails({ "calibrate", "delta must be above 0" }, A.calibrate, { epsilon = 1.0, delta = 0 })
  t.fails({ "analytic_gaussian", "delta must be above 0" }, A.analytic_gaussian, 1.0, 0)
end)

t.finish()
