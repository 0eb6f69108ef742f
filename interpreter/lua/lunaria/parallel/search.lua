-- The parallel_mode "auto_parallel": the cheapest strategy of a function on the ranks of this program, by the search of
-- core/parallel/planner over all meshes of two axes, and its tensors laid out as it says. What the plan divides are parameters, states of
-- optimizers and inputs; operators follow from these.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local jit = require "lunaria.jit"
local laid = require "lunaria.laid"
local outline = require "lunaria.ascend_core".outline
local plans = require "lunaria.parallel.plan"
local settings = require "lunaria.parallel.settings"
local states_of = require "lunaria.parallel.sharded".states_of

local ops = ms.ops
local fail = arguments.fail

local M = {}

-- Processes of one machine, which share its memory: what moves goes at the rate of copies. All ranks have to find the same plan, so that
-- nothing here is measured.
local host = { name = "processes", levels = { { ranks = 1 << 40, latency = 2e-6, bytes_per_second = 4e9 } }, collective_seconds = 5e-6,
  flops_per_second = 50e9, bytes_per_second = 10e9, operator_seconds = 2e-6 }

-- Arguments have the names by which a plan knows them.
local named = {
  function(f) return function(input1) return f(input1) end end,
  function(f) return function(input1, input2) return f(input1, input2) end end,
  function(f) return function(input1, input2, input3) return f(input1, input2, input3) end end,
  function(f) return function(input1, input2, input3, input4) return f(input1, input2, input3, input4) end end,
}

-- The best plan for f with such inputs, computing nothing.
local function search(where, f, parameters, inputs)
  if not named[inputs.n] then fail(where, ("strategies are searched for functions of 1 to %d inputs, got %d"):format(#named, inputs.n)) end
  local mode, state, found = ms.get_context "mode", ms.get_rng_state(), nil
  if mode ~= ms.PYNATIVE_MODE then ms.set_context { mode = ms.PYNATIVE_MODE } end
  local batch = ms.is_tensor(inputs[1]) and inputs[1].ndim > 0 and inputs[1].shape[1] or 1
  local fine, problem = pcall(outline, function()
    local like = { n = inputs.n }
    for i = 1, inputs.n do
      local x = inputs[i]
      like[i] = ms.is_tensor(x) and ops.zeros(x.shape, x.dtype) or x
    end
    found = plans.plan(where, named[inputs.n](f), like, { name = where, devices = settings.mesh_size(), batch = batch, stages = 1,
      micro_batches = 1, level = 0, recompute = false, train = true, parameters = parameters, cluster = host,
      peak_flops = host.flops_per_second, state_bytes = 8, gradient_bytes = 4 })
  end)
  if mode ~= ms.PYNATIVE_MODE then ms.set_context { mode = mode } end
  ms.set_rng_state(state)
  if not fine then error(problem, 0) end
  return found
end

local function mesh_text(plan)
  local list = {}
  for i, axis in ipairs(plan.mesh) do list[i] = ("%s=%d"):format(axis[1], axis[2]) end
  return table.concat(list, ", ")
end

-- The tensor as a text of a plan says; whole on every rank where the plan says nothing.
local function lay(x, mesh, layout)
  if not layout then return laid.everywhere(x) end
  return ops.lay_out(x, laid.number(mesh, layout))
end

--- Plans f for the inputs and lays out the parameters of the network and the states of the optimizer, where there is one. Gives the plan,
--- and what lays out the inputs of a step.
function M.lay(where, f, network, optimizer, ...)
  local parameters = network:trainable_params()
  local found = search(where, f, parameters, table.pack(...))
  local best = found[1]
  local mesh = mesh_text(best)
  for name, parameter in network:parameters_and_names() do -- luacheck: ignore 213
    local layout = best.parameters[parameter.name]
    local states = optimizer and states_of(optimizer, parameter) or {}
    states[#states + 1] = parameter
    for _, tensor in ipairs(states) do laid.become(tensor, lay(tensor, mesh, layout)) end
  end
  return found, function(...)
    local inputs = table.pack(...)
    for i = 1, inputs.n do
      if ms.is_tensor(inputs[i]) then inputs[i] = lay(inputs[i], mesh, best.inputs["input" .. i]) end
    end
    return table.unpack(inputs, 1, inputs.n)
  end
end

-- Values that the program sees are those of one process.
local function whole(value)
  if ms.is_tensor(value) then return laid.is_laid_out(value) and ops.lay_out(value, 0) or value end
  if type(value) ~= "table" then return value end
  local list = {}
  for key, one in pairs(value) do list[key] = whole(one) end
  return list
end

--- What ms.value_and_grad(f, nil, optimizer.parameters, has_aux) is, on all ranks by the plan that its first call finds.
function M.value_and_grad(where, f, network, optimizer, has_aux)
  local gradient, lay_inputs
  local function step(...)
    if not gradient then
      local f_of_loss = has_aux and function(...) return (f(...)) end or f
      M.found, lay_inputs = M.lay(where, f_of_loss, network, optimizer, ...)
      gradient = ms.value_and_grad(f, nil, optimizer.parameters, has_aux)
      if jit.mode.graph then gradient = ms.jit(gradient) end
    end
    local value, gradients = gradient(lay_inputs(...))
    return whole(value), gradients
  end
  return step
end

return M
