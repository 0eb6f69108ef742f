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

t.test("gradients of convolutions", function()
  ms.set_seed(7)
  -- kernel, stride, padding, dilation, pictures, channels
  for _, c in ipairs { { 3, 1, 1, 1, 2, 20 }, { 3, 2, 1, 1, 2, 20 }, { 1, 1, 0, 1, 3, 16 }, { 5, 2, 2, 1, 1, 3 }, { 3, 1, 2, 2, 2, 20 },
    { 3, 3, 0, 1, 1, 40 }, { 1, 2, 0, 1, 2, 20 }, { 2, 1, 0, 1, 5, 150 } } do
    local k, stride, padding, dilation, count, channels = table.unpack(c)
    local x, w = half(count, channels, 14, 11), half(24, channels, k, k)
    local function forward(a, b) return ops.conv2d(a, b, nil, stride, "pad", padding, dilation) end
    local dy = half(table.unpack(forward(wide(x), wide(w)).shape))
    local gradients = ms.grad(function(a, b) return (forward(a, b) * wide(dy)):sum() end, { 0, 1 })(wide(x), wide(w))
    local o = { stride = stride, padding = padding, dilation = dilation, shape = x.shape, kernel = { k, k } }
    local dx, dw = K.conv2d_input_grad(dy, w, o), K.conv2d_weight_grad(x, dy, o)
    t.equal({ dx.dtype, dx.shape, dw.dtype, dw.shape }, { f16, x.shape, f32, w.shape })
    close(dx, gradients[1])
    close(dw, gradients[2], 0.01)
  end
  local dy, w = half(1, 16, 4, 4), half(16, 16, 3, 3)
  t.equal(K.conv2d_input_grad(dy, w).shape, { 1, 16, 6, 6 })
  t.fails({ "no convolution of 9 elements with a window of 3, stride 1 and padding 0 gives 4" }, K.conv2d_input_grad, dy, w,
    { shape = { 1, 16, 9, 6 } })
  t.fails({ "dy has 16 channels, the weights give 8" }, K.conv2d_input_grad, dy, half(8, 16, 3, 3))
  t.fails({ "options.kernel, the size of a window, is missing" }, K.conv2d_weight_grad, dy, dy)
  t.fails({ "dy must be (1, channels, 2, 2)" }, K.conv2d_weight_grad, dy, dy, { kernel = 3 })
  t.fails({ "of float16 with four axes are expected" }, K.conv2d_weight_grad, dy, 3, { kernel = 3 })
end)

t.test("rows by their numbers", function()
  ms.set_seed(8)
  for _, s in ipairs { { 300, 48, 517, f16 }, { 5, 16, 3, f16 }, { 40, 1024, 64, f16 }, { 70, 80, 129, f32 } } do
    local rows, n, count, dtype = table.unpack(s)
    local x = ms.randn({ rows, n }):astype(dtype)
    local index = ops.randint(0, rows, { count }):astype(ms.int32)
    t.equal(K.gather(x, index), ops.gather(x, index, 0))
    local updates = ms.randn({ count, n }):astype(dtype)
    close(K.scatter_add(x, index, updates), ops.index_add(wide(x), index, wide(updates), 0), dtype == f16 and 12 or 0.01)
    -- Of several updates of a row the last one stays.
    local last = {}
    for i, row in ipairs(index:tolist()) do last[row] = i - 1 end
    local replaced = K.scatter_update(x, index, updates)
    for row = 0, rows - 1 do t.equal({ row, replaced[row] }, { row, last[row] and updates[last[row]] or x[row] }) end
  end
  local x, index = half(8, 32), ms.tensor({ 1, 8 }, ms.int32)
  t.fails({ "are not inside the tensor input 1" }, K.gather, x, index)
  t.fails({ "are not inside the tensor output 1" }, K.scatter_update, x, index, half(2, 32))
  t.fails({ "are not inside the tensor input 1" }, K.gather, x, ms.tensor({ -1 }, ms.int32))
  t.fails({ "whose rows are a multiple of 16 is expected" }, K.gather, half(8, 30), index)
  t.equal(K.gather(half(3, 7680), ms.tensor({ 2 }, ms.int32)).shape, { 1, 7680 })
  t.fails({ "rows of", "have at most 7680 elements, got 7696" }, K.gather, half(3, 7696), index)
  t.fails({ "must be a vector of int32" }, K.gather, x, index:astype(ms.int64))
  t.fails({ "updates must be (2, 32) of" }, K.scatter_add, x, index, half(3, 32))
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
  local dy = half(2, 24, 6, 6)
  local there_gradients = ms.grad(function(a, b) return (ops.conv2d(a, b, nil, 2, "pad", 1) * there(wide(dy))):sum() end, { 0, 1 })(
    there(wide(x)), there(wide(w)))
  close(there_gradients[1]:to "CPU", K.conv2d_input_grad(dy, w, { stride = 2, padding = 1, shape = x.shape }), 1)
  close(there_gradients[2]:to "CPU", K.conv2d_weight_grad(x, dy, { kernel = 3, stride = 2, padding = 1 }), 1)
  local rows = ms.tensor({ 3, 0, 3 }, ms.int32)
  both("gather", 0, function(a, i) return ops.gather(a, i, 0) end, half(5, 32), rows)
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
