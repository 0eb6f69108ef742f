-- A layer, its normalisation and its activation as one cell.
local arguments = require "lunaria.nn.arguments"
local activation = require "lunaria.nn.activation"
local basic = require "lunaria.nn.basic"
local cells = require "lunaria.nn.cell"
local conv = require "lunaria.nn.conv"
local norm = require "lunaria.nn.norm"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell, is_cell = cells.layer, cells.Cell, cells.is_cell

-- The normalisation and the activation that the arguments ask for.
local function follow(self, name, a, normalisation)
  self.has_bn = check.boolean(name, "has_bn", a.has_bn)
  check.boolean(name, "after_fake", a.after_fake)
  if self.has_bn then
    self.batchnorm = normalisation(self.out_channels, { eps = a.eps, momentum = a.momentum })
  end
  if type(a.activation) == "string" then
    local is_leaky = a.activation:lower() == "leakyrelu"
    local alpha = check.number(name, "alpha", a.alpha)
    self.activation = is_leaky and activation.classes.LeakyReLU(alpha) or activation.activation_of(a.activation, name)
  elseif is_cell(a.activation) or type(a.activation) == "function" then
    self.activation = a.activation
  elseif a.activation ~= nil then
    fail(name, "activation must be a name, a cell or a function, got " .. describe(a.activation))
  end
end

local function finish(self, y)
  if self.has_bn then y = self.batchnorm(y) end
  if self.activation then y = self.activation(y) end
  return y
end

local rest = "has_bn=false, momentum=%s, eps=1e-5, activation=nil, alpha=0.2, after_fake=true, dtype=nil"

local Conv2dBnAct = layer(Cell, "Conv2dBnAct",
  "in_channels, out_channels, kernel_size, stride=1, pad_mode=\"same\", padding=0, dilation=1, group=1, has_bias=false, "
    .. "weight_init=nil, bias_init=nil, " .. rest:format("0.997"),
  [[A convolution (conv), where has_bn is true its batch normalisation (batchnorm), and an activation, as one cell.

The arguments are those of nn.Conv2d, nn.BatchNorm2d and the name of an activation. has_bn: whether the result is normalised.
alpha: the slope of "leakyrelu". after_fake: takes part in no computation.

  > ms.nn.Conv2dBnAct(3, 8, 3, { has_bn = true, activation = "relu" })(ms.ones { 1, 3, 6, 6 }).shape --> (1, 8, 6, 6)]])
function Conv2dBnAct:setup(a)
  self.conv = conv.Conv2d(a.in_channels, a.out_channels, a.kernel_size, {
    stride = a.stride, pad_mode = a.pad_mode, padding = a.padding, dilation = a.dilation, group = a.group,
    has_bias = a.has_bias, weight_init = a.weight_init, bias_init = a.bias_init, dtype = a.dtype,
  })
  self.out_channels = self.conv.out_channels
  follow(self, "Conv2dBnAct", a, norm.BatchNorm2d)
end
function Conv2dBnAct:construct(x)
  return finish(self, self.conv(x))
end

local DenseBnAct = layer(Cell, "DenseBnAct",
  "in_channels, out_channels, weight_init=nil, bias_init=nil, has_bias=true, " .. rest:format("0.9"),
  [[A fully connected layer (dense), where has_bn is true its batch normalisation (batchnorm), and an activation, as one cell.

The arguments are those of nn.Dense, nn.BatchNorm1d and the name of an activation. has_bn: whether the result is normalised.
alpha: the slope of "leakyrelu". after_fake: takes part in no computation.

  > ms.nn.DenseBnAct(3, 8, { has_bn = true, activation = "relu" })(ms.ones { 2, 3 }).shape --> (2, 8)]])
function DenseBnAct:setup(a)
  self.dense = basic.Dense(a.in_channels, a.out_channels, {
    weight_init = a.weight_init, bias_init = a.bias_init, has_bias = a.has_bias, dtype = a.dtype,
  })
  self.out_channels = self.dense.out_channels
  follow(self, "DenseBnAct", a, norm.BatchNorm1d)
end
function DenseBnAct:construct(x)
  return finish(self, self.dense(x))
end

return { Conv2dBnAct = Conv2dBnAct, DenseBnAct = DenseBnAct }
