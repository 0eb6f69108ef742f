-- The kernels of the library on the simulated Ascend against the operators of the CPU.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops, K = ms.ops, require "lunaria.ascend.kernels"
local f16, f32 = ms.float16, ms.float32

local function half(...) return ms.randn({ ... }):astype(f16) end
local function wide(x) return x:astype(f32) end

-- Up to `units` of the last place of float16, or of the largest element.
local function close(got, wanted, units)
  local difference = (wide(got) - wide(wanted)):abs():max():item()
  local most = math.max(wide(wanted):abs():max():item(), 6e-5)
  if not (difference <= (units or 1) * 2 ^ -11 * most) then
    error(("differs by %g of %g"):format(difference, most), 2)
  end
end

t.test("elementwise kernels", function()
  ms.set_seed(1)
  for _, shape in ipairs { { 16 }, { 40, 224 }, { 3, 5, 7 } } do
    local x, y = half(table.unpack(shape)), half(table.unpack(shape))
    for _, name in ipairs { "add", "sub", "mul", "maximum", "minimum" } do close(K[name](x, y), ops[name](x, y)) end
    for _, name in ipairs { "relu", "abs", "exp", "neg" } do close(K[name](x), ops[name](x)) end
    close(K.copy(x), x)
    close(K.log(x:abs() + 0.1), ops.log(wide(x:abs() + 0.1)), 2)
    close(K.sqrt(x:abs()), ops.sqrt(wide(x:abs())), 3)
    close(K.div(x, y:abs() + 0.5), wide(x) / wide(y:abs() + 0.5), 3)
    close(K.sigmoid(x), ops.sigmoid(wide(x)), 3)
    close(K.tanh(x), ops.tanh(wide(x)), 5)
  end
end)

t.test("kernels along rows", function()
  ms.set_seed(2)
  for _, shape in ipairs { { 3, 16 }, { 40, 224 }, { 2, 3, 1008 } } do
    local x = half(table.unpack(shape))
    local n = shape[#shape]
    close(K.softmax(x), ops.softmax(wide(x), -1), 2)
    close(K.reduce_sum(x), ops.reduce_sum(wide(x), -1), 2)
    close(K.reduce_max(x), (ops.max(wide(x), -1)))
    close(K.reduce_min(x), (ops.min(wide(x), -1)))
    local gamma, beta = half(n), half(n)
    local centred = wide(x) - ops.mean(wide(x), -1, true)
    local wanted = centred / ops.sqrt(ops.mean(centred * centred, -1, true) + 1e-5) * wide(gamma) + wide(beta)
    close(K.layer_norm(x, gamma, beta), wanted, 3)
  end
  t.fails({ "rows have a multiple of 16" }, K.softmax, half(2, 10))
  t.fails({ "must be a tensor of float16" }, K.softmax, ms.randn { 2, 16 })
end)

t.test("products and convolutions", function()
  ms.set_seed(3)
  for _, s in ipairs { { 16, 16, 16 }, { 100, 130, 70 }, { 300, 270, 290 } } do
    local a, b = half(s[1], s[2]), half(s[2], s[3])
    close(K.matmul(a, b), ops.matmul(wide(a), wide(b)))
  end
  for _, c in ipairs { { 3, 1, 1 }, { 3, 2, 1 }, { 1, 1, 0 }, { 5, 2, 2 } } do
    local x, w = half(2, 20, 14, 11), half(24, 20, c[1], c[1])
    close(K.conv2d(x, w, { stride = c[2], padding = c[3] }), ops.conv2d(wide(x), wide(w), nil, c[2], "pad", c[3]))
  end
  local x, w = half(1, 16, 12, 12), half(16, 16, 3, 3)
  close(K.conv2d(x, w, { dilation = 2 }), ops.conv2d(wide(x), wide(w), nil, 1, "valid", 0, 2))
  t.fails({ "two matrices of float16" }, K.matmul, half(2, 3), half(2, 3))
end)

t.test("the library is reached by names", function()
  local x = half(32)
  t.equal(ms.ascend.library "add"(x, x), x + x)
  t.fails({ "there is no kernel 'ad'", "add" }, ms.ascend.library, "ad")
end)

t.test("pooling, moves and a step of an optimizer", function()
  ms.set_seed(4)
  local x = half(2, 20, 9, 9)
  close(K.max_pool(x, 3, 2), ops.max_pool2d(wide(x), 3, 2))
  local m = half(48, 64)
  t.equal(K.transpose(m), ops.transpose(m, { 1, 0 }):contiguous())
  local p, v, g = ms.randn { 1000 }, ms.randn { 1000 }, ms.randn { 1000 }
  local new_p, new_v = K.momentum(p, v, g, 0.1, 0.9)
  t.near(new_v, v * 0.9 + g, 1e-6)
  t.near(new_p, p - (v * 0.9 + g) * 0.1, 1e-6)
end)

t.test("layers", function()
  ms.set_seed(5)
  for _, n in ipairs { 128, 1000, 5000 } do
    local x, dy = half(n) * 3, half(n)
    close(K.gelu(x), ops.gelu_tanh(wide(x)), 2)
    t.equal(K.relu_grad(dy, x), ops.relu_grad(dy, x))
  end
  local x = half(3, 20, 9, 10)
  close(K.avg_pool(x, 3, 2), ops.avg_pool2d(wide(x), 3, 2), 2)
  for _, size in ipairs { 1, 3, 9 } do
    local y = half(4, 20, size, size + 1) * 2 + 1
    local gamma, beta = ms.randn { 20 }, ms.randn { 20 }
    local mean = ops.mean(wide(y), { 0, 2, 3 }, true)
    local variance = ops.mean((wide(y) - mean) ^ 2, { 0, 2, 3 }, true)
    local wanted = (wide(y) - mean) / ops.sqrt(variance + 1e-5) * gamma:reshape { 1, 20, 1, 1 } + beta:reshape { 1, 20, 1, 1 }
    close(K.batch_norm(y, gamma, beta), wanted, 4)
  end
  local p, m, v, g = ms.randn { 3000 }, ms.randn { 3000 }, ms.rand { 3000 }, ms.randn { 3000 }
  local new_p, new_m, new_v = K.adam(p, m, v, g, 0.01, 0.9, 0.99, 1e-6)
  local wanted_m, wanted_v = m * 0.9 + g * 0.1, v * 0.99 + g * g * 0.01
  t.near(new_m, wanted_m, 1e-6)
  t.near(new_v, wanted_v, 1e-6)
  t.near(new_p, p - wanted_m * 0.01 / (ops.sqrt(wanted_v) + 1e-6), 1e-5)
end)

-- The device computes by kernels of the host; those are to give what the chip's own programs give.
t.test("the device's numbers are those of tile programs", function()
  ms.set_seed(6)
  local function there(x) return x:to "Ascend" end
  local function both(name, units, mine, ...)
    local list = { ... }
    local tile = K[name](...)
    for i, x in ipairs(list) do list[i] = ms.is_tensor(x) and there(x) or x end
    local device = mine(table.unpack(list)):to "CPU"
    t.equal({ name, device.dtype, device.shape }, { name, tile.dtype, tile.shape })
    close(device, tile, units)
  end
  for _, shape in ipairs { { 64 }, { 7, 48 }, { 5, 3, 112 } } do
    local x, y = half(table.unpack(shape)), half(table.unpack(shape))
    for _, name in ipairs { "add", "sub", "mul", "maximum", "minimum" } do both(name, 0, ops[name], x, y) end
    for _, name in ipairs { "relu", "abs", "exp", "neg" } do both(name, name == "exp" and 1 or 0, ops[name], x) end
    both("sigmoid", 3, ops.sigmoid, x)
    both("tanh", 5, ops.tanh, x)
    both("gelu", 2, ops.gelu_tanh, x)
  end
  for _, shape in ipairs { { 4, 32 }, { 9, 208 } } do
    local x = half(table.unpack(shape))
    both("softmax", 2, function(v) return ops.softmax(v, -1) end, x)
    both("reduce_sum", 1, function(v) return ops.reduce_sum(v, -1) end, x)
    both("reduce_max", 0, function(v) return (ops.max(v, -1)) end, x)
  end
  for _, s in ipairs { { 16, 16, 16 }, { 33, 130, 50 }, { 1, 300, 17 } } do
    both("matmul", 1, ops.matmul, half(s[1], s[2]), half(s[2], s[3]))
  end
  local x, w = half(2, 20, 12, 11), half(24, 20, 3, 3)
  close(ops.conv2d(there(x), there(w), nil, 2, "pad", 1):to "CPU", K.conv2d(x, w, { stride = 2, padding = 1 }), 1)
  both("max_pool", 0, ops.max_pool2d, half(2, 20, 9, 9), 3, 2)
  both("avg_pool", 1, ops.avg_pool2d, half(2, 20, 9, 9), 3, 2)
  -- Too large for float16, and no number.
  local large = ops.full({ 16, 16 }, 300.0, f16)
  both("matmul", 0, ops.matmul, large, large)
  both("mul", 0, ops.mul, large, large)
  both("exp", 0, ops.exp, large)
  -- float32 operands are what a program would convert first.
  local a, b = ms.randn { 20, 40 }, ms.randn { 40, 30 }
  close(ops.matmul(there(a), there(b)):to "CPU", K.matmul(a:astype(f16), b:astype(f16)), 1)
end)

t.test("a large product keeps the cube busy, a thin one and a sum are bound by memory", function()
  local function fractals(...) return ops.zeros({ ... }, f16) end
  local large = K.matmul_kernel:time(fractals(256, 4096, 16), fractals(256, 256, 16, 16))
  t.equal(large.utilisation.M >= 0.9, true)
  t.equal(large:bound(), "M")
  local thin = K.matmul_kernel:time(fractals(4, 4096, 16), fractals(4, 256, 16, 16))
  t.equal(thin.utilisation.M < 0.5, true)
  t.equal(thin:bound(), "HBM")
  local x = ops.zeros({ 16 * 1024 * 1024 }, f16)
  local sum = K.add:time(x, x)
  t.equal(sum.hbm_utilisation >= 0.7 and sum.hbm_utilisation <= 0.75001, true)
end)

t.finish()
