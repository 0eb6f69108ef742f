-- Runs programs whose values and gradients are known:
--   lunaria tests/conformance/programs.lua FILE.json [--dtype float32|float64] [--name NAMES] [--tag TAGS] [--mode eager|graph]
--     [--verbose]
-- A program is a chunk that gives a function; its results for the case's inputs are compared in order. In graph mode the
-- function is compiled and called four times, and fails when no call is done by what was compiled, but for what is known to be
-- left to Lua; a quarter of the programs a day (tests/lua/support/today.lua).
-- A loop that waits for convergence need not end in single precision, so programs tagged
-- `while` run in double precision at any --dtype. Cases that use a function of the module that does not exist yet are counted
-- as waiting, by name. The last line is "N passed, N failed".
local here = arg[0]:match("^(.*/)") or "./"
package.path = here .. "?.lua;" .. package.path
local ms = require "lunaria"
local support = require "support"

local usage = "usage: lunaria programs.lua FILE.json [--dtype float32|float64] [--name NAMES] [--tag TAGS] [--mode eager|graph] "
  .. "[--verbose]"
local path, options = support.options(usage, { dtype = "float32", name = "", tag = "", mode = "eager", verbose = true })
if options.dtype ~= "float32" and options.dtype ~= "float64" then
  error("--dtype must be float32 or float64, got " .. options.dtype, 0)
end
if options.mode ~= "eager" and options.mode ~= "graph" then
  error("--mode must be eager or graph, got " .. options.mode, 0)
end

local set = support.read_json(path)
local today = dofile "tests/lua/support/today.lua"

-- A number or nested list is a tensor, {"__list__": [...]} an array of tensors, another object a table of tensors.
local function input_of(value, dtype)
  if type(value) ~= "table" or value[1] ~= nil then return ms.tensor(value, dtype) end
  local result = {}
  for key, item in pairs(value.__list__ or value) do result[key] = input_of(item, dtype) end
  return result
end

local function shape_of(list)
  local shape = {}
  while type(list) == "table" do
    shape[#shape + 1] = #list
    list = list[1]
  end
  return shape
end

local function flatten(list, into)
  if type(list) ~= "table" then
    into[#into + 1] = list
  else
    for _, item in ipairs(list) do flatten(item, into) end
  end
  return into
end

-- Nil when the result is what was expected, else what is wrong.
local function difference(got, expected, dtype, rtol, atol)
  if got == nil then return "is missing" end
  if type(got) ~= "number" and not ms.is_tensor(got) then return "is a " .. type(got) end
  if ms.is_tensor(got) then
    local name = tostring(got.dtype):lower()
    if name ~= dtype and name ~= "int64" then return "has dtype " .. name end
    got = got:tolist()
  end
  local shape, wanted = table.concat(shape_of(got), ", "), table.concat(shape_of(expected), ", ")
  if shape ~= wanted then return ("has shape (%s), expected (%s)"):format(shape, wanted) end
  local a, b = flatten(got, {}), flatten(expected, {})
  for i = 1, #b do
    if not (math.abs(a[i] - b[i]) <= atol + rtol * math.abs(b[i])) then
      return ("element %d is %.9g, expected %.9g"):format(i - 1, a[i], b[i])
    end
  end
end

-- The first function of the module that the program uses and that does not exist.
local function missing_name(code)
  for name in code:gmatch("%f[%w_]ms%.([%w_]+)") do
    if not pcall(function() return ms[name] end) then return "ms." .. name end
  end
  for name in code:gmatch("%f[%w_]ops%.([%w_]+)") do
    if ms.ops[name] == nil then return "ops." .. name end
  end
end

local function has(list, wanted)
  for _, item in ipairs(list) do
    if item == wanted then return true end
  end
  return false
end

-- In graph mode: why a program may be left to Lua, and how many are.
local may_be_left = { "coroutine%.wrap is called", "coroutine%.create is called" }
local left = 0
local function is_known(reason)
  for _, pattern in ipairs(may_be_left) do
    if reason:find(pattern) then return true end
  end
end

local function judge(case)
  local dtype = has(case.tags, "while") and "float64" or options.dtype
  local inputs = {}
  for i, value in ipairs(case.inputs) do inputs[i] = input_of(value, ms[dtype]) end
  local program = assert(load(case.lua, "=" .. case.name))()
  local rounds = 1
  if options.mode == "graph" then
    rounds = 4
    program = ms.jit(program)
  end
  for _ = 1, rounds do
    local results = table.pack(program(table.unpack(inputs, 1, #inputs)))
    if results.n ~= #case.expected then return ("%d results, expected %d"):format(results.n, #case.expected) end
    for i, expected in ipairs(case.expected) do
      local wrong = difference(results[i], expected, dtype, case["rtol_" .. dtype], case["atol_" .. dtype])
      if wrong then return ("result %d %s"):format(i, wrong) end
    end
  end
  if options.mode == "graph" then
    local report = ms.jit_report(program)
    if report.compiled_calls == 0 then
      local reason = report.eager or tostring(report)
      if not is_known(reason) then return "is not compiled: " .. reason end
      left = left + 1
    end
  end
end

local has_name, has_tag = support.filter(options.name), support.filter(options.tag)
local function selected(case)
  if not has_name(case.name) then return false end
  for _, tag in ipairs(case.tags) do
    if has_tag(tag) then return true end
  end
  return options.tag == ""
end

local passed, failed = 0, 0
local waiting = support.waiting_list()
for number, case in ipairs(set.programs) do
  if selected(case) and (options.mode == "eager" or today.has(number, 4)) then
    local missing = missing_name(case.lua)
    local ran, wrong
    if not missing then ran, wrong = pcall(judge, case) end
    if missing then
      waiting:add(missing)
    elseif ran and not wrong then
      passed = passed + 1
      if options.verbose then print("pass " .. case.id) end
    else
      failed = failed + 1
      print("FAIL " .. case.id .. ": " .. support.headline(wrong))
      if options.verbose then print(case.lua) end
    end
  end
end
waiting:print()
if options.mode == "graph" then
  print(("%d programs were left to Lua"):format(left))
end
print(("%d passed, %d failed"):format(passed, failed))
os.exit(failed == 0 and 0 or 1, true)
