-- lunaria insight COMMAND: the words of the command line.
local ms = require "lunaria"
local core = require "lunaria.insight_core"

local usage = [==[
usage: lunaria insight start [options]         show the trainings below a folder in the browser
  --summary-base-dir D    the folder (default: this one)
  --port P                default 8080
  --host A                the address to listen at (default 127.0.0.1); at any other a token is asked for
  --allow-host H          another name that browsers may use for this machine; may be repeated
  --url-path-prefix P     before all addresses, such as /insight
  --reload-interval S     seconds between two looks at the files (default 0.5); 0: one look only
  --open                  open the browser
usage: lunaria insight parse --summary-dir D --output O    write scalars to CSV and pictures to PNG files
usage: lunaria insight list                    running servers of yours
usage: lunaria insight stop [--port P]         end one (default 8080)

usage: lunaria insight substructures GRAPH [options]
  GRAPH      a graph file: MindSpore's .pb, MindIR, ONNX, or a file of events with a graph
  --by B     what is equal: operators (types and places of inputs) or exact (attributes, dtypes and shapes too)
  --json F   write them to F: {"1": [[[node, ...], [[from, to], ...]], ...], ...}

usage: lunaria insight graph GRAPH [options]
  --svg F      write a picture to F
  --by B       how it is grouped: scopes, file (scopes as the file has them), parts (equal parts) or none
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

-- The options among the words, and the other words. known: what each option has: "flag", "text", "number" or "list".
local function parsed(words, known)
  local options, others = {}, {}
  local i = 1
  while i <= #words do
    local word = words[i]
    local name, value = word:match "^%-%-([%w%-]+)=(.*)$"
    name = name or word:match "^%-%-(.+)$"
    local kind = name and known[name]
    if kind == "flag" and not value then
      options[name] = true
    elseif kind then
      if not value then
        i = i + 1
        value = words[i] or fail("option --%s needs an argument", name)
      end
      if kind == "number" then value = tonumber(value) or fail("--%s needs a number, got '%s'", name, value) end
      if kind == "list" then
        options[name] = options[name] or {}
        table.insert(options[name], value)
      else
        options[name] = value
      end
    elseif word:find "^%-" then
      fail("'%s' is not understood", word)
    else
      others[#others + 1] = word
    end
    i = i + 1
  end
  return options, others
end

local function no_more(others)
  if others[1] then fail("'%s' is not understood", others[1]) end
end

-- The file of the graph, and a table of the options.
local function of_graph(words, known)
  local options, others = parsed(words, known)
  local graph = others[1] or fail("the file of a graph is missing")
  if others[2] then fail("'%s' is not understood", others[2]) end
  return graph, options
end

local commands = {}

function commands.start(words)
  local options, others = parsed(words, {
    ["summary-base-dir"] = "text", port = "number", host = "text", ["allow-host"] = "list", ["url-path-prefix"] = "text",
    ["reload-interval"] = "number", open = "flag",
  })
  no_more(others)
  local server = ms.insight.start {
    dir = options["summary-base-dir"], port = options.port, host = options.host, allow_hosts = options["allow-host"],
    prefix = options["url-path-prefix"], interval = options["reload-interval"],
  }
  print(("%s shows %s\nCtrl-C, or lunaria insight stop --port %d, ends it"):format(server.url, server.dir, server.port))
  io.stdout:flush()
  if options.open then os.execute(("xdg-open '%s' >/dev/null 2>&1 &"):format(server.url:gsub("'", "%%27"))) end
  local how = server:wait()
  server:stop()
  print(how)
end

function commands.parse(words)
  local options, others = parsed(words, { ["summary-dir"] = "text", output = "text" })
  no_more(others)
  local output = options.output or fail("--output is missing: the folder for the files")
  local runs, scalars, pictures = core.parse(options["summary-dir"] or ".", output)
  print(("%d runs: %d points of scalars and %d pictures are in %s"):format(runs, scalars, pictures, output))
end

function commands.list(words)
  no_more(select(2, parsed(words, {})))
  local servers = core.running()
  for _, server in ipairs(servers) do
    print(("%s shows %s (process %d)"):format(server.url, server.about, server.process))
  end
  if #servers == 0 then print "no server is running" end
end

function commands.stop(words)
  local options, others = parsed(words, { port = "number" })
  no_more(others)
  local port = math.tointeger(options.port or 8080) or fail("--port needs a whole number")
  if core.stop_at(port, 5) then return print(("the server at port %d has ended"):format(port)) end
  local ports = {}
  for i, server in ipairs(core.running()) do ports[i] = tostring(server.port) end
  fail("there is no server of yours at port %d; %s", port,
    #ports > 0 and "there are at: " .. table.concat(ports, ", ") or "none is running")
end

function commands.substructures(words)
  local graph, options = of_graph(words, { by = "text", json = "text" })
  local by = options.by
  if by and by ~= "operators" and by ~= "exact" then fail("--by is operators or exact, got '%s'", by) end
  local found = ms.insight.substructures(graph, by)
  if options.json then write(options.json, found.json) end
  print(found)
end

function commands.graph(words)
  local path, options = of_graph(words, { svg = "text", by = "text", hide = "text", open = "text", dark = "flag", overlay = "text",
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
  if command == "--help" then return print(usage) end
  if commands[command] then return commands[command]({ ... }) end
  local names = {}
  for name in pairs(commands) do names[#names + 1] = name end
  table.sort(names)
  fail("%s; there are: %s", command and ("there is no '%s'"):format(command) or "a command is missing", table.concat(names, ", "))
end
