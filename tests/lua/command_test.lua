-- The command: options, scripts, standard input, exit codes, what is printed where.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"

local program = arg[-1]
local function quoted(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

-- Runs the program in a shell; gives what it printed (with errors) and its exit code.
local function run(arguments, before)
  local pipe = assert(io.popen((before or "") .. " " .. quoted(program) .. " " .. arguments .. " 2>&1", "r"))
  local text = pipe:read("a")
  local _, _, code = pipe:close()
  return text, code
end

local function script(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  return path
end

t.each_day(3)
t.test("LUNARIA_NUM_THREADS says how many threads there are", function()
  local ask = "-e 'local ms = require \"lunaria\" io.write(ms.get_num_threads(), \" \", ms.get_context(\"runtime_num_threads\"))'"
  t.equal({ run(ask, "LUNARIA_NUM_THREADS=3") }, { "3 3", 0 })
  t.equal({ run(ask, "OMP_NUM_THREADS=4 LUNARIA_NUM_THREADS=2") }, { "2 2", 0 })
  for _, wrong in ipairs { "0", "-1", "two", "3x", "5000" } do
    local text, code = run(ask, "LUNARIA_NUM_THREADS=" .. wrong)
    assert(code == 1 and text:find("LUNARIA_NUM_THREADS: the number of threads must be 1 to 1024, got '" .. wrong .. "'", 1, true), text)
  end
end)

t.test("warn and option -W warn as in Lua", function()
  t.equal({ run "-W -e 'warn(\"one\", \" and \", \"two\") warn(\"three\")'" }, { "Lua warning: one and two\nLua warning: three\n", 0 })
  t.equal({ run "-e 'warn(\"quiet\") warn(\"@on\") warn(\"loud\") warn(\"@strange\") warn(\"@off\") warn(\"quiet\")'" },
    { "Lua warning: loud\n", 0 })
end)

t.test("LUNARIA_LOG explains what graph mode does", function()
  local path = script [[
local ms = require "lunaria"
ms.set_context { mode = ms.GRAPH_MODE, jit_level = "O1" }
local function scaled(x, n) return ms.ops.tanh(x) * 2 + 1, n + 1 end
for i = 1, 12 do scaled(ms.ones { 4 }, i) end
local function looks(x) debug.getinfo(1) return x * 2 end
for _ = 1, 6 do looks(ms.ones { 3 }) end
]]
  local text = run(path, "LUNARIA_LOG=all XDG_CACHE_HOME=" .. path .. ".none")
  for _, line in ipairs { "compiles: scaled (%S+:3): recorded in [%d.]+ ms, %d+ steps", "compiles: %S+:3: %d operators as one graph in",
    "recompiles: scaled (%S+:3): it is recorded again: argument 2 is any integer and was 3 before", "cache: a kernel",
    "fallbacks: looks (%S+:5): it is left to Lua: %S+:5: debug.getinfo is called" } do
    if not text:find("lunaria: " .. line:gsub("[()]", "%%%0")) then error(line .. "\nis not in\n" .. text) end
  end
  local fewer = run(path, "LUNARIA_LOG=fallbacks")
  assert(fewer:find("fallbacks: looks", 1, true) and not fewer:find("scaled", 1, true), fewer)
  t.equal(run(path), "")
  assert(run(path, "LUNARIA_LOG=loud"):find("there is no topic 'loud'; there are: all, compiles,", 1, true))
  os.execute("rm -rf " .. path .. " " .. path .. ".none")
end)

t.test("-e, -l and --version", function()
  t.equal({ run "-e 'print(1 + 1)' -e 'print(x == nil)'" }, { "2\ntrue\n", 0 })
  t.equal({ run "-l ms=lunaria -e 'print(ms.tensor(3))'" }, { "Tensor(shape=[], dtype=Int64, value= 3)\n", 0 })
  local text, code = run "--version"
  assert(text:match("^Lunaria %d") and code == 0, text)
  text, code = run "--help"
  assert(text:find("usage: lunaria", 1, true) and code == 0)
end)

t.test("a script gets its arguments and gives its exit code", function()
  local path = script "print(arg[0] == arg[0], #arg, arg[1], ..., arg[-1] ~= nil) os.exit(tonumber(arg[2]))"
  t.equal({ run(path .. " one 7") }, { "true\t2\tone\tone\ttrue\n", 7 })
  os.remove(path)
end)

t.test("standard input is a script when it is no terminal", function()
  t.equal({ run("", "echo 'print(2 * 21)' |") }, { "42\n", 0 })
  t.equal({ run("- a b", "echo 'print(...)' |") }, { "a\tb\n", 0 })
end)

t.test("output that cannot be written is an error", function()
  local lost = "lunaria: the standard output could not be written, or not all of it: is the disk full?\n"
  local function to_full_disk(arguments, before)
    local pipe = assert(io.popen((before or "") .. " " .. quoted(program) .. " " .. arguments .. " 2>&1 >/dev/full", "r"))
    local errors = pipe:read("a")
    local _, _, code = pipe:close()
    return errors, code
  end
  local path = script "for i = 1, 3 do print(i) end"
  t.equal({ to_full_disk(path) }, { lost, 1 })
  t.equal({ to_full_disk "-e 'print(1)'" }, { lost, 1 })
  t.equal({ to_full_disk "-e 'io.write(1)'" }, { lost, 1 })
  t.equal({ to_full_disk "-e 'print(1) os.exit(true, true)'" }, { lost, 1 })
  t.equal({ to_full_disk("", "echo 'print(1)' |") }, { lost, 1 })
  t.equal({ to_full_disk "--help" }, { lost, 1 })
  t.equal({ to_full_disk "-e 'os.exit(3)'" }, { "", 3 })
  t.equal({ to_full_disk "-e 'x = 1'" }, { "", 0 })
  os.remove(path)
end)

t.test("an error that is a table shows what is in it and where it came from", function()
  local path = script "local function f(n)\n  error { code = n, list = { 1, 'a' } }\nend\nf(42)\n"
  local text, code = run(path)
  t.equal(code, 1)
  assert(text:find("lunaria: " .. path .. ':2: error object {code = 42, list = {1, "a"}}\n', 1, true), text)
  assert(text:find(path .. ":4: in main chunk", 1, true), text)
  os.remove(path)
  text = run "-e 'error(setmetatable({}, { __tostring = function() return \"mine\" end }))'"
  assert(text:find("lunaria: mine\nstack traceback:", 1, true), text)
  text = run "-e 'coroutine.wrap(function() error { 7 } end)()'"
  assert(text:find("error object {7}", 1, true), text)
  text = run "-e 'error()'"
  assert(text:find("(error object is a nil value)", 1, true), text)
end)

t.test("an uncaught error prints a traceback with source lines and exits with 1", function()
  local path = script "local ms = require 'lunaria'\nlocal function f(x)\n  return ms.ops.matmul(x, x)\nend\nf(ms.ops.ones({2, 3}))\n"
  local text, code = run(path)
  t.equal(code, 1)
  assert(text:find("lunaria: " .. path .. ":3: matmul: ", 1, true), text)
  assert(text:find("stack traceback:", 1, true) and text:find("f(ms.ops.ones({2, 3}))", 1, true), text)
  os.remove(path)
end)

t.test("a traceback has the program's functions, those of derivatives too, and not the library's", function()
  local head = "local ms = require 'lunaria'\nlocal net = ms.nn.SequentialCell(ms.nn.Dense(4, 3), ms.nn.Dense(5, 2))\n"
    .. "local function loss(x)\n  return net(x):sum()\nend\n"
  for _, call in ipairs { "loss(ms.ops.ones({2, 4}))", "ms.grad(loss)(ms.ops.ones({2, 4}))", "ms.jit(loss)(ms.ops.ones({2, 4}))",
    "local g = ms.vmap(loss) g(ms.ops.ones({3, 2, 4}))" } do
    local path = script(head .. call .. "\n")
    local text, code = run(path)
    t.equal(code, 1)
    assert(text:find("lunaria: " .. path .. ":4: dense: ", 1, true), text)
    assert(text:find("\n\t" .. path .. ":4: in ", 1, true) and text:find("\n\t\treturn net(x):sum()\n", 1, true), text)
    assert(text:find("\n\t" .. path .. ":6: in main chunk\n\t\t" .. call, 1, true), text)
    assert(not text:find("lunaria/", 1, true) and not text:find("[C]", 1, true), text)
    assert(select(2, text:gsub("net%(x%):sum", "")) == 1, text)
    assert(run(path, "LUNARIA_LOG=library"):find("lunaria:lunaria/", 1, true))
    local session = run("-i", "printf '%s\\n' 'dofile(\"" .. path .. "\")' |")
    assert(session:find(path .. ":4 in", 1, true) and not session:find("lunaria:lunaria/", 1, true), session)
    os.remove(path)
  end
end)

t.test("what never ran has no traceback", function()
  for _, arguments in ipairs { "-l no.such.module", "no_such_file.lua", "-e 'x = = 1'" } do
    local text, code = run(arguments)
    t.equal(code, 1)
    assert(text:find("^lunaria: ") and not text:find("traceback"), text)
  end
end)

-- A notebook of these code cells; a table is a cell that may fail. Gives its path.
local function notebook(...)
  local json = require("lunaria").json
  local cells = json.array { { cell_type = "markdown", metadata = {}, source = "# Title" } }
  for _, cell in ipairs { ... } do
    local source = type(cell) == "table" and cell[1] or cell
    local metadata = { tags = type(cell) == "table" and { "raises-exception" } or json.array() }
    cells[#cells + 1] = { cell_type = "code", metadata = metadata, source = source }
  end
  local path = os.tmpname()
  os.remove(path)
  path = path .. ".ipynb"
  local file <close> = assert(io.open(path, "w"))
  file:write(json.encode { nbformat = 4, nbformat_minor = 5, metadata = { language_info = { name = "lua" } }, cells = cells })
  return path
end

t.test("a notebook's cells run in order and show what they give", function()
  local path = notebook("x = 20\nlocal hidden = 1\nx + 1", "print(x, hidden, arg[0]:match('[^.]+$'), arg[1])", "1, 'two'", "6 * 7;", "nil",
    "%time\nprint 'timed'", "  ", "_ == 2 and 'no' or ms.tensor(3)")
  local text, code = run(path .. " one")
  t.equal(code, 0)
  local function timeless(output) return (output:gsub("time: [^\n]+", "time")) end
  t.equal(timeless(text), "21\n20\tnil\tipynb\tone\n1\t\"two\"\ntimed\ntime\nTensor(shape=[], dtype=Int64, value= 3)\n")
  -- With -i the session goes on with the globals.
  t.equal(timeless(run("-i " .. path, "echo 'x + 100' |")), timeless(run(path)) .. "120\n")
  os.remove(path)
end)

t.test("an error ends a notebook and names the cell and the line", function()
  local path = notebook("print 'first'", "local a = 1\na.b.c = 2", "print 'never'")
  local text, code = run(path)
  t.equal(code, 1)
  assert(text:find("first\n" .. path .. "[2]:2: attempt to index", 1, true), text)
  assert(text:find("a.b.c = 2", 1, true) and not text:find("never") and not text:find("lunaria:lunaria", 1, true), text)
  text = run("-e 1", "printf '%s\\n' '%run " .. path .. "' '1 + 1' | " .. quoted(program) .. " -i")
  assert(text:find(path .. "[2]:2: attempt to index", 1, true) and text:find("\n2\n") and not text:find("never"), text)
  os.remove(path)

  path = notebook({ "error 'meant'" }, "%time error('timed')", "print 'never'")
  text, code = run(path)
  t.equal(code, 1)
  assert(text:find(path .. "[1]:1: meant", 1, true) and text:find(path .. "[2]:1: timed", 1, true) and not text:find("never"), text)
  os.remove(path)

  path = notebook("%mode\n\n%time\nlocal a = 1\nerror('below')", "print 'never'")
  text = run(path)
  assert(text:find(path .. "[1]:5: below", 1, true), text)
  os.remove(path)
  path = notebook("x = = 1")
  text, code = run(path)
  assert(code == 1 and text:find(path .. "[1]:1: unexpected symbol near '='", 1, true), text)
  os.remove(path)
  path = notebook("print 'first'", "\nbreakpoint()", "print 'never'")
  local stopped = "first\n> " .. path .. "[2]:2 in main chunk\n-> breakpoint()\n"
  t.equal({ run(path, "echo q |") }, { stopped .. "debug> the debugger ended the program\n", 130 })
  os.remove(path)
  path = notebook("print 'first'", "exit", "print 'never'")
  t.equal({ run(path) }, { "first\n", 0 })
  os.remove(path)
end)

t.test("a file that is no notebook gets a clear error", function()
  local path = notebook()
  local function message(text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local output, code = run(path)
    t.equal(code, 1)
    return output
  end
  for text, wanted in pairs {
    ["{"] = "this is no notebook: ", ["[1, 2]"] = "it has no list of cells", ["3"] = "it has no list of cells",
    ["{\"cells\": [{\"source\": \"x\"}]}"] = "cell 1 has no cell_type",
    ["{\"cells\": [{\"cell_type\": \"code\", \"source\": [1]}]}"] = "the source of cell 1 is neither a text nor a list of texts",
    ["{\"cells\": [], \"metadata\": {\"kernelspec\": {\"language\": \"python\"}}}"] = "language is python, not lua",
    ["{\"worksheets\": [], \"nbformat\": 3}"] = "format 3, which is too old" } do
    local output = message(text)
    assert(output:find(path .. ": ", 1, true) == 1 and output:find(wanted, 1, true), output)
  end
  os.remove(path)
  assert(run(path):find(path .. ": cannot be opened: No such file", 1, true) == 1)
end)

t.test("a syntax error shows the line with a caret", function()
  local path = script "local x = 1\nlocal y = = 2\n"
  local text, code = run(path)
  t.equal(code, 1)
  assert(text:find(path .. ":2: ", 1, true) and text:find("local y = = 2", 1, true) and text:find("^", 1, true), text)
  os.remove(path)
end)

t.test("-e prints the values of an expression, and nothing of a call", function()
  t.equal({ run "-e '1+1'" }, { "2\n", 0 })
  t.equal({ run "-e '2, [[x]]'" }, { "2\tx\n", 0 })
  t.equal({ run "-e 'math.abs(1)'" }, { "", 0 })
  local text, code = run "-e 'x ='"
  assert(code == 1 and text:find("syntax error", 1, true) or text:find("unexpected symbol", 1, true), text)
end)

t.test("help is there in scripts", function()
  assert(run "-e 'help(\"softmax\")'":find("^softmax%("))
end)

t.test("mistakes on the command line are told", function()
  local text, code = run "--no-such-option"
  assert(code == 1 and text:find("unrecognized option '--no-such-option'", 1, true), text)
  assert(run "--dbug":find("did you mean '--debug'?", 1, true))
  text, code = run "/proc/no/such/file.lua"
  assert(code == 1 and text:find("cannot open /proc/no/such/file.lua", 1, true), text)
end)

t.test("-E ignores the environment", function()
  t.equal({ run("-e 'print(y)'", "LUA_INIT='y = 5'") }, { "5\n", 0 })
  t.equal({ run("-E -e 'print(y)'", "LUA_INIT='y = 5'") }, { "nil\n", 0 })
end)

-- ThreadSanitizer holds a signal back until the program next calls a library: there, the loop asks for memory.
local endless = os.getenv "TSAN_OPTIONS" and "while true do local _ = {} end" or "while true do end"

t.test("Ctrl-C ends a script with 130", function()
  local text, code = run("-e '" .. endless .. "'", "timeout -s INT 1")
  assert(text:find("interrupted!", 1, true), text)
  assert(code == 130 or code == 124, tostring(code)) -- timeout itself may report 124
end)

t.test("lessons are listed, copied and opened", function()
  local text, code = run "lessons"
  assert(code == 0 and text:find("01-tensors             Tensors\n", 1, true) and text:find("lunaria lessons open", 1, true), text)
  local folder = os.tmpname()
  os.remove(folder)
  folder = folder .. "/it's here"
  text, code = run("lessons copy " .. quoted(folder))
  local written = tonumber(text:match "(%d+) files written\n$")
  assert(code == 0 and written > 20, text)
  t.equal(io.open(folder .. "/01-tensors.ipynb"):read "a", io.open "notebooks/01-tensors.ipynb":read "a")
  -- What the reader has changed stays.
  assert(io.open(folder .. "/01-tensors.ipynb", "w")):write("mine"):close()
  os.remove(folder .. "/02-autodiff.ipynb")
  t.equal({ run("lessons copy " .. quoted(folder)) }, { ("%s: 1 file written, %d were there\n"):format(folder, written - 1), 0 })
  t.equal(io.open(folder .. "/01-tensors.ipynb"):read "a", "mine")
  t.equal({ run("-e 'for _, f in ipairs(require(\"lunaria.help.lessons\").all()) do assert(f.title, f.name) end'") }, { "", 0 })
  -- A Jupyter that tells what it was called with.
  local bin = folder .. "/bin"
  os.execute("mkdir " .. quoted(bin))
  local jupyter = assert(io.open(bin .. "/jupyter", "w"))
  jupyter:write "#!/bin/sh\necho \"$JUPYTER_PATH: $*\"\n"
  jupyter:close()
  os.execute("chmod +x " .. quoted(bin .. "/jupyter"))
  text, code = run("lessons open 2 " .. quoted(folder), "PATH=" .. quoted(bin) .. ":$PATH JUPYTER_PATH=/other")
  assert(code == 0 and text:find("/share/jupyter:/other: lab " .. folder .. "/02-autodiff.ipynb\n", 1, true), text)
  os.execute("rm -r " .. quoted(folder))
  for words, said in pairs { ["open 2-autodiff"] = "did you mean '02-autodiff'?", ["open"] = "the lesson is missing",
    ["open 99"] = "there is no lesson '99'", ["copy a b"] = "'b' is one word too many", ["show"] = "there is no command 'show'",
    ["copy --all"] = "'--all' is not understood", ["copy /proc/none"] = "cannot be made" } do
    text, code = run("lessons " .. words)
    assert(code == 1 and text:find(said, 1, true), text)
  end
end)

t.test("a missing data set of Debian's names its package", function()
  local text, code = run("-e 'require(\"lunaria\").load_idx \"/usr/share/datasets/none-such/x.gz\"'")
  assert(code == 1 and text:find("hint: the Debian package dataset-none-such has it: apt-get install dataset-none-such", 1, true), text)
end)

t.test("--docs writes a page for each family and an index", function()
  local folder = os.tmpname()
  os.remove(folder)
  t.equal({ run("--docs " .. folder) }, { "", 0 })
  local file = assert(io.open(folder .. "/README.md"))
  local index = file:read("a")
  file:close()
  for _, name in ipairs { "[matmul](linalg.md#matmul)", "[ms.nn.Dense](classes.md#msnndense)", "[LUNARIA_LOG]", "[%timeit]",
    "[lunaria --docs]" } do
    assert(index:find(name, 1, true), name)
  end
  os.execute("rm -r " .. folder)
  t.equal({ run("--docs " .. folder .. " --html") }, { "", 0 })
  for name, part in pairs { ["index.html"] = "guide.training.html", ["index.js"] = "softmax", ["search.js"] = "search",
    ["style.css"] = "body", ["p/nn.D_ense.html"] = "in_channels" } do
    local page = assert(io.open(folder .. "/" .. name))
    assert(page:read("a"):find(part, 1, true), name)
    page:close()
  end
  os.execute("rm -r " .. folder)
  local text, code = run "--docs /proc/no/such"
  assert(code == 1 and text:find("docs", 1, true), text)
end)

t.test("one interrupt that comes twice, as timeout sends it, is one", function()
  local begun = os.tmpname()
  local loop = ("%s -e 'io.open(\"%s\", \"w\"):close() %s' 2>&1 & p=$!; until [ -e %s ]; do sleep 0.02; done; sleep 0.1; ")
    :format(quoted(program), begun, endless, begun) .. "kill -INT $p $p; wait $p; echo code $?"
  for _ = 1, 3 do
    os.remove(begun)
    local pipe = assert(io.popen(loop, "r"))
    local text = pipe:read("a")
    pipe:close()
    assert(text:find("interrupted!", 1, true) and text:find("code 130", 1, true), text)
  end
  os.remove(begun)
end)

t.test("finalizers at the end of a program compute and differentiate", function()
  local path = script [[
early = setmetatable({}, { __gc = function()
  local x = ms.tensor { 1.0, 2.0 }
  local g = ms.grad(function(v) return (double(v) * v):sum() end)(x)
  print(double(x):tolist()[2], g:tolist()[2], triple(x):tolist()[2], net(x:reshape { 1, 2 }).shape[2])
end })
ms = require "lunaria"
function double(x) return x * 2 end
triple, net = ms.jit(function(x) return x * 3 end), ms.nn.Dense(2, 2)
late = setmetatable({}, getmetatable(early))
for _ = 1, 5 do
  ms.grad(function(v) return double(v):sum() end)(triple(ms.tensor { 1.0, 1.0 }))
  net(ms.tensor { { 1.0, 2.0 } })
end
]]
  for _, mode in ipairs { 0, 1 } do
    -- Lua finalizes nothing that is made while it closes, and the process ends.
    local leaks = 'ASAN_OPTIONS="$ASAN_OPTIONS:detect_leaks=0" '
    local text, code = run(path, leaks .. ("LUA_INIT='require(\"lunaria\").set_context{ mode = %d }'"):format(mode))
    t.equal({ text, code }, { ("4.0\t8.0\t6.0\t2\n"):rep(2), 0 })
  end
  os.remove(path)
end)

t.finish()
