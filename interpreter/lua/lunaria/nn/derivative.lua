-- Cells made of functions and of saved graphs: products with Jacobians, and networks from MindIR files.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local fail, describe = arguments.fail, arguments.describe
local layer, Cell = cells.layer, cells.Cell

local function function_of(name, value)
  if not arguments.is_callable(value) and not cells.is_cell(value) then
    fail(name, "fn must be a function or a cell, got " .. describe(value))
  end
  return value
end

-- The inputs of a call without the last one, and that.
local function split(name, ...)
  local count = select("#", ...)
  if count < 2 then
    fail(name, ("inputs and a vector are expected, got %d arguments"):format(count), "call it as cell(x, v)")
  end
  local inputs = { ... }
  return table.move(inputs, 1, count - 1, 1, {}), inputs[count], count - 1
end

local Jvp = layer(Cell, "Jvp", "fn",
  [[The value of fn and the product of its Jacobian with a vector: y, jv = cell(x, v); of several inputs
cell(x1, x2, { v1, v2 }).

fn: the function or the cell. ms.jvp does the same without a cell.

  > select(2, ms.nn.Jvp(function(x) return x ^ 2 end)(ms.tensor { 3.0 }, ms.tensor { 2.0 })):tolist()[1] --> 12.0]])
function Jvp:setup(a)
  self.fn = function_of("Jvp", a.fn)
end
function Jvp:construct(...)
  local inputs, vector, count = split("Jvp", ...)
  if count == 1 then
    if type(vector) == "table" then vector = vector[1] end
    return ms.jvp(self.fn, inputs[1], vector)
  end
  if type(vector) ~= "table" or #vector ~= count then
    fail("Jvp", ("the last argument must be a table of %d vectors, one for each input, got %s"):format(count, describe(vector)))
  end
  return ms.jvp(self.fn, inputs, vector)
end

local Vjp = layer(Cell, "Vjp", "fn",
  [[The value of fn and the product of a vector with its Jacobian: y, vj = cell(x, v), with one product for
each input.

fn: the function or the cell; of several results v is a table with a vector for each. ms.vjp does the same without a cell.

  > select(2, ms.nn.Vjp(function(x) return x ^ 2 end)(ms.tensor { 3.0 }, ms.tensor { 2.0 })):tolist()[1] --> 12.0]])
function Vjp:setup(a)
  self.fn = function_of("Vjp", a.fn)
end
function Vjp:construct(...)
  local inputs, vector, count = split("Vjp", ...)
  local value, pull = ms.vjp(self.fn, table.unpack(inputs, 1, count))
  if type(vector) == "table" then return value, pull(table.unpack(vector)) end
  return value, pull(vector)
end

local GraphCell = Cell:extend("GraphCell")
GraphCell._parameters = "graph, params_init=nil, obf_random_seed=nil"
GraphCell._doc = [[A network from a MindIR file as a cell: nn.GraphCell("net.mindir"), or nn.GraphCell(ms.load_mindir("net.mindir")).

graph: the path of the file, or what ms.load_mindir gives. params_init: values for the network's parameters by their names, which
replace those of the file. The parameters are the cell's, and can be trained further. obf_random_seed: the seed with which
ms.obfuscate_model scrambled the file.

  > ms.save_mindir(ms.nn.Dense(2, 3), "/tmp/lunaria_graph_cell.mindir", ms.ones { 1, 2 })
  > ms.nn.GraphCell("/tmp/lunaria_graph_cell.mindir")(ms.ones { 4, 2 }).shape --> (4, 3)]]

function GraphCell:init(graph, params_init, obf_random_seed)
  -- What ms.load gives of a file has a third value, which is no seed.
  if type(obf_random_seed) == "table" then obf_random_seed = nil end
  -- Names of tensors and names of arguments look the same; a seed is no tensor.
  if type(params_init) == "table" and math.type(params_init.obf_random_seed) then
    params_init, obf_random_seed = params_init.params_init, params_init.obf_random_seed
  end
  local weights
  if type(graph) == "string" then
    graph, weights = ms.load_mindir(graph)
  elseif not arguments.is_callable(graph) then
    fail("GraphCell", "graph must be the path of a MindIR file or what ms.load_mindir gives, got " .. describe(graph))
  end
  if params_init ~= nil and type(params_init) ~= "table" then
    fail("GraphCell", "params_init must be a table from names to tensors, got " .. describe(params_init))
  end
  if not weights then
    -- What ms.load_mindir gives beside the function.
    weights = {}
    for name, value in pairs(params_init or {}) do
      if not ms.is_parameter(value) then
        fail("GraphCell", ("params_init[%s] must be a parameter that ms.load_mindir gave, got %s"):format(describe(name), describe(value)),
          "give the path of the file to replace its parameters by tensors")
      end
      weights[name] = value
    end
    params_init = nil
  end
  local names = {}
  for name in pairs(weights) do names[#names + 1] = name end
  table.sort(names)
  for name, value in pairs(params_init or {}) do
    if not weights[name] then
      fail("GraphCell", ("the graph has no parameter %s; there are: %s"):format(describe(name), table.concat(names, ", ")),
        arguments.nearest(tostring(name), names))
    elseif not ms.is_tensor(value) or tostring(value.shape) ~= tostring(weights[name].shape) then
      fail("GraphCell", ("params_init['%s'] must be a tensor of shape %s, got %s"):format(
        name, tostring(weights[name].shape), describe(value)))
    end
    weights[name]:assign(value)
  end
  for _, name in ipairs(names) do self:insert_param_to_cell(name, weights[name]) end
  rawset(self, "graph", graph)
  if obf_random_seed ~= nil then require "lunaria.armour.protection.obfuscation".scale("GraphCell", self, obf_random_seed, true) end
end

function GraphCell:construct(...)
  return self.graph(...)
end

return { Jvp = Jvp, Vjp = Vjp, GraphCell = GraphCell }
