-- Examples of what is typed at a prompt or in a shell: commands, options, variables of the environment, commands of the
-- debugger. Rows as in examples.lua; ... stands for any text within a line, a line of ... for any lines. Each list is
-- one session, in a folder with the files below; tests/lua/typed_examples_test.lua runs them.
-- luacheck: no max line length
local examples = {}

examples.files = {
  ["sum.lua"] = "local function double(n)\n  local twice = n * 2\n  return twice\nend\nlocal total = 0\nfor i = 1, 3 do\n  total = total + double(i)\nend\nprint(total)\n",
  ["step.lua"] = "local ms = require \"lunaria\"\nlocal step = ms.jit(function(x) return (x * 2 + 1):sum() end)\nfor _ = 1, 3 do step(ms.ones { 4 }) end\n",
  ["tools.lua"] = "return { version = 3 }\n",
}

-- At the prompt or in a cell of a notebook.
examples.prompt = {
  ["%apropos"] = { { "%apropos inverse of a square matrix", "ms.ops.inverse...\n..." } },
  ["%autoreload"] = { { "%autoreload on", "autoreload: on" } },
  ["%cd"] = { { "%cd /", "/" } },
  ["%debug"] = { { "local rate = 3 error(\"wrong\")", "In[1]:1: wrong\n..." },
    { "%debug", "> In[1]:1 in main chunk\n-> local rate = 3 error(\"wrong\")" }, { "rate", "3", prompt = "debug> " },
    { "q", "", prompt = "debug> " } },
  ["%edit"] = { { "x = 1" }, { "%env EDITOR sed -i s/1/2/" }, { "%edit 1", "x = 2" }, { "x", "2" } },
  ["%env"] = { { "%env GREETING hello" }, { "%env GREETING", "hello" } },
  ["%history"] = { { "x = 1 + 1" }, { "%history", "   1: x = 1 + 1" } },
  ["%load"] = { { "%load tools.lua", "return { version = 3 }\n..." } },
  ["%ls"] = { { "%ls *.lua", "step.lua\nsum.lua\ntools.lua" } },
  ["%lsmagic"] = { { "%lsmagic", "%apropos WORDS...\n..." } },
  ["%memit"] = { { "%memit x = ms.ones { 1024, 1024 }", "peak: 4.0 MiB above the ... before; kept: 4.0 MiB" } },
  ["%mode"] = { { "%mode graph", "mode: graph" }, { "%mode pynative", "mode: pynative (operators run at once)" } },
  ["%pdb"] = { { "%pdb on", "pdb: on" }, { "%pdb off", "pdb: off" } },
  ["%prof"] = { { "%prof for i = 1, 3e5 do local square = i * i end", "time: ..., ... samples of Lua instructions\n..." } },
  ["%pwd"] = { { "%cd /", "/" }, { "%pwd", "/" } },
  ["%reload"] = { { "tools = require \"tools\"" }, { "tools.version = 4" }, { "%reload tools" }, { "tools.version", "3" } },
  ["%reset"] = { { "x = 5" }, { "%reset" }, { "x", "nil" } },
  ["%run"] = { { "%run sum.lua", "12" } },
  ["%save"] = { { "x = 1 + 1" }, { "%save cells.lua 1", "1 cell written to cells.lua" }, { "!cat cells.lua", "x = 1 + 1" } },
  ["%time"] = { { "%time 1 + 1", "time: ... (processor: ...)\n2" } },
  ["%timeit"] = { { "%timeit -n 1000 -r 3 1 + 1", "... per run, best ..., spread ... (3 repeats of 1000 runs)" } },
  ["%who"] = { { "rate, steps = 0.1, 5" }, { "%who", "rate  steps" } },
  ["%whos"] = { { "steps = 5" }, { "%whos", "name   type     value\nsteps  integer  5" } },
  ["!COMMAND"] = { { "!echo hello", "hello" } },
  ["?NAME"] = { { "?ms.is_tensor", "ms.is_tensor(value)\n..." } },
  display = { { "display({ 1, 2 })", "{1, 2}" } },
  help = { { "help(\"is_tensor\")", "is_tensor(obj/input: any)\n..." } },
  breakpoint = { { "type(breakpoint)", "\"function\"" } },
  ["%%html"] = { { "%%html\n<b>bold</b>", "bold" } },
  ["%%latex"] = { { "%%latex\nx^2", "x^2" } },
  ["%%markdown"] = { { "%%markdown\n**bold**", "**bold**" } },
  ["%%sh"] = { { "%%sh\necho one\necho two", "one\ntwo" } },
  ["%%svg"] = { { "%%svg\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"/>", "SVG drawing of 62 bytes" } },
  ["%%writefile"] = { { "%%writefile note.txt\nhello", "Writing note.txt" } },
}

-- In a shell.
examples.shell = {
  ["lunaria -e"] = { { "lunaria -e '1 + 1'", "2" } },
  ["lunaria -i"] = { { "echo 'x + 1' | lunaria -e 'x = 41' -i", "42" } },
  ["lunaria -l"] = { { "lunaria -l t=tools -e 't.version'", "3" } },
  ["lunaria -v"] = { { "lunaria -v", "Lunaria ... (Lua 5.4...)" } },
  ["lunaria -E"] = { { "LUA_INIT='x = 1' lunaria -E -e 'x'", "nil" } },
  ["lunaria -W"] = { { "lunaria -W -e 'warn(\"late\")' 2>&1", "Lua warning: late" } },
  ["lunaria ascend"] = { { "lunaria ascend estimate lenet --batch 32 | head -n 1",
    "lenet: batch 32 on 1 x Ascend 910, float16, momentum, sink graph" } },
  ["lunaria lite"] = { { "lunaria lite --help | head -n 1", "usage: lunaria lite benchmark ..." } },
  ["lunaria insight"] = { { "lunaria insight --help | head -n 1", "usage: lunaria insight start ..." } },
  ["lunaria check"] = { { "echo 'print(summ)' > slip.lua; lunaria check slip.lua", "slip.lua:1: the global 'summ' has no value (...)" } },
  ["lunaria stubs"] = { { "lunaria stubs editor > /dev/null && ls editor", "lunaria\nlunaria.lua" } },
  ["lunaria lessons"] = { { "lunaria lessons | head -n 1", "01-tensors             Tensors" } },
  ["lunaria kernel"] = { { "lunaria kernel --help", "usage: lunaria kernel ...\n..." } },
  ["lunaria --debug"] = { { "echo c | lunaria --debug sum.lua", "> sum.lua:4 in main chunk\n-> end\ndebug> 12" } },
  ["lunaria --docs"] = { { "lunaria --docs pages && ls pages/README.md", "pages/README.md" } },
  ["lunaria --html"] = { { "lunaria --docs site --html && ls site", "index.html\nindex.js\nlessons\nnav\np\nsearch.js\nsource\nsource.html\nstyle.css" } },
  ["lunaria --help"] = { { "lunaria --help", "usage: lunaria [options] [script or notebook.ipynb [args]]\n..." } },
  ["lunaria --"] = { { "lunaria -- sum.lua", "12" } },
  ["lunaria -"] = { { "echo 'print(6 * 7)' | lunaria -", "42" } },
  ["lunaria launch"] = { { "lunaria launch -n 2 --show all -- -e 'print(6 * 7)' | sort", "[0] 42\n[1] 42" } },
  ["lunaria ranks"] = { { "lunaria ranks none-such 2>&1 | head -n 1", "lunaria ranks: there are no records of a job 'none-such' in /dev/shm" } },
  LUNARIA_JOB = { { "lunaria launch -n 1 -- -e 'print(#os.getenv \"LUNARIA_JOB\")'", "12" } },
  LUNARIA_SECRET = { { "lunaria launch --nodes 2 --address 127.0.0.1:9999 sum.lua 2>&1 | head -n 1",
    "lunaria launch: ranks of several machines need a secret by which they know each other" } },
  LUNARIA_MPI = { { "LUNARIA_MPI=/usr/lib/libmpi.so lunaria sum.lua", "12" } },
  MS_ROLE = { { "MS_ROLE=MS_SCHED lunaria sum.lua", "lunaria: ranks meet without a scheduler of their own; this process has nothing to do" } },
  LUNARIA_LOG = { { "LUNARIA_LOG=compiles lunaria step.lua 2>&1", "lunaria: compiles: the function at step.lua:2: recorded in ...\n..." } },
  LUNARIA_DUMP = { { "LUNARIA_DUMP=passes lunaria step.lua 2>&1 | head -1", "..." } },
  LUNARIA_GPU_WAIT = { { "LUNARIA_GPU_WAIT=1 lunaria -l ms=lunaria -e 'print(ms.ones({ 2 }):sum():item())'", "2.0" } },
  LUNARIA_GPU_LIBRARIES = { { "LUNARIA_GPU_LIBRARIES=0 lunaria -l ms=lunaria -e 'print(ms.ones({ 2 }):sum():item())'", "2.0" } },
  LUNARIA_SEPARATE_MEMORY = { { "LUNARIA_SEPARATE_MEMORY=64 lunaria -l ms=lunaria -e 'print((pcall(function() return ms.ones({ 999 }):to \"Separate\" end)))'", "false" } },
  LUNARIA_NUM_THREADS = { { "LUNARIA_NUM_THREADS=2 lunaria -l ms=lunaria -e 'print(ms.get_num_threads())'", "2" } },
  LUNARIA_ISA = { { "LUNARIA_ISA=v2 lunaria -l ms=lunaria -e 'print(ms.ones({ 2 }):sum():item())'", "2.0" } },
  LUNARIA_ENGINE = { { "LUNARIA_ENGINE=shared lunaria launch -n 2 sum.lua", "12" } },
  LUNARIA_DEVICE_ENGINE = { { "LUNARIA_DEVICE_ENGINE=host lunaria launch -n 2 sum.lua", "12" } },
  LUNARIA_COMMUNICATION_TIMEOUT = { { "LUNARIA_COMMUNICATION_TIMEOUT=5 lunaria sum.lua", "12" } },
  OMP_NUM_THREADS = { { "OMP_NUM_THREADS=3 lunaria -l ms=lunaria -e 'print(ms.get_num_threads())'", "3" } },
  XDG_CACHE_HOME = { { "XDG_CACHE_HOME=$PWD/cache lunaria step.lua && ls cache/lunaria", "kernels" } },
  TMPDIR = { { "TMPDIR=/var/tmp lunaria -l ms=lunaria -e 'n = ms.io.temporary() print((n:match \"^(.*)/\")) os.remove(n)'", "/var/tmp" } },
  XDG_STATE_HOME = { { "XDG_STATE_HOME=/var/tmp lunaria -e 'os.getenv \"XDG_STATE_HOME\" == \"/var/tmp\"'", "true" } },
  NO_COLOR = { { "echo '1 + nil' | NO_COLOR=1 lunaria -i 2>&1", "In[1]:1: attempt to perform arithmetic on a nil value\n..." } },
  LUA_INIT = { { "LUA_INIT='x = 5' lunaria -e 'x'", "5" } },
  LUA_PATH = { { "LUA_PATH='./?.lua;;' lunaria -e 'require(\"tools\").version == 3'", "true" } },
  LUA_CPATH = { { "LUA_CPATH='lib/?.so;;' lunaria -e 'print(package.cpath:match \"[^;]*\")'", "lib/?.so" } },
  EDITOR = { { "printf 'x = 1\\n%%edit 1\\nx\\n' | EDITOR='sed -i s/1/2/' lunaria -i", "x = 2\n2" } },
}

-- One session of the debugger after lunaria --debug sum.lua; a command's example is where it stands there.
examples.debugger = {
  { "h n", "n  goes on to the next line of this function" },
  { "n", "> sum.lua:5 in main chunk\n-> local total = 0" },
  { "l 5,7", "   5  -> local total = 0\n   6     for i = 1, 3 do\n   7       total = total + double(i)" },
  { "b 7", "breakpoint 1 at sum.lua:7" },
  { "c", "breakpoint 1\n> sum.lua:7 in main chunk\n-> total = total + double(i)" },
  { "p total + i", "1" },
  { "pp { total, i }", "{0, 1}" },
  { "whatis total", "integer" },
  { "s", "> sum.lua:2 in double\n-> local twice = n * 2" },
  { "a", "n = 1" },
  { "upvalues", "n = 1" },
  { "w", "  sum.lua:7 in main chunk\n    total = total + double(i)\n> sum.lua:2 in double\n    local twice = n * 2" },
  { "u", "> sum.lua:7 in main chunk\n-> total = total + double(i)" },
  { "d", "> sum.lua:2 in double\n-> local twice = n * 2" },
  { "ll", "   1     local function double(n)\n   2  ->   local twice = n * 2\n..." },
  { "display n", "display 1: n = 1" },
  { "unwatch 1" },
  { "r", "> sum.lua:6 in main chunk\n-> for i = 1, 3 do" },
  { "condition 1 i == 3" },
  { "ignore 1 0" },
  { "disable 1" },
  { "enable 1" },
  { "tbreak 9", "breakpoint 2 at sum.lua:9" },
  { "catch uncaught", "stops at uncaught errors" },
  { "watch total", "watch 2: total = 2" },
  { "c", "changed: total: 2 -> 6\n> sum.lua:6 in main chunk\n-> for i = 1, 3 do" },
  { "cl 1", "breakpoint 1 removed" },
  { "q" },
}

--- The rows of an entry of the index, by its name; each with the text that stands before what is typed.
function examples.of(name)
  local command = name:match "^debug> (.+)$"
  if command then
    for _, row in ipairs(examples.debugger) do
      if row[1]:match "^%S+" == command then return { { row[1], row[2], prompt = "debug> " } } end
    end
  end
  local list = {}
  for _, row in ipairs(examples.prompt[name] or {}) do list[#list + 1] = row end
  for _, row in ipairs(examples.shell[name] or {}) do list[#list + 1] = { row[1], row[2], prompt = "$ " } end
  return #list > 0 and list or nil
end

return examples
