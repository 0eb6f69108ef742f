-- ONNX operators with graphs inside, sequences and optional values. A sequence is a list; an optional without a value is nil.
local ms = require "lunaria"
local define = require "lunaria.onnx.define"

local ops = ms.ops

local function truth(t)
  local value = define.number(t)
  return value == true or value ~= false and value ~= 0
end

define.define("If", "else_branch:g! then_branch:g!", 1, 1, function(_, node)
  local yes, no = node.graphs.then_branch, node.graphs.else_branch
  if #yes.outputs ~= node.outputs or #no.outputs ~= node.outputs then
    node.fail(("has %d outputs, its graphs have %d and %d"):format(node.outputs, #yes.outputs, #no.outputs))
  end
  if #yes.inputs + #no.inputs > 0 then node.fail "its graphs may have no inputs" end
  return function(otherwise, if_true, condition)
    if truth(condition) then return if_true() end
    return otherwise()
  end
end)

-- The results of all turns as one tensor; of none, what the graph says of its output.
local function stacked(list, axis, output)
  if #list > 0 then return ops.stack(list, axis) end
  local type, shape = output.type, { 0 }
  for i, n in ipairs(type.shape or {}) do shape[i + 1] = math.type(n) == "integer" and n or 0 end
  return ops.zeros(shape, type.known and rawget(ms, type.dtype) or ms.float32)
end

define.define("Loop", "body:g!", 2, 1000, function(_, node)
  local body = node.graphs.body
  local carried = #body.inputs - 2
  local scans = #body.outputs - 1 - carried
  if carried < 0 or scans < 0 or node.inputs - 2 ~= carried or node.outputs > carried + scans then
    node.fail(("has %d inputs and %d outputs, which its graph of %d inputs and %d outputs does not fit"):format(node.inputs,
      node.outputs, #body.inputs, #body.outputs))
  end
  return function(turn, most, condition, ...)
    local limit = most and define.number(most)
    local values, lists = { ... }, {}
    for k = 1, scans do lists[k] = {} end
    local i, go = 0, not condition or truth(condition)
    while go and (not limit or i < limit) do
      local results = { turn(ms.tensor(i, ms.int64), ms.tensor(true), table.unpack(values, 1, carried)) }
      go = truth(results[1])
      for k = 1, carried do values[k] = results[1 + k] end
      for k = 1, scans do lists[k][i + 1] = results[1 + carried + k] end
      i = i + 1
    end
    for k = 1, scans do values[carried + k] = stacked(lists[k], 0, body.outputs[1 + carried + k]) end
    return table.unpack(values, 1, carried + scans)
  end
end)

define.define("Scan",
  "body:g! num_scan_inputs:i! scan_input_axes:ints scan_input_directions:ints scan_output_axes:ints "
  .. "scan_output_directions:ints directions:ints", 1, 1000, function(a, node)
    if node.version < 9 then node.fail "before version 9 is not supported" end
    local body, inputs = node.graphs.body, a.num_scan_inputs
    local states = node.inputs - inputs
    local scans = #body.outputs - states
    if inputs < 1 or states < 0 or scans < 0 or #body.inputs ~= node.inputs then
      node.fail "its graph does not fit its inputs and outputs"
    end
    local input_axes, output_axes = a.scan_input_axes or {}, a.scan_output_axes or {}
    local back_in, back_out = a.scan_input_directions or {}, a.scan_output_directions or {}
    return function(turn, ...)
      local values, lists = { ... }, {}
      for k = 1, scans do lists[k] = {} end
      local first = values[states + 1]
      local length = first.shape[define.axis(first, input_axes[1] or 0) + 1]
      for i = 0, length - 1 do
        local arguments = {}
        for k = 1, states do arguments[k] = values[k] end
        for k = 1, inputs do
          local at = back_in[k] == 1 and length - 1 - i or i
          local x, axis = values[states + k], input_axes[k] or 0
          arguments[states + k] = ops.squeeze(ops.narrow(x, axis, at, 1), { axis })
        end
        local results = { turn(table.unpack(arguments, 1, states + inputs)) }
        for k = 1, states do values[k] = results[k] end
        for k = 1, scans do
          local at = back_out[k] == 1 and length - i or i + 1
          lists[k][at] = results[states + k]
        end
      end
      local outputs = {}
      for k = 1, states do outputs[k] = values[k] end
      for k = 1, scans do outputs[states + k] = stacked(lists[k], output_axes[k] or 0, body.outputs[states + k]) end
      return table.unpack(outputs, 1, states + scans)
    end
  end)

define.define("SequenceConstruct", "", 1, 1000, function() return function(...) return { ... } end end)
define.define("SequenceEmpty", "dtype:i=1", 0, 0, function() return function() return {} end end)
define.plain("SequenceLength", 1, function(list) return ms.tensor(#list, ms.int64) end)

-- The place in a list that a position means, which may count from the end.
local function place(list, position, most)
  local i = define.number(position)
  if i < 0 then i = i + #list end
  if i < 0 or i > most then
    error(("the position %d is not in the sequence of %d"):format(define.number(position), #list), 0)
  end
  return i + 1
end

define.plain("SequenceAt", 2, function(list, position) return list[place(list, position, #list - 1)] end)

define.define("SequenceInsert", "", 2, 3, function()
  return function(list, tensor, position)
    local at = position and place(list, position, #list) or #list + 1
    local longer = {}
    for i = 1, #list + 1 do
      longer[i] = i < at and list[i] or i == at and tensor or list[i - 1]
    end
    return longer
  end
end)

define.define("SequenceErase", "", 1, 2, function()
  return function(list, position)
    local at = position and place(list, position, #list - 1) or #list
    local shorter = {}
    for i = 1, #list - 1 do shorter[i] = i < at and list[i] or list[i + 1] end
    return shorter
  end
end)

define.define("ConcatFromSequence", "axis:i! new_axis:i=0", 1, 1, function(a)
  return function(list)
    if a.new_axis ~= 0 then return ops.stack(list, a.axis) end
    return ops.concat(list, a.axis)
  end
end)

define.define("SplitToSequence", "axis:i=0 keepdims:i=1", 1, 2, function(a)
  return function(x, split)
    local axis = define.axis(x, a.axis)
    local length, lengths = x.shape[axis + 1], {}
    if not split then
      for i = 1, length do lengths[i] = 1 end
    elseif split.ndim == 0 then
      local each = define.number(split)
      for from = 0, length - 1, each do lengths[#lengths + 1] = math.min(each, length - from) end
    else
      lengths = define.integers(split)
    end
    local list = { ops.split(x, lengths, axis) }
    if not split and a.keepdims == 0 then
      for i, part in ipairs(list) do list[i] = ops.squeeze(part, { axis }) end
    end
    return list
  end
end)

define.define("SequenceMap", "body:g!", 1, 1000, function(_, node)
  local outputs = node.outputs
  return function(f, list, ...)
    local others, results = { ... }, {}
    for k = 1, outputs do results[k] = {} end
    for i = 1, #list do
      local arguments = { list[i] }
      for k, other in ipairs(others) do
        arguments[k + 1] = ms.is_tensor(other) and other or other[i]
      end
      local found = { f(table.unpack(arguments)) }
      for k = 1, outputs do results[k][i] = found[k] end
    end
    return table.unpack(results, 1, outputs)
  end
end)

define.define("Optional", "type:y", 0, 1, function() return function(value) return value end end)
define.define("OptionalHasElement", "", 0, 1, function() return function(value) return ms.tensor(value ~= nil) end end)
define.define("OptionalGetElement", "", 1, 1, function()
  return function(value)
    if value == nil then error("OptionalGetElement: the optional has no value", 0) end
    return value
  end
end)
