-- Layer freezing: in some steps only the later layers are trained, so that gradients are computed no further back than to them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local gradients_of_step = require "lunaria.parallel.step"
local class = require "lunaria.nn.class"
local accumulation = require "lunaria.nn.loss_scale"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe
local layer, Cell = cells.layer, cells.Cell

local M = {}

local function optimizer_of(where, value)
  if not cells.is_cell(value) or type(value.parameters) ~= "table" then
    fail(where, "the optimizer must be an optimizer, got " .. describe(value))
  end
  return value
end

-- Lists of a group that have an element for each parameter, cut to those that are wanted; the rest as it is.
local own_meaning = { lr = true, weight_decay = true, places = true }
local function cut(group, wanted)
  local chosen = {}
  for i, p in ipairs(group.params) do
    if wanted[p] then chosen[#chosen + 1] = i end
  end
  local result = {}
  for key, value in pairs(group) do
    if type(value) == "table" and getmetatable(value) == nil and #value == #group.params and not own_meaning[key] then
      local list = {}
      for k, i in ipairs(chosen) do list[k] = value[i] end
      result[key] = list
    elseif key ~= "places" then
      result[key] = value
    end
  end
  return #chosen > 0 and result or nil
end

-- An optimizer for some of another's parameters: moments, rates and the number of steps are the other's.
local function restricted(opt, params)
  local wanted, groups, parameters = {}, {}, {}
  for _, p in ipairs(params) do wanted[p] = true end
  for _, group in ipairs(opt.param_groups) do
    local part = cut(group, wanted)
    if part then
      groups[#groups + 1] = part
      for _, p in ipairs(part.params) do parameters[#parameters + 1] = p end
    end
  end
  if #parameters ~= #params then
    fail("FreezeOpt", "train_parameter_groups has parameters that are not the optimizer's")
  end
  return setmetatable({ param_groups = groups, parameters = parameters }, {
    _name = getmetatable(opt)._name, _is_class = true, _is_cell = true, __index = opt,
    __newindex = function(_, key, value) opt[key] = value end,
    __call = function(self, grads) return opt.construct(self, grads) end,
  })
end

local FreezeOpt = layer(Cell, "FreezeOpt", "opt, train_parameter_groups=nil, train_strategy=nil",
  [[An optimizer that trains a group of parameters in each step: opt(grads) with the gradients of that group's parameters, which are
opt:current().parameters. Moments and the number of steps are those of opt.

opt: an optimizer. train_parameter_groups: lists of its parameters, all of them by default. train_strategy: for each step the number
of the group, from 0; behind its end, and without it, the first group.

  > net = ms.nn.SequentialCell(ms.nn.Dense(2, 3), ms.nn.Dense(3, 1))
  > all, last = net:trainable_params(), net[2]:trainable_params()
  > opt = ms.boost.FreezeOpt(ms.nn.SGD(all, 0.1), { all, last }, { 0, 1 })
  > #opt:current().parameters --> 4]])
M.FreezeOpt = FreezeOpt
FreezeOpt.auto_prefix = false

function FreezeOpt:setup(a)
  local name = "FreezeOpt"
  local opt = optimizer_of(name, a.opt)
  if type(opt.param_groups) ~= "table" or type(opt.update) ~= "function" then
    fail(name, ("%s cannot train a part of its parameters"):format(getmetatable(opt)._name))
  end
  if a.train_strategy ~= nil and a.train_parameter_groups == nil then
    fail(name, "train_strategy needs train_parameter_groups")
  end
  local groups = a.train_parameter_groups or { opt.parameters }
  if type(groups) ~= "table" or type(groups[1]) ~= "table" then
    fail(name, "train_parameter_groups must be a list of lists of parameters, got " .. describe(groups))
  end
  self.opt = opt
  rawset(self, "parameters", opt.parameters)
  rawset(self, "opts", {})
  for i, params in ipairs(groups) do self.opts[i] = restricted(opt, params) end
  local strategy = a.train_strategy or {}
  if ms.is_tensor(strategy) then strategy = strategy:tolist() end
  if type(strategy) ~= "table" then fail(name, "train_strategy must be a list of integers, got " .. describe(strategy)) end
  rawset(self, "train_strategy", {})
  for i, group in ipairs(strategy) do
    local number = check.not_negative(name, ("train_strategy[%d]"):format(i), group)
    if number >= #groups then fail(name, ("train_strategy[%d] is %d: there are %d groups"):format(i, number, #groups)) end
    self.train_strategy[i] = number
  end
  self.step = 0
end

--- The optimizer of the next step's group.
function FreezeOpt:current() return self.opts[(self.train_strategy[self.step + 1] or 0) + 1] end

function FreezeOpt:construct(grads)
  local opt = self:current()
  opt(grads)
  self.step = self.step + 1
  return true
end

local TrainFreezeCell = layer(Cell, "TrainFreezeCell", "net, optimizer, sens=1.0",
  [[One step of training of an optimizer's parameters alone: cell(inputs...) gives the loss. net: a cell that gives the loss.
optimizer: the optimizer of some parameters. sens: a factor of the loss.]])
TrainFreezeCell.auto_prefix = false

function TrainFreezeCell:setup(a)
  self.net, self.sens = a.net, check.number("freeze_cell", "sens", a.sens)
  rawset(self, "optimizer", a.optimizer)
  local net, sens = a.net, self.sens
  self.gradients = gradients_of_step(self, function(...)
    local loss = net(...)
    return loss * sens, loss
  end, net, a.optimizer, true)
end

function TrainFreezeCell:construct(...)
  local values, grads = self.gradients(...)
  self.optimizer(grads)
  return values[2]
end

--- The cells that train the groups of a FreezeOpt, one for each: cell(inputs...) makes a step of that group and gives the loss.
--- reducer_flag: false, as there is one process. network: a cell that gives the loss. optimizer: the FreezeOpt. sens: a factor of
--- the loss. grad, mean, degree: not used. use_grad_accumulation, max_accumulation_step: whether a step is made once in so many calls.
---     > net = ms.nn.Dense(2, 1)
---     > opt = ms.boost.FreezeOpt(ms.nn.SGD(net:trainable_params(), 0.1))
---     > #ms.boost.freeze_cell(false, ms.nn.WithLossCell(net, ms.nn.MSELoss()), opt, 1.0) --> 1
function M.freeze_cell(reducer_flag, network, optimizer, sens, grad, use_grad_accumulation, mean, degree, -- luacheck: ignore 212
    max_accumulation_step)
  local name = "freeze_cell"
  sens, grad, use_grad_accumulation, mean, degree, max_accumulation_step = arguments.named(name, -- luacheck: ignore 311
    { "sens", "grad", "use_grad_accumulation", "mean", "degree", "max_accumulation_step" }, sens, grad, use_grad_accumulation, mean, degree,
    max_accumulation_step)
  if reducer_flag then fail(name, "reducer_flag must be false: there is one process") end
  if not cells.is_cell(network) then fail(name, "network must be a cell that gives the loss, got " .. describe(network)) end
  if not class.is_a(optimizer, FreezeOpt) then fail(name, "optimizer must be a FreezeOpt, got " .. describe(optimizer)) end
  local list = {}
  for i, opt in ipairs(optimizer.opts) do
    if use_grad_accumulation then opt = accumulation.GradientAccumulation(opt, max_accumulation_step or 1) end
    list[i] = TrainFreezeCell(network, opt, sens == nil and 1.0 or sens)
  end
  return list
end

local BoostTrainOneStepCell = layer(Cell, "BoostTrainOneStepCell", "network, optimizer, sens=1.0",
  [[One step of training with a FreezeOpt: cell(inputs...) computes gradients no further back than to the step's group, makes a step
and gives the loss. network: a cell that gives the loss. optimizer: a FreezeOpt, or another optimizer, which trains all. sens: a
factor of the loss.

  > net = ms.nn.Dense(2, 1)
  > step = ms.boost.BoostTrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), ms.nn.SGD(net:trainable_params(), 0.1))
  > step(ms.ones { 4, 2 }, ms.ones { 4, 1 }).shape --> ()]])
M.BoostTrainOneStepCell = BoostTrainOneStepCell
BoostTrainOneStepCell.auto_prefix = false

function BoostTrainOneStepCell:setup(a)
  local name = "BoostTrainOneStepCell"
  if not cells.is_cell(a.network) then fail(name, "network must be a cell that gives the loss, got " .. describe(a.network)) end
  local opt = optimizer_of(name, a.optimizer)
  if not class.is_a(opt, FreezeOpt) then opt = FreezeOpt(opt) end
  self.network, self.optimizer = a.network, opt
  self.network:set_train()
  rawset(self, "steps", M.freeze_cell(false, a.network, opt, a.sens))
end

function BoostTrainOneStepCell:construct(...)
  local opt = self.optimizer
  local loss = self.steps[(opt.train_strategy[opt.step + 1] or 0) + 1](...)
  opt.step = opt.step + 1
  return loss
end

local GradientFreeze = class.define(nil, "GradientFreeze", "param_groups, freeze_type, freeze_p, total_steps",
  [[How layers are frozen. param_groups: the number of groups; group i has the parameters from the i-th part of the network on. freeze_type:
0 trains all for some steps and then each group once (0, 0, 0, 1, 2, 3), 1 trains all and a group that is drawn in turn (0, 1, 0, 2).
freeze_p: the share of steps that train all or less, in [0, 1). total_steps: of the whole training.

  > f = ms.boost.GradientFreeze(2, 0, 0.5, 4)
  > table.concat(f:generate_freeze_index_sequence(3, 0, 0.5, 6), " ") --> 0 0 1 2 0 0 1 2]])
M.GradientFreeze = GradientFreeze

function GradientFreeze:setup(a)
  local name = "GradientFreeze"
  self.param_groups = check.positive(name, "param_groups", a.param_groups)
  self.freeze_type = check.integer(name, "freeze_type", a.freeze_type)
  if self.freeze_type ~= 0 and self.freeze_type ~= 1 then fail(name, "freeze_type must be 0 or 1, got " .. a.freeze_type) end
  self.freeze_p = check.rate(name, "freeze_p", a.freeze_p)
  self.total_steps = check.positive(name, "total_steps", a.total_steps)
end

--- The parameters of a network in groups, each the end of the one before; a convolution stays with its normalisation. net: the network.
--- freeze_para_groups_number: how many groups.
function GradientFreeze:split_parameters_groups(net, freeze_para_groups_number)
  local name = "split_parameters_groups"
  if not cells.is_cell(net) then fail(name, "net must be a cell, got " .. describe(net)) end
  local count = check.positive(name, "freeze_para_groups_number", freeze_para_groups_number)
  local parts, part = {}, {}
  for _, p in ipairs(net:trainable_params()) do
    local belongs = p.name:find("bn", 1, true) or p.name:find("bias", 1, true)
    if not belongs and #part >= 3 then
      parts[#parts + 1], part = part, {}
    end
    part[#part + 1] = p
  end
  if #part > 0 then parts[#parts + 1] = part end
  local stride, groups = #parts // count, {}
  for i = 1, count do
    groups[i] = {}
    for k = (i - 1) * stride + 1, #parts do table.move(parts[k], 1, #parts[k], #groups[i] + 1, groups[i]) end
  end
  return groups
end

-- 0 as often as freeze_p asks, then each group once, again and again.
local function in_turn(count, p, total)
  local zeros, list = math.floor(p * (count - 1) // (1 - p) + 0.5), {}
  while #list < total do
    for _ = 1, zeros do list[#list + 1] = 0 end
    for i = 1, count - 1 do list[#list + 1] = i end
  end
  return list
end

-- All, and in between groups that are drawn: the first with the largest probability.
local function drawn(count, p, total)
  local list, zeros, frozen, sum = { 0 }, 1, 0, count * (count - 1) // 2
  while #list < total do
    if frozen / (zeros + frozen) < 1 - p then
      local at, choice = ops.rand({ 1 })[0]:item() * sum, count - 1
      for i = 1, count - 1 do
        at = at - (count - i)
        if at < 0 then
          choice = i
          break
        end
      end
      list[#list + 1], frozen = choice, frozen + 1
    else
      list[#list + 1], zeros = 0, zeros + 1
    end
  end
  return list
end

--- The group that each step trains. parameter_groups_number: how many groups. freeze_strategy: 0 or 1, as freeze_type. freeze_p: the
--- share of steps that train all. total_steps: how many steps; some more are given.
function GradientFreeze:generate_freeze_index_sequence(parameter_groups_number, freeze_strategy, freeze_p, -- luacheck: ignore self
    total_steps)
  local name = "generate_freeze_index_sequence"
  local count = check.positive(name, "parameter_groups_number", parameter_groups_number)
  local total, p = math.floor(check.positive(name, "total_steps", total_steps) * 1.01), check.rate(name, "freeze_p", freeze_p)
  if count == 1 then
    local list = {}
    for i = 1, total do list[i] = 0 end
    return list
  end
  if freeze_strategy ~= 0 and freeze_strategy ~= 1 then
    fail(name, "freeze_strategy must be 0 or 1, got " .. describe(freeze_strategy))
  end
  return (freeze_strategy == 0 and in_turn or drawn)(count, p, total)
end

--- The network and a FreezeOpt for it. network: a cell. optimizer: of its parameters.
---     > net = ms.nn.SequentialCell(ms.nn.Dense(2, 3), ms.nn.Dense(3, 3), ms.nn.Dense(3, 1))
---     > _, opt = ms.boost.GradientFreeze(2, 0, 0.5, 10):freeze_generate(net, ms.nn.SGD(net:trainable_params(), 0.1))
---     > #opt.opts --> 2
function GradientFreeze:freeze_generate(network, optimizer)
  optimizer_of("freeze_generate", optimizer)
  local groups = self:split_parameters_groups(network, self.param_groups)
  local strategy = self:generate_freeze_index_sequence(self.param_groups, self.freeze_type, self.freeze_p, self.total_steps)
  return network, FreezeOpt(optimizer, groups, strategy)
end

return M
