-- lunaria ascend estimate FILE.lua|NAME ...
local ms = require "lunaria"

local usage = [[
usage: lunaria ascend estimate FILE.lua|NAME [options]
  NAME         a network of the zoo: resnet50, bert_large, gpt2_xl ...
  FILE.lua     gives a table { make =, inputs =, forward = } as ms.ascend.estimate takes it
  --batch N    of one device (32)
  --devices D  how many (1)
  --sink MODE  graph, loop or host: what starts the operators (graph)
  --loop-size N  steps that the device does without the host, with --sink loop (100)
  --dtype T    float16, mixed or float32
  --optimizer O
  --chip C     910, 910B, 310 or a file of parameters in JSON
  --cluster C  atlas or a file of parameters in JSON
  --parallel-optimizer  each device keeps its part of the float32 values
  --timeline F write the tasks to F, for Chrome's and Perfetto's viewers
  --json       the numbers as JSON]]

local function fail(message, ...) error("lunaria ascend: " .. message:format(...) .. "\n  hint: lunaria ascend --help", 0) end

local integers = { batch = true, devices = true, ["loop-size"] = true }
local texts = { sink = true, dtype = true, optimizer = true, chip = true, cluster = true, timeline = true }

local function parse(words)
  local options, model, json = {}, nil, false
  local i = 1
  while i <= #words do
    local word = words[i]
    local name = word:match "^%-%-(.+)$"
    if word == "--json" then
      json = true
    elseif word == "--parallel-optimizer" then
      options.parallel_optimizer = true
    elseif name and (integers[name] or texts[name]) then
      i = i + 1
      local value = words[i] or fail("option %s needs an argument", word)
      if integers[name] then value = math.tointeger(tonumber(value)) or fail("option %s needs an integer, got '%s'", word, value) end
      options[(name:gsub("-", "_"))] = value
    elseif name or model then
      fail("unrecognized argument '%s'", word)
    else
      model = word
    end
    i = i + 1
  end
  return model or fail "a file or the name of a network is missing", options, json
end

local function command(...)
  local words = { ... }
  if #words == 0 or words[1] == "--help" or words[1] == "-h" or words[2] == "--help" then return print(usage) end
  if table.remove(words, 1) ~= "estimate" then fail("there is 'estimate', not '%s'", (...)) end
  local model, options, json = parse(words)
  local timeline = options.timeline
  options.timeline = nil
  if model:match "%.lua$" then
    local path = model
    model = dofile(path)
    if type(model) ~= "table" then fail("%s must give a table { make =, inputs =, forward = }, got a %s", path, type(model)) end
    model.name = model.name or path
  end
  local estimate = ms.ascend.estimate(model, options)
  if timeline then ms.ascend.timeline(timeline) end
  print(json and ms.json.encode(estimate:numbers()) or tostring(estimate))
end

return command
