-- The cost of differentiation itself: values and gradients of programs with hardly anything to compute.
local harness = require "bench.harness"
local ms = require "lunaria"
local ops = ms.ops

-- Ten operators on 8 elements.
local function chain(x)
  local y = ops.sin(x) * x
  y = ops.tanh(y + x)
  y = ops.exp(-y) * x
  y = ops.sigmoid(y) - x
  return ops.sum(y * y)
end

harness.workload("grad_chain", { torch = 15 }, function()
  return harness.calls(ms.value_and_grad(chain), ops.linspace(0.1, 0.9, 8))
end)

local HIDDEN, STEPS = 32, 100

-- Two layers of tanh units in a loop over the time steps.
local function rnn(x, start, w1, u1, b1, w2, u2, b2)
  local h1, h2 = start, start
  for t = 0, STEPS - 1 do
    h1 = ops.tanh(ops.matmul(x[t], w1) + ops.matmul(h1, u1) + b1)
    h2 = ops.tanh(ops.matmul(h1, w2) + ops.matmul(h2, u2) + b2)
  end
  return ops.sum(h2 * h2)
end

harness.workload("rnn", { torch = 10 }, function()
  local function weight() return ops.randn({ HIDDEN, HIDDEN }) / math.sqrt(HIDDEN) end
  local function bias() return ops.zeros({ HIDDEN }) end
  return harness.calls(ms.value_and_grad(rnn, { 2, 3, 4, 5, 6, 7 }), ops.randn({ STEPS, 1, HIDDEN }), ops.zeros({ 1, HIDDEN }),
    weight(), weight(), bias(), weight(), weight(), bias())
end)

-- Each call differentiates anew: the first has to transform the function.
harness.workload("statements", { limit = 5e6 }, function()
  local lines = { "return function(x) local y = x" }
  for i = 1, 3200 do lines[#lines + 1] = ("y = y * %.4f + x"):format(1 - 1 / (i + 2)) end
  lines[#lines + 1] = "return (y * y):sum() end"
  local f = load(table.concat(lines, "\n"))()
  return harness.calls(function(x) return ms.value_and_grad(f)(x) end, ops.ones({ 2 }))
end)

harness.serve()
