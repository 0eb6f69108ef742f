-- Fresh closures of one text that hold other numbers: their answers, and what they share.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

local x = ms.tensor { 1.0, 2.0, 3.0 }

t.test("each closure computes with its own number", function()
  local function make(n) return function(v) return (v * n + 1):sum() end end
  for _, numbers in ipairs { { 1, 2, 3, 4, 5 }, { 0.5, 1.5, 2.5, 2.5, -0.0 }, { 1, 1.5, 2, 1 << 40, 0 / 0 } } do
    for _, n in ipairs(numbers) do
      local plain = make(n)
      local f = ms.jit(plain)
      for _ = 1, 4 do t.equal(f(x), plain(x)) end
      t.equal(f(x:astype(ms.int32)), plain(x:astype(ms.int32)))
    end
  end
end)

t.test("numbers that decide where the program goes, what it reads and how often it turns", function()
  local function make(n, names)
    return function(v)
      local sum = v * 0
      for i = 1, n do sum = sum + v * i end
      if n == 3 then return sum:sum() * 100 end
      return sum:sum() + #names[n % 2 + 1] + n // 2
    end
  end
  for n = 0, 9 do
    local plain = make(n, { "even", "odd" })
    local f = ms.jit(plain)
    for _ = 1, 4 do t.equal(f(x), plain(x)) end
  end
end)

t.test("derivatives, and closures within closures", function()
  local function make(n, m)
    local function inner(v) return v ^ n end
    return function(v) return (inner(v) * m):sum() end
  end
  for i = 1, 12 do
    local plain = make(i % 4 + 1.0, i * 0.5)
    local f, g = ms.jit(plain), ms.jit(ms.grad(plain))
    for _ = 1, 4 do
      t.equal(f(x), plain(x))
      t.equal(g(x), ms.grad(plain)(x))
    end
  end
end)

t.test("a closure that writes its number", function()
  local function make(n)
    return function(v)
      n = n + 1
      return v * n
    end
  end
  for i = 1, 8 do
    local f, plain = ms.jit(make(i)), make(i)
    for _ = 1, 5 do t.equal(f(x), plain(x)) end
  end
end)

t.test("a fresh closure costs its recording and no compilation", function()
  local function seconds(first, step, count)
    local function make(n) return function(v) return (ops.exp(v * n) - n):mean() end end
    for i = 1, 5 do
      local f = ms.jit(make(first + i * step))
      for _ = 1, 3 do f(x) end
    end
    local start = os.clock()
    for i = 1, count do
      local f = ms.jit(make(first + (i + 5) * step))
      for _ = 1, 3 do f(x) end
    end
    return os.clock() - start
  end
  -- A machine that is busy may disturb a turn, but not three.
  local same, other
  for _ = 1, 3 do
    same, other = seconds(2.0, 0.0, 100), seconds(2.0, 0.125, 100)
    if other < 8 * same then return end
  end
  error(("%g s with other numbers, %g s with the same"):format(other, same))
end)
t.finish()
