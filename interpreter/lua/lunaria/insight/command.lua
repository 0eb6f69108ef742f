-- lunaria insight substructures|graph GRAPH ...
local ms = require "lunaria"

local usage = [==[
usage: lunaria insight substructures GRAPH [options]
  GRAPH      a graph file: MindSpore's .pb, MindIR, ONNX, or a file of events with a graph
  --by B     what is equal: operators (types and places of inputs) or exact (attributes, dtypes and shapes too)
  --json F   write them to F: {"1": [[[node, ...], [[from, to], ...]], ...], ...}

usage: lunaria insight graph GRAPH [options]
  --svg F      write a picture to F
  --by B       how it is grouped: scopes, parts (equal parts) or none
  --hide L     what is left out of it, with commas: gradients, optimizer, plumbing, constants, parameters, inputs; or nothing
  --open L     what is open: auto, all, or numbers of groups
  --dark       for dark paper
  --overlay F  colours by the numbers of a JSON file: {name of a node: number, ...}
  --diff G     say what is different in the graph of another file; the picture is then of that one
  --json F     write the graph, or the differences, to F]==]

local function fail(message, ...) error("lunaria insight: " .. message:format(...) .. "\n  hint: lunaria insight --help", 0) end

local function write(path, text)
  local file, problem = io.open(path, "wb")
  if not file then fail("%s", problem) end
  local fine, said = file:write(text)
  if fine then fine, said = file:close() end
  if not fine then fail("%s: %s", path, said) end
end

local function read(path)
  local file <close> = io.open(path, "rb") or fail("%s cannot be read", path)
  return file:read "a"
end

-- The file of the graph, and a table of the options; known: what each takes ("text", or "none").
local function parsed(words, known)
  local graph, options = nil, {}
  local i = 1
  while i <= #words do
    local word = words[i]
    local name = word:match "^%-%-(%a+)$"
    if name and known[name] == "text" then
      i = i + 1
      options[name] = words[i] or fail("option %s needs an argument", word)
    elseif name and known[name] then
      options[name] = true
    elseif word:find "^%-" or graph then
      fail("'%s' is not understood", word)
    else
      graph = word
    end
    i = i + 1
  end
  return graph or fail("the file of a graph is missing"), options
end

local commands = {}

function commands.substructures(words)
  local graph, options = parsed(words, { by = "text", json = "text" })
  local by = options.by
  if by and by ~= "operators" and by ~= "exact" then fail("--by is operators or exact, got '%s'", by) end
  local found = ms.insight.substructures(graph, by)
  if options.json then write(options.json, found.json) end
  print(found)
end

function commands.graph(words)
  local path, options = parsed(words, { svg = "text", by = "text", hide = "text", open = "text", dark = "none", overlay = "text",
    diff = "text", json = "text" })
  for _, name in ipairs { "by", "hide", "open", "dark", "overlay" } do
    if options[name] and not options.svg then fail("--%s is for a picture: --svg FILE is missing", name) end
  end
  local graph = ms.insight.graph(path)
  local view = { by = options.by, hide = options.hide, open = options.open, dark = options.dark }
  if options.overlay then
    view.overlay = ms.json.decode(read(options.overlay))
    if type(view.overlay) ~= "table" then fail("%s must have {name: number, ...}", options.overlay) end
  end
  local shown, said = graph, graph
  if options.diff then
    shown = ms.insight.graph(options.diff)
    said, view.before = graph:diff(shown), graph
  end
  if options.svg then write(options.svg, shown:svg(view)) end
  if options.json then write(options.json, options.diff and said.json or graph:json()) end
  print(said)
end

return function(command, ...)
  if command == "--help" then
    print(usage)
  elseif commands[command] then
    commands[command]({ ... })
  else
    fail("%s; there are: substructures, graph", command and ("there is no '%s'"):format(command) or "a command is missing")
  end
end
