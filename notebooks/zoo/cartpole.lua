-- The pole on a cart (Barto, Sutton, Anderson 1983) with the constants of the usual benchmark: two actions, push left (0) and
-- right (1); a point for each step until the pole is 12 degrees aslant, the cart 2.4 from the middle, or 500 steps are over.
local CartPole = {}
CartPole.__index = CartPole

local gravity, cart, pole, half_length, push, step = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

--- A cart; random: a function that gives numbers in [0, 1), math.random by default.
local function new(random, limit)
  return setmetatable({ random = random or math.random, limit = limit or 500 }, CartPole)
end

--- Begins anew. Gives the state: place and speed of the cart, angle and turning speed of the pole.
function CartPole:reset()
  self.steps = 0
  for i = 1, 4 do self[i] = self.random() * 0.1 - 0.05 end
  return { self[1], self[2], self[3], self[4] }
end

--- One step. Gives the state, the points, whether the pole has fallen, and whether the time is over.
function CartPole:step(action)
  local x, speed, angle, turning = table.unpack(self)
  local force = action == 1 and push or -push
  local sine, cosine = math.sin(angle), math.cos(angle)
  local pushed = (force + pole * half_length * turning ^ 2 * sine) / (cart + pole)
  local turned = (gravity * sine - cosine * pushed) / (half_length * (4 / 3 - pole * cosine ^ 2 / (cart + pole)))
  local moved = pushed - pole * half_length * turned * cosine / (cart + pole)
  self[1], self[2], self[3], self[4] = x + step * speed, speed + step * moved, angle + step * turning, turning + step * turned
  self.steps = self.steps + 1
  local fallen = math.abs(self[1]) > 2.4 or math.abs(self[3]) > 12 * math.pi / 180
  return { self[1], self[2], self[3], self[4] }, 1.0, fallen, self.steps >= self.limit
end

return { CartPole = new }
