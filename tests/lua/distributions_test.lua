-- Random numbers follow their distribution: frequencies and moments of the operators that tests/data/conformance/random.json does not
-- hold. Five standard deviations of chance are allowed; the seed is fixed.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops
local N = 20000

-- The part of elements for which a mask is true, beside the one that is expected.
local function expect_part(mask, p)
  local n = mask.size
  t.near(mask:astype(ms.float64):mean():item(), p, 5 * math.sqrt(p * (1 - p) / n) + 1e-12)
end
local function expect_moments(x, mean, variance, fourth)
  x = x:astype(ms.float64)
  t.near(x:mean():item(), mean, 5 * math.sqrt(variance / x.size))
  t.near(ops.var(x):item(), variance, 5 * math.sqrt((fourth - variance ^ 2) / x.size))
end

ms.set_seed(7)

t.test("draws in the shape of a tensor are those of the shape", function()
  local x = ms.zeros({ 5, 7 }, ms.float64)
  for _, row in ipairs { { ops.rand_like(x, 3), ops.rand({ 5, 7 }, ms.float64, 3) },
    { ops.randn_like(x, 3), ops.randn({ 5, 7 }, ms.float64, 3) },
    { ops.randint_like(x, -2, 9, 3), ops.randint(-2, 9, { 5, 7 }, 3, ms.float64) } } do
    t.equal(row[1], row[2])
  end
end)

t.test("Laplace's distribution: variance 2, fourth moment 24", function()
  expect_moments(ops.standard_laplace { N }, 0, 2, 24)
  expect_moments((ops.laplace({ N }, 3.0, 0.5) - 3) * 2, 0, 2, 24)
end)

t.test("gamma and Poisson: mean and variance by their parameter", function()
  expect_moments(ops.random_gamma({ N }, 2.5), 2.5, 2.5, 3 * 2.5 ^ 2 + 6 * 2.5)
  expect_moments(ops.gamma({ N }, ms.tensor(2.0), ms.tensor(4.0)), 0.5, 0.125, 3 * 0.125 ^ 2 + 6 * 2 / 4 ^ 4)
  for _, rate in ipairs { 0.7, 33.5 } do
    expect_moments(ops.random_poisson({ N }, rate), rate, rate, rate + 3 * rate ^ 2)
  end
end)

t.test("classes come as often as their probabilities say", function()
  local logits = ms.tensor { { 0.0, 1.0, -1.0 }, { 2.0, 0.0, 0.0 } }
  local p = ops.softmax(logits)
  local drawn = ops.random_categorical(logits, N)
  t.equal(drawn.shape, ms.zeros({ 2, N }).shape)
  local rows = logits[0]:reshape({ 1, 3 }):broadcast_to { N, 3 }
  local hard, soft = ops.gumbel_softmax(rows, 1.0, true), ops.gumbel_softmax(rows, 0.5)
  t.near(ops.sum(soft, 1), ms.ones { N }, 1e-5)
  t.equal(ops.sum(hard, 1), ms.ones { N })
  local by_weight = ops.multinomial(p[0], N, true)
  for class = 0, 2 do
    for row = 0, 1 do expect_part(ops.equal(drawn[row], class), p[{ row, class }]:item()) end
    expect_part(ops.equal(ops.argmax(hard, 1), class), p[{ 0, class }]:item())
    expect_part(ops.equal(ops.argmax(soft, 1), class), p[{ 0, class }]:item())
    expect_part(ops.equal(by_weight, class), p[{ 0, class }]:item())
  end
  expect_part(ops.equal(ops.bernoulli(ms.zeros { N }, 0.3), 1), 0.3)
end)

t.test("orders hold everything once, and each place is as likely", function()
  local order = ops.randperm(500)
  t.equal(ops.sort(order):astype(ms.int64), ops.arange(500))
  t.equal(ops.sort(ops.shuffle(ops.arange(500))), ops.arange(500))
  local firsts = {}
  for i = 1, 3000 do firsts[i] = ops.randperm(3)[0]:item() end
  for value = 0, 2 do expect_part(ops.equal(ms.tensor(firsts), value), 1 / 3) end
end)

t.test("places where a mask is true", function()
  local mask = ops.greater(ops.randn { 40, 30 }, 0.5)
  local count = mask:astype(ms.int64):sum():item()
  local places, is_there = ops.choice_with_mask(mask, 50)
  t.equal(is_there:all():item(), true)
  local flat = ops.sum(places * ms.tensor { 30, 1 }, 1)
  t.equal((ops.unique(flat)).size, 50)
  t.equal(ops.gather(mask:reshape(-1), flat, 0):all():item(), true)
  local all, there = ops.choice_with_mask(mask, 1200)
  t.equal({ all.shape[1], there:astype(ms.int64):sum():item() }, { 1200, count })
end)

t.test("dropout drops whole channels, and keeps the mean", function()
  for axes, name in ipairs { "dropout1d", "dropout2d", "dropout3d" } do
    local shape = { 200, 50 }
    for _ = 1, axes do shape[#shape + 1] = 2 end
    local y = ops[name](ms.ones(shape), 0.3):reshape { 200 * 50, 2 ^ axes // 1 }
    t.equal(ops.amax(y, 1), ops.amin(y, 1))
    expect_part(ops.equal(y[{ ms.slice(), 0 }], 0), 0.3)
    t.near(ops.amax(y):item(), 1 / 0.7, 1e-6)
    t.equal(ops[name](ms.ones(shape), 0.3, false), ms.ones(shape))
  end
  local y, mask = ops.dropout_with_mask(ms.ones { N }, 0.2)
  expect_part(ops.equal(y, 0), 0.2)
  t.equal(ops.not_equal(y, 0), mask:astype(ms.bool_))
end)

t.test("rrelu's slopes are drawn between the two", function()
  local y = ops.rrelu(ops.full({ N }, -1.0), 0.2, 0.4)
  t.equal({ ops.amax(y):item() <= -0.2, ops.amin(y):item() >= -0.4 }, { true, true })
  expect_moments(y, -0.3, 0.04 / 12, 0.2 ^ 4 / 80)
  t.equal(ops.rrelu(ms.tensor { 2.0, 0.0 }, 0.2, 0.4), ms.tensor { 2.0, 0.0 })
end)

t.finish()
