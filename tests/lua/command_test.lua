-- The command: options, scripts, standard input, exit codes, what is printed where.
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

t.test("an uncaught error prints a traceback with source lines and exits with 1", function()
  local path = script "local ms = require 'lunaria'\nlocal function f(x)\n  return ms.ops.matmul(x, x)\nend\nf(ms.ops.ones({2, 3}))\n"
  local text, code = run(path)
  t.equal(code, 1)
  assert(text:find("lunaria: " .. path .. ":3: matmul: ", 1, true), text)
  assert(text:find("stack traceback:", 1, true) and text:find("f(ms.ops.ones({2, 3}))", 1, true), text)
  os.remove(path)
end)

t.test("a syntax error shows the line with a caret", function()
  local path = script "local x = 1\nlocal y = = 2\n"
  local text, code = run(path)
  t.equal(code, 1)
  assert(text:find(path .. ":2: ", 1, true) and text:find("local y = = 2", 1, true) and text:find("^", 1, true), text)
  os.remove(path)
end)

t.test("mistakes on the command line are told", function()
  local text, code = run "--no-such-option"
  assert(code == 1 and text:find("unrecognized option '--no-such-option'", 1, true), text)
  text, code = run "/no/such/file.lua"
  assert(code == 1 and text:find("cannot open /no/such/file.lua", 1, true), text)
end)

t.test("-E ignores the environment", function()
  t.equal({ run("-e 'print(y)'", "LUA_INIT='y = 5'") }, { "5\n", 0 })
  t.equal({ run("-E -e 'print(y)'", "LUA_INIT='y = 5'") }, { "nil\n", 0 })
end)

t.test("Ctrl-C ends a script with 130", function()
  local text, code = run("-e 'while true do end'", "timeout -s INT 1")
  assert(text:find("interrupted!", 1, true), text)
  assert(code == 130 or code == 124, tostring(code)) -- timeout itself may report 124
end)

t.test("--docs writes a page for each family and an index", function()
  local folder = os.tmpname()
  os.remove(folder)
  t.equal({ run("--docs " .. folder) }, { "", 0 })
  local file = assert(io.open(folder .. "/README.md"))
  local index = file:read("a")
  file:close()
  assert(index:find("[matmul](linalg.md#matmul)", 1, true))
  os.execute("rm -r " .. folder)
  local text, code = run "--docs /proc/no/such"
  assert(code == 1 and text:find("docs", 1, true), text)
end)

t.finish()
