-- Functions ahead of time, stage by stage.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local nn, ops = ms.nn, ms.ops
local test, equal, near, fails = t.test, t.equal, t.near, t.fails

local w = ops.ones { 16, 4 }
local function f(x) return ops.sum(ops.exp(ops.matmul(x, w)) * 2 + 1, 1) end

local function has(text, word)
  if not text:find(word, 1, true) then error(("%q is not in:\n%s"):format(word, text), 2) end
end

test("every stage is there", function()
  local low = ms.jit(f):lower(ops.ones { 8, 16 })
  has(low:ir("source"), "exp")
  has(low:ir("trace"), "= ops.matmul(%")
  has(low:ir("graph"), "ops.matmul")
  has(low:ir("graph"), "lower_test.lua:9")
  has(low:ir("optimized"), "ops.sum")
  has(low:kernels(), "kernel    matmul")
  has(tostring(low), "5 operators in 1 graph,")
  fails({ "there is no stage 'llvm'", "optimized" }, function() low:ir("llvm") end)
end)

test("the compiled function gives what the function gives, and was compiled before its first call", function()
  local low = ms.jit(f):lower { shape = { 8, 16 } }
  local g = low:compile()
  local x = ops.randn { 8, 16 }
  near(g(x), f(x), 1e-5)
  equal(ms.jit_report(g).compiled_calls, 1)
  equal(ms.jit_report(g).graphs, 1)
  near(g(ops.ones { 3, 16 }), f(ops.ones { 3, 16 }), 1e-4)
  local ints = ms.jit(function(v) return v + v * 2 end):lower { shape = { 3 }, dtype = ms.int32 }
  equal(ints:compile()(ms.tensor({ 1, 2, 3 }, ms.int32)), ms.tensor({ 3, 6, 9 }, ms.int32))
end)

test("costs are sums over nodes with arithmetic, bytes and lines", function()
  local cost = ms.jit(f):lower({ shape = { 8, 16 } }):cost()
  equal(cost.nodes[1].operators, "matmul")
  equal(cost.nodes[1].flops, 2.0 * 8 * 16 * 4)
  equal(cost.nodes[1].bytes, 4 * (8 * 16 + 16 * 4 + 8 * 4))
  equal(cost.nodes[1].place:match("[^/]*$"), "lower_test.lua:9")
  local flops, seconds = 0, 0
  for _, node in ipairs(cost.nodes) do flops, seconds = flops + node.flops, seconds + node.seconds end
  equal(cost.flops, flops)
  equal(cost.seconds, seconds)
  equal(cost.flops_per_second > 0 and cost.bytes_per_second > 0, true)
  equal(seconds > 0, true)
  has(tostring(cost), "by the speed of this machine")
  equal(getmetatable(cost).__mime(cost)["text/html"]:find("<table", 1, true), 1)
end)

test("activations and normalised values are made again where their gradients are wanted", function()
  local width, rows, layers = 256, 1024, 8
  local w1, w2, g, b = ops.randn { width, width } * 0.06, ops.randn { width, width } * 0.06, ops.ones { width }, ops.zeros { width }
  local function net(x, a, c)
    for _ = 1, layers do
      local n = ops.layer_norm(x, { width }, g, b)
      x = x + ops.matmul(ops.gelu(ops.matmul(n, a), "none"), c)
    end
    return ops.mean(x * x)
  end
  local gradient = ms.value_and_grad(net, { 1, 2 })
  local compiled = ms.jit(gradient)
  local x = ops.randn { rows, width }
  local value = rows * width * 4
  local plan = compiled:lower(x, w1, w2):memory_plan()
  -- Of each layer stay what it adds to and what goes into the activation, not what comes out and what is normalised.
  if plan.bytes > (2 * layers + 6) * value then error(tostring(plan)) end
  for _ = 1, 3 do near({ compiled(x, w1, w2) }, { gradient(x, w1, w2) }, 1e-4) end
end)

test("a memory plan has no two temporaries in one place at one time", function()
  local net = nn.SequentialCell { nn.Dense(16, 64), nn.Tanh(), nn.Dense(64, 32), nn.Tanh(), nn.Dense(32, 3) }
  local gradient = ms.grad(function(x) return ops.sum(net(x) ^ 2) end)
  local plan = ms.jit(gradient):lower({ shape = { 8, 16 } }):memory_plan()
  equal(#plan.regions >= 1, true)
  local found = 0
  for _, region in ipairs(plan.regions) do
    for i, a in ipairs(region.memory) do
      found = found + 1
      equal(a.offset + a.bytes <= region.arena, true)
      for k = i + 1, #region.memory do
        local b = region.memory[k]
        -- The step that needs one last may write the other into its place.
        local apart = a.last <= b.first or b.last <= a.first
        equal(apart or a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset, true)
      end
    end
    equal(region.arena <= region.sum + 64 * #region.memory, true)
  end
  equal(found > 2, true)
  has(tostring(plan), "from step")
  local svg = plan:svg()
  equal(svg:find("<svg", 1, true), 1)
  local _, boxes = svg:gsub("<title>", "")
  equal(boxes, found)
end)

test("random numbers go on as if nothing had been lowered", function()
  ms.set_seed(5)
  local expected = ops.randn { 2 }
  ms.set_seed(5)
  ms.jit(function(x) return x + ops.randn { 3 } end):lower { shape = { 3 } }
  equal(ops.randn { 2 }, expected)
end)

test("what cannot be lowered is told", function()
  fails("the specification of argument 1 has no 'type'", function() ms.jit(f):lower { shape = { 8, 16 }, type = 3 } end)
  fails({ "lower", "left to Lua" }, function()
    ms.jit(function(x) return coroutine.wrap(function() return x end)() end):lower(ops.ones { 2 })
  end)
  fails("matmul", function() ms.jit(f):lower { shape = { 8, 15 } } end)
end)

-- A training step of a network that is the same each time.
local function training()
  ms.set_seed(3)
  local net = nn.SequentialCell { nn.Dense(4, 8), nn.ReLU(), nn.Dense(8, 2) }
  local loss = nn.SoftmaxCrossEntropyWithLogits { sparse = true, reduction = "mean" }
  local opt = nn.Momentum(net:trainable_params(), 0.1, 0.9)
  local value_and_grad = ms.value_and_grad(function(x, y) return loss(net(x), y) end, nil, opt.parameters)
  return function(x, y)
    local value, gradients = value_and_grad(x, y)
    opt(gradients)
    return value
  end, net, opt
end

test("a step of training is one graph, and making it changes nothing", function()
  local step, net, opt = training()
  local before, steps = {}, opt.global_step
  for i, p in ipairs(net:trainable_params()) do before[i] = p:copy() end
  local low = ms.jit(step):lower({ shape = { "n", 4 } }, { shape = { "n" }, dtype = ms.int32 })
  for i, p in ipairs(net:trainable_params()) do equal(p, before[i]) end
  equal(opt.global_step, steps)
  local text = low:ir("step")
  has(text, "graph step(%0 x: float32(13, 4), %1 y: int32(13)")
  has(text, net[1].weight.name .. ": float32(8, 4)")
  has(text, "ops.log_softmax_grad")
  has(text, "ops.apply_momentum")
  has(text, "\"global_step\"")
  equal(text:find("expect", 1, true), nil)
  -- The compiled step is the eager one, at any size, without another recording.
  local g, eager = low:compile(), training()
  local recorded = #ms.jit_report(g).recordings
  for _, n in ipairs { 3, 6, 17 } do
    local x, y = ops.ones { n, 4 } * n, ops.zeros({ n }, ms.int32)
    near(g(x, y), eager(x, y), 1e-6)
  end
  equal(#ms.jit_report(g).recordings, recorded)
end)

test("fields and variables that a lowered function writes are as before", function()
  local calls, seen, weight = 0, { n = 1 }, ms.Parameter(ops.ones { 3 }, "w")
  local low = ms.jit(function(x)
    calls = calls + 1
    seen.n, seen.last = seen.n + 1, x
    weight:add_(x)
    return weight * 2
  end):lower { shape = { 3 } }
  equal(calls, 0)
  equal(seen.n, 1)
  equal(seen.last, nil)
  equal(weight, ops.ones { 3 })
  has(low:ir("step"), "w: float32(3)")
  equal(low:compile()(ops.ones { 3 }), ops.ones { 3 } * 4)
  equal(calls, 1)
  equal(seen.n, 2)
end)

t.finish()
