-- ms.lite.convert: a network as a light model.
local ms = require "lunaria"
local core = require "lunaria.lite_core"
local arguments = require "lunaria.nn.arguments"

local function fail(message, ...) arguments.fail("lite.convert", message:format(...)) end

local M = {}

-- The options by the names of MindSpore Lite's converter, with their defaults. refused: why a value is an error.
local function refused(why) return { refused = why } end
M.options = {
  fmk = { default = "by the file's name", values = { MINDIR = true, ONNX = true } },
  inputShape = { default = "as the model states them" },
  inputDataFormat = { default = "as the model has it", values = { NCHW = true } },
  outputDataFormat = { default = "as the model has it", values = { NCHW = true } },
  inputDataType = { default = "as the model has it", values = { DEFAULT = true } },
  outputDataType = { default = "as the model has it", values = { DEFAULT = true } },
  optimize = { default = "general", values = { general = true } },
  saveType = { default = "MINDIR_LITE", values = { MINDIR_LITE = true } },
  infer = { default = "false" },
  weightFile = refused "it belongs to Caffe, which is not read",
  device = refused "light models run on processors",
  optimizeTransformer = refused "transformers are always fused",
}

-- "name:1,3,32,32;other:1,8" as { name = { 1, 3, 32, 32 }, ... }. A size of -1 or a name is not a size.
function M.shapes_of(text)
  local shapes = {}
  for entry in text:gmatch "[^;]+" do
    local name, sizes = entry:match "^%s*(.-)%s*:%s*([%-%d%s,]*)$"
    if not name then fail("inputShape: '%s' is not name:size,size,...", entry) end
    local shape = {}
    for size in sizes:gmatch "[^,%s]+" do
      local number = math.tointeger(tonumber(size))
      if not number or number < 1 then fail("inputShape: %s is no size of input %s", size, name) end
      shape[#shape + 1] = number
    end
    shapes[name] = shape
  end
  return shapes
end

local function load(path)
  if not path:find "%.mindir$" and not path:find "%.onnx$" then
    fail("'%s' is no model: .mindir and .onnx files are", path)
  end
  local f, _, about = ms.load(path)
  if type(f) ~= "function" and not about then fail("'%s' holds no network", path) end
  return f, about
end

-- A tensor of that type, with elements that are valid as floats, indices and masks.
local function example(input, shape)
  local dtype = ms[input.dtype] or ms.float32
  return ms.ops.cast(ms.ops.zeros(shape), dtype)
end

local function examples_of(about, shapes)
  local inputs, known = {}, {}
  for i, input in ipairs(about.inputs) do
    local name = input.name ~= "" and input.name or "input" .. i - 1
    known[name] = true
    local shape = shapes[name]
    if not shape then
      if not input.shape then fail("the model does not state the shape of input %s: give it by inputShape", name) end
      shape = {}
      for axis, size in ipairs(input.shape) do
        if math.type(size) ~= "integer" or size < 0 then
          fail("axis %d of input %s is open: give its shape by inputShape", axis - 1, name)
        end
        shape[axis] = size
      end
    end
    inputs[i] = example(input, shape)
  end
  for name in pairs(shapes) do
    if not known[name] then fail("inputShape: there is no input '%s'", name) end
  end
  return inputs
end

local function names_of(list, prefix)
  local names = {}
  for i, one in ipairs(list or {}) do names[i] = one.name and one.name ~= "" and one.name or prefix .. i - 1 end
  return names
end

-- The tensors among the results of f, in their order.
local function flat(results, into)
  for i = 1, results.n or #results do
    local one = results[i]
    if ms.is_tensor(one) then
      into[#into + 1] = one
    elseif type(one) == "table" then
      flat(one, into)
    end
  end
  return into
end

-- What a report prints of each step.
local function text_of(report)
  local lines, nodes, flops = {}, 0, 0
  lines[1] = ("%-18s %6s %12s %10s  %s"):format("step", "nodes", "MFLOP", "KB", "operators, line")
  for _, step in ipairs(report.steps) do
    nodes, flops = nodes + step.nodes, flops + step.flops
    lines[#lines + 1] = ("%-18s %6d %12.3f %10.1f  %s%s"):format(step.kind, step.nodes, step.flops / 1e6, step.bytes / 1024,
      step.label, step.source ~= "" and "  (" .. step.source .. ")" or "")
  end
  lines[#lines + 1] = ("%d steps for %d operators, %.3f MFLOP, weights %d bytes, arena %d bytes"):format(#report.steps,
    nodes, flops / 1e6, report.weights, report.arena)
  return table.concat(lines, "\n")
end

--- Converts a network to a light model: `model` is a .mindir or .onnx file, a cell or a function of tensors; then `inputs`
--- are examples. Returns a report: a table with steps (kind, nodes, flops, bytes, label, source), arena and weights (bytes)
--- and text.
function M.convert(model, options)
  options = options or {}
  local known = { outputFile = true, inputs = true, names = true, outputs = true }
  for name, value in pairs(options) do
    local option = M.options[name]
    if not option and not known[name] then fail("there is no option '%s'", tostring(name)) end
    if option and option.refused then fail("%s is not supported: %s", name, option.refused) end
    if option and option.values and not option.values[tostring(value)] then
      fail("%s = %s is not supported", name, tostring(value))
    end
  end
  local f, about, inputs = model, nil, options.inputs
  if type(model) == "string" then
    f, about = load(model)
    inputs = inputs or examples_of(about, M.shapes_of(options.inputShape or ""))
  elseif not inputs then
    fail("example inputs are missing: { inputs = { ms.ops.zeros { 1, 3, 32, 32 } } }")
  elseif type(model) == "table" and model.set_train then
    model:set_train(false)
  end
  local count = 0
  local function run(...)
    local results = flat({ f(...) }, {})
    count = #results
    return table.unpack(results)
  end
  local made = core.convert(run, inputs, {
    inputs = options.names or names_of(about and about.inputs, "input"),
    outputs = options.outputs or names_of(about and about.outputs, "output"),
    properties = { converted_from = type(model) == "string" and model:match "[^/]*$" or "a network in memory" },
  })
  if options.outputFile then core.write(made, options.outputFile) end
  local report = core.report(made)
  report.text = text_of(report)
  report.outputs = count
  return report
end

return M
