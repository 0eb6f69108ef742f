-- ms.insight.substructures, ms.insight.graph and the commands for them.
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

t.test("a stage's text is a graph for substructures too", function()
  local stage = ms.jit(function(x)
    for _ = 1, 3 do x = ms.ops.relu(ms.ops.exp(ms.ops.tanh(ms.ops.sin(x)))) end
    return x
  end):lower(ms.ones { 2 }):ir("step")
  t.equal(#ms.insight.substructures(stage)[1].instances, 3)
end)

t.test("a part's differences have the values of each instance", function()
  local part = ms.insight.substructures(folder .. "mobilenetv2.pb")[1]
  local d = part.differences[1]
  t.equal({ #d.values, type(d.attribute), d.place >= 1 }, { #part.instances, "string", true })
  local seen = {}
  for _, value in ipairs(d.values) do seen[value] = true end
  t.equal(next(seen, next(seen)) ~= nil, true)
end)

t.test("a graph of a program has its lines, ways and a picture", function()
  local net = ms.nn.Dense(3, 3)
  local function f(x) return ms.ops.relu(net(x) * 0.5) end
  local g = ms.insight.graph(ms.jit(f):lower(ms.ones { 2, 3 }):ir "step")
  local relu = g:search "relu"[1]
  t.equal(relu.result, "float32(2, 3)")
  t.equal(g:node(relu.name).line:find("insight_test.lua:", 1, true) ~= nil, true)
  local above = g:upstream(relu.name)
  t.equal(#above >= 4, true)
  local way = g:route("weight", relu.name)
  t.equal({ way[1], way[#way], #way }, { "weight", relu.name, 4 })
  t.equal(g:downstream "weight"[3], relu.name)
  local svg = g:svg { hide = "nothing", dark = true, overlay = { [relu.name] = 2.0 } }
  t.equal({ svg:find("<svg", 1, true), svg:find("weight", 1, true) ~= nil }, { 1, true })
  t.equal(tostring(g):find("graph step: 3 operators", 1, true), 1)
  -- Looked-up functions are operators of their names.
  t.equal(ms.insight.graph(ms.ir(f)):search "relu"[1].type, "relu")
  t.fails({ "node: there is no node 'none'" }, function() g:node "none" end)
  t.fails({ "there is no option 'by2'" }, function() g:svg { by2 = "x" } end)
  t.fails({ "by is scopes, file, parts or none, got 'x'" }, function() g:svg { by = "x" } end)
  t.fails({ "overlay has a number for each name" }, function() g:svg { overlay = { a = "b" } } end)
  t.fails({ "graph must be the path of a file" }, function() ms.insight.graph(true) end)
end)

t.test("two graphs are compared", function()
  local function net(act) return ms.ir(function(x) return ms.ops.sin(act(ms.ops.exp(x))) end) end
  local a = ms.insight.graph(ms.ir(function(x) return ms.ops.sin(ms.ops.relu(ms.ops.exp(x))) end))
  local b = ms.insight.graph(ms.ir(function(x) return ms.ops.sin(ms.ops.tanh(ms.ops.exp(x))) end))
  local d = a:diff(b)
  t.equal({ d.same, #d.added, #d.removed, #d.changed }, { 2, 0, 0, 1 })
  t.equal({ d.changed[1].values[1].before, d.changed[1].values[1].after }, { "relu", "tanh" })
  t.equal(tostring(d):find("type: relu -> tanh", 1, true) ~= nil, true)
  t.equal(#a:diff(a).changed, 0)
  t.equal(ms.insight.graph(net(ms.ops.relu)).about.operators >= 2, true)
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

t.test("the command for graphs writes pictures, JSON and differences", function()
  local path, numbers = os.tmpname(), os.tmpname()
  local function content()
    local file <close> = assert(io.open(path, "rb"))
    return file:read "a"
  end
  local text, ok = call("graph " .. folder .. "bert12.mindir --svg " .. path)
  t.equal({ ok, text:find("the file gives 132 operators the scope of an equal part", 1, true) ~= nil }, { true, true })
  local svg = content()
  t.equal({ svg:find("<svg", 1, true), svg:find("1-EncoderLayer", 1, true) ~= nil }, { 1, true })
  call("graph " .. folder .. "bert12.mindir --svg " .. path)
  t.equal(content() == svg, true)
  local file = assert(io.open(numbers, "w"))
  file:write '{"132": 4.5, "100": 1}'
  file:close()
  local words = "graph " .. folder .. "lenet.pb --by parts --hide nothing --open all --dark --overlay " .. numbers
  t.equal(select(2, call(words .. " --svg " .. path .. " --diff " .. folder .. "lenet_train.pb")), true)
  text = call("graph " .. folder .. "lenet.pb --json " .. path .. " --diff " .. folder .. "lenet_train.pb")
  t.equal(text:find("24 operators are the same, 0 removed, 106 added, 2 changed", 1, true), 1)
  t.equal(#ms.json.decode(content()).added, 106)
  call("graph " .. folder .. "lenet.pb --json " .. path)
  t.equal(#ms.json.decode(content()).nodes, 39)
  for said, part in pairs { ["graph " .. folder .. "lenet.pb --dark"] = "--dark is for a picture",
    ["graph " .. folder .. "lenet.pb --by names --svg " .. path] = "by is scopes, file, parts or none" } do
    local message, fine = call(said)
    t.equal({ fine, message:find(part, 1, true) ~= nil }, { false, true })
  end
  os.remove(path)
  os.remove(numbers)
end)

t.test("a server runs beside the session until it is stopped", function()
  local server <close> = ms.insight.start { dir = "tests/data/samples/events", port = 0, interval = 0 }
  t.equal(server.url, ("http://127.0.0.1:%d/"):format(server.port))
  t.equal(tostring(server):find("events$") ~= nil, true)
  t.equal(getmetatable(server).__mime(server)["text/html"]:find(server.url, 1, true) ~= nil, true)
  local function said(options)
    local ok, message = pcall(ms.insight.start, options)
    return not ok and tostring(message)
  end
  t.equal(said { port = server.port }:find("is taken by lunaria %(process %d+%), which serves .*events") ~= nil, true)
  for part, options in pairs { ["port must be an integer from 0 to 65535"] = { port = -1 },
    ["there is no option 'folder'"] = { folder = "x" }, ["no such folder"] = { dir = "/missing" },
    ["a list of names"] = { allow_hosts = { 1 } } } do
    t.equal(said(options):find(part, 1, true) ~= nil, true)
  end
  server:stop()
  server:stop()
  t.equal(server:wait(), "stopped")
  t.equal(tostring(server), "an insight server that was stopped")
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
  for words, part in pairs { [""] = "a command is missing; there are: graph,",
    ["begin"] = "there is no 'begin'; there are: graph,", ["start x"] = "'x' is not understood",
    ["start --port x"] = "--port needs a number", ["parse"] = "--output is missing",
    ["substructures"] = "the file of a graph is missing", ["substructures a b"] = "'b' is not understood",
    ["substructures a --by c"] = "--by is operators or exact, got 'c'", ["substructures a --json"] = "needs an argument",
    ["substructures missing.pb"] = "missing.pb" } do
    local said, ok = call(words)
    t.equal({ ok, said:find(part, 1, true) ~= nil }, { false, true })
  end
  t.equal(call("--help"):find("usage: lunaria insight", 1, true), 1)
end)

t.finish()
