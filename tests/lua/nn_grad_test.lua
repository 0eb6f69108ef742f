-- Cells under differentiation: gradients of parameters and inputs, training steps, cells with a derivative of their own.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local function numbers(shape) return ops.randn(shape) end

-- The gradient of f by parameter p along a direction against a central difference.
local function check(f, p, gradient)
  local v, eps = ops.randn(p.shape), 1e-2
  local start = p:copy()
  p:assign(start + v * eps)
  local up = f():item()
  p:assign(start - v * eps)
  local down = f():item()
  p:assign(start)
  t.near(ops.sum(gradient * v):item(), (up - down) / (2 * eps), 2e-2)
end

t.test("gradients of all parameters of a network agree with differences", function()
  ms.set_seed(1)
  local Net = nn.Cell:extend("Net")
  function Net:init()
    self.conv = nn.Conv2d(1, 3, 3, { has_bias = true })
    self.norm = nn.BatchNorm2d(3)
    self.pool, self.flatten, self.tanh = nn.AvgPool2d(2, 2), nn.Flatten(), nn.Tanh()
    self.blocks = nn.SequentialCell(nn.Dense(12, 5, { activation = "gelu" }), nn.LayerNorm({ 5 }, { epsilon = 1e-5 }), nn.Dense(5, 3))
  end
  function Net:construct(x)
    return self.blocks(self.flatten(self.pool(self.tanh(self.norm(self.conv(x))))))
  end
  local net, loss = Net():set_train(), nn.CrossEntropyLoss()
  local x, y = numbers({ 4, 1, 4, 4 }), ms.tensor { 0, 2, 1, 1 }
  local function f() return loss(net(x), y) end
  local params = net:trainable_params()
  local value, grads = ms.value_and_grad(f, nil, params)()
  t.near(value, f(), 1e-5)
  t.equal(#grads, #params)
  for i, p in ipairs(params) do
    t.equal(grads[i].shape, p.shape)
    check(f, p, grads[i])
  end
end)

t.test("a shared parameter collects the gradients of all its uses", function()
  local cell = nn.Cell()
  cell.w = ms.Parameter(ms.tensor { 2.0, 3.0 }, "w")
  function cell:construct(x) return ops.sum(self.w * x) + ops.sum(self.w * self.w) end
  local grads = ms.grad(cell, nil, { cell.w })(ms.tensor { 5.0, 7.0 })
  t.equal(grads[1]:tolist(), { 9.0, 13.0 })
  local both, of_w = ms.grad(cell, 0, { cell.w })(ms.tensor { 5.0, 7.0 })
  t.equal(both:tolist(), { 2.0, 3.0 })
  t.equal(of_w[1]:tolist(), { 9.0, 13.0 })
end)

t.test("training lowers the loss, by hand and by TrainOneStepCell", function()
  for _, with_cell in ipairs { false, true } do
    ms.set_seed(7)
    local net = nn.SequentialCell(nn.Dense(2, 16, { activation = "tanh" }), nn.Dense(16, 1))
    local x = numbers({ 64, 2 })
    local y = ops.sum(x * x, -1, true)
    local loss, optimizer = nn.MSELoss(), nn.Adam(net:trainable_params(), 0.02)
    local step
    if with_cell then
      step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)
    else
      local gradient = ms.value_and_grad(function(a, b) return loss(net(a), b) end, nil, optimizer.parameters)
      step = function(a, b)
        local value, grads = gradient(a, b)
        optimizer(grads)
        return value
      end
    end
    local first, last = step(x, y):item(), nil
    for _ = 1, 150 do last = step(x, y):item() end
    assert(last < first / 10, ("%g after %g"):format(last, first))
  end
end)

t.test("gradients scale with sens", function()
  local function run(sens)
    local net = nn.Dense(2, 1, { weight_init = "ones", bias_init = "zeros" })
    local optimizer = nn.SGD(net:trainable_params(), 0.1)
    local cell = nn.WithLossCell(net, nn.MSELoss())
    local loss = nn.TrainOneStepCell(cell, optimizer, sens)(ms.tensor { { 1.0, 2.0 } }, ms.tensor { { 0.0 } })
    return loss:item(), net.weight:tolist()[1]
  end
  local loss, weight = run(1.0)
  t.near({ loss, weight[1] }, { 9.0, 1 - 0.1 * 6 })
  loss, weight = run(0.5)
  t.near({ loss, weight[1] }, { 9.0, 1 - 0.1 * 3 })
end)

t.test("WithGradCell gives the gradients, WithEvalCell loss and outputs", function()
  local net = nn.Dense(2, 1, { weight_init = "ones", has_bias = false })
  local x, y = ms.tensor { { 1.0, 2.0 } }, ms.tensor { { 1.0 } }
  local grads = nn.WithGradCell(net, nn.MSELoss())(x, y)
  t.near(grads[1], { { 4.0, 8.0 } })
  local loss, outputs, labels = nn.WithEvalCell(net, nn.MSELoss())(x, y)
  t.near({ loss:item(), outputs:item(), labels:item() }, { 4.0, 3.0, 1.0 })
end)

t.test("a cell's bprop takes the place of its derivative", function()
  local cell = nn.Cell()
  function cell:construct(x, y) return x * y end
  function cell:bprop(x, y, out, dout) return dout * 10, dout * out end
  t.equal(cell(2.0, 3.0), 6.0)
  local dx, dy = table.unpack(ms.grad(cell, { 0, 1 })(ms.tensor(2.0), ms.tensor(3.0)))
  t.equal({ dx:item(), dy:item() }, { 10.0, 6.0 })
  local outer = nn.SequentialCell(cell)
  outer[1] = nn.Cell()
  local inner = outer[1]
  function inner:construct(x) return x * x end
  function inner:bprop(x, out, dout) return dout * x end
  t.equal(ms.grad(outer)(ms.tensor(3.0)):item(), 3.0)
  t.equal(ms.grad(ms.grad(outer))(ms.tensor(3.0)):item(), 1.0)
  local wrong = nn.Cell()
  function wrong:construct(x) return x end
  function wrong:bprop() return nil end
  t.fails({ "bprop", "input 1 is nil" }, ms.grad(wrong), ms.tensor { 1.0 })
end)

t.test("recurrent layers have gradients of all weights, inputs and states", function()
  ms.set_seed(4)
  for _, name in ipairs { "LSTM", "GRU", "RNN" } do
    local net, x = nn[name](2, 3, { num_layers = 2 }), numbers({ 4, 2, 2 })
    local function f() return ops.sum(net(x) * 0.5) end
    local params = net:trainable_params()
    local grads = ms.grad(f, nil, params)()
    for i, p in ipairs(params) do check(f, p, grads[i]) end
    local h = numbers({ 2, 2, 3 })
    local by_state = ms.grad(function(state)
      local y = net(x, name == "LSTM" and { state, state } or state)
      return ops.sum(y)
    end)(h)
    t.equal(by_state.shape, { 2, 2, 3 })
    assert(by_state:abs():max():item() > 0)
  end
end)

t.test("dropout passes gradients where it passed values", function()
  ms.set_seed(3)
  local dropout = nn.Dropout { p = 0.4 }:set_train()
  local x = ops.ones({ 200 })
  local kept
  local gradient = ms.grad(function(v)
    local y = dropout(v)
    kept = y
    return ops.sum(y)
  end)(x)
  t.near(gradient, kept, 1e-6)
end)

t.test("an optimizer's step after the gradient does not disturb it", function()
  local w = ms.Parameter(ms.tensor { 1.0, 2.0 }, "w")
  local optimizer = nn.SGD({ w }, 0.5)
  local gradient = ms.grad(function() return ops.sum(w * w) end, nil, { w })
  for _ = 1, 2 do optimizer(gradient()) end
  t.equal(w:tolist(), { 0.0, 0.0 })
end)

t.finish()
