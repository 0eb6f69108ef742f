-- Random scripts (programs/script.lua) run eagerly and in graph mode, where the functions that are called often compile
-- by themselves: what they report must be the same, errors and the state at the end included.
-- lunaria tests/lua/jit_random_scripts_test.lua [SEED [COUNT [ONLY]]]
-- A quarter of the scripts a day (support/today.lua).
-- Eager mode only: what it compares is compiled here as well.
package.path = (arg[0]:match("^(.*/)") or "./") .. "?.lua;" .. package.path
local ms = require "lunaria"
local today = require "support.today"
local Script = require "programs.script"
local seed, count, only = tonumber(arg[1]) or 1, tonumber(arg[2]) or 150, tonumber(arg[3])
-- Loops that functions which call each other make are cut short.
local STEPS = 2000000

local function text_of(value)
  if ms.is_tensor(value) then
    local parts = {}
    for i, v in ipairs(value:reshape({ -1 }):tolist()) do parts[i] = text_of(v) end
    return ("%s(%s) %s"):format(value.dtype, table.concat(value.shape, " "), table.concat(parts, " "))
  end
  if math.type(value) == "float" then return ("%.12g f"):format(value) end
  if type(value) == "table" then return getmetatable(value) and getmetatable(value).__tostring and tostring(value) or "table" end
  if type(value) == "string" then return (value:match("^[^\n]*"):gsub("0x%x+", "address")) end
  return type(value) == "function" and "function" or tostring(value)
end

local known = {}
for key in pairs(_G) do known[key] = true end

-- What the script reports, line by line; nil and the reason when it is no program.
local function reports(source, mode)
  for key in pairs(_G) do
    if not known[key] then _G[key] = nil end
  end
  local lines = {}
  local function out(...)
    local parts = table.pack(...)
    for i = 1, parts.n do parts[i] = text_of(parts[i]) end
    lines[#lines + 1] = table.concat(parts, ", ")
    if #lines > 5000 then error("too much", 0) end
  end
  local chunk, message = load(source, "=script")
  if not chunk then return nil, message end
  ms.set_seed(seed)
  math.randomseed(seed)
  local before = ms.get_context "mode"
  ms.set_context { mode = mode }
  local ran, e = pcall(chunk, ms, out)
  ms.set_context { mode = before }
  lines[#lines + 1] = ran and "end" or "error " .. text_of(e)
  return lines
end

-- Compiled operators may round otherwise.
local function same(a, b)
  if a == b then return true end
  local words = b:gmatch "[^%s,()]+"
  for word in a:gmatch "[^%s,()]+" do
    local other = words()
    if word ~= other then
      local p, q = tonumber(word), tonumber(other)
      if not p or not q or math.abs(p - q) > 1e-6 * math.max(1e-3, math.abs(p)) then return false end
    end
  end
  return words() == nil
end

-- Whether both modes agree; otherwise the lines that differ.
local function judge(source)
  -- A script that takes forever is none.
  debug.sethook(function() error("too long", 0) end, "", STEPS)
  local expected, why = reports(source, ms.PYNATIVE_MODE)
  debug.sethook()
  if not expected then return "invalid", why end
  for _, line in ipairs(expected) do
    if line:find "too long" or line:find "too much" then return "skip" end
  end
  local found = reports(source, ms.GRAPH_MODE)
  for i = 1, math.max(#expected, #found) do
    if not expected[i] or not found[i] or not same(expected[i], found[i]) then
      return "differs", ("report %d:\n  plainly %s\n  in graph mode %s"):format(i, expected[i], found[i])
    end
  end
  return "same"
end

-- Leaves out statements as long as the modes differ.
local function shrink(script)
  local tries = 0
  local function pass(list)
    local changed = false
    for at = #list, 1, -1 do
      local text = table.remove(list, at)
      tries = tries + 1
      if tries < 1500 and judge(Script.render(script)) == "differs" then
        changed = true
      else
        table.insert(list, at, text)
      end
    end
    return changed
  end
  local changed
  repeat
    changed = pass(script.main)
    for _, f in ipairs(script.functions) do changed = pass(f.body) or changed end
  until not changed or tries > 1500
  return Script.render(script)
end

local tally, shown = { same = 0, skip = 0, invalid = 0, differs = 0 }, 0
local done = 0
for index in today.numbers(only or 1, only or count, only and 1 or 4) do
  done = done + 1
  math.randomseed(seed, index)
  local script = Script.new(math.random)
  local source = Script.render(script)
  local verdict, detail = judge(source)
  tally[verdict] = tally[verdict] + 1
  if verdict == "invalid" then print(("seed %d, script %d: %s"):format(seed, index, detail)) end
  if verdict == "differs" then
    print(("FAIL seed %d, script %d: %s"):format(seed, index, detail))
    shown = shown + 1
    if shown <= 3 or only then
      local small = shrink(script)
      print(small)
      print(select(2, judge(small)))
    end
  end
end
print(("%d scripts left out"):format(tally.skip))
print(("%d passed, %d failed"):format(tally.same, tally.differs + tally.invalid))
os.exit(tally.differs + tally.invalid == 0 and tally.skip < done / 4 and 0 or 1, true)
