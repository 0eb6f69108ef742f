-- The pole on a cart, and the two ways of notebooks/zoo to learn to balance it.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local CartPole = dofile("notebooks/zoo/cartpole.lua").CartPole
local dqn, ppo = dofile "notebooks/zoo/dqn.lua", dofile "notebooks/zoo/ppo.lua"

local function count(net)
  local sum = 0
  for _, parameter in ipairs(net:trainable_params()) do sum = sum + parameter.size end
  return sum
end

-- Numbers in [0, 1) that are the same in every run.
local function generator(seed)
  return function()
    seed = (seed * 1103515245 + 12345) % 2147483648
    return seed / 2147483648
  end
end

t.test("the pole falls as the equations say", function()
  local game = CartPole(generator(1))
  local state = game:reset()
  for _, value in ipairs(state) do assert(math.abs(value) <= 0.05) end
  game[1], game[2], game[3], game[4] = 0.01, -0.02, 0.03, 0.04
  -- Numbers of the benchmark that the constants are from.
  local after, points, fallen, over = game:step(1)
  t.near(after, { 0.0096, 0.17468, 0.0308, -0.24311 }, 1e-4)
  t.equal({ points, fallen, over }, { 1.0, false, false })
  local left = CartPole(generator(1), 500)
  left:reset()
  local steps = 0
  repeat
    local _, _, down = left:step(0)
    steps = steps + 1
  until down
  assert(steps >= 8 and steps <= 12, steps)
  local short = CartPole(function() return 0.5 end, 3)
  short:reset()
  t.equal({ select(4, short:step(0)), select(4, short:step(1)), select(4, short:step(0)) }, { false, false, true })
end)

t.test("networks have the sizes of the usual examples", function()
  t.equal(count(dqn.q_network()), 17410)
  t.equal(count(ppo.actor_critic()), 9155)
end)

t.test("advantages are the discounted errors of the forecast", function()
  local points, going = ms.tensor { { 1.0 }, { 2.0 }, { 3.0 } }, ms.tensor { { 1.0 }, { 0.0 }, { 1.0 } }
  local worth = ms.tensor { { 0.5 }, { 0.25 }, { 1.0 }, { 4.0 } }
  local advantages, wanted = ppo.advantages(points, worth, going, 0.9, 0.5)
  local d3, d2, d1 = 3 + 0.9 * 4 - 1, 2 - 0.25, 1 + 0.9 * 0.25 - 0.5
  t.near(advantages, { { d1 + 0.45 * d2 }, { d2 }, { d3 } }, 1e-6)
  t.near(wanted, { { d1 + 0.45 * d2 + 0.5 }, { 2 }, { d3 + 1 } }, 1e-6)
end)

t.test("the policy's loss clips the ratio of probabilities", function()
  local function net() return ops.log(ms.tensor { { 0.9, 0.1 }, { 0.2, 0.8 } }), ms.tensor { 1.0, 2.0 } end
  local old = ops.log(ms.tensor { 0.5, 0.5 })
  local loss = ppo.loss(net, ms.zeros { 2, 4 }, ms.tensor({ 0, 0 }, ms.int64), old, ms.tensor { 1.0, -1.0 }, ms.tensor { 0.0, 2.0 }, 0.2)
  local open = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1) + 0.2 * math.log(0.2) + 0.8 * math.log(0.8)) / 2
  -- 0.9 / 0.5 is cut at 1.2; 0.2 / 0.5 of a bad action counts as 0.8.
  t.near(loss:item(), (0.5 - 1.2 + 0.8) / 2 - 0.01 * open, 1e-5)
end)

t.test("PPO learns to balance", function()
  ms.set_seed(1)
  local random, games = generator(7), {}
  for i = 1, 8 do games[i] = CartPole(random) end
  local net = ppo.actor_critic(4, 2, 32)
  local history = ppo.train(net, games, 12, { length = 32 })
  assert(history[12] and history[12] > 2 * history[1], ("%g points, then %g"):format(history[1], history[12] or -1))
end)

t.test("DQN learns from what it remembers", function()
  ms.set_seed(1)
  local agent = dqn.agent(dqn.q_network(4, 2, 32), dqn.q_network(4, 2, 32), { random = generator(3), batch = 32 })
  local games = agent:train(CartPole(generator(5)), 1200)
  assert(#games > 5)
  local first, last, n = 0, 0, #games // 3
  for i = 1, n do first, last = first + games[i] / n, last + games[#games - n + i] / n end
  assert(last > 1.3 * first, ("%g points, then %g"):format(first, last))
  -- The worth of a step that ended the game is its points.
  local q = dqn.agent(dqn.q_network(), dqn.q_network(), { rate = 1e-2, batch = 4, random = generator(2) })
  q:remember({ 0.1, 0.2, 0.3, 0.4 }, 1, 1.0, { 0.1, 0.2, 0.3, 0.5 }, true)
  for _ = 1, 60 do q:learn() end
  t.near(q.net(ms.tensor { { 0.1, 0.2, 0.3, 0.4 } })[{ 0, 1 }]:item(), 1.0, 0.05)
end)

t.finish()
