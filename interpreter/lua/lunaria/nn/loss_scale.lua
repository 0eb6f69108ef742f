-- Steps of training with a scaled loss, and the accumulation of gradients over several batches.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local gradients = require "lunaria.gradients"
local gradients_of_step = require "lunaria.parallel.step"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell, is_cell = cells.layer, cells.Cell, cells.is_cell

local function scale_parameter(value) return ms.Parameter(ms.tensor(value, ms.float32), "scale_sense", false) end

local Fixed = layer(Cell, "FixedLossScaleUpdateCell", "loss_scale_value",
  [[For TrainOneStepWithLossScaleCell: a scale that stays; steps whose gradients overflow are left out. loss_scale_value: the scale.

  > ms.nn.FixedLossScaleUpdateCell(4.0):get_loss_scale() --> 4.0
  > ms.nn.FixedLossScaleUpdateCell(128):get_loss_scale() --> 128]])
function Fixed:setup(a)
  self.loss_scale_value = check.number_positive("FixedLossScaleUpdateCell", "loss_scale_value", a.loss_scale_value)
end
--- The scale at the start.
---     > ms.nn.FixedLossScaleUpdateCell(4.0):get_loss_scale() --> 4.0
function Fixed:get_loss_scale() return self.loss_scale_value end
function Fixed:construct(_, overflow) return overflow end -- luacheck: ignore 212

local Dynamic = layer(Cell, "DynamicLossScaleUpdateCell", "loss_scale_value, scale_factor, scale_window",
  [[For TrainOneStepWithLossScaleCell: the scale is divided by scale_factor, down to 1, when gradients overflow, and multiplied
by it after scale_window steps without overflow. loss_scale_value: the scale at first.

  > ms.nn.DynamicLossScaleUpdateCell(2.0 ^ 12, 2, 1000):get_loss_scale() --> 4096.0
  > ms.nn.DynamicLossScaleUpdateCell(1024, 2, 50):get_loss_scale() --> 1024]])
function Dynamic:setup(a)
  local name = "DynamicLossScaleUpdateCell"
  self.loss_scale_value = check.number_positive(name, "loss_scale_value", a.loss_scale_value)
  self.scale_factor = check.number_positive(name, "scale_factor", a.scale_factor)
  self.scale_window = check.positive(name, "scale_window", a.scale_window)
  if self.scale_factor <= 1 then fail(name, ("scale_factor must be more than 1, got %s"):format(self.scale_factor)) end
  self.cur_iter = ms.Parameter(ms.tensor(1), "cur_iter", false)
  self.last_overflow_iter = ms.Parameter(ms.tensor(0), "last_overflow_iter", false)
end
--- The scale at the start.
---     > ms.nn.DynamicLossScaleUpdateCell(4.0, 2, 100):get_loss_scale() --> 4.0
function Dynamic:get_loss_scale() return self.loss_scale_value end
function Dynamic:construct(loss_scale, overflow)
  local now, last = self.cur_iter, self.last_overflow_iter
  local due = ops.greater_equal(now - last, self.scale_window)
  local reduced = ops.where(overflow, ops.maximum(loss_scale / self.scale_factor, 1.0), loss_scale)
  local grown = ops.where(ops.logical_and(due, ops.logical_not(overflow)), reduced * self.scale_factor, reduced)
  local changed = ops.where(ops.logical_or(due, overflow), now, last)
  local following = now + 1
  last:assign(changed)
  loss_scale:assign(grown)
  now:assign(following)
  return overflow
end

-- The running statistics of normalisations, which a forward pass moves.
local function running_values(network)
  local list = {}
  for _, cell in network:cells_and_names() do
    for _, key in ipairs { "moving_mean", "moving_variance" } do
      if ms.is_parameter(cell[key]) then list[#list + 1] = cell[key] end
    end
  end
  return list
end

local Step = layer(Cell, "TrainOneStepWithLossScaleCell", "network, optimizer, scale_sense",
  [[One step of training with a scaled loss: loss, overflow, scale = cell(inputs...). A step whose gradients are not finite changes no
parameter, nor the running means and variances of normalisations.

network gives the loss. scale_sense: a DynamicLossScaleUpdateCell or FixedLossScaleUpdateCell, or a number.

  > net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
  > step = ms.nn.TrainOneStepWithLossScaleCell(net, ms.nn.SGD(net:trainable_params()), 8.0)
  > select("#", step(ms.ones { 1, 2 }, ms.ones { 1, 1 })) --> 3
  > net = ms.nn.Dense(2, 1)
  > cell = ms.nn.TrainOneStepWithLossScaleCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), ms.nn.SGD(net:trainable_params(), 0.1), 64)
  > select("#", cell(ms.ones { 4, 2 }, ms.ones { 4, 1 })) --> 3]])
Step.auto_prefix = false
function Step:setup(a)
  local name = "TrainOneStepWithLossScaleCell"
  if not is_cell(a.network) then fail(name, "network must be a cell that gives the loss, got " .. describe(a.network)) end
  if not is_cell(a.optimizer) or not a.optimizer.parameters then
    fail(name, "optimizer must be an optimizer, got " .. describe(a.optimizer))
  end
  self.network, self.optimizer = a.network, a.optimizer
  self.network:set_train()
  local given = a.scale_sense
  if is_cell(given) then
    if not given.get_loss_scale then fail(name, "scale_sense must be a cell that updates a loss scale, got " .. describe(given)) end
    self.loss_scaling_manager = given
    self.scale_sense = scale_parameter(given:get_loss_scale())
  else
    self.scale_sense = scale_parameter(check.number_positive(name, "scale_sense", given))
  end
  local network, sense = self.network, self.scale_sense
  rawset(self, "running", running_values(network))
  self.value_and_gradients = gradients_of_step(self, function(...)
    local loss = network(...)
    return loss * sense:astype(loss.dtype), loss
  end, network, self.optimizer, true)
end
--- Sets the scale. sens: a number or a tensor of one.
---     > net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
---     > step = ms.nn.TrainOneStepWithLossScaleCell(net, ms.nn.SGD(net:trainable_params()), 8.0)
---     > step:set_sense_scale(4.0)
---     > step.scale_sense:item() --> 4.0
function Step:set_sense_scale(sens)
  self.scale_sense:assign(ms.tensor(check.number_positive("set_sense_scale", "sens", sens), ms.float32))
end
function Step:construct(...)
  local running, before = self.running, {}
  for i = 1, #running do before[i] = running[i] * 1.0 end
  local values, grads = self.value_and_gradients(...)
  local scale = self.scale_sense
  local used = scale * 1.0
  local factor, unscaled = ops.reciprocal(scale), {}
  local finite
  for i = 1, #grads do
    local g = grads[i]
    unscaled[i] = g * factor:astype(g.dtype)
    local all = ops.all(ops.isfinite(g))
    finite = finite and ops.logical_and(finite, all) or all
  end
  if finite.device ~= "CPU" then finite = ops.without_overflow(finite) end
  local overflow = ops.logical_not(finite)
  local manager = self.loss_scaling_manager
  if manager then manager(scale, overflow) end
  -- Parameters are written or not: no arithmetic could keep the old ones exactly where a gradient is not a number.
  if not overflow:item() then
    self.optimizer(unscaled)
  else
    for i = 1, #running do running[i]:assign(before[i]) end
  end
  return values[2], overflow, used
end

local Accumulation = layer(Cell, "GradientAccumulation", "optimizer, max_accumulation_step",
  [[An optimizer that steps once in max_accumulation_step calls, with the mean of the gradients that it got in them: small batches that act
as a large one.

  > local optimizer = ms.nn.GradientAccumulation(ms.nn.Adam(net:trainable_params()), 4)
  > local step = ms.nn.TrainOneStepCell(net_with_loss, optimizer)]])
Accumulation.auto_prefix = false
function Accumulation:setup(a)
  local name = "GradientAccumulation"
  if not is_cell(a.optimizer) or not a.optimizer.parameters then
    fail(name, "optimizer must be an optimizer, got " .. describe(a.optimizer))
  end
  self.optimizer = a.optimizer
  self.max_accumulation_step = check.positive(name, "max_accumulation_step", a.max_accumulation_step)
  self.counter = ms.Parameter(ms.tensor(0), "accumulated_steps", false)
  rawset(self, "parameters", a.optimizer.parameters)
  rawset(self, "sums", {})
  for i, parameter in ipairs(self.parameters) do
    local sum = ms.Parameter(ops.zeros(parameter.shape, parameter.dtype):to(parameter.device), "accumulated." .. parameter.name, false)
    self.sums[i] = sum
    self:insert_param_to_cell(sum.name .. "." .. i, sum)
  end
end
function Accumulation:construct(grads)
  if type(grads) ~= "table" or #grads ~= #self.parameters then
    fail("GradientAccumulation", ("a table of %d gradients is expected, got %s"):format(#self.parameters, describe(grads)))
  end
  local sums, steps = self.sums, self.max_accumulation_step
  for i = 1, #sums do sums[i]:assign(sums[i] + grads[i]) end
  self.counter:assign((self.counter + 1) % steps)
  if self.counter:item() ~= 0 then return false end
  local means = {}
  for i = 1, #sums do means[i] = sums[i] / steps end
  self.optimizer(self.combined and self.combined(means) or means)
  for i = 1, #sums do sums[i]:assign(ops.zeros_like(sums[i])) end
  return true
end
--- Has the gradients of several ranks combined when the optimizer steps, not when they are given. combined(gradients) combines them.
---     > optimizer = ms.nn.GradientAccumulation(ms.nn.SGD({ ms.Parameter(ms.ones { 1 }, "w") }, 0.5), 1)
---     > optimizer:accumulates_for(function(gradients) return gradients end)
---     > optimizer({ ms.ones { 1 } }) --> true
function Accumulation:accumulates_for(combined)
  rawset(self, "combined", combined)
  rawset(self, "_uncompiled", true)
end
--- The learning rate of the next step.
---     > ms.nn.GradientAccumulation(ms.nn.SGD({ ms.Parameter(ms.ones { 1 }, "w") }, 0.5), 2):get_lr() --> 0.5
function Accumulation:get_lr() return self.optimizer:get_lr() end
--- Sets the learning rate. value: as for the optimizer.
---     > optimizer = ms.nn.GradientAccumulation(ms.nn.SGD({ ms.Parameter(ms.ones { 1 }, "w") }, 0.5), 2)
---     > optimizer:set_lr(0.25)
---     > optimizer:get_lr() --> 0.25
function Accumulation:set_lr(value) self.optimizer:set_lr(value) end

-- The sum of what a network gives for `count` parts of its inputs along axis 0, one after the other.
local function sum_of_parts(where, network, count, ...)
  local inputs, parts = table.pack(...), {}
  if inputs.n == 0 then fail(where, "missing argument 1: an input is expected") end
  for i = 1, inputs.n do
    local x = inputs[i]
    local rows = ms.is_tensor(x) and x.ndim > 0 and x.shape[1] or 0
    if rows == 0 or rows % count ~= 0 then
      fail(where, ("input %d must have a number of rows that %d divides, got %s"):format(i, count, describe(x)))
    end
    parts[i] = table.pack(ops.split(x, rows // count, 0))
  end
  local sum
  for k = 1, count do
    local part = {}
    for i = 1, inputs.n do part[i] = parts[i][k] end
    local result = network(table.unpack(part, 1, inputs.n))
    sum = sum and sum + result or result
  end
  return sum
end

-- Cells that call a network with parts of its inputs. count: the name of the argument that says how many parts there are.
local function in_parts(name, count, signature, doc)
  local class = layer(Cell, name, signature, doc)
  class.auto_prefix = false
  function class:setup(a)
    if not is_cell(a.network) then fail(name, "network must be a cell, got " .. describe(a.network)) end
    self.network = a.network
    self[count] = check.positive(name, count, a[count])
  end
  function class:construct(...) return sum_of_parts(name, self.network, self[count], ...) end
  return class
end

local MicroBatches = in_parts("GradAccumulationCell", "micro_size", "network, micro_size",
  [[A network that gives a loss, called with micro_size parts of its inputs along axis 0 one after the other: the mean of the losses.

  > net = ms.nn.WithLossCell(ms.nn.ReLU(), ms.nn.MSELoss())
  > ms.nn.GradAccumulationCell(net, 2)(ms.ones { 4, 1 }, ms.zeros { 4, 1 }):item() --> 1.0
  > ms.nn.GradAccumulationCell(ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss()), 2)(ms.ones { 4, 2 }, ms.ones { 4, 1 }).shape
  ()]])
function MicroBatches:construct(...)
  return sum_of_parts("GradAccumulationCell", self.network, self.micro_size, ...) / self.micro_size
end

local Interleaved = in_parts("MicroBatchInterleaved", "interleave_num", "network, interleave_num=2",
  [[A network called with interleave_num parts of its inputs along axis 0: the sum of the results. On several devices the messages
of one part are sent while another is computed; on one device they follow each other.

  > net = ms.nn.WithLossCell(ms.nn.ReLU(), ms.nn.MSELoss())
  > ms.nn.MicroBatchInterleaved(net, 2)(ms.ones { 4, 1 }, ms.zeros { 4, 1 }):item() --> 2.0]])

local Pipeline = in_parts("PipelineCell", "micro_size",
  "network, micro_size, stage_config=nil, segment_config=nil, scheduler=\"1f1b\"",
  [[A network called with micro_size parts of its inputs along axis 0: the sum of the results, in stages on several ranks where cells have
some. The network is an nn.SequentialCell, or an nn.WithLossCell around one. stage_config: the stages of its cells by name, from 0, or
the attribute pipeline_stage of the cells; a cell without has that of the one before. segment_config (pipeline_segment): which of
several parts of its stage a cell is in, where data meets all stages once for each segment. There have to be as many ranks as
stages, or a multiple; each computes with the cells of its stage and sends results and gradients on, in the order of scheduler: "1f1b",
"gpipe", "interleaved" (for several segments), or those in which gradients of weights wait until a stage would idle: "zero_bubble_h1"
(the memory of 1f1b), "zero_bubble_h2" (twice that) and "zero_bubble_v" (two segments, through which data goes down the stages and up
again). Of n times as many ranks as stages rank r has stage r // n; the ranks of a stage have rows of their own (with dataset_strategy
"full_batch": every n-th of those of all), and add up their gradients (gradients_mean: take their mean). Where operators have
strategies (shard), the ranks of a stage are a mesh, over which these divide its tensors: ms.set_auto_parallel_context says
pipeline_stages before such a network is made. All ranks get the sum, or its mean over several such replicas; parameters of other
stages have no gradients, and trainable_params gives those of the rank's stage. In a program of one process the parts follow one another.

  > net = ms.nn.WithLossCell(ms.nn.ReLU(), ms.nn.MSELoss())
  > ms.nn.PipelineCell(net, 4)(ms.ones { 4, 1 }, ms.zeros { 4, 1 }):item() --> 4.0]])
local set_up_parts = Pipeline.setup
function Pipeline:setup(a)
  local name = "PipelineCell"
  set_up_parts(self, a)
  for _, config in ipairs { "stage_config", "segment_config" } do
    if a[config] ~= nil and type(a[config]) ~= "table" then
      fail(name, ("%s must be a table of numbers by cell names, got %s"):format(config, describe(a[config])))
    end
  end
  check.choice(name, "scheduler", a.scheduler, { "1f1b", "gpipe", "interleaved", "zero_bubble_h1", "zero_bubble_h2",
    "zero_bubble_v" })
  local several = gradients.ranks() > 1
  if not several and not a.stage_config and not a.segment_config then return end
  local stages = require "lunaria.parallel.pipeline"
  local division = stages.divide(name, self.network, a.stage_config, a.segment_config)
  if not several or not division then return end
  rawset(self, "_uncompiled", true)
  rawset(self, "_pipeline", stages.new(name, division, self.micro_size, a.scheduler, self.network))
end
function Pipeline:construct(...)
  if rawget(self, "_pipeline") then return self._pipeline:run(self.training, ...) end
  return sum_of_parts("PipelineCell", self.network, self.micro_size, ...)
end
--- The parameters that are trained: in stages on several ranks those of the rank's stage.
function Pipeline:trainable_params(...)
  if rawget(self, "_pipeline") then return table.move(self._pipeline.parameters, 1, #self._pipeline.parameters, 1, {}) end
  return Cell.trainable_params(self, ...)
end

local Reducer = layer(Cell, "DistributedGradReducer", "parameters, mean=nil, degree=nil, fusion_type=1, group=\"world\"",
  [[Adds up the gradients of all ranks: cell(grads) gives the sums, divided by degree where mean is true. In a program of one process
they are the gradients themselves. parameters: those that the gradients are of. mean: as gradients_mean of ms.set_auto_parallel_context
unless it is given. degree: how many ranks there are. fusion_type, group: 1 and "world": how gradients go into messages is set by
comm_fusion, and all ranks take part.

  > net = ms.nn.Dense(2, 1)
  > reduce = ms.nn.DistributedGradReducer(net:trainable_params(), true)
  > reduce({ ms.ones { 1, 2 }, ms.ones { 1 } })[1]:tolist()[1][1] --> 1.0]])
Reducer.auto_prefix = false
function Reducer:setup(a)
  local name = "DistributedGradReducer"
  if type(a.parameters) ~= "table" or #a.parameters == 0 then
    fail(name, "parameters must be a table of parameters that is not empty, got " .. describe(a.parameters))
  end
  rawset(self, "parameters", a.parameters)
  local settings = package.loaded["lunaria.parallel.settings"]
  local mean = a.mean
  if mean == nil then mean = settings and settings.get(name, "gradients_mean") or false end
  self.mean = check.boolean(name, "mean", mean)
  if a.fusion_type ~= 1 then fail(name, "fusion_type must be 1: comm_fusion of ms.set_auto_parallel_context says what goes together") end
  if a.group ~= "world" then fail(name, "group must be \"world\", all ranks, got " .. describe(a.group)) end
  local ranks = gradients.ranks()
  self.degree = a.degree == nil and ranks or check.positive(name, "degree", a.degree)
  if ranks > 1 then
    rawset(self, "_uncompiled", true)
    rawset(self, "reduce", require "lunaria.parallel.data".reducer(name, a.parameters, self.mean, self.degree))
  end
end
function Reducer:construct(grads)
  local name = "DistributedGradReducer"
  if type(grads) ~= "table" or #grads ~= #self.parameters then
    fail(name, ("a table of %d gradients is expected, got %s"):format(#self.parameters,
      type(grads) == "table" and "one of " .. #grads or describe(grads)))
  end
  if self.reduce then return self.reduce(grads) end
  local reduced = {}
  for i = 1, #grads do reduced[i] = self.mean and self.degree ~= 1 and grads[i] / self.degree or grads[i] end
  return reduced
end

local ForwardValueAndGrad = layer(Cell, "ForwardValueAndGrad", "network, weights=nil, get_all=false, get_by_list=false",
  [[A network's loss and its gradients: loss, grads = cell(inputs...). get_by_list: those of weights (the trainable parameters);
get_all: those of all inputs; neither: that of the first input.

  > cell = ms.nn.ForwardValueAndGrad(function(x) return x * x end)
  > select(2, cell(3.0)) --> 6.0
  > net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
  > cell = ms.nn.ForwardValueAndGrad(net, net:trainable_params(), { get_by_list = true })
  > select("#", cell(ms.ones { 4, 2 }, ms.ones { 4, 1 })) --> 2]])
ForwardValueAndGrad.auto_prefix = false
function ForwardValueAndGrad:setup(a)
  local name = "ForwardValueAndGrad"
  if not is_cell(a.network) and type(a.network) ~= "function" then
    fail(name, "network must be a cell or a function, got " .. describe(a.network))
  end
  self.network = a.network
  self.get_all = check.boolean(name, "get_all", a.get_all)
  self.get_by_list = check.boolean(name, "get_by_list", a.get_by_list)
  if self.get_by_list then
    local weights = a.weights or is_cell(a.network) and a.network:trainable_params()
    if type(weights) ~= "table" then fail(name, "weights must be a table of parameters, got " .. describe(a.weights)) end
    rawset(self, "weights", weights)
  end
end
function ForwardValueAndGrad:construct(...)
  local positions = 0
  if self.get_all then
    positions = {}
    for i = 1, select("#", ...) do positions[i] = i - 1 end
  end
  if self.get_by_list and not self.get_all then positions = nil end
  return ms.value_and_grad(self.network, positions, self.weights)(...)
end

local ParameterUpdate = layer(Cell, "ParameterUpdate", "param", [[Writes a parameter: cell(tensor) gives it the value. param: the parameter.

  > w = ms.Parameter(ms.zeros { 2 }, "w")
  > ms.nn.ParameterUpdate(w)(ms.ones { 2 })
  > w:sum():item() --> 2.0
  > p = ms.Parameter(ms.zeros { 2 }, "p")
  > ms.nn.ParameterUpdate(p)(ms.ones { 2 }) --> Tensor(shape=[2], dtype=Float32, value=\n[ 1.00000000e+00,  1.00000000e+00])
  > p:sum():item() --> 2.0]])
ParameterUpdate.auto_prefix = false
function ParameterUpdate:setup(a)
  if not ms.is_parameter(a.param) then fail("ParameterUpdate", "param must be a parameter, got " .. describe(a.param)) end
  self.param = a.param
end
function ParameterUpdate:construct(x)
  self.param:assign(x)
  return ops.identity(x)
end

local TimeDistributed = layer(Cell, "TimeDistributed", "layer, time_axis, reshape_with_axis=nil",
  [[A layer applied to every part of its input along time_axis; the results are stacked along it. reshape_with_axis: for programs
written for MindSpore, nothing depends on it.

  > ms.nn.TimeDistributed(ms.nn.Dense(3, 2), 1)(ms.ones { 4, 5, 3 }).shape --> (4, 5, 2)
  > ms.nn.TimeDistributed(ms.nn.Dense(2, 3), 1)(ms.ones { 4, 5, 2 }).shape --> (4, 5, 3)]])
function TimeDistributed:setup(a)
  if not is_cell(a.layer) and type(a.layer) ~= "function" then
    fail("TimeDistributed", "layer must be a cell or a function, got " .. describe(a.layer))
  end
  self.layer = a.layer
  self.time_axis = check.integer("TimeDistributed", "time_axis", a.time_axis)
  if a.reshape_with_axis ~= nil then
    self.reshape_with_axis = check.integer("TimeDistributed", "reshape_with_axis", a.reshape_with_axis)
  end
end
function TimeDistributed:construct(x)
  local results = {}
  for i, part in ipairs(table.pack(ops.unbind(x, self.time_axis))) do results[i] = self.layer(part) end
  return ops.stack(results, self.time_axis)
end

return {
  FixedLossScaleUpdateCell = Fixed, DynamicLossScaleUpdateCell = Dynamic, TrainOneStepWithLossScaleCell = Step,
  GradientAccumulation = Accumulation, GradAccumulationCell = MicroBatches, ForwardValueAndGrad = ForwardValueAndGrad,
  ParameterUpdate = ParameterUpdate, TimeDistributed = TimeDistributed, MicroBatchInterleaved = Interleaved,
  PipelineCell = Pipeline, DistributedGradReducer = Reducer,
}
