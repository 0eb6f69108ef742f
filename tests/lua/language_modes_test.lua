-- Programs of the whole language in every way that the virtual machine runs them: called by a function that is differentiated
-- (whose derivative is another program), the same compiled, compiled alone, and called often in graph mode; results, what is
-- printed, changes of outside state and errors are those of plain Lua. Half of the tests a day.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local language = require "language_snippets"
t.each_day(2)

-- What cannot be the same there, and why.
local different = {
  ["dump refused"] = "a function that the machine made is no Lua function",
  ["debug"] = "the machine's program has no place on Lua's stack",
  ["debug.getinfo"] = "the same",
  ["tensor in place"] = "mul_ and its like have no derivative",
  ["coroutine state kept"] = "a coroutine of one differentiation goes on in another",
}

local function differentiated(f)
  return function(x, n)
    local results
    ms.value_and_grad(function(v)
      results = table.pack(f(v, n))
      return (v * v):sum()
    end)(x)
    return table.unpack(results, 1, results.n)
  end
end

local ways = {
  compiled = ms.jit,
  differentiated = differentiated,
  ["differentiated and compiled"] = function(f) return ms.jit(differentiated(f)) end,
  -- Often enough that graph mode takes it up by itself.
  ["called often"] = function(f) return f end,
}
local CALLS = 6

local function check(name, code, kinds)
  for _, way in ipairs(kinds) do
    t.test(name .. ", " .. way, function()
      local plain, other = language.build(code), ways[way](language.build(code))
      local x, expected = ms.tensor { 1.0, 2.0, 3.0 }, {}
      ms.set_seed(1)
      for i = 1, CALLS do expected[i] = language.outcome(plain, x * i, i % 2 + 1) end
      ms.set_seed(1)
      local mode, found = ms.get_context("mode"), {}
      if way == "called often" then ms.set_context { mode = ms.GRAPH_MODE } end
      for i = 1, CALLS do found[i] = language.outcome(other, x * i, i % 2 + 1) end
      ms.set_context { mode = mode }
      t.equal(found, expected, 2e-7)
    end)
  end
end

local function sorted(list)
  local names = {}
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  return names
end

for _, name in ipairs(sorted(language.more)) do
  check(name, language.more[name], different[name] and { "compiled", "called often" }
    or { "compiled", "called often", "differentiated", "differentiated and compiled" })
end
for _, name in ipairs(sorted(language.snippets)) do
  check(name, language.snippets[name], different[name] and { "called often" } or { "called often", "differentiated" })
end
t.finish()
