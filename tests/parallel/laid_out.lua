-- Laid-out tensors on several processes: lunaria launch -n 4 tests/parallel/laid_out.lua. Each process compares with what it computes
-- alone.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local test, equal, near = t.test, t.equal, t.near

local count = ms.communication.get_group_size()
local wide = count % 2 == 0 and 2 or 1
local mesh = ms.mesh({ count // wide, wide }, { "dp", "tp" })

local function full(x) return x:to "CPU" end

-- What communicators counted.
local function received()
  local bytes = 0
  for _, sums in pairs(ms.communication.get_traffic()) do bytes = bytes + sums.bytes end
  return bytes
end

test("there are several", function()
  equal(count > 1, true)
end)

ms.set_seed(4)

test("pieces, products and their gradients", function()
  local x, w = ops.randn(7, 5), ops.randn(5, 6)
  local a, b = ms.distribute(x, mesh("dp")), ms.distribute(w, mesh(nil, "tp"))
  equal(full(a), x)
  near(full(ops.matmul(a, b)), ops.matmul(x, w), 1e-5)
  local function f(p, q) return ops.softmax(ops.matmul(p, q)):square():sum() end
  local g, h = ms.grad(f, { 0, 1 })(a, b), ms.grad(f, { 0, 1 })(x, w)
  for i = 1, 2 do near(full(g[i]), h[i], 1e-4) end
end)

test("views, writes, sorted axes", function()
  local host = ops.cast(ops.arange(24), ms.float32):reshape(4, 6)
  local x = ms.distribute(host, mesh("dp", "tp"))
  equal(full(x.T), host.T)
  equal(full(x[1]), host[1])
  equal(full((ops.sort(-x, 0))), (ops.sort(-host, 0)))
  local y, z = x:copy(), host:copy()
  y["1:3, 2"], z["1:3, 2"] = 5, 5
  equal(full(y), z)
  equal(x:sum():item(), 276.0)
end)

test("ranks without a row ask for the same", function()
  local line = ms.mesh({ count }, { "dp" })
  local x, z = ops.randn(count - 1, 2), ops.randn(count - 1, 2)
  local a, b, c = ms.distribute(x, line("dp")), ms.distribute(z, line("dp")), ms.distribute(x, line("dp"))
  equal(ops.equal(a, b):all():item(), false)
  equal(a:allclose(c), true)
  c:assign_value(b)
  equal(c:full(), z)
  ops.assign_add(c, a)
  equal(c:full(), z + x)
  equal(ops.clamp(a, -0.5, 0.5):full(), ops.clamp(x, -0.5, 0.5))
  local got, wanted = { ops.clip_by_global_norm({ a, b }, 0.7) }, { ops.clip_by_global_norm({ x, z }, 0.7) }
  for i = 1, 2 do near(got[i]:full(), wanted[i], 1e-6) end
  local compiled = ms.jit(function(p, q) return ops.matmul(ops.softmax(p, 0).T, q * 2), ops.std(p), ops.concat({ p, q }, 0) end)
  for _ = 1, 3 do
    local product, spread, both = compiled(a, b)
    near(product:full(), ops.matmul(ops.softmax(x, 0).T, z * 2), 1e-5)
    near(spread:full(), ops.std(x), 1e-5)
    equal(both:full(), ops.concat({ x, z }, 0))
  end
end)

test("a compiled step moves what calls one by one move, as the communicator counts it", function()
  local x, w, v = ops.randn(8, 6), ops.randn(6, 4), ops.randn(4, 6)
  local function f(p, q, r)
    return ms.value_and_grad(function(k, m) return ops.matmul(ops.tanh(ops.matmul(p, k)), m):square():mean() end, { 0, 1 })(q, r)
  end
  local compiled = ms.jit(f)
  local function laid() return ms.distribute(x, mesh("dp")), ms.distribute(w, mesh(nil, "tp")), ms.distribute(v, mesh("tp")) end
  for _ = 1, 3 do compiled(laid()) end
  local reports, values, gradients = {}, {}, {}
  for i, g in ipairs { f, compiled } do
    local before = received()
    reports[i] = ms.parallel_report(function(...) values[i], gradients[i] = g(...) end, laid())
    equal(reports[i].bytes, received() - before)
  end
  equal(reports[1].bytes, reports[2].bytes)
  near(values[2]:full(), values[1]:full(), 1e-6)
  for i = 1, 2 do near(gradients[2][i]:full(), gradients[1][i]:full(), 1e-6) end
end)

test("training with dropout, and bytes as the communicator counts them", function()
  local losses = {}
  local report, before, after
  for run = 1, 2 do
    ms.set_seed(8)
    local net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dropout { p = 0.3 }, nn.Dense(8, 3))
    local x, y = ops.randn(8, 6), ops.cast(ops.arange(8) % 3, ms.int32)
    if run == 2 then
      net:shard({ mesh("dp") }, nil,
        { ["0.weight"] = mesh("tp"), ["0.bias"] = mesh("tp"), ["3.weight"] = mesh(nil, "tp") })
    end
    local loss, optimizer = nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.1)
    local step = ms.value_and_grad(function(a, b) return loss(net(a), b) end, nil, optimizer.parameters)
    before = received()
    report = ms.parallel_report(function()
      local value, gradients
      for _ = 1, 3 do
        value, gradients = step(x, y)
        optimizer(gradients)
      end
      losses[run] = value:item()
    end)
    after = received()
    for _, p in ipairs(net:trainable_params()) do losses[run] = losses[run] + full(p):abs():sum():item() end
  end
  near(losses[2], losses[1], 1e-4)
  equal(#report > 0, true)
  equal(report.bytes, after - before)
end)

t.finish()
