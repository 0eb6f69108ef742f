-- Compiled functions on laid-out tensors, on simulated ranks: graphs in pieces give what calls one by one give. Cost: seconds.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops, nn = ms.ops, ms.nn
local test, equal, near = t.test, t.equal, t.near

local mesh = ms.mesh({ 2, 2 }, { "dp", "tp" })

local function layout(x) return tostring(x.layout) end
local function full(x) return x:to "CPU" end
local function bits(x) return full(x):reshape({ -1 }):tolist() end

-- The function compiled and not, called as often; its values are compared, and each run must be a graph in pieces.
local function compare(name, f, layouts, ...)
  local host = { ... }
  local laid = {}
  for i, x in ipairs(host) do laid[i] = layouts[i] and ms.distribute(x, layouts[i]) or x end
  local compiled = ms.jit(f)
  local eager_report, graph_report
  local expected, alone, got
  alone = table.pack(f(table.unpack(host)))
  eager_report = ms.parallel_report(function() expected = table.pack(f(table.unpack(laid))) end)
  for i, x in ipairs(host) do laid[i] = layouts[i] and ms.distribute(x, layouts[i]) or x end
  for _ = 1, 3 do compiled(table.unpack(laid)) end
  for i, x in ipairs(host) do laid[i] = layouts[i] and ms.distribute(x, layouts[i]) or x end
  graph_report = ms.parallel_report(function() got = table.pack(compiled(table.unpack(laid))) end)
  for i = 1, expected.n do
    equal(layout(got[i]), layout(expected[i]))
    near(full(got[i]), full(expected[i]), 1e-5)
    near(full(got[i]), alone[i], 1e-4)
  end
  local function rows(report)
    local list = {}
    for i, m in ipairs(report) do
      list[i] = ("%s %s %s %s %s %d %d"):format(m.operator, m.operand, m.from, m.to, m.path, m.bytes, m.calls)
    end
    table.sort(list)
    return list
  end
  equal(rows(graph_report), rows(eager_report))
  -- In graph mode the whole test may be one record, in which this function's calls are steps.
  if ms.get_context "mode" ~= ms.GRAPH_MODE then equal({ name, ms.jit_report(compiled).compiled_calls >= 1 }, { name, true }) end
  return tostring(compiled:ir())
end

test("a product and its bias", function()
  local text = compare("dense", function(x, w, b) return ops.relu(ops.matmul(x, w) + b) * 2 end,
    { mesh("dp"), mesh(nil, "tp"), mesh("tp") }, ops.randn(8, 6), ops.randn(6, 4), ops.randn(4))
  equal(text:find("Float32[8@dp, 4@tp]", 1, true) ~= nil, true)
end)

test("incomplete sums, and gradients", function()
  local function loss(x, w, v) return ops.matmul(ops.tanh(ops.matmul(x, w)), v):square():sum() end
  compare("two products", function(x, w, v)
    local g = ms.grad(loss, { 0, 1, 2 })(x, w, v)
    return loss(x, w, v), g[1], g[2], g[3]
  end, { mesh("dp"), mesh(nil, "tp"), mesh("tp") }, ops.randn(8, 6), ops.randn(6, 4), ops.randn(4, 5))
end)

test("softmax along a cut axis, uneven pieces", function()
  compare("softmax", function(x) return ops.softmax(x * 2) + 1, ops.layer_norm and x:mean() end,
    { mesh("dp", "tp") }, ops.randn(5, 7))
end)

test("a record tells layouts", function()
  local f = ms.jit(function(x, w) return ops.matmul(x, w):exp() + 1 end)
  local x, w = ms.distribute(ops.randn(8, 6), mesh("dp")), ms.distribute(ops.randn(6, 4), mesh(nil, "tp"))
  f(x, w)
  f(x, w)
  equal(tostring(f:ir()):find("Float32[8@dp, 4@tp]", 1, true) ~= nil, true)
end)

test("layouts are part of the key", function()
  local f = ms.jit(function(x) return (x * 2 + 1):sum(0) end)
  local x = ops.randn(8, 6)
  for _, l in ipairs { mesh("dp"), mesh(nil, "tp"), mesh("dp", "tp"), mesh() } do
    local y = ms.distribute(x, l)
    for _ = 1, 3 do near(full(f(y)), (x * 2 + 1):sum(0), 1e-5) end
  end
  for _ = 1, 2 do near(f(x), (x * 2 + 1):sum(0), 1e-5) end
end)

test("training steps over two axes", function()
  local plan = { ["0.weight"] = mesh("tp"), ["0.bias"] = mesh("tp"), ["2.weight"] = mesh(nil, "tp") }
  local losses = {}
  for run = 1, 3 do
    ms.set_seed(3)
    local net = nn.SequentialCell(nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 3))
    local x, y = ops.randn(8, 6), ops.cast(ops.arange(8) % 3, ms.int32)
    if run > 1 then net:shard({ mesh("dp") }, nil, plan) end
    local loss, optimizer = nn.CrossEntropyLoss(), nn.Adam(net:trainable_params(), 0.1)
    local gradients_of = ms.value_and_grad(function(a, b) return loss(net(a), b) end, nil, optimizer.parameters)
    local function step(a, b)
      local value, gradients = gradients_of(a, b)
      optimizer(gradients)
      return value
    end
    if run == 3 then step = ms.jit(step) end
    losses[run] = {}
    for k = 1, 4 do losses[run][k] = step(x, y):item() end
    if run > 1 then equal(layout(net[1].weight), "[8@tp, 6]") end
  end
  near(ms.tensor(losses[3]), ms.tensor(losses[2]), 1e-6)
  near(ms.tensor(losses[3]), ms.tensor(losses[1]), 1e-5)
end)

test("dropout drops the same elements on any ranks", function()
  local x = ops.randn(8, 6)
  local function f(a) return (ops.dropout(a, 0.5)) * 2 + 1 end
  local compiled = ms.jit(f)
  local values = {}
  for run, v in ipairs { x, ms.distribute(x, mesh("dp", "tp")), ms.distribute(x, mesh("dp")) } do
    compiled(v)
    ms.set_seed(5)
    values[run] = bits(compiled(v))
  end
  ms.set_seed(5)
  values[4] = bits(f(ms.distribute(x, mesh("dp"))))
  for run = 2, 4 do equal(values[run], values[1]) end
end)

test("layouts that the program gives are part of the graph", function()
  ms.set_parallel { ranks = 4 }
  local first = ops.MatMul():shard { { 4, 1 }, { 1, 1 } }
  local second = ops.MatMul():shard { { 1, 1 }, { 1, 4 } }
  local x, w, v = ops.randn(8, 8), ops.randn(8, 8), ops.randn(8, 8)
  local function f(a, b, c) return second(ops.relu(first(a, b)), c) * 2 end
  local compiled = ms.jit(f)
  for _ = 1, 3 do near(full(compiled(x, w, v)), ops.matmul(ops.relu(ops.matmul(x, w)), v) * 2, 1e-4) end
  local y
  local report = ms.parallel_report(function() y = compiled(x, w, v) end)
  equal(layout(y), "[8, 8@d0.d1]")
  equal({ #report, report[1].path:match "^all_gather" ~= nil, report.bytes }, { 1, true, 3 * 8 * 8 * 4 })
  local text = tostring(compiled:ir())
  equal(text:find("Float32[8@d0.d1, 8]", 1, true) ~= nil, true)
  local gradient = ms.jit(function(a, b) return ms.grad(function(k) return f(a, k, b):square():sum() end)(w) end)
  for _ = 1, 3 do
    near(full(gradient(x, v)), ms.grad(function(k) return (ops.matmul(ops.relu(ops.matmul(x, k)), v) * 2):square():sum() end)(w), 1e-3)
  end
  ms.set_parallel { ranks = 1 }
  local back = ms.jit(function(a) return ms.reshard(a * 2, mesh(nil, "tp")):full() + 1, ms.reshard(a, mesh("dp")) end)
  for _ = 1, 3 do
    local whole, moved = back(ms.distribute(x, mesh("dp", "tp")))
    equal({ whole.device, layout(moved) }, { "CPU", "[8@dp, 8]" })
    equal(whole, x * 2 + 1)
    equal(full(moved), x)
  end
end)

test("what is not asked for is told before anything is computed", function()
  local f = ms.jit(function(x) return (ops.sort(x * 2, 1)) end)
  local x = ms.distribute(ops.randn(8, 6), mesh(nil, "tp"))
  for _ = 1, 3 do f(x) end
  ms.set_parallel { on_reshard = "error" }
  t.fails("input_x is Float32[8, 6@tp] and is needed as Float32[8, 6]", function() return f(x) end)
  ms.set_parallel { on_reshard = "silent" }
  equal(layout(f(x)), "[8, 6]")
end)

test("without a sum that is cut, the bits are those of one rank", function()
  local function f(a, b) return ops.tanh(a * 2 + b), ops.exp(a):sum(1), ops.softmax(a, 1) end
  local a, b = ops.randn(8, 6), ops.randn(6)
  local compiled, alone = ms.jit(f), ms.jit(f)
  local wanted, got
  for _ = 1, 3 do
    wanted = table.pack(alone(a, b))
    got = table.pack(compiled(ms.distribute(a, mesh("dp")), b))
  end
  for i = 1, 3 do equal(bits(got[i]), bits(wanted[i])) end
end)

t.finish()
