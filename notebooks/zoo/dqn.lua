-- Deep Q-learning (Mnih et al. 2015): a network says what each action is worth; it learns from steps drawn out of a memory, and
-- what the next state is worth is said by a slow copy of it.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local M = {}

--- state (batch, inputs) -> the worth of each action (batch, actions)
function M.q_network(inputs, actions, width)
  width = width or 128
  return nn.SequentialCell(nn.Dense(inputs or 4, width), nn.ReLU(), nn.Dense(width, width), nn.ReLU(), nn.Dense(width, actions or 2))
end

local Agent = {}
Agent.__index = Agent

--- An agent. options: rate, discount, memory (steps), batch, copy (how much of the network the slow copy takes over per step),
--- random (numbers in [0, 1)).
function M.agent(net, slow, options)
  local agent = { net = net, slow = slow, rate = 1e-3, discount = 0.99, memory = 10000, batch = 64, copy = 0.01, random = math.random,
    count = 0 }
  for key, value in pairs(options or {}) do agent[key] = value end
  -- A row for each step: the state before and after, the action, the points, and whether the game went on.
  agent.inputs = net[1].in_channels
  agent.seen = ops.zeros { agent.memory, 2 * agent.inputs + 3 }
  agent.optimizer = nn.Adam(net:trainable_params(), agent.rate)
  agent.gradients = ms.value_and_grad(function(states, actions, wanted)
    local worth = ops.squeeze(ops.gather_elements(net(states), 1, actions), 1)
    return ops.mean(ops.smooth_l1_loss(worth, wanted))
  end, { weights = net:trainable_params() })
  setmetatable(agent, Agent):follow(1.0)
  return agent
end

--- Moves the slow copy towards the network.
function Agent:follow(share)
  local from = self.net:trainable_params()
  for i, p in ipairs(self.slow:trainable_params()) do p:assign(p * (1 - share) + from[i] * share) end
end

--- The action that is worth most, or with the probability `chance` any.
function Agent:act(state, chance)
  if self.random() < chance then return self.random() < 0.5 and 0 or 1 end
  return ops.argmax(self.net(ms.tensor { state }), 1)[0]:item()
end

function Agent:remember(state, action, points, after, fallen)
  local row = { table.unpack(state) }
  table.move(after, 1, #after, #row + 1, row)
  table.move({ action + 0.0, points, fallen and 0.0 or 1.0 }, 1, 3, #row + 1, row)
  self.seen[self.count % self.memory] = ms.tensor(row)
  self.count = self.count + 1
end

--- One step of training on rows of the memory; gives the loss.
function Agent:learn()
  local n = self.inputs
  local there = math.min(self.count, self.memory)
  local rows = ops.gather(self.seen, ops.floor(ops.rand { self.batch } * there):astype(ms.int64), 0)
  local before, after, rest = ops.split(rows, { n, n, 3 }, 1)
  local action, points, going = ops.unbind(rest, 1)
  local wanted = points + self.discount * ops.max(self.slow(after), 1) * going
  local loss, grads = self.gradients(before, ops.expand_dims(action:astype(ms.int64), 1), ops.stop_gradient(wanted))
  self.optimizer(grads)
  self:follow(self.copy)
  return loss
end

--- Plays for so many steps and learns after each. Gives the points of each finished game.
function Agent:train(game, steps)
  local games, points, state = {}, 0, game:reset()
  for i = 1, steps do
    local action = self:act(state, 0.05 + 0.95 * math.exp(-4 * i / steps))
    local after, gained, fallen, over = game:step(action)
    self:remember(state, action, gained, after, fallen)
    points, state = points + gained, after
    if self.count >= self.batch then self:learn() end
    if fallen or over then games[#games + 1], points, state = points, 0, game:reset() end
  end
  return games
end

return M
