-- Distillation: a network learns from what another one gives, beside the labels.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local callback = require "lunaria.train.callback"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local predicting = require "lunaria.nn.predicting"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local M = {}

local Distillation = class.define(callback.Callback, "Distillation",
  "teacher, temperature=4.0, alpha=0.9, kind=\"logits\"",
  [[A callback of Model.train with which a network learns from a teacher (Hinton et al. 2015): the loss becomes
(1 - alpha) loss_fn(outputs, label) + alpha temperature^2 KL(softmax(teacher / temperature), softmax(outputs / temperature)).

teacher: a network with the same inputs and results; it is in evaluation mode while the other is trained. kind: "logits", or "mse":
the squared difference of the results, without a temperature.

  > teacher, net = ms.nn.Dense(4, 3), ms.nn.Dense(4, 3)
  > model = ms.Model(net, ms.nn.CrossEntropyLoss(), ms.nn.SGD(net:trainable_params(), 0.5))
  > batches = { { ms.ops.randn { 64, 4 }, ms.zeros({ 64 }, ms.int64) } }
  > model:train(200, batches, { callbacks = ms.lite.Distillation(teacher, { alpha = 1.0 }) })
  > x = batches[1][1]
  > ms.ops.amax(ms.ops.abs(ms.ops.softmax(net(x)) - ms.ops.softmax(teacher(x)))):item() < 0.1 --> true]])
M.Distillation = Distillation

function Distillation:setup(a)
  local name = "Distillation"
  if not arguments.is_callable(a.teacher) then fail(name, "teacher must be a network, got " .. describe(a.teacher)) end
  self.teacher = a.teacher
  self.kind = check.choice(name, "kind", a.kind, { "logits", "mse" })
  self.temperature = check.number_positive(name, "temperature", a.temperature)
  self.alpha = check.probability(name, "alpha", a.alpha)
end

-- The loss of a batch, whose last value is the label.
local function loss_of(self, backbone, loss_fn, ...)
  local count = select("#", ...)
  local label = select(count, ...)
  local values = { ... }
  values[count] = nil
  local outputs = backbone(table.unpack(values))
  local wanted = ops.stop_gradient(self.teacher(table.unpack(values)))
  local hard = loss_fn(outputs, label)
  local soft
  if self.kind == "mse" then
    local d = outputs - wanted
    soft = ops.mean(d * d)
  else
    local t = self.temperature
    local p = ops.softmax(wanted / t)
    local difference = ops.log_softmax(wanted / t) - ops.log_softmax(outputs / t)
    soft = ops.sum(p * difference) / outputs.shape[1] * (t * t)
  end
  return hard * (1 - self.alpha) + soft * self.alpha
end

function Distillation:on_train_end()
  if not self.restore then return end
  rawset(self.cell, "construct", nil)
  self.restore()
  self.restore = nil
end

function Distillation:on_train_begin(run)
  -- A training that failed left things as they were in it.
  self:on_train_end()
  local args = run:original_args()
  local found
  for _, cell in args.train_network:cells_and_names() do
    if class.is_a(cell, ms.nn.WithLossCell) then found = cell end
  end
  if not found then fail("Distillation", "the model has no loss_fn, of which the loss is made") end
  self.cell = found
  self.restore = cells.is_cell(self.teacher) and predicting(self.teacher) or function() end
  local backbone, loss_fn, distillation = found.backbone, found.loss_fn, self
  rawset(found, "construct", function(_, ...) return loss_of(distillation, backbone, loss_fn, ...) end)
end

return M
