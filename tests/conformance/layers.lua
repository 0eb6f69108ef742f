-- The runner of the groups `layers` and `optim` of a conformance set: their cases make a cell or an optimizer first.
local ms = require "lunaria"

local layers = {}

-- The class of a case, or nil: "Dense" of nn, "optim.AdamW" of mint.
local function class_of(case)
  local place = ms[case.api]
  for name in case.op:gmatch("[^.]+") do
    -- Parts are loaded when they are asked for, and some complain of names that they do not have.
    local ok, found = pcall(function() return place[name] end)
    if not ok or found == nil then return nil end
    place = found
  end
  return place
end

--- The name of what the case waits for, or nil when there is all that it needs.
function layers.missing(case)
  if not class_of(case) then
    return "ms." .. case.api .. "." .. case.op
  end
end

--- Whether the case makes a cell or an optimizer.
function layers.covers(case)
  return case.group == "layers" or case.group == "optim"
end

local function field_at(cell, path)
  for name in path:gmatch("[^.]+") do
    cell = cell[name]
  end
  return cell
end

-- The cell with its parameters set, the names of these by position, and the other inputs in order.
local function build(case, attrs, inputs)
  local training = attrs.training or false
  attrs.training = nil
  local net = class_of(case)(attrs):set_train(training)
  local parameters, operands = {}, {}
  for i, name in ipairs(case.arg_names) do
    local path = name:match("^param:(.*)$")
    if path then
      parameters[i] = field_at(net, path):assign(inputs[i])
    else
      operands[#operands + 1] = i
    end
  end
  return net, parameters, operands, training
end

local function call(case, net, arguments)
  if case.op == "LSTM" then
    local y, state = net(arguments[1], { arguments[2], arguments[3] })
    return y, state[1], state[2]
  end
  return net(table.unpack(arguments))
end

--- Results of a case in a table.
function layers.values(case, attrs, inputs)
  if case.group == "optim" then
    local parameter = ms.Parameter(inputs[1], { name = "p" })
    local optimizer, results = class_of(case)({ parameter }, next(attrs) and attrs or nil), {}
    for step = 1, #case.outputs do
      optimizer({ inputs[2][step - 1] })
      results[step] = parameter:value()
    end
    return results
  end
  local net, _, operands, training = build(case, attrs, inputs)
  local arguments = {}
  for k, i in ipairs(operands) do arguments[k] = inputs[i] end
  local results = table.pack(call(case, net, arguments))
  if training and net.moving_mean then
    results[2], results[3] = net.moving_mean:value(), net.moving_variance:value()
  end
  return results
end

--- d(sum of <output, its cotangent>)/d(input) by position; of parameters as weights, of the others as arguments.
--- `cotangents` has nil for outputs that do not count, `wanted` the positions that are differentiated.
function layers.gradients(case, attrs, inputs, cotangents, wanted)
  local net, parameters, operands = build(case, attrs, inputs)
  local positions, weights, places = {}, {}, {}
  local arguments = {}
  for k, i in ipairs(operands) do arguments[k] = inputs[i] end
  for k, i in ipairs(operands) do
    if wanted[i] then
      positions[#positions + 1] = k - 1
      places[#places + 1] = i
    end
  end
  local weight_places = {}
  for i = 1, #case.arg_names do
    if parameters[i] and wanted[i] then
      weights[#weights + 1] = parameters[i]
      weight_places[#weight_places + 1] = i
    end
  end
  local function forward(...)
    local results = { call(case, net, { ... }) }
    local total = 0.0
    for k = 1, #case.outputs do
      if cotangents[k] then
        total = total + ms.ops.sum(results[k] * cotangents[k])
      end
    end
    return total
  end
  local by_position = {}
  local of_inputs, of_weights
  if #positions > 0 and #weights > 0 then
    of_inputs, of_weights = ms.grad(forward, positions, weights)(table.unpack(arguments))
  elseif #weights > 0 then
    of_weights = ms.grad(forward, nil, weights)(table.unpack(arguments))
  else
    of_inputs = ms.grad(forward, positions)(table.unpack(arguments))
  end
  for k, i in ipairs(places) do by_position[i] = of_inputs[k] end
  for k, i in ipairs(weight_places) do by_position[i] = of_weights[k] end
  return by_position
end

return layers
