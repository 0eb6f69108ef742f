-- Programs of the whole language in every way that the virtual machine runs them: called by a function that is differentiated
-- (whose derivative is another program), the same compiled, and compiled alone; results, what is printed, changes of
-- outside state and errors are those of plain Lua.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local language = require "language_snippets"

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
}

local function check(name, code, kinds)
  for _, way in ipairs(kinds) do
    t.test(name .. ", " .. way, function()
      local plain, other = language.build(code), ways[way](language.build(code))
      local x, expected = ms.tensor { 1.0, 2.0, 3.0 }, {}
      ms.set_seed(1)
      for i = 1, 4 do expected[i] = language.outcome(plain, x * i, i % 2 + 1) end
      ms.set_seed(1)
      for i = 1, 4 do t.equal(language.outcome(other, x * i, i % 2 + 1), expected[i]) end
    end)
  end
end

for name, code in pairs(language.more) do
  check(name, code, different[name] and { "compiled" }
    or { "compiled", "differentiated", "differentiated and compiled" })
end
for name, code in pairs(language.snippets) do
  if not different[name] then check(name, code, { "differentiated" }) end
end
t.finish()
