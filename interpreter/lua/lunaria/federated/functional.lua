-- A network as a pure function of its weights: the cells of a tree are copied where they hold parameters, and the copies hold other tensors
-- in their places. Nothing is written, so that the function can be differentiated by the weights and mapped over many sets of them.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"

local fail = arguments.fail
local is_parameter, is_cell = ms.is_parameter, cells.is_cell
local functional = {}

-- What a cell's copies have in common: its fields but for parameters and cells with parameters, and where these go. place_of: the places
-- of parameters among the weights. Nil: the cell holds none.
local function plan_of(cell, place_of, seen)
  if seen[cell] then return seen[cell] end
  local plan = { fields = {}, places = {}, parts = {}, class = getmetatable(cell) }
  seen[cell] = plan
  for key, value in next, cell do
    if is_parameter(value) and place_of[value] then
      plan.places[#plan.places + 1] = { key, place_of[value] }
    elseif is_cell(value) then
      local part = plan_of(value, place_of, seen)
      if part.has then plan.parts[#plan.parts + 1] = { key, part } else plan.fields[key] = value end
    else
      plan.fields[key] = value
    end
  end
  plan.has = #plan.places + #plan.parts > 0
  return plan
end

local function copy_of(plan, weights)
  local copy = {}
  for key, value in next, plan.fields do copy[key] = value end
  for _, place in ipairs(plan.places) do copy[place[1]] = weights[place[2]] end
  for _, part in ipairs(plan.parts) do copy[part[1]] = copy_of(part[2], weights) end
  return setmetatable(copy, plan.class)
end

--- A function of a list of weights that gives the network with them, for the parameters in the list. Parameters that are shared between
--- cells, or lie in tables of a cell, are an error: they would keep their values.
function functional.of(where, network, parameters)
  local place_of, found = {}, {}
  for i, parameter in ipairs(parameters) do place_of[parameter] = i end
  local plan = plan_of(network, place_of, {})
  local function look(part)
    for _, place in ipairs(part.places) do found[place[2]] = true end
    for _, inner in ipairs(part.parts) do look(inner[2]) end
  end
  look(plan)
  for i, parameter in ipairs(parameters) do
    if not found[i] then
      fail(where, ("the parameter '%s' lies in no field of a cell, so that no other weights can take its place"):format(parameter.name),
        "one_by_one = true trains on the network itself")
    end
  end
  return function(weights) return copy_of(plan, weights) end
end

return functional
