-- Normalisation as cells.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local init = require "lunaria.common.initializer"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell
local batch_norm, batch_norm_train, batch_norm_update = ops.batch_norm, ops.batch_norm_train, ops.batch_norm_update
local layer_norm, group_norm = ops.layer_norm, ops.group_norm

local function batch_norm_class(name, least, most, doc)
  local class = layer(Cell, name,
    "num_features, eps=1e-5, momentum=0.9, affine=true, gamma_init=\"ones\", beta_init=\"zeros\", moving_mean_init=\"zeros\", "
      .. "moving_var_init=\"ones\", use_batch_statistics=nil, data_format=\"NCHW\", dtype=nil", doc)
  class._full_precision = true
  function class:setup(a)
    self.num_features = check.positive(name, "num_features", a.num_features)
    self.eps = check.number_not_negative(name, "eps", a.eps)
    self.momentum = check.probability(name, "momentum", a.momentum)
    self.affine = check.boolean(name, "affine", a.affine)
    if a.use_batch_statistics ~= nil then
      self.use_batch_statistics = check.boolean(name, "use_batch_statistics", a.use_batch_statistics)
    end
    if a.data_format ~= "NCHW" then
      fail(name, "data_format must be 'NCHW', got " .. describe(a.data_format))
    end
    local shape = { self.num_features }
    self.moving_mean = ms.Parameter(init.initializer(a.moving_mean_init, shape, a.dtype), "mean", false)
    self.moving_variance = ms.Parameter(init.initializer(a.moving_var_init, shape, a.dtype), "variance", false)
    self.gamma = ms.Parameter(init.initializer(a.gamma_init, shape, a.dtype), "gamma", self.affine)
    self.beta = ms.Parameter(init.initializer(a.beta_init, shape, a.dtype), "beta", self.affine)
  end
  function class:construct(x)
    local rank = x.ndim
    if rank < least or rank > most then
      local wanted = least == most and least or least .. " or " .. most
      fail(name, ("the input must have %s axes, got shape %s"):format(wanted, tostring(x.shape)))
    end
    local of_batch = self.use_batch_statistics
    if of_batch == nil then
      of_batch = self.training
    end
    if not of_batch then
      return batch_norm(x, self.moving_mean, self.moving_variance, self.gamma, self.beta, false, 0.1, self.eps)
    end
    local y, mean, variance = batch_norm_train(x, self.gamma, self.beta, self.eps)
    if self.training then
      batch_norm_update(self.moving_mean, self.moving_variance, mean, variance, self.momentum, x.size // self.num_features)
    end
    return y
  end
  function class:extend_repr()
    return ("num_features=%d, eps=%s, momentum=%s, affine=%s"):format(self.num_features, self.eps, self.momentum, self.affine)
  end
  return class
end

local LayerNorm = layer(Cell, "LayerNorm",
  "normalized_shape, begin_norm_axis=-1, begin_params_axis=-1, gamma_init=\"ones\", beta_init=\"zeros\", epsilon=1e-7, dtype=nil",
  "Shifts and scales the last axes, whose sizes are normalized_shape, to mean 0 and variance 1, then applies gamma and beta.")

function LayerNorm:setup(a)
  local shape = a.normalized_shape
  if math.type(shape) then
    shape = { shape }
  elseif type(shape) ~= "table" or #shape == 0 then
    fail("LayerNorm", "normalized_shape must be a table of sizes that is not empty, got " .. describe(shape))
  end
  self.normalized_shape = check.sizes("LayerNorm", "normalized_shape", shape, #shape, 1)
  self.epsilon = check.number_not_negative("LayerNorm", "epsilon", a.epsilon)
  self.begin_norm_axis = check.integer("LayerNorm", "begin_norm_axis", a.begin_norm_axis)
  self.begin_params_axis = check.integer("LayerNorm", "begin_params_axis", a.begin_params_axis)
  self.gamma = ms.Parameter(init.initializer(a.gamma_init, self.normalized_shape, a.dtype), "gamma")
  self.beta = ms.Parameter(init.initializer(a.beta_init, self.normalized_shape, a.dtype), "beta")
  -- The everyday case: the axes that are normalised are those that have weights.
  self.plain = self.begin_norm_axis == self.begin_params_axis
    and (self.begin_norm_axis >= 0 or self.begin_norm_axis == -#self.normalized_shape)
end

function LayerNorm:construct(x)
  if self.plain then
    return layer_norm(x, self.normalized_shape, self.gamma, self.beta, self.epsilon)
  end
  local shape, rank = x.shape, x.ndim
  local first = self.begin_norm_axis % rank
  local sizes = {}
  for i = first + 1, rank do
    sizes[#sizes + 1] = shape[i]
  end
  return layer_norm(x, sizes, nil, nil, self.epsilon) * self.gamma + self.beta
end

function LayerNorm:extend_repr()
  return ("normalized_shape=(%s), begin_norm_axis=%d, begin_params_axis=%d, epsilon=%s"):format(
    table.concat(self.normalized_shape, ", "), self.begin_norm_axis, self.begin_params_axis, self.epsilon)
end

local GroupNorm = layer(Cell, "GroupNorm",
  "num_groups, num_channels, eps=1e-5, affine=true, gamma_init=\"ones\", beta_init=\"zeros\", dtype=nil",
  "Normalises each group of channels (axis 1) of each sample, then applies gamma and beta per channel.")

function GroupNorm:setup(a)
  self.num_groups = check.positive("GroupNorm", "num_groups", a.num_groups)
  self.num_channels = check.positive("GroupNorm", "num_channels", a.num_channels)
  if self.num_channels % self.num_groups ~= 0 then
    fail("GroupNorm", ("num_channels (%d) must be divisible by num_groups (%d)"):format(self.num_channels, self.num_groups))
  end
  self.eps = check.number_not_negative("GroupNorm", "eps", a.eps)
  self.affine = check.boolean("GroupNorm", "affine", a.affine)
  local shape = { self.num_channels }
  self.gamma = ms.Parameter(init.initializer(a.gamma_init, shape, a.dtype), "gamma", self.affine)
  self.beta = ms.Parameter(init.initializer(a.beta_init, shape, a.dtype), "beta", self.affine)
end

function GroupNorm:construct(x)
  return group_norm(x, self.num_groups, self.gamma, self.beta, self.eps)
end

function GroupNorm:extend_repr()
  return ("num_groups=%d, num_channels=%d, eps=%s, affine=%s"):format(self.num_groups, self.num_channels, self.eps, self.affine)
end

local about = [[Normalises each channel (axis 1) over the batch, then applies gamma and beta per channel.

In training (net:set_train()) with the statistics of the batch, which move moving_mean and moving_variance by 1 - momentum;
otherwise with these. use_batch_statistics says which, whatever the mode.]]

return {
  BatchNorm1d = batch_norm_class("BatchNorm1d", 2, 3, about .. " The input is (N, C) or (N, C, L)."),
  BatchNorm2d = batch_norm_class("BatchNorm2d", 4, 4, about .. " The input is (N, C, H, W)."),
  BatchNorm3d = batch_norm_class("BatchNorm3d", 5, 5, about .. " The input is (N, C, D, H, W)."),
  LayerNorm = LayerNorm,
  GroupNorm = GroupNorm,
}
