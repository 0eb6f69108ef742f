-- The work before the first result of a long function takes time in proportion to its length: reading it, its derivative,
-- the layout of its registers, what graph mode records and compiles.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local t = require "harness"
local ms = require "lunaria"
local ops = ms.ops

-- A function of so many statements. Every program has constants of its own, so that nothing is known of it from before.
local serial = 0
local function long_function(statements, loops)
  local lines = { "local ops = ...\nreturn function(x)\n  local y, z = x, x" }
  for i = 1, statements do
    serial = serial + 1
    local form = loops and i % 50 == 0 and "  for _ = 1, 2 do y = y * %.17g + z end"
      or i % 7 == 0 and "  z = ops.tanh(y) * %.17g + z" or "  y = y * %.17g + z"
    lines[#lines + 1] = form:format(0.25 + serial / 2 ^ 24)
  end
  lines[#lines + 1] = "  return ops.sum(y)\nend"
  return assert(load(table.concat(lines, "\n"), "=long"))(ops)
end

-- Time of the processor, the least of several turns, that `work` takes for a new function of so many statements.
local function cost(statements, loops, work)
  local least = math.huge
  for _ = 1, 3 do
    local f = long_function(statements, loops)
    collectgarbage()
    local start = os.clock()
    work(f)
    least = math.min(least, os.clock() - start)
  end
  return least
end

-- Four times as many statements take four times as long; sixteen times as long would be a step that is quadratic. A machine that
-- is busy may disturb a turn, but not three.
local function scales(name, short, loops, work)
  t.test(name, function()
    cost(short, loops, work)
    local once, four_times
    for _ = 1, 3 do
      once, four_times = cost(short, loops, work), cost(4 * short, loops, work)
      if four_times <= 8 * once then return end
    end
    error(("%d statements take %.3f s, %d take %.3f s"):format(short, once, 4 * short, four_times))
  end)
end

local x = ops.ones { 4 }

scales("the first gradient", 800, false, function(f) ms.grad(f)(x) end)
scales("the first gradient of loops", 400, true, function(f) ms.grad(f)(x) end)
scales("the second derivative", 200, false, function(f)
  ms.grad(function(v) return ops.sum(ms.grad(f)(v)) end)(x)
end)
scales("compiling", 200, false, function(f)
  local compiled = ms.jit(f)
  for _ = 1, 4 do compiled(x) end
  assert(ms.jit_report(compiled).compiled_calls > 0)
end)
scales("compiling a gradient", 150, false, function(f)
  local compiled = ms.jit(ms.grad(f))
  for _ = 1, 4 do compiled(x) end
  assert(ms.jit_report(compiled).compiled_calls > 0)
end)

t.finish()
