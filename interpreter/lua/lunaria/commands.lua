-- The commands of a session: lines that begin with %, ! or ?. Called with the functions that the session offers.
local session = ...

-- hooks.before_cell is called before each cell, if it is there.
local commands, help, hooks = {}, {}, {}

-- What was typed and what it gave, by the numbers that %history shows; the session fills them.
local typed, results = {}, {}
_G.In, _G.Out = _G.In or typed, _G.Out or results

-- The globals of the session before its first cell: %who does not list it, %reset goes back to it.
local before = {}
for name, value in pairs(_G) do
  before[name] = value
end

-- "did you mean '%time'?"
local function nearest(name, among)
  local names = {}
  for known in pairs(among) do
    names[#names + 1] = known
  end
  table.sort(names)
  local text = require "lunaria.nn.arguments".nearest(name, names)
  return text and text:gsub("'(.-)'", "'%%%%%1'")
end

local function fail(message)
  error(message, 0)
end

local function words(text)
  local list = {}
  local rest = text
  while true do
    rest = rest:match("^%s*(.*)$")
    if rest == "" then
      return list
    end
    local quote = rest:match("^[\"']")
    local word, after
    if quote then
      word, after = rest:match("^" .. quote .. "([^" .. quote .. "]*)" .. quote .. "(.*)$")
    end
    if not word then
      word, after = rest:match("^(%S+)(.*)$")
    end
    list[#list + 1] = word
    rest = after
  end
end

local function expand(path)
  return (path:gsub("^~", os.getenv("HOME") or "~"))
end

-- The message of the system names the file; the place in this one is none of the user's.
local function opened(path, mode)
  local file, problem = io.open(expand(path), mode)
  return file or fail(problem)
end

local function read(path)
  local text, problem = require("lunaria").io._read(expand(path))
  return text or fail(problem)
end

local function add(name, usage, text, run)
  commands[name] = run
  help[name] = { usage = usage, text = text }
end

local function duration(seconds)
  if seconds < 1e-6 then
    return string.format("%.3g ns", seconds * 1e9)
  elseif seconds < 1e-3 then
    return string.format("%.3g us", seconds * 1e6)
  elseif seconds < 1 then
    return string.format("%.3g ms", seconds * 1e3)
  elseif seconds < 60 then
    return string.format("%.3g s", seconds)
  end
  return string.format("%d min %d s", seconds // 60, seconds % 60)
end

local function clock()
  return require("lunaria").clock() / 1e9
end

add("time", "%time CODE", "Runs the code once and prints how long it took.", function(code)
  local cpu, wall = os.clock(), clock()
  session.execute(code)
  wall, cpu = clock() - wall, os.clock() - cpu
  print(("time: %s (processor: %s)"):format(duration(wall), duration(cpu)))
end)

add("timeit", "%timeit [-n COUNT] [-r REPEATS] CODE",
  "Runs the code many times and prints the mean time of a run, without the loop around it.", function(code)
  local count, repeats = nil, 7
  while true do
    local space, flag, value, rest = code:match("^(%s*)%-([nr])%s*(%d+)%s(.*)$")
    if not flag then
      break
    end
    rest = space .. rest
    value = math.max(1, math.tointeger(tonumber(value)) or 1)
    if flag == "n" then
      count = value
    else
      repeats = value
    end
    code = rest
  end
  if not code:find("%S") then
    fail("usage: " .. help.timeit.usage)
  end
  local known, problem = load("return " .. code, "=(timeit)")
  if not known then
    known, problem = load(code, "=(timeit)")
  end
  if not known then
    fail(problem)
  end
  -- The loop is compiled around the code: a call per run would be measured as well. Errors show what stands behind the mark.
  local function loop(body)
    local head = "local count, clock = ... local start = clock() for _ = 1, count do "
    return load(head .. body .. "\nend return clock() - start", "=(timeit)")
  end
  local mark = "--[[measured]] "
  local f = loop("local _ = " .. mark .. code) or assert(loop(mark .. code))
  local function run(n)
    local ok, seconds = session.call(f, n, clock)
    return ok and seconds
  end
  if not count then
    count = 1
    while true do
      local seconds = run(count)
      if not seconds then
        return
      elseif seconds > 0.02 then
        count = math.max(1, math.floor(count * 0.1 / seconds))
        break
      end
      count = count * (seconds > 0.002 and 4 or 10)
    end
  end
  local times, sum = {}, 0
  for i = 1, repeats do
    local seconds = run(count)
    if not seconds then
      return
    end
    times[i] = seconds / count
    sum = sum + times[i]
  end
  local mean, squares, best = sum / repeats, 0, math.huge
  for _, t in ipairs(times) do
    squares = squares + (t - mean) ^ 2
    best = math.min(best, t)
  end
  print(("%s per run, best %s, spread %s (%d repeats of %d runs)"):format(
    duration(mean), duration(best), duration(math.sqrt(squares / repeats)), repeats, count))
end)

local function user_names()
  local names = {}
  for name, value in pairs(_G) do
    if type(name) == "string" and name ~= "_" and rawequal(before[name], nil) and value ~= nil then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

add("who", "%who", "Prints the names of your global variables.", function()
  local names = user_names()
  print(#names > 0 and table.concat(names, "  ") or "no global variables yet")
end)

local function summary(value)
  local ms = require "lunaria"
  if ms.is_tensor(value) then
    return "tensor", ("shape %s, %s"):format(tostring(value.shape), tostring(value.dtype))
  end
  local kind = math.type(value) or type(value)
  local text = session.pretty(value):gsub("%s+", " ")
  if kind == "function" then
    text = text:match("^<function(.*)>$") or text
  end
  if #text > 60 then
    text = text:sub(1, 57) .. "..."
  end
  return kind, text
end

add("whos", "%whos", "Prints your global variables with type and value.", function()
  local names, rows = user_names(), {}
  local widths = { 4, 4 }
  for i, name in ipairs(names) do
    local kind, text = summary(_G[name])
    rows[i] = { name, kind, text }
    widths[1], widths[2] = math.max(widths[1], #name), math.max(widths[2], #kind)
  end
  local line = ("%%-%ds  %%-%ds  %%s"):format(widths[1], widths[2])
  print(line:format("name", "type", "value"))
  for _, row in ipairs(rows) do
    print(line:format(row[1], row[2], row[3]))
  end
end)

add("reset", "%reset", "Forgets your global variables.", function()
  for name in pairs(_G) do
    if rawequal(before[name], nil) then
      rawset(_G, name, nil)
    end
  end
  for name, value in pairs(before) do
    rawset(_G, name, value)
  end
  for number in pairs(results) do
    results[number] = nil
  end
  collectgarbage()
end)

-- Loads a module again, into the table that the program holds; false after an error, which is that of the cell.
local function reload(name)
  local old = package.loaded[name]
  package.loaded[name] = nil
  local ok, new = session.call(require, name)
  if not ok then
    package.loaded[name] = old
    return false
  end
  if type(old) == "table" and type(new) == "table" then
    for key in pairs(old) do
      if rawequal(rawget(new, key), nil) then
        rawset(old, key, nil)
      end
    end
    for key, value in pairs(new) do
      rawset(old, key, value)
    end
    package.loaded[name] = old
  end
  return true
end

add("reload", "%reload MODULE", "Loads a module again; tables that you hold of it get its new contents.", function(name)
  if name == "" then
    fail("usage: " .. help.reload.usage)
  end
  reload(name)
end)

require "lunaria.session_commands" { session = session, add = add, fail = fail, help = help, reload = reload, hooks = hooks }

local run_notebook = require "lunaria.run_notebook" { session = session, fail = fail }

add("run", "%run FILE [ARGUMENT...]", "Runs a script or the cells of a notebook; their globals stay.", function(line)
  local list = words(line)
  if #list == 0 then
    fail("usage: " .. help.run.usage)
  end
  local path = expand(list[1])
  local f, message
  if path:find("%.ipynb$") then
    f = function() run_notebook(path) end
  else
    f, message = loadfile(path)
  end
  if not f then
    fail(message)
  end
  local old = _G.arg
  _G.arg = { [0] = path, table.unpack(list, 2) }
  session.call(f, table.unpack(list, 2))
  _G.arg = old
end)

add("mode", "%mode [pynative|graph]", "Says in which mode code runs, or switches it.", function(name)
  local ms = require "lunaria"
  local modes = { pynative = ms.PYNATIVE_MODE, eager = ms.PYNATIVE_MODE, graph = ms.GRAPH_MODE }
  if name ~= "" then
    local mode = modes[name:lower()]
    if not mode then
      fail("there is no mode '" .. name .. "'; there are: pynative, graph")
    end
    local ok, message = pcall(ms.set_context, { mode = mode })
    if not ok then
      fail((message:gsub("^.-:%d+: ", "")))
    end
  end
  print("mode: " .. (ms.get_context("mode") == ms.GRAPH_MODE and "graph" or "pynative (operators run at once)"))
end)

add("env", "%env [NAME [VALUE]]", "Prints or sets environment variables.", function(line)
  local name, value = line:match("^([^%s=]+)[%s=]+(.+)$")
  if name then
    session.environment(name, value)
    return
  end
  local all = session.environment()
  if line ~= "" then
    print(all[line] or ("there is no variable '" .. line .. "'"))
    return
  end
  local names = {}
  for key in pairs(all) do
    names[#names + 1] = key
  end
  table.sort(names)
  for _, key in ipairs(names) do
    print(key .. "=" .. all[key])
  end
end)

-- The cells from A to B: "3", "2-5", "" for all but the one that runs.
local function cells(range)
  local all = session.history()
  local first, last = range:match("^(%d+)%-(%d+)$")
  if not first then
    first = range:match("^%d+$")
    last = first
  end
  if not first and range ~= "" then
    fail("'" .. range .. "' is no range of cells, such as 3 or 2-5")
  end
  local list = {}
  for i = tonumber(first) or 1, math.min(tonumber(last) or #all - 1, #all) do
    list[#list + 1] = { i, all[i] }
  end
  return list
end

add("history", "%history [A-B]", "Prints the cells of this session.", function(range)
  for _, cell in ipairs(cells(range)) do
    print(("%4d: %s"):format(cell[1], (cell[2]:gsub("\n", "\n      "))))
  end
end)

add("save", "%save FILE [A-B]", "Writes cells of this session to a file.", function(line)
  local path, range = line:match("^(%S+)%s*(%S*)$")
  if not path then
    fail("usage: " .. help.save.usage)
  end
  local list, texts = cells(range), {}
  for _, cell in ipairs(list) do
    if not cell[2]:find("^%s*[%%!?]") then
      texts[#texts + 1] = cell[2] .. "\n"
    end
  end
  local file <close> = opened(path, "w")
  assert(file:write(table.concat(texts)))
  print(("%d cell%s written to %s"):format(#texts, #texts == 1 and "" or "s", path))
end)

add("load", "%load FILE", "Puts the text of a file at the prompt.", function(path)
  if path == "" then
    fail("usage: " .. help.load.usage)
  end
  session.set_next_input((read(path):gsub("\n$", "")))
end)

add("edit", "%edit [CELL|FILE]", "Opens an editor ($VISUAL or $EDITOR) and runs what you wrote.", function(what)
  local path, text = expand(what), nil
  if what == "" or what:find("^%d+$") then
    text = what ~= "" and (session.history()[tonumber(what)] or fail("there is no cell " .. what)) or ""
    path = require("lunaria").io.temporary(".lua")
    local file <close> = assert(io.open(path, "w"))
    file:write(text)
  end
  -- What was made for the editor goes, however this ends.
  local _ <close> = setmetatable({}, { __close = function() if text then os.remove(path) end end })
  local editor = os.getenv("VISUAL") or ""
  editor = editor ~= "" and editor or os.getenv("EDITOR") or ""
  editor = editor ~= "" and editor or "vi"
  local ok, _, code = os.execute(editor .. " '" .. path:gsub("'", "'\\''") .. "'")
  if not ok then
    fail(("the editor '%s' ended with code %s"):format(editor, tostring(code)))
  end
  local code_text = read(path)
  if code_text:find("%S") then
    print(code_text)
    session.execute(code_text)
  end
end)

add("pwd", "%pwd", "Prints the folder that file names are relative to.", function()
  print((session.directory()))
end)

add("cd", "%cd [FOLDER]", "Changes that folder.", function(path)
  print((session.directory(expand(path ~= "" and path or "~"))))
end)

-- A command of the system's shell. On a terminal it has the terminal to itself, so that editors work.
local function shell(line)
  if not session.is_captured() then
    io.stdout:flush()
    local _, how, code = os.execute(line)
    if how == "signal" then
      print("ended by signal " .. code)
    elseif code ~= 0 then
      print("ended with code " .. code)
    end
    return
  end
  local pipe <close> = assert(io.popen(line .. " 2>&1", "r"))
  for text in pipe:lines("L") do
    io.write(text)
  end
end

-- x = !COMMAND: the lines that a command prints, in a table. What it says of errors is shown.
local function assign_lines(target, line)
  local set = load(("local value = ... %s = value"):format(target), "=(command)") or fail("a name is expected before = !, got " .. target)
  io.stdout:flush()
  local said = session.is_captured() and require("lunaria").io.temporary(".txt")
  local pipe <close> = assert(io.popen(said and ("{ %s\n} 2>'%s'"):format(line, said) or line, "r"))
  local lines = {}
  for text in pipe:lines() do
    lines[#lines + 1] = text
  end
  local _, how, code = pipe:close()
  if said then
    io.stderr:write(read(said))
    os.remove(said)
  end
  if how == "signal" or code ~= 0 then
    print(("ended %s %d"):format(how == "signal" and "by signal" or "with code", code))
  end
  session.call(set, lines)
end

add("ls", "%ls [ARGUMENT...]", "Lists files.", function(arguments)
  shell("ls " .. arguments)
end)

add("lsmagic", "%lsmagic", "Prints the commands.", function()
  local names = {}
  for name in pairs(commands) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    print(("%-40s %s"):format(help[name].usage, help[name].text))
  end
  print(("%-40s %s"):format("!COMMAND", "Runs a command of the shell."))
  print(("%-40s %s"):format("NAME = !COMMAND", "Gives a variable the lines that a command prints, in a table."))
  print(("%-40s %s"):format("?NAME, NAME?", "Prints what is known about a name; ??NAME its source as well."))
end)

add("prof", "%prof CODE", "Runs the code and prints the lines where it spent its time.", function(code)
  local f, message = load("return " .. code, "=(prof)")
  if not f then
    f, message = load(code, "=(prof)")
  end
  if not f then
    fail(message)
  end
  local counts, total = {}, 0
  local function sample()
    local info = debug.getinfo(2, "Sl")
    if info and info.currentline > 0 then
      local place = info.short_src .. ":" .. info.currentline
      counts[place] = (counts[place] or 0) + 1
      total = total + 1
    end
  end
  local start = clock()
  debug.sethook(sample, "", 1000)
  session.call(f)
  debug.sethook()
  local seconds = clock() - start
  local places = {}
  for place in pairs(counts) do
    places[#places + 1] = place
  end
  table.sort(places, function(a, b)
    return counts[a] > counts[b] or (counts[a] == counts[b] and a < b)
  end)
  print(("time: %s, %d samples of Lua instructions"):format(duration(seconds), total))
  for i = 1, math.min(#places, 20) do
    print(("%5.1f %%  %s"):format(100 * counts[places[i]] / total, places[i]))
  end
end)

add("apropos", "%apropos WORDS", "Lists what has the words in its name or text, the best match first.", function(text)
  if text == "" then
    fail("usage: " .. help.apropos.usage)
  end
  print(require "lunaria.help.show".search(text, 20) or "nothing is known about '" .. text .. "'")
end)

add("debug", "%debug", "Looks around where the last error happened; h lists what can be asked there.", function()
  session.debug()
end)

require "lunaria.cell_commands" { add = add, fail = fail, help = help, expand = expand, words = words, shell = shell,
  opened = opened }

-- ?name, name?, ??name, ?%command, and ? alone.
local function show_help(first)
  local marks = #first:match("^%?*") + #first:match("%?*$")
  local name = first:match("^%?*%s*(.-)%s*%?*$")
  if name == "" then
    return commands.lsmagic("")
  end
  local command = name:match("^%%(%w+)$")
  if command and help[command] then
    print(help[command].usage .. "\n" .. help[command].text)
  else
    -- Several words are looked for; as a name the last of them alone would count.
    local text, markdown
    if not name:find "^[%w_][^%(%[]*%s[^%(%[]*$" then text, markdown = session.inspect(name, marks > 1 and 1 or 0) end
    if not text then
      print(require "lunaria.help.show".search(name) or "nothing is known about '" .. name .. "'")
    elseif not session.page(text, markdown) then
      print(text)
    end
  end
end

-- `above`: how many lines of the cell stand over these, so that messages name the line as in the cell.
local run
function run(line, above)
  above = above or 0
  -- Further lines below a command are a cell of their own, but for the commands that take code.
  local first, rest = line:match("^([^\n]*)\n(.*)$")
  first = first or line
  local bang = first:match("^!(.*)$")
  local target, captured = first:match("^([%a_][%w_%.]*)%s*=%s*!(.*)$")
  if bang then
    shell(bang)
  elseif target then
    assign_lines(target, captured)
  elseif first:sub(1, 1) == "?" or first:sub(-1) == "?" then
    show_help(first)
  else
    local name, arguments = first:match("^%%%%?(%w+)%s*(.-)%s*$")
    local command = name and commands[name]
    if not command then
      local near = name and nearest(name, commands)
      fail(("there is no command '%s'; %%lsmagic lists them%s"):format(first:match("^%S+"), near and "\n  hint: " .. near or ""))
    end
    if rest and (name == "time" or name == "timeit" or name == "prof" or name == "memit") then
      arguments, rest = ("\n"):rep(above) .. arguments .. "\n" .. rest, nil
    elseif help[name].usage:sub(1, 2) == "%%" then
      return command(arguments, rest)
    end
    command(arguments)
  end
  if rest and rest:find("^%s*[%%!?]") then
    local space, further = rest:match("^(%s*)(.*)$")
    run(further, above + 1 + select(2, space:gsub("\n", "")))
  elseif rest and rest:find("%S") then
    session.execute(("\n"):rep(above + 1) .. rest)
  end
end

return { commands = commands, help = help, run = run, notebook = run_notebook, hooks = hooks, In = typed, Out = results }
