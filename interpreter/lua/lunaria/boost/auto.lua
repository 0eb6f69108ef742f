-- AutoBoost: which of the algorithms of ms.boost a training uses, by a level or a table; and accumulation of gradients.
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local freeze = require "lunaria.boost.freeze"
local less_bn = require "lunaria.boost.less_bn"
local scale = require "lunaria.nn.loss_scale"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

local Accumulation = cells.layer(cells.Cell, "GradientAccumulation", "max_accumulation_step, optimizer",
  [[Makes a step once in max_accumulation_step calls, with the mean of the gradients: cell(loss, grads) gives the loss.
nn.GradientAccumulation is the same as an optimizer. max_accumulation_step: how many calls. optimizer: what makes the step.

  > net = ms.nn.Dense(2, 1)
  > cell = ms.boost.GradientAccumulation(2, ms.nn.SGD(net:trainable_params(), 0.1))
  > cell(1.5, { ms.ones { 1, 2 }, ms.ones { 1 } }) --> 1.5]])
M.GradientAccumulation = Accumulation
Accumulation.auto_prefix = false
function Accumulation:setup(a)
  check.positive("GradientAccumulation", "max_accumulation_step", a.max_accumulation_step)
  self.optimizer = scale.GradientAccumulation(a.optimizer, a.max_accumulation_step)
end
function Accumulation:construct(loss, grads)
  self.optimizer(grads)
  return loss
end

local levels = { O0 = {}, O1 = { less_bn = true, grad_freeze = true }, O2 = { less_bn = true, grad_freeze = true, adasum = true } }
local switches = { "less_bn", "grad_freeze", "adasum", "grad_accumulation", "dim_reduce" }

local AutoBoost = class.define(nil, "AutoBoost", "level=\"O0\", boost_config_dict=nil",
  [[Changes a network and its optimizer by the algorithms of a level: "O0" nothing, "O1" less_bn and grad_freeze, "O2" also adasum,
which changes nothing in one process.

boost_config_dict: { boost = { mode = "auto", "manual", "enable_all" or "disable_all", less_bn = ..., grad_freeze = ...,
grad_accumulation = ... }, less_bn = { fn_flag = true }, grad_freeze = { param_groups = 10, freeze_type = 1, freeze_p = 0.7,
total_steps = 65536 }, grad_accumulation = { grad_accumulation_step = 1 } }; with the mode "manual" it says what is used. level: one
of them. ms.boost.DimReduce is a cell of its own.

  > net = ms.nn.SequentialCell(ms.nn.Dense(2, 3), ms.nn.Dense(3, 1))
  > _, opt = ms.boost.AutoBoost("O0"):network_auto_process_train(net, ms.nn.SGD(net:trainable_params(), 0.1))
  > opt.parameters == nil --> false]])
M.AutoBoost = AutoBoost

local defaults = { less_bn = { fn_flag = true }, grad_freeze = { param_groups = 10, freeze_type = 1, freeze_p = 0.7, total_steps = 65536 },
  grad_accumulation = { grad_accumulation_step = 1 }, boost = { mode = "auto" } }

-- The table of the configuration is an argument, not a table of names.
function AutoBoost:init(level, boost_config_dict)
  level, boost_config_dict = arguments.named("AutoBoost", { "level", "boost_config_dict", last_has_names = true }, level,
    boost_config_dict)
  self:setup { level = level == nil and "O0" or level, boost_config_dict = boost_config_dict }
end

function AutoBoost:setup(a)
  local name = "AutoBoost"
  self.level = check.choice(name, "level", a.level, { "O0", "O1", "O2" })
  local given = a.boost_config_dict
  if given == nil or given == "" then given = {} end
  if type(given) ~= "table" then fail(name, "boost_config_dict must be a table, got " .. describe(given)) end
  self.config = {}
  for part, values in pairs(defaults) do
    self.config[part] = {}
    for key, value in pairs(values) do self.config[part][key] = value end
    if given[part] ~= nil and type(given[part]) ~= "table" then
      fail(name, ("boost_config_dict.%s must be a table, got %s"):format(part, describe(given[part])))
    end
    for key, value in pairs(given[part] or {}) do self.config[part][key] = value end
  end
  for part in pairs(given) do
    if defaults[part] == nil and part ~= "common" and part ~= "dim_reduce" then
      local names = { "boost", "common", "dim_reduce", "grad_accumulation", "grad_freeze", "less_bn" }
      fail(name, ("boost_config_dict has no part '%s'; there are: %s"):format(tostring(part), table.concat(names, ", ")),
        arguments.nearest(tostring(part), names))
    end
  end
  local mode = check.choice(name, "mode", self.config.boost.mode, { "auto", "manual", "enable_all", "disable_all" })
  self.boost_config = {}
  for _, switch in ipairs(switches) do
    local on = levels[self.level][switch] or false
    if mode == "manual" then on = check.boolean(name, switch, self.config.boost[switch] or false) end
    if mode == "enable_all" then on = switch ~= "dim_reduce" end
    if mode == "disable_all" then on = false end
    self.boost_config[switch] = on
  end
  if self.boost_config.dim_reduce then fail(name, "dim_reduce is a way of training of its own: ms.boost.DimReduce") end
end

-- An optimizer made as the given one was, of the parameters that the network has now: those that are gone are left out, new ones
-- come last.
local function renewed(optimizer, network)
  local left, changed = {}, false
  for _, p in ipairs(network:trainable_params()) do left[p] = true end
  local given = {}
  for key, value in pairs(optimizer.given) do given[key] = value end
  given.params = {}
  for _, group in ipairs(optimizer.param_groups) do
    local own = { params = {}, lr = group.lr, grad_centralization = group.centralized }
    if group.explicit then own.weight_decay = group.weight_decay end
    for _, p in ipairs(group.params) do
      if left[p] then own.params[#own.params + 1] = p else changed = true end
      left[p] = nil
    end
    if #own.params > 0 then given.params[#given.params + 1] = own end
  end
  local new = {}
  for _, p in ipairs(network:trainable_params()) do
    if left[p] then new[#new + 1] = p end
  end
  if #new > 0 then given.params[#given.params + 1] = { params = new } end
  if not changed and #new == 0 then return optimizer end
  return getmetatable(optimizer)(given)
end

--- The network and the optimizer to train with. network: a cell; it may be changed. optimizer: of its parameters.
function AutoBoost:network_auto_process_train(network, optimizer)
  local on, config = self.boost_config, self.config
  if on.less_bn then
    network = less_bn.LessBN(network, { fn_flag = config.less_bn.fn_flag }).network
    optimizer = renewed(optimizer, network)
  end
  if on.grad_freeze then
    local c = config.grad_freeze
    network, optimizer = freeze.GradientFreeze(c.param_groups, c.freeze_type, c.freeze_p, c.total_steps):freeze_generate(network, optimizer)
  elseif on.grad_accumulation and config.grad_accumulation.grad_accumulation_step > 1 then
    optimizer = scale.GradientAccumulation(optimizer, config.grad_accumulation.grad_accumulation_step)
  end
  return network, optimizer
end

--- The network to evaluate: as it was changed for training. network: a cell.
function AutoBoost:network_auto_process_eval(network)
  if self.boost_config.less_bn then network = less_bn.LessBN(network, { fn_flag = self.config.less_bn.fn_flag }).network end
  return network
end

return M
