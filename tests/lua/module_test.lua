-- The module table: context, random numbers, threads, memory, JSON, and how Lua text is loaded.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local j = ms.json

t.test("the context is set and read, bad settings are refused", function()
  ms.set_context { mode = ms.GRAPH_MODE }
  t.equal(ms.get_context("mode"), ms.GRAPH_MODE)
  ms.set_context { mode = ms.PYNATIVE_MODE, device_target = "CPU" }
  t.equal(ms.get_context("mode"), ms.PYNATIVE_MODE)
  t.equal(ms.get_context("device_target"), "CPU")
  t.fails({ "Quantum", "CPU" }, ms.set_context, { device_target = "Quantum" })
  t.fails({ "modes", "did you mean 'mode'" }, ms.set_context, { modes = 1 })
  t.fails("mode", ms.set_context, { mode = 7 })
  t.fails("colour", ms.get_context, "colour")
end)

t.test("operators are fields of the module, too", function()
  t.equal(ms.ones({ 2, 3 }).shape, { 2, 3 })
end)

t.test("seeds make numbers repeat, states too", function()
  ms.set_seed(3)
  t.equal(ms.get_seed(), 3)
  local a = ms.random.randn(4)
  local state = ms.get_rng_state()
  local b = ms.random.randn(4)
  ms.set_seed(3)
  t.equal(ms.random.randn(4), a)
  ms.set_rng_state(state)
  t.equal(ms.random.randn(4), b)
  t.fails("negative", ms.set_seed, -1)
  t.fails("set_rng_state", ms.set_rng_state, ms.tensor { 1 })
end)

t.test("threads, memory, clock, version", function()
  local before = ms.get_num_threads()
  ms.set_num_threads(1)
  t.equal(ms.get_num_threads(), 1)
  ms.set_num_threads(before)
  t.fails("between", ms.set_num_threads, 0)
  local x = ms.ops.zeros { 1000, 1000 }
  assert(ms.memory_stats().live_bytes >= x.nbytes)
  local start = ms.clock()
  assert(math.type(start) == "integer" and ms.clock() >= start)
  assert(ms.version:match("^%d+%.%d+"))
  assert(ms.is_tensor(x) and not ms.is_tensor(1) and not ms.is_tensor(io.stdout))
end)

t.test("a name that does not exist is an error", function()
  t.fails("ms: there is no name 'no_such_field'", function() return ms.no_such_field end)
  t.fails({ "there is no name 'flaot16'", "did you mean 'float16'?" }, function() return ms.flaot16 end)
  t.equal(rawget(ms, "no_such_field"), nil)
end)

t.test("JSON is written compactly or indented, keys in order", function()
  t.equal(j.encode { 1, 2.0, "a\n\"", true, j.null }, [=[[1,2.0,"a\n\"",true,null]]=])
  t.equal(j.encode { b = 1, a = { x = {} } }, [[{"a":{"x":{}},"b":1}]])
  t.equal(j.encode(j.array {}), "[]")
  t.equal(j.encode({ a = { 1 } }, { indent = 2 }), "{\n  \"a\": [\n    1\n  ]\n}")
  t.equal(j.encode(ms.tensor { { 1, 2 } }), "[[1,2]]")
  t.equal(j.encode(nil), "null")
  t.equal(j.encode(0.1), "0.1")
  t.equal(j.encode(ms.tensor({ 1 }).shape), "[1]")
end)

t.test("JSON is read back as it was", function()
  local value = j.decode('{"a": [1, 2.5, null, {"b": "\\u00e9\\n"}], "c": [], "big": 12345678901234567890}')
  t.equal(value.a[1], 1)
  t.equal(math.type(value.a[1]), "integer")
  t.equal(value.a[3], j.null)
  t.equal(value.a[4].b, "é\n")
  t.equal(j.encode(value.c), "[]")
  t.equal(math.type(value.big), "float")
  t.equal(j.decode(" 7 "), 7)
  t.equal(j.decode("[" .. ("[1],"):rep(1000) .. "2]")[1000][1], 1)
end)

t.test("bad JSON and what JSON cannot say are errors", function()
  t.fails("line 2, column 4", j.decode, "[1,\n 2,,]")
  t.fails("deeper", j.decode, ("["):rep(100000))
  t.fails("unexpected end", j.decode, "")
  t.fails("json", j.decode, "{'a': 1}")
  t.fails("nan", j.encode, { 0 / 0 })
  t.equal(j.encode({ 0 / 0 }, { allow_nan = true }), "[NaN]")
  t.fails("neither an array nor an object", j.encode, { 1, nil, 3, x = 1 })
  t.fails("neither", j.encode, { [1] = 1, [3] = 3 })
  t.fails("UTF-8", j.encode, "\xff")
  t.fails("function", j.encode, print)
  local cycle = {}
  cycle.me = cycle
  t.fails("contain itself", j.encode, cycle)
end)

t.test("syntax errors are ours, with a caret", function()
  local f, message = load("local x = = 1", "=cell")
  assert(not f and message:match("^cell:1: ") and message:find("^", 1, true), message)
end)

t.test("load keeps its meaning", function()
  t.equal(load("return 1 + 1")(), 2)
  t.equal(load("x = 5; return _ENV", "=x", "t", {})().x, 5)
  local pieces, i = { "return ", "4", "2" }, 0
  t.equal(load(function()
    i = i + 1
    return pieces[i]
  end)(), 42)
  t.fails("reader function must return a string", function() return assert(load(function() return {} end)) end)
  t.equal(select("#", load("return ...")(1, nil, 3)), 3)
  local _, message = load("return 1", "=x", "b")
  assert(message:find("attempt to load a text chunk"), message)
end)

t.test("bytecode is refused everywhere", function()
  local code = string.dump(function() return 1 end)
  local f, message = load(code)
  assert(not f and message:find("attempt to load a binary chunk"), message)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(code)
  file:close()
  assert(not loadfile(path))
  t.fails("binary chunk", dofile, path)
  package.path = path .. ";" .. package.path
  t.fails("binary chunk", require, "some_bytecode")
  package.path = package.path:sub(#path + 2)
  os.remove(path)
end)

t.test("files are loaded past a first line for the shell", function()
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write("#!/usr/bin/env lunaria\nreturn debug.getinfo(1, 'l').currentline, ...\n")
  file:close()
  t.equal({ assert(loadfile(path))("a") }, { 2, "a" })
  t.equal(dofile(path), 2)
  os.remove(path)
  t.fails("cannot open", dofile, "/proc/no/such/file.lua")
  assert(not loadfile("/proc/no/such/file.lua"))
end)

t.test("require finds Lua files and names the file of a mistake", function()
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local function write(name, text)
    local file = assert(io.open(folder .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  write("lunaria_test_good.lua", "return { name = ... }")
  write("lunaria_test_bad.lua", "return =")
  package.path = folder .. "/?.lua;" .. package.path
  t.equal(require("lunaria_test_good").name, "lunaria_test_good")
  t.fails({ "error loading module", "lunaria_test_bad.lua:1" }, require, "lunaria_test_bad")
  t.fails({ "not found", "lunaria_test_none" }, require, "lunaria_test_none")
  os.execute("rm -r " .. folder)
end)

t.test("coroutines behave as in stock Lua", function()
  local co = coroutine.create(function(a, b)
    local c = coroutine.yield(a + b)
    return c * 2
  end)
  t.equal({ coroutine.resume(co, 1, 2) }, { true, 3 })
  t.equal({ coroutine.resume(co, 5) }, { true, 10 })
  t.equal({ coroutine.resume(co) }, { false, "cannot resume dead coroutine" })
  local wrapped = coroutine.wrap(function() error({ code = 7 }) end)
  local ok, e = pcall(wrapped)
  assert(not ok and e.code == 7)
  local closed = false
  local failing = coroutine.wrap(function()
    local _ <close> = setmetatable({}, { __close = function() closed = true end })
    error("oops")
  end)
  t.fails("oops", failing)
  assert(closed)
  local function nest(depth) return depth == 0 and 0 or 1 + coroutine.wrap(nest)(depth - 1) end
  t.equal(nest(150), 150)
  t.fails("coroutine expected", coroutine.resume, 1)
end)

t.test("errors cross tensors, coroutines and C functions unharmed", function()
  local marker = {}
  local ok, e = pcall(function()
    ms.tensor(setmetatable({}, { __len = function() return 1 end, __index = function() error(marker) end }))
  end)
  assert(not ok and e == marker)
  local co = coroutine.wrap(function() ms.tensor { "x" } end)
  t.fails("data[1]", co)
end)

t.test("compiled Lua modules can be required", function()
  local found, lfs = pcall(require, "lfs")
  if not found then return end -- lua-filesystem is not installed
  assert(lfs.currentdir())
  local has_json, cjson = pcall(require, "cjson")
  if has_json then
    t.equal(cjson.decode("[1]")[1], 1)
    t.fails("Expected", cjson.decode, "[1,") -- their errors cross their C frames
  end
end)

t.finish()
