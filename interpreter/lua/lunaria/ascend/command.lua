-- lunaria ascend estimate FILE.lua|NAME ..., lunaria ascend networks
local ms = require "lunaria"

local usage = [[
usage: lunaria ascend estimate FILE.lua|NAME [options]
       lunaria ascend networks    the names of the networks
  NAME         a network of the zoo: resnet50, bert_large, gpt2_xl ...
  FILE.lua     gives a table { make =, inputs =, forward = } as ms.ascend.estimate takes it
  --batch N    of one device (32)
  --devices D  how many (1)
  --sink MODE  graph, loop or host: what starts the operators (graph)
  --loop-size N  steps that the device does without the host, with --sink loop (100)
  --host-launch US  microseconds of the host for an operator, or wait, with --sink host
  --dtype T    float16, mixed or float32
  --optimizer O  sgd, momentum, adam, adamw, lars, lamb, rmsprop or none
  --inference  the forward pass alone
  --fusion N,N  after how many gradients a bucket of the all-reduce ends
  --chip C     910, 910B, 310 or a file of parameters in JSON
  --cluster C  atlas or a file of parameters in JSON
  --parallel-optimizer  each device keeps its part of the float32 values
  --ignore-memory  the times also where the step does not fit into the chip's memory
  --mesh M     auto, or axes of the devices such as dp=8,tp=4,pp=2 (pp: stages of a pipeline): the step is divided among them
  --global-batch N  of all devices, with --mesh (batch * devices)
  --micro-batches N, --level L, --recompute on|off, --schedule S, --chunks N  with --mesh: not searched but given
  --timeline F write the tasks to F, for Chrome's and Perfetto's viewers; with --mesh those of a rank of each stage
  --picture F  with --mesh: write the stages and what they send to F, as SVG
  --json       the numbers as JSON]]

local function fail(message, ...) error("lunaria ascend: " .. message:format(...) .. "\n  hint: lunaria ascend --help", 0) end

-- Words without an argument, and what they mean to ms.ascend.estimate.
local switches = { ["--parallel-optimizer"] = { "parallel_optimizer", true }, ["--inference"] = { "train", false },
  ["--ignore-memory"] = { "check_memory", false } }
local integers = { batch = true, devices = true, ["loop-size"] = true, ["global-batch"] = true, ["micro-batches"] = true, level = true,
  chunks = true }
local texts = { sink = true, dtype = true, optimizer = true, chip = true, cluster = true, timeline = true, picture = true, fusion = true,
  ["host-launch"] = true, mesh = true, recompute = true, schedule = true }

local convert = {}
function convert.fusion(word, text)
  local list = {}
  for part in (text .. ","):gmatch "(.-)," do
    list[#list + 1] = math.tointeger(tonumber(part)) or fail("option %s needs integers between commas, got '%s'", word, text)
  end
  return list
end
function convert.recompute(word, text)
  if text ~= "on" and text ~= "off" then fail("option %s needs on or off, got '%s'", word, text) end
  return text == "on"
end
convert["host-launch"] = function(word, text)
  if text == "wait" then return "synchronous" end
  return (tonumber(text) or fail("option %s needs microseconds or wait, got '%s'", word, text)) * 1e-6
end

local function parse(words)
  local options, model, json = {}, nil, false
  local i = 1
  while i <= #words do
    local word = words[i]
    local name = word:match "^%-%-(.+)$"
    if word == "--json" then
      json = true
    elseif switches[word] then
      options[switches[word][1]] = switches[word][2]
    elseif name and (integers[name] or texts[name]) then
      i = i + 1
      local value = words[i] or fail("option %s needs an argument", word)
      if integers[name] then value = math.tointeger(tonumber(value)) or fail("option %s needs an integer, got '%s'", word, value) end
      if convert[name] then value = convert[name](word, value) end
      options[(name:gsub("%-", "_"))] = value
    elseif name or model then
      fail("unrecognized argument '%s'", word)
    else
      model = word
    end
    i = i + 1
  end
  return model or fail "a file or the name of a network is missing", options, json
end

local function write(path, text)
  local file, problem = io.open(path, "w")
  if not file then fail("%s", problem) end
  file:write(text)
  file:close()
end

local function command(...)
  local words = { ... }
  if #words == 0 or words[1] == "--help" or words[1] == "-h" or words[2] == "--help" then return print(usage) end
  local what = table.remove(words, 1)
  if what == "networks" then
    local names = {}
    for name in pairs(require "lunaria.ascend.networks") do names[#names + 1] = name end
    table.sort(names)
    return print(table.concat(names, "\n"))
  end
  if what ~= "estimate" then fail("there are 'estimate' and 'networks', not '%s'", what) end
  local model, options, json = parse(words)
  local timeline = options.timeline
  local picture = options.picture
  if picture and not options.mesh then fail "--picture needs --mesh" end
  options.timeline, options.picture = nil, nil
  if model:match "%.lua$" then
    local path = model
    model = dofile(path)
    if type(model) ~= "table" then fail("%s must give a table { make =, inputs =, forward = }, got a %s", path, type(model)) end
    model.name = model.name or path
  end
  local estimate = ms.ascend.estimate(model, options)
  if timeline and options.mesh then
    write(timeline, estimate:timeline())
  elseif timeline then
    ms.ascend.timeline(timeline)
  end
  if picture then write(picture, estimate:svg()) end
  print(json and ms.json.encode(estimate:numbers()) or tostring(estimate))
end

return command
