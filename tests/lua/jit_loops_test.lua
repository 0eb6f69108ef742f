-- Compiled functions with loops whose number of turns differs from call to call: a loop is recorded once, and what it
-- gives is what Lua gives, whatever its body does.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local ops = ms.ops

local function vector(k) return ops.arange(0, 4) * 0.25 + k * 0.1 end
local log = {}
local settings = { factor = 0.5 }
local total = 0
local function half(h) return h * settings.factor end

-- name = { function of a tensor and a number, how many recordings at most (nil: it is not recorded as a loop) }
local functions = {
  ["while"] = { function(x, n) local i, h = 0, x while i < n do h = ops.tanh(h * 0.9 + x) i = i + 1 end return h, i end, 6 },
  ["for"] = { function(x, n) local h = x for _ = 1, n do h = ops.tanh(h * 0.9 + x) end return h end, 6 },
  ["for down"] = { function(x, n) local s = 0 for i = n, 1, -1 do s = s * 3 + i end return x + s % 1000, s end, 6 },
  ["for by two"] = { function(x, n) local h = x for i = 1, n, 2 do h = h * 0.5 + i end return h end, 6 },
  ["for over floats"] = { function(x, n) local h = x for i = 0.5, n do h = h * 0.5 + i end return h end },
  ["repeat"] = { function(x, n) local i, h = 0, x repeat h = h * 0.5 + 1 i = i + 1 until i >= n return h, i end, 6 },
  ["goto"] = { function(x, n)
    local i, h = 0, x
    ::again::
    if i < n then
      h = h * 0.5 + i
      i = i + 1
      goto again
    end
    return h
  end, 6 },
  ["continue"] = { function(x, n)
    local h = x
    for i = 1, n do
      if i % 3 == 0 then goto continue end
      h = h * 0.5 + i
      ::continue::
    end
    return h
  end, 8 },
  ["break"] = { function(x, n)
    local h, last = x, 0
    for i = 1, 1000 do
      if i > n then break end
      h, last = h * 0.5 + 1, i
    end
    return h, last
  end, 6 },
  ["break by a tensor"] = { function(x, n)
    local h, turns = x, 0
    while turns < 60 do
      h = h + 1
      turns = turns + 1
      if h:sum():item() > n * 5 then break end
    end
    return h, turns
  end, 8 },
  ["nested"] = { function(x, n)
    local h, turns = x, 0
    for i = 1, n % 7 do
      for j = 1, n % 5 + i do
        h = h * 0.5 + j
        turns = turns + 1
      end
      h = h - i
    end
    return h, turns
  end, 16 },
  ["one after another"] = { function(x, n)
    local h = x
    for _ = 1, n do h = h * 0.5 + 1 end
    for _ = 1, n // 2 do h = ops.tanh(h) - 1 end
    return h
  end, 12 },
  ["within a function that is called twice"] = { function(x, n)
    local function powers(v, k) local r = v while k > 0 do r = r * 0.5 + v k = k - 1 end return r end
    return powers(x, n) + powers(x * 2, n + 1), powers(x, 3)
  end, 16 },
  ["integers that run over"] = { function(x, n)
    local s = 1
    for i = 1, n do s = s * 6364136223846793005 + i end
    return x, s
  end, 6 },
  ["an integer that becomes a float"] = { function(x, n)
    local s = 1
    for i = 1, n do
      if i == 10 then s = s / 2 else s = s + i end
    end
    return x, s
  end, 12 },
  ["a number that becomes a tensor"] = { function(x, n) local s = 0 for _ = 1, n do s = s + x end return s end, 8 },
  ["two that change places"] = { function(x, n)
    local a, b = x, x * 2
    for _ = 1, n do a, b = b, a + 1 end
    return a, b
  end, 8 },
  ["numbers of tensors"] = { function(x, n)
    local s, h = 0, x
    for _ = 1, n do
      s = s + h:sum():item()
      h = h * 0.5
    end
    return s, h
  end, 6 },
  ["the best of all"] = { function(x, n)
    local best, h = x, x
    for i = 1, n do
      h = h * -0.9 + i % 4
      if h:sum():item() > best:sum():item() then best = h end
    end
    return best, h
  end },
  ["a value that comes late"] = { function(x, n)
    local found
    local h = x
    for i = 1, n do
      h = h + 1
      if i == 7 then found = h end
    end
    return h, found
  end },
  ["a number that is looked up"] = { function(x, n)
    local steps = { 0.5, 0.25, 0.125 }
    local h = x
    for i = 1, n do h = h * steps[i % 3 + 1] + 1 end
    return h
  end, 10 },
  ["what grows"] = { function(x, n) local h = x for _ = 1, n % 6 do h = ops.concat({ h, x }, 0) end return h end },
  ["a list"] = { function(x, n)
    local all = {}
    for i = 1, n % 9 do all[i] = x * i end
    return #all, all[#all]
  end },
  ["a table for each turn"] = { function(x, n)
    local h = x
    for i = 1, n do
      local pair = { h = h * 0.5, i = i }
      h = pair.h + pair.i
    end
    return h
  end, 6 },
  ["a variable that closures share"] = { function(x, n)
    local s = 0
    local function add(k) s = s + k end
    for i = 1, n % 20 do add(i) end
    return x, s
  end },
  ["closures of each turn"] = { function(x, n)
    local h = x
    for i = 1, n do
      local function next_one(v) return v * 0.5 + i end
      h = next_one(h)
    end
    return h
  end, 6 },
  ["closures that outlive a turn"] = { function(x, n)
    local f = function(v) return v end
    for i = 1, n % 9 do
      local inner = f
      f = function(v) return inner(v) + i end
    end
    return f(x)
  end },
  ["a variable outside"] = { function(x, n)
    for i = 1, n % 20 do total = total + i end
    return x, total
  end },
  ["a field outside that is read"] = { function(x, n) local h = x for _ = 1, n do h = half(h) + 1 end return h end, 6 },
  ["a list outside that is written"] = { function(x, n)
    for i = 1, n % 20 do log[i % 4 + 1] = i end
    return x, log[1], log[4]
  end },
  ["an effect before"] = { function(x, n)
    log.calls = (log.calls or 0) + 1
    local h = x
    for _ = 1, n do h = h * 0.5 + 1 end
    return h
  end, 8 },
  ["an effect behind"] = { function(x, n)
    local h = x
    for _ = 1, n do h = h * 0.5 + 1 end
    log[1], log.last = h, n
    return h, log.last
  end, 8 },
  ["errors that are caught"] = { function(x, n)
    local h, caught = x, 0
    for i = 1, n % 20 do
      local ok = pcall(function() if i % 3 == 0 then error { } end end)
      if not ok then caught = caught + 1 end
      h = h + 1
    end
    return h, caught
  end },
  ["a coroutine"] = { function(x, n)
    local next_one = coroutine.wrap(function() for i = 1, 100 do coroutine.yield(i) end end)
    local s = 0
    for _ = 1, n % 20 do s = s + next_one() end
    return x, s
  end },
  ["arguments of any number"] = { function(x, n)
    local function sum(...)
      local s, i = 0, 1
      while i <= n do
        s = s + select("#", ...)
        i = i + 1
      end
      return s
    end
    return x, sum(1, nil, n)
  end, 6 },
  ["booleans"] = { function(x, n)
    local on, h = false, x
    for _ = 1, n do
      on = not on
      if on then h = h * 0.5 else h = h + 1 end
    end
    return h, on
  end },
  ["texts"] = { function(x, n) local s = "" for i = 1, n % 12 do s = s .. i end return x, s end },
  ["results of the turn before the last"] = { function(x, n)
    local before, h = x, x
    for _ = 1, n do before, h = h, h * 0.5 + 1 end
    return before, h
  end, 8 },
  ["an index"] = { function(x, n) local s = 0 for i = 1, n do s = s + x[i % 4] end return s end },
  ["random numbers"] = { function(x, n)
    ms.set_seed(n)
    local h = x
    for _ = 1, n do h = h * 0.5 + ops.rand(4) end
    return h
  end },
}

local function same(a, b)
  if ms.is_tensor(a) then
    t.near(b, a, 1e-5)
    return t.equal(table.concat(b.shape, ","), table.concat(a.shape, ","))
  end
  t.equal(math.type(b), math.type(a))
  if math.type(a) == "float" then return t.near(b, a, 1e-6 * math.max(1, math.abs(a))) end
  t.equal(b, a)
end

local names = {}
for name in pairs(functions) do names[#names + 1] = name end
table.sort(names)
for number, name in ipairs(names) do
  local f, most = table.unpack(functions[name])
  for _, first in ipairs { 0, 1, 2, 5 } do
    t.test(("%s, first %d turns"):format(name, first), function()
      math.randomseed(number)
      local turns = { first }
      for k = 2, 60 do turns[k] = math.random(0, k % 9 == 0 and 150 or 30) end
      local expected = {}
      log, total = {}, 0
      for k, n in ipairs(turns) do expected[k] = table.pack(f(vector(k), n)) end
      local compiled = ms.jit(f)
      log, total = {}, 0
      for k, n in ipairs(turns) do
        local given = table.pack(compiled(vector(k), n))
        t.equal(given.n, expected[k].n)
        for i = 1, given.n do same(expected[k][i], given[i]) end
      end
      local report = ms.jit_report(compiled)
      if most and #report.recordings > most then error("recorded too often: " .. tostring(report)) end
      if most and not report.kinds.again then error("no loop was recorded: " .. tostring(report)) end
      if most and report.interpreted_calls > 0 then error("left to Lua: " .. tostring(report)) end
    end)
  end
end

t.test("a tensor that no turn has changed is returned as itself", function()
  local f = ms.jit(function(x, n)
    local h, i = x, 0
    while i < n do
      if i > 5 then h = h * 0.5 end
      i = i + 1
    end
    return h
  end)
  for _, n in ipairs { 2, 3, 4, 1, 9, 5, 0, 7, 12, 4 } do
    local x = vector(n)
    t.equal(rawequal(f(x, n), x), n <= 6)
  end
end)

t.test("an error within a loop has its line", function()
  local line = debug.getinfo(1, "l").currentline
  local f = ms.jit(function(x, n)
    local i, h = 0, x
    while i < n do
      h = h + 1
      if i == 20 then h = ops.matmul(h, ops.ones { 3, 3 }) end
      i = i + 1
    end
    return h
  end)
  for _, n in ipairs { 3, 5, 8, 12, 30, 7, 31, 9, 22 } do
    if n <= 20 then
      t.near(f(vector(0), n), vector(0) + n, 1e-5)
    else
      t.fails(("jit_loops_test.lua:%d: matmul"):format(line + 5), f, vector(0), n)
    end
  end
end)

t.test("sizes and numbers of turns that differ", function()
  local function body(x, n)
    local h = x
    for _ = 1, n do h = ops.tanh(h * 0.5 + x) end
    return h
  end
  local f = ms.jit(body)
  for k = 1, 40 do
    local x, n = ops.ones { k % 5 + 1, 3 } * k, k * 7 % 23
    t.near(f(x, n), body(x, n), 1e-5)
  end
  assert(#ms.jit_report(f).recordings <= 12, tostring(ms.jit_report(f)))
end)

t.test("most calls with 300 different numbers of turns are compiled", function()
  local f = ms.jit(function(x, n)
    local i, h = 0, x
    while i < n do
      h = ops.tanh(h * 0.9 + x * 0.1)
      i = i + 1
    end
    return h
  end)
  math.randomseed(1)
  for _ = 1, 300 do f(vector(1), math.random(1, 300)) end
  local report = ms.jit_report(f)
  assert(report.compiled_calls >= 290, tostring(report))
end)

t.test("a loop is in the record once", function()
  local f = ms.jit(function(x, n) local h = x for _ = 1, n do h = h * 0.5 - 1 end return h end)
  for _, n in ipairs { 3, 5, 9, 1 } do f(vector(1), n) end
  local text = f:ir()
  t.equal(select(2, text:gsub(" = loop%(", "")), 1)
  t.equal(select(2, text:gsub(" = again%(", "")), 1)
  t.equal(select(2, text:gsub("ops%.mul", "")), 2)
end)

-- What is read from a table in a loop is the table's tensor, also where the call's record is made from its middle on, after an
-- effect.
t.test("tensors that are read in loops and branches stay what they are", function()
  local bodies = {
    function(x, y, n, list) for _ = 1, n do y = list[2] end return x, y end,
    function(x, y, n, list) for _ = 1, n do y = list[2] x = x + 1 end return x, y end,
    function(x, y, n, list) list[3] = 1 for _ = 1, n do y = list[2] end return x, y end,
    function(x, y, n, list) list[3] = 1 if n > 0 then y = list[2] end return x, y end,
  }
  for k, body in ipairs(bodies) do
    local f = ms.jit(body)
    for round, n in ipairs { 3, 3, 5, 4, 1, 2, 6, 3, 7, 0, 9, 0, 0, 1 } do
      local list, own = { vector(1), vector(2) }, vector(3)
      local x, y = f(ops.ones { round % 3 == 0 and 4 or 2 }, own, n, list)
      t.equal(rawequal(y, n > 0 and list[2] or own), true)
      t.equal(x[0]:item(), k == 2 and n + 1 or 1)
      list[2]:add_(1)
      t.equal(y[0]:item(), n > 0 and list[2][0]:item() or own[0]:item())
    end
    assert(ms.jit_report(f).compiled_calls > 0)
  end
end)

t.finish()
