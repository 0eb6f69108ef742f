-- ms.armour.privacy.accountants: how much privacy a history of noisy steps has cost, and how much noise keeps it within a budget.
--
-- Neighbouring data sets differ by one row that is there or not; with sampling = "fixed", where the number of rows is known to all, by
-- the content of one row. Noise multipliers are the noise's scale over the norm bound of what one row gives.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local events = require "lunaria.armour.privacy.events"
local loss = require "lunaria.armour.privacy.loss_distribution"
local renyi = require "lunaria.armour.privacy.renyi"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local accountants = {}

local function between_0_and_1(where, name, value, with_one)
  value = check.number(where, name, value)
  if not (value >= 0 and (value < 1 or with_one and value == 1)) then
    fail(where, ("%s must be from 0 up to %s 1, got %s"):format(name, with_one and "and with" or "and below", tostring(value)))
  end
  return value + 0.0
end

local Accountant = class.define(nil, "Accountant", "mechanism='prv', orders=nil, conversion='tight'",
  [[The privacy that a history of noisy steps has cost. mechanism: "prv" (or "pld": the law of the privacy loss by Fourier transforms, tight
within 1e-3 and never below the truth, Gopi, Lee and Wutschitz 2021, Doroshenko and others 2022), "rdp" (Rényi divergences at `orders`,
Mironov, Talwar and Zhang 2019) or "zcdp" (concentrated privacy, with sampling: Bun, Dwork, Rothblum and Steinke 2018); the latter two
overstate. conversion: "tight" (Balle and others 2020) or "classic" (Mironov 2017) from divergences to epsilon.

  > accountant = ms.armour.privacy.accountants.Accountant { mechanism = "prv" }
  > accountant:step { noise_multiplier = 1.0, sample_rate = 0.01, steps = 1000 }
  > ("%.3f"):format(accountant:epsilon(1e-5)) --> 1.828]])
accountants.Accountant = Accountant
Accountant._called = "accountant"

local mechanisms = { "prv", "pld", "rdp", "zcdp" }

function Accountant:setup(a)
  self.mechanism = check.choice("Accountant", "mechanism", a.mechanism, mechanisms)
  if self.mechanism == "pld" then self.mechanism = "prv" end
  self.conversion = check.choice("Accountant", "conversion", a.conversion, { "tight", "classic" })
  if self.mechanism == "prv" and self.conversion ~= "tight" then
    fail("Accountant", "conversion belongs to mechanism = 'rdp' and 'zcdp'; 'prv' needs none")
  end
  self.orders = renyi.default_orders
  if a.orders ~= nil then
    if type(a.orders) ~= "table" or #a.orders == 0 then
      fail("Accountant", "orders must be a list of numbers above 1, got " .. describe(a.orders))
    end
    self.orders = {}
    for i, order in ipairs(a.orders) do
      self.orders[i] = check.number("Accountant", "orders", order) + 0.0
      if not (self.orders[i] > 1 and self.orders[i] < math.huge) then
        fail("Accountant", "orders must be numbers above 1, got " .. tostring(order))
      end
    end
    if self.mechanism == "prv" then fail("Accountant", "orders belong to mechanism = 'rdp' and 'zcdp'; 'prv' needs none") end
  end
  self._history, self._moments = {}, {}
end

--- Adds steps to the history. event: a table with the fields noise_multiplier (the noise's scale over the norm bound: standard deviation,
--- or the scale of Laplace noise), sample_rate (1: all rows take part in each step), steps (1), sampling ("poisson": each row by a coin of
--- its own; "fixed": so many rows without replacement, where a changed row moves the sum by up to two norm bounds), mechanism: "gaussian",
--- "laplace", "pure" (any mechanism of `epsilon`, such as randomized response), or "tree" (sums by a tree over `leaves` steps, as of
--- DP-FTRL, Kairouz and others 2021: one row takes part `participations` times, at least `separation` leaves apart; steps: trees).
---     > accountant = ms.armour.privacy.accountants.Accountant()
---     > accountant:step { mechanism = "laplace", noise_multiplier = 2.0 }
---     > accountant:epsilon(0) --> 0.5
function Accountant:step(event)
  event = events.of("step", event)
  local last = self._history[#self._history]
  if last and events.is_same(last, event) then
    last.steps = last.steps + event.steps
  else
    self._history[#self._history + 1] = event
  end
  self._laws = nil
end

-- The divergences of the whole history at orders. What single steps have is kept for each list of orders.
local function divergences_of(self, kinds, orders)
  local sum = {}
  for i = 1, #orders do sum[i] = 0.0 end
  self._moments[orders] = self._moments[orders] or {}
  for _, event in ipairs(kinds) do
    for i, value in ipairs(renyi.of_event(event, orders, self._moments[orders])) do sum[i] = sum[i] + event.steps * value end
  end
  return sum
end

-- Truncated concentrated privacy: divergences at most rho a at the orders up to omega, for the best omega.
local function concentrated_epsilon(self, kinds, delta)
  local divergences, least, rho = divergences_of(self, kinds, self.orders), math.huge, 0.0
  local convert = renyi.conversions[self.conversion]
  for last, omega in ipairs(self.orders) do
    rho = math.max(rho, divergences[last] / omega)
    if rho == math.huge then break end
    for i = 1, last do least = math.min(least, convert(self.orders[i], rho * self.orders[i], delta)) end
  end
  return math.max(0.0, least)
end

-- rho where nothing is sampled: then there is no largest order.
local function plain_rho(kinds)
  local rho = 0.0
  for _, event in ipairs(kinds) do
    if event.mechanism ~= "gaussian" or event.sample_rate < 1 or event.share then return nil end
    rho = rho + event.steps * 0.5 * (events.moves(event) / event.noise_multiplier) ^ 2
  end
  return rho
end

local function pure_epsilon(kinds)
  local sum = 0.0
  for _, event in ipairs(kinds) do sum = sum + event.steps * loss.largest(event) end
  return sum
end

-- Both directions of a row that is there or not; one where they cost the same.
local function directions_of(kinds)
  for _, event in ipairs(kinds) do
    if event.sampling == "poisson" and event.sample_rate < 1 then return { "remove", "add" } end
  end
  return { "remove" }
end

-- The composed laws of the history for a question near (epsilon, delta), kept for the next one with the same tilt.
local function laws_of(self, kinds, divergences, epsilon, delta)
  local tilt = loss.tilt_of(renyi.default_orders, divergences, epsilon, delta)
  local kept = self._laws
  if not kept or kept.tilt.theta ~= tilt.theta or kept.tilt.log_delta ~= tilt.log_delta then
    kept = { tilt = tilt }
    for i, direction in ipairs(directions_of(kinds)) do
      kept[i] = loss.compose(kinds, direction, renyi.default_orders, divergences, tilt)
    end
    self._laws = kept
  end
  return kept
end

local function no_noise(kinds)
  for _, event in ipairs(kinds) do
    if event.noise_multiplier == 0 then return true end
  end
  return false
end

--- The least epsilon for which the history is (epsilon, delta) differentially private; infinite where there is none, as for delta = 0
--- and Gaussian noise.
---     > accountant = ms.armour.privacy.accountants.Accountant { mechanism = "rdp" }
---     > accountant:step { noise_multiplier = 4.0, steps = 10 }
---     > accountant:epsilon(1e-5) < 3.62 --> true
function Accountant:epsilon(delta)
  delta = between_0_and_1("epsilon", "delta", delta)
  local kinds = events.kinds(self._history)
  if #kinds == 0 then return 0.0 end
  local pure = pure_epsilon(kinds)
  if delta == 0 then return pure end
  if no_noise(kinds) then return math.huge end
  local rho = self.mechanism == "zcdp" and plain_rho(kinds)
  if rho then
    local order = 1 + math.sqrt(math.log(1 / delta) / rho)
    return math.max(0.0, renyi.conversions[self.conversion](order, rho * order, delta))
  end
  if self.mechanism == "zcdp" then return math.min(pure, concentrated_epsilon(self, kinds, delta)) end
  if self.mechanism == "rdp" then
    return math.min(pure, (renyi.epsilon(self.orders, divergences_of(self, kinds, self.orders), delta, self.conversion)))
  end
  local divergences = divergences_of(self, kinds, renyi.default_orders)
  local bound = renyi.epsilon(renyi.default_orders, divergences, delta, "tight")
  if bound == math.huge then return pure end
  local epsilon = 0.0
  for _, law in ipairs(laws_of(self, kinds, divergences, bound, delta)) do
    epsilon = math.max(epsilon, loss.epsilon(law, delta))
  end
  return math.min(pure, bound, epsilon)
end

--- The least delta for which the history is (epsilon, delta) differentially private.
---     > accountant = ms.armour.privacy.accountants.Accountant()
---     > accountant:step { noise_multiplier = 1.0 }
---     > ("%.4f"):format(accountant:delta(1.0)) --> 0.1269
function Accountant:delta(epsilon)
  epsilon = check.number_not_negative("delta", "epsilon", epsilon)
  local kinds = events.kinds(self._history)
  if #kinds == 0 or epsilon == math.huge or pure_epsilon(kinds) <= epsilon then return 0.0 end
  if no_noise(kinds) then return 1.0 end
  if self.mechanism ~= "prv" then
    -- epsilon(delta) falls with delta: bisection of its logarithm.
    local low, high = math.log(1e-300), 0.0
    while high - low > 1e-9 do
      local middle = (low + high) / 2
      if self:epsilon(math.min(math.exp(middle), 1 - 1e-16)) > epsilon then low = middle else high = middle end
    end
    return math.exp(high)
  end
  local divergences = divergences_of(self, kinds, renyi.default_orders)
  if divergences[1] == math.huge then return 1.0 end
  local bound, delta = renyi.delta(renyi.default_orders, divergences, epsilon), 0.0
  for _, law in ipairs(laws_of(self, kinds, divergences, epsilon, bound)) do
    delta = math.max(delta, loss.delta(law, epsilon))
  end
  return math.min(bound, delta)
end

--- The Rényi divergences of the history at a list of orders above 1, as a list.
---     > accountant = ms.armour.privacy.accountants.Accountant()
---     > accountant:step { noise_multiplier = 2.0, steps = 4 }
---     > accountant:divergences({ 2, 3 })[2] --> 1.5
function Accountant:divergences(orders)
  if type(orders) ~= "table" then fail("divergences", "orders must be a list of numbers above 1, got " .. describe(orders)) end
  local list = {}
  for i, order in ipairs(orders) do
    list[i] = check.number("divergences", "orders", order) + 0.0
    if not (list[i] > 1) then fail("divergences", "orders must be above 1, got " .. tostring(order)) end
  end
  return divergences_of({ _moments = {} }, events.kinds(self._history), list)
end

--- How many more such steps keep the history within (epsilon, delta): the field steps of `event` is not asked for. 0 where none does;
--- `most` where that many do.
---     > accountant = ms.armour.privacy.accountants.Accountant { mechanism = "rdp" }
---     > accountant:steps_left({ noise_multiplier = 1.0, sample_rate = 0.01 }, 2.11, 1e-5) > 1000 --> true
function Accountant:steps_left(event, epsilon, delta, most)
  epsilon, delta, most = arguments.named("steps_left", { "epsilon", "delta", "most" }, epsilon, delta, most)
  event = events.of("steps_left", event)
  epsilon = check.number_not_negative("steps_left", "epsilon", epsilon)
  delta = between_0_and_1("steps_left", "delta", delta)
  most = most == nil and 10000000 or check.not_negative("steps_left", "most", most)
  local other = Accountant { mechanism = self.mechanism, conversion = self.conversion }
  other.orders, other._moments = self.orders, self._moments
  local function fits(steps)
    other._history = {}
    for i, past in ipairs(self._history) do other._history[i] = past end
    table.insert(other._history, events.copy(event, steps))
    other._laws = nil
    return other:epsilon(delta) <= epsilon
  end
  if most == 0 or not fits(1) then return 0 end
  local low, high = 1, 2
  while high < most and fits(high) do low, high = high, 2 * high end
  if high >= most then
    if fits(most) then return most end
    high = most
  end
  while high - low > 1 do
    local middle = (low + high) // 2
    if fits(middle) then low = middle else high = middle end
  end
  return low
end

--- The history as a plain table, which a checkpoint can keep.
---     > accountant = ms.armour.privacy.accountants.Accountant()
---     > accountant:step { noise_multiplier = 1.0, sample_rate = 0.5, steps = 3 }
---     > accountant:state().history[1].steps --> 3
function Accountant:state()
  local history = {}
  for i, event in ipairs(self._history) do history[i] = events.copy(event) end
  return { mechanism = self.mechanism, history = history }
end

--- Takes the history of a table that state() gave; the accountant's own is forgotten.
---     > accountant = ms.armour.privacy.accountants.Accountant()
---     > accountant:step { noise_multiplier = 1.0 }
---     > other = ms.armour.privacy.accountants.Accountant { mechanism = "rdp" }
---     > other:restore(accountant:state())
---     > #other:history() --> 1
function Accountant:restore(state)
  if type(state) ~= "table" or type(state.history) ~= "table" then
    fail("restore", "state must be a table that state() gave, got " .. describe(state))
  end
  local history = {}
  for i, event in ipairs(state.history) do history[i] = events.of("restore", event) end
  self._history, self._laws = history, nil
end

--- The steps so far: a list of { mechanism, sampling, noise_multiplier, sample_rate, steps }, with epsilon for pure steps.
---     > #ms.armour.privacy.accountants.Accountant():history() --> 0
function Accountant:history() return self:state().history end

-- The least x > 0 with f(x) <= bound for a falling f, from a first guess; within a relative 1e-5, from above. By false position of the
-- logarithms, in which f is nearly a line, with the Illinois correction.
local function least_argument(where, f, bound, guess)
  local function over(x)
    local value = f(x)
    return value == 0 and -50.0 or math.min(50.0, math.log(value / bound))
  end
  local low, high, at_low = guess, guess, over(guess)
  local at_high = at_low
  while at_high > 0 do
    low, at_low, high = high, at_high, 1.5 * high
    at_high = over(high)
    if high > 1e9 then fail(where, "no noise below a multiplier of 1e9 keeps to this budget") end
  end
  while at_low <= 0 do
    high, at_high, low = low, at_low, low / 1.5
    if low < 1e-6 then return high end
    at_low = over(low)
  end
  local kept = 0
  while high - low > 1e-5 * high do
    local share = at_low / (at_low - at_high)
    local middle = low * (high / low) ^ math.max(0.02, math.min(0.98, share))
    local value = over(middle)
    if value > 0 then
      low, at_low = middle, value
      if kept > 0 then at_high = at_high / 2 end
      kept = 1
    else
      high, at_high = middle, value
      if value > -1e-6 then return high end
      if kept < 0 then at_low = at_low / 2 end
      kept = -1
    end
  end
  return high
end

--- The least noise multiplier with which `steps` steps are (epsilon, delta) private. Options: epsilon, delta, sample_rate (1), steps (1),
--- sampling ("poisson"), noise ("gaussian" or "laplace"), mechanism of the accountant ("prv"), history (of an accountant: steps that were
--- already made).
---     > sigma = ms.armour.privacy.accountants.calibrate { epsilon = 2.0, delta = 1e-5, sample_rate = 0.01, steps = 1000 }
---     > ("%.3f"):format(sigma) --> 0.959
function accountants.calibrate(options)
  local where = "calibrate"
  arguments.options(where, options, { epsilon = "number", delta = "number", sample_rate = "number", steps = "number",
    sampling = arguments.one_of("poisson", "fixed"), noise = arguments.one_of("gaussian", "laplace"),
    mechanism = arguments.one_of(table.unpack(mechanisms)), history = "table" },
    "{ epsilon = 2.0, delta = 1e-5, sample_rate = 0.01, steps = 1000 }")
  if options == nil or options.epsilon == nil or options.delta == nil then fail(where, "needs epsilon and delta") end
  local epsilon, delta = check.number_positive(where, "epsilon", options.epsilon), between_0_and_1(where, "delta", options.delta)
  local event = { mechanism = options.noise, sample_rate = options.sample_rate, steps = options.steps, sampling = options.sampling }
  if delta == 0 and event.mechanism ~= "laplace" then fail(where, "delta must be above 0 for Gaussian noise", "or noise = 'laplace'") end
  event.noise_multiplier = 1.0
  events.of(where, event)
  local function epsilon_of(mechanism)
    return function(sigma)
      local accountant = Accountant { mechanism = mechanism }
      if options.history then accountant:restore { history = options.history } end
      event.noise_multiplier = sigma
      accountant:step(event)
      return accountant:epsilon(delta)
    end
  end
  local mechanism = options.mechanism or "prv"
  local past = Accountant { mechanism = mechanism }
  if options.history then past:restore { history = options.history } end
  if past:epsilon(delta) >= epsilon then
    fail(where, ("the history has already cost epsilon %g at delta %g, the budget is %g"):format(past:epsilon(delta), delta, epsilon))
  end
  -- Divergences are quick and give an upper bound to start from.
  local guess = mechanism == "prv" and least_argument(where, epsilon_of "rdp", epsilon, 1.0) or 1.0
  return least_argument(where, epsilon_of(mechanism), epsilon, guess)
end

local function normal(x) return ops.ndtr(ms.tensor(x, f64)):item() end

-- delta of the Gaussian mechanism (Balle and Wang 2018, theorem 8); the second term by logarithms, because exp(epsilon) overflows.
local function gaussian_delta(sigma, epsilon)
  local tail = ops.log_ndtr(ms.tensor(-0.5 / sigma - epsilon * sigma, f64)):item()
  return math.max(0.0, normal(0.5 / sigma - epsilon * sigma) - math.exp(epsilon + tail))
end

--- The least standard deviation of Gaussian noise for one (epsilon, delta) private answer whose L2 sensitivity is given (Balle and Wang
--- 2018); exact, also for epsilon above 1, where the classic formula is wrong.
---     > ("%.6f"):format(ms.armour.privacy.accountants.analytic_gaussian(1.0, 1e-5)) --> 3.730632
function accountants.analytic_gaussian(epsilon, delta, sensitivity)
  local where = "analytic_gaussian"
  epsilon, delta, sensitivity = arguments.named(where, { "epsilon", "delta", "sensitivity" }, epsilon, delta, sensitivity)
  epsilon = check.number_not_negative(where, "epsilon", epsilon)
  delta = between_0_and_1(where, "delta", delta)
  if delta == 0 then fail(where, "delta must be above 0: Gaussian noise is never (epsilon, 0) private") end
  sensitivity = check.number_not_negative(where, "sensitivity", sensitivity == nil and 1.0 or sensitivity)
  local low, high = 1e-300, 1.0
  while gaussian_delta(high, epsilon) > delta do high = 2 * high end
  while high - low > 1e-15 * high do
    local middle = 0.5 * (low + high)
    if middle == low or middle == high then break end
    if gaussian_delta(middle, epsilon) > delta then low = middle else high = middle end
  end
  return sensitivity * high
end

--- delta of Gaussian noise of standard deviation sigma, for L2 sensitivity 1.
---     > ("%.6f"):format(ms.armour.privacy.accountants.gaussian_delta(1.0, 1.0)) --> 0.126937
function accountants.gaussian_delta(sigma, epsilon)
  sigma = check.number_not_negative("gaussian_delta", "sigma", sigma)
  epsilon = check.number_not_negative("gaussian_delta", "epsilon", epsilon)
  return sigma == 0 and 1.0 or gaussian_delta(sigma, epsilon)
end

return accountants
