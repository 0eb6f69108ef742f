-- ONNX operators that work element by element.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops
local plain, is_float = define.plain, define.is_float

for name, op in pairs {
  Abs = "abs", Acos = "acos", Acosh = "acosh", Asin = "asin", Asinh = "asinh", Atan = "atan", Atanh = "atanh", Ceil = "ceil",
  Cos = "cos", Cosh = "cosh", Erf = "erf", Exp = "exp", Floor = "floor", Identity = "identity", Log = "log", Neg = "neg",
  Not = "logical_not", Reciprocal = "reciprocal", Relu = "relu", Round = "round", Sigmoid = "sigmoid", Sign = "sign",
  Sin = "sin", Sinh = "sinh", Sqrt = "sqrt", Tan = "tan", Tanh = "tanh", Softsign = "softsign", HardSwish = "hardswish",
  Mish = "mish", IsNaN = "isnan", BitwiseNot = "bitwise_not",
} do
  local f = ops[op]
  plain(name, 1, function(x) return f(x) end)
end
-- Sequences and missing values go through as they are.
plain("Identity", 1, function(x)
  if ms.is_tensor(x) then return ops.identity(x) end
  return x
end)

-- Below float32's resolution of exp the two forms agree; large x must not overflow.
plain("Softplus", 1, function(x) return ops.logaddexp(x, ops.zeros_like(x)) end)

for name, op in pairs {
  Equal = "equal", Greater = "greater", GreaterOrEqual = "greater_equal", Less = "less", LessOrEqual = "less_equal",
  And = "logical_and", Or = "logical_or", Xor = "logical_xor", BitwiseAnd = "bitwise_and", BitwiseOr = "bitwise_or",
  BitwiseXor = "bitwise_xor",
} do
  local f = ops[op]
  plain(name, 2, function(a, b) return f(a, b) end)
end

-- Before version 7 the second operand was fitted to the first from an axis on.
local function arithmetic(name, f)
  define.define(name, "axis:i broadcast:i=0 consumed_inputs:ints", 2, 2, function(a, node)
    if node.version >= 7 then return f end
    return function(x, y)
      if a.broadcast ~= 0 and a.axis then
        local shape = define.sizes(y)
        for _ = 1, x.ndim - define.axis(x, a.axis) - y.ndim do shape[#shape + 1] = 1 end
        y = ops.reshape(y, shape)
      end
      return f(x, y)
    end
  end)
end
arithmetic("Add", function(x, y) return ops.add(x, y) end)
arithmetic("Sub", function(x, y) return ops.sub(x, y) end)
arithmetic("Mul", function(x, y) return ops.mul(x, y) end)
-- Of integers towards zero.
arithmetic("Div", function(x, y)
  if is_float(x.dtype) then return ops.div(x, y) end
  return ops.truncate_div(x, y)
end)

define.define("Pow", "axis:i broadcast:i=0", 2, 2, function()
  return function(x, y)
    if x.dtype == y.dtype then return ops.pow(x, y) end
    if is_float(x.dtype) then return ops.pow(x, ops.cast(y, x.dtype)) end
    if is_float(y.dtype) then return ops.cast(ops.pow(ops.cast(x, ms.float64), ops.cast(y, ms.float64)), x.dtype) end
    return ops.cast(ops.pow(ops.cast(x, ms.int64), ops.cast(y, ms.int64)), x.dtype)
  end
end)

define.define("Mod", "fmod:i=0", 2, 2, function(a)
  local f = a.fmod ~= 0 and ops.fmod or ops.remainder
  return function(x, y) return f(x, y) end
end)

define.define("BitShift", "direction:s!", 2, 2, function(a, node)
  if a.direction ~= "LEFT" and a.direction ~= "RIGHT" then node.fail "direction must be LEFT or RIGHT" end
  local f = a.direction == "LEFT" and ops.bitwise_left_shift or ops.bitwise_right_shift
  return function(x, y) return f(x, y) end
end)

local function variadic(name, combine, finish)
  define.define(name, "consumed_inputs:ints", 1, 1000, function()
    return function(x, ...)
      local count = select("#", ...)
      for i = 1, count do x = combine(x, (select(i, ...))) end
      return finish and finish(x, count + 1) or x
    end
  end)
end
variadic("Sum", ops.add)
variadic("Max", ops.maximum)
variadic("Min", ops.minimum)
variadic("Mean", ops.add, function(x, count) return x / count end)

define.define("Where", "", 3, 3, function() return function(c, x, y) return ops.where(c, x, y) end end)

define.define("Clip", "min:f max:f consumed_inputs:ints", 1, 3, function(a, node)
  if node.version < 11 then
    local low, high = a.min, a.max
    return function(x)
      if low then x = ops.maximum(x, ms.tensor(low, x.dtype)) end
      if high then x = ops.minimum(x, ms.tensor(high, x.dtype)) end
      return x
    end
  end
  return function(x, low, high)
    if low then x = ops.maximum(x, low) end
    if high then x = ops.minimum(x, high) end
    return x
  end
end)

local function cast(x, dtype, saturate)
  if x.dtype == dtype then return ops.identity(x) end
  local most = saturate ~= 0 and define.largest_float8[dtype]
  if most then x = ops.clamp(ops.cast(x, ms.float32), -most, most) end
  return ops.cast(x, dtype)
end

define.define("Cast", "to:i! saturate:i=1 round_mode:s=up", 1, 1, function(a, node)
  local dtype = define.dtype(node, a.to)
  return function(x) return cast(x, dtype, a.saturate) end
end)
define.define("CastLike", "saturate:i=1 round_mode:s=up", 2, 2, function(a)
  return function(x, like) return cast(x, like.dtype, a.saturate) end
end)

local function activation(name, spec, make) define.define(name, spec .. " consumed_inputs:ints", 1, 1, make) end

activation("LeakyRelu", "alpha:f=0.01", function(a)
  local alpha = a.alpha
  return function(x) return ops.leaky_relu(x, alpha) end
end)
activation("Elu", "alpha:f=1", function(a) return function(x) return ops.elu(x, a.alpha) end end)
activation("Celu", "alpha:f=1", function(a) return function(x) return ops.celu(x, a.alpha) end end)
activation("Selu", "alpha:f=1.67326319217681884765625 gamma:f=1.05070102214813232421875", function(a)
  local alpha, gamma = a.alpha, a.gamma
  return function(x)
    return ops.where(ops.greater(x, 0), x * gamma, ops.expm1(ops.minimum(x, 0)) * (alpha * gamma))
  end
end)
activation("HardSigmoid", "alpha:f=0.2 beta:f=0.5", function(a)
  local alpha, beta = a.alpha, a.beta
  return function(x) return ops.clamp(x * alpha + beta, 0.0, 1.0) end
end)
activation("ThresholdedRelu", "alpha:f=1", function(a)
  local alpha = a.alpha
  return function(x) return ops.where(ops.greater(x, alpha), x, ops.zeros_like(x)) end
end)
activation("Shrink", "bias:f=0 lambd:f=0.5", function(a)
  local bias, lambd = a.bias, a.lambd
  return function(x)
    local zero = ops.zeros_like(x)
    local bent = ops.where(ops.greater(x, lambd), cast(x - bias, x.dtype), zero)
    return ops.where(ops.less(x, -lambd), cast(x + bias, x.dtype), bent)
  end
end)
activation("Swish", "alpha:f=1", function(a)
  local alpha = a.alpha
  return function(x) return x * ops.sigmoid(x * alpha) end
end)
define.define("SwiGLU", "alpha:f=1", 2, 2, function(a)
  local alpha = a.alpha
  return function(x, y)
    local wide = ops.cast(x, x.dtype == ms.float64 and ms.float64 or ms.float32)
    return cast(wide * ops.sigmoid(wide * alpha) * y, x.dtype)
  end
end)
activation("Gelu", "approximate:s=none", function(a, node)
  if a.approximate == "tanh" then return function(x) return ops.gelu_tanh(x) end end
  if a.approximate ~= "none" then node.fail "approximate must be none or tanh" end
  return function(x) return ops.gelu_erf(x) end
end)
define.define("PRelu", "consumed_inputs:ints", 2, 2, function()
  return function(x, slope) return ops.where(ops.less(x, ops.zeros_like(x)), x * slope, x) end
end)

define.define("IsInf", "detect_negative:i=1 detect_positive:i=1", 1, 1, function(a)
  local negative, positive = a.detect_negative ~= 0, a.detect_positive ~= 0
  return function(x)
    if negative and positive then return ops.isinf(x) end
    if negative then return ops.equal(x, -math.huge) end
    if positive then return ops.equal(x, math.huge) end
    return ops.zeros(define.sizes(x), ms.bool_)
  end
end)
