-- The gradients of a step of training: of this process, or of all ranks where the settings of parallel training say so.
local ms = require "lunaria"

--- ms.value_and_grad(f, nil, optimizer.parameters, has_aux) for the step that a cell makes. network: the cell that f computes with.
return function(cell, f, network, optimizer, has_aux)
  -- Programs that set nothing do not load the settings.
  local settings = package.loaded["lunaria.parallel.settings"]
  local plan = settings and settings.of_training(network)
  if settings and settings.searches(network) then
    rawset(cell, "_uncompiled", true)
    return require "lunaria.parallel.search".value_and_grad(getmetatable(cell)._name, f, network, optimizer, has_aux)
  end
  if not plan then return ms.value_and_grad(f, nil, optimizer.parameters, has_aux) end
  -- Its parts are compiled: messages between them are not part of a graph.
  rawset(cell, "_uncompiled", true)
  local states = {}
  for _, parameter in optimizer:parameters_and_names() do states[#states + 1] = parameter end
  local where = getmetatable(cell)._name
  if plan.level then
    local step, whole = require "lunaria.parallel.sharded".value_and_grad(where, plan, f, network, optimizer, has_aux, states)
    rawset(cell, "whole_parameters", whole)
    return step
  end
  -- Gradients that are accumulated are combined once for all.
  local delayed = plan.shards == 0 and optimizer.accumulates_for and true
  local step, combined = require "lunaria.parallel.data".value_and_grad(where, plan, f, network, optimizer.parameters, has_aux, states,
    delayed)
  if delayed then optimizer:accumulates_for(combined) end
  return step
end
