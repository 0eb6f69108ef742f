-- Noise of released answers, without a seed unless one is given; options of functions that release them, and what they cost.
--
-- Noise and answers are rounded to a grid much finer than the noise: the last bits of floating-point sums would tell which answers are
-- possible at all (Mironov 2012).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local armour = require "lunaria.armour.common"
local draws = require "lunaria.common.draws"

local ops, f64 = ms.ops, ms.float64
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local released = {}

local function is_accountant(value)
  return type(value) == "table" and type(value.step) == "function" and type(value.epsilon) == "function", "an accountant"
end

--- Options that all have, for arguments.options.
function released.options(more)
  local known = { epsilon = "number", delta = "number", seed = "number", accountant = is_accountant }
  for name, kind in pairs(more or {}) do known[name] = kind end
  return known
end

--- A function that gives `count` uniform numbers in (0, 1): from a seed, or without one from the operating system's cryptographic
--- generator.
function released.uniform(where, seed)
  if seed == nil then
    -- The operating system's numbers come to the CPU; other tensors are where the session makes them.
    local home = ms.tensor({ 0.0 }, f64).device
    return function(count) return draws.secure_uniform(count):to(home) end
  end
  local generator = armour.generator(seed, where)
  -- The least number above 0 that is told apart from it keeps logarithms finite.
  return function(count) return ops.maximum(generator:uniform({ count }, 0.0, 1.0, f64), 2.0 ^ -60) end
end

--- Laplace noise of scale 1: the logarithm of a uniform number with a random sign.
function released.laplace(uniform, count)
  local sign = ops.sign(uniform(count) - 0.5)
  return ops.where(ops.equal(sign, 0.0), 1.0, sign) * -ops.log(uniform(count))
end

--- Normal noise, which is the sum of four over 2 so that no single grid of floating-point numbers shows in it.
function released.normal(uniform, count)
  local total
  for _ = 1, 4 do
    local z = ops.sqrt(-2.0 * ops.log(uniform(count))) * ops.cos(2 * math.pi * uniform(count))
    total = total and total + z or z
  end
  return total * 0.5
end

--- Values (a float64 vector) with noise for an L1 and an L2 sensitivity to one row, and an entry in the accountant's history. With delta
--- the noise is normal (Balle and Wang 2018), else Laplace's.
function released.noisy(where, values, sensitivity_1, sensitivity_2, o)
  local uniform = o.uniform or released.uniform(where, o.seed)
  local scale, noise, event
  if o.delta ~= nil and o.delta > 0 then
    local sigma = require("lunaria.armour.privacy.accountants").analytic_gaussian(o.epsilon, o.delta)
    scale, event = sensitivity_2 * sigma, { noise_multiplier = sigma }
    noise = released.normal(uniform, values.size)
  else
    scale, event = sensitivity_1 / o.epsilon, { mechanism = "pure", epsilon = o.epsilon }
    noise = released.laplace(uniform, values.size)
  end
  released.charge(o.accountant, event)
  local grid = o.grid
  if not grid then
    -- Rounding moves each of the values by at most half of the grid, and neighbours a millionth further apart.
    grid = 2.0 ^ math.floor(math.log(scale * math.min(1.0, o.epsilon / values.size), 2) - 20)
    scale = scale * (1 + 2.0 ^ -20)
  end
  return (ops.round(values / grid) + ops.round(noise * (scale / grid))) * grid
end

--- Enters a step into the history of an accountant, if there is one.
function released.charge(accountant, event)
  if accountant ~= nil then accountant:step(event) end
end

--- The budget among options: epsilon above 0, and delta in [0, 1).
function released.budget(where, options, known, example)
  local o = {}
  for name, value in pairs(arguments.options(where, options, known, example)) do o[name] = value end
  if o.epsilon == nil then fail(where, "needs epsilon, what the answer may cost, such as " .. example) end
  o.epsilon = check.number_positive(where, "epsilon", o.epsilon) + 0.0
  if o.delta ~= nil and not (o.delta >= 0 and o.delta < 1) then
    fail(where, ("delta must be from 0 up to and below 1, got %s"):format(tostring(o.delta)))
  end
  return o
end

--- Values of rows as float64: a tensor (n,), or (n, columns) where `columns` allows it, without nan.
function released.values(where, x, columns)
  if not ms.is_tensor(x) or x.ndim ~= 1 and not (columns and x.ndim == 2) then
    fail(where, ("x must be a tensor (n,)%s, got %s"):format(columns and " or (n, columns)" or "", describe(x)))
  end
  x = x:astype(f64)
  if x.size > 0 and ops.any(ops.isnan(x)):item() then fail(where, "x holds nan, which has no place between bounds") end
  return x
end

--- Two numbers { lo, hi } that say between which values rows lie.
function released.bounds(where, bounds)
  if type(bounds) ~= "table" or getmetatable(bounds) ~= nil or #bounds ~= 2 or not math.type(bounds[1]) or not math.type(bounds[2]) then
    fail(where, "bounds must be { lo, hi }, numbers that do not depend on the data, got " .. describe(bounds))
  end
  local lo, hi = bounds[1] + 0.0, bounds[2] + 0.0
  if not (lo < hi and lo > -math.huge and hi < math.huge) then
    fail(where, ("the first bound must be less than the second, got %g and %g"):format(lo, hi))
  end
  return lo, hi
end

return released
