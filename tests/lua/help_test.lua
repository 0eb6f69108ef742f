-- help() has something to say about every public function, also about those that are written in C++.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"

-- Known by what print and io.write are before this file puts its own in their place.
require "lunaria.help.index"

-- luacheck: push ignore 122
local function help_of(value)
  local lines, print, write = {}, print, io.write
  local function keep(...)
    for _, text in ipairs { ... } do lines[#lines + 1] = tostring(text) end
  end
  _G.print, io.write = keep, keep
  local ok, message = pcall(ms.help, value)
  _G.print, io.write = print, write
  assert(ok, message)
  return table.concat(lines, "\n")
end

-- luacheck: pop

-- A signature, an empty line and text.
local function check(name, f)
  local text = help_of(f):gsub("\n\nDefined in [^\n]*", "")
  if not text:find("%(.-%)[^\n]*\n\n%s*%S") then error(name .. ": " .. text, 0) end
end

local function all_of(name, library)
  t.test("every function of " .. name, function()
    local missing = {}
    for key, value in pairs(library) do
      if type(value) == "function" then
        local ok = pcall(check, key, value)
        if not ok then missing[#missing + 1] = key end
      end
    end
    table.sort(missing)
    t.equal(missing, {})
  end)
end

all_of("ms", ms)
all_of("ms.json", ms.json)
all_of("ms.random", ms.random)
all_of("ms.plot", ms.plot)
for _, name in ipairs { "coroutine", "math", "string", "table", "utf8", "os", "io", "debug" } do all_of(name, _G[name]) end

t.test("global functions", function()
  for name, value in pairs(_G) do
    if type(value) == "function" and name ~= "breakpoint" and name ~= "display" and name ~= "help" then check(name, value) end
  end
end)
t.test("methods of tensors", function()
  local x = ms.ones { 2 }
  for name in pairs(require "lunaria.help.descriptions") do
    if name:find "^x:" then check(name, x[name:sub(3)]) end
  end
  t.equal(help_of(x.item):match("^[^\n]*"), "x:item(...)")
end)
t.test("a function is called what its first name is, and no place is given", function()
  local text = help_of(ms.save)
  t.equal(text:match("^[^\n]*"), "ms.save(path, values)")
  assert(not text:find "Defined in", text)
end)
t.test("functions of the user and operators are not concerned", function()
  local function f(a, b) return a + b end
  assert(help_of(f):find("function(a, b)", 1, true), help_of(f))
  assert(help_of(ms.ops.topk):find("topk(", 1, true))
end)

local entries = require "lunaria.help.entries"
local searching = require "lunaria.help.search"
local types = require "lunaria.help.types"
_G.display, _G.help = _G.display or ms.display, _G.help or ms.help
_G.ms = ms

-- Kinds of names that are no values: what is typed at a prompt or in a shell.
local typed = { command = true, option = true, ["environment variable"] = true, ["debugger command"] = true, guide = true }

t.test("every entry of the index says what it is, and where it is written", function()
  local missing = {}
  for _, entry in ipairs(entries.all()) do
    if not entry.doc:find "%S" or not entry.source or entry.head == "" then missing[#missing + 1] = entry.name end
  end
  t.equal(missing, {})
  assert(#entries.all() > 1000, #entries.all())
end)
t.test("every parameter of a public name has a type and a whole meaning", function()
  local wrong, count = {}, 0
  for _, entry in ipairs(entries.all()) do
    for _, p in ipairs(entry.parameters) do
      count = count + 1
      local fault = types.fault(p)
      if fault then wrong[#wrong + 1] = ("%s: %s: %s"):format(entry.name, p.name, fault) end
    end
  end
  t.equal(wrong, {})
  assert(count > 5000, count)
end)
-- The type of a default, as it is written, is one of the parameter's.
t.test("defaults are of the types of their parameters", function()
  local wrong = {}
  for _, entry in ipairs(entries.all()) do
    for _, p in ipairs(entry.kind ~= "operator" and entry.parameters or {}) do
      local value = p.default and (load("return " .. p.default, "=default", "t", {}) or print)()
      local kind = math.type(value) or type(value)
      local fits = value == nil or kind == "integer" and p.type:find "number" or kind == "float" and p.type:find "number"
        or p.type:find(kind, 1, true) or p.type:find "any value" or p.type:find '"' and kind == "string" or p.type:find "constant"
        or p.type:find "dtype" and kind == "string" or p.type:find "initializer" and kind == "string"
      if not fits then wrong[#wrong + 1] = ("%s: %s = %s, which is %s"):format(entry.name, p.name, p.default, p.type) end
    end
  end
  t.equal(wrong, {})
end)
t.test("a meaning that is cut, or of no type, is found", function()
  assert(types.fault { name = "x" } == "no type")
  for _, text in ipairs { "the number of the", "a size (of", "{ a, b", "what it is:", 'the "text', ", and so on", "" } do
    assert(types.fault { name = "x", type = "tensor", text = text }, text)
  end
  assert(types.fault { name = "x", type = "tensor or whatever", text = "the input" })
  t.equal(types.fault { name = "x", type = 'integer, table of integers, "all" or nil', text = "in [0, 1): how many (or all)" }, nil)
end)
t.test("no name is repeated in the list of parameters", function()
  local seen, twice = {}, {}
  for _, file in ipairs { "parameters", "parameters_of", "parameters_of_functions" } do
    for line in io.lines("interpreter/lua/lunaria/help/" .. file .. ".lua") do
      local names = line:match "^([%w_%. ]+) %([^%)]*%)" or line:match "^([%w_%. ]+): "
      for name in (names or ""):gmatch "%S+" do
        if seen[name] then twice[#twice + 1] = name end
        seen[name] = true
      end
    end
  end
  t.equal(twice, {})
end)
t.test("functions that bind their arguments by name show the names and what is taken without them", function()
  local head = entries.of(ms.dataset.Dataset.batch).head
  assert(head:find("batch(batch_size, drop_remainder=false, num_parallel_workers=nil, ", 1, true), head)
  head = entries.of(ms.dataset.Dataset.bucket_batch_by_length).head
  assert(head:find("element_length_function=nil, pad_info=nil, pad_to_bucket_boundary=false, drop_remainder=false)", 1, true), head)
end)
t.test("every entry stands on a page of the reference, operators with their family", function()
  local on_page, missing = {}, {}
  for _, page in ipairs(require("lunaria.help.markdown").pages()) do
    for _, entry in ipairs(page.entries) do on_page[entry] = true end
  end
  for _, entry in ipairs(entries.all()) do
    if not on_page[entry] then missing[#missing + 1] = entry.name end
  end
  t.equal(missing, {})
end)
t.test("everything that is a value has an example", function()
  local missing = {}
  for _, entry in ipairs(entries.all()) do
    if not typed[entry.kind] and entry.kind ~= "lua" and #entry.examples == 0 then missing[#missing + 1] = entry.name end
  end
  t.equal(missing, {})
end)
-- What a line of an example prints and gives, as at the prompt.
local function output_of(code)
  local lines, print = {}, print
  -- luacheck: push ignore 122
  _G.print = function(...)
    local texts = table.pack(...)
    for i = 1, texts.n do texts[i] = tostring(texts[i]) end
    lines[#lines + 1] = table.concat(texts, "\t")
  end
  code = code:gsub("^local ", "")
  local results = table.pack(pcall(load("return " .. code, "=example") or load(code, "=example")))
  _G.print = print
  -- luacheck: pop
  if not results[1] or (results.n > 1 and results[2] ~= nil) then
    local texts = {}
    for i = 2, results.n do texts[#texts + 1] = tostring(results[i]) end
    lines[#lines + 1] = table.concat(texts, "\t")
  end
  return table.concat(lines, "\n")
end

t.test("examples of classes and of what C++ and rows of tables make are true", function()
  local wrong, count = {}, 0
  local own_names = require "support.own_names"
  local function check_rows(name, rows, all)
    for _, row in ipairs(rows) do
      local code, wanted = own_names(row[1]), own_names(row[2] or "")
      local got = (all or row[2]) and output_of(code) or (not code:find "images" and output_of(code) and "") or ""
      count = count + 1
      -- Texts have no blanks before the lines of a result.
      if got:gsub("\n +", "\n") ~= wanted:gsub("\n +", "\n") then wrong[#wrong + 1] = ("%s: %s gives %s"):format(name, row[1], got) end
    end
  end
  local described = require "lunaria.help.descriptions"
  for name in pairs(described) do
    if not entries.names()[name] then wrong[#wrong + 1] = name .. " does not exist" end
  end
  -- Those of functions in the library's files are checked by doc_examples_test.
  for _, entry in ipairs(entries.all()) do
    local row = described[entry.name] or type(entry.value) == "function" and require("lunaria.numpy.rows").of[entry.value]
    if entry.kind == "class" or entry.kind == "object" or row then check_rows(entry.name, entry.examples, row) end
  end
  t.equal(wrong, {})
  assert(count > 300, count)
end)

-- Whatever can be reached from ms by fields, and the methods of the objects that it gives, is in the index. Names that
-- begin with _ and what is an operator under another name are not counted.
t.test("no public name is missing in the index", function()
  local missing, seen = {}, {}
  local function is_known(name, value)
    return entries.names()[name] or entries.of(value) or require "lunaria.registry".entry(value)
  end
  local function walk(name, value, depth)
    if type(value) ~= "table" or seen[value] or depth > 3 then return end
    seen[value] = true
    for key, item in pairs(value) do
      local full = name .. "." .. tostring(key)
      if type(key) == "string" and key:match "^%a" and not rawget(value, "_is_class") and not rawget(value, "_signature")
        and not (package.loaded["lunaria." .. key] == item and not entries.names()[full]) then
        if (type(item) == "function" or type(item) == "table") and not is_known(full, item) then missing[#missing + 1] = full end
        walk(full, item, depth + 1)
      end
    end
  end
  walk("ms", ms, 0)
  for key in pairs(ms.nn) do
    if not entries.names()["ms.nn." .. key] then missing[#missing + 1] = "ms.nn." .. key end
  end
  for key, value in pairs(ms.nn.Cell) do
    local counts = type(value) == "function" and not key:find "^_" and key ~= "init"
    if counts and not entries.of(value) then missing[#missing + 1] = "Cell:" .. key end
  end
  t.equal(missing, {})
end)
t.test("variables of the environment that the program reads are in the index", function()
  local missing = {}
  for line in io.popen("grep -rhoE 'getenv\\(\"[A-Z_0-9]+\"\\)' core jit interpreter backends kernel --include=*.cpp"):lines() do
    local name = line:match '"(.-)"'
    if not entries.names()[name] and name ~= "HOME" and name ~= "TERM" and name ~= "JPY_PARENT_PID" then missing[#missing + 1] = name end
  end
  t.equal(missing, {})
end)
t.test("no function of the library is anonymous", function()
  for _, f in ipairs { ms.jit, ms.grad, ms.vmap, ms.data_sink, ms.op, ms.profile, ms.value_and_grad } do
    local head = help_of(f):match "^[^\n]*"
    assert(not head:find "^function" and head:find "^[%w%._]+%(", head)
  end
end)
t.test("classes, operators and constants are known by their bare names", function()
  t.equal(help_of("Dense"):match "^[%w%.]+", "nn.Dense")
  t.equal(help_of("nn.Dense"):match "^[%w%.]+", "nn.Dense")
  t.equal(help_of("softmax"):match "^[%w%.]+", "softmax")
  assert(help_of("ms.float16"):find("float16", 1, true))
end)
t.test("words find what has them", function()
  assert(help_of("convol"):find "conv2d", help_of("convol"))
  for _, words in ipairs { "cross entropy", "gradient clipping", "batch norm" } do
    t.equal(help_of(words):match "^%S+", searching.find(words, 1)[1].name)
  end
  t.equal(searching.find("cross entropy", 1)[1].name:find "[Cc]ross_?[Ee]ntropy" ~= nil, true)
  t.fails("nothing is known about 'qqqqzz'", ms.help, "qqqqzz")
end)
t.finish()
