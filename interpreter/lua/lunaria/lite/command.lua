-- lunaria lite COMMAND: the words of the command line.

local usage = [==[
usage: lunaria lite convert MODEL -o FILE [options]     write a .mindir or .onnx file as a light model
  --inputShape S          shapes of inputs: "name:1,3,32,32;other:batch=1,8" (default: as the model states them); a size
                          with a name is open: the model can be resized
  --fp16 on               weights as halves (default: off)
  --weightType T          f32, f16, bf16, q8_0, q4_0 (default: f32, or what fp16 and quant_type say)
  --quant_type T          WEIGHT_QUANT: weights of products as blocks of integers; FULL_QUANT: all in integers (default: none)
  --bit_num N             of weights: 8 or 4 (default: 8)
  --calibration F         samples for FULL_QUANT: a .safetensors file of the inputs with a first axis of samples
  --min_quant_input_channel N  convolutions of fewer input channels stay floating with FULL_QUANT (default: 8; 0: none)
  --configFile F          further options as name=value, in the sections of MindSpore Lite's configuration
  --embed NAME            write C source that defines the array NAME and NAME_size
  --encryptKey K          encrypt by AES-GCM: 32 hexadecimal digits (default: none)
  --fixed true            inputs by which the network decides, such as shapes, are fixed to their examples
  --infer true            run the light model once
  --report                print each step: the operators in it, their cost, the line that they come from
  --fmk F                 MINDIR or ONNX (default: by the file's name)]==]

local function fail(message, ...) error("lunaria lite: " .. message:format(...) .. "\n  hint: lunaria lite --help", 0) end

local commands = {}

function commands.convert(words)
  local options, model, report = {}, nil, false
  local i = 1
  local function value(name)
    i = i + 1
    return words[i] or fail("option %s needs an argument", name)
  end
  while i <= #words do
    local word = words[i]
    local name, given = word:match "^%-%-([%w_]+)=(.*)$"
    name = name or word:match "^%-%-([%w_]+)$"
    if word == "-o" or name == "outputFile" then
      options.outputFile = given or value(word)
    elseif name == "report" then
      report = true
    elseif name == "modelFile" then
      model = given or value(word)
    elseif name then
      options[name] = given or value(word)
    elseif word:find "^%-" or model then
      fail("'%s' is not understood", word)
    else
      model = word
    end
    i = i + 1
  end
  if not model then fail "the model is missing" end
  if not options.outputFile then fail "-o FILE is missing" end
  local made = require "lunaria".lite.convert(model, options)
  if report then print(made.text) end
  print(("%s: %d steps, %d bytes of weights, %d bytes of temporaries"):format(options.outputFile, #made.steps, made.weights,
    made.arena))
end

-- Commands in files of their own: the file, and the field of what it gives, a table: usage, the text of its help, and run(words).
local others = {
  benchmark = { "lunaria.lite.benchmark" }, micro = { "lunaria.lite.micro_command" },
  export = { "lunaria.lite.training_command", "export" }, benchmark_train = { "lunaria.lite.training_command", "benchmark_train" },
}

local function other_command(name)
  local place = others[name]
  if not place then return nil end
  local found = require(place[1])
  return place[2] and found[place[2]] or found
end

return function(command, ...)
  local words = { ... }
  if command == "--help" or command == nil then
    local texts = { usage }
    for name in pairs(others) do texts[#texts + 1] = other_command(name).usage end
    table.sort(texts)
    return print(table.concat(texts, "\n\n"))
  end
  local other = other_command(command)
  if words[1] == "--help" and (other or commands[command]) then return print(other and other.usage or usage) end
  if other then return other.run(words) end
  if commands[command] then return commands[command](words) end
  local names = {}
  for name in pairs(commands) do names[#names + 1] = name end
  for name in pairs(others) do names[#names + 1] = name end
  table.sort(names)
  fail("there is no '%s'; there are: %s", command, table.concat(names, ", "))
end
