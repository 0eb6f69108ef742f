-- The algorithms of ms.boost against their formulas.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops, boost = ms.nn, ms.ops, ms.boost

local function double(x) return ms.tensor(x, ms.float64) end
local function random(shape) return ms.randn(shape):astype(ms.float64) end

t.test("adasum: orthogonal updates add up, equal ones count once, and it is blind to scale and order", function()
  t.near(boost.adasum(double { 3, 0, 0 }, double { 0, 4, 0 }), { 3, 4, 0 })
  t.near(boost.adasum(double { 1, 2 }, double { 1, 2 }), { 1, 2 }, 1e-12)
  t.near(boost.adasum(double { 0, 0 }, double { 1, 2 }), { 1, 2 }, 1e-12)
  t.near(boost.adasum(double { 0, 0 }, double { 0, 0 }), { 0, 0 })
  ms.set_seed(1)
  local a, b = random { 7 }, random { 7 }
  t.near(boost.adasum(a * 5.0, b * 5.0), boost.adasum(a, b) * 5.0, 1e-12)
  t.near(boost.adasum(a, b), boost.adasum(b, a), 1e-12)
  -- The formula, with plain numbers.
  local x, y, dot, xx, yy = a:tolist(), b:tolist(), 0, 0, 0
  for i = 1, 7 do dot, xx, yy = dot + x[i] * y[i], xx + x[i] ^ 2, yy + y[i] ^ 2 end
  local wanted = {}
  for i = 1, 7 do wanted[i] = (1 - dot / (2 * xx)) * x[i] + (1 - dot / (2 * yy)) * y[i] end
  for _ = 1, 3 do t.near(boost.adasum(a, b), wanted, 1e-12) end
  -- Each parameter is a sum of its own.
  local both = boost.adasum({ a, double { 1, 0 } }, { b, double { 0, 1 } })
  t.near(both[1], wanted, 1e-12)
  t.near(both[2], { 1, 1 })
end)

t.test("adasum of workers that exchange halves is that of pairs, then of pairs of pairs", function()
  ms.set_seed(2)
  for _, count in ipairs { 1, 2, 4, 8, 32 } do
    local workers = {}
    for i = 1, count do workers[i] = { random { 5 }, random { 3, 4 }, random { 1 } } end
    local level = workers
    while #level > 1 do
      local joined = {}
      for i = 1, #level, 2 do joined[#joined + 1] = boost.adasum(level[i], level[i + 1]) end
      level = joined
    end
    local cell = boost.AdaSum(count)
    for _ = 1, 2 do
      local sum = cell(workers)
      for p = 1, 3 do t.near(sum[p], level[1][p], 1e-11) end
    end
  end
end)

t.test("with many workers and the same rate, adasum converges where the sum diverges", function()
  -- Least squares: each worker has a few rows, and makes a step of its own.
  ms.set_seed(3)
  local x, truth = random { 64, 4 }, double { 1, -2, 0.5, 3 }
  local y = ops.matmul(x, truth)
  local function train(join)
    local w = double { 0, 0, 0, 0 }
    for _ = 1, 60 do
      local updates = {}
      for i = 1, 32 do
        local rows, goal = x[{ ms.slice(2 * i - 2, 2 * i) }], y[{ ms.slice(2 * i - 2, 2 * i) }]
        updates[i] = { 0.15 * ops.matmul(ops.swapaxes(rows, 0, 1), ops.matmul(rows, w) - goal) / 2.0 }
      end
      w = w - join(updates)
    end
    return ops.mean((ops.matmul(x, w) - y) ^ 2):item()
  end
  local cell = boost.AdaSum(32)
  assert(train(function(updates) return cell(updates)[1] end) < 1e-3)
  local diverged = train(function(updates)
    local sum = updates[1][1]
    for i = 2, 32 do sum = sum + updates[i][1] end
    return sum
  end)
  assert(not (diverged < 1e3), diverged)
end)

t.test("principal components by the Gram matrix", function()
  ms.set_seed(4)
  -- Points along (3, 4, 0) and, less, along (0, 0, 1), around a place.
  local a, b = random { 12 }, random { 12 }
  local samples = {}
  for i = 1, 12 do samples[i] = double { 5, 6, 7 } + a[i - 1] * double { 3, 4, 0 } + b[i - 1] * double { 0, 0, 0.5 } end
  for _ = 1, 2 do
    local rows, shares = boost.pca(samples, 2)
    t.near(ops.matmul(rows, ops.swapaxes(rows, 0, 1)), { { 1, 0 }, { 0, 1 } }, 1e-10)
    t.near(ops.sum(shares):item(), 1, 1e-10)
    -- The rows span the plane, and every sample is its mean and its shadow on them.
    local centred = ops.stack(samples, 0) - ops.mean(ops.stack(samples, 0), 0)
    t.near(ops.matmul(ops.matmul(centred, ops.swapaxes(rows, 0, 1)), rows), centred, 1e-9)
    -- As the eigenvectors of the covariance.
    local covariance = ops.matmul(ops.swapaxes(centred, 0, 1), centred)
    t.near(ops.matmul(rows, covariance), rows * ops.expand_dims(shares * ops.trace(covariance), 1), 1e-8)
  end
  t.fails("at most 11 components", boost.pca, samples, 12)
  t.fails("fewer than 5 components", boost.pca, samples, 5)
  t.fails("samples must be a list of vectors", boost.pca, 1, 1)
end)

-- A step of DimReduce with plain tensors, for one parameter.
local function reference_step(s, x, p, gradient, loss, o)
  local g = gradient(x)
  local gk = ops.matmul(p, g)
  local bk = s.bk
  if s.gk then
    local y = gk - s.gk
    local product = ops.sum(y * s.sk):item()
    if product > 1e-20 then
      local k = #gk
      local left = ops.eye(k, k, ms.float64) - ops.ger(y, s.sk) / product
      bk = ops.matmul(ops.matmul(ops.swapaxes(left, 0, 1), bk), left) + ops.ger(s.sk, s.sk) / product
    end
  end
  local dk = -ops.matmul(bk, gk)
  local rho = 0.0
  for m = 0, 1 do
    local shorter = o.rho ^ m
    if loss(x + shorter * ops.matmul(dk, p)):item() < loss(x):item() + o.sigma * shorter * ops.sum(gk * dk):item() then
      rho = shorter
      break
    end
  end
  if rho > 0 then s.bk, s.gk, s.sk = bk, gk, rho * dk end
  s.momentum = o.gamma * s.momentum + g - ops.matmul(gk, p)
  return x - (o.alpha * s.momentum - rho * ops.matmul(dk, p))
end

t.test("a step in few dimensions is what the formulas say", function()
  ms.set_seed(5)
  local matrix = random { 6, 6 }
  matrix = ops.matmul(ops.swapaxes(matrix, 0, 1), matrix) / 6.0 + ops.eye(6, 6, ms.float64)
  local target = random { 6 }
  local function loss(x)
    local d = x - target
    return 0.5 * ops.sum(d * ops.matmul(matrix, d)) + 0.1 * ops.sum(d ^ 4)
  end
  local kept = {}
  for i = 1, 6 do kept[i] = random { 6 } end
  local p = boost.pca(kept, 3)
  local Net = nn.Cell:extend("Net")
  function Net:init() self.w = ms.Parameter(double { 1, 1, 1, 1, 1, 1 }, "w") end
  function Net:construct(scale) return loss(self.w) * scale end
  local net, options = Net(), { rho = 0.55, gamma = 0.9, alpha = 0.05, sigma = 0.4 }
  local cell = boost.DimReduce(net, nn.SGD(net:trainable_params(), 1.0), net:trainable_params(), p, options)
  local s = { bk = ops.eye(3, 3, ms.float64), momentum = ops.zeros({ 6 }, ms.float64) }
  local x = double { 1, 1, 1, 1, 1, 1 }
  local first, last
  for _ = 1, 12 do
    x = reference_step(s, x, p, ms.grad(loss), loss, options)
    last = cell(double(1.0)):item()
    first = first or last
    t.near(net.w, x, 1e-9)
  end
  assert(last < first, ("the loss went from %g to %g"):format(first, last))
end)

t.test("training in few dimensions goes on where plain steps have become slow", function()
  ms.set_seed(6)
  local net = nn.SequentialCell(nn.Dense(6, 12), nn.Tanh(), nn.Dense(12, 1))
  local x = ms.randn { 64, 6 }
  local y = ops.sum(ops.sin(x), 1, true)
  local params, loss = net:trainable_params(), nn.WithLossCell(net, nn.MSELoss())
  local kept, step = {}, nn.TrainOneStepCell(loss, nn.SGD(params, 0.05))
  local before
  for i = 1, 120 do
    before = step(x, y):item()
    if i % 6 == 0 then kept[#kept + 1] = boost.flat(params) end
  end
  local copies = {}
  for i, p in ipairs(params) do copies[i] = p:copy() end
  local plain
  for _ = 1, 30 do plain = step(x, y):item() end
  for i, p in ipairs(params) do p:assign(copies[i]) end
  local few = boost.DimReduce(loss, nn.SGD(params, 1.0), params, (boost.pca(kept, 8)), { alpha = 0.01 })
  local reduced
  for _ = 1, 30 do reduced = few(x, y):item() end
  assert(reduced < plain and plain < before, ("%g before, %g plain, %g in few dimensions"):format(before, plain, reduced))
end)

t.test("steep directions need more lengths to be tried", function()
  local Net = nn.Cell:extend("Steep")
  function Net:init() self.w = ms.Parameter(double { 1, 1 }, "w") end
  function Net:construct() return 50.0 * ops.sum(self.w ^ 2) end
  local found = {}
  for i, tries in ipairs { 2, 10 } do
    local net = Net()
    local params, rows = net:trainable_params(), double { { 1, 0 }, { 0, 1 } }
    local cell = boost.DimReduce(net, nn.SGD(params, 1.0), params, rows, { alpha = 0.0, max_search_time = tries })
    for _ = 1, 3 do cell() end
    found[i] = net():item()
  end
  -- Of two lengths none is short enough; of ten the eighth is, and the curvature is known then.
  t.near(found[1], 100)
  assert(found[2] < 1e-6, found[2])
end)

t.test("errors of training in few dimensions", function()
  local net = nn.Dense(2, 1)
  local params, loss = net:trainable_params(), nn.WithLossCell(net, nn.MSELoss())
  local sgd = nn.SGD(params, 1.0)
  t.fails({ "DimReduce", "(components, 3)" }, boost.DimReduce, loss, sgd, params, ms.ones { 2, 2 })
  t.fails({ "DimReduce", "has 2 rows" }, boost.DimReduce, loss, sgd, params, ms.ones { 2, 3 }, 3)
  t.fails({ "DimReduce", "one process" }, boost.DimReduce, loss, sgd, params, ms.ones { 2, 3 }, { rank_size = 2 })
  t.fails({ "DimReduce", "optimizer must be an optimizer" }, boost.DimReduce, loss, 1, params, ms.ones { 2, 3 })
  t.fails({ "AdaSum", "power of two" }, boost.AdaSum, 3)
  t.fails({ "AdaSum", "of 2 workers" }, boost.AdaSum(2), { { ms.ones { 1 } } })
  t.fails({ "adasum", "shapes (1,) and (2,)" }, boost.adasum, ms.ones { 1 }, ms.ones { 2 })
end)

t.finish()
