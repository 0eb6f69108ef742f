-- Random programs of up to seven operators on random meshes: the search for the cheapest strategy against trying all of them, without
-- a limit of memory and with several.
--   lunaria tests/conformance/strategies.lua --graphs SEED COUNT [--quiet]
-- COUNT programs. Seconds must be equal to the last digits, and the search must have proved them. The last line is "N passed, M
-- failed".
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local plans = require "lunaria.plans"
local support = require "support"

local usage = "usage: lunaria strategies.lua --graphs SEED COUNT [--quiet]"
local wanted, options = support.options(usage, { graphs = "", quiet = true }, 1)
local seed = math.tointeger(tonumber(options.graphs))
local count = math.tointeger(tonumber(wanted))
if not seed or not count or count < 1 then
  io.stderr:write(usage, "\n")
  os.exit(2)
end
math.randomseed(seed)

local size = 64
local meshes = { { { "a", 8 } }, { { "a", 4 } }, { { "a", 2 }, { "b", 4 } }, { { "a", 3 } } }

-- Tensors have two axes of 64, so that every letter may stand at every axis.
local function draw(axes)
  local program = { tensors = {}, operators = {} }
  local given = {} -- results of operators so far
  local function tensor(fields)
    table.insert(program.tensors, { size, size, parameter = fields.parameter, gradient = fields.gradient })
    return #program.tensors - 1
  end
  for _ = 1, math.random(2, 7) do
    local letters = {}
    -- Up to six ways to cut an operator.
    for l = 1, axes == 1 and math.random(2, 5) or 2 do
      letters[l] = { name = ("mnkpq"):sub(l, l), size = size, merges = true, spreads = math.random(6) == 1, cut = axes == 1 or l == 1 }
    end
    local function letters_of_two()
      local first = math.random(0, #letters - 1)
      return first, math.random(5) == 1 and -1 or (first + math.random(#letters - 1)) % #letters
    end
    local operands = {}
    for i = 1, math.random(2) do
      local from = #given > 0 and (i == 1 or math.random(2) == 1) and given[math.random(#given)]
      from = from or tensor { parameter = math.random(2) == 1, gradient = false }
      operands[i] = { from, letters_of_two() }
    end
    local result = tensor { gradient = math.random(8) > 1 }
    given[#given + 1] = result
    table.insert(program.operators, { name = "op" .. #program.operators, flops = math.random(0, 3) * 2e9, letters = letters,
      operands = operands, results = { { result, letters_of_two() } } })
  end
  return program
end

local function cluster()
  local far = math.random() * 1e10 + 1e8
  return { levels = { { ranks = 4, latency = math.random() * 1e-6, bytes_per_second = far * (1 + 9 * math.random()) },
    { ranks = 1 << 30, latency = math.random() * 1e-5, bytes_per_second = far } }, collective_seconds = 1e-6 * math.random(),
    flops_per_second = 1e14, bytes_per_second = 1e11, operator_seconds = 1e-6 }
end

local passed, failed, limited, none = 0, 0, 0, 0
for i = 1, count do
  local mesh = meshes[math.random(#meshes)]
  local program, c, level = draw(#mesh), cluster(), math.random(0, 3)
  local free = plans.strategies(program, { mesh = mesh, cluster = c, level = level })
  local limits = { math.huge }
  for _ = 1, 2 do limits[#limits + 1] = (free.search.bytes or 0) * (0.3 + 0.69 * math.random()) end
  for _, limit in ipairs(limits) do
    local found = plans.strategies(program, { mesh = mesh, cluster = c, level = level, limit = limit })
    local s, e = found.search, found.exhaustive
    local same = (s.seconds == nil) == (e.seconds == nil)
    if same and s.seconds then
      same = math.abs(s.seconds - e.seconds) <= 1e-9 * e.seconds and s.exact and s.bytes <= limit
      if limit < math.huge then limited = limited + 1 end
    elseif same then
      none = none + 1
    end
    if same then passed = passed + 1 else failed = failed + 1 end
    if not same and not options.quiet then
      print(("program %d, limit %g: search %s, everything %s"):format(i, limit, s.seconds, e.seconds))
    end
  end
end
print(("%d programs, %d within a limit, %d without a solution"):format(count, limited, none))
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0)
