-- The second-order optimizer against its formula.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function values(shape, k)
  local count = 1
  for _, size in ipairs(shape) do count = count * size end
  return ops.reshape(ops.sin(ops.arange(0, count, 1, { dtype = ms.float64 }) * 0.7 + 1.3 * k), shape)
end

t.test("gradients are multiplied by the inverses of both covariances", function()
  local net = nn.Dense(3, 2, { has_bias = true, dtype = ms.float64 }):set_train()
  net.weight:assign(values({ 2, 3 }, 5))
  net.bias:assign(values({ 2 }, 6))
  local w, b = net.weight:copy(), net.bias:copy()
  local opt = nn.thor(net, 0.05, { 0.04, 0.09, 0.16, 0.25 }, 0.9, 0.1, {
    batch_size = 4, frequency = 2, decay_filter = function(p) return p.name == "weight" end, loss_scale = 2.0,
  })
  local gradient = ms.grad(function(x, y) return 2.0 * ((net(x) - y) ^ 2):sum() / 4 end, nil, net:trainable_params())
  local vw, vb, left, right = 0.0, 0.0, nil, nil
  for step = 1, 4 do
    local x, y = values({ 4, 3 }, step), values({ 4, 2 }, step + 10)
    local d = (ops.matmul(x, w.T) + b - y) * 2 / 4
    if step % 2 == 1 then
      local root = step == 1 and 0.2 or 0.4
      right = ops.inverse(ops.matmul(x.T, x) / 4 + root * ops.eye(3, 3, ms.float64))
      left = ops.inverse(ops.matmul(d.T, d) / 4 * 16 + root * ops.eye(2, 2, ms.float64))
    end
    vw = 0.9 * vw + ops.matmul(ops.matmul(left, ops.matmul(d.T, x)), right) + 0.1 * w
    vb = 0.9 * vb + d:sum(0)
    w, b = w - 0.05 * vw, b - 0.05 * vb
    opt(gradient(x, y))
    t.near(net.weight, w, 1e-10)
    t.near(net.bias, b, 1e-10)
  end
end)

t.test("patches of convolutions count as inputs", function()
  for _, options in ipairs {
    { pad_mode = "same" }, { pad_mode = "pad", padding = 1, stride = 2 }, { pad_mode = "pad", padding = { 1, 0, 2, 1 } },
    { pad_mode = "valid", dilation = 2 },
  } do
    options.weight_init, options.dtype = values({ 2, 3, 3, 3 }, 4), ms.float64
    local net = nn.Conv2d(3, 2, 3, options):set_train()
    local x = values({ 2, 3, 6, 5 }, 1)
    local opt = nn.thor(net, 0.1, 1.0, 0.0, { batch_size = 2 })
    local grads = ms.grad(function() return (net(x) ^ 2):sum() / 2 end, nil, net:trainable_params())()
    local name
    for key in opt:parameters_and_names() do
      if key:find("matrix_a.", 1, true) then name = key end
    end
    local a = opt[name]
    -- A weight's product with its patches is the convolution: so is the sum of its squares.
    local one = net.weight:reshape { 2, 27 }
    local squares = ops.matmul(ops.matmul(one, a), one.T)
    t.near(squares[0][0], (net(x):narrow(1, 0, 1) ^ 2):sum() / 2, 1e-9)
    local before = net.weight:copy()
    opt(grads)
    assert((net.weight - before):abs():sum():item() > 0)
  end
end)

t.test("a badly scaled problem is solved faster than by momentum, plain and compiled", function()
  local x = values({ 16, 4 }, 1):astype(ms.float32) * ms.tensor { 4.0, 1.0, 0.3, 0.1 }
  local y = ops.matmul(x, values({ 4, 2 }, 2):astype(ms.float32) * ms.tensor({ { 0.25 }, { 1.0 }, { 3.0 }, { 10.0 } }))
  local function losses(make, compiled)
    ms.set_seed(2)
    local net = nn.Dense(4, 2):set_train()
    local opt = make(net)
    local gradient = ms.value_and_grad(function(a, b) return nn.MSELoss()(net(a), b) end, nil, net:trainable_params())
    local function step(a, b)
      local loss, grads = gradient(a, b)
      opt(grads)
      return loss
    end
    if compiled then step = ms.jit(step) end
    local list = {}
    for i = 1, 30 do list[i] = step(x, y):item() end
    return list
  end
  local function second_order(net) return nn.thor(net, 0.05, 0.001, 0.9, { batch_size = 16, frequency = 5, enable_clip_grad = true }) end
  local plain = losses(second_order, false)
  t.near(losses(second_order, true), plain, 1e-4)
  local momentum = losses(function(net) return nn.Momentum(net:trainable_params(), 0.05, 0.9) end, false)
  assert(plain[30] < momentum[30] / 2, ("%s against %s, from %s"):format(plain[30], momentum[30], plain[1]))
end)

t.test("arguments are checked", function()
  t.fails({ "thor", "net must be a cell" }, nn.thor, 3, 0.1, 0.03, 0.9)
  t.fails({ "thor", "frequency must be positive" }, nn.thor, nn.Dense(2, 2), 0.1, 0.03, 0.9, { frequency = 0 })
  t.fails({ "thor", "did you mean 'damping'?" }, nn.thor, nn.Dense(2, 2), { learning_rate = 0.1, dampin = 0.03, momentum = 0.9 })
end)

t.finish()
