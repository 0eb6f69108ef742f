-- Normalisation as cells.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local init = require "lunaria.common.initializer"
local gradients = require "lunaria.gradients"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell
local batch_norm, batch_norm_train, batch_norm_update = ops.batch_norm, ops.batch_norm_train, ops.batch_norm_update
local layer_norm, group_norm, instance_norm = ops.layer_norm, ops.group_norm, ops.instance_norm

local signature = "num_features, eps=1e-5, momentum=0.9, affine=true, gamma_init=\"ones\", beta_init=\"zeros\", "
  .. "moving_mean_init=\"zeros\", moving_var_init=\"ones\", use_batch_statistics=nil, data_format=\"NCHW\", dtype=nil"

-- The group of this rank among those of process_groups, a list of lists of ranks.
local function group_of(name, groups)
  if type(groups) ~= "table" then
    fail(name, "process_groups must be a table of tables of process numbers, got " .. describe(groups))
  end
  local own
  for i = 1, #groups do
    for _, process in ipairs(type(groups[i]) == "table" and groups[i] or { false }) do
      if math.type(process) ~= "integer" or process < 0 or process >= gradients.ranks() then
        local count = gradients.ranks()
        fail(name, ("process_groups[%d] has %s: there %s"):format(i, describe(process or groups[i]),
          count == 1 and "is one process, 0" or ("are processes 0 to %d"):format(count - 1)))
      end
      if process == gradients.rank() then own = groups[i] end
    end
  end
  if #groups > 0 and not own then fail(name, ("process_groups has no group with process %d"):format(gradients.rank())) end
  return own
end

-- The statistics of the batches of several ranks, and what they make of this rank's rows. Two passes, as for one batch: the squares of
-- what is far from 0 have no digits left for the variance.
local function normalise_together(self, x)
  local axes, shape = { 0 }, { 1, self.num_features }
  for axis = 2, x.ndim - 1 do axes[#axes + 1], shape[axis + 1] = axis, 1 end
  local group = self.group
  local own = x.size // self.num_features
  local sums = ops.all_reduce(ops.concat({ ops.sum(x, axes), ops.full({ 1 }, own, x.dtype) }, 0), "sum", group)
  local count = sums[{ ms.slice(self.num_features, nil) }]
  local mean = sums[{ ms.slice(0, self.num_features) }] / count
  local centred = x - ops.reshape(mean, shape)
  local variance = ops.all_reduce(ops.sum(ops.square(centred), axes), "sum", group) / count
  local y = centred * ops.reshape(ops.rsqrt(variance + self.eps) * self.gamma, shape) + ops.reshape(self.beta, shape)
  return y, mean, variance, own * self.group_size
end

local function batch_norm_class(name, least, most, doc, parameters)
  local class = layer(Cell, name, parameters or signature, doc)
  -- Whether the statistics are those of several ranks.
  class.together = parameters ~= nil
  class._full_precision = true
  function class:setup(a)
    self.num_features = check.positive(name, "num_features", a.num_features)
    self.eps = check.number_not_negative(name, "eps", a.eps)
    self.momentum = check.probability(name, "momentum", a.momentum)
    self.affine = check.boolean(name, "affine", a.affine)
    if a.use_batch_statistics ~= nil then
      self.use_batch_statistics = check.boolean(name, "use_batch_statistics", a.use_batch_statistics)
    end
    if class.together then
      local own = a.process_groups ~= nil and group_of(name, a.process_groups) or nil
      self.group, self.group_size = "", gradients.ranks()
      if own and #own < self.group_size then
        self.group, self.group_size = "batch_norm_" .. table.concat(own, "_"), #own
        ms.communication.create_group(self.group, own)
      end
    end
    if a.data_format ~= nil and a.data_format ~= "NCHW" then
      fail(name, "data_format must be 'NCHW', got " .. describe(a.data_format))
    end
    local shape = { self.num_features }
    self.moving_mean = ms.Parameter(init.initializer(a.moving_mean_init, shape, a.dtype), "mean", false)
    self.moving_variance = ms.Parameter(init.initializer(a.moving_var_init, shape, a.dtype), "variance", false)
    self.gamma = ms.Parameter(init.initializer(a.gamma_init, shape, a.dtype), "gamma", self.affine)
    self.beta = ms.Parameter(init.initializer(a.beta_init, shape, a.dtype), "beta", self.affine)
  end
  function class:construct(x)
    local rank = ms.is_tensor(x) and x.ndim
    if not rank then
      fail(name, "the input must be a tensor, got " .. describe(x))
    elseif rank < least or rank > most then
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
    local y, mean, variance, count
    if class.together and self.group_size > 1 then
      y, mean, variance, count = normalise_together(self, x)
    else
      y, mean, variance = batch_norm_train(x, self.gamma, self.beta, self.eps)
      count = x.size // self.num_features
    end
    if self.training then batch_norm_update(self.moving_mean, self.moving_variance, mean, variance, self.momentum, count) end
    return y
  end
  function class:extend_repr()
    return ("num_features=%d, eps=%s, momentum=%s, affine=%s"):format(self.num_features, self.eps, self.momentum, self.affine)
  end
  return class
end

local LayerNorm = layer(Cell, "LayerNorm",
  "normalized_shape, begin_norm_axis=-1, begin_params_axis=-1, gamma_init=\"ones\", beta_init=\"zeros\", epsilon=1e-7, dtype=nil",
  [[Shifts and scales the last axes, whose sizes are normalized_shape, to mean 0 and variance 1, then applies gamma and beta.
  > ms.nn.LayerNorm({ 4 })(ms.ones { 2, 4 }):sum():item() --> 0.0]])

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
  [[Normalises each group of channels (axis 1) of each sample, then applies gamma and beta per channel.
  > ms.nn.GroupNorm(2, 4)(ms.ones { 2, 4, 3, 3 }).shape --> (2, 4, 3, 3)]])

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

local function instance_norm_class(axes, form, shape)
  local name = ("InstanceNorm%dd"):format(axes)
  local class = layer(Cell, name, "num_features, eps=1e-5, momentum=0.1, affine=true, gamma_init=\"ones\", beta_init=\"zeros\", dtype=nil",
    ([[Normalises each channel of each sample of %s over its own elements, then applies gamma and beta per channel.

In training and evaluation alike; momentum takes part in no computation and is there for programs written for MindSpore.

  > ms.nn.%s(3)(ms.ones { %s }).shape
  (%s)]]):format(form, name, shape, shape))
  class._full_precision = true
  function class:setup(a)
    self.num_features = check.positive(name, "num_features", a.num_features)
    self.eps = check.number_not_negative(name, "eps", a.eps)
    self.momentum = check.probability(name, "momentum", a.momentum)
    self.affine = check.boolean(name, "affine", a.affine)
    local sizes = { self.num_features }
    self.gamma = ms.Parameter(init.initializer(a.gamma_init, sizes, a.dtype), "gamma", self.affine)
    self.beta = ms.Parameter(init.initializer(a.beta_init, sizes, a.dtype), "beta", self.affine)
  end
  function class:construct(x)
    if not ms.is_tensor(x) or x.ndim ~= axes + 2 then
      fail(name, ("the input must have %d axes, %s, got %s"):format(axes + 2, form, describe(x)))
    elseif x.shape[2] ~= self.num_features then
      fail(name, ("axis 1 of the input must be num_features (%d), the input has shape %s"):format(self.num_features, tostring(x.shape)))
    end
    return instance_norm(x, self.gamma, self.beta, self.eps)
  end
  function class:extend_repr()
    return ("num_features=%d, eps=%s, momentum=%s, affine=%s"):format(self.num_features, self.eps, self.momentum, self.affine)
  end
  return class
end

local LRN = layer(Cell, "LRN", "depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region=\"ACROSS_CHANNELS\"",
  [[Local response normalisation (Krizhevsky and others 2012): x / (bias + alpha s)^beta, where s sums the squares of
2 depth_radius + 1 neighbouring channels. bias: what is added to the sum. alpha: the factor of the sum. beta: the power.

  > ms.nn.LRN(1, 3.0)(ms.ones { 1, 1 }):tolist()[1][1] --> 0.5]])
function LRN:setup(a)
  self.depth_radius = check.not_negative("LRN", "depth_radius", a.depth_radius)
  for _, which in ipairs { "bias", "alpha", "beta" } do
    self[which] = check.number("LRN", which, a[which])
  end
  self.norm_region = check.choice("LRN", "norm_region", a.norm_region, { "ACROSS_CHANNELS" })
end
function LRN:construct(x)
  return ops.lrn(x, self.depth_radius, self.bias, self.alpha, self.beta, self.norm_region)
end
function LRN:extend_repr()
  return ("depth_radius=%d, bias=%s, alpha=%s, beta=%s"):format(self.depth_radius, self.bias, self.alpha, self.beta)
end

local about = [[Normalises each channel (axis 1) over the batch, then applies gamma and beta per channel.

In training (net:set_train()) with the statistics of the batch, which move moving_mean and moving_variance by 1 - momentum;
otherwise with these. use_batch_statistics says which, whatever the mode.]]

return {
  BatchNorm1d = batch_norm_class("BatchNorm1d", 2, 3, about .. [[ The input is (N, C) or (N, C, L).
  > ms.nn.BatchNorm1d(3)(ms.ones { 2, 3 }).shape --> (2, 3)]]),
  BatchNorm2d = batch_norm_class("BatchNorm2d", 4, 4, about .. [[ The input is (N, C, H, W).
  > ms.nn.BatchNorm2d(3)(ms.ones { 2, 3, 4, 4 }).shape --> (2, 3, 4, 4)]]),
  BatchNorm3d = batch_norm_class("BatchNorm3d", 5, 5, about .. [[ The input is (N, C, D, H, W).
  > ms.nn.BatchNorm3d(3)(ms.ones { 2, 3, 4, 4, 4 }).shape --> (2, 3, 4, 4, 4)]]),
  SyncBatchNorm = batch_norm_class("SyncBatchNorm", 2, 5, about .. [[ The statistics are those of the batches of all processes;
with one process they are those of its batch. process_groups: lists of the processes that share statistics, of which each process
is in one.

  > ms.nn.SyncBatchNorm(3)(ms.ones { 2, 3, 4, 4 }).shape
  (2, 3, 4, 4)]], (signature:gsub("data_format=\"NCHW\"", "process_groups=nil"))),
  InstanceNorm1d = instance_norm_class(1, "(N, C, L)", "2, 3, 4"),
  InstanceNorm2d = instance_norm_class(2, "(N, C, H, W)", "2, 3, 4, 4"),
  InstanceNorm3d = instance_norm_class(3, "(N, C, D, H, W)", "2, 3, 2, 4, 4"),
  LRN = LRN,
  LayerNorm = LayerNorm,
  GroupNorm = GroupNorm,
}
