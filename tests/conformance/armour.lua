-- lunaria tests/conformance/armour.lua FILE [--mode graph] [--kinds a,b]: attacks, metrics, coverage, private gradients, accountants and
-- whatever else a file in the form of tests/data/conformance/armour-vectors.json has. Each key of the file is a kind; armour/<kind>.lua
-- returns a function of what stands there and of case(name, f), which it calls for each case: f returns nil or what is wrong, or raises an
-- error. Kinds without such a file wait.
package.path = "tests/conformance/?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"

local usage = "usage: lunaria tests/conformance/armour.lua FILE [--mode graph] [--kinds a,b]"
local path, options = support.options(usage, { mode = "eager", kinds = "" })
if options.mode ~= "eager" and options.mode ~= "graph" then
  io.stderr:write("--mode must be eager or graph\n", usage, "\n")
  os.exit(2)
end
if options.mode == "graph" then ms.set_context { mode = ms.GRAPH_MODE } end
local wanted = support.filter(options.kinds)

local passed, failed, waiting = 0, 0, support.waiting_list()

local function case(name, f)
  local ok, wrong = pcall(f)
  if ok and wrong == nil then
    passed = passed + 1
  elseif ok and wrong == "waiting" then
    waiting:add(name)
  else
    failed = failed + 1
    print(("FAIL %s: %s"):format(name, support.headline(wrong)))
  end
end

-- The number of cases of a kind that waits: of its list, or one.
local function size_of(section)
  local list = section.rows or section.cases or section
  return math.max(1, #list)
end

local sections = support.read_json(path)
local kinds = {}
for kind in pairs(sections) do kinds[#kinds + 1] = kind end
table.sort(kinds)
for _, kind in ipairs(kinds) do
  if kind ~= "about" and wanted(kind) then
    local found = package.searchpath("armour." .. kind, package.path)
    if found then
      dofile(found)(sections[kind], case)
    else
      for _ = 1, size_of(sections[kind]) do waiting:add(kind) end
    end
  end
end

waiting:print()
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and passed > 0 and 0 or 1, true)
