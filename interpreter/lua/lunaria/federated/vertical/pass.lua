-- A network whose outputs are needed now and whose gradients later, when another party has sent what they are multiplied by. Eagerly the
-- forward pass is kept until then. Compiled functions keep nothing: there the forward pass is made again within the compiled gradient,
-- from the same random numbers, and running statistics are moved once.
local core = require "lunaria.autodiff"
local ms = require "lunaria"
-- What stands for Lua's own functions under a derivative.
require "lunaria.transforms"

local ops = ms.ops
local Pass = {}
Pass.__index = Pass

local function not_trainable(network, weights)
  local trained, others = {}, {}
  for _, p in ipairs(weights) do trained[p] = true end
  if type(network) == "table" and network.get_parameters then
    for _, p in ipairs(network:get_parameters()) do
      if not trained[p] then others[#others + 1] = p end
    end
  end
  return others
end

--- network: a cell or a function of tensors. weights: parameters whose gradients are wanted. positions: those of the inputs whose gradients
--- are, from 0. module: the cell that has the state.
local function make(network, weights, positions, module)
  return setmetatable({ network = network, weights = weights, positions = positions, others = not_trainable(module, weights), backs = {} },
    Pass)
end

local function in_graph_mode() return ms.get_context("mode") == ms.GRAPH_MODE end

-- The state that a forward pass moves.
local function state_of(self)
  local values = {}
  for i, p in ipairs(self.others) do values[i] = p:value():copy() end
  return { rng = ms.get_rng_state(), values = values }
end

local function set_state(self, state)
  ms.set_rng_state(state.rng)
  for i, p in ipairs(self.others) do p:assign(state.values[i]) end
end

--- The outputs for inputs, lists of tensors.
function Pass:forward(inputs)
  local kept = { inputs = inputs }
  if in_graph_mode() then
    kept.before = state_of(self)
    self.compiled = self.compiled or ms.jit(function(...) return self.network(...) end)
    kept.outputs = table.pack(self.compiled(table.unpack(inputs, 1, #inputs)))
    kept.after = state_of(self)
  else
    local wanted = {}
    for _, p in ipairs(self.positions) do wanted[p] = true end
    local all = table.pack(core.vjp(self.network, wanted, self.weights, table.unpack(inputs, 1, #inputs)))
    kept.pull, kept.context = all[1], all[2]
    kept.outputs = table.move(all, 3, all.n, 1, { n = all.n - 2 })
  end
  self.kept = kept
  return kept.outputs
end

-- The compiled outputs and gradients for cotangents of some outputs, which follow the inputs.
local function back_of(self, indices, count)
  local key = table.concat(indices, " ")
  if self.backs[key] then return self.backs[key] end
  local network = self.network
  local total = function(...)
    local inputs = { ... }
    local outputs = { network(table.unpack(inputs, 1, count)) }
    local sum = 0.0
    for i, index in ipairs(indices) do sum = sum + ops.sum(outputs[index] * inputs[count + i]) end
    return sum, table.unpack(outputs, 1, #outputs)
  end
  self.backs[key] = ms.value_and_grad(total, #self.positions > 0 and self.positions or false, #self.weights > 0 and self.weights or false,
    true)
  return self.backs[key]
end

-- Outputs, gradients by inputs, gradients by weights.
local function compiled(self, inputs, cotangents, count)
  local indices, given = {}, table.move(inputs, 1, #inputs, 1, {})
  for i = 1, count do
    if cotangents[i] then
      indices[#indices + 1] = i
      given[#given + 1] = cotangents[i]
    end
  end
  local values, first, second = back_of(self, indices, #inputs)(table.unpack(given, 1, #given))
  local outputs = table.move(values, 2, #values, 1, { n = #values - 1 })
  if #self.positions == 0 then return outputs, {}, first or {} end
  return outputs, first, second or {}
end

--- Both passes in one, in graph mode, where the cotangents of outputs are numbers that are known before: the outputs, and the gradients by
--- inputs and weights. Nothing where they are not to be compiled. count: of outputs.
function Pass:step(inputs, numbers, count)
  if not in_graph_mode() or #self.weights + #self.positions == 0 then return nil end
  local cotangents = {}
  for i, value in pairs(numbers) do cotangents[i] = ms.tensor(value, ms.float32) end
  return compiled(self, inputs, cotangents, count)
end

local function zeros_for(x) return ops.zeros_like(x) end

-- Eagerly, out of what the forward pass has left.
local function pulled(self, cotangents)
  local kept = self.kept
  local list = {}
  for i = 1, kept.outputs.n do list[i] = cotangents[i] or false end
  for i = 1, kept.outputs.n do
    if not list[i] then list[i] = zeros_for(kept.outputs[i]) end
  end
  local by_position = table.pack(kept.pull(table.unpack(list, 1, kept.outputs.n)))
  local of_inputs, of_weights = {}, {}
  for i, p in ipairs(self.positions) do of_inputs[i] = by_position[p + 1] or zeros_for(kept.inputs[p + 1]) end
  for i, w in ipairs(self.weights) do of_weights[i] = core.cotangent(kept.context, w, 0) or zeros_for(w) end
  return of_inputs, of_weights
end

--- The gradients by the inputs at the positions, and by the weights, of the outputs times cotangents: a table of tensors by the index of
--- the output, from 1. forward comes first.
function Pass:backward(cotangents)
  local kept = self.kept
  if kept.pull then return pulled(self, cotangents) end
  if #self.weights + #self.positions == 0 then return {}, {} end
  set_state(self, kept.before)
  local _, of_inputs, of_weights = compiled(self, kept.inputs, cotangents, kept.outputs.n)
  set_state(self, kept.after)
  return of_inputs, of_weights
end

return make
