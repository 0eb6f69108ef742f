-- Random functions of loops whose number of turns differs from call to call: numbers and tensors that are carried,
-- branches, breaks, loops within loops, tables and functions of a turn, effects now and then. Compiled and plain calls
-- must give the same, errors included.
-- lunaria tests/lua/jit_random_loops_test.lua [SEED [COUNT [ONLY]]]
-- A quarter of the functions a day (support/today.lua).
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local today = require "support.today"
local seed, count, only = tonumber(arg[1]) or 1, tonumber(arg[2]) or 250, tonumber(arg[3])
local CALLS = 24

local random = math.random
local function pick(list) return list[random(#list)] end

local function number() return pick { "i", "s", "u", "n", "2", "0.5", "#q", "x.shape[1]", "i % 3", "S.k" } end
local function tensor() return pick { "a", "b", "x", "a * 0.5", "b + x", "ops.tanh(a)", "x * u", "half(b)", "S.w" } end
local function condition()
  return pick { "i %% 2 == 0", "s %% 3 < 1", "i > n - 3", "a:sum():item() > 1", "b:mean() > 0.2", "u < %s", "found", "not found", "flag",
    "S.k > i" }:format(number()):gsub("%%%%", "%%")
end

local statement
local function block(depth)
  local lines = {}
  for k = 1, random(1, 3) do lines[k] = statement(depth) end
  return table.concat(lines, "\n")
end

local names = 0
local function turns(depth)
  names = names + 1
  local i = "j" .. names
  local body = block(depth - 1)
  local form = pick {
    "for I = 1, n % 4 + 1 do\nBODY\nend", "for I = n % 5, 0, -2 do\nBODY\nend", "for I = 1, 3 do\nBODY\nend",
    "do local I = 0 while I < n % 6 do\nBODY\nI = I + 1 end end", "for I = 0.5, u % 3 do\nBODY\nend"
  }
  return (form:gsub("I", i):gsub("BODY", function() return body end))
end

local simple = {
  function() return ("a = ops.tanh(%s) + %s"):format(tensor(), number()) end,
  function() return ("b = %s * 0.25 - %s"):format(tensor(), tensor()) end,
  function() return "a, b = b, a" end,
  function() return ("s = s %s %s"):format(pick { "+", "-", "*", "~" }, pick { "i", "1", "n", "3" }) end,
  function() return ("u = u * 0.5 + %s"):format(number()) end,
  function() return "s, u = s + 1, u + a:sum():item() * 0.01" end,
  function() return ("if %s then found = %s end"):format(condition(), pick { "i", "a", "'late'", "true" }) end,
  function() return "flag = not flag" end,
  function() return ("if %s then break end"):format(condition()) end,
  function() return ("local t = { %s, k = %s } a = a + t.k"):format(tensor(), number()) end,
  function() return ("local function g(v) return v * %s end b = g(b)"):format(number()) end,
  function() return "q[#q % 5 + 1] = i" end,
  function() return "S.k = S.k + 1" end,
  function() return "S.w = a * 0.1" end,
  function() return "local ok, e = pcall(error, i) s = s + (ok and 0 or e // 1 | 0)" end,
  function() return "a = ops.reshape(a, { a.shape[1], 1 }):reshape(-1)" end,
  function() return "a = ops.where(a > b, a, b * 0.5)" end,
  function() return "if i == 13 then a = ops.matmul(a, ops.ones { 7, 7 }) end" end,
  function() return "if n == 11 and i == 4 then error('stop at ' .. i) end" end,
}

function statement(depth)
  local which = random(12)
  if depth > 0 and which == 1 then return turns(depth) end
  if depth > 0 and which <= 4 then
    return ("if %s then\n%s\nelse\n%s\nend"):format(condition(), block(depth - 1), block(depth - 1))
  end
  -- What only some loops do: most have none of it, so that they are recorded once.
  return simple[which <= 10 and random(7) or random(#simple)]()
end

local function make()
  local head = pick { "for i = 1, n do", "local i = 0 while i < n do i = i + 1", "for i = n, 1, -1 do", "local i = 0 repeat i = i + 1" }
  local tail = head:find "repeat" and "until i >= n" or "end"
  return ([[
local ms, S = ...
local ops = ms.ops
local function half(v) return v * S.half end
return function(x, n)
local a, b, s, u, found, flag, q = x * 1, x + 1, 0, 1.5, nil, false, { 1, 2 }
%s
%s
%s
return a, b, s, u, found, flag, #q, q[1], S.k
end]]):format(head, block(2), tail)
end

local function text_of(v)
  if ms.is_tensor(v) then
    local parts = {}
    for i, e in ipairs(v:reshape(-1):tolist()) do parts[i] = ("%.4g"):format(e) end
    return ("%s(%s) %s"):format(v.dtype, table.concat(v.shape, " "), table.concat(parts, " "))
  end
  if math.type(v) == "float" then return ("%.5g f"):format(v) end
  return type(v) == "string" and v:match "^[^\n]*" or tostring(v)
end

local function near(a, b)
  if a == b then return true end
  local words = b:gmatch "[^%s,()]+"
  for word in a:gmatch "[^%s,()]+" do
    local other = words()
    if word ~= other then
      local p, q = tonumber(word), tonumber(other or "")
      if not p or not q or math.abs(p - q) > 2e-3 * math.max(1, math.abs(p)) then return false end
    end
  end
  return words() == nil
end

local function outcomes(source, compile)
  local S = { k = 1, half = 0.5, w = ms.ops.ones { 3 } }
  local chunk = assert(load(source, "=loops"))
  local f = chunk(ms, S)
  local g = compile and ms.jit(f) or f
  local list = {}
  for call = 1, CALLS do
    local n = (call * 7 + seed) % 17 + (call % 11 == 0 and 30 or 0)
    local x = (ms.ops.arange(0, call % 7 == 0 and 4 or 3) - 1.0) * (0.2 + 0.01 * call)
    if S.w.shape[1] ~= x.shape[1] then S.w = x * 0.5 end
    local results = table.pack(pcall(g, x, n))
    for i = 1, results.n do results[i] = text_of(results[i]) end
    list[call] = table.concat(results, ", ")
  end
  if compile then g:ir() end -- which raises an error where the record is no sound graph
  return list, compile and ms.jit_report(g)
end

local passed, failed, loops = 0, 0, 0
local done = 0
for index in today.numbers(only or 1, only or count, only and 1 or 4) do
  done = done + 1
  math.randomseed(seed, index)
  local source = make()
  local expected, found, report
  if load(source) then
    expected = outcomes(source, false)
    found, report = outcomes(source, true)
    loops = loops + (report.kinds.again and 1 or 0)
    local wrong
    for call = 1, CALLS do wrong = wrong or (not near(expected[call], found[call]) and call) end
    if wrong then
      failed = failed + 1
      print(("FAIL seed %d, function %d, call %d:\n  plainly  %s\n  compiled %s"):format(seed, index, wrong, expected[wrong], found[wrong]))
      if failed <= 2 then print(source) end
    else
      passed = passed + 1
    end
  else
    failed = failed + 1
    print(("FAIL seed %d, function %d is no program: %s\n%s"):format(seed, index, select(2, load(source)), source))
  end
end
print(("%d of them have recorded loops"):format(loops))
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and loops > done / 10 and 0 or 1, true)
