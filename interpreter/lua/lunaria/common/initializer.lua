-- Initial values of parameters: initializer(what, shape, dtype), where what is a name, an initializer, a number or a
-- tensor. The classes have MindSpore's names and defaults.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local Initializer = { _name = "Initializer", _is_initializer = true,
  _doc = [[What all initializers have in common: ms.initializer and layers take one as what new parameters are filled with.
  > tostring(ms.common.initializer.Normal()) --> Normal]] }
Initializer.__index = Initializer

function Initializer.__tostring(self)
  return self._name
end

local classes = {}

-- A class of initializers: `setup` takes its arguments by name, `fill` gives the values as a float32 tensor.
local function define(name, signature, doc, setup, fill)
  local parsed = arguments.signature(signature)
  local class = { _name = name, _doc = doc, _signature = parsed, _is_initializer = true, fill = fill }
  class.__index = class
  class.__tostring = Initializer.__tostring
  classes[name] = setmetatable(class, {
    __index = Initializer,
    __call = function(_, ...)
      local self = setmetatable({}, class)
      setup(self, arguments.bind(name, parsed, ...))
      return self
    end,
    __tostring = function()
      return ("class %s(%s)"):format(name, signature)
    end,
    __name = "class",
  })
end

local function numbers(name, ...)
  local names = { ... }
  return function(self, a)
    for _, parameter in ipairs(names) do
      self[parameter] = check.number(name, parameter, a[parameter])
    end
  end
end

-- Inputs and outputs of one unit: the second and the first axis, times the size of the window.
local function fans(name, shape)
  if #shape < 2 then
    fail(name, ("needs a shape of two axes or more, got (%s)"):format(table.concat(shape, ", ")))
  end
  local window = 1
  for i = 3, #shape do
    window = window * shape[i]
  end
  return shape[2] * window, shape[1] * window
end

local function uniform(shape, bound)
  return ops.uniform(shape, -bound, bound)
end

local function normal(shape, deviation, mean)
  return ops.normal(shape, mean or 0.0, deviation)
end

-- Normal numbers within [a, b] standard deviations, by the inverse of the distribution function.
local function truncated_normal(shape, deviation, mean, a, b)
  local function distribution(x)
    return ops.erf(ms.tensor(x / math.sqrt(2), ms.float64)):item()
  end
  local u = ops.uniform(shape, distribution(a), distribution(b), nil, ms.float64)
  local x = ops.erfinv(u) * math.sqrt(2)
  return (ops.clamp(x, a, b) * deviation + mean):astype(ms.float32)
end

-- How much an activation shrinks what goes through it.
local function gain_of(name, nonlinearity, slope)
  if nonlinearity == "relu" then
    return math.sqrt(2)
  elseif nonlinearity == "leaky_relu" then
    return math.sqrt(2 / (1 + slope * slope))
  elseif nonlinearity == "tanh" then
    return 5 / 3
  elseif nonlinearity == "linear" or nonlinearity == "sigmoid" or nonlinearity == "identity" then
    return 1
  end
  return fail(name, "nonlinearity must be relu, leaky_relu, tanh, sigmoid or linear, got " .. describe(nonlinearity))
end

define("Zero", "", [[All zeros.
  > ms.initializer(ms.common.initializer.Zero(), { 2 }):tolist()[1] --> 0.0]],
  function() end, function(_, shape) return ops.zeros(shape, ms.float32) end)
define("One", "", [[All ones.
  > ms.initializer(ms.common.initializer.One(), { 2 }):tolist()[1] --> 1.0]],
  function() end, function(_, shape) return ops.ones(shape, ms.float32) end)
define("Constant", "value", [[The same number everywhere.
  > ms.initializer(ms.common.initializer.Constant(3), { 2 }):tolist()[1] --> 3.0]], numbers("Constant", "value"), function(self, shape)
  return ops.full(shape, self.value, { dtype = ms.float32 })
end)
define("Normal", "sigma=0.01, mean=0.0", [[Normally distributed numbers.
  > ms.initializer(ms.common.initializer.Normal(0.02), { 4, 3 }).shape --> (4, 3)]],
  numbers("Normal", "sigma", "mean"), function(self, shape) return normal(shape, self.sigma, self.mean) end)
define("TruncatedNormal", "sigma=0.01, mean=0.0, a=-2.0, b=2.0",
  [[Normally distributed numbers between a and b standard deviations from the mean.
  > ms.initializer(ms.common.initializer.TruncatedNormal(0.02), { 4, 3 }).shape --> (4, 3)]],
  numbers("TruncatedNormal", "sigma", "mean", "a", "b"), function(self, shape)
    return truncated_normal(shape, self.sigma, self.mean, self.a, self.b)
  end)
define("Uniform", "scale=0.07", [[Numbers spread evenly over [-scale, scale].
  > ms.initializer(ms.common.initializer.Uniform(0.1), { 4, 3 }).shape --> (4, 3)]], numbers("Uniform", "scale"), function(self, shape)
  return uniform(shape, self.scale)
end)
define("XavierUniform", "gain=1.0", [[Uniform within gain sqrt(6 / (inputs + outputs)) (Glorot, Bengio 2010).
  > ms.initializer(ms.common.initializer.XavierUniform(), { 4, 3 }).shape --> (4, 3)]],
  numbers("XavierUniform", "gain"), function(self, shape)
    local inputs, outputs = fans("XavierUniform", shape)
    return uniform(shape, self.gain * math.sqrt(6 / (inputs + outputs)))
  end)
define("XavierNormal", "gain=1.0", [[Normal with deviation gain sqrt(2 / (inputs + outputs)) (Glorot, Bengio 2010).
  > ms.initializer(ms.common.initializer.XavierNormal(), { 4, 3 }).shape --> (4, 3)]],
  numbers("XavierNormal", "gain"), function(self, shape)
    local inputs, outputs = fans("XavierNormal", shape)
    return normal(shape, self.gain * math.sqrt(2 / (inputs + outputs)))
  end)

local function he_setup(name)
  return function(self, a)
    self.negative_slope = check.number(name, "negative_slope", a.negative_slope)
    self.mode = check.choice(name, "mode", a.mode, { "fan_in", "fan_out" })
    self.nonlinearity = a.nonlinearity
    gain_of(name, a.nonlinearity, self.negative_slope)
  end
end
local function he_deviation(self, name, shape)
  local inputs, outputs = fans(name, shape)
  return gain_of(name, self.nonlinearity, self.negative_slope) / math.sqrt(self.mode == "fan_in" and inputs or outputs)
end
define("HeUniform", "negative_slope=0, mode=\"fan_in\", nonlinearity=\"leaky_relu\"",
  [[Uniform, with a deviation that keeps the variance through layers with that activation (He and others 2015).
  > ms.initializer(ms.common.initializer.HeUniform(), { 4, 3 }).shape --> (4, 3)]],
  he_setup("HeUniform"), function(self, shape)
    return uniform(shape, math.sqrt(3) * he_deviation(self, "HeUniform", shape))
  end)
define("HeNormal", "negative_slope=0, mode=\"fan_in\", nonlinearity=\"leaky_relu\"",
  [[Normal, with a deviation that keeps the variance through layers with that activation (He and others 2015).
  > ms.initializer(ms.common.initializer.HeNormal(), { 4, 3 }).shape --> (4, 3)]],
  he_setup("HeNormal"), function(self, shape)
    return normal(shape, he_deviation(self, "HeNormal", shape))
  end)

define("Orthogonal", "gain=1.0", [[An orthogonal matrix times gain; further axes count as columns (Saxe and others 2013).
  > ms.initializer(ms.common.initializer.Orthogonal(), { 3, 3 }).shape --> (3, 3)]],
  numbers("Orthogonal", "gain"), function(self, shape)
    fans("Orthogonal", shape)
    local rows, columns = shape[1], 1
    for i = 2, #shape do
      columns = columns * shape[i]
    end
    local q, r = ops.qr(ops.standard_normal({ math.max(rows, columns), math.min(rows, columns) }))
    -- With the signs of r's diagonal taken out every orthogonal matrix is as likely as any other.
    q = q * ops.sign(ops.diag(r))
    return ops.reshape(rows < columns and q.T or q, shape) * self.gain
  end)
define("Identity", "", [[The identity matrix.
  > ms.initializer(ms.common.initializer.Identity(), { 2, 2 }):tolist()[1][1] --> 1.0]], function() end, function(_, shape)
  if #shape ~= 2 then
    fail("Identity", ("needs a shape of two axes, got (%s)"):format(table.concat(shape, ", ")))
  end
  return ops.eye(shape[1], shape[2], ms.float32)
end)
define("VarianceScaling", "scale=1.0, mode=\"fan_in\", distribution=\"truncated_normal\"",
  [[Numbers of variance scale / n, where n is the number of inputs, of outputs or their mean.
  > ms.initializer(ms.common.initializer.VarianceScaling(), { 4, 3 }).shape --> (4, 3)]],
  function(self, a)
    self.scale = check.number("VarianceScaling", "scale", a.scale)
    self.mode = check.choice("VarianceScaling", "mode", a.mode, { "fan_in", "fan_out", "fan_avg" })
    self.distribution = check.choice("VarianceScaling", "distribution", a.distribution,
      { "uniform", "truncated_normal", "untruncated_normal" })
    if not (self.scale > 0) then
      fail("VarianceScaling", ("scale must be positive, got %s"):format(self.scale))
    end
  end, function(self, shape)
    local inputs, outputs = fans("VarianceScaling", shape)
    local n = self.mode == "fan_in" and inputs or self.mode == "fan_out" and outputs or (inputs + outputs) / 2
    local variance = self.scale / math.max(1, n)
    if self.distribution == "uniform" then
      return uniform(shape, math.sqrt(3 * variance))
    elseif self.distribution == "untruncated_normal" then
      return normal(shape, math.sqrt(variance))
    end
    -- The deviation of a normal distribution that is cut off at two deviations.
    return truncated_normal(shape, math.sqrt(variance) / 0.87962566103423978, 0.0, -2.0, 2.0)
  end)

define("Dirac", "groups=1",
  [[A kernel that gives the input itself: 1 in the middle of the window where input and output channel are the same, 0 elsewhere.

The shape has three to five axes. groups: into how many groups the output channels fall, each of which gives the input.

  > ms.initializer(ms.common.initializer.Dirac(), { 2, 2, 3 })[1][1]:tolist()[2]
  1.0]],
  function(self, a)
    self.groups = check.positive("Dirac", "groups", a.groups)
  end, function(self, shape)
    if #shape < 3 or #shape > 5 then
      fail("Dirac", ("needs a shape of three to five axes, got (%s)"):format(table.concat(shape, ", ")))
    elseif shape[1] % self.groups ~= 0 then
      fail("Dirac", ("the first axis (%d) must be divisible by groups (%d)"):format(shape[1], self.groups))
    end
    local window, middle = 1, 0
    for i = 3, #shape do
      window, middle = window * shape[i], middle * shape[i] + shape[i] // 2
    end
    local outputs = shape[1] // self.groups
    local kernel = ops.zeros({ shape[1], shape[2], window }, ms.float32)
    for group = 0, self.groups - 1 do
      for i = 0, math.min(outputs, shape[2]) - 1 do kernel[{ group * outputs + i, i, middle }] = 1 end
    end
    return ops.reshape(kernel, shape)
  end)
define("Sparse", "sparsity, sigma=0.01",
  [[A matrix of normally distributed numbers with deviation sigma, of which a share sparsity of each column is 0 (Martens 2010).

sparsity: the share of zeros, from 0 to 1. sigma: the deviation.

  > ms.initializer(ms.common.initializer.Sparse(0.5), { 8, 3 }):eq(0):astype(ms.int64):sum():item()
  12]],
  function(self, a)
    self.sparsity = check.probability("Sparse", "sparsity", a.sparsity)
    self.sigma = check.number("Sparse", "sigma", a.sigma)
  end, function(self, shape)
    if #shape ~= 2 then
      fail("Sparse", ("needs a shape of two axes, got (%s)"):format(table.concat(shape, ", ")))
    end
    local zeros = math.ceil(self.sparsity * shape[1])
    -- In each column the rows with the smallest of random numbers are 0.
    local rank = ops.argsort(ops.argsort(ops.uniform(shape, 0.0, 1.0), 0), 0)
    return ops.where(ops.lt(rank, zeros), 0.0, normal(shape, self.sigma))
  end)

local by_name = {
  dirac = "Dirac", sparse = "Sparse",
  zeros = "Zero", zero = "Zero", ones = "One", one = "One", normal = "Normal", truncatednormal = "TruncatedNormal",
  uniform = "Uniform", xavieruniform = "XavierUniform", glorotuniform = "XavierUniform", xaviernormal = "XavierNormal",
  glorotnormal = "XavierNormal", heuniform = "HeUniform", henormal = "HeNormal", orthogonal = "Orthogonal",
  identity = "Identity", variancescaling = "VarianceScaling",
}

local function is_initializer(value)
  return type(value) == "table" and value._is_initializer == true
end

--- A new tensor of a shape, filled as `init` says: a name ("zeros", "ones", "normal", "truncated_normal", "uniform",
--- "xavier_uniform", "xavier_normal", "he_uniform", "he_normal", "orthogonal", ...), an initializer such as
--- ms.common.initializer.Normal(0.02), a number, or a tensor of that shape. dtype is float32 unless given.
---
---     ms.initializer("he_uniform", {10, 784})
---     > ms.initializer("ones", { 2, 2 }):tolist()[1][1] --> 1.0
local function initializer(init, shape, dtype)
  local name = "initializer"
  shape, dtype = arguments.named(name, { "shape", "dtype" }, shape, dtype)
  if type(init) == "string" then
    local class = by_name[(init:lower():gsub("_", ""))]
    if not class then
      local names = {}
      for known in pairs(by_name) do
        names[#names + 1] = known
      end
      table.sort(names)
      fail(name, ("there is no initializer '%s'; there are: %s"):format(init, table.concat(names, ", ")),
        arguments.nearest((init:lower():gsub("_", "")), names))
    end
    init = classes[class]
  end
  if math.type(shape) then
    shape = { shape }
  elseif type(shape) ~= "table" and (shape ~= nil or not ms.is_tensor(init)) then
    fail(name, "shape must be a table of sizes, got " .. describe(shape))
  end
  for i, size in ipairs(shape or {}) do
    check.not_negative(name, ("shape[%d]"):format(i), size)
  end
  if ms.is_tensor(init) then
    local same = shape == nil or #shape == #init.shape
    for i, size in ipairs(shape or {}) do
      same = same and init.shape[i] == size
    end
    if not same then
      fail(name, ("the tensor has shape %s, (%s) is wanted"):format(tostring(init.shape), table.concat(shape, ", ")))
    end
    return dtype and init:astype(dtype) or init:copy()
  elseif math.type(init) then
    init = classes.Constant(init)
  elseif not is_initializer(init) then
    fail(name, "init must be a name, an initializer, a number or a tensor, got " .. describe(init))
  end
  if rawget(init, "_signature") then
    init = init()
  end
  local values = init:fill(shape)
  return dtype and values:astype(dtype) or values
end

classes.Initializer = Initializer
classes.initializer = initializer
return classes
