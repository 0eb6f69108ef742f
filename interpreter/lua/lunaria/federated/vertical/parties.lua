-- ms.federated.PartyGradOperation, PartyOptimizer and PartyGradScaler: the parts of a step of one party of a split network.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local class = require "lunaria.nn.class"

local fail, describe = arguments.fail, arguments.describe
local ops = ms.ops
local parties = {}

local function check_sens(where, sens)
  if sens ~= nil and not math.type(sens) and type(sens) ~= "string" then
    fail(where, "sens must be a number or the name of what another party sends, got " .. describe(sens))
  end
  return sens
end

local function check_name(where, what, name)
  if type(name) ~= "string" then fail(where, ("%s must be the name of an output, got %s"):format(what, describe(name))) end
  return name
end

local PartyGradOperation = class.define(nil, "PartyGradOperation", "output, sens=nil", [[The derivative of one output of a party's
network. output: its name. sens: what it is multiplied by: a number, or the name of a tensor that another party sends; nil: 1 for an
output that stays, and for one that goes to another party what that one sends under its name.

  > ms.federated.PartyGradOperation("loss", 1024.0).sens --> 1024.0]])
parties.PartyGradOperation = PartyGradOperation

function PartyGradOperation:setup(a)
  self.output, self.sens = check_name("PartyGradOperation", "output", a.output), check_sens("PartyGradOperation", a.sens)
end

--- The tensor that the output's derivative is multiplied by. value: the output. sens: what other parties have sent, by name. is_remote:
--- whether the output goes to another party.
---     > ms.federated.PartyGradOperation("loss", 3.0):cotangent(ms.tensor(2.0)):item() --> 3.0
function PartyGradOperation:cotangent(value, sens, is_remote)
  local factor = self.sens
  if factor == nil then factor = is_remote and self.output or 1.0 end
  if math.type(factor) then return ops.full_like(value, factor) end
  local given = type(sens) == "table" and sens[factor]
  if not ms.is_tensor(given) then
    fail("backward_one_step", ("sens must have '%s', the gradient that another party sends, got %s"):format(factor, describe(given
      or sens)))
  end
  if tostring(given.shape) ~= tostring(value.shape) then
    fail("backward_one_step", ("the gradient '%s' is of shape %s, the output '%s' of shape %s"):format(factor, tostring(given.shape),
      self.output, tostring(value.shape)))
  end
  return given.dtype == value.dtype and given or given:astype(value.dtype)
end

--- The number that the output's derivative is multiplied by; nil where another party says it. is_remote: as in cotangent.
---     > ms.federated.PartyGradOperation("loss"):constant(false) --> 1.0
function PartyGradOperation:constant(is_remote)
  if self.sens == nil then return not is_remote and 1.0 or nil end
  return math.type(self.sens) and self.sens + 0.0 or nil
end

-- The same numbers for all lists of operations, by the index of the output; nil where they differ or are not known before.
function parties.constants(lists, model)
  local common
  for _, operations in ipairs(lists) do
    local numbers = {}
    for _, operation in ipairs(operations) do
      local index, value = model:output_index(operation.output), operation:constant(model:is_remote_output(operation.output))
      if value == nil then return nil end
      numbers[index] = (numbers[index] or 0.0) + value
    end
    for index, value in pairs(common or numbers) do
      if numbers[index] ~= value then return nil end
    end
    for index, value in pairs(numbers) do
      if common and common[index] ~= value then return nil end
    end
    common = numbers
  end
  return common
end

-- For outputs by name: { index, tensor } for each of the operations, those of one output added.
local function cotangents(operations, model, outputs, sens)
  local by_index = {}
  for _, operation in ipairs(operations) do
    local index = model:output_index(operation.output)
    local d = operation:cotangent(outputs[index], sens, model:is_remote_output(operation.output))
    by_index[index] = by_index[index] and by_index[index] + d or d
  end
  return by_index
end
parties.cotangents = cotangents

local PartyOptimizer = class.define(nil, "PartyOptimizer", "optimizer, grads", [[An optimizer of a party, and the derivatives whose sum it
steps along. optimizer: one of ms.nn's, over parameters of the party's network. grads: a list of PartyGradOperation.

  > net = ms.nn.Dense(2, 1)
  > operation = ms.federated.PartyGradOperation("loss")
  > #ms.federated.PartyOptimizer(ms.nn.SGD(net:trainable_params(), 0.1), { operation }).grads --> 1]])
parties.PartyOptimizer = PartyOptimizer

local function check_operations(where, list)
  if type(list) ~= "table" or getmetatable(list) ~= nil or #list == 0 then
    fail(where, "grads must be a list of PartyGradOperation, got " .. describe(list))
  end
  for i, operation in ipairs(list) do
    if not class.is_a(operation, PartyGradOperation) then
      fail(where, ("grads[%d] must be a PartyGradOperation, got %s"):format(i, describe(operation)))
    end
  end
  return list
end

function PartyOptimizer:setup(a)
  local optimizer, grads = a.optimizer, a.grads
  if not cells.is_cell(optimizer) or not optimizer.parameters then
    fail("PartyOptimizer", "optimizer must be an optimizer, got " .. describe(optimizer))
  end
  self.optimizer, self.grads = optimizer, check_operations("PartyOptimizer", grads)
end

local PartyGradScaler = class.define(nil, "PartyGradScaler", "inputs, output, sens=nil", [[Gradients that go to other parties: of an
output of the party's network by inputs that came from them. inputs: their names. output, sens: as PartyGradOperation has them.

  > ms.federated.PartyGradScaler({ "embedding" }, "loss").inputs[1] --> embedding]])
parties.PartyGradScaler = PartyGradScaler

function PartyGradScaler:setup(a)
  if type(a.inputs) ~= "table" or getmetatable(a.inputs) ~= nil or #a.inputs == 0 then
    fail("PartyGradScaler", "inputs must be a list of names, got " .. describe(a.inputs))
  end
  self.inputs, self.operation = a.inputs, PartyGradOperation(a.output, a.sens)
end

return parties
