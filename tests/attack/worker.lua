-- Calls everything with hostile arguments:
--   lunaria worker.lua FOLDER SEED FIRST LAST MODE PROGRESS
-- makes the calls number FIRST to LAST of a seed; each depends on the seed and its number alone. PROGRESS is the file that
-- says which call is under way. MODE: eager, graph, chain, where each number is three calls of which the later ones get what
-- those before gave, or show and show-chain, which print the call number FIRST as a program.
local folder, seed, first, last, mode, progress = table.unpack(arg)
seed, first, last = math.tointeger(seed), math.tointeger(first), math.tointeger(last)
package.path = folder .. "/?.lua;" .. package.path
local ms = require "lunaria"
local arguments = require "arguments"
local targets = require "targets"

local random, randomseed = math.random, math.randomseed
local write, format, find = io.stdout.write, string.format, string.find
local pcall, type, ipairs, load, unpack = pcall, type, ipairs, load, table.unpack

local function any(list) return list[random(#list)] end

local function hostile()
  local kind = random(10)
  if kind <= 3 then return any(arguments.numbers) end
  if kind <= 5 then return any(arguments.lists) end
  if kind <= 8 then return any(arguments.tensors) end
  return any(arguments.others)
end

-- The call of that number: a target, and the texts of its arguments. In a chain, some of them are what the calls before, of
-- which there are `before`, gave.
local function call_of(number, before)
  randomseed(seed, before and number * 4 + before or number)
  local target = targets[random(#targets)]
  local texts = {}
  local good = #target.calls > 0 and random(10) <= 7 and any(target.calls)
  if good then
    for i, text in ipairs(good) do
      texts[i] = text
    end
    for _ = 1, random(2) do
      if #texts > 0 then texts[random(#texts)] = hostile() end
    end
  else
    for i = 1, random(0, 4) do
      texts[i] = hostile()
    end
  end
  for i = 1, before and before > 0 and #texts or 0 do
    if random(2) == 1 then texts[i] = ("r[%d]"):format(random(before)) end
  end
  local names = target.calls.names
  if names and #names > 0 and random(6) == 1 then
    texts[#texts + 1] = format("{ %s = %s }", any(names), hostile())
  end
  return target, texts
end

local HEAD = "local ms, given, r = ...\n"
local made = {}
local function value_of(text, results)
  local f = made[text]
  if not f then
    f = assert(load(HEAD .. "return " .. text, "=" .. text))
    made[text] = f
  end
  return f(ms, arguments.given, results)
end

if mode == "show" or mode == "show-chain" then
  for before = 0, mode == "show" and 0 or 2 do
    local target, texts = call_of(first, mode == "show-chain" and before or nil)
    print(("local f = %s\nr[%d] = f(%s)"):format(target.code, before + 1, table.concat(texts, ", ")))
  end
  os.exit(0)
end

-- Texts of the standard library and of broken invariants are no messages.
local FOREIGN = {
  "std::", "max_size", "bad_alloc", "basic_string", "length_error", "vector::",
  "_M_", "terminate", "out_of_range", "bad_optional", "bad_variant",
}

local file = assert(io.open(progress, "w"))
file:setvbuf("no")
local seek, put = file.seek, file.write
local reports = {}

local function run(number, before, results)
  local target, texts = call_of(number, before)
  local ok, f = pcall(value_of, target.code)
  if not ok then return nil end
  local list = {}
  for i, text in ipairs(texts) do
    local fine, value = pcall(value_of, text, results)
    if fine then list[i] = value end
  end
  if mode == "graph" then
    local call = f
    f = ms.jit(function(...) return call(...) end)
  end
  local done, message = pcall(f, unpack(list, 1, #texts))
  if done then return message end
  if type(message) ~= "string" then return nil end
  for _, text in ipairs(FOREIGN) do
    if find(message, text) and not reports[target.code] then
      reports[target.code] = true
      write(io.stdout, format("MESSAGE %d %s(%s): %s\n", number, target.code, table.concat(texts, ", "), message:sub(1, 300)))
    end
  end
  return nil
end

local reset = ms.set_num_threads
for number = first, last do
  seek(file, "set", 0)
  put(file, format("%12d", number))
  if mode == "chain" then
    local results = {}
    for before = 0, 2 do results[before + 1] = run(number, before, results) end
  else
    run(number)
  end
  if number % 64 == 0 then
    reset(1)
    ms.set_context { mode = ms.PYNATIVE_MODE }
    collectgarbage("restart")
  end
end
seek(file, "set", 0)
put(file, "        done")
