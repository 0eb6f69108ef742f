-- NeuronMetric: how much the units of layers tell clean and changed samples apart.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"
local explained = require "lunaria.explain.common"
local given = require "lunaria.armour.evaluations.given"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local NeuronMetric = class.define(nil, "NeuronMetric", "model, inputs, adv_inputs, hook_names",
  [[How much the units of layers tell clean and changed samples apart.

model: a cell. inputs, adv_inputs: clean and changed samples of the same shape (N, ...). hook_names: a list of names of cells in the network
as cells_and_names() gives them, whose outputs have at least 2 axes; others are an error. Source: Zhang et al. 2020 (neuron sensitivity).

  > net = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.ReLU())
  > x = ms.ones { 2, 4 }
  > ms.armour.evaluations.NeuronMetric(net, x, x, { "0" }):neuron_sensitivity()["0"].shape --> (3,)]])

local function find(model, name)
  local names = {}
  for own, cell in model:cells_and_names() do
    if own == name then return cell end
    names[#names + 1] = own
  end
  fail("NeuronMetric", ("the network has no layer '%s'"):format(name), arguments.nearest(name, names))
end

function NeuronMetric:setup(a)
  local where = "NeuronMetric"
  if not cells.is_cell(a.model) then fail(where, "model must be a cell, got " .. describe(a.model)) end
  given.pair(where, "inputs", a.inputs, "adv_inputs", a.adv_inputs)
  if type(a.hook_names) ~= "table" or #a.hook_names == 0 then
    fail(where, "hook_names must be a list of names of layers, got " .. describe(a.hook_names))
  end
  self.model, self.hook_names, self._inputs, self._adv = a.model, a.hook_names, a.inputs, a.adv_inputs
  self._layers = {}
  for i, name in ipairs(a.hook_names) do
    if type(name) ~= "string" then fail(where, ("hook_names[%d] must be a string, got %s"):format(i, describe(name))) end
    self._layers[i] = find(a.model, name)
  end
end

-- The outputs of the layers for x, averaged over all axes after the second one: a list of tensors (N, units).
function NeuronMetric:_features(x)
  local features, handles = {}, {}
  for i, layer in ipairs(self._layers) do
    handles[i] = layer:register_forward_hook(function(_, output)
      if not ms.is_tensor(output) or output.ndim < 2 then
        fail("NeuronMetric", ("the layer '%s' must give a tensor (N, units, ...), got %s"):format(self.hook_names[i], describe(output)))
      end
      features[i] = ops.mean(output:reshape { output.shape[1], output.shape[2], -1 }, 2)
    end)
  end
  explained.hooked(handles, explained.predicting, self.model, self.model, x)
  return features
end

--- For each name of hook_names a tensor (units,): the sum over the samples of the absolute differences of each unit's output, averaged over
--- its places.
---     > net = ms.nn.SequentialCell(ms.nn.Flatten(), ms.nn.ReLU())
---     > metric = ms.armour.evaluations.NeuronMetric(net, ms.zeros { 3, 2 }, ms.ones { 3, 2 }, { "1" })
---     > metric:neuron_sensitivity()["1"]:tolist()[1] --> 3.0
function NeuronMetric:neuron_sensitivity()
  local clean, changed, sensitivity = self:_features(self._inputs), self:_features(self._adv), {}
  for i, name in ipairs(self.hook_names) do
    if not clean[i] then fail("neuron_sensitivity", ("the network does not call the layer '%s'"):format(name)) end
    sensitivity[name] = ops.sum(ops.abs(clean[i] - changed[i]), 0)
  end
  return sensitivity
end

return { NeuronMetric = NeuronMetric }
