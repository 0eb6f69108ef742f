-- Averages of the parameters over the steps of a training, which often do better than the last ones: exponential (EMA), and equal for
-- all (stochastic weight averaging, Izmailov et al. 2018). Both are callbacks of Model.train, or are told of each step.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local Callback = require("lunaria.train.callback").Callback
local norm = require "lunaria.nn.norm"
local predicting = require "lunaria.nn.predicting"

local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

local function setup(self, name, params)
  if cells.is_cell(params) then params = params:trainable_params() end
  if type(params) ~= "table" or #params == 0 then
    fail(name, "params must be a network or a list of parameters, got " .. describe(params))
  end
  self.params, self.averages, self.count, self.swapped = {}, {}, 0, false
  for i, p in ipairs(params) do
    if not ms.is_parameter(p) then fail(name, ("params[%d] must be a parameter, got %s"):format(i, describe(p))) end
    self.params[i], self.averages[i] = p, p:copy()
  end
end

local Average = Callback:extend("Average")

--- Exchanges the parameters and their averages: the network then computes with the averages, until swap is called again. Gives the
--- object back.
function Average:swap()
  for i, p in ipairs(self.params) do
    local value = p:copy()
    p:assign(self.averages[i])
    self.averages[i] = value
  end
  self.swapped = not self.swapped
  return self
end

--- What was counted so far, for a checkpoint: a table.
function Average:state_dict()
  local state = { count = self.count }
  for i, x in ipairs(self.averages) do state["average." .. i] = x:copy() end
  return state
end

--- Takes up what state_dict gave. state: that table.
function Average:load_state_dict(state)
  local name = getmetatable(self)._name
  if type(state) ~= "table" or math.type(state.count) ~= "integer" then fail(name, "the state must be what state_dict gave") end
  for i, p in ipairs(self.params) do
    local x = state["average." .. i]
    if not ms.is_tensor(x) or tostring(x.shape) ~= tostring(p.shape) then
      fail(name, ("the state has no average of shape %s for %s"):format(tostring(p.shape), p.name))
    end
  end
  self.count = state.count
  for i in ipairs(self.params) do self.averages[i] = state["average." .. i]:copy() end
end

local function check_not_swapped(self)
  if self.swapped then fail(getmetatable(self)._name, "the parameters are the averages now: call swap() before the next step") end
end

-- average = average + share (parameter - average)
local function towards(self, share)
  check_not_swapped(self)
  for i, p in ipairs(self.params) do self.averages[i] = self.averages[i] + share * (p - self.averages[i]) end
  self.count = self.count + 1
end

local EMA = class.define(Average, "EMA", "params, decay=0.999, warmup=false",
  [[The exponential average of parameters: average = decay average + (1 - decay) parameter after each step, by ema:update() or as a
callback of Model.train. ema:swap() exchanges parameters and averages.

params: a network or a list of parameters. decay: in [0, 1). warmup: whether the first averages are shorter,
min(decay, (1 + steps) / (10 + steps)).

  > w = ms.Parameter(ms.tensor { 0.0 }, "w")
  > ema = ms.boost.EMA({ w }, 0.5)
  > w:assign(ms.tensor { 8.0 })
  > ema:update()
  > ema:swap().params[1]:tolist()[1] --> 4.0]])
M.EMA = EMA

function EMA:setup(a)
  setup(self, "EMA", a.params)
  self.decay = check.rate("EMA", "decay", a.decay)
  self.warmup = check.boolean("EMA", "warmup", a.warmup)
end

--- Takes in the parameters of a step.
function EMA:update()
  local decay = self.decay
  if self.warmup then decay = math.min(decay, (1 + self.count) / (10 + self.count)) end
  towards(self, 1 - decay)
end

--- Called after a step.
function EMA:on_train_step_end() self:update() end

local SWA = class.define(Average, "SWA", "params, start_epoch=1, frequency=1",
  [[The mean of the parameters at the ends of epochs, from start_epoch on every frequency-th, by swa:update() or as a callback of
Model.train. swa:swap() exchanges parameters and averages; networks with batch normalisation need swa:update_bn afterwards.

params: a network or a list of parameters. start_epoch: the first epoch that counts, from 1. frequency: how many epochs lie between.

  > w = ms.Parameter(ms.tensor { 2.0 }, "w")
  > swa = ms.boost.SWA({ w })
  > swa:update()
  > w:assign(ms.tensor { 4.0 })
  > swa:update()
  > swa:swap().params[1]:tolist()[1] --> 3.0]])
M.SWA = SWA

function SWA:setup(a)
  setup(self, "SWA", a.params)
  self.start_epoch = check.positive("SWA", "start_epoch", a.start_epoch)
  self.frequency = check.positive("SWA", "frequency", a.frequency)
end

--- Takes in the parameters of a step.
function SWA:update() towards(self, 1 / (self.count + 1)) end

--- Called after an epoch.
function SWA:on_train_epoch_end(run)
  local past = run:original_args().cur_epoch_num - self.start_epoch
  if past >= 0 and past % self.frequency == 0 then self:update() end
end

--- Computes the running means and variances of batch normalisations anew, as means over batches. net: the network. batches: what a
--- loop over gives inputs or tables with them first; a list or an iterator.
---     > net = ms.nn.BatchNorm1d(1)
---     > ms.boost.SWA(net):update_bn(net, { ms.tensor { { 1.0 }, { 3.0 } }, ms.tensor { { 5.0 }, { 7.0 } } })
---     > net.moving_mean:tolist()[1] --> 4.0
function SWA:update_bn(net, batches) -- luacheck: ignore self
  if not cells.is_cell(net) then fail("update_bn", "net must be a cell, got " .. describe(net)) end
  local layers, momenta = {}, {}
  for _, cell in net:cells_and_names() do
    for _, kind in ipairs { "BatchNorm1d", "BatchNorm2d", "BatchNorm3d" } do
      if class.is_a(cell, norm[kind]) then
        layers[#layers + 1], momenta[#layers + 1] = cell, cell.momentum
      end
    end
  end
  local restore = predicting(net)
  net:set_train()
  local count = 0
  local function see(batch)
    if type(batch) == "table" and not ms.is_tensor(batch) then batch = batch[1] end
    if not ms.is_tensor(batch) then fail("update_bn", "a batch must be a tensor or a table with one first, got " .. describe(batch)) end
    count = count + 1
    for _, cell in ipairs(layers) do cell.momentum = 1 - 1 / count end
    net(batch)
  end
  if type(batches) == "table" and getmetatable(batches) == nil then
    for _, batch in ipairs(batches) do see(batch) end
  elseif arguments.is_callable(batches) then
    for batch in batches do see(batch) end
  else
    fail("update_bn", "batches must be a list of batches or a function that gives them, got " .. describe(batches))
  end
  for i, cell in ipairs(layers) do cell.momentum = momenta[i] end
  restore()
end

return M
