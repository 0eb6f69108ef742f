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
  for name in pairs(require "lunaria.help.tensor") do check(name, x[name]) end
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
t.finish()
