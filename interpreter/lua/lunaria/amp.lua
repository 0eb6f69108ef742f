-- ms.amp: mixed precision. Networks compute in float16 or bfloat16 while their parameters stay float32; losses are scaled so
-- that small gradients are not lost in float16, and steps whose gradients overflow are left out.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local amp = {}

-- Some devices saturate where others give infinities, and keep in a flag that they did.
local function without_overflow(finite)
  return finite.device == "CPU" and finite or ops.without_overflow(finite)
end

local function finite_elements(inputs)
  if ms.is_tensor(inputs) then return ops.all(ops.isfinite(inputs)) end
  if type(inputs) ~= "table" or getmetatable(inputs) ~= nil then
    fail("all_finite", "a tensor or a table of tensors is expected, got " .. describe(inputs))
  end
  local result
  local function add(list)
    for i = 1, #list do
      local item = list[i]
      if type(item) == "table" and not ms.is_tensor(item) then
        add(item)
      else
        local finite = finite_elements(item)
        result = result and ops.logical_and(result, finite) or finite
      end
    end
  end
  add(inputs)
  return result or ms.tensor(true)
end

--- Whether all elements of tensors (one, or a list, also a nested one) are finite: a tensor of one boolean. False as well where the
--- device of the tensors met an overflow since this was asked the last time.
---
--- It says whether an optimizer should step. What the forward pass has moved by then, the running means and variances of
--- normalisations, has moved all the same: a loop of one's own keeps copies of them and assigns these back, as
--- nn.TrainOneStepWithLossScaleCell does.
---     > ms.amp.all_finite({ ms.tensor { 1.0, 2.0 }, ms.tensor { 1 / 0 } }):item() --> false
function amp.all_finite(inputs) return without_overflow(finite_elements(inputs)) end

local LossScaler = class.Object:extend("LossScaler")
LossScaler._parameters = ""
LossScaler._doc = [[What scalers of losses have: scale(x), unscale(x), adjust(grads_finite).

  > ms.amp.StaticLossScaler(8.0):scale(ms.tensor { 0.5 }):tolist()[1] --> 4.0
  > ms.amp.StaticLossScaler(64):scale(ms.tensor(0.5)):item() --> 32.0]]
amp.LossScaler = LossScaler

-- A tensor, or a list of such, times a factor.
local function times(where, inputs, factor)
  if ms.is_tensor(inputs) then return inputs * factor:astype(inputs.dtype) end
  if type(inputs) ~= "table" or getmetatable(inputs) ~= nil then
    fail(where, "a tensor or a table of tensors is expected, got " .. describe(inputs))
  end
  local list = {}
  for i = 1, #inputs do list[i] = times(where, inputs[i], factor) end
  return list
end

--- A loss, or a list of them, times the scale. inputs: a tensor or a table of tensors.
---     > ms.amp.StaticLossScaler(8.0):scale({ ms.tensor { 0.5 } })[1]:tolist()[1] --> 4.0
function LossScaler:scale(inputs) return times("scale", inputs, self.scale_value) end

--- Gradients, or a list of them, over the scale. inputs: a tensor or a table of tensors.
---     > ms.amp.StaticLossScaler(8.0):unscale(ms.tensor { 4.0 }):tolist()[1] --> 0.5
function LossScaler:unscale(inputs) return times("unscale", inputs, ops.reciprocal(self.scale_value)) end

--- Adapts the scale to whether the gradients were finite. grads_finite: a tensor of one boolean, as ms.amp.all_finite gives.
---     > ms.amp.DynamicLossScaler(8.0, 2, 100):adjust(ms.tensor(false)):item() --> 4.0
function LossScaler:adjust(grads_finite) return self.scale_value end -- luacheck: ignore 212

--- The scale and what was counted, for a checkpoint.
---     > ms.amp.StaticLossScaler(8.0):state_dict().scale_value:item() --> 8.0
function LossScaler:state_dict()
  return { scale_value = self.scale_value:copy(), counter = self.counter and self.counter:copy() or nil }
end

--- Takes up what state_dict gave. state: a table of tensors.
---     > scaler = ms.amp.StaticLossScaler(8.0)
---     > scaler:load_state_dict(ms.amp.StaticLossScaler(2.0):state_dict())
---     > scaler.scale_value:item() --> 2.0
function LossScaler:load_state_dict(state)
  if type(state) ~= "table" or not ms.is_tensor(state.scale_value) then
    fail(getmetatable(self)._name, "the state must be what state_dict gave, got " .. describe(state))
  end
  self.scale_value:assign(state.scale_value)
  if self.counter and state.counter then self.counter:assign(state.counter) end
end

amp.StaticLossScaler = class.define(LossScaler, "StaticLossScaler", "scale_value",
  [[Scales losses by a fixed number. scale_value: the number.

  > ms.amp.StaticLossScaler(1024.0):scale(ms.tensor { 0.5 }):tolist()[1] --> 512.0]])
function amp.StaticLossScaler:setup(a)
  local value = check.number_positive("StaticLossScaler", "scale_value", a.scale_value)
  self.scale_value = ms.Parameter(ms.tensor(value, ms.float32), "scale_value", false)
end

amp.DynamicLossScaler = class.define(LossScaler, "DynamicLossScaler", "scale_value, scale_factor, scale_window",
  [[Scales losses by a number that adapts: adjust(finite) divides it by scale_factor, down to 1, after gradients that were not
finite, and multiplies it after scale_window steps with finite ones. scale_value: the number at first.

In a loop of one's own a step that is thrown away has moved the running means and variances of normalisations, in the forward pass:
the loop assigns back what they were before, or nn.TrainOneStepWithLossScaleCell does the step, which does that.

  > scaler = ms.amp.DynamicLossScaler(8.0, 2, 1)
  > scaler:adjust(ms.tensor(true)):item() --> 16.0
  > ms.amp.DynamicLossScaler(1024, 2, 50):scale(ms.tensor(0.5)):item() --> 512.0]])
function amp.DynamicLossScaler:setup(a)
  local name = "DynamicLossScaler"
  local value = check.number_positive(name, "scale_value", a.scale_value)
  self.scale_factor = check.number_positive(name, "scale_factor", a.scale_factor)
  self.scale_window = check.positive(name, "scale_window", a.scale_window)
  self.scale_value = ms.Parameter(ms.tensor(value, ms.float32), "scale_value", false)
  self.counter = ms.Parameter(ms.tensor(0), "counter", false)
end
--- Adapts the scale; grads_finite: a tensor of one boolean, as all_finite gives, or a boolean.
function amp.DynamicLossScaler:adjust(grads_finite)
  if type(grads_finite) == "boolean" then grads_finite = ms.tensor(grads_finite) end
  if not ms.is_tensor(grads_finite) or grads_finite.size ~= 1 then
    fail("adjust", "grads_finite must be a tensor of one boolean, got " .. describe(grads_finite))
  end
  local finite, scale, counter = ops.reshape(grads_finite, {}), self.scale_value, self.counter
  local grown = scale * self.scale_factor
  local due = ops.logical_and(ops.equal(counter, self.scale_window - 1), ops.isfinite(grown))
  local next_scale = ops.where(finite, ops.where(due, grown, scale), ops.maximum(scale / self.scale_factor, 1.0))
  local next_count = (counter + 1) % self.scale_window * finite:astype(ms.int64)
  scale:assign(next_scale)
  counter:assign(next_count)
  return scale
end

local white, black = { "Conv1d", "Conv2d", "Conv3d", "Conv1dTranspose", "Conv2dTranspose", "Conv3dTranspose", "Dense", "LSTMCell",
  "RNNCell", "GRUCell" }, { "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm" }

local function classes_named(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = ms.nn[name] end
  return list
end

--- The cells that compute in the lower precision at the levels O1 and auto: a list of classes.
---     > ms.amp.get_white_list()[1]._name --> Conv1d
function amp.get_white_list() return classes_named(white) end

--- The cells that stay in float32 at the level O2: a list of classes.
---     > ms.amp.get_black_list()[1]._name --> BatchNorm1d
function amp.get_black_list() return classes_named(black) end

local function set_of(name, what, list)
  local set = {}
  if type(list) ~= "table" or cells.is_cell(list) then
    fail(name, ("%s must be a list of cell classes, got %s"):format(what, describe(list)))
  end
  for i = 1, #list do
    if type(list[i]) ~= "table" or not rawget(list[i], "_is_class") then
      fail(name, ("%s[%d] must be a class of cells, got %s"):format(what, i, describe(list[i])))
    end
    set[list[i]] = true
  end
  return set
end

local function network_of(name, network)
  if not cells.is_cell(network) then fail(name, "network must be a cell, got " .. describe(network)) end
  return network
end

local function lower_float(name, dtype)
  if dtype ~= ms.float16 and dtype ~= ms.bfloat16 then
    fail(name, "dtype must be ms.float16 or ms.bfloat16, got " .. describe(dtype))
  end
  return dtype
end

-- Cells of the set compute in dtype and give float32 again.
local function lower_these(network, set, dtype)
  for _, cell in network:cells_and_names() do
    if set[getmetatable(cell)] then
      cell:to_float(dtype)
      cells.cast_output(cell, ms.float32)
    end
  end
end

-- All cells compute in dtype but those of the set; the network gives float32.
local function lower_all_but(network, set, dtype)
  network:to_float(dtype)
  for _, cell in network:cells_and_names() do
    if set[getmetatable(cell)] then
      cell:to_float(ms.float32)
      cells.cast_output(cell, dtype)
    end
  end
  cells.cast_output(network, ms.float32)
end

local levels = { "O0", "O1", "O2", "O3", "auto" }

--- The network, computing in mixed precision. amp_level: "O0" nothing changes; "O1" and "auto" cells of get_white_list()
--- compute in dtype; "O2" all but those of get_black_list(); "O3" all. dtype: ms.float16 or ms.bfloat16. Parameters and the
--- network's results stay float32.
---     > ms.amp.auto_mixed_precision(ms.nn.Dense(3, 2), "O2", ms.bfloat16)(ms.ones { 1, 3 }).dtype --> Float32
function amp.auto_mixed_precision(network, amp_level, dtype)
  local name = "auto_mixed_precision"
  amp_level, dtype = arguments.named(name, { "amp_level", "dtype" }, amp_level, dtype)
  network_of(name, network)
  amp_level = check.choice(name, "amp_level", amp_level == nil and "O0" or amp_level, levels)
  dtype = lower_float(name, dtype == nil and ms.float16 or dtype)
  if amp_level == "O1" or amp_level == "auto" then
    lower_these(network, set_of(name, "white_list", amp.get_white_list()), dtype)
  elseif amp_level == "O2" then
    lower_all_but(network, set_of(name, "black_list", amp.get_black_list()), dtype)
  elseif amp_level == "O3" then
    lower_all_but(network, {}, dtype)
  end
  return network
end

--- The network, with the cells of white_list computing in dtype, or all but those of black_list: lists of classes, of which
--- one is given.
---     > ms.amp.custom_mixed_precision(ms.nn.Dense(3, 2), { ms.nn.Dense }, nil, ms.bfloat16)(ms.ones { 1, 3 }).shape --> (1, 2)
---     > ms.amp.custom_mixed_precision(ms.nn.Dense(2, 3), { ms.nn.Dense })(ms.ones { 1, 2 }).shape --> (1, 3)
function amp.custom_mixed_precision(network, white_list, black_list, dtype)
  local name = "custom_mixed_precision"
  white_list, black_list, dtype = arguments.named(name, { "white_list", "black_list", "dtype" }, white_list, black_list, dtype)
  network_of(name, network)
  dtype = lower_float(name, dtype == nil and ms.float16 or dtype)
  if (white_list == nil) == (black_list == nil) then
    fail(name, "one of white_list and black_list must be given, got " .. (white_list == nil and "none" or "both"))
  elseif white_list ~= nil then
    lower_these(network, set_of(name, "white_list", white_list), dtype)
  else
    lower_all_but(network, set_of(name, "black_list", black_list), dtype)
  end
  return network
end

local LossScaleManager = class.Object:extend("LossScaleManager")
LossScaleManager._parameters = ""
LossScaleManager._doc = "What managers of loss scales have, which Model takes: get_loss_scale(), update_loss_scale(overflow), "
  .. "get_update_cell().\n\n  > ms.amp.FixedLossScaleManager(4.0):get_loss_scale()\n  4.0"
amp.LossScaleManager = LossScaleManager

--- The scale now.
---     > ms.amp.FixedLossScaleManager(4.0):get_loss_scale() --> 4.0
function LossScaleManager:get_loss_scale() return self.loss_scale end
--- Adapts the scale to whether a step overflowed. overflow: whether it did.
---     > manager = ms.amp.DynamicLossScaleManager(4.0)
---     > manager:update_loss_scale(true)
---     > manager:get_loss_scale() --> 2.0
function LossScaleManager:update_loss_scale(overflow) end -- luacheck: ignore 212
--- The cell that TrainOneStepWithLossScaleCell asks, or nil.
---     > ms.amp.FixedLossScaleManager(4.0):get_update_cell():get_loss_scale() --> 4.0
function LossScaleManager:get_update_cell() end

amp.FixedLossScaleManager = class.define(LossScaleManager, "FixedLossScaleManager", "loss_scale=128.0, drop_overflow_update=true",
  [[A scale that stays; drop_overflow_update: steps whose gradients overflow are left out.

  > ms.amp.FixedLossScaleManager(4.0):get_loss_scale() --> 4.0
  > ms.amp.FixedLossScaleManager(128):get_loss_scale() --> 128]])
function amp.FixedLossScaleManager:setup(a)
  self.loss_scale = check.number_positive("FixedLossScaleManager", "loss_scale", a.loss_scale)
  self.drop_overflow_update = check.boolean("FixedLossScaleManager", "drop_overflow_update", a.drop_overflow_update)
end
--- The cell that TrainOneStepWithLossScaleCell asks, or nil where no step is left out.
function amp.FixedLossScaleManager:get_update_cell()
  return self.drop_overflow_update and ms.nn.FixedLossScaleUpdateCell(self.loss_scale) or nil
end

amp.DynamicLossScaleManager = class.define(LossScaleManager, "DynamicLossScaleManager",
  "init_loss_scale=16777216.0, scale_factor=2, scale_window=2000",
  [[A scale that is divided by scale_factor after an overflow and multiplied after scale_window steps without one.
init_loss_scale: the scale at first.

  > manager = ms.amp.DynamicLossScaleManager(4.0, 2, 1)
  > manager:update_loss_scale(false)
  > manager:get_loss_scale() --> 8.0
  > ms.amp.DynamicLossScaleManager(1024):get_loss_scale() --> 1024]])
function amp.DynamicLossScaleManager:setup(a)
  local name = "DynamicLossScaleManager"
  self.loss_scale = check.number_positive(name, "init_loss_scale", a.init_loss_scale)
  self.scale_factor = check.number_positive(name, "scale_factor", a.scale_factor)
  self.scale_window = check.positive(name, "scale_window", a.scale_window)
  self.good_steps = 0
end
--- Adapts the scale to whether a step overflowed.
function amp.DynamicLossScaleManager:update_loss_scale(overflow)
  if check.boolean("update_loss_scale", "overflow", overflow) then
    self.loss_scale, self.good_steps = math.max(self.loss_scale / self.scale_factor, 1), 0
    return
  end
  self.good_steps = self.good_steps + 1
  if self.good_steps >= self.scale_window then
    self.loss_scale, self.good_steps = self.loss_scale * self.scale_factor, 0
  end
end
--- The cell that TrainOneStepWithLossScaleCell asks.
function amp.DynamicLossScaleManager:get_update_cell()
  return ms.nn.DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
end

local train_signature = arguments.signature(
  "network, optimizer, loss_fn=nil, level=\"O0\", boost_level=\"O0\", dtype=nil, loss_scale_manager=nil, keep_batchnorm_fp32=nil")

--- A cell that makes one step of training with mixed precision: of the network, its loss and the optimizer. level: as for
--- auto_mixed_precision. Arguments: network, optimizer, loss_fn=nil, level="O0", boost_level="O0", dtype=ms.float16,
--- loss_scale_manager=nil (with "O2" and float16: DynamicLossScaleManager), keep_batchnorm_fp32=nil. boost_level: the level of
--- ms.boost.AutoBoost that changes the network and the optimizer, "O0" (nothing), "O1" or "O2".
---     > net = ms.nn.Dense(2, 1)
---     > step = ms.amp.build_train_network(net, ms.nn.SGD(net:trainable_params()), ms.nn.MSELoss())
---     > step(ms.ones { 1, 2 }, ms.ones { 1, 1 }).ndim --> 0
---     > net = ms.nn.Dense(2, 1)
---     > step = ms.amp.build_train_network(net, ms.nn.SGD(net:trainable_params(), 0.1), ms.nn.MSELoss())
---     > step(ms.ones { 4, 2 }, ms.ones { 4, 1 }).shape --> ()
function amp.build_train_network(...)
  local name = "build_train_network"
  local a = arguments.bind(name, train_signature, ...)
  local network = network_of(name, a.network)
  local level = check.choice(name, "level", a.level, levels)
  local dtype = lower_float(name, a.dtype == nil and ms.float16 or a.dtype)
  if level == "O2" and a.keep_batchnorm_fp32 == false then level = "O3" end
  if level == "O3" and a.keep_batchnorm_fp32 == true then level = "O2" end
  amp.auto_mixed_precision(network, level, dtype)
  local optimizer = a.optimizer
  if check.choice(name, "boost_level", a.boost_level, { "O0", "O1", "O2" }) ~= "O0" then
    network, optimizer = ms.boost.AutoBoost(a.boost_level):network_auto_process_train(network, optimizer)
  end
  local whole = a.loss_fn ~= nil and ms.nn.WithLossCell(network, a.loss_fn) or network
  local manager = a.loss_scale_manager
  if manager == nil and a.level == "O2" and dtype == ms.float16 then manager = amp.DynamicLossScaleManager() end
  -- An optimizer that freezes layers has a step of its own.
  local step = class.is_a(optimizer, ms.boost.FreezeOpt) and ms.boost.BoostTrainOneStepCell or ms.nn.TrainOneStepCell
  if manager == nil then return step(whole, optimizer) end
  if type(manager) ~= "table" or not manager.get_update_cell then
    fail(name, "loss_scale_manager must be a LossScaleManager, got " .. describe(manager))
  end
  local update = manager:get_update_cell()
  if not update then return step(whole, optimizer, manager:get_loss_scale()) end
  if step ~= ms.nn.TrainOneStepCell then
    fail(name, "boost_level freezes layers, which goes with a fixed loss scale only: give a FixedLossScaleManager, or boost_level \"O0\"")
  end
  return ms.nn.TrainOneStepWithLossScaleCell(whole, optimizer, update)
end

return amp
