-- Random programs that transform functions and go on with them (programs/transforms.lua), eagerly, by ms.jit and in graph mode: the
-- results are the same to the bit, errors to the letter.
--   lunaria tests/lua/random_transforms_test.lua [SEED [COUNT [ONLY]]]
-- ONLY is the number of one program, which is printed. A day runs a quarter of the 400 that there are without arguments.
-- Eager mode only: what it compares is compiled here as well.
package.path = "tests/lua/?.lua;" .. package.path
local ms = require "lunaria"
local Transforms = require "programs.transforms"
local today = require "support.today"
local ops = ms.ops

local seed, count, only = math.tointeger(tonumber(arg[1]) or 1), math.tointeger(tonumber(arg[2]) or 400), math.tointeger(tonumber(arg[3]))

local function text_of(value)
  if not ms.is_tensor(value) then return (tostring(value):gsub("0x%x+", "address")) end
  local list = value:reshape(-1):tolist()
  for i, v in ipairs(list) do list[i] = v ~= v and "nan" or ("%a"):format(v) end
  return table.concat(list, " ")
end

-- The rounds of a program: its number, and a factor of the row.
local ROUNDS = { { 1, 1 }, { 1, 1 }, { 2, 1 }, { 1, 0.7 }, { 3, 1 }, { 2, 0.7 }, { 0.5, 1 }, { 1, 1 }, { 4, 1 } }

local function outcomes(f)
  local list = {}
  for i, round in ipairs(ROUNDS) do
    local x = ops.tanh(ops.arange(3):astype(ms.float64) - 0.7) * round[2]
    local results = table.pack(pcall(f, x, round[1]))
    for j = 1, results.n do results[j] = text_of(results[j]) end
    list[i] = table.concat(results, "\n  ", 1, results.n)
  end
  return list
end

local forms = {
  { "ms.jit", function(make) return outcomes(ms.jit(make())) end },
  { "graph mode", function(make)
    ms.set_context { mode = ms.GRAPH_MODE, jit_level = "O1" }
    local list = outcomes(make())
    ms.set_context { mode = ms.PYNATIVE_MODE }
    return list
  end },
}

local passed, failed, erring = 0, 0, 0
local function judge(index)
  math.randomseed(seed, index)
  local source = Transforms.source(math.random)
  if only then print(source) end
  local chunk, message = load(source, "=program")
  if not chunk then error(source .. message) end
  local expected = outcomes(chunk())
  if expected[1]:find "^false" then erring = erring + 1 end
  local same = true
  for _, form in ipairs(forms) do
    local found = form[2](function() return load(source, "=program")() end)
    for round in ipairs(ROUNDS) do
      if same and found[round] ~= expected[round] then
        same = false
        print(("FAIL program %d of seed %d, %s, call %d\n  %s\neagerly\n  %s"):format(index, seed, form[1], round, found[round],
          expected[round]))
      end
    end
  end
  if same then passed = passed + 1 else failed = failed + 1 end
end
for index = only or 1, only or count do
  if only or arg[2] or today.has(index, 4) then judge(index) end
end
print(("%d programs end in an error"):format(erring))
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
