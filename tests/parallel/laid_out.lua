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
