-- Run by gpu.sh: times on the GPU, one line "workload microseconds" each; gpu.py has the same for PyTorch.
--   usage: gpu.lua [quick]
-- With `quick` everything is small: the times then say nothing.
package.path = "./?.lua;" .. package.path
local ms = require "lunaria"
local networks = require "bench.networks"
local nn, ops = ms.nn, ms.ops

local quick = arg[1] == "quick"
ms.set_context { device_target = "GPU" }
ms.set_seed(1)

local function measure(name, f)
  for _ = 1, 5 do f() end
  ms.synchronize "GPU"
  local calls, least = 1, quick and 0 or 0.3
  while true do
    local start = ms.clock()
    for _ = 1, calls do f() end
    ms.synchronize "GPU"
    local seconds = (ms.clock() - start) / 1e9
    if seconds >= least then
      print(("%s %.2f"):format(name, seconds / calls * 1e6))
      return
    end
    calls = calls * (seconds < least / 20 and 10 or 2)
  end
end

local function size(full, small) return quick and small or full end

for _, n in ipairs(quick and { 16 } or { 256, 1024, 4096, 8192 }) do
  for _, dtype in ipairs { "float32", "bfloat16" } do
    local a, b = ops.randn { n, n }:astype(ms[dtype]), ops.randn { n, n }:astype(ms[dtype])
    measure(("matmul_%s_%d"):format(dtype, n), function() return ops.matmul(a, b) end)
  end
end

local count = size(64 << 20, 1000)
local x, y, four = ops.randn { count }, ops.randn { count }, ops.randn { 4 }
measure("add", function() return x + y end)
measure("sum", function() return x:sum() end)
measure("add_of_4", function() return four + four end)
measure("chain_of_4", ms.jit(function() return ops.tanh(four * 2 + 1) * four - four end))
local rows = ops.randn { size(16384, 4), size(4096, 32) }
measure("softmax", function() return ops.softmax(rows, -1) end)
measure("sum_of_rows", function() return rows:sum(-1) end)
measure("sum_of_columns", function() return rows:sum(0) end)
measure("layer_norm", function() return ops.layer_norm(rows, { rows.shape[2] }) end)
for _, dtype in ipairs { "float32", "bfloat16" } do
  local q = ops.randn({ size(8, 1), size(12, 1), size(1024, 9), size(64, 4) }):astype(ms[dtype])
  measure("attention_" .. dtype, function() return ops.attention(q, q, q, 0.125, true) end)
  measure("attention_grad_" .. dtype, function() return ops.attention_grad(q, q, q, q, 0.125, true, 0) end)
end
-- With float32 rounded to TF32, and without.
local function with_tf32(f)
  f ""
  ms.set_context { float32_matmul_precision = "high" }
  f "_tf32"
  ms.set_context { float32_matmul_precision = "highest" }
end

local image, kernel = ops.randn { size(32, 1), size(64, 3), size(56, 8), size(56, 8) }, ops.randn { size(64, 4), size(64, 3), 3, 3 }
local function convolve(name, input, weight)
  measure(name, function() return ops.conv2d(input, weight, nil, { pad_mode = "pad", padding = 1 }) end)
end
with_tf32(function(how) convolve("conv2d" .. how, image, kernel) end)
convolve("conv2d_bfloat16", image:astype(ms.bfloat16), kernel:astype(ms.bfloat16))

local function train(name, make, make_optimizer, inputs)
  local net = make()
  net:set_train(true)
  local params = net:trainable_params()
  local optimizer = make_optimizer(params)
  local gradient = ms.value_and_grad(networks.loss(net), nil, params)
  local a, b = inputs()
  local function step()
    local _, grads = gradient(a, b)
    optimizer(grads)
  end
  measure(name .. "_eager", step)
  measure(name .. "_graph", ms.jit(step))
end

train("train_mlp", networks.mlp, function(params) return nn.Adam(params, 1e-6) end,
  function() return ops.randn { size(64, 2), 784 }, ops.randint(0, 10, { size(64, 2) }) end)
if not quick then
  train("train_gpt", networks.gpt, function(params) return ms.mint.optim.AdamW(params, { lr = 1e-6, weight_decay = 0.01 }) end,
    function() return ops.randint(0, 256, { 8, 128 }), ops.randint(0, 256, { 8, 128 }) end)
  with_tf32(function(how)
    train("train_resnet18" .. how, networks.resnet18, function(params) return nn.Momentum(params, 1e-5, 0.9) end,
      function() return ops.randn { 32, 3, 32, 32 }, ops.randint(0, 10, { 32 }) end)
  end)
end

-- Device memory after many steps is that after few.
local function memory_of(steps)
  local w = ms.Parameter(ops.randn { 64, 64 }, "w")
  local optimizer = nn.Adam({ w }, 1e-3)
  local gradient = ms.value_and_grad(function() return (ops.matmul(w, w) * w):sum() end, nil, { w })
  for _ = 1, steps do
    local _, grads = gradient()
    optimizer(grads)
  end
  ms.synchronize "GPU"
  collectgarbage()
  collectgarbage()
  return ms.runtime.memory_allocated "GPU"
end
local few = memory_of(10)
local many = memory_of(quick and 50 or 1000)
print(("%d bytes after many steps"):format(many))
if many > few then error(("%d bytes after many steps, %d after few"):format(many, few)) end
