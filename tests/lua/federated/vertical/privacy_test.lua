-- Labels and embeddings that are private when they leave. About 1 second.
-- Eager mode only: draws alone.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local F, ops = ms.federated, ms.ops

t.test("labels are kept and moved with the probabilities of randomized response", function()
  local n = 60000
  for _, classes in ipairs { 2, 3, 10 } do
    for _, eps in ipairs { 0.0, 0.5, 2.0 } do
      local dp = F.LabelDP(eps, { classes = classes, seed = 17 + classes })
      local keep = dp:keep_probability()
      t.near(keep, math.exp(eps) / (classes - 1 + math.exp(eps)), 1e-14)
      local labels = ops.full({ n }, classes - 1, { dtype = ms.int32 })
      local told = dp(labels)
      for class = 0, classes - 1 do
        local p = class == classes - 1 and keep or (1 - keep) / (classes - 1)
        local got = ops.sum(ops.equal(told, class):astype(ms.float64)):item() / n
        local deviation = math.abs(got - p) / math.sqrt(p * (1 - p) / n)
        assert(deviation < 3, ("%d classes, eps %g, class %d: %g deviations"):format(classes, eps, class, deviation))
      end
    end
  end
end)

t.test("labels come back in the form they had, and draws without a seed differ", function()
  local dp = F.LabelDP(60.0, { classes = 4, seed = 1 })
  for _, labels in ipairs { ms.tensor { 0, 3, 1 }, ms.tensor { 0.0, 3.0, 1.0 }, ms.tensor({ { 0 }, { 3 }, { 1 } }, ms.int32) } do
    t.equal(dp(labels), labels)
    t.equal(dp(labels).dtype, labels.dtype)
  end
  local hot = ms.tensor { { 0.0, 1.0, 0.0 }, { 1.0, 0.0, 0.0 } }
  t.equal(F.LabelDP(60.0)(hot), hot)
  local zeros = ms.zeros({ 200 }, ms.int32)
  local free = F.LabelDP(0.5)
  assert(not ops.all(ops.equal(free(zeros), free(zeros))):item())
  local seeded = F.LabelDP(0.5, { seed = 3 })
  assert(not ops.all(ops.equal(seeded(zeros), seeded(zeros))):item())
  t.equal(F.LabelDP(0.5, { seed = 3 })(zeros), F.LabelDP(0.5, { seed = 3 })(zeros))
end)

t.test("estimates of counts have no bias", function()
  local labels = ops.concat({ ms.zeros({ 3000 }, ms.int32), ms.ones({ 1500 }, ms.int32), ops.full({ 500 }, 2, { dtype = ms.int32 }) }, 0)
  local sum = ms.zeros({ 3 }, ms.float64)
  local rounds = 40
  for seed = 1, rounds do
    local dp = F.LabelDP(1.0, { classes = 3, seed = seed })
    sum = sum + dp:estimate_counts(dp(labels))
  end
  for class, count in ipairs { 3000, 1500, 500 } do
    -- The deviation of one estimate is below sqrt(n / 4) / (keep - other).
    local keep = F.LabelDP(1.0):keep_probability(3)
    local deviation = math.sqrt(5000 / 4) / (keep - (1 - keep) / 2) / math.sqrt(rounds)
    assert(math.abs(sum[class - 1]:item() / rounds - count) < 4 * deviation)
  end
end)

t.test("bits of embeddings are kept with 1 / (1 + exp(-eps / 2))", function()
  local n = 100000
  for _, eps in ipairs { 0.0, 1.0, 4.0 } do
    local dp = F.EmbeddingDP(eps, { seed = 5 })
    local told = dp(ops.concat({ ms.ones { n, 1 }, ms.ones { n, 1 } * -0.1 }, 1))
    local keep = 1 / (1 + math.exp(-eps / 2))
    local sums = ops.sum(told, 0):tolist()
    local limit = 3 * math.sqrt(keep * (1 - keep) / n)
    assert(math.abs(sums[1] / n - keep) < limit)
    assert(math.abs(sums[2] / n - (1 - keep)) < limit)
  end
  local x = ms.tensor({ { 0.5, 0.0, -1.0 } }, ms.float64)
  t.equal(F.EmbeddingDP()(x):tolist(), { { 1.0, 0.0, 0.0 } })
  t.equal(F.EmbeddingDP()(x).dtype, ms.float64)
end)

t.test("other labels and embeddings are errors", function()
  t.fails({ "LabelDP", "eps must not be negative" }, F.LabelDP, -1)
  t.fails({ "LabelDP", "classes must be at least 2" }, F.LabelDP, 1.0, 1)
  t.fails({ "LabelDP", "some are not whole" }, F.LabelDP(1.0), ms.tensor { 0.5 })
  t.fails({ "labels lie between 0 and 2" }, F.LabelDP(1.0), ms.tensor { 0, 2 })
  t.fails({ "3 columns for 2 classes" }, F.LabelDP(1.0, 2), ms.zeros { 2, 3 })
  t.fails({ "EmbeddingDP", "floating tensor" }, F.EmbeddingDP(1.0), ms.tensor { 1 })
end)

t.finish()
