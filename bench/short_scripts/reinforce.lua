-- REINFORCE on a pole on a cart: every episode has another length.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops
if arg[1] == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
ms.set_seed(1)
math.randomseed(1)

local net = nn.SequentialCell(nn.Dense(4, 32), nn.Tanh(), nn.Dense(32, 2))
local optimizer = nn.Adam(net:trainable_params(), 1e-2)

local function moved(s, force)
  local cos, sin = math.cos(s[3]), math.sin(s[3])
  local temp = (force + 0.05 * s[4] ^ 2 * sin) / 1.1
  local turning = (9.8 * sin - cos * temp) / (0.5 * (4 / 3 - 0.1 * cos ^ 2 / 1.1))
  local pushing = temp - 0.05 * turning * cos / 1.1
  return { s[1] + 0.02 * s[2], s[2] + 0.02 * pushing, s[3] + 0.02 * s[4], s[4] + 0.02 * turning }
end

local function episode()
  local s, states, actions = { 0, 0, math.random() * 0.1 - 0.05, 0 }, {}, {}
  while #states < 200 and math.abs(s[1]) < 2.4 and math.abs(s[3]) < 0.21 do
    local chances = ops.softmax(net(ms.tensor({ s }, ms.float32)), -1)
    local action = math.random() < chances[0][0]:item() and 0 or 1
    states[#states + 1], actions[#actions + 1] = s, action
    s = moved(s, action == 1 and 10 or -10)
  end
  return states, actions
end

local function loss_of(states, actions, returns)
  local logits = ops.log_softmax(net(states), -1)
  return -ops.mean(ops.sum(logits * ops.one_hot(actions, 2), -1) * returns)
end
local step = ms.value_and_grad(loss_of, nil, net:trainable_params())

local total = 0
for _ = 1, 60 do
  local states, actions = episode()
  local returns, r = {}, 0
  for k = #states, 1, -1 do
    r = 1 + 0.98 * r
    returns[k] = r
  end
  local given = ms.tensor(returns, ms.float32)
  given = (given - given:mean()) / (given:std() + 1e-6)
  local _, grads = step(ms.tensor(states, ms.float32), ms.tensor(actions, ms.int32), given)
  optimizer(grads)
  total = total + #states
end
print(total .. " steps of the pole")
