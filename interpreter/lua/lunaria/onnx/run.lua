-- lunaria onnx-run MODEL.onnx --inputs DIR --outputs DIR
--
-- Inputs are DIR/NAME.pb or DIR/input_N.pb (as in the folders of the ONNX tests), or tensors by name in DIR/*.safetensors;
-- outputs are written as output_N.pb, sequences and values that may be missing as well, and tensors together as
-- outputs.safetensors.
local ms = require "lunaria"
local files = require "lunaria.onnx_files"

local usage = [[
usage: lunaria onnx-run MODEL.onnx --inputs DIR --outputs DIR
exit status: 0 when it ran, 3 when the model uses what is not supported here, 1 for all else that is wrong]]
local refused = 3

local function fail(message) error("onnx-run: " .. message, 0) end

local function exists(path) return ms.io.kind(path) ~= nil end

-- The tensors by name in the safetensors files of a folder, and nil where there is none of the usual names.
local function by_name(folder)
  for _, name in ipairs { "inputs.safetensors", "input.safetensors" } do
    if exists(folder .. "/" .. name) then return ms.load(folder .. "/" .. name) end
  end
  return {}
end

local function read_inputs(folder, inputs)
  local named, values = by_name(folder), {}
  for i, input in ipairs(inputs) do
    local plain = not input.name:find "[/%z]" and folder .. "/" .. input.name .. ".pb"
    local numbered = ("%s/input_%d.pb"):format(folder, i - 1)
    if named[input.name] then
      values[i] = named[input.name]
    elseif plain and exists(plain) then
      values[i] = files.read_value(plain, input.type)
    elseif exists(numbered) then
      values[i] = files.read_value(numbered, input.type)
    else
      fail(("the folder '%s' has no input '%s'; it may be in inputs.safetensors, in '%s.pb' or in input_%d.pb"):format(folder,
        input.name, input.name, i - 1))
    end
  end
  return values
end

local function write_outputs(folder, outputs, values)
  local named = {}
  for i, output in ipairs(outputs) do
    local value = values[i]
    if ms.is_tensor(value) then
      named[output.name] = value
    end
    files.write_value(("%s/output_%d.pb"):format(folder, i - 1), output.name, value, output.type)
  end
  if next(named) then ms.save(folder .. "/outputs.safetensors", named) end
end

return function(...)
  local words, options, model = { ... }, {}, nil
  local i = 1
  while i <= #words do
    local option = words[i]:match "^%-%-(.*)$"
    if option == "inputs" or option == "outputs" then
      if not words[i + 1] then fail(("--%s needs a folder\n%s"):format(option, usage)) end
      options[option] = words[i + 1]
      i = i + 2
    elseif option == "help" then
      print(usage)
      return
    elseif option or model then
      fail(("'%s' is not understood\n%s"):format(words[i], usage))
    else
      model = words[i]
      i = i + 1
    end
  end
  if not model or not options.inputs or not options.outputs then fail("the model and both folders are needed\n" .. usage) end
  local fine, f, _, about = pcall(ms.load, model)
  if not fine then
    -- What cannot be read is told by the file's name, what is not supported by ms.load's.
    if not tostring(f):find "^load: " then error(f, 0) end
    io.stderr:write("lunaria: ", tostring(f), "\n")
    os.exit(refused, true)
  end
  if not about then fail(("'%s' is no ONNX file"):format(model)) end
  local count = #about.inputs
  local results = { f(table.unpack(read_inputs(options.inputs, about.inputs), 1, count)) }
  write_outputs(options.outputs, about.outputs, results)
end
