-- Warnings about tensors that are compared with numbers by == and about tensors in conditions: where the text shows them
-- when it is loaded, and where such values meet in functions that the virtual machine runs; nowhere else.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"

local HEAD = [[local ms = require "lunaria" local ops = ms.ops local x = ms.tensor { 1.0, 2.0 } local one = ms.tensor(1.0) ]]

-- What the program says on its standard error when it runs the text: the lines with warnings, and all of it.
local function warnings(text, head)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write((head or HEAD) .. "\n" .. text)
  file:close()
  local pipe = io.popen(("'%s' '%s' 2>&1 >/dev/null"):format(arg[-1], path))
  local said = pipe:read "a"
  pipe:close()
  os.remove(path)
  local lines = {}
  for line in said:gmatch "[^\n]*" do
    if line:find ": warning: " then lines[#lines + 1] = math.tointeger(line:match ":(%d+): warning") end
  end
  return lines, said
end

local always = {
  "if x == 0 then print(x) end",
  "print(x ~= 1.5)",
  "print(0 == one)",
  "local y = x * 2 + 1 print(y[0] == 2)",
  "local zero = 0 print(x:sum() == zero)",
  "local n <const> = 3 print(x['0'] == n)",
  "for i = 0, 1 do if x[i] == 1 then print(i) end end",
  "local tensor = ms.tensor local a = tensor(3) print(a == 3)",
  "local f = function() return one == 1 end print(f())",
  "local s = 0 * one for _ = 1, 3 do s = s + one end print(s == 3)",
  "local loss = ops.mse_loss(x, x) while loss ~= 0 do break end",
  "print((-one) == -1, #x)",
  "print(ms.random.uniform({ 2 }, 0, 1) == 0)",
  "mean = ops.mean(x) print(mean == 1.5)",
  "local mask = x > 1 and one or x * 2 print(x.T == 1)",
  "if x then print(1) end",
  "print(not one)",
  "repeat local m = ops.greater(x, 1) until m",
  "local finite = ms.amp.all_finite { x } if finite then print(x) end",
  "local amp = ms.amp if not amp.all_finite(x) then print(x) end",
}
t.test("what the text shows is said when it is loaded", function()
  for _, text in ipairs(always) do
    -- One comparison of tensors is an error when it runs; only the loading matters here.
    local lines, said = warnings(text .. "\n")
    t.equal({ text, lines, said }, { text, { 2 }, said })
    assert(said:find "\n  hint: ", said)
  end
end)

t.test("words of Python's that have no value are said when they are read", function()
  for _, text in ipairs { "local y = True", "if x:sum():item() > 0 and False then print(1) end", "print(one ~= None)" } do
    local lines, said = warnings(text .. "\n")
    t.equal(lines, { 2 })
    assert(said:find "hint: Lua's word is ", said)
  end
  for _, text in ipairs { "True = true print(True)", "local None = nil print(None)", "local t = { True = 1 } print(t.True)" } do
    t.equal((warnings(text .. "\n")), {})
  end
end)

local never = {
  "print(one:item() == 1, #x == 2, x.ndim == 1, x.shape[1] == 2, x.size == 2)",
  "local y = nil y = y or x if y then print(y) end",
  "local m = x m = 3 print(m == 3)",
  "local function f(p) return p == 1 end print(f(1), f(2))",
  "local function f(p) p = p or x return p ~= 0 end print(f(1))",
  "print(x ~= nil, one == one, ops.equal(x, 1), rawequal(x, 1))",
  "local list = { x } print(list[1] == 1, list.n == 1)",
  "print(ops.size(x) == 2, ms.ops.rank(x) == 1)",
  "local finite = ms.amp.all_finite(x):item() if finite then print(x) end",
  "if ms.amp.get_white_list() then print(x) end",
  "local a, b = ms.value_and_grad(function(v) return v * v end)(2.0) print(a == 4, b == 4)",
  "local print_ = print local ms = { tensor = function() return 1 end } print_(ms.tensor() == 1)",
  "lib = ms do local _ENV = { lib = { ones = function() return 1 end }, print = print } print(lib.ones() == 1) end",
  "local y = x y, z = 1, 2 print(y == 1)",
  "local n = x.shape n = 1 for i = 1, 2 do if i == n then break end end",
}
t.test("what may be a number is left alone", function()
  for _, text in ipairs(never) do
    local lines, said = warnings(text)
    t.equal({ text, lines, said }, { text, {}, said })
  end
end)

t.test("values that meet in differentiated, compiled and mapped functions are noticed, each place once", function()
  for _, call in ipairs { "ms.grad(f)", "ms.jit(f)", "ms.vmap(f)", "ms.grad(ms.grad(f))", "ms.jit(ms.grad(f))" } do
    local text = "local function f(p)\n  if p == 1 then return p * 2 end\n  return p * p\nend\n" ..
      "local g = " .. call .. "\nfor _ = 1, 5 do g(ms.ones { 1 }:sum(ms.vmap and nil)) end"
    if call == "ms.vmap(f)" then text = text:gsub(":sum%b()", "") end
    local lines, said = warnings(text)
    t.equal({ call, lines, said }, { call, { 3 }, said })
  end
  t.equal((warnings("local function f(p) if p == 1 then return p * 2 end return p * p end print(ms.grad(f)(1.0))")), {})
end)

t.test("at the prompt the values of earlier cells are known", function()
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write "w = ms.tensor(1.0)\nw == 1\nw = 5\nw == 5\n"
  file:close()
  local pipe = io.popen(("'%s' -i < '%s' 2>&1"):format(arg[-1], path))
  local said = pipe:read "a"
  pipe:close()
  os.remove(path)
  assert(said:find("In[2]:1: warning: == between a tensor and a number is always false", 1, true), said)
  t.equal(select(2, said:gsub("warning", "")), 1)
  assert(said:find("ops.equal(w, 1) compares", 1, true), said)
end)

t.test("chunks of any depth and length are gone through", function()
  local sum = ("x + "):rep(20000) .. "x"
  assert(load("local ms = require 'lunaria' local x = ms.ones { 1 } return function() return " .. sum .. " == 1 end"))
  local deep = ("("):rep(150) .. "x" .. (")"):rep(150)
  assert(load("local x = 1 return " .. deep .. " == 1"))
  local chain = { "local ms = require 'lunaria' local a0 = ms.ones { 1 }" }
  for i = 1, 150 do chain[#chain + 1] = ("local a%d = a%d * 2"):format(i, i - 1) end
  assert(load(table.concat(chain, "\n") .. "\nreturn a150 == nil"))
end)
t.finish()
