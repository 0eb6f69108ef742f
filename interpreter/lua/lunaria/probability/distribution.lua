-- Distribution: what all distributions have. A family is a table of formulas over a value and its parameters; this class brings
-- parameters and values to tensors of one dtype, finds what a formula can be made of, and says what is missing.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local special = require "lunaria.probability.special"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local floats = { Float16 = ms.float16, BFloat16 = ms.bfloat16, Float32 = ms.float32, Float64 = ms.float64 }

local function is_float(dtype) return floats[tostring(dtype)] ~= nil end

local Distribution = cells.Cell:extend("Distribution")
Distribution._parameters = "seed=nil, dtype=nil, name=nil"
Distribution._doc = [[What distributions are: prob, log_prob, cdf, log_cdf, survival_function, log_survival of values, mean, sd,
var, mode, entropy, kl_loss, cross_entropy, sample. Parameters are numbers, lists or tensors that are broadcast
against each other and the value; all results can be differentiated with respect to them. A parameter that is left out is given at
each call behind the other arguments:
ms.probability.distribution.Normal():log_prob(x, mean, sd). distribution("log_prob", x) is the same as distribution:log_prob(x).

seed: that of each call of sample alone; nil: the generator of ms.set_seed. dtype: that of samples and results. name: a name of your
own.

  > n = ms.probability.distribution.Normal(0.0, 2.0)
  > n:cdf(ms.tensor { 0.0 }):item() --> 0.5
  > n("var"):item() --> 4.0]]

local conditions = {
  positive = function(x) return ops.all(ops.greater(x, 0.0)):item(), "positive" end,
  probability = function(x)
    return ops.all(ops.logical_and(ops.greater_equal(x, 0.0), ops.less_equal(x, 1.0))):item(), "probabilities in [0, 1]"
  end,
}

local function tensor_of(where, name, value, dtype)
  if math.type(value) then return ms.tensor(value + 0.0, dtype) end
  if type(value) == "table" and not cells.is_cell(value) then
    local ok, tensor = pcall(ms.tensor, value, dtype)
    value = ok and tensor or value
  end
  if not ms.is_tensor(value) then fail(where, ("%s must be a tensor or a number, got %s"):format(name, describe(value))) end
  return value.dtype == dtype and value or value:astype(dtype)
end

-- The dtype in which a distribution computes.
local function computing_dtype(self, a)
  if a.dtype ~= nil then
    local float = is_float(a.dtype)
    if tostring(a.dtype):find "^Complex" or (not float and not self._family.discrete) then
      fail(self._family.name, ("dtype must be a float type, got %s"):format(tostring(a.dtype)))
    end
    if float then return a.dtype end
  end
  for _, name in ipairs(self._family.parameters) do
    if ms.is_tensor(a[name]) and is_float(a[name].dtype) then return a[name].dtype end
  end
  return ms.float32
end

local function setup(self, a)
  local family = self._family
  if a.seed ~= nil then self.seed = check.not_negative(family.name, "seed", a.seed) end
  self.name = a.name == nil and family.name or a.name
  if type(self.name) ~= "string" then fail(family.name, "name must be a string, got " .. describe(a.name)) end
  self.float_dtype = computing_dtype(self, a)
  self.dtype = a.dtype or (family.discrete and ms.int32 or self.float_dtype)
  for _, name in ipairs(family.parameters) do
    local value = a[name]
    if value ~= nil then
      value = ms.is_parameter(value) and value or tensor_of(family.name, name, value, self.float_dtype)
      local condition = family.conditions and family.conditions[name]
      if condition then
        local holds, words = conditions[condition](value)
        if not holds then fail(family.name, ("%s must be %s"):format(name, words)) end
      end
      self["_" .. name] = value
    end
  end
  if family.check then family.check(self) end
end

-- The parameters of a call: those given, and for the rest those of the distribution. leading: the arguments before them.
local function parameters_of(self, where, given, leading)
  local list, family = {}, self._family
  for i, name in ipairs(family.parameters) do
    local value = given[i]
    if value == nil then value = self["_" .. name] end
    if value == nil then
      fail(("%s:%s"):format(family.name, where), ("the parameter %s is missing"):format(name),
        "give it when the distribution is made, or behind the other arguments of the call")
    end
    list[i] = tensor_of(where, name, value, self.float_dtype)
    if list[i].ndim < (family.event or 0) then
      fail(("%s:%s"):format(family.name, where), ("%s must have an axis for the classes, got %s"):format(name, describe(value)))
    end
  end
  if given.n > #family.parameters then
    local most = leading + #family.parameters
    fail(("%s:%s"):format(family.name, where), ("takes at most %d arguments, got %d"):format(most, leading + given.n))
  end
  return list
end

local function missing(self, where)
  fail(("%s:%s"):format(self._family.name, where), "there is no closed form of it", "sample() and log_prob give an estimate of it")
end

-- What follows from another formula, of a value and the parameters.
local of_value = {}
function of_value.log_prob(f, x, ...) return f.prob and ops.log(f.prob(x, ...)) end
function of_value.prob(f, x, ...) return ops.exp(f.log_prob(x, ...)) end
function of_value.cdf(f, x, ...) return f.log_cdf and ops.exp(f.log_cdf(x, ...)) end
function of_value.log_cdf(f, x, ...) return f.cdf and ops.log(f.cdf(x, ...)) end
function of_value.survival_function(f, x, ...) return f.log_survival and ops.exp(f.log_survival(x, ...)) end
function of_value.log_survival(f, x, ...) return f.survival_function and ops.log(f.survival_function(x, ...)) end

-- Halves are computed in float32, and the families whose formulas are small differences of large numbers in float64.
local function computed_in(self)
  if self._family.wide then return ms.float64 end
  local half = self.float_dtype == ms.float16 or self.float_dtype == ms.bfloat16
  return half and ms.float32 or self.float_dtype
end

local function cast_all(list, dtype)
  for i, value in ipairs(list) do list[i] = value.dtype == dtype and value or value:astype(dtype) end
  return list
end

local function evaluate(self, name, value, ...)
  local family = self._family
  if value == nil then fail(("%s:%s"):format(family.name, name), "the argument value is missing") end
  local x = tensor_of(name, "value", value, self.float_dtype)
  local all = cast_all({ x, table.unpack(parameters_of(self, name, table.pack(...), 1)) }, computed_in(self))
  local result
  if family[name] then
    result = family[name](table.unpack(all))
  elseif of_value[name] then
    result = of_value[name](family, table.unpack(all))
  end
  return result and cast_all({ result }, self.float_dtype)[1] or missing(self, name)
end

local function statistic(self, name, ...)
  local family = self._family
  local p = cast_all(parameters_of(self, name, table.pack(...), 0), computed_in(self))
  if family[name] then
    local result = family[name](table.unpack(p))
    -- A parameter that does not count still has its shape.
    for _, value in ipairs(p) do
      if family.event ~= 1 and tostring(value.shape) ~= tostring(result.shape) then result = result + ops.zeros_like(value) end
    end
    return cast_all({ result }, self.float_dtype)[1]
  elseif name == "sd" and family.var then
    return ops.sqrt(statistic(self, "var", ...))
  elseif name == "var" and family.sd then
    return statistic(self, "sd", ...) ^ 2
  end
  return missing(self, name)
end

--- The density, or for whole numbers the probability, of a value. value: a tensor or a number.
function Distribution:prob(value, ...) return evaluate(self, "prob", value, ...) end
--- The logarithm of prob. value: a tensor or a number.
function Distribution:log_prob(value, ...) return evaluate(self, "log_prob", value, ...) end
--- The probability of at most value. value: a tensor or a number.
function Distribution:cdf(value, ...) return evaluate(self, "cdf", value, ...) end
--- The logarithm of cdf. value: a tensor or a number.
function Distribution:log_cdf(value, ...) return evaluate(self, "log_cdf", value, ...) end
--- The probability of more than value. value: a tensor or a number.
function Distribution:survival_function(value, ...) return evaluate(self, "survival_function", value, ...) end
--- The logarithm of survival_function. value: a tensor or a number.
function Distribution:log_survival(value, ...) return evaluate(self, "log_survival", value, ...) end

--- The mean.
function Distribution:mean(...) return statistic(self, "mean", ...) end
--- The standard deviation.
function Distribution:sd(...) return statistic(self, "sd", ...) end
--- The variance.
function Distribution:var(...) return statistic(self, "var", ...) end
--- The likeliest value.
function Distribution:mode(...) return statistic(self, "mode", ...) end
--- The entropy in nats.
function Distribution:entropy(...) return statistic(self, "entropy", ...) end

-- The parameters of the other distribution and then those of this one.
local function both(self, where, dist, ...)
  local family, given = self._family, table.pack(...)
  if class.is_a(dist, Distribution) then
    if dist._family ~= family then
      fail(("%s:%s"):format(family.name, where), ("dist must be a %s distribution, got %s"):format(family.name, dist._family.name))
    end
    return parameters_of(dist, where, { n = 0 }, 1), parameters_of(self, where, given, 1)
  elseif dist ~= family.name then
    fail(("%s:%s"):format(family.name, where), ("dist must be '%s' or such a distribution, got %s"):format(family.name, describe(dist)))
  end
  local count = #family.parameters
  local theirs = { n = count }
  for i = 1, count do theirs[i] = given[i] end
  local other = setmetatable({ _family = family, float_dtype = self.float_dtype }, getmetatable(self))
  local own = { n = given.n - count, table.unpack(given, count + 1, given.n) }
  return parameters_of(other, where, theirs, 1), parameters_of(self, where, own, 1 + count)
end

--- The Kullback-Leibler divergence of this distribution from another one of the family: kl_loss(other), or MindSpore's
--- kl_loss("Normal", mean_b, sd_b, mean_a, sd_a) with the other's parameters and, behind them, this one's. dist: the other
--- distribution or the name of its family.
function Distribution:kl_loss(dist, ...)
  local b, a = both(self, "kl_loss", dist, ...)
  if not self._family.kl_loss then return missing(self, "kl_loss") end
  local dtype = computed_in(self)
  return cast_all({ self._family.kl_loss(cast_all(b, dtype), cast_all(a, dtype)) }, self.float_dtype)[1]
end

--- The cross entropy of this distribution and another one, which is entropy plus kl_loss; arguments as kl_loss. dist: the other
--- distribution or the name of its family.
function Distribution:cross_entropy(dist, ...)
  local b, a = both(self, "cross_entropy", dist, ...)
  local family = self._family
  if not family.kl_loss or not family.entropy then return missing(self, "cross_entropy") end
  cast_all(b, computed_in(self))
  cast_all(a, computed_in(self))
  return cast_all({ family.entropy(table.unpack(a)) + family.kl_loss(b, a) }, self.float_dtype)[1]
end

--- Numbers of the distribution, `shape` many for each parameter: their shape is shape and then that of the parameters. Where the
--- draw is a function of the parameters, the gradient goes through it. shape: a table of sizes, {} by default.
function Distribution:sample(shape, ...)
  local family = self._family
  local where = family.name .. ":sample"
  shape = arguments.named(where, { "shape" }, shape) or {}
  if math.type(shape) then shape = { shape } end
  if type(shape) ~= "table" then fail(where, "shape must be a table of sizes, got " .. describe(shape)) end
  local sizes = {}
  for i, size in ipairs(shape) do sizes[i] = check.not_negative(where, ("shape[%d]"):format(i), size) end
  local p = parameters_of(self, "sample", table.pack(...), 1)
  local together = p[1]
  for i = 2, #p do together = together + ops.zeros_like(p[i]) end
  local batch = together.shape
  for i = 1, #batch - (family.event or 0) do sizes[#sizes + 1] = batch[i] end
  local result = family.sample(sizes, self.seed, table.unpack(p))
  return result.dtype == self.dtype and result or result:astype(self.dtype)
end

--- The name of the family.
function Distribution:get_dist_type() return self._family.name end

--- The parameters, in the order in which calls take them.
function Distribution:get_dist_args(...) return table.unpack(parameters_of(self, "get_dist_args", table.pack(...), 0)) end

local callable = { prob = true, log_prob = true, cdf = true, log_cdf = true, survival_function = true, log_survival = true, mean = true,
  sd = true, var = true, mode = true, entropy = true, kl_loss = true, cross_entropy = true, sample = true, get_dist_type = true,
  get_dist_args = true }

function Distribution:construct(name, ...)
  if not callable[name] then
    fail(self._family.name, "is called with the name of a method, as n(\"log_prob\", x), got " .. describe(name))
  end
  return self[name](self, ...)
end

function Distribution:extend_repr()
  local list = {}
  for _, name in ipairs(self._family.parameters) do
    local value = self["_" .. name]
    if value then list[#list + 1] = ("%s=%s"):format(name, value.size == 1 and tostring(value:item()) or tostring(value.shape)) end
  end
  return table.concat(list, ", ")
end

-- A family of distributions. family: name, parameters, conditions (what a parameter must be), discrete, event (the number of axes of
-- the first parameter that are one event), wide (formulas of a value are computed in float64), check, and the formulas.
local function define(family, signature, doc)
  local made = class.define(Distribution, family.name, signature .. ", seed=nil, dtype=nil, name=nil", doc)
  made._family, made.setup = family, setup
  return made
end

-- Uniform numbers above 0 and below 1, and exponential ones above 0.
local function uniform(shape, seed, dtype)
  local u = ops.rand(shape, nil, seed)
  u = ops.clamp(u, 2.0 ^ -25, 1.0 - 2.0 ^ -24)
  return u.dtype == dtype and u or u:astype(dtype)
end

local function normal(shape, seed, dtype)
  local z = ops.standard_normal(shape, seed)
  return z.dtype == dtype and z or z:astype(dtype)
end

return { Distribution = Distribution, define = define, uniform = uniform, normal = normal, within = special.within }
