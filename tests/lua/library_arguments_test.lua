-- Every function of the standard library with many lists of arguments, most of them wrong: what it gives or raises, and
-- what it does to tables, is the same in plain Lua, compiled, and in a function that is differentiated. Each is called
-- after an effect, so that graph mode has to go on in the virtual machine, and there both with and without pcall.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"

local lists = {
  {}, { 5 }, { "x" }, { nil, 1 }, { {} }, { { 1, 2, 3 } }, { { 1, 2, 3 }, 5 }, { { 1, 2, 3 }, "x" }, { { 1, 2, 3 }, 1, 2 },
  { { 1, 2, 3 }, 1.5 }, { { 1, 2, 3 }, {} }, { true }, { { 3, 1, 2 }, print, 5 }, { { 3, 1, 2 }, 1, nil },
  { { 1, 2, 3 }, 2, 3, 1 }, { { 1, 2, 3 }, 2, 3, {} }, { "10", 99 }, { "zz", 36 }, { 10, 16 }, { 1, 2, 3 }, { 0 }, { -1 },
  { -5, 1 }, { "#" }, { "#", 1, 2 }, { 2, "a", "b" }, { print }, { print, 5 }, { math.huge }, { math.mininteger }, { 1, 0 },
  { 1.0, 0.0 }, { "5" }, { "5", "3" }, { "abc", "b" }, { "abc", "(", 1 }, { "abc", "%w", "%1%1" }, { "abc", "%w", {} },
  { "abc", "%w", 5 }, { "abc", nil, 3 }, { "%d", 3.5 }, { "%s" }, { "abc", 2, 3 }, { "abc", "x", 2 }, { 1, "abc" },
  { "abc", 0 }, { "abc", 1e100 }, { { 1, 2, 3 }, 1, 1e8 },
}

local names = { "assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "rawequal", "rawget", "rawlen", "rawset",
  "select", "setmetatable", "tonumber", "tostring", "type", "xpcall" }
local left_out = { random = true, randomseed = true, dump = true, atan2 = true }
for _, library in ipairs { "math", "string", "table", "utf8" } do
  for name, f in pairs(_G[library]) do
    if type(f) == "function" and not left_out[name] then names[#names + 1] = library .. "." .. name end
  end
end
table.sort(names)

-- Words that may stand in the message instead of the whole: where no call names the function, Lua looks for any name that it
-- has, and these have two, or an adjoint between.
local known = { ["table.insert"] = "insert'", ["table.remove"] = "remove'", ["table.unpack"] = "too many results",
  ["math.atan"] = "bad argument", ["math.fmod"] = "(zero)", next = "invalid key" }

local function copied(list)
  local all = {}
  for key, value in pairs(list) do
    if type(value) == "table" then value = table.move(value, 1, #value, 1, {}) end
    all[key] = value
  end
  return all
end

local function text(value)
  if type(value) ~= "table" then return (tostring(value):gsub("0x%x+", "0x")) end
  local parts = {}
  for i = 1, value.n or #value do parts[i] = text(value[i]) end
  return "{" .. table.concat(parts, " ") .. "}"
end

-- What comes of f(...) with copies of the arguments, and the arguments afterwards, as text.
local function outcome(f, list, count)
  local given = copied(list)
  local results = table.pack(pcall(f, table.unpack(given, 1, count)))
  local parts = {}
  for i = 1, results.n do parts[i] = text(results[i]) end
  for i = 1, count do parts[#parts + 1] = text(given[i]) end
  return table.concat(parts, " ")
end

local x, w = ms.tensor({ 1, 2, 3 }, ms.int64), ms.tensor { 1.0, 2.0 }

local function compare(name, list)
  local count = 0
  for key in pairs(list) do count = math.max(count, key) end
  if name == "string.rep" and list[2] == 1e100 then return end
  local environment = setmetatable({ log = {}, x = x }, { __index = _G })
  local function make(body) return load("return function(...) " .. body .. " end", "=body", "t", environment)() end
  local caught = make("log.e = x local y = x * 2 local r = table.pack(pcall(" .. name .. ", ...)) "
    .. "return y:sum():item(), r[1], r[2]")
  local raised = make("log.e = x return (" .. name .. "(...))")
  for _, f in ipairs { caught, raised } do
    local plain = outcome(f, list, count)
    local graph = outcome(ms.jit(f), list, count)
    -- As a part of a function of w that is differentiated.
    local derived = outcome(function(...)
      local arguments, results = table.pack(...), nil
      ms.value_and_grad(function(v)
        results = table.pack(f(table.unpack(arguments, 1, arguments.n)))
        return (v * v):sum()
      end)(w)
      return table.unpack(results, 1, results.n)
    end, list, count)
    for kind, got in pairs { graph = graph, gradient = derived } do
      local mild = known[name] and got:find(known[name], 1, true) and plain:find(known[name], 1, true)
      if got ~= plain and not mild then error(("%s: %s\n   plain Lua: %s"):format(kind, got, plain), 0) end
    end
  end
end

for _, name in ipairs(names) do
  for i, list in ipairs(lists) do
    -- Levels above the function lie outside of the program.
    if not (name == "error" and (list[2] == "3" or list[2] == 2)) then
      t.test(("%s with list %d"):format(name, i), function() compare(name, list) end)
    end
  end
end

t.test("item has the type that the tensor has, everywhere", function()
  local integers, flags = ms.tensor({ 7, (1 << 53) + 1 }, ms.int64), ms.tensor({ true, false }, ms.bool)
  local seen
  local function f(v)
    local n = integers[0]:item()
    seen = { math.type(n), n, integers:item(1), flags[0]:item(), flags:item(-1), math.type(v:item(0)) }
    local s = v * 0
    if not flags[1]:item() then s = s + v end
    for k = 1, n // 3 do s = s + v * k end
    return s:sum() * v:item(1)
  end
  f(w)
  local expected = seen
  t.equal(expected, { "integer", 7, (1 << 53) + 1, true, false, "float" })
  t.equal(ms.grad(f)(w):tolist(), { 8.0, 20.0 })
  t.equal(seen, expected)
  for _ = 1, 3 do
    t.equal(ms.jit(f)(w):item(), 24.0)
    t.equal(seen, expected)
  end
end)
t.test("item with wrong indices fails in the same words everywhere", function()
  for _, bad in ipairs { "v:item()", "v:item(2)", "v:item(0, 0)", "v:item('a')", "v:item(0.5)" } do
    local f = load("local v = ... return v:sum() * " .. bad, "=line")
    local _, plain = pcall(f, w)
    local _, gradient = pcall(ms.grad(f), w)
    local _, graph = pcall(ms.jit(f), w)
    t.equal(tostring(gradient), tostring(plain))
    t.equal(tostring(graph), tostring(plain))
  end
end)
t.finish()
