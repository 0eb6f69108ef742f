-- Cells around a network: with its loss, with its gradients, with its optimizer.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local gradients_of_step = require "lunaria.parallel.step"

local fail, describe = arguments.fail, arguments.describe
local layer, Cell, is_cell = cells.layer, cells.Cell, cells.is_cell

local function callable(where, name, value)
  if not is_cell(value) and type(value) ~= "function" then
    fail(where, ("%s must be a cell or a function, got %s"):format(name, describe(value)))
  end
  return value
end

local WithLossCell = layer(Cell, "WithLossCell", "backbone, loss_fn",
  [[A network and its loss as one cell: cell(data, label) gives the loss.
  > ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())(ms.ones { 4, 2 }, ms.ones { 4, 1 }).shape --> ()]])

WithLossCell.auto_prefix = false

function WithLossCell:setup(a)
  self.backbone = callable("WithLossCell", "backbone", a.backbone)
  self.loss_fn = callable("WithLossCell", "loss_fn", a.loss_fn)
end

function WithLossCell:construct(data, label)
  return self.loss_fn(self.backbone(data), label)
end

local WithEvalCell = layer(Cell, "WithEvalCell", "network, loss_fn",
  [[A network for evaluation: cell(data, label) gives the loss, the outputs and the labels.
  > select("#", ms.nn.WithEvalCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())(ms.ones { 4, 2 }, ms.ones { 4, 1 })) --> 3]])

WithEvalCell.auto_prefix = false

function WithEvalCell:setup(a)
  self.network = callable("WithEvalCell", "network", a.network)
  self.loss_fn = callable("WithEvalCell", "loss_fn", a.loss_fn)
end

function WithEvalCell:construct(data, label)
  local outputs = self.network(data)
  return self.loss_fn(outputs, label), outputs, label
end

local WithGradCell = layer(Cell, "WithGradCell", "network, loss_fn=nil",
  [[The gradients of a network's trainable parameters: cell(inputs...) gives a table of them.
  > #ms.nn.WithGradCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())(ms.ones { 4, 2 }, ms.ones { 4, 1 }) --> 2]])

WithGradCell.auto_prefix = false

function WithGradCell:setup(a)
  self.network = callable("WithGradCell", "network", a.network)
  if not is_cell(self.network) then
    fail("WithGradCell", "network must be a cell, got " .. describe(a.network))
  end
  local forward = self.network
  if a.loss_fn ~= nil then
    forward = WithLossCell(self.network, a.loss_fn)
  end
  self.weights = self.network:trainable_params()
  self.gradient = ms.grad(forward, nil, self.weights)
end

function WithGradCell:construct(...)
  return self.gradient(...)
end

local TrainOneStepCell = layer(Cell, "TrainOneStepCell", "network, optimizer, sens=1.0",
  [[One step of training: cell(inputs...) computes the loss that network gives, its gradients, and makes a step of the optimizer.

  > local step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.CrossEntropyLoss()), optimizer)
  > local loss = step(images, labels)
  > net = ms.nn.Dense(2, 1)
  > step = ms.nn.TrainOneStepCell(ms.nn.WithLossCell(net, ms.nn.MSELoss()), ms.nn.SGD(net:trainable_params(), 0.1))
  > step(ms.ones { 4, 2 }, ms.ones { 4, 1 }).shape --> ()]])

TrainOneStepCell.auto_prefix = false

function TrainOneStepCell:setup(a)
  if not is_cell(a.network) then
    fail("TrainOneStepCell", "network must be a cell that gives the loss, got " .. describe(a.network))
  elseif not is_cell(a.optimizer) or not a.optimizer.parameters then
    fail("TrainOneStepCell", "optimizer must be an optimizer, got " .. describe(a.optimizer))
  end
  self.network, self.optimizer = a.network, a.optimizer
  self.network:set_train()
  self.sens = arguments.check.number("TrainOneStepCell", "sens", a.sens)
  local network, sens = self.network, self.sens
  local function scaled(...)
    local loss = network(...)
    return loss * sens, loss
  end
  if sens == 1 then
    self.value_and_gradients = gradients_of_step(self, network, network, self.optimizer)
  else
    self.value_and_gradients = gradients_of_step(self, scaled, network, self.optimizer, true)
  end
end

function TrainOneStepCell:construct(...)
  local loss, gradients = self.value_and_gradients(...)
  if self.sens ~= 1 then loss = loss[2] end
  -- Model looks for losses that are not finite; the parameters then are those of the last good step.
  if self.finite_only then
    local value = loss:item()
    -- One question, of which compiled steps are cut: a number less itself is 0 where it is finite.
    if value - value ~= 0 then return loss end
  end
  self.optimizer(gradients)
  return loss
end

return {
  WithLossCell = WithLossCell, WithEvalCell = WithEvalCell, WithGradCell = WithGradCell, TrainOneStepCell = TrainOneStepCell,
}
