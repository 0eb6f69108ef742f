-- ms.lite.convert: a network as a light model.
local ms = require "lunaria"
local core = require "lunaria.lite_core"
local arguments = require "lunaria.nn.arguments"
local cells = require "lunaria.nn.cell"
local predicting = require "lunaria.nn.predicting"

local function fail(message, ...) arguments.fail("lite.convert", message:format(...)) end

local M = {}

-- The options by the names of MindSpore Lite's converter, with their defaults. refused: why a value is an error.
local function refused(why) return { refused = why } end
local function choice(default, ...)
  local values = {}
  for _, value in ipairs { default, ... } do values[value] = true end
  return { default = default, values = values }
end
M.options = {
  fmk = choice("by the file's name", "MINDIR", "ONNX"),
  inputShape = { default = "as the model states them" },
  inputDataFormat = choice "NCHW",
  outputDataFormat = choice "NCHW",
  inputDataType = choice "DEFAULT",
  outputDataType = choice "DEFAULT",
  optimize = choice "general",
  saveType = choice "MINDIR_LITE",
  fp16 = choice("off", "on"),
  infer = choice("false", "true"),
  configFile = { default = "none" },
  quant_type = choice("none", "WEIGHT_QUANT", "FULL_QUANT"),
  calibration = { default = "none" },
  bit_num = choice("8", "4"),
  min_quant_input_channel = { default = "8" },
  weightType = choice("f32", "f16", "bf16", "q8_0", "q4_0"),
  embed = { default = "none: a file of its own" },
  fixed = { default = "none" },
  trainModel = refused "ms.lite.convert_training writes files that train",
  encryption = choice("false", "true"),
  encryptKey = { default = "none; 32 hexadecimal digits" },
  weightFile = refused "it belongs to Caffe, which is not read",
  device = refused "light models run on processors",
  optimizeTransformer = refused "transformers are always fused",
}

-- The options of a file in INI form: names of sections only sort them.
function M.read_config(path)
  local file <close> = io.open(path) or fail("configFile: %s cannot be read", path)
  local found, number = {}, 0
  for line in file:lines() do
    number = number + 1
    local text = line:gsub("%s*[#;].*$", ""):match "^%s*(.-)%s*$"
    local name, value = text:match "^([%w_]+)%s*=%s*(.-)$"
    if name then
      found[name] = value
    elseif text ~= "" and not text:find "^%[[%w_]+%]$" then
      fail("configFile: %s:%d: '%s' is neither [section] nor name=value", path, number, text)
    end
  end
  return found
end

-- "name:1,3,32,32;other:batch=1,8" as { name = { 1, 3, 32, 32 }, other = { 1, 8, open = { "batch" } } }.
function M.shapes_of(text)
  local shapes = {}
  for entry in text:gmatch "[^;]+" do
    local name, sizes = entry:match "^%s*([^:]-)%s*:%s*(.-)%s*$"
    if not name then fail("inputShape: '%s' is not name:size,size,...", entry) end
    local shape = { open = {} }
    for size in sizes:gmatch "[^,%s]+" do
      local dimension, value = size:match "^([%a_][%w_]*)=(%d+)$"
      local number = math.tointeger(tonumber(value or size))
      if not number or number < 1 then fail("inputShape: %s is no size of input %s: a size is 32, or batch=1 if it is open", size, name) end
      shape[#shape + 1] = number
      shape.open[#shape] = dimension
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
  local dtype = rawget(ms, input.dtype) or ms.float32
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
  local lines, flops = {}, 0
  lines[1] = ("%-18s %6s %12s %10s  %s"):format("step", "nodes", "MFLOP", "KB", "operators, line")
  for _, step in ipairs(report.steps) do
    flops = flops + step.flops
    lines[#lines + 1] = ("%-18s %6d %12.3f %10.1f  %s%s"):format(step.kind, step.nodes, step.flops / 1e6, step.bytes / 1024,
      step.label, step.source ~= "" and "  (" .. step.source .. ")" or "")
  end
  lines[#lines + 1] = ("%d steps for %d operators, %.3f MFLOP, weights %d bytes, arena %d bytes"):format(#report.steps,
    report.operators, flops / 1e6, report.weights, report.arena)
  return table.concat(lines, "\n")
end

-- The options, checked, with those of a config file among them.
local function options_of(given)
  local options = {}
  for name, value in pairs(given.configFile and M.read_config(given.configFile) or {}) do options[name] = value end
  for name, value in pairs(given) do options[name] = value end
  local others = { outputFile = true, inputs = true, names = true, outputs = true }
  for name, value in pairs(options) do
    local option = M.options[name]
    if not option and not others[name] then fail("there is no option '%s'", tostring(name)) end
    if option and option.refused then fail("%s is not supported: %s", name, option.refused) end
    if option and option.values and not option.values[tostring(value)] then
      fail("%s = %s is not supported", name, tostring(value))
    end
  end
  return options
end

local function weight_type(options)
  if options.weightType then return options.weightType end
  if options.quant_type == "WEIGHT_QUANT" then return tostring(options.bit_num or 8) == "4" and "q4_0" or "q8_0" end
  return options.fp16 == "on" and "f16" or "f32"
end

-- The samples of the option calibration: a list of lists of inputs. They are tensors in the order of the inputs, or a file of them by
-- name, with a first axis of samples.
local function samples_of(given, about)
  if type(given) == "string" then
    local found, list = ms.load_safetensors(given), {}
    for i, input in ipairs(about and about.inputs or {}) do
      list[i] = found[input.name] or fail("calibration: %s has no tensor %s", given, input.name)
    end
    given = list
  end
  if type(given) ~= "table" or not ms.is_tensor(given[1]) or given[1].ndim == 0 then
    fail "calibration must be a file or a list of tensors with a first axis of samples"
  end
  local batches, count = {}, 0
  for s = 0, given[1].shape[1] - 1 do
    local one = {}
    for i, x in ipairs(given) do one[i] = x[s] end
    batches[s + 1], count = one, count + (one[1].ndim > 0 and one[1].shape[1] or 1)
  end
  return batches, count
end

-- The network with rounded weights and inputs, where that is wanted.
local function quantised(model, f, about, inputs, options)
  if options.quant_type ~= "FULL_QUANT" then
    if options.calibration then fail "calibration is for quant_type = FULL_QUANT" end
    return f
  end
  if not options.calibration then fail "quant_type = FULL_QUANT needs samples: calibration" end
  local batches, count = samples_of(options.calibration, about)
  local least = math.tointeger(tonumber(options.min_quant_input_channel or 8))
  if not least or least < 0 then fail "min_quant_input_channel is a number of channels" end
  local settings = { calibrate_data = batches, calibrate_size = count, bit_num = math.tointeger(tonumber(options.bit_num or 8)),
    min_quant_input_channel = least }
  if type(model) ~= "string" or model:find "%.onnx$" then return (ms.lite.quantize(model, settings)) end
  -- Layers are found in the form of ONNX.
  local path = os.tmpname()
  local given = table.move(inputs, 1, #inputs, 1, {})
  given[#given + 1] = { file_name = path, file_format = "ONNX" }
  local fine, made = pcall(function()
    ms.export(f, table.unpack(given))
    return (ms.lite.quantize(path .. ".onnx", settings))
  end)
  os.remove(path)
  os.remove(path .. ".onnx")
  return fine and made or error(made, 0)
end

-- The network with some inputs as constants. fixed: by position.
local function converted(f, inputs, fixed, options, settings)
  local left, names, places = {}, {}, {}
  for i, input in ipairs(inputs) do
    if not fixed[i] then
      left[#left + 1], names[#names + 1], places[#places + 1] = input, settings.inputs[i] or "input" .. i - 1, i
    end
  end
  local function run(...)
    local args, given = { table.unpack(inputs) }, { ... }
    for k, place in ipairs(places) do args[place] = given[k] end
    return table.unpack(flat(table.pack(f(table.unpack(args, 1, #inputs))), {}))
  end
  local all = { inputs = names, outputs = settings.outputs, properties = settings.properties, weights = weight_type(options) }
  local made, operators = core.convert(run, left, all)
  return made, operators, left, names
end

-- Inputs by which a network decides, such as shapes, are fixed to their examples: fewer before more.
local function with_fixed(f, inputs, options, settings)
  if not options.fixed then return converted(f, inputs, {}, options, settings) end
  local tries = { {}, {}, {}, {} }
  if type(options.fixed) == "table" then
    tries = { {} }
    for _, name in ipairs(options.fixed) do
      local place
      for i, known in ipairs(settings.inputs) do if known == name then place = i end end
      tries[1][place or fail("fixed: there is no input '%s'", name)] = true
    end
  else
    for i, input in ipairs(inputs) do
      local whole = not ms.ops.is_floating_point(input)
      tries[2][i] = whole and #input.shape <= 1
      tries[3][i] = whole or #input.shape == 0
      tries[4][i] = whole or #input.shape <= 1
    end
  end
  local problem
  for _, fixed in ipairs(tries) do
    local found = table.pack(pcall(converted, f, inputs, fixed, options, settings))
    if found[1] then return table.unpack(found, 2, found.n) end
    problem = problem or found[2]
  end
  error(problem, 0)
end

-- The open sizes of the inputs: names in their order, the size of each, and which axis of which input has it.
local function open_sizes(shapes, names, inputs)
  local found = { names = {}, base = {}, open = {} }
  local number = {}
  for i, name in ipairs(names) do
    local shape = shapes[name]
    found.open[i] = {}
    for axis = 1, #inputs[i].shape do
      local dimension = shape and shape.open[axis]
      if dimension and not number[dimension] then
        number[dimension] = #found.names
        found.names[#found.names + 1], found.base[#found.base + 1] = dimension, shape[axis]
      end
      if dimension and found.base[number[dimension] + 1] ~= shape[axis] then fail("inputShape: %s has two sizes", dimension) end
      found.open[i][axis] = dimension and number[dimension] or false
    end
  end
  return found
end

-- The sizes at which the network is converted: five further ones of each, whose remainders by small
-- numbers differ and that lie far apart, and others of all together.
local function points_of(base, step)
  local points = { base }
  local function point(change)
    local sizes = {}
    for d, size in ipairs(base) do sizes[d] = size + step * change(d) end
    points[#points + 1] = sizes
  end
  for d = 1, #base do
    for _, far in ipairs { 1, 2, 3, 12, 31 } do point(function(other) return other == d and far or 0 end) end
  end
  point(function(d) return 2 + d end)
  return points
end

local function resizable(f, inputs, shapes, options, settings)
  local names = {}
  for i = 1, #inputs do names[i] = settings.inputs[i] or "input" .. i - 1 end
  local sizes = open_sizes(shapes, names, inputs)
  local all = { inputs = names, outputs = settings.outputs, properties = settings.properties, weights = weight_type(options) }
  local function run(...) return table.unpack(flat(table.pack(f(...)), {})) end
  local problem
  -- Some networks take only multiples of a size.
  for _, step in ipairs { 1, 2, 8, 32 } do
    sizes.step, sizes.sizes = step, points_of(sizes.base, step)
    local examples = {}
    for p, point in ipairs(sizes.sizes) do
      examples[p] = {}
      for i, input in ipairs(inputs) do
        local shape = {}
        for axis, d in ipairs(sizes.open[i]) do shape[axis] = d and point[d + 1] or input.shape[axis] end
        examples[p][i] = p == 1 and input or ms.ops.cast(ms.ops.zeros(shape), input.dtype)
      end
    end
    local fine, made = pcall(core.resizable, run, examples, all, sizes)
    if fine then return made, select(2, core.convert(run, inputs, all)), inputs, names end
    problem = problem or made
  end
  error(problem, 0)
end

local function write(made, options)
  if options.embed and not tostring(options.embed):find "^[%a_][%w_]*$" then fail("embed: '%s' is no name in C", options.embed) end
  local encrypts = tostring(options.encryption or options.encryptKey ~= nil) == "true"
  if encrypts and not options.encryptKey then fail "encryption needs a key: encryptKey" end
  core.write(made, options.outputFile, options.embed, encrypts and options.encryptKey or nil)
end

local function has_open(shapes)
  for _, shape in pairs(shapes) do
    if next(shape.open) then return true end
  end
  return false
end

local function converted_model(model, options)
  options = options_of(options or {})
  local f, about, inputs = model, nil, options.inputs
  local shapes = M.shapes_of(options.inputShape or "")
  if type(model) == "string" then
    f, about = load(model)
    inputs = inputs or examples_of(about, shapes)
  elseif not inputs then
    fail("example inputs are missing: { inputs = { ms.ops.zeros { 1, 3, 32, 32 } } }")
  end
  local settings = {
    inputs = options.names or names_of(about and about.inputs, "input"),
    outputs = options.outputs or names_of(about and about.outputs, "output"),
    properties = { converted_from = type(model) == "string" and model:match "[^/]*$" or "a network in memory" },
  }
  f = quantised(model, f, about, inputs, options)
  local is_open = has_open(shapes)
  if is_open and options.fixed then fail "fixed does not go with open sizes" end
  local made, operators, left, names
  if is_open then
    made, operators, left, names = resizable(f, inputs, shapes, options, settings)
  else
    made, operators, left, names = with_fixed(f, inputs, options, settings)
  end
  if options.outputFile then write(made, options) end
  local report = core.report(made)
  report.operators, report.inputs = operators, names
  if tostring(options.infer) == "true" then report.results = core.run(made, left) end
  report.run = function(given) return core.run(made, given) end
  report.text = text_of(report)
  return setmetatable(report, { __tostring = function(self) return self.text end })
end

--- Converts a network to a light model, as it predicts. model: a .mindir or .onnx file, or a cell or function of tensors, for which
--- the option inputs has examples. Options: outputFile, the file to write; inputShape ("x:batch=1,3,32,32": a size with a name is
--- open); weightType "f32", "f16", "bf16", "q8_0" or "q4_0", or fp16 = "on"; quant_type "WEIGHT_QUANT" or "FULL_QUANT" with
--- calibration (a list of tensors, samples along a new first axis) and min_quant_input_channel (8: convolutions of fewer input
--- channels stay floating, which is faster; 0 for processors without floats); encryptKey; embed, the name of an array in C; configFile;
--- infer = true runs the light model on the inputs. names and outputs name inputs and results. `lunaria lite convert --help` has all.
--- Gives a report that prints: steps (kind, nodes, flops, bytes, label, source), arena and weights (bytes), operators (their number),
--- inputs (names), results (of infer) and text.
---     > ms.lite.convert(ms.nn.Dense(2, 3), { inputs = { ms.zeros { 1, 2 } } }).steps[1].kind --> product
function M.convert(model, options)
  if not cells.is_cell(model) then return converted_model(model, options) end
  local back = predicting(model)
  local fine, report = pcall(converted_model, model, options)
  back()
  if not fine then error(report, 0) end
  return report
end

return M
