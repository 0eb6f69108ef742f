-- {dynamic_axes = } of ms.export: a graph that was written for inputs of some sizes becomes one for all sizes along these axes.
-- The function is traced with two more sizes. What is the same in all three is written as it is; a list of integers that is not
-- (the shape of a reshape, the end of a slice) is computed from the inputs' shapes, where each of its elements is k d + c or
-- k d e of such sizes d and e; so are the shapes of constants whose elements are all the same, and the lengths of ranges.
-- Anything else is an error that names the operator.
local ms = require "lunaria"
local arguments = require "lunaria.nn.arguments"

local M = {}

local function fail(message, hint) arguments.fail("export", message, hint) end

--- The axes that the option names, as a list of { input = , axis = , name = , size = }, and by input and axis. names, given: the inputs.
function M.axes(option, names, given)
  if type(option) ~= "table" or getmetatable(option) ~= nil then
    fail("dynamic_axes must be a table such as { x = { [0] = \"batch\" } }, got " .. arguments.describe(option))
  end
  local places, list, sizes = {}, {}, {}
  for i, name in ipairs(names) do places[name] = i end
  for input, axes in pairs(option) do
    local i = places[input]
    if not i then fail(("dynamic_axes: there is no input '%s'; there are: %s"):format(tostring(input), table.concat(names, ", "))) end
    if type(axes) ~= "table" then fail(("dynamic_axes.%s must be a table of axes, got %s"):format(input, arguments.describe(axes))) end
    for key, value in pairs(axes) do
      local axis, name = value, ("%s_dim_%s"):format(input, tostring(value))
      if type(value) == "string" then axis, name = key, value end
      if math.type(axis) ~= "integer" or axis < 0 or axis >= given[i].ndim then
        fail(("dynamic_axes.%s: %s is no axis of an input of shape %s"):format(input, tostring(axis), tostring(given[i].shape)))
      end
      local size = given[i].shape[axis + 1]
      if sizes[name] and sizes[name] ~= size then
        fail(("dynamic_axes: '%s' is %d in one place and %d in another"):format(name, sizes[name], size))
      end
      sizes[name] = size
      list[#list + 1] = { input = i, axis = axis, name = name, size = size }
    end
  end
  table.sort(list, function(p, q) return p.input < q.input or p.input == q.input and p.axis < q.axis end)
  local step, steps = 0, {}
  for _, entry in ipairs(list) do
    if not steps[entry.name] then
      step = step + 1
      steps[entry.name] = step
    end
  end
  -- Sizes of several names may not change in the same proportion: one would do for the other.
  for _, entry in ipairs(list) do
    local at = steps[entry.name]
    entry.sizes, entry.steps = { entry.size }, { at, 2 * step + 1 - at }
  end
  return list
end

--- The inputs with the second or third sizes along the axes (which: 1 or 2), larger ones or smaller ones (sign); elements are taken
--- again. Nothing where a size would be 0.
function M.resized(given, axes, which, sign)
  local inputs = table.move(given, 1, given.n, 1, { n = given.n })
  for _, entry in ipairs(axes) do
    local size = entry.size + sign * entry.steps[which]
    if size < 1 then return nil end
    entry.sizes[which + 1] = size
    local places = ms.ops.remainder(ms.ops.arange(size), entry.size)
    inputs[entry.input] = ms.ops.index_select(inputs[entry.input], entry.axis, places)
  end
  return inputs
end

local function same_value(a, b)
  if type(a) ~= "table" then return a == b end
  if #a ~= #b then return false end
  for i = 1, #a do
    if a[i] ~= b[i] then return false end
  end
  return true
end

local function same_tensor(a, b)
  if rawequal(a, b) then return true end
  if a.dtype ~= b.dtype or tostring(a.shape) ~= tostring(b.shape) then return false end
  return a.size == 0 or ms.ops.all(ms.ops.equal(a, b)):item()
end

local function check_nodes(graph, other)
  local same = #graph.nodes == #other.nodes and #graph.initializers == #other.initializers
  for i = 1, same and #graph.nodes or 0 do
    local p, q = graph.nodes[i], other.nodes[i]
    same = same and p.op == q.op and same_value(p.inputs, q.inputs) and #p.attributes == #q.attributes
    for k = 1, same and #p.attributes or 0 do
      local a, b = p.attributes[k], q.attributes[k]
      if a.name ~= b.name or not same_value(a.value, b.value) then
        fail(("the attribute '%s' of ops.%s depends on a size that dynamic_axes names"):format(a.name, p.of or p.op))
      end
    end
  end
  if not same then fail "which operators are called depends on a size that dynamic_axes names" end
end

-- What the element is in all three graphs, of the sizes: { number } or { factor, more, axis [, axis] }.
local function formula(values, axes)
  if values[1] == values[2] and values[2] == values[3] then return { values[1] } end
  for _, entry in ipairs(axes) do
    local d = entry.sizes
    local factor = (values[2] - values[1]) // (d[2] - d[1])
    local more = values[1] - factor * d[1]
    if values[2] == factor * d[2] + more and values[3] == factor * d[3] + more then return { factor, more, entry } end
  end
  for i, p in ipairs(axes) do
    for k = i, #axes do
      local q = axes[k]
      local factor = values[1] // (p.sizes[1] * q.sizes[1])
      local fits = factor > 0
      for n = 1, 3 do fits = fits and values[n] == factor * p.sizes[n] * q.sizes[n] end
      if fits then return { factor, 0, p, q } end
    end
  end
end

--- Makes of `graph` one for all sizes; others: the same for the two other sizes.
function M.generalise(graph, inputs, others, axes)
  for _, other in ipairs(others) do check_nodes(graph, other) end
  local made, kept = {}, {}
  local function node(op, from, attributes, name)
    name = name or graph:fresh(op)
    made[#made + 1] = { op = op, name = name, inputs = from, outputs = { name }, attributes = attributes or {} }
    return name
  end
  local function keep(value)
    local name = graph:fresh "constant"
    kept[#kept + 1] = { name = name, value = value }
    return name
  end
  local function constant(value) return keep(ms.tensor({ value }, ms.int64)) end
  local function size_of(entry)
    local at = entry.axis
    entry.value = entry.value or node("Shape", { inputs[entry.input].name },
      { { name = "end", kind = "integer", value = at + 1 }, { name = "start", kind = "integer", value = at } })
    return entry.value
  end
  -- A list of integers by the formulas of its elements.
  local function list_of(lists, name)
    local parts = {}
    if #lists[1] == 0 or #lists[1] ~= #lists[2] or #lists[2] ~= #lists[3] then return nil end
    for k = 1, #lists[1] do
      local f = formula({ lists[1][k], lists[2][k], lists[3][k] }, axes)
      if not f then return nil end
      if #f == 1 then
        parts[k] = constant(f[1])
      else
        parts[k] = size_of(f[3])
        if f[4] then parts[k] = node("Mul", { parts[k], size_of(f[4]) }) end
        if f[1] ~= 1 then parts[k] = node("Mul", { parts[k], constant(f[1]) }) end
        if f[2] ~= 0 then parts[k] = node("Add", { parts[k], constant(f[2]) }) end
      end
    end
    return node("Concat", parts, { { name = "axis", kind = "integer", value = 0 } }, name)
  end
  local function of_sizes(tensors, name)
    local lists = {}
    for n, t in ipairs(tensors) do
      if t.dtype ~= ms.int64 or t.ndim ~= 1 then return nil end
      lists[n] = t:tolist()
    end
    return list_of(lists, name)
  end
  -- A tensor whose elements are all the same, of a shape that is computed.
  local function of_one_number(tensors, name)
    local shapes, first = {}, nil
    for n, t in ipairs(tensors) do
      if t.size == 0 or t.dtype ~= tensors[1].dtype then return nil end
      first = first or ms.ops.reshape(t, { -1 })[0]
      if not ms.ops.all(ms.ops.equal(t, first)):item() then return nil end
      shapes[n] = table.move(t.shape, 1, #t.shape, 1, {})
    end
    local shape = list_of(shapes)
    return shape and node("Expand", { keep(first), shape }, nil, name)
  end
  -- A list of numbers a, a + b, a + 2 b ... of a length that is computed.
  local function in_steps(tensors, name)
    local dtype, sizes, lists = tensors[1].dtype, {}, {}
    for n, t in ipairs(tensors) do
      if t.ndim ~= 1 or t.size < 2 or t.dtype ~= dtype then return nil end
      sizes[n], lists[n] = { t.size }, t:tolist()
    end
    local from, step = lists[1][1], lists[1][2] - lists[1][1]
    for _, list in ipairs(lists) do
      for k, x in ipairs(list) do
        if x ~= from + (k - 1) * step then return nil end
      end
    end
    if dtype ~= ms.int64 and dtype ~= ms.int32 and dtype ~= ms.float32 and dtype ~= ms.float64 then return nil end
    local count = list_of(sizes)
    if not count then return nil end
    local function number(x) return keep(ms.tensor(x, dtype)) end
    local scalar = node("Squeeze", { count })
    scalar = node("Cast", { scalar }, { { name = "to", kind = "integer", value = require "lunaria.onnx_files".number(dtype) } })
    local limit = node("Add", { node("Mul", { scalar, number(step) }), number(from) })
    return node("Range", { number(from), limit, number(step) }, nil, name)
  end
  for i, initializer in ipairs(graph.initializers) do
    local second, third = others[1].initializers[i], others[2].initializers[i]
    if same_tensor(initializer.value, second.value) and same_tensor(initializer.value, third.value) then
      kept[#kept + 1] = initializer
    else
      local tensors = { initializer.value, second.value, third.value }
      if not (of_sizes(tensors, initializer.name) or of_one_number(tensors, initializer.name) or in_steps(tensors, initializer.name)) then
        fail(("what ops.%s is given depends on a size that dynamic_axes names"):format(initializer.of or "?"),
          "leave that axis out, or write the function without such a constant")
      end
    end
  end
  graph.initializers = kept
  graph.nodes = table.move(graph.nodes, 1, #graph.nodes, #made + 1, made)
end

--- The shape with the names of the sizes that differ. shapes: of the three graphs; what: the value's name.
function M.named_shape(shapes, axes, what)
  local shape = {}
  for k = 1, #shapes[1] do
    local f = formula({ shapes[1][k], shapes[2][k], shapes[3][k] }, axes)
    if f and #f == 1 then
      shape[k] = f[1]
    elseif f and f[1] == 1 and f[2] == 0 and not f[4] then
      shape[k] = f[3].name
    else
      shape[k] = ("%s_dim_%d"):format(what, k - 1)
    end
  end
  return shape
end

return M
