-- Layers whose weights are distributions (Blundell et al. 2015): each call draws weights from the posterior, which is trained; what
-- keeps it close to the prior is the divergence of the two.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local activation = require "lunaria.nn.activation"
local conv = require "lunaria.nn.conv"
local init = require "lunaria.common.initializer"
local base = require "lunaria.probability.distribution"
local Normal = require("lunaria.probability.continuous").Normal

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell

local layers = {}

local NormalPrior = layer(Cell, "NormalPrior", "dtype=nil, mean=0, std=0.1",
  [[A fixed normal distribution of weights. mean, std: its mean and standard deviation. dtype: that of the results.

  > ms.probability.bnn_layers.NormalPrior()("sd"):item() --> 0.10000000149012]])
layers.NormalPrior = NormalPrior
function NormalPrior:setup(a) self.normal = Normal(a.mean, a.std, { dtype = a.dtype }) end
function NormalPrior:construct(...) return self.normal(...) end

local NormalPosterior = layer(Cell, "NormalPosterior",
  "name, shape, dtype=nil, loc_mean=0, loc_std=0.1, untransformed_scale_mean=-5, untransformed_scale_std=0.1",
  [[Normal distributions of weights whose means and spreads are trained; a spread is softplus of a parameter. name: what the
parameters' names begin with. shape: of the weights. loc_mean, loc_std: of the normal distribution from which the means are drawn
at first. untransformed_scale_mean, untransformed_scale_std: of that of the spreads' parameters.

  > ms.probability.bnn_layers.NormalPosterior("w", { 2, 3 })("sample").shape --> (2, 3)]])
layers.NormalPosterior = NormalPosterior

function NormalPosterior:setup(a)
  local name = "NormalPosterior"
  if type(a.name) ~= "string" then fail(name, "name must be a string, got " .. describe(a.name)) end
  for _, key in ipairs { "loc_mean", "untransformed_scale_mean" } do check.number(name, key, a[key]) end
  for _, key in ipairs { "loc_std", "untransformed_scale_std" } do check.number_not_negative(name, key, a[key]) end
  local function draw(mean, std, suffix)
    return ms.Parameter(init.initializer(init.Normal(std, mean), a.shape, a.dtype), a.name .. suffix)
  end
  self.mean = draw(a.loc_mean, a.loc_std, "_mean")
  self.untransformed_std = draw(a.untransformed_scale_mean, a.untransformed_scale_std, "_untransformed_std")
  self.normal = Normal { dtype = self.mean.dtype }
end

-- Above 0 also where softplus is not.
--- The means and the standard deviations.
---     > (ms.probability.bnn_layers.NormalPosterior("w", { 2, 3 }):parameters()).shape --> (2, 3)
function NormalPosterior:parameters() return self.mean, ops.softplus(self.untransformed_std) + 1e-6 end

function NormalPosterior:construct(name, ...)
  local mean, sd = self:parameters()
  if name == "get_dist_args" then return mean, sd end
  if name == "get_dist_type" then return "Normal" end
  if name == "sample" then return self.normal:sample((...) or {}, mean, sd) end
  if name == "mean" or name == "sd" or name == "var" or name == "entropy" or name == "mode" then return self.normal(name, mean, sd) end
  return self.normal(name, (...), mean, sd)
end

local function posterior(name, shape) return NormalPosterior(name, shape) end

-- The prior and the posterior of a parameter.
local function distributions(self, where, key, prior, make, shape)
  local function is_distribution(value) return class.is_a(value, base.Distribution) or cells.is_cell(value) end
  local function called(what, f, ...)
    if not arguments.is_callable(f) then
      fail(where, ("%s must be a function that gives a distribution, got %s"):format(what, describe(f)))
    end
    local value = f(...)
    if not is_distribution(value) then fail(where, ("%s must give a distribution, got %s"):format(what, describe(value))) end
    return value
  end
  self[key .. "_prior"] = called(key .. "_prior_fn", prior == nil and NormalPrior or prior)
  self[key .. "_posterior"] = called(key .. "_posterior_fn", make == nil and posterior or make, "bnn_" .. key, shape)
end

local function activation_of(where, value)
  if type(value) == "string" then return activation.activation_of(value, where) end
  if value == nil or cells.is_cell(value) or type(value) == "function" then return value end
  return fail(where, "activation must be a name, a function or a cell, got " .. describe(value))
end

local function divergence(self, key)
  local own = self[key .. "_posterior"]
  local mean, sd = own("get_dist_args")
  -- Of the posterior from the prior: the prior's parameters are those of the other distribution.
  local prior_mean, prior_sd = self[key .. "_prior"]("get_dist_args")
  return ops.sum(self.divergence:kl_loss("Normal", prior_mean, prior_sd, mean, sd))
end

-- The class of all that have a weight and perhaps a bias as distributions.
local Variational = Cell:extend("Variational")

--- The divergence of the posterior of all weights from their prior, a term of the loss.
function Variational:compute_kl_loss()
  local sum = divergence(self, "weight")
  return self.has_bias and sum + divergence(self, "bias") or sum
end

local priors = "weight_prior_fn=nil, weight_posterior_fn=nil, bias_prior_fn=nil, bias_posterior_fn=nil"

local function setup(self, where, a, shape)
  self.has_bias = check.boolean(where, "has_bias", a.has_bias)
  self.divergence = Normal()
  distributions(self, where, "weight", a.weight_prior_fn, a.weight_posterior_fn, shape)
  if self.has_bias then distributions(self, where, "bias", a.bias_prior_fn, a.bias_posterior_fn, { shape[1] }) end
end

local function dense(name, doc, construct)
  local made = class.define(Variational, name, "in_channels, out_channels, activation=nil, has_bias=true, " .. priors, doc)
  function made:setup(a)
    self.in_channels = check.positive(name, "in_channels", a.in_channels)
    self.out_channels = check.positive(name, "out_channels", a.out_channels)
    setup(self, name, a, { self.out_channels, self.in_channels })
    self.activation = activation_of(name, a.activation)
  end
  function made:construct(x)
    local y = construct(self, x)
    if self.has_bias then y = y + self.bias_posterior("sample") end
    return self.activation and self.activation(y) or y
  end
  function made:extend_repr()
    return ("in_channels=%d, out_channels=%d, has_bias=%s"):format(self.in_channels, self.out_channels, self.has_bias)
  end
  layers[name] = made
end

local of_priors = [[ weight_prior_fn, bias_prior_fn: functions
that give the prior, NormalPrior by default. weight_posterior_fn, bias_posterior_fn: functions of a name and a shape that give what
is trained, a NormalPosterior by default. cell:compute_kl_loss() is the divergence of the two, for the loss.]]

dense("DenseReparam", [[
A dense layer whose weights are drawn anew at each call. in_channels, out_channels: the sizes of input and result. activation:
what follows. has_bias: whether something is added.]] .. of_priors .. [[


  > ms.probability.bnn_layers.DenseReparam(3, 4)(ms.ones { 2, 3 }).shape
  (2, 4)]], function(self, x) return ops.dense(x, self.weight_posterior("sample")) end)

dense("DenseLocalReparam", [[
A dense layer with random weights that draws its results in place of the weights (Kingma, Salimans, Welling 2015), so that
samples of a batch are independent. in_channels, out_channels: the sizes of input and result. activation: what follows. has_bias:
whether something is added.]] .. of_priors .. [[


  > ms.probability.bnn_layers.DenseLocalReparam(3, 4)(ms.ones { 2, 3 }).shape
  (2, 4)]], function(self, x)
  local mean, sd = self.weight_posterior("get_dist_args")
  local middle, variance = ops.dense(x, mean), ops.dense(x ^ 2, sd ^ 2)
  return middle + ops.sqrt(variance + 1e-12) * ops.standard_normal(middle.shape)
end)

local ConvReparam = class.define(Variational, "ConvReparam", "in_channels, out_channels, kernel_size, stride=1, "
  .. "pad_mode=\"same\", padding=0, dilation=1, group=1, has_bias=false, " .. priors, [[
A convolution over pictures whose weights are drawn anew at each call; the arguments are those of nn.Conv2d.]] .. of_priors .. [[


  > ms.probability.bnn_layers.ConvReparam(3, 4, 3)(ms.ones { 1, 3, 8, 8 }).shape --> (1, 4, 8, 8)]])
layers.ConvReparam = ConvReparam

function ConvReparam:setup(a)
  -- The layer checks the arguments; its weight is not used.
  local plain = conv.Conv2d(a.in_channels, a.out_channels, a.kernel_size, { stride = a.stride, pad_mode = a.pad_mode, padding = a.padding,
    dilation = a.dilation, group = a.group })
  for _, key in ipairs { "in_channels", "out_channels", "kernel_size", "stride", "pad_mode", "padding", "dilation", "group" } do
    self[key] = plain[key]
  end
  setup(self, "ConvReparam", a, { self.out_channels, self.in_channels // self.group, self.kernel_size[1], self.kernel_size[2] })
end

function ConvReparam:construct(x)
  local bias = self.has_bias and self.bias_posterior("sample") or nil
  return ops.conv2d(x, self.weight_posterior("sample"), bias, self.stride, self.pad_mode, self.padding, self.dilation, self.group)
end

local WithBNNLossCell = layer(Cell, "WithBNNLossCell", "backbone, loss_fn, dnn_factor=1, bnn_factor=1",
  [[A network with Bayesian layers and its loss: dnn_factor times loss_fn(backbone(x), label) and bnn_factor times the divergences of
all its layers. backbone: the network. loss_fn: of scores and labels. dnn_factor, bnn_factor: numbers from 0 up; 1 over the number
of samples is usual for the second.

  > b = ms.probability.bnn_layers
  > net = b.DenseReparam(2, 1)
  > b.WithBNNLossCell(net, ms.nn.MSELoss(), 1, 0.01)(ms.ones { 4, 2 }, ms.ones { 4, 1 }).shape --> ()]])
layers.WithBNNLossCell = WithBNNLossCell
WithBNNLossCell.auto_prefix = false

function WithBNNLossCell:setup(a)
  local name = "WithBNNLossCell"
  if not cells.is_cell(a.backbone) then fail(name, "backbone must be a cell, got " .. describe(a.backbone)) end
  if not arguments.is_callable(a.loss_fn) then fail(name, "loss_fn must be a function or a cell, got " .. describe(a.loss_fn)) end
  self.dnn_factor = check.number_not_negative(name, "dnn_factor", a.dnn_factor)
  self.bnn_factor = check.number_not_negative(name, "bnn_factor", a.bnn_factor)
  self.backbone, self.loss_fn = a.backbone, a.loss_fn
  local list = {}
  for _, cell in a.backbone:cells_and_names() do
    if class.is_a(cell, Variational) then list[#list + 1] = cell end
  end
  rawset(self, "variational", list)
end

function WithBNNLossCell:construct(x, label)
  local loss = self.dnn_factor * self.loss_fn(self.backbone(x), label)
  for _, cell in ipairs(self.variational) do loss = loss + self.bnn_factor * cell:compute_kl_loss() end
  return loss
end

return layers
