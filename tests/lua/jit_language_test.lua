-- Lua's statements, expressions and libraries in compiled functions: each snippet is a function of a tensor x and a number n
-- that is called several times, plain and compiled; results, what is printed and errors must be the same.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"

local language = require "language_snippets"
local snippets, outcome = language.snippets, language.outcome

local names = {}
for name in pairs(snippets) do names[#names + 1] = name end
table.sort(names)
local recorded = 0

for k, name in ipairs(names) do
  t.test(name, function()
    local eager, compiled = language.build(snippets[name]), ms.jit(language.build(snippets[name]))
    ms.set_seed(1)
    local expected, list = {}, { 1, 2, 2, 3, 1, 3 }
    local x = ms.tensor({ 1.0, 2.0, 0.5 })
    for i, n in ipairs(list) do expected[i] = outcome(eager, x * n, n) end
    ms.set_seed(1)
    for i, n in ipairs(list) do t.equal(outcome(compiled, x * n, n), expected[i]) end
    local report = ms.jit_report(compiled)
    if not report.eager then recorded = recorded + 1 end
    -- Wherever a record ends, Lua goes on from there.
    local short = ms.jit(language.build(snippets[name]), { max_steps = 2 + k * 7 % 59 })
    ms.set_seed(1)
    for i, n in ipairs(list) do t.equal(outcome(short, x * n, n), expected[i]) end
    if os.getenv "LUNARIA_JIT_REPORT" then print(name, report.eager or (report.compiled_calls .. " compiled")) end
  end)
end

t.test("every function of the libraries is in a snippet", function()
  local all, missing = {}, {}
  for _, code in pairs(snippets) do all[#all + 1] = code end
  all = table.concat(all, "\n")
  for _, library in ipairs { "string", "table", "math", "utf8", "coroutine", "os", "io", "_G" } do
    for name, f in pairs(_G[library]) do
      local spelled = library == "_G" and "%f[%w]" .. name .. "%f[%W]" or library .. "%." .. name .. "%f[%W]"
      local ours = name == "breakpoint" or name == "help"
      if type(f) == "function" and not ours and not all:find(spelled) and not all:find(":" .. name .. "%f[%W]") then
        missing[#missing + 1] = library .. "." .. name
      end
    end
  end
  t.equal(missing, {})
end)

t.test("most of them are compiled", function()
  if recorded < #names * 0.75 then error(("only %d of %d were recorded"):format(recorded, #names)) end
end)

t.finish()
