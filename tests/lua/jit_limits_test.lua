-- The memory of compiled functions has bounds; beyond them single calls are left to Lua, no function for good.
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local t = require "harness"
local equal, test = t.equal, t.test
local function vector(...) return ms.tensor { ... } + 0.0 end

test("too many cases leave no function to Lua for good, and recording them costs a part of the calls", function()
  local f = ms.jit(function(x, word) return x + #word end)
  for i = 1, 2000 do equal(f(vector(1), ("a"):rep(i)), vector(1 + i)) end
  local report = ms.jit_report(f)
  equal(report.eager, nil)
  assert(report.interpreted_calls > 1700, tostring(report))
  for _ = 1, 20 do equal(f(vector(1), "again"), vector(6)) end
  assert(ms.jit_report(f).compiled_calls > report.compiled_calls, tostring(ms.jit_report(f)))
end)

test("what one call does and cannot be compiled leaves the others compiled", function()
  local function body(x, how)
    local y = x * 2
    if how == "stack" then return y + debug.getinfo(1, "l").currentline * 0 end
    return y + 1
  end
  local f = ms.jit(body)
  for i = 1, 40 do equal(f(vector(i), i % 4 == 0 and "stack" or "plain"), vector(2 * i + (i % 4 == 0 and 0 or 1))) end
  local report = ms.jit_report(f)
  equal(report.eager, nil)
  assert(report.refused:find("debug.getinfo", 1, true), tostring(report))
  equal(report.compiled_calls, 29)
  assert(tostring(report):find("some calls are left to Lua", 1, true))
end)

test("an effect before what cannot be compiled happens once", function()
  local log = {}
  local f = ms.jit(function(x, how)
    log[#log + 1] = how
    if how == "stack" then return debug.getinfo(1, "l") and x end
    return x * 3
  end)
  for i = 1, 30 do
    local how = i % 3 == 0 and "stack" or "plain"
    equal(f(vector(i), how), vector(i % 3 == 0 and i or 3 * i))
    equal(#log, i)
    equal(log[i], how)
  end
  assert(ms.jit_report(f).compiled_calls >= 18, tostring(ms.jit_report(f)))
end)

test("calls that are given up behind an effect again and again are left to Lua", function()
  local count = 0
  local f = ms.jit(function(x)
    count = count + 1
    local y = x * 2
    if y:sum():item() > 100 then return y end
    local keyed = { [y] = x }
    return keyed[y]
  end)
  for _ = 1, 4 do equal(f(vector(100)), vector(200)) end
  for i = 1, 400 do
    equal(f(vector(i / 1000)), vector(i / 1000))
    equal(count, 4 + i)
  end
  local report = ms.jit_report(f)
  assert(report.resumed_calls < 20 and report.interpreted_calls > 380, tostring(report))
  for _ = 1, 2000 do f(vector(100)) end
  assert(ms.jit_report(f).compiled_calls > report.compiled_calls + 1000, tostring(ms.jit_report(f)))
end)

t.finish()
