-- Robust rules against plain searches, and what they are for: a share of faulty parties moves the result no further than the others lie. A
-- second.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local F = ms.federated
local S, FeatureMap = F.strategies, F.FeatureMap
local robust = require "lunaria.federated.strategies.robust"

local draws = require "lunaria.armour.common".generator(5)

local function rows_of(m, n) return draws:normal({ m, n }, ms.float64):tolist() end

local function aggregated(strategy, rows)
  local updates = {}
  for i, row in ipairs(rows) do updates[i] = { id = i, samples = 1, weights = FeatureMap { w = ms.tensor(row, ms.float64) } } end
  return strategy:aggregate({ number = 1 }, FeatureMap { w = ms.zeros({ #rows[1] }, ms.float64) }, updates).w:tolist()
end

local function column(rows, j)
  local list = {}
  for i, row in ipairs(rows) do list[i] = row[j] end
  table.sort(list)
  return list
end

local function mean(list)
  local sum = 0.0
  for _, x in ipairs(list) do sum = sum + x end
  return sum / #list
end

t.test("medians and trimmed means, number by number", function()
  for _, m in ipairs { 1, 2, 5, 8 } do
    local rows = rows_of(m, 13)
    local median, trimmed = {}, {}
    local cut = (m - 1) // 3
    for j = 1, 13 do
      local list = column(rows, j)
      median[j] = m % 2 == 1 and list[(m + 1) // 2] or (list[m // 2] + list[m // 2 + 1]) / 2
      trimmed[j] = mean(table.move(list, cut + 1, m - cut, 1, {}))
    end
    t.near(aggregated(S.Median(), rows), median, 1e-14)
    t.near(aggregated(S.TrimmedMean { faulty = cut }, rows), trimmed, 1e-13)
    t.near(aggregated(S.TrimmedMean { beta = (cut + 0.01) / m }, rows), trimmed, 1e-13)
  end
  t.fails({ "TrimmedMean", "2 are cut off at each end, and there are only 4" }, aggregated, S.TrimmedMean { faulty = 2 }, rows_of(4, 1))
end)

local function distance(a, b)
  local sum = 0.0
  for j, x in ipairs(a) do sum = sum + (x - b[j]) ^ 2 end
  return sum
end

-- The rows in `among` by Krum's score.
local function by_score(rows, among, f)
  local list = {}
  for _, i in ipairs(among) do
    local own = {}
    for _, j in ipairs(among) do
      if i ~= j then own[#own + 1] = distance(rows[i], rows[j]) end
    end
    table.sort(own)
    local sum = 0.0
    for k = 1, math.max(1, #among - f - 2) do sum = sum + (own[k] or 0) end
    list[#list + 1] = { score = sum, row = i }
  end
  table.sort(list, function(a, b) return a.score < b.score or a.score == b.score and a.row < b.row end)
  return list
end

local function numbers_to(m)
  local list = {}
  for i = 1, m do list[i] = i end
  return list
end

t.test("Krum, Multi-Krum and Bulyan choose as a plain search does", function()
  for _, case in ipairs { { 7, 1 }, { 11, 2 }, { 9, 0 }, { 15, 3 } } do
    local m, f = table.unpack(case)
    local rows = rows_of(m, 6)
    local order = by_score(rows, numbers_to(m), f)
    t.equal(aggregated(S.Krum { faulty = f }, rows), rows[order[1].row])
    for _, count in ipairs { m - f - 2, 3 } do
      local chosen = {}
      for k = 1, count do chosen[k] = rows[order[k].row] end
      local expected = {}
      for j = 1, 6 do expected[j] = mean(column(chosen, j)) end
      t.near(aggregated(S.MultiKrum { faulty = f, count = count ~= m - f - 2 and count or nil }, rows), expected, 1e-13)
    end
    local left, chosen = numbers_to(m), {}
    for _ = 1, m - 2 * f do
      local best = by_score(rows, left, f)[1].row
      chosen[#chosen + 1] = rows[best]
      for k, row in ipairs(left) do
        if row == best then table.remove(left, k) break end
      end
    end
    local expected = {}
    for j = 1, 6 do
      local list = column(chosen, j)
      local count = #list
      local median = count % 2 == 1 and list[(count + 1) // 2] or (list[count // 2] + list[count // 2 + 1]) / 2
      table.sort(list, function(a, b) return math.abs(a - median) < math.abs(b - median) end)
      expected[j] = mean(table.move(list, 1, m - 4 * f, 1, {}))
    end
    t.near(aggregated(S.Bulyan { faulty = f }, rows), expected, 1e-13)
  end
  t.fails({ "Krum", "4 updates are too few to bear 1 faulty ones: at least 5" }, aggregated, S.Krum { faulty = 1 }, rows_of(4, 2))
  t.fails({ "MultiKrum", "at least 7" }, aggregated, S.MultiKrum { faulty = 1, count = 7 }, rows_of(6, 2))
  t.fails({ "Bulyan", "at least 7" }, aggregated, S.Bulyan { faulty = 1 }, rows_of(6, 2))
end)

t.test("distances do not cancel beside large updates", function()
  local rows = { { 1e9, 1e9 }, { 1.0, 0.0 }, { 1.001, 0.0 }, { 1.002, 0.0 }, { 1.0005, 0.0 } }
  local scores = robust.krum_scores(ms.tensor(rows, ms.float64), 1)
  t.near(scores[2], 0.0005 ^ 2 + 0.001 ^ 2, 1e-15)
end)

t.test("the geometric median has the least sum of distances", function()
  for _, m in ipairs { 3, 6, 11 } do
    local rows = rows_of(m, 4)
    local point = aggregated(S.GeometricMedian(), rows)
    local function sum(x)
      local total = 0.0
      for _, row in ipairs(rows) do total = total + math.sqrt(distance(row, x)) end
      return total
    end
    local best = sum(point)
    for j = 1, 4 do
      for _, step in ipairs { 1e-4, -1e-4 } do
        local other = table.move(point, 1, 4, 1, {})
        other[j] = other[j] + step
        assert(sum(other) >= best, "a step leads nearer")
      end
    end
    -- Directions to all updates are balanced: the gradient is 0.
    for j = 1, 4 do
      local pull = 0.0
      for _, row in ipairs(rows) do pull = pull + (row[j] - point[j]) / math.sqrt(distance(row, point)) end
      assert(math.abs(pull) < 1e-9, pull)
    end
  end
  -- Where it lies on an update, and where all are one point.
  t.near(aggregated(S.GeometricMedian(), { { 0.0, 0.0 }, { 1.0, 0.0 }, { -1.0, 0.0 }, { 0.0, 1.0 }, { 0.0, -1.0 } }), { 0, 0 }, 1e-12)
  t.near(aggregated(S.GeometricMedian(), { { 2.0 }, { 2.0 }, { 2.0 } }), { 2 }, 1e-15)
  t.near(aggregated(S.GeometricMedian(), { { 5.0, 1.0 } }), { 5, 1 }, 1e-15)
  t.near(aggregated(S.GeometricMedian(), { { 0.0 }, { 0.0 }, { 1.0 } }), { 0 }, 1e-12)
end)

t.test("two faulty parties of eleven move the result no further than the others lie", function()
  local makes = { S.Median(), S.TrimmedMean { faulty = 2 }, S.Krum { faulty = 2 }, S.MultiKrum { faulty = 2 }, S.Bulyan { faulty = 2 },
    S.GeometricMedian(), S.NormBound(5.0) }
  for _, attack in ipairs { 1e6, -40.0, 3.0 } do
    local rows = rows_of(11, 50)
    for i = 10, 11 do
      for j = 1, 50 do rows[i][j] = attack * (1 + i * 1e-3) end
    end
    for i, strategy in ipairs(makes) do
      local length = math.sqrt(distance(aggregated(strategy, rows), rows_of(1, 50)[1]))
      assert(length < 16, ("%d: %g under %g"):format(i, length, attack))
    end
  end
end)

t.test("a bound of norms shortens longer changes alone, for weights and differences", function()
  local global = FeatureMap { w = ms.tensor({ 1.0, 1.0 }, ms.float64) }
  local function sent(id, x, y) return { id = id, samples = 1, weights = FeatureMap { w = ms.tensor({ x, y }, ms.float64) } } end
  local map = S.NormBound(1.0):aggregate({ number = 1 }, global, { sent(1, 1.0, 1.5), sent(2, 31.0, 41.0) })
  t.near(map.w:tolist(), { 1 + 0.6 / 2, 1 + (0.5 + 0.8) / 2 }, 1e-14)
  map = S.NormBound(1.0, S.FedBuff { buffer = 2 }):aggregate({ number = 1 }, global, { sent(1, 0.0, 0.5), sent(2, 30.0, 40.0) })
  t.near(map.w:tolist(), { 1 + 0.6 / 2, 1 + (0.5 + 0.8) / 2 }, 1e-14)
  t.equal(S.NormBound(1.0).secure, false)
  t.equal({ S.NormBound(1.0, S.FedBuff()).asynchronous, S.NormBound(1.0, S.FedProx()).client }, { true, "prox" })
end)

t.finish()
