-- Strategies against their formulas in plain numbers, at random sizes; order, refusal, state. Two seconds.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local F = ms.federated
local S, FeatureMap, ops = F.strategies, F.FeatureMap, ms.ops

local random = require "lunaria.armour.common".generator(11)

local function numbers(n, scale)
  local list = random:normal({ n }, ms.float64):tolist()
  for i in ipairs(list) do list[i] = list[i] * (scale or 1.0) end
  return list
end

-- A model of two features, of n numbers together.
local function map_of(list, first)
  local a, b = {}, {}
  for i, x in ipairs(list) do table.insert(i <= first and a or b, x) end
  return FeatureMap { { "a", ms.tensor(a, ms.float64) }, { "b", ms.tensor(b, ms.float64):reshape { -1, 1 } } }
end

local function updates_of(rows, first, more)
  local list = {}
  for i, row in ipairs(rows) do
    local update = { id = i, samples = 3 + i * 7 % 5, weights = map_of(row, first), metrics = {}, extra = {}, staleness = i % 4 }
    for key, value in pairs(more and more(i, row) or {}) do update[key] = value end
    list[i] = update
  end
  return list
end

local function shares_of(updates, weighted)
  local total, list = 0, {}
  for _, u in ipairs(updates) do total = total + (weighted and u.samples or 1) end
  for i, u in ipairs(updates) do list[i] = (weighted and u.samples or 1) / total end
  return list
end

-- sum_i p_i f(i, j)
local function mean(p, f)
  return function(j)
    local sum = 0.0
    for i, share in ipairs(p) do sum = sum + share * f(i, j) end
    return sum
  end
end

local sizes = { { 1, 1, 2 }, { 5, 2, 3 }, { 40, 11, 17 }, { 700, 300, 6 } }

-- make() gives a strategy, formula(memory, w, rows, updates) a function from j to the new w_j; three rounds.
local function follows(name, make, formula, more)
  t.test(name, function()
    for _, size in ipairs(sizes) do
      local n, first, m = table.unpack(size)
      n = n + 1
      local strategy, memory = make(), {}
      local w = numbers(n)
      local global = map_of(w, first)
      if strategy.prepare then global = strategy:prepare(global) end
      for number = 1, 3 do
        local rows = {}
        for i = 1, m do rows[i] = numbers(n) end
        local updates = updates_of(rows, first, more)
        local expected, f = {}, formula(memory, w, rows, updates)
        for j = 1, n do expected[j] = f(j) end
        global = S.aggregate(strategy, { number = number, seed = number, clients = m, population = 2 * m }, global, updates)
        t.near(global:vector():tolist(), expected, 1e-11)
        w = global:vector():tolist()
      end
    end
  end)
end

follows("FedAvg is the mean by samples", S.FedAvg, function(_, _, rows, updates)
  return mean(shares_of(updates, true), function(i, j) return rows[i][j] end)
end)

follows("FedAvg goes a part of the way", function() return S.FedAvg { server_lr = 0.3, weighted = false } end, function(_, w, rows, updates)
  local m = mean(shares_of(updates, false), function(i, j) return rows[i][j] end)
  return function(j) return w[j] + 0.3 * (m(j) - w[j]) end
end)

follows("FedAvgM has momentum", function() return S.FedAvgM { server_lr = 0.5, momentum = 0.7 } end, function(memory, w, rows, updates)
  local d = mean(shares_of(updates, true), function(i, j) return rows[i][j] - w[j] end)
  return function(j)
    memory[j] = 0.7 * (memory[j] or 0) + d(j)
    return w[j] + 0.5 * memory[j]
  end
end)

local function adaptive(name, beta1, second)
  local function make() return S[name] { server_lr = 0.2, beta1 = beta1, beta2 = 0.95, tau = 0.01, initial = 1e-4 } end
  follows(name .. " divides by the root of second moments", make, function(memory, w, rows, updates)
    local d = mean(shares_of(updates, true), function(i, j) return rows[i][j] - w[j] end)
    return function(j)
      local m, v = table.unpack(memory[j] or { 0.0, 1e-4 })
      m = beta1 * m + (1 - beta1) * d(j)
      v = second(v, d(j) ^ 2)
      memory[j] = { m, v }
      return w[j] + 0.2 * m / (math.sqrt(v) + 0.01)
    end
  end)
end
adaptive("FedAdam", 0.9, function(v, s) return 0.95 * v + 0.05 * s end)
adaptive("FedYogi", 0.9, function(v, s) return v - 0.05 * s * (v > s and 1 or v < s and -1 or 0) end)
adaptive("FedAdagrad", 0.0, function(v, s) return v + s end)

local function with_normalizer(i) return { metrics = { normalizer = i * 1.5 } } end
follows("FedNova divides changes by the work that they took", function() return S.FedNova { server_lr = 0.9 } end,
  function(_, w, rows, updates)
    local p, effective = shares_of(updates, true), 0.0
    for i, share in ipairs(p) do effective = effective + share * i * 1.5 end
    local d = mean(p, function(i, j) return (rows[i][j] - w[j]) / (i * 1.5) end)
    return function(j) return w[j] + 0.9 * effective * d(j) end
  end, with_normalizer)

follows("q-FedAvg counts high losses more", function() return S.QFedAvg { q = 0.5, lipschitz = 4.0 } end, function(_, w, rows)
  local divisor = 0.0
  for i, row in ipairs(rows) do
    local square = 0.0
    for j in ipairs(row) do square = square + (4.0 * (w[j] - row[j])) ^ 2 end
    divisor = divisor + 0.5 * i ^ -0.5 * square + 4.0 * i ^ 0.5
  end
  return function(j)
    local sum = 0.0
    for i, row in ipairs(rows) do sum = sum + i ^ 0.5 * 4.0 * (w[j] - row[j]) end
    return w[j] - sum / divisor
  end
end, function(i) return { metrics = { initial_loss = i } } end)

local function with_control(_, row)
  return { extra = { control = ms.tensor(row, ms.float64) * 0.1 } }
end
t.test("SCAFFOLD's control variate is the mean of all parties' changes, of which half take part", function()
  local strategy = S.Scaffold { server_lr = 0.5 }
  local global = strategy:prepare(map_of(numbers(6), 2))
  local control, w = { 0, 0, 0, 0, 0, 0 }, global:vector():tolist()
  for number = 1, 3 do
    t.near(strategy:configure({ number = number }).control, control, 1e-12)
    local rows = { numbers(6), numbers(6), numbers(6) }
    global = S.aggregate(strategy, { number = number, population = 6 }, global, updates_of(rows, 2, with_control))
    for j = 1, 6 do
      local sum = rows[1][j] + rows[2][j] + rows[3][j]
      control[j] = control[j] + 0.1 * sum / 6
      w[j] = w[j] + 0.5 * (sum / 3 - w[j])
    end
    t.near(global:vector():tolist(), w, 1e-12)
  end
end)

follows("FedAsync mixes by staleness", function() return S.FedAsync { alpha = 0.5, decay = "hinge", a = 2.0, b = 1.0 } end,
  function(_, w, rows, updates)
    return function(j)
      local x = w[j]
      for i, u in ipairs(updates) do
        local share = 0.5 * (u.staleness <= 1 and 1 or 1 / (2 * (u.staleness - 1) + 1))
        x = (1 - share) * x + share * rows[i][j]
      end
      return x
    end
  end)

follows("FedBuff adds changes that fade with staleness", function() return S.FedBuff { server_lr = 0.8 } end, function(_, w, rows, updates)
  local d = mean(shares_of(updates, false), function(i, j) return rows[i][j] / math.sqrt(1 + updates[i].staleness) end)
  return function(j) return w[j] + 0.8 * d(j) end
end)

-- Every strategy that aggregates, for what all of them promise.
local all = { FedAvg = S.FedAvg, FedAvgM = S.FedAvgM, FedProx = S.FedProx, Ditto = S.Ditto, FedAdam = S.FedAdam, FedYogi = S.FedYogi,
  FedAdagrad = S.FedAdagrad, FedNova = S.FedNova, Scaffold = S.Scaffold, PerFedAvg = S.PerFedAvg, Reptile = S.Reptile,
  QFedAvg = function() return S.QFedAvg { settings = { lr = 0.1 } } end, FedAsync = S.FedAsync, FedBuff = S.FedBuff,
  Median = S.Median, TrimmedMean = S.TrimmedMean, Krum = S.Krum, MultiKrum = S.MultiKrum, Bulyan = S.Bulyan,
  GeometricMedian = S.GeometricMedian, NormBound = function() return S.NormBound(0.5, S.FedAdam()) end,
  Hierarchical = function()
    return S.Hierarchical(function(id) return id % 2 == 0 and "even" or "odd" end, { inner = function() return S.FedAvgM() end })
  end,
  Hybrid = function() return S.Hybrid(function(_, map) return map:with_vector(map:vector() * 0.9) end, { strategy = S.FedAvgM() }) end }

local function complete(i, row)
  return { metrics = { normalizer = i, initial_loss = 1 + i, steps = i }, extra = { control = ms.tensor(row, ms.float64) } }
end

local function bits(map) return map:vector():get_bytes() end

-- Two rounds from the same weights; change(updates) may put them in another order, or add to them.
local function two_rounds(make, change, between)
  local strategy = make()
  local g = require "lunaria.armour.common".generator(3)
  local function row() return (g:normal({ 9 }, ms.float64)):tolist() end
  local global = map_of(row(), 4)
  if strategy.prepare then global = strategy:prepare(global) end
  local refused
  for number = 1, 2 do
    local rows = {}
    for i = 1, 9 do rows[i] = row() end
    local updates = change(updates_of(rows, 4, complete))
    global, refused = S.aggregate(strategy, { number = number, seed = number, population = 20 }, global, updates)
    if between then strategy = between(strategy) end
  end
  return bits(global), refused
end

local function same(updates) return updates end

t.test("the order of arrival and the number of threads change no bit", function()
  local threads = ms.get_num_threads()
  for name, make in pairs(all) do
    local expected = two_rounds(make, same)
    local shuffled = two_rounds(make, function(updates)
      table.sort(updates, function(a, b) return a.id * 7 % 10 < b.id * 7 % 10 end)
      return updates
    end)
    if shuffled ~= expected then error(name .. " depends on the order") end
    ms.set_num_threads(threads == 1 and 2 or 1)
    local other = two_rounds(make, same)
    ms.set_num_threads(threads)
    if other ~= expected then error(name .. " depends on threads") end
  end
end)

t.test("updates that cannot be used are named and change nothing", function()
  local function bad(id, change)
    local list = numbers(9)
    local update = { id = id, samples = 1, weights = map_of(list, 4), metrics = { normalizer = 1, initial_loss = 1 },
      extra = { control = ms.zeros({ 9 }, ms.float64) } }
    change(update, list)
    return update
  end
  local function all_bad(updates)
    local list = {
      bad(100, function(u, l) l[3] = 0 / 0; u.weights = map_of(l, 4) end),
      bad(101, function(u, l) l[9] = 1e300; u.weights = map_of(l, 4) end),
      bad(102, function(u, l) l[10] = 1.0; u.weights = map_of(l, 4) end),
      bad(103, function(u) u.samples = -5 end),
      bad(104, function(u) u.samples = 0 / 0 end),
      bad(105, function(u) u.metrics.loss = 1 / 0 end),
      bad(106, function(u) u.weights = nil end),
      bad(108, function(u) u.metrics = "good" end),
      bad(107, function(u) u.extra.more = ms.tensor { 0 / 0 } end),
      bad(9, function() end),
    }
    return table.move(updates, 1, #updates, #list + 1, list)
  end
  for name, make in pairs(all) do
    local got, refused = two_rounds(make, all_bad)
    if got ~= two_rounds(make, same) then error(name .. " has used an update that is refused") end
    t.equal(#refused, 10)
  end
  local _, refused = two_rounds(S.FedAvg, all_bad)
  local reasons = {}
  for i, row in ipairs(refused) do reasons[i] = row.id .. " " .. row.reason end
  local text = table.concat(reasons, "\n")
  for _, part in ipairs { "9 it has sent two updates", "100 the feature 'a' holds nan", "101 the feature 'b' holds 1e+300, above",
    "102 the feature 'b' has the shape (6, 1), and the model's (5, 1)", "103 samples must be a positive number, got -5", "104 samples",
    "105 the metric 'loss' is inf", "106 weights must be a feature map, got nil", "107 the tensor 'more' holds",
    "108 metrics must be a table, got the string 'good'" } do
    assert(text:find(part, 1, true), part .. "\n" .. text)
  end
end)

t.test("of two updates of one party, which come in any order, the first in the list counts", function()
  -- Both are in the list; a server keeps the first that it has accepted.
  local global = FeatureMap { w = ms.zeros { 1 } }
  local function sent(x) return { id = "a", samples = 1, weights = FeatureMap { w = ms.tensor { x } } } end
  local map, refused = S.aggregate(S.FedAvg(), { number = 1 }, global, { sent(1.0) })
  t.equal({ map.w:item(), #refused }, { 1.0, 0 })
  local _, both = S.aggregate(S.FedAvg(), { number = 1 }, global, { sent(1.0), sent(2.0) })
  t.equal(#both, 1)
end)

t.test("a strategy goes on from its state as if it had not been stopped", function()
  for name, make in pairs(all) do
    local expected = two_rounds(make, same)
    local got = two_rounds(make, same, function(strategy)
      local another = make()
      another:load_state(strategy:state())
      if another.prepare then another:prepare(map_of(numbers(9), 4)) end
      return another
    end)
    if got ~= expected then error(name) end
  end
end)

-- What a server has of updates in secret: means of what parties add up, by samples or with equal weights.
local function by_sums(strategy, global, updates)
  local sums = require "lunaria.federated.strategies.sums"
  local form, whole, joint = sums.form(strategy, 64), 0, nil
  for _, update in ipairs(updates) do
    local weight = strategy.weighted and update.samples or 1
    local vector, beside = sums.sent(form, global:vector(ms.float64), update.weights:vector(ms.float64), update)
    t.equal(beside.size, sums.further(form.kind, global:size()))
    local told = ops.concat({ vector, beside }, 0) * weight
    joint, whole = joint and joint + told or told, whole + weight
  end
  local size = global:size()
  joint = joint / whole
  local sum = { mean = joint[{ ms.slice(0, size) }], beside = sums.read(form, joint[{ ms.slice(size, joint.size) }]), clients = #updates }
  return strategy:aggregate_sums({ number = 1 }, global, sum)
end

t.test("numbers of any size are added up in secret as digits, or refused by name", function()
  local sums = require "lunaria.federated.strategies.sums"
  local zero = ms.zeros({ 1 }, ms.float64)
  for _, base in ipairs { 2, 3, 64 } do
    local form = { kind = "normalised", base = base }
    for _, x in ipairs { 1, 0.25, 13.7, base ^ 3 + 0.1, base ^ 4 - 0.5 } do
      local _, digits = sums.sent(form, zero, zero, { metrics = { normalizer = x } })
      t.equal(ops.max(ops.abs(digits)):item() < base, true)
      t.near(sums.read(form, digits), x, 1e-9)
    end
    t.fails({ "cannot be added up in secret" }, sums.sent, form, zero, zero, { metrics = { normalizer = base ^ 4 } })
  end
end)

t.test("those that need the weighted mean alone give the same from one update that is it", function()
  for name, make in pairs(all) do
    if make().secure then
      local global = map_of(numbers(9), 4)
      local rows = {}
      for i = 1, 5 do rows[i] = numbers(9) end
      local updates = updates_of(rows, 4, complete)
      local strategy = make()
      local weighted = (strategy.strategy or strategy).weighted
      local samples = 0
      for _, u in ipairs(updates) do samples = samples + u.samples end
      local sum = S.aggregate(S.FedAvg { weighted = weighted }, { number = 1 }, global, updates)
      local one = { id = "sum", samples = samples, weights = sum }
      local a = S.aggregate(make(), { number = 1 }, global, updates)
      local b = strategy.sums and by_sums(strategy, global, updates) or S.aggregate(make(), { number = 1 }, global, { one })
      local ok, wrong = pcall(t.near, a:vector():tolist(), b:vector():tolist(), 1e-12)
      if not ok then error(name .. ": " .. wrong) end
    end
  end
end)

t.test("a strategy may be a table of two functions", function()
  local mine = { client = "prox", count = 0 }
  function mine.configure(_, round) return { lr = 0.1 / round.number, mu = 1.0 } end
  function mine.aggregate(self, _, _, updates)
    self.count = self.count + 1
    return updates[1].weights
  end
  t.equal(S.configure(mine, { number = 2 }), { lr = 0.05, mu = 1.0, rule = "prox", sends = "weights" })
  local global = FeatureMap { w = ms.zeros { 1 } }
  local map = S.aggregate(mine, { number = 1 }, global, { { id = 2, samples = 1, weights = FeatureMap { w = ms.ones { 1 } } } })
  t.equal({ map.w:item(), mine.count }, { 1.0, 1 })
  -- What it gives is checked like updates.
  function mine.aggregate() return FeatureMap { w = ms.tensor { 0 / 0 } } end
  t.fails({ "table: aggregate gave weights", "holds nan" }, S.aggregate, mine, { number = 1 }, global,
    { { id = 2, samples = 1, weights = global } })
  function mine.aggregate() return nil end
  t.fails({ "must be a feature map, got nil" }, S.aggregate, mine, { number = 1 }, global, { { id = 2, samples = 1, weights = global } })
  t.fails({ "configure must be a function, got nil" }, S.configure, { aggregate = function() end }, { number = 1 })
  local function nothing() end
  t.fails({ "secure must be a boolean, got the string 'yes'" }, S.configure,
    { configure = nothing, aggregate = nothing, secure = "yes" }, {})
  t.fails({ "strategy must be a strategy", "got 5" }, S.configure, 5, {})
  t.fails({ "configure must give a table of settings, got nil" }, S.configure,
    { configure = nothing, aggregate = nothing }, {})
end)

t.test("a strategy whose result cannot be used forgets it", function()
  local strategy = S.FedAvgM { server_lr = 1e30, momentum = 0.5 }
  local function sent(x) return { { id = 1, samples = 1, weights = FeatureMap { w = ms.tensor { x } } } } end
  local global = S.aggregate(strategy, { number = 1 }, FeatureMap { w = ms.zeros { 1 } }, sent(1e-30))
  local before = strategy:state().velocity:tolist()
  t.fails({ "FedAvgM: aggregate gave weights that cannot be used", "nan or infinity" }, S.aggregate, strategy, { number = 2 }, global,
    sent(1e9))
  t.equal(strategy:state().velocity:tolist(), before)
end)

t.test("no update leaves the weights as they are", function()
  local global = FeatureMap { w = ms.ones { 1 } }
  local map, refused = S.aggregate(S.FedAdam(), { number = 1 }, global, {})
  t.equal({ rawequal(map, global), #refused }, { true, 0 })
end)

t.test("settings out of range are named", function()
  t.fails({ "FedAvg", "server_lr must be a positive number, got 0" }, S.FedAvg, { server_lr = 0 })
  t.fails({ "FedAvg", "no argument 'lr'" }, S.FedAvg, { lr = 0.1 })
  t.fails({ "FedAvg", "settings must be a table", "got 5" }, S.FedAvg, { settings = 5 })
  t.fails({ "FedAdam", "beta2 must be in [0, 1), got 1" }, S.FedAdam, { beta2 = 1 })
  t.fails({ "QFedAvg", "settings.lr must be a number, got nil" }, S.QFedAvg)
  t.fails({ "FedBuff", "buffer must be positive" }, S.FedBuff, { buffer = 0 })
  t.fails({ "FedAsync", "alpha must be a probability" }, S.FedAsync, { alpha = 1.5 })
  t.fails({ "FedAsync", "decay must be one of" }, S.FedAsync, { decay = "linear" })
  t.fails({ "TrimmedMean", "beta must be below 0.5" }, S.TrimmedMean, { beta = 0.5 })
  t.fails({ "Reptile", "go together" }, S.Reptile, { rounds = 5 })
  t.fails({ "PersonalHead", "head must be a list of names" }, S.PersonalHead, "fc")
  t.fails({ "Hybrid", "train must be a function" }, S.Hybrid, 1)
  t.fails({ "Hierarchical", "must take weights" }, S.Hierarchical, print, { strategy = S.FedBuff() })
  t.fails({ "ms.federated.strategies", "there is no strategy 'FedAvgg'", "FedAvg" }, function() return S.FedAvgg end)
end)

t.finish()
