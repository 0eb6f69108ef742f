-- Tables whose names lie in many files: a program loads what it uses, and whatever goes through the names finds all.
-- Eager mode only: nothing here is called often enough to be compiled.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local today = require "support.today"

local function loaded()
  local names = {}
  for name in pairs(package.loaded) do
    if name:find "^lunaria%." then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- What graph mode has loaded already.
require "lunaria.graph"
local before = {}
for _, name in ipairs(loaded()) do before[name] = true end

local function loaded_since()
  local list = {}
  for _, name in ipairs(loaded()) do
    if not before[name] then list[#list + 1] = name end
  end
  return list
end

-- This is the first test: what others load would be there already.
t.test("one dense layer loads the files that it is made of and no others", function()
  ms.nn.Dense(3, 4)
  t.equal(loaded_since(), { "lunaria.common.initializer", "lunaria.nn", "lunaria.nn.activation",
    "lunaria.nn.basic", "lunaria.nn.cell", "lunaria.nn.naming", "lunaria.nn.own_derivative", "lunaria.parts", "lunaria.set_parts" })
end)
t.test("a name that is nearly one of a file that is not loaded is known", function()
  t.fails("did you mean 'MultiheadAttention'?", function() return ms.nn.MultiheadAtention end)
  t.equal(package.loaded["lunaria.nn.transformer"], nil)
end)
t.test("ms.mint.optim has all optimizers whatever was used before", function()
  assert(ms.mint.optim.NAdam and ms.mint.optim.Adam)
end)
t.test("a layer that is used first where it is differentiated or compiled is loaded there", function()
  local function f(x) return (ms.nn.PReLU(1, 0.5)(x) * ms.nn.Tanhshrink()(x)):sum() end
  local expected = ms.grad(f)(ms.tensor { -1.0, 2.0 })
  t.equal(ms.grad(f)(ms.tensor { -1.0, 2.0 }), expected)
  local g = ms.jit(function(x) return ms.nn.PixelShuffle(2)(x):sum() end)
  for _ = 1, 3 do t.equal(g(ms.ones { 1, 4, 2, 2 }):item(), 16.0) end
end)
t.test("a file gives the names that are listed for it, and no others", function()
  local rows, parts = {}, package.loaded["lunaria.parts"]
  package.loaded["lunaria.parts"] = function(_, _, list)
    for _, row in ipairs(list) do rows[#rows + 1] = row end
  end
  for _, name in ipairs { "lunaria.nn", "lunaria.train" } do
    local module = package.loaded[name]
    package.loaded[name] = nil
    require(name)
    package.loaded[name] = module
  end
  package.loaded["lunaria.parts"] = parts
  local count = 0
  for _, row in ipairs(rows) do
    local module = require(row[1])
    if row.of then module = module[row.of] end
    local listed, given = {}, {}
    for name in row[2]:gmatch "%S+" do listed[#listed + 1] = name end
    table.sort(listed)
    -- Files that give more than names of the user's have those in a field, and give one name beside it.
    local is_beside = row[1] == "lunaria.nn.cell" or row[2] == "get_activation" or row[2] == "LBFGS"
    for name in pairs(module) do
      if is_beside then given = listed elseif not row.whole then given[#given + 1] = name end
    end
    table.sort(given)
    if not row.whole then t.equal({ row[1], given }, { row[1], listed }) end
    count = count + #listed
  end
  assert(count > 200, count)
end)
t.test("pairs goes through all names", function()
  local names = {}
  for name, value in pairs(ms.nn) do
    assert(value ~= nil)
    names[#names + 1] = name
  end
  assert(#names > 160, #names)
  local n = 0
  for _ in pairs(ms.train) do n = n + 1 end
  assert(n > 35, n)
end)
-- A fifth of the files a day: each is a program of its own.
t.test("every file of the library can be the first that a program requires", function()
  local broken = {}
  local names = { "lunaria.autodiff", "lunaria.jit", "lunaria.data", "lunaria.registry", "lunaria.rendering", "lunaria.frontend" }
  for _, file in ipairs(require "lunaria.registry".files()) do
    -- Commands are loaded by a session.
    local name = file:gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", ".")
    if not name:find "commands$" and not name:find "notebook$" then names[#names + 1] = name end
  end
  for number in today.numbers(1, #names, 5) do
    local name = names[number]
    local use = "print(require(\"lunaria\").grad(function(x) return x * x end)(2.0))"
    local pipe = io.popen(("'%s' -e 'require %q' -e '%s' 2>&1"):format(arg[-1], name, use))
    local said = pipe:read "a"
    pipe:close()
    if said ~= "4.0\n" then broken[#broken + 1] = name .. ": " .. said end
  end
  t.equal(broken, {})
end)
t.test("what Lua calls itself takes no table's place by anything else", function()
  for _, event in ipairs { "__index", "__pairs" } do
    for _, value in ipairs { 1, "x", ms.ones { 1 }, print } do t.fails("table expected", getmetatable(ms.nn)[event], value, "Dense") end
    t.fails("table expected", getmetatable(ms.nn)[event])
  end
end)
t.finish()
