-- Saliency by gradients: Gradient, Deconvolution, GuidedBackprop, IntegratedGradients, GradCAM. Networks take (N, C, H, W) and give
-- (N, classes); a call gives a map (N, 1, H, W).
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local common = require "lunaria.explain.common"

local ops = ms.ops
local fail, check, describe = arguments.fail, arguments.check, arguments.describe

local Gradient = common.method("Gradient", "network", [[How much the output of the target class changes with each pixel: the largest
magnitude of the gradient among the channels. network: a cell that gives logits. explainer(inputs, targets) with inputs (N, C, H, W) and a
class, or one for each input, gives (N, 1, H, W).

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > ms.explain.Gradient(net)(ms.ones { 2, 1, 4, 4 }, 1).shape --> (2, 1, 4, 4)]])
function Gradient:setup(a) self:_keep(a) end
function Gradient:_compute(inputs, targets)
  return common.abs_max(common.gradient("Gradient", self.network, inputs, targets))
end

-- The gradient where what comes back through each nn.ReLU is changed by rule(grad_input, grad_output).
local function through_relus(self, inputs, targets, rule)
  local name, handles = getmetatable(self)._name, {}
  local function hook(_, grad_input, grad_output) return { rule(grad_input[1], grad_output[1]) } end
  for _, cell in self.network:cells_and_names() do
    if class.is_a(cell, ms.nn.ReLU) then handles[#handles + 1] = cell:register_backward_hook(hook) end
  end
  if #handles == 0 then
    fail(name, "the network has no nn.ReLU cell", "ops.relu within construct is not seen: give the network cells nn.ReLU()")
  end
  return common.hooked(handles, common.gradient, name, self.network, inputs, targets)
end

local Deconvolution = common.method("Deconvolution", "network", [[As ms.explain.Gradient, but each nn.ReLU lets through what is positive in
the gradient that comes back, whatever its input was. network: a cell that gives logits, with cells nn.ReLU.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 8), ms.nn.ReLU(), ms.nn.Dense(8, 3))
  > ms.explain.Deconvolution(net)(ms.ones { 2, 1, 4, 4 }, 1).shape --> (2, 1, 4, 4)]])
function Deconvolution:setup(a) self:_keep(a) end
function Deconvolution:_compute(inputs, targets)
  return common.abs_max(through_relus(self, inputs, targets, function(_, grad_output) return ops.relu(grad_output) end))
end

local GuidedBackprop = common.method("GuidedBackprop", "network", [[As ms.explain.Gradient, but each nn.ReLU lets through what is positive
in the gradient that comes back, where its input was positive too. network: a cell that gives logits, with cells nn.ReLU.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 8), ms.nn.ReLU(), ms.nn.Dense(8, 3))
  > ms.explain.GuidedBackprop(net)(ms.ones { 2, 1, 4, 4 }, { 0, 2 }).shape --> (2, 1, 4, 4)]])
function GuidedBackprop:setup(a) self:_keep(a) end
function GuidedBackprop:_compute(inputs, targets)
  return common.abs_max(through_relus(self, inputs, targets, function(grad_input) return ops.relu(grad_input) end))
end

local IntegratedGradients = common.method("IntegratedGradients", "network, baseline=0.0, steps=50, perturbation_per_eval=32",
  [[The mean gradient on the way from a baseline to the input, times the way: what each pixel adds to the output. The maps, summed over
channels, keep their signs, and add up to the output of the input less that of the baseline. network: a cell that gives logits. baseline:
a number, or a tensor that fits the inputs. steps: how many points of the way. perturbation_per_eval: how many at once.

  > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.Dense(16, 3))
  > x = ms.ones { 1, 1, 4, 4 }
  > map = ms.explain.IntegratedGradients(net)(x, 1)
  > ms.ops.abs(ms.ops.sum(map) - (net(x) - net(x * 0))[{ 0, 1 }]):item() < 1e-5 --> true]])
function IntegratedGradients:setup(a)
  self:_keep(a)
  if not math.type(a.baseline) and not ms.is_tensor(a.baseline) then
    fail("IntegratedGradients", "baseline must be a number or a tensor, got " .. describe(a.baseline))
  end
  self.baseline, self.steps = a.baseline, check.positive("IntegratedGradients", "steps", a.steps)
end
function IntegratedGradients:_compute(inputs, targets)
  local way, count, size = inputs - self.baseline, inputs.shape[1], inputs.size // inputs.shape[1]
  local sum = ops.zeros_like(inputs)
  common.check_targets("IntegratedGradients", common.outputs("IntegratedGradients", self.network, inputs), targets)
  -- Of each of the equal parts of the way its middle, whose error is of second order.
  for from = 0, self.steps - 1, self.perturbation_per_eval do
    local places = {}
    for k = from, math.min(self.steps, from + self.perturbation_per_eval) - 1 do places[#places + 1] = (k + 0.5) / self.steps - 1 end
    local shares = ms.tensor(places, inputs.dtype):reshape { #places, 1, 1 }
    local points = (ops.reshape(inputs, { 1, count, size }) + shares * ops.reshape(way, { 1, count, size }))
    points = points:reshape { #places * count, inputs.shape[2], inputs.shape[3], inputs.shape[4] }
    local gradient = common.slope("IntegratedGradients", self.network, points, ops.tile(targets, { #places, 1 }))
    sum = sum + ops.sum(gradient:reshape { #places, count, size }, 0):reshape(inputs.shape)
  end
  return ops.sum(sum * way / self.steps, 1, true)
end

local GradCAM = common.method("GradCAM", "network, layer=\"\"",
  [[Where a layer's channels speak for the target: the layer's results, weighted by the mean gradient of each channel, summed, without what
is negative, resized to the inputs. network: a cell that gives logits. layer: a cell of it or its name, whose result is (N, C, h, w);
"": the last nn.Conv2d.

  > net = ms.nn.SequentialCell(ms.nn.Conv2d(1, 4, 3), ms.nn.ReLU(), ms.nn.Flatten(), ms.nn.Dense(4 * 8 * 8, 3))
  > ms.explain.GradCAM(net, "0")(ms.ones { 2, 1, 8, 8 }, 1).shape --> (2, 1, 8, 8)]])

local function layer_of(network, layer)
  local found, names = nil, {}
  for name, cell in network:cells_and_names() do
    names[#names + 1] = name
    if layer == "" then
      if class.is_a(cell, ms.nn.Conv2d) then found = cell end
    elseif name == layer or cell == layer then
      found = cell
    end
  end
  if found then return found end
  if layer == "" then fail("GradCAM", "the network has no nn.Conv2d", "name a layer whose result is (N, C, h, w)") end
  fail("GradCAM", ("the network has no layer %s"):format(describe(layer)),
    type(layer) == "string" and arguments.nearest(layer, names) or nil)
end

function GradCAM:setup(a)
  self:_keep(a)
  if type(a.layer) ~= "string" and not cells.is_cell(a.layer) then
    fail("GradCAM", "layer must be a cell or the name of one, got " .. describe(a.layer))
  end
  self.layer = layer_of(a.network, a.layer)
end

function GradCAM:_compute(inputs, targets)
  local result
  local function seen(f, hook) return common.hooked({ self.layer:register_forward_hook(hook) }, f) end
  seen(function() common.check_targets("GradCAM", common.outputs("GradCAM", self.network, inputs), targets) end, function(_, y)
    result = y
    return y
  end)
  if not ms.is_tensor(result) or result.ndim ~= 4 then
    fail("GradCAM", "the layer must give a tensor (N, C, h, w), got " .. describe(result))
  end
  -- The gradient with respect to the layer's result is that with respect to something added to it.
  local gradient = ms.grad(function(added)
    return seen(function()
      return ops.sum(ops.gather_elements(common.outputs("GradCAM", self.network, inputs), 1, targets))
    end, function(_, y) return y + added end)
  end)(ops.zeros_like(result))
  local weights = ops.mean(gradient, { 2, 3 }, true)
  local map = ops.relu(ops.sum(weights * result, 1, true))
  return ops.interpolate(map, { inputs.shape[3], inputs.shape[4] }, nil, "bilinear")
end

return { Gradient = Gradient, Deconvolution = Deconvolution, GuidedBackprop = GuidedBackprop,
  IntegratedGradients = IntegratedGradients, GradCAM = GradCAM }
