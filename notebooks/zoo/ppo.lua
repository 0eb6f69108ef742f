-- Proximal policy optimisation (Schulman et al. 2017): an actor gives the probabilities of actions, a critic what a state is
-- worth. Steps of several games are played, then learnt from several times, as long as the probabilities change little.
local ms = require "lunaria"
local nn, ops = ms.nn, ms.ops

local M = {}

local function head(inputs, outputs, width, scale)
  local function dense(from, to, gain)
    return nn.Dense(from, to, { weight_init = ms.common.initializer.Orthogonal(gain), bias_init = "zeros" })
  end
  return nn.SequentialCell(dense(inputs, width, 2 ^ 0.5), nn.Tanh(), dense(width, width, 2 ^ 0.5), nn.Tanh(), dense(width, outputs, scale))
end

local ActorCritic = nn.Cell:extend("ActorCritic")

function ActorCritic:init(inputs, actions, width)
  self.critic = head(inputs, 1, width, 1.0)
  self.actor = head(inputs, actions, width, 0.01)
end

-- states (batch, inputs) -> logarithms of the actions' probabilities (batch, actions), worth (batch)
function ActorCritic:construct(states)
  return ops.log_softmax(self.actor(states), -1), ops.squeeze(self.critic(states), -1)
end

function M.actor_critic(inputs, actions, width) return ActorCritic(inputs or 4, actions or 2, width or 64) end

--- The advantages of steps by games (steps, games) and what the critic should have said (Schulman et al. 2016): the errors of its
--- forecast, later ones discounted. worth has a row more than points; going is 0 where a game ended with the step.
function M.advantages(points, worth, going, discount, decay)
  local rows, after = {}, nil
  for t = points:sizes(0) - 1, 0, -1 do
    local wrong = points[t] + discount * worth[t + 1] * going[t] - worth[t]
    after = after and wrong + discount * decay * going[t] * after or wrong
    rows[t + 1] = after
  end
  local advantages = ops.stack(rows, 0)
  return advantages, advantages + worth["0:-1"]
end

--- The loss: the ratio of new to old probability times the advantage, no further than 1 +- clip; the critic's error; and less for
--- actions that are left open.
function M.loss(net, states, actions, old, advantages, wanted, clip)
  local logs, worth = net(states)
  local ratio = ops.exp(ops.squeeze(ops.gather_elements(logs, 1, ops.expand_dims(actions, 1)), 1) - old)
  local gain = ops.minimum(ratio * advantages, ops.clamp(ratio, 1 - clip, 1 + clip) * advantages)
  local open = -ops.sum(ops.exp(logs) * logs, -1)
  return ops.mean(0.5 * (worth - wanted) ^ 2 - gain - 0.01 * open)
end

--- Plays `length` steps in each of the games and learns from them, `rounds` times. Gives the mean points of the games that
--- ended in each round. The rate falls to 0. options: length, epochs, parts, rate, clip, discount, decay; watch(round,
--- points), called after each round.
function M.train(net, games, rounds, options)
  local o = { length = 128, epochs = 10, parts = 4, rate = 1e-3, clip = 0.2, discount = 0.98, decay = 0.8 }
  for key, value in pairs(options or {}) do o[key] = value end
  local params = net:trainable_params()
  local steps = rounds * o.epochs * o.parts
  local optimizer = nn.Adam(params, function(step) return o.rate * (1 - step / steps) end, { eps = 1e-5 })
  local gradients = ms.value_and_grad(function(...) return M.loss(net, ...) end, { weights = params })
  local states, scores, history = {}, {}, {}
  for g, game in ipairs(games) do states[g], scores[g] = game:reset(), 0 end
  for round = 1, rounds do
    local seen, ended, sum = { s = {}, a = {}, l = {}, v = {}, r = {}, g = {} }, 0, 0
    for t = 1, o.length do
      local now = ms.tensor(states)
      local logs, worth = net(now)
      local actions = ops.random_categorical(logs, 1):astype(ms.int64)
      seen.s[t], seen.a[t], seen.v[t] = now, ops.squeeze(actions, 1), worth
      seen.l[t] = ops.squeeze(ops.gather_elements(logs, 1, actions), 1)
      local points, going = {}, {}
      for g, game in ipairs(games) do
        local after, gained, fallen, over = game:step(seen.a[t][g - 1]:item())
        points[g], going[g], scores[g] = gained, 1.0, scores[g] + gained
        if fallen or over then
          after, going[g], ended, sum, scores[g] = game:reset(), 0.0, ended + 1, sum + scores[g], 0
        end
        states[g] = after
      end
      seen.r[t], seen.g[t] = ms.tensor(points), ms.tensor(going)
    end
    local _, last = net(ms.tensor(states))
    seen.v[o.length + 1] = last
    for key, list in pairs(seen) do seen[key] = ops.stop_gradient(ops.stack(list, 0)) end
    local advantages, wanted = M.advantages(seen.r, seen.v, seen.g, o.discount, o.decay)
    local count = o.length * #games
    local all = { seen.s:reshape { count, -1 } }
    for i, x in ipairs { seen.a, seen.l, advantages, wanted } do all[i + 1] = x:reshape { -1 } end
    all[4] = (all[4] - all[4]:mean()) / (all[4]:std() + 1e-8)
    for _ = 1, o.epochs do
      local order = ops.randperm(count):reshape { o.parts, -1 }
      for part = 0, o.parts - 1 do
        local chosen = {}
        for i, x in ipairs(all) do chosen[i] = ops.gather(x, order[part], 0) end
        local _, grads = gradients(chosen[1], chosen[2], chosen[3], chosen[4], chosen[5], o.clip)
        optimizer { ops.clip_by_global_norm(grads, 0.5) }
      end
    end
    history[round] = ended > 0 and sum / ended or false
    if o.watch then o.watch(round, history[round]) end
  end
  return history
end

return M
