-- Compiled stretches that end with writes into tensors: optimizers, running statistics, assignments; and counters.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local nn, ops = ms.nn, ms.ops
local test, equal, near = t.test, t.equal, t.near

local function vector(...) return ms.tensor({ ... }, ms.float32) end

-- Runs the step both ways on its own state; what it gives and what it leaves must be the same.
local function both(make, rounds, ...)
  local eager, compiled = table.pack(make()), table.pack(make())
  local f = ms.jit(compiled[1])
  for i = 1, rounds do
    near({ f(i, ...) }, { eager[1](i, ...) }, 1e-5)
    for k = 2, eager.n do near(compiled[k], eager[k], 1e-5) end
  end
  return f
end

test("running statistics are moved once for each call", function()
  local x = ops.randn { 4, 3, 5, 5 }
  local function make()
    ms.set_seed(1)
    local net = nn.SequentialCell { nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 2, 3), nn.BatchNorm2d(2) }
    net:set_train(true)
    local opt = nn.Momentum(net:trainable_params(), 0.01, 0.9)
    local gradient = ms.value_and_grad(function(v) return ops.mean(net(v) ^ 2) end, nil, opt.parameters)
    return function(i)
      local loss, grads = gradient(x * (i * 0.1 + 1))
      opt(grads)
      return loss
    end, net[1].moving_mean, net[2].moving_mean, net[2].moving_variance, net[5].moving_mean, net[1].weight, net[4].weight
  end
  local f = both(make, 6)
  equal(ms.jit_report(f).graphs, 1)
end)

-- Kernels keep a weight in their own order from call to call, and reorder it again after a write to it.
test("a product follows its weight when that is written now and then", function()
  for _, product in ipairs { ops.matmul, ops.mm, function(a, b) return ops.matmul(a, ops.transpose(b, { 1, 0 })) end } do
    for _, rows in ipairs { 1, 3, 64, 520 } do
      local given = ops.randn { rows, 96 }
      local w = ms.Parameter(ops.randn { 96, 96 } * 0.1, "w")
      local function layer(x) return ops.tanh(product(x, w)) * 2 end
      local f = ms.jit(layer)
      for i = 1, 12 do
        if i % 4 == 0 then ops.assign_add(w, ops.randn { 96, 96 } * 0.1) end
        near(f(given * i), layer(given * i), 1e-5)
      end
      local other = ops.randn { rows + 2, 96 }
      near(f(other), layer(other), 1e-5)
    end
  end
end)

test("what reads a tensor after it is written sees the new value", function()
  both(function()
    local p = ms.Parameter(ms.tensor { 1.0, 2.0 }, "p")
    return function(i)
      local before = p * 2 + 1
      ops.assign_add(p, before * 0.1)
      local after = p * 3 - before
      ops.assign(p, after * 0.5)
      return before, after, p + i, p
    end, p
  end, 6)
end)

test("an assignment's value lives on, and views keep what they were", function()
  both(function()
    local p, q = ms.Parameter(ms.tensor { { 1.0, 2.0 }, { 3.0, 4.0 } }, "p"), ms.Parameter(ops.zeros { 2, 2 }, "q")
    local kept = {}
    return function(i)
      local turned = p:t()
      local value = (turned + i) * 2
      ops.assign(q, value)
      ops.assign(p, p * 0.5)
      kept[#kept + 1] = turned
      kept[#kept + 1] = q + 0
      return turned, q, value, kept[1], kept[#kept]
    end, p, q
  end, 8)
end)

test("two optimizers in one step", function()
  both(function()
    local a, b = ms.Parameter(ms.tensor { 1.0, -2.0 }, "a"), ms.Parameter(ms.tensor { 0.5, 3.0 }, "b")
    local first, second = nn.Adam({ a }, 0.1), nn.Momentum({ b }, 0.1, 0.9)
    local function loss() return ops.sum((a * b - 1) ^ 2) end
    local da, db = ms.value_and_grad(loss, nil, { a }), ms.value_and_grad(loss, nil, { b })
    return function()
      local v, g = da()
      first(g)
      local w, h = db()
      second(h)
      return v, w
    end, a, b
  end, 8)
end)

test("gradients that are used after the step are those of the step", function()
  both(function()
    local p = ms.Parameter(ms.tensor { 1.0, -2.0 }, "p")
    local opt = nn.Adam({ p }, 0.1)
    local gradient = ms.value_and_grad(function() return ops.sum(p ^ 2) end, nil, { p })
    local last = { norm = false }
    return function()
      local v, g = gradient()
      opt(g)
      local n = ops.sum(g[1] * g[1])
      last.norm = n
      return v, last.norm, g[1]
    end, p
  end, 8)
end)

test("an error in the middle leaves what it leaves in eager mode", function()
  both(function()
    local bn = nn.BatchNorm1d(3)
    bn:set_train(true)
    local x = ms.tensor { { 1.0, 2.0, 3.0 }, { 2.0, 4.0, 8.0 } }
    return function(i)
      local labels = ms.tensor({ 0, i % 4 == 3 and 7 or 1 }, ms.int64)
      local ok, value = pcall(function() return ops.cross_entropy(bn(x * i) * 2, labels) end)
      return ok, ok and value or 0
    end, bn.moving_mean, bn.moving_variance
  end, 12)
end)

test("random numbers come in their order around writes", function()
  local function run(compile)
    ms.set_seed(9)
    local p = ms.Parameter(ms.tensor { 1.0, 2.0 }, "p")
    local f = function()
      local a = ops.randn { 2 } + p * 2
      ops.assign_add(p, a)
      return a, ops.randn { 2 } * 3 + 1
    end
    if compile then f = ms.jit(f) end
    local out = {}
    for _ = 1, 5 do
      local a, b = f()
      out[#out + 1], out[#out + 2] = a, b
    end
    return out
  end
  near(run(true), run(false), 1e-6)
end)

test("large gradients are used as soon as they are there", function()
  local x = ops.randn { 3, 1100 }
  for _, optimizer in ipairs {
    function(p) return nn.Adam(p, 0.001, { weight_decay = 0.01 }) end,
    function(p) return nn.Momentum(p, 0.001, 0.9, { weight_decay = 0.1 }) end,
    function(p) return ms.mint.optim.AdamW(p, { lr = 0.001, weight_decay = 0.1 }) end,
    function(p) return nn.SGD(p, 0.001) end } do
    local f = both(function()
      ms.set_seed(2)
      local net = nn.SequentialCell { nn.Dense(1100, 1100), nn.Tanh(), nn.Dense(1100, 1100), nn.Tanh(), nn.Dense(1100, 2) }
      local opt = optimizer(net:trainable_params())
      local gradient = ms.value_and_grad(function(v) return ops.mean(net(v) ^ 2) end, nil, opt.parameters)
      return function(i)
        local loss, grads = gradient(x * (1 + i * 0.1))
        opt(grads)
        return loss
      end, net[1].weight, net[3].weight, net[3].bias, net[5].weight
    end, 5)
    equal(ms.jit_report(f).graphs, 1)
  end
end)

test("a view that is returned keeps what it was before a large update", function()
  both(function()
    ms.set_seed(2)
    local p, q = ms.Parameter(ops.randn { 1100, 1100 }, "p"), ms.Parameter(ops.randn { 1100 }, "q")
    local opt = nn.Momentum({ p, q }, 0.1, 0.9)
    local gradient = ms.value_and_grad(function() return ops.mean((ops.matmul(p, q) - 1) ^ 2) end, nil, { p, q })
    return function()
      local turned = p:t()
      local loss, grads = gradient()
      opt(grads)
      return loss, turned["0, :4"], turned, grads[2]
    end, p, q
  end, 5)
end)

test("counters of the function itself are no reason to record it again", function()
  local net, calls = { steps = 0 }, 0
  local f = ms.jit(function(x)
    net.steps = net.steps + 1
    calls = calls + 2
    return x * 2 + net.steps, calls
  end)
  for i = 1, 5 do equal({ f(vector(1)) }, { vector(2 + i), 2 * i }) end
  equal({ net.steps, calls }, { 5, 10 })
  equal(#ms.jit_report(f).recordings, 1)
  -- Nor is the first step of an optimizer another one than the second.
  local w = ms.Parameter(ops.ones { 3 }, "w")
  for _, optimizer in ipairs { nn.Momentum({ w }, 0.1, 0.9), nn.Adam({ w }, 0.1), ms.mint.optim.AdamW({ w }, { lr = 0.1 }) } do
    local step = ms.jit(function(g) optimizer({ g * 2 + 1 }) end)
    for _ = 1, 4 do step(ops.ones { 3 }) end
    equal(#ms.jit_report(step).recordings, 1)
  end
end)

test("a counter that decides something is followed", function()
  local n = 0
  local f = ms.jit(function(x)
    n = n + 1
    if n % 3 == 0 then return x * 2 + 1 end
    return x + n
  end)
  for i = 1, 9 do equal(f(vector(5)), vector(i % 3 == 0 and 11 or 5 + i)) end
end)

test("kernels that are at hand are used from the second call on", function()
  local function make() return ms.jit(function(x) return ops.tanh(x * 1.25) + ops.exp(x) end) end
  local first, second = make(), make()
  for _ = 1, 3 do first(vector(1, 2)) end
  equal(ms.jit_report(first).graphs, 1)
  for _ = 1, 2 do second(vector(1, 2)) end
  equal(ms.jit_report(second).graphs, 1)
end)

t.finish()
