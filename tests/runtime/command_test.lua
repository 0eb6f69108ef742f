-- lunaria-run at the command line: the example of jit/runtime/README.md, inputs and results as files, mistakes.
--   lunaria tests/runtime/command_test.lua PATH_OF_LUNARIA_RUN
-- Eager mode only: programs run in lunaria-run.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

local here = assert(io.popen "pwd"):read "l"
local function absolute(path) return path:sub(1, 1) == "/" and path or here .. "/" .. path end
local program, runner = absolute(arg[-1]), absolute(arg[1] or error("the path of lunaria-run is missing", 0))

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

-- What a command prints, and its status.
local function shell(command)
  local pipe = assert(io.popen(("cd %s && { %s; } 2>&1"):format(folder, command)))
  local text = pipe:read "a"
  local _, _, status = pipe:close()
  return text, status
end
local function run(words) return shell(runner .. " " .. words) end
local function save(name, f, ...) ms.save_mindir(f, folder .. "/" .. name, ...) end

t.test("the example in the README does what stands there", function()
  local command, expected, count = nil, {}, 0
  local function check()
    if not command then return end
    count = count + 1
    local text = shell((command:gsub("^lunaria%-run", runner):gsub("^lunaria ", program .. " ")))
    t.equal(text, table.concat(expected))
  end
  for line in io.lines "jit/runtime/README.md" do
    local code = line:match "^    (.*)$"
    if code and code:sub(1, 2) == "$ " then
      check()
      command, expected = code:sub(3), {}
    elseif code then
      expected[#expected + 1] = code .. "\n"
    end
  end
  check()
  assert(count == 4, count)
end)

t.test("inputs are arrays, archives of arrays as tables, and values; results go to files of their own", function()
  save("table.mindir", function(x, list, options)
    return { sum = x + list[1] * list[2], name = options }, x:sum():item() > 0, nil
  end, ms.ones { 2 }, { ms.ones { 2 }, ms.ones { 2 } }, "text")
  ms.save(folder .. "/x.npy", ms.tensor { 1.0, 2.0 })
  ms.save(folder .. "/list.npz", { ["1"] = ms.tensor { 3.0, 4.0 }, ["2"] = ms.tensor { 5.0, 6.0 } })
  t.equal(run [[table.mindir x.npy list.npz '"a text"' --out y/ && ls y]],
    "output_0.name.txt\noutput_0.sum.npy\noutput_1.npy\noutput_2.txt\n")
  t.equal(ms.load(folder .. "/y/output_0.sum.npy"):tolist(), { 16, 26 })
  t.equal(ms.load(folder .. "/y/output_1.npy"):item(), true)
  t.equal(shell "cat y/output_0.name.txt y/output_2.txt", "a text\nnil\n")
  t.equal(run [[table.mindir --print --out z x.npy list.npz nil]],
    "{sum = Tensor(shape=[2], dtype=Float32, value=\n[ 1.60000000e+01,  2.60000000e+01])}\ntrue\nnil\n")
end)

t.test("times tell what was compiled, and kernels are those of the cache alone", function()
  save("steps.mindir", function(x, n)
    for i = 1, n do x = ops.tanh(x) * 0.5 + ops.sin(x) * i end
    return x
  end, ms.ones { 1000 }, 3)
  local x = ops.randn { 1000 }
  ms.save(folder .. "/x.npy", x)
  local f = ms.jit((ms.load(folder .. "/steps.mindir")))
  local expected
  for _ = 1, 4 do expected = f(x, 3) end
  for _, case in ipairs { { "", "[1-9]%d* kernels" }, { "--no-kernels", " 0 kernels" }, { "--cache " .. folder, " 0 kernels" },
    { "--threads 1", "[1-9]%d* kernels" } } do
    local text, status = run("steps.mindir x.npy 3 --repeat 5 --out got " .. case[1])
    t.equal(status, 0)
    assert(text:find "^5 runs: the first [%d.]+ ms, the others [%d.]+ ms at the median, [%d.]+ ms at least;", text)
    assert(text:find "; 1 recorded, 4 from records", text)
    assert(text:find(case[2]), case[1] .. ": " .. text)
    assert(ops.equal(ms.load(folder .. "/got_0.npy"), expected):all():item(), case[1])
  end
  assert(not io.open(folder .. "/lunaria"), "a kernel was written")
end)

t.test("mistakes end with a line that names the file, and a status", function()
  save("net.mindir", function(x) return ops.matmul(x, x) end, ms.ones { 2, 2 })
  ms.save(folder .. "/wide.npy", ms.ones { 2, 3 })
  local function fails(words, status, text)
    local said, got = run(words)
    assert(said:find(text, 1, true) and got == status, ("%s: %s (%d)"):format(words, said, got))
  end
  fails("", 2, "lunaria-run: no program is given")
  fails("--fast net.mindir", 2, "lunaria-run: there is no option --fast; --help lists them")
  fails("net.mindir --repeat x", 2, "--repeat takes a number from 1 to 1000000000, got 'x'")
  fails("missing.mindir", 1, "lunaria-run: missing.mindir: cannot be opened: No such file or directory")
  fails("wide.npy", 1, "lunaria-run: wide.npy: ")
  fails("net.mindir missing.npy", 1, "missing.npy: cannot be opened")
  fails("net.mindir text", 1, "input 'text' is no .npy or .npz file and no value")
  fails("net.mindir 1 2", 1, "the program takes 1 inputs, got 2")
  fails("net.mindir wide.npy", 1, "matmul: ")
  fails("net.mindir wide.npy --out /nowhere/y", 1, "matmul: ")
  fails("net.mindir '{{1, 2}, {3, 4}}' --out /nowhere/y", 1, "/nowhere/y_0.npy: ")
  fails("net.mindir '{{1, 2}, {3, 4}}' > /dev/full", 1, "standard output")
  save("pack.mindir", function(x, s) return x, string.pack(s, 1) end, ms.ones { 2 }, "i4")
  fails("pack.mindir", 1, "pack.mindir: the program calls string.pack, which only the full program has")
end)

t.test("help and version stand on the standard output", function()
  local text, status = run "--help"
  t.equal(status, 0)
  for option in text:gmatch "\n  (%-%-[%w-]+)" do assert(text:find(option, 1, true)) end
  assert(text:find "^usage: lunaria%-run" and text:find "%-%-no%-kernels")
  assert(run "--version":find "^lunaria%-run %d+%.%d+")
end)

os.execute("rm -r " .. folder)
t.finish()
