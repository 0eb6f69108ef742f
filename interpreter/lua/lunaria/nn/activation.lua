-- Activation functions as cells.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell

local classes = {}

-- Those that only apply an operator.
local plain = {
  ReLU = { ops.relu, [[max(x, 0), element by element.
  > ms.nn.ReLU()(ms.tensor { -1.0, 2.0 }):tolist()[1] --> 0.0]] },
  ReLU6 = { ops.relu6, [[min(max(x, 0), 6), element by element.
  > ms.nn.ReLU6()(ms.tensor { 8.0 }):item() --> 6.0]] },
  Tanh = { ops.tanh, [[Hyperbolic tangent, element by element.
  > ms.nn.Tanh()(ms.zeros { 1 }):item() --> 0.0]] },
  Sigmoid = { ops.sigmoid, [[1 / (1 + exp(-x)), element by element.
  > ms.nn.Sigmoid()(ms.zeros { 1 }):item() --> 0.5]] },
  LogSigmoid = { ops.logsigmoid, [[log(sigmoid(x)), element by element.
  > ms.nn.LogSigmoid()(ms.ones { 2 }).shape --> (2,)]] },
  SiLU = { ops.silu, [[x sigmoid(x), element by element.
  > ms.nn.SiLU()(ms.zeros { 1 }):item() --> 0.0]] },
  Mish = { ops.mish, [[x tanh(softplus(x)), element by element.
  > ms.nn.Mish()(ms.zeros { 1 }):item() --> 0.0]] },
  HSwish = { ops.hardswish, [[x min(max(x + 3, 0), 6) / 6, element by element.
  > ms.nn.HSwish()(ms.tensor { 3.0 }):item() --> 3.0]] },
  HSigmoid = { ops.hardsigmoid, [[min(max(x + 3, 0), 6) / 6, element by element.
  > ms.nn.HSigmoid()(ms.tensor { 3.0 }):item() --> 1.0]] },
  SeLU = { ops.selu, [[Scaled exponential linear unit, element by element.
  > ms.nn.SeLU()(ms.zeros { 1 }):item() --> 0.0]] },
  Softsign = { ops.softsign, [[x / (1 + |x|), element by element.
  > ms.nn.Softsign()(ms.tensor { 1.0 }):item() --> 0.5]] },
  FastGelu = { ops.fast_gelu, [[An approximation of GELU by one exponential, element by element.
  > ms.nn.FastGelu()(ms.zeros { 1 }):item() --> 0.0]] },
  Tanhshrink = { ops.tanhshrink, [[x - tanh(x), element by element.
  > ms.nn.Tanhshrink()(ms.zeros { 1 }):item() --> 0.0]] },
  Identity = { function(x) return ms.is_tensor(x) and ops.identity(x) or x end, [[The input as it is.
  > ms.nn.Identity()(ms.tensor(3.0)):item() --> 3.0]] },
}
for name, entry in pairs(plain) do
  local f = entry[1]
  local class = layer(Cell, name, "", entry[2])
  function class:setup() end
  function class:construct(x)
    return f(x)
  end
  classes[name] = class
end

-- Those with one number.
local function with_number(name, parameter, default, f, doc)
  local class = layer(Cell, name, ("%s=%s"):format(parameter, default), doc)
  class.setup = arguments.settings(name, parameter .. ":number")
  function class:construct(x)
    return f(x, self[parameter])
  end
  function class:extend_repr()
    return ("%s=%s"):format(parameter, self[parameter])
  end
  classes[name] = class
end
with_number("LeakyReLU", "alpha", "0.2", ops.leaky_relu, [[x where it is positive, alpha x elsewhere.
  > ms.nn.LeakyReLU(0.5)(ms.tensor { -2.0 }):item() --> -1.0]])
with_number("ELU", "alpha", "1.0", ops.elu, [[x where it is positive, alpha (exp(x) - 1) elsewhere.
  > ms.nn.ELU()(ms.tensor { 2.0 }):item() --> 2.0]])
with_number("CELU", "alpha", "1.0", ops.celu, [[max(0, x) + min(0, alpha (exp(x / alpha) - 1)).
  > ms.nn.CELU()(ms.tensor { 2.0 }):item() --> 2.0]])
with_number("HShrink", "lambd", "0.5", ops.hardshrink, [[x where |x| > lambd, 0 elsewhere.
  > ms.nn.HShrink(1.0)(ms.tensor { 0.5 }):item() --> 0.0]])
with_number("SoftShrink", "lambd", "0.5", ops.softshrink, [[x less lambd towards 0, element by element.
  > ms.nn.SoftShrink(1.0)(ms.tensor { 3.0 }):item() --> 2.0]])

-- Those along an axis.
local function along_axis(name, f, doc)
  local class = layer(Cell, name, "axis=-1", doc)
  class.setup = arguments.settings(name, "axis:integer")
  function class:construct(x)
    return f(x, self.axis)
  end
  function class:extend_repr()
    return "axis=" .. self.axis
  end
  classes[name] = class
end
along_axis("Softmax", ops.softmax, [[exp(x) over its sum along an axis.
  > ms.nn.Softmax()(ms.zeros { 1, 2 }):tolist()[1][1] --> 0.5]])
along_axis("LogSoftmax", ops.log_softmax, [[Logarithm of softmax along an axis.
  > ms.nn.LogSoftmax()(ms.zeros { 1, 2 }).shape --> (1, 2)]])
along_axis("Softmin", ops.softmin, [[softmax(-x) along an axis.
  > ms.nn.Softmin()(ms.zeros { 1, 2 }):tolist()[1][1] --> 0.5]])
along_axis("GLU", ops.glu, [[The first half of an axis times the sigmoid of the second.
  > ms.nn.GLU()(ms.ones { 2, 4 }).shape --> (2, 2)]])

local GELU = layer(Cell, "GELU", "approximate=true",
  [[x times the normal distribution function of x; approximate: by tanh, else exactly.
  > ms.nn.GELU()(ms.zeros { 1 }):item() --> 0.0]])
GELU.setup = arguments.settings("GELU", "approximate:boolean")
function GELU:construct(x) return (self.approximate and ops.gelu_tanh or ops.gelu_erf)(x) end
function GELU:extend_repr() return "approximate=" .. tostring(self.approximate) end
classes.GELU = GELU

local PReLU = layer(Cell, "PReLU", "channel=1, w=0.25",
  [[x where it is positive, w x elsewhere; w is trained, one number or one per channel.
  > ms.nn.PReLU(1, 0.5)(ms.tensor { { -2.0 } }):item() --> -1.0]])
function PReLU:setup(a)
  self.channel = check.positive("PReLU", "channel", a.channel)
  local w = a.w
  if math.type(w) then
    w = ops.full({ self.channel }, w, { dtype = ms.float32 })
  elseif not ms.is_tensor(w) then
    fail("PReLU", "w must be a number or a tensor, got " .. describe(w))
  end
  self.w = ms.Parameter(w, { name = "a" })
end
function PReLU:construct(x)
  return ops.prelu(x, self.w)
end
function PReLU:extend_repr()
  return "channel=" .. self.channel
end
classes.PReLU = PReLU

local Hardtanh = layer(Cell, "Hardtanh", "min_val=-1.0, max_val=1.0", [[x cut off at min_val and max_val.
  > ms.nn.Hardtanh(-1, 2)(ms.tensor { 5.0 }):item() --> 2.0]])
Hardtanh.setup = arguments.settings("Hardtanh", "min_val:number, max_val:number")
function Hardtanh:construct(x) return ops.hardtanh(x, self.min_val, self.max_val) end
classes.Hardtanh = Hardtanh

local Threshold = layer(Cell, "Threshold", "threshold, value",
  [[x where it is greater than threshold, value elsewhere. threshold: the limit. value: what stands in place of the others.

  > ms.nn.Threshold(0.5, 9.0)(ms.tensor { 0.0, 1.0 }):tolist()[1] --> 9.0]])
Threshold.setup = arguments.settings("Threshold", "threshold:number, value:number")
function Threshold:construct(x) return ops.threshold(x, self.threshold, self.value) end
function Threshold:extend_repr() return ("threshold=%s, value=%s"):format(self.threshold, self.value) end
classes.Threshold = Threshold

local Softmax2d = layer(Cell, "Softmax2d", "",
  [[Softmax over the channels at each place of pictures (N, C, H, W) or (C, H, W).

  > ms.nn.Softmax2d()(ms.ones { 2, 4, 3, 3 }):sum({ axis = 1 }):max():item() --> 1.0]])
function Softmax2d:setup() end
function Softmax2d:construct(x)
  if not ms.is_tensor(x) or x.ndim < 3 or x.ndim > 4 then
    fail("Softmax2d", "the input must be a tensor (N, C, H, W) or (C, H, W), got " .. describe(x))
  end
  return ops.softmax(x, -3)
end
classes.Softmax2d = Softmax2d

local RReLU = layer(Cell, "RReLU", "lower=0.125, upper=0.3333333333333333",
  [[x where it is positive, elsewhere x times a number that is drawn between lower and upper for each element and each call.

  > ms.nn.RReLU(0.5, 0.5)(ms.tensor { -1.0, 2.0 }):tolist()[1] --> -0.5]])
function RReLU:setup(a)
  self.lower, self.upper = check.number("RReLU", "lower", a.lower), check.number("RReLU", "upper", a.upper)
  if self.lower > self.upper then
    fail("RReLU", ("lower (%s) must not be above upper (%s)"):format(self.lower, self.upper))
  end
end
function RReLU:construct(x)
  return ops.rrelu(x, self.lower, self.upper)
end
function RReLU:extend_repr()
  return ("lower=%s, upper=%s"):format(self.lower, self.upper)
end
classes.RReLU = RReLU

local by_name = {
  relu = "ReLU", relu6 = "ReLU6", tanh = "Tanh", sigmoid = "Sigmoid", logsigmoid = "LogSigmoid", silu = "SiLU",
  mish = "Mish", hswish = "HSwish", hsigmoid = "HSigmoid", selu = "SeLU", gelu = "GELU", fast_gelu = "FastGelu",
  elu = "ELU", leakyrelu = "LeakyReLU", prelu = "PReLU", softmax = "Softmax", softmin = "Softmin",
  logsoftmax = "LogSoftmax", hshrink = "HShrink", softshrink = "SoftShrink", softsign = "Softsign", glu = "GLU",
}

-- `where`: the name of the function in messages.
local function activation_of(name, where)
  local class = type(name) == "string" and by_name[name:lower()]
  if not class then
    local names = {}
    for known in pairs(by_name) do
      names[#names + 1] = known
    end
    table.sort(names)
    fail(where, ("there is no activation %s; there are: %s"):format(describe(name), table.concat(names, ", ")),
      type(name) == "string" and arguments.nearest(name:lower(), names) or nil)
  end
  return classes[class]()
end

--- The activation called name ("relu", "gelu", ...), as a new cell.
---     > ms.nn.get_activation("relu") --> ReLU<>
local function get_activation(name) return activation_of(name, "get_activation") end

return { classes = classes, get_activation = get_activation, activation_of = activation_of }
