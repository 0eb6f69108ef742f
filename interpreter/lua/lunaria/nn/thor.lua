-- A second-order optimizer: the curvature of a layer is taken as the product of the covariance of its inputs with that of
-- the gradients of its results (Martens, Grosse 2015; Chen and others 2020). Hooks of the layers collect both.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local base = require "lunaria.nn.optim"
local basic = require "lunaria.nn.basic"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local conv = require "lunaria.nn.conv"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local thor = base.layer("thor",
  "net, learning_rate, damping, momentum, weight_decay=0.0, loss_scale=1.0, batch_size=32, use_nesterov=false, decay_filter=nil, "
    .. "split_indices=nil, enable_clip_grad=false, frequency=100",
  [[Second-order descent for the network net: the gradient g of the weight of each nn.Dense and nn.Conv2d without groups becomes
(G + sqrt(damping) I)^-1 g (A + sqrt(damping) I)^-1 before a step with momentum. A is the covariance of the layer's inputs, G that of the
gradients of its results; other parameters keep their gradients. The loss is a mean over the batch.

damping: a number, a list with one for each step, or a function of the step. batch_size: the number of samples of a batch.
decay_filter: a function that says of a parameter whether it decays; all do by default. split_indices: nil, as there is one process to
which layers belong. enable_clip_grad: whether the norm of all new gradients is at most 1. frequency: the number of steps between two
computations of the inverses.

  > net = ms.nn.Dense(2, 3)
  > opt = ms.nn.thor(net, 0.1, 0.03, 0.9, { batch_size = 4, frequency = 1 })
  > _, grads = ms.value_and_grad(function(x) return ms.ops.mean(net(x) ^ 2) end, nil, net:trainable_params())(ms.ones { 4, 2 })
  > opt(grads) --> true]])

-- Rows of inputs and of gradients as the weight's second and first axis see them, and over how many rows they are.
local function dense_rows(x, size) return ops.reshape(x, { -1, size }) end

local function conv_rows(cell, x)
  local before = cell.pad_mode == "pad" and cell.padding or { 0, 0, 0, 0 }
  if #before == 2 then before = { before[1], before[1], before[2], before[2] } end
  local amounts = { before[3], before[4], before[1], before[2] }
  if cell.pad_mode == "same" then
    for axis = 1, 2 do
      local size, stride = x.shape[axis + 2], cell.stride[axis]
      local window = (cell.kernel_size[axis] - 1) * cell.dilation[axis] + 1
      local total = math.max(0, ((size + stride - 1) // stride - 1) * stride + window - size)
      amounts[5 - 2 * axis], amounts[6 - 2 * axis] = total // 2, total - total // 2
    end
  end
  local columns = ops.unfold(ops.pad(x, amounts), cell.kernel_size, cell.dilation, 0, cell.stride)
  return ops.reshape(ops.transpose(columns, { 0, 2, 1 }), { -1, columns.shape[2] })
end

-- The covariances of a layer are collected where the next step computes inverses.
local function watch(self, path, cell, is_conv)
  local weight = cell.weight
  local outputs, inputs = weight.shape[1], weight.size // weight.shape[1]
  local layer = {}
  for key, size in pairs { a = inputs, g = outputs, a_inverse = inputs, g_inverse = outputs } do
    local name = ("matrix_%s.%s"):format(key, path)
    layer[key] = ms.Parameter(ops.zeros({ size, size }, weight.dtype):to(weight.device), name, false)
    self:insert_param_to_cell(name, layer[key])
  end
  self.layers[weight] = layer
  local function is_wanted() return self.global_step % self.frequency == 0 end
  cell:register_forward_pre_hook(function(_, x)
    if cell.training and is_wanted() then
      x = ops.stop_gradient(x)
      local rows = is_conv and conv_rows(cell, x) or dense_rows(x, inputs)
      layer.a:assign(ops.matmul(rows.T, rows) / (is_conv and x.shape[1] or rows.shape[1]))
    end
  end)
  cell:register_backward_pre_hook(function(_, gradients)
    if cell.training and is_wanted() then
      local d = gradients[1]
      local rows = dense_rows(is_conv and ops.transpose(d, { 0, 2, 3, 1 }) or d, outputs)
      local scale = (self.batch_size / self.loss_scale) ^ 2
      layer.g:assign(ops.matmul(rows.T, rows) * (scale / rows.shape[1]))
    end
  end)
end

function thor:setup(a)
  if not cells.is_cell(a.net) then fail("thor", "net must be a cell, got " .. describe(a.net)) end
  a.params = a.net:trainable_params()
  base.setup(self, a, "learning_rate")
  self.damping = base.learning_rate("thor", "damping", a.damping)
  self.momentum = check.number_not_negative("thor", "momentum", a.momentum)
  self.loss_scale = base.scale_of("thor", a)
  self.batch_size = check.positive("thor", "batch_size", a.batch_size)
  self.use_nesterov = check.boolean("thor", "use_nesterov", a.use_nesterov)
  self.enable_clip_grad = check.boolean("thor", "enable_clip_grad", a.enable_clip_grad)
  self.frequency = check.positive("thor", "frequency", a.frequency)
  if a.split_indices ~= nil then fail("thor", "split_indices must be nil: gradients are not cut over processes here") end
  if a.decay_filter ~= nil and not arguments.is_callable(a.decay_filter) then
    fail("thor", "decay_filter must be a function of a parameter, got " .. describe(a.decay_filter))
  end
  local group = self.param_groups[1]
  group.moments = base.moments(self, group, "moments")
  group.decayed = {}
  for i, p in ipairs(group.params) do group.decayed[i] = a.decay_filter == nil or a.decay_filter(p) and true or false end
  rawset(self, "layers", {})
  for path, cell in a.net:cells_and_names() do
    local is_conv = class.is_a(cell, conv.Conv2d)
    if (class.is_a(cell, basic.Dense) or is_conv and cell.group == 1) and cell.weight.requires_grad then
      watch(self, path, cell, is_conv)
    end
  end
end

function thor:update(group, grads, rate, weight_decay, step)
  local damping = self.damping
  if not math.type(damping) then damping = base.rate_at("thor", "damping", damping, step - 1) end
  local list = {}
  for i, p in ipairs(group.params) do
    local layer, g = self.layers[p], grads[i]
    if layer then
      if (step - 1) % self.frequency == 0 then
        for _, key in ipairs { "a", "g" } do
          local matrix = layer[key]
          local size = matrix.shape[1]
          layer[key .. "_inverse"]:assign(ops.inverse(matrix + math.sqrt(damping) * ops.eye(size, size, matrix.dtype)))
        end
      end
      local flat = ops.reshape(g, { p.shape[1], -1 })
      g = ops.reshape(ops.matmul(ops.matmul(layer.g_inverse, flat), layer.a_inverse), p.shape)
    end
    list[i] = g
  end
  if self.enable_clip_grad then list = { ops.clip_by_global_norm(list, 1.0) } end
  ops.apply_momentum(group.params, list, group.moments, rate, self.momentum, 0.0, weight_decay, self.use_nesterov, group.decayed, "thor")
end

return { thor = thor }
