-- Steps of optimizers over the parameters of a ResNet-18 (11.7 M elements in 62 tensors). PyTorch uses its fused ones; it has no
-- Lamb, for which its functions over lists of tensors stand.
local harness = require "bench.harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function shapes()
  local list = { { 64, 3, 7, 7 }, { 64 }, { 64 } }
  local function conv(out, channels, size)
    for _, shape in ipairs { { out, channels, size, size }, { out }, { out } } do list[#list + 1] = shape end
  end
  local before = 64
  for _, width in ipairs { 64, 128, 256, 512 } do
    conv(width, before, 3)
    conv(width, width, 3)
    if width ~= before then conv(width, before, 1) end
    conv(width, width, 3)
    conv(width, width, 3)
    before = width
  end
  list[#list + 1], list[#list + 2] = { 1000, 512 }, { 1000 }
  return list
end

local function workload(name, make)
  harness.workload(name, { torch = 1.0 }, function()
    local params, grads = {}, {}
    for i, shape in ipairs(shapes()) do
      params[i], grads[i] = ms.Parameter(ops.randn(shape) * 0.1, "p" .. i), ops.randn(shape) * 0.01
    end
    return harness.calls(make(params), grads)
  end)
end

workload("step_adam", function(p) return ms.mint.optim.Adam(p, 1e-6) end)
workload("step_adamw", function(p) return ms.mint.optim.AdamW(p, { lr = 1e-6, weight_decay = 0.01 }) end)
workload("step_sgd", function(p) return ms.mint.optim.SGD(p, 1e-6) end)
workload("step_momentum", function(p) return nn.Momentum(p, 1e-6, 0.9) end)
workload("step_lamb", function(p) return nn.Lamb(p, 1e-6, { weight_decay = 0.01 }) end)

harness.serve()
