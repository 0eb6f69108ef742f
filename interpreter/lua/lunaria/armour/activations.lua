-- Outputs of the cells inside a network, recorded by hooks: the network stays as it is, in both modes.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local common = require "lunaria.armour.common"

local ops = ms.ops
local fail, describe = arguments.fail, arguments.describe

local activations = {}

--- The cell that predicts: a cell itself, or that of a ms.train.Model.
function activations.network(where, model)
  if cells.is_cell(model) then return model end
  local network = type(model) == "table" and model.network
  if cells.is_cell(network) then return network end
  return fail(where, "model must be a cell or a ms.train.Model, got " .. describe(model))
end

--- The cells of these names; without names the innermost cells that have weights.
function activations.cells(where, network, layers)
  local named, names, list = {}, {}, {}
  for name, cell in network:cells_and_names() do
    if name ~= "" then
      named[name] = cell
      names[#names + 1] = name
      local is_inner = next(cell:cells()) == nil
      if layers == nil and is_inner and next(cell:get_parameters()) ~= nil then list[#list + 1] = cell end
    end
  end
  if layers ~= nil and (type(layers) ~= "table" or getmetatable(layers) ~= nil or #layers == 0) then
    fail(where, "layers must be a list of names of cells, as { \"fc1\", \"fc2\" }, got " .. describe(layers))
  end
  for _, name in ipairs(layers or {}) do
    if not named[name] then
      fail(where, ("the network has no cell '%s'"):format(tostring(name)), arguments.nearest(tostring(name), names))
    end
    list[#list + 1] = named[name]
  end
  if #list == 0 then fail(where, "the network has no inner cell with weights", "name the cells: { layers = { \"...\" } }") end
  return list
end

--- A function from inputs (N, ...) to the list of what the chosen cells give, in the order of their calls, and what the network gives.
--- model: a cell or a ms.train.Model; or a function from inputs to such a list, which may give an output besides. layers: names of cells.
function activations.recorder(where, model, layers)
  if type(model) == "function" then
    if layers ~= nil then fail(where, "layers name cells of a network, and the model is a function") end
    return function(x)
      local list, output = model(x)
      if type(list) ~= "table" or not ms.is_tensor(list[1]) then
        fail(where, "a model that is a function must give a list of tensors, one for each layer, got " .. describe(list))
      end
      return list, output
    end
  end
  local network = activations.network(where, model)
  local list = activations.cells(where, network, layers)
  return function(x)
    local seen, handles = {}, {}
    local guard <close> = setmetatable({}, { __close = function() -- luacheck: ignore 211
      for _, handle in ipairs(handles) do handle:remove() end
    end })
    for _, cell in ipairs(list) do
      handles[#handles + 1] = cell:register_forward_hook(function(_, y)
        if ms.is_tensor(y) and y.ndim >= 2 then seen[#seen + 1] = y end
      end)
    end
    local output = common.predicting(network, network, x)
    if #seen == 0 then fail(where, "none of the chosen cells gave a tensor (N, units, ...)") end
    return seen, output
  end
end

--- What each unit gives: a tensor (N, units), its means over the axes behind, which are places in a picture or in a row.
function activations.units(y)
  if y.ndim == 2 then return y end
  return ops.mean(y:reshape { y.shape[1], y.shape[2], -1 }, 2)
end

return activations
