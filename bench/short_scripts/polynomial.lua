-- A sine by a polynomial of the third degree: with slopes by hand, by ms.value_and_grad, and by an optimizer.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)

local STEPS = 1000
local x = ops.linspace(-math.pi, math.pi, 2000)
local y = ops.sin(x)

-- By hand.
local a, b, c, d = 0.1, 0.2, -0.1, 0.3
local loss
for _ = 1, STEPS do
  local found = a + b * x + c * x ^ 2 + d * x ^ 3
  local far = found - y
  loss = (far ^ 2):sum():item()
  local slope = 2 * far
  a = a - 1e-6 * slope:sum():item()
  b = b - 1e-6 * (slope * x):sum():item()
  c = c - 1e-6 * (slope * x ^ 2):sum():item()
  d = d - 1e-6 * (slope * x ^ 3):sum():item()
end
print(("by hand: %.4f"):format(loss))

-- By the derivative of the loss.
local function loss_of(w) return ((w[0] + w[1] * x + w[2] * x ^ 2 + w[3] * x ^ 3 - y) ^ 2):sum() end
local slopes = ms.value_and_grad(loss_of)
local w = ms.tensor { 0.1, 0.2, -0.1, 0.3 }
for _ = 1, STEPS do
  local value, slope = slopes(w)
  w, loss = w - 1e-6 * slope, value
end
print(("by its derivative: %.4f"):format(loss:item()))

-- By a layer and an optimizer.
local powers = ops.stack({ x, x ^ 2, x ^ 3 }, -1)
local net = nn.SequentialCell(nn.Dense(3, 1), nn.Flatten(0))
local optimizer = nn.RMSProp(net:trainable_params(), 1e-3)
local step = ms.value_and_grad(function() return ((net(powers) - y) ^ 2):sum() end, nil, net:trainable_params())
for _ = 1, STEPS do
  local value, grads = step()
  optimizer(grads)
  loss = value
end
print(("by an optimizer: %.4f"):format(loss:item()))
