-- ms.Generator: random numbers of one's own, beside those of ms.set_seed. A generator is a seed and a count of draws; each call of an
-- operator that is given one gets a seed of its own, mixed of both.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local Generator = class.define(nil, "Generator", "",
  [[A source of random numbers beside that of ms.set_seed, for operators that draw some: ms.ops.rand({ 2 }, { generator = g }). The same
seed gives the same numbers.

  > g = ms.Generator():manual_seed(5)
  > a = ms.ops.rand({ 2 }, { generator = g })
  > ms.ops.all(ms.ops.equal(a, ms.ops.rand({ 2 }, { generator = g:manual_seed(5) }))):item() --> true]])

local names = 0
function Generator:setup()
  names = names + 1
  self._seed, self._count = ms.get_seed() + names, 0
end

--- Begins again with this seed, an integer from 0 on; gives the generator back.
---     > ms.Generator():manual_seed(5):initial_seed() --> 5
function Generator:manual_seed(seed)
  self._seed, self._count = check.not_negative("manual_seed", "seed", seed), 0
  return self
end

--- The seed that it began with.
---     > ms.Generator():manual_seed(7):initial_seed() --> 7
function Generator:initial_seed() return self._seed end

--- Begins again with a seed that the clock gives, and gives this seed.
---     > g = ms.Generator()
---     > g:seed() == g:initial_seed() --> true
function Generator:seed()
  self:manual_seed((ms.clock() ~ os.time()) & 0xffffffffffff)
  return self._seed
end

--- A tensor of the seed and the number of draws, for set_state.
---     > ms.Generator():manual_seed(7):get_state():tolist()[1] --> 7
function Generator:get_state() return ms.tensor({ self._seed, self._count }, ms.int64) end

--- Goes on where get_state gave the state. Gives the generator back.
---     > g = ms.Generator():manual_seed(7)
---     > g:set_state(g:get_state()):initial_seed() --> 7
function Generator:set_state(state)
  if not ms.is_tensor(state) or state.size ~= 2 or state:is_floating_point() then
    fail("set_state", "state must be what get_state gave, got " .. describe(state))
  end
  self._seed, self._count = state[0]:item(), state[1]:item()
  return self
end

-- The seed of one call: SplitMix64 of the seed and the number of the call, of which close values give distant ones.
function Generator:_draw()
  self._count = self._count + 1
  local z = self._seed * 0x632be59bd9b4e019 + self._count * 0x9e3779b97f4a7c15
  z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
  z = (z ~ (z >> 27)) * 0x94d049bb133111eb
  return (z ~ (z >> 31)) & 0x7fffffffffffffff
end

return { Generator = Generator }
