-- Bijectors: functions that can be turned round, with the logarithms of their slopes, and the distribution of what they give.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local base = require "lunaria.probability.distribution"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local Bijector = cells.Cell:extend("Bijector")
Bijector._parameters = "name=nil"
Bijector._doc = [[What bijectors are: forward(x), inverse(y) and the logarithms of the absolute slopes of both, forward_log_jacobian(x) and
inverse_log_jacobian(y). bijector(distribution) is the distribution of bijector:forward(x), a TransformedDistribution;
bijector("forward", x) is bijector:forward(x). Yours extend it with these four methods, and with is_increasing = false where they
fall.

  > Twice = ms.probability.bijector.Bijector:extend("Twice")
  > function Twice:init() end
  > function Twice:forward(x) return 2 * x end
  > Twice()("forward", 3.0) --> 6.0]]
Bijector.is_increasing, Bijector.is_linear = true, false

local methods = { forward = true, inverse = true, forward_log_jacobian = true, inverse_log_jacobian = true }

-- luacheck: push ignore 212
--- What the bijector makes of x.
function Bijector:forward(x) fail(getmetatable(self)._name, "has no forward method") end
--- The x of which the bijector makes y.
function Bijector:inverse(y) fail(getmetatable(self)._name, "has no inverse method") end
--- The logarithm of the absolute slope at x.
function Bijector:forward_log_jacobian(x) fail(getmetatable(self)._name, "has no forward_log_jacobian method") end
-- luacheck: pop
--- The logarithm of the absolute slope of inverse at y.
function Bijector:inverse_log_jacobian(y) return -self:forward_log_jacobian(self:inverse(y)) end

function Bijector:construct(what, ...)
  if class.is_a(what, base.Distribution) then
    return require("lunaria.probability.bijector").TransformedDistribution(self, what)
  elseif not methods[what] then
    fail(getmetatable(self)._name, "is called with a distribution or the name of a method, as b(\"forward\", x), got " .. describe(what))
  end
  return self[what](self, ...)
end

local function value_of(where, value)
  if math.type(value) then return ms.tensor(value + 0.0) end
  if not ms.is_tensor(value) then fail(where, "a tensor or a number is expected, got " .. describe(value)) end
  return value
end

-- parts: the formulas over a tensor; image: the values that forward can give.
local function define(name, signature, doc, setup, parts)
  local made = class.define(Bijector, name, signature .. (signature == "" and "" or ", ") .. "name=nil", doc)
  function made:setup(a)
    self.name = a.name or name
    setup(self, a)
  end
  for _, method in ipairs { "forward", "inverse", "forward_log_jacobian", "inverse_log_jacobian" } do
    if parts[method] then made[method] = function(self, value) return parts[method](self, value_of(name .. ":" .. method, value)) end end
  end
  made._image, made.is_linear = parts.image, parts.is_linear or false
  return made
end

local function none() end

-- A number stays one: it takes on the dtype of what it is used with.
local function parameter(where, name, value, positive)
  if math.type(value) then
    if positive and not (value > 0) then fail(where, name .. " must be positive") end
    return value
  end
  if not ms.is_tensor(value) then fail(where, ("%s must be a tensor or a number, got %s"):format(name, describe(value))) end
  if positive and not ops.all(ops.greater(value, 0.0)):item() then fail(where, name .. " must be positive") end
  return value
end

local function as(value, x) return math.type(value) and ms.tensor(value + 0.0, x.dtype) or value end

local bijectors = { Bijector = Bijector }

bijectors.Exp = define("Exp", "", [[The exponential function.

  > ("%.4f"):format(ms.probability.bijector.Exp():inverse(1.0):item())
  0.0000]], none, {
  forward = function(_, x) return ops.exp(x) end, inverse = function(_, y) return ops.log(y) end,
  forward_log_jacobian = function(_, x) return x end, inverse_log_jacobian = function(_, y) return -ops.log(y) end,
  image = function(_, y) return ops.greater(y, 0.0), 1.0 end,
})

bijectors.ScalarAffine = define("ScalarAffine", "scale=1.0, shift=0.0", [[scale * x + shift. scale: not 0. shift: what is added.

  > ("%.4f"):format(ms.probability.bijector.ScalarAffine(2.0, 1.0):forward(3.0):item())
  7.0000]], function(self, a)
  self._scale, self._shift = parameter("ScalarAffine", "scale", a.scale), parameter("ScalarAffine", "shift", a.shift)
  local scale = as(self._scale, { dtype = ms.float64 })
  if ops.any(ops.equal(scale, 0.0)):item() then fail("ScalarAffine", "scale must not be 0") end
  self.is_increasing = ops.all(ops.greater(scale, 0.0)):item()
end, {
  is_linear = true,
  forward = function(self, x) return self._scale * x + self._shift end,
  inverse = function(self, y) return (y - self._shift) / self._scale end,
  forward_log_jacobian = function(self, x) return ops.log(ops.abs(as(self._scale, x))) + ops.zeros_like(x) end,
  inverse_log_jacobian = function(self, y) return -ops.log(ops.abs(as(self._scale, y))) + ops.zeros_like(y) end,
})

bijectors.Softplus = define("Softplus", "sharpness=1.0", [[log(1 + exp(sharpness * x)) / sharpness. sharpness: above 0.

  > ("%.4f"):format(ms.probability.bijector.Softplus():forward(0.0):item())
  0.6931]], function(self, a)
  self._sharpness = parameter("Softplus", "sharpness", a.sharpness, true)
end, {
  forward = function(self, x) return -ops.log_sigmoid(-self._sharpness * x) / self._sharpness end,
  -- log(exp(k y) - 1) = k y + log(1 - exp(-k y))
  inverse = function(self, y) return y + ops.log(-ops.expm1(-self._sharpness * y)) / self._sharpness end,
  forward_log_jacobian = function(self, x) return ops.log_sigmoid(self._sharpness * x) end,
  inverse_log_jacobian = function(self, y) return -ops.log(-ops.expm1(-self._sharpness * y)) end,
  image = function(_, y) return ops.greater(y, 0.0), 1.0 end,
})

bijectors.PowerTransform = define("PowerTransform", "power=0.0", [[
(1 + power * x) ^ (1 / power), and exp(x) where power is 0. power: a number from 0 up.

  > ("%.4f"):format(ms.probability.bijector.PowerTransform(0.5):forward(2.0):item())
  4.0000]], function(self, a)
  self._power = check.number_not_negative("PowerTransform", "power", a.power)
end, {
  forward = function(self, x)
    local p = self._power
    return p == 0 and ops.exp(x) or ops.exp(ops.log1p(p * x) / p)
  end,
  inverse = function(self, y)
    local p = self._power
    return p == 0 and ops.log(y) or ops.expm1(p * ops.log(y)) / p
  end,
  forward_log_jacobian = function(self, x)
    local p = self._power
    return p == 0 and x or (1 / p - 1) * ops.log1p(p * x)
  end,
  inverse_log_jacobian = function(self, y) return (self._power - 1) * ops.log(y) end,
  image = function(_, y) return ops.greater(y, 0.0), 1.0 end,
})

bijectors.GumbelCDF = define("GumbelCDF", "loc=0.0, scale=1.0", [[
exp(-exp(-(x - loc) / scale)), the distribution function of the Gumbel distribution. loc: its place. scale: above 0.

  > ("%.4f"):format(ms.probability.bijector.GumbelCDF():forward(0.0):item())
  0.3679]], function(self, a)
  self._loc, self._scale = parameter("GumbelCDF", "loc", a.loc), parameter("GumbelCDF", "scale", a.scale, true)
end, {
  forward = function(self, x) return ops.exp(-ops.exp(-(x - self._loc) / self._scale)) end,
  inverse = function(self, y) return self._loc - self._scale * ops.log(-ops.log(y)) end,
  forward_log_jacobian = function(self, x)
    local z = (x - self._loc) / self._scale
    return -z - ops.exp(-z) - ops.log(as(self._scale, x))
  end,
  inverse_log_jacobian = function(self, y) return ops.log(self._scale / (-ops.log(y) * y)) end,
  image = function(_, y) return ops.logical_and(ops.greater(y, 0.0), ops.less(y, 1.0)), 0.5 end,
})

bijectors.Invert = define("Invert", "bijector", [[Another bijector turned round. bijector: it.

  > ("%.4f"):format(ms.probability.bijector.Invert(ms.probability.bijector.Exp()):forward(1.0):item())
  0.0000]], function(self, a)
  if not class.is_a(a.bijector, Bijector) then fail("Invert", "bijector must be a bijector, got " .. describe(a.bijector)) end
  self.bijector = a.bijector
  self.is_increasing, self.is_linear = a.bijector.is_increasing, a.bijector.is_linear
end, {
  forward = function(self, x) return self.bijector:inverse(x) end,
  inverse = function(self, y) return self.bijector:forward(y) end,
  forward_log_jacobian = function(self, x) return self.bijector:inverse_log_jacobian(x) end,
  inverse_log_jacobian = function(self, y) return self.bijector:forward_log_jacobian(y) end,
})

local Transformed = class.define(base.Distribution, "TransformedDistribution", "bijector, distribution, seed=nil, name=nil",
  [[The distribution of bijector:forward(x) for x of a distribution. bijector: the function. distribution: that of x. seed: that of
each call of sample alone. The parameters are those of distribution.

  > d = ms.probability.distribution
  > lognormal = d.TransformedDistribution(ms.probability.bijector.Exp(), d.Normal(0.0, 1.0))
  > ("%.4f"):format(lognormal:log_prob(1.0):item()) --> -0.9189]])
bijectors.TransformedDistribution = Transformed

function Transformed:setup(a)
  local name = "TransformedDistribution"
  if not class.is_a(a.bijector, Bijector) then fail(name, "bijector must be a bijector, got " .. describe(a.bijector)) end
  if not class.is_a(a.distribution, base.Distribution) then
    fail(name, "distribution must be a distribution, got " .. describe(a.distribution))
  end
  if a.distribution._family.discrete then fail(name, "distribution must be a continuous one, got " .. a.distribution._family.name) end
  if a.seed ~= nil then check.not_negative(name, "seed", a.seed) end
  self.bijector, self.distribution = a.bijector, a.distribution
  self.seed, self.name = a.seed, a.name or name
  self.dtype, self.float_dtype = a.distribution.dtype, a.distribution.float_dtype
  self._family = { name = name, parameters = a.distribution._family.parameters }
end

-- f of what the value was before the bijector, and `outside` where it cannot be a value of the bijector.
local function before(self, value, outside, f)
  local y = value_of("TransformedDistribution", value):astype(self.float_dtype)
  if not self.bijector._image then return f(self.bijector:inverse(y), y) end
  local inside, safe = self.bijector._image(self.bijector, y)
  return base.within(inside, y, safe, function(s) return f(self.bijector:inverse(s), s) end, outside)
end

function Transformed:log_prob(value, ...)
  local given = table.pack(...)
  return before(self, value, -math.huge, function(x, y)
    return self.distribution:log_prob(x, table.unpack(given, 1, given.n)) + self.bijector:inverse_log_jacobian(y)
  end)
end

function Transformed:prob(value, ...) return ops.exp(self:log_prob(value, ...)) end

-- What is below y is below the x of which the bijector makes it, or above where the bijector falls.
for name, turned in pairs {
  cdf = { "survival_function", 0.0 }, survival_function = { "cdf", 1.0 }, log_cdf = { "log_survival", -math.huge },
  log_survival = { "log_cdf", 0.0 },
} do
  Transformed[name] = function(self, value, ...)
    local given = table.pack(...)
    local method = self.bijector.is_increasing and name or turned[1]
    return before(self, value, turned[2], function(x)
      return self.distribution[method](self.distribution, x, table.unpack(given, 1, given.n))
    end)
  end
end

local function of_linear(name, f)
  return function(self, ...)
    if not self.bijector.is_linear then
      fail("TransformedDistribution:" .. name, "there is no closed form of it where the bijector is not linear")
    end
    return f(self, self.distribution[name](self.distribution, ...))
  end
end

Transformed.mean = of_linear("mean", function(self, x) return self.bijector:forward(x) end)
Transformed.mode = of_linear("mode", function(self, x) return self.bijector:forward(x) end)
Transformed.sd = of_linear("sd", function(self, x) return x * ops.exp(self.bijector:forward_log_jacobian(x)) end)
Transformed.var = of_linear("var", function(self, x) return x * ops.exp(2.0 * self.bijector:forward_log_jacobian(x)) end)
Transformed.entropy = of_linear("entropy", function(self, x) return x + self.bijector:forward_log_jacobian(x) end)

--- That of the distributions of x, where both have the same bijector.
function Transformed:kl_loss(dist, ...)
  if not class.is_a(dist, Transformed) or dist.bijector ~= self.bijector then
    fail("TransformedDistribution:kl_loss", "dist must be a TransformedDistribution with the same bijector, got " .. describe(dist))
  end
  return self.distribution:kl_loss(dist.distribution, ...)
end

function Transformed:cross_entropy(dist, ...) return self:entropy() + self:kl_loss(dist, ...) end

function Transformed:sample(shape, ...)
  local old = self.distribution.seed
  self.distribution.seed = self.seed or old
  local x = self.distribution:sample(shape, ...)
  self.distribution.seed = old
  return self.bijector:forward(x)
end

return bijectors
