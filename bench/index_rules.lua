-- Operators that a program defines by a rule for indices, beside the same loops in C++: no more than 1.2 of their time.
local harness = require "bench.harness"
local ms = require "lunaria"
local ops = ms.ops

local bars = { index = 1 / 1.2 }
local function product(a, b) return a * b end

local scores = ms.op { name = "scores", inputs = { "q[b, i, k]", "w[b, j, k]" }, output = "b, i, j", reduce = "sum", expr = product }
local distances = ms.op { name = "distances", inputs = { "q[b, i, k]", "w[b, j, k]" }, output = "b, i, j", reduce = "sum",
  expr = function(a, b) return math.abs(a - b) end }
local squares = ms.op { name = "squares", inputs = { "q[b, i, k]", "w[b, j, k]" }, output = "b, i, j", reduce = "sum",
  expr = function(a, b) return (a - b) * (a - b) end }
local blur = ms.op { name = "blur", inputs = { "x[i + p, j + q]", "w[p, q]" }, output = "i, j", reduce = "sum", expr = product }

local function queries() return ops.randn { 8, 256, 64 }, ops.randn { 8, 256, 64 } end

harness.workload("scores", bars, function() return harness.calls(scores, queries()) end)
harness.workload("distances", bars, function() return harness.calls(distances, queries()) end)
harness.workload("distances_grad", bars, function()
  local slopes = ms.jit(ms.grad(function(q, w, d) return ops.sum(squares(q, w) * d) end, { 0, 1 }))
  local q, w = queries()
  return harness.calls(slopes, q, w, ops.randn { 8, 256, 256 })
end)
for _, size in ipairs { 256, 1024 } do
  harness.workload("blur_" .. size, bars, function() return harness.calls(blur, ops.randn { size, size }, ops.randn { 3, 3 }) end)
  harness.workload("blur_grad_" .. size, bars, function()
    local slopes = ms.jit(ms.grad(function(x, w, d) return ops.sum(blur(x, w) * d) end, { 0, 1 }))
    return harness.calls(slopes, ops.randn { size, size }, ops.randn { 3, 3 }, ops.randn { size - 2, size - 2 })
  end)
end

harness.serve()
