-- Products of matrices by cuBLASLt on the GPU, with mocks of the library and of the driver: which ones go there, that
-- they are told right, and what is left to the GPU's own kernels.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local mock = require "mock_control"
local t = require "harness"
local ops = ms.ops
local randn = ops.randn

ms.set_seed(1)

local function far(here, there)
  local wide, other = here:astype(ms.float64), there:to("CPU"):astype(ms.float64)
  return (wide - other):abs():max():item() / (wide:abs():max():item() + 1)
end

-- `count`: how many products the library gets.
local function check(name, count, f, ...)
  local args = { ... }
  t.test(name, function()
    local there = {}
    for i, a in ipairs(args) do there[i] = a:to "GPU" end
    local before = mock.products()
    local result = f(table.unpack(there))
    t.equal(mock.products() - before, count)
    local expected = f(table.unpack(args))
    t.equal(result.shape, expected.shape)
    t.equal(result.dtype, expected.dtype)
    local bound = expected.dtype == ms.float16 and 1e-3 or expected.dtype == ms.bfloat16 and 8e-3 or 5e-6
    local distance = far(expected, result)
    if not (distance <= bound) then error("differs by " .. distance) end
  end)
end

t.test("the libraries and their versions are told", function()
  t.equal(ms.runtime.libraries "GPU",
    { "cuBLASLt 13.1.0 (libcublasLt.so.13)", "cuDNN 9.19.0 (libcudnn.so.9)", "NCCL 2.28.9 (libnccl.so.2)" })
end)

for _, s in ipairs { { 1, 1, 1 }, { 3, 5, 7 }, { 65, 130, 67 }, { 1, 20, 9 }, { 20, 1, 9 }, { 5, 4, 1 } } do
  local name = table.concat(s, " x ")
  check("matmul " .. name, 1, ops.matmul, randn { s[1], s[3] }, randn { s[3], s[2] })
  check("dense " .. name, 1, ops.dense, randn { s[1], s[3] }, randn { s[2], s[3] }, randn { s[2] })
  check("matmul of transposed views " .. name, 1, function(a, b) return ops.matmul(a.T, b.T) end, randn { s[3], s[1] },
    randn { s[2], s[3] })
end
check("matmul of a vector and a matrix", 1, ops.matmul, randn { 20 }, randn { 20, 40 })
check("matmul of a matrix and a vector", 1, ops.matmul, randn { 20, 40 }, randn { 40 })
check("matmul of vectors", 1, ops.matmul, randn { 40 }, randn { 40 })
check("bmm", 1, ops.bmm, randn { 3, 4, 5 }, randn { 3, 5, 6 })
check("matmul of a batch and a matrix", 1, ops.matmul, randn { 2, 3, 30, 20 }, randn { 20, 40 })
check("matmul of a matrix and a batch", 1, ops.matmul, randn { 30, 20 }, randn { 2, 3, 20, 40 })
check("matmul of batches of heads", 1, function(q, k) return ops.matmul(q:transpose { 0, 2, 1, 3 }, k:transpose { 0, 2, 3, 1 }) end,
  randn { 1, 7, 2, 5 }, randn { 1, 9, 2, 5 })
check("matmul of batches that no one step tells", 0, ops.matmul, randn { 2, 1, 30, 20 }, randn { 3, 20, 40 })
check("matmul of rows that are taken apart", 1, function(a, b) return ops.matmul(a["::2"], b) end, randn { 8, 5 }, randn { 5, 4 })
check("matmul of columns that are taken apart", 0, function(a, b) return ops.matmul(a["..., ::2"], b) end, randn { 4, 10 },
  randn { 5, 4 })
check("matmul of what lies anywhere", 1, function(a, b) return ops.matmul(a["1:"]:reshape { 4, 5 }, b["3:"]:reshape { 5, 4 }) end,
  randn { 21 }, randn { 23 })
check("matmul without depth", 0, ops.matmul, randn { 3, 0 }, randn { 0, 4 })
check("dense of a batch", 1, ops.dense, randn { 2, 3, 8 }, randn { 4, 8 }, randn { 4 })
for _, dtype in ipairs { ms.float64, ms.float16, ms.bfloat16 } do
  check("matmul of " .. tostring(dtype), 1, ops.matmul, randn({ 20, 40 }):astype(dtype), randn({ 40, 7 }):astype(dtype))
  check("dense of " .. tostring(dtype), 1, ops.dense, randn({ 20, 40 }):astype(dtype), randn({ 7, 40 }):astype(dtype),
    randn({ 7 }):astype(dtype))
end
check("matmul of integers", 0, ops.matmul, ops.randint(0, 9, { 20, 40 }), ops.randint(0, 9, { 40, 7 }))

-- Input, weight, stride, padding, dilation, groups; how many convolutions of three the library gets.
for i, w in ipairs {
  { { 2, 3, 5, 7 }, { 4, 3, 3, 2 }, 2, { 0, 0 }, 1, 1, 3 },
  { { 2, 4, 8, 8 }, { 6, 2, 3, 3 }, 1, { 1, 1 }, 1, 2, 3 },
  { { 3, 4, 9, 8 }, { 8, 4, 3, 3 }, 2, { 1, 1 }, 2, 1, 3 },
  { { 2, 3, 6 }, { 4, 3, 3 }, 1, 1, 1, 1, 3 },
  { { 1, 2, 4, 5, 6 }, { 3, 2, 2, 3, 2 }, 1, { 1, 0, 1 }, 1, 1, 3 },
  -- More behind the end than in front.
  { { 2, 3, 6, 6 }, { 4, 3, 2, 2 }, 1, "same", 1, 1, 0 },
} do
  local options = { stride = w[3], dilation = w[5], groups = w[6], pad_mode = w[4] == "same" and "same" or "pad",
    padding = w[4] ~= "same" and w[4] or nil }
  local op = ops["conv" .. #w[1] - 2 .. "d"]
  for _, dtype in ipairs(i == 1 and { ms.float32, ms.float64, ms.float16, ms.bfloat16 } or { ms.float32 }) do
    local name = ("convolution %d of %s"):format(i, dtype)
    local x, weight, bias = randn(w[1]):astype(dtype), randn(w[2]):astype(dtype), randn({ w[2][1] }):astype(dtype)
    local function conv(a, b, c) return op(a, b, c, options) end
    t.test(name, function()
      local there = { x:to "GPU", weight:to "GPU", bias:to "GPU" }
      local before = mock.convolutions()
      local f = ms.grad(function(a, b, c) return (conv(a, b, c) * 0.5):sum() end, { 0, 1, 2 })
      local results, expected = { conv(table.unpack(there)), f(table.unpack(there)) }, { conv(x, weight, bias), f(x, weight, bias) }
      -- Value, and the value again with its gradients.
      t.equal(mock.convolutions() - before, w[7] == 3 and 4 or 0)
      if type(results[2]) == "table" then
        results, expected = { results[1], table.unpack(results[2]) }, { expected[1], table.unpack(expected[2]) }
      end
      local bound = dtype == ms.float16 and 2e-3 or dtype == ms.bfloat16 and 2e-2 or 5e-6
      for k, e in ipairs(expected) do
        local distance = far(e, results[k])
        if not (distance <= bound) then error(("result %d differs by %g"):format(k, distance)) end
      end
    end)
  end
end

t.test("convolutions are exact unless they may be rounded", function()
  local x, w = randn({ 1, 2, 5, 5 }):to "GPU", randn({ 3, 2, 3, 3 }):to "GPU"
  local _, before = mock.convolutions()
  ops.conv2d(x, w)
  t.equal(select(2, mock.convolutions()) - before, 0)
  ms.set_context { float32_matmul_precision = "high" }
  ops.conv2d(x, w)
  ms.set_context { float32_matmul_precision = "highest" }
  t.equal(select(2, mock.convolutions()) - before, 1)
end)

t.test("a bias is the library's work", function()
  local _, _, before = mock.products()
  ops.dense(randn({ 4, 5 }):to "GPU", randn({ 6, 5 }):to "GPU", randn({ 6 }):to "GPU")
  local _, _, after = mock.products()
  t.equal(after - before, 1)
end)

t.test("operands are rounded where that is allowed", function()
  local a, b = randn { 30, 40 }, randn { 40, 20 }
  local there = { a:to "GPU", b:to "GPU" }
  local exact = ops.matmul(a, b)
  t.equal(ms.get_context "float32_matmul_precision", "highest")
  ms.set_context { float32_matmul_precision = "high" }
  local _, before = mock.products()
  local rounded = ops.matmul(table.unpack(there))
  ops.matmul(there[1]:astype(ms.float64), there[2]:astype(ms.float64))
  local _, after = mock.products()
  t.equal(ms.get_context "float32_matmul_precision", "high")
  ms.set_context { float32_matmul_precision = "highest" }
  t.equal(after - before, 1)
  local distance = far(exact, rounded)
  if distance < 1e-5 or distance > 1e-2 then error("differs by " .. distance) end
  t.equal(far(exact, ops.matmul(table.unpack(there))) < 5e-6, true)
  t.fails({ "float32_matmul_precision must be \"highest\" or \"high\", got" }, ms.set_context, { float32_matmul_precision = 3 })
end)

t.test("a compiled function has products in its graph", function()
  local w1, w2 = randn({ 8, 16 }):to "GPU", randn({ 16, 3 }):to "GPU"
  local f = ms.jit(function(x) return ops.matmul(ops.tanh(ops.matmul(ops.exp(x * 0.1), w1)) * 2, w2):sum(1) end)
  local g = function(x) return ops.matmul(ops.tanh(ops.matmul(ops.exp(x * 0.1), w1:to "CPU")) * 2, w2:to "CPU"):sum(1) end
  for i = 1, 8 do
    local x = randn { 5, 8 } * i
    local distance = far(g(x), f(x:to "GPU"))
    if distance > 5e-6 then error(("call %d differs by %g"):format(i, distance)) end
  end
  t.equal(mock.calls "cuGraphLaunch" > 0, true)
end)

t.test("what the library knows of products is kept", function()
  local a, b = randn({ 6, 7 }):to "GPU", randn({ 7, 8 }):to "GPU"
  ops.matmul(a, b)
  local handles = select(4, mock.products())
  for _ = 1, 100 do ops.matmul(a, b) end
  t.equal(select(4, mock.products()), handles)
end)

t.test("products go on after the context was lost", function()
  mock.fail("cuStreamSynchronize", 1, 700)
  t.fails({ "the device failed" }, ms.synchronize, "GPU")
  local a, b = randn { 6, 7 }, randn { 7, 8 }
  t.equal(far(ops.matmul(a, b), ops.matmul(a:to "GPU", b:to "GPU")) < 5e-6, true)
end)

t.test("the driver and the library were used as they are to be used", function() t.equal(mock.blamed(), "") end)

t.finish()
