-- Numbers that are drawn by position: a stream for each (seed, purpose, round, client), so that what one client draws depends neither on
-- what others draw nor on the order in which they are asked, and the session's random numbers are left alone.
local ms = require "lunaria"

local ops = ms.ops
local chances = {}
local Stream = {}
Stream.__index = Stream

-- The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection of 64 bits in which each bit depends on all.
local function mixed(x)
  x = (x ~ (x >> 30)) * 0xbf58476d1ce4e5b9
  x = (x ~ (x >> 27)) * 0x94d049bb133111eb
  return x ~ (x >> 31)
end

-- FNV-1a of a text.
local function of_text(text)
  local h = 0xcbf29ce484222325
  for i = 1, #text do h = (h ~ text:byte(i)) * 0x100000001b3 end
  return h
end

--- A seed from 0 below 2^62 for a purpose (a text), a round and a client (integers or texts, by default 0).
function chances.key(seed, purpose, round, client)
  local h = mixed(seed + 0x9e3779b97f4a7c15)
  for _, part in ipairs { purpose, round or 0, client or 0 } do
    h = mixed((h ~ (type(part) == "string" and of_text(part) or part)) + 0x9e3779b97f4a7c15)
  end
  return h >> 2
end

--- The stream of a purpose, a round and a client.
function chances.of(seed, purpose, round, client)
  return setmetatable({ _key = chances.key(seed, purpose, round, client), _at = 0, _have = 0 }, Stream)
end

--- What f gives, where the session's random numbers are those of a seed; afterwards they go on as they were.
function chances.with_seed(seed, f)
  local before = ms.get_rng_state()
  ms.set_seed(seed)
  local results = table.pack(pcall(f))
  ms.set_rng_state(before)
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

local function generator(self)
  self._generator = self._generator or ms.Generator():manual_seed(self._key)
  return self._generator
end

--- A number from 0 on and below 1.
function Stream:uniform()
  if self._at == self._have then
    -- Few at first: most streams draw a number or two.
    self._have = math.min(math.max(8, 2 * self._have), 4096)
    self._values = ops.rand({ self._have }, { generator = generator(self), dtype = ms.float64 }):tolist()
    self._at = 0
  end
  self._at = self._at + 1
  return self._values[self._at]
end

--- True with the probability p.
function Stream:chance(p) return self:uniform() < p end

--- An integer from 0 below n.
function Stream:below(n) return math.min(n - 1, math.floor(self:uniform() * n)) end

--- A number of the standard normal distribution.
function Stream:normal()
  local radius = math.sqrt(-2 * math.log(1 - self:uniform()))
  return radius * math.cos(2 * math.pi * self:uniform())
end

--- A number of the gamma distribution of this shape and the scale 1 (Marsaglia and Tsang 2000), as its logarithm: for small shapes the
--- number itself is often too small for a double.
function Stream:log_gamma(shape)
  if shape < 1 then return self:log_gamma(shape + 1) + math.log(1 - self:uniform()) / shape end
  local d = shape - 1 / 3
  local c = 1 / math.sqrt(9 * d)
  while true do
    local x = self:normal()
    local v = (1 + c * x) ^ 3
    if v > 0 and math.log(1 - self:uniform()) < 0.5 * x * x + d - d * v + d * math.log(v) then return math.log(d * v) end
  end
end

--- Shares that sum to 1, of the symmetric Dirichlet distribution of n parts.
function Stream:dirichlet(alpha, n)
  local logs, largest, sum = {}, -math.huge, 0.0
  for i = 1, n do
    logs[i] = self:log_gamma(alpha)
    largest = math.max(largest, logs[i])
  end
  for i = 1, n do
    logs[i] = math.exp(logs[i] - largest)
    sum = sum + logs[i]
  end
  for i = 1, n do logs[i] = logs[i] / sum end
  return logs
end

--- A list in random order, as a new list (Fisher and Yates).
function Stream:shuffled(list)
  local out = table.move(list, 1, #list, 1, {})
  for i = #out, 2, -1 do
    local k = self:below(i) + 1
    out[i], out[k] = out[k], out[i]
  end
  return out
end

--- The integers from 0 below n in random order, an int64 tensor. It does not go on from what the stream has drawn before, nor move it.
function Stream:permutation(n) return ops.randperm(n, { generator = ms.Generator():manual_seed(mixed(self._key) >> 2) }) end

--- count different integers from 1 to n, ascending (Floyd's method: as many draws as integers).
function Stream:sample(n, count)
  local chosen, list = {}, {}
  for i = n - count + 1, n do
    local k = self:below(i) + 1
    if chosen[k] then k = i end
    chosen[k] = true
    list[#list + 1] = k
  end
  table.sort(list)
  return list
end

--- A float32 tensor of standard normal numbers. It does not go on from what the stream has drawn before, nor move it.
function Stream:normal_tensor(shape)
  return ops.randn(shape, { generator = ms.Generator():manual_seed(mixed(self._key) >> 2), dtype = ms.float32 })
end

return chances
