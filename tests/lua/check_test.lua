-- lunaria check: mistakes that can be seen without a run, and none in what is right: all lessons, the zoo, examples. 3 s.
-- Eager mode only: nothing is run.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"

local program = arg[-1]

local function run(words)
  local pipe = assert(io.popen(("'%s' check %s 2>&1"):format(program, words), "r"))
  local text = pipe:read "a"
  local _, _, code = pipe:close()
  return text, code
end

local function write(text, ending)
  local path = os.tmpname()
  os.remove(path)
  path = path .. (ending or ".lua")
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
  return path
end

-- What is said of a text, with the file's name left out.
local function said(text, ending)
  local path = write(text, ending)
  local found, code = run(path)
  os.remove(path)
  return (found:gsub(path:gsub("%p", "%%%0"), "FILE")), code
end

local HEAD = 'local ms = require "lunaria" local nn, ops = ms.nn, ms.ops local x = ms.ones { 2, 3 } print(nn, ops, x)\n'

-- { text, what is said of its first line }
local mistakes = {
  { "print(ops.relu(x)", "FILE:3: ')' expected (to close '(' at line 2) near <eof>" },
  { "print(learn_rtae)", "FILE:2: the global 'learn_rtae' has no value (" },
  { "local learn_rate = 3 print(learn_rtae, learn_rate)", "FILE:2: the global 'learn_rtae' has no value (did you mean 'learn_rate'?)" },
  { "torch.cat({ x, x })", "FILE:2: the global 'torch' has no value (torch.cat: ms.ops.concat({a, b}, axis), also called cat)" },
  { "print(ms.flaot16)", "FILE:2: ms: there is no name 'flaot16' (did you mean 'float16'?)" },
  { "print(nn.Dnese(2, 3))", "FILE:2: ms.nn: there is no layer 'Dnese' (did you mean 'Dense'?)" },
  { "local relu = ms.ops.rleu print(relu(x))", "FILE:2: ms.ops: there is no operator 'rleu' (did you mean 'relu'?)" },
  { "print(math.flooor(2.5))", "FILE:2: math has no field 'flooor' (did you mean 'floor'?)" },
  { "print(nn.Dense(2, 3, { has_biass = false }))", "FILE:2: Dense: there is no argument 'has_biass'; there are: in_channels," },
  { "print(ops.softmax(x, { axes = 1 }))", "FILE:2: softmax: there is no argument 'axes'; there are: input, axis" },
  { "print(nn.Dense(2))", "FILE:2: Dense: missing argument 2: out_channels is expected (the signature is Dense(in_channels," },
  { "print(nn.ReLU(1, 2, 3))", "FILE:2: ReLU: takes at most 0 arguments, got 3" },
  { "if x:sum() == 0 then print(1) end", "FILE:2: == between a tensor and a number is always false in Lua (ops.equal(x:sum(), 0)" },
  { "if ops.less(x, 1) then print(1) end", "FILE:2: a tensor counts as true in a condition, whatever it holds (" },
  { "print(x.sum(0))", "FILE:2: " },
  { "print(x:reshpe(3, 2))", "FILE:2: tensor: a tensor has no field or method 'reshpe' (did you mean 'reshape'?)" },
  { "print(ms:ones { 2 })", "FILE:2: ones is a function of a module, and was called with a colon (it is called with a dot: ms.ones(...))" },
  { "local net = nn.Dense(2, 3) print(net:set_tran())", "FILE:2: a Dense has no method 'set_tran' (did you mean 'set_train'?)" },
  { "local net = nn.Dense(2, 3) net.set_train(true)", "FILE:2: set_train: is a method, and was called without its object (" },
  { "local function f() total = 0 return total end print(f())",
    "FILE:2: total becomes a global variable, and is given a value in functions only (write local total where it is first given a value)" },
  { "function helper() end return { helper = helper }",
    "FILE:2: helper becomes a global variable of every program that requires this file (write local function helper)" },
  { "print(True)", "FILE:2: True is a variable here, and has no value (Lua's word is true)" },
}

for _, row in ipairs(mistakes) do
  t.test("a mistake is told: " .. row[1], function()
    local text, code = said(HEAD .. row[1] .. "\n")
    assert(text:sub(1, #row[2]) == row[2], ("%s\nis said, not\n%s"):format(text, row[2]))
    t.equal(code, 1)
  end)
end

t.test("nothing is said of what is right", function()
  local text, code = said(HEAD .. [[
local Net = nn.Cell:extend("Net")
function Net:init(width) self.fc = nn.Dense(width, 2, { bias = false }) self.scale = 2 end
function Net:construct(a, b) return self.fc(a) * self.scale + (b or 0) end
local net = Net(3)
net.anything = function(self) return self.scale end
print(net(x), net:anything(), net:set_train(true), net.fc.weight)
counter = 0
local function count() counter = counter + 1 return counter end
print(count(), unpack or table.unpack, string.format("%d", 3), ms.train.Model(net, nn.MSELoss(), nn.Adam(net:trainable_params(), 1e-3)))
string.trim = function(s) return (s:gsub("%s", "")) end
print(string.trim " a ", arg[0], help, ops.softmax(x, { axis = 1 }), nn.Conv2d(3, 4, 5, { pad_mode = "pad", padding = 2 }))
if settings == nil then settings = {} end
local options = { axis = 1 }
print(ops.softmax(x, options), x["0, 1:"], x.T, x:at(":", -1), settings.depth)
for key, value in pairs(ms.nn) do print(key, value) end
print(select(2, pcall(nn.Dense)), _VERSION, ms.nn.Dense(table.unpack { 2, 3 }))
]])
  t.equal({ text, code }, { "", 0 })
end)

t.test("notebooks have cells with commands, and globals that earlier ones gave", function()
  local json = require "lunaria".json
  local function notebook(...)
    local cells = {}
    for i, text in ipairs { ... } do
      cells[i] = { cell_type = "code", source = text, metadata = { tags = text:find "meant" and { "raises-exception" } or json.array {} },
        outputs = json.array {} }
    end
    return json.encode { cells = cells, metadata = {}, nbformat = 4, nbformat_minor = 5 }
  end
  t.equal({ said(notebook("nn, ops = ms.nn, ms.ops\nx = ops.ones { 2 }", "%timeit -n 3 ops.relu(x)", "!ls", "files = !ls\n#files",
    "ops.relu(y)  -- meant", "x:sum()\nprint(_, In, Out, help)", "%%html\n<b>", "?ops", "local a = 1\na + 1", "%mode graph\nx + 1"),
    ".ipynb") }, { "", 0 })
  t.equal({ said(notebook("x = ms.ones { 2 }", "\nprint(xx)", "x == 0", "%time yy"), ".ipynb") }, { table.concat({
    "FILE[2]:2: the global 'xx' has no value (did you mean 'x'?)",
    "FILE[3]:1: == between a tensor and a number is always false in Lua (ops.equal(x, 0) compares the elements, "
      .. "x:item() == 0 the only one)",
    "FILE[4]:1: the global 'yy' has no value (no value was given to yy before this line: is it misspelt, or defined "
      .. "further down?)\n",
  }, "\n"), 1 })
end)

t.test("nothing is said of the lessons, the zoo and the examples of the tests", function()
  local text, code = run "notebooks/*.ipynb notebooks/*.lua notebooks/zoo/*.lua tests/lua/programs/*.lua"
  t.equal({ text, code }, { "", 0 })
end)

t.test("the scripts and notebooks of a folder are looked at", function()
  local folder = os.tmpname()
  os.remove(folder)
  os.execute(("mkdir -p %s/inner %s/.hidden %s-empty"):format(folder, folder, folder))
  local wrong = "print(learn_rtae)\n"
  for name, text in pairs { ["inner/a.lua"] = wrong, ["b.lua"] = "print(3)\n", [".hidden/c.lua"] = wrong, ["d.txt"] = "(" } do
    local file <close> = assert(io.open(folder .. "/" .. name, "w"))
    file:write(text)
  end
  local found, code = run(folder)
  local none, code_of_none = run(folder .. "-empty")
  os.execute(("rm -r %s %s-empty"):format(folder, folder))
  local _, count = found:gsub("\n", "")
  assert(found:find("/inner/a.lua:1: the global 'learn_rtae' has no value", 1, true) and count == 1 and code == 1, found)
  assert(none:find("has no script (.lua) and no notebook (.ipynb)", 1, true) and code_of_none == 1, none)
end)

t.test("words that are no files are errors", function()
  for words, wanted in pairs { [""] = "a file is expected", ["/nowhere.lua"] = "/nowhere.lua cannot be read" } do
    local text, code = run(words)
    assert(text:find(wanted, 1, true) and code == 1, text)
  end
  assert(run "--help":find("usage: lunaria check FILE", 1, true))
end)

t.finish()
