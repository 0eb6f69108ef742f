-- ms.export(net, example inputs ..., {file_name = , file_format = "ONNX"}): the operators that the network calls, written as
-- ONNX nodes, for inputs of these sizes. What is written is read back and compared with the network before the file is
-- there.
local ms = require "lunaria"
local files = require "lunaria.onnx_files"
local arguments = require "lunaria.nn.arguments"
local handlers = require "lunaria.onnx.export_operators"
local new_graph = require "lunaria.onnx.graph_writer"
local dynamic = require "lunaria.onnx.dynamic"
local load_model = require "lunaria.onnx.load"

local function fail(message, hint) arguments.fail("export", message, hint) end

-- A name for a value of the model: letters of any kind but nothing that a path or a message could trip over.
local function plain(name, otherwise) return name and name ~= "" and (name:gsub("[%c/ ]", "_")) or otherwise end

local function write_nodes(traced, shares)
  local graph = new_graph(shares)
  local inputs = {}
  for i, input in ipairs(traced.inputs) do
    local name = plain(input.name, "x" .. i - 1)
    if graph.taken[name] then name = graph:fresh(name) end
    graph.taken[name] = true
    graph.names[input.id] = { name }
    inputs[i] = { name = name, dtype = input.dtype, shape = input.shape }
  end
  local missing, seen = {}, {}
  for _, node in ipairs(traced.nodes) do
    if not handlers[node.op] and not seen[node.op] then
      missing[#missing + 1] = node.op
      seen[node.op] = true
    end
  end
  table.sort(missing)
  if #missing > 0 then
    fail("ONNX has no form of: " .. table.concat(missing, ", "), 'file_format = "MINDIR" holds all operators')
  end
  for _, node in ipairs(traced.nodes) do
    graph.op = node.op
    graph.names[node.id] = { handlers[node.op](graph, node.args, node) }
  end
  graph.op = nil
  local outputs = {}
  for i, result in ipairs(traced.results) do
    -- A name of its own, also where the result is an input or a constant, or is given twice.
    local name = #traced.results == 1 and "output" or "output_" .. i - 1
    while graph.taken[name] do name = name .. "_" end
    graph.taken[name] = true
    local from = graph:value(result)
    graph.nodes[#graph.nodes + 1] = { op = "Identity", name = name, inputs = { from }, outputs = { name }, attributes = {} }
    outputs[i] = { name = name, dtype = result.dtype, shape = result.shape }
  end
  return graph, inputs, outputs
end

-- Whether both are the same but for rounding.
local function is_close(a, b)
  if a.dtype ~= b.dtype or tostring(a.shape) ~= tostring(b.shape) then return false end
  if a.size == 0 then return true end
  local x, y = ms.ops.cast(a, ms.float64), ms.ops.cast(b, ms.float64)
  local either = ms.ops.logical_or(ms.ops.equal(x, y), ms.ops.logical_and(ms.ops.isnan(x), ms.ops.isnan(y)))
  local coarse = a.dtype == ms.float16 or a.dtype == ms.bfloat16
  local near = ms.ops.less_equal(ms.ops.abs(x - y), ms.ops.abs(y) * (coarse and 2e-2 or 1e-3) + (coarse and 1e-2 or 1e-5))
  return ms.ops.all(ms.ops.logical_or(either, near)):item()
end

local function check(f, path, inputs, count)
  local expected = table.pack(f(table.unpack(inputs, 1, count)))
  local loaded = load_model(path)
  local found = table.pack(loaded(table.unpack(inputs, 1, count)))
  local same = expected.n == found.n
  for i = 1, expected.n do same = same and is_close(found[i], expected[i]) end
  if not same then
    fail("the function gives another result when it is called again: it draws random numbers or changes what it depends on",
      "leave the training mode before: net:set_train(false)")
  end
end

local function trace(f, given)
  local traced = files.graph(f, handlers, table.unpack(given, 1, given.n))
  if not traced then
    fail("the function is not made of operators alone: it reads or writes elements of its inputs, decides by them, or gives "
      .. "something else than tensors",
      'file_format = "MINDIR" holds loops and branches')
  end
  return traced
end

-- Makes the graph one for all sizes of the axes; gives inputs of other sizes, for which it has to be right as well.
local function for_all_sizes(f, given, option, graph, inputs, outputs)
  local names, last = {}, nil
  for i, input in ipairs(inputs) do names[i] = input.name end
  local axes = dynamic.axes(option, names, given)
  local function written(which, sign)
    local other = dynamic.resized(given, axes, which, sign)
    if not other then return nil end
    local fine, traced = pcall(trace, f, other)
    if not fine then
      last = traced
      return nil
    end
    local of_other, _, results = write_nodes(traced, false)
    return { graph = of_other, outputs = results, inputs = other }
  end
  -- Larger sizes, or smaller ones where a network has a largest.
  local p = written(1, 1)
  local q = p and written(2, 1)
  if not q then
    p = written(1, -1)
    q = p and written(2, -1)
  end
  if not q then fail("the function cannot be traced with other sizes along dynamic_axes: " .. tostring(last or "they are too small")) end
  for _, entry in ipairs(axes) do
    local input = inputs[entry.input]
    input.shape = table.move(input.shape, 1, #input.shape, 1, {})
    input.shape[entry.axis + 1] = entry.name
  end
  dynamic.generalise(graph, inputs, { p.graph, q.graph }, axes)
  for i, output in ipairs(outputs) do
    output.shape = dynamic.named_shape({ output.shape, p.outputs[i].shape, q.outputs[i].shape }, axes, output.name)
  end
  return q.inputs
end

return function(f, ...)
  local given = table.pack(...)
  local options = given[given.n]
  local count = given.n - 1
  local name = options.file_name
  if type(name) ~= "string" then fail "file_name is missing" end
  if not name:find "%.onnx$" then name = name .. ".onnx" end
  for i = 1, count do
    if not ms.is_tensor(given[i]) then
      fail(("example inputs must be tensors, input %d is %s"):format(i - 1, arguments.describe(given[i])))
    end
  end
  given.n = count
  local traced = trace(f, given)
  local graph, inputs, outputs = write_nodes(traced, options.dynamic_axes == nil)
  local other = options.dynamic_axes and for_all_sizes(f, given, options.dynamic_axes, graph, inputs, outputs)
  local draft <close> = ms.io.draft(name)
  files.write(draft, {
    opset = graph.opset, name = "main", nodes = graph.nodes, initializers = graph.initializers, inputs = inputs, outputs = outputs,
  })
  check(f, draft.path, given, count)
  if other then check(f, draft.path, other, count) end
  draft:commit()
end
