-- Laid-out tensors on simulated ranks: the same numbers as one process, in the layouts and with the movements that are expected.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local test, equal, near, fails = t.test, t.equal, t.near, t.fails

local mesh = ms.mesh({ 4, 2 }, { "dp", "tp" })
local small = ms.mesh({ 2, 2 }, { "dp", "tp" })

local function layout(x) return tostring(x.layout) end
local function full(x) return x:to "CPU" end

test("a tensor keeps its shape and tells its layout", function()
  local x = ms.distribute(ms.ones { 8, 4 }, mesh("dp"))
  equal(layout(x), "[8@dp, 4]")
  equal(x.shape[1], 8)
  equal(x.device, "Mesh")
  equal(ms.ones({ 2 }).layout, nil)
  equal(tostring(x):match "layout=%[8@dp, 4%]" ~= nil, true)
  equal(full(x), ms.ones { 8, 4 })
end)

test("uneven pieces", function()
  local x = ops.cast(ops.arange(15), ms.float32):reshape(5, 3)
  local y = ms.distribute(x, mesh("dp", "tp"))
  equal(full(y), x)
  equal(full(y * 2 + y), x * 3)
  near(y:sum(), x:sum(), 1e-6)
  near(full(ops.matmul(y, y.T)), ops.matmul(x, x.T), 1e-6)
end)

test("the sum of a product and its gradients", function()
  local x, w = ops.randn(8, 4), ops.randn(4, 6)
  local a, b = ms.distribute(x, mesh("dp")), ms.distribute(w, mesh(nil, "tp"))
  local y = ops.matmul(a, b)
  equal(layout(y), "[8@dp, 6@tp]")
  local function f(p, q) return ops.matmul(p, q):tanh():sum() end
  near(f(a, b), f(x, w), 1e-4)
  local of_a, of_b = table.unpack(ms.grad(f, { 0, 1 })(a, b))
  local of_x, of_w = table.unpack(ms.grad(f, { 0, 1 })(x, w))
  near(full(of_a), of_x, 1e-4)
  near(full(of_b), of_w, 1e-4)
end)

test("incomplete sums stay so until they are needed", function()
  local a = ms.distribute(ms.ones { 4, 6 }, mesh(nil, "tp"))
  local y = ops.matmul(a, ms.ones { 6, 2 })
  equal(layout(y), "[4, 2] +tp")
  equal(layout(y * 2), "[4, 2] +tp")
  equal(layout(ops.relu(y)), "[4, 2]")
  equal(layout(y), "[4, 2]")  -- completed once
end)

test("layouts that meet in an operator take the cheaper side", function()
  local large, little = ms.distribute(ms.ones { 64, 8 }, mesh("dp")), ms.distribute(ms.ones { 1, 8 }, mesh(nil, "dp"))
  equal(layout(large + little), "[64@dp, 8]")
  equal(layout(little + large), "[64@dp, 8]")
end)

test("views, indices, items, writes", function()
  local host = ops.cast(ops.arange(24), ms.float32):reshape(4, 6)
  local x = ms.distribute(host, mesh("dp", "tp"))
  equal(full(x.T), host.T)
  equal(full(x[2]), host[2])
  equal(full(x["1:3, ::2"]), host["1:3, ::2"])
  equal(x[{ 1, 2 }]:item(), 8.0)
  equal(x:tolist()[3][4], 15.0)
  local y, z = x:copy(), host:copy()
  y[1], z[1] = 7, 7
  y["0:2, 3"], z["0:2, 3"] = -1, -1
  equal(full(y), z)
  equal(full(x), host)
  equal(layout(y), "[4@dp, 6@tp]")
end)

test("vmap and other dtypes", function()
  local host = ops.randn(6, 4)
  local x = ms.distribute(host, small("dp"))
  local function row(v) return ops.softmax(v) * v:sum() end
  near(full(ms.vmap(row)(x)), ms.vmap(row)(host), 1e-5)
  local half = ops.cast(host, ms.float16)
  near(ops.cast(full(ops.cast(x, ms.float16) * 2), ms.float32), ops.cast(half * 2, ms.float32), 1e-2)
end)

local function network()
  ms.set_seed(3)
  local net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
  return net, ops.randn(8, 6), ops.cast(ops.arange(8) % 3, ms.int32)
end

local plan = { ["0.weight"] = small("tp"), ["0.bias"] = small("tp"), ["2.weight"] = small(nil, "tp") }

local optimizers = {
  function(p) return nn.Momentum(p, 0.1, 0.9) end,
  function(p) return nn.Adam(p, 0.1) end,
  function(p) return nn.Lamb(p, 0.1) end,
}

test("training steps over two axes are those of one process", function()
  for _, of in ipairs(optimizers) do
    local losses, nets = {}, {}
    for run = 1, 2 do
      local net, x, y = network()
      nets[run] = net
      if run == 2 then net:shard({ small("dp") }, nil, plan) end
      local loss, optimizer = nn.CrossEntropyLoss(), of(net:trainable_params())
      local step = ms.value_and_grad(function(a, b) return loss(net(a), b) end, nil, optimizer.parameters)
      for _ = 1, 3 do
        local gradients
        losses[run], gradients = step(x, y)
        optimizer(gradients)
      end
    end
    near(losses[2]:item(), losses[1]:item(), 1e-5)
    equal(layout(nets[2][1].weight), "[8@tp, 6]")
    for i, p in ipairs(nets[1]:trainable_params()) do near(full(nets[2]:trainable_params()[i]), p, 1e-5) end
  end
end)

test("Model.train with a sharded network", function()
  local losses = {}
  for run = 1, 2 do
    local net, x, y = network()
    if run == 2 then net:shard({ small("dp") }, nil, plan) end
    local data = ms.dataset.NumpySlicesDataset({ x, y }, { column_names = { "x", "y" }, shuffle = false }):batch(8)
    local model = ms.Model(net, nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.05))
    model:train(4, data)
    losses[run] = nn.CrossEntropyLoss()(net(x), y):item()
  end
  near(losses[2], losses[1], 1e-5)
end)

test("strategies of operators: one all_gather between two products", function()
  ms.set_parallel { ranks = 4 }
  local first = ops.MatMul():shard { { 4, 1 }, { 1, 1 } }
  local second = ops.MatMul():shard { { 1, 1 }, { 1, 4 } }
  local x, w, v = ops.randn(8, 8), ops.randn(8, 8), ops.randn(8, 8)
  local z
  local report = ms.parallel_report(function() z = second(first(x, w), v) end)
  equal(#report, 1)
  equal(report[1].path:match "^all_gather" ~= nil, true)
  equal(report.bytes, 3 * 8 * 8 * 4)
  near(full(z), ops.matmul(ops.matmul(x, w), v), 1e-4)
  fails("axis 0 of input 2 is cut into 2 parts, and axis 1 of input 1, which goes with it, into 1", function()
    return ops.MatMul():shard { { 4, 1 }, { 2, 1 } } (x, w)
  end)
  fails("divides over 8 ranks, and there are 4", function() ops.MatMul():shard { { 4, 2 }, { 2, 1 } } (x, w) end)
  equal(layout(ops.Add():shard { { 2, 2 }, { 2, 2 } } (x, w)), "[8@d0, 8@d1]")
  ms.set_parallel { ranks = 1 }
end)

test("shard of functions and cells", function()
  local f = ms.shard(function(a, b) return ops.matmul(a, b) end, { mesh("dp"), mesh(nil, "tp") }, { mesh("dp") })
  local x, w = ops.randn(8, 4), ops.randn(4, 6)
  local y = f(x, w)
  equal(layout(y), "[8@dp, 6]")
  near(full(y), ops.matmul(x, w), 1e-5)
  near(full(ms.grad(function(a) return f(a, w):sum() end)(x)), ms.grad(function(a) return ops.matmul(a, w):sum() end)(x), 1e-5)
  local dense = nn.Dense(4, 6)
  fails("is no parameter", function() dense:shard({ mesh("dp") }, nil, { weights = mesh("tp") }) end)
  fails("must be a whole number above 0", function() ms.shard(ops.exp, { { 0, 1 } }) end)
  fails("in_strategy has 2 inputs, got 1", function() f(x) end)
end)

test("the report and what is not asked for", function()
  local x = ms.distribute(ms.ones { 8, 4 }, mesh("dp"))
  local report = ms.parallel_report(function() return ops.sort(x, 0) end)
  equal(#report, 1)
  equal(report[1].operator, "sort")
  equal(report[1].implicit, true)
  equal(tostring(report):match "all_gather%(dp%)" ~= nil, true)
  ms.set_parallel { on_reshard = "error" }
  fails("is Float32[8@dp, 4] and is needed as Float32[8, 4]", function() return ops.sort(x, 0) end)
  equal(x:sum():item(), 32.0)  -- sums that have to be completed are part of what was asked for
  ms.reshard(x, mesh())
  ms.set_parallel { on_reshard = "silent" }
end)

test("halos and shifted parts come from neighbours only", function()
  local image, weight = ops.randn(2, 3, 8, 8), ops.randn(4, 3, 3, 3)
  local x = ms.distribute(image, mesh(nil, nil, "dp"))
  local y
  local report = ms.parallel_report(function() y = ops.conv2d(x, weight, nil, 1, "same") end)
  equal(layout(y), "[2, 4, 8@dp, 8]")
  near(full(y), ops.conv2d(image, weight, nil, 1, "same"), 1e-4)
  -- Of 4 pieces of 2 rows each, 3 borders, a row on both sides; twice, for both columns of ranks.
  equal(report.bytes, 2 * 3 * 2 * (2 * 3 * 8) * 4)
  local rows = ops.cast(ops.arange(10), ms.float32)
  local z = ms.distribute(rows, mesh("dp"))
  equal(full(ops.roll(z, 3, 0)), ops.roll(rows, 3, 0))
  equal(full(ops.flip(z, { 0 })), ops.flip(rows, { 0 }))
end)

test("mistakes", function()
  local x = ms.distribute(ms.ones { 8, 4 }, mesh("dp"))
  fails("axes", function() ms.distribute(ms.ones { 8 }, mesh("dp", "tp")) end)
  fails("a tensor is expected", function() ms.distribute(3, mesh("dp")) end)
  fails("ranks must be", function() ms.set_parallel { ranks = 0 } end)
  fails("on_reshard must be", function() ms.set_parallel { on_reshard = "loud" } end)
  fails("add", function() return x + ms.ones { 3 } end)
end)

t.finish()
