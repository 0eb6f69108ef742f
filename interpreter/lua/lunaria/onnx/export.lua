-- ms.export(net, example inputs ..., {file_name = , file_format = "ONNX"}): the operators that the network calls, written as
-- ONNX nodes, for inputs of these sizes. What is written is read back and compared with the network before the file is
-- there.
local ms = require "lunaria"
local files = require "lunaria.onnx_files"
local arguments = require "lunaria.nn.arguments"
local handlers = require "lunaria.onnx.export_operators"
local new_graph = require "lunaria.onnx.graph_writer"

local opset = 18

local function fail(message, hint) arguments.fail("export", message, hint) end

-- A name for a value of the model: letters of any kind but nothing that a path or a message could trip over.
local function plain(name, otherwise) return name and name ~= "" and (name:gsub("[%c/ ]", "_")) or otherwise end

local function write_nodes(traced)
  local graph = new_graph()
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
  local loaded = ms.load(path)
  local found = table.pack(loaded(table.unpack(inputs, 1, count)))
  local same = expected.n == found.n
  for i = 1, expected.n do same = same and is_close(found[i], expected[i]) end
  if not same then
    fail("the function gives another result when it is called again: it draws random numbers or changes what it depends on",
      "leave the training mode before: net:set_train(false)")
  end
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
  -- What is compiled has no operators of its own any more.
  local mode = ms.get_context "mode"
  ms.set_context { mode = ms.PYNATIVE_MODE }
  local fine, traced = pcall(files.graph, f, handlers, table.unpack(given, 1, count))
  ms.set_context { mode = mode }
  if not fine then error(traced, 0) end
  if not traced then
    fail("the function is not made of operators alone: it reads or writes elements of its inputs, decides by them, or gives "
      .. "something else than tensors",
      'file_format = "MINDIR" holds loops and branches')
  end
  local graph, inputs, outputs = write_nodes(traced)
  local temporary = ms.io.draft(name, ".onnx")
  -- Whatever ends this, also an interrupt, the draft goes.
  local _ <close> = setmetatable({}, { __close = function() os.remove(temporary) end })
  files.write(temporary, {
    opset = opset, name = "main", nodes = graph.nodes, initializers = graph.initializers, inputs = inputs, outputs = outputs,
  })
  check(f, temporary, given, count)
  local moved, why = os.rename(temporary, name)
  if not moved then fail(why) end
end
