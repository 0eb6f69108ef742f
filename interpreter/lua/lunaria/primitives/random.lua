-- Primitives of MindSpore that draw random numbers. seed and seed2: 0 and 0 draw from the generator of ms.set_seed, others from one of
-- their own, the same numbers in each call. Rows for nn/primitives.lua, as in array.lua.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local common = require "lunaria.primitives.common"

local ops = ms.ops
local number, numbers = common.number, common.numbers
local P = {}

local function seed_of(a)
  if a.seed == 0 and (a.seed2 or 0) == 0 then return nil end
  return math.abs(a.seed * 1000003 + (a.seed2 or 0))
end

local seeds = "seed=0, seed2=0"
P.StandardNormal = { seeds, "shape", function(a, shape) return ops.standard_normal(numbers(shape), seed_of(a)) end }
P.StandardLaplace = { seeds, "shape", function(a, shape) return ops.standard_laplace(numbers(shape), seed_of(a)) end }
P.UniformReal = { seeds, "shape", function(a, shape) return ops.rand(numbers(shape), nil, seed_of(a)) end }
P.UniformInt = { seeds, "shape, minval, maxval", function(a, shape, from, to)
  return ops.randint(number(from), number(to), numbers(shape), seed_of(a), ms.int32)
end }
P.Gamma = { seeds, "shape, alpha, beta", function(a, shape, alpha, beta)
  local list = numbers(shape)
  return ops.gamma({}, ops.broadcast_to(alpha, list), ops.broadcast_to(beta, list), seed_of(a))
end }
P.RandomGamma = { seeds, "shape, alpha", function(a, shape, alpha) return ops.random_gamma(numbers(shape), alpha, seed_of(a)) end }
P.Poisson = { seeds, "shape, mean", function(a, shape, mean)
  return ops.cast(ops.poisson({}, ops.broadcast_to(mean, numbers(shape)), seed_of(a)), ms.int32)
end }
P.RandomPoisson = { "seed=0, seed2=0, dtype=nil", "shape, rate", function(a, shape, rate)
  return ops.random_poisson(numbers(shape), rate, seed_of(a), a.dtype or ms.int64)
end }
P.Bernoulli = { "seed=-1, offset=0", "x, p", function(a, x, p)
  local seed
  if a.seed >= 0 then seed = a.seed + a.offset end
  return ops.bernoulli(x, p, seed)
end }
P.RandomShuffle = { seeds, "x", function(a, x) return ops.shuffle(x, seed_of(a)) end }
P.RandomChoiceWithMask = { "count=256, seed=0, seed2=0", "x", function(a, x) return ops.choice_with_mask(x, a.count, seed_of(a)) end }
P.RandomCategorical = { "dtype=nil", "logits, num_sample, seed", function(a, logits, count, seed)
  return ops.random_categorical(logits, number(count), number(seed or 0), a.dtype or ms.int64)
end }
P.Multinomial = { "seed=0, seed2=0, dtype=nil", "x, num_samples", function(a, x, count)
  return ops.cast(ops.multinomial(x, number(count), true, seed_of(a)), a.dtype or ms.int32)
end }
P.MultinomialWithReplacement = { "numsamples, replacement=false", "x, seed, offset", function(a, x, seed, offset)
  return ops.multinomial(x, a.numsamples, a.replacement, number(seed) + number(offset))
end }
P.NonDeterministicInts = { "dtype=nil", "shape", function(a, shape)
  local dtype = a.dtype or ms.int64
  return ops.randint(-(1 << 31), 1 << 31, numbers(shape), nil, dtype)
end }
-- A normal distribution between two bounds: uniform numbers between their probabilities, put through the inverse.
local function truncated(shape, mean, deviation, from, to, seed)
  local root = math.sqrt(2)
  local function probability(x) return (ops.erf((x - mean) / deviation / root) + 1) / 2 end
  local low, high = probability(from), probability(to)
  local drawn = low + ops.rand(shape, nil, seed) * (high - low)
  return ops.clamp(mean + deviation * root * ops.erfinv(ops.clamp(drawn * 2 - 1, -1 + 2.0 ^ -24, 1 - 2.0 ^ -24)), from, to)
end
P.TruncatedNormal = { "dtype=nil, seed=0, seed2=0", "shape", function(a, shape)
  local zero = ms.tensor(0.0)
  return ops.cast(truncated(numbers(shape), zero, zero + 1, zero - 2, zero + 2, seed_of(a)), a.dtype or ms.float32)
end }
P.ParameterizedTruncatedNormal = { seeds, "shape, mean, stdevs, min, max", function(a, shape, mean, deviation, from, to)
  local list, each = numbers(shape), { -1 }
  for axis = 2, #list do each[axis] = 1 end
  local function column(x) return ops.reshape(x, each) end
  return truncated(list, column(mean), column(deviation), column(from), column(to), seed_of(a))
end }
P.LogNormalReverse = { "mean=1.0, std=2.0", "x", function(a, x)
  return ops.cast(ops.exp(ops.normal(x.shape, a.mean, a.std)), x.dtype)
end }
P.Cauchy = { "size, median=0.0, sigma=1.0", "", function(a) return ops.zeros(a.size):cauchy(a.median, a.sigma) end }
P.Randperm = { "max_length=1, pad=-1, dtype=nil", "n", function(a, n)
  n = number(n)
  if n > a.max_length then
    arguments.fail("Randperm", ("n is %d, and max_length is %d"):format(n, a.max_length))
  end
  local drawn = ops.randperm(n, { dtype = a.dtype or ms.int32 })
  if n == a.max_length then return drawn end
  return ops.concat { drawn, ops.full({ a.max_length - n }, a.pad, a.dtype or ms.int32) }
end }
P.RandpermV2 = { "seed=0, offset=0, dtype=nil", "n", function(a, n)
  return ops.randperm(number(n), a.seed ~= 0 and a.seed or nil, a.offset, a.dtype or ms.int64)
end }
-- Classes to compare the true ones with, the same for a whole batch: drawn evenly, or the more often the smaller the number. The
-- expected counts are those of a class in as many draws as it took.
local function sampler(probability, draw)
  return function(a, classes)
    local seed, found, seen, draws = seed_of(a), {}, {}, 0
    local banned, per_row = {}, classes.shape[#classes.shape]
    if per_row ~= a.num_true then
      arguments.fail("candidates", ("num_true is %s, and there are %s true classes in a row"):format(a.num_true, per_row))
    end
    if a.remove_accidental_hits then
      for _, row in ipairs(ops.reshape(classes, { -1 }):tolist()) do banned[row] = true end
    end
    if a.unique and a.num_sampled > a.range_max then
      arguments.fail("candidates", ("num_sampled is %d, and there are %d classes"):format(a.num_sampled, a.range_max))
    end
    while #found < a.num_sampled do
      local block = ops.rand({ 4 * a.num_sampled }, nil, seed and seed + draws):tolist()
      for _, u in ipairs(block) do
        draws = draws + 1
        local class = math.min(draw(u, a.range_max), a.range_max - 1)
        if not (a.unique and seen[class]) and not banned[class] then
          seen[class], found[#found + 1] = true, class
          if #found == a.num_sampled then break end
        end
      end
    end
    local function expected(x)
      local p = probability(ops.cast(x, ms.float32), a.range_max)
      if not a.unique then return p * a.num_sampled end
      return 1 - ops.pow(1 - p, draws)
    end
    local sampled = ms.tensor(found, classes.dtype)
    return sampled, expected(classes), expected(sampled)
  end
end
P.UniformCandidateSampler = { "num_true, num_sampled, unique, range_max, seed=0, remove_accidental_hits=false", "true_classes",
  sampler(function(x, range) return ops.full_like(x, 1 / range) end, function(u, range) return math.floor(u * range) end) }
P.LogUniformCandidateSampler = { "num_true=1, num_sampled=5, unique=true, range_max=5, seed=0", "true_classes",
  sampler(function(x, range) return ops.log((x + 2) / (x + 1)) / math.log(range + 1) end,
    function(u, range) return math.floor(math.exp(u * math.log(range + 1))) - 1 end) }

return P
