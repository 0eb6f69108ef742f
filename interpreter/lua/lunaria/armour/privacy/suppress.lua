-- Suppressed privacy: a network trained so that it keeps few and small weights, which tell less of single samples of the training data.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local class = require "lunaria.nn.class"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local MaskLayerDes = class.define(nil, "MaskLayerDes",
  "layer_name, grad_idx, is_add_noise=false, is_lower_clip=true, min_num=0, upper_bound=1.2",
  [[How one parameter is suppressed. layer_name: the parameter's name, as "fc1.weight". grad_idx: its place among trainable_params(),
from 0, or -1 to find it by name. is_add_noise: whether numbers of at most 0.1 are added to its largest elements at the end. is_lower_clip:
whether its smallest elements become 0. min_num: so many elements stay in any case. upper_bound: no element's magnitude is larger.

  > ms.armour.privacy.sup_privacy.MaskLayerDes("fc1.weight", 0, false, true, 10).min_num --> 10]])
MaskLayerDes._called = "mask"

function MaskLayerDes:setup(a)
  local name = "MaskLayerDes"
  if type(a.layer_name) ~= "string" then fail(name, "layer_name must be the name of a parameter, got " .. describe(a.layer_name)) end
  if math.type(a.grad_idx) ~= "integer" or a.grad_idx < -1 then
    fail(name, "grad_idx must be a place from 0 on, or -1, got " .. describe(a.grad_idx))
  end
  self.layer_name, self.grad_idx = a.layer_name, a.grad_idx
  self.is_add_noise = check.boolean(name, "is_add_noise", a.is_add_noise)
  self.is_lower_clip = check.boolean(name, "is_lower_clip", a.is_lower_clip)
  self.min_num = check.not_negative(name, "min_num", a.min_num)
  self.upper_bound = check.number_positive(name, "upper_bound", a.upper_bound)
end

-- The control of the masks of one training.
local SuppressCtrl = class.define(nil, "SuppressCtrl",
  "networks, mask_layers, end_epoch=10, batch_num=20, start_epoch=3, mask_times=1000, lr=0.05, sparse_end=0.9, sparse_start=0.0, seed=nil",
  [[What ms.armour.privacy.sup_privacy.SuppressPrivacyFactory makes.]])
SuppressCtrl._called = "control"

-- The parameter of a mask.
local function parameter_of(name, params, mask)
  local by_place = mask.grad_idx >= 0 and params[mask.grad_idx + 1]
  if by_place and by_place.name == mask.layer_name then return by_place end
  local names = {}
  for i, p in ipairs(params) do
    names[i] = p.name
    if p.name == mask.layer_name then
      if mask.grad_idx < 0 then return p end
      fail(name, ("%s is parameter %d of the network, not %d"):format(mask.layer_name, i - 1, mask.grad_idx))
    end
  end
  return fail(name, ("the network has no parameter '%s'"):format(mask.layer_name), arguments.nearest(mask.layer_name, names))
end

function SuppressCtrl:setup(a)
  local name = "SuppressPrivacyFactory.create"
  local network = a.networks
  if type(network) ~= "table" or type(network.trainable_params) ~= "function" then
    fail(name, "networks must be a cell, got " .. describe(network))
  end
  if type(a.mask_layers) ~= "table" or #a.mask_layers == 0 then
    fail(name, "mask_layers must be a list of MaskLayerDes, got " .. describe(a.mask_layers))
  end
  for _, option in ipairs { "end_epoch", "batch_num", "start_epoch", "mask_times" } do
    self[option] = check.positive(name, option, a[option])
  end
  if self.end_epoch < self.start_epoch then
    fail(name, ("end_epoch must not be before start_epoch, %d, got %d"):format(self.start_epoch, self.end_epoch))
  end
  for _, option in ipairs { "sparse_start", "sparse_end" } do
    self[option] = check.finite_not_negative(name, option, a[option])
    if self[option] >= 1 then fail(name, ("%s is the share of zeros: below 1, got %s"):format(option, tostring(a[option]))) end
  end
  if self.sparse_end < self.sparse_start then fail(name, "sparse_end must not be less than sparse_start") end
  self.lr = check.number_positive(name, "lr", a.lr)
  self._draws = common.generator(a.seed, name)
  local params = network:trainable_params()
  self._masks = {}
  for i, mask in ipairs(a.mask_layers) do
    if not class.is_a(mask, MaskLayerDes) then fail(name, ("mask_layers[%d] must be a MaskLayerDes, got %s"):format(i, describe(mask))) end
    local p = parameter_of(name, params, mask)
    if mask.min_num > p.size then
      fail(name, ("min_num of %s is %d, and it has %d elements"):format(mask.layer_name, mask.min_num, p.size))
    end
    self._masks[i] = { des = mask, parameter = p, kept = ops.ones_like(p) }
  end
  -- Between the first and the last step in which masks change, mask_times of them do.
  self._first = (self.start_epoch - 1) * self.batch_num + 1
  self._last = self.end_epoch * self.batch_num
  self._every = math.max(1, (self._last - self._first + 1) // self.mask_times)
end

--- The share of zeros that is wanted after a step, from 1: it grows fast at first, s = end + (start - end) (1 - t / T)^3.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(4, 2))
---     > mask = ms.armour.privacy.sup_privacy.MaskLayerDes("0.weight", -1)
---     > options = { start_epoch = 1, end_epoch = 1, batch_num = 10 }
---     > ctrl = ms.armour.privacy.sup_privacy.SuppressPrivacyFactory.create(net, { mask }, "local_train", options)
---     > ctrl:sparsity(10) --> 0.9
function SuppressCtrl:sparsity(step)
  if step < self._first then return 0.0 end
  local rest = math.max(0.0, 1 - (step - self._first + 1) / (self._last - self._first + 1))
  return self.sparse_end + (self.sparse_start - self.sparse_end) * rest ^ 3
end

-- Zeros the smallest elements and bounds the others.
function SuppressCtrl:_mask(mask, sparsity)
  local p, des = mask.parameter, mask.des
  local size = ops.abs(p):reshape { -1 }
  if des.is_lower_clip then
    local zeros = math.min(math.floor(sparsity * p.size), p.size - des.min_num)
    if zeros > 0 then
      local order = ops.argsort(size)
      local kept = ops.tensor_scatter_update(ops.ones_like(size), order[{ ms.slice(0, zeros) }]:reshape { -1, 1 },
        ops.zeros({ zeros }, p.dtype))
      mask.kept = kept:reshape(p.shape)
    end
  end
end

-- After a step of training, counted from 1.
function SuppressCtrl:_after_step(step)
  if step < self._first then return end
  local changes = step <= self._last and (step - self._first) % self._every == 0 or step == self._last
  for _, mask in ipairs(self._masks) do
    if changes then self:_mask(mask, self:sparsity(step)) end
    local bound = mask.des.upper_bound
    mask.parameter:set_data(ops.clamp(mask.parameter * mask.kept, -bound, bound))
    if step == self._last and mask.des.is_add_noise then self:_add_noise(mask) end
  end
end

-- Numbers of at most 0.1 on the largest tenth of the elements that are left.
function SuppressCtrl:_add_noise(mask)
  local p = mask.parameter
  local size = ops.abs(p):reshape { -1 }
  local count = math.max(1, ops.sum(mask.kept):item() // 10 | 0)
  local least = (ops.topk(size, count))[count - 1]
  local noise = self._draws:uniform({ p.size }, -0.1, 0.1, p.dtype)
  local flat = p:reshape { -1 }
  p:set_data(ops.where(ops.greater_equal(size, least), flat + noise, flat):reshape(p.shape))
end

--- The share of zeros in each suppressed parameter now, by name.
function SuppressCtrl:shares()
  local shares = {}
  for _, mask in ipairs(self._masks) do
    shares[mask.des.layer_name] = ops.mean(ops.equal(mask.parameter, 0):astype(ms.float64)):item()
  end
  return shares
end

local SuppressPrivacyFactory = {}

local create_signature = arguments.signature("networks, mask_layers, policy=\"local_train\", end_epoch=10, batch_num=20, start_epoch=3, "
  .. "mask_times=1000, lr=0.05, sparse_end=0.9, sparse_start=0.0, seed=nil")

--- What controls the masks of a training, for SuppressModel and SuppressMasker. networks: the network. mask_layers: a list of MaskLayerDes.
--- policy: "local_train", the only one. From epoch start_epoch to epoch end_epoch, with batch_num steps each, the masks change mask_times
--- times (at most once a step), and the share of zeros grows from sparse_start to sparse_end. lr: the learning rate of a SuppressModel
--- that has no optimizer. seed: of the noise.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(4, 2))
---     > mask = ms.armour.privacy.sup_privacy.MaskLayerDes("0.weight", -1)
---     > ctrl = ms.armour.privacy.sup_privacy.SuppressPrivacyFactory.create(net, { mask })
---     > ctrl:shares()["0.weight"] --> 0.0
function SuppressPrivacyFactory.create(...)
  local a = arguments.bind("SuppressPrivacyFactory.create", create_signature, ...)
  check.choice("SuppressPrivacyFactory.create", "policy", a.policy, { "local_train" })
  a.policy = nil
  return SuppressCtrl(a.networks, a.mask_layers, { end_epoch = a.end_epoch, batch_num = a.batch_num, start_epoch = a.start_epoch,
    mask_times = a.mask_times, lr = a.lr, sparse_end = a.sparse_end, sparse_start = a.sparse_start, seed = a.seed })
end

local SuppressMasker = ms.train.Callback:extend("SuppressMasker")
SuppressMasker._parameters = "model, suppress_ctrl"
SuppressMasker._doc = [[The callback that keeps the masks of a control after each step of training; SuppressModel has it of its own.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 2))
  > sup = ms.armour.privacy.sup_privacy
  > ctrl = sup.SuppressPrivacyFactory.create(net, { sup.MaskLayerDes("0.weight", -1) })
  > masker = sup.SuppressMasker(ms.train.Model(net), ctrl)]]

function SuppressMasker:init(model, suppress_ctrl)
  model, suppress_ctrl = arguments.named("SuppressMasker", { "model", "suppress_ctrl" }, model, suppress_ctrl)
  if not class.is_a(model, ms.train.Model) then fail("SuppressMasker", "model must be a ms.train.Model, got " .. describe(model)) end
  if not class.is_a(suppress_ctrl, SuppressCtrl) then
    fail("SuppressMasker", "suppress_ctrl must be of SuppressPrivacyFactory.create, got " .. describe(suppress_ctrl))
  end
  self._ctrl = suppress_ctrl
end

function SuppressMasker:on_train_step_end(run) self._ctrl:_after_step(run:original_args().cur_step_num) end

local SuppressModel = ms.train.Model:extend("SuppressModel")
SuppressModel._doc = [[A ms.train.Model whose training keeps the masks of a control: model:link_suppress_ctrl(ctrl) before model:train. Its
arguments are those of ms.train.Model; any optimizer will do, since what has been masked is 0 again after each step.

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 2))
  > sup = ms.armour.privacy.sup_privacy
  > model = sup.SuppressModel(net, ms.nn.MSELoss(), ms.nn.SGD(net:trainable_params(), 0.01))
  > options = { start_epoch = 1, end_epoch = 2, batch_num = 1, sparse_end = 0.5 }
  > ctrl = sup.SuppressPrivacyFactory.create(net, { sup.MaskLayerDes("0.weight", 0) }, options)
  > model:link_suppress_ctrl(ctrl)
  > model:train(2, { { ms.ones { 1, 4 }, ms.ones { 1, 2 } } })
  > ctrl:shares()["0.weight"] --> 0.5]]

--- Has the trainings of the model keep the masks of suppress_ctrl, a control. A model with a loss and without an optimizer gets SGD
--- with the control's learning rate.
function SuppressModel:link_suppress_ctrl(suppress_ctrl)
  self._own_callback = SuppressMasker(self, suppress_ctrl)
  if self.optimizer == nil and self.loss_fn ~= nil then
    self.optimizer = ms.nn.SGD(self.network:trainable_params(), suppress_ctrl.lr)
    self.train_network = ms.amp.build_train_network(self.network, self.optimizer, { loss_fn = self.loss_fn })
  end
end

-- train and fit of a model whose control is linked.
for _, name in ipairs { "train", "fit" } do
  SuppressModel[name] = function(self, ...)
    if not self._own_callback then fail(name, "no control is linked", "model:link_suppress_ctrl(ctrl)") end
    return ms.train.Model[name](self, ...)
  end
end

return {
  MaskLayerDes = MaskLayerDes, SuppressMasker = SuppressMasker, SuppressModel = SuppressModel,
  SuppressPrivacyFactory = SuppressPrivacyFactory,
}
