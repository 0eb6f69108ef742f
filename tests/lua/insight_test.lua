-- ms.insight.substructures and the command for it.
-- Eager mode only: files are looked at, nothing is computed.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"

local folder = "tests/core/insight/graphs/"

local function call(words)
  local pipe = assert(io.popen(("'%s' insight %s 2>&1"):format(arg[-1], words), "r"))
  local text = pipe:read "a"
  return text, pipe:close() == true
end

t.test("the layers of a network are found, with what is told of them", function()
  local found = ms.insight.substructures(folder .. "bert12.noscope.pb", "exact")
  local layer = found[1]
  t.equal({ #layer.instances, #layer.instances[1][1], layer.gain, found.nodes }, { 12, 53, 571, 655 })
  t.equal({ #layer.differences, #layer.types, layer.inside[1] }, { 0, 53, 2 })
  t.equal(tostring(found):find("1: 12 x 53 nodes", 1, true) ~= nil, true)
  local json = ms.json.decode(found.json)
  t.equal(json["1"][12], layer.instances[12])
  t.equal(ms.insight.substructures(folder .. "mobilenetv2.pb")[1].label, "InvRes")
end)

t.test("files of our own, MindIR and ONNX", function()
  local function block(x) return ms.ops.relu(ms.ops.exp(ms.ops.tanh(ms.ops.sin(x)) * 0.5)) end
  local function f(x) return block(block(block(block(block(x))))) end
  local path = os.tmpname()
  for _, ending in ipairs { "MINDIR", "ONNX" } do
    local file = path .. (ending == "MINDIR" and ".mindir" or ".onnx")
    ms.export(f, ms.ones { 2, 3 }, { file_name = file, file_format = ending })
    local found = ms.insight.substructures(file)
    t.equal(#found[1].instances, 5)
    os.remove(file)
  end
  ms.save_mindir(f, path, ms.ones { 2, 3 })
  t.equal(#ms.insight.substructures(path, { by = "exact" })[1].instances, 5)
  os.remove(path)
end)

t.test("what ms.ir gives", function()
  local found = ms.insight.substructures(ms.ir(function(x)
    x = ms.ops.relu(ms.ops.exp(ms.ops.tanh(ms.ops.sin(x))))
    x = ms.ops.relu(ms.ops.exp(ms.ops.tanh(ms.ops.sin(x))))
    x = ms.ops.relu(ms.ops.exp(ms.ops.tanh(ms.ops.sin(x))))
    return x
  end))
  t.equal(found.nodes >= 12, true)
  -- Calls of functions that are not known before the program runs are of one type.
  t.equal(#found[1].instances >= 3, true)
end)

t.test("mistakes say what is wrong", function()
  t.fails({ "missing.pb" }, function() ms.insight.substructures("missing.pb") end)
  t.fails({ "by must be one of 'operators', 'exact'" }, function() ms.insight.substructures("x.pb", "name") end)
  t.fails({ "there is no option 'bye'" }, function() ms.insight.substructures("x.pb", { bye = 1 }) end)
  t.fails({ "graph must be the path of a file" }, function() ms.insight.substructures(3) end)
  local empty = os.tmpname()
  t.fails({ "there is no graph in it" }, function() ms.insight.substructures(empty) end)
  os.remove(empty)
end)

t.test("the command writes the same bytes each time", function()
  local path = os.tmpname()
  local function json(words)
    local text, ok = call(words .. " --json " .. path)
    t.equal(ok, true)
    local file <close> = assert(io.open(path, "rb"))
    return file:read "a", text
  end
  local first, text = json("substructures " .. folder .. "lenet_train.pb")
  t.equal(text:find("equal by operators", 1, true) ~= nil, true)
  t.equal(json("substructures " .. folder .. "lenet_train.pb --by operators"), first)
  t.equal(json("substructures --by exact " .. folder .. "lenet_train.pb") ~= first, true)
  os.remove(path)
  for words, part in pairs { [""] = "a command is missing; there is: substructures",
    ["start"] = "there is no 'start'; there is: substructures",
    ["substructures"] = "the file of a graph is missing", ["substructures a b"] = "'b' is not understood",
    ["substructures a --by c"] = "--by is operators or exact, got 'c'", ["substructures a --json"] = "needs an argument",
    ["substructures missing.pb"] = "missing.pb" } do
    local said, ok = call(words)
    t.equal({ ok, said:find(part, 1, true) ~= nil }, { false, true })
  end
  t.equal(call("--help"):find("usage: lunaria insight", 1, true), 1)
end)

t.finish()
