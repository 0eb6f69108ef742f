-- lunaria ascend: every network by its name, every option, and what is said about wrong words.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local networks = require "lunaria.ascend.networks"

local command = require "lunaria.ascend.command"

-- What the program prints, and whether it succeeds.
local function run_program(words)
  local pipe = assert(io.popen(("'%s' ascend %s 2>&1"):format(arg[-1], words), "r"))
  local text = pipe:read "a"
  return text, pipe:close() == true
end

-- The same without a program of its own.
local function call(words)
  local list, printed, print_before = {}, {}, print
  for word in words:gmatch "%S+" do list[#list + 1] = word end
  _G.print = function(text) printed[#printed + 1] = text end
  local ok, problem = pcall(command, table.unpack(list))
  _G.print = print_before
  return ok and table.concat(printed, "\n") .. "\n" or tostring(problem), ok
end

local function numbers(words)
  local text, ok = call("estimate " .. words .. " --json")
  if not ok then error(text, 2) end
  return ms.json.decode(text)
end

-- Networks that are too large for the defaults of one chip.
local needs = { gpt2_xl = "--batch 1 --devices 64 --parallel-optimizer", gpt2_large = "--batch 1 --devices 8 --parallel-optimizer",
  gpt2_medium = "--batch 1", gpt2 = "--batch 1" }

-- Those that are too large for any: tests/lua/parallel/plan_test.lua.
local planned = { gpt3 = true, pangu_alpha = true }

t.test("every network is known by its name", function()
  local count = 0
  for name in pairs(networks) do
    if planned[name] then goto continue end
    local n = numbers(name .. " " .. (needs[name] or "--batch 2"))
    t.equal({ name, n.network, n.step_ms > 0, n.parameters > 0, n.memory.features > 0 }, { name, name, true, true, true })
    count = count + 1
    ::continue::
  end
  t.equal(count >= 28, true)
  local listed = call "networks"
  for name in pairs(networks) do t.equal({ name, ("\n" .. listed):find("\n" .. name .. "\n", 1, true) ~= nil }, { name, true }) end
end)

t.test("the networks have the parameters that their authors say", function()
  for name, wanted in pairs { unet = 31037633, ssd300 = 35641826, yolov3_tiny = 8852366, vae = 652824, gcn = 23063, gat = 92373,
    dqn = 17410, ppo = 9155, deepfm = 2677602, wide_and_deep = 20085058 } do
    local e = ms.ascend.estimate(name, { batch = 2 })
    t.equal({ name, e.parameters }, { name, wanted })
  end
end)

t.test("options change what they say", function()
  local plain = numbers "resnet50"
  t.equal({ plain.batch, plain.devices, plain.sink, plain.chip }, { 32, 1, "graph", "910" })
  local many = numbers "resnet50 --batch 64 --devices 8 --sink loop --loop-size 10"
  t.equal({ many.batch, many.devices, many.sink }, { 64, 8, "loop" })
  t.equal(many.step_ms > 1.5 * plain.step_ms and many.tail_ms > 0, true)
  local one = numbers "resnet50 --devices 8 --fusion 1000"
  t.equal(one.tail_ms > 2 * numbers("resnet50 --devices 8").tail_ms, true)
  t.equal(numbers("resnet50 --inference").step_ms < 0.5 * plain.step_ms, true)
  t.equal(numbers("resnet50 --dtype float32").step_ms > 1.3 * plain.step_ms, true)
  t.equal(numbers("resnet50 --optimizer sgd").step_ms < plain.step_ms, true)
  t.equal(numbers("resnet50 --chip 310").step_ms > 5 * plain.step_ms, true)
  local waited = numbers "lenet --sink host --host-launch wait"
  t.equal(waited.step_ms > numbers("lenet --sink host --host-launch 10").step_ms, true)
  t.equal(numbers("gpt2_xl --batch 1 --ignore-memory").memory.parameters > 5e9, true)
end)

t.test("files: networks, chips, clusters and time lines", function()
  local base = os.tmpname()
  local function write(ending, text)
    local file = assert(io.open(base .. ending, "w"))
    file:write(text)
    file:close()
    return base .. ending
  end
  local mine = write(".lua", [[
local ms = require "lunaria"
return { name = "mine", make = function() return ms.nn.Dense(64, 10) end, inputs = function(batch) return ms.ops.zeros { batch, 64 } end,
  forward = function(net) return function(x) return ms.ops.mean(net(x)) end end }]])
  t.equal({ numbers(mine).network, numbers(mine).parameters }, { "mine", 650 })
  local json = write(".json", [[{"base": "910", "name": "half", "cores": 16, "cluster": {"pcie_bytes_per_second": 4e9}}]])
  t.equal(numbers("resnet50 --chip " .. json).chip, "half")
  t.equal(numbers("resnet50 --devices 8 --cluster " .. json).all_reduce_ms > 2 * numbers("resnet50 --devices 8").all_reduce_ms, true)
  local text = call("estimate lenet --timeline " .. base)
  t.equal(text:find("samples/s", 1, true) ~= nil, true)
  local file = assert(io.open(base))
  t.equal(#ms.json.decode(file:read "a").traceEvents > 10, true)
  file:close()
  write(".lua", "return 3")
  local said, ok = call("estimate " .. mine)
  t.equal({ ok, said:find("must give a table { make =, inputs =, forward = }, got a number", 1, true) ~= nil }, { false, true })
  for _, ending in ipairs { "", ".lua", ".json" } do os.remove(base .. ending) end
end)

t.test("wrong words are answered with what to write, and the program fails", function()
  for words, parts in pairs {
    ["estimate"] = { "a file or the name of a network is missing", "--help" },
    ["estimat resnet50"] = { "there are 'estimate' and 'networks', not 'estimat'" },
    ["estimate resnet"] = { "there is no network 'resnet'", "resnet50" },
    ["estimate resnet50 --batch"] = { "option --batch needs an argument" },
    ["estimate resnet50 --batch x"] = { "option --batch needs an integer, got 'x'" },
    ["estimate resnet50 --batch 1.5"] = { "option --batch needs an integer, got '1.5'" },
    ["estimate resnet50 --batch 0"] = { "batch must be a positive integer, got 0" },
    ["estimate resnet50 --devices -3"] = { "devices must be a positive integer, got -3" },
    ["estimate resnet50 --sink loops"] = { "sink must be one of graph, loop, host" },
    ["estimate resnet50 --dtype int8"] = { "dtype must be one of float16, mixed, float32" },
    ["estimate resnet50 --optimizer adan"] = { "optimizer must be one of sgd, momentum, adam" },
    ["estimate resnet50 --fusion 3,x"] = { "option --fusion needs integers between commas, got '3,x'" },
    ["estimate resnet50 --fusion 0"] = { "fusion must be a list of positive integers" },
    ["estimate resnet50 --sink host --host-launch fast"] = { "option --host-launch needs microseconds or wait, got 'fast'" },
    ["estimate resnet50 --sink host --host-launch -1"] = { "host_launch must be seconds" },
    ["estimate resnet50 --chip 920"] = { "there is no '920'; there are: 310, 910, 910B" },
    ["estimate resnet50 --cluster x"] = { "there is no 'x'; there are: atlas" },
    ["estimate resnet50 --chip /proc/nonexistent.json"] = { "the configuration cannot be read" },
    ["estimate resnet50 --frobnicate"] = { "unrecognized argument '--frobnicate'" },
    ["estimate resnet50 lenet"] = { "unrecognized argument 'lenet'" },
    ["estimate /proc/nonexistent.lua"] = { "nonexistent.lua" },
    ["estimate resnet50 --timeline /proc/nonexistent/x"] = { "nonexistent/x" },
    ["estimate resnet50 --batch 4096"] = { "does not fit: feature maps need", "a smaller batch" },
  } do
    local text, ok = call(words)
    for _, part in ipairs(parts) do
      if not text:find(part, 1, true) then error(("%s: '%s' is not in '%s'"):format(words, part, text)) end
    end
    t.equal({ words, ok, text:find("stack traceback", 1, true) }, { words, false, nil })
  end
  t.equal(call "--help":find("usage: lunaria ascend estimate", 1, true) ~= nil, true)
end)

t.test("the program prints, and ends as it should", function()
  local text, ok = run_program "estimate lenet --batch 64"
  t.equal({ ok, (text:find("lenet: batch 64 on 1 x Ascend 910", 1, true)) }, { true, 1 })
  text, ok = run_program "estimate lenat"
  t.equal({ ok, text:find("there is no network 'lenat'", 1, true) ~= nil }, { false, true })
  t.equal(text:find("stack traceback", 1, true), nil)
  text, ok = run_program "estimate lenet --batch x"
  t.equal({ ok, text:find("lunaria ascend: option --batch needs an integer, got 'x'", 1, true) ~= nil }, { false, true })
end)

t.finish()
